"""Who is turned away is in the log and in the audit, with the reason; what they said is not, and neither is a flood."""

import json
import logging
import sys
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken

from mcp_batteries.observability.logs import JsonFormatter, RateLimitFilter
from mcp_batteries.testing.wire import MODERN, HttpWire
from mcp_batteries.transports.http.auth.tokens import create_token
from mcp_batteries.transports.http.refusals import Refusals, set_reason
from shared.http_subject import FILES, running

CANARY = "canary-of-a-client"
pytestmark = pytest.mark.anyio


def request(address: str = "192.0.2.1", who: str | None = None, **headers: str) -> dict[str, Any]:
    """A scope, as far as refusals look at it."""
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope: dict[str, Any] = {"type": "http", "client": (address, 5), "headers": raw}
    if who is not None:
        scope["user"] = AuthenticatedUser(AccessToken(token="x", client_id=who, scopes=[], subject=who))
    return scope


@pytest.mark.slow
async def test_every_refusal_is_told_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    made = {name: create_token(f"{name} {scope}") for name, scope in (("alice", "destroy"), ("bob", "read"))}
    (tmp_path / "tokens").write_text("\n".join(line for _, line in made.values()), "utf-8")
    audit = tmp_path / "audit"
    options = ["--auth-file", str(tmp_path / "tokens"), "--audit-file", str(audit), "--rate-calls", "3"]
    command = [sys.executable, "-m", "mcp_fs", "--transport", "http", "--port", "0", *options, str(tmp_path / "files")]

    def bearer(name: str) -> dict[str, str]:
        return {"authorization": f"Bearer {made[name][0]}"}

    async with (
        running([*command, "--log-format", "json"]) as subject,
        httpx2.AsyncClient(trust_env=False) as client,
        HttpWire(subject.url, headers=bearer("alice")) as alice,
        HttpWire(subject.url, revision=MODERN, headers=bearer("bob")) as bob,
    ):
        await alice.open()

        async def ask(status: int, headers: dict[str, str], body: object = None) -> None:
            answer = await client.post(subject.url, json=body or {"x": CANARY}, headers=headers)
            assert answer.status_code == status

        for _ in range(20):
            await ask(401, {"x-canary": CANARY})
        await ask(401, {"authorization": f"Bearer {CANARY}"})
        await ask(421, {"host": f"{CANARY}.example.org"})
        await ask(403, {"origin": f"https://{CANARY}.example.org"})
        await ask(404, {**alice.headers, **bearer("bob")}, alice.message("tools/list"))
        await ask(413, bearer("alice"), ["x" * 5_000_000])
        write = bob.message("tools/call", {"name": "create_directory", "arguments": {"path": CANARY}})
        await ask(403, bob.headers_for(write), write)
        listing = bob.message("tools/list")
        for status in (200, 200, 200, 429, 429):
            await ask(status, bob.headers_for(listing), listing)
        # A mistake is no refusal.
        await ask(400, bearer("alice"), {"x": CANARY})
        status = subject.stop()
        assert await subject.ends() == status
        session = alice.headers.pop("mcp-session-id")

    lines = [json.loads(line) for line in audit.read_text("utf-8").splitlines()]
    refused = [line for line in lines if line["outcome"] == "refused"]
    assert {line["address"] for line in refused} == {"127.0.0.1"}
    told = [(line.get("identity"), line["status"], line["reason"], line["times"]) for line in refused]
    # Windows ends a process without asking it: what it would have told then stays untold.
    summed = [(None, 401, "no token", 19), ("bob", 429, "You have 3 calls a minute, and used them.", 1)]
    assert told == [
        (None, 401, "no token", 1),
        (None, 401, "token", 1),
        (None, 421, "host", 1),
        (None, 403, "origin", 1),
        ("bob", 404, "session", 1),
        ("alice", 413, "size", 1),
        ("bob", 403, "scope write", 1),
        ("bob", 429, "You have 3 calls a minute, and used them.", 1),
        *(summed if sys.platform != "win32" else []),
    ]
    _, *logged = [json.loads(line) for line in subject.said.strip("\0\n").splitlines()]
    assert [line["level"] for line in logged] == ["warning"] * len(refused)
    assert logged[4]["message"] == "refused with 404 (session): bob at 127.0.0.1, 1 times"
    for text in (audit.read_text("utf-8"), subject.said):
        assert CANARY not in text
        assert "mcpb_" not in text
        assert session not in text


