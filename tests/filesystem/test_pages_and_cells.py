"""What a PDF and a workbook say, in the order and at the places where a reader sees it."""

from __future__ import annotations

import io
import random
import re
import struct
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import python_calamine
import xlsxwriter
from xlsxwriter.utility import xl_rowcol_to_cell

from filesystem.binary_workbooks import xls, xlsb, xlsb_with_chart
from filesystem.documents import drawn_pdf, pdf, zipped
from filesystem.reading import fill, flat, served
from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Invalid, NotFound
from mcp_fs.engine.documents import worker
from mcp_fs.engine.documents.formats import archives
from mcp_fs.engine.documents.formats.archives import OutOfTime
from mcp_fs.engine.documents.formats.fixed_pages import pdf as pdf_reader
from mcp_fs.engine.documents.formats.fixed_pages.page_layout import Word, lay_out
from mcp_fs.engine.documents.formats.tables import workbook as workbook_reader
from mcp_fs.engine.documents.formats.tables.binary_errors import read_old_errors
from mcp_fs.engine.reading.text_page import LineIndex, PageRequest, read_page
from mcp_fs.engine.search.query import Query
from mcp_fs.engine.search.text_search import search_text
from outside.documents.comparison import cells_of

Drawn = tuple[float, float, str]
"""Where the first letter of a text stands, and the text."""


def read(folder: Path, path: str) -> str:
    return read_page(served(folder).readable(path), PageRequest(max_bytes=1_000_000), LineIndex(), CancelToken()).body


def read_pdf(data: bytes) -> str:
    return "".join(pdf_reader.Pdf(io.BytesIO(data)).text())


def drawn(*texts: Drawn, font_size: int = 10) -> str:
    return "".join(f"BT /F {font_size} Tf 1 0 0 1 {x} {y} Tm ({text}) Tj ET\n" for x, y, text in texts)


PROSE = re.findall(r"\w+", "The quick brown fox jumps over the lazy dog while seven wizards box a bishop")


def column(x: float, top: float, words: Sequence[str], per_line: int = 5) -> list[Drawn]:
    lines = [" ".join(words[at : at + per_line]) for at in range(0, len(words), per_line)]
    return [(x, top - 12 * number, line) for number, line in enumerate(lines)]


PAGES: dict[str, tuple[str, str]] = {
    "figures that stand close": (
        drawn((20, 80, "Total"), (100, 80, "9"), (108.5, 80, "0"), (150, 80, "12")), "Total           9 0       12",
    ),
    "one drawing operator with a gap": ("BT /F 10 Tf 20 80 Td [(9) -300 (0)] TJ ET", "9 0"),
    "an empty cell stays empty": (
        drawn((20, 80, "a"), (60, 80, "b"), (100, 80, "c"), (20, 60, "1"), (100, 60, "3")),
        "a       b       c\n1               3",
    ),
    "columns drawn one after the other are rows": (
        drawn((20, 80, "a"), (20, 60, "1"), (100, 80, "b"), (100, 60, "2")), "a               b\n1               2",
    ),
    "letters drawn apart are a word": ("BT /F 10 Tf 20 80 Td (W) Tj 9.44 0 Td (ord) Tj ET", "Word"),
    "a letter drawn twice to look bold": (drawn((20, 80, "7"), (20.2, 80, "7")), "7"),
    "a superscript": ("BT /F 10 Tf 20 80 Td (x) Tj /F 6 Tf 5 4 Td (2) Tj ET", "x2"),
    "what is drawn last but stands first": (drawn((20, 40, "below"), (20, 80, "above")), "above\nbelow"),
    "lines of a paragraph": (
        drawn((20, 100, "Payment is due within thirty days of"), (20, 88, "the invoice date, without deduction.")),
        "Payment is due within thirty days of the invoice date, without deduction.",
    ),
    "lines of a list": (
        drawn((20, 100, "- the first one is a line of some words"), (20, 88, "- the second one is such a line too ")),
        "- the first one is a line of some words\n- the second one is such a line too",
    ),
    "a line that ends early": (
        drawn((20, 100, "Dear all of you there,"), (20, 88, "we thank you for the many letters of this long year")),
        "Dear all of you there,\nwe thank you for the many letters of this long year",
    ),
    "a line with a label below a full one": (
        drawn((20, 100, "The goods were delivered in good state"), (20, 88, "Net amount: 3067.41 EUR")),
        "The goods were delivered in good state\nNet amount: 3067.41 EUR",
    ),
    "dots that lead to a number": (
        drawn((20, 80, "Introduction " + ". " * 20 + "12")), "Introduction ... 12",
    ),
    "turned by a quarter": ("BT /F 10 Tf 0 1 -1 0 60 20 Tm (Up the side) Tj ET", "Up the side"),
    "turned by any angle": ("BT /F 10 Tf .7 .7 -.7 .7 20 20 Tm (Draft copy) Tj ET", "Draft copy"),
}  # fmt: skip


