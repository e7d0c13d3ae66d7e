"""Why a run or a job failed: from its log, or from what GitHub says beside it, because some failures leave no log."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from mcp_batteries.errors import NotFound, Refused, TooLarge, Unavailable, quote
from mcp_github.client.api import Api
from mcp_github.listing.projections import pick
from mcp_github.policy import Repo
from mcp_github.requests.runs.failure_log_parser import FailedStep, FailureLogParser

__all__ = [
    "FAILURES", "Cause", "describe_run_state", "explain_missing_log", "find_cause", "find_failed_step",
    "is_same_failure", "merge_same_causes",
]  # fmt: skip

FAILURES = ("failure", "timed_out", "startup_failure")
_MAX_CAUSE_LOG_BYTES = 200_000_000
_MAX_ANNOTATIONS = 10
_MAX_ANNOTATION_CHARACTERS = 500
_MAX_NAMED = 5
# Jobs of a matrix fail alike, at other lines of their logs, in other times and with other versions in their paths. A
# whole number, such as a status, may be what tells two failures apart.
_VARYING_NUMBERS = re.compile(r"^\d+(?=: )|\d+(?:\.\d+)+", re.MULTILINE)
# What the runner adds to each step that fails, which says nothing.
_EMPTY_ANNOTATION = "Process completed with exit code"


@dataclass(frozen=True)
class Cause:
    """Why a job failed.

    Attributes:
        data: what an answer says of it.
        statement: the lines of the log that say it; empty if they only say that something failed.
    """

    data: dict[str, Any]
    statement: str


async def find_cause(api: Api, repo: Repo, job: Mapping[str, Any]) -> Cause:
    """Return why one job failed: what its log says of the step that failed, and the annotations of its check run."""
    job_id = int(job["id"])
    parser = FailureLogParser(find_failed_step(job))
    data: dict[str, Any] = {"job_id": job_id, "job": job.get("name")}
    log = ""
    try:
        await api.download(
            f"{repo.path}/actions/jobs/{job_id}/logs", f"log of job `{job_id}`", repo=repo,
            max_bytes=_MAX_CAUSE_LOG_BYTES, feed=parser.feed,
        )  # fmt: skip
        log = parser.get_cause()
    except (NotFound, Refused, TooLarge, Unavailable) as problem:
        data["missing"] = str(problem)
    if log:
        data["log"] = log
    if log and not parser.is_weak:
        return Cause(data, log)
    annotations = await _fetch_annotations(api, repo, job_id)
    if annotations:
        data["annotations"] = annotations
    if not data.keys() & {"log", "missing", "annotations"}:
        data["log"] = "Its log names no reason: read it with `read_job_log`."
    return Cause(data, "")


def is_same_failure(statement: str, other: str) -> bool:
    """Return whether two excerpts of logs, whose lines have their numbers, differ in these and in decimals at most.

    An empty one is like no other.
    """
    return statement != "" and _VARYING_NUMBERS.sub("0", statement) == _VARYING_NUMBERS.sub("0", other)


def merge_same_causes(causes: Sequence[Cause]) -> list[dict[str, Any]]:
    """Return what an answer says of the causes; of those that state the same, the first names the other jobs."""
    merged: list[Cause] = []
    for cause in causes:
        first = next((other for other in merged if is_same_failure(cause.statement, other.statement)), None)
        if first is None:
            merged.append(cause)
        else:
            first.data.setdefault("same_but_for_numbers", []).append(cause.data["job_id"])
    return [cause.data for cause in merged]


async def describe_run_state(api: Api, repo: Repo, run: Mapping[str, Any]) -> str | None:
    """Return why a run does not go on, or never began, which no log of it says; None if it runs or ran."""
    workflow = quote(str(run.get("path") or "").partition("@")[0] or "the workflow file")
    if run.get("status") == "waiting":
        return await _describe_waiting(api, repo, int(run["id"]))
    match run.get("conclusion"):
        case "startup_failure":
            return (
                f"GitHub could not start it: {workflow} is invalid, or uses what may not be used there. It has no "
                f"jobs and no logs. `read_file` shows the file at {quote(str(run.get('head_sha')))}; its page names "
                f"the line: {run.get('html_url')}."
            )
        case "action_required":
            return (
                "It waits until a maintainer approves it, as GitHub asks for changes of newcomers: nothing has run. "
                f"They can at {run.get('html_url')}."
            )
        case _:
            return None


def explain_missing_log(job: Mapping[str, Any], description: str) -> NotFound | Unavailable:
    """Return why a job has no log."""
    status = job.get("status")
    if status != "completed":
        return Unavailable(f"The {description} is `{status}`; its log comes when it has ended.", "Try again later.")
    conclusion = job.get("conclusion")
    if conclusion == "skipped":
        return NotFound(
            f"The {description} was skipped, so it has no log.",
            "Its `if`, or a job that it needs, did not allow it: `get_run` shows the others.",
        )
    if not job.get("steps"):
        return NotFound(
            f"The {description} ended as `{conclusion}` before its first step, so it has no log.",
            "`get_run` shows what GitHub says of it.",
        )
    return NotFound(
        f"GitHub does not find log of {description}.", "Logs are kept for some weeks; a rerun makes a new one."
    )


async def _describe_waiting(api: Api, repo: Repo, run_id: int) -> str:
    description = f"the deployments of run `{run_id}` of `{repo.full_name}`"
    try:
        response = await api.get(f"{repo.path}/actions/runs/{run_id}/pending_deployments", description, repo=repo)
    except (NotFound, Refused, Unavailable):
        return "It waits for a rule of an environment, such as an approval."
    sentences: list[str] = []
    for item in cast("list[Mapping[str, Any]]", response.data):
        names = [
            str(pick(reviewer, "reviewer.login") or pick(reviewer, "reviewer.name"))
            for reviewer in cast("list[Mapping[str, Any]]", item.get("reviewers") or [])
        ]
        sentence = f"It waits for the environment {quote(str(pick(item, 'environment.name')))}"
        if names:
            sentence += f", which {', '.join(names[:_MAX_NAMED])} may approve"
        if item.get("current_user_can_approve"):
            sentence += "; the user of this token can"
        if item.get("wait_timer"):
            sentence += f"; its timer is {item['wait_timer']} minutes"
        sentences.append(f"{sentence}.")
    return " ".join(sentences) or "It waits for a rule of an environment, such as an approval."


async def _fetch_annotations(api: Api, repo: Repo, job_id: int) -> list[str]:
    """Return what was said of a job outside of its log: a payment that is due, or a linter's findings."""
    description = f"the annotations of job `{job_id}` of `{repo.full_name}`"
    try:
        # A job has the id of its check run.
        response = await api.get(f"{repo.path}/check-runs/{job_id}/annotations", description, repo=repo)
    except (NotFound, Refused, Unavailable):
        return []
    texts: list[str] = []
    for item in cast("list[Mapping[str, Any]]", response.data):
        message = str(item.get("message") or "")[:_MAX_ANNOTATION_CHARACTERS]
        if item.get("annotation_level") != "failure" or message.startswith(_EMPTY_ANNOTATION):
            continue
        path = item.get("path")
        if path and path != ".github":
            message = f"{path}:{item.get('start_line')}: {message}"
        texts.append(message)
    return texts[:_MAX_ANNOTATIONS]


def find_failed_step(job: Mapping[str, Any]) -> FailedStep | None:
    """Return when the first step that failed was at work; None if GitHub does not say."""
    steps = cast("Sequence[Mapping[str, Any]]", job.get("steps") or [])
    started = [_to_second(step.get("started_at")) for step in steps]
    for position, step in enumerate(steps):
        if step.get("conclusion") not in FAILURES:
            continue
        start = started[position]
        end = _to_second(step.get("completed_at"))
        if not start or not end:
            return None
        return FailedStep(start, end, started[:position].count(start))
    return None


def _to_second(time: Any) -> str:
    """Return a time of GitHub's as logs write it, without parts of a second; empty if there is none."""
    if not isinstance(time, str) or not time:
        return ""
    try:
        return datetime.fromisoformat(time).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")
    except ValueError:
        return ""
