"""Databases, Parquet tables, mails of Outlook and RTF are read as text: never as characters of base64."""

from __future__ import annotations

import io
import sqlite3
import struct
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import odfdo
import pytest
from compressed_rtf import compress

from filesystem.compound_file import Tree, compound_file
from filesystem.documents import zipped
from filesystem.reading import served
from filesystem.test_replace import call
from mcp_batteries.sql.transfer.parquet import ColumnKind, write_rows
from mcp_fs.engine.documents.formats.mails import messages
from mcp_fs.engine.documents.formats.tables import databases
from mcp_fs.engine.reading.media import read_media

pytestmark = pytest.mark.anyio


async def read(folder: Path, path: str, **arguments: object) -> str:
    failed, said = await call(folder, "read_text", path=path, **arguments)
    assert not failed, said
    return said


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as database:
        database.executescript(
            "CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, photo BLOB);"
            "CREATE TABLE unused (a); CREATE VIEW names AS SELECT name FROM customers;"
            "CREATE VIRTUAL TABLE words USING fts5(word);"
        )
        rows = [(f"name\t{number}\n", None if number % 2 else b"12345") for number in range(1234)]
        database.executemany("INSERT INTO customers (name, photo) VALUES (?, ?)", rows)
        database.commit()
    return tmp_path


async def test_a_database_reads_as_its_tables_with_their_first_rows(shop: Path) -> None:
    said = await read(shop, "shop.db")
    head, *lines = said.split("\n")
    assert "tables of a SQLite database" in head
    assert lines[:5] == [
        "CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, photo BLOB);",
        "[customers: rows 1-10 of 1,234]",
        "id\tname\tphoto",
        "1\tname 0\t<5 bytes>",
        "2\tname 1\tNULL",
    ]
    assert "[unused: no rows]" in lines and "CREATE VIEW names AS SELECT name FROM customers;" in lines
    # What reads a virtual table is no part of SQLite's file format.
    assert "CREATE VIRTUAL TABLE words USING fts5(word);" in lines and not any("[words:" in line for line in lines)


async def test_a_database_is_told_from_its_bytes_and_not_searched_by_its_first_rows(shop: Path) -> None:
    (shop / "shop.db").rename(shop / "state")
    assert "[customers: rows 1-10 of 1,234]" in await read(shop, "state")
    failed, said = await call(shop, "read_media", path="state")
    assert not failed and "its text: `read_text`" in said
    failed, said = await call(shop, "search_text", pattern="name 1$", path="state")
    assert not failed and "binary, not searched" in said


async def test_a_database_with_a_log_says_what_it_lacks(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "wal.db")) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE t (a)")
        database.execute("INSERT INTO t VALUES (1)")
        database.commit()
        database.execute("PRAGMA wal_checkpoint")
        database.execute("INSERT INTO t VALUES (2)")
        database.commit()
        said = await read(tmp_path, "wal.db")
    assert "[without what its write-ahead log may hold]" in said and "[t: rows 1-1 of 1]" in said


async def test_of_a_large_database_the_beginning_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(sqlite3.connect(tmp_path / "large.db")) as database:
        database.execute("CREATE TABLE early (a)")
        database.execute("INSERT INTO early VALUES (7)")
        database.execute("CREATE TABLE late (a)")
        database.executemany("INSERT INTO late VALUES (?)", [("x" * 3000,)] * 100)
        database.commit()
    monkeypatch.setattr(databases, "_MAX_DATABASE_BYTES", 40_960)
    with (tmp_path / "large.db").open("rb") as file:
        said = "".join(databases.read_sqlite(file))
    assert said.startswith("[of the first 40,960 bytes of the database; mcp-sqlite reads all of it]\n")
    assert "[early: rows 1-1 of 1]\na\n7\n" in said and "[late: its rows can't be read, they lie behind" in said


@pytest.mark.parametrize("size", [0, 90, 100, 3000, 5000])
async def test_a_damaged_database_fails_as_a_document_does(shop: Path, size: int) -> None:
    data = (shop / "shop.db").read_bytes()
    (shop / "shop.db").write_bytes(data[:size] + b"\x55" * 5000)
    failed, said = await call(shop, "read_text", path="shop.db")
    assert not failed or "`read_media`" in said, said


async def test_a_database_that_ends_in_its_header_is_said_to_be_none(shop: Path) -> None:
    (shop / "shop.db").write_bytes((shop / "shop.db").read_bytes()[:16])
    failed, said = await call(shop, "read_text", path="shop.db")
    assert failed and "file is not a database" in said, said


async def test_a_parquet_file_reads_as_its_columns_and_first_rows(tmp_path: Path) -> None:
    kinds = [ColumnKind.INTEGER, ColumnKind.TEXT]
    with (tmp_path / "t.parquet").open("wb") as file:
        write_rows(file, ["id", "name"], kinds, [(number, f"n{number}") for number in range(3000)], 10**9)
    with (tmp_path / "few.parquet").open("wb") as file:
        write_rows(file, ["id", "name"], kinds, [(1, None)], 10**9)
    head, *lines = (await read(tmp_path, "t.parquet")).split("\n")
    assert "columns of a Parquet table" in head
    assert (
        lines[:5] == ["id\tInt64", "name\tUtf8", "[rows 1-10, more follow]", "id\tname", "0\tn0"] and len(lines) == 14
    )
    assert (await read(tmp_path, "few.parquet")).endswith("[rows 1-1 of 1]\nid\tname\n1\tNULL")
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "t.parquet").read_bytes()[:-9])
    failed, said = await call(tmp_path, "read_text", path="cut.parquet")
    assert failed and "not whole" in said and "`read_media`" in said


