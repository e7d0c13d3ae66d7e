"""Files of mixed encodings become files of one, in one call, and back."""

from __future__ import annotations

from pathlib import Path

import pytest

from filesystem.reading import fill, served
from filesystem.tool_calls import Tools
from mcp_batteries.errors import Invalid, Problem
from mcp_fs.engine.text.encodings import parse_encoding

_GERMAN = "Größe – über die Brücke\r\nUmlaute\n"


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    fill(
        tmp_path,
        {
            "a.txt": _GERMAN.encode("cp1252"),
            "d/b.txt": _GERMAN.encode(),
            "d/c.txt": _GERMAN.encode("cp1252"),
            "d/marked.txt": _GERMAN.encode("utf-8-sig"),
            "plain.txt": b"plain\n",
            "x.bin": bytes(range(256)),
        },
    )
    return tmp_path


@pytest.mark.anyio
async def test_a_folder_is_converted_in_one_call(mixed: Path) -> None:
    tools = Tools(served(mixed))
    before = {path: path.read_bytes() for path in mixed.rglob("*.*")}
    plan = (await tools.replace_text(glob="*", encoding="utf-8", dry_run=True)).text()
    assert plan.splitlines() == [
        "[would convert 3 files to utf-8; nothing was written: repeat with dry_run=false]",
        "a.txt from cp1252",
        "d/c.txt from cp1252",
        "d/marked.txt from utf-8 with BOM",
    ]
    assert {path: path.read_bytes() for path in mixed.rglob("*.*")} == before
    done = (await tools.replace_text(glob="*.txt", encoding="UTF-8")).text()
    assert done.splitlines()[0] == "[converted 3 files to utf-8]"
    for name in ("a.txt", "d/b.txt", "d/c.txt", "d/marked.txt"):
        assert (mixed / name).read_bytes() == _GERMAN.encode(), name
    assert (await tools.replace_text(glob="*.txt", encoding="utf-8")).text() == "[converted 0 files to utf-8]"
    await tools.replace_text(glob="a.txt", encoding="windows-1252")
    assert (mixed / "a.txt").read_bytes() == _GERMAN.encode("cp1252")


@pytest.mark.anyio
async def test_texts_are_replaced_on_the_way(mixed: Path) -> None:
    tools = Tools(served(mixed))
    answer = (await tools.replace_text({"Größe": "Maß"}, "d/*.txt", encoding="utf-8")).text()
    assert answer.splitlines()[0] == "[replaced 3 places in 3 files; converted 2 files to utf-8]"
    assert "d/c.txt from cp1252" in answer
    assert (mixed / "d/c.txt").read_bytes() == _GERMAN.replace("Größe", "Maß").encode()


@pytest.mark.anyio
async def test_what_an_encoding_lacks_is_named_and_nothing_changes(tmp_path: Path) -> None:
    fill(tmp_path, {"a.txt": "größer\n", "b.txt": "5 → 6\n"})
    with pytest.raises(Invalid, match=r"`→` of `b.txt` can't be written in cp1252; nothing was changed"):
        await Tools(served(tmp_path)).replace_text(glob="*.txt", encoding="cp1252")
    assert (tmp_path / "a.txt").read_bytes() == "größer\n".encode()


@pytest.mark.anyio
async def test_neither_texts_nor_an_encoding_is_nothing_to_do(tmp_path: Path) -> None:
    fill(tmp_path, {"a.txt": "x"})
    with pytest.raises(Problem, match="names 0 texts"):
        await Tools(served(tmp_path)).replace_text(glob="*.txt")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("UTF-8", "utf-8"),
        ("utf-8-sig", "utf-8 with BOM"),
        ("utf-8 with BOM", "utf-8 with BOM"),
        ("utf-16", "utf-16-le with BOM"),
        ("windows-1252", "cp1252"),
        ("ISO-8859-1", "latin-1"),
        ("Shift_JIS", "shift_jis"),
    ],
)
def test_an_encoding_goes_by_the_names_that_people_know(name: str, meant: str) -> None:
    assert str(parse_encoding(name)) == meant


@pytest.mark.parametrize("name", ["", "punycode", "base64", "cp1252 with BOM", "nonsense"])
def test_an_encoding_in_which_no_text_is_found_is_refused(name: str) -> None:
    with pytest.raises(Invalid, match="is none that text is written in"):
        parse_encoding(name)
