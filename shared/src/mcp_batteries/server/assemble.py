"""Builds a server from rooms: the one place where declarations become what is served."""

from __future__ import annotations

import functools
import logging
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from mcp.server.apps import Apps
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.server.extension import Extension
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.tools import Tool
from mcp.server.request_state import RequestStateSecurity
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CallToolResult, InputRequiredResult, TextContent

from mcp_batteries.errors import Invalid, Problem, Unavailable, describe_os_error, quote
from mcp_batteries.observability.audit import Audit, caller_key
from mcp_batteries.sdk import lowlevel, skip_unrecorded_spans, tool_table, without_logging_setup
from mcp_batteries.server.calling.bound_function import TimeLimits
from mcp_batteries.server.calling.call_params import CALL_TOOLS, RUN_SCRIPT, rename_tools
from mcp_batteries.server.calling.call_tools import CallReadingTools, CallTools, RunScript, RunScriptAlone
from mcp_batteries.server.calling.inner_calls import let_calls_pass
from mcp_batteries.server.calling.read_history import ReadHistory
from mcp_batteries.server.calling.script_calls import ToolNames
from mcp_batteries.server.calling.tool import ConfirmationCheck, Explain, StrictTool, without_names
from mcp_batteries.server.catalog import Catalog, entry, prompt_entry
from mcp_batteries.server.declaration.decorators import (
    Completes,
    DeclaredPrompt,
    DeclaredResource,
    DeclaredTool,
    ListsResources,
    declarations,
)
from mcp_batteries.server.list_changes import ChangeFeedConfig, change_tools
from mcp_batteries.server.protocol_compat import adapt_to_revision
from mcp_batteries.server.server_info import add_server_info
from mcp_batteries.server.settings_resource import SettingsResource
from mcp_batteries.server.skills import SkillsExtension, SkillSource
from mcp_batteries.server.token_verifier import ServiceTokenVerifier
from mcp_batteries.server.tool_filter import ClosedGate, ToolFilter
from mcp_batteries.server.tool_offer import ToolOffer, name_of, uses_param_headers
from mcp_batteries.settings import Settings, open_text
from mcp_batteries.settings.server_settings import ServerSettings
from mcp_batteries.subscriptions.hub import Hub, Source

if TYPE_CHECKING:
    from mcp_batteries.observability.otel import Telemetry
    from mcp_batteries.replicas.bus import RemoteBus

__all__ = ["Assembled", "assemble"]

logger = logging.getLogger(__name__)

# The answers to these requests stay the same as long as the server runs.
_CACHEABLE_METHODS: tuple[CacheableMethod, ...] = (
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/templates/list",
)
# The hint is for one caller alone, because what is listed depends on the caller's rights.
_CACHE_HINT = CacheHint(ttl_ms=3_600_000)

# Tools whose names begin with one of these verbs only read.
_READING_VERBS = ("list", "get", "read", "find", "search", "query", "show", "describe")
_MAX_NAMED_TOOLS = 40


