"""Live through many worlds of replicas, buses and faults, each made by its seed; print those that broke a promise.

    uv run python tests/simulation/run.py [--seeds N] [--first SEED] [--jobs N]

One seed that failed, with its history: `--first SEED --seeds 1`.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import click

sys.path[:0] = [str(Path(__file__).parents[1])]

from simulation.world import Broken, simulate  # noqa: E402

_AT_ONCE = 100


def _some(seeds: range) -> list[str]:
    logging.disable(logging.CRITICAL)
    failed: list[str] = []
    for seed in seeds:
        try:
            simulate(seed)
        except Broken as problem:
            failed.append(str(problem))
    return failed


@click.command(help=__doc__)
@click.option("--seeds", type=int, default=100_000, help="How many worlds.")
@click.option("--first", type=int, default=0, help="The first seed.")
@click.option("--jobs", type=int, default=os.cpu_count() or 1, help="Processes at work at once.")
def main(seeds: int, first: int, jobs: int) -> None:
    begun, failed = time.monotonic(), 0
    last = first + seeds
    shares = [range(start, min(start + _AT_ONCE, last)) for start in range(first, last, _AT_ONCE)]
    with ProcessPoolExecutor(jobs) as pool:
        for problems in pool.map(_some, shares):
            failed += len(problems)
            for problem in problems:
                print(problem if seeds == 1 else problem.splitlines()[0], flush=True)
    print(f"{seeds:,} seeds from {first}: {failed} failed, {time.monotonic() - begun:.0f} s")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
