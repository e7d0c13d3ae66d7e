"""Decides what to ask the user before a write, by its target and what was read before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcp_batteries.server.calling.confirmation import Question
from mcp_github.policy import Policy
from mcp_github.safety.taint import GISTS, TaintTracker, projects_key

__all__ = ["Consent"]


@dataclass(frozen=True)
class Consent:
    """The guard of all tools that do more than read."""

    policy: Policy
    taint: TaintTracker

    async def __call__(self, tool: str, values: Mapping[str, Any]) -> Question | None:
        """Return the question to the user; None if there is none.

        Raises:
            Refused: flow control is strict and would have to ask.
        """
        if values.get("dry_run"):
            return None
        public = None
        if tool == "create_repository":
            public = values["private"] is False
        for key in self._destinations(tool, values):
            question = await self.taint.question_before_write(key, acts=_acts(tool, values), public=public)
            if question:
                return Question(question, self.policy.flow_fix)
        return None

    def _destinations(self, tool: str, values: Mapping[str, Any]) -> list[str]:
        """Return the keys of what a write with these arguments goes to."""
        if tool == "write_gist":
            return [GISTS]
        if tool in ("edit_notification", "edit_subscription"):
            # These write to nobody: the inbox is the user's own.
            return []
        repos = [values.get("target") or values.get("repo"), values.get("sub_repo")]
        if tool == "edit_dependency":
            repos.append(values.get("other_repo"))
        keys = [self.policy.repo(repo).key for repo in repos if isinstance(repo, str)]
        if "owner" in values:
            keys.append(projects_key(self.policy.owner(values["owner"])))
        return keys


def _acts(tool: str, values: Mapping[str, Any]) -> bool:
    """Return whether a call runs or publishes something, which is more than a text that a person may read."""
    if tool in ("create_release", "edit_release"):
        return values.get("draft") is False
    return tool in ("run_workflow", "run_copilot")
