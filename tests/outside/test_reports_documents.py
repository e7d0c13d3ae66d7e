"""What users reported of other readers of documents, tried on mcp-fs with documents of our own."""

import base64
import io
import json
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter
from mcp import Client

from filesystem.binary_workbooks import xls
from filesystem.documents import drawn_pdf, zipped
from mcp_fs.server import build
from mcp_fs.settings import Settings

pytestmark = pytest.mark.anyio

OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
OPEN_DOCUMENT = " ".join(
    f'xmlns:{name}="urn:{name}"' for name in ("office", "text", "table", "dc", "style", "draw", "presentation", "fo")
)


async def read(folder: Path, path: str) -> list[str]:
    """Return the lines of a document, without the first line of the answer."""
    async with Client(build(Settings(folders=(str(folder),)))) as client:
        result = await client.call_tool("read_text", {"path": path, "max_bytes": 100_000})
    text = "".join(getattr(block, "text", "") for block in result.content)
    if result.is_error:
        return ["ERROR", text]
    return text.splitlines()[1:]


def relations(*targets: tuple[str, str, str]) -> str:
    """Return the part that names others, each by its id, the end of its type and its path."""
    items = "".join(f'<Relationship Id="{id_}" Type="{OFFICE}/{kind}" Target="{path}"/>' for id_, kind, path in targets)
    return f"<Relationships>{items}</Relationships>"


def write_word(path: Path, body: str, more: Mapping[str, str] | None = None) -> None:
    path.write_bytes(zipped({"word/document.xml": f"<document>{body}</document>", **(more or {})}))


def write_slides(path: Path, slide: str, more: Mapping[str, str]) -> None:
    parts = {
        "ppt/presentation.xml": f'<presentation xmlns:r="{OFFICE}"><sldId r:id="r1"/></presentation>',
        "ppt/_rels/presentation.xml.rels": relations(("r1", "slide", "slides/slide1.xml")),
        "ppt/slides/slide1.xml": slide,
    }
    path.write_bytes(zipped({**parts, **more}))


def write_open_document(
    path: Path, kind: str, body: str, styles: str = "", more: Mapping[str, str] | None = None
) -> None:
    content = (
        f"<office:document-content {OPEN_DOCUMENT}><office:automatic-styles>{styles}</office:automatic-styles>"
        f"<office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>"
    )
    path.write_bytes(zipped({"content.xml": content, **(more or {})}))


def write_sheet(path: Path, rows: str, styles: str = "", shared: str = "", sheet: str = "") -> None:
    names = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    types = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"
    package = 'xmlns="http://schemas.openxmlformats.org/package/2006/'
    parts = {
        "[Content_Types].xml": f'<Types {package}content-types">'
        f'<Override PartName="/xl/workbook.xml" ContentType="{types}"/></Types>',
        "_rels/.rels": relations(("a", "officeDocument", "xl/workbook.xml")),
        "xl/workbook.xml": f'<workbook {names} xmlns:r="{OFFICE}">{sheet}'
        '<sheets><sheet name="S" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": relations(
            ("r1", "worksheet", "worksheets/sheet1.xml"),
            ("r2", "styles", "styles.xml"),
            ("r3", "sharedStrings", "sharedStrings.xml"),
        ),
        "xl/worksheets/sheet1.xml": f"<worksheet {names}><sheetData>{rows}</sheetData></worksheet>",
        "xl/styles.xml": f"<styleSheet {names}>{styles}</styleSheet>",
        "xl/sharedStrings.xml": f"<sst {names}>{shared}</sst>",
    }
    for name, part in parts.items():
        if name.endswith(".rels"):
            parts[name] = part.replace("<Relationships>", f'<Relationships {package}relationships">')
    path.write_bytes(zipped(parts))


def write_book(path: Path, pages: Mapping[str, bytes], more: Mapping[str, str] | None = None, order: str = "") -> None:
    items = "".join(f'<item id="{name}" href="{name}"/>' for name in pages)
    places = "".join(f'<itemref idref="{name}"/>' for name in order.split() or pages)
    parts: dict[str, str | bytes] = {
        "META-INF/container.xml": '<container><rootfile full-path="O/b.opf"/></container>',
        "O/b.opf": f"<package><manifest>{items}<item id='lost' href='lost.xhtml'/></manifest>{places}</package>",
        **{f"O/{name}": page for name, page in pages.items()},
        **(more or {}),
    }
    path.write_bytes(zipped(parts))


def run(text: str, properties: str = "") -> str:
    return f"<r><rPr>{properties}</rPr><t>{text}</t></r>"


RAISED = '<vertAlign val="superscript"/>'


@pytest.mark.reported("lfoppiano/grobid-quantities#38")
@pytest.mark.reported("datalab-to/marker#274")
@pytest.mark.reported("yihui/knitr#854")
async def test_what_is_raised_is_no_digit_of_the_number_before_it(tmp_path: Path) -> None:
    write_word(
        tmp_path / "a.docx",
        f"<p>{run('Revenue 1,234')}{run('2', RAISED)}{run(' and 10')}{run('-6', RAISED)}{run(' m')}{run('2', RAISED)}"
        f"{run(' 5')}{run('2,3', RAISED)}{run(' the 4')}{run('th', RAISED)}</p>",
    )
    runs = "".join(
        f'<r><rPr baseline="{shift}"/><t>{text}</t></r>' for shift, text in ((0, 99), (30000, 1), (-25000, 2))
    )
    write_slides(tmp_path / "a.pptx", f"<sld><p>{runs}</p></sld>", {})
    styles = (
        '<style:style style:name="T1"><style:text-properties fo:x="" style:text-position="super 58%"/></style:style>'
        '<style:style style:name="T2"><style:text-properties style:text-position="sub 58%"/></style:style>'
    )
    spans = '10<text:span text:style-name="T1">6</text:span> or 5<text:span text:style-name="T2">7</text:span>'
    write_open_document(tmp_path / "a.odt", "text", f"<text:p>{spans}</text:p>", styles)
    write_book(tmp_path / "a.epub", {"a.xhtml": b"<p>10<sup>6</sup> of H<sup>2</sup></p>"})
    line = "BT /F 12 Tf 20 50 Td (1,234) Tj 4 Ts /F 7 Tf (2) Tj 0 Ts /F 12 Tf ( 10) Tj 4 Ts /F 7 Tf (-6) Tj ET"
    (tmp_path / "a.pdf").write_bytes(drawn_pdf(line))
    shared = f"<si><r><t>1,234</t></r><r><rPr>{RAISED}</rPr><t>2</t></r></si>"
    inline = f"<is><r><t>10</t></r><r><rPr>{RAISED}</rPr><t>6</t></r></is>"
    cells = f'<c r="A1" t="s"><v>0</v></c><c r="B1" t="inlineStr">{inline}</c>'
    write_sheet(tmp_path / "a.xlsx", f'<row r="1">{cells}</row>', shared=shared)
    assert await read(tmp_path, "a.docx") == ["Revenue 1,234² and 10⁻⁶ m2 5^2,3 the 4th"]
    assert await read(tmp_path, "a.pptx") == ["[slide 1]", "99¹2"]
    assert await read(tmp_path, "a.odt") == ["10⁶ or 57"]
    assert await read(tmp_path, "a.epub") == ["10⁶ of H2", ""]
    assert await read(tmp_path, "a.pdf") == ["[page 1 of 1]", "1,234² 10⁻⁶"]
    assert (await read(tmp_path, "a.xlsx"))[1] == "1,234²\t10⁶"


