"""What a workbook (ECMA-376) shows of cells otherwise than it stores it, where that changes what they say.

That is zeros before a number, as of a postal code, and what is raised in a text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from mcp_fs.engine.documents.formats.archives import Zip
from mcp_fs.engine.documents.formats.lines import read_xml_lines
from mcp_fs.engine.documents.formats.office_lines import OfficeLines
from mcp_fs.engine.documents.formats.package import find_related_parts, read_elements

__all__ = ["CellLooks", "read_cell_looks"]

# A format of digits only, such as `00000` or `000-00-0000`.
_DIGIT_FORMAT = re.compile(r'(?:0|[-+ ()]|\\.|"[^"]*")*')
_DIGIT_OR_LITERAL = re.compile(r'0|\\(.)|"([^"]*)"|([-+ ()])')
_FEWEST_DIGITS = 2
_BLOCK_BYTES = 256 * 1024
_MOST_RAISED = 1000
_MARKS_RAISED = b"superscript"


@dataclass(frozen=True, slots=True)
class CellLooks:
    """What changes the text of cells.

    Attributes:
        digit_formats: by the numbers of the styles that have one.
        raised_texts: by their numbers among the texts that cells share.
    """

    digit_formats: Mapping[str, str]
    raised_texts: Mapping[str, str]

    def pattern(self) -> bytes:
        """Return a regular expression that the XML of each sheet has where a cell looks so; nothing if none does."""
        patterns: list[str] = []
        if self.digit_formats:
            patterns.append(f'\\bs="(?:{"|".join(self.digit_formats)})"')
        if self.raised_texts:
            patterns.append(f"<v>(?:{'|'.join(self.raised_texts)})</v>")
        return "|".join(patterns).encode()

    def text_of(self, kind: str, style: str, value: str) -> str | None:
        """Return the text of a cell; None where that is its value.

        Args:
            kind: the type of its value, `n` for a number and `s` for a text that it shares.
        """
        if kind == "s":
            return self.raised_texts.get(value)
        digit_format = self.digit_formats.get(style)
        if kind == "n" and digit_format is not None and value.isdecimal():
            return _format_digits(value, digit_format)
        return None


def read_cell_looks(package: Zip, main: str) -> CellLooks:
    """Return how cells look in a workbook.

    Args:
        main: the part that names its sheets.
    """
    parts = find_related_parts(package, main, key="Type")
    return CellLooks(
        _read_digit_formats(package, parts.get("styles", "")),
        _read_raised_texts(package, parts.get("sharedStrings", "")),
    )


def _read_digit_formats(package: Zip, part: str) -> Mapping[str, str]:
    codes: dict[str, str] = {}
    styles: list[str] = []
    container = ""
    for name, attributes in read_elements(package.member(part)):
        match name:
            case "numFmt":
                codes[attributes.get("numFmtId", "")] = attributes.get("formatCode", "")
            case "cellStyleXfs" | "cellXfs" | "cellStyles" | "dxfs":
                container = name
            case "xf" if container == "cellXfs":
                styles.append(attributes.get("numFmtId", ""))
            case _:
                pass
    formats = {str(number): codes.get(style, "") for number, style in enumerate(styles)}
    return {number: code for number, code in formats.items() if _is_digit_format(code)}


def _is_digit_format(code: str) -> bool:
    return code.count("0") >= _FEWEST_DIGITS and _DIGIT_FORMAT.fullmatch(code) is not None


def _format_digits(value: str, code: str) -> str:
    """Return a whole number in a format of digits; the first of them takes what is left."""
    tokens = list(_DIGIT_OR_LITERAL.finditer(code))
    places = sum(token[0] == "0" for token in tokens)
    digits = value.zfill(places)
    surplus = len(digits) - places
    text = ""
    for token in tokens:
        if token[0] != "0":
            text += token[1] or token[2] or token[3] or ""
            continue
        text += digits[: surplus + 1]
        digits = digits[surplus + 1 :]
        surplus = 0
    return text


def _read_raised_texts(package: Zip, part: str) -> Mapping[str, str]:
    stream = package.member(part)
    end = b""
    while stream is not None and (block := stream.read(_BLOCK_BYTES)):
        if _MARKS_RAISED in end + block:
            break
        end = block[-len(_MARKS_RAISED) :]
    else:
        return {}
    texts = _SharedTexts()
    stream = package.member(part)
    if stream is not None:
        for _ in read_xml_lines(stream, texts):
            pass
    return texts.raised


class _SharedTexts(OfficeLines):
    """Takes the texts with raised parts from those that cells share.

    Attributes:
        raised: by their number.
    """

    IGNORED = OfficeLines.IGNORED | {"rPh"}

    def __init__(self) -> None:
        super().__init__()
        self.raised: dict[str, str] = {}
        self._number = 0
        self._has_raised = False

    def _write(self, data: str) -> None:
        self._has_raised = self._has_raised or self._is_raised
        super()._write(data)

    def _end_element(self, name: str, parent: str) -> None:
        super()._end_element(name, parent)
        if name != "si":
            return
        if self._has_raised and len(self.raised) < _MOST_RAISED:
            self.raised[str(self._number)] = " ".join("".join(self._line).split())
        self._line = []
        self._number += 1
        self._has_raised = False
        self._is_raised = False
