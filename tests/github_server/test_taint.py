"""Whose reading has whose writing asked about: over HTTP one server has many clients."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from e2e.serving import listening
from github_server.oracle import Oracle
from github_server.serving import call, refused, served
from mcp_batteries.settings import load
from mcp_batteries.testing.wire import MODERN, HttpWire
from mcp_batteries.transports.http.auth.tokens import create_token
from mcp_github.call_context import CallContext, active_call
from mcp_github.policy import Policy
from mcp_github.safety import taint
from mcp_github.safety.taint import TaintTracker
from mcp_github.settings import Settings

pytestmark = pytest.mark.anyio
LEGACY = "2025-11-25"


@asynccontextmanager
async def client(url: str, revision: str, token: str | None = None) -> AsyncGenerator[HttpWire]:
    """One that can't ask its user: what would be asked is refused."""
    headers = {"authorization": f"Bearer {token}"} if token else {}
    async with HttpWire(url, revision=revision, headers=headers) as wire:
        await wire.open()
        yield wire


async def asked(wire: HttpWire, repo: str) -> bool:
    """Whether a write would be asked about."""
    result: Any = await wire.call("create_comment", repo=repo, number=3, body="B")
    text = result["content"][0]["text"]
    assert result.get("isError", False) == ("cannot ask" in text), text
    return result.get("isError", False)


async def reads(wire: HttpWire, repo: str) -> None:
    assert not (await wire.call("get_issue", repo=repo, number=3)).get("isError")


@pytest.mark.slow
async def test_who_reads_is_who_is_asked(oracle: Oracle, tmp_path: Path) -> None:
    made = {name: create_token(f"{name} read write destroy") for name in ("alice", "bob")}
    (tmp_path / "tokens").write_text("".join(f"{line}\n" for _, line in made.values()), "utf-8")
    alice, bob = (token for token, _ in made.values())
    arguments = ("--api-url", oracle.url, "--write", "--write-interval", "0", "--auth-file", str(tmp_path / "tokens"))
    async with listening("mcp_github", *arguments) as (_, url):
        async with client(url, LEGACY, alice) as first, client(url, LEGACY, bob) as other:
            await reads(first, "octo/app")
            assert not await asked(first, "octo/app")
            assert await asked(first, "octo/own")
            assert not await asked(other, "octo/own")
        # A new session, or another revision, is nobody new.
        for revision in (LEGACY, MODERN):
            async with client(url, revision, alice) as again, client(url, revision, bob) as other:
                assert await asked(again, "octo/own"), revision
                assert not await asked(other, "octo/own"), revision
        async with client(url, MODERN, bob) as other, client(url, LEGACY, bob) as same:
            await reads(other, "octo/app")
            assert await asked(same, "octo/own")


@pytest.mark.slow
async def test_without_tokens_sessions_are_told_apart_and_nothing_else_is(oracle: Oracle) -> None:
    async with (
        listening("mcp_github", "--api-url", oracle.url, "--write", "--write-interval", "0") as (_, url),
        client(url, LEGACY) as first,
        client(url, LEGACY) as other,
        client(url, MODERN) as modern,
    ):
        await reads(first, "octo/app")
        assert await asked(first, "octo/own")
        assert not await asked(other, "octo/own")
        # It may be the same client, without a session now.
        assert await asked(modern, "octo/own")


@pytest.mark.parametrize("shared", ["--bus", "--state-key-file"])
async def test_with_replicas_anything_may_have_been_read_elsewhere(shared: str, oracle: Oracle, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("0" * 64, "utf-8")
    value = {"--bus": "redis://127.0.0.1:1", "--state-key-file": str(tmp_path / "keys")}[shared]
    async with served(oracle, "--write", shared, value) as one:
        assert "some other repository" in await refused(one, "create_issue", repo="octo/own", title="T")
    async with served(oracle, "--write", "--flow", "off", shared, value) as one:
        await call(one, "create_issue", repo="octo/own", title="T")


async def test_what_is_forgotten_counts_for_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    async def look(key: str) -> bool:
        return not key.startswith("private/")

    def read(who: str, *keys: str) -> None:
        with active_call(CallContext(reader=who)):
            for key in keys:
                memory.record_read(key)

    async def question(who: str, target: str) -> str | None:
        with active_call(CallContext(reader=who)):
            return await memory.question_before_write(target)

    monkeypatch.setattr(taint, "_MAX_READERS", 3)
    monkeypatch.setattr(taint, "_MAX_KEYS", 4)
    memory = TaintTracker(Policy(load(Settings, ["--write"])), look)
    read("token many", "octo/app", *(f"private/{number}" for number in range(4)))
    assert "some other" in (await question("token many", "octo/app") or "")
    read("token early", "octo/early")
    read("token second", "private/x")
    assert await question("token second", "private/own") is None
    read("token third", "private/x")
    # The oldest of four had to go.
    assert await question("token second", "private/own") is not None
    for number in range(50):
        read(f"token {number}", *(f"octo/{number}-{item}" for item in range(50)))
    assert sum(len(seen) for seen in memory._reads.values()) + len(memory._shared_reads) <= 4 * 5


async def test_one_reason_is_looked_up_and_no_more() -> None:
    looked: list[str] = []

    async def look(key: str) -> bool:
        looked.append(key)
        return True

    memory = TaintTracker(Policy(load(Settings, ["--write"])), look)
    for number in range(100):
        memory.record_read(f"octo/{number}")
    assert await memory.question_before_write("private/own")
    assert len(looked) <= 2
