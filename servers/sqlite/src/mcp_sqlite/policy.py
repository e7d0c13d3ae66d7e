"""The only place that says no before SQLite does: a caller's words become a trusted type here, or a refusal.

What a statement may do is not decided here by looking at it. It becomes a `ReadStatement`, a `WriteStatement` or a
`SchemaStatement` by the tool that it came through, and the worker has SQLite refuse what that kind may not do.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import parse_qsl, quote_from_bytes, unquote

from mcp_batteries.errors import Invalid, NotFound, Refused, Unavailable, quote
from mcp_batteries.sql.rows import bare_sql

__all__ = [
    "MAX_SQL",
    "Database",
    "NewFile",
    "Parameters",
    "Policy",
    "PolicySettings",
    "ReadStatement",
    "SchemaStatement",
    "ServedFile",
    "Subject",
    "Table",
    "WriteStatement",
    "escaped",
]

MAX_SQL = 100_000
"""Characters of one `sql` argument."""

Parameters = Sequence[Any] | Mapping[str, Any] | None

_HEADER = b"SQLite format 3\0"
_PAGE_ROWS = 100
"""Rows of a table that its resource shows."""


class PolicySettings(Protocol):
    """What the policy needs to be told."""

    @property
    def databases(self) -> Sequence[str]: ...
    @property
    def create(self) -> bool: ...
    @property
    def read_only(self) -> bool: ...
    @property
    def write(self) -> bool: ...
    @property
    def ddl(self) -> bool: ...
    @property
    def files(self) -> str | None: ...


@dataclass(frozen=True)
class Database:
    """A served database.

    Attributes:
        name: how callers name it: the file's name without its ending, in the characters a URI needs no escapes for.
        path: of the file, absolute, links resolved; it is never shown.
    """

    name: str
    path: str


@dataclass(frozen=True)
class ReadStatement:
    """To be run where nothing can be changed."""

    database: Database
    sql: str
    parameters: Parameters = None


@dataclass(frozen=True)
class WriteStatement(ReadStatement):
    """May change rows."""


@dataclass(frozen=True)
class SchemaStatement(ReadStatement):
    """May change the schema."""


@dataclass(frozen=True)
class Table:
    """A name to be looked up in a database's schema, and quoted, never pasted."""

    database: Database
    name: str


@dataclass(frozen=True)
class NewFile:
    """A file to be made directly in the folder for files; it is refused there if it exists."""

    folder: str
    name: str


@dataclass(frozen=True)
class ServedFile:
    """A file directly in the folder for files, to be read."""

    folder: str
    name: str


@dataclass(frozen=True)
class Subject:
    """What a resource URI means: the one spelling of the URI, and the request for its content."""

    uri: str
    database: Database
    request: Mapping[str, Any]


