"""Under which names a request is answered, and from which pages; `test_http` sends some of them through a socket."""

from typing import Any

import pytest

from mcp_batteries.errors import Invalid
from mcp_batteries.settings import Settings
from mcp_batteries.transports.http.gate.host_check import HostCheck, allowed_hosts, allowed_origins, split_authority

pytestmark = pytest.mark.anyio

Headers = list[tuple[bytes, bytes]]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("localhost", ("localhost", "")), ("LocalHost:80", ("localhost", "80")), ("[::1]:8000", ("[::1]", "8000")),
        ("files.example.org", ("files.example.org", "")), ("a_b-c.d:65535", ("a_b-c.d", "65535")), ("x", ("x", "")),
        ("localhost:8741@evil", None), ("localhost:", None), ("localhost:80:80", None), ("localhost:123456", None),
        ("localhost/", None), ("local host", None), ("evil.org,localhost", None), ("::1", None), ("[::1", None),
        ("-x", None), ("x-", None), (":80", None), ("http://localhost", None), ("*", None), ("", None),
    ],
)  # fmt: skip
def test_an_authority_is_a_host_and_perhaps_a_port(text: str, parts: tuple[str, str] | None) -> None:
    assert split_authority(text) == parts


@pytest.mark.parametrize(
    ("settings", "hosts"),
    [
        (Settings(), []),
        (Settings(allowed_host=("Files.example.org", "x.org:8443")), ["files.example.org", "x.org:8443"]),
        (Settings(public_url="https://files.example.org/mcp"), ["files.example.org"]),
        (Settings(public_url="http://Files.example.org:8443"), ["files.example.org"]),
    ],
    ids=str,
)
def test_the_names_of_this_server(settings: Settings, hosts: list[str]) -> None:
    assert allowed_hosts(settings) == ["localhost", *hosts]


