"""Reads Word documents (ECMA-376) with what Word shows and their text does not hold.

That is numbers of lists, symbols, where links lead, and which changes are still open.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from mcp_fs.engine.documents.formats.archives import Unreadable, Zip
from mcp_fs.engine.documents.formats.markup.lines import read_xml_lines
from mcp_fs.engine.documents.formats.markup.package import (
    find_links,
    find_main_part,
    find_related_parts,
    local_name,
    read_elements,
)
from mcp_fs.engine.documents.formats.office.drawings import read_drawings
from mcp_fs.engine.documents.formats.office.list_numbers import ListNumbers, read_list_numbers
from mcp_fs.engine.documents.formats.office.office_lines import OfficeLines

__all__ = ["read_word"]

_BLOCK_BYTES = 256 * 1024
_ADDITIONAL_PART = re.compile(r"word/(footnotes|endnotes|comments|header\d*|footer\d*)\.xml")
_LINK_FIELD = re.compile(r'\s*HYPERLINK\s+"([^"]+)"')
_CHANGES = {"ins": "inserted", "moveTo": "moved here", "del": "deleted", "moveFrom": "moved away"}
_MARKS_CHANGE = re.compile(rb"<(?:\w+:)?(?:ins|del|moveTo|moveFrom)\s")
_MOST_CHANGES = 1000
# Fonts that show a symbol where others show a letter, with the usual ones of their symbols, from U+F000 on.
_SYMBOLS = {
    "wingdings": {
        0x4A: "☺", 0x6C: "●", 0x6E: "■", 0x6F: "□", 0x71: "❑", 0x72: "❒", 0x76: "❖", 0x9F: "•", 0xA7: "▪", 0xA8: "◻",
        0xD8: "➢", 0xDF: "←", 0xE0: "→", 0xE1: "↑", 0xE2: "↓", 0xE8: "➔", 0xF0: "⇨", 0xFB: "✗", 0xFC: "✓", 0xFD: "☒",
        0xFE: "☑",
    },
    "wingdings 2": {0x50: "✓", 0x51: "☒", 0x52: "☑", 0x4F: "✗", 0xA3: "☐"},
    "symbol": {
        **dict(zip(range(0x41, 0x5B), "ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ", strict=True)),
        **dict(zip(range(0x61, 0x7B), "αβχδεφγηιϕκλμνοπθρστυϖωξψζ", strict=True)),
        0xA3: "≤", 0xA5: "∞", 0xAB: "↔", 0xAC: "←", 0xAD: "↑", 0xAE: "→", 0xAF: "↓", 0xB0: "°", 0xB1: "±", 0xB3: "≥",
        0xB4: "×", 0xB6: "∂", 0xB7: "•", 0xB8: "÷", 0xB9: "≠", 0xBA: "≡", 0xBB: "≈", 0xCE: "∈", 0xD6: "√", 0xD7: "⋅",
        0xDE: "⇒", 0xE5: "∑", 0xF2: "∫",
    },
}  # fmt: skip


@dataclass(slots=True)
class _Change:
    """A change that nobody has accepted or rejected yet."""

    kind: str
    author: str
    text: str = ""

    def __str__(self) -> str:
        author = ""
        if self.author:
            author = f" by {self.author}"
        return f"{self.kind}{author}: {' '.join(self.text.split())}"


@dataclass(slots=True)
class _Document:
    """What all parts of a document share."""

    numbers: ListNumbers
    changes: list[_Change] = field(default_factory=list[_Change])


def read_word(file: Zip) -> Iterator[str]:
    """Yield a document: its body, then notes, comments, headers, footers and drawings, then changes that are open."""
    main = find_main_part(file, "word/document.xml")
    body = file.member(main)
    if body is None:
        raise Unreadable("is damaged: it has no text")
    if _has_changes(file, main):
        yield "[changes are open: the text has them as if accepted, and their words are listed at its end]\n"
    folder = main.rpartition("/")[0]
    parts = (read_elements(file.member(f"{folder}/{name}.xml")) for name in ("numbering", "styles"))
    document = _Document(read_list_numbers(*parts))
    yield from read_xml_lines(body, _WordLines(document, find_links(file, main)))
    for name in sorted(file.names()):
        match = _ADDITIONAL_PART.fullmatch(name)
        if match is not None:
            yield from _read_additional_part(file, name, match[1].rstrip("0123456789"), document)
    embedded = find_related_parts(file, main, key="Type").get("aFChunk")
    if embedded is not None:
        yield f"\n[text in another format is not shown, such as that of `!/{embedded}`]\n"
    drawings = "".join(read_drawings(file, sorted(name for name in file.names() if name.startswith(f"{folder}/"))))
    if drawings:
        yield f"\n{drawings}"
    if document.changes:
        yield "\n[open changes]\n"
    for change in document.changes:
        yield f"{change}\n"


def _read_additional_part(file: Zip, name: str, title: str, document: _Document) -> Iterator[str]:
    stream = file.member(name)
    if stream is not None:
        text = "".join(read_xml_lines(stream, _WordLines(document, find_links(file, name)))).strip()
        if text:
            yield f"\n[{title}]\n{text}\n"


def _has_changes(file: Zip, part: str) -> bool:
    stream = file.member(part)
    end = b""
    while stream is not None and (block := stream.read(_BLOCK_BYTES)):
        if _MARKS_CHANGE.search(end + block):
            return True
        end = block[-20:]
    return False


class _WordLines(OfficeLines):
    """The lines of one part of a document.

    Args:
        links: addresses by their names in this part.
    """

    def __init__(self, document: _Document, links: Mapping[str, str]) -> None:
        super().__init__()
        self._document = document
        self._addresses = links
        self._element = ""
        self._style = ""
        self._list_id: str | None = None
        self._level: int | None = None
        self._fields: list[tuple[str, int]] = []  # of each open field its code, and where its text begins
        self._open_changes: list[_Change | None] = []
        self._is_next_to_change = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        self._element = local_name(name)
        if self._element in _CHANGES:
            self._start_change(attributes)
        if not self._skipped:
            self._start_word_element(self._element, attributes)
        super().start(name, attributes)

    def _start_word_element(self, name: str, attributes: Mapping[str, str]) -> None:
        local_attributes = {local_name(key): value for key, value in attributes.items()}
        value = local_attributes.get("val", "")
        match name:
            case "p":
                self._is_next_to_change = False
                self._style = ""
                self._list_id = None
                self._level = None
            case "pStyle":
                self._style = value
            case "numId":
                self._list_id = value
            case "ilvl":
                self._level = min(int(value or 0), 8)
            case "noBreakHyphen":
                self._line.append("-")
            case "sym":
                self._line.append(_to_symbol(local_attributes.get("font", ""), local_attributes.get("char", "")))
            case "hyperlink":
                link_id = next((value for key, value in attributes.items() if key.endswith("relationships id")), "")
                self._links.append((self._addresses.get(link_id, ""), len(self._line)))
            case "fldSimple":
                self._links.append((_address_in_field(local_attributes.get("instr", "")), len(self._line)))
            case "fldChar":
                self._mark_field(local_attributes.get("fldCharType", ""))
            case _:
                pass

    def end(self, name: str) -> None:
        self._element = ""
        element = local_name(name)
        if element in _CHANGES:
            self._end_change()
        if not self._skipped:
            match element:
                case "pPr":
                    self._begin_item()
                case "hyperlink" | "fldSimple":
                    self._end_link(*self._links.pop())
                case _:
                    pass
        super().end(name)

    def text(self, data: str) -> None:
        if self._element == "instrText" and self._fields:
            code, begin = self._fields[-1]
            self._fields[-1] = (code + data, begin)
        if self._element in ("t", "delText"):
            if not self._open_changes:
                self._is_next_to_change = False
            elif (change := self._open_changes[-1]) is not None:
                change.text += data
        super().text(data)

    def _begin_item(self) -> None:
        """Put what Word counts before a paragraph of a list, behind the mark of a heading."""
        heading = ""
        if self._prefix.startswith("#"):
            heading = self._prefix
        number = self._document.numbers.next(self._list_id, self._level, self._style)
        self._prefix = heading
        if number:
            self._prefix += number + " "

    def _mark_field(self, kind: str) -> None:
        if kind == "begin":
            self._fields.append(("", len(self._line)))
        elif kind == "end" and self._fields:
            code, begin = self._fields.pop()
            self._end_link(_address_in_field(code), begin)

    def _start_change(self, attributes: Mapping[str, str]) -> None:
        """Begin a change; one of a paragraph's end, a row or a number has no text of its own."""
        change = None
        is_text = not self._path or self._path[-1] not in ("rPr", "trPr", "tcPr", "numPr")
        if is_text and len(self._document.changes) < _MOST_CHANGES:
            author = next((value for key, value in attributes.items() if local_name(key) == "author"), "")
            change = _Change(_CHANGES[self._element], author)
        self._open_changes.append(change)

    def _end_change(self) -> None:
        change = self._open_changes.pop()
        if change is None or not change.text:
            return
        changes = self._document.changes
        if self._is_next_to_change and (changes[-1].kind, changes[-1].author) == (change.kind, change.author):
            changes[-1].text += change.text
        else:
            changes.append(change)
        self._is_next_to_change = True


def _address_in_field(code: str) -> str:
    match = _LINK_FIELD.match(code)
    if match is None:
        return ""
    return match[1]


def _to_symbol(font: str, code: str) -> str:
    """Return the character that a symbol looks like, or its name where that is not known."""
    try:
        number = int(code, 16)
    except ValueError:
        return ""
    symbols = _SYMBOLS.get(font.lower())
    if symbols is None and number < 0xD800:
        return chr(number)
    return (symbols or {}).get(number & 0xFF, f"[{font} {code}]")
