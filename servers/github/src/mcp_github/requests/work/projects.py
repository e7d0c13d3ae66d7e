"""Projects (the second generation): boards of issues and pull requests with custom fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from mcp_batteries.errors import Invalid, NotFound, quote
from mcp_github.client.api import Api
from mcp_github.listing.columns import ISSUE
from mcp_github.listing.pages import Row, Shape, clipped, listing, names, nodes, pick, plain, shown
from mcp_github.models import Done, Listing
from mcp_github.policy import Owner, Repo
from mcp_github.requests import graphql_queries
from mcp_github.safety.taint import projects_key

__all__ = ["FieldType", "Kind", "Layout", "Projects", "Status"]

Kind = Literal["projects", "fields", "items", "views", "updates"]
FieldType = Literal["text", "number", "date", "single_select", "iteration"]
Layout = Literal["table", "board", "roadmap"]
Status = Literal["inactive", "on_track", "at_risk", "off_track", "complete"]


def _text(value: Any) -> Any:
    """A field's value or a name in the one form people see."""
    if isinstance(value, dict):
        found = cast("dict[str, Any]", value)
        for key in ("raw", "name", "title", "login", "full_name", "text", "number"):
            if key in found:
                return _text(found[key])
        return None
    if isinstance(value, list):
        return [_text(item) for item in cast("list[Any]", value)]
    return value


def _options(item: Mapping[str, Any]) -> list[Any] | None:
    found = item.get("options") or pick(item, "configuration.iterations")
    return [f"{one.get('id')}={_text(one.get('name') or one.get('title'))}" for one in found] if found else None


def _place(item: Mapping[str, Any]) -> str:
    content = cast("dict[str, Any]", item.get("content") or {})
    return str(pick(content, "base.repo.full_name") or pick(content, ISSUE.getters["repo"]) or "")


def _values(item: Mapping[str, Any]) -> dict[str, Any]:
    found = cast("list[Any]", item.get("fields") or [])
    return {str(one["name"]): _text(one.get("value")) for one in found if one.get("value") is not None}


PROJECT = Shape(
    {**plain("number", "title", "state", "public", "updated_at"), "description": "short_description",
     "owner": "owner.login"},
    ("number", "title", "state", "public", "updated_at"),
)  # fmt: skip
FIELD = Shape(
    {"field_id": "id", "name": lambda item: _text(item.get("name")), "type": "data_type", "options": _options},
    ("field_id", "name", "type", "options"),
)
ITEM = Shape(
    {
        "item_id": "id", "type": "content_type", "repo": _place, "number": "content.number", "title": "content.title",
        "state": "content.state", "assignees": names("content.assignees", "login"), "values": _values,
        "updated_at": "updated_at", "url": "content.html_url",
    },
    ("item_id", "type", "repo", "number", "title", "state", "values"),
)  # fmt: skip


VIEW = Shape(
    {**plain("number", "name", "filter"), "layout": lambda item: str(item["layout"]).removesuffix("_LAYOUT").lower(),
     "updated_at": "updatedAt"},
    ("number", "name", "layout", "filter"),
)  # fmt: skip
UPDATE = Shape(
    {"update": "id", "status": lambda item: str(item["status"] or "").lower() or None, "body": clipped("body"),
     "author": "creator.login", "created_at": "createdAt", "start": "startDate", "target": "targetDate"},
    ("update", "status", "author", "created_at", "start", "target", "body"),
)  # fmt: skip


