"""The generated pages of `docs/hosts`: one per host, an entry for each server and each way to install it.

The entries come from `mcp_batteries.cli.host_entry`, the code behind `--print-config`; the tests start each of them.
"""

from __future__ import annotations

import base64
import json
import ntpath
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from mcp_batteries.cli.host_entry.text import Input, describe_location, make_start_entry, make_url_entry
from mcp_batteries.errors import Invalid
from mcp_batteries.hosts import HOST_NAMES
from mcp_batteries.hosts.definition import load_host
from tools.languages import ENGLISH, Language
from tools.members import Member

__all__ = ["URL", "WINDOWS_HOME", "badges", "host_pages"]

_BADGE = "https://img.shields.io/badge"
WINDOWS_HOME = r"C:\Users\you"
URL = "http://127.0.0.1:8000/mcp"
_GIT = "{command}: from git"
# A path on Windows in a sentence.
_PATH = re.compile(r"[\w%.]*\\[\w%.\\]*\w", re.ASCII)


class _Way(NamedTuple):
    title: str
    words: list[str]


def host_pages(servers: Sequence[Member], language: Language = ENGLISH) -> dict[str, str]:
    """The text of each page, by its file name."""
    pages = {host: _page(host, servers, language) for host in HOST_NAMES}
    pages |= {"README": _index(servers, language), "windows": _windows(servers[0], language)}
    found: dict[str, str] = {}
    for name, text in pages.items():
        title, body = text.split("\n", 1)
        other = language.label("[中文]({name}.zh-CN.md)", name=name)
        found[f"{name}{language.suffix}.md"] = f"{title}\n\n{other}\n{body}"
    return found


def _index(servers: Sequence[Member], language: Language) -> str:
    first = servers[0]
    lines = [
        f"# {language.label('Hosts')}",
        "",
        language.say("""\
A host is the program in which the model works. Each page has the entries for every server: from a
checkout, from git, installed, in a container, over HTTP. `--print-config HOST` on any server prints the entry
for the way in which that server was installed."""),
        "",
        _hosts_table(language),
        "",
        language.say("Paths and places on Windows are on [a separate page](windows.md)."),
        "",
        f"## {language.label('Install once')}",
        "",
        language.say("""\
The servers need only [uv](https://docs.astral.sh/uv/). On the public package index other people have their
names, so no entry here uses the index. From a clone:"""),
        "",
        "```sh",
        *(f"uv tool install ./{server.place}" for server in servers),
        "```",
        "",
        language.say("`uv tool dir --bin` says where the commands are. Then try one with your own data:"),
        "",
        "```sh",
        shlex.join([*first.checkout()[:2], f"./{first.place}", first.command, "--check", *first.examples()]),
        "```",
        "",
    ]
    return "\n".join(lines)


def _hosts_table(language: Language) -> str:
    """A line per host, with links to its page."""
    lines = [language.label("| host | where the entry goes | `--print-config` |"), "| --- | --- | --- |"]
    for host in HOST_NAMES:
        location = language.say_if_known(describe_location(host, windows=False))
        lines.append(f"| [{load_host(host).title}]({host}{language.suffix}.md) | {location} | `{host}` |")
    return "\n".join(lines)


