"""Turns any picture into a PNG or JPEG that the models of all hosts take; decoding happens here, so run it apart.

A picture that a model's API can't read, or that is too large for it, is answered with an error, and since hosts send
the whole conversation each time, so is every later turn. Hence nothing that somebody else wrote leaves: each picture is
decoded once and written anew. PNG and JPEG are the two types that all of them take: Claude, Gemini (no GIF), OpenAI (no
GIF that moves), and local ones (often no WebP).
"""

from __future__ import annotations

import enum
import importlib.util
import io
import math
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, BinaryIO

from mcp_batteries.media.png import Png, PngDamaged, check_png

__all__ = [
    "LONGEST_SIDE",
    "MAX_SHOWN_BYTES",
    "MOST_BYTES",
    "MOST_FILE_BYTES",
    "TYPES",
    "PhotoFacts",
    "Picture",
    "Refusal",
    "Refused",
    "is_safe",
    "prepare",
    "read_photo_facts",
]

# Pixels of a picture in a conversation with more than 20 pictures; with fewer, Claude takes 8,000.
LONGEST_SIDE = 2000
# This is 5 MB in base64, the smallest limit of any model.
MOST_BYTES = 3_750_000
# This is 1,000,000 in base64: Claude Desktop refuses an answer of more than 1,048,576 characters.
MAX_SHOWN_BYTES = 750_000
MOST_FILE_BYTES = 256 * 1024 * 1024
# Models take these types; any other type ends the conversation.
TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})

# Models themselves scale down a picture whose longer side has more pixels.
_REDUCED_SIDE = 1568
# Pixels of a picture that a person attaches: a conversation has few of those.
_MAX_ATTACHED_SIDE = 8000
# So many pixels are decoded, at four bytes each.
_MAX_PIXELS = 64_000_000
# A JPEG may have so many pixels, because it is decoded in an eighth of its size.
_MAX_JPEG_PIXELS = 400_000_000
_QUALITY = 85
_FULL_SIZE_QUALITY = 92
_LOSSY = frozenset({"JPEG", "MPO", "WEBP", "AVIF", "HEIF", "JPEG2000"})
# Tags of Exif.
_ORIENTATION = 0x0112
_MAKE = 0x010F
_MODEL = 0x0110
_CHANGED = 0x0132
_PHOTO_TAGS = 0x8769
_TAKEN = 0x9003
_SCANNED = 0x9004
_MAX_EXIF_CHARACTERS = 200
_UPRIGHT = 1
_ON_ITS_SIDE = frozenset({5, 6, 7, 8})
# Pillow makes no smaller picture of these modes that looks like the original.
_WITHOUT_SHADES = frozenset({"1", "P", "PA"})
_PLAIN_MODES = frozenset({"1", "L", "LA", "P", "RGB", "RGBA"})

# Pillow has readers that start other programs (EPS) or that nobody needs, so each type names its own.
_READERS: dict[str, list[str]] = {
    "image/png": ["PNG"],
    "image/jpeg": ["JPEG", "MPO"],
    "image/gif": ["GIF"],
    "image/webp": ["WEBP"],
    "image/avif": ["AVIF"],
    "image/heic": ["HEIF", "AVIF"],
    "image/bmp": ["BMP"],
    "image/tiff": ["TIFF"],
    "image/vnd.microsoft.icon": ["ICO"],
    "image/icns": ["ICNS"],
    "image/vnd.adobe.photoshop": ["PSD"],
    "image/jp2": ["JPEG2000"],
    "image/qoi": ["QOI"],
    "image/vnd.ms-dds": ["DDS"],
    "image/x-portable-anymap": ["PPM"],
    "image/x-pcx": ["PCX"],
    "image/x-sgi": ["SGI"],
}


