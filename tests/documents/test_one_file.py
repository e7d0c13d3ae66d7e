"""The page about a server in one file, followed word by word in an empty folder."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from documents.snippets import ROOT, Block, blocks
from e2e.installing import UV, clean_environment
from tools.members import CHECKOUT

PAGE = list(blocks(ROOT / "docs/one-file.md"))
FILES = [block for block in PAGE if block.info == 'title="words.py"']
MOST_LINES = (10, 15)


@pytest.mark.parametrize(("block", "most"), list(zip(FILES, MOST_LINES, strict=True)), ids=str)
def test_the_files_are_as_short_as_the_page_says(block: Block, most: int) -> None:
    assert len([line for line in block.text.split("\n") if line]) <= most


@pytest.mark.weekly
@pytest.mark.skipif(sys.platform == "win32", reason="the page's transcripts are of a POSIX shell")
def test_the_page_works_word_by_word(tmp_path: Path) -> None:
    folder, followed = tmp_path, 0
    for block in PAGE:
        if block in FILES:
            (folder / "words.py").write_text(block.text + "\n", "utf-8")
        for command, said in transcript(block) if block.language == "console" else ():
            if command.startswith("cd "):
                folder /= command.removeprefix("cd ")
                continue
            done = subprocess.run(
                really(command),
                shell=True,
                cwd=folder,
                env={**clean_environment(), "COLUMNS": "100", "UV_PYTHON": sys.executable},
                capture_output=True,
                text=True,
                encoding="utf-8",
                timeout=300,
            )
            assert done.returncode == 0, done.stdout + done.stderr
            pattern = ".*".join(re.escape(part.strip()) for part in re.split(r"\.\.\.", said))
            assert re.search(pattern, done.stdout, re.DOTALL), f"{command} said {done.stdout}, and the page {said}"
            followed += 1
    assert followed == 7, "every command of the page"


def transcript(block: Block) -> list[tuple[str, str]]:
    """Each command of a console's block, with what it says."""
    parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]
    return [(command, said) for command, _, said in (part.partition("\n") for part in parts)]


def really(command: str) -> str:
    """The page's `command` with this checkout, and with uv wherever it is."""
    command = command.replace(CHECKOUT, str(ROOT))
    uvx = f"{shlex.quote(UV)} tool run --python {shlex.quote(sys.executable)}"
    return re.sub(r"^uvx\b", uvx, re.sub(r"^uv\b", shlex.quote(UV), command)).replace("/", os.sep)
