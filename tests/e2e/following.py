"""`list_changes` over a wire."""

from __future__ import annotations

import re

from mcp_batteries.testing.wire import Wire

_LINE = re.compile(r"^(?:created|changed|deleted) [\d-]{10}T[\d:]{8}Z (.+)$", re.MULTILINE)


async def changes_since(wire: Wire, since: str | None = None, *uris: str) -> tuple[set[str], str]:
    """What changed, and what to ask with next time."""
    arguments = {"since": since} if since else {"uris": list(uris)}
    answer = await wire.call("list_changes", **arguments)
    said = answer["content"][0]["text"]
    assert not answer.get("isError"), said
    return set(_LINE.findall(said)), re.findall(r'since="([^"]+)"', said.partition("\n")[0])[-1]
