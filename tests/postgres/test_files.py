"""Rows into and out of files of the operator's folder: exact both ways, all or none, and no other file than named."""

import json
import os
from pathlib import Path

import pytest
from mcp.server.auth.middleware.auth_context import auth_context_var
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.shared.exceptions import MCPError

from mcp_batteries.settings import load
from mcp_postgres.policy import Policy
from mcp_postgres.settings import Settings
from postgres.serving import Base, inside, make, text_of

pytestmark = pytest.mark.anyio

VALUES = """
CREATE TYPE mood AS ENUM ('sad', 'happy');
CREATE TABLE kinds (id bigint PRIMARY KEY, whole numeric, real double precision, word text, need text NOT NULL,
    flag boolean, day date, moment timestamptz, bytes bytea, doc jsonb, list integer[], words text[], mood mood);
INSERT INTO kinds VALUES
    (9223372036854775807, 12345678901234567890.123456789, 0.1, 'a,"b"' || chr(10) || 'c', '', true, 'infinity',
     '2024-02-29 12:00:00.123456+02', '\\x00ff', '{"a": [1, null, "x"]}', '{1,NULL,3}', '{"a b",NULL,"c\\"d"}',
     'happy'),
    (2, 'NaN', '-Infinity', '', 'x', false, '0044-03-15 BC', NULL, '', '[1.5]', '{}', '{}', NULL),
    (3, NULL, NULL, NULL, ' ', NULL, NULL, NULL, NULL, '"text"', NULL, NULL, 'sad');
CREATE TABLE copy (LIKE kinds INCLUDING ALL);
CREATE TABLE secret (word text); INSERT INTO secret VALUES ('hidden');
CREATE TABLE guarded (id integer PRIMARY KEY, note text CHECK (note <> 'bad'));
"""


def same(base: Base) -> bool:
    (found,) = base.rows("SELECT count(*) FROM (TABLE kinds EXCEPT TABLE copy) x")
    return found == (0,) and base.rows("SELECT count(*) FROM copy") == [(3,)]


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
async def test_what_goes_out_comes_back_exactly(tmp_path: Path, ending: str) -> None:
    base = make(VALUES)
    name = f"kinds.{ending}"
    async with inside("--write", "--files", tmp_path, f"app={base.url('owner')}") as wire:
        said = text_of(await wire.call("copy_to_file", sql="SELECT * FROM kinds ORDER BY id -- all;", file=name))
        size = (tmp_path / name).stat().st_size
        assert said.startswith(f"Wrote 3 rows, {size:,} bytes, to `{name}`, with the columns id, "), said
        assert f"1 file with rows\n- {name}: {size:,} bytes" in text_of(await wire.call("list_objects"))
        assert "with rows" not in text_of(await wire.call("list_objects", kind="types"))
        tried = text_of(await wire.call("copy_from_file", file=name, table="copy", dry_run=True))
        assert "would insert 3 rows" in tried and base.rows("SELECT count(*) FROM copy") == [(0,)], tried
        said = text_of(await wire.call("copy_from_file", file=name, table="public.copy"))
        assert "Inserted 3 rows" in said, said
    assert same(base)


@pytest.mark.parametrize(
    ("more", "is_shown"),
    [
        (["--write"], True),
        ([], False),
        (["--write", "--read-only"], False),
        (["--write", "--mask", "public.t.name"], False),
    ],
)
async def test_a_list_shows_lines_of_files_to_whom_may_import_them(
    tmp_path: Path, more: list[str], is_shown: bool
) -> None:
    (tmp_path / "a.csv").write_text("id,name\n1,canary\n", "utf-8")
    async with inside(*more, "--files", tmp_path, f"app={make().url('postgres')}") as wire:
        listed = text_of(await wire.call("list_objects"))
    assert "- a.csv: 17 bytes" in listed and ("canary" in listed) is is_shown, listed


def test_a_token_may_allow_less_than_to_import(tmp_path: Path) -> None:
    policy = Policy(load(Settings, ["--write", "--files", str(tmp_path), "postgresql://localhost/app"]))
    assert policy.may_show_files()
    user = AuthenticatedUser(AccessToken(token="secret", client_id="alice", scopes=["read"]))
    reset = auth_context_var.set(user)
    try:
        assert not policy.may_show_files()
    finally:
        auth_context_var.reset(reset)


