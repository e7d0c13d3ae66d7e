"""The checks of a commit: check runs, or what a token without access to them can see instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mcp_batteries.errors import NotFound, Refused, quote
from mcp_github.client.api import Api
from mcp_github.client.polling import Poller
from mcp_github.listing.columns import CHECK
from mcp_github.listing.pages import ListQuery, PageOptions, fetch_page, join_notes
from mcp_github.listing.projections import pick
from mcp_github.models import Listing
from mcp_github.policy import Ref, Repo
from mcp_github.requests.branches import resolve_sha

__all__ = ["list_checks_of_commit", "list_checks_of_pull"]

_NO_CHECK_RUNS = (
    "Fine-grained tokens can't read check runs: these are runs of Actions, and statuses; checks of other apps are "
    "missing."
)
# Checks appear some seconds after a push.
_FIRST_CHECK_SECONDS = 20.0
# GitHub keeps a thousand checks of a commit at most.
_MAX_PAGES = 10


@dataclass(frozen=True)
class _Statuses:
    """What other services say of a commit.

    Attributes:
        removed: how many invisible characters were taken out.
        note: what is missing.
    """

    rows: Sequence[list[Any]] = ()
    removed: int = 0
    note: str | None = None


@dataclass(frozen=True)
class _UpstreamList:
    """A list of GitHub's that is read as a whole, and the name under which it stands in the answer."""

    path: str
    key: str
    params: Mapping[str, Any]


async def list_checks_of_pull(
    api: Api, repo: Repo, number: int, options: PageOptions, poller: Poller | None = None
) -> Listing:
    """Return a page of the checks of a pull request's head, see `list`."""
    description = f"pull request #{number} of `{repo.full_name}`"
    hint = f"If #{number} is an issue, it has no checks."
    pull = await api.get(f"{repo.path}/pulls/{number}", description, internal=True, hint=hint)
    head = api.policy.ref(str(pick(pull.data, "head.sha")))
    return await list_checks_of_commit(api, repo, head, options, poller)


async def list_checks_of_commit(
    api: Api, repo: Repo, ref: Ref, options: PageOptions, poller: Poller | None = None
) -> Listing:
    """Return a page of the checks of a commit, on the first with the statuses that other services set.

    Args:
        poller: waits until the checks have ended.

    Raises:
        Refused: the token may see neither check runs nor runs of Actions.
    """
    commit = _CommitChecks(api, repo, ref)
    is_first_page = options.cursor is None
    progress = None
    if poller is not None and is_first_page:
        progress = await commit.wait(poller)
    try:
        page = await commit.fetch_check_runs(options)
    except Refused as refusal:
        page = await commit.fetch_workflow_runs(refusal)
    if not is_first_page:
        return page
    wait_note = None
    if progress:
        wait_note = f"{progress} Call again to wait on."
    statuses = await commit.fetch_statuses()
    return page.model_copy(
        update={
            "rows": [*page.rows, *statuses.rows],
            "removed": ((page.removed or 0) + statuses.removed) or None,
            "note": join_notes(page.note, wait_note, statuses.note),
        }
    )


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

    async def fetch_check_runs(self, options: PageOptions) -> Listing:
        query = ListQuery(
            f"{self.path}/check-runs", self.description, CHECK, repo=self.repo,
            find_list=lambda data: data["check_runs"],
        )  # fmt: skip
        return await fetch_page(self.api, query, options)

    async def fetch_workflow_runs(self, refusal: Refused) -> Listing:
        """Return the runs of Actions for the commit, in the columns of check runs.

        Raises:
            Refused: `refusal`, if the token may not see them either.
        """
        description = f"the runs of {quote(self.ref.name)} in `{self.repo.full_name}`"
        try:
            params = {"head_sha": await resolve_sha(self.api, self.repo, self.ref), "per_page": 100}
            response = await self.api.get(f"{self.repo.path}/actions/runs", description, params, repo=self.repo)
        except (Refused, NotFound):
            raise refusal from None
        return Listing(
            note=_NO_CHECK_RUNS,
            total=response.data.get("total_count"),
            removed=response.removed or None,
            columns=list(CHECK.default),
            rows=[_to_check_row(run) for run in response.data["workflow_runs"]],
        )

    async def fetch_statuses(self) -> _Statuses:
        try:
            response = await self.api.get(f"{self.path}/status", self.description, {"per_page": 100}, repo=self.repo)
        except (Refused, NotFound) as problem:
            return _Statuses(note=f"Statuses are missing here: {problem}")
        rows = [
            [status["context"], status["state"], None, "status", status.get("description"), None]
            for status in response.data["statuses"]
        ]
        statuses = _Statuses(rows, response.removed)
        if not response.next_page:
            return statuses
        note = f"There are more than these {len(rows)} statuses: together `{response.data['state']}`."
        return replace(statuses, note=note)

    async def wait(self, poller: Poller) -> str | None:
        """Wait until all checks have ended; return what still goes on when the time is over."""
        check_list = _UpstreamList(f"{self.path}/check-runs", "check_runs", {"per_page": 100})

        async def fetch_are_ended() -> list[bool]:
            nonlocal check_list
            try:
                checks = await self._fetch_all(check_list)
            except Refused:
                if check_list.key == "workflow_runs":
                    raise
                check_list = await self._workflow_run_list()
                checks = await self._fetch_all(check_list)
            are_ended = [check.get("status") == "completed" for check in checks]
            return are_ended + await self._fetch_are_statuses_ended()

        are_ended = await poller.poll_until_done(fetch_are_ended, _describe_progress)
        return _describe_progress(are_ended, _FIRST_CHECK_SECONDS)

    async def _workflow_run_list(self) -> _UpstreamList:
        sha = await resolve_sha(self.api, self.repo, self.ref)
        params = {"per_page": 100, "head_sha": sha}
        return _UpstreamList(f"{self.repo.path}/actions/runs", "workflow_runs", params)

    async def _fetch_are_statuses_ended(self) -> list[bool]:
        try:
            statuses = await self._fetch_all(_UpstreamList(f"{self.path}/status", "statuses", {"per_page": 100}))
        except (Refused, NotFound):
            # The note beside the list says that they are missing.
            return []
        return [status.get("state") != "pending" for status in statuses]

    async def _fetch_all(self, upstream: _UpstreamList) -> list[Any]:
        """Return the objects of all pages of a list: one that is not looked at may still be going on."""
        items: list[Any] = []
        next_page: Mapping[str, str] = {}
        for _ in range(_MAX_PAGES):
            response = await self.api.get(
                upstream.path, self.description, {**upstream.params, **next_page}, repo=self.repo
            )
            items += response.data[upstream.key]
            next_page = response.next_page
            if not next_page:
                break
        return items


def _describe_progress(are_ended: list[bool], elapsed: float) -> str | None:
    """Return how the checks go on after so many seconds; None once all have ended."""
    if not all(are_ended):
        return f"{are_ended.count(False)} of {len(are_ended)} checks are still going on."
    if not are_ended and elapsed < _FIRST_CHECK_SECONDS:
        return "There is no check yet."
    return None


def _to_check_row(run: Mapping[str, Any]) -> list[Any]:
    title = f"run {run['id']}: {run.get('display_title') or ''}"
    return [run["name"], run["status"], run.get("conclusion"), "github-actions", title, None]
