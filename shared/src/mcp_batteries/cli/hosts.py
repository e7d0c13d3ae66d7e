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
from collections.abc import Mapping, Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit
from urllib.request import url2pathname

from mcp_batteries.cli.spelling import spell, spell_json
from mcp_batteries.errors import Invalid, quote, well_formed
from mcp_batteries.executables import find_executable
from mcp_batteries.settings import InstallQuestion, Settings, masked, variable

__all__ = [
    "Input",
    "describe_missing_paths",
    "entry",
    "environment",
    "launch",
    "make_start_entry",
    "make_url_entry",
    "place",
    "server_url",
]

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
_WINDOWS_PLACES = {
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
_VARIABLE_FORMS = {
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
    **dict.fromkeys([*_VARIABLE_FORMS, "cline", "continue"], r"\$\{"),
    "gemini-cli": r"\$[{\w]",
    "opencode": r"\{(env|file):",
}


class Input(NamedTuple):
    """A value that VS Code asks its user for once and keeps in its secret storage."""

    id: str
    description: str
    password: bool = False


def launch(command: str, file: str | None = None, extra: str | None = None) -> list[str]:
    """Return the command that starts this installation again from any folder, or `file` if nothing is installed.

    A checkout or git address that `uvx --from` was given is found in the metadata the installer left (PEP 610);
    anything else is named by the absolute path of its executable. A bare package name never appears: on the
    public index it could be a stranger's.
    """
    prefix_folders = set(sys.prefix.split(os.sep))
    try:
        installed = distribution(command)
    except PackageNotFoundError:
        if file is None:
            raise
        if _CACHE_FOLDERS & prefix_folders:
            return [*_uv_run_command(), file]
        return [os.path.abspath(sys.executable), file]
    # The cache is called `uv`, unless UV_CACHE_DIR moves it.
    is_cached = {"uv", *_CACHE_FOLDERS} & prefix_folders
    is_tool = os.sep + "tools" + os.sep in sys.prefix
    if is_cached and not is_tool:
        address = _address(installed, extra)
        if address:
            return [_find_uv("uvx"), "--from", address, command]
    for folder in (os.path.dirname(sys.executable), sysconfig.get_path("scripts")):
        for name in (command, f"{command}.exe"):
            path = os.path.join(folder, name)
            if os.path.isfile(path):
                return [os.path.abspath(path)]
    # No script was installed: the package is a program too.
    (script,) = installed.entry_points.select(group="console_scripts", name=command)
    return [os.path.abspath(sys.executable), "-m", script.module.partition(".")[0]]


# Folders of uv's cache for environments; one in the last disappears with its process.
_CACHE_FOLDERS = {"archive-v0", "builds-v0"}


def _address(installed: Distribution, extra: str | None = None) -> str | None:
    """Return the origin of `installed` in the form that installers accept; None if it came from an index (PEP 610)."""
    origin = cast("dict[str, Any]", json.loads(installed.read_text("direct_url.json") or "{}"))
    url = str(origin.get("url", ""))
    if origin.get("vcs_info"):
        address = _repository_address(origin, url)
        return f"{installed.name}[{extra}] @ {address}" if extra else address
    if url.startswith("file:"):
        path = os.path.normpath(url2pathname(urlsplit(url).path))
        return f"{path}[{extra}]" if extra else path
    return None


def _repository_address(origin: Mapping[str, Any], url: str) -> str:
    address = f"{origin['vcs_info']['vcs']}+{url}"
    revision = origin["vcs_info"].get("requested_revision")
    if revision:
        address += f"@{revision}"
    if origin.get("subdirectory"):
        address += f"#subdirectory={origin['subdirectory']}"
    return address


def _uv_run_command() -> list[str]:
    """Return `uv run` with the packages of this temporary environment that no other package in it needs."""
    installed = [item for item in distributions() if _CACHE_FOLDERS & set(Path(str(item.locate_file(""))).parts)]
    required = _required_names(installed)
    addresses: list[str] = []
    for item in installed:
        if _normalize_name(item.name) not in required:
            addresses.append(_address(item) or f"{item.name}=={item.version}")
    command = [_find_uv("uv"), "run", "--project", os.getcwd()]
    for address in sorted(addresses):
        command += ["--with", address]
    return command


class _Requirement(NamedTuple):
    """What a package requires.

    Attributes:
        package: the package that requires it.
        extras: the extras that it requires of `name`.
        condition: the extra of `package` without which it is not required.
    """

    package: str
    name: str
    extras: Sequence[str]
    condition: str | None


def _requirements(installed: Sequence[Distribution]) -> list[_Requirement]:
    requirements: list[_Requirement] = []
    for item in installed:
        for text in item.requires or []:
            match = _REQUIREMENT.match(text)
            if match is not None:
                extras = [extra.strip() for extra in (match[2] or "").split(",")]
                package = _normalize_name(item.name)
                requirements.append(_Requirement(package, _normalize_name(match[1]), extras, match[3]))
    return requirements


def _required_names(installed: Sequence[Distribution]) -> set[str]:
    """Return the names of packages that another package needs, for itself or for an extra that is required of it."""
    requirements = _requirements(installed)
    required_extras: set[tuple[str, str]] = set()
    for requirement in requirements:
        for extra in requirement.extras:
            required_extras.add((requirement.name, extra))
    names: set[str] = set()
    for requirement in requirements:
        if not requirement.condition or (requirement.package, requirement.condition) in required_extras:
            names.add(requirement.name)
    return names


# A requirement's name, its extras, and the extra of the package that requires it.
_REQUIREMENT = re.compile(r"""([\w.-]+)\s*(?:\[([^]]*)\])?(?:[^;]*;.*\bextra\s*==\s*["']([^"']*))?""")


def _normalize_name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _find_uv(program: str) -> str:
    """Return the absolute path of uv or uvx: a host started from the desktop may not find what a shell finds."""
    running_uv = os.environ.get("UV", "")
    if running_uv:
        folder, name = os.path.split(running_uv)
        path = os.path.join(folder, name.replace("uv", program, 1))
        if os.path.isfile(path):
            return os.path.abspath(path)
    return find_executable(program) or program


def place(host: str, *, windows: bool = sys.platform == "win32") -> str:
    """Say where the entry for `host` goes, in words for a person."""
    if windows and host in _WINDOWS_PLACES:
        return _WINDOWS_PLACES[host]
    return _PLACES[host]


def entry(host: str, settings: Settings, *, absolute: bool = False) -> str:
    """Return the configuration text for `host` that starts, or connects to, a server with these settings.

    Args:
        absolute: name the program by its absolute path, because desktop programs often do not have it on their path.

    Raises:
        Invalid: the host cannot connect as the settings say, or would misread a name in them.
    """
    serving = settings.model_copy(
        update={"print_config": None, "check": False, "install": None, "uninstall": None, "purge": False}
    )
    name = settings.COMMAND.removeprefix("mcp-")
    if settings.transport == "stdio":
        program, *arguments = launch(settings.COMMAND, settings.FILE, settings.EXTRA)
        if absolute and not os.path.isabs(program):
            program = find_executable(program) or program
        words = [program, *arguments, *serving.arguments()]
        for word in words:
            _check_name(host, word)
        return make_start_entry(host, name, words, environment(settings))
    if settings.socket_url is not None and host != "vscode":
        raise Invalid(f"{host} connects to no Unix socket: leave out --socket.")
    url = server_url(settings)
    assert url is not None
    return make_url_entry(host, name, url, sse=settings.transport == "sse")


def server_url(settings: Settings) -> str | None:
    """Return the address to which hosts connect; None if they start the server."""
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
    if host in _VARIABLES:
        match = re.search(_VARIABLES[host], word)
        if match is not None:
            raise Invalid(f"{host} takes `{match[0]}` in {quote(word)} for a variable and puts its value there.", fix)


def describe_missing_paths(settings: Settings) -> str:
    """Return a sentence about files and folders in the settings that do not exist; empty if all do."""
    process, *mounted = settings.parts()
    missing: list[str] = []
    for member in mounted or [process]:
        missing.extend(quote(path) for path in member.absent())
    if not missing:
        return ""
    return f"Not there yet, and the server needs it: {', '.join(missing)}."


def environment(settings: Settings) -> list[InstallQuestion]:
    """Return the variables of an entry: secrets that were set, and required values that were not.

    An entry that connects to a URL starts nothing and has no variables.
    """
    if settings.transport != "stdio":
        return []
    variables: list[InstallQuestion] = []
    for member in settings.parts():
        variables.extend(_environment_of(member))
    return variables


def _environment_of(settings: Settings) -> list[InstallQuestion]:
    secrets = settings.secrets()
    questions = {question.variable: question for question in settings.INSTALL_QUESTIONS if question.variable}
    variables: list[InstallQuestion] = []
    for name, field in type(settings).model_fields.items():
        key = variable(type(settings), name)
        if key in secrets:
            default = InstallQuestion(name, str(field.description).rstrip("."), "", variable=key, secret=True)
            question = questions.pop(key, default)
            variables.append(question._replace(example=_mask_secret(secrets[key])))
        elif getattr(settings, name) != field.default:
            questions.pop(key, None)
    return [*variables, *questions.values()]


def _mask_secret(value: str) -> str:
    """Return what hosts without a place for secrets show: all but the password of a URL, and nothing of a key."""
    without_password = masked(value)
    if without_password == value:
        return "***"
    return without_password


def make_start_entry(
    host: str, name: str, words: Sequence[str], variables: Sequence[InstallQuestion] = (), inputs: Sequence[Input] = ()
) -> str:
    """Return the entry for `host` that starts a server with `words`.

    Args:
        variables: the server's environment; where possible, the host supplies a secret's value.
        inputs: other values that VS Code asks for; `words` contain `${input:ID}` in their place.
    """
    program, *arguments = words
    environment = _environment_values(host, variables)
    command: dict[str, Any] = {"command": program, "args": arguments}
    if environment and host not in ("codex", "goose", "opencode"):
        command["env"] = environment
    match host:
        case "vscode" | "visual-studio":
            secrets = [
                Input(question.variable, question.title, question.secret) for question in variables if question.variable
            ]
            questions = _ask_inputs([*inputs, *secrets])
            return spell_json({**questions, "servers": {name: {"type": "stdio", **command}}})
        case "claude-code":
            return spell_json({"mcpServers": {name: {"type": "stdio", **command}}})
        case "copilot-cli":
            return spell_json({"mcpServers": {name: {"type": "local", **command, "tools": ["*"]}}})
        case "codex":
            if environment:
                command["env_vars"] = list(environment)
            return _toml(name, command)
        case "zed":
            return spell_json({"context_servers": {name: command}})
        case "goose":
            extension = {"name": name, "type": "stdio", "cmd": program, "args": arguments, "enabled": True}
            if environment:
                extension["env_keys"] = list(environment)
            return _yaml(name, {**extension, "timeout": 300})
        case "cherry-studio":
            return spell_json({"mcpServers": {name: {"name": name, "type": "stdio", "isActive": True, **command}}})
        case "opencode":
            server: dict[str, Any] = {"type": "local", "command": list(words)}
            if environment:
                server["environment"] = environment
            return spell_json({"mcp": {name: {**server, "enabled": True}}})
        case _:
            return spell_json({"mcpServers": {name: command}})


def _environment_values(host: str, variables: Sequence[InstallQuestion]) -> dict[str, str]:
    """Return the values of an entry's variables: how the host takes each from its user, or an example."""
    values: dict[str, str] = {}
    for question in variables:
        if not question.variable:
            continue
        form = _VARIABLE_FORMS.get(host)
        if form is None:
            values[question.variable] = question.example
        elif host == "claude-code" and not question.required:
            # Claude Code refuses an entry whose variable is not set, unless it has a default.
            values[question.variable] = form.format(question.variable, ":-")
        else:
            values[question.variable] = form.format(question.variable, "")
    return values


def make_url_entry(host: str, name: str, url: str, *, sse: bool = False) -> str:
    """Return the entry for `host` that connects to a server at `url`.

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


def _ask_inputs(inputs: Sequence[Input]) -> dict[str, Any]:
    questions: list[dict[str, Any]] = []
    for item in inputs:
        question: dict[str, Any] = {"type": "promptString", "id": item.id, "description": item.description}
        if item.password:
            question["password"] = True
        questions.append(question)
    if not questions:
        return {}
    return {"inputs": questions}


def _toml(name: str, table: dict[str, Any]) -> str:
    return "\n".join([f"[mcp_servers.{name}]", *(f"{key} = {spell(value)}" for key, value in table.items())])


def _yaml(name: str, table: dict[str, Any]) -> str:
    lines = [f"    {key}: {spell(value)}" for key, value in table.items()]
    return "\n".join(["extensions:", f"  {name}:", *lines])
