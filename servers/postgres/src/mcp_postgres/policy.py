"""The only place that says no before PostgreSQL does: a caller's words become a trusted type here, or a refusal.

What mcp-sqlite has too (databases, statements, pages, rows) is in `mcp_batteries.sql.policy`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from mcp_batteries.errors import Invalid, TooLarge, Unavailable, quote
from mcp_batteries.observability.audit import claim
from mcp_batteries.sql import policy as sql
from mcp_batteries.sql.addresses import refuse_other_systems
from mcp_batteries.sql.policy import (
    Database,
    NamesOf,
    NewFile,
    NextPage,
    Part,
    QueryOf,
    Readable,
    ReadStatement,
    RowOf,
    RowsOf,
    SchemaStatement,
    SearchOf,
    ServedFile,
    Switches,
    WriteStatement,
    checked_name,
    escaped,
    is_whole,
)
from mcp_postgres.split import begin_of, split
from mcp_postgres.values import as_text

__all__ = [
    "MAX_STATEMENTS", "ActivityOf", "Advice", "Changes", "Database", "HealthOf", "ImportTable", "ListOf", "Migration",
    "NamesOf", "NewFile", "NextPage", "Part", "PlanOf", "Policy", "PolicySettings", "QueryOf", "ReadStatement",
    "Readable", "Reads", "Request", "RoleOf", "RowOf", "RowsOf", "SchemaOf", "SchemaStatement", "SearchOf",
    "ServedFile", "Table", "TableOf", "WriteStatement", "Writes", "of_ours", "part_of", "table_uri",
]  # fmt: skip

_NAMED = re.compile(r"(?P<name>[A-Za-z0-9_-]+)=(?P<rest>(?:postgres(?:ql)?://|[a-z_]+=).*)", re.DOTALL)


MAX_STATEMENTS = 20
"""Statements of one call that reads."""
_MOST_NAME = 64
"""Bytes from which on PostgreSQL cuts a name, so that it means another role."""


class PolicySettings(Switches, Protocol):
    """What the policy needs to be told."""

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
    def files(self) -> str | None: ...
    @property
    def role_claim(self) -> str | None: ...


@dataclass(frozen=True)
class Table:
    """A name to be looked up in a database's catalogue, `schema.name` or one on its search path; never pasted."""

    database: Database
    name: str
    schema: str | None = None


@dataclass(frozen=True)
class ImportTable(Table):
    """A table to be filled from a file; it may be made for that, where the operator opened rows and schema."""

    make: bool = False


@dataclass(frozen=True)
class Reads(ReadStatement):
    """Several statements that are to see the same moment; `sql` is all of them."""

    parts: tuple[ReadStatement, ...]


@dataclass(frozen=True)
class Writes(WriteStatement):
    """Statements that change rows, in one transaction.

    Attributes:
        role: as which they are tried; nothing is kept then.
    """

    parts: tuple[ReadStatement, ...] = ()
    role: str | None = None


@dataclass(frozen=True)
class Migration(SchemaStatement):
    """Statements that change the schema, in one transaction; and rows, where the operator opened that.

    Attributes:
        admin: roles, extensions and code may be changed and run too, whatever the server's role is.
    """

    parts: tuple[ReadStatement, ...] = ()
    admin: bool = False


Changes = Writes | Migration


@dataclass(frozen=True)
class ListOf:
    """Objects of a kind in some databases, or in their schemas of a name, from the position of a cursor on.

    Attributes:
        name: what their names contain.
    """

    databases: tuple[Database, ...]
    kind: str
    schema: str | None
    name: str | None
    cursor: str | None


@dataclass(frozen=True)
class PlanOf:
    """How PostgreSQL would run a statement, if there were `indexes` (what follows `CREATE INDEX ON`) too."""

    statement: ReadStatement
    indexes: tuple[str, ...]


@dataclass(frozen=True)
class Advice:
    """Indexes for these statements; for the busiest there are where none is given."""

    database: Database
    statements: tuple[ReadStatement, ...]


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
    """What is wrong with a database, in some areas; in all where none is named."""

    database: Database
    areas: tuple[str, ...] = ()


@dataclass(frozen=True)
class ActivityOf:
    """What other sessions do."""

    database: Database


@dataclass(frozen=True)
class RoleOf:
    """What the server's role could do."""

    database: Database


Request = SchemaOf | TableOf | HealthOf | ActivityOf | RoleOf | RowsOf[Table] | RowOf[Table] | QueryOf
"""What a resource shows."""

_OF_DATABASE = {".schema": SchemaOf, ".health": HealthOf, ".activity": ActivityOf, ".role": RoleOf}


