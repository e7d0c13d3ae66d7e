"""Branches and tags, and the commits that they name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mcp_batteries.errors import Conflict, Invalid, NotFound, quote
from mcp_github.client.api import Api
from mcp_github.listing.columns import BRANCH, TAG
from mcp_github.listing.graphql_pages import GraphqlQuery, fetch_graphql_page
from mcp_github.listing.pages import ListQuery, PageOptions, fetch_page
from mcp_github.models import Done, Listing
from mcp_github.policy import Ref, Repo, WriteRepo
from mcp_github.requests.code.diffs import MAX_COMPARED_FILES
from mcp_github.requests.graphql_queries import TAGS

__all__ = ["Branches", "RefKind", "changed_names", "get_default_branch", "refuse_workflows", "resolve_sha"]

RefKind = Literal["branches", "tags"]


@dataclass(frozen=True)
class Branches:
    api: Api

    async def list(self, repo: Repo, kind: RefKind, options: PageOptions) -> Listing:
        """Return a page of the branches or tags."""
        description = f"the {kind} of `{repo.full_name}`"
        tag_columns = TAG.getters.keys() - BRANCH.getters.keys()
        if kind == "tags" and tag_columns.intersection(options.fields or ()):
            # REST lists tags without their messages.
            query = GraphqlQuery(
                TAGS, {"owner": repo.owner, "name": repo.name}, description, TAG,
                find_connection=lambda data: data["repository"]["refs"], repo=repo,
            )  # fmt: skip
            return await fetch_graphql_page(self.api, query, options)
        return await fetch_page(self.api, ListQuery(f"{repo.path}/{kind}", description, BRANCH, repo=repo), options)

    async def create(self, repo: WriteRepo, branch: Ref, start: Ref | None) -> Done:
        """Create a branch at `start`, by default at the tip of the default branch."""
        sha = await resolve_sha(self.api, repo, start)
        if start is not None:
            await refuse_workflows(self.api, repo, sha)
        body = {"ref": f"refs/heads/{branch.name}", "sha": sha}
        try:
            await self.api.write("POST", f"{repo.path}/git/refs", _describe(branch, repo), body)
        except Invalid as problem:
            if "exists" in str(problem).lower():
                raise Conflict(f"The branch {quote(branch.name)} exists already.", "Choose another name.") from None
            raise
        return Done(done=f"Created branch {branch.name}.", data={"branch": branch.name, "sha": sha})

    async def move(self, repo: WriteRepo, branch: Ref, target: Ref, *, force: bool) -> Done:
        """Have a branch point to another commit."""
        sha = await resolve_sha(self.api, repo, target)
        await refuse_workflows(self.api, repo, sha)
        body = {"sha": sha, "force": force}
        path = f"{repo.path}/git/refs/heads/{branch.path}"
        await self.api.write("PATCH", path, _describe(branch, repo), body)
        return Done(done=f"Branch {branch.name} is at {sha} now.", data={"branch": branch.name, "sha": sha})

    async def delete(self, repo: WriteRepo, branch: Ref) -> Done:
        """Delete a branch, but not the default one."""
        branch = self.api.policy.deletable_branch(branch, await get_default_branch(self.api, repo), repo)
        sha = await resolve_sha(self.api, repo, branch)
        await self.api.write("DELETE", f"{repo.path}/git/refs/heads/{branch.path}", _describe(branch, repo))
        return Done(done=f"Deleted branch {branch.name}; it was at {sha}.", data={"sha": sha})


async def get_default_branch(api: Api, repo: Repo) -> str:
    """Return the name of the default branch."""
    response = await api.get(repo.path, f"repository `{repo.full_name}`", internal=True)
    return str(response.data["default_branch"])


async def resolve_sha(api: Api, repo: Repo, ref: Ref | None) -> str:
    """Return the commit that a branch, tag or commit names; by default that of the default branch."""
    if ref is None:
        ref = api.policy.ref(await get_default_branch(api, repo))
    try:
        branch = await api.get(f"{repo.path}/git/ref/heads/{ref.path}", _describe(ref, repo), internal=True)
        return str(branch.data["object"]["sha"])
    except NotFound:
        description = f"branch, tag or commit {quote(ref.name)} in `{repo.full_name}`"
        hint = "`list_refs` shows branches and tags."
        commit = await api.get(f"{repo.path}/commits/{ref.path}", description, internal=True, hint=hint)
        return str(commit.data["sha"])


async def refuse_workflows(api: Api, repo: WriteRepo, sha: str) -> None:
    """Raise `Refused` if what `sha` holds beyond the default branch changes files Actions runs and that gate is closed.

    A branch or a tag is enough to have them run: `on: push` asks for no review. A commit of any fork has a `sha` here.
    """
    if not api.policy.guards_workflows:
        return
    base = api.policy.ref(await get_default_branch(api, repo))
    description = f"commit `{sha}` of `{repo.full_name}`"
    files: Sequence[Mapping[str, Any]] = []
    is_complete = False
    try:
        path = f"{repo.path}/compare/{base.path}...{sha}"
        comparison = await api.get(path, description, {"per_page": 1}, internal=True)
    except NotFound:
        pass
    else:
        files = comparison.data.get("files") or []
        is_complete = len(files) < MAX_COMPARED_FILES
    api.policy.require_no_workflows(changed_names(files), description, complete=is_complete)


def changed_names(files: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of changed files, those from before a move included."""
    names: list[str] = []
    for file in files:
        if "filename" in file:
            names.append(str(file["filename"]))
        if "previous_filename" in file:
            names.append(str(file["previous_filename"]))
    return names


def _describe(branch: Ref, repo: Repo) -> str:
    return f"branch {quote(branch.name)} of `{repo.full_name}`"
