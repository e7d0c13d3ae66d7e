"""The final answers of calls with a stream, kept for a client whose connection broke before it read its own.

(MCP 2025-03-26 to 2025-11-25, Streamable HTTP, "Resumability and Redelivery". Later revisions have no such thing.) Of a
stream only the answer is kept: what came before it told how far the call was.
"""

from __future__ import annotations

import re
from collections import Counter

import anyio
from mcp_types.jsonrpc import RequestId

from mcp_batteries.concurrency.timeout_queue import Timeout, TimeoutQueue

__all__ = ["KEPT_SECONDS", "KeptAnswer", "KeptAnswers", "call_of"]

KEPT_SECONDS = 60.0
# The answers of all sessions together.
_MAX_BYTES = 64 * 1024 * 1024
_EVENT_ID = re.compile(r"call-([0-9]{1,15})-[0-9]{1,15}")


def call_of(event_id: str) -> int | None:
    """Return the number of the call on whose stream the event was sent; None if no event of a call has this id."""
    match = _EVENT_ID.fullmatch(event_id)
    if match is None:
        return None
    return int(match[1])


class KeptAnswer:
    """The answer to one call.

    Args:
        number: of the call.
        session: the id of its session.

    Attributes:
        line: the answer; empty while the call runs.
        is_there: set once it is there.
        followers: how many requests wait for it, beside the one that made the call.
        expiry: the end of the time for which it is kept; None while the call runs.
    """

    def __init__(self, number: int, session: str, request_id: RequestId) -> None:
        self.number = number
        self.session = session
        self.request_id = request_id
        self.line = b""
        self.is_there = anyio.Event()
        self.followers = 0
        self.expiry: Timeout | None = None
        self._events = 0

    def next_event_id(self) -> bytes:
        """Return the id of the next event on a stream of this call."""
        self._events += 1
        return b"call-%d-%d" % (self.number, self._events)


class KeptAnswers:
    """The answers to calls with a stream, those that are due among them, the oldest first.

    Args:
        seconds: the time for which each is kept.
        max_bytes: the size of all together; beyond it the session that keeps most loses its oldest.
    """

    def __init__(self, seconds: float = KEPT_SECONDS, max_bytes: int = _MAX_BYTES) -> None:
        self._answers: dict[int, KeptAnswer] = {}
        self._expiry = TimeoutQueue(seconds)
        self._max_bytes = max_bytes
        self._count = 0

    def begin(self, session: str, request_id: RequestId) -> KeptAnswer:
        """Return the place of the answer to a call that runs."""
        self._count += 1
        answer = KeptAnswer(self._count, session, request_id)
        self._answers[answer.number] = answer
        return answer

    def get(self, session: str, number: int) -> KeptAnswer | None:
        """Return the answer to the call `number`, if it is one of `session` and kept."""
        answer = self._answers.get(number)
        if answer is None or answer.session != session:
            return None
        return answer

    def keep(self, answer: KeptAnswer, line: bytes) -> None:
        """Keep `line` as the answer to its call, and give it to those who wait for it."""
        answer.line = line
        answer.is_there.set()
        answer.expiry = self._expiry.begin(lambda: self.drop(answer))
        self._drop_excess()

    def _drop_excess(self) -> None:
        """Drop the oldest answers of the session that keeps most, until all together are small enough."""
        sizes = Counter[str]()
        for answer in self._answers.values():
            sizes[answer.session] += len(answer.line)
        while sizes.total() > self._max_bytes:
            largest = sizes.most_common(1)[0][0]
            oldest = next(answer for answer in self._answers.values() if answer.session == largest and answer.line)
            sizes[largest] -= len(oldest.line)
            self.drop(oldest)

    def drop(self, answer: KeptAnswer) -> None:
        """Keep `answer` no longer; who waits for it still gets it, if it is there."""
        self._answers.pop(answer.number, None)
        if answer.expiry is not None:
            # Otherwise the answer would stay in memory until its time is over.
            answer.expiry.cancel()
            answer.expiry = None
        answer.is_there.set()
