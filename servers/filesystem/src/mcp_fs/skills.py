"""Skills in the served folders, with the same URIs as their files: subscribers hear of every change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mcp_types import TextResourceContents

from mcp_batteries.server.skills import Skill, skill_of
from mcp_fs.engine.service import Engine

__all__ = ["FolderSkills"]


@dataclass(frozen=True)
class FolderSkills:
    engine: Engine
    seconds: float = 0

    async def skills(self, around: str | None = None) -> Sequence[Skill]:
        folders = await self.engine.find_skills(around)
        skills = [skill_of(path.uri.rstrip("/"), files) for path, files in folders]
        return [skill for skill in skills if skill is not None]

    async def contents(self, uri: str) -> TextResourceContents | None:
        return None
