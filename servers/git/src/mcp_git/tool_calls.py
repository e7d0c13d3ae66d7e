"""Names a call of a tool as a line of an answer does, so that a model can repeat it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from mcp_git.path_quoting import LINE_BREAKS

__all__ = ["ToolCall", "format_call"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool; as a string it is what a line of an answer says.

    Attributes:
        remark: what a reader should know of it; not an argument.
    """

    tool: str
    arguments: Mapping[str, object]
    remark: str = ""

    def __str__(self) -> str:
        formatted = ", ".join(f"{name}={_format_value(value)}" for name, value in self.arguments.items())
        return f"`{self.tool}` with {formatted}{self.remark}"

    def with_remark(self, remark: str) -> ToolCall:
        return replace(self, remark=remark)

    def expecting(self, expectation: str) -> ToolCall:
        """Return the call as one that is refused unless `expectation` holds; as it is where that is empty."""
        if not expectation:
            return self
        return replace(self, arguments={**self.arguments, "only_if": expectation})


def format_call(tool: str, **arguments: object) -> ToolCall:
    """Return a call as a line of an answer names it."""
    return ToolCall(tool, arguments)


def _format_value(value: object) -> str:
    return LINE_BREAKS.sub(_escape, json.dumps(value, ensure_ascii=False))


def _escape(match: re.Match[str]) -> str:
    """Spell a character as JSON does, so that who reads the call back has the character itself."""
    return f"\\u{ord(match[0]):04x}"
