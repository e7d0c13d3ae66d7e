"""mcp-sqlite beside other SQLite servers, in one run; prints a table of medians.

    python tests/benchmarks/bench_sqlite.py [--quick] [--only peers|promises|notices]

Peers are `mcp-server-sqlite` of PyPI, which starts with mcp 1 only, `@bytebase/dbhub` of npm and `toolbox-server` of
PyPI. Everybody is asked over stdio, in turns, for the same rows of the same file.
"""

import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import anyio
import click
from rich.console import Console
from rich.table import Table

sys.path[:0] = [str(Path(__file__).parents[1])]

from driver import processes  # noqa: E402
from peers import TOOLBOX, toolbox  # noqa: E402
from sql_peers import ONE, measure  # noqa: E402

from e2e import npm  # noqa: E402
from e2e.serving import TRANSPORTS, connected_process  # noqa: E402
from mcp_batteries.testing.wire import MODERN, StdioWire  # noqa: E402

ROWS = 100_000
DBHUB = "@bytebase/dbhub"


@dataclass(frozen=True)
class Peer:
    name: str
    command: Callable[[Path], list[str]]
    tool: str
    argument: str
    revision: str = "2025-06-18"


def everybody() -> list[Peer]:
    found = [Peer("mcp-sqlite", lambda path: [sys.executable, "-m", "mcp_sqlite", str(path)], "query_rows", "sql")]
    official = ["uvx", "--quiet", "--with", "mcp<2", "mcp-server-sqlite@2025.4.25", "--db-path"]
    found.append(Peer("mcp-server-sqlite", lambda path: [*official, str(path)], "read_query", "query"))
    try:
        program = npm.program(npm.installed(f"{DBHUB}@1.4.0"), DBHUB)
    except RuntimeError as error:
        click.echo(f"dbhub is left out: {error}", err=True)
    else:
        options = ["--transport", "stdio", "--dsn"]
        found.append(
            Peer("dbhub 1.4.0", lambda path: [npm.NODE, program, *options, f"sqlite://{path}"], "execute_sql", "sql")
        )
    found.append(
        Peer(f"toolbox {TOOLBOX}", lambda path: toolbox("sqlite", SQLITE_DATABASE=str(path)), "execute_sql", "sql")
    )
    return found


def make(path: Path, journal: str = "delete") -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            f"PRAGMA journal_mode = {journal}; CREATE TABLE t (id INTEGER PRIMARY KEY, name, price, note)"
        )
        rows = ((n, f"name {n}", n * 1.25, "some words about it") for n in range(1, ROWS + 1))
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
        connection.commit()


async def notices(journal: str, transport: str, revision: str, subscriptions: int, commits: int) -> list[float]:
    """Milliseconds from the end of a foreign commit to the notice of it."""
    with tempfile.TemporaryDirectory(prefix="mcp-bench-") as folder:
        path = Path(folder) / "app.db"
        make(path, journal)
        taken: list[float] = []
        async with connected_process(transport, revision, "mcp_sqlite", [str(path)]) as wire:
            uris = [f"sqlite://app/t/{number}" for number in range(1, subscriptions + 1)]
            if wire.modern:
                await wire.listen({"resourceSubscriptions": uris})
            else:
                for uri in uris:
                    await wire.subscribe(uri)
            with closing(sqlite3.connect(path, isolation_level=None)) as writer:
                for number in range(commits):
                    row = number % subscriptions + 1
                    writer.execute("UPDATE t SET note = ? WHERE id = ?", [f"new {number}", row])
                    begun = time.perf_counter()
                    await wire.notification(
                        "notifications/resources/updated", lambda got, row=row: got["uri"] == f"sqlite://app/t/{row}"
                    )
                    taken.append((time.perf_counter() - begun) * 1000)
                    await anyio.sleep(0.06)
        return taken


LOOP = "WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM c) SELECT count(*) FROM c"
OPCODE = "SELECT instr(hex(zeroblob(4000000)), hex(zeroblob(2000000)) || '1')"
LIMIT = 2


