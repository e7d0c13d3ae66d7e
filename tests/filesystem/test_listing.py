"""Folders page by page, trees folded to a size."""

from __future__ import annotations

import os
import re
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from filesystem.reading import fill, on_linux, served
from filesystem.test_replace import call
from filesystem.tool_calls import Tools
from mcp_batteries.clipping import DEFAULT_PAGE_BYTES
from mcp_batteries.concurrency.cancellation import CancelToken, WorkCancelled
from mcp_batteries.errors import Invalid, NotFound
from mcp_fs.engine.listing import folder_tree
from mcp_fs.engine.listing.folder_page import FolderSort, format_time, list_folder
from mcp_fs.engine.listing.folder_tree import list_tree
from mcp_fs.engine.listing.walk import WalkFilter
from mcp_fs.models import Entry, FilePage


def pages(folder: Path, limit: int, sort: FolderSort = "name", wanted: WalkFilter | None = None) -> list[list[Entry]]:
    place, cursor, all_pages = served(folder).readable("."), None, list[list[Entry]]()
    while True:
        page = list_folder(place, CancelToken(), sort=sort, walk_filter=wanted, limit=limit, cursor=cursor)
        all_pages.append(list(page.entries))
        cursor = page.cursor
        if cursor is None:
            return all_pages


def unnumbered(number: int) -> str:
    """Return a number as letters: a tree shows many files with numbers in their names as one."""
    return "".join("abcdefghij"[int(digit)] for digit in str(number))


