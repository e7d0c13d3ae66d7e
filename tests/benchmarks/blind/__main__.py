"""Give an agent that has not seen the servers tasks and one way to do them; note what it takes.

    cd tests/benchmarks
    python -m blind begin SESSION GROUP tools|shell --log LOG [--mount]    # GROUP: see `begin --help`
    python -m blind ask SESSION next | tools | call TOOL ARGUMENTS | sh COMMAND | answer TEXT | end
    python -m blind table LOG...
    python -m blind check GROUP    # whether the verifiers accept right ends and refuse wrong ones

The agent is told the second line alone, and that nothing else may be used. Two runs a side show how much is chance.
"""

import subprocess
import sys
import time
from pathlib import Path

import click

BENCHMARKS = Path(__file__).parents[1]
sys.path[:0] = [str(BENCHMARKS), str(BENCHMARKS.parent)]

from blind import table  # noqa: E402
from blind.door import Door, ask  # noqa: E402
from blind.ends import check  # noqa: E402
from blind.task import GROUPS, OWN_GROUPS  # noqa: E402

_SECONDS_TO_START = 30
_PATH = click.Path(path_type=Path)


@click.group()
def main() -> None:
    """Measure what tasks take an agent."""


@main.command()
@click.argument("session", type=_PATH)
@click.argument("group", type=click.Choice(GROUPS))
@click.argument("side", type=click.Choice(["tools", "shell"]))
@click.option("--log", type=_PATH, required=True)
@click.option("--option", "options", multiple=True, help="An argument that every server gets; repeatable.")
@click.option("--mount", is_flag=True, help="All servers of a task in one process, as `mcp-batteries` has them.")
@click.option("--wait", is_flag=True, hidden=True)
def begin(session: Path, group: str, side: str, log: Path, options: tuple[str, ...], mount: bool, wait: bool) -> None:
    """Open the door of a new session."""
    if wait:
        Door(group, side, session, log.resolve(), options, mount).serve(session / "door")
        return
    session.mkdir(parents=True)
    command = [sys.executable, "-m", "blind", "begin", str(session.resolve()), group, side, "--log", str(log.resolve())]
    command += [f"--option={option}" for option in options]
    if mount:
        command.append("--mount")
    nothing = subprocess.DEVNULL
    with (session / "trouble").open("w") as trouble:
        subprocess.Popen(
            [*command, "--wait"], cwd=BENCHMARKS, stdin=nothing, stdout=nothing, stderr=trouble, start_new_session=True
        )
    until = time.monotonic() + _SECONDS_TO_START
    while not (session / "door").exists() and time.monotonic() < until:
        time.sleep(0.05)
    click.echo(f"python -m blind ask {session} next")


@main.command("ask", context_settings={"ignore_unknown_options": True})
@click.argument("session", type=_PATH)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def ask_door(session: Path, words: tuple[str, ...]) -> None:
    """Send the door one command, and print its answer; a word `-` is what stands on the input."""
    click.echo(ask(session / "door", [sys.stdin.read() if word == "-" else word for word in words]))


@main.command("table")
@click.argument("logs", nargs=-1, type=_PATH, required=True)
def show_table(logs: tuple[Path, ...]) -> None:
    """Print what the logs say."""
    table.show(logs)


@main.command("check")
@click.argument("group", type=click.Choice(OWN_GROUPS))
def check_verifiers(group: str) -> None:
    """Try the verifiers of a group with right and with wrong ends."""
    faults = list(check(group))
    for fault in faults:
        click.echo(fault)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