class Policy(sql.Policy[Table, Request]):
    """What may be reached under these settings.

    Raises:
        Unavailable: no database is named, here or in libpq's environment.
    """

    SCHEME = "postgres"
    ONLY = (1, 2)

    def __init__(self, settings: PolicySettings, *, environment: Mapping[str, str] = os.environ) -> None:
        super().__init__(settings)
        self.can_administer = settings.admin and not settings.read_only
        self._claim = settings.role_claim
        self._standing_in: ContextVar[str | None] = ContextVar("standing_in", default=None)
        self.can_reshape = self.can_reshape or self.can_administer
        if settings.demo:
            self.serve("demo", "")
        addresses = list(settings.databases)
        if not addresses and any(environment.get(name) for name in ("PGHOST", "PGSERVICE", "PGDATABASE")):
            addresses = [""]
        for address in addresses:
            named = _NAMED.fullmatch(address)
            wanted, address = (named["name"], named["rest"]) if named and named["name"] not in _WORDS else ("", address)
            refuse_other_systems(address, "PostgreSQL")
            own = _name_in(address, environment)
            self.serve(wanted or own, address)
        if not self.databases:
            raise Unavailable(
                "There is no database to serve.", "Name one as postgresql://host/name, set PGHOST, or pass --demo."
            )
        self.limit(settings.only, settings.mask)
        self.open_folder(settings.files)

    def database(self, name: str | None) -> Database:
        found = super().database(name)
        return found if self._claim is None else replace(found, role=self._role())

    def served(self, name: str | None) -> tuple[Database, ...]:
        return tuple(map(self.database, self.databases)) if name is None else (self.database(name),)

    @contextmanager
    def standing_in(self, database: Database) -> Generator[None]:
        """Within the block, whose caller `database` is for is the caller: what is followed is looked at for somebody.

        Nothing else comes from there: the role was read off a token when that was asked for.
        """
        token = self._standing_in.set(database.role)
        try:
            yield
        finally:
            self._standing_in.reset(token)

    @property
    def has_callers(self) -> bool:
        """Whether everybody who asks has a role of their own in the databases."""
        return self._claim is not None

    def _role(self) -> str | None:
        """The role of the call under way; None where its token names none, and then no database is opened for it."""
        found = self._standing_in.get() or (claim(self._claim) if self._claim is not None else None)
        return found if found is not None and is_whole(found) and len(found.encode()) < _MOST_NAME else None

    def table(self, database: str | None, name: str) -> Table:
        """A table or view, which may turn out not to exist; quotes are understood as PostgreSQL does."""
        parts = re.fullmatch(r'\s*(?:("(?:[^"]|"")+"|[^".]+)\.)?("(?:[^"]|"")+"|[^"]+?)\s*', name)
        if parts is None:
            raise Invalid(
                f"{quote(name)} can't be the name of a table.", "Name it as `schema.table`, quoted as in SQL."
            )
        schema = None if parts[1] is None else checked_name(_unquoted(parts[1]))
        return Table(self.database(database), checked_name(_unquoted(parts[2])), schema)

    def bound(self, parameters: Any) -> Any:
        """Values for `$1`, `$2` ... as PostgreSQL reads them; a saved query's come in the order of its declarations."""
        values: Sequence[Any] = [*(parameters.values() if isinstance(parameters, dict) else parameters or ())]
        return tuple(as_text(value, f"`${number}`") for number, value in enumerate(values, 1))

    def page(
        self, database: str | None, sql: str | None, parameters: Any, cursor: str | None
    ) -> ReadStatement | NextPage:
        """What `query_rows` is asked for: statements, or the page behind a cursor."""
        if cursor is not None or sql is None:
            wanted = super().page(database, sql, parameters, cursor)
            return replace(wanted, role=self._role()) if isinstance(wanted, NextPage) else wanted
        whole = self.read(database, sql)
        parts = split(whole.sql)
        if len(parts) < 2:
            return self.read(database, sql, parameters)
        if len(parts) > MAX_STATEMENTS:
            raise TooLarge(f"`sql` has {len(parts)} statements, the limit is {MAX_STATEMENTS}.", "Send some at a time.")
        return Reads(whole.database, whole.sql, (), self._parts(whole, parts, parameters))

    def import_table(self, database: str | None, name: str) -> ImportTable:
        """A table to be filled."""
        found = self.table(database, name)
        return ImportTable(found.database, found.name, found.schema, self.can_write and self.can_reshape)

    def write(self, database: str | None, sql: str, parameters: Any = None, as_role: str | None = None) -> Writes:
        """Statements that may change rows."""
        whole = super().write(database, sql)
        parts = _unwrapped(split(whole.sql))
        role = checked_name(as_role) if as_role is not None else None
        return Writes(whole.database, whole.sql, (), self._parts(whole, parts, parameters), role)

    def reshape(self, database: str | None, sql: str) -> Migration:
        """Statements that may change the schema."""
        whole = super().reshape(database, sql)
        parts = self._parts(whole, _unwrapped(split(whole.sql)), None)
        return Migration(whole.database, whole.sql, (), whole.rows, parts, self.can_administer)

    def _parts(self, whole: ReadStatement, parts: Sequence[str], parameters: Any) -> tuple[ReadStatement, ...]:
        each = [self.bound(values) for values in ([parameters] if len(parts) == 1 else _each(parameters, len(parts)))]
        return tuple(ReadStatement(whole.database, part, values) for part, values in zip(parts, each, strict=True))

    def listing(
        self, database: str | None, kind: str, schema: str | None, name: str | None, cursor: str | None
    ) -> ListOf:
        """Objects of a kind in a database, or in all."""
        where, part = (checked_name(text) if text else None for text in (schema, name))
        return ListOf(self.served(database), kind, where, part, cursor)

    def plan(self, database: str | None, sql: str, parameters: Any, indexes: Sequence[str]) -> PlanOf:
        """A statement to be explained."""
        return PlanOf(self.read(database, sql, parameters), tuple(indexes))

    def advice(self, database: str | None, queries: Sequence[str]) -> Advice:
        """Statements to find indexes for."""
        return Advice(self.database(database), tuple(self.read(database, query) for query in queries))

    def settings(self, database: str | None, words: str) -> SearchOf:
        """Words to find in a server's settings."""
        return SearchOf((self.database(database),), words)

    def health(self, database: str | None, areas: Sequence[str]) -> HealthOf:
        """Areas of a database to look at."""
        return HealthOf(self.database(database), tuple(areas))

    def request(self, database: Database, path: Sequence[str], options: Mapping[str, str]) -> Request | None:
        def table(schema: str, name: str) -> Table:
            return Table(database, checked_name(unquote(name)), checked_name(unquote(schema)))

        match path:
            case [what] if what in _OF_DATABASE and not options:
                return _OF_DATABASE[what](database)
            case [schema, ".schema"] if schema and not options:
                return SchemaOf(database, checked_name(unquote(schema)))
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
                return f"{escaped(schema)}/.schema"
            case TableOf(table):
                return f"{_segments(table)}/.schema"
            case RowsOf(table):
                return _segments(table) + self.options(request)
            case RowOf(table, key):
                return f"{_segments(table)}/{escaped(key)}"
            case QueryOf():
                raise AssertionError("a saved query is not below a database")
            case _:
                return next(word for word, kind in _OF_DATABASE.items() if kind is type(request))


