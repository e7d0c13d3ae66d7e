"""Converts one line of bytes to one JSON-RPC message and back, whatever the line contains.

The SDK's parser and serialiser do the work. Where they fail, this module mends half a surrogate pair, which clients
that cut a text write as an escape, and says what to answer to everything else (JSON-RPC 2.0, section 5.1).
"""

from __future__ import annotations

import json
import logging
import re
from typing import Any, cast

from mcp.shared.dispatcher import as_request_id
from mcp_types.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, from_json, to_json

from mcp_batteries.errors import well_formed

__all__ = [
    "Malformed",
    "NotUtf8",
    "decode",
    "dump",
    "dump_answer",
    "error",
    "is_heard",
    "parse",
    "peek_id",
    "request_id_in",
]

_DEPTH = 200
_DEEP_HEAD = 64 * 1024
_DEEP_TAIL = 4096
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"|[{}\[\]:,]|[^\s{}\[\]:,"]++', re.DOTALL)
_LAST_MEMBER_ID = re.compile(rb'"id"\s*:\s*(-?\d{1,18}|"[^"\\]{0,200}")\s*\}\s*$')

_REPLACEMENT = "\ufffd"

_log = logging.getLogger(__name__)


class Malformed(Exception):
    """Raised when a line is not a JSON-RPC message.

    Args:
        code: the JSON-RPC error code to answer with.
        request_id: the id to answer to, None if it is unknown.
    """

    def __init__(self, code: int, message: str, request_id: RequestId | None = None) -> None:
        self.code = code
        self.message = message
        self.request_id = request_id
        super().__init__(message)


class NotUtf8(Malformed):
    """Raised when a message has bytes that are not UTF-8.

    It is refused, because a tool would store the characters put in their place.

    Args:
        at: the offset of the first such byte, from 0.
        byte: its value.
    """

    def __init__(self, at: int, byte: int, request_id: RequestId | None = None) -> None:
        message = (
            f"Parse error: not UTF-8 at byte {at + 1} (0x{byte:02X}). Nothing was run. "
            "Encode the whole message as UTF-8, and send it again."
        )
        super().__init__(PARSE_ERROR, message, request_id)


def decode(data: bytes) -> str:
    """Return the text of `data` without a byte order mark.

    Raises:
        NotUtf8: `data` is in another encoding, or damaged.
    """
    try:
        return data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as exc:
        raise NotUtf8(exc.start, data[exc.start]) from None


def request_id_in(value: object) -> RequestId | None:
    """Return the id of the request `value`, as far as it can be read; None if it is no request."""
    if not isinstance(value, dict):
        return None
    members = cast("dict[str, Any]", value)
    if "method" not in members:
        # The id of a response is one of the server's own.
        return None
    request_id = as_request_id(members.get("id"))
    if isinstance(request_id, str) and _REPLACEMENT in well_formed(request_id):
        return None
    return request_id


def parse(line: bytes) -> JSONRPCMessage:
    """The message in `line`.

    Raises:
        Malformed: `line` is not JSON, or not a JSON-RPC message.
    """
    try:
        # Most are requests: to look which kind fits best takes 2.5 times as long.
        return JSONRPCRequest.model_validate_json(line, by_name=False)
    except ValidationError:
        pass
    try:
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        if "id" not in from_json(line):
            return message
    except ValidationError:
        pass
    value = _loads(line)
    try:
        message = jsonrpc_message_adapter.validate_python(value, by_name=False)
    except ValidationError:
        raise Malformed(INVALID_REQUEST, *_what_is_wrong(value)) from None
    if "method" in value and "id" in value and not isinstance(message, JSONRPCRequest):
        # The model of a notification overlooks the id: this is a request whose id is none.
        raise Malformed(INVALID_REQUEST, *_what_is_wrong(value))
    return message


def is_heard(message: JSONRPCNotification) -> bool:
    """Whether anything handles `message`: not a notification with a request's method, which could not be answered."""
    return message.method.startswith("notifications/")


