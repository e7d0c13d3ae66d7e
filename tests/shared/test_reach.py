"""Why a service was not reached: real failures of a real client, each with the words that tell where to look."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import anyio
import httpx2
import pytest
from anyio.streams.tls import TLSStream

from mcp_batteries.remote.connection_errors import explain_connection_error
from mcp_batteries.remote.http_client import open_http_client
from shared.certificates import certificate

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    names = ["http_proxy", "https_proxy", "all_proxy", "no_proxy"]
    names += ["ssl_cert_file", "ssl_cert_dir", "requests_ca_bundle", "curl_ca_bundle"]
    for name in names:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def closed() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@pytest.fixture
def silent() -> Iterator[int]:
    """A port that takes connections and hangs up on none of them, nor ever answers."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield int(listening.getsockname()[1])


async def why(url: str, seconds: float = 5) -> str:
    with pytest.raises((httpx2.HTTPError, TimeoutError)) as failed:
        async with open_http_client(timeout=seconds) as client:
            await client.get(url)
    return explain_connection_error(url, failed.value)


async def test_a_closed_port_is_named(closed: int) -> None:
    assert await why(f"http://127.0.0.1:{closed}/x") == (
        f"`127.0.0.1` port {closed} refused the connection, and no proxy is set"
    )


async def test_a_name_that_nobody_has_is_named() -> None:
    assert await why("https://nobody.invalid/x") == "the name of `nobody.invalid` was not found, and no proxy is set"


async def test_a_service_that_says_nothing_is_told_from_one_that_is_away(silent: int) -> None:
    assert await why(f"http://127.0.0.1:{silent}/", 0.2) == (
        f"`127.0.0.1` port {silent} did not answer, and no proxy is set"
    )


async def test_a_service_without_tls_is_a_matter_of_certificates() -> None:
    async def hang_up(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            await stream.receive()
            await stream.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, hang_up)
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        assert await why(f"https://127.0.0.1:{port}/") == "the certificate of `127.0.0.1` can't be verified"
        tasks.cancel_scope.cancel()


@pytest.mark.reported("awslabs/mcp#773")
@pytest.mark.reported("langchain-ai/mcpdoc#20")
@pytest.mark.reported("uyuni-project/mcp-server-uyuni#39")
async def test_the_authority_of_a_proxy_that_reads_tls_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answer(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            with suppress(anyio.BrokenResourceError, anyio.EndOfStream, ssl.SSLError):
                tls = await TLSStream.wrap(stream, ssl_context=context, standard_compatible=False)
                await tls.receive()
                await tls.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")

    certificate(tmp_path, "localhost")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, answer)
        url = f"https://localhost:{listener.extra(anyio.abc.SocketAttribute.local_port)}/"
        assert "does not know who signed the certificate of `localhost`" in await why(url)
        for variable in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):
            with monkeypatch.context() as patch:
                patch.setenv(variable, str(tmp_path / "cert.pem"))
                async with open_http_client(timeout=5) as client:
                    assert (await client.get(url)).text == "hello"
        tasks.cancel_scope.cancel()


async def test_a_proxy_is_where_to_look_and_its_address_stays_untold(
    monkeypatch: pytest.MonkeyPatch, closed: int
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", f"http://user:secret@127.0.0.1:{closed}")
    assert await why("https://example.org/x") == (
        "the proxy of `HTTPS_PROXY` refused the connection on the way to `example.org`"
    )
    monkeypatch.setenv("NO_PROXY", "nobody.invalid")
    assert "no proxy is set" in await why("https://nobody.invalid/x")


async def answer_as_socks_proxy(stream: anyio.abc.SocketStream) -> None:
    """Answer as a proxy of SOCKS 5 (RFC 1928) that reaches every service itself, and as each service."""
    async with stream:
        await stream.receive()
        await stream.send(b"\x05\x00")
        asked = await stream.receive()
        await stream.send(b"\x05\x00\x00\x01" + bytes(6))
        assert b"service.invalid" in asked
        await stream.receive()
        await stream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")


@pytest.mark.reported("modelcontextprotocol/servers#1401")
@pytest.mark.reported("homeassistant-ai/ha-mcp#449")
@pytest.mark.reported("GuDaStudio/GrokSearch#6")
@pytest.mark.reported("NousResearch/hermes-agent#95042")
@pytest.mark.parametrize("scheme", ["socks5", "socks5h", "socks"])
async def test_a_proxy_of_socks_is_used_however_a_desktop_writes_it(
    scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, answer_as_socks_proxy)
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        monkeypatch.setenv("all_proxy", f"{scheme}://127.0.0.1:{port}/")
        async with open_http_client(timeout=5) as client:
            assert (await client.get("http://service.invalid/")).text == "hello"
        tasks.cancel_scope.cancel()


@pytest.mark.reported("ContinuumIO/anaconda-issues#13509")
@pytest.mark.parametrize("content", [None, "no certificate"])
async def test_certificates_that_cannot_be_read_are_named(
    content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    assert await why("https://example.org/") == "the certificates of `SSL_CERT_FILE` can't be read"


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"])
@pytest.mark.parametrize("address", ["socks4://user:secret@localhost:1", "http://user:secret@localhost:port"])
async def test_a_proxy_that_no_client_can_use_is_named_and_its_address_stays_untold(
    address: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, address)
    assert await why("https://example.org/") == (
        f"`{variable}` can't be used: it takes addresses of HTTP and SOCKS 5 proxies"
    )


async def test_a_proxy_without_a_scheme_is_not_named_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "proxy.invalid:8080")
    monkeypatch.setenv("ALL_PROXY", "socks4://localhost:1")
    assert (await why("https://example.org/")).startswith("`ALL_PROXY` can't be used")
