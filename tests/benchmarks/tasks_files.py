"""Thirteen everyday tasks on a folder with known answers, by an expert with ripgrep and with mcp-fs.

python tests/benchmarks/tasks_files.py [--show] [--only PART]...

The tasks are in `tasks_files.toml`; calls that need nothing of each other's answers stand together, for `call_tools`.
"""

import re
import shlex
import shutil
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from beside_shell import Call, Place, Task, run

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


def changes(year: int) -> str:
    lines = [f"- {year}-{month:02}: {MODULES[month % 8]} do more, and sooner\n" for month in range(1, 13)]
    return f"## {year}\n\n{''.join(lines)}"


def log(name: str) -> str:
    step = len(name) + 2
    times = [(at, f"2026-11-{at // 60 + 10:02} 08:{at % 60:02}") for at in range(400)]
    return "".join(f"{when} {LEVELS[at % step]} {name}: request {at}\n" for at, when in times)


def order(number: int) -> str:
    day = f"{2025 + number % 2}-{number % 12 + 1:02}-{number % 28 + 1:02}"
    return f"{number},{day},{('DE', 'FR', 'BR', 'US')[number * 7 % 5 % 4]},{number * 37 % 900}.{number % 100:02}\n"


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
    made["data/orders.csv"] = "".join(["id,day,country,amount\n", *map(order, range(1, 241))])
    pictures = {at: f"picture {at:02} " * 300 for at in range(12)}
    made |= {f"photos/2026/{at:04}.jpg": text for at, text in pictures.items()}
    return made | {f"photos/phone/copy-{at}.jpg": pictures[at] for at in (3, 7, 11)}


def make(folder: Path) -> Place:
    for path, text in files().items():
        (folder / "shop" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "shop" / path).write_text(text)
    command = [sys.executable, "-m", "mcp_fs", "--tools", "all,call_tools", str(folder / "shop")]
    return Place(folder / "shop", {"fs": command}, {"XDG_STATE_HOME": str(folder / "state")})


def told(given: Mapping[str, Any]) -> Task:
    """A task as the data say it; each call has its arguments under the tool's name."""
    groups: list[list[Call]] = [
        [(tool, dict(arguments)) for call in group for tool, arguments in call.items()] for group in given["ours"]
    ]
    after: Mapping[str, str] = given.get("after", {})
    looks = [f"echo; echo == {shlex.quote(path)}; cat {shlex.quote(path)} 2>/dev/null || echo gone" for path in after]
    left = [
        rf"\n== {re.escape(path)}\n" + (r"gone\n" if pattern == "-" else rf"(?-s:{pattern})(?:\n== |\Z)")
        for path, pattern in after.items()
    ]
    return Task(
        given["question"],
        make,
        [line.strip() for line in given["shell"]],
        [call for group in groups for call in group],
        given.get("known", []),
        "; ".join(looks) or "true",
        left,
        [group[0] if len(group) == 1 else together(group) for group in groups],
    )


def together(group: list[Call]) -> Call:
    return "call_tools", {"calls": [{name: arguments} for name, arguments in group]}


@click.command(help=__doc__)
@click.option("--only", multiple=True, metavar="PART")
@click.option("--show", is_flag=True, help="Each call with its answer, too.")
def main(only: tuple[str, ...], show: bool) -> None:
    if shutil.which("rg") is None:
        raise SystemExit("The shell needs ripgrep, as `rg` on the path.")
    data = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
    run("mcp-fs", [told(one) for one in data["task"]], only, show)


if __name__ == "__main__":
    main()
