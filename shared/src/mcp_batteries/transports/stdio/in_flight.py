"""The calls in flight on one pipe: their number, their ids, and when the last one is answered."""

from __future__ import annotations

import anyio
from mcp.shared.dispatcher import coerce_request_id
from mcp_types.jsonrpc import INVALID_REQUEST, JSONRPCRequest, RequestId

from mcp_batteries.transports.batches import Batches
from mcp_batteries.transports.jsonrpc import Malformed

__all__ = ["BUSY", "Calls"]

# Implementation-defined server error (JSON-RPC 2.0, section 5.1): too many calls in flight.
BUSY = -32000


class Calls:
    """The requests that the server has received and not answered yet.

    Args:
        limit: the maximum number.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.batches = Batches()
        self._methods: dict[RequestId, str] = {}
        self._questions: set[RequestId] = set()
        self._change = anyio.Event()

    def enter(self, request: JSONRPCRequest) -> None:
        """Count `request` in.

        Raises:
            Malformed: Its id is in use, or there are too many calls.
        """
        if request.id in self._methods:
            raise Malformed(INVALID_REQUEST, "Invalid request: this `id` is already in flight.", request.id)
        if len(self._methods) >= self._limit:
            raise Malformed(
                BUSY, f"Too many calls in flight (the limit is {self._limit}): await some answers.", request.id
            )
        self._methods[request.id] = request.method

    def holds(self, request_id: RequestId) -> bool:
        """Tell whether a request of this id is in flight."""
        return request_id in self._methods

    def leave(self, request_id: RequestId | None) -> None:
        """Count a request out: answered, or cancelled by the client."""
        if request_id is not None and self._methods.pop(request_id, None) is not None:
            self._change.set()

    def add_question(self, request_id: RequestId) -> None:
        """Note that the server asks the client something with a request of its own."""
        self._questions.add(coerce_request_id(request_id))
        self._change.set()

    def settle_question(self, request_id: RequestId | None) -> None:
        """Note that the client answered a request of the server's."""
        if request_id is not None:
            self._questions.discard(coerce_request_id(request_id))

    async def wait_drained(self) -> RequestId | None:
        """Return a question that the departed client will never answer, or None once all calls are answered."""
        while not self._questions:
            if all(method == "subscriptions/listen" for method in self._methods.values()):
                return None
            self._change = anyio.Event()
            await self._change.wait()
        return self._questions.pop()
