"""What happens to real files, as `FileWatcher` tells it."""

import contextlib
import os
import random
import shutil
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Collection, Hashable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.request import url2pathname

import anyio
import pytest

from mcp_batteries.errors import Refused
from mcp_batteries.subscriptions import file_watcher, kernel_watch
from mcp_batteries.subscriptions.file_watcher import FileWatcher
from mcp_batteries.subscriptions.watch_paths import WatchPath, fold
from mcp_batteries.testing.wire.base import SECONDS

pytestmark = pytest.mark.anyio


def probe(path: str) -> Hashable | None:
    found = os.stat(path)
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_mode


class Heard:
    """What a watcher told, in order, and a way to wait for it."""

    def __init__(self, watcher: FileWatcher) -> None:
        self.watcher = watcher
        self.keys: list[Hashable] = []
        self.news = anyio.Event()

    def changed(self, keys: Collection[Hashable]) -> None:
        self.keys.extend(keys)
        self.news.set()
        self.news = anyio.Event()

    async def about(self, path: Path) -> None:
        """Wait until something is told about `path`, and forget what was told about it so far."""
        with anyio.fail_after(SECONDS):
            while str(path) not in self.keys:
                await self.news.wait()
        self.keys = [key for key in self.keys if key != str(path)]

    async def watch(self, *paths: Path) -> None:
        with anyio.fail_after(SECONDS):
            await self.watcher.add([str(path) for path in paths])

    def unwatch(self, *paths: Path) -> None:
        self.watcher.discard([str(path) for path in paths])


def locate(uri: str) -> str | None:
    if not uri.startswith("file://"):
        return None
    if ".." in uri:
        raise Refused("outside")
    return url2pathname(uri.removeprefix("file://"))


@asynccontextmanager
async def listening(
    root: Path, probe: Callable[[str], Hashable | None] = probe, **options: Any
) -> AsyncGenerator[Heard]:
    watcher = FileWatcher([str(root)], locate, probe, **options)
    heard = Heard(watcher)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watcher.run, heard.changed)
        yield heard
        tasks.cancel_scope.cancel()


async def test_a_modified_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("1")
    async with listening(tmp_path) as heard:
        await heard.watch(path)
        path.write_text("2")
        await heard.about(path)


async def test_only_what_changed_is_told(tmp_path: Path) -> None:
    path, neighbour = tmp_path / "a", tmp_path / "b"
    path.write_text("1")
    neighbour.write_text("1")
    async with listening(tmp_path) as heard:
        await heard.watch(path, neighbour)
        (tmp_path / "c").write_text("nobody's")
        neighbour.read_text()
        path.write_text("2")
        await heard.about(path)
        assert str(neighbour) not in heard.keys


async def replace(source: Path, target: Path) -> None:
    """As a program does on Windows, where a file that somebody looks at in that moment can't be replaced."""
    with anyio.fail_after(SECONDS):
        while True:
            try:
                return os.replace(source, target)
            except PermissionError:
                if sys.platform != "win32":
                    raise
                await anyio.sleep(0.01)


