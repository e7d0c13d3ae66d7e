"""Prove that files come in as they are: CSV and JSON of every oddity into new tables, compared with what Python reads.

Each file goes into a table that is made for it, by mcp-sqlite and by mcp-postgres; the rows are those that `csv` or
`json` read, in types that keep them. Then all is exported and imported again: nothing is lost on the way.
"""

from __future__ import annotations

import csv
import io
import json
import random
import re
import sqlite3
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, NamedTuple

from mcp_batteries.sql.language.identifiers import quote_identifier
from mcp_sqlite.worker import operations
from mcp_sqlite.worker.connection.connections import Connections
from mcp_sqlite.worker.connection.interrupt import Interrupt
from mcp_sqlite.worker.language.failure import Failure
from postgres.serving import inside, make, text_of
from proofs.tally import Tally

NAMES = [
    "id", "a", "A b", "order", 'say "x"', "a,b", "l1\nl2", " around ", "ä", "İx", "名", "x'y", "1st", "a.b",
    "%s", "$1", ":n", "-- c", "name that is longer than the sixty-three bytes which PostgreSQL keeps of one",
    "rowid", "ctid_", "NULL", "tab\there",
]  # fmt: skip
PLAIN = [name for name in NAMES if not set(name) & set(",;\t|")]
"""Those in which nothing could be between fields: of a header alone nobody knows."""
ODD = [
    "x", "a, b", 'she said "no"', "two\nlines", "carriage\r\nreturn", " lead", "trail ", "é", "😀", "\\.", "\\N",
    "NULL", "null", "'", '"', '""', ",", ";", "=1+1", "\ufeffx", "\u2028", "\t", "-", "+", "+1", "1 2", "0x10",
    "NaN", "Infinity", "1_000", "1,000", "½", "x'00'", "{}", "١٢", "t", "\\", "\\\\", "\n", " ", "\n\\.\n",
    "a\\.",
]  # fmt: skip
Maker = Callable[[random.Random], str]
FLAVOURS: dict[str, Maker] = {
    "small": lambda c: str(c.randint(-99, 99)),
    "zeros": lambda c: f"{c.randint(0, 99):03}",
    "huge": lambda c: str(c.randint(-(10**30), 10**30)),
    "edge": lambda c: str(c.choice([2**53, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 10**18, 10**15, -0])),
    "money": lambda c: f"{c.randint(-9999, 9999)}.{c.randint(0, 99):02}",
    "digits": lambda c: f"{c.randint(0, 10)}.{c.randint(0, 10**25)}",
    "exponent": lambda c: f"{c.randint(0, 9)}.{c.randint(0, 9)}e{c.randint(-400, 400)}",
    "scientific": lambda c: f"{c.randint(1, 9)}e{c.randint(-20, 20)}",
    "date": lambda c: f"{c.randint(1000, 2999)}-{c.randint(1, 12):02}-{c.randint(1, 28):02}",
    "no date": lambda c: f"{c.randint(1000, 2999)}-{c.randint(1, 12):02}-{c.randint(28, 31):02}",
    "german": lambda c: f"{c.randint(1, 31):02}.{c.randint(1, 12):02}.{c.randint(1900, 2100)}",
    "american": lambda c: f"{c.randint(1, 12)}/{c.randint(1, 31)}/{c.randint(0, 99):02}",
    "moment": lambda c: (
        f"20{c.randint(10, 40)}-0{c.randint(1, 9)}-1{c.randint(0, 9)}"
        + f"{c.choice(' T')}{c.randint(0, 25):02}:{c.randint(0, 61):02}"
        + c.choice(["", ":07", ":59.123456"])
    ),
    "zoned": lambda c: (
        f"2024-05-1{c.randint(0, 9)}T1{c.randint(0, 9)}:00:00" + c.choice(["Z", "+02:00", "-0930", "+14"])
    ),
    "truth": lambda c: c.choice(["true", "false", "TRUE", "False"]),
    "uuid": lambda c: f"{c.getrandbits(128):032x}"[:8] + "-1234-4abc-8def-" + f"{c.getrandbits(48):012x}",
    "odd": lambda c: c.choice(ODD),
    "empty": lambda c: "",
}
WITH_COMMA: dict[str, Maker] = {
    "cents": lambda c: f"{c.randint(-99999, 99999)},{c.randint(0, 99):02}",
    "thousands": lambda c: f"{c.randint(-9999999, 9999999):,}".replace(",", ".") + c.choice(["", ",5", ",250"]),
    "small": FLAVOURS["small"],
    "zeros": FLAVOURS["zeros"],
}
"""As some spreadsheets write numbers, with something else between fields."""


