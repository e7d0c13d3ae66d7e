"""Streamable HTTP: who is let in, what survives, and how it ends."""

import json
import signal
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitRequestParams, ElicitResult, TextContent

from mcp_batteries.errors import Refused, Unavailable
from mcp_batteries.settings import Settings
from mcp_batteries.testing.wire import MODERN, HttpWire, WireError
from mcp_batteries.transports.http.auth.tokens import create_token
from mcp_batteries.transports.http.listener.uvicorn_server import listen_on
from mcp_batteries.transports.http.serve import serve
from shared.http_subject import FILES, TOY, Subject, asks_to_end, opened, running
from shared.toy_http import server

ERAS = ("2025-11-25", MODERN)
pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def subject() -> AsyncGenerator[Subject]:
    """A server for tests that leave nothing behind in it."""
    async with running(TOY) as running_server:
        yield running_server


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
async def test_an_address_others_can_reach_is_refused(host: str) -> None:
    with pytest.raises(Refused, match="--allow-anonymous"):
        await serve(server, Settings(host=host, port=0))


async def test_a_taken_port_is_said_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(Unavailable, match="Choose another --port"):
        await serve(server, Settings(port=taken.getsockname()[1]))


@pytest.mark.slow
async def test_an_open_door_is_said_aloud() -> None:
    async with running([*TOY, "host=0.0.0.0", "allow_anonymous=True"]) as subject:
        assert "can use this server" in " ".join(subject.said.split())
    async with running(TOY) as subject:
        assert "can use this server" not in " ".join(subject.said.split())


async def test_answers_leave_at_once() -> None:
    """asyncio switches Nagle's delay off only where the socket says that it is TCP."""
    with listen_on("127.0.0.1", 0, public=False) as listener:
        assert listener.proto == socket.IPPROTO_TCP


@pytest.mark.share(1)
@pytest.mark.parametrize("revision", ERAS)
async def test_a_slash_at_the_end_is_served_and_never_redirected(revision: str, subject: Subject) -> None:
    """A redirect would name the scheme that a proxy in front speaks to us, not the one that its client speaks to it."""
    async with httpx2.AsyncClient(trust_env=False) as client:
        async with HttpWire(subject.url + "/", revision=revision) as wire:
            await wire.open()
            assert "there" in str(await wire.call("echo", text="there"))
        for path in ("/mcp/", "/mcp//", "/", "/metrics/", "/nothing/"):
            for method in ("GET", "POST", "DELETE"):
                assert not (await client.request(method, subject.url.replace("/mcp", path))).is_redirect


async def test_health_is_answered_to_anybody_and_tells_nothing(subject: Subject) -> None:
    async with httpx2.AsyncClient(trust_env=False) as client:
        answer = await client.get(subject.url.replace("/mcp", "/health"), headers={"host": "10.0.0.7"})
        assert (answer.status_code, answer.text) == (200, "ok\n")


@pytest.mark.share(1)
@pytest.mark.parametrize("revision", ERAS)
async def test_an_allowed_host_and_origin_are_served_and_readable_by_the_page(revision: str) -> None:
    names = ["allowed_host=('files.example.org', 'x.org:8443')", "allowed_origin=('https://app.example.org/',)"]
    async with running([*TOY, *names]) as subject, httpx2.AsyncClient(trust_env=False) as client:
        for host in ("files.example.org", "FILES.example.org:1234", "x.org:8443"):
            async with HttpWire(subject.url, revision=revision, headers={"host": host.lower()}) as wire:
                await wire.open()
        page = {"origin": "https://app.example.org", "host": "files.example.org"}
        asked = {"access-control-request-method": "POST", "access-control-request-headers": "mcp-method"}
        preflight = await client.options(subject.url, headers={**page, **asked})
        assert preflight.headers["access-control-allow-origin"] == "https://app.example.org"
        async with HttpWire(subject.url, revision=revision, headers=page) as wire:
            await wire.open()
            answer = await wire.send_raw(b"{", {"mcp-protocol-version": revision})
            assert answer.headers["access-control-allow-origin"] == "https://app.example.org"
        refused = await client.get(subject.url, headers={"host": "x.org:8444"})
        assert refused.status_code == 421


