"""What the logs of sessions say: tasks done, calls and bytes by side, and why a call was made."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

# Verbs of tools that change nothing.
_LOOKS = ("list", "get", "find", "read", "search", "query", "explain", "check", "compare", "summarize")


@dataclass
class Side:
    """What a side took for one task, over all its runs."""

    runs: int = 0
    passes: int = 0
    calls: int = 0
    bytes: int = 0
    reasons: Counter[str] = field(default_factory=Counter[str])
    faults: list[str] = field(default_factory=list[str])

    def add(self, other: "Side") -> None:
        """Add what another task took."""
        self.runs += other.runs
        self.passes += other.passes
        self.calls += other.calls
        self.bytes += other.bytes
        self.reasons += other.reasons


def read_logs(logs: Iterable[Path]) -> dict[str, dict[str, Side]]:
    """Return by task and side what was done."""
    found: dict[str, dict[str, Side]] = defaultdict(lambda: {"shell": Side(), "tools": Side()})
    for log in logs:
        entries = [json.loads(line) for line in log.read_text().splitlines()]
        for task in dict.fromkeys(entry["task"] for entry in entries):
            _add_run(found[task], [entry for entry in entries if entry["task"] == task])
    return found


def _add_run(sides: dict[str, Side], entries: Sequence[dict[str, Any]]) -> None:
    side = sides[entries[0]["side"]]
    calls = [entry for entry in entries if "tool" in entry]
    side.calls += len(calls)
    side.bytes += sum(call["sent"] + call["received"] for call in calls)
    side.reasons.update(_reasons(calls))
    for verdict in (entry for entry in entries if "faults" in entry):
        side.runs += 1
        side.passes += not verdict["faults"]
        side.faults += verdict["faults"]


def _reasons(calls: Sequence[dict[str, Any]]) -> Iterable[str]:
    """Say for each call of tools why it was made, as far as it shows from outside."""
    has_changed = False
    for number, call in enumerate(calls):
        arguments = call["arguments"]
        is_look = all(_is_look(name) for name in _called_tools(call))
        if call["tool"] == "sh":
            yield "shell"
        elif call["is_error"]:
            yield "error"
        elif arguments.get("dry_run"):
            yield "dry run"
        elif arguments.get("cursor") or arguments.get("offset"):
            yield "page"
        elif not is_look:
            has_changed = True
            yield "change"
        elif has_changed:
            yield "look after a change"
        else:
            yield "look" if number + 1 < len(calls) else "last look"


def _is_look(name: str) -> bool:
    """Return whether a tool changes nothing; in one process with others, its name has that of its server in front."""
    return name.startswith(_LOOKS) or name.partition("_")[2].startswith(_LOOKS)


def _called_tools(call: dict[str, Any]) -> list[str]:
    """Return the name of the tool, or of those that `call_tools` calls."""
    if call["tool"] != "call_tools":
        return [call["tool"]]
    calls: list[dict[str, Any]] = call["arguments"].get("calls", [])
    return [str(inner.get("name") or next(iter(inner))) for inner in calls if inner]


def show(logs: Iterable[Path]) -> None:
    """Print a line for each task, with the sums of both sides."""
    found = read_logs(logs)
    table = Table("task", "shell: passes, calls, bytes", "tools: passes, calls, bytes", "calls", "bytes", "why")
    sums = {"shell": Side(), "tools": Side()}
    for task, sides in found.items():
        for name, side in sides.items():
            sums[name].add(side)
        table.add_row(task, *_cells(sides))
    table.add_section()
    table.add_row("all", *_cells(sums))
    Console(width=170).print(table)
    for task, sides in found.items():
        for name, side in sides.items():
            for fault in side.faults:
                print(f"{task}, {name}: {fault}")


def _cells(sides: dict[str, Side]) -> list[str]:
    shell, tools = sides["shell"], sides["tools"]
    why = ", ".join(f"{count} {reason}" for reason, count in tools.reasons.most_common())
    calls = _ratio(_mean(tools, tools.calls), _mean(shell, shell.calls))
    return [_cell(shell), _cell(tools), calls, _ratio(_mean(tools, tools.bytes), _mean(shell, shell.bytes)), why]


def _cell(side: Side) -> str:
    return f"{side.passes} of {side.runs}, {_mean(side, side.calls):.1f}, {_mean(side, side.bytes):,.0f}"


def _mean(side: Side, figure: int) -> float:
    return figure / side.runs if side.runs else 0.0


def _ratio(ours: float, theirs: float) -> str:
    return f"{ours / theirs:.2f}" if theirs else ""
