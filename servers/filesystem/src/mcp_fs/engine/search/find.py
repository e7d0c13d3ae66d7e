"""Finds names that match a glob, in everything that a walk sees."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Sequence
from typing import Literal

from mcp_batteries.errors import Invalid
from mcp_batteries.limits import Cursor, Stop
from mcp_batteries.progress import tell
from mcp_fs.engine.listing.folder_page import moment
from mcp_fs.engine.listing.selection import choosers, concerned, ends_of_names
from mcp_fs.engine.listing.walk import (
    Filter,
    Skipped,
    Visit,
    order,
    page_bytes,
    shown,
    walk,
    walked_apart,
    without,
)
from mcp_fs.engine.search.duplicates import find_duplicates
from mcp_fs.models import FoundFiles
from mcp_fs.policy import Readable

__all__ = ["Sorting", "find"]

Sorting = Literal["path", "modified", "size", "duplicates"]
"""In the order of a walk; the newest, or the largest, first; only files whose contents others have too."""
_FOLDERS = re.compile(r"(?<!\\)\{((?:[^{},/]+/,)*[^{},/]+)/\}\Z")
"""`{a/,b/}`, which names folders as `{a,b}/` does."""
_Key = tuple[int, int, tuple[tuple[bool, str], ...]]
_Position = tuple[int, list[str], int]  # number of the start, names below it, modification time in ns or size


def find(
    starts: Sequence[Readable],
    glob: str,
    stop: Stop,
    *,
    sort: Sorting = "path",
    wanted: Filter | None = None,
    limit: int = 200,
    cursor: str | None = None,
) -> FoundFiles:
    """A page of the files below `starts` whose path matches `glob`; of the folders when it ends in a slash.

    A page has `limit` paths, or fewer when they are long.

    All of them are found for each page, so that the number is known; only a page of them is kept.

    Args:
        glob: without a slash in it a name at any depth, else a path below the start.
        sort: the order of `walk`, or the newest or the largest first.

    Raises:
        Invalid: the glob or the cursor can't be read; folders are to be sorted by a size that only their files have.
        Problem: a start can't be opened.
    """
    glob = _FOLDERS.sub(lambda found: f"{{{found[1].replace('/,', ',')}}}/", glob)
    if sort == "size" and glob.endswith("/"):
        raise Invalid(
            "Folders are not found by size.", "`list_directory` with `folder_sizes` and `sort=size` sums up a folder's."
        )
    if sort == "duplicates":
        return find_duplicates(starts, glob, wanted or Filter(), limit, cursor, stop)
    wanted, measured = wanted or Filter(), sort != "path"
    scope = [[start.uri for start in starts], glob, sort, str(wanted)]
    after = None if cursor is None else _key(Cursor.decode("find", cursor, scope))
    meant, end = choosers(starts, glob), ends_of_names(glob)
    end_of_line = f"{end}\n"
    skipped, total = Skipped.soon(), 0
    kept = 0

    def keyed() -> Iterator[tuple[_Key, _Position, str]]:
        nonlocal total, kept
        for number, start in enumerate(starts):
            chooses = meant[number]
            skipped.concerns = concerned(starts, start, glob, chooses)
            apart = walked_apart(starts, start)
            for visit in walk(start, wanted, stop, skipped):
                tell(total, None, f"{total:,} found")
                prefix = "/".join((*visit.parts, ""))
                names = visit.folders if glob.endswith("/") else visit.files
                without(visit, apart)
                # Nearly all names are told by how they end, without their paths, and most folders hold none of them.
                if end and end_of_line not in (lines := "\n".join((*names, ""))) and lines.isascii():
                    continue
                likely = [name for name in names if name.endswith(end) or not name.isascii()] if end else names
                for name in [name for name in likely if chooses(prefix + name)]:
                    total += 1
                    if kept > limit and not measured:
                        continue  # a walk comes by them in the order of their keys
                    position = (number, [*visit.parts, name], _measure(visit, name, sort) if measured else 0)
                    key = _key(position)
                    if after is None or key > after:
                        kept += 1
                        yield key, position, shown(visit.folder.place, name)

    page = heapq.nsmallest(limit + 1, keyed()) if measured else list(keyed())
    slash = "/" if glob.endswith("/") else ""
    paths, measures, left = list[str](), list[str](), page_bytes(limit)
    for _, (_, _, found), path in page[:limit]:
        measure = "" if not measured else moment(found / 1e9) if sort == "modified" else f"{found:,}"
        left -= len(path.encode("utf-8", "replace")) + len(slash) + len(measure) + 1
        if paths and left < 0:
            break
        paths.append(path + slash)
        measures.append(measure)
    last = page[len(paths) - 1][1] if len(page) > len(paths) else None
    cursor = None if last is None else Cursor.encode("find", last, scope)
    notes = [*skipped.notes(), *skipped.left_out(named=not total)]
    if not total and after is None:
        notes = [*notes, "a glob is a whole name or path, in its case: `*part*` fits a part, `name/` a folder"]
    return FoundFiles(tuple(paths), total, notes, cursor, tuple(measures))


def _key(position: _Position) -> _Key:
    number, parts, measure = position
    return (-measure, number, order(tuple(parts)))


def _measure(visit: Visit, name: str, sort: Sorting) -> int:
    try:
        found = visit.folder.stat(name)
        return found.st_mtime_ns if sort == "modified" else found.st_size
    except OSError:
        return 0  # removed since
