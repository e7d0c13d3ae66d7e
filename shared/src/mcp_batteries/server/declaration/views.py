"""Pages that a host shows inside the conversation: MCP Apps (`io.modelcontextprotocol/ui`, 2026-01-26).

A tool names its view in its declaration. Only hosts that announce the extension hear of it, so for all others nothing
changes: the same tools, the same bytes. A view gets the arguments and the result of the call that the model sees, and
calls the same tools with the same limits; its page is one file, built from `shared/views` and read when a host asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mcp.server.apps import APP_MIME_TYPE, client_supports_apps
from mcp.server.context import ServerRequestContext
from mcp.server.mcpserver import Context
from mcp_types import TextResourceContents, Tool

__all__ = ["DIAGRAM", "FORECAST", "PLAN", "TABLE", "View", "client_shows_views", "meta", "visible_tools"]

# A page loads from and talks to no origin, may write to the clipboard for its copy buttons, and has a frame.
_PAGE_META: dict[str, Any] = {"ui": {"csp": {}, "permissions": {"clipboardWrite": {}}, "prefersBorder": True}}


@dataclass(frozen=True)
class View:
    """A page for the results of tools.

    Attributes:
        name: of its file, `pages/<name>.html` in the package.
        package: the import name of the package that carries it.
    """

    name: str
    package: str = "mcp_batteries"

    @property
    def uri(self) -> str:
        return f"ui://{self.package.replace('_', '-')}/{self.name}"

    def page(self) -> str:
        """Return the HTML, from the installed package; blocks."""
        from importlib.resources import files

        return files(self.package).joinpath("pages", f"{self.name}.html").read_text("utf-8")

    def contents(self) -> TextResourceContents:
        """Return the page as `resources/read` answers it; blocks."""
        return TextResourceContents(uri=self.uri, mime_type=APP_MIME_TYPE, text=self.page(), _meta=_PAGE_META)


# Shows rows: sorted, filtered, paged through the tool's own cursor, copied, charted.
TABLE = View("table")
# Shows a schema's tables and the keys between them.
DIAGRAM = View("diagram")
# Shows the weather now and to come: alerts, temperature, precipitation and wind, in units of one's choice.
FORECAST = View("forecast")
# Shows how a database would run a statement, as a tree.
PLAN = View("plan")


def meta(view: View | None, app_only: bool) -> dict[str, Any] | None:
    """Return the `_meta` of a tool's entry for hosts with the extension."""
    ui: dict[str, Any] = {}
    if view is not None:
        ui["resourceUri"] = view.uri
    if app_only:
        ui["visibility"] = ["app"]
    if not ui:
        return None
    return {"ui": ui}


def client_shows_views(context: Context[Any, Any]) -> bool:
    """Return whether the client that calls a tool shows views; a call from our own process has no client."""
    try:
        return client_supports_apps(context)
    except ValueError:
        return False


def visible_tools(tools: Sequence[Tool], ctx: ServerRequestContext[Any]) -> Sequence[Tool]:
    """Return `tools` as the client behind `ctx` should see them.

    Without the extension it sees no metadata and no tools that only views can use.
    """
    if client_supports_apps(ctx) or not any(tool.meta for tool in tools):
        return tools
    return [tool.model_copy(update={"meta": None}) for tool in tools if not _is_app_only(tool)]


def _is_app_only(tool: Tool) -> bool:
    return bool(tool.meta) and tool.meta.get("ui", {}).get("visibility") == ["app"]
