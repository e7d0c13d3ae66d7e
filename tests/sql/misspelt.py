"""Statements with one name after another misspelt: an answer has to tell the name that was meant."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

__all__ = ["misspelt"]

_NAME = re.compile(r"<(\w+)>")


def misspelt(statement: str, seed: int) -> Iterator[tuple[str, str]]:
    """For each name between `<` and `>`: the statement with a letter of that one wrong, and the name."""
    chance = random.Random(f"{seed} {statement}")
    for wrong in _NAME.finditer(statement):
        before, behind = statement[: wrong.start()], statement[wrong.end() :]
        yield _NAME.sub(r"\1", before) + _slip(wrong[1], chance) + _NAME.sub(r"\1", behind), wrong[1]


def _slip(name: str, chance: random.Random) -> str:
    """`name` with two letters exchanged, one left out, one doubled or one that is another."""
    while True:
        at = chance.randrange(1, len(name) - 1)
        slips = [
            name[:at] + name[at + 1] + name[at] + name[at + 2 :],
            name[:at] + name[at + 1 :],
            name[:at] + name[at] + name[at:],
            name[:at] + chance.choice("aeiortn") + name[at + 1 :],
        ]
        if (made := chance.choice(slips)) != name:
            return made
