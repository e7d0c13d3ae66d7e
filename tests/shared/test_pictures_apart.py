"""Pictures that a process of its own prepares, for servers that have no other."""

from __future__ import annotations

import io
import os
import sys

import pytest
from PIL import Image

from mcp_batteries.concurrency.cancellation import CancelToken, WorkCancelled
from mcp_batteries.errors import Unavailable
from mcp_batteries.media import process
from mcp_batteries.media.picture_types import picture_type
from mcp_batteries.media.pictures import Refusal, Refused
from mcp_batteries.media.process import prepare_apart
from mcp_batteries.processes import python_child


def _saved(kind: str, size: tuple[int, int] = (40, 30)) -> bytes:
    output = io.BytesIO()
    Image.new("RGB", size, "red").save(output, kind)
    return output.getvalue()


@pytest.mark.parametrize(("kind", "expected"), [("PNG", "png"), ("JPEG", "jpeg"), ("GIF", "png"), ("BMP", "png")])
def test_a_picture_comes_back_in_a_type_that_models_take(kind: str, expected: str) -> None:
    data = _saved(kind)
    picture = prepare_apart(data, picture_type(data) or "", CancelToken())
    assert (picture.mime_type, picture.width, picture.height) == (f"image/{expected}", 40, 30)
    with Image.open(io.BytesIO(picture.data)) as shown:
        shown.load()
        assert shown.size == (40, 30)


def test_what_can_not_be_shown_is_refused_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [
        (_saved("JPEG")[:-200], "image/jpeg", Refusal.DAMAGED),
        (_saved("BMP")[:100], "image/bmp", Refusal.DAMAGED),
        (b"", "image/jxl", Refusal.UNKNOWN),
        (b"BM" + (1 << 20).to_bytes(4, "little") + bytes(8) + _saved("BMP", (1, 1))[14:18]
         + (9000).to_bytes(4, "little") * 2 + _saved("BMP", (1, 1))[26:], "image/bmp", Refusal.TOO_MANY_PIXELS),
    ]  # fmt: skip
    for data, mime_type, refusal in cases:
        with pytest.raises(Refused) as refused:
            prepare_apart(data, mime_type, CancelToken())
        assert refused.value.refusal is refusal
        assert "mcp-any" not in refused.value.refusal.reason("mcp-any")
    monkeypatch.setattr(
        python_child, "_START_CODE", "import sys; sys.modules['PIL'] = None\n" + python_child._START_CODE
    )
    with pytest.raises(Refused) as refused:
        prepare_apart(_saved("GIF"), "image/gif", CancelToken())
    assert "mcp-any[images]" in refused.value.refusal.reason("mcp-any")
    assert prepare_apart(_saved("PNG"), "image/png", CancelToken()).mime_type == "image/png"


def test_a_process_that_breaks_or_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_child, "_START_CODE", "import os; os.abort()")
    with pytest.raises(Refused, match="damaged"):
        prepare_apart(_saved("PNG"), "image/png", CancelToken())
    monkeypatch.setattr(python_child, "_START_CODE", "import threading; threading.Event().wait()")
    monkeypatch.setattr(process, "_WALL_SECONDS", 0.2)
    with pytest.raises(Refused, match="damaged"):
        prepare_apart(_saved("PNG"), "image/png", CancelToken())
    stop = CancelToken()
    stop.set()
    with pytest.raises(WorkCancelled):
        prepare_apart(bytes(1 << 20), "image/png", stop)


def test_a_system_without_room_for_a_process_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", os.path.join(os.sep, "nowhere", "python"))
    with pytest.raises(Unavailable, match="No process could be started"):
        prepare_apart(_saved("PNG"), "image/png", CancelToken())