@pytest.mark.parametrize(
    ("origin", "is_served"),
    [
        ("http://localhost:6274", True), ("http://127.0.0.1", True), ("https://[::1]:8443", True),
        ("https://evil.example.org", False), ("http://192.168.1.20:8000", False), ("null", False),
    ],
)  # fmt: skip
async def test_a_page_hears_the_same_before_its_request_and_after(
    origin: str, is_served: bool, subject: Subject
) -> None:
    """A browser asks first whether it may send a message, and then whether the page may read the answer."""
    async with httpx2.AsyncClient(trust_env=False) as client:
        asked = {"access-control-request-method": "POST", "access-control-request-headers": "content-type,mcp-method"}
        first = await client.options(subject.url, headers={"origin": origin, **asked})
        then = await client.post(subject.url, headers={"origin": origin}, json={"jsonrpc": "2.0", "method": "x"})
        for answer in (first, then):
            assert answer.headers.get("access-control-allow-origin") == (origin if is_served else None)
            assert (answer.status_code == 403) == (not is_served)
        assert not is_served or "mcp-method" in first.headers["access-control-allow-headers"]
        assert not is_served or "mcp-session-id" in then.headers["access-control-expose-headers"]


async def test_any_address_is_a_name_of_this_server(subject: Subject) -> None:
    """Which of this machine's addresses a client on the network uses is not known, and no name server moves one."""
    for host, status in (("192.168.1.20:8000", 200), ("[fd00::20]:8000", 200), ("machine.local:8000", 421)):
        async with HttpWire(subject.url, revision=MODERN, headers={"host": host}) as wire:
            message = wire.message("tools/list")
            answer = await wire.send_raw(json.dumps(message).encode(), wire.headers_for(message))
            assert answer.status_code == status


@pytest.mark.share(1)
@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize(
    ("tool", "arguments", "kind"),
    [
        ("echo", {"text": '","method":'}, "application/json"),
        ("fail", {}, "application/json"),
        ("progress", {}, "text/event-stream"),
    ],
)
async def test_an_answer_is_a_stream_only_where_something_comes_before_it(
    revision: str, tool: str, arguments: dict[str, str], kind: str, subject: Subject
) -> None:
    async with opened(subject, revision) as wire:
        message = wire.message("tools/call", {"name": tool, "arguments": arguments})
        message["params"]["_meta"] = {**message["params"].get("_meta", {}), "progressToken": "half way"}
        for request_id in ("7", 'a "result":', 7, "7"):
            message["id"] = request_id
            answer = await wire.client.post(subject.url, json=message, headers=wire.headers_for(message))
            assert answer.headers["content-type"].partition(";")[0] == kind
            assert ("half way" in answer.text) == (tool == "progress")
            assert "notifications/progress" in answer.text or json.loads(answer.text)["id"] == request_id


async def sent_together(wire: HttpWire, messages: object, **headers: str) -> tuple[int, list[dict[str, Any]]]:
    """The status, and the messages of the stream."""
    head = {**wire.headers_for({"method": "ping"}), **headers}
    head.pop("mcp-protocol-version", None)
    answer = await wire.client.post(wire.url, json=messages, headers={**head, **headers})
    lines = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: ")]
    return answer.status_code, [json.loads(line) for line in lines]


@pytest.mark.slow
async def test_the_revision_with_arrays_has_each_message_answered() -> None:
    async with running(TOY) as subject, opened(subject, "2025-03-26") as wire:
        echo = {"name": "echo", "arguments": {"text": "one"}}
        progress = {"name": "progress", "arguments": {}, "_meta": {"progressToken": "half"}}
        status, said = await sent_together(
            wire,
            [
                {"jsonrpc": "2.0", "id": 101, "method": "tools/call", "params": echo},
                {"jsonrpc": "2.0", "id": "two", "method": "tools/call", "params": progress},
                {"jsonrpc": "2.0", "id": 101, "method": "ping"},
                {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}},
                {"jsonrpc": "2.0", "id": "None", "method": "ping"},
                {"jsonrpc": "2.0", "id": 3, "method": "no/such"},
                [[1]],
                5,
            ],
        )
        assert status == 200
        answers = [message for message in said if "method" not in message]
        ids = ["101", "101", "3", "None", "None", "None", "two"]
        assert sorted(str(answer["id"]) for answer in answers) == ids
        assert sum("result" in answer for answer in answers) == 3
        assert [message["params"]["progressToken"] for message in said if "method" in message] == ["half"]
        notice = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
        assert await sent_together(wire, [notice, notice]) == (202, [])
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        assert (await sent_together(wire, [ping], **{"mcp-session-id": "gone"}))[0] == 404
        for odd in ([], [ping] * 1001):
            assert (await sent_together(wire, odd))[0] == 400
        # Later revisions took arrays out again.
        assert (await sent_together(wire, [ping], **{"mcp-protocol-version": "2025-06-18"}))[0] == 400
        assert await wire.call("echo", text="next")


