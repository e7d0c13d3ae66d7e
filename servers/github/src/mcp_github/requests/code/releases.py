"""Releases: reading and publishing them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from mcp_batteries.errors import NotFound, quote
from mcp_github.client.api import Api, ApiResponse
from mcp_github.listing.columns import RELEASE
from mcp_github.listing.pages import ListQuery, PageOptions, fetch_page
from mcp_github.listing.projections import clip, pick
from mcp_github.models import Done, Listing, Record
from mcp_github.policy import Ref, Repo, WriteRepo
from mcp_github.requests.code.branches import get_default_branch, refuse_workflows, resolve_sha

__all__ = ["Releases"]

_MAX_BODY_CHARACTERS = 8000


@dataclass(frozen=True)
class Releases:
    api: Api

    async def list(self, repo: Repo, options: PageOptions) -> Listing:
        query = ListQuery(f"{repo.path}/releases", f"the releases of `{repo.full_name}`", RELEASE, repo=repo)
        return await fetch_page(self.api, query, options)

    async def get(self, repo: Repo, tag: Ref | None) -> Record:
        """Return the release of a tag, or the latest."""
        response = await self._find(repo, tag)
        data = RELEASE.to_record(response.data, [name for name in RELEASE.getters if name != "id"])
        data["body"] = pick(response.data, clip("body", _MAX_BODY_CHARACTERS))
        uri = f"{repo.uri}/releases/{response.data.get('tag_name')}"
        return Record(uri=uri, removed=response.removed or None, data=data)

    async def create(self, repo: WriteRepo, body: dict[str, Any]) -> Done:
        tag = str(body["tag_name"])
        await self._refuse_unseen_commit(repo, tag, body.get("target_commitish"))
        response = await self.api.write("POST", f"{repo.path}/releases", _describe(repo, tag), body, repo=repo)
        return self._done(repo, "Created", response.data)

    async def edit(self, repo: WriteRepo, tag: Ref, changes: dict[str, Any]) -> Done:
        release = await self._find(repo, tag, internal=True)
        if changes.get("draft") is False:
            # GitHub makes the tag only now, perhaps where somebody else had it point.
            await self._refuse_unseen_commit(repo, tag.name, release.data.get("target_commitish"))
        path = f"{repo.path}/releases/{int(release.data['id'])}"
        response = await self.api.write("PATCH", path, _describe(repo, tag.name), changes, repo=repo)
        return self._done(repo, "Changed", response.data)

    async def delete(self, repo: WriteRepo, tag: Ref) -> Done:
        release = await self._find(repo, tag, internal=True)
        path = f"{repo.path}/releases/{int(release.data['id'])}"
        await self.api.write("DELETE", path, _describe(repo, tag.name), repo=repo)
        return Done(done=f"Deleted release {tag.name}; the tag stays.")

    async def _find(self, repo: Repo, tag: Ref | None, *, internal: bool = False) -> ApiResponse:
        """Return the release of a tag, be it a draft, which GitHub does not find by its tag; without one the latest."""
        if tag is None:
            description = f"latest release of `{repo.full_name}`"
            return await self.api.get(f"{repo.path}/releases/latest", description, repo=repo, internal=internal)
        description = _describe(repo, tag.name)
        try:
            path = f"{repo.path}/releases/tags/{tag.path}"
            return await self.api.get(path, description, repo=repo, internal=internal)
        except NotFound:
            # Drafts come first in the list, for those who may write.
            releases = await self.api.get(
                f"{repo.path}/releases", description, {"per_page": 100}, repo=repo, internal=internal
            )
            for release in releases.data:
                if release.get("tag_name") == tag.name:
                    return replace(releases, data=release)
            raise

    async def _refuse_unseen_commit(self, repo: WriteRepo, tag: str, target: str | None) -> None:
        """Raise `Refused` for a release of what no branch of the repository has, or whose workflows would run anew.

        A commit of any fork has a sha here too, and workflows run on a tag or a release as they stand at its commit.
        """
        default_branch = await get_default_branch(self.api, repo)
        sha = await self._find_tag_sha(repo, self.api.policy.ref(tag))
        if sha is None:
            if target is None or target == default_branch:
                return
            sha = await resolve_sha(self.api, repo, self.api.policy.ref(target))
            if sha.startswith(target):
                await self._refuse_foreign_commit(repo, default_branch, sha)
        await refuse_workflows(self.api, repo, sha)

    async def _find_tag_sha(self, repo: Repo, tag: Ref) -> str | None:
        """Return the commit of a tag; None if there is no such tag."""
        description = f"tag {quote(tag.name)} of `{repo.full_name}`"
        try:
            await self.api.get(f"{repo.path}/git/ref/tags/{tag.path}", description, internal=True)
            commit = await self.api.get(f"{repo.path}/commits/tags/{tag.path}", description, internal=True)
        except NotFound:
            return None
        return str(commit.data["sha"])

    async def _refuse_foreign_commit(self, repo: WriteRepo, default_branch: str, sha: str) -> None:
        """Raise `Refused` unless the commit is on the default branch."""
        description = f"commit `{sha}` of `{repo.full_name}`"
        base = self.api.policy.ref(default_branch)
        comparison = await self.api.get(f"{repo.path}/compare/{base.path}...{sha}", description, internal=True)
        self.api.policy.require_own_commit(comparison.data.get("status"), description)

    @staticmethod
    def _done(repo: WriteRepo, verb: str, release: dict[str, Any]) -> Done:
        tag = release.get("tag_name")
        uri = f"{repo.uri}/releases/{tag}"
        return Done(done=f"{verb} release {tag}.", uri=uri, url=release.get("html_url"))


def _describe(repo: Repo, tag: str) -> str:
    return f"release {quote(tag)} of `{repo.full_name}`"