class Assembled(MCPServer[Any]):
    """An `MCPServer` made from rooms, with the change hub that serves its subscriptions.

    Attributes:
        hub: serves subscriptions.
        catalog: everything that the server offers, and the handlers that serve it.
        audit: the audit log, if there is one.
        withheld: for each declared tool that is not offered, how it could be.
        choice: which tools the operator chose.
        verifier: accepts a service's tokens from callers over HTTP.
        own_middleware: what the server itself has around its requests.
        change_feed: the texts of `list_changes`, and its defaults.
        tools_change: whether tools come and go while the server runs.
        introduction: what the server says of itself besides its name, title and version.
        tool_prefixes: what stands before the names of tools where several servers are one.
        resolve_tool: returns the own name of the tool that is called by this or another name; None if none is.
        implied_arguments: returns the arguments that such another name implies.
    """

    hub: Hub
    catalog: Catalog
    audit: Audit | None
    withheld: dict[str, str]
    choice: ToolFilter
    verifier: ServiceTokenVerifier | None
    own_middleware: Sequence[ServerMiddleware[Any]]
    change_feed: ChangeFeedConfig
    tools_change: bool
    introduction: Mapping[str, Any]
    tool_prefixes: Collection[str] = ()
    resolve_tool: Callable[[Any], str | None]
    implied_arguments: Callable[[Any], Mapping[str, Any]]

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
            raise MCPError(INVALID_PARAMS, f"There is no tool {quote(name)}. {self._suggest_tools(name, table)}")
        try:
            context = context or Context(mcp_server=self, subscriptions=self.hub.bus)
            return await table[name].run(arguments, context, convert_result=True)
        except Problem as problem:
            # Its words may quote the arguments, which no log holds.
            logger.info("Tool %r failed: %s", name, problem.fields["kind"])
            return CallToolResult(
                content=[TextContent(type="text", text=str(problem))], is_error=True, _meta=dict(problem.fields)
            )

    def _suggest_tools(self, name: str, table: Mapping[str, Tool]) -> str:
        """Name the tools that the caller may have meant, or all tools if none is similar.

        A model cannot ask for the list, so it has to be told.
        """
        suggestions: list[str] = []
        for similar in self.close_to(name, [*table, *self.withheld]):
            if similar in table:
                suggestions.append(f"`{similar}`")
            else:
                suggestions.append(f"`{similar}` (turned off)")
        if suggestions:
            return f"Did you mean {' or '.join(suggestions)}?"
        names = [f"`{item}`" for item in table]
        if len(names) > _MAX_NAMED_TOOLS:
            names = [*names[:_MAX_NAMED_TOOLS], "..."]
        return f"There are: {', '.join(names)}."

    def close_to(self, name: str, names: Sequence[str]) -> list[str]:
        """Return those of `names` that are most like `name`.

        A caller that wants to read is not led to a tool that changes things.
        """
        if self._is_reading_name(name):
            names = [item for item in names if self._is_reading_name(item)]
        return get_close_matches(name.lower(), names, n=3)

    def _is_reading_name(self, name: str) -> bool:
        lowered = name.lower()
        prefix, _, unprefixed = lowered.partition("_")
        if prefix in self.tool_prefixes:
            return unprefixed.startswith(_READING_VERBS)
        return lowered.startswith(_READING_VERBS)

    async def offer(self, tools: Sequence[StrictTool], instead_of: Collection[str] = (), reason: str = "") -> None:
        """Offer those of `tools` that the operator chose, besides those of the rooms, and notify clients.

        Args:
            instead_of: names of tools to withdraw.
            reason: why they are withdrawn and how they could be offered, for who calls one nevertheless.

        Raises:
            ValueError: another tool has one of the names.
        """
        table = tool_table(self)
        tools = [tool for tool in tools if not self.choice.find_closed_gate(tool.name, tool.toolsets)]
        duplicates = sorted(tool.name for tool in tools if tool.name in table and tool.name not in instead_of)
        if duplicates:
            raise ValueError(f"declared more than once: {', '.join(duplicates)}")
        for name in instead_of:
            table.pop(name, None)
            if reason:
                self.withheld[name] = reason
        table.update({tool.name: tool for tool in tools})
        self.catalog.tools = [entry(tool) for tool in table.values()]
        await self.hub.tools_changed()


