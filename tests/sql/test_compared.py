"""In which rows two tables differ: as Python finds it, by both servers, and of what is served only."""

import random
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mcp_batteries.sql.compared import ROWS, Comparison, Side, Words, compared
from mcp_batteries.sql.rows import Results, RowPage, compact
from postgres.serving import inside as postgres
from postgres.serving import make, text_of
from sqlite.serving import make as make_file
from sqlite.serving import run as run_on
from sqlite.serving import served as sqlite

pytestmark = pytest.mark.anyio

WORDS = Words(lambda column, _, __: f"{column} COLLATE BINARY", "IS NOT")
NAMES = ["id", "a", 'say "x"', "order", "A b", "times", "l1\nl2"]
VALUES: list[Any] = [None, 0, 1, 1.0, -2.5, "", "x", "X", "x ", "é", "1", "a | b"]
SCHEMA = """
CREATE TABLE now (id integer PRIMARY KEY, name text, amount numeric(8, 2), extra text);
CREATE TABLE old (ID integer, name varchar(20), amount numeric(8, 2));
INSERT INTO now VALUES (1, 'one', 1.50, 'e'), (2, 'two', 2, 'e'), (3, 'two', 3, 'e'), (5, NULL, 5, 'e');
INSERT INTO old VALUES (1, 'one', 1.5), (2, 'Two', 2), (3, 'Two', 4), (4, 'four', 4), (5, '', 5);
CREATE TABLE twice (id integer, name text);
INSERT INTO twice VALUES (1, 'one'), (1, 'one'), (2, 'two');
CREATE VIEW seen AS SELECT id, name FROM now;
"""
DIFFERS = """now 4 rows, old 5 rows; matched by id
columns only in now: extra
only in now: 0 rows
only in old: 1 row
["id","name","amount"]
[4,"four",4]
changed: 3 rows (now | old: key)
name, 3 rows
- "two" | "Two": 2, 3
- null | "": 5
amount, 1 row
- 3 | 4: 3"""
TWICE = """seen 4 rows, twice 3 rows; {how}
only in seen: 2 rows
["id","name","times"]
[3,"two",1]
[5,null,1]
only in twice: 1 row
[1,"one",1]"""


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def drawn(seed: int) -> tuple[list[str], list[list[Any]], list[list[Any]]]:
    """Columns, the key first, and two tables: the second is the first with rows gone, come and changed."""
    draw = random.Random(seed)
    columns = ["id", *draw.sample(NAMES[1:], draw.randint(0, 4))]
    one = [[number, *(draw.choice(VALUES) for _ in columns[1:])] for number in range(draw.choice([0, 3, 40, 150]))]
    other = [list(row) for row in one if draw.random() > 0.1]
    for row in other:
        if len(row) > 1 and draw.random() < 0.3:
            row[draw.randrange(1, len(row))] = draw.choice(VALUES)
    other += [[1000 + number, *(draw.choice(VALUES) for _ in columns[1:])] for number in range(draw.randint(0, 30))]
    draw.shuffle(other)
    return columns, one, other


async def found(columns: Sequence[str], one: Any, other: Any, key: Sequence[str], collation: str = "") -> Comparison:
    with closing(sqlite3.connect(":memory:")) as database:
        names = ", ".join(quoted(name) for name in columns)
        for table, rows in (("one", one), ("other", other)):
            database.execute(f"CREATE TABLE {table} ({names.replace(',', f' {collation},')} {collation})")
            database.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(columns))})", rows)

        async def run(statements: Sequence[str]) -> Results:
            pages: list[RowPage] = []
            for sql in statements:
                cursor = database.execute(sql)
                heads = [column[0] for column in cursor.description]
                lines = [f"{compact(list(row))}\n" for row in cursor]
                assert len(lines) <= ROWS
                pages.append(RowPage(heads, "".join(lines), 1, len(lines), None))
            return Results(pages)

        kinds = dict.fromkeys(columns, "")
        return await compared(Side("one", "one", kinds, key), Side("other", "other", kinds), WORDS, run)


