"""Calls that take several paths, or a path with `*` in it, and calls that make the folders they need."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from filesystem.places import Ground, ground, stop
from filesystem.test_replace import call
from mcp_batteries.errors import Problem, Unavailable
from mcp_batteries.limits import Stop
from mcp_fs.engine.files import temp_files, tree
from mcp_fs.engine.files.handles import Folder

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("XDG_STATE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(variable, str(tmp_path_factory.mktemp("state")))


@pytest.fixture
def here(tmp_path: Path) -> Ground:
    place = ground(tmp_path)
    for name in ("a.bak", "b.txt", "d/a.bak", "d/e/c.bak", "d/e/g.txt", ".hidden/h.bak", "built/i.bak"):
        (place.root / name).parent.mkdir(parents=True, exist_ok=True)
        (place.root / name).write_text(name)
    (place.root / ".ignore").write_text("built\n")
    return place


def left(here: Ground) -> set[str]:
    found = [path for path in here.root.rglob("*") if not path.is_dir() and path.name != ".ignore"]
    return {path.relative_to(here.root).as_posix() for path in found}


@pytest.mark.parametrize(
    ("paths", "gone"),
    [
        (["**/*.bak"], {"a.bak", "d/a.bak", "d/e/c.bak"}),
        (["*.bak"], {"a.bak"}),
        (["d/*.bak", "b.txt", "d/a.bak"], {"d/a.bak", "b.txt"}),
        (["d/e", "d/e/c.bak", "./d//e/"], {"d/e/c.bak", "d/e/g.txt"}),
        (["**/e/"], {"d/e/c.bak", "d/e/g.txt"}),
        (["built/*.bak"], {"built/i.bak"}),
    ],
)
async def test_several_are_deleted_in_one_step(here: Ground, paths: list[str], gone: set[str]) -> None:
    before = left(here)
    failed, said = await call(here.root, "delete_file", paths=paths, recursive=True)
    assert not failed, said
    assert before - left(here) == gone
    _, steps = await call(here.root, "undo_changes")
    (line,) = steps.splitlines()[1:]
    failed, said = await call(here.root, "undo_changes", step=line.split("\t")[0], dry_run=False)
    assert not failed and left(here) == before, said


@pytest.mark.parametrize(
    ("paths", "why"),
    [
        (["b.txt", "none"], "`none` does not exist"),
        (["b.txt", "d"], "`d` is a folder that is not empty"),
        (["b.txt", "../outside/*"], "outside the served folders"),
        (["b.txt", "**/*.none"], r"means no file that is not hidden or git-ignored. `find_files`"),
        (["b.txt", ".hidden/.*"], "means no file"),
        (["b.txt", "."], "is a served folder itself"),
        ([], "at least 1"),
    ],
)
async def test_what_can_not_go_is_found_before_anything_goes(here: Ground, paths: list[str], why: str) -> None:
    before = left(here)
    failed, said = await call(here.root, "delete_file", paths=paths)
    assert failed and why in said.replace(r"\\", ""), said
    assert left(here) == before


async def test_more_than_can_be_looked_at_at_once(here: Ground) -> None:
    for number in range(201):
        (here.root / "d" / f"{number}.log").touch()
    failed, said = await call(here.root, "delete_file", paths=["d/*.log"])
    assert failed and "`d/*.log` means more than 200" in said and (here.root / "d/0.log").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="has no such names")
async def test_a_name_with_a_star_that_is_there_is_itself(here: Ground) -> None:
    (here.root / "d/*.bak").touch()
    await call(here.root, "delete_file", paths=["d/*.bak"])
    assert {"d/a.bak"} <= left(here) and "d/*.bak" not in left(here)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX links")
async def test_links_go_and_what_they_lead_to_stays(here: Ground) -> None:
    (here.root / "d/out.bak").symlink_to(here.outside / "secret.txt")
    (here.root / "away").symlink_to(here.outside)
    await call(here.root, "delete_file", paths=["d/*.bak"])
    failed, said = await call(here.root, "delete_file", paths=["b.txt", "away/secret.txt"])
    assert failed and "leads outside" in said, said
    failed, said = await call(here.root, "delete_file", paths=["away/*"])
    assert failed, said
    assert not (here.root / "d/out.bak").is_symlink() and "b.txt" in left(here)
    assert os.listdir(here.outside) == ["secret.txt"]


async def test_what_is_protected_stays(here: Ground) -> None:
    (here.root / "d/id_rsa").write_text("key")
    failed, said = await call(here.root, "delete_file", paths=["d/*"])
    assert not failed and "protected: d/id_rsa" in said, said
    assert left(here) >= {"d/id_rsa"}


async def test_the_one_that_fails_and_those_before_it_are_named(here: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    def remove(folder: Folder[Any], name: str, stop: Stop) -> None:
        if name == "b.txt":
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        temp_files.remove_all(folder, name, stop)

    monkeypatch.setattr(tree, "remove_all", remove)
    places = [here.writable(path) for path in ("a.bak", "b.txt", "d")]
    with pytest.raises(Unavailable, match=r"1 of 3 were deleted: `a.bak`. The next was not: `b.txt`"):
        tree.delete_all(places, recursive=True, trash=False, stop=stop())
    assert {"b.txt", "d/a.bak"} <= left(here)


PATCH = "--- /dev/null\n+++ b/n/m/f\n@@ -0,0 +1 @@\n+new\n--- /dev/null\n+++ b/o/f\n@@ -0,0 +1 @@\n+new\n"


@pytest.mark.parametrize(
    ("tool", "arguments", "made"),
    [
        ("write_file", {"path": "n/m/f", "content": "new"}, {"n/m/f"}),
        ("write_file", {"path": "n/m/f", "content": "new", "parents": True}, {"n/m/f"}),
        ("write_file", {"path": "n/m/f", "content": "new", "append": True}, {"n/m/f"}),
        ("copy_file", {"source": "d/e", "target": "n/m/e"}, {"n/m/e/c.bak", "n/m/e/g.txt"}),
        ("move_file", {"source": "b.txt", "target": "n/m/b.txt"}, {"n/m/b.txt"}),
        ("edit_files", {"patch": PATCH}, {"n/m/f", "o/f"}),
    ],
)
async def test_missing_folders_are_made_told_and_taken_back(
    here: Ground, tool: str, arguments: dict[str, object], made: set[str]
) -> None:
    before = left(here)
    if tool == "edit_files":
        failed, said = await call(here.root, tool, **arguments, dry_run=True)
        assert not failed and "would be created: o/f" in said, said
        assert not (here.root / "n").exists()
    failed, said = await call(here.root, tool, **arguments)
    assert not failed and "new folder n" in said, said
    assert left(here) - before == made
    _, steps = await call(here.root, "undo_changes")
    await call(here.root, "undo_changes", step=steps.splitlines()[1].split("\t")[0], dry_run=False)
    assert left(here) == before and not (here.root / "n").exists() and not (here.root / "o").exists()


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("move_file", {"source": "none", "target": "n/m/f"}),
        ("copy_file", {"source": "none", "target": "n/m/f"}),
        ("move_file", {"source": "d", "target": "d/n/m/d"}),
        ("write_file", {"path": "b.txt/n/f", "content": ""}),
        ("write_file", {"path": "n/f", "content": "", "parents": False}),
        ("edit_files", {"patch": PATCH + "--- a/none\n+++ b/none\n@@ -1 +1 @@\n-x\n+y\n"}),
    ],
)
async def test_what_fails_leaves_no_folder(here: Ground, tool: str, arguments: dict[str, object]) -> None:
    before = {*here.root.rglob("*")}
    failed, said = await call(here.root, tool, **arguments)
    assert failed, said
    assert {*here.root.rglob("*")} == before


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX links")
async def test_no_folder_is_made_outside(here: Ground) -> None:
    (here.root / "away").symlink_to(here.outside)
    (here.root / "dangling").symlink_to(here.outside / "none")
    for target in ("away/n/f", "dangling/n/f"):
        with pytest.raises(Problem):
            tree.create_folder(here.writable(target).parent, stop())
        for tool, arguments in (("move_file", {"source": "b.txt"}), ("copy_file", {"source": "b.txt"})):
            assert (await call(here.root, tool, **arguments, target=target))[0]
    assert os.listdir(here.outside) == ["secret.txt"] and "b.txt" in left(here)
