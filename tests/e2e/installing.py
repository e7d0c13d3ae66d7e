"""The project as people install it: uv as they have it, an environment without ours, wheels of every member."""

import os
import shlex
import shutil
import sqlite3
import subprocess
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from mcp_batteries.testing.wire import REVISIONS, StdioWire, WireClosed
from tools.members import Member, members

ROOT = Path(__file__).parents[2]
SERVERS = members(ROOT)
# `uv run` names itself in UV; started otherwise, it is on the path, as the README asks.
UV = os.environ.get("UV") or shutil.which("uv") or "uv"


def clean_environment(server: Member | None = None) -> dict[str, str]:
    """Ours without the environment these tests run in; with examples of the variables that `server` asks for."""
    hidden = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE", "UV_PROJECT", "COVERAGE", "MCP_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    return kept | {asked.variable: asked.example for asked in (server.variables if server else ()) if asked.variable}


def run(*command: str | Path, cwd: Path | None = None) -> str:
    """What a command prints; its failure shows everything it said."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=clean_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
    )
    if done.returncode:
        raise AssertionError(f"{command} ended with {done.returncode}:\n{done.stderr.decode(errors='replace')}")
    return done.stdout.decode()


def data(folder: Path) -> None:
    """Fill `folder` with what a server can be shown: a text file and databases."""
    folder.mkdir(exist_ok=True)
    (folder / "notes.txt").write_text("one\n", "utf-8")
    for name in ("app.db", "other.db", "shop.db", "blog.db"):
        with closing(sqlite3.connect(folder / name)) as database:
            database.execute("CREATE TABLE IF NOT EXISTS notes (text)")


def arguments(server: Member, folder: Path) -> list[str]:
    """The plain arguments that `server` asks for, from a folder that `data` filled."""
    real = {"directory": str(folder), "file": str(folder / "app.db")}
    return [real.get(asked.kind, asked.example) for asked in server.plain]


async def answers(
    command: Sequence[str], server: Member | None = None, *, cwd: Path | None = None, revisions: Sequence[str] = ()
) -> None:
    """`command` shakes hands in the oldest and the newest way (or as `revisions` say) and has tools.

    Raises:
        AssertionError: it ended, with what it said.
    """
    for revision in revisions or (REVISIONS[0], REVISIONS[-1]):
        wire = StdioWire(command, revision=revision, env=clean_environment(server), cwd=cwd and str(cwd))
        async with wire:
            try:
                await wire.open()
            except WireClosed:
                raise AssertionError(f"`{shlex.join(command)}` ended: {wire.stderr}") from None
            assert (await wire.request("tools/list"))["tools"]
