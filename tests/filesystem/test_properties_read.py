"""What holds for every file, glob and tree: pages are the whole, globs are globs, two engines are one."""

from __future__ import annotations

import fnmatch
import re
import subprocess
import sys
import tempfile
import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from filesystem.reading import fill, served
from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_fs.engine.listing import walk as walk_module
from mcp_fs.engine.listing.folder_page import list_folder
from mcp_fs.engine.listing.walk import WalkFilter
from mcp_fs.engine.patterns.glob import GlobError, translate
from mcp_fs.engine.patterns.prefilter import byte_pattern, wide_pattern
from mcp_fs.engine.patterns.regex import compile_byte_filter, compile_line_search, compile_path_set
from mcp_fs.engine.reading.text_page import LineIndex, PageRequest, read_page
from mcp_fs.engine.search import file_list, ripgrep
from mcp_fs.engine.search.find import FindSort, find_files
from mcp_fs.engine.search.grep import GrepOptions, grep
from mcp_fs.engine.search.query import Query
from mcp_fs.engine.search.text_search import search_text
from mcp_fs.engine.text.encodings import detect_encoding, is_utf8
from mcp_fs.policy import ReadablePath

RIPGREP = ripgrep.find_ripgrep()
_RULE_FILES = [".gitignore", ".ignore", ".rgignore", ".git/info/exclude"]
needs_ripgrep = pytest.mark.skipif(RIPGREP is None, reason="ripgrep is not installed")
slow = settings(max_examples=settings.default.max_examples * 3 // 5)

texts = st.text(st.sampled_from("ab é\u4e2d🙂\r\n\n"), max_size=120)


def _read_through(place: ReadablePath, max_bytes: int) -> str:
    """The pages of a file, each found by what the one before says."""
    index, body = LineIndex(), ""
    line, column = 1, 1
    for _ in range(1000):
        piece = read_page(place, PageRequest(line, column, max_bytes=max_bytes), index, CancelToken())
        body += piece.body
        if piece.next_column is not None:
            assert piece.last_line is not None
            line, column = piece.last_line, piece.next_column
        elif piece.next_line is not None:
            line, column = piece.next_line, 1
        else:
            return body
    raise AssertionError("the pages never end")


@slow
@given(texts, st.integers(1, 40), st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"]))
def test_pages_are_the_whole_file(text: str, max_bytes: int, encoding: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder), {"a": text.encode(encoding)})
        assert _read_through(served(Path(folder)).readable("a"), max_bytes) == text


_ANYTHING = ["a", "0", " ", "\n", "\r\n", "é", "中", "文", "の", "ｱ", "表", "д", "\x80", "\xff", "\xf0\x9f"]


@slow
@example(text="éé", max_bytes=1, codec="utf-8", junk=b"\xc2")
@given(
    st.lists(st.sampled_from(_ANYTHING), max_size=80).map("".join),
    st.integers(1, 12),
    st.sampled_from(
        ["utf-8", "utf-16-le", "utf-16-be", "utf-32-be", "gb18030", "shift_jis", "cp932", "euc_jp", "big5", "latin-1"]
    ),
    st.binary(max_size=3),
)
def test_pages_are_the_whole_file_whatever_its_bytes(text: str, max_bytes: int, codec: str, junk: bytes) -> None:
    data = text.encode(codec, "ignore") + junk + text.encode(codec, "ignore")
    found = detect_encoding(data)
    if found is None:
        return
    whole = data[len(found.bom) :].decode(found.name, "replace")
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder), {"a": data})
        assert _read_through(served(Path(folder)).readable("a"), max_bytes) == whole


