"""Names a call of a tool as a line of an answer does, so that a model can repeat it."""

from __future__ import annotations

import json
import re

from mcp_git.path_quoting import LINE_BREAKS

__all__ = ["format_call"]


def format_call(tool: str, **arguments: object) -> str:
    """Return a call as a line of an answer names it."""
    formatted = ", ".join(f"{name}={_format_value(value)}" for name, value in arguments.items())
    return f"`{tool}` with {formatted}"


def _format_value(value: object) -> str:
    return LINE_BREAKS.sub(_escape, json.dumps(value, ensure_ascii=False))


def _escape(match: re.Match[str]) -> str:
    """Spell a character as JSON does, so that who reads the call back has the character itself."""
    return f"\\u{ord(match[0]):04x}"
