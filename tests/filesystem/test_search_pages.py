"""An answer to a search in pages, and how long each may be."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from filesystem.reading import fill, served
from filesystem.tool_calls import Tools
from mcp_batteries.clipping import DEFAULT_PAGE_BYTES
from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.server.calling.results import answering_script
from mcp_fs.engine.search.find import find_files
from mcp_fs.engine.search.query import Query
from mcp_fs.engine.search.text_search import search_text
from mcp_fs.models import FilePage, MatchCounts, Matches


def test_every_answer_says_how_many_there_are_in_all(tmp_path: Path, program: str | None) -> None:
    fill(tmp_path, {f"{number:03}": "hit\nmiss hit\n" * 10 for number in range(50)})
    policy, cursor, seen, pages = served(tmp_path), None, 0, 0
    while pages == 0 or cursor is not None:
        page = search_text([policy.readable(".")], Query("hit", limit=300, context=1), cursor, CancelToken(), program)
        assert isinstance(page, Matches)
        seen += sum(match.is_match for _, lines, _ in page.files for match in lines)
        assert "of 1,000 in 50 files" in page.text().partition("\n")[0]
        cursor, pages = page.cursor, pages + 1
    assert (seen, pages) == (1000, 4)
    page = search_text([policy.readable(".")], Query("hit", max_per_file=1, limit=5000), None, CancelToken(), program)
    assert page.text().startswith("[50 of 1,000 matches in 50 files; raise max_per_file for more]")
    page = search_text([policy.readable(".")], Query("hit", files_only=True, limit=20), None, CancelToken(), program)
    assert page.text().startswith("[20 files match, of 50; ")


def test_a_small_limit_holds_with_context(tmp_path: Path, program: str | None) -> None:
    fill(tmp_path, {"a": ("x" * 100 + "\n") * 20 + "hit\n" + ("x" * 100 + "\n") * 20 + "hit\n"})
    page = search_text([served(tmp_path).readable(".")], Query("hit", context=9, limit=2), None, CancelToken(), program)
    assert isinstance(page, Matches)
    assert page.cursor is None
    assert page.total == (2, 1, False)


def paged(folder: Path, query: Query, program: str | None) -> list[Matches]:
    found, cursor = list[Matches](), None
    while True:
        found.append(search_text([served(folder).readable(".")], query, cursor, CancelToken(), program))
        cursor = found[-1].cursor
        if cursor is None:
            return found


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 100])
def test_pages_neither_skip_nor_repeat(tmp_path: Path, program: str | None, limit: int) -> None:
    files = {f"{folder}/f{number}": "hit\nno\n" * (number + 1) for folder in ("a", "b/c", "d") for number in range(4)}
    fill(tmp_path, dict(files))
    pages = paged(tmp_path, Query("hit", limit=limit), program)
    found = [(path, match.line) for page in pages for path, lines, _ in page.files for match in lines if match.is_match]
    wanted = [(path, 2 * line + 1) for path in sorted(files) for line in range(files[path].count("hit"))]
    assert found == wanted
    assert all(sum(match.is_match for _, lines, _ in page.files for match in lines) <= limit for page in pages)


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_context_is_complete_over_pages(tmp_path: Path, program: str | None, limit: int) -> None:
    text = "".join("hit\n" if number % 7 in (0, 3) else f"{number}\n" for number in range(40))
    fill(tmp_path, {"a": text, "b": "hit\n"})
    one = search_text([served(tmp_path).readable(".")], Query("hit", context=2), None, CancelToken(), program)
    pages = paged(tmp_path, Query("hit", context=2, limit=limit), program)
    assert len(pages) > 1
    assert [(path, match) for page in pages for path, lines, _ in page.files for match in lines] == [
        (path, match) for path, lines, _ in one.files for match in lines
    ]


def test_one_file_is_searched_page_by_page(tmp_path: Path) -> None:
    fill(tmp_path, {"a": "hit\n" * 9})
    place, cursor, lines = served(tmp_path).readable("a"), None, list[int]()
    while True:
        page = search_text([place], Query("hit", limit=2), cursor, CancelToken())
        lines += [match.line for _, matches, _ in page.files for match in matches]
        cursor = page.cursor
        if cursor is None:
            break
    assert lines == [*range(1, 10)]


def test_long_matches_fill_a_page_sooner(tmp_path: Path) -> None:
    fill(tmp_path, {"a": ("hit" + "x" * 250 + "\n") * 200})
    page = search_text([served(tmp_path).readable(".")], Query("hit", limit=100, max_per_file=200), None, CancelToken())
    assert page.cursor is not None
    assert 9_000 < len(page.text()) < 11_000


def test_a_page_of_paths_ends_where_it_would_be_too_long(tmp_path: Path, program: str | None) -> None:
    names = [f"{number:03}{'x' * 200}" for number in range(120)]
    fill(tmp_path, dict.fromkeys(names, "x"))
    place = served(tmp_path).readable(".")
    asks: list[Callable[[str | None], FilePage | Matches | MatchCounts]] = [
        lambda cursor: find_files([place], "*", CancelToken(), cursor=cursor),
        lambda cursor: search_text([place], Query("x", files_only=True, limit=200), cursor, CancelToken(), program),
    ]
    for ask in asks:
        cursor, paths = None, list[str]()
        while True:
            page = ask(cursor)
            assert len(page.text()) < DEFAULT_PAGE_BYTES + 800
            assert not isinstance(page, MatchCounts)
            found = page.paths if isinstance(page, FilePage) else [path for path, _, _ in page.files]
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
    first = search_text([place], query, None, CancelToken(), program)
    assert "; more match: continue with cursor=" in first.text().splitlines()[0]
    second = search_text([place], query, first.cursor, CancelToken(), program)
    assert [path for path, _, _ in second.files] == ["d", "e"]
    assert second.cursor is None
    assert find_files([place], "[ab]", CancelToken(), limit=2).cursor is None


def test_the_newest_names_first_page_by_page(tmp_path: Path) -> None:
    fill(tmp_path, {f"d{number % 3}/{number}.txt": "" for number in range(20)})
    for number in range(20):
        os.utime(tmp_path / f"d{number % 3}" / f"{number}.txt", (number // 4, number // 4))
    found, cursor = list[str](), None
    while True:
        page = find_files([served(tmp_path).readable(".")], "*", CancelToken(), sort="modified", limit=3, cursor=cursor)
        found += page.paths
        cursor = page.cursor
        if cursor is None:
            break
        assert page.text().startswith("[3 of 20; continue with cursor=")
    ages = [int(path.rpartition("/")[2].removesuffix(".txt")) // 4 for path in found]
    assert len(set(found)) == 20
    assert ages == sorted(ages, reverse=True)


@pytest.mark.parametrize(
    ("query", "cut"),
    [
        (Query("hit", max_per_file=2), {"b": 9, "d": 7}),
        (Query("hit", max_per_file=2, last_matches=True), {"b": 9, "d": 7}),
        (Query("hit", limit=5), {"b": 9, "d": 7}),
        (Query("hit", limit=1), {"b": 9, "c": 2, "d": 7}),
        (Query("hit", limit=3, last_matches=True), {"b": 9, "d": 7}),
    ],
)
def test_a_file_that_is_cut_says_once_how_many_of_its_lines_match(
    tmp_path: Path, program: str | None, query: Query, cut: dict[str, int]
) -> None:
    fill(tmp_path, {name: "hit\nno\n" * count for name, count in {"a": 1, "b": 9, "c": 2, "d": 7}.items()})
    told = list[tuple[str, int]]()
    for page in paged(tmp_path, query, program):
        told += [(path, whole) for path, _, whole in page.files if whole]
        assert page.text().count(" in all") == sum(whole > 0 for _, _, whole in page.files)
    assert told == [*cut.items()]


@pytest.mark.anyio
async def test_a_script_gets_long_lines_whole(tmp_path: Path) -> None:
    line = f"{'x' * 4000} hit {'y' * 4000}"
    fill(tmp_path, {"a": f"{line}\n", "b": f"{line * 2}\n"})
    with answering_script():
        answer = (await Tools(served(tmp_path)).search_text(pattern="hit", path="a")).text()
        assert answer.splitlines()[1:] == [f"a:1:{line}"]
        longer = (await Tools(served(tmp_path)).search_text(pattern="hit", path="b")).text()
    assert longer.endswith(" [cut: 16,010 bytes]") and len(longer) < 10_100
    shown = (await Tools(served(tmp_path)).search_text(pattern="hit", path="a")).text()
    assert shown.endswith(" [cut: 8,005 bytes]") and len(shown) < 400
