"""`call_tools`: several calls in one, for models where each turn is expensive. Off unless `--tools` names it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Annotated, Any, cast

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver.tools import Tool
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, ContentBlock, TextContent
from pydantic import Field

from mcp_batteries.errors import Invalid
from mcp_batteries.limits import DEFAULT_PAGE_BYTES, head
from mcp_batteries.server.arguments import parsed, plain
from mcp_batteries.server.declare import tool
from mcp_batteries.server.tool import StrictTool

__all__ = ["CALL_TOOL", "CALL_TOOLS", "CallTools", "calls_in", "one_by_one"]

CALL_TOOLS = "call_tools"
# Calls one tool, for clients that see three tools in place of all: see `mount.discovery`.
CALL_TOOL = "call_tool"
_MOST = 20
# Each answer may have this many bytes, however many answers there are.
_LEAST_BYTES = 1000
# An answer that is still to come is expected to take this many bytes.
_SHORT_BYTES = 300
# No further call begins after this time, because hosts wait little longer for an answer.
_SECONDS = 60.0
# A read that took at most so many seconds is repeated to get a shorter page.
_SOON = 1.0

_way: ContextVar[tuple[ServerRequestContext[Any], CallNext]] = ContextVar("way")


def calls_in(params: Mapping[str, Any] | None) -> int:
    """How many calls a request contains, for limits that count them."""
    wrapped = params is not None and params.get("name") == CALL_TOOL
    call: Any = params.get("arguments") if params is not None and wrapped else params
    if not isinstance(call, Mapping):
        return 1
    named = cast("Mapping[str, Any]", call)
    # Names in lists are understood where several servers are one, arguments as text in `call_tool`.
    if named.get("name") not in (CALL_TOOLS, [CALL_TOOLS]):
        return 1
    arguments: Any = named.get("arguments")
    if wrapped and isinstance(arguments, str):
        return _MOST
    calls: Any = one_by_one(cast("Mapping[str, Any]", arguments)).get("calls") if isinstance(arguments, Mapping) else 0
    return min(max(len(cast("list[Any]", calls)), 1), _MOST) if isinstance(calls, list) else 1


def one_by_one(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments, with each call as `name` and `arguments`; anything that is not a call stays unchanged.

    The schema tells models the shorter `{NAME: ARGUMENTS}`; they know the other form from the protocol. This accepts
    everything that argument checks accept for the list, such as its JSON text, so that all calls are counted.
    """
    match [name for name in arguments if plain(name) == "calls"]:
        case [name]:
            others = {key: value for key, value in arguments.items() if key != name}
            return {**others, "calls": _named(arguments[name])}
        case _:
            return arguments


def _named(calls: Any) -> list[Any]:
    listed: list[Any] = []
    calls = _read(calls)
    for call in map(_read, cast("list[Any]", calls) if isinstance(calls, list) else [calls]):
        if (
            not isinstance(call, dict)
            or not call
            or isinstance(cast("dict[str, Any]", call).get("name", {}), str | list)
        ):
            listed.append(call)
        else:
            listed += [{"name": name, "arguments": given} for name, given in cast("dict[str, Any]", call).items()]
    return listed


def _read(given: Any) -> Any:
    with suppress(Invalid):  # The check of arguments reports it; nothing is called.
        return parsed(given) if isinstance(given, str) else given
    return given


