"""Another process swaps what stands at a name for a link to the outside, as fast as it can; nothing gets out."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import anyio
import pytest

from filesystem.places import Ground, delete, ground, stop
from filesystem.tool_calls import Tools
from mcp_batteries.errors import Conflict, Problem
from mcp_fs.engine.changing import atomic_write, folders, writing
from mcp_fs.engine.changing.entries import copying, moving
from mcp_fs.engine.handles import path_opening, syscalls
from mcp_fs.engine.handles.path_opening import Folder

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform == "win32", reason="POSIX links")]

# Exchanging two names leaves no moment without one, so that every try meets one or the other.
SWAPPER = """
import ctypes, itertools, os, sys
libc = ctypes.CDLL(None)
if sys.platform == "linux":
    swap = lambda a, b: libc.renameat2(-100, a, -100, b, 2)
else:
    swap = lambda a, b: libc.renamex_np(a, b, 2)
pairs = [tuple(os.fsencode(name) for name in pair.split("=")) for pair in sys.argv[1:]]
print(flush=True)
for pair in itertools.cycle(pairs):
    if os.getppid() == 1 or swap(*pair):
        break
"""


@pytest.fixture(params=["openat2", "walk"])
def here(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ground]:
    """`d/f` and `file` are inside; `d` and `file` change places with links to the like outside all the time."""
    if request.param == "walk":
        monkeypatch.setattr(syscalls, "_openat2_works", False)
    # Races are won by tries, and the disk's word for each would cost most of them.
    monkeypatch.setattr(atomic_write, "fsync_file", lambda fd: None)
    monkeypatch.setattr(Folder, "sync", lambda folder: None)
    place = ground(tmp_path)
    (place.root / "d").mkdir()
    for path in ("d/f", "file"):
        (place.root / path).write_text("inside")
    (place.outside / "f").write_text("OUTSIDE")
    (place.root / "d.link").symlink_to(place.outside)
    (place.root / "file.link").symlink_to(place.outside / "secret.txt")
    command = [sys.executable, "-c", SWAPPER, "d=d.link", "file=file.link"]
    with subprocess.Popen(command, cwd=place.root, stdout=subprocess.PIPE) as swapper:
        assert swapper.stdout is not None
        swapper.stdout.readline()
        try:
            yield place
            assert swapper.poll() is None
        finally:
            swapper.kill()
    assert {path.name: path.read_text() for path in place.outside.iterdir()} == {
        "secret.txt": "OUTSIDE",
        "f": "OUTSIDE",
    }


def outcomes(tries: int, attempt: Callable[[int], str]) -> Counter[str]:
    """What came of at least `tries` attempts; that they met both sides of the swap is what makes them count."""
    seen, deadline = Counter[str](), time.monotonic() + 60

    def met_both() -> bool:
        return min(seen["Refused"], seen.total() - seen["Refused"]) > tries // 100

    number = -1
    while (number := number + 1) < tries or not (met_both() or time.monotonic() > deadline):
        try:
            seen[attempt(number)] += 1
        except Problem as problem:
            seen[type(problem).__name__] += 1
    assert met_both(), seen
    return seen


def test_reading(here: Ground) -> None:
    places = [here.readable("d/f"), here.readable("file")]

    def read(number: int) -> str:
        with path_opening.open_file(places[number % 2]) as file:
            return file.read().decode()

    seen = outcomes(10_000, read)
    assert "OUTSIDE" not in seen
    assert seen["inside"]


@pytest.mark.share(1)
def test_listing_and_status(here: Ground) -> None:
    def look(number: int) -> str:
        if number % 2:
            return str(path_opening.read_status(here.readable("file")).st_size)
        with path_opening.open_folder(here.readable("d")) as folder:
            return ",".join(sorted(entry.name for entry in folder.scan()))

    assert outcomes(10_000, look).keys() <= {"f", "6", "Refused", "Invalid", "NotFound"}


def test_creating_and_replacing(here: Ground) -> None:
    def put(number: int) -> str:
        path = "file" if number % 2 else f"d/{number % 50}"
        if not any((here.root / name).is_symlink() for name in ("file", "file.link")):
            # A write that meets the link after its last look replaces it, as it may. Put it back.
            (here.root / "again").symlink_to(here.outside / "secret.txt")
            (here.root / "again").replace(here.root / "file.link")
        writing.write_file(here.writable(path), "inside", overwrite=True, cancel=stop())
        return "written"

    assert outcomes(2_000, put)["written"]
    assert here.temporary() == []


@pytest.mark.share(1)
def test_changing_the_tree(here: Ground) -> None:
    (here.root / "still").mkdir()

    def change(number: int) -> str:
        name = str(number // 4)
        match number % 4:
            case 0:
                folders.create_folder(here.writable(f"d/{name}/inner"), stop())
            case 1:
                source, target = here.readable("d/f"), here.writable(f"still/{name}.copy")
                copying.copy_entry(source, target, overwrite=False, cancel=stop())
                return (here.root / "still" / f"{name}.copy").read_text()
            case 2:
                (here.root / "still" / name).write_text("inside")
                source, target = here.writable(f"still/{name}"), here.writable(f"d/{name}/moved")
                moving.move_entry(source, target, overwrite=False, cancel=stop())
            case _:
                delete(here.writable(f"d/{name}"), recursive=True)
        return "changed"

    seen = outcomes(4_000, change)
    assert seen["inside"]
    assert "OUTSIDE" not in seen


@pytest.mark.slow
@pytest.mark.parametrize("makes_folders", [False, True])
async def test_tool_calls_alone_can_not_race_out(tmp_path: Path, makes_folders: bool) -> None:
    """No other process: moves in flight bring a link to the outside to where reads and writes are going.

    A call that makes missing folders may be in the way of a move, which then fails; it gets no further out.
    """
    place = ground(tmp_path)
    (place.outside / "f").write_text("OUTSIDE")
    (place.root / "evil").mkdir()
    (place.root / "evil" / "x").symlink_to(place.outside)
    (place.root / "good" / "x").mkdir(parents=True)
    (place.root / "good" / "x" / "f").write_text("inside")
    tools = Tools(place.policy)
    seen = Counter[str]()
    done = anyio.Event()

    async def mover() -> None:
        for _ in range(150):
            for source, target in (("good", "now"), ("now", "good"), ("evil", "now"), ("now", "evil")):
                try:
                    await tools.move_file({source: target})
                except (Conflict, Problem):
                    seen["move failed"] += 1
        done.set()

    async def user() -> None:
        while not done.is_set():
            try:
                await tools.copy_file({"now/x/f": "copy"}, overwrite=True)
                seen[(place.root / "copy").read_text()] += 1
                if makes_folders:
                    await tools.write_file("now/x/made", "inside", overwrite=True)
                else:
                    made = partial(
                        writing.write_file, place.writable("now/x/made"), "inside", overwrite=True, cancel=stop()
                    )
                    await anyio.to_thread.run_sync(made)
            except Problem as problem:
                seen[type(problem).__name__] += 1

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(mover)
            tasks.start_soon(user)
            tasks.start_soon(user)
    assert seen["OUTSIDE"] == 0, seen
    assert makes_folders or (seen["move failed"] == 0 and seen["Refused"]), seen
    assert sorted(os.listdir(place.outside)) == ["f", "secret.txt"]
