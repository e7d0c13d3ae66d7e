"""What is said of a call for several entries that fails for one of them."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager

from mcp_batteries.errors import Problem

__all__ = ["all_or_none", "describe_next_failure"]

# What the failure of a single change says at its end.
_NOTHING_DONE = re.compile(r"; nothing (?:was|is) [^.;]+\.$")


@contextmanager
def all_or_none(count: int, verb: str) -> Generator[None]:
    """Say of a failure that nothing was done, before anything is.

    Args:
        count: of what the call names; of a single one it goes without saying.
        verb: what was to be done, such as `deleted`.
    """
    try:
        yield
    except Problem as problem:
        if count == 1 or "nothing was" in problem.failure:
            raise
        failure = f"{problem.failure.removesuffix('.')}; nothing was {verb}."
        raise problem.reword(failure, problem.fix) from problem


def describe_next_failure(done: str, failure: Problem) -> str:
    """Say that some were done and the next was not. That nothing was done is true of the next one alone.

    Args:
        done: such as `2 of 5 were moved: NAMES.`
    """
    return f"{done} The next was not: {_NOTHING_DONE.sub('.', failure.failure)}"
