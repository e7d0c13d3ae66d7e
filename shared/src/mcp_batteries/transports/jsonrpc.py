"""Converts one line of bytes to one JSON-RPC message and back, whatever the line contains.

The SDK's parser and serialiser do the work. Where they fail, this module mends half a surrogate pair, which clients
that cut a text write as an escape, and says what to answer to everything else (JSON-RPC 2.0, section 5.1). Arguments
of tools are not mended, because a tool would store the character put in its place: their check refuses them.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from typing import Any, cast

from mcp.shared.dispatcher import as_request_id
from mcp_types import CLIENT_CAPABILITIES_META_KEY
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

_MAX_DEPTH = 200
# Of a line that can't be parsed, only its ends are searched for the id.
_HEAD_BYTES = 64 * 1024
_TAIL_BYTES = 4096
# A string that is cut off is the last token: looking for others in it would take its length squared.
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[{}\[\]:,]|[^\s{}\[\]:,"]++', re.DOTALL)
_LAST_MEMBER_ID = re.compile(rb'"id"\s*:\s*(-?\d{1,18}(?:\.0)?|"[^"\\]{0,200}")\s*\}\s*$')

_ANSWER_MEMBERS = (b'"result"', b'"error"')

_REPLACEMENT = "\ufffd"
# The largest number below which each integer can be written as a float (RFC 8259, section 6).
_MAX_EXACT_FLOAT = 2**53
_INVALID_RESPONSE = "The response is not valid."

_log = logging.getLogger(__name__)


class Malformed(Exception):
    """Raised when a line is not a JSON-RPC message.

    Args:
        code: the JSON-RPC error code to answer with.
        message: the words of that error.
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
        offset: of the first such byte, from 0.
        byte: its value.
    """

    def __init__(self, offset: int, byte: int, request_id: RequestId | None = None) -> None:
        message = (
            f"Parse error: not UTF-8 at byte {offset + 1} (0x{byte:02X}). Nothing was run. "
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
    request_id = _as_id(members.get("id"))
    if isinstance(request_id, str) and _REPLACEMENT in well_formed(request_id):
        return None
    return request_id


def parse(line: bytes) -> JSONRPCMessage:
    """Return the message in `line`.

    Raises:
        Malformed: `line` is not JSON, or not a JSON-RPC message.
    """
    message = _parse(line)
    if isinstance(message, JSONRPCRequest | JSONRPCNotification) and message.params:
        _restore_params(message.method, message.params)
    elif isinstance(message, JSONRPCResponse):
        _restore_answer(message.result)
    return message


def _parse(line: bytes) -> JSONRPCMessage:
    """Return the message in `line`, in which an empty object may still be the empty array that PHP writes.

    Raises:
        Malformed: `line` is not JSON, or not a JSON-RPC message.
    """
    try:
        # Most messages are requests, and to find out which kind fits best takes 2.5 times as long.
        return JSONRPCRequest.model_validate_json(line, by_name=False)
    except ValidationError:
        pass
    try:
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        if "id" not in from_json(line):
            _normalize_cancelled_id(message)
            return message
    except ValidationError:
        pass
    value = _loads(line)
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        _normalize_id(members, "id")
        if "method" in members and members.get("params") == []:
            # So PHP writes an empty object.
            members["params"] = {}
    try:
        message = jsonrpc_message_adapter.validate_python(value, by_name=False)
        _normalize_cancelled_id(message)
    except ValidationError:
        invalid_response = _as_error(value)
        if invalid_response is not None:
            return invalid_response
        raise _explain(value) from None
    if "method" in value and "id" in value and not isinstance(message, JSONRPCRequest):
        # The model of a notification overlooks the id: this is a request whose id is none.
        raise _explain(value)
    return message


def is_heard(message: JSONRPCNotification) -> bool:
    """Tell whether anything handles `message`.

    Nothing does if a notification has the name of a request, which could not be answered.
    """
    return message.method.startswith("notifications/")


def dump(message: JSONRPCMessage) -> bytes:
    """Return `message` as one line, newline included.

    If it can't be written, return an internal error in place of an answer, and nothing in place of a notification.
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
        return _dump_deep(message)
    except (TypeError, ValueError, RecursionError) as exc:
        _log.warning("a %s could not be written as JSON: %s", type(message).__name__, exc)
    if isinstance(message, JSONRPCResponse | JSONRPCError):
        return dump(error(message.id, INTERNAL_ERROR, "The result could not be written as JSON."))
    return b""


