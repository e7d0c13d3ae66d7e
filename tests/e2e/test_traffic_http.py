"""Too much of what is right, over HTTP: storms of cancels, floods of progress, readers that do not read."""

import json
import socket
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import pytest

from mcp_batteries.testing.wire import MODERN, HttpWire, Wire
from shared.http_subject import TOY, running
from thinning import some

ERAS = ("2025-11-25", MODERN)
DIAGNOSTIC = [sys.executable, str(Path(__file__).parent / "diagnostic"), "--transport", "http", "--port", "0"]
pytestmark = pytest.mark.anyio


async def cancel(wire: HttpWire, request_id: int) -> None:
    """As the revision has it: by a notification, or by leaving."""
    if wire.modern:
        await wire.unlisten(request_id)
    else:
        await wire.notify("notifications/cancelled", {"requestId": request_id})


async def begin(wire: HttpWire, tool: str, **arguments: object) -> int:
    return await wire.begin("tools/call", {"name": tool, "arguments": arguments})


async def figure(wire: HttpWire, name: str) -> float:
    text = (await wire.client.get(wire.url.replace("/mcp", "/metrics"))).text
    return next(float(line.split()[1]) for line in text.splitlines() if line.startswith(name + " "))


@pytest.mark.share(1)
@pytest.mark.parametrize("revision", ERAS)
async def test_a_call_cancelled_while_it_waits_for_its_turn_never_runs(revision: str) -> None:
    command = [*TOY, "max_parallel=2", "metrics=True"]
    async with running(command) as subject, HttpWire(subject.url, revision=revision) as wire:
        await wire.open()
        working = [await begin(wire, "wait", seconds=3600) for _ in range(2)]
        await subject.says("waiting", times=2)
        before = await figure(wire, "mcp_tasks")
        waiting = [await begin(wire, "wait", seconds=3600) for _ in range(30)]
        with anyio.fail_after(60):
            # Each is a request and what looks whether somebody wants it still.
            while await figure(wire, "mcp_tasks") < before + 60:
                await anyio.sleep(0.01)
        for request_id in waiting:
            await cancel(wire, request_id)
        with anyio.fail_after(60):
            while await figure(wire, "mcp_tasks") > before + 20:
                await anyio.sleep(0.01)
        for request_id in working:
            await cancel(wire, request_id)
        await subject.says("cancelled", times=2)
        assert "alive" in str(await wire.call("echo", text="alive"))
    assert subject.said.count("waiting") == 2


@pytest.mark.slow
@pytest.mark.parametrize("revision", some(ERAS, MODERN))
async def test_a_storm_of_cancels_leaves_nothing_behind(revision: str) -> None:
    """Calls and their cancels arrive in any order; whatever began is ended, and every task of it."""
    command = [*TOY, "max_parallel=32", "metrics=True"]
    async with running(command) as subject, HttpWire(subject.url, revision=revision) as wire:
        await wire.open()
        await wire.call("echo", text="x")
        before = await figure(wire, "mcp_tasks")
        for _ in range(3):
            begun = [await begin(wire, "wait", seconds=3600) for _ in range(30)]
            await subject.says("waiting", times=subject.said.count("cancelled") + 30)
            for request_id in begun:
                await cancel(wire, request_id)
                # Once more, and one that never was.
                await wire.notify("notifications/cancelled", {"requestId": request_id})
                await wire.notify("notifications/cancelled", {"requestId": f"{request_id}-never"})
            await subject.says("cancelled", times=subject.said.count("waiting"))
        assert "alive" in str(await wire.call("echo", text="alive"))
        with anyio.fail_after(60):
            while await figure(wire, "mcp_tasks") > before:
                await anyio.sleep(0.01)
        status = subject.stop()
        wire.headers.pop("mcp-session-id", None)
        assert await subject.ends() == status
    assert "Traceback" not in subject.said


