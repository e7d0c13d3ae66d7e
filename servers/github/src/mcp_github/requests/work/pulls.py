"""Pull requests: their changes, the conversation, and whether they can be merged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, cast

from mcp_batteries.errors import Conflict, Invalid, NotFound, Refused, quote
from mcp_batteries.limits import DEFAULT_PAGE_BYTES, Cursor
from mcp_github.client.api import Api, after
from mcp_github.listing.columns import PULL, REVIEW
from mcp_github.listing.pages import author, clipped, cut_note, listing, pick, rows_within, trust
from mcp_github.models import Done, Listing, Record
from mcp_github.policy import Head, Ref, Repo, WriteRepo
from mcp_github.requests.code.files import Diff
from mcp_github.requests.code.repositories import names_in
from mcp_github.requests.graphql_queries import DRAFT, READY, RESOLVE, THREADS, UNRESOLVE
from mcp_github.requests.work.issues import check_thread, merged

__all__ = ["COPILOT", "Pulls"]

COPILOT = "copilot-pull-request-reviewer[bot]"
"""Who is asked where Copilot is; as one who was asked it is called `Copilot`."""

_BODY = 8000
_THREAD = ("thread", "path", "line", "resolved", "outdated", "comments")
_THREAD_PAGE, _THREAD_PAGES = 20, 5


@dataclass(frozen=True)
class Pulls:
    api: Api

    async def list(
        self, repo: Repo, params: dict[str, Any], *, fields: Sequence[str] | None, limit: int, cursor: str | None
    ) -> Listing:
        what = f"the pull requests of `{repo.full}`"
        return await listing(
            self.api, f"{repo.path}/pulls", what, PULL, params=params, repo=repo, fields=fields, limit=limit,
            cursor=cursor,
        )  # fmt: skip

    async def get(self, repo: Repo, number: int, fields: Sequence[str] | None) -> Record:
        found = await self._found(repo, number)
        wanted = fields or list(PULL.getters)
        data = PULL.record(found.data, wanted)
        if data.get("body") and len(wanted) > 1:
            data["body"] = pick(found.data, clipped("body", _BODY))
        note = cut_note("body", data.values())
        return Record(uri=f"{repo.uri}/pulls/{number}", note=note, removed=found.removed or None, data=data)

    async def _found(self, repo: Repo, number: int, *, quiet: bool = False) -> Any:
        what = f"pull request #{number} of `{repo.full}`"
        hint = f"If #{number} is an issue, use `get_issue`."
        return await self.api.get(f"{repo.path}/pulls/{number}", what, repo=repo, quiet=quiet, hint=hint)

    def diff(self, repo: Repo, *, number: int | None, ref: Ref | None, base: Ref | None) -> Diff:
        """Where the differences of a pull request, a commit, or from `base` to `ref` are."""
        if number is not None:
            where = f"{repo.path}/pulls/{number}"
            return Diff(f"{where}/files", f"pull request #{number} of {repo.full}", False, total=where)
        if ref is None:
            raise Invalid("One of `number` and `ref` has to be given.")
        if base is not None:
            where = f"{repo.path}/compare/{base.path}...{ref.path}"
            return Diff(where, f"{base.name}...{ref.name} of {repo.full}", True, compares=True)
        return Diff(f"{repo.path}/commits/{ref.path}", f"commit {ref.name} of {repo.full}", True)

    async def reviews(
        self, repo: Repo, number: int, *, fields: Sequence[str] | None, limit: int, cursor: str | None
    ) -> Listing:
        what = f"the reviews of #{number} of `{repo.full}`"
        return await listing(
            self.api, f"{repo.path}/pulls/{number}/reviews", what, REVIEW, repo=repo, fields=fields, limit=limit,
            cursor=cursor,
        )  # fmt: skip

    async def threads(self, repo: Repo, number: int, *, unresolved: bool, cursor: str | None) -> Listing:
        """Threads of review comments, each with the id that a reply and a resolution take."""
        scope = [repo.key, number]
        first: dict[str, Any] = {"after": None, "skip": 0, "done": 0}
        position: dict[str, Any] = Cursor.decode("threads", cursor, scope) if cursor else first
        what = f"pull request #{number} of `{repo.full}`"
        shown: list[Any] = []
        following: dict[str, Any] | None = position
        removed = total = 0
        for _ in range(_THREAD_PAGES):
            given = {"owner": repo.owner, "name": repo.name, "number": number, "first": _THREAD_PAGE}
            answer = await self.api.graphql(THREADS, {**given, "after": position["after"]}, what, repo=repo)
            found = cast("dict[str, Any]", answer.data["repository"]["pullRequest"]["reviewThreads"])
            rows = [_thread(node) for node in found["nodes"][position["skip"] :]]
            fit = rows_within(rows, DEFAULT_PAGE_BYTES)
            following, done = None, position["done"] + fit
            if fit < len(rows):
                following = {**position, "skip": position["skip"] + fit, "done": done}
            elif found["pageInfo"]["hasNextPage"]:
                following = {"after": found["pageInfo"]["endCursor"], "skip": 0, "done": done}
            removed, total = removed + answer.removed, int(found["totalCount"])
            shown = [row for row in rows[:fit] if not (unresolved and row[3])]
            # Twenty that are resolved would look like the end.
            if shown or following is None:
                break
            position = following
        note = "comments: id, author, association, trust, created_at, body"
        if following:
            note += f". {'At most ' if unresolved else ''}{total - following['done']} more."
        return Listing(
            cursor=Cursor.encode("threads", following, scope) if following else None,
            note=note, total=total, removed=removed or None,
            columns=list(_THREAD), rows=shown,
        )  # fmt: skip

    async def check_head(self, repo: Repo, head: Head) -> None:
        """Return unless the fork that GitHub takes for the owner's is not served: it may have any name.

        Raises:
            Refused: none of those that may be meant is in the network of `repo`.
        """
        if head.among is None:
            return
        roots: list[str] = []
        for one in (repo, *head.among):
            try:
                found = await self.api.get(one.path, f"repository `{one.full}`", quiet=True)
            except NotFound:
                continue
            roots.append(str(pick(found.data, "source.full_name") or pick(found.data, "full_name")).lower())
        if not roots or roots[0] not in roots[1:]:
            raise Refused(
                f"The fork of `{repo.full}` that {quote(head.label)} names is not served here.",
                f"Served are: {self.api.policy.listed}.",
            )

    async def create(self, repo: WriteRepo, body: dict[str, Any], reviewers: Sequence[str]) -> Done:
        what = f"pull request from {quote(str(body['head']))} in `{repo.full}`"
        made = await self.api.write("POST", f"{repo.path}/pulls", what, body, repo=repo)
        number = int(made.data["number"])
        if reviewers:
            with after(
                f"Pull request #{number} is created", f"Ask others to review #{number} with `edit_pull_request`."
            ):
                await self._request(repo, number, reviewers, [])
        return self._done(repo, number, f"Created pull request #{number}.", made.data)

    async def edit(
        self, repo: WriteRepo, number: int, changes: dict[str, Any], *, draft: bool | None,
        reviewers: Sequence[str] | None, update_branch: bool,
    ) -> Done:  # fmt: skip
        """Change its fields, who is asked to review, whether it is a draft; bring its branch up to date."""
        where, what = f"{repo.path}/pulls/{number}", f"pull request #{number} of `{repo.full}`"
        if not changes and draft is None and reviewers is None and not update_branch:
            raise Invalid("Nothing was given to change.", "Pass what is to be different.")
        now = (await self._found(repo, number, quiet=True)).data
        if update_branch and (source := pick(now, "head.repo.full_name")):
            self.api.policy.require_served(str(source), f"branch of #{number}")
        made: list[str] = []

        def then() -> AbstractContextManager[None]:
            if not made:
                return nullcontext()
            done = f"{', '.join(made)} of #{number} {'are' if len(made) > 1 else 'is'} changed"
            return after(done, "Call again with what is left.")

        if changes:
            now = (await self.api.write("PATCH", where, what, changes, repo=repo)).data
            made += [f"`{name}`" for name in changes]
        if reviewers is not None:
            asked = _asked(repo, now)
            known, wanted = {name.lower() for name in asked}, merged(asked, reviewers)
            kept = {name.lower() for name in wanted}
            with then():
                await self._request(
                    repo, number, [name for name in wanted if name.lower() not in known],
                    [name for name in asked if name.lower() not in kept],
                )  # fmt: skip
            made.append("`reviewers`")
        if draft is not None and draft != now.get("draft"):
            given = {"input": {"pullRequestId": now["node_id"]}}
            with then():
                await self.api.graphql(DRAFT if draft else READY, given, what, repo=repo, writes=True)
            made.append("`draft`")
        if update_branch:
            body = {"expected_head_sha": pick(now, "head.sha")}
            with then():
                await self.api.write("PUT", f"{where}/update-branch", what, body, repo=repo)
        return self._done(repo, number, f"Changed pull request #{number}.", now)

    async def _request(self, repo: WriteRepo, number: int, more: Sequence[str], less: Sequence[str]) -> None:
        path, what = f"{repo.path}/pulls/{number}/requested_reviewers", f"the reviewers of #{number} of `{repo.full}`"
        for verb, names in (("POST", more), ("DELETE", less)):
            if names:
                teams = [name.partition("/")[2] for name in names if "/" in name]
                people = [name for name in names if "/" not in name]
                body = {"reviewers": people, **({"team_reviewers": teams} if teams else {})}
                await self.api.write(verb, path, what, body, repo=repo)

    async def merge(
        self, repo: WriteRepo, number: int, *, head: str, method: str, title: str | None, message: str | None
    ) -> Done:
        """Merge what the caller has seen: `head` is the commit they mean."""
        where, what = f"{repo.path}/pulls/{number}", f"pull request #{number} of `{repo.full}`"
        now = (await self._found(repo, number, quiet=True)).data
        if not str(pick(now, "head.sha")).startswith(head):
            raise Conflict(
                f"The head of {what} is `{pick(now, 'head.sha')}`, not {quote(head)}.", "Look at what changed."
            )
        if self.api.policy.guards_workflows:
            await self._refuse_workflows(where, what, int(now.get("changed_files") or 0))
        body = {
            "sha": pick(now, "head.sha"), "merge_method": method, "commit_title": title, "commit_message": message,
        }  # fmt: skip
        body = {name: value for name, value in body.items() if value is not None}
        made = await self.api.write("PUT", f"{where}/merge", what, body, repo=repo)
        if not made.data.get("merged"):
            raise Conflict(f"GitHub did not merge {what}: {quote(str(made.data.get('message')))}.")
        return Done(
            done=f"Merged pull request #{number}.", uri=f"{repo.uri}/pulls/{number}", data={"commit": made.data["sha"]}
        )

    async def _refuse_workflows(self, where: str, what: str, changed: int) -> None:
        params: dict[str, Any] = {"per_page": 100}
        listed = 0
        while True:
            found = await self.api.get(f"{where}/files", what, params, quiet=True)
            self.api.policy.require_mergeable(names_in(found.data))
            listed += len(found.data)
            if not found.following:
                break
            params = {**params, **found.following}
        self.api.policy.require_all_listed(listed, changed, what)

    async def resolve(self, repo: WriteRepo, number: int, thread: str, *, resolved: bool) -> Done:
        await check_thread(self.api, repo, number, thread)
        what = f"thread {quote(thread)} of #{number} of `{repo.full}`"
        query = RESOLVE if resolved else UNRESOLVE
        await self.api.graphql(query, {"input": {"threadId": thread}}, what, repo=repo, writes=True)
        return Done(done=f"Thread {thread} is {'resolved' if resolved else 'open'}.")

    @staticmethod
    def _done(repo: Repo, number: int, done: str, data: Mapping[str, Any]) -> Done:
        shown = PULL.record(data, ("number", "title", "state", "draft", "head", "head_sha", "base"))
        return Done(done=done, uri=f"{repo.uri}/pulls/{number}", url=data.get("html_url"), data=shown)


def _asked(repo: Repo, data: Mapping[str, Any]) -> list[str]:
    """Who is asked to review, as callers name them: teams with their organisation, Copilot as it is asked."""
    people = [str(item["login"]) for item in cast("list[Any]", data.get("requested_reviewers") or [])]
    teams = [f"{repo.owner}/{item['slug']}" for item in cast("list[Any]", data.get("requested_teams") or [])]
    return [COPILOT if name.lower() == "copilot" else name for name in people] + teams


def _thread(node: Mapping[str, Any]) -> list[Any]:
    said = [
        [
            item["databaseId"], author(item), item["authorAssociation"], trust(item), item["createdAt"],
            pick(item, clipped("body", 1000)),
        ]
        for item in node["comments"]["nodes"]
    ]  # fmt: skip
    if (more := node["comments"]["totalCount"] - len(said)) > 0:
        said.append([f"{more} more"])
    return [node["id"], node["path"], node["line"], node["isResolved"], node["isOutdated"], said]
