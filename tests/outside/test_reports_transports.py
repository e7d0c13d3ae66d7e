"""What users reported of clients, proxies and servers that meet over stdio and HTTP, tried with input of our own."""

import json
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import anyio
import httpx2
import pytest
from mcp import ClientSession
from mcp.client.sse import sse_client
from mcp.shared.exceptions import MCPError

from e2e import npm
from e2e.services import free_port
from mcp_batteries.testing.wire import MODERN, HttpWire, StdioWire
from mcp_batteries.testing.wire.base import SECONDS
from outside.test_bridges import SUPERGATEWAY
from shared.http_subject import TOY, Subject, opened, running
from shared.stdio_subject import text_of

pytestmark = [pytest.mark.anyio, pytest.mark.process]

_REVISION = "2025-11-25"
_PAGE = "https://inspector.example.org"
_JSON = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
_EVENTS = {"accept": "text/event-stream"}
_NOBODYS_SESSION = {"mcp-session-id": "0123456789abcdef0123456789abcdef"}
_LIST: dict[str, Any] = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
_LINE_ENDS = "a\x85b\u2028c\u2029d"
_INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
_NEEDS_SIGNALS = pytest.mark.skipif(sys.platform == "win32", reason="no process is halted there by a signal")


def initialize(revision: str = _REVISION) -> dict[str, Any]:
    about = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "reported", "version": "1"}}
    return {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}


@pytest.fixture(scope="module")
async def subject(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Subject]:
    folder = tmp_path_factory.mktemp("served")
    command = [sys.executable, "-m", "mcp_fs", "--transport", "http", "--port", "0", "--allowed-origin", _PAGE]
    command += ["--metrics", "--max-streams-each", "16"]
    async with running([*command, str(folder)]) as subject:
        yield subject


@pytest.fixture
async def client(subject: Subject) -> AsyncGenerator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=subject.url, timeout=SECONDS, trust_env=False) as client:
        yield client


async def open_session(client: httpx2.AsyncClient, revision: str = _REVISION) -> dict[str, str]:
    """Return the headers of a session that has begun."""
    answer = await client.post("", json=initialize(revision), headers=_JSON)
    headers = {**_JSON, "mcp-session-id": answer.headers["mcp-session-id"]}
    await client.post("", json=_INITIALIZED, headers=headers)
    return headers


_UPGRADE = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABk\r\n"


def request_of_java(message: dict[str, Any], *, chunked: bool) -> bytes:
    """Return `message` as the HTTP client of Java sends it: it asks for HTTP/2, and does not wait for an answer."""
    body = json.dumps(message).encode()
    head = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n" + _UPGRADE
    head += b"".join(f"{name}: {value}\r\n".encode() for name, value in _JSON.items())
    if chunked:
        half = len(body) // 2
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:half], body[half:], b""))
        return head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


async def read_answers(stream: anyio.abc.ByteReceiveStream, count: int) -> list[bytes]:
    """Return the statuses of so many answers."""
    answers = b""
    with anyio.fail_after(SECONDS):
        while answers.count(b'"protocolVersion"') < count:
            answers += await stream.receive()
    return [part[:3] for part in answers.split(b"HTTP/1.1 ")[1:]]


@pytest.mark.reported("langchain4j/langchain4j#4582")
@pytest.mark.reported("Soju06/codex-lb#1757")
@pytest.mark.reported("Kludex/uvicorn#2722")
@pytest.mark.reported("MagicStack/httptools#124")
@pytest.mark.parametrize("chunked", [False, True])
async def test_a_client_that_asks_for_another_protocol_is_answered_in_this_one(subject: Subject, chunked: bool) -> None:
    data = request_of_java(initialize(), chunked=chunked)
    for at in (1, data.index(b"Upgrade"), data.index(b"\r\n\r\n") + 4, len(data) - 3, len(data)):
        async with await anyio.connect_tcp(*subject.address) as stream:
            for part in (data[:at], data[at:]):
                await stream.send(part)
                await anyio.lowlevel.checkpoint()
            assert await read_answers(stream, 1) == [b"200"]
            # The connection is one like any other, and requests may come behind each other.
            await stream.send(data * 3)
            assert await read_answers(stream, 3) == [b"200"] * 3


EMPTY_IN_PHP: list[Any] = []


