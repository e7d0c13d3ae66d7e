"""Actions: runs, jobs and their logs, as tools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from mcp_batteries.errors import Invalid
from mcp_batteries.server.declaration.decorators import tool
from mcp_github.client.polling import MAX_WAIT_SECONDS
from mcp_github.listing.pages import PageOptions
from mcp_github.models import Done, Listing, Record, Text
from mcp_github.policy import Policy
from mcp_github.requests.automation.artifacts import Artifacts
from mcp_github.requests.automation.workflow_runs import ActionsKind, RunAction, WorkflowRuns
from mcp_github.tools.arguments import (
    Cursor,
    Fields,
    Limit,
    Number,
    OptionalNumber,
    RefText,
    RepoText,
    Waiting,
    make_poller,
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
    runs: WorkflowRuns
    artifacts: Artifacts

    @tool("List runs, jobs, workflows or artifacts", toolset="actions", open_world=True)
    async def list_actions(
        self,
        repo: RepoText,
        kind: ActionsKind = "runs",
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
        options = PageOptions(fields, limit, cursor)
        if kind != "runs":
            refuse_beside(f"kind={kind}", workflow=workflow, branch=branch, status=status, event=event)
            return await self.runs.list_others(self.policy.repo(repo), kind, run_id, options)
        refuse_beside("kind=runs: `get_run` shows one", run_id=run_id)
        filters = {"branch": branch, "status": status, "event": event}
        trusted_workflow = None
        if workflow:
            trusted_workflow = self.policy.workflow(workflow).path
        return await self.runs.list_runs(self.policy.repo(repo), trusted_workflow, filters, options)

    @tool("Get a run", toolset="actions", open_world=True, seconds=MAX_WAIT_SECONDS + 120)
    async def get_run(self, repo: RepoText, run_id: Number, wait: Waiting = None) -> Record:
        """Get a workflow run with its jobs and the steps that failed; with `wait`, why, from their logs.

        Whole logs: `read_job_log`.
        """
        return await self.runs.get(self.policy.repo(repo), run_id, make_poller(wait))

    @tool("Read a job's log", toolset="actions", open_world=True)
    async def read_job_log(
        self,
        repo: RepoText,
        job_id: OptionalNumber = None,
        run_id: OptionalNumber = None,
        pattern: Annotated[str | None, Field(description="Lines with this")] = None,
        start_line: Annotated[int | None, Field(ge=1)] = None,
    ) -> Text:
        """Read a job's log: its last error or end, or from `start_line` on; of a run, those of all failed jobs.

        Only states: `get_run`.
        """
        trusted_repo = self.policy.repo(repo)
        if job_id is not None:
            return await self.runs.read_job_log(trusted_repo, job_id, start_line=start_line, pattern=pattern)
        if run_id is not None:
            return await self.runs.read_failed_logs(trusted_repo, run_id, start_line=start_line, pattern=pattern)
        raise Invalid("One of `job_id` and `run_id` has to be given.")

    @tool("Get minutes used", toolset="actions", open_world=True)
    async def get_usage(
        self,
        repo: RepoText,
        run_id: OptionalNumber = None,
        workflow: Annotated[str | None, Field(description="File or id")] = None,
    ) -> Record:
        """Get the billable minutes of one run, or of one workflow this month.

        None if public. How long: `get_run`.
        """
        trusted_repo = self.policy.repo(repo)
        if run_id is not None and not workflow:
            return await self.runs.get_run_usage(trusted_repo, run_id)
        if workflow and run_id is None:
            return await self.runs.get_workflow_usage(trusted_repo, self.policy.workflow(workflow).path)
        raise Invalid("One of `run_id` and `workflow` has to be given.")

    @tool("Read an artifact", toolset="actions", open_world=True)
    async def read_artifact(
        self,
        repo: RepoText,
        artifact: Number,
        path: Annotated[str | None, Field(description="In the artifact")] = None,
        pattern: Annotated[str | None, Field(description="Lines with this")] = None,
        start_line: Number = 1,
    ) -> Text:
        """List an artifact's files, or read the one at `path` in pages. Logs: `read_job_log`."""
        trusted_path = None
        if path:
            trusted_path = self.policy.file(path)
        return await self.artifacts.read(
            self.policy.repo(repo), artifact, trusted_path, start_line=start_line, pattern=pattern
        )

    @tool("Run a workflow", toolset="actions", gate="runs", effect="write", open_world=True)
    async def run_workflow(
        self,
        repo: RepoText,
        workflow: Annotated[str, Field(description="File name or id")],
        ref: RefText,
        inputs: Annotated[dict[str, Any], Field(description="As the workflow declares them")] = {},  # noqa: B006
    ) -> Done:
        """Start a workflow that allows being started by hand. The run appears in `list_actions`."""
        trusted_repo = self.policy.write_repo(repo, "runs")
        return await self.runs.start(trusted_repo, self.policy.workflow(workflow).path, self.policy.ref(ref), inputs)

    @tool("Rerun or cancel", toolset="actions", gate="runs", effect="destroy", open_world=True)
    async def edit_run(self, repo: RepoText, run_id: Number, action: RunAction) -> Done:
        """Rerun a workflow run or what failed in it, or cancel it, which loses its work. New: `run_workflow`."""
        return await self.runs.edit(self.policy.write_repo(repo, "runs"), run_id, action)

    @tool("Delete logs", toolset="actions", gate="delete", effect="destroy", open_world=True)
    async def delete_run_logs(self, repo: RepoText, run_id: Number) -> Done:
        """Delete the logs of a run, for good; its result stays. To read them first: `read_job_log`."""
        return await self.runs.delete_logs(self.policy.write_repo(repo, "delete"), run_id)
