"""A host in one file: a model of your choice, two of these servers, and answers that are renewed when data changes.

    export MODEL_URL=http://127.0.0.1:11434/v1 MODEL=qwen3
    uv run python examples/agent/agent.py "What is in my notes?" /path/to/folder app.db

Any endpoint with OpenAI's `chat/completions` will do; `MODEL_KEY` is its key, if it wants one. With `FOLLOW=URI` the
question is asked again whenever that resource changes, until Ctrl-C.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

import anyio
import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import TextContent, Tool

Message = dict[str, Any]
# Takes the conversation and the tools, and gives the next message: text, or calls of tools.
Model = Callable[[Sequence[Message], Sequence[Message]], Awaitable[Message]]

TURNS = 20


async def ask_model(messages: Sequence[Message], tools: Sequence[Message]) -> Message:
    """The next message, from the endpoint that the environment names."""
    headers = {"authorization": f"Bearer {os.environ['MODEL_KEY']}"} if os.environ.get("MODEL_KEY") else {}
    body = {"model": os.environ["MODEL"], "messages": messages, "tools": tools}
    async with httpx2.AsyncClient(timeout=300, headers=headers) as http:
        answer = await http.post(f"{os.environ['MODEL_URL']}/chat/completions", json=body)
    answer.raise_for_status()
    return answer.json()["choices"][0]["message"]


class Host:
    """What stands between one model and several servers; they are connected while it is entered."""

    def __init__(self, servers: Mapping[str, Sequence[str]], model: Model) -> None:
        self._servers = servers
        self._model = model
        self._clients: dict[str, Client] = {}
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Host:
        for name, (command, *arguments) in self._servers.items():
            started = stdio_client(StdioServerParameters(command=command, args=arguments))
            self._clients[name] = await self._stack.enter_async_context(Client(started))
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self._stack.aclose()

    async def tools(self) -> list[Message]:
        """All tools, each under its server's name, as the endpoint wants them."""
        tools_found: list[Message] = []
        for name, client in self._clients.items():
            tools_found += [_described(f"{name}__{tool.name}", tool) for tool in (await client.list_tools()).tools]
        return tools_found

    async def answer(self, question: str) -> str:
        """The model's answer, after as many calls of tools as it wants."""
        messages: list[Message] = [{"role": "user", "content": question}]
        tools = await self.tools()
        for _ in range(TURNS):
            reply = await self._model(messages, tools)
            messages.append(reply)
            if not reply.get("tool_calls"):
                return str(reply["content"])
            for call in reply["tool_calls"]:
                result = await self._call(call["function"]["name"], call["function"]["arguments"])
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
        return f"No answer after {TURNS} turns."

    async def _call(self, name: str, arguments: str) -> str:
        server, _, tool = name.partition("__")
        try:
            result = await self._clients[server].call_tool(tool, json.loads(arguments or "{}"))
        except Exception as error:  # noqa: BLE001 - the model can mend what it did, if it is told
            return f"Error: {error}"
        return "".join(block.text for block in result.content if isinstance(block, TextContent))

    async def follow(self, uri: str, question: str, tell: Callable[[str], None]) -> None:
        """Answer now, and again whenever the resource at `uri` changes."""
        client = self._clients[next(name for name in self._clients if uri.startswith(_SCHEMES[name]))]
        async with client.listen(resource_subscriptions=[uri]) as changes:
            tell(await self.answer(question))
            async for _ in changes:
                tell(await self.answer(question))


_SCHEMES = {"fs": "file:", "sqlite": "sqlite:"}


def _described(name: str, tool: Tool) -> Message:
    function = {"name": name, "description": tool.description, "parameters": tool.input_schema}
    return {"type": "function", "function": function}


def _show(answer: str) -> None:
    sys.stdout.write(f"{answer}\n")
    sys.stdout.flush()


async def main(question: str, folder: str, database: str) -> None:
    servers = {"fs": ["mcp-fs", "--read-only", folder], "sqlite": ["mcp-sqlite", database]}
    async with Host(servers, ask_model) as host:
        if uri := os.environ.get("FOLLOW"):
            await host.follow(uri, question, _show)
        else:
            _show(await host.answer(question))


if __name__ == "__main__":
    _, asked, files, tables = sys.argv
    anyio.run(main, asked, files, tables)