async def test_columns_of_parquet_have_types(tmp_path: Path) -> None:
    base = make(VALUES)
    many = "SELECT g AS id, g / 4.0::float8 AS share, g % 2 = 0 AS even, '\\x00'::bytea AS raw, now()::timestamp AS at"
    async with inside("--write", "--ddl", "--files", tmp_path, f"app={base.url('owner')}") as wire:
        said = text_of(await wire.call("copy_to_file", sql=f"{many} FROM generate_series(1, 2500) g", file="m.parquet"))
        assert "Wrote 2,500 rows" in said, said
        said = text_of(await wire.call("copy_from_file", file="m.parquet", table="made"))
        for column in ('"id" bigint', '"share" double precision', '"even" boolean', '"raw" bytea', '"at" timestamp'):
            assert column in said, said
        failing = "SELECT 1 / (g - 900) FROM generate_series(1, 999) g"
        for sql, words in (("SELECT 1 AS a, 2 AS a", "same name"), (failing, "division by zero")):
            assert words in text_of(await wire.call("copy_to_file", sql=sql, file="bad.parquet"))
            assert not (tmp_path / "bad.parquet").exists()
        whole = (tmp_path / "m.parquet").read_bytes()
        for name, content in (("none", b"id\n1\n"), ("half", whole[:900]), ("odd", whole[:500] + whole[600:])):
            (tmp_path / f"{name}.parquet").write_bytes(content)
            answer = await wire.call("copy_from_file", file=f"{name}.parquet", table="made")
            assert answer["isError"] and "failed inside" not in text_of(answer), text_of(answer)
    assert base.rows("SELECT count(*), max(id), sum(share) FROM made WHERE raw = '\\x00'") == [(2500, 2500, 781562.5)]
    async with inside("--files", tmp_path, "--mask", "public.kinds.id", f"app={base.url('postgres')}") as wire:
        await wire.call("copy_to_file", sql="SELECT id, need FROM kinds", file="masked.parquet")
    assert "9223372036854775807" not in str((tmp_path / "masked.parquet").read_bytes())


async def test_a_line_of_json_is_an_object_by_the_columns_names(tmp_path: Path) -> None:
    base = make(VALUES)
    async with inside("--files", tmp_path, f"app={base.url('owner')}") as wire:
        await wire.call("copy_to_file", sql="SELECT id, word, doc FROM kinds ORDER BY id DESC", file="k.jsonl")
        with pytest.raises(MCPError, match="no tool `copy_from_file`"):
            await wire.call("copy_from_file", file="k.jsonl", table="copy")
    first = json.loads((tmp_path / "k.jsonl").read_text("utf-8").splitlines()[0])
    assert first == {"id": 9223372036854775807, "word": 'a,"b"\nc', "doc": {"a": [1, None, "x"]}}


async def test_a_table_that_is_missing_is_shown_first_and_made(tmp_path: Path) -> None:
    base = make(VALUES)
    (tmp_path / "new.csv").write_text(
        "\ufeffid,code,price,day,at,ok,Odd name,empty\n1,007,1.50,2024-01-31,2024-01-31T10:00:00Z,true,x,\n"
        "2,12,3,2024-02-01,2024-02-01 11:30:00+01,FALSE,\"a\nb\",\n", "utf-8"
    )  # fmt: skip
    (tmp_path / "new.json").write_text('[{"id": 1, "x": 1.25, "d": {"a": 1.5}}, {"id": 2, "x": 3}]', "utf-8")
    async with inside("--write", "--ddl", "--files", tmp_path, f"app={base.url('owner')}") as wire:
        tried = text_of(await wire.call("copy_from_file", file="new.csv", table="made", dry_run=True))
        for line in (
            '"id" bigint', '"code" text', '"price" numeric', '"day" date', '"at" timestamptz', '"ok" boolean',
            '"Odd name" text', '"empty" text',
        ):  # fmt: skip
            assert line in tried, (line, tried)
        assert base.rows("SELECT to_regclass('made')") == [(None,)]
        assert "a new table: " in text_of(await wire.call("copy_from_file", file="new.csv", table="made"))
        assert "Inserted 2 rows" in text_of(await wire.call("copy_from_file", file="new.json", table="made2"))
    assert base.rows('SELECT code, price::text, "Odd name", empty FROM made ORDER BY id') == [
        ("007", "1.50", "x", None), ("12", "3", "a\nb", None),
    ]  # fmt: skip
    assert base.rows("SELECT x::text, d->'a' FROM made2 ORDER BY id") == [("1.25", 1.5), ("3", None)]
    async with inside("--write", "--files", tmp_path, f"app={base.url('owner')}") as wire:
        assert "`--ddl`" in text_of(await wire.call("copy_from_file", file="new.csv", table="made3"))
        said = text_of(await wire.call("copy_from_file", file="new.csv", table="made2", dry_run=True))
        assert "has no column `code`. It has: `id`, `x`, `d`; the file: `id`, `code`, `price`, " in said, said
        assert "INSERT from that.\nIn the file:\nid: " in said and "\nOdd name: " in said, said
        assert "In the file" not in text_of(await wire.call("copy_from_file", file="new.csv", table="made2"))


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("a.csv", "id,note\n1,x\n2,bad\n", "line 3"),
        ("a.csv", "id,note\n1,x\n1,y\n", "duplicate key"),
        ("a.csv", "id,other\n1,x\n", "no column `other`"),
        ("a.csv", "id,ID\n1,2\n", "same name"),
        ("a.csv", "id,note\n1\n", "fields"),
        ("a.csv", "id,note\n1,x\nten,y\n", "column id"),
        ("a.csv", "", "no records"),
        ("a.csv", b"id,note\n1,\xff\n", "can't be read"),
        ("a.jsonl", '{"id": 1, "note": "x"}\n{"id": 2, "more": 1}\n', "`more`"),
        ("a.jsonl", '{"id": 1}\n{"id": NaN}\n', "NaN is not JSON"),
        ("a.jsonl", '["id", "note"]\n[1]\n', "1 values"),
        ("a.jsonl", "7\n", "not an object"),
    ],
)
async def test_what_does_not_fit_changes_nothing(tmp_path: Path, name: str, text: str | bytes, why: str) -> None:
    base = make(VALUES)
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    async with inside("--write", "--files", tmp_path, f"app={base.url('owner')}") as wire:
        said = await wire.call("copy_from_file", file=name, table="guarded")
        assert said["isError"] and why in text_of(said), said
        assert "[1]" in text_of(await wire.call("query_rows", sql="SELECT 1"))
    assert base.rows("SELECT count(*) FROM guarded") == [(0,)]


