"""The workspace as generated documents see it: its servers, and how to start each.

A folder below `servers/` is a server if its project has a command with its own name.
"""

from __future__ import annotations

import importlib
import json
import sys
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from mcp_batteries.settings import InstallQuestion, Settings

__all__ = ["CHECKOUT", "IMAGES", "INSTALLED", "NAMESPACE", "PUBLISHED", "REPOSITORY", "Member", "members", "package_of"]

REPOSITORY = "https://github.com/mcp-batteries/mcp-batteries"
# The registry's names begin with this, and whoever publishes must own it.
NAMESPACE = "io.github.mcp-batteries"
IMAGES = "ghcr.io/mcp-batteries"
# These distributions are ours on the public index; nothing generated sends anybody there for another.
PUBLISHED: frozenset[str] = frozenset()
CHECKOUT = "/path/to/checkout"
# `uv tool install` puts commands here (`uv tool dir --bin`).
INSTALLED = "/home/you/.local/bin"


def package_of(folder: Path) -> str | None:
    """The import name of the workspace member in `folder`, or None where it is not a server."""
    project = _project(folder)
    scripts = project.get("scripts", {})
    script = scripts.get(project["name"])
    return script and script.partition(":")[0].removesuffix(".__main__")


@dataclass(frozen=True)
class Member:
    """One server of the workspace."""

    folder: Path
    package: str

    @property
    def project(self) -> dict[str, Any]:
        """The `[project]` table of its pyproject.toml."""
        return _project(self.folder)

    @property
    def settings(self) -> type[Settings]:
        return importlib.import_module(f"{self.package}.settings").Settings

    @property
    def command(self) -> str:
        return self.settings.COMMAND

    @property
    def name(self) -> str:
        """Its name in host entries."""
        return self.command.removeprefix("mcp-")

    @property
    def place(self) -> str:
        """Its folder inside the repository."""
        return f"servers/{self.folder.name}"

    @property
    def install_questions(self) -> tuple[InstallQuestion, ...]:
        """Values that every entry contains: what the server needs, and variables, which may stay empty."""
        return tuple(question for question in self.settings.INSTALL_QUESTIONS if question.required or question.variable)

    @property
    def plain(self) -> tuple[InstallQuestion, ...]:
        """The required values on the command line."""
        return tuple(question for question in self.install_questions if question.variable is None)

    @property
    def variables(self) -> tuple[InstallQuestion, ...]:
        return tuple(question for question in self.install_questions if question.variable is not None)

    @property
    def image(self) -> str:
        return f"{IMAGES}/{self.command}:{self.project['version']}"

    @property
    def is_local(self) -> bool:
        """Whether it needs only a file or folder, so that its container gets no network."""
        return bool(self.plain) and all(question.kind != "string" for question in self.plain)

    def checkout(self) -> list[str]:
        """The command that starts it from a clone of the repository."""
        return ["uvx", "--from", f"{CHECKOUT}/{self.place}", self.command]

    def git(self) -> list[str]:
        """The command that starts it from the repository, without a clone."""
        return ["uvx", "--from", f"git+{REPOSITORY}#subdirectory={self.place}", self.command]

    def installed(self) -> list[str]:
        """The command that starts it after `uv tool install`."""
        return [f"{INSTALLED}/{self.command}"]

    def examples(self) -> list[str]:
        """Placeholders for the person's own folder, file or address on the command line."""
        return [question.example for question in self.plain]

    def docker(self) -> list[str]:
        """The command that starts it in a container, with access only to what it is given, and no network if it needs
        none."""
        words = ["docker", "run", "-i", "--rm", "--read-only", "--cap-drop=ALL"]
        if self.is_local:
            words.append("--network=none")
        for question in self.variables:
            if question.variable:
                words += ["-e", question.variable]
        arguments: list[str] = []
        for question in self.plain:
            if question.kind == "string":
                arguments.append(question.example)
                continue
            outside = question.example if question.kind == "directory" else question.example.rpartition("/")[0]
            words += ["-v", f"{outside}:/data:ro"]
            arguments += ["--read-only", "/data" + question.example.removeprefix(outside)]
        return [*words, self.image, *arguments]


def members(root: Path) -> list[Member]:
    """The servers below `root`, in the order of their folders' names."""
    folders = sorted(file.parent for file in root.glob("servers/*/pyproject.toml"))
    return [Member(folder, package) for folder in folders if (package := package_of(folder))]


@cache
def _project(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]


def _main(tag: str) -> None:
    """Print what a release needs to know, for a workflow's outputs; exit with a message if a version differs."""
    root = Path.cwd()
    servers = members(root)
    version = tag.removeprefix("v")
    for name, project_version in {server.command: server.project["version"] for server in servers}.items():
        if project_version != version:
            sys.exit(f"{name} has version {project_version}, and the tag says {version}.")
    print(f"servers={json.dumps([server.command for server in servers])}")
    print(f"version={version}")


if __name__ == "__main__":
    _main(*sys.argv[1:])
