"""A file to search: its bytes, the text of a document, or text from an archive."""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import BinaryIO

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Problem, Unavailable
from mcp_fs.engine.documents.source import is_document, open_content, open_text, to_anonymous_file
from mcp_fs.engine.handles.path_opening import Folder, describe_cause, open_file
from mcp_fs.engine.listing.walk import Skipped, display_path, entry_display_path
from mcp_fs.policy import ReadablePath

__all__ = ["DocumentReader", "SearchedFile", "describe_failure"]

_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
# How long the text of documents is taken out in one call; what was taken out is kept for the next.
_DOCUMENT_SECONDS = 15.0


@dataclass(slots=True)  # not frozen: there is one for every file, and freezing trebles its price
class SearchedFile:
    """A file to search.

    Attributes:
        parts: names below the start.
        place: the folder it lies in, or the file itself when `name` is empty.
        folder: the same, open; None when it is to be opened anew.
        data: what was taken out of an archive.
        part: names down to the part of it that is searched; none for all of it.
    """

    parts: tuple[str, ...]
    place: ReadablePath
    name: str = ""
    folder: Folder[ReadablePath] | None = None
    data: bytes | None = None
    part: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        if self.part:
            return display_path(self._place_of_part)
        if self.name:
            return entry_display_path(self.place, self.name)
        return display_path(self.place)

    def open(self, documents: DocumentReader, cancel: CancelToken) -> int:
        """Return a descriptor of the file, or of the text of a document."""
        if self.data is not None:
            return _duplicate_descriptor(to_anonymous_file(self.data))
        if self.part:
            return documents.open_part(self._place_of_part, cancel)
        if is_document(self.name or self.place.name):
            path = self._own_place
            return _duplicate_descriptor(documents.open_text(open_file(path), path, cancel))
        if self.folder is not None:
            return self.folder.open(self.name, _OPEN_FLAGS)
        return _duplicate_descriptor(open_file(self._own_place))

    @property
    def _place_of_part(self) -> ReadablePath:
        own = self._own_place
        return own.at(own.root, (*own.parts[:-1], f"{own.name}!", *self.part))

    @property
    def _own_place(self) -> ReadablePath:
        if self.name:
            return self.place / self.name
        return self.place


@dataclass(slots=True)
class DocumentReader:
    """How long the text of documents may still be taken out.

    Attributes:
        skipped: learns of documents that are searched in part.
    """

    skipped: Skipped
    remaining_seconds: float = _DOCUMENT_SECONDS

    def open_part(self, path: ReadablePath, cancel: CancelToken) -> int:
        """Return a descriptor of the text of a part of a document, or of a file in an archive."""
        with self._count_time(), open_content(path, cancel) as (file, _):
            return os.dup(file.fileno())

    @contextmanager
    def _count_time(self) -> Generator[None]:
        if self.remaining_seconds < 0:
            raise Unavailable(f"documents not searched within {_DOCUMENT_SECONDS:g} s: search again, or fewer")
        started = time.monotonic()
        yield
        self.remaining_seconds -= time.monotonic() - started

    def open_text(self, file: BinaryIO, path: ReadablePath, cancel: CancelToken) -> BinaryIO:
        with ExitStack() as stack:
            stack.callback(file.close)
            with self._count_time():
                text, cut = open_text(file, path, cancel)
            if cut:
                self.skipped.add(f"searched in part, {cut}", display_path(path))
            if text is file:
                stack.pop_all()
            return text


def _duplicate_descriptor(file: BinaryIO) -> int:
    with file:
        return os.dup(file.fileno())


def describe_failure(problem: Problem) -> str:
    """Return why a file could not be searched, in a few words."""
    message = str(problem)
    if "mcp-fs[documents]" in message:
        return "not searched without mcp-fs[documents]"
    if message.startswith("documents not searched"):
        return message.rstrip(".")
    return describe_cause(problem) or "could not be opened"
