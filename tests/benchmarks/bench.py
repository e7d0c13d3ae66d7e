"""mcp-fs beside other filesystem servers, in one run; prints a table of medians and ratios.

    python tests/benchmarks/bench.py [--quick] [--only start --only calls] [--json FILE]

A ratio is ours divided by theirs: below 1 ours is faster or smaller (for throughput: above 1 ours is faster).
"""

import json
import platform
import sys
import tempfile
import time
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

import notices  # noqa: E402
import peers  # noqa: E402
import rows  # noqa: E402

SUBJECTS = {
    "start": rows.start,
    "lists": rows.lists,
    "calls": rows.calls,
    "throughput": rows.throughput,
    "large": rows.large_reads,
    "search": rows.searches,
    "ends": rows.ends,
}


@click.command(help=__doc__)
@click.option("--quick", is_flag=True, help="Fewer rounds and smaller files: a minute or two, for scale only.")
@click.option("--only", multiple=True, type=click.Choice([*SUBJECTS, "notices"]), help="Subjects to measure.")
@click.option("--peer", multiple=True, help="Beginnings of the names of peers to measure beside ours.")
@click.option("--rounds", type=int, help="How often everybody takes a turn.")
@click.option("--follow", type=int, multiple=True, default=(1, 1000), help="Numbers of subscriptions.")
@click.option("--folder", type=click.Path(path_type=Path), help="Where to generate the files, kept for the next run.")
@click.option("--json", "file", type=click.Path(path_type=Path), help="Write the figures there too.")
def main(
    quick: bool,
    only: tuple[str, ...],
    peer: tuple[str, ...],
    rounds: int | None,
    follow: tuple[int, ...],
    folder: Path | None,
    file: Path | None,
) -> None:
    chosen = [item for item in peers.everybody() if not peer or item.name.startswith((peers.OURS, *peer))]
    with tempfile.TemporaryDirectory(prefix="mcp-bench-") as temporary:
        run = rows.Run(chosen, rounds or (3 if quick else 10), 100 if quick else 200, folder or Path(temporary))
        found: list[rows.Row] = []
        for name in only or [*SUBJECTS, "notices"]:
            begun = time.perf_counter()
            found += notices.notices(run, list(follow)) if name == "notices" else SUBJECTS[name](run)
            click.echo(f"{name}: {time.perf_counter() - begun:.0f} s", err=True)
    show(found, [item.name for item in chosen])
    if file:
        names = [*(item.name for item in chosen), "ripgrep"]
        figures = [{"label": row.label, "unit": row.unit, **{name: row.value(name) for name in names}} for row in found]
        file.write_text(json.dumps({"machine": platform.platform(), "rows": figures}, indent=1), "utf-8")


def show(found: list[rows.Row], names: list[str]) -> None:
    """The table: who can't do a thing has an empty cell, who failed has the reason."""
    if any("ripgrep" in row.samples for row in found):
        names = [*names, "ripgrep"]
    table = Table(title="medians; in brackets: ours / theirs")
    table.add_column("")
    for name in names:
        table.add_column(name, justify="right")
    for row in found:
        ours = row.value(peers.OURS)
        table.add_row(f"{row.label} {row.unit}", *(cell(row, row.value(name), ours) for name in names))
    Console(width=max(Console().width, 40 + 20 * len(names))).print(table)


def cell(row: rows.Row, theirs: float | str | None, ours: float | str | None) -> str:
    if not isinstance(theirs, float | int):
        return f"[yellow]{escape(theirs.splitlines()[0][:60])}[/]" if theirs else ""
    figure = f"{theirs:,.0f}" if theirs >= 100 or row.unit in ("", "B") else f"{theirs:.3g}"
    if theirs is ours or not isinstance(ours, float | int) or not theirs:
        return figure
    ratio = ours / theirs
    won = ratio >= 1 if row.more else ratio <= 1
    return f"{figure} ([{'green' if won else 'red'}]{ratio:.2f}[/])"


if __name__ == "__main__":
    main()