@pytest.mark.reported("QuantGeekDev/mcp-framework#52")
@pytest.mark.reported("modelcontextprotocol/python-sdk#934")
async def test_an_array_opens_no_session_and_is_answered_in_the_form_that_the_operator_chose() -> None:
    """Nobody would learn the id of a session that one of many messages opens."""
    async with running([*TOY, "json_response=True", "metrics=True"]) as subject, opened(subject, "2025-03-26") as wire:
        about = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "it", "version": "1"}}
        opening = [wire.message("initialize", about) for _ in range(5)]
        answer = await wire.send_raw(json.dumps([*opening, wire.message("ping")]).encode())
        assert answer.headers["content-type"] == "application/json"
        messages = [one["error"]["message"] for one in answer.json() if "error" in one]
        assert messages == ["Invalid request: `initialize` comes alone."] * 5
        assert len(answer.json()) == 6
        assert "mcp_sessions 1.0" in (await wire.client.get(subject.url.replace("/mcp", "/metrics"))).text


@pytest.mark.slow
async def test_a_revision_that_is_not_of_a_session_is_named_as_it_was_sent() -> None:
    async with running(TOY) as subject, opened(subject, "2025-11-25") as wire:
        message = wire.message("ping")
        for sent, said in (("", "but MCP-Protocol-Version is empty."), ("2026-07-28", "`2026-07-28` has no sessions")):
            headers = {**wire.headers_for(message), "mcp-protocol-version": sent}
            answer = await wire.client.post(subject.url, json=message, headers=headers)
            assert answer.status_code == 400
            assert said in answer.json()["error"]["message"]


@pytest.mark.slow
async def test_a_call_that_lasts_gets_its_stream_before_its_answer() -> None:
    async with running(TOY) as subject, opened(subject, "2025-11-25") as wire:
        message = wire.message("tools/call", {"name": "stuck", "arguments": {}})
        headers = wire.headers_for(message)
        with anyio.fail_after(30):
            async with wire.client.stream("POST", subject.url, json=message, headers=headers) as answer:
                assert answer.headers["content-type"].startswith("text/event-stream")


@asynccontextmanager
async def answering(subject: Subject, wire: HttpWire, message: dict[str, Any], begun: str) -> AsyncGenerator[list[str]]:
    """A block for what happens to a call once the server has said `begun`; behind it the list holds the answer."""
    said: list[str] = []

    async def call() -> None:
        said.append((await wire.client.post(subject.url, json=message, headers=wire.headers_for(message))).text)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await subject.says(begun)
            yield said


async def test_a_call_that_was_cancelled_ends_without_an_answer() -> None:
    async with running(TOY) as subject, opened(subject, "2025-11-25") as wire:
        message = wire.message("tools/call", {"name": "wait", "arguments": {"seconds": 3600}})
        async with answering(subject, wire, message, "waiting") as said:
            await wire.notify("notifications/cancelled", {"requestId": message["id"]})
        assert "result" not in said[0]
        assert await wire.call("echo", text="next")


