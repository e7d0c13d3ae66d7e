"""A tool's function, bound to the parts of a server that it needs: callers' values in, its result out."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from mcp.server.mcpserver import Context
from pydantic import BaseModel

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.concurrency.threads import run_in_thread
from mcp_batteries.observability.audit import describe_caller
from mcp_batteries.server.declaration.call_origin import CallOrigin
from mcp_batteries.server.declaration.decorators import DeclaredTool
from mcp_batteries.server.declaration.trusted import Consented, Default, FreeTextMark, Plan, Trusted

__all__ = ["NEXT_AFTER_UNFINISHED_CHANGE", "BoundTool", "Planner", "TimeLimits", "bind_tool"]

NEXT_AFTER_UNFINISHED_CHANGE = "It may be done in part: look at what it was to change before you call again."

T = TypeVar("T")

# Whose classes are plain values.
_PLAIN_MODULES = ("builtins", "datetime", "typing")
# Of as many functions the evaluated annotations stay: more than the tools and parsers of all servers together.
_MAX_READ_FUNCTIONS = 1024
# What hears no cancellation is left alone so many seconds after its deadline.
_GRACE_SECONDS = 100.0


@dataclass(frozen=True)
class TimeLimits:
    """Seconds after which blocking work is ended.

    Attributes:
        own_data: of work on the server's own data.
        open_world: of tools that reach other systems.
    """

    own_data: float
    open_world: float


@dataclass(frozen=True)
class Planner:
    """Makes the plan that the person is asked about.

    Attributes:
        parameter: the name under which the tool takes it.
        make_plan: takes the checked values of a call.
        fix: one sentence on what to do if nobody can be asked.
        only_with_confirm: whether the plan has a question only where the operator set `--confirm`.
    """

    parameter: str
    make_plan: Callable[[Mapping[str, Any]], Awaitable[Plan]]
    fix: str
    only_with_confirm: bool


@dataclass(frozen=True)
class BoundTool:
    """A tool's function, ready to be called.

    Attributes:
        method: an `async def` with the arguments that callers send, which also takes the plan of `planner`.
        seconds: the time limit of the whole call.
    """

    method: Callable[..., Awaitable[Any]]
    planner: Planner | None
    seconds: float


def bind_tool(
    function: Callable[..., Any],
    declaration: DeclaredTool,
    dependencies: Sequence[object],
    limits: TimeLimits | None = None,
) -> BoundTool:
    """Bind a tool's function to the parts of a server.

    Args:
        dependencies: what functions get by its type, and whose methods parse arguments.
        limits: of blocking work; without them a call has no deadline but the one that the tool declares.

    Raises:
        TypeError: the signature asks for what there is not, or disagrees with a parser.
    """
    bound = _BoundFunction(function, dependencies)
    seconds = declaration.seconds
    work_seconds = None
    planning_seconds = None
    if limits is not None:
        work_seconds = limits.open_world if declaration.open_world else limits.own_data
        planning_seconds = limits.own_data
        if not bound.is_async:
            seconds = work_seconds + _GRACE_SECONDS
    arguments: dict[str, _Argument] = {}
    planner = None
    if bound.consented is not None:
        parameter, marker = bound.consented
        planning = _BoundFunction(marker.make_plan, dependencies)
        if planning.context_parameter is not None:
            raise TypeError(f"`{planning.name}` makes a plan, which has no context of the SDK")
        arguments |= planning.arguments
        make_plan = _with_deadline(planning, planning_seconds, marker.work)
        planner = Planner(parameter, make_plan, marker.fix, marker.only_with_confirm)
    for name, argument in bound.arguments.items():
        if arguments.setdefault(name, argument) != argument:
            raise TypeError(f"`{bound.name}` and its plan take different `{name}`")
    changes = declaration.effect != "read"
    call = _with_deadline(bound, work_seconds, declaration.work, long=declaration.long, changes=changes)
    method = _publish(bound, arguments.values(), call)
    return BoundTool(method, planner, seconds)


class _BoundFunction:
    """A function with its dependencies.

    Attributes:
        consented: the parameter that takes the plan of a call, and its metadata.
        context_parameter: the parameter that takes the SDK's context of the call, or its origin, which is read from it.
        arguments: what callers send.
    """

    def __init__(self, function: Callable[..., Any], dependencies: Sequence[object]) -> None:
        self.function = function
        self.name = function.__name__
        self.is_async = inspect.iscoroutinefunction(function)
        self.consented: tuple[str, Consented] | None = None
        self.context_parameter: str | None = None
        self._takes_origin = False
        self.arguments: dict[str, _Argument] = {}
        self._injected: dict[str, object] = {}
        self._cancel_parameter: str | None = None
        hints = _read_hints(function)
        types = _read_types(function)
        for name, parameter in inspect.signature(function).parameters.items():
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
                self.arguments[name] = _read_argument(self.name, parameter, hints[name], types[name], dependencies)
            else:
                self._inject(name, hints.get(name), types.get(name), dependencies)

    def _inject(self, name: str, hint: Any, declared_type: Any, dependencies: Sequence[object]) -> None:
        """Find what a parameter before the `*` gets.

        Raises:
            TypeError: the server has nothing of its type, or several such things.
        """
        marker = _find_metadata(hint, Consented)
        if marker is not None:
            self.consented = name, marker
            return
        if declared_type is CancelToken:
            if self.is_async:
                raise TypeError(f"`{self.name}` is `async def`, so it is cancelled itself and needs no token")
            self._cancel_parameter = name
            return
        if declared_type is Context or get_origin(declared_type) is Context:
            if not self.is_async:
                raise TypeError(f"`{self.name}` has to be `async def` to use the SDK's context")
            self._take_context(name)
            return
        if declared_type is CallOrigin:
            self._take_context(name)
            self._takes_origin = True
            return
        matches = [item for item in dependencies if isinstance(declared_type, type) and isinstance(item, declared_type)]
        if len(matches) != 1:
            raise TypeError(
                f"`{self.name}`: the server has {len(matches)} dependencies that `{name}` can be; what callers send "
                "stands behind the `*`"
            )
        self._injected[name] = matches[0]

    def _take_context(self, name: str) -> None:
        if self.context_parameter is not None:
            raise TypeError(f"`{self.name}` can take either the SDK's context or the origin of its call, and once")
        self.context_parameter = name

    async def call(
        self, values: Mapping[str, Any], seconds: float | None, work: str, *, long: bool, changes: bool
    ) -> Any:
        """Parse the checked values and call the function; one that blocks on a thread.

        Args:
            seconds: after which blocking work is ended; None for when the call is.
            work: names it in the message of that.
            long: whether it can take seconds.
            changes: whether it changes something, so that the message tells of what may be done.
        """
        arguments = await self._function_arguments(values)
        if self.is_async:
            return await self.function(**arguments)

        def run(cancel: CancelToken) -> Any:
            if self._cancel_parameter is not None:
                arguments[self._cancel_parameter] = cancel
            return self.function(**arguments)

        if changes:
            return await run_in_thread(
                run, seconds=seconds, description=work, long=long, next_move=NEXT_AFTER_UNFINISHED_CHANGE
            )
        return await run_in_thread(run, seconds=seconds, description=work, long=long)

    async def _function_arguments(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return all that the function gets: dependencies, parsed values, its plan, its context or origin."""
        arguments = dict(self._injected)
        for name, argument in self.arguments.items():
            value = values[name]
            # Most are plain, and a coroutine for each would cost more than all checks of a quick call.
            if argument.parser is not None and value is not None:
                value = argument.parser(value)
                if inspect.isawaitable(value):
                    value = await value
            arguments[name] = value
        if self.consented is not None:
            parameter, _ = self.consented
            arguments[parameter] = values[parameter]
        if self.context_parameter is not None:
            context = values[self.context_parameter]
            if self._takes_origin:
                context = _read_origin(self.name, context)
            arguments[self.context_parameter] = context
        return arguments


