"""The form of an answer that a client accepts: one JSON message, a stream of events, or either.

A client should accept both (MCP, "Streamable HTTP"), but proxies and small clients name only one, or none. They are
served where an answer of that form is possible: a message always fits into a stream, and a call that asks or tells its
client nothing on the way is answered by one message.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from starlette.types import Message, Send

__all__ = ["ACCEPTS_BOTH", "AnswerForms", "parse_accept", "send_as_events"]

# What the SDK, which knows only clients that accept both, reads instead of the client's own header.
ACCEPTS_BOTH = b"application/json, text/event-stream"
_JSON = "application/json"
_EVENTS = "text/event-stream"
_EVENT_HEADERS = [(b"content-type", _EVENTS.encode()), (b"cache-control", b"no-cache, no-transform")]


class AnswerForms(NamedTuple):
    """What a client accepts.

    Attributes:
        json: one JSON message.
        events: a stream of events.
    """

    json: bool
    events: bool


@lru_cache(16)
def parse_accept(text: str) -> AnswerForms:
    """Return what the value of an Accept header allows (RFC 9110, section 12.5.1); an empty one allows everything."""
    weights: dict[str, float] = {}
    for part in text.split(","):
        media_range, *parameters = [item.strip().lower() for item in part.split(";")]
        weights[media_range] = _weight(parameters)
    if weights.keys() <= {""}:
        return AnswerForms(json=True, events=True)
    return AnswerForms(json=_is_accepted(_JSON, weights), events=_is_accepted(_EVENTS, weights))


def _weight(parameters: list[str]) -> float:
    """Return the weight among the parameters of a media range; 1 if there is none that can be read."""
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return float(value)
            except ValueError:
                return 1.0
    return 1.0


def _is_accepted(media_type: str, weights: dict[str, float]) -> bool:
    """Tell whether the most specific range for `media_type` has a weight above 0."""
    kind, _, _ = media_type.partition("/")
    for media_range in (media_type, f"{kind}/*", "*/*"):
        if media_range in weights:
            return weights[media_range] > 0
    return False


def send_as_events(send: Send) -> Send:
    """Return a `send` for a client that accepts only events: an answer of one message becomes a stream of one event.

    Errors of HTTP stay as they are.
    """
    is_converted = False
    body = bytearray()

    async def send_event(part: Message) -> None:
        nonlocal is_converted
        if part["type"] == "http.response.start":
            headers: list[tuple[bytes, bytes]] = part["headers"]
            is_converted = part["status"] == 200 and dict(headers).get(b"content-type") == _JSON.encode()
            if is_converted:
                others = [item for item in headers if item[0] not in (b"content-type", b"content-length")]
                part = {**part, "headers": [*_EVENT_HEADERS, *others]}
        elif is_converted:
            body.extend(part.get("body", b""))
            if part.get("more_body", False):
                return
            part = {"type": part["type"], "body": b"event: message\r\ndata: " + body.strip() + b"\r\n\r\n"}
        await send(part)

    return send_event
