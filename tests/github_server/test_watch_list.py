"""The watch list drives what is listed; signed deliveries have what is followed looked at, and nothing else."""

import hashlib
import hmac
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from e2e.serving import connected
from github_server.oracle import Oracle
from github_server.world import issue
from mcp_batteries.errors import Unavailable
from mcp_batteries.settings import load
from mcp_batteries.testing.wire import MODERN, Wire
from mcp_github.changes import DeliverySource
from mcp_github.policy import Policy
from mcp_github.server import build
from mcp_github.settings import Settings
from mcp_github.watch.watch_list import WatchList
from mcp_github.watch.webhook_deliveries import ChangeHint, DeliveryFolder, NewDeliveries

SECRET = "a secret of the webhook"
WATCH_LIST, ISSUE = "github://watch-list", "github://octo/app/issues/3"
LIST = 'repositories = ["octo/app"]\nissues = ["Octo/App#3"]\n'


def policy(*arguments: str) -> Policy:
    return Policy(load(Settings, [*arguments]))


async def read(wire: Wire, uri: str) -> Any:
    return json.loads(await wire.read(uri))


async def listed(wire: Wire) -> set[str]:
    return {item["uri"] for item in (await wire.request("resources/list"))["resources"]}


async def until(wire: Wire, method: str, true: Callable[[], Any]) -> None:
    """Wait for the notice after which something is true; more than one notice may be under way."""
    with anyio.fail_after(30):
        while not await true():
            await wire.notification(method)


@pytest.mark.share(1)
@pytest.mark.anyio
@pytest.mark.parametrize(("transport", "revision"), [("stdio", "2025-11-25"), ("http", MODERN)])
async def test_the_watch_list_is_followed(transport: str, revision: str, oracle: Oracle, tmp_path: Path) -> None:
    file = tmp_path / "watch.toml"
    file.write_text(LIST, "utf-8")
    arguments = ["--api-url", oracle.url, "--watch-list", str(file), "--cache", "memory"]
    async with connected(transport, revision, "mcp_github", arguments) as wire:
        assert {"github://octo/app", ISSUE} <= await listed(wire)
        if wire.modern:
            await wire.listen({"resourcesListChanged": True, "resourceSubscriptions": [WATCH_LIST]})
        else:
            await wire.subscribe(WATCH_LIST)
        file.write_text(LIST + 'pull_requests = ["octo/app#5"]\nruns = ["octo/app#9"]\n', "utf-8")
        new = {"github://octo/app/pulls/5", "github://octo/app/runs/9"}

        async def has_new() -> bool:
            return new <= await listed(wire)

        await until(wire, "notifications/resources/list_changed", has_new)
        # At once: a file that is emptied first is a list of nothing for a moment.
        (tmp_path / "watch.toml~").write_text("issues = [", "utf-8")
        os.replace(tmp_path / "watch.toml~", file)

        async def complains() -> bool:
            return "not TOML" in (await read(wire, WATCH_LIST)).get("note", "")

        await until(wire, "notifications/resources/updated", complains)
        assert new <= await listed(wire)
        file.unlink()

        async def is_missed() -> bool:
            return "does not exist" in (await read(wire, WATCH_LIST)).get("note", "")

        await until(wire, "notifications/resources/updated", is_missed)
        assert new <= await listed(wire)
        # As editors save: another file under the same name.
        (tmp_path / "watch.toml~").write_text('issues = ["octo/app#4"]\n', "utf-8")
        os.replace(tmp_path / "watch.toml~", file)

        async def is_small() -> bool:
            return await listed(wire) == {WATCH_LIST, "github://octo/app/issues/4", "config://settings"}

        await until(wire, "notifications/resources/list_changed", is_small)
        assert "note" not in await read(wire, WATCH_LIST)
    assert oracle.seen == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("issues = 3", "not a list"), ('stuff = ["a/b"]', "`stuff`"), ('issues = ["octo/app"]', "`octo/app`"),
        ('repositories = ["octo/app#3"]', "not a repository"), ('runs = ["octo/app#x"]', "is not a number"),
        ('issues = ["other/secret#3"]', "`other/secret#3`"), ('repositories = ["octo/../x"]', "octo"),
    ],
)  # fmt: skip
def test_what_cannot_be_listed_is_told(text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "watch.toml"
    file.write_text('repositories = ["octo/app"]', "utf-8")
    watch_list = WatchList(policy("--repos", "octo/*"), str(file))
    assert watch_list.problem is None
    file.write_text(text, "utf-8")
    assert watch_list.refresh() and words in str(watch_list.problem)
    assert watch_list.all() == {"github://octo/app": "octo/app"}
    file.unlink()
    assert watch_list.refresh() and "does not exist" in str(watch_list.problem)


def delivery(payload: Any, *, secret: str = SECRET, body: str | None = None) -> str:
    raw = json.dumps(payload)
    signature = "sha256=" + hmac.new(secret.encode(), raw.encode(), hashlib.sha256).hexdigest()
    headers = {"X-GitHub-Event": "issues", "X-Hub-Signature-256": signature}
    return json.dumps({"headers": headers, "body": body or raw})


def about(number: int, repo: str = "octo/app", **more: Any) -> dict[str, Any]:
    return {"action": "edited", "repository": {"full_name": repo}, "issue": {"number": number, **more}}


def drop(folder: Path, name: str, text: str) -> None:
    (folder / f"{name}.part").write_text(text, "utf-8")
    os.replace(folder / f"{name}.part", folder / f"{name}.json")


@pytest.mark.share(1)
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("cache", "transport", "revision"), [("disk", "stdio", MODERN), ("memory", "http", "2025-11-25")]
)
async def test_a_signed_delivery_has_one_look_made(
    cache: str, transport: str, revision: str, oracle: Oracle, tmp_path: Path
) -> None:
    folder, secret = tmp_path / "inbox", tmp_path / "secret"
    folder.mkdir()
    secret.write_text(SECRET + "\n", "utf-8")
    for number in (3, 4):
        oracle.answer("GET", f"/repos/octo/app/issues/{number}", issue(number, title="old"))
    arguments = [
        "--api-url", oracle.url, "--poll", "86400", "--cache", "memory" if cache == "memory" else str(tmp_path / "c"),
        "--inbox", str(folder), "--inbox-secret-file", str(secret),
    ]  # fmt: skip
    async with connected(transport, revision, "mcp_github", arguments) as wire:
        for number in (3, 4):
            await wire.subscribe(f"github://octo/app/issues/{number}")
            assert (await read(wire, f"github://octo/app/issues/{number}"))["data"]["title"] == "old"
            oracle.answer("GET", f"/repos/octo/app/issues/{number}", issue(number, title="new"))
        before = len(oracle.seen)
        # Not ours, changed on the way, of elsewhere, nonsense: each is passed over.
        drop(folder, "1", delivery(about(4), secret="another"))
        drop(folder, "2", delivery(about(3), body=json.dumps(about(4))))
        drop(folder, "3", delivery(about(4, repo="octo/other")))
        drop(folder, "4", json.dumps({"body": json.dumps(about(4))}))
        drop(folder, "5", json.dumps([1]))
        # Written in place, in two steps: it counts once it is whole. What it says of the issue is not believed.
        text = delivery(about(3, title="forged"))
        with (folder / "6.json").open("w", encoding="utf-8") as file:
            file.write(text[:40])
            file.flush()
            await anyio.lowlevel.checkpoint()
            file.write(text[40:])

        async def is_new() -> bool:
            return (await read(wire, ISSUE))["data"]["title"] == "new"

        await until(wire, "notifications/resources/updated", is_new)
        assert [seen.path for seen in oracle.seen[before:]] == ["/repos/octo/app/issues/3"]
        assert "if-none-match" in oracle.seen[-1].headers


