"""What a caller wants issues to have, and the edits that bring it about."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
)

from mcp_batteries.errors import Invalid, NotFound, quote
from mcp_batteries.server.declaration.fields import EMPTY_COUNTS
from mcp_batteries.server.declaration.trusted import FreeText
from mcp_github.call_context import current_call
from mcp_github.client.api import Api
from mcp_github.number_forms import Number, OptionalNumber
from mcp_github.policy import Repo, WriteRepo
from mcp_github.requests.issue_edits import IssueEdit, describe_issue, issue_path
from mcp_github.requests.milestones import NO_MILESTONE, Milestone, find_milestone
from mcp_github.requests.name_changes import resolve_names
from mcp_github.tools.arguments import CommentText, Names, OptionalBody, OptionalTitle, drop_unset
from mcp_github.tools.work.issue_relations import COPILOT_AGENT

__all__ = [
    "Custom", "IssueState", "IssueType", "IssueValues", "MilestoneName", "StateReason", "ValuesByNumber",
    "build_edits", "resolve_assignee", "resolve_custom_fields", "resolve_milestone",
]  # fmt: skip

IssueState = Literal["open", "closed"]
StateReason = Literal["completed", "not_planned", "duplicate", "reopened"]

_MAX_EDITED = 100
_MAX_QUOTED_NAME_CHARACTERS = 60
# How callers say that an issue is to have no milestone.
_NO_MILESTONE_WORDS = ("none", "0")


def _check_milestone(text: str | None) -> str | None:
    if text is not None and re.fullmatch(r"#?-\d+", text):
        raise ValueError("must be a title, or a number from 0 on")
    return text


def _to_list(value: object) -> object:
    """Return one text as a list, as it is taken where it is an argument of its own."""
    if isinstance(value, str):
        return [value]
    return value


def _to_choice(value: object) -> object:
    """Return a text as one of GitHub's words, of which an argument of its own may have other capitals and spaces."""
    if isinstance(value, str):
        return "_".join(value.lower().split())
    return value


def _refuse_address(value: object) -> object:
    """Refuse a number with its repository: here nobody could see whether that is the one of the call."""
    if isinstance(value, str) and "/" in value:
        raise ValueError("must be the number alone")
    return value


def _check_numbers(values: object, handler: ValidatorFunctionWrapHandler) -> dict[int, IssueValues] | None:
    """Return what each issue is to have; refuse too many, and one that stands there as `4` and as `#4`."""
    each: dict[int, IssueValues] | None = handler(values)
    if each is None:
        return each
    if len(each) > _MAX_EDITED:
        raise ValueError(f"must have at most {_MAX_EDITED} numbers")
    if isinstance(values, Mapping) and len(cast("Mapping[str, object]", values)) > len(each):
        raise ValueError("must name each issue once")
    return each


IssueType = Annotated[FreeText | None, Field(description="Name"), EMPTY_COUNTS]
MilestoneName = Annotated[FreeText | None, AfterValidator(_check_milestone)]
Custom = Annotated[dict[FreeText, Any] | None, Field(description="Values by field name")]
_NameTexts = Annotated[Names, BeforeValidator(_to_list)]


class IssueValues(BaseModel):
    """What an issue is to have; None leaves it as it is."""

    model_config = ConfigDict(extra="forbid", coerce_numbers_to_str=True)

    title: OptionalTitle = None
    body: OptionalBody = None
    state: Annotated[IssueState | None, BeforeValidator(_to_choice)] = None
    state_reason: Annotated[StateReason | None, BeforeValidator(_to_choice)] = None
    labels: _NameTexts = None
    assignees: _NameTexts = None
    milestone: MilestoneName = None
    type: IssueType = None
    custom: Custom = None
    duplicate_of: Annotated[OptionalNumber, BeforeValidator(_refuse_address)] = None
    add_comment: CommentText = None

    def merge(self, own: IssueValues) -> IssueValues:
        """Return these values for one issue, which has some of its `own`."""
        return self.model_copy(update={name: getattr(own, name) for name in own.model_fields_set})


