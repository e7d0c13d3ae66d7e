"""How countries write their postal codes: enough to tell that a code is of another country, not that it exists."""

from __future__ import annotations

import re

__all__ = ["bare_postal_code", "may_be_postal_code"]

# Countries whose codes are digits alone, by how many digits there are.
_DIGITS = {
    3: "IS TW", 4: "AT AU BE BG CH CY DK GE HU LU LV NO NZ PH PT SI SV TN ZA",
    5: "BA CR CU CZ DE DO DZ EE EG ES FI FR GR GT HN HR ID IL IT KR LT MA ME MX MY PE PK PL PR RS SA SE SK TH TR TW UA "
    "US UY VN",
    6: "BY CN CO EC IN KG RO RU SG TW UZ VN", 7: "CL IL JP PT", 8: "BR", 9: "PR US",
}  # fmt: skip
# Codes with letters, without spaces. The first part may stand alone.
_LETTERS = {
    "CA": re.compile(r"[A-Z]\d[A-Z](?:\d[A-Z]\d)?"),
    "GB": re.compile(r"[A-Z]{1,2}\d[A-Z\d]?(?:\d[A-Z]{2})?"),
    "IE": re.compile(r"[A-Z]\d[\dW](?:[A-Z\d]{4})?"),
    "NL": re.compile(r"\d{4}(?:[A-Z]{2})?"),
}
# As in `D-10115`.
_COUNTRY_BEFORE = re.compile(r"^[A-Z]{1,3}-(?=\d)")


def bare_postal_code(code: str) -> str:
    """Return `code` in capitals, without the country before it and what parts it: `D-10115` is 10115."""
    return re.sub(r"[\s-]", "", _COUNTRY_BEFORE.sub("", code.upper()))


def may_be_postal_code(country: str, code: str) -> bool:
    """Return False if the postal codes of `country` are certainly written otherwise.

    Args:
        country: ISO 3166-1 code in capitals.
    """
    bare = bare_postal_code(code)
    lettered = _LETTERS.get(country)
    if lettered is not None:
        return lettered.fullmatch(bare) is not None
    lengths = [length for length, countries in _DIGITS.items() if country in countries.split()]
    if not lengths:
        return True
    return bare.isdigit() and len(bare) in lengths
