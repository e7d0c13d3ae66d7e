"""How long a message may be and how many values it may hold, and which request it was if it is over that."""

from __future__ import annotations

from mcp_types.jsonrpc import RequestId
from starlette.types import Receive

from mcp_batteries.transports.jsonrpc import peek_id

__all__ = ["TOO_MANY_VALUES", "describe_limit", "find_id", "has_too_many_values", "peek_body_id"]

# The values of one message are bounded, because 4 MiB can hold a million lists, which cost everybody seconds to read.
_MAX_VALUES = 100_000
TOO_MANY_VALUES = f"A message holds at most {_MAX_VALUES:,} values. Send less at once."

# The id of a message that is too long is looked for at its ends, unless it is too long even to be read and dropped.
_PEEK_BYTES = 64 * 1024
_MAX_DROPPED_BYTES = 64 * 1024 * 1024


def describe_limit(max_body: int) -> str:
    """Return the words of the refusal of a message that is longer than `max_body` bytes."""
    return f"A message has at most {max_body} bytes. Send less at once."


def peek_body_id(body: bytes) -> RequestId | None:
    """Return the id of the request in `body`, which is not parsed; None if there is none at its ends."""
    return peek_id(body[:_PEEK_BYTES], body[-_PEEK_BYTES:])


async def find_id(body: bytearray, receive: Receive, *, is_whole: bool) -> RequestId | None:
    """Read the rest of a body that is too long to keep, and return the id of its request; None if there is none."""
    head = bytes(body[:_PEEK_BYTES])
    tail = bytes(body[-_PEEK_BYTES:])
    size = len(body)
    body.clear()
    while not is_whole:
        if size > _MAX_DROPPED_BYTES:
            return None
        part = await receive()
        is_whole = not part.get("more_body", False)
        chunk = part.get("body", b"")
        size += len(chunk)
        head += chunk[: _PEEK_BYTES - len(head)]
        tail = (tail + chunk)[-_PEEK_BYTES:]
    return peek_id(head, tail)


def has_too_many_values(body: bytes) -> bool:
    """Tell whether `body` contains more values than `_MAX_VALUES`; it need not be JSON."""
    if _count_values(body) <= _MAX_VALUES:
        return False
    # Count again without the contents of strings, such as the lines of a file to write.
    quotes = body.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
    return _count_values(b"".join(quotes[::2])) > _MAX_VALUES


def _count_values(text: bytes) -> int:
    return text.count(b",") + text.count(b"[") + text.count(b"{")
