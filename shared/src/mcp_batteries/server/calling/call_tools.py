"""`call_tools`: several calls in one, because each turn of a model is expensive.

They come as a list, or as a script where one call needs what another answered. A host asks its user once whether a tool
may be called. So `call_tools` calls only those that change nothing, unless the operator names it with `--tools`, and a
script that makes changes is the business of another tool, `run_script`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, cast
from weakref import WeakValueDictionary

from anyio import CapacityLimiter
from mcp.server.context import ServerRequestContext
from mcp.server.mcpserver.tools import Tool
from mcp_types import CallToolResult, ContentBlock, TextContent
from pydantic import AfterValidator, Field

from mcp_batteries.clipping import DEFAULT_PAGE_BYTES, truncate_utf8
from mcp_batteries.errors import Invalid
from mcp_batteries.server.calling.call_params import CALL_TOOLS, MAX_CALLS, RUN_SCRIPT, normalize_call
from mcp_batteries.server.calling.inner_calls import (
    Answer,
    Call,
    has_pages,
    make_call,
    outer_request,
    with_page_size,
    without_page_size,
)
from mcp_batteries.server.calling.script_calls import ScriptCalls, ToolNames
from mcp_batteries.server.calling.tool import StrictTool
from mcp_batteries.server.declaration.decorators import tool

__all__ = ["CallReadingTools", "CallTools", "RunScript", "RunScriptAlone"]

# Each answer may have this many bytes, however many answers there are.
_MIN_ANSWER_BYTES = 1000
# An answer that is still to come is expected to take this many bytes.
_EXPECTED_ANSWER_BYTES = 300
# No further call begins after this time, because hosts wait little longer for an answer.
_MAX_SECONDS = 60.0
# Of a script that changes things: a change of many waits for its service, and tells how far it is.
_MAX_CHANGING_SECONDS = 300.0
_MAX_SCRIPT_CHARACTERS = 50_000
# Of what a script prints that only reads, unless it asks for more: it mostly looks, and can be run again.
_MAX_SCRIPT_BYTES = 3000
# Each is a process; others wait. One caller leaves some for the others.
_MAX_RUNNING_SCRIPTS = 4
_MAX_RUNNING_SCRIPTS_OF_CALLER = 2
# A read that took at most so many seconds is repeated to get a shorter page.
_MAX_REPEATED_SECONDS = 1.0


def _use_short_form(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments, with each call as `{NAME: ARGUMENTS}`, as the schema has them."""
    arguments = normalize_call({"name": CALL_TOOLS, "arguments": arguments})["arguments"]
    calls = arguments.get("calls")
    if not isinstance(calls, list):
        return arguments
    return {**arguments, "calls": [_shorten_call(call) for call in cast("list[Any]", calls)]}


def _shorten_call(call: Any) -> Any:
    match call:
        case {"name": str(name), **others} if not others.keys() - {"arguments"}:
            return {name: others.get("arguments", {})}
        case _:
            return call


_FORM_OF_CALLS = '`[{"TOOL": {ARGUMENTS}}, ...]`'
_Calls = Annotated[
    list[dict[str, dict[str, Any]]], Field(min_length=1, max_length=MAX_CALLS, description=_FORM_OF_CALLS)
]
_FORM_OF_SCRIPTS = (
    "JavaScript. `TOOL({ARGUMENTS})` returns text, with whole paths in `.lines()`; a read's first line in "
    "brackets is its `.remark`. `TOOL.all({ARGUMENTS})` returns an array of all, whatever `limit`: lines, or objects "
    "where answers are JSON. `count_forms(LINES or ROWS)` counts each form, `count_values(VALUES)` each value. "
    "Failures throw: catch in loops; compare by `===`."
)
_ScriptText = Annotated[str, Field(max_length=_MAX_SCRIPT_CHARACTERS, description=f"Or {_FORM_OF_SCRIPTS}")]


def _raise_answer_bytes(number: int) -> int:
    # Less would say nothing, and a refusal would cost a call.
    return max(number, _MIN_ANSWER_BYTES)


_AnswerBytes = Annotated[int, Field(le=1_000_000), AfterValidator(_raise_answer_bytes)]
_MaxBytes = Annotated[_AnswerBytes, Field(description="Altogether.")]
_MaxBytesOfReads = Annotated[
    _AnswerBytes, Field(description=f"Default {_MAX_SCRIPT_BYTES} of a script, long prints cut first.")
]


