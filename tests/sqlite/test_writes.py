"""Changes: dry runs, all or nothing, and what a crash leaves."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mcp_sqlite.worker.change import dependents
from mcp_sqlite.worker.change.dependents import DependentState
from mcp_sqlite.worker.change.objects import SchemaSnapshot
from mcp_sqlite.worker.connection.connections import Connections
from mcp_sqlite.worker.connection.interrupt import Interrupt
from sqlite.serving import BUILDS, make, run, served, text_of


def rows(path: Path, sql: str = "SELECT id, name FROM t") -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


@pytest.mark.anyio
async def test_a_dry_run_shows_and_keeps_nothing(tmp_path: Path) -> None:
    path = make(tmp_path / "app.db")
    run(path, "CREATE TRIGGER log AFTER DELETE ON t BEGIN UPDATE u SET note = OLD.name; END")
    async with served("--write", "--ddl", path) as wire:
        said = text_of(await wire.call("write_rows", sql="DELETE FROM t WHERE id > 1 RETURNING id", dry_run=True))
        assert said.startswith("Dry run, nothing was changed.")
        assert "2 rows, and 2 more" in said and "u (trigger log)" in said and "[2]\n[3]" in said
        said = text_of(await wire.call("edit_schema", sql="DROP VIEW v; CREATE TABLE n (a)", dry_run=True))
        assert "- view v" in said and "+ table n" in said
    assert len(rows(path)) == 3
    assert rows(path, "SELECT name FROM sqlite_master WHERE name IN ('v', 'n')") == [("v",)]


@pytest.mark.anyio
async def test_a_value_in_a_dry_run_can_not_look_like_another_row(tmp_path: Path) -> None:
    async with served("--write", make(tmp_path / "app.db")) as wire:
        sql = "INSERT INTO t (id, name) VALUES (7, 'x' || char(8232) || '[8]' || char(133) || 'y')"
        said = text_of(await wire.call("write_rows", sql=sql, dry_run=True))
        assert '\n+ [7,"x\u2028[8]\x85y"]\n' in said, said


@pytest.mark.anyio
async def test_rows_that_a_change_gives_back_are_counted_once(tmp_path: Path) -> None:
    path = make(tmp_path / "app.db")
    async with served("--write", path) as wire:
        said = text_of(
            await wire.call("write_rows", sql="UPDATE t SET name = 'x' WHERE id < 3; SELECT id, name FROM t")
        )
        assert said == ('Done and committed.\n1. 2 rows in t\n2. [3 rows]\n["id","name"]\n[1,"x"]\n[2,"x"]\n[3,"c"]\n')
        said = text_of(await wire.call("write_rows", sql="DELETE FROM t WHERE id = 3 RETURNING id"))
        assert said == 'Done and committed.\n1 row in t\n["id"]\n[3]\n'


@pytest.mark.anyio
@pytest.mark.parametrize("build", BUILDS)
async def test_triggers_that_keep_a_full_text_table_in_step_work(build: str, tmp_path: Path) -> None:
    path = make(tmp_path / "app.db")
    run(
        path,
        """
        CREATE TABLE posts (id INTEGER PRIMARY KEY, body);
        CREATE VIRTUAL TABLE words USING fts5 (body, content='posts', content_rowid='id');
        CREATE TRIGGER added AFTER INSERT ON posts BEGIN
            INSERT INTO words (rowid, body) VALUES (NEW.id, NEW.body);
        END;
        CREATE TRIGGER removed AFTER DELETE ON posts BEGIN
            INSERT INTO words (words, rowid, body) VALUES ('delete', OLD.id, OLD.body);
        END;
        CREATE VIEW broken AS SELECT x FROM missing;
        """,
    )
    async with served("--write", path, build=build) as wire:
        said = text_of(await wire.call("write_rows", sql="INSERT INTO posts (body) VALUES ('hello there'), ('bye')"))
        assert "2 rows in posts, words (trigger added)" in said
        assert "[hello] there" in text_of(await wire.call("search_text", query="hello", table="words"))
        await wire.call("write_rows", sql="DELETE FROM posts WHERE id = 1")
        assert "[0 rows]" in text_of(await wire.call("search_text", query="hello", table="words"))
        # What is broken elsewhere in a schema is in nobody's way.
        result = await wire.call("query_rows", sql="SELECT bdy FROM posts")
        assert "`body`" in text_of(result) and "missing" not in text_of(result)
        assert "no such table: main.missing" in text_of(await wire.call("get_table", table="broken"))


@pytest.mark.anyio
async def test_statements_are_all_kept_or_none(tmp_path: Path) -> None:
    path = make(tmp_path / "app.db")
    async with served("--write", path) as wire:
        broken = "UPDATE t SET name = 'x;y'; INSERT INTO t VALUES (1, 'again')"
        said = text_of(await wire.call("write_rows", sql=broken))
        assert "Statement 2 of 2" in said and "UNIQUE" in said and "Nothing was changed" in said
        assert rows(path)[0] == (1, "a")
        said = text_of(await wire.call("write_rows", sql="INSERT INTO u VALUES (77, 'no such t')"))
        assert "FOREIGN KEY" in said
        await wire.call("write_rows", sql="UPDATE t SET name = ? WHERE id = ?", parameters=["x;y", 1])
        assert rows(path)[0] == (1, "x;y")


@pytest.mark.anyio
async def test_an_answer_names_no_table_that_did_not_change(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("""
            CREATE TABLE parent (id integer PRIMARY KEY); INSERT INTO parent VALUES (1), (2), (3);
            CREATE TABLE child (parent_id integer REFERENCES parent ON DELETE CASCADE); INSERT INTO child VALUES (2);
            CREATE TABLE log (word text);
            CREATE TRIGGER note AFTER DELETE ON parent WHEN OLD.id = 3 BEGIN INSERT INTO log VALUES ('gone'); END;
        """)
    async with served("--write", "--ddl", path) as wire:

        async def write(sql: str) -> str:
            return text_of(await wire.call("write_rows", sql=sql)).splitlines()[1]

        assert await write("DELETE FROM parent WHERE id = 1") == "1 row in parent"
        said = await write("DELETE FROM parent WHERE id = 2")
        assert said == "1 row, and 1 more by triggers and foreign keys in parent, log (trigger note), child"
        # What a table of a module writes for itself is none of the caller's rows.
        said = text_of(await wire.call("edit_schema", sql="CREATE VIRTUAL TABLE words USING fts5 (word)"))
        assert "by triggers" not in said, said


@pytest.mark.anyio
async def test_rows_that_make_room_are_those_of_the_table_that_is_changed(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    run(path, "CREATE TABLE a (id integer PRIMARY KEY, word); CREATE TABLE b (n int); INSERT INTO a VALUES (1, 'x')")
    async with served("--write", path) as wire:
        for sql, summary in (
            ("-- replace a\nINSERT INTO b VALUES (1)", "1 row in b"),
            ("WITH w AS (SELECT 'replace into a' AS \"replace a\") INSERT INTO b SELECT * FROM w", "1 row in b"),
            ("/* update b */ REPLACE INTO/**/ a VALUES (1, 'y')", "1 row, in place of 1 in a"),
            ("WITH w AS (SELECT 1) INSERT OR REPLACE INTO\"a\" SELECT 1, 'y'", "1 row, in place of 1 in a"),
            ("UPDATE OR REPLACE main.a SET word = 'y'", "1 row in a"),
        ):
            said = text_of(await wire.call("write_rows", sql=sql, dry_run=True))
            assert said.splitlines()[1] == summary, said


@pytest.mark.anyio
async def test_a_sequence_that_somebody_filled_with_words_hinders_no_change(tmp_path: Path) -> None:
    path = make(tmp_path / "app.db")
    run(path, "UPDATE sqlite_sequence SET seq = 'many'")
    async with served("--ddl", path) as wire:
        said = text_of(await wire.call("edit_schema", sql="CREATE TABLE made (a)"))
        assert "+ table made" in said, said


@pytest.mark.anyio
async def test_the_name_of_a_column_in_a_search_is_no_word_of_it(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    run(path, "CREATE VIRTUAL TABLE f USING fts5 (abc, tokenize = 'trigram'); INSERT INTO f VALUES ('hello')")
    async with served(path) as wire:
        for query, ignored in (("abc: hello", ""), ("abc:hello OR ab", "`ab`"), ("hello -llo", "")):
            said = text_of(await wire.call("search_text", query=query))
            assert ("not searched for" in said) == bool(ignored) and ignored in said, said


@pytest.mark.anyio
@pytest.mark.parametrize("what", ["TABLE", "VIEW", "INDEX", "TRIGGER"])
async def test_a_script_may_drop_what_is_not_there(what: str, tmp_path: Path) -> None:
    path = make(tmp_path / "app.db")
    script = f"DROP {what} IF EXISTS gone; CREATE TABLE made (a)"
    async with served("--ddl", path) as wire:
        said = text_of(await wire.call("edit_schema", sql=script, dry_run=True))
        assert f"1. DROP {what}\n2. CREATE TABLE\n" in said and 'DROP TABLE "made";' in said, said
        said = text_of(await wire.call("edit_schema", sql=script))
        assert f"1. DROP {what}\n2. CREATE TABLE\nSchema:\n+ table made" in said, said
        said = text_of(await wire.call("edit_schema", sql=f"DROP {what} IF EXISTS gone"))
        assert said.rstrip() == f"Done and committed.\nDROP {what}\nSchema:\nnothing", said


@pytest.mark.share(1)
@pytest.mark.anyio
@pytest.mark.parametrize("word", ["COMMIT", "ROLLBACK", "BEGIN IMMEDIATE", "PRAGMA query_only = ON"])
async def test_our_own_statements_are_not_the_callers(word: str, tmp_path: Path) -> None:
    path = make(tmp_path / "app.db")
    async with served("--write", path) as wire:
        for _ in range(3):
            await wire.call("write_rows", sql="UPDATE t SET name = 'x' WHERE id = 1")
            result = await wire.call("write_rows", sql=f"UPDATE t SET name = 'y'; {word}")
            assert result["isError"] and "would" in text_of(result)
    assert rows(path) == [(1, "x"), (2, "b"), (3, "c")]


@pytest.mark.anyio
async def test_files_go_out_and_come_in_unchanged(tmp_path: Path) -> None:
    path, folder = make(tmp_path / "app.db"), tmp_path / "files"
    folder.mkdir()
    async with served("--write", "--files", folder, path) as wire:
        for name in ("t.csv", "t.jsonl"):
            assert "3 rows" in text_of(await wire.call("copy_to_file", sql="SELECT * FROM t", file=name))
        assert (folder / "t.csv").read_text("utf-8") == "id,name\n1,a\n2,b\n3,c\n"
        assert (folder / "t.jsonl").read_text("utf-8").splitlines() == [
            '["id","name"]',
            '[1,"a"]',
            '[2,"b"]',
            '[3,"c"]',
        ]
        said = text_of(await wire.call("copy_to_file", sql="SELECT id, name FROM t WHERE id > 1", file="part.csv"))
        size = (folder / "part.csv").stat().st_size
        assert said == f"Wrote 2 rows, {size} bytes, to `part.csv`, with the columns id, name.\n"
        (folder / "below").mkdir()
        (folder / "below" / "more.TSV").write_text("a\tb\n", "utf-8")
        (folder / "note.txt").write_text("no rows", "utf-8")
        listed = text_of(await wire.call("list_tables"))
        assert "the folder for files: 4 files with rows\n" in listed
        assert f"- part.csv: {size} bytes, 3 lines\n  |id,name\n" in listed, listed
        assert "- below/more.TSV: 4 bytes" in listed and "note.txt" not in listed, listed
        assert "folder for files" not in text_of(await wire.call("list_tables", name="t"))
        result = await wire.call("copy_to_file", sql="SELECT 1", file="t.csv")
        assert result["isError"] and "exists" in text_of(result)
        (folder / "more.csv").write_text('id,name\n10,"x, y"\n11,é\n', "utf-8")
        (folder / "more.json").write_text(json.dumps([{"id": 20, "name": None}]), "utf-8")
        (folder / "bad.csv").write_text("id,name\n30,z\n1,twice\n", "utf-8")
        dry = text_of(await wire.call("copy_from_file", table="t", file="more.csv", dry_run=True))
        assert "Dry run" in dry and len(rows(path)) == 3
        for name in ("more.csv", "more.json"):
            assert not (await wire.call("copy_from_file", table="t", file=name)).get("isError")
        result = await wire.call("copy_from_file", table="t", file="bad.csv")
        assert result["isError"] and "Record 2" in text_of(result)
        assert rows(path)[3:] == [(10, "x, y"), (11, "é"), (20, None)]
        assert "consistent copy" in text_of(await wire.call("copy_database", file="copy.db"))
        assert rows(folder / "copy.db") == rows(path)
        (folder / "link.csv").symlink_to(path)
        assert (await wire.call("copy_from_file", table="t", file="link.csv"))["isError"]
        (folder / "dangling.csv").symlink_to(tmp_path / "outside.csv")
        assert (await wire.call("copy_to_file", sql="SELECT 1", file="dangling.csv"))["isError"]
        assert not (tmp_path / "outside.csv").exists()


def test_what_no_time_was_left_to_compile_fails_for_no_new_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make(tmp_path / "app.db")
    run(path, "CREATE VIEW broken AS SELECT * FROM gone")
    with closing(Connections(Interrupt())) as connections:
        connections.interrupt.start(60)
        database = connections.reader(connections.resolve(str(path)))
        monkeypatch.setattr(dependents, "_COMPILE_SECONDS", -1)
        before = DependentState.read(database)
        monkeypatch.setattr(dependents, "_COMPILE_SECONDS", 60)
        after = DependentState.read(database)
        assert after.failures == {'SELECT * FROM "broken"': "no such table: main.gone"}
        assert before.compare(after, (SchemaSnapshot({}, {}), SchemaSnapshot({}, {})), []) == []


@pytest.mark.anyio
async def test_what_sqlite_itself_checks_is_no_result_of_a_new_column(tmp_path: Path) -> None:
    sql = "ALTER TABLE t ADD COLUMN level INTEGER NOT NULL DEFAULT 1 CHECK (level > 0); SELECT level FROM t LIMIT 1"
    async with served("--write", "--ddl", make(tmp_path / "a.db")) as wire:
        said = text_of(await wire.call("edit_schema", sql=sql))
        assert "1. ALTER TABLE\n2. [1 row]" in said and "quick_check" not in said, said