def assemble(
    name: str,
    settings: ServerSettings,
    *,
    rooms: Sequence[object],
    dependencies: Sequence[object] = (),
    time_limits: TimeLimits | None = None,
    open_world_seconds: float = 0.0,
    catalog: Catalog | None = None,
    tools: Sequence[StrictTool] = (),
    opens: Sequence[AbstractAsyncContextManager[Any]] = (),
    sources: Sequence[Source] = (),
    middleware: Sequence[ServerMiddleware[Any]] = (),
    consent: ConfirmationCheck | None = None,
    explains: Explain | None = None,
    withholds: Callable[[DeclaredTool], ClosedGate] = lambda declaration: ClosedGate(),
    turned_off: Mapping[str, str] | None = None,
    special: Collection[str] = (),
    later: Collection[str] = (),
    follows: ChangeFeedConfig | None = None,
    tools_change: bool = False,
    skills: Sequence[SkillSource] = (),
    verifier: ServiceTokenVerifier | None = None,
    title: str,
    version: str,
    instructions: str,
) -> Assembled:
    """Build the server that offers everything that `rooms` declare.

    Args:
        name: the command's name, as clients and logs know the server.
        settings: decides what is offered; read-only offers no tool that is not `effect="read"`.
        rooms: modules with marked functions, objects with marked methods; their order is the order of the lists.
        dependencies: what functions get by its type, such as the policy, whose methods parse their arguments.
        time_limits: of functions that block; by default each declares its own.
        open_world_seconds: the least time limit of tools that reach other systems, which may declare a longer one.
        catalog: what to offer beside the rooms' declarations.
        tools: the same for tools, as far as the operator chose them.
        opens: entered, in order, before the first request and left, in reverse, after the last.
        sources: tell the hub when what resources show has changed.
        middleware: wraps every message, the first outermost, inside the audit log.
        consent: called before each call that does more than read; may refuse, or ask the person.
        explains: turns a method's exception that is not a defect into a `Problem`.
        withholds: what an unavailable tool lacks; nothing for an available one.
        turned_off: tools that are not offered, whether `rooms` have them or not, and how the operator can enable them.
        special: toolsets that are not offered unless `--tools` names them.
        later: toolsets whose tools appear while the server runs.
        follows: the texts of `list_changes` for this server.
        tools_change: whether tools come and go while the server runs.
        skills: their sources; this function adds them to the catalog.
        verifier: accepts a service's tokens from callers over HTTP.
        instructions: a few sentences for the model: what is served and how to begin.

    Raises:
        ValueError: two rooms offer the same name.
        TypeError: a function asks for what is not among the dependencies.
        UnknownTool: `--tools` or `--exclude-tools` names a tool or toolset that does not exist.
    """
    catalog = catalog or Catalog()
    catalog.skills = skills
    follows = follows or ChangeFeedConfig()
    layers = _Layers([*middleware], [*opens])
    hub = _make_hub(name, settings, sources, catalog, layers)
    offer = ToolOffer(
        settings,
        ToolFilter(settings.tools, settings.exclude_tools, special),
        catalog,
        consent,
        explains,
        withheld=dict(turned_off or {}),
        dependencies=dependencies,
        time_limits=time_limits,
        open_world_seconds=open_world_seconds,
    )
    offer.add_tools(tools)
    for room in [*rooms, *_settings_rooms(settings)]:
        _declare_room(room, offer, withholds)
    names = ToolNames(
        lambda name: server.resolve_tool(name),
        lambda name: server.implied_arguments(name),
        lambda name, names: server.close_to(name, names),
    )
    _add_call_tools(offer, settings, lambda: tool_table(server), names)
    if sources:
        # No rule of the server leaves this tool out, because what changes belongs to every toolset.
        offer.add_room(change_tools(hub, follows), ClosedGate())
    offer.choice.check(offer.toolsets, later)
    offer.finish()
    audit = _add_layers(layers, name, version, settings, offer)

    def resolve_tool(name: Any) -> str | None:
        return _resolve(name, tool_table(server), offer.own_names)

    with without_logging_setup():
        server = Assembled(
            name,
            title=title,
            version=version,
            instructions=without_names(instructions, offer.withheld),
            tools=list[Tool](offer.tools),
            subscriptions=hub.bus,
            request_state_security=_read_state_keys(settings.state_key_file),
            middleware=[adapt_to_revision, _use_own_names(resolve_tool, offer.imply_arguments), *layers.middleware],
            extensions=_choose_extensions(catalog),
            cache_hints=_choose_cache_hints(tools_change=tools_change),
            lifespan=_make_lifespan(layers.opens, hub),
        )
    skip_unrecorded_spans(server)
    server.hub = hub
    server.catalog = catalog
    server.audit = audit
    server.withheld = offer.withheld
    server.choice = offer.choice
    server.resolve_tool = resolve_tool
    server.implied_arguments = offer.imply_arguments
    _find_schemas_by_every_name(server)
    server.verifier = verifier
    server.own_middleware = middleware
    server.change_feed = follows
    server.tools_change = tools_change
    catalog.install(server)
    hub.install(server)
    server.introduction = _introduce(server, settings)
    return server


@dataclass
class _Layers:
    """What stands around the handlers of a server.

    Attributes:
        middleware: wraps every message, the first outermost.
        opens: entered, in order, before the first request and left, in reverse, after the last.
    """

    middleware: list[ServerMiddleware[Any]]
    opens: list[AbstractAsyncContextManager[Any]]

    def wrap(self, middleware: ServerMiddleware[Any]) -> None:
        """Put `middleware` around all others."""
        self.middleware.insert(0, middleware)

    def open_first(self, resource: AbstractAsyncContextManager[Any]) -> None:
        """Enter `resource` before all others."""
        self.opens.insert(0, resource)


