"""Adapts results to the client's protocol revision, and says in words what a client sent wrong.

The SDK validates answers of all revisions before 2026-07-28 by the newest of them. A client that validates with its own
schema would lose a whole answer because of one newer kind of block.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.jsonrpc import INVALID_PARAMS
from pydantic import ValidationError

from mcp_batteries.server.calling.call_params import normalize_call

__all__ = ["adapt_to_revision"]

_AUDIO_SINCE = "2025-03-26"
_LINKS_SINCE = "2025-06-18"
_SDK_MESSAGE = "Invalid request parameters"
_MISSING = "is missing"
# The parameters of requests that are objects, on the outermost level.
_OBJECTS = ("_meta", "arguments", "context", "inputResponses", "notifications")
_NOUNS = {
    "dict_type": "an object", "model_type": "an object", "string_type": "a string", "list_type": "an array",
    "bool_type": "true or false", "int_type": "an integer", "int_from_float": "an integer", "float_type": "a number",
    "missing": _MISSING,
}  # fmt: skip


async def adapt_to_revision(ctx: ServerRequestContext[Any], call_next: CallNext) -> HandlerResult:
    """Adapt a request and its result to the client's revision; the outermost middleware.

    Raises:
        MCPError: the parameters do not fit the request; the error says which are wrong.
    """
    sent_params = _restore_objects(ctx.params or {})
    params = normalize_call(sent_params) if ctx.method == "tools/call" else sent_params
    if params != (ctx.params or {}):
        ctx = replace(ctx, params=params)
    return _adapt_result(ctx, await _answer(ctx, call_next, sent_params))


async def _answer(ctx: ServerRequestContext[Any], call_next: CallNext, sent_params: Mapping[str, Any]) -> HandlerResult:
    """Return the result of a request.

    Args:
        sent_params: the parameters as the client sent them, for the error.

    Raises:
        MCPError: the parameters do not fit the request; the error says which are wrong.
    """
    try:
        return await call_next(ctx)
    except ValidationError as error:
        mistakes = _describe_mistakes(error, sent_params)
        message = f"{_SDK_MESSAGE}: {mistakes}." if mistakes else _SDK_MESSAGE
        raise MCPError(INVALID_PARAMS, message) from error
    except MCPError as error:
        # With these words alone the SDK answers what comes before the handshake.
        if error.error.code == INVALID_PARAMS and error.error.message == _SDK_MESSAGE:
            raise MCPError(INVALID_PARAMS, "It came before the handshake. Send `initialize` first.") from error
        raise


def _adapt_result(ctx: ServerRequestContext[Any], result: HandlerResult) -> HandlerResult:
    """Return a result without the blocks that the client's revision does not know."""
    if ctx.protocol_version >= _LINKS_SINCE or not isinstance(result, dict):
        return result
    if ctx.method == "tools/call":
        return {**result, "content": list(_adapt_blocks(result.get("content", ()), ctx.protocol_version))}
    if ctx.method == "prompts/get":
        messages: list[dict[str, Any]] = []
        for message in cast("list[dict[str, Any]]", result["messages"]):
            for block in _adapt_blocks([message["content"]], ctx.protocol_version):
                messages.append({**message, "content": block})
        return {**result, "messages": messages}
    return result


def _restore_objects(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return `params` with an object for each empty array that can only be one: PHP writes both alike."""
    if [] not in params.values():
        return params
    restored = dict(params)
    for name in _OBJECTS:
        if restored.get(name) == []:
            restored[name] = {}
    return restored


def _adapt_blocks(blocks: Iterable[Mapping[str, Any]], revision: str) -> Iterable[Mapping[str, Any]]:
    """Yield `blocks` without links, whose URIs are in the text too, and with audio in the form of the revision."""
    for block in blocks:
        if block["type"] == "audio" and revision < _AUDIO_SINCE:
            name = hashlib.sha256(block["data"].encode()).hexdigest()[:16]
            resource = {"uri": f"audio:{name}", "mimeType": block["mimeType"], "blob": block["data"]}
            yield {"type": "resource", "resource": resource}
        elif block["type"] != "resource_link":
            yield block


def _describe_mistakes(error: ValidationError, params: Mapping[str, Any]) -> str:
    """Say what is wrong with `params`, without their contents; empty if they are not the cause."""
    expected: dict[str, list[str]] = {}
    for mistake in error.errors(include_url=False, include_input=False):
        location = mistake["loc"]
        if location[:1] == ("params",):
            location = location[1:]
        elif not location or location[0] not in params:
            continue  # Nothing that the client has sent.
        kind = _NOUNS.get(mistake["type"]) or str(mistake.get("ctx", {}).get("expected", "a valid value"))
        name = _name_of(location, params, is_missing=mistake["type"] == "missing")
        expected.setdefault(name, []).append(kind)
    return "; ".join(f"`{name}` {_require(kinds)}" for name, kinds in expected.items())


def _name_of(location: Sequence[str | int], params: Mapping[str, Any], *, is_missing: bool) -> str:
    """Return the dotted name of the parameter at `location`.

    If one of several shapes is allowed, the location includes the name of each, which is no parameter.
    """
    names: list[str] = []
    node: Any = params
    for step in location:
        if isinstance(node, Mapping) and step in node:
            names.append(str(step))
            node = cast("Mapping[str, Any]", node)[str(step)]
        elif is_missing and step == location[-1]:
            names.append(str(step))
    return ".".join(names) or "params"


def _require(kinds: list[str]) -> str:
    if _MISSING in kinds:
        return _MISSING
    return f"must be {' or '.join(dict.fromkeys(kinds))}"
