"""Bad requests over HTTP, in each era: the server answers as HTTP, JSON-RPC and MCP say, and lives.

Two tables. `requests` are whole requests that are wrong in a header, in the body or in what they ask for; what is
no JSON-RPC message is shared with the pipe. `raw` are bytes on a socket that no client library would send. The
cases name no tool, so any server can be the subject.
"""

import gzip
import json
import socket
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest

from e2e.test_bad_input_stdio import about_case, no_json, no_message, not_utf8, odd_but_right
from mcp_batteries.testing.wire import MODERN, HttpWire, Message
from mcp_batteries.testing.wire.base import SECONDS
from shared.http_subject import FILES, TOY, Subject, running
from thinning import few

ERAS = ("2025-11-25", MODERN)
SUBJECTS = {"toy": [*TOY, "body_seconds=1"], "mcp-fs": FILES}

PARSE, INVALID, UNKNOWN, PARAMS = -32700, -32600, -32601, -32602
MISMATCH, VERSION, ENDED = -32020, -32022, -32001

pytestmark = pytest.mark.anyio


@dataclass(frozen=True)
class Case:
    """What is different from a right `tools/list`, and what must come back.

    `headers` go over the usual ones, None takes one away. `status` 200 means that the request is served.
    `code` None with an error status is for refusals below JSON-RPC, whose body is a line of text or empty.
    """

    name: str
    status: int
    code: int | None = None
    headers: dict[str, str | None] = field(default_factory=dict[str, str | None])
    body: bytes | None = None
    method: str = "POST"
    path: str = "/mcp"
    id: Any = None
    says: str = ""


def below_json_rpc() -> list[Case]:
    """Refused in every era, whatever the body says."""
    hosts = {
        "foreign": "evil.example.org",
        "foreign with our port": "evil.example.org:8000",
        "user information": "localhost:80@evil.example.org",
        "prefix": "localhost.evil.example.org",
        "suffix": "evil-localhost",
        "path": "localhost/evil",
        "list": "localhost, evil.example.org",
        "port of letters": "localhost:http",
        "port too long": "localhost:123456",
        "bare IPv6": "::1",
        "open bracket": "[::1",
        "decimal address": "2130706433",
        "address and more": "127.0.0.1.example.org",
        "wildcard": "*",
        "long": "a" * 5000,
        "not ASCII": "löcalhost",
    }
    origins = {
        "foreign": "https://evil.example.org",
        "null": "null",
        "prefix": "http://localhost.evil.example.org",
        "port and more": "http://localhost:1.evil.example.org",
        "user information": "http://localhost:80@evil.example.org",
        "path": "http://localhost/x",
        "scheme": "file://localhost",
        "no scheme": "localhost",
        "list": "http://localhost http://evil.example.org",
        "wildcard": "*",
        "other address": "http://127.0.0.2",
    }
    return [
        *(Case(f"host {name}", 421, headers={"host": value}) for name, value in hosts.items()),
        *(Case(f"origin {name}", 403, headers={"origin": value}) for name, value in origins.items()),
        Case("origin on a preflight", 403, method="OPTIONS", headers={"origin": "https://evil.example.org"}),
        Case("host on a stream", 421, method="GET", headers={"host": "evil.example.org"}),
        Case("path /", 404, path="/"),
        Case("path above", 404, path="/../etc/passwd"),
        Case("path encoded", 404, path="/%2e%2e/etc/passwd"),
        Case("path doubled", 404, path="//mcp"),
        Case("path of the other transport", 404, path="/sse"),
        Case("path with NUL", 404, path="/mcp%00"),
    ]


