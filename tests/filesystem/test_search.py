"""Names and contents, complete, in one order, the same with ripgrep and without."""

from __future__ import annotations

import contextlib
import os
import random
import re
import stat
import subprocess
import sys
import time
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import pytest

from filesystem.reading import Grep, fill, flat, on_linux, served
from filesystem.tool_calls import Tools
from mcp_batteries.concurrency.cancellation import CancelToken, WorkCancelled
from mcp_batteries.concurrency.threads import run_in_thread
from mcp_batteries.errors import Invalid, Problem
from mcp_fs.engine.changing.replacing.replace import replace_in_files
from mcp_fs.engine.changing.replacing.substitution import Substitution
from mcp_fs.engine.handles import syscalls
from mcp_fs.engine.handles.path_opening import Folder
from mcp_fs.engine.listing import folder_tree, walk
from mcp_fs.engine.listing.folder_tree import list_tree
from mcp_fs.engine.listing.walk import WalkFilter
from mcp_fs.engine.patterns.prefilter import byte_pattern
from mcp_fs.engine.patterns.regex import compile_byte_filter, compile_line_search
from mcp_fs.engine.reading.text_page import LineIndex, PageRequest, read_page
from mcp_fs.engine.search import file_list, ripgrep, text_search
from mcp_fs.engine.search import sources as opened_module
from mcp_fs.engine.search.find import find_files
from mcp_fs.engine.search.grep import GrepOptions, count_matches
from mcp_fs.engine.search.grep import grep as lines_of_file
from mcp_fs.engine.search.query import Query
from mcp_fs.engine.search.text_search import search_text
from mcp_fs.models import Matches
from mcp_fs.policy import ReadablePath


def test_matching_lines_with_path_and_number(tmp_path: Path, grep: Grep) -> None:
    fill(tmp_path, {"b/x.py": "one\ntwo needle\n", "a.txt": "needle\n\nneedle 2", "c.txt": "none\n"})
    assert grep("needle") == ["a.txt:1:needle", "a.txt:3:needle 2", "b/x.py:2:two needle"]
    assert grep("needle", "b") == ["b/x.py:2:two needle"]
    assert grep("needle", "b/x.py") == ["b/x.py:2:two needle"]
    assert grep("needle", files_only=True) == ["a.txt", "b/x.py"]


@pytest.mark.parametrize(
    ("pattern", "query", "lines"),
    [
        (r"^b", {}, [2]),
        (r"r$", {}, [2]),
        (r"\d{3}", {}, [3]),
        (r"w\b", {}, []),  # letters of all scripts are letters
        (r"w.rd", {}, [4]),
        (r"[^\x00-\x7f]", {}, [4]),
        (r"BAR", {}, []),
        (r"(?i)BAR", {}, [2]),
        (r"WÖRD", {"ignore_case": True}, [4]),
        (r"a.c", {"literal": True}, [1]),
        (r"A.C", {"literal": True, "ignore_case": True}, [1]),
        (r"a\.c|123", {}, [1, 3]),
        (r"[[:digit:]]+$", {}, [3]),
        (r"[]x]|\]", {}, [5]),
        (r"[&&a]&", {}, [5]),
        (r"x{y}", {}, [5]),
        (r"^$", {}, [6]),
        (r"\S\s\S", {}, [5]),
    ],
)
def test_expressions(tmp_path: Path, grep: Grep, pattern: str, query: dict[str, bool], lines: list[int]) -> None:
    fill(tmp_path, {"t": "a.c\nbar\n123\nwörd\n]&& x{y}\n\nend of line\n"[: -len("end of line\n")]})
    assert [int(line.split(":")[1]) for line in grep(pattern, **query)] == lines


def test_line_ends_of_windows_are_line_ends(tmp_path: Path, grep: Grep) -> None:
    fill(tmp_path, {"t": "one;\r\ntwo\r\n;three\r\n"})
    assert grep(";$") == ["t:1:one;"]
    assert grep("^;") == ["t:3:;three"]


@pytest.mark.share(12)
@pytest.mark.parametrize(
    ("codec", "line"),
    [
        ("latin-1", "le café était fermé"),
        ("cp1252", "le “café” était fermé"),
        ("gbk", "这里是中文文字，café 之后还有一些文字"),
        ("shift_jis", "これは日本語の文字です。表示とソース"),
        ("euc_jp", "これは日本語の文字です。表示とソース"),
        ("cp1251", "здесь лежит русский текст, и ещё немного"),
        ("utf-16", "这里是中文 text"),
        ("utf-16-le", "plain words é"),
        ("utf-16-be", "plain words é"),
        ("utf-32", "这里是中文 text"),
        ("utf-32-le", "plain words é"),
        ("utf-32-be", "plain words é"),
    ],
)
def test_text_is_searched_in_whatever_encoding_it_is_read_in(tmp_path: Path, grep: Grep, codec: str, line: str) -> None:
    line = line.encode(codec, "ignore").decode(codec)
    words = [word for word in line.split() if not word.isascii()] or line.split()
    # With a high letter beside it: a pattern of ASCII alone that only the decoded line fits.
    edges = rf"(?:^|\W){re.escape(words[-1])}(?:\W|$)"
    text = f"one\r\n{line}\r\ntwo\n" * 3
    fill(tmp_path, {"d/a": text.encode(codec), "other": "nothing\n", "picture": b"\x89PNG\r\n\x1a\n\0\0\1\2\xff"})
    assert read_page(served(tmp_path).readable("d/a"), PageRequest(), LineIndex(), CancelToken()).body == text
    found = [f"d/a:{number}:{line}" for number in (2, 5, 8)]
    for pattern in (re.escape(line), f"^.{{{len(line)}}}$", words[-1], edges, rf"[^\x00-\x7f]{line[-1]}|{words[-1]}"):
        assert grep(pattern) == found, pattern
    assert grep(line, literal=True) == found
    assert grep(line.upper(), literal=True, ignore_case=True) == found
    assert grep(line, "d/a", literal=True) == found


def test_a_long_file_in_another_encoding_is_searched_to_its_end(tmp_path: Path, grep: Grep) -> None:
    filler = "文字 and words\n" * 400_000
    fill(tmp_path, {"a": (filler + "the needle é 文\n").encode("utf-16-le"), "b": (filler + "needle 文").encode("gbk")})
    assert grep("needle é") == ["a:400001:the needle é 文"]
    assert grep("needle .?.?文$") == ["a:400001:the needle é 文", "b:400001:needle 文"]


