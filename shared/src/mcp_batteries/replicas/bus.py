"""A subscription bus over a link to the other replicas, which may be gone at any time without anybody noticing more.

To announce is to tell one's own subscribers and to leave a message for the others: no call waits for the link or
fails with it. While it is away messages are dropped, and so, for all that is known, are those of the others. So
after each gap everybody is told that everything may have changed, which costs a reader one look.
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

_FIRST_WAIT, _LONGEST_WAIT = 0.05, 1.0
"""Seconds between two tries to connect: less than the two within which subscriptions are to recover."""
_SEND_SECONDS = 5
_MOST_UNSENT = 10_000
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
    """A bus of this process that is one with those of the other replicas while `running` is entered.

    Args:
        link: reaches them.
    """

    def __init__(self, link: Link) -> None:
        super().__init__()
        self.on_gap: Callable[[], None] = lambda: None
        """Called when messages of others may have been missed."""
        self.connected = self._dropped = False
        self._link, self._origin = link, secrets.token_hex(8)
        self._unsent: deque[bytes] = deque(maxlen=_MOST_UNSENT)
        self._wake = anyio.Event()

    async def publish(self, event: ServerEvent) -> None:
        self._unsent.append(self._encoded(event))
        self._wake.set()
        await super().publish(event)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Hold the link for as long as the block lasts; it need not be there at the beginning."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._hold)
            tasks.start_soon(self._send)
            yield
            with anyio.move_on_after(0.2):  # The last words of a server that ends.
                while self._unsent and self.connected:  # noqa: ASYNC110
                    await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()

    async def _hold(self) -> None:
        wait, missed = _FIRST_WAIT, False

        def connected() -> None:
            nonlocal wait
            wait, self.connected = _FIRST_WAIT, True
            if self._dropped:
                # Only this replica may have been away: the others do not know that they missed something.
                self._dropped = False
                self._unsent.append(self._look_again())
                self._wake.set()
            if missed:
                _log.warning("the bus is there again; subscribers are told to look again")
                self.on_gap()

        while True:
            reason = "closed"
            try:
                await self._link.hold(self._receive, connected)
            except Exception as problem:  # noqa: BLE001 - whatever a library raises, the link is gone
                reason = type(problem).__name__
            if self.connected or not missed:
                # Not the words of the library: they may hold the URL, and with it a password.
                _log.warning("the bus is not there, this replica tells its own subscribers alone: %s", reason)
            missed, self.connected = True, False
            await anyio.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT)

    async def _send(self) -> None:
        while True:
            while self._unsent:
                message = self._unsent.popleft()
                if not self.connected:
                    self._dropped = True
                    continue
                try:
                    with anyio.fail_after(_SEND_SECONDS):
                        await self._link.send(message)
                except Exception as problem:  # noqa: BLE001
                    self._dropped = True
                    _log.warning("a message to the other replicas was lost: %s", type(problem).__name__)
            self._wake = anyio.Event()
            await self._wake.wait()

    def _encoded(self, event: ServerEvent) -> bytes:
        said: dict[str, Any] = {"v": 1, "from": self._origin}
        if isinstance(event, ResourceUpdated):
            said["uri"] = event.uri
        else:
            said["list"] = next(name for name, known in _LISTS.items() if known == event)
        message = json.dumps(said).encode()
        return message if len(message) <= _MAX_BYTES else self._look_again()

    def _look_again(self) -> bytes:
        return json.dumps({"v": 1, "from": self._origin}).encode()

    def _receive(self, message: bytes) -> None:
        try:
            said = json.loads(message)
            if said["v"] != 1 or said["from"] == self._origin:
                return
            if "uri" in said:
                event: ServerEvent = ResourceUpdated(str(said["uri"]))
            elif "list" in said:
                event = _LISTS[said["list"]]
            else:
                self.on_gap()
                return
        except (ValueError, KeyError, TypeError):
            _log.warning("a message on the bus makes no sense; is something else using its channel?")
            return
        self.deliver(event)

    def deliver(self, event: ServerEvent) -> None:
        """Tell the subscribers of this process alone."""
        for listener in list(self._listeners.values()):
            listener(event)
