"""What other programs commit, told to those it concerns: both eras, both transports, both journal modes."""

import itertools
import json
import os
import sqlite3
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from e2e.following import UPDATED, changes_since, told
from e2e.serving import TRANSPORTS, connected
from mcp_batteries.testing.wire import MODERN
from mcp_sqlite.worker import operations
from mcp_sqlite.worker.connection.connections import Connections
from mcp_sqlite.worker.connection.interrupt import Interrupt
from sqlite.busy_writers import beside
from sqlite.serving import commit, make, served, text_of

LISTED = "notifications/resources/list_changed"
T, ROW, OTHER, U = "sqlite://app/t", "sqlite://app/t/1", "sqlite://app/t/2", "sqlite://app/u"
TOTAL = {"do": "rows", "table": "total", "limit": 1}
BY_VALUE = "sqlite://app/t?column=name&value=b"
SCHEMA, T_SCHEMA = "sqlite://app/.schema", "sqlite://app/t/.schema"


@pytest.mark.share(1)
@pytest.mark.diagonal
@pytest.mark.anyio
@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("journal", ["delete", "wal"])
async def test_a_foreign_commit_reaches_those_it_concerns(
    journal: str, transport: str, revision: str, tmp_path: Path
) -> None:
    path = make(tmp_path / "app.db", journal)
    async with connected(transport, revision, "mcp_sqlite", [str(path)]) as wire:
        await wire.request("resources/list")
        if wire.modern:
            await wire.listen({"resourcesListChanged": True})
        for uri in (T, ROW, OTHER, U, BY_VALUE, SCHEMA, T_SCHEMA):
            await wire.subscribe(uri)
        await commit(path, "UPDATE t SET name = 'A' WHERE id = 1")
        await told(wire, T, ROW)
        await commit(path, "UPDATE u SET note = 'new'")
        await told(wire, U)
        await commit(path, "UPDATE t SET name = 'b2' WHERE id = 2")
        await told(wire, T, OTHER, BY_VALUE)
        await commit(path, "DELETE FROM t WHERE id = 1")
        await told(wire, T, ROW)
        await commit(path, "CREATE TABLE later (a)")
        await wire.notification(LISTED)
        await told(wire, SCHEMA)
        await commit(path, "CREATE INDEX t_id ON t (id)")
        await told(wire, SCHEMA, T_SCHEMA)
        # A commit that changes nothing of what is followed, then one that does: only the second is heard.
        await commit(path, "INSERT INTO later VALUES (1)")
        await commit(path, "UPDATE u SET note = 'newer'")
        await told(wire, U)


@pytest.mark.share(1)
@pytest.mark.anyio
@pytest.mark.parametrize("name", ["log", "plain"])
async def test_a_row_beyond_the_hundredth_is_heard_newest_first(name: str, tmp_path: Path) -> None:
    path = make(tmp_path / "app.db", "wal")
    await commit(path, "CREATE TABLE log (id INTEGER PRIMARY KEY, note); CREATE TABLE plain (note)")
    await commit(path, "".join(f"INSERT INTO {name} (note) VALUES ('{number}');" for number in range(250)))
    first, newest = f"sqlite://app/{name}", f"sqlite://app/{name}?order=newest&limit=2"
    async with served(path) as wire:
        for uri in (first, newest):
            await wire.subscribe(uri)
        await commit(path, f"INSERT INTO {name} (note) VALUES ('one more')")
        await told(wire, newest)
        shown = json.loads(await wire.read(newest))
        assert [row[-1] for row in shown["rows"]] == ["one more", "249"] and shown["truncated"]


@pytest.mark.share(1)
@pytest.mark.anyio
@pytest.mark.parametrize("journal", ["delete", "wal"])
async def test_nothing_is_missed_after_vacuum_checkpoint_and_replacement(journal: str, tmp_path: Path) -> None:
    path = make(tmp_path / "app.db", journal)
    async with served(path) as wire:
        await wire.subscribe(ROW)
        await wire.subscribe(U)
        for number, between in enumerate(["VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)", "ANALYZE", "REINDEX"]):
            await commit(path, between)
            await commit(path, f"UPDATE t SET name = 'v{number}' WHERE id = 1")
            await told(wire, ROW)
        if sys.platform == "win32" and journal == "wal":
            return  # nobody can replace there what the server has open
        other = make(tmp_path / "other.db", journal)
        await commit(other, "UPDATE t SET name = 'replaced' WHERE id = 1; PRAGMA wal_checkpoint(TRUNCATE)")
        for leftover in (f"{path}-wal", f"{path}-shm"):
            Path(leftover).unlink(missing_ok=True)
        os.replace(other, path)
        await told(wire, ROW)
        await commit(path, "UPDATE t SET name = 'after' WHERE id = 1")
        await told(wire, ROW)
        await commit(path, "UPDATE u SET note = 'after'")
        await told(wire, U)


