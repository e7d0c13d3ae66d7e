"""Results page by page: each row once, exact flags, exact values."""

import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from mcp_batteries.testing.wire import StdioWire
from sqlite.serving import make, run, served, served_process, text_of
from thinning import some


def parsed(text: str) -> tuple[list[list], str | None]:
    """Rows and the cursor of an answer."""
    lines = text.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith('["'))
    cursor = text.partition("cursor=")[2].partition("]")[0] if lines[0].startswith("[truncated") else None
    return [json.loads(line) for line in lines[start + 1 :]], cursor


async def every_row(wire: StdioWire, sql: str, between=lambda: None, **arguments) -> list[list]:
    rows, cursor = parsed(text_of(await wire.call("query_rows", sql=sql, **arguments)))
    while cursor:
        between()
        more, cursor = parsed(text_of(await wire.call("query_rows", cursor=cursor, **arguments)))
        rows += more
    return rows


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.parametrize("journal", some(["delete", "wal"], "wal"))
async def test_each_of_100_000_rows_comes_once_while_others_write(journal: str, tmp_path: Path) -> None:
    path = make(tmp_path / "app.db", journal)
    numbers = "WITH RECURSIVE c(x) AS (VALUES(10) UNION ALL SELECT x+1 FROM c LIMIT 100000)"
    run(path, f"{numbers} INSERT INTO t SELECT x, 'name ' || x FROM c")
    async with served(path) as wire:
        first = text_of(await wire.call("query_rows", sql="SELECT * FROM t"))
        assert first.startswith("[truncated") and len(first) < 11_000

        def write() -> None:
            some = "SELECT id FROM t ORDER BY random() LIMIT 100"
            run(path, f"DELETE FROM t WHERE id IN ({some}); INSERT INTO t VALUES (NULL, 'new')")

        rows = await every_row(wire, "SELECT id, name FROM t ORDER BY id", write, limit=5000, max_bytes=1_000_000)
        assert [row[0] for row in rows] == [1, 2, 3, *range(10, 100_010)]


@pytest.mark.share(1)
@pytest.mark.anyio
@pytest.mark.parametrize("rows", some([0, 1, 9, 10, 11, 20, 21], 0, 10, 11))
async def test_truncated_is_exact(rows: int, tmp_path: Path) -> None:
    path = make(tmp_path / "app.db")
    sql = f"WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM c) SELECT x FROM c LIMIT {rows}"
    async with served(path) as wire:
        text = text_of(await wire.call("query_rows", sql=sql, limit=10))
        assert text.startswith("[truncated") == (rows > 10)
        assert len(await every_row(wire, sql, limit=10)) == rows


@pytest.mark.anyio
async def test_values_are_exact(tmp_path: Path) -> None:
    path = make(tmp_path / "app.db")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE bad AS SELECT CAST(x'ff41' AS TEXT) AS x")
        connection.commit()
    async with served(path) as wire:
        sql = (
            "SELECT 9007199254740992, 9007199254740993, -9223372036854775808, 0.1, 1e308 * 10, -1e308 * 10, NULL, "
            "x'00ff', "
            "'é\U0001f642', 'a' || char(0) || 'b', '12345678901234567890.10', 1 AS same, 2 AS same, x FROM bad"
        )
        text = text_of(await wire.call("query_rows", sql=sql))
        assert parsed(text)[0] == [
            [
                9007199254740992, "9007199254740993", "-9223372036854775808", 0.1, "Infinity", "-Infinity", None,
                {"base64": "AP8="}, "é\U0001f642", "a\0b", "12345678901234567890.10", 1, 2,
                {"base64": "/0E=", "text": True},
            ]
        ]  # fmt: skip
        assert '"same","same","x"]' in text


@pytest.mark.anyio
async def test_parameters_are_bound_and_checked(tmp_path: Path) -> None:
    async with served(make(tmp_path / "app.db")) as wire:
        for sql, parameters, row in (
            ("SELECT ?, ?", ["'; DROP TABLE t", None], ["'; DROP TABLE t", None]),
            ("SELECT :a, @b, $c", {"a": 1, "b": 2.5, ":c": "x"}, [1, 2.5, "x"]),
            ("SELECT hex(?)", [{"base64": "AP8="}], ["00FF"]),
            ("SELECT ?", [True], [1]),
        ):
            assert parsed(text_of(await wire.call("query_rows", sql=sql, parameters=parameters)))[0] == [row]
        for sql, parameters in (("SELECT ?", []), ("SELECT ?", [[1]]), ("SELECT ?", [{"a": 1}]), ("SELECT ?", [2**70])):
            assert (await wire.call("query_rows", sql=sql, parameters=parameters))["isError"]


@pytest.mark.anyio
async def test_long_cells_are_cut_and_say_so(tmp_path: Path) -> None:
    async with served(make(tmp_path / "app.db")) as wire:
        text = text_of(await wire.call("query_rows", sql="SELECT hex(zeroblob(5000)), zeroblob(5000)"))
        assert "[2 cells cut" in text and "8000 more characters" in text and '"more_bytes":3000' in text
        script = (
            "const rows = query_rows({sql: 'SELECT hex(zeroblob(5000))', max_cell: 9}).lines(); print(remark, rows)"
        )
        text = text_of(await wire.call("call_tools", script=script))
        assert text.startswith("[1 row; 1 cell cut; read more") and text.count("\\n") == 0, text
        script = "return query_rows({sql: 'SELECT hex(zeroblob(5000))'}).lines().map(JSON.parse)[1][0].length"
        assert text_of(await wire.call("call_tools", script=script)) == "10000\n"
        whole = text_of(await wire.call("query_rows", sql="SELECT hex(zeroblob(5000))", max_cell=10_000))
        assert parsed(whole)[0] == [["0" * 10_000]]


@pytest.mark.anyio
async def test_a_cursor_that_is_gone_says_so(tmp_path: Path) -> None:
    async with served(make(tmp_path / "app.db")) as wire:
        _, cursor = parsed(text_of(await wire.call("query_rows", sql="SELECT * FROM t", limit=1)))
        for _ in range(24):
            await wire.call("query_rows", sql="SELECT * FROM t", limit=1)
        assert "Run the query again" in text_of(await wire.call("query_rows", cursor=cursor))
        _, cursor = parsed(text_of(await wire.call("query_rows", sql="SELECT * FROM t", limit=1)))
        assert '[2,"b"]' in text_of(await wire.call("query_rows", cursor=cursor, limit=1))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="limits a process with ulimit")
@pytest.mark.anyio
async def test_a_result_that_the_disk_does_not_take_says_where_it_ends(tmp_path: Path) -> None:
    numbers = "WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM c LIMIT 100000)"
    sql = f"{numbers} SELECT x, 'some text of a row ' || x FROM c"
    small = ["sh", "-c", 'ulimit -f 1000 && exec "$@"', "sh"]
    async with served_process(make(tmp_path / "app.db"), within=small) as wire:
        said = text_of(await wire.call("query_rows", sql=sql, limit=5000, max_bytes=1_000_000))
        rows, cursor = parsed(said)
        while cursor:
            said = text_of(await wire.call("query_rows", cursor=cursor, limit=5000, max_bytes=1_000_000))
            more, cursor = parsed(said)
            assert more
            rows += more
        assert "not the end of the result: The disk" in said
        assert [row[0] for row in rows] == list(range(1, len(rows) + 1)) and 5000 < len(rows) < 100_000
        assert "[1 row]" in text_of(await wire.call("query_rows", sql="SELECT 1"))
