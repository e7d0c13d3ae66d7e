"""The text of a place: a document's, that of an archive's member as `a.zip!/in/readme.txt`, or the file itself."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, cast

from mcp_batteries.errors import NotFound, Problem
from mcp_batteries.limits import Stop
from mcp_fs.engine.document_kinds import HEAD_BYTES, SUFFIXES, is_archive, is_document, kind_of
from mcp_fs.engine.documents.converter import Taken, taken
from mcp_fs.engine.handles.path_opening import open_file, status
from mcp_fs.policy import Readable

__all__ = [
    "Member",
    "as_file",
    "is_document",
    "is_inside",
    "members",
    "open_content",
    "source_of",
    "takes_time",
    "text_file",
]

_OWN = {"mail": "message.txt", "notebook": "notebook.json"}


@dataclass(frozen=True, slots=True)
class Member:
    """A file of an archive, with its text or its bytes."""

    place: Readable
    data: bytes


@contextmanager
def open_content(place: Readable, stop: Stop, *, raw: bool = False) -> Generator[tuple[BinaryIO, str | None]]:
    """What is to be read at `place`, open, and what it is when that is not the file itself.

    Args:
        raw: whether a document is wanted as it is; a member of an archive is unpacked in any case.

    Raises:
        Problem: it can't be opened, or its text can't be taken out.
    """
    with _opened(place) as (file, inner):
        found = None
        if inner is not None:
            archive = place.parts[len(place.parts) - len(inner) - 1].removesuffix("!")
            found = taken(file, archive, inner, "bytes" if raw else "text", place.display, stop)
        elif not raw:
            found = _text(file, place, stop)
        if found is None:
            yield file, None
        else:
            with as_file(found.data) as copy:
                yield copy, _label(found, place)


def text_file(file: BinaryIO, place: Readable, stop: Stop) -> tuple[BinaryIO, str]:
    """The text of an open document as a file of its own, or the file itself if it is none; why the rest is missing."""
    found = _text(file, place, stop)
    if found is None:
        return file, ""
    file.close()
    return as_file(found.data), found.cut


def _text(file: BinaryIO, place: Readable, stop: Stop) -> Taken | None:
    """The text of an open document or archive; None, and the file at its beginning, for what is read as it is."""
    kind = kind_of(place.name, file.read(HEAD_BYTES))
    file.seek(0)
    if kind is None:
        return None
    found = taken(file, place.name, (), "text", place.display, stop)
    file.seek(0)
    # What has the name of a notebook and could not be read as one.
    return None if kind == "notebook" and not found.label else found


def takes_time(place: Readable) -> bool:
    """Whether reading a place is likely to wait for the process that takes text out."""
    return is_document(place.name) or is_archive(place.name) or any(part.endswith("!") for part in place.parts)


def is_inside(place: Readable) -> bool:
    """Whether `place` is an archive, or lies in one."""
    try:
        with _opened(place) as (file, inner):
            return inner is not None or kind_of(place.name, file.read(HEAD_BYTES)) not in (None, *SUFFIXES.values())
    except Problem:
        return False


def members(place: Readable, stop: Stop) -> tuple[Sequence[Member], str]:
    """The files of an archive, or of a folder in it, with their text or bytes, and why the rest is missing.

    What is protected is left out.

    Raises:
        Problem: it can't be read.
    """
    with _opened(place) as (file, inner):
        above = place.parts if inner is None else place.parts[: len(place.parts) - len(inner)]
        name = above[-1].removesuffix("!") if inner is not None else place.name
        found = taken(file, name, inner or (), "all", place.display, stop)
    top = (*above[:-1], name + "!")
    listed: list[Member] = []
    for path, data in found.members:
        parts = (*top, *path.split("/")) if path else place.parts
        if not place.policy.protected(parts):
            listed.append(Member(place.at(place.root, parts), data))
    return listed, found.cut


@contextmanager
def _opened(place: Readable) -> Generator[tuple[BinaryIO, tuple[str, ...] | None]]:
    """The file at `place`, or the archive it lies in and the names in that."""
    inner = None
    try:
        file = open_file(place)
    except NotFound:
        above = _archive_above(place)
        if above is None:
            raise
        archive, inner = above
        file = open_file(archive)
    with file:
        yield file, inner


def _archive_above(place: Readable) -> tuple[Readable, tuple[str, ...]] | None:
    for number, part in enumerate(place.parts):
        if part.endswith("!") and len(part) > 1:
            archive = place.at(place.root, (*place.parts[:number], part[:-1]))
            try:
                if stat.S_ISREG(status(archive).st_mode):
                    return archive, place.parts[number + 1 :]
            except NotFound:
                continue
    return None


def as_file(data: bytes) -> BinaryIO:
    """`data` as a file that has no name."""
    if sys.platform == "linux":
        file = os.fdopen(os.memfd_create("mcp-fs", os.MFD_CLOEXEC), "w+b", buffering=0)
    else:
        file = cast("BinaryIO", tempfile.TemporaryFile(buffering=0))  # noqa: SIM115 - whoever asked closes it
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]
    file.seek(0)
    return cast("BinaryIO", file)


def source_of(place: Readable) -> str | None:
    """The path of a file as it is written, where its text is another; None where the text is all there is to edit."""
    own = _OWN.get(SUFFIXES.get(place.name.rpartition(".")[2].lower(), ""))
    return None if own is None else f"{place.display}!/{own}"


def _label(found: Taken, place: Readable) -> str:
    """What kind of text is shown, and how to get at the rest."""
    label = found.label or "unpacked"
    if found.label.startswith("listing"):
        name = place.display.removesuffix("!")
        if "folder" in label:
            name = name.rpartition("!/")[0] or name
        label += f": read what is in it as `{name}!/NAME`"
    elif found.label and (source := source_of(place)) is not None:
        label += f", the file itself is `{source}`"
    return label + (f", {found.cut}" if found.cut else "")
