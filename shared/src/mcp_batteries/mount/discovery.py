"""Three tools that replace all others, for clients that load every tool's schema before the first question."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, cast

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver.tools import Tool
from mcp_types import CallToolResult
from pydantic import Field

from mcp_batteries.errors import Invalid, NotFound, quote
from mcp_batteries.mount.member import LEFT_OUT, Member
from mcp_batteries.sdk import tool_table
from mcp_batteries.server.arguments import parsed
from mcp_batteries.server.call_tools import CALL_TOOL, CALL_TOOLS, one_by_one
from mcp_batteries.server.declare import tool

__all__ = ["NAMES", "Discovery"]

NAMES = ("find_tools", "describe_tools", CALL_TOOL)
_MOST_FOUND = 12
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
            groups = [[name for name in tools if name.startswith(member.named(""))] for member in self.members]
            alone = [name for name in tools if not any(name in group for group in groups)]
            return "\n".join(", ".join(group) for group in (*groups, alone) if group) + "\n"
        # However short a server's name is, it finds its tools.
        words = _stems(query) | {member.name for member in self.members if member.name in query.lower().split()}
        ranked = sorted(tools.values(), key=lambda item: -_score(words, item))
        found = [item for item in ranked[:_MOST_FOUND] if _score(words, item)]
        if not found:
            return f"None fits {quote(query)}. There are: {', '.join(tools)}.\n"
        return "\n".join(f"{item.name}: {_sentence(item)}" for item in found) + "\n"

    @tool("Describe tools", effect="read")
    async def describe_tools(
        self, names: Annotated[list[str], Field(min_length=1, max_length=10, description="From `find_tools`.")]
    ) -> str:
        """Describe tools: what they do, their arguments as JSON Schema, and what is good to know of their server."""
        tools = self._tools()
        parts: list[str] = []
        names = [self._meant(name) or name for name in names]
        for name in names:
            if (found := tools.get(name)) is None:
                raise self._none(name)
            schema = json.dumps(found.parameters, ensure_ascii=False, separators=(",", ":"))
            parts.append(f"# {found.name}\n{found.description}\nArguments: {schema}\n")
        parts.extend(
            f"# About {member.name}\n{member.renamed(member.server.instructions or '')}\n"
            for member in self.members
            if any(name.startswith(member.named("")) for name in names)
        )
        return "\n".join(parts)

    @tool("Call a tool", effect="read", open_world=True)
    async def call_tool(
        self,
        name: Annotated[str, Field(description="From `find_tools`.")],
        arguments: Annotated[dict[str, Any], Field(description="As `describe_tools` says.")] = {},  # noqa: B006 - read only
    ) -> CallToolResult:
        """Call a tool that was found; its answer is the answer."""
        # A call of a tool that exists became that tool's own before it came here: see `unwrapped`.
        raise self._none(name)

    async def unwrapped(self, ctx: ServerRequestContext[Any], call_next: CallNext) -> HandlerResult:
        """Middleware that turns a request for `call_tool` into one for the tool itself, by its name here.

        From here on it counts as that tool's: in the audit log, for scopes, consent and limits.
        """
        if ctx.method == "tools/call" and ctx.params is not None:
            params = self._unwrapped(ctx.params)
            given = params.get("arguments")
            if params.get("name") == CALL_TOOLS and isinstance(given, Mapping):
                asked = one_by_one(cast("Mapping[str, Any]", given))
                if isinstance(calls := asked.get("calls"), list):
                    meant = [
                        self._unwrapped(cast("dict[str, Any]", call)) if isinstance(call, dict) else call
                        for call in cast("list[Any]", calls)
                    ]
                    asked = {**asked, "calls": meant}
                params = {**params, "arguments": asked}
            ctx = replace(ctx, params=params)
        return await call_next(ctx)

    def _unwrapped(self, call: Mapping[str, Any]) -> Mapping[str, Any]:
        name = call.get("name")
        given = call.get("arguments")
        if name != CALL_TOOL or CALL_TOOL not in self.table():
            # Views and texts of a server say the names that its tools have there.
            return call if (meant := self._meant(name)) is None else {**call, "name": meant}
        if isinstance(given, Mapping):
            asked = cast("Mapping[str, Any]", given)
            meant = self._meant(asked.get("name"))
            arguments = _object(asked.get("arguments"))
            # What else was given, or not as an object, `call_tool` itself refuses.
            if meant is not None and arguments is not None and not asked.keys() - {"name", "arguments"}:
                return {**call, "name": meant, "arguments": arguments}
        return call

    def _meant(self, name: Any) -> str | None:
        """The tool called `name`; the server's prefix may be missing if only one server has the tool."""
        if isinstance(name, list) and len(cast("list[Any]", name)) == 1:
            name = cast("list[Any]", name)[0]
        if not isinstance(name, str):
            return None
        if name in self._tools():
            return name
        having = [member for member in self.members if name in tool_table(member.server) and name not in LEFT_OUT]
        return having[0].named(name) if len(having) == 1 else None

    def _none(self, name: str) -> NotFound:
        tools = self._tools()
        near = self.close(name, list(tools)) or [full for full in tools if full.endswith(f"_{name}")]
        return NotFound(
            f"There is no tool {quote(name)}.", f"Near: {', '.join(near)}." if near else "Ask `find_tools`."
        )

    def _tools(self) -> dict[str, Tool]:
        return {name: item for name, item in self.table().items() if name not in NAMES}


def _object(given: Any) -> Mapping[str, Any] | None:
    """`given`, or its JSON text, as an object; empty if nothing was given, None if it is not an object."""
    if isinstance(given, str):
        try:
            given = parsed(given)
        except Invalid:
            return None
    return {} if given is None else cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else None


def _sentence(item: Tool) -> str:
    return item.description.partition("\n")[0].split(". ")[0].rstrip(".") + "."


def _stems(text: str) -> set[str]:
    return {word.removesuffix("s") for word in _WORD.findall(text.lower()) if len(word) > 2}


def _score(words: set[str], item: Tool) -> int:
    """How well a tool fits: a word in its name counts more than one in its description."""
    named = _stems(item.name) | {item.name.partition("_")[0]}
    said = _stems(f"{item.title} {item.description} {' '.join(item.parameters.get('properties', {}))}")
    return sum(4 * (word in named) + (word in said) for word in words)
