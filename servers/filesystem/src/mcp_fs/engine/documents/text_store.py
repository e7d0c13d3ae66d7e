"""Keeps the text of documents for the next search, in a private folder of the user, by what is in their files.

Whoever asks has the file open already, so nothing is read from here that could not be read from there.
"""

from __future__ import annotations

import hashlib
import json
import logging
import platform
import threading
import zlib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, BinaryIO

from mcp_batteries.errors import Problem

if TYPE_CHECKING:
    from mcp_batteries.remote.disk import DiskStore

__all__ = ["StoredText", "TextStore"]

_log = logging.getLogger(__name__)

_BLOCK_BYTES = 1024 * 1024
# Of a text: a larger one would take the place of many.
_MAX_TEXT_BYTES = 16 * 1024 * 1024
_WRITES_BETWEEN_TIDYING = 64
_LIBRARIES = (
    "arro3-core", "arro3-io", "chardet", "compressed-rtf", "olefile", "pypdfium2", "python-calamine", "striprtf",
)  # fmt: skip
# The second tells the encodings of mails and pages that do not name theirs.
_READER_PACKAGES = ("mcp_fs.engine.documents", "mcp_fs.engine.text")

# What kind of text it is, and the text as UTF-8; without a kind, why there is none.
StoredText = tuple[str, bytes]


class TextStore:
    """The texts of documents that were read lately; safe in several threads and processes.

    Args:
        folder: its path; made at the first use. If it can't be used, nothing is kept.
        max_bytes: of all that is kept.
    """

    def __init__(self, folder: str, max_bytes: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._disk: DiskStore | None = None
        self._is_usable = True
        self._writes = 0

    def key_of(self, file: BinaryIO, name: str) -> str:
        """Return what the text of an open file is kept by: all its bytes, and the end of its name."""
        digest = hashlib.blake2b(digest_size=32)
        file.seek(0)
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
        file.seek(0)
        return f"{name.rpartition('.')[2].lower()}:{digest.hexdigest()}"

    def read(self, key: str) -> StoredText | None:
        """Return what is kept; None for nothing, or what was damaged."""
        disk = self._open()
        if disk is None:
            return None
        body = disk.read(key).body
        if body is None:
            return None
        try:
            label, _, text = zlib.decompress(body).partition(b"\n")
            return str(json.loads(label)), text
        except (zlib.error, ValueError):
            return None

    def write(self, key: str, text: StoredText) -> None:
        """Keep a text, unless it is very long or the disk is full."""
        disk = self._open()
        if disk is None or len(text[1]) > _MAX_TEXT_BYTES:
            return
        from mcp_batteries.remote.entry import Entry

        body = zlib.compress(json.dumps(text[0]).encode() + b"\n" + text[1], 1)
        try:
            disk.write(key, Entry(body=body), body=True)
            with self._lock:
                self._writes += 1
                is_due = self._writes % _WRITES_BETWEEN_TIDYING == 1
            if is_due:
                disk.tidy()
        except OSError as error:
            _log.info("The text of a document is not kept: %s", error.strerror)

    def _open(self) -> DiskStore | None:
        with self._lock:
            if self._disk is None and self._is_usable:
                from mcp_batteries.remote.disk import DiskStore

                try:
                    self._disk = DiskStore(self._folder, _reader_identity(), max_bytes=self._max_bytes)
                except Problem as problem:
                    self._is_usable = False
                    _log.info("The text of documents is not kept: %s", problem.failure)
            return self._disk


def _reader_identity() -> list[str]:
    """Return what decides how a document reads: our own modules, Python and the libraries.

    So no text outlives the reader that made it.
    """
    digest = hashlib.blake2b(digest_size=16)
    for package in _READER_PACKAGES:
        for module in _modules_below(files(package)):
            digest.update(module.read_bytes())
    return [digest.hexdigest(), platform.python_version(), *map(_version_of, _LIBRARIES)]


def _modules_below(package: Traversable) -> Iterator[Traversable]:
    """Yield the modules of a package and of those in it, by name."""
    for entry in sorted(package.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _modules_below(entry)
        elif entry.name.endswith(".py"):
            yield entry


def _version_of(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return ""
