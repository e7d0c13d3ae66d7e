"""mcp-fs with clients nobody here wrote: the Inspector, the TypeScript SDKs, fastmcp; stdio and HTTP, both eras.

The packages come from npm at the versions below; a registry that can't be reached fails these tests.
"""

import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import mcp_types
import pytest
from mcp.client.subscriptions import listen

from e2e import npm
from e2e.restarts import Replica
from e2e.serving import TRANSPORTS, listening
from mcp_batteries.testing.wire import StdioWire

INSPECTOR = "@modelcontextprotocol/inspector"
INSPECTOR_VERSION = "2.12.0"
TYPESCRIPT = ("@modelcontextprotocol/sdk@1.32.2", "@modelcontextprotocol/client@2.4.0")
DRIVERS = Path(__file__).parent / "clients"

pytestmark = [pytest.mark.anyio, pytest.mark.process]


@dataclass(frozen=True)
class Served:
    """A folder with notes in it, and a way to the server: a URL, or the words of a command."""

    folder: Path
    url: str | None
    command: list[str]

    @property
    def note(self) -> Path:
        return self.folder / "notes.txt"

    @property
    def notes(self) -> str:
        return self.note.as_uri()


@asynccontextmanager
async def served(transport: str, scratch: Path) -> AsyncGenerator[Served]:
    folder = scratch / "served"
    (folder / "folder").mkdir(parents=True)
    (folder / "notes.txt").write_text("one\n", "utf-8")
    command = [sys.executable, "-m", "mcp_fs", str(folder)]
    if transport == "stdio":
        yield Served(folder, None, command)
    else:
        async with listening("mcp_fs", str(folder)) as (_, url):
            yield Served(folder, url, command)


async def ended(command: list[str], **environment: str) -> subprocess.CompletedProcess[bytes]:
    """A program that should need a few seconds, run to its end."""
    with anyio.fail_after(60):
        return await anyio.run_process(command, check=False, env=npm.environment(**environment))


# The Inspector's command line


@dataclass(frozen=True)
class Inspector:
    program: str
    target: list[str]
    home: Path

    async def run(self, method: str, *arguments: str, quiet: bool = True) -> subprocess.CompletedProcess[bytes]:
        said = ["--format", "json", *(["-q"] if quiet else [])]
        command = [npm.NODE, self.program, "--cli", *self.target, "--method", method, *arguments, *said]
        catalogue = str(self.home / "catalogue.json")
        return await ended(command, MCP_CATALOG_PATH=catalogue, MCP_INSPECTOR_SECRET_STORE="memory")

    async def ask(self, method: str, *arguments: str) -> dict[str, Any]:
        done = await self.run(method, *arguments)
        assert (done.returncode, done.stderr) == (0, b"")
        return json.loads(done.stdout)["result"]


@pytest.fixture
def inspector(tmp_path: Path) -> Callable[[Served, str], Inspector]:
    folder = npm.installed(f"{INSPECTOR}@{INSPECTOR_VERSION}")

    def aimed(server: Served, era: str) -> Inspector:
        target = [server.url, "--"] if server.url else [*server.command, "--"]
        return Inspector(npm.program(folder, INSPECTOR, "mcp-inspector"), [*target, "--protocol-era", era], tmp_path)

    return aimed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("transport", "era"), [pytest.param("stdio", "legacy", marks=pytest.mark.weekly), ("http", "modern")]
)
async def test_the_inspector(
    transport: str, era: str, tmp_path: Path, inspector: Callable[[Served, str], Inspector]
) -> None:
    async with served(transport, tmp_path) as server:
        ask = inspector(server, era).ask
        tools = {tool["name"] for tool in (await ask("tools/list"))["tools"]}
        assert {"read_text", "write_file", "search_text"} <= tools
        read = await ask("tools/call", "--tool-name", "read_text", "--tool-arg", "path=notes.txt")
        assert "one\n" in read["content"][0]["text"]
        resources = {item["uri"] for item in (await ask("resources/list"))["resources"]}
        assert {server.folder.as_uri(), server.notes} <= resources
        [contents] = (await ask("resources/read", "--uri", server.notes))["contents"]
        assert (contents["uri"], contents["text"]) == (server.notes, "one\n")
        templates = (await ask("resources/templates/list"))["resourceTemplates"]
        assert "file:///{+path}" in {item["uriTemplate"] for item in templates}
        prompts = {item["name"] for item in (await ask("prompts/list"))["prompts"]}
        assert {"explain_folder", "review_file", "summarise_changes"} <= prompts
        review = await ask("prompts/get", "--prompt-name", "review_file", "--prompt-args", "path=notes.txt")
        assert review["messages"][1]["content"]["resource"]["text"] == "one\n"


@pytest.mark.slow
@pytest.mark.share(1)
@pytest.mark.parametrize(("transport", "era"), [("stdio", "modern"), ("http", "legacy")])
async def test_the_inspector_finds_no_fault_in_the_schemas(
    transport: str, era: str, tmp_path: Path, inspector: Callable[[Served, str], Inspector]
) -> None:
    async with served(transport, tmp_path) as server:
        done = await inspector(server, era).run("tools/list", "--strict", quiet=False)
    assert done.returncode == 0
    assert json.loads(done.stdout)["result"]["tools"]
    assert done.stderr == b""


@pytest.mark.slow
@pytest.mark.share(1)
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_the_inspector_tells_a_refusal_from_a_result(
    transport: str, tmp_path: Path, inspector: Callable[[Served, str], Inspector]
) -> None:
    async with served(transport, tmp_path) as server:
        run = inspector(server, "auto").run
        refused = await run("tools/call", "--tool-name", "read_text", "--tool-arg", "path=../outside.txt")
        missing = await run("resources/read", "--uri", (server.folder / "missing.txt").as_uri())
    # 5: the tool said isError; 1: the server answered with an error.
    assert (refused.returncode, missing.returncode) == (5, 1), (refused, missing)


