"""Generates the tables in each server's reference, the snapshots of what a client sees, and the pages for hosts.

`python -m tools.docs servers/*` writes all; the tests call the same functions and compare.
A reference marks its places with `<!-- tools -->` ... `<!-- /tools -->`, likewise resources, prompts, settings.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
from mcp import Client
from pydantic import BaseModel

from mcp_batteries import user_folders
from mcp_batteries.server.assemble import Assembled
from mcp_batteries.settings import Positional, Settings, load, placeholder, variable
from tools.bundles import LOCALE, localized, manifest, registry_entry
from tools.languages import ENGLISH, MISSING, Language, chinese, list_untranslated
from tools.members import Member, members, package_of
from tools.pages import badges, host_pages

__all__ = ["filled", "generated", "package_of", "snapshot", "tables"]


def snapshot(server: Assembled) -> dict[str, Any]:
    """Everything a client sees of `server` before it calls anything, as sorted JSON; bytes of the tool list, views."""
    observed = anyio.run(_seen, server)
    tool_list = json.dumps(observed["tools"], separators=(",", ":"), ensure_ascii=False)
    model = [_model_view(tool) for tool in observed["tools"]]
    paid = json.dumps(model, separators=(",", ":"), ensure_ascii=False)
    sizes = {"tools_list": len(tool_list.encode()), "name_description_input_schema": len(paid.encode())}
    return {"bytes": sizes, **observed, "views": sorted(view.name for view in server.catalog.views.values())}


def _model_view(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return what hosts hand to a model of a tool."""
    return {key: tool.get(key) for key in ("name", "description", "inputSchema")}


async def _seen(server: Assembled) -> dict[str, Any]:
    async with Client(server) as client:
        observed = {
            "tools": (await client.list_tools()).tools,
            "resources": (await client.list_resources()).resources,
            "resourceTemplates": (await client.list_resource_templates()).resource_templates,
            "prompts": (await client.list_prompts()).prompts,
        }
    return {key: _dump_all(items) for key, items in observed.items()}


def _dump_all(items: Iterable[BaseModel]) -> list[dict[str, Any]]:
    return [item.model_dump(mode="json", by_alias=True, exclude_none=True) for item in items]


def tables(kind: type[Settings], seen: dict[str, Any]) -> dict[str, str]:
    """The Markdown tables for a server's reference, by their markers."""
    tools = [
        (f"`{tool['name']}`", _effect(tool["annotations"]), _first(tool["description"]), _names(tool["inputSchema"]))
        for tool in seen["tools"]
    ]
    resources = [(f"`{item['uriTemplate']}`", item["title"]) for item in seen["resourceTemplates"]]
    prompts: list[tuple[str, ...]] = []
    for item in seen["prompts"]:
        arguments = ", ".join(f"`{argument['name']}`" for argument in item.get("arguments", []))
        prompts.append((f"`{item['name']}`", _first(item["description"]), arguments))
    own = [name for name in kind.model_fields if name not in Settings.model_fields]
    return {
        "tools": _table(("tool", "effect", "what it does", "arguments (required in bold)"), tools),
        "resources": _table(("resource", "what it is"), resources),
        "prompts": _table(("prompt", "what it does", "arguments"), prompts),
        "settings": _settings(kind, own) if own else "It has no settings of its own.",
    }


def _settings(kind: type[Settings], names: Sequence[str]) -> str:
    rows: list[tuple[str, ...]] = []
    for name in names:
        field = kind.model_fields[name]
        rows.append((_flag(name, field), f"`{variable(kind, name)}`", _default(field.default), str(field.description)))
    return _table(("flag", "variable", "default", "meaning"), rows)


def _options() -> str:
    """The page of the settings that all servers share, under the headings of `--help`."""
    lines = [
        "# Settings of every server",
        "",
        "Every server has these settings; `SERVER` stands for its command in capitals, such as `MCP_FS`. A flag",
        "overrides its variable, and a variable overrides the default. An unknown flag or variable stops the",
        "start with a message that names the right one. Separate the values of a list as in PATH. Put passwords and",
        "keys (such as a `--bus` URL with a password) into variables, or into a file that the variable's name with",
        "`_FILE` at its end gives: every process list shows command lines.",
        "",
    ]
    for heading, names in Settings.GROUPS.items():
        lines += [f"## {heading}", "", _settings(_AnyServer, names), ""]
    return "\n".join(lines)


class _AnyServer(Settings):
    COMMAND = "SERVER"


def reference_of(root: Path, command: str) -> Path:
    """Return the page with all that a server offers."""
    return root / f"docs/reference/{command}.md"


def filled(page: str, places: dict[str, str]) -> str:
    """`page` with its table in each marked place."""
    for name, table in places.items():
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        page = pattern.sub(lambda found, table=table: f"{found[1]}{table}\n{found[2]}", page)
    return page


