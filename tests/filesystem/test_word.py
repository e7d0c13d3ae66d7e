"""What Word shows of a document and its text does not hold: numbers, symbols, links, changes that are open."""

from __future__ import annotations

import io

import pytest

from filesystem.documents import zipped
from mcp_fs.engine.documents.formats.archives import Zip
from mcp_fs.engine.documents.formats.office.word import read_word

LEVELS = (
    '<lvl ilvl="0"><start val="1"/><numFmt val="decimal"/><lvlText val="%1."/></lvl>'
    '<lvl ilvl="1"><start val="1"/><numFmt val="lowerLetter"/><lvlText val="%1.%2)"/></lvl>'
    '<lvl ilvl="2"><start val="3"/><numFmt val="upperRoman"/><lvlText val="(%3)"/></lvl>'
)
NUMBERING = (
    f'<numbering><abstractNum abstractNumId="7">{LEVELS}</abstractNum>'
    '<abstractNum abstractNumId="8"><lvl ilvl="0"><numFmt val="bullet"/><lvlText val="&#xF0B7;"/></lvl></abstractNum>'
    '<abstractNum abstractNumId="9"><lvl ilvl="0"><start val="1"/><numFmt val="decimal"/><pStyle val="Article"/>'
    '<lvlText val="Article %1"/></lvl></abstractNum>'
    '<num numId="1"><abstractNumId val="7"/></num><num numId="2"><abstractNumId val="8"/></num>'
    '<num numId="3"><abstractNumId val="7"/><lvlOverride ilvl="0"><startOverride val="5"/></lvlOverride></num>'
    '<num numId="4"><abstractNumId val="9"/></num></numbering>'
)
STYLES = (
    '<styles><style styleId="Article"><pPr><numPr><numId val="4"/></numPr></pPr></style>'
    '<style styleId="Sub"><basedOn val="Article"/></style></styles>'
)
LINKS = (
    '<Relationships><Relationship Id="r1" Target="https://example.org/terms" TargetMode="External"/>'
    '<Relationship Id="r2" Target="mailto:ann@example.org" TargetMode="External"/></Relationships>'
)
NAMESPACE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def item(text: str, number: int, level: int = 0, style: str = "") -> str:
    style = f'<pStyle val="{style}"/>' if style else ""
    return f'<p><pPr>{style}<numPr><ilvl val="{level}"/><numId val="{number}"/></numPr></pPr>{run(text)}</p>'


def run(text: str) -> str:
    return f"<r><t>{text}</t></r>"


def field(code: str, text: str) -> str:
    marks = [f'<r><fldChar fldCharType="{kind}"/></r>' for kind in ("begin", "separate", "end")]
    return f"{marks[0]}<r><instrText>{code}</instrText></r>{marks[1]}{run(text)}{marks[2]}"


OPEN = "[changes are open: the text has them as if accepted, and their words are listed at its end]\n"
BODIES: dict[str, tuple[str, str]] = {
    "levels": (
        item("a", 1) + item("b", 1, 1) + item("c", 1, 1) + item("d", 1, 2) + item("e", 1) + item("f", 1, 1),
        "1. a\n1.a) b\n1.b) c\n(III) d\n2. e\n2.a) f\n",
    ),
    "text between the items": (item("a", 1) + f"<p>{run('x')}</p>" + item("b", 1), "1. a\nx\n2. b\n"),
    "a list that begins anew": (item("a", 1) + item("b", 3) + item("c", 3), "1. a\n5. b\n6. c\n"),
    "bullets": (item("a", 2) + item("b", 2, 4), "- a\n- b\n"),
    "no list": (item("a", 0) + item("b", 77), "a\nb\n"),
    "numbered headings": (item("a", 1, style="Heading2"), "## 1. a\n"),
    "by style": (
        f'<p><pPr><pStyle val="Article"/></pPr>{run("a")}</p><p><pPr><pStyle val="Sub"/></pPr>{run("b")}</p>',
        "Article 1 a\nArticle 2 b\n",
    ),
    "what a style was": (
        '<p><pPr><pStyle val="X"/><pPrChange><pPr><numPr><numId val="1"/></numPr></pPr></pPrChange></pPr>'
        f"{run('a')}</p>",
        "a\n",
    ),
    "hyphens": (f"<p>{run('A')}<r><noBreakHyphen/></r>{run('4 co')}<r><softHyphen/></r>{run('op')}</p>", "A-4 coop\n"),
    "symbols": (
        '<p><r><sym font="Wingdings" char="F0FC"/><sym font="Symbol" char="F061"/><sym font="Arial" char="00BD"/>'
        '<sym font="Odd" char="F041"/><sym font="Odd" char="?"/></r></p>',
        "✓α½[Odd F041]\n",
    ),
    "a link": (
        f'<p xmlns:r="{NAMESPACE}">see <hyperlink r:id="r1">{run("our terms")}</hyperlink>{run(".")}</p>',
        "our terms <https://example.org/terms>.\n",
    ),
    "a link that says where it leads": (
        f'<p xmlns:r="{NAMESPACE}"><hyperlink r:id="r2">{run("ann@example.org")}</hyperlink></p>', "ann@example.org\n"
    ),
    "a link within the document": (f'<p><hyperlink anchor="x">{run("below")}</hyperlink></p>', "below\n"),
    "a link as a field": (
        f"<p>{field(' HYPERLINK &quot;https://example.org/a&quot; ', 'here')}{field('PAGE', '7')}</p>",
        "here <https://example.org/a>7\n",
    ),
    "a simple field": (
        f"<p><fldSimple instr='HYPERLINK &quot;https://example.org/a&quot;'>{run('here')}</fldSimple></p>",
        "here <https://example.org/a>\n",
    ),
    "open changes": (
        f'<p>{run("pay in ")}<del author="Bob"><r><delText>30</delText></r></del><ins author="Ann">{run("14")}</ins>'
        f'<ins author="Ann">{run(" work")}</ins>{run(" days")}</p>'
        f'<p><moveFrom author="Ann">{run("gone")}</moveFrom></p>'
        f'<p><pPr><rPr><ins author="Ann"/></rPr></pPr><moveTo author="Ann">{run("gone")}</moveTo></p>',
        f"{OPEN}pay in 14 work days\n\ngone\n\n[open changes]\ndeleted by Bob: 30\ninserted by Ann: 14 work\n"
        "moved away by Ann: gone\nmoved here by Ann: gone\n",
    ),
    "a formula that is deleted": (
        f'<p>{run("left")}<del author="Bob"><oMath><sup>{run("x")}</sup></oMath></del></p>',
        f"{OPEN}left\n\n[open changes]\ndeleted by Bob: x\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_a_document_reads_as_word_shows_it(name: str) -> None:
    body, text = BODIES[name]
    parts = {"document": f"<document>{body}</document>", "numbering": NUMBERING, "styles": STYLES}
    package = zipped(
        {f"word/{part}.xml": content for part, content in parts.items()} | {"word/_rels/document.xml.rels": LINKS}
    )
    assert "".join(read_word(Zip(io.BytesIO(package)))) == text
