"""Reads artifacts: zip files from anybody's workflow, whose sizes and contents are not trusted.

It is in a temporary file while it is read, nothing is unpacked to the disk, and only the shown part of a file is
unpacked.
"""

from __future__ import annotations

import tempfile
import zipfile
import zlib
from dataclasses import dataclass
from typing import IO

from mcp_batteries.errors import Invalid, NotFound, TooLarge, quote
from mcp_batteries.limits import Stop, in_thread
from mcp_github.client.api import Api
from mcp_github.invisible import shown_path
from mcp_github.listing.line_window import Window
from mcp_github.models import Text
from mcp_github.policy import FilePath, Repo

__all__ = ["Artifacts"]

_ZIP_BYTES, _UNPACKED_BYTES, _DIRECTORY_BYTES = 100_000_000, 200_000_000, 4_000_000
_CHUNK, _IN_MEMORY = 65_536, 4_000_000
_END, _END_64, _END_BYTES = b"PK\x05\x06", b"PK\x06\x07", 22
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OSError)


@dataclass(frozen=True)
class Artifacts:
    api: Api

    async def read(
        self, repo: Repo, artifact: int, path: FilePath | None, *, start_line: int, pattern: str | None
    ) -> Text:
        """The files in an artifact, or lines of one of them."""
        what = f"artifact `{artifact}` of `{repo.full}`"
        where = f"{repo.path}/actions/artifacts/{artifact}/zip"
        with tempfile.SpooledTemporaryFile(_IN_MEMORY) as file:

            def take(data: bytes) -> bool:
                file.write(data)
                return False

            await self.api.download(where, what, repo=repo, max_bytes=_ZIP_BYTES, take=take)
            window = Window(start_line=start_line, pattern=pattern, log=False)
            return await in_thread(lambda stop: _read(file, what, path, window, stop))


def _read(file: IO[bytes], what: str, path: FilePath | None, window: Window, stop: Stop) -> Text:
    try:
        _check_directory(file, what)
        with zipfile.ZipFile(file) as archive:
            if path is None:
                for item in archive.infolist():
                    if not item.is_dir():
                        window.take(f"{item.file_size:>12,} {shown_path(item.filename)}\n".encode("utf-8", "replace"))
                return window.page(f"the files in {what} with their sizes in bytes")
            # Of two files with one name the last counts.
            item = {item.filename: item for item in archive.infolist()}.get(path.name)
            if item is None:
                raise NotFound(f"There is no {quote(path.shown)} in {what}.", "Without `path` its files are listed.")
            _unpack(archive, item, what, window, stop)
            return window.page(f"{quote(path.shown)} in {what}; {item.file_size:,} bytes")
    except _BROKEN:
        raise Invalid(f"The {what} is not a zip that can be read.", "Its page on GitHub has it to download.") from None


def _unpack(archive: zipfile.ZipFile, item: zipfile.ZipInfo, what: str, window: Window, stop: Stop) -> None:
    unpacked = 0
    with archive.open(item) as content:
        while piece := content.read(_CHUNK):
            stop.check()
            if not unpacked and b"\0" in piece[:8000]:
                raise Invalid(
                    f"{quote(shown_path(item.filename))} in {what} is not text: {item.file_size:,} bytes.",
                    "Its page on GitHub has it to download.",
                )
            unpacked += len(piece)
            if unpacked > _UNPACKED_BYTES:
                raise TooLarge(
                    f"{quote(shown_path(item.filename))} in {what} has more than `{_UNPACKED_BYTES:,}` bytes."
                )
            if window.take(piece):
                return


def _check_directory(file: IO[bytes], what: str) -> None:
    """Raise `TooLarge` before `zipfile` makes an object of each of a million entries."""
    size = file.seek(0, 2)
    file.seek(max(0, size - _END_BYTES - 65_536))
    tail = file.read()
    at = tail.rfind(_END)
    if at < 0:
        raise zipfile.BadZipFile
    listed = int.from_bytes(tail[at + 12 : at + 16], "little")
    if listed > _DIRECTORY_BYTES or _END_64 in tail:
        raise TooLarge(f"The {what} has too many files to list.", "Its page on GitHub has it to download.")
