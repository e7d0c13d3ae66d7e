"""What leaves as a picture or a sound is what the models of all hosts take, whatever the file is."""

from __future__ import annotations

import io
import random
import struct
import tracemalloc
import warnings
import wave
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp_types import BlobResourceContents
from PIL import Image

from filesystem.documents import pdf
from filesystem.reading import served
from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Problem
from mcp_batteries.media.pictures import LONGEST_SIDE, MAX_SHOWN_BYTES, MOST_BYTES, TYPES
from mcp_batteries.processes import python_child
from mcp_fs.engine.documents import converter
from mcp_fs.engine.reading.full_contents import read_full_contents
from mcp_fs.engine.reading.media import is_media, read_media, with_safe_type
from mcp_fs.models import FullContents, Media
from mcp_fs.resources import Resources

_MODES = ("1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr", "LAB", "I", "I;16", "F")
_SIZE = (31, 23)


def _saved(kind: str, mode: str, size: tuple[int, int] = _SIZE) -> bytes:
    """Return a picture of noise in a file of that kind; nothing where it has no such mode."""
    output = io.BytesIO()
    try:
        with warnings.catch_warnings(action="ignore"):
            picture = Image.effect_noise(size, 90)
            if mode != "L":
                picture = (
                    picture.convert("RGB").convert(mode) if mode not in ("I;16", "F", "I") else picture.convert(mode)
                )
            picture.save(output, kind)
    except (OSError, KeyError, ValueError, TypeError):
        return b""
    return output.getvalue()


def _every_kind() -> Iterator[tuple[str, bytes]]:
    Image.init()
    for kind in sorted(Image.SAVE):
        # An icon of macOS has ten pictures, up to 1,024 pixels each way.
        for mode in ("RGBA",) if kind == "ICNS" else _MODES:
            if data := _saved(kind, mode):
                yield f"{kind.lower()}-{mode.replace(';', '')}", data


def _odd_ones() -> Iterator[tuple[str, bytes]]:
    frames = [Image.effect_noise(_SIZE, number).convert("RGB") for number in (30, 60, 90)]
    for kind in ("GIF", "WEBP", "PNG", "TIFF", "AVIF"):
        output = io.BytesIO()
        frames[0].save(output, kind, save_all=True, append_images=frames[1:])
        yield f"film-{kind.lower()}", output.getvalue()
    exif = Image.Exif()
    exif[0x0112] = 6
    for kind in ("JPEG", "PNG", "WEBP", "TIFF"):
        output = io.BytesIO()
        frames[0].save(output, kind, exif=exif)
        yield f"on-its-side-{kind.lower()}", output.getvalue()
    output = io.BytesIO()
    frames[0].save(output, "JPEG", progressive=True, icc_profile=b"no profile" * 900)
    yield "progressive-jpeg", output.getvalue()
    rows = b"".join(b"\0" + bytes(range(60)) for _ in range(10))
    yield "16-bit-png", _png(10, 10, 16, 2, rows)
    yield "no-width-png", _png(0, 10, 8, 2, b"\0" * 10)
    yield "no-pixels-png", _png(10, 10, 8, 2, b"")
    yield "bomb-png", _png(30_000, 30_000, 8, 2, b"\0" * 10_000_000)
    yield "unsaid-bomb-png", _png(10, 10, 8, 2, b"\0" * 10_000_000)
    yield "filter-png", _png(10, 10, 8, 2, b"\7" * 310)
    sound = _png(10, 10, 8, 2, b"".join(b"\0" + bytes(30) for _ in range(10)))
    yield "comment-png", sound[:33] + _chunk(b"tEXt", b"Title\0" + b"x" * 900) + sound[33:]
    yield "text-bomb-png", sound[:33] + _chunk(b"zTXt", b"Title\0\0" + zlib.compress(bytes(50_000_000))) + sound[33:]
    yield "unknown-critical-png", sound[:33] + _chunk(b"ABCD", b"") + sound[33:]
    yield "two-headers-png", sound[:33] + sound[8:]
    yield "more-behind-png", sound + b"more" * 1000
    yield "heic-without-a-picture", b"\0\0\0\x18ftypheic\0\0\0\0mif1heic" + bytes(500)
    yield "jxl", b"\0\0\0\x0cJXL \r\n\x87\n" + bytes(500)
    yield "cr3", b"\0\0\0\x18ftypcrx \0\0\0\1crx isom" + bytes(500)


