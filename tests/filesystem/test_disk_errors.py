"""What a disk, or the network behind it, fails to give is told as that: not as less, not as gone, not as a defect."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from filesystem.places import Ground, ground
from filesystem.test_findings import call, serving
from filesystem.test_list_changes import Following
from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_fs.engine.handles import flushing
from mcp_fs.engine.handles.path_opening import Folder, open_descriptor
from mcp_fs.engine.search import grep
from mcp_fs.engine.search.query import Query
from mcp_fs.engine.search.text_search import search_text
from mcp_fs.models import Matches
from mcp_fs.server import build
from mcp_fs.settings import Settings

pytestmark = pytest.mark.anyio
linux = pytest.mark.skipif(sys.platform != "linux", reason="has no /proc")

# Of a process's memory nothing is at its beginning, which the kernel tells as it tells of a damaged disk.
UNREADABLE = "self/mem"


def serving_memory(folder: Path) -> Client:
    return Client(build(Settings(folders=("/proc/self", str(folder)))))


@linux
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read_text", {"path": UNREADABLE}),
        ("read_text", {"path": UNREADABLE, "tail": 3}),
        ("read_media", {"path": UNREADABLE}),
        ("read_diff", {"source": UNREADABLE, "target": "served/a"}),
        ("copy_file", {"targets": {f"{UNREADABLE}:1-2": "served/b"}}),
        ("copy_file", {"targets": {UNREADABLE: "served/b.zip!/"}}),
        ("edit_files", {"patch": UNREADABLE}),
        ("edit_file", {"path": UNREADABLE, "edits": [{"old_text": "a", "new_text": "b"}]}),
    ],
)
async def test_a_file_that_the_disk_does_not_give_is_named(
    tool: str, arguments: dict[str, Any], tmp_path: Path
) -> None:
    served = tmp_path / "served"
    served.mkdir()
    (served / "a").write_text("one\n", "utf-8")
    async with serving_memory(served) as client:
        failed, said = await call(client, tool, **arguments)
    assert failed and "`self/mem` failed: Input/output error" in said, said
    assert [item.name for item in served.iterdir()] == ["a"]


@linux
async def test_one_such_file_does_not_stop_the_others(tmp_path: Path) -> None:
    async with serving_memory(tmp_path) as client:
        _, said = await call(client, "read_files", paths=[UNREADABLE, "self/comm"])
        assert said.count("===") == 2 and "Input/output error" in said
        _, said = await call(client, "search_text", pattern=".", path=UNREADABLE)
        assert "input/output error: self/mem" in said
        _, said = await call(client, "get_info", path=UNREADABLE)
        assert '"unreadable":"`self/mem` failed: Input/output error."' in said
        _, said = await call(
            client, "replace_text", replacements={"never there": "x"}, glob="/mem", path="self", dry_run=True
        )
        assert "input/output error: self/mem" in said


@pytest.fixture
def here(tmp_path: Path) -> Ground:
    return ground(tmp_path)


@linux
def test_a_short_read_is_not_the_end(here: Ground) -> None:
    assert sys.platform == "linux"
    reading, writing = os.pipe2(os.O_DIRECT)  # which gives a packet a read
    for packet in (b"one ", b"two ", b"three"):
        os.write(writing, packet)
    with open_descriptor(reading, here.readable("pipe")) as file:
        assert file.read(10) == b"one two three"[:10]
        os.close(writing)
        assert file.read(10) == b""


def test_a_search_reads_on_behind_a_short_read(here: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    (here.root / "long.txt").write_text("x" * 100 + "\nfound\n")
    read = os.read

    def read_few(fd: int, size: int) -> bytes:
        return read(fd, min(size, 7))

    monkeypatch.setattr(grep.os, "read", read_few)
    assert find_matches(here, "found") == ["found"]


def find_matches(here: Ground, text: str) -> list[str]:
    page = search_text([here.readable(".")], Query(text), None, CancelToken(), None)
    assert isinstance(page, Matches)
    return [line.text for line in page.files[0].lines]


class Unreadable:
    """An entry of a folder whose kind the disk doesn't give."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.path = name

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    is_dir = is_symlink = is_file
    stat = is_file


@pytest.fixture
def break_folder(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, bool], None]:
    """Let the listing of folders of a name fail: all of it, or the kind of one more entry."""
    list_entries = Folder.list_entries
    broken: dict[str, bool] = {}

    def failing(folder: Folder[Any]) -> list[Any]:
        is_whole = broken.get(folder.path.name)
        if is_whole:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        entries: list[Any] = list(list_entries(folder))
        if is_whole is False:
            entries.append(Unreadable("odd.txt"))
        return entries

    def set_broken(name: str, is_whole: bool) -> None:
        broken[name] = is_whole

    monkeypatch.setattr(Folder, "list_entries", failing)
    return set_broken


