"""Check what you changed, in under a minute: format, lint, types of the changed files, the quick tests of their rooms.

`just quick` compares with the main branch; `just quick REVISION` with another. It needs nothing but uv. It ends with 0
if nothing failed in that minute; what was left out is said, with the command that runs it.
"""

import shlex
import shutil
import subprocess
import sys
import time
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


def main(revision: str) -> int:
    ends = time.monotonic() + SECONDS
    files = changed(revision)
    python = [name for name in files if name.endswith(".py") and (ROOT / name).exists()]
    print(f"{len(files)} files differ from {revision}.", flush=True)
    checks = [["ruff", "format", "--check", *python], ["ruff", "check", *python]] if python else []
    if typed := [name for name in python if not name.startswith(("tests/", "docker/"))]:
        checks.append(["pyright", *typed])
    failed = [command[0] for command in checks if run(command, ends)]
    own = [name for name in python if Path(name).name.startswith("test_") and not name.startswith("tests/house/")]
    rooms = [
        room
        for member, rooms in TESTS.items()
        if any(name.startswith(f"{member}/") for name in files)
        for room in rooms
    ]
    for tests, marked in ((own, "not (debian or slow or weekly)"), (rooms, QUICK)):
        if tests and not failed:
            failed += ["pytest"] if run(["pytest", "-q", "-x", "-m", marked, *tests], ends) else []
    print(f"Failed: {', '.join(failed)}." if failed else "Nothing failed. `just test` runs everything.")
    return 1 if failed else 0


def changed(revision: str) -> list[str]:
    """The files that differ from `revision`, new ones included."""
    git = shutil.which("git") or "git"
    commands = (["diff", "--name-only", "--merge-base", revision], ["ls-files", "--others", "--exclude-standard"])
    said = [
        subprocess.run([git, *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout for words in commands
    ]
    return sorted({line for text in said for line in text.splitlines()})


def run(command: list[str], ends: float) -> bool:
    """Whether `command` fails before the minute is over."""
    program = shutil.which(command[0], path=str(Path(sys.executable).parent)) or command[0]
    print("$", " ".join(command[:6]), "..." if len(command) > 6 else "", flush=True)
    with subprocess.Popen([program, *command[1:]], cwd=ROOT) as process:
        try:
            return process.wait(max(1.0, ends - time.monotonic())) not in (0, 5)  # 5: pytest found no test.
        except subprocess.TimeoutExpired:
            process.terminate()
            print(f"The minute is over; the rest: uv run {shlex.join(command)}")
            return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "main"))
