"""A policy over a folder of a test, and files in it."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from mcp_fs.policy import Policy

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="needs names of any bytes, FIFOs and /proc")

Grep = Callable[..., list[str]]
"""A search for a pattern: the lines of its answer, without the first one."""


@dataclass(frozen=True)
class Served:
    folders: tuple[str, ...]
    read_only: bool = False
    allow_secrets: tuple[str, ...] = ()
    allow_repository_internals: bool = False


def served(*folders: Path) -> Policy:
    return Policy(Served(tuple(str(folder) for folder in folders)))


def flat(answer: str) -> list[str]:
    """The lines of a search's answer without the first one, those that stand below their path or folder behind it."""
    lines, folder, path, told = answer.splitlines()[1:], "", "", list[str]()
    for line, next_line in zip(lines, [*lines[1:], ""], strict=False):
        if below := re.match(r"\d+([:-])|[\d,]+ in all$", line):
            told.append(f"{path}{below[1] or ':'}{line}")
            continue
        if line.endswith("/") and next_line.startswith(" "):
            folder = line
            continue
        whole = folder + line[1:] if line.startswith(" ") else line
        if re.match(r"\d+[:-]", next_line) and line != "--":
            path = whole
        else:
            told.append(whole)
    return told


def fill(folder: Path, files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
