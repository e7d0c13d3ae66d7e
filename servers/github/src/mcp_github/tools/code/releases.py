"""Releases, as tools; reading them is offered with repositories too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from mcp_batteries.errors import Invalid
from mcp_batteries.server.declare import tool
from mcp_github.models import Done, Listing, Record
from mcp_github.policy import Policy
from mcp_github.requests.code.releases import Releases
from mcp_github.requests.code.repositories import Repositories
from mcp_github.tools.arguments import Cursor, Fields, Limit, OptionalBody, OptionalRef, OptionalTitle, RepoName
from mcp_github.tools.work.issues import given

__all__ = ["ReleaseTools"]

Tag = Annotated[str, Field(description="Its tag")]


@dataclass(frozen=True)
class ReleaseTools:
    policy: Policy
    repositories: Repositories
    releases: Releases

    @tool("List releases", toolset=("repos", "releases"), open_world=True)
    async def list_releases(
        self, repo: RepoName, fields: Fields = None, limit: Limit = 20, cursor: Cursor = None
    ) -> Listing:
        """List a repository's releases, newest first.

        Drafts only if you may push. For notes and assets use `get_release`.
        """
        return await self.repositories.releases(self.policy.repo(repo), fields=fields, limit=limit, cursor=cursor)

    @tool("Get a release", toolset=("repos", "releases"), open_world=True)
    async def get_release(
        self, repo: RepoName, tag: Annotated[str | None, Field(description="Latest by default")] = None
    ) -> Record:
        """Get a release with its notes and assets: that of `tag`, or the latest.

        The latest is no draft or prerelease. All: `list_releases`.
        """
        at = self.policy.ref(tag) if tag else None
        return await self.repositories.release(self.policy.repo(repo), at)

    @tool("Create a release", toolset="releases", gate="releases", effect="write", open_world=True)
    async def create_release(
        self,
        repo: RepoName,
        tag: Tag,
        ref: OptionalRef = None,
        title: OptionalTitle = None,
        body: OptionalBody = None,
        draft: bool = True,
        prerelease: bool = False,
        generate_notes: bool = False,
    ) -> Done:
        """Create a release, as a draft unless told otherwise; the tag is made at `ref` if it does not exist.

        To publish it then: `edit_release`.
        """
        where, policy = self.policy.write_repo(repo, "releases"), self.policy
        fields = given(
            tag_name=policy.ref(tag).name, target_commitish=policy.ref(ref).name if ref else None, name=title,
            body=body, draft=draft, prerelease=prerelease, generate_release_notes=generate_notes,
        )  # fmt: skip
        return await self.releases.create(where, fields)

    @tool("Change a release", toolset="releases", gate="releases", effect="destroy", open_world=True)
    async def edit_release(
        self,
        repo: RepoName,
        tag: Tag,
        title: OptionalTitle = None,
        body: OptionalBody = None,
        draft: bool | None = None,
        prerelease: bool | None = None,
    ) -> Done:
        """Change a release's title or notes; publish it with draft=false. What is not given stays."""
        where = self.policy.write_repo(repo, "releases")
        fields = given(name=title, body=body, draft=draft, prerelease=prerelease)
        if not fields:
            raise Invalid("Nothing was given to change.", "Pass what is to be different.")
        return await self.releases.edit(where, self.policy.ref(tag), fields)

    @tool("Delete a release", toolset="releases", gate=("releases", "delete"), effect="destroy", open_world=True)
    async def delete_release(self, repo: RepoName, tag: Tag) -> Done:
        """Delete a release with its assets, for good; its tag stays. To change it: `edit_release`."""
        where = self.policy.write_repo(repo, "releases", "delete")
        return await self.releases.delete(where, self.policy.ref(tag))
