"""What the server reads of a document beside what other libraries read of it, by questions that both answer.

A library that is not installed is not asked, and one that can't read a file says nothing of it: both are counted as
such. A failure of our own part of a comparison ends the proof.
"""

from __future__ import annotations

import io
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Any

from filesystem.reading import served
from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Problem
from mcp_fs.engine.documents.source import open_content

__all__ = ["MOST_BYTES", "QUESTIONS", "Answer", "Outcome", "Question", "cells_of", "compare_document", "read_document"]

_NUMBER = re.compile(r"[-+]?\d[\d.,]*")
_OPEN_PICTURE = re.compile(r"\(Pictures/[^()]*\)")
_OPEN_LINK = re.compile(r"\[([^\[\]]*)\]\([^()]*\)")
_LINK = re.compile(r" <[^<>\s]+>")
_SHEET = re.compile(r"\[sheet (?P<name>.*?), (?P<column>[A-Z]+)(?P<row>\d+)(:[A-Z]+\d+)?(, .*)?\]")
_ROW = re.compile(r"\[row (\d+)\]")
_CELL = re.compile(r"\[([A-Z]+)\d+\] ")
_EQUAL_SHARE = 0.98
# Of a document: the other libraries take long.
_MOST_PAGES = 4
MOST_BYTES = 2_000_000


@dataclass(frozen=True)
class Question:
    """What is asked about documents of one kind.

    Attributes:
        read: returns what another library makes of a file.
        is_same: whether the server's text says the same as that.
    """

    read: Callable[[Path], Any]
    is_same: Callable[[Any, str], bool]


class Outcome(Enum):
    """What came of one question about one document."""

    SAME = "the same"
    DIFFERENT = "differ"
    NOT_INSTALLED = "the other library is not installed"
    UNREADABLE = "the other library can't read it"

    @property
    def is_compared(self) -> bool:
        """Whether both read the document."""
        return self in (Outcome.SAME, Outcome.DIFFERENT)


@dataclass(frozen=True)
class Answer:
    """The answer to one question about one document.

    Attributes:
        question: as `pdf words`.
        outcome: whether both say the same, or why nobody knows.
        refusal: why the server does not read the document, if it does not.
    """

    question: str
    outcome: Outcome
    refusal: str = ""


def read_document(path: Path) -> str:
    """Return the text of a document as the server reads it."""
    with open_content(served(path.parent).readable(path.name), CancelToken()) as (file, _):
        return file.read().decode("utf-8", "replace")


def compare_document(path: Path) -> Iterator[Answer]:
    """Yield an answer for each question about documents of this kind.

    Raises:
        Problem: the server does not read it, and neither do the others.
    """
    kind = path.suffix.lower()
    refusal: Problem | None = None
    text = ""
    try:
        text = read_document(path)
    except Problem as problem:
        refusal = problem
    is_read_by_others = False
    for name, question in QUESTIONS.get(kind, {}).items():
        outcome = _ask(question, path, text)
        if refusal is not None and outcome is Outcome.SAME:
            continue  # The library has opened a locked document and sees nothing in it.
        is_read_by_others |= outcome.is_compared
        yield Answer(f"{kind[1:]} {name}", outcome, refusal.failure if refusal else "")
    if refusal is not None and not is_read_by_others:
        raise refusal


def _ask(question: Question, path: Path, text: str) -> Outcome:
    """Compare the server's text of a document with what another library reads in it."""
    try:
        theirs = question.read(path)
    except ImportError:
        return Outcome.NOT_INSTALLED
    except Exception:  # Each library has its own exceptions, and damaged files find others.
        return Outcome.UNREADABLE
    return Outcome.SAME if question.is_same(theirs, text) else Outcome.DIFFERENT


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


def _has_words(pages: list[str], text: str) -> bool:
    """Return whether the words of the pages are the same, wherever they stand."""
    words = Counter(_words("\n".join(pages)))
    ours = Counter(_words(_first_pages(text)))
    return (words & ours).total() >= _EQUAL_SHARE * max(words.total(), ours.total())


