"""Tools answer to the names that models know from other servers; no list has these, and they open nothing more."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp.server.auth.middleware.auth_context import auth_context_var
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken

from mcp_batteries.sdk import lowlevel, tool_table
from mcp_batteries.server.assemble import Assembled, assemble
from mcp_batteries.server.declaration.decorators import OtherName, rename_arguments, tool
from mcp_batteries.transports.http.auth.scopes import Scopes

pytestmark = pytest.mark.anyio


class Room:
    @tool(
        "Get status",
        also=("toy_status", "status", OtherName("toy_far_status", {"repo": "far"})),
        adapt=rename_arguments(repo_path="repo"),
    )
    async def get_status(self, repo: str = "here") -> str:
        """Get the status."""
        return f"clean: {repo}"

    @tool("Create commit", effect="write", also=("toy_commit",))
    async def create_commit(self, message: str) -> str:
        """Commit."""
        return f"committed: {message}"


class Rival:
    @tool("Status")
    async def status(self) -> str:
        """Be called as another tool is called besides."""
        return "its own"


class Doubled:
    @tool("Second", also=("toy_status",))
    async def read_second(self) -> str:
        """Claim another tool's name."""
        return ""


def build(*rooms: object, read_only: bool = False) -> Assembled:
    settings: Any = SimpleNamespace(
        read_only=read_only, confirm=False, audit_file=None, max_streams=9, telemetry=False, bus=None,
        state_key_file=None, tools=("default", "call_tools"), exclude_tools=(),
    )  # fmt: skip
    return assemble("toy", settings, rooms=rooms or [Room()], title="Toy", version="1", instructions="")


@asynccontextmanager
async def served(server: Assembled, scopes: list[str] | None = None) -> AsyncGenerator[Client]:
    user = None
    if scopes is not None:
        server.middleware.append(Scopes(lambda: tool_table(server), resolve=server.resolve_tool))
        user = AuthenticatedUser(AccessToken(token="t", client_id="ann", scopes=scopes))
    before = auth_context_var.set(user)
    try:
        async with Client(server) as client:
            yield client
    finally:
        auth_context_var.reset(before)


async def said(client: Client, name: str, arguments: dict[str, Any]) -> str:
    return "".join(getattr(part, "text", "") for part in (await client.call_tool(name, arguments)).content).rstrip()


CALLS: list[dict[str, Any]] = [{"toy_status": {}}, {"name": "toy_commit", "arguments": {"message": "One"}}]


@pytest.mark.parametrize(
    ("name", "arguments", "answer"),
    [
        ("toy_status", {"repo_path": "there"}, "clean: there"),
        ("status", {}, "clean: here"),
        ("toy_far_status", {}, "clean: far"),
        ("toy_far_status", {"repo": "near"}, "clean: near"),
        ("call_tools", {"calls": [{"toy_far_status": {}}]}, "# 1 get_status\nclean: far"),
        ("toy_commit", {"message": "One"}, "committed: One"),
        ("call_tools", {"calls": CALLS}, "# 1 get_status\nclean: here\n# 2 create_commit\ncommitted: One"),
    ],
)
async def test_a_tool_answers_to_its_other_names(name: str, arguments: Any, answer: str) -> None:
    async with served(build()) as client:
        assert await said(client, name, arguments) == answer
        assert {item.name for item in (await client.list_tools()).tools} == {
            "get_status",
            "create_commit",
            "call_tools",
        }


async def test_another_name_opens_nothing_more() -> None:
    async with served(build(read_only=True)) as client:
        with pytest.raises(MCPError, match=r"turned off\. The server was started with `--read-only`"):
            await client.call_tool("toy_commit", {"message": "One"})
    async with served(build(), scopes=["read"]) as client:
        assert await said(client, "toy_status", {}) == "clean: here"
        with pytest.raises(MCPError, match="lacks the scope"):
            await client.call_tool("toy_commit", {"message": "One"})
    scopes = Scopes(lambda: tool_table(server), resolve=(server := build()).resolve_tool)
    assert scopes.missing(["read"], "tools/call", {"name": "toy_commit", "arguments": {}}) == "write"


def test_headers_are_compared_by_every_name() -> None:
    server = build()
    find_schema = lowlevel(server).get_tool_input_schema
    assert find_schema is not None and find_schema("toy_status") == find_schema("get_status") is not None
    assert find_schema("nothing") is None


async def test_a_name_means_one_tool() -> None:
    async with served(build(Room(), Rival())) as client:
        assert await said(client, "status", {}) == "its own"
    with pytest.raises(ValueError, match="toy_status is another name of get_status and of read_second"):
        build(Room(), Doubled())
