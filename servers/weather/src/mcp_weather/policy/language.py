"""Decides in which language a caller wants names."""

from __future__ import annotations

from mcp_batteries.errors import Invalid, quote
from mcp_weather.settings import LANGUAGES

__all__ = ["parse_language"]


def parse_language(text: str) -> str:
    """Return the code of a language, ISO 639-1.

    Raises:
        Invalid: no language has the code. The geocoder would answer in English without a word.
    """
    if text not in LANGUAGES:
        raise Invalid(f"No language has the code {quote(text)}.", "Pass one of ISO 639-1, such as `de` or `zh`.")
    return text