@pytest.mark.parametrize("name", PAGES)
def test_a_page_reads_as_it_looks(name: str) -> None:
    drawing, text = PAGES[name]
    assert read_pdf(drawn_pdf(drawing, size=(300, 200))) == f"[page 1 of 1]\n{text}\n"


def test_lines_from_right_to_left_are_read_so() -> None:
    words = [Word("עולם", 40, 0, 70, 10), Word("שלום", 73, 0, 100, 10)]
    assert list(lay_out(words)) == ["שלום עולם"]


def test_columns_of_prose_are_read_one_after_the_other() -> None:
    left, right = PROSE * 2, [word.upper() for word in PROSE * 2]
    page = drawn(
        (20, 190, "A heading over both columns of this page"), *column(20, 170, left), *column(220, 170, right)
    )
    text = read_pdf(drawn_pdf(page, size=(400, 200)))
    assert text.index(" ".join(left[-4:])) < text.index(" ".join(right[:4])), text
    assert "columns of this page" in text.splitlines()[1]


def test_a_page_that_was_turned_reads_as_it_is_shown() -> None:
    for turn, matrix in ((90, "0 1 -1 0 60 20"), (180, "-1 0 0 -1 190 60"), (270, "0 -1 1 0 60 90")):
        page = f"BT /F 10 Tf {matrix} Tm (left) Tj 60 0 Td (right) Tj -60 -20 Td (below) Tj ET"
        text = read_pdf(drawn_pdf(page, size=(200, 100), page=f"/Rotate {turn}"))
        assert [line.split() for line in text.splitlines()[1:]] == [["left", "right"], ["below"]], turn


def test_a_word_that_the_end_of_a_line_parted_is_whole() -> None:
    """PDFium marks such a hyphen; one before a capital belongs to the word."""
    lines = ("We discuss the wonderful imple-", "mentation of the Barnes-", "Jewish house and all that follows.")
    text = read_pdf(
        drawn_pdf(drawn(*((20.0, 150 - 12.0 * at, line) for at, line in enumerate(lines))), size=(200, 200))
    )
    assert "wonderful implementation of the Barnes-Jewish house" in text, text


FORM = (
    "<</Type/Annot/Subtype/Widget/FT/Tx/T(name)/V(Ann Lee)/Rect[10 10 90 30]>>",
    "<</Type/Annot/Subtype/Widget/FT/Btn/T(agree)/V/Yes/AS/Yes/Rect[10 40 20 50]/AP<</N<</Yes 9 0 R/Off 9 0 R>>>>>>",
    "<</Type/Annot/Subtype/Widget/FT/Tx/T(empty)/Rect[10 60 90 80]>>",
    "<</Fields[5 0 R 6 0 R 7 0 R]>>",
    "<</Type/XObject/Subtype/Form/BBox[0 0 10 10]/Length 0>>stream\n\nendstream",
)


def test_what_is_filled_in_stands_behind_the_text_of_its_page() -> None:
    data = drawn_pdf(drawn((20, 80, "Name:")), page="/Annots[5 0 R 6 0 R 7 0 R]", root="/AcroForm 8 0 R", more=FORM)
    assert read_pdf(data) == "[page 1 of 1]\nName:\n[form]\nname: Ann Lee\nagree: Yes\n"


def test_a_scan_with_a_stamp_is_said_to_be_a_picture() -> None:
    picture = "q 180 0 0 80 10 10 cm BI /W 1 /H 1 /CS /G /BPC 8 ID \x7f EI Q\n"
    assert read_pdf(drawn_pdf(picture)) == "[page 1 of 1]\n(no text: see it with read_media)\n"
    stamped = read_pdf(drawn_pdf(picture + drawn((20, 20, "RECEIVED"))))
    assert stamped == "[page 1 of 1, mostly a picture: see it with read_media]\nRECEIVED\n"


