"""What fastmcp gives without any of our code: the same three tools over its own stdio."""

from pathlib import Path

from fastmcp import FastMCP

server = FastMCP("stock")


@server.tool
async def echo(text: str) -> str:
    """Give the text back."""
    return text


@server.tool
async def read_text(path: str) -> str:
    """Read a text file."""
    return Path(path).read_text("utf-8")


@server.tool
async def write_text(path: str, text: str) -> str:
    """Write a text file."""
    Path(path).write_text(text, "utf-8")
    return "written"


server.run("stdio", show_banner=False)