def _make_hub(name: str, settings: ServerSettings, sources: Sequence[Source], catalog: Catalog, layers: _Layers) -> Hub:
    """Return the hub that tells of changes, joined with those of other replicas if the settings name a bus."""
    bus = None
    if settings.bus:
        bus = _connect_bus(settings.bus, name)
        layers.open_first(bus.running())
    hub = Hub(sources, bus=bus, max_streams=settings.max_streams, missing=catalog.missing, caller_key=_describe_caller)
    if bus is not None:
        bus.on_gap = hub.resync
        bus.is_needed = lambda: hub.subscriptions > 0
    return hub


def _add_call_tools(
    offer: ToolOffer, settings: ServerSettings, table: Callable[[], Mapping[str, Tool]], names: ToolNames
) -> None:
    """Offer the tools that make several calls in one: one that reads, of every toolset that does, and one for changes.

    Whoever names the first lets it make changes too, so that it does the work of both.
    """
    all_calls = CallTools(table, _describe_caller, names)
    reading_calls = CallReadingTools(table, _describe_caller, names, all_calls.running, all_calls.running_of_callers)
    toolsets = offer.chosen_toolsets()
    reading_toolsets = toolsets if offer.reading_tools() else ()
    if CALL_TOOLS in settings.tools:
        offer.add_room(all_calls, ClosedGate(), reading_toolsets)
        offer.withhold(RUN_SCRIPT, f"`{CALL_TOOLS}` runs all scripts here.")
        return
    offer.add_room(reading_calls, _close_to_hidden_calls(settings, CALL_TOOLS), reading_toolsets)
    if offer.has(CALL_TOOLS):
        scripts = RunScript(all_calls)
    else:
        scripts = RunScriptAlone(all_calls)
    offer.add_room(scripts, _close_to_hidden_calls(settings, RUN_SCRIPT), toolsets)


def _add_layers(layers: _Layers, name: str, version: str, settings: ServerSettings, offer: ToolOffer) -> Audit | None:
    """Add what the settings and the offered tools need around every message; return the audit log, if there is one."""
    if settings.confirm or any(tool.may_ask_without_confirm for tool in offer.tools):
        # If nobody is ever asked, nothing has to be remembered.
        layers.middleware.append(ReadHistory(offer.reading_tools(), _describe_caller))
    if settings.telemetry:
        telemetry = _make_telemetry(name, version, offer.catalog)
        layers.wrap(_make_metrics(offer.catalog, telemetry))
        layers.open_first(telemetry.running())
    audit = None
    if settings.audit_file:
        audit = Audit(settings.audit_file, offer.catalog.arguments)
        layers.wrap(audit)
        layers.open_first(audit)
    if offer.has(CALL_TOOLS) or offer.has(RUN_SCRIPT):
        layers.wrap(let_calls_pass)
    return audit


def _resolve(name: Any, table: Collection[str], own_names: Mapping[str, str]) -> str | None:
    """Return `name` if a tool of `table` has it, else the own name of the declared tool that answers to it."""
    if not isinstance(name, str):
        return None
    if name in table:
        return name
    if name not in own_names:
        return None
    logger.debug("Tool %r was called by another name: %r", own_names[name], name)
    return own_names[name]


def _use_own_names(
    resolve_tool: Callable[[Any], str | None], imply_arguments: Callable[[Any], Mapping[str, Any]]
) -> ServerMiddleware[Any]:
    """Return the middleware that turns a call by another name of a tool into one by its own name.

    Everything inside of it judges calls by these.
    """

    async def use_own_names(ctx: ServerRequestContext[Any], call_next: CallNext) -> HandlerResult:
        if ctx.method == "tools/call" and ctx.params is not None:
            params = rename_tools(ctx.params, resolve_tool, imply_arguments)
            if params is not ctx.params:
                ctx = replace(ctx, params=params)
        return await call_next(ctx)

    return use_own_names