@pytest.mark.reported("php-mcp/schema#2")
@pytest.mark.reported("elgorro/aiquila#442")
@pytest.mark.reported("laravel/mcp#135")
@pytest.mark.parametrize("capabilities", [EMPTY_IN_PHP, {"experimental": EMPTY_IN_PHP, "elicitation": {"form": []}}])
async def test_an_empty_object_may_be_written_as_php_writes_it(
    client: httpx2.AsyncClient, tmp_path: Path, capabilities: Any
) -> None:
    """An empty array of PHP is both, and a client refused at its first message has no other way."""
    hello = initialize()
    hello["params"]["capabilities"] = capabilities
    headers = {**_JSON, "mcp-session-id": (await client.post("", json=hello, headers=_JSON)).headers["mcp-session-id"]}
    notice = await client.post("", json={**_INITIALIZED, "params": EMPTY_IN_PHP}, headers=headers)
    assert notice.status_code == 202
    for params in (EMPTY_IN_PHP, {"_meta": EMPTY_IN_PHP}):
        answer = await client.post("", json={**_LIST, "params": params}, headers=headers)
        assert answer.json()["result"]["tools"]
    prompt = {"name": "explain_folder", "arguments": EMPTY_IN_PHP}
    answer = await client.post("", json={**_LIST, "method": "prompts/get", "params": prompt}, headers=headers)
    assert answer.json()["result"]["messages"]
    async with StdioWire([sys.executable, "-m", "mcp_fs", str(tmp_path)], revision=_REVISION) as wire:
        wire.capabilities = capabilities
        await wire.open()
        assert (await wire.request("tools/list", cast("Any", EMPTY_IN_PHP)))["tools"]


@pytest.mark.reported("php-mcp/schema#2")
@pytest.mark.parametrize("prefix", ["", "\ufeff"])
@pytest.mark.parametrize("request_id", ["1", "1.0", '"\\ud800"'])
async def test_an_empty_object_of_php_may_stand_in_a_first_message_that_is_mended(
    client: httpx2.AsyncClient, prefix: str, request_id: str
) -> None:
    hello = initialize()
    hello["params"] |= {"capabilities": EMPTY_IN_PHP, "_meta": EMPTY_IN_PHP}
    line = prefix + json.dumps({**hello, "id": 0}).replace('"id": 0', f'"id": {request_id}')
    answer = await client.post("", content=line.encode(), headers=_JSON)
    assert answer.json()["result"]["protocolVersion"] == _REVISION


@pytest.mark.reported("php-mcp/schema#2")
@pytest.mark.parametrize("capabilities", [EMPTY_IN_PHP, {"extensions": EMPTY_IN_PHP, "elicitation": {"form": []}}])
async def test_an_empty_object_of_php_may_stand_in_every_request_of_the_newest_revision(
    subject: Subject, tmp_path: Path, capabilities: Any
) -> None:
    """The capabilities are part of each request there, so that a client was refused at all of them."""
    files = [sys.executable, "-m", "mcp_fs", str(tmp_path)]
    for wire in (HttpWire(subject.url, revision=MODERN), StdioWire(files, revision=MODERN)):
        async with wire:
            wire.capabilities = capabilities
            await wire.open()
            assert (await wire.request("tools/list"))["tools"]
            call = {"name": "list_directory", "arguments": EMPTY_IN_PHP, "inputResponses": EMPTY_IN_PHP}
            assert not (await wire.request("tools/call", call)).get("isError")


@pytest.fixture
async def sse(tmp_path: Path) -> AsyncGenerator[Subject]:
    command = [sys.executable, "-m", "mcp_fs", "--transport", "sse", "--port", "0", str(tmp_path)]
    async with running(command) as subject:
        yield subject


@pytest.mark.reported("modelcontextprotocol/python-sdk#410")
@pytest.mark.reported("modelcontextprotocol/python-sdk#2483")
@pytest.mark.reported("modelcontextprotocol/python-sdk#1615")
async def test_a_message_that_is_too_long_is_refused_where_an_old_client_waits(sse: Subject) -> None:
    """The client for Python only logs the status of what it sends."""
    async with sse_client(sse.url) as streams, ClientSession(*streams) as session:
        with anyio.fail_after(SECONDS):
            await session.initialize()
            with pytest.raises(MCPError, match="Send less at once"):
                await session.call_tool("list_directory", {"path": "x" * 5_000_000})
            assert not (await session.call_tool("list_directory", {"path": "."})).is_error
    await sse.says("refused with 413 (size)")