def in_every_era(wire: HttpWire) -> list[Case]:
    right = json.dumps({**wire.message("tools/list"), "id": 901}).encode()
    padding = b" " * (4 * 1024 * 1024)
    longer = right + padding[len(right) - 1 :]
    if wire.revision == MODERN:
        too_long = Case("one byte too long", 413, INVALID, body=longer)
    else:
        # In a session it is an error of the call, and not of the connection.
        too_long = Case("one byte too long", 200, INVALID, body=longer, id=901)
    types = {
        "missing": None,
        "text": "text/plain",
        "form": "application/x-www-form-urlencoded",
        "upload": "multipart/form-data; boundary=x",
        "longer": "application/jsonp",
        "list": "text/plain, application/json",
        "event stream": "text/event-stream",
        "empty": "",
    }
    served: dict[str, dict[str, str | None]] = {
        "type in capitals": {"content-type": "Application/JSON"},
        "type with charset": {"content-type": "application/json; charset=UTF-8"},
        "accept anything": {"accept": "*/*"},
        "accept one message": {"accept": "application/json"},
        "accept one message of its kind": {"accept": "application/*"},
        "accept events": {"accept": "text/event-stream"},
        "accept events rather than a message": {"accept": "*/*, application/json;q=0"},
        "accept empty": {"accept": ""},
        "no accept": {"accept": None},
        "accept with weights": {"accept": "application/json;q=0.1, text/event-stream;q=0.9"},
        "host in capitals": {"host": "LOCALHOST"},
        "host by any address": {"host": "192.168.1.20:8000"},
        "local origin": {"origin": "http://localhost:6274"},
        "unknown headers": {"x-anything": "x" * 10_000, "x-forwarded-for": "10.0.0.1"},
        "token nobody asked for": {"authorization": "Bearer x"},
    }
    return [
        *(Case(f"type {name}", 415, INVALID, {"content-type": value}) for name, value in types.items()),
        *(Case(name, 200, headers=headers, id=901) for name, headers in served.items()),
        *(Case(f"encoding {name}", 415, INVALID, {"content-encoding": name}) for name in ("gzip", "br", "x")),
        Case("compressed", 415, INVALID, {"content-encoding": "gzip"}, gzip.compress(right)),
        Case("compressed in secret", 400, PARSE, body=gzip.compress(right)),
        Case("empty body", 400, PARSE, body=b""),
        Case("blank body", 400, PARSE, body=b" \r\n "),
        Case("two messages", 400, PARSE, body=right + b"\n" + right),
        Case("longest body", 200, body=right + padding[len(right) :], id=901),
        Case("a million lists", 413, INVALID, body=b'{"x":[' + b"[]," * 1_000_000 + b"0]}"),
        Case("a million members", 413, INVALID, body=b'{"x":' + b'{"a":1,' * 500_000),
        Case("a million commas in a text", 200, body=_beside(right, '"\\,' * 400_000), id=901),
        too_long,
        *(Case(f"method {name}", 405, method=name) for name in ("PUT", "PATCH", "TRACE", "OPTIONS", "HEAD")),
        Case("query", 200, path="/mcp?token=x&session_id=y", id=901),
    ]


def _beside(message: bytes, text: str) -> bytes:
    """`message` with `text` as a parameter that nobody asked for."""
    whole = json.loads(message)
    return json.dumps({**whole, "params": {**whole.get("params", {}), "other": text}}).encode()


