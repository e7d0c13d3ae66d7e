"""Reads the records of a workbook of before 2007 (MS-XLS), and mends what the reader of cells takes them for.

That goes by the code page that a workbook names and by the number of a format. A workbook of BIFF8 has its texts in
UTF-16 whatever it names, and any workbook may give a number to a format of its own.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import Any, BinaryIO

from mcp_fs.engine.documents.formats.tables.cell_looks import is_elapsed_format, is_time_format

__all__ = ["END", "OLD_HEAD", "is_encrypted", "old_records", "read_book_stream"]

OLD_HEAD = struct.Struct("<HH")
END = 0x0A
_BOOK_STREAMS = ("Workbook", "Book")
_FILE_PASS = 0x2F
_MOST_LEADING_RECORDS = 10
_VERSION_8 = b"\x00\x06"
_UTF_16 = 1200
_FORMAT_TEXT_OFFSET = 5
_OLDER_FORMAT_TEXT_OFFSET = 3
_STYLE_FORMAT_OFFSET = 2
# Built-in formats of each kind.
_GENERAL = 0
_DATE = 14
_ELAPSED = 46
_WORD = struct.Struct("<H")


class _Kind(IntEnum):
    END = END
    CODE_PAGE = 0x42
    STYLE = 0xE0
    FORMAT = 0x41E


def read_book_stream(file: BinaryIO) -> bytes:
    """Return the records of a workbook of before 2007; nothing where it has none.

    What the reader of cells would misread in them is mended in the file.

    Args:
        file: in memory.
    """
    import olefile  # pyright: ignore[reportMissingTypeStubs]

    library: Any = olefile
    file.seek(0)
    try:
        container = library.OleFileIO(file, write_mode=True)
        name = next(filter(container.exists, _BOOK_STREAMS), None)
        if name is None:
            return b""
        book = container.openstream(name).read()
        mended_book = _mend(book)
        if mended_book != book:
            container.write_stream(name, mended_book)
        return mended_book
    except (OSError, ValueError, LookupError):  # of a file that is cut off, whose stream can't be written whole
        return b""


def _mend(book: bytes) -> bytes:
    """Return the records with UTF-16 as the code page of BIFF8, and a built-in format for each that they define."""
    mended = bytearray(book)
    is_version_8 = False
    formats: dict[int, int] = {}
    offset = 0
    for number, (kind, body) in enumerate(old_records(book, 0)):
        offset += OLD_HEAD.size
        if number == 0:
            is_version_8 = body[:2] == _VERSION_8
        match kind:
            case _Kind.CODE_PAGE if is_version_8 and len(body) == _WORD.size:
                _WORD.pack_into(mended, offset, _UTF_16)
            case _Kind.FORMAT if len(body) > _OLDER_FORMAT_TEXT_OFFSET:
                formats[_WORD.unpack_from(body)[0]] = _built_in_format(_format_code(body, is_version_8=is_version_8))
            case _Kind.STYLE if len(body) >= _STYLE_FORMAT_OFFSET + _WORD.size:
                own = _WORD.unpack_from(body, _STYLE_FORMAT_OFFSET)[0]
                _WORD.pack_into(mended, offset + _STYLE_FORMAT_OFFSET, formats.get(own, own))
            case _Kind.END:
                break
            case _:
                pass
        offset += len(body)
    return bytes(mended)


def _format_code(body: bytes, *, is_version_8: bool) -> str:
    """Return the code of a format, which stands behind its number and length, and in BIFF8 the width of letters."""
    if not is_version_8:
        return body[_OLDER_FORMAT_TEXT_OFFSET:].decode("latin-1")
    text = body[_FORMAT_TEXT_OFFSET:]
    if body[_FORMAT_TEXT_OFFSET - 1] & 1:
        return text.decode("utf-16-le", "replace")
    return text.decode("latin-1")


def _built_in_format(code: str) -> int:
    if is_elapsed_format(code):
        return _ELAPSED
    if is_time_format(code):
        return _DATE
    return _GENERAL


def is_encrypted(book: bytes) -> bool:
    """Return whether the records of a workbook are encrypted, which one of the first says."""
    for number, (kind, _) in enumerate(old_records(book, 0)):
        if kind == _FILE_PASS:
            return True
        if number == _MOST_LEADING_RECORDS:
            return False
    return False


def old_records(book: bytes, offset: int) -> Iterator[tuple[int, bytes]]:
    """Yield the kind and the body of each record from an offset on, as far as they go."""
    while offset + OLD_HEAD.size <= len(book):
        kind, length = OLD_HEAD.unpack_from(book, offset)
        offset += OLD_HEAD.size
        yield kind, book[offset : offset + length]
        offset += length