@pytest.mark.reported("yurineko73/Godot-MCP-Native#16")
@pytest.mark.reported("MemPalace/mempalace#503")
@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b'{"jsonrpc":"2.0","id":7.0,"method":"tools/list"}', None),
        (b'\xef\xbb\xbf{"jsonrpc":"2.0","id":7,"method":"tools/list","params":[]}\r\n', None),
        (
            b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"list_directory","arguments":{"x":"\\ud83d"}}}',
            None,
        ),
        (b'{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"a":"caf\xe9"}}', -32700),
        (b'{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"a":' + b"[" * 300 + b"]" * 300 + b"}}", -32700),
        (b'{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"a":[' + b"[]," * 200_000 + b"1]}}", -32600),
        (b'{"jsonrpc":"1.0","id":7,"method":"tools/list"}', -32600),
    ],
)
async def test_every_request_of_an_old_client_is_answered(sse: Subject, line: bytes, code: int | None) -> None:
    async with (
        httpx2.AsyncClient(timeout=SECONDS, trust_env=False) as client,
        client.stream("GET", sse.url, headers=_EVENTS) as stream,
    ):
        events = (text[6:] async for text in stream.aiter_lines() if text.startswith("data: "))
        endpoint = sse.url.removesuffix("/sse") + await anext(events)
        for message in (initialize("2024-11-05"), _INITIALIZED):
            await client.post(endpoint, json=message, headers=_JSON)
        assert json.loads(await anext(events))["id"] == 1
        assert (await client.post(endpoint, content=line, headers=_JSON)).status_code == 202
        with anyio.fail_after(SECONDS):
            answer = json.loads(await anext(events))
        assert answer["id"] == 7
        assert answer.get("error", {}).get("code") == code


@pytest.mark.reported("modelcontextprotocol/python-sdk#1356")
async def test_an_old_client_that_ends_lines_at_other_characters_reads_whole_messages(sse: Subject) -> None:
    """`aiter_lines` ends them there too, as the client does that was reported."""
    async with (
        httpx2.AsyncClient(timeout=SECONDS, trust_env=False) as client,
        client.stream("GET", sse.url, headers=_EVENTS) as stream,
    ):
        events = (text[6:] async for text in stream.aiter_lines() if text.startswith("data: "))
        endpoint = sse.url.removesuffix("/sse") + await anext(events)
        with anyio.fail_after(SECONDS):
            await client.post(endpoint, json={**initialize("2024-11-05"), "id": _LINE_ENDS}, headers=_JSON)
            assert json.loads(await anext(events))["id"] == _LINE_ENDS


@pytest.mark.reported("modelcontextprotocol/python-sdk#1356")
async def test_a_client_that_ends_lines_at_other_characters_reads_whole_events(client: httpx2.AsyncClient) -> None:
    headers = {**await open_session(client), **_EVENTS}
    answer = await client.post("", json={**_LIST, "id": _LINE_ENDS}, headers=headers)
    events = [line[6:] for line in answer.text.splitlines() if line.startswith("data: ")]
    assert [json.loads(event)["id"] for event in events] == [_LINE_ENDS]
    as_json = await client.post("", json={**_LIST, "id": _LINE_ENDS}, headers={**headers, "accept": "application/json"})
    assert as_json.json()["id"] == _LINE_ENDS


@pytest.mark.reported("robhunter/agentdeals#1100")
async def test_a_stream_on_which_nothing_happens_begins_with_something(client: httpx2.AsyncClient) -> None:
    """Cloudflare sends no head on before a byte of the body: a client waited until the first sign of life."""
    headers = await open_session(client)
    with anyio.fail_after(10):
        async with client.stream("GET", "", headers={**headers, **_EVENTS}) as stream:
            async for part in stream.aiter_bytes():
                assert part.startswith(b":")
                break


@pytest.mark.reported("anthropics/claude-code#92835")
@pytest.mark.parametrize("agreed", ["2024-11-05", "2025-03-26", "2025-06-18"])
async def test_a_session_takes_requests_that_name_another_revision_with_sessions(
    client: httpx2.AsyncClient, agreed: str
) -> None:
    headers = await open_session(client, agreed)
    answer = await client.post("", json=_LIST, headers={**headers, "mcp-protocol-version": _REVISION})
    assert answer.status_code == 200 and answer.json()["result"]["tools"]


@pytest.mark.reported("anthropics/claude-code#93290")
async def test_a_revision_that_is_said_in_two_ways_is_refused_with_both(client: httpx2.AsyncClient) -> None:
    """The protocol demands the refusal (2026-07-28, Streamable HTTP); whoever reads it knows what to change."""
    envelope = {"_meta": {"io.modelcontextprotocol/protocolVersion": MODERN}}
    headers = {**_JSON, "mcp-protocol-version": _REVISION}
    answer = await client.post("", json={**_LIST, "params": envelope}, headers=headers)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (400, -32020)
    assert _REVISION in error["message"] and MODERN in error["message"]


@pytest.mark.reported("diegosouzapw/OmniRoute#5957")
@pytest.mark.reported("modelcontextprotocol/python-sdk#3556")
@pytest.mark.reported("punkpeye/mcp-remote#106")
@pytest.mark.reported("markmhendrickson/neotoma#1923")
async def test_a_session_from_before_a_restart_is_not_found_and_begins_anew(client: httpx2.AsyncClient) -> None:
    headers = {**_JSON, **_NOBODYS_SESSION}
    for method, message in (("POST", _LIST), ("POST", _INITIALIZED), ("GET", None), ("DELETE", None)):
        answer = await client.request(method, "", json=message, headers=headers)
        assert answer.status_code == 404 and "Send `initialize` without" in answer.json()["error"]["message"]
        assert "mcp-session-id" not in answer.headers
    begun = await client.post("", json=initialize(), headers=headers)
    assert begun.status_code == 200
    assert begun.headers["mcp-session-id"] != _NOBODYS_SESSION["mcp-session-id"]