@pytest.mark.share(1)
@pytest.mark.parametrize("revision", ERAS)
async def test_a_flood_of_progress_lets_others_in_and_ends(revision: str) -> None:
    async with (
        running(TOY) as subject,
        HttpWire(subject.url, revision=revision) as wire,
        HttpWire(subject.url, revision=revision) as other,
    ):
        await wire.open()
        await other.open()
        params = {"name": "flood", "arguments": {"times": 500}, "_meta": {"progressToken": "p"}}
        flooding = await wire.begin("tools/call", params)
        await wire.notification("notifications/progress")
        answered = 0
        with anyio.fail_after(60):
            while not any(message.get("id") == flooding for message in wire.messages):
                assert "alive" in str(await other.call("echo", text="alive"))
                answered += 1
        assert answered
        progress = [message["params"]["progress"] for message in wire.notifications]
        assert progress == sorted(progress)


class Deaf:
    """A client that asks for notices and reads none of them."""

    def __init__(
        self, wire: HttpWire, method: str, message: dict[str, object] | None, address: tuple[str, int]
    ) -> None:
        body = b"" if message is None else json.dumps(message).encode()
        headers = {**wire.headers_for(message or {}), "host": "localhost", "content-length": str(len(body))}
        lines = [f"{method} /mcp HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.connect(address)
        self.socket.sendall("\r\n".join(lines).encode() + body)
        # The head of the answer: from here on it listens.
        assert self.socket.recv(12) == b"HTTP/1.1 200"


async def follow(wire: HttpWire, uris: list[str]) -> None:
    if wire.modern:
        await wire.listen({"resourceSubscriptions": uris})
    else:
        for uri in uris:
            await wire.subscribe(uri)


@pytest.mark.slow
@pytest.mark.parametrize("revision", some(ERAS, MODERN))
async def test_readers_that_do_not_read_harm_nobody(revision: str) -> None:
    uris = [f"test://template/{number}{'x' * 30_000}/data" for number in range(40)]
    async with AsyncExitStack() as stack:
        subject = await stack.enter_async_context(running([*DIAGNOSTIC, "--metrics"]))
        caller = await stack.enter_async_context(HttpWire(subject.url, revision=MODERN))
        hearing = await stack.enter_async_context(HttpWire(subject.url, revision=revision))
        await hearing.open()
        await follow(hearing, uris)
        wires, deaf = [hearing], list[Deaf]()
        for _ in range(3):
            wire = await stack.enter_async_context(HttpWire(subject.url, revision=revision))
            wires.append(wire)
            if wire.modern:
                message = wire.message("subscriptions/listen", {"notifications": {"resourceSubscriptions": uris}})
                deaf.append(await anyio.to_thread.run_sync(Deaf, wire, "POST", message, subject.address))
            else:
                # Its session without the stream that a wire opens: the deaf one is in its place.
                await Wire.open(wire)
                await follow(wire, uris)
                deaf.append(await anyio.to_thread.run_sync(Deaf, wire, "GET", None, subject.address))
        memory = await figure(caller, "process_resident_memory_bytes")
        for _ in range(4):  # Each round is more than a megabyte for everybody, all of them more than sockets hold.
            for uri in uris:
                await caller.call("announce", uri=uri)
            for uri in uris:
                await hearing.notification(
                    "notifications/resources/updated", lambda params, uri=uri: params["uri"] == uri
                )
            hearing.messages.clear()
        assert await figure(caller, "process_resident_memory_bytes") - memory < 60_000_000
        # They can still call, and are counted until they leave.
        assert await figure(caller, "mcp_streams") == (4 if revision == MODERN else 0)
        for client in deaf[1:]:
            client.socket.close()
        if revision == MODERN:
            with anyio.fail_after(60):
                while await figure(caller, "mcp_streams") > 2:
                    await anyio.sleep(0.05)
        # The end does not wait for them either.
        status = subject.stop()
        assert await subject.ends() == status
        deaf[0].socket.close()
        for wire in wires:
            wire.headers.pop("mcp-session-id", None)
