"""Reading and listing, as tools."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import replace
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
from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.concurrency.threads import run_in_thread
from mcp_batteries.errors import Invalid
from mcp_batteries.scripts.answer_form import is_answering_rows
from mcp_batteries.server.calling.results import is_answering_script
from mcp_batteries.server.declaration.decorators import rename_arguments, tool
from mcp_batteries.server.declaration.fields import Cursor, Limit
from mcp_batteries.server.declaration.trusted import default, trusted
from mcp_fs.engine.documents.source import needs_worker
from mcp_fs.engine.listing import folder_tree
from mcp_fs.engine.listing.comparison import compare
from mcp_fs.engine.listing.folder_page import FolderSort, list_folder, list_roots
from mcp_fs.engine.listing.walk import WalkFilter
from mcp_fs.engine.reading import media as media_reader
from mcp_fs.engine.reading.entry_info import read_info
from mcp_fs.engine.reading.file_names import find_named_files
from mcp_fs.engine.reading.page_cache import run_where_quickest
from mcp_fs.engine.reading.samples import read_samples
from mcp_fs.engine.reading.text_page import LineIndex, PageRequest, read_page, read_pages, read_whole
from mcp_fs.models import Comparison, FileInfo, FileSlices, FileTexts, FolderPage, Media, TextSlice, Tree
from mcp_fs.policy.path_arguments import FileName, GlobName, PathArguments
from mcp_fs.tools.arguments import PageByteLimit, PositiveInteger, ReadPath, StartPaths
from mcp_fs.tools.views import MEDIA, TREE

__all__ = [
    "get_info",
    "list_directory",
    "list_tree",
    "read_diff",
    "read_files",
    "read_media",
    "read_text",
]

_MAX_FILES = 50
# No model reads each of them.
_MAX_FILES_OF_SCRIPT = 1000
_MAX_ROWS_OF_SCRIPT = 20_000
_MIN_TREE_BYTES = 1000


def _adapt_range(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return arguments of other servers as ours: the first line and their number as a range."""
    if "file_path" in arguments and "path" not in arguments:
        arguments = dict(arguments)
        arguments["path"] = arguments.pop("file_path")
    first = arguments.get("offset")
    number = arguments.get("limit")
    if not isinstance(first, int | None) or not isinstance(number, int | None) or (first is None and number is None):
        return arguments
    other_arguments = {name: value for name, value in arguments.items() if name not in ("offset", "limit")}
    first = max(first or 1, 1)
    line_range = {"start_line": first}
    if number is not None:
        line_range["end_line"] = first + number - 1
    return {**line_range, **other_arguments}


@tool("Read text", effect="read", adapt=_adapt_range, also=("read_text_file", "read_file"))
async def read_text(
    index: LineIndex,
    *,
    path: ReadPath,
    start_line: PositiveInteger | None = None,
    end_line: PositiveInteger | None = None,
    head: PositiveInteger | None = None,
    tail: PositiveInteger | None = None,
    start_column: PositiveInteger | None = None,
    line_numbers: bool = False,
    max_bytes: PageByteLimit = DEFAULT_PAGE_BYTES,
) -> TextSlice:
    """Read a text file: a range of lines, its first lines (`head`) or its last (`tail`).

    Documents (docx, pdf, msg ...), databases and Parquet come as text, pages of a PDF by `a.pdf!/3-9`, files in
    archives by `a.zip!/b.txt`: `[page 1 of 3]`, `[sheet NAME, A1:E9]` and rows with tabs, `[cell 3, code]`, Word tables
    `a | b`. In scripts texts keep CRLF, no BOM; `.rows()` of CSV (`;` or tabs too) or a sheet gives objects of
    texts. Several files: `read_files`.
    """
    last_line = _choose_last_line(start_line, end_line, head, tail)
    if tail and (start_column or 1) > 1:
        raise Invalid("`start_column` is a byte of `start_line`, not of a tail.", "Leave one of them out.")
    # Of several files a script compares what the first lines say, and the hash is among what `get_info` tells.
    with_hash = not is_answering_script()
    request = PageRequest(start_line or 1, start_column or 1, last_line, tail, max_bytes, line_numbers, with_hash)

    def read(cancel: CancelToken) -> TextSlice:
        return read_page(path, request, index, cancel)

    if needs_worker(path):
        return await run_in_thread(read, long=True)
    return await run_where_quickest(path, read)


def _max_files() -> int:
    if is_answering_rows():
        return _MAX_ROWS_OF_SCRIPT
    if is_answering_script():
        return _MAX_FILES_OF_SCRIPT
    return _MAX_FILES


def _limit_files(paths: list[FileName | GlobName]) -> list[FileName | GlobName]:
    if len(paths) > _max_files():
        raise Invalid(f"`paths` names {len(paths):,} files.", f"Name at most {_max_files():,}.")
    return paths


def _choose_last_line(start_line: int | None, end_line: int | None, head: int | None, tail: int | None) -> int | None:
    """Return the last line that is read; None for the last of the file.

    Raises:
        Invalid: the arguments name lines in two ways, and not the same.
    """
    if not head and not tail:
        return end_line
    is_same_as_head = not tail and start_line in (None, 1) and end_line in (None, head)
    if is_same_as_head:
        return head
    if start_line or end_line or (head and tail):
        raise Invalid("`head`, `tail` and a range of lines can't be used together.", "Use one of them.")
    return None