@pytest.mark.reported("joshy/striprtf#63")
@pytest.mark.reported("erdomke/RtfPipe#82")
@pytest.mark.reported("jgm/pandoc#8170")
async def test_rich_text_has_its_numbers_its_raised_digits_and_its_notes(tmp_path: Path) -> None:
    lines = (
        r"{\listtext\pard\plain\f0 10.\tab}\pard\ls23\ilvl0 Trade\par",
        r"10{\rtlch\fcs1 \super\insrsid1 -6} of 1,234{\super 2}{\super 3} and 5\super th\nosupersub  x{\super 2}7\par",
        r"Price 100{\super\chftn}{\footnote \pard {\super\chftn} As {\b agreed} \{x\}.} euros, 10{\super 6}\par",
    )
    (tmp_path / "a.rtf").write_text(r"{\rtf1\ansi\ansicpg1252 " + "\n".join(lines) + "}", "utf-8")
    assert await read(tmp_path, "a.rtf") == [
        "10.\tTrade", "10⁻⁶ of 1,234²³ and 5th x27", "Price 100 euros, 10⁶", "", "[notes]", "1 As agreed {x}.",
    ]  # fmt: skip


@pytest.mark.reported("hrushikeshrv/docxlatex#5")
@pytest.mark.reported("higebu/3gpp-mcp#141")
@pytest.mark.reported("microsoft/markitdown#2445")
async def test_the_parts_of_a_formula_stay_apart(tmp_path: Path) -> None:
    def fraction(above: str, below: str) -> str:
        return f"<f><num>{run(above)}</num><den>{run(below)}</den></f>"

    power = f"<sSup><e>{run('x')}</e><sup>{run('2')}</sup></sSup>"
    root = f"<rad><deg/><e>{run('a+b')}</e></rad>"
    total = (
        f'<nary><naryPr><chr val="∑"/></naryPr><sub>{run("i=1")}</sub><sup>{run("10")}</sup><e>{run("k")}</e></nary>'
    )
    formulas = (fraction("1", "25"), fraction("a+b", "c+d"), power + run("3"), root, total)
    write_word(tmp_path / "a.docx", "".join(f"<p><oMath>{formula}</oMath></p>" for formula in formulas))
    assert await read(tmp_path, "a.docx") == ["1/25", "(a+b)/(c+d)", "x^2 3", "√(a+b)", "∑_(i=1)^10 k"]


def delimited(*parts: str, properties: str = "") -> str:
    return f"<d><dPr>{properties}</dPr>{''.join(f'<e>{part}</e>' for part in parts)}</d>"


def matrix(*rows: tuple[str, ...]) -> str:
    return f"<m>{''.join(f'<mr>{cells_of_row(row)}</mr>' for row in rows)}</m>"


def cells_of_row(cells: tuple[str, ...]) -> str:
    return "".join(f"<e>{run(cell)}</e>" for cell in cells)


HALF = f"<f><num>{run('1')}</num><den>{run('2')}</den></f>"
DIFFERENCE = f"<f><num>{delimited(run('x-c'))}</num><den>{run('v')}</den></f>"
OPEN_BRACE = "<begChr val='{'/><endChr val=''/>"
BAR = "<begChr val='|'/><endChr val='|'/>"


@pytest.mark.reported("docling-project/docling#3120")
@pytest.mark.reported("docling-project/docling#3121")
@pytest.mark.reported("plurimath/plurimath#394")
@pytest.mark.reported("ecampbell/moodle-qformat_wordtable#17")
@pytest.mark.reported("higebu/3gpp-mcp#20")
@pytest.mark.parametrize(
    ("formula", "line"),
    [
        (f"<sSup><e>{DIFFERENCE}</e><sup>{run('2')}</sup></sSup>", "((x-c)/v)^2"),
        (f"{run('2')}{HALF}", "2 1/2"),
        (f"{HALF}{delimited(run('a+b'))}", "1/2 (a+b)"),
        (f"{run('2')}{delimited(run('a+b'))}{run('c')}", "2(a+b)c"),
        (f"<sSup><e>{delimited(run('a+b'))}</e><sup>{run('2')}</sup></sSup>", "(a+b)^2"),
        (f"{run('1-')}{delimited(run('x'), properties=BAR)}", "1-|x|"),
        (delimited(matrix(("1", "2"), ("3", "4"))), "(1, 2; 3, 4)"),
        (delimited(f"<eqArr><e>{run('1, x&gt;0')}</e><e>{run('0')}</e></eqArr>", properties=OPEN_BRACE), "{1, x>0; 0"),
        (delimited(f"<f><fPr><type val='noBar'/></fPr><num>{run('n')}</num><den>{run('k')}</den></f>"), "(n¦k)"),
        (f"<func><fName>{run('sin')}</fName><e>{HALF}</e></func>{run('+1')}", "sin (1/2)+1"),
        (f"<nary><sub>{run('0')}</sub><sup>{run('10')}</sup><e>{run('x')}</e></nary>", "∫_0^10 x"),
        (f"<acc><e>{run('x')}</e></acc>{run('=3')}", "x\u0302=3"),
        (f"<sSup><e>{run('x')}</e><sup><del><r><t>9</t></r></del>{run('2')}</sup></sSup>", "x^2"),
        (f"{run('a=b')}</oMath><oMath>{run('c=d')}", "a=b c=d"),
    ],
)
async def test_a_formula_of_word_says_the_same_on_one_line(formula: str, line: str, tmp_path: Path) -> None:
    write_word(tmp_path / "a.docx", f"<p>{run('It is ')}<oMath>{formula}</oMath>{run(' here.')}</p>")
    assert (await read(tmp_path, "a.docx"))[0] == f"It is {line} here."


def numbers(*values: str) -> str:
    return "".join(f"<mn>{value}</mn>" for value in values)


MATHEMATICS = {
    f"<mfrac>{numbers('1', '25')}</mfrac>": "1/25",
    f"{numbers('10')}<mo>=</mo><msup>{numbers('10', '6')}</msup>": "10=10^6",
    f"<msub><mi>x</mi>{numbers('1')}</msub>{numbers('2')}": "x_1 2",
    f"<msqrt>{numbers('2')}<mi>a</mi></msqrt>": "√(2a)",
    f"<mroot>{numbers('8', '3')}</mroot>": "³√8",
    f"<mfenced><mtable><mtr><mtd>{numbers('1')}</mtd><mtd>{numbers('2')}</mtd></mtr></mtable></mfenced>": "(1, 2)",
    "<mover><mi>x</mi><mo>¯</mo></mover>": "x\u0305",
    f"<mmultiscripts><mi>C</mi><none/><none/><mprescripts/>{numbers('6', '14')}</mmultiscripts>": "_6^14 C",
    f"{numbers('2')}<mo>\u2062</mo><mi>x</mi>": "2 x",
    f"<semantics><mfrac>{numbers('3', '4')}</mfrac><annotation>3 over 4</annotation></semantics>": "3/4",
}


