"""Who calls over HTTP, and what they may: imported only where a setting asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Access"]


@dataclass(frozen=True)
class Access:
    """Whose tokens open the door: those of a file, of the environment, of an OAuth issuer, or of all."""

    file: str | None = None
    lines: str | None = None
    issuer: str | None = None
    audience: str | None = None
    """What an issuer's tokens must be issued for; by default this server's URL."""
    algorithms: Sequence[str] = ()
    scope_prefix: str = ""
