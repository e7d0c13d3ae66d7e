"""What a server tells of changes, over a wire: by notices, and when `list_changes` is asked."""

from __future__ import annotations

import re

from mcp_batteries.testing.wire import Wire

UPDATED = "notifications/resources/updated"
_LINE = re.compile(r"^(?:created|changed|deleted) [\d-]{10}T[\d:]{8}Z (.+)$", re.MULTILINE)


async def told(wire: Wire, *uris: str) -> None:
    """Wait until each of `uris` was announced; then nothing else may have been."""
    for uri in uris:
        await wire.updated(uri)
    await wire.request("tools/list")
    others = {item["params"]["uri"] for item in wire.notifications if item["method"] == UPDATED}
    assert others <= set(uris)
    wire.messages.clear()


async def changes_since(wire: Wire, since: str | None = None, *uris: str) -> tuple[set[str], str]:
    """What changed, and what to ask with next time."""
    arguments = {"since": since} if since else {"uris": list(uris)}
    answer = await wire.call("list_changes", **arguments)
    said = answer["content"][0]["text"]
    assert not answer.get("isError"), said
    return set(_LINE.findall(said)), re.findall(r'since="([^"]+)"', said.partition("\n")[0])[-1]