def text(number: int, value: str) -> tuple[str, bytes]:
    return f"__substg1.0_{number:04X}001F", value.encode("utf-16-le")


def fixed(*properties: tuple[int, int, int], header: int) -> bytes:
    entries = [struct.pack("<HHIQ", kind, number, 0, value) for number, kind, value in properties]
    return b"\0" * header + b"".join(entries)


SENT = (
    int((datetime(2026, 11, 28, 12, 30, tzinfo=UTC) - datetime(1601, 1, 1, tzinfo=UTC)) / timedelta(microseconds=1))
    * 10
)
HEADERS: Tree = dict(
    [
        text(0x0C1A, "Ada Löve"),
        text(0x5D01, "ada@example.org"),
        text(0x0E04, "Bo"),
        text(0x0037, "Figures"),
        ("__properties_version1.0", fixed((0x0039, 0x40, SENT), header=32)),
    ]
)  # fmt: skip
ATTACHED = b"a,b\n" * 2000


async def test_a_mail_of_outlook_is_read_with_what_is_attached(tmp_path: Path) -> None:
    inner: Tree = dict([text(0x0037, "Inner"), text(0x1000, "deep words"), ("__properties_version1.0", b"\0")])
    mail: Tree = {
        **HEADERS,
        **dict([text(0x1000, "Dear Bo,\r\nsee the figures.\r\n")]),
        "__attach_version1.0_#00000000": dict([text(0x3707, "..\\up/figures.csv"), ("__substg1.0_37010102", ATTACHED)]),
        "__attach_version1.0_#00000001": dict([text(0x3001, "Inner"), ("__substg1.0_3701000D", inner)]),
    }
    (tmp_path / "m.msg").write_bytes(compound_file(mail))
    _, *lines = (await read(tmp_path, "m.msg")).split("\n")
    assert lines[:9] == [
        "From: Ada Löve <ada@example.org>",
        "To: Bo",
        "Date: 2026-11-28 12:30:00 UTC",
        "Subject: Figures",
        "",
        "Dear Bo,",
        "see the figures.",
        "",
        "[attached]",
    ]
    assert lines[9] == "figures.csv\t8,000" and lines[10].startswith("Inner.txt\t")
    assert (await read(tmp_path, "m.msg!/figures.csv", head=1)).endswith("a,b")
    assert "deep words" in await read(tmp_path, "m.msg!/Inner.txt")
    failed, said = await call(tmp_path, "search_text", pattern="the figures")
    assert not failed and "m.msg:7:see the figures." in said


@pytest.mark.parametrize(
    ("encoding", "pages"), [("cp950", [(0x3FDE, 950)]), ("cp1251", [(0x3FFD, 1251), (0x3FDE, 20127)]), ("cp1252", [])]
)
async def test_a_mail_of_another_code_page_is_read_in_it(
    tmp_path: Path, encoding: str, pages: list[tuple[int, int]]
) -> None:
    body = {"cp950": "測試 (Wan)", "cp1251": "Привет", "cp1252": "Größe"}[encoding]
    numbers = [(number, 0x03, page) for number, page in pages]
    mail: Tree = {"__substg1.0_1000001E": body.encode(encoding), "__properties_version1.0": fixed(*numbers, header=32)}
    (tmp_path / "m.msg").write_bytes(compound_file(mail))
    assert (await read(tmp_path, "m.msg")).endswith(body)


async def test_an_open_document_says_where_its_links_lead(tmp_path: Path) -> None:
    document: Any = odfdo.Document("text")
    document.body.clear()
    for text, address in (
        ("the report", "https://example.org/r"),
        ("up", "#top"),
        ("example.org", "https://example.org"),
    ):
        paragraph = odfdo.Paragraph("See ")
        paragraph.append(odfdo.Link(address, text=text))
        document.body.append(paragraph)
    document.save(str(tmp_path / "a.odt"))
    lines = (await read(tmp_path, "a.odt")).split("\n")[1:]
    assert lines == ["See the report <https://example.org/r>", "See up", "See example.org <https://example.org>"]


@pytest.mark.parametrize(
    "body",
    [
        {"__substg1.0_10130102": "<p>Größe <b>42</b></p>".encode("cp1252")},
        {"__substg1.0_10090102": compress(b"{\\rtf1\\ansi Gr\\'f6\\'dfe {\\b 42}\\par}")},
        {"__substg1.0_1000001E": "Größe 42".encode("cp1252")},
    ],
)
async def test_a_mail_without_plain_text_is_read_by_its_page_or_its_rtf(tmp_path: Path, body: Tree) -> None:
    (tmp_path / "m.msg").write_bytes(compound_file({**HEADERS, **body}))
    assert (await read(tmp_path, "m.msg")).endswith("Subject: Figures\n\nGröße 42")


