"""Files whose changes the kernel does not tell, or not all of them: they are looked at."""

import itertools
import logging
import mmap
import os
import stat
import sys
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import pytest
from watchfiles._rust_notify import WatchfilesRustInternalError

from mcp_batteries.subscriptions import file_watcher as module
from mcp_batteries.subscriptions import kernel_watch
from mcp_batteries.subscriptions.file_state import read_file_state
from shared.test_file_watcher import listening, probe

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("how", ["argument", "environment"])
async def test_polling_on_request(tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    monkeypatch.setattr(module, "_POLL_SECONDS", 0.01)
    monkeypatch.setattr(kernel_watch, "RustNotify", None)
    if how == "environment":
        monkeypatch.setenv("WATCHFILES_FORCE_POLLING", "1")
    path = tmp_path / "a"
    async with listening(tmp_path, poll=True if how == "argument" else None) as heard:
        await heard.watch(path, tmp_path)
        path.write_text("1")
        await heard.about(path)
        await heard.about(tmp_path)
        assert [record.levelno for record in caplog.records] == [logging.WARNING]


@pytest.mark.parametrize("error", [OSError("OS file watch limit reached"), WatchfilesRustInternalError("limit")])
async def test_polling_when_the_watches_are_used_up(
    tmp_path: Path, error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    monkeypatch.setattr(module, "_POLL_SECONDS", 0.01)
    real = kernel_watch.RustNotify
    (tmp_path / "late").mkdir()
    early, late = tmp_path / "early", tmp_path / "late" / "a"

    def refuse(*_: Any) -> Any:
        raise error

    async with listening(tmp_path) as heard:
        await heard.watch(early)
        monkeypatch.setattr(kernel_watch, "RustNotify", refuse)
        await heard.watch(late)
        for path in (early, late):
            path.write_text("1")
            await heard.about(path)
        assert len(caplog.records) == 1
        heard.unwatch(early, late)
        monkeypatch.setattr(kernel_watch, "RustNotify", real)
        await heard.watch(late)
        assert not heard.watcher._entries.polled
        late.write_text("22")
        await heard.about(late)


async def test_what_is_released_is_polled_no_longer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_POLL_SECONDS", 0.01)
    released, polled = tmp_path / "released", tmp_path / "polled"
    probed: list[str] = []

    def listed(path: str) -> Hashable | None:
        probed.append(path)
        return probe(path)

    async with listening(tmp_path, listed, poll=True) as heard:
        await heard.watch(released, polled)
        heard.unwatch(released)
        # The poll that was under way then still had both.
        polled.write_text("1")
        await heard.about(polled)
        probed.clear()
        polled.write_text("22")
        await heard.about(polled)
        assert set(probed) == {str(polled)}


async def test_polling_where_the_kernel_reports_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_POLL_SECONDS", 0.01)
    monkeypatch.setattr(
        "mcp_batteries.subscriptions.watch_paths._blind_devices", lambda: {read_file_state(str(tmp_path)).device: True}
    )
    monkeypatch.setattr(kernel_watch, "RustNotify", None)
    path = tmp_path / "a"
    async with listening(tmp_path) as heard:
        await heard.watch(path)
        path.write_text("1")
        await heard.about(path)


def bytes_name(folder: Path) -> Path:
    try:
        path = Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9"))
        path.write_text("1")
    except (OSError, UnicodeError):
        pytest.skip("this file system takes only UTF-8 names")
    return path


async def test_a_name_that_is_not_utf8(tmp_path: Path) -> None:
    path = bytes_name(tmp_path)
    async with listening(tmp_path) as heard:
        await heard.watch(path)
        path.write_text("22")
        await heard.about(path)


async def test_a_neighbour_whose_name_is_not_utf8_breaks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One event about such a name ends a `RustNotify` for good; many in one folder make it polled."""
    monkeypatch.setattr(module, "_POLL_SECONDS", 0.01)
    neighbour, path = bytes_name(tmp_path), tmp_path / "a"
    neighbour.unlink()
    async with listening(tmp_path) as heard:
        await heard.watch(path, tmp_path)
        for number in range(8):
            neighbour.write_text(str(number))
            await heard.about(tmp_path)
            path.write_text(str(number))
            await heard.about(path)
            neighbour.unlink()
            await heard.about(tmp_path)


async def test_equal_looks_right_after_a_change_are_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two writes in one tick of the kernel's clock look the same; the second is told all the same."""
    monkeypatch.setattr(module, "_DOUBT_SECONDS", 600.0)
    monkeypatch.setattr(module, "_COARSE_NS", 600_000_000_000)
    path = tmp_path / "a"
    path.write_text("1")
    async with listening(tmp_path, lambda path: "as ever") as heard:
        await heard.watch(path)
        path.write_text("2")
        await heard.about(path)


@pytest.fixture
def linked(tmp_path: Path) -> tuple[Path, Path]:
    """A file and another name of it, of whose writes the kernel tells nothing in the folder of the first."""
    (tmp_path / "served").mkdir()
    (tmp_path / "elsewhere").mkdir()
    path, other = tmp_path / "served" / "a", tmp_path / "elsewhere" / "a"
    path.write_text("1")
    os.link(path, other)
    return path, other


@pytest.mark.slow
@pytest.mark.share(1)
@pytest.mark.parametrize("how", ["link", "map"])
async def test_what_the_kernel_does_not_tell_is_seen_all_the_same(linked: tuple[Path, Path], how: str) -> None:
    path, other = linked
    async with listening(path.parent) as heard:
        await heard.watch(path)
        if how == "link":
            other.write_text("22")
        else:
            with path.open("r+b") as file, mmap.mmap(file.fileno(), 1) as mapped:
                mapped[:] = b"2"
        await heard.about(path)


@pytest.mark.parametrize("why", ["many events", "a pause"])
async def test_after_a_batch_that_may_have_been_cut_everything_is_looked_at_at_once(
    linked: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    monkeypatch.setattr(module, "_ROUND_SECONDS", 3600.0)
    monkeypatch.setattr(module, "_POLL_SECONDS", 0.01)
    monkeypatch.setattr(module, "_FLOOD", 2 if why == "many events" else 1000)
    monkeypatch.setattr(kernel_watch, "_STALL_SECONDS", 0.0 if why == "a pause" else 3600.0)
    path, other = linked
    async with listening(path.parent) as heard:
        await heard.watch(path)
        other.write_text("an event of this is lost")
        (path.parent / "b").write_text("")
        (path.parent / "b").rename(path.parent / "c")
        await heard.about(path)


async def test_who_watches_inside_a_folder_is_told_after_a_batch_that_may_have_been_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What happened to a file in the folder does not show in the folder."""
    monkeypatch.setattr(module, "_ROUND_SECONDS", 3600.0)
    monkeypatch.setattr(module, "_POLL_SECONDS", 0.01)
    monkeypatch.setattr(module, "_FLOOD", 1)
    (tmp_path / "quiet").mkdir()
    (tmp_path / "busy").mkdir()
    looks = itertools.count()
    async with listening(tmp_path, lambda _: next(looks), inside=True) as heard:
        await heard.watch(tmp_path / "quiet", tmp_path / "busy")
        (tmp_path / "busy/a").write_text("")
        await heard.about(tmp_path / "busy")
        await heard.about(tmp_path / "quiet")


@pytest.mark.skipif(sys.platform == "win32", reason="a look at a file costs several times as much there")
async def test_a_slow_look_takes_next_to_no_time(tmp_path: Path) -> None:
    paths = [tmp_path / str(number) for number in range(2000)]
    for path in paths:
        path.write_text("")
    async with listening(tmp_path) as heard:
        await heard.watch(*paths)
        rounds = [await heard.watcher._check_quickly(list(heard.watcher._entries)) for _ in range(5)]
        assert heard.keys == []
    # 10,000 at this price, once in the time that their price allows: a round each minute at the worst.
    assert min(rounds) * 5 / module._SHARE < 60


async def test_a_glance_says_what_stat_says(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    os.utime(tmp_path / "file", ns=(1, 1_234_567_890_123_456_700))
    for path in (tmp_path / "file", tmp_path):
        seen, found = read_file_state(str(path)), os.stat(path)
        assert (seen.modified_ns, stat.S_IFMT(seen.mode)) == (found.st_mtime_ns, stat.S_IFMT(found.st_mode))
        assert seen.size == found.st_size or path.is_dir()
        assert seen.changed_ns >= found.st_ctime_ns
    for missing, error in (("none", FileNotFoundError), ("none/below", FileNotFoundError), ("\0", ValueError)):
        with pytest.raises(error):
            read_file_state(str(tmp_path / missing))
