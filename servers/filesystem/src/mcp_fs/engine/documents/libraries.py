"""Reads workbooks and PDFs, with the libraries of the extra `documents`."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from typing import Any, BinaryIO

from mcp_batteries.media.pictures import LONGEST_SIDE, MOST_BYTES
from mcp_batteries.media.png import SIGNATURE, pack_chunk
from mcp_fs.engine.documents.archives import Unreadable, read_all

__all__ = ["NotInstalled", "read_pdf", "read_pdf_page", "read_workbook"]

# 108 dots per inch: readable, and below the size at which hosts scale pictures of usual pages down.
_SCALE = 1.5


class NotInstalled(Exception):
    """What the file is; the library for it is not there."""


def read_workbook(file: BinaryIO) -> Iterator[str]:
    """Yield a workbook: of each sheet a line for each row, its cells between tabs."""
    try:
        import python_calamine
    except ImportError:
        raise NotInstalled("a workbook") from None
    calamine: Any = python_calamine
    try:
        book = calamine.CalamineWorkbook.from_filelike(read_all(file))
        for name in book.sheet_names:
            yield f"[sheet {name}]\n"
            for row in book.get_sheet_by_name(name).iter_rows():
                yield _format_row(row)
    except calamine.PasswordError:
        raise Unreadable("is locked by a password") from None
    except calamine.CalamineError as error:
        raise Unreadable(f"is damaged: {error}") from None


def _format_row(row: Sequence[object]) -> str:
    cells = [_cell(value) for value in row]
    while cells and not cells[-1]:
        cells.pop()
    return "\t".join(cells) + "\n"


def _cell(value: object) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, datetime):
        return value.isoformat(" ")
    if isinstance(value, str):
        return " ".join(str(value).split())
    return str(value)


def read_pdf(file: BinaryIO) -> Iterator[str]:
    """Yield the text of a PDF, page by page."""
    with _open_pdf(file) as document:
        for number in range(len(document)):
            text = _page_text(document[number])
            yield f"[page {number + 1} of {len(document)}]\n{text.strip() or '(no text: see it with read_media)'}\n"


def read_pdf_page(file: BinaryIO, number: int) -> tuple[int, bytes]:
    """Return the number of pages of a PDF, and the text of one of them, or a picture of it as PNG if it has none.

    Nothing of a page that is not there.

    Args:
        number: of the page, from 1.
    """
    with _open_pdf(file) as document:
        if number > len(document):
            return len(document), b""
        page = document[number - 1]
        text = _page_text(page)
        if text.strip():
            return len(document), text.encode("utf-8", "replace")
        return len(document), _render_page(page)


@contextmanager
def _open_pdf(file: BinaryIO) -> Generator[Any]:
    try:
        import pypdfium2  # pyright: ignore[reportMissingTypeStubs]
    except ImportError:
        raise NotInstalled("a PDF") from None
    pdfium: Any = pypdfium2
    try:
        document = pdfium.PdfDocument(read_all(file).read())
    except pdfium.PdfiumError:
        raise Unreadable("is damaged or locked by a password") from None
    with closing(document):
        yield document


def _page_text(page: Any) -> str:
    return str(page.get_textpage().get_text_range()).replace("\r\n", "\n")


def _render_page(page: Any) -> bytes:
    """Return a page as PNG, smaller than usual where it is larger than models take."""
    sides = page.get_size()
    scale = min(_SCALE, (LONGEST_SIDE - 1) / max(*sides, 1))  # a side is rounded up
    while len(picture := _encode_png(page.render(scale=scale, rev_byteorder=True))) > MOST_BYTES:
        scale *= 0.7
    return picture


def _encode_png(bitmap: Any) -> bytes:
    """Return a bitmap in RGB as PNG (RFC 2083): small enough here to need no imaging library."""
    width = bitmap.width
    height = bitmap.height
    channels = bitmap.n_channels
    pixels = bytes(bitmap.buffer)
    rows = (pixels[at : at + width * channels] for at in range(0, height * bitmap.stride, bitmap.stride))
    raw = b"".join(b"\0" + row for row in rows)
    colour = {1: 0, 3: 2, 4: 6}[channels]

    header = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    chunks = (b"IHDR", header), (b"IDAT", zlib.compress(raw)), (b"IEND", b"")
    return SIGNATURE + b"".join(pack_chunk(name, body) for name, body in chunks)
