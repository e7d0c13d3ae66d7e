"""Reads books of EPUB, and pages of HTML."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import unquote

from mcp_fs.engine.documents.formats.archives import Unreadable, Zip, read_all
from mcp_fs.engine.documents.formats.charsets import decode_page
from mcp_fs.engine.documents.formats.markup.formulas import FORMULAS, Formula
from mcp_fs.engine.documents.formats.markup.package import read_elements
from mcp_fs.engine.documents.formats.raised import raise_text

__all__ = ["read_epub", "read_html"]

# Marks where a row of a table begins and ends.
_ROW = "\x1e"
_ROW_END = "\x1f"
# A row without another table in it.
_INNERMOST_ROW = re.compile(f"{_ROW}([^{_ROW}{_ROW_END}]*){_ROW_END}")
# Longer ones are parts of a page that a table sets beside each other.
_MAX_CELL_LENGTH = 300
_MOST_COLUMNS = 100
_INTEGER = re.compile(r"\d{1,9}")


def read_epub(file: Zip) -> Iterator[str]:
    """Yield a book of EPUB: its pages in the order of reading."""
    package = _find_package(file)
    pages: dict[str, str] = {}
    order: list[str] = []
    for name, attributes in read_elements(file.member(package)):
        if name == "item":
            pages[attributes.get("id", "")] = attributes.get("href", "")
        elif name == "itemref":
            order.append(attributes.get("idref", ""))
    if not order:
        raise Unreadable("is damaged: it has no pages")
    folder = posixpath.dirname(package)
    locked_parts = _find_locked_parts(file)
    for page in order:
        href = pages.get(page)
        if not href:
            continue
        part = posixpath.normpath(posixpath.join(folder, unquote(href)))
        if part in locked_parts:
            raise Unreadable("is locked: only the reading program that it was bought for can open it")
        stream = file.member(part)
        if stream is None:
            yield f"[{href} is missing in the book]\n\n"
        else:
            yield from read_html(decode_page(read_all(stream).read()))
            yield "\n"


def _find_locked_parts(file: Zip) -> frozenset[str]:
    """Return the parts of a book that are encrypted; often only fonts are."""
    elements = read_elements(file.member("META-INF/encryption.xml"))
    return frozenset(unquote(attributes.get("URI", "")) for name, attributes in elements if name == "CipherReference")


def _find_package(file: Zip) -> str:
    """Return the part that lists the pages of a book; nothing if it is not named."""
    for _, attributes in read_elements(file.member("META-INF/container.xml")):
        path = attributes.get("full-path")
        if path:
            return path
    return ""


@dataclass(slots=True)
class _Table:
    """A table that is open.

    Attributes:
        row: number of the row that is open.
        column: the one that the next cell of the row takes, if no cell above covers it.
        written: how many columns the line has.
        covered: up to which row the last cell of a column goes.
        is_in_row: whether a row has begun that has not ended.
    """

    row: int = 0
    column: int = 0
    written: int = 0
    covered: dict[int, int] = field(default_factory=dict[int, int])
    is_in_row: bool = False

    def start_row(self) -> None:
        self.row += 1
        self.column = 0
        self.written = 0

    def start_cell(self, columns: int, rows: int) -> int:
        """Return how many tabs stand before a cell that goes over so many columns and rows."""
        while self.covered.get(self.column, -1) >= self.row:
            self.column += 1
        tabs = self.column - self.written
        self.written = self.column
        for _ in range(columns):
            self.covered[self.column] = self.row + rows - 1
            self.column += 1
        return tabs


@dataclass(slots=True)
class _List:
    """A list that is open.

    Attributes:
        next_number: of the item that comes, where items are numbered.
    """

    is_numbered: bool
    next_number: int

    def start_item(self, value: str | None) -> str:
        """Return what an item begins with.

        Args:
            value: the number that the page gives it, if it does.
        """
        if not self.is_numbered:
            return "- "
        number = _integer(value, self.next_number)
        self.next_number = number + 1
        return f"{number}. "


class _PageParser(HTMLParser):
    _BREAKS = frozenset({
        "address", "article", "blockquote", "br", "dd", "div", "dl", "dt", "figcaption", "footer", "form", "h1", "h2",
        "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "p", "pre", "section", "table", "title",
        "tr", "ul",
    })  # fmt: skip
    _CELLS = frozenset({"td", "th"})
    _LISTS = frozenset({"ol", "ul"})
    _SILENT = frozenset({"script", "style", "template"})
    _SPOKEN = frozenset({"rp", "rt"})
    _SPOKEN_ENDS = _SPOKEN | {"rb", "ruby"}

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._silent = 0
        self._raised = 0
        self._is_spoken = False
        self._formula: Formula | None = None
        self._tables: list[_Table] = []
        self._lists: list[_List] = []
        self._preformatted = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        name = tag.rpartition(":")[2]
        if self._formula is None and not self._silent and name in FORMULAS:
            self._formula = Formula()
        if self._formula is not None and tag not in self._BREAKS | self._CELLS:
            self._formula.start(name, dict(attrs))
            return
        self._end_formula()
        self._end_marks(tag)
        if tag in self._SPOKEN:
            self._is_spoken = True
        elif tag in self._SILENT:
            self._silent += 1
        elif tag == "sup":
            self._raised += 1
        elif tag in self._BREAKS:
            self._start_block(tag, dict(attrs))
        elif tag in self._CELLS:
            self._start_cell(dict(attrs))

    def _start_table_part(self, tag: str) -> None:
        if tag == "table":
            self._tables.append(_Table())
        elif tag == "tr" and self._tables:
            self._end_row()
            self._tables[-1].start_row()
            self._tables[-1].is_in_row = True
            self.parts.append(_ROW)

    def _end_row(self) -> None:
        if self._tables and self._tables[-1].is_in_row:
            self._tables[-1].is_in_row = False
            self.parts.append(_ROW_END)

    def _start_cell(self, attributes: Mapping[str, str | None]) -> None:
        if not self._tables:
            self._tables.append(_Table())
        tabs = self._tables[-1].start_cell(_span(attributes.get("colspan")), _span(attributes.get("rowspan")))
        self.parts.append("\t" * tabs)

    def _end_marks(self, tag: str) -> None:
        """End what is spoken or raised, whose end may be left out, at a tag that lies in none of it."""
        is_block = tag in self._BREAKS | self._CELLS and tag != "br"
        if is_block:
            self._raised = 0
        if is_block or tag in self._SPOKEN_ENDS:
            self._is_spoken = False

    def _start_block(self, tag: str, attributes: Mapping[str, str | None]) -> None:
        if tag in self._LISTS:
            self._lists.append(_List(tag == "ol", _integer(attributes.get("start"), 1)))
        elif tag == "pre":
            self._preformatted += 1
        self.parts.append("\n" + self._line_prefix(tag, attributes))
        self._start_table_part(tag)

    def _line_prefix(self, tag: str, attributes: Mapping[str, str | None]) -> str:
        """Return what the line of a heading or of an item in a list begins with."""
        if tag == "li" and self._lists:
            return self._lists[-1].start_item(attributes.get("value"))
        if tag == "li":
            return "- "
        if tag[0] == "h" and tag[1:].isdigit():
            return "#" * int(tag[1:]) + " "
        return ""

    def handle_endtag(self, tag: str) -> None:
        if self._formula is not None:
            self._formula.end(tag.rpartition(":")[2])
            if self._formula.has_ended():
                self._end_formula()
            return
        self._end_marks(tag)
        if tag in ("tr", "table"):
            self._end_row()
        if tag in self._SILENT:
            self._silent = max(0, self._silent - 1)
        elif tag == "sup":
            self._raised = max(0, self._raised - 1)
        elif tag in self._BREAKS and tag != "br":
            self.parts.append("\n")
        if tag in self._LISTS and self._lists:
            self._lists.pop()
        elif tag == "pre":
            self._preformatted = max(0, self._preformatted - 1)
        if tag == "table" and self._tables:
            self._tables.pop()

    def _end_formula(self) -> None:
        """Write the formula that is open, if there is one: a page may lack its end."""
        if self._formula is not None:
            self.parts.append(self._formula.finish())
            self._formula = None

    def close(self) -> None:
        super().close()
        self._end_formula()

    def handle_data(self, data: str) -> None:
        if self._formula is not None:
            self._formula.text(data)
            return
        if self._silent or self._is_spoken:
            return
        if self._preformatted:
            text = data.expandtabs().replace(" ", "\xa0")
        else:
            text = re.sub(r"\s+", " ", data)
        if self._raised and self.parts:
            text = raise_text(self.parts[-1], text)
        self.parts.append(text)


def read_html(text: str) -> Iterator[str]:
    """Yield a page of HTML as lines of text."""
    page = _PageParser()
    page.feed(text)
    page.close()
    lines = _INNERMOST_ROW.sub(_write_row, "".join(page.parts)).replace(_ROW_END, "")
    for line in re.split(r"\n+", lines):
        cells = re.sub(r" *\t *", "\t", line.strip(" ")).replace("\xa0", " ")
        if cells.startswith(_ROW):
            text = cells.replace(_ROW, "").lstrip(" ").rstrip("\t")
        else:
            text = cells.lstrip("\t")
        if text:
            yield text + "\n"


def _write_row(row: re.Match[str]) -> str:
    """Return a row on one line, if it has several short cells."""
    cells = [" ".join(cell.split()) for cell in row[1].split("\t")]
    if sum(map(bool, cells)) < 2 or max(map(len, cells)) > _MAX_CELL_LENGTH:
        return row[0]
    return _ROW + "\t".join(cells)


def _integer(value: str | None, default: int) -> int:
    if value is None or not _INTEGER.fullmatch(value.strip()):
        return default
    return int(value)


def _span(value: str | None) -> int:
    """Return over how many columns or rows a cell goes."""
    return min(max(_integer(value, 1), 1), _MOST_COLUMNS)