def _windows(server: Member, language: Language) -> str:
    folder = ntpath.join(WINDOWS_HOME, "folder")
    words = [ntpath.join(WINDOWS_HOME, ".local", "bin", f"{server.command}.exe"), folder]
    lines = [
        "# Windows",
        "",
        language.say("All these hosts run on Windows too. Four things differ there:"),
        "",
        language.say("""\
- Write the full path of a program, with `.exe`: a host that was started from the desktop may not find
  what a shell finds. `uv tool dir --bin` says where the servers are, `where.exe uvx` where uv is."""),
        language.say("- Paths may begin with `~` or `%USERPROFILE%`: the servers replace them, the hosts do not."),
        language.say("- Write a backslash twice in JSON, TOML and YAML strings: `C:\\\\Users`."),
        language.say(
            "- Put `cmd /c` only before scripts such as `npx`. uv and these servers are programs and do not need it."
        ),
        "",
        language.say(
            """\
`--print-config HOST` prints an entry that follows these rules. The entries below are for `{command}`;
the other servers differ in name and arguments, as on each host's page.""",
            command=server.command,
        ),
        "",
    ]
    for host in HOST_NAMES:
        location = _PATH.sub(r"`\g<0>`", language.say_if_known(describe_location(host, windows=True)))
        lines += [f"## [{load_host(host).title}]({host}{language.suffix}.md)", ""]
        lines += [language.say("The entry goes into {place}.", place=location), ""]
        lines += _fenced(load_host(host).format.language, make_start_entry(host, server.name, words))
    return "\n".join(lines)


def _page(host: str, servers: Sequence[Member], language: Language) -> str:
    location = language.say_if_known(describe_location(host, windows=False))
    shows = language.say_if_known(load_host(host).shows)
    lines = [
        f"# {load_host(host).title}",
        "",
        *_install_line(host, servers[0], language),
        language.say("The entry goes into {place}. What it shows: {shows}", place=location, shows=shows),
        "",
        *_moved_folder(host, language),
        language.say("""\
Replace the paths with your own. “From a checkout” needs a clone of the repository and [uv](https://docs.astral.sh/uv/),
“from git” only uv; “installed” is for after `uv tool install` (see [Hosts](README.md#install-once))."""),
        "",
    ]
    lines += [language.say(part) for part in load_host(host).page.paragraphs]
    for server in servers:
        lines += [f"## {server.command}", "", *_server(host, server, language)]
    return "\n".join(lines)


def _moved_folder(host: str, language: Language) -> Iterator[str]:
    """Yield where the file of users is who gave the host another folder, if it has a variable for that."""
    folder = load_host(host).location.folder
    if folder is None:
        return
    yield language.say(
        "If `{variable}` is set, the file of your own is `{path}` in that folder, for `--install` too.",
        variable=folder.variable,
        path=folder.path,
    )
    yield ""


def _install_line(host: str, server: Member, language: Language) -> Iterator[str]:
    """Yield the command that adds a server to a host, for hosts whose file or link we know."""
    location = load_host(host).location
    if not (location.path or location.linux or load_host(host).install_link):
        return
    yield language.say(
        "Add a server, here `{command}` with one of your folders; `--uninstall {host}` takes it out again:",
        command=server.command,
        host=host,
    )
    yield ""
    yield from _fenced("sh", shlex.join([*server.git(), "--install", host, *server.examples()]))


def _server(host: str, server: Member, language: Language) -> Iterator[str]:
    definition = load_host(host)
    fence = definition.format.language
    inputs = []
    examples = server.examples()
    if definition.asks_inputs:
        inputs = [Input(question.name, question.title) for question in server.plain]
        examples = [f"${{input:{item.id}}}" for item in inputs]
    variants = [
        _Way("{command}: from a checkout", [*server.checkout(), *examples]),
        _Way(_GIT, [*server.git(), *examples]),
        _Way("{command}: installed", [*server.installed(), *examples]),
    ]
    for variant in variants:
        yield f"### {language.label(variant.title, command=server.command)}"
        yield ""
        yield from _fenced(
            fence,
            make_start_entry(host, server.name, variant.words, server.variables, inputs),
        )
        if variant.title == _GIT:
            yield from _extras(host, server, language)
    yield f"### {language.label('{command}: in a container', command=server.command)}"
    yield ""
    text = make_start_entry(host, server.name, server.docker(), server.variables)
    yield from _fenced(fence, text)
    yield f"### {language.label('{command}: over HTTP', command=server.command)}"
    yield ""
    try:
        remote = make_url_entry(host, server.name, URL)
    except Invalid as problem:
        yield language.say_if_known(str(problem))
        yield ""
        return
    yield language.say("Start it once, for as many clients as you like:")
    yield ""
    started = [*server.checkout()[:2], f"./{server.place}", server.command, "--transport", "http", *server.examples()]
    yield from _fenced("sh", shlex.join(started))
    yield from _fenced(fence, remote)


