"""Prompts for people: the three most frequent questions about a folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from mcp_batteries.errors import quote
from mcp_batteries.server.declaration.decorators import Messages, prompt
from mcp_fs.policy import Policy
from mcp_fs.resource_contents import read_resource_contents

__all__ = ["Prompts"]

Path = Annotated[str, Field(description="Path as the tools take it; `.` is the served folder.")]


@dataclass(frozen=True)
class Prompts:
    policy: Policy

    @prompt("Explain a folder")
    async def explain_folder(self, path: Path = ".") -> str:
        """Explain what a folder holds and how its parts belong together."""
        folder = quote(self.policy.readable(path).display)
        return (
            f"Explain the folder {folder} to somebody who has never seen it. Begin with `list_tree` for its shape,"
            " then read what says most about it: a README, a manifest, an entry point. Say what it is for, what "
            "each part does, how the parts belong together, and where a newcomer should start reading. Name files"
            " by their paths. Say what you did not look at."
        )

    @prompt("Review a file")
    async def review_file(
        self,
        path: Path,
        focus: Annotated[str, Field(description="What matters most, such as security or style.")] = "",
    ) -> Messages:
        """Review one file and propose changes."""
        file = self.policy.readable(path)
        contents = await read_resource_contents(file, file.uri)
        attention = ""
        if focus:
            attention = f" Pay most attention to this: {focus}."
        ask = (
            f"Review the file {quote(file.display)}, attached.{attention} For each finding give the line, what is"
            " wrong, why it matters, and the smallest change that mends it, the most important first. Read "
            "related files where a judgement depends on them. If there is nothing to improve, say so. Change "
            "nothing yet."
        )
        return [ask, contents]

    @prompt("Summarise what changed")
    async def summarise_changes(
        self,
        path: Path = ".",
        since: Annotated[str, Field(description="How far back, such as today or 3 days.")] = "today",
    ) -> str:
        """Summarise what changed in a folder lately."""
        folder = quote(self.policy.readable(path).display)
        return (
            f"Summarise what changed in {folder} since {quote(since)}. Use `find_files` with the newest first and "
            "stop at files older than that; read the changed files, and a changelog or version history where "
            "there is one. Group what belongs together, say what each change does rather than which lines it "
            "touches, and list separately what looks unfinished or accidental."
        )
