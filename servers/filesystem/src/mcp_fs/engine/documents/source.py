"""The text of a place: a document's, that of an archive's member as `a.zip!/in/readme.txt`, or the file itself."""

from __future__ import annotations

import json
import os
import stat
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, cast

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import NotFound, Problem
from mcp_fs.engine.document_kinds import (
    HEAD_BYTES,
    RAW_MEMBERS,
    SUFFIXES,
    can_hold_files,
    is_archive,
    is_document,
    kind_of,
)
from mcp_fs.engine.documents.converter import Extracted, Output, extract
from mcp_fs.engine.handles.path_opening import open_file, read_status
from mcp_fs.policy import ReadablePath

__all__ = [
    "ArchiveMember",
    "MemberListing",
    "is_document",
    "is_in_archive",
    "list_members",
    "needs_worker",
    "open_content",
    "open_text",
    "raw_source_path",
    "read_members",
    "to_anonymous_file",
]


@dataclass(frozen=True, slots=True)
class ArchiveMember:
    """A file of an archive, with its text or its bytes."""

    place: ReadablePath
    data: bytes


@contextmanager
def open_content(
    path: ReadablePath, cancel: CancelToken, *, raw: bool = False
) -> Generator[tuple[BinaryIO, str | None]]:
    """Yield what is to be read at `path`, open, and what it is when that is not the file itself.

    Args:
        raw: whether a document is wanted as it is; a member of an archive is unpacked in any case.

    Raises:
        Problem: it can't be opened, or its text can't be taken out.
    """
    with _open_file_or_archive(path) as (file, inner):
        extracted = None
        if inner is not None:
            extracted = _extract_member(file, path, inner, cancel, raw=raw)
        elif not raw:
            extracted = _extract_text(file, path, cancel)
        if extracted is None:
            yield file, None
        else:
            with to_anonymous_file(extracted.data) as copy:
                yield copy, _describe_text(extracted, path)


def _extract_member(
    file: BinaryIO, path: ReadablePath, inner: tuple[str, ...], cancel: CancelToken, *, raw: bool
) -> Extracted:
    """Return the member `inner` of an open archive, as text or as it is."""
    archive = path.parts[len(path.parts) - len(inner) - 1].removesuffix("!")
    output: Output = "text"
    if raw:
        output = "bytes"
    return extract(file, archive, inner, output, path.display, cancel)


def open_text(file: BinaryIO, path: ReadablePath, cancel: CancelToken) -> tuple[BinaryIO, str]:
    """Return the text of an open document as a file, or the file itself if it is none; and why the rest is missing."""
    extracted = _extract_text(file, path, cancel)
    if extracted is None:
        return file, ""
    file.close()
    return to_anonymous_file(extracted.data), extracted.cut_reason


def _extract_text(file: BinaryIO, path: ReadablePath, cancel: CancelToken) -> Extracted | None:
    """Return the text of an open document or archive; None for what is read as it is.

    The file is at its beginning then.
    """
    kind = kind_of(path.name, file.read(HEAD_BYTES))
    file.seek(0)
    if kind is None:
        return None
    extracted = extract(file, path.name, (), "text", path.display, cancel)
    file.seek(0)
    if kind == "notebook" and not extracted.label:
        return None  # it has the name of a notebook, and could not be read as one
    return extracted


def needs_worker(path: ReadablePath) -> bool:
    """Return whether reading a path is likely to wait for the process that takes text out."""
    return is_document(path.name) or is_archive(path.name) or any(part.endswith("!") for part in path.parts)


def is_in_archive(path: ReadablePath) -> bool:
    """Return whether `path` is an archive, or lies in one."""
    try:
        with _open_file_or_archive(path) as (file, inner):
            return inner is not None or can_hold_files(kind_of(path.name, file.read(HEAD_BYTES)))
    except Problem:
        return False


def read_members(place: ReadablePath, cancel: CancelToken) -> tuple[Sequence[ArchiveMember], str]:
    """Return the files of an archive, or of a folder in it, with their text or bytes, and why the rest is missing.

    What is protected is left out.

    Raises:
        Problem: it can't be read.
    """
    with _open_file_or_archive(place) as (file, inner):
        archive_parts = place.parts
        name = place.name
        if inner is not None:
            archive_parts = place.parts[: len(place.parts) - len(inner)]
            name = archive_parts[-1].removesuffix("!")
        extracted = extract(file, name, inner or (), "all", place.display, cancel)
    top = (*archive_parts[:-1], name + "!")
    members: list[ArchiveMember] = []
    for path, data in extracted.members:
        parts = place.parts
        if path:
            parts = (*top, *path.split("/"))
        if not place.policy.is_protected(parts):
            members.append(ArchiveMember(place.at(place.root, parts), data))
    return members, extracted.cut_reason


