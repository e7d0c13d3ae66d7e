"""Decides by what is there which entry a caller's words name, where they could name several or a mistake."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mcp_batteries.errors import Problem
from mcp_fs.engine.handles.path_opening import exists
from mcp_fs.policy import ReadablePath, WritablePath
from mcp_fs.policy.path_arguments import ArchivePart, FileName, LineRange, TargetPath

__all__ = ["CopySource", "PackedEntry", "Packing", "accept_target", "find_source"]


@dataclass(frozen=True, slots=True)
class PackedEntry:
    """A file or a folder that goes into an archive.

    Attributes:
        names: those that it gets there; none for a folder whose contents go to the top.
    """

    path: ReadablePath
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Packing:
    """All that goes into one new archive."""

    entries: Sequence[PackedEntry]

    @property
    def display(self) -> str:
        return ", ".join(entry.path.display for entry in self.entries)


CopySource = ReadablePath | LineRange | ArchivePart | Packing


def find_source(name: FileName) -> CopySource:
    """Return what a name is of: the entry that has it if there is one, else lines, or what is in an archive.

    Raises:
        Problem: it can be neither.
    """
    is_certain = name.lines is None and name.archive_part is None
    if isinstance(name.entry, ReadablePath) and (is_certain or exists(name.entry, follow=False)):
        return name.entry
    if name.archive_part is not None:
        return name.archive_part
    if isinstance(name.lines, LineRange):
        return name.lines
    refusal = name.lines or name.entry
    assert isinstance(refusal, Problem)
    raise refusal


def accept_target(target: TargetPath) -> WritablePath:
    """Return where something is to be made.

    Raises:
        Invalid: a name on the way was nearly certainly mistyped, and nothing has it.
    """
    if target.typo is not None and not exists(target.typo.entry, follow=False):
        raise target.typo.refusal
    return target.path
