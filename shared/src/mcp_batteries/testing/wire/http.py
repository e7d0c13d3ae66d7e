"""The wire to a server over Streamable HTTP."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Self

import anyio
import anyio.abc
import httpx2

from mcp_batteries.testing.wire.base import SECONDS, Message, Wire, WireClosed, WireError, background

__all__ = ["HttpWire"]

_NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


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
            background() as self._tasks,
        ):
            yield self
            if "mcp-session-id" in self.headers:
                with anyio.fail_after(SECONDS):
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
        with anyio.fail_after(SECONDS):
            return await self.client.post(self.url, content=data, headers={**usual, **(headers or {})})

    async def unlisten(self, listen_id: int) -> None:
        self._streams.pop(listen_id).cancel()

    def headers_for(self, message: Message) -> dict[str, str]:
        """Return the headers a well-behaved client of this revision sends with `message`."""
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


async def _messages(response: httpx2.Response) -> AsyncIterator[Message]:
    """Yield the JSON-RPC messages of a JSON or an event-stream body, each as it arrives."""
    kind = response.headers.get("content-type", "").partition(";")[0]
    if kind == "application/json":
        if body := await response.aread():  # A 202 has none.
            yield json.loads(body)
    elif kind == "text/event-stream":
        async for event in httpx2.EventSource(response, max_event_size=None):
            if event.data:
                yield json.loads(event.data)


def _header_text(value: str) -> str:
    """Return `value` as the transport's header rule wants it: plain where printable ASCII, else marked base64."""
    plain = value.isascii() and value.isprintable() and value == value.strip() and not value.startswith("=?")
    return value if plain else f"=?base64?{base64.b64encode(value.encode()).decode()}?="
