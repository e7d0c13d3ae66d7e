"""Databases that a policy has agreed to, which make the statements that run there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mcp_batteries.errors import Invalid
from mcp_batteries.sql.policy.requests import Database, NextPage, ReadStatement
from mcp_batteries.sql.policy.texts import check_sql

__all__ = ["QueryTarget", "choose_only", "list_names"]


@dataclass(frozen=True)
class QueryTarget(ABC):
    """The database that a query reads.

    The next page of a result needs no name of a database, so it is an error of a statement only that none is named
    where several are served.

    Attributes:
        candidates: the database that was named, or all that are served.
        is_named: whether the caller named it.
    """

    candidates: tuple[Database, ...]
    is_named: bool

    @property
    def database(self) -> Database:
        """The database that is named, or the only one.

        Raises:
            Invalid: none is named and there are several.
        """
        return choose_only(self.candidates)

    @abstractmethod
    def read(self, sql: str, parameters: Any = None) -> ReadStatement:
        """Return a statement that runs read-only.

        Raises:
            Invalid: no database could read it, or a value can't be bound.
        """

    def read_page(self, sql: str | None, parameters: Any, cursor: str | None) -> ReadStatement | NextPage:
        """Return what `query_rows` asks for: the rows of statements, or the page at a cursor.

        Raises:
            Invalid: neither is given.
        """
        if cursor is not None:
            first = self.candidates[0]
            checked_sql = None if sql is None else check_sql(sql)
            return NextPage(cursor, first if self.is_named else None, first.role, checked_sql)
        if sql is None:
            raise Invalid(
                "`query_rows` was given no `sql`.", "Pass one statement, or the `cursor` of an earlier answer."
            )
        return self.read(sql, parameters)


def choose_only(databases: Sequence[Database]) -> Database:
    """Return the only one of some databases.

    Raises:
        Invalid: there are several.
    """
    if len(databases) > 1:
        raise Invalid("Several databases are served.", f"Name one as `database`: {list_names(databases)}.")
    return databases[0]


def list_names(databases: Sequence[Database]) -> str:
    """Return the names of databases as a message lists them."""
    return ", ".join(f"`{database.name}`" for database in databases)
