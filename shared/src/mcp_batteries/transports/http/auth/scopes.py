"""What the scopes of a token allow: tools by their effect, and everything else as reading.

`read`, `write` and `destroy` each include the ones before; `search.read` is `read` for the tools of one toolset, by the
name that `--tools` accepts or that of its module. `settings` opens `config://settings`, which names files and addresses
of this machine. Lists show what the caller may use; the rest is refused with the scope that would allow it.
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
from mcp_batteries.server.calling.call_params import called_tools, normalize_call, runs_script, unwrap_call
from mcp_batteries.server.calling.tool import StrictTool
from mcp_batteries.settings import SETTINGS_URI

__all__ = ["SCOPES", "ResolveTool", "Scopes", "is_scope", "resolve_none"]

_EFFECTS = ("read", "write", "destroy")
SCOPES = (*_EFFECTS, "metrics", "settings")
_READING = frozenset({"resources/read", "resources/subscribe", "prompts/get", "completion/complete"})
_LISTS = {
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}


ResolveTool = Callable[[Any], str | None]


def resolve_none(name: Any) -> str | None:
    """Return that a tool has no other names."""
    return None


def is_scope(word: str, prefix: str = "") -> bool:
    """Tell whether a server could have the scope `word`; which toolsets there are is not asked."""
    if not word.startswith(prefix):
        return False
    scope = word.removeprefix(prefix)
    toolset, dot, effect = scope.rpartition(".")
    if not dot:
        return scope in SCOPES
    return toolset.isidentifier() and effect in _EFFECTS


class Scopes:
    """The rules of one server; also its middleware, for transports without another check.

    Args:
        tools: the current tools, by name.
        prefix: what an issuer puts before its scopes for this server, such as `files:`.
        resolve: returns the own name of the tool that is called by this or another name; None if none is.
    """

    def __init__(
        self,
        tools: Callable[[], Mapping[str, Tool]],
        prefix: str = "",
        resolve: ResolveTool = resolve_none,
    ) -> None:
        self._tools = tools
        self._prefix = prefix
        self._resolve = resolve

    @property
    def all(self) -> list[str]:
        """Every scope that a caller could need, the least first."""
        effects = {_effect(tool) for tool in self._tools().values()} | {"read"}
        return [self._prefix + effect for effect in _EFFECTS if effect in effects]

    def for_path(self, path: str) -> str | None:
        """Return the scope for a path beside the endpoint; None if any of this server's scopes is enough."""
        if path == "/metrics":
            return f"{self._prefix}metrics"
        return None

    def knows(self, scopes: Collection[str]) -> bool:
        """Tell whether any of `scopes` is one of this server."""
        words = [scope.removeprefix(self._prefix) for scope in scopes if scope.startswith(self._prefix)]
        return any(word.rpartition(".")[2] in _EFFECTS for word in words)

    def missing(self, scopes: Collection[str], method: str, params: Mapping[str, Any] | None) -> str | None:
        """Return the scope that a caller with `scopes` lacks for `method`; None if the request is allowed."""
        params = params or {}
        if method == "tools/call":
            return self._missing_for_call(scopes, params)
        if _of_settings(params) and f"{self._prefix}settings" not in scopes:
            return f"{self._prefix}settings"
        is_reading = method in _READING or (method == "subscriptions/listen" and _listens_to_resources(params))
        if is_reading and not self._holds(scopes, "read"):
            return f"{self._prefix}read"
        return None

    def _missing_for_call(self, scopes: Collection[str], params: Mapping[str, Any]) -> str | None:
        """Return the scope that a caller lacks for a call and all calls inside it: of several, the one of most effect.

        A call of `call_tools` is refused as a whole then, because only the status of its answer makes a client ask for
        the scope. A script may call whatever its tool may.
        """
        call = normalize_call(params)
        names = called_tools(call)
        if runs_script(call):
            names += self._callable_by_script(unwrap_call(call).get("name"))
        missing: set[str] = set()
        for name in names:
            tool = self._tools().get(str(self._resolve(name) or name))
            if tool is not None and not self._may_call(scopes, tool):
                missing.add(_effect(tool))
        if not missing:
            return None
        return self._prefix + max(missing, key=_EFFECTS.index)

    def _callable_by_script(self, name: Any) -> list[str]:
        """Return the tools that a script of the tool `name` may call."""
        table = self._tools()
        batch = table.get(name)
        hints = batch and batch.annotations
        if hints and hints.read_only_hint:
            return [name for name, tool in table.items() if _effect(tool) == "read"]
        return list(table)

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        token = get_access_token()
        if token is None:
            return await call_next(ctx)
        missing = self.missing(token.scopes, ctx.method, ctx.params)
        if missing is not None:
            raise MCPError(
                INVALID_REQUEST, f"This token lacks the scope {quote(missing)}. Ask for a token that has it."
            )
        result = await call_next(ctx)
        if not isinstance(result, dict):
            return result
        if ctx.method == "tools/list":
            return self._allowed_tools(result, token.scopes)
        if ctx.method in _LISTS and not self._holds(token.scopes, "read"):
            empty = {key: value for key, value in result.items() if key != "nextCursor"}
            empty[_LISTS[ctx.method]] = []
            return empty
        if ctx.method == "resources/list" and f"{self._prefix}settings" not in token.scopes:
            resources = cast("list[dict[str, Any]]", result["resources"])
            return {**result, "resources": [item for item in resources if not _of_settings(item)]}
        return result

    def _allowed_tools(self, result: dict[str, Any], scopes: Collection[str]) -> dict[str, Any]:
        """Return the answer to `tools/list` with the tools that a caller with `scopes` may call."""
        tools = self._tools()
        items = cast("list[dict[str, Any]]", result["tools"])
        allowed = {**result, "tools": [item for item in items if self._may_call(scopes, tools[item["name"]])]}
        if "ttlMs" in result:
            # Another token of the same person's may open more, at any moment.
            allowed["ttlMs"] = 0
        return allowed

    def _may_call(self, scopes: Collection[str], tool: Tool) -> bool:
        effect = _effect(tool)
        if self._holds(scopes, effect):
            return True
        if not isinstance(tool, StrictTool):
            return False
        toolsets = {tool.toolset, *tool.toolsets}
        return any(self._holds(scopes, effect, f"{toolset}.") for toolset in toolsets)

    def _holds(self, scopes: Collection[str], effect: str, toolset: str = "") -> bool:
        """Tell whether one of `scopes` allows `effect`."""
        enough = _EFFECTS[_EFFECTS.index(effect) :]
        return any(f"{self._prefix}{toolset}{name}" in scopes for name in enough)


def _effect(tool: Tool) -> str:
    """Return the effect of `tool`; one that does not say it counts as the worst."""
    if isinstance(tool, StrictTool):
        return tool.effect
    return "destroy"


def _of_settings(resource: Mapping[str, Any]) -> bool:
    return str(resource.get("uri")).lower() == SETTINGS_URI


def _listens_to_resources(params: Mapping[str, Any]) -> bool:
    notifications = params.get("notifications")
    if not isinstance(notifications, Mapping):
        return False
    members = cast("Mapping[str, Any]", notifications)
    return bool(members.get("resourceSubscriptions") or members.get("resourcesListChanged"))