@slow
@given(st.text(st.sampled_from("ab\n\r"), max_size=60), st.integers(1, 12), st.integers(1, 12))
def test_ranges_and_tails_are_slices_of_the_lines(text: str, start: int, count: int) -> None:
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    lines = lines if lines[-1] else lines[:-1]
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder), {"a": text})
        place = served(Path(folder)).readable("a")
        tail = read_page(place, PageRequest(tail=count), LineIndex(), CancelToken())
        assert tail.body == "".join(lines[-count:])
        assert tail.total_lines == len(lines)
        if start <= len(lines):
            piece = read_page(place, PageRequest(start, end_line=start + count - 1), LineIndex(), CancelToken())
            assert piece.body == "".join(lines[start - 1 : start + count - 1])


_long_names = st.sets(st.integers(0, 99), max_size=30).map(
    lambda numbers: [f"{n:02}{'é' * n}" for n in sorted(numbers)]
)


@slow
@given(_long_names, st.integers(1, 9), st.integers(10, 400), st.sampled_from(["name", "size", "modified"]))
def test_listing_pages_are_the_whole_folder(entries: list[str], limit: int, most: int, sort: str) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(walk_module, "DEFAULT_PAGE_BYTES", most)
        fill(Path(folder), {name: "x" * (number % 4) for number, name in enumerate(entries)})
        place, cursor, paths = served(Path(folder)).readable("."), None, list[str]()
        while True:
            page = list_folder(place, CancelToken(), sort=sort, limit=limit, cursor=cursor)  # type: ignore[arg-type]
            assert len(page.entries) in range(1, limit + 1) or not entries
            assert len(page.entries) == 1 or sum(len(entry.line().encode()) + 1 for entry in page.entries) <= most
            paths += [entry.path for entry in page.entries]
            cursor = page.cursor
            if cursor is None:
                break
    assert sorted(paths) == entries
    assert sort != "name" or paths == entries


@slow
@given(
    _long_names,
    st.integers(1, 9),
    st.integers(10, 400),
    st.sampled_from(["path", "modified", "size"]),
    st.sampled_from(["*", "*é", "0*", "d/**"]),
)
def test_found_pages_are_all_that_is_found(
    entries: list[str], limit: int, most: int, sort: FindSort, glob: str
) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        fill(Path(folder), {f"{'de'[len(name) % 2]}/{name}": "x" * (len(name) % 3 + 1) for name in entries})
        place = served(Path(folder)).readable(".")
        whole = list(find_files([place], glob, CancelToken(), sort=sort, limit=5000).paths)
        contents = [
            path
            for path, _, _ in search_text([place], Query("x", glob=glob, files_only=True), None, CancelToken()).files
        ]
        patch.setattr(walk_module, "DEFAULT_PAGE_BYTES", most)
        cursor, paths = None, list[str]()
        while True:
            page = find_files([place], glob, CancelToken(), sort=sort, limit=limit, cursor=cursor)
            assert page.total == len(whole)
            assert page.paths or not whole
            paths += page.paths
            cursor = page.cursor
            if cursor is None:
                break
        searched = list[str]()
        while True:
            matches = search_text([place], Query("x", glob=glob, files_only=True, limit=limit), cursor, CancelToken())
            assert matches.files or not whole
            searched += [path for path, _, _ in matches.files]
            cursor = matches.cursor
            if cursor is None:
                break
    assert paths == whole
    assert searched == contents
    assert sorted(searched) == sorted(whole)


_spellings = st.lists(
    st.sampled_from(["a", "é", "e\u0301", "e", " ", "\u00a0", "\u202f", "ñ", "n\u0303"]), min_size=1, max_size=4
)


@pytest.mark.skipif(sys.platform == "win32", reason="NTFS takes other names, and a backslash is no escape there")
@slow
@given(
    st.sets(_spellings.map("".join), min_size=1, max_size=6),
    st.lists(st.sampled_from(["*", "?", "a", "é", "e\u0301", " ", "\u202f", "ñ"]), min_size=1, max_size=4).map("".join),
)
def test_a_glob_means_names_in_all_their_spellings(entries: set[str], glob: str) -> None:
    if "**" in glob:
        return
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder), dict.fromkeys(entries, "x"))
        place = served(Path(folder)).readable(".")
        found = find_files([place], glob, CancelToken(), limit=5000)
        searched = search_text([place], Query("x", glob=glob), None, CancelToken())
    wanted = {name for name in entries if fnmatch.fnmatchcase(_plainly(name), _plainly(glob))}
    assert set(found.paths) == wanted
    assert {path for path, _, _ in searched.files} == wanted


