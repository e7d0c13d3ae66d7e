"""What MCP-Protocol-Version of a request says, and whether the rest of the request is of that revision."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

from mcp_types import HEADER_MISMATCH, INVALID_PARAMS, PROTOCOL_VERSION_META_KEY, UNSUPPORTED_PROTOCOL_VERSION
from mcp_types.jsonrpc import ErrorData, JSONRPCRequest
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, KNOWN_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from starlette.datastructures import Headers

from mcp_batteries.errors import quote

__all__ = ["check_revision"]

_HEADER = "MCP-Protocol-Version"
_MAX_QUOTED = 40


class _Declared(NamedTuple):
    """Where a request says its revision.

    Attributes:
        header: the value of the header; None without one.
        envelope: the value in `params._meta`, as every request of 2026-07-28 has it; None without one.
    """

    header: str | None
    envelope: object


def check_revision(headers: Headers, request: JSONRPCRequest) -> ErrorData | None:
    """Return the error that says what is wrong with the revision of `request`, or None.

    The SDK takes every header that names no revision with a handshake for one of 2026-07-28. It would demand what no
    client of another revision has, and say nothing of the header.
    """
    meta: Any = (request.params or {}).get("_meta")
    envelope: object = None
    if isinstance(meta, dict):
        envelope = cast("dict[str, Any]", meta).get(PROTOCOL_VERSION_META_KEY)
    declared = _Declared(headers.get(_HEADER), envelope)
    if "mcp-session-id" in headers:
        return _check_in_session(declared)
    if declared.envelope is None:
        return _check_header_alone(declared, request.method)
    return _check_envelope(declared)


def _check_in_session(declared: _Declared) -> ErrorData | None:
    """Check a request of a session, whose revision `initialize` agreed on."""
    if declared.header is None or declared.header in HANDSHAKE_PROTOCOL_VERSIONS or declared.envelope is not None:
        return None
    if declared.header:
        contradiction = f"and {quote(declared.header)} has no sessions here"
    else:
        contradiction = f"but {_HEADER} is empty"
    text = (
        f"A session keeps the revision that `initialize` agreed on, {contradiction}. "
        f"Send the `protocolVersion` of that answer as {_HEADER}."
    )
    return ErrorData(code=INVALID_PARAMS, message=text)


def _check_header_alone(declared: _Declared, method: str) -> ErrorData | None:
    """Check a request without a session and without an envelope."""
    header = declared.header
    if header is None or header in HANDSHAKE_PROTOCOL_VERSIONS:
        return None
    if header in MODERN_PROTOCOL_VERSIONS:
        if method != "initialize":
            return None  # The SDK says which members of `_meta` are missing.
        text = (
            f"{_HEADER} is {quote(header)}, which has no `initialize`. Leave the header out of `initialize`; "
            "the answer says which revision to send then."
        )
        return ErrorData(code=INVALID_PARAMS, message=text)
    fault = f"{_HEADER} is {quote(header[:_MAX_QUOTED])}, which is no revision that this server has"
    if not header:
        fault = f"{_HEADER} is empty"
    text = f"{fault}. Send one of {', '.join(KNOWN_PROTOCOL_VERSIONS)}, or with `initialize` none."
    data = {"supported": [*KNOWN_PROTOCOL_VERSIONS], "requested": header[:_MAX_QUOTED]}
    return ErrorData(code=UNSUPPORTED_PROTOCOL_VERSION, message=text, data=data)


def _check_envelope(declared: _Declared) -> ErrorData | None:
    """Check a request with the envelope of 2026-07-28 and without a session."""
    if declared.header is not None and declared.header not in HANDSHAKE_PROTOCOL_VERSIONS:
        return None  # The SDK compares both.
    fault = f"{_HEADER} is missing"
    if declared.header is not None:
        fault = f"{_HEADER} is {quote(declared.header)}"
    text = f"{fault}, but `_meta` is of {quote(str(declared.envelope)[:_MAX_QUOTED])}. Send that as {_HEADER} too."
    return ErrorData(code=HEADER_MISMATCH, message=text)
