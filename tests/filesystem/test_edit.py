"""Edits are exact, complete and local: what they do not name stays byte for byte."""

from __future__ import annotations

import hashlib
import os
import random
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from filesystem.places import Ground, ground, stop
from filesystem.reading import served
from filesystem.tool_calls import Tools
from mcp_batteries.errors import Conflict, Invalid, NotFound, Problem, Refused, TooLarge
from mcp_batteries.server.declaration.call_origin import CallOrigin
from mcp_fs.engine.changing import file_edits
from mcp_fs.engine.changing.file_edits import FileChange, change_files
from mcp_fs.engine.changing.patch import apply_hunks, parse_patch
from mcp_fs.engine.handles import temp_files
from mcp_fs.engine.journal import operations
from mcp_fs.engine.journal.journal import JournalEntry
from mcp_fs.engine.journal.operations import PlannedChange
from mcp_fs.engine.journal.store import JournalStore
from mcp_fs.engine.text.edit import Replacement, apply_replacements, split_lines, unified_diff
from mcp_fs.engine.text.encodings import content_hash
from mcp_fs.models import EditResult
from mcp_fs.policy import ReadablePath, WritablePath
from mcp_fs.tools.write import Edit

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX attributes")
pytestmark = pytest.mark.anyio


@pytest.fixture
def here(tmp_path: Path) -> Ground:
    return ground(tmp_path)


def swap(text: str, old: str, new: str, *, everywhere: bool = False) -> str:
    return apply_replacements(text, [Replacement(old, new, everywhere)], "`f`", stop())


class TestDamaged:
    """A file in which some bytes do not decode is edited as it is read."""

    DATA = "é und ü\n".encode() * 30 + b"stray \x92 and \xe2\x82 here\nlast\n"

    async def read_line(self, here: Ground, line: int) -> str:
        tools = Tools(here.policy)
        return (await tools.read_text("f", start_line=line, end_line=line)).body

    @pytest.mark.parametrize("path", ["edit", "patch"])
    async def test_what_was_read_can_be_edited_and_the_bytes_stay(self, here: Ground, path: str) -> None:
        (here.root / "f").write_bytes(self.DATA)
        line = await self.read_line(here, 31)
        assert line == "stray \ufffd and \ufffd here\n"
        tools, new = Tools(here.policy), line.replace("here", "there ☃")
        if path == "edit":
            answer = await tools.edit_file("f", [Edit(old_text=line, new_text=new)])
        else:
            answer = await tools.edit_files(f"--- a/f\n+++ b/f\n@@ -31,2 +31,2 @@\n-{line}+{new} last\n")
        assert (here.root / "f").read_bytes() == self.DATA.replace(b"here", "there ☃".encode())
        assert "-stray \ufffd and \ufffd here" in answer.diff
        answer.text().encode()

    async def test_a_line_beside_the_damage_is_edited_in_the_same_encoding(self, here: Ground) -> None:
        (here.root / "f").write_bytes(self.DATA)
        tools = Tools(here.policy)
        await tools.edit_file("f", [Edit(old_text="last", new_text="café")])
        assert (here.root / "f").read_bytes() == self.DATA.replace(b"last", "café".encode())

    async def test_damaged_bytes_can_be_taken_out_but_not_guessed(self, here: Ground) -> None:
        (here.root / "f").write_bytes(self.DATA)
        tools = Tools(here.policy)
        with pytest.raises(Invalid, match="Keep all of them, or none"):
            await tools.edit_file("f", [Edit(old_text="stray \ufffd and \ufffd", new_text="one \ufffd")])
        await tools.edit_file("f", [Edit(old_text="stray \ufffd and \ufffd", new_text="none")])
        assert (here.root / "f").read_bytes().endswith(b"\nnone here\nlast\n")


class TestReplace:
    def test_once(self) -> None:
        assert swap("a b c", "b", "x") == "a x c"

    def test_in_order_each_on_the_last(self) -> None:
        edits = [Replacement("a", "b"), Replacement("b", "c")]
        assert apply_replacements("a", edits, "`f`", stop()) == "c"

    def test_several_places_are_named(self) -> None:
        with pytest.raises(Conflict, match=r"in `f` 3 times, at lines 1, 3, 4.*`replace_all`"):
            swap("x\ny\nx\nx", "x", "z")
        assert swap("x\ny\nx\nx", "x", "z", everywhere=True) == "z\ny\nz\nz"

    def test_overlapping_places_are_several(self) -> None:
        with pytest.raises(Conflict, match="2 times"):
            swap("aaa", "aa", "b")
        assert swap("aaa", "aa", "b", everywhere=True) == "ba"

    def test_empty_old_text(self) -> None:
        with pytest.raises(Invalid, match="empty `old_text`"):
            swap("a", "", "b")

    def test_nothing_to_do(self) -> None:
        with pytest.raises(Invalid, match="same text"):
            swap("a", "a", "a")

    def test_the_failing_edit_is_numbered(self) -> None:
        with pytest.raises(NotFound, match="Edit 2: the old text is not in `f`"):
            apply_replacements("a", [Replacement("a", "b"), Replacement("z", "c")], "`f`", stop())

    def test_indentation_is_not_guessed(self) -> None:
        text = "if x:\n    if y:\n        run(x)\n"
        with pytest.raises(NotFound, match=r"nearest is at line 2.*\n    if y:\n        run\(x\)"):
            swap(text, "if y:\n    run(x)", "pass")

    def test_the_nearest_text_is_quoted(self) -> None:
        text = "".join(f"line {number}\n" for number in range(300)) + "def compute(total):\n    return total\n"
        with pytest.raises(NotFound, match=r"line 301; .*\ndef compute\(total\):"):
            swap(text, "def compute(totals):", "")

    def test_an_edit_that_was_made_already_is_said_so(self) -> None:
        with pytest.raises(NotFound, match="The new text stands at line 2 already"):
            swap("a\nnew\n", "old", "new")
        with pytest.raises(NotFound, match="The nearest is at line 1"):
            swap("line one\n", "line  one", "one")

    def test_nothing_alike_is_said_so(self) -> None:
        with pytest.raises(NotFound, match="Nothing there is like it; read the file again"):
            swap("abc\n", "12345", "")
        assert swap("abc\n", "abc", "12345") == "12345\n"

    def test_dollars_and_backslashes_are_text(self) -> None:
        assert swap("price\n", "price", r"$1 \1 \g<0> $&") == "$1 \\1 \\g<0> $&\n"

    @pytest.mark.parametrize(
        ("text", "old", "new", "result"),
        [
            ("a\r\nb\r\n", "a\nb", "a\nx\nb", "a\r\nx\r\nb\r\n"),
            ("a\r\nb\r\n", "b", "b\nc", "a\r\nb\r\nc\r\n"),
            ("a\nb\n", "a\r\nb", "x\r\ny", "x\ny\n"),
            ("a\r\nb\nc\n", "b\nc", "b\nx\nc", "a\r\nb\nx\nc\n"),
            ("a\r\nb\r\nc\n", "a\nb", "a", "a\r\nc\n"),
            ("a\rb\r", "a\nb", "a\nx\nb", "a\rx\rb\r"),
            ("a\nb\r\n", "a\nb\r\n", "a\r\nb\n", "a\r\nb\n"),
            ("a\r\nlast", "last", "x\ny", "a\r\nx\r\ny"),
        ],
    )
    def test_line_ends_are_those_of_the_place(self, text: str, old: str, new: str, result: str) -> None:
        assert swap(text, old, new) == result

    def test_all_means_whatever_the_line_ends(self) -> None:
        assert swap("a\nb\na\r\nb\n", "a\nb", "x\ny", everywhere=True) == "x\ny\nx\r\ny\n"