@pytest.mark.reported("yuroyami/KitePDF#32")
@pytest.mark.reported("satorumurmur/bibi#126")
@pytest.mark.reported("jgm/pandoc#5318")
@pytest.mark.reported("jgm/pandoc#5602")
async def test_a_formula_of_a_book_or_a_text_says_the_same_on_one_line(tmp_path: Path) -> None:
    names = 'xmlns="http://www.w3.org/1998/Math/MathML"'
    pages = "".join(f"<p>Is <math {names}>{formula}</math>.</p>" for formula in MATHEMATICS)
    page = f"{pages}<p>Open <m:math><m:mfrac><m:mn>1</m:mn><m:mn>3</m:mn></m:mfrac></p><p>last</p>"
    write_book(tmp_path / "a.epub", {"a.xhtml": page.encode()})
    objects = [f"Object {number}" for number in range(1, len(MATHEMATICS) + 1)]
    frames = "".join(
        f"<text:p>Is <draw:frame><draw:object href='./{name}'/></draw:frame>.</text:p>" for name in objects
    )
    parts = {
        f"{name}/content.xml": f"<math {names}>{formula}</math>"
        for name, formula in zip(objects, MATHEMATICS, strict=True)
    }
    write_open_document(tmp_path / "a.odt", "text", frames, more=parts)
    lines = [f"Is {line}." for line in MATHEMATICS.values()]
    assert await read(tmp_path, "a.epub") == [*lines, "Open 1/3", "last", ""]
    assert await read(tmp_path, "a.odt") == lines


@pytest.mark.reported("yfedoseev/office_oxide#141")
@pytest.mark.reported("yfedoseev/office_oxide#357")
@pytest.mark.reported("iOfficeAI/OfficeCLI#348")
async def test_readings_do_not_part_words_and_wrapped_text_is_there(tmp_path: Path) -> None:
    ruby = f"<r><ruby><rt>{run('かん')}</rt><rubyBase>{run('漢')}</rubyBase></ruby></r>"
    box = f"<txbxContent><sdt><sdtContent><p>{run('in a box')}</p></sdtContent></sdt></txbxContent>"
    write_word(
        tmp_path / "a.docx",
        f"<p>{ruby}{run('字')}</p>"
        f"<p><fldSimple instr='REF x'>{run('field')}</fldSimple><smartTag>{run(' tag')}</smartTag></p>"
        f"<p><r><AlternateContent><Choice>{box}</Choice><Fallback>{box}</Fallback></AlternateContent></r></p>",
    )
    readings = "<text:ruby><text:ruby-base>漢</text:ruby-base><text:ruby-text>かん</text:ruby-text></text:ruby>字"
    write_open_document(tmp_path / "a.odt", "text", f"<text:p>{readings}</text:p>")
    page = "<p><ruby>漢<rp>(</rp><rt>かん</rt><rp>)</rp>字<rt>じ</ruby>体</p><p>next</p>"
    write_book(tmp_path / "a.epub", {"a.xhtml": page.encode()})
    assert [line for line in await read(tmp_path, "a.docx") if line] == ["漢字", "field tag", "in a box"]
    assert await read(tmp_path, "a.odt") == ["漢字"]
    assert await read(tmp_path, "a.epub") == ["漢字体", "next", ""]


@pytest.mark.reported("matthewwithanm/python-markdownify#49")
async def test_paragraphs_in_the_cells_of_a_page_do_not_break_its_rows(tmp_path: Path) -> None:
    def row(*cells: str) -> str:
        return f"<tr>{''.join(f'<td><p class=MsoNormal>{cell}</p></td>' for cell in cells)}</tr>"

    rows = row("Region", "2025<br>to May", "2026") + row("", "<b>1</b></p><p>2", "3")
    beside = row("Dear <p>reader,", "long " * 80) + row("alone</p><p>here", "")
    page = f"<table>{rows}</table><p>text</p><table>{beside}<tr><td><p>a</p><td><p>b</p></table>"
    (tmp_path / "a.eml").write_text(f"Content-Type: text/html\n\n{page}", "utf-8")
    lines = [line for line in await read(tmp_path, "a.eml") if line]
    assert lines[:3] == ["Region\t2025 to May\t2026", "\t1 2\t3", "text"]
    assert lines[3:5] == ["Dear", "reader,"] and lines[-3:] == ["alone", "here", "a\tb"]


def table_cell(text: str, properties: str = "") -> str:
    return f"<tc><tcPr>{properties}</tcPr><p>{run(text)}</p></tc>"


@pytest.mark.reported("jgm/pandoc#11464")
@pytest.mark.reported("docling-project/docling#3739")
async def test_a_figure_stands_in_its_column_behind_cells_that_go_over_several(tmp_path: Path) -> None:
    rows = (
        table_cell("Region") + table_cell("2025", "<gridSpan val='2'/>") + table_cell("2026"),
        table_cell("N", "<vMerge val='restart'/>") + "".join(map(table_cell, "123")),
        table_cell("", "<vMerge/>") + "".join(map(table_cell, "456")),
        "<trPr><gridBefore val='2'/></trPr>" + "".join(map(table_cell, "78")),
    )
    write_word(tmp_path / "a.docx", f"<tbl>{''.join(f'<tr>{row}</tr>' for row in rows)}</tbl>")
    assert await read(tmp_path, "a.docx") == [
        "Region | 2025 |  | 2026", "N | 1 | 2 | 3", " | 4 | 5 | 6", " |  | 7 | 8",
    ]  # fmt: skip


SPANNED = """<table>
  <tr> <th>Region</th> <th colspan="2">2025</th> <th>2026</th> </tr>
  <tr><td rowspan="3">N<td>1<td rowspan=2>2<td>3</tr>
  <tr><td>4</td><td>5</td></tr>
  <tr><td colspan="x">6</td><td></td><td>7</td></tr>
  <tr><td></td><td>8<table><tr><td>in</td><td>it</td></tr></table></td><td>9</td></tr>
</table>"""


@pytest.mark.reported("arc53/DocsGPT#2797")
@pytest.mark.reported("Alir3z4/html2text#367")
@pytest.mark.reported("thephpleague/html-to-markdown#242")
async def test_a_cell_of_a_page_stands_in_its_column(tmp_path: Path) -> None:
    write_book(tmp_path / "a.epub", {"a.xhtml": SPANNED.encode()})
    (tmp_path / "a.eml").write_bytes(b"Content-Type: text/html\n\n" + SPANNED.encode())
    lines = ["Region\t2025\t\t2026", "N\t1\t2\t3", "\t4\t\t5", "\t6\t\t7", "\t8", "in\tit", "9"]
    assert [line for line in await read(tmp_path, "a.epub") if line] == lines
    assert [line for line in await read(tmp_path, "a.eml") if line] == lines