def test_pages_of_a_pdf_are_read_by_their_numbers(tmp_path: Path) -> None:
    fill(tmp_path, {"a.pdf": pdf("one", "two", "three"), "z.zip": zipped({"in.pdf": pdf("inside")})})
    assert read(tmp_path, "a.pdf!/2") == "[page 2 of 3]\ntwo\n"
    assert read(tmp_path, "a.pdf!/2-") == read(tmp_path, "a.pdf!/2-9") == "[page 2 of 3]\ntwo\n[page 3 of 3]\nthree\n"
    assert read(tmp_path, "z.zip!/in.pdf!/1") == "[page 1 of 1]\ninside\n"
    for path, answer in (("a.pdf!/4", "is not in the PDF, which has 3 pages"), ("a.pdf!/x", "write one as `!/3`")):
        with pytest.raises(NotFound, match=answer):
            read(tmp_path, path)


def test_a_long_document_is_cut_with_the_way_to_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf_reader, "_MAX_SECONDS", -1)
    with pytest.raises(OutOfTime, match=r"before page 1 of 2: the rest is `!/1-`"):
        read_pdf(pdf("one", "two"))
    monkeypatch.setattr(workbook_reader, "_MAX_SECONDS", -1)
    book = workbook(lambda book: [book.add_worksheet("S").write_column(0, 1, range(1500))])
    rows = list[str]()
    with pytest.raises(OutOfTime, match=r"at row 1,000 of S: the rest is `!/S!B1001:B1500`"):
        rows.extend(workbook_reader.Workbook(io.BytesIO(book)).text())


def test_pages_that_take_too_long_are_read_as_far_as_there_is_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 0.0, 9.0])
    monkeypatch.setattr(pdf_reader.time, "process_time", lambda: next(clock))
    part = pdf_reader.Pdf(io.BytesIO(pdf("one", "two", "three"))).part("2-")
    text = "".join(worker._read_in_time(part))  # pyright: ignore[reportPrivateUsage]
    assert text == "[page 2 of 3]\ntwo\n[cut after 4.5 s before page 3 of 3: the rest is `!/3-`]\n"


def test_a_phrase_over_the_end_of_a_line_is_found(tmp_path: Path) -> None:
    lines = (
        "The parties agree that either of them may terminate",
        "the contract with a notice of thirty calendar days",
    )
    fill(tmp_path, {"a.pdf": drawn_pdf(drawn((20, 90, lines[0]), (20, 78, lines[1])), size=(300, 100))})
    place = served(tmp_path).readable(".")
    answer = search_text([place], Query("may terminate the contract", literal=True), None, CancelToken()).text()
    assert flat(answer) == [f"a.pdf:2:{' '.join(lines)}"]


def workbook(write: Callable[[Any], object]) -> bytes:
    file = io.BytesIO()
    book: Any = xlsxwriter.Workbook(file, {"in_memory": True})
    write(book)
    book.close()
    return file.getvalue()


def fill_book(book: Any) -> None:
    sheet = book.add_worksheet("Sales 2026")
    sheet.write_row("B3", ["region", "total"])
    sheet.write_row("B4", ["north", 1234567890123456])
    sheet.write_formula("C5", "=1/0", None, "#DIV/0!")
    sheet.write_row("B9", ["south", 0.1])
    sheet.write("Z9", "far")
    sheet.write_formula("C10", "=SUM(C4:C9)", None, 7)
    sheet.write_comment("B4", "check this", {"author": "Ann"})
    hidden = book.add_worksheet("Notes")
    hidden.write("A1", "secret plan")
    hidden.hide()
    book.add_worksheet("Blank")


