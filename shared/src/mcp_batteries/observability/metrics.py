"""Counts every request once, for Prometheus, OpenTelemetry, or both.

It records names and figures only, and no names that a caller made up, such as that of a missing tool: those would be
contents, and unlimited in number.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import Any, Protocol

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp_types import CallToolResult
from mcp_types.methods import SPEC_CLIENT_METHODS

from mcp_batteries.observability.outcomes import outcome_of

__all__ = ["Metrics", "Sink"]

# They last as long as somebody listens, so their length says nothing about this server.
_STREAMS = frozenset({"subscriptions/listen"})


class Sink(Protocol):
    """Takes one finished request: its method, its tool or "", "ok" or what went wrong, and seconds."""

    def __call__(self, method: str, tool: str, outcome: str, seconds: float) -> None: ...


class Metrics:
    """Middleware that tells `sinks` of every request.

    Args:
        tools: the names of the tools there are now.
    """

    def __init__(self, tools: Callable[[], Collection[str]], sinks: list[Sink]) -> None:
        self._tools = tools
        self._sinks = sinks

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.request_id is None or ctx.method in _STREAMS:
            return await call_next(ctx)
        began = time.perf_counter()
        outcome = "cancelled"
        try:
            result = await call_next(ctx)
            match result:
                case CallToolResult(is_error=True) | {"isError": True}:
                    outcome = "tool_error"
                case _:
                    outcome = "ok"
            return result
        except Exception as error:
            outcome = str(outcome_of(error))
            raise
        finally:
            seconds = time.perf_counter() - began
            method = "other"
            if ctx.method in SPEC_CLIENT_METHODS:
                method = ctx.method
            for sink in self._sinks:
                sink(method, self._tool(ctx), outcome, seconds)

    def _tool(self, ctx: ServerRequestContext[Any, Any]) -> str:
        """Return the tool that is called; empty for other methods."""
        if ctx.method != "tools/call":
            return ""
        name = (ctx.params or {}).get("name")
        if isinstance(name, str) and name in self._tools():
            return name
        return "unknown"
