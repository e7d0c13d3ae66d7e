"""The answer that refuses a message over HTTP: a status, and an error with the id of the request if it is known."""

from __future__ import annotations

import json
from typing import Any

from mcp_types.jsonrpc import INVALID_REQUEST, ErrorData, JSONRPCError, RequestId
from starlette.responses import Response

from mcp_batteries.transports.jsonrpc import dump

__all__ = ["BadRequest"]


class BadRequest(Exception):
    """Raised for a message that is refused; carries the answer.

    Attributes:
        status: of the answer; it may be changed.
        request_id: None if it is unknown, or there is none.
    """

    def __init__(
        self,
        status: int,
        message: str,
        code: int = INVALID_REQUEST,
        request_id: RequestId | None = None,
        headers: dict[str, str] | None = None,
        data: Any = None,
    ) -> None:
        self.status = status
        self.request_id = request_id
        self._headers = headers
        self._problem = ErrorData(code=code, message=message)
        if data is not None:
            self._problem.data = data

    @property
    def response(self) -> Response:
        body = json.loads(dump(JSONRPCError(jsonrpc="2.0", id=self.request_id, error=self._problem)))
        body.setdefault("id", None)  # JSON-RPC 2.0, section 5: null if the id is unknown.
        text = json.dumps(body, separators=(",", ":"))
        response = Response(text, self.status, self._headers, media_type="application/json")
        if self.status == 408:
            response.headers["connection"] = "close"
        return response
