"""Tables of vectors by sqlite-vec: loaded by the server only, searched in one query, shown short."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from mcp_sqlite.worker.connection import vectors
from mcp_sqlite.worker.language.failure import Failure
from mcp_sqlite.worker.language.values import RowEncoder
from sqlite.serving import BUILDS, make, served, text_of
from sqlite.test_attacks import MODES
from thinning import some

pytestmark = pytest.mark.anyio

NUMBERS = 96
FILL = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 200), d(j) AS (SELECT 1 UNION ALL "
    f"SELECT j + 1 FROM d LIMIT {NUMBERS}) INSERT INTO notes (id, at, topic) SELECT i, "
    "(SELECT json_group_array(((i * j * 37) % 211) / 211.0 + 0.001) FROM d), CASE i % 2 WHEN 0 THEN 'even' ELSE 'odd' "
    "END FROM n"
)
TABLE = f"CREATE VIRTUAL TABLE notes USING vec0 (id INTEGER PRIMARY KEY, at float[{NUMBERS}], topic TEXT, +note TEXT)"
_FILLED = """
import sqlite3, sys
from mcp_sqlite.worker.connection import vectors
vectors.load()
connection = sqlite3.connect(sys.argv[1])
vectors.load_into(connection)
connection.executescript(";".join(sys.argv[2:]))
"""


def filled(path: Path) -> Path:
    """A database with 200 vectors, made by another program that knows sqlite-vec."""
    make(path)
    subprocess.run([sys.executable, "-c", _FILLED, str(path), TABLE, FILL], check=True, timeout=60)
    return path


def found(text: str) -> list[list[object]]:
    return [json.loads(line) for line in text.splitlines()[1:] if line.startswith("[")][1:]


@pytest.mark.share(1)
@pytest.mark.diagonal
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("build", BUILDS)
async def test_the_nearest_are_found_by_one_query_in_every_mode(build: str, mode: str, tmp_path: Path) -> None:
    path = filled(tmp_path / "a.db")
    near = "WHERE at MATCH (SELECT at FROM notes WHERE id = 7) AND k = 3"
    async with served("--sqlite-vec", *MODES[mode], path, build=build) as wire:
        said = text_of(await wire.call("query_rows", sql=f"SELECT id, distance, at FROM notes {near}"))
        assert found(said)[0][:2] == [7, 0] and len(found(said)) == 3
        assert str(found(said)[0][2]).endswith(f",… {NUMBERS} numbers, all by vec_to_json()]") and len(said) < 500
        even = text_of(await wire.call("query_rows", sql=f"SELECT id FROM notes {near} AND topic = 'even'"))
        assert len(found(even)) == 3 and all(int(str(row[0])) % 2 == 0 for row in found(even))
        whole = text_of(await wire.call("query_rows", sql="SELECT vec_to_json(at) FROM notes WHERE id = 7"))
        numbers = json.loads(str(found(whole)[0][0]))
        assert len(numbers) == NUMBERS
        given = {"sql": "SELECT id FROM notes WHERE at MATCH ? AND k = 1", "parameters": [json.dumps(numbers)]}
        assert found(text_of(await wire.call("query_rows", **given))) == [[7]]
        plan = text_of(await wire.call("explain_query", **given))
        assert "VIRTUAL TABLE INDEX 0:3" in plan and "Reads whole" not in plan
        assert "Reads whole: notes" in text_of(await wire.call("explain_query", sql="SELECT id FROM notes"))
        told = text_of(await wire.call("get_table", table="notes", sample=1))
        assert told.startswith("vector notes") and "nearest rows: WHERE column MATCH ?" in told and len(told) < 1500
        listed = text_of(await wire.call("list_tables"))
        assert "- notes (vector) 200 rows: id (key), at, topic" in listed and "notes_" not in listed
        missing = text_of(await wire.call("query_rows", sql="SELECT id FROM notes WHERE at MATCH ?", parameters=["[]"]))
        assert "k = 10" in missing


@pytest.mark.slow
async def test_vectors_are_written_only_where_rows_are_open(tmp_path: Path) -> None:
    path = filled(tmp_path / "a.db")
    remove = {"sql": "DELETE FROM notes WHERE id = 7"}
    async with served("--sqlite-vec", "--write", path) as wire:
        said = text_of(await wire.call("write_rows", **remove))
        assert "\n1 row in notes" in said and "notes_" not in said
        # What it keeps for itself is changed through it only.
        for sql in ("DELETE FROM notes_chunks", "UPDATE notes_vector_chunks00 SET vectors = x''"):
            refused = await wire.call("write_rows", sql=sql)
            assert refused.get("isError")
            # From Python 3.12 on SQLite itself refuses.
            assert any(words in text_of(refused) for words in ("would", "may not be modified"))
    async with served("--sqlite-vec", path) as wire:
        assert found(text_of(await wire.call("query_rows", sql="SELECT count(*) FROM notes"))) == [[199]]
    async with served("--sqlite-vec", "--ddl", "--write", path) as wire:
        both = f"{TABLE.replace('notes', 'more')}; INSERT INTO more (id, at, topic) SELECT id, at, topic FROM notes"
        done = await wire.call("edit_schema", sql=both)
        assert not done.get("isError"), text_of(done)
        count = text_of(await wire.call("query_rows", sql="SELECT count(*) FROM more"))
        assert found(count) == [[199]]


@pytest.mark.parametrize("build", some(BUILDS, "machine"))
async def test_nothing_else_is_loaded_and_nothing_without_the_option(build: str, tmp_path: Path) -> None:
    path = filled(tmp_path / "a.db")
    async with served("--sqlite-vec", "--write", "--ddl", path, build=build) as wire:
        for sql in ("SELECT load_extension('vec0')", "SELECT load_extension('/lib/x.so', 'init')"):
            refused = await wire.call("query_rows", sql=sql)
            assert refused.get("isError") and "[" not in text_of(refused)
    async with served(path, build=build) as wire:
        refused = text_of(await wire.call("query_rows", sql="SELECT id FROM notes"))
        assert "the operator can start the server with `--sqlite-vec`" in refused
        said = text_of(await wire.call("query_rows", sql="SELECT vec_version()"))
        assert "no such function" in said


def test_a_connection_that_can_load_is_closed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    module = pytest.importorskip("pysqlite3.dbapi2", reason="the interpreter's own sqlite3 may load nothing")
    package = find_spec("sqlite_vec")
    assert package is not None and package.origin is not None
    connection = module.connect(":memory:")
    monkeypatch.setattr(vectors, "_path", str(Path(package.origin).with_name("vec0")))
    vectors.load_into(connection)
    assert connection.execute("SELECT vec_length('[1, 2]')").fetchone() == (2,)
    with pytest.raises(module.Error, match="not authorized"):
        connection.execute("SELECT load_extension('vec0')")
    connection.close()


async def test_what_is_missing_is_told_with_the_way_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "_PACKAGE", "sqlite_vec_that_is_not_there")
    with pytest.raises(Failure) as told:
        vectors.load()
    assert "mcp-sqlite[sqlite-vec]" in told.value.fix


@pytest.mark.parametrize(
    "value",
    [
        b"", b"\0" * 256, bytes(range(256)), "a text of some length, in letters".encode("utf-16-le") * 4,
        b"\x89PNG\r\n\x1a\n" + bytes(range(1, 249)), b"letters, and nothing else but letters" * 8, b"\x7f\xc0\0\0" * 64,
    ],
)  # fmt: skip
def test_other_bytes_are_never_taken_for_a_vector(value: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RowEncoder, "shortens_vectors", True)
    assert '"base64"' in RowEncoder(2000).encode([value])


def test_bytes_stay_exact_where_nobody_asked() -> None:
    assert '"base64"' in RowEncoder(2000).encode([b"\0\0\x80\x3f" * 32])
