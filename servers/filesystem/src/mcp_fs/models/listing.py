"""Results of listing a folder and comparing two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mcp_batteries.server.calling.results import DataResult, Link, TextResult, is_answering_script
from mcp_fs.models.formatting import common_time_prefix, describe_common_time, format_size, pluralize

__all__ = ["Comparison", "Entry", "FileInfo", "FolderPage", "Tree"]


class FileInfo(DataResult):
    """Facts about one entry without reading it all."""

    path: str
    uri: str
    kind: str
    size: int
    modified: str
    created: str | None = None
    mode: str
    entries: int | None = None
    link_to: str | None = None
    mime_type: str | None = None
    encoding: str | None = None
    hash: str | None = None
    width: int | None = None
    height: int | None = None
    taken: str | None = None
    camera: str | None = None
    unreadable: str | None = None

    def links(self) -> Sequence[Link]:
        if self.kind == "file":
            return [Link(self.uri, self.path, self.mime_type, self.size)]
        return []


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a listing.

    Attributes:
        path: as tools take it.
        kind: `file`, `folder`, `link` or what else there is.
        size: bytes; None if it means nothing.
        modified: UTC, to the second.
        note: where a link leads, or why the entry can't be used.
    """

    path: str
    kind: str
    size: int | None
    modified: str
    note: str = ""

    def line(self, time_prefix: str = "") -> str:
        """Return its line below a head that tells the beginning of when it was modified."""
        label = self.path
        if self.kind == "folder" and not label.endswith("/"):
            label += "/"
        size = ""
        if self.size is not None:
            size = format_size(self.size)
        modified = self.modified.removeprefix(time_prefix).removeprefix("T")
        if is_answering_script():
            return "\t".join((label, size, modified, self.note))
        return "\t".join(filter(None, (label, size, modified, self.note)))


@dataclass(frozen=True, slots=True)
class FolderPage(TextResult):
    """A page of a folder's entries, which stand by their names below its path.

    Attributes:
        total: entries in the folder, left-out ones not counted.
        excluded_count: hidden and ignored entries that were left out.
        cursor: position of the next page; None on the last.
        uri: of the folder, for views that follow it.
    """

    path: str
    entries: Sequence[Entry]
    total: int
    sort: str
    excluded_count: int
    cursor: str | None
    uri: str = ""

    @property
    def for_views(self) -> dict[str, str]:
        if self.uri:
            return {"uri": self.uri}
        return {}

    def text(self) -> str:
        head = f"{self.path}: {pluralize(self.total, 'entry')}"
        is_page = self.cursor is not None or len(self.entries) < self.total
        if is_page:
            head = f"{self.path}: {len(self.entries):,} of {pluralize(self.total, 'entry')} by {self.sort}"
        if self.excluded_count:
            head += f", {self.excluded_count:,} hidden or ignored left out"
        if self.cursor is not None:
            head += f'; continue with cursor="{self.cursor}"'
        time_prefix = common_time_prefix([entry.modified for entry in self.entries if entry.modified])
        if time_prefix:
            head += f"; {describe_common_time(time_prefix, is_page=is_page)}"
        folder_prefix = ""
        if not is_answering_script():
            folder_prefix = f"{self.path}/"
        return "\n".join(
            [f"[{head}]", *(entry.line(time_prefix).removeprefix(folder_prefix) for entry in self.entries)]
        )


@dataclass(frozen=True, slots=True)
class Tree(TextResult):
    """A folder's tree, folded to counts where it would be too long.

    Attributes:
        lines: folders by their path, their files indented below them.
        files: as many as were seen; `folders` likewise.
        folded: folders shown only with counts of their direct entries.
        is_whole: whether there are no more files and folders than were seen.
        notes: what could not be read.
        samples: how some of the files begin; empty where that was not asked for.
    """

    path: str
    lines: Sequence[str]
    files: int
    folders: int
    folded: int
    is_whole: bool
    notes: Sequence[str] = ()
    samples: str = ""

    def text(self) -> str:
        head = f"{self.path}: {pluralize(self.files, 'file')} in {pluralize(self.folders, 'folder')}"
        if not self.is_whole:
            head += " seen"
        if self.folded:
            head += f"; {pluralize(self.folded, 'folder')} folded: list one by its path, or raise depth or max_bytes"
        lines = ["; ".join([f"[{head}", *self.notes]) + "]", *self.lines]
        if self.samples:
            lines.append(self.samples.rstrip("\n"))
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Comparison(TextResult):
    """Two files or folders side by side.

    Attributes:
        names: both paths.
        head: the result in a few words.
        lines: a diff, or one line for each entry that differs.
        max_bytes: the limit for the lines of one answer.
    """

    names: tuple[str, str]
    head: str
    lines: Sequence[str]
    max_bytes: int

    def text(self) -> str:
        first, second = self.names
        head = f"{first} and {second}: {self.head}"
        lines: list[str] = []
        remaining_bytes = self.max_bytes
        for line in self.lines:
            remaining_bytes -= len(line.encode("utf-8", "replace")) + 1
            if remaining_bytes < 0:
                head += f"; {len(lines):,} of {len(self.lines):,} lines: raise max_bytes, or compare less"
                break
            lines.append(line)
        return "\n".join([f"[{head}]", *lines])
