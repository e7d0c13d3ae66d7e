"""A server that misbehaves on request, run through the hardened transport: the subject of the stdio tests."""

from mcp_batteries.transports.stdio import serve as stdio

_claim = stdio.claim() if __name__ == "__main__" else None

import ctypes  # noqa: E402
import logging  # noqa: E402
import os  # noqa: E402
import signal  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
from collections.abc import AsyncIterator  # noqa: E402
from contextlib import asynccontextmanager  # noqa: E402
from functools import partial  # noqa: E402

import anyio  # noqa: E402
import anyio.to_thread  # noqa: E402
from mcp.server.mcpserver import Context, MCPServer  # noqa: E402

from mcp_batteries.sdk import lowlevel, without_logging_setup  # noqa: E402


@asynccontextmanager
async def lifespan(_: MCPServer) -> AsyncIterator[None]:
    try:
        yield
    finally:
        # Real clean-up awaits something: it must not be cancelled under its feet.
        await anyio.sleep(0.01)
        print("lifespan left", file=sys.stderr)


with without_logging_setup():
    server = MCPServer("toy", lifespan=lifespan)


@server.tool(structured_output=False)
async def echo(text: str) -> str:
    return text


@server.tool(structured_output=False)
async def slow(seconds: float) -> str:
    await anyio.sleep(seconds)
    return "done"


@server.tool(structured_output=False)
async def fail(words: str = "it broke") -> str:
    raise RuntimeError(words)


@server.tool(structured_output=False)
async def surrogate(raising: bool = False) -> str:
    """Text as `os.listdir` gives it for a name that is not UTF-8."""
    name = "caf\udce9.txt"
    if raising:
        raise RuntimeError(name)
    return name


@server.tool(structured_output=False)
async def stray() -> str:
    """Writes to standard output in every way there is."""
    print("stray print")
    print("stray flushed", flush=True)
    os.write(1, b"stray write\n")
    library = ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)
    library.puts(b"stray C")
    library.fflush(None)
    subprocess.run([sys.executable, "-c", "print('stray child')"], check=True)
    reads = subprocess.run([sys.executable, "-c", "input()"], capture_output=True, text=True, check=False)
    return reads.stderr.splitlines()[-1]


@server.tool(structured_output=False)
async def shout(size: int) -> str:
    """Writes `size` characters to standard error."""
    sys.stderr.write("x" * size + "\n")
    return "done"


@server.tool(structured_output=False)
async def progress(count: int, ctx: Context) -> str:
    for step in range(count):
        await ctx.report_progress(step, count, "\udcff")
    return "done"


@server.tool(structured_output=False)
async def tell(size: int, ctx: Context) -> str:
    """Sends one notification of `size` characters."""
    await ctx.report_progress(1, 1, "x" * size)
    return "done"


@server.tool(structured_output=False)
async def stubborn() -> str:
    """Never ends, whoever cancels it."""
    while True:
        try:
            await anyio.sleep_forever()
        except BaseException:
            continue


@server.tool(structured_output=False)
async def stuck() -> str:
    """Leaves a thread behind that nobody can stop."""
    await anyio.to_thread.run_sync(partial(os.read, os.pipe()[0], 1), abandon_on_cancel=True)
    return "never"


@server.tool(structured_output=False)
async def blockade() -> str:
    """Blocks the event loop itself."""
    print("blocked", file=sys.stderr)
    os.read(os.pipe()[0], 1)
    return "never"


@server.tool(structured_output=False)
async def strike(number: int) -> str:
    """Has the system raise a signal in this process."""
    signal.raise_signal(number)
    return "done"


@server.tool(structured_output=False)
async def ask(ctx: Context) -> str:
    """Asks the client, who may have left."""
    return str(await ctx.session.list_roots())  # type: ignore[deprecated]


if __name__ == "__main__":
    print("stray start")
    logging.basicConfig(level="INFO")
    low = lowlevel(server)
    limits = {name: int(value) for name, _, value in (item.partition("=") for item in sys.argv[1:])}
    sys.exit(anyio.run(partial(stdio.serve, low, low.create_initialization_options(), _claim, **limits)))