def dump(message: JSONRPCMessage) -> bytes:
    """`message` as one line, newline included; an internal error in its place if it can't be written.

    Empty for a notification that can't be written.
    """
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
    except (PydanticSerializationError, ValueError, RecursionError):
        pass
    try:
        value = _clean(message.model_dump(by_alias=True, exclude_unset=True))
        return to_json(value, inf_nan_mode="null") + b"\n"
    except (PydanticSerializationError, ValueError, RecursionError):
        pass
    try:
        # On Windows pydantic writes nothing that is nested deeper than 99 levels; elsewhere its limit is 255.
        value = {
            name: getattr(message, name) for name in type(message).model_fields if name in message.model_fields_set
        }
        return json.dumps(_clean(value), ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode() + b"\n"
    except (TypeError, ValueError, RecursionError) as exc:
        _log.warning("a %s could not be written as JSON: %s", type(message).__name__, exc)
    if isinstance(message, JSONRPCResponse | JSONRPCError):
        return dump(error(message.id, INTERNAL_ERROR, "The result could not be written as JSON."))
    return b""


def dump_answer(request_id: RequestId, result: dict[str, Any] | ErrorData) -> bytes:
    """The answer to a request as one line, as `dump` writes it."""
    if isinstance(result, ErrorData):
        return dump(JSONRPCError(jsonrpc="2.0", id=request_id, error=result))
    try:
        result_json = to_json(result, inf_nan_mode="null")
        return b"".join((b'{"jsonrpc":"2.0","id":', to_json(request_id), b',"result":', result_json, b"}\n"))
    except (PydanticSerializationError, ValueError, RecursionError):
        return dump(JSONRPCResponse(jsonrpc="2.0", id=request_id, result=result))


def error(request_id: RequestId | None, code: int, message: str) -> JSONRPCError:
    """The error answer with `code` and `message`."""
    return JSONRPCError(jsonrpc="2.0", id=request_id, error=ErrorData(code=code, message=message))


def peek_id(head: bytes, tail: bytes) -> RequestId | None:
    """The id of a request that is too long or deep to parse, from the beginning and end of its line."""
    depth = 0
    name = b""
    last = b""
    for found in _TOKEN.finditer(head):
        token = found[0]
        if depth == 1 and last == b":" and name == b'"id"' and found.end() < len(head):
            return as_request_id(_scalar(token))
        if token in b"{[":
            if not depth and token == b"[":
                break
            depth += 1
        elif token in b"]}":
            depth -= 1
        elif token == b":" and depth == 1:
            name = last
        last = token
    # Only the last member of the outer object is followed by a single brace and the end of the line.
    found = _LAST_MEMBER_ID.search(tail)
    return as_request_id(json.loads(found[1])) if found else None


def _scalar(token: bytes) -> object:
    try:
        return json.loads(token)
    except ValueError:
        return None


def _id_in_damaged(line: bytes) -> RequestId | None:
    """Return the id of the request in `line`, which is not UTF-8; None if it cannot be read."""
    try:
        value: object = json.loads(line.decode("utf-8", "replace").removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        # The second byte of a character can be a backslash, as in GBK.
        if b'"method"' not in line:
            return None
        return peek_id(line[:_DEEP_HEAD], line[-_DEEP_TAIL:])
    return request_id_in(value)


def _loads(line: bytes) -> Any:
    try:
        text = decode(line)
    except NotUtf8 as wrong:
        wrong.request_id = _id_in_damaged(line)
        raise
    try:
        return _clean(json.loads(text))
    except RecursionError:
        found = peek_id(line[:_DEEP_HEAD], line[-_DEEP_TAIL:])
        raise Malformed(PARSE_ERROR, f"Parse error: nested more than {_DEPTH} levels deep.", found) from None
    except ValueError as exc:
        reason = exc.msg if isinstance(exc, json.JSONDecodeError) else "a number is too long"
        raise Malformed(PARSE_ERROR, f"Parse error: {reason}.") from None


def _clean(value: Any, depth: int = 0) -> Any:
    """`value` with every lone surrogate replaced, keys included."""
    if isinstance(value, str):
        return well_formed(value)
    if depth > _DEPTH:
        raise RecursionError
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {well_formed(key): _clean(member, depth + 1) for key, member in members.items()}
    if isinstance(value, list):
        return [_clean(item, depth + 1) for item in cast("list[Any]", value)]
    return value


def _what_is_wrong(value: Any) -> tuple[str, RequestId | None]:
    if isinstance(value, list) and not value:
        return "Invalid request: there is no message in this array.", None
    if isinstance(value, list):
        return "Invalid request: batches are not supported, send one message at a time.", None
    if not isinstance(value, dict):
        return "Invalid request: a message is a JSON object.", None
    members = cast("dict[str, Any]", value)
    request_id = as_request_id(members.get("id"))
    if "method" not in members and ("result" in members or "error" in members):
        # An id here would be one of the server's own requests: answering to it would only confuse.
        return "Invalid request: not a valid response.", None
    if members.get("jsonrpc") != "2.0":
        return 'Invalid request: `jsonrpc` must be "2.0".', request_id
    if not isinstance(members.get("method"), str):
        return "Invalid request: `method` must be a string.", request_id
    if not isinstance(members.get("params", {}), dict | None):
        return "Invalid request: `params` must be an object.", request_id
    return "Invalid request: `id` must be a string or an integer.", None
