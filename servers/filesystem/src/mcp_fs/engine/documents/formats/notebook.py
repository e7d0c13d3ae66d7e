"""Notebooks of Jupyter (nbformat 3 and 4) as text: their cells and what these have put out, without pictures."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

__all__ = ["Cell", "notebook_cells", "with_final_newline"]

_COLOUR_CODES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
# What nbformat 3 calls outputs that are neither text nor pictures.
_RICH_NAMES = frozenset({"html", "svg", "latex", "javascript", "json"})


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell as it is read.

    Attributes:
        header: the line before it, such as `[cell 1, code]`.
        source: what a person has written.
        outputs: what is shown below it.
    """

    header: str
    source: str
    outputs: str

    @property
    def text(self) -> str:
        return self.header + with_final_newline(self.source) + self.outputs


def notebook_cells(data: bytes | str) -> Sequence[Cell] | None:
    """Return the cells of a notebook; None of what is none as nbformat has it, such as one in the middle of a merge."""
    try:
        return [_cell(number, cell) for number, cell in enumerate(_raw_cells(json.loads(data)), 1)]
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        return None


def _raw_cells(book: dict[str, Any]) -> list[Any]:
    if "cells" in book:
        return book["cells"]
    return book["worksheets"][0]["cells"]  # of nbformat 3


def with_final_newline(text: str) -> str:
    """Return `text` with a line end behind its last line."""
    if not text or text.endswith("\n"):
        return text
    return text + "\n"


def _cell(number: int, cell: dict[str, Any]) -> Cell:
    source = cell.get("input", "")
    if "source" in cell:
        source = cell["source"]
    outputs: list[str] = []
    for output in cell.get("outputs", []):
        outputs += _format_output(output)
    return Cell(f"[cell {number}, {cell['cell_type']}]\n", _join_lines(source), "".join(outputs))


def _format_output(output: dict[str, Any]) -> Iterator[str]:
    if output.get("output_type") in ("error", "pyerr"):
        traceback = "\n".join(map(str, output.get("traceback") or []))
        yield f"[error]\n{with_final_newline(_as_on_terminal(traceback))}"
        return
    data: dict[str, Any] = output.get("data", output)
    text = data.get("text/plain", data.get("text"))
    if text is not None:
        yield f"[output]\n{with_final_newline(_as_on_terminal(_join_lines(text)))}"
    for name in data:
        # Where there is text too, a page says the same once more.
        if _is_picture(name) or (text is None and ("/" in name or name in _RICH_NAMES)):
            yield f"[output: {name} left out]\n"


def _as_on_terminal(text: str) -> str:
    """Return a text as a terminal shows it in the end: without colours, and of a line that was overwritten the last."""
    lines = _COLOUR_CODES.sub("", text).split("\n")
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines)


def _is_picture(name: str) -> bool:
    """Return whether a part of an output is a picture, by its MIME type or the name that nbformat 3 has for it."""
    return name.startswith(("image/", "application/pdf")) or name in ("png", "jpeg")


def _join_lines(text: Any) -> str:
    if isinstance(text, list):
        return "".join(map(str, cast("list[Any]", text)))
    return str(text)