BOOK_TEXT = """\
[sheet Sales 2026, B3:Z10, 2 with formulas (`!/formulas/Sales 2026`)]
region\ttotal
north\t1234567890123456
\t#DIV/0!
[row 9]
south\t0.1\t[Z9] far
\t7
[comment B4] Ann: check this
[sheet Notes, A1:A1, hidden]
secret plan
[sheet Blank, empty]
"""
PARTS = {
    "Sales 2026!B3:C4": "[sheet Sales 2026, B3:C4]\nregion\ttotal\nnorth\t1234567890123456\n"
    "[comment B4] Ann: check this\n",
    "sales 2026!$C$9:$C$10": "[sheet Sales 2026, C9:C10, 1 with formulas (`!/formulas/Sales 2026`)]\n0.1\n7\n",
    "'Sales 2026'!Z9": "[sheet Sales 2026, Z9:Z9]\nfar\n",
    "Sales 2026!C:C": "[sheet Sales 2026, C3:C10, 2 with formulas (`!/formulas/Sales 2026`)]\ntotal\n1234567890123456\n"
    "#DIV/0!\n[row 9]\n0.1\n7\n",
    "Sales 2026!9:9": "[sheet Sales 2026, B9:Z9]\nsouth\t0.1\t[Z9] far\n",
    "Sales 2026!F20:G30": "[sheet Sales 2026, empty]\n",
    "notes": "[sheet Notes, A1:A1, hidden]\nsecret plan\n",
    "formulas/Sales 2026": "[formulas of Sales 2026]\nC5\t=1/0\nC10\t=SUM(C4:C9)\n",
}


def test_a_reader_of_a_workbook_can_tell_every_place(tmp_path: Path) -> None:
    fill(tmp_path, {"b.xlsx": workbook(fill_book)})
    assert read(tmp_path, "b.xlsx") == BOOK_TEXT
    for name, text in PARTS.items():
        assert read(tmp_path, f"b.xlsx!/{name}") == text, name
    assert "[formulas of Notes]\n" in read(tmp_path, "b.xlsx!/formulas")
    assert "<worksheet" in read(tmp_path, "b.xlsx!/xl/worksheets/sheet1.xml")
    for path, answer in (
        ("b.xlsx!/Nope", "whose sheets are Sales 2026, Notes, Blank"),
        ("b.xlsx!/Notes!12A", "has no range `12A:12A`: write it as `A1:D20`"),
    ):
        with pytest.raises(NotFound, match=answer):
            read(tmp_path, path)
    place = served(tmp_path).readable(".")
    for pattern in ("#DIV/0!", "1234567890123456"):
        assert "1 match" in search_text([place], Query(pattern, literal=True), None, CancelToken()).text()


def test_formulas_without_a_value_are_shown_and_counted(tmp_path: Path) -> None:
    """Programs that write workbooks without counting them leave their values out."""
    sheet = (
        '<worksheet><sheetData><row r="2"><c r="B2"><v>4</v></c><c r="C2"><f>B2*2</f></c></row>'
        '<row><c><f t="shared" si="0">A1</f></c></row><row><c><f t="shared" si="0"/><v>1</v></c></row>'
        "</sheetData></worksheet>"
    )
    books = workbook(lambda book: book.add_worksheet("S"))
    fill(tmp_path, {"b.xlsx": _with_member(books, "xl/worksheets/sheet1.xml", sheet)})
    assert read(tmp_path, "b.xlsx").splitlines() == [
        "[sheet S, A2:C4, 3 with formulas (`!/formulas/S`), 2 of them without a stored value]",
        "\t4\t=B2*2",
        "=A1",
        "1",
    ]
    assert read(tmp_path, "b.xlsx!/formulas/S").splitlines()[-1] == "A4\t= as A3, moved here"


def _with_member(archive: bytes, name: str, content: str) -> bytes:
    with zipfile.ZipFile(io.BytesIO(archive)) as old:
        return zipped({member: old.read(member) for member in old.namelist()} | {name: content.encode()})


@pytest.mark.parametrize("seed", range(3))
def test_every_cell_is_where_it_was_written(seed: int, tmp_path: Path) -> None:
    """Wherever cells are, in sheets with gaps of all sizes, a reader finds them by what the text says."""
    rng = random.Random(seed)
    sheets = {
        f"S{number}": {
            (rng.choice([0, 1, 2, 9, 400]) + rng.randrange(9), rng.choice([0, 1, 30, 700]) + rng.randrange(9)): f"v{at}"
            for at in range(rng.choice([1, 5, 60]))
        }
        for number in range(4)
    }

    def write(book: Any) -> None:
        for name, cells in sheets.items():
            sheet = book.add_worksheet(name)
            for (row, column_number), text in cells.items():
                sheet.write(row, column_number, text)

    fill(tmp_path, {"b.xlsx": workbook(write)})
    expected = {
        name: {xl_rowcol_to_cell(*place): text for place, text in cells.items()} for name, cells in sheets.items()
    }
    assert cells_of(read(tmp_path, "b.xlsx")) == expected


