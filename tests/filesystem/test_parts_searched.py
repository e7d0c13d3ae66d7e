"""A search looks through one sheet, or one page, or one file of an archive, of many files at once."""

from __future__ import annotations

import gzip
import io
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter

from filesystem.documents import pdf, zipped
from filesystem.reading import fill, flat, served
from filesystem.tool_calls import Tools
from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Invalid, Problem
from mcp_fs.engine.documents import source
from mcp_fs.engine.documents.converter import Extracted
from mcp_fs.engine.search.find import find_files
from mcp_fs.engine.search.query import Query
from mcp_fs.engine.search.text_search import search_text

_PRODUCT = r"^Lamp\t(?P<sum>[^\t]+)\t(?P<times>[^\t]+)$"


def _book(**sheets: list[list[object]]) -> bytes:
    file = io.BytesIO()
    book: Any = xlsxwriter.Workbook(file, {"in_memory": True})
    for name, rows in sheets.items():
        sheet = book.add_worksheet(name)
        for number, row in enumerate(rows):
            sheet.write_row(number, 0, row)
    book.close()
    return file.getvalue()


def _search(folder: Path, pattern: str, path: str = ".", **query: Any) -> str:
    start = served(folder).readable(path)
    return search_text([start], Query(pattern, **query), None, CancelToken()).text()


@pytest.fixture
def stores(tmp_path: Path) -> Path:
    fill(
        tmp_path,
        {
            "a.xlsx": _book(Orders=[["Lamp", 2, 10.5], ["Lamp XL", 9, 9]], Old=[["Lamp", 100, 100]]),
            "d/b.xlsx": _book(Old=[["Lamp", 7, 7]], orders=[["Desk", 1, 1], ["Lamp", 3, 1]]),
            "d/c.xlsx": _book(Old=[["Lamp", 7, 7]]),
            "notes.txt": "Lamp\t1\t1\n",
        },
    )
    return tmp_path


def test_one_sheet_of_all_workbooks_is_added_up_in_one_call(stores: Path) -> None:
    head, row = _search(stores, _PRODUCT, glob="*.xlsx!/Orders", only_matching=True).splitlines()
    assert row == "2\t5\t24.0"
    assert "not there, so not searched: d/c.xlsx!/Orders" in head


def test_matches_stand_below_the_path_that_reads_the_part(stores: Path) -> None:
    assert flat(_search(stores, "^Lamp\t", glob="*.xlsx!/Orders")) == [
        "a.xlsx!/Orders:2:Lamp\t2\t10.5",
        "d/b.xlsx!/Orders:3:Lamp\t3\t1",
    ]
    page = search_text(
        [served(stores).readable(".")], Query("^Lamp\t", glob="*.xlsx!/Orders", limit=1), None, CancelToken()
    )
    again = search_text(
        [served(stores).readable(".")], Query("^Lamp\t", glob="*.xlsx!/Orders"), page.cursor, CancelToken()
    )
    assert flat(again.text()) == ["d/b.xlsx!/Orders:3:Lamp\t3\t1"]


def test_a_part_is_searched_by_its_path_too(stores: Path) -> None:
    assert flat(_search(stores, "^Lamp", "a.xlsx!/Orders")) == [
        "a.xlsx!/Orders:2:Lamp\t2\t10.5",
        "a.xlsx!/Orders:3:Lamp XL\t9\t9",
    ]
    assert flat(_search(stores, "^Lamp", "a.xlsx", glob="*!/Old")) == ["a.xlsx!/Old:2:Lamp\t100\t100"]


def test_pages_and_files_of_archives_are_parts_as_well(tmp_path: Path) -> None:
    fill(tmp_path, {"a.pdf": pdf("one two", "two three"), "b.zip": zipped({"x.txt": "two\n", "y.txt": "two\n"})})
    assert "2:" not in _search(tmp_path, "one", glob="*.pdf!/2")
    assert "1 match in 1 file" in _search(tmp_path, "three", glob="*.pdf!/2")
    assert flat(_search(tmp_path, "two", glob="*.zip!/x.txt")) == ["b.zip!/x.txt:1:two"]
    with pytest.raises(Invalid, match=r"a\.zip!/b\.xlsx!/Sheet1"):
        _search(tmp_path, "two", "b.zip", glob="*.xlsx!/Orders")


