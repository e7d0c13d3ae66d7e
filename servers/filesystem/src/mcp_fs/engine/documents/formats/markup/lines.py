"""Paragraphs and tables of a document as lines of text, from a stream of elements and never from a tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import BinaryIO, ClassVar
from xml.parsers import expat

from mcp_fs.engine.document_kinds import MAX_OUTPUT_BYTES
from mcp_fs.engine.documents.formats.archives import Unreadable
from mcp_fs.engine.documents.formats.markup.formulas import FORMULAS, Formula
from mcp_fs.engine.documents.formats.markup.package import create_parser, local_name
from mcp_fs.engine.documents.formats.raised import raise_text

__all__ = ["LineBuilder", "read_xml_lines"]

_BLOCK_BYTES = 256 * 1024
# In a sheet of any spreadsheet.
_MOST_CELLS = 16_384
_MOST_ROWS = 1_048_576


class LineBuilder:
    """Lines of text; a vocabulary tells which elements are paragraphs, rows, cells and breaks.

    Attributes:
        IGNORED: elements that are left out with all in them.
        ready: lines that are whole.
    """

    IGNORED: ClassVar[frozenset[str]] = frozenset()

    def __init__(self) -> None:
        self.ready: list[str] = []
        self._line: list[str] = []
        self._prefix = ""
        self._path: list[str] = []
        self._cells: list[list[str]] = []  # of each open cell its lines
        self._rows: list[list[str]] = []  # of each open row its cells
        self._links: list[tuple[str, int]] = []  # of each open link where it leads, and where its text begins
        self._repeated: list[int] = []  # how often each open row and cell stands there
        self._remaining_bytes = MAX_OUTPUT_BYTES
        self._is_raised = False
        self._skipped = 0
        self._formula: Formula | None = None
        self._formula_end = 0  # where in the line the last formula ends

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        name = local_name(name)
        if self._formula is None and not self._skipped and name in FORMULAS:
            self._formula = Formula()
        if self._formula is not None:
            self._formula.start(name, attributes)
            return
        if self._skipped or name in self.IGNORED:
            self._skipped += 1
            return
        parent = self._parent()
        self._path.append(name)
        self._start_element(name, parent, {local_name(key): value for key, value in attributes.items()})

    def end(self, name: str) -> None:
        if self._formula is not None:
            self._formula.end(name)
            if self._formula.has_ended():
                self._end_formula(self._formula.finish())
            return
        if self._skipped:
            self._skipped -= 1
            return
        self._path.pop()
        self._end_element(local_name(name), self._parent())

    def text(self, data: str) -> None:
        if self._formula is not None:
            self._formula.text(data)
        elif not self._skipped and self._is_in_text():
            self._write(data)

    def _end_formula(self, line: str) -> None:
        """Write a formula, apart from one directly before it."""
        self._formula = None
        if self._formula_end == len(self._line) > 0:
            self._line.append("\n" if self._parent() == "oMathPara" else " ")
        self._line.append(line)
        self._formula_end = len(self._line)

    def _start_element(self, name: str, parent: str, attributes: Mapping[str, str]) -> None:
        """Begin an element; all names are local ones."""
        raise NotImplementedError

    def _end_element(self, name: str, parent: str) -> None:
        raise NotImplementedError

    def _is_in_text(self) -> bool:
        """Return whether characters belong to the text of the document here."""
        raise NotImplementedError

    def _parent(self) -> str:
        if not self._path:
            return ""
        return self._path[-1]

    def _write(self, data: str) -> None:
        if self._is_raised:
            data = raise_text(self._last_text(), data)
        self._line.append(data)

    def _last_text(self) -> str:
        """Return some of what the line ends with; nothing of an empty line."""
        return next((text for text in reversed(self._line) if text), "")

    def _end_link(self, address: str, begin: int) -> None:
        """Write where a link leads that leaves the document, unless its text says that."""
        text = "".join(self._line[begin:])
        leads_out = address and not address.startswith("#")
        if leads_out and address.removeprefix("mailto:").rstrip("/") not in text:
            self._line.append(f" <{address}>")

    def _start_row(self, times: int = 1) -> None:
        self._rows.append([])
        self._repeated.append(times)

    def _start_cell(self, times: int = 1) -> None:
        self._cells.append([])
        self._repeated.append(times)

    def _end_cell(self, value: str = "") -> None:
        """End a cell.

        Args:
            value: what it has where it shows nothing.
        """
        cell = " ".join(filter(None, self._cells.pop())) or value
        times = self._repeated.pop()
        if self._rows:
            row = self._rows[-1]
            row += [cell] * min(times, _MOST_CELLS - len(row))

    def _end_row(self) -> None:
        row = self._rows.pop()
        times = self._repeated.pop()
        while row and not row[-1]:
            row.pop()
        if row:
            self._add_line(" | ".join(row), times)

    def _end_line(self, *, always: bool = False) -> None:
        if self._line or always:
            text = "".join(self._line)
            self._line = []
            if text:
                self._add_line(self._prefix + text)
            elif not self._cells:
                self._add_line("")
        self._prefix = ""

    def _add_line(self, line: str, times: int = 1) -> None:
        if self._cells:
            self._cells[-1].append(line.replace("\n", " "))
            return
        # Equal rows of a sheet are written once. One more than there is room for tells that the text is cut.
        line_bytes = len(line) + 1
        times = max(1, min(times, _MOST_ROWS, self._remaining_bytes // line_bytes + 1))
        self._remaining_bytes = max(0, self._remaining_bytes - times * line_bytes)
        self.ready += [line + "\n"] * times


def read_xml_lines(stream: BinaryIO, lines: LineBuilder) -> Iterator[str]:
    """Yield what a builder makes of a part."""
    parser = create_parser(lines)
    try:
        while block := stream.read(_BLOCK_BYTES):
            parser.Parse(block)
            yield "".join(lines.ready)
            lines.ready.clear()
        parser.Parse(b"", True)
    except (expat.ExpatError, ValueError) as error:
        raise Unreadable(f"is damaged: {error}") from None
    yield "".join(lines.ready)
