"""Decides what to ask the user before a write, by its target and what was read before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcp_batteries.server.confirm import Question
from mcp_github.policy import Policy
from mcp_github.safety.taint import GISTS, Flow, projects_key

__all__ = ["Consent"]


@dataclass(frozen=True)
class Consent:
    """The guard of all tools that do more than read."""

    policy: Policy
    flow: Flow

    async def __call__(self, tool: str, values: Mapping[str, Any]) -> Question | None:
        """The question to the user; None if there is none.

        Raises:
            Refused: flow control is strict and would have to ask.
        """
        if values.get("dry_run"):
            return None
        public = values["private"] is False if tool == "create_repository" else None
        for key in self._destinations(tool, values):
            if question := await self.flow.question(key, acts=_acts(tool, values), public=public):
                return Question(question, self.policy.flow_fix)
        return None

    def _destinations(self, tool: str, values: Mapping[str, Any]) -> list[str]:
        """The keys of what a write with these arguments goes to."""
        if tool == "write_gist":
            return [GISTS]
        if tool in ("edit_notification", "edit_subscription"):
            # It tells nobody anything: the inbox is the user's own.
            return []
        places = [
            values.get("target") or values.get("repo"),
            values.get("sub_repo"),
            values.get("other_repo") if tool == "edit_dependency" else None,
        ]
        repos = [self.policy.repo(place).key for place in places if isinstance(place, str)]
        return repos + ([projects_key(self.policy.owner(values["owner"]))] if "owner" in values else [])


def _acts(tool: str, values: Mapping[str, Any]) -> bool:
    """Whether a call runs or publishes something, which is more than a text that a person may read."""
    if tool in ("create_release", "edit_release"):
        return values.get("draft") is False
    return tool in ("run_workflow", "run_copilot")
