"""Reads PDFs with PDFium: the words of each page by their place, what is filled in or noted, and pages as pictures."""

from __future__ import annotations

import ctypes
import io
import math
import re
import struct
import time
import zlib
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from mcp_batteries.media.pictures import LONGEST_SIDE, MAX_SHOWN_BYTES, Refused, prepare
from mcp_batteries.media.png import SIGNATURE, pack_chunk
from mcp_fs.engine.documents.formats.archives import (
    ArchiveEntry,
    MemberNotFound,
    NotInstalled,
    OutOfTime,
    Unreadable,
    read_all,
)
from mcp_fs.engine.documents.formats.fixed_pages.page_layout import Word, is_raised, lay_out
from mcp_fs.engine.documents.formats.raised import raise_text

__all__ = ["Pdf", "render_pdf_page"]

# 108 dots per inch: readable, and below the size at which hosts scale pictures of usual pages down.
_SCALE = 1.5
# In heights of a line: the narrowest blank, how far a letter drawn twice is set off, the widest letter on average.
_BLANK = 0.15
_OVERSTRIKE = 0.05
_WIDEST_LETTER = 1.0
# In quarters of a circle.
_MOST_SLANT = 0.02
_OBLIQUE = 4
_TOKEN = re.compile(r"[^\0\s]+")
# What PDFium makes of a hyphen at the end of a line within a word.
_HALF = re.compile("[^\x02\ufffe]+")
_DIGIT = re.compile(r"\d")
_WIDE_POINTER = ctypes.POINTER(ctypes.c_ushort)
_HALF_OF_PAGE = 0.5
_PAGES = re.compile(r"(?P<first>\d{1,7})(?:-(?P<last>\d{0,7}))?")
# Of processor time, for the text.
_MAX_SECONDS = 4.5
_MAX_FIELDS = 1000
_FIELD_CHARACTERS = 10_000


