"""Everyday tasks by an expert with a shell and by the same expert with our tools: calls, bytes, and what is left.

The calls are written down, looks among them, so that a run measures the tools and not a model. One command line may do
several things, as shell agents write them. Bytes are those of the arguments and of the texts of answers, as they stand
in a model's context. Each task begins in a new place. An answer that lacks what is known, or a place that is left
otherwise than it should be, ends the run.
"""

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import click
from driver import MODERN, Failed, Server
from rich.console import Console
from rich.table import Table

Call = tuple[str, dict[str, object]]


@dataclass(frozen=True)
class Place:
    """Where one task is done.

    Attributes:
        servers: how each is started, by its name; calls go to the first that is not named before a colon.
        variables: of the shell's environment.
        words: what stands in the task as `@name`, known only here, such as a commit's hash.
    """

    folder: Path
    servers: Mapping[str, Sequence[str]]
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    words: Mapping[str, str] = field(default_factory=dict[str, str])

    def filled(self, text: str) -> str:
        return re.sub(r"@(\w+)", lambda found: self.words.get(found[1], found[0]), text)

    def shell(self, line: str) -> str:
        environment = {**os.environ, **self.variables}
        done = subprocess.run(["bash", "-c", line], cwd=self.folder, env=environment, capture_output=True)
        # Of a picture or a workbook too, the beginning may be looked at.
        return (done.stdout + done.stderr).decode(errors="replace")


@dataclass(frozen=True)
class Task:
    """A question, and what either side does for it.

    Attributes:
        make: makes its place in an empty folder.
        shell: a command line each.
        known: patterns that the answers of either side must hold.
        look: a command line that shows what is left, which must hold all of `left`.
        batched: `ours` in fewer calls, with `call_tools`; by default as they are.
    """

    question: str
    make: Callable[[Path], Place]
    shell: Sequence[str]
    ours: Sequence[Call]
    known: Sequence[str] = ()
    look: str = "true"
    left: Sequence[str] = ()
    batched: Sequence[Call] = ()


def size(value: object) -> int:
    """Bytes as they stand in a model's context."""
    return len((value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)).encode())


def by_shell(task: Task, place: Place, show: bool) -> tuple[int, str]:
    spent, said = 0, ""
    for line in map(place.filled, task.shell):
        answer = place.shell(line)
        spent, said = spent + size({"command": line}) + size(answer), f"{said}{answer}\n"
        if show:
            click.echo(f"$ {line}\n{answer}[{size(answer):,} bytes]\n")
    return spent, said


def by_tools(calls: Sequence[Call], place: Place, show: bool) -> tuple[int, str]:
    """As `by_shell`.

    Raises:
        Failed: a call did.
    """
    spent, said = 0, ""
    with ExitStack() as ends:
        open_ones = dict[str, Server]()
        for named, arguments in calls:
            name, _, tool = named.rpartition(":")
            name = name or next(iter(place.servers))
            if name not in open_ones:
                server = Server(place.servers[name], revision=MODERN, seconds=60, variables=place.variables)
                open_ones[name] = ends.enter_context(server)
                server.open()
            asked = json.loads(place.filled(json.dumps(arguments)))
            result, _ = open_ones[name].ask("tools/call", {"name": tool, "arguments": asked})
            answer = "".join(item.get("text", "") for item in result["content"])
            spent, said = spent + size(tool) + size(asked) + size(answer), f"{said}{answer}\n"
            if show:
                click.echo(f"> {named} {json.dumps(asked, ensure_ascii=False)}\n{answer}\n[{size(answer):,} bytes]\n")
    return spent, said


def run(title: str, tasks: Sequence[Task], only: Sequence[str], show: bool) -> None:
    """Do all tasks by either side, and print what they took.

    Raises:
        SystemExit: one of them was not done.
    """
    table = Table(f"{title}: calls, bytes", "shell", "ours", "ratio", "with call_tools", "ratio")
    sums = [0] * 6
    for task in tasks:
        if only and not any(part in task.question for part in only):
            continue
        found: list[int] = []
        sides = {"shell": task.shell, "ours": task.ours, "batched": task.batched}
        for side, calls in sides.items():
            if not calls:
                found += found[2:4]
                continue
            with tempfile.TemporaryDirectory(prefix="task") as folder:
                place = task.make(Path(folder))
                if show:
                    click.echo(f"=== {task.question}: {side}")
                try:
                    spent, said = (
                        by_shell(task, place, show) if side == "shell" else by_tools(calls, place, show)  # type: ignore[arg-type]
                    )
                except Failed as failure:
                    raise SystemExit(f"{task.question}: {failure}") from None
                left = place.shell(place.filled(task.look))
                lacking = [item for item in task.known if not re.search(place.filled(item), said, re.DOTALL)]
                lacking += [item for item in task.left if not re.search(place.filled(item), left, re.DOTALL)]
                if lacking:
                    raise SystemExit(f"{task.question}, {side}: {lacking} not in:\n{said}\nleft:\n{left}")
                found += [len(calls), spent]
        sums = [one + other for one, other in zip(sums, found, strict=True)]
        table.add_row(task.question, *_cells(found))
    table.add_section()
    table.add_row("all", *_cells(sums))
    Console(width=150).print(table)


def _cells(found: Sequence[int]) -> list[str]:
    shell, spent, ours, used, batched, needed = found
    return [
        f"{shell}, {spent:,}", f"{ours}, {used:,}", f"{used / spent:.2f}", f"{batched}, {needed:,}",
        f"{needed / spent:.2f}",
    ]  # fmt: skip
