"""The server against an oracle, and a client of it."""

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client
from mcp_types import TextContent

from github_server.oracle import Oracle
from mcp_batteries.settings import load
from mcp_github.server import build
from mcp_github.settings import Settings

TOKEN = "ghp_thisTokenIsNobodysButMustNeverBeSeen"
EVERYTHING = (
    "--toolsets", "all", "--write", "--merge", "--delete", "--releases", "--runs", "--workflow-files", "--force",
    "--flow", "off",
)  # fmt: skip


def settings(oracle: Oracle, *arguments: str) -> Settings:
    return load(Settings, ["--api-url", oracle.url, "--write-interval", "0", "--timeout", "55", *arguments])


@asynccontextmanager
async def served(oracle: Oracle, *arguments: str, **more: Any) -> AsyncGenerator[Client]:
    """A client of a server that takes `oracle` for GitHub."""
    async with Client(build(settings(oracle, *arguments)), **more) as client:
        yield client


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    """The structured content of an answer, or the text of one that has none.

    Raises:
        AssertionError: the call failed.
    """
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text_of(result)
    return text_of(result) if result.structured_content is None else result.structured_content


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    """What a call that has to fail says."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, f"{tool} should be refused, said: {text_of(result)}"
    return text_of(result)


def text_of(result: Any) -> str:
    return "".join(block.text for block in result.content if isinstance(block, TextContent))


def data_of(contents: Any) -> Any:
    """The JSON of a resource."""
    return json.loads(contents.contents[0].text)


def fake_gh(folder: Path, script: str, batch: str) -> Path:
    """A program `gh` in `folder`: `script` of a shell, or on Windows `batch`."""
    if sys.platform == "win32":
        path, text = folder / "gh.cmd", f"@echo off\n{batch}\n"
    else:
        path, text = folder / "gh", f"#!/bin/sh\n{script}\n"
    path.write_text(text, "utf-8")
    path.chmod(0o755)
    return path