@dataclass(frozen=True)
class Projects:
    api: Api

    async def list(
        self, owner: Owner, kind: Kind, project: int | None, query: str | None, *, fields: Sequence[str] | None,
        limit: int, cursor: str | None,
    ) -> Listing:  # fmt: skip
        """Projects of a user or organisation; the fields, items, views or status updates of one."""
        where, what = await self._where(owner), f"the projects of `{owner.login}`"
        if kind == "projects":
            return await listing(
                self.api, where, what, PROJECT, params={"q": query}, fields=fields, limit=limit, cursor=cursor,
                keep=lambda items: [item for item in items if self._shown(owner, item)],
            )  # fmt: skip
        if project is None:
            raise Invalid(f"The {kind} are those of a project.", "Pass its number as `project`.")
        where, what = f"{where}/{project}/{kind}", f"project #{project} of `{owner.login}`"
        self._shown(owner, (await self.api.get(where.rpartition("/")[0], what, quiet=True)).data)
        if kind in ("views", "updates"):
            query, shape = (
                (graphql_queries.PROJECT_VIEWS, VIEW) if kind == "views" else (graphql_queries.PROJECT_UPDATES, UPDATE)
            )
            found = "views" if kind == "views" else "statusUpdates"
            return await nodes(
                self.api, query, {"owner": owner.login, "number": project}, what, shape, fields=fields, limit=limit,
                cursor=cursor, inside=lambda data: data["repositoryOwner"]["projectV2"][found],
            )  # fmt: skip
        if kind == "fields":
            return await listing(self.api, where, what, FIELD, fields=fields, limit=limit, cursor=cursor)
        ids = await self._field_ids(owner, project)
        return await listing(
            self.api, where, what, ITEM, params={"q": query, "fields": ",".join(ids) or None}, fields=fields,
            limit=limit, cursor=cursor, keep=self._served,
        )  # fmt: skip

    def _shown(self, owner: Owner, project: Mapping[str, Any]) -> bool:
        """Put down that texts of a board are shown, which may be of anybody if it is public; True."""
        flow, key = self.api.flow, projects_key(owner)
        flow.knows(key, public=bool(project.get("public", True)) or flow.known(key))
        flow.saw(key)
        return True

    def _served(self, items: Sequence[Row]) -> Sequence[Row]:
        """Drafts, which belong to the board, and what is of a repository that is served."""
        drafts = [item for item in items if not _place(item) and item.get("content_type") == "DraftIssue"]
        return drafts or shown(self.api, [item for item in items if _place(item)], key=_place)

    async def add(self, owner: Owner, project: int, repo: Repo, number: int) -> Done:
        """Put an issue or pull request on the board, by its number."""
        what = f"#{number} of `{repo.full}`"
        found = await self.api.get(f"{repo.path}/issues/{number}", what, quiet=True)
        kind = "PullRequest" if "pull_request" in found.data else "Issue"
        body = {"type": kind, "owner": repo.owner, "repo": repo.name, "number": number}
        made = await self.api.write("POST", f"{await self._where(owner)}/{project}/items", what, body)
        item = pick(made.data, "value.id") or made.data.get("id")
        return Done(done=f"Added {repo.full}#{number} to project #{project}.", data={"item_id": item})

    async def edit(self, owner: Owner, project: int, item: int, field: str, value: Any) -> Done:
        """Set a field of an item, by the names people see; None clears it."""
        where, what = await self._where(owner), f"project #{project} of `{owner.login}`"
        found = await self._field(owner, project, field)
        body = {"fields": [{"id": found["id"], "value": _chosen(found, value)}]}
        await self.api.write("PATCH", f"{where}/{project}/items/{item}", what, body)
        return Done(done=f"Set {field} of item {item}.")

    async def remove(self, owner: Owner, project: int, item: int) -> Done:
        what = f"item `{item}` of project #{project}"
        await self.api.write("DELETE", f"{await self._where(owner)}/{project}/items/{item}", what)
        return Done(done=f"Took item {item} off project #{project}.")

    async def create(self, owner: Owner, title: str) -> Done:
        """A new, private project."""
        found = await self.api.get(f"/users/{owner}", f"`{owner.login}`", quiet=True)
        given = {"ownerId": found.data["node_id"], "title": title}
        what = f"a project of `{owner.login}`"
        made = await self.api.graphql(graphql_queries.CREATE_PROJECT, {"input": given}, what, writes=True)
        project = made.data["createProjectV2"]["projectV2"]
        done = f"Created project #{project['number']}."
        return Done(done=done, url=project["url"], data={"project": project["number"]})

    async def create_field(
        self, owner: Owner, project: int, name: str, kind: FieldType, *, options: Sequence[str], start: str | None,
        days: int,
    ) -> Done:  # fmt: skip
        """A new field of the board.

        Args:
            options: of a field of choices.
            start: of the first iteration; each lasts `days`.
        """
        if (kind == "single_select") != bool(options):
            raise Invalid("`options` are the choices of a field of the type single_select.", "Pass both or neither.")
        body: dict[str, Any] = {"name": name, "data_type": kind}
        if kind == "single_select":
            body["single_select_options"] = [{"name": item, "color": "GRAY", "description": ""} for item in options]
        elif kind == "iteration":
            if start is None:
                raise Invalid("A field of iterations needs the first one's `start`.", "Write it as 2026-01-31.")
            body["iteration_configuration"] = {"start_date": start, "duration": days}
        what = f"a field of project #{project} of `{owner.login}`"
        made = await self.api.write("POST", f"{await self._where(owner)}/{project}/fields", what, body)
        return Done(done=f"Added the field {name} to project #{project}.", data={"field_id": made.data["id"]})

    async def create_view(self, owner: Owner, project: int, name: str, layout: Layout, query: str | None) -> Done:
        """A new view of the board."""
        who = (await self.api.get(f"/users/{owner}", f"`{owner.login}`", quiet=True)).data
        place = f"/orgs/{owner}" if who.get("type") == "Organization" else f"/users/{int(who['id'])}"
        body = {"name": name, "layout": layout, **({"filter": query} if query else {})}
        what = f"a view of project #{project} of `{owner.login}`"
        await self.api.write("POST", f"{place}/projectsV2/{project}/views", what, body)
        return Done(done=f"Added the view {name} to project #{project}.")

    async def update(
        self, owner: Owner, project: int, update: str | None, *, status: Status | None, body: str | None,
        start: str | None, target: str | None,
    ) -> Done:  # fmt: skip
        """Say how the project stands, or change what was said."""
        what = f"project #{project} of `{owner.login}`"
        given: dict[str, Any] = {
            "status": status and status.upper(), "body": body, "startDate": start, "targetDate": target,
        }  # fmt: skip
        given = {name: value for name, value in given.items() if value is not None}
        if not given:
            raise Invalid("Nothing was given to say.", "Pass `status` or `body`.")
        if update is None:
            found = await self.api.get(f"{await self._where(owner)}/{project}", what, quiet=True)
            given["projectId"] = found.data["node_id"]
            await self.api.graphql(graphql_queries.CREATE_PROJECT_UPDATE, {"input": given}, what, writes=True)
            return Done(done=f"Said how project #{project} stands.")
        found = await self.api.graphql(graphql_queries.NODE_PLACE, {"id": update}, what, quiet=True)
        place: dict[str, Any] = pick(found.data, "node.project") or {}
        if place.get("number") != project or str(pick(place, "owner.login")).lower() != owner.login.lower():
            raise NotFound(f"The {what} has no update {quote(update)}.", "`list_projects` with kind=updates has them.")
        given["statusUpdateId"] = update
        await self.api.graphql(graphql_queries.EDIT_PROJECT_UPDATE, {"input": given}, what, writes=True)
        return Done(done=f"Changed an update of project #{project}.")

    async def _field(self, owner: Owner, project: int, name: str) -> dict[str, Any]:
        found = await self._fields(owner, project)
        for field in found:
            if str(_text(field.get("name"))).lower() == name.lower():
                return field
        known = ", ".join(quote(str(_text(field.get("name")))) for field in found)
        raise NotFound(f"Project #{project} has no field {quote(name)}.", f"It has: {known}.")

    async def _field_ids(self, owner: Owner, project: int) -> Sequence[str]:
        return [str(field["id"]) for field in await self._fields(owner, project)][:50]

    async def _fields(self, owner: Owner, project: int) -> Sequence[dict[str, Any]]:
        where = f"{await self._where(owner)}/{project}/fields"
        found = await self.api.get(where, f"project #{project} of `{owner.login}`", {"per_page": 100}, quiet=True)
        return found.data

    async def _where(self, owner: Owner) -> str:
        found = await self.api.get(f"/users/{owner}", f"`{owner.login}`", quiet=True)
        return f"/{'orgs' if found.data.get('type') == 'Organization' else 'users'}/{owner}/projectsV2"


def _chosen(field: Mapping[str, Any], value: Any) -> Any:
    """The id GitHub wants for a choice, which people name by its text."""
    choices = field.get("options") or pick(field, "configuration.iterations")
    if value is None or not choices:
        return value
    for one in choices:
        if str(_text(one.get("name") or one.get("title"))).lower() == str(value).lower() or one.get("id") == value:
            return one["id"]
    known = ", ".join(quote(str(_text(one.get("name") or one.get("title")))) for one in choices)
    raise Invalid(f"{quote(str(value))} is none of the choices.", f"They are: {known}.")
