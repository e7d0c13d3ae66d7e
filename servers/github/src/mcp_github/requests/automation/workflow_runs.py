"""Actions: what ran, why it failed, and reruns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from mcp_batteries.clipping import DEFAULT_PAGE_BYTES
from mcp_batteries.errors import Invalid, NotFound, Refused, TooLarge, Unavailable
from mcp_github.client.api import Api, ApiResponse
from mcp_github.client.polling import Poller
from mcp_github.listing.line_window import LineWindow
from mcp_github.listing.pages import ListQuery, PageOptions, fetch_page
from mcp_github.listing.projections import Item, Projection, clip, same_names
from mcp_github.models import Done, Listing, Record, Text
from mcp_github.policy import Ref, Repo, WriteRepo
from mcp_github.requests.automation.failure_log_parser import FailureLogParser
from mcp_github.requests.code.branches import get_default_branch, refuse_workflows, resolve_sha

__all__ = ["ActionsKind", "RunAction", "WorkflowRuns"]

ActionsKind = Literal["workflows", "runs", "jobs", "artifacts"]
RunAction = Literal["rerun", "rerun_failed", "cancel"]

_MAX_LOG_BYTES = 1_000_000_000
_MAX_JOBS = 300
_MAX_CAUSES = 5
_MAX_CAUSE_LOG_BYTES = 200_000_000
# Failed jobs of a run whose logs share an answer.
_MAX_LOGS = 6
_MAX_NAMED_JOBS = 10
_MAX_JOB_IDS = 20
_FAILURES = ("failure", "timed_out")
_ACTION_PATHS: Mapping[RunAction, str] = {"rerun": "rerun", "rerun_failed": "rerun-failed-jobs", "cancel": "cancel"}


def _failed_steps(job: Item) -> list[str]:
    steps = cast("list[Any]", job.get("steps") or [])
    return [f"{step['number']} {step['name']}" for step in steps if step.get("conclusion") == "failure"]


_WORKFLOW = Projection(
    {**same_names("id", "name", "path", "state"), "url": "html_url"}, ("id", "name", "path", "state")
)
_RUN = Projection(
    {
        "run_id": "id",
        **same_names("name", "event", "status", "conclusion", "run_number", "run_attempt", "created_at"),
        "title": clip("display_title", 200),
        "branch": "head_branch",
        "sha": "head_sha",
        "actor": "actor.login",
        "workflow": "path",
        "updated_at": "updated_at",
        "url": "html_url",
    },
    ("run_id", "name", "title", "event", "status", "conclusion", "branch", "actor", "created_at"),
)
_JOB = Projection(
    {
        "job_id": "id",
        **same_names("name", "status", "conclusion", "started_at", "completed_at"),
        "failed_steps": _failed_steps,
        "runner": "runner_name",
        "url": "html_url",
    },
    ("job_id", "name", "status", "conclusion", "failed_steps"),
)
_ARTIFACT = Projection(
    {
        **same_names("id", "name", "expired", "created_at", "expires_at"),
        "bytes": "size_in_bytes",
        "run_id": "workflow_run.id",
        "branch": "workflow_run.head_branch",
    },
    ("id", "name", "bytes", "expired", "created_at", "run_id"),
)


@dataclass(frozen=True)
class _Jobs:
    """The jobs of a run, and how many invisible characters were taken out of them."""

    items: Sequence[dict[str, Any]]
    removed: int

    @property
    def failed(self) -> list[dict[str, Any]]:
        return [job for job in self.items if job.get("conclusion") in _FAILURES]


@dataclass(frozen=True)
class _LogRequest:
    """Which lines of a job's log are wanted, see `LineWindow`."""

    start_line: int | None
    pattern: str | None

    def open_window(self) -> LineWindow:
        return LineWindow(start_line=self.start_line, pattern=self.pattern)


