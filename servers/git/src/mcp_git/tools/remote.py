"""Tools that talk to remotes; offered with `--fetch` and `--push`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from mcp_batteries.server.declare import renames, tool
from mcp_git.engine.service import Engine
from mcp_git.models import Answer
from mcp_git.policy import Policy
from mcp_git.tools.arguments import MAX_CALL_SECONDS, RepositoryName
from mcp_git.tools.confirmation import PushConfirmation

__all__ = ["RemoteTools"]

RemoteName = Annotated[str, Field(description="`list_refs` of `remotes` has them.")]
_adapt = renames(repo_path="repo", repository="repo", revision="rev")


@dataclass(frozen=True)
class RemoteTools:
    policy: Policy
    engine: Engine
    consent: PushConfirmation

    @tool("Fetch", effect="destroy", gate="fetch", open_world=True, seconds=MAX_CALL_SECONDS, adapt=_adapt)
    async def run_fetch(
        self,
        remote: RemoteName = "origin",
        branch: Annotated[str, Field(description="Only this one.")] = "",
        tags: Annotated[bool, Field(description="All tags, not only those of what comes.")] = False,
        prune: Annotated[bool, Field(description="Forget branches that the remote no longer has.")] = False,
        repo: RepositoryName = "",
    ) -> Answer:
        """Fetch what a remote has; its branches are then `remote/branch`. Your branches and files stay.

        To see what came use `list_commits` with `main..origin/main`.
        """
        only = self.policy.parse_new_name(branch) if branch else None
        return await self.engine.fetch(self.policy.fetchable_repository(repo), remote, only, tags=tags, prune=prune)

    @tool("Push", effect="destroy", gate="push", open_world=True, seconds=MAX_CALL_SECONDS, adapt=_adapt)
    async def run_push(
        self,
        remote: RemoteName = "origin",
        rev: Annotated[str, Field(description="Branch, commit or tag; empty for the current branch.")] = "",
        to: Annotated[str, Field(description="Its name there; empty for its own.")] = "",
        tag: Annotated[bool, Field(description="Push `rev` as the tag it is.")] = False,
        force: Annotated[bool, Field(description="Replace what is there, if it is what was fetched last.")] = False,
        upstream: Annotated[bool, Field(description="Let the branch follow it from now on.")] = False,
        delete: Annotated[bool, Field(description="Delete the branch or tag `to` there, if it is as fetched.")] = False,
        repo: RepositoryName = "",
    ) -> Answer:
        """Push a branch or tag to a remote, or delete one there; the user is asked first. Hooks are not run.

        To see what would go use `list_commits` with `origin/main..main`.
        """
        return await self.engine.push(self.policy.pushable_repository(repo), self.consent.confirmed_push())
