"""Databases that the policy has agreed to, and names of tables, which make the statements that run there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcp_batteries.errors import Invalid, TooLarge, quote
from mcp_batteries.sql import policy as sql
from mcp_batteries.sql.language.identifiers import unquote_identifier
from mcp_batteries.sql.policy import Database, NextPage, ReadStatement, check_database_name, check_sql
from mcp_postgres.input_values import encode_value
from mcp_postgres.policy.requests import ImportTable, Migration, Reads, Table, Writes
from mcp_postgres.statement_splitter import split_statements, strip_leading_comments

__all__ = [
    "MAX_STATEMENTS",
    "AlterableDatabase",
    "PlannerSettings",
    "QueryTarget",
    "TableName",
    "WritableDatabase",
    "bind_values",
    "parse_planner_settings",
    "parse_table_name",
]

# Statements of one call that reads.
MAX_STATEMENTS = 20
# Values of one statement: the protocol counts them in 16 bits.
_MAX_VALUES = 65_535
# What the tool adds itself; ANALYZE is an argument of its own.
_EXPLAIN = re.compile(r"\A\s*EXPLAIN(?:\s+VERBOSE)?\s+(?!ANALY[SZ]E\b)(?=\w)", re.I)
_MODES = r"(?:[\s,]+(?:READ\s+ONLY|READ\s+WRITE|(?:NOT\s+)?DEFERRABLE|ISOLATION\s+LEVEL(?:\s+\w+){1,2}?))*"
_BEGIN = re.compile(rf"(?:BEGIN(?:\s+(?:WORK|TRANSACTION))?|START\s+TRANSACTION){_MODES}", re.I)
_END = re.compile(r"(?:COMMIT|END)(?:\s+(?:WORK|TRANSACTION))?", re.I)
_TABLE_NAME = re.compile(r'\s*(?:("(?:[^"]|"")+"|[^".]+)\.)?("(?:[^"]|"")+"|[^"]+?)\s*')


# What only makes the planner choose otherwise, and what a query may use of memory.
_PLANNER_SETTING = re.compile(
    r"enable_\w+|jit(?:_\w+)?|geqo(?:_\w+)?|\w+_cost|(?:join|from)_collapse_limit|(?:hash_mem_multiplier|work_mem)"
    r"|max_parallel_workers_per_gather|min_parallel_(?:table|index)_scan_size|effective_(?:cache_size|io_concurrency)"
    r"|plan_cache_mode|constraint_exclusion|cursor_tuple_fraction|recursive_worktable_factor"
)


@dataclass(frozen=True)
class PlannerSettings:
    """Settings of the planner by their names, for one plan."""

    values: Mapping[str, str]


def parse_planner_settings(values: dict[str, str | bool | float]) -> PlannerSettings:
    """Return settings that change a plan and nothing else.

    Raises:
        Invalid: one is another setting.
    """
    settings: dict[str, str] = {}
    for name, value in values.items():
        if not _PLANNER_SETTING.fullmatch(name):
            raise Invalid(f"{quote(name)} is no setting of the planner.", "Such as `enable_seqscan` or `work_mem`.")
        settings[name] = check_database_name(str(value))
    return PlannerSettings(settings)


@dataclass(frozen=True)
class TableName:
    """What a table or view can be called, in a schema or on the search path."""

    name: str
    schema: str | None

    def of(self, database: Database) -> Table:
        """Return the table of this name, which may turn out not to exist."""
        return Table(database, self.name, self.schema)


def parse_table_name(name: str) -> TableName:
    """Return what a table can be called; quotes are understood as PostgreSQL does.

    Raises:
        Invalid: no table can be called so.
    """
    parts = _TABLE_NAME.fullmatch(name)
    if parts is None:
        raise Invalid(f"{quote(name)} can't be the name of a table.", "Name it as `schema.table`, quoted as in SQL.")
    schema = None
    if parts[1] is not None:
        schema = check_database_name(unquote_identifier(parts[1]))
    return TableName(check_database_name(unquote_identifier(parts[2])), schema)


@dataclass(frozen=True)
class QueryTarget(sql.QueryTarget):
    """The database that a query reads."""

    def read(self, sql: str, parameters: Any = None) -> ReadStatement:
        return ReadStatement(self.database, check_sql(sql), bind_values(parameters))

    def read_explained(self, sql: str, parameters: Any = None) -> ReadStatement:
        """Return a statement to explain, without the EXPLAIN that may stand before it."""
        return self.read(_EXPLAIN.sub("", sql), parameters)

    def read_page(self, sql: str | None, parameters: Any, cursor: str | None) -> ReadStatement | NextPage:
        if cursor is not None or sql is None:
            return super().read_page(sql, parameters, cursor)
        whole = self.read(sql)
        parts = split_statements(whole.sql)
        if len(parts) < 2:
            return self.read(sql, parameters)
        parts = _without_transaction(parts)
        if len(parts) == 1:
            return self.read(parts[0], parameters)
        if len(parts) > MAX_STATEMENTS:
            raise TooLarge(f"`sql` has {len(parts)} statements, the limit is {MAX_STATEMENTS}.", "Send some at a time.")
        return Reads(whole.database, whole.sql, (), _bind_parts(whole.database, parts, parameters))


@dataclass(frozen=True)
class WritableDatabase:
    """A database whose rows may be changed.

    Attributes:
        makes_tables: whether an import may make its table.
    """

    database: Database
    makes_tables: bool

    def write(self, sql: str, parameters: Any = None, role: str | None = None) -> Writes:
        """Return statements that may change rows.

        Args:
            role: as which they are only tried.

        Raises:
            Invalid: there are none, or a value can't be bound.
        """
        text = check_sql(sql)
        parts = _without_transaction(split_statements(text))
        return Writes(self.database, text, (), _bind_parts(self.database, parts, parameters), role)

    def import_table(self, table: TableName) -> ImportTable:
        """Return a table to fill from a file."""
        return ImportTable(self.database, table.name, table.schema, make=self.makes_tables)


@dataclass(frozen=True)
class AlterableDatabase:
    """A database whose schema may be changed, and its rows too if the operator opened both.

    Attributes:
        administers: roles, extensions and code may be changed too.
    """

    database: Database
    changes_rows: bool
    administers: bool

    def alter(self, sql: str) -> Migration:
        """Return statements that may change the schema.

        Raises:
            Invalid: there are none.
        """
        text = check_sql(sql)
        parts = _bind_parts(self.database, _without_transaction(split_statements(text)), None)
        return Migration(self.database, text, (), self.changes_rows, parts, admin=self.administers)


def bind_values(parameters: Any) -> tuple[str | None, ...]:
    """Return values for `$1`, `$2` ... as PostgreSQL reads them.

    A saved query's come in the order of its declarations.

    Raises:
        Invalid: one can't be bound.
        TooLarge: there are too many.
    """
    values: Sequence[Any] = [*(parameters.values() if isinstance(parameters, dict) else parameters or ())]
    if len(values) > _MAX_VALUES:
        what = f"`parameters` has {len(values):,} values, PostgreSQL takes {_MAX_VALUES:,}."
        raise TooLarge(what, "Send an array as one of them, or import a file.")
    return tuple(encode_value(value, f"`${number}`") for number, value in enumerate(values, 1))


def _bind_parts(database: Database, parts: Sequence[str], parameters: Any) -> tuple[ReadStatement, ...]:
    each: Sequence[Any] = [parameters]
    if len(parts) > 1:
        each = _parameters_of_each(parameters, len(parts))
    bound = [bind_values(values) for values in each]
    return tuple(ReadStatement(database, part, values) for part, values in zip(parts, bound, strict=True))


def _without_transaction(parts: list[str]) -> list[str]:
    """Return statements without a surrounding BEGIN and COMMIT, because a call is a transaction anyway.

    Raises:
        Invalid: there are none.
    """
    if (
        len(parts) > 2
        and _BEGIN.fullmatch(strip_leading_comments(parts[0]))
        and _END.fullmatch(strip_leading_comments(parts[-1]))
    ):
        parts = parts[1:-1]
    if not parts:
        raise Invalid("`sql` holds no statement.")
    return parts


def _parameters_of_each(parameters: Any, count: int) -> Sequence[Any]:
    """Return the parameters of each of several statements."""
    values: list[Any] = parameters or [None] * count
    if len(values) != count or not all(item is None or isinstance(item, list) for item in values):
        raise Invalid(
            f"`sql` has {count} statements, and `parameters` do not go with them.",
            "Pass an array with one entry for each statement: an array of its values, or null.",
        )
    return values
