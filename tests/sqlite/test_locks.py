"""Whom a transaction shuts out, and for how long: nobody of this server's, until it is committed."""

import gc
import itertools
import random
import sqlite3
import threading
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from mcp_sqlite.worker import operations
from mcp_sqlite.worker.connection import database as database_module
from mcp_sqlite.worker.connection.authorizer import Mode
from mcp_sqlite.worker.connection.connections import Connections
from mcp_sqlite.worker.connection.interrupt import Interrupt
from mcp_sqlite.worker.language.failure import Failure
from mcp_sqlite.worker.query.statements import execute
from sqlite.serving import die_writing, make, run, served, text_of

JOURNALS = ("delete", "truncate", "persist", "memory", "wal")
SECONDS = 60
"""A deadline for one change, far beyond what it takes."""
ROWS = (
    "WITH RECURSIVE c(n) AS (VALUES(1) UNION ALL SELECT n + 1 FROM c LIMIT {}) "
    "SELECT n, hex(randomblob(60)) AS x FROM c"
)


class Worker:
    """A worker's connections, in this process."""

    def __init__(self, path: Path) -> None:
        self.path, self.interrupt = str(path), Interrupt()
        self.connections = Connections(self.interrupt)

    def change(self, sql: str, *, dry_run: bool, pages: int = 5, mode: str = "write") -> dict[str, Any]:
        """What `sql` does where SQLite keeps few pages that nobody has changed."""
        self.interrupt.start(SECONDS)
        path = self.connections.resolve(self.path)
        self.connections.writer(path).run_internal(f"PRAGMA cache_size = {pages}")
        return self.run(do="change", sql=sql, dry_run=dry_run, mode=mode, spool=f"{path}-rows", spool_bytes=1 << 20)

    def load(self, file: Path, *, dry_run: bool) -> dict[str, Any]:
        self.interrupt.start(SECONDS)
        return self.run(
            do="import", table="big", folder=str(file.parent), name=file.name, make=False, dry_run=dry_run
        )  # fmt: skip

    def count(self) -> str:
        self.interrupt.start(SECONDS)
        request = {"sql": "SELECT count(*) FROM big", "limit": 1, "max_bytes": 1000, "spool": f"{self.path}-rows"}
        return self.run(do="query", **request, spool_bytes=1000)["lines"]

    def run(self, **request: Any) -> dict[str, Any]:
        return operations.run(self.connections, {"path": self.path, "max_cell": 100, **request}, lambda _: None)


@contextmanager
def working(path: Path) -> Generator[Worker]:
    worker = Worker(path)
    try:
        yield worker
    finally:
        worker.connections.close()


@contextmanager
def reading(path: Path) -> Generator[list[int]]:
    """Another worker's reader, which reads all the time while the block lasts; what it waited for is counted."""
    done, counted = threading.Event(), [0]
    failed: list[BaseException] = []

    def read() -> None:
        try:
            with working(path) as worker:
                while not done.is_set():
                    try:
                        worker.count()
                        counted[0] += 1
                    except Failure as failure:
                        assert failure.kind == "locked"  # a commit is under way; the pool asks again
        except BaseException as error:
            failed.append(error)
            raise

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield counted
    finally:
        done.set()
        thread.join()
    assert not failed, failed


def made(path: Path, journal: str, rows: int = 2000) -> Path:
    make(path, journal)
    run(path, f"CREATE TABLE big (id INTEGER PRIMARY KEY, x); INSERT INTO big {ROWS.format(rows)}")
    return path


def held(path: Path) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return [connection.execute(f"SELECT {what} FROM big").fetchone() for what in ("count(*)", "sum(length(x))")]


