"""A write is whole or not at all, keeps what the old file had, and says what it could not keep."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
import time
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from filesystem.places import Ground, Told, ground, stop
from mcp_batteries.concurrency.cancellation import CancelToken, WorkCancelled
from mcp_batteries.errors import Conflict, Invalid, NotFound, Refused
from mcp_fs.engine.changing import atomic_write, targets, writing
from mcp_fs.engine.handles import temp_files
from mcp_fs.engine.handles.locks import lock_names
from mcp_fs.engine.handles.path_opening import resolve
from mcp_fs.engine.handles.temp_files import TEMPORARY_PREFIX, clean_in_background, clean_leftovers
from mcp_fs.engine.journal import operations
from mcp_fs.models import WriteResult
from mcp_fs.policy import Policy

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX attributes")


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Ground]:
    place = ground(tmp_path)
    yield place
    assert place.temporary() == []
    assert [path.name for path in place.outside.iterdir()] == ["secret.txt"]
    assert (place.outside / "secret.txt").read_text() == "OUTSIDE"


def put(here: Ground, path: str, content: str | bytes = "new", *, overwrite: bool = False) -> WriteResult:
    return writing.write_file(here.writable(path), content, overwrite=overwrite, cancel=stop())


def test_create(here: Ground) -> None:
    written = put(here, "f.txt", "héllo\n")
    assert (here.root / "f.txt").read_bytes() == "héllo\n".encode()
    assert (written.verb, written.size) == ("created", 7)
    assert written.text() == "created f.txt, 7 bytes"


def test_bytes_are_written_as_they_are(here: Ground) -> None:
    put(here, "f", b"\xff\x00\r\n")
    assert (here.root / "f").read_bytes() == b"\xff\x00\r\n"


@posix
def test_a_new_file_has_the_mode_of_any_new_file(here: Ground) -> None:
    put(here, "f")
    (here.root / "g").write_text("")
    assert (here.root / "f").stat().st_mode == (here.root / "g").stat().st_mode


def test_an_existing_file_is_not_replaced_unless_told(here: Ground) -> None:
    (here.root / "f").write_text("old")
    with pytest.raises(Conflict, match="`f` exists already"):
        put(here, "f")
    assert (here.root / "f").read_text() == "old"
    assert put(here, "f", overwrite=True).verb == "replaced"
    assert (here.root / "f").read_text() == "new"


@posix
def test_a_file_that_appears_meanwhile_is_not_replaced(here: Ground) -> None:
    with (
        targets.resolve_for_writing(here.writable("f")) as spot,
        atomic_write.prepare_write(spot, b"new", None, here.readable("f")) as staged,
    ):
        (here.root / "f").write_text("theirs")
        with pytest.raises(Conflict, match="exists already"):
            operations.apply([staged], None)
    assert (here.root / "f").read_text() == "theirs"


@posix
def test_mode_attributes_and_access_lists_are_kept(here: Ground) -> None:
    path = here.root / "f"
    path.write_text("old")
    path.chmod(0o4750)
    if sys.platform == "linux":
        try:
            os.setxattr(path, "user.color", b"green")
        except OSError:
            pytest.skip("no extended attributes here")
    put(here, "f", overwrite=True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o4750
    if sys.platform == "linux":
        assert os.getxattr(path, "user.color") == b"green"


@posix
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_owner_and_group_are_kept(here: Ground) -> None:
    path = here.root / "f"
    path.write_text("old")
    os.chown(path, 1234, 4321)
    assert put(here, "f", overwrite=True).notes == ()
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 4321)


@posix
def test_an_owner_that_can_not_be_kept_is_said(here: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    (here.root / "f").write_text("old")
    (here.root / "f").chmod(0o6755)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)

    def refuse(fd: int, uid: int, gid: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "fchown", refuse)
    assert "owner could not be kept" in put(here, "f", overwrite=True).text()
    assert stat.S_IMODE((here.root / "f").stat().st_mode) == 0o755


@posix
def test_nobody_else_can_read_the_file_while_it_is_written(here: Ground) -> None:
    (here.root / "f").write_text("old")
    (here.root / "f").chmod(0o644)
    modes: list[int] = []

    def fill(fd: int) -> None:
        modes.extend(stat.S_IMODE((here.root / name).stat().st_mode) for name in here.temporary())
        os.write(fd, b"new")

    old = (here.root / "f").stat()
    with (
        targets.resolve_for_writing(here.writable("f")) as spot,
        atomic_write.prepare_write(spot, fill, old, here.readable("f"), overwrite=True) as staged,
    ):
        operations.apply([staged], None)
    assert modes == [0o600]
    assert stat.S_IMODE((here.root / "f").stat().st_mode) == 0o644


@posix
def test_a_link_stays_a_link_and_its_target_is_written(here: Ground) -> None:
    (here.root / "sub").mkdir()
    (here.root / "sub" / "f").write_text("old")
    (here.root / "l").symlink_to("sub/f")
    put(here, "l", overwrite=True)
    assert os.readlink(here.root / "l") == "sub/f"
    assert (here.root / "sub" / "f").read_text() == "new"
    (here.root / "dangling").symlink_to("sub/g")
    assert put(here, "dangling").verb == "created"
    assert (here.root / "sub" / "g").read_text() == "new"


@posix
@pytest.mark.parametrize("target", ["../outside/secret.txt", "../outside/made.txt", "../outside"])
def test_a_link_that_leads_outside_is_refused(here: Ground, target: str) -> None:
    (here.root / "l").symlink_to(target)
    for path in ("l", "l/made.txt"):
        with pytest.raises(Refused, match="leads outside"):
            put(here, path, overwrite=True)


@posix
def test_a_hard_link_is_detached_and_the_answer_says_so(here: Ground) -> None:
    os.link(here.outside / "secret.txt", here.root / "f")
    written = put(here, "f", overwrite=True)
    assert "2 hard links" in written.text()
    assert (here.root / "f").read_text() == "new"


@posix
def test_what_is_no_file_is_not_replaced(here: Ground) -> None:
    os.mkfifo(here.root / "pipe")
    (here.root / "folder").mkdir()
    for path in ("pipe", "folder"):
        with pytest.raises(Refused, match="not a file"):
            put(here, path, overwrite=True)
    with pytest.raises(Refused, match="is a folder"):
        put(here, ".", overwrite=True)


def test_a_missing_folder_is_named(here: Ground) -> None:
    with pytest.raises(NotFound, match=r"The folder `no/such` does not exist. Create it first"):
        put(here, "no/such/f")


def test_a_lone_surrogate_is_not_text(here: Ground) -> None:
    with pytest.raises(Invalid, match="lone surrogate"):
        put(here, "f", "\udcff")


def test_a_new_file_never_doubles_another_spelling_of_its_name(here: Ground) -> None:
    stored = unicodedata.normalize("NFD", "é.txt")
    (here.root / stored).write_text("old")
    with pytest.raises(Conflict):
        put(here, "é.txt")
    put(here, "é.txt", overwrite=True)
    assert os.listdir(here.root) == [stored]
    assert (here.root / stored).read_text() == "new"


@pytest.mark.parametrize("name", ["trailing ", "quo'te\"", "new\nline", "$(x)"])
@posix
def test_names_are_taken_as_they_are(here: Ground, name: str) -> None:
    put(here, name)
    assert os.listdir(here.root) == [name]


def test_two_creations_of_one_name_make_one_file(here: Ground) -> None:
    outcomes: list[str] = []
    start = threading.Barrier(8)

    def create(number: int) -> None:
        start.wait()
        try:
            put(here, "f", str(number))
            outcomes.append(str(number))
        except Conflict:
            pass

    threads = [threading.Thread(target=create, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [(here.root / "f").read_text()] == outcomes


@posix
def test_two_ways_to_one_file_share_a_lock(here: Ground) -> None:
    (here.root / "a").mkdir()
    (here.root / "l").symlink_to("a")
    with resolve(here.writable("a/F")) as one, resolve(here.writable("l/f")) as other, lock_names([one], stop()):
        waiting = CancelToken(seconds=0.01)
        with pytest.raises(WorkCancelled), lock_names([other], waiting):
            pass
        with resolve(here.writable("a/g")) as third, lock_names([third], stop()):
            pass
    with resolve(here.writable("l/f")) as other, lock_names([other], stop()):
        pass


class TestLeftovers:
    """What a crash has left goes; what is at work stays."""

    @pytest.fixture(autouse=True)
    def later(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """This process has started after all the test makes, and has been nowhere yet."""
        monkeypatch.setattr(temp_files, "_START_TIME", time.time() + 60)
        monkeypatch.setattr(temp_files, "_cleaned_folders", set())

    def test_at_the_start_everywhere_and_nobody_elses(self, here: Ground) -> None:
        deep = here.root / "a" / "b"
        (deep / f"{TEMPORARY_PREFIX}folder").mkdir(parents=True)
        (deep / f"{TEMPORARY_PREFIX}folder" / "inner").write_text("")
        (deep / f"{TEMPORARY_PREFIX}0").write_text("")
        (deep / ".~other").write_text("")
        (deep / "f").write_text("")
        assert clean_leftovers(here.policy, stop()) == 2
        assert sorted(os.listdir(deep)) == [".~other", "f"]
        (deep / ".~other").unlink()

    @posix
    def test_outside_nothing_is_touched(self, here: Ground) -> None:
        (here.outside / f"{TEMPORARY_PREFIX}0").write_text("")
        (here.root / "l").symlink_to(here.outside)
        assert clean_leftovers(here.policy, stop()) == 0
        (here.outside / f"{TEMPORARY_PREFIX}0").unlink()

    def test_no_more_is_looked_at_than_allowed(self, here: Ground) -> None:
        for name in "abcdef":
            (here.root / name).mkdir()
            (here.root / name / f"{TEMPORARY_PREFIX}0").write_text("")
        assert clean_leftovers(here.policy, stop(), max_entries=8) == 2
        assert clean_leftovers(here.policy, stop()) == 4

    def test_in_a_folder_that_is_written_to(self, here: Ground) -> None:
        (here.root / f"{TEMPORARY_PREFIX}0").write_text("")
        put(here, "f")
        assert os.listdir(here.root) == ["f"]

    @posix
    def test_what_a_living_process_holds_stays(self, here: Ground) -> None:
        path = here.root / f"{TEMPORARY_PREFIX}0"
        program = (
            "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.flock(f, fcntl.LOCK_EX); print(flush=True); input()"
        )
        with subprocess.Popen(
            [sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as other:
            assert other.stdout is not None
            other.stdout.readline()
            assert clean_leftovers(here.policy, stop()) == 0
            assert path.exists()
            other.communicate(b"\n")
        assert clean_leftovers(here.policy, stop()) == 1

    def test_what_is_younger_than_this_process_stays(self, here: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(temp_files, "_START_TIME", time.time() - 60)
        (here.root / f"{TEMPORARY_PREFIX}0").write_text("")
        assert clean_leftovers(here.policy, stop()) == 0
        (here.root / f"{TEMPORARY_PREFIX}0").unlink()

    @pytest.mark.anyio
    async def test_the_server_cleans_beside_its_first_requests(self, here: Ground) -> None:
        (here.root / f"{TEMPORARY_PREFIX}0").write_text("")
        async with clean_in_background(here.policy):
            with anyio.fail_after(30):
                while here.temporary():
                    await anyio.sleep(0.01)

    @pytest.mark.anyio
    async def test_a_read_only_server_cleans_nothing(self, here: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
        cleaned: list[object] = []
        monkeypatch.setattr("mcp_fs.engine.handles.temp_files.run_in_thread", cleaned.append)
        async with clean_in_background(Policy(Told((str(here.root),), read_only=True))):
            await anyio.sleep(0)
        assert cleaned == []
