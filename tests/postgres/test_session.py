"""What one call leaves in a session, the next call does not meet: each kind of state by each way in."""

import re
from typing import Any

import psycopg
import pytest

from mcp_postgres.engine.connection.pipeline import run_simple_query
from postgres.serving import inside, make, text_of

pytestmark = pytest.mark.anyio

KINDS = {
    "setting": "SET work_mem = '77kB'",
    "setting of the next transactions": "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE",
    "setting of one's own": "SET app.customer = '7'",
    "names": "SET search_path = pg_temp, public",
    "role": "SET ROLE mate",
    "prepared statement": "PREPARE kept AS SELECT 1",
    "cursor": "DECLARE kept CURSOR WITH HOLD FOR SELECT 'secret' FROM generate_series(1, 3)",
    "binary cursor": "DECLARE kept BINARY SCROLL CURSOR WITH HOLD FOR TABLE t",
    "channel": "LISTEN kept",
    "lock": "SELECT pg_advisory_lock(7)",
    "shared lock of two numbers": "SELECT pg_advisory_lock_shared(7, 8)",
    "number of a sequence": "SELECT nextval('s')",
    "seed": "SELECT setseed(0.5)",
    "temporary table": "CREATE TEMP TABLE t AS SELECT 1 AS id, 'forged' AS name",
    "temporary view": "CREATE TEMP VIEW t AS SELECT 1 AS id, 'forged' AS name",
    "temporary sequence": "CREATE TEMP SEQUENCE s",
    "temporary function": "CREATE FUNCTION pg_temp.lower(text) RETURNS text LANGUAGE sql AS $x$SELECT 'forged'$x$",
    "temporary type": "CREATE TYPE pg_temp.mood AS ENUM ('x')",
}
WAYS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "query": ("query_rows", "SELECT leaves()", {}),
    "plan, run": ("explain_query", "SELECT leaves()", {"analyze": True}),
    "change": ("write_rows", "SELECT leaves()", {}),
    "change of rows": ("write_rows", "UPDATE u SET note = leaves() RETURNING note", {}),
    "dry run": ("write_rows", "SELECT leaves()", {"dry_run": True}),
    "schema": ("edit_schema", "CREATE TABLE IF NOT EXISTS made AS SELECT leaves()", {}),
    "schema, dry run": ("edit_schema", "CREATE TABLE made_not AS SELECT leaves()", {"dry_run": True}),
    "schema, itself": ("edit_schema", "{sql}", {}),
    "query, itself": ("query_rows", "{sql}", {}),
}
STATE = """
SELECT current_user, current_setting('work_mem'), current_setting('default_transaction_isolation'),
    nullif(current_setting('app.customer', true), ''), current_setting('search_path'),
    (SELECT count(*) FROM pg_prepared_statements), (SELECT count(*) FROM pg_cursors WHERE is_holdable),
    (SELECT count(*) FROM pg_listening_channels()), random() = {drawn},
    (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()),
    (SELECT count(*) FROM pg_class WHERE relnamespace = pg_my_temp_schema() AND relkind <> 'c'),
    (SELECT count(*) FROM pg_proc WHERE pronamespace = pg_my_temp_schema()),
    (SELECT count(*) FROM pg_type WHERE typnamespace = pg_my_temp_schema())
"""


@pytest.mark.slow
async def test_no_call_meets_what_another_left() -> None:
    base = make()
    base.run(
        "DO $$ BEGIN IF to_regrole('mate') IS NULL THEN CREATE ROLE mate; END IF; END $$; GRANT mate TO owner;"
        "GRANT SELECT ON t, u TO mate"
    )
    ((drawn,),) = base.rows("SELECT x.r FROM (SELECT setseed(0.5) AS s OFFSET 0) y, LATERAL (SELECT random() r) x")
    state = STATE.format(drawn=drawn, last="0")
    left = 0
    # One connection: each call meets the session of the one before.
    async with inside("--write", "--ddl", "--connections", "1", f"app={base.url('owner')}") as wire:
        clean = text_of(await wire.call("query_rows", sql=state))
        process = text_of(await wire.call("query_rows", sql="SELECT pg_backend_pid()"))
        for kind, sql in KINDS.items():
            laid = f"CREATE OR REPLACE FUNCTION leaves() RETURNS text LANGUAGE plpgsql AS $f$BEGIN EXECUTE $e${sql}$e$;"
            base.run(f"{laid} RETURN 'x'; END$f$", "owner")
            assert seen_directly(base.url("owner"), state, sql), f"{kind} would not be seen"
            for way, (tool, text, more) in WAYS.items():
                result = await wire.call(tool, sql=text.format(sql=sql), **more)
                left += not result["isError"]
                said = text_of(await wire.call("query_rows", sql=state))
                assert said == clean, f"{kind} by {way}: {text_of(result)}"
                assert '[1,"a"]' in text_of(await wire.call("query_rows", sql="SELECT id, name FROM t WHERE id = 1"))
                said = text_of(await wire.call("query_rows", sql="SELECT lastval()"))
                assert "not yet defined" in said, f"{kind} by {way}: {said}"
                # A session is closed only behind a call that says itself that it sets something.
                before, process = process, text_of(await wire.call("query_rows", sql="SELECT pg_backend_pid()"))
                sets = re.search(r"\bSET\b|\bset_config\b", text.format(sql=sql))
                assert process == before or sets, f"{kind} by {way}"
    print(f"{len(KINDS) * len(WAYS)} calls, {left} of them went through")
    assert left > 40


def seen_directly(url: str, state: str, sql: str) -> bool:
    """Whether the state of a session shows what a statement left in it."""

    def now() -> tuple[object, ...]:
        (row,) = connection.execute(state.encode()).fetchall()
        try:
            return (*row, connection.execute("SELECT lastval()").fetchone())
        except psycopg.errors.ObjectNotInPrerequisiteState:
            return row

    with psycopg.connect(url, autocommit=True) as connection:
        before = now()
        connection.execute(sql.encode())
        return now() != before


async def test_a_statement_that_holds_a_nul_is_not_sent_up_to_it() -> None:
    async with await psycopg.AsyncConnection.connect(make().url("owner"), autocommit=True) as raw:
        with pytest.raises(psycopg.DataError, match="NUL"):
            await run_simple_query(raw, "SELECT 1 \0 / 0")
