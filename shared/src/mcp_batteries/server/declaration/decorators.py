"""Decorators with which a room declares its offers; they only mark functions and methods.

A room is a module, whose marked functions become tools, or a small class, usually a frozen dataclass holding its policy
and engine, whose marked bound methods become tools, resources, prompts and completions. This happens when `assemble`
walks the rooms; nothing is registered at import, and what is marked stays an ordinary function or method that a test
can call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal, TypeVar

from mcp_types import BlobResourceContents, TextResourceContents, ToolAnnotations

from mcp_batteries.server.declaration.views import View

__all__ = [
    "WORST_HINTS",
    "Adapt",
    "Completes",
    "Declared",
    "DeclaredPrompt",
    "DeclaredResource",
    "DeclaredTool",
    "Effect",
    "ListsResources",
    "Messages",
    "OtherName",
    "annotations_of",
    "completes",
    "declarations",
    "lists_resources",
    "module_of",
    "prompt",
    "rename_arguments",
    "resource",
    "tool",
    "toolsets_of",
]

# read: changes nothing. write: adds things and loses nothing. destroy: can replace or remove what was there.
Effect = Literal["read", "write", "destroy"]

# Turns arguments as they were sent into those that are checked: models know other names from other servers.
Adapt = Callable[[Mapping[str, Any]], Mapping[str, Any]]

# The messages of a prompt to the model: texts, and contents of resources, which are attached.
Messages = list[str | TextResourceContents | BlobResourceContents]

# The hints of a tool that may call any other tool.
WORST_HINTS = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True)

F = TypeVar("F", bound=Callable[..., Any])
_MARK = "__mcp_batteries__"


@dataclass(frozen=True)
class OtherName:
    """A name of a tool that models know from another server, where it means one use of ours.

    Attributes:
        arguments: those that a call by this name has unless it says otherwise.
    """

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class DeclaredTool:
    """What `tool` says of a function; its parameters say what each attribute is."""

    title: str
    effect: Effect
    idempotent: bool
    open_world: bool
    seconds: float
    view: View | None = None
    app_only: bool = False
    toolsets: tuple[str, ...] = ()
    gates: tuple[str, ...] = ()
    adapt: Adapt | None = None
    work: str = "The call"
    long: bool = True
    also: tuple[str | OtherName, ...] = ()
    reads_in_dry_run: bool = False
    warrants_scripts: bool = True

    @property
    def other_names(self) -> Sequence[OtherName]:
        return [other if isinstance(other, OtherName) else OtherName(other, {}) for other in self.also]


@dataclass(frozen=True)
class DeclaredResource:
    """What `resource` says of a method."""

    uri: str
    name: str
    title: str
    mime_type: str | None
    last: bool = False


@dataclass(frozen=True)
class DeclaredPrompt:
    """What `prompt` says of a method."""

    title: str


@dataclass(frozen=True)
class Completes:
    """What `completes` says of a method."""

    argument: str
    of: Literal["prompt", "resource"]


@dataclass(frozen=True)
class ListsResources:
    """What `lists_resources` says of a method: only that it is one."""


Declared = DeclaredTool | DeclaredResource | DeclaredPrompt | Completes | ListsResources


def tool(
    title: str,
    effect: Effect = "read",
    *,
    idempotent: bool | None = None,
    open_world: bool = False,
    seconds: float = 60.0,
    view: View | None = None,
    app_only: bool = False,
    toolset: str | tuple[str, ...] = (),
    gate: str | tuple[str, ...] = (),
    adapt: Adapt | None = None,
    work: str = "The call",
    long: bool = True,
    also: tuple[str | OtherName, ...] = (),
    reads_in_dry_run: bool = False,
    warrants_scripts: bool = True,
) -> Callable[[F], F]:
    """Mark a tool; its name, docstring and annotations are what the model reads.

    It is an `async def` method, or a function of a module. Of a function, parameters before the `*` are injected by
    their type, those behind it are what callers send (see `trusted`), and a plain `def` runs in a thread.

    Args:
        title: for people, in sentence case.
        effect: decides all four hints and whether read-only mode hides the tool.
        idempotent: whether a repeated call changes nothing further; by default only for `read`.
        open_world: whether it reaches systems beyond this server's own data.
        seconds: the call's time limit; the work itself is stopped, not only abandoned.
        view: the page that shows its result in hosts that support views.
        app_only: only for views; the model never sees it.
        toolset: the groups of tools it belongs to, any of which offers it; by default its module.
        adapt: accepts names that models know from other servers; the published schema has only ours.
        gate: the switches that must all be on for it; their meaning is the server's policy.
        work: names what a plain `def` does in the message of its deadline, such as "The search".
        long: whether a plain `def` can take seconds; one that cannot has threads that no long call keeps busy.
        also: names that models know from other servers; a call by one works, and no list has it.
        reads_in_dry_run: whether a call with `dry_run` does nothing but read, so that `call_tools` may make it.
        warrants_scripts: whether scripts that make changes are offered for its sake; not for what is called once.
    """
    if idempotent is None:
        idempotent = effect == "read"
    toolsets = (toolset,) if isinstance(toolset, str) else toolset
    gates = (gate,) if isinstance(gate, str) else gate
    return _mark(
        DeclaredTool(
            title=title,
            effect=effect,
            idempotent=idempotent,
            open_world=open_world,
            seconds=seconds,
            view=view,
            app_only=app_only,
            toolsets=toolsets,
            gates=gates,
            adapt=adapt,
            work=work,
            long=long,
            also=also,
            reads_in_dry_run=reads_in_dry_run,
            warrants_scripts=warrants_scripts,
        )
    )


def rename_arguments(**names: str) -> Adapt:
    """Rename each argument with a foreign name to ours, unless ours is present too, or one that says another thing."""

    def adapt(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        renamed: dict[str, Any] = {}
        for name, value in arguments.items():
            our_name = names.get(name, name)
            if our_name in arguments or renamed.get(our_name, value) != value:
                our_name = name
            renamed[our_name] = value
        return renamed

    return adapt


def resource(uri: str, *, name: str, title: str, mime_type: str | None = None, last: bool = False) -> Callable[[F], F]:
    """Mark an `async def` method as the reader of a URI or an RFC 6570 template.

    The method takes the template's variables and, when it names a parameter `uri`, the URI as it was sent
    (percent-encoded bytes intact). It returns `TextResourceContents`/`BlobResourceContents`, one or a list, or a
    `results.CacheableContents` with them.

    Args:
        last: listed after all others.
    """
    return _mark(DeclaredResource(uri, name, title, mime_type, last))


def lists_resources(method: F) -> F:
    """Mark an `async def` method that returns the `Resource` entries known only at run time."""
    return _mark(ListsResources())(method)


def prompt(title: str) -> Callable[[F], F]:
    """Mark an `async def` method as a prompt: string arguments in, text or messages out.

    A prompt that asks the user first names a parameter `request` for the `GetPromptRequestParams`, and returns an
    `InputRequiredResult` until they hold the answers.
    """
    return _mark(DeclaredPrompt(title))


def completes(argument: str, *, of: Literal["prompt", "resource"]) -> Callable[[F], F]:
    """Mark `async def (typed, others) -> list[str]` as the completion of every argument of this name.

    Args:
        argument: the name of a prompt's argument or of a resource template's variable.
        of: which of the two.

    The method gets what the person has typed so far and the arguments already filled in.
    """
    return _mark(Completes(argument, of))


def annotations_of(declaration: DeclaredTool) -> ToolAnnotations:
    """Return the four MCP hints that follow from an effect."""
    return ToolAnnotations(
        read_only_hint=declaration.effect == "read",
        destructive_hint=declaration.effect == "destroy",
        idempotent_hint=declaration.idempotent,
        open_world_hint=declaration.open_world,
    )


def toolsets_of(declaration: DeclaredTool, method: Callable[..., Any]) -> tuple[str, ...]:
    """Return the toolsets of a marked bound method."""
    return declaration.toolsets or (module_of(method),)


def module_of(method: Callable[..., Any]) -> str:
    """Return the last name of the module where a method's class, or the function, is written."""
    owner = getattr(method, "__self__", None)
    module = method.__module__ if owner is None else type(owner).__module__
    return module.rpartition(".")[2]


def declarations(room: object) -> Iterator[tuple[Declared, Callable[..., Any]]]:
    """Yield what is marked in `room`, methods bound, in the order it is written; base classes first."""
    if isinstance(room, ModuleType):
        yield from _declared_functions(room)
        return
    yielded: set[str] = set()
    for cls in reversed(type(room).__mro__):
        for name, member in vars(cls).items():
            declaration = getattr(member, _MARK, None)
            if declaration is not None and name not in yielded:
                yielded.add(name)
                yield declaration, getattr(room, name)


def _declared_functions(module: ModuleType) -> Iterator[tuple[Declared, Callable[..., Any]]]:
    """Yield the marked functions that a module defines; those that it imports belong to another."""
    for member in vars(module).values():
        declaration = getattr(member, _MARK, None)
        if declaration is not None and member.__module__ == module.__name__:
            yield declaration, member


def _mark(declaration: Declared) -> Callable[[F], F]:
    def mark(method: F) -> F:
        setattr(method, _MARK, declaration)
        return method

    return mark
