"""Over HTTP each caller with a GitHub token of their own: nothing of one reaches another, and no token is seen."""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from e2e.serving import listening
from github_server.oracle import Oracle, Seen
from github_server.oracle.server import Reply
from github_server.serving import TOKEN
from github_server.world import file, issue
from mcp_batteries.errors import Unavailable
from mcp_batteries.settings import load
from mcp_batteries.testing.wire import MODERN, HttpWire, WireError
from mcp_batteries.transports.http.auth.tokens import create_token
from mcp_github.client.api import Api
from mcp_github.policy import Policy
from mcp_github.settings import Settings
from mcp_github.token_verifier import GitHubTokenVerifier
from shared.http_subject import running

pytestmark = pytest.mark.anyio
LEGACY = "2025-11-25"
ALICE, ALICE_LESS, BOB = (f"github_pat_{name}CanaryThatMustNeverBeSeen" for name in ("alice", "less", "bob"))
PRIVATE, WORDS = "octo/secret", "what only alice may know"
URI = f"github://{PRIVATE}/issues/3"
UPDATED = "notifications/resources/updated"


def token_of(seen: Seen) -> str:
    return seen.headers.get("authorization", "").partition(" ")[2]


@pytest.fixture
def world(oracle: Oracle) -> Oracle:
    """A repository that one of alice's two tokens reaches, and nobody else's."""
    oracle.people = {ALICE: "alice", ALICE_LESS: "alice", BOB: "bob"}
    set_issue(oracle, WORDS)
    return oracle


def set_issue(oracle: Oracle, title: str, readers: tuple[str, ...] = (ALICE,)) -> None:
    def respond(seen: Seen) -> Reply:
        found = Reply(200, issue(3, title=title, body=None, updated_at=f"{title} changed"))
        return found if token_of(seen) in readers else Reply(404, {"message": "Not Found"})

    oracle.respond("GET", f"/repos/{PRIVATE}/issues/3", respond)


@asynccontextmanager
async def serving(oracle: Oracle, *more: str) -> AsyncGenerator[str]:
    arguments = ("--api-url", oracle.url, "--auth", "caller", "--poll", "0.2", "--write-interval", "0", *more)
    async with listening("mcp_github", *arguments) as (_, url):
        yield url


@asynccontextmanager
async def client(url: str, token: str, revision: str = MODERN) -> AsyncGenerator[HttpWire]:
    async with HttpWire(url, revision=revision, headers={"authorization": f"Bearer {token}"}) as wire:
        await wire.open()
        yield wire


async def said(wire: HttpWire, tool: str, **arguments: Any) -> str:
    return (await wire.call(tool, **arguments))["content"][0]["text"]


@pytest.mark.slow
async def test_a_client_without_a_token_learns_where_to_log_in(world: Oracle) -> None:
    async with serving(world) as url, httpx2.AsyncClient(trust_env=False) as http:
        refused = await http.post(url, json={})
        assert refused.status_code == 401
        assert 'scope="repo read:org"' in refused.headers["www-authenticate"]
        where = refused.headers["www-authenticate"].partition('resource_metadata="')[2].partition('"')[0]
        told = (await http.get(where)).json()
        assert told["authorization_servers"] == [f"{world.url}/login/oauth"]
        assert told["scopes_supported"] == ["repo", "read:org"]
        # Somebody else's token is nobody's here, and one that can't be GitHub's is not asked about.
        for token, asks in ((TOKEN, 1), ("short", 1), ("x" * 30 + "\\", 1), (TOKEN, 1)):
            answer = await http.post(url, json={}, headers={"authorization": f"Bearer {token}"})
            assert answer.status_code == 401, token
            assert len(world.sent("GET", "/user")) == asks, token


