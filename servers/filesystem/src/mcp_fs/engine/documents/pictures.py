"""Makes pictures smaller that are too large to show, with Pillow from `mcp-fs[images]`."""

from __future__ import annotations

import io
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, BinaryIO

__all__ = ["reduced", "sides"]

_EDGE = 1568
"""Pixels of the longer side: above it hosts scale pictures down themselves."""
_MOST_PIXELS = 64_000_000
"""That are decoded, at four bytes each."""
_MOST_JPEG = 400_000_000
"""Of a JPEG, which is decoded in an eighth of its size."""
_QUALITY = 85


def sides(file: BinaryIO) -> tuple[int, int]:
    """Width and height in pixels of an image file.

    Raises:
        Exception: it is damaged, or of a kind that is not known.
    """
    with _opened(file) as image:
        return image.size


def reduced(file: BinaryIO) -> tuple[tuple[int, int], bytes]:
    """(width and height, the picture as a JPEG of at most 1568 pixels each way) of an image file.

    The picture is empty when it has too many pixels.

    Raises:
        Exception: as `sides`.
    """
    from PIL import Image, ImageOps

    with _opened(file) as image:
        size = width, height = image.size
        if width * height > (_MOST_JPEG if image.format == "JPEG" else _MOST_PIXELS):
            return size, b""
        image.draft("RGB", (_EDGE, _EDGE))
        ImageOps.exif_transpose(image, in_place=True)
        image.thumbnail((_EDGE, _EDGE))
        ground = Image.new("RGB", image.size, "white")
        with_alpha = image.convert("RGBA")
        ground.paste(with_alpha, mask=with_alpha.getchannel("A"))
        out = io.BytesIO()
        ground.save(out, "JPEG", quality=_QUALITY)
        return size, out.getvalue()


@contextmanager
def _opened(file: BinaryIO) -> Generator[Any]:
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = None  # what is too much is decided here, when the size is known
    with warnings.catch_warnings(action="ignore"), Image.open(file) as image:
        yield image