@pytest.mark.share(2)
@pytest.mark.parametrize("journal", JOURNALS)
def test_no_change_waits_for_this_server_whatever_its_size(journal: str, tmp_path: Path) -> None:
    path = made(tmp_path / "a.db", journal)
    dice = random.Random(journal)
    sizes = (1, 10, 300, 3000, 30_000)
    with working(path) as worker, reading(path) as counted:
        for rows, dry_run in itertools.product(sizes, (True, False)):
            before = held(path)
            sql = dice.choice((
                f"DELETE FROM big WHERE id > 2000; INSERT INTO big SELECT n + 2000, x FROM ({ROWS.format(rows)})",
                f"UPDATE big SET x = hex(randomblob(50)) WHERE id <= {rows}; UPDATE big SET x = x || 'y' WHERE id % 3",
                f"INSERT INTO big (x) SELECT x FROM ({ROWS.format(rows)}); DELETE FROM big WHERE id % 7 = 1",
            ))  # fmt: skip
            said = worker.change(sql, dry_run=dry_run, pages=dice.choice((1, 5, 50)))
            assert not dry_run or (said["samples"] and held(path) == before), (journal, rows, sql)
            assert dry_run or held(path) != before, (journal, rows, sql)
        assert counted[0]


@pytest.mark.share(2)
@pytest.mark.parametrize("journal", JOURNALS)
@pytest.mark.parametrize("dry_run", [True, False])
def test_a_schema_is_changed_with_rows_larger_than_the_cache(dry_run: bool, journal: str, tmp_path: Path) -> None:
    path = made(tmp_path / "a.db", journal, 20_000)
    before = held(path)
    migration = (
        f"CREATE TABLE other (n PRIMARY KEY, x); INSERT INTO other {ROWS.format(5000)};"
        "UPDATE big SET x = NULL WHERE id IN (SELECT n FROM other); DROP TABLE other; CREATE INDEX big_x ON big (x);"
        "INSERT INTO f SELECT x FROM big WHERE id > 5000"
    )
    with working(path) as worker, reading(path):
        said = worker.change(migration, dry_run=dry_run, mode="migrate")
        assert "+ index big_x" in said["objects"]
        assert (held(path) == before) == dry_run
        assert bool(said.get("samples")) == dry_run


