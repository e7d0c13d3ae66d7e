"""A zip archive is unpacked by a copy: within the folder, within limits, nothing protected, and as one step."""

from __future__ import annotations

import os
import stat
import struct
import tarfile
import zipfile
from pathlib import Path

import pytest

from filesystem.test_replace import call
from mcp_fs.engine.packing import unzip
from mcp_fs.engine.zip_names import decode_zip_names

pytestmark = pytest.mark.anyio


def pack(path: Path, members: dict[str, str], *, method: int = zipfile.ZIP_DEFLATED, mode: int = 0o100644) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in members.items():
            info = zipfile.ZipInfo(name, (2020, 1, 2, 3, 4, 6))
            info.external_attr = mode << 16
            info.compress_type = method
            archive.writestr(info, text)


def files(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".zip"
    }


ALL = {"docs/a.txt": "a", "docs/b/c.txt": "c", "top": "t"}

# Source and target, and what is there then.
UNPACKED = [
    ("a.zip!/", "out", {f"out/{name}": text for name, text in ALL.items()}),
    ("a.zip!", "out", {f"out/{name}": text for name, text in ALL.items()}),
    ("a.zip!/", "out/", {f"out/{name}": text for name, text in ALL.items()}),
    ("a.zip!", "out/", {f"out/a/{name}": text for name, text in ALL.items()}),
    ("a.zip!/docs", "out", {"out/a.txt": "a", "out/b/c.txt": "c"}),
    ("a.zip!/docs/", "out/", {"out/a.txt": "a", "out/b/c.txt": "c"}),
    ("a.zip!/docs/b/c.txt", "out/", {"out/c.txt": "c"}),
    ("a.zip!/top", "x.txt", {"x.txt": "t"}),
]


@pytest.mark.parametrize(("source", "target", "expected"), UNPACKED)
async def test_an_archive_is_unpacked_in_one_step(
    tmp_path: Path, source: str, target: str, expected: dict[str, str]
) -> None:
    pack(tmp_path / "a.zip", ALL)
    failed, said = await call(tmp_path, "copy_file", source=source, target=target)
    assert not failed and files(tmp_path) == expected, said
    assert all(path.stat().st_mtime < 1_600_000_000 for path in tmp_path.rglob("docs/*.txt"))
    _, steps = await call(tmp_path, "undo_changes")
    failed, said = await call(tmp_path, "undo_changes", step=steps.splitlines()[1].split("\t")[0], dry_run=False)
    assert not failed and files(tmp_path) == {} and not (tmp_path / "out").exists(), said


# What an archive holds, what of it is unpacked, and what is said of the rest.
HOSTILE = [
    (
        {"../x": "", "/y": "", "a/../../z": "", "C:/w": "", "\\\\host\\v": "", "ok": ""},
        {"ok"},
        "a place outside: ../x, /y, ",
    ),
    (
        {".git/hooks/post-checkout": "", "GIT~1/config": "", "ok": ""},
        {"ok"},
        "protected: .git/hooks/post-checkout, GIT~1",
    ),
    ({"id_rsa": "", ".env": "", ".aws/credentials": "", "ok": ""}, {"ok"}, "protected: id_rsa, .env, .aws/credentials"),
    ({"r/HEAD": "", "r/objects/x": "", "r/refs/y": ""}, {"r/objects/x", "r/refs/y"}, "protected: r/HEAD"),
    ({"HEAD": "", "commondir": "", "ok": ""}, {"ok"}, "protected: HEAD, commondir"),
    ({"a": "", "a/b": "", "ok": ""}, {"a", "ok"}, "below a file: a/b"),
    ({"a/" + "n" * 256: "", "n" * 256 + "/": "", "ok": ""}, {"ok"}, f"names that can't be here: a/{'n' * 117}…, nnn"),
    ({".env/1\n[all done]": "", "ok": ""}, {"ok"}, "protected: .env/1\\n[all done]"),
    ({"n/" * 120 + "x": "", "ok": ""}, {"ok"}, "too deep: n/"),
    ({"a/b": "", "a\\b": "", "./a//b": ""}, {"a/b"}, "earlier ones of the same name: "),
]


