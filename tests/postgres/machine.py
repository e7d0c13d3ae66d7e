"""PostgreSQL servers whose data outlives them: stopped, started again on the same port, copied to a standby."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from mcp_postgres.engine.demo import process
from mcp_postgres.engine.demo.cluster import _find_programs
from postgres.serving import PROGRAMS

_PASSWORD = "secret-of-the-machine"
QUICK = ["-c", "fsync=off", "-c", "unix_socket_directories=", "-c", "wal_retrieve_retry_interval=100ms"]


class Machine:
    """One server in `folder`, with the superuser `postgres`; not started yet.

    Args:
        of: the primary that this is to follow, through the slot `standby`.
    """

    def __init__(self, folder: Path, of: "Machine | None" = None) -> None:
        folder.mkdir()
        self._as_whom, self._programs = process._choose_user(str(folder), PROGRAMS or _find_programs())
        self._folder, self._data, self.port = folder, folder / "data", process.free_port()
        if of is None:
            secret = folder / "password"
            secret.write_text(_PASSWORD, "ascii")
            if self._as_whom:
                shutil.chown(secret, "nobody")
            words = ["initdb", "-U", "postgres", "-A", "scram-sha-256", "-E", "UTF8", "--no-sync", "--locale=C"]
            self._run(*words, f"--pwfile={secret}", "-D", str(self._data))
        else:
            source = f"host=127.0.0.1 port={of.port} user=postgres password={_PASSWORD} application_name=standby"
            words = ["pg_basebackup", "-R", "-C", "-S", "standby", "-X", "stream", "-c", "fast", "--no-sync"]
            self._run(*words, "-D", str(self._data), "-d", source)

    def start(self, *options: str) -> None:
        """Start it, and wait until it takes connections."""
        words = " ".join(["-p", str(self.port), "-h", "127.0.0.1", *QUICK, *options])
        self._run(
            "pg_ctl", "start", "-w", "-t", "120", "-D", str(self._data), "-l", str(self._folder / "log"), "-o", words
        )

    def stop(self, mode: str = "fast") -> None:
        """Stop it: `fast` ends sessions politely, `immediate` is what a crash looks like."""
        self._run("pg_ctl", "stop", "-w", "-t", "120", "-m", mode, "-D", str(self._data))

    def promote(self) -> None:
        """Make a standby a primary."""
        self._run("pg_ctl", "promote", "-w", "-t", "120", "-D", str(self._data))

    def __enter__(self) -> "Machine":
        return self

    def __exit__(self, *_: object) -> None:
        if (self._data / "postmaster.pid").exists():
            self.stop("immediate")

    def url(self, role: str = "postgres", name: str = "postgres") -> str:
        return f"postgresql://{role}:{_PASSWORD if role == 'postgres' else role}@127.0.0.1:{self.port}/{name}"

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url(), autocommit=True) as connection:
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []

    def _run(self, *words: str) -> None:
        done = subprocess.run(
            [os.path.join(self._programs, words[0]), *words[1:]], cwd=self._folder, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE if words[0] != "pg_ctl" else subprocess.DEVNULL,
            timeout=180, **self._as_whom,
        )  # fmt: skip
        assert done.returncode == 0, (words[0], done.stderr)


@contextmanager
def place() -> Generator[Path]:
    """A folder that another user may enter, for `Machine`s in folders of their own."""
    with tempfile.TemporaryDirectory(prefix="mcp-machines-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)
