"""Gists, as tools; with an allow-list of repositories there are none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from mcp_batteries.errors import Invalid
from mcp_batteries.server.declaration.decorators import tool
from mcp_batteries.server.declaration.fields import EMPTY_COUNTS
from mcp_github.invisible import unescape_path
from mcp_github.listing.pages import PageOptions
from mcp_github.models import Done, Listing, Record
from mcp_github.policy import Policy
from mcp_github.requests.account.gists import Gists
from mcp_github.tools.arguments import Cursor, Fields, Limit, Since, drop_unset, parse_other_user

__all__ = ["GistTools"]

GistId = Annotated[str, Field(description="Id")]
Texts = Annotated[dict[str, str | None], Field(description="Text by file name; null deletes")]


@dataclass(frozen=True)
class GistTools:
    policy: Policy
    gists: Gists

    @tool("List gists", toolset="gists", open_world=True)
    async def list_gists(
        self,
        user: Annotated[str | None, Field(description="Login; yours by default")] = None,
        since: Since = None,
        fields: Fields = None,
        limit: Limit = 20,
        cursor: Cursor = None,
    ) -> Listing:
        """List your gists, or those of `user`. The text of one: `get_gist`."""
        self.policy.require_no_allow_list("Gists")
        return await self.gists.list(parse_other_user(self.policy, user), since, PageOptions(fields, limit, cursor))

    @tool("Get a gist", toolset="gists", open_world=True)
    async def get_gist(
        self, gist: GistId, file: Annotated[str | None, Field(description="Only this one")] = None
    ) -> Record:
        """Get a gist with the text of its files, of long ones the beginning. Ids: `list_gists`."""
        self.policy.require_no_allow_list("Gists")
        return await self.gists.get(self.policy.gist(gist), file)

    @tool("Write a gist", toolset="gists", effect="destroy", open_world=True)
    async def write_gist(
        self,
        texts: Texts,
        gist: Annotated[str | None, Field(description="Id of the one to change")] = None,
        description: Annotated[str | None, Field(description="One line"), EMPTY_COUNTS] = None,
        public: Annotated[bool, Field(description="A new one is listed")] = False,
    ) -> Done:
        """Create a gist, or change the one with the id `gist`: files not named stay, one that is null is deleted."""
        self.policy.require_no_allow_list("Gists")
        self.policy.require_write()
        files: dict[str, Any] = {}
        for name, text in texts.items():
            file = None
            if text is not None:
                file = {"content": text}
            files[unescape_path(name)] = file
        body = drop_unset(description=description, files=files)
        if gist:
            return await self.gists.edit(self.policy.gist(gist), body)
        if not files or None in files.values():
            raise Invalid("A new gist needs a text for each of its files.")
        return await self.gists.create({**body, "public": public})
