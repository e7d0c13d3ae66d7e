"""Files that were changed in a time: what callers write, and what is found."""

from __future__ import annotations

import os
import time
from datetime import datetime
from pathlib import Path

import pytest

from filesystem.test_replace import call

pytestmark = pytest.mark.anyio

DAYS = {"old": "2026-03-01T12:00", "noon": "2026-03-02T12:00", "late": "2026-03-02T23:59:59", "new": "2026-03-03T00:00"}

RANGES = [
    ({"since": "2026-03-02"}, {"noon", "late", "new", "now"}),
    ({"until": "2026-03-02"}, {"old", "noon", "late"}),
    ({"since": "2026-03-02", "until": "2026-03-02"}, {"noon", "late"}),
    ({"since": "2026-03-02T12:00:01", "until": "2026-03-03T00:00"}, {"late"}),
    ({"since": "2h"}, {"now"}),
    ({"until": "90min"}, {"old", "noon", "late", "new"}),
    ({}, {"old", "noon", "late", "new", "now"}),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, day in DAYS.items():
        (tmp_path / name).touch()
        seconds = datetime.fromisoformat(day).astimezone().timestamp()
        os.utime(tmp_path / name, (seconds, seconds))
    (tmp_path / "now").touch()
    assert (tmp_path / "now").stat().st_mtime <= time.time() + 1
    return tmp_path


@pytest.mark.parametrize("sort", ["path", "modified", "size"])
@pytest.mark.parametrize(("arguments", "expected"), RANGES)
async def test_files_are_found_by_when_they_changed(
    folder: Path, sort: str, arguments: dict[str, str], expected: set[str]
) -> None:
    failed, said = await call(folder, "find_files", glob="*", sort=sort, **arguments)
    assert not failed and {line.split("\t")[0] for line in said.splitlines()[1:]} == expected, said
    assert said.startswith(f"[{len(expected)} found")


@pytest.mark.parametrize("text", ["yesterday", "3 months", "2026-13-01", "-3d"])
async def test_what_is_no_time_is_refused(folder: Path, text: str) -> None:
    failed, said = await call(folder, "find_files", glob="*", since=text)
    assert failed and "is no time. Write a date, a time or an age" in said


@pytest.mark.parametrize(
    ("glob", "expected"),
    [
        ("*.jpg", {"IMG_1.JPG", "sub/b.Jpg"}),
        ("SUB/*.jpg", {"sub/b.Jpg"}),
        ("readme.md", {"README.md"}),
        ("*.JPG", {"IMG_1.JPG"}),
        ("*.gif", set[str]()),
    ],
)
async def test_a_name_in_another_case_is_found_where_none_is_in_this(
    tmp_path: Path, glob: str, expected: set[str]
) -> None:
    for name in ("IMG_1.JPG", "sub/b.Jpg", "README.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    _, said = await call(tmp_path, "find_files", glob=glob)
    assert set(said.replace("\nsub/\n ", "\nsub/").splitlines()[1:]) == expected, said
    assert ("none in this case, but these in another" in said) is (bool(expected) and glob != "*.JPG")


@pytest.mark.parametrize(
    ("glob", "found", "note"),
    [
        ("*.jpg", ["p.jpg"], "2 more only in another case, such as Photo.JPG"),
        ("sub/*.jpg", ["sub/q.JPG"], "none in this case, but these in another"),
        ("*o*.JPG", ["Photo.JPG"], ""),
        ("p*", ["p.jpg"], "1 more only in another case, such as Photo.JPG"),
        ("*.txt", ["a.txt"], ""),
        ("?.*", ["a.txt", "p.jpg", "sub/q.JPG"], ""),
    ],
)
async def test_names_in_another_case_are_counted(tmp_path: Path, glob: str, found: list[str], note: str) -> None:
    for name in ("p.jpg", "Photo.JPG", "a.txt", "sub/q.JPG"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    failed, said = await call(tmp_path, "find_files", glob=glob)
    head, *lines = said.split("\n")
    assert not failed and lines == found and note in head and ("another" in head) == bool(note), said
