"""Databases that the policy has agreed to, and names of tables, which make the statements that run there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from mcp_batteries.errors import Invalid, TooLarge, quote
from mcp_batteries.sql import policy as sql
from mcp_batteries.sql.language.identifiers import unquote_identifier
from mcp_batteries.sql.policy import Database, NextPage, ReadStatement, check_database_name, check_sql
from mcp_postgres.input_values import encode_value
from mcp_postgres.policy.call_settings import ROLE, CallSetting, parse_call_setting, without_dump_settings
from mcp_postgres.policy.requests import (
    ImportTable,
    Migration,
    Reads,
    ReadWithSettings,
    SettingStatement,
    Table,
    Writes,
)
from mcp_postgres.statement_splitter import split_statements, strip_leading_comments

__all__ = [
    "MAX_STATEMENTS",
    "AlterableDatabase",
    "QueryTarget",
    "TableName",
    "WritableDatabase",
    "bind_values",
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
_ROLLBACK = re.compile(r"(?:ROLLBACK|ABORT)(?:\s+(?:WORK|TRANSACTION))?", re.I)
_SETS_BY_FUNCTION = re.compile(r"\bset_config\s*\(", re.I)
_TABLE_NAME = re.compile(r'\s*(?:("(?:[^"]|"")+"|[^".]+)\.)?("(?:[^"]|"")+"|[^"]+?)\s*')


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
        script = self.read(sql)
        parts = split_statements(script.sql)
        if len(parts) < 2:
            return self.read(sql, parameters)
        # What only reads has nothing to keep or to take back.
        parts = _Transaction.of(parts).parts
        if len(parts) > MAX_STATEMENTS:
            raise TooLarge(f"`sql` has {len(parts)} statements, the limit is {MAX_STATEMENTS}.", "Send some at a time.")
        reads = _read_with_settings(_bind_parts(script.database, parts, parameters))
        if len(reads) == 1:
            return reads[0]
        return Reads(script.database, script.sql, (), reads)


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
        transaction = _Transaction.of_changes(split_statements(text))
        parts = _bind_parts(self.database, transaction.parts, parameters)
        if any(isinstance(part, SettingStatement) and part.setting.name == ROLE for part in parts):
            raise Invalid("`write_rows` changes rows as its own role only.", "`as_role` tries it as another one.")
        return Writes(self.database, text, (), parts, role, transaction.is_rolled_back)

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
        transaction = _Transaction.of_changes(without_dump_settings(split_statements(text)))
        parts = _bind_parts(self.database, transaction.parts, None)
        return Migration(
            self.database, text, (), self.changes_rows, parts, transaction.is_rolled_back, admin=self.administers
        )


def bind_values(parameters: Any) -> tuple[str | None, ...]:
    """Return values for `$1`, `$2` ... as PostgreSQL reads them.

    A saved query's come in the order of its declarations.

    Raises:
        Invalid: one can't be bound.
        TooLarge: there are too many.
    """
    if isinstance(parameters, dict):
        parameters = cast("dict[str, Any]", parameters).values()
    values: Sequence[Any] = [*(parameters or ())]
    if len(values) > _MAX_VALUES:
        failure = f"`parameters` has {len(values):,} values, PostgreSQL takes {_MAX_VALUES:,}."
        raise TooLarge(failure, "Send an array as one of them, or import a file.")
    return tuple(encode_value(value, f"`${number}`") for number, value in enumerate(values, 1))


def _bind_parts(database: Database, parts: Sequence[str], parameters: Any) -> tuple[ReadStatement, ...]:
    """Return statements with their values; those that set something have none, and need no entry for it."""
    settings = [parse_call_setting(part) for part in parts]
    values = iter(_parameters_of_statements(settings, parameters))
    bound: list[ReadStatement] = []
    for part, setting in zip(parts, settings, strict=True):
        if setting is None:
            bound.append(ReadStatement(database, part, bind_values(next(values))))
        else:
            bound.append(SettingStatement(database, part, (), setting))
    return tuple(bound)


def _parameters_of_statements(settings: Sequence[CallSetting | None], parameters: Any) -> Sequence[Any]:
    """Return the parameters of each statement that sets nothing; the others may have an entry, which is null."""
    count = settings.count(None)
    if count < len(settings) and isinstance(parameters, list):
        entries = cast("list[Any]", parameters)
        if len(entries) == len(settings) and all(item is None or isinstance(item, list) for item in entries):
            return [entry for entry, setting in zip(entries, settings, strict=True) if setting is None]
    if count == 1:
        return [parameters]
    return _parameters_of_each(parameters, count)


def _read_with_settings(parts: Sequence[ReadStatement]) -> tuple[ReadStatement, ...]:
    """Return the statements that read, each with what is set before it.

    Raises:
        Invalid: none of them reads, or one sets something in a way that would be lost.
    """
    settings: list[CallSetting] = []
    reads: list[ReadStatement] = []
    for part in parts:
        if isinstance(part, SettingStatement):
            settings.append(part.setting)
        elif settings:
            reads.append(ReadWithSettings(part.database, part.sql, part.parameters, tuple(settings)))
        else:
            reads.append(part)
    if not reads:
        raise Invalid("A setting holds for the statements behind it in the same call.", "Send `SET ...; SELECT ...`.")
    if len(reads) > 1 and any(_SETS_BY_FUNCTION.search(part.sql) for part in reads):
        raise Invalid(
            "What `set_config` sets would not hold for the other statements.",
            "Write `SET app.user = '7';` before them.",
        )
    return tuple(reads)


@dataclass(frozen=True)
class _Transaction:
    """The statements of a call without BEGIN and what ends it, because a call is a transaction anyway.

    Attributes:
        is_ended: COMMIT or ROLLBACK stood behind them.
        is_rolled_back: it was ROLLBACK.
    """

    parts: list[str]
    is_ended: bool = False
    is_rolled_back: bool = False

    @classmethod
    def of(cls, parts: list[str]) -> _Transaction:
        """Take off the BEGIN that is first, and what ends it where that is last.

        Raises:
            Invalid: there is no statement.
        """
        if not parts:
            raise Invalid("`sql` holds no statement.")
        if len(parts) == 1 or not _BEGIN.fullmatch(strip_leading_comments(parts[0])):
            return cls(parts)
        last = strip_leading_comments(parts[-1])
        is_rolled_back = bool(_ROLLBACK.fullmatch(last))
        is_ended = is_rolled_back or bool(_END.fullmatch(last))
        inner = parts[1:]
        if is_ended:
            inner = parts[1:-1]
        if not inner:
            raise Invalid("`sql` holds no statement.")
        return cls(inner, is_ended, is_rolled_back)

    @classmethod
    def of_changes(cls, parts: list[str]) -> _Transaction:
        """Return the same of changes; a BEGIN that nothing ends stays, since it is not clear what it is to do.

        Raises:
            Invalid: there is no statement.
        """
        transaction = cls.of(parts)
        if not transaction.is_ended:
            return cls(parts)
        return transaction


def _parameters_of_each(parameters: Any, count: int) -> Sequence[Any]:
    """Return the parameters of each of several statements."""
    values: list[Any] = parameters or [None] * count
    if len(values) != count or not all(item is None or isinstance(item, list) for item in values):
        raise Invalid(
            f"`sql` has {count} statements, and `parameters` do not go with them.",
            "Pass an array with one entry for each statement: an array of its values, or null.",
        )
    return values