def _places(text: str, old: str) -> int:
    """How often `old` stands in `text`, overlapping, when a line feed alone means any line end."""
    exact = re.escape(old)
    sought = exact if "\r" in old else exact.replace("\\\n", "(?:\r\n|(?<!\r)\n|\r(?!\n))")
    return max(len(re.findall(f"(?={sought})", text)), text.count(old))


texts = st.text(st.sampled_from("ab \t\n\ré"), max_size=40)


@given(before=texts, old=texts.filter(bool), new=texts, after=texts)
@example(before="\r", old="\n", new="a", after="")
def test_a_unique_text_is_replaced_and_nothing_else(before: str, old: str, new: str, after: str) -> None:
    text = before + old + after
    try:
        result = swap(text, old, new)
    except (Conflict, Invalid):
        assert old == new or _places(text, old) > 1
        return
    assert text.count(old) == 1
    if before.endswith("\r") and old.startswith("\n") and "\r" not in old:
        before = before[:-1]  # One line end, which is replaced whole.
    assert result.startswith(before)
    assert result.endswith(after)
    middle = result[len(before) : len(result) - len(after)]
    assert re.sub("\r\n|\r", "\n", middle) == re.sub("\r\n|\r", "\n", new)


@given(
    lines=st.text(st.sampled_from("ab\n"), max_size=20), new=st.text(st.sampled_from("c\n"), max_size=4),
    cut=st.tuples(st.integers(0, 20), st.integers(1, 5)), end=st.sampled_from(["\r\n", "\r"]),
)  # fmt: skip
def test_an_edit_is_the_same_whatever_ends_the_lines(lines: str, new: str, cut: tuple[int, int], end: str) -> None:
    if "\n" not in lines:  # nothing tells how lines end here
        return
    old = lines[cut[0] : cut[0] + cut[1]]
    try:
        expected = swap(lines, old, new)
    except (Conflict, Invalid):
        return
    assert swap(lines.replace("\n", end), old, new) == expected.replace("\n", end)


@given(before=texts, old=texts, new=texts)
def test_no_edit_touches_a_text_without_a_match(before: str, old: str, new: str) -> None:
    bare = re.sub("\r\n|\r", "\n", before)
    try:
        swap(before, old, new)
    except Problem:
        return
    assert re.sub("\r\n|\r", "\n", old) in bare or old in before


@given(texts)
def test_lines_are_all_of_the_text(text: str) -> None:
    lines = split_lines(text)
    assert "".join(lines) == text
    assert all(line and not re.search("\r\n|\n|\r(?!\n)", line[:-2]) for line in lines if len(line) > 2)


lined = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "d\n", "\n", " x\n"]), max_size=30).map("".join)
ended = st.tuples(lined, st.sampled_from(["", "end"])).map("".join)


@given(old=ended, new=ended)
def test_our_diff_applied_gives_the_new_text(old: str, new: str) -> None:
    if old == new:
        return
    (patch,) = parse_patch(unified_diff(old, new, "f", created=not old))
    assert patch.path == "f"
    assert apply_hunks(old, patch, "`f`", stop()) == new


@pytest.mark.skipif(shutil.which("patch") is None, reason="needs patch(1)")
@settings(max_examples=settings.default.max_examples * 2 // 5)
@given(old=ended.filter(bool), new=ended.filter(bool))
def test_patch_reads_our_diff(tmp_path_factory: pytest.TempPathFactory, old: str, new: str) -> None:
    if old == new:
        return
    folder = tmp_path_factory.mktemp("patch")
    (folder / "f").write_bytes(old.encode())
    command = ["patch", "-p1", "--no-backup-if-mismatch", "-s", "-F0"]
    subprocess.run(command, cwd=folder, input=(unified_diff(old, new, "f") + "\n").encode(), check=True)
    assert (folder / "f").read_bytes() == new.encode()


def test_a_huge_change_is_counted_instead_of_compared() -> None:
    old, new = "a\n" * 10_000, "b\n" * 20_000
    diff = unified_diff(old, new, "f")
    assert "10,000 lines from line 1 on became 20,000" in diff
    told = EditResult([("f", "edited")], [diff], dry_run=False).text()
    assert told == "edited f, 10,000 lines from line 1 on became 20,000"


@given(old=ended, new=ended)
def test_what_is_told_of_an_edit_are_the_lines_that_came_and_how_many_went(old: str, new: str) -> None:
    if old == new or not old:
        return
    said = EditResult([("f", "edited")], [unified_diff(old, new, "f")], dry_run=False).text()
    before, after = split_lines(old), split_lines(new)
    places = re.findall(r"lines? (\d+)(?:-(\d+))? \((?:\+(\d+) ?)?(?:-(\d+))?\)", said)
    assert said == f"edited f, {', '.join(re.findall(r'lines? [^)]+[)]', said))}"
    at = went = 0
    for first, last, came, gone in ((int(number or 0) for number in place) for place in places):
        assert before[at + went : at + went + first - 1 - at] == after[at : first - 1]
        went += gone - came
        at = first - 1 + came
        assert came == (last or first) - first + 1 or not came
    assert before[at + went :] == after[at:]


def git_in(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), "-c", "core.autocrlf=false", "-c", "user.name=x", "-c", "user.email=x"]
    return subprocess.run([*command, *words], check=True, capture_output=True).stdout.decode()


