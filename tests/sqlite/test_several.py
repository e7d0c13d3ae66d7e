"""Several statements in one call: reads of one moment, and migrations that are rehearsed."""

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mcp_batteries.testing.wire import StdioWire
from mcp_sqlite.worker import operations
from mcp_sqlite.worker.connection.connections import Connections
from mcp_sqlite.worker.connection.interrupt import Interrupt
from mcp_sqlite.worker.language.failure import Failure
from sqlite.prove_changes import Server, prove
from sqlite.serving import commit, make, run, served, text_of
from sqlite.test_writes import rows
from thinning import few

pytestmark = pytest.mark.anyio
NUMBERS = "WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM c LIMIT {most}) SELECT x FROM c"


def parts(said: str) -> list[str]:
    return [part for part in re.split(r"^\d+ of \d+: ", said, flags=re.MULTILINE) if part]


async def pages(wire: StdioWire, said: str) -> list[list[object]]:
    """All rows of a result, whose first page is `said`."""
    found: list[list[object]] = []
    while True:
        lines = [json.loads(line) for line in said.split("\n") if line.startswith("[") and line.endswith("]")
                 and not re.match(r"\[(truncated|rows|not the|\d+ rows?\])", line)]  # fmt: skip
        found += lines[1:]
        if "cursor=" not in said:
            return found
        said = text_of(await wire.call("query_rows", cursor=said.partition("cursor=")[2].partition("]")[0], limit=500))


async def test_reads_are_answered_together(tmp_path: Path) -> None:
    async with served(make(tmp_path / "a.db")) as wire:
        result = await wire.call("query_rows", sql="SELECT id FROM t; -- the names\nSELECT name FROM t; VALUES (7);")
        assert not result.get("isError")
        one, two, three = parts(text_of(result))
        assert (await pages(wire, one), await pages(wire, two), await pages(wire, three)) == (
            [[1], [2], [3]], [["a"], ["b"], ["c"]], [[7]],
        )  # fmt: skip


async def test_each_has_pages_of_its_own_within_one_size(tmp_path: Path) -> None:
    async with served(make(tmp_path / "a.db")) as wire:
        sql = ";".join(NUMBERS.format(most=most) for most in (3, 4000, 900))
        said = text_of(await wire.call("query_rows", sql=sql, max_bytes=3000, limit=1000))
        assert len(said.encode()) < 4500
        for most, part in zip((3, 4000, 900), parts(said), strict=True):
            assert await pages(wire, part) == [[number] for number in range(1, most + 1)]


async def test_what_fails_is_told_in_its_place(tmp_path: Path) -> None:
    async with served(make(tmp_path / "a.db")) as wire:
        one, two, three = parts(text_of(await wire.call("query_rows", sql="SELECT 1; SELECT nam FROM t; SELECT 3")))
        assert "[1]" in one and "failed: " in two and "`name`" in two and "[3]" in three
        result = await wire.call("query_rows", sql="SELECT nam FROM t; SELECT x FROM nothing")
        assert result.get("isError") and "nam" in text_of(result)
        result = await wire.call("query_rows", sql="SELECT 1; DELETE FROM t; SELECT 2")
        assert result.get("isError") and "Statement 2 of 3" in text_of(result)


async def test_values_go_with_each(tmp_path: Path) -> None:
    async with served("--write", make(tmp_path / "a.db")) as wire:
        sql = "SELECT ?; SELECT :n; SELECT 1"
        said = text_of(await wire.call("query_rows", sql=sql, parameters=[["x"], {"n": 5}, None]))
        assert [await pages(wire, part) for part in parts(said)] == [[["x"]], [[5]], [[1]]]
        said = text_of(await wire.call("query_rows", sql="SELECT :n; SELECT :n + 1", parameters={"n": 5}))
        assert [await pages(wire, part) for part in parts(said)] == [[[5]], [[6]]]
        for wrong in (["x"], [["x"]], [1, 2, 3]):
            result = await wire.call("query_rows", sql=sql, parameters=wrong)
            assert result.get("isError") and "one entry per statement" in text_of(result)
        sql = "UPDATE t SET name = ? WHERE id = 1; UPDATE t SET name = ? WHERE id = 2"
        assert not (await wire.call("write_rows", sql=sql, parameters=[["p"], ["q"]])).get("isError")
    assert rows(tmp_path / "a.db")[:2] == [(1, "p"), (2, "q")]


