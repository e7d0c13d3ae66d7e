"""A lock on one table hides nothing else: lists answer at once, saying what they leave out; errors name its holder."""

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from postgres.serving import Base, Inside, inside, make, text_of

pytestmark = pytest.mark.anyio

SCHEMA = """
CREATE TABLE dup (id integer PRIMARY KEY, name text DEFAULT 'x' CHECK (name <> ''), span tsrange,
    EXCLUDE USING gist (span WITH &&));
CREATE INDEX dup_expression ON dup (lower(name)) WHERE id > 3;
CREATE INDEX dup_name ON dup (name);
CREATE VIEW v AS SELECT id, name FROM dup;
CREATE VIEW vv AS SELECT id FROM v;
CREATE MATERIALIZED VIEW m AS SELECT id, name FROM dup;
CREATE TABLE other (id integer PRIMARY KEY REFERENCES dup, k integer DEFAULT 5 CHECK (k > 0));
ALTER TABLE other ENABLE ROW LEVEL SECURITY;
CREATE POLICY p ON other USING (EXISTS (SELECT 1 FROM dup WHERE dup.id = other.id));
CREATE RULE r AS ON UPDATE TO other DO ALSO SELECT 1 FROM dup;
CREATE TABLE parts (id integer) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (1) TO (10);
CREATE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TRIGGER stamped BEFORE INSERT ON dup FOR EACH ROW WHEN (NEW.id > 3) EXECUTE FUNCTION stamp();
CREATE TABLE free (id integer DEFAULT 7, note text);
CREATE SEQUENCE s;
INSERT INTO dup VALUES (1, 'a'), (2, 'b');
"""
LOCK_SECONDS = 20
"""Longer than every answer takes that waits for nothing."""
STRONG = (
    "LOCK TABLE dup",
    "DROP INDEX dup_name",
    "REINDEX INDEX dup_name",
    "ALTER TABLE dup ADD x integer",
    "LOCK TABLE parts_1",
    "DROP VIEW vv",
    "TRUNCATE other",
    "DROP SEQUENCE s",
)
RELATIONS = ("dup", "free", "other", "v", "vv", "m", "parts", "s")


@contextmanager
def held(base: Base, statement: str) -> Generator[int]:
    """Within the block another session holds the locks of `statement`; gives its process."""
    with psycopg.connect(base.url("owner")) as connection:
        connection.execute(statement.encode())
        yield connection.info.backend_pid
        connection.rollback()


@contextmanager
def awaited(base: Base) -> Generator[tuple[int, int]]:
    """Within the block an ALTER waits for a session that reads; gives the processes of both."""
    with held(base, "SELECT 1 FROM dup") as reader, psycopg.connect(base.url("owner")) as waiting:

        def alter() -> None:
            with pytest.raises(psycopg.errors.QueryCanceled):
                waiting.execute("ALTER TABLE dup ADD COLUMN added integer")

        thread = threading.Thread(target=alter)
        thread.start()
        try:
            deadline = time.monotonic() + 20
            while not base.rows("SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'dup'::regclass"):
                assert time.monotonic() < deadline
            yield waiting.info.backend_pid, reader
        finally:
            waiting.cancel_safe()
            thread.join()


async def look_everywhere(client: Inside) -> None:
    """Ask all that reads the catalog; nothing of it may wait for the lock."""
    started = time.monotonic()
    calls: list[tuple[str, dict[str, Any]]] = [
        ("list_objects", {"kind": kind})
        for kind in ("tables", "sequences", "functions", "types", "triggers", "policies", "grants")
    ]
    calls += [("get_table", {"table": name}) for name in RELATIONS]
    calls += [("search_schema", {"query": "dup"}), ("get_health", {}), ("query_rows", {"sql": "TABLE free"})]
    for tool, arguments in calls:
        result = await client.call(tool, **arguments)
        assert not result.get("isError") and "lock timeout" not in text_of(result), f"{tool}: {text_of(result)}"
    await client.read("postgres://app/.schema")
    await client.read("postgres://app/public/free")
    assert time.monotonic() - started < LOCK_SECONDS


@pytest.mark.slow
@pytest.mark.share(1)
@pytest.mark.parametrize("role", ["owner", "reader", "postgres"])
async def test_what_reads_the_catalog_waits_for_no_lock(role: str) -> None:
    base = make(SCHEMA)
    async with inside("--dba", "--lock-timeout", LOCK_SECONDS, f"app={base.url(role)}") as client:
        for statement in STRONG:
            with held(base, statement):
                await look_everywhere(client)


