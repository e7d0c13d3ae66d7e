"""The lines of a part of ECMA-376, be it of Word or of PowerPoint."""

from __future__ import annotations

import re
from collections.abc import Mapping

from mcp_fs.engine.documents.formats.lines import LineBuilder
from mcp_fs.engine.documents.formats.raised import raise_text

__all__ = ["OfficeLines"]

_HEADING = re.compile(r"(?:heading|titre|überschrift) ?(\d)|(title)$", re.IGNORECASE)
# Parts of a formula that stand above or below others, with what is written before them (ECMA-376, math).
_FORMULA_PARTS = {"num": "", "den": "/", "sup": "^", "sub": "_", "e": "√"}
_ROOT_PARTS = frozenset({"deg", "e"})


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
            case "r" | "fld":
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
                self._end_formula_part(name, self._formula_parts.pop())
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

    def _end_formula_part(self, name: str, begin: int) -> None:
        """Write a part of a formula on the line: `1/25`, `x^2`, `√(a+b)`, `³√8`."""
        part = "".join(self._line[begin:])
        if not part:
            return
        if name == "deg":
            self._line[begin:] = [raise_text("0", part)]
            return
        if len(part) > 1 and not part.isdecimal():
            part = f"({part})"
        self._line[begin:] = [_FORMULA_PARTS[name] + part]
        self._is_behind_formula_part = True


def _is_formula_part(name: str, parent: str) -> bool:
    if name in _ROOT_PARTS:
        return parent == "rad"
    return name in _FORMULA_PARTS
