"""Several server processes at work on one file, and what they are told when they can't be."""

import subprocess
import sys
from pathlib import Path

import pytest

from filesystem.places import Ground, Told, ground, stop
from mcp_batteries.errors import Conflict, Invalid, Refused, Unavailable
from mcp_fs.engine.files import copying, locks, tree
from mcp_fs.engine.files.edit import Replacement, replace
from mcp_fs.engine.files.handles import resolve
from mcp_fs.engine.files.transaction import Change, change_files
from mcp_fs.engine.files.write import write_file
from mcp_fs.policy import Policy

ADDER = """
import sys
from functools import partial
from mcp_batteries.limits import Stop
from mcp_fs.engine.files.edit import Replacement, replace
from mcp_fs.engine.files.transaction import Change, change_files
from mcp_fs.policy import Policy
from filesystem.places import Told

root, me, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
place = Policy(Told((root,))).writable("log")
print("ready", flush=True)
sys.stdin.readline()
for number in range(count):
    add = [Replacement("END", f"{me}{number}\\nEND")]
    revise = partial(replace, replacements=add, shown="log", stop=Stop())
    change_files([Change(place, revise)], dry_run=False, stop=Stop())
"""


@pytest.fixture
def here(tmp_path: Path) -> Ground:
    return ground(tmp_path)


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

    monkeypatch.setattr(locks, "_PATIENCE", 0.05)
    (here.root / "f").write_text("old")
    with (here.root / "f").open() as held:
        flock(held, LOCK_EX)
        with pytest.raises(Unavailable, match="Another program holds a lock on `f`"):
            write_file(here.writable("f"), "new", overwrite=True, stop=stop())
        assert (here.root / "f").read_text() == "old"
    write_file(here.writable("f"), "new", overwrite=True, stop=stop())
    assert (here.root / "f").read_text() == "new"


def test_hard_links_in_one_call_do_not_wait_for_each_other(here: Ground) -> None:
    (here.root / "f").write_text("old")
    (here.root / "g").hardlink_to(here.root / "f")
    with resolve(here.writable("f")) as one, resolve(here.writable("g")) as other, locks.locked([one, other], stop()):
        pass


def test_a_folder_that_holds_a_served_one_stays(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    policy = Policy(Told((str(tmp_path), str(inner))))
    for path in (f"{tmp_path.name}/a", f"{tmp_path.name}/a/b"):
        with pytest.raises(Refused, match="served folder"):
            tree.delete(policy.writable(path), recursive=True, trash=False, stop=stop())
        with pytest.raises(Refused, match="served folder"):
            tree.move(policy.writable(path), policy.writable(f"{tmp_path.name}/c"), overwrite=False, stop=stop())
    assert inner.is_dir()


def test_the_next_step_is_one_the_tool_can_take(here: Ground) -> None:
    (here.root / "f").write_text("f")
    (here.root / "g").write_text("g")
    (here.root / "full").mkdir()
    (here.root / "full" / "x").write_text("x")
    with pytest.raises(Conflict, match="Set `overwrite`"):
        copying.copy(here.readable("f"), here.writable("g"), overwrite=False, stop=stop())
    (here.root / "other").mkdir()
    with pytest.raises(Conflict, match="such as `full/NAME`"):
        copying.copy(here.readable("other"), here.writable("full"), overwrite=True, stop=stop())
    with pytest.raises(Invalid, match="`full` and `full` are one folder; nothing was copied"):
        copying.copy(here.readable("full"), here.writable("full"), overwrite=True, stop=stop())
    with pytest.raises(Conflict, match="`f` is a file; nothing can be made below it"):
        write_file(here.writable("f/new"), "", overwrite=False, stop=stop())


def test_a_dry_run_does_not_sound_done(here: Ground) -> None:
    (here.root / "f").write_text("old")
    edit = [Replacement("old", "new")]
    change = Change(here.writable("f"), lambda text: replace(text, edit, "`f`", stop()))
    said = change_files([change], dry_run=True, stop=stop()).text()
    assert "would be edited: f\n" in said
    assert "\nedited" not in said