STATEMENTS = [
    "SELECT 1) TO PROGRAM 'touch {mark}'; --", "SELECT 1) TO '{mark}'; --", "SELECT 1; COPY t TO '{mark}'",
    "TABLE secret) TO STDOUT; COPY secret FROM STDIN; --", "DELETE FROM secret RETURNING word",
    "WITH gone AS (DELETE FROM secret RETURNING word) SELECT * FROM gone", "COPY secret TO STDOUT", "VACUUM",
    "SELECT 1 /* ) TO '{mark}' */ ) TO '{mark}' --", "SELECT pg_read_file('/etc/passwd')",
    "SELECT lo_export(1, '{mark}')", "SELECT 1; SELECT 2", "SELECT nextval('s')", "", ";",
]  # fmt: skip


@pytest.mark.share(12)
@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
async def test_a_query_stays_one_query_inside_of_copy(tmp_path: Path, statement: str, ending: str) -> None:
    base = make(VALUES + "CREATE SEQUENCE s;")
    mark = tmp_path / "mark"
    folder = tmp_path / "files"
    folder.mkdir()
    async with inside("--files", folder, f"app={base.url('postgres')}") as wire:
        said = await wire.call("copy_to_file", sql=statement.format(mark=mark), file=f"out.{ending}")
        assert said["isError"], said
    assert not mark.exists() and list(folder.iterdir()) == []
    assert base.rows("SELECT count(*) FROM secret") == [(1,)] and base.rows("SELECT is_called FROM s") == [(False,)]


@pytest.mark.parametrize("name", ["../x.csv", "/tmp/x.csv", "a/b.csv", ".x.csv", "x.txt", "there.csv", "link.csv"])
async def test_no_other_file_is_written_or_read(tmp_path: Path, name: str) -> None:
    base = make(VALUES)
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "there.csv").write_text("kept", "utf-8")
    (tmp_path / "outside.csv").write_text("word\nfrom outside\n", "utf-8")
    try:
        os.symlink(tmp_path / "outside.csv", folder / "link.csv")
    except OSError:
        pytest.skip("no links here")
    async with inside("--write", "--files", folder, f"app={base.url('owner')}") as wire:
        assert (await wire.call("copy_to_file", sql="SELECT 1", file=name))["isError"]
        assert (await wire.call("copy_from_file", file=name, table="secret"))["isError"]
    assert (folder / "there.csv").read_text("utf-8") == "kept"
    assert (tmp_path / "outside.csv").read_text("utf-8") == "word\nfrom outside\n"
    assert base.rows("SELECT word FROM secret") == [("hidden",)]


async def test_another_roles_code_does_not_run_by_an_import(tmp_path: Path) -> None:
    base = make(VALUES)
    base.run(
        "CREATE FUNCTION laid() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN DELETE FROM secret; RETURN NEW; END';"
        "CREATE TRIGGER laid BEFORE INSERT ON guarded FOR EACH ROW EXECUTE FUNCTION laid()",
        "owner",
    )
    (tmp_path / "a.csv").write_text("id,note\n1,x\n", "utf-8")
    async with inside("--write", "--files", tmp_path, f"app={base.url('postgres')}") as wire:
        said = text_of(await wire.call("copy_from_file", file="a.csv", table="guarded"))
        assert "laid() of owner" in said, said
    assert base.rows("SELECT count(*) FROM secret") == [(1,)]


