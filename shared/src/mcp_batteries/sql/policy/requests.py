"""What an engine is asked for: the trusted types that both SQL servers' policies make."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from mcp_batteries.errors import Invalid, quote

__all__ = [
    "Database", "NamesOf", "NewFile", "NextPage", "Part", "QueryOf", "ReadStatement", "Readable", "RowOf", "RowsOf",
    "SchemaStatement", "SearchOf", "ServedFile", "WriteStatement",
]  # fmt: skip

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Database:
    """A served database.

    Attributes:
        name: how callers name it, in the characters a URI needs no escapes for.
        address: the path of its file, or what leads to its server; never shown.
        role: as whom the database sees who asks, where each caller has a role of its own there.
    """

    name: str
    address: str = field(repr=False)
    role: str | None = None


@dataclass(frozen=True)
class Part:
    """What of a database is served; false where that is all of it, as it is.

    Attributes:
        only: names of what is served, each by its parts, such as schema and table; empty for everything.
        masked: names of columns whose values are never shown.
    """

    only: frozenset[tuple[str, ...]] = frozenset()
    masked: frozenset[tuple[str, ...]] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.only or self.masked)


@dataclass(frozen=True)
class ReadStatement:
    """To be run where nothing can be changed.

    Attributes:
        parameters: values to bind, as `Policy.bound` gives them.
    """

    database: Database
    sql: str
    parameters: Any


@dataclass(frozen=True)
class WriteStatement(ReadStatement):
    """May change rows."""


@dataclass(frozen=True)
class SchemaStatement(ReadStatement):
    """May change the schema; and rows too, where `rows` says that the operator opened both."""

    rows: bool = False


@dataclass(frozen=True)
class NextPage:
    """The page behind a cursor, of a result of `database` if one was named; and whose it has to be, see `Database`."""

    cursor: str
    database: Database | None
    role: str | None = None

    def check(self, database: Database) -> None:
        """Return if the result is one of `database`.

        Raises:
            Invalid: another database was named.
        """
        if self.database not in (None, database):
            raise Invalid(
                f"The `cursor` belongs to a result of the database {quote(database.name)}.",
                "Pass the `cursor` alone, or run the query again.",
            )


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
class SearchOf:
    """What to look for in the schemas of some databases."""

    databases: tuple[Database, ...]
    words: str


@dataclass(frozen=True)
class NamesOf:
    """Names of a kind (schema, table, column) that begin with what was typed, inside those named before."""

    database: Database
    kind: str
    typed: str
    inside: tuple[str, ...] = ()


@dataclass(frozen=True)
class RowsOf(Generic[T]):
    """The first rows of a table in the order of its key; with a `column`, those where it has `value`.

    Attributes:
        newest: in the opposite order, so that what was added to a key that counts stands first.
    """

    table: T
    limit: int
    column: str | None = None
    value: str = ""
    newest: bool = False


@dataclass(frozen=True)
class RowOf(Generic[T]):
    """The row of a table with a key; commas stand between the parts of one."""

    table: T
    key: str


@dataclass(frozen=True)
class QueryOf:
    """The first rows that a saved query finds."""

    statement: ReadStatement


@dataclass(frozen=True)
class Readable(Generic[R]):
    """What a resource URI means: its one spelling, and the request for its content."""

    uri: str
    database: Database
    request: R

    @property
    def key(self) -> str:
        """What tells it apart from what the same URI means to a caller of another role."""
        return self.uri if self.database.role is None else f"{self.uri} {self.database.role}"