@pytest.mark.reported("pandas-dev/pandas#55200")
@pytest.mark.reported("pyexcel/pyexcel-ods#24")
@pytest.mark.reported("unslothai/unsloth#5510")
@pytest.mark.reported("ropensci/readODS#81")
async def test_a_cell_of_a_sheet_is_its_value_without_its_comment(tmp_path: Path) -> None:
    facts = "<dc:creator>Bob</dc:creator><dc:date>2026-01-01</dc:date>"
    comment = f"<office:annotation>{facts}<text:p>was 7</text:p></office:annotation>"
    cells = (
        f"<table:table-cell>{comment}<text:p>100</text:p></table:table-cell>"
        '<table:table-cell office:value-type="float" office:value="5"/>'
        '<table:table-cell office:value-type="boolean" office:boolean-value="true"/>'
        '<table:table-cell office:value-type="date" office:date-value="2026-02-03"/>'
        '<table:table-cell office:value="0.125"><text:p>13%</text:p></table:table-cell>'
    )
    rows = (
        '<table:table-row table:number-rows-repeated="2"><table:table-cell/></table:table-row>'
        f"<table:table-row>{cells}</table:table-row>"
        '<table:table-row table:number-rows-repeated="3"><table:table-cell><text:p>same</text:p></table:table-cell>'
        "</table:table-row>"
    )
    style = '<style:style style:name="ta2"><style:table-properties table:display="false"/></style:style>'
    tables = f'<table:table table:name="S">{rows}</table:table><table:table table:name="H" table:style-name="ta2"/>'
    write_open_document(tmp_path / "a.ods", "spreadsheet", tables, style)
    lines = await read(tmp_path, "a.ods")
    assert lines == [
        "[S]",
        "[comment A3] Bob: was 7",
        "100 | 5 | true | 2026-02-03 | 13%",
        *["same"] * 3,
        "[H, hidden]",
    ]


@pytest.mark.reported("eea/odfpy#146")
@pytest.mark.reported("dbashford/textract#192")
@pytest.mark.reported("deanmalmgren/textract#57")
async def test_notes_and_comments_stand_behind_a_text_and_not_in_its_figures(tmp_path: Path) -> None:
    note = (
        "<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>As agreed.</text:p>"
        "</text:note-body></text:note>"
    )
    comment = "<office:annotation><dc:creator>Bob</dc:creator><text:p>really 50?</text:p></office:annotation>"
    items = "<text:list><text:list-item><text:p>one</text:p></text:list-item></text:list>"
    styles = "<style:footer><text:p>Page foot</text:p></style:footer>"
    write_open_document(
        tmp_path / "a.odt",
        "text",
        f"<text:p>Price 100{note} euros.</text:p><text:p>Total 5{comment}0 units</text:p>{items}",
        more={"styles.xml": f"<office:document-styles {OPEN_DOCUMENT}>{styles}</office:document-styles>"},
    )
    row = "<table:table-row>{}</table:table-row>"
    figures = "".join(f"<table:table-cell><text:p>{text}</text:p></table:table-cell>" for text in ("North", "11"))
    chart = f'<text:p>Sales</text:p><table:table table:name="local-table">{row.format(figures)}</table:table>'
    page = (
        '<draw:page draw:name="p1" draw:style-name="dp1"><text:p>Title</text:p><presentation:notes>'
        "<text:p>say hello</text:p></presentation:notes></draw:page>"
    )
    style = (
        '<style:style style:name="dp1"><style:drawing-page-properties presentation:visibility="hidden"/></style:style>'
    )
    embedded = (
        f"<office:document-content {OPEN_DOCUMENT}><office:body><office:chart>{chart}</office:chart></office:body>"
    )
    embedded += "</office:document-content>"
    write_open_document(tmp_path / "a.odp", "presentation", page, style, {"Object 1/content.xml": embedded})
    assert [line for line in await read(tmp_path, "a.odt") if line] == [
        "Price 100 euros.", "Total 50 units", "- one", "[notes]", "1 As agreed.", "[comments]", "Bob: really 50?",
        "[footer]", "Page foot",
    ]  # fmt: skip
    assert await read(tmp_path, "a.odp") == [
        "[p1, hidden]", "Title", "[notes]", "say hello", "", "[chart]", "Sales", "[local-table]", "North | 11",
    ]  # fmt: skip


CHART = (
    "<chartSpace><chart><title><tx><rich><p><r><t>Sales</t></r></p></rich></tx></title><plotArea><barChart><ser>"
    "<tx><strRef><strCache><pt idx='0'><v>North</v></pt></strCache></strRef></tx><cat><numRef><numCache>"
    "<formatCode>mmm yy</formatCode><pt idx='0'><v>45292</v></pt><pt idx='2'><v>45352</v></pt></numCache></numRef>"
    "</cat>"
    "<val><numRef><numCache><formatCode>0.0</formatCode><pt idx='0'><v>11</v></pt><pt idx='2'><v>22.5</v></pt>"
    "</numCache></numRef></val></ser><valAx><title><tx><rich><p><r><t>EUR</t></r></p></rich></tx></title></valAx>"
    "</barChart></plotArea></chart></chartSpace>"
)


@pytest.mark.reported("yfedoseev/office_oxide#149")
@pytest.mark.reported("HKUDS/nanobot#3269")
@pytest.mark.reported("use-agent-os/agent-os#2669")
async def test_charts_diagrams_groups_and_comments_of_a_slide_are_read(tmp_path: Path) -> None:
    shapes = "<p><r><t>plain</t></r></p><grpSp><p><r><t>grouped</t></r></p></grpSp>"
    write_slides(
        tmp_path / "a.pptx",
        f'<sld show="0">{shapes}</sld>',
        {
            "ppt/slides/_rels/slide1.xml.rels": relations(
                ("r1", "diagramData", "../diagrams/data1.xml"),
                ("r2", "chart", "../charts/chart1.xml"),
                ("r3", "comments", "../comments/comment1.xml"),
                ("r4", "chart", "../charts/chart2.xml"),
            ),
            "ppt/diagrams/data1.xml": "<data><pt><t><p><r><t>step one</t></r></p></t></pt><pt><p/></pt></data>",
            "ppt/charts/chart1.xml": CHART,
            "ppt/charts/chart2.xml": "<chartSpace>",
            "ppt/comments/comment1.xml": "<cmLst><cm><text>check this</text></cm></cmLst>",
        },
    )
    levels = (
        "<chartSpace><ser><cat><lvl><pt idx='0'><v>LA</v></pt><pt idx='1'><v>NY</v></pt></lvl>"
        "<lvl><pt idx='0'><v>US</v></pt></lvl></cat><val><pt idx='0'><v>1</v></pt><pt idx='1'><v>2</v></pt></val></ser>"
        "</chartSpace>"
    )
    parts = {"word/charts/chart1.xml": CHART, "word/charts/chart2.xml": levels}
    write_word(tmp_path / "a.docx", f"<p>{run('text')}</p>", parts)
    table = ["[chart: Sales]", " | 2024-01-01 |  | 2024-03-01", "North | 11 |  | 22.5"]
    lines = await read(tmp_path, "a.pptx")
    damaged = next(line for line in lines if "chart2" in line)
    assert "is damaged" in damaged
    lines.remove(damaged)
    assert lines == [
        "[slide 1, hidden]", "plain", "grouped", "[diagram]", "step one", *table, "[comments]", "check this",
    ]  # fmt: skip
    assert await read(tmp_path, "a.docx") == ["text", "", *table, "[chart]", " | US", " | LA | NY", " | 1 | 2"]


