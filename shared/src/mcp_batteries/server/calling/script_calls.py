"""The calls that one script makes, and what its answer says of them."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mcp.server.mcpserver.tools import Tool
from mcp_types import CallToolResult, TextContent

from mcp_batteries.clipping import truncate_utf8
from mcp_batteries.errors import well_formed
from mcp_batteries.scripts.next_page import NEXT_PAGE
from mcp_batteries.scripts.runner import Answer as ScriptAnswer
from mcp_batteries.scripts.runner import FunctionFailed, Outcome, ReadList, ScriptEnded, run_script
from mcp_batteries.server.calling.arguments import normalize_name
from mcp_batteries.server.calling.call_params import (
    CALL_TOOL,
    CALL_TOOLS,
    MAX_SCRIPT_CALLS,
    MAX_SERVICE_CALLS,
    RUN_SCRIPT,
)
from mcp_batteries.server.calling.inner_calls import Answer, Call, make_call
from mcp_batteries.server.calling.printed_output import cut_output
from mcp_batteries.server.calling.results import answering_script

__all__ = ["ScriptCalls", "ToolNames"]

_MAX_PAGE_BYTES = 1_000_000
# Of what the lists of a tool say beside their rows.
_MAX_NOTE_BYTES = 1200
_MAX_ARGUMENTS_BYTES = 120
# From here on an answer says how a look is shorter.
_LONG_OUTPUT_BYTES = 2500
# Of the lines that tell what a script did before it failed.
_MAX_CHANGE_BYTES = 120
_MAX_CHANGES = 25
_FIRST_CHANGES = 5
# Arguments that bound the rows of a page and the texts in them, where a cursor leads to more.
_ROW_BOUNDS = ("limit", "max_per_file", "max_cell")
# What asks for the next page stands in the first line of an answer, in the heading of one of several files, or in JSON.
_NEXT_PAGE = re.compile(
    rf'(?:\A\[|^=== ).*{NEXT_PAGE}|\A\{{.*"cursor":"(?P<json_value>[^"]+)"',
    re.MULTILINE,
)
# What a script calls, by itself or as `NAME.all`.
_CALLED = re.compile(r"\b([A-Za-z]\w*)(?:\.all)?\s*\(")
# The error of a script that a call ended.
_FAILED_CALL = re.compile(r"(?:line \d+: )?Error: (?P<name>\w+): ")
_UNDEFINED = re.compile(r"\b(?P<name>\w+) is not defined")
_FENCED = re.compile(r"\s*```\w*\n(?P<code>.*?)```\s*", re.DOTALL)
# What the first line says of an answer that has no next page.
_INCOMPLETE = re.compile(r"\[.*\b(?:truncated|folded|raise max_|no more than [0-9]|not the end of|not kept)")


@dataclass(frozen=True)
class ToolNames:
    """Finds tools by other names than their own.

    Attributes:
        resolve: returns the own name of the tool that is called by this or another name; None if none is.
        imply_arguments: returns the arguments that such another name implies.
        close_to: returns those of some names that are most like one.
    """

    resolve: Callable[[str], str | None] = lambda name: None
    imply_arguments: Callable[[str], Mapping[str, Any]] = lambda name: {}
    close_to: Callable[[str, Sequence[str]], Sequence[str]] = lambda name, names: ()


class _Change(NamedTuple):
    """A call that can change something, and the first line of its answer."""

    call: Call
    line: str


class _UnreadPage(NamedTuple):
    """What an answer says to be missing in it, as long as no call asked for it.

    Attributes:
        position: the cursor or the line that asks for it; empty where none does.
        is_expected: whether the call asked for a shorter answer than the tool gives by itself.
    """

    tool: str
    position: str
    is_expected: bool


@dataclass
class ScriptCalls:
    """Makes the calls of one script, and remembers what its answer has to tell of them.

    Args:
        table: every tool, by name.
        refuse: returns why a call is not made, as the end of a sentence about it; empty if it is.
        can_change: returns whether a call can change something.
        names: finds tools by other names than their own.

    Attributes:
        count: how many calls were made.
        service_count: how many of them asked a service.
        failed: how many of them failed.
        last: the last of them.
        may_change: whether it may make calls that can change something.
        changes: those that it made and that did not fail.
        failed_changes: how often each tool that can change something failed.
        unfinished: the call that can change something and has no answer yet.
        page_bounds: what `_read_page_bounds` says of each tool that was called.
        other_names: the tools by the other names that the script calls them by.
    """

    table: Mapping[str, Tool]
    refuse: Callable[[Call], str]
    can_change: Callable[[Call], bool]
    names: ToolNames = field(default_factory=ToolNames)
    count: int = 0
    service_count: int = 0
    failed: int = 0
    last: Call | None = None
    may_change: bool = False
    changes: list[_Change] = field(default_factory=list["_Change"])
    failed_changes: Counter[str] = field(default_factory=Counter[str])
    unfinished: str = ""
    unread: list[_UnreadPage] = field(default_factory=list[_UnreadPage])
    page_bounds: dict[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])
    other_names: Mapping[str, str] = field(default_factory=dict[str, str])

    async def run(self, script: str, seconds: float, max_bytes: int) -> CallToolResult:
        """Run a script whose functions are the tools, and return what it prints."""
        script = _without_fence(script)
        self.other_names = self._find_other_names(script)
        functions = [*self._functions, *self.other_names]
        reporting = [name for name in functions if self.can_change(Call(self.other_names.get(name, name), {}))]
        self.may_change = bool(reporting)
        outcome = await run_script(script, functions, self._make, seconds, reporting)
        output, shown_bytes = cut_output(outcome.prints, max_bytes, is_whole=not outcome.left_out)
        notes = [*self._describe_calls(outcome, output), *_describe_output(outcome, shown_bytes)]
        if not self.changes and "count_forms" not in script and shown_bytes > _LONG_OUTPUT_BYTES:
            notes.append("to look at many lines in few bytes, print count_forms(LINES)")
        text = "\n".join([*(f"[{note}]" for note in notes), output])
        return CallToolResult(content=[TextContent(type="text", text=text)], is_error=bool(outcome.error))

    @property
    def _functions(self) -> list[str]:
        return [name for name in self.table if name not in (CALL_TOOLS, CALL_TOOL, RUN_SCRIPT)]

    def _find_other_names(self, script: str) -> dict[str, str]:
        """Return the tools that a script calls by other names, such as those without the prefix of their server."""
        tools = self._functions
        own_names: dict[str, str] = {}
        for name in dict.fromkeys(_CALLED.findall(script)):
            own_name = self.names.resolve(name)
            if own_name in tools and name not in tools:
                own_names[name] = own_name
        return own_names

    async def _make(self, name: str, arguments: Mapping[str, Any]) -> ScriptAnswer:
        """Return an answer.

        Raises:
            FunctionFailed: The call is refused, or failed.
            ScriptEnded: The script has made all calls that it may.
        """
        if name in self.other_names:
            arguments = {**self.names.imply_arguments(name), **arguments}
            name = self.other_names[name]
        call = Call(name, arguments)
        if refusal := self.refuse(call):
            raise FunctionFailed(f"it {refusal}")
        self._count(call)
        if self.can_change(call):
            self.unfinished = name
        with answering_script() as script_answer:
            answer = await make_call(call, self._widen_page(call))
        if self.unfinished:
            self._note_change(call, answer)
            self.unfinished = ""
        if answer.failed:
            self.failed += 1
            raise FunctionFailed(answer.text.rstrip("\n"))
        self._note_pages(call, answer.text)
        return ScriptAnswer(answer.text, script_answer.printed_text(answer.text))

    def _count(self, call: Call) -> None:
        """Count a call before it is made.

        Raises:
            ScriptEnded: The script has made all that it may.
        """
        tool = self.table.get(call.name)
        asks_service = tool is not None and not _is_local(tool)
        if self.count == MAX_SCRIPT_CALLS or (asks_service and self.service_count == MAX_SERVICE_CALLS):
            raise ScriptEnded("it may make no more calls; search, or name several in one call")
        self.count += 1
        self.service_count += asks_service
        self.last = call

    def _note_change(self, call: Call, answer: Answer) -> None:
        """Remember a call that can change something."""
        if answer.failed:
            self.failed_changes[call.name] += 1
            return
        first_line, _, _ = answer.text.partition("\n")
        self.changes.append(_Change(call, first_line))

    def _note_pages(self, call: Call, text: str) -> None:
        """Remember which pages there are behind an answer."""
        self._forget_page(call)
        tool = self.table.get(call.name)
        is_bounded = tool is not None and _is_bounded(call, tool)
        last_line = call.arguments.get("end_line", call.arguments.get("head"))
        matches = list(_NEXT_PAGE.finditer(text))
        for match in matches:
            if isinstance(last_line, int) and match["value"] == str(last_line + 1):
                continue
            position = match["value"] or match["json_value"]
            self.unread.append(_UnreadPage(call.name, position, is_bounded))
        if not matches and _INCOMPLETE.match(text):
            self.unread.append(_UnreadPage(call.name, "", is_bounded))

    def _forget_page(self, call: Call) -> None:
        """Count a page as read, if the call asked for one."""
        positions = [str(call.arguments.get(name)) for name in ("cursor", "start_line")]
        for page in self.unread:
            if page.position in positions:
                self.unread.remove(page)
                return

    def _widen_page(self, call: Call) -> Mapping[str, Any]:
        """Return the arguments of a call, whose page may be long, since no model reads it."""
        tool = self.table.get(call.name)
        if tool is None:
            return call.arguments
        names = {normalize_name(name) for name in call.arguments}
        # A schema takes a millisecond, and a script calls the same few tools again and again.
        if tool.name not in self.page_bounds:
            self.page_bounds[tool.name] = _read_page_bounds(tool)
        bounds = {**self.page_bounds[tool.name]}
        if names - {normalize_name(name) for name in tool.parameters["properties"]}:
            # It may be another name of one of these.
            bounds.pop("limit", None)
        others = {name: bound for name, bound in bounds.items() if normalize_name(name) not in names}
        return {**call.arguments, **others}

    def _describe_calls(self, outcome: Outcome, output: str) -> list[str]:
        """Return what is to be known of a script's calls: what failed, what may have changed, what it left unread."""
        return [
            *self._describe_failures(outcome),
            *self._describe_changes(outcome, output),
            *self._describe_reading(outcome),
        ]

    def _describe_failures(self, outcome: Outcome) -> list[str]:
        notes: list[str] = []
        if outcome.error:
            calls = "1 call" if self.count == 1 else f"{self.count} calls"
            notes.append(f"the script failed after {calls}: {outcome.error}")
            if self.last is not None and not _FAILED_CALL.match(outcome.error):
                # In a loop, what the script read last is mostly what it did not expect.
                notes[-1] += f"; the last call was {_format_call(self.last)}"
        elif self.failed:
            # An asynchronous function that nobody waits for drops its errors.
            notes.append(f"{self.failed} of {self.count} calls failed")
        if undefined := _UNDEFINED.search(outcome.error):
            notes.append(self._suggest_functions(undefined["name"]))
        if "SyntaxError" in outcome.error and "JSON" not in outcome.error:
            notes.append("a script is JavaScript, the body of an asynchronous function")
        return notes

    def _suggest_functions(self, name: str) -> str:
        """Return what a script may call in place of a function that there isn't."""
        allowed = [function for function in self._functions if not self.refuse(Call(function, {}))]
        similar = self.names.close_to(name, allowed)
        if similar:
            return f"did you mean {' or '.join(similar)}?"
        return f"its functions are {', '.join(allowed)} and print"

    def _describe_changes(self, outcome: Outcome, output: str) -> list[str]:
        """Return which calls may have changed something, unless the caller reads the answers of all anyway."""
        notes: list[str] = []
        unprinted = _without_printed(self.changes, output)
        call_counts: list[str] = []
        if unprinted:
            # A number without those that were printed would be taken for all.
            counts = Counter(change.call.name for change in self.changes)
            call_counts += [f"{count} {name}" for name, count in counts.items()]
        failures = Counter(self.failed_changes)
        if failure := _FAILED_CALL.match(outcome.error):
            # The first line has told of it.
            failures[self.other_names.get(failure["name"], failure["name"])] -= 1
        call_counts += [f"{count} {name} failed" for name, count in failures.items() if count > 0]
        if call_counts:
            notes.append(f"calls that could change something: {', '.join(call_counts)}")
        if outcome.error and unprinted:
            also = "" if len(unprinted) == len(self.changes) else ", and what the output below tells"
            notes.append(f"made already, so leave them out of the next script{also}:\n{_list_changes(unprinted)}")
        if self.unfinished:
            notes.append(f"{self.unfinished} was not finished; look whether it changed something")
        elif outcome.error and self.may_change and not self.changes and not self.failed_changes:
            notes.append("nothing was changed")
        return notes

    def _describe_reading(self, outcome: Outcome) -> list[str]:
        notes: list[str] = []
        unexpected = dict.fromkeys(page.tool for page in self.unread if not page.is_expected)
        if unexpected:
            notes.append(f"not all is in what {', '.join(unexpected)} returned, as `remark` or a cursor in it says")
        incomplete = {page.tool for page in self.unread}
        lists: list[str] = []
        for read in outcome.lists:
            if self.other_names.get(read.name, read.name) not in incomplete:
                lists.append(_describe_list(read))
            elif read.notes:
                # This list was read whole, but the answer to another call of the tool was not.
                notes.append(f"{read.name}: {_join_notes(read)}")
        if lists:
            notes.append(f"read whole: {', '.join(lists)}")
        if outcome.columns_below_titles:
            columns = truncate_utf8("; ".join(outcome.columns_below_titles), _MAX_NOTE_BYTES)
            notes.append(f"rows() took for columns: {columns}")
        return notes


