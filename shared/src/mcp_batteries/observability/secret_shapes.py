"""What secrets look like, for code that warns of them and code that must not write them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

__all__ = ["SHAPES", "hidden"]

SHAPES = {
    "a GitHub token": r"\b(?:gh[pousr]_\w{20,}|github_pat_\w{20,})",
    "a private key": r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
    "an AWS key": r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    "an API key": r"\b(?:sk|pk|rk)[-_](?:live[-_]|test[-_]|proj-|ant-)?[\w-]{20,}|\bAIza[\w-]{30,}|\bglpat-[\w-]{20,}",
    "a Slack token": r"\bxox[abprs]-[\w-]{10,}",
    "a JSON web token": r"\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*",
    "a password": r"(?i)\b(?:passw(?:or)?d|secret|api[_-]?key|access[_-]?token)\b[\"']?\s*[:=]\s*[\"']?[^\s\"']{4,}",
    "a password in an address": r"\b[a-z][\w+.-]{0,30}://[^\s/:@]{1,200}:[^\s/@]{1,1000}@",
}
"""A name for each, and the regular expression that finds it."""

_COMPILED = [
    # Of a key in several lines the lines go too.
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL),
    *map(re.compile, SHAPES.values()),
]
_NAMES = re.compile(r"passw(?:or)?d|secret|api[_-]?key|access[_-]?token|authorization|credential", re.IGNORECASE)


def hidden(data: Any, known: re.Pattern[str]) -> Any:
    """`data` (JSON) with `***` for every value that looks like a secret, has a secret's name, or is in `known`."""
    match data:
        case str():
            for shape in (known, *_COMPILED):
                data = shape.sub("***", data)
            return data
        case Mapping():
            members = cast("Mapping[str, Any]", data).items()
            return {
                name: "***" if isinstance(value, str) and _NAMES.search(name) else hidden(value, known)
                for name, value in members
            }
        case list():
            return [hidden(item, known) for item in cast("list[Any]", data)]
        case _:
            return data