def _under_names(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    arguments = one_by_one(arguments)
    if not isinstance(calls := arguments.get("calls"), list):
        return arguments
    return {**arguments, "calls": [_under_name(call) for call in cast("list[Any]", calls)]}


def _under_name(call: Any) -> Any:
    match call:
        case {"name": str(name), **others} if not others.keys() - {"arguments"}:
            return {name: {} if (given := _read(others.get("arguments"))) is None else given}
        case _:
            return call


@dataclass(frozen=True)
class Call:
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class _Answer:
    """The result of a call: its text, and its other content."""

    text: str
    others: Sequence[Any] = ()
    failed: bool = False
    asks: bool = False
    seconds: float = 0.0
    page: float = math.inf
    """Bytes that it was asked to have; its first lines may come on top of them."""


@dataclass(frozen=True)
class CallTools:
    """The one tool of this room, and the middleware that handles its calls like all others.

    Args:
        table: every tool that can be called, by name.
    """

    table: Callable[[], Mapping[str, Tool]]

    @tool("Call tools", effect="read", open_world=True, seconds=math.inf, adapt=_under_names)
    async def call_tools(
        self,
        calls: Annotated[
            list[dict[str, dict[str, Any]]],
            Field(min_length=1, max_length=_MOST, description='`[{"TOOL": {ARGUMENTS}}, ...]`'),
        ],
        max_bytes: Annotated[int, Field(ge=1000, le=1_000_000, description="Bytes altogether.")] = (DEFAULT_PAGE_BYTES),
    ) -> CallToolResult:
        """Make several calls of this server's tools in turn; each answer stands under its number and name.

        For all that waits for no other answer: reads together, a change with the look that checks it. A failed read
        stops nothing; after a change that failed nothing more is run.
        """
        return await self._all([Call(*one) for each in calls for one in each.items()], max_bytes)

    async def _all(self, calls: Sequence[Call], max_bytes: int) -> CallToolResult:
        if not calls:
            raise Invalid("`calls` names no tool.", "Give each as an object: the tool's name, and its arguments below.")
        if any(call.name == CALL_TOOLS for call in calls):
            raise Invalid(f"`{CALL_TOOLS}` calls other tools, not itself.", "Put all calls into one list.")
        began = time.monotonic()
        answers = list[_Answer]()
        why = ""
        max_bytes = max(max_bytes, _LEAST_BYTES * len(calls))
        for number, call in enumerate(calls):
            if time.monotonic() - began > _SECONDS:
                why = f"{_SECONDS:.0f} s are over"
                break
            # A page that is too long in the end is made again; one that was too short costs the caller a call.
            sizes = [
                *(_size(answer.text) for answer in answers),
                *[_SHORT_BYTES] * (len(calls) - number - 1),
                max_bytes,
            ]
            answers.append(answer := await _made(call, self._within(call, _share(sizes, max_bytes))))
            if answer.asks or (answer.failed and not self._reads(call.name)):
                why = f"{len(answers)} {call.name} {'asks the user' if answer.asks else 'failed'}"
                break
        await self._shorten(calls, answers, max_bytes)
        return _page(calls, answers, why, max_bytes)

    async def _shorten(self, calls: Sequence[Call], answers: list[_Answer], max_bytes: int) -> None:
        """Repeat calls whose page is longer than the space that is finally left for it.

        Cutting a page could hide lines before the cursor of the next one. Reads before a change cannot be repeated, and
        slow ones are not.
        """
        share = _share([_size(answer.text) for answer in answers], max_bytes)
        for number in reversed(range(len(answers))):
            call = calls[number]
            answer = answers[number]
            if not self._reads(call.name):
                break
            if _size(answer.text) > share and answer.seconds < _SOON and self._pages(call):
                again = await _made(call, {**call.arguments, "max_bytes": max(share, _LEAST_BYTES)})
                answers[number] = answer if again.failed else again

    async def passing(self, ctx: ServerRequestContext[Any], call_next: CallNext) -> HandlerResult:
        """The outermost middleware: each call passes through all other middleware, as if it came alone."""
        if ctx.method != "tools/call" or (ctx.params or {}).get("name") != CALL_TOOLS:
            return await call_next(ctx)
        before = _way.set((ctx, call_next))
        try:
            return await call_next(ctx)
        finally:
            _way.reset(before)

    def _within(self, call: Call, share: int) -> Mapping[str, Any]:
        """The arguments of `call`; a tool with pages gets its share as the page size."""
        if "max_bytes" in call.arguments or not self._pages(call):
            return call.arguments
        return {**call.arguments, "max_bytes": max(share, _LEAST_BYTES)}

    def _pages(self, call: Call) -> bool:
        found = self.table().get(call.name)
        return found is not None and "max_bytes" in found.parameters["properties"]

    def _reads(self, name: str) -> bool:
        found = self.table().get(name)
        return isinstance(found, StrictTool) and found.effect == "read"


async def _made(call: Call, arguments: Mapping[str, Any]) -> _Answer:
    ctx, call_next = _way.get()
    params = {**(ctx.params or {}), "name": call.name, "arguments": arguments}
    began = time.monotonic()
    try:
        result = await call_next(replace(ctx, params=params))
    except MCPError as error:
        return _Answer(error.error.message, failed=True)
    if not isinstance(result, dict) or result.get("resultType", "complete") != "complete":
        return _Answer("It asks the user something first. Nothing was done. Call it alone.", failed=True, asks=True)
    blocks = cast("list[dict[str, Any]]", result.get("content") or [])
    text = "\n".join(str(block["text"]).rstrip("\n") for block in blocks if block.get("type") == "text")
    others = [block for block in blocks if block.get("type") not in ("text", "resource_link")]
    page = arguments.get("max_bytes")
    return _Answer(
        text,
        others,
        bool(result.get("isError")),
        seconds=time.monotonic() - began,
        page=page if isinstance(page, int) else math.inf,
    )


def _page(calls: Sequence[Call], answers: Sequence[_Answer], why: str, max_bytes: int) -> CallToolResult:
    """All answers as one; an answer longer than its share of `max_bytes` is cut, and says so."""
    share = _share([_size(answer.text) for answer in answers], max_bytes)
    parts: list[str] = []
    content: list[ContentBlock] = []
    if why:
        parts.append(f"[{len(answers)} of {len(calls)} calls were made: {why}; the others were not run]")
    for number, (call, answer) in enumerate(zip(calls, answers, strict=False), start=1):
        text = head(answer.text, share * 3 // 2 if answer.page <= share else share)
        cut = ""
        if text != answer.text:
            text = text.rpartition("\n")[0] or text
            cut = f", cut: {_size(text):,} of {_size(answer.text):,} bytes; for more call it alone"
        parts.append(f"# {number} {call.name}{', failed' if answer.failed else ''}{cut}\n{text}")
        if answer.others:
            content += [TextContent(type="text", text="\n".join(parts)), *answer.others]
            parts = []
    if parts:
        content.append(TextContent(type="text", text="\n".join(parts) + "\n"))
    return CallToolResult(content=content, is_error=bool(why) or all(answer.failed for answer in answers))


def _size(text: str) -> int:
    return len(text.encode())


def _share(sizes: Sequence[int], most: int) -> int:
    """The most bytes that each answer may have, so that all together have at most `most`."""
    left = most
    for number, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - number)
        if size > share:
            return share
        left -= size
    return most