@pytest.mark.slow
@pytest.mark.share(1)
@pytest.mark.parametrize("journal", ["delete", "wal"])
async def test_all_see_one_moment(journal: str, tmp_path: Path) -> None:
    path = make(tmp_path / "a.db", journal)
    async with served("--workers", 1, path) as wire:
        slow = "SELECT count(*) FROM (" + NUMBERS.format(most=3_000_000) + ")"
        sql = f"SELECT name FROM t WHERE id = 1; {slow}; SELECT name FROM t WHERE id = 1"
        number = await wire.begin("tools/call", {"name": "query_rows", "arguments": {"sql": sql}})
        # Whenever this is committed, before, within or after: both see the same.
        await commit(path, "UPDATE t SET name = 'later' WHERE id = 1")
        answer = await wire.next_message(lambda message: message.get("id") == number)
        one, _, three = parts(text_of(answer["result"]))
        assert await pages(wire, one) == await pages(wire, three)


@pytest.mark.parametrize("cell", ["é" * 30, "\u2028" * 20])
async def test_room_that_short_results_leave_is_for_those_before_them_too(cell: str, tmp_path: Path) -> None:
    async with served(make(tmp_path / "a.db")) as wire:

        def query(count: int) -> str:
            return NUMBERS.format(most=count).replace("SELECT x FROM", f"SELECT x, '{cell}' FROM")

        sql = f"{query(100)}; SELECT 1; SELECT 2; SELECT 3; {query(20)}"
        said = text_of(await wire.call("query_rows", sql=sql, max_bytes=10_000))
        assert "truncated" not in said, said
        sql = f"{query(99)}; {query(5000)}; {sql}"
        found = parts(text_of(await wire.call("query_rows", sql=sql, max_bytes=10_000, limit=2000)))
        assert ["truncated" in part for part in found] == [True, True, True, False, False, False, False], found
        assert sum(part.count(cell) for part in found) > 90, found
        for part, count in ((found[0], 99), (found[1], 5000), (found[2], 100)):
            assert await pages(wire, part) == [[number, cell] for number in range(1, count + 1)]


MIGRATION = """
-- Names of their own.
CREATE TABLE names (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
INSERT INTO names (name) SELECT DISTINCT name FROM t;
/* and the keys */ ALTER TABLE t ADD COLUMN name_id INTEGER REFERENCES names (id);
UPDATE t SET name_id = (SELECT id FROM names WHERE names.name = t.name);
DROP VIEW v;
CREATE VIEW v AS SELECT t.id, names.name FROM t JOIN names ON names.id = name_id;
PRAGMA user_version = 3;
"""


async def test_a_migration_is_rehearsed_and_done_in_one_piece(tmp_path: Path) -> None:
    path = make(tmp_path / "a.db")
    with closing(sqlite3.connect(path)) as connection:
        before = "\n".join(connection.iterdump())
    async with served("--write", "--ddl", path) as wire:
        said = text_of(await wire.call("edit_schema", sql=MIGRATION, dry_run=True))
        for words in (
            "Dry run", "+ table names", "~ table t", "~ view v", "+ user_version = 3", "3 rows in names", "3 rows in t",
            '+ [1,"a"]', "1. CREATE TABLE\n", "There is no safe inverse: keep a copy",
        ):  # fmt: skip
            assert words in said, f"{words}\n{said}"
        with closing(sqlite3.connect(path)) as connection:
            assert "\n".join(connection.iterdump()) == before
        result = await wire.call("edit_schema", sql=MIGRATION + "INSERT INTO names (name) VALUES ('a')")
        assert (
            result.get("isError") and "Statement 8 of 8" in text_of(result) and "Nothing was changed" in text_of(result)
        )
        with closing(sqlite3.connect(path)) as connection:
            assert "\n".join(connection.iterdump()) == before
        said = text_of(await wire.call("edit_schema", sql=MIGRATION))
        assert said.startswith("Done and committed.") and "The way back" not in said
    assert rows(path, "PRAGMA user_version") == [(3,)]
    assert rows(path, "SELECT name FROM v ORDER BY id") == [("a",), ("b",), ("c",)]