@pytest.mark.parametrize(("members", "expected", "note"), HOSTILE)
async def test_what_must_not_be_there_is_left_out_and_told(
    tmp_path: Path, members: dict[str, str], expected: set[str], note: str
) -> None:
    served = tmp_path / "served"
    served.mkdir()
    pack(served / "a.zip", members)
    failed, said = await call(served, "copy_file", source="a.zip!/", target="out")
    assert not failed and note in said, said
    assert set(files(served / "out")) == expected
    assert {path.name for path in tmp_path.iterdir()} == {"served"}


async def test_links_in_an_archive_are_left_out(tmp_path: Path) -> None:
    pack(tmp_path / "a.zip", {"link": "/etc/passwd"}, mode=stat.S_IFLNK | 0o777)
    failed, said = await call(tmp_path, "copy_file", source="a.zip!/", target="out")
    assert not failed and said == "unpacked a.zip!/ to out, 0 files, links: link"
    assert os.listdir(tmp_path / "out") == []


async def test_what_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pack(tmp_path / "a.zip", {"x": "0" * 5000, "y": "0" * 5000})
    monkeypatch.setattr(unzip, "MAX_BYTES", 9000)
    failed, said = await call(tmp_path, "copy_file", source="a.zip!/", target="out")
    assert failed and "unpacks to more than 9,000 bytes" in said
    # One that tells less than it holds.
    data = (tmp_path / "a.zip").read_bytes()
    (tmp_path / "a.zip").write_bytes(data.replace(struct.pack("<I", 5000), struct.pack("<I", 100)))
    failed, said = await call(tmp_path, "copy_file", source="a.zip!/", target="out")
    assert failed and "can't be unpacked" in said
    monkeypatch.setattr(unzip, "MAX_ENTRIES", 1)
    assert (await call(tmp_path, "copy_file", source="a.zip!/", target="out"))[0]
    assert sorted(os.listdir(tmp_path)) == ["a.zip"]


@pytest.mark.parametrize("damage", ["none", "cut", "changed", "lzma", "locked"])
async def test_a_damaged_archive_leaves_nothing(tmp_path: Path, damage: str) -> None:
    method = zipfile.ZIP_LZMA if damage == "lzma" else zipfile.ZIP_DEFLATED
    pack(tmp_path / "a.zip", {"first": "f", "x": "some text " * 100}, method=method)
    data = bytearray((tmp_path / "a.zip").read_bytes())
    match damage:
        case "cut":
            del data[-30:]
        case "changed":
            data[120] ^= 0xFF
        case "locked":
            for mark, at in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
                data[data.find(mark) + at] |= 1
        case _:
            pass
    (tmp_path / "a.zip").write_bytes(data)
    failed, said = await call(tmp_path, "copy_file", source="a.zip!/", target="out")
    assert failed is (damage != "none"), said
    assert sorted(os.listdir(tmp_path)) == (["a.zip"] if failed else ["a.zip", "out"])


async def test_who_unpacks_another_archive_hears_what_to_do(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("docs/a.txt"))
    for source in ("a.tar.gz!/", "a.tar.gz!/docs"):
        failed, said = await call(tmp_path, "copy_file", source=source, target="out")
        assert failed and "`copy_file` unpacks zip archives only: write texts out of others with `write_file`" in said


async def test_a_target_that_is_there_stays(tmp_path: Path) -> None:
    pack(tmp_path / "a.zip", ALL)
    (tmp_path / "x").write_text("old")
    for source in ("a.zip!/", "a.zip!/top"):
        failed, said = await call(tmp_path, "copy_file", source=source, target="x", overwrite=True)
        assert failed and "exists already; nothing was unpacked" in said
    failed, said = await call(tmp_path, "copy_file", source="a.zip!/none", target="y")
    assert failed and "is not in the archive" in said
    assert (tmp_path / "x").read_text() == "old"


@pytest.mark.parametrize("name", ["Привет.txt", "äöü ÄÖÜ.txt"])
def test_a_name_that_a_field_of_the_archive_says_is_read_as_such(name: str) -> None:
    # Python since 3.12 reads the field with the name in UTF-8, beside the bytes of another encoding.
    info = zipfile.ZipInfo("ßá.txt")
    info.filename = name
    plain = zipfile.ZipInfo(name.encode("cp866", "replace").decode("cp437"))
    assert decode_zip_names([info, plain])[0] == name
