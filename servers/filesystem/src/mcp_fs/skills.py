"""Skills in the served folders, with the same URIs as their files: subscribers hear of every change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mcp_types import TextResourceContents

from mcp_batteries.concurrency.threads import run_in_thread
from mcp_batteries.server.skills import Skill, skill_of
from mcp_fs.engine.reading.skills import skill_folders
from mcp_fs.policy import Policy

__all__ = ["FolderSkills"]


@dataclass(frozen=True)
class FolderSkills:
    policy: Policy
    seconds: float = 0

    async def skills(self, around: str | None = None) -> Sequence[Skill]:
        tops = [self.policy.root_path(root) for root in self.policy.roots]
        folders = await run_in_thread(lambda cancel: skill_folders(tops, around, cancel))
        skills = [skill_of(path.uri.rstrip("/"), files) for path, files in folders]
        return [skill for skill in skills if skill is not None]

    async def contents(self, uri: str) -> TextResourceContents | None:
        return None