class Policy:
    """What may be reached under these settings.

    Args:
        demo: path of the demo database, if it is served.

    Raises:
        Unavailable: a file is missing or no SQLite database, or none is named.
    """

    def __init__(self, settings: PolicySettings, *, demo: str | None = None) -> None:
        self.can_write = settings.write and not settings.read_only
        self.can_reshape = settings.ddl and not settings.read_only
        self.databases: dict[str, Database] = {}
        if demo is not None:
            self.databases["demo"] = Database("demo", demo)
        for path in settings.databases:
            _check_file(path, create=settings.create)
            real = os.path.realpath(path)
            if all(real != known.path for known in self.databases.values()):
                name = self._free_name(path)
                self.databases[name] = Database(name, real)
        if not self.databases:
            raise Unavailable("There is no database to serve.", "Name a file, or pass --demo.")
        self.folder = settings.files and os.path.realpath(settings.files)
        if self.folder is not None and not os.path.isdir(self.folder):
            raise Unavailable(f"{quote(settings.files or '')} is no folder.", "Name one that exists as --files.")

    def _free_name(self, path: str) -> str:
        stem = os.path.splitext(os.path.basename(path))[0].lower()
        plain = re.sub(r"[^a-z0-9_-]+", "_", stem).strip("_") or "database"
        name, number = plain, 2
        while name in self.databases:
            name, number = f"{plain}_{number}", number + 1
        return name

    def database(self, name: str | None) -> Database:
        """The database called `name`; None is the only one there is.

        Raises:
            NotFound: there is none of that name.
            Invalid: none is named and there are several.
        """
        served = ", ".join(f"`{known}`" for known in self.databases)
        if not name:
            if len(self.databases) > 1:
                raise Invalid("Several databases are served.", f"Name one as `database`: {served}.")
            return next(iter(self.databases.values()))
        found = self.databases.get(name.lower())
        if found is None:
            files = [item for item in self.databases.values() if name in (item.path, os.path.basename(item.path))]
            found = files[0] if len(files) == 1 else None
        if found is None:
            raise NotFound(f"There is no database {quote(name)}.", f"There are: {served}.")
        return found

    def read(self, database: str | None, sql: str, parameters: Parameters = None) -> ReadStatement:
        """A statement that will run where it can change nothing."""
        return ReadStatement(self.database(database), _text(sql), parameters)

    def write(self, database: str | None, sql: str, parameters: Parameters = None) -> WriteStatement:
        """A statement that may change rows.

        Raises:
            Refused: the operator has not opened that.
        """
        if not self.can_write:
            raise Refused("Rows can't be changed through this server.", "The operator can start it with `--write`.")
        return WriteStatement(self.database(database), _text(sql), parameters)

    def reshape(self, database: str | None, sql: str) -> SchemaStatement:
        """A statement that may change the schema.

        Raises:
            Refused: the operator has not opened that.
        """
        if not self.can_reshape:
            raise Refused("The schema can't be changed through this server.", "The operator can start it with `--ddl`.")
        return SchemaStatement(self.database(database), _text(sql))

    def table(self, database: str | None, name: str) -> Table:
        """A table or view, which may turn out not to exist."""
        return Table(self.database(database), _name(name))

    def new_file(self, name: str, endings: Sequence[str]) -> NewFile:
        """A file to be made in the folder for files."""
        return NewFile(*self._file(name, endings))

    def served_file(self, name: str, endings: Sequence[str]) -> ServedFile:
        """A file in the folder for files."""
        return ServedFile(*self._file(name, endings))

    def _file(self, name: str, endings: Sequence[str]) -> tuple[str, str]:
        if self.folder is None:
            raise Refused("There is no folder for files here.", "The operator can name one with `--files`.")
        if not re.fullmatch(r"[^/\\:\0.][^/\\:\0]*", name) or len(name) > 200:
            raise Refused(
                f"{quote(name)} is no plain file name.", "Files lie directly in the folder for files: no path."
            )
        if not name.lower().endswith(tuple(endings)):
            raise Invalid(f"{quote(name)} has the wrong ending.", f"It must end in {' or '.join(endings)}.")
        return self.folder, name

    def table_uri(self, database: Database, name: str) -> str:
        """The URI of a table's first rows."""
        return f"sqlite://{database.name}/{escaped(name)}"

    def subject(self, uri: str) -> Subject | None:
        """What a `sqlite://` URI means; None for URIs of another kind.

        Raises:
            NotFound: it names no database, or has no meaning here.
            Invalid: its query is not understood.
        """
        if not uri.lower().startswith("sqlite://"):
            return None
        rest, _, query = uri[len("sqlite://") :].partition("?")
        parts = rest.rstrip("/").split("/")
        if not parts[0]:
            raise NotFound(f"No resource has the URI {quote(uri)}.", "A database's name stands behind `sqlite://`.")
        database = self.database(unquote(parts[0]))
        top = f"sqlite://{database.name}"
        options = dict(parse_qsl(query, keep_blank_values=True))
        match parts[1:]:
            case [".schema"] if not options:
                return Subject(f"{top}/.schema", database, {"do": "schema"})
            case [table, ".schema"] if table and not options:
                name = _name(unquote(table))
                return Subject(f"{top}/{escaped(name)}/.schema", database, {"do": "schema", "table": name})
            case [table] if table:
                return _rows(top, database, _name(unquote(table)), options)
            case [table, key] if table and not options:
                name, value = _name(unquote(table)), unquote(key)
                request = {"do": "row", "table": name, "key": value}
                return Subject(f"{top}/{escaped(name)}/{escaped(value)}", database, request)
            case _:
                raise NotFound(f"No resource has the URI {quote(uri)}.", f"`{top}/.schema` is the schema.")


def _rows(top: str, database: Database, table: str, options: dict[str, str]) -> Subject:
    limit = options.pop("limit", str(_PAGE_ROWS))
    if not limit.isdecimal() or not 1 <= int(limit) <= _PAGE_ROWS:
        raise Invalid(f"`limit` must be from 1 to {_PAGE_ROWS}, not {quote(limit)}.")
    if options.keys() - {"column", "value"} or len(options) == 1:
        raise Invalid("The query of the URI is not understood.", "It takes `limit`, and `column` with `value`.")
    request = {"do": "rows", "table": table, "limit": int(limit), **options}
    query = "&".join(
        f"{name}={escaped(str(request[name]))}" for name in ("column", "value", "limit") if name in request
    )
    return Subject(f"{top}/{escaped(table)}?{query}", database, request)


def escaped(text: str) -> str:
    """`text` as one segment of a URI; a leading dot is escaped too, so that no name means `.schema`."""
    escaped = quote_from_bytes(text.encode("utf-8", "surrogatepass"), safe="")
    return "%2E" + escaped[1:] if escaped.startswith(".") else escaped


def _text(sql: str) -> str:
    if "\0" in sql:
        raise Invalid("`sql` holds a NUL character, `\\0`.", "Bind it as a parameter.")
    if len(sql) > MAX_SQL:
        raise Invalid(f"`sql` has {len(sql):,} characters, the limit is {MAX_SQL:,}.", "Bind big values as parameters.")
    try:
        sql.encode()
    except UnicodeEncodeError:
        raise Invalid("`sql` holds half of a character (a lone surrogate).", "Send whole characters.") from None
    return bare_sql(sql)


def _name(name: str) -> str:
    try:
        plain = "\0" not in name and name.encode()
    except UnicodeEncodeError:
        plain = False
    if not plain or len(name) > 1000:
        raise Invalid(f"{quote(name)} can't be the name of a table.")
    return name


def _check_file(path: str, *, create: bool) -> None:
    if not os.path.exists(path):
        if not create:
            raise Unavailable(f"{quote(path)} does not exist.", "Name a database file, or pass --create to make it.")
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
        except OSError as error:
            raise Unavailable(f"{quote(path)} can't be made: {error.strerror}.") from None
    try:
        if not os.path.isfile(path):
            raise Unavailable(f"{quote(path)} is no file.", "Name a database file.")
        with open(path, "rb") as file:
            header = file.read(16)
    except OSError as error:
        raise Unavailable(f"{quote(path)} can't be read: {error.strerror}.") from None
    if header not in (b"", _HEADER):
        raise Unavailable(f"{quote(path)} is no SQLite database.", "An encrypted one can't be served either.")
