"""What an agent of openai-agents makes of a server: `openai_agents.py TASK`, a JSON object; the report is one, too."""

import asyncio
import json
import sys
from typing import Any

from agents.mcp import MCPServerStdio, MCPUtil


async def report(task: dict[str, Any]) -> dict[str, Any]:
    command = task["command"]
    async with MCPServerStdio(
        {"command": command[0], "args": command[1:]}, client_session_timeout_seconds=60
    ) as server:
        tools = await server.list_tools()
        functions = [MCPUtil.to_function_tool(tool, server, convert_schemas_to_strict=True) for tool in tools]
        done = await server.call_tool(task["tool"], task["arguments"])
    return {
        "tools": [tool.name for tool in tools],
        "strict": [function.name for function in functions if function.strict_json_schema],
        "failed": done.is_error,
        "text": "".join(getattr(block, "text", "") for block in done.content),
    }


print(json.dumps(asyncio.run(report(json.loads(sys.argv[1])))))
