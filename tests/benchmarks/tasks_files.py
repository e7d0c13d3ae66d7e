"""Twelve everyday tasks on a folder with known answers: calls and bytes, beside a shell with ripgrep.

    python tests/benchmarks/tasks_files.py [--show]

Each task of `tasks_files.toml` begins anew, by an agent who knows the folder's layout and nothing of what its files
hold. The calls are written down there, looks among them, so a run measures the tools and not a model. The shell's agent
is an expert: a command line does as much as it can. mcp-fs takes part twice: one call at a time, with the tools it
offers by default, and with `call_tools`, where calls that need nothing of each other's answers are one. Bytes are those
of the tool's name, its arguments and the texts of answers. A task is passed when its answers hold what is known and the
folder is what it should be then.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import click
from driver import MODERN, Failed, Server
from rich.console import Console
from rich.table import Table

LEVELS = ("INFO", "INFO", "WARN", "INFO", "ERROR", "INFO", "INFO", "INFO")
MODULES = ("cart", "orders", "invoices", "refunds", "mail", "reports", "stock", "search")
YEARS = (2024, 2025, 2026)
RELEASED = {"api": "GET /v1/carts\nGET /v1/orders\n", "limits": "carts 50\norders 20\n", "terms": "30 days\n" * 40}
SMALL = {
    "src/shop/util/money.py": '"""Amounts."""\n\n\ndef cents(text):\n    return round(float(text) * 100)\n',
    "src/shop/util/dates.py": "def day(moment):\n    return moment.date()  # TODO: in whose time zone?\n",
    "src/shop/rates.py": "def fetch_rates(day):\n    return {}\n\n\ndef fetch_rates_cached(day):\n"
    "    return fetch_rates(day)\n",
    "docs/rates.md": "# Rates\n\n`fetch_rates` asks the bank once a day, `fetch_rates_cached` once a week.\n",
    "config/api.toml": "port = 8080\nrequest_timeout = 30\nidle_timeout = 300\n",
    "config/worker.toml": "queues = 4\nrequest_timeout = 30\n",
    "config/mail.yaml": "host: mail\nrequest_timeout: 30\nretries: 30\n",
    "config/search.json": '{\n  "shards": 3,\n  "request_timeout": 30\n}\n',
    "config/web.json": '{\n  "request_timeout": 30,\n  "workers": 30\n}\n',
    "release-1/old.txt": "gone\n",
    "release-2/new.txt": "come\n",
}
Call = tuple[str, dict[str, Any]]
Done = list[tuple[str, str]]
"""What was asked, and the answer."""


@dataclass(frozen=True)
class Task:
    """As the data say it; each call has its arguments under the tool's name."""

    question: str
    shell: list[str]
    ours: list[list[dict[str, dict[str, Any]]]]
    known: list[str] = field(default_factory=list[str])
    after: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def calls(self) -> list[list[Call]]:
        return [[(tool, _filled(given)) for call in group for tool, given in call.items()] for group in self.ours]


def _filled(arguments: dict[str, Any]) -> dict[str, Any]:
    """With a year of the changelog in place of its name in braces."""
    texts = {f"{{{year}}}": changes(year) for year in YEARS}
    return {name: texts.get(value, value) if isinstance(value, str) else value for name, value in arguments.items()}


def changes(year: int) -> str:
    lines = [f"- {year}-{month:02}: {MODULES[month % 8]} do more, and sooner\n" for month in range(1, 13)]
    return f"## {year}\n\n{''.join(lines)}"


def log(name: str) -> str:
    step = len(name) + 2
    times = [(at, f"2026-11-{at // 60 + 10:02} 08:{at % 60:02}") for at in range(400)]
    return "".join(f"{when} {LEVELS[at % step]} {name}: request {at}\n" for at, when in times)


