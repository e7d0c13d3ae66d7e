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
from mcp_batteries.server.calling.call_params import CALL_TOOL, CALL_TOOLS, RUN_SCRIPT
from mcp_batteries.server.calling.tool import StrictTool, strict_tool
from mcp_batteries.server.catalog import Catalog, entry
from mcp_batteries.server.declaration.decorators import WORST_HINTS, DeclaredTool, declarations
from mcp_batteries.server.list_changes import ChangeFeedConfig
from mcp_batteries.server.skills import SkillSource
from mcp_batteries.subscriptions.hub import Source

__all__ = ["build"]

logger = logging.getLogger(__name__)


def build(settings: Settings) -> Assembled:
    """Build the servers that `settings` name; report and leave out those that cannot be built.

    Raises:
        Invalid: none is named.
        Problem: none of them can be built.
    """
    members, left_out = _build_members(settings)
    discovery = Discovery(members, lambda: tool_table(server), lambda name, names: server.close_to(name, names))
    server = _assemble(settings, members, _instructions(members, left_out, discover=settings.discover))
    server.tool_prefixes = frozenset(member.name for member in members)
    for member in members:
        member.server.hub.join(server.hub)
        for name, reason in member.server.withheld.items():
            if name not in LEFT_OUT:
                server.withheld[member.add_prefix(name)] = reason
    # Outermost: everything around a request is to see the tool that is meant.
    server.middleware.insert(0, discovery.unwrap_request)
    server.resolve_tool = discovery.resolve
    server.implied_arguments = discovery.imply_arguments
    if settings.discover:
        _offer_discovery(server, members, discovery)

    def refresh_tools(event: ServerEvent) -> None:
        if event == ToolsListChanged():
            _refresh(server, members)

    server.hub.bus.subscribe(refresh_tools)
    return server


def _assemble(settings: Settings, members: Sequence[Member], instructions: str) -> Assembled:
    """Assemble the server that offers what all members offer."""
    skills: list[SkillSource] = []
    tools: list[StrictTool] = []
    sources: list[Source] = []
    for member in members:
        skills.extend(member.server.catalog.skills)
        tools.extend(member.tools())
        sources.extend(member.server.hub.sources)
    return assemble(
        settings.COMMAND,
        settings,
        rooms=[],
        catalog=_catalog(members),
        skills=skills,
        tools=tools,
        opens=[_running(members)],
        sources=sources,
        middleware=[_MemberSwitch(members)],
        follows=ChangeFeedConfig(
            "resources of these servers",
            usual=lambda: _followed_by_default(members),
            open_world=any(member.server.change_feed.open_world for member in members),
        ),
        tools_change=any(member.server.tools_change for member in members),
        title=", ".join(member.server.title or member.name for member in members),
        version=version(settings.COMMAND),
        instructions=instructions,
    )


def _followed_by_default(members: Sequence[Member]) -> list[str]:
    uris: list[str] = []
    for member in members:
        uris.extend(member.server.change_feed.usual())
    return uris


def _offer_discovery(server: Assembled, members: Sequence[Member], discovery: Discovery) -> None:
    """List only the three tools of `discovery`, which find and call whatever `--tools` chooses."""
    effects: set[str] = set()
    toolsets: set[str] = set()
    for member in members:
        for tool in member.tools():
            effects.add(tool.effect)
            toolsets.update(tool.toolsets)
    table = tool_table(server)
    for declaration, method in declarations(discovery):
        tool = strict_tool(method, cast("DeclaredTool", declaration))
        # Who may call the tools of any toolset has to find them.
        tool.toolsets = tuple(sorted(toolsets))
        table[tool.name] = tool
    server.catalog.listed_tools = NAMES
    # Scopes and `--read-only` check the tool that is called; hosts learn of the worst that it may do.
    if effects - {"read"}:
        table[CALL_TOOL].annotations = WORST_HINTS
    _refresh(server, members)


