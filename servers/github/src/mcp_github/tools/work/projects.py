"""Projects (the second generation): boards of issues and pull requests with custom fields."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, Field

from mcp_batteries.errors import Invalid, NotFound, quote
from mcp_batteries.server.declaration.decorators import tool
from mcp_batteries.server.declaration.fields import EMPTY_COUNTS
from mcp_batteries.server.declaration.trusted import FreeText, trusted
from mcp_github.client.api import Api
from mcp_github.listing.columns import ISSUE
from mcp_github.listing.graphql_pages import GraphqlQuery, fetch_graphql_page
from mcp_github.listing.pages import ListQuery, PageOptions, fetch_page, keep_served
from mcp_github.listing.projections import Item, Projection, clip, pick, pluck, same_names
from mcp_github.models import Done, Listing
from mcp_github.number_forms import Number
from mcp_github.policy import NodeId, Owner, Policy
from mcp_github.requests import graphql_queries
from mcp_github.safety.taint import projects_key
from mcp_github.tools.arguments import (
    Cursor,
    Fields,
    Limit,
    NameList,
    OptionalBody,
    OwnerName,
    Title,
    WriteOwnerName,
    WriteRepoName,
    drop_unset,
)

__all__ = [
    "create_project", "create_project_field", "create_project_item", "create_project_view", "delete_project_item",
    "edit_project_item", "list_projects", "write_project_update",
]  # fmt: skip

Part = Literal["projects", "fields", "items", "views", "updates"]
FieldType = Literal["text", "number", "date", "single_select", "iteration"]
Layout = Literal["table", "board", "roadmap"]
ProjectStatus = Literal["inactive", "on_track", "at_risk", "off_track", "complete"]

# Fields whose values are asked for with the items.
_MAX_FIELDS = 50
# Where a field's value or a name has the form that people see.
_TEXT_KEYS = ("raw", "name", "title", "login", "full_name", "text", "number")


def _parse_day(text: str | None) -> str | None:
    if not text:
        return text
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise ValueError("must be a day such as 2026-01-31") from None


Day = Annotated[FreeText | None, AfterValidator(_parse_day), Field(description="ISO 8601")]
FieldName = Annotated[FreeText, Field(min_length=1, max_length=200, description="Name")]
BoardQuery = Annotated[FreeText | None, Field(description="As on the board")]


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


@tool("List projects, fields or items", toolset="projects", open_world=True)
async def list_projects(
    api: Api,
    *,
    owner: OwnerName,
    kind: Part = "projects",
    project: Annotated[int | None, Field(ge=1, description="Its number")] = None,
    query: BoardQuery = None,
    fields: Fields = None,
    limit: Limit = 30,
    cursor: Cursor = None,
) -> Listing:
    """List an owner's projects, or a `project`'s fields, items, views or updates (`kind`).

    To set one: `edit_project_item`.
    """
    options = PageOptions(fields, limit, cursor)
    if kind == "projects":
        return await fetch_page(api, await _query_projects(api, owner, query), options)
    if project is None:
        raise Invalid(f"The {kind} are those of a project.", "Pass its number as `project`.")
    board = await _project(api, owner, project)
    response = await api.get(board.path, board.description, internal=True)
    _record_read(api, owner, response.data)
    match kind:
        case "views":
            return await _list_connection(api, board, graphql_queries.PROJECT_VIEWS, "views", _VIEW, options)
        case "updates":
            return await _list_connection(
                api, board, graphql_queries.PROJECT_UPDATES, "statusUpdates", _UPDATE, options
            )
        case "fields":
            return await fetch_page(api, ListQuery(f"{board.path}/fields", board.description, _FIELD), options)
        case "items":
            return await _list_items(api, board, query, options)


@tool("Create a project", toolset="projects", effect="write", open_world=True)
async def create_project(api: Api, *, owner: WriteOwnerName, title: Title) -> Done:
    """Create a private project with GitHub's own fields. To add some use `create_project_field`."""
    api.policy.require_no_allow_list("New projects")
    account = await _fetch_account(api, owner)
    mutation_input = {"ownerId": account["node_id"], "title": title}
    response = await api.graphql(
        graphql_queries.CREATE_PROJECT, {"input": mutation_input}, f"a project of `{owner.login}`", writes=True
    )
    project = response.data["createProjectV2"]["projectV2"]
    return Done(done=f"Created project #{project['number']}.", url=project["url"], data={"project": project["number"]})


