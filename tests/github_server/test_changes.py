"""A change upstream reaches whoever follows it: both eras, both transports, one look for all processes."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from e2e.following import changes_since
from e2e.serving import TRANSPORTS, connected
from github_server.oracle import Oracle, Seen
from github_server.serving import TOKEN
from github_server.world import changed, file, issue, sample
from mcp_batteries.testing.wire import MODERN, Wire

ISSUE, PULL, DIFF = "github://octo/app/issues/3", "github://octo/app/pulls/5", "github://octo/app/pulls/5/diff"
RUN, FILE, RELEASE = (
    "github://octo/app/runs/9",
    "github://octo/app/contents/a%20b.txt?ref=main",
    "github://octo/app/releases/v1",
)
INBOX, README = "github://notifications", "github://octo/app/readme"


def arguments(oracle: Oracle, folder: Path) -> list[str]:
    return ["--api-url", oracle.url, "--poll", "0.2", "--cache", str(folder), "--toolsets", "all"]


async def told_of(wire: Wire, uri: str, words: str) -> None:
    """Wait for the notice after which `uri` reads `words`; the first look at something is a notice of its own."""
    while True:
        await wire.updated(uri)
        if words in await wire.read(uri):
            return


def world(oracle: Oracle) -> dict[str, Callable[[int], None]]:
    """What is followed, each with a way to change it."""

    def set_issue(version: int) -> None:
        oracle.answer(
            "GET", "/repos/octo/app/issues/3", issue(3, title=f"v{version}", updated_at=f"2026-01-0{version}T00:00:00Z")
        )

    def set_pull(version: int) -> None:
        pull = sample("pulls/get")
        oracle.answer("GET", "/repos/octo/app/pulls/5", {**pull, "number": 5, "title": f"v{version}"})

    def set_run(version: int) -> None:
        run = sample("actions/get-workflow-run")
        oracle.answer(
            "GET",
            "/repos/octo/app/actions/runs/9",
            {**run, "id": 9, "display_title": f"v{version}", "run_attempt": version},
        )

    def set_file(version: int) -> None:
        oracle.answer("GET", "/repos/octo/app/contents/a b.txt", file("a b.txt", f"v{version}\n".encode()))

    def set_release(version: int) -> None:
        oracle.answer(
            "GET", "/repos/octo/app/releases/tags/v1", {**sample("repos/get-release-by-tag"), "name": f"v{version}"}
        )

    def set_inbox(version: int) -> None:
        note = sample("activity/list-notifications-for-authenticated-user")[0]
        oracle.answer("GET", "/notifications", [{**note, "subject": {**note["subject"], "title": f"v{version}"}}])

    def set_readme(version: int) -> None:
        oracle.answer("GET", "/repos/octo/app/readme", raw=f"# v{version}\n".encode())

    ways = {
        ISSUE: set_issue,
        PULL: set_pull,
        RUN: set_run,
        FILE: set_file,
        RELEASE: set_release,
        INBOX: set_inbox,
        README: set_readme,
    }
    for change in ways.values():
        change(1)
    return ways


@pytest.mark.share(1)
@pytest.mark.diagonal
@pytest.mark.anyio
@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_change_reaches_its_followers(transport: str, revision: str, oracle: Oracle, tmp_path: Path) -> None:
    ways = world(oracle)
    async with connected(transport, revision, "mcp_github", arguments(oracle, tmp_path / "cache")) as wire:
        for uri in ways:
            await wire.subscribe(uri)
            assert "v1" in await wire.read(uri), uri
        for change in ways.values():
            change(2)
        for uri in ways:
            await told_of(wire, uri, "v2")
    # Looks that found nothing new were answered without a body.
    assert all("if-none-match" in seen.headers for seen in looks(oracle, "/repos/octo/app/issues/3")[1:])
    assert not any(TOKEN.encode() in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def looks(oracle: Oracle, path: str) -> list[Seen]:
    return [seen for seen in oracle.seen if seen.path == path]


@pytest.mark.slow
@pytest.mark.anyio
async def test_two_processes_ask_once(oracle: Oracle, tmp_path: Path) -> None:
    change = world(oracle)[ISSUE]
    async with anyio.create_task_group() as tasks:
        ready: list[Wire] = []
        proceed, done = anyio.Event(), anyio.Event()

        async def follow(revision: str) -> None:
            async with connected("stdio", revision, "mcp_github", arguments(oracle, tmp_path / "cache")) as wire:
                await wire.subscribe(ISSUE)
                ready.append(wire)
                if len(ready) == 2:
                    proceed.set()
                await done.wait()

        for revision in ("2025-11-25", MODERN):
            tasks.start_soon(follow, revision)
        with anyio.fail_after(60):
            await proceed.wait()
            for version in (2, 3):
                change(version)
                for wire in ready:
                    await told_of(wire, ISSUE, f"v{version}")
        done.set()
    whole = [seen for seen in looks(oracle, "/repos/octo/app/issues/3") if "if-none-match" not in seen.headers]
    assert len(whole) == 1


@pytest.mark.anyio
async def test_a_tool_reads_what_the_last_check_of_a_follower_left(oracle: Oracle, tmp_path: Path) -> None:
    change = world(oracle)[ISSUE]
    path = "/repos/octo/app/issues/3"
    async with connected("stdio", MODERN, "mcp_github", arguments(oracle, tmp_path / "cache")) as wire:
        await wire.subscribe(ISSUE)
        change(2)
        await told_of(wire, ISSUE, "v2")
        before = len(looks(oracle, path))
        result = await wire.request("tools/call", {"name": "get_issue", "arguments": {"repo": "octo/app", "number": 3}})
        assert "v2" in json.dumps(result)
    # It is the first read by a tool, and GitHub only says that the answer is still true.
    current = issue(3, title="v2", updated_at="2026-01-02T00:00:00Z")
    etag = f'"{hashlib.sha256(json.dumps(current).encode()).hexdigest()[:20]}"'
    later = looks(oracle, path)[before:]
    assert later and {seen.headers.get("if-none-match") for seen in later} == {etag}


@pytest.mark.anyio
async def test_a_check_begins_with_what_a_tool_has_read(oracle: Oracle, tmp_path: Path) -> None:
    world(oracle)
    path = "/repos/octo/app/issues/3"
    ask = {"name": "get_issue", "arguments": {"repo": "octo/app", "number": 3}}
    async with connected("stdio", MODERN, "mcp_github", [*arguments(oracle, tmp_path), "--poll", "600"]) as wire:
        await wire.request("tools/call", ask)
        await wire.subscribe(ISSUE)
        assert "v1" in await wire.read(ISSUE)
    first, second = looks(oracle, path)
    assert "if-none-match" not in first.headers and "if-none-match" in second.headers


@pytest.mark.anyio
async def test_followers_hear_of_what_a_tool_has_read_meanwhile(oracle: Oracle, tmp_path: Path) -> None:
    change = world(oracle)[ISSUE]
    path = "/repos/octo/app/issues/3"
    ask = {"name": "get_issue", "arguments": {"repo": "octo/app", "number": 3}}
    async with connected("stdio", MODERN, "mcp_github", [*arguments(oracle, tmp_path), "--poll", "2"]) as wire:
        await wire.subscribe(ISSUE)
        assert "v1" in await wire.read(ISSUE)
        change(2)
        assert "v2" in json.dumps(await wire.request("tools/call", ask))
        before = len(looks(oracle, path))
        await told_of(wire, ISSUE, "v2")
    # The check asks whether the read is still true, and takes what that left.
    current = issue(3, title="v2", updated_at="2026-01-02T00:00:00Z")
    etag = f'"{hashlib.sha256(json.dumps(current).encode()).hexdigest()[:20]}"'
    assert {seen.headers.get("if-none-match") for seen in looks(oracle, path)[before:]} == {etag}


@pytest.mark.anyio
async def test_a_followed_run_is_read_without_another_request(oracle: Oracle, tmp_path: Path) -> None:
    world(oracle)
    slow = [*arguments(oracle, tmp_path / "cache"), "--poll", "600"]
    async with connected("stdio", MODERN, "mcp_github", slow) as wire:
        await wire.subscribe(RUN)
        for _ in range(2):
            assert "v1" in await wire.read(RUN)
    assert len(looks(oracle, "/repos/octo/app/actions/runs/9")) == 1


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_diff_changes_with_its_commits_only(oracle: Oracle, tmp_path: Path) -> None:
    change = world(oracle)[PULL]
    oracle.answer("GET", "/repos/octo/app/pulls/5/files", [changed("a.py")])
    async with connected("stdio", MODERN, "mcp_github", arguments(oracle, tmp_path / "cache")) as wire:
        await wire.subscribe(DIFF)
        await wire.subscribe(PULL)
        change(2)
        await told_of(wire, PULL, "v2")
        wire.messages.clear()
        pull = sample("pulls/get")
        head = {**pull["head"], "sha": "1" * 40}
        oracle.answer("GET", "/repos/octo/app/pulls/5", {**pull, "number": 5, "head": head})
        await wire.updated(DIFF)
        assert "a.py" in await wire.read(DIFF)


@pytest.mark.share(1)
@pytest.mark.anyio
@pytest.mark.parametrize("gaps", [[], [None]], ids=["", "with a gap"])
async def test_many_issues_are_probed_by_one_list(gaps: list[None], oracle: Oracle, tmp_path: Path) -> None:
    items = {number: issue(number, updated_at="2026-01-01T00:00:00Z") for number in range(1, 6)}
    for number in items:
        oracle.respond("GET", f"/repos/octo/app/issues/{number}", lambda seen, number=number: _reply(items[number]))
    oracle.respond("GET", "/repos/octo/app/issues", lambda seen: _reply([*gaps, *items.values()]))
    async with connected("stdio", MODERN, "mcp_github", arguments(oracle, tmp_path / "cache")) as wire:
        for number in items:
            await wire.subscribe(f"github://octo/app/issues/{number}")
        with anyio.fail_after(60):
            while len(looks(oracle, "/repos/octo/app/issues")) < 3:
                await anyio.sleep(0.05)
        before = len(oracle.seen)
        items[4] = issue(4, title="changed", updated_at="2026-01-02T00:00:00Z")
        await told_of(wire, "github://octo/app/issues/4", "changed")
        since = [seen.path for seen in oracle.seen[before:]]
    assert gaps or since.count("/repos/octo/app/issues/4") == 1
    assert gaps or not {f"/repos/octo/app/issues/{number}" for number in (1, 2, 3, 5)} & set(since)


def _reply(data: object):
    from github_server.oracle.server import Reply

    return Reply(200, json.loads(json.dumps(data)))


@pytest.mark.anyio
async def test_what_is_not_served_is_not_followed(oracle: Oracle, tmp_path: Path) -> None:
    from mcp_batteries.testing.wire import WireError

    more = [*arguments(oracle, tmp_path / "cache"), "--repos", "octo/app"]
    async with connected("stdio", "2025-11-25", "mcp_github", more) as wire:
        for uri in ("github://other/secret", "github://octo/app/nothing", "github://octo/app/issues/x"):
            with pytest.raises(WireError):
                await wire.subscribe(uri)
    assert oracle.seen == []


@pytest.mark.share(1)
@pytest.mark.anyio
@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
async def test_what_changed_since(revision: str, oracle: Oracle, tmp_path: Path) -> None:
    ways = world(oracle)
    async with connected("stdio", revision, "mcp_github", arguments(oracle, tmp_path / "cache")) as wire:
        for uri in (ISSUE, FILE):
            await wire.subscribe(uri)
            assert "v1" in await wire.read(uri)
        _, since = await changes_since(wire, None, ISSUE, FILE)
        for uri in (ISSUE, FILE):
            ways[uri](2)
            await told_of(wire, uri, "v2")
            found, since = await changes_since(wire, since)
            assert found == {uri}
