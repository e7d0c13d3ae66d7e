"""Reads artifacts: zip files from anybody's workflow, whose sizes and contents are not trusted.

It is in a temporary file while it is read, nothing is unpacked to the disk, and only the shown part of a file is
unpacked.
"""

from __future__ import annotations

import tempfile
import zipfile
import zlib
from typing import IO

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.concurrency.threads import run_in_thread
from mcp_batteries.errors import Invalid, NotFound, TooLarge, quote
from mcp_github.client.api import Api
from mcp_github.invisible import escape_path
from mcp_github.listing.line_window import LineWindow
from mcp_github.models import Text
from mcp_github.policy import FilePath, Repo

__all__ = ["read_artifact_file"]

_MAX_ZIP_BYTES = 100_000_000
_MAX_UNPACKED_BYTES = 200_000_000
_MAX_DIRECTORY_BYTES = 4_000_000
_MAX_MEMORY_BYTES = 4_000_000
_CHUNK_BYTES = 65_536
# A file with a zero byte among its first is not text.
_BINARY_TEST_BYTES = 8000
# The record at the end of a zip file: its mark, that of its 64-bit form, its size, that of the comment behind it, and
# where it has the size of the directory.
_END_MARK = b"PK\x05\x06"
_END_MARK_64 = b"PK\x06\x07"
_END_BYTES = 22
_MAX_COMMENT_BYTES = 65_536
_DIRECTORY_SIZE = slice(12, 16)
_BROKEN_ZIP_ERRORS = (
    zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OSError,
)  # fmt: skip


async def read_artifact_file(
    api: Api, repo: Repo, artifact: int, path: FilePath | None, *, start_line: int, pattern: str | None
) -> Text:
    """Return the files in an artifact, or lines of one of them."""
    description = f"artifact `{artifact}` of `{repo.full_name}`"
    url_path = f"{repo.path}/actions/artifacts/{artifact}/zip"
    with tempfile.SpooledTemporaryFile(_MAX_MEMORY_BYTES) as file:

        def store(data: bytes) -> bool:
            file.write(data)
            return False

        await api.download(url_path, description, repo=repo, max_bytes=_MAX_ZIP_BYTES, feed=store)
        window = LineWindow(start_line=start_line, pattern=pattern, is_log=False)
        return await run_in_thread(lambda cancel: _read_zip(file, description, path, window, cancel))


def _read_zip(
    file: IO[bytes], description: str, path: FilePath | None, window: LineWindow, cancel: CancelToken
) -> Text:
    """Return what the window shows of the list of files, or of the file at `path`."""
    try:
        _check_directory(file, description)
        with zipfile.ZipFile(file) as archive:
            if path is None:
                return _list_files(archive, description, window)
            return _read_file(archive, description, path, window, cancel)
    except _BROKEN_ZIP_ERRORS:
        raise Invalid(
            f"The {description} is not a zip that can be read.", "Its page on GitHub has it to download."
        ) from None


def _list_files(archive: zipfile.ZipFile, description: str, window: LineWindow) -> Text:
    for item in archive.infolist():
        if not item.is_dir():
            line = f"{item.file_size:>12,} {escape_path(item.filename)}\n"
            window.feed(line.encode("utf-8", "replace"))
    return window.render(f"the files in {description} with their sizes in bytes")


def _read_file(
    archive: zipfile.ZipFile, description: str, path: FilePath, window: LineWindow, cancel: CancelToken
) -> Text:
    # Of two files with one name the last counts.
    item = {item.filename: item for item in archive.infolist()}.get(path.name)
    if item is None:
        raise NotFound(
            f"There is no {quote(path.display_name)} in {description}.", "Without `path` its files are listed."
        )
    _unpack(archive, item, description, window, cancel)
    return window.render(f"{quote(path.display_name)} in {description}; {item.file_size:,} bytes")


def _unpack(
    archive: zipfile.ZipFile, item: zipfile.ZipInfo, description: str, window: LineWindow, cancel: CancelToken
) -> None:
    """Feed the text of a file to the window until it is full."""
    name = f"{quote(escape_path(item.filename))} in {description}"
    unpacked_bytes = 0
    with archive.open(item) as content:
        while piece := content.read(_CHUNK_BYTES):
            cancel.check()
            if not unpacked_bytes and b"\0" in piece[:_BINARY_TEST_BYTES]:
                raise Invalid(
                    f"{name} is not text: {item.file_size:,} bytes.", "Its page on GitHub has it to download."
                )
            unpacked_bytes += len(piece)
            if unpacked_bytes > _MAX_UNPACKED_BYTES:
                raise TooLarge(f"{name} has more than `{_MAX_UNPACKED_BYTES:,}` bytes.")
            if window.feed(piece):
                return


def _check_directory(file: IO[bytes], description: str) -> None:
    """Raise `TooLarge` before `zipfile` makes an object of each of a million entries."""
    size = file.seek(0, 2)
    file.seek(max(0, size - _END_BYTES - _MAX_COMMENT_BYTES))
    tail = file.read()
    end = tail.rfind(_END_MARK)
    if end < 0:
        raise zipfile.BadZipFile
    directory_bytes = int.from_bytes(tail[end:][_DIRECTORY_SIZE], "little")
    if directory_bytes > _MAX_DIRECTORY_BYTES or _END_MARK_64 in tail:
        raise TooLarge(f"The {description} has too many files to list.", "Its page on GitHub has it to download.")