def test_a_stray_byte_hides_no_match(tmp_path: Path, grep: Grep) -> None:
    fill(tmp_path, {"a": "à la café\n".encode() * 20 + b"stray \x92 byte\n" + "voilà\n".encode()})
    assert grep("voilà$") == ["a:22:voilà"]
    assert grep("^stray") == ["a:21:stray \ufffd byte"]


def test_a_binary_file_that_is_named_is_told_to_be_one(tmp_path: Path, program: str | None) -> None:
    fill(tmp_path, {"a": b"\x89PNG\r\n\x1a\n\0\0\0\r needle \0\1\xff"})
    policy = served(tmp_path)
    answer = search_text([policy.readable("a")], Query("needle"), None, CancelToken(), program)
    assert answer.text() == ("[0 files match; binary, not searched: set include_binary, or use read_media: a]")
    answer = search_text([policy.readable(".")], Query("needle"), None, CancelToken(), program)
    assert answer.text() == "[0 files match; 1 binary not searched (a); set include_binary]"
    answer = search_text([policy.readable(".")], Query("needle", include_binary=True), None, CancelToken(), program)
    assert answer.text().startswith("[1 match in 1 file]\na:3:\r needle ")


def test_an_empty_answer_says_what_was_left_out(tmp_path: Path, program: str | None) -> None:
    fill(tmp_path, {".gitignore": "build/\n*.log\n", "build/x": "needle", "build/a.log": "needle", ".dot": "needle"})
    policy = served(tmp_path)
    expected = "left out 2 hidden and 1 ignored (.dot, .gitignore, build/); set include_hidden and include_ignored"
    answer = search_text([policy.readable(".")], Query("needle"), None, CancelToken(), program)
    assert answer.text() == f"[0 files match; {expected}]"
    found = find_files([policy.readable(".")], "x", CancelToken()).text()
    assert found.startswith("[0 found; left out 1 ignored (build/); set include_ignored; ")
    # Also below a folder that is named, where the rules above hold on.
    answer = search_text([policy.readable("build")], Query("needle", glob="*.log"), None, CancelToken(), program)
    assert "left out 1 ignored (build/a.log); set include_ignored" in answer.text()
    assert (
        find_files([policy.readable("build")], "*.log", CancelToken())
        .text()
        .startswith("[0 found; left out 1 ignored (build/a.")
    )
    assert (
        find_files([policy.readable(".")], "*", CancelToken(), walk_filter=WalkFilter(hidden=True, ignored=True)).total
        == 4
    )


def test_what_a_search_would_fetch_from_elsewhere_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, {"here.txt": "needle", "folder/cloud.txt": "needle"})
    monkeypatch.setattr(walk, "placeholders_among", lambda entries: {"cloud.txt"})
    opened: list[str] = []
    real = Folder.open
    monkeypatch.setattr(Folder, "open", lambda self, name, *more: opened.append(name) or real(self, name, *more))
    policy = served(tmp_path)
    said = "not downloaded yet, so not searched; `read_text` fetches it: folder/cloud.txt"
    answer = search_text([policy.readable(".")], Query("needle"), None, CancelToken(), None).text()
    assert answer.startswith("[1 match in 1 file") and said in answer
    change = Substitution({"needle": "pin"})
    seen = replace_in_files(policy.writable("."), "*", WalkFilter(), change, dry_run=True, cancel=CancelToken())
    assert said in "; ".join(seen.notes) and [file.path for file in seen.files] == ["here.txt"]
    assert "cloud.txt" not in opened


def test_counting_only(tmp_path: Path, program: str | None) -> None:
    fill(tmp_path, {"a": "hit\nhit hit\n", "b": "miss\n", "c/d": "hit\n", "e": "caf\xe9 hit\n".encode("latin-1")})
    policy = served(tmp_path)
    answer = search_text([policy.readable(".")], Query("hit", count_only=True), None, CancelToken(), program)
    assert answer.text() == "[4 matching lines in 3 files]\na:2\ne:1\nc/d:1"
    page = search_text([policy.readable(".")], Query("hit", count_only=True, limit=2), None, CancelToken(), program)
    assert page.cursor is not None
    page = search_text(
        [policy.readable(".")], Query("hit", count_only=True, limit=2), page.cursor, CancelToken(), program
    )
    assert page.text() == "[4 matching lines in 3 files]\nc/d:1"


def test_only_what_matched_each_text_once(tmp_path: Path, program: str | None) -> None:
    fill(tmp_path, {"a.py": "import os, import re\nimport os\n", "b.py": "x\nimport sys; import os"})
    policy = served(tmp_path)
    answer = search_text([policy.readable(".")], Query(r"import \w+", only_matching=True), None, CancelToken(), program)
    assert answer.text() == (
        "[3 matching lines in 2 files; 5 matches; 3 texts, each with its number]\n"
        "3\timport os\n1\timport re\n1\timport sys"
    )
    with pytest.raises(Invalid, match="together"):
        search_text(
            [policy.readable(".")], Query("x", only_matching=True, count_only=True), None, CancelToken(), program
        )


def test_named_groups_are_taken_out_of_what_matched(tmp_path: Path, program: str | None) -> None:
    log = "16:43 ERROR order=7 try=1\n16:44 ERROR order=7\r\n16:44 ERROR order=8 try=2 order=7 try=3\nelse\n"
    fill(tmp_path, {"a.log": log, "b.log": "été 09:01 ERROR order=7"})
    start = served(tmp_path).readable(".")

    def said(pattern: str) -> list[str]:
        return (
            search_text([start], Query(pattern, only_matching=True), None, CancelToken(), program)
            .text()
            .splitlines()[1:]
        )

    assert said(r"order=(?P<order>\d)") == ["4\t7", "1\t8"]
    assert said(r"^(?P<at>[\d:]+) .*?order=(?P<order>\d)") == ["1\t16:43\t7", "1\t16:44\t7", "1\t16:44\t8"]
    assert said(r"order=(?P<order>\d)(?: try=(?P<try>\d))?") == ["2\t7", "1\t7\t1", "1\t7\t3", "1\t8\t2"]
    assert said(r"\b(?P<word>\w+) 09") == ["1\tété"]
    assert said(r"order=(\d)") == ["4\torder=7", "1\torder=8"]


