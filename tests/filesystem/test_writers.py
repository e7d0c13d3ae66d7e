"""Several server processes at work on one file, and what they are told when they can't be."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from filesystem.places import Ground, Told, delete, ground, stop
from mcp_batteries.errors import Conflict, Invalid, Refused, Unavailable
from mcp_fs.engine.changing import file_edits
from mcp_fs.engine.changing.entries import copying, moving
from mcp_fs.engine.changing.file_edits import FileChange, change_files
from mcp_fs.engine.changing.targets import read_regular_status
from mcp_fs.engine.changing.writing import write_file
from mcp_fs.engine.handles import locks
from mcp_fs.engine.handles.path_opening import ResolvedPath, resolve
from mcp_fs.engine.journal.states import hash_content, read_state
from mcp_fs.engine.text.edit import Replacement, apply_replacements
from mcp_fs.policy import Policy, ReadablePath, WritablePath

ADDER = """
import sys
from functools import partial
from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_fs.engine.text.edit import Replacement, apply_replacements
from mcp_fs.engine.changing.file_edits import FileChange, change_files
from mcp_fs.policy import Policy
from filesystem.places import Told

root, me, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
place = Policy(Told((root,))).writable("log")
print("ready", flush=True)
sys.stdin.readline()
for number in range(count):
    add = [Replacement("END", f"{me}{number}\\nEND")]
    revise = partial(apply_replacements, replacements=add, label="log", cancel=CancelToken())
    change_files([FileChange(place, revise)], dry_run=False, cancel=CancelToken())
