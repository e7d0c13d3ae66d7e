"""A tree with samples shows how files of each kind begin."""

from __future__ import annotations

import math
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from filesystem.documents import pdf
from filesystem.reading import fill, served
from filesystem.tool_calls import Tools
from mcp_fs.engine.reading import samples as module
from mcp_fs.engine.reading.line_forms import line_form

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _with_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_READ_SECONDS", 60)


async def samples(folder: Path, **arguments: object) -> list[str]:
    """Return what stands behind a tree, in lines."""
    answer = (await Tools(served(folder)).list_tree(samples=True, **arguments)).text()
    tree = (await Tools(served(folder)).list_tree(**arguments)).text()
    assert answer.startswith(tree)
    return answer.removeprefix(tree).strip("\n").splitlines()


async def test_two_files_of_a_kind_are_begun_whose_lines_are_unlike(tmp_path: Path) -> None:
    fill(
        tmp_path,
        {
            "notes/first.md": "# Sales\n\nWhat we *sold*.\n",
            "notes/last.md": "\n".join(f"{'.' * number} line {number}" for number in range(9)),
            "notes/middle.md": "never seen",
            "notes/x.md": "1. Last\n",
            "bill.PDF": pdf("Invoice 7"),
            "photo.png": b"\x89PNG\r\n\x1a\n\0\0",
            "deep/er/x.log": "below the tree\n",
            ".hidden.csv": "hidden\n",
            "key.pem": "secret\n",
        },
    )
    head, *lines = await samples(tmp_path, depth=2)
    assert head == "=== notes/first.md [lines 1-3 of 3]" and "=== notes/x.md [line 1 of 1]" in lines
    text = "\n".join(lines)
    assert "What we *sold*." in text and "Invoice 7" in text and "never" not in text
    assert "below the tree" in text and "secret" not in text and "hidden" not in text


async def test_lines_of_a_form_are_counted_and_one_is_shown(tmp_path: Path) -> None:
    for name in ("a", "b"):
        requests = [f"2026-11-0{number} INFO [{name}] took {number}ms\n" for number in range(1, 10)]
        fill(tmp_path, {f"{name}.log": "".join(requests)})
    with (tmp_path / "b.log").open("a") as log:
        log.write("01/Nov/2026 old\n" * 2 + "ERROR: no disk\n\n" * 2)
    legend, *lines = await samples(tmp_path)
    assert legend.startswith("[samples: a line behind how many are alike, and of how many values")
    assert lines == [
        "=== *.log: 2 files; 2026-11-01 to 2026-11-09",
        "9 in 1\t2026-11-01 INFO [a] took 1ms (9 values)",
        "9 in 1\t2026-11-01 INFO [b] took 1ms (9 values)",
        "2 in 1\t01/Nov/2026 old",
        "2 in 1\tERROR: no disk",
    ]


async def test_each_form_is_told_as_finely_as_there_is_room(tmp_path: Path) -> None:
    names = "ABCDEFGHIJKLMNO"
    fill(tmp_path, {"a.log": "warm\ncold 1\n" * 9})
    fill(tmp_path, {"b.txt": "".join(f"warm {number}\ncold {number}\n" for number in range(20))})
    fill(tmp_path, {"c.lst": "".join(f"{name}{number}, {name}\n" for name in names for number in range(2))})
    assert (await samples(tmp_path))[1:] == [
        "=== a.log",
        "9\twarm",
        "9\tcold 1",
        "=== b.txt",
        "20\twarm 0 (20 values)",
        "20\tcold 0 (20 values)",
        "=== c.lst",
        "30\tA0, A (30 values)",
    ]


def receipt(number: int) -> str:
    vendor = ("Cafe Roma", "Hotel Lindner", "Taxi")[number % 3]
    return f"RECEIPT {number}\nVendor: {vendor}\nGuest: {chr(97 + number % 26) * 3} Lee\nTotal: {number}.50 EUR\n"


async def test_few_vendors_are_told_beside_many_guests(tmp_path: Path) -> None:
    fill(tmp_path, {f"{number:03}.txt": receipt(number) for number in range(60)})
    assert (await samples(tmp_path))[1:] == [
        "=== *.txt: 60 files",
        "60\tGuest: aaa Lee (26 values)",
        "60\tRECEIPT 0 (60 values)",
        "60\tTotal: 0.50 EUR (60 values)",
        "20 in 20\tVendor: Cafe Roma",
        "20 in 20\tVendor: Taxi",
        "20 in 20\tVendor: Hotel Lindner",
    ]


async def test_files_are_counted_once_that_have_several_lines_of_a_form(tmp_path: Path) -> None:
    fill(tmp_path, {"a.log": "".join(f"took {number} ms\n" for number in range(40)), "b.log": "took 7 ms\n" * 2})
    fill(tmp_path, {"c.log": "up\n" * 9})
    assert (await samples(tmp_path))[1:] == [
        "=== *.log: 3 files",
        "42 in 2\ttook 0 ms (40 values)",
        "9 in 1\tup",
    ]