# The TypeScript SDK


@pytest.mark.slow
@pytest.mark.share(1)
@pytest.mark.diagonal
@pytest.mark.parametrize("client", ["v1 legacy", "v2 legacy", "v2 modern"])
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_the_typescript_sdk(transport: str, client: str, tmp_path: Path) -> None:
    generation, era = client.split()
    packages = npm.installed(*TYPESCRIPT)
    async with served(transport, tmp_path) as server:
        task = {
            "url": server.url,
            "command": server.command[0],
            "args": server.command[1:],
            "era": era,
            "folder": str(server.folder),
            "note": str(server.note),
            "notes": server.notes,
        }
        driver = str(DRIVERS / f"typescript-{generation}.mjs")
        done = await ended([npm.NODE, driver, str(packages), json.dumps(task)])
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    report = json.loads(done.stdout)
    assert report["server"] == "mcp-fs"
    assert report["capabilities"]["resources"]["subscribe"] is True
    assert {"read_text", "write_file", "search_text"} <= set(report["tools"])
    assert not report["information"].get("isError"), report["information"]
    assert "one\n" in report["read"]["content"][0]["text"]
    assert report["refused"]["isError"] is True
    assert {server.folder.as_uri(), server.notes} <= set(report["resources"])
    assert "file:///{+path}" in report["templates"]
    assert [(item["uri"], item["text"]) for item in report["contents"]] == [(server.notes, "one\n")]
    assert "review_file" in report["prompts"]
    assert report["prompt"][1]["content"]["resource"]["text"] == "one\n"
    assert report["completion"] == ["notes.txt"]
    assert report["updated"] == "two\n"
    assert report["afterwards"] == [server.folder.as_uri()]


# Bridges from stdio to HTTP


@pytest.mark.weekly
@pytest.mark.parametrize("package", ["mcp-remote@0.15.1", "supergateway@4.0.0"])
async def test_a_bridge_from_stdio(package: str, tmp_path: Path) -> None:
    """What docs/http.md says of them: one opens a new session after a restart, the other passes no notices on."""
    name = package.partition("@")[0]
    (tmp_path / "notes.txt").write_text("one\n", "utf-8")
    note = (tmp_path / "notes.txt").as_uri()
    replica = Replica([sys.executable, "-m", "mcp_fs", "--transport", "http", str(tmp_path)])
    flags = {"mcp-remote": [replica.url, "--allow-http"], "supergateway": ["--streamableHttp", replica.url]}
    command = [npm.NODE, npm.program(npm.installed(package), name, name), *flags[name]]
    await replica.start()
    try:
        async with StdioWire(command, revision="2025-06-18", env=npm.environment(HOME=str(tmp_path))) as wire:
            await wire.open()
            assert "read_text" in {tool["name"] for tool in (await wire.request("tools/list"))["tools"]}
            assert "one" in str(await wire.call("read_text", path="notes.txt"))
            if name == "supergateway":
                return
            for text in ("two", "three"):
                await wire.subscribe(note)
                (tmp_path / "notes.txt").write_text(text, "utf-8")
                await wire.updated(note)
                assert text in str(await wire.call("read_text", path="notes.txt"))
                await replica.stop()
                await replica.start()
    finally:
        replica.kill()


# fastmcp


# What the older era has for subscriptions is what the SDK below fastmcp warns of.
@pytest.mark.slow
@pytest.mark.share(1)
@pytest.mark.diagonal
@pytest.mark.filterwarnings("ignore:resources/subscribe is removed:mcp.MCPDeprecationWarning")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_fastmcp(transport: str, mode: Any, tmp_path: Path) -> None:
    # It takes a second of each worker that only collects this module.
    from outside.fastmcp_client import ToolError, Updates, connect

    updates = Updates()
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(served(transport, tmp_path))
        client = await stack.enter_async_context(connect(server.url or server.command, mode, updates))
        assert (client.protocol_version >= "2026-07-28") == (mode == "auto")
        assert {"read_text", "write_file", "search_text"} <= {tool.name for tool in await client.list_tools()}
        read = await client.call_tool("read_text", {"path": "notes.txt"})
        assert "one\n" in read.content[0].text
        # Its own check of structured content against the tool's output schema.
        await client.call_tool("get_info", {"path": "notes.txt"})
        with pytest.raises(ToolError):
            await client.call_tool("read_text", {"path": "../outside.txt"})
        resources = {str(item.uri) for item in await client.list_resources()}
        assert {server.folder.as_uri(), server.notes} <= resources
        assert "file:///{+path}" in {item.uri_template for item in await client.list_resource_templates()}
        [contents] = await client.read_resource(server.notes)
        assert contents.text == "one\n"
        assert "review_file" in {item.name for item in await client.list_prompts()}
        prompt = await client.get_prompt("review_file", {"path": "notes.txt"})
        assert prompt.messages[1].content.resource.text == "one\n"
        reference = mcp_types.PromptReference(name="review_file")
        completion = await client.complete(reference, {"name": "path", "value": "not"})
        assert completion.values == ["notes.txt"]
        # It has no method of its own for subscriptions: its session has, by era.
        if mode == "legacy":
            await client.session.subscribe_resource(server.notes)
            server.note.write_text("two\n", "utf-8")
            await updates.about(server.notes)
        else:
            stream = await stack.enter_async_context(listen(client.session, resource_subscriptions=[server.notes]))
            server.note.write_text("two\n", "utf-8")
            with anyio.fail_after(20):
                event = await anext(stream)
            assert event.uri == server.notes
        [contents] = await client.read_resource(server.notes)
        assert contents.text == "two\n"
