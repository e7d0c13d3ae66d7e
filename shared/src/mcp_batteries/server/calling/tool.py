"""A declared method or function as a tool of the SDK: strict arguments, one clear result, and a time limit."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import cache
from typing import Any, cast, get_args, get_type_hints

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ResourceError, ToolError, UnexpectedToolError
from mcp.server.mcpserver.resolve import resolve_arguments
from mcp.server.mcpserver.tools import Tool
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import X_MCP_HEADER_KEY
from mcp_types import CallToolResult, InputRequiredResult
from pydantic import Field

from mcp_batteries.errors import Invalid, Problem, Unavailable, quote
from mcp_batteries.progress import ProgressReporter
from mcp_batteries.server.calling.arguments import check_arguments, slim_schema
from mcp_batteries.server.calling.bound_function import NEXT_AFTER_UNFINISHED_CHANGE, BoundTool, Planner
from mcp_batteries.server.calling.confirmation import Question, ask_for_confirmation
from mcp_batteries.server.calling.results import DataResult, to_call_result
from mcp_batteries.server.declaration.decorators import (
    Adapt,
    DeclaredTool,
    Effect,
    annotations_of,
    module_of,
    toolsets_of,
)
from mcp_batteries.server.declaration.fields import IN_HEADER
from mcp_batteries.server.declaration.views import client_shows_views, meta

# A line break that ends neither a paragraph nor the text before an item of a list.
_BREAK = re.compile(r"(?<=\S)\n(?![\s*#|>-]|\d+[.)] )")

_SENTENCE = re.compile(r"(?<=\.)(\s+)")

__all__ = ["ConfirmationCheck", "Explain", "StrictTool", "strict_tool", "without_names"]

# Takes a call's tool and checked arguments; returns what the person has to be asked first, or None. May refuse.
ConfirmationCheck = Callable[[str, Mapping[str, Any]], Awaitable[Question | None]]


# Returns what an exception means, such as a service's unforeseen answer; None if it is a defect.
Explain = Callable[[Exception], Problem | None]


# A call with nothing to narrow waits for something that does not answer, such as a pipe that nobody writes to.
_NEXT_AFTER_TIMEOUT = "Ask for less at once. If that takes as long, what it waits for does not answer: leave it."


class StrictTool(Tool):
    """The SDK's tool with our argument check, our messages, our result shapes and a time limit.

    Attributes:
        confirm: whether the person is asked before a call that replaces something.
        consent: the server's reason to ask before a call.
        planner: makes the plan that the person is asked about; the call gets it.
        mirrored: the arguments that clients repeat in headers.
        reads_in_dry_run: whether a call with `dry_run` does nothing but read.
        warrants_scripts: whether scripts that make changes are offered for its sake.
    """

    seconds: float = Field(default=60.0, exclude=True)
    confirm: bool = Field(default=False, exclude=True)
    effect: Effect = Field(default="destroy", exclude=True)
    toolset: str = Field(default="", exclude=True)
    toolsets: tuple[str, ...] = Field(default=(), exclude=True)
    consent: ConfirmationCheck | None = Field(default=None, exclude=True)
    planner: Planner | None = Field(default=None, exclude=True)
    adapt: Adapt | None = Field(default=None, exclude=True)
    explain: Explain | None = Field(default=None, exclude=True)
    mirrored: tuple[str, ...] = Field(default=(), exclude=True)
    reads_in_dry_run: bool = Field(default=False, exclude=True)
    warrants_scripts: bool = Field(default=True, exclude=True)

    @property
    def may_ask_without_confirm(self) -> bool:
        """Whether the person may be asked before a call though the operator did not set `--confirm`."""
        if self.planner is not None and not self.planner.only_with_confirm:
            return True
        return self.consent is not None

    async def run(self, arguments: dict[str, Any], context: Context[Any, Any], convert_result: bool = False) -> Any:
        """Check `arguments`, run the method, render its result.

        Raises:
            Problem: the method or the check refused; the text is for the caller.
            UnexpectedToolError: anything else; the caller learns only that the server failed.
        """
        sent_arguments = arguments
        if self.adapt is not None:
            arguments = dict(self.adapt(arguments))
        values = check_arguments(self.name, self.fn_metadata.arg_model, self.parameters, arguments)
        self._check_mirrored(sent_arguments, values)
        try:
            question = await self._ask_consent(arguments, values, context)
            if question is not None:
                return question
            async with ProgressReporter(context.report_progress, self.name, self.seconds):
                result = await self._call(values, context)
            # A result that asks the client for something is not the tool's own yet.
            if not convert_result or isinstance(result, InputRequiredResult):
                return result
            return to_call_result(result, views=self.meta is not None and client_shows_views(context))
        except TimeoutError:
            fix = _NEXT_AFTER_TIMEOUT if self.effect == "read" else NEXT_AFTER_UNFINISHED_CHANGE
            raise Unavailable(f"`{self.name}` was stopped after {self.seconds:g} s, its time limit.", fix) from None
        except (MCPError, ToolError, ResourceError):
            raise
        except (Exception, SystemExit) as defect:
            raise self._explain_defect(defect) from defect

    def _check_mirrored(self, sent_arguments: Mapping[str, Any], values: Mapping[str, Any]) -> None:
        """Refuse a call whose mirrored arguments were sent in another form than the one that is used.

        A proxy that decides who may use what sees only the header, which has the name and value as they were sent.
        """
        for name in self.mirrored:
            value = sent_arguments.get(name)
            if value is None:
                value = self.fn_metadata.arg_model.model_fields[name].default
            if values[name] != value:
                raise Invalid(f"`{name}` was sent in another form.", f"Send {name}={quote(values[name])} alone.")

    async def _ask_consent(
        self, arguments: Mapping[str, Any], values: dict[str, Any], context: Context[Any, Any]
    ) -> InputRequiredResult | None:
        """Ask the person for consent if the server or the operator requires it; None once the call may run.

        A plan that was made for the question is one of the values then.
        """
        reason = None
        if self.consent is not None or self.planner is not None:
            async with ProgressReporter(context.report_progress, self.name, self.seconds):
                reason = await self._find_question(values)
        replaces_something = values.get("overwrite", True) and not values.get("dry_run")
        if reason is None and not (self.confirm and replaces_something):
            return None
        return await ask_for_confirmation(self.name, arguments, context, reason)

    async def _find_question(self, values: dict[str, Any]) -> Question | None:
        """Return the server's own reason to ask, and add the plan of this call to its values."""
        question = None
        if self.consent is not None:
            question = await self.consent(self.name, values)
        if self.planner is not None:
            plan = await self.planner.make_plan(values)
            values[self.planner.parameter] = plan
            if plan.question is not None:
                question = Question(plan.question, self.planner.fix)
        return question

    async def _call(self, values: dict[str, Any], context: Context[Any, Any]) -> Any:
        """Call the method with the checked values, and with what the SDK provides."""
        if self.context_kwarg is not None:
            values[self.context_kwarg] = context
        if self.resolved_params:
            resolved = await resolve_arguments(self.resolved_params, self.resolver_plans, values, context)
            if isinstance(resolved, InputRequiredResult):
                return resolved
            values |= resolved
        return await self.fn(**values)

    def _explain_defect(self, defect: Exception | SystemExit) -> Exception:
        """Return the error for the caller: the problem that the exception stands for, or that the server failed."""
        if self.explain is not None and isinstance(defect, Exception):
            problem = self.explain(defect)
            if problem is not None:
                return problem
        return UnexpectedToolError(
            f"`{self.name}` failed inside the server, which logged the reason. Other calls still work."
        )


