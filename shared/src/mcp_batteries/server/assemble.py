"""Builds a server from rooms: the one place where declarations become what is served."""

from __future__ import annotations

import functools
import logging
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from difflib import get_close_matches
from typing import Any, Protocol

from mcp.server.apps import Apps
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.context import ServerMiddleware, ServerRequestContext
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.tools import Tool
from mcp.server.request_state import RequestStateSecurity
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CallToolResult, InputRequiredResult, TextContent

from mcp_batteries.errors import Invalid, Problem, Unavailable, quote, reason
from mcp_batteries.observability.audit import Audit, whose
from mcp_batteries.sdk import logging_untouched, spare_spans, tool_table
from mcp_batteries.server.call_tools import CALL_TOOLS, CallTools
from mcp_batteries.server.catalog import Catalog, entry, prompt_entry
from mcp_batteries.server.choice import Choice, Missing
from mcp_batteries.server.declare import (
    WORST,
    Completes,
    DeclaredPrompt,
    DeclaredResource,
    DeclaredTool,
    ListsResources,
    declarations,
    toolsets_of,
)
from mcp_batteries.server.introduction import introduce
from mcp_batteries.server.list_changes import Following, change_tools
from mcp_batteries.server.origins import Origins
from mcp_batteries.server.own_settings import OwnSettings
from mcp_batteries.server.revisions import in_its_revision
from mcp_batteries.server.skills import SkillsExtension, SkillSource
from mcp_batteries.server.tool import Consent, Explain, StrictTool, strict_tool, without_names
from mcp_batteries.server.verifier import Verifier
from mcp_batteries.settings import Settings, open_text
from mcp_batteries.subscriptions.hub import Hub, Source

__all__ = ["Assembled", "ServerSettings", "assemble"]

logger = logging.getLogger(__name__)

_FIXED: tuple[CacheableMethod, ...] = ("server/discover", "tools/list", "prompts/list", "resources/templates/list")
"""What a server says of itself, as long as it runs."""
_LASTING = CacheHint(ttl_ms=3_600_000)
"""For this caller alone: what is listed depends on its rights."""


class ServerSettings(Protocol):
    """The part of a server's settings that `assemble` needs."""

    @property
    def read_only(self) -> bool: ...

    @property
    def confirm(self) -> bool: ...

    @property
    def tools(self) -> Sequence[str]: ...

    @property
    def exclude_tools(self) -> Sequence[str]: ...

    @property
    def audit_file(self) -> str | None: ...

    @property
    def max_streams(self) -> int: ...

    @property
    def telemetry(self) -> bool: ...

    @property
    def bus(self) -> str | None: ...

    @property
    def state_key_file(self) -> str | None: ...


_READING = ("list", "get", "read", "find", "search", "query", "show", "describe")
_MOST_NAMED = 40