ValuesByNumber = Annotated[
    dict[Number, IssueValues] | None,
    WrapValidator(_check_numbers),
    WithJsonSchema({
        "type": "object",
        "description": (
            'By number, up to 100: `{"7": {"labels": ["+bug"], ...}}`, title to add_comment'
        ),
    }),
]  # fmt: skip


@dataclass(frozen=True)
class _FieldValue:
    """A value of a field that the organisation defines.

    Attributes:
        slug: the field's name in a filter, written as in an address.
    """

    field_id: int
    value: Any
    slug: str


async def build_edits(
    api: Api, repo: WriteRepo, numbers: Sequence[int], values: IssueValues, each: Mapping[int, IssueValues]
) -> dict[int, IssueEdit]:
    """Return the edit of each issue: of those in `numbers` alike, of those in `each` with values of their own.

    Raises:
        Invalid: nothing is to be different of one of them.
    """
    edits: dict[int, IssueEdit] = {}
    shared_edit: IssueEdit | None = None
    for number in dict.fromkeys([*numbers, *each]):
        # Each has the time of a call.
        current_call().github_seconds = 0.0
        if number in each:
            edits[number] = await _build_edit(api, repo, values.merge(each[number]))
            continue
        if shared_edit is None:
            shared_edit = await _build_edit(api, repo, values)
        edits[number] = shared_edit
    return edits


async def _build_edit(api: Api, repo: WriteRepo, values: IssueValues) -> IssueEdit:
    """Return the edit that gives an issue these values, with what they name as GitHub knows it."""
    assignees = await resolve_names(api, values.assignees, resolve_assignee)
    milestone = await resolve_milestone(api, repo, values.milestone)
    changes = drop_unset(
        title=values.title, body=values.body, state=values.state, state_reason=values.state_reason,
        labels=values.labels, assignees=assignees, milestone=milestone, type=values.type,
    )  # fmt: skip
    words: dict[str, str] = {}
    if milestone is not None:
        # GitHub takes its number, or null for none.
        changes["milestone"] = milestone.number
        words["milestone"] = milestone.title
    if values.custom:
        resolved = await resolve_custom_fields(api, repo, values.custom)
        changes["issue_field_values"] = [{"field_id": item.field_id, "value": item.value} for item in resolved]
        words["custom"] = ", ".join(f"{name} = {value}" for name, value in values.custom.items())
    if values.duplicate_of is not None:
        changes |= await _close_as_duplicate(api, repo, values.duplicate_of)
        words["duplicate_of"] = f"#{values.duplicate_of}"
    if not changes and values.add_comment is None:
        raise Invalid("Nothing was given to change.", "Pass what is to be different.")
    return IssueEdit(repo, changes, words, values.add_comment)


async def _close_as_duplicate(api: Api, repo: Repo, original_number: int) -> dict[str, Any]:
    """Return the changes that close an issue as one of another."""
    original = await api.get(
        issue_path(repo, original_number), describe_issue(repo, original_number), internal=True
    )  # fmt: skip
    return {"state": "closed", "state_reason": "duplicate", "duplicate_issue_id": int(original.data["id"])}


async def resolve_milestone(api: Api, repo: Repo, name: str | None) -> Milestone | None:
    """Return the milestone that an issue is to have; None if nothing is said of it."""
    if not name:
        return None
    if name.lower() in _NO_MILESTONE_WORDS:
        return NO_MILESTONE
    return await find_milestone(api, repo, name)


async def resolve_assignee(api: Api, name: str) -> str:
    """Return the login that GitHub knows for `name`."""
    login = await api.resolve_login(name.lstrip("+-"))
    api.policy.require_logins([login])
    if login.lower() == "copilot":
        return COPILOT_AGENT
    return login


async def resolve_custom_fields(api: Api, repo: Repo, custom: Mapping[str, Any]) -> Sequence[_FieldValue]:
    """Return the caller's values with the ids of the fields that they name."""
    description = f"the custom fields of `{repo.owner}`"
    response = await api.get(f"/orgs/{repo.account}/issue-fields", description, internal=True)
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