@pytest.mark.parametrize("name", ["b.xls", "b.xlsb", "archive-in-it.xls"])
def test_binary_workbooks_are_read_with_their_errors(tmp_path: Path, name: str) -> None:
    numbers = {(0, 0): 3.0, (0, 2): 2.5, (4, 1): -7.0}
    books = {
        "b.xls": xls(numbers),
        "b.xlsb": xlsb(numbers),
        "archive-in-it.xls": xls(numbers, more={"Package": zipped({"a.txt": "A"})}),
    }
    fill(tmp_path, {name: books[name]})
    (cells,) = cells_of(read(tmp_path, name)).values()
    assert cells == {"A1": "3", "C1": "2.5", "B5": "-7", "B6": "#N/A", "B7": "#DIV/0!"}


def test_sheets_of_a_damaged_workbook_that_begin_at_one_place_are_not_each_read_to_the_end() -> None:
    sheets = struct.pack("<HHI", 0x85, 4, 0) * 1000
    cells = struct.pack("<HHHHHBB", 0x205, 8, 1, 1, 0, 0x2A, 1) * 1000
    read: list[int] = []
    book = _CountedBytes(sheets + cells)
    book.read = read
    assert len(read_old_errors(book)) == 1000
    # Once for the list of sheets, once for all of these together.
    assert len(read) < 3 * 2000


class _CountedBytes(bytes):
    """Records that tell how often one of them is looked at."""

    read: list[int]

    def __getitem__(self, key: Any) -> Any:
        self.read.append(key.start)
        return super().__getitem__(key)


def test_errors_of_a_binary_workbook_stand_in_their_own_sheet(tmp_path: Path) -> None:
    """Not in the one whose place in the workbook is the number of the part."""
    fill(tmp_path, {"b.xlsb": xlsb_with_chart({(0, 0): 1.0}, {(0, 0): 2.0, (1, 0): 3.0, (2, 0): 4.0})})
    sheets = cells_of(read(tmp_path, "b.xlsb"))
    assert sheets["First"] == {"A1": "1", "A2": "#N/A", "A3": "#DIV/0!"}
    assert sheets["Second"] == {"A1": "2", "A2": "3", "A3": "4", "A4": "#N/A", "A5": "#DIV/0!"}
    assert "[sheet Chart, " in read(tmp_path, "b.xlsb")


def test_a_workbook_of_before_2007_that_is_locked_is_called_so(tmp_path: Path) -> None:
    fill(tmp_path, {"b.xls": xls({(0, 0): 3.0}, is_encrypted=True)})
    with pytest.raises(Invalid, match="is locked by a password"):
        read(tmp_path, "b.xls")


def test_a_library_that_gives_up_is_no_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As calamine does with some workbooks: its panics are no `Exception`."""
    panic = type("PanicException", (BaseException,), {})

    def open_book(file: object) -> None:
        raise panic("no entry found for key")

    monkeypatch.setattr(python_calamine.CalamineWorkbook, "from_filelike", open_book)
    with pytest.raises(archives.Unreadable, match="not read: no entry found"):
        workbook_reader.Workbook(io.BytesIO(workbook(lambda book: book.add_worksheet("S"))))


def test_a_workbook_that_is_damaged_inside_is_refused(tmp_path: Path) -> None:
    book = workbook(lambda book: book.add_worksheet("S").write_formula(0, 0, "=1", None, 1))
    fill(tmp_path, {"b.xlsx": _with_member(book, "xl/worksheets/sheet1.xml", "<worksheet><c><f>1</f>")})
    with pytest.raises(Invalid, match="is damaged"):
        read(tmp_path, "b.xlsx")


def test_an_old_workbook_that_is_damaged_is_refused_and_mends_nothing() -> None:
    whole = xls({(0, 0): 3.0}, text="Old", code_page=1252, number_format=(50, "000"))
    chooser = random.Random(7)
    for _ in range(60):
        damaged = bytearray(whole[: chooser.randrange(512, len(whole))])
        for _ in range(20):
            damaged[chooser.randrange(len(damaged))] = chooser.randrange(256)
        try:
            text = "".join(workbook_reader.Workbook(io.BytesIO(bytes(damaged))).text())
        except archives.Unreadable:
            continue
        assert text.startswith("[sheet ")
