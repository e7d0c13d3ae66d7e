"""One mounted server: its offers under prefixed names, and its lifetime beside the others."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, cast

import anyio
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR

from mcp_batteries.errors import first_exception
from mcp_batteries.sdk import lowlevel, tool_table
from mcp_batteries.server.assemble import Assembled
from mcp_batteries.server.calling.call_params import CALL_TOOLS, RUN_SCRIPT
from mcp_batteries.server.calling.tool import ConfirmationCheck, StrictTool
from mcp_batteries.settings import SETTINGS_URI

__all__ = ["LEFT_OUT", "Member"]

logger = logging.getLogger(__name__)
# The lines of an answer that say how to go on or back: the first one, in brackets, calls, and what is left out.
_NEXT_STEP = re.compile(r"(?m)\A\[.*\]$|^(?:undo: |then |… ).*")

# The process has these tools once, for all servers.
LEFT_OUT = ("list_changes", CALL_TOOLS, RUN_SCRIPT)


class Member:
    """A server, under the prefix `name`.

    Attributes:
        failed: why it cannot be used any more; None while it works.
        started: set once it runs or has failed.
    """

    def __init__(self, name: str, server: Assembled) -> None:
        self.name = name
        self.server = server
        self.failed: str | None = None
        self.started = anyio.Event()
        self._stop = anyio.Event()

    def add_prefix(self, name: str) -> str:
        """Return the name here of a tool or prompt of the server."""
        return f"{self.name}_{name}"

    def remove_prefix(self, name: str) -> str:
        """Return the name in the server of the tool or prompt that is called `name` here."""
        return name.removeprefix(f"{self.name}_")

    def tools(self) -> list[StrictTool]:
        """Return the server's current tools, as offered here."""
        return [
            self._tool(cast("StrictTool", tool))
            for name, tool in tool_table(self.server).items()
            if name not in LEFT_OUT
        ]

    def _tool(self, tool: StrictTool) -> StrictTool:
        consent = tool.consent
        update: dict[str, Any] = {
            "name": self.add_prefix(tool.name),
            "title": f"{self.server.title}: {tool.title}",
            "description": self.rename_tools(tool.description),
            "parameters": self._schema(tool.parameters),
            "consent": None if consent is None else _with_own_name(consent, tool.name),
            # For `--tools` and scopes: the server is a toolset, and its own begin with its name.
            "toolset": self.name,
            "toolsets": (self.name, *map(self.add_prefix, tool.toolsets)),
        }
        return tool.model_copy(update=update)

    def rename_tools(self, text: str) -> str:
        """Return `text` with the tool names in backticks replaced by their names here."""
        names: Collection[str] = {
            *tool_table(self.server),
            *self.server.withheld,
            *self.server.catalog.prompts,
        }.difference(LEFT_OUT)

        def rename(match: re.Match[str]) -> str:
            if match[1] not in names:
                return match[0]
            return f"`{self.add_prefix(match[1])}"

        return re.sub(r"`(\w+)", rename, text)

    def _schema(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return a schema whose descriptions have the names of the tools here."""
        renamed: dict[str, Any] = {}
        for key, value in schema.items():
            if key == "description" and isinstance(value, str):
                renamed[key] = self.rename_tools(value)
            elif isinstance(value, Mapping):
                renamed[key] = self._schema(cast("Mapping[str, Any]", value))
            else:
                renamed[key] = value
        return renamed

    def has(self, uri: str) -> bool:
        """Return whether `uri` is of a form that the server serves."""
        if uri.lower() == SETTINGS_URI:
            return False  # The process answers for all.
        skill = uri.startswith(f"skill://{self.server.name}/")
        return skill or self.server.catalog.missing(uri) is None

    def contain_failure(self, listing: Callable[[], Awaitable[Any]]) -> Callable[[], Awaitable[Any]]:
        """Wrap `listing` to be empty if the server fails to list, so that the other servers' entries stay."""

        async def list_or_nothing() -> Any:
            if self.failed:
                return []
            try:
                return await listing()
            except Exception as problem:  # noqa: BLE001 - whatever it is, the other servers have answered
                logger.warning("%s lists no resources now: %s", self.name, problem)
                return []

        return list_or_nothing

    async def handle(self, ctx: ServerRequestContext[Any], call_next: CallNext) -> HandlerResult:
        """Pass a request for this server alone through the server's own middleware."""
        if self.failed:
            raise MCPError(INTERNAL_ERROR, f"`{self.name}` does not work: {self.failed} The other servers do.")
        params = ctx.params
        inner = ctx
        if params is not None and isinstance(params.get("name"), str):
            inner = replace(ctx, params={**params, "name": self.remove_prefix(params["name"])})

        def leave(ctx: ServerRequestContext[Any]) -> Awaitable[HandlerResult]:
            return call_next(replace(ctx, params=params))

        try:
            result = await self.around(leave)(inner)
        except MCPError as problem:
            problem.error.message = self.rename_tools(problem.error.message)
            raise
        if not isinstance(result, dict):
            return result
        if result.get("isError") or "messages" in result:
            _replace_texts(result.get("content", ()), self.rename_tools)
            _replace_texts((message["content"] for message in result.get("messages", ())), self.rename_tools)
        elif self._can_change((inner.params or {}).get("name")):
            _replace_texts(result.get("content", ()), self._rename_in_report)
        return result

    def _can_change(self, name: object) -> bool:
        """Return whether the server has a tool of this name that can change something."""
        tool = tool_table(self.server).get(str(name))
        return isinstance(tool, StrictTool) and tool.effect != "read"

    def _rename_in_report(self, text: str) -> str:
        """Return what a change says with the names of tools replaced where it says how to go on; the rest is data."""
        return _NEXT_STEP.sub(lambda match: self.rename_tools(match[0]), text)

    def around(self, call_next: CallNext) -> CallNext:
        """Return `call_next`, wrapped in the server's own middleware."""
        for layer in reversed(self.server.own_middleware):
            call_next = cast("CallNext", partial(_call_layer, layer, call_next))
        return call_next

    async def live(self) -> None:
        """Run until `stop`; if one server ends, the others continue."""
        low = lowlevel(self.server)
        try:
            async with low.lifespan(low):
                self.started.set()
                await self._stop.wait()
        except Exception as problem:
            logger.exception("%s has ended; the other servers go on.", self.name)
            self.failed = self.failed or f"{first_exception(problem)}".rstrip(".") + "."
        finally:
            self.started.set()

    def stop(self) -> None:
        self._stop.set()


def _replace_texts(blocks: Iterable[Any], replace_text: Callable[[str], str]) -> None:
    """Replace the texts of content blocks."""
    for block in blocks:
        if isinstance(block, dict) and "text" in block:
            content = cast("dict[str, Any]", block)
            content["text"] = replace_text(str(content["text"]))


def _with_own_name(consent: ConfirmationCheck, name: str) -> ConfirmationCheck:
    return lambda _, values: consent(name, values)


def _call_layer(layer: Any, call_next: CallNext, ctx: ServerRequestContext[Any]) -> Awaitable[HandlerResult]:
    return layer(ctx, call_next)
