"""Static tokens: who is let in, what each may do, and that it ends when the file says so."""

import datetime
import json
import re
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from mcp_batteries.errors import Invalid, Unavailable
from mcp_batteries.testing.wire import MODERN, HttpWire, WireError
from mcp_batteries.transports.http.auth.tokens import Tokens, create_token
from shared.http_subject import Subject, running

ERAS = ("2025-11-25", MODERN)
pytestmark = pytest.mark.anyio


@pytest.fixture
def people() -> dict[str, str]:
    """Name to token; `lines` of them are in `served`."""
    return {}


@asynccontextmanager
async def served(folder: Path, people: dict[str, str], *more: str) -> AsyncGenerator[tuple[Subject, Path]]:
    """mcp-fs for alice, who may do everything, bob, who reads, and sam, who searches; and its file of tokens."""
    lines: list[str] = []
    for wanted in ("alice destroy", "bob read", "sam search.read", "carol metrics", "dora read until=2020-01-01"):
        people[wanted.split()[0]], line = create_token(wanted)
        lines.append(line)
    tokens = folder / "tokens"
    tokens.write_text("# people\n" + "\n".join(lines) + "\n", "utf-8")
    (folder / "files").mkdir()
    (folder / "files" / "notes.txt").write_text("one\n", "utf-8")
    command = [sys.executable, "-m", "mcp_fs", "--transport", "http", "--port", "0", "--auth-file", str(tokens)]
    async with running([*command, *more, str(folder / "files")]) as subject:
        yield subject, tokens


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def challenge(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.headers.get("www-authenticate", "")


async def test_a_token_is_found_by_its_hash_alone() -> None:
    token, line = create_token("alice read write")
    assert token not in line
    tokens = Tokens(None, f"{line}; {create_token('bob')[1]} until=2020-01-01")
    access = await tokens.verify_token(token)
    assert access is not None
    assert (access.client_id, access.scopes) == ("alice", ["read", "write"])
    for wrong in ("", token[:-1], token + "x", line, "\ud800"):
        assert await tokens.verify_token(wrong) is None


@pytest.mark.slow
async def test_a_call_inside_another_beyond_the_scopes_is_challenged_like_one_alone(tmp_path: Path) -> None:
    people: dict[str, str] = {}
    write = {"name": "write_file", "arguments": {"path": "never", "content": "x"}}
    reading = {"name": "read_text", "arguments": {"path": "notes.txt"}}
    async with (
        served(tmp_path, people, "--tools", "default,call_tools") as (subject, _),
        HttpWire(subject.url, headers=bearer(people["bob"])) as wire,
    ):
        await wire.open()
        for calls in ([reading, write], json.dumps([{"write_file": write["arguments"]}])):
            message = wire.message("tools/call", {"name": "call_tools", "arguments": {"calls": calls}})
            status, said = challenge(await wire.send_raw(json.dumps(message).encode(), wire.headers_for(message)))
            assert status == 403 and 'error="insufficient_scope"' in said and 'scope="read destroy"' in said
        assert not (await wire.call("call_tools", calls=[reading])).get("isError")
    assert not (tmp_path / "files" / "never").exists()


async def test_a_token_lasts_to_the_end_of_its_day_and_no_longer() -> None:
    today = datetime.datetime.now(datetime.UTC).date()
    for day, counts in ((today, True), (today - datetime.timedelta(days=3), False)):
        token, line = create_token(f"alice until={day}")
        assert " read " in line
        assert (await Tokens(None, line).verify_token(token) is not None) is counts


@pytest.mark.parametrize("wanted", ["", "ali/ce", "alice until=soon", "#alice"])
def test_a_line_that_could_not_be_read_is_not_made(wanted: str) -> None:
    with pytest.raises(Invalid):
        create_token(wanted)


@pytest.mark.parametrize(
    ("request_", "prefix", "problem"),
    [
        ("alice raed", "", "`raed` is no scope. Did you mean read?"),
        ("alice read Write", "", "`Write` is no scope. Did you mean write?"),
        ("alice read,write", "", "`read,write` is no scope."),
        ("alice *", "", "`*` is no scope. Use read, write, destroy, metrics, settings, or one of a toolset"),
        ("alice search.raed", "", "`search.raed` is no scope."),
        ("alice .read", "", "`.read` is no scope."),
        ("alice metrics.read.x", "", "`metrics.read.x` is no scope."),
        ("alice read", "files:", "`read` is no scope. Use files:read, files:write,"),
        ("alice files:raed", "files:", "`files:raed` is no scope. Did you mean files:read?"),
        ("alice read write destroy metrics settings search.destroy role=x", "", None),
        ("alice files:read files:search.write", "files:", None),
        ("alice until=2031-01-31", "files:", None),
    ],
)
def test_a_scope_that_does_not_exist_is_refused(
    request_: str, prefix: str, problem: str | None, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    if problem is None:
        Tokens(None, create_token(request_, prefix)[1], prefix)
        return
    with pytest.raises(Invalid, match=re.escape(problem)):
        create_token(request_, prefix)
    name, *scopes = request_.split()
    line = f"{name} sha256:{'0' * 64} {' '.join(scopes)}"
    with pytest.raises(Invalid, match=re.escape(problem)):
        Tokens(None, line, prefix)
    (tmp_path / "tokens").write_text(line, "utf-8")
    Tokens(str(tmp_path / "tokens"), None, prefix)
    assert "line 1 of the file of tokens lets nobody in: it names a scope that does not exist" in caplog.text


async def test_one_bad_line_is_logged_without_its_words_and_the_others_count(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    token, line = create_token("alice")
    (tmp_path / "tokens").write_text(f"bob the-secret-itself\n{line}  # Alice\n\n", "utf-8")
    assert await Tokens(str(tmp_path / "tokens")).verify_token(token) is not None
    assert "line 1" in caplog.text
    assert "the-secret-itself" not in caplog.text
    with pytest.raises(Unavailable, match="--new-token"):
        Tokens(str(tmp_path / "missing"))


async def test_a_line_that_lets_nobody_in_is_logged_again_only_when_the_file_changes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "tokens"
    file.write_text("bob\n", "utf-8")
    tokens = Tokens(str(file))
    reads, done = anyio.create_memory_object_stream[None](10)

    async def count() -> None:
        await reads.send(None)

    async with reads, done, anyio.create_task_group() as tasks:
        tasks.start_soon(tokens.follow, count)
        with anyio.fail_after(20):
            await done.receive()
            assert caplog.text.count("lets nobody in") == 1
            file.write_text("bob\ncarol\n", "utf-8")
            await done.receive()
        assert caplog.text.count("lets nobody in") == 3
        tasks.cancel_scope.cancel()


@pytest.mark.slow
def test_the_command_prints_the_line_apart_from_the_token() -> None:
    command = [sys.executable, "-m", "mcp_fs", "--new-token", "alice read"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    token = done.stderr.split()[-1]
    assert done.stdout.startswith("alice sha256:")
    assert done.stdout.count("\n") == 1
    assert token.startswith("mcpb_")
    assert token not in done.stdout


async def test_who_is_let_in(tmp_path: Path, people: dict[str, str]) -> None:
    async with served(tmp_path, people) as (subject, _), httpx2.AsyncClient(trust_env=False) as client:

        async def ask(headers: dict[str, str] | list[tuple[str, str]], query: str = "") -> tuple[int, str]:
            return challenge(await client.post(subject.url + query, json={}, headers=headers))

        assert await ask({}) == (401, 'Bearer scope="read write destroy"')
        status, said = await ask(bearer("mcpb_nobody"))
        assert status == 401
        assert 'error="invalid_token"' in said
        for wrong in ("", "Basic YTpi", f"Basic {people['alice']}", "Bearer", f"Bearer {'x' * 60_000}"):
            status, said = await ask({"authorization": wrong})
            assert status in (400, 401)
        assert (await ask([*bearer(people["alice"]).items(), *bearer(people["bob"]).items()]))[0] == 401
        assert (await ask({}, f"?access_token={people['alice']}"))[0] == 401
        assert (await ask(bearer(people["dora"])))[0] == 401
        status, said = await ask(bearer(people["carol"]))
        assert status == 403
        assert 'error="insufficient_scope"' in said
        for revision in ERAS:
            async with HttpWire(subject.url, revision=revision, headers=bearer(people["bob"])) as wire:
                await wire.open()
                assert (await wire.call("read_text", path="notes.txt"))["content"][0]["text"].endswith("one\n")
        # There is nobody to log in with, and so nothing to find.
        metadata = subject.url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp")
        assert (await client.get(metadata)).status_code == 401
        assert (await client.get(subject.url.replace("/mcp", "/readyz"))).status_code == 200
    for token in people.values():
        assert token not in subject.said


@pytest.mark.slow
@pytest.mark.share(1)
@pytest.mark.parametrize("revision", ERAS)
async def test_what_a_caller_may_not_use_is_not_listed_and_is_refused(
    revision: str, tmp_path: Path, people: dict[str, str]
) -> None:
    write: dict[str, Any] = {"name": "create_directory", "arguments": {"path": "made"}}
    async with served(tmp_path, people) as (subject, _):
        listed: dict[str, set[str]] = {}
        for name in ("alice", "bob", "sam"):
            async with HttpWire(subject.url, revision=revision, headers=bearer(people[name])) as wire:
                await wire.open()
                listed[name] = {tool["name"] for tool in (await wire.request("tools/list"))["tools"]}
                templates = (await wire.request("resources/templates/list"))["resourceTemplates"]
                assert bool(templates) == (name != "sam")
                if name == "sam":
                    assert (await wire.request("prompts/list"))["prompts"] == []
                    for method, params in (
                        ("resources/read", {"uri": "file:///x"}),
                        ("resources/subscribe", {"uri": "file:///x"}),
                        ("prompts/get", {"name": "x"}),
                    ):
                        message = wire.message(method, params)
                        answer = await wire.send_raw(json.dumps(message).encode(), wire.headers_for(message))
                        assert answer.status_code == 403, method
                    if revision == MODERN:
                        with pytest.raises(WireError):
                            await wire.listen({"resourcesListChanged": True})
                        await wire.listen({"toolsListChanged": True})
                if name == "alice":
                    assert not (await wire.request("tools/call", write)).get("isError")
                else:
                    message = wire.message("tools/call", {**write, "arguments": {"path": "never"}})
                    answer = await wire.send_raw(json.dumps(message).encode(), wire.headers_for(message))
                    status, said = challenge(answer)
                    assert status == 403
                    held = {"bob": "read", "sam": "search.read"}[name]
                    assert f'error="insufficient_scope"' in said  # noqa: F541
                    assert f'scope="{held} write"' in said
                    assert answer.json()["id"] == message["id"]
        assert listed["alice"] > listed["bob"] > listed["sam"] > set()
        assert "search_text" in listed["sam"]
        assert not (tmp_path / "files" / "never").exists()


async def test_a_session_is_its_owners(tmp_path: Path, people: dict[str, str]) -> None:
    async with (
        served(tmp_path, people) as (subject, _),
        HttpWire(subject.url, headers=bearer(people["alice"])) as wire,
        httpx2.AsyncClient(trust_env=False) as client,
    ):
        await wire.open()
        for method in ("POST", "GET", "DELETE"):
            stolen = {**wire.headers_for({}), **bearer(people["bob"]), "content-type": "application/json"}
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"} if method == "POST" else None
            assert (await client.request(method, subject.url, json=body, headers=stolen)).status_code == 404
        assert (await wire.request("tools/list"))["tools"]


@pytest.mark.slow
@pytest.mark.share(1)
@pytest.mark.diagonal
@pytest.mark.parametrize("change", ["removed", "fewer scopes"])
@pytest.mark.parametrize("revision", ERAS)
async def test_streams_end_with_their_token(revision: str, change: str, tmp_path: Path, people: dict[str, str]) -> None:
    async with (
        served(tmp_path, people) as (subject, tokens),
        HttpWire(subject.url, revision=revision, headers=bearer(people["alice"])) as wire,
        HttpWire(subject.url, revision=revision, headers=bearer(people["bob"])) as other,
    ):
        await wire.open()
        await other.open()
        uri = (tmp_path / "files" / "notes.txt").as_uri()
        await other.subscribe(uri)
        if revision == MODERN:
            message = wire.message("subscriptions/listen", {"notifications": {"resourcesListChanged": True}})
            stream = wire.client.stream("POST", wire.url, json=message, headers=wire.headers_for(message))
        else:
            # A second stream beside the one of the wire would be refused.
            opening = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
            body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening}
            headers = {key: value for key, value in wire.headers.items() if key != "mcp-session-id"}
            fresh = await wire.client.post(wire.url, json=body, headers=headers)
            session = {"mcp-session-id": fresh.headers["mcp-session-id"], "mcp-protocol-version": revision}
            stream = wire.client.stream("GET", wire.url, headers={**wire.headers, **session})
        async with stream as response:
            assert response.status_code == 200
            (hers, *others) = tokens.read_text("utf-8").splitlines()[1:]
            assert hers.startswith("alice ")
            assert hers.endswith(" destroy")
            left = [] if change == "removed" else [hers.removesuffix("destroy") + "read"]
            tokens.write_text("\n".join([*left, *others]), "utf-8")
            with anyio.fail_after(30):
                async for _ in response.aiter_bytes():
                    pass
        again = await wire.send_raw(b"{}")
        assert (again.status_code == 401) is (change == "removed")
        # The others hear as before.
        (tmp_path / "files" / "notes.txt").write_text("two\n", "utf-8")
        await other.notification("notifications/resources/updated")
        del wire.headers["authorization"]
        wire.headers.pop("mcp-session-id", None)


@pytest.mark.slow
async def test_a_token_that_comes_along_is_known_without_a_restart(tmp_path: Path, people: dict[str, str]) -> None:
    async with served(tmp_path, people) as (subject, tokens):
        token, line = create_token("eve read")
        with tokens.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
        async with HttpWire(subject.url, headers=bearer(token)) as wire:
            with anyio.fail_after(30):
                while (await wire.send_raw(b"{}")).status_code == 401:
                    pass


@pytest.mark.slow
async def test_a_public_address_needs_tokens_or_the_word(tmp_path: Path, people: dict[str, str]) -> None:
    async with served(tmp_path, people, "--host", "0.0.0.0", "--public-url", "https://files.example.org/mcp") as (
        subject,
        _,
    ):
        assert "on their way" in " ".join(subject.said.split())
        async with httpx2.AsyncClient(trust_env=False) as client:
            url = f"http://127.0.0.1:{subject.address[1]}/mcp"
            for host, status in (("files.example.org", 401), ("evil.example.org", 421)):
                assert (await client.post(url, json={}, headers={"host": host})).status_code == status
    done = subprocess.run(
        [sys.executable, "-m", "mcp_fs", "--transport", "http", "--host", "0.0.0.0", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert "--allow-anonymous" in done.stderr


@pytest.mark.slow
async def test_the_old_transport_keeps_the_same_rules(tmp_path: Path, people: dict[str, str]) -> None:
    """HTTP+SSE: messages go one way, answers another; nothing but the middleware can say no to a message there."""
    async with (
        served(tmp_path, people, "--transport", "sse") as (subject, _),
        httpx2.AsyncClient(trust_env=False, timeout=30) as client,
    ):
        assert (await client.get(subject.url)).status_code == 401
        async with client.stream("GET", subject.url, headers=bearer(people["bob"])) as stream:
            events = aiter(httpx2.EventSource(stream))
            where = subject.url.replace("/sse", "") + (await anext(events)).data

            async def ask(method: str, params: dict[str, Any], name: str = "bob") -> int:
                body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
                return (await client.post(where, json=body, headers=bearer(people[name]))).status_code

            opening = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
            assert await ask("initialize", opening, "alice") == 404
            assert await ask("initialize", opening) == 202
            assert "result" in json.loads((await anext(events)).data)
            note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            await client.post(where, json=note, headers=bearer(people["bob"]))
            assert await ask("tools/list", {}) == 202
            listed = {tool["name"] for tool in json.loads((await anext(events)).data)["result"]["tools"]}
            assert "read_text" in listed
            assert "create_directory" not in listed
            await ask("tools/call", {"name": "create_directory", "arguments": {"path": "never"}})
            refused = json.loads((await anext(events)).data)
            assert "`write`" in refused["error"]["message"]
    assert not (tmp_path / "files" / "never").exists()