@dataclass(frozen=True)
class WorkflowRuns:
    api: Api

    async def list_runs(
        self, repo: Repo, workflow: str | None, filters: Mapping[str, Any], options: PageOptions
    ) -> Listing:
        """Return a page of the runs, newest first.

        Args:
            filters: as GitHub names them: branch, status, event.
        """
        path = f"{repo.path}/actions/runs"
        if workflow is not None:
            path = f"{repo.path}/actions/workflows/{workflow}/runs"
        query = ListQuery(
            path, f"the runs of `{repo.full_name}`", _RUN, params=filters, repo=repo,
            find_list=lambda data: data["workflow_runs"],
        )  # fmt: skip
        return await fetch_page(self.api, query, options)

    async def list_others(
        self, repo: Repo, kind: Literal["workflows", "jobs", "artifacts"], run_id: int | None, options: PageOptions
    ) -> Listing:
        """Return a page of the workflows of a repository, or of the jobs or artifacts of a run."""
        path = f"{repo.path}/actions/{kind}"
        match kind:
            case "workflows":
                projection = _WORKFLOW
            case "jobs":
                projection = _JOB
                if run_id is None:
                    raise Invalid("Jobs are those of a run.", "Pass `run_id`; kind=runs shows them.")
                path = f"{_run_path(repo, run_id)}/jobs"
            case "artifacts":
                projection = _ARTIFACT
                if run_id is not None:
                    path = f"{_run_path(repo, run_id)}/artifacts"
        query = ListQuery(
            path, f"the {kind} of `{repo.full_name}`", projection, repo=repo, find_list=lambda data: data[kind]
        )
        return await fetch_page(self.api, query, options)

    async def get(self, repo: Repo, run_id: int, poller: Poller | None = None) -> Record:
        """Return one run with its jobs and the steps that failed.

        Args:
            poller: waits until the run has ended; the answer then says why jobs failed, from their logs.
        """
        description = _describe_run(repo, run_id)

        async def fetch() -> ApiResponse:
            return await self.api.get(_run_path(repo, run_id), description, repo=repo)

        if poller is None:
            response = await fetch()
        else:
            response = await poller.poll_until_done(fetch, _describe_progress)
        data = _RUN.to_record(response.data, list(_RUN.getters))
        is_going_on = _describe_progress(response) is not None
        note = None
        if poller is not None and is_going_on:
            note = f"It is still `{data.get('status')}`: call again to wait on."
        removed = response.removed
        try:
            jobs = await self._fetch_jobs(repo, run_id, f"the jobs of {description}")
        except (NotFound, Refused, Unavailable) as problem:
            note = f"Its jobs are missing here: {problem}"
        else:
            removed += jobs.removed
            data["job_columns"] = list(_JOB.default)
            data["jobs"] = [_JOB.to_row(job, _JOB.default) for job in jobs.items]
            if poller is not None and not is_going_on and jobs.failed:
                data["causes"] = [await self._find_cause(repo, job) for job in jobs.failed[:_MAX_CAUSES]]
        return Record(uri=f"{repo.uri}/runs/{run_id}", note=note, removed=removed or None, data=data)

    async def _find_cause(self, repo: Repo, job: Mapping[str, Any]) -> dict[str, Any]:
        """Return why one job failed, as its log has it."""
        job_id = int(job["id"])
        parser = FailureLogParser()
        cause: dict[str, Any] = {"job_id": job_id, "job": job.get("name")}
        try:
            await self.api.download(
                f"{_job_path(repo, job_id)}/logs", f"log of job `{job_id}`", repo=repo,
                max_bytes=_MAX_CAUSE_LOG_BYTES, feed=parser.feed,
            )  # fmt: skip
        except (NotFound, Refused, TooLarge, Unavailable) as problem:
            cause["missing"] = str(problem)
        else:
            cause["log"] = parser.get_cause() or "Its log names no reason: read it with `read_job_log`."
        return cause

    async def _fetch_jobs(self, repo: Repo, run_id: int, description: str) -> _Jobs:
        """Return the jobs of a run, of which a matrix makes 256 at most."""
        params: dict[str, Any] = {"per_page": 100}
        items: list[dict[str, Any]] = []
        removed = 0
        while len(items) < _MAX_JOBS:
            response = await self.api.get(f"{_run_path(repo, run_id)}/jobs", description, params, repo=repo)
            items += response.data["jobs"]
            removed += response.removed
            if not response.next_page:
                break
            params = {**params, **response.next_page}
        return _Jobs(items, removed)

    async def read_job_log(self, repo: Repo, job_id: int, *, start_line: int | None, pattern: str | None) -> Text:
        """Return lines of a job's log: its last error or its end, or from `start_line` on.

        Raises:
            NotFound: the log was deleted.
            Unavailable: the job is still at work.
        """
        description = f"job `{job_id}` of `{repo.full_name}`"
        request = _LogRequest(start_line, pattern)
        return await self._read_log(repo, job_id, description, request, DEFAULT_PAGE_BYTES)

    async def read_failed_logs(self, repo: Repo, run_id: int, *, start_line: int | None, pattern: str | None) -> Text:
        """Return lines of the log of each job of a run that failed; they share an answer.

        Raises:
            NotFound: no job failed, or the only log was deleted.
        """
        description = _describe_run(repo, run_id)
        jobs = await self._fetch_jobs(repo, run_id, description)
        failed = jobs.failed
        request = _LogRequest(start_line, pattern)
        if not failed:
            raise _no_failure(jobs, description)
        if len(failed) == 1:
            (job,) = failed
            return await self._read_log(repo, int(job["id"]), _describe_job(repo, job), request, DEFAULT_PAGE_BYTES)
        if start_line is not None:
            names = _names_of(failed)
            raise Invalid(f"{len(failed)} jobs of {description} failed.", f"Pass the `job_id` of one of them: {names}.")
        max_bytes = DEFAULT_PAGE_BYTES // min(len(failed), _MAX_LOGS)
        logs = [await self._try_log(repo, job, request, max_bytes) for job in failed[:_MAX_LOGS]]
        head = f"{len(failed)} failed jobs of {description}"
        other_ids = [str(job["id"]) for job in failed[_MAX_LOGS : _MAX_LOGS + _MAX_JOB_IDS]]
        if other_ids:
            head += f"; failed too: {', '.join(other_ids)}"
        if len(failed) > _MAX_LOGS + _MAX_JOB_IDS:
            head += " ..."
        return Text(head, "\n\n".join(log.text() for log in logs))

    async def _try_log(self, repo: Repo, job: Mapping[str, Any], request: _LogRequest, max_bytes: int) -> Text:
        """Return lines of the log of one job among others, or why there is none."""
        description = _describe_job(repo, job)
        try:
            return await self._read_log(repo, int(job["id"]), description, request, max_bytes)
        except (NotFound, Refused, TooLarge, Unavailable) as problem:
            return Text(f"the log of {description} is missing", str(problem))

    async def _read_log(self, repo: Repo, job_id: int, description: str, request: _LogRequest, max_bytes: int) -> Text:
        window = request.open_window()
        try:
            await self.api.download(
                f"{_job_path(repo, job_id)}/logs", f"log of {description}", repo=repo, max_bytes=_MAX_LOG_BYTES,
                feed=window.feed,
            )  # fmt: skip
        except NotFound as problem:
            job = await self.api.get(_job_path(repo, job_id), description, internal=True)
            status = job.data.get("status")
            if status != "completed":
                raise Unavailable(
                    f"The {description} is `{status}`; its log comes when it has ended.", "Try again later."
                ) from None
            raise NotFound(problem.failure, "Logs are kept for some weeks; a rerun makes a new one.") from None
        return window.render(f"log of {description}", max_bytes)

    async def get_run_usage(self, repo: Repo, run_id: int) -> Record:
        """Return the minutes that a run took, by the system it ran on."""
        path = f"{_run_path(repo, run_id)}/timing"
        return await self._get_usage(path, f"the minutes of run `{run_id}` of `{repo.full_name}`")

    async def get_workflow_usage(self, repo: Repo, workflow: str) -> Record:
        """Return the minutes that a workflow took in this month, by the system it ran on."""
        path = f"{repo.path}/actions/workflows/{workflow}/timing"
        return await self._get_usage(path, f"the minutes of workflow `{workflow}` of `{repo.full_name}`")

    async def _get_usage(self, path: str, description: str) -> Record:
        usage = (await self.api.get(path, description, internal=True)).data
        minutes: dict[str, float] = {}
        jobs: dict[str, int] = {}
        for system, bill in cast("dict[str, dict[str, Any]]", usage.get("billable") or {}).items():
            minutes[system.lower()] = round(bill["total_ms"] / 60_000, 2)
            if "jobs" in bill:
                jobs[system.lower()] = bill["jobs"]
        data: dict[str, Any] = {}
        if minutes:
            data["billable_minutes"] = minutes
        if jobs:
            data["jobs"] = jobs
        duration = usage.get("run_duration_ms")
        if duration is not None:
            data["lasted_minutes"] = round(duration / 60_000, 2)
        return Record(note="GitHub bills only runners of its own in private repositories.", data=data)

    async def start(self, repo: WriteRepo, workflow: str, ref: Ref, inputs: Mapping[str, Any]) -> Done:
        """Start a workflow as it stands at `ref`."""
        if ref.name != await get_default_branch(self.api, repo):
            await refuse_workflows(self.api, repo, await resolve_sha(self.api, repo, ref))
        body = {"ref": ref.name, "inputs": dict(inputs)}
        description = f"workflow `{workflow}` of `{repo.full_name}`"
        path = f"{repo.path}/actions/workflows/{workflow}/dispatches"
        await self.api.write("POST", path, description, body, repo=repo)
        return Done(done=f"Asked GitHub to run {workflow} on {ref.name}; it appears among the runs in a moment.")

    async def edit(self, repo: WriteRepo, run_id: int, action: RunAction) -> Done:
        """Rerun a run or what failed in it, or cancel it."""
        description = _describe_run(repo, run_id)
        path = _run_path(repo, run_id)
        if action != "cancel":
            run = await self.api.get(path, description, internal=True)
            self.api.policy.require_rerunnable(run.data, description)
        await self.api.write("POST", f"{path}/{_ACTION_PATHS[action]}", description, repo=repo)
        return Done(done=f"Run {run_id}: {action}.", uri=f"{repo.uri}/runs/{run_id}")

    async def delete_logs(self, repo: WriteRepo, run_id: int) -> Done:
        description = f"the logs of run `{run_id}` of `{repo.full_name}`"
        await self.api.write("DELETE", f"{_run_path(repo, run_id)}/logs", description, repo=repo)
        return Done(done=f"Deleted the logs of run {run_id}.")