@pytest.mark.share(1)
@pytest.mark.diagonal
@pytest.mark.parametrize("journal", JOURNALS)
@pytest.mark.parametrize("most", [0, 64])
def test_beyond_the_bound_of_memory_nothing_fails_either(
    most: int, journal: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Pages are written before the commit then, for which no reader may be there: not ours that compares, either.
    monkeypatch.setattr(database_module, "_CACHE_KIB", most)
    path = made(tmp_path / "a.db", journal)
    records = tmp_path / "in.jsonl"
    records.write_text('["x"]\n' + '["a text of some length, so that pages are many"]\n' * 20_000)
    with working(path) as worker:
        before = held(path)
        sql = f"INSERT INTO big (x) SELECT x FROM ({ROWS.format(20_000)})"
        for dry_run in (True, False):
            assert worker.change(sql, dry_run=dry_run)["steps"][0]["rows"] == 20_000
            assert worker.load(records, dry_run=dry_run)["rows"] == 20_000
            assert (held(path) == before) == dry_run
        # The same with a reader of ours that was there first.
        with reading(path):
            worker.change("UPDATE big SET x = x || 'z'", dry_run=True)
            worker.load(records, dry_run=True)
            worker.change("UPDATE big SET x = x || 'z'", dry_run=False)


@pytest.mark.parametrize("most", [0, 128 * 1024])
def test_another_programs_reader_is_waited_for_once(most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_module, "_CACHE_KIB", most)
    path = made(tmp_path / "a.db", "delete")
    records = tmp_path / "in.jsonl"
    records.write_text('["x"]\n' + '["a text of some length, so that pages are many"]\n' * 5000)
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN")
    other.execute("SELECT count(*) FROM big").fetchall()

    def leave() -> None:
        # From when it is waited for, nobody else can begin to read; and it goes no earlier than that.
        with closing(sqlite3.connect(path, timeout=0)) as third:
            while True:
                try:
                    third.execute("SELECT 1 FROM big LIMIT 1").fetchall()
                except sqlite3.OperationalError:
                    other.execute("ROLLBACK")
                    return

    thread = threading.Thread(target=leave)
    with closing(other), working(path) as worker:
        # A dry run comes to its end beside it.
        assert worker.load(records, dry_run=True)["rows"] == 5000
        if most:
            assert worker.change("UPDATE big SET x = x || 'z'", dry_run=True)["samples"]
        thread.start()
        assert worker.load(records, dry_run=False)["rows"] == 5000
        thread.join()
    assert held(path)[0] == (7000,)


@pytest.mark.share(1)
@pytest.mark.anyio
@pytest.mark.parametrize("journal", ["delete", "wal"])
async def test_a_large_dry_run_is_answered_beside_followers_and_other_calls(journal: str, tmp_path: Path) -> None:
    path = made(tmp_path / "a.db", journal, 60_000)
    async with served("--write", "--timeout", 60, path) as wire:
        await wire.subscribe("sqlite://a/big")
        call = {"name": "write_rows", "arguments": {"sql": "UPDATE big SET x = x || 'y'", "dry_run": True}}
        reads = {"name": "query_rows", "arguments": {"sql": "SELECT sum(length(x)) FROM big"}}
        numbers = {await wire.begin("tools/call", item) for item in (call, reads, call, reads)}
        while numbers:
            answer = await wire.next_message(lambda message: message.get("id") in numbers, seconds=SECONDS)
            numbers.remove(answer["id"])
            said = text_of(answer["result"])
            assert not answer["result"].get("isError"), said
            assert "Dry run" not in said or ("Rows (" in said and "60,000 rows" in said), said


def test_who_meets_a_journal_in_the_middle_of_a_call_tries_again(tmp_path: Path) -> None:
    path = make(tmp_path / "app.db")
    connections = Connections(Interrupt())
    connections.interrupt.start(30)
    database = connections.reader(connections.resolve(str(path)))
    die_writing(path)
    with pytest.raises(Failure) as caught:
        execute(database, Mode.READ, "SELECT count(*) FROM t", None)
    assert caught.value.kind == "locked"
    connections.begin_request()
    assert execute(connections.reader(connections.resolve(str(path))), Mode.READ, "SELECT 1 FROM t", None).fetchone()
    connections.close()


FAILS = "SELECT CASE x WHEN 3 THEN abs(-9223372036854775808) ELSE x END FROM big ORDER BY rowid"
LONG = "SELECT x, hex(randomblob(100000)) FROM big"
FAILED: dict[str, dict[str, Any]] = {
    "a file that is there": {"do": "export", "sql": "SELECT * FROM big", "name": "there.csv", "max_bytes": 1000},
    "a file of too many rows": {"do": "export", "sql": LONG, "name": "new.jsonl", "max_bytes": 10},
    "a file whose last row fails": {"do": "export", "sql": FAILS, "name": "new.csv", "max_bytes": 1000},
    "Parquet that is there": {"do": "export", "sql": "SELECT * FROM big", "name": "there.parquet", "max_bytes": 1000},
    "Parquet whose last row fails": {"do": "export", "sql": FAILS, "name": "new.parquet", "max_bytes": 10_000},
    "rows the last of which fails": {"do": "query", "sql": FAILS, "limit": 10, "max_bytes": 1000},
    "rows that can't be kept": {"do": "query", "sql": "SELECT * FROM big", "limit": 1, "max_bytes": 1000},
    "records of a file that does not fit": {"do": "import", "table": "big", "name": "there.csv", "make": False},
}


@pytest.mark.parametrize("failing", FAILED)
def test_a_call_that_failed_locks_nobody_out(failing: str, tmp_path: Path) -> None:
    path = make(tmp_path / "a.db")
    run(path, "CREATE TABLE big(x); INSERT INTO big VALUES (1), (2), (3)")
    for name in ("there.csv", "there.parquet", "spool"):
        (tmp_path / name).write_bytes(b"no such column\n1\n")
    worker = Worker(path)
    worker.interrupt.start(SECONDS)
    common = {"folder": str(tmp_path), "dry_run": False, "spool": str(tmp_path / "spool"), "spool_bytes": 1 << 20}
    gc.disable()  # which would end later what nobody has ended
    try:
        with pytest.raises(Failure):
            worker.run(**common, **FAILED[failing])
        with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
    finally:
        gc.enable()
        worker.connections.close()
