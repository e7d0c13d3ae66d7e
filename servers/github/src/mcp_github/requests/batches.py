"""Makes the same change of several things, each as far as GitHub does, within the time of one call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

import anyio

from mcp_batteries.errors import Problem, Unavailable
from mcp_batteries.progress import report_progress
from mcp_github.call_context import current_call
from mcp_github.client.api import Api
from mcp_github.client.rate_limits import MAX_TURN_SECONDS

__all__ = ["MAX_BATCH_SECONDS", "NOT_TRIED", "apply_to_each", "tabulate_remarkable"]

# GitHub asks for a second between two writes, and a call may make 100 and more.
MAX_BATCH_SECONDS = 300
# How the result of those begins that GitHub was not asked to change.
NOT_TRIED = "not tried"
# So many in a row that fail for the same reason show that the others would, too.
_MAX_SAME_FAILURES = 3
_Item = TypeVar("_Item")


async def apply_to_each(
    api: Api,
    items: Sequence[_Item],
    apply: Callable[[_Item], Awaitable[str]],
    name: Callable[[_Item], str],
) -> dict[_Item, str]:
    """Return what became of each, in words; what fails for all of them ends it.

    So does the time limit of the call, before it is over: a call that is cancelled could not say what it changed.

    Args:
        apply: changes one, and returns what is to be said of it.
        name: what it is called in messages.
    """
    results: dict[_Item, str] = {}
    failures: list[str] = []
    reason = ""
    call = current_call()
    for item in items:
        remaining = anyio.current_effective_deadline() - anyio.current_time()
        if results and remaining < api.timeout + MAX_TURN_SECONDS:
            reason = ", as too little time is left"
            break
        report_progress(len(results), len(items), name(item))
        notes_before = len(call.notes)
        # Each has the time of a call.
        call.github_seconds = 0.0
        try:
            result = await apply(item)
        except Problem as problem:
            results[item] = f"failed: {problem}"
            failures.append(str(problem).replace(name(item), ""))
            if _fails_for_all(problem, failures):
                break
            continue
        failures.clear()
        results[item] = " ".join([result, *call.notes[notes_before:]])
        del call.notes[notes_before:]
    return results | {item: f"{NOT_TRIED}{reason}" for item in items if item not in results}


def tabulate_remarkable(column: str, results: Mapping[Any, str], usual: str) -> dict[str, Any]:
    """Return the table of those whose result is not the `usual` one, which the answer counts; empty if there are none.

    Args:
        column: what the keys of `results` are.
    """
    rows = [[key, result] for key, result in results.items() if result != usual]
    if not rows:
        return {}
    return {"columns": [column, "result"], "rows": rows}


def _fails_for_all(problem: Problem, failures: Sequence[str]) -> bool:
    """Return whether the others need not be tried after `problem`, the last of `failures` in a row."""
    if isinstance(problem, Unavailable) and problem.retry_after is not None:
        return True
    last = failures[-_MAX_SAME_FAILURES:]
    return len(last) == _MAX_SAME_FAILURES and len(set(last)) == 1