@pytest.mark.share(1)
@pytest.mark.parametrize("revision", [LEGACY, MODERN])
async def test_what_one_token_reads_no_other_sees(revision: str, world: Oracle) -> None:
    world.answer(
        "GET", f"/repos/{PRIVATE}/contents/a.txt", {**file("a.txt", b"1"), "encoding": "none", "content": None}
    )
    world.respond(
        "GET",
        f"/repos/{PRIVATE}/git/blobs/.*",
        lambda seen: Reply(raw=WORDS.encode()) if token_of(seen) == ALICE else Reply(404, {"message": "Not Found"}),
    )
    ways: list[tuple[str, dict[str, Any]]] = [("get_issue", {"number": 3}), ("read_file", {"path": "a.txt"})]
    async with (
        serving(world) as url,
        client(url, ALICE, revision) as alice,
        client(url, ALICE_LESS, revision) as less,
        client(url, BOB, revision) as bob,
    ):
        for tool, arguments in ways:
            for _ in range(2):  # The second is answered from what is kept.
                assert WORDS in await said(alice, tool, repo=PRIVATE, **arguments), tool
            for other in (less, bob):
                assert WORDS not in await said(other, tool, repo=PRIVATE, **arguments), tool
        # The same session serves each request with the token that came with it.
        alice.headers["authorization"] = f"Bearer {ALICE_LESS}"
        assert WORDS not in await said(alice, "get_issue", repo=PRIVATE, number=3)
        me = await said(bob, "get_me")
        assert '"login":"bob"' in me and '"token_from":"the caller"' in me
    # What is kept of one's answers is asked for with one's own tag alone.
    tags = {token_of(seen) for seen in world.sent("GET", "/issues/3") if "if-none-match" in seen.headers}
    assert tags == {ALICE}


@pytest.mark.slow
@pytest.mark.parametrize("revision", [LEGACY, MODERN])
async def test_what_changes_is_told_to_those_who_may_know_of_it(revision: str, world: Oracle) -> None:
    async with serving(world) as url, client(url, ALICE, revision) as alice, client(url, BOB, revision) as bob:
        for wire in (alice, bob):
            await wire.subscribe(URI)
            await wire.subscribe("github://octo/open/issues/4")
        set_issue(world, "news for alice")
        await alice.updated(URI)
        # What bob is told of comes after what he may not be told of.
        world.answer("GET", "/repos/octo/open/issues/4", issue(4, title="for all", updated_at="2026-02-02T00:00:00Z"))
        await bob.notification(UPDATED, lambda params: params["uri"] != URI)
        assert not [note for note in bob.notifications if note.get("params", {}).get("uri") == URI]
    looks = [token_of(seen) for seen in world.sent("GET", "/issues/3")]
    assert set(looks) == {ALICE, BOB}


@pytest.mark.slow
async def test_a_token_is_in_no_log_answer_or_file(world: Oracle, tmp_path: Path) -> None:
    world.answer("GET", "/repos/octo/echo/issues/3", issue(3, title=f"{ALICE} {TOKEN}"))
    world.answer("GET", "/repos/octo/failing/issues/3", {"message": f"no {ALICE}"}, status=403)
    more = ["--audit-file", str(tmp_path / "audit"), "--wire-log", str(tmp_path / "wire"), "--log-level", "debug"]
    command = ["--transport", "http", "--port", "0", "--api-url", world.url, "--auth", "caller", *more]
    seen: list[str] = []
    async with running([sys.executable, "-m", "mcp_github", *command]) as subject:
        async with client(subject.url, ALICE, LEGACY) as alice:
            seen.append(str(await alice.request("tools/list")))
            seen += [await said(alice, "get_issue", repo=f"octo/{name}", number=3) for name in ("echo", "failing")]
            with pytest.raises(WireError):
                await alice.request("resources/read", {"uri": "github://octo/failing/issues/3"})
        subject.ask_to_end()
        await subject.ends()
        seen.append(subject.said)
    seen.append((tmp_path / "audit").read_text("utf-8"))
    assert "alice:5@" in seen[-1]
    assert "[token]" in "".join(seen)
    for text in seen:
        assert "Canary" not in text