@tool("Create a project's field", toolset="projects", effect="write", open_world=True)
async def create_project_field(
    api: Api,
    *,
    owner: WriteOwnerName,
    project: Number,
    name: FieldName,
    type: FieldType,  # noqa: A002 - the word GitHub uses
    options: Annotated[NameList, Field(description="Of single_select")] = None,
    start: Annotated[Day, Field(description="Of the first iteration")] = None,
    days: Annotated[int, Field(ge=1, le=365, description="Of an iteration")] = 14,
) -> Done:
    """Create a field of a project, empty in each item. To fill it use `edit_project_item`."""
    if (type == "single_select") != bool(options):
        raise Invalid("`options` are the choices of a field of the type single_select.", "Pass both or neither.")
    body: dict[str, Any] = {"name": name, "data_type": type}
    if options:
        body["single_select_options"] = [{"name": option, "color": "GRAY", "description": ""} for option in options]
    elif type == "iteration":
        if start is None:
            raise Invalid("A field of iterations needs the first one's `start`.", "Write it as 2026-01-31.")
        body["iteration_configuration"] = {"start_date": start, "duration": days}
    board = await _project(api, owner, project)
    response = await api.write("POST", f"{board.path}/fields", f"a field of {board.description}", body)
    return Done(done=f"Added the field {name} to project #{project}.", data={"field_id": response.data["id"]})


@tool("Create a project's view", toolset="projects", effect="write", open_world=True)
async def create_project_view(
    api: Api,
    *,
    owner: WriteOwnerName,
    project: Number,
    name: FieldName,
    layout: Layout = "table",
    query: BoardQuery = None,
) -> Done:
    """Create a view of a project, which changes no items. Its columns: `create_project_field`."""
    account = await _fetch_account(api, owner)
    account_path = f"/orgs/{owner}"
    if account.get("type") != "Organization":
        # Here GitHub wants users named by their number, and only here.
        account_path = f"/users/{int(account['id'])}"
    body = drop_unset(name=name, layout=layout, filter=query)
    description = f"a view of project #{project} of `{owner.login}`"
    await api.write("POST", f"{account_path}/projectsV2/{project}/views", description, body)
    return Done(done=f"Added the view {name} to project #{project}.")


@tool("Write a status update", toolset="projects", effect="destroy", open_world=True)
async def write_project_update(
    api: Api,
    *,
    owner: WriteOwnerName,
    project: Number,
    status: ProjectStatus | None = None,
    body: OptionalBody = None,
    start: Day = None,
    due: Day = None,
    update: Annotated[NodeId | None, trusted(Policy.node), Field(description="Id of the one to change")] = None,
) -> Done:
    """Post a status update of a project, or change parts of the one with the id `update`.

    Earlier ones: `list_projects` with kind=updates.
    """
    mutation_input = drop_unset(body=body, startDate=start, targetDate=due)
    if status is not None:
        mutation_input["status"] = status.upper()
    if not mutation_input:
        raise Invalid("Nothing was given to say.", "Pass `status` or `body`.")
    if update is not None:
        return await _edit_update(api, owner, project, update, mutation_input)
    board = await _project(api, owner, project)
    response = await api.get(board.path, board.description, internal=True)
    mutation_input["projectId"] = response.data["node_id"]
    variables = {"input": mutation_input}
    await api.graphql(graphql_queries.CREATE_PROJECT_UPDATE, variables, board.description, writes=True)
    return Done(done=f"Said how project #{project} stands.")


