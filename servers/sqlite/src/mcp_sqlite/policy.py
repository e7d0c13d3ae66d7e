"""The only place that refuses before SQLite does: turns a caller's text into a trusted type, or refuses it.

The part shared with mcp-postgres (databases, statements, pages, rows) is in `mcp_batteries.sql.policy`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol
from urllib.parse import unquote

from mcp_batteries.errors import Invalid, Refused, Unavailable, describe_os_error, quote
from mcp_batteries.settings import explain_missing_path
from mcp_batteries.sql import policy as sql
from mcp_batteries.sql.language.database_systems import refuse_other_systems
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
    check_sql,
    escape_uri_part,
)
from mcp_sqlite.settings import split_named_path

__all__ = [
    "AlterableDatabase",
    "Database",
    "ImportTable",
    "JoiningStatement",
    "NamesOf",
    "NewFile",
    "NextPage",
    "Policy",
    "PolicySettings",
    "QueryOf",
    "QueryTarget",
    "ReadStatement",
    "Readable",
    "Request",
    "RowOf",
    "RowsOf",
    "SchemaOf",
    "SchemaStatement",
    "ServedFile",
    "Table",
    "TableName",
    "VisibleSchema",
    "WholeDatabase",
    "WritableDatabase",
    "WriteStatement",
    "internal_statement",
    "parse_table_name",
    "table_uri",
]  # fmt: skip

logger = logging.getLogger(__name__)

_MAX_OTHERS = 4
_FILE_HEADER = b"SQLite format 3\0"


class PolicySettings(Switches, Protocol):
    """The settings that the policy needs."""

    @property
    def databases(self) -> Sequence[str]: ...
    @property
    def create(self) -> bool: ...
    @property
    def is_trial(self) -> bool: ...
    @property
    def files(self) -> str | None: ...
    @property
    def only(self) -> Sequence[str]: ...
    @property
    def mask(self) -> Sequence[str]: ...


@dataclass(frozen=True)
class Table:
    """A name to look up in a database's schema, always quoted, never pasted."""

    database: Database
    name: str


@dataclass(frozen=True)
class ImportTable(Table):
    """A table to fill from a file; it may be created if the operator allowed changes to rows and schema."""

    make: bool


@dataclass(frozen=True)
class JoiningStatement(ReadStatement):
    """Runs where other databases can be read too, by their names."""

    others: tuple[Database, ...] = ()


@dataclass(frozen=True)
class TableName:
    """What a table or view can be called."""

    text: str

    def of(self, database: Database) -> Table:
        """Return the table of this name, which may turn out not to exist."""
        return Table(database, self.text)


def parse_table_name(name: str) -> TableName:
    """Return what a table or view can be called.

    Raises:
        Invalid: no table can be called so.
    """
    return TableName(check_database_name(name))


@dataclass(frozen=True)
class QueryTarget(sql.QueryTarget):
    """The database that a query reads, with others that it can read too, by their names."""

    others: tuple[Database, ...] = ()

    def read(self, sql: str, parameters: Any = None) -> ReadStatement:
        database = self.database
        if self.others:
            return JoiningStatement(database, check_sql(sql), parameters, self.others)
        return ReadStatement(database, check_sql(sql), parameters)


@dataclass(frozen=True)
class WritableDatabase:
    """A database whose rows may be changed.

    Attributes:
        makes_tables: whether an import may make its table.
    """

    database: Database
    makes_tables: bool

    def write(self, sql: str, parameters: Any = None) -> WriteStatement:
        """Return a statement that may change rows."""
        return WriteStatement(self.database, check_sql(sql), parameters)

    def import_table(self, table: TableName) -> ImportTable:
        """Return a table to fill from a file."""
        return ImportTable(self.database, table.text, self.makes_tables)


@dataclass(frozen=True)
class AlterableDatabase:
    """A database whose schema may be changed, and its rows too if the operator opened both."""

    database: Database
    changes_rows: bool

    def alter(self, sql: str) -> SchemaStatement:
        """Return a statement that may change the schema."""
        return SchemaStatement(self.database, check_sql(sql), None, rows=self.changes_rows)


