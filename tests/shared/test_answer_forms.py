"""In which form a client is answered: as it accepts it, where an answer of that form is possible."""

import json
from functools import partial
from typing import Any

import anyio
import httpx2
import pytest

from mcp_batteries.testing.wire import MODERN, HttpWire
from mcp_batteries.transports.http.gate.answer_forms import parse_accept, send_as_events
from shared.http_subject import TOY, opened, running

pytestmark = pytest.mark.anyio

BOTH, JSON, EVENTS, NEITHER = (True, True), (True, False), (False, True), (False, False)


@pytest.mark.parametrize(
    ("accept", "forms"),
    [
        ("application/json, text/event-stream", BOTH), ("", BOTH), (" , ", BOTH), ("*/*", BOTH),
        ("application/json", JSON), ("Application/JSON; charset=utf-8", JSON), ("application/*", JSON),
        ("text/event-stream", EVENTS), ("text/*;q=0.5", EVENTS), ("text/html, text/event-stream", EVENTS),
        ("*/*, application/json;q=0", EVENTS), ("text/event-stream; q=0.0, application/*", JSON),
        ("application/json;q=nonsense", JSON), ("text/html", NEITHER), ("*/*;q=0", NEITHER), ("json", NEITHER),
        ("application/jsonp, text/event-streams", NEITHER), ("application/*;q=0, application/json", JSON),
    ],
)  # fmt: skip
def test_what_a_header_accepts(accept: str, forms: tuple[bool, bool]) -> None:
    assert parse_accept(accept) == forms


async def as_events(*parts: dict[str, Any]) -> list[dict[str, Any]]:
    sent: list[Any] = []

    async def send(part: Any) -> None:
        sent.append(part)

    converted = send_as_events(send)
    for part in parts:
        await converted(part)
    return sent


async def test_a_message_becomes_one_event_and_an_error_of_http_stays() -> None:
    headers = [(b"content-length", b"4"), (b"content-type", b"application/json"), (b"mcp-session-id", b"s")]
    start, body = await as_events(
        {"type": "http.response.start", "status": 200, "headers": headers},
        {"type": "http.response.body", "body": b'{"a"', "more_body": True},
        {"type": "http.response.body", "body": b":1}\n"},
    )
    assert dict(start["headers"])[b"content-type"] == b"text/event-stream"
    assert (b"mcp-session-id", b"s") in start["headers"]
    assert b"content-length" not in dict(start["headers"])
    assert body["body"] == b'event: message\r\ndata: {"a":1}\r\n\r\n' and not body.get("more_body")
    for status, kind in ((400, b"application/json"), (200, b"text/event-stream"), (202, b"application/json")):
        parts: list[dict[str, Any]] = [
            {"type": "http.response.start", "status": status, "headers": [(b"content-type", kind)]},
            {"type": "http.response.body", "body": b"{}"},
        ]
        assert await as_events(*parts) == parts


@pytest.mark.slow
@pytest.mark.share(1)
@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
async def test_a_call_that_lasts_or_tells_something_is_answered_in_the_form_that_is_accepted(revision: str) -> None:
    async with running(TOY) as subject, opened(subject, revision) as wire:
        for name, arguments in (("wait", {"seconds": 1.2}), ("progress", {})):
            message = wire.message("tools/call", {"name": name, "arguments": arguments})
            message["params"]["_meta"] = {**message["params"].get("_meta", {}), "progressToken": "half way"}
            for accept in ("application/json", "text/event-stream"):
                headers = {**wire.headers_for(message), "accept": accept}
                answer = await wire.client.post(subject.url, json=message, headers=headers)
                assert answer.headers["content-type"].partition(";")[0] == accept
                told = answer.text.count("notifications/progress")
                assert told == (name == "progress" and accept == "text/event-stream")
                last = answer.text.strip().rpartition("data: ")[2]
                assert json.loads(last)["result"]["content"]


@pytest.mark.slow
async def test_an_array_is_answered_by_one_where_no_stream_is_accepted() -> None:
    async with running(TOY) as subject, opened(subject, "2025-03-26") as wire:
        headers = {**wire.headers_for({"method": "ping"}), "accept": "application/json"}
        post = partial(wire.client.post, subject.url, headers=headers)
        pings: list[Any] = [{"jsonrpc": "2.0", "id": number, "method": "ping"} for number in (1, "1", 2)]
        answer = await post(json=[*pings, 5])
        assert answer.headers["content-type"] == "application/json"
        assert sorted(str(item["id"]) for item in answer.json()) == ["1", "1", "2", "None"]
        notice = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
        assert (await post(json=[notice])).status_code == 202
        assert (await post(json=pings, headers={**headers, "mcp-session-id": "gone"})).status_code == 404


@pytest.mark.slow
async def test_without_streams_only_one_message_is_possible() -> None:
    async with running([*TOY, "json_response=True"]) as subject, opened(subject, MODERN) as wire:
        message = wire.message("tools/list")
        for accept, status in (("application/json", 200), ("text/event-stream", 406), ("*/*", 200)):
            answer = await wire.client.post(
                subject.url, json=message, headers={**wire.headers_for(message), "accept": accept}
            )
            assert answer.status_code == status
            assert status == 200 or "`Accept: application/json`" in answer.json()["error"]["message"]


@pytest.mark.slow
async def test_who_opens_a_session_anew_gets_another() -> None:
    """A client that comes back after a restart, or that was told 404, may still send its old id."""
    async with running(TOY) as subject, HttpWire(subject.url) as wire, HttpWire(subject.url) as other:
        ids: set[str] = set()
        for before in ("0" * 32, "", None):
            if before is not None:
                wire.headers["mcp-session-id"] = before
            await wire.open()
            ids.add(wire.headers["mcp-session-id"])
            assert await wire.call("echo", text="there")
        assert len(ids) == 3
        with anyio.fail_after(20):
            await other.open()
        other.headers["mcp-session-id"] = wire.headers["mcp-session-id"]
        assert await other.call("echo", text="a session that is in use goes on")


@pytest.mark.slow
async def test_the_end_of_a_session_is_told_as_hosts_look_for_it() -> None:
    """Claude Code searches a 404 for these characters, and without them sends the old id until it is restarted."""
    notice = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    async with running(TOY) as subject, opened(subject, "2025-11-25") as wire:
        for method, message in (("POST", wire.message("ping")), ("POST", notice), ("GET", None), ("DELETE", None)):
            headers = {**wire.headers_for(message or {}), "mcp-session-id": "0" * 32, "accept": "text/event-stream"}
            answer = await wire.client.request(method, subject.url, json=message, headers=headers)
            assert answer.status_code == 404 and '"code":-32001' in answer.text and "Session not found" in answer.text


@pytest.mark.slow
async def test_who_is_refused_leaves_no_session() -> None:
    """The SDK registers a session before it reads `initialize`, and names it beside an error with status 200."""
    opening = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}
    async with running([*TOY, "metrics=True"]) as subject, httpx2.AsyncClient(trust_env=False) as client:
        for accept in ("application/json", "text/event-stream"):
            answer = await client.post(subject.url, json=opening, headers={"accept": accept})
            assert "-32602" in answer.text and "mcp-session-id" not in answer.headers
        for method in ("GET", "HEAD", "OPTIONS", "DELETE", "PUT"):
            answer = await client.request(method, subject.url)
            assert answer.status_code >= 400 and "mcp-session-id" not in answer.headers
        page = (await client.get(subject.url.replace("/mcp", "/metrics"))).text
        assert "\nmcp_sessions 0.0\n" in page
