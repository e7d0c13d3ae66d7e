"""What the SDK gives without any of our code: three tools, its own stdio."""

from pathlib import Path

from mcp.server import MCPServer

server = MCPServer("stock")


@server.tool()
async def echo(text: str) -> str:
    """Give the text back."""
    return text


@server.tool()
async def read_text(path: str) -> str:
    """Read a text file."""
    return Path(path).read_text("utf-8")


@server.tool()
async def write_text(path: str, text: str) -> str:
    """Write a text file."""
    Path(path).write_text(text, "utf-8")
    return "written"


server.run("stdio")
