"""Files and folders are packed into a new zip archive by a copy: within limits, nothing protected, and as one step."""

from __future__ import annotations

import os
import stat
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from filesystem.test_replace import call
from mcp_fs.engine.packing import zip_files

pytestmark = pytest.mark.anyio


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {"docs/a.md": "a", "docs/sub/b.md": "b" * 5000, "docs/.env": "secret", "top": "t"}.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        os.utime(file, (1_600_000_000, 1_600_000_000))
    (tmp_path / "docs/empty").mkdir()
    return tmp_path


def members(path: Path) -> set[str]:
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        return set(archive.namelist())


DOCS = {"docs/", "docs/a.md", "docs/sub/", "docs/sub/b.md", "docs/empty/"}
INNER = {"a.md", "sub/", "sub/b.md", "empty/"}

# Sources with their targets, and what is in the archive then.
PACKED = [
    ({"docs": "x.zip!/"}, DOCS),
    ({"docs": "x.zip!"}, DOCS),
    ({"docs/": "x.zip!/"}, INNER),
    ({"docs": "x.zip!/d"}, {"d/", *(f"d/{name}" for name in INNER)}),
    ({"top": "x.zip!/"}, {"top"}),
    ({"top": "x.zip!/in/other.txt"}, {"in/other.txt"}),
    ({"docs/**/*.md": "x.zip!/"}, {"a.md", "b.md"}),
    ({"docs": "x.zip!/", "top": "x.zip!/in/"}, {*DOCS, "in/top"}),
]


async def test_the_answer_tells_the_top_of_the_archive_and_what_is_hidden(folder: Path) -> None:
    (folder / "docs/.cache").mkdir()
    (folder / "docs/.cache/c").write_text("c")
    (folder / "docs/.note").write_text("n")
    _, said = await call(folder, "copy_file", targets={"docs": "x.zip!/"})
    assert said == "packed docs to x.zip, 4 files (2 hidden), at its top docs/, protected: docs/.env", said
    _, said = await call(folder, "copy_file", targets={"docs/": "y.zip!/"})
    assert said.startswith("packed docs to y.zip, 4 files (2 hidden), at its top ") and "a.md" in said, said
    for name in "bcdefg":
        (folder / f"{name}.md").write_text("x")
    _, said = await call(folder, "copy_file", targets={"./*.md": "z.zip!/"})
    assert "6 files, at its top b.md, c.md, d.md, e.md, f.md, ..." in said, said


@pytest.mark.parametrize(("targets", "expected"), PACKED)
async def test_files_and_folders_go_into_a_new_archive(
    folder: Path, targets: dict[str, str], expected: set[str]
) -> None:
    failed, said = await call(folder, "copy_file", targets=targets)
    assert not failed and said.startswith("packed ") and members(folder / "x.zip") == expected, said
    assert ("protected: docs/.env" in said) == ("docs" in targets or "docs/" in targets)
    _, steps = await call(folder, "undo_changes")
    step = steps.splitlines()[1].split("\t")[0]
    failed, said = await call(folder, "undo_changes", step=step, dry_run=False)
    assert not failed and not (folder / "x.zip").exists(), said


async def test_what_is_packed_is_unpacked_as_it_was(folder: Path) -> None:
    (folder / "docs/run").write_text("#!/bin/sh\n")
    (folder / "docs/run").chmod(0o755)
    (folder / "docs/Größe 中.txt").write_text("x")
    assert not (await call(folder, "copy_file", source="docs", target="new/x.zip!/"))[0]
    assert not (await call(folder, "copy_file", source="new/x.zip!/docs", target="back"))[0]
    assert (folder / "back/sub/b.md").read_text() == "b" * 5000 and (folder / "back/Größe 中.txt").read_text() == "x"
    assert abs((folder / "back/a.md").stat().st_mtime - 1_600_000_000) <= 2
    if os.name == "posix":
        assert (folder / "back/run").stat().st_mode & stat.S_IXUSR
    assert not (folder / "back/.env").exists()


async def test_an_archive_that_is_there_is_replaced_only_when_asked(folder: Path) -> None:
    assert not (await call(folder, "copy_file", source="docs", target="x.zip!/"))[0]
    failed, said = await call(folder, "copy_file", source="top", target="x.zip!/")
    assert failed and "nothing is added to an archive" in said and members(folder / "x.zip") == DOCS
    failed, said = await call(folder, "copy_file", source="top", target="x.zip!/", overwrite=True)
    assert not failed and members(folder / "x.zip") == {"top"}
    _, steps = await call(folder, "undo_changes")
    step = steps.splitlines()[1].split("\t")[0]
    assert not (await call(folder, "undo_changes", step=step, dry_run=False))[0]
    assert members(folder / "x.zip") == DOCS


