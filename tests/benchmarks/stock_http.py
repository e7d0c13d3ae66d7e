"""The SDK's own server over HTTP with one tool, on uvicorn as it comes: `python stock_http.py`, says its URL."""

import socket
import sys

import uvicorn
from mcp.server.mcpserver import MCPServer

server = MCPServer("stock", log_level="ERROR")


@server.tool(structured_output=False)
async def test_simple_text() -> str:
    """Return a simple text."""
    return "This is a simple text response for testing."


# Not `socket.create_server`: without the name of the protocol asyncio leaves the delay of Nagle on.
with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
    listener.bind(("127.0.0.1", 0))
    print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
    config = uvicorn.Config(server.streamable_http_app(), log_level="error", access_log=False)
    uvicorn.Server(config).run(sockets=[listener])