@tool("Read several files", effect="read", also=("read_multiple_files",))
def read_files(
    index: LineIndex,
    cancel: CancelToken,
    *,
    paths: Annotated[
        list[FileName | GlobName],
        trusted(PathArguments.file_names),
        Field(min_length=1),
        AfterValidator(_limit_files),
    ],
    line_numbers: bool = False,
    max_bytes: PageByteLimit = DEFAULT_PAGE_BYTES,
) -> FileSlices | FileTexts:
    """Read up to 50 text files, or lines of them: `a.py:10-40`, `*.log:-9` (the last); `max_bytes` is shared.

    Each stands below `=== PATH [FACTS]`; a failed one stops no other. In scripts `.all` gives {path,
    encoding, text} of any number. One file: `read_text`.
    """
    files = find_named_files(paths, _max_files(), cancel)
    if is_answering_rows():
        return read_whole(files, line_numbers, index, cancel)
    return read_pages(files, PageRequest(max_bytes=max_bytes, line_numbers=line_numbers), index, cancel)


@tool("Read media", effect="read", view=MEDIA, also=("read_media_file",))
def read_media(
    cancel: CancelToken,
    *,
    path: ReadPath,
    page: Annotated[
        PositiveInteger | None, Field(description="Of a PDF its picture; of other files bytes, in base64.")
    ] = None,
) -> list[ContentBlock]:
    """Read an image, a sound, a `page` of a PDF as a picture, or another binary file.

    Text, that of a PDF too: `read_text`.
    """
    blocks: list[ContentBlock] = []
    for media in media_reader.read_media(path, page, cancel):
        blocks.extend(_content_blocks(media))
    return blocks


@tool("Compare", effect="read", adapt=rename_arguments(path="source", other="target", destination="target"))
def read_diff(
    cancel: CancelToken,
    *,
    source: ReadPath,
    target: ReadPath,
    names_only: bool = False,
    include_hidden: bool = False,
    include_ignored: bool = False,
    max_bytes: PageByteLimit = DEFAULT_PAGE_BYTES,
) -> Comparison:
    """Compare two files, or all in two folders, as a unified diff from `source` to `target`.

    Changes over time: `list_changes`.
    """
    walk_filter = WalkFilter(include_hidden, include_ignored)
    return compare(source, target, max_bytes, cancel, walk_filter, names_only=names_only)


@tool("Get information", effect="read", also=("get_file_info",))
async def get_info(*, path: ReadPath) -> FileInfo:
    """Get as JSON kind, size, times, mode, encoding, content hash (for `edit_file`) and URI of a file or folder.

    Of a photo also pixels, date and camera. Follows links (`link_to`). In scripts: `.data`. A folder's
    entries: `list_directory`.
    """
    return await run_where_quickest(path, lambda cancel: read_info(path, cancel))


@tool("List a folder", effect="read", view=TREE, also=("list_directory_with_sizes",))
async def list_directory(
    *,
    path: StartPaths = default("."),
    sort: FolderSort = "name",
    include_hidden: bool = True,
    include_ignored: bool = True,
    folder_sizes: bool = False,
    limit: Limit = 200,
    cursor: Cursor = None,
) -> FolderPage:
    """List one folder's entries: name, size and time with tabs between; `sort` puts the largest or newest first.

    With hidden and git-ignored ones. Levels below: `list_tree`.
    """
    if len(path) > 1:
        return await run_in_thread(lambda cancel: list_roots(path))
    walk_filter = WalkFilter(include_hidden, include_ignored)

    def list_one(cancel: CancelToken) -> FolderPage:
        return list_folder(
            path[0], cancel, sort=sort, walk_filter=walk_filter, folder_sizes=folder_sizes, limit=limit, cursor=cursor
        )

    return await run_in_thread(list_one, long=folder_sizes)


def _raise_tree_bytes(number: int) -> int:
    # A tree in less would say nothing, and a refusal would end a script.
    return max(number, _MIN_TREE_BYTES)


@tool("List a tree", effect="read", view=TREE, also=("directory_tree",))
def list_tree(
    index: LineIndex,
    cancel: CancelToken,
    *,
    path: StartPaths = default("."),
    depth: Annotated[int, Field(ge=1, le=20)] = 3,
    include_hidden: bool = False,
    include_ignored: bool = False,
    samples: Annotated[
        bool,
        Field(description="First look by kind of file: a line of each form, of CSV each column's values, counted."),
    ] = False,
    max_bytes: Annotated[int, Field(le=64_000), AfterValidator(_raise_tree_bytes)] = DEFAULT_PAGE_BYTES,
) -> Tree:
    """Show a folder and those below it as a tree; large, hidden and ignored parts only as counts.

    Sizes: `list_directory`.
    """
    if len(path) > 1:
        raise Invalid("Several folders are served.", f"Use one of: {', '.join(p.display for p in path)}.")
    walk_filter = WalkFilter(include_hidden, include_ignored)
    tree = folder_tree.list_tree(path[0], cancel, depth=depth, walk_filter=walk_filter, max_bytes=max_bytes)
    if not samples:
        return tree
    return replace(tree, samples=read_samples(path[0], walk_filter, index, cancel))


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
