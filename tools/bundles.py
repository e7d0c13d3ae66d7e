"""Files that programs install a server from: an MCPB manifest, an entry for the MCP registry, a bundle's folder.

`manifest.json` and `server.json` stand beside each server's README, generated. A bundle carries the wheels of the
server and of the common package, because no index has them under our names, and the versions of `uv.lock`:

    python -m tools.bundles dist bundles
    npx @anthropic-ai/mcpb pack bundles/mcp-fs

Sources: MCPB manifest specification 0.4 (server type `uv`); registry schema 2025-12-11.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mcp_batteries.settings import InstallQuestion, variable
from tools.languages import ENGLISH, Language
from tools.members import NAMESPACE, PUBLISHED, REPOSITORY, Member, members

__all__ = ["LOCALE", "bundle", "localized", "manifest", "registry_entry"]

# A bundle has its words in the language of a locale in this file.
LOCALE = "mcpb-resources/{}.json"

_SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
_ICONS = (("png", "image/png", "128x128"), ("svg", "image/svg+xml", "any"))
_AUTHOR = "mcp-batteries"
_DEFAULT_LOCALE = "en-US"
# The registry allows a description so many characters.
_DESCRIPTION = 100

_ENTRY = '''"""Start {command} from this bundle."""

from {package}.__main__ import main

main()
'''


def manifest(server: Member, tools: Sequence[dict[str, Any]], views: Sequence[str]) -> dict[str, Any]:
    """The MCPB manifest of `server`, with its `tools` from `tools/list` and pictures of its `views`."""
    project = server.project
    questions = {_key(item): _question(item) for item in server.install_questions}
    read_only = server.settings.model_fields["read_only"]
    questions["read_only"] = {
        "type": "boolean",
        "title": "Read only",
        "description": str(read_only.description),
        "default": False,
        "required": False,
    }
    environment = {item.variable: f"${{user_config.{_key(item)}}}" for item in server.variables if item.variable}
    environment[variable(server.settings, "read_only")] = "${user_config.read_only}"
    arguments = [f"${{user_config.{_key(item)}}}" for item in server.plain]
    return {
        "manifest_version": "0.4",
        "name": server.command,
        "display_name": server.command,
        "version": project["version"],
        "description": project["description"],
        "long_description": _long(server, ENGLISH),
        "localization": {"resources": LOCALE.format("${locale}"), "default_locale": _DEFAULT_LOCALE},
        "icon": "icon.png",
        "icons": [{"src": "icon.png", "size": "128x128"}],
        "screenshots": [f"screenshots/{view}.png" for view in views],
        "author": {"name": _AUTHOR, "url": REPOSITORY},
        "repository": {"type": "git", "url": REPOSITORY},
        "homepage": REPOSITORY,
        "documentation": f"{REPOSITORY}/blob/main/{server.place}/README.md",
        "support": f"{REPOSITORY}/issues",
        "keywords": project["keywords"],
        "privacy_policies": [f"{REPOSITORY}/blob/main/docs/privacy.md"],
        "license": project["license"],
        "server": {
            "type": "uv",
            "entry_point": "server.py",
            "mcp_config": {
                "command": "uv",
                "args": ["run", "--directory", "${__dirname}", "server.py", *arguments],
                "env": environment,
            },
        },
        "tools": _tools(tools, ENGLISH),
        "prompts_generated": True,
        "user_config": questions,
        "compatibility": {
            "platforms": ["darwin", "win32", "linux"],
            "runtimes": {"python": project["requires-python"]},
        },
    }


def localized(server: Member, tools: Sequence[dict[str, Any]], language: Language) -> dict[str, Any]:
    """The texts of the manifest in `language`; mcpb for .NET requires each key."""
    project = server.project
    return {
        "display_name": server.command,
        "description": language.label(project["description"]),
        "long_description": _long(server, language),
        "author": {"name": _AUTHOR},
        "keywords": [language.label(word) for word in project["keywords"]],
        "tools": _tools(tools, language),
    }


def registry_entry(server: Member, *, published: bool | None = None) -> dict[str, Any]:
    """The registry's `server.json`: the package and the image, the inputs of each, and where they go.

    Args:
        published: whether the package on the public index is ours, so that hosts may use it; by default `PUBLISHED`.
    """
    project = server.project
    is_ours = project["name"] in PUBLISHED if published is None else published
    variables = [
        {"name": item.variable, "description": item.title, "isRequired": item.required, "isSecret": item.secret}
        for item in server.variables
    ]
    arguments = [
        {
            "type": "positional",
            "valueHint": item.name,
            "description": item.title,
            "isRequired": item.required,
            "isRepeated": item.multiple,
            "format": "string" if item.kind == "string" else "filepath",
        }
        for item in server.plain
    ]
    package: dict[str, Any] = {
        "registryType": "pypi",
        "identifier": project["name"],
        "version": project["version"],
        "runtimeHint": "uvx",
        "transport": {"type": "stdio"},
    }
    image: dict[str, Any] = {
        "registryType": "oci",
        "identifier": server.image,
        "runtimeHint": "docker",
        "transport": {"type": "stdio"},
    }
    if arguments:
        package["packageArguments"] = arguments
        mounts = [_mount(item) for item in server.plain if item.kind != "string"]
        if mounts:
            image["runtimeArguments"] = mounts
        image["packageArguments"] = [
            _argument_in_image(item, description) for item, description in zip(server.plain, arguments, strict=True)
        ]
    if variables:
        package["environmentVariables"] = image["environmentVariables"] = variables
    return {
        "$schema": _SCHEMA,
        "name": f"{NAMESPACE}/{server.command}",
        "title": server.command,
        "description": _short(project["description"]),
        "version": project["version"],
        "websiteUrl": f"{REPOSITORY}/blob/main/{server.place}/README.md",
        "icons": [
            {"src": f"{_raw(server)}/icon.{kind}", "mimeType": mime, "sizes": [size]} for kind, mime, size in _ICONS
        ],
        "repository": {"url": REPOSITORY, "source": "github", "subfolder": server.place},
        "packages": [package, image] if is_ours else [image],
    }


def bundle(server: Member, wheels: Path, target: Path, *, root: Path) -> None:
    """Write the folder from which `mcpb pack` makes a bundle.

    Args:
        wheels: holds the wheels of `server` and of the common package.
        target: the new folder; must not exist.
        root: the workspace, with the lock for the versions and the pictures in its documents.

    Raises:
        subprocess.CalledProcessError: uv cannot read the lock.
    """
    (target / "wheels").mkdir(parents=True)
    sources: list[str] = []
    for name in (server.command, "mcp-batteries"):
        [wheel] = wheels.glob(f"{name.replace('-', '_')}-*.whl")
        shutil.copy(wheel, target / "wheels")
        sources.append(f'{name} = {{ path = "wheels/{wheel.name}" }}')
    extras = ",".join(server.project.get("optional-dependencies", {}))
    export = [os.environ.get("UV", "uv"), "export", "--quiet", "--frozen", "--no-dev", "--no-hashes", "--no-annotate"]
    export += ["--no-header", "--no-emit-workspace", "--package", server.command, "--all-extras"]
    locked = subprocess.run(export, cwd=root, capture_output=True, text=True, check=True).stdout.split("\n")
    pins = "".join(f"    {json.dumps(line)},\n" for line in locked if line.strip())
    requirement = f"{server.command}[{extras}]" if extras else server.command
    project = server.project
    (target / "pyproject.toml").write_text(
        f'[project]\nname = "{server.command}-bundle"\nversion = "{project["version"]}"\n'
        f'requires-python = "{project["requires-python"]}"\ndependencies = ["{requirement}", "mcp-batteries"]\n\n'
        f"[tool.uv]\npackage = false\nconstraint-dependencies = [\n{pins}]\n\n"
        f"[tool.uv.sources]\n" + "\n".join(sources) + "\n",
        "utf-8",
    )
    (target / "server.py").write_text(_ENTRY.format(command=server.command, package=server.package), "utf-8")
    for name in ("manifest.json", "README.md", "LICENSE"):
        shutil.copy(server.folder / name, target)
    shutil.copy(server.folder / "src" / server.package / "icon.png", target)
    (target / "screenshots").mkdir()
    for picture in json.loads((target / "manifest.json").read_text("utf-8"))["screenshots"]:
        shutil.copy(root / "docs" / "views" / Path(picture).name, target / picture)
    words = (target / LOCALE).parent
    shutil.copytree(server.folder / words.name, words)
    # What is in the manifest already; mcpb for .NET looks for the file all the same.
    (target / LOCALE.format(_DEFAULT_LOCALE)).write_text("{}\n", "utf-8")


def _key(item: InstallQuestion) -> str:
    return (item.variable or item.name).lower()


def _question(item: InstallQuestion) -> dict[str, Any]:
    question: dict[str, Any] = {
        "type": item.kind,
        "title": item.title,
        "description": f"{item.title}, such as {item.example}",
        "required": item.required,
    }
    if item.multiple:
        question["multiple"] = True
    if item.secret:
        question["sensitive"] = True
    return question


def _mount(item: InstallQuestion) -> dict[str, Any]:
    question = {"description": item.title, "format": "filepath", "isRequired": True}
    if item.kind == "file":
        question["description"] = "Folder that holds the file"
    value = "type=bind,src={source},dst=/data,readonly"
    return {"type": "named", "name": "--mount", "value": value, "isRequired": True, "variables": {"source": question}}


def _argument_in_image(item: InstallQuestion, description: dict[str, Any]) -> dict[str, Any]:
    """Return the argument for a container, where the folder that a person chooses is mounted as `/data`."""
    if item.kind == "string":
        return description
    value = "/data/{file}"
    if item.kind == "directory":
        value = "/data"
    return {"type": "positional", "value": value, **_file(item)}


def _file(item: InstallQuestion) -> dict[str, Any]:
    if item.kind != "file":
        return {}
    return {"variables": {"file": {"description": f"{item.title}: its name in that folder", "isRequired": True}}}


def _raw(server: Member) -> str:
    """The URL of the raw files of the server's package."""
    raw = REPOSITORY.replace("https://github.com/", "https://raw.githubusercontent.com/")
    return f"{raw}/main/{server.place}/src/{server.package}"


