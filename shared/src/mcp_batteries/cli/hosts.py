"""The entry for a host's configuration, exact for the way in which this process was installed.

Each host's file format is data here; sources are the hosts' own documentation. The generated pages (`testing.pages`)
come from the same functions, so what a page shows is what `--print-config` prints.
"""

from __future__ import annotations

import json
import os
import re
import sys
import sysconfig
from collections.abc import Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit
from urllib.request import url2pathname

from mcp_batteries.cli.spelling import spell, spell_json
from mcp_batteries.errors import Invalid, quote, well_formed
from mcp_batteries.executables import find_executable
from mcp_batteries.settings import Asked, Settings, masked, variable

__all__ = ["Input", "connecting", "entry", "environment", "launch", "not_there", "place", "server_url", "starting"]

_PLACES = {
    "vscode": ".vscode/mcp.json in the workspace, or “MCP: Open User Configuration”",
    "claude-desktop": "claude_desktop_config.json (Settings, Developer, Edit Config)",
    "claude-code": ".mcp.json in the project",
    "cursor": ".cursor/mcp.json in the project, or ~/.cursor/mcp.json",
    "windsurf": "~/.codeium/windsurf/mcp_config.json",
    "copilot-cli": "~/.copilot/mcp-config.json",
    "codex": "~/.codex/config.toml",
    "gemini-cli": ".gemini/settings.json in the project, or ~/.gemini/settings.json",
    "zed": "settings.json (zed: open settings)",
    "goose": "~/.config/goose/config.yaml",
    "cherry-studio": "Settings, MCP Servers, Import from JSON",
    "opencode": "opencode.json in the project",
    "jetbrains": "Settings, Tools, AI Assistant, Model Context Protocol, Add, As JSON",
    "visual-studio": ".mcp.json beside the solution, or in your home folder",
    "lm-studio": "~/.lmstudio/mcp.json (Program, Install, Edit mcp.json)",
    "cline": "cline_mcp_settings.json (MCP Servers, Configure MCP Servers)",
    "continue": ".continue/mcpServers/mcp.json in the project or in your home folder",
}

# Windows spells these folders in its own way; every host runs there.
_ON_WINDOWS = {
    "vscode": r".vscode\mcp.json in the workspace, or “MCP: Open User Configuration” (%APPDATA%\Code\User\mcp.json)",
    "claude-desktop": r"%APPDATA%\Claude\claude_desktop_config.json (Settings, Developer, Edit Config)",
    "cursor": r".cursor\mcp.json in the project, or %USERPROFILE%\.cursor\mcp.json",
    "windsurf": r"%USERPROFILE%\.codeium\windsurf\mcp_config.json",
    "copilot-cli": r"%USERPROFILE%\.copilot\mcp-config.json",
    "codex": r"%USERPROFILE%\.codex\config.toml",
    "gemini-cli": r".gemini\settings.json in the project, or %USERPROFILE%\.gemini\settings.json",
    "zed": r"%APPDATA%\Zed\settings.json (zed: open settings)",
    "goose": r"%APPDATA%\Block\goose\config\config.yaml",
    "visual-studio": r".mcp.json beside the solution, or %USERPROFILE%\.mcp.json",
    "lm-studio": r"%USERPROFILE%\.lmstudio\mcp.json (Program, Install, Edit mcp.json)",
    "continue": r".continue\mcpServers\mcp.json in the project, or in %USERPROFILE%",
}

# These forms tell a host to take a variable's value from its user; the other hosts want the value itself.
_HANDS_ON = {
    "vscode": "${{input:{0}}}",
    "visual-studio": "${{input:{0}}}",
    "claude-code": "${{{0}{1}}}",
    "copilot-cli": "${{{0}}}",
    "cursor": "${{env:{0}}}",
    "windsurf": "${{env:{0}}}",
    "gemini-cli": "${0}",
    "opencode": "{{env:{0}}}",
}

# A host takes these forms for variables anywhere in an entry and replaces them; no host can be told not to.
_VARIABLES = {
    **dict.fromkeys([*_HANDS_ON, "cline", "continue"], r"\$\{"),
    "gemini-cli": r"\$[{\w]",
    "opencode": r"\{(env|file):",
}