@pytest.mark.parametrize("seed", range(80))
async def test_rows_of_a_key_differ_as_python_finds_it(seed: int) -> None:
    columns, one, other = drawn(seed)
    comparison = await found(columns, one, other, ["id"], ["", "COLLATE NOCASE"][seed % 2])
    left, right = ({row[0]: row for row in rows} for rows in (one, other))
    gone, come = sorted(left.keys() - right.keys()), sorted(right.keys() - left.keys())
    assert [number for number, _ in comparison.only] == [len(gone), len(come)]
    assert comparison.only[0][1] == [left[key] for key in gone[:20]]
    assert comparison.only[1][1] == [right[key] for key in come[:20]]
    both = [(left[key], right[key]) for key in sorted(left.keys() & right.keys())]
    changed = [(row, now) for row, now in both if row != now]
    assert comparison.changed == len(changed)
    by_column = {
        name: number
        for place, name in enumerate(columns)
        if (number := sum(row[place] != now[place] for row, now in changed))
    }
    assert comparison.by_column == by_column
    for place, name in enumerate(columns):
        pairs: dict[str, list[str]] = {}
        for row, now in changed[:ROWS]:
            if row[place] != now[place]:
                pairs.setdefault(f"{compact(row[place])} | {compact(now[place])}", []).append(str(row[0]))
        assert comparison.pairs.get(name, {}) == pairs
    assert comparison.text().startswith(f"one {len(one)} row")


@pytest.mark.parametrize("seed", range(40))
async def test_whole_rows_differ_as_python_counts_them(seed: int) -> None:
    columns, one, other = drawn(seed)
    one, other = ([row[1:] or row for row in rows] for rows in (one, other))
    columns = columns[1:] or columns
    comparison = await found(columns, one, other, [], ["", "COLLATE NOCASE"][seed % 2])
    left, right = (Counter(map(tuple, rows)) for rows in (one, other))
    assert [number for number, _ in comparison.only] == [(left - right).total(), (right - left).total()]
    for (_, rows), rest in zip(comparison.only, (left - right, right - left), strict=True):
        assert len(rows) == min(20, len(rest))
        assert all(rest[tuple(row[:-1])] == row[-1] for row in rows)


@pytest.fixture(params=["sqlite", "postgres"])
async def wire(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Any]:
    if request.param == "sqlite":
        path = tmp_path / "app.db"
        run_on(make_file(path), SCHEMA)
        async with sqlite(path) as client:
            yield client
    else:
        async with postgres(f"app={make(SCHEMA).url('owner')}") as client:
            yield client


async def told(wire: Any, **arguments: Any) -> str:
    said = text_of(await wire.call("get_table", **arguments)).rstrip()
    return said.replace("public.", "").replace('"4.00"', "4").replace('"3.00"', "3")


async def test_both_servers_tell_it_alike(wire: Any) -> None:
    assert await told(wire, table="now", compare_with="old") == DIFFERS
    assert (await told(wire, table="old", compare_with="now")).startswith("old 5 rows, now 4 rows; matched by ")
    assert await told(wire, table="now", compare_with="now") == "now 4 rows, now 4 rows; matched by id\nNo row differs."
    how = "whole rows are compared: they share no key"
    assert await told(wire, table="seen", compare_with="twice") == TWICE.format(how=how)
    said = await told(wire, table="now", compare_with="twice")
    assert "id is not unique in twice, so whole rows are compared" in said and '[1,"one",1]' in said
    assert "There is no table or view `nothing`" in await told(wire, table="now", compare_with="nothing")


async def test_masked_columns_are_told_and_not_compared(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    run_on(make_file(path), SCHEMA)
    url = make(SCHEMA).url("postgres")
    servers = [sqlite("--mask", "now.name", path), postgres("--mask", "public.now.name", f"app={url}")]
    for server in servers:
        async with server as client:
            said = await told(client, table="now", compare_with="old")
            assert "masked in now, not compared: name" in said and "two" not in said.lower(), said
            assert "changed: 1 row" in said