@pytest.mark.parametrize(("switch", "tool"), [("--write", "write_rows"), ("--ddl", "edit_schema")])
async def test_a_migration_needs_both_switches(switch: str, tool: str, tmp_path: Path) -> None:
    path = make(tmp_path / "a.db")
    async with served(switch, path) as wire:
        result = await wire.call(tool, sql=MIGRATION)
        assert result.get("isError") and "Nothing was changed" in text_of(result)
    assert rows(path, "PRAGMA user_version") == [(0,)]


async def test_rows_before_and_after_are_those_that_changed(tmp_path: Path) -> None:
    path = make(tmp_path / "a.db", "wal")
    await commit(
        path,
        "CREATE TABLE big (id INTEGER PRIMARY KEY, x); INSERT INTO big " + NUMBERS.format(most=5000).replace(
            "SELECT x FROM c", "SELECT x, 'old' FROM c"
        )
        + "; CREATE TABLE w (k TEXT PRIMARY KEY COLLATE NOCASE, x) WITHOUT ROWID;"
        "INSERT INTO w VALUES ('b', 1), ('A', 2), ('c', 3), ('D', 4)",
    )  # fmt: skip
    async with served("--write", path) as wire:
        said = text_of(await wire.call("write_rows", sql="UPDATE big SET x = 'new' WHERE id = 2500", dry_run=True))
        assert 'big: ["id","x"]\n- [2500,"old"]\n+ [2500,"new"]' in said
        said = text_of(await wire.call("write_rows", sql="DELETE FROM big WHERE id = 5000", dry_run=True))
        assert '- [5000,"old"]' in said and "\n+ " not in said
        said = text_of(await wire.call("write_rows", sql="INSERT INTO big VALUES (9999, 'more')", dry_run=True))
        assert '+ [9999,"more"]' in said and "\n- [" not in said
        said = text_of(await wire.call("write_rows", sql="UPDATE w SET x = 0 WHERE k = 'd'", dry_run=True))
        assert 'w: ["k","x"]\n- ["D",4]\n+ ["D",0]' in said
        said = text_of(await wire.call("write_rows", sql="UPDATE t SET name = name", dry_run=True))
        assert "Rows (" not in said and "way back" not in said
        many = f"INSERT INTO big SELECT x, '' FROM ({NUMBERS.format(most=600_000)}) WHERE x > 10000"
        assert "write lock for" in text_of(await wire.call("write_rows", sql=many, dry_run=True))


@pytest.mark.share(1)
@pytest.mark.parametrize(
    ("sql", "shown"),
    [
        (
            "ALTER TABLE t ADD COLUMN x; UPDATE t SET x = 7 WHERE id = 2",
            '["id","name","x"]\nbefore: ["id","name"]\n- [2,"b"]\n+ [2,"b",7]',
        ),
        (
            "ALTER TABLE t ADD COLUMN x DEFAULT 5",
            '- [3,"c"]\n- [2,"b"]\n- [1,"a"]\n+ [3,"c",5]\n+ [2,"b",5]\n+ [1,"a",5]',
        ),
        ("ALTER TABLE t ADD COLUMN x", ""),
        ("DROP VIEW v; ALTER TABLE t RENAME COLUMN name TO title", '["id","title"]\nbefore: ["id","name"]\n- [3,"c"]'),
        ("DROP VIEW v; DROP INDEX t_name; ALTER TABLE t DROP COLUMN name", '["id"]\nbefore: ["id","name"]\n- [3,"c"]'),
        (
            "DROP VIEW v; CREATE TABLE n (id INTEGER PRIMARY KEY, x, name TEXT);"
            "INSERT INTO n SELECT id, id = 2 OR NULL, name FROM t; DROP TABLE t; ALTER TABLE n RENAME TO t",
            '["id","x","name"]\nbefore: ["id","name"]\n- [2,"b"]\n+ [2,1,"b"]',
        ),
        ("DROP VIEW v; DROP TABLE u; DROP TABLE t", 't: ["id","name"]\n- [3,"c"]'),
    ],
)  # fmt: skip
async def test_rows_are_shown_of_tables_whose_columns_change(sql: str, shown: str, tmp_path: Path) -> None:
    path = make(tmp_path / "a.db")
    async with served("--write", "--ddl", path) as wire:
        said = text_of(await wire.call("edit_schema", sql=sql, dry_run=True))
        assert ("Rows (" in said) == bool(shown) and shown in said, said