@pytest.mark.anyio
async def test_a_rollback_and_an_open_transaction_tell_nothing(tmp_path: Path) -> None:
    path = make(tmp_path / "app.db", "wal")
    async with served(path) as wire:
        await wire.subscribe(T)
        await wire.subscribe(U)
        with closing(sqlite3.connect(path, isolation_level=None)) as writer:
            writer.execute("BEGIN")
            writer.execute("UPDATE t SET name = 'x'")
            writer.execute("ROLLBACK")
            writer.execute("UPDATE u SET note = 'marks the end'")
            await told(wire, U)
            writer.execute("BEGIN")
            writer.execute("UPDATE t SET name = 'y'")
            assert await wire.silent(UPDATED)
            writer.execute("COMMIT")
            await told(wire, T)


@pytest.mark.anyio
async def test_our_own_writes_and_insights_are_told_too(tmp_path: Path) -> None:
    path = make(tmp_path / "app.db")
    async with served("--write", path) as wire:
        await wire.subscribe(T)
        await wire.subscribe("memo://insights")
        await wire.call("write_rows", sql="UPDATE t SET name = 'x' WHERE id = 1", dry_run=True)
        await wire.call("create_insight", text="t has three rows")
        await told(wire, "memo://insights")
        await wire.call("write_rows", sql="UPDATE t SET name = 'x' WHERE id = 1")
        await told(wire, T)
        memo = await wire.request("resources/read", {"uri": "memo://insights"})
        assert "t has three rows" in memo["contents"][0]["text"]


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_view_without_end_is_followed_without_harm(tmp_path: Path) -> None:
    path = make(tmp_path / "app.db")
    await commit(
        path,
        "CREATE VIEW endless AS WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM c) SELECT max(x) FROM c",
    )
    async with served("--timeout", 1, path) as wire:
        await wire.subscribe("sqlite://app/endless")
        await wire.subscribe(ROW)
        await commit(path, "UPDATE t SET name = 'x' WHERE id = 1")
        # What can't be compared may have changed.
        await told(wire, ROW, "sqlite://app/endless")


def test_a_lock_is_no_change(tmp_path: Path) -> None:
    path = make(tmp_path / "app.db")
    interrupt = Interrupt()
    connections = Connections(interrupt)

    def look(*, new: bool) -> dict[str, Any] | None:
        interrupt.start(60)
        subjects = {T: {"do": "rows", "table": "t", "limit": 9}}
        request = {"do": "watch", "path": str(path), "new": new, "subjects": subjects}
        return operations.run(connections, request, lambda _: None)["digests"]

    first = look(new=True)
    assert look(new=False) in (None, first)
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        writer.execute("UPDATE t SET name = 'x'")
        assert look(new=False) in (None, first)
        writer.execute("ROLLBACK")
        assert look(new=False) in (None, first)
        writer.execute("UPDATE t SET name = 'x'")
    assert look(new=False) not in (None, first)
    connections.reader(str(path)).close()


@pytest.mark.parametrize("journal", ["delete", "truncate", "persist", "memory", "wal"])
def test_looking_makes_no_commit_of_others_fail(journal: str, tmp_path: Path) -> None:
    path = make(tmp_path / "app.db", journal)
    tables = [f"many_{number}" for number in range(20)]
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "".join(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, x);" for table in tables)
            + "CREATE TABLE big (x); INSERT INTO big WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM c"
            " LIMIT 20000) SELECT x FROM c; CREATE VIEW sums AS SELECT x % 7 AS part, sum(x) FROM big GROUP BY 1;"
        )
    failed: list[str] = []
    looked = threading.Event()

    def write() -> None:
        with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as writer:
            writer.execute("PRAGMA synchronous = off")
            for number in itertools.count():
                if number >= 500 and looked.is_set():
                    break
                try:
                    writer.execute(f"INSERT INTO many_{number % 20} (x) VALUES ({number})")
                except sqlite3.OperationalError as error:
                    failed.append(error.sqlite_errorname)

    interrupt = Interrupt()
    connections = Connections(interrupt)

    def look(*, new: bool) -> dict[str, Any] | None:
        interrupt.start(10)
        subjects = {table: {"do": "rows", "table": table, "limit": 100} for table in [*tables, "sums", "big"]}
        request = {"do": "watch", "path": str(path), "new": new, "subjects": subjects}
        return operations.run(connections, request, lambda _: None)["digests"]

    first = look(new=True)
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        try:
            while not writing.done():
                if look(new=False) is not None:
                    looked.set()
        finally:
            looked.set()
    writing.result()
    last = look(new=True)
    assert failed == []
    assert first is not None and last is not None
    changed = {key for key, digest in last.items() if digest != first[key]}
    assert set(tables) <= changed <= {*tables, "sums"}  # a slow one may always have changed
    connections.reader(str(path)).close()


