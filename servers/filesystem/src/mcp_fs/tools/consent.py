"""Asks the user if a call's arguments do not show its effect, and remembers what they agreed to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcp_batteries.errors import quote
from mcp_batteries.server.calling.confirmation import Question
from mcp_batteries.server.calling.confirmation_text import escape_invisible
from mcp_fs.policy import Policy
from mcp_fs.tools.paths import expand_deletions, limit_count, set_consented_expansion

__all__ = ["Consent"]

_OPERATOR_FIX = "The operator can start the server without `--confirm`."


@dataclass(frozen=True)
class Consent:
    """The guard, with `--confirm`, of all tools that do more than read.

    Of globs it names all that they mean, of entries that go elsewhere all pairs.
    """

    policy: Policy

    async def __call__(self, tool: str, values: Mapping[str, Any]) -> Question | None:
        """The question to the user, where the arguments are none.

        Raises:
            Problem: nothing fits, or too much does.
        """
        set_consented_expansion((), None)
        if "targets" in values:
            pairs = ", ".join(
                f"{_quote_path(one)} to {_quote_path(other)}" for one, other in limit_count(values["targets"]).items()
            )
            warning = " It can replace what is there." if values["overwrite"] else ""
            return Question(f"Allow {tool}? It puts {pairs}.{warning}", _OPERATOR_FIX)
        if tool != "delete_file" or not any("*" in path for path in values["paths"]):
            return None
        paths, notes = await expand_deletions(self.policy, values["paths"])
        set_consented_expansion(values["paths"], (paths, notes))
        names = ", ".join(_quote_path(path.display) for path in paths)
        return Question(f"Allow {tool}? It removes {len(paths):,}: {names}.", _OPERATOR_FIX)


def _quote_path(path: str) -> str:
    return quote(escape_invisible(path), 1000)
