"""The checks of a commit: whether it is green, and each of them; or what a token without access can see instead."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from mcp_batteries.clipping import DEFAULT_PAGE_BYTES
from mcp_batteries.cursors import Cursor
from mcp_batteries.errors import NotFound, Problem, Refused, quote
from mcp_github.client.api import Api
from mcp_github.client.polling import Poller
from mcp_github.listing.columns import CHECK
from mcp_github.listing.pages import PageOptions, count_fitting_rows, join_notes
from mcp_github.listing.projections import pick
from mcp_github.models import Listing
from mcp_github.policy import Ref, Repo
from mcp_github.requests.branches import resolve_sha
from mcp_github.requests.runs.latest_runs import NEEDS_APPROVAL, WorkflowKey, select_latest_runs, workflow_key

__all__ = ["CheckFilter", "CheckState", "list_checks_of_commit", "list_checks_of_pull"]

CheckState = Literal["failed", "running", "passed"]

_NO_CHECK_RUNS = (
    "Fine-grained tokens can't read check runs: these are runs of Actions, and statuses; checks of other apps are "
    "missing."
)
_NO_WORKFLOW_RUNS = "Runs of Actions can't be read here: whether one waits for an approval is not known."
_STATUSES_ONLY = "Neither check runs nor runs of Actions can be read here: these are statuses of other services."
_FAILURES = ("failure", "error", "timed_out", "startup_failure", NEEDS_APPROVAL, "cancelled", "stale")
_COUNTED_AS: Mapping[str, str] = {"success": "passed", "failure": "failed", "error": "failed"}
_STATES: Sequence[CheckState] = ("failed", "running", "passed")
_TELL_APART_COLUMNS = ("workflow", "event", "attempt", "started_at")
_FULL_SHA = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")
# Checks appear some seconds after a push.
_FIRST_CHECK_SECONDS = 20.0
# GitHub keeps a thousand checks of a commit at most.
_MAX_PAGES = 10
_MAX_NAMED_CHECKS = 10
# GitHub does not know the commit; nothing else of it could be read either.
_UNKNOWN_COMMIT_STATUS = 422


@dataclass(frozen=True)
class CheckFilter:
    """Which checks are listed; all are counted.

    Attributes:
        name: a part of the name, whatever its case.
    """

    state: CheckState | None = None
    name: str | None = None

    def takes(self, check: _Check) -> bool:
        if self.state is not None and check.state != self.state:
            return False
        return self.name is None or self.name.lower() in check.name.lower()


@dataclass(frozen=True)
class _Check:
    """A check run, a run of Actions in the place of one, or a status.

    Attributes:
        row: its values in the default columns.
        suite: the check suite of a check run.
        origin: which workflow it is of, its event, attempt and time, where names repeat.
    """

    name: str
    status: str
    conclusion: str | None
    row: Sequence[Any]
    suite: int | None = None
    started_at: str | None = None
    origin: Sequence[Any] = ()

    @classmethod
    def of_workflow_run(cls, run: Mapping[str, Any]) -> _Check:
        """Return a run of Actions in the columns of check runs."""
        # A workflow whose file is broken or gone has no name.
        name = str(run.get("name") or run.get("path") or run["id"])
        title = f"run {run['id']}: {run.get('display_title') or ''}"
        status = str(run["status"])
        row = [name, status, run.get("conclusion"), "github-actions", title, None]
        return cls(name, status, run.get("conclusion"), row, run.get("check_suite_id"), run.get("run_started_at"))

    @property
    def outcome(self) -> str:
        """Its conclusion, or how far it is."""
        if self.status == "completed":
            return self.conclusion or self.status
        return self.status

    @property
    def state(self) -> CheckState:
        if self.outcome in _FAILURES:
            return "failed"
        if self.status in ("completed", "success"):
            return "passed"
        return "running"

    def start_order(self) -> tuple[bool, str]:
        """Return by what it stands after those that began before it; one that has not begun is the newest."""
        return self.started_at is None, self.started_at or ""


@dataclass
class _Checks:
    """All checks of a commit.

    Attributes:
        removed: how many invisible characters were taken out.
        notes: what is missing.
        has_names: whether the names are those that a rule would require.
        is_complete: whether GitHub listed all.
        sha: of the commit, once a check run told it.
        runs: of Actions for the commit, the newest first; None if the token may not see them.
    """

    items: list[_Check] = field(default_factory=list[_Check])
    removed: int = 0
    notes: list[str] = field(default_factory=list[str])
    has_names: bool = True
    is_complete: bool = True
    sha: str | None = None
    runs: list[Mapping[str, Any]] | None = None

    @property
    def run_by_suite(self) -> Mapping[Any, Mapping[str, Any]]:
        """The run of Actions that each check suite belongs to."""
        return {run.get("check_suite_id"): run for run in self.runs or ()}

    def add_runs_without_checks(self) -> None:
        """Add the runs that have no check, and so stand in no list of them: they wait, or could not begin."""
        suites = {item.suite for item in self.items}
        waiting_names: list[str] = []
        for run in select_latest_runs(self.runs or ()):
            check = _Check.of_workflow_run(run)
            if check.suite in suites or check.state == "passed":
                continue
            self.items.append(check)
            if check.outcome == NEEDS_APPROVAL:
                waiting_names.append(quote(check.name, 80))
        if waiting_names:
            names = ", ".join(waiting_names[:_MAX_NAMED_CHECKS])
            self.notes.append(f"Nothing of these runs until a maintainer approves it on GitHub: {names}.")

    def leave_out_superseded(self) -> None:
        """Leave out checks that ran again in a later run of the same workflow for the same event and branch."""
        workflow_by_suite = {suite: workflow_key(run) for suite, run in self.run_by_suite.items()}
        newest: dict[tuple[WorkflowKey | None, str], _Check] = {}
        for item in self.items:
            if item.suite in workflow_by_suite:
                key = workflow_by_suite[item.suite], item.name
                newest[key] = max(newest.get(key, item), item, key=_Check.start_order)
        current: list[_Check] = []
        for item in self.items:
            last = newest.get((workflow_by_suite.get(item.suite), item.name), item)
            # One run may have several of one name.
            if last.suite == item.suite:
                current.append(item)
        count = len(self.items) - len(current)
        self.items = current
        if count:
            self.notes.append(f"Left out: {count} of workflow runs that a later run for this commit replaces.")

    def summarize(self, missing_names: Sequence[str]) -> str:
        """Return whether all is well, and how many checks are how far, the worst first."""
        counts = Counter((_STATES.index(item.state), item.outcome) for item in self.items)
        parts = [f"{count} {_COUNTED_AS.get(outcome, outcome)}" for (_, outcome), count in sorted(counts.items())]
        if missing_names:
            names = ", ".join(quote(name, 80) for name in missing_names[:_MAX_NAMED_CHECKS])
            parts.append(f"{len(missing_names)} required not reported: {names}")
        if not parts:
            return "There are no checks."
        return f"{self._verdict(missing_names)}: {', '.join(parts)}."

    def _verdict(self, missing_names: Sequence[str]) -> str:
        states = {item.state for item in self.items}
        if "failed" in states:
            return "Not green"
        if "running" in states or missing_names:
            return "Not done"
        if not self.is_complete:
            return "Green as far as listed"
        return "Green"


@dataclass(frozen=True)
class _UpstreamList:
    """A list of GitHub's that is read as a whole, and the name under which it stands in the answer."""

    path: str
    key: str
    params: Mapping[str, Any] = field(default_factory=dict[str, Any])