def generated(root: Path, other: Language | None = None) -> dict[str, str]:
    """The fully generated files, by their path below `root`; snapshots must be current.

    Args:
        other: the second language; by default the Chinese of `root`.
    """
    other = other or chinese(root)
    servers = members(root)
    described = [item for item in servers if _snapshot_of(root, item).exists()]
    front = {f"badges {item.name}": badges(item) for item in servers}
    files = {"README.md": filled((root / "README.md").read_text("utf-8"), front)}
    files["docs/servers.md"] = _overview(root, described)
    files["docs/settings.md"] = _options()
    for name in ("docs/upgrade.md", "docs/privacy.md"):
        files[name] = filled((root / name).read_text("utf-8"), {"folders": user_folders.table()})
    for language in (ENGLISH, other):
        files |= {f"docs/hosts/{name}": text for name, text in host_pages(servers, language).items()}
    for server in described:
        observed = json.loads(_snapshot_of(root, server).read_text("utf-8"))
        written = {
            "manifest.json": manifest(server, observed["tools"], observed["views"]),
            "server.json": registry_entry(server),
            LOCALE.format("zh-CN"): localized(server, observed["tools"], other),
        }
        for name, data in written.items():
            files[f"{server.place}/{name}"] = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    files[MISSING] = list_untranslated(root, other)
    return files


def _snapshot_of(root: Path, server: Member) -> Path:
    return root / f"tests/snapshots/{server.command}.json"


def _overview(root: Path, servers: Sequence[Member]) -> str:
    """The page of what each server offers, in a table of four lines each."""
    parts = [
        "# What each server offers",
        "",
        "Everything, with all switches on. By default only `mcp-fs` can write (`--read-only` stops that too), and",
        "tools for special work, such as an administrator's, are off until you ask for them: see each server's page.",
        "",
    ]
    for server in servers:
        observed = json.loads(_snapshot_of(root, server).read_text("utf-8"))
        by_effect: dict[bool, list[str]] = {True: [], False: []}
        for tool in observed["tools"]:
            by_effect[tool["annotations"]["readOnlyHint"]].append(tool["name"])
        rows = [
            ("read", _listed(by_effect[True])),
            ("change", _listed(by_effect[False])),
            ("follow", _listed([item["uriTemplate"] for item in observed["resourceTemplates"]])),
            ("ask", _listed([item["name"] for item in observed["prompts"]])),
        ]
        title = (server.settings.__doc__ or "").partition("\n")[0]
        heading = f"## [`{server.command}`](reference/{server.command}.md)\n\n{title}\n"
        parts += [heading, _table(("", "by"), [row for row in rows if row[1]]), ""]
    return "\n".join(parts)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _effect(hints: dict[str, bool]) -> str:
    if hints["readOnlyHint"]:
        return "read"
    return "destroy" if hints["destructiveHint"] else "write"


def _first(text: str) -> str:
    return text.partition("\n")[0]


def _names(schema: dict[str, Any]) -> str:
    required = schema.get("required", [])
    return ", ".join(f"**`{name}`**" if name in required else f"`{name}`" for name in schema.get("properties", {}))


def _flag(name: str, field: Any) -> str:
    if any(isinstance(item, Positional) for item in field.metadata):
        return f"`{placeholder(name)} ...`"
    return f"`--{name.replace('_', '-')}`"


def _default(value: Any) -> str:
    return "" if value in (None, (), False, "") else f"`{value}`"


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines: list[Sequence[str]] = [head, ["---"] * len(head)]
    for row in rows:
        lines.append([cell.replace("|", "\\|") for cell in row])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _main(folders: list[str]) -> None:
    from importlib import import_module

    for folder in map(Path, folders):
        package = package_of(folder)
        if package is None:
            continue
        kind: type[Settings] = import_module(f"{package}.settings").Settings
        with tempfile.TemporaryDirectory() as scratch:
            sample = Path(scratch) / "sample"
            sample.mkdir()
            observed = snapshot(
                import_module(f"{package}.server").build(load(kind, kind.documented_arguments(str(sample))))
            )
        observed["resources"] = []  # depends on what is served
        reference = reference_of(Path(), kind.COMMAND)
        reference.write_text(filled(reference.read_text("utf-8"), tables(kind, observed)), "utf-8")
        target = Path("tests/snapshots") / f"{kind.COMMAND}.json"
        target.write_text(json.dumps(observed, indent=1, ensure_ascii=False) + "\n", "utf-8")
        print(f"{kind.COMMAND}: {observed['bytes']}")
    for name, text in generated(Path()).items():
        target = Path(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")


if __name__ == "__main__":
    _main(sys.argv[1:])