"""


@pytest.fixture
def here(tmp_path: Path) -> Ground:
    return ground(tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a file that is open for writing can't be replaced there")
def test_edits_of_several_processes_all_arrive(here: Ground) -> None:
    (here.root / "log").write_text("END")
    command = [sys.executable, "-c", ADDER, str(here.root)]
    tests = str(Path(__file__).parents[1])
    adders = [
        subprocess.Popen(
            [*command, name, "30"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"PYTHONPATH": tests, "PATH": ""},
        )
        for name in "abc"
    ]
    for adder in adders:
        assert adder.stdout is not None and adder.stdout.readline() == "ready\n"
    for adder in adders:
        assert adder.stdin is not None
        adder.stdin.write("go\n")
        adder.stdin.flush()
    for adder in adders:
        adder.communicate(timeout=60)
        assert adder.returncode == 0
    lines = (here.root / "log").read_text().split("\n")
    assert sorted(lines) == sorted([*(f"{name}{number}" for name in "abc" for number in range(30)), "END"])
    assert here.temporary() == []


@pytest.mark.skipif(sys.platform == "win32", reason="flock(2)")
def test_a_file_locked_by_another_program_is_told(here: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    from fcntl import LOCK_EX, flock

    monkeypatch.setattr(locks, "_MAX_WAIT_SECONDS", 0.05)
    (here.root / "f").write_text("old")
    with (here.root / "f").open() as held:
        flock(held, LOCK_EX)
        with pytest.raises(Unavailable, match="Another program holds a lock on `f`"):
            write_file(here.writable("f"), "new", overwrite=True, cancel=stop())
        assert (here.root / "f").read_text() == "old"
    write_file(here.writable("f"), "new", overwrite=True, cancel=stop())
    assert (here.root / "f").read_text() == "new"


def test_hard_links_in_one_call_do_not_wait_for_each_other(here: Ground) -> None:
    (here.root / "f").write_text("old")
    (here.root / "g").hardlink_to(here.root / "f")
    with (
        resolve(here.writable("f")) as one,
        resolve(here.writable("g")) as other,
        locks.lock_names([one, other], stop()),
    ):
        pass


@pytest.mark.skipif(sys.platform == "win32", reason="flock(2)")
def test_what_is_held_stands_at_its_name(here: Ground) -> None:
    """Also when another took its place after the way to it was found."""
    for name in "fgh":
        (here.root / name).write_text(name)
    with resolve(here.writable("f")) as spot:
        assert spot.status is not None
        (here.root / "g").replace(here.root / "f")
        with locks.lock_names([spot], stop()) as held:
            assert os.pread(held[spot].fd, 9, 0) == b"g"
            assert os.path.samestat(held[spot].status, os.fstat(held[spot].fd))
    os.mkfifo(here.root / "i")
    with resolve(here.writable("i")) as spot:
        (here.root / "h").replace(here.root / "i")
        with locks.lock_names([spot], stop()) as held:
            assert os.pread(held[spot].fd, 9, 0) == b"h"
    with resolve(here.writable("f")) as spot:
        (here.root / "f").unlink()
        with locks.lock_names([spot], stop()) as held:
            assert held == {}


@pytest.mark.skipif(sys.platform == "win32", reason="flock(2)")
def test_a_file_that_takes_the_place_of_one_that_is_held_is_told_apart(
    here: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here.root / "f").write_text("old")

    def replaced(
        spot: ResolvedPath[WritablePath], place: ReadablePath, held: locks.LockedFile | None = None
    ) -> os.stat_result | None:
        found = read_regular_status(spot, place, held)
        (here.root / "g").write_text("new")
        (here.root / "g").replace(here.root / "f")
        return found

    with resolve(here.writable("f")) as spot, locks.lock_names([spot], stop()) as held:
        replaced(spot, here.writable("f"))
        fd, folder = held[spot].fd, spot.folder
        there = read_state(folder, "f", thorough=True)
        assert there is not None and there == read_state(folder, "f", thorough=True, fd=fd)
        assert there.fingerprint == hash_content(b"new")
    monkeypatch.setattr(file_edits, "read_regular_status", replaced)
    with pytest.raises(Conflict, match="changed by somebody else"):
        change_files([FileChange(here.writable("f"), lambda text: f"{text}er")], dry_run=False, cancel=stop())
    assert (here.root / "f").read_text() == "new"
    assert here.temporary() == []


def test_a_folder_that_holds_a_served_one_stays(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    policy = Policy(Told((str(tmp_path), str(inner))))
    for path in (f"{tmp_path.name}/a", f"{tmp_path.name}/a/b"):
        with pytest.raises(Refused, match="served folder"):
            delete(policy.writable(path), recursive=True)
        with pytest.raises(Refused, match="served folder"):
            moving.move_entry(
                policy.writable(path), policy.writable(f"{tmp_path.name}/c"), overwrite=False, cancel=stop()
            )
    assert inner.is_dir()


def test_the_next_step_is_one_the_tool_can_take(here: Ground) -> None:
    (here.root / "f").write_text("f")
    (here.root / "g").write_text("g")
    (here.root / "full").mkdir()
    (here.root / "full" / "x").write_text("x")
    with pytest.raises(Conflict, match="Set `overwrite`"):
        copying.copy_entry(here.readable("f"), here.writable("g"), overwrite=False, cancel=stop())
    (here.root / "other").mkdir()
    with pytest.raises(Conflict, match="Write `full/` to put it in there"):
        copying.copy_entry(here.readable("other"), here.writable("full"), overwrite=True, cancel=stop())
    with pytest.raises(Invalid, match="`full` and `full` are one folder; nothing was copied"):
        copying.copy_entry(here.readable("full"), here.writable("full"), overwrite=True, cancel=stop())
    with pytest.raises(Conflict, match="`f` is a file; nothing can be made below it"):
        write_file(here.writable("f/new"), "", overwrite=False, cancel=stop())


def test_a_dry_run_does_not_sound_done(here: Ground) -> None:
    (here.root / "f").write_text("old")
    edit = [Replacement("old", "new")]
    change = FileChange(here.writable("f"), lambda text: apply_replacements(text, edit, "`f`", stop()))
    said = change_files([change], dry_run=True, cancel=stop()).text()
    assert "would be edited: f\n" in said
    assert "\nedited" not in said