async def test_what_only_has_the_name_of_a_mail_is_said_to_be_none(tmp_path: Path) -> None:
    (tmp_path / "m.msg").write_bytes(compound_file({"Workbook": b"x"}))
    failed, said = await call(tmp_path, "read_text", path="m.msg")
    assert failed and "is no mail of Outlook" in said


async def test_rich_text_is_read_without_its_marks_and_kept_from_edits_of_them(tmp_path: Path) -> None:
    source = r"{\rtf1\ansi{\fonttbl{\f0 Calibri;}}Gr\'fc\'dfe \u-10179?\u-8704? end\par Second {\b bold} line\par}"
    (tmp_path / "a.rtf").write_text(source)
    assert (await read(tmp_path, "a.rtf")).endswith(
        "`a.rtf!/source.txt`]\nGrüße \N{GRINNING FACE} end\nSecond bold line"
    )
    assert (await read(tmp_path, "a.rtf!/source.txt")).endswith(source)
    failed, said = await call(tmp_path, "edit_file", path="a.rtf", old_text="bold", new_text="thin")
    assert failed and "`a.rtf!/source.txt`" in said
    failed, said = await call(
        tmp_path, "write_file", path="a.rtf", content=source.replace("bold", "thin"), overwrite=True
    )
    assert not failed and "thin" in await read(tmp_path, "a.rtf")


def test_the_page_of_a_mail_is_not_read_beside_a_text_that_says_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page takes twenty times as long, and a search reads thousands of mails."""
    monkeypatch.delattr(messages, "read_html")
    parts = "--B\nContent-Type: text/html\n\n<p>page\n--B\nContent-Type: text/plain\n\ntext\n--B--\n"
    mail = f"Content-Type: multipart/alternative; boundary=B\n\n{parts}"
    assert "".join(messages.Mail(io.BytesIO(mail.encode())).text()).strip() == "text"


async def test_numbers_of_lists_in_rich_text_are_kept_and_only_raised_digits_are_raised(tmp_path: Path) -> None:
    items = r"{\listtext\f0 1.\tab}one\par {\pntext\f0 2.\tab}two\par "
    powers = r"10{\super\b 6}, 10{\super\nosupersub 7}, 10{\super\plain 8}, 10{\super\super 9}\par"
    (tmp_path / "a.rtf").write_text(r"{\rtf1\ansi" + items + powers + "}")
    assert (await read(tmp_path, "a.rtf")).endswith("\n1.\tone\n2.\ttwo\n10⁶, 107, 108, 10⁹")


async def test_rich_text_of_many_raised_and_unended_parts_is_read_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.rtf").write_text(r"{\rtf1 " + r"\super" * 100_000 + r"\u-8190?" * 20_000 + "}")
    assert "\ue002" in await read(tmp_path, "a.rtf")


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("<table:table table:name='S'><table:table-row>{cell}</table:table-row></table:table>", "[S]\nx^2 | B1"),
        ("<draw:page draw:name='1'>{frame}</draw:page><draw:page draw:name='2'/>", "[1]\nx^2\n[2]"),
    ],
)
async def test_a_formula_is_in_the_cell_or_slide_that_has_it(tmp_path: Path, body: str, lines: str) -> None:
    frame = "<draw:frame><draw:object xlink:href='./Object 1'/></draw:frame>"
    cell = f"<table:table-cell>{frame}</table:table-cell><table:table-cell><text:p>B1</text:p></table:table-cell>"
    names = "".join(f" xmlns:{name}='{name}'" for name in ("office", "table", "text", "draw", "xlink"))
    content = f"<office:content{names}>{body.format(cell=cell, frame=frame)}</office:content>"
    formula = "<math xmlns='math'><msup><mi>x</mi><mn>2</mn></msup></math>"
    (tmp_path / "a.odp").write_bytes(zipped({"content.xml": content, "Object 1/content.xml": formula}))
    assert lines in await read(tmp_path, "a.odp")


async def test_a_formula_of_a_page_ends_with_its_cell_and_keeps_what_its_table_says(tmp_path: Path) -> None:
    table = "<mtable><mtr><mtd><mtext>R&amp;D</mtext></mtd></mtr></mtable>"
    row = "<tr><td><math><mi>x</mi></td><td>5</td></tr>"
    page = f"<table>{row}</table><p><math>{table}</math></p>"
    (tmp_path / "a.eml").write_text(f"Content-Type: text/html\n\n{page}")
    assert (await read(tmp_path, "a.eml")).endswith("x\t5\nR&D")


@pytest.mark.parametrize("page", [None, 1, 2])
async def test_who_asks_for_a_page_of_a_pdf_gets_no_base64(tmp_path: Path, page: int | None) -> None:
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.7\n" + bytes(20_000))
    (shown,) = read_media(served(tmp_path).readable("a.pdf"), page)
    assert shown.kind == "text" and shown.data == b"" and "its bytes are the resource" in shown.note
