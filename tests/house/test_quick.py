"""`just quick` tries what an edit breaks first, and never says that all is well when it is not."""

import sys
import time

import pytest

import quick


def test_an_edit_of_a_server_meets_its_snapshot_and_the_closed_list_of_verbs_first() -> None:
    commands = quick.commands(["servers/git/src/mcp_git/tools/write.py"])
    tests = next(command for command in commands if command[0] == "pytest")
    assert tests[-2:] == [f"{quick.SNAPSHOTS}[git]", f"{quick.NAMES}[mcp_git]"]


def test_a_check_that_is_not_finished_is_told_and_is_no_success(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    endless = [sys.executable, "-c", "import threading; threading.Event().wait()"]
    assert quick.run(endless, time.monotonic()) is quick.Result.NOT_FINISHED

    def changed(revision: str) -> list[str]:
        return ["servers/git/README.md"]

    def run(command: list[str], ends: float) -> quick.Result:
        return quick.Result.NOT_FINISHED

    monkeypatch.setattr(quick, "changed", changed)
    monkeypatch.setattr(quick, "run", run)
    assert quick.main("main") == 1
    said = capsys.readouterr().out
    assert "Not finished: uv run pytest" in said and "Nothing failed" not in said