_DECIMAL_COMMA = re.compile(r"(?!-?[1-9]\d?\d?,\d\d\d$).*,", re.ASCII)


@dataclass(frozen=True)
class File:
    """A file, and what is in it.

    Attributes:
        rows: as Python reads it; the names first.
        faulty: whether it has to be refused.
    """

    name: str
    content: bytes
    rows: Sequence[Sequence[Any]]
    faulty: bool = False


def csv_file(chance: random.Random) -> File:
    """Some CSV."""
    between = chance.choice([",", ",", ";", "\t", "|"])
    header, rows = _draw_table(chance, between)
    end = chance.choice(["\n", "\r\n"])
    quoting = csv.QUOTE_ALL if chance.random() < 0.5 else csv.QUOTE_MINIMAL
    out = io.StringIO()
    csv.writer(out, delimiter=between, lineterminator=end, quoting=quoting).writerows([header, *rows])
    text, faulty = _make_odd(chance, out.getvalue(), header, rows, between, end)
    encoding = chance.choice(["utf-8", "utf-8", "utf-8-sig", "utf-16"])
    read: list[list[str]] = []
    if not faulty:
        read = _read_csv(text, between, len(header))
    name = chance.choice(["in.csv", "in.tsv" if between == "\t" else "in.csv"])
    return File(name, text.encode(encoding), read, faulty)


def _draw_table(chance: random.Random, between: str) -> tuple[list[str], list[list[str]]]:
    """Return the names of columns, and rows in which each column has values of a kind, some of them empty."""
    width = chance.choice([1, 1, 2, 3, 5] if between == "," else [2, 3, 5])
    names = NAMES if between == "," and width > 1 else PLAIN
    kinds = FLAVOURS if between == "," else FLAVOURS | WITH_COMMA
    header = chance.sample(names, width)
    count = 1300
    if chance.random() < 0.97:
        count = chance.choice([0, 1, 2, 5, 12])
    column_kinds: list[str] = []
    for _ in header:
        with_comma = between != "," and chance.random() < 0.5
        column_kinds.append(chance.choice([*(WITH_COMMA if with_comma else kinds)]))
    rows = [[kinds[kind](chance) for kind in column_kinds] for _ in range(count)]
    for row in rows:
        for place in range(width):
            if chance.random() < 0.15:
                row[place] = ""
    if rows and chance.random() < 0.2:
        # What comes last is of another kind.
        rows[-1] = [FLAVOURS[chance.choice([*FLAVOURS])](chance) for _ in header]
    return header, rows


def _make_odd(
    chance: random.Random, text: str, header: Sequence[str], rows: Sequence[Sequence[str]], between: str, end: str
) -> tuple[str, bool]:
    """Return the text, half of the times with an oddity at its start or end, and whether no reader takes that."""
    width = len(header)
    match chance.randint(0, 11):
        case 0 if rows and width > 1:
            return text + "alone" + end, True
        case 1:
            return text.removesuffix(end), False
        case 2 if width > 1:
            return text + end, False
        case 3 if width > 1:
            return between.join(["twice"] * width) + end + text, True
        case 4:
            return text + '"open', True
        case 5 if width > 1 and len(rows) < 20 and "\n" not in "".join(header):
            return text + between.join(['5" disk', *[""] * (width - 1)]) + end, False
        case _:
            return text, False


def _read_csv(text: str, between: str, width: int) -> list[list[str]]:
    """Return the rows that Python's reader reads, with points for commas that surely are decimal ones."""
    read = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=between) if row or width == 1]
    if width == 1:
        read = [row or [""] for row in read]
    if between == "," or not read:
        return read
    columns = [*zip(*read[1:], strict=True)]
    pointed = [_pointed(column) for column in columns]
    if any(map(_surely_has_decimal_commas, columns, pointed)):
        columns = pointed
    return [read[0], *map(list, zip(*columns, strict=True))]


