"""Lists, reads, prompts and completions: the handlers of everything but `tools/call`.

They are on the low-level server because `MCPServer`'s own handlers ignore list cursors, read exactly one content per
resource, and report a wrong prompt argument as a defect.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple, cast, get_args, get_origin, get_type_hints

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

from mcp_batteries.concurrency.threads import run_in_thread
from mcp_batteries.errors import Invalid, NotFound, Problem, quote, well_formed
from mcp_batteries.protocol import RESOURCE_NOT_FOUND, VS_CODE
from mcp_batteries.sdk import lowlevel
from mcp_batteries.server.calling.arguments import publish_schema
from mcp_batteries.server.calling.results import CacheableContents
from mcp_batteries.server.declaration.decorators import DeclaredPrompt, DeclaredResource
from mcp_batteries.server.declaration.views import View, visible_tools
from mcp_batteries.server.list_pages import page_of
from mcp_batteries.server.protocol_errors import to_mcp_error
from mcp_batteries.server.skills import SkillSource

# The protocol allows so many completion values.
_MAX_COMPLETIONS = 100

__all__ = ["Catalog", "entry", "prompt_entry"]

logger = logging.getLogger(__name__)

_DRAFT_7 = "http://json-schema.org/draft-07/schema#"

# A prompt's parameter of this name takes the whole request, with the answers to what the client was asked before.
_REQUEST = "request"

_Method = Callable[..., Awaitable[Any]]


@dataclass(frozen=True)
class _Template:
    pattern: UriTemplate
    declaration: DeclaredResource
    method: _Method


class _Reader(NamedTuple):
    """A method that reads a resource, and the arguments that its URI contains."""

    method: _Method
    values: Mapping[str, Any] = {}


@dataclass
class Catalog:
    """Everything that the rooms declared, and the handlers that serve it.

    Attributes:
        fixed: resources with one URI.
        templates: resources with a URI template.
        listings: return the entries of resources that are known only at run time.
        completions: by kind (`prompt` or `resource`) and name of the argument.
        listed_tools: the names of the tools that `tools/list` has; None for all.
    """

    tools: list[ToolEntry] = field(default_factory=list[ToolEntry])
    views: dict[str, View] = field(default_factory=dict[str, View])
    fixed: dict[str, tuple[DeclaredResource, _Method]] = field(default_factory=dict[str, Any])
    templates: list[_Template] = field(default_factory=list[_Template])
    listings: list[_Method] = field(default_factory=list[_Method])
    prompts: dict[str, tuple[Prompt, _Method]] = field(default_factory=dict[str, Any])
    completions: dict[tuple[str, str], _Method] = field(default_factory=dict[tuple[str, str], _Method])
    skills: Sequence[SkillSource] = ()
    listed_tools: Collection[str] | None = None

    def add_resource(self, declaration: DeclaredResource, method: _Method) -> None:
        if UriTemplate.is_template(declaration.uri):
            self.templates.append(_Template(UriTemplate.parse(declaration.uri), declaration, method))
        else:
            self.fixed[declaration.uri] = (declaration, method)

    def arguments(self, method: str, name: str) -> Collection[str] | None:
        """Return the arguments of the tool or prompt that `method` finds under `name`; None if there is none."""
        if method == "tools/call":
            for tool in self.tools:
                if tool.name == name:
                    return tool.input_schema.get("properties", {})
        if method == "prompts/get" and name in self.prompts:
            prompt, _ = self.prompts[name]
            return [argument.name for argument in prompt.arguments or ()]
        return None

    def install(self, server: MCPServer[Any]) -> None:
        """Install the handlers on the low-level server of `server`."""
        low = lowlevel(server)
        low.add_request_handler("tools/list", PaginatedRequestParams, self._list_tools)
        low.add_request_handler("resources/list", PaginatedRequestParams, self._list_resources)
        low.add_request_handler("resources/templates/list", PaginatedRequestParams, self._list_templates)
        low.add_request_handler("resources/read", ReadResourceRequestParams, self._read)
        low.add_request_handler("prompts/list", PaginatedRequestParams, self._list_prompts)
        low.add_request_handler("prompts/get", GetPromptRequestParams, self._get_prompt)
        low.add_request_handler("completion/complete", CompleteRequestParams, self._complete)

    async def _list_tools(self, ctx: ServerRequestContext[Any], params: PaginatedRequestParams) -> ListToolsResult:
        tools = self.tools
        if self.listed_tools is not None:
            tools = [tool for tool in tools if tool.name in self.listed_tools]
        items, next_cursor = page_of("tools", visible_tools(tools, ctx), params.cursor)
        return ListToolsResult(tools=_with_dialect(items, ctx), next_cursor=next_cursor)

    async def _list_resources(
        self, ctx: ServerRequestContext[Any], params: PaginatedRequestParams
    ) -> ListResourcesResult:
        entries = [_resource_entry(declaration) for declaration, _ in self.fixed.values() if not declaration.last]
        for listing in self.listings:
            entries.extend(await _report_failures(listing()))
        entries += [_resource_entry(declaration) for declaration, _ in self.fixed.values() if declaration.last]
        items, next_cursor = page_of("resources", entries, params.cursor)
        return ListResourcesResult(resources=items, next_cursor=next_cursor)

    async def _list_templates(
        self, ctx: ServerRequestContext[Any], params: PaginatedRequestParams
    ) -> ListResourceTemplatesResult:
        entries = [_template_entry(template.declaration) for template in self.templates]
        items, next_cursor = page_of("templates", entries, params.cursor)
        return ListResourceTemplatesResult(resource_templates=items, next_cursor=next_cursor)

    async def _list_prompts(self, ctx: ServerRequestContext[Any], params: PaginatedRequestParams) -> ListPromptsResult:
        prompts = [prompt for prompt, _ in self.prompts.values()]
        items, next_cursor = page_of("prompts", prompts, params.cursor)
        return ListPromptsResult(prompts=items, next_cursor=next_cursor)

    async def _read(self, ctx: ServerRequestContext[Any], params: ReadResourceRequestParams) -> ReadResourceResult:
        uri = str(params.uri)
        for source in self.skills:
            skill = await source.contents(_normalize_uri(uri))
            if skill is not None:
                return ReadResourceResult(contents=[skill], ttl_ms=int(source.seconds * 1000), cache_scope="public")
        try:
            contents = await self._read_contents(uri)
        except MCPError as error:
            raise _with_uri(error, uri, ctx.protocol_version) from error
        ttl: dict[str, Any] = {}
        if isinstance(contents, CacheableContents):
            ttl["ttl_ms"] = int(contents.seconds * 1000)
            ttl["cache_scope"] = "public" if contents.public else "private"
            contents = contents.contents
        if isinstance(contents, TextResourceContents | BlobResourceContents):
            contents = [contents]
        return ReadResourceResult(contents=list(contents), **ttl)

    async def _read_contents(self, uri: str) -> Any:
        reader = self._find_reader(uri)
        if reader is None:
            problem = self._not_found(uri)
            raise to_mcp_error(problem) from problem
        values = reader.values
        if "uri" in inspect.signature(reader.method).parameters:
            values = {**values, "uri": uri}
        return await _report_failures(reader.method(**values))

    def missing(self, uri: str) -> NotFound | None:
        """Return an error that no resource has a URI of this form, with the valid forms; None if it may exist."""
        if self._find_reader(uri) is not None:
            return None
        return self._not_found(uri)

    def _not_found(self, uri: str) -> NotFound:
        fix = ""
        escaped = uri.replace("?", "%3F").replace("#", "%23")
        if escaped != uri and self._find_reader(escaped) is not None:
            fix = "Write `?` as %3F and `#` as %23 in names."
        elif self.templates:
            forms = ", ".join(f"`{template.declaration.uri}`" for template in self.templates)
            fix = f"URIs here look like {forms}."
        return NotFound(f"No resource has the URI {quote(uri)}.", fix)

    def _find_reader(self, uri: str) -> _Reader | None:
        """Return the method that reads the resource at `uri`, with the values of the template's variables."""
        normalized = _normalize_uri(uri)
        if normalized in self.views:
            view = self.views[normalized]
            return _Reader(lambda: run_in_thread(lambda stop: view.contents()))
        if normalized in self.fixed:
            _, method = self.fixed[normalized]
            return _Reader(method)
        path, mark, query = normalized.partition("?")
        escaped = path.translate(_DELIMITERS) + mark + query
        for template in self.templates:
            values = template.pattern.match(escaped)
            if values is not None:
                parameters = inspect.signature(template.method).parameters
                arguments = {name: value for name, value in values.items() if name in parameters}
                return _Reader(template.method, arguments)
        return None

    async def _get_prompt(
        self, ctx: ServerRequestContext[Any], params: GetPromptRequestParams
    ) -> GetPromptResult | InputRequiredResult:
        if params.name not in self.prompts:
            fix = "This server has none."
            if self.prompts:
                fix = f"There are: {', '.join(f'`{name}`' for name in self.prompts)}."
            raise to_mcp_error(NotFound(f"There is no prompt {quote(params.name)}.", fix))
        prompt, method = self.prompts[params.name]
        arguments = params.arguments or {}
        _check_prompt_arguments(prompt, arguments)
        values: dict[str, Any] = {name: value for name, value in arguments.items() if value}
        if _REQUEST in inspect.signature(method).parameters:
            values[_REQUEST] = params
        result = await _report_failures(method(**values))
        if isinstance(result, InputRequiredResult):
            return result
        return GetPromptResult(description=prompt.description, messages=_to_messages(result))

    async def _complete(self, ctx: ServerRequestContext[Any], params: CompleteRequestParams) -> CompleteResult:
        kind, names = self._find_completable(params.ref)
        argument = params.argument
        if argument.name not in names:
            valid = ", ".join(f"`{name}`" for name in sorted(names)) or "none"
            raise MCPError(INVALID_PARAMS, f"It has no argument {quote(argument.name)}. Its arguments are: {valid}.")
        values: Sequence[str] = []
        complete = self.completions.get((kind, argument.name))
        if complete is not None:
            others = dict(params.context.arguments or {}) if params.context else {}
            values = await _report_failures(complete(argument.value, others))
        return CompleteResult(
            completion=Completion(
                values=[well_formed(value) for value in values[:_MAX_COMPLETIONS]],
                total=len(values),
                has_more=len(values) > _MAX_COMPLETIONS,
            )
        )

    def _find_completable(self, reference: PromptReference | ResourceTemplateReference) -> tuple[str, Collection[str]]:
        """Return the kind of what a request completes, as in `completions`, and the names of its arguments."""
        match reference:
            case PromptReference(name=name) if name in self.prompts:
                prompt, _ = self.prompts[name]
                return "prompt", {argument.name for argument in prompt.arguments or []}
            case ResourceTemplateReference(uri=uri) if any(uri == item.declaration.uri for item in self.templates):
                return "resource", set(UriTemplate.parse(uri).variable_names)
            case _:
                raise MCPError(INVALID_PARAMS, "There is no such prompt or resource template to complete.")