async def list_checks_of_pull(
    api: Api, repo: Repo, number: int, wishes: CheckFilter, options: PageOptions, poller: Poller | None = None
) -> Listing:
    """Return the checks of a pull request's head with those that its base branch requires, see the next."""
    description = f"pull request #{number} of `{repo.full_name}`"
    hint = f"If #{number} is an issue, it has no checks."
    pull = await api.get(f"{repo.path}/pulls/{number}", description, internal=True, hint=hint)
    head = api.policy.ref(str(pick(pull.data, "head.sha")))
    base = api.policy.ref(str(pick(pull.data, "base.ref")))
    return await list_checks_of_commit(api, repo, head, wishes, options, poller, base=base)


async def list_checks_of_commit(
    api: Api, repo: Repo, ref: Ref, wishes: CheckFilter, options: PageOptions, poller: Poller | None = None, *,
    base: Ref | None = None,
) -> Listing:  # fmt: skip
    """Return the checks of a commit and the statuses that other services set: failures first, and how many of each.

    Args:
        poller: waits until the checks have ended.
        base: the branch whose rules require some.

    Raises:
        Refused: the token may see neither check runs nor runs of Actions nor statuses.
    """
    commit = _CommitChecks(api, repo, ref)
    progress = None
    if poller is not None and options.cursor is None:
        checks = await poller.poll_until_done(commit.fetch, _describe_progress)
        progress = _describe_progress(checks, _FIRST_CHECK_SECONDS)
    else:
        checks = await commit.fetch()
    missing_names: list[str] = []
    if base is not None and checks.has_names:
        missing_names = await commit.find_missing(checks, base)
    matching = sorted(filter(wishes.takes, checks.items), key=lambda item: _STATES.index(item.state))
    columns = list(CHECK.default)
    if len({item.name for item in matching}) < len(matching):
        matching = _tell_apart(matching, checks.run_by_suite)
        columns += _TELL_APART_COLUMNS
    page = _cut(matching, columns, options, [repo.key, ref.name, wishes.state, wishes.name])
    wait_note = None
    if progress:
        wait_note = f"{progress} Call again to wait on."
    note = join_notes(checks.summarize(missing_names), wait_note, *checks.notes, page.note)
    return page.model_copy(update={"note": note, "total": len(matching), "removed": checks.removed or None})