async def test_forms_are_told_apart_only_where_all_fit(tmp_path: Path) -> None:
    labels = [f"label {letter * 33}" for letter in "abcdefghijklmn"]
    fill(tmp_path, {"x.ini": "".join(f"{label}: {word}\n" * 9 for label in labels for word in ("on", "off"))})
    fill(tmp_path, {"empty.ini": ""})
    fill(tmp_path, {f"{kind}.{kind}": "text\n" * 9 for kind in ("a", "b", "c", "d", "e")})
    _, _, *lines = await samples(tmp_path)
    rows = lines[: lines.index("=== a.a")]
    counts = [row.split(" ")[0] for row in rows]
    assert 1000 < len("\n".join(rows)) < 2 * 5000 / 7
    assert counts.count("18") + counts.count("9") / 2 == len(labels) and set(counts) == {"18", "9"}


async def test_values_of_columns_are_counted(tmp_path: Path) -> None:
    fill(tmp_path, {f"{month:02}.csv": f"month;amount\n{month};1,50\n{month};-2,00\n" for month in range(1, 14)})
    fill(tmp_path, {"14.csv": 'amount,month\n"1,234.50",  May\n,14\n'})
    assert (await samples(tmp_path))[1:] == [
        "=== *.csv: 14 files; 28 rows by column",
        "13 in 13\tmonth;amount",
        "1 in 1\tamount,month",
        'month: 27x 1 (14 values) | 1x "  May"',
        'amount: 13x 1,50 | 13x -2,00 | 1x 1,234.50 | 1x ""',
    ]


async def test_rows_that_do_not_fit_the_columns_are_counted(tmp_path: Path) -> None:
    rows = [f"{number},2026-11-{number:02},{'note ' * number}of {number}; all\n" for number in range(1, 29)]
    fill(tmp_path, {"a.csv": "number,day,note\n" + "".join(rows) + "\n29,2026-12-01,a,b\n"})
    assert (await samples(tmp_path))[1:] == [
        "=== a.csv; 29 rows by column",
        "1\tnumber,day,note",
        "[1 row of another length: 29,2026-12-01,a,b]",
        "number: 28x 1 (28 values)",
        "day (2026-11-01 to 2026-11-28): 28x 2026-11-01 (28 values)",
        "note: 28x note of 1; all (28 values)",
    ]


async def test_of_many_forms_and_columns_some_are_shown(tmp_path: Path) -> None:
    signs = "!$%&()*+-/:<=>?"
    names = [f"column {name}" for name in [*signs, "@", "#"]]
    rows = [",".join([f"{sign} {'x' * 70}"] * len(names)) + "\n" for sign in signs]
    fill(tmp_path, {"a.csv": ",".join(names) + "\n" + "".join(rows)})
    lines = await samples(tmp_path)
    assert lines[3].startswith(f"column !: 1x ! {'x' * 58}... | 1x $ ")
    assert lines[3].endswith(" | 11 forms more")
    assert lines[-1] == "[1 line more]" and len("\n".join(lines[1:])) < 5000


async def test_what_is_no_table_is_told_by_lines(tmp_path: Path) -> None:
    fill(tmp_path, {"a.csv": "Sales, by day\n" + "1;2;3\n" * 9})
    assert (await samples(tmp_path))[1:] == ["=== a.csv", "9\t1;2;3", "1\tSales, by day"]
    fill(tmp_path, {"a.csv": "name,note\n" + "x,1\n" * 9 + f"y,{'z' * 140_000}\n"})
    assert (await samples(tmp_path))[1:3] == ["=== a.csv", "9\tx,1"]


async def test_tables_without_names_of_columns_have_rows_only(tmp_path: Path) -> None:
    fill(tmp_path, {f"{month:02}.csv": f"2026-{month:02}-01,Ann\n2026-{month:02}-02,Bob\n" for month in range(1, 13)})
    assert (await samples(tmp_path))[1:] == [
        "=== *.csv: 12 files; 2026-01-01 to 2026-12-02",
        "12\t2026-01-01,Ann (12 values)",
        "12\t2026-01-02,Bob (12 values)",
    ]


async def test_what_was_not_read_of_a_kind_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_FILES_OF_KIND", 4)
    monkeypatch.setattr(module, "_MAX_BYTES_OF_FILE", 100)
    fill(tmp_path, {f"{number}.log": "1: one\n" * 9 for number in range(9)})
    fill(tmp_path, {"4.log": "1: one\n" * 15, "6.log": b"\0\1\2" * 9, "8.log": "1: caf\xe9\n".encode("cp1252")})
    assert (await samples(tmp_path))[1:] == [
        "=== *.log: 9 files; 3 read; of 1 the first 100 bytes; utf-8 2, latin-1 1",
        "23 in 2\t1: one",
        "1 in 1\t1: café",
    ]