@dataclass(frozen=True)
class _Batch:
    """Makes several calls.

    Args:
        table: every tool that can be called, by name.
        caller_of: returns whose request it is; None if callers cannot be told apart.
        names: finds tools by other names than their own, for scripts.
        running: the scripts that run at once.
        running_of_callers: those of each caller who has any.
    """

    table: Callable[[], Mapping[str, Tool]]
    caller_of: Callable[[ServerRequestContext[Any]], str | None] = lambda ctx: None
    names: ToolNames = field(default_factory=ToolNames)
    running: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(_MAX_RUNNING_SCRIPTS))
    running_of_callers: WeakValueDictionary[str | None, CapacityLimiter] = field(
        default_factory=WeakValueDictionary["str | None", CapacityLimiter]
    )

    def refuse(self, call: Call) -> str:
        """Return why a call is not made, as the end of a sentence about it; empty if it is."""
        return ""

    def can_change(self, call: Call) -> bool:
        """Return whether a call that is made can change something; also of a tool that isn't there."""
        return not self._reads(call.name)

    def _can_change_in_script(self, call: Call) -> bool:
        """Return whether a call can change something; the dry runs of which it can only read are none of these."""
        tool = self.table().get(call.name)
        return self.can_change(call) and (tool is None or not _is_dry_run(call, tool))

    def script_seconds(self) -> float:
        """Return after how many seconds a script is ended."""
        return _MAX_SECONDS

    async def call_or_run(
        self, objects: Sequence[Mapping[str, Mapping[str, Any]]], script: str, max_bytes: int
    ) -> CallToolResult:
        """Make the calls of a list, or those of a script."""
        if objects and script.strip():
            raise Invalid("`calls` and `script` were both given.", "Make the calls of the list in the script.")
        if not objects and not script.strip():
            raise Invalid("Neither `calls` nor `script` says anything.", "Give the calls to make, or a script.")
        if script.strip():
            return await self.run(script, max_bytes)
        return await self.call_all(objects, max_bytes)

    async def run(self, script: str, max_bytes: int) -> CallToolResult:
        """Run a script, once its caller and the server have few others under way."""
        calls = ScriptCalls(self.table(), self.refuse, self._can_change_in_script, self.names)
        async with self._running_of_caller(), self.running:
            return await calls.run(script, self.script_seconds(), max_bytes)

    def _running_of_caller(self) -> CapacityLimiter:
        caller = self.caller_of(outer_request())
        running = self.running_of_callers.get(caller)
        if running is None:
            running = CapacityLimiter(_MAX_RUNNING_SCRIPTS_OF_CALLER)
            self.running_of_callers[caller] = running
        return running

    async def call_all(self, objects: Sequence[Mapping[str, Mapping[str, Any]]], max_bytes: int) -> CallToolResult:
        """Return the answers of all calls, each given as `{NAME: ARGUMENTS}`."""
        calls = _parse_calls(objects)
        max_bytes = max(max_bytes, _MIN_ANSWER_BYTES * len(calls))
        answers, reason = await self._make_calls(calls, max_bytes)
        await self._shorten(calls, answers, max_bytes)
        return _page(calls, answers, reason, max_bytes)

    async def _make_calls(self, calls: Sequence[Call], max_bytes: int) -> tuple[list[Answer], str]:
        """Make calls in turn; return their answers, and why the others were not made (empty if all were)."""
        began = time.monotonic()
        answers: list[Answer] = []
        for number, call in enumerate(calls, start=1):
            if time.monotonic() - began > _MAX_SECONDS:
                return answers, f"{_MAX_SECONDS:.0f} s are over"
            if refusal := self.refuse(call):
                return answers, f"{number} {call.name} {refusal}"
            share = _share_of_next(answers, len(calls), max_bytes)
            answer = await _make_call(call, self._limit_page(call, share))
            answers.append(answer)
            if answer.asks:
                return answers, f"{number} {call.name} asks the user"
            if answer.failed and self.can_change(call):
                return answers, f"{number} {call.name} failed"
        return answers, ""

    async def _shorten(self, calls: Sequence[Call], answers: list[Answer], max_bytes: int) -> None:
        """Repeat calls whose page is longer than the space that is finally left for it.

        Cutting a page could hide lines before the cursor of the next one. Reads before a change cannot be repeated, and
        slow ones are not.
        """
        share = _share([_size(answer.text) for answer in answers], max_bytes)
        for number in reversed(range(len(answers))):
            call = calls[number]
            answer = answers[number]
            if self.can_change(call):
                break
            is_quick = answer.seconds < _MAX_REPEATED_SECONDS
            if _size(answer.text) > share and is_quick and self._has_pages(call):
                others = without_page_size(call.arguments)
                again = await _make_call(call, {**others, "max_bytes": max(share, _MIN_ANSWER_BYTES)})
                if not again.failed:
                    answers[number] = again

    def _limit_page(self, call: Call, share: int) -> Mapping[str, Any]:
        """Return the arguments of `call`; a tool with pages gets its share as the page size."""
        return with_page_size(call, self.table().get(call.name), max(share, _MIN_ANSWER_BYTES))

    def _has_pages(self, call: Call) -> bool:
        return has_pages(self.table().get(call.name))

    def _reads(self, name: str) -> bool:
        tool = self.table().get(name)
        return isinstance(tool, StrictTool) and tool.effect == "read"