def _plainly(text: str) -> str:
    composed = unicodedata.normalize("NFC", text)
    return "".join(" " if char in "\u00a0\u202f" else char for char in composed)


names = st.text(st.sampled_from("ab.-"), min_size=1, max_size=3).filter(lambda name: not name.endswith("."))
paths = st.lists(names, min_size=1, max_size=3).map("/".join)


@given(st.text(st.sampled_from("ab.-*?[]!"), min_size=1, max_size=6), names)
def test_a_glob_without_slashes_is_that_of_the_shell(glob: str, name: str) -> None:
    if glob.startswith("**") or "**" in glob or "[" in glob:
        return  # where the dialects differ: `**`, and brackets left open
    assert bool(compile_path_set([translate(glob)])(name.encode())) == fnmatch.fnmatchcase(name, glob)


globs = st.lists(
    st.sampled_from(["a", "b", "*", "**", "?", ".", "a*", "*.b", "[ab]", "[!a]", "{a,b}", "\\a", "*a*"]),
    min_size=1,
    max_size=3,
).map("/".join)


def _matches(glob: list[str], path: list[str]) -> bool:
    """The plain definition of `**`: any number of names, at least one at the end."""
    if not glob:
        return not path
    if glob[0] == "**":
        if len(glob) == 1:
            return bool(path)
        return _matches(glob[1:], path) or (bool(path) and _matches(glob, path[1:]))
    if not path:
        return False
    return bool(compile_path_set([translate(glob[0])])(path[0].encode())) and _matches(glob[1:], path[1:])


@given(globs, paths)
def test_stars_between_slashes_are_any_number_of_names(glob: str, path: str) -> None:
    assert bool(compile_path_set([translate(glob)])(path.encode())) == _matches(glob.split("/"), path.split("/"))


@given(st.text(st.sampled_from("a*?[]{},\\/!-"), max_size=8))
def test_every_glob_is_read_or_refused(glob: str) -> None:
    try:
        expression = translate(glob)
    except GlobError:
        return
    compile_path_set([expression])(b"a/a")


@slow
@given(
    st.lists(st.sampled_from(["x", "ax", "", "a", "xx"]), max_size=25),
    st.booleans(),
    st.integers(0, 3),
    st.integers(1, 6),
    st.integers(0, 9),
)
def test_matches_and_context_are_those_of_a_plain_loop(
    lines: list[str], ended: bool, context: int, most: int, after: int
) -> None:
    text = "\n".join(lines) + "\n" * ended
    real = text.split("\n")[: -1 if text.endswith("\n") or not text else None]
    hits = [number for number, line in enumerate(real, 1) if "x" in line and number > after]
    shown = hits[:most]
    wanted = [
        (number, line, number in shown)
        for number, line in enumerate(real, 1)
        if any(abs(number - hit) <= context for hit in shown) and (number > after)
    ]
    # What follows the last match shown ends before a further match.
    if len(hits) > most:
        wanted = [item for item in wanted if item[0] < hits[most]]
    with tempfile.TemporaryFile() as file:
        file.write(text.encode())
        file.seek(0)
        search = compile_line_search("x", literal=False, ignore_case=False)
        options = GrepOptions(context=context, max_matches=most, after_line=after)
        found = grep(file.fileno(), search, options, CancelToken())
    assert [(match.line, match.text, match.is_match) for match in found.lines] == wanted
    assert found.has_more == (len(hits) > most)


