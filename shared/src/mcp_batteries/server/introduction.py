"""How a server introduces itself to people: what it is for, its home page, its icon.

The SDK puts `serverInfo` on every answer of the modern era. What nobody needs twice goes only into the answers to
`initialize` and `server/discover`.
"""

from __future__ import annotations

import base64
import sys
from importlib.metadata import PackageNotFoundError, metadata
from importlib.resources import files
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.server.mcpserver import MCPServer
from mcp_types import SERVER_INFO_META_KEY, DiscoverResult, Icon, RequestParams

from mcp_batteries.sdk import lowlevel, tell_at_start

__all__ = ["introduce"]

# These files lie beside the modules of a package. They are inlined, so that no host requests them from anybody.
_ICONS = (("icon.svg", "image/svg+xml", "any"), ("icon.png", "image/png", "128x128"))


def introduce(server: MCPServer[Any], package: str, description: str) -> dict[str, Any]:
    """Make `server` introduce itself; returns the introduction.

    Args:
        package: its import name, where the icons are.
        description: a sentence.
    """
    told: dict[str, Any] = {"description": description, "website_url": _home(server.name), "icons": _icons(package)}
    told = {name: value for name, value in told.items() if value}
    tell_at_start(server, told)
    low = lowlevel(server)
    usual = low.get_request_handler("server/discover")
    if usual is None:
        return told
    handler = usual.handler

    async def discover(ctx: ServerRequestContext[Any], params: RequestParams) -> DiscoverResult:
        result: Any = await handler(ctx, params)
        info = low.server_info.model_copy(update=told).model_dump(by_alias=True, mode="json", exclude_none=True)
        return result.model_copy(update={"meta": {**(result.meta or {}), SERVER_INFO_META_KEY: info}})

    low.add_request_handler("server/discover", RequestParams, discover)
    return told


def _home(command: str) -> str | None:
    try:
        urls = metadata(command).get_all("Project-URL") or []
    except PackageNotFoundError:
        return None
    return next((url.partition(", ")[2] for url in urls if url.startswith("Homepage, ")), None)


def _icons(package: str) -> list[Icon]:
    found: list[Icon] = []
    if not hasattr(sys.modules.get(package), "__path__"):
        return found  # a server in one file: files beside it are not ours
    for name, mime_type, size in _ICONS:
        try:
            data = files(package).joinpath(name).read_bytes()
        except OSError:
            continue
        src = f"data:{mime_type};base64,{base64.b64encode(data).decode()}"
        found.append(Icon(src=src, mime_type=mime_type, sizes=[size]))
    return found
