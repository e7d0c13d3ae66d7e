"""Finds indexes that would help a statement, by trying SQLite's planner on a copy of the schema and its statistics.

In an empty copy of the schema candidates are made, and the planner is asked again; what it then uses would help. (The
method of SQLite's `.expert`.) The planner believes any index to find ten rows of a value; so it is told of each what a
sample of the table says, and what would find a large part of the table is not proposed.
"""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass, field
from typing import Any

from mcp_batteries.sql.identifiers import identifier
from mcp_sqlite.worker.advisor.candidates import Comparisons, combine_columns, find_comparisons
from mcp_sqlite.worker.connection.authorizer import Authorizer, Mode, apply_limits
from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.connection.vectors import load_into
from mcp_sqlite.worker.language.parameters import parse_parameters
from mcp_sqlite.worker.schema.lookup import estimate_row_count, query_unless_broken

__all__ = ["IndexAdvice", "advise_indexes"]

_PREFIX = "mcp_candidate_"
_MOST_CANDIDATES = 150
_MOST_WIDTH = 5
_SAMPLE = 5000
"""Rows of a table that are looked at, its first."""
_SAMPLE_SECONDS = 0.5
_LARGE_PART = 0.12
"""Of a table's rows: to find so many one by one takes as long as to read all."""
_FEW_ROWS = 50
"""A table that fits into a page or two is best read whole."""
_FILLED_PAGES = 100
"""A smaller database is one that is still to be filled: how many rows its tables have says nothing."""
_TRIES = 4
_RIVALS = 6
"""Plans that are looked at beside the planner's own choice among all indexes."""
_SEARCH = re.compile(r"(SEARCH|SCAN) .*?USING (?:COVERING )?INDEX (\w+)(?: \((.*)\))?")


@dataclass(frozen=True)
class IndexAdvice:
    """The plan with the indexes that help.

    Attributes:
        rows: of EXPLAIN QUERY PLAN.
        made: the candidates in it: their DDL, and the name that gives them.
        tried: how many candidates the planner was shown.
    """

    rows: list[tuple[int, int, int, str]] = field(default_factory=list[tuple[int, int, int, str]])
    made: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    tried: int = 0

    def cost(self) -> tuple[int, int, int, int]:
        """What one index saves that another does not: tables read whole, sorts, rows searched, visits to the table."""
        steps = [row[3] for row in self.rows]
        terms = sum(step.count("=?") + step.count(">?") + step.count("<?") for step in steps)
        return (
            sum(step.startswith("SCAN ") and " USING " not in step for step in steps),
            sum("TEMP B-TREE" in step for step in steps),
            -terms,
            -sum("COVERING" in step for step in steps),
        )

    def named_rows(self) -> list[tuple[int, int, int, str]]:
        """The plan, with candidates called as their DDL calls them."""
        words = re.compile("|".join(map(re.escape, self.made)) or r"(?!)")
        return [(*row[:3], words.sub(lambda found: self.made[found[0]][1], row[3])) for row in self.rows]


def advise_indexes(database: Database, sql: str, given: Any, reads: list[tuple[str, str]]) -> IndexAdvice:
    """Indexes that the planner would use for `sql`, an EXPLAIN QUERY PLAN, and that find few of a table's rows."""
    tables = _tables(database, reads)
    if not tables:
        return IndexAdvice()
    try:
        with _Copy(database, sql, parse_parameters(given, sql)) as copy:
            return copy.advice(tables, find_comparisons(sql))
    except sqlite3.Error:
        database.interrupt.check()
        return IndexAdvice()


def _tables(database: Database, reads: list[tuple[str, str]]) -> dict[str, list[str]]:
    known = {
        str(name)
        for (name,) in database.run_internal("SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0")
    }
    tables: dict[str, list[str]] = {}
    for table, column in reads:
        if table in known and not table.startswith("sqlite_"):
            columns = tables.setdefault(table, [])
            if column and column != "ROWID":
                columns.append(column)
    return tables


@dataclass(frozen=True)
class _Index:
    table: str
    parts: tuple[str, ...]


