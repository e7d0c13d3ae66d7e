"""What asks for the next page of an answer."""

from __future__ import annotations

import re

__all__ = ["NEXT_PAGE", "next_page_arguments"]

# The words before the argument tell it from a name that contains `cursor=`. A line that was cut goes on at a column.
NEXT_PAGE = (
    r'(?:rest is at|continue with|next page:|more,) (?P<name>cursor|start_line)="?(?P<value>[^"\s;,\]]+)'
    r"(?:, start_column=(?P<column>\d+))?"
)
_REMARK = re.compile(rf"\[.*{NEXT_PAGE}")


def next_page_arguments(text: str) -> dict[str, str] | None:
    """Return the arguments with which the first line of an answer asks for what follows it; None if it does not."""
    first_line, _, _ = text.partition("\n")
    # The pattern does not look for this end, since it could look for it from each of many places.
    if not first_line.endswith("]"):
        return None
    match = _REMARK.match(first_line)
    if match is None:
        return None
    arguments = {match["name"]: match["value"]}
    if match["column"] is not None:
        arguments["start_column"] = match["column"]
    return arguments
