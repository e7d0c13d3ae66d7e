"""Who changed which line, as a tool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from mcp_batteries.server.declare import tool
from mcp_github.models import Listing
from mcp_github.policy import Policy
from mcp_github.requests.work.discussions import Discussions
from mcp_github.tools.arguments import OptionalRef, Path, RepoName

__all__ = ["CodeTools"]


@dataclass(frozen=True)
class CodeTools:
    policy: Policy
    discussions: Discussions

    @tool("Read blame", toolset="code", open_world=True)
    async def read_blame(
        self,
        repo: RepoName,
        path: Path,
        ref: OptionalRef = None,
        start_line: Annotated[int, Field(ge=1)] = 1,
        lines: Annotated[int, Field(ge=1, le=5000)] = 500,
    ) -> Listing:
        """Read which commit last changed each line of a file, by whom and when.

        Lines of one commit are one row. Its changes: `read_diff`.
        """
        policy = self.policy
        at = policy.ref(ref) if ref else None
        return await self.discussions.blame(
            policy.repo(repo), policy.file(path), at, start_line=start_line, lines=lines
        )