@pytest.mark.reported("modelcontextprotocol/inspector#905")
async def test_a_session_whose_client_forgot_its_id_once_goes_on(client: httpx2.AsyncClient) -> None:
    begun = await client.post("", json=initialize(), headers=_JSON)
    forgot = await client.post("", json=_INITIALIZED, headers=_JSON)
    assert forgot.status_code == 400 and "Mcp-Session-Id" in forgot.json()["error"]["message"]
    headers = {**_JSON, "mcp-session-id": begun.headers["mcp-session-id"]}
    assert (await client.post("", json=_LIST, headers=headers)).json()["result"]["tools"]


async def post_parts(client: httpx2.AsyncClient, body: bytes, headers: dict[str, str], parts: int) -> httpx2.Response:
    """Send `body` whole, or in several parts whose length is not declared."""

    async def cut() -> AsyncGenerator[bytes]:
        size = len(body) // parts + 1
        for start in range(0, len(body), size):
            yield body[start : start + size]

    return await client.post("", content=body if parts == 1 else cut(), headers=headers)


@pytest.mark.reported("modelcontextprotocol/python-sdk#3091")
@pytest.mark.reported("modelcontextprotocol/go-sdk#683")
@pytest.mark.parametrize("parts", [1, 90])
async def test_a_message_too_long_fails_its_call_and_not_the_connection(client: httpx2.AsyncClient, parts: int) -> None:
    """Older clients give up their whole connection when a request is answered with an error of HTTP."""
    headers = await open_session(client)
    call = {"method": "tools/call", "params": {"name": "read_text", "arguments": {"path": "x" * 5_000_000}}}
    for message in ({"jsonrpc": "2.0", "id": "a", **call}, {**call, "jsonrpc": "2.0", "id": "a"}):
        answer = await post_parts(client, json.dumps(message).encode(), headers, parts)
        assert answer.status_code == 200 and answer.json()["id"] == "a"
        assert answer.json()["error"]["message"] == "A message has at most 4194304 bytes. Send less at once."
    values = {**_LIST, "params": {"_meta": {"values": [0] * 100_001}}}
    answer = await post_parts(client, json.dumps(values).encode(), headers, parts)
    assert answer.status_code == 200 and "100,000 values" in answer.json()["error"]["message"]
    for message in (call, {"jsonrpc": "2.0", "id": 1, "result": call}, {"result": call, "jsonrpc": "2.0", "id": 1}):
        answer = await post_parts(client, json.dumps(message).encode(), headers, parts)
        assert answer.status_code == 413 and answer.json()["id"] is None
    assert (await client.post("", json=_LIST, headers=headers)).json()["result"]["tools"]
    for stranger in (_JSON, {**_JSON, **_NOBODYS_SESSION}):
        # Without an open session there is no connection to lose.
        for message in ({"jsonrpc": "2.0", "id": "a", **call}, values):
            answer = await post_parts(client, json.dumps(message).encode(), stranger, parts)
            assert answer.status_code == 413


@pytest.mark.reported("modelcontextprotocol/python-sdk#1295")
@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
async def test_a_call_beyond_its_rate_fails_and_not_the_connection(accept: str) -> None:
    async with running([*TOY, "rate_calls=2", "metrics=true"]) as subject, opened(subject, _REVISION) as wire:
        message = wire.message("tools/list")
        headers = {**wire.headers_for(message), "accept": accept}
        answers = [await wire.send_raw(json.dumps(message).encode(), headers) for _ in range(4)]
        assert [answer.status_code for answer in answers] == [200] * 4
        assert "2 calls a minute" in answers[-1].text and int(answers[-1].headers["retry-after"]) > 0
        assert answers[-1].headers["content-type"] == accept
        await subject.says("refused with 429")
        figures = (await wire.client.get(subject.url.replace("/mcp", "/metrics"))).text
        # By this an operator's alarm knows that somebody is refused.
        assert re.search(r'mcp_http_responses_total\{status="429"\} [1-9]', figures)


@pytest.mark.reported("modelcontextprotocol/conformance#429")
@pytest.mark.reported("platformatic/mcp#25")
async def test_a_session_that_is_ended_twice_was_ended_the_first_time(client: httpx2.AsyncClient) -> None:
    headers = await open_session(client)
    statuses = [(await client.delete("", headers=headers)).status_code for _ in range(2)]
    assert statuses == [200, 404]