def _dump_deep(message: JSONRPCMessage) -> bytes:
    """Return `message` as one line, written by the standard library.

    On Windows pydantic writes nothing that is nested deeper than 99 levels; elsewhere its limit is 255.
    """
    value: dict[str, Any] = {}
    for name in type(message).model_fields:
        if name in message.model_fields_set:
            value[name] = getattr(message, name)
    return json.dumps(_clean(value), ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def dump_answer(request_id: RequestId, result: dict[str, Any] | ErrorData) -> bytes:
    """Return the answer to a request as one line, as `dump` writes it."""
    if isinstance(result, ErrorData):
        return dump(JSONRPCError(jsonrpc="2.0", id=request_id, error=result))
    try:
        result_json = to_json(result, inf_nan_mode="null")
        return b"".join((b'{"jsonrpc":"2.0","id":', to_json(request_id), b',"result":', result_json, b"}\n"))
    except (PydanticSerializationError, ValueError, RecursionError):
        return dump(JSONRPCResponse(jsonrpc="2.0", id=request_id, result=result))


def error(request_id: RequestId | None, code: int, message: str) -> JSONRPCError:
    """Return the error answer with `code` and `message`."""
    return JSONRPCError(jsonrpc="2.0", id=request_id, error=ErrorData(code=code, message=message))


def peek_id(head: bytes, tail: bytes) -> RequestId | None:
    """Return the id of a request that is too long or deep to parse, from the beginning and end of its line.

    The id of an answer is a question's, so it is not returned.
    """
    id_token = b""
    for name, value_token in _outer_members(head):
        if name in _ANSWER_MEMBERS:
            return None
        if name == b'"id"' and value_token:
            id_token = value_token
    if id_token:
        return _as_id(_scalar(id_token))
    # Only the last member of the outer object is followed by a single brace and the end of the line.
    last_member = _LAST_MEMBER_ID.search(tail)
    if last_member is None:
        return None
    return _as_id(json.loads(last_member[1]))


def _outer_members(head: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the name of each member of the outer object, and again with the token that its value begins with.

    The second is left out where the token may be cut off. It takes one pass, since `head` may be long and of any kind.
    """
    depth = 0
    name = b""
    previous = b""
    for match in _TOKEN.finditer(head):
        token = match[0]
        if depth == 1 and previous == b":" and match.end() < len(head):
            yield name, token
        if token in b"{[":
            if not depth and token == b"[":
                return
            depth += 1
        elif token in b"]}":
            depth -= 1
        elif token == b":" and depth == 1:
            name = previous
            yield name, b""
        previous = token


def _scalar(token: bytes) -> object:
    """Return the value that `token` stands for, or None if it is not JSON."""
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
        return peek_id(line[:_HEAD_BYTES], line[-_TAIL_BYTES:])
    return request_id_in(value)


def _loads(line: bytes) -> Any:
    """Return the JSON value in `line`, without lone surrogates but in the arguments of a tool.

    Raises:
        Malformed: `line` is not UTF-8, not JSON, or nested too deep.
    """
    try:
        text = decode(line)
    except NotUtf8 as problem:
        problem.request_id = _id_in_damaged(line)
        raise
    try:
        value = json.loads(text)
        return _with_arguments_as_sent(_clean(value), value)
    except RecursionError:
        request_id = peek_id(line[:_HEAD_BYTES], line[-_TAIL_BYTES:])
        raise Malformed(PARSE_ERROR, f"Parse error: nested more than {_MAX_DEPTH} levels deep.", request_id) from None
    except json.JSONDecodeError as exc:
        raise Malformed(PARSE_ERROR, f"Parse error: {exc.msg}.") from None
    except ValueError:
        request_id = peek_id(line[:_HEAD_BYTES], line[-_TAIL_BYTES:])
        raise Malformed(PARSE_ERROR, "Parse error: a number is too long.", request_id) from None


def _with_arguments_as_sent(cleaned: Any, sent: Any) -> Any:
    """Return a message that was cleaned with the arguments of a tool as they were sent."""
    if not isinstance(sent, dict) or cleaned.get("method") != "tools/call":
        return cleaned
    sent_params: Any = cast("dict[str, Any]", sent).get("params")
    if isinstance(sent_params, dict) and "arguments" in sent_params:
        cleaned["params"]["arguments"] = sent_params["arguments"]
    return cleaned


def _clean(value: Any, depth: int = 0) -> Any:
    """Return `value` with every lone surrogate replaced, keys included.

    Raises:
        RecursionError: It is nested too deep.
    """
    if isinstance(value, str):
        return well_formed(value)
    if depth > _MAX_DEPTH:
        raise RecursionError
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {well_formed(key): _clean(member, depth + 1) for key, member in members.items()}
    if isinstance(value, list):
        return [_clean(item, depth + 1) for item in cast("list[Any]", value)]
    return value


def _normalize_id(members: dict[str, Any], name: str) -> None:
    """Write the id `name` as an integer if it is a whole float."""
    if name in members:
        members[name] = _without_fraction(members[name])


def _as_id(value: object) -> RequestId | None:
    """Return the id of a request; None if `value` is none."""
    return as_request_id(_without_fraction(value))


def _without_fraction(value: object) -> object:
    """Return an integer for a whole float, such as `1.0`, and any other value as it is.

    Both are integers in JSON Schema, and so in the protocol's; libraries with one kind of number write the second.
    """
    if isinstance(value, float) and value.is_integer() and abs(value) < _MAX_EXACT_FLOAT:
        return int(value)
    return value


def _normalize_cancelled_id(message: JSONRPCMessage) -> None:
    """Do the same for the id of the request that `message` cancels, if it cancels one."""
    if isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled" and message.params:
        _normalize_id(message.params, "requestId")


def _restore_params(method: str, params: dict[str, Any]) -> None:
    """Write an object for each empty array that PHP writes for one, where there can be no array."""
    _restore_capabilities(method, params)
    if params.get("_meta") == []:
        params["_meta"] = {}
    # From 2026-07-28 on the answers to the server's questions come in the next request.
    answers: Any = params.get("inputResponses")
    if isinstance(answers, dict):
        for answer in cast("dict[str, Any]", answers).values():
            _restore_answer(answer)


def _restore_capabilities(method: str, params: dict[str, Any]) -> None:
    """Write an object for each empty array in the capabilities of the client, which PHP writes for an empty object."""
    if method == "initialize":
        holder: Any = params
        name = "capabilities"
    else:
        # From 2026-07-28 on each request has them.
        holder = params.get("_meta")
        name = CLIENT_CAPABILITIES_META_KEY
    if isinstance(holder, dict) and name in holder:
        holder[name] = _as_objects(holder[name])


def _restore_answer(answer: Any) -> None:
    """Do the same for the metadata of an answer to a question, and for the values of a form.

    Only the answer to a form says what its user did; others have content that may be an array.
    """
    if not isinstance(answer, dict):
        return
    members = cast("dict[str, Any]", answer)
    names = ["_meta"]
    if "action" in members:
        names.append("content")
    for name in names:
        if members.get(name) == []:
            members[name] = {}


def _as_objects(value: Any) -> Any:
    """Return `value` with an empty object for each empty array, also inside other objects."""
    if value == []:
        return {}
    if not isinstance(value, dict):
        return value
    return {name: _as_objects(member) for name, member in cast("dict[str, Any]", value).items()}


def _as_error(value: Any) -> JSONRPCError | None:
    """Return the error that stands for a response that is not valid; None if `value` is no response with an id.

    Whoever asked the client would otherwise wait for an answer that has come.
    """
    if not isinstance(value, dict):
        return None
    members = cast("dict[str, Any]", value)
    request_id = as_request_id(members.get("id"))
    if request_id is None or "method" in members or not ("result" in members or "error" in members):
        return None
    return error(request_id, INVALID_REQUEST, _INVALID_RESPONSE)


def _explain(value: Any) -> Malformed:
    """Return the error that says why the JSON `value` is not a message."""
    if isinstance(value, list) and not value:
        return Malformed(INVALID_REQUEST, "Invalid request: there is no message in this array.")
    if isinstance(value, list):
        return Malformed(INVALID_REQUEST, "Invalid request: batches are not supported, send one message at a time.")
    if not isinstance(value, dict):
        return Malformed(INVALID_REQUEST, "Invalid request: a message is a JSON object.")
    members = cast("dict[str, Any]", value)
    request_id = as_request_id(members.get("id"))
    if "method" not in members and ("result" in members or "error" in members):
        # An id here would be one of the server's own requests: answering to it would only confuse.
        return Malformed(INVALID_REQUEST, "Invalid request: not a valid response.")
    if members.get("jsonrpc") != "2.0":
        return Malformed(INVALID_REQUEST, 'Invalid request: `jsonrpc` must be "2.0".', request_id)
    if not isinstance(members.get("method"), str):
        return Malformed(INVALID_REQUEST, "Invalid request: `method` must be a string.", request_id)
    if not isinstance(members.get("params", {}), dict | None):
        return Malformed(INVALID_REQUEST, "Invalid request: `params` must be an object.", request_id)
    return Malformed(INVALID_REQUEST, "Invalid request: `id` must be a string or an integer.")
