"""Small calls over stdio, each member beside the peer that does the same: one table of ratios, ours / theirs.

    python tests/benchmarks/small_calls.py [--rounds 10] [--only sqlite --only git]

Node's compiler takes about a thousand calls to make a server fast, more than most sessions have: the first calls of
fresh processes stand beside those of processes that have answered many. A peer that is a program is run once a call.
"""

import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

import data  # noqa: E402
from driver import LEGACY, MODERN, Server, middle, pipelined, sequential  # noqa: E402
from peers import ripgrep  # noqa: E402

from e2e import npm  # noqa: E402

HERE = Path(__file__).parent
IN_FLIGHT = 64
TYPESCRIPT = "@modelcontextprotocol/server@2.4.0"
FILES, DBHUB = "@modelcontextprotocol/server-filesystem", "@bytebase/dbhub"
ONE = "SELECT * FROM t WHERE id = 4711"
COMMITS = 10_000

_PATIENCE = 90.0
"""Seconds an answer may take: open-meteo-mcp-server, asked 64 times at once, is silent for up to half a minute."""

Turn = tuple[list[float], float, float | None]
"""Milliseconds of each call, milliseconds of processor time of one, calls a second of many in flight."""


@dataclass
class Asked:
    """A server and the call it is asked for."""

    command: Sequence[str]
    tool: str
    arguments: Mapping[str, Any]
    revision: str = LEGACY
    variables: Mapping[str, str] = field(default_factory=dict[str, str])

    def begin(self, stack: ExitStack, count: int) -> None:
        """Start a process and have it answer `count` calls twice."""
        self._server = stack.enter_context(Server(self.command, self.revision, _PATIENCE, variables=self.variables))
        self._server.open()
        self.turn(count)

    def fresh(self, count: int) -> list[float]:
        """Milliseconds of the first calls of a process of its own."""
        with Server(self.command, self.revision, _PATIENCE, variables=self.variables) as server:
            server.open()
            return sequential(server, self._lines(server, count))

    def turn(self, count: int) -> Turn:
        server = self._server
        lines = self._lines(server, count)
        begun = server.cpu()
        late = sequential(server, lines)
        spent = (server.cpu() - begun) * 1000 / count
        return late, spent, pipelined(server, self._lines(server, count), IN_FLIGHT)

    def _lines(self, server: Server, count: int) -> list[bytes]:
        return [server.call_line(self.tool, dict(self.arguments)) for _ in range(count)]


@dataclass
class Run:
    """A program, run once for each call."""

    command: Sequence[str]
    folder: Path

    def begin(self, stack: ExitStack, count: int) -> None:
        """Nothing: it keeps nothing from one call to the next."""

    def fresh(self, count: int) -> list[float]:
        return self.turn(count)[0]

    def turn(self, count: int) -> Turn:
        begun, times = _children(), list[float]()
        for _ in range(count):
            start = time.perf_counter()
            subprocess.run(self.command, cwd=self.folder, capture_output=True, check=True)
            times.append((time.perf_counter() - start) * 1000)
        return times, (_children() - begun) * 1000 / count, None


def _children() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


@dataclass
class Pair:
    """Ours and theirs; `few` calls of fresh processes, and `many` of others in each turn."""

    name: str
    ours: Asked
    theirs: Asked | Run
    few: int = 200
    many: int = 300


# Each member, and what it is measured beside


def sdk(folder: Path, stack: ExitStack) -> list[Pair]:
    ours = [sys.executable, str(HERE.parent / "e2e" / "diagnostic")]
    theirs = [npm.NODE, str(HERE / "typescript-stdio.mjs"), str(npm.installed(TYPESCRIPT))]
    return [
        Pair(name, Asked(ours, "test_simple_text", {}, revision), Asked(theirs, "test_simple_text", {}, revision))
        for name, revision in (("trivial / TypeScript SDK", LEGACY), ("the same, 2026-07-28", MODERN))
    ]


def filesystem(folder: Path, stack: ExitStack) -> list[Pair]:
    small = data.small(folder).small
    file, written = small / "1k.txt", small / "written.txt"
    ours, program = [sys.executable, "-m", "mcp_fs"], npm.program(npm.installed(f"{FILES}@2026.8.31"), FILES)
    kept = {"XDG_STATE_HOME": str(folder / "state")}
    theirs = [npm.NODE, program, str(small)]
    text = {"path": str(written), "content": data.lines_of(1000)}
    found = [
        Pair(
            "mcp-fs, 1 KB of a file / official",
            Asked([*ours, str(small)], "read_text", {"path": str(file)}),
            Asked(theirs, "read_text_file", {"path": str(file)}),
        ),
        Pair(
            "  a write of 1 KB / official",
            Asked([*ours, str(small)], "write_file", {**text, "overwrite": True}, variables=kept),
            Asked(theirs, "write_file", text),
        ),
    ]
    if grep := ripgrep():
        data.tree(folder)
        tree = data.Data(folder).tree
        listing = [grep, "--no-config", "--no-require-git", "--files", "-g", "special*.cfg"]
        named = Asked([*ours, str(tree)], "find_files", {"glob": "special*.cfg"})
        found.append(Pair("  50 names of 50,000 / rg --files", named, Run(listing, tree), 5, 5))
    return found


def sqlite(folder: Path, stack: ExitStack) -> list[Pair]:
    database = folder / "rows.db"
    with closing(sqlite3.connect(database)) as made, made:
        made.execute("CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, name TEXT, price REAL)")
        made.executemany("INSERT OR REPLACE INTO t VALUES (?, ?, ?)", ((n, f"name {n}", n / 7) for n in range(10_000)))
    ours = Asked([sys.executable, "-m", "mcp_sqlite", str(database)], "query_rows", {"sql": ONE})
    return [Pair("mcp-sqlite, one row / DBHub", ours, dbhub(f"sqlite://{database}"))]