class TestPatch:
    TEXT = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"

    def apply(self, text: str, body: str) -> str:
        (patch,) = parse_patch(f"--- a/f\n+++ b/f\n{body}")
        return apply_hunks(text, patch, "`f`", stop())

    def test_wrong_counts_and_line_numbers_are_forgiven(self) -> None:
        result = self.apply(self.TEXT, "@@ -1,9 +1,1 @@\n four\n-five\n+5\n+5b\n six\n\n")
        assert result == self.TEXT.replace("five", "5\n5b")

    def test_no_line_after_a_short_count_is_lost(self) -> None:
        assert self.apply(self.TEXT, "@@ -1,1 +1,1 @@\n-one\n+1\n+1b\n") == self.TEXT.replace("one", "1\n1b")

    def test_context_that_differs_is_refused_with_the_nearest(self) -> None:
        with pytest.raises(NotFound, match=r"Hunk 1 of `f`.*\n(.*\n)*four"):
            self.apply(self.TEXT, "@@ -3,3 +3,3 @@\n four\n-fife\n+5\n six\n")

    def test_several_places_and_none_by_number(self) -> None:
        with pytest.raises(Conflict, match="at 2, 4, not at line 9"):
            self.apply("a\nx\nb\nx\n", "@@ -9 +9 @@\n-x\n+y\n")
        assert self.apply("a\nx\nb\nx\n", "@@ -4 +4 @@\n-x\n+y\n") == "a\nx\nb\ny\n"

    def test_no_context_at_all_is_refused(self) -> None:
        with pytest.raises(Invalid, match="no context"):
            self.apply(self.TEXT, "@@ -3,0 +4 @@\n+x\n")

    def test_line_ends_are_kept(self) -> None:
        text = self.TEXT.replace("\n", "\r\n")
        assert self.apply(text, "@@ -1,2 +1,3 @@\n one\n-two\n+2\n+2b\n") == text.replace("two", "2\r\n2b")

    def test_the_missing_final_line_end(self) -> None:
        none = "\\ No newline at end of file\n"
        assert self.apply("a\nb", f"@@ -1,2 +1,2 @@\n a\n-b\n{none}+c\n") == "a\nc\n"
        assert self.apply("a\nb\n", f"@@ -1,2 +1,2 @@\n a\n-b\n+c\n{none}") == "a\nc"
        assert self.apply("a\nb", "@@ -1,2 +1,2 @@\n-a\n+x\n b\n") == "x\nb"
        assert self.apply("a\n", f"@@ -1 +1,2 @@\n a\n+b\r\n{none}") == "a\nb\r"
        assert self.apply("a\r\n", f"@@ -1 +1,2 @@\n a\n+b\r\n{none}") == "a\r\nb\r"
        assert self.apply("a\nb\r", f"@@ -1,2 +1,2 @@\n-a\n+x\n b\r\n{none}") == "x\nb\r"
        assert self.apply("a\nb\r", f"@@ -1,2 +1,2 @@\n a\n-b\r\n{none}+b\r\n") == "a\nb\r\n"
        assert self.apply("a\rb\r", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n") == "a\rc\r"

    def test_removed_lines_that_look_like_headers(self) -> None:
        assert self.apply("-- x\ny\n", "@@ -1,2 +1,2 @@\n--- x\n+++ z\n y\n") == "++ z\ny\n"

    @pytest.mark.parametrize(
        "patch",
        [
            "", "hello", "--- a/x\n+++ b/x\n@@ -1 +1 @@\nnonsense\n", "@@ -1 +1 @@\n-a\n+b\n",
        ],
    )  # fmt: skip
    def test_what_is_no_patch_of_text(self, patch: str) -> None:
        with pytest.raises(Invalid):
            parse_patch(patch)

    @pytest.mark.parametrize(
        ("patch", "said"),
        [
            ("diff --git a/y b/x\nold mode 100644\nnew mode 100755\n", "makes `x` of another file"),
            ("--- x.orig\n+++ x\n@@ -1 +1 @@\n-a\n+b\n", "what changes then goes with `x` as `---` and as `+++`"),
            ("diff --git a/x b/x\nold mode 100644\nnew mode 100755\n", "only the mode of `x`. Leave it out"),
            ("diff --git a/x b/x\nindex 1..2 100644\nBinary files a/x and b/x differ\n", "binary. Leave it out"),
            ("diff --git a/x b/x\nnew file mode 100755\nBinary files /dev/null and b/x differ\n", "binary."),
            ("diff --git a/x b/x\nindex 1..2 100644\nGIT binary patch\nliteral 1\nIc$`\n\n", "binary."),
            ("--- a/x\n+++ b/x\n", "changes nothing in `x`. Leave it out"),
        ],
    )  # fmt: skip
    def test_what_text_can_not_do_names_the_next_move(self, patch: str, said: str) -> None:
        with pytest.raises(Invalid) as failure:
            parse_patch(patch)
        assert said in str(failure.value)

    def test_names_in_quotes(self) -> None:
        (patch,) = parse_patch(
            '--- "a/caf\\303\\251 \\"x\\".txt"\n+++ "b/caf\\303\\251 \\"x\\".txt"\n@@ -1 +1 @@\n-a\n+b\n'
        )
        assert patch.path == 'café "x".txt'

    def test_names_with_blanks_are_those_that_git_means(self, tmp_path: Path) -> None:
        names = ["a b/c d.txt", "x b/a/y b/z.txt", "one two", "plain", "new b/file"]
        git = partial(git_in, tmp_path)
        git("init", "-q")
        for text in ("one\n", "two\n"):
            for name in names if text == "two\n" else names[:-1]:
                (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / name).write_text(text, "utf-8")
            if text == "one\n":
                (tmp_path / "gone b").write_text("gone\n", "utf-8")
                git("add", "-A")
        (tmp_path / "gone b").unlink()
        git("add", "-N", names[-1])
        for prefix in ("--src-prefix=a/", "--no-prefix"):
            told = {patch.path: (patch.creates, patch.deletes) for patch in parse_patch(git("diff", prefix))}
            assert told == {name: (name == names[-1], False) for name in names} | {"gone b": (False, True)}, prefix

    def test_an_empty_file_has_the_name_that_git_means(self, tmp_path: Path) -> None:
        git = partial(git_in, tmp_path)
        git("init", "-q")
        names = {"new b/empty", "plain", "a b/x", 'q "b', "é b/a"}
        for name in names:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).touch()
        git("add", "-A")
        for words in (["--cached"], ["--cached", "-R"], ["--cached", "--no-prefix"]):
            told = {(patch.path, patch.creates, patch.deletes) for patch in parse_patch(git("diff", *words))}
            assert told == {(name, "-R" not in words, "-R" in words) for name in names}, words


