"""What is read as a message beside the stream of an older client, by whom it is sent, and how long it may be."""

import json
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import httpx2
import pytest
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import MCPServer
from pydantic import AnyHttpUrl
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from mcp_batteries.testing.wire.base import SECONDS
from mcp_batteries.transports.http.gate.sse_messages import SseMessages, find_endpoint
from mcp_batteries.transports.http.refusals import Refusals
from shared.http_subject import Subject, running

pytestmark = [pytest.mark.anyio, pytest.mark.process]

_MAX_BYTES = 4 * 1024 * 1024
_JSON = {"content-type": "application/json"}
_HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}},
}


@pytest.fixture
async def subject(tmp_path: Path) -> AsyncGenerator[Subject]:
    async with running([sys.executable, "-m", "mcp_fs", "--transport", "sse", "--port", "0", str(tmp_path)]) as subject:
        yield subject


async def test_a_message_that_grows_when_it_is_passed_on_is_answered(subject: Subject) -> None:
    """The SDK reads `1000000000000000.0` where the client has sent `1e15`."""
    numbers = ",".join(["1e15"] * 90_000)
    head = '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"list_directory","arguments":'
    head += f'{{"x":[{numbers}],"y":"'
    message = head + "y" * (_MAX_BYTES - len(head) - 10) + '"}}}'
    async with (
        httpx2.AsyncClient(timeout=SECONDS, trust_env=False) as client,
        client.stream("GET", subject.url, headers={"accept": "text/event-stream"}) as stream,
    ):
        events = (line[6:] async for line in stream.aiter_lines() if line.startswith("data: "))
        endpoint = subject.url.removesuffix("/sse") + await anext(events)
        with anyio.fail_after(SECONDS):
            await client.post(endpoint, json=_HELLO)
            assert json.loads(await anext(events))["id"] == 1
            await client.post(endpoint, json={"jsonrpc": "2.0", "method": "notifications/initialized"})
            assert (await client.post(endpoint, content=message, headers=_JSON)).status_code == 202
            assert json.loads(await anext(events))["id"] == 7


async def test_what_is_posted_elsewhere_is_no_message(subject: Subject) -> None:
    address = subject.url.removesuffix("/sse")
    async with httpx2.AsyncClient(base_url=address, timeout=SECONDS, trust_env=False) as client:
        answer = await client.post("/mcp", content=b"{", headers=_JSON)
    assert answer.status_code == 404 and "speaks the older SSE transport, at /sse" in answer.text


@pytest.mark.parametrize(
    ("begun", "status"), [(b'{"jsonrpc":"2.0","id":7.0,"a":"', 202), (b'{"jsonrpc":"2.0","a":"', 408)]
)
async def test_a_message_that_comes_too_late_is_refused_where_its_sender_waits(begun: bytes, status: int) -> None:
    """The connection ends all the same: whoever sends a byte now and then would keep it."""
    passed_on: list[Message] = []
    sent: list[Message] = []

    async def endpoint(scope: Scope, receive: Receive, send: Send) -> None:
        passed_on.append(await receive())
        await PlainTextResponse("Accepted", 202)(scope, receive, send)

    parts = [{"type": "http.request", "body": begun, "more_body": True}]

    async def receive() -> Message:
        if not parts:
            await anyio.sleep_forever()
        return parts.pop()

    async def send(part: Message) -> None:
        sent.append(part)

    scope = {"type": "http", "method": "POST", "path": "/messages/", "headers": []}
    with anyio.fail_after(SECONDS):
        await SseMessages(endpoint, max_body=_MAX_BYTES, seconds=0.01, refusals=Refusals())(scope, receive, send)
    assert sent[0]["status"] == status and (b"connection", b"close") in sent[0]["headers"]
    assert [json.loads(part["body"])["id"] for part in passed_on] == [7] * (status == 202)


class _Nobody:
    async def verify_token(self, token: str) -> AccessToken | None:
        return None


async def test_a_token_is_checked_before_the_message_is_read() -> None:
    url = AnyHttpUrl("https://issuer.example.org")
    auth = AuthSettings(issuer_url=url, resource_server_url=url, validate_token_resource=True)
    application = MCPServer("guarded", auth=auth, token_verifier=_Nobody()).sse_app()
    endpoint = find_endpoint(application, "/messages")
    endpoint.app = SseMessages(endpoint.app, max_body=_MAX_BYTES, seconds=SECONDS, refusals=Refusals())
    transport = httpx2.ASGITransport(application)
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
        for body in (b"{", b"x" * (_MAX_BYTES + 1)):
            assert (await client.post("/messages/", content=body, headers=_JSON)).status_code == 401
