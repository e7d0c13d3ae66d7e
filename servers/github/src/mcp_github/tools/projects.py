"""Projects, as tools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from mcp_batteries.server.declare import tool
from mcp_github.engine.projects import Kind, Projects
from mcp_github.models import Done, Listing
from mcp_github.policy import Policy
from mcp_github.tools.arguments import Cursor, Fields, Limit, Number, RepoName

__all__ = ["ProjectTools"]

OwnerName = Annotated[str, Field(description="User or organisation of the project")]


@dataclass(frozen=True)
class ProjectTools:
    policy: Policy
    projects: Projects

    @tool("List projects, fields or items", toolset="projects", open_world=True)
    async def list_projects(
        self,
        owner: OwnerName,
        kind: Kind = "projects",
        project: Annotated[int | None, Field(ge=1, description="Its number")] = None,
        query: Annotated[str | None, Field(description="Filter, as on the board")] = None,
        fields: Fields = None,
        limit: Limit = 30,
        cursor: Cursor = None,
    ) -> Listing:
        """List projects, or the fields or items (with their values) of one."""
        whose = self.policy.owner(owner)
        return await self.projects.list(whose, kind, project, query, fields=fields, limit=limit, cursor=cursor)

    @tool("Add to a project", toolset="projects", effect="write", idempotent=True, open_world=True)
    async def create_project_item(self, owner: OwnerName, project: Number, repo: RepoName, number: Number) -> Done:
        """Put an issue or pull request on a project's board."""
        where = self.policy.write_repo(repo)
        return await self.projects.add(self.policy.owner(owner), project, where, number)

    @tool("Set a project's field", toolset="projects", effect="destroy", open_world=True)
    async def edit_project_item(
        self,
        owner: OwnerName,
        project: Number,
        item: Number,
        field: Annotated[str, Field(description="Name")],
        value: Annotated[str | float | None, Field(description="As shown; null clears")] = None,
    ) -> Done:
        """Set a field of an item, such as its status or iteration."""
        self.policy.require_write()
        return await self.projects.edit(self.policy.owner(owner), project, item, field, value)

    @tool("Take off a project", toolset="projects", effect="destroy", open_world=True)
    async def delete_project_item(self, owner: OwnerName, project: Number, item: Number) -> Done:
        """Take an item off a project's board; the issue itself stays."""
        self.policy.require_write()
        return await self.projects.remove(self.policy.owner(owner), project, item)
