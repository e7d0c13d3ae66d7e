"""The site builds without a warning, and the server that its pages teach works."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from documents.snippets import ROOT, SERVERS, blocks
from mcp_batteries.settings import Host
from mcp_batteries.testing.wire import StdioWire


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    command = [Path(sys.executable).parent / "mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path / "site"]
    # The theme's makers announce their next program there, in red.
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site/servers/filesystem/index.html").exists()
    listed = (tmp_path / "site/llms.txt").read_text("utf-8")
    assert "- [Recipes](recipes/index.md)" in listed and "中文" not in listed
    for target in re.findall(r"\]\((\S+)\)", listed):
        assert (tmp_path / "site" / target).read_text("utf-8").strip(), target
    for host in [host + language for host in get_args(Host) for language in ("", ".zh-CN")]:
        page = (tmp_path / f"site/hosts/{host}/index.html").read_text("utf-8")
        # A set of servers, and in each a set of ways; every entry of the page is in one of them.
        assert page.count('class="tabbed-set') == 1 + len(SERVERS), host
        text = (ROOT / f"docs/hosts/{host}.md").read_text("utf-8")
        assert 2 * len(re.findall(r'<div class="[^"]*highlight"', page)) == len(
            re.findall("^```", text, re.MULTILINE)
        ), host


def test_each_page_is_in_one_group_of_the_menu() -> None:
    groups = ast.parse((ROOT / "docs/hooks.py").read_text("utf-8"))
    (guides,) = (
        ast.literal_eval(node.value)
        for node in groups.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "GUIDES"
    )
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md", "landing.md"}
    listed = [page for group in guides.values() for page in group]
    assert sorted(listed) == sorted(pages | {"security.md"}), "docs/hooks.py, GUIDES"


@pytest.mark.anyio
async def test_the_server_of_the_page_works(tmp_path: Path) -> None:
    written: list[str] = []
    for block in blocks(ROOT / "docs/write-a-server.md"):
        if title := re.search(r'title="([\w/.]+)"', block.info):
            target = tmp_path / title[1]
            target.parent.mkdir(exist_ok=True)
            target.write_text(block.text + "\n", "utf-8")
            written.append(title[1])
    (tmp_path / "mcp_words/__init__.py").touch()
    assert len(written) == 6
    (tmp_path / "notes.txt").write_text("one two three\n", "utf-8")
    command = [sys.executable, "-m", "mcp_words", str(tmp_path)]
    async with StdioWire(command, env={**os.environ, "PYTHONPATH": str(tmp_path)}) as wire:
        await wire.open()
        said = await wire.call("read_word_count", name="notes.txt")
        refused = await wire.call("read_word_count", name="../notes.txt")
        prompts = await wire.request("prompts/list")
    assert said["content"][0]["text"] == "3 words\n"
    assert refused["isError"] is True
    assert [prompt["name"] for prompt in prompts["prompts"]] == ["shorten_text"]