@pytest.mark.slow
async def test_calls_of_a_session_ask_their_client_and_each_hears_its_own_answers() -> None:
    async def answer(context: object, params: ElicitRequestParams) -> ElicitResult:
        return ElicitResult(action="accept", content={"name": params.message.upper()})

    async with (
        running(TOY) as subject,
        Client(streamable_http_client(subject.url), mode="legacy", elicitation_callback=answer) as client,
    ):
        said: dict[str, str] = {}

        async def call(name: str) -> None:
            questions = [f"{name}{number}" for number in range(20)]
            found = (await client.call_tool("ask", {"questions": questions})).content[0]
            assert isinstance(found, TextContent)
            said[name] = found.text

        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                for name in "abc":
                    tasks.start_soon(call, name)
        assert said == {name: ", ".join(f"{name.upper()}{number}" for number in range(20)) for name in "abc"}


async def test_an_answer_that_is_none_ends_the_question() -> None:
    """The call would wait for an answer that has come, until its client leaves."""
    async with running(TOY) as subject, HttpWire(subject.url, capabilities={"elicitation": {}}) as wire:
        await wire.open()
        message = wire.message("tools/call", {"name": "ask", "arguments": {"questions": ["who?"]}})
        headers = wire.headers_for(message)
        for answer in ({"result": None}, {"error": {"code": -1}}, {"error": "no"}):
            with anyio.fail_after(30):
                async with wire.client.stream("POST", subject.url, json=message, headers=headers) as response:
                    async for line in response.aiter_lines():
                        if "elicitation/create" in line:
                            question = json.loads(line.removeprefix("data: "))
                            await wire.send_raw(json.dumps({"jsonrpc": "2.0", "id": question["id"], **answer}).encode())
                        elif "isError" in line:
                            assert json.loads(line.removeprefix("data: "))["result"]["isError"]


@pytest.mark.slow
async def test_a_question_is_taken_back_before_its_call_ends() -> None:
    async with running(TOY) as subject, HttpWire(subject.url, capabilities={"elicitation": {}}) as wire:
        await wire.open()
        message = wire.message("tools/call", {"name": "ask", "arguments": {"questions": ["who?"]}})
        async with answering(subject, wire, message, "asking") as said:
            await wire.notify("notifications/cancelled", {"requestId": message["id"]})
        told = [json.loads(line[6:]) for line in said[0].splitlines() if line.startswith("data: ")]
        assert [one.get("method") for one in told] == ["elicitation/create", "notifications/cancelled", None]
        assert told[1]["params"]["requestId"] == told[0]["id"]
        assert (told[2]["id"], told[2]["error"]["code"]) == (message["id"], -32800)


@pytest.mark.slow
@pytest.mark.parametrize("json_response", [False, True])
async def test_the_end_of_a_session_ends_its_calls_and_says_so(json_response: bool) -> None:
    async with running([*TOY, f"json_response={json_response}"]) as subject, opened(subject, "2025-11-25") as wire:
        message = wire.message("tools/call", {"name": "wait", "arguments": {"seconds": 3600}})
        async with answering(subject, wire, message, "waiting") as said:
            await wire.client.delete(subject.url, headers=wire.headers_for({}))
        await subject.says("cancelled")
        assert "terminated" in said[0]


async def test_ids_that_read_alike_belong_to_calls_of_their_own() -> None:
    """JSON-RPC: an id is a number or a text, so 7 and "7" are two, and who gives up one of them keeps the others."""
    async with running(TOY) as subject, opened(subject, "2025-11-25") as wire:
        ids: tuple[int | str, ...] = (700, "700", "0700")
        errors: dict[int | str, int] = {}

        async def call(request_id: int | str) -> None:
            message = wire.message("tools/call", {"name": "wait", "arguments": {"seconds": 3600}}) | {"id": request_id}
            answer = await wire.client.post(subject.url, json=message, headers=wire.headers_for(message))
            said = json.loads(answer.text.rpartition("data: ")[2])  # A stream, if it took longer.
            errors[said["id"]] = said["error"]["code"]

        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                for count, request_id in enumerate(ids, 1):
                    tasks.start_soon(call, request_id)
                    await subject.says("waiting", times=count)
                await wire.notify("notifications/cancelled", {"requestId": "700"})
                await subject.says("cancelled")
                await wire.client.delete(subject.url, headers=wire.headers_for({}))
        assert errors == {"700": -32800, 700: -32000, "0700": -32000}


