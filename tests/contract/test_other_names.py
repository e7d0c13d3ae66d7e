"""A model that knows the tools of the servers before ours can call ours by those names, with those arguments."""

from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from contract.cases import CASES
from mcp_batteries.testing.contract import text_of

CALLS: list[tuple[str, str, dict[str, Any], str]] = [
    ("mcp_fs", "read_text_file", {"path": "notes.txt", "head": 1}, "first"),
    ("mcp_fs", "read_multiple_files", {"paths": ["notes.txt"]}, "second"),
    ("mcp_fs", "get_file_info", {"path": "notes.txt"}, "notes.txt"),
    ("mcp_fs", "list_directory_with_sizes", {"path": "."}, "notes.txt"),
    ("mcp_fs", "directory_tree", {"path": "."}, "notes.txt"),
    ("mcp_fs", "search_files", {"path": ".", "pattern": "*.txt"}, "notes.txt"),
    ("mcp_sqlite", "read_query", {"query": "SELECT 40 + 2 AS answer"}, "42"),
    ("mcp_sqlite", "execute_sql", {"sql": "SELECT 40 + 2 AS answer"}, "42"),
    ("mcp_postgres", "query", {"sql": "SELECT 40 + 2 AS answer"}, "42"),
    ("mcp_postgres", "list_schemas", {}, "public"),
]


@pytest.mark.anyio
@pytest.mark.parametrize(("package", "tool", "arguments", "part"), CALLS)
async def test_a_name_that_models_know_is_answered(
    package: str, tool: str, arguments: dict[str, Any], part: str, tmp_path: Path
) -> None:
    async with Client(CASES[package](tmp_path).build()) as client:
        assert tool not in {listed.name for listed in (await client.list_tools()).tools}
        result = await client.call_tool(tool, arguments)
        assert not result.is_error and part in text_of(result), text_of(result)