def _declare_room(room: object, offer: ToolOffer, withholds: Callable[[DeclaredTool], ClosedGate]) -> None:
    """Add everything that a room declares to the offered tools and to the catalog."""
    catalog = offer.catalog
    for declaration, method in declarations(room):
        if isinstance(declaration, DeclaredTool):
            offer.declare(declaration, method, withholds(declaration))
            continue
        if offer.explains is not None:
            method = _explain_exceptions(method, offer.explains)
        match declaration:
            case DeclaredResource():
                catalog.add_resource(declaration, method)
            case DeclaredPrompt():
                catalog.prompts[name_of(method)] = (prompt_entry(method, declaration), method)
            case Completes():
                catalog.completions[declaration.of, declaration.argument] = method
            case ListsResources():
                catalog.listings.append(method)


def _close_to_hidden_calls(settings: ServerSettings, name: str) -> ClosedGate:
    """Return why several calls are not made in one: a proxy that refuses calls by their headers sees none of them."""
    if not uses_param_headers(settings) or name in settings.tools:
        return ClosedGate()
    return ClosedGate(reason="With `--param-headers` each call is sent alone, unless `--tools` names this tool.")


def _settings_rooms(settings: ServerSettings) -> Sequence[object]:
    """Return the room that shows the settings, unless anybody can read it over the network."""
    if not isinstance(settings, Settings):
        return ()
    if settings.allow_anonymous and settings.transport != "stdio":
        return ()
    return [SettingsResource(settings.parts())]


def _connect_bus(address: str, name: str) -> RemoteBus:
    from mcp_batteries.replicas import connect

    return connect(address, name)


def _make_telemetry(name: str, version: str, catalog: Catalog) -> Telemetry:
    from mcp_batteries.observability.otel import Telemetry

    return Telemetry(name, version, lambda method, name: catalog.arguments(method, name) is not None)


def _make_metrics(catalog: Catalog, telemetry: Telemetry) -> ServerMiddleware[Any]:
    from mcp_batteries.observability.metrics import Metrics

    return Metrics(lambda: {tool.name for tool in catalog.tools}, [telemetry])


def _choose_extensions(catalog: Catalog) -> list[Extension]:
    extensions: list[Extension] = []
    if catalog.views:
        extensions.append(Apps())
    if catalog.skills:
        extensions.append(SkillsExtension(catalog.skills))
    return extensions


def _choose_cache_hints(*, tools_change: bool) -> dict[CacheableMethod, CacheHint]:
    hints = dict.fromkeys(_CACHEABLE_METHODS, _CACHE_HINT)
    if tools_change:
        del hints["tools/list"]
    return hints


def _find_schemas_by_every_name(server: Assembled) -> None:
    """Let headers be compared with the arguments of a call by whatever name it calls the tool."""
    low = lowlevel(server)
    find_by_own_name = low.get_tool_input_schema
    assert find_by_own_name is not None

    def find_schema(name: str) -> Mapping[str, Any] | None:
        return find_by_own_name(server.resolve_tool(name) or name)

    low.get_tool_input_schema = find_schema


def _introduce(server: Assembled, settings: ServerSettings) -> dict[str, Any]:
    """Make the server introduce itself with the first line of its settings' docstring, which says what it serves."""
    kind = type(settings)
    package = kind.__module__.removesuffix(".settings")
    description = (kind.__doc__ or "").partition("\n")[0]
    return add_server_info(server, package, description)


def _explain_exceptions(method: Callable[..., Any], explains: Explain) -> Callable[..., Any]:
    """Wrap `method` to raise the `Problem` that its exception stands for, if known; tools do this themselves."""

    @functools.wraps(method)
    async def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return await method(*args, **kwargs)
        except Problem:
            raise
        except Exception as defect:
            problem = explains(defect)
            if problem is None:
                raise
            raise problem from defect

    return call


def _describe_caller(ctx: ServerRequestContext[Any]) -> str | None:
    """Return the caller of a message; None if callers cannot be told apart."""
    if ctx.request is None:
        return "stdio"
    return caller_key(ctx) or None


def _read_state_keys(path: str | None) -> RequestStateSecurity | None:
    """Read the keys that protect the state which a client carries from a question to its answer.

    All replicas share these keys.

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
            f"The file of state keys cannot be read: {describe_os_error(problem)}.",
            "Make one with `openssl rand -hex 32`.",
        ) from None
    except ValueError:
        raise Invalid(
            "The file of state keys holds one key per line, each of 32 bytes or more and none twice.",
            "Make a key with `openssl rand -hex 32`.",
        ) from None


def _make_lifespan(
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
