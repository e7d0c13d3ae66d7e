"""Reads the body of a message over HTTP: JSON in UTF-8, within a size and a time."""

from __future__ import annotations

from email.message import Message as EmailMessage

import anyio
from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope

from mcp_batteries.errors import quote
from mcp_batteries.transports.http.gate.bad_request import BadRequest
from mcp_batteries.transports.http.gate.message_size import describe_limit, find_id
from mcp_batteries.transports.http.gate.open_sessions import OpenSessions
from mcp_batteries.transports.http.listener.connection import BODY_COMPLETE

__all__ = ["BodyReader"]

# The declared charsets that are read: UTF-8, and what is a part of it.
_CHARSETS = {"utf-8", "utf8", "us-ascii", "ascii"}


class BodyReader:
    """Reads bodies, and refuses those that are too long, too slow or not declared as JSON.

    Args:
        max_body: longest message in bytes.
        seconds: the time within which a body must arrive.
        sessions: their clients are told the id of a message that is too long.
    """

    def __init__(self, *, max_body: int, seconds: float, sessions: OpenSessions) -> None:
        self._max_body = max_body
        self._seconds = seconds
        self._sessions = sessions

    async def read(self, scope: Scope, headers: Headers, receive: Receive) -> bytes | None:
        """Return the whole body, or None if the client left.

        Raises:
            BadRequest: it is refused.
        """
        media_type = headers.get("content-type", "").partition(";")[0].strip()
        if media_type != "application/json" or headers.get("content-encoding", "identity") != "identity":
            raise BadRequest(415, "A message is application/json, in no other encoding.")
        _check_charset(headers.get("content-type", ""))
        declared = headers.get("content-length", "0")
        body = bytearray()
        if len(declared) > 15 or (declared.isdecimal() and int(declared) > self._max_body):
            raise await self._too_long(scope, headers, receive, body)
        if scope.get("state", {}).get(BODY_COMPLETE):
            part = await self._receive_into(body, receive)
        else:
            part = None
            with anyio.move_on_after(self._seconds):
                part = await self._receive_into(body, receive)
            if part is None:
                raise BadRequest(408, f"The message did not arrive within {self._seconds:g} s.")
        if part["type"] == "http.disconnect":
            return None
        if len(body) > self._max_body:
            raise await self._too_long(scope, headers, receive, body, is_whole=not part.get("more_body", False))
        return bytes(body)

    async def _receive_into(self, body: bytearray, receive: Receive) -> Message:
        """Add to `body` what arrives, until it is whole or too long, or the client leaves; return the last part."""
        while True:
            part = await receive()
            if part["type"] == "http.disconnect":
                return part
            body += part.get("body", b"")
            if len(body) > self._max_body or not part.get("more_body", False):
                return part

    async def _too_long(
        self, scope: Scope, headers: Headers, receive: Receive, body: bytearray, *, is_whole: bool = False
    ) -> BadRequest:
        """Return the refusal of a body over the limit, of which `body` has arrived; with its id in an open session."""
        request_id = None
        if self._sessions.is_from_client(scope, headers):
            with anyio.move_on_after(self._seconds):
                request_id = await find_id(body, receive, is_whole=is_whole)
        return BadRequest(413, describe_limit(self._max_body), request_id=request_id)


def _check_charset(content_type: str) -> None:
    """Refuse a body whose header declares a charset that UTF-8 does not contain (RFC 8259, section 8.1)."""
    if ";" not in content_type:
        return
    header = EmailMessage()
    header["content-type"] = content_type
    charset = header.get_param("charset")
    if charset is None or str(charset).lower() in _CHARSETS:
        return
    raise BadRequest(415, f"A message is UTF-8, not {quote(str(charset))}. Encode it as UTF-8, and declare no charset.")
