"""What belongs to a repository itself is read and not written, whatever tool and spelling ask for it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp_types import TextContent

from mcp_fs.policy import roots
from mcp_fs.repositories import is_repository_folder
from mcp_fs.server import build
from mcp_fs.settings import Settings

pytestmark = pytest.mark.anyio

SWITCH = "--allow-repository-internals"
CONFIG = "[core]\n\tbare = false\n"


def git_folder(path: Path) -> None:
    """Make what Git knows as a folder of its own."""
    for name in ("objects", "refs/heads", "hooks"):
        (path / name).mkdir(parents=True)
    (path / "HEAD").write_text("ref: refs/heads/main\n")
    (path / "config").write_text(CONFIG)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    for path in ("proj/.git", "proj/.git/modules/x", "store.git", "deep/.git"):
        git_folder(root / path)
    linked = root / "store.git" / "worktrees" / "w"
    linked.mkdir(parents=True)
    for name, text in {"HEAD": "ref: refs/heads/w\n", "commondir": "../..\n", "config": CONFIG}.items():
        (linked / name).write_text(text)
    mercurial = root / "proj" / ".hg"
    mercurial.mkdir()
    (mercurial / "config").write_text(CONFIG)
    (root / "elsewhere").mkdir()
    (root / "elsewhere" / ".git").write_text("gitdir: ../store.git\n")
    (root / "sub").mkdir()
    (root / "text").write_text("one\ntwo\n")
    (root / "folder").mkdir()
    (root / "folder" / "pre-commit").write_text("#!/bin/sh\n")
    try:
        (root / "link").symlink_to("proj/.git")
        (root / "link-to-hooks").symlink_to(root / "store.git" / "hooks")
    except OSError:
        if sys.platform != "win32":
            raise
    return root


def serving(root: Path, *, allowed: bool = False) -> Client:
    return Client(build(Settings.model_validate({"folders": (str(root),), "allow_repository_internals": allowed})))


async def call(client: Client, tool: str, arguments: dict[str, Any]) -> tuple[bool, str]:
    result = await client.call_tool(tool, arguments)
    return bool(result.is_error), "".join(block.text for block in result.content if isinstance(block, TextContent))


def state(root: Path) -> dict[str, bytes | str | None]:
    found: dict[str, bytes | str | None] = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_symlink():
            found[name] = os.readlink(path)
        else:
            found[name] = path.read_bytes() if path.is_file() else None
    return found


Call = tuple[str, dict[str, Any]]

# Each writes to, below or away from a folder; a file `config` is in those that are there.
WRITES: dict[str, Callable[[str], Call]] = {
    "create": lambda at: ("write_file", {"path": f"{at}/new", "content": "x"}),
    "create deeper": lambda at: ("write_file", {"path": f"{at}/new/pre-commit", "content": "x"}),
    "overwrite": lambda at: ("write_file", {"path": f"{at}/config", "content": "x", "overwrite": True}),
    "append": lambda at: ("write_file", {"path": f"{at}/config", "content": "x", "append": True}),
    "edit": lambda at: ("edit_file", {"path": f"{at}/config", "edits": [{"old_text": "core", "new_text": "x"}]}),
    "patch": lambda at: (
        "edit_files",
        {"patch": f"--- a/{at}/config\n+++ b/{at}/config\n@@ -1 +1 @@\n-[core]\n+[x]\n"},
    ),
    "patch that creates": lambda at: ("edit_files", {"patch": f"--- /dev/null\n+++ b/{at}/new\n@@ -0,0 +1 @@\n+x\n"}),
    "patch that deletes": lambda at: (
        "edit_files",
        {"patch": f"*** Begin Patch\n*** Delete File: {at}/config\n*** End Patch\n"},
    ),
    "folder": lambda at: ("create_directory", {"path": f"{at}/new"}),
    "copy in": lambda at: ("copy_file", {"targets": {"text": f"{at}/new"}}),
    "copy over": lambda at: ("copy_file", {"targets": {"text": f"{at}/config"}, "overwrite": True}),
    "copy lines in": lambda at: ("copy_file", {"targets": {"text:1-1": f"{at}/new"}}),
    "copy a folder in": lambda at: ("copy_file", {"targets": {"folder": f"{at}/new"}}),
    "copy several": lambda at: ("copy_file", {"targets": {"text": "other", "folder": f"{at}/new"}}),
    "move in": lambda at: ("move_file", {"targets": {"text": f"{at}/new"}}),
    "move over": lambda at: ("move_file", {"targets": {"text": f"{at}/config"}, "overwrite": True}),
    "move a folder in": lambda at: ("move_file", {"targets": {"folder": f"{at}/new"}}),
    "move out": lambda at: ("move_file", {"targets": {f"{at}/config": "taken"}}),
    "delete": lambda at: ("delete_file", {"paths": [f"{at}/config"]}),
    "delete into the trash": lambda at: ("delete_file", {"paths": [f"{at}/config"], "trash": True}),
    "delete two": lambda at: ("delete_file", {"paths": ["text", f"{at}/config"]}),
}

# The folders by every way to them; what is not there is made by nobody.
FOLDERS = [
    "proj/.git",
    "proj/.git/hooks",
    "proj/.git/modules/x",
    "proj/.git/modules/new",
    "proj/.hg",
    "proj/.jj",
    "sub/.git",
    "sub/.git/hooks",
    "elsewhere/.git",
    "store.git",
    "store.git/hooks",
    "store.git/worktrees/w",
    "./sub/../proj//.git",
    "proj/.GIT",
    "sub/.Git",
    "sub/.HG",
    "sub/git~1",
    "proj/GIT~1",
    "sub/GIT~12/hooks",
    "sub/.git.",
    "sub/.git..",
    "sub/.git::$INDEX_ALLOCATION",
    "sub/.git:stream",
    "sub/.g\u200cit",
    "sub/\ufeff.git",
    "sub/.g\u0131t",
    "link",
    "link/hooks",
    "link-to-hooks",
]


@pytest.mark.share(7)
@pytest.mark.parametrize("folder", FOLDERS)
async def test_no_tool_writes_there(root: Path, folder: str) -> None:
    if folder.startswith("link") and not (root / "link").is_symlink():
        pytest.skip("this user can't make links")
    before = state(root)
    async with serving(root) as client:
        for name, write in WRITES.items():
            tool, arguments = write(folder)
            failed, said = await call(client, tool, arguments)
            assert failed, (name, said)
            assert SWITCH in said, (name, said)
            assert state(root) == before, name


@pytest.mark.parametrize("spell", [str, Path.as_uri], ids=["absolute", "uri"])
async def test_absolute_paths_mean_the_same(root: Path, spell: Callable[[Path], str]) -> None:
    before = state(root)
    async with serving(root) as client:
        for name in ("proj/.git/config", "sub/.git/config", "sub/.git /config", "store.git/config"):
            arguments = {"path": spell(root / name), "content": "x", "overwrite": True}
            failed, said = await call(client, "write_file", arguments)
            assert failed and (SWITCH in said or "blank" in said), said
    assert state(root) == before


@pytest.mark.parametrize("name", WRITES)
async def test_with_the_switch_each_of_them_is_done(root: Path, name: str) -> None:
    before = state(root)
    async with serving(root, allowed=True) as client:
        tool, arguments = WRITES[name]("proj/.git")
        failed, said = await call(client, tool, arguments)
    if "trash" in name and failed:
        pytest.skip(said)
    assert not failed, said
    assert state(root) != before


@pytest.mark.parametrize("path", ["proj/.git", "proj/.hg", "elsewhere/.git"])
async def test_it_is_neither_deleted_nor_moved_nor_made_alone(root: Path, path: str) -> None:
    before = state(root)
    async with serving(root) as client:
        for tool, arguments in (
            ("delete_file", {"paths": [path], "recursive": True}),
            ("move_file", {"targets": {path: "away"}}),
            ("move_file", {"targets": {"folder": path}, "overwrite": True}),
            ("move_file", {"targets": {"folder": f"sub/{Path(path).name}"}}),
            ("copy_file", {"targets": {"folder": f"sub/{Path(path).name}"}}),
            ("create_directory", {"path": f"sub/{Path(path).name}"}),
            ("write_file", {"path": f"sub/{Path(path).name}", "content": "gitdir: ../folder\n"}),
        ):
            failed, said = await call(client, tool, arguments)
            assert failed and SWITCH in said, said
    assert state(root) == before


async def test_a_folder_does_not_become_a_repository_piece_by_piece(root: Path) -> None:
    async with serving(root) as client:
        for last, others in {
            "HEAD": ("objects", "refs"),
            "objects": ("HEAD", "refs"),
            "refs": ("HEAD", "objects"),
            "commondir": ("HEAD",),
        }.items():
            for name in others:
                assert not (await call(client, "create_directory", {"path": f"made-{last}/{name}"}))[0]
            (root / "part").write_text("ref: refs/heads/x\n")
            before = state(root)
            for tool, arguments in (
                ("write_file", {"path": f"made-{last}/{last}", "content": "x"}),
                ("write_file", {"path": f"made-{last}/{last}/deeper", "content": "x"}),
                ("create_directory", {"path": f"made-{last}/{last}"}),
                ("copy_file", {"targets": {"folder": f"made-{last}/{last}"}}),
                ("move_file", {"targets": {"part": f"made-{last}/{last}"}}),
                ("edit_files", {"patch": f"--- /dev/null\n+++ b/made-{last}/{last}\n@@ -0,0 +1 @@\n+x\n"}),
            ):
                failed, said = await call(client, tool, arguments)
                assert failed and SWITCH in said, (tool, said)
            assert state(root) == before


async def test_an_undo_brings_nothing_back_that_makes_a_repository(root: Path) -> None:
    async with serving(root) as client:
        for name in ("objects", "refs"):
            await call(client, "create_directory", {"path": f"made/{name}"})
        assert not (await call(client, "delete_file", {"paths": ["made/refs"]}))[0]
        assert not (await call(client, "write_file", {"path": "made/HEAD", "content": "ref: x\n"}))[0]
        _, steps = await call(client, "undo_changes", {})
        step = next(found[1] for line in steps.splitlines() if (found := re.match(r"(\S+).*delete_file", line)))
        failed, _ = await call(client, "undo_changes", {"step": step, "dry_run": False})
        assert failed
    assert not (root / "made" / "refs").exists()


async def test_what_was_allowed_once_is_not_undone_without_the_switch(root: Path) -> None:
    async with serving(root, allowed=True) as client:
        await call(client, "write_file", {"path": "proj/.git/hooks/pre-commit", "content": "x"})
        await call(client, "delete_file", {"paths": ["proj/.git/hooks/pre-commit"]})
        _, steps = await call(client, "undo_changes", {})
    step = next(found[1] for line in steps.splitlines() if (found := re.match(r"(\S+).*delete_file", line)))
    async with serving(root) as client:
        failed, _ = await call(client, "undo_changes", {"step": step, "dry_run": False})
        assert failed
    assert not (root / "proj/.git/hooks/pre-commit").exists()


@pytest.mark.parametrize("path", ["proj", "store.git", "."])
async def test_replace_text_leaves_it_out_and_says_so(root: Path, path: str) -> None:
    (root / "proj" / "a.cfg").write_text("[core]\n")
    before = state(root)
    arguments = {"replacements": {"core": "x"}, "glob": "**", "path": path, "include_hidden": True}
    async with serving(root) as client:
        _, said = await call(client, "replace_text", {**arguments, "include_ignored": True})
    changed = {name for name, content in state(root).items() if before.get(name) != content}
    assert changed == (set[str]() if path == "store.git" else {"proj/a.cfg"}), said
    assert "protected" in said or SWITCH.strip("-") in said or "belongs to a repository" in said, said


async def test_it_is_read_listed_and_searched(root: Path) -> None:
    async with serving(root) as client:
        for tool, arguments in (
            ("read_text", {"path": "proj/.git/config"}),
            ("read_text", {"path": "store.git/config"}),
            ("search_text", {"pattern": "bare", "path": "proj/.git"}),
        ):
            failed, said = await call(client, tool, arguments)
            assert not failed and "bare" in said, said
        for path in ("proj/.git", "store.git"):
            failed, said = await call(client, "list_directory", {"path": path})
            assert not failed and "hooks" in said, said
        failed, said = await call(client, "copy_file", {"targets": {"proj/.git/config": "config.txt"}})
        assert not failed, said
    assert (root / "config.txt").read_text() == CONFIG


@pytest.mark.parametrize("name", ["proj", "store.git", "elsewhere"])
async def test_a_folder_with_its_repository_is_copied_moved_and_deleted_as_a_whole(root: Path, name: str) -> None:
    whole = state(root / name)
    async with serving(root) as client:
        assert not (await call(client, "copy_file", {"targets": {name: "new/copy"}}))[0]
        assert state(root / "new" / "copy") == whole
        assert not (await call(client, "move_file", {"targets": {name: "new/moved"}}))[0]
        assert state(root / "new" / "moved") == whole
        failed, said = await call(client, "delete_file", {"paths": ["new/moved"], "recursive": True})
        assert not failed, said
        _, steps = await call(client, "undo_changes", {})
        step = steps.splitlines()[1].split()[0]
        failed, said = await call(client, "undo_changes", {"step": step, "dry_run": False})
        assert not failed, said
    assert state(root / "new" / "moved") == whole


async def test_rules_of_the_repository_still_hold_for_what_is_replaced(root: Path) -> None:
    (root / "proj/.git/info").mkdir()
    (root / "proj/.git/info/exclude").write_text("left.txt\n")
    for name in ("left.txt", "changed.txt"):
        (root / "proj" / name).write_text("old\n")
    arguments = {"replacements": {"old": "new"}, "glob": "*.txt", "path": "proj"}
    async with serving(root) as client:
        await call(client, "replace_text", arguments)
    assert (root / "proj/left.txt").read_text() == "old\n"
    assert (root / "proj/changed.txt").read_text() == "new\n"


@pytest.mark.parametrize("served", ["proj/.git", "proj/.git/hooks", "store.git", "store.git/hooks"])
@pytest.mark.parametrize("knows_access", [True, False])
async def test_serving_the_inside_does_not_open_it(
    root: Path, served: str, knows_access: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not knows_access:  # as in a sandbox older than faccessat2(2), which answers it with EPERM
        monkeypatch.setattr(roots, "_has_access", lambda dir_fd, path: False)
    before = state(root)
    async with serving(root / served) as client:
        failed, said = await call(client, "write_file", {"path": "pre-commit", "content": "x"})
        assert failed and SWITCH in said, said
    assert state(root) == before


HARMLESS = [
    ".gitignore",
    ".gitattributes",
    ".github",
    "git",
    "a.git",
    ".git-blame-ignore-revs",
    "legit~1",
    "git~",
    ".gita",
    "x.git.txt",
    ".gît-notes",
]


@pytest.mark.parametrize("name", HARMLESS)
async def test_names_like_it_are_written(root: Path, name: str) -> None:
    assert not is_repository_folder(name)
    async with serving(root) as client:
        failed, said = await call(client, "write_file", {"path": f"sub/{name}", "content": "x"})
    assert not failed, said