class Assembled(MCPServer[Any]):
    """An `MCPServer` made from rooms, with the change hub that serves its subscriptions."""

    hub: Hub
    catalog: Catalog
    audit: Audit | None
    withheld: dict[str, str]
    """Of each declared tool that is not offered, how it could be."""
    choice: Choice
    verifier: Verifier | None
    around: Sequence[ServerMiddleware[Any]]
    """What the server itself has around its requests."""
    follows: Following
    tools_change: bool
    introduction: Mapping[str, Any]
    """What it says of itself beside name, title and version."""
    parts: Collection[str] = ()
    """What stands before the names of tools where several servers are one."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool by name.

        Raises:
            MCPError: There is no such tool; the specification calls that a protocol error (tools, "Error handling").
        """
        table = tool_table(self)
        if name not in table and name in self.withheld:
            raise MCPError(INVALID_PARAMS, f"There is no tool {quote(name)}: it is turned off. {self.withheld[name]}")
        if name not in table:
            raise MCPError(INVALID_PARAMS, f"There is no tool {quote(name)}. {self._instead_of(name, table)}")
        try:
            context = context or Context(mcp_server=self, subscriptions=self.hub.bus)
            return await table[name].run(arguments, context, convert_result=True)
        except Problem as problem:
            logger.info("Tool %r failed: %r", name, str(problem))
            return CallToolResult(
                content=[TextContent(type="text", text=str(problem))], is_error=True, _meta=dict(problem.fields)
            )

    def _instead_of(self, name: str, table: Mapping[str, Tool]) -> str:
        """Tools that the caller may have meant, or all tools if none is similar: a model cannot ask for the list."""
        found = self.close_to(name, [*table, *self.withheld])
        near = " or ".join(f"`{item}`{'' if item in table else ' (turned off)'}" for item in found)
        if near:
            return f"Did you mean {near}?"
        listed = [f"`{item}`" for item in table]
        return f"There are: {', '.join(listed[:_MOST_NAMED])}{', ...' * (len(listed) > _MOST_NAMED)}."

    def close_to(self, name: str, names: Sequence[str]) -> list[str]:
        """Those of `names` that are most like `name`; who wants to read is led to nothing that changes things."""
        if self._reads(name):
            names = [item for item in names if self._reads(item)]
        return get_close_matches(name.lower(), names, n=3)

    def _reads(self, name: str) -> bool:
        part, _, rest = name.lower().partition("_")
        return (rest if part in self.parts else name.lower()).startswith(_READING)

    async def offer(self, tools: Sequence[StrictTool], instead_of: Collection[str] = ()) -> None:
        """Offer those of `tools` that the operator chose, beside those of the rooms; tell clients.

        Args:
            instead_of: names of tools to withdraw.

        Raises:
            ValueError: another tool has one of the names.
        """
        table = tool_table(self)
        tools = [tool for tool in tools if not self.choice.closed(tool.name, tool.toolsets)]
        if taken := sorted(tool.name for tool in tools if tool.name in table and tool.name not in instead_of):
            raise ValueError(f"declared more than once: {', '.join(taken)}")
        for name in instead_of:
            table.pop(name, None)
        table.update({tool.name: tool for tool in tools})
        self.catalog.tools = [entry(tool) for tool in table.values()]
        await self.hub.tools_changed()


