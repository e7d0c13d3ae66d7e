"""Every server behind the bridges that hosts put between, from npm: a host on stdio to HTTP, and the other way round.

A registry that can't be reached fails these tests.
"""

import shlex
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from socket import socket

import anyio
import pytest

from contract.cases import CASES
from e2e import npm
from e2e.serving import listening
from mcp_batteries.testing.case import Case
from mcp_batteries.testing.wire import HttpWire, StdioWire, Wire
from thinning import some

REVISION = "2025-11-25"
MCP_REMOTE = "mcp-remote@0.15.1"
SUPERGATEWAY = "supergateway@4.0.0"


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
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        npm.NODE, gateway, "--stdio", shlex.join(case.command), "--outputTransport", "streamableHttp", "--stateful",
        "--port", str(port),
    ]  # fmt: skip
    async with (
        await anyio.open_process(
            command, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT, env=npm.environment()
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
                if b"Listening on port" in log:
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


BRIDGES = {"mcp-remote": behind_mcp_remote, "supergateway": behind_supergateway}


@pytest.mark.slow
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