async def test_returned_rows_beyond_a_page_have_a_cursor(tmp_path: Path) -> None:
    path = make(tmp_path / "a.db")
    async with served("--write", path) as wire:
        insert = "INSERT INTO t (name) SELECT x FROM c RETURNING name"
        sql = NUMBERS.format(most=1000).replace("SELECT x FROM c", insert)
        for dry_run in (True, False):
            said = text_of(await wire.call("write_rows", sql=sql, dry_run=dry_run))
            assert "1,000 rows in t" in said
            assert await pages(wire, said[said.index("[truncated") :].partition("\nRows (")[0]) == [
                [number] for number in range(1, 1001)
            ]
    assert len(rows(path)) == 1003


async def test_a_change_that_is_stopped_while_its_rows_are_read_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make(tmp_path / "a.db")
    with closing(Connections(Interrupt())) as connections:
        connections.interrupt.start(60)
        insert = "INSERT INTO t (name) SELECT x FROM c RETURNING id"
        request: dict[str, Any] = {
            "do": "change", "path": str(path), "mode": "write", "parameters": None, "dry_run": False, "max_cell": 100,
            "sql": NUMBERS.format(most=1000).replace("SELECT x FROM c", insert),
            "spool": str(tmp_path / "spool"), "spool_bytes": 10**6,
        }  # fmt: skip

        def stop(_: Interrupt) -> None:
            raise sqlite3.OperationalError("interrupted")

        monkeypatch.setattr(Interrupt, "check", stop)
        with pytest.raises(Failure, match="stopped at its time limit"):
            operations.run(connections, request, lambda _: None)
    assert len(rows(path)) == 3


REBUILD = """
CREATE TABLE t2 (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
INSERT INTO t2 SELECT id, name FROM t{where};
DROP TABLE t;
ALTER TABLE t2 RENAME TO t;
"""


@pytest.mark.share(1)
@pytest.mark.parametrize("dry_run", [True, False])
async def test_a_table_that_others_refer_to_is_rebuilt(dry_run: bool, tmp_path: Path) -> None:
    path = make(tmp_path / "a.db")
    run(path, "DROP VIEW v")
    async with served("--write", "--ddl", path) as wire:
        result = await wire.call("edit_schema", sql=REBUILD.format(where=" WHERE id > 1"), dry_run=dry_run)
        assert result.get("isError") and ": 1 row refers to a missing row of t: rowid 1" in text_of(result)
        result = await wire.call("edit_schema", sql=REBUILD.format(where=""), dry_run=dry_run)
        assert not result.get("isError"), text_of(result)
        # Keys count again afterwards.
        assert (await wire.call("write_rows", sql="INSERT INTO u VALUES (77, 'no such t')")).get("isError")
    assert rows(path) == [(1, "a"), (2, "b"), (3, "c")]
    assert rows(path, "SELECT count(*) FROM pragma_foreign_key_check") == [(0,)]