@pytest.mark.parametrize(
    "pattern",
    [
        r"(?P<x>[ab]+)",
        r"\b(?P<x>[ab])(?P<y>b?)",
        r"\b(?P<x>\w+)\b",
        r"-(?P<x>\w+)(?P<y>\w)\b",
        r"(?P<x>a)?(?P<y>-*)",
        r"^(?P<x>.)|(?P<y>b)$",
    ],
)
def test_named_groups_are_those_that_python_finds(tmp_path: Path, pattern: str) -> None:
    chance = random.Random(pattern)
    lines = ["".join(chance.choices("abé- ", k=chance.randrange(9))) for _ in range(300)]
    (tmp_path / "f").write_text("\n".join([*lines, ""]), "utf-8")
    query = Query(pattern, only_matching=True, limit=1000)
    said = search_text([served(tmp_path).readable("f")], query, None, CancelToken()).text().splitlines()[1:]
    found = Counter[str]()
    for line in lines:
        at = 0
        while at <= len(line) and (match := re.compile(pattern).search(line, at)):
            found["\t".join(group for group in match.groups() if group is not None)] += 1
            at = max(match.end(), match.start() + 1)
    assert Counter({text: int(number) for number, _, text in (line.partition("\t") for line in said)}) == found


def test_a_group_is_added_up_for_each_text(tmp_path: Path, program: str | None) -> None:
    rows = "day,land,amount\n2026-01-02,DE,10.10\n2026-01-03,FR,5\n2026-02-01,DE,-0.10\n2026-02-02,FR,\n"
    fill(tmp_path, {"a.csv": rows, "d/b.csv": '2026-02-03,BR,1e3\n2026-02-03,BR,"1,5"\n'})
    start = served(tmp_path).readable(".")

    def said(pattern: str, limit: int = 100) -> list[str]:
        query = Query(pattern, only_matching=True, limit=limit)
        return search_text([start], query, None, CancelToken(), program).text().splitlines()

    head, *found = said(r"^2026-(?P<month>\d\d)-\d\d,(?P<land>..),(?P<sum>.*)$")
    assert head == (
        "[6 matching lines in 2 files; 5 texts, each with its number and sum; sum of all 1016.50; "
        "1 of `sum` are no numbers and not added, such as ``]"
    )
    assert found == ["2\t02\tBR\t1001.5", "1\t01\tDE\t10.10", "1\t01\tFR\t5", "1\t02\tFR\t0", "1\t02\tDE\t-0.10"]
    assert said(r",(?P<sum>-?[\d.]+)$")[1:] == ["3\t15.00"]
    assert said(r"(?P<sum>\d+),FR", limit=1)[1:] == ["2\t5"]


def test_sums_are_those_of_python(tmp_path: Path) -> None:
    chance = random.Random(11)
    rows = [(chance.choice("abc"), f"{chance.randrange(-9999, 9999) / 100}") for _ in range(2000)]
    (tmp_path / "f").write_text("".join(f"{key} x={number}\n" for key, number in rows), "utf-8")
    query = Query(r"^(?P<key>\w) x=(?P<sum>\S+)", only_matching=True)
    said = search_text([served(tmp_path).readable("f")], query, None, CancelToken()).text().splitlines()[1:]
    sums = {key: sum(Decimal(number) for one, number in rows if one == key) for key in "abc"}
    found = {key: Decimal(number) for _, key, number in (line.split("\t") for line in said)}
    assert found == sums


@pytest.mark.parametrize(
    ("glob", "hidden"),
    [
        ("**", 4), ("*.py", 2), ("*.txt", 4), ("src/**", 1), ("src/*.py", 1), ("./src/a/**", 0), ("docs/**", 1),
        ("docs/*.py", 0), ("docs/.*", 1), (".github/*", 1), ("{src,docs}/**", 3), ("s*/", 2), ("docs/*/", 0),
        ("src/", 2),
    ],
)  # fmt: skip
def test_left_out_is_said_only_of_what_a_glob_could_mean(tmp_path: Path, glob: str, hidden: int) -> None:
    fill(tmp_path, {"src/a.py": "", "src/.cache/x.py": "", "docs/a.txt": "", "docs/.b.txt": "", ".github/c.py": ""})
    (tmp_path / ".env.txt").write_text("")
    start = served(tmp_path).readable(".")
    said = find_files([start], glob, CancelToken()).text()
    assert f"left out {hidden} hidden" in said if hidden else "left out" not in said, said
    every = find_files([start], glob, CancelToken(), walk_filter=walk.WalkFilter(hidden=True)).total
    assert hidden or every == find_files([start], glob, CancelToken()).total


@pytest.mark.parametrize("glob", ["src/*.jpg", "SRC/*.JPG"])
def test_left_out_is_said_in_any_case_where_names_have_any(tmp_path: Path, glob: str) -> None:
    fill(tmp_path, {"Src/a.JPG": "", "Src/.b.jpg": "", "Src/.c.Jpg": "", "Src/.d.txt": ""})
    said = find_files([served(tmp_path).readable(".")], glob, CancelToken(), ignore_case=True).text()
    assert said.startswith("[1 found; left out 2 hidden]"), said


def test_lines_are_counted_without_a_pattern(tmp_path: Path, program: str | None) -> None:
    fill(tmp_path, {"a": "1\n\n3", "b": "1\r\n2\r\n", "c": "", "d/e": "\n"})
    answer = search_text([served(tmp_path).readable(".")], Query("", count_only=True), None, CancelToken(), program)
    assert answer.text() == "[6 matching lines in 3 files]\na:3\nb:2\nd/e:1"
    with pytest.raises(Invalid, match="empty"):
        search_text([served(tmp_path).readable(".")], Query("", files_only=True), None, CancelToken(), program)


def test_words_are_counted_by_the_kind_of_file(tmp_path: Path, program: str | None) -> None:
    texts = {"a.md": "one two\nthree\n", "d/b.md": "one\n", "c.py": "x = 1\n", "none": "word"}
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    query = Query(r"\S+", only_matching=True, limit=1)
    said = search_text([served(tmp_path).readable(".")], query, None, CancelToken(), program).text()
    assert "; 8 matches: 4 in .md, 3 in .py, 1 in others; 7 texts, each with its number" in said
    one = search_text([served(tmp_path).readable("c.py")], query, None, CancelToken(), program).text()
    assert "; 3 matches; 3 texts, each with its number" in one


