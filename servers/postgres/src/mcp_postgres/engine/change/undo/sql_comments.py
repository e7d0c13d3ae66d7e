"""Lines of a way back that only tell something."""

from __future__ import annotations

import re

__all__ = ["remark"]


def remark(text: str) -> str:
    """Return a text as a comment of SQL: each line of it, because names and values may hold line ends."""
    return "\n".join(f"-- {line}" for line in re.split(r"[\r\n]+", text))
