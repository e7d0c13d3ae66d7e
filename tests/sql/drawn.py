"""Statements drawn by seeds, for proofs of what becomes of them."""

from __future__ import annotations

import random
from collections.abc import Sequence

__all__ = ["drawn"]


def drawn(chance: random.Random, rows: Sequence[str], shapes: Sequence[str], tables: Sequence[str]) -> list[str]:
    """One to four of them: `{w}` in one stands for a new name, `{n}` for a small number, `{t}` for one of `tables`."""
    parts = [chance.choice(rows if chance.random() < 0.5 else shapes) for _ in range(chance.choice([1, 1, 2, 3, 4]))]
    return [
        part.replace("{w}", f"{chance.choice('klm')}{place}")
        .replace("{n}", str(chance.randint(1, 4)))
        .replace("{t}", chance.choice(tables))
        for place, part in enumerate(parts)
    ]