def test_pages_neither_skip_nor_repeat(tmp_path: Path) -> None:
    for number in range(25):
        (tmp_path / f"f{number:02}").write_bytes(b"x" * (number % 3))
        os.utime(tmp_path / f"f{number:02}", (number // 5, number // 5))
    names = [f"f{number:02}" for number in range(25)]
    assert [[entry.path for entry in page] for page in pages(tmp_path, 10)] == [names[:10], names[10:20], names[20:]]
    by_size = [entry.path for page in pages(tmp_path, 4, "size") for entry in page]
    assert by_size == sorted(names, key=lambda name: (-(int(name[1:]) % 3), name))
    by_time = [entry.path for page in pages(tmp_path, 4, "modified") for entry in page]
    assert by_time == sorted(names, key=lambda name: (-(int(name[1:]) // 5), name))


def test_a_page_ends_where_it_would_be_too_long(tmp_path: Path) -> None:
    names = [f"{number:03}{'x' * 200}" for number in range(120)]
    fill(tmp_path, dict.fromkeys(names, ""))
    place, cursor, paths = served(tmp_path).readable("."), None, list[str]()
    while True:
        page = list_folder(place, CancelToken(), cursor=cursor)
        assert page.entries
        assert len(page.text()) < DEFAULT_PAGE_BYTES + 500
        paths += [entry.path for entry in page.entries]
        cursor = page.cursor
        if cursor is None:
            break
    assert paths == names
    # Who asks for many gets more at once.
    assert len(list_folder(place, CancelToken(), limit=500).entries) in range(90, 120)


def test_the_last_full_page_offers_no_further_one(tmp_path: Path) -> None:
    fill(tmp_path, dict.fromkeys("abcd", ""))
    assert [[entry.path for entry in page] for page in pages(tmp_path, 2)] == [["a", "b"], ["c", "d"]]


def test_what_is_the_same_in_all_times_is_told_once(tmp_path: Path) -> None:
    fill(tmp_path, dict.fromkeys("abc", "x"))
    place = served(tmp_path).readable(".")

    def listed(*seconds: int) -> str:
        for name, second in zip("abc", seconds, strict=True):
            os.utime(tmp_path / name, (second, second))
        return list_folder(place, CancelToken()).text()

    assert listed(5, 5, 5) == "[.: 3 entries; all changed 1970-01-01T00:00:05Z]\na\t1\nb\t1\nc\t1"
    assert listed(5, 6, 7).startswith("[.: 3 entries; all changed 1970-01-01]\na\t1\t00:00:05Z\nb\t1\t00:00:06Z\n")
    apart = listed(5, 6, 90_000)
    assert apart.startswith("[.: 3 entries]\na\t1\t1970-01-01T00:00:05Z\n") and apart.endswith("1970-01-02T01:00:00Z")
    (tmp_path / "c").unlink()
    assert list_folder(place, CancelToken()).text().startswith("[.: 2 entries]\na\t1\t1970-01-01T00:00:05Z")
    found = FilePage(["a", "b", "c"], 3, (), None, [f"1970-01-01T00:00:0{second}Z" for second in (5, 5, 6)])
    assert found.text() == "[3 found; all changed 1970-01-01]\na\t00:00:05Z\nb\t00:00:05Z\nc\t00:00:06Z"


def test_what_is_the_same_on_one_page_is_not_said_of_all(tmp_path: Path) -> None:
    fill(tmp_path, dict.fromkeys("abcd", "x"))
    for name, second in zip("abcd", (5, 5, 5, 90_000), strict=True):
        os.utime(tmp_path / name, (second, second))
    page = list_folder(served(tmp_path).readable("."), CancelToken(), limit=3).text()
    assert page.startswith("[.: 3 of 4 entries by name; continue with cursor=") and "all changed" not in page
    assert "; those shown changed 1970-01-01T00:00:05Z]\na\t1\n" in page
    last = FilePage(["b", "c", "d"], 5, (), None, ["1970-01-01T00:00:05Z"] * 3)
    assert last.text().startswith("[3 of 5; those shown changed 1970-01-01T00:00:05Z]\n")


def test_one_entry_is_not_called_many(tmp_path: Path) -> None:
    fill(tmp_path, {"sub/a": ""})
    assert list_folder(served(tmp_path).readable("sub"), CancelToken()).text().startswith("[sub: 1 entry]")
    assert list_tree(served(tmp_path).readable("."), CancelToken()).text().startswith("[.: 1 file in 1 folder]")


@on_linux
def test_a_folder_with_a_line_break_in_its_name_is_told_by_its_uri(tmp_path: Path) -> None:
    fill(tmp_path, {"a\nb/c": ""})
    place = served(tmp_path).readable("a\nb")
    for text in (list_folder(place, CancelToken()).text(), list_tree(place, CancelToken()).text()):
        assert text.startswith(f"[{place.uri}: 1 ")


def test_a_page_of_a_huge_folder_takes_bounded_memory(tmp_path: Path) -> None:
    (tmp_path / "0").touch()
    for number in range(1, 20_000):
        os.link(tmp_path / "0", tmp_path / f"{number}")
    place = served(tmp_path).readable(".")
    list_folder(place, CancelToken(), limit=10)
    tracemalloc.start()
    try:
        page = list_folder(place, CancelToken(), limit=100)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (len(page.entries), page.total) == (100, 20_000)
    assert page.text().startswith('[.: 100 of 20,000 entries by name; continue with cursor="')
    assert peak < 1024 * 1024


@on_linux
def test_every_kind_of_entry_is_listed_as_what_it_is(tmp_path: Path) -> None:
    fill(tmp_path, {"served/dir/x": "", "served/a b": "12345", "served/id_rsa": "secret", "outside/x": ""})
    folder = tmp_path / "served"
    os.mkfifo(folder / "pipe")
    (folder / "good").symlink_to("a b")
    (folder / "lost").symlink_to("nowhere")
    (folder / "out").symlink_to("../outside/x")
    (folder / "line\nbreak").touch()
    Path(os.fsdecode(bytes(folder) + b"/\xff")).touch()
    policy = served(folder)
    entries = {entry.path: entry for page in pages(folder, 100) for entry in page}
    assert entries["dir"].line().startswith("dir/\t")
    assert entries["a b"].size == 5
    assert entries["id_rsa"].note == "protected"
    assert entries["pipe"].note == "not a regular file"
    assert entries["good"].note == "link to a b"
    assert "dangling" in entries["lost"].note
    assert "outside" in entries["out"].note
    odd = [path for path in entries if path.startswith("file://")]
    assert len(odd) == 2
    assert {policy.readable(path).name for path in odd} == {"line\nbreak", "\udcff"}


def test_hidden_and_ignored_entries_are_left_out_on_request(tmp_path: Path) -> None:
    fill(
        tmp_path,
        {".gitignore": "*.log\n/sub/deep.txt", "a.log": "", ".hidden": "", "b": "", "sub/deep.txt": "", "sub/c": ""},
    )
    assert [[entry.path for entry in page] for page in pages(tmp_path, 9, wanted=WalkFilter())] == [["b", "sub"]]
    assert [[entry.path for entry in page] for page in pages(tmp_path / "sub", 9, wanted=WalkFilter())] == [
        ["c", "deep.txt"]
    ]
    inner = list_folder(served(tmp_path).readable("sub"), CancelToken(), walk_filter=WalkFilter())
    assert [entry.path for entry in inner.entries] == ["sub/c"]
    assert "1 hidden or ignored left out" in inner.text()


def test_a_cursor_serves_its_own_listing_only(tmp_path: Path) -> None:
    fill(tmp_path, {"a/1": "", "a/2": "", "b/1": "", "b/2": ""})
    policy = served(tmp_path)
    cursor = list_folder(policy.readable("a"), CancelToken(), limit=1).cursor
    with pytest.raises(Invalid, match="cursor"):
        list_folder(policy.readable("b"), CancelToken(), limit=1, cursor=cursor)
    with pytest.raises(NotFound):
        list_folder(policy.readable("a/1"), CancelToken())


def test_a_small_tree_is_shown_whole(tmp_path: Path) -> None:
    fill(
        tmp_path,
        {"a.py": "", "src/b.py": "", "src/deep/c.py": "", "node_modules/x/y": "", ".gitignore": "node_modules"},
    )
    (tmp_path / "link").symlink_to("a.py")
    assert list_tree(served(tmp_path).readable("."), CancelToken()).text() == "\n".join(
        [
            "[.: 4 files in 2 folders]",
            "./",
            "  a.py",
            "  link (link)",
            "  (left out: .gitignore, node_modules/)",
            "src/",
            "  b.py",
            "src/deep/",
            "  c.py",
        ]
    )


@pytest.mark.parametrize(("depth", "max_bytes"), [(9, 4000), (9, 200_000), (2, 64_000), (1, 1000)])
def test_a_large_tree_is_folded_and_what_is_folded_is_not_walked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, depth: int, max_bytes: int
) -> None:
    for outer in range(30):
        for inner in range(10):
            (tmp_path / f"outer{outer}" / f"inner{inner}" / "deep" / "deeper").mkdir(parents=True)
            for number in range(5):
                (tmp_path / f"outer{outer}" / f"inner{inner}" / f"{number}").touch()
    for number in range(400):
        (tmp_path / f"top{unnumbered(number)}").touch()
    opened: list[tuple[str, ...]] = []
    visited = folder_tree.read_entries

    def counting(folder: Any, parts: tuple[str, ...], *rest: Any) -> Any:
        opened.append(parts)
        return visited(folder, parts, *rest)

    monkeypatch.setattr(folder_tree, "read_entries", counting)
    tree = list_tree(served(tmp_path).readable("."), CancelToken(), depth=depth, max_bytes=max_bytes)
    text = tree.text()
    assert len(text.encode()) <= max_bytes
    folders = [line.partition(" (")[0] for line in tree.lines if not line.startswith("  ")]
    drawn = {tuple(path.strip("./").split("/")) if path != "./" else () for path in folders}
    assert len(opened) == len(set(opened)) and drawn <= set(opened)
    assert {parts[:-1] for parts in set(opened) - drawn} <= drawn  # the one that did not fit any more
    assert len(opened) - len(drawn) <= len(drawn) // 10 + 1
    # Of every folder that is named, what is directly in it is shown or counted.
    shown = sum(1 for line in tree.lines if line.startswith("  ") and "more f" not in line)
    counts = re.findall(r"[(]([\d,]+) (?:more )?files?\b", "\n".join(tree.lines))
    assert shown + sum(int(count.replace(",", "")) for count in counts) == tree.files
    assert tree.files == sum(
        len(files) for folder, _, files in os.walk(tmp_path) if Path(folder).relative_to(tmp_path).parts in drawn
    )
    assert tree.is_whole == (max_bytes == 200_000) == (" seen" not in text.partition("\n")[0])


def test_a_folder_of_many_files_leaves_room_for_the_others(tmp_path: Path) -> None:
    fill(tmp_path, {f"many/f{unnumbered(number)}": "" for number in range(2000)} | {f"{name}/f": "" for name in "axyz"})
    fill(tmp_path, {f"more/f{unnumbered(number)}": "" for number in range(2000)} | {"x/.hidden": ""})
    tree = list_tree(served(tmp_path).readable("."), CancelToken(), max_bytes=4000)
    assert len(tree.text()) in range(3300, 4001)
    begins = [tree.lines.index(name) for name in ("many/", "more/", "x/", "y/")]
    assert begins[1] - begins[0] > 200 and begins[2] - begins[1] > 200
    assert tree.lines[begins[2] : begins[3]] == ("x/", "  f", "  (left out: .hidden)")


def test_numbered_files_are_one_line_that_tells_whether_some_are_missing(tmp_path: Path) -> None:
    fill(tmp_path, {f"a/{number:04}.mp4": "" for number in range(12)} | {f"b/x{number:02}y": "" for number in range(6)})
    fill(tmp_path, {f"c/IMG_{number}.jpg": "" for number in range(1001, 1040) if number != 1020})
    fill(tmp_path, {f"c/{number}": "" for number in range(30)} | {f"c/n{number:03}": "" for number in range(995, 1006)})
    tree = list_tree(served(tmp_path).readable("."), CancelToken())
    lines = "\n".join(tree.lines)
    assert "\na/\n  0000.mp4 ... 0011.mp4 (12 files)\nb/\n  x00y ... x05y (6 files)\n" in lines
    assert "\n  IMG_1001.jpg ... IMG_1039.jpg (38 files, with gaps)\n" in lines
    assert (tree.files, lines.count(" ... "), lines.count("\n  ")) == (12 + 6 + 38 + 30 + 11, 5, 1 + 1 + 3)
    assert "\n  0 ... 29 (30 files)\n" in lines and "\n  n995 ... n1005 (11 files)" in lines
    fill(tmp_path, {f"d/{number:05}": "" for number in range(5000)})
    short = list_tree(served(tmp_path).readable("."), CancelToken(), max_bytes=1000)
    assert "  00000 ... 04999 (5,000 files)" in short.lines and short.files == tree.files + 5000


def test_files_that_differ_in_several_numbers_are_one_line_for_each_ending(tmp_path: Path) -> None:
    dates = [f"2026-{month:02}-{day:02}" for month in range(1, 8) for day in (5, 19)]
    fill(tmp_path, {f"{date}-notes.{suffix}": "" for date in dates for suffix in ("md", "mp3", "mp4")})
    fill(tmp_path, {f"log.{number}": "" for number in range(1, 13)} | {f"x{'0' * zeros}1": "" for zeros in range(11)})
    lines = list_tree(served(tmp_path).readable("."), CancelToken()).lines
    assert lines == (
        "./",
        "  2026-01-05-notes.md ... 2026-07-19-notes.md (14 files like these)",
        "  2026-01-05-notes.mp3 ... 2026-07-19-notes.mp3 (14 files like these)",
        "  2026-01-05-notes.mp4 ... 2026-07-19-notes.mp4 (14 files like these)",
        "  log.1 ... log.12 (12 files)",
        "  x00000000001 ... x1 (11 files like these)",
    )


@on_linux
def test_a_link_among_numbered_files_is_named(tmp_path: Path) -> None:
    fill(tmp_path, {f"{number:02}": "" for number in range(30) if number != 14})
    (tmp_path / "14").symlink_to("00")
    lines = list_tree(served(tmp_path).readable("."), CancelToken()).lines
    assert lines == ("./", "  00 ... 29 (29 files, with gaps)", "  14 (link)")


def test_of_more_folders_than_fit_the_first_are_shown(tmp_path: Path) -> None:
    for number in range(2000):
        (tmp_path / f"folder{number:04}").mkdir()
    tree = list_tree(served(tmp_path).readable("."), CancelToken(), max_bytes=2000)
    assert len(tree.text()) <= 2000 and tree.folders == 2000 and "folder0050/" in tree.lines
    assert tree.lines[1] == f"  ({2000 - (len(tree.lines) - 2):,} more folders)"


def test_a_stopped_walk_ends(tmp_path: Path) -> None:
    fill(tmp_path, {"a/b": ""})
    stop = CancelToken()
    stop.set()
    with pytest.raises(WorkCancelled):
        list_tree(served(tmp_path).readable("."), stop)
    with pytest.raises(WorkCancelled):
        list_folder(served(tmp_path).readable("."), stop)


@pytest.mark.anyio
async def test_several_served_folders_are_listed_by_name(tmp_path: Path) -> None:
    fill(tmp_path, {"one/a": "", "two/b": ""})
    tools = Tools(served(tmp_path / "one", tmp_path / "two"))
    assert [entry.path for entry in (await tools.list_directory()).entries] == ["one", "two"]
    assert [entry.path for entry in (await tools.list_directory("two")).entries] == ["two/b"]


def test_a_folder_whose_entries_were_left_out_is_not_shown_empty(tmp_path: Path) -> None:
    fill(tmp_path, {"a/.hidden": "", "a/b/.x": "", "a/b/.y": "", "c/f": ""})
    tree = list_tree(served(tmp_path).readable("."), CancelToken(), depth=1)
    assert list(tree.lines) == ["./", "a/ (1 folder; 1 left out)", "c/ (1 file)"]
    tree = list_tree(served(tmp_path).readable("."), CancelToken(), depth=2)
    assert "a/b/ (2 left out)" in tree.lines


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0, "1970-01-01T00:00:00Z"), (-11_644_473_600.5, "1601-01-01T00:00:00Z"), (1e13, "out of the calendar"),
        (-1e13, "out of the calendar"), (253_402_300_799.9, "9999-12-31T23:59:59Z"),
    ],
)  # fmt: skip
def test_a_file_of_any_time_can_be_listed(seconds: float, told: str) -> None:
    assert format_time(seconds) == told


@pytest.mark.anyio
async def test_a_tree_in_few_bytes_is_as_short_as_trees_are(tmp_path: Path) -> None:
    fill(tmp_path, {f"{unnumbered(number)}.txt": "" for number in range(300)})
    shortest = list_tree(served(tmp_path).readable("."), CancelToken(), max_bytes=1000)
    assert await call(tmp_path, "list_tree", max_bytes=10) == (False, shortest.text())


@pytest.mark.anyio
@pytest.mark.parametrize("tool", ["list_tree", "list_directory"])
async def test_who_lists_an_archive_as_a_folder_reads_how_it_is_listed(tmp_path: Path, tool: str) -> None:
    fill(tmp_path, {"a.zip": b"PK\5\6" + bytes(18)})
    with pytest.raises(NotFound) as refusal:
        await getattr(Tools(served(tmp_path)), tool)(path="a.zip")
    assert str(refusal.value).endswith("`read_text` lists an archive, and reads what is in it as `a.zip!/NAME`.")


def test_a_folded_folder_tells_the_endings_of_its_files(tmp_path: Path) -> None:
    names = {
        "alike": ["a.MD", "b.md"],
        "few": ["a.txt", "b.txt", "c.md", "d", ".hidden"],
        "many": ["a.txt", "b.md", "c.py", "d.js"],
        "none": ["a", "b.2"],
    }
    for folder, files in names.items():
        fill(tmp_path, {f"{folder}/{name}": "" for name in files})
    assert list_tree(served(tmp_path).readable("."), CancelToken(), depth=1).lines[1:] == (
        "alike/ (2 .md files)",
        "few/ (4 files: 2 .txt, 1 .md, 1 others; 1 left out)",
        "many/ (4 files)",
        "none/ (2 files)",
    )
