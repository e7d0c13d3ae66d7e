"""How many of our files a call goes through: what a reader follows who wants to know how a tool works.

The transports are left out: every call goes the same way there.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import FrameType

import pytest

import mcp_batteries
import mcp_fs
from mcp_batteries.testing.wire import Message
from thread_wire import ThreadWire

SOURCES = (Path(mcp_batteries.__file__).parent, Path(mcp_fs.__file__).parent)
TRANSPORTS = SOURCES[0] / "transports"

# A change that needs more needs a reason too.
CALLS: dict[str, tuple[Message, int]] = {
    "read_text": ({"path": "a.txt"}, 28),
    # What is looked at before a write, and the write, are two subjects, which one file of 500 lines held.
    "edit_file": ({"path": "a.txt", "old_text": "two", "new_text": "three"}, 41),
}


class Recorder:
    """Notes the files of the functions that are called while it records, on threads that start after it."""

    def __init__(self) -> None:
        self._files: set[str] = set()
        self._is_recording = False

    def note(self, frame: FrameType, event: str, _: object) -> None:
        if self._is_recording and event == "call":
            self._files.add(frame.f_code.co_filename)

    @contextmanager
    def recording(self) -> Generator[None]:
        self._files.clear()
        self._is_recording = True
        try:
            yield
        finally:
            self._is_recording = False

    @property
    def own_files(self) -> list[Path]:
        paths = map(Path, sorted(self._files))
        return [
            path
            for path in paths
            if any(path.is_relative_to(source) for source in SOURCES) and not path.is_relative_to(TRANSPORTS)
        ]


def _clean_nothing(_: object) -> nullcontext[None]:
    return nullcontext()


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    recorder = Recorder()
    threading.setprofile(recorder.note)
    yield recorder
    threading.setprofile(None)


@pytest.mark.anyio
async def test_a_call_enters_few_files(tmp_path: Path, recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    # The cleaning beside the first requests is no part of a call, and may still run when one is recorded.
    monkeypatch.setattr("mcp_fs.server.clean_in_background", _clean_nothing)
    (tmp_path / "a.txt").write_text("one two\n")
    (tmp_path / "other.txt").write_text("one two\n")
    async with ThreadWire("mcp_fs", [tmp_path], revision="2025-06-18") as wire:
        await wire.open()
        for name, (arguments, most) in CALLS.items():
            # What only the first call of a server does is no part of the way.
            await wire.request("tools/call", {"name": name, "arguments": {**arguments, "path": "other.txt"}})
            with recorder.recording():
                answer = await wire.request("tools/call", {"name": name, "arguments": arguments})
            assert not answer.get("isError"), answer
            files = recorder.own_files
            assert len(files) <= most, f"`{name}` enters {len(files)} files:\n" + "\n".join(map(str, files))
