"""The answer that refuses a message over HTTP: a status, and an error with the id of the request if it is known."""

from __future__ import annotations

import json
import math
from typing import Any

from mcp_types.jsonrpc import INVALID_REQUEST, ErrorData, JSONRPCError, RequestId
from starlette.responses import Response
from starlette.types import Scope

from mcp_batteries.errors import Unavailable
from mcp_batteries.transports.http.refusals import set_reason
from mcp_batteries.transports.jsonrpc import Malformed, dump

__all__ = ["BadRequest", "as_bad_request"]


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


def as_bad_request(
    scope: Scope, problem: Unavailable | Malformed | BadRequest, request_id: RequestId | None
) -> BadRequest:
    """Return the refusal of a message because of `problem`; a limit's reason goes into the log of refusals."""
    match problem:
        case Unavailable():
            set_reason(scope, problem.failure)
            wait = {"retry-after": str(math.ceil(problem.retry_after or 1))}
            return BadRequest(429, str(problem), request_id=request_id, headers=wait)
        case Malformed():
            return BadRequest(400, problem.message, problem.code, problem.request_id)
        case BadRequest():
            return problem
