"""`mcp-new NAME`: a project with a server in one file, and the contract as its test."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit
from urllib.request import url2pathname

import click

from mcp_batteries.executables import NO_WINDOW, find_executable

__all__ = ["main", "project"]

_PROJECT = """\
[project]
name = "mcp-@name@"
version = "0.1.0"
description = "An MCP server"
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["mcp-batteries>=0.1,<0.2"]

[project.scripts]
mcp-@name@ = "mcp_@module@:server.run"

[dependency-groups]
dev = ["mcp-batteries[testing]"]

[build-system]
requires = ["uv_build>=0.13,<0.14"]
build-backend = "uv_build"

[tool.uv.sources]
mcp-batteries = @source@

[tool.pytest.ini_options]
addopts = ["--import-mode=importlib"]
filterwarnings = ["error"]
testpaths = ["tests"]
"""

_SERVER = '''\
"""Count words and show notes."""

from pathlib import Path
from typing import Annotated

from mcp_batteries.one_file import Server

server = Server("@name@")


@server.tool
def read_word_count(text: Annotated[str, "Text to count."]) -> int:
    """Count the words of a text."""
    return len(text.split())


@server.live("notes.txt")
def notes(path: Path) -> str:
    """The notes as they are now."""
    return path.read_text("utf-8")


if __name__ == "__main__":
    server.run()
'''

_TEST = """\
import pytest

from mcp_@module@ import server
from mcp_batteries.testing.case import Case
from mcp_batteries.testing.contract import *


@pytest.fixture
def case() -> Case:
    return Case(
        server.program,
        arguments=[],
        read=("read_word_count", {"text": "one two"}),
        uri="@name@://notes",
        refused=[("read_word_count", {}), ("read_word_count", {"words": "one"})],
    )
"""

_README = """\
# mcp-@name@

    uv run mcp-@name@ --check
    uv run mcp-@name@ --print-config vscode
    uv run pytest
"""


def project(name: str, source: str) -> dict[str, str]:
    """The files of a new project by their paths in it.

    Args:
        source: where uv finds mcp-batteries, as an inline table.
    """
    module = name.replace("-", "_")
    files = {
        "pyproject.toml": _PROJECT,
        "README.md": _README,
        ".gitignore": ".venv/\n__pycache__/\n",
        f"src/mcp_{module}/__init__.py": _SERVER,
        f"src/mcp_{module}/notes.txt": "Change this file and see who notices.\n",
        f"tests/test_{module}.py": _TEST,
    }
    return {path: _fill(text, name=name, module=module, source=source) for path, text in files.items()}


def _fill(text: str, **words: str) -> str:
    return re.sub(r"@(name|module|source)@", lambda match: words[match[1]], text)


@click.command()
@click.argument("name")
def main(name: str) -> None:
    """Make the folder NAME with a server in one file and a test that holds it to the contract."""
    plain = name.removeprefix("mcp-")
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", plain):
        raise click.UsageError(f"`{name}` is not a name: write small letters, digits and hyphens, such as words.")
    if plain == "batteries":
        raise click.UsageError("`mcp-batteries` is what the new server is made of: choose another name.")
    folder = Path(name)
    if folder.exists():
        raise click.ClickException(f"{folder} exists already: choose another name, or another folder to be in.")
    source, note = _source()
    for path, text in project(plain, source).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, "utf-8", newline="\n")
    click.echo(f"Made {folder}. Next: cd {folder}, then uv run mcp-{plain} --check and uv run pytest")
    if note:
        click.echo(note)


def _source() -> tuple[str, str]:
    """Return where this package came from, so that the project uses the same one, and what to tell the author.

    It is not on the package index. A folder of this disk would be of no use to others, so a checkout is named by its
    address and commit if others can get that.
    """
    origin = cast("dict[str, Any]", json.loads(distribution("mcp-batteries").read_text("direct_url.json") or "{}"))
    url = str(origin.get("url", ""))
    note = ""
    if origin.get("vcs_info"):
        words = {"git": url, "subdirectory": origin.get("subdirectory"), "rev": origin["vcs_info"].get("commit_id")}
    elif url.startswith("file:"):
        folder = Path(os.path.normpath(url2pathname(urlsplit(url).path)))
        words = _published_checkout(folder)
        if not words:
            words = {"path": str(folder)}
            note = (
                f"It uses mcp-batteries from {folder}. Before you give it away, put an address in the place of that "
                'path in pyproject.toml: git = "https://..."'
            )
    else:
        sys.exit("mcp-new: this mcp-batteries was installed from a package index: start mcp-new from a checkout.")
    return "{ " + ", ".join(f"{key} = {json.dumps(value)}" for key, value in words.items() if value) + " }", note


def _published_checkout(folder: Path) -> dict[str, str]:
    """Return the address and commit of a checkout whose commit a remote has; empty if there is none."""
    branches = _git(folder, "branch", "--remotes", "--contains", "HEAD", "--format=%(refname:short)").split()
    if not branches:
        return {}
    address = _git(folder, "remote", "get-url", branches[0].partition("/")[0])
    subdirectory = _git(folder, "rev-parse", "--show-prefix").rstrip("/")
    commit = _git(folder, "rev-parse", "HEAD")
    if "://" not in address or address.startswith("file:"):
        return {}
    return {"git": address, "subdirectory": subdirectory, "rev": commit}


def _git(folder: Path, *words: str) -> str:
    """Return what git prints; empty if it is not there or fails."""
    program = find_executable("git")
    if program is None:
        return ""
    command = [program, "-C", str(folder), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, creationflags=NO_WINDOW)
    if done.returncode:
        return ""
    return done.stdout.strip()
