"""What a run found, in the words of `docs/windows.md`; `leg.py --record` fills its marked places."""

import datetime
import os
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tools.docs import filled

PAGE = Path(__file__).parents[2] / "docs" / "windows.md"
KINDS = ("passed", "left", "listed", "skipped", "failed")
Told = Sequence[dict[str, Any]]


def suite_of(test: str) -> str:
    return test.removeprefix("tests/").partition("/")[0]


def written(told: Told, said: Sequence[str], began: datetime.datetime, set_up: float, seconds: float) -> None:
    """Put what one run of everything found into the page."""
    when = f"{began:%d %B %Y, %H:%M} UTC, by one `just windows` on {os.cpu_count()} processors"
    took = f"{seconds:.0f} seconds by the clock, {set_up:.0f} of them to build and install the wheels."
    places = {
        "suites": f"\nCounted on {when}: {took}\n\n{suites(told)}\n",
        "figures": f"\n{figures(told)}\n",
        "checks": "\n```text\n" + "\n\n".join(map(_folded, said)) + "\n```\n",
    }
    PAGE.write_text(filled(PAGE.read_text("utf-8"), places), "utf-8")


def suites(told: Told) -> str:
    """How the tests of each suite ended."""
    counts = Counter((suite_of(line["test"]), line["kind"]) for line in told if line["kind"] in KINDS)
    rows = {f"`{suite}`": [counts[suite, kind] for kind in KINDS] for suite in sorted({suite for suite, _ in counts})}
    rows["all"] = [sum(column) for column in zip(*rows.values(), strict=True)]
    return _table(("suite", *KINDS), {name: [f"{number:,}" for number in row] for name, row in rows.items()})


def figures(told: Told) -> str:
    """How long each server takes to start, answer, subscribe and leave."""
    found = {name: row for line in told for name, row in line.get("figures", {}).items()}
    rows = {name: [f"{seconds:.2f} s" for seconds in row] for name, row in sorted(found.items())}
    return _table(("server", "ready", "first answer", "subscribed", "left"), rows)


def _table(head: Sequence[str], rows: Mapping[str, Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *([name, *row] for name, row in rows.items())]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def reasons(told: Told) -> str:
    """Why tests were not run, and of how many that is so."""
    counts = Counter((suite_of(line["test"]), line["kind"], line["why"]) for line in told if line.get("why"))
    ordered = sorted(counts.items(), key=lambda item: (item[0][0], -item[1]))
    return "\n".join(f"{suite:14} {number:>4} {kind}: {why}" for (suite, kind, why), number in ordered)


def longest(told: Told, number: int) -> str:
    """The tests that took longest."""
    ended = sorted((line for line in told if "seconds" in line), key=lambda line: -line["seconds"])
    return "\n".join(f"{line['seconds']:7.1f} s {line['test']}" for line in ended[:number])


def _folded(said: str) -> str:
    return "\n".join(
        textwrap.fill(line, 110, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
        for line in said.strip().splitlines()
    )
