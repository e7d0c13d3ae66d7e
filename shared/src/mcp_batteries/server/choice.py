"""Which of the declared tools are offered: what `--tools` and `--exclude-tools` name, by tool or by toolset."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from mcp_batteries.errors import Invalid, quote

__all__ = ["ALL", "DEFAULT", "Choice", "Missing"]

ALL, DEFAULT = "all", "default"


class Missing(NamedTuple):
    """What a tool that is not offered lacks.

    Attributes:
        flags: the operator's switches that would open it.
        why: what else is in the way, a sentence with the way on.
    """

    flags: Sequence[str] = ()
    why: str = ""


class Choice:
    """The operator's choice among a server's tools.

    Args:
        tools: names of tools or toolsets to offer; none of them mean `default`.
        excluded: names to leave out, also of what `tools` names.
        special: the toolsets that `default` does not stand for.
        named: the tools that nothing stands for but their own name.
    """

    def __init__(
        self, tools: Sequence[str], excluded: Sequence[str], special: Collection[str] = (), named: Collection[str] = ()
    ) -> None:
        self._tools, self._excluded = tuple(tools) or (DEFAULT,), frozenset(excluded)
        self._special, self._named = frozenset(special), frozenset(named)

    def closed(self, name: str, toolsets: Collection[str]) -> Missing | None:
        """Why the tool `name` of some toolsets is not offered; None where it is."""
        names = {name, *toolsets, ALL}
        if name in self._named:
            names = {name}
        elif not self._special.issuperset(toolsets):
            names.add(DEFAULT)
        if names & self._excluded:
            return Missing(why="The server was started with `--exclude-tools`.")
        return None if names.intersection(self._tools) else Missing([f"--tools {','.join((*self._tools, name))}"])

    def check(self, tools: Mapping[str, Collection[str]], later: Collection[str] = ()) -> None:
        """Return when every chosen name is one of `tools` or of their toolsets.

        Args:
            tools: the toolsets of each tool there could be.
            later: toolsets whose tools come while the server runs.

        Raises:
            Invalid: a name is neither.
        """
        toolsets = {*later, *(toolset for names in tools.values() for toolset in names)}
        known = {ALL, DEFAULT, *toolsets, *tools}
        for flag, chosen in (("--tools", self._tools), ("--exclude-tools", self._excluded)):
            if unknown := sorted(set(chosen) - known):
                raise Invalid(
                    f"`{flag}` names {quote(unknown[0])}, and these settings open no such tool or toolset.",
                    f"There are the toolsets {DEFAULT}, {ALL}, {', '.join(sorted(toolsets - tools.keys()))}, and the "
                    f"tools {', '.join(sorted(tools))}.",
                )