def _read_origin(tool: str, context: Context) -> CallOrigin:
    """Return the call of a tool with its caller: the owner of the token, else the address."""
    who = describe_caller(context.request_context)
    for kind in ("identity", "address"):
        if kind in who:
            return CallOrigin(tool, f"{kind} {who[kind]}")
    return CallOrigin(tool, "")


def _with_deadline(
    bound: _BoundFunction, seconds: float | None, work: str, *, long: bool = True, changes: bool = False
) -> Callable[[Mapping[str, Any]], Awaitable[Any]]:
    async def call(values: Mapping[str, Any]) -> Any:
        return await bound.call(values, seconds, work, long=long, changes=changes)

    return call


def _publish(
    bound: _BoundFunction, arguments: Iterable[_Argument], call: Callable[[Mapping[str, Any]], Awaitable[Any]]
) -> Callable[..., Awaitable[Any]]:
    """Return `call` as a method whose signature has only what callers send, as they send it."""

    async def method(**values: Any) -> Any:
        return await call(values)

    returns = _read_types(bound.function).get("return", inspect.Signature.empty)
    parameters = [argument.parameter for argument in arguments]
    annotations = {"return": returns}
    if bound.context_parameter is not None:
        # The SDK finds the parameter of its context by the annotation, and publishes it to nobody.
        annotations[bound.context_parameter] = Context
        parameters.append(
            inspect.Parameter(bound.context_parameter, inspect.Parameter.KEYWORD_ONLY, annotation=Context)
        )
    published = cast("Any", method)
    published.__name__ = bound.name
    published.__module__ = bound.function.__module__
    published.__wrapped__ = bound.function
    published.__doc__ = bound.function.__doc__
    published.__signature__ = inspect.Signature(parameters, return_annotation=returns)
    published.__annotations__ = annotations
    return method


