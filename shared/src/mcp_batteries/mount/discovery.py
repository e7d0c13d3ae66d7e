"""Three tools that replace all others, for clients that load every tool's schema before the first question."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, cast

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver.tools import Tool
from mcp_types import CallToolResult
from pydantic import Field

from mcp_batteries.errors import NotFound, quote
from mcp_batteries.mount.member import LEFT_OUT, Member
from mcp_batteries.server.calling.call_params import CALL_TOOL, CALL_TOOLS, RUN_SCRIPT, normalize_call, rename_call
from mcp_batteries.server.calling.results import to_compact_json
from mcp_batteries.server.declaration.decorators import tool

__all__ = ["NAMES", "Discovery"]

NAMES = ("find_tools", "describe_tools", CALL_TOOL)
_MAX_RESULTS = 12
_WORD = re.compile(r"[a-z0-9]+")


@dataclass(frozen=True)
class Discovery:
    """The three tools, what they find, and which tool a call means.

    Args:
        members: the servers.
        table: every tool that can be called, by name.
        close: those of some names that are most like one.
    """

    members: Sequence[Member]
    table: Callable[[], Mapping[str, Tool]]
    close: Callable[[str, Sequence[str]], Sequence[str]]

    @tool("Find tools", effect="read")
    async def find_tools(
        self,
        query: Annotated[str, Field(max_length=200, description="What to do, or a server; empty: names of all.")] = "",
    ) -> str:
        """Find tools by what they do. Each line: a name and what it is for."""
        tools = self._tools()
        if not query.strip():
            return self._list_names(tools)
        # However short a server's name is, it finds its tools.
        words = _stems(query) | {member.name for member in self.members if member.name in query.lower().split()}
        scores = {item.name: _score(words, item) for item in tools.values()}
        ranked = sorted(tools.values(), key=lambda item: -scores[item.name])
        fitting = [item for item in ranked[:_MAX_RESULTS] if scores[item.name]]
        if not fitting:
            return f"None fits {quote(query)}. There are: {', '.join(tools)}.\n"
        return "\n".join(f"{item.name}: {_first_sentence(item)}" for item in fitting) + "\n"

    def _list_names(self, tools: Mapping[str, Tool]) -> str:
        """Return a line with the tools of each server, and one with those of the process."""
        groups: dict[str, list[str]] = {member.name: [] for member in self.members}
        groups[""] = []
        for name in tools:
            owner = next((member.name for member in self.members if name.startswith(member.add_prefix(""))), "")
            groups[owner].append(name)
        return "\n".join(", ".join(names) for names in groups.values() if names) + "\n"

    @tool("Describe tools", effect="read")
    async def describe_tools(
        self, names: Annotated[list[str], Field(min_length=1, max_length=10, description="From `find_tools`.")]
    ) -> str:
        """Describe tools: what they do, their arguments as JSON Schema, and what is good to know of their server."""
        tools = self._tools()
        sections: list[str] = []
        names = [self.resolve(name) or name for name in names]
        if RUN_SCRIPT in names and CALL_TOOLS in tools and CALL_TOOLS not in names:
            # It refers to the other's description, which says what a script is.
            names.append(CALL_TOOLS)
        for name in names:
            if name not in tools:
                raise self._not_found(name)
            item = tools[name]
            schema = to_compact_json(item.parameters)
            sections.append(f"# {item.name}\n{item.description}\nArguments: {schema}\n")
        for member in self.members:
            if any(name.startswith(member.add_prefix("")) for name in names):
                sections.append(f"# About {member.name}\n{member.rename_tools(member.server.instructions or '')}\n")
        return "\n".join(sections)

    @tool("Call a tool", effect="read", open_world=True)
    async def call_tool(
        self,
        name: Annotated[str, Field(description="From `find_tools`.")],
        arguments: Annotated[dict[str, Any], Field(description="As `describe_tools` says.")] = {},  # noqa: B006 - read only
    ) -> CallToolResult:
        """Call a tool that was found; its answer is the answer."""
        # A call of a tool that exists became that tool's own before it came here: see `unwrap_request`.
        raise self._not_found(name)

    async def unwrap_request(self, ctx: ServerRequestContext[Any], call_next: CallNext) -> HandlerResult:
        """Middleware that turns a request for `call_tool` into one for the tool itself, by its name here.

        From here on it counts as that tool's: in the audit log, for scopes, consent and limits.
        """
        if ctx.method == "tools/call" and ctx.params is not None:
            call = self._unwrap(normalize_call(ctx.params))
            arguments = call.get("arguments")
            if call.get("name") == CALL_TOOLS and isinstance(arguments, Mapping):
                call = {**call, "arguments": self._unwrap_calls(cast("Mapping[str, Any]", arguments))}
            ctx = replace(ctx, params=call)
        return await call_next(ctx)

    def _unwrap_calls(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Unwrap each call in the arguments of `call_tools`."""
        arguments = normalize_call({"name": CALL_TOOLS, "arguments": arguments})["arguments"]
        calls = arguments.get("calls")
        if not isinstance(calls, list):
            return arguments
        unwrapped: list[Any] = []
        for call in cast("list[Any]", calls):
            if isinstance(call, dict):
                call = self._unwrap(cast("dict[str, Any]", call))
            unwrapped.append(call)
        return {**arguments, "calls": unwrapped}

    def _unwrap(self, call: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the call that `call_tool` is to make; any other call with its tool's name here."""
        name = call.get("name")
        if name != CALL_TOOL or CALL_TOOL not in self.table():
            # Views and texts of a server say the names that its tools have there.
            own_name = self.resolve(name)
            if own_name is None:
                return call
            return rename_call(call, own_name, self.imply_arguments(name))
        wrapped = call.get("arguments")
        if not isinstance(wrapped, Mapping):
            return call
        members = cast("Mapping[str, Any]", wrapped)
        own_name = self.resolve(members.get("name"))
        arguments = members.get("arguments")
        # What else was sent, or not as an object, `call_tool` itself refuses.
        if own_name is None or not isinstance(arguments, Mapping) or members.keys() - {"name", "arguments"}:
            return call
        return rename_call({**call, "arguments": arguments}, own_name, self.imply_arguments(members.get("name")))

    def resolve(self, name: Any) -> str | None:
        """Return the tool called `name`; the server's prefix may be missing if only one server has the tool.

        It may also be another name of the tool, if only one server has a tool that answers to it.
        """
        if isinstance(name, list):
            names = cast("list[Any]", name)
            if len(names) == 1:
                name = names[0]
        if not isinstance(name, str):
            return None
        if name in self._tools():
            return name
        if name in LEFT_OUT:
            return None
        full_names: list[str] = []
        for member in self.members:
            own_name = member.server.resolve_tool(name)
            if own_name is not None:
                full_names.append(member.add_prefix(own_name))
        if len(full_names) != 1:
            return None
        return full_names[0]

    def imply_arguments(self, name: Any) -> Mapping[str, Any]:
        """Return the arguments that another name of a tool implies, which only one server has."""
        for member in self.members:
            implied = member.server.implied_arguments(name)
            if implied:
                return implied
        return {}

    def _not_found(self, name: str) -> NotFound:
        tools = self._tools()
        similar = self.close(name, list(tools)) or [full_name for full_name in tools if full_name.endswith(f"_{name}")]
        fix = "Ask `find_tools`."
        if similar:
            fix = f"Near: {', '.join(similar)}."
        return NotFound(f"There is no tool {quote(name)}.", fix)

    def _tools(self) -> dict[str, Tool]:
        return {name: item for name, item in self.table().items() if name not in NAMES}


def _first_sentence(item: Tool) -> str:
    return item.description.partition("\n")[0].split(". ")[0].rstrip(".") + "."


def _stems(text: str) -> set[str]:
    return {word.removesuffix("s") for word in _WORD.findall(text.lower()) if len(word) > 2}


def _score(words: set[str], item: Tool) -> int:
    """Rate how well a tool fits: a word in its name counts more than one in its description."""
    prefix = item.name.partition("_")[0]
    in_name = _stems(item.name) | {prefix}
    arguments = " ".join(item.parameters.get("properties", {}))
    in_description = _stems(f"{item.title} {item.description} {arguments}")
    return 4 * len(words & in_name) + len(words & in_description)
