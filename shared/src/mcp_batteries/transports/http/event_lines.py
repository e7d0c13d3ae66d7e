"""Line ends in streams of events, which clients disagree about.

A line of an event ends with a line feed, a carriage return or both (HTML, section 9.2.6). But clients that split text
as Python does, such as the SDK for Python 1.x with httpx-sse before 0.4.2, also end it at other characters, which JSON
may hold as they are. They read half of an answer, and their call waits for ever. So events hold these characters
escaped.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["escape_line_ends"]

# The other characters at which `str.splitlines` ends a line are controls, which JSON always escapes.
_ESCAPES = {character.encode(): f"\\u{ord(character):04x}".encode() for character in "\x85\u2028\u2029"}


def escape_line_ends(app: ASGIApp) -> ASGIApp:
    """Wrap `app` to escape, in its streams of events, what only some clients take for the end of a line."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        await app(scope, receive, _escaping(send))

    return serve


def _escaping(send: Send) -> Send:
    """Return the `send` of one request; each part has whole characters, and such a one only inside a JSON string."""
    has_events = False

    async def send_escaped(part: Message) -> None:
        nonlocal has_events
        if part["type"] == "http.response.start":
            content_type = dict(part.get("headers", ())).get(b"content-type", b"")
            has_events = content_type.startswith(b"text/event-stream")
        elif has_events and part["type"] == "http.response.body":
            part = {**part, "body": _escape(part.get("body", b""))}
        await send(part)

    return send_escaped


def _escape(text: bytes) -> bytes:
    for character, escape in _ESCAPES.items():
        text = text.replace(character, escape)
    return text
