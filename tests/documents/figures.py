"""Write into the pages what our own tool lists weigh: `python -m documents.figures`, a part of `just docs`.

Figures of a measurement stand below its date and stay as they were measured.
"""

from __future__ import annotations

import importlib
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from git_server.made import Made
from mcp_batteries.settings import load
from tools.docs import reference_of, snapshot

__all__ = ["FOLDERS", "current_page", "page_of"]

ROOT = Path(__file__).parents[2]
FOLDERS = ("filesystem", "git", "github", "postgres", "sqlite")
_PLACEHOLDER = re.compile(r"\\\{(\w+)\\\}")
_NUMBER = "[0-9][0-9.,]*"
_EVERYTHING = (
    "--toolsets", "all", "--write", "--merge", "--delete", "--releases", "--runs", "--workflow-files", "--force",
)  # fmt: skip


@dataclass(frozen=True)
class Sentence:
    """A piece of a member's page, with the names of figures in braces; `{other}` is one that stays as it is.

    Attributes:
        options: of the server that is meant.
    """

    folder: str
    text: str
    options: tuple[str, ...] = ()


SENTENCES = [
    Sentence("filesystem", "| name, description, arguments of all tools | {model_kb} kB, {tools} tools |"),
    Sentence("git", "| tools by default / bytes of tools/list | | {tools} / {all_bytes} |"),
    Sentence("git", "Of these {all_bytes} bytes a host gives"),
    Sentence("git", "input schemas: {model_bytes} bytes."),
    Sentence("github", "| tools | {tools} |"),
    Sentence("github", "| tools | {other} | {tools} |", ("--write",)),
    Sentence("github", "| whole tools/list | {all_kb} kB |"),
    Sentence("github", "| whole tools/list | {other} kB | {all_kb} kB |", ("--write",)),
    Sentence("github", "| of which name, description, arguments | {model_kb} kB |"),
    Sentence("github", "| of which name, description, arguments | {other} kB | {model_kb} kB |", ("--write",)),
    Sentence("github", "with every switch on, {all_kb} kB by default."),
    Sentence("github", "ours take {all_kb} kB\nwith every switch on", _EVERYTHING),
    Sentence("postgres", "| tools, bytes of their list | {tools}, {all_bytes} ("),
    Sentence("postgres", "({tools} with `--dba --write --ddl`: {all_bytes}) |", ("--dba", "--write", "--ddl")),
    Sentence("sqlite", "| tools / bytes of tools/list | {tools} / {all_bytes} |"),
]


def page_of(folder: str) -> Path:
    command = f"mcp-{folder}".replace("mcp-filesystem", "mcp-fs")
    return reference_of(ROOT, command)


def current_page(folder: str, place: Path) -> str:
    """Return the page of a member with the figures of today.

    Args:
        place: an empty folder for what the server serves.

    Raises:
        LookupError: the page does not have one of the sentences.
    """
    page = page_of(folder).read_text("utf-8")
    for sentence in SENTENCES:
        if sentence.folder == folder:
            page = _fill(page, sentence.text, _figures(sentence, place))
    return page


def _fill(page: str, text: str, figures: Mapping[str, str]) -> str:
    pattern = _PLACEHOLDER.sub(lambda name: f"(?P<{name[1]}>{_NUMBER})", re.escape(text))
    found = re.search(pattern, page)
    if found is None:
        raise LookupError(f"no page has the sentence: {text}")
    sentence = text.format(**{**found.groupdict(), **figures})
    return page[: found.start()] + sentence + page[found.end() :]


def _figures(sentence: Sentence, place: Path) -> dict[str, str]:
    """Return how many tools there are, what lists them, and what of that a host gives a model."""
    package = f"mcp_{sentence.folder}".replace("mcp_filesystem", "mcp_fs")
    settings = importlib.import_module(f"{package}.settings").Settings
    words = [*sentence.options, *_arguments(sentence.folder, place)]
    # Without a token mcp-github offers nothing that writes.
    with patch.dict(os.environ, GITHUB_TOKEN="ghp_thisTokenIsNobodys"):
        observed = snapshot(importlib.import_module(f"{package}.server").build(load(settings, words)))
    all_bytes = observed["bytes"]["tools_list"]
    model_bytes = observed["bytes"]["name_description_input_schema"]
    return {
        "tools": str(len(observed["tools"])),
        "all_bytes": f"{all_bytes:,}",
        "all_kb": f"{all_bytes / 1000:.1f}",
        "model_bytes": f"{model_bytes:,}",
        "model_kb": f"{model_bytes / 1000:.1f}",
    }


def _arguments(folder: str, place: Path) -> list[str]:
    """Return what a server is asked to serve."""
    match folder:
        case "filesystem":
            return [str(place)]
        case "git":
            repository = place / "app"
            return [str(repository if repository.exists() else Made(repository).path)]
        case "postgres":
            return ["postgresql://localhost/app"]
        case "sqlite":
            return ["--demo"]
        case _:
            return []


if __name__ == "__main__":
    for folder in FOLDERS:
        with tempfile.TemporaryDirectory() as place:
            page_of(folder).write_text(current_page(folder, Path(place)), "utf-8")
