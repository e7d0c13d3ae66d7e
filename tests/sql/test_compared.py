"""In which rows two tables differ: as Python finds it, by both servers, and of what is served only."""

import random
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mcp_batteries.server.calling.results import to_compact_json
from mcp_batteries.sql.language.identifiers import quote_identifier
from mcp_batteries.sql.results.comparison import MAX_ROWS, Comparison, ComparisonDialect, TableRef, compare_tables
from mcp_batteries.sql.results.rows import Results, RowPage
from postgres.serving import inside as postgres
from postgres.serving import make, text_of
from sqlite.serving import make as make_file
from sqlite.serving import run as run_on
from sqlite.serving import served as sqlite

pytestmark = pytest.mark.anyio

WORDS = ComparisonDialect(lambda column, _, __: f"{column} COLLATE BINARY", "IS NOT")
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
changed: 3 rows, letter case and NULL count (now | old: key)
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
        names = ", ".join(quote_identifier(name) for name in columns)
        for table, rows in (("one", one), ("other", other)):
            database.execute(f"CREATE TABLE {table} ({names.replace(',', f' {collation},')} {collation})")
            database.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(columns))})", rows)

        async def run(statements: Sequence[str]) -> Results:
            pages: list[RowPage] = []
            for sql in statements:
                cursor = database.execute(sql)
                heads = [column[0] for column in cursor.description]
                lines = [f"{to_compact_json(list(row))}\n" for row in cursor]
                assert len(lines) <= MAX_ROWS
                pages.append(RowPage(heads, "".join(lines), 1, len(lines), None))
            return Results(pages)

        kinds = dict.fromkeys(columns, "")
        return await compare_tables(TableRef("one", "one", kinds, key), TableRef("other", "other", kinds), WORDS, run)


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
        pairs: dict[tuple[str, str], list[str]] = {}
        for row, now in changed[:MAX_ROWS]:
            if row[place] != now[place]:
                pairs.setdefault((to_compact_json(row[place]), to_compact_json(now[place])), []).append(str(row[0]))
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


def serving(server: str, schema: str, folder: Path) -> Any:
    """What `server` serves is made by `schema`."""
    if server == "postgres":
        return postgres(f"app={make(schema).url('owner')}")
    run_on(make_file(folder / "app.db"), schema)
    return sqlite(folder / "app.db")


async def test_what_is_told_together_is_of_one_moment() -> None:
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(
            "CREATE TABLE one (id, a); CREATE TABLE other (id, a); INSERT INTO one VALUES (1, 1);"
            "INSERT INTO other VALUES (1, 1)"
        )

        async def run(statements: Sequence[str]) -> Results:
            pages = [database.execute(sql).fetchall() for sql in statements]
            # What another program commits between two calls.
            database.execute("INSERT INTO one SELECT max(id) + 1, 1 FROM one")
            texts = ["".join(f"{to_compact_json(list(row))}\n" for row in rows) for rows in pages]
            return Results([RowPage([], text, 1, len(rows), None) for text, rows in zip(texts, pages, strict=True)])

        kinds = {"id": "", "a": ""}
        comparison = await compare_tables(
            TableRef("one", "one", kinds, ["id"]), TableRef("other", "other", kinds), WORDS, run
        )
    assert comparison.text().startswith("one 2 rows, other 1 row; matched by id\nonly in one: 1 row\n")


@pytest.fixture(params=["sqlite", "postgres"])
async def wire(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Any]:
    async with serving(request.param, SCHEMA, tmp_path) as client:
        yield client


async def told(wire: Any, **arguments: Any) -> str:
    said = text_of(await wire.call("get_table", **arguments)).rstrip()
    return said.replace("public.", "").replace('"4.00"', "4").replace('"3.00"', "3")


async def test_both_servers_tell_it_alike(wire: Any) -> None:
    assert await told(wire, table="now", compare_with="old") == DIFFERS
    assert (await told(wire, table="old", compare_with="now")).startswith("old 5 rows, now 4 rows; matched by ")
    assert await told(wire, table="now", compare_with="now") == "now 4 rows, now 4 rows; matched by id\nNo row differs."
    counts = "".join(line for line in DIFFERS.splitlines(keepends=True) if line[0] not in "[-").replace(
        " (now | old: key)", ""
    )
    assert await told(wire, table="now", compare_with="old", sample=0) == counts.rstrip()
    assert "- … 1 more\n" in await told(wire, table="now", compare_with="old", sample=1)
    how = "whole rows are compared: they share no key"
    assert await told(wire, table="seen", compare_with="twice") == TWICE.format(how=how)
    said = await told(wire, table="now", compare_with="twice")
    assert "whole rows are compared: id is not unique in twice\n" in said and '[1,"one",1]' in said
    assert "There is no table or view `nothing`" in await told(wire, table="now", compare_with="nothing")


def columns_of(number: int) -> str:
    return ", ".join(f"c{each} text" for each in range(number))


