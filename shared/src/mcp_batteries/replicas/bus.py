"""A subscription bus over a link to the other replicas that may fail at any time without anybody noticing.

A replica that announces something tells its own subscribers and queues a message for the others: no call waits for the
link or fails with it. Replicas notice lost messages, and then tell all who may have missed something to look again,
which costs a reader one look:

- Each replica numbers what it announces. A missing number means a lost message.
- Each replica repeats its last number in a beat: once a second while it has subscribers or has just announced
  something. So the loss of the last message is noticed too.
- A link delivers to everybody, the sender included. A link that does not bring back a replica's own beats within three
  seconds is lost, whatever its library says of the connection; so is one that fails to send.
- A replica with a new link may have missed anything.
"""

from __future__ import annotations

import json
import logging
import secrets
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, Protocol

import anyio
from mcp.server.subscriptions import InMemorySubscriptionBus
from mcp.shared.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)

__all__ = ["Link", "RemoteBus"]

BEAT_SECONDS = 1.0
# A link that has not connected by then is given up.
CONNECT_SECONDS = 2.0
SEND_SECONDS = 2.0
# Own beats in a row that do not come back, after which a link is lost. Counted, because a process that is stopped for a
# minute has heard nothing for a minute, and its link may be well.
_SILENT_BEATS = 3
# Beats that are left out between two while nobody here is interested.
_IDLE_BEATS = 10
# Beats that follow the last announcement.
_BUSY_BEATS = 30
# Seconds between the beginnings of two tries to connect, or a little after one that took longer: all in all less than
# the two within which subscriptions are to recover.
_FIRST_WAIT = 0.05
_MAX_WAIT_SECONDS = 0.5
# The time from the first sign of a loss until all read again: after a new link the signs come from everybody.
_GATHER_SECONDS = 0.1
_MAX_UNSENT_MESSAGES = 10_000
_MAX_ORIGINS = 1_000
# The length of one message: PostgreSQL takes 8,000 bytes. Beyond it the others are told that everything changed.
_MAX_BYTES = 7_000

_LISTS: dict[str, ServerEvent] = {
    "tools": ToolsListChanged(),
    "prompts": PromptsListChanged(),
    "resources": ResourcesListChanged(),
}

_log = logging.getLogger(__name__)


class _Message(NamedTuple):
    """A message of a replica.

    Attributes:
        origin: the replica that sent it.
        number: of its latest announcement.
        event: what it announces; None in a beat, and where the announcement was too long.
        beat: the number of the beat; None in an announcement.
        is_greeting: whether the replica has a new link.
    """

    origin: str
    number: int
    event: ServerEvent | None
    beat: int | None
    is_greeting: bool


class Link(Protocol):
    """A connection to everybody, this replica included."""

    async def hold(self, receive: Callable[[bytes], None], connected: Callable[[], None]) -> None:
        """Connect, call `connected`, then `receive` with each message, until the connection is lost.

        Raises:
            Exception: There is no connection, or not any more.
        """
        ...

    async def send(self, message: bytes) -> None:
        """Send to everybody.

        Raises:
            Exception: It could not be sent.
        """
        ...


