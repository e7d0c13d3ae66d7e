"""A patch renames files, with and without changes, and may be a file itself: all or nothing, and as one step."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from filesystem.reading import on_linux
from filesystem.test_replace import call, contents
from mcp_fs.engine.changing.atomic_write import FileRemoval

pytestmark = pytest.mark.anyio

LATIN = "l\xe9on\r\nx\r\n".encode("latin-1")
PICTURE = b"\x89PNG\r\n\x1a\n\0\0"
GIT_PATCH = """\
diff --git a/docs/a.md b/docs/c.md
similarity index 100%
rename from docs/a.md
rename to docs/c.md
diff --git a/latin.txt b/new/latin two.txt
similarity index 55%
rename from latin.txt
rename to new/latin two.txt
index eacecb4..d90310b 100644
--- a/latin.txt
+++ b/new/latin two.txt
@@ -1,2 +1,2 @@
 léon
-x
+y
diff --git a/p.png "b/na\\303\\257ve.png"
similarity index 100%
rename from p.png
rename to "na\\303\\257ve.png"
diff --git a/kept b/kept
index 1..2 100644
--- a/kept
+++ b/kept
@@ -1 +1 @@
-one
+two
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_bytes(b"a\nb\n")
    (tmp_path / "latin.txt").write_bytes(LATIN)
    (tmp_path / "p.png").write_bytes(PICTURE)
    (tmp_path / "kept").write_bytes(b"one\n")
    (tmp_path / "latin.txt").chmod(0o600)
    return tmp_path


async def undo_last(folder: Path) -> None:
    _, steps = await call(folder, "undo_changes")
    failed, said = await call(folder, "undo_changes", step=steps.splitlines()[1].split("\t")[0], dry_run=False)
    assert not failed, said


@pytest.mark.parametrize("as_file", [False, True])
async def test_git_renames_files_of_any_kind(folder: Path, as_file: bool) -> None:
    patch = GIT_PATCH
    if as_file:
        (folder / "change.patch").write_text(GIT_PATCH, "utf-8")
        patch = "change.patch"
    before = contents(folder)
    failed, said = await call(folder, "edit_files", patch=patch, dry_run=True)
    assert not failed and "would be renamed: latin.txt to new/latin two.txt" in said and contents(folder) == before
    failed, said = await call(folder, "edit_files", patch=patch)
    assert not failed and said.split("\n")[:4] == [
        "renamed docs/a.md to docs/c.md",
        "renamed latin.txt to new/latin two.txt",
        "renamed p.png to naïve.png",
        "edited kept, line 1 (+1 -1)",
    ], said
    after = contents(folder)
    after.pop("change.patch", None)
    assert after == {
        "docs/c.md": b"a\nb\n",
        "new/latin two.txt": LATIN.replace(b"x", b"y"),
        "naïve.png": PICTURE,
        "kept": b"two\n",
    }
    if os.name == "posix":
        assert stat.S_IMODE((folder / "new/latin two.txt").stat().st_mode) == 0o600
    await undo_last(folder)
    assert contents(folder) == before


@pytest.mark.parametrize(("body", "expected"), [("@@\n a\n-b\n+B\n", b"a\nB\n"), ("", b"a\nb\n")])
async def test_a_patch_of_a_model_moves_files(folder: Path, body: str, expected: bytes) -> None:
    patch = f"*** Begin Patch\n*** Update File: docs/a.md\n*** Move to: other/b.md\n{body}*** End Patch\n"
    failed, said = await call(folder, "edit_files", patch=patch)
    assert not failed and said == "renamed docs/a.md to other/b.md\nnew folder other", said
    assert (folder / "other/b.md").read_bytes() == expected and not (folder / "docs/a.md").exists()


