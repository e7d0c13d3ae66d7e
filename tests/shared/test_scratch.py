"""Private folders go with their process, and with the next one where it was killed."""

import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from mcp_batteries import scratch
from mcp_batteries.scratch import Scratch

_PROCESS = """
import sys
from mcp_batteries.scratch import Scratch
made = Scratch("mcp-toy")
open(made.new(".db"), "w").close()
print(made.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files lie, and nobody gets time to be unsure."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(scratch, "_UNSURE_SECONDS", -1.0)
    return tmp_path


def another(parent: Path) -> tuple[subprocess.Popen[str], Path]:
    """Another process with a private folder, and where that is."""
    environment = {**os.environ, "TMPDIR": str(parent), "TEMP": str(parent)}
    process = subprocess.Popen(
        [sys.executable, "-c", _PROCESS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().rstrip("\n"))


def cleaned(made: Scratch) -> set[str]:
    """The names beside a new folder, once the leftovers went."""
    path = Path(made.path)
    for thread in threading.enumerate():
        if thread.name == "leftovers":
            thread.join(20)
    return {entry.name for entry in path.parent.iterdir()} - {path.name}


def ended(process: subprocess.Popen[str], *, kill: bool) -> None:
    if kill:
        process.kill()
    process.communicate(timeout=20)


def test_a_process_that_ends_takes_its_folder_away(parent: Path) -> None:
    process, folder = another(parent)
    assert folder.parent == parent.resolve() and len(list(folder.glob("*.db"))) == 1
    ended(process, kill=False)
    assert not folder.exists()


def test_the_next_one_takes_away_what_a_killed_one_has_left(parent: Path) -> None:
    killed, left = another(parent)
    running, kept = another(parent)
    ended(killed, kill=True)
    assert left.exists()
    assert cleaned(Scratch("mcp-toy")) == {kept.name}
    ended(running, kill=False)


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_what_is_no_folder_of_ours_stays(parent: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    others = tmp_path_factory.mktemp("others")
    (others / "kept").write_text("x")
    begins = f"mcp-toy-held-{scratch._machine()}-"
    (parent / f"{begins}link").symlink_to(others)
    (parent / f"{begins}file").write_text("x")
    (parent / "mcp-toys").mkdir()
    assert cleaned(Scratch("mcp-toy")) == {f"{begins}link", f"{begins}file", "mcp-toys"}
    assert (others / "kept").exists()


def test_a_folder_that_has_only_been_made_stays(parent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between its making and its holding it looks like a leftover."""
    monkeypatch.setattr(scratch, "_UNSURE_SECONDS", 60.0)
    new = f"mcp-toy-held-{scratch._machine()}-new"
    (parent / new).mkdir()
    assert cleaned(Scratch("mcp-toy")) == {new}


def test_what_another_machine_holds_stays(parent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its locks may not be seen here, where both share a file system."""
    running, kept = another(parent)
    monkeypatch.setattr(scratch, "_is_held", lambda path: False)
    monkeypatch.setattr(scratch, "_machine", lambda: "another")
    assert cleaned(Scratch("mcp-toy")) == {kept.name}
    monkeypatch.undo()
    ended(running, kill=False)


def test_the_error_names_what_was_tried_where_nothing_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", os.path.join(os.getcwd(), "not there"))
    monkeypatch.setattr(scratch, "_MEMORY", os.path.join(os.getcwd(), "neither"))
    with pytest.raises(OSError, match="not there"):
        _ = Scratch("mcp-toy").path


def test_another_folder_is_made_when_the_old_one_went(parent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "_UNSURE_SECONDS", 60.0)  # or the first one's cleaning may meet the second
    made = Scratch("mcp-toy")
    first = made.path
    made.renew()
    assert made.path != first and os.path.isdir(made.path)