class Refusal(enum.StrEnum):
    """Why a picture can't be shown."""

    DAMAGED = "damaged"
    # The library that decodes the type is missing; only a PNG needs none.
    NOT_INSTALLED = "not installed"
    TOO_MANY_PIXELS = "too many pixels"
    # There is no reader for the type.
    UNKNOWN = "unknown"

    def reason(self, package: str) -> str:
        """Return why a picture is not shown, for an answer of the server in that package."""
        match self:
            case Refusal.DAMAGED:
                return "it is damaged, ends too early, or is stored in a way that can't be decoded here"
            case Refusal.NOT_INSTALLED:
                return (
                    f"without the libraries of {package}[images] only a sound PNG of at most {LONGEST_SIDE:,} pixels a "
                    "side is shown"
                )
            case Refusal.TOO_MANY_PIXELS:
                return "it has too many pixels to decode"
            case Refusal.UNKNOWN:
                return "no library here can convert it to a type that models take"


class Refused(Exception):
    """The picture can't be shown.

    Attributes:
        size: width and height in pixels where they are known.
    """

    def __init__(self, refusal: Refusal, size: tuple[int, int] | None = None) -> None:
        super().__init__(refusal.value)
        self.refusal = refusal
        self.size = size


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture as it may leave.

    Attributes:
        mime_type: `image/png` or `image/jpeg`.
        width: of the file's picture as it stands upright.
        frames: of the file; only the first one is in `data`.
        is_reduced: whether `data` has fewer pixels.
    """

    mime_type: str
    data: bytes
    width: int
    height: int
    frames: int = 1
    is_reduced: bool = False


@dataclass(frozen=True, slots=True)
class PhotoFacts:
    """What a picture says of itself.

    Attributes:
        width: of the picture as it stands upright.
        taken_at: when, by the clock of the camera, in ISO 8601 without a time zone; empty if it does not say.
        camera: maker and model; empty if it does not say.
    """

    width: int
    height: int
    taken_at: str = ""
    camera: str = ""


def read_photo_facts(file: BinaryIO, mime_type: str) -> PhotoFacts:
    """Return what a picture says of itself; its pixels are not decoded.

    Raises:
        Refused: it is damaged, or there is no library for it.
    """
    with _open(file, mime_type) as image, warnings.catch_warnings(action="ignore"):
        width, height = image.size
        try:
            return _read_exif(image)
        except Exception:  # noqa: BLE001 - the size is of use even if the tags are damaged
            return PhotoFacts(width, height)


def _read_exif(image: Any) -> PhotoFacts:
    width, height = image.size
    if image.format == "PNG" and "exif" not in image.info:
        return PhotoFacts(width, height)  # Pillow would decode all of it to look behind its pixels
    tags = image.getexif()
    photo_tags = tags.get_ifd(_PHOTO_TAGS)
    if tags.get(_ORIENTATION, _UPRIGHT) in _ON_ITS_SIDE:
        width, height = height, width
    taken_at = ""
    for written in (photo_tags.get(_TAKEN), photo_tags.get(_SCANNED), tags.get(_CHANGED)):
        taken_at = taken_at or _parse_exif_time(written)
    maker = _clean_exif_text(tags.get(_MAKE))
    model = _clean_exif_text(tags.get(_MODEL))
    if not model.lower().startswith(maker.lower()):
        model = f"{maker} {model}".strip()
    return PhotoFacts(width, height, taken_at, model)


def _parse_exif_time(written: object) -> str:
    """Return a time of Exif, `2026:11:28 09:30:00`, in ISO 8601; empty where it is none."""
    try:
        return datetime.strptime(_clean_exif_text(written), "%Y:%m:%d %H:%M:%S").isoformat()
    except ValueError:
        return ""


def _clean_exif_text(written: object) -> str:
    """Return a text of Exif on one line, without the zeros and blanks that cameras put behind it."""
    if not isinstance(written, str):
        return ""
    return " ".join(written.replace("\0", " ").split())[:_MAX_EXIF_CHARACTERS]


def prepare(file: BinaryIO, mime_type: str) -> Picture:
    """Decode the picture in a file and write it anew as a PNG or JPEG that every model takes.

    Args:
        mime_type: of the file, by its first bytes.

    Raises:
        Refused: it can't be shown.
    """
    png = _prepare_png(file, mime_type)
    if png is not None:
        return png
    file.seek(0)
    image = _open(file, mime_type)
    with image, warnings.catch_warnings(action="ignore"):
        try:
            return _convert(image)
        except Refused:
            raise
        except MemoryError:
            raise Refused(Refusal.TOO_MANY_PIXELS, image.size) from None
        except Exception as error:  # damaged files make Pillow raise whatever there is
            raise Refused(Refusal.DAMAGED, image.size) from error


def is_safe(file: BinaryIO, mime_type: str) -> bool:
    """Return whether models take a file as it is: one of four types, whole, and not too large."""
    data = file.read(MOST_BYTES + 1)
    if mime_type not in TYPES or len(data) > MOST_BYTES:
        return False
    is_plain_png = False
    if mime_type == "image/png":
        try:
            png = check_png(data, _MAX_PIXELS)
        except PngDamaged:
            return False
        if not _is_still_png(png, _MAX_ATTACHED_SIDE):
            return False
        is_plain_png = png.is_plain
    try:
        with _open(io.BytesIO(data), mime_type) as image, warnings.catch_warnings(action="ignore"):
            if image.format == "MPO" or not _is_plain(image, _MAX_ATTACHED_SIDE):
                return False
            image.load()
    except Refused as refused:
        return is_plain_png and refused.refusal is Refusal.NOT_INSTALLED
    except Exception:  # noqa: BLE001 - damaged files make Pillow raise whatever there is
        return False
    return True


def _prepare_png(file: BinaryIO, mime_type: str) -> Picture | None:
    """Return a PNG that needs no conversion, checked and without what is not pixels; None for any other file."""
    if mime_type != "image/png":
        return None
    data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        return None
    try:
        png = check_png(data, LONGEST_SIDE * LONGEST_SIDE)
    except PngDamaged:
        return None
    if not _is_still_png(png, LONGEST_SIDE):
        return None
    needs_pillow = png.has_exif or len(png.data) > MAX_SHOWN_BYTES
    if needs_pillow and importlib.util.find_spec("PIL") is not None:
        return None  # Pillow turns it upright, and writes it in fewer bytes
    return Picture("image/png", png.data, png.width, png.height)


def _is_still_png(png: Png, max_side: int) -> bool:
    """Return whether a PNG is one picture of at most 8 bits a channel, with at most `max_side` pixels a side."""
    return not png.is_animated and png.depth <= 8 and max(png.width, png.height) <= max_side


def _open(file: BinaryIO, mime_type: str) -> Any:
    """Open a picture with the readers of its type; nothing is decoded yet."""
    readers = _READERS.get(mime_type)
    if readers is None:
        raise Refused(Refusal.UNKNOWN)
    try:
        from PIL import Image
    except ImportError:
        raise Refused(Refusal.NOT_INSTALLED) from None
    if "HEIF" in readers:
        try:
            import pi_heif  # pyright: ignore[reportMissingTypeStubs]
        except ImportError:
            raise Refused(Refusal.NOT_INSTALLED) from None
        heif: Any = pi_heif
        heif.register_heif_opener()
    Image.MAX_IMAGE_PIXELS = None  # what is too much is decided here, when the size is known
    try:
        with warnings.catch_warnings(action="ignore"):
            image: Any = Image.open(file, formats=readers)
    except Exception as error:  # damaged files make Pillow raise whatever there is
        raise Refused(Refusal.DAMAGED) from error
    if 0 in image.size:
        raise Refused(Refusal.DAMAGED)
    max_pixels = _MAX_PIXELS
    if image.format in ("JPEG", "MPO"):
        max_pixels = _MAX_JPEG_PIXELS
    if image.width * image.height > max_pixels:
        raise Refused(Refusal.TOO_MANY_PIXELS, image.size)
    return image


def _is_plain(image: Any, longest_side: int) -> bool:
    """Return whether a picture is upright, still, of usual colours and not too large."""
    return (
        max(image.size) <= longest_side
        and image.mode in _PLAIN_MODES
        and getattr(image, "n_frames", 1) == 1
        and image.getexif().get(_ORIENTATION, _UPRIGHT) == _UPRIGHT
    )


def _convert(image: Any) -> Picture:
    """Decode a picture, turn it upright, and write it in a size that models take."""
    from PIL import ImageOps

    width, height = image.size
    frames = _count_frames(image)
    is_lossy = image.format in _LOSSY
    is_too_wide = max(image.size) > LONGEST_SIDE
    if is_too_wide:
        image.draft("RGB", (_REDUCED_SIDE, _REDUCED_SIDE))
    image.load()
    with suppress(Exception):  # a picture is of use even if what is said of it is damaged
        if image.getexif().get(_ORIENTATION, _UPRIGHT) in _ON_ITS_SIDE:
            width, height = height, width
        ImageOps.exif_transpose(image, in_place=True)
    if not is_too_wide:
        plain = _in_plain_colours(image)
        for mime_type, data in _full_size_forms(plain, is_lossy=is_lossy):
            if len(data) <= MAX_SHOWN_BYTES:
                return Picture(mime_type, data, width, height, frames)
        image = plain
    elif image.mode in _WITHOUT_SHADES:
        image = _in_plain_colours(image)
    return Picture("image/jpeg", _as_small_jpeg(image), width, height, frames, is_reduced=True)


def _as_small_jpeg(image: Any) -> bytes:
    """Return a picture as a JPEG of a size that models keep and hosts take; `image` becomes as small."""
    side = _REDUCED_SIDE
    while True:
        image.thumbnail((side, side))
        data = _as_jpeg(_in_plain_colours(image), _QUALITY)
        if len(data) <= MAX_SHOWN_BYTES:
            return data
        side = side * 4 // 5


def _count_frames(image: Any) -> int:
    if image.format == "MPO":
        return 1  # the others are previews and depths, not a film
    with suppress(Exception):  # the first one is of use even if the others are damaged
        return int(getattr(image, "n_frames", 1))
    return 1


def _full_size_forms(image: Any, *, is_lossy: bool) -> Iterator[tuple[str, bytes]]:
    """Yield a picture in all its pixels as a PNG if nothing was lost yet, and as a JPEG, the better one first."""
    if not is_lossy or "A" in image.getbands():
        yield "image/png", _as_png(image)
    else:
        yield "image/jpeg", _as_jpeg(image, _FULL_SIZE_QUALITY)
    yield "image/jpeg", _as_jpeg(image, _QUALITY)


def _in_plain_colours(image: Any) -> Any:
    """Return a picture in eight bits of grey or of red, green and blue, with alpha where it has any."""
    if image.mode.startswith("I;16"):
        return _in_grey(image.convert("I"), 0, 65535)
    if image.mode in ("I", "F"):
        return _in_grey(image, *image.getextrema())
    if image.mode in ("1", "L"):
        return image.convert("L")
    if image.has_transparency_data:
        return image.convert("RGBA")
    return image.convert("RGB")


def _in_grey(image: Any, darkest: float, lightest: float) -> Any:
    """Return a picture of integers or fractions in eight bits, so that its darkest value is black."""
    if not (math.isfinite(darkest) and math.isfinite(lightest)):
        raise Refused(Refusal.DAMAGED)
    scale = 255 / ((lightest - darkest) or 1)

    def shade(value: Any) -> Any:
        return value * scale - darkest * scale

    return image.convert("F").point(shade).convert("L")


def _as_png(image: Any) -> bytes:
    output = io.BytesIO()
    image.info.clear()  # profiles and texts of others
    image.save(output, "PNG")
    return output.getvalue()


def _as_jpeg(image: Any, quality: int) -> bytes:
    """Return a picture as a JPEG, on white where it is transparent."""
    from PIL import Image

    if "A" in image.getbands():
        ground = Image.new("RGB", image.size, "white")
        ground.paste(image, mask=image.getchannel("A"))
        image = ground
    output = io.BytesIO()
    image.info.clear()
    image.save(output, "JPEG", quality=quality)
    return output.getvalue()
