"""`--confirm`: the user is asked before a change, in the way of each era, and only a yes is one."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from mcp_batteries.testing.wire import MODERN, Message, StdioWire, Wire, WireError
from postgres.serving import Base, make, text_of
from thread_wire import wire_to

pytestmark = pytest.mark.anyio
ERAS = ("2025-11-25", MODERN)
DELETE = ("write_rows", "DELETE FROM u", "SELECT count(*) = 0 FROM u")
DROP = ("edit_schema", "DROP TABLE u", "SELECT to_regclass('u') IS NULL")
YES = {"action": "accept", "content": {"confirm": True}}
NO = [{"action": "accept", "content": {"confirm": False}}, {"action": "decline"}, {"action": "cancel"}]


@asynccontextmanager
async def asking(base: Base, era: str, *words: str, able: bool = True) -> AsyncGenerator[StdioWire]:
    arguments = ["--write", "--ddl", *words, f"app={base.url('owner')}"]
    capabilities = {"elicitation": {}} if able else {}
    async with wire_to("mcp_postgres", arguments, revision=era, capabilities=capabilities) as wire:
        await wire.open()
        yield wire


async def question(wire: Wire, call: Message) -> tuple[Message, Message]:
    """What the user is asked before `call` is done, and what is needed to answer."""
    if wire.modern:
        result = await wire.request("tools/call", call)
        assert result["resultType"] == "input_required"
        ((key, asked),) = result["inputRequests"].items()
        return asked, {"key": key, "state": result["requestState"]}
    number = await wire.begin("tools/call", call)
    asked = await wire.next_message(lambda message: message.get("method") == "elicitation/create")
    return asked, {"number": number, "id": asked["id"]}


async def answered(wire: Wire, call: Message, needed: Message, answer: Message) -> Message:
    if wire.modern:
        again = {"inputResponses": {needed["key"]: answer}, "requestState": needed["state"]}
        return await wire.request("tools/call", {**call, **again})
    await wire.respond(needed["id"], answer)
    number = needed["number"]
    return (await wire.next_message(lambda message: message.get("id") == number and "result" in message))["result"]


def is_done(base: Base, sql: str) -> bool:
    return base.rows(sql) == [(True,)]


@pytest.mark.parametrize("era", ERAS)
async def test_only_a_yes_changes_something(era: str) -> None:
    base = make()
    async with asking(base, era, "--confirm") as wire:
        for tool, sql, done in (DELETE, DROP):
            call: dict[str, Any] = {"name": tool, "arguments": {"sql": sql}}
            assert "Dry run" in text_of(await wire.call(tool, sql=sql, dry_run=True))
            for answer in NO:
                asked, needed = await question(wire, call)
                assert asked["method"] == "elicitation/create"
                message = asked["params"]["message"]
                assert tool in message and sql in message, message
                result = await answered(wire, call, needed, answer)
                assert result["isError"] and "did not consent" in text_of(result), text_of(result)
                assert not is_done(base, done)
            _, needed = await question(wire, call)
            # While the user thinks nothing is done, and nothing is held.
            assert not is_done(base, done)
            assert base.rows(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND xact_start IS NOT NULL"
                " AND pid <> pg_backend_pid()"
            ) == [(0,)]
            result = await answered(wire, call, needed, YES)
            assert "committed" in text_of(result), text_of(result)
            assert is_done(base, done)


@pytest.mark.parametrize("era", ERAS)
async def test_who_cannot_be_asked_is_told_so_and_nothing_is_done(era: str) -> None:
    base = make()
    async with asking(base, era, "--confirm", able=False) as wire:
        for tool, sql, done in (DELETE, DROP):
            result = await wire.call(tool, sql=sql)
            assert result["isError"] and "cannot ask" in text_of(result) and "--confirm" in text_of(result)
            assert not is_done(base, done)
        assert "[3]" in text_of(await wire.call("query_rows", sql="SELECT count(*) FROM t"))


@pytest.mark.parametrize("era", ERAS)
async def test_nobody_is_asked_without_the_setting(era: str) -> None:
    base = make()
    async with asking(base, era) as wire:
        for tool, sql, done in (DELETE, DROP):
            assert "committed" in text_of(await wire.call(tool, sql=sql))
            assert is_done(base, done)
        assert not [message for message in wire.messages if "method" in message and "id" in message]


async def test_a_yes_is_for_the_call_that_was_asked_about() -> None:
    base = make()
    async with asking(base, MODERN, "--confirm") as wire:
        harmless = {"name": "write_rows", "arguments": {"sql": "DELETE FROM u WHERE false"}}
        _, needed = await question(wire, harmless)
        other = {"name": "write_rows", "arguments": {"sql": "DELETE FROM u"}}
        with pytest.raises(WireError, match="requestState"):
            await answered(wire, other, needed, YES)
        assert not is_done(base, DELETE[2])