def _tools(tools: Sequence[dict[str, Any]], language: Language) -> list[dict[str, str]]:
    """Return the tools with the first lines of their descriptions, without those that nobody has translated."""
    described: list[dict[str, str]] = []
    for tool in tools:
        description = language.say(tool["description"].partition("\n")[0])
        if description:
            described.append({"name": tool["name"], "description": description})
    return described


def _long(server: Member, language: Language) -> str:
    """The server's description: its README up to the first command, and the part on privacy."""
    text = (server.folder / f"README{language.suffix}.md").read_text("utf-8")
    intro = next(part for part in f"\n{text}".partition("\n# ")[2].split("\n\n")[1:] if part[0] not in "<[!")
    privacy = text.partition(f"\n## {language.say('Privacy')}\n\n")[2].partition("\n\n")[0]
    plain = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", f"{intro}\n\n{privacy}")
    return "\n\n".join(" ".join(part.split()) for part in plain.split("\n\n")).strip()


def _short(text: str) -> str:
    return text if len(text) <= _DESCRIPTION else text[: _DESCRIPTION - 1].rpartition(" ")[0] + "…"


def _main(wheels: str, target: str) -> None:
    root = Path.cwd()
    for server in members(root):
        bundle(server, Path(wheels), Path(target) / server.command, root=root)


if __name__ == "__main__":
    _main(*sys.argv[1:])
