"""One text replaced in many files, in all or none, and shown; and names that other servers use."""

from __future__ import annotations

import os
import random
import re
import tracemalloc
import unicodedata
import zipfile
from pathlib import Path
from typing import Literal

import pytest
from mcp import Client
from mcp_types import TextContent

from mcp_batteries.concurrency.cancellation import CancelToken, WorkCancelled
from mcp_fs.engine.changing import file_edits
from mcp_fs.engine.changing.replacing.near_matches import NearMatches
from mcp_fs.engine.changing.replacing.substitution import Substitution
from mcp_fs.engine.journal.states import MAX_HASHED_BYTES
from mcp_fs.engine.text.encodings import MAX_EDIT_BYTES
from mcp_fs.server import build
from mcp_fs.settings import Settings

pytestmark = pytest.mark.anyio


async def call(folder: Path, tool: str, **arguments: object) -> tuple[bool, str]:
    async with Client(build(Settings(folders=(str(folder),)))) as client:
        result = await client.call_tool(tool, arguments)
        return bool(result.is_error), "".join(
            block.text for block in result.content if isinstance(block, TextContent)
        ).removesuffix("\n")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for number in range(17):
        file = tmp_path / f"package/module_{number:02}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"import old_name\r\n\r\nold_name(1)\r\nold_names = old_name_2\r\n")
    (tmp_path / "package/latin.py").write_bytes("é = old_name\n".encode("latin-1"))
    (tmp_path / "package/damaged.py").write_bytes("ü\n".encode() * 50 + b"\xff old_name\n")
    (tmp_path / "package/none.py").write_text("other\n")
    (tmp_path / "package/binary.py").write_bytes(b"\0\1old_name\xff")
    (tmp_path / "notes.md").write_text("old_name\n")
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def test_a_function_is_renamed_in_one_call_that_says_at_which_lines(project: Path) -> None:
    before = contents(project)
    ask = {"old_text": "old_name", "new_text": "new_name", "glob": "*.py", "by": "word"}
    failed, seen = await call(project, "replace_text", **ask, dry_run=True)
    assert not failed
    assert contents(project) == before
    assert seen.startswith(
        "[would replace 36 places in 19 files; left as they are: 17 `old_names`, 17 `old_name_2`; "
        "nothing was written: repeat with dry_run=false]\n"
    )
    assert "\n module_00.py\n1:import [-old_name-]{+new_name+}\n3:[-old_name-]{+new_name+}(1)\n" in seen
    failed, done = await call(project, "replace_text", **ask)
    assert not failed
    assert done.startswith("[replaced 36 places in 19 files; left as they are: 17 `old_names`, 17 `old_name_2`]\n")
    assert "\npackage/\n damaged.py: line 51\n latin.py: line 1\n module_00.py: lines 1, 3\n" in done
    assert len(done) < 600
    after = contents(project)
    assert after["package/module_05.py"] == b"import new_name\r\n\r\nnew_name(1)\r\nold_names = old_name_2\r\n"
    assert after["package/latin.py"] == "é = new_name\n".encode("latin-1")
    assert after["package/damaged.py"] == "ü\n".encode() * 50 + b"\xff new_name\n"
    unchanged = ("package/none.py", "package/binary.py", "notes.md")
    assert {name: after[name] for name in unchanged} == {name: before[name] for name in unchanged}


async def test_all_or_none(project: Path) -> None:
    (project / "package/module_09.py").chmod(0o444)
    before = contents(project)
    failed, said = await call(project, "replace_text", old_text="old_name", new_text="x", glob="**/*.py")
    assert failed
    assert "`package/module_09.py` is read-only" in said
    assert contents(project) == before


@pytest.mark.parametrize(
    ("by", "old", "new", "text", "expected"),
    [
        ("text", "a.b", "$1\\1", "a.b axb", "$1\\1 axb"),
        ("word", "für", "for", "für fürs", "for fürs"),
        ("regex", r"(\w+)=(\d)", r"\2=\1\\", "a=1 é=2", "1=a\\ 2=é\\"),
        ("regex", r"\b(n)at?\b", r"\1:\0", "na na naïve ena\nna nat", "n:na n:na naïve ena\nn:na n:nat"),
        ("regex", r"^x", "y", "x x\nx", "y x\ny"),
        ("regex", r"^(?P<name>\w+): 30$", r"\g<1>: \g<name>45\g<0>", "a: 30", "a: a45a: 30"),
    ],
)
async def test_ways_to_name_a_text(tmp_path: Path, by: str, old: str, new: str, text: str, expected: str) -> None:
    (tmp_path / "f").write_text(text, "utf-8")
    ask = {"old_text": old, "new_text": new, "glob": "f", "by": by}
    failed, said = await call(tmp_path, "replace_text", **ask)
    assert not failed, said
    assert (tmp_path / "f").read_text("utf-8") == expected


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        ({"old_text": "", "new_text": "x"}, "is empty"),
        ({"old_text": "x", "new_text": "x"}, "same text"),
        ({"old_text": "(", "new_text": "x", "by": "regex"}, "not RE2 syntax"),
        ({"old_text": "(a)", "new_text": r"\2", "by": "regex"}, "names a group"),
        ({"old_text": "(a)", "new_text": r"\g<b>", "by": "regex"}, "names a group"),
    ],
)
async def test_a_replacement_that_makes_no_sense(project: Path, ask: dict[str, str], said: str) -> None:
    failed, answer = await call(project, "replace_text", **ask, glob="*")
    assert failed
    assert said in answer


