"""What langchain-mcp-adapters make of a server: `langchain_adapters.py TASK`, a JSON object; the report is one, too."""

import asyncio
import json
import sys
from typing import Any

from langchain_mcp_adapters.client import MultiServerMCPClient


async def report(task: dict[str, Any]) -> dict[str, Any]:
    command = task["command"]
    client = MultiServerMCPClient({"it": {"transport": "stdio", "command": command[0], "args": command[1:]}})
    tools = {tool.name: tool for tool in await client.get_tools()}
    answer = await tools[task["tool"]].ainvoke(task["arguments"])
    return {"tools": list(tools), "strict": [], "failed": False, "text": json.dumps(answer, default=str)}


print(json.dumps(asyncio.run(report(json.loads(sys.argv[1])))))
