"""Names and contents, complete, in one order, the same with ripgrep and without."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from filesystem.reading import fill, on_linux, served
from mcp_batteries.errors import Invalid, Problem
from mcp_batteries.limits import DEFAULT_PAGE_BYTES, Stop, Stopped, in_thread
from mcp_fs.engine import walk
from mcp_fs.engine.files.handles import Folder
from mcp_fs.engine.files.read import LineIndex, Part, read_part
from mcp_fs.engine.folder_tree import list_tree
from mcp_fs.engine.replace import Substitution, replace_in_files
from mcp_fs.engine.search import candidates, ripgrep, selection
from mcp_fs.engine.search import opened as opened_module
from mcp_fs.engine.search.contents import search
from mcp_fs.engine.search.find import find
from mcp_fs.engine.search.glob import path_glob, translate
from mcp_fs.engine.search.prefilter import byte_pattern
from mcp_fs.engine.search.query import Query
from mcp_fs.engine.search.regex import path_set
from mcp_fs.engine.service import Engine
from mcp_fs.engine.walk import Filter
from mcp_fs.models import FoundFiles, Matches, Tallies
from mcp_fs.tools.search import SearchTools

RIPGREP = ripgrep.command()


@pytest.fixture(params=["own", "ripgrep"])
def program(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str | None:
    """None for our own engine alone; else ripgrep, asked from the first file on."""
    if request.param == "own":
        return None
    if RIPGREP is None:
        pytest.skip("ripgrep is not installed")
    monkeypatch.setattr(candidates, "_OWN_FILES", 0)
    return RIPGREP


Grep = Callable[..., list[str]]


@pytest.fixture
def grep(tmp_path: Path, program: str | None) -> Grep:
    """The lines of an answer, without the first one."""

    def run(pattern: str, path: str = ".", **query: object) -> list[str]:
        answer = search([served(tmp_path).readable(path)], Query(pattern, **query), None, Stop(), program)  # type: ignore[arg-type]
        assert answer.cursor is None
        return answer.text().splitlines()[1:]

    return run


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
        (r"w\b", {}, [4]),  # word boundaries are those of ASCII
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
    assert read_part(served(tmp_path).readable("d/a"), Part(), LineIndex(), Stop()).body == text
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
    answer = search([policy.readable("a")], Query("needle"), None, Stop(), program)
    assert answer.text() == ("[0 files match; binary, not searched: set include_binary, or use read_media: a]")
    answer = search([policy.readable(".")], Query("needle"), None, Stop(), program)
    assert answer.text() == "[0 files match; 1 binary not searched (a); set include_binary]"
    answer = search([policy.readable(".")], Query("needle", binary=True), None, Stop(), program)
    assert answer.text().startswith("[1 match in 1 file]\na:3:\r needle ")


def test_an_empty_answer_says_what_was_left_out(tmp_path: Path, program: str | None) -> None:
    fill(tmp_path, {".gitignore": "build/\n*.log\n", "build/x": "needle", "build/a.log": "needle", ".dot": "needle"})
    policy = served(tmp_path)
    expected = "left out 2 hidden and 1 ignored (.dot, .gitignore, build/); set include_hidden and include_ignored"
    answer = search([policy.readable(".")], Query("needle"), None, Stop(), program)
    assert answer.text() == f"[0 files match; {expected}]"
    assert find([policy.readable(".")], "x", Stop()).text().startswith(f"[0 found; {expected}; ")
    # Also below a folder that is named, where the rules above hold on.
    answer = search([policy.readable("build")], Query("needle", glob="*.log"), None, Stop(), program)
    assert "left out 1 ignored (build/a.log); set include_ignored" in answer.text()
    assert find([policy.readable("build")], "*.log", Stop()).text().startswith("[0 found; left out 1 ignored (build/a.")
    assert find([policy.readable(".")], "*", Stop(), wanted=Filter(hidden=True, ignored=True)).total == 4


def test_what_a_search_would_fetch_from_elsewhere_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, {"here.txt": "needle", "folder/cloud.txt": "needle"})
    monkeypatch.setattr(walk, "away_among", lambda entries: {"cloud.txt"})
    opened: list[str] = []
    real = Folder.open
    monkeypatch.setattr(Folder, "open", lambda self, name, *more: opened.append(name) or real(self, name, *more))
    policy = served(tmp_path)
    said = "not downloaded yet, so not searched; `read_text` fetches it: folder/cloud.txt"
    answer = search([policy.readable(".")], Query("needle"), None, Stop(), None).text()
    assert answer.startswith("[1 match in 1 file") and said in answer
    change = Substitution("needle", "pin", "text", False)
    seen = replace_in_files(policy.writable("."), "*", Filter(), change, dry_run=True, stop=Stop())
    assert said in "; ".join(seen.notes) and [path for path, _ in seen.files] == ["here.txt"]
    assert "cloud.txt" not in opened


def test_every_answer_says_how_many_there_are_in_all(tmp_path: Path, program: str | None) -> None:
    fill(tmp_path, {f"{number:03}": "hit\nmiss hit\n" * 10 for number in range(50)})
    policy, cursor, seen, pages = served(tmp_path), None, 0, 0
    while pages == 0 or cursor is not None:
        page = search([policy.readable(".")], Query("hit", limit=300, context=1), cursor, Stop(), program)
        assert isinstance(page, Matches)
        seen += sum(match.hit for _, lines, _ in page.files for match in lines)
        assert "of 1,000 in 50 files" in page.text().partition("\n")[0]
        cursor, pages = page.cursor, pages + 1
    assert (seen, pages) == (1000, 4)
    page = search([policy.readable(".")], Query("hit", max_per_file=1, limit=5000), None, Stop(), program)
    assert page.text().startswith("[50 matches in 50 files, of 1,000 in 50 files; 50 files have more")
    page = search([policy.readable(".")], Query("hit", files_only=True, limit=20), None, Stop(), program)
    assert page.text().startswith("[20 files match, of 50; ")


def test_a_small_limit_holds_with_context(tmp_path: Path, program: str | None) -> None:
    fill(tmp_path, {"a": ("x" * 100 + "\n") * 20 + "hit\n" + ("x" * 100 + "\n") * 20 + "hit\n"})
    page = search([served(tmp_path).readable(".")], Query("hit", context=9, limit=2), None, Stop(), program)
    assert isinstance(page, Matches)
    assert page.cursor is None
    assert page.total == (2, 1, False)


def test_counting_only(tmp_path: Path, program: str | None) -> None:
    fill(tmp_path, {"a": "hit\nhit hit\n", "b": "miss\n", "c/d": "hit\n", "e": "caf\xe9 hit\n".encode("latin-1")})
    policy = served(tmp_path)
    answer = search([policy.readable(".")], Query("hit", count_only=True), None, Stop(), program)
    assert answer.text() == "[4 matching lines in 3 files]\na:2\ne:1\nc/d:1"
    page = search([policy.readable(".")], Query("hit", count_only=True, limit=2), None, Stop(), program)
    assert page.cursor is not None
    page = search([policy.readable(".")], Query("hit", count_only=True, limit=2), page.cursor, Stop(), program)
    assert page.text() == "[4 matching lines in 3 files]\nc/d:1"


def test_only_what_matched_each_text_once(tmp_path: Path, program: str | None) -> None:
    fill(tmp_path, {"a.py": "import os, import re\nimport os\n", "b.py": "x\nimport sys; import os"})
    policy = served(tmp_path)
    answer = search([policy.readable(".")], Query(r"import \w+", only_matching=True), None, Stop(), program)
    assert answer.text() == (
        "[3 matching lines in 2 files; 3 texts, each with its number]\n3\timport os\n1\timport re\n1\timport sys"
    )
    with pytest.raises(Invalid, match="exclude"):
        search([policy.readable(".")], Query("x", only_matching=True, count_only=True), None, Stop(), program)


def test_a_log_with_nul_bytes_is_searched(tmp_path: Path, program: str | None) -> None:
    fill(tmp_path, {"log": b"\0" * 100_000 + b"one\ntwo needle\n" * 50, "not": b"needle\0\1\2\3\xff" * 500})
    answer = search([served(tmp_path).readable(".")], Query("needle", max_per_file=1), None, Stop(), program)
    assert answer.text().splitlines()[1:] == ["log:2:two needle", "log:+"]


@pytest.mark.parametrize("pattern", [r"a\nb", r"a(\r\n|b)", r"\[\n\]", r"[a]\n", r"a\x0ab", r"\\\n", "a\nb"])
def test_a_pattern_over_several_lines_is_refused(tmp_path: Path, grep: Grep, pattern: str) -> None:
    with pytest.raises(Invalid, match=r"line break.*`context`"):
        grep(pattern)


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


def test_globs_and_types(tmp_path: Path, grep: Grep) -> None:
    fill(tmp_path, {"a.py": "x", "b.ts": "x", "src/c.py": "x", "src/d.tsx": "x", ".e.py": "x"})
    assert grep("x", glob="*.py") == ["a.py:1:x", "src/c.py:1:x"]
    assert grep("x", glob="!*.py") == ["b.ts:1:x", "src/d.tsx:1:x"]
    assert grep("x", glob="src/**") == ["src/c.py:1:x", "src/d.tsx:1:x"]
    assert grep("x", glob="*.{ts,tsx}") == ["b.ts:1:x", "src/d.tsx:1:x"]
    assert grep("x", file_type="py") == ["a.py:1:x", "src/c.py:1:x"]
    assert grep("x", file_type="py", wanted=Filter(hidden=True)) == [".e.py:1:x", "a.py:1:x", "src/c.py:1:x"]
    with pytest.raises(Invalid, match="no file type"):
        grep("x", file_type="python3000")


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
    everything = grep("x", files_only=True, wanted=Filter(hidden=True, ignored=True))
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
    wanted = Filter(hidden=True)
    answer = search([served(tmp_path).readable(".")], Query("needle", wanted=wanted), None, Stop(), program)
    assert [path for path, _, _ in answer.files] == ["a"]
    if program is None:
        assert "protected: id_rsa" in answer.text().splitlines()[0]


def test_what_could_not_be_read_is_named(tmp_path: Path, program: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, {"a": "needle", "b": "needle"})
    opened = opened_module.File.open

    def denied(self: opened_module.File, *more: Any) -> int:
        if self.parts == ("b",):
            raise PermissionError(13, "Permission denied")
        return opened(self, *more)

    monkeypatch.setattr(opened_module.File, "open", denied)
    answer = search([served(tmp_path).readable(".")], Query("needle"), None, Stop(), program)
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


def paged(folder: Path, query: Query, program: str | None) -> list[Matches]:
    found, cursor = list[Matches](), None
    while True:
        found.append(search([served(folder).readable(".")], query, cursor, Stop(), program))
        cursor = found[-1].cursor
        if cursor is None:
            return found


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 100])
def test_pages_neither_skip_nor_repeat(tmp_path: Path, program: str | None, limit: int) -> None:
    files = {f"{folder}/f{number}": "hit\nno\n" * (number + 1) for folder in ("a", "b/c", "d") for number in range(4)}
    fill(tmp_path, dict(files))
    pages = paged(tmp_path, Query("hit", limit=limit), program)
    found = [(path, match.line) for page in pages for path, lines, _ in page.files for match in lines if match.hit]
    wanted = [(path, 2 * line + 1) for path in sorted(files) for line in range(files[path].count("hit"))]
    assert found == wanted
    assert all(sum(match.hit for _, lines, _ in page.files for match in lines) <= limit for page in pages)


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_context_is_complete_over_pages(tmp_path: Path, program: str | None, limit: int) -> None:
    text = "".join("hit\n" if number % 7 in (0, 3) else f"{number}\n" for number in range(40))
    fill(tmp_path, {"a": text, "b": "hit\n"})
    one = search([served(tmp_path).readable(".")], Query("hit", context=2), None, Stop(), program)
    pages = paged(tmp_path, Query("hit", context=2, limit=limit), program)
    assert len(pages) > 1
    assert [(path, match) for page in pages for path, lines, _ in page.files for match in lines] == [
        (path, match) for path, lines, _ in one.files for match in lines
    ]


def test_one_file_is_searched_page_by_page(tmp_path: Path) -> None:
    fill(tmp_path, {"a": "hit\n" * 9})
    place, cursor, lines = served(tmp_path).readable("a"), None, list[int]()
    while True:
        page = search([place], Query("hit", limit=2), cursor, Stop())
        lines += [match.line for _, matches, _ in page.files for match in matches]
        cursor = page.cursor
        if cursor is None:
            break
    assert lines == [*range(1, 10)]


def test_long_matches_fill_a_page_sooner(tmp_path: Path) -> None:
    fill(tmp_path, {"a": ("hit" + "x" * 250 + "\n") * 200})
    page = search([served(tmp_path).readable(".")], Query("hit", limit=100, max_per_file=200), None, Stop())
    assert page.cursor is not None
    assert 9_000 < len(page.text()) < 11_000


def test_a_page_of_paths_ends_where_it_would_be_too_long(tmp_path: Path, program: str | None) -> None:
    names = [f"{number:03}{'x' * 200}" for number in range(120)]
    fill(tmp_path, dict.fromkeys(names, "x"))
    place = served(tmp_path).readable(".")
    asks: list[Callable[[str | None], FoundFiles | Matches | Tallies]] = [
        lambda cursor: find([place], "*", Stop(), cursor=cursor),
        lambda cursor: search([place], Query("x", files_only=True, limit=200), cursor, Stop(), program),
    ]
    for ask in asks:
        cursor, paths = None, list[str]()
        while True:
            page = ask(cursor)
            assert len(page.text()) < DEFAULT_PAGE_BYTES + 800
            assert not isinstance(page, Tallies)
            found = page.paths if isinstance(page, FoundFiles) else [path for path, _, _ in page.files]
            assert found
            paths += found
            cursor = page.cursor
            if cursor is None:
                break
        assert paths == names


@pytest.mark.parametrize("files_only", [False, True])
def test_the_last_full_page_offers_no_further_one(tmp_path: Path, program: str | None, files_only: bool) -> None:
    fill(tmp_path, {"a": "x", "b": "x", "c": "none", "d": "x", "e": "x", "f": "none"})
    place = served(tmp_path).readable(".")
    query = Query("x", limit=2, files_only=files_only)
    first = search([place], query, None, Stop(), program)
    assert "; more match: continue with cursor=" in first.text().splitlines()[0]
    second = search([place], query, first.cursor, Stop(), program)
    assert [path for path, _, _ in second.files] == ["d", "e"]
    assert second.cursor is None
    assert find([place], "[ab]", Stop(), limit=2).cursor is None


def test_a_file_with_too_many_matches_says_so(tmp_path: Path, program: str | None) -> None:
    fill(tmp_path, {"a": "hit\n" * 50, "b": "hit\n"})
    answer = search([served(tmp_path).readable(".")], Query("hit", max_per_file=2), None, Stop(), program).text()
    assert answer.splitlines()[1:] == ["a:1:hit", "a:2:hit", "a:+", "b:1:hit"]
    assert "1 file has more, marked +" in answer.splitlines()[0]


@pytest.mark.parametrize("pattern", ["(?=x)", r"(a)\1", "(", "[z-a]", "", "a\nb"])
def test_what_is_no_expression_is_refused(tmp_path: Path, grep: Grep, pattern: str) -> None:
    with pytest.raises(Invalid):
        grep(pattern)


def test_an_expression_that_blows_up_elsewhere_ends(tmp_path: Path, grep: Grep) -> None:
    fill(tmp_path, {"t": "a" * 50_000})
    assert grep(r"(a+)+$|(a|aa)+b") != []
    assert grep(r"(a*)*b") == []


@on_linux
def test_a_cancelled_search_ends_ripgrep_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "_OWN_FILES", 0)
    fill(tmp_path, {"served/a": "x"})
    os.mkfifo(tmp_path / "gate")
    slow = tmp_path / "rg"
    slow.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 600\n")
    slow.chmod(slow.stat().st_mode | stat.S_IXUSR)
    place = served(tmp_path / "served").readable(".")

    async def run() -> None:
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(in_thread, lambda stop: search([place], Query("x"), None, stop, str(slow)))
                while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
                    await anyio.sleep(0.01)
                pid = int((tmp_path / "pid").read_text())
                tasks.cancel_scope.cancel()
            while Path(f"/proc/{pid}").exists():
                await anyio.sleep(0.01)

    anyio.run(run)


@on_linux
def test_a_broken_ripgrep_changes_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "_OWN_FILES", 0)
    fill(tmp_path, {"served/a": "x", "rg": "#!/bin/sh\necho 'error: no such flag' >&2\nexit 2\n"})
    (tmp_path / "rg").chmod(0o755)
    answer = search([served(tmp_path / "served").readable(".")], Query("x"), None, Stop(), str(tmp_path / "rg"))
    assert answer.text() == "[1 match in 1 file]\na:1:x"


@on_linux
def test_what_ripgrep_prints_is_never_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "_OWN_FILES", 0)
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
    answer = search([served(tmp_path / "served").readable(".")], Query("x"), None, Stop(), str(tmp_path / "rg"))
    assert answer.text() == "[1 match in 1 file]\na:1:x"


def test_a_stopped_search_ends(tmp_path: Path, program: str | None) -> None:
    fill(tmp_path, {"a": "x"})
    stop = Stop()
    stop.set()
    with pytest.raises(Stopped):
        search([served(tmp_path).readable(".")], Query("x"), None, stop, program)


@pytest.mark.parametrize(
    ("glob", "found"),
    [
        ("*.py", ["a.py", "src/b.py", "src/deep/c.py"]),
        ("src/*.py", ["src/b.py"]),
        ("src/**/*.py", ["src/b.py", "src/deep/c.py"]),
        ("**/deep/**", ["src/deep/c.py", "src/deep/d.{x}"]),
        ("*.{py,md}", ["a.py", "e.md", "src/b.py", "src/deep/c.py"]),
        ("[ae].*", ["a.py", "e.md"]),
        ("[!a].??", ["e.md", "src/b.py", "src/deep/c.py"]),
        *([] if sys.platform == "win32" else [(r"*.\{x\}", ["src/deep/d.{x}"])]),
        ("é*", ["été"]),
        ("?t?", ["été"]),
        ("????", ["a.py", "e.md", "src/b.py", "src/deep/c.py"]),
        ("deep/", ["src/deep/"]),
        ("/a.py", ["a.py"]),
        ("nothing", []),
    ],
)
def test_names_by_glob(tmp_path: Path, glob: str, found: list[str]) -> None:
    fill(tmp_path, dict.fromkeys(["a.py", "e.md", "src/b.py", "src/deep/c.py", "src/deep/d.{x}", "été"], ""))
    answer = find([served(tmp_path).readable(".")], glob, Stop())
    assert list(answer.paths) == found
    assert answer.total == len(found)


@pytest.mark.parametrize("glob", ["[a", "{a", "a\\", "[z-a]"])
def test_what_is_no_glob_is_refused(glob: str) -> None:
    with pytest.raises(Invalid):
        path_glob(glob)


@pytest.mark.parametrize(
    ("glob", "found"),
    [(r"src\*.py", ["src/b.py"]), (r"**\c.py", ["src/deep/c.py"]), (r"src\deep\**", ["src/deep/c.py"])],
)
def test_a_backslash_parts_names_on_windows(
    tmp_path: Path, glob: str, found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selection, "_WINDOWS", True)
    fill(tmp_path, dict.fromkeys(["a.py", "src/b.py", "src/deep/c.py"], ""))
    top = served(tmp_path).readable(".")
    assert list(find([top], glob, Stop()).paths) == found
    with pytest.raises(Invalid):
        find([top], r"Q:\nowhere\*.py", Stop())


@pytest.mark.parametrize("glob", ["", "/", "../*", "a/../b", "/no-such-folder/**", "file:///etc/*", "/\0", "a\0b"])
def test_a_glob_that_means_nothing_below_the_folder_is_refused(tmp_path: Path, grep: Grep, glob: str) -> None:
    fill(tmp_path, {"a": "x"})
    with pytest.raises(Invalid) as raised:
        find([served(tmp_path).readable(".")], glob, Stop())
    assert raised.value.fix
    for asked in (glob, f"!{glob}"):
        with pytest.raises(Invalid):
            grep("x", glob=asked)


def test_a_glob_may_begin_with_the_path_of_the_searched_folder(tmp_path: Path, grep: Grep) -> None:
    fill(tmp_path, {"a.py": "x", "sub/b.py": "x", "sub/c/d.py": "x"})
    policy = served(tmp_path)
    for glob, path, found in (
        (f"{tmp_path}/**", ".", ["a.py", "sub/b.py", "sub/c/d.py"]),
        (f"{tmp_path}/*.py", ".", ["a.py"]),
        (f"{tmp_path}/sub/*.py", ".", ["sub/b.py"]),
        (f"{tmp_path}/sub/**", "sub", ["sub/b.py", "sub/c/d.py"]),
        ("/sub/*.py", ".", ["sub/b.py"]),
        ("sub/*.py", "sub", ["sub/b.py"]),
        ("sub/c/**", "sub", ["sub/c/d.py"]),
    ):
        assert list(find([policy.readable(path)], glob, Stop()).paths) == found
        assert grep("x", path, glob=glob, files_only=True) == found
    assert grep("x", glob=f"!{tmp_path}/sub/**", files_only=True) == ["a.py"]
    with pytest.raises(Invalid, match="searched folder"):
        find([policy.readable("sub")], f"{tmp_path}/other/*", Stop())


def test_a_glob_may_begin_with_the_name_of_a_served_folder(tmp_path: Path) -> None:
    fill(tmp_path, {"one/a": "x", "two/a": "x", "two/one/a": "x"})
    policy = served(tmp_path / "one", tmp_path / "two")
    tops = [policy.top(root) for root in policy.roots]
    assert list(find(tops, "one/*", Stop()).paths) == ["one/a", "two/one/a"]
    assert list(find(tops, f"{tmp_path}/two/a", Stop()).paths) == ["two/a"]
    assert [path for path, _, _ in search(tops, Query("x", glob="two/a"), None, Stop()).files] == ["two/a"]


@on_linux
@pytest.mark.parametrize("glob", ["café*", "cafe\u0301*", "caf?.txt", "**/cafe\u0301.txt", "sub/{café.txt,b}"])
def test_a_glob_finds_a_name_however_it_is_composed(tmp_path: Path, grep: Grep, glob: str) -> None:
    fill(tmp_path, {"sub/cafe\u0301.txt": "x", "sub/café.md": "x", "other": "x"})
    expected = ["sub/cafe\u0301.txt"] + ["sub/café.md"] * glob.endswith("*")
    assert sorted(find([served(tmp_path).readable(".")], glob, Stop()).paths) == sorted(expected)
    assert sorted(grep("x", glob=glob, files_only=True)) == sorted(expected)
    assert grep("x", glob=f"!{glob}", files_only=True)[0] == "other"


@on_linux
@pytest.mark.parametrize("blank", [" ", "\u202f", "\u00a0"])
def test_a_glob_finds_the_blanks_of_screenshots(tmp_path: Path, grep: Grep, blank: str) -> None:
    names = ["at 1.23 PM.png", "at 1.23\u00a0PM.png", "at 1.23\u202fPM.png"]
    fill(tmp_path, dict.fromkeys([*names, "at 1.23-PM.png"], "x"))
    glob = f"*1.23{blank}PM.png"
    assert list(find([served(tmp_path).readable(".")], glob, Stop()).paths) == names
    assert grep("x", glob=glob, files_only=True) == names


def test_the_newest_names_first_page_by_page(tmp_path: Path) -> None:
    fill(tmp_path, {f"d{number % 3}/{number}.txt": "" for number in range(20)})
    for number in range(20):
        os.utime(tmp_path / f"d{number % 3}" / f"{number}.txt", (number // 4, number // 4))
    found, cursor = list[str](), None
    while True:
        page = find([served(tmp_path).readable(".")], "*", Stop(), newest_first=True, limit=3, cursor=cursor)
        found += page.paths
        cursor = page.cursor
        if cursor is None:
            break
        assert page.text().startswith("[3 of 20; continue with cursor=")
    ages = [int(path.rpartition("/")[2].removesuffix(".txt")) // 4 for path in found]
    assert len(set(found)) == 20
    assert ages == sorted(ages, reverse=True)


@on_linux
def test_names_that_no_text_spells_are_found_and_reached(tmp_path: Path) -> None:
    Path(os.fsdecode(bytes(tmp_path) + b"/\xff.txt")).write_text("needle")
    (tmp_path / "two\nlines.txt").write_text("needle")
    policy = served(tmp_path)
    paths = find([policy.readable(".")], "*.txt", Stop()).paths
    assert all(path.startswith("file://") for path in paths)
    assert {policy.readable(path).name for path in paths} == {"\udcff.txt", "two\nlines.txt"}
    answer = search([policy.readable(".")], Query("needle"), None, Stop())
    assert {path for path, _, _ in answer.files} == set(paths)


def test_a_folder_that_vanishes_or_is_denied_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mcp_fs.engine import walk

    fill(tmp_path, {"a/x": "", "b/x": ""})
    real = walk.open_folder

    def vanishing(place: object) -> object:
        if getattr(place, "name", "") == "a":
            raise Problem("`a` can't be used so.")
        return real(place)  # type: ignore[type-var]

    monkeypatch.setattr(walk, "open_folder", vanishing)
    monkeypatch.setattr(walk, "_first", lambda *_: None)
    answer = find([served(tmp_path).readable(".")], "x", Stop())
    assert answer.text() == "[1 found; could not be opened: a]\nb/x"


@pytest.mark.anyio
async def test_all_served_folders_are_searched(tmp_path: Path) -> None:
    fill(tmp_path, {"one/a": "needle", "two/b": "needle", "two/c": "needle"})

    tools = SearchTools(served(tmp_path / "one", tmp_path / "two"), Engine(served(tmp_path / "one", tmp_path / "two")))
    first = await tools.search_text("needle", limit=2)
    second = await tools.search_text("needle", limit=2, cursor=first.cursor)
    assert [path for page in (first, second) for path, _, _ in page.files] == ["one/a", "two/b", "two/c"]
    assert list((await tools.find_files("[ab]")).paths) == ["one/a", "two/b"]
    assert list((await tools.find_files("*", "two")).paths) == ["two/b", "two/c"]


def test_some_expressions_have_no_twin_over_bytes() -> None:
    for pattern in (r"\pL", r"\x41", r"\Aa", "(?s)a", r"[\p{Greek}]", "a\0b", "\udcff", r"\b+a"):
        assert byte_pattern(pattern, literal=False, ignore_case=False) is None
    assert byte_pattern(r"\d[^\w\D-]x.*{", literal=False, ignore_case=False) == (
        r"[0-9](?:[^0-9A-Za-z_\D\x2d\n]|[\x80-\xff][^\n]{0,3})x[^\n]*\{"
    )


def test_a_set_of_globs_tells_all_that_match() -> None:
    matching = path_set([translate(glob) for glob in ("**/*.py", "a/**", "b")])
    assert sorted(matching(b"a/x.py")) == [0, 1]
    assert not matching(b"c")


@pytest.mark.skipif(sys.platform == "win32", reason="paths of any length")
def test_3_000_nested_folders_are_walked_read_and_searched(tmp_path: Path) -> None:
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
        found = find([top], "*.txt", Stop())
        assert (found.total, found.notes) == (29, [])
        assert found.paths[1] == "/".join(names[:201]) + "/f.txt"
        assert time.process_time() - began < 10  # it took minutes, each level from the top anew
        if sys.platform == "linux":  # elsewhere no path is that long
            deepest = policy.readable("/".join(names[:2901]) + "/f.txt")
            assert read_part(deepest, Part(), LineIndex(), Stop()).body.strip() == "needle in folder2900"
        assert "folder0/folder1/folder2/ (1 folder)" in list_tree(top, Stop()).lines
    finally:
        subprocess.run(["rm", "-rf", tmp_path / "folder0"], check=True)


def test_a_walk_that_takes_too_long_tells_what_it_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, {f"{folder}/{name}.txt": "needle\n" for folder in "abc" for name in "xy"})
    monkeypatch.setattr(walk, "WALK_SECONDS", -1.0)
    top = served(tmp_path).readable(".")
    found = find([top], "**/*.txt", Stop())
    assert found.text().startswith("[0 found; not reached within -1 s: a, b, c")
    assert "not reached within -1 s: a, b, c" in list_tree(top, Stop()).text()


def test_newest_first_says_when(tmp_path: Path) -> None:
    fill(tmp_path, {"old.txt": "", "new.txt": ""})
    os.utime(tmp_path / "old.txt", (0, 0))
    os.utime(tmp_path / "new.txt", (86_400, 86_400))
    top = served(tmp_path).readable(".")
    lines = find([top], "*.txt", Stop(), newest_first=True).text().splitlines()
    assert lines[1:] == ["new.txt\t1970-01-02T00:00:00Z", "old.txt\t1970-01-01T00:00:00Z"]
    assert find([top], "*.txt", Stop()).text().splitlines()[1:] == ["new.txt", "old.txt"]
