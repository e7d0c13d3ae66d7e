"""Asks the user if a call's arguments do not show its effect, and remembers what they agreed to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from mcp_batteries.errors import quote
from mcp_batteries.server.confirm import Question
from mcp_batteries.server.consent_text import visible
from mcp_fs.engine.service import Engine
from mcp_fs.policy import Policy, Writable
from mcp_fs.tools.paths import deleted, few

__all__ = ["Consent", "agreed"]

_Meant = tuple[Sequence[Writable], Sequence[str]]

_WITHOUT = "The operator can start the server without `--confirm`."

_asked: ContextVar[tuple[Sequence[str], _Meant] | None] = ContextVar("asked", default=None)
"""Of the call that is run: what goes is what the user was shown, also if a file came while they thought."""


@dataclass(frozen=True)
class Consent:
    """With `--confirm` the guard of all tools that do more than read: of globs it names all that they mean, of entries
    that go elsewhere all pairs."""

    policy: Policy
    engine: Engine

    async def __call__(self, tool: str, values: Mapping[str, Any]) -> Question | None:
        """The question to the user, where the arguments are none.

        Raises:
            Problem: nothing fits, or too much does.
        """
        _asked.set(None)
        if "targets" in values:
            pairs = ", ".join(f"{_quoted(one)} to {_quoted(other)}" for one, other in few(values["targets"]).items())
            over = " It can replace what is there." if values["overwrite"] else ""
            return Question(f"Allow {tool}? It puts {pairs}.{over}", _WITHOUT)
        if tool != "delete_file" or not any("*" in path for path in values["paths"]):
            return None
        places, notes = await deleted(self.policy, self.engine, values["paths"])
        _asked.set((values["paths"], (places, notes)))
        named = ", ".join(_quoted(place.display) for place in places)
        return Question(f"Allow {tool}? It removes {len(places):,}: {named}.", _WITHOUT)


def _quoted(path: str) -> str:
    return quote(visible(path), 1000)


def agreed(paths: Sequence[str]) -> _Meant | None:
    """What the user agreed to in this call; None if they were not asked about these paths."""
    asked = _asked.get()
    return asked[1] if asked is not None and asked[0] == paths else None
