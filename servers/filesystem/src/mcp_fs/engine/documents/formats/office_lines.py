"""The lines of a part of ECMA-376, be it of Word or of PowerPoint."""

from __future__ import annotations

import re
from collections.abc import Mapping

from mcp_fs.engine.documents.formats.lines import LineBuilder

__all__ = ["OfficeLines"]

_HEADING = re.compile(r"(?:heading|titre|überschrift) ?(\d)|(title)$", re.IGNORECASE)


class OfficeLines(LineBuilder):
    """The lines of a part of ECMA-376, whose text is that of `t`."""

    # What is shown a second time for older programs, what was deleted or looked otherwise, codes of fields, and how
    # the characters below it are spoken.
    IGNORED = frozenset({"Fallback", "delText", "instrText", "moveFrom", "pPrChange", "rPrChange", "rt"})

    def __init__(self) -> None:
        super().__init__()
        self._texts = 0

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
            case _:
                pass

    def _apply_style(self, style: str) -> None:
        heading = _HEADING.match(style)
        if heading:
            self._prefix = "#" * int(heading[1] or 1) + " "