@on_linux
def test_a_log_that_begins_with_a_hole_takes_little_longer_than_reading_it(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as log:
        log.seek(256 * 1024 * 1024)
        log.write(b"\none\ntwo needle\n")
    begun = time.thread_time()
    with (tmp_path / "log").open("rb", buffering=0) as log:
        while log.read(4 * 1024 * 1024):
            pass
    read = time.thread_time() - begun
    answer = search_text([served(tmp_path).readable(".")], Query("needle"), None, CancelToken(), None)
    assert flat(answer.text()) == ["log:3:two needle"]
    assert time.thread_time() - begun - read < 8 * read


def test_a_log_with_nul_bytes_is_searched(tmp_path: Path, program: str | None) -> None:
    fill(tmp_path, {"log": b"\0" * 100_000 + b"one\ntwo needle\n" * 50, "not": b"needle\0\1\2\3\xff" * 500})
    answer = search_text(
        [served(tmp_path).readable(".")], Query("needle", max_per_file=1), None, CancelToken(), program
    )
    assert answer.text().splitlines()[1:] == ["log:2:two needle"]


LOG = """\
09:00 INFO start
09:01 ERROR failed order=7
Traceback (most recent call last):
  File "a.py", line 1
TimeOut: 800 ms
09:02 ERROR failed order=8
Traceback (most recent call last):
CardDeclined: 51
09:03 ERROR failed order=7
TimeOut: 800 ms
"""
TRACE = r"failed order=(?P<order>\d+)\n(?:(?:Trace| ).*\n)*TimeOut"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_match_may_go_over_several_lines(tmp_path: Path, program: str | None, end: str) -> None:
    fill(tmp_path, {"a.log": LOG.replace("\n", end), "b.log": "TimeOut\n"})
    start = served(tmp_path).readable(".")

    def said(pattern: str, **more: Any) -> list[str]:
        return search_text([start], Query(pattern, **more), None, CancelToken(), program).text().splitlines()

    assert said(TRACE) == [
        "[2 matches in 1 file]", "a.log", "2:09:01 ERROR failed order=7", "3-Traceback (most recent call last):",
        '4-  File "a.py", line 1', "5-TimeOut: 800 ms", "--", "9:09:03 ERROR failed order=7", "10-TimeOut: 800 ms",
    ]  # fmt: skip
    assert said(TRACE, last_matches=True, max_per_file=1)[2:] == ["9:09:03 ERROR failed order=7", "10-TimeOut: 800 ms"]
    assert said(TRACE, only_matching=True)[1:] == ["2\t7"]
    assert said(TRACE, count_only=True)[1:] == ["a.log:2"]
    assert said(r"51\r\n.*", only_matching=True)[1:] == ["1\t51\\n09:03 ERROR failed order=7"]
    assert said("51\r\n09:03", literal=True, files_only=True)[1:] == ["a.log"]
    assert said(r"(?s)start.*Card", context=1)[2:4] == ["1:09:00 INFO start", "2-09:01 ERROR failed order=7"]
    page = search_text([start], Query(TRACE, limit=1), None, CancelToken(), program)
    assert page.cursor is not None
    rest = search_text([start], Query(TRACE, limit=1), page.cursor, CancelToken(), program)
    assert rest.text().splitlines()[1:] == ["a.log", "9:09:03 ERROR failed order=7", "10-TimeOut: 800 ms"]


def test_of_a_long_match_is_told_what_is_not_shown(tmp_path: Path, grep: Grep) -> None:
    fill(tmp_path, {"a": "begin\n" + "x\n" * 60 + "end\nend\n"})
    lines = grep("(?s)begin.*?end|^end")
    assert lines[0] == "a:1:begin" and lines[-1] == "a:63:end"
    assert [line for line in lines if "more lines" in line] == ["a-52-... 11 more lines of this match"]


@pytest.mark.parametrize(
    "pattern",
    [r"a\nb", r"a+(\r\n|b)", r"\[\n\]", r"[a]\n", r"a\x0ab", r"-*\n\n?a", "a\nb", r"(?s)a.b", r"\bb\n(?P<x>\w)"],
)
def test_matches_over_several_lines_are_those_that_python_finds(tmp_path: Path, grep: Grep, pattern: str) -> None:
    chance = random.Random(pattern)
    text = "".join(chance.choices("ab-[]é\n", weights=(5, 5, 2, 1, 1, 1, 5), k=3000)) + "\n"
    fill(tmp_path, {"a": text})
    compiled, found, at = re.compile(pattern.replace(r"\r", ""), re.MULTILINE), list[int](), 0
    while match := compiled.search(text, at):
        found.append(text.count("\n", 0, match.start()) + 1)
        end = match.end() - match[0].endswith("\n")
        at = text.index("\n", end) + 1
    assert [int(line.split(":")[1]) for line in grep(pattern, limit=5000, max_per_file=5000) if ":" in line] == found
    tallied = search_text([served(tmp_path).readable("a")], Query(pattern, count_only=True), None, CancelToken())
    assert tallied.text().endswith(f"a:{len(compiled.findall(text))}")


def test_a_carriage_return_behind_a_backslash_is_a_letter(tmp_path: Path, grep: Grep) -> None:
    fill(tmp_path, {"a": "C:\\r\r\nb\r\n"})
    assert grep(r"C:\\r\nb") == grep(r"C:\\r\r\nb") == ["a:1:C:\\r", "a-2-b"]


@pytest.mark.parametrize("counts", [True, False])
def test_a_search_over_lines_ends_when_it_is_told_to(tmp_path: Path, counts: bool) -> None:
    (tmp_path / "a").write_text("a\nb\n" * 100)
    stop, search_lines = CancelToken(), compile_line_search(r"a\nb", literal=False, ignore_case=False, multiline=True)

    def find(text: bytes, offset: int) -> tuple[int, int] | None:
        stop.set()
        return search_lines(text, offset)

    fd = os.open(tmp_path / "a", os.O_RDONLY)
    try:
        with pytest.raises(WorkCancelled):
            count_matches(fd, find, stop, multiline=True) if counts else lines_of_file(
                fd, find, GrepOptions(max_matches=50, multiline=True), stop
            )
    finally:
        os.close(fd)


def test_a_line_break_may_be_left_out_by_a_class(tmp_path: Path, grep: Grep) -> None:
    fill(tmp_path, {"a": "a\\nb\n"})
    for pattern in (r"a[^\n]+b", r"a\\nb", r"[\n\\]", r"[]\n\\]"):
        assert grep(pattern) == [r"a:1:a\nb"]
    assert grep(r"a\nb", literal=True) == [r"a:1:a\nb"]


def test_context_is_shown_once_and_marked(tmp_path: Path, grep: Grep) -> None:
    fill(tmp_path, {"t": "".join(f"{number}\n" for number in range(1, 13))})
    assert grep("^(3|5|11)$", context=1) == [
        *("t-2-2", "t:3:3", "t-4-4", "t:5:5", "t-6-6", "--", "t-10-10", "t:11:11", "t-12-12")
    ]


def test_ignored_hidden_and_binary_files_are_left_out(tmp_path: Path, grep: Grep) -> None:
    fill(
        tmp_path,
        {
            ".gitignore": "*.log\nbuild/\n!keep.log\n",
            ".ignore": "secret.txt\n",
            ".git/info/exclude": "local\n",
            ".git/x": "x",
            "a.log": "x",
            "keep.log": "x",
            "build/y": "x",
            "secret.txt": "x",
            "local": "x",
            ".hidden": "x",
            "binary": b"\x89PNG\r\n\x1a\n\0\0\0\rx\0\1\xff",
            "sub/.gitignore": "!a.log\n/only-here\n",
            "sub/a.log": "x",
            "sub/only-here": "x",
            "sub/deep/only-here": "x",
            "utf16": "x\n".encode("utf-16"),
            "link": "",
        },
    )
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("keep.log")
    assert grep("x", files_only=True) == ["keep.log", "utf16", "sub/a.log", "sub/deep/only-here"]
    assert grep("x", "sub", files_only=True) == ["sub/a.log", "sub/deep/only-here"]
    everything = grep("x", files_only=True, walk_filter=WalkFilter(hidden=True, ignored=True))
    assert {".hidden", "a.log", "build/y", "secret.txt", "local", ".git/x"} <= set(everything)
    assert not {"binary", "link"} & set(everything)


def test_rules_reach_into_a_repository_inside(tmp_path: Path, grep: Grep) -> None:
    # ripgrep before 15 stopped a .gitignore there; the answer does not depend on which one is installed.
    rules = {".gitignore": "*.txt", ".ignore": "*.md", "in/.gitignore": "*.log"}
    fill(
        tmp_path,
        {**rules, "in/.git/HEAD": "", **dict.fromkeys(("a.txt", "in/a.txt", "in/a.md", "in/b.log", "in/b"), "x")},
    )
    assert grep("x", files_only=True) == ["in/b"]


def test_secrets_are_named_and_not_searched(tmp_path: Path, program: str | None) -> None:
    fill(tmp_path, {"id_rsa": "needle", "a": "needle", ".ssh/config": "needle"})
    wanted = WalkFilter(hidden=True)
    answer = search_text(
        [served(tmp_path).readable(".")], Query("needle", walk_filter=wanted), None, CancelToken(), program
    )
    assert [path for path, _, _ in answer.files] == ["a"]
    if program is None:
        assert "protected: id_rsa" in answer.text().splitlines()[0]


def test_what_could_not_be_read_is_named(tmp_path: Path, program: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, {"a": "needle", "b": "needle"})
    opened = opened_module.SearchedFile.open

    def denied(self: opened_module.SearchedFile, *more: Any) -> int:
        if self.parts == ("b",):
            raise PermissionError(13, "Permission denied")
        return opened(self, *more)

    monkeypatch.setattr(opened_module.SearchedFile, "open", denied)
    answer = search_text([served(tmp_path).readable(".")], Query("needle"), None, CancelToken(), program)
    assert answer.text() == "[1 match in 1 file; permission denied: b]\na:1:needle"


def test_a_long_line_is_cut_round_the_match(tmp_path: Path, grep: Grep) -> None:
    fill(tmp_path, {"t": "ä" * 500_000 + "needle" + "b" * 500_000})
    [line] = grep("needle")
    path, number, column, text = line.split(":", 3)
    text, _, size = text.partition(" [cut: ")
    assert (path, number, size) == ("t", "1", "1,500,006 bytes]")
    assert "needle" in text
    assert len(text) < 400
    whole = (tmp_path / "t").read_bytes()
    assert whole[int(column) - 1 :].startswith(text.encode())


def test_a_file_with_too_many_matches_says_so(tmp_path: Path, program: str | None) -> None:
    fill(tmp_path, {"a": "hit\n" * 50, "b": "hit\n"})
    answer = search_text(
        [served(tmp_path).readable(".")], Query("hit", max_per_file=2), None, CancelToken(), program
    ).text()
    assert answer.splitlines()[1:] == ["a", "1:hit", "2:hit", "50 in all", "b:1:hit"]
    assert "; raise max_per_file for more]" in answer.splitlines()[0]


def test_the_pages_of_a_search_hold_all_matches_of_a_file(tmp_path: Path, program: str | None) -> None:
    fill(tmp_path, {"a": "hit\n" * 5010, "b": "hit\n"})
    start = [served(tmp_path).readable(".")]
    query = Query("hit", max_per_file=100_000, limit=5000)
    page = search_text(start, query, None, CancelToken(), program)
    heads = [page.text().splitlines()[0]]
    matches = [line.line for file in page.files for line in file.lines]
    while page.cursor is not None:
        page = search_text(start, query, page.cursor, CancelToken(), program)
        heads.append(page.text().splitlines()[0])
        matches += [line.line for file in page.files for line in file.lines]
    assert matches == [*range(1, 5011), 1]
    assert "of 5,011 in 2 files" in heads[0] and "no more than" not in "".join(heads)


def test_more_last_matches_of_a_file_than_a_page_takes_are_no_error(tmp_path: Path, program: str | None) -> None:
    fill(tmp_path, {"a": "hit\n" * 5010})
    query = Query("hit", max_per_file=100_000, limit=5000, last_matches=True)
    page = search_text([served(tmp_path).readable(".")], query, None, CancelToken(), program)
    (head, *_) = page.text().splitlines()
    assert "of 5,010 matches" in head and "raise" not in head
    assert "; no more than 5,000 last matches of a file are shown; `count_only` counts all]" in head


def test_names_are_found_in_any_case(tmp_path: Path) -> None:
    fill(tmp_path, {"a.PDF": "", "b.pdf": "", "d/C.Pdf": "", "e.txt": ""})
    start = served(tmp_path).readable(".")
    answer = find_files([start], "*.PDF", CancelToken(), ignore_case=True).text()
    assert answer.splitlines() == ["[3 found]", "a.PDF", "b.pdf", "d/C.Pdf"]
    assert find_files([start], "*.PDF", CancelToken()).text().startswith("[1 found; 2 more only in another case")
    assert find_files([start], "*.png", CancelToken(), ignore_case=True).total == 0


def test_a_folder_of_several_files_stands_once(tmp_path: Path, program: str | None) -> None:
    names = ("1-c" if sys.platform == "win32" else "1:c", "2 in all", "a", "b 1")
    fill(tmp_path, {f"package/of/{name}": "hit\n" for name in names} | {"package/d": "hit\nhit\n"})
    start = served(tmp_path).readable(".")
    whole = ["package/d:1:hit", "package/d:2:hit", *(f"package/of/{name}:1:hit" for name in names)]
    answer = search_text([start], Query("hit"), None, CancelToken(), program).text()
    assert flat(answer) == whole and answer.count("package/of/") == 1
    found = find_files([start], "*", CancelToken()).text()
    assert flat(found) == [*dict.fromkeys(line.rsplit(":", 2)[0] for line in whole)] and found.count("package/of") == 1


@pytest.mark.parametrize("context", [0, 2])
def test_the_last_matches_of_a_file(tmp_path: Path, grep: Grep, context: int) -> None:
    lines = [f"{number} {'hit' if number % 7 in (1, 2, 4) else 'no'}" for number in range(1, 200)]
    fill(tmp_path, {"log": "\n".join(lines), "other": "hit"})
    every = [line for line in grep("hit", max_per_file=5000, path="log") if line.count(":")]
    for most in (1, 2, 5, 80, 5000):
        found = grep("hit", "log", last_matches=True, max_per_file=most, limit=5000, context=context)
        assert [line for line in found if re.match(r"log:\d", line)] == every[-most:]
        if context and most == 1:
            round_it = ["log-196-196 no", "log-197-197 hit", "log:198:198 hit", "log-199-199 no"]
            assert found == round_it
    assert grep("hit", "log", last_matches=True, limit=3) == every[-3:]
    query = Query("hit", last_matches=True, limit=3)
    assert "raise limit for more]" in search_text([served(tmp_path).readable("log")], query, None, CancelToken()).text()


@on_linux
def test_no_name_reads_as_a_line_below_another_path(tmp_path: Path, grep: Grep) -> None:
    names = ["2 in all", "--", "1:x", "12-y", "a:3:b", "b/1:x"]
    fill(tmp_path, dict.fromkeys(names, "hit\n\nhit\n") | {"3:single": "hit"})
    shown = ["./2 in all", "./--", "./1:x", "./12-y", "a:3:b", "b/1:x"]
    assert sorted(grep("hit")) == sorted([*(f"{name}:{n}:hit" for name in shown for n in (1, 3)), "./3:single:1:hit"])


@pytest.mark.parametrize("pattern", ["(?=x)", r"(a)\1", "(", "[z-a]", "", "(\n"])
def test_what_is_no_expression_is_refused(tmp_path: Path, grep: Grep, pattern: str) -> None:
    with pytest.raises(Invalid):
        grep(pattern)


def test_an_expression_that_blows_up_elsewhere_ends(tmp_path: Path, grep: Grep) -> None:
    fill(tmp_path, {"t": "a" * 50_000})
    assert grep(r"(a+)+$|(a|aa)+b") != []
    assert grep(r"(a*)*b") == []


@on_linux
def test_a_cancelled_search_ends_ripgrep_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_list, "_FILES_BEFORE_RIPGREP", 0)
    fill(tmp_path, {"served/a": "x"})
    os.mkfifo(tmp_path / "gate")
    slow = tmp_path / "rg"
    slow.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 600\n")
    slow.chmod(slow.stat().st_mode | stat.S_IXUSR)
    place = served(tmp_path / "served").readable(".")

    async def run() -> None:
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(
                    run_in_thread, lambda cancel: search_text([place], Query("x"), None, cancel, str(slow))
                )
                while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
                    await anyio.sleep(0.01)
                pid = int((tmp_path / "pid").read_text())
                tasks.cancel_scope.cancel()
            while Path(f"/proc/{pid}").exists():
                await anyio.sleep(0.01)

    anyio.run(run)