class _Copy:
    """An empty copy of a database's schema, with candidates for indexes."""

    def __init__(self, database: Database, sql: str, values: Any) -> None:
        self._database, self._sql, self._values = database, sql, values
        self._authorizer = Authorizer()
        self._made: dict[str, _Index] = {}
        self._key_of: dict[str, str] = {}
        """The column by which a table's rows are kept, in small letters."""
        self._rows_of: dict[str, int] = {}
        self._per_value: dict[_Index, list[float]] = {}
        self._tried = 0

    def __enter__(self) -> _Copy:
        # No statement is kept: an EXPLAIN that was compiled before goes on telling of indexes that are gone.
        copy = self._copy = sqlite3.connect(
            ":memory:", isolation_level=None, check_same_thread=False, cached_statements=0
        )
        load_into(copy)
        apply_limits(copy, self._authorizer, read_only=False)
        copy.set_progress_handler(lambda: self._database.interrupt.is_due, 1000)
        objects = "SELECT sql, name FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type = 'index', rowid"
        part = self._database.visible_schema
        for statement, name in self._database.run_internal(objects):
            if part is not None and part.has_masked_order(str(name)):
                continue
            self._authorizer.begin(Mode.SCHEMA)
            try:
                copy.execute(statement)
            except sqlite3.Error:
                continue  # sqlite_* tables, shadow tables that their virtual table has made already
        self._authorizer.begin(Mode.INTERNAL)
        copy.execute("ANALYZE").close()
        copy.execute("DELETE FROM sqlite_stat1").close()
        known = query_unless_broken(self._database, "SELECT tbl, idx, stat FROM sqlite_stat1 LIMIT 10000")
        known = [row for row in known if part is None or not part.has_masked_order(str(row[1]))]
        copy.executemany("INSERT INTO sqlite_stat1 VALUES (?, ?, ?)", known).close()
        return self

    def __exit__(self, *_: object) -> None:
        self._authorizer.begin(Mode.INTERNAL)
        self._copy.close()

    def advice(self, tables: dict[str, list[str]], found: Comparisons) -> IndexAdvice:
        """The best plan, with the narrowest indexes that give it."""
        for table in tables:
            self._count(table)
        plain = self._planned()
        for _ in range(_TRIES):
            best = plain
            for width in range(1, _MOST_WIDTH + 1):
                self._make(tables, found, width)
                plan = self._planned()
                if plan.made and plan.cost() < best.cost():
                    best = plan
            poor = [name for name in best.made if self._finds_many(name, best)]
            if not poor:
                if best is not plain:
                    best = self._instead(best)
                return (
                    IndexAdvice(best.rows, best.made, self._tried)
                    if best is not plain
                    else IndexAdvice([], {}, self._tried)
                )
            for name in poor:
                self._forget(name)
        return IndexAdvice([], {}, self._tried)

    def _instead(self, best: IndexAdvice) -> IndexAdvice:
        """A better plan without indexes that begin as those of `best`, which may only spare a sort; else `best`."""
        rival = best
        for _ in range(_RIVALS):
            begin = {(index.table, index.parts[0]) for index in map(self._made.get, rival.made) if index}
            for name in [name for name, index in self._made.items() if (index.table, index.parts[0]) in begin]:
                self._forget(name)
            rival = self._planned()
            if not rival.made:
                break
            if rival.cost() < best.cost() and not any(self._finds_many(name, rival) for name in rival.made):
                best = rival
        return best

    def _make(self, tables: dict[str, list[str]], found: Comparisons, width: int) -> None:
        """Make the candidates of `width` columns that are not there yet."""
        with self._database.interrupt.shorten(_SAMPLE_SECONDS):
            for table, columns in tables.items():
                for parts in combine_columns(found, columns if len(columns) <= 6 else ()):
                    index = _Index(table, parts)
                    if parts[0].strip('"`[]').lower() == self._key_of.get(table):
                        continue  # That is how its rows are found already.
                    if len(parts) == width and index not in self._per_value and self._tried < _MOST_CANDIDATES:
                        self._make_one(index)
        self._authorizer.begin(Mode.INTERNAL)
        self._copy.execute("ANALYZE sqlite_master").close()

    def _make_one(self, index: _Index) -> None:
        name = f"{_PREFIX}{len(self._per_value)}"
        self._authorizer.begin(Mode.SCHEMA)
        try:
            self._copy.execute(f"CREATE INDEX {name} ON {identifier(index.table)} ({', '.join(index.parts)})").close()
        except (sqlite3.Error, sqlite3.Warning):
            self._per_value[index] = []  # a column of another table, a function that is not the same each time
            return
        self._tried += 1
        self._made[name] = index
        rows = self._rows_of[index.table]
        per_value = self._per_value[index] = [
            max(1.0, rows / self._different(index.table, index.parts[:number], rows))
            for number in range(1, len(index.parts) + 1)
        ]
        stat = " ".join(str(round(number)) for number in (rows, *per_value))
        self._authorizer.begin(Mode.INTERNAL)
        self._copy.execute("INSERT INTO sqlite_stat1 VALUES (?, ?, ?)", [index.table, name, stat]).close()

    def _forget(self, name: str) -> None:
        self._made.pop(name)
        self._authorizer.begin(Mode.INTERNAL)
        self._copy.execute(f"DROP INDEX {name}").close()

    def _count(self, table: str) -> None:
        """How many rows a table has: what ANALYZE told, or the largest row number."""
        known = estimate_row_count(self._database, table)
        found = query_unless_broken(self._database, f"SELECT max(rowid) FROM main.{identifier(table)}")
        number = known if known is not None else (found[0][0] if found else 100_000)
        self._rows_of[table] = max(1, int(number or 1))
        key = query_unless_broken(self._database, "SELECT name FROM pragma_table_info(?) WHERE pk", [table])
        alias = query_unless_broken(self._database, "SELECT 1 FROM pragma_index_list(?) WHERE origin = 'pk'", [table])
        if len(key) == 1 and not alias:
            self._key_of[table] = str(key[0][0]).lower()

    def _different(self, table: str, parts: tuple[str, ...], rows: int) -> float:
        """How many different values the table has, from a sample (the estimator "Duj1" of Haas and others)."""
        columns = ", ".join(f"{part.removesuffix(' DESC')} AS c{number}" for number, part in enumerate(parts))
        names = ", ".join(f"c{number}" for number in range(len(parts)))
        sql = (
            f"SELECT sum(n), count(*), sum(n = 1) FROM (SELECT count(*) AS n FROM (SELECT {columns} FROM "
            f"{identifier(table)} LIMIT {_SAMPLE}) GROUP BY {names})"
        )
        self._database.authorizer.begin(Mode.READ)
        try:
            taken, different, once = self._database.connection.execute(sql).fetchone()
        except (sqlite3.Error, sqlite3.Warning):
            return max(1.0, rows / 10)  # what the planner would believe
        if not taken:
            return 1.0
        rows = max(rows, taken)
        return min(rows, taken * different / max(1.0, taken - once + once * taken / rows))

    def _finds_many(self, name: str, plan: IndexAdvice) -> bool:
        """Whether a candidate leads to a large part of its table, row by row, or the table is small."""
        if self._database.run_internal("PRAGMA page_count")[0][0] < _FILLED_PAGES:
            return False
        index = self._made[name]
        rows = self._rows_of[index.table]
        for *_, detail in plan.rows:
            match = _SEARCH.match(detail)
            if match is None or match[2] != name:
                continue
            if rows <= _FEW_ROWS:
                return True
            if (
                match[1] == "SCAN"
                and "COVERING" not in detail
                and not re.search(r"\bLIMIT\b", self._sql, re.IGNORECASE)
            ):
                return True  # to sort is faster than to fetch every row by itself
            equal = (match[3] or "").count("=?")
            if match[1] == "SEARCH" and equal and "COVERING" not in detail:
                ranged = 0.3 if re.search(r"[<>]\?", match[3]) else 1.0
                return ranged * self._per_value[index][min(equal, len(index.parts)) - 1] > _LARGE_PART * rows
        return False

    def _planned(self) -> IndexAdvice:
        self._authorizer.begin(Mode.EXPLAIN)
        rows = [(row[0], row[1], row[2], str(row[3])) for row in self._copy.execute(self._sql, self._values)]
        used = dict.fromkeys(word for row in rows for word in row[3].split() if word in self._made)
        return IndexAdvice(rows, {name: _ddl(self._made[name]) for name in used}, self._tried)


def _listed(part: str) -> str:
    column, _, direction = part.partition(" DESC")
    if not column.isidentifier() or direction:
        return part
    return identifier(column) if part == column else f"{identifier(column)} DESC"


def _ddl(index: _Index) -> tuple[str, str]:
    words = [re.sub(r"\W+", "_", part).strip("_").lower() for part in index.parts]
    name = re.sub(r"\W", "_", "_".join((index.table, *words)))[:60]
    listed = ", ".join(map(_listed, index.parts))
    return f"CREATE INDEX {identifier(name)} ON {identifier(index.table)} ({listed});", name