@pytest.mark.reported("genspark-ai/genoffice#456")
@pytest.mark.reported("awslabs/ferret-scan#188")
async def test_slides_are_those_of_the_show_each_with_its_own_notes(tmp_path: Path) -> None:
    def text(words: str) -> str:
        return f"<sld><p><r><t>{words}</t></r></p></sld>"

    slides = '<sldId r:id="r10"/><sldId r:id="r1"/>'
    more = {
        "ppt/presentation.xml": f'<presentation xmlns:r="{OFFICE}">{slides}</presentation>',
        "ppt/_rels/presentation.xml.rels": relations(
            ("r10", "slide", "slides/slide10.xml"), ("r1", "slide", "slides/slide1.xml")
        ),
        "ppt/slides/slide2.xml": text("Orphan"),
        "ppt/slides/slide10.xml": text("Summary"),
        "ppt/slides/_rels/slide1.xml.rels": relations(("n", "notesSlide", "../notesSlides/notesSlide7.xml")),
        "ppt/notesSlides/notesSlide7.xml": text("say it"),
        "ppt/notesMasters/notesMaster1.xml": text("Click to edit"),
    }
    write_slides(tmp_path / "a.pptx", text("Intro"), more)
    lines = ["[slide 1]", "Summary", "[slide 2]", "Intro", "[notes]", "say it"]
    assert await read(tmp_path, "a.pptx") == lines


@pytest.mark.reported("tidyverse/readxl#389")
@pytest.mark.reported("ExcelDataReader/ExcelDataReader#675")
@pytest.mark.reported("shuchkin/simplexlsx#97")
@pytest.mark.reported("SheetJS/sheetjs#2587")
async def test_codes_and_durations_are_those_that_a_workbook_shows(tmp_path: Path) -> None:
    codes = ("00000", "000-00-0000", "[h]:mm:ss", '"Nr. "000', "0.00", "0")
    formats = "".join(
        f'<numFmt numFmtId="{200 + number}" formatCode="{code.replace(chr(34), "&quot;")}"/>'
        for number, code in enumerate(codes)
    )
    looks = "".join(f'<xf numFmtId="{200 + number}"/>' for number in range(len(codes)))
    styles = f'<numFmts>{formats}</numFmts><cellStyleXfs><xf numFmtId="200"/></cellStyleXfs><cellXfs>{looks}</cellXfs>'
    values = (
        (0, "6791"),
        (0, "123456"),
        (1, "12345678"),
        (2, "1.5"),
        (2, "-0.5"),
        (3, "7"),
        (4, "5"),
        (5, "5"),
        (0, "-3"),
    )
    rows = "".join(
        f'<row r="{row}"><c r="A{row}" s="{style}"><v>{value}</v></c></row>'
        for row, (style, value) in enumerate(values, 1)
    )
    write_sheet(tmp_path / "a.xlsx", rows, styles)
    assert (await read(tmp_path, "a.xlsx"))[1:] == [
        "06791", "123456", "012-34-5678", "36:00:00", "-12:00:00", "Nr. 007", "5", "5", "-3",
    ]  # fmt: skip


def styled_cell(name: str, style: int, value: str) -> str:
    return f'<c r="{name}" s="{style}"><v>{value}</v></c>'


@pytest.mark.reported("JanKallman/EPPlus#282")
@pytest.mark.reported("ONLYOFFICE/Docker-DocumentServer#257")
@pytest.mark.reported("rfischer42/xlsx-reader#4")
async def test_a_time_below_zero_is_no_time_of_the_day_before(tmp_path: Path) -> None:
    codes = ("[h]:mm", 'h"h"\\d', "d mmm", '0.0"h"', "[Red]0;-0")
    formats = "".join(
        f'<numFmt numFmtId="{200 + number}" formatCode="{code.replace(chr(34), "&quot;")}"/>'
        for number, code in enumerate(codes)
    )
    numbers = (20, 22, 14, *range(200, 205))
    looks = "".join(f'<xf numFmtId="{number}"/>' for number in numbers)
    styles = f"<numFmts>{formats}</numFmts><cellXfs>{looks}</cellXfs>"
    cells = "".join(styled_cell(f"{letter}1", style, "-0.25") for style, letter in enumerate("ABCDEFGH"))
    formula = '<c r="I1" s="0"><f>A1-B1</f><v>-1.5</v></c>'
    write_sheet(tmp_path / "a.xlsx", f'<row r="1">{cells}{formula}</row>', styles)
    line = (await read(tmp_path, "a.xlsx"))[1]
    hours = "-06:00:00"
    assert line.split("\t") == [hours, hours, "-0.25", hours, hours, "-0.25", "-0.25", "-0.25", "-36:00:00"]


@pytest.mark.reported("orbeon/orbeon-forms#4452")
@pytest.mark.reported("PHPOffice/PHPExcel#632")
@pytest.mark.reported("openai/codex#38118")
async def test_a_number_has_the_digits_that_excel_shows_and_an_empty_text_none(tmp_path: Path) -> None:
    values = ("0.30000000000000004", "6.3200000000000006E-2", "1234567.891", "1.0000000000000002")
    cells = "".join(styled_cell(f"{letter}1", 0, value) for letter, value in zip("ABCD", values, strict=True))
    empty = '<c r="E1" t="s"><v>1</v></c><c r="F1" t="s"><v>0</v></c>'
    write_sheet(tmp_path / "a.xlsx", f'<row r="1">{cells}{empty}</row>', shared="<si><t>end</t></si><si><t/></si>")
    assert (await read(tmp_path, "a.xlsx"))[1].split("\t") == ["0.3", "0.0632", "1234567.891", "1", "", "end"]


@pytest.mark.reported("tafia/calamine#229")
@pytest.mark.reported("tafia/calamine#326")
@pytest.mark.reported("tafia/calamine#468")
@pytest.mark.parametrize("code_page", [None, 1252, 1200, 932])
async def test_texts_of_an_old_workbook_do_not_go_by_the_code_page_that_it_names(
    code_page: int | None, tmp_path: Path
) -> None:
    (tmp_path / "a.xls").write_bytes(xls({(1, 0): 7.5}, text="Året", code_page=code_page))
    assert (await read(tmp_path, "a.xls"))[1:3] == ["Året", "7.5"]


@pytest.mark.reported("productdevbook/hucre#568")
@pytest.mark.reported("tidyverse/readxl#388")
@pytest.mark.parametrize("version", [0x600, 0x500])
@pytest.mark.parametrize(
    ("format_id", "code", "text"),
    [
        (50, "00000", "6791"),
        (14, '0.00" kg"', "6791"),
        (164, "[Red]0;[Blue]000", "6791"),
        (165, '"DM" #,##0', "6791"),
        (3, "dd.mm.yyyy", "1918-08-04"),
        (166, "[Red]d mmm", "1918-08-04"),
        (167, "[h]:mm", "162984:00:00"),
    ],
)
async def test_a_number_of_an_old_workbook_goes_by_the_format_and_not_by_its_number(
    version: int, format_id: int, code: str, text: str, tmp_path: Path
) -> None:
    (tmp_path / "a.xls").write_bytes(xls({(0, 0): 6791.0}, number_format=(format_id, code), version=version))
    assert (await read(tmp_path, "a.xls"))[1] == text