def strict_tool(
    method: Callable[..., Any] | BoundTool,
    declaration: DeclaredTool,
    *,
    confirm: bool = False,
    consent: ConfirmationCheck | None = None,
    explain: Explain | None = None,
    param_headers: bool = False,
) -> StrictTool:
    """Make the tool for a marked method or function; name, description and schema come from itself.

    Args:
        confirm: ask the user before a call that can replace or remove something.
        consent: checks each call of a tool that does more than read, before it runs.
        explain: turns an exception of the method into a `Problem`.
        param_headers: clients must repeat arguments marked with `fields.in_header` in headers.

    Raises:
        TypeError: the method is not `async def`, or promises a list or dict (20 to 35 times slower and twice
            the bytes of a `DataResult`).
    """
    seconds = declaration.seconds
    planner = None
    if isinstance(method, BoundTool):
        seconds = method.seconds
        planner = method.planner
        method = method.method
    name = getattr(method, "__name__", "")
    if not inspect.iscoroutinefunction(method):
        raise TypeError(f"tool `{name}` must be `async def`; run blocking work with `run_in_thread`")
    returns = get_type_hints(method, include_extras=False).get("return")
    if returns in (list, dict) or getattr(returns, "__origin__", None) is dict:
        raise TypeError(f"tool `{name}` must return text, a `DataResult` or content blocks")
    tool = cast(
        "StrictTool",
        StrictTool.from_function(  # the SDK annotates the base class but builds `cls`
            method,
            title=declaration.title,
            description=_join_lines(inspect.getdoc(method) or ""),
            annotations=annotations_of(declaration),
            meta=meta(declaration.view, declaration.app_only),
            structured_output=False,
        ),
    )
    tool.parameters = slim_schema(tool.parameters)
    tool.parameters.setdefault("additionalProperties", False)
    for argument, schema in tool.parameters["properties"].items():
        header = schema.pop(IN_HEADER, None)
        if header is not None and param_headers:
            schema[X_MCP_HEADER_KEY] = header
            tool.mirrored = (*tool.mirrored, argument)
    tool.fn_metadata.output_schema = _output_schema(returns)
    tool.seconds = seconds
    tool.planner = planner
    tool.confirm = confirm and declaration.effect == "destroy"
    tool.effect = declaration.effect
    tool.reads_in_dry_run = declaration.reads_in_dry_run
    tool.warrants_scripts = declaration.warrants_scripts
    tool.adapt = declaration.adapt
    tool.toolset = module_of(method)
    tool.toolsets = toolsets_of(declaration, method)
    if declaration.effect != "read":
        tool.consent = consent
    tool.explain = explain
    return tool


