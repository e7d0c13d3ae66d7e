"""Which of the declared tools are offered, according to `--tools` and `--exclude-tools`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from mcp_batteries.errors import Invalid, quote

__all__ = ["ALL", "DEFAULT", "ClosedGate", "ToolFilter", "UnknownTool"]

ALL = "all"
DEFAULT = "default"


class UnknownTool(Invalid):
    """`--tools` or `--exclude-tools` names what the server does not have."""


class ClosedGate(NamedTuple):
    """What an unavailable tool lacks.

    Attributes:
        flags: the operator's switches that would make it available.
        reason: a sentence with any other reason and what to do.
    """

    flags: Sequence[str] = ()
    reason: str = ""


class ToolFilter:
    """The operator's choice among a server's tools.

    Args:
        tools: names of tools or toolsets to offer; empty means `default`.
        excluded: names to leave out, also of what `tools` names.
        special: the toolsets that `default` does not include.
    """

    def __init__(self, tools: Sequence[str], excluded: Sequence[str], special: Collection[str] = ()) -> None:
        self._tools = tuple(tools) or (DEFAULT,)
        self._excluded = frozenset(excluded)
        self._special = frozenset(special)

    def find_closed_gate(self, name: str, toolsets: Collection[str]) -> ClosedGate | None:
        """Return why the tool `name` of some toolsets is not offered; None if it is."""
        names = {name, *toolsets, ALL}
        if not self._special.issuperset(toolsets):
            names.add(DEFAULT)
        if names & self._excluded:
            return ClosedGate(reason="The server was started with `--exclude-tools`.")
        if names.intersection(self._tools):
            return None
        return ClosedGate([f"--tools {','.join((*self._tools, name))}"])

    def chosen_toolsets(self, toolsets: Iterable[str]) -> frozenset[str]:
        """Return those of some toolsets that `--tools` names and that are not left out."""
        return frozenset(self._tools).intersection(toolsets) - self._excluded

    def check(self, tools: Mapping[str, Collection[str]], later: Collection[str] = ()) -> None:
        """Check that every chosen name is one of `tools` or of their toolsets.

        Args:
            tools: the toolsets of each possible tool.
            later: toolsets whose tools come while the server runs.

        Raises:
            UnknownTool: a name is neither.
        """
        toolsets = set(later)
        for names in tools.values():
            toolsets.update(names)
        valid = {ALL, DEFAULT, *toolsets, *tools}
        for flag, chosen in (("--tools", self._tools), ("--exclude-tools", self._excluded)):
            unknown = sorted(set(chosen) - valid)
            if unknown:
                raise UnknownTool(
                    f"`{flag}` names {quote(unknown[0])}, and these settings open no such tool or toolset.",
                    f"There are the toolsets {DEFAULT}, {ALL}, {', '.join(sorted(toolsets - tools.keys()))}, and the "
                    f"tools {', '.join(sorted(tools))}.",
                )
