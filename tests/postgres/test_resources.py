"""What is completed, asked by prompts and told of resources, in both eras."""

import json
import sys
from contextlib import closing
from typing import Any

import anyio
import pytest

from mcp_batteries.testing.wire import MODERN, StdioWire, Wire, WireError
from mcp_postgres.engine.query import value_counts
from postgres.serving import make, served, text_of

pytestmark = pytest.mark.anyio
ERAS = ("2025-11-25", MODERN)
ROWS = "postgres://{database}/{schema}/{table}{?column,value,limit,order}"
ODD = """
CREATE SCHEMA "Sales / EU"; GRANT USAGE ON SCHEMA "Sales / EU" TO reader;
CREATE TABLE "Sales / EU"."Order%" ("é ü" integer, "Total" numeric); GRANT SELECT ON "Sales / EU"."Order%" TO reader;
CREATE TABLE public.secrets (word text); REVOKE ALL ON public.secrets FROM PUBLIC
"""


async def complete(wire: Wire, reference: dict[str, str], name: str, typed: str, **others: str) -> list[str]:
    asked = {"ref": reference, "argument": {"name": name, "value": typed}, "context": {"arguments": others}}
    return (await wire.request("completion/complete", asked))["completion"]["values"]


async def prompt(wire: Wire, name: str, **arguments: str) -> str:
    result = await wire.request("prompts/get", {"name": name, "arguments": arguments})
    blocks = [message["content"] for message in result["messages"]]
    return "\n".join(block["text"] if block["type"] == "text" else block["resource"]["text"] for block in blocks)


@pytest.mark.parametrize("era", ERAS)
async def test_names_are_completed(era: str) -> None:
    base, another = make(), make()
    base.run(ODD, "owner")
    async with served(
        f"app={base.url()}", f"another={another.url()}", "down=postgresql://127.0.0.1:1/x", revision=era
    ) as wire:
        rows = {"type": "ref/resource", "uri": ROWS}
        app: dict[str, Any] = {"database": "app"}
        sales = {**app, "schema": "Sales%20%2F%20EU"}
        assert await complete(wire, rows, "database", "a") == ["app", "another"]
        assert await complete(wire, rows, "schema", "", **app) == ["Sales%20%2F%20EU", "public"]
        assert await complete(wire, rows, "schema", "pub", database="another") == ["public"]
        assert await complete(wire, rows, "table", "t", **app, schema="public") == ["t"]
        assert await complete(wire, rows, "table", "", **sales) == ["Order%25"]
        assert await complete(wire, rows, "column", "", **sales, table="Order%25") == ["Total", "%C3%A9%20%C3%BC"]
        assert await complete(wire, rows, "column", "n", **app, schema="public", table="t") == ["name"]
        row = {"type": "ref/resource", "uri": "postgres://{database}/{schema}/{table}/{key}"}
        assert await complete(wire, row, "table", "u", **app, schema="public") == ["u"]
        for nothing in ({"database": "down"}, {"database": "none"}, {}, {"database": "app", "schema": "x' OR true--"}):
            assert await complete(wire, rows, "table", "", **nothing) == []
        # What people fill in is a name, not a part of a URI.
        explore = {"type": "ref/prompt", "name": "explore_schema"}
        assert await complete(wire, explore, "database", "an") == ["another"]
        assert await complete(wire, explore, "schema", "Sales", **app) == ["Sales / EU"]
        for name in ("write_query", "tune_query", "report_health", "plan_migration"):
            assert await complete(wire, {"type": "ref/prompt", "name": name}, "database", "ap") == ["app"]