@tool("Add to a project", toolset="projects", effect="write", idempotent=True, open_world=True)
async def create_project_item(
    api: Api, *, owner: WriteOwnerName, project: Number, repo: WriteRepoName, number: Number
) -> Done:
    """Put an issue or pull request on a project; one there stays as it is. Values: `edit_project_item`."""
    description = f"#{number} of `{repo.full_name}`"
    issue = await api.get(f"{repo.path}/issues/{number}", description, internal=True)
    kind = "Issue"
    if "pull_request" in issue.data:
        kind = "PullRequest"
    body = {"type": kind, "owner": repo.owner, "repo": repo.name, "number": number}
    board = await _project(api, owner, project)
    response = await api.write("POST", f"{board.path}/items", description, body)
    item_id = pick(response.data, "value.id") or response.data.get("id")
    return Done(done=f"Added {repo.full_name}#{number} to project #{project}.", data={"item_id": item_id})


@tool("Set a project's field", toolset="projects", effect="destroy", open_world=True)
async def edit_project_item(
    api: Api,
    *,
    owner: WriteOwnerName,
    project: Number,
    item: Number,
    field: Annotated[FreeText, Field(description="Name")],
    value: Annotated[FreeText | float | None, Field(description="As shown; null clears"), EMPTY_COUNTS] = None,
) -> Done:
    """Set a field of an item, such as its status, in place of what it was. `list_projects` has fields and items."""
    board = await _project(api, owner, project)
    board_field = await _find_field(api, board, field)
    body = {"fields": [{"id": board_field["id"], "value": _to_field_value(board_field, value)}]}
    await api.write("PATCH", f"{board.path}/items/{item}", board.description, body)
    return Done(done=f"Set {field} of item {item}.")


@tool("Take off a project", toolset="projects", effect="destroy", open_world=True)
async def delete_project_item(api: Api, *, owner: WriteOwnerName, project: Number, item: Number) -> Done:
    """Take an item off a project's board; the issue stays. Numbers: `list_projects`."""
    board = await _project(api, owner, project)
    await api.write("DELETE", f"{board.path}/items/{item}", f"item `{item}` of project #{project}")
    return Done(done=f"Took item {item} off project #{project}.")


async def _query_projects(api: Api, owner: Owner, query: str | None) -> ListQuery:
    """Return the list of the projects of a user or organisation."""

    def select(projects: Sequence[Item]) -> Sequence[Item]:
        for project in projects:
            _record_read(api, owner, project)
        return projects

    return ListQuery(
        await _projects_path(api, owner), f"the projects of `{owner.login}`", _PROJECT, params={"q": query},
        select=select,
    )  # fmt: skip


async def _list_items(api: Api, project: _Project, query: str | None, options: PageOptions) -> Listing:
    def select(items: Sequence[Item]) -> Sequence[Item]:
        return _select_served(api, items)

    fields = await _fetch_fields(api, project)
    field_ids = ",".join(str(field["id"]) for field in fields[:_MAX_FIELDS])
    list_query = ListQuery(
        f"{project.path}/items", project.description, _ITEM,
        params={"q": query, "fields": field_ids or None}, select=select,
    )  # fmt: skip
    return await fetch_page(api, list_query, options)


async def _list_connection(
    api: Api, project: _Project, text: str, connection: str, projection: Projection, options: PageOptions
) -> Listing:
    """Return a page of what only GraphQL has of a project."""
    query = GraphqlQuery(
        text,
        {"owner": project.owner.login, "number": project.number},
        project.description,
        projection,
        find_connection=lambda data: data["repositoryOwner"]["projectV2"][connection],
    )
    return await fetch_graphql_page(api, query, options)


def _record_read(api: Api, owner: Owner, project: Mapping[str, Any]) -> None:
    """Put down that texts of a board are shown, which may be of anybody if it is public."""
    key = projects_key(owner)
    is_public = bool(project.get("public", True)) or api.taint.was_public(key)
    api.taint.record_visibility(key, public=is_public)
    api.taint.record_read(key)