@pytest.mark.parametrize("part", ["..", "../plain.txt", "x/../../plain.txt", "x\0", "../../secret"])
def test_a_part_leads_nowhere_else(tmp_path: Path, part: str) -> None:
    root = tmp_path / "root"
    fill(tmp_path, {"secret": "two\n"})
    fill(root, {"b.zip": zipped({"x.txt": "two\n"}), "b.zip!/y.txt": "two\n", "plain.txt": "two\n"})
    with pytest.raises(Problem):
        _search(root, "two", glob=f"*.zip!/{part}")
    assert flat(_search(root, "two", glob="*.zip!/./x.txt")) == ["b.zip!/x.txt:1:two"]


@pytest.fixture
def archives(tmp_path: Path) -> Path:
    members = {"data/a.csv": "two\n", "data/x/b.CSV": "two, longer\n", ".h/c.csv": "two\n", "n.txt": "two\n"}
    fill(
        tmp_path,
        {
            "a.zip": zipped(members),
            "d/b.zip": zipped({"z.csv": "two\ntwo\n"}),
            "d/c.xlsx": _book(Orders=[["two"]]),
            "d/broken.zip": "none",
            "d/e.csv": "two\n",
        },
    )
    return tmp_path


_CSV = ["a.zip!/.h/c.csv", "a.zip!/data/a.csv", "d/b.zip!/z.csv"]


@pytest.mark.parametrize(
    ("path", "glob", "found"),
    [
        (".", "*.zip!/*.csv", _CSV),
        (".", "**/*.zip!/**/*.csv", _CSV),
        (".", "{a,none}.zip!/data/", ["a.zip!/data/a.csv", "a.zip!/data/x/b.CSV"]),
        (".", "a.zip!/data/*", ["a.zip!/data/a.csv"]),
        (".", "d/*.zip!/", ["d/b.zip!/z.csv"]),
        (".", "*.zip!/*/", ["a.zip!/.h/c.csv", "a.zip!/data/a.csv", "a.zip!/data/x/b.CSV"]),
        ("a.zip", "*.csv", _CSV[:2]),
        ("a.zip!/data", "*", ["a.zip!/data/a.csv", "a.zip!/data/x/b.CSV"]),
        ("a.zip!", "data/*.csv", ["a.zip!/data/a.csv"]),
        ("a.zip", "!*.csv", ["a.zip!/n.txt", "a.zip!/data/x/b.CSV"]),
    ],
)
def test_names_in_archives_are_found_and_their_contents_searched(
    archives: Path, path: str, glob: str, found: list[str]
) -> None:
    start = served(archives).readable(path)
    page = find_files([start], glob, CancelToken())
    assert (list(page.paths), page.total) == (found, len(found)), page.text()
    searched = glob + "*" * glob.endswith("!/")
    assert {line.partition(":")[0] for line in flat(_search(archives, "^two", path, glob=searched))} == set(found)
    first = find_files([start], glob, CancelToken(), limit=1)
    rest = list(first.paths)
    while first.cursor is not None:
        first = find_files([start], glob, CancelToken(), limit=1, cursor=first.cursor)
        rest += first.paths
    assert rest == found


def test_names_in_archives_are_found_in_any_case_and_by_size(archives: Path) -> None:
    start = served(archives).readable(".")
    page = find_files([start], "*.ZIP!/*.csv", CancelToken(), ignore_case=True, sort="size")
    assert page.paths[0] == "a.zip!/data/x/b.CSV" and page.measures[0] == "12" and page.total == 4
    assert "no archive: d/broken.zip" in page.text()
    page = find_files([start], "*.xlsx!/*", CancelToken())
    assert not page.paths and "no archive: d/c.xlsx" in page.text()
    with pytest.raises(Invalid, match="by its name alone"):
        find_files([start], "*.zip!/*", CancelToken(), sort="modified")


@pytest.mark.parametrize("limit", [1, 2])
def test_a_search_of_files_in_archives_goes_on_where_a_page_ended(archives: Path, limit: int) -> None:
    lines: list[str] = []
    cursor = None
    for _ in range(9):
        query = Query("two", glob="*.{zip,csv}!/*", limit=limit)
        page = search_text([served(archives).readable(".")], query, cursor, CancelToken())
        lines += [line for line in flat(page.text()) if not line.endswith(" in all")]
        cursor = page.cursor
        if cursor is None:
            break
    whole = flat(_search(archives, "two", glob="*.{zip,csv}!/*"))
    assert lines == whole and len(whole) == 7, whole