@dataclass(frozen=True, slots=True)
class MemberListing:
    """The files of an archive, or of a folder in it, by name.

    Attributes:
        archive: the path that the names stand behind, which ends in `!`.
        sizes: bytes by the name of a file, from the top of the archive on.
        is_complete: whether there are no more than were listed.
    """

    archive: ReadablePath
    sizes: Mapping[str, int]
    is_complete: bool


def list_members(place: ReadablePath, cancel: CancelToken) -> MemberListing | None:
    """Return the files of an archive, or of a folder in it; None of what is neither. Links are left out.

    Raises:
        Problem: it can't be read.
    """
    with _open_file_or_archive(place) as (file, inner):
        file_parts = place.parts
        name = place.name
        if inner is not None:
            file_parts = place.parts[: len(place.parts) - len(inner)]
            name = file_parts[-1].removesuffix("!")
        extracted = extract(file, name, inner or (), "names", place.display, cancel)
    if not extracted.data:
        return None
    # What stands behind the last line end was cut in two by the limit.
    archive_names, *lines = extracted.data.decode().split("\n")[:-1]
    sizes: dict[str, int] = {}
    is_complete = not extracted.cut_reason
    for line in lines:
        size, _, member = line.partition("\t")
        if member:
            sizes[json.loads(member)] = int(size)
        else:
            is_complete = False
    archive = place.at(place.root, (*file_parts[:-1], f"{name}!", *json.loads(archive_names)))
    return MemberListing(archive, sizes, is_complete)


@contextmanager
def _open_file_or_archive(path: ReadablePath) -> Generator[tuple[BinaryIO, tuple[str, ...] | None]]:
    """Yield the file at `path`, or the archive it lies in and the names in that."""
    inner = None
    try:
        file = open_file(path)
    except NotFound:
        above = _find_archive(path)
        if above is None:
            raise
        archive, inner = above
        file = open_file(archive)
    with file:
        yield file, inner


def _find_archive(path: ReadablePath) -> tuple[ReadablePath, tuple[str, ...]] | None:
    for number, part in enumerate(path.parts):
        if part.endswith("!") and len(part) > 1:
            archive = path.at(path.root, (*path.parts[:number], part[:-1]))
            try:
                if stat.S_ISREG(read_status(archive).st_mode):
                    return archive, path.parts[number + 1 :]
            except NotFound:
                continue
    return None


def to_anonymous_file(data: bytes) -> BinaryIO:
    """Return `data` as a file that has no name."""
    if sys.platform == "linux":
        file = os.fdopen(os.memfd_create("mcp-fs", os.MFD_CLOEXEC), "w+b", buffering=0)
    else:
        file = cast("BinaryIO", tempfile.TemporaryFile(buffering=0))  # noqa: SIM115 - whoever asked closes it
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[file.write(remaining) :]
    file.seek(0)
    return cast("BinaryIO", file)


def raw_source_path(path: ReadablePath) -> str | None:
    """Return the path of a file as it is written, where its text is another; None where the text is what is edited."""
    own = RAW_MEMBERS.get(SUFFIXES.get(path.name.rpartition(".")[2].lower(), ""))
    if own is None:
        return None
    return f"{path.display}!/{own}"


def _describe_text(extracted: Extracted, path: ReadablePath) -> str:
    """Return what kind of text is shown, and how to get at the rest."""
    label = extracted.label or "unpacked"
    if extracted.label.startswith("listing"):
        label += f": read what is in it as `{_archive_path(extracted, path)}!/NAME`"
    elif extracted.label:
        source = raw_source_path(path)
        if source is not None:
            label += f", the file itself is `{source}`"
    if extracted.cut_reason:
        label += f", {extracted.cut_reason}"
    return label


def _archive_path(listing: Extracted, place: ReadablePath) -> str:
    """Return the path of the archive that a listing is of, or of a folder in it."""
    path = place.display.removesuffix("!")
    if "folder" not in listing.label:
        return path
    return path.rpartition("!/")[0] or path
