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
# What is text too, as it was written, in the order of reading.
_WRITTEN_TEXTS = ("text/markdown", "text/latex", "latex")
# A text such as `<IPython.core.display.HTML object>` names what is shown, and says nothing of it.
_OBJECT_NAME = re.compile(r"<[^\n]*>\s*\Z")


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
    text = _output_text(data)
    is_told = text is not None and _OBJECT_NAME.match(text) is None
    if text is not None:
        yield f"[output]\n{with_final_newline(_as_on_terminal(text))}"
    for name in data:
        # Where there is text too, a page says the same once more.
        if _is_picture(name) or (not is_told and _is_rich(name)):
            yield f"[output: {name} left out]\n"


def _output_text(data: dict[str, Any]) -> str | None:
    """Return what an output says, not as the name of an object if there is more; None where that is no text."""
    plain = data.get("text/plain", data.get("text"))
    if plain is not None:
        plain = _join_lines(plain)
        if _OBJECT_NAME.match(plain) is None:
            return plain
    for name in _WRITTEN_TEXTS:
        if name in data:
            return _join_lines(data[name])
    return plain


def _is_rich(name: str) -> bool:
    return ("/" in name and name != "text/plain" and name not in _WRITTEN_TEXTS) or name in _RICH_NAMES


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
