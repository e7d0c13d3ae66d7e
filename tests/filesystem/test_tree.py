"""The tree changes by one step that the kernel decides, links move as links, and nothing is lost by accident."""

from __future__ import annotations

import errno
import os
import random
import stat
import sys
import threading
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from filesystem import places
from filesystem.places import Ground, Told, fifo, ground, stop
from filesystem.tool_calls import Tools
from mcp_batteries.concurrency.cancellation import CancelToken, WorkCancelled
from mcp_batteries.errors import Conflict, Invalid, NotFound, Problem, Refused, TooLarge, Unavailable
from mcp_fs.engine.changing import folders, targets
from mcp_fs.engine.changing.entries import copying, deleting, entry_copy, moving
from mcp_fs.engine.handles import path_opening
from mcp_fs.engine.handles.syscalls import copy_blocks
from mcp_fs.engine.listing import tree_size
from mcp_fs.models import MoveResult
from mcp_fs.policy import Policy
from mcp_fs.tools.write import Edit

pytestmark = pytest.mark.anyio


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Ground]:
    place = ground(tmp_path)
    yield place
    assert place.temporary() == []
    assert {path.name: path.read_text() for path in place.outside.iterdir()} == {"secret.txt": "OUTSIDE"}


def make(here: Ground, *paths: str) -> None:
    """Files by name with their names in them; a name that ends in a slash is a folder."""
    for path in paths:
        if path.endswith("/"):
            (here.root / path).mkdir(parents=True, exist_ok=True)
        else:
            (here.root / path).parent.mkdir(parents=True, exist_ok=True)
            (here.root / path).write_text(path)


def all_of(here: Ground) -> dict[str, str]:
    return {
        path.relative_to(here.root).as_posix(): os.readlink(path) if path.is_symlink() else path.read_text()
        for path in here.root.rglob("*")
        if path.is_symlink() or path.is_file()
    }


def move(here: Ground, source: str, target: str, *, overwrite: bool = False) -> MoveResult:
    return moving.move_entry(here.writable(source), here.writable(target), overwrite=overwrite, cancel=stop())


def copy(here: Ground, source: str, target: str, *, overwrite: bool = False) -> MoveResult:
    return copying.copy_entry(here.readable(source), here.writable(target), overwrite=overwrite, cancel=stop())


def delete(here: Ground, path: str, *, recursive: bool = False, trash: bool = False) -> MoveResult:
    return places.delete(here.writable(path), recursive=recursive, trash=trash)


class TestCreate:
    def test_with_those_above(self, here: Ground) -> None:
        assert folders.create_folder(here.writable("a/b/c"), stop()).text() == "created a/b/c"
        assert (here.root / "a/b/c").is_dir()
        assert folders.create_folder(here.writable("a/b/c"), stop()).verb == "already there:"
        assert folders.create_folder(here.writable("."), stop()).verb == "already there:"

    def test_where_something_else_is(self, here: Ground) -> None:
        make(here, "f")
        for path, why in (
            ("f", "`f` exists and is not a folder"),
            ("f/a", "`f` is a file"),
            ("f/a/b", "`f` is a file"),
        ):
            with pytest.raises(Conflict, match=why):
                folders.create_folder(here.writable(path), stop())

    def test_through_links(self, here: Ground) -> None:
        make(here, "a/")
        (here.root / "l").symlink_to("a")
        (here.root / "out").symlink_to(here.outside)
        (here.root / "dangling").symlink_to(here.outside / "made")
        folders.create_folder(here.writable("l/b"), stop())
        assert (here.root / "a/b").is_dir()
        for path in ("out/made", "dangling", "dangling/x"):
            with pytest.raises(Refused, match="leads outside"):
                folders.create_folder(here.writable(path), stop())


