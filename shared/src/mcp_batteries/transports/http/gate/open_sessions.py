"""The sessions that callers have open over HTTP: which one a message is of, who opened it, and which one ends first."""

from __future__ import annotations

import json
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp_types.jsonrpc import RequestId
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.types import Message, Scope, Send

from mcp_batteries.sdk import Sessions
from mcp_batteries.transports.http.callers import caller_of
from mcp_batteries.transports.http.gate.bad_request import BadRequest

__all__ = ["OpenSessions", "is_of_session", "without_dead_session"]

_NO_SESSION = "Missing session ID. Send `initialize` first, and the Mcp-Session-Id of its answer with every request."
_ENDED_SESSION = "Session not found: it has ended, or is another caller's. Send `initialize` without Mcp-Session-Id."
# As the SDK for TypeScript has it: hosts that look for it in the body, such as Claude Code, then open a new session.
# By any other code they would send the old id for ever.
_ENDED_SESSION_CODE = -32001


class OpenSessions:
    """The sessions of `server`.

    Args:
        max_each: how many one caller may have open; of more, the one that was used longest ago ends.
    """

    def __init__(self, server: MCPServer[Any], max_each: int) -> None:
        self._sessions = Sessions(server)
        self._max_each = max_each
        # Who opened each session; the one that was used last is the last.
        self._owners: dict[str, str] = {}

    def check(self, scope: Scope, headers: Headers, request_id: RequestId | None = None) -> None:
        """Refuse what is of a session, and names none that its sender has open."""
        if not is_of_session(headers):
            return
        session = headers.get("mcp-session-id")
        if session is None:
            raise BadRequest(400, _NO_SESSION, request_id=request_id)
        if self._sessions.of(scope, session) is None:
            raise BadRequest(404, _ENDED_SESSION, _ENDED_SESSION_CODE, request_id)

    def is_from_client(self, scope: Scope, headers: Headers) -> bool:
        """Tell whether a message comes from the client of an open session, to whom its id is worth the reading."""
        session = headers.get("mcp-session-id")
        return session is not None and is_of_session(headers) and self._sessions.of(scope, session) is not None

    def find(self, scope: Scope, session: str) -> StreamableHTTPServerTransport | None:
        """Return this session, if the sender of a request has it open."""
        return self._sessions.of(scope, session)

    def mark_used(self, session: str) -> None:
        """Make `session` the one of its owner that was used last."""
        if session in self._owners:
            self._owners[session] = self._owners.pop(session)

    def remember_owner(self, scope: Scope, send: Send) -> Send:
        """Return the `send` for a client that opens a session, which remembers the session's owner.

        A caller that opens many and closes none only loses its own, and none for a request that is refused.
        """
        caller = caller_of(scope)
        start: Message | None = None

        async def note_session(part: Message) -> None:
            nonlocal start
            if part["type"] == "http.response.start":
                start = part
                return
            opened_session = None
            failed_session = None
            if start is not None:
                session = Headers(raw=start["headers"]).get("mcp-session-id")
                if session is not None and _is_error(part.get("body", b"")):
                    failed_session = session
                    start = {**start, "headers": [item for item in start["headers"] if item[0] != b"mcp-session-id"]}
                elif session is not None:
                    opened_session = session
                    self._owners[session] = caller
                await send(start)
                start = None
            await send(part)
            if failed_session is not None:
                # The SDK keeps the session of a client whose `initialize` it has refused.
                await self._sessions.end(failed_session)
            if opened_session is not None:
                await self._end_oldest(caller)

        return note_session

    async def _end_oldest(self, caller: str) -> None:
        """End the session of `caller` that was used longest ago, if it has more than its share."""
        open_ids = self._sessions.ids
        self._owners = {session: owner for session, owner in self._owners.items() if session in open_ids}
        own = [session for session, owner in self._owners.items() if owner == caller]
        if len(own) > self._max_each:
            await self._sessions.end(own[0])


def is_of_session(headers: Headers) -> bool:
    """Tell whether a message with these headers is of a revision that has sessions."""
    revision = headers.get("mcp-protocol-version")
    return revision is None or revision in HANDSHAKE_PROTOCOL_VERSIONS


def without_dead_session(send: Send) -> Send:
    """Return the `send` for a request without a session.

    When the SDK refuses such a request, its answer names a session that it has dropped; this `send` leaves it out.
    """

    async def send_without_session(part: Message) -> None:
        if part["type"] == "http.response.start" and part["status"] >= 400:
            part = {**part, "headers": [item for item in part["headers"] if item[0].lower() != b"mcp-session-id"]}
        await send(part)

    return send_without_session


def _is_error(body: bytes) -> bool:
    """Tell whether a message is an error."""
    try:
        message: Any = json.loads(body)
    except ValueError:
        return False
    return isinstance(message, dict) and "error" in message
