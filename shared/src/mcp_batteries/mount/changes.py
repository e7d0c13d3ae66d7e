"""How `--check` triggers an update."""

from __future__ import annotations

from mcp_batteries.mount.settings import Settings
from mcp_batteries.program import Demonstration, program_of

__all__ = ["demonstration"]


def demonstration(settings: Settings) -> Demonstration:
    """Return the demonstration of the first server that has one."""
    for settings_of_server in settings.mounted:
        of_server = program_of(settings_of_server.package()).demonstration(settings_of_server)
        if of_server is not None:
            return of_server
    return None
