"""A server on a Unix socket: whose file it is, who calls, and what is left of it."""

import json
import os
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from mcp_batteries.cli.host_entry.text import make_entry
from mcp_batteries.errors import Invalid, Unavailable
from mcp_batteries.settings import Settings, load
from mcp_batteries.transports.http.health import healthy
from shared.http_subject import running

if sys.platform == "win32":
    pytest.skip("Windows has no Unix sockets that Python can serve", allow_module_level=True)

from mcp_batteries.transports.http.listener.unix_socket import UnixListener, peer_user


class Toy(Settings):
    """Serve toys."""

    COMMAND = "mcp-toy"


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Short: such an address has 104 bytes at most."""
    monkeypatch.chdir(tmp_path)
    return "s"


def leave_stale(path: str) -> None:
    listener = UnixListener(path, 1)
    os.link(path, path + "2")
    listener.close()
    os.rename(path + "2", path)


def test_a_socket_is_its_users_alone_and_gone_with_its_server(path: str) -> None:
    with UnixListener(path, 1):
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert not os.path.lexists(path)


def test_only_what_nobody_listens_on_is_replaced(path: str) -> None:
    leave_stale(path)
    with UnixListener(path, 0) as first:
        for _ in range(3):  # However full its queue is.
            with pytest.raises(Unavailable, match="Another server listens"):
                UnixListener(path, 1)
        first.remove()
        with UnixListener(path, 1):
            first.close()
            assert os.path.exists(path), "the next server's"
    Path(path).write_text("precious")
    with pytest.raises(Unavailable, match="no socket"):
        UnixListener(path, 1)
    assert Path(path).read_text() == "precious"
    with pytest.raises(Unavailable, match="Cannot listen on `no/such"):
        UnixListener("no/such/folder", 1)


def test_of_servers_that_start_at_once_one_listens(path: str) -> None:
    def start(_: int) -> UnixListener | None:
        try:
            return UnixListener(path, 64)
        except Unavailable:
            return None

    for _ in range(20):
        leave_stale(path)
        with ThreadPoolExecutor(8) as pool:
            (listener,) = filter(None, pool.map(start, range(8)))
        listener.close()


@pytest.mark.slow
@pytest.mark.anyio
async def test_the_user_at_the_other_end_is_the_caller(tmp_path: Path) -> None:
    words = ["--transport", "http", "--socket", str(tmp_path / "s"), "--audit-file", str(tmp_path / "audit")]
    settings = load(Toy, words[:4])
    async with running([sys.executable, "-m", "mcp_fs", *words, str(tmp_path)]) as subject:
        assert subject.url == settings.socket_url == f"unix://{tmp_path}/s#/mcp"
        assert f'"url": "{subject.url}"' in make_entry("vscode", settings)
        with pytest.raises(Invalid, match="leave out --socket"):
            make_entry("cursor", settings)
        # From an event loop's thread: it answers at once.
        assert healthy(settings)
        transport = httpx2.AsyncHTTPTransport(uds=settings.socket)
        async with (
            httpx2.AsyncClient(transport=transport, trust_env=False) as http,
            Client(streamable_http_client("http://localhost/mcp", http_client=http)) as client,
        ):
            assert not (await client.call_tool("list_directory", {})).is_error
            foreign = await http.get("http://rebound.example/mcp")
            assert foreign.status_code == 421
        subject.ask_to_end()
        assert await subject.ends() == 143
    assert not (tmp_path / "s").exists()
    refused, called = map(json.loads, sorted((tmp_path / "audit").read_text().splitlines(), key=lambda x: "name" in x))
    who = f"uid {os.getuid()}" if sys.platform == "linux" else None
    assert called["name"] == "list_directory" and "address" not in called
    assert called.get("identity") == refused.get("identity") == who


@pytest.mark.skipif(sys.platform != "linux", reason="the system does not say who is at the other end")
def test_a_peer_over_tcp_is_no_user() -> None:
    import socket

    one, other = socket.socketpair()
    with one, other, socket.socket() as tcp:
        assert peer_user(one) == f"uid {os.getuid()}" and peer_user(tcp) is None
