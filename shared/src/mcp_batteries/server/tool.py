"""A declared method as a tool of the SDK: strict arguments, one clear result, and a time limit."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import cache
from typing import Any, cast, get_args, get_type_hints

import anyio
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ResourceError, ToolError, UnexpectedToolError
from mcp.server.mcpserver.resolve import resolve_arguments
from mcp.server.mcpserver.tools import Tool
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import X_MCP_HEADER_KEY
from mcp_types import CallToolResult, InputRequiredResult
from pydantic import Field

from mcp_batteries.errors import Invalid, Problem, Unavailable, quote
from mcp_batteries.progress import Reported
from mcp_batteries.server.arguments import check_arguments, slim
from mcp_batteries.server.confirm import Question, ask
from mcp_batteries.server.declare import Adapt, DeclaredTool, Effect, hints, module_of, toolsets_of
from mcp_batteries.server.fields import IN_HEADER
from mcp_batteries.server.results import DataResult, to_call_result
from mcp_batteries.server.views import draws, meta

# A line break that ends neither a paragraph nor the text before an item of a list.
_BREAK = re.compile(r"(?<=\S)\n(?![\s*#|>-]|\d+[.)] )")

_SENTENCE = re.compile(r"(?<=\.)(\s+)")

__all__ = ["Consent", "Explain", "StrictTool", "strict_tool", "without_names"]

# Takes a call's tool and checked arguments; returns what the person has to be asked first, or None. May refuse.
Consent = Callable[[str, Mapping[str, Any]], Awaitable[Question | None]]


# Returns what an exception means, such as a service's unforeseen answer; None if it is a defect.
Explain = Callable[[Exception], Problem | None]


class StrictTool(Tool):
    """The SDK's tool with our argument check, our messages, our result shapes and a time limit."""

    seconds: float = Field(default=60.0, exclude=True)
    confirm: bool = Field(default=False, exclude=True)
    effect: Effect = Field(default="destroy", exclude=True)
    toolset: str = Field(default="", exclude=True)
    toolsets: tuple[str, ...] = Field(default=(), exclude=True)
    consent: Consent | None = Field(default=None, exclude=True)
    adapt: Adapt | None = Field(default=None, exclude=True)
    explain: Explain | None = Field(default=None, exclude=True)
    mirrored: tuple[str, ...] = Field(default=(), exclude=True)

    async def run(self, arguments: dict[str, Any], context: Context[Any, Any], convert_result: bool = False) -> Any:
        """Check `arguments`, run the method, render its result.

        Raises:
            Problem: the method or the check refused; the text is for the caller.
            UnexpectedToolError: anything else; the caller learns only that the server failed.
        """
        sent = arguments
        if self.adapt is not None:
            arguments = dict(self.adapt(arguments))
        values = check_arguments(self.name, self.fn_metadata.arg_model, self.parameters, arguments)
        for name in self.mirrored:
            # A proxy that asks who may use what sees the header alone: that of this name, as it was sent.
            default = self.fn_metadata.arg_model.model_fields[name].default
            if values[name] != (default if sent.get(name) is None else sent[name]):
                raise Invalid(f"`{name}` was sent in another form.", f"Send {name}={quote(values[name])} alone.")
        replaces = values.get("overwrite", True) and not values.get("dry_run")
        try:
            reason = None
            if self.consent is not None:
                with anyio.fail_after(self.seconds):
                    reason = await self.consent(self.name, values)
            if reason is not None or (self.confirm and replaces):
                question = await ask(self.name, arguments, context, reason)
                if question is not None:
                    return question
            async with Reported(context.report_progress, self.name, self.seconds):
                if self.context_kwarg is not None:
                    values[self.context_kwarg] = context
                if self.resolved_params:
                    resolved = await resolve_arguments(self.resolved_params, self.resolver_plans, values, context)
                    if isinstance(resolved, InputRequiredResult):
                        return resolved
                    values |= resolved
                result = await self.fn(**values)
                # What asks the client for something is not a result yet.
                converts = convert_result and not isinstance(result, InputRequiredResult)
                return to_call_result(result, views=self.meta is not None and draws(context)) if converts else result
        except TimeoutError:
            raise Unavailable(
                f"`{self.name}` was stopped after {self.seconds:g} s, its time limit.",
                "Ask for less at once.",
            ) from None
        except (MCPError, ToolError, ResourceError):
            raise
        except (Exception, SystemExit) as defect:
            known = self.explain(defect) if self.explain is not None and isinstance(defect, Exception) else None
            if known is not None:
                raise known from defect
            raise UnexpectedToolError(
                f"`{self.name}` failed inside the server, which logged the reason. Other calls still work."
            ) from defect


