"""Gists, as tools; with an allow-list of repositories there are none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from mcp_batteries.errors import Invalid
from mcp_batteries.server.declare import tool
from mcp_github.invisible import meant_path
from mcp_github.models import Done, Listing, Record
from mcp_github.policy import Policy
from mcp_github.requests.account.gists import Gists
from mcp_github.tools.arguments import Cursor, Fields, Limit, Since
from mcp_github.tools.work.issues import given

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
        self.policy.require_everything("Gists")
        whose = self.policy.owner(user) if user and user.lower() != "@me" else None
        return await self.gists.list(whose, since, fields=fields, limit=limit, cursor=cursor)

    @tool("Get a gist", toolset="gists", open_world=True)
    async def get_gist(
        self, gist: GistId, file: Annotated[str | None, Field(description="Only this one")] = None
    ) -> Record:
        """Get a gist with the text of its files, of long ones the beginning. Ids: `list_gists`."""
        self.policy.require_everything("Gists")
        return await self.gists.get(self.policy.gist(gist), file)

    @tool("Write a gist", toolset="gists", effect="destroy", open_world=True)
    async def write_gist(
        self,
        texts: Texts,
        gist: Annotated[str | None, Field(description="Id of the one to change")] = None,
        description: Annotated[str | None, Field(description="One line")] = None,
        public: Annotated[bool, Field(description="A new one is listed")] = False,
    ) -> Done:
        """Create a gist, or change the one with the id `gist`: files not named stay, one that is null is deleted."""
        policy = self.policy
        policy.require_everything("Gists")
        policy.require_write()
        files: dict[str, Any] = {
            meant_path(name): None if text is None else {"content": text} for name, text in texts.items()
        }
        if gist is None and (not files or None in files.values()):
            raise Invalid("A new gist needs a text for each of its files.")
        body = given(description=description, files=files, public=public if gist is None else None)
        return await self.gists.write(policy.gist(gist) if gist else None, body)
