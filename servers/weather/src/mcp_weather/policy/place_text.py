"""Reads what a caller writes for a place: an alias, coordinates, or a name with its regions."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from mcp_batteries.errors import Invalid, quote
from mcp_weather.geography.coordinates import AmbiguousHemisphere, parse_coordinates
from mcp_weather.policy.place import Place, point_at
from mcp_weather.policy.resource_uri import RESOURCE_URI
from mcp_weather.policy.weather_words import drop_weather_words

__all__ = [
    "MAX_PLACE_CHARACTERS",
    "PlaceName",
    "is_code",
    "is_district_number",
    "is_postal_code",
    "parse_place",
    "read_with_brackets",
    "shorten",
]

# Links to a pin of a map have 300 and more.
MAX_PLACE_CHARACTERS = 600

_POSTAL_CODE = re.compile(r"\d[\d -]{1,10}\d")
_LINK = re.compile("https?:", re.IGNORECASE)
_MAX_REGION_WORDS = 2
_MAX_DEGREES = 180
# Of all scripts, and brackets; dashes only with spaces, since many names have one.
_SEPARATOR = re.compile(r"[,，、،؛;；|()（）\[\]【】「」〔〕]| [-–—>→] ")
_SEPARATOR_BUT_BRACKETS = re.compile(r"[,，、،؛;；|]| [-–—>→] ")
_BRACKETS = re.compile(r"[(（\[【「〔].+[)）\]】」〕]")
# Soft hyphens, spaces without a width and marks of direction come along with copied text.
_UNSEEN = str.maketrans("", "", "\u00ad\u200b\u200e\u200f\u2060\ufeff")
# As in addresses of the web and names of time zones.
_URL_SPACE = re.compile(r"(?<=\w)(?:%20|[+_])(?=\w)")
# A postal code of any country, or a part of one.
_CODE = re.compile(r"(?=\S*\d)\S{2,}(?: (?=\S*\d)\S{2,})*")
# As in `Paris 15` and `Paris 15e`: no postal code is as short.
_DISTRICT_NUMBER = re.compile(r"\d{1,2}(?:\.|er?|st|nd|rd|th)?", re.IGNORECASE)
_OPENING_BRACKETS = "(（[【「〔"
_PLACE_EXAMPLES = "Pass a name such as `Zurich`, coordinates such as `47.37,8.55`, or a saved alias."


@dataclass(frozen=True)
class PlaceName:
    """A name to look up.

    Attributes:
        regions: names of countries, states or postal codes that it lies in.
        text: all of it as the caller wrote it.
        note: what to say of how the name was read.
    """

    name: str
    regions: tuple[str, ...]
    text: str
    note: str = ""


def parse_place(text: str, saved_places: Mapping[str, Place]) -> Place | PlaceName:
    """Return what `text` names: a saved alias, coordinates, or a name to look up.

    Raises:
        Invalid: it is none of them, or not a point on the globe.
    """
    if len(text) > MAX_PLACE_CHARACTERS:
        # The patterns of coordinates take the square of its length.
        raise Invalid(f"A place has at most {MAX_PLACE_CHARACTERS} characters.", _PLACE_EXAMPLES)
    words = _normalize(text)
    saved_place = saved_places.get(words.casefold())
    if saved_place is not None:
        return saved_place
    point = _parse_point(text, words)
    if point is not None:
        return point
    _refuse_failed_coordinates(text, words)
    if is_postal_code(words):
        return PlaceName(words, (), words)
    return _parse_name(text, words)


def _normalize(text: str) -> str:
    """Return `text` without what nobody sees, and of the URI of a resource the place in it."""
    words = " ".join(text.translate(_UNSEEN).split())
    uri = RESOURCE_URI.fullmatch(words)
    if uri is not None:
        return unquote(uri["place"])
    return words


def _parse_point(text: str, words: str) -> Place | None:
    """Return the place at the coordinates in `words`; None if they are something else.

    Raises:
        Invalid: they are not a point on the globe, or have both a sign and a direction.
    """
    try:
        coordinates = parse_coordinates(words)
    except AmbiguousHemisphere:
        raise Invalid(
            f"{quote(text)} has both a sign and a direction.", "Use one of them: `-33.9,18.4` or `33.9S,18.4E`."
        ) from None
    if coordinates is None:
        return None
    return point_at(coordinates.latitude, coordinates.longitude, resolved="coordinates")


def _refuse_failed_coordinates(text: str, words: str) -> None:
    """Raise `Invalid` if `words` should have been coordinates, and so are no name to look up."""
    if _LINK.match(words):
        # A link may say more of its owner than the service that knows names needs to learn.
        raise Invalid(f"{quote(text)} is a link without coordinates, and no link is opened.", _PLACE_EXAMPLES)
    if _are_impossible_numbers(words):
        raise Invalid(f"{quote(text)} is not a point: both must be numbers.", "Write them as `47.37,8.55`.")
    if "°" in words:
        raise Invalid(f"{quote(text)} can't be read as coordinates.", "Write them as `47.37,8.55`.")


def _parse_name(text: str, words: str) -> PlaceName:
    """Return the name to look up, and the regions that stand behind it.

    Raises:
        Invalid: it has less than two characters, or no letter.
    """
    if len(words) < 2 or not any(letter.isalpha() for letter in words):
        raise Invalid(f"{quote(text)} is not a place.", _PLACE_EXAMPLES)
    bare_words = drop_weather_words(_URL_SPACE.sub(" ", words))
    note = ""
    if bare_words != words:
        note = f"taken as {quote(bare_words)}; "
    name, *regions = (item.strip() for item in _SEPARATOR.split(bare_words.lstrip(_OPENING_BRACKETS)))
    if len(name) < 2:
        raise Invalid(f"{quote(text)} is not a place.", "Pass the name first, as in `Springfield, Illinois`.")
    divided_regions: list[str] = []
    for region in regions:
        divided_regions += _divide_region(region)
    return PlaceName(name, tuple(divided_regions), words, note)


def is_postal_code(text: str) -> bool:
    """Return whether `text` is a postal code of digits."""
    return _POSTAL_CODE.fullmatch(text) is not None


def is_code(text: str) -> bool:
    """Return whether `text` may be a postal code: no country or state has a digit in each word of its name."""
    return _CODE.fullmatch(text) is not None


def is_district_number(text: str) -> bool:
    """Return whether `text` may be the number of a district of a city."""
    return _DISTRICT_NUMBER.fullmatch(text) is not None


def _divide_region(region: str) -> list[str]:
    """Return the state and the postal code of `NY 10001`; any other region alone."""
    words = region.split()
    state = list(itertools.takewhile(lambda word: not is_code(word), words))
    return [part for part in (" ".join(state), " ".join(words[len(state) :])) if part]


def read_with_brackets(place_name: PlaceName) -> PlaceName | None:
    """Return the reading in which brackets belong to the name, as in `Frankfurt (Oder), Germany`; None without any."""
    parts = [part.strip() for part in _SEPARATOR_BUT_BRACKETS.split(drop_weather_words(place_name.text))]
    if _BRACKETS.search(parts[0]):
        return PlaceName(parts[0], tuple(parts[1:]), place_name.text, place_name.note)
    if _BRACKETS.search(parts[-1]):
        return PlaceName(parts[-1], tuple(parts[:-1]), place_name.text, place_name.note)
    return None


def _are_impossible_numbers(words: str) -> bool:
    """Return whether the text is two numbers, of which one is infinite or none at all."""
    parts = words.strip("()[] ").split(",")
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        return False
    if len(numbers) != 2 or all(math.isfinite(number) for number in numbers):
        return False
    # Nan, 55000 is a town in Thailand and its postal code.
    return all(abs(number) <= _MAX_DEGREES for number in numbers if math.isfinite(number))


def shorten(place_name: PlaceName) -> list[PlaceName]:
    """Return `place_name` with its last words as the region: `Arlington VA`, `Albany New York`.

    Several words may be one region or one each: `Portland Oregon USA`.
    """
    words = place_name.name.split()
    readings: list[PlaceName] = []
    for region_words in range(1, min(len(words) - 1, _MAX_REGION_WORDS) + 1):
        name = " ".join(words[:-region_words])
        if len(name) < 2:
            continue
        last_words = words[-region_words:]
        one_region = (" ".join(last_words),)
        readings.extend(
            PlaceName(name, (*regions, *place_name.regions), place_name.text)
            for regions in dict.fromkeys([one_region, tuple(last_words)])
        )
    return readings
