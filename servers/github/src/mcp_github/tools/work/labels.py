"""Labels and milestones, as tools; `list_issue_options` lists them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from mcp_batteries.errors import Invalid
from mcp_batteries.server.declaration.decorators import tool
from mcp_batteries.server.declaration.fields import EMPTY_COUNTS
from mcp_github.models import Done
from mcp_github.policy import Policy
from mcp_github.requests.work.labels import Labels
from mcp_github.tools.arguments import Due, OptionalNumber, OptionalTitle, RepoText, drop_unset

__all__ = ["LabelTools"]


def _parse_color(text: str | None) -> str | None:
    if not text:
        return text
    color = text.removeprefix("#").lower()
    if color and not re.fullmatch("[0-9a-f]{6}", color):
        raise ValueError("must be six hexadecimal digits such as d73a4a")
    return color


LabelName = Annotated[str, Field(max_length=200, description="Of the label")]
Color = Annotated[str | None, AfterValidator(_parse_color), Field(description="Hex")]
Description = Annotated[str | None, Field(description="One line"), EMPTY_COUNTS]


@dataclass(frozen=True)
class LabelTools:
    policy: Policy
    labels: Labels

    @tool("Create a label", toolset="labels", effect="write", open_world=True)
    async def create_label(
        self, repo: RepoText, name: LabelName, color: Color = None, description: Description = None
    ) -> Done:
        """Create a label of a repository. A name that exists is refused.

        To change it: `edit_label`.
        """
        fields = drop_unset(name=name, color=color, description=description)
        return await self.labels.create(self.policy.write_repo(repo), fields)

    @tool("Change a label", toolset="labels", effect="destroy", open_world=True)
    async def edit_label(
        self,
        repo: RepoText,
        name: LabelName,
        new_name: Annotated[str | None, Field(description="To rename it")] = None,
        color: Color = None,
        description: Description = None,
    ) -> Done:
        """Change a label's name, colour or description, wherever it is used; the rest stays.

        Labels of one issue: `edit_issue`.
        """
        fields = drop_unset(new_name=new_name, color=color, description=description)
        if not fields:
            raise Invalid("Nothing was given to change.", "Pass what is to be different.")
        return await self.labels.edit(self.policy.write_repo(repo), name, fields)

    @tool("Write a milestone", toolset="labels", effect="destroy", open_world=True)
    async def write_milestone(
        self,
        repo: RepoText,
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
        trusted_repo = self.policy.write_repo(repo)
        if number is None:
            return await self.labels.create_milestone(trusted_repo, fields)
        return await self.labels.edit_milestone(trusted_repo, number, fields)

    @tool("Delete a label", toolset="labels", gate="delete", effect="destroy", open_world=True)
    async def delete_label(self, repo: RepoText, name: LabelName) -> Done:
        """Delete a label, wherever it is used. The issues stay. To rename: `edit_label`."""
        return await self.labels.delete(self.policy.write_repo(repo, "delete"), name)
