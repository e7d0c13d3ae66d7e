"""Calls that take several paths, or a path with `*` in it, and calls that make the folders they need."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp_types import ElicitRequestParams, ElicitResult

from filesystem.places import Ground, ground, stop
from filesystem.test_replace import call
from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import NotFound, Problem, Unavailable
from mcp_batteries.server.declaration.call_origin import CallOrigin
from mcp_batteries.settings import load
from mcp_batteries.testing.wire import MODERN
from mcp_fs import server
from mcp_fs.engine.changing import folders
from mcp_fs.engine.changing.entries import deleting, moving, renames
from mcp_fs.engine.changing.entries.batch import move_pairs
from mcp_fs.engine.handles import open_entries, temp_files
from mcp_fs.engine.handles.path_opening import Folder
from mcp_fs.engine.journal import operations
from mcp_fs.engine.journal.journal import JournalEntry
from mcp_fs.engine.journal.store import JournalStore
from mcp_fs.engine.undo.undo import list_undoable_entries, undo_entries
from mcp_fs.policy import ReadablePath, WritablePath
from mcp_fs.server import build
from mcp_fs.settings import Settings

if sys.platform != "win32":
    import resource

pytestmark = pytest.mark.anyio


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


async def test_folders_that_a_deletion_leaves_empty_are_named(here: Ground) -> None:
    _, said = await call(here.root, "delete_file", paths=["d/e/c.bak"])
    assert said == "deleted d/e/c.bak"
    _, said = await call(here.root, "delete_file", paths=["d/e/g.txt", "d/a.bak", "b.txt"])
    assert said == "[deleted 3; d/e is empty now]"
    _, said = await call(here.root, "delete_file", paths=["d/e"])
    assert said == "deleted d/e, d is empty now"
    names = [f"m/{number}/x" for number in range(7)]
    for name in names:
        (here.root / name).parent.mkdir(parents=True)
        (here.root / name).write_text("")
    _, said = await call(here.root, "delete_file", paths=names)
    assert said == "[deleted 7; m/0, m/1, m/2, m/3, m/4 and 2 more are empty now]"


@pytest.mark.parametrize(
    ("paths", "gone"),
    [
        (["**/*.bak"], {"a.bak", "d/a.bak", "d/e/c.bak"}),
        (["./*.bak"], {"a.bak"}),
        (["d/*.bak", "b.txt", "d/a.bak"], {"d/a.bak", "b.txt"}),
        (["d/e", "d/e/c.bak", "./d//e/"], {"d/e/c.bak", "d/e/g.txt"}),
        (["**/e/"], {"d/e/c.bak", "d/e/g.txt"}),
        (["built/*.bak"], {"built/i.bak"}),
        (["d/{a,none}.b*", "{b,c}.t?t"], {"d/a.bak", "b.txt"}),
        (["**/.*"], {".dot", "d/.dot"}),
        (["./{.dot,a.bak}"], {".dot", "a.bak"}),
        (["./.*/*.bak"], {".hidden/h.bak"}),
    ],
)
async def test_several_are_deleted_in_one_step(here: Ground, paths: list[str], gone: set[str]) -> None:
    for name in (".dot", "d/.dot"):
        (here.root / name).write_text(name)
    before = left(here)
    failed, said = await call(here.root, "delete_file", paths=paths, recursive=True)
    assert not failed, said
    assert before - left(here) == gone
    # What the caller has named is not named again.
    assert any("*" in path or "{" in path for path in paths) or "\n" not in said
    _, steps = await call(here.root, "undo_changes")
    (line,) = steps.splitlines()[1:]
    failed, said = await call(here.root, "undo_changes", step=line.split("\t")[0], dry_run=False)
    assert not failed and left(here) == before, said


@pytest.mark.parametrize(
    ("paths", "why"),
    [
        (["b.txt", "none"], "`none` does not exist; nothing was deleted."),
        (["b.txt", "d"], "`d` is a folder that is not empty; nothing was deleted."),
        (["b.txt", "./*.none"], "; nothing was deleted."),
        (["b.txt", "../outside/*"], "outside the served folders"),
        (
            ["b.txt", "**/*.none"],
            "not hidden or git-ignored; nothing was deleted. Hidden ones are meant if their dot is spelled",
        ),
        (["b.txt", ".hidden/.*"], "means no file"),
        (["b.txt", "."], "is a served folder itself"),
        (["*.bak"], "is a name at any depth, such as `d/a.bak`; nothing was done. Write `./*.bak` for those in the"),
        ([], "at least 1"),
    ],
)
async def test_what_can_not_go_is_found_before_anything_goes(here: Ground, paths: list[str], why: str) -> None:
    before = left(here)
    failed, said = await call(here.root, "delete_file", paths=paths)
    assert failed and why in said.replace(r"\\", ""), said
    assert left(here) == before


async def test_more_than_can_be_looked_at_at_once(here: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_entries, "MAX_ENTRIES", 200)
    failed, said = await call(here.root, "move_file", targets={f"{number}": f"x{number}" for number in range(201)})
    assert failed and "`targets` names 201 sources. Name 1 to 200 with" in said, said
    for number in range(201):
        (here.root / "d" / f"{number}.log").touch()
    failed, said = await call(here.root, "delete_file", paths=["d/*.log"])
    assert failed and "`d/*.log` means more than 200" in said and (here.root / "d/0.log").exists()
    for paths in (
        [f"d/{number}.log" for number in range(201)],
        [*(f"d/{number}.log" for number in range(200)), "./*.bak"],
    ):
        failed, said = await call(here.root, "delete_file", paths=paths)
        assert failed and "These are more than 200. Delete" in said and (here.root / "d/0.log").exists(), said


@pytest.mark.skipif(sys.platform == "win32", reason="counts otherwise")
@pytest.mark.parametrize(
    ("available", "entries"), [(None, 10_000), (1_000_000, 10_000), (20_000, 4800), (1024, 192), (256, 48), (4, 1)]
)
def test_as_many_entries_are_changed_as_can_be_open(
    monkeypatch: pytest.MonkeyPatch, available: int | None, entries: int
) -> None:
    monkeypatch.setattr(open_entries, "raise_descriptor_limit", lambda desired: available)
    assert open_entries.max_open_entries() == entries


@pytest.mark.skipif(sys.platform == "win32", reason="has no limit of open files for a process")
@pytest.mark.share(1)
@pytest.mark.parametrize("tool", ["move_file", "copy_file"])
async def test_a_step_is_taken_back_however_many_folders_it_made(
    here: Ground, monkeypatch: pytest.MonkeyPatch, tool: str
) -> None:
    """And made again, with as few files open as when it was made."""
    monkeypatch.setattr(server, "DESIRED_DESCRIPTORS", 0)
    for number in range(16):
        (here.root / f"{number}.log").touch()
    before = left(here)
    targets = {f"{number}.log": f"new/{number}/1/2/3/4/5/6/7/8/x" for number in range(16)}
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/dev/fd")) + 100, hard))
    try:
        failed, said = await call(here.root, tool, targets=targets)
        assert not failed, said
        after = left(here)
        for expected in (before, after, before):
            _, steps = await call(here.root, "undo_changes")
            step = steps.splitlines()[1].split("\t")[0]
            failed, said = await call(here.root, "undo_changes", step=step, dry_run=False)
            assert not failed and left(here) == expected, said[:300]
            assert (here.root / "new").exists() == (expected is after)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


MANY = 1100
MANY_CALLS = [
    ("replace_text", {"replacements": {"old": "new"}, "glob": "*.log"}, "replaced 1,100 places in 1,100 files"),
    ("delete_file", {"paths": ["**/*.log"]}, "deleted 1,100; "),
    ("move_file", {"targets": {"**/*.log": "all/"}}, "moved 1,100; new folder all"),
    ("move_file", {"targets": {f"many/{n}.log": f"new/{n}/x" for n in range(MANY)}}, "moved 1,100; new folder new"),
    ("copy_file", {"targets": {"many/*.log": "all/"}}, "copied 1,100; new folder all"),
]


@pytest.mark.slow
@pytest.mark.share(2)
@pytest.mark.parametrize(("tool", "arguments", "answer"), MANY_CALLS)
async def test_more_than_a_thousand_are_changed_in_one_step(
    here: Ground, tool: str, arguments: dict[str, Any], answer: str
) -> None:
    (here.root / "many").mkdir()
    for number in range(MANY):
        (here.root / f"many/{number}.log").write_text(f"old {number}")
    before = {name: (here.root / name).read_text() for name in left(here)}
    failed, said = await call(here.root, tool, **arguments)
    assert not failed and answer in said and len(said) < 12_000, said
    assert {name: (here.root / name).read_text() for name in left(here)} != before
    _, steps = await call(here.root, "undo_changes")
    failed, said = await call(here.root, "undo_changes", step=steps.splitlines()[1].split("\t")[0], dry_run=False)
    assert not failed and {name: (here.root / name).read_text() for name in left(here)} == before, said


async def test_a_deep_path_is_made_level_by_level(here: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    resolved: list[ReadablePath] = []
    real = folders.resolve_for_writing
    monkeypatch.setattr(folders, "resolve_for_writing", lambda path: resolved.append(path) or real(path))
    for depth in (4, 40):
        resolved.clear()
        failed, said = await call(here.root, "create_directory", path=f"deep{depth}" + "/q" * depth)
        assert not failed and said == f"created deep{depth}" + "/q" * depth
        assert len(resolved) == 2
    _, steps = await call(here.root, "undo_changes")
    failed, said = await call(here.root, "undo_changes", step=steps.splitlines()[1].split("\t")[0], dry_run=False)
    assert not failed and not (here.root / "deep40").exists(), said


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX: a process may be left 256 descriptors, as on macOS")
async def test_200_are_deleted_where_a_process_is_left_256_descriptors(here: Ground) -> None:
    for number in range(200):
        (here.root / "d" / f"{number}.log").touch()
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
    try:
        failed, said = await call(here.root, "delete_file", paths=["d/*.log"])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert not failed and said.startswith("[deleted 200"), said


@pytest.mark.parametrize(
    ("glob", "copied"),
    [
        ("./b{.txt,*.md}", {"b.txt", "b.v1.md"}),
        ("./{.dot,[!d]*.md}", {".dot", "b.v1.md"}),
        ("./{.dot,?dot,*dot}", {".dot"}),
        ("./x,y{1,2}", {"x,y1", "x,y2"}),
        ("./x,*", {"x,y1", "x,y2"}),
    ],
)
async def test_each_choice_in_braces_is_a_glob_of_its_own(here: Ground, glob: str, copied: set[str]) -> None:
    for name in (".dot", ".env.md", "b.v1.md", "x,y1", "x,y2"):
        (here.root / name).write_text(name)
    before = left(here)
    failed, said = await call(here.root, "copy_file", targets={glob: "new/"})
    assert not failed, said
    assert {path.removeprefix("new/") for path in left(here) - before} == copied, said


@pytest.mark.parametrize(
    ("glob", "missing"),
    [
        ("./{a,none}.bak", "`./none.bak`"),
        ("{b,c}.{txt,md}", "`b.md`, `c.txt`, `c.md`"),
        ("{d,d/e}/{a,c}.bak", "`d/c.bak`, `d/e/a.bak`"),
        ("d/{e,f}/", "`d/f/`"),
        ("./{b.txt,d}", "`./d`"),
    ],
)
async def test_a_name_in_braces_that_is_missing_is_told_before_the_others_go(
    here: Ground, glob: str, missing: str
) -> None:
    before = left(here)
    failed, said = await call(here.root, "delete_file", paths=[glob], recursive=True)
    assert failed and said.startswith(f"Nothing fits {missing} of `{glob}`; nothing was done."), said
    failed, said = await call(here.root, "move_file", targets={glob: "new/"})
    assert failed and f"Nothing fits {missing}" in said, said
    assert left(here) == before


async def test_a_wildcard_in_braces_that_nothing_fits_is_told(here: Ground) -> None:
    _, said = await call(here.root, "copy_file", targets={"d/*.{bak,old,{log,tmp}}": "new/"})
    assert said.endswith(", nothing fits: d/*.old, d/*.log, d/*.tmp"), said
    _, said = await call(here.root, "read_files", paths=["{b,c}.txt", "*.{bak,.bak}"])
    assert "{b,c}.txt: failed: nothing fits: c.txt." in said and "nothing fits: *..bak" in said, said
    failed, said = await call(here.root, "delete_file", paths=["./{" + "x," * 200 + "x}"])
    assert failed and "has more than 200 choices" in said, said


async def test_a_name_with_braces_that_is_there_is_that_one(here: Ground) -> None:
    (here.root / "{a,b}.txt").write_text("")
    failed, said = await call(here.root, "delete_file", paths=["{a,b}.txt"])
    assert not failed and (here.root / "b.txt").exists() and not (here.root / "{a,b}.txt").exists(), said


async def test_what_fits_and_is_hidden_or_ignored_is_told(here: Ground) -> None:
    (here.root / ".ignore").write_text("built\n/d/a.bak\n")
    failed, said = await call(here.root, "delete_file", paths=["**/*.bak"])
    assert not failed and "[deleted 2; left out, as git-ignored: d/a.bak; left in d/e: g.txt]" in said, said


async def test_what_another_pattern_takes_is_not_left_out(here: Ground) -> None:
    (here.root / ".h.bak").write_text("")
    failed, said = await call(here.root, "copy_file", targets={"./*.bak": "n/", ".h.bak": "n/", "d/*.bak": "m/"})
    assert not failed and "left out" not in said, said
    failed, said = await call(here.root, "delete_file", paths=["./*.bak", "d/**/*.bak", "./.*.bak"])
    assert not failed and "left out" not in said and "[deleted 4; " in said, said
    (here.root / "d/.x").mkdir()
    (here.root / "d/.x/y.txt").write_text("")
    failed, said = await call(here.root, "delete_file", paths=["d/**/*.txt", "d/.x"], recursive=True)
    assert not failed and "left out" not in said, said


async def test_what_is_hidden_and_protected_is_called_protected(here: Ground) -> None:
    (here.root / "d/.env").write_text("key")
    (here.root / "d/.hid").write_text("a.bak")
    _, said = await call(here.root, "copy_file", targets={"d/*": "n/"})
    assert said.endswith("protected: d/.env, left out, as hidden: d/.hid"), said
    _, said = await call(here.root, "replace_text", glob="d/**", replacements={"a.bak": "x"})
    assert "left out 1 hidden" in said and "left out 1 protected" in said, said
    _, said = await call(here.root, "search_text", pattern="none", path="d")
    assert "left out 1 hidden (d/.hid); set include_hidden; left out 1 protected (d/.env)" in said, said


async def test_what_fits_in_another_case_only_is_told_or_meant(here: Ground) -> None:
    for name in ("d/IMG.JPG", "d/img2.jpg", "d/.h.Jpg"):
        (here.root / name).write_text(name)
    _, said = await call(here.root, "copy_file", targets={"d/*.jpg": "n/"})
    assert "left out, in another case: d/IMG.JPG" in said, said
    failed, said = await call(here.root, "delete_file", paths=["d/*.JPg"])
    assert failed and "left out, in another case: d/IMG.JPG, d/img2.jpg" in said, said
    failed, said = await call(here.root, "move_file", targets={"d/*.{jpg,jpeg}": "m/"}, ignore_case=True)
    assert not failed and "left out, as hidden: d/.h.Jpg" in said and "nothing fits: d/*.jpeg" in said, said
    assert {"m/IMG.JPG", "m/img2.jpg"} <= left(here)


@pytest.mark.parametrize("tool", ["move_file", "copy_file"])
async def test_what_exists_is_left_out_on_request(here: Ground, tool: str) -> None:
    (here.root / "n").mkdir()
    (here.root / "n/a.bak").write_text("old")
    failed, said = await call(here.root, tool, targets={"./*.bak": "n/"})
    assert failed and "`skip_existing`" in said, said
    targets = {"./a.bak": "n/", "b.txt": "n/", "d/e/": "n/"}
    failed, said = await call(here.root, tool, targets=targets, skip_existing=True)
    assert not failed and "skipped 1 that exist: n/a.bak" in said, said
    assert (here.root / "n/a.bak").read_text() == "old" and (here.root / "a.bak").exists()
    assert (here.root / "n/e/c.bak").exists() and (here.root / "n/b.txt").exists()
    failed, said = await call(here.root, tool, targets={"./a.bak": "n/"}, skip_existing=True)
    assert not failed and said == "[nothing to do; skipped 1 that exist: n/a.bak]", said
    _, steps = await call(here.root, "undo_changes")
    assert steps.startswith("[1 step"), steps
    failed, said = await call(here.root, tool, targets=targets, skip_existing=True, overwrite=True)
    assert failed and "can't be used together" in said, said


async def test_a_glob_of_archives_is_refused_where_one_file_is_named(here: Ground) -> None:
    await call(here.root, "copy_file", targets={"b.txt": "z.zip!/"})
    for tool, arguments in (
        ("read_files", {"paths": ["*.zip!/b.txt"]}),
        ("copy_file", {"targets": {"*.zip!/*": "n/"}}),
    ):
        _, said = await call(here.root, tool, **arguments)
        assert "has a glob before `!/`, where one file is named. `find_files` lists what is in archives" in said, said
    (here.root / "y.zip!").mkdir()
    (here.root / "y.zip!/c.txt").write_text("c")
    _, said = await call(here.root, "read_files", paths=["*.zip!/c.txt"])
    assert said.startswith("=== y.zip!/c.txt ["), said


async def test_a_glob_in_an_archive_is_refused_where_it_would_be_unpacked(here: Ground) -> None:
    await call(here.root, "copy_file", targets={"b.txt": "z.zip!/"})
    failed, said = await call(here.root, "copy_file", targets={"z.zip!/*.txt": "n/"})
    assert failed and "`z.zip!/*.txt` goes into an archive, where only names are taken" in said, said


async def test_folders_are_told_as_they_are_after_globs(here: Ground) -> None:
    _, said = await call(here.root, "move_file", targets={"d/e/*.bak": "n/"})
    assert said.endswith(", new folder n, left in d/e: g.txt"), said
    _, said = await call(here.root, "move_file", targets={"d/e/*.txt": "n/"})
    assert said.endswith(", n has 2 entries now, d/e is empty now"), said
    for number in range(7):
        (here.root / f"d/e/{number}.x").write_text("")
    _, said = await call(here.root, "delete_file", paths=["d/e/0.*"])
    assert said == "deleted d/e/0.x, left in d/e: 6 entries"


@pytest.mark.parametrize("more", [{}, {"root/a.bak": "root/x"}])
async def test_nothing_takes_the_name_of_a_served_folder_that_is_gone(here: Ground, more: dict[str, str]) -> None:
    (here.root / "gone").mkdir()
    async with Client(build(load(Settings, [str(here.root), str(here.root / "gone")]))) as client:
        (here.root / "gone").rmdir()
        result = await client.call_tool("move_file", {"targets": {**more, "root/b.txt": "root/gone"}})
    assert result.is_error and "holds the served folder" in str(result.content), result.content
    assert (here.root / "b.txt").exists() and (here.root / "a.bak").exists()


async def test_of_served_folders_one_in_another_each_file_is_one(here: Ground) -> None:
    for paths in (["root/d/a.bak", "d/a.bak"], ["root/d/e", "d/e/c.bak", "d/e"]):
        async with Client(build(load(Settings, [str(here.root), str(here.root / "d")]))) as client:
            result = await client.call_tool("delete_file", {"paths": paths, "recursive": True})
        assert not result.is_error, result.content
    assert not {path for path in left(here) if path.startswith("d/")}
    for step in (await call(here.root, "undo_changes"))[1].splitlines()[1:]:
        failed, said = await call(here.root, "undo_changes", step=step.split("\t")[0], dry_run=False)
        assert not failed, said
    assert {"d/a.bak", "d/e/c.bak", "d/e/g.txt"} <= left(here)


@pytest.mark.parametrize("mode", ["2025-11-25", MODERN])
async def test_the_user_is_asked_about_what_globs_mean_and_that_is_what_goes(here: Ground, mode: str) -> None:
    asked: list[str] = []

    async def answer(context: Any, params: ElicitRequestParams) -> ElicitResult:
        asked.append(params.message)
        if len(asked) == 1:
            (here.root / "later.bak").touch()
        return ElicitResult(action="accept", content={"confirm": True})

    server = build(load(Settings, [str(here.root), "--confirm"]))
    async with Client(server, mode="auto" if mode == MODERN else "legacy", elicitation_callback=answer) as client:
        result = await client.call_tool("delete_file", {"paths": ["./*.bak", "d/**/*.bak"]})
    assert not result.is_error, result.content
    assert "It removes 3: `a.bak`, `d/a.bak`, `d/e/c.bak`." in asked[0]
    if mode == MODERN:  # the call is sent again, and is another one by then
        assert "It removes 4: `a.bak`, `later.bak`, " in asked[1]
    assert ("later.bak" in left(here)) is (mode != MODERN)


# What mv(1) and cp(1) do with a source and a target: the target ends in a slash, or several are meant.
INTO_FOLDERS = [
    ({"b.txt": "d/"}, {"d/b.txt"}, " b.txt to d/b.txt"),
    ({"b.txt": "new/"}, {"new/b.txt"}, " b.txt to new/b.txt, new folder new"),
    ({"d/e/g.txt": "./"}, {"g.txt"}, " d/e/g.txt to g.txt"),
    ({"d/e": "new/"}, {"new/e/c.bak", "new/e/g.txt"}, " d/e to new/e, new folder new"),
    ({"d/e/": "new/"}, {"new/c.bak", "new/g.txt"}, " d/e to new"),
    ({"d/e/": "built/"}, {"built/e/c.bak", "built/e/g.txt"}, " d/e to built/e"),
    ({"./*.bak": "d/e"}, {"d/e/a.bak"}, " a.bak to d/e/a.bak"),
    ({"d/**/*.bak": "new/"}, {"new/a.bak", "new/c.bak"}, " 2; new folder new|]\nd/a.bak\nd/e/c.bak"),
    (
        {"d/*/": "new/", "b.txt": "new/"},
        {"new/e/c.bak", "new/e/g.txt", "new/b.txt"},
        " 2; new folder new|]\nd/e\nb.txt",
    ),
]


@pytest.mark.share(9)
@pytest.mark.parametrize("tool", ["move_file", "copy_file"])
@pytest.mark.parametrize(("targets", "new", "answer"), INTO_FOLDERS)
async def test_a_target_that_ends_in_a_slash_is_a_folder(
    here: Ground, tool: str, targets: dict[str, str], new: set[str], answer: str
) -> None:
    before = left(here)
    failed, said = await call(here.root, tool, targets=targets)
    assert not failed and all(text in said for text in answer.split("|")) and left(here) - before == new, said
    _, steps = await call(here.root, "undo_changes")
    failed, said = await call(here.root, "undo_changes", step=steps.splitlines()[1].split("\t")[0], dry_run=False)
    assert not failed and left(here) == before and not (here.root / "new").exists(), said


NOWHERE = ", which leads nowhere from there"
LINKS = [
    # A link, where it leads, what is told of a copy of it in another folder, and of a move there.
    ("to_file", "b.txt", ", contents of what it links to, b.txt", f", a link to `b.txt`{NOWHERE}"),
    ("d/up", "../b.txt", ", contents of what it links to, b.txt", ", a link to `../b.txt`"),
    ("to_folder", "d", f", a link to `d`{NOWHERE}", f", a link to `d`{NOWHERE}"),
    ("to_nowhere", "none", ", a link to `none`", ", a link to `none`"),
    ("to_outside", "/etc/hostname", ", a link to `/etc/hostname`", ", a link to `/etc/hostname`"),
    ("to_secret", ".env", ", a link to `.env`", ", a link to `.env`"),
]


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
@pytest.mark.parametrize("tool", ["move_file", "copy_file"])
@pytest.mark.parametrize(("link", "text", "copied", "moved"), LINKS)
async def test_a_link_is_told_to_be_one(here: Ground, tool: str, link: str, text: str, copied: str, moved: str) -> None:
    (here.root / ".env").write_text("SECRET=1")
    (here.root / link).symlink_to(text)
    failed, said = await call(here.root, tool, source=link, target="built/x")
    target = here.root / "built/x"
    verb, note = {"copy_file": ("copied", copied), "move_file": ("moved", moved)}[tool]
    assert not failed and said == f"{verb} {link} to built/x{note}"
    if "contents" in note:
        assert not target.is_symlink() and target.read_text() == "b.txt"
    else:
        assert str(target.readlink()) == text


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
async def test_of_many_that_a_glob_means_a_few_are_named_and_all_with_a_remark(here: Ground) -> None:
    for number in range(12):
        (here.root / f"m{number:02}").touch()
    (here.root / "m99").symlink_to("none")
    _, said = await call(here.root, "move_file", targets={"./m*": "new/"})
    head, *lines = said.splitlines()
    assert head.startswith("[moved 13")
    assert lines == ["m99, a link to `none`", "m00", "m01", "m02", "m03", "m04", "and 7 more: 7 at the top"]


async def test_a_name_glob_means_the_same_in_every_tool(here: Ground) -> None:
    for glob, expected in (("*.bak", ["a.bak", "d/a.bak", "d/e/c.bak"]), ("./*.bak", ["a.bak"])):
        _, found = await call(here.root, "find_files", glob=glob)
        _, read = await call(here.root, "read_files", paths=[glob])
        assert sorted(found.splitlines()[1:]) == expected
        assert sorted(line.split()[1] for line in read.splitlines() if line.startswith("===")) == expected


@pytest.mark.parametrize("tool", ["move_file", "copy_file"])
async def test_the_user_is_asked_about_each_pair(here: Ground, tool: str) -> None:
    asked: list[str] = []

    async def answer(context: Any, params: ElicitRequestParams) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="decline")

    server = build(load(Settings, [str(here.root), "--confirm"]))
    async with Client(server, elicitation_callback=answer) as client:
        several = {"targets": {"b.txt": "x.txt", "a.bak": "y\u202e.bak"}}
        for arguments in (several, {"source": "b.txt", "target": "x.txt"}):
            result = await client.call_tool(tool, arguments)
            assert result.is_error
        result = await client.call_tool(tool, {"targets": {"b.txt": "a.bak"}, "skip_existing": True})
        assert not result.is_error and len(asked) == 2
    assert "It puts `b.txt` to `x.txt`, `a.bak` to `y\\u{202e}.bak`." in asked[0]
    assert "It puts `b.txt` to `x.txt`." in asked[1] and "can replace" not in asked[1]


async def test_what_is_gone_on_the_way_to_the_trash_is_told(here: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    def trashed(_: object, place: ReadablePath) -> None:
        if place.name == "b.txt":
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))

    monkeypatch.setattr(deleting, "_move_to_trash", trashed)
    places = [here.writable("a.bak"), here.writable("b.txt")]
    with pytest.raises(Unavailable, match=r"1 of 2 were moved to the trash: `a\.bak`. The next was not: `b\.txt` does"):
        deleting.delete_all(places, recursive=False, trash=True, cancel=stop())


@pytest.mark.skipif(sys.platform == "win32", reason="has no such names")
async def test_a_name_with_a_star_that_is_there_is_itself(here: Ground) -> None:
    (here.root / "d/*.bak").touch()
    await call(here.root, "delete_file", paths=["d/*.bak"])
    assert {"d/a.bak"} <= left(here) and "d/*.bak" not in left(here)
    # Also a link that leads nowhere, or where nobody is let.
    for target in ("none", here.outside):
        (here.root / "d/*.bak").symlink_to(target)
        await call(here.root, "delete_file", paths=["d/*.bak"])
        assert {"d/a.bak"} <= left(here) and not (here.root / "d/*.bak").is_symlink()


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
    def remove(folder: Folder[Any], name: str, stop: CancelToken) -> None:
        if name == "b.txt":
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        temp_files.remove_all(folder, name, stop)

    monkeypatch.setattr(moving, "remove_all", remove)
    places = [here.writable(path) for path in ("a.bak", "b.txt", "d")]
    with pytest.raises(Unavailable, match=r"1 of 3 were deleted: `a.bak`. The next was not: `b.txt`"):
        deleting.delete_all(places, recursive=True, trash=False, cancel=stop())
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
            folders.create_folder(here.writable(target).parent, stop())
        for tool, arguments in (("move_file", {"source": "b.txt"}), ("copy_file", {"source": "b.txt"})):
            assert (await call(here.root, tool, **arguments, target=target))[0]
    assert os.listdir(here.outside) == ["secret.txt"] and "b.txt" in left(here)


MOVED = {"b.txt": "n/b.txt", "d/e": "n/e", "a.bak": "d/a.bak"}


@pytest.mark.parametrize(("tool", "did"), [("move_file", "moved"), ("copy_file", "copied")])
async def test_several_are_put_elsewhere_and_taken_back_together(here: Ground, tool: str, did: str) -> None:
    before = {path: (here.root / path).read_text() for path in left(here)}
    failed, said = await call(here.root, tool, targets=MOVED, overwrite=True)
    assert not failed and said == f"[{did} 3; new folder n]", said
    assert (here.root / "d/a.bak").read_text() == "a.bak"
    new = {"n/b.txt", "n/e/c.bak", "n/e/g.txt"}
    assert left(here) == {*before, *new} - ({"b.txt", "a.bak", "d/e/c.bak", "d/e/g.txt"} if did == "moved" else set())
    await call(here.root, "write_file", path="later", content="later")
    for times, undone in enumerate((tool, f"undo of {tool}")):
        _, steps = await call(here.root, "undo_changes")
        lines = [line.split("\t") for line in steps.splitlines()[1:]]
        assert [line[2] for line in lines] == ["write_file", tool] if not times else lines[0][2] == undone, steps
        (step,) = [line[0] for line in lines if line[2] == undone]
        assert steps.startswith("[2 steps")
        failed, said = await call(here.root, "undo_changes", step=step, dry_run=False)
        assert not failed, said
        if not times:
            assert {path: (here.root / path).read_text() for path in left(here) - {"later"}} == before
            assert not (here.root / "n").exists()
    assert new <= left(here) and (here.root / "d/a.bak").read_text() == "a.bak"


@pytest.mark.parametrize(
    ("targets", "why"),
    [
        ({"b.txt": "x", "none": "y"}, "`none` does not exist; nothing was done."),
        ({"b.txt": "x", "a.bak": "d/a.bak"}, "`d/a.bak` exists already; nothing was done. Set `overwrite`"),
        ({"b.txt": "x", "a.bak": "d"}, "`d` is a folder that exists already"),
        ({"b.txt": "x", "a.bak": "../outside/x"}, "outside the served folders"),
        ({"b.txt": "x", "../outside/secret.txt": "y"}, "outside the served folders"),
        ({"b.txt": "x", "a.bak": "./d/../x"}, "`b.txt` and `a.bak` would both be `x`; nothing was done"),
        ({"**/*.bak": "x/"}, "`a.bak` and `d/a.bak` would both be `x/a.bak`; nothing was done. Give each a target"),
        ({"*.bak": "x/"}, "`*.bak` is a name at any depth, such as `d/a.bak`; nothing was done. Write `./*.bak`"),
        ({"./*.bak": "x"}, "`./*.bak` can mean several, and `x` is no folder; nothing was done. Write `x/`"),
        ({"./*.none": "x/"}, "means no file"),
        ({"d/*.bak": "d/"}, "There is nothing to do: 1 entry of d already there"),
        ({"b.txt": "a.bak/"}, "`a.bak` is a file"),
        ({"b.txt": "../outside/"}, "outside the served folders"),
        ({"b.txt": "x", "./b.txt": "y"}, "is named twice"),
        ({"b.txt": "x", "x": "y"}, ""),
        ({"b.txt": "x", "a.bak": "d/e/../../b.txt"}, "is named twice"),
        ({"d": "x", "d/e": "y"}, "`d/e` lies in `d`"),
        ({"d/e": "x", "b.txt": "x/b.txt"}, "`x`"),
        ({"b.txt": "x", "a.bak": "CON:/y " if os.sep == "\\" else "y/\0"}, ""),
        ({}, "Name 1 to "),
        ({"b.txt": 4}, "`targets"),
        (["b.txt"], "`targets"),
    ],
)
async def test_what_can_not_be_put_is_found_before_anything_is(here: Ground, targets: Any, why: str) -> None:
    before = {*here.root.rglob("*")}
    for tool in ("move_file", "copy_file"):
        failed, said = await call(here.root, tool, targets=targets)
        assert failed and why in said, said
        assert {*here.root.rglob("*")} == before


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX links")
async def test_nothing_is_put_through_a_link_that_leads_outside(here: Ground) -> None:
    (here.root / "away").symlink_to(here.outside)
    for targets in ({"b.txt": "x", "a.bak": "away/a.bak"}, {"b.txt": "x", "away/secret.txt": "y"}):
        for tool in ("move_file", "copy_file"):
            failed, said = await call(here.root, tool, targets=targets)
            assert failed and "leads outside" in said, said
    assert not (here.root / "x").exists() and os.listdir(here.outside) == ["secret.txt"]


async def test_moves_to_free_names_happen_all_or_none(here: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    real = renames.Rename.apply
    before = left(here)

    def apply(rename: renames.Rename, content_path: WritablePath | None = None) -> None:
        if rename.resolved_source.name == "a.bak":
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        real(rename, content_path)

    with monkeypatch.context() as patched:
        patched.setattr(renames.Rename, "apply", apply)
        failed, said = await call(here.root, "move_file", targets={"b.txt": "n/x", "a.bak": "n/y", "d/e": "z"})
    assert failed and said == "`n/y` failed: Device or resource busy; nothing was moved.", said
    assert left(here) == before and not (here.root / "n").exists()
    assert (await call(here.root, "undo_changes"))[1].count("move_file") == 0


async def test_a_folder_is_written_to_the_disk_once_for_many_moves(
    here: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        (here.root / "d" / f"{number}.log").touch()
    synced: list[tuple[str, ...]] = []
    real = Folder.sync
    monkeypatch.setattr(Folder, "sync", lambda folder: synced.append(folder.path.parts) or real(folder))
    failed, said = await call(here.root, "move_file", targets={"d/*.log": "d/e/"})
    assert not failed and said.startswith("[moved 20"), said
    assert len(synced) <= 4, synced


async def test_of_moves_that_replace_the_one_that_fails_and_those_before_it_are_named(
    here: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = renames.Rename.apply

    def apply(rename: renames.Rename, content_path: WritablePath | None = None) -> None:
        if rename.resolved_source.name == "a.bak":
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        real(rename, content_path)

    with monkeypatch.context() as patched:
        patched.setattr(renames.Rename, "apply", apply)
        targets = {"b.txt": "n/x", "a.bak": "n/y", "d/e/c.bak": "d/a.bak"}
        failed, said = await call(here.root, "move_file", targets=targets, overwrite=True)
    assert failed and "1 of 3 were moved: `b.txt`. The next was not: `" in said, said
    assert "nothing was" not in said, said
    assert {"n/x", "a.bak", "d/a.bak", "d/e/c.bak"} <= left(here)
    _, steps = await call(here.root, "undo_changes")
    failed, said = await call(here.root, "undo_changes", step=steps.splitlines()[1].split("\t")[0], dry_run=False)
    assert not failed and "b.txt" in left(here) and not (here.root / "n").exists(), said


async def test_what_the_disk_does_not_confirm_is_done_and_so_are_the_others(
    here: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    def confirm(folder: Folder[Any], shown: ReadablePath, did: str) -> None:
        if shown.display == "n/b.txt":
            raise operations.NotDurable(f"`{shown.display}` was {did}, but the disk does not confirm it: EIO.")

    with monkeypatch.context() as patched:
        patched.setattr(operations, "fsync_folder", confirm)
        failed, said = await call(here.root, "move_file", targets=MOVED, overwrite=True)
    assert failed and said.startswith("All 3 were moved. `n/b.txt` was moved to, but the disk does not confirm"), said
    assert {"n/b.txt", "n/e/c.bak", "d/a.bak"} <= left(here)
    _, steps = await call(here.root, "undo_changes")
    failed, said = await call(here.root, "undo_changes", step=steps.splitlines()[1].split("\t")[0], dry_run=False)
    assert not failed and "b.txt" in left(here) and not (here.root / "n").exists(), said


ORIGIN = CallOrigin("move_file", "")


def old_contents(here: Ground, most_bytes: int) -> JournalStore:
    return JournalStore(str(here.root.with_name("undo")), most_bytes=most_bytes, days=1)


async def test_too_much_that_is_replaced_is_not_kept_and_told_once(here: Ground) -> None:
    pairs = [(here.writable("a.bak"), here.writable("d/a.bak")), (here.writable("b.txt"), here.writable("d/e/g.txt"))]
    store = old_contents(here, 9)
    with JournalEntry(store, ORIGIN, stop()) as step:
        move_pairs(pairs, overwrite=True, cancel=stop(), journal_entry=step)
    assert step.notes == ["undo_changes can't take this back: 16 bytes are more than the operator lets it keep"]
    assert not store.list_entries()


async def test_a_step_is_taken_back_whole_or_not_at_all(here: Ground) -> None:
    before, policy = left(here), here.policy
    pairs = [(here.writable("a.bak"), here.writable("d/a.bak")), (here.writable("b.txt"), here.writable("d/e/g.txt"))]
    store = old_contents(here, 1000)
    with JournalEntry(store, ORIGIN, stop()) as step:
        move_pairs(pairs, overwrite=True, cancel=stop(), journal_entry=step)
    (kept,) = store.list_entries()
    assert kept.size == 16 and len(store.read_entry(kept).changes) == 2
    record = here.root.with_name("undo") / kept.name
    whole = record.read_bytes()
    record.write_bytes(whole.replace(b"{", b"[", 1))
    with pytest.raises(NotFound):
        undo_entries(policy, store, ORIGIN, kept.id, later=False, dry_run=False, cancel=stop())
    assert list_undoable_entries(policy, store, ORIGIN.caller, stop()).unreadable_count == 1
    # Of what was being written down when the process was killed, nothing had happened yet.
    record.write_bytes(whole + whole[:40])
    undo_entries(policy, store, ORIGIN, kept.id, later=False, dry_run=False, cancel=stop())
    assert left(here) == before


async def test_an_empty_target_of_several_is_not_the_top_of_the_disk(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
    async with Client(server.build(Settings(folders=(str(tmp_path),)))) as client:
        result = await client.call_tool("copy_file", {"sources": ["a", "b"], "target": ""})
    assert result.is_error and "would both be `.`" in str(result.content)
