"""Which workflow run tells why a pull request is not green."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from mcp_batteries.errors import NotFound
from mcp_github.client.api import Api
from mcp_github.listing.projections import pick
from mcp_github.policy import Repo
from mcp_github.requests.runs.failure_causes import FAILURES
from mcp_github.requests.runs.latest_runs import NEEDS_APPROVAL, select_latest_runs

__all__ = ["find_run_of_pull"]

_MAX_RUNS = 100
_MAX_NAMED = 5


async def find_run_of_pull(api: Api, repo: Repo, number: int) -> tuple[int, str | None]:
    """Return the run of a pull request's head that failed last, and which others failed.

    Where none failed, it is the last of those that wait for an approval, of those that go on, or of all. A run that a
    later one of the same workflow replaces does not count.

    Raises:
        NotFound: no workflow ran.
    """
    description = f"pull request #{number} of `{repo.full_name}`"
    hint = f"If #{number} is an issue, it has no runs."
    pull = await api.get(f"{repo.path}/pulls/{number}", description, internal=True, hint=hint)
    params = {"head_sha": str(pick(pull.data, "head.sha")), "per_page": _MAX_RUNS}
    response = await api.get(f"{repo.path}/actions/runs", f"the runs of {description}", params, repo=repo)
    runs = cast("list[dict[str, Any]]", response.data["workflow_runs"])
    if not runs:
        raise NotFound(
            f"No workflow of Actions ran for {description}.", "`list_checks` has the checks of other services, too."
        )
    latest_runs = select_latest_runs(runs)
    failed = [run for run in latest_runs if run.get("conclusion") in FAILURES]
    if not failed:
        total = int(response.data.get("total_count") or 0)
        which = f"{len(latest_runs)} runs"
        if len(latest_runs) < len(runs):
            which += " that no later one replaces"
        if total > len(runs):
            which += f", of the last {len(runs)} of {total:,},"
        waiting = [run for run in latest_runs if NEEDS_APPROVAL in (run.get("status"), run.get("conclusion"))]
        if waiting:
            return int(waiting[0]["id"]), f"None of {which} failed; {len(waiting)} of them wait for an approval."
        going_on = [run for run in latest_runs if run.get("status") != "completed"]
        if going_on:
            return int(going_on[0]["id"]), f"None of {which} failed so far; {len(going_on)} of them go on."
        return int(latest_runs[0]["id"]), f"None of {which} failed; this is the last."
    return int(failed[0]["id"]), _name_others(failed[1:])


def _name_others(runs: Sequence[Mapping[str, Any]]) -> str | None:
    """Return which other runs failed; None if none did."""
    if not runs:
        return None
    names = [f"{run.get('name')} (run_id {run['id']})" for run in runs[:_MAX_NAMED]]
    if len(runs) > _MAX_NAMED:
        names.append(f"{len(runs) - _MAX_NAMED} more")
    return f"Failed too: {', '.join(names)}."
