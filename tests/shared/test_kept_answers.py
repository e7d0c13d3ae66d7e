"""A long call over a flaky line: whoever lost the stream of a call gets its answer with the id of the last event."""

import gc
import json
import weakref
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.abc
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import TextContent

from mcp_batteries.testing.wire import HttpWire
from mcp_batteries.transports.http.requests.kept_answers import KeptAnswer, KeptAnswers, call_of
from shared.http_subject import TOY, opened, running

pytestmark = pytest.mark.anyio

REVISIONS = ("2025-06-18", "2025-11-25")


def test_an_event_names_its_call() -> None:
    assert [call_of(text) for text in ("call-7-1", "call-12-9000")] == [7, 12]
    for other in ("", "7", "call-7", "call-7-1 ", "call--1", "call-x-1", "call-٧-1", "a" * 9000, f"call-{'9' * 16}-1"):
        assert call_of(other) is None


async def test_answers_are_kept_for_their_session_and_a_while() -> None:
    kept = KeptAnswers(seconds=0.05)
    answer = kept.begin("s", 1)
    assert [answer.next_event_id() for _ in range(2)] == [b"call-1-1", b"call-1-2"]
    assert kept.get("s", 1) is answer and kept.get("t", 1) is None and kept.get("s", 2) is None
    assert not answer.is_there.is_set()
    kept.keep(answer, b"{}")
    assert kept.get("s", 1) is answer and answer.is_there.is_set()
    with anyio.fail_after(5):
        while kept.get("s", 1) is not None:
            await anyio.lowlevel.checkpoint()


async def test_who_keeps_most_loses_the_oldest() -> None:
    kept = KeptAnswers(max_bytes=100)
    running_call = kept.begin("large", 0)
    small = kept.begin("small", 1)
    kept.keep(small, b"x" * 30)
    large = [kept.begin("large", number) for number in range(4)]
    for answer in large:
        kept.keep(answer, b"x" * 25)
    assert [kept.get("large", answer.number) is not None for answer in large] == [False, False, True, True]
    assert kept.get("small", small.number) is small and kept.get("large", running_call.number) is running_call
    whole = kept.begin("small", 2)
    kept.keep(whole, b"x" * 101)
    assert kept.get("small", whole.number) is None and whole.line, "who waits for it gets it all the same"


async def test_what_is_not_kept_takes_no_memory() -> None:
    kept = KeptAnswers(max_bytes=10)

    def keep(number: int) -> weakref.ref[KeptAnswer]:
        answer = kept.begin("s", number)
        kept.keep(answer, b"x" * 8)
        return weakref.ref(answer)

    references = [keep(number) for number in range(3)]
    gc.collect()
    assert [reference() is not None for reference in references] == [False, False, True]


@asynccontextmanager
async def call(wire: HttpWire, name: str, **arguments: Any) -> AsyncGenerator[tuple[str, list[str]]]:
    """A call whose line breaks at the end of the block: the last event id that its client heard, and what it read."""
    message = wire.message("tools/call", {"name": name, "arguments": arguments, "_meta": {"progressToken": "p"}})
    headers = wire.headers_for(message)
    read: list[str] = []
    async with (
        httpx2.AsyncClient(timeout=None, trust_env=False) as client,
        client.stream("POST", wire.url, json=message, headers=headers) as response,
    ):
        async for line in response.aiter_lines():
            read.append(line)
            if line.startswith("id: "):
                yield line.removeprefix("id: "), read
                return


async def fetch(wire: HttpWire, event_id: str, **headers: str) -> tuple[int, list[dict[str, Any]]]:
    """The status and the messages of what the server has for a client that heard `event_id` last."""
    asked = {**wire.headers_for({}), "accept": "text/event-stream", "last-event-id": event_id, **headers}
    with anyio.fail_after(30):
        answer = await wire.client.get(wire.url, headers=asked)
    lines = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: ")]
    return answer.status_code, [json.loads(line) for line in lines]