@on_linux
def test_a_broken_ripgrep_changes_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_list, "_FILES_BEFORE_RIPGREP", 0)
    fill(tmp_path, {"served/a": "x", "rg": "#!/bin/sh\necho 'error: no such flag' >&2\nexit 2\n"})
    (tmp_path / "rg").chmod(0o755)
    answer = search_text(
        [served(tmp_path / "served").readable(".")], Query("x"), None, CancelToken(), str(tmp_path / "rg")
    )
    assert answer.text() == "[1 match in 1 file]\na:1:x"


@on_linux
def test_what_ripgrep_prints_is_never_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_list, "_FILES_BEFORE_RIPGREP", 0)
    fill(tmp_path, {"served/a": "x", "served/b": "y", "outside": "x"})
    fill(
        tmp_path,
        {
            "rg": r"""#!/bin/sh
printf './a\0./b\0./../outside\0./gone\0/etc/passwd\0'
"""
        },
    )
    (tmp_path / "rg").chmod(0o755)
    answer = search_text(
        [served(tmp_path / "served").readable(".")], Query("x"), None, CancelToken(), str(tmp_path / "rg")
    )
    assert answer.text() == "[1 match in 1 file]\na:1:x"


def test_a_stopped_search_ends(tmp_path: Path, program: str | None) -> None:
    fill(tmp_path, {"a": "x"})
    stop = CancelToken()
    stop.set()
    with pytest.raises(WorkCancelled):
        search_text([served(tmp_path).readable(".")], Query("x"), None, stop, program)