async def test_a_long_export_that_is_stopped_leaves_no_file(tmp_path: Path) -> None:
    base = make(VALUES)
    async with inside("--timeout", "1", "--files", tmp_path, f"app={base.url('owner')}") as wire:
        sql = "SELECT g, pg_sleep(0.01)::text FROM generate_series(1, 100000) g"
        said = await wire.call("copy_to_file", sql=sql, file="long.csv")
        assert said["isError"] and "time limit" in text_of(said), said
        assert list(tmp_path.iterdir()) == []
        assert "[1]" in text_of(await wire.call("query_rows", sql="SELECT 1"))


async def test_a_trigger_may_leave_out_records(tmp_path: Path) -> None:
    base = make(VALUES)
    base.run(
        "CREATE FUNCTION odd_only() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN IF NEW.id % 2 = 0 THEN RETURN NULL; END IF; RETURN NEW; END';"
        "CREATE TRIGGER few BEFORE INSERT ON guarded FOR EACH ROW EXECUTE FUNCTION odd_only()",
        "owner",
    )
    (tmp_path / "g.csv").write_text("id,note\n1,a\n2,b\n3,c\n", "utf-8")
    async with inside("--write", "--files", tmp_path, f"app={base.url('owner')}") as wire:
        said = text_of(await wire.call("copy_from_file", file="g.csv", table="guarded"))
    assert "Inserted 2 rows" in said, said
    assert base.rows("SELECT id FROM guarded ORDER BY 1") == [(1,), (3,)]


async def test_a_file_of_excel_comes_in_by_its_encoding_and_its_words_for_null(tmp_path: Path) -> None:
    base = make("CREATE TABLE prices (id integer, name text, price numeric, day date)")
    text = "id;name;price;day\n1;Müller €;1,50;2025-01-31\n2;Café;N/A;-\n3;-;2,25;2025-02-01\n"
    (tmp_path / "excel.csv").write_bytes(text.encode("cp1252"))
    async with inside("--write", "--ddl", "--files", tmp_path, f"app={base.url('owner')}") as wire:

        async def copy(table: str, **arguments: object) -> str:
            return text_of(await wire.call("copy_from_file", file="excel.csv", table=table, **arguments))

        assert "Name its `encoding`" in await copy("prices")
        assert "There is no encoding `klingon`" in await copy("prices", encoding="klingon")
        assert "name it in `nulls`" in await copy("prices", encoding="cp1252")
        tried = await copy("made", encoding="cp1252", dry_run=True)
        assert 'numeric but for 1: "N/A" in record 2' not in tried and 'date but for 1: "-" in record 2' in tried, tried
        for table in ("prices", "made"):
            assert "Inserted 3 rows" in await copy(table, encoding="cp1252", nulls=["N/A", "-"])
    rows = [(1, "Müller €", "1.50", "2025-01-31"), (2, "Café", None, None), (3, None, "2.25", "2025-02-01")]
    for table in ("prices", "made"):
        assert base.rows(f"SELECT id, name, price::text, day::text FROM {table} ORDER BY id") == rows, table


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
async def test_records_that_a_trigger_leaves_out_are_counted(tmp_path: Path, ending: str) -> None:
    base = make("""
        CREATE TABLE picky (k text);
        CREATE FUNCTION pick() RETURNS trigger LANGUAGE plpgsql AS
            'BEGIN IF NEW.k = $$b$$ THEN RETURN NULL; END IF; RETURN NEW; END';
        CREATE TRIGGER pick BEFORE INSERT ON picky FOR EACH ROW EXECUTE FUNCTION pick();
    """)
    records = {"csv": "k\na\nb\nc\n", "jsonl": '{"k": "a"}\n{"k": "b"}\n{"k": "c"}\n'}
    (tmp_path / f"in.{ending}").write_text(records[ending], "utf-8")
    async with inside("--write", "--files", tmp_path, f"app={base.url('owner')}") as wire:
        said = text_of(await wire.call("copy_from_file", file=f"in.{ending}", table="picky"))
    assert said.startswith("Inserted 2 rows into `public.picky`"), said
    assert "Left out by a trigger or constraint of the table: 1 of the file's 3 records." in said
    assert base.rows("SELECT count(*) FROM picky") == [(2,)]


async def test_an_export_that_wants_values_says_where_they_go(tmp_path: Path) -> None:
    base = make("CREATE TABLE t (id integer)")
    async with inside("--files", tmp_path, f"app={base.url('owner')}") as wire:
        said = await wire.call("copy_to_file", sql="SELECT * FROM t WHERE id > $1", file="t.csv")
    assert said["isError"] and text_of(said) == "`copy_to_file` takes no `parameters`. Write the values into `sql`."
    assert not (tmp_path / "t.csv").exists()
