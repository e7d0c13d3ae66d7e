"""Tools that talk to remotes; offered with `--fetch` and `--push`. Before a push the user is asked."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from mcp_batteries.errors import Refused
from mcp_batteries.server.calling.confirmation import Question
from mcp_batteries.server.declaration.decorators import rename_arguments, tool
from mcp_git.engine.remote.push_request import PlannedPush, PushRequest
from mcp_git.engine.service import Engine
from mcp_git.models import Answer
from mcp_git.policy import Policy
from mcp_git.tools.arguments import MAX_CALL_SECONDS, RepositoryName

__all__ = ["PushConfirmation", "RemoteTools"]

RemoteName = Annotated[str, Field(description="`list_refs` of `remotes` has them.")]
_adapt = rename_arguments(repo_path="repo", repository="repo", revision="rev")


_PUSH_TOOL = "run_push"

# Of the call that is run: what is pushed is what the user was shown, also if a branch moved while they thought.
_confirmed_push: ContextVar[PlannedPush | None] = ContextVar("asked", default=None)


@dataclass(frozen=True)
class PushConfirmation:
    """The guard of all tools that do more than read; only a push leaves the machine."""

    policy: Policy
    engine: Engine

    async def __call__(self, tool: str, values: Mapping[str, Any]) -> Question | None:
        """The question to the user; None if there is none.

        Raises:
            Problem: there is nothing to ask about, because the push can't be made.
        """
        if tool != _PUSH_TOOL:
            return None
        rev = values["rev"]
        to = values["to"]
        request = PushRequest(
            values["remote"],
            self.policy.parse_revision(rev) if rev else None,
            self.policy.parse_new_name(to) if to else None,
            values["tag"],
            values["force"],
            values["upstream"],
            values["delete"],
        )
        plan = await self.engine.plan_push(self.policy.pushable_repository(values["repo"]), request)
        _confirmed_push.set(plan)
        return Question(plan.question, "The user can push in a terminal: `git push`.")

    def confirmed_push(self) -> PlannedPush:
        """What the user agreed to in this call.

        Raises:
            Refused: they were not asked.
        """
        plan = _confirmed_push.get()
        if plan is None:
            raise Refused("The user was not asked about this push.", "Call the tool.")
        return plan


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