LONG = f"'{'x' * 99}'"
BEGINS, ENDLESS = f"'{'x' * 400}", f"'{'x' * 4000}"
ODD = {
    "values with line ends of Unicode": (
        "CREATE TABLE a (id integer PRIMARY KEY, t text); CREATE TABLE b (id integer PRIMARY KEY, t text);"
        "INSERT INTO a VALUES (1, 'x\u2028y'), (2, '\x85'); INSERT INTO b VALUES (1, 'x\u2028y'), (2, 'z\u2029')",
        'changed: 1 row, letter case and NULL count (a | b: key)\nt, 1 row\n- "\\x85" | "z\\u2029": 2',
    ),
    "keys that are null": (
        "CREATE TABLE a (id integer PRIMARY KEY, t text); CREATE TABLE b (id integer, t text);"
        "INSERT INTO a VALUES (1, NULL); INSERT INTO b VALUES (1, NULL), (NULL, 'x')",
        'matched by id\nonly in a: 0 rows\nonly in b: 1 row\n["id","t"]\n[null,"x"]',
    ),
    "many columns": (
        f"CREATE TABLE a (id integer PRIMARY KEY, {columns_of(400)});"
        f"CREATE TABLE b (id integer PRIMARY KEY, {columns_of(400)});"
        "INSERT INTO a (id, c7) VALUES (1, 'x'), (2, 'x'); INSERT INTO b (id, c7) VALUES (1, 'x'), (2, 'y')",
        'changed: 1 row, letter case and NULL count (a | b: key)\nc7, 1 row\n- "x" | "y": 2',
    ),
    "more columns than three of each fit in a result": (
        f"CREATE TABLE a (id integer PRIMARY KEY, {columns_of(1100)});"
        f"CREATE TABLE b (id integer PRIMARY KEY, {columns_of(1100)});"
        "INSERT INTO a (id, c7, c1099) VALUES (1, 'x', 'x'), (2, 'x', 'x');"
        "INSERT INTO b (id, c7, c1099) VALUES (1, 'x', 'y'), (2, 'y', 'x')",
        'NULL count (a | b: key)\nc7, 1 row\n- "x" | "y": 2\nc1099, 1 row\n- "x" | "y": 1',
    ),
    "many rows without a key on one side": (
        "CREATE TABLE a (id integer PRIMARY KEY, t text); INSERT INTO a WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL"
        " SELECT x + 1 FROM n WHERE x < 100000) SELECT x, 'x' FROM n; CREATE TABLE b AS SELECT * FROM a;"
        "UPDATE b SET t = 'y' WHERE id = 70000",
        "a 100,000 rows, b 100,000 rows; matched by id\nonly in a: 0 rows\nonly in b: 0 rows\n"
        'changed: 1 row, letter case and NULL count (a | b: key)\nt, 1 row\n- "x" | "y": 70000',
    ),
    "long values that begin alike": (
        "CREATE TABLE a (id integer PRIMARY KEY, t text); CREATE TABLE b (id integer PRIMARY KEY, t text);"
        f"INSERT INTO a VALUES (1, {BEGINS}one'), (2, {BEGINS}two'), (3, {ENDLESS}x');"
        f"INSERT INTO b VALUES (1, {BEGINS}uno'), (2, {BEGINS}two.'), (3, {ENDLESS}y');",
        f't, 3 rows\n- [cut]…{"x" * 30}one" | [cut]…{"x" * 30}uno": 1\n'
        f'- [cut]…{"x" * 27}two" | [cut]…{"x" * 27}two.": 2\n'
        f'- "{"x" * 99}…[cut] | begins alike, differs behind the part that was read: 3',
    ),
    "rows of which a page has few": (
        f"CREATE TABLE a (id integer PRIMARY KEY, {columns_of(90)}); CREATE TABLE b AS SELECT * FROM a;"
        + "".join(f"INSERT INTO a (id) VALUES ({number});" for number in range(60))
        + "".join(f"INSERT INTO b (id, c0) VALUES ({number}, '');" for number in range(60))
        + f"UPDATE b SET {', '.join(f'c{number} = {LONG}' for number in range(90))}",
        "changed: 60 rows, letter case and NULL count (a | b: key)\n[values of the first ",
    ),
}  # fmt: skip


