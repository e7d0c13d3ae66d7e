"""Requests to the engine: the trusted types that the policy makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from mcp_batteries.sql.policy import Database, QueryOf, ReadStatement, RowOf, RowsOf, SchemaStatement, WriteStatement
from mcp_postgres.policy.call_settings import CallSetting

__all__ = [
    "ActivityOf",
    "Changes",
    "HealthOf",
    "ImportTable",
    "Migration",
    "ReadWithSettings",
    "Reads",
    "Request",
    "RoleOf",
    "SchemaOf",
    "SettingStatement",
    "Table",
    "TableOf",
    "Writes",
    "for_role_of",
    "inner_statement",
    "internal_statement",
    "internal_statements",
]  # fmt: skip


@dataclass(frozen=True)
class Table:
    """A name to be looked up in a database's catalogue, `schema.name` or one on its search path; never pasted."""

    database: Database
    name: str
    schema: str | None = None


@dataclass(frozen=True)
class ImportTable(Table):
    """A table to fill from a file; it may be created if the operator allowed changes to rows and schema."""

    make: bool = field(kw_only=True)


@dataclass(frozen=True)
class SettingStatement(ReadStatement):
    """Sets what holds for the statements behind it in the same call."""

    setting: CallSetting


@dataclass(frozen=True)
class ReadWithSettings(ReadStatement):
    """A statement that reads, and what is set before it in its call."""

    settings: tuple[CallSetting, ...]


@dataclass(frozen=True)
class Reads(ReadStatement):
    """Several statements that see the same moment; `sql` is all of them."""

    parts: tuple[ReadStatement, ...]


@dataclass(frozen=True)
class Writes(WriteStatement):
    """Statements that change rows, in one transaction.

    Attributes:
        role: the role as which they are tried; then nothing is kept.
        is_rolled_back: they end in ROLLBACK, so that nothing is kept.
    """

    parts: tuple[ReadStatement, ...] = ()
    role: str | None = None
    is_rolled_back: bool = False


@dataclass(frozen=True)
class Migration(SchemaStatement):
    """Statements that change the schema, in one transaction, and rows if the operator allowed that.

    Attributes:
        admin: roles, extensions and code may be changed and run too, whatever the server's role is.
        is_rolled_back: they end in ROLLBACK, so that nothing is kept.
    """

    parts: tuple[ReadStatement, ...] = ()
    is_rolled_back: bool = False
    admin: bool = field(kw_only=True)


Changes = Writes | Migration


@dataclass(frozen=True)
class SchemaOf:
    """The definitions of all tables and views in a database, or in one schema of it."""

    database: Database
    schema: str | None = None


@dataclass(frozen=True)
class TableOf:
    """The definition of one table."""

    table: Table


@dataclass(frozen=True)
class HealthOf:
    """What is wrong with a database."""

    database: Database


@dataclass(frozen=True)
class ActivityOf:
    """What other sessions do."""

    database: Database


@dataclass(frozen=True)
class RoleOf:
    """What the server's role could do."""

    database: Database


# What a resource shows.
Request = SchemaOf | TableOf | HealthOf | ActivityOf | RoleOf | RowsOf[Table] | RowOf[Table] | QueryOf


def internal_statement(database: Database, sql: str, values: tuple[str, ...] = ()) -> ReadStatement:
    """Return a statement from this program or from the database's own statistics, without any text of a caller."""
    return ReadStatement(database, sql, values)


def internal_statements(database: Database, statements: Sequence[str]) -> Reads:
    """Return several of them that see the same moment."""
    return Reads(database, ";\n".join(statements), (), tuple(internal_statement(database, sql) for sql in statements))


def inner_statement(statement: ReadStatement, sql: str) -> ReadStatement:
    """Return a part of a statement that reads, such as the query after EXPLAIN."""
    return ReadStatement(statement.database, sql, statement.parameters)


def for_role_of(request: QueryOf, database: Database) -> QueryOf:
    """Return a saved query as it runs for the caller whose role `database` has."""
    statement = request.statement
    return QueryOf(replace(statement, database=replace(statement.database, role=database.role)))
