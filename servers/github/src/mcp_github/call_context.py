"""Whose token a call's requests use, if callers send their own.

One token may not see what GitHub showed to another: clients, kept answers, findings and subscriptions are separate for
each token, even for two tokens of one person, of which one may have fewer permissions.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Generic, TypeVar

__all__ = ["NOBODY", "Caller", "EachCaller", "caller"]

T = TypeVar("T")

_MOST = 1000
"""Callers that are remembered; the one that has not called for the longest time makes room."""


@dataclass(frozen=True)
class Caller:
    """A token that came with a request. Its `repr` tells nothing."""

    token: str = field(repr=False)
    name: str = field(init=False)
    """Tells callers apart, and nothing about their tokens; empty for the server itself."""

    def __post_init__(self) -> None:
        digest = hashlib.sha256(self.token.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        object.__setattr__(self, "name", digest if self.token else "")


NOBODY = Caller("")
"""The server itself, which has a token of its own or none."""

caller: ContextVar[Caller] = ContextVar("caller", default=NOBODY)
"""Whose call is answered; where callers bring no tokens it is always `NOBODY`'s."""


class EachCaller(Generic[T]):
    """Something that each caller has of their own, made when it is first needed."""

    def __init__(self, make: Callable[[Caller], T]) -> None:
        self._make = make
        self._kept: OrderedDict[str, T] = OrderedDict()

    @property
    def own(self) -> T:
        """That of the call under way."""
        who = caller.get()
        if who.name not in self._kept:
            self._kept[who.name] = self._make(who)
            if len(self._kept) > _MOST:
                self._kept.popitem(last=False)
        self._kept.move_to_end(who.name)
        return self._kept[who.name]
