"""Reads Rich Text Format, by striprtf. It is also an archive, of its own source."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, BinaryIO

from mcp_fs.engine.documents.formats.archives import ArchiveEntry, NotInstalled, read_all

__all__ = ["RichText", "read_rich_text"]


class RichText:
    """A document in RTF, whose bytes are text themselves."""

    RAW_MEMBER = "source.txt"

    def __init__(self, file: BinaryIO) -> None:
        self._data = read_all(file).read()

    def text(self) -> Iterator[str]:
        yield read_rich_text(self._data)

    def entries(self) -> Iterator[tuple[ArchiveEntry, BinaryIO | None]]:
        yield ArchiveEntry(self.RAW_MEMBER, self.RAW_MEMBER, len(self._data)), io.BytesIO(self._data)


def read_rich_text(data: bytes) -> str:
    """Return the text of RTF; bytes that it does not escape are those of Windows.

    Raises:
        NotInstalled: the library is missing.
    """
    try:
        from striprtf import striprtf  # pyright: ignore[reportMissingTypeStubs]
    except ImportError:
        raise NotInstalled("a document in RTF") from None
    library: Any = striprtf
    text: str = library.rtf_to_text(data.decode("cp1252", "replace"), errors="replace")
    # RTF writes a character beyond U+FFFF as the two halves that UTF-16 has for it.
    decoded = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return decoded.strip("\n") + "\n"