@pytest.mark.parametrize("name", ["https://files.example.org", "*", "", "a b", "a:"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(Invalid, match="--allowed-host takes"):
        allowed_hosts(Settings(allowed_host=(name,)))


@pytest.mark.parametrize(
    "url", ["ftp://x.org", "x.org", "https://", "https:///mcp", "https://x.org/?a", "https://x.org/#a", "https://a b/"]
)
def test_a_public_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(Invalid, match="--public-url takes"):
        allowed_hosts(Settings(public_url=url))


def test_the_pages_that_may_ask() -> None:
    given = ("https://App.example.org/", "vscode-webview://x1", "http://x.org:8080")
    known = ["https://app.example.org", "vscode-webview://x1", "http://x.org:8080"]
    assert allowed_origins(Settings(allowed_origin=given)) == known


@pytest.mark.parametrize("origin", ["x.org", "https://x.org/app", "*", "", "://x.org", "é://x.org", "https://"])
def test_an_origin_that_is_none_is_refused(origin: str) -> None:
    with pytest.raises(Invalid, match="--allowed-origin takes"):
        allowed_origins(Settings(allowed_origin=(origin,)))


async def ask(headers: Headers, kind: str = "http") -> tuple[int, dict[bytes, bytes], str, dict[str, Any]]:
    """The status (0: let in), headers and words of the answer, and the scope as it was at the end."""
    sent: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        sent.append({"status": 0, "headers": []})

    async def send(message: Any) -> None:
        sent.append(message)

    scope: dict[str, Any] = {"type": kind, "headers": headers}
    check = HostCheck(app, hosts=["localhost", "files.example.org", "x.org:8443"], origins=["https://app.example.org"])
    await check(scope, None, send)  # pyright: ignore[reportArgumentType]
    words = b"".join(message.get("body", b"") for message in sent).decode()
    return sent[0]["status"], dict(sent[0]["headers"]), words, scope


def named(*values: bytes, origins: tuple[bytes, ...] = ()) -> Headers:
    return [*((b"host", value) for value in values), *((b"origin", value) for value in origins)]


@pytest.mark.parametrize(
    ("hosts", "status"),
    [
        ([b"localhost"], 0), ([b"127.0.0.1:8000"], 0), ([b"[::1]:1"], 0), ([b" LOCALHOST:80\t"], 0),
        ([b"files.example.org:99"], 0), ([b"x.org:8443"], 0), ([b"x.org"], 421), ([b"x.org:8444"], 421),
        ([b"evil.org"], 421), ([b"localhost.evil.org"], 421), ([b"evil.org:localhost"], 421), ([b""], 421),
        ([b"192.168.1.20:8000"], 0), ([b"10.0.0.7"], 0), ([b"0.0.0.0"], 0), ([b"[FE80::1]:80"], 0),
        ([b"[::ffff:10.0.0.7]"], 0), ([b"[10.0.0.7]"], 421), ([b"[dead.beef]"], 421), ([b"10.0.0.7.evil.org"], 421),
        ([b"10.0.0"], 421), ([b"167772167"], 421), ([b"0x7f.0.0.1"], 421), ([b"10.0.0.256"], 421),
        ([b"010.0.0.7"], 421),
        ([b"localhost:"], 421), ([], 400), ([b"localhost", b"localhost"], 400), ([b"localhost", b"evil.org"], 400),
    ],
)  # fmt: skip
async def test_only_requests_that_name_this_server_are_answered(hosts: list[bytes], status: int) -> None:
    got, headers, words, scope = await ask(named(*hosts))
    assert got == status
    if status:
        assert headers[b"x-content-type-options"] == b"nosniff" and scope["state"]["refusal"] == "host"
        assert ("--allowed-host" in words) == (status == 421) and words.endswith("\n")


@pytest.mark.parametrize(
    ("origins", "status"),
    [
        ([], 0), ([b"https://app.example.org"], 0), ([b"http://localhost:5173"], 0), ([b"https://[::1]"], 0),
        ([b"http://127.0.0.1"], 0), ([b"http://127.0.0.1.evil.org"], 403), ([b"null"], 403), ([b""], 403),
        ([b"https://evil.org"], 403), ([b"http://app.example.org"], 403), ([b"ftp://localhost"], 403),
        ([b"https://app.example.org", b"https://app.example.org"], 403), ([b"http://localhost"] * 2, 403),
    ],
)  # fmt: skip
async def test_only_known_pages_are_answered(origins: list[bytes], status: int) -> None:
    got, _, words, scope = await ask(named(b"localhost", origins=tuple(origins)))
    assert got == status
    if status:
        assert "--allowed-origin" in words and scope["state"]["refusal"] == "origin"


async def test_whose_request_passes_opens_the_door_to_no_other() -> None:
    passed: list[bytes] = []
    names = (b"localhost", b"evil.org", b"", b"localhost", b"localhost:80", b"localhost", b"localhost.evil.org")

    async def app(scope: Any, receive: Any, send: Any) -> None:
        passed.append(scope["headers"][0][1])

    async def send(message: Any) -> None:
        pass

    check = HostCheck(app, hosts=["localhost"], origins=[])
    for headers in [*(named(name) for name in names), named(b"localhost", b"localhost")]:
        await check({"type": "http", "headers": headers}, None, send)  # pyright: ignore[reportArgumentType]
    assert passed == [b"localhost", b"localhost", b"localhost:80", b"localhost"]


async def test_values_come_without_white_space_and_the_host_in_small_letters() -> None:
    given = [(b"host", b" LocalHost "), (b"mcp-name", b"\tFind "), (b"origin", b" http://localhost ")]
    _, _, _, scope = await ask(given)
    assert scope["headers"] == [(b"host", b"localhost"), (b"mcp-name", b"Find"), (b"origin", b"http://localhost")]


async def test_what_is_no_request_passes_untouched() -> None:
    headers = [(b"host", b" Evil ")]
    status, _, _, scope = await ask(headers, "websocket")
    assert status == 0 and scope["headers"] is headers
