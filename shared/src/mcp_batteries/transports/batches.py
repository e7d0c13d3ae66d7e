"""Arrays of messages, which only 2025-03-26 has: each member is served as if it came separately.

(JSON-RPC 2.0, section 6; MCP 2025-03-26, basic, "Batching". Later revisions took them out again.)
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

from mcp.shared.dispatcher import as_request_id, coerce_request_id
from mcp_types.jsonrpc import INVALID_REQUEST, JSONRPCRequest, RequestId

from mcp_batteries.transports.jsonrpc import Malformed, NotUtf8, decode, dump, error, parse, request_id_in

__all__ = ["REVISION", "Batches", "members"]

REVISION = "2025-03-26"
"""The only one that has arrays."""
_BLANKS = b" \t\r\n\xef\xbb\xbf"


def members(body: bytes) -> list[bytes] | None:
    """The messages in the array `body`; None for anything else.

    A member that is not an object, such as a nested array, is passed on as a message that is refused separately.

    Raises:
        NotUtf8: The array is in another encoding, or damaged.
    """
    if not _is_array(body):
        return None
    try:
        found = cast("object", json.loads(decode(body)))
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, list) or not found:
        return None
    return [json.dumps(item if isinstance(item, dict) else 0).encode() for item in cast("list[Any]", found)]


def _is_array(body: bytes) -> bool:
    return body.lstrip(_BLANKS)[:1] == b"["


def _refuse_each(line: bytes, wrong: NotUtf8) -> bytes:
    """Return the answer to the array `line`: the same error for each request whose id can be read.

    Each of these waits for its own answer. JSON-RPC has one error without an id if there are none.
    """
    try:
        found = cast("object", json.loads(line.decode("utf-8", "replace").removeprefix("\ufeff")))
    except (ValueError, RecursionError):
        found = None
    batch = _Batch()
    if isinstance(found, list):
        for item in cast("list[object]", found):
            request_id = request_id_in(item)
            if request_id is not None:
                batch.answers.append(dump(error(request_id, wrong.code, wrong.message)).strip())
    if batch.answers:
        return batch.whole()
    return dump(error(None, wrong.code, wrong.message))


class Batches:
    """The arrays on one pipe whose answers are not complete; each array gets one line as its answer."""

    def __init__(self) -> None:
        self._wanted = False
        self._open: dict[RequestId, _Batch] = {}

    def negotiate(self, request: JSONRPCRequest) -> None:
        """Accept arrays from now on if this `initialize` requests the one revision that has them."""
        self._wanted = (request.params or {}).get("protocolVersion") == REVISION

    def members(self, line: bytes, in_flight: Callable[[RequestId], bool]) -> tuple[list[bytes], bytes] | None:
        """The messages in the array `line`, and any immediate answer; None for anything else."""
        if not self._wanted:
            return None
        try:
            found = members(line)
        except NotUtf8 as wrong:
            return [], _refuse_each(line, wrong)
        if found is None:
            return None
        batch = _Batch()
        messages: list[bytes] = []
        for text in found:
            try:
                message = parse(text)
                if isinstance(message, JSONRPCRequest):
                    if message.method == "initialize":
                        raise Malformed(INVALID_REQUEST, "Invalid request: `initialize` comes alone.", message.id)
                    key = coerce_request_id(message.id)
                    if key in self._open or in_flight(message.id):
                        raise Malformed(INVALID_REQUEST, "Invalid request: this `id` is already in flight.", message.id)
                    self._open[key] = batch
                    batch.missing.add(key)
                messages.append(text)
            except Malformed as wrong:
                batch.answers.append(dump(error(wrong.request_id, wrong.code, wrong.message)).strip())
        return messages, batch.whole()

    def answered(self, request_id: RequestId | None, data: bytes) -> bytes:
        """What to write for the answer `data`: itself, nothing yet, or the whole array that it completes."""
        key = None if request_id is None else coerce_request_id(request_id)
        batch = None if key is None else self._open.pop(key, None)
        if batch is None or key is None:
            return data
        batch.missing.discard(key)
        batch.answers.append(data.strip())
        return batch.whole()

    def dropped(self, request_id: object) -> bytes:
        """What to write after the client cancelled one of its calls: the array, if only that answer was missing."""
        key = as_request_id(request_id)
        key = None if key is None else coerce_request_id(key)
        batch = None if key is None else self._open.pop(key, None)
        if batch is None or key is None:
            return b""
        batch.missing.discard(key)
        return batch.whole()


class _Batch:
    """The answers to one array so far, and the ids of those to come."""

    def __init__(self) -> None:
        self.missing: set[RequestId] = set()
        self.answers: list[bytes] = []

    def whole(self) -> bytes:
        """The array as a line; empty while an answer is missing, and if none is due."""
        return b"[" + b",".join(self.answers) + b"]\n" if self.answers and not self.missing else b""
