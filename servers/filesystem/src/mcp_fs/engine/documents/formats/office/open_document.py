"""Reads texts, sheets and slides of ISO/IEC 26300: notes and comments stand behind what they are about."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import BinaryIO

from mcp_fs.engine.documents.formats.archives import Unreadable, Zip
from mcp_fs.engine.documents.formats.markup.lines import LineBuilder, read_xml_lines
from mcp_fs.engine.documents.formats.markup.package import local_name, read_elements

__all__ = ["read_open_document"]

# What stands in the middle of the text and is no part of it, with the title that it stands below.
_ASIDES = {
    "annotation": "comments",
    "note": "notes",
    "notes": "notes",
    "header": "header",
    "header-first": "header",
    "header-left": "header",
    "footer": "footer",
    "footer-first": "footer",
    "footer-left": "footer",
}
_OBJECT = re.compile(r"(?:\./)?Object \d+/content\.xml")
_IS_FORMULA = re.compile(rb"<(?:\w+:)?math\b")
_BEGINNING_BYTES = 1000
# Attributes with the value of a cell, for programs that do not write how it is shown.
_VALUES = ("value", "date-value", "time-value", "boolean-value", "string-value")


def read_open_document(file: Zip) -> Iterator[str]:
    """Yield a text, sheets or slides, then notes and comments, headers and footers, and what is embedded."""
    _refuse_locked(file)
    body = file.member("content.xml")
    if body is None:
        raise Unreadable("is damaged: it has no text")
    lines = _OpenDocumentLines(_read_formulas(file))
    yield from read_xml_lines(body, lines)
    yield from lines.asides()
    styles = file.member("styles.xml")
    if styles is not None and lines.kind == "text":
        yield from _read_page_styles(styles)
    if lines.kind != "spreadsheet":  # whose charts show its cells
        yield from _read_objects(file)


def _refuse_locked(file: Zip) -> None:
    """Refuse a document whose parts are encrypted, or which is in one such part since ODF 1.4."""
    manifest = read_elements(file.member("META-INF/manifest.xml"))
    is_locked = any(name == "encryption-data" for name, _ in manifest)
    if is_locked or "encrypted-package" in file.names():
        raise Unreadable("is locked by a password")


def _read_formulas(file: Zip) -> dict[str, str]:
    """Return the formulas, which are documents of their own, by the names that the text has for them."""
    formulas: dict[str, str] = {}
    for name in filter(_OBJECT.fullmatch, file.names()):
        beginning = file.member(name)
        stream = file.member(name)
        if beginning is not None and stream is not None and _IS_FORMULA.search(beginning.read(_BEGINNING_BYTES)):
            lines = _OpenDocumentLines()
            for _ in read_xml_lines(stream, lines):
                pass
            formulas[posixpath.dirname(posixpath.normpath(name))] = lines.open_line()
    return formulas


def _read_page_styles(styles: BinaryIO) -> Iterator[str]:
    """Yield headers and footers."""
    lines = _OpenDocumentLines()
    for _ in read_xml_lines(styles, lines):
        pass
    yield from lines.asides()


def _read_objects(file: Zip) -> Iterator[str]:
    """Yield charts, whose figures they keep as a table, and other documents in a document."""
    for name in sorted(filter(_OBJECT.fullmatch, file.names())):
        stream = file.member(name)
        if stream is None:
            continue
        lines = _OpenDocumentLines()
        text = "".join(read_xml_lines(stream, lines)).strip("\n")
        if text:
            yield f"\n[{lines.kind or 'object'}]\n{text}\n"


class _OpenDocumentLines(LineBuilder):
    """The lines of a document; in a paragraph all characters are text.

    Attributes:
        kind: what the document is, such as `text`, `spreadsheet`, `presentation` or `chart`.

    Args:
        formulas: by the names of the objects that they are.
    """

    IGNORED = frozenset({"ruby-text", "tracked-changes", "binary-data"})

    def __init__(self, formulas: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.kind = ""
        self._formulas = formulas or {}
        self._asides: dict[str, list[str]] = {}
        self._aside: _Aside | None = None
        self._paragraphs = 0
        self._item_mark = ""
        self._values: list[str] = []  # of each open cell
        self._row_number = 0
        self._style = ""
        self._raised_styles: set[str] = set()
        self._hidden_styles: set[str] = set()
        self._raised_spans: list[bool] = []

    def open_line(self) -> str:
        """Return what stands in no paragraph, as a formula that is a document of its own."""
        return "".join(self._line)

    def asides(self) -> Iterator[str]:
        """Yield notes and comments, each kind below its title."""
        for title, texts in self._asides.items():
            yield f"\n[{title}]\n"
            for text in texts:
                yield f"{text}\n"

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if self._aside is not None:
            self._aside.start(name, attributes)
        elif not self._skipped and local_name(name) in _ASIDES:
            self._aside = _Aside(_ASIDES[local_name(name)], self._formulas)
        else:
            super().start(name, attributes)

    def end(self, name: str) -> None:
        if self._aside is None:
            super().end(name)
        elif self._aside.is_open():
            self._aside.end(name)
        else:
            self._keep_aside(self._aside)
            self._aside = None

    def text(self, data: str) -> None:
        if self._aside is not None:
            self._aside.text(data)
        else:
            super().text(data)

    def _is_in_text(self) -> bool:
        return self._paragraphs > 0

    def _start_element(self, name: str, parent: str, attributes: Mapping[str, str]) -> None:
        if parent == "body":
            self.kind = name
        match name:
            case "p" | "h":
                self._start_paragraph(name, attributes)
            case "tab":
                self._line.append("\t")
            case "line-break":
                self._line.append("\n")
            case "s":
                self._line.append(" " * min(int(attributes.get("c", "1")), 1000))
            case "a":
                self._links.append((attributes.get("href", ""), len(self._line)))
            case "object":
                self._write_formula(self._formulas.get(posixpath.normpath(attributes.get("href", "")), ""))
            case "span":
                self._raised_spans.append(self._is_raised)
                self._is_raised = self._is_raised or attributes.get("style-name") in self._raised_styles
            case "list-item":
                self._item_mark = "- "
            case "table-row":
                self._start_row(int(attributes.get("number-rows-repeated", "1")))
            case "table-cell" | "covered-table-cell":
                self._start_cell(int(attributes.get("number-columns-repeated", "1")))
                self._values.append(next((attributes[key] for key in _VALUES if key in attributes), ""))
            case "page" | "table":
                self._name_sheet(attributes)
            case "style":
                self._style = attributes.get("name", "")
            case "text-properties" | "table-properties" | "drawing-page-properties":
                self._learn_style(attributes)
            case _:
                pass

    def _end_element(self, name: str, parent: str) -> None:
        match name:
            case "p" | "h":
                self._end_line(always=True)
                self._paragraphs -= 1
            case "a":
                self._end_link(*self._links.pop())
            case "span":
                self._is_raised = self._raised_spans.pop()
            case "table-cell" | "covered-table-cell":
                self._end_cell(self._values.pop())
            case "table-row":
                self._row_number += self._repeated[-1]
                self._end_row()
            case "list-item":
                self._item_mark = ""
            case _:
                pass

    def _write_formula(self, formula: str) -> None:
        """Write a formula that is an object, in its slide or cell where it stands in no paragraph."""
        self._line.append(formula)
        if not self._is_in_text():
            self._end_line()

    def _start_paragraph(self, name: str, attributes: Mapping[str, str]) -> None:
        self._end_line()
        self._paragraphs += 1
        self._prefix = self._item_mark
        self._item_mark = ""
        if name == "h":
            level = int(attributes.get("outline-level", "1") or 1)
            self._prefix = "#" * min(level, 6) + " "

    def _name_sheet(self, attributes: Mapping[str, str]) -> None:
        """Write the name of a page or a table that lies in no cell."""
        name = attributes.get("name")
        if name is None or self._cells:
            return
        self._row_number = 0
        if attributes.get("style-name") in self._hidden_styles:
            name += ", hidden"
        self.ready.append(f"[{name}]\n")

    def _learn_style(self, attributes: Mapping[str, str]) -> None:
        """Take down whether the style that is being described raises text, or hides a sheet or a slide."""
        position = attributes.get("text-position", "")
        if position.startswith("super") or position[:1] in set("123456789"):
            self._raised_styles.add(self._style)
        if attributes.get("display") == "false" or attributes.get("visibility") == "hidden":
            self._hidden_styles.add(self._style)

    def _keep_aside(self, aside: _Aside) -> None:
        text = aside.finish()
        if not text:
            return
        if self.kind == "spreadsheet":
            self.ready.append(f"[comment {self._cell_name()}] {text}\n")
        elif aside.title == "notes" and self.kind == "presentation":
            self._end_line()
            self.ready.append(f"[notes]\n{text}\n")
        else:
            self._asides.setdefault(aside.title, []).append(text)

    def _cell_name(self) -> str:
        number = len(self._rows[-1]) + 1 if self._rows else 1
        letters = ""
        while number:
            number, digit = divmod(number - 1, 26)
            letters = chr(65 + digit) + letters
        return f"{letters}{self._row_number + 1}"


class _Aside(_OpenDocumentLines):
    """The lines of a note or a comment, which say who wrote it and what marks it."""

    def __init__(self, title: str, formulas: Mapping[str, str]) -> None:
        super().__init__(formulas)
        self.title = title
        self._author = ""
        self._mark = ""

    def is_open(self) -> bool:
        """Return whether an element in it has not ended."""
        return bool(self._path or self._skipped or self._aside is not None)

    def text(self, data: str) -> None:
        match self._parent():
            case "creator":
                self._author += data
            case "note-citation":
                self._mark += data
            case _:
                super().text(data)

    def finish(self) -> str:
        """Return its text behind what tells of it."""
        self._end_line()
        text = "".join(self.ready).strip()
        if text and self._mark:
            return f"{self._mark} {text}"
        if text and self._author:
            return f"{self._author}: {text}"
        return text