async def test_files_that_are_called_unlike_are_read_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Each look at this clock takes a second.
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=count().__next__))
    monkeypatch.setattr(module, "_WALK_SECONDS", math.inf)
    monkeypatch.setattr(module, "_READ_SECONDS", 5)
    signs = {"access": "- 1", "app": "[1]", "events": "{1}", "system": "1:"}
    for name, line in signs.items():
        fill(tmp_path, {f"{name}-{number}.log": f"{line}\n" * 9 for number in range(6)})
    lines = await samples(tmp_path)
    assert lines[1] == "=== *.log: 24 files; 5 read"
    assert sorted(line.partition("\t")[2] for line in lines[2:]) == sorted(signs.values())


async def test_files_that_the_walk_did_not_come_to_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WALK_SECONDS", -1)
    fill(tmp_path, {"a.log": "1: one\n" * 9})
    assert (await samples(tmp_path))[1:] == ["=== a.log", "9\t1: one"]
    fill(tmp_path, {"in/b.log": "1: one\n" * 9})
    assert (await samples(tmp_path))[-1] == "[samples are of what was seen within -1 s]"


async def test_rotated_files_are_of_the_kind_of_the_first(tmp_path: Path) -> None:
    names = ["a.log", "a.log.1", "a.log.10", "b.log.2026-11-01", "b.LOG.2026-11-02.1"]
    fill(tmp_path, dict.fromkeys(names, "[1] one\n" * 9))
    fill(tmp_path, dict.fromkeys(["cron.2026-11-01", "syslog.1", ".2", "x.1a"], "1: one\n" * 9))
    assert (await samples(tmp_path, include_hidden=True))[1:] == [
        "=== *.log*: 5 files",
        "45\t[1] one",
        "=== without an ending: 3 files",
        "27\t1: one",
        "=== x.1a",
        "9\t1: one",
    ]


async def test_less_is_read_of_each_of_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_BYTES_OF_KIND", 300_000)
    fill(tmp_path, {f"{number}.log": "1: one\n" * 6_000 for number in range(9)})
    assert (await samples(tmp_path))[1] == "=== *.log: 9 files; of 9 the first 33,000 bytes"


@pytest.mark.parametrize(
    ("line", "form"),
    [
        ("2026-11-01T08:00:18Z GET /users/98 200", "9-9-a:9:a /a/9 9"),
        ("  Then, after a while. We  went", "a"),
        ("id=cd613e30 id=93090287", "a=a=9"),
        ("Ünal\tO'Hara;;-1.234,50", "a\ta'a;;-9.9,9"),
        ("----------\t\t\t\tx", "---  a"),
    ],
)
def test_the_form_of_a_line(line: str, form: str) -> None:
    assert line_form(line) == form


async def test_files_of_very_many_lines_are_read_until_there_are_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MAX_LINES_OF_KIND", 100)
    fill(tmp_path, {f"{number}.log": f"{number}\n" * 60 for number in range(9)})
    _, heading, *_ = await samples(tmp_path)
    assert heading == "=== *.log: 9 files; 2 read"


async def test_forms_beyond_the_most_frequent_are_counted(tmp_path: Path) -> None:
    signs = "!$%&()*+-/:;<=>?"
    fill(
        tmp_path,
        {"x.log": "".join(f"{sign} 1\n" * 20 for sign in signs[:12]) + "".join(f"{sign} 1\n" for sign in signs[12:])},
    )
    lines = await samples(tmp_path)
    assert lines[1:3] == ["=== x.log", "20\t! 1"] and lines[-1] == "[4 forms more, 4 lines]" and len(lines) == 15


async def test_kinds_without_a_sample_are_counted(tmp_path: Path) -> None:
    fill(tmp_path, {f"{number}.{kind}": "text\n" for number, kind in enumerate("aabcdefgh")})
    assert (await samples(tmp_path))[-1] == "[no samples of 2 other kinds, with fewer files]"


async def test_columns_of_one_name_are_counted_apart(tmp_path: Path) -> None:
    fill(tmp_path, {"a.csv": "name,name,,\n" + "ann,lee,x,\nbob,lee,x,\n" * 2})
    assert (await samples(tmp_path))[2:] == [
        "1\tname,name,,",
        "name: 2x ann | 2x bob",
        "name: 4x lee",
        '"": 4x x',
        '"": 4x ""',
    ]


async def test_a_wide_table_leaves_room_for_other_kinds(tmp_path: Path) -> None:
    names = ",".join("abcdefgh"[number % 8] * 9 for number in range(2000))
    fill(tmp_path, {f"{name}.csv": f"{names}\n{'1,' * 1999}1\n" * 2 for name in "abc"})
    fill(tmp_path, {"x.md": "# Title\n\nUnlike.\n"})
    lines = await samples(tmp_path)
    assert lines[2].endswith("... (19,999 characters)") and "# Title" in lines
    assert len("\n".join(lines)) < 6000


async def test_long_paths_leave_room_for_the_lines_of_files(tmp_path: Path) -> None:
    folder = "/".join("folder" * 20 for _ in range(28))
    unlike = "".join(f"{'.' * number} line {number}\n" for number in range(9))
    fill(tmp_path, {f"{folder}/x.{suffix}": unlike for suffix in ("md", "txt", "rst", "tex")})
    lines = await samples(tmp_path, depth=30)
    assert lines.count(". line 1") == 4