async def test_lists_name_who_holds_a_lock_and_what_they_leave_out() -> None:
    base = make(SCHEMA)
    async with inside("--lock-timeout", LOCK_SECONDS, f"app={base.url('owner')}") as client:
        with held(base, "LOCK TABLE dup") as pid:
            holder = f"locked by pid {pid} (idle in transaction, last LOCK TABLE ...)"
            listed = text_of(await client.call("list_objects"))
            assert f"- public.dup about 2 rows, size unknown: {holder}: id (key)" in listed, listed
            assert "without 1 locked table" in listed and "public.free about 0 rows, 8,192 bytes" in listed
            told = text_of(await client.call("get_table", table="dup", sample=2))
            assert f"[{holder}: until that ends, expressions are left out" in told, told
            assert "dup_name: btree (name)" in told and "dup_expression: btree (...) WHERE ...;" in told, told
            assert "CHECK (...)" in told and f"no sample rows: {holder}" in told
            assert f"public.dup is {holder}" in text_of(await client.call("get_table", table="v"))
            assert "default 7" in text_of(await client.call("get_table", table="free"))
            listed = text_of(await client.call("list_objects", kind="policies"))
            assert f"its condition is not known now: public.dup is {holder}" in listed
        told = text_of(await client.call("get_table", table="dup"))
        assert "locked" not in told and "default 'x'::text" in told and "lower(name)" in told
        with held(base, "LOCK TABLE parts_1"):
            assert "size unknown: locked by pid" in text_of(await client.call("get_table", table="parts"))


@pytest.mark.slow
async def test_what_waits_behind_an_alter_says_so() -> None:
    base = make(SCHEMA)
    async with inside("--dba", "--lock-timeout", LOCK_SECONDS, f"app={base.url('owner')}") as client:
        with awaited(base) as (waiting, reader):
            await look_everywhere(client)
            holder = f"locked by pid {waiting} (ALTER TABLE ...), which waits for pid {reader}"
            assert holder in text_of(await client.call("list_objects"))
    async with inside("--lock-timeout", 1, f"app={base.url('owner')}") as client:
        with awaited(base) as (waiting, reader):
            failed = text_of(await client.call("query_rows", sql="SELECT * FROM vv"))
            assert f"`public.dup` is locked by pid {waiting} (ALTER TABLE ...), which waits for pid {reader}." in failed


@pytest.mark.parametrize(
    ("held_by", "tool", "sql"),
    [
        ("LOCK TABLE dup", "query_rows", "SELECT * FROM vv"),
        ("LOCK TABLE dup", "explain_query", "SELECT * FROM dup"),
        ("LOCK TABLE dup IN SHARE MODE", "write_rows", "DELETE FROM dup WHERE id = 9"),
        ("UPDATE dup SET name = 'z' WHERE id = 1", "write_rows", "UPDATE dup SET name = 'y' WHERE id = 1"),
        ("SELECT * FROM dup", "edit_schema", "ALTER TABLE dup ADD y integer"),
        ("LOCK TABLE dup", "edit_schema", "CREATE INDEX CONCURRENTLY ON dup (name)"),
    ],
)
async def test_an_error_names_the_table_and_who_holds_it(held_by: str, tool: str, sql: str) -> None:
    base = make(SCHEMA)
    async with inside("--write", "--ddl", "--lock-timeout", 1, "--timeout", 2, f"app={base.url('owner')}") as client:
        with held(base, held_by) as pid:
            result = await client.call(tool, sql=sql)
        assert result["isError"]
        said = text_of(result)
        assert f"`public.dup` is locked by pid {pid} (" in said and "Perhaps" not in said, said
        if "Try again a little later." in said:
            assert not (await client.call(tool, sql=sql)).get("isError")
        else:
            assert "was stopped at its time limit" in said, said


@pytest.mark.slow
async def test_a_role_that_sees_no_sessions_still_reads_the_process_and_no_value() -> None:
    base = make(SCHEMA)
    async with inside("--lock-timeout", 1, f"app={base.url('reader')}") as client:
        with held(base, "LOCK TABLE dup") as pid:
            listed = text_of(await client.call("list_objects"))
            assert f"size unknown: locked by pid {pid}:" in listed, listed
            failed = text_of(await client.call("query_rows", sql="SELECT * FROM dup"))
            assert f"`public.dup` is locked by pid {pid}." in failed, failed
    async with inside("--lock-timeout", 1, f"app={base.url('owner')}") as client:
        with held(base, "LOCK TABLE dup; SELECT 'secret'") as pid:
            assert "secret" not in text_of(await client.call("query_rows", sql="SELECT * FROM dup"))


async def test_an_empty_result_does_not_wait_for_what_would_explain_it() -> None:
    base = make("CREATE TABLE nothing (id int)")
    started = time.monotonic()
    async with inside("--lock-timeout", str(LOCK_SECONDS), base.url()) as wire:
        with psycopg.connect(base.url("postgres")) as connection:
            connection.execute("LOCK TABLE pg_policy")
            assert text_of(await wire.call("query_rows", sql="SELECT * FROM nothing")).startswith("[0 rows]")
            connection.rollback()
    assert time.monotonic() - started < LOCK_SECONDS