def _surely_has_decimal_commas(column: Sequence[str], pointed: Sequence[str]) -> bool:
    """Return whether a column can be read with points for commas, and has a comma that parts no thousands."""
    return column != pointed and any(map(_DECIMAL_COMMA.match, column))


def _pointed(column: Sequence[str]) -> Sequence[str]:
    """The values of a field with points for commas, if all are numbers and one has a comma, or dots of thousands."""
    parts = [value.removeprefix("-").split(",") for value in column if value]
    wholes = [part[0].split(".") for part in parts]
    for part, (first, *groups) in zip(parts, wholes, strict=True):
        digits = "".join([first, *groups, *part[1:]])
        if (
            len(part) > 2
            or not (digits.isascii() and digits.isdecimal() and len(digits) <= 15)
            or "" in (first, part[-1])
            or (first[0] == "0" and (len(first) > 1 or groups))
            or any(len(group) != 3 for group in groups)
            or (groups and len(first) > 3)
        ):
            return column
    if not any("," in value or "." in value for value in column):
        return column
    return [value.replace(".", "").replace(",", ".") for value in column]


def json_value(chance: random.Random, kind: str, depth: int = 0) -> Any:
    match kind:
        case "integer":
            return chance.choice([chance.randint(-99, 99), 2**53 + 1, 2**63 - 1])
        case "huge":
            return chance.randint(-(10**30), 10**30)
        case "real":
            return chance.choice([0.1, 1.5, -2.0, 1e300, 1e-300, 12345678901234567.0])
        case "truth":
            return chance.random() < 0.5
        case "nested" if depth < 2:
            inner = [
                json_value(chance, chance.choice(["integer", "text", "truth", "null", "nested"]), depth + 1)
                for _ in range(2)
            ]
            return inner if chance.random() < 0.5 else dict(zip(("a", 'b"'), inner, strict=True))
        case "text":
            return FLAVOURS[chance.choice([*FLAVOURS])](chance)
        case _:
            return None


def json_file(chance: random.Random) -> File:
    """Lines of objects or arrays, or one array of objects."""
    width = chance.choice([1, 2, 3, 5])
    header = chance.sample(NAMES if width > 1 else PLAIN, width)
    kinds = [chance.choice(["integer", "huge", "real", "truth", "nested", "text", "null"]) for _ in header]
    rows: list[list[Any]] = []
    for _ in range(chance.choice([1, 2, 5, 12])):
        row = [json_value(chance, kind) for kind in kinds]
        if chance.random() < 0.2:
            row[chance.randrange(width)] = json_value(
                chance, chance.choice(["null", "text", "integer", "real", "truth"])
            )
        rows.append(row)
    objects = [dict(zip(header, row, strict=True)) for row in rows]
    form = chance.choice(["lines", "lines", "array", "pretty", "arrays"])
    if form == "arrays":
        text = "".join(json.dumps(row, ensure_ascii=chance.random() < 0.5) + "\n" for row in [header, *rows])
    else:
        if chance.random() < 0.4:  # what is null may be left out, and the order is nobody's
            objects = [
                {k: v for k, v in chance.sample([*item.items()], width) if v is not None} or item for item in objects
            ]
        text = "\n".join(json.dumps(item) for item in objects) + chance.choice(["", "\n", "\n\n"])
        text = json.dumps(objects, indent=1 if form == "pretty" else None) if form in ("array", "pretty") else text
        header = list(dict.fromkeys(name for item in objects for name in item))
        rows = [[item.get(name) for name in header] for item in objects]
    encoding = chance.choice(["utf-8", "utf-8-sig", "utf-16"])
    return File("in.json" if form in ("array", "pretty") else "in.jsonl", text.encode(encoding), [header, *rows])


class Cell(NamedTuple):
    """A value, and its type where the database has types of columns; it is text then."""

    kind: str
    value: Any


