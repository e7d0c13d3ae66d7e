"""Values for a statement, written as every dialect and driver writes them: taken rightly, or answered with the way."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mcp_batteries.errors import Invalid
from mcp_batteries.sql.language.suggestions import explain_parameter_style
from mcp_postgres.policy.call_settings import parse_planner_settings
from postgres.serving import inside, text_of
from postgres.serving import make as make_postgres
from sqlite.serving import make as make_sqlite
from sqlite.serving import served

pytestmark = pytest.mark.anyio

Written = Callable[[int, str], str]
DIALECTS: dict[str, Written] = {
    # What stands for the value with a number, and a name.
    "question mark": lambda number, name: "?",
    "numbered question mark": lambda number, name: f"?{number}",
    "Oracle": lambda number, name: f":{name}",
    "numbered colon": lambda number, name: f":{number}",
    "SQL Server": lambda number, name: f"@{name}",
    "PostgreSQL": lambda number, name: f"${number}",
    "named dollar": lambda number, name: f"${name}",
    "C": lambda number, name: "%s",
    "Python": lambda number, name: f"%({name})s",
    "format": lambda number, name: f"{{{name}}}",
    "Jinja": lambda number, name: f"{{{{ {name} }}}}",
    "JavaScript": lambda number, name: f"${{{name}}}",
    "MyBatis": lambda number, name: f"#{{{name}}}",
    "psql": lambda number, name: ":'…'",
    "SQL*Plus": lambda number, name: f"&{name}",
}
PLACES: dict[str, tuple[Any, ...]] = {
    # Each finds the row of `b`, which has the key 2.
    "SELECT id, name FROM t WHERE id = {0}": (2,),
    "SELECT id, name FROM t WHERE id={0}": (2,),
    "SELECT id, name FROM t WHERE {0} = name": ("b",),
    "SELECT id, name FROM t WHERE id IN ({0}, {1})": (2, 99),
    "SELECT id, name FROM t WHERE id BETWEEN {0} AND {1};": (2, 2),
    "SELECT id, name FROM t WHERE name LIKE {0}": ("b",),
    "SELECT id, name FROM t WHERE name={0} AND id >= {1}": ("b", 1),
    "SELECT id, name FROM t WHERE id > 1 ORDER BY id LIMIT {0}": (1,),
    "SELECT id, name FROM t ORDER BY id LIMIT {0} OFFSET {1}": (1, 1),
    "SELECT id, name FROM t WHERE lower(name) = lower({0})": ("B",),
    "SELECT id, name FROM t -- of {{{{all}}}} 'kinds'\nWHERE id = {0}\n-- done": (2,),
    "SELECT id, name FROM t WHERE id = CAST({0} AS integer) AND name <> ':x %s ?'": (2,),
    "SELECT id, CASE WHEN id = {0} THEN name ELSE {1} END FROM t WHERE id = {2}": (2, "-", 2),
    "WITH x AS (SELECT id, name FROM t WHERE name = {0}) SELECT id, name FROM x WHERE id = {1}": ("b", 2),
}
NAMES = (("id", "name", "id2"), ("p1", "p2", "p3"))


def cases() -> Iterator[tuple[str, str, tuple[Any, ...], dict[str, Any]]]:
    """Each dialect in each place: the dialect, the statement, its values as an array and as an object."""
    for (dialect, written), names, (place, values) in itertools.product(DIALECTS.items(), NAMES, PLACES.items()):
        texts = [written(number, name) for number, name in enumerate(names, 1)]
        yield dialect, place.format(*texts), values, dict(zip(names, values, strict=False))


@pytest.mark.slow
async def test_postgresql_takes_its_own_and_says_so_to_others() -> None:
    base = make_postgres()
    async with inside(f"app={base.url()}") as wire:
        for dialect, sql, values, named in cases():
            answer = await wire.call("query_rows", sql=sql, parameters=list(values))
            said = text_of(answer)
            if dialect == "PostgreSQL":
                assert '[2,"b"]' in said and "[1 row]" in said, f"{sql}: {said}"
            else:
                written = DIALECTS[dialect](1, next(iter(named)))
                assert answer["isError"] and f"Write $1 in place of `{written}`" in said, f"{sql}: {said}"
        said = text_of(await wire.call("explain_query", sql="SELECT * FROM t WHERE id = @id", parameters=[1]))
        assert "Write $1 in place of `@id`" in said


@pytest.mark.slow
async def test_sqlite_takes_its_own_and_says_so_to_others(tmp_path: Path) -> None:
    async with served(make_sqlite(tmp_path / "a.db")) as wire:
        for dialect, sql, values, named in cases():
            for given in (list(values), named):
                arguments = {"sql": sql, "parameters": given}
                answer = await wire.request("tools/call", {"name": "query_rows", "arguments": arguments})
                said = text_of(answer)
                if dialect in ("question mark", "numbered question mark", "PostgreSQL", "numbered colon"):
                    taken, way = given is not named, "Pass an array as `parameters`: a value for "
                else:
                    taken = dialect in ("Oracle", "SQL Server", "named dollar")
                    way = f"Write ? in place of `{DIALECTS[dialect](1, next(iter(named)))}`"
                if taken:
                    assert '[2,"b"]' in said and "[1 row]" in said, f"{sql}: {said}"
                else:
                    assert answer["isError"] and way in said, f"{sql}: {said}"


async def test_numbers_of_sqlite_mean_places_in_the_array(tmp_path: Path) -> None:
    """sqlite3 of Python 3.13 and before takes them in the order of the statement."""
    async with served(make_sqlite(tmp_path / "a.db")) as wire:

        async def asked(sql: str, given: Any) -> str:
            arguments = {"sql": sql, "parameters": given}
            return text_of(await wire.request("tools/call", {"name": "query_rows", "arguments": arguments}))

        for sign in ("$", ":", "@", "?"):
            said = await asked(f"SELECT {sign}2, {sign}1, {sign}2", ["a", "b"])
            assert '["b","a","b"]' in said, said
        for sql, given, way in (
            ("SELECT $1", [1, 2], "a value for every $1"),
            ("SELECT $1, $3", [1, 2], "a value for each of $1, $3"),
            ("SELECT :a, :b", [1], '{"a": …, "b": …}'),
            ("SELECT :a, :b", {"a": 1}, '{"a": …, "b": …}'),
            ("SELECT ?, ?", [1], "a value for every ?"),
            ("SELECT :a, @a", [1, 2], "write different names"),
            ("SELECT :a, @a", {":a": 1, "@a": 2}, "write different names"),
            ("SELECT ?, :a", [1, 2], "Write ? for each of them, or a name for each."),
            ("SELECT :a, ?2", [1, 2], "Write ? for each of them, or a name for each."),
            ("SELECT :a, @a", {"a": 1}, "[1,1]"),
            ("SELECT 1 IN (?)", [[1, 2]], "json_each(?)"),
            ("SELECT ':a'", [1], "Write ? where each value of `parameters` stands, without quotes."),
        ):
            said = await asked(sql, given)
            assert way in said, f"{sql}: {said}"


async def test_postgresql_tells_where_values_without_a_place_stand() -> None:
    async with inside(f"app={make_postgres().url()}") as wire:
        said = text_of(await wire.call("query_rows", sql="SELECT name FROM t WHERE name = '$1'", parameters=["b"]))
        assert "where its values stand, without quotes" in said
        said = text_of(await wire.call("query_rows", sql="SELECT * FROM tt WHERE id = @id", parameters=[1]))
        assert "Write $1" not in said, "the table is missing first"
        said = text_of(await wire.call("query_rows", sql="SELECT id FROM t WHERE id = @id AND id = @ -2"))
        assert "[2]" in said and "[1 row]" in said, said
        for sql, values, way in (
            ("SELECT nam FROM t WHERE id = @id", None, "t.name"),
            ("SELECT name FROM t WHERE id = @idd", None, "in place of `@idd`"),
            ("SELECT $1 IS NULL", [1], "$1::text"),
            ("SELECT $2::int", [1, 2], "every number from $1"),
            ("SELECT name FROM t WHERE id IN ($1)", [[1, 2]], "`= ANY ($1)`"),
            ("SELECT 1; SELECT name FROM t WHERE id = :id", [[], [2]], "in place of `:id`"),
            ("SELECT 1; SELECT nam FROM t", None, "t.name"),
            ("SELECT 1; SELECT id, FROM t", None, "a comma too many"),
        ):
            said = text_of(await wire.call("query_rows", sql=sql, parameters=values))
            assert way in said, f"{sql}: {said}"


def test_operators_are_no_parameters() -> None:
    for sql in (
        "SELECT data ? 'a', data ?| ARRAY['a'], data ?& ARRAY['a'] FROM t", "SELECT a <@ b, a @> b, a @@ b, @ a FROM t",
        "SELECT a[1:n], a[:n], a::int, (a)::text FROM t", "SELECT 5 % s, a %s FROM t", "SELECT f(a := 1, b => 2)",
        "SELECT a & b, a && b, $$x$$, $tag$ x $tag$", "SELECT data @? '', data #> '', data -> '', data ->> ''",
    ):  # fmt: skip
        assert not explain_parameter_style(sql, r"\$\d+"), sql


@pytest.mark.parametrize("value", ["1\0", "\ud800"])
def test_a_value_that_is_no_text_is_named_with_its_setting(value: str) -> None:
    with pytest.raises(Invalid, match="The value of `work_mem` holds"):
        parse_planner_settings({"work_mem": value})
