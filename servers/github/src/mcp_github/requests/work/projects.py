"""Projects (the second generation): boards of issues and pull requests with custom fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from mcp_batteries.errors import Invalid, NotFound, quote
from mcp_github.client.api import Api
from mcp_github.listing.columns import ISSUE
from mcp_github.listing.graphql_pages import GraphqlQuery, fetch_graphql_page
from mcp_github.listing.pages import ListQuery, PageOptions, fetch_page, keep_served
from mcp_github.listing.projections import Item, Projection, clip, pick, pluck, same_names
from mcp_github.models import Done, Listing
from mcp_github.policy import Owner, Repo
from mcp_github.requests import graphql_queries
from mcp_github.safety.taint import projects_key

__all__ = ["FieldType", "Layout", "NewField", "Part", "ProjectStatus", "Projects", "StatusUpdate"]

Part = Literal["projects", "fields", "items", "views", "updates"]
FieldType = Literal["text", "number", "date", "single_select", "iteration"]
Layout = Literal["table", "board", "roadmap"]
ProjectStatus = Literal["inactive", "on_track", "at_risk", "off_track", "complete"]

# Fields whose values are asked for with the items.
_MAX_FIELDS = 50
# Where a field's value or a name has the form that people see.
_TEXT_KEYS = ("raw", "name", "title", "login", "full_name", "text", "number")


def _to_text(value: Any) -> Any:
    """Return a field's value or a name in the one form people see."""
    if isinstance(value, list):
        return [_to_text(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    forms = cast("dict[str, Any]", value)
    for key in _TEXT_KEYS:
        if key in forms:
            return _to_text(forms[key])
    return None


def _choices_of(field: Item) -> Sequence[dict[str, Any]]:
    """Return the choices or iterations of a field; empty for one of another type."""
    return field.get("options") or pick(field, "configuration.iterations") or []


def _choice_text(choice: Item) -> Any:
    return _to_text(choice.get("name") or choice.get("title"))


def _describe_choices(field: Item) -> list[str] | None:
    return [f"{choice.get('id')}={_choice_text(choice)}" for choice in _choices_of(field)] or None


def _repo_of_item(item: Item) -> str:
    content = cast("dict[str, Any]", item.get("content") or {})
    return str(pick(content, "base.repo.full_name") or pick(content, ISSUE.getters["repo"]) or "")


def _values_of_item(item: Item) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for field in cast("list[dict[str, Any]]", item.get("fields") or []):
        if field.get("value") is not None:
            values[str(field["name"])] = _to_text(field["value"])
    return values


_PROJECT = Projection(
    {
        **same_names("number", "title", "state", "public", "updated_at"),
        "description": "short_description",
        "owner": "owner.login",
    },
    ("number", "title", "state", "public", "updated_at"),
)
_FIELD = Projection(
    {
        "field_id": "id",
        "name": lambda field: _to_text(field.get("name")),
        "type": "data_type",
        "options": _describe_choices,
    },
    ("field_id", "name", "type", "options"),
)
_ITEM = Projection(
    {
        "item_id": "id",
        "type": "content_type",
        "repo": _repo_of_item,
        "number": "content.number",
        "title": "content.title",
        "state": "content.state",
        "assignees": pluck("content.assignees", "login"),
        "values": _values_of_item,
        "updated_at": "updated_at",
        "url": "content.html_url",
    },
    ("item_id", "type", "repo", "number", "title", "state", "values"),
)
_VIEW = Projection(
    {
        **same_names("number", "name", "filter"),
        "layout": lambda view: str(view["layout"]).removesuffix("_LAYOUT").lower(),
        "updated_at": "updatedAt",
    },
    ("number", "name", "layout", "filter"),
)
_UPDATE = Projection(
    {
        "update": "id",
        "status": lambda update: str(update["status"] or "").lower() or None,
        "body": clip("body"),
        "author": "creator.login",
        "created_at": "createdAt",
        "start": "startDate",
        "target": "targetDate",
    },
    ("update", "status", "author", "created_at", "start", "target", "body"),
)


@dataclass(frozen=True)
class NewField:
    """A field to be created.

    Attributes:
        options: of a field of choices.
        start: of the first iteration; each lasts `days`.
    """

    name: str
    type: FieldType
    options: Sequence[str]
    start: str | None
    days: int

    def to_body(self) -> dict[str, Any]:
        """Return it as GitHub takes it.

        Raises:
            Invalid: it has what a field of its type can't have, or lacks what one needs.
        """
        if (self.type == "single_select") != bool(self.options):
            raise Invalid("`options` are the choices of a field of the type single_select.", "Pass both or neither.")
        body: dict[str, Any] = {"name": self.name, "data_type": self.type}
        if self.type == "single_select":
            choices = [{"name": option, "color": "GRAY", "description": ""} for option in self.options]
            body["single_select_options"] = choices
        elif self.type == "iteration":
            if self.start is None:
                raise Invalid("A field of iterations needs the first one's `start`.", "Write it as 2026-01-31.")
            body["iteration_configuration"] = {"start_date": self.start, "duration": self.days}
        return body


@dataclass(frozen=True)
class StatusUpdate:
    """What is said of how a project stands; what is None is not said, or stays."""

    status: ProjectStatus | None
    body: str | None
    start: str | None
    target: str | None

    def to_input(self) -> dict[str, Any]:
        """Return it as GraphQL takes it."""
        values: dict[str, Any] = {"body": self.body, "startDate": self.start, "targetDate": self.target}
        if self.status is not None:
            values["status"] = self.status.upper()
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True)
class _Project:
    """A project of somebody's.

    Attributes:
        path: of the API.
    """

    owner: Owner
    number: int
    path: str

    @property
    def description(self) -> str:
        return f"project #{self.number} of `{self.owner.login}`"


@dataclass(frozen=True)
class Projects:
    api: Api

    async def list(self, owner: Owner, query: str | None, options: PageOptions) -> Listing:
        """Return a page of the projects of a user or organisation."""

        def select(projects: Sequence[Item]) -> Sequence[Item]:
            for project in projects:
                self._record_read(owner, project)
            return projects

        list_query = ListQuery(
            await self._projects_path(owner), f"the projects of `{owner.login}`", _PROJECT, params={"q": query},
            select=select,
        )  # fmt: skip
        return await fetch_page(self.api, list_query, options)

    async def list_part(
        self, owner: Owner, number: int, part: Part, query: str | None, options: PageOptions
    ) -> Listing:
        """Return a page of the fields, items, views or status updates of a project."""
        project = await self._project(owner, number)
        response = await self.api.get(project.path, project.description, internal=True)
        self._record_read(owner, response.data)
        if part == "views":
            return await self._list_connection(project, graphql_queries.PROJECT_VIEWS, "views", _VIEW, options)
        if part == "updates":
            return await self._list_connection(
                project, graphql_queries.PROJECT_UPDATES, "statusUpdates", _UPDATE, options
            )
        if part == "fields":
            list_query = ListQuery(f"{project.path}/fields", project.description, _FIELD)
            return await fetch_page(self.api, list_query, options)
        return await self._list_items(project, query, options)

    async def _list_items(self, project: _Project, query: str | None, options: PageOptions) -> Listing:
        fields = await self._fetch_fields(project)
        field_ids = ",".join(str(field["id"]) for field in fields[:_MAX_FIELDS])
        list_query = ListQuery(
            f"{project.path}/items", project.description, _ITEM,
            params={"q": query, "fields": field_ids or None}, select=self._select_served,
        )  # fmt: skip
        return await fetch_page(self.api, list_query, options)

    async def _list_connection(
        self, project: _Project, text: str, connection: str, projection: Projection, options: PageOptions
    ) -> Listing:
        """Return a page of what only GraphQL has of a project."""
        query = GraphqlQuery(
            text,
            {"owner": project.owner.login, "number": project.number},
            project.description,
            projection,
            find_connection=lambda data: data["repositoryOwner"]["projectV2"][connection],
        )
        return await fetch_graphql_page(self.api, query, options)

    def _record_read(self, owner: Owner, project: Mapping[str, Any]) -> None:
        """Put down that texts of a board are shown, which may be of anybody if it is public."""
        key = projects_key(owner)
        is_public = bool(project.get("public", True)) or self.api.taint.was_public(key)
        self.api.taint.record_visibility(key, public=is_public)
        self.api.taint.record_read(key)

    def _select_served(self, items: Sequence[Item]) -> Sequence[Item]:
        """Return drafts, which belong to the board, and what is of a repository that is served."""
        drafts: list[Item] = []
        repository_items: list[Item] = []
        for item in items:
            if _repo_of_item(item):
                repository_items.append(item)
            elif item.get("content_type") == "DraftIssue":
                drafts.append(item)
        return drafts or keep_served(self.api, repository_items, repo_getter=_repo_of_item)

    async def add_item(self, owner: Owner, number: int, repo: Repo, issue_number: int) -> Done:
        """Put an issue or pull request on the board, by its number."""
        description = f"#{issue_number} of `{repo.full_name}`"
        issue = await self.api.get(f"{repo.path}/issues/{issue_number}", description, internal=True)
        kind = "Issue"
        if "pull_request" in issue.data:
            kind = "PullRequest"
        body = {"type": kind, "owner": repo.owner, "repo": repo.name, "number": issue_number}
        project = await self._project(owner, number)
        response = await self.api.write("POST", f"{project.path}/items", description, body)
        item_id = pick(response.data, "value.id") or response.data.get("id")
        return Done(done=f"Added {repo.full_name}#{issue_number} to project #{number}.", data={"item_id": item_id})

    async def edit_item(self, owner: Owner, number: int, item: int, field_name: str, value: Any) -> Done:
        """Set a field of an item, by the names people see; None clears it."""
        project = await self._project(owner, number)
        field = await self._find_field(project, field_name)
        body = {"fields": [{"id": field["id"], "value": _choice_id(field, value)}]}
        await self.api.write("PATCH", f"{project.path}/items/{item}", project.description, body)
        return Done(done=f"Set {field_name} of item {item}.")

    async def remove_item(self, owner: Owner, number: int, item: int) -> Done:
        description = f"item `{item}` of project #{number}"
        project = await self._project(owner, number)
        await self.api.write("DELETE", f"{project.path}/items/{item}", description)
        return Done(done=f"Took item {item} off project #{number}.")

    async def create(self, owner: Owner, title: str) -> Done:
        """Create a private project."""
        account = await self._fetch_account(owner)
        mutation_input = {"ownerId": account["node_id"], "title": title}
        response = await self.api.graphql(
            graphql_queries.CREATE_PROJECT, {"input": mutation_input}, f"a project of `{owner.login}`", writes=True
        )
        project = response.data["createProjectV2"]["projectV2"]
        return Done(
            done=f"Created project #{project['number']}.", url=project["url"], data={"project": project["number"]}
        )

    async def create_field(self, owner: Owner, number: int, field: NewField) -> Done:
        """Create a field of the board."""
        body = field.to_body()
        project = await self._project(owner, number)
        response = await self.api.write("POST", f"{project.path}/fields", f"a field of {project.description}", body)
        return Done(done=f"Added the field {field.name} to project #{number}.", data={"field_id": response.data["id"]})

    async def create_view(self, owner: Owner, number: int, name: str, layout: Layout, query: str | None) -> Done:
        """Create a view of the board."""
        account = await self._fetch_account(owner)
        account_path = f"/orgs/{owner}"
        if account.get("type") != "Organization":
            # Here GitHub wants users named by their number, and only here.
            account_path = f"/users/{int(account['id'])}"
        body: dict[str, Any] = {"name": name, "layout": layout}
        if query:
            body["filter"] = query
        description = f"a view of project #{number} of `{owner.login}`"
        await self.api.write("POST", f"{account_path}/projectsV2/{number}/views", description, body)
        return Done(done=f"Added the view {name} to project #{number}.")

    async def create_update(self, owner: Owner, number: int, update: StatusUpdate) -> Done:
        """Say how the project stands."""
        mutation_input = _require_content(update)
        project = await self._project(owner, number)
        response = await self.api.get(project.path, project.description, internal=True)
        mutation_input["projectId"] = response.data["node_id"]
        variables = {"input": mutation_input}
        await self.api.graphql(graphql_queries.CREATE_PROJECT_UPDATE, variables, project.description, writes=True)
        return Done(done=f"Said how project #{number} stands.")

    async def edit_update(self, owner: Owner, number: int, update_id: str, update: StatusUpdate) -> Done:
        """Change what was said of how the project stands."""
        mutation_input = _require_content(update)
        description = f"project #{number} of `{owner.login}`"
        response = await self.api.graphql(graphql_queries.NODE_PLACE, {"id": update_id}, description, internal=True)
        project: dict[str, Any] = pick(response.data, "node.project") or {}
        if project.get("number") != number or str(pick(project, "owner.login")).lower() != owner.login.lower():
            raise NotFound(
                f"The {description} has no update {quote(update_id)}.", "`list_projects` with kind=updates has them."
            )
        mutation_input["statusUpdateId"] = update_id
        variables = {"input": mutation_input}
        await self.api.graphql(graphql_queries.EDIT_PROJECT_UPDATE, variables, description, writes=True)
        return Done(done=f"Changed an update of project #{number}.")

    async def _find_field(self, project: _Project, name: str) -> dict[str, Any]:
        """Return a field by the name people see."""
        fields = await self._fetch_fields(project)
        for field in fields:
            if str(_to_text(field.get("name"))).lower() == name.lower():
                return field
        names = ", ".join(quote(str(_to_text(field.get("name")))) for field in fields)
        raise NotFound(f"Project #{project.number} has no field {quote(name)}.", f"It has: {names}.")

    async def _fetch_fields(self, project: _Project) -> Sequence[dict[str, Any]]:
        path = f"{project.path}/fields"
        response = await self.api.get(path, project.description, {"per_page": 100}, internal=True)
        return response.data

    async def _fetch_account(self, owner: Owner) -> dict[str, Any]:
        response = await self.api.get(f"/users/{owner}", f"`{owner.login}`", internal=True)
        return response.data

    async def _project(self, owner: Owner, number: int) -> _Project:
        return _Project(owner, number, f"{await self._projects_path(owner)}/{number}")

    async def _projects_path(self, owner: Owner) -> str:
        account = await self._fetch_account(owner)
        if account.get("type") == "Organization":
            return f"/orgs/{owner}/projectsV2"
        return f"/users/{owner}/projectsV2"


def _require_content(update: StatusUpdate) -> dict[str, Any]:
    mutation_input = update.to_input()
    if not mutation_input:
        raise Invalid("Nothing was given to say.", "Pass `status` or `body`.")
    return mutation_input


def _choice_id(field: Mapping[str, Any], value: Any) -> Any:
    """Return the id GitHub wants for a choice, which people name by its text; any other value as it is."""
    choices = _choices_of(field)
    if value is None or not choices:
        return value
    for choice in choices:
        if str(_choice_text(choice)).lower() == str(value).lower() or choice.get("id") == value:
            return choice["id"]
    texts = ", ".join(quote(str(_choice_text(choice))) for choice in choices)
    raise Invalid(f"{quote(str(value))} is none of the choices.", f"They are: {texts}.")
