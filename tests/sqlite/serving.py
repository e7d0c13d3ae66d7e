"""Databases to be served, and the server as its own process."""

import sqlite3
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path

from mcp_batteries.testing.wire import MODERN, Message, StdioWire

SCHEMA = """
CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, name);
CREATE TABLE u (id INTEGER PRIMARY KEY REFERENCES t (id), note);
CREATE INDEX t_name ON t (name);
CREATE VIEW v AS SELECT id, name FROM t;
CREATE TRIGGER v_write INSTEAD OF UPDATE ON v BEGIN UPDATE t SET name = NEW.name WHERE id = OLD.id; END;
CREATE VIRTUAL TABLE f USING fts5 (x);
INSERT INTO t (name) VALUES ('a'), ('b'), ('c');
INSERT INTO u VALUES (1, 'one');
INSERT INTO f VALUES ('a word'), ('another');
"""


def text_of(result: Message) -> str:
    return result["content"][0]["text"]


@asynccontextmanager
async def served(*arguments: object, revision: str = MODERN) -> AsyncGenerator[StdioWire]:
    """A client of `mcp-sqlite` started with `arguments`."""
    async with StdioWire([sys.executable, "-m", "mcp_sqlite", *map(str, arguments)], revision=revision) as wire:
        await wire.open()
        yield wire


def make(path: Path, journal: str = "delete") -> Path:
    """A database with a bit of everything, at `path`."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(f"PRAGMA journal_mode = {journal};" + SCHEMA)
    return path


def run(path: Path, sql: str) -> None:
    """What another program commits."""
    with closing(sqlite3.connect(path, timeout=30)) as connection:
        connection.executescript(sql)