def files() -> dict[str, str]:
    """What the folder holds, by path."""
    made = {**SMALL, "CHANGES.md": "\n".join(["# Changes\n", *map(changes, YEARS)])}
    for at, name in enumerate(MODULES):
        module, does = ("shop.util.money", "cents") if at % 2 else ("shop.rates", "fetch_rates")
        todo = "    # FIXME: rounds twice\n" if at % 3 == 0 else ""
        head = f'"""The {name} of a shop."""\n\nfrom {module} import {does}\n\n\n'
        made[f"src/shop/{name}.py"] = f"{head}def add(item):\n{todo}    total = {does}(item)\n    return total\n"
        made[f"tests/test_{name}.py"] = f"from shop.{name} import add\n\n\ndef test_adds():\n    assert add('1')\n"
    for name in ("cart.py", "mail.py", "util/dates.py"):
        made[f"src/shop/{name}.orig"] = made[f"tests/{Path(name).name}.orig"] = "what it was before a merge\n"
    made |= {f"logs/{name}.log": log(name) for name in ("api", "worker", "mail")}
    made |= {f"release-{side}/{name}.txt": text for side in (1, 2) for name, text in RELEASED.items()}
    made["release-2/limits.txt"] = "carts 50\norders 40\n"
    made["release-2/api.txt"] = RELEASED["api"].replace("/v1/orders", "/v2/orders")
    pictures = {at: f"picture {at:02} " * 300 for at in range(12)}
    made |= {f"photos/2026/{at:04}.jpg": text for at, text in pictures.items()}
    return made | {f"photos/phone/copy-{at}.jpg": pictures[at] for at in (3, 7, 11)}


def wrong(task: Task, folder: Path, done: Done) -> list[str]:
    """What is not as it should be."""
    said = "\n".join(answer for _, answer in done)
    now = {path: (folder / path).read_text() if (folder / path).is_file() else None for path in task.after}
    amiss = [path for path, text in now.items() if not _fits(task.after[path], text)]
    return [known for known in task.known if not re.search(known, said)] + amiss


def _fits(pattern: str, text: str | None) -> bool:
    return text is None if pattern == "-" else text is not None and re.fullmatch(pattern, text) is not None


def compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def by_shell(task: Task, folder: Path, scratch: Path) -> Done:
    done: Done = []
    for line in map(str.strip, task.shell):
        pipe = subprocess.PIPE
        ran = subprocess.run(["bash", "-c", line], cwd=folder, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe)
        done.append((f"bash {compact({'command': line})}", (ran.stdout + ran.stderr).decode()))
    return done


def by_tools(task: Task, folder: Path, scratch: Path, *, together: bool = False) -> Done:
    groups = task.calls if together else [[call] for group in task.calls for call in group]
    more = ["--tools", "all,call_tools"] if together else []
    done: Done = []
    command = [sys.executable, "-m", "mcp_fs", *more, str(folder)]
    with Server(command, revision=MODERN, variables={"XDG_STATE_HOME": str(scratch / "state")}) as server:
        server.open()
        for group in groups:
            name, arguments = group[0] if len(group) == 1 else _together(group)
            try:
                result, _ = server.ask("tools/call", {"name": name, "arguments": arguments})
                answer = "".join(item["text"] for item in result["content"] if item["type"] == "text")
            except Failed as failure:
                answer = f"failed: {failure}"
            done.append((f"{name} {compact(arguments)}", answer))
    return done


def _together(group: list[Call]) -> Call:
    return "call_tools", {"calls": [{name: arguments} for name, arguments in group]}


@click.command(help=__doc__)
@click.option("--show", is_flag=True, help="Each call with its answer, too.")
def main(show: bool) -> None:
    if shutil.which("rg") is None:
        raise SystemExit("The shell needs ripgrep, as `rg` on the path.")
    data = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
    sides: dict[str, Callable[[Task, Path, Path], Done]] = {
        "shell": by_shell,
        "mcp-fs": by_tools,
        "mcp-fs, call_tools": partial(by_tools, together=True),
    }
    table, sums = Table("calls, bytes", *sides), {side: [0, 0, 0] for side in sides}
    for task in [Task(**one) for one in data["task"]]:
        row = [task.question]
        for side, run in sides.items():
            with tempfile.TemporaryDirectory() as name:
                folder = (scratch := Path(name)) / "shop"
                for path, text in files().items():
                    (folder / path).parent.mkdir(parents=True, exist_ok=True)
                    (folder / path).write_text(text)
                done = run(task, folder, scratch)
                failed = wrong(task, folder, done)
            spent = sum(len(text.encode()) for both in done for text in both)
            row.append(f"{len(done)}, {spent:,}" + (f"; fails: {', '.join(failed)}" if failed else ""))
            sums[side] = [a + b for a, b in zip(sums[side], (len(done), spent, not failed), strict=True)]
            if show:
                click.echo("".join(f"\n{side}> {asked}\n{answer}\n" for asked, answer in done))
        table.add_row(*row)
    whole = sums["shell"][1]
    table.add_row(
        "all", *(f"{calls}, {spent:,} ({spent / whole:.2f}); {ok} pass" for calls, spent, ok in sums.values())
    )
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