@pytest.mark.parametrize("era", ERAS)
async def test_prompts_say_what_was_asked_and_bring_what_they_need(era: str) -> None:
    base = make()
    base.run(ODD, "owner")
    async with served(f"app={base.url()}", f"other={make().url()}", revision=era) as wire:
        said = await prompt(wire, "explore_schema", database="app", schema="Sales / EU")
        assert "`Sales / EU`" in said and "`app`" in said and "Order%" in said and "t_name" not in said
        said = await prompt(wire, "write_query", database="app", question="Who was the first?")
        assert "`app`" in said and "Who was the first?" in said and "t_name" in said
        said = await prompt(wire, "tune_query", database="app", sql="SELECT name FROM t")
        assert "`app`" in said and "SELECT name FROM t" in said
        assert "`app`" in (said := await prompt(wire, "report_health", database="app")) and "Nothing found" in said
        said = await prompt(wire, "plan_migration", database="app", change="Names in two languages.")
        assert "`app`" in said and "Names in two languages." in said and "t_name" in said
        for name, arguments in (("write_query", {"question": "What?"}), ("report_health", {"database": "none"})):
            with pytest.raises(Exception, match="`app`"):
                await prompt(wire, name, **arguments)


@pytest.mark.slow
@pytest.mark.parametrize(("era", "what"), [("2025-11-25", "activity"), (MODERN, "health")])
async def test_health_and_activity_are_told_when_they_change(era: str, what: str) -> None:
    base, uri = make(), f"postgres://app/.{what}"
    # Health is looked at more often than in life.
    sooner = (
        "from mcp_postgres import __main__, changes; "
        "changes._POLLING_INTERVALS[changes.HealthOf] = 0.5; __main__.main()"
    )
    command = [sys.executable, "-c", sooner, f"app={base.url('monitor')}"]
    async with StdioWire(command, revision=era) as wire:
        await wire.open()

        async def hears(*words: str, never: str = "nothing") -> None:
            with anyio.fail_after(60):
                said = never
                while never in said or any(word not in said for word in words):
                    await wire.updated(uri)
                    said = await wire.read(uri)

        await wire.subscribe(uri)
        with base.connect() as busy, closing(base.connect()) as blocked:
            holder, waiter = busy.info.backend_pid, blocked.info.backend_pid
            busy.execute("BEGIN; LOCK TABLE t")
            blocked.pgconn.send_query(b"SELECT count(*) FROM t")
            if what == "health":
                await hears(
                    f"session {waiter} (postgres) waits", f"for session {holder} (postgres, idle in transaction)"
                )
            else:
                await hears(f"{waiter},", f'"{{{holder}}}"', "SELECT count(*) FROM t", "LOCK TABLE t")
        await hears(never=f"{holder}")
        if what == "activity":
            assert json.loads(await wire.read(uri))["rows"] == []


async def test_a_row_is_found_by_any_key_and_the_error_says_how() -> None:
    base = make(
        "CREATE TABLE pair (a text, b integer, PRIMARY KEY (a, b)); CREATE TABLE bare (a integer);"
        "INSERT INTO pair VALUES ('x,y', 1), ('z', 2)"
    )
    async with served(f"app={base.url('owner')}") as wire:
        for key, row in (("x%252Cy,1", ["x,y", 1]), ("x%252Cy%2C1", ["x,y", 1]), ("z,2", ["z", 2])):
            assert json.loads(await wire.read(f"postgres://app/public/pair/{key}"))["rows"] == [row]
        for path, said in (("pair/x,y,1", "a comma inside of one is `%252C`"), ("bare/1", "have no key. Ask with")):
            with pytest.raises(WireError, match=said):
                await wire.read(f"postgres://app/public/{path}")


async def test_a_partitioned_table_that_nobody_analyzed_is_not_told_to_be_empty(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(value_counts, "_SECONDS", -1)
    base = make("CREATE TABLE p (a integer) PARTITION BY LIST (a); CREATE TABLE p1 PARTITION OF p DEFAULT")
    base.run("CREATE TABLE p2 PARTITION OF p FOR VALUES IN (1); INSERT INTO p VALUES (1), (1)", "owner")
    async with served(f"app={base.url('owner')}") as wire:
        for analyzed, said in (
            ("", "not analyzed"),
            ("ANALYZE p2", "about 2 rows without 1 partition that nobody analyzed"),
        ):
            base.run(analyzed or "SELECT 1", "owner")
            base.run("UPDATE pg_class SET reltuples = -1 WHERE relname = 'p1'")
            assert f"p (partitioned table) {said}" in text_of(await wire.call("list_objects"))
            assert said in text_of(await wire.call("get_table", table="p"))
