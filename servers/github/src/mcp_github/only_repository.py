"""Where one repository alone is served, a call that names none means that one.

The names of what is created or deleted as a whole are still asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from mcp_batteries.sdk import tool_table
from mcp_batteries.server.assemble import Assembled
from mcp_batteries.server.calling.arguments import NOTHING_WORDS, normalize_name
from mcp_batteries.server.calling.tool import StrictTool
from mcp_batteries.server.catalog import entry

__all__ = ["assume_repository"]

_ARGUMENT = "repo"
_TOOLS_OF_WHOLE_REPOSITORIES = ("copy_repository", "create_repository", "delete_repository")


def assume_repository(server: Assembled, full_name: str) -> None:
    """Have tools take the repository `full_name` where a call names none, and say so in their schemas."""
    table = tool_table(server)
    for tool in table.values():
        if not isinstance(tool, StrictTool) or tool.name in _TOOLS_OF_WHOLE_REPOSITORIES:
            continue
        required = tool.parameters.get("required", [])
        if _ARGUMENT not in required:
            continue
        others = {name: value for name, value in tool.parameters.items() if name != "required"}
        still_required = [name for name in required if name != _ARGUMENT]
        if still_required:
            others["required"] = still_required
        tool.parameters = others
        tool.adapt = partial(_add_repository, full_name)
    server.catalog.tools = [entry(tool) for tool in table.values()]


def _add_repository(full_name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments of a call with a repository."""
    others: dict[str, Any] = {}
    for name, value in arguments.items():
        if normalize_name(name) != _ARGUMENT:
            others[name] = value
        elif value is not None and value not in NOTHING_WORDS:
            return arguments
    return {_ARGUMENT: full_name, **others}
