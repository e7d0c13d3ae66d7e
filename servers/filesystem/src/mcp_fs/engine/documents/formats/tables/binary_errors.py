"""Reads which cells of a workbook in one of Excel's binary formats hold errors, which calamine leaves out.

Both formats are a row of records: in MS-XLS of before 2007 in a stream of OLE, in MS-XLSB a part for each sheet.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from mcp_fs.engine.documents.formats.tables.old_books import END, OLD_HEAD, old_records

__all__ = [
    "Errors",
    "read_binary_errors",
    "read_old_errors",
    "read_sheet_relations",
]

Errors = dict[tuple[int, int], str]
"""The errors of a sheet, by row and column from 1."""

# As both formats number them.
_ERROR_WORDS = {
    0x00: "#NULL!", 0x07: "#DIV/0!", 0x0F: "#VALUE!", 0x17: "#REF!", 0x1D: "#NAME?", 0x24: "#NUM!", 0x2A: "#N/A",
    0x2B: "#GETTING_DATA",
}  # fmt: skip
_BOUND_SHEET = 0x85
_FORMULA = 0x06
_BOOLEAN_OR_ERROR = 0x205
# A cell's row and column.
_OLD_CELL = struct.Struct("<HH")
_OLD_CELL_BYTES = 8
# The kinds of MS-XLSB.
_ROW = 0
_CELL_ERROR = 3
_FORMULA_ERROR = 11
_BINARY_CELL_BYTES = 9
_BUNDLED_SHEET = 156
# Behind the state of a sheet and its number.
_BUNDLED_TEXTS_OFFSET = 8
_NO_TEXT = 0xFFFF_FFFF


def read_old_errors(book: bytes) -> list[Errors]:
    """Return the errors of each sheet in the records of a workbook, in the order in which it lists its sheets."""
    errors: list[Errors] = []
    # Sheets do not overlap. In a damaged workbook thousands may begin at one place, and each would be read to the end.
    remaining_bytes = len(book)
    for kind, body in old_records(book, 0):
        if kind == _BOUND_SHEET and len(body) >= 4:
            sheet_errors, read_bytes = _read_old_sheet(book, int.from_bytes(body[:4], "little"), remaining_bytes)
            errors.append(sheet_errors)
            remaining_bytes -= read_bytes
        elif kind == END:
            break
    return errors


def _read_old_sheet(book: bytes, offset: int, max_bytes: int) -> tuple[Errors, int]:
    """Return the errors of the sheet at an offset, and how many bytes were read for it."""
    errors: Errors = {}
    read_bytes = 0
    for kind, body in old_records(book, offset):
        read_bytes += OLD_HEAD.size + len(body)
        if kind == END or read_bytes > max_bytes:
            break
        code = _error_code(kind, body)
        if code is not None:
            row, column = _OLD_CELL.unpack_from(body)
            errors[row + 1, column + 1] = _ERROR_WORDS.get(code, "#ERROR!")
    return errors, read_bytes


def _error_code(kind: int, body: bytes) -> int | None:
    """Return the code of the error that the record of a cell has; None for another value."""
    if kind == _BOOLEAN_OR_ERROR and len(body) >= _OLD_CELL_BYTES and body[7]:
        return body[6]
    if kind == _FORMULA and len(body) >= 14 and body[12:14] == b"\xff\xff" and body[6] == 2:
        return body[8]
    return None


def read_binary_errors(data: bytes) -> Errors:
    """Return the errors in the part of a sheet of MS-XLSB."""
    errors: Errors = {}
    row = 0
    for kind, body in _binary_records(data):
        if kind == _ROW and len(body) >= 4:
            row = int.from_bytes(body[:4], "little")
        elif kind in (_CELL_ERROR, _FORMULA_ERROR) and len(body) >= _BINARY_CELL_BYTES:
            column = int.from_bytes(body[:4], "little")
            errors[row + 1, column + 1] = _ERROR_WORDS.get(body[8], "#ERROR!")
    return errors


def read_sheet_relations(data: bytes) -> dict[str, str]:
    """Return by the names of sheets the names of their relationships, from the main part of MS-XLSB."""
    relations: dict[str, str] = {}
    for kind, body in _binary_records(data):
        if kind == _BUNDLED_SHEET:
            relation, offset = _read_text(body, _BUNDLED_TEXTS_OFFSET)
            name, _ = _read_text(body, offset)
            relations[name] = relation
    return relations


def _read_text(body: bytes, offset: int) -> tuple[str, int]:
    """Return a text in UTF-16 behind the number of its units, and where it ends."""
    begin = offset + 4
    units = int.from_bytes(body[offset:begin], "little")
    if units == _NO_TEXT:
        return "", begin
    end = begin + 2 * units
    return body[begin:end].decode("utf-16-le", "replace"), end


def _binary_records(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the kind and the body of each record; both numbers have seven bits a byte, the lowest first."""
    offset = 0
    while offset < len(data):
        kind, offset = _packed_number(data, offset)
        length, offset = _packed_number(data, offset)
        yield kind, data[offset : offset + length]
        offset += length


def _packed_number(data: bytes, offset: int) -> tuple[int, int]:
    """Return a number and where it ends."""
    number = 0
    for shift in range(0, 28, 7):
        if offset >= len(data):
            break
        byte = data[offset]
        offset += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
    return number, offset
