"""Issues: reading, creating and changing them, and their sub-issues."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mcp_batteries.errors import Invalid, NotFound, quote
from mcp_github.client.api import Api, partial_success
from mcp_github.listing.columns import ISSUE, LABEL, MILESTONE, PERSON
from mcp_github.listing.pages import ListQuery, PageOptions, fetch_page, keep_served
from mcp_github.listing.projections import Item, Projection, clip, clip_note, pick, pluck
from mcp_github.models import Done, Listing, Record
from mcp_github.policy import Repo, WriteRepo
from mcp_github.requests.work.name_changes import has_signs, merge_names

__all__ = ["IssueOption", "Issues", "SubIssueAction"]

IssueOption = Literal["labels", "milestones", "assignees", "types", "custom"]
SubIssueAction = Literal["add", "remove", "first", "after"]

_MAX_BODY_CHARACTERS = 8000
_MAX_QUOTED_NAME_CHARACTERS = 60
_TYPE = Projection({"name": "name", "description": "description"}, ("name", "description"))
_CUSTOM_FIELD = Projection(
    {"name": "name", "kind": "data_type", "choices": pluck("options")}, ("name", "kind", "choices")
)
_LOGIN = Projection(PERSON.getters, ("login",))


@dataclass(frozen=True)
class _FieldValue:
    """A value of a field that the organisation defines.

    Attributes:
        slug: the field's name in a filter, written as in an address.
    """

    field_id: int
    value: Any
    slug: str


@dataclass(frozen=True)
class Issues:
    api: Api

    async def list(
        self, repo: Repo, params: dict[str, Any], options: PageOptions, *, labels: Sequence[str] = (),
        custom: Mapping[str, Any] | None = None,
    ) -> Listing:  # fmt: skip
        """Return a page of issues, without the pull requests GitHub puts among them.

        Args:
            labels: all of which they have.
            custom: values of the organisation's fields, all of which they have.
        """
        if custom:
            values = await self._resolve_custom_fields(repo, custom)
            params["issue_field_values"] = ",".join(f"{value.slug}:{value.value}" for value in values)
        # GitHub divides what it is asked for at commas, and a label may have one.
        params["labels"] = ",".join(label for label in labels if "," not in label) or None
        labels_with_comma = {label.lower() for label in labels if "," in label}
        get_labels = pluck("labels")

        def select(items: Sequence[Item]) -> Sequence[Item]:
            selected: list[Item] = []
            for item in items:
                item_labels = {str(name).lower() for name in pick(item, get_labels) or ()}
                if "pull_request" not in item and labels_with_comma <= item_labels:
                    selected.append(item)
            return selected

        query = ListQuery(
            f"{repo.path}/issues", f"the issues of `{repo.full_name}`", ISSUE, params=params, repo=repo, select=select
        )
        return await fetch_page(self.api, query, options)

    async def get(self, repo: Repo, number: int, fields: Sequence[str] | None) -> Record:
        """Return one issue, with its parent, sub-issues and dependencies where it has some."""
        hint = "`list_issues` and `list_pull_requests` have the numbers there are."
        response = await self.api.get(_path(repo, number), _describe(repo, number), repo=repo, hint=hint)
        issue = response.data
        columns = fields or [name for name in ISSUE.getters if name not in ("repo", "draft", "is_pull_request")]
        data = ISSUE.to_record(issue, columns)
        if data.get("body") and len(columns) > 1:
            data["body"] = pick(issue, clip("body", _MAX_BODY_CHARACTERS))
        if not fields:
            await self._add_relations(data, repo, number, issue)
        parent_url = issue.get("parent_issue_url")
        if parent_url:
            data["parent"] = _name_of_url(str(parent_url))
        note = clip_note("body", data.values())
        if "pull_request" in issue:
            note = "This is a pull request: use get_pull_request."
        return Record(uri=f"{repo.uri}/issues/{number}", note=note, removed=response.removed or None, data=data)

    async def _add_relations(self, data: dict[str, Any], repo: Repo, number: int, issue: Mapping[str, Any]) -> None:
        """Add the sub-issues of an issue, and those that it waits for or that wait for it, to its `data`."""
        relations = {
            "sub_issue_list": ("sub_issues_summary.total", "sub_issues"),
            "blocked_by": ("issue_dependencies_summary.total_blocked_by", "dependencies/blocked_by"),
            "blocking": ("issue_dependencies_summary.total_blocking", "dependencies/blocking"),
        }
        for column, (count, path) in relations.items():
            if pick(issue, count):
                related = await self.api.get(
                    f"{_path(repo, number)}/{path}", _describe(repo, number), {"per_page": 50}, repo=repo
                )
                data[column] = [self._to_related_row(item, repo) for item in related.data if item]

    def _to_related_row(self, item: dict[str, Any], repo: Repo) -> list[str]:
        """Return name, state and title of an issue that is related to one of `repo`, and may be of another."""
        full_name = str(pick(item, ISSUE.getters["repo"]) or repo.full_name)
        name = f"{full_name}#{item['number']}"
        if full_name.lower() == repo.key:
            name = f"#{item['number']}"
        if not keep_served(self.api, [item], repo_getter=lambda item: full_name):
            return [name, "not served here"]
        return [name, item["state"], item["title"]]

    async def list_options(self, repo: Repo, kind: IssueOption, options: PageOptions) -> Listing:
        """Return a page of what an issue of this repository can be given."""
        match kind:
            case "types":
                return await self._list_of_organisation(repo, kind, "issue-types", _TYPE)
            case "custom":
                return await self._list_of_organisation(repo, kind, "issue-fields", _CUSTOM_FIELD)
            case "labels":
                projection = LABEL
            case "milestones":
                projection = MILESTONE
            case "assignees":
                projection = _LOGIN
        query = ListQuery(f"{repo.path}/{kind}", f"the {kind} of `{repo.full_name}`", projection, repo=repo)
        return await fetch_page(self.api, query, options)

    async def _list_of_organisation(self, repo: Repo, kind: IssueOption, path: str, projection: Projection) -> Listing:
        """Return all that an organisation defines of a kind: GitHub does not part it in pages."""
        description = f"the {kind} of `{repo.full_name}`"
        response = await self.api.get(f"/orgs/{repo.account}/{path}", description, repo=repo)
        columns = projection.choose_columns(None)
        rows = [projection.to_row(item, columns) for item in response.data if item]
        return Listing(removed=response.removed or None, columns=columns, rows=rows)

    async def create(self, repo: WriteRepo, body: dict[str, Any], *, parent: int | None) -> Done:
        description = f"the issues of `{repo.full_name}`"
        response = await self.api.write("POST", f"{repo.path}/issues", description, body, repo=repo)
        number = int(response.data["number"])
        done = self._done(repo, number, f"Created issue #{number}.", response.data)
        if parent is not None:
            with partial_success(f"Issue #{number} is created", f"`edit_sub_issue` puts #{number} under another."):
                await self._add_sub_issue(repo, parent, int(response.data["id"]), number)
        return done

    async def edit(
        self, repo: WriteRepo, number: int, changes: dict[str, Any], *, custom: Mapping[str, Any] | None,
        duplicate_of: int | None,
    ) -> Done:  # fmt: skip
        """Change what `changes` names; lists of `+name` and `-name` add and remove, others replace."""
        if custom:
            values = await self._resolve_custom_fields(repo, custom)
            changes["issue_field_values"] = [{"field_id": item.field_id, "value": item.value} for item in values]
        if duplicate_of is not None:
            original = await self.api.get(_path(repo, duplicate_of), _describe(repo, duplicate_of), internal=True)
            changes["state"] = "closed"
            changes["state_reason"] = "duplicate"
            changes["duplicate_issue_id"] = int(original.data["id"])
        await self._resolve_name_changes(repo, number, changes)
        if not changes:
            raise Invalid("Nothing was given to change.", "Pass what is to be different.")
        response = await self.api.write("PATCH", _path(repo, number), _describe(repo, number), changes, repo=repo)
        return self._done(repo, number, f"Changed #{number}.", response.data)

    async def _resolve_name_changes(self, repo: WriteRepo, number: int, changes: dict[str, Any]) -> None:
        """Replace lists of `+name` and `-name` in `changes` by all the names that there are to be."""
        keys = {"labels": "name", "assignees": "login"}
        if not any(has_signs(changes.get(field)) for field in keys):
            return
        issue = await self.api.get(_path(repo, number), _describe(repo, number), internal=True)
        for field, key in keys.items():
            if has_signs(changes.get(field)):
                current = pick({field: issue.data.get(field) or []}, pluck(field, key))
                changes[field] = merge_names([str(name) for name in current], changes[field])

    async def _resolve_custom_fields(self, repo: Repo, custom: Mapping[str, Any]) -> Sequence[_FieldValue]:
        """Return the caller's values with the ids of the fields that they name."""
        description = f"the custom fields of `{repo.owner}`"
        response = await self.api.get(f"/orgs/{repo.account}/issue-fields", description, internal=True)
        fields = {str(field["name"]).lower(): field for field in response.data}
        values: list[_FieldValue] = []
        for name, value in custom.items():
            field = fields.get(name.lower())
            if field is None:
                names = [quote(str(field["name"]), _MAX_QUOTED_NAME_CHARACTERS) for field in response.data]
                raise NotFound(
                    f"`{repo.owner}` has no custom field {quote(name)}.", f"There are: {', '.join(names) or 'none'}."
                )
            slug = field.get("slug") or re.sub(r"\W+", "-", str(field["name"]).lower()).strip("-")
            values.append(_FieldValue(int(field["id"]), value, str(slug)))
        return values

    async def edit_sub_issue(
        self, repo: WriteRepo, number: int, child: Repo, child_number: int, action: SubIssueAction, after: int | None
    ) -> Done:
        """Put an issue under another, take it away, or move it in the order."""
        description = _describe(child, child_number)
        issue = await self.api.get(_path(child, child_number), description, internal=True)
        child_id = int(issue.data["id"])
        match action:
            case "add":
                await self._add_sub_issue(repo, number, child_id, child_number)
            case "remove":
                path = f"{_path(repo, number)}/sub_issue"
                await self.api.write("DELETE", path, description, {"sub_issue_id": child_id}, repo=repo)
            case "first" | "after":
                neighbour = await self._find_neighbour(repo, number, action, after, child_id)
                path = f"{_path(repo, number)}/sub_issues/priority"
                await self.api.write("PATCH", path, description, {"sub_issue_id": child_id, **neighbour}, repo=repo)
        return Done(done=f"Sub-issues of #{number}: {action} #{child_number}.", uri=f"{repo.uri}/issues/{number}")

    async def _find_neighbour(
        self, repo: Repo, number: int, action: Literal["first", "after"], after: int | None, child_id: int
    ) -> dict[str, int]:
        """Return the sub-issue beside which another is to stand, as GitHub wants it named."""
        description = f"the sub-issues of #{number} of `{repo.full_name}`"
        path = f"{_path(repo, number)}/sub_issues"
        response = await self.api.get(path, description, {"per_page": 100}, internal=True)
        others = [item for item in response.data if item["id"] != child_id]
        if action == "first":
            if not others:
                raise Invalid(f"#{number} has no other sub-issue.")
            return {"before_id": int(others[0]["id"])}
        for item in others:
            if item["number"] == after:
                return {"after_id": int(item["id"])}
        raise NotFound(f"#{number} has no sub-issue with the number `{after}`.", "Pass one of them as `after`.")

    async def _add_sub_issue(self, repo: WriteRepo, parent: int, child_id: int, number: int) -> None:
        description = f"#{number} under #{parent} of `{repo.full_name}`"
        path = f"{_path(repo, parent)}/sub_issues"
        await self.api.write("POST", path, description, {"sub_issue_id": child_id}, repo=repo)

    @staticmethod
    def _done(repo: Repo, number: int, sentence: str, issue: dict[str, Any]) -> Done:
        data = ISSUE.to_record(issue, ("number", "title", "state", "labels", "assignees", "milestone"))
        return Done(done=sentence, uri=f"{repo.uri}/issues/{number}", url=issue.get("html_url"), data=data)


def _path(repo: Repo, number: int) -> str:
    return f"{repo.path}/issues/{number}"


def _describe(repo: Repo, number: int) -> str:
    return f"issue #{number} of `{repo.full_name}`"


def _name_of_url(url: str) -> str:
    """Return `owner/name#1` for the API's address of an issue."""
    *_, owner, name, _, number = url.split("/")
    return f"{owner}/{name}#{number}"