def assemble(
    name: str,
    settings: ServerSettings,
    *,
    rooms: Sequence[object],
    catalog: Catalog | None = None,
    tools: Sequence[StrictTool] = (),
    opens: Sequence[AbstractAsyncContextManager[Any]] = (),
    sources: Sequence[Source] = (),
    middleware: Sequence[ServerMiddleware[Any]] = (),
    consent: Consent | None = None,
    explains: Explain | None = None,
    withholds: Callable[[DeclaredTool], Missing] = lambda declared: Missing(),
    turned_off: Mapping[str, str] | None = None,
    special: Collection[str] = (),
    later: Collection[str] = (),
    follows: Following | None = None,
    tools_change: bool = False,
    skills: Sequence[SkillSource] = (),
    verifier: Verifier | None = None,
    title: str,
    version: str,
    instructions: str,
) -> Assembled:
    """Build the server that offers everything that `rooms` declare.

    Args:
        name: the command's name, as clients and logs know the server.
        settings: decides what is offered; read-only offers no tool that is not `effect="read"`.
        rooms: objects with marked methods; their order is the order of the lists.
        catalog: what to offer beside the rooms' declarations.
        tools: the same for tools, as far as the operator chose them.
        opens: entered, in order, before the first request and left, in reverse, after the last.
        sources: tell the hub when what resources show has changed.
        middleware: wraps every message, the first outermost, inside the audit log.
        consent: called before each call that does more than read; may refuse, or ask the person.
        explains: turns a method's exception that is not a defect into a `Problem`.
        withholds: what an unavailable tool lacks; nothing for an available one.
        turned_off: tools that none of `rooms` has, and how the operator can enable them.
        special: toolsets that are not offered unless `--tools` names them.
        later: toolsets whose tools appear while the server runs.
        follows: the texts of `list_changes` for this server.
        tools_change: whether tools come and go while the server runs.
        skills: their sources; this function adds them to the catalog.
        verifier: accepts a service's tokens from callers over HTTP.
        instructions: a few sentences for the model: what is served and how to begin.

    Raises:
        ValueError: two rooms offer the same name.
        Invalid: `--tools` or `--exclude-tools` names a tool or toolset that does not exist.
    """
    catalog, follows = catalog or Catalog(), follows or Following()
    catalog.skills = skills
    bus = None
    if settings.bus:
        from mcp_batteries.replicas import connect

        bus = connect(settings.bus, name)
        opens = [bus.running(), *opens]
    hub = Hub(sources, bus=bus, max_streams=settings.max_streams, missing=catalog.missing, whose=_caller)
    withheld: dict[str, str] = dict(turned_off or {})
    choice = Choice(settings.tools, settings.exclude_tools, special, named=[CALL_TOOLS])
    declares: dict[str, Collection[str]] = {tool.name: tool.toolsets for tool in tools}
    for tool in tools:
        if closed := choice.closed(tool.name, tool.toolsets):
            withheld[tool.name] = _how(closed.flags, closed.why)
    tools = [tool for tool in tools if tool.name not in withheld]

    param_headers = isinstance(settings, Settings) and settings.param_headers and settings.transport == "http"

    def declare(declared: DeclaredTool, method: Callable[..., Any], missing: Missing) -> None:
        name, toolsets = getattr(method, "__name__", ""), toolsets_of(declared, method)
        declares[name] = toolsets
        closed = choice.closed(name, toolsets) or Missing()
        flags, why = [*closed.flags, *missing.flags], f"{closed.why} {missing.why}".strip()
        if declared.effect != "read" and settings.read_only:
            withheld[name] = "The server was started with `--read-only`."
        elif flags or why:
            withheld[name] = _how(flags, why)
        else:
            if declared.view is not None:
                catalog.views[declared.view.uri] = declared.view
            tools.append(
                strict_tool(
                    method,
                    declared,
                    confirm=settings.confirm,
                    consent=consent,
                    explain=explains,
                    param_headers=param_headers,
                )
            )

    if isinstance(settings, Settings) and not (settings.allow_anonymous and settings.transport != "stdio"):
        rooms = [*rooms, OwnSettings(settings.parts())]
    for room in rooms:
        for declared, method in declarations(room):
            if explains is not None and not isinstance(declared, DeclaredTool):
                method = _explained(method, explains)
            match declared:
                case DeclaredTool():
                    declare(declared, method, withholds(declared))
                case DeclaredResource():
                    catalog.add_resource(declared, method)
                case DeclaredPrompt():
                    catalog.prompts[getattr(method, "__name__", "")] = (
                        prompt_entry(method, declared),
                        method,
                    )
                case Completes():
                    catalog.completions[declared.of, declared.argument] = method
                case ListsResources():
                    catalog.listings.append(method)
    several = CallTools(lambda: tool_table(server))
    shared: list[object] = [several]
    if sources:
        # No rule of a server's own leaves it out: what changes is every toolset's.
        shared.append(change_tools(hub, follows))
    for declared, method in (found for room in shared for found in declarations(room)):
        assert isinstance(declared, DeclaredTool)
        declare(declared, method, Missing())
    choice.check(declares, later)
    names = [tool.name for tool in tools]
    if twice := sorted({item for item in names if names.count(item) > 1}):
        raise ValueError(f"declared more than once: {', '.join(twice)}")
    if CALL_TOOLS in names and any(tool.effect != "read" for tool in tools):
        # Scopes, consent and `--read-only` check each tool that is called; hosts hear of the worst that may happen.
        tools[names.index(CALL_TOOLS)].annotations = WORST
    for tool in tools:
        # What it says of a tool that is turned off would send a model there.
        tool.description = without_names(tool.description, withheld)
    catalog.tools = [entry(tool) for tool in tools]

    if bus is not None:
        bus.on_gap, bus.is_needed = hub.look_again, lambda: hub.subscriptions > 0
    around = middleware
    if settings.confirm or any(tool.consent for tool in tools):
        # If nobody is ever asked, nothing has to be remembered.
        reads = [tool.name for tool in tools if tool.annotations and tool.annotations.read_only_hint]
        middleware = [*middleware, Origins(reads, _caller)]
    audit = Audit(settings.audit_file, catalog.arguments) if settings.audit_file else None
    if settings.telemetry:
        from mcp_batteries.observability.metrics import Metrics
        from mcp_batteries.observability.otel import Telemetry

        telemetry = Telemetry(name, version, lambda method, name: catalog.arguments(method, name) is not None)
        middleware = [Metrics(lambda: {tool.name for tool in catalog.tools}, [telemetry]), *middleware]
        opens = [telemetry.running(), *opens]
    with logging_untouched():
        server = Assembled(
            name,
            title=title,
            version=version,
            instructions=instructions,
            tools=list[Tool](tools),
            subscriptions=hub.bus,
            request_state_security=_state_security(settings.state_key_file),
            middleware=[
                in_its_revision,
                *([several.passing] if CALL_TOOLS in names else []),
                *([audit] if audit else []),
                *middleware,
            ],
            extensions=[*([Apps()] if catalog.views else []), *([SkillsExtension(skills)] if skills else [])],
            cache_hints={method: _LASTING for method in _FIXED if not (tools_change and method == "tools/list")},
            lifespan=_lifespan([*([audit] if audit else []), *opens], hub),
        )
    spare_spans(server)
    server.hub, server.catalog, server.audit = hub, catalog, audit
    server.withheld, server.choice, server.verifier = withheld, choice, verifier
    server.around, server.follows, server.tools_change = around, follows, tools_change
    catalog.install(server)
    hub.install(server)
    kind = type(settings)
    server.introduction = introduce(
        server, kind.__module__.removesuffix(".settings"), (kind.__doc__ or "").partition("\n")[0]
    )
    return server