async def test_questions_of_calls_whose_ids_read_alike_reach_their_own_call() -> None:
    async with running(TOY) as subject, HttpWire(subject.url, capabilities={"elicitation": {}}) as wire:
        await wire.open()
        questions: dict[int | str, str] = {}

        async def call(request_id: int | str) -> None:
            arguments = {"questions": [type(request_id).__name__]}
            message = wire.message("tools/call", {"name": "ask", "arguments": arguments}) | {"id": request_id}
            async with wire.client.stream(
                "POST", subject.url, json=message, headers=wire.headers_for(message)
            ) as response:
                async for line in response.aiter_lines():
                    if "elicitation/create" in line:
                        questions[request_id] = json.loads(line[6:])["params"]["message"]
                        return

        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                for request_id in (600, "600", "_GET_stream"):
                    tasks.start_soon(call, request_id)
        assert questions == {600: "int", "600": "str", "_GET_stream": "str"}


@pytest.mark.slow
async def test_a_call_of_a_session_goes_on_without_its_client() -> None:
    async with running(TOY) as subject, opened(subject, "2025-11-25") as wire:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(wire.call, "wait", seconds=1.5))
            await subject.says("waiting")
            tasks.cancel_scope.cancel()
        await subject.says("waited")


@pytest.mark.slow
async def test_a_call_without_its_client_lasts_no_longer_than_an_unused_session() -> None:
    options = ["session_seconds=1", "max_parallel=1"]
    async with running([*TOY, *options]) as subject, opened(subject, "2025-11-25") as wire:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(wire.call, "wait", seconds=3600))
            await subject.says("waiting")
            tasks.cancel_scope.cancel()
        await subject.says("cancelled")
        async with opened(subject, "2026-07-28") as other:
            assert await other.call("echo", text="its turn is free")


@pytest.mark.slow
async def test_a_question_to_a_client_that_left_ends_its_call() -> None:
    async with (
        running([*TOY, "max_parallel=1"]) as subject,
        HttpWire(subject.url, capabilities={"elicitation": {}}) as wire,
    ):
        await wire.open()
        with anyio.fail_after(30):
            async with anyio.create_task_group() as calls:
                calls.start_soon(partial(wire.call, "ask", questions=["who?"]))
                await subject.says("asking")
                calls.cancel_scope.cancel()
            async with opened(subject, MODERN) as other:
                assert await other.call("echo", text="its turn is free")


@pytest.mark.share(1)
@pytest.mark.parametrize("revision", ERAS)
async def test_a_lone_surrogate_is_replaced_wherever_it_comes_from(revision: str, subject: Subject) -> None:
    async with opened(subject, revision) as wire:
        assert (await wire.call("surrogate"))["content"][0]["text"] == "caf\ufffd.txt"
        failed = await wire.call("fail")
        assert failed["isError"]
        assert "caf\udce9" not in json.dumps(failed, ensure_ascii=False)
        with pytest.raises(WireError) as raised:
            await wire.call("surrogate", protocol_error=True)
        assert (raised.value.message, raised.value.data) == ("caf\ufffd.txt", {"name": "caf\ufffd.txt"})
        cut = json.dumps(wire.message("tools/call", {"name": "echo", "arguments": {"text": "\ud83d"}})).encode()
        headers = {"mcp-protocol-version": revision, "mcp-method": "tools/call", "mcp-name": "echo"}
        answer = await wire.send_raw(cut, headers if wire.modern else {})
        assert "\ufffd" in answer.text.replace("\\ufffd", "\ufffd")


@pytest.mark.share(1)
@pytest.mark.parametrize("revision", ERAS)
async def test_not_a_number_is_null_and_foreign_words_stay_inside(revision: str, subject: Subject) -> None:
    async with opened(subject, revision) as wire:
        assert (await wire.call("not_a_number"))["structuredContent"] == {"value": None}
        with pytest.raises(WireError) as raised:
            await wire.request("prompts/get", {"name": "broken"})
        assert raised.value.code == -32603
        assert "words of a library" not in raised.value.message


@pytest.mark.slow
@pytest.mark.share(1)
@pytest.mark.parametrize("json_response", [False, True])
async def test_closing_the_connection_cancels_a_modern_call(json_response: bool) -> None:
    async with running([*TOY, f"json_response={json_response}"]) as subject, opened(subject, MODERN) as wire:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(wire.call, "wait", seconds=3600))
            await subject.says("waiting")
            tasks.cancel_scope.cancel()
        await subject.says("cancelled")
        assert await wire.call("echo", text="alive")


