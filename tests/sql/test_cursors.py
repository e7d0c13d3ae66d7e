"""A cursor continues one listing of one database: every tool of both SQL servers that takes one."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from mcp_batteries.testing.wire import Message, StdioWire
from postgres.serving import make as make_postgres
from postgres.serving import served as served_postgres
from sqlite.serving import make as make_sqlite
from sqlite.serving import served as served_sqlite

TOOLS = {
    "mcp-sqlite": {"list_tables": {"limit": 1}, "query_rows": {"limit": 1, "sql": "SELECT id FROM t"}},
    "mcp-postgres": {"list_objects": {"limit": 1}, "query_rows": {"limit": 1, "sql": "SELECT id FROM t"}},
}
"""Every tool that takes a cursor, and what makes it give one."""


@asynccontextmanager
async def serving(server: str, folder: Path) -> AsyncGenerator[StdioWire]:
    """`server` with two databases alike, `one` and `two`."""
    if server == "mcp-sqlite":
        async with served_sqlite(make_sqlite(folder / "one.db"), make_sqlite(folder / "two.db")) as wire:
            yield wire
    else:
        async with served_postgres(*(f"{name}={make_postgres().url()}" for name in ("one", "two"))) as wire:
            yield wire


def text_of(result: Message) -> str:
    return result["content"][0]["text"]


def cursor_in(result: Message) -> str | None:
    head = text_of(result).splitlines()[0]
    return head.partition("cursor=")[2].rstrip("]") if head.startswith("[truncated") else None


@pytest.mark.share(1)
@pytest.mark.anyio
@pytest.mark.parametrize("server", TOOLS)
async def test_a_cursor_of_one_database_is_refused_for_another(server: str, tmp_path: Path) -> None:
    async with serving(server, tmp_path) as wire:
        offered = (await wire.request("tools/list"))["tools"]
        assert {tool["name"] for tool in offered if "cursor" in tool["inputSchema"]["properties"]} == set(TOOLS[server])
        for name, arguments in TOOLS[server].items():
            rest: dict[str, Any] = {key: value for key, value in arguments.items() if key != "sql"}
            first = await wire.call(name, database="one", **arguments)
            cursor = cursor_in(first)
            assert cursor, f"{name}: {text_of(first)}"
            refused = await wire.call(name, database="two", cursor=cursor, **rest)
            assert refused["isError"] and "`cursor`" in text_of(refused), f"{name}: {text_of(refused)}"
            second = await wire.call(name, database="one", cursor=cursor, **rest)
            assert not second.get("isError") and text_of(second) != text_of(first), f"{name}: {text_of(second)}"


@pytest.mark.share(1)
@pytest.mark.anyio
@pytest.mark.parametrize(("server", "tool"), [("mcp-sqlite", "list_tables"), ("mcp-postgres", "list_objects")])
async def test_a_listing_of_all_databases_goes_on_page_by_page(server: str, tool: str, tmp_path: Path) -> None:
    async with serving(server, tmp_path) as wire:
        whole, pages, cursor = text_of(await wire.call(tool)), [], None
        while True:
            answer = await wire.call(tool, limit=2, **({"cursor": cursor} if cursor else {}))
            assert not answer.get("isError"), text_of(answer)
            pages.append(text_of(answer))
            if (cursor := cursor_in(answer)) is None:
                break
            refused = await wire.call(tool, limit=2, cursor=cursor, database="one")
            assert refused["isError"], "a cursor of both databases is not one of the first"
            assert "Call again without `cursor`" in text_of(refused)
            assert not (await wire.call(tool, limit=2, database="one")).get("isError")

        def entries(text: str) -> list[str]:
            return [line for line in text.splitlines() if line.startswith("- ")]

        # Functions follow the tables of a page: in pages they stand elsewhere.
        assert sorted(line for page in pages for line in entries(page)) == sorted(entries(whole))
        assert len(entries(whole)) > 6
        functions = ("(function)", "(procedure)")
        assert all(len([line for line in entries(page) if not line.endswith(functions)]) <= 2 for page in pages)


@pytest.mark.share(1)
@pytest.mark.anyio
@pytest.mark.parametrize("server", TOOLS)
async def test_a_query_is_run_again_for_a_result_that_is_gone(server: str, tmp_path: Path) -> None:
    query = {"sql": "SELECT id FROM t ORDER BY id", "limit": 1, "database": "one"}
    async with serving(server, tmp_path) as wire:
        cursor = cursor_in(await wire.call("query_rows", **query))
        for _ in range(40):
            await wire.call("query_rows", **query)
        refused = await wire.call("query_rows", database="one", cursor=cursor)
        assert refused["isError"] and "Run the query again" in text_of(refused), text_of(refused)
        cursor = cursor_in(await wire.call("query_rows", **query))
        assert not (await wire.call("query_rows", database="one", cursor=cursor)).get("isError")


@pytest.mark.share(1)
@pytest.mark.anyio
@pytest.mark.parametrize("server", TOOLS)
async def test_a_cursor_is_refused_beside_another_statement(server: str, tmp_path: Path) -> None:
    sql = "SELECT id FROM t ORDER BY id"
    async with serving(server, tmp_path) as wire:
        cursor = cursor_in(await wire.call("query_rows", database="one", sql=f"{sql};", limit=1))
        for same in (sql, " SELECT id\nFROM t  ORDER BY id ;;\n", None):
            assert "[2]" in text_of(await wire.call("query_rows", cursor=cursor, limit=1, sql=same)), same
        refused = await wire.call("query_rows", cursor=cursor, sql="SELECT name FROM t")
        assert refused["isError"] and "another statement" in text_of(refused)
