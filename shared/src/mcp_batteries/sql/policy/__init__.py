"""The common policy of both SQL servers: turns a caller's text into a trusted type, or refuses it.

Policy does not decide by looking at a statement what it may do. The tool that a statement came through makes it a
`ReadStatement`, a `WriteStatement` or a `SchemaStatement`, and the database refuses what that kind may not do.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, Protocol, TypeVar
from urllib.parse import parse_qsl, quote_from_bytes, unquote

from mcp_batteries.errors import Invalid, NotFound, Refused, Unavailable, quote
from mcp_batteries.sql.language.database_names import fold_name, to_name
from mcp_batteries.sql.language.qualified_names import QUALIFIED_NAME_FORMAT, parse_qualified_names
from mcp_batteries.sql.policy.requests import (
    Database,
    FileEncoding,
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
    VisibleSchema,
    WriteStatement,
)
from mcp_batteries.sql.policy.targets import QueryTarget, choose_only, list_names
from mcp_batteries.sql.policy.texts import MAX_SQL, check_database_name, check_sql, is_complete_text, parse_encoding
from mcp_batteries.sql.saved_queries import SavedQuery
from mcp_batteries.sql.transfer.files import READ_FILE_SUFFIXES, ROW_FILE_SUFFIXES, is_relative_path, to_posix_path

__all__ = [
    "MAX_SQL",
    "ROW_FILE_SUFFIXES",
    "AnyPolicy",
    "Database",
    "FileEncoding",
    "NamesOf",
    "NewFile",
    "NextPage",
    "Policy",
    "QueryOf",
    "QueryTarget",
    "ReadStatement",
    "Readable",
    "RowOf",
    "RowsOf",
    "SchemaStatement",
    "ServedFile",
    "Switches",
    "VisibleSchema",
    "WriteStatement",
    "check_database_name",
    "check_sql",
    "escape_uri_part",
    "is_complete_text",
    "parse_encoding",
]  # fmt: skip

# A table's resource shows so many of its rows.
_PAGE_ROWS = 100

_NAMED = "Name it from the folder for files on, `a.csv` or `sub/a.csv`; no part begins with a dot."

T = TypeVar("T")
R = TypeVar("R")


class Switches(Protocol):
    """The switches that the operator has turned on."""

    @property
    def read_only(self) -> bool: ...
    @property
    def write(self) -> bool: ...
    @property
    def ddl(self) -> bool: ...


class Policy(ABC, Generic[T, R]):
    """What callers may reach under an operator's settings. T is a server's type for a table, R for a resource's
    content.

    Attributes:
        databases: the served databases, by name.
        parts: the served part of each database, by its name.
        folder: for files to write and read; None if the operator named none.
    """

    SCHEME: ClassVar[str]
    # A name that `--only` lists may have so many parts.
    ONLY: ClassVar[tuple[int, ...]] = (1,)
    # Names that mean something else in statements.
    RESERVED_NAMES: ClassVar[frozenset[str]] = frozenset()
    folder: str | None = None

    def __init__(self, switches: Switches) -> None:
        self.can_write = switches.write and not switches.read_only
        self.can_reshape = switches.ddl and not switches.read_only
        self.databases: dict[str, Database] = {}
        self.parts: Mapping[str, VisibleSchema] = {}

    def serve(self, preferred_name: str, address: str) -> None:
        """Serve a database, under its preferred name or a similar free one."""
        plain = to_name(preferred_name) or "database"
        if plain in self.RESERVED_NAMES:
            plain = f"{plain}_db"
        name = plain
        number = 2
        while name in self.databases:
            name = f"{plain}_{number}"
            number = number + 1
        self.databases[name] = Database(name, address)

    def limit(self, only: Sequence[str], mask: Sequence[str]) -> None:
        """Serve only a part of the databases.

        Raises:
            Unavailable: a name is not understood, so that a typing mistake reveals nothing.
        """
        allowed = {name: (set[tuple[str, ...]](), set[tuple[str, ...]]()) for name in self.databases}
        for flag, values, place, sizes in (
            ("--only", only, 0, self.ONLY),
            ("--mask", mask, 1, (max(self.ONLY) + 1,)),
        ):
            for database, name in parse_qualified_names(flag, values):
                if len(name) not in sizes or (database is not None and database not in allowed):
                    raise Unavailable(f"{quote('.'.join(name))} can't be the value of `{flag}`.", QUALIFIED_NAME_FORMAT)
                for each in allowed if database is None else (database,):
                    allowed[each][place].add(name)
        self.parts = {
            name: VisibleSchema(frozenset(only), frozenset(masked)) for name, (only, masked) in allowed.items()
        }

    def open_folder(self, folder: str | None) -> None:
        """Use `folder` for files.

        Raises:
            Unavailable: it is none.
        """
        self.folder = folder and os.path.realpath(folder)
        if self.folder is not None and not os.path.isdir(self.folder):
            raise Unavailable(f"{quote(folder or '')} is not a folder.", "Name one that exists as --files.")

    def new_file(self, name: str, endings: Sequence[str]) -> NewFile:
        """Return a new file in the folder for files."""
        return NewFile(*self._file(name, endings))

    def new_row_file(self, name: str) -> NewFile:
        """Return a new file for rows in the folder for files."""
        return self.new_file(name, ROW_FILE_SUFFIXES)

    def row_file(self, name: str) -> ServedFile:
        """Return a file with rows in the folder for files, or below it."""
        return self.served_file(name, READ_FILE_SUFFIXES)

    def served_file(self, name: str, endings: Sequence[str]) -> ServedFile:
        """Return a file in the folder for files, or below it."""
        return ServedFile(*self._file(name, endings, in_subfolders=True))

    def _file(self, name: str, endings: Sequence[str], *, in_subfolders: bool = False) -> tuple[str, str]:
        if self.folder is None:
            raise Refused("There is no folder for files here.", "The operator can name one with `--files`.")
        name = to_posix_path(name)
        if not is_relative_path(name):
            raise Refused(f"{quote(name)} is not a name of a file here.", _NAMED)
        if not in_subfolders and ("/" in name or len(name) > 200):
            raise Refused(f"{quote(name)} is not a plain file name.", "New files lie directly in the folder for files.")
        if not name.lower().endswith(tuple(endings)):
            raise Invalid(f"{quote(name)} has the wrong ending.", f"It must end in {' or '.join(endings)}.")
        return self.folder, name

    def database(self, name: str | None) -> Database:
        """Return the database called `name`; without a name the only one.

        Raises:
            NotFound: there is none of that name.
            Invalid: none is named and there are several.
        """
        return choose_only(self.served_databases(name))

    def served_databases(self, name: str | None) -> tuple[Database, ...]:
        """Return the database called `name`; without a name all of them.

        Raises:
            NotFound: there is none of that name.
        """
        databases = tuple(self.databases.values())
        if name:
            match = self.databases.get(fold_name(name)) or self.database_by_name(name)
            if match is None:
                raise NotFound(f"There is no database {quote(name)}.", f"There are: {list_names(databases)}.")
            databases = (match,)
        return tuple(map(self.for_caller, databases))

    def for_caller(self, database: Database) -> Database:
        """Return a database as the caller of this request may use it."""
        return database

    def database_by_name(self, name: str) -> Database | None:
        """The database that was probably meant by `name`, which no database has."""
        return None

    @abstractmethod
    def query_target(self, name: str | None) -> QueryTarget:
        """Return the database called `name` for statements that read; without a name the only one."""

    def check_writable(self) -> None:
        """Check that rows may be changed.

        Raises:
            Refused: the operator has not opened that.
        """
        if not self.can_write:
            raise Refused("Rows can't be changed through this server.", "The operator can start it with `--write`.")

    def check_alterable(self) -> None:
        """Check that the schema may be changed.

        Raises:
            Refused: the operator has not opened that.
        """
        if not self.can_reshape:
            raise Refused("The schema can't be changed through this server.", "The operator can start it with `--ddl`.")

    def names(self, database: str | None, kind: str, typed: str, inside: Sequence[str] = ()) -> NamesOf:
        """Names to complete.

        Raises:
            Invalid: no name can begin like that.
        """
        if not all(map(is_complete_text, (typed, *inside))):
            raise Invalid(f"No name begins with {quote(typed)}.")
        return NamesOf(self.database(database), kind, typed, tuple(inside))

    def saved(self, query: SavedQuery, values: Mapping[str, Any] | None = None) -> ReadStatement:
        """A saved query with values for its parameters; NULL for all if none are given."""
        nothing = {item.name: None for item in query.parameters}
        bound = nothing if values is None else query.values(values)
        return self.query_target(query.database).read(query.sql, bound)

    def saved_uri(self, name: str) -> str:
        """The URI of a saved query's result."""
        return f"{self.SCHEME}://.queries/{name}"

    @abstractmethod
    def request(self, database: Database, path: Sequence[str], options: Mapping[str, str]) -> R | None:
        """The request that a URI's path below a database means, given as sent segments; None if it means nothing."""

    @abstractmethod
    def path(self, request: R) -> str:
        """The canonical path of the URI that means `request`."""

    def readable(self, uri: str, saved: Mapping[str, SavedQuery] | None = None) -> Readable[R | QueryOf] | None:
        """What a URI means; None for URIs of another kind.

        Raises:
            NotFound: it names no existing database or saved query, or has no meaning here.
            Invalid: its query is not understood.
        """
        top = f"{self.SCHEME}://"
        if not uri.lower().startswith(top):
            return None
        location, _, query = uri[len(top) :].partition("?")
        first, *path = location.rstrip("/").split("/")
        if first.lower() == ".queries":
            name = unquote("/".join(path))
            if saved is None or name not in saved:
                raise NotFound(f"There is no saved query {quote(name)}.", "`resources/list` has those there are.")
            statement = self.saved(saved[name], {})
            return Readable(self.saved_uri(name), statement.database, QueryOf(statement))
        if not first:
            raise NotFound(f"No resource has the URI {quote(uri)}.", f"A database's name stands behind `{top}`.")
        database = self.database(unquote(first))
        request = self.request(database, path, dict(parse_qsl(query, keep_blank_values=True)))
        if request is None:
            raise NotFound(
                f"No resource has the URI {quote(uri)}.", f"`{top}{database.uri_name}/.schema` is the schema."
            )
        return Readable(f"{top}{database.uri_name}/{self.path(request)}", database, request)

    def rows(self, table: T, options: Mapping[str, str]) -> RowsOf[T]:
        """The rows that the query part of a table's URI means.

        Raises:
            Invalid: it is not understood.
        """
        limit = options.get("limit", str(_PAGE_ROWS))
        if not limit.isdecimal() or not 1 <= int(limit) <= _PAGE_ROWS:
            raise Invalid(f"`limit` must be from 1 to {_PAGE_ROWS}, not {quote(limit)}.")
        order = options.get("order", "newest")
        if options.keys() - {"limit", "order"} not in (set(), {"column", "value"}) or order != "newest":
            takes = "It takes `limit`, `order=newest`, and `column` with `value`."
            raise Invalid("The query of the URI is not understood.", takes)
        return RowsOf(table, int(limit), options.get("column"), options.get("value", ""), "order" in options)

    @staticmethod
    def options(rows: RowsOf[Any]) -> str:
        """The canonical query part of the URI that means `rows`."""
        condition = (
            f"column={escape_uri_part(rows.column)}&value={escape_uri_part(rows.value)}&"
            if rows.column is not None
            else ""
        )
        return f"?{condition}limit={rows.limit}" + ("&order=newest" if rows.newest else "")


def escape_uri_part(text: str) -> str:
    """`text` as one segment of a URI; a leading dot is escaped too, so that no name means `.schema`."""
    escaped = quote_from_bytes(text.encode("utf-8", "surrogatepass"), safe="")
    return "%2E" + escaped[1:] if escaped.startswith(".") else escaped


AnyPolicy = Policy[Any, Any]