def _format_call(call: Call) -> str:
    """Return a call as a script writes it, without the cursor of a page and with long arguments cut."""
    arguments = {name: value for name, value in call.arguments.items() if name != "cursor"}
    json_text = well_formed(json.dumps(arguments, ensure_ascii=False))
    shown_text = truncate_utf8(json_text, _MAX_ARGUMENTS_BYTES)
    if shown_text != json_text:
        shown_text += "..."
    return f"{call.name}({shown_text})"


def _without_printed(changes: Sequence[_Change], output: str) -> list[_Change]:
    """Return the changes whose answers do not begin with a line of the output.

    Of answers that begin alike a line does not tell which one it is, so all have to be there.
    """
    printed = Counter(output.splitlines())
    expected = Counter(change.line for change in changes)
    return [change for change in changes if not change.line or printed[change.line] < expected[change.line]]


def _list_changes(changes: Sequence[_Change]) -> str:
    """Return a line for each change; of many, the first and the last, since a script mostly makes them in order."""
    counts = Counter(change.line for change in changes)
    lines: list[str] = []
    for change in changes:
        if change.line and counts[change.line] == 1:
            lines.append(truncate_utf8(change.line, _MAX_CHANGE_BYTES))
        else:
            lines.append(_format_call(change.call))
    left_out = len(lines) - _MAX_CHANGES
    if left_out > 1:
        lines[_FIRST_CHANGES : _FIRST_CHANGES + left_out] = [f"({left_out:,} between them)"]
    return "\n".join(lines)