def _with_uri(error: MCPError, uri: str, protocol_version: str) -> MCPError:
    """Return `error` with the URI in its data, and with the code that the client's revision has for it."""
    code = error.error.code
    if protocol_version not in MODERN_PROTOCOL_VERSIONS and isinstance(error.__cause__, NotFound):
        code = RESOURCE_NOT_FOUND
    data: dict[str, Any] = {**(error.error.data or {}), "uri": well_formed(uri)}
    return MCPError(code=code, message=error.error.message, data=data)


def _check_prompt_arguments(prompt: Prompt, arguments: Mapping[str, str]) -> None:
    """Check the names of a prompt's arguments, and that the required ones are there.

    Raises:
        MCPError: names all mistakes, and the valid arguments.
    """
    arguments_by_name = {argument.name: argument for argument in prompt.arguments or []}
    mistakes = [f"there is no argument {quote(name)}" for name in arguments if name not in arguments_by_name]
    for name, argument in arguments_by_name.items():
        if argument.required and not arguments.get(name):
            mistakes.append(f"`{name}` is required")
    if mistakes:
        valid = ", ".join(f"`{name}`" for name in arguments_by_name) or "none"
        raise to_mcp_error(Invalid(f"Prompt `{prompt.name}`: {'; '.join(mistakes)}.", f"Its arguments are: {valid}."))


