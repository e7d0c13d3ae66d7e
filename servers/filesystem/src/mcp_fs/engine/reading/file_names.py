"""Finds the files that several names and globs mean."""

from __future__ import annotations

from collections.abc import Sequence

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import NotFound, Problem, Refused, quote
from mcp_fs.engine.documents.source import is_in_archive, list_members
from mcp_fs.engine.listing.expand_glob import ExpandedGlob, expand_glob
from mcp_fs.engine.listing.selection import compile_relative_chooser
from mcp_fs.engine.listing.walk import Skipped, display_path
from mcp_fs.engine.reading.text_page import NamedFile
from mcp_fs.policy import ReadablePath
from mcp_fs.policy.path_arguments import FileName, GlobName, LineRange, PathGlob

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
        if is_in_archive(name.glob.start):
            expanded = _expand_in_archive(name.glob, max_files, cancel)
        else:
            expanded = expand_glob(name.glob, max_files, cancel)
    except Problem as problem:
        return [NamedFile(name.text, problem)]
    files = [NamedFile(path.display, None, (path, name.first, name.last)) for path in expanded.paths]
    for note in (*expanded.skipped.notes(), *expanded.skipped.describe_links()):
        files.append(NamedFile(name.text, Refused(f"{note}.")))
    return files


def _expand_in_archive(
    path_glob: PathGlob[ReadablePath], max_files: int, cancel: CancelToken
) -> ExpandedGlob[ReadablePath]:
    """Return the files of an archive that a glob means: `a.zip!/**/*.csv`.

    Raises:
        NotFound: there are none.
        Problem: the archive or the glob can't be read.
    """
    start = path_glob.start
    chooses = compile_relative_chooser(f"/{path_glob.glob}", dots_are_spelled=False)
    listing = list_members(start, cancel)
    names: list[str] = []
    if listing is not None:
        prefix = "".join(part + "/" for part in start.parts[len(listing.archive.parts) :])
        names = [name for name in listing.sizes if chooses(name.removeprefix(prefix))]
    skipped = Skipped()
    missing_note = ""
    if listing is not None and not listing.is_complete:
        skipped.add("has more files than are listed", display_path(listing.archive))
        missing_note = ", as far as its files are listed"
    if listing is None or not names:
        raise NotFound(
            f"{quote(path_glob.text)} means nothing in the archive{missing_note}.", "`**/*.x` is at any depth."
        )
    if len(names) > max_files:
        skipped.add(f"the rest was not read, only the first {max_files:,}", path_glob.text)
    paths: list[ReadablePath] = []
    for name in sorted(names)[:max_files]:
        try:
            paths.append(start.at(start.root, (*listing.archive.parts, *name.split("/"))))
        except Problem:
            skipped.add("protected", f"{display_path(listing.archive)}/{name}")
    return ExpandedGlob(paths, skipped)
