"""Collects the tools that a server offers while it is assembled, and why it does not offer the others."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from mcp_types import ToolAnnotations

from mcp_batteries.server.calling.bound_function import TimeLimits, bind_tool
from mcp_batteries.server.calling.call_params import CALL_TOOLS, RUN_SCRIPT
from mcp_batteries.server.calling.tool import ConfirmationCheck, Explain, StrictTool, strict_tool, without_names
from mcp_batteries.server.catalog import Catalog, entry
from mcp_batteries.server.declaration.decorators import DeclaredTool, declarations, toolsets_of
from mcp_batteries.server.tool_filter import ClosedGate, ToolFilter
from mcp_batteries.settings import Settings
from mcp_batteries.settings.server_settings import ServerSettings

__all__ = ["ToolOffer", "name_of", "uses_param_headers"]


@dataclass
class ToolOffer:
    """The tools that a server offers, while it is assembled.

    Attributes:
        choice: which tools the operator chose.
        tools: the tools that are offered.
        toolsets: the toolsets of every declared tool, offered or not.
        withheld: for each declared tool that is not offered, how it could be.
        own_names: the name of each declared tool, offered or not, by each other name that it answers to.
    """

    settings: ServerSettings
    choice: ToolFilter
    catalog: Catalog
    consent: ConfirmationCheck | None
    explains: Explain | None
    withheld: dict[str, str]
    dependencies: Sequence[object]
    time_limits: TimeLimits | None
    open_world_seconds: float
    tools: list[StrictTool] = field(default_factory=list[StrictTool])
    toolsets: dict[str, Collection[str]] = field(default_factory=dict[str, Collection[str]])
    own_names: dict[str, str] = field(default_factory=dict[str, str])
    _implied_arguments: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])

    def imply_arguments(self, name: Any) -> Mapping[str, Any]:
        """Return the arguments that another name of a tool implies."""
        if not isinstance(name, str):
            return {}
        return self._implied_arguments.get(name, {})

    def add_tools(self, tools: Sequence[StrictTool]) -> None:
        """Add finished tools, as far as the operator chose them."""
        for tool in tools:
            self.toolsets[tool.name] = tool.toolsets
            closed = self.choice.find_closed_gate(tool.name, tool.toolsets)
            if closed:
                self.withheld[tool.name] = _explain_unavailable(closed.flags, closed.reason)
            if tool.name not in self.withheld:
                self.tools.append(tool)

    def chosen_toolsets(self) -> frozenset[str]:
        """Return the toolsets of the tools declared so far that `--tools` names."""
        return self.choice.chosen_toolsets(chain.from_iterable(self.toolsets.values()))

    def add_room(self, room: object, missing: ClosedGate, toolsets: Collection[str] = ()) -> None:
        """Add the tools of a room that declares nothing else, unless something is `missing`.

        Args:
            toolsets: to which they belong beside their own.
        """
        for declaration, method in declarations(room):
            assert isinstance(declaration, DeclaredTool)
            self.declare(declaration, method, missing, toolsets)

    def withhold(self, name: str, reason: str) -> None:
        """Leave out a tool of which these settings have no need, though `--tools` or `--exclude-tools` may name it."""
        self.toolsets[name] = ()
        self.withheld.setdefault(name, reason)

    def declare(
        self,
        declaration: DeclaredTool,
        method: Callable[..., Any],
        missing: ClosedGate,
        more_toolsets: Collection[str] = (),
    ) -> None:
        """Add a declared tool, or note how it could be offered."""
        name = name_of(method)
        self._add_other_names(name, declaration)
        if name in self.withheld:
            return
        toolsets = (*toolsets_of(declaration, method), *more_toolsets)
        self.toolsets[name] = toolsets
        obstacle = self._find_obstacle(declaration, self.choice.find_closed_gate(name, toolsets), missing)
        if obstacle:
            self.withheld[name] = obstacle
            return
        if declaration.view is not None:
            self.catalog.views[declaration.view.uri] = declaration.view
        self.tools.append(self._make_tool(declaration, method))

    def _add_other_names(self, name: str, declaration: DeclaredTool) -> None:
        for other in declaration.other_names:
            if self.own_names.setdefault(other.name, name) != name:
                raise ValueError(f"{other.name} is another name of {self.own_names[other.name]} and of {name}")
            self._implied_arguments[other.name] = other.arguments

    def _find_obstacle(self, declaration: DeclaredTool, closed: ClosedGate | None, missing: ClosedGate) -> str:
        """Return why a tool is not offered and how it could be; empty if it is.

        Args:
            closed: what the operator's choice lacks for it.
            missing: what the server's own rules lack for it.
        """
        if declaration.effect != "read" and self.settings.read_only:
            return "The server was started with `--read-only`."
        closed = closed or ClosedGate()
        flags = [*closed.flags, *missing.flags]
        return _explain_unavailable(flags, f"{closed.reason} {missing.reason}".strip())

    def _make_tool(self, declaration: DeclaredTool, method: Callable[..., Any]) -> StrictTool:
        """Return the tool that calls `method`, with the dependencies of a function bound to it."""
        if declaration.open_world:
            declaration = replace(declaration, seconds=max(declaration.seconds, self.open_world_seconds))
        tool = method
        if inspect.isfunction(method):
            tool = bind_tool(method, declaration, self.dependencies, self.time_limits)
        return strict_tool(
            tool,
            declaration,
            confirm=self.settings.confirm,
            consent=self.consent,
            explain=self.explains,
            param_headers=uses_param_headers(self.settings),
        )

    def finish(self) -> None:
        """Settle what depends on all tools that are offered, and list them in the catalog.

        Raises:
            ValueError: two tools have the same name.
        """
        counts = Counter(tool.name for tool in self.tools)
        duplicates = sorted(name for name, count in counts.items() if count > 1)
        if duplicates:
            raise ValueError(f"declared more than once: {', '.join(duplicates)}")
        self._withhold_script_without_changes()
        # Among many tools they would be missed, and hosts cut long lists at their end.
        self.tools.sort(key=lambda tool: (tool.name != CALL_TOOLS, tool.name != RUN_SCRIPT))
        for tool in self.tools:
            if tool.name == CALL_TOOLS:
                self._settle_hints(tool, can_change=CALL_TOOLS in self.settings.tools)
            if tool.name == RUN_SCRIPT:
                self._settle_hints(tool, can_change=True)
                is_destructive = tool.annotations is not None and tool.annotations.destructive_hint
                tool.effect = "destroy" if is_destructive else "write"
            # A description that names a tool that is turned off would send a model there.
            tool.description = without_names(tool.description, self.withheld)
        self.catalog.tools = [entry(tool) for tool in self.tools]

    def _withhold_script_without_changes(self) -> None:
        """Leave out the tool for scripts that change things where no tool does that a script would call."""
        others = [tool for tool in self.tools if tool.name != RUN_SCRIPT]
        is_needed = any(tool.effect != "read" and tool.warrants_scripts for tool in others)
        if is_needed or len(others) == len(self.tools):
            return
        self.tools = others
        changing_tools = [tool.name for tool in others if tool.effect != "read"]
        if changing_tools:
            reason = f"Only {', '.join(f'`{name}`' for name in changing_tools)} changes something, and is called alone"
        else:
            reason = "No tool here changes something"
        self.withheld[RUN_SCRIPT] = f"{reason}; `{CALL_TOOLS}` runs scripts that read."

    def _settle_hints(self, batch: StrictTool, *, can_change: bool) -> None:
        """Give a tool that calls others the hints of those; scopes, consent and `--read-only` check each of these."""
        batch.confirm = False
        batch.consent = None
        others = [tool for tool in self.tools if tool.name not in (CALL_TOOLS, RUN_SCRIPT)]
        if not can_change:
            others = [tool for tool in others if tool.effect == "read"]
        hints = [tool.annotations for tool in others if tool.annotations]
        is_reading = all(tool.effect == "read" for tool in others)
        batch.annotations = ToolAnnotations(
            read_only_hint=is_reading,
            destructive_hint=any(hint.destructive_hint for hint in hints),
            idempotent_hint=is_reading,
            open_world_hint=any(hint.open_world_hint for hint in hints),
        )

    def has(self, name: str) -> bool:
        return any(tool.name == name for tool in self.tools)

    def reading_tools(self) -> list[str]:
        """Return the names of the tools that read something themselves."""
        tools = [tool for tool in self.tools if tool.name != CALL_TOOLS]
        return [tool.name for tool in tools if tool.annotations and tool.annotations.read_only_hint]


def name_of(method: Callable[..., Any]) -> str:
    """Return the name of what a room declares."""
    return getattr(method, "__name__", "")


def uses_param_headers(settings: ServerSettings) -> bool:
    """Return whether the headers of a request repeat arguments of its call."""
    return isinstance(settings, Settings) and settings.param_headers and settings.transport == "http"


def _explain_unavailable(flags: Sequence[str], reason: str) -> str:
    """Say how the operator could make an unavailable tool available."""
    if not flags:
        return reason
    return f"The operator can start the server with `{' '.join(flags)}`. {reason}".strip()
