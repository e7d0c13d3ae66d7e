"""Charts in documents, and what is raised or spoken in pages and formulas that are not written as one should."""

from __future__ import annotations

import io

import pytest

from filesystem.documents import zipped
from mcp_fs.engine.documents.formats.archives import Zip
from mcp_fs.engine.documents.formats.office import drawings
from mcp_fs.engine.documents.formats.office.drawings import read_drawings
from mcp_fs.engine.documents.formats.office.word import read_word
from mcp_fs.engine.documents.formats.pages import read_html


def read_chart(content: str) -> list[str]:
    package = Zip(io.BytesIO(zipped({"word/charts/chart1.xml": f"<chartSpace>{content}</chartSpace>"})))
    return "".join(read_drawings(package, package.names())).splitlines()


def series(category: str, format_code: str = "General", index: int = 0) -> str:
    point = f'<pt idx="{index}"><v>{{}}</v></pt>'
    cache = f"<formatCode>{format_code}</formatCode>{point.format(category)}"
    return f"<ser><cat><numCache>{cache}</numCache></cat><val>{point.format(5)}</val></ser>"


@pytest.mark.parametrize(
    ("content", "category"),
    [
        (series("45292", "d/m/yy"), "2024-01-01"),
        ('<date1904 val="1"/>' + series("43830", "d/m/yy"), "2024-01-01"),
        ('<date1904 val="0"/>' + series("45292", "d/m/yy"), "2024-01-01"),
        (series("3", '0 "days"'), "3"),
        (series("3", "[Red]0"), "3"),
        (series("3", r"0\d"), "3"),
    ],
)
def test_a_category_is_a_day_where_its_format_and_calendar_say_so(content: str, category: str) -> None:
    assert read_chart(content) == ["[chart]", f" | {category}", " | 5"]


def test_paragraphs_of_a_title_stay_apart() -> None:
    title = "<chart><title><p><r><t>Sales</t></r></p><p><r><t>by quarter</t></r></p></title></chart>"
    assert read_chart(title) == ["[chart: Sales by quarter]"]


def test_series_without_room_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawings, "_MAX_POINTS", 5)
    lines = read_chart(series("a", index=3) + series("b", index=3) + series("c"))
    assert lines == ["[chart]", " |  |  |  | a", " |  |  |  | 5", "[2 series are not shown, the first of 4 points]"]


@pytest.mark.parametrize(
    ("page", "lines"),
    [
        ("<p>see<sup>1<p>10<b>5</b></p>", ["see1", "105"]),
        ("<td>1<sup>2<td>10<b>5</b>", ["1²\t105"]),
        ("<p>10<sup>6<br>7</sup></p>", ["10⁶", "7"]),
        ("<p><ruby>漢<rt>kan</p>text", ["漢", "text"]),
        ("<table><td>漢<rt>kan<td>text", ["漢\ttext"]),
    ],
)
def test_what_is_raised_or_spoken_ends_with_its_paragraph(page: str, lines: list[str]) -> None:
    assert "".join(read_html(page)).splitlines() == lines


def test_the_degree_of_a_root_is_no_factor() -> None:
    run = "<r><t>{}</t></r>".format
    roots = "".join(f"<rad><deg>{degree}</deg><e>{run(8)}</e></rad>" for degree in (run(3), ""))
    document = f"<document><p><oMath>{run('x=')}{roots}</oMath></p></document>"
    assert "".join(read_word(Zip(io.BytesIO(zipped({"word/document.xml": document}))))) == "x=³√8√8\n"
