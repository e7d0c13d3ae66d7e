"""The only place that refuses before PostgreSQL does: turns a caller's text into a trusted type, or refuses it.

The part shared with mcp-sqlite (databases, statements, pages, rows) is in `mcp_batteries.sql.policy`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol
from urllib.parse import unquote

from mcp_batteries.errors import Invalid, TooLarge, Unavailable, quote
from mcp_batteries.observability.audit import token_claim
from mcp_batteries.sql import policy as sql
from mcp_batteries.sql.language.identifiers import unquote_identifier
from mcp_batteries.sql.language.qualified_names import parse_qualified_names
from mcp_batteries.sql.policy import (
    Database,
    NamesOf,
    NewFile,
    NextPage,
    QueryOf,
    Readable,
    ReadStatement,
    RowOf,
    RowsOf,
    SchemaStatement,
    SearchOf,
    ServedFile,
    Switches,
    VisibleSchema,
    WriteStatement,
    check_database_name,
    escape_uri_part,
    is_complete_text,
)
from mcp_postgres.input_values import encode_value
from mcp_postgres.policy.addresses import parse_named_address
from mcp_postgres.policy.requests import (
    ActivityOf,
    Advice,
    Changes,
    HealthOf,
    ImportTable,
    ListOf,
    Migration,
    PlanOf,
    Reads,
    Request,
    RoleOf,
    SchemaOf,
    Table,
    TableOf,
    Writes,
    for_role_of,
    inner_statement,
    internal_statement,
    internal_statements,
)
from mcp_postgres.statement_splitter import split_statements, strip_leading_comments

__all__ = [
    "MAX_STATEMENTS",
    "ActivityOf",
    "Advice",
    "Changes",
    "Database",
    "HealthOf",
    "ImportTable",
    "ListOf",
    "Migration",
    "NamesOf",
    "NewFile",
    "NextPage",
    "PlanOf",
    "Policy",
    "PolicySettings",
    "QueryOf",
    "ReadStatement",
    "Readable",
    "Reads",
    "Request",
    "RoleOf",
    "RowOf",
    "RowsOf",
    "SchemaOf",
    "SchemaStatement",
    "SearchOf",
    "ServedFile",
    "Table",
    "TableOf",
    "VisibleSchema",
    "WriteStatement",
    "Writes",
    "for_role_of",
    "inner_statement",
    "internal_statement",
    "internal_statements",
    "table_uri",
]  # fmt: skip

# Statements of one call that reads.
MAX_STATEMENTS = 20
# Values of one statement: the protocol counts them in 16 bits.
_MAX_VALUES = 65_535
# Bytes from which on PostgreSQL cuts a name, so that it means another role.
_NAME_BYTES = 64


class PolicySettings(Switches, Protocol):
    """The settings that the policy needs."""

    @property
    def databases(self) -> Sequence[str]: ...
    @property
    def demo(self) -> bool: ...
    @property
    def admin(self) -> bool: ...
    @property
    def only(self) -> Sequence[str]: ...
    @property
    def mask(self) -> Sequence[str]: ...
    @property
    def trust_functions(self) -> Sequence[str]: ...
    @property
    def files(self) -> str | None: ...
    @property
    def role_claim(self) -> str | None: ...


_DATABASE_RESOURCES = {".schema": SchemaOf, ".health": HealthOf, ".activity": ActivityOf, ".role": RoleOf}


class Policy(sql.Policy[Table, Request]):
    """What callers may reach under these settings.

    Raises:
        Unavailable: no database is named, here or in libpq's environment.
    """

    SCHEME = "postgres"
    ONLY = (1, 2)

    def __init__(self, settings: PolicySettings, *, environment: Mapping[str, str] = os.environ) -> None:
        super().__init__(settings)
        self.can_administer = settings.admin and not settings.read_only
        self._claim = settings.role_claim
        self.can_reshape = self.can_reshape or self.can_administer
        if settings.demo:
            self.serve("demo", "")
        addresses = list(settings.databases)
        if not addresses and any(environment.get(name) for name in ("PGHOST", "PGSERVICE", "PGDATABASE")):
            addresses = [""]
        for address in addresses:
            self.serve(*parse_named_address(address, environment))
        if not self.databases:
            raise Unavailable(
                "There is no database to serve.", "Name one as postgresql://host/name, set PGHOST, or pass --demo."
            )
        self.limit(settings.only, settings.mask)
        self.trusted_functions = self._parse_trusted_functions(settings.trust_functions)
        self.open_folder(settings.files)

    def _parse_trusted_functions(self, values: Sequence[str]) -> dict[str, frozenset[tuple[str, ...]]]:
        """Return functions by schema and name, and extensions, that the operator vouches for in each database.

        Raises:
            Unavailable: a name is not understood, or names a database that is not served.
        """
        trusted = {name: set[tuple[str, ...]]() for name in self.databases}
        for database, name in parse_qualified_names("--trust-functions", values):
            if len(name) > 2 or (database is not None and database not in trusted):
                raise Unavailable(
                    f"{quote('.'.join(name))} can't be the value of `--trust-functions`.",
                    "Name a function as `schema.function`, or an extension.",
                )
            for each in trusted if database is None else (database,):
                trusted[each].add(name)
        return {name: frozenset(found) for name, found in trusted.items()}

    def database(self, name: str | None) -> Database:
        found = super().database(name)
        if self._claim is None:
            return found
        return replace(found, role=self._caller_role())

    def served(self, name: str | None) -> tuple[Database, ...]:
        if name is None:
            return tuple(map(self.database, self.databases))
        return (self.database(name),)

    @property
    def has_callers(self) -> bool:
        """Whether each caller has a separate role in the databases."""
        return self._claim is not None

    def _caller_role(self) -> str | None:
        """Return the role of the current call; None if its token names none, and then no database is opened for it."""
        found = token_claim(self._claim) if self._claim is not None else None
        return found if found is not None and is_complete_text(found) and len(found.encode()) < _NAME_BYTES else None

    def table(self, database: str | None, name: str) -> Table:
        """Return a table or view, which may turn out not to exist; quotes are understood as PostgreSQL does."""
        parts = re.fullmatch(r'\s*(?:("(?:[^"]|"")+"|[^".]+)\.)?("(?:[^"]|"")+"|[^"]+?)\s*', name)
        if parts is None:
            raise Invalid(
                f"{quote(name)} can't be the name of a table.", "Name it as `schema.table`, quoted as in SQL."
            )
        if parts[1] is None:
            schema = None
        else:
            schema = check_database_name(unquote_identifier(parts[1]))
        return Table(self.database(database), check_database_name(unquote_identifier(parts[2])), schema)

    def bound(self, parameters: Any) -> Any:
        """Return values for `$1`, `$2` ... as PostgreSQL reads them.

        A saved query's come in the order of its declarations.
        """
        values: Sequence[Any] = [*(parameters.values() if isinstance(parameters, dict) else parameters or ())]
        if len(values) > _MAX_VALUES:
            what = f"`parameters` has {len(values):,} values, PostgreSQL takes {_MAX_VALUES:,}."
            raise TooLarge(what, "Send an array as one of them, or import a file.")
        return tuple(encode_value(value, f"`${number}`") for number, value in enumerate(values, 1))

    def page(
        self, database: str | None, sql: str | None, parameters: Any, cursor: str | None
    ) -> ReadStatement | NextPage:
        """Return the request of `query_rows`: statements, or the page at a cursor."""
        if cursor is not None or sql is None:
            request = super().page(database, sql, parameters, cursor)
            if isinstance(request, NextPage):
                return replace(request, role=self._caller_role())
            return request
        statement = self.read(database, sql)
        parts = split_statements(statement.sql)
        if len(parts) < 2:
            return self.read(database, sql, parameters)
        parts = _without_transaction(parts)
        if len(parts) == 1:
            return self.read(database, parts[0], parameters)
        if len(parts) > MAX_STATEMENTS:
            raise TooLarge(f"`sql` has {len(parts)} statements, the limit is {MAX_STATEMENTS}.", "Send some at a time.")
        return Reads(statement.database, statement.sql, (), self._bind_parts(statement, parts, parameters))

    def import_table(self, database: str | None, name: str) -> ImportTable:
        """Return a table to fill."""
        found = self.table(database, name)
        return ImportTable(found.database, found.name, found.schema, make=self.can_write and self.can_reshape)

    def write(self, database: str | None, sql: str, parameters: Any = None, as_role: str | None = None) -> Writes:
        """Return statements that may change rows."""
        statement = super().write(database, sql)
        parts = _without_transaction(split_statements(statement.sql))
        role = None
        if as_role is not None:
            role = check_database_name(as_role)
        return Writes(statement.database, statement.sql, (), self._bind_parts(statement, parts, parameters), role)

    def schema_change(self, database: str | None, sql: str) -> Migration:
        """Return statements that may change the schema."""
        statement = super().schema_change(database, sql)
        parts = self._bind_parts(statement, _without_transaction(split_statements(statement.sql)), None)
        return Migration(statement.database, statement.sql, (), statement.rows, parts, admin=self.can_administer)

    def _bind_parts(self, statement: ReadStatement, parts: Sequence[str], parameters: Any) -> tuple[ReadStatement, ...]:
        each = [
            self.bound(values)
            for values in ([parameters] if len(parts) == 1 else _parameters_of_each(parameters, len(parts)))
        ]
        return tuple(ReadStatement(statement.database, part, values) for part, values in zip(parts, each, strict=True))

    def listing(
        self, database: str | None, kind: str, schema: str | None, name: str | None, cursor: str | None
    ) -> ListOf:
        """Return objects of a kind in a database, or in all."""
        where, part = (check_database_name(text) if text else None for text in (schema, name))
        return ListOf(self.served(database), kind, where, part, cursor)

    def plan(self, database: str | None, sql: str, parameters: Any, indexes: Sequence[str]) -> PlanOf:
        """Return a statement to explain."""
        return PlanOf(self.read(database, _EXPLAIN.sub("", sql), parameters), tuple(indexes))

    def advice(self, database: str | None, queries: Sequence[str]) -> Advice:
        """Return statements to find indexes for."""
        return Advice(self.database(database), tuple(self.read(database, query) for query in queries))

    def settings(self, database: str | None, words: str) -> SearchOf:
        """Return words to find in a server's settings."""
        return SearchOf((self.database(database),), words)

    def health(self, database: str | None, areas: Sequence[str]) -> HealthOf:
        """Return areas of a database to check."""
        return HealthOf(self.database(database), tuple(areas))

    def request(self, database: Database, path: Sequence[str], options: Mapping[str, str]) -> Request | None:
        def table(schema: str, name: str) -> Table:
            return Table(database, check_database_name(unquote(name)), check_database_name(unquote(schema)))

        match path:
            case [what] if what in _DATABASE_RESOURCES and not options:
                return _DATABASE_RESOURCES[what](database)
            case [schema, ".schema"] if schema:
                if options:
                    return None
                return SchemaOf(database, check_database_name(unquote(schema)))
            case [schema, name, ".schema"] if schema and name and not options:
                return TableOf(table(schema, name))
            case [schema, name] if schema and name:
                return self.rows(table(schema, name), options)
            case [schema, name, key] if schema and name and not options:
                return RowOf(table(schema, name), unquote(key))
            case _:
                return None

    def path(self, request: Request) -> str:
        match request:
            case SchemaOf(schema=str() as schema):
                return f"{escape_uri_part(schema)}/.schema"
            case TableOf(table):
                return f"{_table_path(table)}/.schema"
            case RowsOf(table):
                return _table_path(table) + self.options(request)
            case RowOf(table, key):
                return f"{_table_path(table)}/{escape_uri_part(key)}"
            case QueryOf():
                raise AssertionError("a saved query is not below a database")
            case _:
                return next(word for word, kind in _DATABASE_RESOURCES.items() if kind is type(request))


# What the tool adds itself; ANALYZE is an argument of its own.
_EXPLAIN = re.compile(r"\A\s*EXPLAIN(?:\s+VERBOSE)?\s+(?!ANALY[SZ]E\b)(?=\w)", re.I)
_MODES = r"(?:[\s,]+(?:READ\s+ONLY|READ\s+WRITE|(?:NOT\s+)?DEFERRABLE|ISOLATION\s+LEVEL(?:\s+\w+){1,2}?))*"
_BEGIN = re.compile(rf"(?:BEGIN(?:\s+(?:WORK|TRANSACTION))?|START\s+TRANSACTION){_MODES}", re.I)
_END = re.compile(r"(?:COMMIT|END)(?:\s+(?:WORK|TRANSACTION))?", re.I)


def table_uri(database: Database, schema: str, name: str) -> str:
    """Return the URI of a table's first rows."""
    return f"postgres://{database.uri_name}/{escape_uri_part(schema)}/{escape_uri_part(name)}"


def _table_path(table: Table) -> str:
    return f"{escape_uri_part(table.schema or 'public')}/{escape_uri_part(table.name)}"


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