class CallReadingTools(_Batch):
    """The room of the tool that calls tools which change nothing."""

    def refuse(self, call: Call) -> str:
        tool = self.table().get(call.name)
        if tool is None or self._reads(call.name) or _is_dry_run(call, tool):
            return ""
        alternatives = ["by itself"]
        if RUN_SCRIPT in self.table() and call.name != RUN_SCRIPT:
            alternatives.append(f"in `{RUN_SCRIPT}`")
        if isinstance(tool, StrictTool) and tool.reads_in_dry_run:
            alternatives.append("here with dry_run=true")
        return f"changes things, so call it {', or '.join(alternatives)}"

    def can_change(self, call: Call) -> bool:
        return False

    @tool("Call tools", effect="read", open_world=True, seconds=math.inf, adapt=_use_short_form)
    async def call_tools(
        self, calls: _Calls | None = None, script: _ScriptText = "", max_bytes: _MaxBytesOfReads | None = None
    ) -> CallToolResult:
        """Make several calls of reading tools in turn.

        With `script` only what it `print`s comes back: find, count and compare at once; print counts of
        data, not its lines.
        """
        if max_bytes is None:
            max_bytes = _MAX_SCRIPT_BYTES if script.strip() else DEFAULT_PAGE_BYTES
        return await self.call_or_run(calls or (), script, max_bytes)


class CallTools(_Batch):
    """The room of the tool that calls any tool."""

    def script_seconds(self) -> float:
        return _MAX_CHANGING_SECONDS

    @tool("Call tools", effect="read", open_world=True, seconds=math.inf, adapt=_use_short_form)
    async def call_tools(
        self, calls: _Calls | None = None, script: _ScriptText = "", max_bytes: _MaxBytes = DEFAULT_PAGE_BYTES
    ) -> CallToolResult:
        """Make several calls of this server's tools in turn.

        For all that waits for no other answer: reads together, a change with the look that checks it. A failed read
        stops nothing; after a change that failed nothing more is run. With `script` only what it `print`s comes back:
        look, decide, change and check in one, and throw before the change where something is unexpected.
        """
        return await self.call_or_run(calls or (), script, max_bytes)


@dataclass(frozen=True)
class RunScript:
    """The room of the tool that runs scripts which may make changes.

    It is a tool of its own because a host asks its user once whether a tool may be called: who allows `call_tools` for
    good allows reading, and no change.

    Args:
        calls: makes the calls of the scripts.
    """

    calls: CallTools

    @tool("Run script", effect="destroy", open_world=True, seconds=math.inf, toolset=RUN_SCRIPT)
    async def run_script(
        self,
        script: Annotated[str, Field(max_length=_MAX_SCRIPT_CHARACTERS, description="As there.")],
        max_bytes: _MaxBytes = DEFAULT_PAGE_BYTES,
    ) -> CallToolResult:
        """Run a script as `call_tools` does, with all tools, also those that make changes.

        Look, decide, change and check in one, without a look before; throw examples where something is unexpected.
        """
        return await self.calls.run(script, max_bytes)


