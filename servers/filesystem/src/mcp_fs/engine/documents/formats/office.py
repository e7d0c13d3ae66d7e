"""Reads the text of office documents, books and pages as a stream of elements, never as a tree.

Three vocabularies (ECMA-376, ISO/IEC 26300, XHTML) have the same few notions: paragraphs, rows, cells, breaks.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from typing import BinaryIO
from urllib.parse import unquote
from xml.parsers import expat

from mcp_fs.engine.document_kinds import MAX_OUTPUT_BYTES
from mcp_fs.engine.documents.formats.archives import Unreadable, Zip, read_all
from mcp_fs.engine.documents.formats.charsets import decode_page
from mcp_fs.engine.documents.formats.package import (
    create_parser,
    find_main_part,
    find_related_parts,
    local_name,
    read_elements,
)
from mcp_fs.engine.documents.formats.raised import raise_text

__all__ = ["LineBuilder", "read_epub", "read_html", "read_open_document", "read_slides", "read_xml_lines"]

_BLOCK_BYTES = 256 * 1024
_HEADING = re.compile(r"(?:heading|titre|überschrift) ?(\d)|(title)$", re.IGNORECASE)
# What is shown a second time for older programs, what was deleted or looked otherwise, and codes of fields.
_IGNORED_ELEMENTS = frozenset({
    "Fallback", "delText", "instrText", "moveFrom", "pPrChange", "rPrChange", "tracked-changes", "binary-data",
})  # fmt: skip
# In a sheet of any spreadsheet.
_MOST_CELLS = 16_384
_MOST_ROWS = 1_048_576


class LineBuilder:
    """Paragraphs and rows of cells as lines of text.

    Args:
        all_text: whether the text of a paragraph is all that stands in it (ISO/IEC 26300), not only that of `t`.
    """

    def __init__(self, *, all_text: bool) -> None:
        self.ready: list[str] = []
        self._all_text = all_text
        self._line = list[str]()
        self._prefix = ""
        self._path: list[str] = []
        self._cells: list[list[str]] = []  # of each open cell its lines
        self._rows: list[list[str]] = []  # of each open row its cells
        self._links: list[tuple[str, int]] = []  # of each open link where it leads, and where its text begins
        self._repeated: list[int] = []  # how often each open row and cell stands there
        self._remaining_bytes = MAX_OUTPUT_BYTES
        self._paragraphs = 0
        self._texts = 0
        self._is_raised = False
        self._skipped = 0

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        name = local_name(name)
        if self._skipped or name in _IGNORED_ELEMENTS:
            self._skipped += 1
            return
        parent = ""
        if self._path:
            parent = self._path[-1]
        self._path.append(name)
        local_attributes = {local_name(key): value for key, value in attributes.items()}
        match name:
            case "p" | "h":
                self._start_paragraph(name, local_attributes)
            case "t":
                self._texts += 1
            case "r":
                self._is_raised = False
            case "vertAlign":
                self._is_raised = local_attributes.get("val") == "superscript"
            case "rPr":
                baseline = local_attributes.get("baseline", "0")
                self._is_raised = not baseline.startswith("-") and baseline.strip("0%") != ""
            case "tab" if parent != "tabs":
                self._line.append("\t")
            case "br" | "cr" | "line-break":
                self._line.append("\n")
            case "a" if self._all_text:
                self._links.append((local_attributes.get("href", ""), len(self._line)))
            case "s" if self._all_text:
                self._line.append(" " * min(int(local_attributes.get("c", "1")), 1000))
            case "pStyle":
                self._apply_style(local_attributes.get("val", ""))
            case "numPr" | "list-item":
                self._prefix = self._prefix or "- "
            case "tr" | "table-row":
                self._rows.append([])
                self._repeated.append(int(local_attributes.get("number-rows-repeated", "1")))
            case "tc" | "table-cell" | "covered-table-cell":
                self._cells.append([])
                self._repeated.append(int(local_attributes.get("number-columns-repeated", "1")))
            case "page" | "table":
                self._name_sheet(local_attributes.get("name"))
            case _:
                pass

    def end(self, name: str) -> None:
        if self._skipped:
            self._skipped -= 1
            return
        self._path.pop()
        match local_name(name):
            case "p" | "h":
                self._end_line(always=True)
                self._paragraphs -= 1
            case "t":
                self._texts -= 1
            case "a" if self._all_text:
                self._end_link(*self._links.pop())
            case "tc" | "table-cell" | "covered-table-cell":
                self._end_cell()
            case "tr" | "table-row":
                self._end_row()
            case _:
                pass

    def text(self, data: str) -> None:
        if not self._skipped and (self._texts or (self._all_text and self._paragraphs)):
            if self._is_raised:
                data = raise_text(self._last_text(), data)
            self._line.append(data)

    def _last_text(self) -> str:
        """Return some of what the line ends with; nothing of an empty line."""
        return next((text for text in reversed(self._line) if text), "")

    def _start_paragraph(self, name: str, attributes: Mapping[str, str]) -> None:
        self._end_line()
        self._paragraphs += 1
        if name == "h":
            level = int(attributes.get("outline-level", "1") or 1)
            self._prefix = "#" * min(level, 6) + " "

    def _apply_style(self, style: str) -> None:
        heading = _HEADING.match(style)
        if heading:
            self._prefix = "#" * int(heading[1] or 1) + " "

    def _name_sheet(self, name: str | None) -> None:
        """Write the name of a page or a table that lies in no cell."""
        if name is not None and not self._cells:
            self.ready.append(f"[{name}]\n")

    def _end_link(self, address: str, begin: int) -> None:
        """Write where a link leads that leaves the document, unless its text says that."""
        text = "".join(self._line[begin:])
        leads_out = address and not address.startswith("#")
        if leads_out and address.removeprefix("mailto:").rstrip("/") not in text:
            self._line.append(f" <{address}>")

    def _end_cell(self) -> None:
        cell = " ".join(filter(None, self._cells.pop()))
        times = self._repeated.pop()
        if self._rows:
            row = self._rows[-1]
            row += [cell] * min(times, _MOST_CELLS - len(row))

    def _end_row(self) -> None:
        row = self._rows.pop()
        times = self._repeated.pop()
        while row and not row[-1]:
            row.pop()
        if row:
            self._add_line(" | ".join(row), times)

    def _end_line(self, *, always: bool = False) -> None:
        if self._line or always:
            text = "".join(self._line)
            self._line = []
            if text:
                self._add_line(self._prefix + text)
            elif not self._cells:
                self._add_line("")
        self._prefix = ""

    def _add_line(self, line: str, times: int = 1) -> None:
        if self._cells:
            self._cells[-1].append(line.replace("\n", " "))
            return
        # Equal rows of a sheet are written once. One more than there is room for tells that the text is cut.
        line_bytes = len(line) + 1
        times = max(1, min(times, _MOST_ROWS, self._remaining_bytes // line_bytes + 1))
        self._remaining_bytes = max(0, self._remaining_bytes - times * line_bytes)
        self.ready += [line + "\n"] * times


def read_xml_lines(stream: BinaryIO, lines: LineBuilder) -> Iterator[str]:
    """Yield what a builder makes of a part."""
    parser = create_parser()
    parser.StartElementHandler = lines.start
    parser.EndElementHandler = lines.end
    parser.CharacterDataHandler = lines.text
    try:
        while block := stream.read(_BLOCK_BYTES):
            parser.Parse(block)
            yield "".join(lines.ready)
            lines.ready.clear()
        parser.Parse(b"", True)
    except (expat.ExpatError, ValueError) as error:
        raise Unreadable(f"is damaged: {error}") from None
    yield "".join(lines.ready)


def _read_part(file: Zip, name: str) -> str:
    """Return the text of a part; nothing for one that is not there."""
    stream = file.member(name)
    if stream is None:
        return ""
    return "".join(read_xml_lines(stream, LineBuilder(all_text=False)))


def read_slides(file: Zip) -> Iterator[str]:
    """Yield the slides of ECMA-376 in their order, each with its notes."""
    main = find_main_part(file, "ppt/presentation.xml")
    targets = find_related_parts(file, main)
    presentation = file.member(main)
    if presentation is None:
        raise Unreadable("is damaged: it has no slides")
    number = 0
    for element, attributes in read_elements(presentation):
        slide = targets.get(attributes.get("r:id", ""), "")
        if element != "sldId" or not slide:
            continue
        number += 1
        yield f"[slide {number}]\n"
        yield from _read_slide(file, slide)


def _read_slide(file: Zip, slide: str) -> Iterator[str]:
    """Yield the text of a slide, then its notes."""
    related_parts = find_related_parts(file, slide).values()
    if file.member(slide) is not None:
        yield _end_with_newline(_read_part(file, slide).strip("\n"))
    for part in related_parts:
        if "/notesSlide" in part and file.member(part) is not None:
            yield "[notes]\n" + _end_with_newline(_read_part(file, part).strip("\n"))


def _end_with_newline(text: str) -> str:
    if not text:
        return ""
    return text + "\n"


def read_open_document(file: Zip) -> Iterator[str]:
    """Yield a text, sheets or slides of ISO/IEC 26300."""
    body = file.member("content.xml")
    if body is None:
        raise Unreadable("is damaged: it has no text")
    yield from read_xml_lines(body, LineBuilder(all_text=True))


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
    for page in order:
        href = pages.get(page)
        if not href:
            continue
        stream = file.member(posixpath.normpath(posixpath.join(folder, unquote(href))))
        if stream is not None:
            yield from read_html(decode_page(read_all(stream).read()))
            yield "\n"


def _find_package(file: Zip) -> str:
    """Return the part that lists the pages of a book; nothing if it is not named."""
    for _, attributes in read_elements(file.member("META-INF/container.xml")):
        path = attributes.get("full-path")
        if path:
            return path
    return ""


class _PageParser(HTMLParser):
    _BREAKS = frozenset({
        "address", "article", "blockquote", "br", "dd", "div", "dl", "dt", "figcaption", "footer", "form", "h1", "h2",
        "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "p", "pre", "section", "table", "title",
        "tr", "ul",
    })  # fmt: skip
    _CELLS = frozenset({"td", "th"})
    _SILENT = frozenset({"script", "style", "template"})

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._silent = 0
        self._raised = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag in self._SILENT:
            self._silent += 1
        elif tag == "sup":
            self._raised += 1
        elif tag in self._BREAKS:
            self.parts.append("\n" + self._line_prefix(tag))
        elif tag in self._CELLS:
            self.parts.append("\t")

    @staticmethod
    def _line_prefix(tag: str) -> str:
        """Return what the line of a heading or of an item in a list begins with."""
        if tag == "li":
            return "- "
        if tag[0] == "h" and tag[1:].isdigit():
            return "#" * int(tag[1:]) + " "
        return ""

    def handle_endtag(self, tag: str) -> None:
        if tag in self._SILENT:
            self._silent = max(0, self._silent - 1)
        elif tag == "sup":
            self._raised = max(0, self._raised - 1)
        elif tag in self._BREAKS and tag != "br":
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if self._silent:
            return
        text = re.sub(r"\s+", " ", data)
        if self._raised and self.parts:
            text = raise_text(self.parts[-1], text)
        self.parts.append(text)


def read_html(text: str) -> Iterator[str]:
    """Yield a page of HTML as lines of text."""
    page = _PageParser()
    page.feed(text)
    page.close()
    for line in re.split(r"\n+", "".join(page.parts)):
        if text := line.strip(" ").replace("\xa0", " ").lstrip("\t"):
            yield text + "\n"
