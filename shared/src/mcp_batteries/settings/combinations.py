"""Options that would have no effect without another one, or beside it: they are refused, so that nobody relies on them.

Only the command line is judged. A variable may be set for several servers, or in an image for every way to start it.
"""

from __future__ import annotations

from collections.abc import Sequence

import click

from mcp_batteries.settings.declared import Settings

__all__ = ["ONLY_OVER_HTTP", "refuse_options_without_effect"]

# What is done instead of serving; the first that is set would win over the others.
_ACTIONS = ("version", "new_token", "print_config", "install", "uninstall", "purge", "check")
_TOGETHER = {"uninstall", "purge"}
# These look at no option of a server, so that a command of `--install` can be repeated with one of them.
_LOOKS_AT_NOTHING = ("version", "new_token", "uninstall", "purge")
ONLY_OVER_HTTP = (
    "host",
    "port",
    "socket",
    "public_url",
    "server_card",
    "json_response",
    "param_headers",
    "allowed_host",
    "allowed_origin",
    "metrics",
    *Settings.GROUPS["Access over HTTP"],
    *Settings.GROUPS["Limits over HTTP"],
)


def refuse_options_without_effect(settings: Settings) -> None:
    """Refuse options of the command line that these settings would ignore.

    Raises:
        UsageError: there is one.
    """
    typed = [name for name, origin in settings.origins.items() if origin.startswith("--")]
    actions = [name for name in _ACTIONS if name in typed]
    _refuse_two_actions(actions)
    for name in typed:
        needed = type(settings).NEEDS.get(name, ())
        if needed and not any(getattr(settings, other) for other in needed):
            raise click.UsageError(f"{_flag(name)} has no effect without {_flags(needed)}: add it, or leave this out.")
    if settings.dry_run and settings.purge:
        raise click.UsageError("--dry-run does not go with --purge: --uninstall alone names what --purge would remove.")
    if not any(action in _LOOKS_AT_NOTHING for action in actions):
        _refuse_ignored_addresses(settings, typed)


def _refuse_two_actions(actions: Sequence[str]) -> None:
    if len(actions) > 1 and not set(actions) <= _TOGETHER:
        first, second, *_ = actions
        raise click.UsageError(f"{_flag(first)} does not go with {_flag(second)}: do one after the other.")


def _refuse_ignored_addresses(settings: Settings, typed: Sequence[str]) -> None:
    for name in ONLY_OVER_HTTP:
        if name in typed and settings.transport == "stdio":
            raise click.UsageError(f"{_flag(name)} has no effect over stdio: add --transport http, or leave it out.")
    for name in ("host", "port"):
        if name in typed and settings.socket is not None:
            raise click.UsageError(f"{_flag(name)} has no effect beside --socket: leave out one of them.")


def _flags(names: Sequence[str]) -> str:
    return " or ".join(_flag(name) for name in names)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
