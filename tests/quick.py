"""Check what you changed, in under a minute: format, lint, types of the changed files, the quick tests of their rooms.

`just quick` compares with the main branch; `just quick REVISION` with another. It needs nothing but uv. It ends with 0
if all of that passed in that minute; what was not finished is said, with the command that runs it.
"""

import shlex
import shutil
import subprocess
import sys
import time
from enum import Enum
from pathlib import Path

ROOT = Path(__file__).parents[1]
SECONDS = 55.0
TESTS = {
    "servers/filesystem": ["tests/filesystem"],
    "servers/git": ["tests/git_server"],
    "servers/github": ["tests/github_server"],
    "servers/postgres": ["tests/postgres"],
    "servers/sqlite": ["tests/sqlite"],
    "servers/weather": ["tests/weather"],
    "shared": ["tests/shared"],
    "examples": ["tests/contract"],
}
"""The tests of each member; a changed test file is run itself, before the others."""
QUICK = "not (process or postgres or browser or house or debian or slow or weekly)"
NO_TEST_FOUND = 5
"""pytest's exit code."""
SNAPSHOTS = "tests/house/test_documents.py::test_readme_and_snapshot_are_current"
NAMES = "tests/contract/test_contract.py::test_tool_names_are_verb_noun_and_short"
"""What an edit of a tool's name or words breaks first."""


class Result(Enum):
    PASSED = "passed"
    FAILED = "failed"
    NOT_FINISHED = "not finished"


def main(revision: str) -> int:
    ends = time.monotonic() + SECONDS
    files = changed(revision)
    print(f"{len(files)} files differ from {revision}.", flush=True)
    results: list[tuple[list[str], Result]] = []
    for command in commands(files):
        is_test = command[0] == "pytest"
        if is_test and any(result is Result.FAILED for _, result in results):
            break
        results.append((command, run(command, ends)))
    failed = [shlex.join(command[:6]) for command, result in results if result is Result.FAILED]
    unfinished = [shlex.join(command) for command, result in results if result is Result.NOT_FINISHED]
    for command in unfinished:
        print(f"Not finished: uv run {command}")
    if failed:
        print(f"Failed: {', '.join(failed)}.")
    elif not unfinished:
        print("Nothing failed. `just test` runs everything.")
    return 1 if failed or unfinished else 0


def commands(files: list[str]) -> list[list[str]]:
    """The checks that concern these files, the fastest first."""
    python = [name for name in files if name.endswith(".py") and (ROOT / name).exists()]
    checks: list[list[str]] = []
    if python:
        checks += [["ruff", "format", "--check", *python], ["ruff", "check", *python]]
    if typed := [name for name in python if not name.startswith(("tests/", "docker/"))]:
        checks.append(["pyright", *typed])
    members = [member for member in TESTS if any(name.startswith(f"{member}/") for name in files)]
    for member in members:
        folder = ROOT / member
        if folder.parent.name == "servers":
            [package] = folder.glob("src/mcp_*")
            checks.append(["pytest", "-q", "-n0", f"{SNAPSHOTS}[{folder.name}]", f"{NAMES}[{package.name}]"])
    own = [name for name in python if Path(name).name.startswith("test_") and not name.startswith("tests/house/")]
    if own:
        checks.append(["pytest", "-q", "-x", "-m", "not (debian or slow or weekly)", *own])
    if rooms := [room for member in members for room in TESTS[member]]:
        checks.append(["pytest", "-q", "-x", "-m", QUICK, *rooms])
    return checks


def changed(revision: str) -> list[str]:
    """The files that differ from `revision`, new ones included."""
    git = shutil.which("git") or "git"
    questions = (["diff", "--name-only", "--merge-base", revision], ["ls-files", "--others", "--exclude-standard"])
    said = [
        subprocess.run([git, *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for words in questions
    ]
    return sorted({line for text in said for line in text.splitlines()})


def run(command: list[str], ends: float) -> Result:
    """Run `command` until the minute is over."""
    program = shutil.which(command[0], path=str(Path(sys.executable).parent)) or command[0]
    print("$", " ".join(command[:6]), "..." if len(command) > 6 else "", flush=True)
    with subprocess.Popen([program, *command[1:]], cwd=ROOT) as process:
        try:
            status = process.wait(max(1.0, ends - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.terminate()
            return Result.NOT_FINISHED
    return Result.PASSED if status in (0, NO_TEST_FOUND) else Result.FAILED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "main"))
