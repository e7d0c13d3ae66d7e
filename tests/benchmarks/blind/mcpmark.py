"""Tasks of MCPMark (github.com/eval-sys/mcpmark) with its own verifiers, over a checkout of it that is not ours.

`MCPMARK` names the checkout; `MCPMARK_DATA` a folder with what it downloads, as far as you have it: `files/CATEGORY/`
and `databases/CATEGORY.sql`; `MCPMARK_PYTHON` an interpreter with psycopg2, which its scripts for databases need.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from beside_shell import Place

Variables = Mapping[str, str]
_MOST_FAULTS = 8


def data_folder() -> Path:
    """Return the folder with the data of the tasks."""
    return Path(os.environ["MCPMARK_DATA"])


def find_tasks(service: str) -> Iterator[Path]:
    """Yield the folders of all standard tasks of a service, each with `description.md` and `verify.py`."""
    for path in sorted((Path(os.environ["MCPMARK"]) / "tasks" / service / "standard").glob("*/*/verify.py")):
        yield path.parent


def name_of(task: Path) -> str:
    """Return a task's name, its category before a slash."""
    return f"{task.parent.name}/{task.name}"


def read_text(task: Path) -> str:
    """Return what an agent is told, without the words that name a kind of tools."""
    text = (task / "description.md").read_text("utf-8")
    return text.replace("FileSystem tools", "your tools").replace("using filesystem MCP tools", "")


def run_script(script: Path, variables: Variables) -> subprocess.CompletedProcess[str]:
    """Run a script of MCPMark."""
    python = os.environ.get("MCPMARK_PYTHON", sys.executable)
    return subprocess.run([python, str(script)], env={**os.environ, **variables}, capture_output=True, text=True)


def verify_with(task: Path, variables: Callable[[Place], Variables]) -> Callable[[Place, str], Sequence[str]]:
    """Return the verifier that runs the task's own."""

    def verify(place: Place, answer: str) -> Sequence[str]:
        done = run_script(task / "verify.py", variables(place))
        if done.returncode == 0:
            return []
        return (done.stdout + done.stderr).splitlines()[-_MOST_FAULTS:] or ["the verifier failed"]

    return verify
