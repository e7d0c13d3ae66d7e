"""Tasks of MCPMark on folders."""

import shutil
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from beside_shell import Place

from blind.mcpmark import Variables, data_folder, find_tasks, name_of, read_text, verify_with
from blind.task import Task


def shell_hint() -> str:
    """Return what an agent with a shell is told beside the task."""
    return "The shell has grep, find, sed and python3 with its standard library."


def _data_of(task: Path) -> Path:
    return data_folder() / "files" / task.parent.name


def _make(task: Path, folder: Path) -> Place:
    served = folder / task.parent.name
    shutil.copytree(_data_of(task), served)
    return Place(
        served, {"fs": [sys.executable, "-m", "mcp_fs", str(served)]}, {"XDG_STATE_HOME": str(folder / "state")}
    )


def _variables(place: Place) -> Variables:
    return {"FILESYSTEM_TEST_DIR": str(place.folder)}


TASKS: Sequence[Task] = [
    Task(name_of(task), read_text(task), partial(_make, task), verify_with(task, _variables))
    for task in find_tasks("filesystem")
    if _data_of(task).is_dir()
]