async def test_what_is_refused_in_an_array_is_told_too(tmp_path: Path) -> None:
    """The status of the answer to the array is 200, so a caller could have tried every tool unnoticed."""
    token, line = create_token("bob read")
    audit = tmp_path / "audit"
    options = ["--auth-tokens", line, "--audit-file", str(audit), str(tmp_path)]
    command = [sys.executable, "-m", "mcp_fs", "--transport", "http", "--port", "0", *options]
    async with (
        running(command) as subject,
        HttpWire(subject.url, revision="2025-03-26", headers={"authorization": f"Bearer {token}"}) as wire,
    ):
        await wire.open()
        write = wire.message("tools/call", {"name": "create_directory", "arguments": {"path": "new"}})
        read = wire.message("resources/read", {"uri": "config://settings"})
        for messages in ([write, read], [wire.message("ping"), {"id": 5}]):
            assert (await wire.send_raw(json.dumps(messages).encode())).status_code == 200
    lines = [json.loads(line) for line in audit.read_text("utf-8").splitlines()]
    refused = [(line["identity"], line["status"], line["reason"]) for line in lines if line["outcome"] == "refused"]
    assert sorted(refused) == [("bob", 403, "scope settings"), ("bob", 403, "scope write")]


async def test_a_flood_is_one_line_and_one_number() -> None:
    told: list[dict[str, Any]] = []
    refusals = Refusals(told.append)
    for _ in range(10_000):
        refusals.record(request(), 401)
    assert [line["times"] for line in told] == [1]
    refusals.record(request(who="ada"), 429)
    assert told[1] == {"identity": "ada", "address": "192.0.2.1", "status": 429, "reason": "limit", "times": 1}
    refusals.flush()
    assert [line["times"] for line in told] == [1, 1, 9_999]
    # Told once, whatever comes after.
    refusals.flush()
    assert len(told) == 3


@pytest.mark.share(1)
@pytest.mark.parametrize("form", ["10.0.{}.{}", "2001:db8:{:x}:{:x}::7"])
async def test_a_flood_from_everywhere_is_bounded_too(form: str, caplog: pytest.LogCaptureFixture) -> None:
    told: list[dict[str, Any]] = []
    refusals = Refusals(told.append)
    for number in range(20_000):
        refusals.record(request(form.format(number // 256, number % 256)), 401)
    refusals.flush()
    assert sum(line["times"] for line in told) == 20_000
    assert "address" not in told[-1]
    lines = [JsonFormatter().format(record) for record in caplog.records]
    assert len(lines) == len(told)
    assert sum(map(len, lines)) < 10_000


async def test_the_addresses_of_one_network_are_one_caller() -> None:
    told: list[dict[str, Any]] = []
    refusals = Refusals(told.append)
    for number in range(1_000):
        refusals.record(request(f"2001:db8:1:2::{number:x}"), 401)
    refusals.flush()
    assert [(line["address"], line["times"]) for line in told] == [("2001:db8:1:2::/64", 1), ("2001:db8:1:2::/64", 999)]


async def test_what_is_not_told_yet_is_told_after_a_while() -> None:
    told: list[dict[str, Any]] = []
    arrived = anyio.Event()

    def tell(line: dict[str, Any]) -> None:
        told.append(line)
        if len(told) == 2:
            arrived.set()

    refusals = Refusals(tell, seconds=0.05)
    for _ in range(5):
        refusals.record(request(), 413)
    with anyio.fail_after(30):
        await arrived.wait()
    assert sum(line["times"] for line in told) == 5


@pytest.mark.parametrize("status", [400, 404, 405, 406, 415, 500])
async def test_mistakes_and_failures_are_no_refusals(status: int) -> None:
    told: list[dict[str, Any]] = []
    Refusals(told.append).record(request(), status)
    assert told == []


async def test_no_line_can_be_forged(caplog: pytest.LogCaptureFixture) -> None:
    """An issuer's subject and a proxy's header may hold what a client chose."""
    told: list[dict[str, Any]] = []
    scope = request("10.0.0.1\nrefused: nobody", who="ada\nWARNING all is well")
    set_reason(scope, "scope write")
    with caplog.at_level(logging.INFO):
        Refusals(told.append).record(scope, 403)
    assert told[0]["address"] == "unknown"
    assert len(caplog.messages) == 1
    assert "\n" not in caplog.messages[0]


async def test_a_line_that_clients_cause_is_said_once_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    async with running(FILES) as subject:
        for _ in range(50):
            async with await anyio.connect_tcp(*subject.address) as stream:
                await stream.send(b"\x16\x03\x01 no http at all\r\n\r\n")
                with anyio.fail_after(30):
                    assert b"400" in await stream.receive()
        await subject.says("Invalid HTTP request received")
        subject.stop()
        await subject.ends()
    assert subject.said.count("Invalid HTTP request received") == 1
    log = logging.getLogger("seldom")
    log.addFilter(RateLimitFilter(seconds=0.05))
    with anyio.fail_after(30):
        while "more since the last" not in caplog.text:
            log.warning("a thing with %s", "words")
            await anyio.sleep(0.01)
