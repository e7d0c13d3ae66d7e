"""The settings of mcp-git, besides those of every server."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from mcp_batteries.errors import quote
from mcp_batteries.settings import ABSOLUTE, Dependencies, InstallQuestion, Positional
from mcp_batteries.settings import Settings as Common

__all__ = ["Settings"]


class Settings(Common):
    """Serve Git repositories over MCP: read their history and state, follow them, and run nothing that is in them."""

    COMMAND: ClassVar[str] = "mcp-git"
    INSTALL_QUESTIONS: ClassVar[tuple[InstallQuestion, ...]] = (
        InstallQuestion("repository", "Repository to serve", "/path/to/folder", "directory", multiple=True),
    )

    DOCUMENTED: ClassVar[tuple[str, ...]] = (
        "--write", "--fetch", "--push", "--worktree-folder", "{folder}", "{folder}",
    )  # fmt: skip

    NEEDS: ClassVar[dict[str, tuple[str, ...]]] = Common.NEEDS | {
        "remote_folder": ("fetch", "push"),
        "worktree_folder": ("write",),
        "hooks": ("write",),
        "sign": ("write",),
        "remote_timeout": ("fetch", "push"),
    }
    FREQUENT: ClassVar[tuple[str, ...]] = ("repositories", "write", "fetch", "push")
    EXAMPLES: ClassVar[tuple[str, ...]] = (
        "/path/to/folder",
        "--write /path/to/folder",
        "--write --fetch --push /path/to/folder",
        "--check /path/to/folder /path/to/another",
    )

    repositories: Annotated[tuple[str, ...], Positional(), ABSOLUTE] = Field(
        (), description="Top folders of the repositories to serve, each named after its folder."
    )
    write: bool = Field(False, description="Offer tools that change the index, commits, branches and the work tree.")
    fetch: bool = Field(False, description="Offer to fetch from the remotes of a repository's own configuration.")
    push: bool = Field(False, description="Offer to push to those remotes; the user is asked before each push.")
    hooks: bool = Field(False, description="Run the hooks of a repository at changes: its own programs, unconfined.")
    sign: bool = Field(False, description="Sign commits and tags as your own Git configuration says.")
    remote_folder: Annotated[tuple[str, ...], ABSOLUTE] = Field(
        (), description="Local folder that may contain remotes; hooks there do not run; repeatable."
    )
    worktree_folder: Annotated[str | None, ABSOLUTE] = Field(
        None, description="Folder for worktrees made with --write; each is served like a repository."
    )
    remote_timeout: int = Field(300, ge=1, le=3600, description="Seconds until a fetch or push is stopped.")
    timeout: int = Field(30, ge=1, le=600, description="Seconds until a running git command is stopped.")
    watch: Literal["auto", "poll"] = Field(
        "auto",
        description="How to notice changes; use poll where the kernel does not report them, as on network drives.",
    )

    def depends_on(self) -> Dependencies | None:
        return Dependencies(places=self.repositories)

    def unusable(self) -> Sequence[str]:
        sentences: list[str] = []
        for path in filter(os.path.isdir, self.repositories):
            # A bare repository is its own git directory.
            if not any(os.path.lexists(os.path.join(path, name)) for name in (".git", "HEAD")):
                sentences.append(f"{quote(path)} is not a Git repository: name the top folder of one, with its `.git`.")
        return sentences
