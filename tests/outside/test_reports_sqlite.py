"""What users reported of other servers and tools for SQLite, tried on mcp-sqlite with tables of our own."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from postgres.serving import text_of
from sqlite.serving import run, served

pytestmark = pytest.mark.anyio

_ODD_NAMES = ("[foo]/bar", "[foo]", "foo]", 'q"q', "123_starts_with_digits", "two words")
_GENERATED = """
CREATE TABLE products (id integer PRIMARY KEY, price real, double AS (price * 2), triple AS (price * 3) STORED);
INSERT INTO products (price) VALUES (2.5);
CREATE VIEW shown AS SELECT * FROM products;
"""


@pytest.mark.reported("simonw/datasette#2431")
@pytest.mark.reported("datasette/datasette-write-ui#27")
async def test_a_table_is_found_by_its_name_and_by_what_the_list_writes(tmp_path: Path) -> None:
    quoted = ['"' + name.replace('"', '""') + '"' for name in _ODD_NAMES]
    run(
        tmp_path / "odd.db", "".join(f"CREATE TABLE {name} (a text); INSERT INTO {name} VALUES (1);" for name in quoted)
    )
    async with served("--write", tmp_path / "odd.db") as wire:
        listed = text_of(await wire.call("list_tables"))
        for name, spelling in zip(_ODD_NAMES, quoted, strict=True):
            assert f"- {spelling} 1 row: a text" in listed
            for table in (name, spelling):
                said = text_of(await wire.call("get_table", table=table, sample=1))
                assert f"CREATE TABLE {spelling}" in said and '["1"]' in said, table
            assert '["1"]' in text_of(await wire.call("query_rows", sql=f"SELECT * FROM {spelling}"))
            done = await wire.call("write_rows", sql=f"UPDATE {spelling} SET a = 2")
            assert not done.get("isError"), text_of(done)
        said = text_of(await wire.call("query_rows", sql="SELECT a FROM 123_starts_with_digits"))
        assert 'stands in quotes: `"123_starts_with_digits"`' in said


@pytest.mark.reported("simonw/sqlite-utils#8")
@pytest.mark.reported("pawelsalawa/letos#3190")
@pytest.mark.reported("dinedal/textql#38")
async def test_a_row_is_changed_and_shown_whatever_its_columns_are_called(tmp_path: Path) -> None:
    run(
        tmp_path / "odd.db",
        """CREATE TABLE t ("col 1" text PRIMARY KEY, "a-b" int, "index" int) WITHOUT ROWID;
        INSERT INTO t VALUES ('k', 1, 2);""",
    )
    async with served("--write", tmp_path / "odd.db") as wire:
        change = {"sql": """UPDATE t SET "a-b" = 5 WHERE "col 1" = 'k'"""}
        said = text_of(await wire.call("write_rows", **change, dry_run=True))
        assert '- ["k",1,2]\n+ ["k",5,2]' in said
        await wire.call("write_rows", **change)
        assert '["k",5,2]' in text_of(await wire.call("query_rows", sql="SELECT * FROM t"))
        assert '`"index"`' in text_of(await wire.call("query_rows", sql="SELECT index FROM t"))
        assert '`"col 1"`' in text_of(await wire.call("query_rows", sql="SELECT col 1 FROM t"))


@pytest.mark.reported("simonw/datasette#1116")
@pytest.mark.reported("tiagolauer/OwlSQL#292")
@pytest.mark.reported("AlexCovizzi/vscode-sqlite#192")
@pytest.mark.reported("TabularisDB/tabularis#162")
async def test_generated_columns_are_listed_and_shown_in_views_too(tmp_path: Path) -> None:
    run(tmp_path / "shop.db", _GENERATED)
    async with served(tmp_path / "shop.db") as wire:
        listed = text_of(await wire.call("list_tables"))
        (products,) = (line for line in listed.splitlines() if line.startswith("- products 1 row: "))
        assert all(f" {column} (" in products for column in ("price real", "double", "triple"))
        for table in ("products", "shown"):
            assert "[1,2.5,5.0,7.5]" in text_of(await wire.call("get_table", table=table, sample=1))


@pytest.mark.reported("sqlc-dev/sqlc#3901")
@pytest.mark.reported("TabularisDB/tabularis#622")
async def test_a_full_text_table_has_a_rowid_and_its_own_columns_alone(tmp_path: Path) -> None:
    run(
        tmp_path / "notes.db",
        "CREATE VIRTUAL TABLE notes USING fts5(title, body); INSERT INTO notes VALUES ('a', 'b c');",
    )
    async with served(tmp_path / "notes.db") as wire:
        assert "- notes (full-text) 1 row: title, body\n" in text_of(await wire.call("list_tables"))
        said = text_of(await wire.call("query_rows", sql="SELECT rowid, * FROM notes WHERE notes MATCH 'c'"))
        assert '["rowid","title","body"]\n[1,"a","b c"]' in said


@pytest.mark.reported("tursodatabase/turso#3282")
async def test_a_column_may_be_called_rowid(tmp_path: Path) -> None:
    run(tmp_path / "own.db", "CREATE TABLE own (rowid text, a text); INSERT INTO own VALUES ('mine', 'b');")
    async with served("--write", tmp_path / "own.db") as wire:
        assert '["mine","b"]' in text_of(await wire.call("get_table", table="own", sample=1))
        said = text_of(await wire.call("write_rows", sql="UPDATE own SET a = 'c'", dry_run=True))
        assert '- ["mine","b"]\n+ ["mine","c"]' in said


@pytest.mark.reported("duckdb/duckdb#12863")
async def test_a_key_written_in_other_letters_is_a_key(tmp_path: Path) -> None:
    run(
        tmp_path / "keys.db",
        "CREATE TABLE parent (id int PRIMARY KEY); CREATE TABLE child (id int REFERENCES PARENT(ID));",
    )
    async with served("--write", tmp_path / "keys.db") as wire:
        assert "- child 0 rows: id -> PARENT" in text_of(await wire.call("list_tables"))
        said = text_of(await wire.call("write_rows", sql="INSERT INTO child VALUES (5)"))
        assert "`child.id` to `PARENT.ID`" in said


@pytest.mark.reported("colbymchenry/codegraph#238")
@pytest.mark.reported("colbymchenry/codegraph#139")
@pytest.mark.parametrize("journal", ["delete", "wal"])
async def test_many_calls_read_while_another_program_writes(tmp_path: Path, journal: str) -> None:
    path = tmp_path / "shop.db"
    run(path, f"PRAGMA journal_mode = {journal};" + _GENERATED)
    answers: list[str] = []
    async with served(path) as wire:

        async def read() -> None:
            answers.append(text_of(await wire.call("query_rows", sql="SELECT count(*) FROM products")))

        with closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as writer:
            writer.execute("BEGIN IMMEDIATE")
            writer.execute("INSERT INTO products (price) VALUES (9)")
            async with anyio.create_task_group() as tasks:
                for _ in range(20):
                    tasks.start_soon(read)
            # A server that kept a lock would stop this.
            writer.execute("COMMIT")
        await read()
    assert answers == ['[1 row]\n["count(*)"]\n[1]\n'] * 20 + ['[1 row]\n["count(*)"]\n[2]\n']


@pytest.mark.reported("executeautomation/mcp-database-server#13")
async def test_a_table_without_rows_has_columns_and_a_count(tmp_path: Path) -> None:
    run(tmp_path / "empty.db", "CREATE TABLE usage (id integer PRIMARY KEY, at text);")
    statements: dict[str, Any] = {
        "SELECT COUNT(*) AS total FROM usage": '["total"]\n[0]',
        "SELECT * FROM usage ORDER BY at DESC LIMIT 3": '[0 rows]\n["id","at"]',
        "SELECT max(at) FROM usage": '["max(at)"]\n[null]',
    }
    async with served(tmp_path / "empty.db") as wire:
        for sql, answer in statements.items():
            assert answer in text_of(await wire.call("query_rows", sql=sql))


@pytest.mark.reported("thombashi/sqlitebiter#83")
@pytest.mark.reported("sqlitebrowser/sqlitebrowser#1664")
@pytest.mark.reported("sqlitebrowser/sqlitebrowser#160")
@pytest.mark.reported("sqlitebrowser/sqlitebrowser#4035")
@pytest.mark.reported("sqlitebrowser/sqlitebrowser#195")
@pytest.mark.reported("simonw/csvs-to-sqlite#62")
async def test_codes_keep_their_zeros_and_small_numbers_are_numbers(tmp_path: Path) -> None:
    run(tmp_path / "a.db", "CREATE TABLE t (id integer)")
    lines = ("code,color,rate,left", "0805,000000,0.000244,1", "12,314659,0,", "0123,5E92,-3.5e-05,7")
    (tmp_path / "codes.csv").write_text("\n".join(lines) + "\n", "utf-8")
    rows = ('["0805","000000",0.000244,1]', '["12","314659",0.0,null]', '["0123","5E92",-3.5e-05,7]')
    async with served("--write", "--ddl", "--files", tmp_path, tmp_path / "a.db") as wire:
        await wire.call("copy_from_file", file="codes.csv", table="codes")
        for source in ("codes", '"codes.csv"'):
            said = text_of(await wire.call("query_rows", sql=f"SELECT * FROM {source}"))
            assert all(row in said for row in rows), said


@pytest.mark.reported("executeautomation/mcp-database-server#29")
@pytest.mark.reported("mvanhorn/cli-printing-press#2811")
async def test_what_reads_is_read_in_any_form_and_nothing_behind_it_writes(tmp_path: Path) -> None:
    run(tmp_path / "a.db", "CREATE TABLE t (id integer)")
    async with served(tmp_path / "a.db") as wire:
        for sql in (
            "-- All of it;\nSELECT * FROM t;", "EXPLAIN QUERY PLAN SELECT * FROM t", "PRAGMA table_info(t)",
            "WITH a AS (SELECT 1) SELECT * FROM a", "SELECT 1;\n-- between;\nSELECT 2;",
        ):  # fmt: skip
            done = await wire.call("query_rows", sql=sql)
            assert not done.get("isError"), text_of(done)
        other = tmp_path / "other.db"
        for sql in (f"SELECT 1; ATTACH DATABASE '{other}' AS other", f"VACUUM INTO '{other}'"):
            assert (await wire.call("query_rows", sql=sql))["isError"]
    assert not other.exists()


@pytest.mark.reported("emilpriver/geni#29")
@pytest.mark.reported("spences10/mcp-sqlite-tools#16")
async def test_a_script_of_a_schema_runs_whole_and_again(tmp_path: Path) -> None:
    run(tmp_path / "app.db", "CREATE TABLE t (id integer)")
    script = """
    DROP INDEX IF EXISTS by_mail;
    DROP TABLE IF EXISTS people; -- the first time there is none
    /* people; and how to find them */
    CREATE TABLE IF NOT EXISTS people (id text PRIMARY KEY, mail text DEFAULT 'a;b');
    CREATE INDEX IF NOT EXISTS by_mail ON people (mail);
    """
    async with served("--ddl", tmp_path / "app.db") as wire:
        for schema in ("+ index by_mail\n+ table people", "nothing"):
            said = text_of(await wire.call("edit_schema", sql=script))
            assert f"4. CREATE INDEX\nSchema:\n{schema}" in said, said


@pytest.mark.reported("TablePlus/TablePlus#3899")
async def test_as_many_rows_come_in_each_time_as_the_file_has(tmp_path: Path) -> None:
    run(tmp_path / "a.db", "CREATE TABLE t (id integer)")
    records = [f'{number},"grade ""{number % 7}""\r\nand, more",{number * 1.5}' for number in range(30_011)]
    (tmp_path / "grades.csv").write_bytes("\r\n".join(["id,text,points", *records]).encode())
    async with served("--write", "--ddl", "--files", tmp_path, tmp_path / "a.db") as wire:
        for table in ("one", "two", "three"):
            said = text_of(await wire.call("copy_from_file", file="grades.csv", table=table))
            assert said.startswith(f"Inserted {len(records):,} rows"), said
            counted = text_of(await wire.call("query_rows", sql=f"SELECT count(*), count(DISTINCT id) FROM {table}"))
            assert counted.endswith(f"[{len(records)},{len(records)}]\n"), counted


@pytest.mark.reported("nao1215/filesql#475")
@pytest.mark.reported("simonw/sqlite-utils#605")
async def test_no_type_that_is_chosen_for_a_file_rounds_its_integers(tmp_path: Path) -> None:
    run(tmp_path / "a.db", "CREATE TABLE t (id integer)")
    (tmp_path / "mixed.csv").write_text("v\n9007199254740993\n0.5\n", "utf-8")
    (tmp_path / "long.csv").write_text("v\n11040320260000000001\n", "utf-8")
    (tmp_path / "long.jsonl").write_text('{"v": 11040320260000000001}\n', "utf-8")
    async with served("--write", "--ddl", "--files", tmp_path, tmp_path / "a.db") as wire:
        for file in ("mixed.csv", "long.csv", "long.jsonl"):
            await wire.call("copy_from_file", file=file, table=file)
            for source in (f'main."{file}"', f'"{file}"'):
                said = text_of(await wire.call("query_rows", sql=f"SELECT v FROM {source}"))
                assert '["9007199254740993"]' in said or '["11040320260000000001"]' in said, said


@pytest.mark.reported("pawelsalawa/letos#3148")
@pytest.mark.reported("berthubert/sqlitewrite#3")
@pytest.mark.reported("sqlitebrowser/sqlitebrowser#3895")
async def test_a_text_goes_on_behind_characters_that_nobody_sees(tmp_path: Path) -> None:
    run(tmp_path / "a.db", "CREATE TABLE t (id integer PRIMARY KEY, word text)")
    word = "a\0b\x1fc"
    async with served("--write", "--files", tmp_path, tmp_path / "a.db") as wire:
        await wire.call("write_rows", sql="INSERT INTO t (word) VALUES (?)", parameters=[word])
        shown = r'[1,"a\u0000b\u001fc"]'
        assert shown in text_of(await wire.call("query_rows", sql="SELECT * FROM t"))
        assert shown in text_of(await wire.call("get_table", table="t", sample=1))
        said = text_of(await wire.call("query_rows", sql="SELECT count(*) FROM t WHERE word = ?", parameters=[word]))
        assert said.endswith("[1]\n")
        await wire.call("copy_to_file", sql="SELECT id + 1 AS id, word FROM t", file="t.jsonl")
        await wire.call("copy_from_file", file="t.jsonl", table="t")
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        assert connection.execute("SELECT word FROM t").fetchall() == [(word,), (word,)]


@pytest.mark.reported("WingedGuardian/GENesis-AGI#1720")
@pytest.mark.parametrize("journal", ["delete", "wal"])
async def test_a_write_that_met_a_lock_holds_up_none_behind_it(tmp_path: Path, journal: str) -> None:
    path = tmp_path / "busy.db"
    run(path, f"PRAGMA journal_mode = {journal}; CREATE TABLE t (id integer)")
    async with served("--write", "--timeout", "1", "--workers", "1", path) as wire:
        with closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as writer:
            for _ in range(3):
                writer.execute("BEGIN IMMEDIATE")
                writer.execute("INSERT INTO t VALUES (1)")
                assert (await wire.call("write_rows", sql="INSERT INTO t VALUES (2)"))["isError"]
                writer.execute("COMMIT")
                said = text_of(await wire.call("write_rows", sql="INSERT INTO t VALUES (3)"))
                assert said.startswith("Done and committed."), said
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT id FROM t").fetchall() == [(1,), (3,)] * 3


_SEARCHED = """
CREATE VIRTUAL TABLE words USING fts5(x);
CREATE VIRTUAL TABLE older USING fts4(x);
CREATE VIRTUAL TABLE parts USING fts5(x, tokenize = 'trigram');
INSERT INTO words VALUES ('state-of-the-art POL-358, don''t'), ('AMF band 東京都'), ('AMF alone');
INSERT INTO older SELECT x FROM words;
INSERT INTO parts VALUES ('quick ok'), ('quick no'), ('修复 done');
"""


@pytest.mark.reported("tommy0103/obelisk#76")
@pytest.mark.reported("tommy0103/obelisk#9")
@pytest.mark.reported("chandra447/pi-hermes-memory#174")
@pytest.mark.reported("higebu/3gpp-mcp#47")
@pytest.mark.parametrize(
    ("table", "query", "count", "note"),
    [
        ("parts", "quick ok", 2, "not searched for, shorter than 3 characters: `ok`"),
        ("parts", "修复 OR no", 0, "`修复`, `no`; LIKE"),
        ("parts", '"quick ok"', 1, ""),
        ("parts", "x: quick", 2, ""),
        ("words", "東京", 0, "as spaces and signs divide them; LIKE"),
        ("older", "東京", 0, "as spaces and signs divide them; LIKE"),
        ("words", "AMF -band", 1, "`-band`: searched for, not excluded"),
        ("words", "AMF NOT band", 1, ""),
    ],
)
async def test_a_search_tells_what_its_index_cannot_find(
    tmp_path: Path, table: str, query: str, count: int, note: str
) -> None:
    run(tmp_path / "a.db", _SEARCHED)
    async with served(tmp_path / "a.db") as wire:
        said = text_of(await wire.call("search_text", table=table, query=query))
    head, second, *_ = said.splitlines()
    assert head == f"[{count} row{'' if count == 1 else 's'}]"
    assert note in second if note else second.startswith('["rowid"')


@pytest.mark.reported("Dicklesworthstone/mcp_agent_mail#67")
@pytest.mark.reported("yetidevworks/yetisearch#30")
@pytest.mark.reported("spences10/ccrecall#29")
@pytest.mark.reported("dbohdan/tinyfts#2")
async def test_a_query_is_told_how_signs_are_matched(tmp_path: Path) -> None:
    run(tmp_path / "a.db", _SEARCHED)
    async with served(tmp_path / "a.db") as wire:
        for sql, parameters in (
            ("SELECT * FROM words WHERE words MATCH 'POL-358'", []),
            ("SELECT * FROM words WHERE words MATCH ?", ["grammar::fa"]),
            ("SELECT * FROM words WHERE words MATCH 'don''t'", []),
            ("SELECT * FROM words('state-of-the-art')", []),
            ("SELECT * FROM older WHERE x MATCH '\"open'", []),
        ):
            said = text_of(await wire.call("query_rows", sql=sql, parameters=parameters))
            assert "words with signs in them stand in double quotes" in said, said
        said = text_of(await wire.call("query_rows", sql="SELECT * FROM words WHERE words MATCH 'a' AND xx = 1"))
        assert "Did you mean `x`?" in said
        for word in ("state-of-the-art", "POL-358", "don't"):
            said = text_of(await wire.call("search_text", query=word, table="words"))
            assert f"[{word}]" in said and said.startswith("[1 row]"), said


@pytest.mark.reported("simonw/csvs-to-sqlite#42")
@pytest.mark.reported("sqlitebrowser/sqlitebrowser#1934")
@pytest.mark.reported("tursodatabase/libsql#1212")
async def test_no_text_gets_among_numbers_without_a_word(tmp_path: Path) -> None:
    run(
        tmp_path / "a.db",
        "CREATE TABLE sales (id integer PRIMARY KEY, who text NOT NULL, amount numeric(10, 2), pieces int NOT NULL);",
    )
    (tmp_path / "words.csv").write_text('who,amount,pieces\nann,"1,234.50",1\n,2.50,2\nbob,N/A,3\n', "utf-8")
    (tmp_path / "empty.csv").write_text("who,amount,pieces\nann,,1\nbob,1,\n", "utf-8")
    (tmp_path / "plain.csv").write_text("who,amount,pieces\nann, 1e3 ,-1\nbob,,0\n", "utf-8")
    async with served("--write", "--files", tmp_path, tmp_path / "a.db") as wire:
        for dry_run in (True, False):
            call = {"table": "sales", "dry_run": dry_run}
            said = text_of(await wire.call("copy_from_file", file="words.csv", **call))
            # `sum` would take the first for 1, and the other for 0.
            assert 'as text in columns of numbers: `amount` in 2 records, the first "1,234.50" in record 1.' in said
            refused = await wire.call("copy_from_file", file="empty.csv", **call)
            assert refused["isError"] and "Record 2: `pieces` is empty, and NOT NULL" in text_of(refused)
            said = text_of(await wire.call("copy_from_file", file="plain.csv", **call))
            assert "2 rows" in said and "as text" not in said, said
        said = text_of(await wire.call("query_rows", sql="SELECT who, amount, pieces FROM sales"))
        assert said.endswith('["ann","1,234.50",1]\n["",2.5,2]\n["bob","N/A",3]\n["ann",1000,-1]\n["bob",null,0]\n')


@pytest.mark.reported("DeusData/codebase-memory-mcp#896")
async def test_rows_that_are_damaged_are_not_told_as_none(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    numbers = "WITH RECURSIVE c (x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM c LIMIT 2000)"
    run(
        path,
        f"""CREATE TABLE t (id integer PRIMARY KEY, label text, body text); CREATE INDEX by_label ON t (label);
        {numbers} INSERT INTO t SELECT x, 'l' || (x % 5), hex(zeroblob(200)) FROM c;""",
    )
    content = bytearray(path.read_bytes())
    page_bytes = int.from_bytes(content[16:18], "big")
    # Leaves of the table: one in its middle is overwritten.
    leaves = [start for start in range(page_bytes, len(content), page_bytes) if content[start] == 13]
    middle = leaves[len(leaves) // 2]
    content[middle : middle + page_bytes] = b"\xff" * page_bytes
    path.write_bytes(content)
    async with served("--files", tmp_path, path) as wire:
        assert text_of(await wire.call("query_rows", sql="SELECT count(*) FROM t")).endswith("[2000]\n")
        for tool, arguments in (
            ("query_rows", {"sql": "SELECT max(body) FROM t"}),
            ("query_rows", {"sql": "SELECT id, body FROM t"}),
            ("copy_to_file", {"sql": "SELECT * FROM t", "file": "t.csv"}),
        ):
            done = await wire.call(tool, **arguments)
            assert done.get("isError") or "the next page" in text_of(done), tool
        assert not (tmp_path / "t.csv").exists()
        said = text_of(await wire.call("list_tables"))
        assert "the file is damaged where values of t are: `run_check`" in said and "no time" not in said
        assert "the file is damaged where values of this table are" in text_of(await wire.call("get_table", table="t"))
        assert "has problems" in text_of(await wire.call("run_check"))


@pytest.mark.reported("ohdearquant/khive#2273")
@pytest.mark.reported("Dahliyaal/justicelibre#8")
@pytest.mark.reported("ChuckPa/DBRepair#268")
async def test_no_index_of_words_is_called_whole_that_nobody_compared(tmp_path: Path) -> None:
    run(
        tmp_path / "a.db",
        """CREATE TABLE docs (id integer PRIMARY KEY, title text, body text);
        CREATE VIRTUAL TABLE by_words USING fts5(title, body, content='docs', content_rowid='id');
        CREATE VIRTUAL TABLE older USING fts4(content="docs", title, body);
        CREATE TRIGGER added AFTER INSERT ON docs BEGIN
            INSERT INTO by_words (rowid, title, body) VALUES (new.id, new.title, new.body);
            INSERT INTO older (docid, title, body) VALUES (new.id, new.title, new.body);
        END;
        INSERT INTO docs VALUES (1, 'a', 'b'), (2, 'c', 'd');""",
    )
    async with served("--write", tmp_path / "a.db") as wire:
        whole = text_of(await wire.call("run_check"))
        assert whole.startswith("`a` is whole") and "Not compared with their rows: " in whole and "by_words" in whole
        await wire.call("write_rows", sql="DELETE FROM docs WHERE id = 2")
        said = text_of(await wire.call("run_check"))
        for table in ("by_words", "older"):
            assert f"full-text index {table} has entries that docs has no rows for: 1" in said
        assert "VALUES ('rebuild')" in said and "backup" not in said
        check = await wire.call("write_rows", sql="INSERT INTO by_words (by_words, rank) VALUES ('integrity-check', 1)")
        assert check["isError"] and "does not fit its rows" in text_of(check)
        rebuild = "INSERT INTO by_words (by_words) VALUES ('rebuild'); INSERT INTO older (older) VALUES ('rebuild')"
        await wire.call("write_rows", sql=rebuild)
        assert text_of(await wire.call("run_check")) == whole


@pytest.mark.reported("coleifer/peewee#1500")
@pytest.mark.reported("tursodatabase/turso#6482")
@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("REPLACE INTO users VALUES (9, 'a')", "1 row, in place of 1, and 1 more by triggers and foreign keys"),
        ("UPDATE OR REPLACE users SET mail = 'a' WHERE id = 2", "1 row, in place of 1, and 1 more by"),
        ("INSERT OR REPLACE INTO \"users\" VALUES (1, 'b'), (9, 'd')", "2 rows, in place of 2, and 1 more by"),
        ("INSERT INTO codes VALUES (9, 'x')", "1 row, in place of 1 in codes"),
        ("UPDATE codes SET code = 'x' WHERE id = 2", "1 row, in place of 1 in codes"),
        ("REPLACE INTO users VALUES (9, 'new')", "1 row in users"),
        ("INSERT INTO users VALUES (1, 'z') ON CONFLICT DO UPDATE SET mail = 'z'", "1 row in users"),
        ("REPLACE INTO trimmed VALUES (1), (2), (9)", "3 rows, and 2 more by triggers"),
    ],
)
async def test_rows_that_make_room_for_others_are_counted(tmp_path: Path, sql: str, said: str) -> None:
    run(
        tmp_path / "a.db",
        """CREATE TABLE users (id integer PRIMARY KEY, mail text UNIQUE);
        CREATE TABLE likes (id integer PRIMARY KEY, user_id int REFERENCES users (id) ON DELETE CASCADE);
        CREATE TABLE codes (id integer PRIMARY KEY, code text UNIQUE ON CONFLICT REPLACE);
        CREATE TABLE trimmed (id integer PRIMARY KEY);
        CREATE TRIGGER trim AFTER INSERT ON trimmed BEGIN DELETE FROM trimmed WHERE id < new.id - 2; END;
        INSERT INTO users VALUES (1, 'a'), (2, 'b'), (3, 'c'); INSERT INTO likes VALUES (1, 1);
        INSERT INTO codes VALUES (1, 'x'), (2, 'y');""",
    )
    (tmp_path / "codes.csv").write_text("id,code\n7,x\n8,x\n", "utf-8")
    async with served("--write", "--files", tmp_path, tmp_path / "a.db") as wire:
        done = await wire.call("copy_from_file", file="codes.csv", table="codes", dry_run=True)
        assert "They are in place of 2 rows" in text_of(done)
        for arguments in ({"dry_run": True}, {}):
            lines = text_of(await wire.call("write_rows", sql=sql, **arguments)).splitlines()
            assert lines[1].startswith(said), lines


@pytest.mark.reported("simonw/sqlite-utils#149")
@pytest.mark.reported("mareforma/mareforma#31")
@pytest.mark.reported("MemTensor/MemOS#2363")
async def test_triggers_that_a_replaced_row_does_not_run_are_told(tmp_path: Path) -> None:
    remove = "INSERT INTO words (words, rowid, title) VALUES ('delete', old.id, old.title);"
    run(
        tmp_path / "a.db",
        f"""CREATE TABLE docs (id integer PRIMARY KEY, title text, UNIQUE (title) ON CONFLICT REPLACE);
        CREATE VIRTUAL TABLE words USING fts5 (title, content=docs, content_rowid=id);
        CREATE TRIGGER added AFTER INSERT ON docs BEGIN
            INSERT INTO words (rowid, title) VALUES (new.id, new.title); END;
        CREATE TRIGGER removed AFTER DELETE ON docs BEGIN {remove} END;
        CREATE TRIGGER edited AFTER UPDATE OF title ON docs BEGIN {remove}
            INSERT INTO words (rowid, title) VALUES (new.id, new.title); END;
        INSERT INTO docs VALUES (1, 'alpha'), (2, 'beta');
        CREATE TABLE queue (id integer PRIMARY KEY);
        CREATE TRIGGER trimmed AFTER INSERT ON queue BEGIN DELETE FROM queue WHERE id < new.id - 9; END;
        CREATE TRIGGER left AFTER DELETE ON queue BEGIN SELECT 1; END;""",
    )
    (tmp_path / "docs.csv").write_text("id,title\n7,beta\n", "utf-8")
    said = "REPLACE ran no DELETE trigger (removed) for rows that were there; DELETE, then INSERT, does"
    async with served("--write", "--files", tmp_path, tmp_path / "a.db") as wire:
        replace = "REPLACE INTO docs VALUES (1, 'gamma') RETURNING id"
        done = text_of(await wire.call("write_rows", sql=replace, dry_run=True))
        assert f"1 row, in place of 1 in docs, words (trigger added); {said}\n" in done, done
        done = text_of(await wire.call("copy_from_file", file="docs.csv", table="docs", dry_run=True))
        assert "in place of 1 row" in done and said in done, done
        for sql in (
            "REPLACE INTO docs VALUES (9, 'delta')",
            "DELETE FROM docs WHERE id = 1; INSERT INTO docs VALUES (1, 'gamma')",
            "INSERT INTO docs VALUES (2, 'zeta') ON CONFLICT (id) DO UPDATE SET title = excluded.title",
        ):
            done = text_of(await wire.call("write_rows", sql=sql))
            assert done.startswith("Done") and "DELETE trigger" not in done, done
        check = await wire.call("write_rows", sql="INSERT INTO words (words, rank) VALUES ('integrity-check', 1)")
        assert not check.get("isError"), text_of(check)
        done = text_of(await wire.call("write_rows", sql="REPLACE INTO queue VALUES (5)"))
        assert "1 row in queue; REPLACE runs no DELETE trigger (left) for rows that were there;" in done, done


_TRIGGER = "CREATE TRIGGER logged AFTER INSERT ON log BEGIN UPDATE users SET mail = NULL WHERE 0; END;"
_VIEW = "CREATE VIEW mails AS SELECT mail FROM users;"
_DEPENDENTS = f"""
CREATE TABLE users (id integer PRIMARY KEY AUTOINCREMENT, mail text);
CREATE TABLE likes (id integer PRIMARY KEY, user_id int REFERENCES users (id) ON DELETE CASCADE);
CREATE TABLE log (what text);
{_TRIGGER}
{_VIEW}
INSERT INTO users VALUES (1, 'a'), (9, 'b');
DELETE FROM users WHERE id = 9;
"""
_COPY = "CREATE TABLE {new} (id integer PRIMARY KEY AUTOINCREMENT, mail text NOT NULL); INSERT INTO {new} SELECT * FROM"
_RENAMED_FIRST = f"ALTER TABLE users RENAME TO users_old; {_COPY.format(new='users')} users_old;"
_DROPPED_FIRST = (
    f"DROP VIEW mails; DROP TRIGGER logged; {_COPY.format(new='n')} users; DROP TABLE users;"
    f"ALTER TABLE n RENAME TO users; {_VIEW} {_TRIGGER}"
)


@pytest.mark.reported("cloudflare/workerd#2063")
@pytest.mark.reported("dotnet/EntityFramework.Docs#2227")
@pytest.mark.reported("tursodatabase/turso#8421")
@pytest.mark.parametrize("has_rows", [True, False])
async def test_no_key_follows_a_renamed_table_that_is_dropped(tmp_path: Path, has_rows: bool) -> None:
    run(tmp_path / "a.db", _DEPENDENTS)
    if has_rows:
        run(tmp_path / "a.db", "INSERT INTO likes VALUES (1, 1)")
    async with served("--write", "--ddl", tmp_path / "a.db") as wire:
        for arguments in ({"dry_run": True}, {}):
            done = await wire.call("edit_schema", sql=f"{_RENAMED_FIRST} DROP TABLE users_old", **arguments)
            assert done["isError"], text_of(done)
            assert "`likes.user_id` follows the renamed table to `users_old`" in text_of(done)
            assert "drop the old table, and rename the new one to `users`. Nothing was changed." in text_of(done)
        said = text_of(await wire.call("edit_schema", sql=_RENAMED_FIRST, dry_run=True))
        followers = "These refer to `users_old` now, not to the new `users`:\ntable likes\ntrigger logged\nview mails\n"
        assert followers in said
        said = text_of(await wire.call("edit_schema", sql=_DROPPED_FIRST))
        assert "~ table users" in said and " refer" not in said and "fail now" not in said
        counted = text_of(await wire.call("query_rows", sql="SELECT count(*) FROM likes"))
        assert counted.endswith(f"[{int(has_rows)}]\n")


@pytest.mark.reported("JasperFx/weasel#539")
@pytest.mark.reported("neilotoole/sq#757")
async def test_a_table_that_is_made_anew_tells_which_numbers_come_again(tmp_path: Path) -> None:
    run(tmp_path / "a.db", _DEPENDENTS)
    kept = _DROPPED_FIRST.replace(
        "DROP TABLE users;", "INSERT INTO n VALUES (9, ''); DELETE FROM n WHERE id = 9; DROP TABLE users;"
    )
    async with served("--write", "--ddl", tmp_path / "a.db") as wire:
        said = text_of(await wire.call("edit_schema", sql=_DROPPED_FIRST, dry_run=True))
        assert "AUTOINCREMENT" in said and "users: goes on behind 1, before behind 9" in said
        assert "AUTOINCREMENT" not in text_of(await wire.call("edit_schema", sql=kept))
        said = text_of(await wire.call("write_rows", sql="INSERT INTO users (mail) VALUES ('c') RETURNING id"))
        assert said.endswith("[10]\n")


@pytest.mark.reported("NousResearch/hermes-agent#95208")
@pytest.mark.reported("dbcodeio/public#819")
async def test_what_a_dropped_table_breaks_is_told(tmp_path: Path) -> None:
    run(tmp_path / "a.db", _DEPENDENTS)
    trigger = "CREATE TRIGGER changed INSTEAD OF UPDATE ON mails BEGIN INSERT INTO {table} VALUES (new.mail); END"
    async with served("--ddl", tmp_path / "a.db") as wire:
        said = text_of(await wire.call("edit_schema", sql="DROP TABLE users", dry_run=True))
        assert "Foreign keys to tables that are not there:\nlikes.user_id -> users\n" in said
        assert 'fail now:\nSELECT * FROM "mails": no such table: main.users\nINSERT INTO "log" DEFAULT VALUES: ' in said
        said = text_of(await wire.call("edit_schema", sql=trigger.format(table="gone"), dry_run=True))
        assert 'UPDATE "mails" SET "mail" = "mail": no such table: main.gone' in said
        for sql in (trigger.format(table="log"), "DROP VIEW mails; CREATE VIEW mails AS SELECT 1 AS mail"):
            said = text_of(await wire.call("edit_schema", sql=sql, dry_run=True))
            assert "not there" not in said and "fail now" not in said, said


@pytest.mark.reported("FreshRSS/FreshRSS#4915")
@pytest.mark.reported("sqlitebrowser/sqlitebrowser#4010")
@pytest.mark.reported("ccgus/fmdb#460")
async def test_letters_of_which_one_case_is_found_are_told(tmp_path: Path) -> None:
    run(tmp_path / "a.db", "CREATE TABLE t (a text); INSERT INTO t VALUES ('Творог'), ('Übung'), ('日本'), ('Milk');")
    told: dict[str, list[Any]] = {
        "SELECT a FROM t WHERE a LIKE '%творог%'": [],
        "SELECT a FROM t WHERE a LIKE ?": ["%übung%"],
        "SELECT a FROM t WHERE a = 'übung' COLLATE NOCASE": [],
    }
    untold: dict[str, list[Any]] = {
        "SELECT a FROM t WHERE a LIKE '%milk%'": [],
        "SELECT a FROM t WHERE a LIKE ?": ["%日本%"],
        "SELECT a FROM t WHERE a = 'Übung'": [],
        "SELECT a, 'like' FROM t WHERE a <> ?": ["Übung"],
    }
    async with served(tmp_path / "a.db") as wire:
        for sql, parameters in told.items():
            said = text_of(await wire.call("query_rows", sql=sql, parameters=parameters))
            assert said.startswith("[0 rows]\n[LIKE and NOCASE ignore the case of ASCII letters only"), said
        for sql, parameters in untold.items():
            assert "ASCII" not in text_of(await wire.call("query_rows", sql=sql, parameters=parameters))


@pytest.mark.reported("simonw/sqlite-utils#507")
@pytest.mark.reported("wandb/weave#6731")
async def test_half_a_character_in_a_file_is_named_as_that(tmp_path: Path) -> None:
    run(tmp_path / "a.db", "CREATE TABLE t (a text)")
    (tmp_path / "value.jsonl").write_text('{"a": "whole"}\n{"a": "half \\ud83d"}\n', "utf-8")
    (tmp_path / "field.json").write_text('[{"a\\ud83d": 1}]', "utf-8")
    async with served("--write", "--ddl", "--files", tmp_path, tmp_path / "a.db") as wire:
        for tool, arguments, place in (
            ("copy_from_file", {"file": "value.jsonl", "table": "t"}, "Record 2: "),
            ("copy_from_file", {"file": "value.jsonl", "table": "new", "dry_run": True}, "Record 2: "),
            ("copy_from_file", {"file": "field.json", "table": "new"}, ""),
            ("query_rows", {"sql": 'SELECT * FROM "value.jsonl"'}, "`value.jsonl`: "),
            ("query_rows", {"sql": 'SELECT * FROM "field.json"'}, "`field.json`: "),
        ):
            done = await wire.call(tool, **arguments)
            said = text_of(done)
            assert done["isError"] and said.startswith(f"{place}There is half of a character"), said
            assert "codec" not in said and "run_check" not in said, said
        assert text_of(await wire.call("query_rows", sql="SELECT count(*) FROM t")).endswith("[0]\n")


@pytest.mark.reported("tursodatabase/turso#9158")
@pytest.mark.reported("antonycourtney/tad#115")
async def test_a_sum_beyond_64_bits_is_no_wrong_figure_and_has_another_way(tmp_path: Path) -> None:
    run(
        tmp_path / "a.db",
        f"CREATE TABLE t (a TEXT, n INTEGER); INSERT INTO t VALUES ('{2**63 - 1}', {2**63 - 1}), (2, 2)",
    )
    async with served(tmp_path / "a.db") as wire:
        for column in ("a", "n"):
            failed = await wire.call("query_rows", sql=f"SELECT sum({column}) FROM t")
            assert failed["isError"] and "beyond 64 bits: `total(column)` adds" in text_of(failed), text_of(failed)
            said = text_of(await wire.call("query_rows", sql=f"SELECT total({column}) FROM t"))
            assert said.endswith("[9.223372036854776e+18]\n"), said


@pytest.mark.reported("dbeaver/dbeaver#34986")
@pytest.mark.reported("sqlitebrowser/sqlitebrowser#3004")
async def test_texts_that_count_as_other_numbers_are_told(tmp_path: Path) -> None:
    run(
        tmp_path / "a.db",
        f"""CREATE TABLE sales (id integer PRIMARY KEY, amount integer, rate text, pieces text, doc text);
        INSERT INTO sales VALUES (1, '1,000,000', '4,5', '3', '{{}}'), (2, 200, '', '{2**53 + 1}', '{{}}');
        CREATE TABLE other (id integer PRIMARY KEY, amount integer); INSERT INTO other VALUES (1, 5);
        CREATE TABLE mails (id integer PRIMARY KEY, "from" text, "end" text);
        INSERT INTO mails VALUES (1, 'a@b', 'x');""",
    )
    amount = "`sales.amount` holds '1,000,000', which sums and arithmetic take for 1"
    rate = "`sales.rate` holds '4,5', which sums and arithmetic take for 4"
    async with served("--write", tmp_path / "a.db") as wire:
        for columns, notes in (
            ("sum(amount)", [amount]), ("avg(DISTINCT s.amount), total(s.rate)", [amount, rate]),
            ("s.amount * 2", [amount]), ("sum(pieces * rate)", [rate]), ("2 + s.amount", [amount]),
            ("sum(pieces), count(*), doc -> '$.a', amount || ' * 2'", []), ("amount -- * 2\n", []),
            ("sum(CAST(replace(amount, ',', '') AS INTEGER))", []),
        ):  # fmt: skip
            sql = f"SELECT {columns} FROM sales s"
            said = text_of(await wire.call("query_rows", sql=sql))
            assert said.count("holds") == len(notes) and all(f"[{note}]\n" in said for note in notes), said
        joined = "SELECT sum(o.amount) FROM sales s JOIN other o ON o.id = s.id"
        assert "holds" not in text_of(await wire.call("query_rows", sql=joined))
        for columns in ("*", "m.*", "CASE id WHEN 1 THEN 2 END * 3"):
            said = text_of(await wire.call("query_rows", sql=f"SELECT {columns} FROM mails m"))
            assert "holds" not in said, said
        assert "holds 'a@b'" in text_of(await wire.call("query_rows", sql='SELECT "from" * 2 FROM mails'))
        update = "UPDATE sales SET amount = amount + 1"
        done = text_of(await wire.call("write_rows", sql=update, dry_run=True))
        assert f"2 rows in sales; {amount}\n" in done, done
        done = text_of(await wire.call("write_rows", sql=f"{update}; {update} WHERE id = 1", dry_run=True))
        assert f"1. 2 rows in sales; {amount}\n2. 1 row in sales\n" in done, done
    async with served("--mask", "sales.amount", tmp_path / "a.db") as wire:
        assert "holds" not in text_of(await wire.call("query_rows", sql="SELECT sum(amount) FROM sales"))


_TIMES = """
CREATE TABLE events (
    id integer PRIMARY KEY, iso text, spaced datetime, seconds integer, milliseconds integer, american text, pieces text
);
INSERT INTO events VALUES
    (1, '2026-12-01T10:00:00Z', '2026-12-01 10:00:00', 1764583200, 1764583200000, '12/01/2026', '10'),
    (2, '2026-11-01T10:00:00Z', '2026-11-01 10:00:00', 1761991200, 1761991200000, '11/01/2026', '9');
