"""A dry run only reads, so `call_tools` may make it beside reads, and no call that comes near it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from filesystem.reading import fill
from mcp_batteries.settings import load
from mcp_fs.server import build
from mcp_fs.settings import Settings

pytestmark = pytest.mark.anyio

PATCH = """--- a/sub/a.txt
+++ b/sub/a.txt
@@ -1 +1 @@
-one
+two
--- /dev/null
+++ b/new/b.txt
@@ -0,0 +1 @@
+b
"""
CHANGES: list[dict[str, dict[str, Any]]] = [
    {"replace_text": {"replacements": {"one": "two"}, "glob": "*.txt"}},
    {"edit_file": {"path": "sub/a.txt", "edits": [{"old_text": "one", "new_text": "two"}]}},
    {"edit_files": {"patch": PATCH}},
]


def with_arguments(change: dict[str, dict[str, Any]], **arguments: object) -> dict[str, dict[str, Any]]:
    return {name: {**others, **arguments} for name, others in change.items()}


def entries(folder: Path) -> list[tuple[str, int, int]]:
    """Return all below a folder, each with when it and its inode were last changed."""
    paths = [folder, *folder.rglob("*")]
    return sorted((str(path), os.stat(path).st_mtime_ns, os.stat(path).st_ctime_ns) for path in paths)


async def call(folder: Path, calls: list[dict[str, dict[str, Any]]]) -> str:
    async with Client(build(load(Settings, [str(folder)]))) as client:
        answer = await client.call_tool("call_tools", {"calls": calls})
        steps = await client.call_tool("undo_changes", {})
    assert "no steps that could be taken back" in steps.content[0].text  # type: ignore[union-attr]
    return answer.content[0].text  # type: ignore[union-attr]


@pytest.mark.parametrize("change", CHANGES)
async def test_a_dry_run_is_called_among_reads_and_leaves_everything_as_it_was(
    tmp_path: Path, change: dict[str, dict[str, Any]]
) -> None:
    fill(tmp_path, {"sub/a.txt": "one\n"})
    before = entries(tmp_path)
    answer = await call(tmp_path, [with_arguments(change, dry_run=True), {"read_text": {"path": "sub/a.txt"}}])
    assert "nothing was written" in answer and "# 2 read_text" in answer and "calls were made" not in answer
    assert entries(tmp_path) == before


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    "arguments",
    [{}, {"dry_run": False}, {"dryRun": True}, {"dry_run": 1}, {"dry_run": "true"}, {"dry_run": None}],
)
async def test_what_may_be_no_dry_run_is_not_called(
    tmp_path: Path, change: dict[str, dict[str, Any]], arguments: dict[str, object]
) -> None:
    fill(tmp_path, {"sub/a.txt": "one\n"})
    before = entries(tmp_path)
    answer = await call(tmp_path, [with_arguments(change, **arguments)])
    assert "changes things, so call it by itself, or in `run_script`, or here with dry_run=true" in answer
    assert entries(tmp_path) == before


@pytest.mark.parametrize("change", CHANGES)
async def test_a_dry_run_in_two_spellings_is_not_run(tmp_path: Path, change: dict[str, dict[str, Any]]) -> None:
    fill(tmp_path, {"sub/a.txt": "one\n"})
    before = entries(tmp_path)
    answer = await call(tmp_path, [with_arguments(change, dry_run=True, dryRun=False)])
    assert "there is no argument `dryRun`" in answer
    assert entries(tmp_path) == before


async def test_other_dry_runs_are_not_called(tmp_path: Path) -> None:
    answer = await call(tmp_path, [{"undo_changes": {"dry_run": True}}])
    assert "undo_changes changes things, so call it by itself, or in `run_script`; the others" in answer