class TestMove:
    def test_a_file_and_a_folder(self, here: Ground) -> None:
        make(here, "f", "a/g", "b/")
        assert move(here, "f", "b/f2").text() == "moved f to b/f2"
        move(here, "a", "b/a")
        assert all_of(here) == {"b/f2": "f", "b/a/g": "a/g"}

    @pytest.mark.parametrize("taken", ["file", "folder", "link"])
    def test_nothing_is_replaced_unless_told(self, here: Ground, taken: str) -> None:
        make(here, "f")
        if taken == "file":
            make(here, "g")
        elif taken == "folder":
            make(here, "g/")
        else:
            (here.root / "g").symlink_to("nowhere")
        before = all_of(here)
        with pytest.raises(Conflict, match=r"`g` .*exists already; nothing was moved"):
            move(here, "f", "g")
        assert all_of(here) == before

    def test_a_file_is_replaced_when_told(self, here: Ground) -> None:
        make(here, "f", "g", "folder/x")
        move(here, "f", "g", overwrite=True)
        assert all_of(here) == {"g": "f", "folder/x": "folder/x"}
        with pytest.raises(Conflict, match="`folder` is a folder"):
            move(here, "g", "folder", overwrite=True)
        make(here, "other/y")
        with pytest.raises(Conflict, match="a full folder is never replaced"):
            move(here, "other", "folder", overwrite=True)
        with pytest.raises(Conflict, match="`g` is a file, which a folder can't replace"):
            move(here, "other", "g", overwrite=True)

    def test_of_two_moves_to_one_name_one_fails(self, here: Ground) -> None:
        make(here, *(f"f{number}" for number in range(8)))
        outcomes: list[bool] = []
        start = threading.Barrier(8)

        def one(number: int) -> None:
            start.wait()
            try:
                move(here, f"f{number}", "target")
                outcomes.append(True)
            except Conflict:
                outcomes.append(False)

        threads = [threading.Thread(target=one, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(outcomes) == [False] * 7 + [True]
        assert len(all_of(here)) == 8

    def test_links_move_as_links(self, here: Ground) -> None:
        make(here, "a/")
        (here.root / "l").symlink_to(here.outside / "secret.txt")
        move(here, "l", "a/l")
        assert all_of(here) == {"a/l": str(here.outside / "secret.txt")}

    def test_a_link_is_replaced_not_followed(self, here: Ground) -> None:
        make(here, "f")
        (here.root / "l").symlink_to(here.outside / "secret.txt")
        move(here, "f", "l", overwrite=True)
        assert all_of(here) == {"l": "f"}

    @pytest.mark.parametrize(("source", "target"), [("out/secret.txt", "f"), ("f", "out/f"), ("out", "out/x")])
    def test_not_through_links_that_leave(self, here: Ground, source: str, target: str) -> None:
        make(here, "f")
        (here.root / "out").symlink_to(here.outside)
        with pytest.raises(Refused, match="leads outside"):
            move(here, source, target)

    def test_into_itself(self, here: Ground) -> None:
        make(here, "a/b/")
        with pytest.raises(Invalid, match="`a` can't be moved into itself"):
            move(here, "a", "a/b/c")

    def test_the_served_folder_stays(self, here: Ground) -> None:
        with pytest.raises(Refused, match="served folder itself"):
            move(here, ".", "x")

    def test_what_is_missing(self, here: Ground) -> None:
        with pytest.raises(NotFound, match="`f` does not exist"):
            move(here, "f", "g")
        make(here, "f")
        with pytest.raises(NotFound, match="The folder `no` does not exist"):
            move(here, "f", "no/g")

    def test_to_another_spelling_of_its_name(self, here: Ground) -> None:
        one, other = (unicodedata.normalize(form, "é") for form in ("NFD", "NFC"))
        make(here, one)
        move(here, one, other)
        assert unicodedata.normalize("NFC", os.listdir(here.root)[0]) == other
        assert len(os.listdir(here.root)) == 1

    def test_over_a_hard_link_to_the_same_file(self, here: Ground) -> None:
        make(here, "f", "d/")
        for target in ("g", "d/f"):
            os.link(here.root / "f", here.root / target)
            move(here, "f", target, overwrite=True)
            assert not (here.root / "f").exists() and (here.root / target).read_text() == "f"
            move(here, target, "f")

    def test_a_secret_can_not_be_renamed_into_the_open(self, here: Ground) -> None:
        make(here, ".env", ".aws/credentials", ".config/gh/hosts.yml", "f")
        for source, target in (
            (".env", "env.txt"),
            (".config/gh", "gh"),
            (".config", "config"),
            ("f", ".env"),
            (".aws/credentials", "c"),
            (".aws", "aws"),
        ):
            with pytest.raises(Refused):
                move(here, source, target, overwrite=True)
        make(here, "a/")
        move(here, ".aws", "a/.aws")
        with pytest.raises(Refused):
            here.readable("a/.aws/credentials")

    def test_between_served_folders(self, tmp_path: Path) -> None:
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
        (tmp_path / "one" / "f").write_text("f")
        policy = Policy(Told((str(tmp_path / "one"), str(tmp_path / "two"))))
        moving.move_entry(policy.writable("one/f"), policy.writable("two/g"), overwrite=False, cancel=stop())
        assert (tmp_path / "two" / "g").read_text() == "f"
        assert os.listdir(tmp_path / "one") == []


def _furnish(top: Path, chance: random.Random) -> None:
    """A folder with files, folders and links in it, each with a mode, an owner and times of its own."""
    folders, files = [top], list[Path]()
    top.mkdir()
    for number in range(25):
        place = chance.choice(folders) / str(number)
        match chance.randrange(4):
            case 0:
                place.mkdir()
                folders.append(place)
            case 1 if files:
                os.link(chance.choice(files), place)
            case 2:
                place.symlink_to(chance.choice(["nowhere", ".", "../x"]))
            case _:
                place.write_text(str(number))
                files.append(place)
    (top / "last").write_text("last")
    for place in [*sorted(top.rglob("*"), reverse=True), top]:
        if os.geteuid() == 0:
            os.chown(place, chance.randrange(3), chance.randrange(3), follow_symlinks=False)
        if not place.is_symlink():
            place.chmod(chance.choice([0o700, 0o755, 0o4750, 0o2711, 0o1777]))
        moments = (chance.randrange(10**18), chance.randrange(10**18))
        os.utime(place, ns=moments, follow_symlinks=False)


def _belongings(top: Path) -> dict[str, tuple[int, int, int, int, tuple[str, ...], str]]:
    """Of each entry its mode, owner, group and time, the names that are one file with it, and what it holds."""
    places = {place.relative_to(top).as_posix(): place for place in [top, *top.rglob("*")]}
    found = {name: place.lstat() for name, place in places.items()}
    alike: dict[int, list[str]] = {}
    for name, one in found.items():
        if stat.S_ISREG(one.st_mode):
            alike.setdefault(one.st_ino, []).append(name)
    return {
        name: (
            one.st_mode,
            one.st_uid,
            one.st_gid,
            one.st_mtime_ns,
            tuple(sorted(alike.get(one.st_ino, ()))),
            os.readlink(places[name])
            if stat.S_ISLNK(one.st_mode)
            else places[name].read_text()
            if stat.S_ISREG(one.st_mode)
            else "",
        )
        for name, one in found.items()
    }


class TestMoveAcross:
    """Between file systems, where a rename fails."""

    @pytest.fixture(autouse=True)
    def devices(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def rename(self: object, name: str, folder: object, new: str) -> None:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

        real = path_opening.Folder.rename_noreplace

        def rename_new(self: path_opening.Folder, name: str, folder: path_opening.Folder, new: str) -> None:
            if not name.startswith(".~"):
                rename(self, name, folder, new)
            real(self, name, folder, new)

        monkeypatch.setattr(path_opening.Folder, "rename_noreplace", rename_new)

    def test_files_folders_and_links(self, here: Ground) -> None:
        make(here, "f", "a/b/g")
        (here.root / "a/l").symlink_to("nowhere")
        (here.root / "f").chmod(0o750)
        move(here, "f", "f2")
        move(here, "a", "a2")
        move(here, "a2/l", "l2")
        assert all_of(here) == {"f2": "f", "a2/b/g": "a/b/g", "l2": "nowhere"}
        assert stat.S_IMODE((here.root / "f2").stat().st_mode) == 0o750

    @pytest.mark.skipif(sys.platform == "win32", reason="POSIX attributes")
    @pytest.mark.parametrize("seed", range(12))
    def test_what_mv_keeps_is_kept(self, here: Ground, seed: int) -> None:
        """Of random trees with all that an entry can have; a copy made by mv(1)'s own rules is what they are before."""
        chance = random.Random(seed)
        _furnish(here.root / "a", chance)
        before = _belongings(here.root / "a")
        single = next(name for name, what in before.items() if stat.S_ISREG(what[0]))
        assert "could not be kept" not in move(here, "a", "moved").text()
        assert _belongings(here.root / "moved") == before
        assert not (here.root / "a").exists()
        move(here, f"moved/{single}", "file")
        assert _belongings(here.root / "file")["."][:4] == before[single][:4]

    @pytest.mark.skipif(sys.platform == "win32", reason="POSIX attributes")
    def test_what_cannot_be_kept_is_said(self, here: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
        make(here, "a/x", "a/y")
        os.chown(here.root / "a/x", -1, os.getegid())
        real = os.utime

        def refuse(name: str, **how: object) -> None:
            if name in ("x", "y"):
                raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
            real(name, **how)  # type: ignore[call-overload]

        monkeypatch.setattr(os, "utime", refuse)
        assert "the times of 2 entries could not be kept" in move(here, "a", "b").text()

    def test_nothing_is_replaced(self, here: Ground) -> None:
        make(here, "f", "g", "a/x", "b/y")
        before = all_of(here)
        for source, target in (("f", "g"), ("a", "b"), ("a", "g")):
            with pytest.raises(Conflict, match="exists already"):
                move(here, source, target)
        assert all_of(here) == before

    def test_what_would_be_lost_is_not_moved(self, here: Ground) -> None:
        make(here, "a/.env", "b/")
        fifo(here.root / "b/pipe")
        for folder in "ab":
            with pytest.raises(Refused):
                move(here, folder, "c")
        assert sorted(os.listdir(here.root)) == ["a", "b"]
        assert sorted(os.listdir(here.root / "a") + os.listdir(here.root / "b")) == [".env", "pipe"]

    def test_an_old_one_that_stays_is_said(self, here: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
        make(here, "f")

        def refuse(*_: object) -> None:
            raise PermissionError(1, "Operation not permitted")

        monkeypatch.setattr(moving, "remove_all", refuse)
        with pytest.raises(Unavailable, match="was copied to `g`, but not all of it could be removed"):
            move(here, "f", "g")
        assert all_of(here) == {"f": "f", "g": "f"}


class TestCopy:
    def test_a_file_with_its_mode(self, here: Ground) -> None:
        make(here, "f")
        (here.root / "f").chmod(0o4750)
        assert copy(here, "f", "g").text() == "copied f to g"
        assert all_of(here) == {"f": "f", "g": "f"}
        assert sys.platform == "win32" or stat.S_IMODE((here.root / "g").stat().st_mode) == 0o750

    def test_a_folder_with_all_in_it(self, here: Ground) -> None:
        make(here, "a/b/f", "a/g", "a/empty/")
        (here.root / "a/l").symlink_to("../../outside")
        (here.root / "a/b").chmod(0o700)
        copy(here, "a", "c")
        assert all_of(here) == {
            "a/b/f": "a/b/f", "a/g": "a/g", "a/l": "../../outside",
            "c/b/f": "a/b/f", "c/g": "a/g", "c/l": "../../outside",
        }  # fmt: skip
        assert (here.root / "c/empty").is_dir()
        assert stat.S_IMODE((here.root / "c/b").stat().st_mode) == 0o700

    @pytest.mark.parametrize("seed", range(12))
    def test_holes_stay_holes(self, here: Ground, seed: int) -> None:
        drawn = random.Random(seed)
        (here.root / "a").mkdir()
        with (here.root / "a/f").open("wb") as file:
            for _ in range(drawn.randrange(6)):
                file.seek(drawn.randrange(64) << 18)
                file.write(drawn.randbytes(drawn.choice((1, 4096, 70_000, 300_000))))
            file.truncate(max(file.tell(), drawn.randrange(256) << 16))
        copy(here, "a/f", "f")
        copy(here, "a", "b")
        content, found = (here.root / "a/f").read_bytes(), (here.root / "a/f").stat()
        for path in (here.root / "f", here.root / "b/f"):
            assert path.read_bytes() == content
            if sys.platform != "win32":
                assert path.stat().st_blocks <= found.st_blocks

    @pytest.mark.skipif(sys.platform == "win32", reason="no blocks are told")
    def test_a_file_that_is_said_to_be_one_hole_is_copied(self, here: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
        # So say some shared folders of containers, and others of what was just written.
        content, real = random.Random(0).randbytes(300_000), os.fstat
        (here.root / "a").write_bytes(content)

        def lying(fd: int) -> object:
            return SimpleNamespace(st_size=real(fd).st_size, st_blocks=0)

        def holes(fd: int, at: int, how: int) -> int:
            if how in (os.SEEK_DATA, os.SEEK_HOLE):
                raise OSError(errno.ENXIO, "No such device or address")
            return seek(fd, at, how)

        seek = os.lseek
        with (here.root / "a").open("rb") as source, (here.root / "b").open("wb") as target:
            monkeypatch.setattr(os, "fstat", lying)
            monkeypatch.setattr(os, "lseek", holes)
            copy_blocks(source.fileno(), target.fileno(), lambda: None)
            monkeypatch.undo()
        assert (here.root / "b").read_bytes() == content

    @pytest.mark.skipif(sys.platform != "linux", reason="/proc")
    def test_what_tells_no_size_is_copied_to_its_end(self, here: Ground) -> None:
        with Path("/proc/version").open("rb") as source, (here.root / "f").open("wb") as target:
            copy_blocks(source.fileno(), target.fileno(), lambda: None)
            target.flush()
            assert (here.root / "f").read_bytes() == Path("/proc/version").read_bytes() != b""

    def test_links_are_copied_as_links(self, here: Ground) -> None:
        (here.root / "l").symlink_to("nowhere")
        copy(here, "l", "m")
        assert all_of(here) == {"l": "nowhere", "m": "nowhere"}

    def test_nothing_is_replaced_unless_told(self, here: Ground) -> None:
        make(here, "f", "g", "a/x", "b/")
        before = all_of(here)
        for source, target in (("f", "g"), ("f", "b"), ("a", "b"), ("a", "g")):
            with pytest.raises(Problem):
                copy(here, source, target)
        assert all_of(here) == before
        copy(here, "f", "g", overwrite=True)
        assert (here.root / "g").read_text() == "f"
        with pytest.raises(Conflict):
            copy(here, "a", "b", overwrite=True)

    def test_onto_itself_or_into_itself(self, here: Ground) -> None:
        make(here, "f", "a/b/")
        with pytest.raises(Invalid, match="are one file"):
            copy(here, "f", "f", overwrite=True)
        for target in ("a/c", "a/b/c"):
            with pytest.raises(Invalid, match="into itself"):
                copy(here, "a", target)

    def test_secrets_stay_behind_and_the_answer_says_so(self, here: Ground) -> None:
        make(here, ".aws/credentials", ".aws/config", "a/.env", "a/f")
        assert "without credentials" in copy(here, ".aws", "aws").text()
        assert "without .env" in copy(here, "a", "b").text()
        assert os.listdir(here.root / "aws") == ["config"]
        assert os.listdir(here.root / "b") == ["f"]

    @pytest.mark.parametrize("path", ["pipe", "out/secret.txt", ".env", "out/x"])
    def test_what_can_not_be_read_is_not_copied(self, here: Ground, path: str) -> None:
        make(here, ".env")
        fifo(here.root / "pipe")
        (here.root / "out").symlink_to(here.outside)
        with pytest.raises(Refused):
            copy(here, path, "copy")
        assert not (here.root / "copy").exists()

    def test_a_copy_that_is_stopped_leaves_nothing(self, here: Ground) -> None:
        make(here, *(f"a/{number}" for number in range(50)))

        class After25(CancelToken):
            checks = 0

            def check(self) -> None:
                self.checks += 1
                if self.checks > 25:
                    raise WorkCancelled

        with pytest.raises(WorkCancelled):
            copying.copy_entry(here.readable("a"), here.writable("b"), overwrite=False, cancel=After25())
        assert os.listdir(here.root) == ["a"]

    def test_too_much_at_once(self, here: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tree_size, "MAX_ENTRIES", 5)
        make(here, *(f"a/{number}" for number in range(6)))
        with pytest.raises(TooLarge, match="more than 5 entries"):
            copy(here, "a", "b")
        assert len(all_of(here)) == 6
        delete(here, "a", recursive=True)  # of any number
        assert all_of(here) == {}


class TestDelete:
    def test_a_file_an_empty_folder_a_link(self, here: Ground) -> None:
        make(here, "f", "a/", "kept/x")
        (here.root / "l").symlink_to("kept")
        for path in ("f", "a", "l"):
            assert delete(here, path).text() == f"deleted {path}"
        assert all_of(here) == {"kept/x": "kept/x"}

    def test_a_full_folder_only_when_told(self, here: Ground) -> None:
        make(here, "a/b/f", "a/g")
        (here.root / "a/l").symlink_to(here.outside)
        with pytest.raises(Conflict, match=r"`a` is a folder that is not empty. Set `recursive`"):
            delete(here, "a")
        assert delete(here, "a", recursive=True).text() == "deleted a, with 4 entries"
        assert os.listdir(here.root) == []

    def test_never_outside(self, here: Ground) -> None:
        (here.root / "out").symlink_to(here.outside)
        with pytest.raises(Refused, match="leads outside"):
            delete(here, "out/secret.txt")
        delete(here, "out", recursive=True)

    @pytest.mark.parametrize("path", [".", "", "a/.."])
    def test_the_served_folder_stays(self, here: Ground, path: str) -> None:
        with pytest.raises(Refused, match="served folder itself"):
            delete(here, path, recursive=True)

    def test_secrets_stay(self, here: Ground) -> None:
        make(here, "a/.ssh/id", "a/f", ".npmrc")
        for path in ("a", ".npmrc"):
            with pytest.raises(Refused, match="protected"):
                delete(here, path, recursive=True)
        assert set(all_of(here)) == {"a/.ssh/id", "a/f", ".npmrc"}

    def test_a_protected_file_does_not_keep_its_folder(self, here: Ground) -> None:
        make(here, "node_modules/a/cert.pem", "node_modules/b/.npmrc", "node_modules/b/index.js")
        answer = delete(here, "node_modules", recursive=True)
        assert answer.text() == "deleted node_modules, with 5 entries, 2 of them protected"
        assert all_of(here) == {}

    def test_what_is_missing(self, here: Ground) -> None:
        with pytest.raises(NotFound):
            delete(here, "f")

    def test_what_was_moved_meanwhile_goes_to_the_trash_another_time(
        self, here: Ground, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        trashed: list[str] = []
        monkeypatch.setitem(sys.modules, "send2trash", SimpleNamespace(send2trash=trashed.append))
        (here.root / "a").write_text("a")
        (here.root / "b").write_text("another")
        with monkeypatch.context() as swapped:
            swapped.setattr(deleting, "to_system_path", lambda path: path.removesuffix("a") + "b")
            with pytest.raises(Conflict, match=r"is being moved by somebody else\. Try again in a moment"):
                delete(here, "a", trash=True)
        assert trashed == []
        delete(here, "a", trash=True)
        assert trashed == [str(here.root / "a")]

    def test_to_the_trash(self, here: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
        trashed: list[str] = []

        def send2trash(path: str) -> None:
            trashed.append(path)
            os.rename(path, here.root / "bin")

        monkeypatch.setitem(sys.modules, "send2trash", SimpleNamespace(send2trash=send2trash))
        make(here, "a/f")
        with pytest.raises(Conflict):
            delete(here, "a", trash=True)
        assert delete(here, "a", recursive=True, trash=True).text() == "moved to the trash: a, with 1 entry"
        assert trashed == [os.path.realpath(here.root / "a")]
        assert all_of(here) == {"bin/f": "a/f"}

    def test_no_trash(self, here: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
        def send2trash(path: str) -> None:
            raise OSError(f"no trash for {path}")

        monkeypatch.setitem(sys.modules, "send2trash", SimpleNamespace(send2trash=send2trash))
        make(here, "f")
        with pytest.raises(Unavailable, match="`f` can't be put into the trash") as problem:
            delete(here, "f", trash=True)
        assert str(here.root) not in str(problem.value)
        assert (here.root / "f").exists()


async def test_the_tools(here: Ground) -> None:
    tools = Tools(here.policy)
    await tools.create_directory("a/b")
    await tools.write_file("a/f", "text")
    await tools.copy_file({"a/f": "a/b/g"})
    await tools.move_file({"a/b": "c"})
    await tools.delete_file(["a"], recursive=True)
    assert all_of(here) == {"c/g": "text"}


async def test_a_read_only_server_changes_nothing_even_if_asked(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")
    policy = Policy(Told((str(tmp_path),), read_only=True))
    tools = Tools(policy)
    for call in (
        tools.write_file("g", ""),
        tools.edit_file("f", []),
        tools.edit_files("--- a/f\n+++ b/f\n@@ -0,0 +1 @@\n+x\n"),
        tools.create_directory("a"),
        tools.copy_file({"f": "g"}),
        tools.move_file({"f": "g"}),
        tools.delete_file(["f"]),
    ):
        with pytest.raises(Refused, match="read-only"):
            await call
    assert os.listdir(tmp_path) == ["f"]


@pytest.mark.parametrize("why", ["mode", "owner"])
@pytest.mark.parametrize("how", ["write", "edit", "patch", "patch away", "copy", "move"])
async def test_a_read_only_file_is_not_replaced(
    here: Ground, monkeypatch: pytest.MonkeyPatch, why: str, how: str
) -> None:
    (here.root / "f").write_text("old\n")
    (here.root / "g").write_text("new\n")
    if why == "mode":
        (here.root / "f").chmod(0o444)
    else:  # somebody else's in a folder that may be written: the kernel is asked, which refuses root nothing
        monkeypatch.setattr(targets, "_may_write", lambda spot: spot.name != "f")
    tools = Tools(here.policy)
    calls = {
        "write": lambda: tools.write_file("f", "new", overwrite=True),
        "edit": lambda: tools.edit_file("f", [Edit(old_text="old", new_text="new")]),
        "patch": lambda: tools.edit_files("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-old\n+new\n"),
        "patch away": lambda: tools.edit_files("--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-old\n"),
        "copy": lambda: tools.copy_file({"g": "f"}, overwrite=True),
        "move": lambda: tools.move_file({"g": "f"}, overwrite=True),
    }
    with pytest.raises(Refused, match=r"`f` is read-only \(-r.*another name"):
        await calls[how]()
    assert all_of(here) == {"f": "old\n", "g": "new\n"}


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="needs two users")
def test_the_kernel_is_asked_whether_somebody_elses_file_may_be_written(here: Ground) -> None:
    (here.root / "f").write_text("root's")
    with path_opening.resolve(here.writable("f")) as spot:
        assert targets._may_write(spot)
        child = os.fork()
        if child == 0:
            os.setresuid(65534, 65534, 65534)
            os._exit(targets._may_write(spot))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("folder", [False, True])
async def test_a_source_that_can_not_be_read_is_blamed_not_the_target(
    here: Ground, monkeypatch: pytest.MonkeyPatch, folder: bool
) -> None:
    make(here, "a/f")
    real = os.read
    monkeypatch.setattr(entry_copy, "open_regular", _denied)
    with pytest.raises(Refused, match=r"on `a/f`: Permission denied"):
        copying.copy_entry(here.readable("a" if folder else "a/f"), here.writable("b"), overwrite=False, cancel=stop())
    monkeypatch.undo()
    inode = (here.root / "a/f").stat().st_ino

    def failing(fd: int, size: int) -> bytes:
        if os.fstat(fd).st_ino == inode:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(fd, size)

    monkeypatch.setattr(os, "read", failing)
    with pytest.raises(Unavailable, match="`a/f` failed: Input/output error"):
        copying.copy_entry(here.readable("a" if folder else "a/f"), here.writable("b"), overwrite=False, cancel=stop())
    assert not (here.root / "b").exists()


def _denied(*_: object) -> None:
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


SLIPS = {
    r"src\new": "`src/new`",
    r".\src\new": "`src/new`",
    " src/new": "`src/new`",
    "src/new ": "`src/new`",
    "src/new\n": "`src/new`",
    "src/new\r\n": "`src/new`",
    '"src/new"': "`src/new`",
    "`src/new`": "`src/new`",
    "'src/new'": "`src/new`",
    "src/a\tb": "the path below",
    "~/new": "the path below",
    "$HOME/new": "the path below",
    "${workspaceFolder}/src/new": "the path below",
    r"%USERPROFILE%\new": "the path below",
    r"C:\Users\me\new": "the path below",
    "C:/Users/me/new": "the path below",
}


@pytest.mark.skipif(sys.platform == "win32", reason="such names are none there")
@pytest.mark.anyio
@pytest.mark.parametrize("path", SLIPS)
async def test_a_slip_makes_no_name_unless_it_is_there_or_spelt_out(here: Ground, path: str) -> None:
    """A path of another system, or with what stood around it, would be a new file in a place that nobody looks at."""
    tools = Tools(here.policy)
    (here.root / "src").mkdir()
    (here.root / "f").write_text("f")
    before = sorted(here.root.rglob("*"))
    patch = f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n"
    makers: list[tuple[str, dict[str, Any]]] = [
        ("write_file", {"path": path, "content": "x"}),
        ("write_file", {"path": path, "content": "x", "append": True}),
        ("create_directory", {"path": path}),
        ("copy_file", {"targets": {"f": path}}),
        ("move_file", {"targets": {"f": path}}),
    ]
    if path.isprintable() and path[0] != '"':  # the header of a patch ends before, or quotes
        makers.append(("edit_files", {"patch": patch}))
    for name, arguments in makers:
        with pytest.raises(Invalid, match="would make a name with") as caught:
            await getattr(tools, name)(**arguments)
        assert SLIPS[path] in caught.value.fix
        assert sorted(here.root.rglob("*")) == before
    uri = here.writable(path).uri
    await tools.write_file(uri, "meant")
    assert here.readable(path) == here.readable(uri)
    await tools.write_file(path, "and changed", append=True)
    assert [file.read_text() for file in here.root.rglob("*") if file.is_file()].count("meant\nand changed") == 1
