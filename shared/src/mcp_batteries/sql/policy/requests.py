"""Requests to an engine: the trusted types that both SQL servers' policies make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar
from urllib.parse import quote as percent_encode

from mcp_batteries.errors import Invalid, quote

__all__ = [
    "Database",
    "FileEncoding",
    "NamesOf",
    "NewFile",
    "NextPage",
    "QueryOf",
    "ReadStatement",
    "Readable",
    "RowOf",
    "RowsOf",
    "SchemaStatement",
    "ServedFile",
    "VisibleSchema",
    "WriteStatement",
]  # fmt: skip

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Database:
    """A served database.

    Attributes:
        name: its name for callers: letters of any script, digits, `_` and `-`.
        address: the path of its file, or its server's address; never shown.
        role: the caller's role in the database, if each caller has a separate one.
        folder: the end of its file's folder, where another file has the same name.
    """

    name: str
    address: str = field(repr=False)
    role: str | None = None
    folder: str = ""

    @property
    def uri_name(self) -> str:
        """The name as a segment of a URI."""
        return percent_encode(self.name, safe="")


@dataclass(frozen=True)
class VisibleSchema:
    """The served part of a database; false if that is all of it, unchanged.

    Attributes:
        only: names of what is served, each split into parts such as schema and table; empty for everything.
        masked: names of columns whose values are never shown.
    """

    only: frozenset[tuple[str, ...]] = frozenset()
    masked: frozenset[tuple[str, ...]] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.only or self.masked)


@dataclass(frozen=True)
class ReadStatement:
    """Runs where nothing can be changed.

    Attributes:
        parameters: values to bind, in the form that the engine binds.
    """

    database: Database
    sql: str
    parameters: Any


@dataclass(frozen=True)
class WriteStatement(ReadStatement):
    """May change rows."""


@dataclass(frozen=True)
class SchemaStatement(ReadStatement):
    """May change the schema, and rows too if `rows`, when the operator opened both."""

    rows: bool = False


@dataclass(frozen=True)
class NextPage:
    """The page at a cursor, of a result of `database` and of `sql` if they were named.

    Attributes:
        role: see `Database`.
    """

    cursor: str
    database: Database | None
    role: str | None = None
    sql: str | None = None

    def check(self, statement: ReadStatement) -> None:
        """Check that the result belongs to `statement`.

        Raises:
            Invalid: another database was named, or another statement.
        """
        if self.database not in (None, statement.database):
            raise Invalid(
                f"The `cursor` belongs to a result of the database {quote(statement.database.name)}.",
                "Pass the `cursor` alone, or run the query again.",
            )
        if self.sql is not None and _words(statement.sql) not in _words(self.sql):
            raise Invalid(
                "The `cursor` belongs to a result of another statement than `sql`.",
                "Pass the `cursor` alone for its next page, or `sql` alone to run it.",
            )


def _words(sql: str) -> str:
    return " ".join(sql.split()).rstrip("; ")


@dataclass(frozen=True)
class NewFile:
    """A file to create directly in the folder for files; refused if it exists."""

    folder: str
    name: str


@dataclass(frozen=True)
class FileEncoding:
    """An encoding of texts that Python reads."""

    name: str


@dataclass(frozen=True)
class ServedFile:
    """A file to read in the folder for files.

    Attributes:
        encoding: the one that the caller named; empty where the file says it.
        null_words: fields of a CSV file that mean NULL.
    """

    folder: str
    name: str
    encoding: str = ""
    null_words: tuple[str, ...] = ()

    def with_format(self, encoding: FileEncoding | None, null_words: Sequence[str]) -> ServedFile:
        """Return the file with what the caller knows of how it is written."""
        return replace(self, encoding=encoding.name if encoding else "", null_words=tuple(null_words))


@dataclass(frozen=True)
class NamesOf:
    """Names of a kind (schema, table, column) that begin with the typed text, inside those named before."""

    database: Database
    kind: str
    typed: str
    inside: tuple[str, ...] = ()


@dataclass(frozen=True)
class RowsOf(Generic[T]):
    """The first rows of a table in the order of its key; with a `column`, those where it has `value`.

    Attributes:
        newest: reverse order, so that the last rows of a counting key come first.
    """

    table: T
    limit: int
    column: str | None = None
    value: str = ""
    newest: bool = False


@dataclass(frozen=True)
class RowOf(Generic[T]):
    """The row of a table with a key, whose parts are separated by commas."""

    table: T
    key: str


@dataclass(frozen=True)
class QueryOf:
    """The first rows that a saved query finds."""

    statement: ReadStatement


@dataclass(frozen=True)
class Readable(Generic[R]):
    """The meaning of a resource URI: its canonical form, and the request for its content."""

    uri: str
    database: Database
    request: R

    @property
    def key(self) -> str:
        """Distinguishes it from the same URI for a caller with another role."""
        return self.uri if self.database.role is None else f"{self.uri} {self.database.role}"
