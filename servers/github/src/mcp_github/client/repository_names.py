"""The names that repositories have by now, as GitHub told them."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

__all__ = ["RepositoryNames"]

# A name that a repository had before may be given to another.
_SECONDS = 600.0
_MAX_NAMES = 1000


class RepositoryNames:
    """The `owner/name` of repositories by their number or an earlier name, for some minutes.

    Args:
        clock: seconds from some point in time.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._names: OrderedDict[str, tuple[str, float]] = OrderedDict()

    def get(self, key: str) -> str | None:
        """Return the name of the repository that was called `key`, or has that number; None if nobody told."""
        name, told_at = self._names.get(key.lower(), ("", 0.0))
        if not name or self._clock() - told_at >= _SECONDS:
            return None
        return name

    def put(self, key: str, name: str) -> None:
        """Remember what GitHub just told; what was told longest ago makes room."""
        self._names.pop(key.lower(), None)
        self._names[key.lower()] = (name, self._clock())
        if len(self._names) > _MAX_NAMES:
            self._names.popitem(last=False)
