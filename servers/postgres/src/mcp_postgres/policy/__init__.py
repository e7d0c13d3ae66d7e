"""The only place that refuses before PostgreSQL does: turns a caller's text into a trusted type, or refuses it.

The part shared with mcp-sqlite (databases, statements, pages, rows) is in `mcp_batteries.sql.policy`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol
from urllib.parse import unquote

from mcp_batteries.errors import Unavailable, quote
from mcp_batteries.observability.audit import has_token, token_claim
from mcp_batteries.sql import policy as sql
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
    ServedFile,
    Switches,
    VisibleSchema,
    WriteStatement,
    check_database_name,
    escape_uri_part,
    is_complete_text,
)
from mcp_postgres.policy.addresses import parse_named_address, refuse_divided_address
from mcp_postgres.policy.call_settings import NO_ROLE, ROLE, CallSetting, PlannerSettings, parse_planner_settings
from mcp_postgres.policy.requests import (
    ActivityOf,
    Changes,
    HealthOf,
    ImportTable,
    Migration,
    Reads,
    ReadWithSettings,
    Request,
    RoleOf,
    SchemaOf,
    SettingStatement,
    Table,
    TableOf,
    Writes,
    for_role_of,
    inner_statement,
    internal_statement,
    internal_statements,
)
from mcp_postgres.policy.targets import (
    MAX_STATEMENTS,
    AlterableDatabase,
    QueryTarget,
    TableName,
    WritableDatabase,
    parse_table_name,
)

__all__ = [
    "MAX_STATEMENTS",
    "NO_ROLE",
    "ROLE",
    "ActivityOf",
    "AlterableDatabase",
    "CallSetting",
    "Changes",
    "Database",
    "HealthOf",
    "ImportTable",
    "Migration",
    "NamesOf",
    "NewFile",
    "NextPage",
    "PlannerSettings",
    "Policy",
    "PolicySettings",
    "QueryOf",
    "QueryTarget",
    "ReadStatement",
    "ReadWithSettings",
    "Readable",
    "Reads",
    "Request",
    "RoleOf",
    "RowOf",
    "RowsOf",
    "SchemaOf",
    "SchemaStatement",
    "ServedFile",
    "SettingStatement",
    "Table",
    "TableName",
    "TableOf",
    "VisibleSchema",
    "WritableDatabase",
    "WriteStatement",
    "Writes",
    "for_role_of",
    "inner_statement",
    "internal_statement",
    "internal_statements",
    "parse_planner_settings",
    "parse_table_name",
    "table_uri",
]  # fmt: skip

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
        addresses = _find_addresses(settings, environment)
        refuse_divided_address(addresses)
        for address in addresses:
            self.serve(*parse_named_address(address, environment))
        if not self.databases:
            raise Unavailable(
                "There is no database to serve.",
                "Name one as postgresql://host/name, set DATABASE_URL or PGHOST, or pass --demo.",
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
            databases = trusted if database is None else (database,)
            for each in databases:
                trusted[each].add(name)
        return {database: frozenset(names) for database, names in trusted.items()}

    def for_caller(self, database: Database) -> Database:
        if self._claim is None:
            return database
        return replace(database, role=self._caller_role())

    @property
    def has_callers(self) -> bool:
        """Whether each caller has a separate role in the databases."""
        return self._claim is not None

    def may_show_files(self) -> bool:
        """Return whether the caller may import any file into a database that is served whole: then lines are no news.

        A file may hold what a part leaves out.
        """
        is_whole = not any(self.parts.values())
        return self.can_write and is_whole and not has_token()

    def _caller_role(self) -> str | None:
        """Return the role of the current call; None if its token names none, and then no database is opened for it."""
        if self._claim is None:
            return None
        role = token_claim(self._claim)
        if role is None or not is_complete_text(role) or len(role.encode()) >= _NAME_BYTES:
            return None
        return role

    def query_target(self, name: str | None) -> QueryTarget:
        return QueryTarget(self.served_databases(name), bool(name))

    def writable_database(self, name: str | None) -> WritableDatabase:
        """Return a database whose rows may be changed.

        Raises:
            Refused: the operator has not opened that.
        """
        self.check_writable()
        return WritableDatabase(self.database(name), self.can_reshape)

    def alterable_database(self, name: str | None) -> AlterableDatabase:
        """Return a database whose schema may be changed.

        Raises:
            Refused: the operator has not opened that.
        """
        self.check_alterable()
        return AlterableDatabase(self.database(name), self.can_write, self.can_administer)

    def request(self, database: Database, path: Sequence[str], options: Mapping[str, str]) -> Request | None:
        def table(schema: str, name: str) -> Table:
            return Table(database, check_database_name(unquote(name)), check_database_name(unquote(schema)))

        match path:
            case [word] if word in _DATABASE_RESOURCES and not options:
                return _DATABASE_RESOURCES[word](database)
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


def _find_addresses(settings: PolicySettings, environment: Mapping[str, str]) -> Sequence[str]:
    """Return the addresses that the operator named, else the one of libpq's or of a platform's variables."""
    if settings.databases:
        return settings.databases
    if any(environment.get(name) for name in ("PGHOST", "PGSERVICE", "PGDATABASE")):
        return [""]
    address = environment.get("DATABASE_URL")
    if address and not settings.demo:
        return [address]
    return []


def table_uri(database: Database, schema: str, name: str) -> str:
    """Return the URI of a table's first rows."""
    return f"postgres://{database.uri_name}/{escape_uri_part(schema)}/{escape_uri_part(name)}"


def _table_path(table: Table) -> str:
    return f"{escape_uri_part(table.schema or 'public')}/{escape_uri_part(table.name)}"
