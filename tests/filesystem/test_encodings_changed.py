"""Files of mixed encodings become files of one, in one call, and back."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from filesystem.reading import fill, served
from filesystem.tool_calls import Tools
from mcp_batteries.errors import Conflict, Invalid, Problem, Refused
from mcp_fs.engine.changing.replacing import replace
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
        "[would convert 3 of 6 files to utf-8; old encodings are guessed: look whether the words in brackets are "
        'right; a wrong one can be named, as encoding="cp1250>utf-8"; '
        "binary, not changed: x.bin; nothing was written: repeat with dry_run=false]",
        "a.txt from cp1252 (Größe)",
        "d/c.txt from cp1252 (Größe)",
        "d/marked.txt from utf-8 with BOM",
    ]
    assert {path: path.read_bytes() for path in mixed.rglob("*.*")} == before
    done = (await tools.replace_text(glob="*.txt", encoding="UTF-8")).text()
    assert done.splitlines()[0].startswith("[converted 3 of 5 files to utf-8; old encodings are guessed")
    for name in ("a.txt", "d/b.txt", "d/c.txt", "d/marked.txt"):
        assert (mixed / name).read_bytes() == _GERMAN.encode(), name
    assert (await tools.replace_text(glob="*.txt", encoding="utf-8")).text() == "[converted 0 of 5 files to utf-8]"
    assert (await tools.replace_text(glob="*.md", encoding="utf-8")).text() == "[converted 0 of 0 files to utf-8]"
    await tools.replace_text(glob="a.txt", encoding="windows-1252")
    assert (mixed / "a.txt").read_bytes() == _GERMAN.encode("cp1252")


@pytest.mark.anyio
async def test_a_long_list_begins_with_how_many_had_which_encoding(tmp_path: Path) -> None:
    for number in range(80):
        (tmp_path / f"{number}.txt").write_bytes("Größe".encode("utf-16"))
        (tmp_path / f"{number}.md").write_bytes(_GERMAN.encode("utf-8-sig"))
    (tmp_path / "0.md").write_bytes(_GERMAN.encode("cp1252"))
    plan = (await Tools(served(tmp_path)).replace_text(glob="*", encoding="utf-8", dry_run=True)).text()
    label = "utf-16-le with BOM" if sys.byteorder == "little" else "utf-16-be with BOM"
    head = f"[would convert 160 of 160 files to utf-8; from {label} (80), utf-8 with BOM (79), cp1252 (1); "
    assert plan.startswith(head), plan[:300]


@pytest.mark.anyio
async def test_of_files_whose_old_encoding_is_named_a_few_are_named(tmp_path: Path) -> None:
    fill(tmp_path, {f"{folder}/{number}.txt": _GERMAN.encode("cp1252") for folder in "de" for number in range(9)})
    answer = (await Tools(served(tmp_path)).replace_text(glob="*", encoding="cp1252>utf-8")).text()
    assert answer.splitlines() == [
        "[converted 18 of 18 files to utf-8; from cp1252 (18)]",
        *(f"d/{number}.txt from cp1252" for number in range(5)),
        "and 13 more: 4 in d/, 9 in e/",
    ]


@pytest.mark.anyio
async def test_texts_are_replaced_on_the_way(mixed: Path) -> None:
    tools = Tools(served(mixed))
    answer = (await tools.replace_text({"Größe": "Maß"}, "d/*.txt", encoding="utf-8")).text()
    assert answer.splitlines()[0] == (
        "[replaced 3 places in 3 files; converted 2 of 3 files to utf-8; "
        "old encodings are guessed: look whether the words in brackets are right]"
    )
    assert "d/c.txt from cp1252" in answer
    assert (mixed / "d/c.txt").read_bytes() == _GERMAN.replace("Größe", "Maß").encode()


@pytest.mark.anyio
async def test_what_an_encoding_lacks_is_named_and_nothing_changes(tmp_path: Path) -> None:
    fill(tmp_path, {"a.txt": "größer\n", "b.txt": "5 → 6\n"})
    with pytest.raises(Invalid, match=r"`→` of `b.txt` can't be written in cp1252; nothing was changed"):
        await Tools(served(tmp_path)).replace_text(glob="*.txt", encoding="cp1252")
    assert (tmp_path / "a.txt").read_bytes() == "größer\n".encode()


@pytest.mark.anyio
async def test_a_wrong_guess_and_what_stays_can_be_seen(tmp_path: Path) -> None:
    notebook = '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'
    files: dict[str, str | bytes] = {
        "n.ipynb": notebook,
        "damaged.txt": "größer ".encode() * 9 + b"\xff",
        "mac.txt": "Привет мир! Это русский текст.\n".encode("mac_cyrillic"),
        "polish.txt": "Zażółć gęślą jaźń, Łódź świętość\n".encode("cp1250"),
        "wide.txt": "größer\n".encode("utf-16"),
    }
    fill(tmp_path, files)
    answer = (await Tools(served(tmp_path)).replace_text(glob="*", encoding="utf-8-sig")).text()
    assert answer.splitlines() == [
        "[converted 3 of 5 files to utf-8 with BOM; old encodings are guessed: look whether the words in brackets are "
        "right; not all text in one encoding, so not changed: damaged.txt; "
        "notebooks, which are always UTF-8, so not converted: n.ipynb]",
        "mac.txt from cp1251 (Џривет)",
        "polish.txt from cp1250 (Zażółć)",
        "wide.txt from utf-16-le with BOM",
    ]
    assert (tmp_path / "n.ipynb").read_text() == notebook
    assert (tmp_path / "damaged.txt").read_bytes() == files["damaged.txt"]


@pytest.mark.anyio
async def test_what_is_not_told_from_its_new_bytes_is_named(tmp_path: Path) -> None:
    fill(tmp_path, {"a.txt": "größer\n" * 20, "b.txt": "日本語の文章です。\n" * 20})
    for encoding, is_told in (("utf-16", True), ("utf-16-le", False)):
        plan = (await Tools(served(tmp_path)).replace_text(glob="*", encoding=encoding, dry_run=True)).text()
        assert ("once converted, read as another encoding or as binary: b.txt;" in plan) != is_told, plan


@pytest.mark.anyio
async def test_an_old_encoding_that_is_named_is_not_guessed(tmp_path: Path) -> None:
    polish = "Zażółć gęślą jaźń\n"
    files: dict[str, str | bytes] = {"a.txt": polish.encode("cp1250"), "b.txt": polish, "c.txt": "plain\n"}
    escaped = "日本\n".encode("iso2022_jp")
    fill(tmp_path, files)
    tools = Tools(served(tmp_path))
    plan = (await tools.replace_text(glob="*", encoding="cp1250>utf-8", dry_run=True)).text()
    assert plan.splitlines()[1:] == ["a.txt from cp1250"] and "guessed" not in plan, plan
    assert "utf-8 by their bytes, so not read in cp1250: b.txt; nothing was written" in plan, plan
    await tools.replace_text({"jaźń": "noc"}, "*", encoding="windows-1250 > utf-8")
    new = polish.replace("jaźń", "noc").encode()
    assert [(tmp_path / name).read_bytes() for name in sorted(files)] == [new, new, b"plain\n"]
    (tmp_path / "d.txt").write_bytes(escaped)
    for name in ("nonsense", "base64", "punycode", "unicode_escape", "", "undefined"):
        with pytest.raises(Invalid, match=f"`{name}` is not known"):
            await tools.replace_text(glob="*", encoding=f"{name}>utf-8")
    with pytest.raises(Invalid, match=r"`a\\0` is not known"):
        await tools.replace_text(glob="*", encoding="a\0>utf-8")
    plan = (await tools.replace_text(glob="*", encoding="iso2022_jp>utf-8", dry_run=True)).text()
    assert "utf-8 by their bytes, so not read in iso2022_jp: a.txt, b.txt, d.txt" in plan, plan


@pytest.mark.anyio
async def test_a_file_that_gets_other_bytes_meanwhile_is_not_converted(
    mixed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_files = replace.change_files

    def change_late(*arguments: Any, **named: Any) -> Any:
        (mixed / "d/c.txt").write_bytes("größer ".encode() * 9 + b"\xff")
        return change_files(*arguments, **named)

    monkeypatch.setattr(replace, "change_files", change_late)
    with pytest.raises(Conflict, match=r"`d/c.txt` was changed by somebody else"):
        await Tools(served(mixed)).replace_text(glob="*.txt", encoding="utf-8")
    assert (mixed / "a.txt").read_bytes() == _GERMAN.encode("cp1252")


@pytest.mark.skipif(sys.platform == "win32", reason="has no modes")
@pytest.mark.anyio
async def test_a_dry_run_fails_as_the_run_does(mixed: Path) -> None:
    (mixed / "d/c.txt").chmod(0o444)
    tools = Tools(served(mixed))
    for dry_run in (True, False):
        with pytest.raises(Refused, match=r"`d/c.txt` is read-only .* nothing was changed"):
            await tools.replace_text(glob="*", encoding="utf-8", dry_run=dry_run)
    assert (mixed / "a.txt").read_bytes() == _GERMAN.encode("cp1252")


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
        ("UTF-8 BOM", "utf-8 with BOM"),
        ("utf8bom", "utf-8 with BOM"),
        ("utf8-sig", "utf-8 with BOM"),
        ("utf_8_sig", "utf-8 with BOM"),
        ("utf-16", "utf-16-le with BOM"),
        ("UTF-16BE-BOM", "utf-16-be with BOM"),
        ("windows-1252", "cp1252"),
        ("ISO-8859-1", "latin-1"),
        ("Shift_JIS", "shift_jis"),
    ],
)
def test_an_encoding_goes_by_the_names_that_people_know(name: str, meant: str) -> None:
    assert str(parse_encoding(name)) == meant


@pytest.mark.parametrize("name", ["", "bom", "punycode", "base64", "cp1252 with BOM", "nonsense", "utf-8\0", "\ud800"])
def test_an_encoding_in_which_no_text_is_found_is_refused(name: str) -> None:
    with pytest.raises(Invalid, match="is none that text is written in"):
        parse_encoding(name)
