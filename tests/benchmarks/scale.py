"""What a call costs by the size of what is served: one table for each kind of size. Linux only.

    python tests/benchmarks/scale.py [--only folders] [--most 100000] [--calls 20]

Milliseconds of processor time of one call or one notice, the median of some, and what the server's process takes of
memory behind them. Processor time says on a busy machine too where a curve bends; what a client waits for is on top.
"""

import asyncio
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Any

import anyio
import click
from rich.console import Console
from rich.table import Table

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

import data  # noqa: E402
from bench_http import load, started  # noqa: E402
from driver import LEGACY, MODERN, Failed, Server, middle, processes  # noqa: E402
from notices import follow, quiet  # noqa: E402

from e2e.services import serving  # noqa: E402
from mcp_batteries.testing.wire import HttpWire  # noqa: E402

PER_FOLDER = 1000
DIAGNOSTIC = [sys.executable, str(Path(__file__).parents[1] / "e2e" / "diagnostic"), "--transport", "http"]
UPDATED = "notifications/resources/updated"
LAST = "test://template/last/data"
WRITES = 20
ROWS = """
    WITH RECURSIVE numbers (n) AS (VALUES (?) UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)
    INSERT INTO t SELECT n, 'name ' || n, n / 7.0 FROM numbers
"""

Figures = dict[str, float]


def costs(command: Sequence[str], calls: dict[str, tuple[str, dict[str, Any]]], count: int) -> Figures:
    """Of each call, once it has been made once."""
    found: Figures = {}
    with Server(command, seconds=300) as server:
        server.open()
        for what, (tool, arguments) in calls.items():
            params = {"name": tool, "arguments": arguments}
            server.ask("tools/call", params)
            times: list[float] = []
            for _ in range(count):
                begun = _spent(server.pid)
                server.ask("tools/call", params)
                times.append((_spent(server.pid) - begun) * 1000)
            found[what] = middle(times)
        found["memory, MB"] = server.memory()[0]
    return found


def folders(root: Path, most: int, count: int) -> Iterator[tuple[int, Figures]]:
    """Files in folders of a thousand, and as many in one."""
    tree, flat = root / "tree", root / "flat"
    flat.mkdir()
    there = 0
    for size in sizes(1000, min(most, 1_000_000)):
        for number in range(there, size):
            folder = tree / f"{number // PER_FOLDER:04}"
            if number % PER_FOLDER == 0:
                folder.mkdir(parents=True)
            name = f"{'special' if number % 997 == 500 else 'file'}{number:07}.txt"
            (folder / name).touch()
            (flat / name).touch()
        (tree / "0000" / "file0000000.txt").write_text("one line\n", "ascii")
        there = size
        calls = {
            "one file": ("read_text", {"path": "tree/0000/file0000000.txt"}),
            "first page of one folder": ("list_directory", {"path": "flat"}),
            "tree, cut": ("list_tree", {"path": "tree", "depth": 20}),
            "names by a pattern": ("find_files", {"path": "tree", "glob": "special*.txt"}),
        }
        yield size, costs([sys.executable, "-m", "mcp_fs", str(root)], calls, count if size < 100_000 else 3)


def tables(root: Path, most: int, count: int) -> Iterator[tuple[int, Figures]]:
    """Rows of one table with a key, in SQLite."""
    file = root / "rows.db"
    with closing(sqlite3.connect(file)) as made, made:
        made.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, price REAL)")
    there = 0
    for size in sizes(1000, most):
        with closing(sqlite3.connect(file)) as made, made:
            made.execute(ROWS, (there, size - 1))
        there = size
        calls = {
            "one row": ("query_rows", {"sql": f"SELECT * FROM t WHERE id = {size - 1}"}),
            "first page of all": ("query_rows", {"sql": "SELECT * FROM t"}),
            "all counted": ("query_rows", {"sql": "SELECT count(*) FROM t"}),
        }
        yield size, costs([sys.executable, "-m", "mcp_sqlite", str(file)], calls, count)


def subscriptions(root: Path, most: int, count: int) -> Iterator[tuple[int, Figures]]:
    """Files that one client follows, a hundred to a folder, of which one changes at a time."""
    for size in [1, *sizes(10, min(most, 10_000))]:
        files = data.watched(root, size)
        found: Figures = {}
        for revision in (LEGACY, MODERN):
            with Server([sys.executable, "-m", "mcp_fs", str(data.Data(root).watched)], revision) as server:
                server.open()
                server.ask("tools/call", {"name": "list_directory", "arguments": {}})
                begun = server.cpu()
                follow(server, revision, [file.as_uri() for file in files])
                quiet(server, 1.0)
                found[f"to follow them all, {revision}"] = (server.cpu() - begun) * 1000
                begun = server.cpu()
                for number in range(WRITES):
                    files[number * 37 % size].write_text(f"{revision} {number}", "ascii")
                    while UPDATED.encode() not in server.line(10):
                        pass
                    quiet(server, 0.15)
                found[f"a notice, {revision}"] = (server.cpu() - begun) * 1000 / WRITES
                found["memory, MB"] = server.memory()[0]
        yield size, found


