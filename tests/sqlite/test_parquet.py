"""Parquet out and in again: every value, types of columns, and files that are none."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from mcp_batteries.sql.transfer import parquet
from sqlite.serving import make, served, text_of
from sqlite.test_writes import rows

pytestmark = pytest.mark.anyio

FILL = """
CREATE TABLE p (i INTEGER, r REAL, t TEXT, b BLOB, mixed, empty, late);
INSERT INTO p VALUES (9223372036854775807, 1.5, 'é', x'00ff', 1, NULL, NULL),
    (-9223372036854775808, 9e999, '', x'', 'two', NULL, NULL), (NULL, NULL, NULL, NULL, x'03', NULL, NULL);
INSERT INTO p (late) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 2500)
    SELECT CASE WHEN i > 2400 THEN i END FROM n;
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "files").mkdir()
    return tmp_path / "files"


async def test_what_goes_out_comes_back(tmp_path: Path, folder: Path) -> None:
    path = make(tmp_path / "a.db")
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(FILL)
    async with served("--write", "--ddl", "--files", folder, path) as wire:
        said = text_of(await wire.call("copy_to_file", sql="SELECT * FROM p", file="p.parquet"))
        assert said.startswith("Wrote 2,503 rows")
        said = text_of(await wire.call("copy_from_file", file="p.parquet", table="back", dry_run=True))
        columns = [line.partition(":")[0] for line in said.splitlines() if line.startswith('"')]
        assert columns == [
            '"i" INTEGER', '"r" REAL', '"t" TEXT', '"b" BLOB', '"mixed" TEXT', '"empty" TEXT', '"late" INTEGER',
        ]  # fmt: skip
        done = await wire.call("copy_from_file", file="p.parquet", table="back")
        assert not done.get("isError"), text_of(done)
    plain = "i, r, t, b, empty, late"
    assert rows(path, f"SELECT {plain} FROM back") == rows(path, f"SELECT {plain} FROM p")
    assert rows(path, "SELECT mixed FROM back LIMIT 3") == [("1",), ("two",), ("x'03'",)]


async def test_what_can_not_be_written_leaves_no_file(tmp_path: Path, folder: Path) -> None:
    async with served("--files", folder, make(tmp_path / "a.db")) as wire:
        for sql, words in (
            ("SELECT 1 AS a, 2 AS a", "the same name"),
            # Another value each time: what the first look found does not hold for the second.
            ("SELECT CASE WHEN random() % 2 THEN 1 ELSE x'01' END AS a FROM t", ""),
            ("SELECT json_extract('{', '$') AS a", "malformed JSON"),
        ):
            result = await wire.call("copy_to_file", sql=sql, file="x.parquet")
            assert bool(result.get("isError")) != (folder / "x.parquet").exists(), text_of(result)
            assert words in text_of(result)
            (folder / "x.parquet").unlink(missing_ok=True)


async def test_files_that_are_none_change_nothing(tmp_path: Path, folder: Path) -> None:
    path = make(tmp_path / "a.db")
    async with served("--write", "--ddl", "--files", folder, path) as wire:
        await wire.call("copy_to_file", sql="SELECT id, name FROM t", file="good.parquet")
        good = (folder / "good.parquet").read_bytes()
        middle = len(good) // 2
        for number, bad in enumerate(
            [b"", b"PAR1", b"PAR1PAR1", b"PAR1" + b"\xff" * 64 + b"\x40\0\0\0PAR1", good[:middle],
             good[:-9] + good[-8:], good[:8] + b"\xff" * 30 + good[38:], good[:-60] + b"\xff" * 40 + good[-20:]]
        ):  # fmt: skip
            (folder / f"bad{number}.parquet").write_bytes(bad)
            result = await wire.call("copy_from_file", file=f"bad{number}.parquet", table="new")
            assert result.get("isError"), f"{number}: {text_of(result)}"
        assert not (await wire.call("copy_from_file", file="good.parquet", table="new")).get("isError")
    assert rows(path, "SELECT * FROM new") == rows(path, "SELECT id, name FROM t")


def test_kinds_join_to_what_holds_both() -> None:
    kind = parquet.ColumnKind
    assert kind.INTEGER | kind.REAL is kind.REAL and kind.NOTHING | kind.BYTES is kind.BYTES
    assert kind.TEXT | kind.INTEGER is kind.TEXT and kind.BOOLEAN | kind.NOTHING is kind.BOOLEAN
    assert kind.BYTES | kind.INTEGER is kind.TEXT and kind.REAL | kind.REAL is kind.REAL


def test_types_of_other_programs_are_read_as_text(tmp_path: Path) -> None:
    from arro3.core import Array, DataType, Field, RecordBatch, Schema, Table
    from arro3.io import write_parquet

    columns = {
        "day": Array([19_782, None], DataType.int32()).cast(DataType.date32()),
        "at": Array([1_709_208_001_250_000, None], DataType.int64()).cast(DataType.timestamp("us")),
        "of": Array([12_345, None], DataType.int64()).cast(DataType.decimal128(10, 2)),
        "few": Array([True, None], DataType.bool()),
    }
    schema = Schema([Field(name, column.type, nullable=True) for name, column in columns.items()])
    batch = RecordBatch.from_pydict(columns, schema=schema)  # pyright: ignore[reportUnknownMemberType]
    with open(tmp_path / "a.parquet", "wb") as file:
        write_parquet(Table.from_batches([batch]), file)
    with open(tmp_path / "a.parquet", "rb") as file:
        kind = parquet.ColumnKind
        assert parquet.column_kinds(file) == [kind.TEXT, kind.TEXT, kind.TEXT, kind.BOOLEAN]
        assert list(parquet.read_rows(file)) == [
            ["day", "at", "of", "few"], ["2024-02-29", "2024-02-29 12:00:01.250000", "12345.00", True], [None] * 4,
        ]  # fmt: skip
