"""Files that are no text: pictures, sounds, binaries, and what is said of those that are too large to show."""

from __future__ import annotations

import base64
import io
import random
import sys
import tracemalloc
from pathlib import Path

import pytest
from mcp_types import BlobResourceContents, EmbeddedResource, TextContent
from PIL import Image

from filesystem.reading import fill, served
from filesystem.test_read import PNG, read
from mcp_batteries.errors import Invalid, TooLarge
from mcp_fs.engine import media
from mcp_fs.engine.media import mime_type, view
from mcp_fs.engine.service import Engine
from mcp_fs.resources import Resources
from mcp_fs.tools.read import ReadTools


@pytest.mark.parametrize(
    ("head", "name", "kind"),
    [
        (PNG, "x.txt", "image/png"),
        (b"\xff\xd8\xff\xe0", "x", "image/jpeg"),
        (b"GIF89a", "x", "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "x", "image/webp"),
        (b"RIFF\0\0\0\0WAVEfmt ", "x", "audio/wav"),
        (b"ID3\4\0", "x", "audio/mpeg"),
        (b"OggS\0", "x.bin", "audio/ogg"),
        (b"fLaC\0", "x", "audio/flac"),
        (b"%PDF-1.7\n", "x", "application/pdf"),
        (b"PK\3\4\0", "x.docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
        (b"\0\1\2\3", "x.png", "application/octet-stream"),
        (b"hello\n", "x.mp3", "text/plain"),
        (b"{}\n", "x.json", "application/json"),
    ],
)
def test_first_bytes_decide_what_a_file_is(head: bytes, name: str, kind: str) -> None:
    assert mime_type(head, name) == kind


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (b"\x89PNG\r\n\x1a\n junk that is no picture \0\1\xff", "x.png"),
        (b"\0\1\2\xffjunkWEBP\xfe\xfd\xfc", "x.webp"),
        (b"\0\1\2\xffjunkWAVE\xfe\xfd\xfc", "x.wav"),
        (b"just text\n", "x.png"),
        (b"\xff\xfb\xff\xff\0\1\xfe", "x.mp3"),
    ],
)
def test_junk_behind_a_few_right_bytes_is_shown_to_nobody(head: bytes, name: str) -> None:
    assert not mime_type(head, name).startswith(("image", "audio"))


@pytest.mark.skipif(sys.platform == "win32", reason="NTFS takes no line ends into names")
@pytest.mark.anyio
async def test_media_are_content_blocks(tmp_path: Path) -> None:
    fill(
        tmp_path,
        {
            "i": PNG,
            "s": b"RIFF\0\0\0\0WAVEfmt ",
            "b": b"\0\1\2\3" * 9,
            "two\nlines": b"\xff\0\1\2\3" * 9,
            "t": "text",
            "none": "",
        },
    )
    tools = ReadTools(served(tmp_path), Engine(served(tmp_path)))
    names = ("i", "s", "b", "two\nlines")
    kinds = {name: [block.type for block in await tools.read_media(name)] for name in names}
    assert list(kinds.values()) == [["text", "image"], ["text", "audio"], ["text", "resource"], ["text", "resource"]]
    note = (await tools.read_media("two\nlines"))[0]
    assert isinstance(note, TextContent)
    assert "two%0Alines: application/octet-stream" in note.text.splitlines()[0]
    with pytest.raises(Invalid, match="read_text"):
        await tools.read_media("t")
    with pytest.raises(Invalid, match="empty"):
        await tools.read_media("none")
    with pytest.raises(Invalid, match="has 1 page"):
        await tools.read_media("i", page=2)


@pytest.mark.anyio
@pytest.mark.parametrize("size", [20_000, media.MOST_WHOLE + 1])
async def test_every_advice_about_a_large_binary_can_be_followed(tmp_path: Path, size: int) -> None:
    content = random.Random(1).randbytes(size)
    fill(tmp_path, {"big.bin": content})
    policy = served(tmp_path)
    with pytest.raises(Invalid, match="read_media"):
        read(tmp_path, "big.bin")
    tools, resources, data, page = ReadTools(policy, Engine(policy)), Resources(policy, Engine(policy)), b"", 1
    while True:
        note, blob = await tools.read_media("big.bin", page=page)
        assert isinstance(note, TextContent) and isinstance(blob, EmbeddedResource)
        assert isinstance(blob.resource, BlobResourceContents)
        assert len(blob.resource.blob) <= 10_000
        data += base64.b64decode(blob.resource.blob)
        assert (
            f"bytes {len(data) - len(base64.b64decode(blob.resource.blob)) + 1:,}-{len(data):,}, page {page}"
            in note.text
        )
        if f"continue with page={page + 1}" not in note.text or page == 5:
            break
        page += 1
    assert data == content[: len(data)]
    if size <= media.MOST_WHOLE:
        assert data == content
        assert "whole as the resource file://" in note.text
        [whole] = await resources.read_file(policy.readable("big.bin").uri)
        assert isinstance(whole, BlobResourceContents)
        assert base64.b64decode(whole.blob) == content
    else:
        assert "resource file://" not in note.text
        with pytest.raises(TooLarge, match="`read_media`, which reads it page by page"):
            await resources.read_file(policy.readable("big.bin").uri)
    with pytest.raises(Invalid, match="smaller `page`"):
        await tools.read_media("big.bin", page=10**6)