@pytest.mark.reported("trypsynth/paperback#859")
@pytest.mark.reported("openpreserve/odf-validator#40")
async def test_a_document_that_is_locked_is_not_called_damaged(tmp_path: Path) -> None:
    manifest = "<manifest><file-entry full-path='content.xml'><encryption-data/></file-entry></manifest>"
    parts = {"META-INF/manifest.xml": manifest, "content.xml": "\x81\x02 no XML"}
    (tmp_path / "a.odt").write_bytes(zipped(parts))
    (tmp_path / "a.ods").write_bytes(zipped({"mimetype": "", "encrypted-package": "\x81\x02"}))
    for name in ("a.odt", "a.ods"):
        assert "is locked by a password" in (await read(tmp_path, name))[1]


@pytest.mark.reported("xberg-io/xberg#1494")
@pytest.mark.reported("w3c/epubcheck#34")
@pytest.mark.reported("onyx-dot-app/onyx#14773")
@pytest.mark.reported("iscc/iscc-sdk#154")
async def test_a_book_is_read_in_its_order_and_its_encodings(tmp_path: Path) -> None:
    pages = {
        "c.xhtml": '<?xml version="1.0" encoding="utf-16"?><p>drei</p>'.encode("utf-16"),
        "a.xhtml": '<?xml version="1.0" encoding="iso-8859-1"?><p>café “1”</p>'.encode("cp1252"),
        "b.xhtml": '<html><meta http-equiv="Content-Type" content="text/html; charset=gb2312"><p>朱镕基</p>'.encode(
            "gbk"
        ),
    }
    locked = '<encryption><CipherReference URI="O/{}"/></encryption>'
    order = "a.xhtml b.xhtml lost c.xhtml"
    write_book(tmp_path / "a.epub", pages, {"META-INF/encryption.xml": locked.format("font.ttf")}, order)
    write_book(tmp_path / "b.epub", pages, {"META-INF/encryption.xml": locked.format("b.xhtml")}, "b.xhtml")
    assert [line for line in await read(tmp_path, "a.epub") if line] == [
        "café “1”", "朱镕基", "[lost.xhtml is missing in the book]", "drei",
    ]  # fmt: skip
    assert "b.epub` is locked: only the reading program" in (await read(tmp_path, "b.epub"))[1]


@pytest.mark.reported("py-pdf/pypdf#1351")
async def test_a_nul_among_letters_does_not_change_what_the_rest_is(tmp_path: Path) -> None:
    letters = "".join(f"{letter}\0" for letter in "hello there, all of you" * 5)
    write_book(tmp_path / "a.epub", {"a.xhtml": f"<p>Odd, plain words.</p><p>{letters}</p>".encode()})
    lines = await read(tmp_path, "a.epub")
    assert lines[0] == "Odd, plain words." and lines[1].replace("\ufffd", "").startswith("hello there, all of you")


@pytest.mark.reported("yfedoseev/pdf_oxide#92")
@pytest.mark.reported("0xabu/pdfannots#50")
async def test_what_was_typed_over_a_page_or_noted_on_it_is_read(tmp_path: Path) -> None:
    notes = (
        "<</Type/Annot/Subtype/FreeText/Rect[20 20 90 40]/Contents(Name: Ann Lee)/DA(/F 12 Tf)>>",
        "<</Type/Annot/Subtype/Text/Rect[20 60 40 80]/Contents(too high?)/T(Bob)>>",
        "<</Type/Annot/Subtype/Popup/Rect[20 60 40 80]/Contents(twice)>>",
    )
    data = drawn_pdf("BT /F 12 Tf 20 50 Td (Total 7) Tj ET", page="/Annots[5 0 R 6 0 R 7 0 R]", more=notes)
    (tmp_path / "a.pdf").write_bytes(data)
    assert await read(tmp_path, "a.pdf") == [
        "[page 1 of 1]",
        "Total 7",
        "[comments]",
        "Name: Ann Lee",
        "Bob: too high?",
    ]


def drawn_at(*texts: tuple[int, int, int, str]) -> str:
    return "".join(f"BT /F {size} Tf {left} {bottom} Td ({text}) Tj ET " for size, left, bottom, text in texts)


@pytest.mark.reported("docling-project/docling#3883")
@pytest.mark.reported("mdgate/converters#78")
async def test_what_stands_beside_a_large_letter_is_read_line_by_line(tmp_path: Path) -> None:
    small = ((10, 60, 84, "ealized through it"), (10, 64, 72, "by careful people"), (10, 20, 50, "and the rest"))
    (tmp_path / "a.pdf").write_bytes(drawn_pdf(drawn_at((32, 36, 70, "R"), *small)))
    index = ((10, 20, 50, "the large"), (26, 75, 50, "X"), (7, 94, 46, "12"), (7, 94, 64, "3"), (10, 104, 50, "is"))
    (tmp_path / "b.pdf").write_bytes(drawn_pdf(drawn_at(*index)))
    assert [line.strip() for line in await read(tmp_path, "a.pdf")] == [
        "[page 1 of 1]", "Realized through it", "by careful people", "and the rest",
    ]  # fmt: skip
    assert len(await read(tmp_path, "b.pdf")) == 2


@pytest.mark.reported("osTicket/osTicket#2000")
@pytest.mark.reported("nodemailer/mailparser#43")
@pytest.mark.reported("glpi-project/glpi#8986")
@pytest.mark.reported("TKasperczyk/thunderbird-mcp#138")
async def test_a_mail_is_read_in_what_its_encoding_stands_for(tmp_path: Path) -> None:
    name = base64.b64encode("朱镕基".encode("gbk")).decode()
    mails = {
        "a.eml": f"From: =?gb2312?B?{name}?= <a@example.org>\n".encode()
        + b"Content-Type: text/plain; charset=gb2312\n\n"
        + "朱镕基 – ok".encode("gb18030"),
        "b.eml": "From: a@example.org\nSubject: été\nContent-Type: text/plain\n\ncafé crème brûlée\n".encode("latin-1"),
        "c.eml": b"Content-Type: text/html\n\n" + '<meta charset="gbk"><p>中文内容测试</p>'.encode("gbk"),
        "d.eml": b"Content-Type: text/plain; charset=us-ascii\n\n" + "20 €".encode(),
        "e.eml": b"Content-Type: text/plain; charset=iso-8859-1\n\n" + "20 €".encode("cp1252"),
    }
    for path, mail in mails.items():
        (tmp_path / path).write_bytes(mail)
    assert await read(tmp_path, "a.eml") == ["From: 朱镕基 <a@example.org>", "", "朱镕基 – ok"]
    assert await read(tmp_path, "b.eml") == ["From: a@example.org", "Subject: été", "", "café crème brûlée"]
    assert await read(tmp_path, "c.eml") == ["", "中文内容测试"]
    assert (await read(tmp_path, "d.eml"), await read(tmp_path, "e.eml")) == (["", "20 €"], ["", "20 €"])


@pytest.mark.reported("nickrussler/email-to-pdf-converter#62")
@pytest.mark.reported("Wh1isper/mcp-email-server#114")
@pytest.mark.parametrize(
    ("plain", "page", "line"),
    [(" \n", "<p>Only here: 42</p>", "Only here: 42"), ("plain 42", "<p> </p>", "plain 42"), ("a", "<p>b</p>", "a")],
)
async def test_of_alternatives_of_a_mail_the_one_that_says_something_is_read(
    plain: str, page: str, line: str, tmp_path: Path
) -> None:
    parts = "".join(f"--B\nContent-Type: text/{kind}\n\n{text}\n" for kind, text in (("plain", plain), ("html", page)))
    (tmp_path / "a.eml").write_text(f"Content-Type: multipart/alternative; boundary=B\n\n{parts}--B--\n", "utf-8")
    assert await read(tmp_path, "a.eml") == ["", line]


