"""A real PostgreSQL from the wheel, started once per run; databases to be served; and the server as its own process."""

import atexit
import itertools
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import psycopg
from mcp import Client
from mcp_types import ResourceTemplateReference

from mcp_batteries.settings import load
from mcp_batteries.testing.wire import MODERN, Message, StdioWire
from mcp_postgres.engine.demo.cluster import Cluster
from mcp_postgres.server import build
from mcp_postgres.settings import Settings
from thread_wire import wire_to

ROWS = ResourceTemplateReference(
    type="ref/resource", uri="postgres://{database}/{schema}/{table}{?column,value,limit,order}"
)
PROGRAMS = os.environ.get("MCP_TEST_PROGRAMS")
"""Another PostgreSQL's programs, to run the same tests with it."""
OPTIONS = [
    "-c", "max_connections=60", "-c", "wal_level=logical", "-c", "max_prepared_transactions=5", "-c", "autovacuum=off",
    "-c", "autovacuum_freeze_max_age=100000",
]  # fmt: skip
SCHEMA = """
CREATE TABLE t (id integer PRIMARY KEY, name text);
CREATE TABLE u (id integer PRIMARY KEY REFERENCES t, note text);
CREATE TABLE "Odd name" ("a b" integer, "select" text);
CREATE INDEX t_name ON t (name);
CREATE VIEW v AS SELECT id, name FROM t;
CREATE SEQUENCE s;
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE FUNCTION twice(n integer) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT n * 2';
CREATE FUNCTION writer() RETURNS integer LANGUAGE plpgsql AS 'BEGIN DELETE FROM t; RETURN 1; END';
CREATE FUNCTION definer() RETURNS integer LANGUAGE plpgsql SECURITY DEFINER AS
    'BEGIN DELETE FROM public.t; RETURN 1; END';
CREATE PROCEDURE proc() LANGUAGE plpgsql AS 'BEGIN COMMIT; DELETE FROM t; COMMIT; END';
COMMENT ON TABLE t IS 'Things with names';
COMMENT ON COLUMN t.name IS 'What people call it';
INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c');
INSERT INTO u VALUES (1, 'one');
SELECT nextval('s');
"""
# A client hashes a password 4,096 times, which is most of the work of a connection, and tests make thousands of them.
# Releases before 16 have no such setting.
_QUICK_PASSWORDS = "SELECT set_config(name, '1', false) FROM pg_settings WHERE name = 'scram_iterations'"
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Running:
    """One that somebody else started for this run, as `MCP_TEST_POSTGRES` says: PORT:PASSWORD."""

    port: int
    password: str

    def wait_until_ready(self) -> int:
        return self.port


@cache
def cluster() -> Cluster | Running:
    """The one of this run."""
    if given := os.environ.get("MCP_TEST_POSTGRES"):
        port, _, password = given.partition(":")
        return Running(int(port), password)
    made = start()
    atexit.register(made.close)
    made.wait_until_ready()
    return made


@cache
def major() -> int:
    """The version of the PostgreSQL that the tests run on."""
    with Base("postgres").connect() as connection:
        return connection.info.server_version // 10000


def start() -> Cluster:
    """One more."""
    return Cluster(
        f"{_QUICK_PASSWORDS}; ALTER ROLE postgres PASSWORD '{{password}}';"
        "CREATE ROLE owner LOGIN PASSWORD 'owner' NOSUPERUSER; CREATE ROLE reader LOGIN PASSWORD 'reader';"
        "CREATE ROLE monitor LOGIN PASSWORD 'monitor' IN ROLE pg_monitor",
        options=OPTIONS,
        programs=PROGRAMS,
    )


@dataclass(frozen=True)
class Base:
    """A database of the cluster."""

    name: str

    def url(self, role: str = "reader", *, port: int | None = None, more: str = "") -> str:
        password = cluster().password if role == "postgres" else role
        return f"postgresql://{role}:{password}@127.0.0.1:{port or cluster().wait_until_ready()}/{self.name}{more}"

    def connect(self, role: str = "postgres") -> psycopg.Connection[Any]:
        return psycopg.connect(self.url(role), autocommit=True)

    def run(self, sql: str, role: str = "postgres") -> None:
        """What another program commits."""
        with self.connect(role) as connection:
            connection.execute(sql.encode())

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with self.connect() as connection:
            return connection.execute(sql.encode()).fetchall()


@cache
def _template(schema: str) -> Base:
    base = Base(f"pattern{next(_numbers)}")
    with Base("postgres").connect() as connection:
        connection.execute(f"CREATE DATABASE {base.name} OWNER owner".encode())
    base.run("ALTER SCHEMA public OWNER TO owner; GRANT USAGE ON SCHEMA public TO PUBLIC")
    base.run(schema, "owner")
    for what in ("TABLES", "SEQUENCES"):
        base.run(f"GRANT SELECT ON ALL {what} IN SCHEMA public TO reader")
    base.run("VACUUM ANALYZE")
    return base


def make(schema: str = SCHEMA) -> Base:
    """A database with a bit of everything, which `owner` owns and `reader` may read."""
    template, base = _template(schema), Base(f"app{next(_numbers)}")
    with Base("postgres").connect() as connection:
        connection.execute(f"CREATE DATABASE {base.name} OWNER owner TEMPLATE {template.name}".encode())
    return base


def text_of(result: Message) -> str:
    return result["content"][0]["text"]


@asynccontextmanager
async def served(*arguments: object, revision: str = MODERN) -> AsyncGenerator[StdioWire]:
    """A client of `mcp-postgres` started with `arguments` on a thread."""
    async with wire_to("mcp_postgres", arguments, revision=revision) as wire:
        await wire.open()
        yield wire


@asynccontextmanager
async def served_process(*arguments: object) -> AsyncGenerator[StdioWire]:
    """A client of an `mcp-postgres` process."""
    async with StdioWire([sys.executable, "-m", "mcp_postgres", *map(str, arguments)], revision=MODERN) as wire:
        await wire.open()
        yield wire


class Inside:
    """The server in this process, called by a client in memory: no process to start, everything else the same."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def call(self, tool: str, **arguments: Any) -> Message:
        result = await self._client.call_tool(tool, arguments)
        return result.model_dump(mode="json", by_alias=True)

    async def read(self, uri: str) -> str:
        """What a resource holds.

        Raises:
            MCPError: it can't be read.
        """
        found = await self._client.read_resource(uri)
        return "".join(item.model_dump().get("text") or "" for item in found.contents)

    async def complete(self, kind: str, typed: str, **others: str) -> list[str]:
        """What a table's URI could go on with."""
        found = await self._client.complete(ROWS, {"name": kind, "value": typed}, others)
        return found.completion.values


@asynccontextmanager
async def inside(*arguments: object) -> AsyncGenerator[Inside]:
    """A client of the server that `arguments` start, here."""
    async with Client(build(load(Settings, [*map(str, arguments)]))) as client:
        yield Inside(client)