class Input(NamedTuple):
    """A value that VS Code asks its user for once and keeps in its secret storage."""

    id: str
    description: str
    password: bool = False


def launch(command: str, file: str | None = None, extra: str | None = None) -> list[str]:
    """The command that starts this installation again, from any folder, or `file` if nothing is installed.

    A checkout or git address that `uvx --from` was given is found in the metadata the installer left (PEP 610);
    anything else is named by the absolute path of its executable. A bare package name never appears: on the
    public index it could be a stranger's.
    """
    try:
        installed = distribution(command)
    except PackageNotFoundError:
        if file is None:
            raise
        return [*(_run() if _CACHED & set(sys.prefix.split(os.sep)) else [os.path.abspath(sys.executable)]), file]
    beneath = os.sep + "tools" + os.sep
    # The cache is called `uv`, unless UV_CACHE_DIR moves it.
    cached = {"uv", *_CACHED} & set(sys.prefix.split(os.sep))
    if cached and beneath not in sys.prefix and (address := _address(installed, extra)):
        return [_uv("uvx"), "--from", address, command]
    for folder in (os.path.dirname(sys.executable), sysconfig.get_path("scripts")):
        for name in (command, f"{command}.exe"):
            if os.path.isfile(path := os.path.join(folder, name)):
                return [os.path.abspath(path)]
    # No script was installed: the package is a program too.
    (script,) = installed.entry_points.select(group="console_scripts", name=command)
    return [os.path.abspath(sys.executable), "-m", script.module.partition(".")[0]]


# Folders of uv's cache for environments; one in the last disappears with its process.
_CACHED = {"archive-v0", "builds-v0"}


def _address(installed: Distribution, extra: str | None = None) -> str | None:
    """The origin of `installed` in the form that installers accept; None if it came from an index (PEP 610)."""
    origin = cast("dict[str, Any]", json.loads(installed.read_text("direct_url.json") or "{}"))
    url = str(origin.get("url", ""))
    if origin.get("vcs_info"):
        revision = origin["vcs_info"].get("requested_revision")
        address = f"{origin['vcs_info']['vcs']}+{url}" + (f"@{revision}" if revision else "")
        if origin.get("subdirectory"):
            address += f"#subdirectory={origin['subdirectory']}"
        return f"{installed.name}[{extra}] @ {address}" if extra else address
    if url.startswith("file:"):
        place = os.path.normpath(url2pathname(urlsplit(url).path))
        return f"{place}[{extra}]" if extra else place
    return None


def _run() -> list[str]:
    """`uv run` with the packages of this temporary environment that no other package in it needs."""
    here = [item for item in distributions() if _CACHED & set(Path(str(item.locate_file(""))).parts)]
    needs = [(item, match) for item in here for need in item.requires or [] if (match := _REQUIREMENT.match(need))]
    extras = {(_plain(match[1]), extra.strip()) for _, match in needs for extra in (match[2] or "").split(",")}
    needed = {_plain(match[1]) for item, match in needs if not match[3] or (_plain(item.name), match[3]) in extras}
    wanted = sorted(
        _address(item) or f"{item.name}=={item.version}" for item in here if _plain(item.name) not in needed
    )
    return [_uv("uv"), "run", "--project", os.getcwd(), *(word for one in wanted for word in ("--with", one))]


# A requirement's name, its extras, and the extra of the package that requires it.
_REQUIREMENT = re.compile(r"""([\w.-]+)\s*(?:\[([^]]*)\])?(?:[^;]*;.*\bextra\s*==\s*["']([^"']*))?""")


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _uv(program: str) -> str:
    """The absolute path of uv or uvx: a host started from the desktop may not find what a shell finds."""
    beside = os.environ.get("UV", "")
    folder, name = os.path.split(beside)
    there = os.path.join(folder, name.replace("uv", program, 1))
    return os.path.abspath(there) if beside and os.path.isfile(there) else find_executable(program) or program


