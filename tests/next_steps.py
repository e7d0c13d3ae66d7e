"""The next steps that send a caller round again: a table of each package has them all, and a test walks each.

A package's table is `STEPS` in `next_steps.py` of its tests. What sends nobody round again, though it has the words, is
in `NO_STEPS` there.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

__all__ = ["Step", "check_table", "check_walk", "walks"]

_ROOT = Path(__file__).parents[1]
# How a next step sends somebody round again.
_AGAIN = re.compile(
    r"\b(?:again|Ask for less|Ask them|Ask for a token|Close some|Send fewer|Unsubscribe|[Cc]all without|Send `|"
    r"Send one of|Send that|Send the `|Leave the header)"
)


class Step(NamedTuple):
    """One next step.

    Attributes:
        text: as the source has it, each value in it as `{}`.
        helps_when: the state in which it leads further.
        walk: the test that takes it; empty where only a person at this machine can.
    """

    text: str
    helps_when: str
    walk: str


def check_table(source: Path, steps: Sequence[Step], no_steps: Collection[str]) -> None:
    """Check that a table has every sentence of `source` that sends somebody round again, and no others."""
    said = set(_sentences(source)) - set(no_steps)
    listed = {step.text for step in steps}
    assert said == listed, f"add to next_steps.py: {said - listed}; remove from it: {listed - said}"
    assert all(step.helps_when for step in steps)


def check_walk(walk: str) -> None:
    """Check that a walk, `path`, `path.py` or `path.py::name`, is there."""
    path, _, name = walk.rpartition("::")
    if not path:
        assert (_ROOT / walk).exists(), walk
    else:
        assert f"def {name}(" in (_ROOT / path).read_text("utf-8"), walk


def walks(steps: Sequence[Step]) -> list[str]:
    """Return the walks of a table, each once."""
    return sorted({step.walk for step in steps if step.walk})


def _sentences(source: Path) -> Iterator[str]:
    """Return every text of the source that sends somebody round again, each value in it as `{}`."""
    for path in source.rglob("*.py"):
        for text in _texts_below(ast.parse(path.read_text("utf-8"))):
            if _AGAIN.search(text):
                yield text


def _texts_below(root: ast.AST) -> Iterator[str]:
    """Return every text of some code but docstrings, those in other texts' values too."""
    remaining = [root]
    while remaining:
        node = remaining.pop()
        match node:
            case ast.Expr(value=ast.Constant()):
                continue
            case ast.Constant(value=str(text)):
                yield text
            case ast.JoinedStr(values=parts):
                yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in parts)
                remaining += [part for part in parts if not isinstance(part, ast.Constant)]
            case _:
                remaining += ast.iter_child_nodes(node)