@pytest.mark.anyio
async def test_a_delivery_that_is_finished_before_it_is_watched_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its file was looked at too early, and changed before anybody would have told."""
    monkeypatch.setenv("WATCHFILES_FORCE_POLLING", "1")  # No event comes late, and helps.
    found: list[ChangeHint] = []
    heard = anyio.Event()

    class Overtaken(DeliveryFolder):
        def read_new(self) -> NewDeliveries:
            deliveries = super().read_new()
            for number, path in enumerate(deliveries.unfinished):
                Path(path).write_text(delivery(about(3 + number)), "utf-8")
            return deliveries

    class Followers:
        async def check_now(self, hint: ChangeHint) -> None:
            found.append(hint)
            if len(found) == 2:
                heard.set()

    def told_nothing(changed: object) -> None:
        raise AssertionError(changed)

    folder = tmp_path / "inbox"
    folder.mkdir()
    for name in ("1.json", "2.json"):
        (folder / name).write_text('{"headers": ', "utf-8")
    followers: Any = Followers()
    source = DeliverySource(Overtaken(policy(), str(folder), str(secret_file(tmp_path))), followers)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(source.run, told_nothing)
        with anyio.fail_after(20):
            await heard.wait()
        tasks.cancel_scope.cancel()


@pytest.mark.anyio
async def test_an_old_delivery_costs_nothing(oracle: Oracle, tmp_path: Path) -> None:
    """Each process sees each delivery; what was looked at since it came needs no other look."""
    oracle.answer("GET", "/repos/octo/app/issues/3", issue(3))
    inbox = DeliveryFolder(policy(), str(tmp_path), str(secret_file(tmp_path)))
    drop(tmp_path, "1", delivery(about(3)))
    (hint,) = inbox.read_new().hints
    assert inbox.read_new() == NewDeliveries()
    from mcp_github.client.api import Api
    from mcp_github.watch.conditional_requests import ConditionalFetcher
    from mcp_github.watch.followed_uris import parse_uri

    settings = load(Settings, ["--api-url", oracle.url])
    async with Api(settings, Policy(settings)) as api:
        remote = ConditionalFetcher(api, interval=1000, cache_location="memory", command="mcp-github")
        followed = parse_uri(Policy(settings), ISSUE)
        assert followed is not None and hint.concerns(followed.path)
        for since in (hint.received, hint.received, hint.received - 100):
            await remote.check_now(followed, since=since)
        assert len(oracle.seen) == 1
        cache = await remote.cache()
        await remote.check_now(followed, since=cache.clock() + 1)
        assert len(oracle.seen) == 2


@pytest.mark.anyio
async def test_what_one_token_fetched_is_not_another_tokens(
    oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tags of answers differ by token, and so may what it sees."""
    from mcp_github.client.api import Api
    from mcp_github.watch.conditional_requests import ConditionalFetcher
    from mcp_github.watch.followed_uris import parse_uri

    oracle.answer("GET", "/repos/octo/app/issues/3", issue(3))
    settings = load(Settings, ["--api-url", oracle.url])
    followed = parse_uri(Policy(settings), ISSUE)
    assert followed is not None
    for token in ("ghp_first", "ghp_second", "ghp_first"):
        monkeypatch.setenv("GITHUB_TOKEN", token)
        async with Api(settings, Policy(settings)) as api:
            remote = ConditionalFetcher(api, interval=0.2, cache_location=str(tmp_path), command="mcp-github")
            cache = await remote.cache()
            await remote.check_now(followed, since=cache.clock() + 1)
    assert ["if-none-match" in seen.headers for seen in oracle.seen] == [False, False, True]
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"ghp_" not in kept


