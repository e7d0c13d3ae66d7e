"""From a change of a repository to the notice of it: of what git did from its end, of an edit from its beginning.

    python tests/benchmarks/git_notices.py [--rounds 20] [--files 200]

One client follows each resource of the repository by itself, and then all of them.
"""

import json
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import click

sys.path[:0] = [str(Path(__file__).parents[1])]

from driver import LEGACY, Server  # noqa: E402
from notices import follow, quiet  # noqa: E402

from git_server.made import Made  # noqa: E402

# What is done, and what is followed that it changes.
ACTS = {"edit": "status", "commit": "head", "branch": "branches", "checkout": "head"}
KINDS = ("status", "head", "branches", "log", "diff", "stash")


def act(made: Made, what: str, number: int) -> float:
    """Do it; the time from which a client waits."""
    file = made.path / "d00/f000.txt"
    if what == "edit":
        text = "0\n" if file.read_text("ascii") != "0\n" else "an edit\n"
        begun = time.perf_counter()
        file.write_text(text, "ascii")
        return begun
    if what == "commit":
        made.git("commit", "--quiet", "--allow-empty", "--message", f"number {number}")
    elif what == "branch":
        made.git("branch", f"{what}-{number}-{time.time_ns()}")
    else:
        is_main = made.git("branch", "--show-current") == "main\n"
        made.git("switch", "--quiet", "topic" if is_main else "main")
    return time.perf_counter()


def measured(made: Made, what: str, kinds: tuple[str, ...], rounds: int) -> list[float]:
    """Milliseconds to the notice of what the act changes."""
    awaited = f"git://app/{ACTS[what]}"
    found: list[float] = []
    with Server([str(Path(sys.executable).parent / "mcp-git"), str(made.path)], LEGACY) as server:
        server.open()
        follow(server, LEGACY, [f"git://app/{kind}" for kind in kinds])
        quiet(server, 1.0)
        for number in range(rounds + 2):
            begun = act(made, what, number)
            while True:
                line = server.line(5)
                if b"resources/updated" in line and json.loads(line)["params"]["uri"] == awaited:
                    break
            if number >= 2:  # The first ones warm up.
                found.append((time.perf_counter() - begun) * 1000)
            quiet(server, 0.4)
    return sorted(found)


@click.command()
@click.option("--rounds", default=20)
@click.option("--files", default=200)
def main(rounds: int, files: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        made = Made(Path(folder) / "app")
        made.commit("first", {f"d{number % 20:02}/f{number:03}.txt": f"{number}\n" for number in range(files)})
        made.git("branch", "topic")
        print(f"{'':10} {'alone: p50':>12} {'p90':>6} {'max':>6} {'all: p50':>12} {'p90':>6} {'max':>6}")
        for what, kind in ACTS.items():
            rows = [measured(made, what, kinds, rounds) for kinds in ((kind,), KINDS)]
            shown = [f"{median(row):12.1f} {row[int(len(row) * 0.9)]:6.1f} {row[-1]:6.1f}" for row in rows]
            print(f"{what:10} {' '.join(shown)}", flush=True)


if __name__ == "__main__":
    main()