def test_all_parts_of_a_workbook_are_the_workbook(archives: Path) -> None:
    assert flat(_search(archives, "^two", glob="*.xlsx!/*")) == ["d/c.xlsx:2:two"]
    assert "no archive, so without files for `*`: d/c.xlsx" in _search(archives, "^two", glob="*.xlsx!/Ord*")


@pytest.mark.parametrize("glob", ["!*.xlsx!/Orders", "!*.zip!/*.csv"])
def test_no_part_is_left_out_in_silence(archives: Path, glob: str) -> None:
    with pytest.raises(Invalid, match="only whole files are left out"):
        _search(archives, "two", glob=glob)
    with pytest.raises(Invalid, match="only whole files are left out"):
        find_files([served(archives).readable(".")], glob, CancelToken())


@pytest.fixture
def nested(tmp_path: Path) -> Path:
    inner = zipped({"deep/x.csv": "two\n", "y.txt": "two\n"})
    fill(tmp_path, {"a.zip": zipped({"inner.zip": inner, "z.csv": "two\n"}), "one.csv.gz": gzip.compress(b"two\n")})
    return tmp_path


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("a.zip!/inner.zip", ["a.zip!/inner.zip!/y.txt", "a.zip!/inner.zip!/deep/x.csv"]),
        ("a.zip!/inner.zip!", ["a.zip!/inner.zip!/y.txt", "a.zip!/inner.zip!/deep/x.csv"]),
        ("a.zip!/inner.zip!/deep", ["a.zip!/inner.zip!/deep/x.csv"]),
    ],
)
def test_an_archive_in_another_is_looked_into_where_it_is_named(nested: Path, path: str, found: list[str]) -> None:
    assert list(find_files([served(nested).readable(path)], "*", CancelToken()).paths) == found
    assert flat(_search(nested, "two", path)) == [f"{name}:1:two" for name in found]


@pytest.mark.parametrize(
    ("path", "glob"),
    [
        (".", "a.zip!/inner.zip!/*"),
        (".", "*.zip!/*.zip!/**/*.csv"),
        ("a.zip", "inner.zip!/*"),
        ("a.zip!", "*.zip!/*.csv"),
    ],
)
def test_a_glob_goes_into_no_archive_in_another(nested: Path, path: str, glob: str) -> None:
    with pytest.raises(Invalid, match="can't name a part of files in an archive"):
        _search(nested, "two", path, glob=glob)
    with pytest.raises(Invalid, match="can't name a part of files in an archive"):
        find_files([served(nested).readable(path)], glob, CancelToken())


def test_the_glob_that_found_an_archive_may_stand_beside_it(nested: Path) -> None:
    start = [served(nested).readable("a.zip")]
    for glob, found in (
        ("*.zip!/*", ["a.zip!/inner.zip", "a.zip!/z.csv"]),
        ("*.zip!/", ["a.zip!/inner.zip", "a.zip!/z.csv"]),
        ("a.zip!/*.csv", ["a.zip!/z.csv"]),
    ):
        assert list(find_files(start, glob, CancelToken()).paths) == found
        assert flat(_search(nested, "two", "a.zip", glob=glob))[-1] == "a.zip!/z.csv:1:two"


def test_an_archive_in_another_is_told_to_be_left_out_where_nothing_was_found(nested: Path) -> None:
    told = "1 archive not searched (a.zip!/inner.zip); name one as `path`"
    assert told in _search(nested, "nothing of this", "a.zip")
    assert told in _search(nested, "nothing of this", glob="a.zip!/*")


def test_a_compressed_file_is_no_archive(nested: Path) -> None:
    assert flat(_search(nested, "two", glob="*.gz!/*")) == ["one.csv.gz:1:two"]
    assert "no archive, so without files for `*`: one.csv.gz" in _search(nested, "two", glob="*.gz!/*.csv")


@pytest.mark.anyio
async def test_the_listing_of_a_folder_in_an_inner_archive_is_its_own(nested: Path) -> None:
    assert (await Tools(served(nested)).read_text("a.zip!/inner.zip!/deep")).text().endswith("deep/x.csv\t4\n")