@pytest.mark.anyio
async def test_what_is_too_large_to_show_is_told_never_a_piece_of_its_bytes(tmp_path: Path) -> None:
    rest = b"\1" * 4_000_000
    fill(tmp_path, {"bad.png": PNG + rest, "a.wav": b"RIFF\0\0\0\0WAVEfmt " + rest, "text.log": b"x\n" * 6_000_000})
    policy = served(tmp_path)
    tools = ReadTools(policy, Engine(policy))
    for name, words in (("bad.png", "not known or damaged"), ("a.wav", "whole as the resource file://")):
        [note] = await tools.read_media(name)
        assert isinstance(note, TextContent)
        assert (
            "too large to show whole (limit 3,750,000 bytes, 8,000 pixels a side)" in note.text and words in note.text
        )
    with pytest.raises(TooLarge, match="read_text"):
        await Resources(policy, Engine(policy)).read_file(policy.readable("text.log").uri)


@pytest.mark.diagonal
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP", "TIFF", "BMP"])
@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16"])
def test_a_large_picture_is_shown_in_small(
    tmp_path: Path, kind: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(media, "_MOST_SHOWN", 100)
    picture = Image.effect_noise((3200, 800), 90).convert(mode)
    file = tmp_path / "large"
    try:
        picture.save(file, kind)
    except (OSError, KeyError, ValueError):
        pytest.skip(f"{kind} has no {mode}")
    [shown] = view(served(tmp_path).readable("large"))
    assert (shown.kind, shown.mime_type) == ("image", "image/jpeg")
    assert "3,200 × 800 pixels, shown in small" in shown.note
    with Image.open(io.BytesIO(shown.data)) as small:
        assert small.size == (1568, 392) and len(shown.data) < 1_000_000


def test_a_picture_with_a_side_too_long_for_models_is_shown_in_small(tmp_path: Path) -> None:
    Image.new("1", (8001, 50)).save(tmp_path / "wide", "PNG")
    Image.new("1", (50, 8000)).save(tmp_path / "tall", "PNG")
    [wide], [tall] = (view(served(tmp_path).readable(name)) for name in ("wide", "tall"))
    assert wide.mime_type == "image/jpeg" and "8,001 × 50 pixels, shown in small" in wide.note
    assert tall.mime_type == "image/png" and tall.data == (tmp_path / "tall").read_bytes()


def test_no_picture_is_opened_in_the_process_of_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Image.new("RGB", (9000, 20), "red").save(tmp_path / "wide", "JPEG")
    Image.new("RGB", (20, 20), "red").save(tmp_path / "small", "WEBP")
    (tmp_path / "bad").write_bytes((tmp_path / "small").read_bytes()[:40] + b"\xff" * 400)
    monkeypatch.delattr(Image, "open")
    [wide], [small], [bad] = (view(served(tmp_path).readable(name)) for name in ("wide", "small", "bad"))
    assert wide.mime_type == "image/jpeg" and "9,000 × 20 pixels, shown in small" in wide.note
    assert small.mime_type == bad.mime_type == "image/webp" and small.data == (tmp_path / "small").read_bytes()


def test_a_photograph_stands_upright(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(media, "_MOST_SHOWN", 100)
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by 90 degrees
    Image.new("RGB", (2000, 1000), "red").save(tmp_path / "photo", "JPEG", exif=exif)
    [shown] = view(served(tmp_path).readable("photo"))
    with Image.open(io.BytesIO(shown.data)) as small:
        assert small.size == (784, 1568)


def test_a_picture_with_too_many_pixels_is_not_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(media, "_MOST_SHOWN", 100)
    Image.new("1", (20_000, 20_000)).save(tmp_path / "bomb", "PNG")
    tracemalloc.start()
    try:
        [shown] = view(served(tmp_path).readable("bomb"))
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()
    assert (shown.kind, shown.data) == ("text", b"")
    assert "20,000 × 20,000 pixels, too many to show in small" in shown.note


def test_without_the_library_the_way_to_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(media, "_MOST_SHOWN", 100)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    (tmp_path / "large.png").write_bytes(PNG + b"\1" * 1000)
    [shown] = view(served(tmp_path).readable("large.png"))
    assert "installed as mcp-fs[images]" in shown.note and not shown.data
