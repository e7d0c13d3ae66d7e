"""What anybody may learn of a server before connecting: its card, and a catalog of its domain that names the card.

Experimental: schema, paths and headers are those of SEP-2127's repository, `experimental-ext-server-card` at 8924e08,
and may change with it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from textwrap import shorten
from typing import Any
from urllib.parse import urlsplit

from mcp_types.version import SUPPORTED_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from mcp_batteries.sdk import lowlevel
from mcp_batteries.server.assemble import Assembled

__all__ = ["ServerCard", "card_and_catalog"]

_SCHEMA = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"
_CARD = "application/mcp-server-card+json"
_CATALOG = "application/ai-catalog+json"
_PATH = "/mcp/server-card"
_WELL_KNOWN = "/.well-known/ai-catalog.json"
_HEADERS = {
    "access-control-allow-origin": "*",
    "access-control-allow-methods": "GET",
    "access-control-allow-headers": "Content-Type, If-None-Match",
    "access-control-expose-headers": "ETag",
    "cache-control": "public, max-age=3600",
    "x-content-type-options": "nosniff",
}
_LONGEST = 100
"""Characters of a title or description."""


def card_and_catalog(server: Assembled, url: str, *, token: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """The card of `server`, which clients reach at `url`, and the catalog of that domain.

    Args:
        token: whether clients need one.
    """
    told = server.introduction
    info = lowlevel(server).server_info
    host = urlsplit(url).hostname or "localhost"
    # As the names of the registry are: a domain is its owner's to name things in.
    space = ".".join(reversed(host.split("."))) if re.search("[a-z]", host) else re.sub("[^0-9.]", "-", host)
    remote: dict[str, Any] = {
        "type": "streamable-http",
        "url": url,
        "supportedProtocolVersions": list(SUPPORTED_PROTOCOL_VERSIONS),
    }
    if token:
        header = {"name": "Authorization", "description": "`Bearer` and a token of this server."}
        remote["headers"] = [{**header, "isRequired": True, "isSecret": True}]
    card = {
        "$schema": _SCHEMA,
        "name": f"{space}/{server.name}",
        "version": info.version,
        "title": shorten(info.title or server.name, _LONGEST, placeholder="…"),
        "description": shorten(told.get("description") or server.name, _LONGEST, placeholder="…"),
        **({"websiteUrl": told["website_url"]} if "website_url" in told else {}),
        "remotes": [remote],
    }
    entry = {"identifier": f"urn:air:{host}:mcp:{server.name}", "type": _CARD, "url": f"{url.rstrip('/')}/server-card"}
    return card, {"specVersion": "1.0", "entries": [entry]}


class ServerCard:
    """Serves the card and the catalog to everybody, from any page: they are public, and always the same."""

    def __init__(self, app: ASGIApp, *, card: Mapping[str, Any], catalog: Mapping[str, Any], url: str) -> None:
        self._app = app
        ours = _body(card), _CARD
        self._served: dict[str, tuple[bytes, str]] = {
            _PATH: ours,
            f"{urlsplit(url).path.rstrip('/')}/server-card": ours,
            _WELL_KNOWN: (_body(catalog), _CATALOG),
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = self._served.get(scope["path"]) if scope["type"] == "http" else None
        if found is None or scope["method"] not in ("GET", "HEAD", "OPTIONS"):
            await self._app(scope, receive, send)
            return
        body, kind = found
        tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        headers = {**_HEADERS, "etag": tag}
        if scope["method"] == "OPTIONS":
            answer = Response(status_code=204, headers=_HEADERS)
        elif tag in Headers(scope=scope).get("if-none-match", ""):
            answer = Response(status_code=304, headers=headers)
        else:
            answer = Response(body, headers=headers, media_type=kind)
        await answer(scope, receive, send)


def _body(told: Mapping[str, Any]) -> bytes:
    return json.dumps(told, ensure_ascii=False, indent=2).encode() + b"\n"