class Pdf:
    """A PDF: its text, and by their numbers some of its pages."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def entries(self) -> Iterator[tuple[ArchiveEntry, BinaryIO | None]]:
        yield from ()

    def text(self) -> Iterator[str]:
        """Yield each page."""
        return self._read_pages(1, None)

    def part(self, name: str) -> Iterator[str]:
        """Return one page, or some as `3-9` or `3-`."""
        match = _PAGES.fullmatch(name)
        if match is None:
            raise MemberNotFound("is no page of a PDF: write one as `!/3`, some as `!/3-9` or `!/3-`")
        last = match["last"]
        if last is None:
            last = match["first"]
        return self._read_pages(int(match["first"]), int(last or 0) or None)

    def _read_pages(self, first: int, last: int | None) -> Iterator[str]:
        """Yield pages from the first to the last, included; to the end if there is no last one.

        Raises:
            OutOfTime: it takes long; what is left has a name.
        """
        deadline = time.process_time() + _MAX_SECONDS
        with _open_pdf(self._file) as document:
            pages = len(document)
            if not 1 <= first <= pages:
                raise MemberNotFound(f"is not in the PDF, which has {pages:,} pages")
            document.init_forms()
            for number in range(first, min(last or pages, pages) + 1):
                if time.process_time() > deadline:
                    raise OutOfTime(
                        f"cut after {_MAX_SECONDS:g} s before page {number:,} of {pages:,}: the rest is `!/{number}-`"
                    )
                page = document[number - 1]
                yield _format_page(page, document.formenv, f"page {number} of {pages}")
                page.close()


def _format_page(page: Any, forms: Any, label: str) -> str:
    lines = [line.rstrip() for line in _page_lines(page)]
    text = "\n".join(lines).strip("\n")
    if not text:
        text = "(no text: see it with read_media)"
    elif _is_mostly_picture(page):
        label += ", mostly a picture: see it with read_media"
    parts = [f"[{label}]", text]
    notes = _read_notes(page, forms)
    if notes.fields:
        parts += ["[form]", *notes.fields]
    if notes.comments:
        parts += ["[comments]", *notes.comments]
    return "\n".join(parts) + "\n"


def render_pdf_page(file: BinaryIO, number: int) -> tuple[int, bytes]:
    """Return the number of pages of a PDF, and a picture of one of them; nothing of a page that is not there.

    Args:
        number: of the page, from 1.
    """
    with _open_pdf(file) as document:
        if number > len(document):
            return len(document), b""
        document.init_forms()  # what is filled in is drawn
        return len(document), _render_page(document[number - 1])


def _import_raw() -> Any:
    import pypdfium2.raw  # pyright: ignore[reportMissingTypeStubs]

    return pypdfium2.raw


@contextmanager
def _open_pdf(file: BinaryIO) -> Generator[Any]:
    try:
        import pypdfium2  # pyright: ignore[reportMissingTypeStubs]
    except ImportError:
        raise NotInstalled("a PDF") from None
    pdfium: Any = pypdfium2
    try:
        document = pdfium.PdfDocument(read_all(file).read())
    except pdfium.PdfiumError as error:
        if error.err_code == _import_raw().FPDF_ERR_PASSWORD:
            raise Unreadable("is locked by a password") from None
        raise Unreadable("is damaged") from None
    with closing(document):
        yield document


def _page_lines(page: Any) -> Iterator[str]:
    """Yield the lines of a page; those that do not run from left to right come behind the others."""
    with closing(page.get_textpage()) as text_page:
        words = _WordReader(text_page).read()
    page_turns = page.get_rotation() // 90
    for turns in sorted(range(_OBLIQUE), key=lambda turns: (turns + page_turns) % 4):
        yield from lay_out(words[turns])
    if words[_OBLIQUE]:
        yield " ".join(word.text for word in words[_OBLIQUE])


class _WordReader:
    """Gathers the letters of a page into words, in the order in which they were drawn.

    A call for each letter costs more than all the rest, so of most words only the first and the last are asked for.
    """

    def __init__(self, text_page: Any) -> None:
        raw = _import_raw()
        self._raw = raw
        self._handle = text_page.raw
        self._text = text_page.get_text_range()
        count = text_page.count_chars()
        if len(self._text) != count:  # a letter that has no character
            self._text = "".join(_to_character(raw.FPDFText_GetUnicode(self._handle, index)) for index in range(count))
        self._rectangle = raw.FS_RECTF()
        self._pointer = ctypes.byref(self._rectangle)
        self._words: list[list[Word]] = [[] for _ in range(_OBLIQUE + 1)]

    def read(self) -> list[list[Word]]:
        """Return the words by how many quarters of a circle they are turned, then those that are turned otherwise."""
        for token in _TOKEN.finditer(self._text):
            self._add_token(token.start(), token.end())
        return self._words

    def _add_token(self, start: int, end: int) -> None:
        """Add what stands between two blanks: a word, or the halves of one that the end of a line parted."""
        before: Word | None = None
        for half in _HALF.finditer(self._text, start, end):
            words = self._read_words(half.start(), half.end())
            if before is not None:
                # What is left of the other half is its place, where the next line begins.
                before.text = _join_halves(before.text, words[0].text)
                words[0].text = ""
            if words[-1].text:
                before = words[-1]

    def _read_words(self, start: int, end: int) -> list[Word]:
        """Return and keep the words of some letters that no blank parts, but a gap may."""
        turns = self._turns_at(start)
        first = self._box(start, turns)
        last = self._box(end - 1, turns)
        text = self._text[start:end]
        word = Word(text, min(first[0], last[0]), first[1], max(first[2], last[2]), first[3])
        is_level = abs(first[1] - last[1]) < 0.3 * word.height
        widest = _WIDEST_LETTER * word.height
        if text.isdigit():
            widest = max(first[2] - first[0], last[2] - last[0])  # that of all digits, in nearly every font
        is_even = word.right - word.left < widest * len(text) + _BLANK * word.height / 2
        words = [word]
        if turns != _OBLIQUE and not (is_level and is_even and (text.isdigit() or not _DIGIT.search(text))):
            words = self._part_letters(start, end, turns)
        self._words[turns] += words
        return words

    def _part_letters(self, start: int, end: int, turns: int) -> list[Word]:
        """Return the words of some letters, parted where a gap is as wide as a blank, or a line ends."""
        words: list[Word] = []
        last_left = 0.0
        for index in range(start, end):
            left, bottom, right, top = self._box(index, turns)
            character = self._text[index]
            word = Word(character, left, bottom, right, top)
            if words and _is_drawn_twice(words[-1], word, last_left):
                continue
            if words and _goes_on(words[-1], word):
                if is_raised(word, words[-1]):
                    character = raise_text(words[-1].text, character)
                words[-1].text += character
                words[-1].right = max(words[-1].right, right)
            else:
                words.append(word)
            last_left = left
        return words

    def _turns_at(self, index: int) -> int:
        """Return by how many quarters of a circle a letter is turned, in the direction of a clock."""
        quarters = self._raw.FPDFText_GetCharAngle(self._handle, index) / (math.pi / 2)
        if abs(quarters - round(quarters)) > _MOST_SLANT:
            return _OBLIQUE
        return round(quarters) % 4

    def _box(self, index: int, turns: int) -> tuple[float, float, float, float]:
        """Return left, bottom, right and top of a letter, as they are when it stands upright."""
        self._raw.FPDFText_GetLooseCharBox(self._handle, index, self._pointer)
        box = self._rectangle
        match turns:
            case 1:
                return -box.top, box.left, -box.bottom, box.right
            case 2:
                return -box.right, -box.top, -box.left, -box.bottom
            case 3:
                return box.bottom, -box.right, box.top, -box.left
            case _:
                return box.left, box.bottom, box.right, box.top


def _to_character(code: int) -> str:
    if 0xD800 <= code < 0xE000 or code > 0x10FFFF:
        return "\ufffd"
    return chr(code)


def _join_halves(first: str, second: str) -> str:
    """Return a word that the end of a line parted; what goes on with a capital or a digit has a hyphen of its own."""
    if second[:1].islower():
        return first + second
    return f"{first}-{second}"


def _goes_on(word: Word, letter: Word) -> bool:
    gap = (letter.left - word.right) / word.height
    return -1 < gap <= _BLANK and abs(letter.bottom - word.bottom) <= 0.6 * word.height


def _is_drawn_twice(word: Word, letter: Word, last_left: float) -> bool:
    """Return whether a letter is the one before it, drawn again to look bold."""
    return (
        word.text[-1] == letter.text
        and abs(letter.left - last_left) < _OVERSTRIKE * word.height
        and abs(letter.bottom - word.bottom) < _OVERSTRIKE * word.height
    )


def _is_mostly_picture(page: Any) -> bool:
    """Return whether pictures cover most of a page, as in one that was scanned."""
    raw = _import_raw()
    left, bottom, right, top = page.get_bbox()
    pictures = 0.0
    for item in page.get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE], max_depth=3):
        box = item.get_bounds()
        width = min(box[2], right) - max(box[0], left)
        height = min(box[3], top) - max(box[1], bottom)
        pictures += max(width, 0) * max(height, 0)
    return pictures > _HALF_OF_PAGE * (right - left) * (top - bottom)


@dataclass(slots=True)
class _Notes:
    """What somebody put on a page that is no part of its text, a line each.

    Attributes:
        fields: of a form that are filled in, as `name: value`.
        comments: with their authors; also what was typed over the page.
    """

    fields: list[str] = field(default_factory=list[str])
    comments: list[str] = field(default_factory=list[str])


def _read_notes(page: Any, forms: Any) -> _Notes:
    """Return the notes of a page.

    Args:
        forms: of the document; None if it has none.
    """
    raw = _import_raw()
    notes = _Notes()
    for number in range(min(raw.FPDFPage_GetAnnotCount(page), _MAX_FIELDS)):
        note = raw.FPDFPage_GetAnnot(page, number)
        try:
            kind = raw.FPDFAnnot_GetSubtype(note)
            if kind == raw.FPDF_ANNOT_WIDGET:
                if forms is not None:
                    notes.fields += _describe_field(note, forms)
            elif kind not in (raw.FPDF_ANNOT_LINK, raw.FPDF_ANNOT_POPUP):
                notes.comments += _describe_comment(note)
        finally:
            raw.FPDFPage_CloseAnnot(note)
    return notes


def _describe_comment(note: Any) -> Iterator[str]:
    """Yield the line of a comment that says anything."""
    raw = _import_raw()
    text = _read_string(raw.FPDFAnnot_GetStringValue, note, b"Contents")
    author = _read_string(raw.FPDFAnnot_GetStringValue, note, b"T")
    if text and author:
        yield f"{author}: {text}"
    elif text:
        yield text


def _describe_field(widget: Any, forms: Any) -> Iterator[str]:
    """Yield the line of a field that says anything."""
    raw = _import_raw()
    name = _read_string(raw.FPDFAnnot_GetFormFieldName, forms, widget)
    kind = raw.FPDFAnnot_GetFormFieldType(forms, widget)
    if kind in (raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON):
        if raw.FPDFAnnot_IsChecked(forms, widget):
            yield f"{name}: {_read_string(raw.FPDFAnnot_GetFormFieldExportValue, forms, widget) or 'checked'}"
    elif value := _read_string(raw.FPDFAnnot_GetFormFieldValue, forms, widget):
        yield f"{name}: {value}"


def _read_string(ask: Any, *arguments: Any) -> str:
    """Return on one line what a function of PDFium writes as UTF-16 into a buffer, its last argument but one."""
    size = min(ask(*arguments, None, 0), _FIELD_CHARACTERS * 2)
    buffer = ctypes.create_string_buffer(size + 2)
    ask(*arguments, ctypes.cast(buffer, _WIDE_POINTER), size)
    return " ".join(buffer.raw[:size].decode("utf-16-le", "replace").replace("\0", "").split())


def _render_page(page: Any) -> bytes:
    """Return a page as PNG; one of too many bytes, as most scans are, as JPEG, or smaller where there is no Pillow."""
    sides = page.get_size()
    scale = min(_SCALE, (LONGEST_SIDE - 1) / max(*sides, 1))  # a side is rounded up
    picture = _encode_png(page.render(scale=scale, rev_byteorder=True))
    if len(picture) > MAX_SHOWN_BYTES:
        with suppress(Refused):
            picture = prepare(io.BytesIO(picture), "image/png").data
    while len(picture) > MAX_SHOWN_BYTES:
        scale *= 0.7
        picture = _encode_png(page.render(scale=scale, rev_byteorder=True))
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
