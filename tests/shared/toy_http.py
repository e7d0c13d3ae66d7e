"""A server that misbehaves on request, served over HTTP: the subject of the transport's tests.

    python -m shared.toy_http FIELD=VALUE...

The arguments are fields of `Settings` and of `Limits`, as Python literals where they aren't words.
"""

import ast
import logging
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.to_thread
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.prompts.base import UserMessage
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError
from mcp_types import SubscriptionsListenRequestParams
from pydantic import BaseModel

from mcp_batteries.errors import Problem
from mcp_batteries.sdk import lowlevel
from mcp_batteries.settings import Settings
from mcp_batteries.transports.http import serve as http

NOT_UTF8 = b"caf\xe9.txt".decode(errors="surrogateescape")
"""Text as `os.listdir` gives it for a name that is not UTF-8."""


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


@asynccontextmanager
async def lifespan(_: MCPServer) -> AsyncIterator[None]:
    say("lifespan entered")
    try:
        yield
    finally:
        # Real clean-up awaits something: it must not be cancelled under its feet.
        await anyio.sleep(0.01)
        say("lifespan left")


bus = InMemorySubscriptionBus()
listen = ListenHandler(bus)
server = MCPServer("toy", lifespan=lifespan, subscriptions=bus, log_level="WARNING")
# The SDK's handler draws each traceback as a picture, which takes longer than anything here.
logging.basicConfig(level="WARNING", force=True)
lowlevel(server).add_request_handler("subscriptions/listen", SubscriptionsListenRequestParams, listen)


@server.tool(structured_output=False)
async def echo(text: str) -> str:
    return text


@server.tool(structured_output=False)
async def wait(seconds: float) -> str:
    say("waiting")
    try:
        await anyio.sleep(seconds)
    except anyio.get_cancelled_exc_class():
        say("cancelled")
        raise
    say("waited")
    return "waited"


class Name(BaseModel):
    name: str


@server.tool(structured_output=False)
async def ask(questions: list[str], ctx: Context) -> str:
    """The answers to all, asked at once."""
    answers: dict[str, str] = {}

    async def one(question: str) -> None:
        said = await ctx.elicit(question, Name)
        answers[question] = said.data.name if said.action == "accept" else said.action

    say("asking")
    async with anyio.create_task_group() as tasks:
        for question in questions:
            tasks.start_soon(one, question)
    return ", ".join(answers[question] for question in questions)


@server.tool(structured_output=False)
async def fail(words: str = NOT_UTF8) -> str:
    raise RuntimeError(words)


@server.tool(structured_output=False)
async def surrogate(protocol_error: bool = False) -> str:
    if protocol_error:
        raise MCPError(-32000, NOT_UTF8, {"name": NOT_UTF8})
    return NOT_UTF8


@server.tool()
async def not_a_number() -> dict[str, float]:
    return {"value": float("nan")}


@server.tool(structured_output=False)
async def progress(ctx: Context) -> str:
    await ctx.report_progress(1, 2, "half")
    return "done"


@server.tool(structured_output=False)
async def flood(times: int, ctx: Context) -> str:
    for number in range(times):
        await ctx.report_progress(number, times)
    return "done"


@server.tool(structured_output=False)
async def stuck() -> str:
    """Leaves a thread behind that nobody can stop."""
    say("waiting")
    await anyio.to_thread.run_sync(threading.Event().wait, abandon_on_cancel=True)
    return "never"


@server.tool(structured_output=False)
async def blockade() -> str:
    """Blocks the event loop itself."""
    say("waiting")
    time.sleep(60)
    return "never"


@server.prompt()
async def broken() -> list[UserMessage]:
    raise RuntimeError("words of a library")


@server.resource("toy://thing")
async def thing() -> str:
    return "a thing"


def value(text: str) -> object:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


if __name__ == "__main__":
    fields = {name: value(text) for name, _, text in (item.partition("=") for item in sys.argv[1:])}
    settings = Settings.model_validate(
        {"port": 0} | {name: fields[name] for name in fields.keys() & Settings.model_fields}
    )
    limits = http.Limits(**{name: fields[name] for name in fields.keys() - Settings.model_fields})
    try:
        sys.exit(anyio.run(http.serve, server, settings, listen.close, limits))
    except Problem as problem:
        sys.exit(str(problem))
