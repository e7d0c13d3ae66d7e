"""Lists, reads, prompts and completions: the handlers of everything but `tools/call`.

They are on the low-level server because `MCPServer`'s own handlers ignore list cursors, read exactly one content per
resource, and report a wrong prompt argument as a defect.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast, get_args, get_origin, get_type_hints

from mcp.server.context import ServerRequestContext
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.tools import Tool
from mcp.shared.exceptions import MCPError
from mcp.shared.uri_template import UriTemplate
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    BlobResourceContents,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    EmbeddedResource,
    GetPromptRequestParams,
    GetPromptResult,
    InputRequiredResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    Prompt,
    PromptArgument,
    PromptMessage,
    PromptReference,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    ResourceTemplateReference,
    TextContent,
    TextResourceContents,
)
from mcp_types import Tool as ToolEntry
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic.fields import FieldInfo

from mcp_batteries.errors import Invalid, NotFound, Problem, Unavailable, quote, well_formed
from mcp_batteries.limits import Cursor, in_thread
from mcp_batteries.protocol import RESOURCE_NOT_FOUND, VS_CODE
from mcp_batteries.sdk import lowlevel
from mcp_batteries.server.arguments import published
from mcp_batteries.server.declare import DeclaredPrompt, DeclaredResource
from mcp_batteries.server.results import Lasting
from mcp_batteries.server.views import View, listed

if TYPE_CHECKING:
    from mcp_batteries.server.skills import SkillSource

__all__ = ["PAGE", "Catalog", "entry", "page", "prompt_entry"]

logger = logging.getLogger(__name__)

# The number of entries on one page of a list, and the protocol's limit for completion values.
PAGE = 100

T = TypeVar("T")

_DRAFT_7 = "http://json-schema.org/draft-07/schema#"

# A prompt's parameter of this name takes the whole request, with the answers to what the client was asked before.
_REQUEST = "request"

_Method = Callable[..., Awaitable[Any]]


@dataclass(frozen=True)
class _Template:
    pattern: UriTemplate
    declared: DeclaredResource
    method: _Method


@dataclass
class Catalog:
    """Everything that the rooms declared, and the handlers that serve it."""

    tools: list[ToolEntry] = field(default_factory=list[ToolEntry])
    views: dict[str, View] = field(default_factory=dict[str, View])
    fixed: dict[str, tuple[DeclaredResource, _Method]] = field(default_factory=dict[str, Any])
    templates: list[_Template] = field(default_factory=list[_Template])
    listings: list[_Method] = field(default_factory=list[_Method])
    prompts: dict[str, tuple[Prompt, _Method]] = field(default_factory=dict[str, Any])
    completions: dict[tuple[str, str], _Method] = field(default_factory=dict[tuple[str, str], _Method])
    skills: Sequence[SkillSource] = ()
    shown: Collection[str] | None = None
    """The tools that `tools/list` has, by name; None for all."""

    def add_resource(self, declared: DeclaredResource, method: _Method) -> None:
        if UriTemplate.is_template(declared.uri):
            self.templates.append(_Template(UriTemplate.parse(declared.uri), declared, method))
        else:
            self.fixed[declared.uri] = (declared, method)

    def arguments(self, method: str, name: str) -> Collection[str] | None:
        """The arguments of the tool or prompt that `method` finds under `name`; None if there is none."""
        if method == "tools/call":
            return next((tool.input_schema.get("properties", {}) for tool in self.tools if tool.name == name), None)
        if method == "prompts/get" and name in self.prompts:
            return [argument.name for argument in self.prompts[name][0].arguments or ()]
        return None

    def install(self, server: MCPServer[Any]) -> None:
        """Install the handlers on the low-level server of `server`."""
        low = lowlevel(server)
        low.add_request_handler("tools/list", PaginatedRequestParams, self._list_tools)
        low.add_request_handler("resources/list", PaginatedRequestParams, self._list_resources)
        low.add_request_handler("resources/templates/list", PaginatedRequestParams, self._list_templates)
        low.add_request_handler("resources/read", ReadResourceRequestParams, self._read)
        low.add_request_handler("prompts/list", PaginatedRequestParams, self._list_prompts)
        low.add_request_handler("prompts/get", GetPromptRequestParams, self._prompt)
        low.add_request_handler("completion/complete", CompleteRequestParams, self._complete)

    async def _list_tools(self, ctx: ServerRequestContext[Any], params: PaginatedRequestParams) -> ListToolsResult:
        shown = [tool for tool in self.tools if self.shown is None or tool.name in self.shown]
        items, more = page("tools", listed(shown, ctx), params.cursor)
        return ListToolsResult(tools=_with_dialect(items, ctx), next_cursor=more)

    async def _list_resources(
        self, ctx: ServerRequestContext[Any], params: PaginatedRequestParams
    ) -> ListResourcesResult:
        entries = [_resource_entry(declared) for declared, _ in self.fixed.values() if not declared.last]
        for listing in self.listings:
            entries.extend(await _contained(listing()))
        entries += [_resource_entry(declared) for declared, _ in self.fixed.values() if declared.last]
        items, more = page("resources", entries, params.cursor)
        return ListResourcesResult(resources=items, next_cursor=more)

    async def _list_templates(
        self, ctx: ServerRequestContext[Any], params: PaginatedRequestParams
    ) -> ListResourceTemplatesResult:
        entries = [_template_entry(template.declared) for template in self.templates]
        items, more = page("templates", entries, params.cursor)
        return ListResourceTemplatesResult(resource_templates=items, next_cursor=more)

    async def _list_prompts(self, ctx: ServerRequestContext[Any], params: PaginatedRequestParams) -> ListPromptsResult:
        items, more = page("prompts", [prompt for prompt, _ in self.prompts.values()], params.cursor)
        return ListPromptsResult(prompts=items, next_cursor=more)

    async def _read(self, ctx: ServerRequestContext[Any], params: ReadResourceRequestParams) -> ReadResourceResult:
        uri = str(params.uri)
        for source in self.skills:
            if (skill := await source.contents(_one_spelling(uri))) is not None:
                return ReadResourceResult(contents=[skill], ttl_ms=int(source.seconds * 1000), cache_scope="public")
        try:
            if (found := self._reader(uri)) is None:
                nothing = self._nothing(uri)
                raise _to_mcp_error(nothing) from nothing
            method, values = found
            if "uri" in inspect.signature(method).parameters:
                values["uri"] = uri
            contents = await _contained(method(**values))
        except MCPError as error:
            data: dict[str, Any] = {**(error.error.data or {}), "uri": well_formed(uri)}
            legacy = ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS
            missing = isinstance(error.__cause__, NotFound)
            code = RESOURCE_NOT_FOUND if legacy and missing else error.error.code
            raise MCPError(code=code, message=error.error.message, data=data) from error
        ttl: dict[str, Any] = {}
        if isinstance(contents, Lasting):
            ttl = {"ttl_ms": int(contents.seconds * 1000), "cache_scope": "public" if contents.public else "private"}
            contents = contents.contents
        if isinstance(contents, TextResourceContents | BlobResourceContents):
            contents = [contents]
        return ReadResourceResult(contents=list(contents), **ttl)

    def missing(self, uri: str) -> NotFound | None:
        """An error that no resource has a URI of this form, with the valid forms; None if it may exist."""
        return None if self._reader(uri) is not None else self._nothing(uri)

    def _nothing(self, uri: str) -> NotFound:
        shapes = ", ".join(f"`{template.declared.uri}`" for template in self.templates)
        return NotFound(f"No resource has the URI {quote(uri)}.", f"URIs here look like {shapes}." if shapes else "")

    def _reader(self, uri: str) -> tuple[_Method, dict[str, Any]] | None:
        same = _one_spelling(uri)
        if same in self.views:
            view = self.views[same]
            return lambda: in_thread(lambda stop: view.contents()), {}
        if same in self.fixed:
            return self.fixed[same][1], {}
        path, mark, query = same.partition("?")
        asked = path.translate(_DELIMITERS) + mark + query
        for template in self.templates:
            values = template.pattern.match(asked)
            if values is not None:
                wanted = inspect.signature(template.method).parameters
                return template.method, {name: value for name, value in values.items() if name in wanted}
        return None

    async def _prompt(
        self, ctx: ServerRequestContext[Any], params: GetPromptRequestParams
    ) -> GetPromptResult | InputRequiredResult:
        if params.name not in self.prompts:
            names = ", ".join(f"`{name}`" for name in self.prompts)
            raise _to_mcp_error(NotFound(f"There is no prompt {quote(params.name)}.", f"There are: {names}."))
        prompt, method = self.prompts[params.name]
        given = params.arguments or {}
        arguments = {argument.name: bool(argument.required) for argument in prompt.arguments or []}
        wrong = [f"there is no argument {quote(name)}" for name in given if name not in arguments]
        wrong += [f"`{name}` is required" for name, required in arguments.items() if required and not given.get(name)]
        if wrong:
            valid = ", ".join(f"`{name}`" for name in arguments) or "none"
            raise _to_mcp_error(Invalid(f"Prompt `{prompt.name}`: {'; '.join(wrong)}.", f"Its arguments are: {valid}."))
        values: dict[str, Any] = {name: value for name, value in given.items() if value}
        if _REQUEST in inspect.signature(method).parameters:
            values[_REQUEST] = params
        result = await _contained(method(**values))
        if isinstance(result, InputRequiredResult):
            return result
        return GetPromptResult(description=prompt.description, messages=_messages(result))

    async def _complete(self, ctx: ServerRequestContext[Any], params: CompleteRequestParams) -> CompleteResult:
        match params.ref:
            case PromptReference(name=name) if name in self.prompts:
                kind = "prompt"
                known = {argument.name for argument in self.prompts[name][0].arguments or []}
            case ResourceTemplateReference(uri=uri) if any(uri == item.declared.uri for item in self.templates):
                kind = "resource"
                known = set(UriTemplate.parse(uri).variable_names)
            case _:
                raise MCPError(INVALID_PARAMS, "There is no such prompt or resource template to complete.")
        if params.argument.name not in known:
            valid = ", ".join(f"`{name}`" for name in sorted(known)) or "none"
            raise MCPError(
                INVALID_PARAMS,
                f"It has no argument {quote(params.argument.name)}. Its arguments are: {valid}.",
            )
        method = self.completions.get((kind, params.argument.name))
        others = dict(params.context.arguments or {}) if params.context else {}
        values: Sequence[str] = await _contained(method(params.argument.value, others)) if method else []
        shown = [well_formed(value) for value in values[:PAGE]]
        return CompleteResult(completion=Completion(values=shown, total=len(values), has_more=len(values) > PAGE))


def entry(tool: Tool) -> ToolEntry:
    """The `tools/list` entry of `tool`."""
    return ToolEntry(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=published(tool.parameters),
        output_schema=tool.output_schema,
        annotations=tool.annotations,
        _meta=tool.meta,
    )


def _with_dialect(tools: list[ToolEntry], ctx: ServerRequestContext[Any]) -> list[ToolEntry]:
    """`tools` with the name of their schemas' dialect, only for VS Code.

    Without the name, VS Code loads a meta-schema from json-schema.org, unless it is new enough to include it; if it
    cannot, it drops every tool. All versions include the one of this name.
    """
    client = ctx.session.client_params
    if client is None or not client.client_info.name.startswith(VS_CODE):
        return tools
    return [tool.model_copy(update={"input_schema": {"$schema": _DRAFT_7, **tool.input_schema}}) for tool in tools]


def prompt_entry(method: _Method, declared: DeclaredPrompt) -> Prompt:
    """The `prompts/list` entry of a marked method; its parameters are the arguments, which are all strings."""
    hints = get_type_hints(method, include_extras=True)
    arguments = [
        PromptArgument(
            name=name,
            description=_description(hints.get(name)),
            required=parameter.default is inspect.Parameter.empty,
        )
        for name, parameter in inspect.signature(method).parameters.items()
        if name != _REQUEST
    ]
    name = getattr(method, "__name__", "")
    return Prompt(name=name, title=declared.title, description=inspect.getdoc(method), arguments=arguments)


# These characters may stand unescaped in the path of a URI (RFC 3986, 3.3); a template ends a value at them.
_DELIMITERS = str.maketrans({",": "%2C", "&": "%26"})


def _one_spelling(uri: str) -> str:
    """`uri` with its scheme in lower case (RFC 3986, 6.2.2.1); `file:` URIs get an empty host (RFC 8089, 2)."""
    scheme, colon, rest = uri.partition(":")
    scheme = scheme.lower()
    if scheme == "file":
        if rest.lower().startswith("//localhost/"):
            rest = "//" + rest[len("//localhost") :]
        elif rest.startswith("/") and not rest.startswith("//"):
            rest = "//" + rest
    return f"{scheme}{colon}{rest}" if colon else uri


def _description(annotation: Any) -> str | None:
    if get_origin(annotation) is Annotated:
        for extra in get_args(annotation)[1:]:
            if isinstance(extra, FieldInfo):
                return extra.description
    return None


def _resource_entry(declared: DeclaredResource) -> Resource:
    return Resource(uri=declared.uri, name=declared.name, title=declared.title, mime_type=declared.mime_type)


def _template_entry(declared: DeclaredResource) -> ResourceTemplate:
    return ResourceTemplate(
        uri_template=declared.uri, name=declared.name, title=declared.title, mime_type=declared.mime_type
    )


def _messages(result: Any) -> list[PromptMessage]:
    items = cast("Sequence[Any]", result if isinstance(result, list | tuple) else [result])
    return [
        item if isinstance(item, PromptMessage) else PromptMessage(role="user", content=_content(item))
        for item in items
    ]


def _content(item: Any) -> Any:
    """The content of a message: a text, a resource's contents as an attachment, or a block unchanged."""
    if isinstance(item, str):
        return TextContent(type="text", text=well_formed(item))
    if isinstance(item, TextResourceContents | BlobResourceContents):
        return EmbeddedResource(type="resource", resource=item)
    return item


