"""The settings of mcp-fs, besides those of every server."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from mcp_batteries.settings import ABSOLUTE, Dependencies, InstallQuestion, Positional
from mcp_batteries.settings import Settings as Common

__all__ = ["Settings"]


class Settings(Common):
    """Serve folders over MCP: read, search, edit and follow their files, and nothing outside them."""

    COMMAND: ClassVar[str] = "mcp-fs"
    INSTALL_QUESTIONS: ClassVar[tuple[InstallQuestion, ...]] = (
        InstallQuestion("folder", "Folder to serve", "/path/to/folder", "directory", multiple=True),
    )

    FREQUENT: ClassVar[tuple[str, ...]] = ("folders", "allow_secrets")
    EXAMPLES: ClassVar[tuple[str, ...]] = (
        "/path/to/folder",
        "--read-only /path/to/docs /path/to/notes",
        "--check /path/to/folder",
    )

    folders: Annotated[tuple[str, ...], Positional(), ABSOLUTE] = Field(
        (), description="Folders to serve; nothing outside them can be reached."
    )
    allow_secrets: tuple[str, ...] = Field(
        (), description="Name pattern of secret files to serve anyway, such as .env or *.pem; repeatable."
    )
    allow_repository_internals: bool = Field(
        False,
        description="Let tools write into .git, .hg and .jj, whose configuration and hooks the user's programs run.",
    )
    client_roots: Literal["ignore", "narrow"] = Field(
        "ignore",
        description="Whether roots sent by older clients narrow what is served; they never widen it.",
    )
    watch: Literal["auto", "poll"] = Field(
        "auto",
        description="How to notice changes; use poll for folders whose changes the kernel does not report.",
    )

    undo_megabytes: int = Field(
        512, ge=0, description="Megabytes of old contents to keep for undo_changes, in the user's folder; 0 keeps none."
    )
    undo_days: int = Field(7, ge=1, le=3650, description="Days to keep those old contents.")
    text_megabytes: int = Field(
        256,
        ge=0,
        description="Megabytes of documents' text to keep for later, in the user's cache folder; 0 keeps none.",
    )

    def depends_on(self) -> Dependencies | None:
        if self.client_roots == "narrow":
            return None
        return Dependencies(places=self.folders)
