"""Checks a PNG with the standard library alone, and writes it anew with nothing but its pixels."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

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
    header = _read_header(chunks, most_pixels)
    contents = _collect_contents(chunks)
    written = [SIGNATURE, pack_chunk(b"IHDR", header.pack())]
    if header.colour == _PALETTE:
        if not _is_sound_palette(contents.palette, header.depth):
            raise PngDamaged("has no sound palette")
        written.append(pack_chunk(b"PLTE", contents.palette))
    has_fitting_transparency = _is_fitting_transparency(contents, header.colour)
    if has_fitting_transparency:
        written.append(pack_chunk(b"tRNS", contents.transparency))
    _check_pixels(contents.pixels, list(_row_bytes(header)))
    written.append(pack_chunk(b"IDAT", contents.pixels))
    written.append(pack_chunk(b"IEND", b""))
    names = {chunk.name for chunk in chunks}
    has_simple_chunks = all(_is_simple(chunk) for chunk in chunks)
    return Png(
        header.width,
        header.height,
        header.depth,
        is_animated=b"acTL" in names,
        has_exif=b"eXIf" in names,
        is_plain=has_simple_chunks and (has_fitting_transparency or not contents.transparency),
        data=b"".join(written),
    )


class _Chunk(NamedTuple):
    name: bytes
    body: bytes


class _Header(NamedTuple):
    """The fields of IHDR, as they stand there."""

    width: int
    height: int
    depth: int
    colour: int
    compression: int
    filters: int
    interlace: int

    def pack(self) -> bytes:
        return _IHDR.pack(*self)


class _Contents(NamedTuple):
    """What the critical chunks of a picture hold, and its transparency."""

    palette: bytes
    transparency: bytes
    pixels: bytes


def _read_header(chunks: list[_Chunk], most_pixels: int) -> _Header:
    if not chunks or chunks[0].name != b"IHDR" or len(chunks[0].body) != _IHDR.size:
        raise PngDamaged("has no header")
    header = _Header(*_IHDR.unpack(chunks[0].body))
    is_known_format = header.depth in _DEPTHS.get(header.colour, ()) and header.interlace <= 1
    if not is_known_format or header.compression or header.filters:
        raise PngDamaged("has a header that means nothing")
    if not header.width or not header.height:
        raise PngDamaged("has no pixels")
    if header.width * header.height > most_pixels:
        raise PngDamaged("has too many pixels")
    return header


def _collect_contents(chunks: list[_Chunk]) -> _Contents:
    """Return what the chunks behind the header hold; the pixels must be in chunks that follow each other."""
    palette = b""
    transparency = b""
    pixels: list[bytes] = []
    for previous, chunk in pairwise(chunks):
        match chunk.name:
            case b"IDAT":
                if pixels and previous.name != b"IDAT":
                    raise PngDamaged("has its pixels in parts")
                pixels.append(chunk.body)
            case b"PLTE":
                palette = chunk.body
            case b"tRNS":
                transparency = chunk.body
            case b"IEND":
                break
            case name if name[:1].isupper():
                raise PngDamaged("has a chunk that is not known")
            case _:
                continue
    return _Contents(palette, transparency, b"".join(pixels))


def _is_sound_palette(palette: bytes, depth: int) -> bool:
    return 0 < len(palette) <= 3 << depth and len(palette) % 3 == 0


def _is_fitting_transparency(contents: _Contents, colour: int) -> bool:
    if colour == _PALETTE:
        return 0 < len(contents.transparency) <= len(contents.palette) // 3
    return len(contents.transparency) == _TRANSPARENCY_BYTES.get(colour)


def pack_chunk(name: bytes, body: bytes) -> bytes:
    """Return a chunk with its length and its checksum."""
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def _is_simple(chunk: _Chunk) -> bool:
    return chunk.name in _KNOWN_CHUNKS or _SIMPLE_CHUNK_BYTES.get(chunk.name) == len(chunk.body)


def _chunks(data: bytes) -> Iterator[_Chunk]:
    """Yield each chunk up to the last one; what follows that is no part of the picture."""
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
        yield _Chunk(name, data[position + 8 : end - 4])
        if name == b"IEND":
            return
        position = end


def _row_bytes(header: _Header) -> Iterator[tuple[int, int]]:
    """Yield how many rows each pass has, and how many bytes each of them has with its filter."""
    width = header.width
    height = header.height
    bits = header.depth * _CHANNELS[header.colour]
    if not header.interlace:
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
