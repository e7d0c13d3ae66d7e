"""mcp-postgres beside other PostgreSQL servers, in one run; prints a table of medians.

    python tests/benchmarks/bench_postgres.py [--quick] [--only peers|notices] [--python PYTHON3.12]

Peers are `@modelcontextprotocol/server-postgres` of npm and `postgres-mcp` of PyPI, which starts with mcp 1 and Python
3.12 only (uv looks for one unless told) and is asked in its restricted mode. Everybody is asked over stdio, in turns,
for the same rows of the same PostgreSQL, the one of the wheel, as a role that may only read.
"""

import json
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import click
import psycopg
from rich.console import Console
from rich.table import Table

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent)]

from bench_sqlite import memory  # noqa: E402

from e2e import npm  # noqa: E402
from e2e.serving import TRANSPORTS, connected  # noqa: E402
from mcp_batteries.testing.wire import MODERN, StdioWire  # noqa: E402
from mcp_postgres.engine.cluster import Cluster  # noqa: E402
from mcp_postgres.grants import notify_sql  # noqa: E402

ROWS = 100_000
ONE = "SELECT * FROM t WHERE id = 4711"
ALL = "SELECT * FROM t"
OFFICIAL = "@modelcontextprotocol/server-postgres"
SCRIPT = f"""
CREATE ROLE reader LOGIN PASSWORD 'reader'; CREATE DATABASE app;
\\connect app
CREATE TABLE t (id integer PRIMARY KEY, name text, price numeric, note text);
INSERT INTO t SELECT n, 'name ' || n, n * 1.25, 'some words about it' FROM generate_series(1, {ROWS}) n;
GRANT SELECT ON t TO reader; ANALYZE t
"""


@dataclass(frozen=True)
class Peer:
    name: str
    command: Callable[[str], list[str]]
    tool: str
    revision: str = "2025-06-18"


def everybody(python: str, folder: Path) -> list[Peer]:
    found = [Peer("mcp-postgres", lambda url: [sys.executable, "-m", "mcp_postgres", url], "query_rows")]
    try:
        program = npm.program(npm.installed(f"{OFFICIAL}@0.6.2"), OFFICIAL)
    except RuntimeError as error:
        click.echo(f"server-postgres is left out: {error}", err=True)
    else:
        found.append(Peer("server-postgres 0.6.2", lambda url: [npm.NODE, program, url], "query", "2024-11-05"))
    # The very version it asks for is not to be had everywhere.
    overrides = folder / "overrides.txt"
    overrides.write_text("pglast>=7,<8\n", "utf-8")
    pro = ["uvx", "--quiet", "--python", python, "--overrides", str(overrides), "--with", "mcp<2", "postgres-mcp@0.3.0"]
    found.append(Peer("postgres-mcp 0.3.0", lambda url: [*pro, "--access-mode", "restricted", url], "execute_sql"))
    return found


@asynccontextmanager
async def started(peer: Peer, url: str):
    async with StdioWire(peer.command(url), revision=peer.revision) as wire:
        begun = time.perf_counter()
        with anyio.fail_after(120):
            await wire.open()
        yield wire, time.perf_counter() - begun
        wire.process.terminate()


async def measure(peer: Peer, url: str, rounds: int) -> dict[str, float]:
    starts: list[float] = []
    for _ in range(rounds + 1):
        async with started(peer, url) as (wire, seconds):
            starts.append(seconds)
    async with started(peer, url) as (wire, _):
        listed = (await wire.request("tools/list"))["tools"]

        async def ask(sql: str) -> dict:
            return await wire.request("tools/call", {"name": peer.tool, "arguments": {"sql": sql}}, seconds=120)

        first = await ask(ONE)
        assert "4711" in json.dumps(first) and not first.get("isError"), first
        idle = memory(wire.process.pid)
        ones: list[float] = []
        for _ in range(200):
            begun = time.perf_counter()
            await ask(ONE)
            ones.append(time.perf_counter() - begun)
        begun = time.perf_counter()
        answer = await ask(ALL)
        seconds = time.perf_counter() - begun
        after = memory(wire.process.pid)
    return {
        # The first start may install.
        "start, s": statistics.median(starts[1:]),
        "memory idle, MB": idle,
        "one row p50, ms": statistics.median(ones) * 1000,
        "100,000 rows asked, s": seconds,
        "its answer, MB": len(json.dumps(answer)) / 1e6,
        "memory behind it, MB": after,
        "tools": len(listed),
        "tools/list, bytes": len(json.dumps(listed, separators=(",", ":"), ensure_ascii=False).encode()),
    }


