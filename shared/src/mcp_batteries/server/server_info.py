"""How a server introduces itself to people: what it is for, its home page, its icon.

The SDK puts `serverInfo` on every answer of the modern era. What nobody needs twice goes only into the answers to
`initialize` and `server/discover`.
"""

from __future__ import annotations

import base64
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, metadata
from importlib.resources import files
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.server.mcpserver import MCPServer
from mcp_types import SERVER_INFO_META_KEY, DiscoverResult, Icon, RequestParams

from mcp_batteries.sdk import add_to_initialize, lowlevel

__all__ = ["add_server_info"]

# These files lie beside the modules of a package. They are inlined, so that no host requests them from anybody.
_ICON_FILES = (("icon.svg", "image/svg+xml", "any"), ("icon.png", "image/png", "128x128"))


def add_server_info(server: MCPServer[Any], package: str, description: str) -> dict[str, Any]:
    """Make `server` introduce itself, and return the introduction.

    Args:
        package: its import name, where the icons are.
        description: a sentence.
    """
    introduction: dict[str, Any] = {}
    if description:
        introduction["description"] = description
    home_page = _find_home_page(server.name)
    if home_page:
        introduction["website_url"] = home_page
    icons = _read_icons(package)
    if icons:
        introduction["icons"] = icons
    add_to_initialize(server, introduction)
    low = lowlevel(server)
    sdk_entry = low.get_request_handler("server/discover")
    if sdk_entry is None:
        return introduction
    sdk_handler = sdk_entry.handler

    async def discover(ctx: ServerRequestContext[Any], params: RequestParams) -> DiscoverResult:
        result: Any = await sdk_handler(ctx, params)
        info = low.server_info.model_copy(update=introduction)
        entry = info.model_dump(by_alias=True, mode="json", exclude_none=True)
        return result.model_copy(update={"meta": {**(result.meta or {}), SERVER_INFO_META_KEY: entry}})

    low.add_request_handler("server/discover", RequestParams, discover)
    return introduction


@cache
def _find_home_page(command: str) -> str | None:
    try:
        urls = metadata(command).get_all("Project-URL") or []
    except PackageNotFoundError:
        return None
    for url in urls:
        if url.startswith("Homepage, "):
            return url.removeprefix("Homepage, ")
    return None


def _read_icons(package: str) -> list[Icon]:
    icons: list[Icon] = []
    if not hasattr(sys.modules.get(package), "__path__"):
        return icons  # The server is one file, and files beside it are not ours.
    for name, mime_type, size in _ICON_FILES:
        try:
            data = files(package).joinpath(name).read_bytes()
        except OSError:
            continue
        src = f"data:{mime_type};base64,{base64.b64encode(data).decode()}"
        icons.append(Icon(src=src, mime_type=mime_type, sizes=[size]))
    return icons