def _describe_list(read: ReadList) -> str:
    """Return how much `.all` read, so that few of many are not taken for a list that was cut."""
    unit = read.unit.removesuffix("s") if read.length == 1 else read.unit
    text = f"{read.name} {read.length:,} {unit}"
    if read.calls > 1:
        text += f" in {read.calls:,} calls"
    if read.notes:
        text += f" ({_join_notes(read)})"
    return text


def _join_notes(read: ReadList) -> str:
    notes = "; ".join(" ".join(note.split()) for note in read.notes)
    return truncate_utf8(notes, _MAX_NOTE_BYTES)


def _is_bounded(call: Call, tool: Tool) -> bool:
    """Return whether the call asks for a shorter answer than the tool gives by itself, so that the script knows it."""
    for name in ("max_bytes", *_ROW_BOUNDS):
        bound = call.arguments.get(name)
        default = tool.parameters["properties"].get(name, {}).get("default")
        if isinstance(bound, int) and isinstance(default, int) and bound < default:
            return True
    return False


def _is_local(tool: Tool) -> bool:
    """Return whether a tool asks no service beyond this machine."""
    return tool.annotations is not None and not tool.annotations.open_world_hint


def _read_page_bounds(tool: Tool) -> dict[str, int]:
    """Return the arguments that bound a page of a tool's answer, each with its greatest value.

    A service answers long lists with several requests, so the number of rows stays the tool's where it asks one.
    """
    # The schema that models get has no such far bounds.
    properties = tool.fn_metadata.arg_model.model_json_schema()["properties"]
    names = ["max_bytes"]
    if _is_local(tool) and "cursor" in properties:
        names += _ROW_BOUNDS
    return {name: properties[name].get("maximum", _MAX_PAGE_BYTES) for name in names if name in properties}


def _without_fence(script: str) -> str:
    """Return a script without the fence that models put around code."""
    fenced = _FENCED.fullmatch(script)
    return script if fenced is None else fenced["code"]


def _describe_output(outcome: Outcome, shown_bytes: int) -> list[str]:
    """Say what of the output of a script is missing in the answer."""
    printed_bytes = len(outcome.output.encode()) + outcome.left_out
    if printed_bytes > shown_bytes:
        return [f"cut: {shown_bytes:,} of {printed_bytes:,} bytes that it printed; print less, or raise max_bytes"]
    if not outcome.error and not outcome.output:
        return ["the script printed nothing"]
    return []
