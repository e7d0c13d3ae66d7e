"""Raw JSON-RPC clients without an SDK, so that a test sees exactly what a server sends.

`StdioWire` starts a process and talks over its pipes, `HttpWire` speaks Streamable HTTP. Both open in any protocol
revision and have the same methods, so one test body runs over {stdio, HTTP} x revisions:

    async with StdioWire(["mcp-fs", "/folder"], revision="2025-11-25") as wire:
        await wire.open()
        result = await wire.call("read_text", path="notes.txt")
        await wire.subscribe("file:///folder/notes.txt")
        await wire.updated("file:///folder/notes.txt")
"""

from mcp_batteries.testing.wire.base import MODERN, REVISIONS, Message, Wire, WireClosed, WireError
from mcp_batteries.testing.wire.http import HttpWire
from mcp_batteries.testing.wire.stdio import StdioWire

__all__ = ["MODERN", "REVISIONS", "HttpWire", "Message", "StdioWire", "Wire", "WireClosed", "WireError"]
