"""Every example in the documents, found and understood: configuration by host, links that install, command lines.

`understood(block)` gives what a block starts or connects to, and raises `Wrong` for whatever it can't vouch for; a
block of a kind nobody here knows is wrong too, so that no example goes untested.
"""

from __future__ import annotations

import ast
import base64
import importlib.util
import itertools
import json
import re
import shlex
import sqlite3
import subprocess
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import jsonschema
import yaml

from documents.schemas import DEV_CONTAINER, HOSTS, VSCODE_INPUT, VSCODE_SERVERS
from tools.members import INSTALLED, Member, members
from tools.pages import WINDOWS_HOME

ROOT = Path(__file__).parents[2]
SERVERS = members(ROOT)
EXAMPLE = Member(ROOT / "examples", "mcp_example")
# Pages whose examples a test of their own takes out and tries.
_TRIED_ELSEWHERE = ("docs/team.md",)
MOUNT = Member(ROOT / "shared", "mcp_batteries.mount")


class Wrong(AssertionError):
    """An example that would not work, with the reason."""


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    language: str
    text: str
    info: str = ""
    """What follows the language on the fence's line."""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Start:
    """A command line that an example gives, with inputs as the documents' own placeholders."""

    words: tuple[str, ...]


@dataclass(frozen=True)
class Connect:
    url: str


Meaning = Start | Connect


def pages() -> list[Path]:
    """Every Markdown file of the project, new ones too, but for those that a test of their own tries."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    names = [name for name in listed.stdout.decode().split("\0") if name and name not in _TRIED_ELSEWHERE]
    return [ROOT / name for name in names if (ROOT / name).exists()]


def blocks(page: Path) -> Iterator[Block]:
    """The code blocks of `page`: fenced with a language, or indented, which are command lines here."""
    name = page.relative_to(ROOT).as_posix()
    yield from blocks_of(page.read_text("utf-8"), name)


def blocks_of(text: str, page: str) -> Iterator[Block]:
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        fence = re.match(r"\s*(```+)(.*)$", lines[at])
        if fence:
            end = next((n for n in range(at + 1, len(lines)) if lines[n].strip() == fence[1]), None)
            if end is None:
                raise Wrong(f"{page}:{at + 1}: a fence that nobody closes")
            language, _, info = fence[2].strip().partition(" ")
            yield Block(page, at + 1, language, "\n".join(lines[at + 1 : end]), info)
            at = end + 1
        elif lines[at].startswith("    ") and (at == 0 or not lines[at - 1].strip()):
            end = at
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            yield Block(page, at + 1, "sh", "\n".join(line[4:] for line in lines[at:end]).strip())
            at = end
        else:
            at += 1


def links(page: Path) -> Iterator[Block]:
    """Links that open a program, one block each."""
    name = page.relative_to(ROOT).as_posix()
    for number, line in enumerate(page.read_text("utf-8").split("\n"), 1):
        for target in re.findall(r"\]\(((?!https?:|mailto:)[a-z]+:[^)\s]+|https?://[^)\s]+/install[^)\s]*)\)", line):
            yield Block(name, number, "link", target)


def understood(block: Block) -> list[Meaning]:
    """What `block` starts and connects to.

    Raises:
        Wrong: it is no such thing, or not a right one.
    """
    readers = {
        "json": _json,
        "toml": _toml,
        "yaml": _yaml,
        "sh": _shell,
        "bash": _shell,
        "python": _python,
        "sql": _sql,
        "link": _link,
    }
    # What a console shows is followed word by word by `test_one_file`; `test_scripts` runs the scripts of `call_tools`.
    if block.language in ("text", "diff", "mermaid", "console", "js"):
        return []
    if block.language not in readers:
        raise Wrong(f"{block}: nobody here checks the language {block.language!r}")
    try:
        return readers[block.language](block)
    except (ValueError, yaml.YAMLError, SyntaxError) as error:
        raise Wrong(f"{block}: {error}") from error
    except jsonschema.ValidationError as error:
        raise Wrong(f"{block}: {error.message} at {error.json_path}") from error


def _validate(data: Any, schema: Mapping[str, Any]) -> None:
    # `jsonschema.validate` would check the schema itself each time, which takes most of the time.
    for error in jsonschema.Draft202012Validator(schema).iter_errors(data):
        raise error


def placed(words: Sequence[str]) -> tuple[str, ...]:
    """`words` with each `${input:NAME}` as the example that the server gives for it."""
    examples = {f"${{input:{asked.name}}}": asked.example for server in SERVERS for asked in server.install_questions}
    examples["${workspaceFolder}"] = "/path/to/folder"
    return tuple(_off_windows(examples.get(word, word)) for word in words)


def _off_windows(word: str) -> str:
    """A path of the page about Windows as the other pages have it."""
    for there, here in {rf"{WINDOWS_HOME}\.local\bin": INSTALLED, rf"{WINDOWS_HOME}\folder": "/path/to/folder"}.items():
        if word == there or word.startswith(there + "\\"):
            return here + word.removeprefix(there).replace("\\", "/").removesuffix(".exe")
    return word


def _host_of(block: Block, data: Mapping[str, Any]) -> list[str]:
    """The hosts one of which must accept `data`: the page's own, else all that use its first key."""
    own = re.fullmatch(r"docs/hosts/([a-z-]+)\.md", block.page)
    if own and own[1] in HOSTS:
        return [own[1]]
    hosts = [name for name, schema in HOSTS.items() if set(schema["required"]) <= set(data)]
    if not hosts:
        raise Wrong(f"{block}: no host knows {', '.join(data)}; if it is no configuration, call it text")
    return hosts


