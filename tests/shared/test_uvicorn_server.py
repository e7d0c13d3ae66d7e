"""What lies between the socket and the requests: slow senders, certificates, proxies, probes, the end."""

import asyncio
import errno
import itertools
import json
import random
import re
import signal
import socket
import ssl
import sys
import warnings
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import anyio.abc
import httpx2
import pytest
import uvicorn
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from uvicorn.server import ServerState

from benchmarks.bench_http import LEGACY, Client
from mcp_batteries.errors import Invalid, Problem
from mcp_batteries.testing.wire import MODERN, HttpWire
from mcp_batteries.transports.http.auth.tokens import create_token
from mcp_batteries.transports.http.callers import network_of
from mcp_batteries.transports.http.health import healthy
from mcp_batteries.transports.http.listener import shutdown_budget
from mcp_batteries.transports.http.listener.acceptor import Acceptor
from mcp_batteries.transports.http.listener.connection import Connection
from mcp_batteries.transports.http.listener.shutdown_budget import ShutdownBudget
from mcp_batteries.transports.http.listener.uvicorn_server import UvicornServer, listen_on
from mcp_batteries.transports.http.refusals import Refusals
from mcp_batteries.transports.http.requests.in_flight import InFlight
from mcp_batteries.transports.http.serve import serve
from mcp_example.settings import Settings
from shared.certificates import certificate
from shared.http_subject import TOY, Subject, asks_to_end, running
from shared.toy_http import server

pytestmark = pytest.mark.anyio
EXAMPLE = [sys.executable, "-m", "mcp_example", "--transport", "http", "--port", "0"]