def _words(text: str) -> list[str]:
    """Return the words of a page: halves joined, without what leads the eye to a number."""
    text = re.sub(r"(?<=[^\W\d])-\n(?=[a-z])", "", text)
    return re.sub(r"[.…_\u00b7]{2,}|(?<!\S)[.\u00b7](?!\S)", " ", text).split()


def _has_rows(pages: list[str], text: str) -> bool:
    """Return whether the numbers that stand beside each other in the pages do so in our lines."""
    ours = [f" {' '.join(_NUMBER.findall(line))} " for line in _first_pages(text).splitlines()]
    joined = "\n".join(ours)
    rows = [" ".join(_NUMBER.findall(line)) for page in pages for line in page.splitlines()]
    rows = [row for row in rows if " " in row]
    return sum(f" {row} " in joined for row in rows) >= _EQUAL_SHARE * len(rows)


Sheets = Mapping[str, Mapping[str, str]]
"""By sheet the cells that are not empty, by their A1 names."""


def _cell_text(value: object) -> str:
    """Return a value of openpyxl as the server writes it."""
    match value:
        case bool():
            return str(value)
        case float() if value.is_integer() and abs(value) < 1 << 53:
            return str(int(value))
        case float():
            return f"{value:.15g}"  # as many digits as Excel shows
        case datetime() if value.time() == time():
            return str(value.date())
        case datetime():
            return value.isoformat(" ")
        case date() | time() | timedelta():
            return str(value)
        case _:
            return " ".join(str(value).split())


@lru_cache(maxsize=1)
def _sheets(path: Path) -> Sheets:
    """Return the cells as openpyxl has them."""
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
                # A formula whose text is empty has a value.
                if value is None and cell.data_type == "n" and formulas[sheet.title][cell.coordinate].data_type == "f":
                    formula = formulas[sheet.title][cell.coordinate].value
                    value = getattr(formula, "text", formula)
                if value is not None and _cell_text(value):
                    cells[cell.coordinate] = _cell_text(value)
    return sheets


@lru_cache(maxsize=1)
def _old_sheets(path: Path) -> Sheets:
    """Return the cells as xlrd has them."""
    import xlrd  # pyright: ignore[reportMissingImports, reportMissingModuleSource]

    library: Any = xlrd
    book = library.open_workbook(str(path), logfile=io.StringIO(), formatting_info=False)
    sheets: dict[str, dict[str, str]] = {}
    for sheet in book.sheets():
        cells = sheets[sheet.name] = dict[str, str]()
        for row in range(sheet.nrows):
            for column, cell in enumerate(sheet.row(row)):
                text = _cell_text(_old_value(library, cell, book.datemode))
                if text:
                    cells[f"{_column_letters(column + 1)}{row + 1}"] = text
    return sheets


def _old_value(library: Any, cell: Any, date_mode: int) -> object:
    """Return the value of a cell of xlrd as Python has it; an error as the words of Excel."""
    match cell.ctype:
        case library.XL_CELL_DATE:
            if cell.value < 1:
                return (datetime(2000, 1, 1) + timedelta(days=cell.value)).time()
            return library.xldate_as_datetime(cell.value, date_mode)
        case library.XL_CELL_BOOLEAN:
            return bool(cell.value)
        case library.XL_CELL_ERROR:
            return library.error_text_from_code[cell.value]
        case _:
            return cell.value


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


def _paragraphs(path: Path) -> list[str]:
    """Return every paragraph of a document, also those in tables, as python-docx has them."""
    import docx

    document: Any = docx.Document(str(path))
    paragraphs = [*document.paragraphs]
    for table in document.tables:
        for row in table.rows:
            for cell in row.cells:
                paragraphs += cell.paragraphs
    return [paragraph.text for paragraph in paragraphs]