def edit(here: Ground, path: str, old: str, new: str, **options: object) -> EditResult:
    revise = lambda text: swap(text, old, new)  # noqa: E731
    expected = options.get("expected_hash")
    change = FileChange(here.writable(path), revise, expected_hash=None if expected is None else str(expected))
    return change_files([change], dry_run=bool(options.get("dry_run")), cancel=stop())


ORIGIN = CallOrigin("edit_file", "")


class TestFiles:
    @pytest.mark.parametrize(
        "data",
        [
            b"\xef\xbb\xbfold caf\xc3\xa9\r\n",
            "old café\n".encode("utf-16"),
            b"\xff\xfe" + "old café\r\n".encode("utf-16-le"),
            "old café, naïve, déjà vu\n".encode("latin-1"),
            "old 文件内容测试 中文字符编码\n".encode("gbk"),
            b"no final line end: old",
            b"",
        ],
    )
    def test_encoding_mark_and_line_ends_are_kept(self, here: Ground, data: bytes) -> None:
        (here.root / "f").write_bytes(data)
        if not data:
            with pytest.raises(NotFound):
                edit(here, "f", "old", "new")
            return
        edit(here, "f", "old", "new")
        width = 2 if data[:2] == b"\xff\xfe" else 1
        old, new = (b"o\0l\0d\0", b"n\0e\0w\0") if width == 2 else (b"old", b"new")
        assert (here.root / "f").read_bytes() == data.replace(old, new)

    def test_characters_the_encoding_has_not_are_refused(self, here: Ground) -> None:
        data = "old café, naïve, déjà vu\n".encode("latin-1")
        (here.root / "f").write_bytes(data)
        with pytest.raises(Invalid, match="can't be written in latin-1"):
            edit(here, "f", "old", "文")
        assert (here.root / "f").read_bytes() == data

    def test_binary_is_not_edited(self, here: Ground) -> None:
        (here.root / "f").write_bytes(b"\x00\x01\x02old\xff\xfe")
        with pytest.raises(Refused, match="is not text"):
            edit(here, "f", "old", "new")

    def test_too_large(self, here: Ground) -> None:
        with (here.root / "f").open("wb") as file:
            file.truncate(file_edits.MAX_EDIT_BYTES + 1)
        with pytest.raises(TooLarge):
            edit(here, "f", "old", "new")

    def test_no_edit_makes_what_is_too_large(self, here: Ground) -> None:
        (here.root / "f").write_text("e " * 200_000)
        change = FileChange(
            here.writable("f"),
            lambda text: apply_replacements(text, [Replacement("e", "x" * 10_000, True)], "f", stop()),
        )
        with pytest.raises(TooLarge, match="`f` would have more than 33,554,432 bytes"):
            change_files([change], dry_run=False, cancel=stop())
        change = FileChange(here.writable("f"), lambda text: text + "é" * (file_edits.MAX_EDIT_BYTES // 2))
        with pytest.raises(TooLarge, match="`f` would have more than 33,554,432 bytes"):
            change_files([change], dry_run=False, cancel=stop())
        assert (here.root / "f").stat().st_size == 400_000

    def test_where_it_is_is_told_and_the_diff_before(self, here: Ground) -> None:
        (here.root / "f").write_bytes(b"a\nold\nb\n")
        tried = edit(here, "f", "old", "new", dry_run=True)
        shown = "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-old\n+new\n b"
        assert tried.text() == f"[dry run: nothing was written]\nwould be edited: f\n{shown}"
        answer = edit(here, "f", "old", "new")
        assert answer.text() == "edited f, line 2 (+1 -1)"
        assert (answer.diff, answer.for_views) == (shown, {"diff": f"{shown}\n"})

    def test_a_dry_run_changes_nothing(self, here: Ground) -> None:
        (here.root / "f").write_text("old")
        before = (here.root / "f").stat()
        answer = edit(here, "f", "old", "new", dry_run=True)
        assert answer.text().startswith("[dry run: nothing was written]\n")
        assert "+new" in answer.diff
        assert (here.root / "f").stat().st_mtime_ns == before.st_mtime_ns
        assert (here.root / "f").read_text() == "old"

    def test_another_hash_is_a_conflict_that_names_it(self, here: Ground) -> None:
        (here.root / "f").write_text("old")
        digest = content_hash(b"old")
        with pytest.raises(Conflict, match=f"its hash is `{digest}`. Read it again, then repeat the edit."):
            edit(here, "f", "old", "new", expected_hash="0123456789abcdef")
        with pytest.raises(Invalid, match="is not a hash"):
            edit(here, "f", "old", "new", expected_hash="sha256:none")
        whole = hashlib.sha256(b"old").hexdigest()
        with pytest.raises(Conflict):
            edit(here, "f", "old", "new", expected_hash=whole[:-1] + "01"[whole[-1] == "0"])
        edit(here, "f", "old", "between", expected_hash=digest.upper())
        edit(here, "f", "between", "new", expected_hash=hashlib.sha256(b"between").hexdigest())
        assert (here.root / "f").read_text() == "new"

    @pytest.mark.parametrize("meddle", ["write", "replace", "remove"])
    def test_what_others_did_meanwhile_is_not_lost(self, here: Ground, meddle: str) -> None:
        path = here.root / "f"
        path.write_text("old")

        def revise(text: str) -> str:
            if meddle == "write":
                path.write_text("theirs, longer")
            elif meddle == "replace":
                (here.root / "g").write_text("its")
                (here.root / "g").replace(path)
            else:
                path.unlink()
            return "ours"

        with pytest.raises(Conflict, match="changed by somebody else"):
            change_files([FileChange(here.writable("f"), revise)], dry_run=False, cancel=stop())
        assert not path.exists() if meddle == "remove" else path.read_text() in ("theirs, longer", "its")
        assert here.temporary() == []
        if meddle != "remove":
            change_files([FileChange(here.writable("f"), lambda _: "ours")], dry_run=False, cancel=stop())
            assert path.read_text() == "ours"

    def test_what_others_did_while_it_was_written_down_is_not_lost_and_leaves_no_step(
        self, here: Ground, tmp_path: Path
    ) -> None:
        path, store = here.root / "f", JournalStore(str(tmp_path / "undo"), most_bytes=1000, days=1)
        path.write_text("old")

        class Meddled(JournalEntry):
            def record(
                self, planned_changes: Sequence[PlannedChange], *, leads: bool = False
            ) -> Mapping[ReadablePath, WritablePath]:
                kept = super().record(planned_changes, leads=leads)
                path.write_text("theirs, longer")
                return kept

        with pytest.raises(Conflict, match="changed by somebody else"), Meddled(store, ORIGIN, stop()) as step:
            change_files(
                [FileChange(here.writable("f"), lambda _: "ours")], dry_run=False, cancel=stop(), journal_entry=step
            )
        assert path.read_text() == "theirs, longer"
        assert (here.temporary(), store.list_entries()) == ([], [])

    @posix
    def test_the_target_of_a_link_is_edited(self, here: Ground) -> None:
        (here.root / "f").write_text("old")
        (here.root / "f").chmod(0o640)
        (here.root / "l").symlink_to("f")
        edit(here, "l", "old", "new")
        assert (here.root / "l").is_symlink()
        assert ((here.root / "f").read_text(), (here.root / "f").stat().st_mode & 0o777) == ("new", 0o640)

    def test_many_edits_in_flight_all_arrive(self, here: Ground) -> None:
        (here.root / "f").write_text("".join(f"<{number}>\n" for number in range(20)))
        failures: list[BaseException] = []
        start = threading.Barrier(20)

        def one(number: int) -> None:
            start.wait()
            try:
                edit(here, "f", f"<{number}>", f"[{number}]")
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=one, args=(number,)) for number in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert (here.root / "f").read_text() == "".join(f"[{number}]\n" for number in range(20))


class TestSeveral:
    """All or nothing over several files."""

    PATCH = (
        "--- a/one\n+++ b/one\n@@ -1 +1 @@\n-1\n+eins\n"
        "--- /dev/null\n+++ b/new\n@@ -0,0 +1,2 @@\n+neu\n+neuer\n"
        "--- a/two\n+++ /dev/null\n@@ -1 +0,0 @@\n-2\n"
    )

    @pytest.fixture
    def three(self, here: Ground) -> Ground:
        for name, text in (("one", "1\n"), ("two", "2\n"), ("three", "3\n")):
            (here.root / name).write_text(text)
        return here

    def state(self, here: Ground) -> dict[str, str]:
        return {path.name: path.read_text() for path in here.root.iterdir()}

    async def test_edited_created_and_deleted(self, three: Ground) -> None:
        answer = await Tools(three.policy).edit_files(self.PATCH)
        assert answer.files == [
            ("one", "edited"),
            ("new", "created"),
            ("two", "deleted"),
        ]
        assert self.state(three) == {"one": "eins\n", "new": "neu\nneuer\n", "three": "3\n"}
        assert answer.text() == "edited one, line 1 (+1 -1)\ncreated new\ndeleted two"

    async def test_a_patch_that_deletes_removes_all_that_is_there(self, three: Ground) -> None:
        (three.root / "two").write_text("2\nmore\n")
        patch = "--- a/two\n+++ /dev/null\n@@ -1 +0,0 @@\n-2\n"
        with pytest.raises(Conflict, match=r"holds more than .* Read it again, then make the patch anew"):
            await Tools(three.policy).edit_files(patch)
        await Tools(three.policy).edit_files(patch.replace("-1 +0,0", "-1,2 +0,0") + "-more\n")
        assert "two" not in self.state(three)

    def test_each_folder_is_made_durable_once(self, three: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
        (three.root / "sub").mkdir()
        (three.root / "sub" / "four").write_text("4\n")
        synced: list[str] = []
        monkeypatch.setattr(operations, "fsync_folder", lambda folder, *_: synced.append(folder.path.display))
        changes = [FileChange(three.writable(name), str.strip) for name in ("one", "sub/four", "two")]
        change_files(changes, dry_run=False, cancel=stop())
        assert synced == [".", "sub"]

    async def test_a_dry_run(self, three: Ground) -> None:
        before = self.state(three)
        answer = await Tools(three.policy).edit_files(self.PATCH, dry_run=True)
        assert self.state(three) == before
        assert answer.diff.splitlines() == [
            "--- a/one", "+++ b/one", "@@ -1 +1 @@", "-1", "+eins",
            "--- /dev/null", "+++ b/new", "@@ -0,0 +1,2 @@", "+neu", "+neuer",
            "--- a/two", "+++ /dev/null", "@@ -1 +0,0 @@", "-2",
        ]  # fmt: skip

    async def test_what_the_model_is_spared_a_view_gets_whole(self, three: Ground) -> None:
        old = "".join(f"line {number}\n" for number in range(1500))
        (three.root / "long").write_bytes(old.encode())
        tools = Tools(three.policy)
        edits = [Edit(old_text="line", new_text="LINE", replace_all=True)]
        tried = await tools.edit_file("long", edits, dry_run=True)
        shown = tried.for_views
        assert shown["hash"] == content_hash(old.encode())
        assert "[diff cut to 10,000 of " in tried.text() and "LINE 1499" not in tried.text()
        [patch] = parse_patch(shown["diff"])
        assert apply_hunks(old, patch, "`long`", stop()) == old.replace("line", "LINE")
        short = await tools.edit_file("one", [Edit(old_text="1", new_text="I")])
        assert short.for_views == {"diff": "--- a/one\n+++ b/one\n@@ -1 +1 @@\n-1\n+I\n"}
        assert set((await tools.edit_file("one", [Edit(old_text="I", new_text="1")], dry_run=True)).for_views) == {
            "hash"
        }

    @pytest.mark.parametrize(
        "last",
        [
            "--- a/three\n+++ b/three\n@@ -1 +1 @@\n-wrong\n+drei\n",
            "--- /dev/null\n+++ b/three\n@@ -0,0 +1 @@\n+drei\n",
            "--- a/gone\n+++ b/gone\n@@ -1 +1 @@\n-x\n+y\n",
            "--- a/../outside/secret.txt\n+++ b/../outside/secret.txt\n@@ -1 +1 @@\n-OUTSIDE\n+x\n",
            "--- a/one\n+++ b/one\n@@ -1 +1 @@\n-1\n+uno\n",
        ],
    )
    async def test_one_that_can_not_be_changed_keeps_all_from_it(self, three: Ground, last: str) -> None:
        before = self.state(three)
        with pytest.raises(Problem):
            await Tools(three.policy).edit_files(self.PATCH + last)
        assert self.state(three) == before

    async def test_what_git_does_not_prefix(self, three: Ground) -> None:
        (three.root / "a").mkdir()
        (three.root / "a" / "one").write_text("1\n")
        await Tools(three.policy).edit_files("--- a/one\n+++ a/one\n@@ -1 +1 @@\n-1\n+x\n")
        assert (three.root / "a" / "one").read_text() == "x\n"
        await Tools(three.policy).edit_files("--- three\n+++ three\n@@ -1 +1 @@\n-3\n+x\n")
        assert (three.root / "three").read_text() == "x\n"

    @posix
    async def test_a_rename_that_fails_takes_back_those_before_it(
        self, three: Ground, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before, inode = self.state(three), (three.root / "one").stat().st_ino
        real = os.rename

        def rename(source: str, target: str, **folders: int) -> None:
            if source == "two":
                raise OSError(5, "Input/output error")
            real(source, target, **folders)

        monkeypatch.setattr(os, "rename", rename)
        with pytest.raises(Problem, match="`two` failed: Input/output error"):
            await Tools(three.policy).edit_files(self.PATCH)
        assert self.state(three) == before
        assert (three.root / "one").stat().st_ino == inode

    @posix
    async def test_what_can_not_be_taken_back_is_said(self, three: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
        real = os.rename

        def rename(source: str, target: str, **folders: int) -> None:
            if source == "two" or (target == "one" and (three.root / "one").read_text() == "eins\n"):
                raise OSError(5, "Input/output error")
            real(source, target, **folders)

        monkeypatch.setattr(os, "rename", rename)
        with pytest.raises(Problem, match="could not be taken back in `one`") as failure:
            await Tools(three.policy).edit_files(self.PATCH)
        monkeypatch.undo()
        (backup,) = three.temporary()
        assert backup in str(failure.value)
        # What is the only copy stays, whatever the next processes clean.
        monkeypatch.setattr(temp_files, "_START_TIME", time.time() + 60)
        monkeypatch.setattr(temp_files, "_cleaned_folders", set())
        assert temp_files.clean_leftovers(three.policy, stop()) == 0
        assert (three.root / backup).read_text() == "1\n"


@pytest.mark.share(10, slow=10)
@pytest.mark.parametrize("seed", range(40))
async def test_a_patch_brings_every_byte_that_git_means(
    here: Ground, tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    chance = random.Random(seed)
    marks = chance.choice([["\n"], ["\r\n"], ["\n", "\r\n"], ["\n", "\n", "\r"], ["\r\n", "\r"]])

    def content() -> str:
        lines = [chance.choice("abcd") + chance.choice(marks) for _ in range(chance.randrange(12))]
        return "".join(lines)[: chance.choice([None, None, -1])]

    def changed(text: str) -> str:
        lines = text.splitlines(keepends=True)
        for _ in range(chance.randrange(1, 4)):
            at = chance.randrange(len(lines) + 1)
            lines[at : at + chance.randrange(3)] = [chance.choice("xyz") + chance.choice(marks)] * chance.randrange(3)
        return "".join(lines)[: chance.choice([None, None, -1])]

    repository = tmp_path_factory.mktemp("repository")
    git = partial(git_in, repository)
    git("init", "-q")
    old = {name: content() for name in ("a", "b c", "d/e", "gone", "same")}
    write(repository, old)
    write(here.root, old)
    git("add", "-A")
    git("commit", "-q", "-m", "old")
    new = {name: changed(text) for name, text in old.items() if name not in ("gone", "same")}
    new |= {"made": content(), "d/new/run": content() or "x", "same": old["same"]}
    (repository / "gone").unlink()
    write(repository, new)
    (repository / "d/new/run").chmod(0o755)
    git("add", "-A")
    if patch := git("diff", "--cached", "--no-renames"):
        await Tools(here.policy).edit_files(patch)
    found = {
        path.relative_to(here.root).as_posix(): path.read_bytes() for path in here.root.rglob("*") if path.is_file()
    }
    assert found == {name: text.encode() for name, text in new.items()}, patch
    if sys.platform != "win32":
        modes = [(here.root / name).stat().st_mode & 0o100 for name in ("d/new/run", "made")]
        assert modes == [0o100, 0]


def write(root: Path, texts: dict[str, str]) -> None:
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(text.encode())


class TestSaid:
    """What a patch says and text can't do is told."""

    async def test_a_mode_that_changes(self, here: Ground) -> None:
        (here.root / "f").write_text("a\n")
        modes = "diff --git a/f b/f\nold mode 100644\nnew mode 100755\nindex 1..2\n"
        patch = modes + "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n"
        said = (await Tools(here.policy).edit_files(patch)).text()
        assert "f: its mode stays, not 100755" in said, said

    async def test_a_link_is_not_made_as_a_file(self, here: Ground) -> None:
        patch = "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+f\n"
        with pytest.raises(Invalid, match="makes `l` a link or a submodule"):
            await Tools(here.policy).edit_files(patch)

    @pytest.mark.parametrize("dry_run", [False, True])
    @pytest.mark.parametrize("names", [("k/x", "k/x/y"), ("k/x/y/z", "k/x"), ("x", "x/y")])
    async def test_a_file_is_no_folder_of_another(self, here: Ground, names: tuple[str, str], dry_run: bool) -> None:
        patch = "".join(f"--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+f\n" for name in names)
        short, long = sorted(names, key=len)
        with pytest.raises(Invalid, match=f"`{long}` can't be made below `{short}`"):
            await Tools(here.policy).edit_files(patch, dry_run)
        assert not any(here.root.iterdir())


class TestForms:
    """Patches as models write them."""

    @pytest.mark.parametrize(
        "patch",
        [
            "--- a/f\n+++ b/f\n@@\n b\n-c\n+C\n",
            "--- a/f\n+++ b/f\n@@ def f():\n b\n-c\n+C\n d\n",
            "--- a/f\n+++ b/f\n@@ ... @@\n-c\n+C\n",
            "*** Begin Patch\n*** Update File: f\n@@\n b\n-c\n+C\n*** End Patch",
            "*** Begin Patch\n*** Update File: f\n b\n-c\n+C\n d\n*** End of File\n*** End Patch\n",
            "```\n*** Begin Patch\n*** Update File: f\n@@\n-c\n+C\n*** End Patch\n```\n",
            "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: f\n@@\n-c\n+C\n*** End Patch\nEOF\n",
            "*** Update File: f\r\n@@\r\n-c\r\n+C\r\n\r\n",
        ],
    )
    async def test_a_hunk_without_numbers_is_found_by_its_text(self, here: Ground, patch: str) -> None:
        (here.root / "f").write_text("a\nb\nc\nd\n")
        await Tools(here.policy).edit_files(patch)
        assert (here.root / "f").read_text() == "a\nb\nC\nd\n"

    @pytest.mark.share(14)
    @pytest.mark.parametrize("form", ["update", "add", "bare"])
    @pytest.mark.parametrize("seed", range(8))
    async def test_mixed_line_ends_are_those_that_the_patch_says(self, here: Ground, seed: int, form: str) -> None:
        chance, tools = random.Random(seed), Tools(here.policy)
        for number in range(40):
            inner = ["", "\r", "\rq"] if seed % 2 else [""]
            old = [
                f"{at}{chance.choice(inner)}{chance.choice(['', chr(13)])}\n" for at in range(chance.randrange(2, 5))
            ]
            new, at = list(old), chance.randrange(len(old))
            new[at] = f"new{chance.choice(inner)}{chance.choice(['', chr(13)])}\n"
            around = [[f" {one}" for one in some] for some in (old[:at], old[at + 1 :])]
            body = "".join([*around[0], f"-{old[at]}+{new[at]}", *around[1]])
            name = f"f{number}"
            patch = {
                "update": f"*** Begin Patch\n*** Update File: {name}\n@@\n{body}*** End Patch\n",
                "add": f"*** Begin Patch\n*** Add File: {name}\n{''.join(f'+{one}' for one in new)}*** End Patch\n",
                "bare": f"--- a/{name}\n+++ b/{name}\n@@\n{body}",
            }[form]
            if form != "add":
                (here.root / name).write_bytes("".join(old).encode())
            await tools.edit_files(patch)
            assert (here.root / name).read_bytes() == "".join(new).encode(), patch

    async def test_a_hunk_without_numbers_at_two_places_is_refused(self, here: Ground) -> None:
        (here.root / "f").write_text("c\nb\nc\n")
        with pytest.raises(Conflict, match=r"its lines are at 1, 3.*Quote more"):
            await Tools(here.policy).edit_files("--- a/f\n+++ b/f\n@@\n-c\n+C\n")

    @pytest.mark.parametrize("seed", range(6))
    async def test_what_stands_behind_the_marks_decides_between_places(self, here: Ground, seed: int) -> None:
        chance, tools = random.Random(seed), Tools(here.policy)
        opens, closes = (
            (("class {}:", "def {}():", ""), ("class {} {{", "void {}() {{", "}"))[seed % 2][:2],
            "}" * (seed % 2),
        )
        for _ in range(15):
            lines, blocks = list[str](), dict[tuple[str, str], list[int]]()
            for outer in chance.sample("ABCD", 3):
                lines.append(opens[0].format(outer))
                for inner in chance.sample("fgh", 2):
                    lines.append(f"    {opens[1].format(inner)}")
                    blocks[outer, inner] = [len(lines) + number for number in range(2)]
                    lines += [f"        {word}" for word in chance.sample("xyz", 2)]
                    lines += [f"    {closes}"] * bool(closes)
                lines += [closes] * bool(closes) + [""]
            (outer, inner), own = chance.choice(list(blocks.items()))
            old = chance.choice("xyz")
            holds = [at for at in own if lines[at].strip() == old]
            every = [at for at, line in enumerate(lines) if line.strip() == old]
            (here.root / "f").write_text("\n".join(lines) + "\n")
            marks = f"@@ {opens[0].format(outer)}\n@@ {opens[1].format(inner)}\n"
            patch = f"*** Begin Patch\n*** Update File: f\n{marks}-        {old}\n+        new\n*** End Patch\n"
            is_below = len(every) == 1 and every[0] > lines.index(opens[0].format(outer))
            wanted = holds or (every if is_below else [])
            if wanted:
                await tools.edit_files(patch)
            else:
                with pytest.raises((Conflict, NotFound)):
                    await tools.edit_files(patch)
            after = [line if at not in wanted else "        new" for at, line in enumerate(lines)]
            assert (here.root / "f").read_text().splitlines() == after

    @pytest.mark.parametrize(
        ("text", "mark", "line"),
        [
            ("## one\nx\n## two\nx\n", "## two", 4), ("## two\nx\n## one\nx\n", "## two", 2),
            ("def f():\n    x\n\nclass B:\n    x\n", "def f():", 2),
            ("def f(\n    a,\n):\n    x\ny\n    x\n", "def f(", 4),
            ("if a:\n    x\nelse:\n    y\nif b:\n    x\n", "if a:", 2), ("f\n    x\nf\n    x\n", "f", 0),
            ("def g():\n    y\nx = 1\n    x\n    x\n", "def g():", 0),
        ],
    )  # fmt: skip
    async def test_a_block_ends_where_the_next_begins(self, here: Ground, text: str, mark: str, line: int) -> None:
        (here.root / "f").write_text(text)
        old = next(one for one in text.splitlines() if one.strip() == "x")
        work = Tools(here.policy).edit_files
        patch = f"--- a/f\n+++ b/f\n@@ {mark}\n-{old}\n+new\n"
        if not line:
            with pytest.raises(Conflict, match="its lines are at"):
                await work(patch)
            return
        await work(patch)
        assert [at for at, one in enumerate((here.root / "f").read_text().splitlines(), 1) if one == "new"] == [line]

    async def test_files_are_added_and_deleted_by_name(self, here: Ground) -> None:
        (here.root / "gone").write_text("x\n")
        patch = (
            "*** Begin Patch\n*** Add File: new\n+one\n+two\n*** Add File: none\n*** Delete File: gone\n*** End Patch"
        )
        await Tools(here.policy).edit_files(patch)
        assert {path.name: path.read_text() for path in here.root.iterdir()} == {"new": "one\ntwo\n", "none": ""}

    async def test_blank_lines_between_files_are_no_context(self, here: Ground) -> None:
        (here.root / "f").write_text("a\nc\n\nd\n")
        files = "*** Update File: f\n@@\n-a\n+A\n\n@@\n c\n\n-d\n+D\n\n\n*** Add File: new\n+one\n\n"
        await Tools(here.policy).edit_files(f"*** Begin Patch\n{files}*** End Patch\n")
        assert {path.name: path.read_text() for path in here.root.iterdir()} == {"f": "A\nc\n\nD\n", "new": "one\n"}

    @pytest.mark.parametrize("last", ["-c\n", " c\n", "-c\n-- two\n", "--\n"])
    async def test_the_signature_of_a_mail_is_no_line_of_its_patch(self, here: Ground, last: str) -> None:
        old = "b\n" + "".join(line[1:] + "\n" for line in last.splitlines())
        (here.root / "f").write_text(old)
        kept = "".join(line[1:] + "\n" for line in last.splitlines() if line[0] == " ")
        number, left = old.count("\n"), 1 + kept.count("\n")
        mail = (
            f"From 1 Mon Sep 17 00:00:00 2001\nSubject: [PATCH] x\n\n---\n f | 1 +\n\n"
            f"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,{number} +1,{left} @@\n-b\n+B\n{last}-- \n2.39.5\n\n"
        )
        await Tools(here.policy).edit_files(mail)
        assert (here.root / "f").read_text() == f"B\n{kept}"

    @pytest.mark.parametrize(
        ("patch", "said"),
        [
            ("*** Begin Patch\n*** End Patch", "names no file"),
            ("*** Begin Patch\n*** Update File: f\n*** End Patch", "changes nothing in `f`"),
            ("*** Begin Patch\n*** Add File: g\n*** Move to: h\n+C\n", "moves `g`, which it does not update"),
            (
                "*** Begin Patch\n*** Update File: f\n*** Move to: g\n*** Move to: h\n*** End Patch",
                "moves `f` twice",
            ),
            ("*** Begin Patch\n*** Update File: f\nc\n", "must begin with"),
        ],
    )
    async def test_what_is_wrong_is_named(self, here: Ground, patch: str, said: str) -> None:
        (here.root / "f").write_text("c\n")
        with pytest.raises(Invalid, match=said):
            await Tools(here.policy).edit_files(patch)
        assert (here.root / "f").read_text() == "c\n"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_many_edits_of_a_long_text_take_little_each(end: str) -> None:
    lines = [f"line {number}" for number in range(100_000)]
    edits = [Replacement(f"line {number}\nline", f"LINE {number}\nline") for number in range(50_000, 50_100)]
    begun = time.thread_time()
    new = apply_replacements(end.join(lines), edits, "f", stop())
    assert time.thread_time() - begun < 2
    assert new == end.join([*lines[:50_000], *(line.upper() for line in lines[50_000:50_100]), *lines[50_100:]])


async def test_the_tool(here: Ground) -> None:
    (here.root / "f").write_text("a b a")
    edits = [Edit(old_text="b", new_text="c"), Edit(old_text="a", new_text="x", replace_all=True)]
    answer = await Tools(here.policy).edit_file("f", edits)
    assert (here.root / "f").read_text() == "x c x"
    assert answer.files == [("f", "edited")]


# What a file holds, what is quoted of it, and what is said of the difference.
LOOKALIKES = [
    ("10\u00a0000 EUR\n", "10 000 EUR", "line 1, column 3 has U+00A0 (no-break space), the old text U+0020 (space)"),
    ("a\n10\u202f000\n", "10 000", "line 2, column 3 has U+202F (narrow no-break space), the old text U+0020 (space)"),
    ("x = 1\n", "x\u00a0= 1", "column 2 has U+0020 (space), the old text U+00A0 (no-break space)"),
    ("cafe\u0301 noir\n", "café noir", "column 4 has `e` (U+0065 latin small letter e), the old text `é` (U+00E9"),
    ("café noir\n", "cafe\u0301 noir", "column 4 has `é` (U+00E9 latin small letter e with acute), the old text `e`"),
    ("ab\u200bc\n", "abc", "column 3 has U+200B (zero width space), the old text nothing"),
    ("abc\n", "ab\u200bc", "column 3 has `c` (U+0063 latin small letter c), the old text U+200B (zero width space)"),
    ("it\u2019s\r\nso\r\n", "it's\nso", "column 3 has `\u2019` (U+2019 right single quotation mark), the old text `'`"),
    ("well\u2011known\n", "well-known", "column 5 has `\u2011` (U+2011 non-breaking hyphen), the old text `-`"),
]


@pytest.mark.parametrize(("text", "quoted", "difference"), LOOKALIKES)
async def test_a_text_that_looks_the_same_is_named_and_taken_when_asked(
    tmp_path: Path, text: str, quoted: str, difference: str
) -> None:
    (tmp_path / "f").write_bytes(text.encode())
    tools = Tools(served(tmp_path))
    with pytest.raises(NotFound) as caught:
        await tools.edit_file("f", [Edit(old_text=quoted, new_text="new")])
    assert difference in caught.value.fix and caught.value.fix.endswith("Set `lookalike` to take it.")
    assert (tmp_path / "f").read_bytes() == text.encode()
    await tools.edit_file("f", [Edit(old_text=quoted, new_text="new", lookalike=True)])
    assert "new" in (tmp_path / "f").read_text("utf-8")


async def test_of_several_that_look_the_same_none_is_taken(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a\u00a0b a\u202fb", "utf-8")
    with pytest.raises(NotFound, match="several times in characters that look the same"):
        await Tools(served(tmp_path)).edit_file("f", [Edit(old_text="a b", new_text="", lookalike=True)])


@pytest.mark.parametrize(
    ("old", "is_told"),
    [
        ("1\tdef f():\n2\t    pass", True),
        ("   1:def f():", True),
        ("  2\u2192    pass\n", True),
        ("1 | def f():", True),
        ("def f():\n2\t    pass", False),
        ("1\tdef g():", False),
    ],
)
async def test_numbers_copied_with_the_lines_are_known(tmp_path: Path, old: str, is_told: bool) -> None:
    (tmp_path / "f").write_text("def f():\n    pass\n")
    with pytest.raises(NotFound) as caught:
        await Tools(served(tmp_path)).edit_file("f", [Edit(old_text=old, new_text="x")])
    assert ("without the numbers before the lines" in caught.value.fix) is is_told