def _build_members(settings: Settings) -> tuple[list[Member], dict[str, str]]:
    """Return the servers, and the reasons why others could not be built."""
    if not settings.mounted:
        raise Invalid("No server is named.", f"Name one: `{settings.COMMAND} {settings.EXAMPLES[0]}`.")
    members: list[Member] = []
    left_out: dict[str, Problem] = {}
    for member_settings in settings.mounted:
        name = member_settings.COMMAND.removeprefix("mcp-")
        try:
            built = program_of(member_settings.package()).build(member_settings)
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
    """Return what the servers offer besides tools; prompts have the names of this process."""
    catalog = Catalog()
    for member in members:
        own = member.server.catalog
        catalog.views.update(own.views)
        catalog.fixed.update(own.fixed)
        catalog.templates.extend(own.templates)
        catalog.listings.extend(map(member.contain_failure, own.listings))
        for name, (prompt, method) in own.prompts.items():
            update = {"name": member.add_prefix(name), "title": f"{member.server.title}: {prompt.title}"}
            catalog.prompts[member.add_prefix(name)] = (prompt.model_copy(update=update), method)
        for (owner, argument), method in own.completions.items():
            if owner in own.prompts:
                owner = member.add_prefix(owner)
            catalog.completions[owner, argument] = method
    return catalog


def _instructions(members: Sequence[Member], left_out: Mapping[str, str], *, discover: bool) -> str:
    failures = [f"{name}: does not work: {reason}" for name, reason in left_out.items()]
    if discover:
        names = ", ".join(f"{member.name} ({member.server.title})" for member in members)
        return "\n".join([f"Serves {names}. `find_tools`, then `describe_tools`, then `call_tool`.", *failures])
    texts = [f"{member.name}: {member.rename_tools(member.server.instructions or '')}" for member in members]
    return "\n".join([*failures, *texts])


def _refresh(server: Assembled, members: Sequence[Member]) -> None:
    """Offer the servers' current tools; those of the process itself stay, those that come first too."""
    table = tool_table(server)
    process_tools = {name: tool for name, tool in table.items() if name in (*NAMES, *LEFT_OUT)}
    first_tools = {name: tool for name, tool in process_tools.items() if name in (CALL_TOOLS, RUN_SCRIPT)}
    table.clear()
    table.update(first_tools)
    for member in members:
        for tool in member.tools():
            if not server.choice.find_closed_gate(tool.name, tool.toolsets):
                table[tool.name] = tool
    table.update(process_tools)
    server.catalog.tools = [entry(tool) for tool in table.values()]


@asynccontextmanager
async def _running(members: Sequence[Member]) -> AsyncGenerator[None]:
    """Run all members; the block begins when each has started or failed."""
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
class _MemberSwitch:
    """Middleware that passes each request through the middleware of the server that it is for."""

    members: Sequence[Member]

    async def __call__(self, ctx: ServerRequestContext[Any], call_next: CallNext) -> HandlerResult:
        member = self._find_member(ctx.method, ctx.params or {})
        if member is not None:
            return await member.handle(ctx, call_next)
        # Lists, streams and notices are everybody's.
        for each in reversed(self.members):
            call_next = each.around(call_next)
        return await call_next(ctx)

    def _find_member(self, method: str, params: Mapping[str, Any]) -> Member | None:
        """Return the server that a request names by a tool, a prompt or a URI; None if it is for all."""
        reference = params.get("ref")
        if method == "completion/complete" and isinstance(reference, Mapping):
            params = cast("Mapping[str, Any]", reference)
            by_name = "name" in params
        elif method in _BY_NAME:
            by_name = True
        elif method in _BY_URI:
            by_name = False
        else:
            return None
        for member in self.members:
            if by_name and str(params.get("name")).startswith(member.add_prefix("")):
                return member
            if not by_name and member.has(str(params.get("uri"))):
                return member
        return None
