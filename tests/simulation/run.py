"""Live through many worlds of replicas, buses and faults, each made by its seed; tell those that broke a promise."""

from __future__ import annotations

import logging
from concurrent.futures import ProcessPoolExecutor

from proofs.tally import Tally
from simulation.world import Broken, simulate

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


def prove(count: int, seed: int) -> Tally:
    """Live through so many worlds, beginning with that of `seed`; one alone comes with its history."""
    failed: list[str] = []
    last = seed + count
    shares = [range(start, min(start + _AT_ONCE, last)) for start in range(seed, last, _AT_ONCE)]
    with ProcessPoolExecutor() as pool:
        for problems in pool.map(_some, shares):
            failed += problems if count == 1 else [problem.splitlines()[0] for problem in problems]
    return Tally.of({"worlds": count}, failed)
