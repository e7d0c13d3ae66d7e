"""Foreign keys that point nowhere: each is told once, by whoever broke it."""

import random
import sqlite3
from pathlib import Path

import pytest

from mcp_sqlite.worker import operations
from mcp_sqlite.worker.change.foreign_keys import describe_broken_keys, find_broken, find_newly_broken
from mcp_sqlite.worker.connection.connections import Connections
from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.connection.interrupt import Interrupt
from sqlite.serving import run, served, text_of

pytestmark = pytest.mark.anyio
BEFORE = "PRAGMA foreign_keys = OFF; CREATE TABLE p (id INTEGER PRIMARY KEY); CREATE TABLE gone (x PRIMARY KEY);"
MANY = "WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM c LIMIT {most})"
REBUILD = "CREATE TABLE n {new}; INSERT INTO n SELECT * FROM t; {more} DROP TABLE t; ALTER TABLE n RENAME TO t;"


async def changed(path: Path, sql: str) -> str:
    async with served("--write", "--ddl", path) as wire:
        dry, done = [text_of(await wire.call("edit_schema", sql=sql, dry_run=dry)) for dry in (True, False)]
        told = [line for line in dry.splitlines() if "nowhere" in line or "refers" in line]
        assert all(line in done for line in told), (dry, done)
        return done


async def test_a_change_tells_what_it_broke_and_counts_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    run(path, f"{BEFORE} CREATE TABLE t (p REFERENCES p); {MANY.format(most=1500)} INSERT INTO t SELECT x FROM c")
    said = await changed(path, "CREATE TABLE other (x)")
    assert said.endswith("Foreign keys that pointed nowhere before: 1,500 (`run_check`).\n"), said
    # What goes by another name is as broken as before, and so is what is left of many.
    said = await changed(path, "ALTER TABLE t RENAME TO u; DROP TABLE gone")
    assert "pointed nowhere before: 1,500" in said and "since" not in said, said
    said = await changed(path, "DELETE FROM u WHERE p < 20; CREATE TABLE gone (x); DROP TABLE gone")
    assert "pointed nowhere before: 1,481" in said, said
    async with served(path) as wire:
        assert text_of(await wire.call("run_check")) == (
            "`a` has problems:\nu.p: 1,481 rows refer to missing rows of p, such as rowid 20 and 21\n"
        )