def running(pid: int) -> bool:
    """Whether a thread of a process below `pid` is on a processor."""
    for item in processes(pid)[1:]:
        with suppress(OSError):
            states = [(task / "stat").read_text() for task in Path(f"/proc/{item}/task").iterdir()]
            if any(state.rpartition(")")[2].split()[0] == "R" for state in states):
                return True
    return False


async def promises(sql: str, rounds: int) -> dict[str, list[float]]:
    """What an endless statement does to its caller, to others and to the machine; milliseconds."""
    found: dict[str, list[float]] = {"answer behind the limit": [], "others meanwhile": [], "cancel to engine idle": []}
    with tempfile.TemporaryDirectory(prefix="mcp-bench-") as folder:
        path = Path(folder) / "app.db"
        make(path)
        call = {"name": "query_rows", "arguments": {"sql": sql}}
        command = [sys.executable, "-m", "mcp_sqlite", "--timeout", str(LIMIT), str(path)]
        async with StdioWire(command, revision="2025-11-25") as wire:
            await wire.open()
            await wire.call("query_rows", sql=ONE)
            for _ in range(rounds):
                begun = time.perf_counter()
                number = await wire.begin("tools/call", call)
                for _ in range(50):
                    asked = time.perf_counter()
                    await wire.call("query_rows", sql=ONE)
                    found["others meanwhile"].append((time.perf_counter() - asked) * 1000)
                await wire.next_message(lambda message, number=number: message.get("id") == number)
                found["answer behind the limit"].append((time.perf_counter() - begun - LIMIT) * 1000)
            for _ in range(rounds):
                number = await wire.begin("tools/call", call)
                while not running(wire.process.pid):
                    await anyio.sleep(0.002)
                await anyio.sleep(0.1)
                begun = time.perf_counter()
                await wire.notify("notifications/cancelled", {"requestId": number})
                while running(wire.process.pid):
                    await anyio.sleep(0.002)
                found["cancel to engine idle"].append((time.perf_counter() - begun) * 1000)
    return found


async def run(rounds: int, only: str | None) -> None:
    console = Console(width=120)
    if only in (None, "peers"):
        with tempfile.TemporaryDirectory(prefix="mcp-bench-") as folder:
            path = Path(folder) / "app.db"
            make(path)
            found = {}
            for peer in everybody():
                try:
                    found[peer.name] = await measure(
                        peer.command(path), peer.revision, peer.tool, peer.argument, rounds
                    )
                except (Exception, BaseExceptionGroup) as error:
                    click.echo(f"{peer.name}: {error!r}", err=True)
        table = Table("", *found)
        for row in next(iter(found.values())):
            table.add_row(row, *(f"{figures[row]:,.4g}" for figures in found.values()))
        console.print(table)
    if only in (None, "promises"):
        table = Table("endless statement, ms", "loop p50", "worst", "one opcode p50", "worst")
        loop, opcode = await promises(LOOP, rounds), await promises(OPCODE, rounds)
        for name in loop:
            cells = [f"{figure(taken[name]):,.4g}" for taken in (loop, opcode) for figure in (statistics.median, max)]
            table.add_row(name, *cells)
        console.print(table)
    if only in (None, "notices"):
        table = Table("foreign commit to notice, ms", "subscriptions", "p50", "worst")
        for subscriptions in (1, 1000):
            for journal in ("delete", "wal"):
                for transport in TRANSPORTS:
                    for revision in ("2025-11-25", MODERN):
                        taken = await notices(journal, transport, revision, subscriptions, 5 * rounds)
                        cells = [f"{statistics.median(taken):.0f}", f"{max(taken):.0f}"]
                        table.add_row(f"{journal}, {transport}, {revision}", str(subscriptions), *cells)
        console.print(table)


@click.command(help=__doc__)
@click.option("--quick", is_flag=True, help="Fewer rounds.")
@click.option("--only", type=click.Choice(["peers", "promises", "notices"]), help="One of the three tables.")
def main(quick: bool, only: str | None) -> None:
    click.echo(f"Python {sys.version.split()[0]}, SQLite {sqlite3.sqlite_version}")
    anyio.run(run, 3 if quick else 10, only)


if __name__ == "__main__":
    main()
