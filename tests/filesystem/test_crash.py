"""Whatever operation of a change fails or is the last before a crash: files are whole and the answer is true."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

if sys.platform == "win32":
    pytest.skip("forks", allow_module_level=True)

from filesystem.crashes import WRITES, draw_scenarios, list_scenarios
from thinning import few, some

_HERE = Path(__file__).parent


def reported(folder: Path, *words: str) -> dict[str, dict[str, Any]]:
    command = [sys.executable, "-m", "filesystem.crashes", str(folder), *words]
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(_HERE.parent)]))
    run = subprocess.run(
        command, cwd=_HERE.parent, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr[-2000:]
    return {report["scenario"]: report for report in map(json.loads, run.stdout.splitlines())}


@pytest.fixture(scope="module")
def reports(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The reports of the scenarios that this run asks for."""
    tests = [item for item in request.session.items if isinstance(item, pytest.Function) and item.path == request.path]
    names = {item.callspec.params["scenario"] for item in tests if "scenario" in item.fixturenames}
    return reported(tmp_path_factory.mktemp("crash"), *sorted(map(str, names)))


@pytest.mark.weekly
def test_every_fault_of_every_change_that_is_written_down_or_taken_back(tmp_path: Path) -> None:
    reports = reported(tmp_path)
    assert len(reports) == 5 * len([name for name in reports if "," not in name]) > 50
    assert {name: report["wrong"] for name, report in reports.items() if report["wrong"]} == {}


def test_a_share_of_the_proof_is_a_share_of_its_scenarios() -> None:
    every = list(list_scenarios())
    assert sorted(draw_scenarios(1, 1)) == sorted(every)
    assert len(set(draw_scenarios(0.1, 1))) == round(len(every) / 10)
    assert draw_scenarios(0.1, 1) != draw_scenarios(0.1, 2)
    assert len(draw_scenarios(0.001, 1)) == 1


# One of each kind of change; all of them every week, above.
SCENARIOS = [
    "create",
    "unzip",
    "edit",
    "patch",
    "copy over",
    "move across",
    "delete folder",
    "edit, taken back",
    "delete folder, taken back",
    "delete folder, taken back, far",
]


@pytest.mark.parametrize("scenario", few(SCENARIOS, "edit", "copy over", "delete folder, taken back"))
def test_every_fault_leaves_files_whole_and_the_answer_true(reports: dict[str, dict[str, Any]], scenario: str) -> None:
    report = reports[scenario]
    assert report["wrong"] == []
    written = sum(operation.startswith(WRITES) for operation in report["log"])
    # Killed, EIO, ENOSPC, nothing works any more; half written and killed, half written and EIO.
    assert report["tried"] == 4 * len(report["log"]) + 2 * written > 0


@pytest.mark.parametrize(
    "scenario", [*few(["create", "edit", "copy over"], "edit", "copy over"), *some(["overwrite", "append"])]
)
def test_the_file_is_durable_before_the_rename_and_the_folder_after(
    reports: dict[str, dict[str, Any]], scenario: str
) -> None:
    log = [entry.split()[0] for entry in reports[scenario]["log"]]
    rename = max(index for index, name in enumerate(log) if name.startswith("rename"))
    assert max(index for index, name in enumerate(log) if name in WRITES) < log.index("fsync") < rename
    assert "fsync" in log[rename:]