@pytest.mark.reported("QwenLM/qwen-code#8784")
@pytest.mark.reported("cap-js/mcp#36")
@pytest.mark.reported("cline/cline#12119")
@pytest.mark.reported("modelcontextprotocol/python-sdk#3257")
async def test_a_stream_of_no_session_is_refused_and_not_opened_and_closed(client: httpx2.AsyncClient) -> None:
    """A client that finds it open opens it again, for ever; one that reads 404 gives the server up."""
    without_session = await client.get("", headers=_EVENTS)
    assert without_session.status_code == 400 and "initialize" in without_session.json()["error"]["message"]
    modern = await client.get("", headers={**_EVENTS, "mcp-protocol-version": MODERN})
    assert (modern.status_code, modern.headers["allow"]) == (405, "POST")


@pytest.mark.reported("modelcontextprotocol/rust-sdk#659")
@pytest.mark.reported("kaeawc/auto-mobile#1942")
@pytest.mark.reported("render-oss/render-mcp-server#26")
async def test_of_streams_that_open_at_once_one_is_left_and_hears_of_changes(
    client: httpx2.AsyncClient, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Streams that the server forgot stayed open, and their clients heard nothing but signs of life."""
    headers = await open_session(client)
    uri = (tmp_path_factory.getbasetemp() / "served0").as_uri()
    subscribe = {"jsonrpc": "2.0", "id": 3, "method": "resources/subscribe", "params": {"uri": uri}}
    assert "result" in (await client.post("", json=subscribe, headers=headers)).json()
    open_texts: dict[int, str] = {}
    ended: list[str] = []
    last_heard = anyio.Event()

    def check() -> None:
        if len(ended) == 11 and any("notifications/resources/updated" in text for text in open_texts.values()):
            last_heard.set()

    async def follow(number: int) -> None:
        open_texts[number] = ""
        async with client.stream("GET", "", headers={**headers, **_EVENTS}) as stream:
            async for part in stream.aiter_text():
                open_texts[number] += part
                check()
        ended.append(open_texts.pop(number))
        check()

    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            for number in range(12):
                tasks.start_soon(follow, number)
            await last_heard.wait()
            await client.delete("", headers=headers)
    assert len(ended) == 12 and "notifications/resources/updated" in ended[-1]


@pytest.mark.reported("modelcontextprotocol/python-sdk#961")
@pytest.mark.reported("IBM/WxMCPServer#17")
@pytest.mark.reported("Effect-TS/effect#6274")
@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18", _REVISION])
async def test_a_message_is_answered_by_one_message_with_its_own_id(client: httpx2.AsyncClient, revision: str) -> None:
    headers = await open_session(client, revision)
    for request_id in ("1", 1, "", "0", 0, -1, 2**53):
        answer = await client.post("", json={**_LIST, "id": request_id}, headers=headers)
        assert answer.text.startswith("{") and answer.json()["result"]["tools"]
        assert json.dumps(answer.json()["id"]) == json.dumps(request_id)


@pytest.mark.reported("honojs/middleware#1799")
@pytest.mark.reported("anthropics/claude-code#45368")
@pytest.mark.reported("PrefectHQ/fastmcp#1664")
@pytest.mark.parametrize("accept", [None, "*/*", "application/json", "text/event-stream", "Application/JSON;q=0.9"])
async def test_a_client_that_accepts_less_than_it_should_is_served(
    client: httpx2.AsyncClient, accept: str | None
) -> None:
    headers = await open_session(client)
    del headers["accept"]
    del client.headers["accept"]
    if accept is not None:
        headers["accept"] = accept
    answer = await client.post("", json=_LIST, headers=headers)
    kind = "text/event-stream" if accept == "text/event-stream" else "application/json"
    assert answer.status_code == 200 and answer.headers["content-type"] == kind and '"tools":[' in answer.text


async def count_sessions(client: httpx2.AsyncClient) -> int:
    text = (await client.get(str(client.base_url).rstrip("/").replace("/mcp", "/metrics"))).text
    return int(float(text.partition("\nmcp_sessions ")[2].partition("\n")[0]))


@pytest.mark.reported("modelcontextprotocol/python-sdk#3300")
@pytest.mark.reported("danny-avila/LibreChat#14248")
async def test_sessions_that_end_and_sessions_that_nobody_ends_leave_nothing(client: httpx2.AsyncClient) -> None:
    headers: dict[str, str] = {}
    for _ in range(40):
        headers = await open_session(client)
        assert await count_sessions(client) <= 16
    assert (await client.post("", json=_LIST, headers=headers)).json()["result"]["tools"]
    before = await count_sessions(client)
    assert (await client.delete("", headers=headers)).status_code == 200
    assert await count_sessions(client) == before - 1


@pytest.mark.reported("modelcontextprotocol/go-sdk#758")
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_what_comes_with_a_no_is_not_looked_at(action: str) -> None:
    result: dict[str, Any] = {}
    async with running(TOY) as subject, opened(subject, _REVISION) as wire:
        message = wire.message("tools/call", {"name": "ask", "arguments": {"questions": ["who?"]}})
        async with wire.client.stream("POST", wire.url, json=message, headers=wire.headers_for(message)) as stream:
            with anyio.fail_after(SECONDS):
                async for line in stream.aiter_lines():
                    if "elicitation/create" in line:
                        question = json.loads(line.removeprefix("data: "))
                        said = {"action": action, "content": {"name": None, "other": ["x"]}}
                        await wire.send_raw(
                            json.dumps({"jsonrpc": "2.0", "id": question["id"], "result": said}).encode()
                        )
                    elif "isError" in line:
                        result = json.loads(line.removeprefix("data: "))["result"]
        assert result == {"content": [{"type": "text", "text": action}], "isError": False}


@pytest.mark.slow
@pytest.mark.reported("leehack/mcp_dart#126")
async def test_a_resumed_call_gets_no_event_of_another() -> None:
    async with running(TOY) as subject, opened(subject, _REVISION) as wire:
        firsts: list[str] = []
        ids: list[Any] = []
        for _ in range(2):
            message = wire.message("tools/call", {"name": "wait", "arguments": {"seconds": 1.5}})
            async with wire.client.stream("POST", wire.url, json=message, headers=wire.headers_for(message)) as stream:
                firsts.append(await first_event_id(stream))
            ids.append(message["id"])
        for first, request_id in zip(firsts, ids, strict=True):
            resuming = {**wire.headers_for({}), **_EVENTS, "last-event-id": first}
            with anyio.fail_after(SECONDS):
                text = (await wire.client.get(wire.url, headers=resuming)).text
            lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
            assert [json.loads(line)["id"] for line in lines] == [request_id]


@pytest.mark.reported("netdata/netdata#22258")
@pytest.mark.reported("perplexityai/modelcontextprotocol#137")
@pytest.mark.reported("modelcontextprotocol/inspector#841")
async def test_a_page_may_send_each_header_of_the_protocol_and_read_its_session(client: httpx2.AsyncClient) -> None:
    names = {"authorization", "content-type", "last-event-id", "mcp-method", "mcp-name", "mcp-protocol-version"}
    names.add("mcp-session-id")
    for method in ("POST", "GET", "DELETE"):
        asked = {"access-control-request-method": method, "access-control-request-headers": ", ".join(sorted(names))}
        answer = await client.options("", headers={"origin": _PAGE, **asked})
        assert answer.is_success and answer.headers["access-control-allow-origin"] == _PAGE
        assert names <= set(answer.headers["access-control-allow-headers"].lower().replace(" ", "").split(","))
        assert method in answer.headers["access-control-allow-methods"]
    begun = await client.post("", json=initialize(), headers={**_JSON, "origin": _PAGE})
    assert "mcp-session-id" in begun.headers["access-control-expose-headers"].lower()


@pytest.mark.slow
@pytest.mark.reported("modelcontextprotocol/typescript-sdk#2499")
async def test_a_call_is_resumed_by_an_old_id_after_a_line_that_broke_twice() -> None:
    async with running(TOY) as subject, opened(subject, _REVISION) as wire:
        message = wire.message("tools/call", {"name": "wait", "arguments": {"seconds": 2}})
        headers = wire.headers_for(message)
        async with wire.client.stream("POST", wire.url, json=message, headers=headers) as stream:
            first = await first_event_id(stream)
        resuming = {**wire.headers_for({}), **_EVENTS, "last-event-id": first}
        async with wire.client.stream("GET", wire.url, headers=resuming) as stream:
            assert await first_event_id(stream) != first
        with anyio.fail_after(SECONDS):
            answer = await wire.client.get(wire.url, headers=resuming)
        assert '"waited"' in answer.text and subject.said.count("waiting") == 1


async def first_event_id(stream: httpx2.Response) -> str:
    with anyio.fail_after(SECONDS):
        async for line in stream.aiter_lines():
            if line.startswith("id: "):
                return line.removeprefix("id: ")
    raise AssertionError("the stream ended without an event")


@pytest.mark.reported("modelcontextprotocol/typescript-sdk#583")
@pytest.mark.reported("modelcontextprotocol/python-sdk#412")
@pytest.mark.reported("modelcontextprotocol/python-sdk#464")
@pytest.mark.reported("modelcontextprotocol/modelcontextprotocol#319")
@pytest.mark.parametrize("prefix", ["/files", "/sse"])
async def test_an_old_client_behind_a_path_of_a_proxy_sends_its_messages_there(prefix: str, tmp_path: Path) -> None:
    """The proxy may remove the path or not: what comes back to the server is served."""
    command = [sys.executable, "-m", "mcp_fs", "--transport", "sse", "--port", "0"]
    command += ["--public-url", f"https://example.org{prefix}/sse", str(tmp_path)]
    async with running(command) as subject:
        async with httpx2.AsyncClient(trust_env=False) as client, client.stream("GET", subject.url) as answer:
            assert f"data: {prefix}/messages/?session_id=" in await anext(answer.aiter_text())
        for path in ("/sse", f"{prefix}/sse"):
            url = subject.url.removesuffix("/sse") + path
            async with sse_client(url) as streams, ClientSession(*streams) as session:
                with anyio.fail_after(SECONDS):
                    await session.initialize()
                    assert not (await session.call_tool("list_directory", {"path": "."})).is_error


@pytest.mark.reported("can1357/oh-my-pi#6464")
@pytest.mark.parametrize("revision", [_REVISION, MODERN])
async def test_half_of_a_character_is_refused_and_not_written_as_another(subject: Subject, revision: str) -> None:
    async with opened(subject, revision) as wire:
        for tool, arguments in (
            ("write_file", {"path": "half.txt", "content": "cut \ud83d"}),
            ("write_file", {"path": "half\udc00.txt", "content": "whole"}),
            ("edit_file", {"path": "half.txt", "edits": [{"old_text": "cut", "new_text": "\udc00"}]}),
        ):
            line = json.dumps(wire.message("tools/call", {"name": tool, "arguments": arguments})).encode()
            headers = {"mcp-protocol-version": revision, "mcp-method": "tools/call", "mcp-name": tool}
            answer = await wire.send_raw(line, headers if wire.modern else {})
            assert "holds half of a character" in answer.text
        assert "half" not in text_of(await wire.call("list_tree"))


@pytest.mark.reported("n8n-io/n8n#21716")
@pytest.mark.reported("n8n-io/n8n#37308")
@pytest.mark.reported("n8n-io/n8n#21500")
@pytest.mark.reported("cline/cline#10426")
@pytest.mark.reported("hi-godot/godot-ai#193")
@pytest.mark.reported("MemPalace/mempalace#322")
@pytest.mark.parametrize(
    "added",
    [
        {"toolCallId": "call_0BCI", "tool": "list_tree"},
        {"sessionId": "0b1f", "action": "sendMessage", "chatInput": "What is there?", "toolCallId": "toolu_01"},
        {"task_progress": "- [x] look around"},
        {"wait_for_previous": True},
        {"random_string": "dummy"},
    ],
    ids=["n8n", "n8n's chat", "cline", "gemini", "cursor"],
)
async def test_a_call_is_run_whatever_its_host_added_to_the_arguments(
    client: httpx2.AsyncClient, added: dict[str, Any]
) -> None:
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "list_tree", "arguments": added}}
    answer = await client.post("", json=call, headers=await open_session(client))
    assert answer.json()["result"]["isError"] is False, answer.text


@pytest.mark.reported("bethington/ghidra-mcp#152")
@pytest.mark.reported("ericwanghp/ComfyUI_MCP#3")
async def test_a_client_at_the_wrong_path_reads_the_right_one(subject: Subject) -> None:
    async with httpx2.AsyncClient(timeout=SECONDS, trust_env=False) as client:
        for method, path in (("POST", "/"), ("POST", "//mcp"), ("GET", "/sse"), ("GET", "/.well-known/nothing")):
            answer = await client.request(method, subject.url.replace("/mcp", path), headers=_EVENTS)
            assert answer.status_code == 404 and answer.text.endswith("at /mcp.\n")


@pytest.mark.slow
@pytest.mark.reported("microsoft/vscode#246753")
@pytest.mark.reported("stacklok/toolhive#492")
async def test_a_client_that_tries_the_newer_transport_first_learns_that_it_is_the_old_one(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mcp_fs", "--transport", "sse", "--port", "0", str(tmp_path)]
    async with running(command) as subject, httpx2.AsyncClient(timeout=SECONDS, trust_env=False) as client:
        assert (await client.post(subject.url, json=initialize(), headers=_JSON)).status_code == 405
        elsewhere = await client.post(subject.url.replace("/sse", "/mcp"), json=initialize(), headers=_JSON)
        assert elsewhere.status_code == 404 and "the older SSE transport, at /sse." in elsewhere.text
        async with client.stream("GET", subject.url, headers=_EVENTS) as stream:
            assert await anext(stream.aiter_lines()) == "event: endpoint"


@pytest.mark.slow
@_NEEDS_SIGNALS
@pytest.mark.reported("anthropics/claude-code#91470")
@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_what_was_sent_to_a_machine_that_slept_is_answered_when_it_wakes(transport: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mcp_fs"]
    if transport == "stdio":
        async with StdioWire([*command, str(tmp_path)], revision=_REVISION) as wire:
            await wire.open()
            await _ask_a_sleeper(wire, wire.process)
        return
    command += ["--transport", "http", "--port", "0"]
    async with running([*command, str(tmp_path)]) as subject, opened(subject, _REVISION) as wire:
        await _ask_a_sleeper(wire, subject.process)


async def _ask_a_sleeper(wire: HttpWire | StdioWire, process: anyio.abc.Process) -> None:
    async def ask() -> None:
        assert (await wire.request("tools/list"))["tools"]

    process.send_signal(signal.SIGSTOP)
    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        process.send_signal(signal.SIGCONT)


@pytest.mark.slow
@_NEEDS_SIGNALS
@pytest.mark.reported("aaronsb/google-workspace-mcp#149")
@pytest.mark.reported("modelcontextprotocol/typescript-sdk#2002")
@pytest.mark.reported("PromptPartner/bexio-mcp-server#18")
def test_a_server_on_sockets_outlives_its_log_and_goes_with_its_client(tmp_path: Path) -> None:
    """Some hosts give a server sockets for its three streams, and lose that of its log first."""
    client, theirs = socket.socketpair()
    log, their_log = socket.socketpair()
    command = [sys.executable, "-m", "mcp_fs", "--log-level", "debug", str(tmp_path)]
    end = theirs.fileno()
    with subprocess.Popen(command, stdin=end, stdout=end, stderr=their_log.fileno()) as process:
        for lost in (theirs, their_log, log):
            lost.close()
        refused = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "no_such_tool"}}
        with client, client.makefile("rwb") as lines:
            client.settimeout(SECONDS)
            for message in (initialize(), _INITIALIZED, _LIST, refused):
                lines.write(json.dumps(message).encode() + b"\n")
                lines.flush()
                if "id" in message:
                    assert json.loads(lines.readline())["id"] == message["id"]
        assert process.wait(SECONDS) == 0


@pytest.mark.slow
@_NEEDS_SIGNALS
@pytest.mark.reported("anthropics/claude-ai-mcp#116")
async def test_a_host_that_kills_the_first_servers_that_it_starts_gets_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    command = [sys.executable, "-m", "mcp_fs", str(tmp_path)]
    for share in range(4):
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL) as process:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(json.dumps(initialize()).encode() + b"\n")
            process.stdin.flush()
            if share % 2:
                process.stdout.read(share)  # It is in the middle of its answer.
            process.kill()
    async with StdioWire(command, revision=_REVISION) as wire:
        await wire.open()
        assert (await wire.request("tools/list"))["tools"]


def servers_of(folder: Path) -> list[str]:
    """Return the processes of servers of `folder`."""
    words = ["-m", "mcp_fs", str(folder)]
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "cmdline").read_text("utf-8", "replace").split("\0")[1:4] == words:
                found.append(process.name)
    return found


async def no_servers_of(folder: Path) -> None:
    with anyio.fail_after(SECONDS):
        while servers_of(folder):
            await anyio.sleep(0.02)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no /proc")
@pytest.mark.reported("supercorp-ai/supergateway#141")
@pytest.mark.reported("supercorp-ai/supergateway#155")
async def test_a_gateway_leaves_no_server_behind(tmp_path: Path) -> None:
    """It starts a server through a shell, and ends no more than the shell, or is killed itself."""
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    served = shlex.join([sys.executable, "-m", "mcp_fs", str(tmp_path)])
    command = [npm.NODE, npm.program(npm.installed(SUPERGATEWAY), "supergateway"), "--stdio", served]
    command += ["--outputTransport", "streamableHttp", "--stateful", "--port", str(port)]
    none = subprocess.DEVNULL
    async with await anyio.open_process(
        command, stdin=none, stdout=none, stderr=none, env=npm.environment()
    ) as gateway:
        try:
            await listens(port)
            async with HttpWire(url, revision=_REVISION) as wire:
                await wire.open()
                assert len(servers_of(tmp_path)) == 1
            await no_servers_of(tmp_path)
            async with HttpWire(url, revision=_REVISION) as wire:
                await wire.open()
                assert len(servers_of(tmp_path)) == 1
                gateway.kill()
                await no_servers_of(tmp_path)
                del wire.headers["mcp-session-id"]
        finally:
            if gateway.returncode is None:
                gateway.kill()


async def listens(port: int) -> None:
    with anyio.fail_after(SECONDS):
        while True:
            with suppress(OSError):
                await (await anyio.connect_tcp("127.0.0.1", port)).aclose()
                return
            await anyio.sleep(0.02)
