"""mcp-postgres beside other PostgreSQL servers, in one run; prints a table of medians.

    python tests/benchmarks/bench_postgres.py [--quick] [--only peers|notices]

Peers are `@modelcontextprotocol/server-postgres` and `@bytebase/dbhub` of npm, `toolbox-server` and `postgres-mcp` of
PyPI; the requirements of the last are locked and overridden in `postgres-mcp.txt`.
Everybody is asked over stdio, in turns, for the same rows of the same PostgreSQL, the wheel's, on loopback.
"""

import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
import click
import psycopg
from rich.console import Console
from rich.table import Table

sys.path[:0] = [str(Path(__file__).parents[1])]

from peers import TOOLBOX, toolbox  # noqa: E402
from sql_peers import measure  # noqa: E402

from e2e import npm  # noqa: E402
from e2e.serving import TRANSPORTS, connected_process  # noqa: E402
from mcp_batteries.testing.wire import MODERN  # noqa: E402
from mcp_postgres.operator_sql import notify_sql  # noqa: E402
from postgres.serving import Base, make  # noqa: E402

SCHEMA = """
CREATE TABLE t (id integer PRIMARY KEY, name text, price numeric, note text);
INSERT INTO t SELECT g, 'name ' || g, g / 100.0, repeat('x', 50) FROM generate_series(1, 100000) g;
CREATE TABLE elsewhere (id integer);
"""
OFFICIAL, DBHUB = "@modelcontextprotocol/server-postgres", "@bytebase/dbhub"
LOCKED = Path(__file__).with_name("postgres-mcp.txt")
OURS = [sys.executable, "-m", "mcp_postgres"]


@dataclass(frozen=True)
class Peer:
    name: str
    command: Callable[[Base], list[str]]
    tool: str
    revision: str = "2024-11-05"


def newer_python() -> str:
    """A Python from 3.12 on that runs here, as postgres-mcp asks for; else what uv is to look for."""
    if sys.version_info >= (3, 12):
        return sys.executable
    for minor in (14, 13, 12):
        # pyenv has a name on the path for every version, which only runs if the version is switched on.
        known = sorted(Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python"))
        found = [*map(str, reversed(known)), shutil.which(f"python3.{minor}")]
        for path in filter(None, found):
            if subprocess.run([path, "--version"], capture_output=True).returncode == 0:
                return path
    return ">=3.12,<3.15"


def dsn(base: Base) -> str:
    """As `@bytebase/dbhub` wants it."""
    return base.url(more="?sslmode=disable").replace("postgresql:", "postgres:")


def connection(base: Base) -> dict[str, str]:
    """As the toolbox wants it."""
    parts = psycopg.conninfo.conninfo_to_dict(base.url())
    named = {"HOST": "host", "PORT": "port", "DATABASE": "dbname", "USER": "user", "PASSWORD": "password"}
    return {f"POSTGRES_{theirs}": str(parts[ours]) for theirs, ours in named.items()}


def everybody() -> list[Peer]:
    found = [
        Peer("mcp-postgres, read role", lambda base: [*OURS, base.url()], "query_rows", MODERN),
        Peer("mcp-postgres, superuser", lambda base: [*OURS, base.url("postgres")], "query_rows", MODERN),
        Peer("  with --dba --write --ddl", lambda base: [*OURS, "--dba", "--write", "--ddl", base.url()], "query_rows"),
    ]
    for name, version, start in (
        (OFFICIAL, "0.6.2", lambda program, base: [npm.NODE, program, base.url()]),
        (DBHUB, "1.4.0", lambda program, base: [npm.NODE, program, "--transport", "stdio", "--dsn", dsn(base)]),
    ):
        try:
            program = npm.program(npm.installed(f"{name}@{version}"), name)
        except RuntimeError as error:
            click.echo(f"{name} is left out: {error}", err=True)
        else:
            tool = "query" if name == OFFICIAL else "execute_sql"
            found.append(Peer(f"{name.rpartition('/')[2]} {version}", partial(start, program), tool))
    found.append(Peer(f"toolbox {TOOLBOX}", lambda base: toolbox("postgres", **connection(base)), "execute_sql"))
    pro = [
        "uvx",
        "--quiet",
        "--python",
        newer_python(),
        "--overrides",
        str(LOCKED),
        "--with",
        "mcp<2",
        "postgres-mcp@0.3.0",
    ]
    pro += ["--access-mode", "restricted"]
    found.append(Peer("postgres-mcp 0.3.0", lambda base: [*pro, base.url()], "execute_sql"))
    return found


async def notices(transport: str, revision: str, triggers: bool, commits: int) -> list[float]:
    """Milliseconds from the end of a foreign commit to the notice of it."""
    base = make(SCHEMA)
    words = ["--listen", "mcp_changes"] if triggers else []
    if triggers:
        base.run(notify_sql("mcp_changes").replace("public.my_table", "public.t"), "owner")
    taken: list[float] = []
    async with connected_process(transport, revision, "mcp_postgres", [*words, f"app={base.url()}"]) as wire:
        await wire.subscribe("postgres://app/public/t/1")
        await anyio.sleep(1)
        with base.connect() as writer:
            for number in range(commits):
                writer.execute("UPDATE t SET note = %s WHERE id = 1", [f"new {number}"])
                begun = time.perf_counter()
                await wire.notification("notifications/resources/updated")
                taken.append((time.perf_counter() - begun) * 1000)
                # Not in step with the looks.
                await anyio.sleep(0.06 + number * 37 % 250 / 1000)
    return taken


async def run(rounds: int, only: str | None) -> None:
    console = Console(width=160)
    if only in (None, "peers"):
        base = make(SCHEMA)
        found = {}
        for peer in everybody():
            try:
                found[peer.name] = await measure(peer.command(base), peer.revision, peer.tool, "sql", rounds)
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
                    taken = await notices(transport, revision, triggers, 5 * rounds)
                    how = "with triggers" if triggers else "looking"
                    cells = [f"{statistics.median(taken):.0f}", f"{max(taken):.0f}"]
                    table.add_row(f"{how}, {transport}, {revision}", *cells)
        console.print(table)


@click.command(help=__doc__)
@click.option("--quick", is_flag=True, help="Fewer rounds.")
@click.option("--only", type=click.Choice(["peers", "notices"]), help="One of the two tables.")
def main(quick: bool, only: str | None) -> None:
    click.echo(f"Python {sys.version.split()[0]}, PostgreSQL {make().rows('SHOW server_version')[0][0]}")
    # Peers must not meet this process's idea of a database.
    for name in [name for name in os.environ if name.startswith("PG")]:
        del os.environ[name]
    anyio.run(run, 3 if quick else 10, only)


if __name__ == "__main__":
    main()