def postgres(folder: Path, stack: ExitStack) -> list[Pair]:
    from bench_postgres import SCHEMA, dsn, make

    base = make(SCHEMA)
    ours = Asked([sys.executable, "-m", "mcp_postgres", base.url()], "query_rows", {"sql": ONE})
    return [Pair("mcp-postgres, one row / DBHub", ours, dbhub(dsn(base)))]


def dbhub(dsn: str) -> Asked:
    program = npm.program(npm.installed(f"{DBHUB}@1.4.0"), DBHUB)
    return Asked([npm.NODE, program, "--transport", "stdio", "--dsn", dsn], "execute_sql", {"sql": ONE})


def git(folder: Path, stack: ExitStack) -> list[Pair]:
    from bench_git import GIT, PEERS, WORK, made

    repository = made(folder / "repository", COMMITS)
    ours = [sys.executable, "-m", "mcp_git", str(repository)]
    (command, named, calls), other = PEERS["mcp-server-git"], "log, 50"
    found = [
        Pair(f"mcp-git, {what} / git", Asked(ours, *call), Run([GIT, *words], repository), 20, 20)
        for what, words, call in WORK
        if what in ("status", "log, 50", "diff of a commit")
    ]
    tool, arguments = calls[other]
    log = next(call for what, _, call in WORK if what == other)
    beside = Asked(command, tool, {named: str(repository), **arguments})
    return [*found, Pair(f"  {other} / mcp-server-git", Asked(ours, *log), beside, 20, 20)]


def github(folder: Path, stack: ExitStack) -> list[Pair]:
    from bench_github import QUESTIONS, Oracle, everybody, world

    oracle = world(stack.enter_context(Oracle()))
    ours, *_, theirs = everybody()
    tokens = {"GITHUB_TOKEN": "ghp_nobodys", "GITHUB_PERSONAL_ACCESS_TOKEN": "ghp_nobodys"}
    sides = [
        Asked(peer.command(oracle), *QUESTIONS["an issue"][peer.which], variables=tokens) for peer in (ours, theirs)
    ]
    return [Pair("mcp-github, an issue / npm's server", sides[0], sides[1], 50, 50)]


def weather(folder: Path, stack: ExitStack) -> list[Pair]:
    from bench_weather import Upstream, everybody

    upstream = stack.enter_context(Upstream())
    sides = [
        Asked(peer.command(upstream), *peer.call(0.5), variables=peer.variables(upstream))
        for peer in everybody()
        if peer.call is not None
    ]
    return [Pair("mcp-weather, the same forecast / open-meteo-mcp-server", sides[0], sides[1], 50, 50)]


GROUPS: dict[str, Callable[[Path, ExitStack], list[Pair]]] = {
    made.__name__: made for made in (sdk, filesystem, sqlite, postgres, git, github, weather)
}


@dataclass
class Figures:
    """Milliseconds of calls one by one, milliseconds of processor time of each, calls per second of 64 in flight."""

    early: list[float] = field(default_factory=list[float])
    late: list[float] = field(default_factory=list[float])
    cpu: list[float] = field(default_factory=list[float])
    rate: list[float] = field(default_factory=list[float])

    def row(self) -> list[float | None]:
        rate = middle(self.rate) if self.rate else None
        return [middle(self.early), middle(self.late), middle(self.late, 0.99), middle(self.cpu), rate]


def measure(pair: Pair, rounds: int) -> list[str]:
    """The cells of a row."""
    found = [(pair.ours, Figures()), (pair.theirs, Figures())]
    for _ in range(rounds):
        for side, figures in found:
            figures.early += side.fresh(pair.few)
    with ExitStack() as stack:
        for side, _ in found:
            side.begin(stack, pair.many * 10)
        for _ in range(rounds):
            for side, figures in found:
                late, cpu, rate = side.turn(pair.many)
                figures.late += late
                figures.cpu.append(cpu)
                figures.rate += [] if rate is None else [rate]
    ours, theirs = (figures.row() for _, figures in found)
    return [_cell(mine, other) for mine, other in zip(ours, theirs, strict=True)]


def _cell(mine: float | None, other: float | None) -> str:
    if mine is None:
        return ""
    figure = f"{mine:,.0f}" if mine >= 1000 else f"{mine:,.3g}"
    return f"{figure} ({mine / other:.2f})" if other else figure


@click.command(help=__doc__)
@click.option("--rounds", default=10, help="How often everybody takes a turn.")
@click.option("--only", multiple=True, type=click.Choice(list(GROUPS)), help="Members to measure.")
def main(rounds: int, only: Sequence[str]) -> None:
    table = Table(title="small calls over stdio: ours, and in brackets ours / theirs")
    for name in ("", "p50 of the first, ms", "p50 later, ms", "p99 later, ms", "processor, ms", "64 in flight, /s"):
        table.add_column(name, justify="right" if name else "left")
    with tempfile.TemporaryDirectory(prefix="mcp-bench-") as folder:
        for group in only or GROUPS:
            begun = time.perf_counter()
            with ExitStack() as stack:
                try:
                    pairs = GROUPS[group](Path(folder), stack)
                except RuntimeError as error:  # npm's registry is not to be had
                    click.echo(f"{group} is left out: {error}", err=True)
                    continue
                for pair in pairs:
                    table.add_row(pair.name, *measure(pair, rounds))
            click.echo(f"{group}: {time.perf_counter() - begun:.0f} s", err=True)
    Console(width=max(Console().width, 150)).print(table)


if __name__ == "__main__":
    main()