@on_linux
async def test_what_is_renamed_is_closed_before_it_goes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows removes and renames no file that is open."""
    open_then: list[str] = []
    real = FileRemoval.move_to_backup

    def move_to_backup(removal: FileRemoval, backup: str) -> None:
        descriptors = Path("/proc/self/fd").iterdir()
        open_then.extend(str(path.readlink()) for path in descriptors if path.is_symlink())
        real(removal, backup)

    monkeypatch.setattr(FileRemoval, "move_to_backup", move_to_backup)
    failed, said = await call(folder, "edit_files", patch="rename from docs/a.md\nrename to b.md\n")
    assert not failed, said
    # The one that is left is its lock, which Windows does not have.
    assert open_then.count(str(folder / "docs/a.md")) == 1


REFUSED = [
    ("rename from docs/a.md\nrename to kept\n", "`kept` exists already; nothing was renamed"),
    ("rename from nothing\nrename to new\n", "does not exist"),
    ("rename from docs/a.md\nrename to ../out.md\n", "outside"),
    ("rename from docs/a.md\nrename to docs/a.docx\n", "is the name of a document"),
    ("rename from p.png\nrename to q.png\n--- a/p.png\n+++ b/q.png\n@@ -1 +1 @@\n-a\n+b\n", "not text"),
    (
        "rename from docs/a.md\nrename to b.md\n--- a/docs/a.md\n+++ b/b.md\n@@ -1 +1 @@\n-z\n+y\n",
        "are not in the file",
    ),
    ("rename from p.png\nrename to q.png\nindex 1..2 100644\nBinary files a/p.png and b/q.png differ\n", "as binary"),
    ("rename from p.png\nrename to q.png\nindex 1..2 100644\nGIT binary patch\ndelta 3\nKcmb=Z\n", "as binary"),
    ("copy from docs/a.md\ncopy to docs/b.md\n", "`move_file` or `copy_file`"),
]


@pytest.mark.parametrize(("lines", "message"), REFUSED)
async def test_a_rename_that_cannot_be_made_changes_nothing(folder: Path, lines: str, message: str) -> None:
    before = contents(folder)
    patch = f"diff --git a/x b/y\nsimilarity index 90%\n{lines}"
    if "kept" not in lines:
        patch = f"diff --git a/kept b/kept2\nrename from kept\nrename to kept2\n{patch}"
    failed, said = await call(folder, "edit_files", patch=patch)
    assert failed and message in said and contents(folder) == before, said


@pytest.mark.parametrize(
    ("content", "message"), [(None, "does not exist"), (b"\0\1", "is no patch"), (b"just words\n", "names no file")]
)
async def test_a_file_that_is_no_patch_is_said_to_be_none(folder: Path, content: bytes | None, message: str) -> None:
    if content is not None:
        (folder / "x.patch").write_bytes(content)
    failed, said = await call(folder, "edit_files", patch="x.patch")
    assert failed and message in said, said


@pytest.mark.parametrize("patch", ["", " \n", "\n\n"])
async def test_an_empty_patch_is_no_path(folder: Path, patch: str) -> None:
    failed, said = await call(folder, "edit_files", patch=patch)
    assert failed and "names no file" in said, said


@pytest.mark.skipif(os.name != "posix", reason="has no links for everybody")
async def test_a_link_is_not_renamed_by_a_patch(folder: Path) -> None:
    (folder / "link").symlink_to("kept")
    failed, said = await call(folder, "edit_files", patch="diff --git a/link b/l\nrename from link\nrename to l\n")
    assert failed and "is a link" in said and (folder / "link").is_symlink() and (folder / "kept").exists()


@pytest.mark.parametrize("hunk", ["", "--- a/kept\n+++ b/new\n@@ -1 +1 @@\n-one\n+two\n"])
async def test_a_new_mode_of_a_renamed_file_is_said_to_be_left(folder: Path, hunk: str) -> None:
    patch = f"diff --git a/kept b/new\nold mode 100644\nnew mode 100755\nrename from kept\nrename to new\n{hunk}"
    failed, said = await call(folder, "edit_files", patch=patch)
    assert not failed and "new: its mode stays, not 100755" in said, said
    if os.name == "posix":
        assert not (folder / "new").stat().st_mode & 0o111


async def test_a_message_in_front_of_a_patch_renames_nothing(folder: Path) -> None:
    message = "Subject: Tell of renames\n\nGit writes\nrename from docs/a.md\nrename to b.md\n---\n kept | 2 +-\n\n"
    diff = "diff --git a/kept b/kept\n--- a/kept\n+++ b/kept\n@@ -1 +1 @@\n-one\n+two\n"
    failed, said = await call(folder, "edit_files", patch=message + diff)
    assert not failed and said == "edited kept, line 1 (+1 -1)", said
    assert (folder / "docs/a.md").exists() and not (folder / "b.md").exists()
