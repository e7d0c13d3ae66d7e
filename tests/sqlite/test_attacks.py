"""Statements with bad intent, in every mode, through the real server; and good ones, which are all answered."""

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from mcp_batteries.testing.wire import StdioWire
from sqlite.serving import BUILDS, make, served, text_of
from sqlite.statements import CLOSED, READS, RESOURCES, ROWS, SCHEMA
from thinning import some

MODES = {
    "read": [],
    "write": ["--write"],
    "ddl": ["--ddl"],
    "everything": ["--write", "--ddl"],
}


def state(path: Path) -> tuple[str, bytes]:
    """Everything in the database: its rows, its schema, and what pragmas set in the file."""
    with closing(sqlite3.connect(path)) as connection:
        dump = "\n".join(connection.iterdump())
        names = ("user_version", "application_id", "journal_mode", "auto_vacuum", "page_size", "encoding")
        settings = [connection.execute(f"PRAGMA {name}").fetchone() for name in names]
    return hashlib.sha256((dump + repr(settings)).encode()).hexdigest(), path.read_bytes()[:100]


def files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if not path.name.endswith(("-wal", "-shm"))}


class Target:
    def __init__(self, tmp_path: Path) -> None:
        (tmp_path / "away").mkdir()
        self.root, self.away = tmp_path, tmp_path / "away"
        self.path = make(tmp_path / "app.db")
        self.before, self.files = state(self.path), files(tmp_path)

    def filled(self, sql: str) -> str:
        return (
            sql.replace("{away}", str(self.away))
            .replace("{path}", str(self.path))
            .replace("{{", "{")
            .replace("}}", "}")
        )

    def unharmed(self, sql: str) -> None:
        assert state(self.path) == self.before, sql
        assert files(self.root) == self.files, sql


async def attack(wire: StdioWire, target: Target, tool: str, statements: list[str]) -> None:
    for sql in statements:
        result = await wire.call(tool, sql=target.filled(sql))
        assert result.get("isError"), f"{tool}: {sql}\n{text_of(result)}"
        said = text_of(result)
        assert "Traceback" not in said and "failed inside" not in said and "process ended" not in said, f"{sql}: {said}"
        target.unharmed(sql)


def test_there_are_enough() -> None:
    assert len({*ROWS, *SCHEMA, *CLOSED, *RESOURCES}) >= 120
    assert len(set(READS)) >= 60


@pytest.mark.share(1)
@pytest.mark.diagonal
@pytest.mark.anyio
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("build", BUILDS)
async def test_no_query_has_an_effect(build: str, mode: str, tmp_path: Path) -> None:
    target = Target(tmp_path)
    async with served(*MODES[mode], target.path, build=build) as wire:
        version = text_of(await wire.call("query_rows", sql="SELECT sqlite_version()"))
        assert (f'"{sqlite3.sqlite_version}"' in version) == (build == "machine")
        await attack(wire, target, "query_rows", [*ROWS, *SCHEMA, *CLOSED])
        assert "a word" in text_of(await wire.call("query_rows", sql="SELECT * FROM f"))


@pytest.mark.anyio
@pytest.mark.parametrize("build", some(BUILDS, "machine"))
async def test_explaining_runs_nothing(build: str, tmp_path: Path) -> None:
    target = Target(tmp_path)
    async with served("--write", "--ddl", target.path, build=build) as wire:
        for sql in [*ROWS, *SCHEMA, *CLOSED]:
            await wire.call("explain_query", sql=target.filled(sql) or " ")
            target.unharmed(sql)


ALLOWED_IN_WRITE = {"SELECT 1; DELETE FROM t", "SELECT 1;; DELETE FROM t", "EXPLAIN SELECT 1; DELETE FROM t"}
"""Several statements are one transaction here."""


@pytest.mark.anyio
@pytest.mark.parametrize("build", some(BUILDS, "machine"))
async def test_changing_rows_changes_nothing_else(build: str, tmp_path: Path) -> None:
    target = Target(tmp_path)
    async with served("--write", target.path, build=build) as wire:
        await attack(wire, target, "write_rows", [*SCHEMA, *(sql for sql in CLOSED if sql not in ALLOWED_IN_WRITE)])


@pytest.mark.anyio
@pytest.mark.parametrize("build", some(BUILDS, "machine"))
async def test_changing_the_schema_changes_no_rows(build: str, tmp_path: Path) -> None:
    target = Target(tmp_path)
    async with served("--ddl", target.path, build=build) as wire:
        await attack(wire, target, "edit_schema", [*ROWS, *CLOSED])
        for sql in SCHEMA:
            result = await wire.call("edit_schema", sql=sql, dry_run=True)
            # Newer builds refuse to drop what a foreign key points at before the end of the transaction.
            by_keys = any(words in text_of(result) for words in ("FOREIGN KEY", "Foreign keys would point nowhere"))
            assert not result.get("isError") or by_keys, f"{sql}: {text_of(result)}"
            target.unharmed(sql)


@pytest.mark.anyio
async def test_what_a_mode_is_for_works(tmp_path: Path) -> None:
    target = Target(tmp_path)
    async with served("--write", target.path) as wire:
        for sql in ROWS:
            if sql in ("DELETE FROM v", "INSERT INTO t VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET name = 'new'"):
                continue
            result = await wire.call("write_rows", sql=sql, dry_run=True)
            by_sqlite = any(words in text_of(result) for words in ("constraint forbids", "may only be used"))
            assert not result.get("isError") or by_sqlite, f"{sql}: {text_of(result)}"
            target.unharmed(sql)


@pytest.mark.slow
@pytest.mark.anyio
async def test_too_much_ends_in_time_and_hurts_nobody(tmp_path: Path) -> None:
    target = Target(tmp_path)
    async with served("--timeout", 1, "--workers", 2, target.path) as wire:

        async def ask(statements: list[str]) -> None:
            for sql in statements:
                result = await wire.call("query_rows", sql=sql)
                assert len(text_of(result)) < 20_000, sql
                target.unharmed(sql)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, RESOURCES[::2])
            tasks.start_soon(ask, RESOURCES[1::2])
        assert "[1 row]" in text_of(await wire.call("query_rows", sql="SELECT 1"))


@pytest.mark.share(1)
@pytest.mark.diagonal
@pytest.mark.anyio
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("build", BUILDS)
async def test_every_legitimate_read_is_answered(build: str, mode: str, tmp_path: Path) -> None:
    target = Target(tmp_path)
    async with served(*MODES[mode], target.path, build=build) as wire:
        for sql in READS:
            result = await wire.call("query_rows", sql=target.filled(sql))
            assert not result.get("isError"), f"{sql}: {text_of(result)}"
        target.unharmed("reading")
