"""Reads Rich Text Format, by striprtf. It is also an archive, of its own source."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from mcp_fs.engine.documents.formats.archives import ArchiveEntry, NotInstalled, read_all
from mcp_fs.engine.documents.formats.raised import raise_text

__all__ = ["RichText", "read_rich_text"]

# The library leaves out numbers of lists, which are written out before each item, and notes.
_LIST_NUMBER = re.compile(r"\{\\(?:listtext|pntext)(?![a-z])")
_NOTE = re.compile(r"\{\\footnote(?![a-z])")
_BRACE = re.compile(r"\\[\\{}]|[{}]")
# Raised text as far as it is in one piece, behind what else is said of its looks.
_RAISED = re.compile(r"(\\super(?![a-z0-9])(?:\\(?!super|nosupersub|plain)[a-z]++(?:-?\d++)?)*+ ?+)([^\\{}]+)")
# Characters of private use that mark where something begins and ends, and how RTF writes them.
_MARKS = "\ue000\ue001\ue002\ue003"
_RAISED_BEGIN, _RAISED_END, _NOTE_BEGIN, _NOTE_END = (f"{{\\uc1\\u{ord(mark) - 0x10000}?}}" for mark in _MARKS)
_NOTE_TEXT = re.compile("\ue002([^\ue002\ue003]*)\ue003")


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
    """Return the text of RTF, with its notes behind it; bytes that it does not escape are those of Windows.

    Raises:
        NotInstalled: the library is missing.
    """
    try:
        from striprtf import striprtf  # pyright: ignore[reportMissingTypeStubs]
    except ImportError:
        raise NotInstalled("a document in RTF") from None
    library: Any = striprtf
    source = _mark_notes(_LIST_NUMBER.sub("{", data.decode("cp1252", "replace")))
    source = _RAISED.sub(lambda raised: f"{raised[1]}{_RAISED_BEGIN}{raised[2]}{_RAISED_END}", source)
    text: str = library.rtf_to_text(source, errors="replace")
    # RTF writes a character beyond U+FFFF as the two halves that UTF-16 has for it.
    decoded = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return _move_notes(_raise_marked(decoded))


def _mark_notes(source: str) -> str:
    """Return RTF in which notes are groups of the text, with marks at both ends."""
    pieces: list[str] = []
    position = 0
    while (note := _NOTE.search(source, position)) is not None:
        end = _find_end(source, note.end())
        pieces += [source[position : note.start()], "{", _NOTE_BEGIN, source[note.end() : end], _NOTE_END]
        position = end
    return "".join(pieces) + source[position:]


def _find_end(source: str, position: int) -> int:
    """Return where the brace is that ends a group, or the end of all where none does."""
    depth = 1
    for brace in _BRACE.finditer(source, position):
        if brace[0] == "{":
            depth += 1
        elif brace[0] == "}":
            depth -= 1
        if depth == 0:
            return brace.start()
    return len(source)


def _raise_marked(text: str) -> str:
    """Return text in which digits that are raised behind others are written so."""
    last = ""
    pieces: list[str] = []
    for number, piece in enumerate(re.split(f"[{_MARKS[:2]}]", text)):
        if number % 2:
            piece = raise_text(last, piece)
        pieces.append(piece)
        last = piece[-1:] or last
    return "".join(pieces)


def _move_notes(text: str) -> str:
    """Return text with its notes behind it."""
    notes = [" ".join(note.split()) for note in _NOTE_TEXT.findall(text)]
    body = _NOTE_TEXT.sub("", text).strip("\n") + "\n"
    if not notes:
        return body
    return f"{body}\n[notes]\n" + "".join(f"{number} {note}\n" for number, note in enumerate(notes, 1))