@pytest.mark.share(1)
@pytest.mark.parametrize("module", ["fts5", "fts4"])
@pytest.mark.diagonal
@pytest.mark.parametrize("first", ["UPDATE f SET body = 'm' WHERE rowid = 1", "INSERT INTO f (body) SELECT 'n'"])
@pytest.mark.parametrize(
    ("tool", "second"),
    [
        ("write_rows", "UPDATE kept SET x = x + 10"),
        ("write_rows", "INSERT OR ROLLBACK INTO kept SELECT x + 10 FROM kept"),
        ("write_rows", "DELETE FROM kept WHERE x IN (SELECT x FROM kept); INSERT INTO kept VALUES (1)"),
        ("edit_schema", "ALTER TABLE kept RENAME TO other"),
        ("edit_schema", "ALTER TABLE kept ADD COLUMN y"),
        ("edit_schema", "CREATE TABLE more (x)"),
        ("edit_schema", "CREATE INDEX i ON kept (x)"),
        ("edit_schema", "DROP TABLE kept"),
    ],
)
async def test_what_a_full_text_table_still_has_to_write_hinders_no_later_statement(
    module: str, first: str, tool: str, second: str, tmp_path: Path
) -> None:
    """SQLite writes it when the next savepoint or statement's journal begins, for which the tables must be open."""
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        connection.executescript(
            "CREATE TABLE kept (x UNIQUE); INSERT INTO kept VALUES (1), (2);"
            f"CREATE VIRTUAL TABLE f USING {module} (body); INSERT INTO f (body) VALUES ('x')"
        )
    async with served(tmp_path / "a.db", "--write", "--ddl") as wire:
        answer = await wire.call(tool, sql=f"{first}; {second}")
        assert not answer.get("isError"), answer
        assert "f" in text_of(answer)
        # By itself nobody writes there.
        closed = f"f_{'data' if module == 'fts5' else 'segdir'}"
        assert (await wire.call(tool, sql=f"{first}; DELETE FROM {closed}")).get("isError")


