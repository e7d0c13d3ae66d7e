"""What the scopes of a token allow: tools by their effect, and everything else as reading.

`read`, `write` and `destroy` each include the ones before; `search.read` is `read` for the tools of one toolset, which
has the name of its module. `settings` opens `config://settings`, which names files and addresses of this machine. Lists
show what the caller may use; the rest is refused with the scope that would allow it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, cast

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver.tools import Tool
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_REQUEST

from mcp_batteries.errors import quote
from mcp_batteries.server.tool import StrictTool
from mcp_batteries.settings import SETTINGS_URI

__all__ = ["Scopes"]

_EFFECTS = ("read", "write", "destroy")
_READING = frozenset({"resources/read", "resources/subscribe", "prompts/get", "completion/complete"})
_LISTS = {
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}


class Scopes:
    """The rules of one server; also its middleware, for transports without another check.

    Args:
        tools: the current tools, by name.
        prefix: what an issuer puts before its scopes for this server, such as `files:`.
    """

    def __init__(self, tools: Callable[[], Mapping[str, Tool]], prefix: str = "") -> None:
        self._tools = tools
        self._prefix = prefix

    @property
    def all(self) -> list[str]:
        """Every scope that a caller could need, the least first."""
        effects = {_effect(tool) for tool in self._tools().values()} | {"read"}
        return [self._prefix + effect for effect in _EFFECTS if effect in effects]

    def for_path(self, path: str) -> str | None:
        """The scope for a path beside the endpoint; None if any of this server's scopes is enough."""
        return f"{self._prefix}metrics" if path == "/metrics" else None

    def knows(self, held: Collection[str]) -> bool:
        """Whether any of `held` is a scope of this server."""
        words = [scope.removeprefix(self._prefix) for scope in held if scope.startswith(self._prefix)]
        return any(word.rpartition(".")[2] in _EFFECTS for word in words)

    def missing(self, held: Collection[str], method: str, params: Mapping[str, Any] | None) -> str | None:
        """The scope that a caller with `held` lacks for `method`; None if the request is allowed."""
        if method == "tools/call":
            tool = self._tools().get(str((params or {}).get("name")))
            return None if tool is None or self._may_call(held, tool) else self._prefix + _effect(tool)
        if _of_settings(params or {}) and f"{self._prefix}settings" not in held:
            return f"{self._prefix}settings"
        reads = method in _READING or (method == "subscriptions/listen" and _listens_to_resources(params or {}))
        return self._prefix + "read" if reads and not self._holds(held, "read") else None

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        token = get_access_token()
        if token is None:
            return await call_next(ctx)
        missing = self.missing(token.scopes, ctx.method, ctx.params)
        if missing is not None:
            raise MCPError(INVALID_REQUEST, f"This token lacks the scope {quote(missing)}.")
        result = await call_next(ctx)
        if ctx.method == "tools/list" and isinstance(result, dict):
            listed = cast("list[dict[str, Any]]", result["tools"])
            tools = self._tools()
            allowed = [item for item in listed if self._may_call(token.scopes, tools[item["name"]])]
            # Another token of the same person's may open more, at any moment.
            return {**result, "tools": allowed, **({"ttlMs": 0} if "ttlMs" in result else {})}
        if (
            ctx.method == "resources/list"
            and isinstance(result, dict)
            and f"{self._prefix}settings" not in token.scopes
        ):
            entries = cast("list[dict[str, Any]]", result["resources"])
            result = {**result, "resources": [item for item in entries if not _of_settings(item)]}
        if ctx.method in _LISTS and isinstance(result, dict) and not self._holds(token.scopes, "read"):
            return {key: value for key, value in result.items() if key != "nextCursor"} | {_LISTS[ctx.method]: []}
        return result

    def _may_call(self, held: Collection[str], tool: Tool) -> bool:
        toolset = tool.toolset if isinstance(tool, StrictTool) else ""
        return self._holds(held, _effect(tool)) or self._holds(held, _effect(tool), f"{toolset}.")

    def _holds(self, held: Collection[str], effect: str, toolset: str = "") -> bool:
        enough = _EFFECTS[_EFFECTS.index(effect) :]
        return any(f"{self._prefix}{toolset}{name}" in held for name in enough)


def _effect(tool: Tool) -> str:
    # What does not say what it does is taken for the worst.
    return tool.effect if isinstance(tool, StrictTool) else "destroy"


def _of_settings(named: Mapping[str, Any]) -> bool:
    return str(named.get("uri")).lower() == SETTINGS_URI


def _listens_to_resources(params: Mapping[str, Any]) -> bool:
    asked = params.get("notifications")
    if not isinstance(asked, Mapping):
        return False
    named = cast("Mapping[str, Any]", asked)
    return bool(named.get("resourceSubscriptions") or named.get("resourcesListChanged"))
