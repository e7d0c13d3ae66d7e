"""Asks the user if a call's arguments do not show its effect, and remembers what they agreed to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from mcp_batteries.errors import quote
from mcp_batteries.server.calling.confirmation import Question
from mcp_batteries.server.calling.confirmation_text import escape_invisible
from mcp_fs.engine.service import Engine
from mcp_fs.policy import Policy, WritablePath
from mcp_fs.tools.paths import expand_deletions, limit_count

__all__ = ["Consent", "consented_expansion"]

_Expansion = tuple[Sequence[WritablePath], Sequence[str]]

_OPERATOR_FIX = "The operator can start the server without `--confirm`."

# Of the call that is run: what goes is what the user was shown, also if a file came while they thought.
_consented_call: ContextVar[tuple[Sequence[str], _Expansion] | None] = ContextVar("asked", default=None)


@dataclass(frozen=True)
class Consent:
    """The guard, with `--confirm`, of all tools that do more than read.

    Of globs it names all that they mean, of entries that go elsewhere all pairs.
    """

    policy: Policy
    engine: Engine

    async def __call__(self, tool: str, values: Mapping[str, Any]) -> Question | None:
        """The question to the user, where the arguments are none.

        Raises:
            Problem: nothing fits, or too much does.
        """
        _consented_call.set(None)
        if "targets" in values:
            pairs = ", ".join(
                f"{_quote_path(one)} to {_quote_path(other)}" for one, other in limit_count(values["targets"]).items()
            )
            warning = " It can replace what is there." if values["overwrite"] else ""
            return Question(f"Allow {tool}? It puts {pairs}.{warning}", _OPERATOR_FIX)
        if tool != "delete_file" or not any("*" in path for path in values["paths"]):
            return None
        paths, notes = await expand_deletions(self.policy, self.engine, values["paths"])
        _consented_call.set((values["paths"], (paths, notes)))
        names = ", ".join(_quote_path(place.display) for place in paths)
        return Question(f"Allow {tool}? It removes {len(paths):,}: {names}.", _OPERATOR_FIX)


def _quote_path(path: str) -> str:
    return quote(escape_invisible(path), 1000)


def consented_expansion(paths: Sequence[str]) -> _Expansion | None:
    """Return what the user agreed to in this call; None if they were not asked about these paths."""
    asked = _consented_call.get()
    return asked[1] if asked is not None and asked[0] == paths else None
