"""The calls that one script makes, and what its answer says of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp.server.mcpserver.tools import Tool
from mcp_types import CallToolResult, TextContent

from mcp_batteries.clipping import truncate_utf8
from mcp_batteries.scripts.runner import FunctionFailed, Outcome, run_script
from mcp_batteries.server.calling.call_params import CALL_TOOLS, MAX_SCRIPT_CALLS
from mcp_batteries.server.calling.inner_calls import Call, has_pages, make_call, without_page_size
from mcp_batteries.server.calling.results import writing_whole_paths

__all__ = ["ScriptCalls"]

_MAX_PAGE_BYTES = 1_000_000
# The lines of an answer that say that there is more.
_CUT = re.compile(r'^\[.*(?:\bcursor=|truncated)|"cursor":"', re.MULTILINE)


@dataclass
class ScriptCalls:
    """Makes the calls of one script, and remembers what its answer has to tell of them.

    Args:
        table: every tool, by name.
        refuse: returns why a call is not made, as the end of a sentence about it; empty if it is.
        can_change: returns whether a call can change something.

    Attributes:
        count: how many calls were made.
        changes: how often each tool that can change something was called, and with what success.
        unfinished: the call that can change something and has no answer yet.
        cut: the tools whose answers were pages with more behind them, once for each answer.
        continued: how many calls asked for a next page.
    """

    table: Mapping[str, Tool]
    refuse: Callable[[Call], str]
    can_change: Callable[[Call], bool]
    count: int = 0
    changes: Counter[str] = field(default_factory=Counter[str])
    unfinished: str = ""
    cut: list[str] = field(default_factory=list[str])
    continued: int = 0

    async def run(self, script: str, seconds: float, max_bytes: int) -> CallToolResult:
        """Run a script whose functions are the tools, and return what it prints."""
        outcome = await run_script(script, self._functions, self._make, seconds)
        output = truncate_utf8(outcome.output, max_bytes)
        notes = [*self._describe_calls(outcome), *_describe_output(outcome, output)]
        text = "\n".join([*(f"[{note}]" for note in notes), output])
        return CallToolResult(content=[TextContent(type="text", text=text)], is_error=bool(outcome.error))

    @property
    def _functions(self) -> list[str]:
        return [name for name in self.table if name != CALL_TOOLS]

    async def _make(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Return the text of an answer.

        Raises:
            FunctionFailed: The call is refused, or failed.
        """
        call = Call(name, arguments)
        if self.count == MAX_SCRIPT_CALLS:
            raise FunctionFailed(f"a script makes at most {MAX_SCRIPT_CALLS} calls")
        if refusal := self.refuse(call):
            raise FunctionFailed(f"it {refusal}")
        self.count += 1
        if self.can_change(call):
            self.unfinished = name
        with writing_whole_paths():
            answer = await make_call(call, self._widen_page(call))
        if self.unfinished:
            self.changes[f"{name} failed" if answer.failed else name] += 1
            self.unfinished = ""
        if answer.failed:
            raise FunctionFailed(answer.text.rstrip("\n"))
        if "cursor" in arguments:
            self.continued += 1
        if _CUT.search(answer.text):
            self.cut.append(name)
        return answer.text

    def _widen_page(self, call: Call) -> Mapping[str, Any]:
        """Return the arguments of a call, whose page may be long, since no model reads it."""
        tool = self.table.get(call.name)
        others = without_page_size(call.arguments)
        if len(others) < len(call.arguments) or tool is None or not has_pages(tool):
            return call.arguments
        # The schema that models get has no such far bounds.
        schema = tool.fn_metadata.arg_model.model_json_schema()
        return {**others, "max_bytes": schema["properties"]["max_bytes"].get("maximum", _MAX_PAGE_BYTES)}

    def _describe_calls(self, outcome: Outcome) -> list[str]:
        notes: list[str] = []
        if outcome.error:
            notes.append(f"the script failed after {self.count} calls: {outcome.error}")
        if "is not defined" in outcome.error:
            notes.append(f"its functions are {', '.join(self._functions)} and print")
        if self.changes:
            changes = ", ".join(f"{count} {name}" for name, count in self.changes.items())
            notes.append(f"calls that could change something: {changes}")
        if self.unfinished:
            notes.append(f"{self.unfinished} was not finished; look whether it changed something")
        # A script that went on to the next pages has seen what was behind the earlier ones.
        if len(self.cut) > self.continued:
            names = ", ".join(dict.fromkeys(self.cut))
            notes.append(f"not all is in what {names} returned, as `remark` or a cursor in it says")
        return notes


def _describe_output(outcome: Outcome, output: str) -> list[str]:
    """Say what of the output of a script is missing in the answer."""
    shown = len(output.encode())
    printed = len(outcome.output.encode()) + outcome.left_out
    if printed > shown:
        return [f"cut: {shown:,} of {printed:,} bytes that it printed; print less, or raise max_bytes"]
    if not outcome.error and not output:
        return ["the script printed nothing"]
    return []
