"""GitHub's response, before anything is made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["API_VERSION", "Response"]

# GitHub keeps a version of its API for at least two years after the next.
API_VERSION = "2022-11-28"


@dataclass(frozen=True)
class Response:
    """What GitHub answered.

    Attributes:
        headers: by their names in lower case.
        redirect_note: what GitHub did with what was asked for, to stand behind its name, where a redirect led to
            something else.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    redirect_note: str = ""