@dataclass(frozen=True)
class _CommitChecks:
    """The checks of one commit."""

    api: Api
    repo: Repo
    ref: Ref

    @property
    def path(self) -> str:
        return f"{self.repo.path}/commits/{self.ref.path}"

    @property
    def description(self) -> str:
        return f"the checks of {quote(self.ref.name)} in `{self.repo.full_name}`"

    async def fetch(self) -> _Checks:
        """Return all checks and statuses, and what could not be read.

        Raises:
            Problem: nothing could be read.
        """
        checks = _Checks()
        problem: Problem | None = None
        try:
            await self._add_check_runs(checks)
        except (Refused, NotFound) as refusal:
            if refusal.status == _UNKNOWN_COMMIT_STATUS:
                raise
            problem = refusal
            checks.has_names = False
        await self._add_workflow_runs(checks)
        if problem is not None and checks.runs is not None:
            problem = None
            checks.notes.append(_NO_CHECK_RUNS)
        elif problem is not None:
            checks.notes.append(_STATUSES_ONLY)
        elif checks.runs is None:
            checks.notes.append(_NO_WORKFLOW_RUNS)
        checks.leave_out_superseded()
        try:
            await self._add_statuses(checks)
        except (Refused, NotFound) as status_problem:
            if problem is not None:
                raise problem from None
            checks.notes.append(f"Statuses are missing here: {status_problem}")
        return checks

    async def find_missing(self, checks: _Checks, base: Ref) -> list[str]:
        """Return the names of checks that rules of the branch `base` require and nobody has reported yet."""
        names: dict[str, None] = {}
        try:
            branch = await self.api.get(
                f"{self.repo.path}/branches/{base.path}", f"branch {quote(base.name)} in `{self.repo.full_name}`",
                internal=True,
            )  # fmt: skip
            names |= dict.fromkeys(pick(branch.data, "protection.required_status_checks.contexts") or ())
            rules = await self._fetch_list(_UpstreamList(f"{self.repo.path}/rules/branches/{base.path}", ""), checks)
        except (Refused, NotFound) as problem:
            checks.notes.append(f"Which checks are required is not known here: {problem}")
            return []
        for rule in rules:
            if rule.get("type") == "required_status_checks":
                required = cast("list[dict[str, Any]]", pick(rule, "parameters.required_status_checks") or [])
                names |= dict.fromkeys(str(item["context"]) for item in required)
        reported = {item.name for item in checks.items}
        return [name for name in names if name not in reported]

    async def _add_check_runs(self, checks: _Checks) -> None:
        for run in await self._fetch_list(_UpstreamList(f"{self.path}/check-runs", "check_runs"), checks):
            row = CHECK.to_row(run, CHECK.default)
            suite = pick(run, "check_suite.id")
            checks.sha = run.get("head_sha")
            checks.items.append(
                _Check(run["name"], str(run.get("status")), run.get("conclusion"), row, suite, run.get("started_at"))
            )

    async def _add_workflow_runs(self, checks: _Checks) -> None:
        """Add the runs of Actions for the commit: all if check runs can't be read, else those without any."""
        try:
            sha = checks.sha or await self._resolve_sha()
            upstream = _UpstreamList(f"{self.repo.path}/actions/runs", "workflow_runs", {"head_sha": sha})
            checks.runs = await self._fetch_list(upstream, checks)
        except (Refused, NotFound):
            return
        if checks.has_names:
            checks.add_runs_without_checks()
        else:
            checks.items += map(_Check.of_workflow_run, checks.runs)

    async def _resolve_sha(self) -> str:
        if _FULL_SHA.fullmatch(self.ref.name):
            return self.ref.name
        return await resolve_sha(self.api, self.repo, self.ref)

    async def _add_statuses(self, checks: _Checks) -> None:
        for status in await self._fetch_list(_UpstreamList(f"{self.path}/status", "statuses"), checks):
            row = [status["context"], status["state"], None, "status", status.get("description"), None]
            checks.items.append(
                _Check(status["context"], status["state"], None, row, started_at=status.get("created_at"))
            )

    async def _fetch_list(self, upstream: _UpstreamList, checks: _Checks) -> list[Any]:
        """Return the objects of all pages of a list: one that is not looked at may be the one that failed."""
        items: list[Any] = []
        next_page: Mapping[str, str] = {}
        for _ in range(_MAX_PAGES):
            response = await self.api.get(
                upstream.path, self.description, {"per_page": 100, **upstream.params, **next_page}, repo=self.repo
            )
            data = response.data
            if upstream.key:
                data = data[upstream.key]
            items += data
            checks.removed += response.removed
            next_page = response.next_page
            if not next_page:
                return items
        checks.is_complete = False
        checks.notes.append(f"GitHub has more of {self.description}: only {len(items):,} were read and counted.")
        return items


