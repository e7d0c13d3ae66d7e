"""Actions: what ran, why it failed, and reruns."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, Field

from mcp_batteries.clipping import DEFAULT_PAGE_BYTES
from mcp_batteries.errors import Invalid, NotFound, Refused, TooLarge, Unavailable
from mcp_batteries.server.declaration.decorators import OtherName, tool
from mcp_batteries.server.declaration.trusted import FreeText, trusted
from mcp_github.client.api import Api, ApiResponse
from mcp_github.client.polling import MAX_WAIT_SECONDS
from mcp_github.listing.line_window import LineWindow
from mcp_github.listing.pages import ListQuery, PageOptions, fetch_page, join_notes
from mcp_github.listing.projections import Item, Projection, clip, same_names
from mcp_github.models import Done, Listing, Record, Text
from mcp_github.number_forms import Number, NumberOrDefault, OptionalNumber
from mcp_github.policy import FilePath, Policy, Repo, RunRepo, Workflow
from mcp_github.requests.branches import get_default_branch, refuse_workflows, resolve_sha
from mcp_github.requests.runs.artifacts import read_artifact_file
from mcp_github.requests.runs.failure_causes import (
    FAILURES,
    describe_run_state,
    explain_missing_log,
    find_cause,
    find_failed_step,
    is_same_failure,
    merge_same_causes,
)
from mcp_github.requests.runs.failure_log_parser import FailureLogParser
from mcp_github.requests.runs.runs_of_pull import find_run_of_pull
from mcp_github.tools.arguments import (
    Cursor,
    DeleteRepoName,
    Fields,
    Limit,
    RefName,
    RepoName,
    RunRepoName,
    Waiting,
    choosing,
    one_of,
    refuse_beside,
)

__all__ = [
    "delete_run_logs", "edit_run", "get_run", "get_usage", "list_actions", "read_artifact", "read_job_log",
    "run_workflow",
]  # fmt: skip

ActionsKind = Literal["workflows", "runs", "jobs", "artifacts"]
RunAction = Literal["rerun", "rerun_failed", "cancel"]

_MAX_LOG_BYTES = 1_000_000_000
# Of a log that names the cause: these lines and what stands before the last error.
_EXCERPT_BYTES = 3000
_MAX_JOBS = 300
_MAX_CAUSES = 5
# What says nothing of why a run failed.
_HARMLESS_CONCLUSIONS = ("success", "skipped", "neutral")
# Failed jobs of a run whose logs share an answer.
_MAX_LOGS = 6
_MAX_NAMED_JOBS = 10
_MAX_JOB_IDS = 20
_ACTION_PATHS: Mapping[RunAction, str] = {"rerun": "rerun", "rerun_failed": "rerun-failed-jobs", "cancel": "cancel"}

# Asks which run a workflow's start made.
_RUN_DETAILS = "return_run_details"

_FILE_OR_ID = Field(description="File name or id")
RunStatus = Annotated[
    FreeText | None,
    AfterValidator(
        one_of(
            "completed", "action_required", "cancelled", "failure", "neutral", "skipped", "stale", "success",
            "timed_out", "in_progress", "queued", "requested", "waiting", "pending",
        )
    ),
    Field(description="Of runs: failure, success, in_progress ..."),
]  # fmt: skip


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
    """The jobs of a run.

    Attributes:
        removed: how many invisible characters were taken out of them.
        is_complete: whether there are no others.
    """

    items: Sequence[dict[str, Any]]
    removed: int
    is_complete: bool

    @property
    def failed(self) -> list[dict[str, Any]]:
        return [job for job in self.items if job.get("conclusion") in FAILURES]

    def without_harmless(self) -> _Jobs:
        """Return those jobs that may say why the run failed."""
        items = [job for job in self.items if job.get("conclusion") not in _HARMLESS_CONCLUSIONS]
        return replace(self, items=items)

    def count_harmless(self) -> str:
        """Return how many jobs `without_harmless` leaves out, such as `9 success, 1 skipped`; empty if none."""
        conclusions = Counter(str(job.get("conclusion")) for job in self.items)
        counts = [f"{conclusions[name]} {name}" for name in _HARMLESS_CONCLUSIONS if conclusions[name]]
        return ", ".join(counts)


@dataclass(frozen=True)
class _Log:
    """What an answer shows of a job's log.

    Attributes:
        description: as the head of `text` begins.
        cause: the lines that say why the job failed, each with its number; empty if nothing says it.
    """

    job_id: int
    description: str
    text: Text
    cause: str = ""


@dataclass(frozen=True)
class _LogRequest:
    """Which lines of a job's log are wanted, see `LineWindow`."""

    start_line: int | None
    pattern: str | None

    @property
    def is_for_failure(self) -> bool:
        """Whether no line was named to begin at, so that those come first that say why it failed."""
        return self.start_line is None

    def select_cause(self, parser: FailureLogParser) -> str:
        """Return those of the wanted lines that say why the job failed, each with its number."""
        cause = parser.get_cause()
        if not self.is_for_failure or parser.is_weak:
            return ""
        if not self.pattern:
            return cause
        lines = [line for line in cause.split("\n") if self.pattern in line.partition(": ")[2]]
        return "\n".join(lines)

    def open_window(self) -> LineWindow:
        return LineWindow(start_line=self.start_line, pattern=self.pattern)


