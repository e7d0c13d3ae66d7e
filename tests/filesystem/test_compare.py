"""Two files or two folders side by side, against `diff` of the system; sizes of folders against `du`."""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import subprocess
import tarfile
import time
import zipfile
from pathlib import Path

import pytest

from filesystem.reading import fill, served
from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import NotFound, Problem, Refused
from mcp_fs.engine.listing.comparison import compare
from mcp_fs.engine.listing.folder_page import list_folder
from mcp_fs.engine.listing.walk import WalkFilter

diff = shutil.which("diff") or ""
needs_diff = pytest.mark.skipif(not diff, reason="has no diff")


def said(folder: Path, one: str = "a", other: str = "b", max_bytes: int = 100_000) -> str:
    policy = served(folder)
    return compare(policy.readable(one), policy.readable(other), max_bytes, CancelToken()).text()


@needs_diff
@pytest.mark.parametrize("seed", range(40))
def test_a_diff_makes_one_file_of_the_other(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    lines = [f"{rng.choice(['x', 'y', 'é'])} {rng.randrange(9)}\n" for _ in range(rng.randrange(60))]
    changed = list(lines)
    for _ in range(rng.randrange(6)):
        at = rng.randrange(len(changed) + 1)
        changed[at : at + rng.randrange(3)] = [f"new {rng.random()}\n" for _ in range(rng.randrange(3))]
    end = rng.choice(["", "no end"])
    (tmp_path / "a").write_text("".join(lines), "utf-8", newline="")
    (tmp_path / "b").write_text("".join(changed) + end, "utf-8", newline="")
    answer = said(tmp_path)
    first, _, patch = answer.partition("\n")
    if lines == changed and not end:
        assert first == "[a and b: same contents]" and not patch
        return
    assert first == "[a and b: different]" or first.startswith("[a and b: different; line ends none and")
    made = subprocess.run(
        ["patch", "-s", "-o", "-", tmp_path / "a"], input=patch + "\n", capture_output=True, text=True
    )
    assert made.stdout == (tmp_path / "b").read_text("utf-8"), made.stderr


def test_what_a_diff_of_lines_does_not_show_is_said(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes("é\nb\n".encode())
    (tmp_path / "b").write_bytes(b"\xef\xbb\xbf" + "é\r\nb\r\n".encode())
    assert said(tmp_path) == "[a and b: same lines; byte order mark no and yes; line ends LF and CRLF]"
    (tmp_path / "a").write_bytes("été en août, déjà vu à Noël\n".encode("cp1252"))
    (tmp_path / "b").write_bytes("été en août, déjà vu à Noël\n".encode())
    assert "same lines; encoding latin-1 and utf-8" in said(tmp_path)
    (tmp_path / "a").write_bytes(b"a\r\nb\r\n")
    (tmp_path / "b").write_bytes(b"a\r\nb\n")
    assert said(tmp_path) == "[a and b: same lines; the bytes differ, as in some line ends]"
    (tmp_path / "a").write_bytes(bytes(range(256)) * 9)
    (tmp_path / "b").write_bytes(bytes(range(256)) * 8 + b"\1")
    assert said(tmp_path) == "[a and b: not text: 2,304 and 2,049 bytes, different from byte 2,049 on]"


def test_files_of_any_size_are_compared_to_the_last_byte(tmp_path: Path) -> None:
    for name, end in (("a", b"x"), ("b", b"y"), ("c", b"x")):
        with open(tmp_path / name, "wb") as file:
            file.truncate(40_000_000)
            file.seek(40_000_000)
            file.write(end)
    assert "too large for a diff: 40,000,001 and 40,000,001 bytes" in said(tmp_path)
    assert said(tmp_path, "a", "c") == "[a and c: same contents]"


@needs_diff
@pytest.mark.parametrize("seed", range(30))
def test_folders_are_compared_as_diff_does(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    for side in "ab":
        for number in range(40):
            if rng.random() < 0.7:
                file = tmp_path / side / "/".join(f"d{rng.randrange(3)}" for _ in range(number % 3)) / f"f{number}"
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(rng.choice(["same", "same", "other", "more text"]))
    ran = subprocess.run([diff, "-rq", "a", "b"], cwd=tmp_path, capture_output=True, text=True, env={"LC_ALL": "C"})
    wanted: set[str] = set()
    for line in ran.stdout.splitlines():
        if line.startswith("Only in "):
            folder, name = line.removeprefix("Only in ").split(": ")
            wanted.add(f"{'-' if folder[0] == 'a' else '+'} {(folder + '/')[2:]}{name}")
        else:
            wanted.add(f"~ {line.split()[1][2:]}")
    listed, *diffs = said(tmp_path).split("\n--- ")
    first, *lines = listed.splitlines()
    assert {line.split("\t")[0].rstrip("/") for line in lines} == wanted
    counts = [sum(line[0] == mark for line in lines) for mark in "~-+"]
    assert f"{counts[1]} only in the first (-); {counts[2]} only in the second (+)" in first
    assert f"{counts[0]} file{'s' * (counts[0] != 1)} (~) differ" in first
    texts = [
        (name, (tmp_path / "a" / name).read_text(), (tmp_path / "b" / name).read_text()) for name in _changed(lines)
    ]
    assert len(diffs) == len(texts)
    for text, (name, old, new) in zip(diffs, texts, strict=True):
        assert f"+++ b/b/{name}\n" in text and f"\n-{old}\n" in text and f"\n+{new}\n" in text


def _changed(lines: list[str]) -> list[str]:
    return [line.removeprefix("~ ").split("\t")[0] for line in lines if line.startswith("~ ")]


def test_diffs_in_folders_are_whole_and_others_are_counted(tmp_path: Path) -> None:
    for side in "ab":
        for number in range(12):
            (tmp_path / side).mkdir(exist_ok=True)
            (tmp_path / side / f"f{number:02}").write_text(f"{side}\n" * (2000 if number == 3 else 100))
        (tmp_path / side / "large").write_text(side * 100_000)
        (tmp_path / side / "picture").write_bytes(side.encode() + bytes(range(256)) * 400)
    answer = said(tmp_path, max_bytes=10_000)
    shown = answer.split("\n--- ")[1:]
    assert "; for the lines of 7 files more compare each]" in answer.splitlines()[0]
    assert [one[:7] for one in shown] == [f"a/a/f{number:02}" for number in range(7) if number != 3]
    assert all(one.count("\n-a") == one.count("\n+b") == 100 for one in shown) and len(answer) < 5_000


def test_names_alone_are_told_on_request(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.txt").write_text(f"{name}\n")
    (tmp_path / "b/new.txt").write_text("")
    policy = served(tmp_path)
    answer = compare(policy.readable("a"), policy.readable("b"), 1000, CancelToken(), names_only=True).text()
    assert answer.splitlines() == [
        "[a and b: 0 only in the first (-); 1 only in the second (+); 1 file (~) differ; 0 same]",
        "+ new.txt",
        "~ x.txt\t2\t2",
    ]
    one = compare(policy.readable("a/x.txt"), policy.readable("b/x.txt"), 1000, CancelToken(), names_only=True).text()
    assert one.splitlines() == ["[a/x.txt and b/x.txt: different]"]


def test_names_are_in_the_order_of_their_paths(tmp_path: Path) -> None:
    for name in ("b/x", "b.txt", "a/y", "c"):
        (tmp_path / "second" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "second" / name).touch()
    for folder in ("first/a", "first/b"):
        (tmp_path / folder).mkdir(parents=True)
    policy = served(tmp_path)
    answer = compare(policy.readable("first"), policy.readable("second"), 1000, CancelToken(), names_only=True)
    assert answer.lines == ["+ a/y", "+ b.txt", "+ b/x", "+ c"]


def test_a_page_of_differences_says_how_many_there_are(tmp_path: Path) -> None:
    for side in "ab":
        for number in range(100):
            (tmp_path / side).mkdir(exist_ok=True)
            (tmp_path / side / f"{side}{number}").touch()
    answer = said(tmp_path, max_bytes=50)
    assert "8 of 200 lines: raise max_bytes" in answer and len(answer.splitlines()) == 9


def test_hidden_files_of_folders_are_named_as_left_out_or_compared(tmp_path: Path) -> None:
    for side in "ab":
        (tmp_path / side / ".cache").mkdir(parents=True)
        (tmp_path / side / ".cache/x").write_text(side)
    (tmp_path / "a/.only").touch()
    assert "left out 3 hidden (a/.only, a/.cache/, b/.cache/); set include_hidden]" in said(tmp_path)
    policy = served(tmp_path)
    everything = WalkFilter(hidden=True, ignored=True)
    compared = compare(policy.readable("a"), policy.readable("b"), 10_000, CancelToken(), everything).text()
    assert "- .only\n~ .cache/x\t1\t1\n" in compared and "left out" not in compared


def test_large_json_files_are_compared_by_keys(tmp_path: Path) -> None:
    texts = {"home": {f"title {number}": f"Text {number}" for number in range(100)}, "n": [1, 2], "x": {"y": 1}}
    other = {"n": [1, 2, 3], "x": {"y": 1.0}, "home": {key: value.upper() for key, value in texts["home"].items()}}  # type: ignore[union-attr]
    del other["home"]["title 7"]  # type: ignore[union-attr]
    (tmp_path / "a.json").write_text(json.dumps(texts, indent=2))
    (tmp_path / "b.json").write_text(json.dumps(other))
    head, *lines = said(tmp_path, "a.json", "b.json").splitlines()
    assert "by keys: 1 only in the first (-), 1 only in the second (+), 100 with other values (~)]" in head
    assert lines[:2] == ["--- a.json", "+++ b.json"]
    assert lines[2:5] == ['- home["title 7"]: "Text 7"', "+ n[2]: 3", '~ home["title 0"]: "Text 0" -> "TEXT 0"']
    assert lines[-1] == "~ x.y: 1 -> 1.0"
    (tmp_path / "a.json").write_text('{"a": 1, "a": 2}' + " \n" * 5000)
    assert "by keys" not in said(tmp_path, "a.json", "b.json")


def test_numbers_are_compared_by_keys_with_all_their_digits(tmp_path: Path) -> None:
    for name, last in (("a.json", "0.12345678901234567"), ("b.json", "0.12345678901234568")):
        numbers = ", ".join(f'"v{number}": 1.{"50"[: 1 + (name < "b")]}' for number in range(300))
        (tmp_path / name).write_text(f'{{{numbers}, "n": NaN, "e": 1, "last": {last}}}')
    assert said(tmp_path, "a.json", "b.json").splitlines() == [
        "[a.json and b.json: different; by keys: 0 only in the first (-), 0 only in the second (+), "
        "1 with other values (~)]",
        "--- a.json",
        "+++ b.json",
        "~ last: 0.12345678901234567 -> 0.12345678901234568",
    ]


def test_json_files_that_differ_only_in_their_format_are_said_to(tmp_path: Path) -> None:
    values = {f"key{number}": "text" * 5 for number in range(300)}
    for folder, indent in (("a", 2), ("b", None)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.json").write_text(json.dumps(values, indent=indent))
    phrase = "the same by keys: only formats or the order of keys differ"
    assert phrase in said(tmp_path, "a/x.json", "b/x.json").splitlines()[0]
    assert said(tmp_path, "a", "b").splitlines()[-1] == phrase


def test_small_json_files_are_compared_by_lines(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{\n  "a": 1\n}\n')
    (tmp_path / "b.json").write_text('{\n  "a": 2\n}\n')
    assert '\n-  "a": 1\n+  "a": 2\n' in said(tmp_path, "a.json", "b.json")


def test_secrets_are_not_compared(tmp_path: Path) -> None:
    for side in "ab":
        (tmp_path / side).mkdir()
        (tmp_path / side / "server.pem").write_text(side)
    answer = said(tmp_path)
    assert "protected: a/server.pem, b/server.pem" in answer and "~ " not in answer
    with pytest.raises(Refused):
        said(tmp_path, "a/server.pem", "b/server.pem")
    (tmp_path / "file").touch()
    for pair in (("a", "file"), ("file", "a")):
        with pytest.raises(Refused, match="`a` is a folder, not a file"):
            said(tmp_path, *pair)


@pytest.mark.parametrize("seed", range(10))
def test_folders_have_the_size_of_all_in_them(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    for number in range(50):
        file = tmp_path / "/".join(f"d{rng.randrange(4)}" for _ in range(1 + number % 4)) / f"f{number}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"x" * rng.randrange(5000))
        if not number % 7:
            os.link(file, file.parent / f"again{number}")
    wanted = {
        folder.name: sum(
            size
            for _, size in {(file.stat().st_ino, file.stat().st_size) for file in folder.rglob("*") if file.is_file()}
        )
        for folder in tmp_path.iterdir()
    }
    place = served(tmp_path).readable(".")
    for sort in ("name", "size"):
        page = list_folder(place, CancelToken(), sort=sort, folder_sizes=True)
        assert {entry.path: entry.size for entry in page.entries} == wanted
    largest = [entry.path for entry in list_folder(place, CancelToken(), sort="size", folder_sizes=True).entries]
    assert largest == sorted(wanted, key=lambda name: (-wanted[name], name))


def test_what_is_too_large_for_a_diff_differs_where_it_does(tmp_path: Path) -> None:
    size = 40 * 1024 * 1024
    for name, end in (("a", b"x"), ("b", b"y"), ("c", b"")):
        with (tmp_path / name).open("wb") as file:
            file.seek(size)
            file.write(end)
            file.truncate(size + len(end))
    begun = time.thread_time()
    for other in ("b", "c"):
        answer = compare(served(tmp_path).readable("a"), served(tmp_path).readable(other), 8000, CancelToken())
        assert f"different from byte {size + 1:,} on" in answer.text()
    assert time.thread_time() - begun < 3


LONG = "The first party pays the sum of 12,000.00 EUR within 30 days. " * 160

# Two texts and what is shown of their lines.
LONG_LINES = [
    (
        LONG + "End 5,400.\n",
        LONG + "End 4,500.\n",
        "...the sum of 12,000.00 EUR within 30 days. End [-5,400-]{+4,500+}.",
    ),
    (f"a{LONG}", f"b{LONG}", "~[-aThe-]{+bThe+} first party"),
    (f"{LONG}x\n{LONG}\n", f"{LONG}x\n{LONG}new\n", "~...days. {+new+}"),
    ("x" * 400, "y" * 400, "-" + "x" * 400),
    (
        f"{LONG}\nb\n",
        f"{LONG}\nc\n",
        " The first party pays the sum of 12,000.00 EUR within 30 day... (9,920 characters)",
    ),
]


@pytest.mark.parametrize(("old", "new", "expected"), LONG_LINES)
def test_of_a_long_line_the_words_that_differ_are_shown(tmp_path: Path, old: str, new: str, expected: str) -> None:
    (tmp_path / "a").write_text(old)
    (tmp_path / "b").write_text(new)
    answer = said(tmp_path)
    shown = expected.removeprefix("~").removeprefix("...")
    assert shown in answer and len(answer) < 1500
    assert ("so this is no patch" in answer) is (not expected.startswith("-"))


def test_long_lines_of_a_patch_that_is_applied_stay_whole(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("short\nold\n")
    (tmp_path / "b").write_text("short\nnew\n")
    assert said(tmp_path).endswith("@@ -1,2 +1,2 @@\n short\n-old\n+new")


# What is in two folders, and what is said to differ.
ONE_RULE = [
    (
        {".gitignore": "*.log\nbuilt/\n", "x.log": "1", "built/f": "1"},
        {"x.log": "2", "built/f": "1"},
        ["~ x.log\t1\t1"],
    ),
    ({".gitignore": "*.log\n", "x.log": "1"}, {"y.log": "2"}, ["+ y.log"]),
    ({"x.log": "1", "built/f": "1"}, {".ignore": "built\n*.log", "x.log": "1", "built/f": "2"}, ["~ built/f\t1\t1"]),
    ({".gitignore": "*.log\n", "x.log": "1"}, {".gitignore": "*.log\n", "x.log": "2"}, []),
    ({".gitignore": "built\n", "built/f": "1"}, {"f": "2"}, ["+ f"]),
]


@pytest.mark.parametrize(("first", "second", "expected"), ONE_RULE)
def test_one_rule_holds_for_both_folders(
    tmp_path: Path, first: dict[str, str], second: dict[str, str], expected: list[str]
) -> None:
    for side, files in (("a", first), ("b", second)):
        for name, text in files.items():
            (tmp_path / side / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / side / name).write_text(text)
    head, *lines = said(tmp_path).split("\n")
    assert [line for line in lines if line[:2] in ("~ ", "- ", "+ ")] == expected
    assert f"{len([line for line in expected if line[0] == '+'])} only in the second" in head


def test_each_kind_of_difference_has_its_lines_with_whole_paths(tmp_path: Path) -> None:
    folder = "a folder/with a name"
    for side in "ab":
        fill(tmp_path, {f"{side}/{folder}/both {number}": side for number in range(3)})
        fill(tmp_path, {f"{side}/{folder}/only {side}{number}": side for number in range(3)})
    policy = served(tmp_path)
    answer = compare(policy.readable("a"), policy.readable("b"), 1000, CancelToken(), names_only=True).text()
    assert answer.splitlines()[1:] == [
        *(f"- {folder}/only a{number}" for number in range(3)),
        *(f"+ {folder}/only b{number}" for number in range(3)),
        *(f"~ {folder}/both {number}\t1\t1" for number in range(3)),
    ]


def test_a_folder_is_compared_with_one_in_an_archive(tmp_path: Path) -> None:
    fill(tmp_path, {"a/same.txt": "1\n", "a/b/changed.txt": "old\n", "a/gone/x": "", "a/.env": "1", "plain": "x\n"})
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        members = {"same.txt": "1\n", "b/changed.txt": "new\n", "b/more.bin": "\0", ".env": "2", ".x/a": "", ".x/b": ""}
        for name, text in members.items():
            archive.writestr(f"2024/{name}", text)
        archive.writestr("2025/same.txt", "1\n")
        archive.writestr("2025/b/changed.txt", "new\n")
    counts = "1 only in the first (-); 1 only in the second (+); 1 file (~) differ; 1 same"
    answer = said(tmp_path, "a", "z.zip!/2024")
    head, *lines = answer.splitlines()
    assert head.startswith(f"[a and z.zip!/2024: {counts}; left out 3 hidden"), head
    assert lines[:3] == ["- gone/\t1 file", "+ b/more.bin", "~ b/changed.txt\t4\t4"]
    assert lines[-2:] == ["-old", "+new"] and "+++ b/z.zip!/2024/b/changed.txt" in lines
    assert "+ gone/\t1 file" in said(tmp_path, "z.zip!/2024", "a")
    assert "2 same" in said(tmp_path, "z.zip!/2024", "z.zip!/2025")
    assert "2 only in the second (+)" in said(tmp_path, "a", "z.zip")
    assert said(tmp_path, "z.zip!/2024/b/changed.txt", "z.zip!/2025/b/changed.txt").endswith(": same contents]")
    with pytest.raises(NotFound, match=r"z\.zip!/2023"):
        said(tmp_path, "a", "z.zip!/2023")
    with pytest.raises(Problem, match="`a` is a folder"):
        said(tmp_path, "a", "plain")
    fill(tmp_path, {"odd!/a": "1\n", "odd!/b": "1\n"})
    assert said(tmp_path, "odd!/a", "odd!/b").endswith(": same contents]")


def test_a_cut_listing_of_an_archive_is_told(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with tarfile.open(tmp_path / "z.tar", "w") as archive:
        for name in ("b", "c"):
            member = tarfile.TarInfo(name)
            member.size = 5000
            archive.addfile(member, io.BytesIO(name.encode() * 5000))
    data = (tmp_path / "z.tar").read_bytes()
    (tmp_path / "z.tar").write_bytes(data[:8000])
    assert "not listed whole: z.tar!" in said(tmp_path, "a", "z.tar")