@pytest.mark.parametrize(
    ("payload", "path", "concerned"),
    [
        (about(3), "/repos/Octo/App/issues/3", True),
        (about(3), "/repos/octo/app/issues/33", False),
        ({**about(3), "issue": {"number": "3"}}, "/repos/octo/app/issues/3", False),
        ({"repository": {"full_name": "octo/app"}, "pull_request": {"number": 5}}, "/repos/octo/app/pulls/5", True),
        (
            {"repository": {"full_name": "octo/app"}, "workflow_job": {"run_id": 9}},
            "/repos/octo/app/actions/runs/9",
            True,
        ),
        ({"repository": {"full_name": "octo/app"}, "ref": "refs/heads/x"}, "/repos/octo/app/contents/a%20b", True),
        ({"repository": {"full_name": "octo/app"}, "release": {}}, "/repos/octo/app/releases/tags/v1", True),
        ({"repository": {"full_name": "octo/app"}}, "/repos/octo/app", True),
    ],
)
def test_what_a_delivery_is_about(payload: Any, path: str, concerned: bool, tmp_path: Path) -> None:
    inbox = DeliveryFolder(policy("--repos", "octo/app"), str(tmp_path), str(secret_file(tmp_path)))
    drop(tmp_path, "1", delivery(payload))
    deliveries = inbox.read_new()
    (hint,) = deliveries.hints
    assert hint.concerns(path) is concerned and deliveries.unfinished == []


def test_what_is_not_served_is_no_hint(tmp_path: Path) -> None:
    inbox = DeliveryFolder(policy("--repos", "octo/app"), str(tmp_path), str(secret_file(tmp_path)))
    drop(tmp_path, "1", delivery(about(3, repo="other/secret")))
    drop(tmp_path, "2", delivery({"zen": "Keep it logically awesome."}))
    (tmp_path / "3.json").write_text('{"headers": ', "utf-8")
    # A file of no sensible size is not even opened, and one that would break a parser breaks nothing.
    with (tmp_path / "4.json").open("wb") as huge:
        huge.truncate(40_000_000)
    (tmp_path / "5.json").write_text("[" * 200_000, "utf-8")
    (tmp_path / "6.json").symlink_to(tmp_path / "1.json")
    deliveries = inbox.read_new()
    assert deliveries.hints == [] and [os.path.basename(path) for path in deliveries.unfinished] == ["3.json"]


def secret_file(folder: Path) -> Path:
    file = folder / "secret"
    file.write_text(SECRET, "utf-8")
    return file


def test_an_inbox_needs_a_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_WEBHOOK_SECRET", raising=False)
    with pytest.raises(Unavailable, match="GITHUB_WEBHOOK_SECRET"):
        build(load(Settings, ["--inbox", str(tmp_path)]))
    monkeypatch.setenv("GITHUB_WEBHOOK_SECRET", SECRET)
    build(load(Settings, ["--inbox", str(tmp_path)]))
    with pytest.raises(Unavailable, match="does not exist"):
        build(load(Settings, ["--inbox", str(tmp_path / "missing")]))
    with pytest.raises(Unavailable, match="--inbox-secret-file"):
        build(load(Settings, ["--inbox", str(tmp_path), "--inbox-secret-file", str(tmp_path / "missing")]))
