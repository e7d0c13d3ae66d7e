"""A notebook is edited by the text as which it is read: in the cell, and its file stays a notebook."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mcp import Client
from mcp_types import TextContent

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Problem
from mcp_fs.engine.changing.notebook_edit import Notebook, apply_patch, replace_in_cells, substitute_in_cells
from mcp_fs.engine.changing.patch import apply_hunks, parse_patch
from mcp_fs.engine.changing.replacing.substitution import Substitution
from mcp_fs.engine.documents.formats.notebook import Cell, notebook_cells
from mcp_fs.engine.text.edit import Replacement
from mcp_fs.server import build
from mcp_fs.settings import Settings

pytestmark = pytest.mark.anyio

CODE = "import os\n\nprint('one \"two\" \\\\ three')\n"


def cell(source: str | list[str], kind: str = "code", *outputs: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {"cell_type": kind, "id": "x1", "metadata": {"tags": ["é", 1.50]}, "source": source}
    if kind == "code":
        made |= {"execution_count": 3, "outputs": list(outputs)}
    return made


def stream(text: str) -> dict[str, Any]:
    return {"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)}


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def book(*cells: dict[str, Any]) -> dict[str, Any]:
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return {"cells": list(cells), "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}


USUAL = book(
    cell(lines("# Title\n\nText"), "markdown"),
    cell(lines(CODE), "code", stream("42 answers\n")),
    cell([], "code"),
    cell("x = 42\nsame = 1", "code", stream("x = 1\n")),
    cell(lines("same = 1\ny = 2"), "code"),
)

# How files of notebooks are written: by Jupyter, by scripts, escaped, on one line.
SPELLINGS = {
    "jupyter": lambda value: json.dumps(value, indent=1, ensure_ascii=False, sort_keys=True) + "\n",
    "two blanks": lambda value: json.dumps(value, indent=2, ensure_ascii=False),
    "tabs": lambda value: json.dumps(value, indent="\t", ensure_ascii=False) + "\n\n",
    "escaped": lambda value: json.dumps(value, indent=1, ensure_ascii=True),
    "one line": lambda value: json.dumps(value),
    "compact": lambda value: json.dumps(value, separators=(",", ":"), ensure_ascii=False),
    "windows": lambda value: json.dumps(value, indent=1, ensure_ascii=False).replace("\n", "\r\n"),
}


def check_schema(text: str) -> dict[str, Any]:
    """What nbformat demands of the parts that an edit could spoil."""
    value: dict[str, Any] = json.loads(text)
    assert value["nbformat"] == 4 and isinstance(value["metadata"], dict)
    for one in value["cells"]:
        source = one["source"]
        assert isinstance(source, str) or all(isinstance(line, str) for line in source)
        assert one["cell_type"] in ("code", "markdown", "raw")
    return value


def without_sources(value: dict[str, Any]) -> dict[str, Any]:
    copy = json.loads(json.dumps(value))
    for one in copy["cells"]:
        one["source"] = type(one["source"])()
    return copy


def sources(value: dict[str, Any]) -> list[str]:
    return ["".join(one["source"]) for one in value["cells"]]


async def call(folder: Path, tool: str, **arguments: object) -> tuple[bool, str]:
    async with Client(build(Settings(folders=(str(folder),)))) as client:
        result = await client.call_tool(tool, arguments)
    return bool(result.is_error), "".join(block.text for block in result.content if isinstance(block, TextContent))


NEW = "print(\"quoted 'text'\")\npath = 'C:\\\\new'\n# 中文 \U0001f600 \u2028 é"


@pytest.mark.diagonal
@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("by", ["edit_file", "replace_text", "edit_files", "envelope"])
async def test_a_text_is_edited_in_its_cell(tmp_path: Path, spelling: str, by: str) -> None:
    path = tmp_path / "a.ipynb"
    path.write_bytes(SPELLINGS[spelling](USUAL).encode())
    before = path.read_bytes().decode()
    old = "import os\n\nprint('one \"two\" \\\\ three')"
    match by:
        case "edit_file":
            call_of: dict[str, Any] = {"path": "a.ipynb", "edits": [{"old_text": old, "new_text": NEW}]}
        case "replace_text":
            call_of = {"replacements": {old: NEW}, "glob": "*.ipynb"}
        case "edit_files":
            seen = (await call(tmp_path, "read_text", path="a.ipynb"))[1].partition("\n")[2]
            changed = seen.replace(old, NEW).split("\n")
            diff = difflib.unified_diff(seen.split("\n"), changed, "a/a.ipynb", "b/a.ipynb", lineterm="")
            call_of = {"patch": "\n".join(diff) + "\n"}
        case _:
            gone = "".join(f"-{line}\n" for line in old.split("\n"))
            come = "".join(f"+{line}\n" for line in NEW.split("\n"))
            call_of = {"patch": f"*** Begin Patch\n*** Update File: a.ipynb\n@@\n{gone}{come}*** End Patch\n"}
    tool = "edit_files" if by == "envelope" else by
    failed, said = await call(tmp_path, tool, **call_of, dry_run=True)
    assert not failed and path.read_bytes().decode() == before, said
    assert "import os" in said and "quoted 'text'" in said and '\\"' not in said, said
    failed, said = await call(tmp_path, tool, **call_of)
    assert not failed, said
    after = path.read_bytes().decode()
    expected = json.loads(json.dumps(USUAL))
    expected["cells"][1]["source"] = (NEW + "\n").splitlines(keepends=True)
    assert check_schema(after) == expected
    # Jupyter writes such a file exactly so; what is escaped or on one line stays that.
    assert after == SPELLINGS[spelling](expected)


@pytest.mark.parametrize("spelling", SPELLINGS)
async def test_an_empty_cell_is_filled_in_the_manner_of_the_file(tmp_path: Path, spelling: str) -> None:
    path = tmp_path / "a.ipynb"
    for value in (USUAL, book(cell([], "code"))):
        path.write_bytes(SPELLINGS[spelling](value).encode())
        number = [not source for source in sources(value)].index(True)
        header = f"[cell {number + 1}, code]\n"
        edit = {"old_text": header, "new_text": f"{header}a = 1\nb = 2"}
        failed, said = await call(tmp_path, "edit_file", path="a.ipynb", edits=[edit])
        assert not failed, said
        expected = json.loads(json.dumps(value))
        expected["cells"][number]["source"] = ["a = 1\n", "b = 2"]
        assert path.read_bytes().decode() == SPELLINGS[spelling](expected)
        assert check_schema(path.read_text("utf-8")) == expected


@pytest.fixture
def usual(tmp_path: Path) -> Path:
    path = tmp_path / "a.ipynb"
    path.write_text(SPELLINGS["jupyter"](USUAL), "utf-8")
    return path


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ([("42 answers", "x")], "only in what a cell has put out"),
        ([("same = 1", "x")], "2 times, at lines 14, 18"),
        ([("Text\n[cell 2, code]\nimport os", "x")], "in no single cell"),
        ([("[cell 4, code]\nx = 42", "x")], "changes the line before a cell"),
        ([("nothing like it", "x")], "not in `a.ipynb`"),
        ([("x = 42", "x = 42")], "by the same text"),
        ([('"cell_type": "code"', "x")], "not in `a.ipynb`"),
        ([("", "x")], "empty `old_text`"),
    ],
)
async def test_what_is_in_no_cell_or_several_is_refused(
    usual: Path, edits: Sequence[tuple[str, str]], said: str
) -> None:
    before = usual.read_bytes()
    wanted = [{"old_text": old, "new_text": new} for old, new in edits]
    failed, answer = await call(usual.parent, "edit_file", path="a.ipynb", edits=wanted)
    assert failed and said in answer, answer
    assert usual.read_bytes() == before


async def test_lines_of_messages_are_those_that_are_read(usual: Path) -> None:
    _, seen = await call(usual.parent, "read_text", path="a.ipynb", start_line=14, end_line=14)
    assert seen.rstrip().endswith("\nsame = 1"), seen


async def test_the_line_before_a_cell_tells_which_is_meant(usual: Path) -> None:
    edit = {"old_text": "[cell 5, code]\nsame = 1", "new_text": "[cell 5, code]\nother = 1"}
    top = {"old_text": "[cell 2, code]\n", "new_text": "[cell 2, code]\nimport sys\n"}
    failed, said = await call(usual.parent, "edit_file", path="a.ipynb", edits=[edit, top])
    assert not failed, said
    found = sources(json.loads(usual.read_text("utf-8")))
    assert found[3:] == ["x = 42\nsame = 1", "other = 1\ny = 2"] and found[1] == "import sys\n" + CODE


async def test_all_places_are_replaced_in_all_cells(usual: Path) -> None:
    edit = {"old_text": "same = 1", "new_text": 'same = "1"', "replace_all": True}
    failed, said = await call(usual.parent, "edit_file", path="a.ipynb", edits=[edit])
    assert not failed, said
    expected = [source.replace("same = 1", 'same = "1"') for source in sources(USUAL)]
    value = check_schema(usual.read_text("utf-8"))
    assert sources(value) == expected and without_sources(value) == without_sources(USUAL)


async def test_an_undo_brings_the_bytes_back(usual: Path) -> None:
    before = usual.read_bytes()
    async with Client(build(Settings(folders=(str(usual.parent),)))) as client:
        edit = {"old_text": "y = 2", "new_text": "y = 3"}
        await client.call_tool("edit_file", {"path": "a.ipynb", "edits": [edit]})
        assert usual.read_bytes() != before
        steps = await client.call_tool("undo_changes", {})
        (block,) = steps.content
        assert isinstance(block, TextContent)
        step = block.text.splitlines()[1].split()[0]
        await client.call_tool("undo_changes", {"step": step, "dry_run": False})
    assert usual.read_bytes() == before


@pytest.mark.parametrize(
    ("tool", "arguments", "why"),
    [
        ("write_file", {"path": "a.ipynb", "content": "x = 1", "append": True}, "whose end is not the end of its file"),
        ("write_file", {"path": "a.ipynb", "content": "x = 1", "overwrite": True}, "would not be a notebook"),
        ("write_file", {"path": "new.ipynb", "content": "x = 1"}, "would not be a notebook"),
        ("write_file", {"path": "new.ipynb", "content": "x", "append": True}, "would not be a notebook"),
        ("edit_files", {"patch": "--- /dev/null\n+++ b/new.ipynb\n@@ -0,0 +1 @@\n+x\n"}, "would not be a notebook"),
        ("copy_file", {"targets": {"a.txt:1-1": "new.ipynb"}}, "would not be a notebook"),
        ("copy_file", {"targets": {"a.ipynb:1-2": "new.txt"}}, "taken out of it"),
        (
            "edit_files",
            {"patch": "--- a/a.ipynb\n+++ b/a.ipynb\n@@ -10,2 +10,2 @@\n [output]\n-42 answers\n+43 answers\n"},
            "in no cell",
        ),
        (
            "edit_files",
            {"patch": '--- a/a.ipynb\n+++ b/a.ipynb\n@@ -1,2 +1 @@\n {\n- "cells": [\n'},
            "is not a notebook",
        ),
    ],
)
async def test_what_would_break_a_notebook_is_refused(
    usual: Path, tool: str, arguments: dict[str, Any], why: str
) -> None:
    (usual.parent / "a.txt").write_text("x\n")
    before = {path.name: path.read_bytes() for path in usual.parent.iterdir()}
    failed, said = await call(usual.parent, tool, **arguments)
    assert failed and why in said, said
    assert {path.name: path.read_bytes() for path in usual.parent.iterdir()} == before


async def test_a_patch_of_the_file_itself_is_applied(usual: Path) -> None:
    before = usual.read_text("utf-8")
    after = before.replace('"execution_count": 3', '"execution_count": null')
    diff = "".join(difflib.unified_diff(lines(before), lines(after), "a/a.ipynb", "b/a.ipynb"))
    failed, said = await call(usual.parent, "edit_files", patch=diff)
    assert not failed and usual.read_text("utf-8") == after, said


async def test_a_whole_notebook_is_written_and_deleted(usual: Path) -> None:
    text = SPELLINGS["tabs"](USUAL)
    failed, said = await call(usual.parent, "write_file", path="a.ipynb", content=text, overwrite=True)
    assert not failed and usual.read_text("utf-8") == text, said
    patch = "*** Begin Patch\n*** Delete File: a.ipynb\n*** End Patch\n"
    failed, said = await call(usual.parent, "edit_files", patch=patch)
    assert not failed and not usual.exists(), said


async def test_older_notebooks_are_edited_too(tmp_path: Path) -> None:
    cells = [{"cell_type": "code", "input": ["a = 1"], "outputs": [], "language": "python"}]
    value: dict[str, Any] = {"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": [{"cells": cells}]}
    path = tmp_path / "a.ipynb"
    path.write_text(json.dumps(value, indent=1))
    failed, said = await call(tmp_path, "edit_file", path="a.ipynb", old_text="a = 1", new_text='a = "\n"')
    assert not failed, said
    cells[0]["input"] = ['a = "\n', '"']
    assert json.loads(path.read_text()) == value


async def test_what_is_no_notebook_is_edited_as_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "a.ipynb"
    path.write_text(SPELLINGS["jupyter"](USUAL).replace(' "cells"', '<<<<<<< HEAD\n "cells"'), "utf-8")
    failed, said = await call(tmp_path, "edit_file", path="a.ipynb", old_text="<<<<<<< HEAD\n", new_text="")
    assert not failed and path.read_text("utf-8") == SPELLINGS["jupyter"](USUAL), said


MAIL = (
    "From: a@example.org\nSubject: hi\nContent-Type: text/plain; charset=utf-8\n"
    "Content-Transfer-Encoding: quoted-printable\n\nDear =C3=A9l=C3=A8ve\n"
)
PDF = "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[]/Count 0>>endobj\ntrailer<<>>\n"


@pytest.mark.parametrize(("name", "text"), [("a.eml", MAIL), ("A.EML", MAIL), ("a.pdf", PDF)])
async def test_what_is_stored_in_another_form_is_not_edited(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    first, old = text.split("\n")[0], "Subject" if "Subject" in text else "Catalog"
    calls: dict[str, dict[str, Any]] = {
        "edit_file": {"path": name, "edits": [{"old_text": old, "new_text": "x"}]},
        "edit_files": {"patch": f"--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-{first}\n+x\n"},
        "write_file": {"path": name, "content": "x", "append": True},
    }
    for tool, arguments in calls.items():
        failed, said = await call(tmp_path, tool, **arguments)
        assert failed and "stored in another form" in said and ".md" in said, said
    failed, said = await call(tmp_path, "replace_text", replacements={old: "x"}, glob="*")
    assert not failed and "not changed" in said, said
    assert path.read_text() == text
    failed, said = await call(
        tmp_path, "edit_files", patch=f"*** Begin Patch\n*** Delete File: {name}\n*** End Patch\n"
    )
    assert not failed and not path.exists(), said


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.rtf", "one, by mistake\n"),
        ("a.svg", "<svg>one</svg>"),
        ("a.html", "<p>one</p>"),
        ("a.ps", "%!PS\n(one) show\n"),
        ("a.xls", "<table><tr><td>one</td></tr></table>"),
        ("a.fodt", "<office>one</office>"),
        ("a.db", "one IN A 127.0.0.1\n"),
        ("a.docx", "one, by mistake\n"),
    ],
)
async def test_what_is_read_as_it_is_stored_is_edited(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    failed, said = await call(tmp_path, "edit_file", path=name, old_text="one", new_text="two")
    assert not failed and (tmp_path / name).read_text() == text.replace("one", "two"), said


TEXTS = st.text(st.sampled_from("ab \n\"'\\\t{}[]/é中\U0001f600\u2028\x0c\r"), max_size=12)
CELLS = st.tuples(TEXTS, st.booleans(), st.sampled_from(["code", "markdown", "raw"]), TEXTS)


def made(parts: Sequence[tuple[str, bool, str, str]]) -> dict[str, Any]:
    return book(
        *(cell(lines(source) if as_list else source, kind, stream(put_out)) for source, as_list, kind, put_out in parts)
    )


def read_form(text: str) -> Sequence[Cell]:
    cells = notebook_cells(text)
    assert cells is not None
    return cells


def check_others(before: dict[str, Any], after: Notebook, changed: set[int]) -> None:
    value = check_schema(after.json)
    assert without_sources(value) == without_sources(before)
    kept = [index for index in range(len(before["cells"])) if index not in changed]
    assert [value["cells"][index] for index in kept] == [before["cells"][index] for index in kept]
    assert list(after.cells) == list(read_form(after.json))


@settings(max_examples=150, deadline=None)
@given(st.lists(CELLS, min_size=1, max_size=4), st.sampled_from(sorted(SPELLINGS)), st.data())
def test_random_edits_leave_a_notebook_and_its_other_cells(
    parts: Sequence[tuple[str, bool, str, str]], spelling: str, data: st.DataObject
) -> None:
    value = made(parts)
    text = SPELLINGS[spelling](value)
    opened = Notebook.parse(text, text)
    assert opened is not None
    index = data.draw(st.integers(0, len(parts) - 1))
    source = parts[index][0]
    begin = data.draw(st.integers(0, len(source)))
    end = data.draw(st.integers(begin, len(source)))
    old, new = source[begin:end], data.draw(TEXTS)
    header = f"[cell {index + 1}, {parts[index][2]}]\n"
    for given_old, given_new in ((old, new), (header + old, header + new)):
        try:
            after = replace_in_cells(opened, [Replacement(given_old, given_new)], "`a`", CancelToken())
        except Problem:
            continue
        check_others(
            value, after, {number for number in range(len(parts)) if after.cells[number] != opened.cells[number]}
        )
        assert sum(one != other for one, other in zip(after.cells, opened.cells, strict=True)) <= 1
    if old and old != new:
        changed, _ = substitute_in_cells(opened, Substitution({old: new}).compile(CancelToken()))
        check_others(value, changed, set(range(len(parts))))


@settings(max_examples=150, deadline=None)
@given(st.lists(CELLS, min_size=1, max_size=4), st.sampled_from(sorted(SPELLINGS)), st.data())
@example([("a\n", True, "code", "a\n"), ("", False, "code", "")], "jupyter", None)
def test_random_patches_change_what_is_read_and_nothing_else(
    parts: Sequence[tuple[str, bool, str, str]], spelling: str, data: st.DataObject | None
) -> None:
    value = made(parts)
    text = SPELLINGS[spelling](value)
    opened = Notebook.parse(text, text)
    assert opened is not None
    seen = opened.text.split("\n")
    at = 1 if data is None else data.draw(st.integers(0, len(seen)))
    new_lines = (
        ["q", 'r"\\']
        if data is None
        else data.draw(st.lists(TEXTS.map(lambda one: "q" + one.replace("\n", "")), max_size=3))
    )
    gone = 1 if data is None else data.draw(st.integers(0, 2))
    changed = [*seen[:at], *new_lines, *seen[at + gone :]]
    diff = "\n".join(difflib.unified_diff(seen, changed, "a/a", "b/a", lineterm="")) + "\n"
    try:
        (patch,) = parse_patch(diff)
        after = apply_patch(opened, lambda old: apply_hunks(old, patch, "`a`", CancelToken()), "`a`")
    except Problem:
        return
    check_others(value, after, {number for number in range(len(parts)) if after.cells[number] != opened.cells[number]})
    assert after.text == apply_hunks(opened.text, patch, "`a`", CancelToken())


async def test_outputs_read_as_they_look_in_the_end(tmp_path: Path) -> None:
    """Of a progress bar only the last state; of a page without text at least that it is there."""
    progress = "\x1b[31mred\x1b[0m\n 10%|#   |\r 50%|##  |\r100%|####|\nloss 0.1\r\n"
    outputs = [
        {"output_type": "stream", "name": "stdout", "text": progress},
        {"output_type": "display_data", "metadata": {}, "data": {"text/html": "<b>table</b>"}},
        {"output_type": "display_data", "metadata": {}, "data": {"text/html": "<b>t</b>", "text/plain": "t"}},
    ]
    cell = {"cell_type": "code", "metadata": {}, "execution_count": 1, "source": "train()", "outputs": outputs}
    (tmp_path / "n.ipynb").write_text(json.dumps({"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": [cell]}))
    failed, said = await call(tmp_path, "read_text", path="n.ipynb")
    shown = "[output]\nred\n100%|####|\nloss 0.1\n[output: text/html left out]\n[output]\nt"
    assert not failed and said.rstrip("\n").endswith(f"[cell 1, code]\ntrain()\n{shown}"), said
