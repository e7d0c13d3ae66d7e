"""The lines of a part of ECMA-376, be it of Word or of PowerPoint."""

from __future__ import annotations

import re
from collections.abc import Mapping

from mcp_fs.engine.documents.formats.markup.lines import LineBuilder

__all__ = ["OfficeLines"]

_HEADING = re.compile(r"(?:heading|titre|überschrift) ?(\d)|(title)$", re.IGNORECASE)
# In a table of Word.
_MOST_COLUMNS = 63


class OfficeLines(LineBuilder):
    """The lines of a part of ECMA-376, whose text is that of `t`."""

    # What is shown a second time for older programs, what was deleted or looked otherwise, codes of fields, and how
    # the characters below it are spoken.
    IGNORED = frozenset({"Fallback", "del", "delText", "instrText", "moveFrom", "pPrChange", "rPrChange", "rt"})

    def __init__(self) -> None:
        super().__init__()
        self._texts = 0
        self._spans: list[int] = []  # of each open cell over how many columns it goes

    def _is_in_text(self) -> bool:
        return self._texts > 0

    def _start_element(self, name: str, parent: str, attributes: Mapping[str, str]) -> None:
        match name:
            case "p":
                self._end_line()
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
            case "pStyle":
                self._apply_style(attributes.get("val", ""))
            case "numPr":
                self._prefix = self._prefix or "- "
            case "tr":
                self._start_row()
            case "gridBefore" if self._rows:
                self._rows[-1] += [""] * _count(attributes)
            case "tc":
                self._start_cell()
                self._spans.append(1)
            case "gridSpan" if self._spans:
                self._spans[-1] = _count(attributes)
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
                self._skip_columns(self._spans.pop() - 1)
            case "tr":
                self._end_row()
            case _:
                pass

    def _skip_columns(self, count: int) -> None:
        """Leave empty what a cell covers, so that those behind it stand in their columns."""
        if self._rows:
            self._rows[-1] += [""] * count

    def _apply_style(self, style: str) -> None:
        heading = _HEADING.match(style)
        if heading:
            self._prefix = "#" * int(heading[1] or 1) + " "


def _count(attributes: Mapping[str, str]) -> int:
    """Return a number of columns."""
    value = attributes.get("val", "")
    if not value.isdecimal():
        return 1
    return min(int(value), _MOST_COLUMNS)