async def test_an_answer_shows_all_lines_that_go_and_come(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a\nenv: x\nport: 1\ntimeout: 30\nz\n")
    ask = {"by": "regex", "old_text": r"env: x\n(port: \d)\ntimeout: 30", "glob": "f"}
    _, said = await call(tmp_path, "replace_text", new_text="\\1\ntimeout: 45", **ask)
    assert said == "[replaced 1 place in 1 file]\nf\n@@ 2\n-env: x\n3:timeout: [-30-]{+45+}"
    _, said = await call(tmp_path, "replace_text", old_text="\n", new_text="\n\n", glob="f")
    assert "f\n@@ 2\n" in said and said.count("\n+") <= 8


async def test_nothing_replaced_says_what_was_left_out(tmp_path: Path) -> None:
    (tmp_path / ".hidden").write_text("x")
    (tmp_path / "b").write_bytes(b"\0\1x\0")
    failed, said = await call(tmp_path, "replace_text", old_text="x", new_text="y", glob="*")
    assert not failed
    left_out = "left out 1 hidden (.hidden); set include_hidden; binary, not changed: b"
    assert said == f"[replaced 0 places in 0 files; 1 file looked at; {left_out}]"


async def test_names_that_models_know_from_other_servers(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"one\ntwo\nthree\n")
    assert await call(tmp_path, "move_file", source="f", destination="g") == (False, "moved f to g")
    assert (await call(tmp_path, "find_files", pattern="g"))[1].endswith("\ng")
    assert (await call(tmp_path, "search_text", query="tw."))[1].endswith("\ng:2:two")
    assert (await call(tmp_path, "read_text", path="g", offset=2, limit=1))[1].endswith("\ntwo")
    assert not (await call(tmp_path, "edit_file", path="g", old_text="two", new_text="2"))[0]
    assert not (await call(tmp_path, "edit_file", path="g", oldText="three", newText="3"))[0]
    assert (tmp_path / "g").read_text() == "one\n2\n3\n"
    failed, said = await call(tmp_path, "move_file", source="g", destination="h", target="i")
    assert failed
    assert "no argument `destination`" in said
    assert await call(tmp_path, "write_file", filename="x", text="two") == (False, "created x, 3 bytes")
    assert (await call(tmp_path, "read_text", file_path="x"))[1].endswith("\ntwo")
    assert (await call(tmp_path, "find_files", pattern="*", max_results=1))[1].startswith("[1 of 2;")
    assert (await call(tmp_path, "search_text", query="2|two", max_results=1))[1].startswith("[1 match in 1 file, of 2")
    assert await call(tmp_path, "copy_file", sources=["g", "x"], to="new") == (False, "[copied 2; new folder new]")
    said = (await call(tmp_path, "move_file", **{"from": "new/g", "to": "h"}))[1]
    assert said == "moved new/g to h"
    failed, said = await call(tmp_path, "move_file", sources=["h", "x"], target="g")
    assert failed
    assert "is not a folder" in said and (tmp_path / "g").read_text() == "one\n2\n3\n"


@pytest.mark.share(2)
@pytest.mark.parametrize("by", ["text", "word", "regex"])
@pytest.mark.parametrize("dry_run", [False, True])
async def test_no_file_gets_larger_than_can_be_edited(tmp_path: Path, by: str, dry_run: bool) -> None:
    """And nothing of that length is made to find out."""
    (tmp_path / "f").write_text("e " * 200_000)
    before = contents(tmp_path)
    tracemalloc.start()
    try:
        failed, said = await call(
            tmp_path, "replace_text", old_text="e", new_text="x" * 10_000, glob="*", by=by, dry_run=dry_run
        )
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert failed and "`f` would have more than 33,554,432 bytes" in said, said
    assert contents(tmp_path) == before and peak < 150_000_000


@pytest.mark.parametrize("dry_run", [False, True])
async def test_not_more_is_written_at_once_than_memory_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dry_run: bool
) -> None:
    monkeypatch.setattr("mcp_fs.engine.changing.replacing.attempt.MAX_TOTAL_BYTES", 10_000)
    for number in range(20):
        (tmp_path / f"{number}").write_text("e")
    failed, said = await call(tmp_path, "replace_text", old_text="e", new_text="x" * 999, glob="*", dry_run=dry_run)
    assert failed and "More than " in said and "nothing was" in said, said
    assert {*contents(tmp_path).values()} == {b"e"}


