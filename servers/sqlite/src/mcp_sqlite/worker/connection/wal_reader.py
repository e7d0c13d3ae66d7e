"""Reads a database in WAL mode, whose readers hold up nobody: in a short transaction each time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from mcp_sqlite.worker.connection.connections import Connections
from mcp_sqlite.worker.connection.database import Database

__all__ = ["WalReader", "WalState"]


class WalState(NamedTuple):
    """What every commit changes in WAL mode.

    Attributes:
        connection: the number of the connection, which alone can compare `data_version`.
        layout: what changes with the schema.
    """

    connection: int
    data_version: int
    layout: Any

    @property
    def modified_ns(self) -> int:
        """The time of the last change: long ago, because here `data_version` tells of every commit."""
        return 0


class WalReader:
    """Reads while the block lasts."""

    def __init__(self, connections: Connections, path: str) -> None:
        self.connections = connections
        self.path = path
        self._database = connections.reader(path)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass

    def read_state(self) -> WalState:
        """Return the state of the file as the connection sees it."""
        data_version = self._database.read_internal("PRAGMA data_version")
        return WalState(self._database.number, data_version, self.layout(self._database))

    def layout(self, database: Database) -> Any:
        """Return what changes with the schema."""
        return (database.identity, database.read_internal("PRAGMA schema_version"))

    def read(self, read: Callable[[Database], str]) -> str:
        """Return what `read` finds at one moment."""
        self._database.run_internal("BEGIN")
        try:
            return read(self._database)
        finally:
            if self._database.connection.in_transaction:
                self._database.run_internal("ROLLBACK")