WALKING: list[tuple[str, dict[str, Any]]] = [
    ("list_tree", {"path": "sub"}),
    ("find_files", {"glob": "*.txt", "path": "sub"}),
    ("search_text", {"pattern": "one", "path": "sub"}),
    ("replace_text", {"replacements": {"one": "two"}, "glob": "*.txt", "path": "sub", "dry_run": True}),
    ("read_diff", {"source": "sub", "target": "other"}),
]


@pytest.mark.parametrize(("tool", "arguments"), WALKING)
async def test_a_folder_that_the_disk_does_not_give_is_named(
    tool: str, arguments: dict[str, Any], tmp_path: Path, break_folder: Callable[[str, bool], None]
) -> None:
    for name in ("sub", "other"):
        (tmp_path / name).mkdir()
    break_folder("sub", True)
    async with serving(tmp_path) as client:
        failed, said = await call(client, tool, **arguments)
    assert failed and "`sub` failed: Input/output error." in said


@pytest.mark.parametrize(("tool", "arguments"), WALKING)
async def test_one_entry_that_the_disk_does_not_give_hides_no_other(
    tool: str, arguments: dict[str, Any], tmp_path: Path, break_folder: Callable[[str, bool], None]
) -> None:
    for name in ("sub", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text("one\n", "utf-8")
    break_folder("sub", False)
    async with serving(tmp_path) as client:
        failed, said = await call(client, tool, **arguments)
    assert not failed, said
    # A search opens it, and hears that it is not there.
    assert "odd.txt" in said or tool == "search_text"
    assert "a.txt" in said or tool == "read_diff"


async def test_what_can_not_be_looked_at_is_not_called_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("one\n", "utf-8")
    status = Folder.stat

    def failing(folder: Folder[Any], name: str) -> os.stat_result:
        if name == "a.txt":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return status(folder, name)

    monkeypatch.setattr(Folder, "stat", failing)
    async with serving(tmp_path) as client:
        failed, said = await call(client, "list_directory")
    assert not failed and "a.txt\tcan't be looked at: input/output error" in said


async def test_what_can_not_be_read_now_is_not_told_as_deleted(
    tmp_path: Path, break_folder: Callable[[str, bool], None]
) -> None:
    for name in ("sub/deep", "other"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "a.txt").write_text("one\n", "utf-8")
    async with serving(tmp_path) as client:
        following = Following(client)
        await following.begin()
        break_folder("sub", True)
        (tmp_path / "other/b.txt").write_text("two\n", "utf-8")
        assert await following.changes() == {("created", "other/b.txt")}
        (tmp_path / "other/b.txt").unlink()
        assert await following.changes() == {("deleted", "other/b.txt")}
        break_folder("sub", False)
        assert not {name for _, name in await following.changes()} & {"sub/deep/a.txt"}


async def test_what_can_not_be_followed_is_told_with_its_reason_and_stops_nothing(
    tmp_path: Path, break_folder: Callable[[str, bool], None]
) -> None:
    for name in ("sub", "other"):
        (tmp_path / name).mkdir()
    break_folder("sub", True)
    async with serving(tmp_path) as client:
        failed, said = await call(client, "list_changes", uris=["sub"])
        assert failed and "cannot be watched now: `sub` failed: Input/output error." in said
        following = Following(client)
        await following.begin("other")
        (tmp_path / "other/a.txt").write_text("one\n", "utf-8")
        assert await following.changes() == {("created", "other/a.txt")}


class Disk:
    """What takes the place of the C library's syncfs(2)."""

    def __init__(self) -> None:
        self.sync_count = 0
        self.is_damaged = False

    def syncfs(self, fd: int) -> int:
        assert stat.S_ISDIR(os.fstat(fd).st_mode)
        self.sync_count += 1
        if not self.is_damaged:
            return 0
        ctypes.set_errno(errno.EIO)
        return -1


@linux
async def test_many_files_are_made_durable_together_or_are_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk()
    monkeypatch.setattr(flushing, "_libc", disk)
    monkeypatch.setattr(flushing, "_MAX_FLUSHED_ENTRIES", 4)
    for number in range(3):
        (tmp_path / f"few/{number}").parent.mkdir(exist_ok=True)
        (tmp_path / f"few/{number}").write_text("x", "utf-8")
    async with serving(tmp_path) as client:
        assert not (await call(client, "copy_file", source="few", target="copy"))[0]
        assert not disk.sync_count
        (tmp_path / "few/sub").mkdir()
        assert not (await call(client, "copy_file", source="few", target="many"))[0]
        assert disk.sync_count == 1
        assert not (await call(client, "copy_file", source="few", target="a.zip!/"))[0]
        assert not (await call(client, "copy_file", source="a.zip!/", target="unpacked"))[0]
        assert disk.sync_count == 2
        disk.is_damaged = True
        for source, target in (("few", "failed"), ("a.zip!/", "failed")):
            failed, said = await call(client, "copy_file", source=source, target=target)
            assert failed and "Input/output error" in said, said
    assert {item.name for item in tmp_path.iterdir()} == {"few", "copy", "many", "a.zip", "unpacked"}