def place(host: str, *, windows: bool = sys.platform == "win32") -> str:
    """Where the entry for `host` goes, in words for a person."""
    return (_ON_WINDOWS.get(host) if windows else None) or _PLACES[host]


def entry(host: str, settings: Settings, *, absolute: bool = False) -> str:
    """The configuration text for `host` that starts, or connects to, a server with these settings.

    Args:
        absolute: name the program by its absolute path, because desktop programs often do not have it on their path.

    Raises:
        Invalid: the host cannot connect as the settings say, or would misread a name in them.
    """
    quiet = settings.model_copy(
        update={"print_config": None, "check": False, "install": None, "uninstall": None, "purge": False}
    )
    name = settings.COMMAND.removeprefix("mcp-")
    if settings.transport == "stdio":
        program, *rest = launch(settings.COMMAND, settings.FILE, settings.EXTRA)
        if absolute and not os.path.isabs(program):
            program = find_executable(program) or program
        words = [program, *rest, *quiet.arguments()]
        for word in words:
            _check_name(host, word)
        return starting(host, name, words, environment(settings))
    if settings.socket_url is not None and host != "vscode":
        raise Invalid(f"{host} connects to no Unix socket: leave out --socket.")
    url = server_url(settings)
    assert url is not None
    return connecting(host, name, url, sse=settings.transport == "sse")


def server_url(settings: Settings) -> str | None:
    """The address to which hosts connect; None if they start the server."""
    if settings.transport == "stdio":
        return None
    if settings.socket_url is not None:
        return settings.socket_url
    path = "mcp" if settings.transport == "http" else "sse"
    return f"http://{settings.host}:{settings.port}/{path}"


def _check_name(host: str, word: str) -> None:
    """Refuse names with which the host would start the server on the wrong folder or file."""
    fix = "Name it by a link with a plain name."
    if well_formed(word) != word:
        raise Invalid(f"{quote(word)} is not UTF-8, and hosts' files can hold nothing else.", fix)
    if host in _VARIABLES and (found := re.search(_VARIABLES[host], word)):
        raise Invalid(f"{host} takes `{found[0]}` in {quote(word)} for a variable and puts its value there.", fix)


def not_there(settings: Settings) -> str:
    """A sentence about files and folders in the settings that do not exist; empty if all do."""
    whole, *mounted = settings.parts()
    missing = ", ".join(quote(path) for part in mounted or [whole] for path in part.absent())
    return f"Not there yet, and the server needs it: {missing}." if missing else ""


def environment(settings: Settings) -> list[Asked]:
    """The variables of an entry: secrets that were set, and required values that were not.

    An entry that connects to a URL starts nothing and has no variables.
    """
    return [item for part in settings.parts() for item in _environment(part)] if settings.transport == "stdio" else []


def _environment(settings: Settings) -> list[Asked]:
    held = settings.secrets()
    asked = {item.variable: item for item in settings.ASKED if item.variable}
    found: list[Asked] = []
    for name, field in type(settings).model_fields.items():
        key = variable(type(settings), name)
        if key in held:
            blank = Asked(name, str(field.description).rstrip("."), "", variable=key, secret=True)
            found.append(asked.pop(key, blank)._replace(example=_blanked(held[key])))
        elif getattr(settings, name) != field.default:
            asked.pop(key, None)
    return [*found, *asked.values()]


def _blanked(value: str) -> str:
    # What hosts without a place for secrets show: all but the password of a URL, nothing of a key.
    return masked(value) if masked(value) != value else "***"