@pytest.mark.slow
@asks_to_end
async def test_the_lifespan_is_entered_once_for_all_clients_of_the_old_transport() -> None:
    async with running([*TOY, "transport=sse"]) as subject, httpx2.AsyncClient(trust_env=False) as client:
        assert subject.url.endswith("/sse")
        for _ in range(2):
            async with client.stream("GET", subject.url) as response:
                async for event in httpx2.EventSource(response):
                    assert event.event == "endpoint"
                    break
        refused = await client.get(subject.url, headers={"host": "evil.example.org"})
        assert refused.status_code == 421
        subject.ask_to_end()
        assert await subject.ends() == 143
        assert (subject.said.count("lifespan entered"), subject.said.count("lifespan left")) == (1, 1)


async def test_what_is_no_message_over_the_old_transport_is_refused_and_not_logged() -> None:
    async with running([*TOY, "transport=sse"]) as subject, httpx2.AsyncClient(trust_env=False) as client:
        async with client.stream("GET", subject.url) as response:
            events = aiter(httpx2.EventSource(response))
            url = str(response.url.join((await anext(events)).data))
            for body in (b'[{"jsonrpc":"2.0","id":1,"method":"canary"}]', b"canary", b'{"canary":1}'):
                answer = await client.post(url, content=body, headers={"content-type": "application/json"})
                assert answer.status_code == 400
        await client.get(subject.url, headers={"host": "evil.example.org"})
        await subject.says("refused with 421")
        assert "canary" not in subject.said


@pytest.mark.slow
@pytest.mark.share(1)
@asks_to_end
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
async def test_an_idle_server_ends_with_the_status_of_the_signal(number: signal.Signals, status: int) -> None:
    async with running(TOY) as subject:
        subject.ask_to_end(number)
        assert await subject.ends() == status
        assert "lifespan left" in subject.said
        assert "Traceback" not in subject.said