def entry(tool: Tool) -> ToolEntry:
    """Return the `tools/list` entry of `tool`."""
    return ToolEntry(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=publish_schema(tool.parameters),
        output_schema=tool.output_schema,
        annotations=tool.annotations,
        _meta=tool.meta,
    )


def _with_dialect(tools: list[ToolEntry], ctx: ServerRequestContext[Any]) -> list[ToolEntry]:
    """Return `tools` with the name of their schemas' dialect, only for VS Code.

    Without the name, VS Code loads a meta-schema from json-schema.org, unless it is new enough to include it; if it
    cannot, it drops every tool. All versions include the one of this name.
    """
    client = ctx.session.client_params
    if client is None or not client.client_info.name.startswith(VS_CODE):
        return tools
    return [tool.model_copy(update={"input_schema": {"$schema": _DRAFT_7, **tool.input_schema}}) for tool in tools]


def prompt_entry(method: _Method, declaration: DeclaredPrompt) -> Prompt:
    """Return the `prompts/list` entry of a marked method; its parameters are the arguments, which are all strings."""
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
    return Prompt(name=name, title=declaration.title, description=inspect.getdoc(method), arguments=arguments)


# These characters may stand unescaped in the path of a URI (RFC 3986, 3.3); a template ends a value at them.
_DELIMITERS = str.maketrans({",": "%2C", "&": "%26"})


