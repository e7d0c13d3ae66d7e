"""The user, their repositories, and the branches of these."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from mcp_batteries.errors import Conflict, Invalid, NotFound, Refused, quote
from mcp_github.client.api import Answer, Api
from mcp_github.listing.columns import (
    BRANCH,
    CODE,
    COMMIT,
    COMMIT_HIT,
    ISSUE,
    PERSON,
    PULL,
    RELEASE,
    REPOSITORY,
    TAG,
    TEAM,
    TOPIC,
)
from mcp_github.listing.pages import Row, Shape, clipped, listing, nodes, pick, shown
from mcp_github.models import Done, Listing, Record
from mcp_github.policy import Owner, Ref, Repo, WriteRepo
from mcp_github.requests.code.files import COMPARED
from mcp_github.requests.graphql_queries import TAGS

__all__ = ["Kind", "Repositories", "default_branch", "find_release", "names_in", "refuse_workflows", "sha_of"]

Kind = Literal["repositories", "code", "commits", "issues", "pull_requests", "users", "orgs", "topics"]

_FOUND = Shape(
    {
        **PULL.getters, **ISSUE.getters, "merged_at": "pull_request.merged_at",
        "merged": lambda item: pick(item, "pull_request.merged_at") is not None if "pull_request" in item else None,
    },
    ("repo", *ISSUE.default),
)  # fmt: skip
_KINDS: Mapping[str, tuple[str, Shape, str]] = {
    "repositories": ("repositories", REPOSITORY, ""), "code": ("code", CODE, ""),
    "commits": ("commits", COMMIT_HIT, ""),
    "issues": ("issues", _FOUND, "is:issue"), "pull_requests": ("issues", _FOUND, "is:pr"),
    "users": ("users", PERSON, "type:user"), "orgs": ("users", PERSON, "type:org"), "topics": ("topics", TOPIC, ""),
}  # fmt: skip
_KIND_SAID = {"is": "(?:is|type):(?:issue|pr|pull-request)", "ty": "type:(?:user|org)"}
"""Where a query says itself which of the two kinds of an index it wants."""
_TEXT_MATCHES = "application/vnd.github.text-match+json"


@dataclass(frozen=True)
class Repositories:
    api: Api

    async def me(self) -> Record:
        """Who the token belongs to, what it may do, how many requests are left, and what is served here."""
        api, policy = self.api, self.api.policy
        data: dict[str, Any] = {"served": policy.listed, "toolsets": sorted(policy.toolsets), "may": policy.may}
        note = None
        limits = await api.get("/rate_limit", "the rate limits", quiet=True)
        core = cast("dict[str, Any]", pick(limits.data, "resources.core") or {})
        data["requests_left"] = core.get("remaining")
        data["requests_of"] = core.get("limit")
        source = api.client.credentials.source
        if not source:
            looked = f" (looked in {where})" if (where := api.client.credentials.looked_in) else ""
            return Record(note=f"There is no token{looked}: only public repositories can be read.", data=data)
        data |= {"token_from": source, "token_kind": api.client.credentials.kind}
        try:
            user = await api.get("/user", "the user of this token", quiet=True)
        except Refused as problem:
            note = f"The token acts for no user. {problem.what}"
        else:
            data |= PERSON.record(user.data, ("login", "name", "company", "location", "bio", "url"))
            data["scopes"] = user.headers.get("x-oauth-scopes")
            data["token_expires"] = user.headers.get("github-authentication-token-expiration")
            if data["scopes"] is None:
                note = "GitHub tells the permissions of such a token only when a call is refused."
        return Record(note=note, data=data)

    async def teams(self, *, fields: Sequence[str] | None, limit: int, cursor: str | None) -> Listing:
        """The teams of the token's user."""

        def served(teams: Sequence[Row]) -> Sequence[Row]:
            return self.api.policy.only_owners_served(teams, key=lambda team: str(pick(team, "organization.login")))

        return await listing(
            self.api, "/user/teams", "your teams", TEAM, keep=served, fields=fields, limit=limit, cursor=cursor
        )

    async def people(
        self, place: Repo | Owner, team: str | None, *, fields: Sequence[str] | None, limit: int, cursor: str | None
    ) -> Listing:
        """Who may work on a repository, belongs to an organisation or to one of its teams."""
        repo = None
        if isinstance(place, Repo):
            path, what, repo = f"{place.path}/collaborators", f"the collaborators of `{place.full}`", place
        elif team is not None:
            path, what = f"/orgs/{place}/teams/{self.api.policy.team(team)}/members", f"the team {quote(team)}"
        else:
            path, what = f"/orgs/{place}/members", f"the organisation `{place.login}`"
        return await listing(self.api, path, what, PERSON, repo=repo, fields=fields, limit=limit, cursor=cursor)

    async def search(
        self, kind: Kind, query: str, repo: str | None, *, sort: str | None, order: str | None,
        fields: Sequence[str] | None, limit: int, cursor: str | None,
    ) -> Listing:  # fmt: skip
        """What GitHub finds, of what is served."""
        api, policy = self.api, self.api.policy
        place, shape, qualifier = _KINDS[kind]
        in_repositories = kind not in ("users", "orgs", "topics")
        bound = policy.search(query, repo, bound=in_repositories)
        # Two that exclude each other would find nothing.
        if qualifier and not re.search(rf"\b{_KIND_SAID[qualifier[:2]]}\b", bound, re.IGNORECASE):
            bound = f"{bound} {qualifier}"

        private = "private" if kind == "repositories" else "repository.private"

        def served(items: Sequence[Row]) -> Sequence[Row]:
            return shown(api, items, key=shape.getters["repo"], private=private) if in_repositories else items

        return await listing(
            api, f"/search/{place}", f"the search {quote(bound)}", shape,
            params={"q": bound, "sort": sort, "order": order}, fields=fields, limit=limit, cursor=cursor,
            inside=lambda data: data.get("items", []), keep=served,
            accept=_TEXT_MATCHES if kind == "code" else "application/vnd.github+json",
        )  # fmt: skip

    async def repository(self, repo: Repo, fields: Sequence[str] | None) -> Record:
        """One repository with the top of its README."""
        hint = "`search_github` with kind=repositories finds it by a word of its name."
        found = await self.api.get(repo.path, f"repository `{repo.full}`", repo=repo, hint=hint)
        self.api.flow.knows(repo.key, public=not found.data.get("private", False))
        data = REPOSITORY.record(found.data, fields or [name for name in REPOSITORY.getters if name != "size_kb"])
        return Record(uri=repo.uri, removed=found.removed or None, data=data)

    async def refs(
        self, repo: Repo, kind: Literal["branches", "tags"], *, fields: Sequence[str] | None, limit: int,
        cursor: str | None,
    ) -> Listing:  # fmt: skip
        what = f"the {kind} of `{repo.full}`"
        if kind == "tags" and fields and set(fields) & (TAG.getters.keys() - BRANCH.getters.keys()):
            # REST lists tags without their messages.
            given = {"owner": repo.owner, "name": repo.name}
            return await nodes(
                self.api, TAGS, given, what, TAG, inside=lambda data: data["repository"]["refs"], repo=repo,
                fields=fields, limit=limit, cursor=cursor,
            )  # fmt: skip
        return await listing(
            self.api, f"{repo.path}/{kind}", what, BRANCH, repo=repo, fields=fields, limit=limit, cursor=cursor
        )

    async def commits(
        self, repo: Repo, *, ref: Ref | None, path: str | None, number: int | None, author: str | None,
        since: str | None, until: str | None, fields: Sequence[str] | None, limit: int, cursor: str | None,
    ) -> Listing:  # fmt: skip
        """Commits of a branch, or of a pull request."""
        if number is not None:
            where, what = f"{repo.path}/pulls/{number}/commits", f"pull request #{number} of `{repo.full}`"
            params: dict[str, Any] = {}
            await self.api.require_insiders(f"{repo.path}/pulls/{number}", what)
        else:
            of = f"{quote(ref.name)} in " if ref else ""
            where, what = f"{repo.path}/commits", f"the commits of {of}`{repo.full}`"
            params = {"sha": ref.name if ref else None, "path": path, "author": author, "since": since, "until": until}
        return await listing(
            self.api, where, what, COMMIT, params=params, repo=repo, fields=fields, limit=limit, cursor=cursor,
            hint="`list_refs` shows branches and tags." if number is None else "", ends=250 if number else None,
        )  # fmt: skip

    async def commit(self, repo: Repo, ref: Ref) -> Record:
        """One commit with the files it touched."""
        found = await self.api.get(
            f"{repo.path}/commits/{ref.path}",
            f"commit {quote(ref.name)} of `{repo.full}`",
            repo=repo,
            hint="`list_refs` shows branches and tags, `list_commits` commits.",
        )
        data = COMMIT.record(found.data, ("sha", "author", "name", "date", "verified", "parents", "url"))
        data["message"] = pick(found.data, clipped("commit.message", 4000))
        data["stats"] = found.data.get("stats")
        files = cast("list[dict[str, Any]]", found.data.get("files") or [])
        data["files"] = [
            f"{file['filename']} {file['status']} +{file['additions']} -{file['deletions']}" for file in files[:60]
        ]
        more = len(files) - 60
        note = f"{'At least ' if found.following else ''}{more} more files: use read_diff." if more > 0 else None
        return Record(note=note, removed=found.removed or None, data=data)

    async def releases(self, repo: Repo, *, fields: Sequence[str] | None, limit: int, cursor: str | None) -> Listing:
        what = f"the releases of `{repo.full}`"
        return await listing(
            self.api, f"{repo.path}/releases", what, RELEASE, repo=repo, fields=fields, limit=limit, cursor=cursor
        )

    async def release(self, repo: Repo, tag: Ref | None) -> Record:
        """The release of a tag, or the latest."""
        found = await find_release(self.api, repo, tag)
        data = RELEASE.record(found.data, [name for name in RELEASE.getters if name != "id"])
        data["body"] = pick(found.data, clipped("body", 8000))
        uri = f"{repo.uri}/releases/{found.data.get('tag_name')}"
        return Record(uri=uri, removed=found.removed or None, data=data)

    async def create_branch(self, repo: WriteRepo, branch: Ref, start: Ref | None) -> Done:
        """A branch at `start`, by default the tip of the default branch."""
        sha = await sha_of(self.api, repo, start)
        if start is not None:
            await refuse_workflows(self.api, repo, sha)
        try:
            await self.api.write(
                "POST", f"{repo.path}/git/refs", f"branch {quote(branch.name)} of `{repo.full}`",
                {"ref": f"refs/heads/{branch.name}", "sha": sha},
            )  # fmt: skip
        except Invalid as problem:
            if "exists" in str(problem).lower():
                raise Conflict(f"The branch {quote(branch.name)} exists already.", "Choose another name.") from None
            raise
        return Done(done=f"Created branch {branch.name}.", data={"branch": branch.name, "sha": sha})

    async def move_branch(self, repo: WriteRepo, branch: Ref, target: Ref, *, force: bool) -> Done:
        """Have a branch point to another commit."""
        sha = await sha_of(self.api, repo, target)
        await refuse_workflows(self.api, repo, sha)
        await self.api.write(
            "PATCH", f"{repo.path}/git/refs/heads/{branch.path}", f"branch {quote(branch.name)} of `{repo.full}`",
            {"sha": sha, "force": force},
        )  # fmt: skip
        return Done(done=f"Branch {branch.name} is at {sha} now.", data={"branch": branch.name, "sha": sha})

    async def delete_branch(self, repo: WriteRepo, branch: Ref) -> Done:
        """Remove a branch, but not the default one."""
        branch = self.api.policy.deletable_branch(branch, await default_branch(self.api, repo), repo)
        sha = await sha_of(self.api, repo, branch)
        what = f"branch {quote(branch.name)} of `{repo.full}`"
        await self.api.write("DELETE", f"{repo.path}/git/refs/heads/{branch.path}", what)
        return Done(done=f"Deleted branch {branch.name}; it was at {sha}.", data={"sha": sha})

    async def create(self, repo: WriteRepo, *, description: str | None, private: bool, readme: bool) -> Done:
        """A new repository of the token's user or of an organisation."""
        body = {"name": repo.name, "description": description, "private": private, "auto_init": readme}
        body = {name: value for name, value in body.items() if value is not None}
        me = await self.api.get("/user", "the user of this token", quiet=True)
        mine = str(me.data.get("login", "")).lower() == repo.owner.lower()
        path = "/user/repos" if mine else f"/orgs/{repo.account}/repos"
        made = await self.api.write("POST", path, f"repository `{repo.full}`", body)
        return Done(done=f"Created {repo.full}.", uri=repo.uri, url=made.data.get("html_url"))

    async def fork(self, repo: Repo, target: WriteRepo) -> Done:
        """A fork of `repo` as `target`."""
        body: dict[str, Any] = {"name": target.name}
        me = await self.api.get("/user", "the user of this token", quiet=True)
        if str(me.data.get("login", "")).lower() != target.owner.lower():
            body["organization"] = target.owner
        made = await self.api.write("POST", f"{repo.path}/forks", f"a fork of `{repo.full}`", body)
        return Done(
            done=f"GitHub is making {made.data.get('full_name')}; it takes a moment.", uri=target.uri,
            url=made.data.get("html_url"),
        )  # fmt: skip

    async def delete(self, repo: WriteRepo) -> Done:
        await self.api.write("DELETE", repo.path, f"repository `{repo.full}`")
        return Done(done=f"Deleted {repo.full}.")


