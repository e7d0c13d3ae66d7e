"""GitHub's response."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["VERSION", "Reply"]

VERSION = "2022-11-28"
"""Of the API; GitHub keeps one for at least two years after the next."""


@dataclass(frozen=True)
class Reply:
    """What GitHub said.

    Attributes:
        headers: names in lower case.
        instead: what GitHub did with what was asked for, behind its name, where a redirect led to something else.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    instead: str = ""