async def test_keys_are_not_looked_through_for_what_breaks_none(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    run(
        path,
        f"{BEFORE} CREATE TABLE t (p REFERENCES p, x); INSERT INTO t VALUES (7, 1); CREATE UNIQUE INDEX u ON p (id)",
    )
    for harmless in (
        "CREATE INDEX i ON t (p); CREATE VIEW v AS SELECT 1; ANALYZE",
        "/* off */ DROP INDEX i; DROP VIEW v",
        "ALTER TABLE t ADD COLUMN y INTEGER DEFAULT 5; ALTER TABLE t DROP COLUMN y",
    ):
        said = await changed(path, harmless)
        assert said.startswith("Done") and "nowhere" not in said, said
    for other in ("DROP INDEX u", "ALTER TABLE t ADD z REFERENCES p", "CREATE TABLE other (x)"):
        assert "pointed nowhere before: 1" in await changed(path, other), other


@pytest.mark.share(1)
@pytest.mark.parametrize("without", ["", " WITHOUT ROWID"])
async def test_nothing_is_broken_beside_what_was(without: str, tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    new = f"(id INTEGER PRIMARY KEY, p REFERENCES p){without}"
    run(path, f"{BEFORE} CREATE TABLE q (x REFERENCES gone); CREATE TABLE t {new}; INSERT INTO t VALUES (1, 7)")
    assert "pointed nowhere before: 1 " in await changed(path, REBUILD.format(new=new, more=""))
    said = await changed(path, REBUILD.format(new=new, more="INSERT INTO n VALUES (2, 8);"))
    assert "t.p: 1 row refers to a missing row of p" in said and "Nothing was changed" in said, said


@pytest.mark.slow
async def test_a_key_that_fits_nothing_is_told_and_can_be_mended(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    run(path, "CREATE TABLE p (a); CREATE UNIQUE INDEX i ON p (a); CREATE TABLE c (x REFERENCES p (a))")
    said = await changed(path, "DROP INDEX i")
    assert "foreign key mismatch" in said and "unique index. Nothing was changed." in said, said
    run(path, "PRAGMA foreign_keys = OFF; DROP INDEX i; INSERT INTO c VALUES (5)")
    assert "Done and committed" in await changed(path, "CREATE TABLE other (x)")
    async with served(path) as wire:
        assert "foreign key mismatch" in text_of(await wire.call("run_check"))
    said = await changed(path, "CREATE UNIQUE INDEX i ON p (a)")
    assert "nowhere since this change:\nc.x: 1 row refers to a missing row of p: rowid 1\n" in said, said


@pytest.mark.parametrize("seed", range(8))
def test_what_is_lost_is_what_a_join_finds(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    path = tmp_path / "a.db"
    run(path, f"{BEFORE} CREATE TABLE t (a REFERENCES p, b REFERENCES p)")

    def wrong() -> dict[str, set[int]]:
        with sqlite3.connect(path) as base:
            asks = {
                column: f"SELECT rowid FROM t WHERE {column} NOT NULL AND {column} NOT IN (SELECT id FROM p)"
                for column in ("a", "b")
            }
            found = {column: {row for (row,) in base.execute(sql)} for column, sql in asks.items()}
        base.close()
        return found

    def some() -> str:
        return chance.choice(["NULL", *map(str, range(1, 9))])

    database = Database(str(path), Interrupt())
    was, broken = wrong(), find_broken(database)
    for _ in range(40):
        steps = [f"INSERT INTO t VALUES ({some()}, {some()});", f"INSERT OR IGNORE INTO p VALUES ({some()});",
                 f"DELETE FROM p WHERE id = {some()};", f"UPDATE t SET a = {some()} WHERE b IS {some()};",
                 f"DELETE FROM t WHERE rowid % 5 = {chance.randrange(5)};"]  # fmt: skip
        run(path, "PRAGMA foreign_keys = OFF; " + " ".join(chance.choices(steps, k=chance.randint(1, 4))))
        now, after = wrong(), find_broken(database)
        found = {key[1]: set(rows.rowids) for key, rows in find_newly_broken(broken, after).items()}
        assert found == {column: new for column in now if (new := now[column] - was[column])}
        assert len(describe_broken_keys(after.rows)) == sum(map(bool, now.values()))
        was, broken = now, after
    database.close()


DEFERRED = """CREATE TABLE p (id INTEGER PRIMARY KEY); CREATE TABLE w (a, b, PRIMARY KEY (a, b)) WITHOUT ROWID;
CREATE TABLE t (id INTEGER PRIMARY KEY, p REFERENCES p DEFERRABLE INITIALLY DEFERRED, a, b,
    FOREIGN KEY (a, b) REFERENCES w DEFERRABLE INITIALLY DEFERRED);
CREATE TABLE fast (p REFERENCES p);
INSERT INTO p VALUES (1), (2); INSERT INTO w VALUES (1, 1); INSERT INTO t VALUES (1, 1, 1, 1), (2, NULL, 1, NULL);"""


@pytest.mark.parametrize(
    ("sql", "fails"),
    [
        ("UPDATE t SET id = 5 WHERE id = 1", False),
        ("UPDATE t SET p = 3 WHERE id = 1", True),
        ("UPDATE t SET p = 3 WHERE id = 1; INSERT INTO p VALUES (3)", False),
        ("DELETE FROM p WHERE id = 1", True),
        ("DELETE FROM p WHERE id = 2", False),
        ("INSERT INTO t (p) VALUES (9); DELETE FROM t WHERE p = 9", False),
        ("UPDATE t SET b = 7", True),
        ("DELETE FROM w; UPDATE t SET a = NULL", False),
        ("REPLACE INTO w VALUES (1, 1)", False),
    ],
)
async def test_a_dry_run_fails_where_the_commit_would(sql: str, fails: bool, tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    run(path, DEFERRED)
    async with served("--write", "--ddl", path) as wire:
        for tool in ("write_rows", "edit_schema"):
            dry = await wire.call(tool, sql=sql, dry_run=True)
            assert bool(dry.get("isError")) is fails, text_of(dry)
            assert not fails or "would point nowhere: t." in text_of(dry)
        done = await wire.call("write_rows", sql=sql)
        assert bool(done.get("isError")) is fails, text_of(done)


async def test_a_dry_run_says_that_rows_pointed_nowhere_before(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    run(path, f"{DEFERRED} PRAGMA foreign_keys = OFF; INSERT INTO t (id, p) VALUES (7, 98);")
    async with served("--write", path) as wire:
        said = text_of(await wire.call("write_rows", sql="UPDATE t SET p = 99 WHERE id = 7", dry_run=True))
        assert "rows that pointed nowhere before" in said, said


async def test_a_dry_run_looks_through_no_table_for_deferred_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.db"
    run(path, DEFERRED)

    def look_through(database: Database) -> None:
        raise AssertionError(database.path)

    monkeypatch.setattr("mcp_sqlite.worker.change.foreign_keys.find_broken", look_through)
    connections = Connections(Interrupt())
    request = {"do": "change", "path": str(path), "sql": "UPDATE t SET p = 2", "mode": "write", "dry_run": True,
               "max_cell": 100, "spool": str(tmp_path / "spool"), "spool_bytes": 1000}  # fmt: skip
    connections.interrupt.start(60)
    assert operations.run(connections, request, lambda frame: None)["steps"][0]["rows"] == 2
    connections.close()
