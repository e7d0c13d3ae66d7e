"""Reads workbooks: the values with calamine, and what it does not tell from the XML of the sheets.

That is errors, formulas, numbers of more digits than a double holds, zeros before others, and comments, of Excel's
format since 2007.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain
from typing import Any, BinaryIO
from xml.parsers import expat

from mcp_fs.engine.document_kinds import OLE
from mcp_fs.engine.documents.formats.archives import (
    ArchiveEntry,
    MemberNotFound,
    NotInstalled,
    OutOfTime,
    Unreadable,
    Zip,
    read_all,
    refuse_locked_package,
)
from mcp_fs.engine.documents.formats.markup.package import (
    ElementHandler,
    create_parser,
    find_main_part,
    find_related_parts,
    local_name,
    read_blocks,
    read_elements,
)
from mcp_fs.engine.documents.formats.tables.binary_errors import (
    Errors,
    read_binary_errors,
    read_old_errors,
    read_sheet_relations,
)
from mcp_fs.engine.documents.formats.tables.cell_looks import (
    CellLooks,
    RaisedText,
    format_duration,
    read_cell_looks,
)
from mcp_fs.engine.documents.formats.tables.matching_elements import find_elements
from mcp_fs.engine.documents.formats.tables.old_books import is_encrypted, read_book_stream
from mcp_fs.engine.name_folding import fold_name

__all__ = ["Workbook"]

_MAX_SECONDS = 4.5
_ROWS_BETWEEN_LOOKS = 1000
# Cells without anything that are written as tabs; more of them as the name of the next cell.
_MOST_TABS = 8
_LAST_COLUMN = 16_384
_LAST_ROW = 1_048_576
# From here on not every whole number has a double of its own.
_EXACT_INTEGERS = 1 << 53
# Excel shows no more, so that a sum of 0.1 and 0.2 is 0.3.
_SHOWN_DIGITS = 15
_LONG_NUMBER = re.compile(r"-?\d{16,}")
_NEEDS_XML = rb"""\bt=["']e["']|<(?:\w+:)?f[\s/>]|>-?\d{16,}<"""
_A1 = re.compile(r"\$?([A-Za-z]{0,3})\$?(\d{0,7})")
_RANGE = re.compile(r"(?P<sheet>.+)!(?P<first>[A-Za-z$\d]+)(?::(?P<last>[A-Za-z$\d]+))?")
_FORMULAS = "formulas"
# What Excel writes before the text of a comment that has answers, for older programs.
_THREAD_NOTICE = re.compile(r"\[Threaded comment\].*?Comment:\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Area:
    """Rows and columns of a sheet, from 1, the last included."""

    first_row: int = 1
    first_column: int = 1
    last_row: int = _LAST_ROW
    last_column: int = _LAST_COLUMN

    def __str__(self) -> str:
        return f"{_cell_name(self.first_row, self.first_column)}:{_cell_name(self.last_row, self.last_column)}"

    def holds(self, row: int, column: int) -> bool:
        return self.first_row <= row <= self.last_row and self.first_column <= column <= self.last_column


@dataclass(slots=True)
class _SheetXml:
    """What the XML of a sheet tells beyond its values; cells by row and column, from 1.

    Attributes:
        texts: errors, what cells show in place of their value, and formulas whose value the file does not have.
        formulas: with the sign before them.
        comments: with their authors.
    """

    texts: dict[tuple[int, int], str] = field(default_factory=dict[tuple[int, int], str])
    formulas: dict[tuple[int, int], str] = field(default_factory=dict[tuple[int, int], str])
    comments: dict[tuple[int, int], str] = field(default_factory=dict[tuple[int, int], str])

    @property
    def unstored(self) -> int:
        """How many formulas have no value."""
        return sum(self.texts.get(cell) == formula for cell, formula in self.formulas.items())

    def within(self, area: _Area) -> _SheetXml:
        """Return what concerns the cells of an area."""
        return _SheetXml(
            _select_cells(self.texts, area), _select_cells(self.formulas, area), _select_cells(self.comments, area)
        )


def _select_cells(texts: Mapping[tuple[int, int], str], area: _Area) -> dict[tuple[int, int], str]:
    return {cell: text for cell, text in texts.items() if area.holds(*cell)}


class Workbook:
    """A workbook: its text, and by the names of sheets and cells parts of it."""

    def __init__(self, file: BinaryIO) -> None:
        try:
            import python_calamine
        except ImportError:
            raise NotInstalled("a workbook") from None
        self._library: Any = python_calamine
        self._data = read_all(file)
        refuse_locked_package(self._data)
        self._data.seek(0)
        self._package = self._open_package()
        self._looks: CellLooks | None = None
        self._old_errors: list[Errors] = []
        if self._package is None:
            self._read_old_book()
        self._data.seek(0)
        self._deadline = time.process_time() + _MAX_SECONDS
        self._book = self._open_book()

    def entries(self) -> Iterator[tuple[ArchiveEntry, BinaryIO | None]]:
        if self._package is not None:
            yield from self._package.entries()

    def text(self) -> Iterator[str]:
        """Yield each sheet: a line for each row, its cells between tabs; what lies behind a gap with its name."""
        for name in self._book.sheet_names:
            yield from self._read_sheet(name, _Area())

    def part(self, name: str) -> Iterator[str] | None:
        """Return a sheet, a range as `Sheet1!A1:D20`, or the `formulas` of all sheets or of one.

        None for a member of the archive that the workbook is.

        Raises:
            MemberNotFound: the name means nothing.
        """
        if fold_name(name).lower() == _FORMULAS and self._find_sheet(name) is None:
            return chain.from_iterable(map(self._list_formulas, self._book.sheet_names))
        if name.startswith(_FORMULAS + "/"):
            sheet = self._find_sheet(name.removeprefix(_FORMULAS + "/"))
            if sheet is not None:
                return self._list_formulas(sheet)
        sheet = self._find_sheet(name)
        if sheet is not None:
            return self._read_sheet(sheet, _Area())
        area = _RANGE.fullmatch(name)
        if area is not None:
            sheet = self._find_sheet(area["sheet"].strip("'"))
        if area is not None and sheet is not None:
            return self._read_sheet(sheet, _parse_area(area["first"], area["last"] or area["first"]))
        if self._package is not None and name in self._package.names():
            return None
        raise MemberNotFound(f"is not in the workbook, whose sheets are {', '.join(self._book.sheet_names)}")

    def _open_package(self) -> Zip | None:
        """Return the archive that a workbook since 2007 is; None for an older one, be there an archive in it."""
        is_older = self._data.read(len(OLE)) == OLE
        self._data.seek(0)
        if is_older:
            return None
        return Zip(self._data)

    def _read_old_book(self) -> None:
        """Take from a workbook of before 2007 what the library leaves out.

        Raises:
            Unreadable: it is encrypted; the library reads on in one of the ways that there are.
        """
        book = read_book_stream(self._data)
        if is_encrypted(book):
            raise Unreadable("is locked by a password")
        self._old_errors = read_old_errors(book)

    def _open_book(self) -> Any:
        try:
            return self._library.CalamineWorkbook.from_filelike(self._data)
        except self._library.CalamineError as error:
            raise Unreadable(f"is damaged: {error}") from None
        except BaseException as error:
            if type(error).__name__ != "PanicException":
                raise
            raise Unreadable(f"is damaged, or written in a way that is not read: {error}") from None

    def _find_sheet(self, name: str) -> str | None:
        wanted = fold_name(name).casefold()
        return next((sheet for sheet in self._book.sheet_names if fold_name(sheet).casefold() == wanted), None)

    def _read_sheet(self, name: str, area: _Area) -> Iterator[str]:
        try:
            sheet = self._book.get_sheet_by_name(name)
        except (self._library.CalamineError, OSError) as error:
            yield f"[sheet {name}, not readable: {' '.join(str(error).split())}]\n"
            return
        xml = self._read_xml(name).within(area)
        bounds = _bounds(sheet, xml, area)
        yield f"[sheet {name}, {', '.join(self._describe_sheet(name, bounds, xml))}]\n"
        if bounds is not None:
            yield from self._write_rows(name, sheet, xml, bounds)
        for cell, comment in xml.comments.items():
            yield f"[comment {_cell_name(*cell)}] {comment}\n"

    def _describe_sheet(self, name: str, bounds: _Area | None, xml: _SheetXml) -> Iterator[str]:
        """Yield what the head of a sheet says."""
        yield str(bounds or "empty")
        visible = self._library.SheetVisibleEnum.Visible
        if any(sheet.name == name and sheet.visible != visible for sheet in self._book.sheets_metadata):
            yield "hidden"
        if xml.formulas:
            yield f"{len(xml.formulas):,} with formulas (`!/{_FORMULAS}/{name}`)"
        if xml.unstored:
            yield f"{xml.unstored:,} of them without a stored value"

    def _write_rows(self, name: str, sheet: Any, xml: _SheetXml, bounds: _Area) -> Iterator[str]:
        first_column = 1 + (sheet.start or (0, 0))[1]
        rows = sheet.iter_rows()
        by_row: dict[int, dict[int, str]] = {}
        for (row, column), text in xml.texts.items():
            by_row.setdefault(row, {})[column] = text
        written = bounds.first_row - 1
        for number in range(1, bounds.last_row + 1):
            values = {first_column + at: _cell(value) for at, value in enumerate(next(rows, ())) if value != ""}
            values |= by_row.get(number, {})
            cells = {at: text for at, text in values.items() if text and bounds.holds(number, at)}
            if not cells:
                continue
            if number - written > 2:
                yield f"[row {number}]\n"
            else:
                yield "\n" * (number - written - 1)
            yield _format_row(number, cells, bounds.first_column)
            written = number
            if number % _ROWS_BETWEEN_LOOKS == 0 and time.process_time() > self._deadline:
                rest = _Area(number + 1, bounds.first_column, bounds.last_row, bounds.last_column)
                raise OutOfTime(
                    f"cut after {_MAX_SECONDS:g} s at row {number:,} of {name}: the rest is `!/{name}!{rest}`"
                )

    def _list_formulas(self, name: str) -> Iterator[str]:
        xml = self._read_xml(name)
        yield f"[formulas of {name}]\n"
        for (row, column), formula in xml.formulas.items():
            yield f"{_cell_name(row, column)}\t{formula}\n"

    def _read_looks(self, package: Zip, main: str) -> CellLooks:
        """Return how cells look, which all sheets share."""
        if self._looks is None:
            self._looks = read_cell_looks(package, main)
        return self._looks

    def _read_xml(self, name: str) -> _SheetXml:
        """Return what the XML of a sheet tells; of the binary formats, which have none, the errors."""
        xml = _SheetXml()
        package = self._package
        if package is None:
            if len(self._old_errors) == len(self._book.sheet_names):
                xml.texts |= self._old_errors[self._book.sheet_names.index(name)]
            return xml
        main = find_main_part(package, "xl/workbook.xml")
        if not main.endswith(".xml"):
            xml.texts |= _read_part_errors(package, main, name)
            return xml
        targets = find_related_parts(package, main)
        for element, attributes in read_elements(package.member(main)):
            part = targets.get(attributes.get("r:id", ""), "")
            if element == "sheet" and attributes.get("name") == name and part.endswith(".xml"):
                xml = _read_cells(package, part, self._read_looks(package, main))
                comments = find_related_parts(package, part, key="Type").get("comments")
                if comments is not None:
                    _read_comments(package, comments, xml)
        return xml


def _read_part_errors(package: Zip, main: str, name: str) -> Errors:
    """Return the errors of a sheet of MS-XLSB, whose parts are numbered in another order than the sheets have."""
    book = package.member(main)
    if book is None:
        return {}
    relation = read_sheet_relations(read_all(book).read()).get(name, "")
    part = package.member(find_related_parts(package, main).get(relation, ""))
    if part is None:
        return {}
    return read_binary_errors(read_all(part).read())


def _bounds(sheet: Any, xml: _SheetXml, area: _Area) -> _Area | None:
    """Return the part of an area that has cells; None if it has none."""
    corners = [*xml.texts]
    if sheet.start is not None:
        corners += [(row + 1, column + 1) for row, column in (sheet.start, sheet.end)]
    if not corners:
        return None
    rows = [row for row, _ in corners]
    columns = [column for _, column in corners]
    bounds = _Area(
        max(min(rows), area.first_row),
        max(min(columns), area.first_column),
        min(max(rows), area.last_row),
        min(max(columns), area.last_column),
    )
    if bounds.first_row > bounds.last_row or bounds.first_column > bounds.last_column:
        return None
    return bounds


def _parse_area(first: str, last: str) -> _Area:
    """Return the area between two cells, columns or rows.

    Raises:
        MemberNotFound: one is none of those.
    """
    corners: list[tuple[int, int]] = []
    for corner in (first, last):
        match = _A1.fullmatch(corner)
        if match is None or not (match[1] or match[2]):
            raise MemberNotFound(f"has no range `{first}:{last}`: write it as `A1:D20`, `A:D` or `1:20`")
        corners.append((int(match[2] or 0), _column_number(match[1])))
    (top, left), (bottom, right) = corners
    return _Area(top or 1, left or 1, bottom or _LAST_ROW, right or _LAST_COLUMN)


def _format_row(number: int, cells: dict[int, str], first_column: int) -> str:
    parts: list[str] = []
    next_column = first_column
    for column, text in sorted(cells.items()):
        if column - next_column > _MOST_TABS:
            parts.append(f"[{_cell_name(number, column)}] {text}")
        else:
            parts += [""] * (column - next_column)
            parts.append(text)
        next_column = column + 1
    return "\t".join(parts) + "\n"


def _cell(value: object) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) <= _EXACT_INTEGERS:
        return str(int(value))
    if isinstance(value, float):
        return f"{value:.{_SHOWN_DIGITS}g}"
    if isinstance(value, datetime):
        return value.isoformat(" ")
    if isinstance(value, timedelta):
        return format_duration(value)
    if isinstance(value, str):
        return " ".join(value.split())
    return str(value)


def _cell_name(row: int, column: int) -> str:
    letters = ""
    while column:
        column, digit = divmod(column - 1, 26)
        letters = chr(65 + digit) + letters
    return f"{letters}{row}"


def _parse_cell(name: str) -> tuple[int, int] | None:
    """Return the row and column of a cell by its name; None if that is none."""
    match = _A1.fullmatch(name)
    if match is None or not (match[1] and match[2]):
        return None
    return int(match[2]), _column_number(match[1])


def _column_number(letters: str) -> int:
    number = 0
    for letter in letters.upper():
        number = number * 26 + ord(letter) - 64
    return number


class _CellReader:
    """Takes from the XML of a sheet what its values do not tell.

    Attributes:
        are_by_order: whether a cell has no name, so that those before it say where it is.
    """

    def __init__(self, looks: CellLooks, xml: _SheetXml) -> None:
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
        place = _parse_cell(attributes.get("r", ""))
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
                self._bases.setdefault(self._shared, _cell_name(self._row, self._column))
            return "=" + " ".join(self._formula.split())
        return f"= as {self._bases.get(self._shared, 'another cell')}, moved here"


def _read_cells(package: Zip, part: str, looks: CellLooks) -> _SheetXml:
    pattern = re.compile(b"|".join([_NEEDS_XML, looks.pattern()]))
    xml = _SheetXml()
    cells = _CellReader(looks, xml)
    _parse(cells, (element for _, element in find_elements(package.member(part), b"c", pattern)))
    if not cells.are_by_order:
        return xml
    xml = _SheetXml()
    _parse(_CellReader(looks, xml), read_blocks(package.member(part)))
    return xml


def _parse(handler: ElementHandler, pieces: Iterable[bytes]) -> None:
    parser = create_parser(handler)
    try:
        for piece in pieces:
            parser.Parse(piece)
    except (expat.ExpatError, ValueError) as error:
        raise Unreadable(f"is damaged: {error}") from None


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
                self._cell = _parse_cell(attributes.get("ref", "")) or (0, 0)
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


def _read_comments(package: Zip, part: str, xml: _SheetXml) -> None:
    comments = _CommentReader()
    _parse(comments, read_blocks(package.member(part)))
    xml.comments |= comments.comments
