"""Names a call of a tool as a line of an answer does, so that a model can repeat it."""

from __future__ import annotations

import json
import re

from mcp_git.path_quoting import LINE_BREAKS

__all__ = ["format_call"]


def format_call(tool: str, **arguments: object) -> str:
    """A call as a line of an answer names it."""
    given = ", ".join(f"{name}={LINE_BREAKS.sub(_escaped, json.dumps(value, ensure_ascii=False))}"
                      for name, value in arguments.items())  # fmt: skip
    return f"`{tool}` with {given}"


def _escaped(found: re.Match[str]) -> str:
    """As JSON spells it, so that who reads the call back has the character itself."""
    return f"\\u{ord(found[0]):04x}"