@dataclass(frozen=True)
class _Argument:
    """What a caller sends.

    Attributes:
        parameter: its name, type and default as they are published.
        parser: makes the trusted type of it; None for a plain value.
    """

    parameter: inspect.Parameter
    parser: Callable[[Any], Any] | None = None


def _read_argument(
    function: str, parameter: inspect.Parameter, hint: Any, declared_type: Any, dependencies: Sequence[object]
) -> _Argument:
    """Read what a function's signature says of an argument.

    Args:
        hint: its annotation with the metadata.
        declared_type: its type.

    Raises:
        TypeError: the parser makes something else, or the default is no text that it could parse.
    """
    marker = _find_metadata(hint, Trusted)
    if marker is None:
        _refuse_unparsed(function, parameter.name, hint)
        return _Argument(parameter.replace(annotation=hint))
    types = _read_types(marker.parse)
    if _without_none(types["return"]) != _without_none(declared_type):
        raise TypeError(
            f"`{function}`: {marker.parse.__qualname__} does not return what `{parameter.name}` is; one parser makes "
            "the whole value, also of a list"
        )
    parser = _bind_parser(marker.parse, dependencies)
    sent_type = types[next(iter(inspect.signature(parser).parameters))]
    sent_default = parameter.default
    match parameter.default:
        case Default(value):
            sent_default = value
        case inspect.Parameter.empty:
            pass
        case None if get_origin(hint) is not Union:
            # So the schema is the one of a plain optional argument with the same metadata.
            sent_type = sent_type | None
        case None:
            pass
        case _:
            raise TypeError(f"`{function}`: what `{parameter.name}` is if left out has to be parsed: `default(...)`")
    annotation = Annotated[(sent_type, *_metadata(hint))]
    return _Argument(parameter.replace(annotation=annotation, default=sent_default), parser)


@lru_cache(_MAX_READ_FUNCTIONS)
def _read_hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations of a function with their metadata; many arguments have the same parser."""
    return get_type_hints(function, include_extras=True)


@lru_cache(_MAX_READ_FUNCTIONS)
def _read_types(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations of a function without metadata."""
    return get_type_hints(function)


def _refuse_unparsed(function: str, name: str, hint: Any) -> None:
    """Refuse a type of which callers could send values that no parser has checked.

    Pydantic would make a dataclass or a named tuple of a JSON object, so a trusted type without its parser would be one
    in name only. A text that says nothing of itself may be the name of something, whose parser was forgotten.

    Raises:
        TypeError: there is one in a type.
    """
    if get_origin(hint) is Annotated:
        annotated, *metadata = get_args(hint)
        if not any(isinstance(item, FreeTextMark) for item in metadata):
            _refuse_unparsed(function, name, annotated)
        return
    if hint is str:
        raise TypeError(f"`{function}`: `{name}` is a text without a parser: `trusted(...)`, or `FreeText` for content")
    if get_origin(hint) is Literal:
        return
    for member in get_args(hint):
        _refuse_unparsed(function, name, member)
    if not isinstance(hint, type) or hint.__module__ in _PLAIN_MODULES:
        return
    if issubclass(hint, BaseModel):
        for model_field in hint.model_fields.values():
            # Pydantic has taken the metadata out of the annotation; None is there because `Annotated` needs some.
            _refuse_unparsed(function, name, Annotated[(model_field.annotation, None, *model_field.metadata)])
    elif not issubclass(hint, Enum):
        raise TypeError(f"`{function}`: `{name}` holds {hint.__qualname__}, which needs a parser: `trusted(...)`")


def _bind_parser(parse: Callable[..., Any], dependencies: Sequence[object]) -> Callable[[Any], Any]:
    """Return a parser as a function of what was sent; a method belongs to the dependency whose class has it."""
    for dependency in dependencies:
        if getattr(type(dependency), parse.__name__, None) is parse:
            return getattr(dependency, parse.__name__)
    if "self" in inspect.signature(parse).parameters:
        raise TypeError(f"the server has no dependency with the method {parse.__qualname__}")
    return parse


def _metadata(hint: Any) -> list[Any]:
    """Return the metadata of an annotation, that inside it first."""
    if get_origin(hint) is Annotated:
        return [*_metadata(get_args(hint)[0]), *hint.__metadata__]
    metadata: list[Any] = []
    for member in get_args(hint):
        metadata += _metadata(member)
    return metadata


def _find_metadata(hint: Any, kind: type[T]) -> T | None:
    for item in _metadata(hint):
        if isinstance(item, kind):
            return item
    return None


def _without_none(hint: Any) -> set[Any]:
    """Return the members of a union, other than None; a type alone is its only member."""
    members = {hint}
    if get_origin(hint) in (Union, UnionType):
        members = set(get_args(hint))
    return members - {NoneType}
