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
from typing import Any, Protocol

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
CONNECT_SECONDS = 2.0
"""Until a link that is asked to connect is given up."""
SEND_SECONDS = 2.0
_SILENT_BEATS = 3
"""Own beats in a row that do not come back, after which a link is lost. Counted, because a process that is stopped for
a minute has heard nothing for a minute, and its link may be well."""
_IDLE_BEATS = 10
"""Beats that are left out between two while nobody here is interested."""
_BUSY_BEATS = 30
"""Beats that follow what was announced last."""
_FIRST_WAIT = 0.05
_LONGEST_WAIT = 0.5
"""Seconds between the beginnings of two tries to connect, or a little after one that took longer: all in all less than
the two within which subscriptions are to recover."""
_GATHER_SECONDS = 0.1
"""From the first sign that something was lost until all look again: after a new link the signs come from everybody."""
_MOST_UNSENT = 10_000
_MOST_ORIGINS = 1_000
_MAX_BYTES = 7_000
"""Of one message: PostgreSQL takes 8,000 bytes. Beyond it the others are told that everything changed."""

_LISTS: dict[str, ServerEvent] = {
    "tools": ToolsListChanged(),
    "prompts": PromptsListChanged(),
    "resources": ResourcesListChanged(),
}

_log = logging.getLogger(__name__)


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
    """

    def __init__(self, link: Link) -> None:
        super().__init__()
        self.on_gap: Callable[[], None] = lambda: None
        """Called when messages of others may have been missed."""
        self.is_needed: Callable[[], bool] = lambda: True
        """Whether anybody here wants to hear of changes."""
        self.connected = False
        """Whether a beat of this replica has come back over the present link."""
        self._link = link
        self._origin = secrets.token_hex(8)
        self._number = 0
        """Of what was announced last."""
        self._heard: dict[str, int] = {}
        """By origin the highest number heard, the origin heard last at the end."""
        self._beats = 0
        self._first_beat = 0
        self._came_back = False
        """Whether a beat of this link came back since this was asked last."""
        self._busy = 0
        self._missed_before = False
        self._unsent: deque[bytes] = deque(maxlen=_MOST_UNSENT)
        self._wake = anyio.Event()
        self._gap = anyio.Event()
        self._linked = False

    async def publish(self, event: ServerEvent) -> None:
        self._number += 1
        self._busy = _BUSY_BEATS
        self._put(self._encoded(event))
        await super().publish(event)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Hold the link for as long as the block lasts; it need not work at the beginning."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._reconnect)
            tasks.start_soon(self._tell_gaps)
            yield
            with anyio.move_on_after(0.2):  # The last words of a server that ends.
                while self._unsent and self.connected:  # noqa: ASYNC110
                    await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()

    async def _reconnect(self) -> None:
        wait = _FIRST_WAIT
        while True:
            begun = anyio.current_time()
            reason = await self._use_link()
            if self.connected or not self._missed_before:
                # Not the words of the library: they may hold the URL, and with it a password.
                _log.warning("the bus is unreachable, so this replica tells only its own subscribers: %s", reason)
            wait = _FIRST_WAIT if self.connected else min(2 * wait, _LONGEST_WAIT)
            self._missed_before = True
            self.connected = False
            await anyio.sleep(max(_FIRST_WAIT, begun + wait - anyio.current_time()))

    async def _use_link(self) -> str:
        """Connect, and use the link until it is lost; returns the reason."""
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
                self._linked = True
                self._first_beat = self._beats + 1
                self._came_back = False
                tasks.start_soon(self._send, lose)
                tasks.start_soon(self._beat, lose)
            else:
                lose("no answer")
        self._linked = False
        return reasons[0]

    async def _send(self, lose: Callable[[str], None]) -> None:
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
        self._put_beat(greets=True)
        outstanding = True
        silent = 0
        idle = 0
        while True:
            await anyio.sleep(BEAT_SECONDS)
            idle = idle + 1
            self._busy = max(self._busy - 1, 0)
            if self._came_back:
                outstanding = False
                silent = 0
                self._came_back = False
            elif outstanding:
                silent += 1
                if silent >= _SILENT_BEATS:
                    lose("silence")
                    return
            if outstanding or self._busy or idle > _IDLE_BEATS or self.is_needed():
                self._put_beat()
                outstanding = True
                idle = 0

    async def _tell_gaps(self) -> None:
        while True:
            await self._gap.wait()
            await anyio.sleep(_GATHER_SECONDS)
            self._gap = anyio.Event()
            self.on_gap()

    def _put(self, message: bytes) -> None:
        # Without a link nothing is kept: the number of what comes next tells the others that something is missing.
        if self._linked:
            self._unsent.append(message)
            self._wake.set()

    def _put_beat(self, *, greets: bool = False) -> None:
        self._beats += 1
        self._put(self._message(beat=self._beats, **({"hello": True} if greets else {})))

    def _encoded(self, event: ServerEvent) -> bytes:
        if isinstance(event, ResourceUpdated):
            message = self._message(uri=event.uri)
        else:
            message = self._message(list=next(name for name, known in _LISTS.items() if known == event))
        return message if len(message) <= _MAX_BYTES else self._message()

    def _message(self, **said: Any) -> bytes:
        return json.dumps({"v": 1, "from": self._origin, "n": self._number, **said}).encode()

    def _receive(self, message: bytes) -> None:
        try:
            said = json.loads(message)
            version = said["v"]
            origin = str(said["from"])
            number = int(said["n"])
            if version != 1:
                return
            event: ServerEvent | None = None
            if "uri" in said:
                event = ResourceUpdated(str(said["uri"]))
            elif "list" in said:
                event = _LISTS[said["list"]]
            beat = int(said["beat"]) if "beat" in said else None
        except (ValueError, KeyError, TypeError):
            _log.warning("a message on the bus makes no sense; is something else using its channel?")
            return
        if origin == self._origin:
            if beat is not None and beat >= self._first_beat:
                self._prove()
            return
        # The loss concerns everybody, whoever is notified now.
        before = self._heard.pop(origin, 0)
        self._heard[origin] = max(before, number)
        if len(self._heard) > _MOST_ORIGINS:
            del self._heard[next(iter(self._heard))]
        if number > before + (beat is None) or (beat is None and event is None):
            self._gap.set()
        if beat is not None and "hello" in said:
            self._put_beat()
        if event is not None:
            self.deliver(event)

    def _prove(self) -> None:
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
