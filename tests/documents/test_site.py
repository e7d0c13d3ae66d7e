"""The site builds without a warning, and the server that its pages teach works."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from documents.snippets import ROOT, blocks
from mcp_batteries.testing.wire import StdioWire


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    command = [Path(sys.executable).parent / "mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path / "site"]
    # The theme's makers announce their next program there, in red.
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site/servers/filesystem/index.html").exists()
    assert (tmp_path / "site/hosts/vscode/index.html").exists()


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
    assert len(written) == 4
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
