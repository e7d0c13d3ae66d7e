"""Files into tables that are not there yet: types guessed and shown first, and only where both switches are on."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from sqlite.serving import make, served, text_of
from sqlite.test_writes import rows

pytestmark = pytest.mark.anyio

CSV = 'id,amount,code,when it was,note\n1,1.5,007,2026-01-31,"a, b"\n2,-20,010,2026-02-01,\n3,,123,,é\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "files").mkdir()
    return tmp_path / "files"


async def test_a_new_table_is_guessed_shown_and_made(tmp_path: Path, folder: Path) -> None:
    path = make(tmp_path / "a.db")
    (folder / "in.csv").write_text(CSV, "utf-8")
    records = [{"n": 1, "t": "12", "r": 0.5, "b": None}, {"n": True, "t": "x", "r": 2, "b": {"base64": "AA=="}}]
    (folder / "in.jsonl").write_text("".join(json.dumps(item) + "\n" for item in records), "utf-8")
    seen = [
        '"id" INTEGER: all different, 1 to 3',
        '"amount" REAL: all different, -20 to 1.5, 1 empty',
        '"code" TEXT: all different, "007" to "123"',
        '"when it was" TEXT: all different, "2026-01-31" to "2026-02-01", 1 empty; dates as 2026-12-31',
        '"note" TEXT: all different, "a, b" to "é", 1 empty',
    ]
    shown = '"id" INTEGER, "amount" REAL, "code" TEXT, "when it was" TEXT, "note" TEXT'
    async with served("--write", "--ddl", "--files", folder, path) as wire:
        said = text_of(await wire.call("copy_from_file", file="in.csv", table="sales", dry_run=True))
        assert said.startswith("Dry run") and "insert 3 rows into `sales`, a new table:" in said
        assert said.splitlines()[1:] == seen
        assert rows(path, "SELECT name FROM sqlite_master WHERE name = 'sales'") == []
        said = text_of(await wire.call("copy_from_file", file="in.csv", table="sales"))
        assert said.rstrip() == f"Inserted 3 rows into `sales`, a new table: {shown}"
        said = text_of(await wire.call("copy_from_file", file="in.csv", table="sales"))
        assert said.startswith("Inserted 3 rows into `sales` (id, amount, code, when it was") and "new" not in said
        assert not (await wire.call("copy_from_file", file="in.jsonl", table="typed")).get("isError")
    assert rows(path, "SELECT * FROM sales LIMIT 3") == [
        (1, 1.5, "007", "2026-01-31", "a, b"), (2, -20.0, "010", "2026-02-01", None), (3, None, "123", None, "é"),
    ]  # fmt: skip
    assert rows(path, "SELECT *, typeof(t), typeof(b) FROM typed") == [
        (1, "12", 0.5, None, "text", "null"), (1, "x", 2.0, b"\0", "text", "blob"),
    ]  # fmt: skip


@pytest.mark.share(1)
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a,A", "Two fields have one name"),
        ("a,\n1,2", "A field behind `a` has values and no name"),
        ("a,b,,\n1,x,,\n2,y,,z", "A field behind `b` has values and no name"),
        ("", "no fields"),
    ],
)
async def test_fields_that_can_be_no_columns_are_refused(text: str, reason: str, tmp_path: Path, folder: Path) -> None:
    path = make(tmp_path / "a.db")
    (folder / "in.csv").write_text(f"{text}\n", "utf-8")
    async with served("--write", "--ddl", "--files", folder, path) as wire:
        for table in ("new", "sqlite_new", "f_data2"):
            result = await wire.call("copy_from_file", file="in.csv", table=table)
            assert result.get("isError") and reason in text_of(result)


async def test_a_file_with_other_names_is_told_with_its_values_and_the_insert(tmp_path: Path, folder: Path) -> None:
    path = make(tmp_path / "a.db")
    (folder / "in.csv").write_text("Nr;Datum;Grund\nR1;31.01.2026;late\nR2;01.02.2026;\nR1;31.01.2026;late\n", "utf-8")
    async with served("--write", "--files", folder, path) as wire:
        said = text_of(await wire.call("copy_from_file", file="in.csv", table="t", dry_run=True))
        assert "`t` has no column `Nr`. It has: `id`, `name`; the file: `Nr`, `Datum`, `Grund`." in said, said
        assert '`write_rows` takes `INSERT INTO t (…) SELECT … FROM "in.csv"`.\nIn the file:\nNr: ' in said, said
        assert "\nGrund: " in said, said
        assert "In the file" not in text_of(await wire.call("copy_from_file", file="in.csv", table="t"))
        sql = 'SELECT count(*) FROM t; INSERT INTO t SELECT 90 + rowid, Nr FROM "in.csv"; SELECT count(*) FROM t'
        said = text_of(await wire.call("write_rows", sql=sql))
        assert not said.startswith("There") and "3 rows in t" in said, said


@pytest.mark.parametrize("text", ["", "\n\n", ",,\n", "[]"])
async def test_an_empty_file_is_no_import_of_nothing(text: str, tmp_path: Path, folder: Path) -> None:
    name = "in.json" if text == "[]" else "in.csv"
    (folder / name).write_text(text, "utf-8")
    async with served("--write", "--files", folder, make(tmp_path / "a.db")) as wire:
        result = await wire.call("copy_from_file", file=name, table="t")
        assert result.get("isError") and f"`{name}` has no records." in text_of(result)


async def test_names_stay_names_and_half_an_import_makes_no_table(tmp_path: Path, folder: Path) -> None:
    path = make(tmp_path / "a.db")
    (folder / "odd.csv").write_text('"x""); DROP TABLE t; --"\n1\n', "utf-8")
    (folder / "broken.csv").write_text("a,b\n1,2\n3\n", "utf-8")
    odd = 'n"; DROP TABLE t; --'
    async with served("--write", "--ddl", "--files", folder, path) as wire:
        assert not (await wire.call("copy_from_file", file="odd.csv", table=odd)).get("isError")
        assert (await wire.call("copy_from_file", file="odd.csv", table="sqlite_new")).get("isError")
        assert (await wire.call("copy_from_file", file="broken.csv", table="half")).get("isError")
    with closing(sqlite3.connect(path)) as connection:
        made = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert {odd, "t"} <= made and not {"half", "sqlite_new"} & made


async def test_a_file_that_is_not_there_is_answered_with_those_that_are(tmp_path: Path, folder: Path) -> None:
    (folder / "returns.csv").write_text("id,name\n1,a\n", "utf-8")
    (folder / "people.csv").mkdir()
    async with served("--write", "--files", folder, make(tmp_path / "a.db")) as wire:
        for file, way in (
            ("retruns.csv", "Did you mean `returns.csv`?"),
            ("x.jsonl", "There are: `returns.csv`."),
        ):
            said = text_of(await wire.call("copy_from_file", file=file, table="t"))
            assert way in said, said
        (folder / "returns.csv").unlink()
        assert "no files" in text_of(await wire.call("copy_from_file", file="x.csv", table="t"))


async def test_one_switch_makes_no_table(tmp_path: Path, folder: Path) -> None:
    path = make(tmp_path / "a.db")
    (folder / "in.csv").write_text(CSV, "utf-8")
    async with served("--write", "--files", folder, path) as wire:
        result = await wire.call("copy_from_file", file="in.csv", table="sales")
        assert result.get("isError") and "`--ddl`" in text_of(result)


async def test_text_that_is_not_utf8_leaves_as_its_bytes(tmp_path: Path, folder: Path) -> None:
    path = make(tmp_path / "a.db")
    async with served("--files", folder, path) as wire:
        sql = "SELECT CAST(x'636166e9' AS TEXT) AS t, x'636166e9' AS b"
        said = await wire.call("copy_to_file", file="out.csv", sql=sql)
        assert not said.get("isError"), text_of(said)
    assert (folder / "out.csv").read_text("utf-8").splitlines() == ["t,b", "x'636166e9',x'636166e9'"]


@pytest.mark.anyio
async def test_a_file_of_excel_comes_in_by_its_encoding_and_its_words_for_null(tmp_path: Path) -> None:
    text = "id;name;price\n1;Müller €;1,50\n2;Café;N/A\n3;-;2,25\n"
    (tmp_path / "excel.csv").write_bytes(text.encode("cp1252"))
    make(tmp_path / "app.db")
    async with served("--write", "--ddl", "--files", tmp_path, tmp_path / "app.db") as wire:

        async def copy(**arguments: object) -> str:
            return text_of(await wire.call("copy_from_file", file="excel.csv", table="prices", **arguments))

        assert "Name its `encoding`" in await copy()
        assert "There is no encoding `klingon`" in await copy(encoding="klingon")
        tried = await copy(encoding="cp1252", nulls=["N/A"], dry_run=True)
        assert '"price" REAL: all different, 1.50 to 2.25, 1 empty' in tried, tried
        assert "Inserted 3 rows" in await copy(encoding="cp1252", nulls=["N/A", "-"])
        said = text_of(await wire.call("query_rows", sql="SELECT * FROM prices"))
        assert '[1,"Müller €",1.5]\n[2,"Café",null]\n[3,null,2.25]' in said, said


async def test_records_that_the_table_leaves_out_are_counted(tmp_path: Path, folder: Path) -> None:
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("""
            CREATE TABLE first_wins (k text UNIQUE ON CONFLICT IGNORE);
            CREATE TABLE picky (k text);
            CREATE TRIGGER pick BEFORE INSERT ON picky WHEN NEW.k = 'b' BEGIN SELECT RAISE(IGNORE); END;
            CREATE VIEW all_picky AS SELECT k FROM picky;
            CREATE TRIGGER all_in INSTEAD OF INSERT ON all_picky BEGIN INSERT INTO picky VALUES (NEW.k || '!'); END;
        """)
    (folder / "in.csv").write_text("k\na\nb\na\n", "utf-8")
    async with served("--write", "--files", folder, path) as wire:
        for table in ("first_wins", "picky"):
            said = text_of(await wire.call("copy_from_file", file="in.csv", table=table))
            assert said.startswith(f"Inserted 2 rows into `{table}`"), said
            assert "Left out by a trigger or constraint of the table: 1 of the file's 3 records." in said
        said = text_of(await wire.call("copy_from_file", file="in.csv", table="all_picky"))
        assert said.startswith("Inserted 3 rows") and "Left out" not in said, said
    assert rows(path, "SELECT count(*) FROM first_wins") == [(2,)]
    assert rows(path, "SELECT count(*) FROM picky") == [(5,)]


@pytest.mark.parametrize("kind", ["integer", "bigint", "numeric", "decimal(20, 0)"])
async def test_an_integer_beyond_64_bits_is_not_rounded(kind: str, tmp_path: Path, folder: Path) -> None:
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(f"CREATE TABLE t (n {kind}); CREATE TABLE loose (n, t text, f real);")
    (folder / "in.csv").write_text("n\n9223372036854775807\n18446744073709551615\n", "utf-8")
    (folder / "in.jsonl").write_text('{"n": 18446744073709551615}\n', "utf-8")
    (folder / "any.jsonl").write_text('{"n": 18446744073709551615, "t": 18446744073709551616, "f": 1}\n', "utf-8")
    async with served("--write", "--files", folder, path) as wire:
        for file, record in (("in.csv", 2), ("in.jsonl", 1)):
            said = await wire.call("copy_from_file", file=file, table="t")
            assert said["isError"]
            assert text_of(said).startswith(f"Record {record}: `n` would round 18446744073709551615, which is beyond")
        await wire.call("copy_from_file", file="any.jsonl", table="loose")
    assert rows(path, "SELECT * FROM t") == []
    assert rows(path, "SELECT * FROM loose") == [("18446744073709551615", "18446744073709551616", 1.0)]


async def test_a_long_text_in_a_column_of_numbers_ends_no_import(tmp_path: Path, folder: Path) -> None:
    path = make(tmp_path / "a.db")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE sums (n numeric)")
    (folder / "in.csv").write_text(f"n\n{'1' * 100_000}x\n1.\n.5\n+1e3\n", "utf-8")
    async with served("--write", "--timeout", 1, "--files", folder, path) as wire:
        said = text_of(await wire.call("copy_from_file", file="in.csv", table="sums"))
        assert "`n` in 1 record, the first" in said, said