@on_linux
def test_names_that_no_text_spells_are_found_and_reached(tmp_path: Path) -> None:
    Path(os.fsdecode(bytes(tmp_path) + b"/\xff.txt")).write_text("needle")
    (tmp_path / "two\nlines.txt").write_text("needle")
    policy = served(tmp_path)
    paths = find_files([policy.readable(".")], "*.txt", CancelToken()).paths
    assert all(path.startswith("file://") for path in paths)
    assert {policy.readable(path).name for path in paths} == {"\udcff.txt", "two\nlines.txt"}
    answer = search_text([policy.readable(".")], Query("needle"), None, CancelToken())
    assert {path for path, _, _ in answer.files} == set(paths)


def test_a_folder_that_vanishes_or_is_denied_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mcp_fs.engine.listing import walk

    fill(tmp_path, {"a/x": "", "b/x": ""})
    real = walk.open_folder

    def vanishing(place: ReadablePath) -> Folder[ReadablePath]:
        if place.name == "a":
            raise Problem("`a` can't be used so.")
        return real(place)

    monkeypatch.setattr(walk, "open_folder", vanishing)
    answer = find_files([served(tmp_path).readable(".")], "x", CancelToken())
    assert answer.text() == "[1 found; could not be opened: a]\nb/x"


@pytest.mark.anyio
async def test_all_served_folders_are_searched(tmp_path: Path) -> None:
    fill(tmp_path, {"one/a": "needle", "two/b": "needle", "two/c": "needle"})

    tools = Tools(served(tmp_path / "one", tmp_path / "two"))
    first = await tools.search_text("needle", limit=2)
    second = await tools.search_text("needle", limit=2, cursor=first.cursor)
    assert [path for page in (first, second) for path, _, _ in page.files] == ["one/a", "two/b", "two/c"]
    assert list((await tools.find_files("[ab]")).paths) == ["one/a", "two/b"]
    assert list((await tools.find_files("*", "two")).paths) == ["two/b", "two/c"]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        (r"\w+", ["naïve", "日本", "été", "٣"]),
        (r"[\w-]+", ["naïve", "日本", "été-", "٣"]),
        (r"\bna\b", []),
        (r"\bété\b", ["été"]),
        (r"\b(?:日本|ve)\b", ["日本"]),
        (r"\b[a-z]\w*\b", ["naïve"]),
        (r"\b\w{3}\b", ["été"]),
        (r"\bn?a\w*", ["naïve"]),
        (r"\d", ["٣"]),
        (r"\W+", [" ", "\u3000", "- "]),
        (r"[^\w\s]+", ["-"]),
        (r"\s", [" ", "\u3000", " "]),
    ],
)
def test_words_digits_and_blanks_are_those_of_all_scripts(pattern: str, found: list[str]) -> None:
    """As in ripgrep and Python; RE2 alone knows those of ASCII."""
    line = "naïve 日本\u3000été- ٣"
    find, data, at, seen = compile_line_search(pattern, literal=False, ignore_case=False), line.encode(), 0, list[str]()
    while (match := find(data, at)) is not None:
        seen.append(data[slice(*match)].decode())
        at = match[1]
    assert seen == found == re.findall(pattern, line)
    hint = byte_pattern(pattern, literal=False, ignore_case=False)
    assert compile_byte_filter(hint, ignore_case=False)(data) or not found
    new, (number,) = Substitution({pattern: r"<\0>"}, "regex").compile(CancelToken())(line)
    assert (new, number) == re.subn(pattern, r"<\g<0>>", line)