@dataclass(frozen=True)
class RunScriptAlone:
    """The same room where `call_tools` is not offered, whose description says what scripts are."""

    calls: CallTools

    @tool("Run script", effect="destroy", open_world=True, seconds=math.inf, toolset=RUN_SCRIPT)
    async def run_script(
        self,
        script: Annotated[str, Field(max_length=_MAX_SCRIPT_CHARACTERS, description=_FORM_OF_SCRIPTS)],
        max_bytes: _MaxBytes = DEFAULT_PAGE_BYTES,
    ) -> CallToolResult:
        """Run a script that calls this server's tools, also those that make changes; what it `print`s comes back.

        Look, decide, change and check in one, without a look before; throw examples where something is unexpected.
        """
        return await self.calls.run(script, max_bytes)


def _parse_calls(objects: Sequence[Mapping[str, Mapping[str, Any]]]) -> list[Call]:
    """Return the calls in a list of `{NAME: ARGUMENTS}`.

    Raises:
        Invalid: there are none, or one is of `call_tools` itself.
    """
    calls: list[Call] = []
    for named in objects:
        calls.extend(Call(name, arguments) for name, arguments in named.items())
    if not calls:
        raise Invalid("`calls` names no tool.", f"Write `calls` as {_FORM_OF_CALLS}.")
    if any(call.name == CALL_TOOLS for call in calls):
        raise Invalid(f"`{CALL_TOOLS}` calls other tools, not itself.", "Put all calls into one list.")
    return calls


def _is_dry_run(call: Call, tool: Tool) -> bool:
    """Return whether a call only shows what it would do, by a tool that then does nothing but read.

    A second spelling of the argument beside this one is refused by the tool.
    """
    return isinstance(tool, StrictTool) and tool.reads_in_dry_run and call.arguments.get("dry_run") is True


async def _make_call(call: Call, arguments: Mapping[str, Any]) -> Answer:
    """Make a call of a list, where the next heading follows the text."""
    answer = await make_call(call, arguments)
    return replace(answer, text=answer.text.rstrip("\n"))


def _page(calls: Sequence[Call], answers: Sequence[Answer], reason: str, max_bytes: int) -> CallToolResult:
    """Return all answers as one; an answer longer than its share of `max_bytes` is cut, and says so.

    Args:
        reason: why some calls were not made; empty if all were.
    """
    share = _share([_size(answer.text) for answer in answers], max_bytes)
    texts: list[str] = []
    content: list[ContentBlock] = []
    if reason:
        texts.append(f"[{len(answers)} of {len(calls)} calls were made: {reason}; the others were not run]")
    for number, (call, answer) in enumerate(zip(calls, answers, strict=False), start=1):
        texts.append(f"# {number} {_format_answer(call, answer, share)}")
        if answer.others:
            content += [TextContent(type="text", text="\n".join(texts)), *answer.others]
            texts = []
    if texts:
        content.append(TextContent(type="text", text="\n".join(texts) + "\n"))
    has_failed = bool(reason) or all(answer.failed for answer in answers)
    return CallToolResult(content=content, is_error=has_failed)


def _format_answer(call: Call, answer: Answer, share: int) -> str:
    """Return the tool's name with remarks, then the text, or as much of it as fits."""
    heading = call.name
    if answer.failed:
        heading += ", failed"
    # An answer that kept to its page may be a little longer than that, for its first lines.
    limit = share * 3 // 2 if answer.page <= share else share
    text = truncate_utf8(answer.text, limit)
    if text != answer.text:
        text = text.rpartition("\n")[0] or text
        cut = f"cut: {_size(text):,} of {_size(answer.text):,} bytes"
        heading += f", {cut}; for more call it alone: a cursor in it skips the rest"
    return f"{heading}\n{text}"


def _size(text: str) -> int:
    return len(text.encode())


def _share_of_next(answers: Sequence[Answer], call_count: int, max_bytes: int) -> int:
    """Return how many bytes the next answer may have, if those behind it turn out as short as most.

    A page that is too long in the end is made again; one that was too short costs the caller a call.
    """
    sizes = [_size(answer.text) for answer in answers]
    sizes += [_EXPECTED_ANSWER_BYTES] * (call_count - len(answers) - 1)
    return _share([*sizes, max_bytes], max_bytes)


def _share(sizes: Sequence[int], max_bytes: int) -> int:
    """Return the most bytes that each answer may have, so that all together have at most `max_bytes`."""
    remaining = max_bytes
    for number, size in enumerate(sorted(sizes)):
        share = remaining // (len(sizes) - number)
        if size > share:
            return share
        remaining -= size
    return max_bytes
