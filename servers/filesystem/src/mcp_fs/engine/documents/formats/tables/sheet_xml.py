"""Reads from the XML of a sheet (ECMA-376) what its values do not tell.

That is errors, formulas, numbers of more digits than a double holds, what cells show otherwise than it is stored, and
comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from xml.parsers import expat

from mcp_fs.engine.documents.formats.archives import Unreadable, Zip
from mcp_fs.engine.documents.formats.markup.package import ElementHandler, create_parser, local_name, read_blocks
from mcp_fs.engine.documents.formats.tables.cell_areas import Area, cell_name, parse_cell
from mcp_fs.engine.documents.formats.tables.cell_looks import CellLooks, RaisedText
from mcp_fs.engine.documents.formats.tables.matching_elements import find_elements

__all__ = ["SheetXml", "read_cells", "read_comments"]

_LONG_NUMBER = re.compile(r"-?\d{16,}")
_NEEDS_XML = rb"""\bt=["']e["']|<(?:\w+:)?f[\s/>]|>-?\d{16,}<"""
# A row or some columns that are hidden, by hand, in a group or by a filter.
_HIDDEN = re.compile(rb"""<(?:\w+:)?(row|col)\s((?=[^<>]*\bhidden=["'](?:1|true)["'])[^<>]*)>""")
_PLACE = re.compile(rb"""(?<![\w:])(r|min|max)=["'](\d{1,7})["']""")
_LONGEST_TAG_BYTES = 1024
# What Excel writes before the text of a comment that has answers, for older programs.
_THREAD_NOTICE = re.compile(r"\[Threaded comment\].*?Comment:\s*", re.DOTALL)


@dataclass(slots=True)
class SheetXml:
    """What the XML of a sheet tells beyond its values; cells by row and column, from 1.

    Attributes:
        texts: errors, what cells show in place of their value, and formulas whose value the file does not have.
        formulas: with the sign before them.
        comments: with their authors.
        hidden_rows: in their order.
        hidden_columns: in their order.
    """

    texts: dict[tuple[int, int], str] = field(default_factory=dict[tuple[int, int], str])
    formulas: dict[tuple[int, int], str] = field(default_factory=dict[tuple[int, int], str])
    comments: dict[tuple[int, int], str] = field(default_factory=dict[tuple[int, int], str])
    hidden_rows: list[int] = field(default_factory=list[int])
    hidden_columns: list[int] = field(default_factory=list[int])

    @property
    def unstored(self) -> int:
        """How many formulas have no value."""
        return sum(self.texts.get(cell) == formula for cell, formula in self.formulas.items())

    def within(self, area: Area) -> SheetXml:
        """Return what concerns the cells of an area."""
        return SheetXml(
            _select_cells(self.texts, area),
            _select_cells(self.formulas, area),
            _select_cells(self.comments, area),
            self.hidden_rows,
            self.hidden_columns,
        )


def _select_cells(texts: Mapping[tuple[int, int], str], area: Area) -> dict[tuple[int, int], str]:
    return {cell: text for cell, text in texts.items() if area.holds(*cell)}


def read_cells(package: Zip, part: str, looks: CellLooks) -> SheetXml:
    pattern = re.compile(b"|".join([_NEEDS_XML, looks.pattern()]))
    xml = SheetXml()
    cells = _CellReader(looks, xml)
    _parse(cells, (element for _, element in find_elements(package.member(part), b"c", pattern)))
    if cells.are_by_order:
        xml = SheetXml()
        _parse(_CellReader(looks, xml), read_blocks(package.member(part)))
    _find_hidden(read_blocks(package.member(part)), xml)
    return xml


def _find_hidden(blocks: Iterable[bytes], xml: SheetXml) -> None:
    """Note the rows and columns that are hidden: a person who looks at the sheet does not see them."""
    remainder = b""
    columns: set[int] = set()
    for block in blocks:
        piece = remainder + block
        end = 0
        for match in _HIDDEN.finditer(piece):
            end = match.end()
            places = {name: int(number) for name, number in _PLACE.findall(match[2])}
            if match[1] == b"row" and b"r" in places:
                xml.hidden_rows.append(places[b"r"])
            elif b"min" in places and b"max" in places:
                columns.update(range(places[b"min"], min(places[b"max"], Area().last_column) + 1))
        remainder = piece[max(end, len(piece) - _LONGEST_TAG_BYTES) :]
    xml.hidden_columns = sorted(columns)


def read_comments(package: Zip, part: str, xml: SheetXml) -> None:
    comments = _CommentReader()
    _parse(comments, read_blocks(package.member(part)))
    xml.comments |= comments.comments


class _CellReader:
    """Takes from the XML of a sheet what its values do not tell.

    Attributes:
        are_by_order: whether a cell has no name, so that those before it say where it is.
    """

    def __init__(self, looks: CellLooks, xml: SheetXml) -> None:
        self.are_by_order = False
        self._looks = looks
        self._xml = xml
        self._style = ""
        self._row = 0
        self._column = 0
        self._kind = ""
        self._formula: str | None = None
        self._shared = ""
        self._value = ""
        self._element = ""
        self._bases: dict[str, str] = {}
        self._inline_text: RaisedText | None = None

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if self._inline_text is not None:
            self._inline_text.start(name, attributes)
            return
        self._element = local_name(name)
        match self._element:
            case "row":
                self._row = int(attributes.get("r", self._row + 1))
                self._column = 0
            case "c":
                self._start_cell(attributes)
            case "f":
                self._formula = ""
                self._shared = attributes.get("si", "")
            case "is":
                self._inline_text = RaisedText()
            case _:
                pass

    def _start_cell(self, attributes: Mapping[str, str]) -> None:
        self._column += 1
        place = parse_cell(attributes.get("r", ""))
        if place is not None:
            self._row, self._column = place
        else:
            self.are_by_order = True
        self._kind = attributes.get("t", "n")
        self._style = attributes.get("s", "")
        self._formula = None
        self._value = ""

    def text(self, data: str) -> None:
        if self._inline_text is not None:
            self._inline_text.text(data)
        elif self._element == "f" and self._formula is not None:
            self._formula += data
        elif self._element == "v":
            self._value += data

    def end(self, name: str) -> None:
        self._element = ""
        if self._inline_text is not None and local_name(name) == "is":
            self._end_inline_text(self._inline_text)
        elif self._inline_text is not None:
            self._inline_text.end(name)
        elif local_name(name) == "c":
            self._end_cell()

    def _end_inline_text(self, text: RaisedText) -> None:
        if text.has_raised:
            self._xml.texts[self._row, self._column] = text.take()
        self._inline_text = None

    def _end_cell(self) -> None:
        place = (self._row, self._column)
        if self._formula is not None:
            self._xml.formulas[place] = self._written_formula()
            # An empty text is stored as an empty value.
            if not self._value and self._kind != "str":
                self._xml.texts[place] = self._xml.formulas[place]
        if self._kind == "e" or (self._kind == "n" and _LONG_NUMBER.fullmatch(self._value)):
            self._xml.texts[place] = self._value
        look = self._looks.text_of(self._kind, self._style, self._value)
        if look is not None:
            self._xml.texts[place] = look

    def _written_formula(self) -> str:
        """Return the formula of a cell; of one that shares it with others, the name of the cell that has it."""
        if self._formula:
            if self._shared:
                self._bases.setdefault(self._shared, cell_name(self._row, self._column))
            return "=" + " ".join(self._formula.split())
        return f"= as {self._bases.get(self._shared, 'another cell')}, moved here"


class _CommentReader:
    """Takes the comments of a sheet from their part."""

    def __init__(self) -> None:
        self.comments: dict[tuple[int, int], str] = {}
        self._cell = (0, 0)
        self._text = ""
        self._authors: list[str] = []
        self._author = 0
        self._element = ""

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        self._element = local_name(name)
        match self._element:
            case "author":
                self._authors.append("")
            case "comment":
                self._author = int(attributes.get("authorId", "0"))
                self._cell = parse_cell(attributes.get("ref", "")) or (0, 0)
                self._text = ""
            case _:
                pass

    def text(self, data: str) -> None:
        if self._element == "author":
            self._authors[-1] += data
        elif self._element == "t":
            self._text += data

    def end(self, name: str) -> None:
        self._element = ""
        if local_name(name) == "comment":
            self._end_comment()

    def _end_comment(self) -> None:
        """Name the author, unless that is the number of a thread or the text begins with it."""
        text = " ".join(_THREAD_NOTICE.sub("", self._text).split())
        author = "".join(self._authors[self._author : self._author + 1])
        if author and not author.startswith("tc=") and not text.startswith(author):
            text = f"{author}: {text}"
        self.comments[self._cell] = text


def _parse(handler: ElementHandler, pieces: Iterable[bytes]) -> None:
    parser = create_parser(handler)
    try:
        for piece in pieces:
            parser.Parse(piece)
    except (expat.ExpatError, ValueError) as error:
        raise Unreadable(f"is damaged: {error}") from None
