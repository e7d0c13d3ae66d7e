"""Reads workbooks: the values with calamine, and what it does not tell from the XML of the sheets.

That is errors, formulas, numbers of more digits than a double holds, zeros before others, and comments, of Excel's
format since 2007.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import chain
from typing import Any, BinaryIO

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
    find_main_part,
    find_related_parts,
    read_elements,
)
from mcp_fs.engine.documents.formats.tables.binary_errors import (
    Errors,
    read_binary_errors,
    read_old_errors,
    read_sheet_relations,
)
from mcp_fs.engine.documents.formats.tables.cell_areas import Area, cell_name, column_name, parse_area
from mcp_fs.engine.documents.formats.tables.cell_looks import (
    CellLooks,
    format_duration,
    read_cell_looks,
)
from mcp_fs.engine.documents.formats.tables.old_books import is_encrypted, read_book_stream
from mcp_fs.engine.documents.formats.tables.sheet_xml import SheetXml, read_cells, read_comments
from mcp_fs.engine.name_folding import fold_name

__all__ = ["Workbook"]

_MAX_SECONDS = 4.5
_ROWS_BETWEEN_LOOKS = 1000
# Cells without anything that are written as tabs; more of them as the name of the next cell.
_MOST_TABS = 8
# From here on not every whole number has a double of its own.
_EXACT_INTEGERS = 1 << 53
# Excel shows no more, so that a sum of 0.1 and 0.2 is 0.3.
_SHOWN_DIGITS = 15
_RANGE = re.compile(r"(?P<sheet>.+)!(?P<first>[A-Za-z$\d]+)(?::(?P<last>[A-Za-z$\d]+))?")
_FORMULAS = "formulas"
_MOST_HIDDEN_RANGES = 5


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
            yield from self._read_sheet(name, Area())

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
            return self._read_sheet(sheet, Area())
        area = _RANGE.fullmatch(name)
        if area is not None:
            sheet = self._find_sheet(area["sheet"].strip("'"))
        if area is not None and sheet is not None:
            return self._read_sheet(sheet, parse_area(area["first"], area["last"] or area["first"]))
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
        folded_name = fold_name(name).casefold()
        return next((sheet for sheet in self._book.sheet_names if fold_name(sheet).casefold() == folded_name), None)

    def _read_sheet(self, name: str, area: Area) -> Iterator[str]:
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
            yield f"[comment {cell_name(*cell)}] {comment}\n"

    def _describe_sheet(self, name: str, bounds: Area | None, xml: SheetXml) -> Iterator[str]:
        """Yield what the head of a sheet says."""
        yield str(bounds or "empty")
        visible = self._library.SheetVisibleEnum.Visible
        if any(sheet.name == name and sheet.visible != visible for sheet in self._book.sheets_metadata):
            yield "hidden"
        if xml.formulas:
            yield f"{len(xml.formulas):,} with formulas (`!/{_FORMULAS}/{name}`)"
        if xml.unstored:
            yield f"{xml.unstored:,} of them without a stored value"
        if bounds is not None:
            yield from _describe_hidden(xml, bounds)

    def _write_rows(self, name: str, sheet: Any, xml: SheetXml, bounds: Area) -> Iterator[str]:
        previous = bounds.first_row - 1
        for number, cells in _iterate_rows(sheet, xml, bounds):
            if number - previous > 2:
                yield f"[row {number}]\n"
            else:
                yield "\n" * (number - previous - 1)
            yield _format_row(number, cells, bounds.first_column)
            previous = number
            if number % _ROWS_BETWEEN_LOOKS == 0 and time.process_time() > self._deadline:
                remaining = Area(number + 1, bounds.first_column, bounds.last_row, bounds.last_column)
                raise OutOfTime(
                    f"cut after {_MAX_SECONDS:g} s at row {number:,} of {name}: the rest is `!/{name}!{remaining}`"
                )

    def _list_formulas(self, name: str) -> Iterator[str]:
        xml = self._read_xml(name)
        yield f"[formulas of {name}]\n"
        for (row, column), formula in xml.formulas.items():
            yield f"{cell_name(row, column)}\t{formula}\n"

    def _read_looks(self, package: Zip, main: str) -> CellLooks:
        """Return how cells look, which all sheets share."""
        if self._looks is None:
            self._looks = read_cell_looks(package, main)
        return self._looks

    def _read_xml(self, name: str) -> SheetXml:
        """Return what the XML of a sheet tells; of the binary formats, which have none, the errors."""
        xml = SheetXml()
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
                xml = read_cells(package, part, self._read_looks(package, main))
                comments = find_related_parts(package, part, key="Type").get("comments")
                if comments is not None:
                    read_comments(package, comments, xml)
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


def _describe_hidden(xml: SheetXml, bounds: Area) -> Iterator[str]:
    """Yield which rows and columns of an area are hidden, the first of many."""
    rows = [row for row in xml.hidden_rows if bounds.first_row <= row <= bounds.last_row]
    columns = [column for column in xml.hidden_columns if bounds.first_column <= column <= bounds.last_column]
    if rows:
        yield f"rows hidden: {len(rows):,} ({_format_ranges(rows, str)})"
    if columns:
        yield f"columns hidden: {len(columns):,} ({_format_ranges(columns, column_name)})"


def _format_ranges(numbers: Sequence[int], name: Callable[[int], str]) -> str:
    ranges: list[tuple[int, int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    texts: list[str] = []
    for first, last in ranges[:_MOST_HIDDEN_RANGES]:
        texts.append("-".join(dict.fromkeys((name(first), name(last)))))
    if len(ranges) > _MOST_HIDDEN_RANGES:
        texts.append("…")
    return ", ".join(texts)


def _bounds(sheet: Any, xml: SheetXml, area: Area) -> Area | None:
    """Return the part of an area that has cells; None if it has none."""
    corners = [*xml.texts]
    if sheet.start is not None:
        corners += [(row + 1, column + 1) for row, column in (sheet.start, sheet.end)]
    if not corners:
        return None
    rows = [row for row, _ in corners]
    columns = [column for _, column in corners]
    bounds = Area(
        max(min(rows), area.first_row),
        max(min(columns), area.first_column),
        min(max(rows), area.last_row),
        min(max(columns), area.last_column),
    )
    if bounds.first_row > bounds.last_row or bounds.first_column > bounds.last_column:
        return None
    return bounds


def _iterate_rows(sheet: Any, xml: SheetXml, bounds: Area) -> Iterator[tuple[int, dict[int, str]]]:
    """Iterate the rows of an area that are not empty: the number of each, and its texts by column."""
    first_column = 1 + (sheet.start or (0, 0))[1]
    rows = sheet.iter_rows()
    texts_by_row: dict[int, dict[int, str]] = {}
    for (row, column), text in xml.texts.items():
        texts_by_row.setdefault(row, {})[column] = text
    for number in range(1, bounds.last_row + 1):
        values = {column: _cell(value) for column, value in enumerate(next(rows, ()), first_column) if value != ""}
        values |= texts_by_row.get(number, {})
        cells = {column: text for column, text in values.items() if text and bounds.holds(number, column)}
        if cells:
            yield number, cells


def _format_row(number: int, cells: dict[int, str], first_column: int) -> str:
    parts: list[str] = []
    next_column = first_column
    for column, text in sorted(cells.items()):
        if column - next_column > _MOST_TABS:
            parts.append(f"[{cell_name(number, column)}] {text}")
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