@pytest.mark.parametrize("journal", ["delete", "truncate", "persist"])
def test_a_look_without_a_lock_sees_no_half_of_a_commit(journal: str, tmp_path: Path) -> None:
    path = make(tmp_path / "app.db", journal)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "CREATE TABLE accounts (id INTEGER PRIMARY KEY, x, filler); INSERT INTO accounts"
            " WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM c LIMIT 2000)"
            " SELECT x, 0, hex(randomblob(500)) FROM c; CREATE VIEW total AS SELECT sum(x) FROM accounts;"
        )

    def write() -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as writer:
            # Half of a transaction lies in the file before it is committed.
            writer.execute("PRAGMA synchronous = off")
            writer.execute("PRAGMA cache_size = 10")
            for number in range(30):
                writer.execute("UPDATE accounts SET x = x + CASE WHEN id <= 1000 THEN :n ELSE -:n END", {"n": number})

    interrupt = Interrupt()
    connections = Connections(interrupt)

    def look(*, new: bool) -> str | None:
        interrupt.start(10)
        request = {"do": "watch", "path": str(path), "new": new, "subjects": {"total": TOTAL}}
        digests: dict[str, str] | None = operations.run(connections, request, lambda _: None)["digests"]
        return None if digests is None else digests.get("total")

    def settled() -> str:
        """What a look finds that had the time it needs; a slow machine may have to look more than once."""
        found = (look(new=True) for _ in range(50))
        return next(digest for digest in found if digest and not digest.startswith("unknown"))

    first = settled()
    seen: set[str | None] = set()
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        while not writing.done():
            seen.add(look(new=False))
    writing.result()
    assert {digest for digest in seen if digest and not digest.startswith("unknown")} <= {first}
    assert settled() == first
    connections.reader(str(path)).close()


@pytest.mark.anyio
async def test_following_makes_no_commit_of_others_fail(tmp_path: Path) -> None:
    found = await beside(tmp_path, "delete", ["t0", "t1", "t2", "v0", "v1"], commits=600, rows=20_000, measured=0)
    assert (found.commits, found.failed) == (600, 0)


@pytest.mark.anyio
async def test_a_link_that_leads_elsewhere_is_followed(tmp_path: Path) -> None:
    one, two = make(tmp_path / "one.db"), make(tmp_path / "two.db", "wal")
    await commit(two, "UPDATE t SET name = 'second' WHERE id = 1")
    link = tmp_path / "app.db"
    link.symlink_to(one)
    async with served(link) as wire:
        await wire.subscribe(ROW)
        await wire.subscribe(U)
        assert '[1,"a"]' in text_of(await wire.call("query_rows", sql="SELECT * FROM t WHERE id = 1"))
        (tmp_path / "new").symlink_to(two)
        os.replace(tmp_path / "new", link)
        await told(wire, ROW)
        assert '[1,"second"]' in text_of(await wire.call("query_rows", sql="SELECT * FROM t WHERE id = 1"))
        # What lies beside the other file is watched now.
        await commit(two, "UPDATE u SET note = 'new'")
        await told(wire, U)


@pytest.mark.share(1)
@pytest.mark.skipif(sys.platform == "win32", reason="Python tells no time there that a program can't set back")
@pytest.mark.anyio
@pytest.mark.parametrize("journal", ["delete", "wal"])
async def test_a_file_overwritten_in_place_is_noticed_whatever_it_says_of_itself(journal: str, tmp_path: Path) -> None:
    path, other = make(tmp_path / "app.db", journal), tmp_path / "other.db"
    await commit(path, "UPDATE t SET name = 'one' WHERE id = 1; PRAGMA wal_checkpoint(TRUNCATE)")
    # The same commits with other values: both count alike.
    make(other, journal)
    await commit(other, "UPDATE t SET name = 'two' WHERE id = 1; PRAGMA wal_checkpoint(TRUNCATE)")
    whole = other.read_bytes()
    assert whole[24:40] == path.read_bytes()[24:40] and len(whole) == path.stat().st_size
    async with served("--workers", 1, "--write", path) as wire:
        await wire.subscribe(ROW)
        for name in ("one", "two"):
            assert f'[1,"{name}"]' in text_of(await wire.call("query_rows", sql="SELECT * FROM t WHERE id = 1"))
            if name == "one":
                await wire.call("write_rows", sql="DELETE FROM t WHERE id = 99")  # and the writer has seen it
                before = path.stat()
                with path.open("r+b") as file:
                    file.write(whole)
                os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
                await told(wire, ROW)
        await wire.call("write_rows", sql="UPDATE t SET name = name || '!' WHERE id = 1")
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT name FROM t WHERE id = 1").fetchone() == ("two!",)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.share(1)
@pytest.mark.anyio
@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
async def test_what_changed_since_is_known_at_once(revision: str, tmp_path: Path) -> None:
    path = make(tmp_path / "app.db", "wal")
    async with connected("stdio", revision, "mcp_sqlite", [str(path)]) as wire:
        _, since = await changes_since(wire, None, T, U)
        for _ in range(20):
            await commit(path, "UPDATE t SET name = name || 'x' WHERE id = 1")
            found, since = await changes_since(wire, since)
            assert found == {T}
        await commit(path, "UPDATE t SET name = 'z' WHERE id = 1")
        await commit(path, "UPDATE u SET note = 'new'")
        first = since
        found, since = await changes_since(wire, since)
        assert found == {T, U}
        assert await changes_since(wire, since) == (set(), since)
        assert (await changes_since(wire, first))[0] == {T, U}