def _configuration(block: Block, data: Any) -> list[Meaning]:
    if not isinstance(data, dict):
        raise Wrong(f"{block}: no host's configuration")
    if "customizations" in data:
        _validate(data, DEV_CONTAINER)
        return [_meaning(entry) for entry in data["customizations"]["vscode"]["mcp"]["servers"].values()]
    failures: list[jsonschema.ValidationError] = []
    for host in _host_of(block, data):
        try:
            _validate(data, HOSTS[host])
        except jsonschema.ValidationError as error:
            failures.append(error)
            continue
        if host in ("vscode", "visual-studio"):
            _inputs_agree(block, data)
        (key,) = HOSTS[host]["required"]
        return [_meaning(entry) for entry in data[key].values()]
    raise failures[0]


def _inputs_agree(block: Block, data: Mapping[str, Any]) -> None:
    asked = {item["id"] for item in data.get("inputs", [])}
    used = set(re.findall(r"\$\{input:(\w+)\}", json.dumps(data)))
    if asked != used:
        raise Wrong(f"{block}: asks for {sorted(asked)} and uses {sorted(used)}")


def _meaning(entry: Mapping[str, Any]) -> Meaning:
    for key in ("url", "httpUrl", "serverUrl", "baseUrl", "uri"):
        if key in entry:
            return Connect(entry[key])
    command = entry.get("command", entry.get("cmd"))
    words = command if isinstance(command, list) else [command, *entry.get("args", [])]
    return Start(placed(words))


def _json(block: Block) -> list[Meaning]:
    return _configuration(block, json.loads(block.text))


def _toml(block: Block) -> list[Meaning]:
    told = tomllib.loads(block.text)
    # A file of the server's own says which it is.
    return [] if block.info.startswith("title=") else _configuration(block, told)


def _yaml(block: Block) -> list[Meaning]:
    return _configuration(block, yaml.safe_load(block.text))


def _python(block: Block) -> list[Meaning]:
    ast.parse(block.text)
    return []


def _sql(block: Block) -> list[Meaning]:
    if not sqlite3.complete_statement(block.text.rstrip().rstrip(";") + "\n;"):
        raise Wrong(f"{block}: no complete statement")
    return []


