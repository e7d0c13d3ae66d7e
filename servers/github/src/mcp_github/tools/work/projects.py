"""Projects, as tools."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Annotated

from pydantic import AfterValidator, Field

from mcp_batteries.errors import Invalid
from mcp_batteries.server.declaration.decorators import tool
from mcp_batteries.server.declaration.fields import EMPTY_COUNTS
from mcp_github.listing.pages import PageOptions
from mcp_github.models import Done, Listing
from mcp_github.policy import Policy
from mcp_github.requests.work.projects import FieldType, Layout, NewField, Part, Projects, ProjectStatus, StatusUpdate
from mcp_github.tools.arguments import Cursor, Fields, Limit, NameList, Number, OptionalBody, RepoText, Title

__all__ = ["ProjectTools"]


def _parse_day(text: str | None) -> str | None:
    if not text:
        return text
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise ValueError("must be a day such as 2026-01-31") from None


Day = Annotated[str | None, AfterValidator(_parse_day), Field(description="ISO 8601")]
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
        kind: Part = "projects",
        project: Annotated[int | None, Field(ge=1, description="Its number")] = None,
        query: Annotated[str | None, Field(description="As on the board")] = None,
        fields: Fields = None,
        limit: Limit = 30,
        cursor: Cursor = None,
    ) -> Listing:
        """List an owner's projects, or a `project`'s fields, items, views or updates (`kind`).

        To set a value use `edit_project_item`.
        """
        trusted_owner = self.policy.owner(owner)
        options = PageOptions(fields, limit, cursor)
        if kind == "projects":
            return await self.projects.list(trusted_owner, query, options)
        if project is None:
            raise Invalid(f"The {kind} are those of a project.", "Pass its number as `project`.")
        return await self.projects.list_part(trusted_owner, project, kind, query, options)

    @tool("Create a project", toolset="projects", effect="write", open_world=True)
    async def create_project(self, owner: OwnerName, title: Title) -> Done:
        """Create a private project with GitHub's own fields. To add some use `create_project_field`."""
        self.policy.require_write()
        self.policy.require_no_allow_list("New projects")
        return await self.projects.create(self.policy.owner(owner), title)

    @tool("Create a project's field", toolset="projects", effect="write", open_world=True)
    async def create_project_field(
        self,
        owner: OwnerName,
        project: Number,
        name: FieldName,
        type: FieldType,  # noqa: A002 - the word GitHub uses
        options: Annotated[NameList, Field(description="Of single_select")] = None,
        start: Annotated[Day, Field(description="Of the first iteration")] = None,
        days: Annotated[int, Field(ge=1, le=365, description="Of an iteration")] = 14,
    ) -> Done:
        """Create a field of a project, empty in each item. To fill it use `edit_project_item`."""
        self.policy.require_write()
        field = NewField(name, type, options or [], start, days)
        return await self.projects.create_field(self.policy.owner(owner), project, field)

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
        status: ProjectStatus | None = None,
        body: OptionalBody = None,
        start: Day = None,
        due: Day = None,
        update: Annotated[str | None, Field(description="Id of the one to change")] = None,
    ) -> Done:
        """Post a status update of a project, or change parts of the one with the id `update`.

        Earlier ones: `list_projects` with kind=updates.
        """
        self.policy.require_write()
        trusted_owner = self.policy.owner(owner)
        content = StatusUpdate(status, body, start, due)
        if update:
            return await self.projects.edit_update(trusted_owner, project, self.policy.node(update).text, content)
        return await self.projects.create_update(trusted_owner, project, content)

    @tool("Add to a project", toolset="projects", effect="write", idempotent=True, open_world=True)
    async def create_project_item(self, owner: OwnerName, project: Number, repo: RepoText, number: Number) -> Done:
        """Put an issue or pull request on a project; one there stays as it is. Values: `edit_project_item`."""
        trusted_repo = self.policy.write_repo(repo)
        return await self.projects.add_item(self.policy.owner(owner), project, trusted_repo, number)

    @tool("Set a project's field", toolset="projects", effect="destroy", open_world=True)
    async def edit_project_item(
        self,
        owner: OwnerName,
        project: Number,
        item: Number,
        field: Annotated[str, Field(description="Name")],
        value: Annotated[str | float | None, Field(description="As shown; null clears"), EMPTY_COUNTS] = None,
    ) -> Done:
        """Set a field of an item, such as its status, in place of what it was. `list_projects` has fields and items."""
        self.policy.require_write()
        return await self.projects.edit_item(self.policy.owner(owner), project, item, field, value)

    @tool("Take off a project", toolset="projects", effect="destroy", open_world=True)
    async def delete_project_item(self, owner: OwnerName, project: Number, item: Number) -> Done:
        """Take an item off a project's board; the issue stays. Numbers: `list_projects`."""
        self.policy.require_write()
        return await self.projects.remove_item(self.policy.owner(owner), project, item)
