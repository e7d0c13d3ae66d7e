"""Small calls over stdio, each member beside the peer that does the same: one table of ratios, ours / theirs.

    python tests/benchmarks/small_calls.py [--rounds 10]

Node's compiler takes about a thousand calls to make a server fast, more than most sessions have: the first 200 calls of
fresh processes stand beside those of processes that have answered thousands.
"""

import sqlite3
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

import data  # noqa: E402
from driver import LEGACY, MODERN, Server, middle, pipelined, sequential  # noqa: E402

from e2e import npm  # noqa: E402

HERE = Path(__file__).parent
FEW, MANY, IN_FLIGHT = 200, 3000, 64
TYPESCRIPT = "@modelcontextprotocol/server@2.4.0"
FILES, DBHUB = "@modelcontextprotocol/server-filesystem", "@bytebase/dbhub"
ONE = "SELECT * FROM t WHERE id = 4711"


@dataclass(frozen=True)
class Side:
    """A server and the call it is asked for."""

    command: Sequence[str]
    tool: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Pair:
    name: str
    ours: Side
    theirs: Side
    revision: str = LEGACY


def pairs(folder: Path) -> list[Pair]:
    file = data.small(folder).small / "1k.txt"
    database = folder / "rows.db"
    with closing(sqlite3.connect(database)) as made, made:
        made.execute("CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, name TEXT, price REAL)")
        made.executemany("INSERT OR REPLACE INTO t VALUES (?, ?, ?)", ((n, f"name {n}", n / 7) for n in range(10_000)))
    ours = [sys.executable, str(HERE.parent / "e2e" / "diagnostic")]
    typescript = [npm.NODE, str(HERE / "typescript-stdio.mjs"), str(npm.installed(TYPESCRIPT))]
    trivial = [Side(command, "test_simple_text", {}) for command in (ours, typescript)]
    files = npm.program(npm.installed(f"{FILES}@2026.8.31"), FILES)
    dbhub = npm.program(npm.installed(f"{DBHUB}@1.4.0"), DBHUB)
    return [
        Pair("trivial / TypeScript SDK", trivial[0], trivial[1]),
        Pair("the same, 2026-07-28", trivial[0], trivial[1], MODERN),
        Pair(
            "1 KB of a file / official",
            Side([sys.executable, "-m", "mcp_fs", str(file.parent)], "read_text", {"path": str(file)}),
            Side([npm.NODE, files, str(file.parent)], "read_text_file", {"path": str(file)}),
        ),
        Pair(
            "one SQLite row / DBHub",
            Side([sys.executable, "-m", "mcp_sqlite", str(database)], "query_rows", {"sql": ONE}),
            Side(
                [npm.NODE, dbhub, "--transport", "stdio", "--dsn", f"sqlite://{database}"], "execute_sql", {"sql": ONE}
            ),
        ),
    ]


@dataclass
class Figures:
    """Milliseconds of calls one by one, milliseconds of processor time of each, calls per second of 64 in flight."""

    early: list[float]
    late: list[float]
    cpu: list[float]
    rate: list[float]

    def row(self) -> list[float]:
        return [middle(self.early), middle(self.late), middle(self.late, 0.99), middle(self.cpu), middle(self.rate)]


def measure(pair: Pair, rounds: int) -> tuple[list[float], list[float]]:
    sides = [pair.ours, pair.theirs]
    found = [Figures([], [], [], []) for _ in sides]
    for _ in range(rounds):
        for side, figures in zip(sides, found, strict=True):
            with Server(side.command, pair.revision) as server:
                server.open()
                figures.early += sequential(server, _lines(server, side, FEW))
    with ExitStack() as stack:
        servers = [stack.enter_context(Server(side.command, pair.revision)) for side in sides]
        for server in servers:
            server.open()
        for number in range(rounds + 1):
            for side, server, figures in zip(sides, servers, found, strict=True):
                lines = _lines(server, side, MANY // rounds if number else MANY)
                begun = server.cpu()
                late = sequential(server, lines)
                spent = (server.cpu() - begun) * 1000 / len(lines)
                rate = pipelined(server, _lines(server, side, len(lines)), IN_FLIGHT)
                if number:
                    figures.late += late
                    figures.cpu.append(spent)
                    figures.rate.append(rate)
    return found[0].row(), found[1].row()


def _lines(server: Server, side: Side, count: int) -> list[bytes]:
    return [server.call_line(side.tool, side.arguments) for _ in range(count)]


@click.command(help=__doc__)
@click.option("--rounds", default=10, help="How often everybody takes a turn.")
def main(rounds: int) -> None:
    table = Table(title="small calls over stdio: ours, and in brackets ours / theirs")
    for name in ("", "p50 of the first 200, ms", "p50 later, ms", "p99 later, ms", "processor, ms", "64 in flight, /s"):
        table.add_column(name, justify="right" if name else "left")
    with tempfile.TemporaryDirectory(prefix="mcp-bench-") as folder:
        for pair in pairs(Path(folder)):
            ours, theirs = measure(pair, rounds)
            cells = [f"{mine:,.3g} ({mine / other:.2f})" for mine, other in zip(ours, theirs, strict=True)]
            cells[-1] = f"{ours[-1]:,.0f} ({ours[-1] / theirs[-1]:.2f})"
            table.add_row(pair.name, *cells)
    Console(width=max(Console().width, 130)).print(table)


if __name__ == "__main__":
    main()
