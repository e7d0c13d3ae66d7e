"""Real documents, read by the server and by other libraries; run as a program.

`uv run --with pdfplumber --with openpyxl python -m filesystem.documents_differential FOLDER` in `tests/` reads every
document below a folder, and prints for each question in how many files both say the same. `--show` names the others.
A library that is not installed is not asked; a file that it can't read itself counts for nobody.
"""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

from filesystem.reading import served
from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Problem
from mcp_fs.engine.documents.source import open_content

__all__ = ["QUESTIONS", "Agreement", "cells_of", "compare_documents", "read_document"]

_NUMBER = re.compile(r"[-+]?\d[\d.,]*")
_LINK = re.compile(r" <[^<>\s]+>")
_SHEET = re.compile(r"\[sheet (?P<name>.*?), (?P<column>[A-Z]+)(?P<row>\d+)(:[A-Z]+\d+)?(, .*)?\]")
_ROW = re.compile(r"\[row (\d+)\]")
_CELL = re.compile(r"\[([A-Z]+)\d+\] ")
_EQUAL_SHARE = 0.98
# Of a document: the other libraries take long.
_MOST_PAGES = 4
_MOST_BYTES = 2_000_000

Question = Callable[[Path, str], bool]


@dataclass
class Agreement:
    """In which files the server and another library say the same.

    Attributes:
        agreed: how many files those are.
        asked: of how many.
        differing: the others.
    """

    agreed: int = 0
    asked: int = 0
    differing: list[str] = field(default_factory=list[str])


def read_document(path: Path) -> str:
    """Return the text of a document as the server reads it."""
    with open_content(served(path.parent).readable(path.name), CancelToken()) as (file, _):
        return file.read().decode()


def compare_documents(files: Iterable[Path]) -> dict[str, Agreement]:
    """Return for every question in which files the server and the other library agree."""
    agreements: dict[str, Agreement] = {}
    for path in files:
        questions = QUESTIONS.get(path.suffix.lower(), {})
        text = ""
        if questions:
            with suppress(Problem):
                text = read_document(path)
        for name, ask in questions.items():
            agreement = agreements.setdefault(f"{path.suffix.lower()[1:]} {name}", Agreement())
            try:
                is_agreed = ask(path, text)
            except ImportError:
                continue
            except Exception:
                continue
            agreement.asked += 1
            if is_agreed:
                agreement.agreed += 1
            else:
                agreement.differing.append(str(path))
    return agreements


@lru_cache(maxsize=1)
def _pages(path: Path) -> list[str]:
    """Return the text of the first pages as pdfplumber places their words."""
    import pdfplumber  # pyright: ignore[reportMissingImports]

    plumber: Any = pdfplumber
    with plumber.open(path) as book:
        pages = book.pages[:_MOST_PAGES]
        return [page.dedupe_chars().extract_text(x_tolerance_ratio=0.15) for page in pages]


def _first_pages(text: str) -> str:
    """Return our text of the first pages, without what is said about them."""
    pages = re.split(r"^\[page \d+ of \d+.*\]\n", text, flags=re.MULTILINE)[1 : _MOST_PAGES + 1]
    return "\n".join(page.partition("[form]\n")[0].replace("(no text: see it with read_media)", "") for page in pages)


def _has_words(path: Path, text: str) -> bool:
    """Return whether the words of the pages are the same, wherever they stand."""
    words = Counter(_words("\n".join(_pages(path))))
    ours = Counter(_words(_first_pages(text)))
    return (words & ours).total() >= _EQUAL_SHARE * max(words.total(), ours.total())


def _words(text: str) -> list[str]:
    """Return the words of a page: halves joined, without what leads the eye to a number."""
    text = re.sub(r"(?<=[^\W\d])-\n(?=[a-z])", "", text)
    return re.sub(r"[.…_\u00b7]{2,}|(?<!\S)[.\u00b7](?!\S)", " ", text).split()


def _has_rows(path: Path, text: str) -> bool:
    """Return whether the numbers that stand beside each other in the pages do so in our lines."""
    ours = [f" {' '.join(_NUMBER.findall(line))} " for line in _first_pages(text).splitlines()]
    joined = "\n".join(ours)
    rows = [" ".join(_NUMBER.findall(line)) for page in _pages(path) for line in page.splitlines()]
    rows = [row for row in rows if " " in row]
    return sum(f" {row} " in joined for row in rows) >= _EQUAL_SHARE * len(rows)


def _cell_text(value: object) -> str:
    """Return a value of openpyxl as the server writes it."""
    match value:
        case bool():
            return str(value)
        case float() if value.is_integer() and abs(value) < 1 << 53:
            return str(int(value))
        case datetime() if value.time() == time():
            return str(value.date())
        case datetime():
            return value.isoformat(" ")
        case date() | time() | timedelta():
            return str(value)
        case _:
            return " ".join(str(value).split())