def _select_served(api: Api, items: Sequence[Item]) -> Sequence[Item]:
    """Return drafts, which belong to the board, and what is of a repository that is served."""
    drafts: list[Item] = []
    repository_items: list[Item] = []
    for item in items:
        if _repo_of_item(item):
            repository_items.append(item)
        elif item.get("content_type") == "DraftIssue":
            drafts.append(item)
    return drafts or keep_served(api, repository_items, repo_getter=_repo_of_item)


async def _edit_update(api: Api, owner: Owner, number: int, update: NodeId, mutation_input: Mapping[str, Any]) -> Done:
    """Change what was said of how a project stands."""
    description = f"project #{number} of `{owner.login}`"
    response = await api.graphql(graphql_queries.NODE_PLACE, {"id": update.text}, description, internal=True)
    project: dict[str, Any] = pick(response.data, "node.project") or {}
    if project.get("number") != number or str(pick(project, "owner.login")).lower() != owner.login.lower():
        raise NotFound(
            f"The {description} has no update {quote(update.text)}.", "`list_projects` with kind=updates has them."
        )
    variables = {"input": {**mutation_input, "statusUpdateId": update.text}}
    await api.graphql(graphql_queries.EDIT_PROJECT_UPDATE, variables, description, writes=True)
    return Done(done=f"Changed an update of project #{number}.")


async def _find_field(api: Api, project: _Project, name: str) -> dict[str, Any]:
    """Return a field by the name people see."""
    fields = await _fetch_fields(api, project)
    for field in fields:
        if str(_to_text(field.get("name"))).lower() == name.lower():
            return field
    names = ", ".join(quote(str(_to_text(field.get("name")))) for field in fields)
    raise NotFound(f"Project #{project.number} has no field {quote(name)}.", f"It has: {names}.")


async def _fetch_fields(api: Api, project: _Project) -> Sequence[dict[str, Any]]:
    path = f"{project.path}/fields"
    response = await api.get(path, project.description, {"per_page": 100}, internal=True)
    return response.data


async def _fetch_account(api: Api, owner: Owner) -> dict[str, Any]:
    response = await api.get(f"/users/{owner}", f"`{owner.login}`", internal=True)
    return response.data


async def _project(api: Api, owner: Owner, number: int) -> _Project:
    return _Project(owner, number, f"{await _projects_path(api, owner)}/{number}")


async def _projects_path(api: Api, owner: Owner) -> str:
    account = await _fetch_account(api, owner)
    if account.get("type") == "Organization":
        return f"/orgs/{owner}/projectsV2"
    return f"/users/{owner}/projectsV2"


def _to_field_value(field: Mapping[str, Any], value: str | float | None) -> Any:
    """Return a value as GitHub takes it for a field: a number, a text, or the id of a choice."""
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = str(value)
    if _choices_of(field):
        return _choice_id(field, text)
    if field.get("data_type") == "number":
        return _to_number(field, text)
    return text


def _to_number(field: Mapping[str, Any], text: str) -> float:
    """Return the number that a text says.

    Raises:
        Invalid: it says none.
    """
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if number.is_integer():
        return int(number)
    if math.isfinite(number):
        return number
    name = quote(str(_to_text(field.get("name"))))
    raise Invalid(f"{name} takes a number, not {quote(text)}.", "Pass one such as 3 or 0.5; null clears the field.")


def _choice_id(field: Mapping[str, Any], text: str) -> Any:
    """Return the id GitHub wants for a choice, which people name by its text."""
    choices = _choices_of(field)
    for choice in choices:
        if str(_choice_text(choice)).lower() == text.lower() or choice.get("id") == text:
            return choice["id"]
    texts = ", ".join(quote(str(_choice_text(choice))) for choice in choices)
    raise Invalid(f"{quote(text)} is none of the choices.", f"They are: {texts}.")
