"""Raw JSON-RPC clients, shaped by no SDK, so that a test sees exactly what a server puts on the wire.

`StdioWire` starts a process and talks over its pipes, `HttpWire` speaks Streamable HTTP. Both open in any
protocol revision and have one surface, so one test body runs over {stdio, HTTP} x revisions:

    async with StdioWire(["mcp-fs", "/folder"], revision="2025-11-25") as wire:
        await wire.open()
        result = await wire.call("read_text", path="notes.txt")
        await wire.subscribe("file:///folder/notes.txt")
        await wire.notification("notifications/resources/updated")
"""

from __future__ import annotations

import base64
import json
import subprocess
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self, cast

import anyio
import anyio.abc
import httpx2

__all__ = ["MODERN", "REVISIONS", "HttpWire", "Message", "StdioWire", "Wire", "WireClosed", "WireError"]

Message = dict[str, Any]

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
MODERN = "2026-07-28"
"""The first revision without a handshake: every request carries the envelope in `params._meta`."""

_SECONDS = 30.0
_SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
_NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_CLIENT = {"name": "wire", "version": "1"}


class WireError(Exception):
    """Raised when the server answers with a JSON-RPC error (or, over HTTP, with a bare error status)."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        self.code, self.message, self.data = code, message, data
        super().__init__(f"{code}: {message}")


class WireClosed(Exception):
    """Raised when the connection ends while something is still awaited from it."""


class Wire(ABC):
    """One connection: requests by id, and everything the server says unasked.

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
        self._held: dict[str, int] = {}
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

    async def request(self, method: str, params: Message | None = None, *, seconds: float = _SECONDS) -> Message:
        """The result of one request.

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
                    await self._arrived(method)
        finally:
            del self._answers[key]
        return _result(answer)

    async def call(self, tool: str, **arguments: Any) -> Message:
        """The result of `tools/call`."""
        return await self.request("tools/call", {"name": tool, "arguments": arguments})

    async def notify(self, method: str, params: Message | None = None) -> None:
        message: Message = {"jsonrpc": "2.0", "method": method}
        await self._send(message if params is None else {**message, "params": params})

    async def respond(self, request_id: int | str, result: Message) -> None:
        """Answer a request of the server's."""
        await self._send({"jsonrpc": "2.0", "id": request_id, "result": result})

    def message(self, method: str, params: Message | None = None) -> Message:
        """A request message with a fresh id, in the modern era with its envelope."""
        self._last_id += 1
        message: Message = {"jsonrpc": "2.0", "id": self._last_id, "method": method}
        if self.modern:
            params = dict(params or {})
            params["_meta"] = {**self.envelope(), **params.get("_meta", {})}
        return message if params is None else {**message, "params": params}

    def envelope(self) -> Message:
        """The `_meta` keys of every modern request."""
        return {
            "io.modelcontextprotocol/protocolVersion": self.revision,
            "io.modelcontextprotocol/clientInfo": _CLIENT,
            "io.modelcontextprotocol/clientCapabilities": self.capabilities,
        }

    async def next_message(
        self, match: Callable[[Message], bool] = lambda _: True, *, seconds: float = _SECONDS
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
                await self._arrived("a message")

    async def notification(
        self, method: str, where: Callable[[Message], bool] = lambda _: True, *, seconds: float = _SECONDS
    ) -> Message:
        """Take the params of the oldest notification `method` whose params satisfy `where`, waiting for it."""
        message = await self.next_message(_notifies(method, where), seconds=seconds)
        return message.get("params", {})

    async def silent(self, method: str, where: Callable[[Message], bool] = lambda _: True) -> bool:
        """True if a sentinel round trip came back and no such notification was seen before it.

        This orders against what the server had already decided to say on this pipe. Where the cause is
        outside (a file changes) or the notification has a stream of its own (HTTP), first await the
        notification of a control: something still subscribed that changes after the thing that must be silent.
        """
        await self.request("tools/list")
        return not any(_notifies(method, where)(message) for message in self.messages)

    async def subscribe(self, uri: str) -> None:
        """Ask for `notifications/resources/updated` about `uri`; return once the server agreed."""
        if self.modern:
            self._held[uri] = await self.listen({"resourceSubscriptions": [uri]})
        else:
            await self.request("resources/subscribe", {"uri": uri})

    async def unsubscribe(self, uri: str) -> None:
        """Take `subscribe` back."""
        if self.modern:
            await self.unlisten(self._held.pop(uri))
        else:
            await self.request("resources/unsubscribe", {"uri": uri})

    async def listen(self, wanted: Message) -> int:
        """Hold a `subscriptions/listen` request (modern); its id, once the server acknowledged it.

        Args:
            wanted: the filter: `resourceSubscriptions`, `toolsListChanged`, ...
        """
        message = self.message("subscriptions/listen", {"notifications": wanted})
        await self._hold(message)

        def concerns(received: Message) -> bool:
            acknowledged = received.get("method") == "notifications/subscriptions/acknowledged"
            meta = received.get("params", {}).get("_meta", {})
            return (acknowledged and meta.get(_SUBSCRIPTION) == message["id"]) or (
                received.get("id") == message["id"] and "error" in received
            )

        answer = await self.next_message(concerns)
        if "error" in answer:
            _result(answer)
        return message["id"]

    @abstractmethod
    async def unlisten(self, listen_id: int) -> None:
        """End a held `subscriptions/listen`."""

    @abstractmethod
    async def _send(self, message: Message) -> None: ...

    @abstractmethod
    async def _hold(self, message: Message) -> None:
        """Send a request whose answer may never come."""

    async def _arrived(self, what: str) -> None:
        if self.closed:
            raise WireClosed(f"the connection ended while waiting for {what}")
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


class StdioWire(Wire):
    """A server process on its pipes. Leaving the block closes stdin and expects the process to end by itself.

    Args:
        command: the program and its arguments.
        env: the whole environment; None for ours.
        cwd: the working folder.
        read_stderr: False leaves standard error unread, as careless hosts do.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        revision: str = "2025-11-25",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        capabilities: Message | None = None,
        read_stderr: bool = True,
    ) -> None:
        super().__init__(revision, capabilities)
        self._command, self._env, self._cwd, self._read_stderr = list(command), env, cwd, read_stderr
        self._stderr = bytearray()
        self.garbage: list[bytes] = []
        """Lines on stdout that are no JSON object; leaving the block fails if there are any."""

    async def __aenter__(self) -> Self:
        self._block = self._run()
        return await self._block.__aenter__()

    async def __aexit__(self, *failure: Any) -> bool | None:
        return await self._block.__aexit__(*failure)

    @asynccontextmanager
    async def _run(self) -> AsyncGenerator[Self]:
        pipe = subprocess.PIPE
        self.process = await anyio.open_process(
            self._command, stdin=pipe, stdout=pipe, stderr=pipe, env=self._env, cwd=self._cwd
        )
        try:
            async with _tasks() as self._tasks:
                self._tasks.start_soon(self._read)
                if self._read_stderr:
                    self._tasks.start_soon(self._collect)
                yield self
                await self.close_stdin()
                await self.wait()
        finally:
            with anyio.CancelScope(shield=True):
                if self.process.returncode is None:
                    self.process.kill()
                await self.process.aclose()
        if self.garbage:
            raise AssertionError(f"not JSON-RPC on stdout: {self.garbage[:3]}")

    @property
    def stderr(self) -> str:
        """What the process has written to standard error so far."""
        return self._stderr.decode(errors="replace")

    async def send_raw(self, data: bytes) -> None:
        """Write `data` as it is: no newline is added."""
        assert self.process.stdin is not None
        await self.process.stdin.send(data)

    async def close_stdin(self) -> None:
        assert self.process.stdin is not None
        await self.process.stdin.aclose()

    async def wait(self, seconds: float = _SECONDS) -> int:
        """The exit status, and all output read; negative for a signal.

        Raises:
            TimeoutError: The process still runs after `seconds`.
        """
        with anyio.fail_after(seconds):
            status = await self.process.wait()
            while not self.closed:
                await self._arrival.wait()
        return status

    async def unlisten(self, listen_id: int) -> None:
        await self.notify("notifications/cancelled", {"requestId": listen_id})
        # The cancel is handled in order, before the next request is: the stream has ended when this returns.
        await self.request("tools/list")

    async def _send(self, message: Message) -> None:
        try:
            await self.send_raw(json.dumps(message).encode() + b"\n")
        except (anyio.BrokenResourceError, anyio.ClosedResourceError) as exc:
            raise WireClosed("the process no longer reads") from exc

    async def _hold(self, message: Message) -> None:
        await self._send(message)

    async def _read(self) -> None:
        assert self.process.stdout is not None
        rest = b""
        try:
            async for chunk in self.process.stdout:
                head, newline, tail = chunk.rpartition(b"\n")
                if not newline:
                    rest += chunk
                    continue
                for line in (rest + head).split(b"\n"):
                    self._take(line)
                rest = tail
        finally:
            if rest:
                self._take(rest)
            self._end()

    def _take(self, line: bytes) -> None:
        try:
            message: Any = json.loads(line)
        except ValueError:
            message = None
        if isinstance(message, dict):
            self._receive(cast(Message, message))
        else:
            self.garbage.append(line)

    async def _collect(self) -> None:
        assert self.process.stderr is not None
        async for chunk in self.process.stderr:
            self._stderr += chunk


class HttpWire(Wire):
    """A client of Streamable HTTP: sessions and a standalone GET stream before 2026-07-28, neither since.

    Args:
        url: the endpoint, path included.
        headers: sent with every request (`Authorization`, `Host`, `Origin`...).
    """

    def __init__(
        self,
        url: str,
        *,
        revision: str = "2025-11-25",
        headers: Mapping[str, str] | None = None,
        capabilities: Message | None = None,
    ) -> None:
        super().__init__(revision, capabilities)
        self.url = url
        self.headers = {"accept": "application/json, text/event-stream", **(headers or {})}
        """Sent with every request; `open` adds the session id."""
        self._streams: dict[int, anyio.CancelScope] = {}

    async def __aenter__(self) -> Self:
        self._block = self._run()
        return await self._block.__aenter__()

    async def __aexit__(self, *failure: Any) -> bool | None:
        return await self._block.__aexit__(*failure)

    @asynccontextmanager
    async def _run(self) -> AsyncGenerator[Self]:
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=20)
        async with (
            httpx2.AsyncClient(timeout=httpx2.Timeout(None), limits=limits, trust_env=False) as self.client,
            _tasks() as self._tasks,
        ):
            yield self
            if "mcp-session-id" in self.headers:
                with anyio.fail_after(_SECONDS):
                    await self.client.delete(self.url, headers=self.headers)

    async def open(self) -> Message:
        server = await super().open()
        if not self.modern:
            # Without this stream whatever the server says outside a call is lost.
            await self._tasks.start(self._follow)
        return server

    async def send_raw(self, data: bytes, headers: Mapping[str, str] | None = None) -> httpx2.Response:
        """POST `data` as it is, with `headers` over the usual ones; the whole response, whatever its status."""
        usual = {**self.headers, "content-type": "application/json"}
        with anyio.fail_after(_SECONDS):
            return await self.client.post(self.url, content=data, headers={**usual, **(headers or {})})

    async def unlisten(self, listen_id: int) -> None:
        self._streams.pop(listen_id).cancel()

    def headers_for(self, message: Message) -> dict[str, str]:
        """The headers a well-behaved client of this revision sends with `message`."""
        headers = {**self.headers, "content-type": "application/json"}
        method = message.get("method")
        if self.revision >= "2025-06-18" and method != "initialize":
            headers["mcp-protocol-version"] = self.revision
        if self.modern and method is not None:
            headers["mcp-method"] = method
            if method in _NAMED_BY:
                headers["mcp-name"] = _header_text(message["params"].get(_NAMED_BY[method], ""))
        return headers

    async def _send(self, message: Message) -> None:
        content = json.dumps(message).encode()
        post = self.client.stream("POST", self.url, content=content, headers=self.headers_for(message))
        async with post as response:
            if message.get("method") == "initialize" and "mcp-session-id" in response.headers:
                self.headers["mcp-session-id"] = response.headers["mcp-session-id"]
            answered = "id" not in message or "method" not in message
            async for received in _messages(response):
                if received.get("id", message.get("id")) is None:
                    received["id"] = message.get("id")
                self._receive(received)
                answered = answered or (received.get("id") == message.get("id") and "method" not in received)
            if response.is_error and not answered:
                raise WireError(response.status_code, response.reason_phrase)
            if not answered:
                raise WireClosed(f"the response to {message.get('method')} ended without an answer")

    async def _hold(self, message: Message) -> None:
        self._tasks.start_soon(self._stream, message)

    async def _stream(self, message: Message) -> None:
        with anyio.CancelScope() as scope:
            self._streams[message["id"]] = scope
            try:
                await self._send(message)
            except (httpx2.TransportError, WireClosed):
                pass  # The server left: whoever waits for something runs into its deadline or asks again.
            except WireError as exc:
                error = {"code": exc.code, "message": exc.message}
                self._receive({"jsonrpc": "2.0", "id": message["id"], "error": error})

    async def _follow(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        headers = {**self.headers_for({}), "accept": "text/event-stream"}
        try:
            async with self.client.stream("GET", self.url, headers=headers) as response:
                task_status.started()
                async for message in _messages(response):
                    self._receive(message)
        except httpx2.TransportError:
            self._end()


@asynccontextmanager
async def _tasks() -> AsyncGenerator[anyio.abc.TaskGroup]:
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


async def _messages(response: httpx2.Response) -> AsyncIterator[Message]:
    """The JSON-RPC messages of a JSON or an event-stream body, each as it arrives."""
    kind = response.headers.get("content-type", "").partition(";")[0]
    if kind == "application/json":
        if body := await response.aread():  # A 202 has none.
            yield json.loads(body)
    elif kind == "text/event-stream":
        async for event in httpx2.EventSource(response, max_event_size=None):
            if event.data:
                yield json.loads(event.data)


def _result(answer: Message) -> Message:
    error = answer.get("error")
    if error is not None:
        raise WireError(error["code"], error["message"], error.get("data"))
    return answer["result"]


def _notifies(method: str, where: Callable[[Message], bool]) -> Callable[[Message], bool]:
    def matches(message: Message) -> bool:
        return message.get("method") == method and "id" not in message and where(message.get("params", {}))

    return matches


def _header_text(value: str) -> str:
    """`value` as the transport's header rule wants it: plain where printable ASCII, else marked base64."""
    plain = value.isascii() and value.isprintable() and value == value.strip() and not value.startswith("=?")
    return value if plain else f"=?base64?{base64.b64encode(value.encode()).decode()}?="