@pytest.mark.anyio
async def test_a_name_that_takes_several_lines_is_found_as_it_can_be_read(tmp_path: Path) -> None:
    fill(tmp_path, {"a.zip": zipped({"x\ny.csv": "two\n", "d/t\tb.csv": "two\n"})})
    policy = served(tmp_path)
    page = find_files([policy.readable(".")], "*.zip!/*", CancelToken())
    assert [path.rpartition("%21/")[2] for path in page.paths] == ["x%0Ay.csv", "d/t%09b.csv"]
    tools = Tools(policy)
    answer = (await tools.read_files([*page.paths, "a.zip!/*.csv"])).text()
    assert answer.count("\ntwo") == 3 and "failed" not in answer, answer


@pytest.mark.parametrize(("glob", "hidden"), [("d/*.ZIP!/*.csv", 0), ("*.zip!/*", 1)])
def test_what_no_archive_of_the_glob_could_be_is_not_left_out(archives: Path, glob: str, hidden: int) -> None:
    fill(archives, {".x.txt": "", ".y.Zip": ""})
    said = find_files([served(archives).readable(".")], glob, CancelToken(), ignore_case=True).text()
    assert ("left out 1 hidden" in said) == bool(hidden) and "left out 2" not in said, said


@pytest.mark.anyio
async def test_what_stands_before_the_damage_of_an_archive_is_found(tmp_path: Path) -> None:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name in ("a.csv", "b.csv"):
            member = tarfile.TarInfo(name)
            member.size = 20_000
            archive.addfile(member, io.BytesIO(b"x" * member.size))
    (tmp_path / "half.tar").write_bytes(file.getvalue()[:30_000])
    page = find_files([served(tmp_path).readable(".")], "*.tar!/*", CancelToken())
    assert page.paths and "has more files than are listed: half.tar" in page.text(), page.text()
    answer = (await Tools(served(tmp_path)).read_files(["half.tar!/*", "half.tar!/*.txt"])).text()
    assert "half.tar!/*: failed: has more files than are listed: half.tar!." in answer, answer
    assert "means nothing in the archive, as far as its files are listed." in answer, answer


@pytest.mark.parametrize("limit", [60, 100, 140])
def test_a_list_of_names_that_is_cut_is_whole_up_to_there(
    tmp_path: Path, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, {"a.zip": zipped({f"{number}.csv": "" for number in range(20)})})
    extract = source.extract

    def extract_in_part(*values: Any, **named: Any) -> Extracted:
        extracted = extract(*values, **named)
        return replace(extracted, data=extracted.data[:limit], cut_reason="cut")

    monkeypatch.setattr(source, "extract", extract_in_part)
    page = find_files([served(tmp_path).readable(".")], "*.zip!/*", CancelToken())
    assert page.paths and all(path.endswith(".csv") for path in page.paths) and "has more files" in page.text()


def test_duplicates_are_not_looked_for_in_archives(archives: Path) -> None:
    with pytest.raises(Invalid, match="by its name alone"):
        find_files([served(archives).readable(".")], "*.zip!/*", CancelToken(), sort="duplicates")


def test_a_folder_that_is_called_like_an_archive_is_searched(tmp_path: Path) -> None:
    fill(tmp_path, {"wow!/x.csv": "two\n", "wow!/d/y.csv": "two\n"})
    assert flat(_search(tmp_path, "two", glob="wow!/**")) == ["wow!/x.csv:1:two", "wow!/d/y.csv:1:two"]
    page = find_files([served(tmp_path).readable(".")], "wow!/**", CancelToken())
    assert list(page.paths) == ["wow!/x.csv", "wow!/d/y.csv"]


@pytest.mark.anyio
async def test_files_of_an_archive_are_read_by_a_glob(archives: Path) -> None:
    tools = Tools(served(archives))
    answer = (await tools.read_files(["a.zip!/**/*.csv", "a.zip!/*", "a.zip!/data/*.md"])).text()
    assert [line.split(" ")[1] for line in answer.splitlines() if line.startswith("===")] == [
        "a.zip!/.h/c.csv",
        "a.zip!/data/a.csv",
        "a.zip!/n.txt",
        "a.zip!/data/*.md:",
    ]
    assert "`a.zip!/data/*.md` means nothing in the archive" in answer
