"""What following costs those who write: commits at busy timeout 0 that fail beside a server that follows, as a table.

`python -m sqlite.busy_writers [COMMITS [JOURNAL ...]]`, in `tests/`: 50 tables, or 5 views over 200,000 rows, in each
journal mode. The last column is how long after its commit a change was told, once the writer rests.
"""

import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import anyio

from mcp_batteries.subscriptions.hub import REST_SECONDS
from mcp_batteries.testing.wire import StdioWire
from sqlite.serving import commit, served

__all__ = ["Outcome", "beside"]

JOURNALS = ("delete", "truncate", "persist", "memory", "wal")
TABLES = 50
VIEWS = 5
_WRITER = """
import sqlite3, sys, time
path, commits, tables = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
connection = sqlite3.connect(path, timeout=0, isolation_level=None)
connection.execute("PRAGMA cache_size = 20")
connection.execute("PRAGMA synchronous = off")
connection.execute(f"PRAGMA journal_mode = {sys.argv[4]}")
failed = 0
for number in range(commits):
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(f"INSERT INTO t{number % tables} (x) VALUES (?)", [number])
        if number % 500 == 100:  # in the middle of a transaction, with a part of it in the file
            connection.execute("PRAGMA cache_spill = 1")
            connection.execute("UPDATE big SET y = y || '' WHERE id <= 5000")
            time.sleep(0.4)
        connection.execute("COMMIT")
    except sqlite3.OperationalError as error:
        assert "locked" in str(error), error
        failed += 1
        if connection.in_transaction:
            connection.execute("ROLLBACK")
print(failed)
"""


@dataclass(frozen=True)
class Outcome:
    """Attributes: failed: commits of the other program that found the database locked; told: seconds to a notice."""

    commits: int
    failed: int
    told: Sequence[float]


def make(path: Path, journal: str, rows: int) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            f"PRAGMA journal_mode = {journal}; PRAGMA synchronous = off; BEGIN;"
            + "".join(f"CREATE TABLE t{number} (id INTEGER PRIMARY KEY, x);" for number in range(TABLES))
            + "CREATE TABLE big (id INTEGER PRIMARY KEY, x, y);"
            f"INSERT INTO big WITH RECURSIVE c(n) AS (VALUES(1) UNION ALL SELECT n + 1 FROM c LIMIT {rows})"
            " SELECT n, n % 97, hex(randomblob(8)) FROM c;"
            + "".join(
                f"CREATE VIEW v{number} AS SELECT x % {number + 7}, count(*), max(y), sum(x) FROM big GROUP BY 1;"
                for number in range(VIEWS)
            )
            + "COMMIT"
        )


async def beside(
    folder: Path, journal: str, followed: Sequence[str], *, commits: int, rows: int, measured: int = 20
) -> Outcome:
    """Let another process commit while a server follows what is `followed`, then measure notices at rest."""
    path = folder / "a.db"
    make(path, journal, rows)
    async with served(path) as wire:
        for name in followed:
            await wire.subscribe(f"sqlite://a/{name}")
        writer = [sys.executable, "-c", _WRITER, str(path), str(commits), str(TABLES), journal]
        said = await anyio.run_process(writer, stderr=subprocess.PIPE)
        told = [await _told(wire, path, number) for number in range(measured if "t0" in followed else 0)]
    return Outcome(commits, int(said.stdout), told)


async def _told(wire: StdioWire, path: Path, number: int) -> float:
    while not await wire.silent("notifications/resources/updated"):
        wire.messages.clear()
    await anyio.sleep(2 * REST_SECONDS)  # what follows a notice sooner is told at the end of the hub's rest
    wire.messages.clear()
    await commit(path, f"PRAGMA synchronous = off; UPDATE t0 SET x = 'told {number}' WHERE id = 1")
    committed = time.monotonic()
    await wire.updated("sqlite://a/t0")
    return time.monotonic() - committed


async def main(commits: int = 10_000, *journals: str) -> None:
    print("| journal | followed | commits | failed | notice, ms (median of 20) |\n| --- | --- | --- | --- | --- |")
    tables, views = ([f"{letter}{n}" for n in range(most)] for letter, most in (("t", TABLES), ("v", VIEWS)))
    for journal in journals or JOURNALS:
        for what, followed in (("50 tables", tables), ("5 views of 200,000 rows", views)):
            with tempfile.TemporaryDirectory() as folder:
                found = await beside(Path(folder), journal, followed, commits=commits, rows=200_000)
            told = f"{1000 * statistics.median(found.told):.0f}" if found.told else "-"
            print(f"| {journal} | {what} | {commits:,} | {found.failed} | {told} |", flush=True)


if __name__ == "__main__":
    anyio.run(main, *map(int, sys.argv[1:2]), *sys.argv[2:])
