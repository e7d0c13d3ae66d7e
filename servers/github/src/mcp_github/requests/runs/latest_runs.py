"""Which runs of Actions for a commit count: the last of each workflow for the same event and branch."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["NEEDS_APPROVAL", "WorkflowKey", "select_latest_runs", "workflow_key"]

# What a run comes to that nobody has approved.
NEEDS_APPROVAL = "action_required"

# What a run has in common with those that it replaces: the workflow, the event and the branch.
WorkflowKey = tuple[Any, ...]

# Events that are about a commit on a branch. Others are about an input, an issue or another run, so each run counts.
_EVENTS_OF_COMMIT = re.compile(r"push|pull_request.*|merge_group|schedule")


def workflow_key(run: Mapping[str, Any]) -> WorkflowKey:
    """Return what a run has in common with those that it replaces, and with no other."""
    event = str(run.get("event"))
    workflow = run.get("workflow_id") or run.get("path")
    if _EVENTS_OF_COMMIT.fullmatch(event):
        return workflow, event, run.get("head_branch")
    return workflow, event, run.get("head_branch"), run.get("id")


def select_latest_runs(runs: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return those runs that no other replaces, which began later, in the order of `runs`.

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
