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
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