async def test_an_operators_token_opens_nothing_on_github(world: Oracle, tmp_path: Path) -> None:
    token, line = create_token("carol read write destroy")
    (tmp_path / "tokens").write_text(f"{line}\n", "utf-8")
    async with serving(world, "--auth-file", str(tmp_path / "tokens"), "--write") as url, client(url, token) as carol:
        before = len(world.seen)
        assert "came without a GitHub token" in await said(carol, "get_issue", repo="octo/app", number=3)
        assert "came without a GitHub token" in await said(carol, "create_issue", repo="octo/app", title="T")
        assert len(world.seen) == before


@pytest.mark.slow
async def test_who_read_is_who_is_asked_whatever_their_token(world: Oracle) -> None:
    async with (
        serving(world, "--write") as url,
        client(url, ALICE) as alice,
        client(url, ALICE_LESS) as less,
        client(url, BOB) as bob,
    ):
        assert "octo/app" in await said(alice, "get_issue", repo="octo/app", number=3)
        for wire, asked in ((alice, True), (less, True), (bob, False)):
            text = await said(wire, "create_comment", repo="octo/own", number=3, body="B")
            assert ("cannot ask" in text) is asked, text


async def test_made_up_tokens_have_github_asked_a_few_times_at_most(world: Oracle) -> None:
    settings = load(Settings, ["--api-url", world.url, "--auth", "caller", "--transport", "http"])
    async with Api(settings, Policy(settings)) as api:
        callers = GitHubTokenVerifier(api, "", ("repo",))
        assert await callers.verify_token(ALICE) is not None
        refused = 0
        for number in range(40):
            try:
                assert await callers.verify_token(f"ghp_madeUpTokenNumber{number:010}") is None
            except Unavailable as problem:
                assert problem.retry_after
                refused += 1
        assert len(world.sent("GET", "/user")) <= 12
        assert refused >= 29
        # Who is known goes on.
        found = await callers.verify_token(ALICE)
        assert found is not None and found.subject == "alice:5"


async def test_a_token_ends_when_github_says(world: Oracle) -> None:
    settings = load(Settings, ["--api-url", world.url, "--auth", "caller", "--transport", "http"])
    for text, moment in (
        ("2030-01-31 08:00:00 UTC", 1_896_076_800),
        ("2030-01-31 09:00:00 +0100", 1_896_076_800),
        ("soon", None),
        ("9999-99-99 00:00:00 UTC", None),
    ):
        header = {"GitHub-Authentication-Token-Expiration": text}
        world.answer("GET", "/user", {"login": "alice", "id": 5}, headers=header)
        async with Api(settings, Policy(settings)) as api:
            found = await GitHubTokenVerifier(api, "", ()).verify_token(ALICE)
            assert found is not None and found.expires_at == moment, text
    for data in ([], {}, {"login": "x"}, {"login": "", "id": 5}, {"id": "5", "login": "x"}):
        world.answer("GET", "/user", data)
        async with Api(settings, Policy(settings)) as api:
            with pytest.raises(Unavailable):
                await GitHubTokenVerifier(api, "", ()).verify_token(ALICE)


async def test_a_revoked_tokens_stream_ends(world: Oracle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp_github.token_verifier._RECHECK_SECONDS", 0.0)
    settings = load(Settings, ["--api-url", world.url, "--auth", "caller", "--transport", "http"])
    async with Api(settings, Policy(settings)) as api:
        callers = GitHubTokenVerifier(api, "", ())
        assert await callers.verify_token(BOB) is not None
        assert world.people is not None
        del world.people[BOB]
        with anyio.fail_after(10):
            looked = anyio.Event()

            async def changed() -> None:
                assert await callers.verify_token(BOB) is None
                looked.set()

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(callers.follow, changed)
                await looked.wait()
                tasks.cancel_scope.cancel()
