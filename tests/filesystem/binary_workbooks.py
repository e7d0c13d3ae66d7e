"""Writes workbooks in Excel's binary formats: of before 2007 (MS-XLS), and the one since then (MS-XLSB)."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from filesystem.compound_file import Tree, compound_file
from filesystem.documents import zipped

__all__ = ["xls", "xlsb", "xlsb_with_chart"]

Numbers = Mapping[tuple[int, int], float]
"""The numbers of the one sheet, by row and column from 0."""

_FILE_PASS = 0x2F
_NOT_AVAILABLE = 0x2A
_DIVISION_BY_ZERO = 0x07
_RELATIONSHIPS = (
    '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{}</Relationships>'
)
_RELATIONSHIP = (
    '<Relationship Id="rId{}" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/{}" '
    'Target="{}"/>'
)


def xls(
    numbers: Numbers,
    *,
    is_encrypted: bool = False,
    text: str = "",
    code_page: int | None = None,
    number_format: tuple[int, str] | None = None,
    version: int = 0x600,
    more: Tree | None = None,
) -> bytes:
    """Return a workbook with one sheet, `Old`; below its last number are `#N/A` and, of a formula, `#DIV/0!`.

    Args:
        is_encrypted: whether it says that what follows is encrypted.
        text: of the first cell, with one byte for each letter.
        code_page: the one that it names.
        number_format: the number and the code of the one that all numbers have.
        version: of the records, 0x500 for BIFF5.
        more: other streams of the file.
    """
    begin = _old_record(0x809, struct.pack("<HHHHII", version, 5, 0, 0, 0, 0))
    if is_encrypted:
        begin += _old_record(_FILE_PASS, struct.pack("<HHHH", 0, 0x1234, 0x5678, 0))
    if code_page is not None:
        begin += _old_record(0x42, struct.pack("<H", code_page))
    if number_format is not None:
        format_id, code = number_format
        length = struct.pack("<HB", len(code), 0) if version == 0x600 else bytes([len(code)])
        begin += _old_record(0x41E, struct.pack("<H", format_id) + length + code.encode("latin-1"))
        begin += _old_record(0xE0, struct.pack("<HH", 0, format_id) + bytes(16))
    end = _old_record(0x0A, b"")
    if text:
        written = struct.pack("<HB", len(text), 0) + text.encode("latin-1")
        end = _old_record(0xFC, struct.pack("<II", 1, 1) + written) + end
    name = b"\x03\x00Old" if version == 0x600 else b"\x03Old"
    sheet_offset = len(begin) + 4 + 6 + len(name) + len(end)
    book = begin + _old_record(0x85, struct.pack("<IBB", sheet_offset, 0, 0) + name) + end
    sheet = _old_record(0x809, struct.pack("<HHHHII", version, 0x10, 0, 0, 0, 0))
    if text:
        sheet += _old_record(0xFD, struct.pack("<HHHI", 0, 0, 0, 0))
    for (row, column), number in sorted(numbers.items()):
        sheet += _old_record(0x203, struct.pack("<HHHd", row, column, 0, number))
    row, column = max(numbers)
    sheet += _old_record(0x205, struct.pack("<HHHBB", row + 1, column, 0, _NOT_AVAILABLE, 1))
    result = bytes([2, 0, _DIVISION_BY_ZERO, 0, 0, 0, 0xFF, 0xFF])
    sheet += _old_record(0x06, struct.pack("<HHH", row + 2, column, 0) + result + struct.pack("<HIH", 0, 0, 0))
    return compound_file({"Workbook": book + sheet + _old_record(0x0A, b""), **(more or {})})


def xlsb(numbers: Numbers) -> bytes:
    """Return a workbook with one sheet, `Binary`, and two errors as in `xls`."""
    return _binary_book({"Binary": "worksheets/sheet1.bin"}, {"worksheets/sheet1.bin": _binary_sheet(numbers)})


def xlsb_with_chart(first: Numbers, second: Numbers) -> bytes:
    """Return a workbook of a chart and two sheets, `First` and `Second`, which were in another order once."""
    targets = {
        "Chart": "chartsheets/sheet1.bin",
        "First": "worksheets/sheet2.bin",
        "Second": "worksheets/sheet1.bin",
    }
    parts = {
        "chartsheets/sheet1.bin": _record(129) + _record(130),
        "worksheets/sheet2.bin": _binary_sheet(first),
        "worksheets/sheet1.bin": _binary_sheet(second),
    }
    return _binary_book(targets, parts)


def _binary_sheet(numbers: Numbers) -> bytes:
    rows = b""
    for row in sorted({row for row, _ in numbers}):
        rows += _record(0, struct.pack("<IIHHBI", row, 0, 300, 0, 0, 0))
        for (_, column), number in sorted(item for item in numbers.items() if item[0][0] == row):
            rows += _record(5, struct.pack("<IId", column, 0, number))
    row, column = max(numbers)
    for offset, kind, code, rest in ((1, 3, _NOT_AVAILABLE, b""), (2, 11, _DIVISION_BY_ZERO, bytes(10))):
        rows += _record(0, struct.pack("<IIHHBI", row + offset, 0, 300, 0, 0, 0))
        rows += _record(kind, struct.pack("<IIB", column, 0, code) + rest)
    size = struct.pack("<IIII", 0, row + 2, 0, max(column for _, column in numbers))
    return _record(129) + _record(148, size) + _record(145) + rows + _record(146) + _record(130)


def _binary_book(targets: Mapping[str, str], parts: Mapping[str, bytes]) -> bytes:
    """Return a workbook of parts, each the target of the sheet of a name, in the order of these."""
    workbook = _record(131) + _record(143)
    related = ""
    for number, (name, target) in enumerate(targets.items(), 1):
        workbook += _record(156, struct.pack("<II", 0, number) + _text(f"rId{number}") + _text(name))
        kind = target.partition("s/")[0]
        related += _RELATIONSHIP.format(number, kind, target)
    workbook += _record(144) + _record(132)
    return zipped({
        "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>',
        "_rels/.rels": _RELATIONSHIPS.format(_RELATIONSHIP.format(1, "officeDocument", "xl/workbook.bin")),
        "xl/_rels/workbook.bin.rels": _RELATIONSHIPS.format(related),
        "xl/workbook.bin": workbook,
        **{f"xl/{name}": part for name, part in parts.items()},
    })  # fmt: skip


def _old_record(kind: int, body: bytes) -> bytes:
    return struct.pack("<HH", kind, len(body)) + body


def _record(kind: int, body: bytes = b"") -> bytes:
    """Return a record: seven bits of its kind and of its length in each byte, the lowest first."""
    return _packed(kind) + _packed(len(body)) + body


def _packed(number: int) -> bytes:
    packed = b""
    while number > 0x7F:
        packed += bytes([number & 0x7F | 0x80])
        number >>= 7
    return packed + bytes([number])


def _text(text: str) -> bytes:
    return struct.pack("<I", len(text)) + text.encode("utf-16-le")