@pytest.mark.share(2, slow=12)
@pytest.mark.parametrize("server", ["sqlite", "postgres"])
@pytest.mark.parametrize("what", ODD)
async def test_odd_tables_are_compared(what: str, server: str, tmp_path: Path) -> None:
    schema, expected = ODD[what]
    async with serving(server, schema, tmp_path) as wire:
        assert expected in await told(wire, table="a", compare_with="b")


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (('text COLLATE "C"', "'x'"), ('text COLLATE "POSIX"', "'X'"), '"x" | "X": 1'),
        (("integer[]", "'{1}'"), ("integer", "1"), '"{1}" | 1: 1'),
        (("really", "'x'"), ("real", "1"), '"x" | 1: 1'),
        (("numeric(9, 2)", "1.50"), ("double precision", "1.5"), "No row differs."),
        (("json", "'[1,2]'"), ("json", "'[1, 2]'"), "[1,2] | looks the same, but its type or spelling differs: 1"),
        (("real", "0.1"), ("double precision", "0.1"), "0.1 | looks the same, but its type or spelling differs: 1"),
    ],
)
async def test_postgresql_compares_what_is_of_two_kinds(
    left: tuple[str, str], right: tuple[str, str], expected: str
) -> None:
    made = "CREATE TYPE really AS ENUM ('x');"
    for name, (kind, value) in (("a", left), ("b", right)):
        made += f"CREATE TABLE {name} (id integer PRIMARY KEY, t {kind}); INSERT INTO {name} VALUES (1, {value});"
    async with postgres(f"app={make(made).url('owner')}") as client:
        assert expected in await told(client, table="a", compare_with="b")


async def test_a_number_and_a_text_that_look_the_same_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    run_on(
        make_file(path),
        "CREATE TABLE a (id integer PRIMARY KEY, v); INSERT INTO a VALUES (1, 9007199254740993);"
        "CREATE TABLE b (id integer PRIMARY KEY, v); INSERT INTO b VALUES (1, '9007199254740993')",
    )
    async with sqlite(path) as client:
        said = await told(client, table="a", compare_with="b")
    assert '"9007199254740993" | looks the same, but its type or spelling differs: 1' in said


async def test_a_key_that_does_not_tell_which_rows_belong_together_is_none(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    run_on(
        make_file(path),
        "CREATE TABLE a (k text PRIMARY KEY); CREATE TABLE b (k text PRIMARY KEY);"
        "INSERT INTO a VALUES (NULL), ('x'); INSERT INTO b SELECT * FROM a;"
        "CREATE TABLE n (k integer PRIMARY KEY); INSERT INTO n VALUES (1); CREATE TABLE s (k text);"
        "INSERT INTO s VALUES ('1'), ('01')",
    )
    async with sqlite(path) as client:
        said = await told(client, table="a", compare_with="b")
        assert said.endswith("whole rows are compared: k is NULL in rows of both\nNo row differs.")
        said = await told(client, table="n", compare_with="s")
        assert "; whole rows are compared: a value of k stands for several rows of the other\n" in said


@pytest.mark.parametrize("server", ["sqlite", "postgres"])
async def test_only_letters_of_ascii_have_two_cases(server: str, tmp_path: Path) -> None:
    schema = """CREATE TABLE a (id integer PRIMARY KEY, "É" integer, "N" integer);
    CREATE TABLE b (id integer PRIMARY KEY, "é" integer, "n" integer);
    INSERT INTO a VALUES (1, 7, 8); INSERT INTO b VALUES (1, 9, 9);
    CREATE TABLE c ("TIMES" integer); CREATE TABLE d ("TIMES" integer); INSERT INTO c VALUES (7)"""
    async with serving(server, schema, tmp_path) as client:
        said = await told(client, table="a", compare_with="b")
        assert "columns only in a: É\ncolumns only in b: é\n" in said and said.endswith("N, 1 row\n- 8 | 9: 1"), said
        said = await told(client, table="c", compare_with="d")
        assert "only in c: 1 row\n" in said and said.splitlines()[3] == "[7,1]", said


async def test_names_of_postgresql_that_differ_in_case_belong_together_once() -> None:
    schema = """CREATE TABLE a (id integer PRIMARY KEY, "Id" integer, "ID" integer);
    CREATE TABLE b (id integer PRIMARY KEY, "iD" integer);
    INSERT INTO a VALUES (1, 7, 8); INSERT INTO b VALUES (1, 9)"""
    async with postgres(f"app={make(schema).url('owner')}") as client:
        said = await told(client, table="a", compare_with="b")
        assert "columns only in a: ID\n" in said and said.endswith("Id, 1 row\n- 7 | 9: 1")


@pytest.mark.parametrize("server", ["sqlite", "postgres"])
async def test_masked_columns_are_told_and_not_compared(server: str, tmp_path: Path) -> None:
    if server == "postgres":
        client = postgres("--mask", "public.now.name", f"app={make(SCHEMA).url('postgres')}")
    else:
        run_on(make_file(tmp_path / "app.db"), SCHEMA)
        client = sqlite("--mask", "now.name", tmp_path / "app.db")
    async with client as wire:
        said = await told(wire, table="now", compare_with="old")
        assert "masked in now, not compared: name" in said and "two" not in said.lower(), said
        assert "changed: 1 row" in said
        if server == "sqlite":
            said = await told(wire, table="seen", compare_with="twice")
            assert "\n[now.name is masked: every value counts as •••, in conditions too]\n" in said
            return
        for one, other in (("seen", "now"), ("now", "seen"), ("seen", "twice")):
            said = await told(wire, table=one, compare_with=other)
            assert "masked in seen, not compared: name" in said and "two" not in said.lower(), said