def test_some_expressions_have_no_twin_over_bytes() -> None:
    for pattern in (r"\pL", r"\x41", r"\Aa", "(?s)a", r"[\p{Greek}]", "a\0b", "\udcff", r"\b+a"):
        assert byte_pattern(pattern, literal=False, ignore_case=False) is None
    assert byte_pattern(r"\d[^\w\D-]x.*{", literal=False, ignore_case=False) == (
        r"(?:[0-9]|[\x80-\xff][^\n]{0,3})(?:[^0-9A-Za-z_\D\x2d\n]|[\x80-\xff][^\n]{0,3})x[^\n]*\{"
    )


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="paths of any length")
def test_3_000_nested_folders_are_walked_read_and_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "WALK_SECONDS", 600)  # what counts is the processor's time, however busy the machine is
    fd, names = os.open(tmp_path, os.O_RDONLY), [f"folder{number}" for number in range(3000)]
    for name in names:
        os.mkdir(name, dir_fd=fd)
        inner = os.open(name, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = inner
        if name.endswith("00"):
            with os.fdopen(os.open("f.txt", os.O_WRONLY | os.O_CREAT, dir_fd=fd), "w") as file:
                file.write(f"needle in {name}\n")
    os.close(fd)
    try:
        policy = served(tmp_path)
        top, began = policy.readable("."), time.process_time()
        found = find_files([top], "*.txt", CancelToken())
        assert (found.total, found.notes) == (29, [])
        assert found.paths[1] == "/".join(names[:201]) + "/f.txt"
        assert time.process_time() - began < 60  # it took minutes, each level from the top anew
        if sys.platform == "linux":  # elsewhere no path is that long
            deepest = policy.readable("/".join(names[:2901]) + "/f.txt")
            assert read_page(deepest, PageRequest(), LineIndex(), CancelToken()).body.strip() == "needle in folder2900"
        assert "folder0/folder1/folder2/ (1 folder)" in list_tree(top, CancelToken()).lines
    finally:
        subprocess.run(["rm", "-rf", tmp_path / "folder0"], check=True)


@pytest.mark.skipif(sys.platform == "win32", reason="an open folder can't be moved")
@pytest.mark.parametrize("in_one_call", [True, False])
@pytest.mark.parametrize("look", ["find", "search", "tree"])
def test_a_folder_that_is_moved_out_during_a_walk_is_not_read_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, look: str, in_one_call: bool
) -> None:
    if not in_one_call:
        monkeypatch.setattr(syscalls, "_openat2_works", False)
    root, outside = tmp_path / "root", tmp_path / "outside"
    fill(root, {f"proj/{name}/f.txt": "x\n" for name in "abcd"})
    real = walk.read_entries

    def moved(folder: Folder[ReadablePath], parts: tuple[str, ...], *more: Any) -> Any:
        visit = real(folder, parts, *more)
        if parts == ("proj", "a"):
            (root / "proj").rename(outside)
            for name in "bcd":
                (outside / name / "private.txt").write_text("needle\n")
        return visit

    monkeypatch.setattr(walk, "read_entries", moved)
    monkeypatch.setattr(folder_tree, "read_entries", moved)
    top = served(root).readable(".")
    if look == "tree":
        answer = list_tree(top, CancelToken()).text()
    elif look == "find":
        answer = find_files([top], "*.txt", CancelToken()).text()
    else:
        answer = search_text([top], Query("needle"), None, CancelToken(), None).text()
    assert outside.exists()
    assert "private" not in answer
    assert "could not be opened: proj/b, proj/c, proj/d" in answer


