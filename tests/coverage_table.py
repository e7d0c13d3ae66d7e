"""Write into the page of tests which share of each member the last run with coverage reached.

`just coverage` does all of it. `python tests/coverage_table.py "pytest tests/weather" mcp_weather` records what
`coverage run -m pytest tests/weather` and `coverage combine` left, for these members only.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

__all__ = ["MEMBERS", "PAGE", "replace_rows", "sum_by_member"]

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "development" / "tests.md"
MEMBERS = ("mcp_batteries", "mcp_fs", "mcp_git", "mcp_github", "mcp_postgres", "mcp_sqlite", "mcp_weather")
_ROW = r"^\| {name} \|.*$"


def read_report() -> dict[str, Any]:
    """Return what coverage.py found, from its data in this folder."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "coverage.json"
        command = [sys.executable, "-m", "coverage", "json", "--quiet", "-o", str(report)]
        subprocess.run(command, cwd=ROOT, check=True)
        return json.loads(report.read_text("utf-8"))


def sum_by_member(report: Mapping[str, Any]) -> dict[str, Counter[str]]:
    """Return the counts of all files of each member: lines and branches, and those that were reached."""
    totals: dict[str, Counter[str]] = {member: Counter() for member in MEMBERS}
    for path, file in report["files"].items():
        for member in MEMBERS:
            if member in Path(path).parts:
                totals[member].update({name: int(value) for name, value in file["summary"].items() if "num_" in name})
                totals[member]["covered_lines"] += file["summary"]["covered_lines"]
                totals[member]["covered_branches"] += file["summary"]["covered_branches"]
    return totals


def replace_rows(page: str, totals: Mapping[str, Counter[str]], run: str, day: str) -> str:
    """Return the page with new rows for these members.

    Raises:
        LookupError: the page has no row of a member.
    """
    for member, counts in totals.items():
        name = member.replace("_", "-")
        lines = _percent(counts["covered_lines"], counts["num_statements"])
        branches = _percent(counts["covered_branches"], counts["num_branches"])
        row = f"| {name} | {lines} | {branches} | `{run}` | {day} |"
        page, count = re.subn(_ROW.format(name=name), lambda _, row=row: row, page, flags=re.MULTILINE)
        if count != 1:
            raise LookupError(f"{count} rows of {name}")
    return page


def _percent(reached: int, total: int) -> str:
    return f"{100 * reached / total:.1f} %" if total else "-"


def main(words: Sequence[str]) -> None:
    run = words[0] if words else "pytest"
    members = words[1:] or MEMBERS
    totals = sum_by_member(read_report())
    chosen = {member: totals[member] for member in members}
    day = f"{datetime.now(UTC):%Y-%m-%d}"
    PAGE.write_text(replace_rows(PAGE.read_text("utf-8"), chosen, run, day), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
