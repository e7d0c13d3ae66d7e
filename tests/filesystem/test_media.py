"""Files that are no text: pictures, sounds, binaries, and what is said of those that are too large to show."""

from __future__ import annotations

import base64
import random
import sys
from pathlib import Path

import pytest
from mcp_types import BlobResourceContents, EmbeddedResource, TextContent

from filesystem.reading import fill, served
from filesystem.test_read import PNG, read
from filesystem.tool_calls import Tools
from mcp_batteries.errors import Invalid, TooLarge
from mcp_fs.engine.mime_types import mime_type
from mcp_fs.engine.reading import media
from mcp_fs.resources import Resources

WAV = b"RIFF\x26\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0data\2\0\0\0\0\0"


@pytest.mark.parametrize(
    ("head", "name", "kind"),
    [
        (PNG, "x.txt", "image/png"),
        (b"\xff\xd8\xff\xe0", "x", "image/jpeg"),
        (b"GIF89a", "x", "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "x", "image/webp"),
        (WAV, "x", "audio/wav"),
        (b"ID3\4\0", "x", "audio/mpeg"),
        (b"OggS\0", "x.bin", "audio/ogg"),
        (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "x.mp4", "image/heic"),
        (b"\0\0\0\x18ftypmif1\0\0\0\0mif1heic", "x.mp4", "image/heic"),
        (b"\0\0\0\x18ftypmsf1\0\0\0\0hevcmsf1", "x", "image/heic"),
        (b"\0\0\0\x1cftypmif1\0\0\0\0mif1avifmiaf", "x", "image/avif"),
        (b"\0\0\0\x14ftypavis\0\0\0\0avis", "x", "image/avif"),
        (b"\0\0\0\x18ftypcrx \0\0\0\1crx isom", "x.CR3", "image/x-canon-cr3"),
        (b"\0\0\0\x18ftypisom\0\0\2\0isommp41", "x.heic", "video/mp4"),
        (b"\0\0\0\x14ftypqt  \0\0\0\0qt  ", "x.mov", "video/quicktime"),
        (b"\0\0\0\x14ftypM4A \0\0\0\0M4A ", "x", "audio/mp4"),
        (b"8BPS\0\1" + bytes(20), "x.psd", "image/vnd.adobe.photoshop"),
        (b"\0\0\0\x0cjP  \r\n\x87\n", "x.jp2", "image/jp2"),
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
            "s": WAV,
            "b": b"\0\1\2\3" * 9,
            "two\nlines": b"\xff\0\1\2\3" * 9,
            "t": "text",
            "none": "",
        },
    )
    tools = Tools(served(tmp_path))
    names = ("i", "s", "b", "two\nlines")
    for page, other in ((None, ["text"]), (1, ["text", "resource"])):
        kinds = {name: [block.type for block in await tools.read_media(name, page=page)] for name in names}
        assert list(kinds.values()) == [["text", "image"], ["text", "audio"], other, other]
    (told,) = await tools.read_media("b")
    assert (
        "; no text or picture; `page=1` of 1 sends its bytes in base64; its bytes are the resource file://" in told.text
    )
    assert told.text.split("\n")[1] == f"00000000  {bytes([0, 1, 2, 3] * 4).hex(' ')}  {'.' * 16}"
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
@pytest.mark.parametrize("size", [20_000, media.MAX_RESOURCE_BYTES + 1])
async def test_every_advice_about_a_large_binary_can_be_followed(tmp_path: Path, size: int) -> None:
    content = random.Random(1).randbytes(size)
    fill(tmp_path, {"big.bin": content})
    policy = served(tmp_path)
    with pytest.raises(Invalid, match="read_media"):
        read(tmp_path, "big.bin")
    tools, resources, data, page = Tools(policy), Resources(policy), b"", 1
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
    if size <= media.MAX_RESOURCE_BYTES:
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
    fill(tmp_path, {"bad.jpg": b"\xff\xd8\xff" + rest, "a.wav": WAV + rest, "text.log": b"x\n" * 6_000_000})
    policy = served(tmp_path)
    tools = Tools(policy)
    for name, words in (
        ("bad.jpg", "not shown: it is damaged"),
        ("a.wav", "too large to play (limit 3,750,000 bytes)"),
    ):
        [note] = await tools.read_media(name)
        assert isinstance(note, TextContent)
        assert words in note.text and "its bytes are the resource file://" in note.text
    with pytest.raises(TooLarge, match="read_text"):
        await Resources(policy).read_file(policy.readable("text.log").uri)
