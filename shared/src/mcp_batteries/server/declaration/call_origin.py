"""Which call something is done for."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CallOrigin"]


@dataclass(frozen=True)
class CallOrigin:
    """Which tool is called, and by whom; a tool's function gets it by its type.

    Attributes:
        caller: over HTTP the owner of the token or the address, each in words that tell them apart; empty over stdio,
            where it is always the same.
    """

    tool: str
    caller: str