@tool(
    "List runs, jobs, workflows or artifacts", toolset="actions", open_world=True,
    also=(
        OtherName("list_workflow_runs", {"kind": "runs"}), OtherName("list_runs", {"kind": "runs"}),
        OtherName("list_workflows", {"kind": "workflows"}), OtherName("list_jobs", {"kind": "jobs"}),
        OtherName("list_workflow_jobs", {"kind": "jobs"}), OtherName("list_artifacts", {"kind": "artifacts"}),
    ),
)  # fmt: skip
async def list_actions(
    api: Api,
    *,
    repo: RepoName,
    kind: ActionsKind = "runs",
    run_id: OptionalNumber = None,
    workflow: Annotated[Workflow | None, trusted(Policy.workflow), _FILE_OR_ID] = None,
    branch: Annotated[FreeText | None, Field(description="Runs of it")] = None,
    status: RunStatus = None,
    event: Annotated[FreeText | None, Field(description="Of runs, such as push")] = None,
    fields: Annotated[Fields, choosing(_RUN, "runs")] = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Listing:
    """List workflow runs, newest first, or the jobs of one, workflows or artifacts (`kind`).

    One run with its jobs: `get_run`.
    """
    if kind == "runs":
        refuse_beside("kind=runs: `get_run` shows one", run_id=run_id)
        query = _query_runs(repo, workflow, {"branch": branch, "status": status, "event": event})
    else:
        refuse_beside(f"kind={kind}", workflow=workflow, branch=branch, status=status, event=event)
        query = _query_others(repo, kind, run_id)
    return await fetch_page(api, query, PageOptions(fields, limit, cursor))


@tool(
    "Get a run", toolset="actions", open_world=True, seconds=MAX_WAIT_SECONDS + 120, also=("get_workflow_run",)
)  # fmt: skip
async def get_run(
    api: Api, *, repo: RepoName, run_id: OptionalNumber = None, number: OptionalNumber = None, wait: Waiting = None
) -> Record:
    """Get a workflow run, or the failed one of pull request `number`: its jobs, or if some failed those and `causes`.

    `wait`: for its end. Whole logs: `read_job_log`.
    """
    other_note = None
    if number is not None:
        refuse_beside("`number`", run_id=run_id)
        run_id, other_note = await find_run_of_pull(api, repo, number)
    if run_id is None:
        raise Invalid("One of `run_id` and `number` has to be given.")
    description = _describe_run(repo, run_id)

    async def fetch() -> ApiResponse:
        return await api.get(_run_path(repo, run_id), description, repo=repo)

    if wait is None:
        response = await fetch()
    else:
        response = await wait.poll_until_done(fetch, _describe_progress)
    data = _RUN.to_record(response.data, list(_RUN.getters))
    is_going_on = _describe_progress(response) is not None
    note = join_notes(await describe_run_state(api, repo, response.data), other_note)
    if wait is not None and is_going_on and note is None:
        note = f"It is still `{data.get('status')}`: call again to wait on."
    removed = response.removed
    try:
        jobs = await _fetch_jobs(api, repo, run_id, f"the jobs of {description}")
    except (NotFound, Refused, Unavailable) as problem:
        note = join_notes(note, f"Its jobs are missing here: {problem}")
    else:
        removed += jobs.removed
        if is_going_on or api.is_for_resources or not jobs.failed:
            data |= _to_table(jobs)
            note = join_notes(note, _describe_missing_jobs(jobs))
        else:
            data |= _to_table(jobs.without_harmless())
            data["causes"] = await _find_causes(api, repo, jobs.failed)
            note = join_notes(note, _describe_missing_jobs(jobs), _describe_missing_causes(jobs))
    return Record(uri=f"{repo.uri}/runs/{run_id}", note=note, removed=removed or None, data=data)


@tool("Read a job's log", toolset="actions", open_world=True, also=("get_job_logs",))
async def read_job_log(
    api: Api,
    *,
    repo: RepoName,
    job_id: OptionalNumber = None,
    run_id: OptionalNumber = None,
    pattern: Annotated[FreeText | None, Field(description="Lines with it, failures first")] = None,
    start_line: Annotated[int | None, Field(ge=1)] = None,
) -> Text:
    """Read a job's log: its last error or end, or from `start_line` on; of a run, those of all failed jobs.

    Only states: `get_run`.
    """
    request = _LogRequest(start_line, pattern)
    if job_id is not None:
        description = f"job `{job_id}` of `{repo.full_name}`"
        log = await _read_log(api, repo, {"id": job_id}, description, request, DEFAULT_PAGE_BYTES)
        return log.text
    if run_id is not None:
        return await _read_failed_logs(api, repo, run_id, request)
    raise Invalid("One of `job_id` and `run_id` has to be given.")


@tool("Get minutes used", toolset="actions", open_world=True)
async def get_usage(
    api: Api,
    *,
    repo: RepoName,
    run_id: OptionalNumber = None,
    workflow: Annotated[Workflow | None, trusted(Policy.workflow), Field(description="File or id")] = None,
) -> Record:
    """Get the billable minutes of one run, or of one workflow this month.

    None if public. How long: `get_run`.
    """
    if run_id is not None and workflow is None:
        path = f"{_run_path(repo, run_id)}/timing"
        thing = f"run `{run_id}`"
    elif workflow is not None and run_id is None:
        path = f"{_workflow_path(repo, workflow)}/timing"
        thing = f"workflow `{workflow.path}`"
    else:
        raise Invalid("One of `run_id` and `workflow` has to be given.")
    response = await api.get(path, f"the minutes of {thing} of `{repo.full_name}`", internal=True)
    note = "GitHub bills only runners of its own in private repositories."
    return Record(note=note, data=_to_minutes(response.data))


@tool("Read an artifact", toolset="actions", open_world=True)
async def read_artifact(
    api: Api,
    *,
    repo: RepoName,
    artifact: Number,
    path: Annotated[FilePath | None, trusted(Policy.file), Field(description="In the artifact")] = None,
    pattern: Annotated[FreeText | None, Field(description="Lines with this")] = None,
    start_line: NumberOrDefault = 1,
) -> Text:
    """List an artifact's files, or read the one at `path` in pages. Logs: `read_job_log`."""
    return await read_artifact_file(api, repo, artifact, path, start_line=start_line, pattern=pattern)


@tool("Run a workflow", toolset="actions", gate="runs", effect="write", open_world=True)
async def run_workflow(
    api: Api,
    *,
    repo: RunRepoName,
    workflow: Annotated[Workflow, trusted(Policy.workflow), _FILE_OR_ID],
    ref: RefName,
    inputs: Annotated[dict[FreeText, Any], Field(description="As the workflow declares them")] = {},  # noqa: B006
) -> Done:
    """Start a workflow that allows being started by hand. How it goes: `get_run`."""
    if ref.name != await get_default_branch(api, repo):
        await refuse_workflows(api, repo, await resolve_sha(api, repo, ref))
    run = await _start(api, repo, workflow, {"ref": ref.name, "inputs": _to_input_texts(inputs)})
    if run is None:
        done = f"Asked GitHub to run {workflow.path} on {ref.name}; it appears among the runs in a moment."
        return Done(done=done)
    run_id = run["workflow_run_id"]
    return Done(
        done=f"Started run {run_id} of {workflow.path} on {ref.name}.",
        uri=f"{repo.uri}/runs/{run_id}",
        url=run.get("html_url"),
        data={"run_id": run_id},
    )


@tool("Rerun or cancel", toolset="actions", gate="runs", effect="destroy", open_world=True)
async def edit_run(api: Api, *, repo: RunRepoName, run_id: Number, action: RunAction) -> Done:
    """Rerun a workflow run or what failed in it, or cancel it, which loses its work. New: `run_workflow`."""
    description = _describe_run(repo, run_id)
    path = _run_path(repo, run_id)
    if action != "cancel":
        run = await api.get(path, description, internal=True)
        api.policy.require_rerunnable(run.data, description)
    await api.write("POST", f"{path}/{_ACTION_PATHS[action]}", description, repo=repo)
    return Done(done=f"Run {run_id}: {action}.", uri=f"{repo.uri}/runs/{run_id}")


@tool("Delete logs", toolset="actions", gate="delete", effect="destroy", open_world=True)
async def delete_run_logs(api: Api, *, repo: DeleteRepoName, run_id: Number) -> Done:
    """Delete the logs of a run, for good; its result stays. To read them first: `read_job_log`."""
    description = f"the logs of run `{run_id}` of `{repo.full_name}`"
    await api.write("DELETE", f"{_run_path(repo, run_id)}/logs", description, repo=repo)
    return Done(done=f"Deleted the logs of run {run_id}.")


async def _start(api: Api, repo: RunRepo, workflow: Workflow, body: Mapping[str, Any]) -> dict[str, Any] | None:
    """Have a workflow run; return which run it is, None where GitHub does not tell."""
    path = f"{_workflow_path(repo, workflow)}/dispatches"
    description = f"workflow `{workflow.path}` of `{repo.full_name}`"
    try:
        response = await api.write("POST", path, description, {**body, _RUN_DETAILS: True}, repo=repo)
    except Invalid as problem:
        if _RUN_DETAILS not in problem.failure:
            raise
        # Older Enterprise Servers refuse to be asked which run it is.
        response = await api.write("POST", path, description, body, repo=repo)
    return response.data


def _to_input_texts(inputs: Mapping[str, Any]) -> dict[str, str]:
    """Return the inputs of a workflow as GitHub takes them, which are texts whatever type the workflow declares.

    What is null is left to the workflow's default.
    """
    texts: dict[str, str] = {}
    for name, value in inputs.items():
        if isinstance(value, str):
            texts[name] = value
        elif value is not None:
            texts[name] = json.dumps(value, ensure_ascii=False)
    return texts


def _query_runs(repo: Repo, workflow: Workflow | None, filters: Mapping[str, Any]) -> ListQuery:
    """Return the list of the runs, newest first.

    Args:
        filters: as GitHub names them: branch, status, event.
    """
    path = f"{repo.path}/actions/runs"
    if workflow is not None:
        path = f"{_workflow_path(repo, workflow)}/runs"
    return ListQuery(
        path, f"the runs of `{repo.full_name}`", _RUN, params=filters, repo=repo,
        find_list=lambda data: data["workflow_runs"],
    )  # fmt: skip


def _query_others(repo: Repo, kind: Literal["workflows", "jobs", "artifacts"], run_id: int | None) -> ListQuery:
    """Return the list of the workflows of a repository, or of the jobs or artifacts of a run."""
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
    return ListQuery(
        path, f"the {kind} of `{repo.full_name}`", projection, repo=repo, find_list=lambda data: data[kind]
    )


def _to_table(jobs: _Jobs) -> dict[str, Any]:
    """Return the jobs of a run as a table."""
    rows = [_JOB.to_row(job, _JOB.default) for job in jobs.items]
    return {"job_columns": list(_JOB.default), "jobs": rows}


async def _find_causes(api: Api, repo: Repo, failed: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return why the first of the failed jobs of a run failed."""
    causes = [await find_cause(api, repo, job) for job in failed[:_MAX_CAUSES]]
    return merge_same_causes(causes)


def _describe_missing_jobs(jobs: _Jobs) -> str | None:
    """Return that a run has more jobs than an answer; None if it has all."""
    if jobs.is_complete:
        return None
    return f"There are more than these {len(jobs.items)} jobs: `list_actions` with kind=jobs has all."


def _describe_missing_causes(jobs: _Jobs) -> str | None:
    """Return which jobs of a run that failed, and which causes, its answer leaves out; None if it has all."""
    gaps: list[str] = []
    harmless = jobs.count_harmless()
    if harmless:
        gaps.append(f"Not in `jobs`: {harmless}.")
    if len(jobs.failed) > _MAX_CAUSES:
        gaps.append(f"{len(jobs.failed)} jobs failed; `causes` has the first {_MAX_CAUSES}.")
    return join_notes(*gaps)


async def _fetch_jobs(api: Api, repo: Repo, run_id: int, description: str) -> _Jobs:
    """Return the jobs of a run, of which a matrix makes 256 at most."""
    params: dict[str, Any] = {"per_page": 100}
    items: list[dict[str, Any]] = []
    removed = 0
    while len(items) < _MAX_JOBS:
        response = await api.get(f"{_run_path(repo, run_id)}/jobs", description, params, repo=repo)
        items += response.data["jobs"]
        removed += response.removed
        if not response.next_page:
            return _Jobs(items, removed, is_complete=True)
        params = {**params, **response.next_page}
    return _Jobs(items, removed, is_complete=False)


async def _read_failed_logs(api: Api, repo: Repo, run_id: int, request: _LogRequest) -> Text:
    """Return lines of the log of each job of a run that failed; they share an answer.

    Raises:
        NotFound: no job failed, or the only log was deleted.
    """
    description = _describe_run(repo, run_id)
    jobs = await _fetch_jobs(api, repo, run_id, description)
    failed = jobs.failed
    if not failed:
        raise _no_failure(jobs, description)
    if len(failed) == 1:
        (job,) = failed
        log = await _read_log(api, repo, job, _describe_job(repo, job), request, DEFAULT_PAGE_BYTES)
        return log.text
    if request.start_line is not None:
        names = _names_of(failed)
        raise Invalid(f"{len(failed)} jobs of {description} failed.", f"Pass the `job_id` of one of them: {names}.")
    max_bytes = DEFAULT_PAGE_BYTES // min(len(failed), _MAX_LOGS)
    logs = [await _try_log(api, repo, job, request, max_bytes) for job in failed[:_MAX_LOGS]]
    head = f"{len(failed)} failed jobs of {description}"
    if not jobs.is_complete:
        head += f", of the first {len(jobs.items)} jobs"
    other_ids = [str(job["id"]) for job in failed[_MAX_LOGS : _MAX_LOGS + _MAX_JOB_IDS]]
    if other_ids:
        head += f"; failed too: {', '.join(other_ids)}"
    if len(failed) > _MAX_LOGS + _MAX_JOB_IDS:
        head += " ..."
    if not request.pattern:
        logs = _shorten_repeated(logs)
    return Text(head, "\n\n".join(log.text.text() for log in logs))


def _shorten_repeated(logs: Sequence[_Log]) -> list[_Log]:
    """Return the logs; those that give the cause of another, but for numbers, only say so."""
    shortened: list[_Log] = []
    for log in logs:
        first = next((other for other in shortened if is_same_failure(log.cause, other.cause)), None)
        if first is not None:
            log = replace(log, text=Text(log.description, f"fails as job {first.job_id} but for numbers"))
        shortened.append(log)
    return shortened


async def _try_log(api: Api, repo: Repo, job: Mapping[str, Any], request: _LogRequest, max_bytes: int) -> _Log:
    """Return lines of the log of one job among others, or why there is none."""
    description = _describe_job(repo, job)
    try:
        return await _read_log(api, repo, job, description, request, max_bytes)
    except (NotFound, Refused, TooLarge, Unavailable) as problem:
        head = f"the log of {description} is missing"
        return _Log(int(job["id"]), head, Text(head, str(problem)))


async def _read_log(
    api: Api, repo: Repo, job: Mapping[str, Any], description: str, request: _LogRequest, max_bytes: int
) -> _Log:
    """Return lines of a job's log: its last error or its end, or from a line on.

    Args:
        job: as GitHub describes it, or only its `id`.

    Raises:
        NotFound: the log was deleted.
        Unavailable: the job is still at work.
    """
    job_id = int(job["id"])
    window = request.open_window()
    parser = FailureLogParser(find_failed_step(job))

    def feed(data: bytes) -> bool:
        if request.is_for_failure:
            parser.feed(data)
        return window.feed(data)

    try:
        await api.download(
            f"{_job_path(repo, job_id)}/logs", f"log of {description}", repo=repo, max_bytes=_MAX_LOG_BYTES, feed=feed
        )
    except NotFound:
        response = await api.get(_job_path(repo, job_id), description, internal=True)
        raise explain_missing_log(response.data, description) from None
    steps = _failed_steps(job)
    if steps:
        description += f", failed in step {steps[0]}"
    head = f"log of {description}"

    def render(max_bytes: int) -> Text:
        return window.render(head, max_bytes)

    # Both take the last line only now, if no line end follows it.
    page = render(max_bytes)
    cause = request.select_cause(parser)
    if not cause or not window.has_error:
        return _Log(job_id, head, page)
    if request.pattern:
        return _Log(job_id, head, _put_matches_first(cause, page, render, max_bytes), cause)
    return _Log(job_id, head, _put_cause_first(cause, render, min(max_bytes, _EXCERPT_BYTES)), cause)


def _put_cause_first(cause: str, render: Callable[[int], Text], max_bytes: int) -> Text:
    """Return a page of a log with the lines before it that say why the job failed, if it lacks them.

    Args:
        cause: these lines, with their numbers as in the page.
        render: returns the page that fits into so many bytes.
    """
    page = render(max_bytes)
    number = _number_of_line(cause)
    note = f"it seems to fail at line {number}"
    _, _, last_line = page.body.rpartition("\n")
    if _number_of_line(page.body) <= number <= _number_of_line(last_line):
        return Text(f"{page.head}; {note}", page.body)
    shorter = render(max_bytes - len(cause.encode()))
    return Text(f"{shorter.head}; {note}", f"{cause}\n...\n{shorter.body}")


def _put_matches_first(cause: str, page: Text, render: Callable[[int], Text], max_bytes: int) -> Text:
    """Return the lines with a pattern, in front of them those that say why the job failed, if others came before."""
    if page.body.startswith(cause):
        return page
    others = render(max_bytes - len(cause.encode()))
    return Text(f"{others.head}; it seems to fail at line {_number_of_line(cause)}", f"{cause}\n...\n{others.body}")


def _number_of_line(lines: str) -> int:
    """Return the number of the first of some lines."""
    return int(lines.partition(":")[0])


def _to_minutes(usage: Mapping[str, Any]) -> dict[str, Any]:
    """Return the minutes that something took, and its jobs, by the system that it ran on."""
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
    return data


def _run_path(repo: Repo, run_id: int) -> str:
    return f"{repo.path}/actions/runs/{run_id}"


def _workflow_path(repo: Repo, workflow: Workflow) -> str:
    return f"{repo.path}/actions/workflows/{workflow.path}"


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
    if not jobs.is_complete:
        state += f"; only the first {len(jobs.items)} were looked at"
    return NotFound(
        f"No job of {description} failed{state}.", f"Pass `job_id` to read another's log: {_names_of(jobs.items)}."
    )
