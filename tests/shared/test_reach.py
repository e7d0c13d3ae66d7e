"""Why a service was not reached: real failures of a real client, each with the words that tell where to look."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import anyio
import httpx2
import pytest

from mcp_batteries.remote.connection_errors import explain_connection_error

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
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
        async with httpx2.AsyncClient(timeout=seconds) as client:
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


async def test_a_proxy_is_where_to_look_and_its_address_stays_untold(
    monkeypatch: pytest.MonkeyPatch, closed: int
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", f"http://user:secret@127.0.0.1:{closed}")
    assert await why("https://example.org/x") == (
        "the proxy of `HTTPS_PROXY` refused the connection on the way to `example.org`"
    )
    monkeypatch.setenv("NO_PROXY", "nobody.invalid")
    assert "no proxy is set" in await why("https://nobody.invalid/x")
