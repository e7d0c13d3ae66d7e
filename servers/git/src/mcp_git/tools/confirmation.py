"""Asks the user before a push, and remembers what they agreed to."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from mcp_batteries.errors import Refused
from mcp_batteries.server.confirm import Question
from mcp_git.engine.remote.push_request import PlannedPush, PushRequest
from mcp_git.engine.service import Engine
from mcp_git.policy import Policy

__all__ = ["PUSH_TOOL", "PushConfirmation"]

PUSH_TOOL = "run_push"

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
        if tool != PUSH_TOOL:
            return None
        rev, to = values["rev"], values["to"]
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
