"""Adapts results to the client's protocol revision, and says in words what a client sent wrong.

The SDK validates answers of all revisions before 2026-07-28 by the newest of them. A client that validates with its own
schema would lose a whole answer because of one newer kind of block.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, cast

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.jsonrpc import INVALID_PARAMS
from pydantic import ValidationError

__all__ = ["in_its_revision"]

_AUDIO_SINCE = "2025-03-26"
_LINKS_SINCE = "2025-06-18"
_SDK_SAYS = "Invalid request parameters"
_MISSING = "is missing"
_NOUNS = {
    "dict_type": "an object", "model_type": "an object", "string_type": "a string", "list_type": "an array",
    "bool_type": "true or false", "int_type": "an integer", "int_from_float": "an integer", "float_type": "a number",
    "missing": _MISSING,
}  # fmt: skip


async def in_its_revision(ctx: ServerRequestContext[Any], call_next: CallNext) -> HandlerResult:
    """Middleware, the outermost.

    Raises:
        MCPError: the parameters do not fit the request; the error says which are wrong.
    """
    params = ctx.params or {}
    if ctx.method == "tools/call" and isinstance(params.get("arguments"), str | list):
        ctx = replace(ctx, params={**params, "arguments": _arguments(params["arguments"])})
    try:
        result = await call_next(ctx)
    except ValidationError as error:
        wrong = _wrong(error, params)
        raise MCPError(INVALID_PARAMS, f"{_SDK_SAYS}: {wrong}." if wrong else _SDK_SAYS) from error
    except MCPError as error:
        # With these words alone the SDK answers what comes before the handshake.
        if error.error.code == INVALID_PARAMS and error.error.message == _SDK_SAYS:
            raise MCPError(INVALID_PARAMS, "It came before the handshake. Send `initialize` first.") from error
        raise
    if ctx.protocol_version >= _LINKS_SINCE or not isinstance(result, dict):
        return result
    if ctx.method == "tools/call":
        return {**result, "content": [*_known(result.get("content", ()), ctx.protocol_version)]}
    if ctx.method == "prompts/get":
        messages = cast("list[dict[str, Any]]", result["messages"])
        said = [
            {**item, "content": block} for item in messages for block in _known([item["content"]], ctx.protocol_version)
        ]
        return {**result, "messages": said}
    return result


def _arguments(sent: Any) -> Any:
    """An object that was sent as JSON inside a string, or as an empty array, as PHP writes an empty object."""
    if not sent:
        return {}
    try:
        meant: object = json.loads(sent) if isinstance(sent, str) else sent
    except (ValueError, RecursionError):
        return sent
    return cast("object", meant) if isinstance(meant, dict) else sent


def _known(blocks: Iterable[Mapping[str, Any]], revision: str) -> Iterable[Mapping[str, Any]]:
    """`blocks` without links, whose URIs are in the text too, and with audio in the form of the revision."""
    for block in blocks:
        if block["type"] == "audio" and revision < _AUDIO_SINCE:
            name = hashlib.sha256(block["data"].encode()).hexdigest()[:16]
            held = {"uri": f"audio:{name}", "mimeType": block["mimeType"], "blob": block["data"]}
            yield {"type": "resource", "resource": held}
        elif block["type"] != "resource_link":
            yield block


def _wrong(error: ValidationError, params: Mapping[str, Any]) -> str:
    """What is wrong with `params`, without their contents; empty if they are not the cause."""
    wanted: dict[str, list[str]] = {}
    for mistake in error.errors(include_url=False, include_input=False):
        if mistake["loc"][:1] != ("params",):
            continue
        names: list[str] = []
        at: Any = params
        for part in mistake["loc"][1:]:
            # If one of several shapes is allowed, the path includes the name of each.
            if isinstance(at, Mapping) and part in at:
                names = [*names, str(part)]
                at = cast("Mapping[str, Any]", at)[str(part)]
            elif mistake["type"] == "missing" and part == mistake["loc"][-1]:
                names.append(str(part))
        kind = _NOUNS.get(mistake["type"]) or str(mistake.get("ctx", {}).get("expected", "a valid value"))
        wanted.setdefault(".".join(names) or "params", []).append(kind)
    return "; ".join(f"`{name}` {_must(musts)}" for name, musts in wanted.items())


def _must(kinds: list[str]) -> str:
    return _MISSING if _MISSING in kinds else f"must be {' or '.join(dict.fromkeys(kinds))}"
