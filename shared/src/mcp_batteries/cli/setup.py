"""What `--install`, `--uninstall` and `--purge` do, alone and together."""

from __future__ import annotations

from mcp_batteries.cli.install import install
from mcp_batteries.cli.leftovers import leftovers, purge
from mcp_batteries.cli.places import Places
from mcp_batteries.cli.uninstall import uninstall, uninstall_all
from mcp_batteries.errors import NotFound
from mcp_batteries.settings import ALL_HOSTS, Settings

__all__ = ["set_up"]


def set_up(settings: Settings, places: Places | None = None) -> str:
    """Do what was asked for instead of serving; returns the message for the person.

    Raises:
        Problem: it could not be done.
    """
    places = places or Places.of_this_user()
    if settings.install:
        return install(settings.install, settings, places)
    messages: list[str] = []
    if settings.uninstall:
        try:
            messages.append(_take_out(settings.uninstall, settings, places))
        except NotFound as problem:
            if not settings.purge:
                raise
            messages.append(str(problem))
    if settings.purge:
        messages.append(purge(settings, places))
    elif not settings.dry_run:
        messages.append(leftovers(settings))
    return "\n".join(filter(None, messages))


def _take_out(host: str, settings: Settings, places: Places) -> str:
    if host == ALL_HOSTS:
        return uninstall_all(settings, places)
    return uninstall(host, settings, places)
