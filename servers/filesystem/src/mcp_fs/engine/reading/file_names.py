"""Finds the files that several names and globs mean."""

from __future__ import annotations

from collections.abc import Sequence

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Problem, Refused
from mcp_fs.engine.listing.expand_glob import expand_glob
from mcp_fs.engine.reading.text_page import NamedFile
from mcp_fs.policy import ReadablePath
from mcp_fs.policy.path_arguments import FileName, GlobName, LineRange

__all__ = ["find_named_files"]


def find_named_files(names: Sequence[FileName | GlobName], max_files: int, cancel: CancelToken) -> list[NamedFile]:
    """Return what each name means; what can't be read is among it, with the reason.

    Args:
        max_files: that one glob may mean.
    """
    files: list[NamedFile] = []
    for name in names:
        if isinstance(name, GlobName):
            files += _expand(name, max_files, cancel)
        else:
            files.append(_to_named_file(name))
    return files


def _to_named_file(name: FileName) -> NamedFile:
    if not isinstance(name.lines, LineRange):
        return NamedFile(name.text, name.entry)
    return NamedFile(name.text, name.entry, (name.lines.place, name.lines.first, name.lines.last))


def _expand(name: GlobName, max_files: int, cancel: CancelToken) -> list[NamedFile]:
    if isinstance(name.glob, Problem):
        return [NamedFile(name.text, name.glob)]
    if isinstance(name.glob, ReadablePath):
        return [NamedFile(name.glob.display, None, (name.glob, name.first, name.last))]
    try:
        expanded = expand_glob(name.glob, max_files, cancel)
    except Problem as problem:
        return [NamedFile(name.text, problem)]
    files = [NamedFile(path.display, None, (path, name.first, name.last)) for path in expanded.paths]
    for note in (*expanded.skipped.notes(), *expanded.skipped.describe_links()):
        files.append(NamedFile(name.text, Refused(f"{note}.")))
    return files
