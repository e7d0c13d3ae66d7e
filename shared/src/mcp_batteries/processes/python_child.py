"""Commands that run a module of ours in a Python process of its own, which the kernel confines.

They are for reading what somebody else made: a document, a picture, a Parquet file. A file made to break its reader
then reaches nothing beyond what the reader was given. On Linux the process confines itself, after it has imported the
module and before the module reads anything; on macOS it starts inside the sandbox. Where a system has no sandbox, the
process still has no variables of this one, no folder and no search path that anybody else can write to.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from functools import cache

from mcp_batteries.executables import NO_WINDOW
from mcp_batteries.processes.confinement import Confinement, real_paths
from mcp_batteries.processes.program_files import DEVICES, LIBRARY_FILES
from mcp_batteries.processes.sandbox import NoSandbox, find_sandbox
from mcp_batteries.processes.seatbelt import Seatbelt

__all__ = ["FONT_FOLDERS", "child_environment", "python_command"]

# Isolated from the variables and the folder that a Python looks at, it finds what this one found.
_START_CODE = """\
import json, sys
start = json.loads(sys.argv.pop(1))
sys.path[:] = start.pop("search_path")
from mcp_batteries.processes.confined_main import run_confined
run_confined(**start)
"""
# What a system needs to start any program at all.
_ENVIRONMENT_NAMES = ("SYSTEMROOT", "PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMP", "TEMP")
# For what draws text in fonts that a document names and does not bring.
FONT_FOLDERS = ("/usr/share/fonts", "/usr/share/X11/fonts", "/usr/local/share/fonts", "/Library/Fonts")
_PROOF_SECONDS = 20


def python_command(
    module: str, arguments: Sequence[str] = (), *, readable: Iterable[str] = (), writable: Iterable[str] = ()
) -> list[str]:
    """Return the command that calls `main` of a module, with `arguments` in `sys.argv`.

    The process may read the files of Python and of the system's libraries. It executes no program and makes no socket.

    Args:
        readable: Files and folders that it may read besides.
        writable: Files and folders that it may read and change.
    """
    search_path = _search_path()
    readable_paths = real_paths([*_python_files(search_path), *readable])
    writable_paths = real_paths(writable)
    start = {
        "search_path": search_path,
        "module": module,
        "readable": sorted(readable_paths),
        "writable": sorted(writable_paths),
    }
    command = [sys.executable, "-I", "-c", _START_CODE, json.dumps(start), *arguments]
    if sys.platform == "darwin" and _can_use_seatbelt():
        return _in_seatbelt(command, readable_paths, writable_paths)
    return command


def child_environment() -> dict[str, str]:
    """Return the variables of such a process: what a system needs to start a program, and nothing of the operator's."""
    return {name: os.environ[name] for name in _ENVIRONMENT_NAMES if name in os.environ}


def _search_path() -> list[str]:
    """Return where modules are found, without the folder we were started in: hosts choose it, with anything in it."""
    try:
        current = os.getcwd()
    except OSError:
        current = ""
    return [path for path in sys.path if os.path.isabs(path) and path != current]


def _python_files(search_path: Iterable[str]) -> list[str]:
    paths = [*search_path, *LIBRARY_FILES, *DEVICES, sysconfig.get_path("stdlib")]
    for prefix in {sys.prefix, sys.base_prefix}:
        paths += [os.path.join(prefix, name) for name in ("pyvenv.cfg", "lib", "lib64")]
    return paths


def _in_seatbelt(command: Sequence[str], readable: frozenset[str], writable: frozenset[str]) -> list[str]:
    """Return the command that starts a Python inside the sandbox of macOS."""
    # A Python of a framework starts another program of the same installation.
    executable = real_paths([sys.executable, sys.base_prefix])
    return Seatbelt().wrap(Confinement(executable, readable, writable), command)


@cache
def _can_use_seatbelt() -> bool:
    """Return whether a Python starts inside the sandbox; nobody promises what each Python for macOS needs."""
    try:
        find_sandbox()
        proof = _in_seatbelt(
            [sys.executable, "-I", "-c", "import json, zlib"], real_paths(_python_files(())), real_paths(())
        )
        done = subprocess.run(proof, capture_output=True, timeout=_PROOF_SECONDS, check=False, creationflags=NO_WINDOW)
        return done.returncode == 0
    except (NoSandbox, OSError, subprocess.TimeoutExpired):
        return False
