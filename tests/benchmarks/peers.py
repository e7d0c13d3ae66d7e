"""Who is measured: how each is started, and what its tools for the same work are called."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from e2e import npm

Call = tuple[str, dict[str, Any]]
"""A tool's name and arguments."""

OURS = "mcp-fs"
_HERE = Path(__file__).parent
TOOLBOX = "1.15.0"


def toolbox(kind: str, **environment: str) -> list[str]:
    """The words that start Google's toolbox for databases with its own tools for `kind`.

    Raises:
        subprocess.CalledProcessError: The package that brings the program could not be had.
    """
    # Started by its path: the package's own command is a Python process, whose start would count as the program's.
    where = "import toolbox_server, pathlib; print(pathlib.Path(toolbox_server.__file__).parent / 'bin' / 'toolbox')"
    package = ["uvx", "--quiet", "--from", f"toolbox-server=={TOOLBOX}", "python", "-c", where]
    program = subprocess.run(package, check=True, capture_output=True, text=True).stdout.strip()
    given = [f"{name}={value}" for name, value in environment.items()]
    return ["env", *given, program, "--prebuilt", kind, "--stdio", "--disable-version-check", "--log-level", "ERROR"]


@dataclass(frozen=True)
class Peer:
    """One server under measurement.

    Attributes:
        name: as the table heads it.
        command: the words that serve a folder.
        calls: for each kind of work, the call that does it; None where it has no tool for it.
        uri: a file's URI as its resources spell it; None if it has none to subscribe to.
    """

    name: str
    command: Callable[[Path], list[str]]
    calls: dict[str, Callable[..., Call]] = field(default_factory=dict[str, Callable[..., Call]])
    uri: Callable[[Path], str] | None = None


def _ours() -> Peer:
    script = str(Path(sys.executable).parent / "mcp-fs")
    return Peer(
        OURS,
        lambda folder: [script, str(folder)],
        {
            "trivial": lambda file: ("get_info", {"path": str(file)}),
            "read": lambda file: ("read_text", {"path": str(file)}),
            "whole": lambda file: ("read_text", {"path": str(file), "max_bytes": 16 * 1024 * 1024}),
            "write": lambda file, text: ("write_file", {"path": str(file), "content": text, "overwrite": True}),
            "edit": lambda file, old, new: (
                "edit_file",
                {"path": str(file), "edits": [{"old_text": old, "new_text": new}]},
            ),
            "head": lambda file: ("read_text", {"path": str(file), "head": 10}),
            "tail": lambda file: ("read_text", {"path": str(file), "tail": 10}),
            "names": lambda folder: ("find_files", {"path": str(folder), "glob": "special*.cfg"}),
            "contents": lambda folder, text: ("search_text", {"path": str(folder), "pattern": text}),
            "tree": lambda folder: ("list_tree", {"path": str(folder), "depth": 20, "max_bytes": 64_000}),
        },
        Path.as_uri,
    )


def _official(version: str) -> Peer:
    package = "@modelcontextprotocol/server-filesystem"
    program = npm.program(npm.installed(f"{package}@{version}"), package)
    return Peer(
        f"official {version}",
        lambda folder: [npm.NODE, program, str(folder)],
        {
            "trivial": lambda file: ("get_file_info", {"path": str(file)}),
            "read": lambda file: ("read_text_file", {"path": str(file)}),
            "whole": lambda file: ("read_text_file", {"path": str(file)}),
            "write": lambda file, text: ("write_file", {"path": str(file), "content": text}),
            "edit": lambda file, old, new: (
                "edit_file",
                {"path": str(file), "edits": [{"oldText": old, "newText": new}]},
            ),
            "head": lambda file: ("read_text_file", {"path": str(file), "head": 10}),
            "tail": lambda file: ("read_text_file", {"path": str(file), "tail": 10}),
            "names": lambda folder: ("search_files", {"path": str(folder), "pattern": "**/special*.cfg"}),
            "tree": lambda folder: ("directory_tree", {"path": str(folder)}),
        },
    )


def _j0hanz() -> Peer:
    package, version = "@j0hanz/filesystem-mcp", "2.5.0"
    # Some registries lack the patch release it asks for.
    installed = npm.installed(f"{package}@{version}", overrides={"@adguard/re2-wasm": "^1.2.0"})
    program = npm.program(installed, package)
    return Peer(
        f"j0hanz {version}",
        lambda folder: [npm.NODE, program, str(folder)],
        {
            "trivial": lambda file: ("stat", {"path": str(file)}),
            "read": lambda file: ("read", {"path": str(file)}),
            "whole": lambda file: ("read", {"path": str(file)}),
            "write": lambda file, text: (
                "create",
                {"files": [{"path": str(file), "content": text, "overwrite": True}]},
            ),
            "edit": lambda file, old, new: (
                "edit",
                {"path": str(file), "edits": [{"oldText": old, "newText": new}]},
            ),
            "head": lambda file: ("read", {"path": str(file), "head": 10}),
            "tail": lambda file: ("read", {"path": str(file), "tail": 10}),
            "names": lambda folder: ("find_files", {"path": str(folder), "pattern": "**/special*.cfg"}),
            "contents": lambda folder, text: (
                "search_text",
                {"path": str(folder), "searchPattern": text, "isRegex": True, "caseSensitive": True},
            ),
            "tree": lambda folder: ("list", {"path": str(folder), "maxDepth": 50, "maxEntries": 20_000}),
        },
        lambda file: f"filesystem-mcp://file/{file}",
    )


def _stock(name: str, program: str) -> Peer:
    return Peer(
        name,
        lambda _: [sys.executable, str(_HERE / program)],
        {
            "trivial": lambda file: ("echo", {"text": "hello"}),
            "read": lambda file: ("read_text", {"path": str(file)}),
            "whole": lambda file: ("read_text", {"path": str(file)}),
            "write": lambda file, text: ("write_text", {"path": str(file), "text": text}),
        },
    )


def everybody() -> list[Peer]:
    """Ours first, then npm's servers on the Node that the test environment brings along, then two without our code."""
    return [
        _ours(),
        _official("2.0.1"),
        _official("2026.8.31"),
        _j0hanz(),
        _stock("stock MCPServer", "stock.py"),
        _stock("stock fastmcp", "stock_fastmcp.py"),
    ]


def ripgrep() -> str | None:
    """The `rg` on the path, if there is one."""
    return shutil.which("rg")
