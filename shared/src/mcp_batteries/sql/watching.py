"""What both SQL servers' sources of changes have in common: databases as groups, and their lists of tables."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from mcp_batteries.errors import Problem
from mcp_batteries.sql.policy import Database, QueryOf, Readable
from mcp_batteries.subscriptions.digest_source import DigestGroup, DigestSource

__all__ = ["DatabaseSource", "FollowedDatabase", "Subject", "TableList", "demonstration", "select_readables"]


@dataclass(frozen=True)
class TableList:
    """A database's tables, which `resources/list` shows. It is its own key."""

    database: str


Subject = Readable[Any] | TableList


class FollowedDatabase(DigestGroup[Subject]):
    """One database, and what is followed in it."""

    def __init__(self, database: Database) -> None:
        super().__init__()
        self.database = database


D = TypeVar("D", bound=FollowedDatabase)


class DatabaseSource(DigestSource[D, Subject], ABC, Generic[D]):
    """A source of changes; a key is a `Readable`'s, or the list of a database's tables.

    Args:
        readable: the current meaning of a URI.
        interval: seconds until the first check.
    """

    def __init__(
        self, databases: Mapping[str, D], readable: Callable[[str], Readable[Any] | None], interval: float
    ) -> None:
        super().__init__(databases, interval)
        lists = [TableList(name) for name in databases]
        self.list_keys: Collection[Hashable] = lists
        self.known_subjects.update((tables, tables) for tables in lists)
        self._readable = readable

    def parse(self, uri: str) -> Subject | None:
        return self._readable(uri)

    def key_of(self, subject: Subject) -> Hashable:
        if isinstance(subject, TableList):
            return subject
        return subject.key

    def group_of(self, subject: Subject) -> D:
        if isinstance(subject, TableList):
            return self.groups[subject.database]
        return self.groups[subject.database.name]

    def keys_of(self, uri: str) -> Collection[Hashable]:
        """Return the keys of a URI for all callers, who may have different roles."""
        readable = self._readable(uri)
        if readable is None:
            return []
        return [key for key, other in select_readables(self.known_subjects).items() if other.uri == readable.uri]

    def request(self, readable: Readable[Any]) -> Any:
        """Return the request that reads it; a saved query may be another one by now."""
        if not isinstance(readable.request, QueryOf):
            return readable.request
        try:
            current = self._readable(readable.uri)
        except Problem:
            return readable.request
        return (current or readable).request


def select_readables(subjects: Mapping[Hashable, Subject]) -> dict[str, Readable[Any]]:
    """Return those that can be read one by one, by their keys."""
    return {subject.key: subject for subject in subjects.values() if isinstance(subject, Readable)}


def demonstration(settings: Any) -> tuple[str, Callable[[], None]] | None:
    """Return None for `--check`: it would have to change the database."""
    return None
