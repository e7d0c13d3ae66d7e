"""Who changed which line, as a tool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from mcp_batteries.server.declaration.decorators import tool
from mcp_github.models import Listing
from mcp_github.policy import Policy
from mcp_github.requests.code.blame import Blame
from mcp_github.tools.arguments import OptionalRefText, PathText, RepoText, parse_ref

__all__ = ["BlameTools"]


@dataclass(frozen=True)
class BlameTools:
    policy: Policy
    blame: Blame

    @tool("Read blame", toolset="code", open_world=True)
    async def read_blame(
        self,
        repo: RepoText,
        path: PathText,
        ref: OptionalRefText = None,
        start_line: Annotated[int, Field(ge=1)] = 1,
        lines: Annotated[int, Field(ge=1, le=5000)] = 500,
    ) -> Listing:
        """Read which commit last changed each line of a file, by whom and when.

        Lines of one commit are one row. Its changes: `read_diff`.
        """
        return await self.blame.read(
            self.policy.repo(repo), self.policy.file(path), parse_ref(self.policy, ref), start_line=start_line,
            max_lines=lines,
        )  # fmt: skip
