"""The checks of a commit: check runs, or what a token without access to them can see instead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcp_batteries.errors import Invalid, NotFound, Refused, quote
from mcp_github.client.api import Api
from mcp_github.client.polling import Wait
from mcp_github.listing.columns import CHECK
from mcp_github.listing.pages import listing, pick
from mcp_github.models import Listing
from mcp_github.policy import Ref, Repo
from mcp_github.requests.code.repositories import sha_of

__all__ = ["Checks"]

_NO_CHECK_RUNS = (
    "Fine-grained tokens can't read check runs: these are runs of Actions, and statuses; checks of other apps are "
    "missing."
)

_FIRST_SECONDS = 20.0
_PAGES = 10
"""GitHub keeps a thousand checks of a commit at most."""


@dataclass(frozen=True)
class Checks:
    api: Api

    async def list(
        self, repo: Repo, *, number: int | None, ref: Ref | None, limit: int, cursor: str | None,
        wait: Wait | None = None,
    ) -> Listing:  # fmt: skip
        """Checks of a commit, on the first page with the statuses that other services set; after `wait`, as they ended.

        Raises:
            Refused: the token may see neither check runs nor runs of Actions.
        """
        if number is not None:
            what, hint = f"pull request #{number} of `{repo.full}`", f"If #{number} is an issue, it has no checks."
            found = await self.api.get(f"{repo.path}/pulls/{number}", what, quiet=True, hint=hint)
            ref = self.api.policy.ref(str(pick(found.data, "head.sha")))
        if ref is None:
            raise Invalid("One of `number` and `ref` has to be given.")
        where, what = f"{repo.path}/commits/{ref.path}", f"the checks of {quote(ref.name)} in `{repo.full}`"
        going = await self._awaited(repo, ref, what, wait) if wait is not None and cursor is None else None
        try:
            runs = await listing(
                self.api, f"{where}/check-runs", what, CHECK, repo=repo, limit=limit, cursor=cursor,
                inside=lambda data: data["check_runs"],
            )  # fmt: skip
        except Refused as refusal:
            runs = await self._instead(repo, ref, refusal)
        if cursor is not None:
            return runs
        notes = [runs.note] if runs.note else []
        notes += [f"{going} Call again to wait on."] if going else []
        statuses: list[list[Any]] = []
        removed = runs.removed or 0
        try:
            state = await self.api.get(f"{where}/status", what, {"per_page": 100}, repo=repo)
        except (Refused, NotFound) as problem:
            notes.append(f"Statuses are missing here: {problem}")
        else:
            removed += state.removed
            statuses = [
                [item["context"], item["state"], None, "status", item.get("description"), None]
                for item in state.data["statuses"]
            ]
            if state.following:
                notes.append(f"There are more than these {len(statuses)} statuses: together `{state.data['state']}`.")
        rows = [*runs.rows, *statuses]
        return runs.model_copy(update={"rows": rows, "removed": removed or None, "note": " ".join(notes) or None})

    async def _awaited(self, repo: Repo, ref: Ref, what: str, wait: Wait) -> str | None:
        """Wait until all checks have ended; what is still going on when the time is over."""
        path, inside = f"{repo.path}/commits/{ref.path}/check-runs", "check_runs"
        params: dict[str, Any] = {"per_page": 100}

        async def runs() -> list[Any]:
            nonlocal path, inside
            try:
                return await self._all(path, what, params, inside, repo)
            except Refused:
                if inside == "workflow_runs":
                    raise
                params["head_sha"] = await sha_of(self.api, repo, ref)
                path, inside = f"{repo.path}/actions/runs", "workflow_runs"
                return await self._all(path, what, params, inside, repo)

        async def look() -> list[bool]:
            """Of each whether it has ended."""
            ended = [item.get("status") == "completed" for item in await runs()]
            try:
                where = f"{repo.path}/commits/{ref.path}/status"
                statuses = await self._all(where, what, {"per_page": 100}, "statuses", repo)
            except (Refused, NotFound):
                return ended  # That they are missing is told beside the list.
            return ended + [item.get("state") != "pending" for item in statuses]

        def going(ended: list[bool], passed: float) -> str | None:
            if left := ended.count(False):
                return f"{left} of {len(ended)} checks are still going on."
            # They appear some seconds after a push.
            return "There is no check yet." if not ended and passed < _FIRST_SECONDS else None

        found = await wait.ended(look, going)
        return going(found, _FIRST_SECONDS)

    async def _all(self, path: str, what: str, params: Mapping[str, Any], inside: str, repo: Repo) -> list[Any]:
        """What is `inside` of each page of a list: one that is not looked at may still be going on."""
        items, turned = list[Any](), dict[str, str]()
        for _ in range(_PAGES):
            found = await self.api.get(path, what, {**params, **turned}, repo=repo)
            items += found.data[inside]
            if not (turned := dict(found.following)):
                break
        return items

    async def _instead(self, repo: Repo, ref: Ref, refusal: Refused) -> Listing:
        """The runs of Actions for the commit, in the columns of check runs."""
        what = f"the runs of {quote(ref.name)} in `{repo.full}`"
        try:
            params = {"head_sha": await sha_of(self.api, repo, ref), "per_page": 100}
            found = await self.api.get(f"{repo.path}/actions/runs", what, params, repo=repo)
        except (Refused, NotFound):
            raise refusal from None
        rows = [
            [
                run["name"], run["status"], run.get("conclusion"), "github-actions",
                f"run {run['id']}: {run.get('display_title') or ''}", None,
            ]
            for run in found.data["workflow_runs"]
        ]  # fmt: skip
        total = found.data.get("total_count")
        return Listing(
            note=_NO_CHECK_RUNS, total=total, removed=found.removed or None, columns=list(CHECK.default), rows=rows
        )