async def notices(cluster: Cluster, transport: str, revision: str, triggers: bool, commits: int) -> list[float]:
    """Milliseconds from the end of a foreign commit to the notice of it."""
    address = f"{cluster.wait()}/app"
    # Without triggers the only way to notice is to look; with them looking is as good as switched off.
    options = ["--poll", "60000", "--listen", "mcp_changes"] if triggers else []
    taken: list[float] = []
    with psycopg.connect(f"postgresql://postgres:{cluster.password}@127.0.0.1:{address}", autocommit=True) as writer:
        if triggers and not writer.execute("SELECT 1 FROM pg_trigger WHERE tgname = 'mcp_changes_notify'").fetchone():
            writer.execute(notify_sql("mcp_changes").replace("public.my_table", "public.t").encode())
        arguments = [*options, f"app=postgresql://reader:reader@127.0.0.1:{address}"]
        async with connected(transport, revision, "mcp_postgres", arguments) as wire:
            await wire.subscribe("postgres://app/public/t/1")
            listening = "SELECT 1 FROM pg_stat_activity WHERE query LIKE 'LISTEN%'"
            while triggers and not writer.execute(listening.encode()).fetchone():
                await anyio.sleep(0.05)
            for number in range(commits):
                writer.execute("UPDATE t SET note = %s WHERE id = 1", [f"{transport} {revision} {triggers} {number}"])
                begun = time.perf_counter()
                await wire.notification("notifications/resources/updated", lambda got: got["uri"].endswith("/t/1"))
                taken.append((time.perf_counter() - begun) * 1000)
                # Commits that come at any moment between two looks.
                await anyio.sleep(37 * number % 250 / 1000)
    return taken


async def run(rounds: int, only: str | None, python: str, cluster: Cluster) -> None:
    console = Console(width=120)
    if only in (None, "peers"):
        found = {}
        with tempfile.TemporaryDirectory(prefix="mcp-bench-") as folder:
            for peer in everybody(python, Path(folder)):
                try:
                    found[peer.name] = await measure(
                        peer, f"postgresql://reader:reader@127.0.0.1:{cluster.wait()}/app", rounds
                    )
                except (Exception, BaseExceptionGroup) as error:
                    click.echo(f"{peer.name}: {error!r}", err=True)
        table = Table("", *found)
        for row in next(iter(found.values())):
            table.add_row(row, *(f"{figures[row]:,.4g}" for figures in found.values()))
        console.print(table)
    if only in (None, "notices"):
        table = Table("foreign commit to notice, ms", "p50", "worst")
        for triggers in (False, True):
            for transport in TRANSPORTS:
                for revision in ("2025-11-25", MODERN):
                    taken = await notices(cluster, transport, revision, triggers, 3 * rounds)
                    how = "triggers" if triggers else "no right, no trigger"
                    table.add_row(
                        f"{how}, {transport}, {revision}", f"{statistics.median(taken):.0f}", f"{max(taken):.0f}"
                    )
        console.print(table)


@click.command(help=__doc__)
@click.option("--quick", is_flag=True, help="Fewer rounds.")
@click.option("--only", type=click.Choice(["peers", "notices"]), help="One of the two tables.")
@click.option("--python", default="3.12", help="A Python for postgres-mcp.")
def main(quick: bool, only: str | None, python: str) -> None:
    cluster = Cluster(SCRIPT)
    try:
        click.echo(f"Python {platform.python_version()}, PostgreSQL of the wheel at port {cluster.wait()}")
        anyio.run(run, 3 if quick else 10, only, python, cluster)
    finally:
        cluster.close()


if __name__ == "__main__":
    main()
