"""The card of a server, which anybody may read before connecting, and a catalog of its domain that names the card.

Experimental: schema, paths and headers are those of SEP-2127's repository, `experimental-ext-server-card` at 8924e08,
and may change with it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from textwrap import shorten
from typing import Any, NamedTuple
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
# Characters of a title or description.
_MAX_CHARACTERS = 100


def card_and_catalog(server: Assembled, url: str, *, token: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the card of `server`, which clients reach at `url`, and the catalog of that domain.

    Args:
        token: whether clients need one.
    """
    introduction = server.introduction
    info = lowlevel(server).server_info
    host = urlsplit(url).hostname or "localhost"
    card: dict[str, Any] = {
        "$schema": _SCHEMA,
        "name": f"{_namespace(host)}/{server.name}",
        "version": info.version,
        "title": shorten(info.title or server.name, _MAX_CHARACTERS, placeholder="…"),
        "description": shorten(introduction.get("description") or server.name, _MAX_CHARACTERS, placeholder="…"),
    }
    if "website_url" in introduction:
        card["websiteUrl"] = introduction["website_url"]
    card["remotes"] = [_remote(url, token=token)]
    entry = {"identifier": f"urn:air:{host}:mcp:{server.name}", "type": _CARD, "url": f"{url.rstrip('/')}/server-card"}
    return card, {"specVersion": "1.0", "entries": [entry]}


def _namespace(host: str) -> str:
    """Return the namespace of `host`: its parts reversed, as in the registry, or an address in one word."""
    if re.search("[a-z]", host) is None:
        return re.sub("[^0-9.]", "-", host)
    return ".".join(reversed(host.split(".")))


def _remote(url: str, *, token: bool) -> dict[str, Any]:
    """Return how clients connect to `url`."""
    remote: dict[str, Any] = {
        "type": "streamable-http",
        "url": url,
        "supportedProtocolVersions": list(SUPPORTED_PROTOCOL_VERSIONS),
    }
    if token:
        header = {"name": "Authorization", "description": "`Bearer` and a token of this server."}
        remote["headers"] = [{**header, "isRequired": True, "isSecret": True}]
    return remote


class _Document(NamedTuple):
    body: bytes
    media_type: str


class ServerCard:
    """Serves the card and the catalog to everybody, from any page: they are public, and always the same."""

    def __init__(self, app: ASGIApp, *, card: Mapping[str, Any], catalog: Mapping[str, Any], url: str) -> None:
        self._app = app
        card_document = _Document(_body(card), _CARD)
        self._documents: dict[str, _Document] = {
            _PATH: card_document,
            f"{urlsplit(url).path.rstrip('/')}/server-card": card_document,
            _WELL_KNOWN: _Document(_body(catalog), _CATALOG),
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        document: _Document | None = None
        if scope["type"] == "http" and scope["method"] in ("GET", "HEAD", "OPTIONS"):
            document = self._documents.get(scope["path"])
        if document is None:
            await self._app(scope, receive, send)
            return
        tag = f'"{hashlib.sha256(document.body).hexdigest()[:32]}"'
        headers = {**_HEADERS, "etag": tag}
        if scope["method"] == "OPTIONS":
            response = Response(status_code=204, headers=_HEADERS)
        elif tag in Headers(scope=scope).get("if-none-match", ""):
            response = Response(status_code=304, headers=headers)
        else:
            response = Response(document.body, headers=headers, media_type=document.media_type)
        await response(scope, receive, send)


def _body(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, ensure_ascii=False, indent=2).encode() + b"\n"
