"""Pictures that are too large to show, made smaller; by Pillow, which comes with `mcp-fs[images]`."""

from __future__ import annotations

import importlib.util
import io
import warnings
from typing import BinaryIO

__all__ = ["LONGEST_SIDE", "can_reduce", "is_too_wide", "reduced"]

_EDGE = 1568
"""Pixels of the longer side: above it hosts scale pictures down themselves."""
LONGEST_SIDE = 8000
"""Pixels that every model takes."""
_MOST_PIXELS = 64_000_000
"""That are decoded, at four bytes each."""
_MOST_JPEG = 400_000_000
"""Of a JPEG, which is decoded in an eighth of its size."""
_QUALITY = 85


def can_reduce() -> bool:
    """Whether the library is installed."""
    return importlib.util.find_spec("PIL") is not None


def is_too_wide(file: BinaryIO) -> bool:
    """Whether a picture has a longer side than models take; False where that can't be told."""
    if not can_reduce():
        return False
    from PIL import Image

    file.seek(0)
    Image.MAX_IMAGE_PIXELS = None
    try:
        with warnings.catch_warnings(action="ignore"), Image.open(file) as image:  # reads no more than its beginning
            return max(image.size) > LONGEST_SIDE
    except (OSError, ValueError, SyntaxError, MemoryError):
        return False


def reduced(file: BinaryIO) -> tuple[str, bytes]:
    """(width by height as a text, the picture as a JPEG of at most 1568 pixels each way) of an image file.

    The picture is empty when it has too many pixels, and both are when it is damaged or of a kind that is not known.
    """
    from PIL import Image, ImageOps

    file.seek(0)
    Image.MAX_IMAGE_PIXELS = None  # what is too much is decided here, when the size is known
    try:
        with warnings.catch_warnings(action="ignore"), Image.open(file) as image:
            width, height = image.size
            size = f"{width:,} × {height:,} pixels"
            if width * height > (_MOST_JPEG if image.format == "JPEG" else _MOST_PIXELS):
                return size, b""
            image.draft("RGB", (_EDGE, _EDGE))
            picture = ImageOps.exif_transpose(image)
            picture.thumbnail((_EDGE, _EDGE))
            ground = Image.new("RGB", picture.size, "white")
            with_alpha = picture.convert("RGBA")
            ground.paste(with_alpha, mask=with_alpha.getchannel("A"))
            out = io.BytesIO()
            ground.save(out, "JPEG", quality=_QUALITY)
            return size, out.getvalue()
    except (OSError, ValueError, SyntaxError, MemoryError):
        return "", b""
