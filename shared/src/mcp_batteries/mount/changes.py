"""How `--check` triggers an update."""

from __future__ import annotations

from mcp_batteries.mount.settings import Settings
from mcp_batteries.program import Demonstration, program_of

__all__ = ["demonstration"]


def demonstration(settings: Settings) -> Demonstration:
    """The demonstration of the first server that has one."""
    found = (program_of(part.package()).demonstration(part) for part in settings.mounted)
    return next(filter(None, found), None)