@dataclass(frozen=True)
class WholeDatabase:
    """A database of which everything is served, so that it may be copied unchanged."""

    database: Database


@dataclass(frozen=True)
class SchemaOf:
    """The definitions of everything in a database, or of a table and what depends on it."""

    database: Database
    table: Table | None = None


# What a resource shows.
Request = SchemaOf | RowsOf[Table] | RowOf[Table] | QueryOf


class Policy(sql.Policy[Table, Request]):
    """What callers may reach under these settings.

    Args:
        demo: path of the demo database, if it is served.

    Raises:
        Unavailable: no file that is named is a SQLite database, or none is named; one bad file among good ones is left
            out.
    """

    SCHEME = "sqlite"
    # SQLite has schemas of these names in every connection.
    RESERVED_NAMES = frozenset({"main", "temp"})

    def __init__(self, settings: PolicySettings, *, demo: str | None = None) -> None:
        super().__init__(settings)
        if demo is not None:
            self.serve("demo", demo)
        self._serve_files(settings)
        self.databases = {
            name: replace(database, folder=self._distinct_folder(database)) for name, database in self.databases.items()
        }
        if not self.databases:
            raise Unavailable("There is no database to serve.", "Name a file, or pass --demo.")
        self.limit(settings.only, settings.mask)
        self.open_folder(settings.files)

    def _serve_files(self, settings: PolicySettings) -> None:
        """Serve the files that can be, and log which can't.

        Raises:
            Unavailable: none of them can be served, and nothing else is.
        """
        refusals: list[Unavailable] = []
        for text in settings.databases:
            name, path = split_named_path(text)
            try:
                _prepare_file(path, settings)
            except Unavailable as refusal:
                refusals.append(refusal)
                continue
            # By the name that was given: where that is a link, it may lead to another file tomorrow.
            served_files = {os.path.realpath(item.address) for item in self.databases.values()}
            if os.path.realpath(path) not in served_files:
                stem, _ = os.path.splitext(os.path.basename(path))
                self.serve(name or stem, os.path.abspath(path))
        for refusal in refusals:
            if not self.databases:
                raise refusal
            logger.warning("It is left out: %s", refusal)

    def database_by_name(self, name: str) -> Database | None:
        """Return the database that is meant by the path or the name of its file, if only one has it."""
        matches: list[Database] = []
        for item in self.databases.values():
            file_name = os.path.basename(item.address)
            if name in (item.address, file_name, os.path.splitext(file_name)[0]):
                matches.append(item)
        return matches[0] if len(matches) == 1 else None

    def _distinct_folder(self, database: Database) -> str:
        """Return the end of the folder of a database's file that no other file of that name has; else empty."""
        file_name = os.path.basename(database.address)
        namesakes = [item.address for item in self.databases.values() if os.path.basename(item.address) == file_name]
        if len(namesakes) < 2:
            return ""
        folders = [os.path.dirname(address).split(os.sep) for address in namesakes]
        own = os.path.dirname(database.address).split(os.sep)
        for depth in range(1, len(own) + 1):
            if [folder[-depth:] for folder in folders].count(own[-depth:]) == 1:
                return "/".join(own[-depth:])
        return "/".join(own)

    def query_target(self, name: str | None) -> QueryTarget:
        """Return where a statement reads: in one database, or in several that are named as `one,other`."""
        if not name or "," not in name or self.database_by_name(name) is not None:
            return QueryTarget(self.served_databases(name), bool(name))
        first_name, *other_names = [part.strip() for part in name.split(",")]
        first = self.database(first_name)
        others = tuple(dict.fromkeys(map(self.database, other_names)))
        if first in others or len(others) > _MAX_OTHERS:
            raise Invalid(
                f"{quote(name)} names no databases to read together.",
                f"Name up to {_MAX_OTHERS + 1} different ones: `one,other`.",
            )
        if any(self.parts[item.name] for item in (first, *others)):
            raise Refused(
                "A database of which a part is served can't be read together with others.", "Read each alone."
            )
        return QueryTarget((first,), is_named=True, others=others)

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
        return AlterableDatabase(self.database(name), self.can_write)

    def whole_database(self, name: str | None) -> WholeDatabase:
        """Return a database to copy unchanged.

        Raises:
            Refused: not all of it is served.
        """
        database = self.database(name)
        if self.parts[database.name]:
            raise Refused(
                "A part of this database is served, and a copy has everything.", "`copy_to_file` copies rows."
            )
        return WholeDatabase(database)

    def new_database_file(self, name: str) -> NewFile:
        """Return a new file for a database in the folder for files."""
        return self.new_file(name, (".db", ".sqlite", ".sqlite3"))

    def request(self, database: Database, path: Sequence[str], options: Mapping[str, str]) -> Request | None:
        match path:
            case [".schema"]:
                return None if options else SchemaOf(database)
            case [table, ".schema"] if table and not options:
                return SchemaOf(database, Table(database, check_database_name(unquote(table))))
            case [table] if table:
                return self.rows(Table(database, check_database_name(unquote(table))), options)
            case [table, ".empty"] if table and not options:
                return RowOf(Table(database, check_database_name(unquote(table))), "")
            case [table, key] if table and not options:
                return RowOf(Table(database, check_database_name(unquote(table))), unquote(key))
            case _:
                return None

    def path(self, request: Request) -> str:
        match request:
            case SchemaOf(_, table):
                return ".schema" if table is None else f"{escape_uri_part(table.name)}/.schema"
            case RowsOf(table):
                return escape_uri_part(table.name) + self.options(request)
            case RowOf(table, key):
                return f"{escape_uri_part(table.name)}/{escape_uri_part(key) or '.empty'}"
            case QueryOf():
                raise AssertionError("a saved query is not below a database")


