"""The connections to all databases; each call is a transaction of its own on one of them."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

import anyio.to_thread

from mcp_batteries.errors import Invalid, NotFound, Refused, Unavailable
from mcp_postgres.engine.admission.statements import TransactionLimits, transaction_opening
from mcp_postgres.engine.catalog.suggestions import add_suggestion
from mcp_postgres.engine.connection.errors import StatementTimeout
from mcp_postgres.engine.connection.passwords import Passwords
from mcp_postgres.engine.connection.pool import ConnectionPool, run_shielded
from mcp_postgres.engine.connection.session import Session
from mcp_postgres.engine.demo.cluster import Cluster
from mcp_postgres.engine.demo.shop import SCRIPT
from mcp_postgres.policy import Database, VisibleSchema

__all__ = ["ConnectionPools"]

T = TypeVar("T")


class ConnectionPools:
    """The connections to all databases.

    Args:
        connections: to each database at most.
        passwords: asked at each connect, where nothing else has the password.
        demo: start a PostgreSQL for the database `demo`.
        trusted: the operator vouches for all code in the databases.
        callers: everybody who asks has a role of their own in the databases.
        parts: what of each database is served.
        trusted_functions: for each database, functions and extensions that the operator vouches for.
    """

    def __init__(
        self,
        databases: Mapping[str, Database],
        limits: TransactionLimits,
        *,
        connections: int,
        passwords: Passwords,
        demo: bool,
        trusted: bool = False,
        callers: bool = False,
        parts: Mapping[str, VisibleSchema],
        trusted_functions: Mapping[str, frozenset[tuple[str, ...]]],
    ) -> None:
        self.limits = limits
        self._demo = demo
        self._cluster = None
        make = functools.partial(ConnectionPool, passwords=passwords, is_trusted=trusted, has_callers=callers)
        self._pools: dict[str, ConnectionPool] = {}
        # A connection of its own for who follows changes: it waits for no query.
        self.following: dict[str, ConnectionPool] = {}
        for name, database in databases.items():
            locate = None
            if demo and name == "demo":
                locate = self._demo_address
            make_one = functools.partial(
                make,
                database,
                visible_schema=parts[name],
                trusted_functions=trusted_functions[name],
                find_address=locate,
            )
            self._pools[name] = make_one(max_connections=connections)
            self.following[name] = make_one(max_connections=1, announces=False)

    def open(self) -> None:
        """Start the demo's PostgreSQL, if it is served; connections are opened when they are needed."""
        if self._demo:
            self._cluster = Cluster(SCRIPT)

    async def close(self) -> None:
        """Close all connections, and end the demo's PostgreSQL."""
        for connections in (*self._pools.values(), *self.following.values()):
            await connections.close()
        if self._cluster is not None:
            await anyio.to_thread.run_sync(self._cluster.close)
            self._cluster = None

    async def _demo_address(self) -> str:
        if self._cluster is None:
            raise Unavailable("The database `demo` is not running.")
        if self._cluster.has_crashed:
            old_cluster = self._cluster
            self._cluster = Cluster(SCRIPT)
            await anyio.to_thread.run_sync(old_cluster.close)
        port = await anyio.to_thread.run_sync(self._cluster.wait_until_ready, abandon_on_cancel=True)
        return f"host=127.0.0.1 port={port} dbname=demo user=demo password={self._cluster.password}"

    def of(self, database: Database) -> ConnectionPool:
        """Return the connections to a database."""
        return self._pools[database.name]

    def session(
        self, database: Database, *, writes: bool = False, role: object = None
    ) -> AbstractAsyncContextManager[Session]:
        """Return a session with a transaction; what it changes is kept only by its COMMIT.

        Args:
            role: the caller's unless another is given, such as `SERVER_ROLE`.
        """
        opening = transaction_opening(self.limits, write=writes)
        seconds = self.limits.statement_seconds
        return self.of(database).session(opening, seconds=seconds, role=role or database.role)

    async def within(self, database: Database, work: Callable[[Session], Awaitable[T]], *, role: object = None) -> T:
        """Do `work` in a read-only transaction.

        Args:
            role: the caller's unless another is given.
        """

        async def run() -> T:
            async with self.session(database, role=role) as session:
                return await work(session)

        return await run_shielded(run())

    async def run_with_suggestion(
        self, database: Database, sql: str, work: Coroutine[None, None, T], *, is_schema: bool = False
    ) -> T:
        """Return what `work` gives; its problem says what was meant by a name or word that PostgreSQL does not know."""
        try:
            return await work
        except (Invalid, NotFound, Refused) as unclear:
            within = functools.partial(self.within, database)
            raise await add_suggestion(unclear, sql, within, is_schema=is_schema) from unclear
        except StatementTimeout as timeout:
            failure = f"{timeout.failure} A call has {self.limits.statement_seconds:g} s."
            raise timeout.reword(failure, timeout.fix) from timeout