rules = st.lists(
    st.tuples(
        st.sampled_from(["", "", "!"]),
        st.sampled_from(["", "/", "**/"]),
        st.sampled_from(["a", "b", "*", "a*", "?", "[ab]", "a/b", "b/*", "**", "a/**", ".*", "*.a", "{a,b}", "\\!a"]),
        st.sampled_from(["", "", "/"]),
    ).map("".join),
    max_size=4,
).map("\n".join)
_CODECS = ["utf-8", "utf-8", "latin-1", "gb18030", "shift_jis", "utf-16", "utf-16-be", "utf-32-le"]
contents = st.builds(
    lambda lines, codec: "\n".join(lines).encode(codec, "replace"),
    st.lists(
        st.sampled_from(["x", "ax b", "é x", "none", "X", "", "x\r\n", "\0", "\xff", "中x文字", "表x"]), max_size=4
    ),
    st.sampled_from(_CODECS),
)
trees = st.tuples(
    st.dictionaries(paths, contents, min_size=1, max_size=8),
    st.dictionaries(
        st.tuples(st.sampled_from(["", "a/", "b/", "a/b/"]), st.sampled_from(_RULE_FILES)).map("".join),
        rules,
        max_size=4,
    ),
)


def _grow(folder: Path, tree: tuple[dict[str, bytes], dict[str, str]]) -> None:
    for files in tree:
        for path, content in files.items():
            try:
                fill(folder, {path: content})
            except (FileExistsError, NotADirectoryError, IsADirectoryError):
                continue


