"""Actions: runs, jobs and their logs, as tools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from mcp_batteries.server.declare import tool
from mcp_github.client.polling import LONGEST, Wait
from mcp_github.models import Done, Listing, Record, Text
from mcp_github.policy import Policy
from mcp_github.requests.automation.artifacts import Artifacts
from mcp_github.requests.automation.workflow_runs import Actions, Kind, RunAction
from mcp_github.tools.arguments import (
    Cursor,
    Fields,
    Limit,
    Number,
    OptionalNumber,
    Ref,
    RepoName,
    Waiting,
    one_of,
    refuse_beside,
)

__all__ = ["ActionTools"]


_states = AfterValidator(
    one_of(
        "completed", "action_required", "cancelled", "failure", "neutral", "skipped", "stale", "success", "timed_out",
        "in_progress", "queued", "requested", "waiting", "pending",
    )
)  # fmt: skip


@dataclass(frozen=True)
class ActionTools:
    policy: Policy
    actions: Actions
    artifacts: Artifacts

    @tool("List runs, jobs, workflows or artifacts", toolset="actions", open_world=True)
    async def list_actions(
        self,
        repo: RepoName,
        kind: Kind = "runs",
        run_id: OptionalNumber = None,
        workflow: Annotated[str | None, Field(description="File name or id")] = None,
        branch: Annotated[str | None, Field(description="Runs of it")] = None,
        status: Annotated[str | None, _states, Field(description="Of runs: failure, success, in_progress ...")] = None,
        event: Annotated[str | None, Field(description="Of runs, such as push")] = None,
        fields: Fields = None,
        limit: Limit = 20,
        cursor: Cursor = None,
    ) -> Listing:
        """List workflow runs, newest first, or the jobs of one, workflows or artifacts (`kind`).

        One run with its jobs: `get_run`.
        """
        if kind == "runs":
            refuse_beside("kind=runs: `get_run` shows one", run_id=run_id)
        else:
            refuse_beside(f"kind={kind}", workflow=workflow, branch=branch, status=status, event=event)
        params = {"branch": branch, "status": status, "event": event}
        name = self.policy.workflow(workflow) if workflow else None
        return await self.actions.list(
            self.policy.repo(repo), kind, run_id=run_id, workflow=name, params=params, fields=fields, limit=limit,
            cursor=cursor,
        )  # fmt: skip

    @tool("Get a run", toolset="actions", open_world=True, seconds=LONGEST + 120)
    async def get_run(self, repo: RepoName, run_id: Number, wait: Waiting = None) -> Record:
        """Get a workflow run with its jobs and the steps that failed; with `wait`, why, from their logs.

        Whole logs: `read_job_log`.
        """
        return await self.actions.get(self.policy.repo(repo), run_id, None if wait is None else Wait(wait))

    @tool("Read a job's log", toolset="actions", open_world=True)
    async def read_job_log(
        self,
        repo: RepoName,
        job_id: OptionalNumber = None,
        run_id: OptionalNumber = None,
        pattern: Annotated[str | None, Field(description="Lines with this")] = None,
        start_line: Annotated[int | None, Field(ge=1)] = None,
    ) -> Text:
        """Read a job's log: its last error or end, or from `start_line` on; of a run, those of all failed jobs.

        Only states: `get_run`.
        """
        where = self.policy.repo(repo)
        return await self.actions.log(where, job_id=job_id, run_id=run_id, start_line=start_line, pattern=pattern)

    @tool("Get minutes used", toolset="actions", open_world=True)
    async def get_usage(
        self,
        repo: RepoName,
        run_id: OptionalNumber = None,
        workflow: Annotated[str | None, Field(description="File or id")] = None,
    ) -> Record:
        """Get the billable minutes of one run, or of one workflow this month.

        None if public. How long: `get_run`.
        """
        name = self.policy.workflow(workflow) if workflow else None
        return await self.actions.usage(self.policy.repo(repo), run_id, name)

    @tool("Read an artifact", toolset="actions", open_world=True)
    async def read_artifact(
        self,
        repo: RepoName,
        artifact: Number,
        path: Annotated[str | None, Field(description="In the artifact")] = None,
        pattern: Annotated[str | None, Field(description="Lines with this")] = None,
        start_line: Number = 1,
    ) -> Text:
        """List an artifact's files, or read the one at `path` in pages. Logs: `read_job_log`."""
        where, inside = self.policy.repo(repo), self.policy.file(path) if path else None
        return await self.artifacts.read(where, artifact, inside, start_line=start_line, pattern=pattern)

    @tool("Run a workflow", toolset="actions", gate="runs", effect="write", open_world=True)
    async def run_workflow(
        self,
        repo: RepoName,
        workflow: Annotated[str, Field(description="File name or id")],
        ref: Ref,
        inputs: Annotated[dict[str, Any], Field(description="As the workflow declares them")] = {},  # noqa: B006
    ) -> Done:
        """Start a workflow that allows being started by hand. The run appears in `list_actions`."""
        where, policy = self.policy.write_repo(repo, "runs"), self.policy
        return await self.actions.run(where, policy.workflow(workflow), policy.ref(ref), inputs)

    @tool("Rerun or cancel", toolset="actions", gate="runs", effect="destroy", open_world=True)
    async def edit_run(self, repo: RepoName, run_id: Number, action: RunAction) -> Done:
        """Rerun a workflow run or what failed in it, or cancel it, which loses its work. New: `run_workflow`."""
        return await self.actions.act(self.policy.write_repo(repo, "runs"), run_id, action)

    @tool("Delete logs", toolset="actions", gate="delete", effect="destroy", open_world=True)
    async def delete_run_logs(self, repo: RepoName, run_id: Number) -> Done:
        """Delete the logs of a run, for good; its result stays. To read them first: `read_job_log`."""
        return await self.actions.delete_log(self.policy.write_repo(repo, "delete"), run_id)
