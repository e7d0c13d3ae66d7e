"""What mcp-git can be told, beyond what every server can."""

from __future__ import annotations

import os
from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator

from mcp_batteries.settings import Asked, Dependencies, Positional
from mcp_batteries.settings import Settings as Common

__all__ = ["Settings"]


class Settings(Common):
    """Serve Git repositories over MCP: read their history and state, follow them, and run nothing that is in them."""

    COMMAND: ClassVar[str] = "mcp-git"
    ASKED: ClassVar[tuple[Asked, ...]] = (
        Asked("repository", "Repository to serve", "/path/to/folder", "directory", multiple=True),
    )

    DOCUMENTED: ClassVar[tuple[str, ...]] = ("--write", "{folder}")

    EXAMPLES: ClassVar[tuple[str, ...]] = (
        "/path/to/folder",
        "--write /path/to/folder",
        "--check /path/to/folder /path/to/another",
    )

    repositories: Annotated[tuple[str, ...], Positional()] = Field(
        (), description="Top folders of the repositories to serve, each named after its folder."
    )
    write: bool = Field(False, description="Offer tools that change the index, commits, branches and the work tree.")
    timeout: int = Field(30, ge=1, le=600, description="Seconds until a running git command is stopped.")
    watch: Literal["auto", "poll"] = Field(
        "auto",
        description="How to notice changes; use poll where the kernel does not report them, as on network drives.",
    )

    @field_validator("repositories")
    @classmethod
    def _absolute(cls, repositories: tuple[str, ...]) -> tuple[str, ...]:
        if not all(map(str.strip, repositories)):  # a variable that a host leaves empty
            raise ValueError("the name of a repository is empty; `.` is the current folder")
        return tuple(os.path.abspath(os.path.expanduser(repository)) for repository in repositories)

    def depends_on(self) -> Dependencies | None:
        return Dependencies(places=self.repositories)