def _link(block: Block) -> list[Meaning]:
    parts = urlsplit(block.text)
    query = parse_qs(parts.query)
    match parts.scheme:
        case "https" if parts.netloc == "vscode.dev":
            if parts.path != "/redirect/mcp/install" or set(query) - {"name", "config", "inputs"}:
                raise Wrong(f"{block}: not VS Code's link")
            told, inputs = json.loads(query["config"][0]), json.loads(query.get("inputs", ["[]"])[0])
            _validate({query["name"][0]: told}, VSCODE_SERVERS)
            _validate(inputs, {"type": "array", "items": VSCODE_INPUT})
            _inputs_agree(block, {"inputs": inputs, "entry": told})
            return [_meaning(told)]
        case "https" if parts.netloc == "cursor.com":
            if parts.path != "/en/install-mcp":
                raise Wrong(f"{block}: not Cursor's link")
            told = json.loads(base64.b64decode(query["config"][0], validate=True))
            _validate({"mcpServers": {query["name"][0]: told}}, HOSTS["cursor"])
            return [_meaning(told)]
        case "goose":
            pairs = parse_qsl(parts.query, strict_parsing=True)
            if parts.netloc != "extension" or not {"cmd", "id", "name"} <= {key for key, _ in pairs}:
                raise Wrong(f"{block}: not Goose's link")
            words = [value for key, value in pairs if key in ("cmd", "arg")]
            return [Start(placed(words))]
        case _:
            raise Wrong(f"{block}: nobody here knows links to {parts.scheme}")


def _shell(block: Block) -> list[Meaning]:
    found: list[Meaning] = []
    for line in block.text.replace("\\\n", " ").split("\n"):
        folder = ROOT
        for part in re.split(r"\s&&\s", line):
            words = shlex.split(part, comments=True)
            while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
                words = words[1:]
            if words[:1] == ["cd"]:
                _exists(block, words[1])
                folder = ROOT / words[1]
            elif words:
                found += _command(block, words, folder)
    return found


def _command(block: Block, words: list[str], folder: Path) -> list[Meaning]:
    commands = {server.command for server in (*SERVERS, EXAMPLE, MOUNT)}
    if "--workspace" in words and any(word.startswith("./") for word in words):
        raise Wrong(f"{block}: it runs in a project's folder, where no path in the clone is found")
    match words:
        case ["uvx", *_] | ["docker", "run", *_]:
            return [Start(placed(words))]
        case [program, *_] if program in commands or Path(program).name in commands:
            return [Start(placed(words))]
        case ["uv", "run", program, *_] if program in commands:
            return [Start(placed(words))]
        case ["claude" | "codex" | "devin" | "gemini", "mcp", "add", name, *rest] if (
            "--" in rest and name.isidentifier()
        ):
            return [Start(placed(rest[rest.index("--") + 1 :]))]
        case ["uv", "tool", "install", path]:
            _exists(block, path)
        case ["uv", "run", "pytest", *paths]:
            for path in paths[: paths.index("-m")] if "-m" in paths else paths:
                _exists(block, path)
        case ["uv", "run", "just", *verb]:
            return _command(block, ["just", *verb], folder)
        case ["uv", "run", "python", "-m", module, *_]:
            if importlib.util.find_spec(module) is None:
                raise Wrong(f"{block}: there is no module {module}")
        case ["uv", "run", "python", script, *_]:
            _exists(block, script)
        case ["just", verb, *_] if re.search(rf"^{re.escape(verb)}\b.*:$", (ROOT / "justfile").read_text(), re.M):
            pass
        case ["npx", package, *_] if re.fullmatch(r"@?[\w/-]+@[\d.]+", package):
            pass  # Anything else would run whatever is newest.
        case ["docker", "build" | "compose", *_]:
            for flag, value in itertools.pairwise(words):
                if flag == "-f":
                    _exists(block, value)
        case ["npm", "ci"] | ["npm", "test"] | ["npm", "run", _]:
            verb = {"ci": None, "test": "test"}.get(words[1], words[-1])
            if verb and verb not in json.loads((folder / "package.json").read_text("utf-8"))["scripts"]:
                raise Wrong(f"{block}: {folder.name} has no script {verb}")
        case ["git", "clone", *_] | ["uv", "build", "--all-packages", *_] | ["curl", *_] | ["kubectl", *_]:
            pass
        case _:
            raise Wrong(f"{block}: nobody here knows `{shlex.join(words)}`")
    return []


def _exists(block: Block, path: str) -> None:
    if not (ROOT / path).exists():
        raise Wrong(f"{block}: there is no {path}")


def server_of(words: Sequence[str]) -> Member:
    """The server that a command line names, by its command or its image.

    Raises:
        Wrong: it names none.
    """
    for server in (*SERVERS, EXAMPLE, MOUNT):
        if any(word == server.image or Path(word).name == server.command for word in words):
            return server
    raise Wrong(f"`{shlex.join(words)}` starts none of our servers")