def _explained(method: Callable[..., Any], explains: Explain) -> Callable[..., Any]:
    """Wraps `method` and raises the `Problem` that its exception stands for, if known; tools do it themselves."""

    @functools.wraps(method)
    async def explained(*args: Any, **kwargs: Any) -> Any:
        try:
            return await method(*args, **kwargs)
        except Problem:
            raise
        except Exception as defect:
            if (known := explains(defect)) is None:
                raise
            raise known from defect

    return explained


def _how(flags: Sequence[str], why: str) -> str:
    """How the operator could make an unavailable tool available."""
    how = f"The operator can start the server with `{' '.join(flags)}`." if flags else ""
    return f"{how} {why}".strip()


def _caller(ctx: ServerRequestContext[Any]) -> str | None:
    return "stdio" if ctx.request is None else whose(ctx) or None


def _state_security(path: str | None) -> RequestStateSecurity | None:
    """Protects the state that a client carries from a question to its answer, with the keys that all replicas share.

    Raises:
        Invalid: The file holds no usable keys.
        Unavailable: The file cannot be read.
    """
    if path is None:
        return None  # The SDK makes a key of this process's own.
    try:
        with open_text(path) as file:
            keys = [line.strip() for line in file if line.strip() and not line.startswith("#")]
        return RequestStateSecurity(keys=keys)
    except OSError as problem:
        raise Unavailable(
            f"The file of state keys cannot be read: {reason(problem)}.", "Make one with `openssl rand -hex 32`."
        ) from None
    except ValueError:
        raise Invalid(
            "The file of state keys holds one key per line, each of 32 bytes or more and none twice.",
            "Make a key with `openssl rand -hex 32`.",
        ) from None


def _lifespan(
    opens: Sequence[AbstractAsyncContextManager[Any]], hub: Hub
) -> Callable[[MCPServer[Any]], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(_: MCPServer[Any]) -> AsyncGenerator[None]:
        async with AsyncExitStack() as stack:
            for resource in opens:
                await stack.enter_async_context(resource)
            await stack.enter_async_context(hub.running())
            yield

    return lifespan