@pytest.mark.slow
@pytest.mark.share(1)
@asks_to_end
@pytest.mark.parametrize("command", [TOY, FILES], ids=["toy", "mcp-fs"])
async def test_a_held_listen_stream_gets_its_result_at_the_end(command: list[str]) -> None:
    async with running(command) as subject, opened(subject, MODERN) as wire:
        listen = await wire.listen({"resourceSubscriptions": [Path(__file__).as_uri()]})
        subject.ask_to_end()
        result = await wire.next_message(lambda message: message.get("id") == listen)
        assert result["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == listen
        assert await subject.ends() == 143
        assert "Traceback" not in subject.said


@pytest.mark.slow
@pytest.mark.share(1)
@asks_to_end
@pytest.mark.parametrize("command", [TOY, FILES], ids=["toy", "mcp-fs"])
async def test_a_legacy_stream_ends_with_the_server(command: list[str]) -> None:
    async with running(command) as subject:
        # The session cannot be deleted in the end: its server is gone.
        with pytest.raises(httpx2.TransportError):
            async with opened(subject, "2025-11-25"):
                subject.ask_to_end()
                assert await subject.ends() == 143
        assert "Traceback" not in subject.said


@pytest.mark.slow
@asks_to_end
@pytest.mark.parametrize("revision", ERAS)
async def test_a_call_in_flight_is_answered_if_it_hurries(revision: str) -> None:
    async with running(TOY) as subject, HttpWire(subject.url, revision=revision) as wire:
        await wire.open()
        answers: list[object] = []

        async def call() -> None:
            answers.append(await wire.call("wait", seconds=0.3))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await subject.says("waiting")
            subject.ask_to_end()
        assert answers
        assert await subject.ends() == 143
        wire.headers.pop("mcp-session-id", None)
        assert "Traceback" not in subject.said


@pytest.mark.slow
@pytest.mark.share(2)
@asks_to_end
@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize("patience", [0, 3], ids=["before its stream", "on its stream"])
async def test_a_call_that_takes_too_long_is_ended(revision: str, patience: int) -> None:
    """Its client learns that, and what may have become of it; nobody on the way may think it can be sent again."""
    async with (
        running([*TOY, f"drain_seconds={patience}"]) as subject,
        HttpWire(subject.url, revision=revision) as wire,
    ):
        await wire.open()
        async with anyio.create_task_group() as tasks:

            async def call() -> None:
                with pytest.raises(WireError, match="may be changed") as ended:
                    await wire.call("wait", seconds=3600)
                assert ended.value.data == {"kind": "unavailable"}

            tasks.start_soon(call)
            await subject.says("waiting")
            subject.ask_to_end()
        assert await subject.ends() == 143
        wire.headers.pop("mcp-session-id", None)
        assert "lifespan left" in subject.said
        assert "cancelled" in subject.said
        assert "Traceback" not in subject.said


@asynccontextmanager
async def called(subject: Subject, tool: str, **arguments: object) -> AsyncGenerator[None]:
    """A call under way, whose answer nobody expects."""
    shape = HttpWire(subject.url, revision=MODERN)
    message = shape.message("tools/call", {"name": tool, "arguments": arguments})

    async def call() -> None:
        async with httpx2.AsyncClient(trust_env=False, timeout=None) as client:
            with suppress(httpx2.TransportError):
                await client.post(subject.url, json=message, headers=shape.headers_for(message))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        await subject.says("waiting")
        yield
        tasks.cancel_scope.cancel()


@pytest.mark.slow
@asks_to_end
async def test_a_machine_without_time_for_the_end_costs_no_call_its_answer() -> None:
    """The server is stopped while its like ends in full: past its deadlines, and what came meanwhile is read late."""
    async with (
        running([*TOY, "drain_seconds=2"]) as subject,
        running([*TOY, "drain_seconds=2"]) as like,
        called(like, "wait", seconds=3600),
        HttpWire(subject.url, revision=MODERN) as wire,
        anyio.create_task_group() as tasks,
    ):

        async def call() -> None:
            assert (await wire.call("wait", seconds=1.5))["content"][0]["text"] == "waited"

        tasks.start_soon(call)
        await subject.says("waiting")
        subject.ask_to_end()
        async with httpx2.AsyncClient(trust_env=False) as client:
            with anyio.fail_after(30):
                while (await client.get(subject.url.replace("/mcp", "/readyz"))).status_code == 200:
                    pass
        subject.ask_to_end(signal.SIGSTOP)
        tasks.start_soon(call)
        like.ask_to_end()
        assert await like.ends() == 143
        subject.ask_to_end(signal.SIGCONT)
        assert await subject.ends() == 143


@pytest.mark.slow
@asks_to_end
@pytest.mark.parametrize("tool", ["stuck", "blockade"])
async def test_neither_a_thread_nor_the_loop_can_hold_the_process(tool: str) -> None:
    async with running(TOY) as subject, called(subject, tool):
        subject.ask_to_end()
        assert await subject.ends() == 143


@asks_to_end
async def test_a_second_signal_ends_it_at_once() -> None:
    async with running(TOY) as subject, called(subject, "wait", seconds=3600):
        subject.ask_to_end()
        subject.ask_to_end(signal.SIGINT)
        assert await subject.ends() in (130, 143)
        assert "lifespan left" not in subject.said


@pytest.mark.slow
@pytest.mark.share(1)
@pytest.mark.parametrize("revision", ERAS)
async def test_a_thousand_calls_at_once_are_all_answered(revision: str) -> None:
    async with running(TOY) as subject, opened(subject, revision) as wire:
        limits = httpx2.Limits(max_connections=100)
        timeout = httpx2.Timeout(None)
        async with httpx2.AsyncClient(limits=limits, timeout=timeout, trust_env=False) as pool:
            answers: dict[int, str] = {}

            async def call(number: int) -> None:
                message = wire.message("tools/call", {"name": "echo", "arguments": {"text": f"<{number}>"}})
                answer = await pool.post(wire.url, json=message, headers=wire.headers_for(message))
                answers[number] = answer.text

            with anyio.fail_after(60):
                async with anyio.create_task_group() as tasks:
                    for number in range(1000):
                        tasks.start_soon(call, number)
        assert len(answers) == 1000
        assert all(f"<{number}>" in text for number, text in answers.items())


@pytest.mark.slow
async def test_a_proxy_finds_the_argument_of_a_call_in_a_header() -> None:
    """With the SDK's own client; a call that says one thing in its header and another in its body is nobody's."""
    sent: list[httpx2.Headers] = []

    async def note(request: httpx2.Request) -> None:
        sent.append(request.headers)

    demo = [sys.executable, "-m", "mcp_sqlite", "--demo", "--transport", "http", "--port", "0", "--param-headers"]
    async with (
        running(demo) as subject,
        httpx2.AsyncClient(event_hooks={"request": [note]}, trust_env=False) as http,
        Client(streamable_http_client(subject.url, http_client=http)) as client,
    ):
        await client.list_tools()
        assert not (await client.call_tool("list_tables", {"database": "demo"})).is_error
        assert sent[-1]["mcp-param-database"] == "demo" and sent[-1]["mcp-name"] == "list_tables"
        # A client that never listed the tools knows of no header.
        async with HttpWire(subject.url, revision=MODERN) as wire:
            call = {"name": "list_tables", "arguments": {"database": "demo"}}
            for headers, said in ({"mcp-param-database": "other"}, "does not match"), ({}, "is missing"):
                wire.headers.update(headers)
                with pytest.raises(WireError, match=f"Mcp-Param-Database header {said}"):
                    await wire.request("tools/call", call)
                wire.headers.pop("mcp-param-database", None)
            aside = await wire.request("tools/call", {"name": "list_tables", "arguments": {"Database": "demo"}})
            assert aside["isError"] and "Send database=`demo` alone" in aside["content"][0]["text"]
            assert not (await wire.request("tools/call", {"name": "list_tables", "arguments": {}})).get("isError")
            # Of calls inside a call, a proxy would see nothing.
            with pytest.raises(WireError, match=r"`call_tools`: it is turned off\. With `--param-headers`"):
                await wire.call("call_tools", calls=[{"list_tables": {"database": "demo"}}])


@pytest.mark.slow
async def test_a_server_is_found_by_its_domain_alone() -> None:
    """Catalogue, card, connection: each says where the next is; a page of any origin may read what is public."""
    url = "https://files.example.org/team/mcp"
    announced = [
        *FILES[:-1],
        "--server-card",
        "--public-url",
        url,
        "--auth-tokens",
        create_token("ann read")[1],
        FILES[-1],
    ]
    async with running(announced) as subject, httpx2.AsyncClient(trust_env=False) as http:
        here = subject.url.removesuffix("/mcp")
        headers = {"origin": "https://elsewhere.example", "host": "files.example.org"}
        catalog = await http.get(f"{here}/.well-known/ai-catalog.json", headers=headers)
        (entry,) = catalog.json()["entries"]
        assert entry["identifier"] == "urn:air:files.example.org:mcp:mcp-fs"
        place = entry["url"].removeprefix("https://files.example.org")
        card = await http.get(here + place, headers=headers)
        assert card.json() == (await http.get(f"{here}/mcp/server-card")).json()
        for answer, kind in (catalog, entry["type"].replace("mcp-server-card", "ai-catalog")), (card, entry["type"]):
            assert answer.status_code == 200 and answer.headers["content-type"].startswith(kind)
            assert answer.headers["access-control-allow-origin"] == "*"
            again = await http.get(str(answer.url), headers={**headers, "if-none-match": answer.headers["etag"]})
            assert again.status_code == 304 and not again.content
        told = card.json()
        (remote,) = told.pop("remotes")
        assert told.pop("$schema") == "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"
        assert told.pop("name") == "org.example.files/mcp-fs" and told.pop("version")
        assert told.keys() == {"title", "description", "websiteUrl"}
        assert all(1 <= len(text) <= 100 for text in told.values())
        assert (
            remote["url"] == url and remote["headers"][0]["isSecret"] and MODERN in remote["supportedProtocolVersions"]
        )
        assert (await http.post(f"{here}/mcp/server-card")).status_code == 401, "nothing but reading is public"
    async with running(FILES) as subject, httpx2.AsyncClient(trust_env=False) as http:
        assert (await http.get(f"{subject.url}/server-card")).status_code == 404, "not told unless asked to"