@pytest.mark.reported("r-lib/zip#138")
@pytest.mark.reported("python/cpython#117779")
@pytest.mark.reported("mate-desktop/engrampa#494")
async def test_an_archive_is_unpacked_under_the_names_and_with_the_contents_that_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(zipped({"one_.txt": "first", "two_.txt": "last", "gr###/b.txt": "in it"}))
    data = path.read_bytes().replace(b"one_", b"same").replace(b"two_", b"same")
    path.write_bytes(data.replace(b"gr###", "grün".encode()))
    async with Client(build(Settings(folders=(str(tmp_path),)))) as client:
        for source, target in (("a.zip!/", "all"), ("a.zip!/same.txt", "one.txt"), ("a.zip!/grün", "folder")):
            result = await client.call_tool("copy_file", {"targets": {source: target}})
            assert not result.is_error, result
    assert (tmp_path / "all/same.txt").read_text() == (tmp_path / "one.txt").read_text() == "last"
    assert (tmp_path / "all/grün/b.txt").read_text() == (tmp_path / "folder/b.txt").read_text() == "in it"
    assert await read(tmp_path, "a.zip!/same.txt") == ["last"]


TREE_MAP = (
    "<cx:chartSpace xmlns:cx='http://schemas.microsoft.com/office/drawing/2014/chartex'><cx:chartData>"
    "<cx:data id='0'><cx:strDim type='cat'><cx:f>A2:B4</cx:f>"
    "<cx:lvl ptCount='3'><cx:pt idx='0'>Oslo</cx:pt><cx:pt idx='2'>Lima</cx:pt></cx:lvl>"
    "<cx:lvl ptCount='3'><cx:pt idx='0'>Europe</cx:pt><cx:pt idx='2'>America</cx:pt></cx:lvl></cx:strDim>"
    "<cx:numDim type='size'><cx:f>C2:C4</cx:f><cx:lvl ptCount='3' formatCode='General'><cx:pt idx='0'>4.25</cx:pt>"
    "<cx:pt idx='1'>-2</cx:pt><cx:pt idx='2'>3</cx:pt></cx:lvl></cx:numDim></cx:data>"
    "<cx:data id='1'><cx:numDim type='val'><cx:lvl ptCount='1'><cx:pt idx='0'>9</cx:pt></cx:lvl></cx:numDim></cx:data>"
    "</cx:chartData><cx:chart><cx:title><cx:tx><cx:txData><cx:v>Sales</cx:v></cx:txData></cx:tx></cx:title>"
    "<cx:plotArea><cx:plotAreaRegion><cx:series layoutId='treemap'><cx:tx><cx:txData><cx:f>C1</cx:f><cx:v>2026</cx:v>"
    "</cx:txData></cx:tx><cx:dataId val='0'/></cx:series>"
    "<cx:series layoutId='waterfall'><cx:dataId val='1'/></cx:series>"
    "</cx:plotAreaRegion><cx:axis id='1'><cx:title><cx:tx><cx:txData><cx:v>axis</cx:v></cx:txData></cx:tx></cx:title>"
    "</cx:axis></cx:plotArea></cx:chart></cx:chartSpace>"
)


@pytest.mark.reported("scanny/python-pptx#371")
@pytest.mark.reported("scanny/python-pptx#386")
@pytest.mark.reported("scanny/python-pptx#583")
async def test_the_figures_of_a_newer_kind_of_chart_are_read(tmp_path: Path) -> None:
    table = [
        "[chart: Sales]", " | Europe |  | America", " | Oslo |  | Lima", "2026 | 4.25 | -2 | 3", " | 9",
    ]  # fmt: skip
    write_word(tmp_path / "a.docx", f"<p>{run('text')}</p>", {"word/charts/chartEx1.xml": TREE_MAP})
    assert await read(tmp_path, "a.docx") == ["text", "", *table]
    slide = "<sld><p><r><t>plain</t></r></p></sld>"
    links = relations(("r2", "chartEx", "../charts/chartEx1.xml"))
    write_slides(
        tmp_path / "a.pptx", slide, {"ppt/slides/_rels/slide1.xml.rels": links, "ppt/charts/chartEx1.xml": TREE_MAP}
    )
    lines = await read(tmp_path, "a.pptx")
    assert lines[-len(table) :] == table, lines


@pytest.mark.reported("jupyter/nbconvert#145")
async def test_an_output_of_a_notebook_says_what_it_shows_and_not_of_which_class_it_is(tmp_path: Path) -> None:
    def shown(**forms: str) -> dict[str, Any]:
        return {"output_type": "display_data", "data": {name.replace("_", "/"): text for name, text in forms.items()}}

    outputs = [
        shown(text_markdown="**The answer** is 42", text_plain="<IPython.core.display.Markdown object>"),
        shown(text_latex="$x^2$", text_plain="<IPython.core.display.Math object>"),
        shown(text_html="<table/>", text_plain="<pandas.io.formats.style.Styler at 0x7f>"),
        shown(text_html="<table/>", text_plain="   a\n0  1"),
        shown(text_markdown="alone"),
    ]
    cells = [{"cell_type": "code", "source": "x", "outputs": outputs}]
    (tmp_path / "a.ipynb").write_text(json.dumps({"nbformat": 4, "cells": cells}), "utf-8")
    assert (await read(tmp_path, "a.ipynb"))[2:] == [
        "[output]", "**The answer** is 42", "[output]", "$x^2$",
        "[output]", "<pandas.io.formats.style.Styler at 0x7f>", "[output: text/html left out]",
        "[output]", "   a", "0  1", "[output]", "alone",
    ]  # fmt: skip


