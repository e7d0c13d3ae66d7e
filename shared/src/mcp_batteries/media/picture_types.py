"""Tells by the first bytes of a file which kind of picture it is."""

from __future__ import annotations

import struct

__all__ = ["HEAD_BYTES", "brands_of", "picture_type"]

# So many bytes at the beginning of a file are enough to tell its type.
HEAD_BYTES = 512

_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
    (b"II+\0", "image/tiff"),
    (b"MM\0+", "image/tiff"),
    (b"\0\0\1\0", "image/vnd.microsoft.icon"),
    (b"icns", "image/icns"),
    (b"8BPS", "image/vnd.adobe.photoshop"),
    (b"\0\0\0\x0cjP  \r\n\x87\n", "image/jp2"),
    (b"\xff\x4f\xff\x51", "image/jp2"),
    (b"\0\0\0\x0cJXL \r\n\x87\n", "image/jxl"),
    (b"qoif", "image/qoi"),
    (b"DDS \x7c\0\0\0", "image/vnd.ms-dds"),
    (b"\x01\xda", "image/x-sgi"),
    *((b"P%d" % number, "image/x-portable-anymap") for number in (4, 5, 6, 7)),
    *((b"\n%c\1" % version, "image/x-pcx") for version in (0, 2, 3, 5)),
)
_HEIF_BRANDS = frozenset(b"heic heix heim heis hevc hevx hevm hevs mif1 mif2 msf1 miaf 1pic".split())
_AVIF_BRANDS = frozenset({b"avif", b"avis"})
_CANON_RAW_BRAND = b"crx "


def picture_type(head: bytes) -> str | None:
    """Return the MIME type of the picture that begins with `head`; None if it is none of a known kind."""
    brands = brands_of(head)
    if brands:
        return _type_by_brands(brands)
    if head[8:12] == b"WEBP":
        return "image/webp" if head.startswith(b"RIFF") else None
    for magic, mime_type in _MAGIC:
        if head.startswith(magic):
            return mime_type if _is_certain(mime_type, head) else None
    return None


def brands_of(head: bytes) -> list[bytes]:
    """Return the brands of a file of ISO/IEC 14496-12 (MP4, HEIF), the main one first; none if it is no such file."""
    if head[4:8] != b"ftyp" or len(head) < 12:
        return []
    (size,) = struct.unpack_from(">I", head)
    others = head[16 : min(size, len(head))]
    return [head[8:12], *(others[at : at + 4] for at in range(0, len(others) - 3, 4))]


def _type_by_brands(brands: list[bytes]) -> str | None:
    if brands[0] == _CANON_RAW_BRAND:
        return "image/x-canon-cr3"
    if not _AVIF_BRANDS.isdisjoint(brands):
        return "image/avif"
    if not _HEIF_BRANDS.isdisjoint(brands):
        return "image/heic"
    return None


def _is_certain(mime_type: str, head: bytes) -> bool:
    """Return whether what follows the first bytes fits, where those are few or common."""
    match mime_type:
        case "image/png":
            return head[12:16] == b"IHDR"
        case "image/bmp":
            return head[6:10] == b"\0\0\0\0"
        case "image/vnd.microsoft.icon":
            return _is_icon(head)
        case "image/x-portable-anymap":
            return head[2:3].isspace()
        case "image/x-pcx":
            return _is_pcx(head)
        case "image/x-sgi":
            return _is_sgi(head)
        case _:
            return True


def _is_icon(head: bytes) -> bool:
    """Return whether the file holds pictures, the first with the reserved byte of its entry as zero."""
    return len(head) > 9 and head[4:6] != b"\0\0" and head[9] == 0


def _is_pcx(head: bytes) -> bool:
    """Return whether a pixel has a possible number of bits, and the reserved byte is zero."""
    return len(head) > 128 and head[3] in (1, 2, 4, 8) and head[64] == 0


def _is_sgi(head: bytes) -> bool:
    """Return whether the form of storage, the bytes of a value and the number of dimensions are possible."""
    return len(head) > 104 and head[2] < 2 and head[3] in (1, 2) and head[4:6] in (b"\0\1", b"\0\2", b"\0\3")
