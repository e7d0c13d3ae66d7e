"""Arguments that name several paths."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from mcp_fs.engine.service import Engine
from mcp_fs.policy import Readable

__all__ = ["several"]

_P = TypeVar("_P", bound=Readable)
_PARTED = re.compile(r"[/\\]" if os.sep == "\\" else "/")


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
    return await engine.fitting(trusted(path[:cut] or "."), path[cut:], path, most)