def starting(
    host: str, name: str, words: Sequence[str], variables: Sequence[Asked] = (), inputs: Sequence[Input] = ()
) -> str:
    """The entry for `host` that starts a server with `words`.

    Args:
        variables: the server's environment; where possible, the host supplies a secret's value.
        inputs: other values that VS Code asks for; `words` contain `${input:ID}` in their place.
    """
    plain: dict[str, Any] = {"command": words[0], "args": list(words[1:])}
    hands_on = _HANDS_ON.get(host, "")
    optional = ":-" if host == "claude-code" else ""
    environment = {
        asked.variable: hands_on.format(asked.variable, "" if asked.required else optional)
        if hands_on
        else asked.example
        for asked in variables
        if asked.variable
    }
    if environment and host not in ("codex", "goose", "opencode"):
        plain["env"] = environment
    match host:
        case "vscode" | "visual-studio":
            secrets = [Input(asked.variable, asked.title, asked.secret) for asked in variables if asked.variable]
            return spell_json({**_inputs([*inputs, *secrets]), "servers": {name: {"type": "stdio", **plain}}})
        case "claude-code":
            return spell_json({"mcpServers": {name: {"type": "stdio", **plain}}})
        case "copilot-cli":
            return spell_json({"mcpServers": {name: {"type": "local", **plain, "tools": ["*"]}}})
        case "codex":
            return _toml(name, {**plain, **({"env_vars": list(environment)} if environment else {})})
        case "zed":
            return spell_json({"context_servers": {name: plain}})
        case "goose":
            goose = {"name": name, "type": "stdio", "cmd": words[0], "args": list(words[1:]), "enabled": True}
            keys = {"env_keys": list(environment)} if environment else {}
            return _yaml(name, {**goose, **keys, "timeout": 300})
        case "cherry-studio":
            return spell_json({"mcpServers": {name: {"name": name, "type": "stdio", "isActive": True, **plain}}})
        case "opencode":
            given = {"environment": environment} if environment else {}
            return spell_json({"mcp": {name: {"type": "local", "command": list(words), **given, "enabled": True}}})
        case _:
            return spell_json({"mcpServers": {name: plain}})


def connecting(host: str, name: str, url: str, *, sse: bool = False) -> str:
    """The entry for `host` that connects to a server at `url`.

    Raises:
        Invalid: the host takes no URL.
    """
    kind = "sse" if sse else "http"
    match host:
        case "vscode" | "visual-studio":
            return spell_json({"servers": {name: {"type": kind, "url": url}}})
        case "claude-code" | "continue":
            return spell_json({"mcpServers": {name: {"type": kind, "url": url}}})
        case "cline":
            kind = "sse" if sse else "streamableHttp"
            return spell_json({"mcpServers": {name: {"type": kind, "url": url}}})
        case "copilot-cli":
            return spell_json({"mcpServers": {name: {"type": kind, "url": url, "tools": ["*"]}}})
        case "codex":
            return _toml(name, {"url": url})
        case "windsurf":
            return spell_json({"mcpServers": {name: {"serverUrl": url}}})
        case "gemini-cli":
            return spell_json({"mcpServers": {name: {"url" if sse else "httpUrl": url}}})
        case "zed":
            return spell_json({"context_servers": {name: {"url": url}}})
        case "goose" if sse:
            raise Invalid("Goose no longer speaks the old HTTP with SSE: start the server with --transport http.")
        case "goose":
            return _yaml(name, {"name": name, "type": "streamable_http", "uri": url, "enabled": True, "timeout": 300})
        case "cherry-studio":
            kind = "sse" if sse else "streamableHttp"
            remote = {"name": name, "type": kind, "isActive": True, "baseUrl": url}
            return spell_json({"mcpServers": {name: remote}})
        case "opencode":
            return spell_json({"mcp": {name: {"type": "remote", "url": url, "enabled": True}}})
        case "claude-desktop":
            raise Invalid(
                "Claude Desktop's configuration file takes no URL: add the server under Settings, Connectors, "
                "or leave out --transport."
            )
        case _:
            return spell_json({"mcpServers": {name: {"url": url}}})


def _inputs(inputs: Sequence[Input]) -> dict[str, Any]:
    asked = [
        {"type": "promptString", "id": item.id, "description": item.description}
        | ({"password": True} if item.password else {})
        for item in inputs
    ]
    return {"inputs": asked} if asked else {}


def _toml(name: str, table: dict[str, Any]) -> str:
    return "\n".join([f"[mcp_servers.{name}]", *(f"{key} = {spell(value)}" for key, value in table.items())])


def _yaml(name: str, table: dict[str, Any]) -> str:
    lines = [f"    {key}: {spell(value)}" for key, value in table.items()]
    return "\n".join(["extensions:", f"  {name}:", *lines])
