"""The example of a host, with a model that follows a script: it uses two servers and hears of a change."""

import importlib.util
import json
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from e2e.installing import ROOT

_SPEC = importlib.util.spec_from_file_location("agent", ROOT / "examples/agent/agent.py")
assert _SPEC and _SPEC.loader
agent = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(agent)

SCRIPT = [("fs__read_text", {"path": "notes.txt"}), ("sqlite__query_rows", {"sql": "SELECT * FROM t"}), ("fs__nix", {})]


async def model(messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Calls what the script says, one call a turn, then tells all that it was told."""
    heard = [message["content"] for message in messages if message["role"] == "tool"]
    if len(heard) == len(SCRIPT):
        return {"role": "assistant", "content": "\n".join(heard)}
    name, arguments = SCRIPT[len(heard)]
    assert name == "fs__nix" or name in [tool["function"]["name"] for tool in tools]
    call = {"id": str(len(heard)), "function": {"name": name, "arguments": json.dumps(arguments)}}
    return {"role": "assistant", "tool_calls": [call]}


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.process
async def test_a_scripted_model_uses_two_servers_and_hears_of_a_change(tmp_path: Path) -> None:
    note = tmp_path / "notes.txt"
    note.write_text("first\n", "utf-8")
    with closing(sqlite3.connect(tmp_path / "my.db")) as database, database:
        database.execute("CREATE TABLE t (a)")
        database.execute("INSERT INTO t VALUES (4711)")
    servers = {
        "fs": [sys.executable, "-m", "mcp_fs", "--read-only", str(tmp_path)],
        "sqlite": [sys.executable, "-m", "mcp_sqlite", str(tmp_path / "my.db")],
    }
    told: list[str] = []
    async with agent.Host(servers, model) as host, anyio.create_task_group() as tasks:

        def tell(answer: str) -> None:
            told.append(answer)
            if len(told) == 1:
                note.write_text("second\n", "utf-8")
            else:
                tasks.cancel_scope.cancel()

        with anyio.fail_after(60):
            await host.follow(note.as_uri(), "What is there?", tell)
    assert "first" in told[0] and "4711" in told[0] and "Error: There is no tool" in told[0]
    assert "second" in told[1]
