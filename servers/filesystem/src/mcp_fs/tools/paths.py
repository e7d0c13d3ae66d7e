"""Arguments that name several paths."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from mcp_batteries.errors import Invalid, TooLarge
from mcp_fs.engine.service import Engine
from mcp_fs.policy import Policy, Readable, Writable

__all__ = ["deleted", "few", "lines_in", "several"]

_P = TypeVar("_P", bound=Readable)
_MOST_DELETED = 200
"""Each has an open folder, so that all can be looked at before the first goes."""
_MOST_PUT = 100
"""To take them back, all are held open."""
_PARTED = re.compile(r"[/\\]" if os.sep == "\\" else "/")


_LINES = re.compile(r"(.+):(?:(\d{1,9})(?:-(\d{1,9})?)?|-([1-9]\d{0,8}))", re.DOTALL)


def lines_in(path: str) -> tuple[str, int, int | None] | None:
    """What `path` means if it names lines: their file, the first (negative: so many last ones), the last."""
    found = _LINES.fullmatch(path)
    if found is None:
        return None
    first = -int(found[4]) if found[4] else max(int(found[2]), 1)
    return found[1], first, int(found[3]) if found[3] else None


async def several(
    engine: Engine, trusted: Callable[[str], _P], path: str, most: int
) -> tuple[Sequence[_P], Sequence[str]]:
    """What one path of several names: one place, or with `*` in it all that fit, and notes on what was left out.

    A name with `*` in it that is there is that one.

    Args:
        trusted: what makes a path a place, or refuses it.

    Raises:
        Problem: as `trusted`; nothing fits, or more than `most` do.
    """
    before, star, _ = path.partition("*")
    if not star or path[:6].lower() == "file:/":
        return [trusted(path)], ()
    if os.name == "posix" and await engine.exists(place := trusted(path)):
        return [place], ()
    cut = max((found.end() for found in _PARTED.finditer(before)), default=0)
    return await engine.expand_glob(trusted(path[:cut] or "."), path[cut:], path, most)


async def deleted(policy: Policy, engine: Engine, paths: Sequence[str]) -> tuple[Sequence[Writable], Sequence[str]]:
    """What a deletion of `paths` means, and notes on what was left out.

    Raises:
        Problem: as `several`.
    """
    places, notes = list[Writable](), list[str]()
    for path in paths:
        found, more = await several(engine, policy.writable, path, _MOST_DELETED)
        places, notes = [*places, *found], [*notes, *more]
    if len(places) > _MOST_DELETED:
        raise TooLarge(f"These are more than {_MOST_DELETED}.", "Delete a part at a time, or the folder they are in.")
    return places, notes


def few(targets: Mapping[str, str]) -> Mapping[str, str]:
    """Sources with their targets, not too many for one call.

    Raises:
        Invalid: there are none, or too many.
    """
    if not 0 < len(targets) <= _MOST_PUT:
        raise Invalid(f"`targets` names {len(targets):,} sources.", f"Name 1 to {_MOST_PUT} with their targets.")
    return targets