def legacy(wire: HttpWire) -> list[Case]:
    def asks(method: str, **params: Any) -> bytes:
        return json.dumps({"jsonrpc": "2.0", "id": 901, "method": method, "params": params}).encode()

    client = {"name": "again", "version": "1"}
    opening = asks("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=client)
    return [
        *(Case(f"accept {value}", 406, INVALID, {"accept": value}, id=901) for value in _UNACCEPTABLE),
        Case("stream without accept", 406, INVALID, {"accept": "application/json"}, method="GET"),
        Case("no session", 400, INVALID, {"mcp-session-id": None}, id=901),
        Case("no session on a stream", 400, INVALID, {"mcp-session-id": None}, method="GET"),
        Case("no session to end", 400, INVALID, {"mcp-session-id": None}, method="DELETE"),
        Case("unknown session", 404, ENDED, {"mcp-session-id": "0" * 32}, id=901),
        Case("unknown session on a stream", 404, ENDED, {"mcp-session-id": "0" * 32}, method="GET"),
        Case("unknown session to end", 404, ENDED, {"mcp-session-id": "0" * 32}, method="DELETE"),
        Case("empty session", 404, ENDED, {"mcp-session-id": ""}, id=901),
        Case("session that is a path", 404, ENDED, {"mcp-session-id": "../../etc/passwd"}, id=901),
        Case("long session", 404, ENDED, {"mcp-session-id": "a" * 8000}, id=901),
        Case(
            "unknown revision",
            400,
            PARAMS,
            {"mcp-protocol-version": "1999-01-01"},
            id=901,
            says="`initialize` agreed on",
        ),
        Case(
            "revision of the other era",
            400,
            PARAMS,
            {"mcp-protocol-version": MODERN},
            id=901,
            says="`initialize` agreed on",
        ),
        Case(
            "revision that is none",
            400,
            PARAMS,
            {"mcp-protocol-version": "x" * 5000},
            id=901,
            says="`initialize` agreed on",
        ),
        Case("no revision", 200, headers={"mcp-protocol-version": None}, id=901),
        *(
            Case(
                f"{name} without a session",
                400,
                VERSION,
                {"mcp-session-id": None, "mcp-protocol-version": value},
                id=901,
                says="MCP-Protocol-Version is",
            )
            for name, value in {"unknown revision": "1999-01-01", "empty revision": "", "no date": "x" * 5000}.items()
        ),
        Case(
            "handshake under a revision without one",
            400,
            PARAMS,
            {"mcp-session-id": None, "mcp-protocol-version": MODERN},
            asks("initialize", protocolVersion="2025-11-25"),
            id=901,
            says="Leave the header out",
        ),
        Case("handshake in a session that is gone", 200, None, {"mcp-session-id": "0" * 32}, opening, id=901),
        Case("handshake in a session of events", 200, None, {"accept": "text/event-stream"}, opening, id=901),
        Case("notification", 202, body=b'{"jsonrpc":"2.0","method":"notifications/nobody_knows"}'),
        Case("answer to nothing", 202, body=b'{"jsonrpc":"2.0","id":98765,"result":{}}'),
        Case("answer that is none", 202, body=b'{"jsonrpc":"2.0","id":98765,"result":null}'),
        Case("cancel of nothing", 202, body=b'{"jsonrpc":"2.0","method":"notifications/cancelled"}'),
        Case("unknown method", 200, UNKNOWN, body=asks("nobody/knows"), id=901),
        Case("method of the other era", 200, UNKNOWN, body=asks("server/discover"), id=901),
        Case("call of nothing", 200, PARAMS, body=asks("tools/call"), id=901),
        Case("call of a number", 200, PARAMS, body=asks("tools/call", name=5), id=901),
        Case("call with arguments array", 200, PARAMS, body=asks("tools/call", name="x", arguments=[]), id=901),
        Case("read of nothing", 200, PARAMS, body=asks("resources/read"), id=901),
        Case("prompt of nothing", 200, PARAMS, body=asks("prompts/get"), id=901),
        Case("cursor a number", 200, PARAMS, body=asks("tools/list", cursor=5), id=901),
        Case("meta an array", 200, PARAMS, body=asks("tools/list", _meta=[1]), id=901),
        Case("handshake of nothing", 200, PARAMS, {"mcp-session-id": None}, asks("initialize"), id=901),
    ]


def modern(wire: HttpWire) -> list[Case]:
    envelope = wire.envelope()
    version, _, capabilities = envelope

    def asks(method: str, **params: Any) -> bytes:
        message = {"jsonrpc": "2.0", "id": 901, "method": method, "params": {"_meta": envelope, **params}}
        return json.dumps(message).encode()

    def named(method: str, name: str | None = None) -> dict[str, str | None]:
        return {"mcp-method": method, "mcp-name": name}

    call = asks("tools/call", name="nobody", arguments={})
    mismatched: dict[str, tuple[dict[str, str | None], bytes | None]] = {
        "no method header": ({"mcp-method": None}, None),
        "empty method header": ({"mcp-method": ""}, None),
        "method header in capitals": ({"mcp-method": "Tools/List"}, None),
        "other method header": ({"mcp-method": "tools/call"}, None),
        "no name header": (named("tools/call"), call),
        "other name header": (named("tools/call", "somebody"), call),
        "name header in capitals": (named("tools/call", "Nobody"), call),
        "name header not base64": (named("tools/call", "=?base64?!!?="), call),
        "name header of other base64": (named("tools/call", "=?base64?c29tZWJvZHk=?="), call),
        "read under another name": (named("resources/read", "x://a"), asks("resources/read", uri="x://b")),
        "prompt under another name": (named("prompts/get", "a"), asks("prompts/get", name="b")),
        "unknown revision header": ({"mcp-protocol-version": "2099-01-01"}, None),
        "empty revision header": ({"mcp-protocol-version": ""}, None),
        "revision header that is none": ({"mcp-protocol-version": "x" * 5000}, None),
        "other revision in the body": ({}, asks("tools/list", _meta={**envelope, version: "2099-01-01"})),
        "older revision in the body": ({}, asks("tools/list", _meta={**envelope, version: "2025-11-25"})),
        "revision in the body a number": ({}, asks("tools/list", _meta={**envelope, version: 2026})),
        "handshake": ({}, asks("initialize", protocolVersion="2025-11-25")),
    }
    params: dict[str, tuple[dict[str, str | None], bytes]] = {
        "no envelope": ({}, asks("tools/list", _meta={})),
        "envelope an array": ({}, asks("tools/list", _meta=[])),
        "envelope without capabilities": ({}, asks("tools/list", _meta={version: MODERN})),
        "envelope without revision": ({}, asks("tools/list", _meta={capabilities: {}})),
        "capabilities text": ({}, asks("tools/list", _meta={**envelope, capabilities: "all"})),
        "params null": ({}, b'{"jsonrpc":"2.0","id":901,"method":"tools/list","params":null}'),
        "no params": ({}, b'{"jsonrpc":"2.0","id":901,"method":"tools/list"}'),
        "call of nothing": (named("tools/call"), asks("tools/call")),
        "call with arguments array": (named("tools/call", "x"), asks("tools/call", name="x", arguments=[])),
        "read of nothing": (named("resources/read"), asks("resources/read")),
        "cursor a number": ({}, asks("tools/list", cursor=5)),
        "listen to nothing": (named("subscriptions/listen"), asks("subscriptions/listen")),
        "listen to text": (named("subscriptions/listen"), asks("subscriptions/listen", notifications="all")),
    }
    unknown = "2099-01-01"
    listen = (named("subscriptions/listen"), asks("subscriptions/listen", notifications={}))
    return [
        *(Case(f"accept {value}", 406, INVALID, {"accept": value}, id=901) for value in _UNACCEPTABLE),
        *(Case(name, 400, MISMATCH, headers, body, id=901) for name, (headers, body) in mismatched.items()),
        *(Case(name, 400, PARAMS, headers, body, id=901) for name, (headers, body) in params.items()),
        Case("stream", 405, method="GET"),
        Case("session to end", 405, method="DELETE"),
        Case("session nobody has", 200, headers={"mcp-session-id": "0" * 32}, id=901),
        Case("no revision header", 400, MISMATCH, {"mcp-protocol-version": None}, id=901, says="is missing, but"),
        Case(
            "revision header of the other era",
            400,
            MISMATCH,
            {"mcp-protocol-version": "2025-11-25"},
            id=901,
            says="MCP-Protocol-Version is `2025-11-25`",
        ),
        Case("listen to one message", 406, INVALID, {**listen[0], "accept": "application/json"}, listen[1], id=901),
        Case(
            "unknown revision",
            400,
            VERSION,
            {"mcp-protocol-version": unknown},
            asks("tools/list", _meta={**envelope, version: unknown}),
            id=901,
        ),
        Case("unknown method", 404, UNKNOWN, named("nobody/knows"), asks("nobody/knows"), id=901),
        Case("empty method", 404, UNKNOWN, named(""), asks(""), id=901),
        Case("method of the other era", 404, UNKNOWN, named("ping"), asks("ping"), id=901),
        Case(
            "subscription of the other era",
            404,
            UNKNOWN,
            named("resources/subscribe"),
            asks("resources/subscribe", uri="x://y"),
            id=901,
        ),
        Case("notification", 202, body=b'{"jsonrpc":"2.0","method":"notifications/nobody_knows"}'),
        Case("answer to nothing", 400, INVALID, body=b'{"jsonrpc":"2.0","id":98765,"result":{}}'),
    ]


_UNACCEPTABLE = ("text/html", "application/jsonp, text/event-streams", "*/*;q=0", "application/json;q=0")


def shared_with_the_pipe(wire: HttpWire) -> list[Case]:
    cases = [*no_json(), *no_message(), *not_utf8(wire), *odd_but_right(wire)]
    return [
        Case(f"body: {case.name}", 200 if case.served else 400, *case.codes, body=case.line, id=case.id)
        for case in cases
    ]


def table(revision: str) -> dict[str, list[Case]]:
    """Return all cases by their kind."""
    wire = HttpWire("", revision=revision)
    return {
        "below JSON-RPC": below_json_rpc(),
        "in every era": in_every_era(wire),
        "of one era": modern(wire) if revision == MODERN else legacy(wire),
        "shared with the pipe": shared_with_the_pipe(wire),
    }


TABLES = {revision: table(revision) for revision in ERAS}


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module", params=few(SUBJECTS, "toy"))
async def subject(request: pytest.FixtureRequest, anyio_backend: str) -> AsyncGenerator[Subject]:
    """One process, alive through both tables, quiet about what clients do wrong."""
    async with running(SUBJECTS[request.param]) as process:
        yield process
        status = process.stop()
        assert await process.ends() == status
        assert "Traceback" not in process.said
        assert "ERROR" not in process.said


@pytest.fixture(scope="module")
async def wires(subject: Subject) -> AsyncGenerator[dict[str, HttpWire]]:
    async with (
        HttpWire(subject.url, revision=ERAS[0]) as old,
        HttpWire(subject.url, revision=ERAS[1]) as new,
    ):
        await old.open()
        await new.open()
        yield dict(zip(ERAS, (old, new), strict=True))


@pytest.mark.parametrize("era", ERAS)
def test_the_table_is_as_long_as_promised(era: str) -> None:
    names = [case.name for cases in TABLES[era].values() for case in cases]
    assert len(set(names)) == len(names) >= 80 + len(TABLES[era]["shared with the pipe"])


@pytest.mark.parametrize("kind", TABLES[MODERN])
@pytest.mark.parametrize("era", ERAS)
async def test_bad_requests(wires: dict[str, HttpWire], era: str, kind: str) -> None:
    for case in TABLES[era][kind]:
        with about_case(case.name):
            await check_request(wires[era], case)


async def check_request(wire: HttpWire, case: Case) -> None:
    right = {**wire.message("tools/list"), "id": 901}
    headers = {**wire.headers_for(right), **case.headers}
    encoded = [(key, value.encode()) for key, value in headers.items() if value is not None]
    body = json.dumps(right).encode() if case.body is None else case.body
    with anyio.fail_after(SECONDS):
        answer = await wire.client.request(
            case.method,
            wire.url.replace("/mcp", case.path),
            content=body if case.method in ("POST", "PUT", "PATCH") else None,
            headers=encoded,
        )
    assert case.says in answer.text
    assert answer.status_code == case.status, answer.text[:500]
    if case.status != 200 or case.code is not None:
        assert not any(word in answer.text for word in ("Traceback", ".py", "pydantic"))
    said = message_in(answer.headers.get("content-type", ""), answer.text)
    if case.code is not None:
        assert said is not None
        assert said["error"]["code"] == case.code
        assert 0 < len(said["error"]["message"]) < 500
        assert (said["id"], type(said["id"])) == (case.id, type(case.id))
    elif case.status == 200:
        assert said is not None
        assert "result" in said, said
        assert (said["id"], type(said["id"])) == (case.id, type(case.id))
    elif case.status in (403, 421):
        assert answer.text.count("\n") == 1
        assert "--allowed-" in answer.text
    assert "tools" in await wire.request("tools/list")


def message_in(kind: str, text: str) -> Message | None:
    """The one JSON-RPC message in a body, plain or as an event."""
    if kind == "text/event-stream":
        text = next(line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: {"))
    elif kind != "application/json" or not text:
        return None
    message = json.loads(text)
    assert message["jsonrpc"] == "2.0"
    return message


def raw(wire: HttpWire) -> dict[str, tuple[bytes, tuple[bytes, ...]]]:
    """Name -> bytes on the socket, and the statuses allowed; b"" is a closed connection without one."""
    message = wire.message("tools/list")
    body = json.dumps(message).encode()
    usual = "".join(f"{name}: {value}\r\n" for name, value in wire.headers_for(message).items()).encode()
    host = b"Host: localhost\r\n"
    length = b"Content-Length: %d\r\n" % len(body)
    chunked = b"Transfer-Encoding: chunked\r\n"
    post = b"POST /mcp HTTP/1.1\r\n"
    bad, closed = b"400", b""
    return {
        "no host": (post + usual + length + b"\r\n" + body, (bad,)),
        "two hosts": (post + host + host + usual + length + b"\r\n" + body, (bad,)),
        "two hosts, one foreign": (post + host + b"Host: evil\r\n" + usual + length + b"\r\n" + body, (bad,)),
        "empty host": (post + b"Host:\r\n" + usual + length + b"\r\n" + body, (b"421", bad)),
        "two origins": (post + host + b"Origin: http://localhost\r\n" * 2 + usual + length + b"\r\n", (b"403",)),
        "foreign absolute target": (
            b"POST http://evil.example.org/mcp HTTP/1.1\r\nHost: evil.example.org\r\n" + usual + length + b"\r\n",
            (b"421",),
        ),
        "foreign absolute target under our name": (
            b"POST http://evil.example.org/mcp HTTP/1.1\r\n" + host + usual + length + b"\r\n" + body,
            (bad,),
        ),
        "absolute target": (
            b"POST http://localhost/mcp HTTP/1.1\r\n" + host + usual + length + b"\r\n" + body,
            (b"200",),
        ),
        "another host behind the body": (
            post + host + usual + chunked + b"\r\n%x\r\n%s\r\n0\r\nHost: evil\r\n\r\n" % (len(body), body),
            (b"200",),
        ),
        "another method behind the body": (
            post + host + usual + chunked + b"\r\n%x\r\n%s\r\n0\r\nMcp-Method: x\r\n\r\n" % (len(body), body),
            (b"200",),
        ),
        "chunks among others": (post + host + usual + b"Transfer-Encoding: chunked, x\r\n\r\n0\r\n\r\n", (bad,)),
        "packed chunks": (post + host + usual + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", (b"501",)),
        "chunks twice": (post + host + usual + chunked * 2 + b"\r\n0\r\n\r\n", (b"501", bad)),
        "packed": (post + host + usual + b"Transfer-Encoding: gzip\r\n\r\n" + body, (b"501",)),
        "HTTP/1.0": (b"POST /mcp HTTP/1.0\r\n" + usual + length + b"\r\n" + body, (bad,)),
        "HTTP/2 preface": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", (bad, b"505", closed)),
        "TLS": (bytes.fromhex("1603010200010001fc0303") + bytes(64), (bad, closed)),
        "no HTTP": (body + b"\r\n\r\n", (bad,)),
        "NUL in a header": (post + host + b"X-A: a\0b\r\n" + usual + length + b"\r\n" + body, (bad,)),
        "header without a colon": (post + host + b"nothing\r\n" + usual + length + b"\r\n" + body, (bad,)),
        "length that is no number": (post + host + usual + b"Content-Length: ten\r\n\r\n" + body, (bad,)),
        "negative length": (post + host + usual + b"Content-Length: -1\r\n\r\n" + body, (bad,)),
        "endless length": (post + host + usual + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n", (bad, b"413")),
        "two lengths": (post + host + usual + length + b"Content-Length: 1\r\n\r\n" + body, (bad,)),
        "length and chunks": (post + host + usual + length + chunked + b"\r\n0\r\n\r\n", (bad,)),
        "length too great": (post + host + usual + b"Content-Length: 9999999\r\n\r\n{", (b"413",)),
        "length too small": (post + host + usual + b"Content-Length: 5\r\n\r\n" + body, (bad,)),
        "half a body": (post + host + usual + length + b"\r\n" + body[:20], (b"408",)),
        "half a chunk": (post + host + usual + chunked + b"\r\nff\r\n" + body[:20], (b"408",)),
        "chunks without end": (post + host + usual + chunked + b"\r\n%x\r\n%s\r\n" % (len(body), body), (b"408",)),
        "chunk size that is none": (post + host + usual + chunked + b"\r\nzz\r\n" + body, (bad, closed)),
        "chunks too long": (
            post + host + usual + chunked + b"\r\n" + (b"100000\r\n" + b" " * 0x100000 + b"\r\n") * 5,
            (b"413",),
        ),
        "headers without end": (post + host + b"X-A: " + b"a" * 1_000_000, (bad, b"431", closed)),
        "many headers": (post + host + b"X-A: aaaaaaaa\r\n" * 100_000, (bad, b"431", closed)),
        "blanks around values": (
            post + host + usual.replace(b": ", b":  \t").replace(b"\r\n", b" \t\r\n") + length + b"\r\n" + body,
            (b"200",),
        ),
        "upgrade": (
            b"GET /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            (bad, b"405", b"406", b"426"),
        ),
    }


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("name", raw(HttpWire("")))
@pytest.mark.parametrize("subject", ["toy"], indirect=True)
async def test_bytes_no_client_would_send(subject: Subject, wires: dict[str, HttpWire], era: str, name: str) -> None:
    wire = wires[era]
    sent, allowed = raw(wire)[name]
    status = await anyio.to_thread.run_sync(exchange, subject.address, sent)
    assert status in allowed
    assert "tools" in await wire.request("tools/list")


def exchange(address: tuple[str, int], data: bytes) -> bytes:
    """The status that comes back for `data`; empty if the connection is closed without one."""
    with socket.create_connection(address, timeout=20) as connection:
        try:
            connection.sendall(data)
            answer = b""
            while len(answer) < 12 and (part := connection.recv(4096)):
                answer += part
        except ConnectionError:
            return b""
    return answer[9:12]


@pytest.mark.parametrize("protocol", [b"h2c", b"websocket", b"TLS/1.0"])
async def test_a_body_is_never_a_request(subject: Subject, protocol: bytes) -> None:
    """Else one caller's body behind a proxy is another caller's request."""
    hidden = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    head = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n" % len(hidden)
    async with await anyio.connect_tcp(*subject.address) as stream:
        await stream.send(head + b"Connection: Upgrade\r\nUpgrade: %s\r\n\r\n" % protocol)
        answer = await stream.receive()
        with anyio.fail_after(30), suppress(anyio.BrokenResourceError, anyio.EndOfStream):
            # In a packet of its own.
            await stream.send(hidden)
            await stream.send(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            while True:
                answer += await stream.receive()
    assert [part[:3] for part in answer.split(b"HTTP/1.1 ")[1:]] == [b"415", b"200"]


@pytest.mark.parametrize("era", ERAS)
async def test_clients_that_leave_in_the_middle_harm_nobody(
    subject: Subject, wires: dict[str, HttpWire], era: str
) -> None:
    half, _ = raw(wires[era])["half a body"]

    def leave() -> None:
        for cut in (1, 20, len(half) - 10, len(half)):
            with socket.create_connection(subject.address, timeout=20) as connection:
                connection.sendall(half[:cut])

    for _ in range(50):
        await anyio.to_thread.run_sync(leave)
    assert "tools" in await wires[era].request("tools/list")


async def test_a_session_ended_is_gone_and_only_that(subject: Subject) -> None:
    async with HttpWire(subject.url) as other, HttpWire(subject.url) as wire:
        await other.open()
        await wire.open()
        message = wire.message("tools/list")
        headers = wire.headers_for(message)
        ended = await wire.client.delete(wire.url, headers=headers)
        assert ended.status_code == 200
        for method in ("POST", "GET", "DELETE"):
            again = await wire.client.request(
                method, wire.url, headers=headers, json=message if method == "POST" else None
            )
            assert (again.status_code, again.json()["error"]["code"]) == (404, ENDED)
        del wire.headers["mcp-session-id"]
        assert "tools" in await other.request("tools/list")


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE", "HEAD", "OPTIONS"])
async def test_an_answer_that_opens_no_session_names_none(subject: Subject, method: str) -> None:
    """Clients take the id from any answer, and would go on in a session that is not there."""
    async with HttpWire(subject.url) as wire:
        headers = {**wire.headers, "mcp-protocol-version": "2025-11-25"}
        said = await wire.client.request(method, wire.url, headers=headers, json=wire.message("ping"))
    assert said.is_client_error and "mcp-session-id" not in said.headers


async def test_one_id_twice_in_flight_is_answered_twice(subject: Subject) -> None:
    """A second call under the id of one that is still running is refused, not left waiting."""
    async with HttpWire(subject.url) as wire:
        await wire.open()
        message = wire.message("tools/list")
        answers: list[int] = []

        async def ask() -> None:
            answer = await wire.client.post(wire.url, json=message, headers=wire.headers_for(message))
            answers.append(answer.status_code)

        with anyio.fail_after(SECONDS):
            async with anyio.create_task_group() as tasks:
                for _ in range(20):
                    tasks.start_soon(ask)
        assert len(answers) == 20
        assert 200 in answers
        assert set(answers) <= {200, 400}


@pytest.mark.slow
async def test_names_are_checked_on_every_address_too(anyio_backend: str) -> None:
    async with running([*TOY, "host=0.0.0.0", "allow_anonymous=True"]) as subject:
        url = "http://{}:{}/mcp".format(*subject.address)
        for era in ERAS:
            async with HttpWire(url, revision=era) as wire:
                await wire.open()
                for case in below_json_rpc():
                    if case.headers:
                        headers = [(key, value.encode()) for key, value in case.headers.items() if value]
                        answer = await wire.client.request(case.method, url, headers=headers)
                        assert answer.status_code == case.status, case.name
                assert "tools" in await wire.request("tools/list")
