"""VS Code keeps every tool on a machine without a network, by the library with which it checks their schemas."""

import json
import subprocess
from typing import Any

import pytest
from mcp import Client
from mcp_types import Implementation

from e2e import npm
from e2e.installing import ROOT
from mcp_batteries.settings import load
from mcp_example.server import build
from mcp_example.settings import Settings

LIBRARY = "vscode-json-languageservice"
VERSIONS = ["5.5.0", "5.7.2"]
"""Of VS Code 1.100 and of the newest."""
DIALECT = "http://json-schema.org/draft-07/schema#"
SCHEMAS = {
    f"{path.stem}: {tool['name']}": tool["inputSchema"]
    for path in sorted((ROOT / "tests/snapshots").glob("*.json"))
    for tool in json.loads(path.read_text("utf-8"))["tools"]
}


async def offered(name: str, mode: str) -> list[dict[str, Any]]:
    """The input schemas that a server of ours sends to a client called `name`."""
    settings = load(Settings, [])
    async with Client(build(settings), mode=mode, client_info=Implementation(name=name, version="1")) as client:
        return [tool.input_schema for tool in (await client.list_tools()).tools]


def offline(version: str, schemas: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """What VS Code asks the network for, and what it says of each of `schemas`."""
    script = ROOT / "tests/outside/clients/vscode-schemas.mjs"
    module = npm.installed(f"{LIBRARY}@{version}") / "package.json"
    command = [npm.NODE, script, module]
    done = subprocess.run(command, input=json.dumps(schemas), capture_output=True, encoding="utf-8", timeout=60)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    return told["asked"], told["said"]


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_vs_code_is_told_the_dialect_of_the_schemas_and_others_do_not_pay_for_it(mode: str) -> None:
    for name in ("Visual Studio Code", "Visual Studio Code - Insiders", "VSCodium", "code-server"):
        assert all(schema["$schema"] == DIALECT for schema in await offered(name, mode)), name
    assert not any("$schema" in schema for schema in await offered("Claude Code", mode))


@pytest.mark.parametrize("version", VERSIONS)
def test_no_tool_is_dropped_without_a_network(version: str) -> None:
    asked, said = offline(version, [{"$schema": DIALECT, **schema} for schema in SCHEMAS.values()])
    assert asked == []
    assert {name: words for name, words in zip(SCHEMAS, said, strict=True) if words} == {}
    _, [wrong] = offline(version, [{"$schema": DIALECT, "type": "thing"}])
    assert wrong, "a schema that is wrong is found"


def test_without_the_dialect_they_would_be() -> None:
    asked, [said] = offline(VERSIONS[0], [{"type": "object"}])
    assert len(asked) == 1 and "no network" in said[0]
