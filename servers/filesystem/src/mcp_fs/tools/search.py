"""Finding names and searching contents, as tools."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.server.calling.results import is_answering_script
from mcp_batteries.server.declaration.decorators import rename_arguments, tool
from mcp_batteries.server.declaration.fields import Cursor, Limit
from mcp_batteries.server.declaration.trusted import FreeText, default
from mcp_fs.engine.listing.walk import WalkFilter
from mcp_fs.engine.search import find, ripgrep, text_search
from mcp_fs.engine.search.find import FindSort
from mcp_fs.engine.search.grep import MAX_SHOWN_BYTES
from mcp_fs.engine.search.query import Query
from mcp_fs.engine.search.time_range import parse_time_range
from mcp_fs.models import FilePage, MatchCounts, Matches
from mcp_fs.tools.arguments import PositiveInteger, StartPaths

__all__ = ["find_files", "search_text"]

# It takes lines apart, as those of logs in JSON, and no model reads all of them.
_MAX_LINE_BYTES_OF_SCRIPT = 10_000


@tool(
    "Find files",
    effect="read",
    adapt=rename_arguments(pattern="glob", query="glob", max_results="limit"),
    also=("search_files",),
)
def find_files(
    cancel: CancelToken,
    *,
    glob: Annotated[
        FreeText,
        Field(
            description="A name at any depth, `*.py`, a path, `src/**/*.{ts,tsx}`, or in archives, `*.zip!/*.csv`; "
            "`name/` for folders; `!` in front excludes"
        ),
    ],
    path: StartPaths = default("."),
    sort: Annotated[
        FindSort,
        Field(
            description="`taken`: photos by their date; `duplicates`: files of equal contents, `PATH\\t#GROUP\\tSIZE`"
        ),
    ] = "path",
    ignore_case: bool = False,
    include_hidden: bool = False,
    include_ignored: bool = False,
    since: Annotated[FreeText | None, Field(description="Changed since `2026-11-28`, `3d`")] = None,
    until: Annotated[FreeText | None, Field(description="That day included")] = None,
    limit: Limit = 200,
    cursor: Cursor = None,
) -> FilePage:
    """Find files by name, or duplicates, below `path`, without hidden and git-ignored ones.

    Lines are `PATH`, from the root, or sorted by another key `PATH\\tKEY`. Text in files: `search_text`.
    """
    walk_filter = WalkFilter(include_hidden, include_ignored)
    changed = parse_time_range(since, until)
    return find.find_files(
        path,
        glob,
        cancel,
        sort=sort,
        ignore_case=ignore_case,
        walk_filter=walk_filter,
        changed=changed,
        limit=limit,
        cursor=cursor,
    )


def _max_line_bytes() -> int:
    if is_answering_script():
        return _MAX_LINE_BYTES_OF_SCRIPT
    return MAX_SHOWN_BYTES


@tool(
    "Search text",
    effect="read",
    adapt=rename_arguments(query="pattern", regex="pattern", include="glob", max_results="limit"),
)
def search_text(
    cancel: CancelToken,
    *,
    pattern: Annotated[FreeText, Field(description="RE2: no look-around; `\\n` goes over lines.")],
    path: StartPaths = default("."),
    literal: bool = False,
    ignore_case: bool = False,
    context: Annotated[int, Field(ge=0, le=20)] = 0,
    glob: Annotated[
        FreeText | None,
        Field(
            description="A name at any depth, `*.py`, a path, `src/**`, or parts, `*.xlsx!/Orders`; `!` in front "
            "excludes"
        ),
    ] = None,
    file_type: Annotated[FreeText | None, Field(description="py, ts, ...")] = None,
    files_only: bool = False,
    count_only: Annotated[bool, Field(description="Lines that match, in all and by file.")] = False,
    only_matching: Annotated[
        bool,
        Field(
            description="Each text that matched, or its named groups, once, behind its count and a tab; a group `sum`, "
            "as people write it (`1.494,69 €`, `(12)`), is added up, and its product with a `times`."
        ),
    ] = False,
    include_hidden: bool = False,
    include_ignored: bool = False,
    include_binary: bool = False,
    max_per_file: Annotated[PositiveInteger, Field(description="In scripts all.")] = 20,
    last: Annotated[bool, Field(description="A file's last matches.")] = False,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Matches | MatchCounts:
    """Search the contents of files below `path`, or of one file, without hidden, git-ignored and binary ones.

    Matches come as `path:line:text`, counts as `path:number`, files as `path`; several of one file or folder under its
    name. Names of files: `find_files`.
    """
    walk_filter = WalkFilter(include_hidden, include_ignored)
    query = Query(
        pattern,
        literal=literal,
        ignore_case=ignore_case,
        context=context,
        glob=glob,
        file_type=file_type,
        max_per_file=max_per_file,
        last_matches=last,
        limit=limit,
        files_only=files_only,
        count_only=count_only,
        only_matching=only_matching,
        include_binary=include_binary,
        max_line_bytes=_max_line_bytes(),
        walk_filter=walk_filter,
    )
    return text_search.search_text(path, query, cursor, cancel, ripgrep.find_ripgrep())
