"""The call under way: whose token its requests use, who reads the answers, and what has to be said besides them.

One token may not see what GitHub showed to another: clients, cached answers, reads and subscriptions are separate for
each token, even for two tokens of one person, of which one may have fewer permissions.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

__all__ = ["SERVER", "CallContext", "Caller", "PerCaller", "acting_as", "active_call", "current_call"]

T = TypeVar("T")

# The caller that has not called for the longest time makes room for another.
_MAX_CALLERS = 1000


@dataclass(frozen=True)
class Caller:
    """A token that came with a request. Its `repr` tells nothing.

    Attributes:
        name: tells callers apart, and nothing about their tokens; empty for the server itself.
    """

    token: str = field(repr=False)
    name: str = field(init=False)

    def __post_init__(self) -> None:
        name = ""
        if self.token:
            name = hashlib.sha256(self.token.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        object.__setattr__(self, "name", name)


# The server itself, which has a token of its own or none.
SERVER = Caller("")


@dataclass
class CallContext:
    """What one call of a client has from its beginning to its end.

    Attributes:
        caller: whose token the requests use; `SERVER` where callers bring no tokens.
        reader: the owner of a token, or the session of an older client without one. Empty for those who can't be told
            apart, who share what anybody without a token read.
        needed_permissions: what the tool needs, for a refusal in which GitHub names no permission.
        notes: what the client has to be told besides the answer.
        has_written: whether a write was answered with success.
        github_seconds: for how long it has waited for GitHub.
    """

    caller: Caller = SERVER
    reader: str = ""
    needed_permissions: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list[str])
    has_written: bool = False
    github_seconds: float = 0.0

    def add_note(self, note: str) -> None:
        """Have the client told `note`, once."""
        if note not in self.notes:
            self.notes.append(note)


_current_call: ContextVar[CallContext | None] = ContextVar("current_call", default=None)


def current_call() -> CallContext:
    """Return the context of the call under way; outside of calls, a new one of the server itself."""
    return _current_call.get() or CallContext()


@contextmanager
def active_call(call: CallContext) -> Generator[CallContext]:
    """Make `call` the one under way for the block and the tasks that begin there."""
    token = _current_call.set(call)
    try:
        yield call
    finally:
        _current_call.reset(token)


@contextmanager
def acting_as(caller: Caller) -> Generator[CallContext]:
    """Use the token of `caller` for the requests of the block and of the tasks that begin there."""
    with active_call(replace(current_call(), caller=caller)) as call:
        yield call


class PerCaller(Generic[T]):
    """Something that each caller has of their own, made when it is first needed."""

    def __init__(self, make: Callable[[Caller], T]) -> None:
        self._make = make
        self._values: OrderedDict[str, T] = OrderedDict()

    @property
    def current(self) -> T:
        """That of the call under way."""
        caller = current_call().caller
        if caller.name not in self._values:
            self._values[caller.name] = self._make(caller)
            if len(self._values) > _MAX_CALLERS:
                self._values.popitem(last=False)
        self._values.move_to_end(caller.name)
        return self._values[caller.name]
