"""Reading and listing, as tools."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any

from mcp_types import (
    AudioContent,
    BlobResourceContents,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    TextContent,
)
from pydantic import AfterValidator, Field

from mcp_batteries.clipping import DEFAULT_PAGE_BYTES
from mcp_batteries.errors import Invalid, Problem, Refused
from mcp_batteries.server.declaration.decorators import rename_arguments, tool
from mcp_batteries.server.declaration.fields import Cursor, Limit
from mcp_fs.engine.listing.folder_page import FolderSort
from mcp_fs.engine.listing.walk import WalkFilter
from mcp_fs.engine.reading.text_page import MAX_PAGE_BYTES, NamedFile, PageRequest
from mcp_fs.engine.service import Engine
from mcp_fs.models import Comparison, FileInfo, FileSlices, FolderPage, Media, TextSlice, Tree
from mcp_fs.policy import Policy
from mcp_fs.tools.paths import expand_path, parse_line_range
from mcp_fs.tools.views import MEDIA, TREE

__all__ = ["ReadTools"]

Number = Annotated[int, Field(ge=1)]


def _validate_page_bytes(number: int) -> int:
    # In three schemas this bound, which nobody comes near, would be paid for by every conversation.
    if number > MAX_PAGE_BYTES:
        raise ValueError(f"must be at most {MAX_PAGE_BYTES:,}")
    return number


PageByteLimit = Annotated[int, Field(ge=1), AfterValidator(_validate_page_bytes)]
_MAX_FILES = 50


def _adapt_offset(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the first line and their number, as other servers take them."""
    first = arguments.get("offset")
    number = arguments.get("limit")
    if not isinstance(first, int | None) or not isinstance(number, int | None) or first is number is None:
        return arguments
    other_arguments = {name: value for name, value in arguments.items() if name not in ("offset", "limit")}
    first = max(first or 1, 1)
    return {"start_line": first, **({} if number is None else {"end_line": first + number - 1}), **other_arguments}


