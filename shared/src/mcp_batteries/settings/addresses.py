"""Finds the signs in an address's password that would end it early, so that messages show its rest as a host."""

from __future__ import annotations

import re

__all__ = ["unencoded_signs"]

_ENDS_AUTHORITY = re.compile(r"[/?#]")
_HOST = re.compile(r"[^:]*(:\d+)?")
_BARE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_ESCAPES = {"@": "%40", "/": "%2F", "?": "%3F", "#": "%23", "%": "%25", " ": "%20"}
_NAMES = {" ": "a space"}


def unencoded_signs(url: str) -> str:
    """Return how to write the signs in the password of `url` that have a meaning of their own; empty if there are none.

    The text names each sign once, as in "/ as %2F and @ as %40", and nothing of the password.
    """
    scheme, separator, address = url.partition("://")
    if not separator or not scheme:
        return ""
    userinfo, at, _ = address.rpartition("@")
    if not at:
        return ""
    authority = _ENDS_AUTHORITY.split(address, maxsplit=1)[0]
    if _is_only_in_options(address[len(authority) :]):
        userinfo = authority.rpartition("@")[0]
    elif "@" not in authority and scheme in ("http", "https") and _HOST.fullmatch(authority):
        # Without a password an @ can stand in the path of a page, as in https://host:8000/@someone.
        return ""
    signs = [sign for sign in _ESCAPES if sign != "%" and sign in userinfo]
    if _BARE_PERCENT.search(userinfo):
        signs.append("%")
    return " and ".join(f"{_NAMES.get(sign, sign)} as {_ESCAPES[sign]}" for sign in signs)


def _is_only_in_options(location: str) -> bool:
    """Return whether each @ in `location`, which follows the host, is in the value of an option."""
    path, _, query = location.partition("?")
    if "@" in path or "#" in query:
        return False
    return all("=" in option.partition("@")[0] for option in query.split("&") if "@" in option)
