"""Arrays of messages, which only 2025-03-26 has: each member is served as if it came separately.

(JSON-RPC 2.0, section 6; MCP 2025-03-26, basic, "Batching". Later revisions took them out again.)
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple, cast

from mcp.shared.dispatcher import as_request_id
from mcp_types.jsonrpc import INVALID_REQUEST, JSONRPCMessage, JSONRPCRequest, RequestId

from mcp_batteries.transports.jsonrpc import Malformed, NotUtf8, decode, dump, error, parse, request_id_in

__all__ = ["REVISION", "Batches", "SplitArray", "check_member", "members"]

# The only revision that has arrays.
REVISION = "2025-03-26"
_BLANKS = b" \t\r\n\xef\xbb\xbf"


def members(body: bytes) -> list[bytes] | None:
    """Return the messages in the array `body`, or None if it is anything else.

    A member that is not an object, such as a nested array, is passed on as a message that is refused separately.

    Raises:
        NotUtf8: The array is in another encoding, or damaged.
    """
    if not _is_array(body):
        return None
    try:
        items = cast("object", json.loads(decode(body)))
    except (ValueError, RecursionError):
        return None
    if not isinstance(items, list) or not items:
        return None
    messages: list[bytes] = []
    for item in cast("list[Any]", items):
        message: Any = item
        if not isinstance(item, dict):
            message = 0
        messages.append(json.dumps(message).encode())
    return messages


def check_member(message: JSONRPCMessage) -> None:
    """Refuse what cannot be part of an array.

    Raises:
        Malformed: It is `initialize`, which comes alone (MCP 2025-03-26, "Lifecycle").
    """
    if isinstance(message, JSONRPCRequest) and message.method == "initialize":
        raise Malformed(INVALID_REQUEST, "Invalid request: `initialize` comes alone.", message.id)


def _is_array(body: bytes) -> bool:
    """Tell whether the first sign of `body` opens an array."""
    return body.lstrip(_BLANKS)[:1] == b"["


def _refuse_each(line: bytes, problem: NotUtf8) -> bytes:
    """Return the answer to the array `line`: the same error for each request whose id can be read.

    Each of these waits for its own answer. JSON-RPC has one error without an id if there are none.
    """
    try:
        items = cast("object", json.loads(line.decode("utf-8", "replace").removeprefix("\ufeff")))
    except (ValueError, RecursionError):
        items = None
    batch = _Batch()
    if isinstance(items, list):
        for item in cast("list[object]", items):
            request_id = request_id_in(item)
            if request_id is not None:
                batch.answers.append(dump(error(request_id, problem.code, problem.message)).strip())
    if batch.answers:
        return batch.complete_line()
    return dump(error(None, problem.code, problem.message))


class SplitArray(NamedTuple):
    """An array of messages, split.

    Attributes:
        messages: the lines to serve.
        answer: what to write at once; empty while an answer is due.
    """

    messages: list[bytes]
    answer: bytes


class Batches:
    """The arrays on one pipe whose answers are not complete; each array gets one line as its answer."""

    def __init__(self) -> None:
        self._is_enabled = False
        self._open: dict[RequestId, _Batch] = {}

    def negotiate(self, request: JSONRPCRequest) -> None:
        """Accept arrays from now on if this `initialize` requests the one revision that has them."""
        self._is_enabled = (request.params or {}).get("protocolVersion") == REVISION

    def split(self, line: bytes, in_flight: Callable[[RequestId], bool]) -> SplitArray | None:
        """Return the messages in the array `line`, or None if it is anything else."""
        if not self._is_enabled:
            return None
        try:
            lines = members(line)
        except NotUtf8 as problem:
            return SplitArray([], _refuse_each(line, problem))
        if lines is None:
            return None
        batch = _Batch()
        messages: list[bytes] = []
        for text in lines:
            try:
                self._register(parse(text), batch, in_flight)
            except Malformed as problem:
                batch.answers.append(dump(error(problem.request_id, problem.code, problem.message)).strip())
            else:
                messages.append(text)
        return SplitArray(messages, batch.complete_line())

    def _register(self, message: JSONRPCMessage, batch: _Batch, in_flight: Callable[[RequestId], bool]) -> None:
        """Let `batch` wait for the answer to `message`, if that is a request.

        Raises:
            Malformed: The request can't be part of an array, or its id is in use.
        """
        check_member(message)
        if not isinstance(message, JSONRPCRequest):
            return
        if message.id in self._open or in_flight(message.id):
            raise Malformed(INVALID_REQUEST, "Invalid request: this `id` is already in flight.", message.id)
        self._open[message.id] = batch
        batch.missing.add(message.id)

    def add_answer(self, request_id: RequestId | None, data: bytes) -> bytes:
        """Return what to write for the answer `data`: itself, nothing yet, or the whole array that it completes."""
        if request_id is None:
            return data
        batch = self._open.pop(request_id, None)
        if batch is None:
            return data
        batch.missing.discard(request_id)
        batch.answers.append(data.strip())
        return batch.complete_line()

    def cancel(self, request_id: object) -> bytes:
        """Return what to write after the client cancelled one of its calls.

        That is the whole array, if only this answer was missing.
        """
        valid_id = as_request_id(request_id)
        if valid_id is None:
            return b""
        batch = self._open.pop(valid_id, None)
        if batch is None:
            return b""
        batch.missing.discard(valid_id)
        return batch.complete_line()


class _Batch:
    """The answers to one array so far, and the ids of those to come."""

    def __init__(self) -> None:
        self.missing: set[RequestId] = set()
        self.answers: list[bytes] = []

    def complete_line(self) -> bytes:
        """Return the array as a line, or nothing while an answer is missing and if none is due."""
        if not self.answers or self.missing:
            return b""
        return b"[" + b",".join(self.answers) + b"]\n"