def _shape_paragraphs(path: Path) -> list[str]:
    """Return every paragraph of a show's shapes as python-pptx has them."""
    import pptx

    show: Any = pptx.Presentation(str(path))
    texts: list[str] = []
    for slide in show.slides:
        for shape in slide.shapes:
            if shape.has_text_frame:
                texts += [paragraph.text for paragraph in shape.text_frame.paragraphs]
    return texts


def _open_paragraphs(path: Path) -> list[str]:
    """Return every paragraph of an OpenDocument as odfdo has them."""
    import odfdo

    document: Any = odfdo.Document(str(path))
    texts: list[str] = []
    for paragraph in document.body.get_paragraphs():
        # The library writes pictures and links as Markdown does.
        texts.append(_OPEN_LINK.sub(r"\1", _OPEN_PICTURE.sub("", paragraph.inner_text)))
    return texts


def _mail_texts(path: Path) -> list[str]:
    """Return the subject, the words of the body and the names of what is attached as extract-msg has them."""
    import extract_msg  # pyright: ignore[reportMissingImports]

    library: Any = extract_msg
    with library.openMsg(str(path)) as mail:
        words = [mail.subject or "", *(mail.body or "").split()]
        names = [attachment.longFilename or attachment.shortFilename or "" for attachment in mail.attachments]
    return [word.strip("\0") for word in (*words, *names)]


def _holds_without_links(texts: list[str], whole: str) -> bool:
    """Return whether all texts stand in another without the addresses of its links."""
    return _holds(texts, _LINK.sub("", whole))


def _holds_with_or_without_links(texts: list[str], whole: str) -> bool:
    """Return whether all texts stand in another, with the addresses of its links or without."""
    return _holds(texts, f"{whole}\n{_LINK.sub('', whole)}")


def _holds(texts: list[str], whole: str) -> bool:
    """Return whether all texts stand in another, whatever blanks are between words."""
    whole = _normalize(whole)
    return all(_normalize(text) in whole for text in texts)


def _normalize(text: str) -> str:
    return " ".join(text.replace("\u2011", "-").split())


def _count_values(sheets: Sheets) -> Counter[str]:
    counts = Counter[str]()
    for cells in sheets.values():
        counts.update(cells.values())
    return counts


def _has_values(theirs: Sheets, text: str) -> bool:
    """Return whether the same values are in the sheets, in whatever cells."""
    # Not all libraries read sheets that are charts.
    ours = {name: cells for name, cells in cells_of(text).items() if name in theirs}
    return _count_values(theirs) == _count_values(ours)


def _has_cells(theirs: Sheets, text: str) -> bool:
    """Return whether every cell of the sheets has the same value."""
    ours = cells_of(text)
    return all(cells == ours.get(name, {}) for name, cells in theirs.items())


def _sheet_questions(read: Callable[[Path], Sheets]) -> Mapping[str, Question]:
    """Return what is asked of a library that reads workbooks."""
    return {"values": Question(read, _has_values), "cells": Question(read, _has_cells)}


QUESTIONS: Mapping[str, Mapping[str, Question]] = {
    ".pdf": {"words": Question(_pages, _has_words), "rows of figures": Question(_pages, _has_rows)},
    ".xlsx": _sheet_questions(_sheets),
    ".xlsm": _sheet_questions(_sheets),
    ".xls": _sheet_questions(_old_sheets),
    ".docx": {"paragraphs": Question(_paragraphs, _holds_without_links)},
    ".pptx": {"paragraphs": Question(_shape_paragraphs, _holds)},
    ".odt": {"paragraphs": Question(_open_paragraphs, _holds_with_or_without_links)},
    ".odp": {"paragraphs": Question(_open_paragraphs, _holds_with_or_without_links)},
    ".ods": {"paragraphs": Question(_open_paragraphs, _holds_with_or_without_links)},
    ".msg": {"words": Question(_mail_texts, _holds)},
}
"""By suffix: what is asked about a file of that kind, by a name for the question."""
