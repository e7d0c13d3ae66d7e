"""Arguments that name several paths."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import TypeVar

from mcp_batteries.concurrency.threads import run_in_thread
from mcp_batteries.errors import Invalid, TooLarge
from mcp_fs.engine.handles.path_opening import exists
from mcp_fs.engine.listing.expand_glob import expand_glob
from mcp_fs.policy import Policy, ReadablePath, WritablePath
from mcp_fs.policy.path_arguments import parse_glob

__all__ = [
    "consented_expansion",
    "expand_deletions",
    "expand_path",
    "limit_count",
    "parse_line_range",
    "path_exists",
    "set_consented_expansion",
]

_Expansion = tuple[Sequence[WritablePath], Sequence[str]]

_P = TypeVar("_P", bound=ReadablePath)
# Each has an open folder, so that all can be looked at before the first goes.
_MAX_DELETED = 200
# To take them back, all are held open.
_MAX_TARGETS = 100
_SEPARATOR = re.compile(r"[/\\]" if os.sep == "\\" else "/")
# Of the call that is run: what goes is what the user was shown, also if a file came while they thought.
_consented_call: ContextVar[tuple[Sequence[str], _Expansion] | None] = ContextVar("asked", default=None)

_LINE_RANGE = re.compile(r"(.+):(?:(\d{1,9})(?:-(\d{1,9})?)?|-([1-9]\d{0,8}))", re.DOTALL)


def parse_line_range(path: str) -> tuple[str, int, int | None] | None:
    """Parse `path` if it names lines: their file, the first (negative: so many last ones), the last."""
    match = _LINE_RANGE.fullmatch(path)
    if match is None:
        return None
    first = -int(match[4]) if match[4] else max(int(match[2]), 1)
    return match[1], first, int(match[3]) if match[3] else None


async def path_exists(path: ReadablePath) -> bool:
    """Return whether there is anything at a path, be it a link that leads nowhere."""
    return await run_in_thread(lambda cancel: exists(path, follow=False))


async def expand_path(to_path: Callable[[str], _P], path: str, max_paths: int) -> tuple[Sequence[_P], Sequence[str]]:
    """Expand one of several paths: itself, or with `*` in it all that fit, and notes on what was left out.

    A name with `*` in it that is there is that one.

    Args:
        to_path: makes a trusted path of a text, or refuses it.

    Raises:
        Problem: as `to_path`; nothing fits, or more than `max_paths` do.
    """
    path_glob = parse_glob(to_path, path)
    if path_glob is None:
        return [to_path(path)], ()
    return await run_in_thread(lambda cancel: expand_glob(path_glob, max_paths, cancel), long=True)


async def expand_deletions(policy: Policy, paths: Sequence[str]) -> _Expansion:
    """Expand the `paths` of a deletion, with notes on what was left out.

    Raises:
        Problem: as `expand_path`.
    """
    expanded_paths: list[WritablePath] = []
    notes: list[str] = []
    for path in paths:
        expanded, more_notes = await expand_path(policy.writable, path, _MAX_DELETED)
        expanded_paths.extend(expanded)
        notes.extend(more_notes)
    if len(expanded_paths) > _MAX_DELETED:
        raise TooLarge(f"These are more than {_MAX_DELETED}.", "Delete a part at a time, or the folder they are in.")
    return expanded_paths, notes


def set_consented_expansion(paths: Sequence[str], expansion: _Expansion | None) -> None:
    """Remember for this call what the user agreed to; None if they were not asked about these paths."""
    _consented_call.set(None if expansion is None else (paths, expansion))


def consented_expansion(paths: Sequence[str]) -> _Expansion | None:
    """Return what the user agreed to in this call; None if they were not asked about these paths."""
    consented_call = _consented_call.get()
    if consented_call is None or consented_call[0] != paths:
        return None
    return consented_call[1]


def limit_count(targets: Mapping[str, str]) -> Mapping[str, str]:
    """Return sources with their targets, if not too many for one call.

    Raises:
        Invalid: there are none, or too many.
    """
    if not 0 < len(targets) <= _MAX_TARGETS:
        raise Invalid(f"`targets` names {len(targets):,} sources.", f"Name 1 to {_MAX_TARGETS} with their targets.")
    return targets
