"""Databases of applications, which need collations and functions that only these have, and files that are none."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from mcp_batteries.errors import Unavailable
from mcp_batteries.settings import load
from mcp_sqlite.policy import Policy
from mcp_sqlite.settings import Settings
from sqlite.serving import make, served, text_of

pytestmark = pytest.mark.anyio

# Tables as Anki has them, and columns, views and triggers as those of GeoPackage and Android.
SCENE = """
CREATE TABLE notetypes (id INTEGER PRIMARY KEY, name TEXT NOT NULL COLLATE unicase, usn INTEGER, config BLOB);
CREATE UNIQUE INDEX by_name ON notetypes (name);
CREATE TABLE tags (tag TEXT PRIMARY KEY COLLATE unicase, usn INTEGER) WITHOUT ROWID;
CREATE TABLE decks (id INTEGER PRIMARY KEY, name TEXT COLLATE unicase, state TEXT);
CREATE VIEW sorted AS SELECT * FROM notetypes ORDER BY name;
CREATE TABLE places (id INTEGER PRIMARY KEY, name TEXT, area REAL AS (ST_Area(name)));
CREATE TRIGGER checked AFTER INSERT ON places WHEN ST_Area(NEW.name) < 0 BEGIN SELECT 1; END;
CREATE VIEW shapes AS SELECT ST_Area(name) AS area, id FROM places;
INSERT INTO notetypes (name) VALUES ('Basic'), ('cloze'), ('Other');
INSERT INTO tags VALUES ('leech', 1);
INSERT INTO decks VALUES (1, 'a', 'new'), (2, 'b', 'new'), (3, 'c', 'new'), (4, 'd', 'old');
INSERT INTO places (name) VALUES ('A'), ('B');
"""
READABLE = "NOT INDEXED WHERE name COLLATE NOCASE = 'basic'"
# A statement, and what is said of it.
STATEMENTS = [
    ("SELECT count(*) FROM notetypes", 'Read the table as `FROM "notetypes" NOT INDEXED`'),
    ("SELECT * FROM notetypes WHERE name = 'basic'", "sort by `column COLLATE NOCASE`"),
    ("SELECT * FROM sorted", 'Read the table as `FROM "notetypes" NOT INDEXED`'),
    ("SELECT * FROM tags", "`tags` lies in the order of a collation of its application, without which nobody reads it"),
    ("SELECT count(*) FROM tags", "`tags` lies in the order of a collation of its application"),
    ("SELECT 1 ORDER BY 'a' COLLATE foo", "There are BINARY, NOCASE and RTRIM"),
    ("SELECT * FROM places", "It is one of the application that made the database, which `places` needs"),
    ("SELECT * FROM shapes", "It is one of the application that made the database, which `shapes` needs"),
    ("SELECT ST_Area(1)", "`no such function: ST_Area`"), ("SELECT pow2(1)", "Did you mean `pow`?"),
    (f"SELECT id FROM notetypes {READABLE}", "[1]"), ("SELECT count(*) FROM notetypes NOT INDEXED", "[3]"),
    ("SELECT name FROM places", '["A"]'),
]  # fmt: skip
# A table, and what its description says.
DESCRIPTIONS = [
    ("notetypes", "notetypes, 3 rows", '[1,"Basic",null,null]'),
    ("tags", "rows not counted (needs the collation `unicase` of its application)", "sample rows, not read: needs a"),
    ("decks", '- state: "new" (3), "old" (1)', '[1,"a","new"]'),
    ("sorted", "- name: TEXT", "sample rows, not read: needs the collation `unicase` of its application"),
    ("places", "sample rows, without generated columns: needs the function `ST_Area` of its application", '[1,"A"]'),
    ("shapes", "it can't be read: needs the function `ST_Area`", "sample rows, not read: needs the function `ST_Area`"),
]  # fmt: skip


def compare_without_case(one: str, other: str) -> int:
    return (one.lower() > other.lower()) - (one.lower() < other.lower())


async def test_what_an_application_keeps_for_itself_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "app.db")) as connection:
        connection.create_collation("unicase", compare_without_case)
        connection.create_function("ST_Area", 1, len, deterministic=True)
        connection.executescript(SCENE)
    async with served("--write", tmp_path / "app.db") as wire:
        said = text_of(await wire.call("write_rows", sql="INSERT INTO places (name) VALUES ('C')"))
        assert "the trigger `checked` of `places` needs: only that can change it." in said, said
        listed = text_of(await wire.call("list_tables"))
        assert "notetypes 3 rows" in listed and "many rows" not in listed, listed
        assert "tags rows not counted (needs the collation `unicase` of its application)" in listed, listed
        for sql, said in STATEMENTS:
            answer = text_of(await wire.call("query_rows", sql=sql))
            assert said in answer, f"{sql}: {answer}"
        for table, *words in DESCRIPTIONS:
            answer = text_of(await wire.call("get_table", table=table, sample=2))
            assert all(word in answer for word in words), answer


async def test_a_bad_file_among_good_ones_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    good = make(tmp_path / "good.db")
    (tmp_path / "bad.db").write_text("this is no database at all", "utf-8")
    (tmp_path / "folder.db").mkdir()
    bad = [str(tmp_path / name) for name in ("bad.db", "folder.db", "missing.db")]
    for files in ([*bad, str(good)], [str(good), *bad]):
        caplog.clear()
        assert list(Policy(load(Settings, files)).databases) == ["good"]
        assert [record.message.startswith("It is left out: ") for record in caplog.records] == [True] * 3
    with pytest.raises(Unavailable, match="is not a SQLite database"):
        Policy(load(Settings, bad))


async def test_an_index_of_a_table_that_has_changed_is_no_matter_of_the_words(tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT);"
            "CREATE VIRTUAL TABLE found USING fts5 (body, content = 'notes', content_rowid = 'id');"
            "INSERT INTO notes VALUES (1, 'hello world'); INSERT INTO found (found) VALUES ('rebuild');"
            "ALTER TABLE notes RENAME COLUMN body TO text;"
            "PRAGMA writable_schema = ON; INSERT INTO sqlite_master VALUES"
            " ('table', 'places', 'places', 0, 'CREATE VIRTUAL TABLE places USING VirtualSpatialIndex()');"
        )
    async with served(path) as wire:
        said = text_of(await wire.call("search_text", query="hello"))
        assert said.startswith("`found` can't be read: ") and "body" in said and "LIKE searches that" in said, said
        said = text_of(await wire.call("query_rows", sql="SELECT * FROM places"))
        assert said.endswith("It is one of the application that made the database; other tables can be read."), said


async def test_databases_of_two_encodings_are_not_read_together(tmp_path: Path) -> None:
    wide = tmp_path / "wide.db"
    with closing(sqlite3.connect(wide)) as connection:
        connection.executescript("PRAGMA encoding = 'UTF-16'; CREATE TABLE k (a)")
    async with served(make(tmp_path / "app.db"), wide) as wire:
        said = text_of(await wire.call("query_rows", sql="SELECT * FROM t, wide.k", database="app,wide"))
        assert "`wide` together with the first database: one keeps texts as UTF-8, one as UTF-16" in said
        assert "[0 rows]" in text_of(await wire.call("query_rows", sql="SELECT * FROM k", database="wide"))
