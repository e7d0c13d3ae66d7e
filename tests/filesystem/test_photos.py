"""Photos tell when and by what they were taken, and are sorted by it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from filesystem.test_replace import call

pytestmark = pytest.mark.anyio

_MAKE, _MODEL, _ORIENTATION, _CHANGED, _PHOTO_TAGS, _TAKEN = 0x010F, 0x0110, 0x0112, 0x0132, 0x8769, 0x9003


def photo(
    path: Path, taken: str = "", *, changed: str = "", make: str = "", model: str = "", orientation: int = 1
) -> None:
    """Make a picture of 8 x 4 pixels with tags of Exif."""
    path.parent.mkdir(exist_ok=True, parents=True)
    tags = Image.Exif()
    for tag, value in ((_MAKE, make), (_MODEL, model), (_CHANGED, changed)):
        if value:
            tags[tag] = value
    tags[_ORIENTATION] = orientation
    if taken:
        tags.get_ifd(_PHOTO_TAGS)[_TAKEN] = taken
    Image.new("RGB", (8, 4)).save(path, exif=tags)


async def info(folder: Path, path: str) -> dict[str, object]:
    failed, said = await call(folder, "get_info", path=path)
    assert not failed, said
    return json.loads(said.partition("\n")[0])


@pytest.mark.parametrize("suffix", ["jpg", "webp", "png", "avif"])
async def test_the_facts_of_a_photo_come_with_its_other_facts(tmp_path: Path, suffix: str) -> None:
    photo(tmp_path / f"a.{suffix}", "2024:05:06 07:08:09", make="Canon\0", model="Canon EOS  R5 ")
    found = await info(tmp_path, f"a.{suffix}")
    assert (found["width"], found["height"]) == (8, 4)
    assert found["taken"] == "2024-05-06T07:08:09" and found["camera"] == "Canon EOS R5"


async def test_a_photo_says_its_size_upright_and_who_made_the_camera_once(tmp_path: Path) -> None:
    photo(tmp_path / "a.jpg", changed="2020:01:02 03:04:05", make="SONY", model="A7", orientation=6)
    found = await info(tmp_path, "a.jpg")
    assert (found["width"], found["height"]) == (4, 8)
    assert found["taken"] == "2020-01-02T03:04:05" and found["camera"] == "SONY A7"


@pytest.mark.parametrize("taken", ["0000:00:00 00:00:00", "    :  :     :  :  ", "2024:13:45 99:00:00", "soon"])
async def test_a_date_that_is_none_is_left_out(tmp_path: Path, taken: str) -> None:
    photo(tmp_path / "a.jpg", taken)
    found = await info(tmp_path, "a.jpg")
    assert "taken" not in found and found["width"] == 8


async def test_what_is_no_photo_or_damaged_has_no_such_facts(tmp_path: Path) -> None:
    (tmp_path / "a.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    photo(tmp_path / "whole.jpg", "2024:05:06 07:08:09")
    (tmp_path / "cut.jpg").write_bytes((tmp_path / "whole.jpg").read_bytes()[:25])
    (tmp_path / "a.txt").write_text("text")
    for name in ("a.svg", "cut.jpg", "a.txt"):
        assert not {"width", "taken", "camera"} & (await info(tmp_path, name)).keys()


@pytest.fixture
def album(tmp_path: Path) -> Path:
    photo(tmp_path / "b/old.jpg", "2019:01:01 00:00:00")
    photo(tmp_path / "new.jpg", "2025:06:07 10:00:00")
    photo(tmp_path / "a/middle.jpg", "2022:03:04 05:06:07")
    photo(tmp_path / "scan.jpg")
    (tmp_path / "notes.txt").write_text("not a photo")
    return tmp_path


async def test_photos_are_sorted_by_when_they_were_taken(album: Path) -> None:
    failed, said = await call(album, "find_files", glob="*", sort="taken")
    head, *lines = said.split("\n")
    assert not failed and "5 found" in head and "2 do not say when they were taken and come last" in head
    assert lines == [
        "new.jpg\t2025-06-07T10:00:00",
        "a/middle.jpg\t2022-03-04T05:06:07",
        "b/old.jpg\t2019-01-01T00:00:00",
        "notes.txt",
        "scan.jpg",
    ]


async def test_pages_of_photos_follow_each_other(album: Path) -> None:
    paths: list[str] = []
    cursor = None
    while True:
        _, said = await call(album, "find_files", glob="*.jpg", sort="taken", limit=1, cursor=cursor)
        head, path = said.split("\n")
        paths.append(path.split("\t")[0])
        if "continue with" not in head:
            break
        cursor = head.split('cursor="')[1].split('"')[0]
    assert paths == ["new.jpg", "a/middle.jpg", "b/old.jpg", "scan.jpg"]


async def test_a_range_of_time_is_of_the_photo_where_photos_are_sorted_by_it(album: Path) -> None:
    failed, said = await call(album, "find_files", glob="*", sort="taken", since="2022-01-01", until="2022-12-31")
    assert not failed and said.split("\n")[1:] == ["a/middle.jpg\t2022-03-04T05:06:07"]
    failed, said = await call(album, "find_files", glob="*/", sort="taken")
    assert failed and "`*.jpg`" in said