@dataclass(frozen=True)
class ReadTools:
    policy: Policy
    engine: Engine

    @tool("Read text", effect="read", adapt=_adapt_offset)
    async def read_text(
        self,
        path: str,
        start_line: Number | None = None,
        end_line: Number | None = None,
        head: Number | None = None,
        tail: Number | None = None,
        start_column: Annotated[int, Field(ge=1, description="From this byte of start_line.")] = 1,
        line_numbers: bool = False,
        max_bytes: PageByteLimit = DEFAULT_PAGE_BYTES,
    ) -> TextSlice:
        """Read a text file: a range of lines, its first lines (`head`) or its last (`tail`).

        Documents (docx, pdf, ipynb ...) come as text, files in archives by `a.zip!/b.txt`. The first line says how to
        go on. Several files: `read_files`.
        """
        chosen = [name for name, value in (("head", head), ("tail", tail), ("start_line", start_line)) if value]
        if len(chosen) > 1 or (end_line and chosen and chosen[0] != "start_line"):
            raise Invalid("`head`, `tail` and a range of lines can't be used together.", "Use one of them.")
        if tail and start_column > 1:
            raise Invalid("`start_column` is a byte of `start_line`, not of a tail.", "Leave one of them out.")
        place = self.policy.readable(path)
        part = PageRequest(start_line or 1, start_column, head or end_line, tail, max_bytes, line_numbers)
        return await self.engine.read_text(place, part)

    @tool("Read several files", effect="read")
    async def read_files(
        self,
        paths: Annotated[list[str], Field(min_length=1, max_length=_MAX_FILES)],
        line_numbers: bool = False,
        max_bytes: PageByteLimit = DEFAULT_PAGE_BYTES,
    ) -> FileSlices:
        """Read several text files, or lines of them: `a.py:10-40`, `*.log:-9` (the last); `max_bytes` is shared.

        One that fails does not stop the others. One file: `read_text`.
        """
        files: list[NamedFile] = []
        for path in paths:
            files.extend(await self._resolve_names(path))
        return await self.engine.read_files(files, PageRequest(max_bytes=max_bytes, line_numbers=line_numbers))

    async def _resolve_names(self, path: str) -> list[NamedFile]:
        named = parse_line_range(path)
        lines = None
        file, first, last = named or (path, 1, None)
        if "*" in path:
            try:
                paths, notes = await expand_path(self.policy.readable, file, _MAX_FILES)
            except Problem as problem:
                return [NamedFile(path, problem)]
            left_out = [NamedFile(path, Refused(f"{note}.")) for note in notes]
            return [*(NamedFile(place.display, None, (place, first, last)) for place in paths), *left_out]
        if named is not None:
            with suppress(Problem):
                lines = self.policy.readable(file), first, last
        try:
            return [NamedFile(path, self.policy.readable(path), lines)]
        except Problem as problem:
            return [NamedFile(path, problem, lines)]

    @tool("Read media", effect="read", view=MEDIA)
    async def read_media(self, path: str, page: Number = 1) -> list[ContentBlock]:
        """Read an image, a sound, a `page` of a PDF (its text, or a picture if it has none) or another binary file.

        Large images are scaled down; others come in base64, by `page`. For text use `read_text`.
        """
        pages = await self.engine.read_media(self.policy.readable(path), page)
        blocks: list[ContentBlock] = []
        for media in pages:
            blocks.extend(_content_blocks(media))
        return blocks

    @tool("Compare", effect="read", adapt=rename_arguments(path="source", other="target", destination="target"))
    async def read_diff(self, source: str, target: str, max_bytes: PageByteLimit = DEFAULT_PAGE_BYTES) -> Comparison:
        """Compare two files, or all in two folders, as a unified diff from `source` to `target`.

        For changes over time use `list_changes`.
        """
        return await self.engine.compare(self.policy.readable(source), self.policy.readable(target), max_bytes)

    @tool("Get information", effect="read")
    async def get_info(self, path: str) -> FileInfo:
        """Get kind, size, times, mode, encoding, content hash (for `edit_file`) and URI of a file or folder.

        Links are followed; `link_to` tells where to. A folder's entries: `list_directory`.
        """
        return await self.engine.get_info(self.policy.readable(path))

    @tool("List a folder", effect="read", view=TREE)
    async def list_directory(
        self,
        path: str = ".",
        sort: FolderSort = "name",
        include_hidden: bool = True,
        include_ignored: bool = True,
        folder_sizes: bool = False,
        limit: Limit = 200,
        cursor: Cursor = None,
    ) -> FolderPage:
        """List one folder's entries with size and time; `sort` puts the largest or newest first.

        Shows hidden and git-ignored ones too; folders have sizes only with `folder_sizes`. For levels below use
        `list_tree`.
        """
        paths = self.policy.search_roots(path)
        if len(paths) > 1:
            return await self.engine.list_roots(paths)
        walk_filter = WalkFilter(include_hidden, include_ignored)
        return await self.engine.list_folder(
            paths[0], sort=sort, walk_filter=walk_filter, folder_sizes=folder_sizes, limit=limit, cursor=cursor
        )

    @tool("List a tree", effect="read", view=TREE)
    async def list_tree(
        self,
        path: str = ".",
        depth: Annotated[int, Field(ge=1, le=20)] = 3,
        include_hidden: bool = False,
        include_ignored: bool = False,
        max_bytes: Annotated[int, Field(ge=1000, le=64_000)] = DEFAULT_PAGE_BYTES,
    ) -> Tree:
        """Show a folder and those below it as a tree; large, hidden and ignored parts only as counts.

        Names only, `depth` levels; for sizes use `list_directory`.
        """
        paths = self.policy.search_roots(path)
        if len(paths) > 1:
            raise Invalid("Several folders are served.", f"Use one of: {', '.join(p.display for p in paths)}.")
        walk_filter = WalkFilter(include_hidden, include_ignored)
        return await self.engine.list_tree(paths[0], depth=depth, walk_filter=walk_filter, max_bytes=max_bytes)


def _content_blocks(media: Media) -> list[ContentBlock]:
    note = TextContent(type="text", text=f"[{media.note}]\n{media.body}")
    data = base64.b64encode(media.data).decode()
    match media.kind:
        case "image":
            return [note, ImageContent(type="image", data=data, mime_type=media.mime_type)]
        case "audio":
            return [note, AudioContent(type="audio", data=data, mime_type=media.mime_type)]
        case "blob":
            blob = BlobResourceContents(uri=media.uri, mime_type=media.mime_type, blob=data)
            return [note, EmbeddedResource(type="resource", resource=blob)]
        case _:
            return [note]