def _normalize_uri(uri: str) -> str:
    """Return `uri` with its scheme in lower case (RFC 3986, 6.2.2.1); `file:` URIs get an empty host (RFC 8089, 2)."""
    scheme, colon, location = uri.partition(":")
    if not colon:
        return uri
    scheme = scheme.lower()
    if scheme == "file":
        if location.lower().startswith("//localhost/"):
            location = "//" + location[len("//localhost") :]
        elif location.startswith("/") and not location.startswith("//"):
            location = "//" + location
    return f"{scheme}:{location}"


def _description(annotation: Any) -> str | None:
    if get_origin(annotation) is Annotated:
        for extra in get_args(annotation)[1:]:
            if isinstance(extra, FieldInfo):
                return extra.description
    return None


def _resource_entry(declaration: DeclaredResource) -> Resource:
    return Resource(
        uri=declaration.uri, name=declaration.name, title=declaration.title, mime_type=declaration.mime_type
    )


def _template_entry(declaration: DeclaredResource) -> ResourceTemplate:
    return ResourceTemplate(
        uri_template=declaration.uri, name=declaration.name, title=declaration.title, mime_type=declaration.mime_type
    )


def _to_messages(result: Any) -> list[PromptMessage]:
    items = cast("Sequence[Any]", result if isinstance(result, list | tuple) else [result])
    messages: list[PromptMessage] = []
    for item in items:
        if isinstance(item, PromptMessage):
            messages.append(item)
        else:
            messages.append(PromptMessage(role="user", content=_to_content(item)))
    return messages


def _to_content(item: Any) -> Any:
    """Return the content of a message: a text, a resource's contents as an attachment, or a block unchanged."""
    if isinstance(item, str):
        return TextContent(type="text", text=well_formed(item))
    if isinstance(item, TextResourceContents | BlobResourceContents):
        return EmbeddedResource(type="resource", resource=item)
    return item


async def _report_failures(work: Awaitable[Any]) -> Any:
    """Await `work`; a `Problem` becomes the JSON-RPC error with its text, with the problem as its cause.

    Any other exception is a defect, whose text the SDK would send to handshake-era clients.
    """
    try:
        return await work
    except Problem as problem:
        raise to_mcp_error(problem) from problem
    except MCPError:
        raise
    except Exception as defect:
        logger.exception("a handler raised")
        raise MCPError(INTERNAL_ERROR, "The server failed on this request and has logged the reason.") from defect