_BEGIN = re.compile(r"BEGIN(?:\s+(?:WORK|TRANSACTION))?|START\s+TRANSACTION", re.I)
_END = re.compile(r"(?:COMMIT|END)(?:\s+(?:WORK|TRANSACTION))?", re.I)


def of_ours(database: Database, sql: str, values: tuple[str, ...] = ()) -> ReadStatement:
    """A statement that this program wrote, or found in the database's own statistics; no word of a caller is in it."""
    return ReadStatement(database, sql, values)


def table_uri(database: Database, schema: str, name: str) -> str:
    """The URI of a table's first rows."""
    return f"postgres://{database.name}/{escaped(schema)}/{escaped(name)}"


def part_of(statement: ReadStatement, sql: str) -> ReadStatement:
    """What a statement that reads has inside, such as the query behind EXPLAIN."""
    return ReadStatement(statement.database, sql, statement.parameters)


def _segments(table: Table) -> str:
    return f"{escaped(table.schema or 'public')}/{escaped(table.name)}"


_WORDS = ("dbname", "host", "hostaddr", "port", "user", "password", "service", "passfile", "sslmode", "options")
"""Words of libpq's that `key=value` text begins with."""


def _name_in(address: str, environment: Mapping[str, str]) -> str:
    """The name of the database that `address` names.

    Raises:
        Unavailable: A character of the password would end it early: answers would tell its rest as a name or a port.
    """
    if "://" in address:
        try:
            parts = urlsplit(address)
        except ValueError:
            raise Unavailable(
                "A database's URL is not understood.", "Write postgresql://user@host:port/name."
            ) from None
        hosts = parts.netloc.rpartition("@")[2].split(",")
        if "@" in parts.path or not all(re.fullmatch(r"(\[[^]]*\]|[^:]*)(:\d*)?", host) for host in hosts):
            raise Unavailable(
                "A database's URL has an `@` behind its host, or no number for a port.",
                "Write what a password has of / ? # @ : as %2F %3F %23 %40 %3A, or give it by PGPASSWORD.",
            )
        found = unquote(parts.path.lstrip("/"))
    else:
        word = re.search(r"\b(?:dbname|service)\s*=\s*'?([^'\s]+)", address)
        found = word[1] if word else ""
    return found or environment.get("PGDATABASE") or environment.get("PGSERVICE") or "postgres"


def _unwrapped(parts: list[str]) -> list[str]:
    """Statements without the BEGIN and COMMIT round them, which a call is anyway.

    Raises:
        Invalid: there are none.
    """
    if len(parts) > 2 and _BEGIN.fullmatch(begin_of(parts[0])) and _END.fullmatch(begin_of(parts[-1])):
        parts = parts[1:-1]
    if not parts:
        raise Invalid("`sql` holds no statement.")
    return parts


def _each(parameters: Any, count: int) -> Sequence[Any]:
    """The parameters of each of several statements."""
    given: list[Any] = parameters or [None] * count
    if len(given) != count or not all(item is None or isinstance(item, list) for item in given):
        raise Invalid(
            f"`sql` has {count} statements, and `parameters` do not go with them.",
            "Pass an array with one entry for each statement: an array of its values, or null.",
        )
    return given


def _unquoted(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name
