"""What `--install`, `--uninstall` and `--purge` do, alone and together."""

from __future__ import annotations

from mcp_batteries.cli.install import install, uninstall
from mcp_batteries.cli.leftovers import leftovers, purge
from mcp_batteries.cli.places import Places
from mcp_batteries.errors import Invalid, NotFound
from mcp_batteries.settings import Settings

__all__ = ["set_up"]


def set_up(settings: Settings, places: Places | None = None) -> str:
    """Do what was asked for instead of serving; returns the message for the person.

    Raises:
        Problem: it could not be done.
    """
    places = places or Places.of_this_user()
    if settings.install:
        if settings.purge or settings.uninstall:
            raise Invalid("--install does not go with --uninstall or --purge.", "Do one after the other.")
        return install(settings.install, settings, places)
    messages: list[str] = []
    if settings.uninstall:
        try:
            messages.append(uninstall(settings.uninstall, settings, places))
        except NotFound as problem:
            if not settings.purge:
                raise
            messages.append(str(problem))
    messages.append(purge(settings, places) if settings.purge else leftovers(settings))
    return "\n".join(filter(None, messages))
