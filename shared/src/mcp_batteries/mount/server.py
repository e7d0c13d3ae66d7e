"""The servers of one process as one: lists are merged, and every request reaches its server."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, cast

import anyio
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.subscriptions import ServerEvent, ToolsListChanged

from mcp_batteries.errors import Invalid, Problem, Refused
from mcp_batteries.mount.discovery import NAMES, Discovery
from mcp_batteries.mount.member import LEFT_OUT, Member
from mcp_batteries.mount.settings import Settings
from mcp_batteries.program import program_of
from mcp_batteries.sdk import tool_table
from mcp_batteries.server.assemble import Assembled, assemble
from mcp_batteries.server.call_tools import CALL_TOOL
from mcp_batteries.server.catalog import Catalog, entry
from mcp_batteries.server.declare import WORST, DeclaredTool, declarations
from mcp_batteries.server.list_changes import Following
from mcp_batteries.server.tool import strict_tool

__all__ = ["build"]

logger = logging.getLogger(__name__)


def build(settings: Settings) -> Assembled:
    """Build the servers that `settings` name; report and leave out those that cannot be built.

    Raises:
        Invalid: none is named.
        Problem: none of them can be built.
    """
    members, left_out = _members(settings)
    discovery = Discovery(members, lambda: tool_table(server), lambda name, names: server.close_to(name, names))
    server = assemble(
        settings.COMMAND,
        settings,
        rooms=[],
        catalog=_catalog(members),
        skills=[source for member in members for source in member.server.catalog.skills],
        tools=[tool for member in members for tool in member.tools()],
        opens=[_living(members)],
        sources=[source for member in members for source in member.server.hub.sources],
        middleware=[_Switch(members)],
        follows=Following(
            "resources of these servers",
            usual=lambda: [uri for member in members for uri in member.server.follows.usual()],
            open_world=any(member.server.follows.open_world for member in members),
        ),
        tools_change=any(member.server.tools_change for member in members),
        title=", ".join(member.server.title or member.name for member in members),
        version=version(settings.COMMAND),
        instructions=_instructions(members, left_out, discover=settings.discover),
    )
    server.tool_prefixes = frozenset(member.name for member in members)
    for member in members:
        member.server.hub.join(server.hub)
        own = member.server.withheld.items()
        server.withheld |= {member.named(name): why for name, why in own if name not in LEFT_OUT}
    # Outermost: everything around a request is to see the tool that is meant.
    server.middleware.insert(0, discovery.unwrapped)
    if settings.discover:
        # Whatever `--tools` chooses is found and called by these.
        three = [strict_tool(method, cast("DeclaredTool", declared)) for declared, method in declarations(discovery)]
        tool_table(server).update({tool.name: tool for tool in three})
        server.catalog.shown = NAMES
        # Scopes and `--read-only` check the tool that is called; hosts hear of the worst that it may do.
        if any(tool.effect != "read" for member in members for tool in member.tools()):
            tool_table(server)[CALL_TOOL].annotations = WORST
        _refresh(server, members)

    def changed(event: ServerEvent) -> None:
        if event == ToolsListChanged():
            _refresh(server, members)

    server.hub.bus.subscribe(changed)
    return server


def _members(settings: Settings) -> tuple[list[Member], dict[str, str]]:
    """The servers, and the reasons why others could not be built."""
    if not settings.mounted:
        raise Invalid("No server is named.", f"Name one: `{settings.COMMAND} {settings.EXAMPLES[0]}`.")
    members: list[Member] = []
    left_out: dict[str, Problem] = {}
    for part in settings.mounted:
        name = part.COMMAND.removeprefix("mcp-")
        try:
            built = program_of(part.package()).build(part)
            if built.verifier is not None:
                # Whoever a service's token lets in would be let in to the other servers too.
                raise Refused(f"`{name}` with callers' own tokens shares no process.", "Start it alone.")
            members.append(Member(name, built))
        except Problem as problem:
            logger.error("%s is left out: %s", name, problem)
            left_out[name] = problem
    if not members:
        raise next(iter(left_out.values()))
    return members, {name: str(problem) for name, problem in left_out.items()}


def _catalog(members: Sequence[Member]) -> Catalog:
    """What the servers offer besides tools; prompts have their names here."""
    catalog = Catalog()
    for member in members:
        own = member.server.catalog
        catalog.views.update(own.views)
        catalog.fixed.update(own.fixed)
        catalog.templates.extend(own.templates)
        catalog.listings.extend(map(member.contained, own.listings))
        for name, (prompt, method) in own.prompts.items():
            here = {"name": member.named(name), "title": f"{member.server.title}: {prompt.title}"}
            catalog.prompts[member.named(name)] = prompt.model_copy(update=here), method
        for (of, argument), method in own.completions.items():
            catalog.completions[member.named(of) if of in own.prompts else of, argument] = method
    return catalog


def _instructions(members: Sequence[Member], left_out: Mapping[str, str], *, discover: bool) -> str:
    parts = [f"{name}: does not work: {why}" for name, why in left_out.items()]
    if discover:
        names = ", ".join(f"{member.name} ({member.server.title})" for member in members)
        parts.insert(0, f"Serves {names}. `find_tools`, then `describe_tools`, then `call_tool`.")
    else:
        parts += [f"{member.name}: {member.renamed(member.server.instructions or '')}" for member in members]
    return "\n".join(parts)


def _refresh(server: Assembled, members: Sequence[Member]) -> None:
    """Offer the servers' current tools."""
    table = tool_table(server)
    tools = [tool for member in members for tool in member.tools()]
    kept = {name: tool for name, tool in table.items() if name in (*NAMES, *LEFT_OUT)}
    table.clear()
    table.update({tool.name: tool for tool in tools if not server.choice.closed(tool.name, tool.toolsets)} | kept)
    server.catalog.tools = [entry(tool) for tool in table.values()]


@asynccontextmanager
async def _living(members: Sequence[Member]) -> AsyncGenerator[None]:
    async with anyio.create_task_group() as tasks:
        for member in members:
            tasks.start_soon(member.live)
        for member in members:
            await member.started.wait()
        try:
            yield
        finally:
            for member in members:
                member.stop()


_BY_NAME = {"tools/call", "prompts/get"}
_BY_URI = {"resources/read", "resources/subscribe", "resources/unsubscribe", "resources/directory/read", "skills/get"}


@dataclass(frozen=True)
class _Switch:
    """Middleware that passes each request through the middleware of the server that it is for."""

    members: Sequence[Member]

    async def __call__(self, ctx: ServerRequestContext[Any], call_next: CallNext) -> HandlerResult:
        if (member := self._member(ctx.method, ctx.params or {})) is not None:
            return await member.handle(ctx, call_next)
        # Lists, streams and notices are everybody's.
        for each in reversed(self.members):
            call_next = each.around(call_next)
        return await call_next(ctx)

    def _member(self, method: str, params: Mapping[str, Any]) -> Member | None:
        ref = params.get("ref")
        if method == "completion/complete" and isinstance(ref, Mapping):
            params = cast("Mapping[str, Any]", ref)
            by_name = "name" in ref
        else:
            by_name = method in _BY_NAME
            if not by_name and method not in _BY_URI:
                return None
        said = str(params.get("name" if by_name else "uri"))
        if by_name:
            return next((member for member in self.members if said.startswith(member.named(""))), None)
        return next((member for member in self.members if member.has(said)), None)