def _tell_apart(items: Sequence[_Check], run_by_suite: Mapping[Any, Mapping[str, Any]]) -> list[_Check]:
    """Return the checks with what tells those of one name apart; where no run is known, it is their time."""
    named: list[_Check] = []
    for item in items:
        run = run_by_suite.get(item.suite, {})
        origin = [run.get("name"), run.get("event"), run.get("run_attempt"), item.started_at]
        named.append(replace(item, origin=origin))
    return named


def _cut(items: Sequence[_Check], columns: list[str], options: PageOptions, scope: Sequence[Any]) -> Listing:
    """Return the page of checks that the cursor stands for."""
    start = 0
    if options.cursor is not None:
        start = int(Cursor.decode("checks", options.cursor, scope))
    rows = [[*item.row, *item.origin] for item in items[start : start + options.limit]]
    rows = rows[: count_fitting_rows(rows, DEFAULT_PAGE_BYTES)]
    remaining = len(items) - start - len(rows)
    if remaining <= 0:
        return Listing(columns=columns, rows=rows)
    cursor = Cursor.encode("checks", start + len(rows), scope)
    return Listing(cursor=cursor, note=f"{remaining} more.", columns=columns, rows=rows)


def _describe_progress(checks: _Checks, elapsed: float) -> str | None:
    """Return how the checks go on after so many seconds; None once all have ended."""
    running = [item for item in checks.items if item.state == "running"]
    if running:
        return f"{len(running)} of {len(checks.items)} checks are still going on."
    if not checks.items and elapsed < _FIRST_CHECK_SECONDS:
        return "There is no check yet."
    return None