def strict_tool(
    method: Callable[..., Any],
    declared: DeclaredTool,
    *,
    confirm: bool = False,
    consent: Consent | None = None,
    explain: Explain | None = None,
    param_headers: bool = False,
) -> StrictTool:
    """The tool for a marked bound method: name, description and schema come from the method itself.

    Args:
        confirm: ask the user before a call that can replace or remove something.
        consent: checks each call of a tool that does more than read, before it runs.
        explain: turns an exception of the method into a `Problem`.
        param_headers: clients must repeat arguments marked with `fields.in_header` in headers.

    Raises:
        TypeError: the method is not `async def`, or promises a list or dict (20 to 35 times slower and twice
            the bytes of a `DataResult`).
    """
    name = getattr(method, "__name__", "")
    if not inspect.iscoroutinefunction(method):
        raise TypeError(f"tool `{name}` must be `async def`; run blocking work with `in_thread`")
    returns = get_type_hints(method, include_extras=False).get("return")
    if returns in (list, dict) or getattr(returns, "__origin__", None) is dict:
        raise TypeError(f"tool `{name}` must return text, a `DataResult` or content blocks")
    tool = cast(
        "StrictTool",
        StrictTool.from_function(  # the SDK annotates the base class but builds `cls`
            method,
            title=declared.title,
            description=_described(inspect.getdoc(method) or ""),
            annotations=hints(declared),
            meta=meta(declared.view, declared.app_only),
            structured_output=False,
        ),
    )
    tool.parameters = slim(tool.parameters)
    tool.parameters.setdefault("additionalProperties", False)
    for name, schema in tool.parameters["properties"].items():
        if (header := schema.pop(IN_HEADER, None)) is not None and param_headers:
            schema[X_MCP_HEADER_KEY] = header
            tool.mirrored = (*tool.mirrored, name)
    tool.fn_metadata.output_schema = _output_schema(returns)
    tool.seconds = declared.seconds
    tool.confirm = confirm and declared.effect == "destroy"
    tool.effect = declared.effect
    tool.adapt = declared.adapt
    tool.toolset = module_of(method)
    tool.toolsets = toolsets_of(declared, method)
    tool.consent = None if declared.effect == "read" else consent
    tool.explain = explain
    return tool


def _described(text: str) -> str:
    """`text` with each paragraph as one line: line breaks of the source mean nothing to a reader."""
    return _BREAK.sub(" ", text)


def without_names(text: str, names: Collection[str]) -> str:
    """`text` without the sentences and brackets that name one of `names`; the first sentence stays."""
    if not any(f"`{name}`" in text for name in names):
        return text
    named = rf"`(?:{'|'.join(map(re.escape, names))})`"
    text = re.sub(rf" \([^()]*{named}[^()]*\)", "", text)
    first, *rest = _SENTENCE.split(text)
    # Each space with the sentence behind it.
    kept = [space + said for space, said in zip(rest[::2], rest[1::2], strict=True) if not re.search(named, said)]
    return first + "".join(kept)


@cache
def _output_schema(returns: Any) -> dict[str, Any] | None:
    candidates = get_args(returns) or (returns,)
    models = [item for item in candidates if isinstance(item, type) and issubclass(item, DataResult)]
    # A union of shapes, or a result that may also be plain text, promises nothing a client could check.
    if len(models) != 1 or len([item for item in candidates if item is not CallToolResult]) != 1:
        return None
    schema = slim(models[0].model_json_schema(by_alias=True, mode="serialization"))
    # What its docstring says is for whoever reads the code.
    schema.pop("description", None)
    return schema