def _chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def _png(width: int, height: int, depth: int, colour: int, rows: bytes) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    chunks = _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(rows)) + _chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunks


def _mp3(frames: int = 9) -> bytes:
    return (b"\xff\xfb\x90\0" + bytes(413)) * frames


def _wav(width: int = 2) -> bytes:
    output = io.BytesIO()
    with wave.open(output, "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(width)
        file.setframerate(8000)
        file.writeframes(bytes(2 * width * 500))
    return output.getvalue()


def _damaged(data: bytes, rng: random.Random, flips: int) -> Iterator[bytes]:
    """Yield a file cut at each eighth, and with bytes changed where decoders look first and anywhere."""
    for eighth in range(1, 8):
        yield data[: len(data) * eighth // 8]
    yield data[:-1]
    for _ in range(flips):
        changed = bytearray(data)
        for _ in range(rng.choice((1, 1, 8))):
            changed[rng.randrange(12, rng.choice((min(64, len(data)), len(data))))] = rng.randrange(256)
        yield bytes(changed)


def _look(folder: Path, name: str, data: bytes) -> list[Media]:
    """Return what `read_media` shows of a file, and check it and the resource."""
    (folder / name).write_bytes(data)
    place = served(folder).readable(name)
    whole = with_safe_type(place, read_full_contents(place, CancelToken()), CancelToken())
    _check_resource(name, whole)
    try:
        shown = read_media(place)
    except Problem:  # it is text, or empty
        return []
    for media in shown:
        _check(name, media)
    return shown


def _check(name: str, media: Media) -> None:
    match media.kind:
        case "image":
            with Image.open(io.BytesIO(media.data)) as picture:
                picture.load()
                assert media.mime_type in TYPES, name
                assert picture.format is not None and Image.MIME[picture.format] == media.mime_type, name
                assert max(picture.size) <= LONGEST_SIDE and len(media.data) <= MAX_SHOWN_BYTES, name
                assert picture.mode in ("1", "L", "LA", "P", "RGB", "RGBA"), name
                assert getattr(picture, "n_frames", 1) == 1, name
                assert picture.getexif().get(0x0112, 1) == 1, name
        case "audio":
            assert media.mime_type in ("audio/wav", "audio/mpeg") and len(media.data) <= MOST_BYTES, name
        case "text":
            assert ": " in media.note and "resource file://" in media.note and not media.data, name
        case _:
            assert not is_media(media.mime_type), name


def _check_resource(name: str, whole: FullContents) -> None:
    if whole.text is None and whole.mime_type.startswith("image/"):
        with Image.open(io.BytesIO(whole.data)) as picture:
            picture.load()
            assert picture.format is not None and Image.MIME[picture.format] == whole.mime_type, name
            assert whole.mime_type in TYPES and len(whole.data) <= MOST_BYTES and max(picture.size) <= 8000, name
    if whole.mime_type.startswith("audio/"):
        assert whole.mime_type in ("audio/wav", "audio/mpeg"), name


@pytest.fixture
def without_pillow(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the process that decodes find no Pillow."""
    start = "import sys; sys.modules['PIL'] = None\n" + python_child._START_CODE
    workers = converter._WorkerPool()
    monkeypatch.setattr(python_child, "_START_CODE", start)
    monkeypatch.setattr(converter, "_pool", workers)
    monkeypatch.setattr(converter, "_cache", converter._ResultCache())
    yield
    workers.end()


@pytest.mark.slow
def test_a_picture_of_every_kind_leaves_in_a_type_that_models_take(tmp_path: Path) -> None:
    shown = {name: media for name, data in _every_kind() for media in _look(tmp_path, name, data)}
    pictures = {name.partition("-")[0] for name, media in shown.items() if media.kind == "image"}
    assert pictures >= {
        "png", "jpeg", "gif", "webp", "bmp", "tiff", "ico", "icns", "avif", "jpeg2000", "pcx", "ppm", "sgi", "qoi",
        "dds",
    }  # fmt: skip
    assert {shown[name].mime_type for name in ("gif-P", "bmp-RGB", "ico-RGBA", "tiff-CMYK", "png-I16")} == {"image/png"}
    assert {shown[name].mime_type for name in ("jpeg-CMYK", "webp-RGB", "avif-RGB", "jpeg2000-L")} == {"image/jpeg"}


def test_odd_pictures_leave_as_plain_ones_or_not_at_all(tmp_path: Path) -> None:
    shown = {name: media for name, data in _odd_ones() for media in _look(tmp_path, name, data)}
    films = [media for name, media in shown.items() if name.startswith("film")]
    assert all("the first of 3 frames" in media.note and media.kind == "image" for media in films)
    for name, media in shown.items():
        if name.startswith("on-its-side"):
            assert f"{_SIZE[1]} × {_SIZE[0]} pixels" in media.note and _size(media) == _SIZE[::-1], name
    refused = {name for name, media in shown.items() if media.kind == "text"}
    assert refused == {
        "no-width-png", "no-pixels-png", "bomb-png", "filter-png", "heic-without-a-picture", "jxl", "cr3",
    }  # fmt: skip
    assert "too many pixels" in shown["bomb-png"].note
    assert "no library here can convert it" in shown["jxl"].note
    assert "x" * 900 not in shown["comment-png"].data.decode("latin-1")


def _size(media: Media) -> tuple[int, int]:
    with Image.open(io.BytesIO(media.data)) as picture:
        return picture.size


def test_a_damaged_picture_never_leaves_as_it_is(tmp_path: Path) -> None:
    rng = random.Random(7)
    outcomes = {"image": 0, "text": 0}
    for kind in ("PNG", "JPEG", "GIF", "WEBP"):
        for number, data in enumerate(_damaged(_saved(kind, "RGB"), rng, 8)):
            for media in _look(tmp_path, f"{kind}{number}.{rng.choice(('png', 'jpg', 'mp3', 'txt'))}", data):
                outcomes[media.kind] = outcomes.get(media.kind, 0) + 1
    assert min(outcomes["image"], outcomes["text"]) > 5, outcomes


@pytest.mark.weekly
def test_pictures_of_every_kind_damaged_in_many_ways(tmp_path: Path) -> None:
    rng = random.Random()
    for name, data in [*_every_kind(), *_odd_ones()]:
        if len(data) < 100_000:
            for number, changed in enumerate(_damaged(data, rng, 10)):
                _look(tmp_path, f"{name}-{number}", changed)


@pytest.mark.usefixtures("without_pillow")
def test_without_the_extra_only_a_png_whose_rows_were_all_unpacked_leaves(tmp_path: Path) -> None:
    shown: dict[str, Media] = {}
    rng = random.Random(3)
    for kind in ("PNG", "JPEG", "GIF", "WEBP", "BMP", "AVIF"):
        [shown[kind]] = _look(tmp_path, kind, _saved(kind, "RGB"))
        if kind == "PNG":
            for number, data in enumerate(_damaged(_saved(kind, "RGB"), rng, 8)):
                _look(tmp_path, f"damaged-{number}", data)
    for name, data in _odd_ones():
        _look(tmp_path, name, data)
    assert [kind for kind, media in shown.items() if media.kind == "image"] == ["PNG"]
    for kind in ("JPEG", "GIF", "WEBP", "BMP", "AVIF"):
        assert "mcp-fs[images]" in shown[kind].note and "resource file://" in shown[kind].note, kind
    place = served(tmp_path).readable("PNG")
    assert with_safe_type(place, read_full_contents(place, CancelToken()), CancelToken()).mime_type == "image/png"
    place = served(tmp_path).readable("JPEG")
    assert (
        with_safe_type(place, read_full_contents(place, CancelToken()), CancelToken()).mime_type
        == "application/octet-stream"
    )


@pytest.mark.share(7)
@pytest.mark.parametrize("interlaced", [False, True])
@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA"])
@pytest.mark.usefixtures("without_pillow")
def test_every_form_of_png_is_checked_without_the_extra(tmp_path: Path, mode: str, interlaced: bool) -> None:
    picture = Image.effect_noise((13, 9), 90).convert("RGB").convert(mode)
    data = io.BytesIO()
    picture.save(data, "PNG", **({"transparency": 3} if mode in ("P", "L") else {}))
    content = _interlaced(picture) if interlaced and mode in ("L", "RGB", "RGBA", "LA") else data.getvalue()
    [media] = _look(tmp_path, "a.png", content)
    with Image.open(io.BytesIO(media.data)) as shown, Image.open(io.BytesIO(content)) as original:
        assert shown.convert("RGBA").tobytes() == original.convert("RGBA").tobytes()


def _interlaced(picture: Image.Image) -> bytes:
    """Return a picture as an interlaced PNG, which Pillow reads but does not write."""
    width, height = picture.size
    bands = len(picture.getbands())
    pixels = picture.tobytes()
    rows = b""
    for column, row, column_step, row_step in (
        (0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2),
    ):  # fmt: skip
        for y in range(row, height, row_step):
            columns = range(column, width, column_step)
            if columns:
                starts = [(y * width + x) * bands for x in columns]
                rows += b"\0" + b"".join(pixels[at : at + bands] for at in starts)
    colour = {"L": 0, "RGB": 2, "LA": 4, "RGBA": 6}[picture.mode]
    header = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 1)
    chunks = _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(rows)) + _chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunks


@pytest.mark.share(3)
@pytest.mark.diagonal
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP", "TIFF", "BMP"])
@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16"])
def test_a_large_picture_is_shown_in_small(tmp_path: Path, kind: str, mode: str) -> None:
    data = _saved(kind, mode, (3200, 800))
    if not data:
        pytest.skip(f"{kind} has no {mode}")
    [shown] = _look(tmp_path, "large", data)
    assert (shown.kind, shown.mime_type) == ("image", "image/jpeg")
    assert "3,200 × 800 pixels, shown in small" in shown.note
    assert _size(shown) == (1568, 392) and len(shown.data) < 1_000_000


def test_a_side_decides_what_is_shown_in_small(tmp_path: Path) -> None:
    Image.new("1", (LONGEST_SIDE + 1, 50)).save(tmp_path / "wide", "PNG")
    Image.new("1", (50, LONGEST_SIDE)).save(tmp_path / "tall", "PNG")
    [wide], [tall] = (read_media(served(tmp_path).readable(name)) for name in ("wide", "tall"))
    assert wide.mime_type == "image/jpeg" and "2,001 × 50 pixels, shown in small" in wide.note
    assert tall.mime_type == "image/png" and tall.data == (tmp_path / "tall").read_bytes()


@pytest.mark.parametrize(("side", "is_reduced"), [(900, False), (1300, True), (1500, True)])
def test_a_picture_of_too_many_bytes_is_written_in_fewer(side: int, is_reduced: bool, tmp_path: Path) -> None:
    noise = random.Random(1).randbytes(side * side * 3)
    picture = Image.frombytes("RGB", (side, side), noise)
    picture.save(tmp_path / "noise.png", compress_level=0)
    picture.save(tmp_path / "noise.bmp")
    picture.save(tmp_path / "noise.pdf", resolution=108)
    for name in ("noise.png", "noise.bmp"):
        [shown] = _look(tmp_path, name, (tmp_path / name).read_bytes())
        assert shown.mime_type == "image/jpeg" and ("in small" in shown.note) == is_reduced
        assert (_size(shown) == (side, side)) != is_reduced
    [page] = _look(tmp_path, "noise.pdf", (tmp_path / "noise.pdf").read_bytes())
    assert page.mime_type == "image/jpeg"


@pytest.mark.usefixtures("without_pillow")
def test_a_scan_without_pillow_is_a_smaller_png(tmp_path: Path) -> None:
    noise = random.Random(1).randbytes(900 * 900 * 3)
    Image.frombytes("RGB", (900, 900), noise).save(tmp_path / "scan.pdf", resolution=108)
    [page] = read_media(served(tmp_path).readable("scan.pdf"))
    assert page.mime_type == "image/png" and len(page.data) <= MAX_SHOWN_BYTES


def test_no_picture_is_opened_in_the_process_of_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Image.new("RGB", (9000, 20), "red").save(tmp_path / "wide", "JPEG")
    Image.new("RGB", (20, 20), "red").save(tmp_path / "small", "WEBP")
    (tmp_path / "bad").write_bytes((tmp_path / "small").read_bytes()[:40] + b"\xff" * 400)
    monkeypatch.delattr(Image, "open")
    monkeypatch.setattr(zlib, "decompressobj", None)
    [wide], [small], [bad] = (read_media(served(tmp_path).readable(name)) for name in ("wide", "small", "bad"))
    assert wide.mime_type == "image/jpeg" and "9,000 × 20 pixels, shown in small" in wide.note
    assert small.mime_type == "image/jpeg" and bad.kind == "text" and "damaged" in bad.note


def test_a_large_photograph_stands_upright(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by 90 degrees
    Image.new("RGB", (4000, 2000), "red").save(tmp_path / "photo", "JPEG", exif=exif)
    [shown] = read_media(served(tmp_path).readable("photo"))
    assert _size(shown) == (784, 1568) and "2,000 × 4,000 pixels" in shown.note


def test_a_picture_with_too_many_pixels_is_not_decoded(tmp_path: Path) -> None:
    Image.new("1", (20_000, 20_000)).save(tmp_path / "bomb", "PNG")
    tracemalloc.start()
    try:
        [shown] = read_media(served(tmp_path).readable("bomb"))
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()
    assert (shown.kind, shown.data) == ("text", b"")
    assert "20,000 × 20,000 pixels; not shown: it has too many pixels" in shown.note


def test_a_page_of_a_pdf_is_a_picture_that_models_take(tmp_path: Path) -> None:
    for name, size in (("letter", (612, 792)), ("poster", (9000, 4000)), ("strip", (14_400, 3))):
        [shown] = _look(tmp_path, f"{name}.pdf", pdf("", size=size))
        assert shown.kind == "image" and shown.mime_type == "image/png", name


@pytest.mark.parametrize("sound", [_wav(1), _wav(2), _wav(3), _mp3(), b"ID3\4\0\0\0\0\0\x0a" + bytes(10) + _mp3()])
def test_only_whole_wav_and_mp3_leave_as_sounds(tmp_path: Path, sound: bytes) -> None:
    [whole] = _look(tmp_path, "sound", sound)
    assert whole.kind == "audio" and whole.data == sound
    for number, data in enumerate(_damaged(sound, random.Random(1), 0)):
        for media in _look(tmp_path, f"cut{number}", data):
            complete = sound.endswith(_mp3(2)) and (len(data) - len(sound)) % 417 == 0
            assert media.kind == ("audio" if complete else "text"), number


@pytest.mark.parametrize(
    "sound",
    [
        b"OggS\0\2" + bytes(99),
        b"fLaC\0\0\0\x22" + bytes(99),
        b"FORM\0\0\0\x20AIFFCOMM" + bytes(99),
        b"\xff\xf1\x50\x80" + bytes(99),
        b"\0\0\0\x14ftypM4A \0\0\0\0M4A " + bytes(99),
        _wav().replace(b"fmt \x10\0\0\0\1\0", b"fmt \x10\0\0\0\x55\0"),
        _wav().replace(b"data", b"dada"),
        b"RF64\xff\xff\xff\xffWAVEds64" + bytes(99),
        b"ID3\4\0\0\0\0\0\x0a" + bytes(99),
    ],
)
def test_other_sounds_are_told_in_words(tmp_path: Path, sound: bytes) -> None:
    [media] = _look(tmp_path, "sound", sound)
    assert media.kind == "text" and media.mime_type.startswith("audio/") and "not played" in media.note
    place = served(tmp_path).readable("sound")
    assert (
        with_safe_type(place, read_full_contents(place, CancelToken()), CancelToken()).mime_type
        == "application/octet-stream"
    )


@pytest.mark.anyio
async def test_a_resource_is_called_a_picture_only_if_models_take_it(tmp_path: Path) -> None:
    policy = served(tmp_path)
    resources = Resources(policy)
    picture = _saved("PNG", "RGB")
    files = {"a.png": picture, "cut.png": picture[:-9], "a.jpg": _saved("JPEG", "RGB"), "a.avif": _saved("AVIF", "RGB")}
    kinds: dict[str, str | None] = {}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
        [contents] = await resources.read_file(policy.readable(name).uri)
        assert isinstance(contents, BlobResourceContents)
        kinds[name] = contents.mime_type
    unknown = "application/octet-stream"
    assert kinds == {"a.png": "image/png", "cut.png": unknown, "a.jpg": "image/jpeg", "a.avif": unknown}