def clients(root: Path, most: int, count: int) -> Iterator[tuple[int, Figures]]:
    """Clients over HTTP, each with a call always under way."""
    for size in [1, *sizes(10, min(most, 1000))]:
        found: Figures = {}
        for revision in (LEGACY, MODERN):
            process, url = started([*DIAGNOSTIC, "--port", "0", "--max-parallel", "0"])
            try:
                asyncio.run(load(url, revision, min(size, 10), 0.5))
                before = _spent(process.pid)
                times, _ = asyncio.run(load(url, revision, size, 3))
                found[f"a call, {revision}"] = (_spent(process.pid) - before) * 1000 / len(times)
                found[f"p50 by the clock, {revision}"] = middle(times)
                found[f"memory, MB, {revision}"] = _memory(process.pid)
            finally:
                process.kill()
                process.wait()
        yield size, found


def replicas(root: Path, most: int, count: int) -> Iterator[tuple[int, Figures]]:
    """Replicas on one bus (NATS), with a follower at each; what is announced at the first all hear."""
    for size in [number for number in (1, 2, 4, 8) if number <= most]:
        yield size, anyio.run(_announced, size)


async def _announced(size: int) -> Figures:
    async with AsyncExitStack() as stack:
        bus = await stack.enter_async_context(serving("nats"))
        subjects = [started([*DIAGNOSTIC, "--port", "0", "--bus", bus.url]) for _ in range(size)]
        for process, _ in subjects:
            stack.callback(process.wait)
            stack.callback(process.kill)
        wires = [await stack.enter_async_context(HttpWire(url, revision=MODERN)) for _, url in subjects]
        for wire in wires:
            await wire.open()
            await wire.subscribe(LAST)
        caller = await stack.enter_async_context(HttpWire(subjects[0][1], revision=MODERN))
        await caller.open()
        heard = [False]
        while not all(heard):  # replicas find each other in their own time
            await caller.call("announce", uri=LAST)
            await anyio.sleep(0.2)
            heard = [any(message.get("method") == UPDATED for message in wire.messages) for wire in wires]
        await anyio.sleep(0.5)
        before = [_spent(process.pid) for process, _ in subjects]
        times: list[float] = []
        for _ in range(WRITES):
            for wire in wires:
                wire.messages.clear()
            begun = time.perf_counter()
            await caller.call("announce", uri=LAST)
            for wire in wires:
                await wire.notification(UPDATED)
            times.append((time.perf_counter() - begun) * 1000)
        spent = [
            (_spent(process.pid) - one) * 1000 / WRITES for (process, _), one in zip(subjects, before, strict=True)
        ]
        return {
            "announced, where": spent[0],
            "announced, elsewhere": max(spent[1:], default=0.0),
            "until all have heard, by the clock": middle(times),
        }


def _spent(pid: int) -> float:
    """Processor seconds of a process and those it started, as far as they live."""
    return sum(time.clock_gettime(~item << 3 | 2) for item in processes(pid))


def _memory(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text("ascii")
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def sizes(least: int, most: int) -> list[int]:
    """`least` times powers of ten, up to `most`."""
    found = [least]
    while found[-1] * 10 <= most:
        found.append(found[-1] * 10)
    return found


SUBJECTS: dict[str, Callable[[Path, int, int], Iterator[tuple[int, Figures]]]] = {
    made.__name__: made for made in (folders, tables, subscriptions, clients, replicas)
}


@click.command(help=__doc__)
@click.option("--only", multiple=True, type=click.Choice(list(SUBJECTS)), help="Kinds of size.")
@click.option("--most", default=1_000_000, help="The largest size, where the kind goes that far.")
@click.option("--calls", default=20, help="Of which the median is shown.")
def main(only: Sequence[str], most: int, calls: int) -> None:
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for name in only or SUBJECTS:
        with tempfile.TemporaryDirectory(prefix="mcp-scale-") as folder:
            os.environ["XDG_STATE_HOME"] = folder
            columns: list[tuple[str, Figures]] = []
            try:
                for size, found in SUBJECTS[name](Path(folder), most, calls):
                    columns.append((f"{size:,}", found))
                    click.echo(f"{name} {size:,}", err=True)
            except Failed as failure:
                click.echo(f"{name}: {failure}", err=True)
            table = Table(name, *(size for size, _ in columns))
            for row in columns[0][1]:
                table.add_row(row, *(f"{found[row]:,.3g}" if found[row] < 1000 else f"{found[row]:,.0f}"
                                     for _, found in columns))  # fmt: skip
            Console(width=max(Console().width, 130)).print(table)


if __name__ == "__main__":
    main()
