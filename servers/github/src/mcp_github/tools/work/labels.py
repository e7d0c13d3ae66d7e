"""Labels and milestones; `list_issue_options` lists them."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from mcp_batteries.errors import Invalid, quote
from mcp_batteries.server.declaration.decorators import tool
from mcp_batteries.server.declaration.fields import EMPTY_COUNTS
from mcp_batteries.server.declaration.trusted import FreeText, trusted
from mcp_github.client.api import Api
from mcp_github.listing.columns import LABEL, MILESTONE
from mcp_github.models import Done
from mcp_github.number_forms import OptionalNumber
from mcp_github.policy import LabelName, Policy, Repo
from mcp_github.tools.arguments import (
    DeleteRepoName,
    Due,
    OptionalTitle,
    WriteRepoName,
    drop_unset,
)

__all__ = ["create_label", "delete_label", "edit_label", "write_milestone"]


def _parse_color(text: str | None) -> str | None:
    if not text:
        return text
    color = text.removeprefix("#").lower()
    if color and not re.fullmatch("[0-9a-f]{6}", color):
        raise ValueError("must be six hexadecimal digits such as d73a4a")
    return color


_NAME = Field(max_length=200, description="Of the label")
Label = Annotated[LabelName, trusted(Policy.label), _NAME]
Color = Annotated[FreeText | None, AfterValidator(_parse_color), Field(description="Hex")]
Description = Annotated[FreeText | None, Field(description="One line"), EMPTY_COUNTS]


@tool("Create a label", toolset="labels", effect="write", open_world=True)
async def create_label(
    api: Api,
    *,
    repo: WriteRepoName,
    name: Annotated[FreeText, _NAME],
    color: Color = None,
    description: Description = None,
) -> Done:
    """Create a label of a repository. A name that exists is refused.

    To change it: `edit_label`.
    """
    body = drop_unset(name=name, color=color, description=description)
    response = await api.write("POST", f"{repo.path}/labels", _describe(repo, name), body, repo=repo)
    return Done(done=f"Created label {response.data['name']}.", data=LABEL.to_record(response.data))


@tool("Change a label", toolset="labels", effect="destroy", open_world=True)
async def edit_label(
    api: Api,
    *,
    repo: WriteRepoName,
    name: Label,
    new_name: Annotated[FreeText | None, Field(description="To rename it")] = None,
    color: Color = None,
    description: Description = None,
) -> Done:
    """Change a label's name, colour or description, wherever it is used; the rest stays.

    Labels of one issue: `edit_issue`.
    """
    changes = drop_unset(new_name=new_name, color=color, description=description)
    if not changes:
        raise Invalid("Nothing was given to change.", "Pass what is to be different.")
    path = f"{repo.path}/labels/{name.path}"
    response = await api.write("PATCH", path, _describe(repo, name.text), changes, repo=repo)
    return Done(done=f"Changed label {response.data['name']}.", data=LABEL.to_record(response.data))


@tool("Write a milestone", toolset="labels", effect="destroy", open_world=True)
async def write_milestone(
    api: Api,
    *,
    repo: WriteRepoName,
    number: OptionalNumber = None,
    title: OptionalTitle = None,
    description: Description = None,
    due_on: Due = None,
    state: Literal["open", "closed"] | None = None,
) -> Done:
    """Create a milestone, or change the one with this number: what is not given stays.

    Numbers: `list_issue_options`.
    """
    fields = drop_unset(title=title, description=description, due_on=due_on, state=state)
    path = f"{repo.path}/milestones"
    if number is not None:
        thing = f"milestone `{number}` of `{repo.full_name}`"
        response = await api.write("PATCH", f"{path}/{number}", thing, fields, repo=repo)
        return _milestone_done("Changed", response.data)
    if "title" not in fields:
        raise Invalid("A new milestone needs a `title`.")
    response = await api.write("POST", path, f"the milestones of `{repo.full_name}`", fields, repo=repo)
    return _milestone_done("Created", response.data)


@tool("Delete a label", toolset="labels", gate="delete", effect="destroy", open_world=True)
async def delete_label(api: Api, *, repo: DeleteRepoName, name: Label) -> Done:
    """Delete a label, wherever it is used. The issues stay. To rename: `edit_label`."""
    await api.write("DELETE", f"{repo.path}/labels/{name.path}", _describe(repo, name.text), repo=repo)
    return Done(done=f"Deleted label {name.text}.")


def _milestone_done(verb: str, milestone: dict[str, Any]) -> Done:
    return Done(
        done=f"{verb} milestone {milestone['number']}.",
        url=milestone.get("html_url"),
        data=MILESTONE.to_record(milestone),
    )


def _describe(repo: Repo, name: str) -> str:
    return f"label {quote(name)} of `{repo.full_name}`"