CREATE VIEW times AS SELECT id, iso FROM events;
"""
_ISO = "`events.iso` holds times as '2026-12-01T10:00:00Z', and a space sorts before T, whatever the time: compare "
_SPACED = (
    "`events.spaced` holds times as '2026-12-01 10:00:00', and a space sorts before T, whatever the time: compare "
)


@pytest.mark.reported("HKUDS/AI-Trader#296")
@pytest.mark.reported("openwallet-foundation/askar#260")
@pytest.mark.reported("getsentry/taskbroker#106")
@pytest.mark.reported("ujeenet/rustango#569")
@pytest.mark.reported("prisma/orm#12831")
@pytest.mark.reported("osTicket/osTicket#1570")
@pytest.mark.reported("metabase/metabase#74860")
@pytest.mark.parametrize(
    ("condition", "parameters", "note"),
    [
        ("iso >= datetime('2026-12-01 12:00:00')", [], f"{_ISO}datetime(iso) with datetime(...)"),
        ("iso NOT BETWEEN date('now') AND CURRENT_TIMESTAMP", [], _ISO),
        ("e.iso = '2026-12-01 10:00:00'", [], _ISO),
        ("id <> ? AND '?' <> 'a' AND iso < ?", [5, "2026-12-01 12:00:00"], _ISO),
        ("spaced > '2026-12-01T09:00:00Z'", [], _SPACED),
        ("spaced > strftime('%Y-%m-%dT%H:%M:%SZ', 'now')", [], _SPACED),
        (
            "seconds > '2026-01-01'",
            [],
            "`events.seconds` holds numbers, and each is less than any text: compare datetime(",
        ),
        ("milliseconds < date('now')", [], "compare datetime(milliseconds / 1000, 'unixepoch')"),
        ("iso > 1764583200", [], "not as a number: compare unixepoch(iso)"),
        ("american >= '2026-12-01'", [], "`events.american` holds days as '12/01/2026', by which text does not sort"),
        (
            "spaced BETWEEN ? AND ?",
            ["2026-11-01", "2026-12-01"],
            "and all of '2026-12-01' are beyond it: compare date(",
        ),
        ("iso <= '2026-12-01'", [], "and all of '2026-12-01' are beyond it: compare date(iso)"),
        ("pieces > 8", [], "holds numbers as text, by which '10' is before '9': compare CAST(pieces AS REAL)"),
    ],
)
async def test_a_comparison_of_unlike_times_or_numbers_is_told(
    tmp_path: Path, condition: str, parameters: list[Any], note: str
) -> None:
    run(tmp_path / "a.db", _TIMES)
    async with served("--write", tmp_path / "a.db") as wire:
        sql = f"SELECT id FROM events e WHERE {condition}"
        assert note in text_of(await wire.call("query_rows", sql=sql, parameters=parameters))
        sql = f"DELETE FROM events AS e WHERE {condition}"
        assert note in text_of(await wire.call("write_rows", sql=sql, parameters=parameters, dry_run=True))


@pytest.mark.reported("kaeawc/auto-mobile#3157")
async def test_comparisons_of_like_times_and_of_masked_ones_are_not_told(tmp_path: Path) -> None:
    run(tmp_path / "a.db", _TIMES)
    conditions = (
        "datetime(iso) >= datetime('now')", "iso >= strftime('%Y-%m-%dT%H:%M:%SZ', 'now')", "iso > '2026-12-01'",
        "iso > datetime('now') || 'Z'", "spaced < datetime('now')", "seconds > unixepoch('now')", "pieces = 9",
        "id > 1", "datetime(seconds, 'unixepoch') > '2026-01-01'",
    )  # fmt: skip
    async with served(tmp_path / "a.db") as wire:
        for condition in conditions:
            said = text_of(await wire.call("query_rows", sql=f"SELECT id FROM events WHERE {condition}"))
            assert "holds" not in said, said
    async with served("--mask", "events.iso", tmp_path / "a.db") as wire:
        for table in ("events", "times"):
            said = text_of(await wire.call("query_rows", sql=f"SELECT id FROM {table} WHERE iso > datetime('now')"))
            assert "holds" not in said, said


@pytest.mark.reported("nao1215/sqly#890")
@pytest.mark.reported("pawelsalawa/letos#3123")
@pytest.mark.reported("coleifer/sqlite-web#178")
async def test_bytes_that_a_csv_file_takes_out_come_back_as_bytes(tmp_path: Path) -> None:
    run(
        tmp_path / "a.db",
        """CREATE TABLE files (id integer PRIMARY KEY, content blob, note text);
        CREATE TABLE strict_files (id integer PRIMARY KEY, content BLOB, note text) STRICT;
        CREATE TABLE loose_files (id integer PRIMARY KEY, content longblob, note text);
        CREATE TABLE jsonb_files (id integer PRIMARY KEY, content JSONB, note text);
        CREATE TABLE uuid_files (id integer PRIMARY KEY, content binary(16), note text);
        CREATE TABLE untyped_files (id integer PRIMARY KEY, content, note text); CREATE TABLE prices (content real);
        INSERT INTO files VALUES (1, x'00ff', 'x'), (2, x'', 'b'), (3, NULL, 'c');""",
    )
    (tmp_path / "mixed.csv").write_text("content\nx'41'\nplain\n", "utf-8")
    async with served("--write", "--ddl", "--files", tmp_path, tmp_path / "a.db") as wire:
        await wire.call("copy_to_file", sql="SELECT * FROM files", file="files.csv")
        kinds = ("strict", "loose", "jsonb", "uuid", "untyped", "new")
        for table in [f"{kind}_files" for kind in kinds]:
            done = await wire.call("copy_from_file", file="files.csv", table=table)
            assert not done.get("isError"), text_of(done)
            said = text_of(await wire.call("get_table", table=table, compare_with="files"))
            assert said.endswith("No row differs.\n"), said
        same = 'SELECT count(*) FROM files f JOIN "files.csv" c ON c.content = f.content'
        assert text_of(await wire.call("query_rows", sql=same)).endswith("[2]\n")
        said = text_of(await wire.call("query_rows", sql='SELECT content FROM "mixed.csv"'))
        assert """["x'41'"]""" in said, said
        done = text_of(await wire.call("copy_from_file", file="mixed.csv", table="prices"))
        assert """kept as text in columns of numbers: `content` in 2 records, the first "x'41'" in record 1""" in done


@pytest.mark.reported("sqlitebrowser/sqlitebrowser#54")
@pytest.mark.reported("sqlitebrowser/sqlitebrowser#124")
async def test_a_table_in_the_order_of_an_application_stops_no_check_of_others(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    run(path, "CREATE TABLE words (word text); CREATE INDEX by_word ON words (word); INSERT INTO words VALUES ('a');")
    with closing(sqlite3.connect(path)) as connection:
        connection.create_collation("LOCALIZED", lambda one, other: (one > other) - (one < other))
        connection.executescript(
            "CREATE TABLE channels (id integer PRIMARY KEY, name text COLLATE LOCALIZED UNIQUE);"
            "INSERT INTO channels VALUES (1, 'b')"
        )
    skipped = "Not checked, because their order needs a collation of their application: channels."
    async with served(path) as wire:
        for quick in (True, False):
            said = text_of(await wire.call("run_check", quick=quick))
            assert said.startswith("`a` is whole") and skipped in said, said
        # A row comes in while the index is said to be for others.
        change = "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = {} WHERE name = 'by_word';"
        run(path, change.format("sql || ' WHERE word IS NULL'"))
        run(path, "INSERT INTO words VALUES ('c');")
        run(path, change.format("replace(sql, ' WHERE word IS NULL', '')"))
        said = text_of(await wire.call("run_check"))
        assert "by_word" in said and "REINDEX" in said and skipped in said, said


@pytest.mark.reported("abrignoni/ALEAPP#711")
@pytest.mark.reported("calebevans/mulder#86")
@pytest.mark.reported("NevaMind-AI/memU#503")
async def test_a_file_is_opened_whose_name_means_something_in_a_uri(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a#1.db", "50%41.db", "b.db?mode=rwc&x=.db")]
    for path in paths:
        run(path, f"CREATE TABLE names (name text); INSERT INTO names VALUES ('{path.name}')")
    async with served(*(f"n{number}={path}" for number, path in enumerate(paths))) as wire:
        for number, path in enumerate(paths):
            said = text_of(await wire.call("query_rows", sql="SELECT name FROM names", database=f"n{number}"))
            assert said.endswith(f'["{path.name}"]\n'), said
    assert sorted(tmp_path.iterdir()) == sorted(paths)


@pytest.mark.reported("trinodb/trino#28867")
@pytest.mark.reported("sqlitebrowser/sqlitebrowser#2175")
async def test_a_number_of_json_with_more_digits_than_a_real_keeps_them(tmp_path: Path) -> None:
    run(tmp_path / "a.db", "CREATE TABLE kept (amount text, share real)")
    (tmp_path / "a.jsonl").write_text(
        '{"amount": 12345678901234567.89, "share": 0.10000000000000001}\n'
        '{"amount": 1.5, "share": 0.30000000000000004}\n'
        '{"amount": 9007199254740993.5, "share": 0.1000000000000000055511151231257827021181583404541015625}\n',
        "utf-8",
    )
    async with served("--write", "--ddl", "--files", tmp_path, tmp_path / "a.db") as wire:
        for table in ("kept", "made"):
            await wire.call("copy_from_file", file="a.jsonl", table=table)
        for source in ("kept", "made", "'a.jsonl'"):
            said = text_of(await wire.call("query_rows", sql=f"SELECT amount || '', share FROM {source}"))
            rows = '["12345678901234567.89",0.1]\n["1.5",0.30000000000000004]\n["9007199254740993.5",0.1]\n'
            assert said.endswith(rows), said


@pytest.mark.reported("ghaering/pysqlite#14")
async def test_digits_that_a_column_of_numbers_does_not_keep_are_told(tmp_path: Path) -> None:
    run(tmp_path / "a.db", "CREATE TABLE sales (id integer, amount decimal(20, 2), share real, note text)")
    long = "12345678901234567.89"
    (tmp_path / "a.csv").write_text(f"id,amount,share,note\n9007199254740993,{long},9007199254740993,{long}\n", "utf-8")
    (tmp_path / "b.jsonl").write_text(f'{{"id": 1, "amount": {long}, "share": 0.30000000000000004}}\n', "utf-8")
    async with served("--write", "--files", tmp_path, tmp_path / "a.db") as wire:
        said = text_of(await wire.call("copy_from_file", file="a.csv", table="sales", dry_run=True))
        told = f'of a real: `amount` in 1 record, the first "{long}" in record 1; `share` in 1 record, the first "900'
        assert told in said and "`id`" not in said and "`note`" not in said, said
        said = text_of(await wire.call("copy_from_file", file="b.jsonl", table="sales"))
        assert "of a real: `amount` in 1 record" in said and "`share`" not in said, said
        (tmp_path / "c.csv").write_text("id,amount,share\n2,1234567890.12,0.30000000000000004\n", "utf-8")
        assert "Rounded" not in text_of(await wire.call("copy_from_file", file="c.csv", table="sales"))
