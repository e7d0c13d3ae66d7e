"""How rows before and after a change are shown."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mcp_batteries.sql.results.changes import Sample
from postgres.serving import inside, text_of
from postgres.serving import make as make_postgres
from sqlite.serving import run, served

WIDE = ["id", *(f"c{number}" for number in range(9))]


def lines(*rows: Sequence[object]) -> str:
    return "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)


def shown(before: str, after: str, columns: list[str] = WIDE, old_columns: list[str] = WIDE) -> list[str]:
    return Sample("t", columns, before, after, old_columns).text().splitlines()


def test_of_wide_rows_only_what_differs_is_shown() -> None:
    before, after = lines([1, *range(9)], [2, *range(9)]), lines([1, *range(8), 0], [2, *range(9)])
    assert shown(before, after) == [
        't: ["id","c8"]', "8 other columns as before", "- [1,8]", "- [2,8]", "+ [1,0]", "+ [2,8]",
    ]  # fmt: skip


def test_all_is_shown_where_rows_may_not_be_the_same_or_cells_may_be_cut() -> None:
    one, other = lines([1, *range(9)]), lines([2, *range(9)])
    assert shown(one, other)[1:] == ["- [1,0,1,2,3,4,5,6,7,8]", "+ [2,0,1,2,3,4,5,6,7,8]"]
    assert shown(one, one + other)[-1] == "+ [2,0,1,2,3,4,5,6,7,8]"
    assert shown("", one)[1:] == ["+ [1,0,1,2,3,4,5,6,7,8]"]
    long = lines([1, "x" * 100, *range(8)])
    assert shown(long, long) == [
        't: ["id","c0"]',
        "8 other columns as before",
        f'- [1,"{"x" * 100}"]',
        f'+ [1,"{"x" * 100}"]',
    ]
    twice = ["id", *["c"] * 9]
    assert shown(one, one, twice, twice)[0] == f"t: {json.dumps(twice, separators=(',', ':'))}"


def test_what_tells_rows_apart_stays() -> None:
    columns = ["tenant", "same", "id", *(f"c{number}" for number in range(6)), "state"]
    before = [["acme", 0, number, *range(6), "open"] for number in (1, 2)]
    after = [[*row[:-1], "closed"] for row in before]
    assert shown(lines(*before), lines(*after), columns, columns) == [
        't: ["tenant","id","state"]', "7 other columns as before",
        '- ["acme",1,"open"]', '- ["acme",2,"open"]', '+ ["acme",1,"closed"]', '+ ["acme",2,"closed"]',
    ]  # fmt: skip
    twins = lines(before[0], before[0])
    assert shown(twins, lines(after[0], after[0]), columns, columns)[1] == '- ["acme",0,1,0,1,2,3,4,5,"open"]'


def test_the_key_stays_wherever_it_stands() -> None:
    columns = ["name", *(f"c{number}" for number in range(8)), "id", "state"]
    before, after = lines(["ann", *range(8), 7, "open"]), lines(["ann", *range(8), 7, "closed"])
    said = Sample("t", columns, before, after, columns, ["id"]).text().splitlines()
    assert said == ['t: ["id","state"]', "9 other columns as before", '- [7,"open"]', '+ [7,"closed"]']
    other_key = lines(["ann", *range(8), 8, "closed"])
    assert len(Sample("t", columns, before, other_key, columns, ["id"]).text().splitlines()) == 3


@pytest.mark.anyio
async def test_both_engines_know_the_key(tmp_path: Path) -> None:
    numbers = ", ".join(f"c{number} integer" for number in range(8))
    schema = f"CREATE TABLE wide (name varchar(9), {numbers}, id integer PRIMARY KEY, state varchar(9));"
    schema += "INSERT INTO wide VALUES ('ann', 0, 1, 2, 3, 4, 5, 6, 7, 7, 'open');"
    update: dict[str, Any] = {"sql": "UPDATE wide SET state = 'closed'", "dry_run": True}
    run(tmp_path / "wide.db", schema)
    async with served("--write", tmp_path / "wide.db") as wire:
        said = [text_of(await wire.call("write_rows", **update))]
    base = make_postgres(schema + "GRANT ALL ON wide TO PUBLIC;")
    async with inside("--write", base.url()) as wire:
        said.append(text_of(await wire.call("write_rows", **update)))
    for text in said:
        assert '["id","state"]' in text and '- [7,"open"]' in text and '+ [7,"closed"]' in text


def test_rows_stand_below_the_columns_that_they_had() -> None:
    said = shown(lines([1, "a"]), lines(["ax", 3]), ["name", "n"], ["id", "name"])
    assert said == ['t: ["name","n"]', 'before: ["id","name"]', '- [1,"a"]', '+ ["ax",3]']


def test_cells_stay_as_they_are_written() -> None:
    rest = ",".join(str(number) for number in range(8))
    before, after = f'[1,{{"a": 1.10}},{rest}]\n', f'[1,{{"a": 1.1, "a": 2}},{rest}]\n'
    assert shown(before, after)[2:] == ['- [1,{"a": 1.10}]', '+ [1,{"a": 1.1, "a": 2}]']
    before, after = f"[1,1.10,{rest}]\n", f"[1,1.1,{rest}]\n"
    assert shown(before, after)[2:] == ["- [1,1.10]", "+ [1,1.1]"]


@pytest.mark.anyio
async def test_a_dry_run_that_fails_shows_what_came_before(tmp_path: Path) -> None:
    schema = "CREATE TABLE t (id integer PRIMARY KEY, name text CHECK (name <> 'bad'));"
    run(tmp_path / "tried.db", schema)
    base = make_postgres(schema + "GRANT ALL ON t TO PUBLIC;")
    sql = "INSERT INTO t VALUES (1, 'one'); SELECT name FROM t; INSERT INTO t VALUES (2, 'bad')"
    async with served("--write", tmp_path / "tried.db") as sqlite, inside("--write", base.url()) as postgres:
        for wire in (sqlite, postgres):
            result = await wire.call("write_rows", sql=sql, dry_run=True)
            said = text_of(result)
            before, _, failure = said.partition("\nStatement 3 of 3")
            assert result["isError"] and '["name"]\n["one"]' in before and "changed" in failure.lower(), said
            assert before.startswith("Done before the failure, and taken back:\n1. ") and "\n2. " in before, said
            kept = text_of(await wire.call("write_rows", sql=sql))
            assert kept.startswith("Statement 3 of 3") and '["one"]' not in kept, kept
        rolled_back = text_of(await postgres.call("write_rows", sql=f"BEGIN; {sql}; ROLLBACK"))
        assert '["one"]' in rolled_back, rolled_back


@pytest.mark.anyio
async def test_rows_before_a_failure_have_pages(tmp_path: Path) -> None:
    numbers = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 300) SELECT x FROM c"
    run(tmp_path / "paged.db", "CREATE TABLE t (id integer PRIMARY KEY)")
    sql = f"{numbers}; {numbers.replace('SELECT x FROM c', 'SELECT abs(-9223372036854775807 - (x > 250)) FROM c')}"
    async with served("--write", tmp_path / "paged.db") as wire:
        said = text_of(await wire.call("write_rows", sql=sql, dry_run=True))
        assert "Statement 2 of 2" in said, said
        (cursor,) = re.findall(r"cursor=([\w-]+)", said)
        assert "[300]" in text_of(await wire.call("query_rows", cursor=cursor, limit=1000))