class RemoteBus(InMemorySubscriptionBus):
    """A bus that is joined with those of the other replicas while `running` is entered.

    Args:
        link: reaches them.

    Attributes:
        on_gap: called when messages of others may have been missed.
        is_needed: tells whether anybody here wants to hear of changes.
        connected: whether a beat of this replica has come back over the present link.
    """

    def __init__(self, link: Link) -> None:
        super().__init__()
        self.on_gap: Callable[[], None] = lambda: None
        self.is_needed: Callable[[], bool] = lambda: True
        self.connected = False
        self._link = link
        self._origin = secrets.token_hex(8)
        # The number of the latest announcement.
        self._number = 0
        # By origin the highest number received; the latest origin is the last.
        self._received: dict[str, int] = {}
        self._beats = 0
        self._first_beat = 0
        # Whether a beat of this link has come back since the last check.
        self._came_back = False
        self._busy_beats = 0
        self._missed_before = False
        self._unsent: deque[bytes] = deque(maxlen=_MAX_UNSENT_MESSAGES)
        self._wake = anyio.Event()
        self._gap = anyio.Event()
        self._is_linked = False

    async def publish(self, event: ServerEvent) -> None:
        self._number += 1
        self._busy_beats = _BUSY_BEATS
        self._put(self._encode_event(event))
        await super().publish(event)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Hold the link for as long as the block lasts; it need not work at the beginning."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._reconnect)
            tasks.start_soon(self._report_gaps)
            yield
            with anyio.move_on_after(0.2):  # The last words of a server that ends.
                while self._unsent and self.connected:  # noqa: ASYNC110
                    await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()

    async def _reconnect(self) -> None:
        """Connect again and again, less and less often while that fails."""
        wait = _FIRST_WAIT
        while True:
            began = anyio.current_time()
            reason = await self._use_link()
            if self.connected or not self._missed_before:
                # The words of the library are left out: they may hold the URL, and with it a password.
                _log.warning("the bus is unreachable, so this replica tells only its own subscribers: %s", reason)
            if self.connected:
                wait = _FIRST_WAIT
            else:
                wait = min(2 * wait, _MAX_WAIT_SECONDS)
            self._missed_before = True
            self.connected = False
            await anyio.sleep(max(_FIRST_WAIT, began + wait - anyio.current_time()))

    async def _use_link(self) -> str:
        """Connect, and use the link until it is lost; return the reason."""
        reasons: list[str] = []
        ready = anyio.Event()
        async with anyio.create_task_group() as tasks:

            def lose(reason: str) -> None:
                reasons.append(reason)
                tasks.cancel_scope.cancel()

            async def hold() -> None:
                try:
                    await self._link.hold(self._receive, ready.set)
                    lose("closed")
                except Exception as problem:  # noqa: BLE001 - whatever a library raises, the link is gone
                    lose(type(problem).__name__)

            tasks.start_soon(hold)
            with anyio.move_on_after(CONNECT_SECONDS):
                await ready.wait()
            if ready.is_set():
                self._unsent.clear()
                self._is_linked = True
                self._first_beat = self._beats + 1
                self._came_back = False
                tasks.start_soon(self._send, lose)
                tasks.start_soon(self._beat, lose)
            else:
                lose("no answer")
        self._is_linked = False
        return reasons[0]

    async def _send(self, lose: Callable[[str], None]) -> None:
        """Send what is queued, until the link is lost."""
        while True:
            while self._unsent:
                try:
                    with anyio.fail_after(SEND_SECONDS):
                        await self._link.send(self._unsent.popleft())
                except Exception as problem:  # noqa: BLE001
                    lose(type(problem).__name__)
                    return
            self._wake = anyio.Event()
            await self._wake.wait()

    async def _beat(self, lose: Callable[[str], None]) -> None:
        """Send beats, and give the link up when they do not come back."""
        self._put_beat(is_greeting=True)
        is_outstanding = True
        silent_beats = 0
        idle_beats = 0
        while True:
            await anyio.sleep(BEAT_SECONDS)
            idle_beats += 1
            self._busy_beats = max(self._busy_beats - 1, 0)
            if self._came_back:
                self._came_back = False
                is_outstanding = False
                silent_beats = 0
            elif is_outstanding:
                silent_beats += 1
                if silent_beats >= _SILENT_BEATS:
                    lose("silence")
                    return
            if is_outstanding or self._busy_beats or idle_beats > _IDLE_BEATS or self.is_needed():
                self._put_beat()
                is_outstanding = True
                idle_beats = 0

    async def _report_gaps(self) -> None:
        """Call `on_gap` a moment after messages may have been missed."""
        while True:
            await self._gap.wait()
            await anyio.sleep(_GATHER_SECONDS)
            self._gap = anyio.Event()
            self.on_gap()

    def _put(self, message: bytes) -> None:
        # Without a link nothing is kept: the next number that comes tells the others that something is missing.
        if self._is_linked:
            self._unsent.append(message)
            self._wake.set()

    def _put_beat(self, *, is_greeting: bool = False) -> None:
        self._beats += 1
        if is_greeting:
            self._put(self._encode(beat=self._beats, hello=True))
        else:
            self._put(self._encode(beat=self._beats))

    def _encode_event(self, event: ServerEvent) -> bytes:
        """Return the message that announces `event`."""
        if isinstance(event, ResourceUpdated):
            message = self._encode(uri=event.uri)
        else:
            message = self._encode(list=next(name for name, other in _LISTS.items() if other == event))
        if len(message) > _MAX_BYTES:
            return self._encode()
        return message

    def _encode(self, **members: Any) -> bytes:
        return json.dumps({"v": 1, "from": self._origin, "n": self._number, **members}).encode()

    def _receive(self, data: bytes) -> None:
        """Take a message from the link, of any replica or of something else."""
        try:
            message = _parse(data)
        except (ValueError, KeyError, TypeError):
            _log.warning("a message on the bus makes no sense; is something else using its channel?")
            return
        if message is None:
            return
        if message.origin == self._origin:
            if message.beat is not None and message.beat >= self._first_beat:
                self._confirm_link()
            return
        # The loss concerns everybody, whoever is notified now.
        if self._misses_something(message):
            self._gap.set()
        if message.beat is not None and message.is_greeting:
            self._put_beat()
        if message.event is not None:
            self.deliver(message.event)

    def _misses_something(self, message: _Message) -> bool:
        """Note the number of `message`; tell whether an announcement before it, or what it announces, is missing."""
        before = self._received.pop(message.origin, 0)
        self._received[message.origin] = max(before, message.number)
        if len(self._received) > _MAX_ORIGINS:
            del self._received[next(iter(self._received))]
        if message.beat is not None:
            return message.number > before
        return message.number > before + 1 or message.event is None

    def _confirm_link(self) -> None:
        """Note that a beat has come back."""
        self._came_back = True
        if self.connected:
            return
        self.connected = True
        if self._missed_before:
            _log.warning("the bus is back; subscribers are told to look again")
        self._gap.set()

    def deliver(self, event: ServerEvent) -> None:
        """Tell only the subscribers of this process."""
        for listener in list(self._listeners.values()):
            listener(event)


def _parse(data: bytes) -> _Message | None:
    """Return the message in `data`, or None if it is of another version.

    Raises:
        ValueError, KeyError, TypeError: It is no message.
    """
    members = json.loads(data)
    version = members["v"]
    origin = str(members["from"])
    number = int(members["n"])
    if version != 1:
        return None
    event: ServerEvent | None = None
    if "uri" in members:
        event = ResourceUpdated(str(members["uri"]))
    elif "list" in members:
        event = _LISTS[members["list"]]
    beat: int | None = None
    if "beat" in members:
        beat = int(members["beat"])
    return _Message(origin, number, event, beat, "hello" in members)