async def test_an_archive_does_not_hold_itself_or_links(folder: Path) -> None:
    assert not (await call(folder, "copy_file", source="top", target="docs/x.zip!/"))[0]
    if os.name == "posix":
        (folder / "docs/link").symlink_to("a.md")
    failed, said = await call(folder, "copy_file", source="docs", target="docs/x.zip!/", overwrite=True)
    assert not failed and members(folder / "docs/x.zip") == DOCS, said
    assert ("links: docs/link" in said) == (os.name == "posix")


REFUSED = [
    ({"docs/a.md": "x.zip!/n", "top": "x.zip!/n"}, "would both be `n`"),
    ({"docs": "x.zip!/", "docs/a.md": "x.zip!/docs/"}, "Two entries would be `docs/a.md`"),
    ({"docs/a.md:1": "x.zip!/"}, "can't go into an archive"),
    ({"nothing": "x.zip!/"}, "does not exist"),
    ({"top": "../x.zip!/"}, "outside"),
    ({"docs/.env": "x.zip!/"}, "is protected"),
    ({"docs": "x.zip"}, "Write the target as `x.zip!/`"),
    ({"docs": "x.tar.gz"}, "Write the target as `x.zip!/`"),
]


@pytest.mark.parametrize(("targets", "message"), REFUSED)
async def test_what_cannot_be_packed_leaves_nothing(folder: Path, targets: dict[str, str], message: str) -> None:
    before = sorted(os.listdir(folder))
    failed, said = await call(folder, "copy_file", targets=targets)
    assert failed and message in said and sorted(os.listdir(folder)) == before, said


@pytest.mark.parametrize(("name", "limit"), [("MAX_BYTES", 4000), ("MAX_ENTRIES", 3)])
async def test_an_archive_has_limits(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, limit: int) -> None:
    monkeypatch.setattr(zip_files, name, limit)
    failed, said = await call(folder, "copy_file", source="docs", target="x.zip!/")
    assert failed and "Pack a part at a time." in said and sorted(os.listdir(folder)) == ["docs", "top"]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("write_file", {"path": "x.zip!/a.txt", "content": "x"}),
        ("create_directory", {"path": "x.zip!/a"}),
        ("move_file", {"source": "top", "target": "x.zip!/"}),
    ],
)
async def test_other_tools_make_no_folder_with_the_name_of_an_archive(
    folder: Path, tool: str, arguments: dict[str, str]
) -> None:
    failed, said = await call(folder, tool, **arguments)
    assert failed and "`copy_file` packs files into a new archive" in said
    assert sorted(os.listdir(folder)) == ["docs", "top"]


async def test_a_folder_of_such_a_name_is_one(folder: Path) -> None:
    (folder / "x.zip!").mkdir()
    failed, said = await call(folder, "copy_file", source="top", target="x.zip!/")
    assert not failed and (folder / "x.zip!/top").read_text() == "t", said


async def test_an_archive_is_not_packed_into_itself(folder: Path) -> None:
    assert not (await call(folder, "copy_file", targets={"top": "x.zip!/"}))[0]
    before = (folder / "x.zip").read_bytes()
    failed, said = await call(folder, "copy_file", targets={"x.zip": "x.zip!/"}, overwrite=True)
    assert failed and "`x.zip` can't be packed into itself" in said and (folder / "x.zip").read_bytes() == before
    failed, said = await call(folder, "copy_file", targets={"./*.zip": "x.zip!/"}, overwrite=True)
    assert failed and "nothing to pack" in said and (folder / "x.zip").read_bytes() == before
    failed, said = await call(folder, "copy_file", targets={"./*": "x.zip!/"}, overwrite=True)
    assert not failed and "without x.zip itself" in said and members(folder / "x.zip") == {"top"}, said


async def test_what_is_added_to_a_file_meanwhile_stays_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = zip_files.ZipWriter._copy  # pyright: ignore[reportPrivateUsage]

    def copy(writer: zip_files.ZipWriter, file: BinaryIO, *others: Any) -> None:
        with (folder / "top").open("a") as grown:
            grown.write("added")
        real(writer, file, *others)

    monkeypatch.setattr(zip_files.ZipWriter, "_copy", copy)
    failed, said = await call(folder, "copy_file", targets={"top": "x.zip!/"})
    with zipfile.ZipFile(folder / "x.zip") as archive:
        assert not failed and archive.read("top") == b"t", said


@pytest.mark.skipif(os.name == "nt", reason="POSIX modes")
async def test_entries_keep_the_modes_of_their_files(folder: Path) -> None:
    (folder / "docs/a.md").chmod(0o755)
    (folder / "docs/sub").chmod(0o700)
    await call(folder, "copy_file", targets={"docs": "x.zip!/"})
    with zipfile.ZipFile(folder / "x.zip") as archive:
        modes = {info.filename: info.external_attr >> 16 for info in archive.infolist()}
    assert modes["docs/a.md"] == stat.S_IFREG | 0o755 and modes["docs/sub/"] == stat.S_IFDIR | 0o700
