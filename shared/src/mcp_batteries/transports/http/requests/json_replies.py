"""Answers over HTTP to older clients: plain JSON, and a stream only if there is something to stream.

The SDK opens a stream of events for every request of the revisions before 2026-07-28. Creating, guarding and ending one
costs as much as the call itself, and buffering proxies hold it back. For 2026-07-28 it waits first, and this module
does so for all revisions. Messages besides the result, and questions to the client, still make the answer a stream.

The stream on which a session hears of changes may be cut and opened again, with or without `Last-Event-ID`. Notices
sent in the meantime are not kept, so the hub hears of each stream that opens.
"""

from __future__ import annotations

import math
import re
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Coroutine, Generator
from contextlib import aclosing, contextmanager
from functools import partial
from typing import Any, cast

import anyio
import anyio.lowlevel
from mcp.server import streamable_http
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from sse_starlette import EventSourceResponse
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from mcp_batteries.sdk import SSE_RESPONSE

__all__ = ["ACCEPTS_EVENTS", "STREAM_OPENED", "json_replies"]

# The key in the scope of a request that says whether its answer may be a stream.
ACCEPTS_EVENTS = "mcp_batteries.accepts_events"
# The key of what is called once a GET request is the stream of its session.
STREAM_OPENED = "mcp_batteries.stream_opened"

# Longer calls get their stream, with its signs of life, before a client or proxy counts them as lost.
_STREAM_AFTER_SECONDS = 1.0
# The SDK writes like this the last message of a stream, the one that answers the request.
_RESULT = re.compile(r'\{"jsonrpc":"2\.0","id":(?:-?\d+|"(?:[^"\\]|\\.)*+"),"(?:result|error)":')


_Sender = Callable[[], Coroutine[None, None, None]]


class _JsonOrStream(EventSourceResponse):
    """A response that becomes a stream only once there is something to stream."""

    def __init__(self, report_open: Callable[[str], None], *args: Any, **kwargs: Any) -> None:
        cast("Any", super()).__init__(*args, **kwargs)
        self._report_open = report_open

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sender = self.data_sender_callable
        if sender is None:
            await super().__call__(scope, receive, send)
        elif scope["method"] == "POST":
            await self._answer(sender, scope, receive, send)
        else:
            if scope["method"] == "GET":
                self.data_sender_callable = partial(self._send_and_report, sender, scope)
            await super().__call__(scope, receive, send)

    async def _answer(self, sender: _Sender, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with JSON if the result comes first and soon, otherwise with a stream."""
        self.data_sender_callable = None
        events = aiter(cast("AsyncIterable[dict[str, str]]", self.body_iterator))
        first: dict[str, str] = {}
        is_result = False
        seconds = math.inf
        if scope.get(ACCEPTS_EVENTS, True):
            seconds = _STREAM_AFTER_SECONDS
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(sender)
            with anyio.move_on_after(seconds):
                first = await anext(events, first)
            is_result = _RESULT.match(first.get("data", "")) is not None
            if not is_result:
                async with aclosing(_prepend(first, events)) as self.body_iterator:
                    await super().__call__(scope, receive, send)
                tasks.cancel_scope.cancel()
        if not is_result:
            return
        # The sender is through, so a next request under this id can come.
        headers: dict[str, str] = {}
        session = self.headers.get(MCP_SESSION_ID_HEADER)
        if session:
            headers[MCP_SESSION_ID_HEADER] = session
        await Response(first["data"], headers=headers, media_type="application/json")(scope, receive, send)

    async def _send_and_report(self, sender: _Sender, scope: Scope) -> None:
        """Send the changes of a session, and report that its stream is open."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(sender)
            # With its first step it is the stream of its session.
            await anyio.lowlevel.checkpoint()
            if STREAM_OPENED in scope:
                scope[STREAM_OPENED]()
            self._report_open(self.headers.get(MCP_SESSION_ID_HEADER, ""))


async def _prepend(first: dict[str, str], events: AsyncIterable[dict[str, str]]) -> AsyncGenerator[dict[str, str]]:
    """Yield `first`, unless it is empty, and then the other `events`."""
    if first:
        yield first
    async for event in events:
        yield event


@contextmanager
def json_replies(report_open: Callable[[str], None]) -> Generator[None]:
    """Let the SDK's sessions answer with JSON where possible, for as long as the block lasts.

    Args:
        report_open: called with the session of each stream of changes that opens.
    """
    setattr(streamable_http, SSE_RESPONSE, partial(_JsonOrStream, report_open))
    try:
        yield
    finally:
        setattr(streamable_http, SSE_RESPONSE, EventSourceResponse)
