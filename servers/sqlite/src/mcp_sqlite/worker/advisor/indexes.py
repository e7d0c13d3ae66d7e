"""Finds indexes that would help a statement, by trying SQLite's planner on a copy of the schema and its statistics.

In an empty copy of the schema candidates are made, and the planner is asked again; what it then uses would help. (The
method of SQLite's `.expert`.) The planner believes any index to find ten rows of a value; so each gets statistics from
a sample of the table, and what would find a large part of the table is not proposed.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mcp_batteries.sql.language.identifiers import quote_identifier
from mcp_sqlite.worker.advisor.candidates import Comparisons, combine_columns, find_comparisons
from mcp_sqlite.worker.connection.authorizer import Authorizer, Mode, apply_limits
from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.connection.vectors import load_into
from mcp_sqlite.worker.language.parameters import parse_parameters
from mcp_sqlite.worker.query.statements import PlanStep
from mcp_sqlite.worker.schema.lookup import estimate_row_count, query_unless_broken

__all__ = ["IndexAdvice", "advise_indexes"]

_PREFIX = "mcp_candidate_"
_MAX_CANDIDATES = 150
_MAX_WIDTH = 5
# Columns that a statement reads are combined only if they are few.
_MAX_COMBINED_COLUMNS = 6
# Rows of a table that are sampled, its first.
_SAMPLE_ROWS = 5000
_SAMPLE_SECONDS = 0.5
# To find this part of a table's rows one by one takes as long as to read all.
_LARGE_SHARE = 0.12
# A comparison by order finds about this part of what an equality leaves.
_RANGE_SHARE = 0.3
# A table that fits into a page or two is best read whole.
_MIN_ROWS = 50
# A smaller database is one that is still to be filled: how many rows its tables have says nothing.
_MIN_PAGES = 100
_ASSUMED_ROWS = 100_000
# What the planner believes an index to find of a value.
_ASSUMED_ROWS_PER_VALUE = 10
_MAX_ROUNDS = 4
# Plans that are compared with the planner's own choice among all indexes.
_MAX_RIVALS = 6
_MAX_NAME_LENGTH = 60
_SEARCH = re.compile(r"(?P<operation>SEARCH|SCAN) .*?USING (?:COVERING )?INDEX (?P<index>\w+)(?: \((?P<terms>.*)\))?")
_RANGE_TERM = re.compile(r"[<>]\?")
_LIMIT = re.compile(r"\bLIMIT\b", re.IGNORECASE)
_OBJECTS = "SELECT sql, name FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type = 'index', rowid"
_ADD_STATISTICS = "INSERT INTO sqlite_stat1 VALUES (?, ?, ?)"


class _Index(NamedTuple):
    """A candidate: an index of a table over expressions."""

    table: str
    expressions: tuple[str, ...]

    @property
    def start(self) -> tuple[str, str]:
        """The table and the first expression."""
        return (self.table, self.expressions[0])


class _ProposedIndex(NamedTuple):
    """An index as the caller would make it."""

    ddl: str
    name: str


class _Cost(NamedTuple):
    """What one plan saves that another does not, the most important first."""

    whole_tables: int
    sorts: int
    unbound_terms: int
    table_visits: int


@dataclass(frozen=True)
class IndexAdvice:
    """The plan with the indexes that help.

    Attributes:
        indexes: the candidates in the plan, by their names there.
        candidate_count: how many candidates the planner was shown.
    """

    steps: list[PlanStep] = field(default_factory=list[PlanStep])
    indexes: dict[str, _ProposedIndex] = field(default_factory=dict[str, _ProposedIndex])
    candidate_count: int = 0

    def cost(self) -> _Cost:
        """Return what the plan costs; covering indexes and bound terms count as negative costs."""
        whole_tables = sorts = terms = covering = 0
        for step in self.steps:
            if step.detail.startswith("SCAN ") and " USING " not in step.detail:
                whole_tables += 1
            if "TEMP B-TREE" in step.detail:
                sorts += 1
            if "COVERING" in step.detail:
                covering += 1
            terms += sum(step.detail.count(term) for term in ("=?", ">?", "<?"))
        return _Cost(whole_tables, sorts, -terms, -covering)

    def steps_by_ddl_names(self) -> list[PlanStep]:
        """Return the plan, with candidates called as their DDL calls them."""
        if not self.indexes:
            return self.steps
        names = re.compile("|".join(map(re.escape, self.indexes)))
        return [
            step._replace(detail=names.sub(lambda match: self.indexes[match[0]].name, step.detail))
            for step in self.steps
        ]


def advise_indexes(
    database: Database, sql: str, parameters: Any, columns_read: Sequence[tuple[str, str]]
) -> IndexAdvice:
    """Return indexes that the planner would use for `sql`, and that find few of a table's rows.

    Args:
        sql: an EXPLAIN QUERY PLAN.
        columns_read: pairs of table and column.
    """
    tables = _group_by_table(database, columns_read)
    if not tables:
        return IndexAdvice()
    try:
        with _SchemaCopy(database, sql, parse_parameters(parameters, sql)) as copy:
            return _Advisor(database, copy, tables, find_comparisons(sql), has_limit=bool(_LIMIT.search(sql))).advise()
    except sqlite3.Error:
        database.interrupt.check()
        return IndexAdvice()


def _group_by_table(database: Database, columns_read: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the columns that a statement reads, by table; of real tables only."""
    rows = database.run_internal("SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0")
    names = {str(name) for (name,) in rows}
    tables: dict[str, list[str]] = {}
    for table, column in columns_read:
        if table in names and not table.startswith("sqlite_"):
            columns = tables.setdefault(table, [])
            if column and column != "ROWID":
                columns.append(column)
    return tables