def page(kind: str, items: Sequence[T], cursor: str | None, scope: Any = None) -> tuple[list[T], str | None]:
    """The part of `items` that `cursor` asks for, and the cursor of the next.

    Raises:
        MCPError: the cursor belongs to another list.
    """
    start = 0
    if cursor is not None:
        try:
            start = int(Cursor.decode(kind, cursor, scope))
        except Invalid as problem:
            raise _to_mcp_error(problem) from problem
    more = Cursor.encode(kind, start + PAGE, scope) if start + PAGE < len(items) else None
    return list(items[start : start + PAGE]), more


async def _contained(work: Awaitable[Any]) -> Any:
    """Await `work`; a `Problem` becomes the JSON-RPC error with its text, with the problem as its cause.

    Any other exception is a defect, whose text the SDK would send to handshake-era clients.
    """
    try:
        return await work
    except Problem as problem:
        raise _to_mcp_error(problem) from problem
    except MCPError:
        raise
    except Exception as defect:
        logger.exception("a handler raised")
        raise MCPError(INTERNAL_ERROR, "The server failed on this request and has logged the reason.") from defect


def _to_mcp_error(problem: Problem) -> MCPError:
    code = INTERNAL_ERROR if isinstance(problem, Unavailable) else INVALID_PARAMS
    return MCPError(code, str(problem), dict(problem.fields))
