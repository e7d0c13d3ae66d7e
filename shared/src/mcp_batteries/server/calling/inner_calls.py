"""Calls inside a call: each takes the way of a call that comes alone."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, cast

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver.tools import Tool
from mcp.shared.exceptions import MCPError

from mcp_batteries.server.calling.arguments import normalize_name
from mcp_batteries.server.calling.call_params import CALL_TOOLS, RUN_SCRIPT

__all__ = [
    "Answer",
    "Call",
    "has_pages",
    "let_calls_pass",
    "make_call",
    "outer_request",
    "with_page_size",
    "without_page_size",
]

# How a call reaches the rest of the middleware; every request has its own.
_middleware: ContextVar[tuple[ServerRequestContext[Any], CallNext]] = ContextVar("middleware")


@dataclass(frozen=True)
class Call:
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Answer:
    """The result of a call: its text, as the tool returned it, and its other content.

    Attributes:
        asks: whether the call asks the user something first.
        page: bytes that it was asked to have; its first lines may come on top of them.
    """

    text: str
    others: Sequence[Any] = ()
    failed: bool = False
    asks: bool = False
    seconds: float = 0.0
    page: float = math.inf


async def let_calls_pass(ctx: ServerRequestContext[Any], call_next: CallNext) -> HandlerResult:
    """Let each call inside another pass through all other middleware; itself the outermost middleware."""
    if ctx.method != "tools/call" or (ctx.params or {}).get("name") not in (CALL_TOOLS, RUN_SCRIPT):
        return await call_next(ctx)
    token = _middleware.set((ctx, call_next))
    try:
        return await call_next(ctx)
    finally:
        _middleware.reset(token)


def outer_request() -> ServerRequestContext[Any]:
    """Return the request of the call that the others are inside of."""
    ctx, _ = _middleware.get()
    return ctx


async def make_call(call: Call, arguments: Mapping[str, Any]) -> Answer:
    """Make a call with other arguments than it was sent with, such as a page size."""
    ctx, call_next = _middleware.get()
    params = {**(ctx.params or {}), "name": call.name, "arguments": arguments}
    began = time.monotonic()
    try:
        result = await call_next(replace(ctx, params=params))
    except MCPError as error:
        return Answer(f"{error.error.message}\n", failed=True)
    if not isinstance(result, dict) or result.get("resultType", "complete") != "complete":
        return Answer("It asks the user something first. Nothing was done. Call it alone.\n", failed=True, asks=True)
    blocks = cast("list[dict[str, Any]]", result.get("content") or [])
    texts = [str(block["text"]) for block in blocks if block.get("type") == "text"]
    # Each block but the last ends with its line.
    *first_texts, last_text = texts or [""]
    others = [block for block in blocks if block.get("type") not in ("text", "resource_link")]
    page = arguments.get("max_bytes")
    return Answer(
        "".join(text.removesuffix("\n") + "\n" for text in first_texts) + last_text,
        others,
        bool(result.get("isError")),
        seconds=time.monotonic() - began,
        page=page if isinstance(page, int) else math.inf,
    )


def has_pages(tool: Tool | None) -> bool:
    """Return whether a tool takes the size of its page."""
    return tool is not None and "max_bytes" in tool.parameters["properties"]


def with_page_size(call: Call, tool: Tool | None, size: int) -> Mapping[str, Any]:
    """Return the arguments of a call with a page size, unless it has one or its tool has no pages."""
    others = without_page_size(call.arguments)
    if len(others) < len(call.arguments) or not has_pages(tool):
        return call.arguments
    return {**others, "max_bytes": size}


def without_page_size(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments without `max_bytes`, in whatever way its name is written."""
    return {name: value for name, value in arguments.items() if normalize_name(name) != "maxbytes"}