def _sheets(path: Path) -> dict[str, dict[str, str]]:
    """Return by sheet the cells that are not empty, by their A1 names, as openpyxl has them."""
    import openpyxl  # pyright: ignore[reportMissingImports, reportMissingModuleSource]

    library: Any = openpyxl
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        formulas = library.load_workbook(path)
        values = library.load_workbook(path, data_only=True)
    sheets: dict[str, dict[str, str]] = {}
    for sheet in values.worksheets:
        cells = sheets[sheet.title] = dict[str, str]()
        for row in sheet.iter_rows():
            for cell in row:
                value = cell.value
                if value is None and formulas[sheet.title][cell.coordinate].data_type == "f":
                    formula = formulas[sheet.title][cell.coordinate].value
                    value = getattr(formula, "text", formula)
                if value is not None and _cell_text(value):
                    cells[cell.coordinate] = _cell_text(value)
    return sheets


def _column_number(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - 64
    return number


def _column_letters(number: int) -> str:
    letters = ""
    while number:
        number, digit = divmod(number - 1, 26)
        letters = chr(65 + digit) + letters
    return letters


def cells_of(text: str) -> dict[str, dict[str, str]]:
    """Return by sheet the cells of a workbook's text, by the A1 names that a reader works out from it."""
    sheets: dict[str, dict[str, str]] = {}
    cells: dict[str, str] = {}
    row = first_column = 1
    for line in text.splitlines():
        if line.startswith("[comment ") or line.startswith("[sheet ") or _ROW.fullmatch(line):
            if heading := _SHEET.fullmatch(line):
                cells = sheets.setdefault(heading["name"], {})
                row, first_column = int(heading["row"]), _column_number(heading["column"])
            elif line.startswith("[sheet "):
                cells = sheets.setdefault(line[7:-1].removesuffix(", empty"), {})
            elif skipped := _ROW.fullmatch(line):
                row = int(skipped[1])
            continue
        column = first_column
        for cell in line.split("\t"):
            if named := _CELL.match(cell):
                column = _column_number(named[1])
                cell = cell[named.end() :]
            if cell:
                cells[f"{_column_letters(column)}{row}"] = cell
            column += 1
        row += 1
    return sheets


def _has_values(path: Path, text: str) -> bool:
    theirs = Counter(value for cells in _sheets(path).values() for value in cells.values())
    ours = Counter(value for cells in cells_of(text).values() for value in cells.values())
    return theirs == ours


def _has_cells(path: Path, text: str) -> bool:
    theirs = {name: cells for name, cells in _sheets(path).items() if cells}
    return theirs == {name: cells for name, cells in cells_of(text).items() if cells}


def _has_paragraphs(path: Path, text: str) -> bool:
    """Return whether every paragraph of a document, also in tables, stands in our text as a whole."""
    import docx

    document: Any = docx.Document(str(path))
    text = _normalize(_LINK.sub("", text))
    paragraphs = [*document.paragraphs]
    for table in document.tables:
        for row in table.rows:
            for cell in row.cells:
                paragraphs += cell.paragraphs
    return all(_normalize(paragraph.text) in text for paragraph in paragraphs)


def _has_shapes(path: Path, text: str) -> bool:
    import pptx

    show: Any = pptx.Presentation(str(path))
    text = _normalize(text)
    texts: list[str] = []
    for slide in show.slides:
        for shape in slide.shapes:
            if shape.has_text_frame:
                texts += [paragraph.text for paragraph in shape.text_frame.paragraphs]
    return all(_normalize(paragraph) in text for paragraph in texts)


def _normalize(text: str) -> str:
    return " ".join(text.replace("\u2011", "-").split())


_WORKBOOK: dict[str, Question] = {"values": _has_values, "cells": _has_cells}
QUESTIONS: dict[str, dict[str, Question]] = {
    ".pdf": {"words": _has_words, "rows of figures": _has_rows},
    ".xlsx": _WORKBOOK,
    ".xlsm": _WORKBOOK,
    ".docx": {"paragraphs": _has_paragraphs},
    ".pptx": {"paragraphs": _has_shapes},
}
"""By suffix: what is asked of each library about a file of that kind, by a name for the question."""


def main() -> None:
    """Read the folder that is named, and print the figures as one JSON object."""
    folder = Path(sys.argv[1])
    agreements = compare_documents(
        sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size <= _MOST_BYTES)
    )
    print(json.dumps({name: f"{found.agreed} of {found.asked}" for name, found in agreements.items()}, indent=2))
    if "--show" in sys.argv:
        for name, found in agreements.items():
            print(name, *found.differing, sep="\n  ")


if __name__ == "__main__":
    main()
