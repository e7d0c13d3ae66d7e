"""Releases, as tools; reading them is offered with repositories too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from mcp_batteries.errors import Invalid
from mcp_batteries.server.declaration.decorators import tool
from mcp_github.listing.pages import PageOptions
from mcp_github.models import Done, Listing, Record
from mcp_github.policy import Policy
from mcp_github.requests.code.releases import Releases
from mcp_github.tools.arguments import (
    Cursor,
    Fields,
    Limit,
    OptionalBody,
    OptionalRefText,
    OptionalTitle,
    RepoText,
    drop_unset,
    parse_ref,
)

__all__ = ["ReleaseTools"]

Tag = Annotated[str, Field(description="Its tag")]


@dataclass(frozen=True)
class ReleaseTools:
    policy: Policy
    releases: Releases

    @tool("List releases", toolset=("repos", "releases"), open_world=True)
    async def list_releases(
        self, repo: RepoText, fields: Fields = None, limit: Limit = 20, cursor: Cursor = None
    ) -> Listing:
        """List a repository's releases, newest first.

        Drafts only if you may push. For notes and assets use `get_release`.
        """
        return await self.releases.list(self.policy.repo(repo), PageOptions(fields, limit, cursor))

    @tool("Get a release", toolset=("repos", "releases"), open_world=True)
    async def get_release(
        self, repo: RepoText, tag: Annotated[str | None, Field(description="Latest by default")] = None
    ) -> Record:
        """Get a release with its notes and assets: that of `tag`, or the latest.

        The latest is no draft or prerelease. All: `list_releases`.
        """
        return await self.releases.get(self.policy.repo(repo), parse_ref(self.policy, tag))

    @tool("Create a release", toolset="releases", gate="releases", effect="write", open_world=True)
    async def create_release(
        self,
        repo: RepoText,
        tag: Tag,
        ref: OptionalRefText = None,
        title: OptionalTitle = None,
        body: OptionalBody = None,
        draft: bool = True,
        prerelease: bool = False,
        generate_notes: bool = False,
    ) -> Done:
        """Create a release, as a draft unless told otherwise; the tag is made at `ref` if it does not exist.

        To publish it then: `edit_release`.
        """
        trusted_repo = self.policy.write_repo(repo, "releases")
        release = drop_unset(
            tag_name=self.policy.ref(tag).name, name=title, body=body, draft=draft, prerelease=prerelease,
            generate_release_notes=generate_notes,
        )  # fmt: skip
        if ref:
            release["target_commitish"] = self.policy.ref(ref).name
        return await self.releases.create(trusted_repo, release)

    @tool("Change a release", toolset="releases", gate="releases", effect="destroy", open_world=True)
    async def edit_release(
        self,
        repo: RepoText,
        tag: Tag,
        title: OptionalTitle = None,
        body: OptionalBody = None,
        draft: bool | None = None,
        prerelease: bool | None = None,
    ) -> Done:
        """Change a release's title or notes; publish it with draft=false. What is not given stays."""
        trusted_repo = self.policy.write_repo(repo, "releases")
        changes = drop_unset(name=title, body=body, draft=draft, prerelease=prerelease)
        if not changes:
            raise Invalid("Nothing was given to change.", "Pass what is to be different.")
        return await self.releases.edit(trusted_repo, self.policy.ref(tag), changes)

    @tool("Delete a release", toolset="releases", gate=("releases", "delete"), effect="destroy", open_world=True)
    async def delete_release(self, repo: RepoText, tag: Tag) -> Done:
        """Delete a release with its assets, for good; its tag stays. To change it: `edit_release`."""
        trusted_repo = self.policy.write_repo(repo, "releases", "delete")
        return await self.releases.delete(trusted_repo, self.policy.ref(tag))