class Sqlite:
    """A worker of mcp-sqlite, and a database."""

    name = "sqlite"

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, str(folder / "a.db")
        with closing(sqlite3.connect(self.path)) as connection:
            connection.execute("CREATE TABLE there (a)")
        self._connections = Connections(Interrupt())

    def close(self) -> None:
        self._connections.close()

    async def call(self, do: str, **more: Any) -> str:
        """What went wrong; empty where nothing did."""
        request = {"path": self.path, "folder": str(self.folder), "do": do, "max_bytes": 10**9, **more}
        self._connections.interrupt.start(60)
        try:
            operations.run(self._connections, request, lambda frame: None)
        except Failure as failure:
            return f"{failure.message} {failure.fix}"
        return ""

    async def take(self, file: str, table: str, *, dry_run: bool = False) -> str:
        return await self.call("import", name=file, table=table, make=True, dry_run=dry_run)

    async def give(self, table: str, file: str) -> str:
        return await self.call("export", name=file, sql=f'SELECT * FROM "{table}"')

    def rows(self, table: str) -> list[list[Cell]] | None:
        with closing(sqlite3.connect(self.path)) as connection:
            if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone():
                return None
            found = connection.execute(f'SELECT * FROM "{table}" ORDER BY _rowid_')
            return [[Cell("", value) for value in row] for row in found]

    def drop(self, *tables: str) -> None:
        with closing(sqlite3.connect(self.path)) as connection:
            for table in tables:
                connection.execute(f"DROP TABLE IF EXISTS {table}")


class Postgres:
    """mcp-postgres in this process, and a database; values are text, as PostgreSQL writes them."""

    name = "postgres"

    def __init__(self, folder: Path, wire: Any, base: Any) -> None:
        self.folder, self._wire, self._base = folder, wire, base
        self._connection = base.connect("owner")
        self._connection.execute(b"SET timezone = 'UTC'")

    async def call(self, tool: str, **more: Any) -> str:
        said = await self._wire.call(tool, **more)
        return text_of(said) if said.get("isError") else ""

    async def take(self, file: str, table: str, *, dry_run: bool = False) -> str:
        return await self.call("copy_from_file", file=file, table=table, dry_run=dry_run)

    async def give(self, table: str, file: str) -> str:
        return await self.call("copy_to_file", sql=f"TABLE {table}", file=file)

    def rows(self, table: str) -> list[list[Cell]] | None:
        if self._connection.execute("SELECT to_regclass(%s)", (table,)).fetchone() == (None,):
            return None
        found = self._connection.execute(
            "SELECT attname, atttypid::regtype::text FROM pg_attribute"
            " WHERE attrelid = to_regclass(%s) AND attnum > 0 ORDER BY attnum",
            (table,),
        ).fetchall()
        listed = ", ".join(f"{quote_identifier(name)}::text" for name, _ in found)
        rows = self._connection.execute(f"SELECT {listed} FROM {table} ORDER BY ctid".encode()).fetchall()
        kinds = [kind for _, kind in found]
        return [[Cell(kind, value) for kind, value in zip(kinds, row, strict=True)] for row in rows]

    def drop(self, *tables: str) -> None:
        for table in tables:
            self._connection.execute(f"DROP TABLE IF EXISTS {table}".encode())

    def close(self) -> None:
        self._connection.close()


def is_same(given: Any, kept: Cell) -> bool:
    """Whether a value of a file is what a database keeps."""
    kind, value = kept
    if given is None or given == "":
        return value in (None, given)
    if isinstance(given, str):
        return given == value or _as(kind, given, value)
    if isinstance(given, bool):
        return value in (given, str(given).lower()) if kind else value == given
    if isinstance(given, (dict, list)):
        try:
            return json.loads(value) == given
        except (TypeError, ValueError):
            return False
    if isinstance(value, str):
        return _number(value) == (Decimal(given) if isinstance(given, int) else Decimal(repr(given)))
    return value == given


def _read_by_sqlite(text: str) -> float:
    """The real that SQLite reads: where `long double` has 64 bits, as on Windows, its last digit may be another."""
    with closing(sqlite3.connect(":memory:")) as connection:
        return connection.execute("SELECT CAST(? AS REAL)", (text,)).fetchone()[0]