async def test_appending_keeps_the_encoding(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes("é\n".encode("utf-16"))
    assert not (await call(tmp_path, "write_file", path="f", content="☃\n", append=True))[0]
    assert (tmp_path / "f").read_text("utf-16") == "é\n☃\n"
    assert not (await call(tmp_path, "write_file", path="a/b/new", content="x", append=True, parents=True))[0]
    assert (tmp_path / "a/b/new").read_text() == "x"
    assert (await call(tmp_path, "write_file", path="f", content="x", append=True, overwrite=True))[0]


NEW_LINE = ", on a new line: the last one had no end"
APPENDED = [
    (b"a\r\n", "b\nc\n", b"a\r\nb\r\nc\r\n", ""),
    (b"a\r\nb", "c\nd\n", b"a\r\nb\r\nc\r\nd\r\n", NEW_LINE),
    (b"a\r\nb\n", "c\n", b"a\r\nb\nc\n", ""),
    (b"a\rb\r", "c\n", b"a\rb\rc\r", ""),
    (b"a\n", "b\r\n", b"a\nb\r\n", ""),
    (b"a", "b\n", b"a\nb\n", NEW_LINE),
    (b"a", "\nb\n", b"a\nb\n", ""),
    (b"", "b", b"b", ""),
    (b"a", "", b"a", ""),
    ("a\r\né".encode("utf-16"), "b\n", "a\r\né\r\nb\r\n".encode("utf-16"), NEW_LINE),
    (b"\xef\xbb\xbfa", "b", b"\xef\xbb\xbfa\nb", NEW_LINE),
    ("é\n".encode("latin-1"), "ü\n", "é\nü\n".encode("latin-1"), ""),
    (b"\x00\x01\xff", "x", b"", "is not text"),
]


@pytest.mark.parametrize(("old", "added", "new", "note"), APPENDED)
async def test_what_is_appended_begins_a_line_and_ends_as_the_last(
    tmp_path: Path, old: bytes, added: str, new: bytes, note: str
) -> None:
    (tmp_path / "f").write_bytes(old)
    failed, said = await call(tmp_path, "write_file", path="f", content=added, append=True)
    if failed:
        assert note in said and (tmp_path / "f").read_bytes() == old
        return
    assert (tmp_path / "f").read_bytes() == new
    assert said == f"added {len(new) - len(old):,} bytes to f, {len(new):,} bytes{note}"


@pytest.mark.parametrize("size", [MAX_HASHED_BYTES - 1, MAX_HASHED_BYTES + 1, MAX_EDIT_BYTES + 1])
async def test_a_file_of_any_size_is_added_to_and_that_is_undone(tmp_path: Path, size: int) -> None:
    file = tmp_path / "served/f"
    file.parent.mkdir()
    with file.open("wb") as old:
        old.write(b"begins\n" + b"x" * 70_000)
        old.truncate(size - 5)
        old.seek(size - 5)
        old.write(b"\nends")
    before = file.read_bytes()
    failed, said = await call(file.parent, "write_file", path="f", content="more\n", append=True)
    assert not failed and said == f"added 6 bytes to f, {size + 6:,} bytes{NEW_LINE}"
    assert file.read_bytes() == before + b"\nmore\n"
    _, steps = await call(file.parent, "undo_changes")
    failed, said = await call(file.parent, "undo_changes", step=steps.splitlines()[1].split("\t")[0], dry_run=False)
    assert not failed and file.read_bytes() == before


TEMPLATES = [
    # An expression, what replaces it, and what becomes of `ab 12`.
    ("(a)(b)", r"\2\1", "ba 12"),
    (" ", r"\n", "ab\n12"),
    ("( )", r"\t\1\x41\x{1F600}", "ab\t A\U0001f60012"),
    (" ", r"\\n\d\q", r"ab\n\d\q12"),
    (" ", "$1", "ab$112"),
    ("(?: )", "${1}", "ab${1}12"),
    ("( )", r"$2\1", "ab$2 12"),
    ("( )", "$x$ 5", "ab$x$ 512"),
    (r"(\d)", "$1!", r"names a group with `$`, which stands for itself here. Write `\1!`. If a `$` is meant"),
    (r"(?P<n>\d)", "${n}0", r"Write `\g<n>0`"),
    (r"(?P<n>\d)", "$<n>$0", r"Write `\g<n>\0`"),
    (r"(\d)", r"\2", "names a group that"),
    (" ", r"\x{D800}", r"ab\x{D800}12"),
]


@pytest.mark.parametrize(("pattern", "template", "result"), TEMPLATES)
async def test_a_replacement_is_read_as_the_pattern_is(
    tmp_path: Path, pattern: str, template: str, result: str
) -> None:
    (tmp_path / "f").write_text("ab 12")
    failed, said = await call(tmp_path, "replace_text", old_text=pattern, new_text=template, by="regex", glob="f")
    if failed:
        assert result in said and (tmp_path / "f").read_text() == "ab 12", said
    else:
        assert (tmp_path / "f").read_text() == result, said


OVERWRITTEN = [
    (b"a\r\nb\r\n", "c\nd\n", b"c\r\nd\r\n", ", kept CRLF line ends"),
    (b"a\r\nb\r\n", "c\r\nd\r\n", b"c\r\nd\r\n", ""),
    (b"a\rb\r", "c\nd\n", b"c\rd\r", ", kept CR line ends"),
    (b"a\nb\n", "c\r\nd\r\n", b"c\r\nd\r\n", ", line ends are CRLF now, were LF"),
    (b"a\r\nb\n", "c\nd\n", b"c\nd\n", ", line ends are LF now, were mixed"),
    (b"a", "c\nd\n", b"c\nd\n", ""),
    (b"\xef\xbb\xbfa\n", "c\n", b"\xef\xbb\xbfc\n", ", kept utf-8 with BOM"),
    (b"\xef\xbb\xbfa\n", "\ufeffc\n", b"\xef\xbb\xbfc\n", ", kept utf-8 with BOM"),
    ("é\r\n".encode("utf-16-le"), "c\n", "c\r\n".encode("utf-16-le"), ", kept CRLF line ends and utf-16-le"),
    ("ä ö ü\n".encode("latin-1"), "ß\n", "ß\n".encode("latin-1"), ", kept latin-1"),
    ("ä ö ü\n".encode("latin-1"), "c\n", b"c\n", ""),
    ("ä ö ü\n".encode("latin-1"), "☃\n", "☃\n".encode(), ", it is UTF-8 now, was latin-1, which has no `☃`"),
    (b"", "c\n", b"c\n", ""),
    (b"\x00\x01", "c\n", b"c\n", ""),
    (b"a\r\n", "", b"", ""),
]


@pytest.mark.parametrize(("old", "content", "new", "note"), OVERWRITTEN)
async def test_what_the_file_was_stays_when_it_is_overwritten(
    tmp_path: Path, old: bytes, content: str, new: bytes, note: str
) -> None:
    (tmp_path / "f").write_bytes(old)
    failed, said = await call(tmp_path, "write_file", path="f", content=content, overwrite=True)
    assert not failed and (tmp_path / "f").read_bytes() == new
    assert said == f"replaced f, {len(new)} bytes{note}"


@pytest.mark.parametrize(
    ("by", "old", "new", "after"),
    [
        ("text", "a\nb", "x\ny", b"x\r\ny\r\nend\r\n"),
        ("text", "a\r\nb", "x\r\ny", b"x\r\ny\r\nend\r\n"),
        ("word", "b", "y\nz", b"a\r\ny\r\nz\r\nend\r\n"),
        ("regex", "^(.)$", "\\1\\1", b"aa\r\nbb\r\nend\r\n"),
        ("regex", "d$", "\n", b"a\r\nb\r\nen\r\n\r\n"),
    ],
)
async def test_crlf_is_an_end_of_line_like_any_other(tmp_path: Path, by: str, old: str, new: str, after: bytes) -> None:
    (tmp_path / "f").write_bytes(b"a\r\nb\r\nend\r\n")
    failed, said = await call(tmp_path, "replace_text", old_text=old, new_text=new, by=by, glob="f")
    assert not failed and (tmp_path / "f").read_bytes() == after, said


async def test_what_is_too_large_to_edit_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp_fs.engine.changing.replacing.attempt.MAX_EDIT_BYTES", 10)
    (tmp_path / "f").write_text("x" * 11)
    assert (
        "larger than 10 bytes, which is as much as can be edited: f"
        in (await call(tmp_path, "replace_text", old_text="x", new_text="y", glob="*"))[1]
    )


async def test_an_archive_is_no_folder_to_write_to(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("f", "x")
    (tmp_path / "b.txt").write_text("b")
    for tool, arguments, refusal in (
        ("write_file", {"path": "a.zip!/new", "content": "x", "parents": True}, "lies in an archive"),
        ("create_directory", {"path": "a.zip!/new"}, "lies in an archive"),
        ("delete_file", {"paths": ["a.zip!/f"]}, "can't be changed: unpack it with `copy_file`"),
        ("delete_file", {"paths": ["a.zip!/*"]}, "means what is in an archive, which can't be changed"),
        ("delete_file", {"paths": ["*.zip!/f"]}, "`*.zip!/f` has a glob before `!/`, where one file is named."),
        ("move_file", {"targets": {"a.zip!/*": "x/"}}, "means what is in an archive, which can't be changed"),
        (
            "replace_text",
            {"path": "a.zip!/", "glob": "*", "replacements": {"x": "y"}},
            "means what is in an archive, which can't be changed",
        ),
        ("replace_text", {"glob": "*.zip!/f", "replacements": {"x": "y"}}, "unpack it with `copy_file`, source"),
        (
            "edit_file",
            {"path": "a.zip!/f", "old_text": "x", "new_text": "y"},
            "means what is in an archive, which can't be changed",
        ),
        ("copy_file", {"source": "b.txt", "target": "a.zip!/b/c"}, "nothing is added to an archive"),
    ):
        failed, said = await call(tmp_path, tool, **arguments)
        assert failed and refusal in said, said
    assert sorted(os.listdir(tmp_path)) == ["a.zip", "b.txt"]
    assert "as `a.zip!/b/f`" in (await call(tmp_path, "read_text", path="a.zip/b/f"))[1]
    (tmp_path / "x").mkdir()
    assert "Write `x/` to put it in there" in (await call(tmp_path, "copy_file", source="a.zip", target="x"))[1]
    (tmp_path / "a.zip!").mkdir()
    assert not (await call(tmp_path, "write_file", path="a.zip!/new", content="x"))[0]


async def test_a_folder_of_packages_is_deleted_with_its_certificates(tmp_path: Path) -> None:
    folder = tmp_path / "node_modules/certifi"
    folder.mkdir(parents=True)
    (folder / "cacert.pem").write_text("")
    failed, said = await call(tmp_path, "delete_file", path="node_modules")
    assert failed
    assert "Set `recursive`" in said
    failed, said = await call(tmp_path, "delete_file", path="node_modules", recursive=True)
    assert not failed, said
    assert os.listdir(tmp_path) == []


async def test_lines_of_what_is_too_much_to_show_are_named(tmp_path: Path) -> None:
    (tmp_path / "-a").write_text("old\n")
    for name in "bcd":
        (tmp_path / name).write_text(f"{'x' * 60} old\n" * 20)
    failed, said = await call(tmp_path, "replace_text", old_text="old", new_text="new", glob="*", by="regex")
    head, *lines = said.splitlines()
    assert not failed and head == "[replaced 61 places in 4 files; the lines of 2 files are not all shown]", said
    assert lines[:2] == ["c 20", "d 20"]
    assert lines[2:5] == ["./-a:1:[-old-]{+new+}", "b", f"1:{'x' * 60} [-old-]{{+new+}}"]
    assert re.fullmatch(rf"\d+:{'x' * 60} \[-old-\]\{{\+new\+\}}", lines[-1]) and len(said) < 2200


async def test_what_differs_far_to_the_right_is_shown(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(f"{'y' * 300} old {'z' * 300}\n")
    (tmp_path / "b").write_text("x old\n" * 50)
    failed, said = await call(tmp_path, "replace_text", old_text="old", new_text="new", glob="*")
    assert not failed and said.splitlines()[:2] == ["[replaced 51 places in 2 files]", "a: line 1"], said
    failed, said = await call(
        tmp_path, "replace_text", old_text="NEW", new_text="old", glob="*", ignore_case=True, dry_run=True
    )
    seen = said.splitlines()[1]
    assert seen.startswith("a:1:...yyy") and seen.endswith("zzz...") and " [-new-]{+old+} " in seen and len(seen) < 180


async def test_many_files_are_told_by_a_few_examples_and_counts(tmp_path: Path) -> None:
    for folder in "ab":
        (tmp_path / folder).mkdir()
        for number in range(60):
            (tmp_path / folder / f"{number:03}.md").write_text("x old y\n" * 3)
    failed, answer = await call(tmp_path, "replace_text", replacements={"old": "new"}, glob="*.md", by="regex")
    head, *lines = answer.splitlines()
    assert not failed and head == "[replaced 360 places in 120 files; the lines of 117 files are not all shown]"
    assert "and 112 more: 52 in a/, 60 in b/" in lines
    assert sum("[-old-]{+new+}" in line for line in lines) == 9 and len(answer) < 1000


@pytest.mark.slow
@pytest.mark.parametrize("by", ["text", "regex"])
async def test_lines_before_and_after_can_be_read_from_what_is_shown(tmp_path: Path, by: str) -> None:
    chance = random.Random(7)
    for number in range(15):
        words = ["".join(chance.choices("ab", k=3)) for _ in range(5)]
        old, new = chance.choice(words), "".join(chance.choices("abc", k=chance.randrange(4)))
        before = "".join(f"{chance.choice(words)} {chance.choice(words)}é{chance.choice(words)}\n" for _ in range(6))
        if old == new or old not in before:
            continue
        (tmp_path / "f").write_bytes(before.encode())
        ask = {"old_text": old, "new_text": new, "glob": "f", "by": by}
        _, tried = await call(tmp_path, "replace_text", **ask, dry_run=True)
        _, done = await call(tmp_path, "replace_text", **ask)
        after = (tmp_path / "f").read_bytes().decode()
        pairs = enumerate(zip(before.splitlines(), after.splitlines(), strict=True), 1)
        lines = [(f"{at}:{one}", f"{at}:{other}") for at, (one, other) in pairs if one != other]
        marked = tried.partition("\n")[2].removeprefix("f").lstrip(":\n").splitlines()
        assert [re.sub(r"\[-(.*?)-\]|\{\+.*?\+\}", r"\1", line) for line in marked] == [one for one, _ in lines], number
        assert [re.sub(r"\[-.*?-\]|\{\+(.*?)\+\}", r"\1", line) for line in marked] == [one for _, one in lines], number
        told = done.partition("\n")[2].removeprefix("f").lstrip(":\n").splitlines()
        if by == "regex" or not new:
            assert told == marked, number
            continue
        longer = [re.search(rf"\w{old}|{old}\w", one.partition(":")[2]) for one, _ in lines]
        words = [one.partition(":")[0] for (one, _), inside in zip(lines, longer, strict=True) if not inside]
        numbers = [f" line{'s' * (len(words) > 1)} {', '.join(words)}"] if words else []
        assert told == numbers + [one for one, inside in zip(marked, longer, strict=True) if inside], number


def one_pass(pairs: dict[str, str], by: str, text: str) -> tuple[str, list[int]]:
    """What `replace_text` says it does, place by place: the first to begin, of those the longest."""
    done, counts, at = "", [0] * len(pairs), 0
    sources = [old if by == "regex" else re.escape(old) for old in pairs]
    compiled = [re.compile(rf"(?<!\w){source}(?!\w)" if by == "word" else source) for source in sources]
    while at < len(text):
        fitting = [(-len(found[0]), n) for n, one in enumerate(compiled) if (found := one.match(text, at)) and found[0]]
        if fitting:
            length, number = min(fitting)
            done, at = done + [*pairs.values()][number], at - length
            counts[number] += 1
        else:
            done, at = done + text[at], at + 1
    return done, counts


@pytest.mark.parametrize("by", ["text", "word", "regex"])
def test_several_texts_are_replaced_in_one_pass(by: Literal["text", "word", "regex"]) -> None:
    chance = random.Random(by)
    for number in range(400):
        olds = ["".join(chance.choices("abé -", weights=(4, 4, 1, 1, 1), k=chance.randint(1, 4))) for _ in range(4)]
        if by == "regex":
            olds = [old + chance.choice(("", "+", "[ab]", "(?:b|é)")) for old in olds]
        pairs = {old: f"<{chance.choice(('', 'ab', 'a b'))}{chance.random():.2}>" for old in olds}
        text = "".join(chance.choices("abé -\n\udcff", weights=(6, 6, 2, 2, 1, 1, 1), k=60))
        found = Substitution(pairs, by).compile(CancelToken())(text)
        assert (found[0], [*found[1]]) == one_pass(pairs, by, text), (number, pairs, text)


async def test_only_lines_that_change_are_shown_where_some_are_added(tmp_path: Path) -> None:
    lines = ["send(1)", *(f"keep {number}" for number in range(40)), "send(2)", "end", ""]
    (tmp_path / "a.py").write_text("\n".join(lines))
    failed, said = await call(tmp_path, "replace_text", replacements={"send(": "log()\nsend("}, glob="*.py")
    assert not failed
    assert said.splitlines() == ["[replaced 2 places in 1 file]", "a.py", "@@ 1", "+log()", "@@ 43", "+log()"]


@pytest.mark.parametrize("by", ["text", "word", "regex"])
def test_many_replacements_end_when_they_are_told_to(by: Literal["text", "word", "regex"]) -> None:
    class Patient(CancelToken):
        left = 50

        def check(self) -> None:
            self.left -= 1
            if not self.left:
                self.set()
            super().check()

    with pytest.raises(WorkCancelled):
        Substitution({"a": "b", "c": "d"}, by).compile(Patient())("a c " * 100)


def test_many_expressions_share_the_bytes_of_a_text() -> None:
    text = "x" * 1_000_000
    substitute = Substitution({f"a{number}": "b" for number in range(50)}, "regex").compile(CancelToken())
    substitute("x")
    tracemalloc.start()
    try:
        assert substitute(text)[0] == text
        assert tracemalloc.get_traced_memory()[1] < 5 * len(text)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("pattern", [r"(.+)= (?P<rest>.*)", r"\b(\w.+)= (.*)", r"(.*?é.*)= (.*)"])
async def test_groups_keep_bytes_that_are_damaged(tmp_path: Path, pattern: str) -> None:
    file, begin = tmp_path / "f.txt", "ü é\n".encode() * 50
    file.write_bytes(begin + "é\xff".encode("latin-1").join([b"a ", "é= ".encode()]) + b"b\xfe c\n")
    before = file.read_bytes()
    failed, said = await call(tmp_path, "replace_text", replacements={pattern: r"\2: \1"}, by="regex", glob="*")
    assert not failed, said
    left, right = before.removeprefix(begin).removesuffix(b"\n").split(b"= ")
    assert file.read_bytes() == begin + right + b": " + left + b"\n"


async def test_names_are_swapped_and_moved_on_in_one_call(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"[x](b.md) [y](c.md)\r\n")
    (tmp_path / "b.md").write_bytes(b"[z](a.md)\r\n")
    pairs = {"a.md": "b.md", "b.md": "c.md", "c.md": "a.md", "d.md": "e.md"}
    failed, said = await call(tmp_path, "replace_text", replacements=pairs, glob="*.md")
    assert not failed, said
    assert said.splitlines() == [
        "[replaced 3 places in 2 files; not found: `d.md`]", "a.md: line 1", "b.md: line 1",
    ]  # fmt: skip
    assert (tmp_path / "a.md").read_bytes() == b"[x](c.md) [y](a.md)\r\n"


@pytest.mark.parametrize(
    ("pairs", "because"),
    [
        ({}, "names 0 texts"),
        ({str(number): "x" for number in range(101)}, "Name 1 to 100"),
        ({"a": "b", "c": "c"}, "`c`"),
    ],
)
async def test_texts_that_can_not_be_replaced_change_nothing(
    tmp_path: Path, pairs: dict[str, str], because: str
) -> None:
    (tmp_path / "f").write_text("a c 1")
    failed, said = await call(tmp_path, "replace_text", replacements=pairs, glob="*")
    assert failed and because in said, said
    assert (tmp_path / "f").read_text() == "a c 1"


@pytest.mark.parametrize(
    ("pattern", "new", "text", "expected"),
    [
        ("^", "> ", "a\n\nb\n", "> a\n> \n> b\n"),
        ("$", ";", "a\r\nb\r\n", "a;\r\nb;\r\n"),
        ("x*", "-", "a\n", "-a-\n"),
        ("^", "> ", "a\nb", "> a\n> b"),
        ("$", ";", "", ";"),
        (r"\z", "end\n", "a\n", "a\nend\n"),
    ],
)
def test_behind_the_last_line_end_there_is_no_line(pattern: str, new: str, text: str, expected: str) -> None:
    """As for sed."""
    assert Substitution({pattern: new}, "regex").compile(CancelToken())(text)[0] == expected


@pytest.mark.parametrize("dry_run", [True, False])
async def test_no_diff_is_made_that_nobody_sees(project: Path, dry_run: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> str:
        raise AssertionError

    monkeypatch.setattr(file_edits, "unified_diff", refuse)
    failed, answer = await call(project, "replace_text", replacements={"old_name": "x"}, glob="*.py", dry_run=dry_run)
    assert not failed and "in 19 files" in answer, answer


async def test_a_dry_run_tells_of_all_files_in_how_many_folders_they_are(tmp_path: Path) -> None:
    for folder in "abc":
        (tmp_path / folder).mkdir()
        for number in range(60):
            (tmp_path / folder / f"{number:03}.md").write_text("old\n")
    failed, answer = await call(tmp_path, "replace_text", replacements={"old": "new" * 60}, glob="*.md", dry_run=True)
    assert not failed and answer.startswith("[would replace 180 places in 180 files;")
    counted = next(line for line in answer.splitlines() if line.startswith("and "))
    number = int(counted.split()[1])
    assert counted.startswith(f"and {number} more: ") and counted.endswith("60 in c/")
    assert sum(int(count) for count in re.findall(r"(\d+) in ", counted)) == number


@pytest.mark.parametrize("pattern", [r"a\s+b", r"a[^x]b", r"a\nb", r"a[\s\S]b", r"a[ \n]b", r"(?s)a.b", r"a[^\n]b"])
async def test_a_replacement_goes_over_lines_exactly_where_a_search_does(tmp_path: Path, pattern: str) -> None:
    (tmp_path / "f").write_text("a\nb\na b\n")
    _, found = await call(tmp_path, "search_text", pattern=pattern)
    _, replaced = await call(tmp_path, "replace_text", replacements={pattern: "x"}, glob="f", by="regex")
    over_lines = (tmp_path / "f").read_text().startswith("x")
    assert over_lines == ("\n1:a\n" in found or "f:1:a\n" in found), found
    if "0 places" in replaced:
        assert "a match stays in one line" in replaced


async def test_an_expression_that_stays_in_its_line_says_so_where_nothing_fits(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a\nb\n")
    hint = "a match stays in one line: write `\\n` where it goes over several"
    _, found = await call(tmp_path, "search_text", pattern=r"a\s+b")
    _, replaced = await call(tmp_path, "replace_text", replacements={r"a\s+b": "x"}, glob="f", by="regex")
    assert hint in found and hint in replaced


@pytest.mark.parametrize(
    ("pattern", "has_hint"),
    [
        (r"a\W*$|b\n", True),
        (r"x|[^|]y|z\n", True),
        (r"(?s)a.*|b\s", True),
        (r"a\s*\n", False),
        (r"(a|b)\s\n", False),
        (r"a\|\s\n|b", False),
        (r"a[|]\s\n|b", False),
        (r"a\s|b", False),
    ],
)
async def test_a_branch_that_goes_over_lines_by_another_one_is_told(
    tmp_path: Path, pattern: str, has_hint: bool
) -> None:
    (tmp_path / "f").write_text("a\n\nb\n")
    hint = "`\\s`, `\\W` and `[^x]` match line ends in all branches, as one of them asks for line ends"
    _, found = await call(tmp_path, "search_text", pattern=pattern, only_matching=True)
    _, replaced = await call(tmp_path, "replace_text", replacements={pattern: "x"}, glob="f", by="regex")
    assert (hint in found) == (hint in replaced) == has_hint


@pytest.mark.parametrize(
    ("pattern", "has_hint"),
    [
        (r"f\(\s*(\w)", True),
        (r"f\([^()]*\)", True),
        (r"\w\s*\)", True),
        (r"f\(a|,\s*x", True),
        (r"f\([\s\n]*(\w)", False),
        (r"f\s*\(", False),
        (r"f\([^x]\)", False),
    ],
)
async def test_an_expression_that_goes_into_brackets_says_so_also_where_it_fits(
    tmp_path: Path, pattern: str, has_hint: bool
) -> None:
    (tmp_path / "f").write_text("f(a)\nf(\n  b,\n)\n")
    _, found = await call(tmp_path, "search_text", pattern=pattern)
    _, replaced = await call(tmp_path, "replace_text", replacements={pattern: "x"}, glob="f", by="regex", dry_run=True)
    for answer in (found, replaced):
        assert "f(" in answer and ("a match stays in one line" in answer) == has_hint, answer
    _, found = await call(tmp_path, "search_text", pattern=pattern, literal=True)
    assert "stays in one line" not in found


async def test_of_several_expressions_one_that_nothing_fits_says_so(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a\nb\nc\n")
    _, said = await call(tmp_path, "replace_text", replacements={r"a\s+b": "x", "c": "d"}, glob="f", by="regex")
    assert "replaced 1 place" in said and "a match stays in one line" in said


async def test_of_many_files_that_an_expression_changed_some_lines_are_shown(tmp_path: Path) -> None:
    for number in range(9):
        (tmp_path / f"{number}.txt").write_text(f"get_{number}\n")
    ask = {"replacements": {r"get_(\d)": r"read_\1"}, "glob": "*.txt", "by": "regex"}
    _, planned = await call(tmp_path, "replace_text", **ask, dry_run=True)
    assert len(planned.splitlines()) == 10
    failed, done = await call(tmp_path, "replace_text", **ask)
    assert not failed and (tmp_path / "8.txt").read_text() == "read_8\n"
    head, *lines = done.splitlines()
    assert head == "[replaced 9 places in 9 files; the lines of 6 files are not all shown]"
    assert lines[-3:] == [f"{number}.txt:1:[-get_{number}-]{{+read_{number}+}}" for number in range(3)]
    assert lines[:-3] == ["3.txt", "4.txt", "5.txt", "6.txt", "7.txt", "and 1 more: 1 at the top"]


async def test_what_is_nearly_the_old_text_is_told_as_left(tmp_path: Path) -> None:
    text = "Acme Cloud, Acme Cloudlet. ACME CLOUD; Acme\nCloud Acme  Cloud (Acme Cloud) MyAcme Cloud\nAcme Cloudlet\n"
    (tmp_path / "a.md").write_text(text, newline="\r\n")
    (tmp_path / "b.md").write_text("only acme cloudlet")
    ask = {"replacements": {"Acme Cloud": "Nimbus"}, "glob": "*.md", "dry_run": True}
    _, by_word = await call(tmp_path, "replace_text", **ask, by="word")
    assert by_word.startswith(
        "[would replace 2 places in 1 file; left as they are: 2 `Acme Cloudlet`, 1 `ACME CLOUD`, "
        "1 `Acme\\r\\nCloud`, 1 `Acme  Cloud`, 2 others; nothing"
    )
    _, by_text = await call(tmp_path, "replace_text", **ask)
    assert "left as they are: 1 `ACME CLOUD`, 1 `Acme\\r\\nCloud`, 1 `Acme  Cloud`, 1 `acme cloud`; nothing" in by_text
    _, in_any_case = await call(tmp_path, "replace_text", **ask, ignore_case=True)
    assert "left as they are: 1 `Acme\\r\\nCloud`, 1 `Acme  Cloud`; nothing" in in_any_case
    _, nothing = await call(tmp_path, "replace_text", **{**ask, "replacements": {"acme CLOUDS": "x"}})
    assert nothing == "[would replace 0 places in 0 files; 2 files looked at]"
    # What is replaced too is not left, and of short texts or expressions nothing is told.
    both = {"Acme Cloud": "Nimbus", "Acme Cloudlet": "Drizzle"}
    _, told = await call(tmp_path, "replace_text", **{**ask, "replacements": both}, by="word")
    assert "2 `Acme Cloudlet`" not in told and "1 `MyAcme Cloud`, 1 other; nothing" in told
    for replacements, by in (({"Acm": "x"}, "word"), ({"Acme.Cloud": "x"}, "regex")):
        _, told = await call(tmp_path, "replace_text", **{**ask, "replacements": replacements}, by=by)
        assert "left as" not in told


def _substitute(text: str, old: str, new: str, by: Literal["text", "word", "regex"]) -> str:
    return Substitution({old: new}, by).compile(CancelToken())(text)[0]


@pytest.mark.parametrize(
    ("text", "old", "by", "expected"),
    [
        ("ế ê", "ê", "text", "ế X"),
        ("각 가", "가", "text", "각 X"),
        ("é e", "e", "text", "é X"),
        ("café cafe", "cafe", "word", "café X"),
        ("कि क िक", "क", "word", "कि X िक"),
        ("x\u0301 x", "x", "text", "X\u0301 X"),
        ("é", "\u0301", "text", "eX"),
    ],
)
def test_no_part_of_a_character_or_a_word_is_replaced(
    text: str, old: str, by: Literal["text", "word"], expected: str
) -> None:
    apart = unicodedata.normalize("NFD", text)
    assert _substitute(apart, old, "X", by) == unicodedata.normalize("NFD", expected)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [("[A-Za-z\u0301]+", "X{X X"), (r"\pL" + "\u0301", "ab{cd X"), (r"\w" + "\u0301", "ab{cd X")],
)
def test_a_mark_changes_no_class_that_it_stands_in_or_behind(pattern: str, expected: str) -> None:
    assert _substitute("ab{cd e\u0301", pattern, "X", "regex") == expected


@pytest.mark.parametrize(("new", "expected"), [(r"\\u\1", r"\u00e9"), (r"C:\\U\1", r"C:\U00e9")])
def test_a_backslash_before_a_group_asks_for_no_capitals(new: str, expected: str) -> None:
    assert _substitute("&#x00e9;", "&#x([0-9a-f]+);", new, "regex") == expected


@pytest.mark.parametrize(
    ("text", "substitution", "expected"),
    [
        ("OLD\r\nNAME\r\n", Substitution({"old\nname": "x"}, ignore_case=True), ""),
        ("İSTANBUL istanbul\n", Substitution({"İstanbul": "x"}, ignore_case=True), ""),
        ("old\r\nname\nx\n", Substitution({"old\nname": "x"}), r"1 `old\r\nname`"),
        ("VIỆT việt\n", Substitution({"việt": "x"}), "1 `VIỆT`"),
        ("ein Wort, Wortéa\n", Substitution({"Wort": "x"}, "word"), "1 `Wortéa`"),
    ],
)
def test_what_is_replaced_is_not_told_as_left(text: str, substitution: Substitution, expected: str) -> None:
    for form in ("NFC", "NFD"):
        near_matches = NearMatches(substitution)
        near_matches.count(unicodedata.normalize(form, text))
        described = unicodedata.normalize("NFC", near_matches.describe())
        assert described.removeprefix("left as they are: ") == expected


def test_no_near_matches_are_looked_for_of_a_text_that_no_expression_can_have() -> None:
    near_matches = NearMatches(Substitution({"name\udcff": "x"}))
    near_matches.count("NAME\udcff")
    assert not near_matches.describe()