@needs_ripgrep
@settings(max_examples=settings.default.max_examples * 4 // 5)
@given(trees, st.booleans(), st.booleans())
@example(({"a/b/c": b"x", "b": b"x"}, {".gitignore": "a/**\n!a/b/", "a/.gitignore": "!c"}), False, False)
@example(({".a/b": b"x", ".b": b"x"}, {".gitignore": "!.b\n!.a/"}), False, False)
def test_names_are_those_ripgrep_lists(
    tree: tuple[dict[str, bytes], dict[str, str]], hidden: bool, ignored: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        _grow(Path(folder), tree)
        command = [str(RIPGREP), "--files", "--no-config", "--no-require-git", "--no-ignore-parent", "--no-messages"]
        command += ["--no-ignore-global"] + ["--hidden"] * hidden + ["--no-ignore"] * ignored
        listed = subprocess.run(command, cwd=folder, capture_output=True, check=False).stdout
        found = find_files(
            [served(Path(folder)).readable(".")], "**", CancelToken(), walk_filter=WalkFilter(hidden, ignored)
        )
    assert sorted(found.paths) == sorted(listed.decode().splitlines())


@needs_ripgrep
@settings(max_examples=settings.default.max_examples * 4 // 5)
@given(
    trees,
    st.sampled_from(
        [
            "x",
            "^x$",
            "é",
            r"\w x",
            "[^a]x",
            "x|b$",
            ".",
            r"\bx\b",
            "^",
            "文",
            "É|中x",
            r"\Wx\W",
            "[é-中]",
            "..x",
            r"x\b",
        ]
    ),
    st.booleans(),
    st.sampled_from([".", "a"]),
    st.sampled_from([WalkFilter(), WalkFilter(hidden=True), WalkFilter(ignored=True)]),
    st.sampled_from([None, "*.a", "!b", "a/*"]),
)
def test_contents_are_the_same_with_ripgrep_and_without(
    tree: tuple[dict[str, bytes], dict[str, str]],
    pattern: str,
    ignore_case: bool,
    start: str,
    wanted: WalkFilter,
    glob: str | None,
) -> None:
    query = Query(pattern, ignore_case=ignore_case, walk_filter=wanted, glob=glob)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        (Path(folder) / "a").mkdir()
        _grow(Path(folder), tree)
        place = served(Path(folder)).readable(start)
        own = search_text([place], query, None, CancelToken(), None)
        patch.setattr(file_list, "_FILES_BEFORE_RIPGREP", 0)
        both = search_text([place], query, None, CancelToken(), RIPGREP)
    assert both.files == own.files


@needs_ripgrep
@settings(max_examples=settings.default.max_examples * 3 // 5)
@given(trees, st.sampled_from(["x", "^x$", "é", ".x", "x|b$"]))
def test_contents_are_those_ripgrep_prints(tree: tuple[dict[str, bytes], dict[str, str]], pattern: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        _grow(Path(folder), tree)
        command = [str(RIPGREP), "--no-config", "--no-require-git", "--no-ignore-parent", "--no-ignore-global"]
        command += ["--crlf", "--no-messages", "--line-number", "--null", "--with-filename", "-e", pattern, "."]
        printed = subprocess.run(command, cwd=folder, capture_output=True, check=False).stdout
        found = search_text([served(Path(folder)).readable(".")], Query(pattern), None, CancelToken())
    listed: list[tuple[bytes, int]] = []
    for line in printed.split(b"\n"):
        path, _, rest = line.removeprefix(b"./").partition(b"\0")
        # ripgrep searches other encodings as if they were UTF-8, and of a file with a NUL byte a part, with a warning.
        if rest and _is_plain(tree[0].get(path.decode(), b"")) and b"WARNING" not in path:
            listed.append((path, int(rest.split(b":")[0])))
    shown = [
        (path.encode(), match.line)
        for path, matches, _ in found.files
        for match in matches
        if _is_plain(tree[0].get(path, b""))
    ]
    assert sorted(shown) == sorted(listed)


def _is_plain(data: bytes) -> bool:
    return b"\0" not in data and is_utf8(data)


_PIECES = [
    "x",
    "k",
    ".",
    ".*",
    "é",
    "文+",
    "[^a]",
    "[a-中]",
    r"\W",
    r"\S",
    r"\w",
    r"\b",
    "[[:^alpha:]]",
    "(x|é)?",
    "表{1,2}",
]


@settings(max_examples=settings.default.max_examples * 3)
@given(
    st.lists(st.sampled_from(_PIECES), min_size=1, max_size=4).map("".join),
    st.lists(st.sampled_from("xkKé文表 aÉ-ſ"), max_size=8).map("".join),
    st.sampled_from(["utf-8", "latin-1", "gb18030", "gbk", "shift_jis", "euc_jp", "big5", "cp1251"]),
    st.booleans(),
)
def test_bytes_that_an_expression_may_match_are_told_in_every_encoding(
    pattern: str, text: str, codec: str, ignore_case: bool
) -> None:
    data = text.encode(codec, "ignore")
    matches = compile_line_search(pattern, literal=False, ignore_case=ignore_case)(data.decode(codec).encode(), 0)
    hint = byte_pattern(pattern, literal=False, ignore_case=ignore_case)
    assert hint is not None
    if matches is not None:
        assert compile_byte_filter(hint, ignore_case=ignore_case)(data)


@given(
    st.text(st.sampled_from("abkKsS_9 .é"), min_size=1, max_size=8),
    st.text(st.sampled_from("abkKsS_9 .é"), max_size=4),
    st.sampled_from(["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"]),
    st.booleans(),
)
def test_a_hint_leaves_no_wide_text_out(wanted: str, around: str, encoding: str, ignore_case: bool) -> None:
    hint = wide_pattern(wanted, literal=True, ignore_case=ignore_case)
    stands = wanted.swapcase() if ignore_case else wanted
    data = (around + stands + around).encode(encoding)
    assert re.search(hint.encode(), data, re.IGNORECASE if ignore_case else re.NOFLAG)
    if re.fullmatch("[ab9_ ]+", wanted):
        for pattern in (wanted, f"{wanted}+", f"{wanted}x?", f"{wanted}|zz", f"{wanted[:-1]}{wanted[-1]}*"):
            least = wide_pattern(pattern, literal=False, ignore_case=ignore_case)
            some = wanted[:-1] if pattern.endswith("*") else wanted
            if some or least == r"\x00":
                assert re.search(least.encode(), f"{some} ".encode(encoding), re.IGNORECASE)