@pytest.mark.share(1)
@pytest.mark.parametrize("module", ["fts5", "fts4"])
@pytest.mark.parametrize("rename", [False, True])
async def test_a_table_that_a_call_makes_is_known_to_its_later_statements(
    module: str, rename: bool, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        connection.executescript(
            f"CREATE TABLE kept (x); INSERT INTO kept VALUES (1); CREATE VIRTUAL TABLE old USING {module} (body)"
        )
    made = "ALTER TABLE old RENAME TO f" if rename else f"CREATE VIRTUAL TABLE f USING {module} (body)"
    closed = f"f_{'data' if module == 'fts5' else 'segdir'}"
    async with served(tmp_path / "a.db", "--write", "--ddl") as wire:
        for harm in (f"DELETE FROM {closed}", f"DROP TABLE {closed}"):
            answer = await wire.call("edit_schema", sql=f"{made}; INSERT INTO f VALUES ('x'); {harm}")
            assert answer.get("isError") and "stays closed" in text_of(answer), answer
        answer = await wire.call("edit_schema", sql=f"{made}; INSERT INTO f VALUES ('x'); UPDATE kept SET x = 2")
        assert not answer.get("isError") and "f_" not in text_of(answer), answer


@pytest.mark.parametrize("cases", few([20, 120], 20))
def test_a_sample_of_changes_is_what_sqlite_makes_of_them(cases: int) -> None:
    tally = prove(cases, 4)
    assert tally.wrong == [] and tally.counts["changes"] == cases


# What a table is like, a change, and the way back; None where none is certain.
WAYS_BACK = [
    ("w (a, b)", "ALTER TABLE w RENAME a TO t; ALTER TABLE w RENAME b TO a; ALTER TABLE w RENAME t TO b",
     'ALTER TABLE "w" RENAME COLUMN "b" TO "t";\nALTER TABLE "w" RENAME COLUMN "a" TO "b";\n'
     'ALTER TABLE "w" RENAME COLUMN "t" TO "a";'),
    ("w (a, b)", "ALTER TABLE w RENAME b TO B", 'ALTER TABLE "w" RENAME COLUMN "B" TO "b";'),
    ("W (a, b)", "ALTER TABLE w RENAME TO m; ALTER TABLE m RENAME TO w",
     'ALTER TABLE "w" RENAME TO "m";\nALTER TABLE "m" RENAME TO "W";'),
    ("w (a); CREATE INDEX i ON w (a); CREATE VIEW s AS SELECT a FROM w", "ALTER TABLE w RENAME TO m",
     'ALTER TABLE "m" RENAME TO "w";'),
    ("w (a); CREATE TABLE x (a)", "ALTER TABLE w RENAME TO m; ALTER TABLE x RENAME TO w; ALTER TABLE m RENAME TO x",
     'ALTER TABLE "x" RENAME TO "m";\nALTER TABLE "w" RENAME TO "x";\nALTER TABLE "m" RENAME TO "w";'),
    ("w (a PRIMARY KEY)", "ALTER TABLE w ADD b REFERENCES w (a); ALTER TABLE w ADD c AS (b + 1);"
     "CREATE INDEX i ON w (c)",
     'DROP INDEX "i";\nALTER TABLE "w" DROP COLUMN "c";\nALTER TABLE "w" DROP COLUMN "b";'),
    ("w (a)", "CREATE TABLE x (a); INSERT INTO x SELECT a FROM w; ALTER TABLE x RENAME TO y; DELETE FROM y",
     'ALTER TABLE "y" RENAME TO "x";\nDROP TABLE "x";'),
    ("w (a)", "CREATE VIEW s AS SELECT a FROM w; CREATE TRIGGER g INSTEAD OF DELETE ON s BEGIN SELECT 1; END",
     'DROP TRIGGER "g";\nDROP VIEW "s";'),
    ("w (a)", "CREATE VIRTUAL TABLE words USING fts5 (x); ALTER TABLE words RENAME TO g; PRAGMA user_version = 4",
     'PRAGMA user_version = 3;\nALTER TABLE "g" RENAME TO "words";\nDROP TABLE "words";'),
    ('w (a, "b\n;CREATE TABLE evil (x);--")', 'ALTER TABLE w RENAME "b\n;CREATE TABLE evil (x);--" TO c',
     'ALTER TABLE "w" RENAME COLUMN "c" TO "b\n;CREATE TABLE evil (x);--";'),
    ("w (a); CREATE VIEW broken AS SELECT * FROM missing", "ALTER TABLE w ADD b", None),
    ("w (a)", "REINDEX", ""),
    ("w (a PRIMARY KEY, b)", "DROP TABLE w; CREATE TABLE w (b, a PRIMARY KEY)", None),
    ("w (a, b)", "DROP TABLE w; CREATE TABLE w (a, b)", None),
    ("w (a, b)", "CREATE TABLE x (a, b); DROP TABLE w; ALTER TABLE x RENAME TO w", None),
    ("w (a, b)", "ALTER TABLE w DROP b", None),
    ("w (a, b)", "ALTER TABLE w DROP b; ALTER TABLE w ADD b", None),
    ("w (a, b)", "INSERT INTO w VALUES (1, 2); CREATE TABLE x (a)", None),
    ("w (a, b)", "ALTER TABLE w RENAME TO m; DELETE FROM m", None),
    ("w (a); CREATE TRIGGER g AFTER INSERT ON w BEGIN DELETE FROM w; END", "DROP TRIGGER g", None),
    ("w (a); CREATE VIEW s AS SELECT 1", "DROP VIEW s; CREATE VIEW s AS SELECT 1", None),
    ('w (a); CREATE INDEX "i = 1" ON w (a)', 'DROP INDEX "i = 1"; CREATE INDEX "i = 2" ON w (a)', None),
]  # fmt: skip


@pytest.mark.parametrize(("table", "sql", "back"), WAYS_BACK)
def test_the_way_back_leads_back_where_it_is_told(table: str, sql: str, back: str | None, tmp_path: Path) -> None:
    path = make(tmp_path / "a.db")
    run(path, f"PRAGMA user_version = 3; CREATE TABLE {table};\n")
    # Names that SQLite writes are quoted.
    objects = "SELECT type, name, tbl_name, replace(sql, '\"', '') FROM sqlite_master ORDER BY 1, 2"
    before = rows(path, objects)
    with closing(Server(tmp_path)) as server:
        tried, done = (server.change(path, sql, dry_run=dry_run) for dry_run in (True, False))
    assert not isinstance(tried, str) and not isinstance(done, str), (tried, done)
    if back is None:
        assert tried["undo"] is None
    else:
        assert "\n".join(tried["undo"]) == back
        run(path, back)
        assert rows(path, objects) == before and rows(path, "PRAGMA user_version") == [(3,)], back


@pytest.mark.parametrize("letter", ["a", "中"])
async def test_the_bytes_of_all_results_are_as_many_whatever_they_are_written_in(letter: str, tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    run(path, f"CREATE TABLE t (x); INSERT INTO t SELECT '{letter * 9}' FROM ({NUMBERS.format(most=2000)})")
    async with served(path) as wire:
        said = text_of(await wire.call("query_rows", sql="SELECT x FROM t;" * 5, max_bytes=9000, limit=5000))
        assert 8000 < len(said.encode()) < 10_000