def _join_lines(text: str) -> str:
    """Return `text` with each paragraph as one line: line breaks of the source mean nothing to a reader."""
    return _BREAK.sub(" ", text)


def without_names(text: str, names: Collection[str]) -> str:
    """Return `text` without the sentences and brackets that name one of `names`; the first sentence stays."""
    if not any(f"`{name}`" in text for name in names):
        return text
    name_pattern = rf"`(?:{'|'.join(map(re.escape, names))})`"
    text = re.sub(rf" \([^()]*{name_pattern}[^()]*\)", "", text)
    first, *others = _SENTENCE.split(text)
    remaining = first
    # The split gives each space followed by the sentence behind it.
    for space, sentence in zip(others[::2], others[1::2], strict=True):
        if not re.search(name_pattern, sentence):
            remaining += space + sentence
    return remaining


@cache
def _output_schema(returns: Any) -> dict[str, Any] | None:
    """Return the schema of the structured results; None if a method promises nothing that a client could check."""
    promised = [item for item in get_args(returns) or (returns,) if item is not CallToolResult]
    # A union of shapes, or a result that may also be plain text, promises nothing.
    if len(promised) != 1:
        return None
    model = promised[0]
    if not isinstance(model, type) or not issubclass(model, DataResult):
        return None
    schema = slim_schema(model.model_json_schema(by_alias=True, mode="serialization"))
    # The docstring of the model is for readers of the code.
    schema.pop("description", None)
    return schema