def open_below(folder: Path) -> int:
    """Count this process's descriptors in `folder`; other tests' leftovers close at any time."""
    descriptors = Path("/proc/self/fd")
    count = 0
    for descriptor in os.listdir(descriptors):
        with contextlib.suppress(FileNotFoundError):
            count += Path(os.readlink(descriptors / descriptor)).is_relative_to(folder)
    return count


@on_linux
def test_a_walk_holds_one_folder_open_and_none_behind_it(tmp_path: Path) -> None:
    fill(tmp_path, {f"{'d/' * depth}{name}/f": "" for depth in range(100) for name in ("a", "z")})
    top, before = served(tmp_path).readable("."), open_below(tmp_path)
    for left_after in (150, None):
        visits = walk.walk(top, WalkFilter(), CancelToken(), walk.Skipped())
        seen = 0
        for seen, _ in enumerate(visits, 1):
            assert open_below(tmp_path) == before + 1
            if seen == left_after:
                break
        del visits
        assert open_below(tmp_path) == before
    assert seen == 300


def test_a_walk_that_takes_too_long_tells_what_it_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, {f"{folder}/{name}.txt": "needle\n" for folder in "abc" for name in "xy"})
    monkeypatch.setattr(walk, "WALK_SECONDS", -1.0)
    top = served(tmp_path).readable(".")
    found = find_files([top], "**/*.txt", CancelToken())
    assert found.text().startswith("[0 found; not reached within -1 s: a, b, c")
    assert "not reached within -1 s: a, b, c" in list_tree(top, CancelToken()).text()


def test_newest_first_says_when(tmp_path: Path) -> None:
    fill(tmp_path, {"old.txt": "", "new.txt": ""})
    os.utime(tmp_path / "old.txt", (0, 0))
    os.utime(tmp_path / "new.txt", (86_400, 86_400))
    top = served(tmp_path).readable(".")
    lines = find_files([top], "*.txt", CancelToken(), sort="modified").text().splitlines()
    assert lines[1:] == ["new.txt\t1970-01-02T00:00:00Z", "old.txt\t1970-01-01T00:00:00Z"]
    assert find_files([top], "*.txt", CancelToken()).text().splitlines()[1:] == ["new.txt", "old.txt"]


def test_largest_first_says_how_large(tmp_path: Path) -> None:
    fill(tmp_path, {"a/small.txt": "x", "b/large.txt": "x" * 1234, "c.txt": "xy", "d/e.md": "x" * 9999})
    top = served(tmp_path).readable(".")
    found, cursor = list[str](), None
    for _ in range(2):
        page = find_files([top], "*.txt", CancelToken(), sort="size", limit=2, cursor=cursor)
        found += page.text().splitlines()[1:]
        cursor = page.cursor
    assert found == ["b/large.txt\t1,234", "c.txt\t2", "a/small.txt\t1"] and cursor is None
    with pytest.raises(Invalid, match="folder_sizes"):
        find_files([top], "*/", CancelToken(), sort="size")


def test_folders_of_several_names_are_found(tmp_path: Path) -> None:
    fill(tmp_path, {"guides/a.md": "", "docs/howto/b.md": "", "docs/guides/c.md": "", "howto": ""})
    top = served(tmp_path).readable(".")
    for glob in ("{howto/,guides/}", "{howto,guides}/"):
        assert sorted(find_files([top], glob, CancelToken()).paths) == ["docs/guides/", "docs/howto/", "guides/"]
    assert find_files([top], "docs/{howto/,x/}", CancelToken()).paths == ("docs/howto/",)


@pytest.mark.parametrize("program", [None, ripgrep.find_ripgrep()])
def test_a_folder_that_is_served_in_another_is_searched_once(
    tmp_path: Path, program: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_search, "_COUNT_SECONDS", 1000.0)
    names = [f"{folder}{number:03}.txt" for folder in ("", "in/", "in/deep/") for number in range(450)]
    fill(tmp_path, dict.fromkeys(names, "needle\n"))
    policy = served(tmp_path, tmp_path / "in")
    starts = policy.search_roots(".")
    assert find_files(starts, "*.txt", CancelToken(), limit=1000).total == len(names)
    answer = search_text(starts, Query("needle", files_only=True), None, CancelToken(), program)
    assert isinstance(answer, Matches) and answer.total == (len(names), len(names), False)
    assert find_files([policy.readable(str(tmp_path))], "*.txt", CancelToken()).total == len(names)
    assert "/in/" in find_files(starts, "in/", CancelToken()).text()


@pytest.mark.parametrize("program", [None, ripgrep.find_ripgrep()])
@pytest.mark.parametrize("glob", ["lib/**/*.py", "lib/in/*.py", "{top}/lib/**/*.py", "in/*.py"])
def test_a_glob_reaches_from_a_folder_into_one_that_is_served_in_it(
    tmp_path: Path, program: str | None, glob: str
) -> None:
    fill(tmp_path, {"lib/in/a.py": "needle\n", "lib/in/b.txt": "needle\n"})
    starts = served(tmp_path, tmp_path / "lib" / "in").search_roots(".")
    glob = glob.replace("{top}", tmp_path.as_posix())
    assert find_files(starts, glob, CancelToken()).total == 1
    answer = search_text(starts, Query("needle", glob=glob, files_only=True), None, CancelToken(), program)
    assert isinstance(answer, Matches) and answer.total == (1, 1, False)