async def find_release(api: Api, repo: Repo, tag: Ref | None, *, quiet: bool = False) -> Answer:
    """The release of a tag, be it a draft, which GitHub does not find by its tag; without one the latest."""
    what = f"{'latest release' if tag is None else f'release {quote(tag.name)}'} of `{repo.full}`"
    path = "latest" if tag is None else f"tags/{tag.path}"
    try:
        return await api.get(f"{repo.path}/releases/{path}", what, repo=repo, quiet=quiet)
    except NotFound:
        if tag is None:
            raise
        # Drafts come first in the list, for those who may write.
        listed = await api.get(f"{repo.path}/releases", what, {"per_page": 100}, repo=repo, quiet=quiet)
        for item in listed.data:
            if item.get("tag_name") == tag.name:
                return replace(listed, data=item)
        raise


async def default_branch(api: Api, repo: Repo) -> str:
    """The name of the default branch."""
    found = await api.get(repo.path, f"repository `{repo.full}`", quiet=True)
    return str(found.data["default_branch"])


async def sha_of(api: Api, repo: Repo, ref: Ref | None) -> str:
    """The commit a branch, tag or commit names; by default that of the default branch."""
    ref = ref if ref is not None else api.policy.ref(await default_branch(api, repo))
    name = ref.name
    try:
        found = await api.get(
            f"{repo.path}/git/ref/heads/{ref.path}", f"branch {quote(name)} of `{repo.full}`", quiet=True
        )
        return str(found.data["object"]["sha"])
    except NotFound:
        what = f"branch, tag or commit {quote(name)} in `{repo.full}`"
        hint = "`list_refs` shows branches and tags."
        found = await api.get(f"{repo.path}/commits/{ref.path}", what, quiet=True, hint=hint)
        return str(found.data["sha"])


async def refuse_workflows(api: Api, repo: WriteRepo, sha: str) -> None:
    """Raise `Refused` if what `sha` holds beyond the default branch changes files Actions runs and that gate is closed.

    A branch or a tag is enough to have them run: `on: push` asks for no review. A commit of any fork has a `sha` here.
    """
    if not api.policy.guards_workflows:
        return
    base = api.policy.ref(await default_branch(api, repo))
    what = f"commit `{sha}` of `{repo.full}`"
    try:
        found = await api.get(f"{repo.path}/compare/{base.path}...{sha}", what, {"per_page": 1}, quiet=True)
    except NotFound:
        found = None
    files = cast("list[dict[str, Any]]", found.data.get("files") or []) if found else []
    complete = found is not None and len(files) < COMPARED
    api.policy.require_no_workflows(names_in(files), what, complete=complete)


def names_in(files: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names of changed files, those from before a move included."""
    return [str(file[key]) for file in files for key in ("filename", "previous_filename") if key in file]