class _SchemaCopy:
    """An empty copy of a database's schema with its statistics, in which indexes can be tried.

    Attributes:
        indexes: those that are there now, by name.
    """

    def __init__(self, database: Database, sql: str, values: Any) -> None:
        self._database = database
        self._sql = sql
        self._values = values
        self._authorizer = Authorizer()
        self.indexes: dict[str, _Index] = {}

    def __enter__(self) -> _SchemaCopy:
        # No statement is cached: an EXPLAIN that was compiled before goes on naming indexes that are gone.
        self._connection = sqlite3.connect(
            ":memory:", isolation_level=None, check_same_thread=False, cached_statements=0
        )
        load_into(self._connection)
        apply_limits(self._connection, self._authorizer, read_only=False)
        self._connection.set_progress_handler(lambda: self._database.interrupt.is_due, 1000)
        self._copy_objects()
        self._copy_statistics()
        return self

    def __exit__(self, *_: object) -> None:
        self._authorizer.begin(Mode.INTERNAL)
        self._connection.close()

    def _copy_objects(self) -> None:
        for sql, name in self._database.run_internal(_OBJECTS):
            if self._has_masked_order(str(name)):
                continue
            self._authorizer.begin(Mode.SCHEMA)
            try:
                self._connection.execute(sql)
            except sqlite3.Error:
                continue  # sqlite_* tables, shadow tables that their virtual table has made already

    def _copy_statistics(self) -> None:
        self._run_internal("ANALYZE")
        self._run_internal("DELETE FROM sqlite_stat1")
        rows = query_unless_broken(self._database, "SELECT tbl, idx, stat FROM sqlite_stat1 LIMIT 10000")
        statistics = [(table, index, text) for table, index, text in rows if not self._has_masked_order(str(index))]
        self._connection.executemany(_ADD_STATISTICS, statistics).close()

    def _has_masked_order(self, index: str) -> bool:
        visible_schema = self._database.visible_schema
        return visible_schema is not None and visible_schema.has_masked_order(index)

    def _run_internal(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        self._authorizer.begin(Mode.INTERNAL)
        self._connection.execute(sql, parameters).close()

    def make_index(self, name: str, index: _Index) -> bool:
        """Make an index, if SQLite can."""
        self._authorizer.begin(Mode.SCHEMA)
        expressions = ", ".join(index.expressions)
        try:
            self._connection.execute(f"CREATE INDEX {name} ON {quote_identifier(index.table)} ({expressions})").close()
        except (sqlite3.Error, sqlite3.Warning):
            return False  # a column of another table, a function that is not the same each time
        self.indexes[name] = index
        return True

    def add_statistics(self, name: str, row_count: int, rows_per_value: Sequence[float]) -> None:
        """Let the planner know what an index finds."""
        numbers = " ".join(str(round(number)) for number in (row_count, *rows_per_value))
        self._run_internal(_ADD_STATISTICS, [self.indexes[name].table, name, numbers])

    def load_statistics(self) -> None:
        """Have the planner use the statistics as they are now."""
        self._run_internal("ANALYZE sqlite_master")

    def drop_index(self, name: str) -> None:
        """Drop an index."""
        del self.indexes[name]
        self._run_internal(f"DROP INDEX {name}")

    def plan(self) -> IndexAdvice:
        """Return the plan of the statement, with the candidates that it uses."""
        self._authorizer.begin(Mode.EXPLAIN)
        steps: list[PlanStep] = []
        indexes: dict[str, _ProposedIndex] = {}
        for number, parent, unused, detail in self._connection.execute(self._sql, self._values):
            steps.append(PlanStep(number, parent, unused, str(detail)))
        for step in steps:
            for word in step.detail.split():
                if word in self.indexes:
                    indexes[word] = _propose(self.indexes[word])
        return IndexAdvice(steps, indexes)


class _Advisor:
    """Tries candidates for a statement.

    Args:
        tables: the columns that the statement reads, by table.
        has_limit: whether it needs some rows only.
    """

    def __init__(
        self,
        database: Database,
        copy: _SchemaCopy,
        tables: dict[str, list[str]],
        comparisons: Comparisons,
        *,
        has_limit: bool,
    ) -> None:
        self._database = database
        self._copy = copy
        self._tables = tables
        self._comparisons = comparisons
        self._has_limit = has_limit
        self._row_counts = {table: self._count_rows(table) for table in tables}
        self._rowid_aliases = {table: self._find_rowid_alias(table) for table in tables}
        # What each candidate finds of a value of its first columns; nothing for those that can't be made.
        self._rows_per_value: dict[_Index, list[float]] = {}
        self._candidate_count = 0

    def advise(self) -> IndexAdvice:
        """Return the best plan, with the narrowest indexes that give it."""
        plain = self._copy.plan()
        for _ in range(_MAX_ROUNDS):
            best = self._widen(plain)
            poor = [name for name in best.indexes if self._finds_many(name, best)]
            if not poor:
                return self._choose(plain, best)
            for name in poor:
                self._copy.drop_index(name)
        return IndexAdvice(candidate_count=self._candidate_count)

    def _widen(self, plain: IndexAdvice) -> IndexAdvice:
        """Return the best plan, by candidates that are wider and wider."""
        best = plain
        for width in range(1, _MAX_WIDTH + 1):
            self._make_candidates(width)
            plan = self._copy.plan()
            if plan.indexes and plan.cost() < best.cost():
                best = plan
        return best

    def _choose(self, plain: IndexAdvice, best: IndexAdvice) -> IndexAdvice:
        if best is plain:
            return IndexAdvice(candidate_count=self._candidate_count)
        best = self._find_rival(best)
        return IndexAdvice(best.steps, best.indexes, self._candidate_count)

    def _find_rival(self, best: IndexAdvice) -> IndexAdvice:
        """Return a better plan without indexes that begin as those of `best`; else `best`.

        Those of `best` may only spare a sort.
        """
        rival = best
        for _ in range(_MAX_RIVALS):
            indexes = self._copy.indexes
            starts = {indexes[name].start for name in rival.indexes if name in indexes}
            for name in [name for name, index in indexes.items() if index.start in starts]:
                self._copy.drop_index(name)
            rival = self._copy.plan()
            if not rival.indexes:
                break
            if rival.cost() < best.cost() and not any(self._finds_many(name, rival) for name in rival.indexes):
                best = rival
        return best

    def _make_candidates(self, width: int) -> None:
        """Make the candidates of `width` columns that are not there yet."""
        with self._database.interrupt.shorten(_SAMPLE_SECONDS):
            for table, columns in self._tables.items():
                combined_columns = columns if len(columns) <= _MAX_COMBINED_COLUMNS else ()
                for expressions in combine_columns(self._comparisons, combined_columns):
                    if len(expressions) == width and not self._is_rowid_alias(table, expressions[0]):
                        self._make_candidate(_Index(table, expressions))
        self._copy.load_statistics()

    def _is_rowid_alias(self, table: str, expression: str) -> bool:
        """Return whether that is how rows are found already."""
        return expression.strip('"`[]').lower() == self._rowid_aliases[table]

    def _make_candidate(self, index: _Index) -> None:
        if index in self._rows_per_value or self._candidate_count >= _MAX_CANDIDATES:
            return
        name = f"{_PREFIX}{len(self._rows_per_value)}"
        if not self._copy.make_index(name, index):
            self._rows_per_value[index] = []
            return
        self._candidate_count += 1
        row_count = self._row_counts[index.table]
        rows_per_value: list[float] = []
        for number in range(1, len(index.expressions) + 1):
            value_count = self._estimate_values(index.table, index.expressions[:number], row_count)
            rows_per_value.append(max(1.0, row_count / value_count))
        self._rows_per_value[index] = rows_per_value
        self._copy.add_statistics(name, row_count, rows_per_value)

    def _count_rows(self, table: str) -> int:
        """Return how many rows a table has: what ANALYZE counted, or the largest row number."""
        estimate = estimate_row_count(self._database, table)
        if estimate is None:
            rows = query_unless_broken(self._database, f"SELECT max(rowid) FROM main.{quote_identifier(table)}")
            estimate = rows[0][0] if rows else _ASSUMED_ROWS
        return max(1, int(estimate or 1))

    def _find_rowid_alias(self, table: str) -> str | None:
        """Return the column by which a table's rows are kept, in lower case."""
        key_columns = query_unless_broken(self._database, "SELECT name FROM pragma_table_info(?) WHERE pk", [table])
        key_indexes = query_unless_broken(
            self._database, "SELECT 1 FROM pragma_index_list(?) WHERE origin = 'pk'", [table]
        )
        if len(key_columns) != 1 or key_indexes:
            return None
        ((name,),) = key_columns
        return str(name).lower()

    def _estimate_values(self, table: str, expressions: tuple[str, ...], row_count: int) -> float:
        """Return how many different values the table has, from a sample (the estimator "Duj1" of Haas and others)."""
        names = [f"c{number}" for number in range(len(expressions))]
        columns = ", ".join(
            f"{expression.removesuffix(' DESC')} AS {name}" for expression, name in zip(expressions, names, strict=True)
        )
        sql = (
            f"SELECT sum(n), count(*), sum(n = 1) FROM (SELECT count(*) AS n FROM (SELECT {columns} FROM "
            f"{quote_identifier(table)} LIMIT {_SAMPLE_ROWS}) GROUP BY {', '.join(names)})"
        )
        self._database.authorizer.begin(Mode.READ)
        try:
            sample_rows, value_count, once_count = self._database.connection.execute(sql).fetchone()
        except (sqlite3.Error, sqlite3.Warning):
            return max(1.0, row_count / _ASSUMED_ROWS_PER_VALUE)
        if not sample_rows:
            return 1.0
        row_count = max(row_count, sample_rows)
        repeated = sample_rows - once_count + once_count * sample_rows / row_count
        return min(row_count, sample_rows * value_count / max(1.0, repeated))

    def _finds_many(self, name: str, plan: IndexAdvice) -> bool:
        """Return whether a candidate leads to a large part of its table, row by row, or the table is small."""
        if self._database.read_internal("PRAGMA page_count") < _MIN_PAGES:
            return False
        index = self._copy.indexes[name]
        is_small = self._row_counts[index.table] <= _MIN_ROWS
        for step in plan.steps:
            match = _SEARCH.match(step.detail)
            if match is None or match["index"] != name:
                continue
            if is_small:
                return True
            if "COVERING" in step.detail:
                continue
            terms = match["terms"] or ""
            if match["operation"] == "SCAN":
                if not self._has_limit:
                    return True  # To sort is faster than to fetch every row by itself.
            elif "=?" in terms:
                return self._finds_large_share(index, terms)
        return False

    def _finds_large_share(self, index: _Index, terms: str) -> bool:
        column_count = min(terms.count("=?"), len(index.expressions))
        rows = self._rows_per_value[index][column_count - 1]
        if _RANGE_TERM.search(terms):
            rows *= _RANGE_SHARE
        return rows > _LARGE_SHARE * self._row_counts[index.table]


def _propose(index: _Index) -> _ProposedIndex:
    words = [re.sub(r"\W+", "_", expression).strip("_").lower() for expression in index.expressions]
    name = re.sub(r"\W", "_", "_".join((index.table, *words)))[:_MAX_NAME_LENGTH]
    expressions = ", ".join(map(_quote_expression, index.expressions))
    return _ProposedIndex(
        f"CREATE INDEX {quote_identifier(name)} ON {quote_identifier(index.table)} ({expressions});", name
    )


def _quote_expression(expression: str) -> str:
    """Return an expression with quotes around the name, if it is a column that needs them."""
    column, descending, direction = expression.partition(" DESC")
    if not column.isidentifier() or direction:
        return expression
    return quote_identifier(column) + descending
