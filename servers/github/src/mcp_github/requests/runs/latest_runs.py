"""Which runs of Actions for a commit count: the last of each workflow for the same event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["NEEDS_APPROVAL", "WorkflowKey", "select_latest_runs", "workflow_key"]

# What a run comes to that nobody has approved.
NEEDS_APPROVAL = "action_required"

# A workflow and the event that a run of it is for.
WorkflowKey = tuple[Any, Any]


def workflow_key(run: Mapping[str, Any]) -> WorkflowKey:
    """Return what a run has in common with those that it replaces."""
    return run.get("workflow_id") or run.get("path"), run.get("event")


def select_latest_runs(runs: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the run of each workflow and event that began last, in the order of `runs`.

    Args:
        runs: of one commit, the one that was created last first.
    """
    latest: dict[WorkflowKey, Mapping[str, Any]] = {}
    for run in runs:
        key = workflow_key(run)
        latest[key] = max(latest.get(key, run), run, key=_started_at)
    return [run for run in runs if latest[workflow_key(run)] is run]


def _started_at(run: Mapping[str, Any]) -> str:
    """Return when the last attempt of a run began."""
    return str(run.get("run_started_at") or run.get("created_at") or "")
