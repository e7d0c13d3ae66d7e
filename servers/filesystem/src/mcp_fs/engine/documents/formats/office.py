"""Reads slides of ECMA-376, and the lines of all its documents; books of EPUB, and pages of HTML."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from urllib.parse import unquote

from mcp_fs.engine.documents.formats.archives import Unreadable, Zip, read_all
from mcp_fs.engine.documents.formats.charsets import decode_page
from mcp_fs.engine.documents.formats.lines import LineBuilder, read_xml_lines
from mcp_fs.engine.documents.formats.package import find_main_part, find_related_parts, read_elements
from mcp_fs.engine.documents.formats.raised import raise_text

__all__ = ["OfficeLines", "read_epub", "read_html", "read_slides"]

_HEADING = re.compile(r"(?:heading|titre|überschrift) ?(\d)|(title)$", re.IGNORECASE)
# Parts of a formula that stand above or below others, with what is written before them (ECMA-376, math).
_FORMULA_PARTS = {"num": "", "den": "/", "sup": "^", "sub": "_", "e": "√"}


class OfficeLines(LineBuilder):
    """The lines of a part of ECMA-376, whose text is that of `t`."""

    # What is shown a second time for older programs, what was deleted or looked otherwise, codes of fields, and how
    # the characters below it are spoken.
    IGNORED = frozenset({"Fallback", "delText", "instrText", "moveFrom", "pPrChange", "rPrChange", "rt"})

    def __init__(self) -> None:
        super().__init__()
        self._texts = 0
        self._formula_parts: list[int] = []  # of each open part of a formula where it begins
        self._is_behind_formula_part = False

    def _is_in_text(self) -> bool:
        return self._texts > 0

    def _start_element(self, name: str, parent: str, attributes: Mapping[str, str]) -> None:
        match name:
            case "p":
                self._end_line()
                self._is_behind_formula_part = False
            case "t":
                self._texts += 1
            case "r":
                self._is_raised = False
            case "vertAlign":
                self._is_raised = attributes.get("val") == "superscript"
            case "rPr":
                baseline = attributes.get("baseline", "0")
                self._is_raised = not baseline.startswith("-") and baseline.strip("0%") != ""
            case "tab" if parent != "tabs":
                self._line.append("\t")
            case "br" | "cr":
                self._line.append("\n")
            case name if _is_formula_part(name, parent):
                if name == "num" and self._is_behind_formula_part:
                    self._line.append(" ")
                self._formula_parts.append(len(self._line))
                self._is_behind_formula_part = False
            case "chr" if parent == "naryPr":
                self._line.append(attributes.get("val", ""))
            case "pStyle":
                self._apply_style(attributes.get("val", ""))
            case "numPr":
                self._prefix = self._prefix or "- "
            case "tr":
                self._start_row()
            case "tc":
                self._start_cell()
            case _:
                pass

    def _end_element(self, name: str, parent: str) -> None:
        match name:
            case "p":
                self._end_line(always=True)
            case "t":
                self._texts -= 1
            case "tc":
                self._end_cell()
            case "tr":
                self._end_row()
            case name if _is_formula_part(name, parent):
                self._end_formula_part(_FORMULA_PARTS[name], self._formula_parts.pop())
            case _:
                pass

    def _write(self, data: str) -> None:
        if self._is_behind_formula_part and data[:1].isalnum():
            self._line.append(" ")
        self._is_behind_formula_part = False
        super()._write(data)

    def _apply_style(self, style: str) -> None:
        heading = _HEADING.match(style)
        if heading:
            self._prefix = "#" * int(heading[1] or 1) + " "

    def _end_formula_part(self, mark: str, begin: int) -> None:
        """Write a part of a formula on the line: `1/25`, `x^2`, `√(a+b)`."""
        part = "".join(self._line[begin:])
        if not part:
            return
        if len(part) > 1 and not part.isdecimal():
            part = f"({part})"
        self._line[begin:] = [mark + part]
        self._is_behind_formula_part = True


def _is_formula_part(name: str, parent: str) -> bool:
    if name == "e":
        return parent == "rad"
    return name in _FORMULA_PARTS


def _read_part(file: Zip, name: str) -> str:
    """Return the text of a part; nothing for one that is not there."""
    stream = file.member(name)
    if stream is None:
        return ""
    return "".join(read_xml_lines(stream, OfficeLines()))


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
    _SPOKEN = frozenset({"rp", "rt"})

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._silent = 0
        self._raised = 0
        self._is_spoken = False

    def handle_starttag(self, tag: str, attrs: object) -> None:
        # Their ends may be left out.
        self._is_spoken = tag in self._SPOKEN or (self._is_spoken and tag not in self._BREAKS | {"rb", "ruby"})
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
        if tag in self._SPOKEN or tag == "ruby":
            self._is_spoken = False
        if tag in self._SILENT:
            self._silent = max(0, self._silent - 1)
        elif tag == "sup":
            self._raised = max(0, self._raised - 1)
        elif tag in self._BREAKS and tag != "br":
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if self._silent or self._is_spoken:
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