def _as(kind: str, given: str, value: Any) -> bool:
    """Whether two texts are the same value of a type."""
    if isinstance(value, float) and value == _read_by_sqlite(given):
        return True
    if isinstance(value, (int, float)) or kind in ("bigint", "numeric"):
        return _number(given) is not None and _number(given) == _number(
            value if isinstance(value, str) else repr(value)
        )
    if kind in ("boolean", "uuid"):
        return given.lower() == value
    if kind.startswith("timestamp"):
        return datetime.fromisoformat(given) == datetime.fromisoformat(value)
    return False


def _number(text: str) -> Decimal | None:
    try:
        return Decimal(text)
    except InvalidOperation:
        return None


async def one(server: Sqlite | Postgres, file: File) -> str:
    """What is wrong with what a server makes of a file."""
    (server.folder / file.name).write_bytes(file.content)
    before = server.rows("new")
    if said := await server.take(file.name, "new", dry_run=True):
        # Before version 18 no text with a line `\\.` in it comes as CSV: it is refused, where COPY would lose the rest.
        ended = "ends them" in said and "\\n\\\\." in repr(file.rows)
        return "" if file.faulty or ended else f"refused: {said}"
    if file.faulty:
        return "taken"
    if server.rows("new") != before:
        return "a dry run kept something"
    if said := await server.take(file.name, "new"):
        return f"tried, then refused: {said}"
    rows = server.rows("new")
    if rows is None or len(rows) != len(file.rows) - 1:
        return f"{rows and len(rows)} rows of {len(file.rows) - 1}"
    for given, kept in zip(file.rows[1:], rows, strict=True):
        for value, cell in zip(given, kept, strict=True):
            if not is_same(value, cell):
                return f"{value!r} became {cell!r}"
    for ending in ("csv", "jsonl"):
        if said := await server.give("new", f"out.{ending}"):
            return f"not exported: {said}"
        if rows and (said := await server.take(f"out.{ending}", "again")) and "ends them" not in said:
            return f"not imported again: {said}"
        if said:
            continue
        again = server.rows("again") if rows else []
        if again is None or len(again) != len(rows) or not all(map(_is_like, rows, again)):
            return f"out and in by {ending}: {rows[:3]} became {(again or [])[:3]}"
        (server.folder / f"out.{ending}").unlink()
        server.drop("again")
    return ""


def _is_like(row: Sequence[Cell], other: Sequence[Cell]) -> bool:
    pairs = [(one.value, two.value) for one, two in zip(row, other, strict=True)]
    return all(
        one == two or (one or "") == (two or "") or _numbers(one, two) or _spelled(one, two) for one, two in pairs
    )


def _numbers(one: Any, two: Any) -> bool:
    return (
        one is not None and two is not None and _number(str(one)) is not None and _number(str(one)) == _number(str(two))
    )


def _spelled(one: Any, two: Any) -> bool:
    """Truth values as CSV has them, and moments as JSON and people have them."""
    texts = {re.sub("(?:z|[+]00:00)$", "+00", str(each).lower().replace(" ", "t")) for each in (one, two)}
    return len(texts) == 1 or texts in ({"true", "t"}, {"false", "f"})


async def prove(cases: int, seed: int, servers: Sequence[str] = ("sqlite", "postgres")) -> Tally:
    """Make files, and try each with each server."""
    tally = Tally()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        places = [folder / each for each in servers]
        for place in places:
            place.mkdir()
        if "sqlite" in servers:
            await _all(tally, Sqlite(folder / "sqlite"), cases, seed)
        if "postgres" in servers:
            base = make("CREATE TABLE there (a integer)")
            options = ("--write", "--ddl", "--files", folder / "postgres", f"app={base.url('owner')}")
            async with inside(*options) as wire:
                await _all(tally, Postgres(folder / "postgres", wire, base), cases, seed)
    return tally


async def _all(tally: Tally, server: Sqlite | Postgres, cases: int, seed: int) -> None:
    for number in range(cases):
        chance = random.Random(f"{seed} {number}")
        file = (csv_file if number % 2 else json_file)(chance)
        kind = f"{server.name}, {file.name.partition('.')[2]}{', faulty' if file.faulty else ''}"
        fault = await one(server, file)
        tally.note(kind, f"case {number}, {file.content[:300]!r}", fault)
        server.drop("new", "again")
        for left in server.folder.glob("*.*"):
            if not left.name.startswith("a.db"):
                left.unlink()
    server.close()
