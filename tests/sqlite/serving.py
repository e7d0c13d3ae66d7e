"""Databases to be served, and the server as its own process."""

import functools
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from importlib.util import find_spec
from pathlib import Path

import aiosqlite
import pytest

from mcp_batteries.testing.wire import MODERN, Message, StdioWire
from thread_wire import wire_to

SCHEMA = """
CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, name);
CREATE TABLE u (id INTEGER PRIMARY KEY REFERENCES t (id), note);
CREATE INDEX t_name ON t (name);
CREATE VIEW v AS SELECT id, name FROM t;
CREATE TRIGGER v_write INSTEAD OF UPDATE ON v BEGIN UPDATE t SET name = NEW.name WHERE id = OLD.id; END;
CREATE VIRTUAL TABLE f USING fts5 (x);
CREATE VIEW fv AS SELECT x FROM f;
INSERT INTO t (name) VALUES ('a'), ('b'), ('c');
INSERT INTO u VALUES (1, 'one');
INSERT INTO f VALUES ('a word'), ('another');
"""


def text_of(result: Message) -> str:
    return result["content"][0]["text"]


@asynccontextmanager
async def served(*arguments: object, revision: str = MODERN, build: str = "machine") -> AsyncGenerator[StdioWire]:
    """A client of `mcp-sqlite` started with `arguments`: on a thread, or as a process where another SQLite is asked."""
    if build != "machine":
        async with served_process(*arguments, revision=revision, build=build) as wire:
            yield wire
        return
    async with wire_to("mcp_sqlite", arguments, revision=revision) as wire:
        await wire.open()
        yield wire


@asynccontextmanager
async def served_process(
    *arguments: object, revision: str = MODERN, build: str = "machine", within: Sequence[str] = ()
) -> AsyncGenerator[StdioWire]:
    """A client of an `mcp-sqlite` process on one of `BUILDS`, behind the words `within`."""
    command = [*within, sys.executable, "-m", "mcp_sqlite", *map(str, arguments)]
    async with StdioWire(command, revision=revision, env=os.environ | BUILDS[build]) as wire:
        await wire.open()
        yield wire


def make(path: Path, journal: str = "delete") -> Path:
    """A database with a bit of everything, at `path`."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(f"PRAGMA journal_mode = {journal};" + SCHEMA)
    return path


def run(path: Path, sql: str) -> None:
    """What another program commits."""
    with closing(sqlite3.connect(path, timeout=30)) as connection:
        connection.executescript(sql)


async def commit(path: Path, sql: str) -> None:
    """What another program commits while this one goes on."""
    async with aiosqlite.connect(path, timeout=30) as writer:
        await writer.executescript(sql)


_DIES = """
import os, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.executescript("PRAGMA cache_size = 5; BEGIN IMMEDIATE")
for statement in sys.argv[2:]:
    connection.execute(statement)
os.kill(os.getpid(), 9)
"""


def die_writing(path: Path, *, commit: bool = False) -> None:
    """What a program leaves that is killed in a transaction larger than its cache, or just behind its commit."""
    numbers = "WITH RECURSIVE c(x) AS (VALUES(10) UNION ALL SELECT x+1 FROM c LIMIT 3000)"
    statements = ["UPDATE t SET name = 'half'", f"{numbers} INSERT INTO t SELECT x, hex(zeroblob(300)) FROM c"]
    command = [sys.executable, "-c", _DIES, str(path), *statements, *(["COMMIT"] if commit else [])]
    assert subprocess.run(command, check=False, timeout=60).returncode in (-9, 9)


def _other_builds() -> dict[str, dict[str, str]]:
    # The wheel's library exports SQLite, and an interpreter that links it dynamically takes the one loaded first.
    package = find_spec("pysqlite3")
    if package is None or package.origin is None:
        return {}
    library = next(Path(package.origin).parent.glob("_sqlite3*.so"))
    preloaded = {"LD_PRELOAD": str(library)}
    ask = [sys.executable, "-c", "import sqlite3; print(sqlite3.sqlite_version)"]
    said = subprocess.run(ask, env=os.environ | preloaded, capture_output=True, text=True, check=False, timeout=60)
    differs = said.returncode == 0 and said.stdout.strip() != sqlite3.sqlite_version
    return {"wheel": preloaded} if differs else {}


BUILDS: dict[str, dict[str, str]] = {"machine": {}, **_other_builds()}
"""SQLite as the interpreter has it, and as a wheel brings it, where the interpreter lets one choose."""

_MOUNT = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'


_WAYS = [
    ["unshare", "-m", "sh", "-c", _MOUNT],
    ["unshare", "-Urm", "sh", "-c", _MOUNT],
    # Root without its powers is bound by permissions like everybody.
    ["setpriv", "--inh-caps=-all", "--bounding-set=-all", "sh", "-c", 'exec "$@"'],
    ["sh", "-c", 'exec "$@"'],
]


@functools.cache
def _read_only_way() -> list[str]:
    """Words that, with a folder behind them, run a command to which the folder is read-only."""
    if sys.platform == "win32":
        pytest.skip("folders are made read-only with the commands of Linux")
    with tempfile.TemporaryDirectory() as folder, read_only(Path(folder)):
        for way in _WAYS:
            probe = [*way, folder, "sh", "-c", 'true && ! touch "$0/x" 2>/dev/null', folder]
            if (
                shutil.which(way[0])
                and subprocess.run(probe, check=False, capture_output=True, timeout=60).returncode == 0
            ):
                return way
    raise AssertionError("no way to make a folder read-only here")


@contextmanager
def read_only(folder: Path) -> Generator[None]:
    """What permissions can do while the block lasts."""
    modes = {path: path.stat().st_mode for path in [folder, *folder.iterdir()]}
    for path in modes:
        path.chmod(0o555)
    try:
        yield
    finally:
        for path, mode in modes.items():
            path.chmod(mode)


@asynccontextmanager
async def served_read_only(folder: Path, *arguments: object) -> AsyncGenerator[StdioWire]:
    """A client of a server to which `folder` is read-only: by a mount, or by permissions where none can be made."""
    with read_only(folder):
        async with served_process(*arguments, within=[*_read_only_way(), str(folder)]) as wire:
            yield wire
