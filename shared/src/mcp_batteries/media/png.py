"""Checks a PNG with the standard library alone, and writes it anew with nothing but its pixels."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["SIGNATURE", "Png", "PngDamaged", "check_png", "pack_chunk"]

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_IHDR = struct.Struct(">IIBBBBB")
_CHUNK_NAME = re.compile(rb"[A-Za-z]{4}")
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
_PALETTE = 3
_SIMPLE_CHUNK_BYTES = {b"sRGB": 1, b"gAMA": 4, b"pHYs": 9, b"cHRM": 32, b"tIME": 7}
_KNOWN_CHUNKS = frozenset({b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND", b"tEXt"})
_TRANSPARENCY_BYTES = {0: 2, 2: 6}
_LAST_FILTER = 4
# First column, first row, step of columns and step of rows of each pass of an interlaced picture.
_ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))


class PngDamaged(Exception):
    """The file is not a PNG that every decoder takes; the text says what is wrong."""


@dataclass(frozen=True, slots=True)
class Png:
    """A PNG whose pixels were all unpacked once.

    Attributes:
        depth: bits of one channel.
        is_animated: whether other frames follow the first one.
        has_exif: whether there is something that may say how to turn it.
        is_plain: whether all chunks of the file are simple ones, in which no decoder finds fault.
        data: the picture written anew: header, palette, transparency and pixels.
    """

    width: int
    height: int
    depth: int
    is_animated: bool
    has_exif: bool
    is_plain: bool
    data: bytes


def check_png(data: bytes, most_pixels: int) -> Png:
    """Check every chunk, checksum and row of a PNG (RFC 2083).

    Raises:
        PngDamaged: something is wrong with it, or it has more than `most_pixels`.
    """
    chunks = list(_chunks(data))
    if not chunks or chunks[0][0] != b"IHDR" or len(chunks[0][1]) != _IHDR.size:
        raise PngDamaged("has no header")
    width, height, depth, colour, compression, filters, interlace = _IHDR.unpack(chunks[0][1])
    if depth not in _DEPTHS.get(colour, ()) or compression or filters or interlace > 1:
        raise PngDamaged("has a header that means nothing")
    if not width or not height:
        raise PngDamaged("has no pixels")
    if width * height > most_pixels:
        raise PngDamaged("has too many pixels")
    written = [SIGNATURE, pack_chunk(*chunks[0])]
    palette = transparency = b""
    pixels: list[bytes] = []
    for number, (name, body) in enumerate(chunks[1:], 1):
        match name:
            case b"IDAT":
                if pixels and chunks[number - 1][0] != b"IDAT":
                    raise PngDamaged("has its pixels in parts")
                pixels.append(body)
            case b"PLTE":
                palette = body
            case b"tRNS":
                transparency = body
            case b"IEND":
                break
            case _ if name[:1].isupper():
                raise PngDamaged("has a chunk that is not known")
            case _:
                continue
    if colour == _PALETTE:
        if not palette or len(palette) % 3 or len(palette) > 3 << depth:
            raise PngDamaged("has no sound palette")
        written.append(pack_chunk(b"PLTE", palette))
    is_fitting = len(transparency) == _TRANSPARENCY_BYTES.get(colour)
    if colour == _PALETTE:
        is_fitting = 0 < len(transparency) <= len(palette) // 3
    if is_fitting:
        written.append(pack_chunk(b"tRNS", transparency))
    packed = b"".join(pixels)
    _check_pixels(packed, list(_row_bytes(width, height, depth * _CHANNELS[colour], is_interlaced=bool(interlace))))
    written += [pack_chunk(b"IDAT", packed), pack_chunk(b"IEND", b"")]
    names = {name for name, _ in chunks}
    return Png(
        width,
        height,
        depth,
        is_animated=b"acTL" in names,
        has_exif=b"eXIf" in names,
        is_plain=(is_fitting or not transparency) and all(_is_simple(name, body) for name, body in chunks),
        data=b"".join(written),
    )


def pack_chunk(name: bytes, body: bytes) -> bytes:
    """Return a chunk with its length and its checksum."""
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def _is_simple(name: bytes, body: bytes) -> bool:
    return name in _KNOWN_CHUNKS or _SIMPLE_CHUNK_BYTES.get(name) == len(body)


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield name and body of each chunk up to the last one; what follows that is no part of the picture."""
    if not data.startswith(SIGNATURE):
        raise PngDamaged("does not begin as a PNG")
    position = len(SIGNATURE)
    while True:
        if position + 12 > len(data):
            raise PngDamaged("ends too early")
        (length,) = struct.unpack_from(">I", data, position)
        name = data[position + 4 : position + 8]
        end = position + 12 + length
        if not _CHUNK_NAME.fullmatch(name) or end > len(data):
            raise PngDamaged("ends too early")
        (checksum,) = struct.unpack_from(">I", data, end - 4)
        if checksum != zlib.crc32(data[position + 4 : end - 4]):
            raise PngDamaged("has a wrong checksum")
        yield name, data[position + 8 : end - 4]
        if name == b"IEND":
            return
        position = end


def _row_bytes(width: int, height: int, bits: int, *, is_interlaced: bool) -> Iterator[tuple[int, int]]:
    """Yield how many rows each pass has, and how many bytes each of them has with its filter."""
    if not is_interlaced:
        yield height, 1 + (width * bits + 7) // 8
        return
    for first_column, first_row, column_step, row_step in _ADAM7:
        columns = (width - first_column + column_step - 1) // column_step
        rows = (height - first_row + row_step - 1) // row_step
        if columns > 0 and rows > 0:
            yield rows, 1 + (columns * bits + 7) // 8


def _check_pixels(packed: bytes, passes: list[tuple[int, int]]) -> None:
    """Unpack all rows, no byte more than there must be, and look at the filter of each."""
    expected = sum(rows * size for rows, size in passes)
    inflater = zlib.decompressobj()
    try:
        rows_data = inflater.decompress(packed, expected + 1)
    except zlib.error:
        raise PngDamaged("has pixels that can't be unpacked") from None
    if len(rows_data) != expected or not inflater.eof or inflater.unused_data:
        raise PngDamaged("has another number of pixels than its header says")
    position = 0
    for rows, size in passes:
        used = rows_data[position : position + rows * size : size]
        if max(used) > _LAST_FILTER:
            raise PngDamaged("has rows with a filter that is not known")
        position += rows * size