def _fenced(language: str, text: str) -> Iterator[str]:
    yield from (f"```{language}", text, "```", "")


def badges(server: Member) -> str:
    """Links that install `server` with one click, in a form that GitHub and package indexes show."""
    links = [f"[![Install in VS Code]({_BADGE}/VS_Code-Install-0098FF)]({_vscode_link(server)})"]
    if link := _cursor_link(server):
        links.append(f"[![Install in Cursor]({_BADGE}/Cursor-Install-000000)]({link})")
    return "\n".join(links)


def _vscode_link(server: Member) -> str:
    """The link to VS Code's page that passes an entry to the editor, which asks for missing values."""
    inputs = [{"type": "promptString", "id": question.name, "description": question.title} for question in server.plain]
    secrets = [
        {"type": "promptString", "id": question.variable, "description": question.title, "password": question.secret}
        for question in server.variables
    ]
    arguments = [*server.git()[1:], *(f"${{input:{question.name}}}" for question in server.plain)]
    environment = {str(question.variable): f"${{input:{question.variable}}}" for question in server.variables}
    config: dict[str, Any] = {"type": "stdio", "command": "uvx", "args": arguments} | (
        {"env": environment} if environment else {}
    )
    query = {"name": server.name, "config": json.dumps(config)}
    if inputs or secrets:
        query["inputs"] = json.dumps([*inputs, *secrets])
    return f"https://vscode.dev/redirect/mcp/install?{urlencode(query, quote_via=quote)}"


def _cursor_link(server: Member) -> str | None:
    """The link to Cursor's page for an entry; None if the entry needs a path that only its user knows."""
    if any(question.kind != "directory" for question in server.plain):
        return None
    folders = ["${workspaceFolder}" for _ in server.plain]
    environment = {str(question.variable): f"${{env:{question.variable}}}" for question in server.variables}
    config: dict[str, Any] = {"command": "uvx", "args": [*server.git()[1:], *folders]}
    config |= {"env": environment} if environment else {}
    query = {"name": server.name, "config": base64.b64encode(json.dumps(config).encode()).decode()}
    return f"https://cursor.com/en/install-mcp?{urlencode(query)}"


def _extras(host: str, server: Member, language: Language) -> Iterator[str]:
    """Commands and links that write the entry, once per server, for use without a clone."""
    words = [*server.git(), *server.examples()]
    hands_on: list[str] = []
    for question in server.variables:
        hands_on += ["--env", f"{question.variable}={question.example}"]
    match host:
        case "vscode":
            text = "[Install in VS Code]({link}), or in a dev container's `devcontainer.json`:"
            yield language.label(text, link=_vscode_link(server))
            yield ""
            folder = [
                "/workspaces/project" if question.kind == "directory" else question.example for question in server.plain
            ]
            contained: dict[str, Any] = {"type": "stdio", "command": "uvx", "args": [*server.git()[1:], *folder]}
            entry = {"customizations": {"vscode": {"mcp": {"servers": {server.name: contained}}}}}
            yield from _fenced("json", json.dumps(entry, indent=2))
        case "cursor":
            if link := _cursor_link(server):
                yield language.label("[Install in Cursor]({link})", link=link)
                yield ""
        case "goose":
            pairs = [("cmd", words[0]), *(("arg", word) for word in words[1:]), ("id", server.name)]
            pairs.append(("name", server.name))
            yield language.label("[Install in Goose]({link})", link=f"goose://extension?{urlencode(pairs)}")
            yield ""
        case _:
            pass
    add_command = load_host(host).add_command
    if add_command is not None:
        yield language.say("or, in one line:")
        yield ""
        yield from _fenced("sh", shlex.join([*add_command.split(), server.name, *hands_on, "--", *words]))
