"""What is to become of files, of which each has a path that may be written to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from mcp_github.policy.names import FilePath

__all__ = ["Change", "Edit", "FileChange", "TextEdit", "to_file_change"]


class Edit(BaseModel):
    model_config = ConfigDict(extra="forbid")
    old: str
    new: str


class Change(BaseModel):
    model_config = ConfigDict(extra="forbid")
    path: str
    sha: str | None = Field(None, description="As read, if it exists")
    content: str | None = None
    base64: bool = False
    edits: list[Edit] = Field(default_factory=list[Edit], description="Unique old text to new")
    delete: bool = False
    executable: bool = False


class TextEdit(NamedTuple):
    """A text that occurs once, and what takes its place."""

    old: str
    new: str


@dataclass(frozen=True)
class FileChange:
    """What is to become of a file.

    Attributes:
        content: the whole new content; None for edits and a deletion.
        sha: the file's sha as it was read; None for a new file.
        executable: whether it is to be one that can be run; one that is stays so.
    """

    path: FilePath
    content: str | None
    is_base64: bool
    edits: Sequence[TextEdit]
    delete: bool
    sha: str | None
    executable: bool = False

    @property
    def name(self) -> str:
        """The path as people see it."""
        return self.path.display_name


def to_file_change(change: Change, path: FilePath) -> FileChange:
    """Return what a caller sent, with its `path` as it was checked."""
    edits = [TextEdit(edit.old, edit.new) for edit in change.edits]
    return FileChange(path, change.content, change.base64, edits, change.delete, change.sha, change.executable)