@pytest.mark.reported("tidyverse/readxl#428")
@pytest.mark.reported("SheetJS/sheetjs#630")
@pytest.mark.reported("firecrawl/anydoc#9")
async def test_rows_and_columns_that_a_person_does_not_see_are_named(tmp_path: Path) -> None:
    book: Any = xlsxwriter.Workbook(str(tmp_path / "a.xlsx"))
    filtered = book.add_worksheet("Filtered")
    grouped = book.add_worksheet("Plain")
    for row in range(20):
        filtered.write_row(row, 0, [row, "x", 2 * row])
        grouped.write_row(row, 0, [row, "x"])
        if row % 3:
            filtered.set_row(row, None, None, {"hidden": True})
    filtered.set_column("B:XFD", None, None, {"hidden": True})
    book.close()
    heads = [line for line in await read(tmp_path, "a.xlsx") if line.startswith("[sheet")]
    rows = "rows hidden: 13 (2-3, 5-6, 8-9, 11-12, 14-15, …)"
    assert heads == [f"[sheet Filtered, A1:C20, {rows}, columns hidden: 2 (B-C)]", "[sheet Plain, A1:B20]"]
    assert (await read(tmp_path, "a.xlsx!/Filtered!A4:A5"))[0] == "[sheet Filtered, A4:A5, rows hidden: 1 (5)]"
    again = b'<col min="2" max="9" hidden="1"/>' * 3 + b"</cols>"
    with zipfile.ZipFile(tmp_path / "a.xlsx") as old, zipfile.ZipFile(tmp_path / "b.xlsx", "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).replace(b"</cols>", again))
    assert [line for line in await read(tmp_path, "b.xlsx") if line.startswith("[sheet")] == heads


@pytest.mark.reported("python/cpython#87696")
@pytest.mark.reported("getmail6/getmail6#273")
@pytest.mark.reported("danny0838/webscrapbook#417")
@pytest.mark.reported("tats/w3m#290")
async def test_a_mail_behind_a_mark_and_a_page_saved_as_one_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.eml").write_bytes(b"\xef\xbb\xbfFrom: a@example.org\nSubject: marked\n\nbody\n")
    page = "<html><body><h1>caf=C3=A9</h1><p>a long li=\r\nne</p></body></html>"
    part = f"Content-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n{page}"
    head = 'Subject: Saved\r\nContent-Type: multipart/related;\r\n\ttype="text/html";\r\n\tboundary="B"'
    (tmp_path / "a.mhtml").write_text(f"{head}\r\n\r\n--B\r\n{part}\r\n--B--\r\n", "utf-8", newline="")
    assert await read(tmp_path, "a.eml") == ["From: a@example.org", "Subject: marked", "", "body"]
    assert await read(tmp_path, "a.mhtml") == ["Subject: Saved", "", "# café", "a long line"]


ATTACHED_NAMES = {
    "filename=Report (2) final.pdf": "Report (2) final.pdf",
    "filename=Partnership Agreement\n  Form - Week 11.pdf": "Partnership Agreement Form - Week 11.pdf",
    "filename=a,b.pdf; size=7": "a,b.pdf",
    "filename=[EXT] x.pdf": "[EXT] x.pdf",
    "filename*=utf-8''Status%20(s).pdf": "Status (s).pdf",
    "filename*0*=UTF-8''%C3%9F%20; filename*1*=two.pdf": "ß two.pdf",
    'filename="=?iso-8859-1?Q?12B=2C_Fr=E9d?=.pdf"': "12B, Fréd.pdf",
    'filename="whole (1).pdf"; x=y': "whole (1).pdf",
    'filename="Invoice"': "Invoice.pdf",
    'filename="show?name=a.pdf"': "show?name=a.pdf",
}


@pytest.mark.reported("jstedfast/MimeKit#159")
@pytest.mark.reported("jshttp/content-disposition#6")
@pytest.mark.reported("pst-format/libpst#1")
@pytest.mark.reported("chatmail/core#2079")
@pytest.mark.reported("sunholo-data/ailang#678")
async def test_what_is_attached_has_the_name_that_the_sender_gave_it(tmp_path: Path) -> None:
    parts = "".join(
        f"--B\nContent-Type: application/pdf\nContent-Disposition: attachment; {name}\n\nx\n" for name in ATTACHED_NAMES
    )
    forwarded = (
        "--B\nContent-Type: message/rfc822\nContent-Disposition: inline; filename=Offer 3.5 m\n\nSubject: it\n\nin\n"
    )
    mail = f'Content-Type: multipart/mixed; boundary="B.name=C"\n\n{parts}{forwarded}--B--\n'
    (tmp_path / "a.eml").write_text(mail.replace("--B", "--B.name=C"), "utf-8")
    lines = await read(tmp_path, "a.eml")
    assert lines[-11:-1] == [f"{name}\t1" for name in ATTACHED_NAMES.values()]
    assert await read(tmp_path, "a.eml!/Offer 3.5 m.eml") == ["Subject: it", "", "in"]


@pytest.mark.reported("python-openxml/python-docx#693")
@pytest.mark.reported("thomas-villani/all2md#487")
async def test_a_strict_document_and_what_its_controls_wrap_are_read(tmp_path: Path) -> None:
    names = 'xmlns:w="http://purl.oclc.org/ooxml/wordprocessingml/main"'

    def control(content: str) -> str:
        return f"<w:sdt><w:sdtContent>{content}</w:sdtContent></w:sdt>"

    def paragraph(text: str) -> str:
        return f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"

    second = f"<w:tc>{paragraph('b')}</w:tc>"
    row = f"<w:tr><w:tc>{paragraph('a')}</w:tc>{control(second)}</w:tr>"
    inline = f"<w:p><w:r><w:t>see </w:t></w:r>{control('<w:r><w:t>field</w:t></w:r>')}</w:p>"
    body = control(paragraph("block")) + inline + control(f"<w:tbl>{control(row)}</w:tbl>")
    (tmp_path / "a.docx").write_bytes(zipped({"word/document.xml": f"<w:document {names}>{body}</w:document>"}))
    assert await read(tmp_path, "a.docx") == ["block", "see field", "a | b"]


PAGE = """<p>Ge&shy;samt&#173;konzept <i>it</i>alic</p>
<pre><span>def</span> f(x):
    if x:
	return  1
</pre><p>after  it</p>
<ol><li>first<ol start="3"><li>in</ol></li><li>second<ul><li>x</ul><li value="7">seven<li>eight</ol><li>loose</li>"""


@pytest.mark.reported("html-to-text/node-html-to-text#117")
@pytest.mark.reported("tradik/wpexporter#39")
@pytest.mark.reported("blindpandas/bookworm#36")
@pytest.mark.reported("contao/core#8389")
async def test_steps_have_their_numbers_code_its_lines_and_words_no_hidden_hyphens(tmp_path: Path) -> None:
    write_book(tmp_path / "a.epub", {"a.xhtml": PAGE.encode()})
    (tmp_path / "a.eml").write_text(f"Content-Type: text/html\n\n{PAGE}", "utf-8")
    hyphenated = run("Ge\xadsamt\xadkonzept")
    write_word(tmp_path / "a.docx", f"<p>{hyphenated}</p>")
    lines = [
        "Gesamtkonzept italic", "def f(x):", "    if x:", "        return  1", "after it",
        "1. first", "3. in", "2. second", "- x", "7. seven", "8. eight", "- loose",
    ]  # fmt: skip
    for name in ("a.epub", "a.eml"):
        assert [line for line in await read(tmp_path, name) if line] == lines, name
    assert await read(tmp_path, "a.docx") == ["Gesamtkonzept"]


@pytest.mark.reported("mafintosh/tar-stream#94")
@pytest.mark.reported("dsoprea/PyEasyArchive#51")
@pytest.mark.parametrize(
    ("codec", "name"), [("latin-1", "größe.txt"), ("cp1251", "отчёт/привет.txt"), ("gbk", "测试文件.txt")]
)
async def test_names_of_an_old_tar_archive_are_read_in_what_they_look_like(
    codec: str, name: str, tmp_path: Path
) -> None:
    with tarfile.open(tmp_path / "a.tar", "w", format=tarfile.GNU_FORMAT, encoding=codec) as archive:
        member = tarfile.TarInfo(name)
        member.size = 2
        archive.addfile(member, io.BytesIO(b"in"))
    assert await read(tmp_path, "a.tar") == [f"{name}\t2"]
    assert await read(tmp_path, f"a.tar!/{name}") == ["in"]