def _run_path(repo: Repo, run_id: int) -> str:
    return f"{repo.path}/actions/runs/{run_id}"


def _job_path(repo: Repo, job_id: int) -> str:
    return f"{repo.path}/actions/jobs/{job_id}"


def _describe_run(repo: Repo, run_id: int) -> str:
    return f"run `{run_id}` of `{repo.full_name}`"


def _describe_job(repo: Repo, job: Mapping[str, Any]) -> str:
    return f"job `{job['id']}` ({job['name']}) of `{repo.full_name}`"


def _describe_progress(run: ApiResponse, elapsed: float = 0) -> str | None:
    """Return how a run goes on; None once it has ended."""
    status = run.data.get("status")
    if status == "completed":
        return None
    return f"The run is {status}."


def _names_of(jobs: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(f"{job['id']} {job['name']}" for job in jobs[:_MAX_NAMED_JOBS])


def _no_failure(jobs: _Jobs, description: str) -> NotFound:
    unfinished = [job for job in jobs.items if job.get("status") != "completed"]
    state = ""
    if unfinished:
        state = f"; {len(unfinished)} of its {len(jobs.items)} jobs are still at work"
    return NotFound(
        f"No job of {description} failed{state}.", f"Pass `job_id` to read another's log: {_names_of(jobs.items)}."
    )