def internal_statement(database: Database, sql: str) -> ReadStatement:
    """Return statements of this program, run like callers' queries; names of the schema are quoted in them."""
    return ReadStatement(database, sql, None)


def table_uri(database: Database, name: str) -> str:
    """Return the URI of a table's first rows."""
    return f"sqlite://{database.uri_name}/{escape_uri_part(name)}"


def _check_file(path: str) -> None:
    """Check that `path` is a database's file.

    Raises:
        Unavailable: it is not.
    """
    refuse_other_systems(path, "SQLite")
    if not os.path.exists(path):
        fix = explain_missing_path(path) or "Name a database file, or pass --create to make it."
        raise Unavailable(f"{quote(path)} does not exist.", fix)
    try:
        if not os.path.isfile(path):
            raise Unavailable(f"{quote(path)} is not a file.", "Name a database file.")
        with open(path, "rb") as file:
            header = file.read(len(_FILE_HEADER))
    except OSError as error:
        raise Unavailable(f"{quote(path)} can't be read: {describe_os_error(error)}.") from None
    if header not in (b"", _FILE_HEADER):
        raise Unavailable(f"{quote(path)} is not a SQLite database.", "An encrypted one can't be served either.")


def _prepare_file(path: str, settings: PolicySettings) -> None:
    """Check that there is a database at `path`; make one if the operator allows it.

    Raises:
        Unavailable: there is none.
    """
    if settings.create and not os.path.exists(path):
        _make_file(path, is_trial=settings.is_trial)
    else:
        _check_file(path)


def _make_file(path: str, *, is_trial: bool) -> None:
    """Make the file of a new database; where that is only tried, look for its folder.

    Raises:
        Unavailable: it can't be made.
    """
    refuse_other_systems(path, "SQLite")
    if is_trial:
        folder = os.path.dirname(os.path.abspath(path))
        if not os.path.isdir(folder) or not os.access(folder, os.W_OK):
            raise Unavailable(f"{quote(path)} can't be made: there is no folder {quote(folder)} that can be written.")
        return
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
    except OSError as error:
        raise Unavailable(f"{quote(path)} can't be made: {describe_os_error(error)}.") from None
