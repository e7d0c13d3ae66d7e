"""The common part of both wires: requests by id, notifications, subscriptions as in each era."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.abc

__all__ = ["MODERN", "REVISIONS", "SECONDS", "Message", "Wire", "WireClosed", "WireError", "background"]

Message = dict[str, Any]

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
# The first revision without a handshake: every request carries the envelope in `params._meta`.
MODERN = "2026-07-28"

# A test gives up on anything that takes longer. No speed is judged: a busy machine needs a minute to start a server.
SECONDS = float(os.environ.get("MCP_TEST_SECONDS", "60"))

_SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
_CLIENT = {"name": "wire", "version": "1"}


class WireError(Exception):
    """Raised when the server answers with a JSON-RPC error (or, over HTTP, with a bare error status)."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        self.code = code
        self.message = message
        self.data = data
        super().__init__(f"{code}: {message}")


class WireClosed(Exception):
    """Raised when the connection ends while a caller still waits for something."""


class Wire(ABC):
    """One connection: requests by id, and everything that the server sends unasked.

    Args:
        revision: the protocol revision to open with, one of `REVISIONS`.
        capabilities: the client capabilities to declare.
    """

    def __init__(self, revision: str, capabilities: Message | None = None) -> None:
        self.revision = revision
        self.modern = revision >= MODERN
        self.capabilities: Message = capabilities or {}
        self.server: Message = {}
        """What `initialize` or `server/discover` answered."""
        self.messages: list[Message] = []
        """Received and not yet taken: notifications, server requests, answers nobody waits for."""
        self.closed = False
        self._last_id = 0
        self._answers: dict[int | str, Message | None] = {}
        self._listen_ids: dict[str, int] = {}
        self._arrival = anyio.Event()
        self._tasks: anyio.abc.TaskGroup

    @property
    def notifications(self) -> list[Message]:
        """The notifications among `messages`, oldest first."""
        return [message for message in self.messages if "method" in message and "id" not in message]

    async def open(self) -> Message:
        """Open in this revision: `initialize` and `initialized`, or `server/discover`; the server's answer."""
        if self.modern:
            self.server = await self.request("server/discover")
            return self.server
        self.server = await self.request(
            "initialize",
            {"protocolVersion": self.revision, "capabilities": self.capabilities, "clientInfo": _CLIENT},
        )
        if self.server["protocolVersion"] != self.revision:
            raise WireError(0, f"asked for {self.revision}, was given {self.server['protocolVersion']}")
        await self.notify("notifications/initialized")
        return self.server

    async def request(self, method: str, params: Message | None = None, *, seconds: float = SECONDS) -> Message:
        """Return the result of one request.

        Raises:
            WireError: The server answered with an error.
            WireClosed: The connection ended before the answer.
            TimeoutError: No answer within `seconds`.
        """
        message = self.message(method, params)
        key = message["id"]
        self._answers[key] = None
        try:
            with anyio.fail_after(seconds):
                await self._send(message)
                while (answer := self._answers[key]) is None:
                    await self._wait_for(method)
        finally:
            del self._answers[key]
        return _result(answer)

    async def call(self, tool: str, **arguments: Any) -> Message:
        """Return the result of `tools/call`."""
        return await self.request("tools/call", {"name": tool, "arguments": arguments})

    async def begin(self, method: str, params: Message | None = None) -> int:
        """Send a request without waiting for its answer, which will appear in `messages`; returns its id."""
        message = self.message(method, params)
        await self._hold(message)
        return message["id"]

    async def notify(self, method: str, params: Message | None = None) -> None:
        message: Message = {"jsonrpc": "2.0", "method": method}
        await self._send(message if params is None else {**message, "params": params})

    async def respond(self, request_id: int | str, result: Message) -> None:
        """Answer a request from the server."""
        await self._send({"jsonrpc": "2.0", "id": request_id, "result": result})

    def message(self, method: str, params: Message | None = None) -> Message:
        """Return a request message with a fresh id, in the modern era with its envelope."""
        self._last_id += 1
        message: Message = {"jsonrpc": "2.0", "id": self._last_id, "method": method}
        if self.modern:
            params = dict(params or {})
            params["_meta"] = {**self.envelope(), **params.get("_meta", {})}
        return message if params is None else {**message, "params": params}

    def envelope(self) -> Message:
        """Return the `_meta` keys of every modern request."""
        return {
            "io.modelcontextprotocol/protocolVersion": self.revision,
            "io.modelcontextprotocol/clientInfo": _CLIENT,
            "io.modelcontextprotocol/clientCapabilities": self.capabilities,
        }

    async def next_message(
        self, match: Callable[[Message], bool] = lambda _: True, *, seconds: float = SECONDS
    ) -> Message:
        """Take the oldest message in `messages` that matches, waiting for it.

        Raises:
            WireClosed: The connection ended without one.
            TimeoutError: None came within `seconds`.
        """
        with anyio.fail_after(seconds):
            while True:
                for position, message in enumerate(self.messages):
                    if match(message):
                        return self.messages.pop(position)
                await self._wait_for("a message")

    async def notification(
        self, method: str, matches: Callable[[Message], bool] = lambda _: True, *, seconds: float = SECONDS
    ) -> Message:
        """Take the params of the oldest notification `method` whose params satisfy `matches`, waiting for it."""
        message = await self.next_message(_notifies(method, matches), seconds=seconds)
        return message.get("params", {})

    async def silent(self, method: str, matches: Callable[[Message], bool] = lambda _: True) -> bool:
        """True if a sentinel round trip came back and no such notification was seen before it.

        This only covers what the server had already decided to send on this pipe. If the cause is outside (a file
        changes) or the notification has a separate stream (HTTP), first await the notification of a control: something
        still subscribed that changes after the thing that must be silent.
        """
        await self.request("tools/list")
        return not any(_notifies(method, matches)(message) for message in self.messages)

    async def subscribe(self, uri: str) -> None:
        """Subscribe to `notifications/resources/updated` about `uri`; return once the server agreed."""
        if self.modern:
            self._listen_ids[uri] = await self.listen({"resourceSubscriptions": [uri]})
        else:
            await self.request("resources/subscribe", {"uri": uri})

    async def updated(self, uri: str) -> None:
        """Take the oldest `notifications/resources/updated` about `uri`, waiting for it."""
        await self.notification("notifications/resources/updated", lambda params: params.get("uri") == uri)

    async def read(self, uri: str) -> str:
        """Return the text of the resource at `uri`."""
        return (await self.request("resources/read", {"uri": uri}))["contents"][0]["text"]

    async def unsubscribe(self, uri: str) -> None:
        """Undo `subscribe`."""
        if self.modern:
            await self.unlisten(self._listen_ids.pop(uri))
        else:
            await self.request("resources/unsubscribe", {"uri": uri})

    async def listen(self, requested: Message) -> int:
        """Hold a `subscriptions/listen` request (modern); returns its id once the server acknowledged it.

        Args:
            requested: the filter: `resourceSubscriptions`, `toolsListChanged`, ...
        """
        number = await self.begin("subscriptions/listen", {"notifications": requested})

        def concerns(received: Message) -> bool:
            acknowledged = received.get("method") == "notifications/subscriptions/acknowledged"
            meta = received.get("params", {}).get("_meta", {})
            return (acknowledged and meta.get(_SUBSCRIPTION) == number) or (
                received.get("id") == number and "error" in received
            )

        answer = await self.next_message(concerns)
        if "error" in answer:
            _result(answer)
        return number

    @abstractmethod
    async def unlisten(self, listen_id: int) -> None:
        """End a held `subscriptions/listen`."""

    @abstractmethod
    async def _send(self, message: Message) -> None: ...

    @abstractmethod
    async def _hold(self, message: Message) -> None:
        """Send a request whose answer may never come."""

    async def _wait_for(self, description: str) -> None:
        if self.closed:
            raise WireClosed(f"the connection ended while waiting for {description}")
        await self._arrival.wait()

    def _wake(self) -> None:
        self._arrival.set()
        self._arrival = anyio.Event()

    def _receive(self, message: Message) -> None:
        key = message.get("id")
        if key in self._answers and "method" not in message:
            self._answers[key] = message
        else:
            self.messages.append(message)
        self._wake()

    def _end(self) -> None:
        self.closed = True
        self._wake()


@asynccontextmanager
async def background() -> AsyncGenerator[anyio.abc.TaskGroup]:
    """A task group that ends with its block and lets the block's own exception through unwrapped."""
    failure: Exception | None = None
    async with anyio.create_task_group() as group:
        try:
            yield group
        except Exception as exc:  # noqa: BLE001 - raised again below
            failure = exc
        group.cancel_scope.cancel()
    if failure is not None:
        raise failure


def _result(answer: Message) -> Message:
    error = answer.get("error")
    if error is not None:
        raise WireError(error["code"], error["message"], error.get("data"))
    return answer["result"]


def _notifies(method: str, matches: Callable[[Message], bool]) -> Callable[[Message], bool]:
    """Return whether a message is a notification `method` whose params satisfy `matches`, as a function."""

    def is_notification(message: Message) -> bool:
        return message.get("method") == method and "id" not in message and matches(message.get("params", {}))

    return is_notification
