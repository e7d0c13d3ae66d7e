"""How a call names its repository: as `owner/name`, with both apart as other servers have them, or not at all.

Where one repository alone is served, a call that names none means that one. The names of what is created or deleted as
a whole are still asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcp_batteries.sdk import tool_table
from mcp_batteries.server.assemble import Assembled
from mcp_batteries.server.calling.arguments import NOTHING_WORDS, normalize_name
from mcp_batteries.server.calling.tool import StrictTool
from mcp_batteries.server.catalog import entry

__all__ = ["accept_repository_forms"]

_ARGUMENT = "repo"
_OWNER = "owner"
_TOOLS_OF_WHOLE_REPOSITORIES = ("copy_repository", "create_repository", "delete_repository")


def accept_repository_forms(server: Assembled, implied_repo: str | None) -> None:
    """Have the tools of repositories take each form of their name.

    Args:
        implied_repo: what a call means that names none, which the schemas then allow; None if it has to name one.
    """
    table = tool_table(server)
    for tool in table.values():
        if isinstance(tool, StrictTool) and _ARGUMENT in tool.parameters["properties"]:
            _accept_forms(tool, implied_repo)
    server.catalog.tools = [entry(tool) for tool in table.values()]


def _accept_forms(tool: StrictTool, implied_repo: str | None) -> None:
    required = tool.parameters.get("required", [])
    if _ARGUMENT not in required or tool.name in _TOOLS_OF_WHOLE_REPOSITORIES:
        implied_repo = None
    tool.adapt = _RepositoryForms(implied_repo, has_own_owner=_OWNER in tool.parameters["properties"])
    if implied_repo is None:
        return
    others = {name: value for name, value in tool.parameters.items() if name != "required"}
    still_required = [name for name in required if name != _ARGUMENT]
    if still_required:
        others["required"] = still_required
    tool.parameters = others


@dataclass(frozen=True)
class _RepositoryForms:
    """Writes the name of a repository as a tool's schema has it.

    Attributes:
        implied_repo: what a call means that names none.
        has_own_owner: whether the tool has an argument for the owner of something else.
    """

    implied_repo: str | None
    has_own_owner: bool

    def __call__(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        if not self.has_own_owner:
            arguments = _join_owner(arguments)
        if self.implied_repo is None:
            return arguments
        return _add_repository(self.implied_repo, arguments)


def _join_owner(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments of a call with `owner/name` for an owner and a name."""
    match arguments:
        case {"owner": str(owner), "repo": str(name), **others} if owner and name and "/" not in owner + name:
            return {_ARGUMENT: f"{owner}/{name}", **others}
        case _:
            return arguments


def _add_repository(full_name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments of a call with a repository."""
    others: dict[str, Any] = {}
    for name, value in arguments.items():
        if normalize_name(name) != _ARGUMENT:
            others[name] = value
        elif value is not None and value not in NOTHING_WORDS:
            return arguments
    return {_ARGUMENT: full_name, **others}
