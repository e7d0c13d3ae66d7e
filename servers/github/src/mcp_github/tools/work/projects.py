"""Projects, as tools."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Annotated

from pydantic import AfterValidator, Field

from mcp_batteries.server.declare import tool
from mcp_github.models import Done, Listing
from mcp_github.policy import Policy
from mcp_github.requests.work.projects import FieldType, Kind, Layout, Projects, Status
from mcp_github.tools.arguments import Cursor, Fields, Limit, Listed, Number, OptionalBody, RepoName, Title

__all__ = ["ProjectTools"]


def _day(given: str | None) -> str | None:
    try:
        return given and date.fromisoformat(given).isoformat()
    except ValueError:
        raise ValueError("must be a day such as 2026-01-31") from None


Day = Annotated[str | None, AfterValidator(_day), Field(description="ISO 8601")]
FieldName = Annotated[str, Field(min_length=1, max_length=200, description="Name")]
OwnerName = Annotated[str, Field(description="Login")]


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
        query: Annotated[str | None, Field(description="As on the board")] = None,
        fields: Fields = None,
        limit: Limit = 30,
        cursor: Cursor = None,
    ) -> Listing:
        """List an owner's projects, or a `project`'s fields, items, views or updates (`kind`).

        To set a value use `edit_project_item`.
        """
        whose = self.policy.owner(owner)
        return await self.projects.list(whose, kind, project, query, fields=fields, limit=limit, cursor=cursor)

    @tool("Create a project", toolset="projects", effect="write", open_world=True)
    async def create_project(self, owner: OwnerName, title: Title) -> Done:
        """Create a private project with GitHub's own fields. To add some use `create_project_field`."""
        self.policy.require_write()
        self.policy.require_everything("New projects")
        return await self.projects.create(self.policy.owner(owner), title)

    @tool("Create a project's field", toolset="projects", effect="write", open_world=True)
    async def create_project_field(
        self,
        owner: OwnerName,
        project: Number,
        name: FieldName,
        type: FieldType,  # noqa: A002 - the word GitHub uses
        options: Annotated[Listed, Field(description="Of single_select")] = None,
        start: Annotated[Day, Field(description="Of the first iteration")] = None,
        days: Annotated[int, Field(ge=1, le=365, description="Of an iteration")] = 14,
    ) -> Done:
        """Create a field of a project, empty in each item. To fill it use `edit_project_item`."""
        self.policy.require_write()
        whose = self.policy.owner(owner)
        return await self.projects.create_field(
            whose, project, name, type, options=options or [], start=start, days=days
        )

    @tool("Create a project's view", toolset="projects", effect="write", open_world=True)
    async def create_project_view(
        self,
        owner: OwnerName,
        project: Number,
        name: FieldName,
        layout: Layout = "table",
        query: Annotated[str | None, Field(description="As on the board")] = None,
    ) -> Done:
        """Create a view of a project, which changes no items. Its columns: `create_project_field`."""
        self.policy.require_write()
        return await self.projects.create_view(self.policy.owner(owner), project, name, layout, query)

    @tool("Write a status update", toolset="projects", effect="destroy", open_world=True)
    async def write_project_update(
        self,
        owner: OwnerName,
        project: Number,
        status: Status | None = None,
        body: OptionalBody = None,
        start: Day = None,
        due: Day = None,
        update: Annotated[str | None, Field(description="Id of the one to change")] = None,
    ) -> Done:
        """Post a status update of a project, or change parts of the one with the id `update`.

        Earlier ones: `list_projects` with kind=updates.
        """
        self.policy.require_write()
        whose, known = self.policy.owner(owner), self.policy.node(update) if update else None
        return await self.projects.update(whose, project, known, status=status, body=body, start=start, target=due)

    @tool("Add to a project", toolset="projects", effect="write", idempotent=True, open_world=True)
    async def create_project_item(self, owner: OwnerName, project: Number, repo: RepoName, number: Number) -> Done:
        """Put an issue or pull request on a project; one there stays as it is. Values: `edit_project_item`."""
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
        """Set a field of an item, such as its status, in place of what it was. `list_projects` has fields and items."""
        self.policy.require_write()
        return await self.projects.edit(self.policy.owner(owner), project, item, field, value)

    @tool("Take off a project", toolset="projects", effect="destroy", open_world=True)
    async def delete_project_item(self, owner: OwnerName, project: Number, item: Number) -> Done:
        """Take an item off a project's board; the issue stays. Numbers: `list_projects`."""
        self.policy.require_write()
        return await self.projects.remove(self.policy.owner(owner), project, item)
