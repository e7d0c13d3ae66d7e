"""Workbooks and PDFs: what libraries read that the extra `documents` brings."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, BinaryIO

from mcp_fs.engine.documents.archives import Unreadable, held

__all__ = ["NotInstalled", "pages", "sheets"]


class NotInstalled(Exception):
    """What the file is; the library for it is not there."""


def sheets(file: BinaryIO) -> Iterator[str]:
    """A workbook: of each sheet a line for each row, its cells between tabs."""
    try:
        import python_calamine
    except ImportError:
        raise NotInstalled("a workbook") from None
    calamine: Any = python_calamine
    try:
        book = calamine.CalamineWorkbook.from_filelike(held(file))
        for name in book.sheet_names:
            yield f"[sheet {name}]\n"
            for row in book.get_sheet_by_name(name).iter_rows():
                cells = [_cell(value) for value in row]
                while cells and not cells[-1]:
                    cells.pop()
                yield "\t".join(cells) + "\n"
    except calamine.PasswordError:
        raise Unreadable("is locked by a password") from None
    except calamine.CalamineError as error:
        raise Unreadable(f"is damaged: {error}") from None


def _cell(value: object) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, datetime):
        return value.isoformat(" ")
    return " ".join(str(value).split()) if isinstance(value, str) else str(value)


def pages(file: BinaryIO) -> Iterator[str]:
    """The text of a PDF, page by page."""
    try:
        import pypdfium2  # pyright: ignore[reportMissingTypeStubs]
    except ImportError:
        raise NotInstalled("a PDF") from None
    pdfium: Any = pypdfium2
    try:
        document = pdfium.PdfDocument(held(file).read())
    except pdfium.PdfiumError:
        raise Unreadable("is damaged or locked by a password") from None
    try:
        for number in range(len(document)):
            text = str(document[number].get_textpage().get_text_range()).replace("\r\n", "\n").strip()
            yield f"[page {number + 1} of {len(document)}]\n{text or '(no text: see it with read_media)'}\n"
    finally:
        document.close()
