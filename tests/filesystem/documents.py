"""Documents with known words in them, each made by a library that the server does not use."""

from __future__ import annotations

import email.message
import email.policy
import io
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

import docx
import odfdo
import pptx
import xlsxwriter

__all__ = ["MAKERS", "drawn_pdf", "pdf", "zipped"]


def _docx(words: Sequence[str]) -> bytes:
    document: Any = docx.Document()
    document.add_heading(words[0], 1)
    document.add_paragraph(f"{words[1]}\tafter a tab")
    document.add_paragraph("an item", style="List Bullet")
    table = document.add_table(rows=1, cols=2)
    table.rows[0].cells[0].text, table.rows[0].cells[1].text = words[2], words[3]
    document.sections[0].footer.paragraphs[0].text = words[4]
    return _saved(document.save)


def _pptx(words: Sequence[str]) -> bytes:
    show: Any = pptx.Presentation()
    for number, word in enumerate(words):
        slide = show.slides.add_slide(show.slide_layouts[5])
        slide.shapes.title.text = word
        slide.notes_slide.notes_text_frame.text = f"note {number}"
    return _saved(show.save)


def _xlsx(words: Sequence[str]) -> bytes:
    file = io.BytesIO()
    book: Any = xlsxwriter.Workbook(file, {"in_memory": True})
    first = book.add_worksheet("First")
    first.write_row(0, 0, [words[0], 3, 2.5, True])
    first.write_datetime(0, 4, datetime(2026, 1, 2, 3, 4), book.add_format({"num_format": "yyyy-mm-dd hh:mm"}))
    first.write(1, 1, words[1])
    book.add_worksheet("Second").write_row(0, 0, words[2:])
    book.close()
    return file.getvalue()


def _odt(words: Sequence[str]) -> bytes:
    document: Any = odfdo.Document("text")
    document.body.clear()
    document.body.append(odfdo.Header(2, words[0]))
    for word in words[1:4]:
        document.body.append(odfdo.Paragraph(word))
    paragraph = odfdo.Paragraph("before ")
    paragraph.append(odfdo.Span(words[4]))
    document.body.append(paragraph)
    return _saved(document.save)


def _ods(words: Sequence[str]) -> bytes:
    document: Any = odfdo.Document("spreadsheet")
    document.body.clear()
    table: Any = odfdo.Table("Sheet")
    table.set_row_values(0, list(words))
    document.body.append(table)
    return _saved(document.save)


def _epub(words: Sequence[str]) -> bytes:
    pages = [f"<html><head><title>t</title></head><body><h1>{word}</h1><p>&nbsp;x</p></body></html>" for word in words]
    items = "".join(f'<item id="i{n}" href="p%20{n}.xhtml"/>' for n in range(len(pages)))
    order = "".join(f'<itemref idref="i{n}"/>' for n in range(len(pages)))
    members = {
        "META-INF/container.xml": '<container><rootfiles><rootfile full-path="OPS/b.opf"/></rootfiles></container>',
        "OPS/b.opf": f"<package><manifest>{items}</manifest><spine>{order}</spine></package>",
        **{f"OPS/p {n}.xhtml": page for n, page in enumerate(pages)},
    }
    return zipped(members)


def _eml(words: Sequence[str]) -> bytes:
    message = email.message.EmailMessage(email.policy.SMTP)
    message["From"], message["To"], message["Subject"] = "a@example.org", "b@example.org", words[0]
    message.set_content("\n".join(words[1:]))
    message.add_alternative(f"<p>{words[1]}</p>", subtype="html")
    message.add_attachment(b"attached bytes", "application", "octet-stream", filename="notes.txt")
    return message.as_bytes()


def _ipynb(words: Sequence[str]) -> bytes:
    outputs: list[Any] = [
        {"output_type": "stream", "name": "stdout", "text": [words[2] + "\n"]},
        {"output_type": "display_data", "data": {"image/png": "iVBORw0KGgo" * 1000, "text/plain": [words[3]]}},
        {"output_type": "error", "ename": "E", "evalue": "v", "traceback": [f"\x1b[31m{words[4]}\x1b[0m"]},
    ]
    cells: list[Any] = [
        {"cell_type": "markdown", "metadata": {}, "source": [words[0]]},
        {"cell_type": "code", "metadata": {}, "execution_count": 1, "source": words[1], "outputs": outputs},
    ]
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}).encode()


def pdf(*pages: str, size: tuple[int, int] = (200, 100)) -> bytes:
    """A PDF with one line of text on each page, none for an empty string."""
    return drawn_pdf(
        *(f"BT /F 24 Tf 20 50 Td ({text}) Tj ET" if text else "0 0 50 50 re f" for text in pages), size=size
    )


def drawn_pdf(
    *pages: str, size: tuple[int, int] = (200, 100), page: str = "", root: str = "", more: Sequence[str] = ()
) -> bytes:
    """A PDF of which each page is drawn by the operators that are given; `/F` is a font there.

    Args:
        page: further entries of each page.
        root: further entries of the document.
        more: further objects; the number of the first is three more than twice the pages.
    """
    kids = " ".join(f"{3 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [f"<</Type/Catalog/Pages 2 0 R{root}>>", f"<</Type/Pages/Kids[{kids}]/Count {len(pages)}>>"]
    for number, stream in enumerate(pages):
        font = "<</Font<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>"
        box = f"/MediaBox[0 0 {size[0]} {size[1]}]"
        objects.append(f"<</Type/Page/Parent 2 0 R{box}{page}/Resources{font}/Contents {4 + 2 * number} 0 R>>")
        objects.append(f"<</Length {len(stream)}>>stream\n{stream}\nendstream")
    objects += more
    body, places = "%PDF-1.4\n", list[int]()
    for number, item in enumerate(objects, 1):
        places.append(len(body))
        body += f"{number} 0 obj{item}endobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    return (
        f"{body}xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
        f"trailer<</Size {len(objects) + 1}/Root 1 0 R>>\nstartxref\n{len(body)}\n%%EOF"
    ).encode()


def zipped(members: Mapping[str, str | bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def _saved(save: Callable[[Any], object]) -> bytes:
    file = io.BytesIO()
    save(cast("Any", file))
    return file.getvalue()


MAKERS: dict[str, Callable[[Sequence[str]], bytes]] = {
    "docx": _docx, "pptx": _pptx, "xlsx": _xlsx, "odt": _odt, "ods": _ods, "epub": _epub, "eml": _eml, "ipynb": _ipynb,
    "pdf": lambda words: pdf(*words),
}  # fmt: skip
"""By suffix: five words to a document that holds them in different places."""