@pytest.mark.slow
@pytest.mark.share(1)
@pytest.mark.parametrize("began", [b"", b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "])
async def test_headers_that_do_not_come_are_not_waited_for(began: bytes) -> None:
    async with running([*TOY, "head_seconds=0.3"]) as subject, await anyio.connect_tcp(*subject.address) as stream:
        if began:
            await stream.send(began)
        with anyio.fail_after(30), pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
            while True:
                await stream.receive()
        async with HttpWire(subject.url) as wire:
            await wire.open()


class _Wire(asyncio.Transport):
    def __init__(self, carrier: socket.socket) -> None:
        super().__init__({"socket": carrier})
        self.sent: list[bytes] = []
        self.closed = self.ended = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent.append(bytes(data))

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.ended = True

    def close(self) -> None:
        self.closed = self.ended = True


def connected(app: Any, head_seconds: float = 60) -> tuple[Connection, _Wire]:
    """A connection that was just made, to an application."""
    kind = type("Kind", (Connection,), {"head_seconds": head_seconds})
    config = uvicorn.Config(app, http=kind, interface="asgi3", lifespan="off", log_config=None)
    connection = kind(config, ServerState(), {})
    connection.when_opened = connection.when_lost = lambda: None
    with socket.socket() as carrier:
        carrier.bind(("127.0.0.1", 0))  # Windows has no address for one that is bound nowhere
        wire = _Wire(carrier)
        connection.connection_made(wire)
    return connection, wire


@pytest.mark.parametrize("size", [10, 1_000_000])
@pytest.mark.parametrize("waits", [False, True])
async def test_a_head_goes_with_its_body_unless_that_lets_it_wait(size: int, waits: bool) -> None:
    body, go_on, done = b"b" * size, asyncio.Event(), asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"content-length", b"%d" % size)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        if waits:
            await go_on.wait()
        await send({"type": "http.response.body", "body": body})
        done.set()

    connection, wire = connected(app)
    connection.data_received(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    if waits:
        with anyio.fail_after(30):
            while not wire.sent:
                await asyncio.sleep(0)
        assert wire.sent[0].endswith(b"\r\n\r\n")
        go_on.set()
    with anyio.fail_after(30):
        await done.wait()
    assert b"".join(wire.sent).endswith(b"\r\n\r\n" + body)
    assert len(wire.sent) == (2 if waits or size > 100_000 else 1)
    connection.connection_lost(ConnectionResetError())


_GOOD = [
    b"GET /%d HTTP/1.1\r\nHost: h\r\n\r\n",
    b"POST /%d HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc",
    b"POST /%d HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    b"GET /%d HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
    b"POST /%d HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 3\r\n\r\nabc",
    b"POST /%d HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3\r\nabc\r\n0\r\n\r\n",
]
_BAD = {
    b"xyz\r\n\r\n": b"400",
    b"GET http://other/ HTTP/1.1\r\nHost: h\r\n\r\n": b"400",
    b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n": b"501",
    b"POST /bad HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcdef\r\n": b"400",
    b"POST /bad HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3\r\nabcdef\r\n": b"400",
    b"GET / HTTP/1.1\r\nHost: h\r\nX: " + b"x" * 400_000 + b"\r\n\r\n": b"431",
}


@pytest.mark.parametrize("seed", range(40))
async def test_what_cannot_be_read_is_answered_behind_what_was_asked_before(seed: int) -> None:
    """However the bytes are cut, and whenever the answers come."""
    chance = random.Random(seed)
    ends, called = dict[str, asyncio.Event](), list[str]()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        called.append(path := scope["path"])
        while (message := await receive()).get("more_body"):
            pass
        if message["type"] == "http.disconnect":
            return
        await ends.setdefault(path, asyncio.Event()).wait()
        headers = [(b"content-length", b"%d" % len(path))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await ends.setdefault(f"{path}+", asyncio.Event()).wait()
        await send({"type": "http.response.body", "body": path.encode()})

    number = chance.randrange(4)
    good = [f"/{index}" for index in range(number)]
    bad, status = chance.choice(list(_BAD.items()))
    data = b"".join(chance.choice(_GOOD) % index for index in range(number)) + bad + _GOOD[1] % 99
    cuts = sorted(
        [
            *range(0, len(data), 60_000),
            len(data),
            *(chance.randrange(len(data)) for _ in range(chance.choice([0, 3, 30]))),
        ]
    )
    steps: list[Any] = [data[start:end] for start, end in itertools.pairwise(cuts)]
    for path in chance.sample([*good, *(f"{path}+" for path in good)], 2 * number):
        steps.insert(chance.randrange(len(steps) + 1), path)

    connection, wire = connected(app)
    for step in steps:
        if isinstance(step, str):
            ends.setdefault(step, asyncio.Event()).set()
        else:
            connection.data_received(step)
        for _ in range(chance.randrange(4)):
            await asyncio.sleep(0)
    with anyio.fail_after(30):
        while not wire.ended:
            await asyncio.sleep(0)
    *answers, refusal = re.split(rb"(?=HTTP/1\.1 )", b"".join(wire.sent))[1:]
    assert [answer.rpartition(b"\r\n")[2].decode() for answer in answers] == good
    assert refusal.startswith(b"HTTP/1.1 " + status)
    assert [path for path in called if path != "/bad"] == good
    connection.connection_lost(None)


@pytest.mark.share(6)
@pytest.mark.parametrize("line", [b"X: " + b"x" * 997, b"X:", b"X-%d: x"])
@pytest.mark.parametrize("size", [60, 80, 120, 380])
@pytest.mark.parametrize("seed", range(4))
async def test_long_heads_are_refused_however_they_come(line: bytes, size: int, seed: int) -> None:
    """Thousands of bytes; a loop reads up to 256 KiB at once, behind the rest of what went before or not."""
    chance, called = random.Random(seed), list[str]()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        called.append(scope["path"])
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    head, number = b"GET / HTTP/1.1\r\nHost: h\r\n", 0
    while len(head) < size * 1000:
        head += (line % number if b"%" in line else line) + b"\r\n"
        number += 1
    before = chance.choice([b"", _GOOD[1] % 1])
    data = before + head + b"\r\n"
    cuts = sorted({0, len(data), *range(0, len(data), 256 * 1024), *chance.sample(range(len(data)), seed)})
    connection, wire = connected(app)
    for start, end in itertools.pairwise(cuts):
        connection.data_received(data[start:end])
    with anyio.fail_after(30):
        while len(called) < bool(before) + (size < 65) or not (wire.ended or size < 65):
            await asyncio.sleep(0)
    assert called == ["/1"] * bool(before) + ["/"] * (size < 65)
    assert (b"HTTP/1.1 431 " in b"".join(wire.sent)) == (size > 65)
    connection.connection_lost(None)


async def test_a_client_that_left_as_it_was_refused_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(_: _Wire) -> None:
        raise OSError(errno.ENOTCONN, "Transport endpoint is not connected")

    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError(scope)

    monkeypatch.setattr(_Wire, "write_eof", gone)
    connection, wire = connected(app)
    connection.data_received(b"xyz\r\n\r\n")
    assert b"".join(wire.sent).startswith(b"HTTP/1.1 400 ") and wire.closed
    connection.connection_lost(None)


@pytest.mark.parametrize("can_end", [False, True])
async def test_a_client_that_still_sends_reads_why_it_was_refused(
    can_end: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection that is closed while data arrives is reset, and the answer is lost on the way (RFC 9112, 9.6)."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 413, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    monkeypatch.setattr(_Wire, "can_write_eof", lambda _: can_end)
    connection, wire = connected(app)
    connection.data_received(b"POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 9\r\n\r\nabc")
    with anyio.fail_after(30):
        while not wire.sent:
            await asyncio.sleep(0)
        assert (wire.ended, wire.closed) == (can_end, False)
        connection.data_received(b"def" + _GOOD[0] % 1)
        while not wire.closed:
            await asyncio.sleep(0)
    assert b"".join(wire.sent).count(b"HTTP/1.1 ") == 1
    connection.connection_lost(None)


async def test_half_a_head_ends_no_call_that_goes_before() -> None:
    end = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await end.wait()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    connection, wire = connected(app, head_seconds=0)
    connection.data_received(_GOOD[0] % 1 + b"GET /")
    for _ in range(10):
        await asyncio.sleep(0)
    assert not wire.ended
    end.set()
    with anyio.fail_after(30):
        while not wire.closed:
            await asyncio.sleep(0)
    said = b"".join(wire.sent)
    assert said.endswith(b"ok") and b"connection: close" in said
    connection.connection_lost(None)


async def test_a_client_that_left_ends_its_first_call_though_more_came_behind() -> None:
    heard = list[str]()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        heard.append((await receive())["type"])

    connection, _ = connected(app)
    connection.data_received(_GOOD[1] % 1 + _GOOD[1] % 2)
    for _ in range(3):
        await asyncio.sleep(0)
    connection.connection_lost(ConnectionResetError())
    with anyio.fail_after(30):
        while not heard:
            await asyncio.sleep(0)
    assert heard == ["http.disconnect"]


async def test_http_without_its_parser_names_the_extra() -> None:
    script = "import sys; sys.modules['httptools'] = None; from mcp_example.__main__ import main; main()"
    command = [sys.executable, "-c", script, "--transport", "http", "--port", "0"]
    done = await anyio.run_process(command, check=False)
    assert done.returncode == 1
    assert done.stderr.decode().splitlines() == [
        "mcp-example: HTTP needs the library httptools. Install `mcp-batteries` with the extra `http`."
    ]


async def test_a_kept_connection_may_rest_between_requests() -> None:
    request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    async with running([*TOY, "head_seconds=0.3"]) as subject, await anyio.connect_tcp(*subject.address) as stream:
        await stream.send(request)
        assert b"200 OK" in await stream.receive()
        async with await anyio.connect_tcp(*subject.address) as silent:
            with anyio.fail_after(30), pytest.raises(anyio.EndOfStream):
                await silent.receive()
        # More than head_seconds have gone by, for a connection that was opened later.
        await stream.send(request)
        with anyio.fail_after(30):
            said = b""
            while b"200 OK" not in said:
                said += await stream.receive()


async def test_blank_lines_hold_no_connection() -> None:
    request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    async with running([*TOY, "head_seconds=0.3"]) as subject, await anyio.connect_tcp(*subject.address) as stream:
        await stream.send(request)
        assert b"200 OK" in await stream.receive()
        await stream.send(b"\r\n")
        with anyio.fail_after(30), pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
            while True:
                await stream.receive()


def presented(address: tuple[str, int]) -> str:
    """The common name on the certificate a new connection is shown."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(address, timeout=30) as plain, context.wrap_socket(plain) as wrapped:
        shown = wrapped.getpeercert(binary_form=True)
    assert shown is not None
    found = x509.load_der_x509_certificate(shown).subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(found[0].value)


@pytest.mark.slow
async def test_https_with_a_certificate_that_is_renewed(tmp_path: Path) -> None:
    certificate(tmp_path, "first")
    files = ["--tls-certificate", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem")]
    async with running([*EXAMPLE, *files]) as subject:
        assert subject.url.startswith("https://")
        trusting = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
        async with httpx2.AsyncClient(verify=trusting, trust_env=False) as client:
            url = subject.url.replace("127.0.0.1", "localhost").replace("/mcp", "/healthz")
            assert (await client.get(url)).status_code == 200
        https = Settings(transport="http", port=subject.address[1], tls_certificate="cert.pem", tls_key="key.pem")
        assert await anyio.to_thread.run_sync(healthy, https)
        (tmp_path / "cert.pem").write_text("no certificate", "utf-8")
        await subject.says("stays as it was")
        assert await anyio.to_thread.run_sync(presented, subject.address) == "first"
        # Whichever file comes first: until the other is there the old ones serve.
        (tmp_path / "new").mkdir()
        certificate(tmp_path / "new", "second")
        (tmp_path / "new" / "cert.pem").replace(tmp_path / "cert.pem")
        await subject.says("belongs to another key")
        assert await anyio.to_thread.run_sync(presented, subject.address) == "first"
        (tmp_path / "new" / "key.pem").replace(tmp_path / "key.pem")
        with anyio.fail_after(30):
            while await anyio.to_thread.run_sync(presented, subject.address) != "second":
                pass


async def test_a_certificate_that_cannot_be_used_is_said_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    certificate(tmp_path, "mine")
    certificate(tmp_path / "other", "other")
    key = serialization.load_pem_private_key((tmp_path / "key.pem").read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    hidden = serialization.BestAvailableEncryption(b"x")
    sealed = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, hidden)
    (tmp_path / "sealed.pem").write_bytes(sealed)
    mine = str(tmp_path / "cert.pem")
    for certificate_file, key_file, why in (
        (mine, "missing.pem", "No such file"),
        (mine, str(tmp_path / "other" / "key.pem"), "another key"),
        (mine, str(tmp_path / "sealed.pem"), "has a password"),
        (str(tmp_path / "key.pem"), mine, "are not a certificate"),
    ):
        with pytest.raises(Problem, match=why):
            await serve(server, Settings(tls_certificate=certificate_file, tls_key=key_file))


async def test_tls_before_1_2_is_refused_whatever_openssl_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate(tmp_path, "old")
    (tmp_path / "openssl.cnf").write_text(
        "openssl_conf = a\n[a]\nssl_conf = b\n[b]\nsystem_default = c\n[c]\nMinProtocol = TLSv1\n"
        "CipherString = DEFAULT:@SECLEVEL=0\n",
        "utf-8",
    )
    files = ["--tls-certificate", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem")]
    monkeypatch.setenv("OPENSSL_CONF", str(tmp_path / "openssl.cnf"))
    command = [*EXAMPLE, *files]

    def shaken(address: tuple[str, int], version: ssl.TLSVersion) -> str | None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_ciphers("DEFAULT:@SECLEVEL=0")
        context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
        context.maximum_version = version
        with socket.create_connection(address, timeout=30) as plain, context.wrap_socket(plain) as wrapped:
            return wrapped.version()

    async with running(command) as subject:
        assert await anyio.to_thread.run_sync(shaken, subject.address, ssl.TLSVersion.TLSv1_2) == "TLSv1.2"
        with warnings.catch_warnings(), pytest.raises(ssl.SSLError, match=r"(?i)protocol"):
            warnings.simplefilter("ignore", DeprecationWarning)
            await anyio.to_thread.run_sync(shaken, subject.address, ssl.TLSVersion.TLSv1_1)


async def test_settings_that_cannot_be_used_are_said_at_the_start() -> None:
    for wrong, fix in (
        (Settings(tls_certificate="cert.pem"), "--tls-key"),
        (Settings(trusted_proxy=("proxy",), port=0), "Write 10"),
        (Settings(public_url="files.example.org"), "--public-url"),
    ):
        with pytest.raises(Invalid, match=fix):
            await serve(server, wrong)


@pytest.mark.share(1)
@pytest.mark.parametrize(("trusted", "believed"), [("127.0.0.0/8", True), ("10.0.0.1", False)])
async def test_the_word_of_a_proxy_counts_from_trusted_addresses_only(
    trusted: str, believed: bool, tmp_path: Path
) -> None:
    token, line = create_token("alice")
    (tmp_path / "tokens").write_text(line, "utf-8")
    log = tmp_path / "audit"
    settings = ["--trusted-proxy", trusted, "--auth-file", str(tmp_path / "tokens"), "--audit-file", str(log)]
    headers = {"authorization": f"Bearer {token}", "x-forwarded-for": "192.0.2.7", "x-forwarded-proto": "https"}
    async with (
        running([*EXAMPLE, *settings]) as subject,
        HttpWire(subject.url, revision=MODERN, headers=headers) as wire,
    ):
        await wire.call("run_calculation", expression="1")
    line = json.loads(log.read_text("utf-8"))
    assert line["identity"] == "alice"
    assert line["address"] == ("192.0.2.7" if believed else "127.0.0.1")


@pytest.mark.slow
@asks_to_end
async def test_calls_have_the_time_they_were_given_to_end() -> None:
    async with running([*TOY, "drain_seconds=20"]) as subject, HttpWire(subject.url, revision=MODERN) as wire:
        async with httpx2.AsyncClient(trust_env=False) as client:
            for path in ("/healthz", "/readyz"):
                assert (await client.get(subject.url.replace("/mcp", path))).status_code == 200
        async with anyio.create_task_group() as tasks:

            async def call() -> None:
                # Longer than what there is by default.
                assert (await wire.call("wait", seconds=4))["content"][0]["text"] == "waited"

            tasks.start_soon(call)
            await subject.says("waiting")
            subject.ask_to_end(signal.SIGTERM)
            async with httpx2.AsyncClient(trust_env=False) as client:
                # Balancers are told first, and who is late is answered.
                with anyio.fail_after(30):
                    while (ready := await client.get(subject.url.replace("/mcp", "/readyz"))).status_code == 200:
                        pass
                assert (ready.status_code, ready.headers["connection"]) == (503, "close")
                assert (await client.get(subject.url.replace("/mcp", "/healthz"))).status_code == 200
            # Then nobody comes in any more.
            with anyio.fail_after(30), suppress(OSError):
                while True:
                    await (await anyio.connect_tcp(*subject.address)).aclose()
        assert await subject.ends() == 143


async def test_a_stream_says_from_its_head_that_its_connection_ends_with_it() -> None:
    """Else a proxy uses the connection for a call in the moment in which the server ends both."""
    accept = {"accept": "application/json, text/event-stream"}
    async with running(TOY) as subject, httpx2.AsyncClient(trust_env=False) as client:
        older = Client(subject.url, LEGACY, tool={"name": "echo", "arguments": {"text": "there"}})
        await older.open()
        session = {"mcp-session-id": older.session, "mcp-protocol-version": LEGACY, "accept": "text/event-stream"}
        newer = HttpWire(subject.url, revision=MODERN)
        asked = newer.message("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        called = newer.message("tools/call", {"name": "progress", "arguments": {}})
        for stream in (
            client.stream("GET", subject.url, headers=session),
            client.stream("POST", subject.url, json=asked, headers=newer.headers_for(asked) | accept),
        ):
            async with stream as response:
                assert response.headers["content-type"].startswith("text/event-stream")
                assert response.headers.get_list("connection") == ["close"]
        # To connect again for each call would be dear.
        response = await client.post(subject.url, json=called, headers=newer.headers_for(called) | accept)
        assert response.status_code == 200
        assert "close" not in response.headers.get("connection", "")
        older.writer.close()


@pytest.mark.slow
@asks_to_end
async def test_a_connection_that_was_not_told_to_close_is_served_once_more() -> None:
    echo: dict[str, object] = {"name": "echo", "arguments": {"text": "there"}}
    async with running([*TOY, "drain_seconds=20"]) as subject:
        client = Client(subject.url, LEGACY, tool=echo)
        await client.open()
        # Its answer is a stream that begins before the end, and lasts until no new connections are taken.
        client.writer.write(client.calling({"name": "wait", "arguments": {"seconds": 4}}))
        with anyio.fail_after(30):
            head = await client.reader.readuntil(b"\r\n\r\n")
            assert b"connection: close" not in head.lower()
            subject.ask_to_end(signal.SIGTERM)
            assert b"waited" in await client.reader.readuntil(b"\r\n0\r\n\r\n")
            head, body = await client.post(client.call)
        assert b"there" in body
        assert b"connection: close" in head.lower()
        client.writer.close()
        assert await subject.ends() == 143


async def test_too_many_calls_are_no_reason_to_restart_it() -> None:
    """Kubernetes asks `/healthz` whether to; it is not ready for more, though."""
    async with (
        running([*TOY, "max_connections=3", "trusted_proxy=('127.0.0.1',)"]) as subject,
        AsyncExitStack() as stack,
    ):
        for _ in range(3):
            wire = await stack.enter_async_context(HttpWire(subject.url, revision=MODERN))
            await wire.begin("tools/call", {"name": "wait", "arguments": {"seconds": 3600}})
        await subject.says("waiting", times=3)
        async with httpx2.AsyncClient(trust_env=False) as client:
            assert (await client.get(subject.url.replace("/mcp", "/healthz"))).status_code == 200
            assert (await client.get(subject.url.replace("/mcp", "/readyz"))).status_code == 503
            assert (await client.post(subject.url, json={})).status_code == 503


async def closed_of(streams: list[anyio.abc.SocketStream], least: int) -> int:
    """How many of `streams` the server has closed, once it is at least so many."""
    closed = 0

    async def look(stream: anyio.abc.SocketStream) -> None:
        nonlocal closed
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
            await stream.receive()
        closed += 1

    with anyio.move_on_after(30):
        async with anyio.create_task_group() as tasks:
            for stream in streams:
                tasks.start_soon(look, stream)
            while closed < least:
                await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()
    return closed


@pytest.mark.share(1)
@pytest.mark.parametrize("sent", [b"", b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Slow: "])
async def test_idle_connections_make_room_the_oldest_first(sent: bytes) -> None:
    async with running([*TOY, "max_connections=20"]) as subject, AsyncExitStack() as stack:
        async with HttpWire(subject.url, revision=MODERN) as wire:
            await wire.call("echo", text="first")
            streams: list[anyio.abc.SocketStream] = []
            for _ in range(100):
                stream = await anyio.connect_tcp(*subject.address, local_host="127.0.0.2")
                streams.append(await stack.enter_async_context(stream))
                await stream.send(sent)
            # One address has half of them; who came from another is not concerned.
            assert await closed_of(streams[:90], 90) == 90
            assert "there" in str(await wire.call("echo", text="there"))
            async with HttpWire(subject.url, revision=MODERN) as other:
                assert "too" in str(await other.call("echo", text="too"))
        assert len(subject.said) < 2_000


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="limits a process with ulimit")
async def test_connections_without_end_leave_descriptors_for_the_work() -> None:
    limited = ["sh", "-c", 'ulimit -n 260; exec "$@"', "sh", *TOY]
    async with running(limited) as subject, AsyncExitStack() as stack:
        addresses = [f"127.0.0.{number}" for number in range(2, 12)]
        for number in range(600):
            with suppress(OSError):
                stream = await anyio.connect_tcp(*subject.address, local_host=addresses[number % 10])
                await stack.enter_async_context(stream)
        for _ in range(20):
            async with HttpWire(subject.url, revision=MODERN) as wire:
                assert "there" in str(await wire.call("echo", text="there"))
        assert "Traceback" not in subject.said
        assert len(subject.said) < 2_000


@pytest.mark.slow
async def test_a_handshake_that_does_not_come_is_not_waited_for(tmp_path: Path) -> None:
    certificate(tmp_path, "slow")
    files = [f"tls_certificate={tmp_path / 'cert.pem'}", f"tls_key={tmp_path / 'key.pem'}"]
    async with (
        running([*TOY, *files, "head_seconds=0.3"]) as subject,
        await anyio.connect_tcp(*subject.address) as stream,
    ):
        await stream.send(b"\x16\x03\x01")
        with anyio.fail_after(30), pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
            while True:
                await stream.receive()


@pytest.mark.skipif(sys.platform != "linux", reason="reads memory from /proc")
async def test_a_handshake_that_does_not_come_takes_little_memory(tmp_path: Path) -> None:
    certificate(tmp_path, "small")
    files = [f"tls_certificate={tmp_path / 'cert.pem'}", f"tls_key={tmp_path / 'key.pem'}"]

    async def memory(subject: Subject) -> int:
        """Of the server in kB, once it has taken the connections that came so far."""
        await anyio.to_thread.run_sync(presented, subject.address)
        status = Path(f"/proc/{subject.process.pid}/status").read_text("utf-8")
        return int(status.partition("VmRSS:")[2].split()[0])

    async with running([*TOY, *files]) as subject, AsyncExitStack() as stack:
        before = await memory(subject)
        for _ in range(200):
            stream = await stack.enter_async_context(await anyio.connect_tcp(*subject.address))
            await stream.send(b"\x16\x03\x01")
        assert await memory(subject) < before + 200 * 100


@pytest.mark.parametrize(
    ("host", "whose"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("testclient", "testclient"),
    ],
)
async def test_addresses_of_one_network_are_one_caller(host: str, whose: str) -> None:
    assert network_of(host) == whose


@pytest.mark.parametrize("turns", range(5))
async def test_a_connection_that_is_taken_as_the_server_ends_is_not_lost(turns: int) -> None:
    """However many turns of the loop lie between its coming and the end."""
    made: list[object] = []

    class Taken(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            made.append(transport)
            transport.close()

    listener = listen_on("127.0.0.1", 0, public=False)
    make: Any = Taken
    acceptor = Acceptor(listener, make, most=100, tls=None, handshake_seconds=5, proxies=[])
    await asyncio.sleep(0)  # It waits for connections.
    with socket.create_connection(listener.getsockname()):
        for _ in range(turns):
            await asyncio.sleep(0)
        await acceptor.close()
        assert len(made) == 1


class LateListener(socket.socket):
    """A listener to which a client connects in the moment before it closes."""

    client: socket.socket | None = None

    def close(self) -> None:
        if self.client is None:
            self.client = socket.socket()
            self.client.setblocking(False)
            with suppress(BlockingIOError):
                self.client.connect(self.getsockname())
        super().close()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a filter for new connections")
async def test_who_connects_as_the_listener_closes_is_refused_and_not_reset() -> None:
    """A reset comes after the client could send its call, so that nobody knows whether that was done."""
    listener = LateListener(fileno=listen_on("127.0.0.1", 0, public=False).detach())
    nobody: Any = None
    in_flight = InFlight(Refusals())
    server = UvicornServer(
        nobody, "", in_flight, lambda: None, max_connections=10, head_seconds=1, drain_seconds=0, proxies=()
    )
    server.should_exit = True
    await server.serve([listener])
    assert listener.client is not None
    with listener.client, anyio.fail_after(20):
        await anyio.wait_writable(listener.client)
        assert listener.client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ECONNREFUSED


@pytest.mark.parametrize(
    ("elapsed", "work", "counted"),
    [
        pytest.param(0.01, 0.001, 0.01, id="nothing to do"),
        pytest.param(2.0, 2.0, 2.0, id="work of its own"),
        pytest.param(0.62, 0.3, 0.32 + 0.3 / 3, id="work of others beside"),
        pytest.param(60.0, 0.0, 0.02 + 0.3, id="the process was stopped"),
    ],
)
async def test_the_time_for_the_end_is_what_the_machine_gave(
    elapsed: float, work: float, counted: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a call that has time left is cut, because others used the processor or the machine slept."""
    ticks = itertools.chain([0.0], itertools.repeat(elapsed))
    work_ticks = itertools.chain([0.0], itertools.repeat(work))
    clock = SimpleNamespace(monotonic=ticks.__next__, thread_time=work_ticks.__next__)
    monkeypatch.setattr(shutdown_budget, "time", clock)
    budget = ShutdownBudget(10, 1)
    budget.start()
    with anyio.fail_after(20):
        await budget.wait_until(lambda: budget.spent > 0, 100)
    assert budget.spent == pytest.approx(counted)
