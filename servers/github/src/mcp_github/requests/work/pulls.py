"""Pull requests: reading, opening, changing and merging them."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from mcp_batteries.errors import Conflict, Invalid, NotFound, Refused, quote
from mcp_github.client.api import Api, ApiResponse, partial_success
from mcp_github.listing.columns import PULL
from mcp_github.listing.pages import ListQuery, PageOptions, fetch_page
from mcp_github.listing.projections import clip, clip_note, pick
from mcp_github.models import Done, Listing, Record
from mcp_github.policy import Head, Repo, WriteRepo
from mcp_github.requests.code.branches import changed_names
from mcp_github.requests.graphql_queries import DRAFT, READY
from mcp_github.requests.work.name_changes import merge_names

__all__ = ["COPILOT_REVIEWER", "MergeMethod", "Pulls"]

MergeMethod = Literal["merge", "squash", "rebase"]

# Who is asked where Copilot is; as one who was asked it is called `Copilot`.
COPILOT_REVIEWER = "copilot-pull-request-reviewer[bot]"

_MAX_BODY_CHARACTERS = 8000
_DONE_COLUMNS = ("number", "title", "state", "draft", "head", "head_sha", "base")


@dataclass
class _AppliedChanges:
    """What of an edit of several requests is done already, in the words of an error."""

    number: int
    names: list[str] = field(default_factory=list[str])

    @contextmanager
    def reported(self) -> Generator[None]:
        """Have what goes wrong in the block say what was changed before, if anything was."""
        if not self.names:
            yield
            return
        verb = "is"
        if len(self.names) > 1:
            verb = "are"
        done = f"{', '.join(self.names)} of #{self.number} {verb} changed"
        with partial_success(done, "Call again with what is left."):
            yield


@dataclass(frozen=True)
class Pulls:
    api: Api

    async def list(self, repo: Repo, params: Mapping[str, Any], options: PageOptions) -> Listing:
        query = ListQuery(
            f"{repo.path}/pulls", f"the pull requests of `{repo.full_name}`", PULL, params=params, repo=repo
        )
        return await fetch_page(self.api, query, options)

    async def get(self, repo: Repo, number: int, fields: Sequence[str] | None) -> Record:
        response = await self._fetch(repo, number)
        columns = fields or list(PULL.getters)
        data = PULL.to_record(response.data, columns)
        if data.get("body") and len(columns) > 1:
            data["body"] = pick(response.data, clip("body", _MAX_BODY_CHARACTERS))
        note = clip_note("body", data.values())
        return Record(uri=f"{repo.uri}/pulls/{number}", note=note, removed=response.removed or None, data=data)

    async def require_served_head(self, repo: Repo, head: Head) -> None:
        """Return unless the fork that GitHub takes for the owner's is not served: it may have any name.

        Raises:
            Refused: none of those that may be meant is in the network of `repo`.
        """
        if head.candidates is None:
            return
        network = await self._find_network(repo)
        for candidate in head.candidates:
            if network is not None and await self._find_network(candidate) == network:
                return
        raise Refused(
            f"The fork of `{repo.full_name}` that {quote(head.label)} names is not served here.",
            f"Served are: {self.api.policy.allow_list_text}.",
        )

    async def create(self, repo: WriteRepo, body: dict[str, Any], reviewers: Sequence[str]) -> Done:
        description = f"pull request from {quote(str(body['head']))} in `{repo.full_name}`"
        response = await self.api.write("POST", f"{repo.path}/pulls", description, body, repo=repo)
        number = int(response.data["number"])
        if reviewers:
            with partial_success(
                f"Pull request #{number} is created", f"Ask others to review #{number} with `edit_pull_request`."
            ):
                await self._send_reviewers("POST", repo, number, reviewers)
        return self._done(repo, number, f"Created pull request #{number}.", response.data)

    async def edit(
        self, repo: WriteRepo, number: int, changes: dict[str, Any], *, draft: bool | None,
        reviewers: Sequence[str] | None, update_branch: bool,
    ) -> Done:  # fmt: skip
        """Change its fields, who is asked to review, whether it is a draft; bring its branch up to date."""
        if not changes and draft is None and reviewers is None and not update_branch:
            raise Invalid("Nothing was given to change.", "Pass what is to be different.")
        pull = (await self._fetch(repo, number, internal=True)).data
        if update_branch:
            self._require_served_source(pull, number)
        applied = _AppliedChanges(number)
        if changes:
            response = await self.api.write("PATCH", _path(repo, number), _describe(repo, number), changes, repo=repo)
            pull = response.data
            applied.names += [f"`{name}`" for name in changes]
        if reviewers is not None:
            with applied.reported():
                await self._change_reviewers(repo, number, pull, reviewers)
            applied.names.append("`reviewers`")
        if draft is not None and draft != pull.get("draft"):
            with applied.reported():
                await self._set_draft(repo, number, pull, draft=draft)
            applied.names.append("`draft`")
        if update_branch:
            with applied.reported():
                await self._update_branch(repo, number, pull)
        return self._done(repo, number, f"Changed pull request #{number}.", pull)

    async def merge(
        self, repo: WriteRepo, number: int, *, head: str, method: MergeMethod, title: str | None, message: str | None
    ) -> Done:
        """Merge what the caller has seen: `head` is the commit they mean."""
        description = _describe(repo, number)
        pull = (await self._fetch(repo, number, internal=True)).data
        head_sha = pick(pull, "head.sha")
        if not str(head_sha).startswith(head):
            raise Conflict(f"The head of {description} is `{head_sha}`, not {quote(head)}.", "Look at what changed.")
        if self.api.policy.guards_workflows:
            await self._refuse_workflows(repo, number, int(pull.get("changed_files") or 0))
        body: dict[str, Any] = {"sha": head_sha, "merge_method": method}
        if title is not None:
            body["commit_title"] = title
        if message is not None:
            body["commit_message"] = message
        response = await self.api.write("PUT", f"{_path(repo, number)}/merge", description, body, repo=repo)
        if not response.data.get("merged"):
            reason = quote(str(response.data.get("message")))
            raise Conflict(f"GitHub did not merge {description}: {reason}.")
        return Done(
            done=f"Merged pull request #{number}.",
            uri=f"{repo.uri}/pulls/{number}",
            data={"commit": response.data["sha"]},
        )

    async def _fetch(self, repo: Repo, number: int, *, internal: bool = False) -> ApiResponse:
        hint = f"If #{number} is an issue, use `get_issue`."
        return await self.api.get(_path(repo, number), _describe(repo, number), repo=repo, internal=internal, hint=hint)

    async def _find_network(self, repo: Repo) -> str | None:
        """Return the name of the repository that the network of `repo` comes from; None if `repo` does not exist."""
        try:
            response = await self.api.get(repo.path, f"repository `{repo.full_name}`", internal=True)
        except NotFound:
            return None
        return str(pick(response.data, "source.full_name") or pick(response.data, "full_name")).lower()

    def _require_served_source(self, pull: Mapping[str, Any], number: int) -> None:
        """Raise `Refused` if the branch of the pull request, which would be changed, is of what is not served."""
        source = pick(pull, "head.repo.full_name")
        if source:
            self.api.policy.require_served(str(source), f"branch of #{number}")

    async def _change_reviewers(
        self, repo: WriteRepo, number: int, pull: Mapping[str, Any], reviewers: Sequence[str]
    ) -> None:
        """Ask those of `reviewers` who are not asked yet, and no longer those who are not among them."""
        current = _requested_reviewers(repo, pull)
        wished = merge_names(current, reviewers)
        current_keys = {name.lower() for name in current}
        wished_keys = {name.lower() for name in wished}
        added = [name for name in wished if name.lower() not in current_keys]
        removed = [name for name in current if name.lower() not in wished_keys]
        await self._send_reviewers("POST", repo, number, added)
        await self._send_reviewers("DELETE", repo, number, removed)

    async def _send_reviewers(
        self, method: Literal["POST", "DELETE"], repo: WriteRepo, number: int, names: Sequence[str]
    ) -> None:
        """Ask people and teams to review, or no longer."""
        if not names:
            return
        people: list[str] = []
        teams: list[str] = []
        for name in names:
            _, slash, team = name.partition("/")
            if slash:
                teams.append(team)
            else:
                people.append(name)
        body = {"reviewers": people}
        if teams:
            body["team_reviewers"] = teams
        path = f"{_path(repo, number)}/requested_reviewers"
        await self.api.write(method, path, f"the reviewers of #{number} of `{repo.full_name}`", body, repo=repo)

    async def _set_draft(self, repo: WriteRepo, number: int, pull: Mapping[str, Any], *, draft: bool) -> None:
        query = READY
        if draft:
            query = DRAFT
        variables = {"input": {"pullRequestId": pull["node_id"]}}
        await self.api.graphql(query, variables, _describe(repo, number), repo=repo, writes=True)

    async def _update_branch(self, repo: WriteRepo, number: int, pull: Mapping[str, Any]) -> None:
        body = {"expected_head_sha": pick(pull, "head.sha")}
        path = f"{_path(repo, number)}/update-branch"
        await self.api.write("PUT", path, _describe(repo, number), body, repo=repo)

    async def _refuse_workflows(self, repo: Repo, number: int, changed_count: int) -> None:
        """Raise `Refused` if one of the changed files is one that Actions would run, or GitHub does not list all."""
        description = _describe(repo, number)
        params: dict[str, Any] = {"per_page": 100}
        listed_count = 0
        while True:
            response = await self.api.get(f"{_path(repo, number)}/files", description, params, internal=True)
            self.api.policy.require_mergeable(changed_names(response.data))
            listed_count += len(response.data)
            if not response.next_page:
                break
            params |= response.next_page
        self.api.policy.require_all_listed(listed_count, changed_count, description)

    @staticmethod
    def _done(repo: Repo, number: int, sentence: str, pull: Mapping[str, Any]) -> Done:
        data = PULL.to_record(pull, _DONE_COLUMNS)
        return Done(done=sentence, uri=f"{repo.uri}/pulls/{number}", url=pull.get("html_url"), data=data)


def _requested_reviewers(repo: Repo, pull: Mapping[str, Any]) -> list[str]:
    """Return who is asked to review, as callers name them: teams with their organisation, Copilot as it is asked."""
    people = cast("list[dict[str, Any]]", pull.get("requested_reviewers") or [])
    teams = cast("list[dict[str, Any]]", pull.get("requested_teams") or [])
    names: list[str] = []
    for person in people:
        login = str(person["login"])
        if login.lower() == "copilot":
            login = COPILOT_REVIEWER
        names.append(login)
    return names + [f"{repo.owner}/{team['slug']}" for team in teams]


def _path(repo: Repo, number: int) -> str:
    return f"{repo.path}/pulls/{number}"


def _describe(repo: Repo, number: int) -> str:
    return f"pull request #{number} of `{repo.full_name}`"
