"""Actions: what ran, why it failed, and reruns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from mcp_batteries.errors import Invalid, NotFound, Refused, TooLarge, Unavailable
from mcp_batteries.limits import DEFAULT_PAGE_BYTES
from mcp_github.client.api import Answer, Api
from mcp_github.client.polling import Wait
from mcp_github.listing.line_window import Window
from mcp_github.listing.pages import Shape, clipped, listing, plain
from mcp_github.models import Done, Listing, Record, Text
from mcp_github.policy import Ref, Repo, WriteRepo
from mcp_github.requests.automation.failure_log_parser import Cause
from mcp_github.requests.code.repositories import default_branch, refuse_workflows, sha_of

__all__ = ["Actions", "Kind", "RunAction"]

Kind = Literal["workflows", "runs", "jobs", "artifacts"]
RunAction = Literal["rerun", "rerun_failed", "cancel"]

_LOG_BYTES, _MOST_JOBS = 1_000_000_000, 300
_CAUSES, _CAUSE_BYTES = 5, 200_000_000
_LOGS = 6
"""Failed jobs of a run whose logs share an answer."""
_FAILED = ("failure", "timed_out")


def _failed(item: Mapping[str, Any]) -> list[str]:
    steps = cast("list[Any]", item.get("steps") or [])
    return [f"{step['number']} {step['name']}" for step in steps if step.get("conclusion") == "failure"]


WORKFLOW = Shape({**plain("id", "name", "path", "state"), "url": "html_url"}, ("id", "name", "path", "state"))
RUN = Shape(
    {
        "run_id": "id", **plain("name", "event", "status", "conclusion", "run_number", "run_attempt", "created_at"),
        "title": clipped("display_title", 200), "branch": "head_branch", "sha": "head_sha", "actor": "actor.login",
        "workflow": "path", "updated_at": "updated_at", "url": "html_url",
    },
    ("run_id", "name", "title", "event", "status", "conclusion", "branch", "actor", "created_at"),
)  # fmt: skip
JOB = Shape(
    {"job_id": "id", **plain("name", "status", "conclusion", "started_at", "completed_at"), "failed_steps": _failed,
     "runner": "runner_name", "url": "html_url"},
    ("job_id", "name", "status", "conclusion", "failed_steps"),
)  # fmt: skip
ARTIFACT = Shape(
    {**plain("id", "name", "expired", "created_at", "expires_at"), "bytes": "size_in_bytes",
     "run_id": "workflow_run.id", "branch": "workflow_run.head_branch"},
    ("id", "name", "bytes", "expired", "created_at", "run_id"),
)  # fmt: skip
_SHAPES = {"workflows": WORKFLOW, "runs": RUN, "jobs": JOB, "artifacts": ARTIFACT}


@dataclass(frozen=True)
class Actions:
    api: Api

    async def list(
        self, repo: Repo, kind: Kind, *, run_id: int | None, workflow: str | None, params: Mapping[str, Any],
        fields: Sequence[str] | None, limit: int, cursor: str | None,
    ) -> Listing:  # fmt: skip
        where, inside = f"{repo.path}/actions/{kind}", kind
        if kind == "jobs":
            if run_id is None:
                raise Invalid("Jobs are those of a run.", "Pass `run_id`; kind=runs shows them.")
            where = f"{repo.path}/actions/runs/{run_id}/jobs"
        elif kind == "artifacts" and run_id is not None:
            where = f"{repo.path}/actions/runs/{run_id}/artifacts"
        elif kind == "runs":
            inside = "workflow_runs"
            if workflow is not None:
                where = f"{repo.path}/actions/workflows/{workflow}/runs"
        return await listing(
            self.api, where, f"the {kind} of `{repo.full}`", _SHAPES[kind], repo=repo, fields=fields, limit=limit,
            cursor=cursor, params=params if kind == "runs" else None, inside=lambda data: data[inside],
        )  # fmt: skip

    async def get(self, repo: Repo, run_id: int, wait: Wait | None = None) -> Record:
        """One run with its jobs and the steps that failed; after `wait`, with why they failed, from their logs."""
        where, what = f"{repo.path}/actions/runs/{run_id}", f"run `{run_id}` of `{repo.full}`"

        async def look() -> Answer:
            return await self.api.get(where, what, repo=repo)

        found = await (look() if wait is None else wait.ended(look, _going))
        data = RUN.record(found.data, list(RUN.getters))
        note, removed = None, 0
        if wait is not None and _going(found) is not None:
            note = f"It is still `{data.get('status')}`: call again to wait on."
        try:
            jobs, removed = await self._jobs(repo, run_id, f"the jobs of {what}")
        except (NotFound, Refused, Unavailable) as problem:
            note = f"Its jobs are missing here: {problem}"
        else:
            data["job_columns"] = list(JOB.default)
            data["jobs"] = [JOB.row(job, JOB.default) for job in jobs]
            failed = [job for job in jobs if job.get("conclusion") in _FAILED]
            if wait is not None and note is None and failed:
                data["causes"] = [await self._cause(repo, job) for job in failed[:_CAUSES]]
        uri = f"{repo.uri}/runs/{run_id}"
        return Record(uri=uri, note=note, removed=(found.removed + removed) or None, data=data)

    async def _cause(self, repo: Repo, job: Mapping[str, Any]) -> dict[str, Any]:
        """Why one job failed, as its log has it."""
        number, cause = int(job["id"]), Cause()
        about: dict[str, Any] = {"job_id": number, "job": job.get("name")}
        try:
            await self.api.download(
                f"{repo.path}/actions/jobs/{number}/logs", f"log of job `{number}`", repo=repo,
                max_bytes=_CAUSE_BYTES, take=cause.take,
            )  # fmt: skip
        except (NotFound, Refused, TooLarge, Unavailable) as problem:
            return {**about, "missing": str(problem)}
        return {**about, "log": cause.found() or "Its log names no reason: read it with `read_job_log`."}

    async def _jobs(self, repo: Repo, run_id: int, what: str) -> tuple[Sequence[dict[str, Any]], int]:
        """The jobs of a run, of which a matrix makes 256 at most, and how many characters were taken out of them."""
        params: dict[str, Any] = {"per_page": 100}
        jobs: list[dict[str, Any]] = []
        removed = 0
        while len(jobs) < _MOST_JOBS:
            found = await self.api.get(f"{repo.path}/actions/runs/{run_id}/jobs", what, params, repo=repo)
            jobs += found.data["jobs"]
            removed += found.removed
            if not found.following:
                break
            params = {**params, **found.following}
        return jobs, removed

    async def log(
        self, repo: Repo, *, job_id: int | None, run_id: int | None, start_line: int | None, pattern: str | None
    ) -> Text:
        """Lines of a job's log: its last error or its end, or from `start_line` on; of a run, of each job that failed.

        Raises:
            NotFound: no job failed, or its log was deleted.
            Unavailable: the job is still at work.
        """
        if job_id is not None:
            what = f"job `{job_id}` of `{repo.full}`"
            return await self._log(repo, job_id, what, Window(start_line=start_line, pattern=pattern))
        if run_id is None:
            raise Invalid("One of `job_id` and `run_id` has to be given.")
        what = f"run `{run_id}` of `{repo.full}`"
        jobs, _ = await self._jobs(repo, run_id, what)
        failed = [job for job in jobs if job.get("conclusion") in _FAILED]
        if not failed:
            raise _no_failure(jobs, what)
        if len(failed) > 1 and start_line is not None:
            known = ", ".join(f"{job['id']} {job['name']}" for job in failed[:10])
            raise Invalid(f"{len(failed)} jobs of {what} failed.", f"Pass the `job_id` of one of them: {known}.")
        logs = list[Text]()
        for job in failed[:_LOGS]:
            window = Window(start_line=start_line, pattern=pattern)
            named = f"job `{job['id']}` ({job['name']}) of `{repo.full}`"
            try:
                logs.append(await self._log(repo, int(job["id"]), named, window, len(failed)))
            except (NotFound, Refused, TooLarge, Unavailable) as problem:
                if len(failed) == 1:
                    raise
                logs.append(Text(f"the log of {named} is missing", str(problem)))
        if len(failed) == 1:
            return logs[0]
        rest = [str(job["id"]) for job in failed[_LOGS : _LOGS + 20]]
        more = f"; failed too: {', '.join(rest)}{' ...' if len(failed) > _LOGS + 20 else ''}" if rest else ""
        return Text(f"{len(failed)} failed jobs of {what}{more}", "\n\n".join(log.text() for log in logs))

    async def _log(self, repo: Repo, job_id: int, what: str, window: Window, sharing: int = 1) -> Text:
        """The page of a job's log that `window` takes, cut to its share of an answer among so many."""
        where = f"{repo.path}/actions/jobs/{job_id}"
        try:
            await self.api.download(
                f"{where}/logs", f"log of {what}", repo=repo, max_bytes=_LOG_BYTES, take=window.take
            )
        except NotFound as problem:
            job = (await self.api.get(where, what, quiet=True)).data
            if job.get("status") != "completed":
                raise Unavailable(
                    f"The {what} is `{job.get('status')}`; its log comes when it has ended.", "Try again later."
                ) from None
            raise NotFound(problem.what, "Logs are kept for some weeks; a rerun makes a new one.") from None
        return window.page(f"log of {what}", DEFAULT_PAGE_BYTES // min(sharing, _LOGS))

    async def usage(self, repo: Repo, run_id: int | None, workflow: str | None) -> Record:
        """The minutes that a run took, or a workflow in this month, by the system it ran on."""
        if (run_id is None) == (workflow is None):
            raise Invalid("One of `run_id` and `workflow` has to be given.")
        place = f"runs/{run_id}" if workflow is None else f"workflows/{workflow}"
        what = f"the minutes of {'run' if workflow is None else 'workflow'} `{run_id or workflow}` of `{repo.full}`"
        found = (await self.api.get(f"{repo.path}/actions/{place}/timing", what, quiet=True)).data
        billed = cast("dict[str, dict[str, Any]]", found.get("billable") or {})
        data: dict[str, Any] = {
            "billable_minutes": {name.lower(): round(item["total_ms"] / 60_000, 2) for name, item in billed.items()},
            "jobs": {name.lower(): item["jobs"] for name, item in billed.items() if "jobs" in item},
        }
        if (lasted := found.get("run_duration_ms")) is not None:
            data["lasted_minutes"] = round(lasted / 60_000, 2)
        note = "GitHub bills only runners of its own in private repositories."
        return Record(note=note, data={name: value for name, value in data.items() if value != {}})

    async def run(self, repo: WriteRepo, workflow: str, ref: Ref, inputs: Mapping[str, Any]) -> Done:
        what = f"workflow `{workflow}` of `{repo.full}`"
        if ref.name != await default_branch(self.api, repo):
            # What runs is the workflow as it stands at `ref`.
            await refuse_workflows(self.api, repo, await sha_of(self.api, repo, ref))
        body = {"ref": ref.name, "inputs": dict(inputs)}
        await self.api.write("POST", f"{repo.path}/actions/workflows/{workflow}/dispatches", what, body, repo=repo)
        return Done(done=f"Asked GitHub to run {workflow} on {ref.name}; it appears among the runs in a moment.")

    async def act(self, repo: WriteRepo, run_id: int, action: RunAction) -> Done:
        verb = {"rerun": "rerun", "rerun_failed": "rerun-failed-jobs", "cancel": "cancel"}[action]
        what = f"run `{run_id}` of `{repo.full}`"
        if action != "cancel":
            found = await self.api.get(f"{repo.path}/actions/runs/{run_id}", what, quiet=True)
            self.api.policy.require_rerunnable(found.data, what)
        await self.api.write("POST", f"{repo.path}/actions/runs/{run_id}/{verb}", what, repo=repo)
        return Done(done=f"Run {run_id}: {action}.", uri=f"{repo.uri}/runs/{run_id}")

    async def delete_log(self, repo: WriteRepo, run_id: int) -> Done:
        what = f"the logs of run `{run_id}` of `{repo.full}`"
        await self.api.write("DELETE", f"{repo.path}/actions/runs/{run_id}/logs", what, repo=repo)
        return Done(done=f"Deleted the logs of run {run_id}.")


def _going(found: Answer, passed: float = 0) -> str | None:
    return None if found.data.get("status") == "completed" else f"The run is {found.data.get('status')}."


def _no_failure(jobs: Sequence[Mapping[str, Any]], what: str) -> NotFound:
    going = sum(job.get("status") != "completed" for job in jobs)
    known = ", ".join(f"{job['id']} {job['name']}" for job in jobs[:10])
    state = f"; {going} of its {len(jobs)} jobs are still at work" if going else ""
    return NotFound(f"No job of {what} failed{state}.", f"Pass `job_id` to read another's log: {known}.")
