"""Every server behind the bridges that hosts put between, from npm and PyPI: from stdio to HTTP, and back.

A registry that can't be reached fails these tests.
"""

import shlex
import subprocess
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from contract.cases import CASES
from e2e import npm
from e2e.installing import UV, clean_environment
from e2e.services import free_port
from e2e.serving import listening
from mcp_batteries.testing.case import Case
from mcp_batteries.testing.wire import HttpWire, StdioWire, Wire
from thinning import some

REVISION = "2025-11-25"
MCP_REMOTE = "mcp-remote@0.15.1"
SUPERGATEWAY = "supergateway@4.0.0"
MCP_PROXY = [str(UV), "tool", "run", "--quiet", "mcp-proxy==0.13.0"]


@asynccontextmanager
async def behind_mcp_remote(case: Case, scratch: Path) -> AsyncGenerator[Wire]:
    """The server over HTTP, reached over stdio."""
    bridge = npm.program(npm.installed(MCP_REMOTE), "mcp-remote", "mcp-remote")
    environment = {**npm.environment(), "MCP_REMOTE_CONFIG_DIR": str(scratch / "remote")}
    assert isinstance(case.package, str)
    async with listening(case.package, *case.arguments) as (_, url):
        command = [npm.NODE, bridge, url, "--transport", "http-only", "--allow-http"]
        async with StdioWire(command, revision=REVISION, env=environment) as wire:
            await wire.open()
            yield wire


@asynccontextmanager
async def behind_supergateway(case: Case, scratch: Path) -> AsyncGenerator[Wire]:
    """The server over stdio, reached over HTTP."""
    gateway = npm.program(npm.installed(SUPERGATEWAY), "supergateway")
    port = free_port()
    command = [
        npm.NODE, gateway, "--stdio", shlex.join(case.command), "--outputTransport", "streamableHttp", "--stateful",
        "--port", str(port),
    ]  # fmt: skip
    async with behind_gateway(command, npm.environment(), b"Listening on port", port) as wire:
        yield wire


@asynccontextmanager
async def behind_mcp_proxy(case: Case, scratch: Path) -> AsyncGenerator[Wire]:
    """The server over HTTP, reached over stdio."""
    assert isinstance(case.package, str)
    async with listening(case.package, *case.arguments) as (_, url):
        command = [*MCP_PROXY, "--transport", "streamablehttp", url]
        async with StdioWire(command, revision=REVISION, env=clean_environment()) as wire:
            await wire.open()
            yield wire


@asynccontextmanager
async def before_mcp_proxy(case: Case, scratch: Path) -> AsyncGenerator[Wire]:
    """The server over stdio, reached over HTTP."""
    port = free_port()
    command = [*MCP_PROXY, "--port", str(port), "--", *case.command]
    async with behind_gateway(command, clean_environment(), b"Uvicorn running on", port) as wire:
        yield wire


@asynccontextmanager
async def behind_gateway(
    command: Sequence[str], environment: Mapping[str, str], announcement: bytes, port: int
) -> AsyncGenerator[Wire]:
    """What a program serves on `port` once it has said so."""
    async with (
        await anyio.open_process(
            [*command], stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT, env=environment
        ) as process,
        anyio.create_task_group() as tasks,
    ):
        open_for_clients = anyio.Event()

        async def read_log() -> None:
            # To the end: it waits for whoever reads.
            assert process.stdout is not None
            log = b""
            async for chunk in process.stdout:
                log += chunk
                if announcement in log:
                    open_for_clients.set()

        tasks.start_soon(read_log)
        try:
            with anyio.fail_after(60):
                await open_for_clients.wait()
            async with HttpWire(f"http://127.0.0.1:{port}/mcp", revision=REVISION) as wire:
                await wire.open()
                yield wire
        finally:
            process.terminate()


BRIDGES = {
    "mcp-remote": behind_mcp_remote,
    "supergateway": behind_supergateway,
    "mcp-proxy to HTTP": behind_mcp_proxy,
    "mcp-proxy to stdio": before_mcp_proxy,
}


@pytest.mark.slow
@pytest.mark.share(2)
@pytest.mark.anyio
@pytest.mark.parametrize("bridge", BRIDGES)
@pytest.mark.parametrize("package", some(CASES, "mcp_fs"))
async def test_a_bridge_carries_tools_resources_and_refusals(package: str, bridge: str, tmp_path: Path) -> None:
    case = await anyio.to_thread.run_sync(CASES[package], tmp_path)
    with anyio.fail_after(120):
        await _try_everything(case, bridge, tmp_path)


async def _try_everything(case: Case, bridge: str, scratch: Path) -> None:
    tool, arguments = case.read
    async with BRIDGES[bridge](case, scratch) as wire:
        assert tool in {item["name"] for item in (await wire.request("tools/list"))["tools"]}
        assert not (await wire.call(tool, **arguments)).get("isError")
        refused, wrong = case.refused[0]
        assert (await wire.call(refused, **wrong))["isError"]
        if case.uri:
            assert await wire.read(case.uri)