@pytest.mark.slow
async def test_the_answer_of_a_call_whose_line_broke_is_fetched_again() -> None:
    async with running(TOY) as subject, opened(subject, "2025-11-25") as wire, opened(subject, "2025-11-25") as other:
        async with call(wire, "wait", seconds=2) as (event_id, read):
            assert "data:" not in read, "the event that primes a client comes first"
        for _ in range(2):  # While the call runs, and after its end.
            status, messages = await fetch(wire, event_id)
            assert status == 200
            assert [message["result"]["content"][0]["text"] for message in messages] == ["waited"]
        assert subject.said.count("waiting") == 1
        assert (await fetch(other, event_id))[0] == 410, "it is the answer to a call of another session"
        status, _ = await fetch(wire, "call-999-1")
        assert status == 410


@pytest.mark.slow
async def test_an_answer_that_is_fetched_again_counts_again() -> None:
    async with running([*TOY, "rate_bytes=2000"]) as subject, opened(subject, "2025-11-25") as wire:
        async with call(wire, "wait", seconds=1.2) as (event_id, _):
            pass
        statuses = [(await fetch(wire, event_id))[0] for _ in range(20)]
        assert statuses[0] == 200 and statuses[-1] == 429


@pytest.mark.slow
@pytest.mark.parametrize("revision", REVISIONS)
async def test_every_event_of_a_call_has_an_id_of_its_own(revision: str) -> None:
    async with running(TOY) as subject, opened(subject, revision) as wire:
        message = wire.message(
            "tools/call", {"name": "flood", "arguments": {"times": 5}, "_meta": {"progressToken": "p"}}
        )
        answer = await wire.client.post(wire.url, json=message, headers=wire.headers_for(message))
        ids = [line for line in answer.text.splitlines() if line.startswith("id: ")]
        # Clients of older revisions would read the event without data as a message.
        assert len(ids) == len(set(ids)) == 6 + (revision == "2025-11-25")
        assert answer.text.startswith("id: ") and ("data:\r\n" in answer.text) == (revision == "2025-11-25")
        status, messages = await fetch(wire, ids[0].removeprefix("id: "))
        assert status == 200 and [message["result"]["content"][0]["text"] for message in messages] == ["done"]


@pytest.mark.slow
async def test_a_call_that_is_fetched_is_not_abandoned() -> None:
    async with running([*TOY, "session_seconds=1"]) as subject, opened(subject, "2025-11-25") as wire:
        async with call(wire, "wait", seconds=5) as (event_id, _):
            pass
        status, messages = await fetch(wire, event_id)
        assert status == 200 and messages[0]["result"]["content"][0]["text"] == "waited"


class CuttingLine:
    """A line to a server that breaks once, when the first event of a call has passed."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self.has_cut = False

    async def serve(self, client: anyio.abc.SocketStream) -> None:
        async with client, await anyio.connect_tcp(*self._address) as server, anyio.create_task_group() as tasks:
            tasks.start_soon(self._pass_on, client, server, tasks.cancel_scope)
            await self._pass_on(server, client, tasks.cancel_scope)

    async def _pass_on(
        self, source: anyio.abc.SocketStream, sink: anyio.abc.SocketStream, scope: anyio.CancelScope
    ) -> None:
        try:
            async for data in source:
                await sink.send(data)
                if b"id: call-" in data and not self.has_cut:
                    self.has_cut = True
                    break
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass
        scope.cancel()


@pytest.mark.slow
async def test_the_clients_of_the_sdk_get_their_answer_over_a_line_that_broke() -> None:
    async with (
        running(TOY) as subject,
        await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0) as listener,
        anyio.create_task_group() as tasks,
    ):
        line = CuttingLine(subject.address)
        tasks.start_soon(listener.serve, line.serve)
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        url = f"http://127.0.0.1:{port}/mcp"
        with anyio.fail_after(30):
            async with Client(streamable_http_client(url), mode="legacy") as client:
                answer = (await client.call_tool("wait", {"seconds": 3})).content[0]
        assert isinstance(answer, TextContent) and answer.text == "waited"
        assert line.has_cut and subject.said.count("waiting") == 1
        tasks.cancel_scope.cancel()