async def test_a_file_replaced_by_rename_again_and_again(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("0")
    async with listening(tmp_path) as heard:
        await heard.watch(path)
        for number in range(5):
            (tmp_path / "new").write_text(str(number))
            await replace(tmp_path / "new", path)
            await heard.about(path)


async def test_a_file_deleted_and_made_again(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("1")
    async with listening(tmp_path) as heard:
        await heard.watch(path)
        path.unlink()
        await heard.about(path)
        path.write_text("1")
        await heard.about(path)


async def test_a_folder_hears_of_its_children_not_of_their_contents(tmp_path: Path) -> None:
    folder, control = tmp_path / "folder", tmp_path / "control"
    folder.mkdir()
    control.write_text("")
    async with listening(tmp_path) as heard:
        await heard.watch(folder, control)
        child = folder / "child"
        child.write_text("1")
        await heard.about(folder)
        child.rename(folder / "renamed")
        await heard.about(folder)
        (folder / "renamed").write_text("longer")
        control.write_text("after")
        await heard.about(control)
        assert str(folder) not in heard.keys
        (folder / "renamed").unlink()
        await heard.about(folder)


async def test_a_file_below_a_moved_and_returned_parent(tmp_path: Path) -> None:
    parent = tmp_path / "one" / "two"
    parent.mkdir(parents=True)
    path = parent / "a"
    path.write_text("1")
    async with listening(tmp_path) as heard:
        await heard.watch(path)
        (tmp_path / "one").rename(tmp_path / "away")
        await heard.about(path)
        (tmp_path / "away" / "two" / "a").write_text("changed while away")
        (tmp_path / "away").rename(tmp_path / "one")
        await heard.about(path)
        path.write_text("changed after its return")
        await heard.about(path)


async def test_a_file_below_a_parent_replaced_by_another(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a").write_text(name)
    path = tmp_path / "one" / "a"
    async with listening(tmp_path) as heard:
        await heard.watch(path)
        (tmp_path / "one").rename(tmp_path / "old")
        (tmp_path / "other").rename(tmp_path / "one")
        await heard.about(path)
        for number in range(3):
            path.write_text(f"{number}")
            await heard.about(path)


async def test_a_file_that_comes_with_its_parents_much_later(tmp_path: Path) -> None:
    path = tmp_path / "one" / "two" / "three" / "a"
    async with listening(tmp_path) as heard:
        await heard.watch(path)
        path.parent.mkdir(parents=True)
        path.write_text("1")
        await heard.about(path)
        path.write_text("23")
        await heard.about(path)


async def test_a_parent_made_and_removed_many_times(tmp_path: Path) -> None:
    path = tmp_path / "one" / "two" / "a"
    async with listening(tmp_path) as heard:
        await heard.watch(path)
        for _ in range(5):
            path.parent.mkdir(parents=True)
            path.write_text("1")
            await heard.about(path)
            path.unlink()
            await heard.about(path)
            path.parent.rmdir()
            path.parent.parent.rmdir()


async def test_a_link_tells_of_its_target_and_of_being_turned(tmp_path: Path) -> None:
    first, second, link = tmp_path / "data" / "first", tmp_path / "data" / "second", tmp_path / "links" / "link"
    first.parent.mkdir()
    link.parent.mkdir()
    first.write_text("1")
    second.write_text("2")
    link.symlink_to(Path("..", "data", "first"))
    async with listening(tmp_path) as heard:
        await heard.watch(link)
        first.write_text("changed")
        await heard.about(link)
        (link.parent / "new").symlink_to(second)
        os.replace(link.parent / "new", link)
        await heard.about(link)
        second.write_text("changed")
        await heard.about(link)


async def test_a_file_through_a_linked_folder(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a").write_text("1")
    (tmp_path / "link").symlink_to("data")
    path = tmp_path / "link" / "a"
    async with listening(tmp_path) as heard:
        await heard.watch(path, tmp_path / "data" / "a")
        (tmp_path / "data" / "a").write_text("changed")
        await heard.about(path)
        await heard.about(tmp_path / "data" / "a")


@pytest.mark.parametrize("target", ["loop", "/", "missing", "../../../../.."])
async def test_a_link_to_nowhere_is_watched_as_far_as_it_goes(tmp_path: Path, target: str) -> None:
    root, path = tmp_path / "root", tmp_path / "root" / "loop"
    root.mkdir()
    path.symlink_to(target)
    async with listening(root, lambda path: os.lstat(path).st_ino) as heard:
        await heard.watch(path)
        path.unlink()
        await heard.about(path)


async def test_a_burst_is_told_with_its_last_write(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("")
    contents: list[str] = []

    def reading(path: str) -> Hashable | None:
        contents.append(Path(path).read_text())
        return probe(path), contents[-1]

    async with listening(tmp_path, reading) as heard:
        await heard.watch(path)
        for number in range(1000):
            path.write_text(str(number))
        with anyio.fail_after(SECONDS):
            while contents[-1] != "999" or str(path) not in heard.keys:
                await heard.news.wait()


async def test_a_steady_writer_starves_nobody(tmp_path: Path) -> None:
    steady, other = tmp_path / "steady", tmp_path / "other"
    other.write_text("")
    stop = threading.Event()

    def write() -> None:
        with steady.open("a") as file:
            while not stop.is_set():
                file.write("x")
                file.flush()

    writer = threading.Thread(target=write)
    async with listening(tmp_path) as heard:
        steady.write_text("")
        await heard.watch(steady, other)
        writer.start()
        try:
            for number in range(3):
                await heard.about(steady)
                other.write_text(str(number))
                await heard.about(other)
        finally:
            stop.set()
            await anyio.to_thread.run_sync(writer.join)


async def test_a_change_between_asking_and_arming_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    path.write_text("1")

    real = kernel_watch.RustNotify

    def late(*args: Any) -> Any:
        path.write_text("changed before anything was armed")
        return real(*args)

    monkeypatch.setattr(kernel_watch, "RustNotify", late)
    async with listening(tmp_path) as heard:
        await heard.watch(path)
        await heard.about(path)


async def test_changes_while_watchers_are_replaced(tmp_path: Path) -> None:
    """Each further folder replaces a watcher; what changes meanwhile in the first is told every time."""
    first = tmp_path / "first"
    first.write_text("")
    folders = [tmp_path / str(number) for number in range(60)]
    for folder in folders:
        folder.mkdir()
    async with listening(tmp_path) as heard:
        await heard.watch(first)
        for number, folder in enumerate(folders):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(heard.watch, folder / "a")
                first.write_text(f"{number:03}")
                await heard.about(first)
            (folder / "a").write_text("1")
            await heard.about(folder / "a")


async def test_silence_after_discard(tmp_path: Path) -> None:
    path, control = tmp_path / "a", tmp_path / "control"
    async with listening(tmp_path) as heard:
        await heard.watch(path, control)
        heard.unwatch(path)
        path.write_text("1")
        control.write_text("1")
        await heard.about(control)
        assert heard.keys == []
        await heard.watch(path)
        path.write_text("22")
        await heard.about(path)


async def test_everything_released_leaves_no_thread_and_no_descriptor(tmp_path: Path) -> None:
    paths = [tmp_path / str(number) / "a" for number in range(40)]
    for path in paths:
        path.parent.mkdir()
    descriptors = Path("/proc/self/fd")
    if sys.platform != "linux":
        pytest.skip("no /proc to count descriptors in")
    folders = {f" ino:{path.parent.stat().st_ino:x} " for path in paths}

    def watched() -> int:
        """How many of the folders the kernel watches.

        Not counted by descriptors: those of an earlier test may close at any moment.
        """
        told = ""
        for info in Path("/proc/self/fdinfo").iterdir():
            with contextlib.suppress(FileNotFoundError):
                told += info.read_text()
        return sum(folder in told for folder in folders)

    async with listening(tmp_path) as heard:
        await heard.watcher._running.wait()
        before = len(list(descriptors.iterdir()))
        for _ in range(3):
            await heard.watch(*paths[:20])
            for path in paths[20:]:
                await heard.watch(path)
            assert watched() == len(paths)
            heard.unwatch(*paths)
            with anyio.fail_after(SECONDS):
                while heard.watcher._folders.watches:
                    await heard.watcher._folders.watch_ended.wait()
            with anyio.fail_after(SECONDS):
                # The library's own thread closes its descriptors a moment after the watcher is gone.
                while watched() or len(list(descriptors.iterdir())) > before:
                    await anyio.lowlevel.checkpoint()


async def test_released_while_it_is_being_armed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    real = kernel_watch.RustNotify
    begun, go_on = threading.Event(), threading.Event()

    def slow(*args: Any) -> Any:
        begun.set()
        assert go_on.wait(SECONDS)
        return real(*args)

    async with listening(tmp_path) as heard:
        monkeypatch.setattr(kernel_watch, "RustNotify", slow)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(heard.watch, path)
            await anyio.to_thread.run_sync(begun.wait, SECONDS)
            heard.unwatch(path)
            go_on.set()
        assert not heard.watcher._folders.watches
        await heard.watch(path)
        path.write_text("1")
        await heard.about(path)


async def test_a_folder_is_watched_until_the_last_of_its_files_is_released(tmp_path: Path) -> None:
    first, second, other = tmp_path / "one" / "a", tmp_path / "one" / "b", tmp_path / "two" / "a"
    for path in (first, second, other):
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    async with listening(tmp_path) as heard:
        await heard.watch(first, second, other)
        needs = heard.watcher._folders.needs
        heard.unwatch(first)
        assert needs(fold(str(first.parent)))
        # A new folder replaces the watch, and what is not needed is not taken over.
        (tmp_path / "three").mkdir()
        await heard.watch(tmp_path / "three" / "a")
        second.write_text("1")
        await heard.about(second)
        heard.unwatch(second)
        assert not needs(fold(str(first.parent)))
        assert needs(fold(str(other.parent)))


async def test_a_link_and_its_target_with_names_that_read_alike_are_released(tmp_path: Path) -> None:
    """The name of the target is the same, composed in another way."""
    link, target, control = tmp_path / "caf\u00e9", tmp_path / "cafe\u0301", tmp_path / "control"
    target.write_text("1")
    try:
        link.symlink_to(target.name)
    except OSError:
        pytest.skip("this file system takes both names for one")
    async with listening(tmp_path) as heard:
        await heard.watch(link, control)
        heard.unwatch(link)
        target.write_text("22")
        control.write_text("1")
        await heard.about(control)
        assert heard.keys == []
        await heard.watch(link)
        target.write_text("333")
        await heard.about(link)


@pytest.mark.parametrize("number", [1, 2])
async def test_released_while_its_moved_folder_is_followed(tmp_path: Path, number: int) -> None:
    """One of two files, or both, so that nothing is watched at that moment."""
    paths = [tmp_path / "one" / name for name in "ab"]
    paths[0].parent.mkdir()
    for path in paths:
        path.write_text("1")
    is_slow = False
    begun, go_on = threading.Event(), threading.Event()

    def slow(path: str) -> Hashable | None:
        if is_slow:
            begun.set()
            assert go_on.wait(SECONDS)
        return probe(path)

    async with listening(tmp_path, slow) as heard:
        await heard.watch(*paths)
        is_slow = True
        paths[0].parent.rename(tmp_path / "away")
        assert await anyio.to_thread.run_sync(begun.wait, SECONDS)
        heard.unwatch(*paths[:number])
        if number == 2:
            assert not heard.watcher._folders.needs(fold(str(tmp_path)))
        is_slow = False
        go_on.set()
        await heard.watch(*paths)
        (tmp_path / "away").rename(paths[0].parent)
        for path in paths:
            await heard.about(path)
            path.write_text("22")
            await heard.about(path)


async def test_released_and_watched_again_while_it_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, control = tmp_path / "one" / "a", tmp_path / "control"
    path.parent.mkdir()
    path.write_text("1")
    begun, go_on = threading.Event(), threading.Event()
    async with listening(tmp_path) as heard:
        await heard.watch(path, control)
        follow = heard.watcher._watch_paths.follow

        def slow(path: str) -> WatchPath:
            begun.set()
            assert go_on.wait(SECONDS)
            return follow(path)

        monkeypatch.setattr(heard.watcher._watch_paths, "follow", slow)
        path.parent.rename(tmp_path / "away")
        assert await anyio.to_thread.run_sync(begun.wait, SECONDS)
        heard.unwatch(path)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(heard.watch, path)
            await anyio.wait_all_tasks_blocked()
            go_on.set()
        (tmp_path / "away").rename(path.parent)
        await heard.about(path)
        path.write_text("22")
        await heard.about(path)
        needs = heard.watcher._folders.needs
        assert needs(fold(str(path.parent)))
        heard.unwatch(path)
        assert not needs(fold(str(path.parent)))


async def test_replaced_while_another_moved_folder_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_watcher, "_ROUND_SECONDS", 3600.0)
    moved, replaced, control = tmp_path / "one" / "a", tmp_path / "two" / "a", tmp_path / "control"
    for path in (moved, replaced, tmp_path / "other" / "a"):
        path.parent.mkdir()
        path.write_text("1")
    begun, go_on = threading.Event(), threading.Event()
    async with listening(tmp_path) as heard:
        await heard.watch(moved, replaced, control)
        follow = heard.watcher._watch_paths.follow

        def slow(path: str) -> WatchPath:
            if path == str(moved):
                begun.set()
                assert go_on.wait(SECONDS)
            return follow(path)

        monkeypatch.setattr(heard.watcher._watch_paths, "follow", slow)
        moved.parent.rename(tmp_path / "away")
        assert await anyio.to_thread.run_sync(begun.wait, SECONDS)
        replaced.parent.rename(tmp_path / "old")
        (tmp_path / "other").rename(replaced.parent)
        control.write_text("the events of both have come")
        await heard.about(control)
        go_on.set()
        await heard.about(replaced)
        replaced.write_text("22")
        await heard.about(replaced)


@pytest.mark.parametrize("seed", range(20))
async def test_in_the_end_everything_was_seen(tmp_path: Path, seed: int) -> None:
    """After any muddle of changes, what was last seen of each path is how it is."""
    chance = random.Random(seed)

    def somewhere(depth: int) -> Path:
        return tmp_path.joinpath(*chance.choices("abc", k=chance.randint(1, depth)))

    def replace(path: Path) -> None:
        new = path.with_name("new")
        new.write_text("1")
        os.replace(new, path)

    def link(path: Path) -> None:
        target = somewhere(3)
        path.symlink_to(chance.choice([target, os.path.relpath(target, path.parent)]))

    def remove(path: Path) -> None:
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()

    changes: list[Callable[[Path], Any]] = [
        lambda path: path.mkdir(parents=True),
        lambda path: path.write_text("x" * chance.randrange(99)),
        lambda path: path.rename(somewhere(3)),
        remove,
        replace,
        link,
    ]
    watched = sorted({tmp_path, *(somewhere(4) for _ in range(40))})
    async with listening(tmp_path) as heard:
        await heard.watch(*watched[::2])
        for step in range(100):
            with suppress(OSError):
                chance.choice(changes)(somewhere(3))
            if step == 50:
                await heard.watch(*watched[1::2])
            if chance.random() < 0.3:
                await anyio.lowlevel.checkpoint()
        with anyio.fail_after(SECONDS):
            for path in watched:
                while heard.watcher._entries._by_key[str(path)].state != seen(path):
                    await anyio.lowlevel.checkpoint()


def seen(path: Path) -> Hashable | None:
    try:
        return probe(str(path))
    except OSError:
        return None


async def test_a_thousand_files_in_a_hundred_folders(tmp_path: Path) -> None:
    paths = [tmp_path / str(folder) / str(name) for folder in range(100) for name in range(10)]
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    async with listening(tmp_path) as heard:
        await heard.watch(*paths)
        for path in paths:
            path.write_text("1")
        for path in paths:
            await heard.about(path)


async def test_the_end_is_prompt(tmp_path: Path) -> None:
    async with listening(tmp_path) as heard:
        await heard.watch(tmp_path / "a")
        watches = list(heard.watcher._folders.watches)
    assert watches
    assert all(watch.is_set() for watch in watches)
    assert not heard.watcher._folders._armed


async def test_it_can_run_again(tmp_path: Path) -> None:
    path = tmp_path / "a"
    watcher = FileWatcher([str(tmp_path)], locate, probe)
    for number in range(2):
        heard = Heard(watcher)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watcher.run, heard.changed)
            await heard.watch(path)
            assert watcher._folders.needs(fold(str(tmp_path)))
            path.write_text(str(number))
            await heard.about(path)
            tasks.cancel_scope.cancel()


def test_keys_are_paths(tmp_path: Path) -> None:
    watcher = FileWatcher([str(tmp_path)], locate, probe)
    assert watcher.key(tmp_path.as_uri()) == str(tmp_path)
    assert watcher.key("other:thing") is None
    assert list(watcher.list_keys) == [str(tmp_path)]
    with pytest.raises(Refused):
        watcher.key("file:///..")
