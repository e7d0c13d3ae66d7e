"""`--install HOST` and `--uninstall HOST`: the entry goes into the host's own configuration file, and out again.

Only text is inserted, so comments, order and spacing of the file stay as they are. What was inserted is noted, and the
file as it was is kept, in a private folder of the user: taking out an entry gives back the same bytes, and leaves alone
whatever else was edited in between.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import quote as urlquote

from platformdirs import user_data_path

from mcp_batteries.cli.hosts import entry, environment, launch, not_there
from mcp_batteries.errors import Conflict, Invalid, NotFound, Problem, Unavailable, quote, reason
from mcp_batteries.executables import find_executable
from mcp_batteries.settings import Settings

__all__ = ["Places", "install", "uninstall"]

_RESTART = {
    "vscode": "run “MCP: List Servers” in VS Code and start it",
    "claude-desktop": "quit Claude Desktop, also from its tray icon, and open it again",
    "claude-code": "start a new session of Claude Code; `/mcp` shows the server",
    "cursor": "reload Cursor's window, or switch the server on under Settings, MCP",
    "windsurf": "press Refresh in Windsurf's MCP panel",
    "copilot-cli": "start Copilot CLI again",
    "codex": "start Codex again",
    "gemini-cli": "start Gemini CLI again; `/mcp` shows the server",
    "zed": "nothing: Zed reads its settings again by itself",
    "goose": "start a new session of Goose",
    "opencode": "start opencode again",
    "visual-studio": "nothing: Visual Studio starts it when its file is saved; choose its tools in the Copilot chat",
    "lm-studio": "nothing: LM Studio starts it when its file is saved",
    "cline": "switch it on in Cline's MCP Servers panel",
    "continue": "reload the window; it works in agent mode",
}

_MARK = "\ufeff"
"""What some editors on Windows put before a file in UTF-8; it stays there."""


@dataclass(frozen=True)
class Places:
    """Where a user's files are on one machine.

    Attributes:
        platform: as `sys.platform` says it.
        roaming, local: `%APPDATA%` and `%LOCALAPPDATA%` on Windows.
        notes: the folder for what was installed.
    """

    home: Path
    platform: str
    config: Path
    roaming: Path
    local: Path
    notes: Path

    @classmethod
    def of_this_user(cls, environment: Mapping[str, str] = os.environ) -> Places:
        """The places of the user who runs this process."""
        home = Path.home()
        return cls(
            home,
            sys.platform,
            Path(environment.get("XDG_CONFIG_HOME") or home / ".config"),
            Path(environment.get("APPDATA") or home / "AppData" / "Roaming"),
            Path(environment.get("LOCALAPPDATA") or home / "AppData" / "Local"),
            user_data_path("mcp-batteries", appauthor=False) / "installed",
        )

    def application(self, *names: str) -> Path:
        """A file of a desktop program, where the system keeps such files."""
        if self.platform == "win32":
            return self.roaming.joinpath(*names)
        if self.platform == "darwin":
            return self.home.joinpath("Library", "Application Support", *names)
        return self.config.joinpath(*names)

    def _packaged(self, package: str) -> Path | None:
        """Where Windows keeps what a program that was installed as a package (MSIX) takes for `%APPDATA%\\NAME`."""
        if self.platform != "win32":
            return None
        found = sorted(self.local.glob(f"Packages/{package}"))
        return found[0] / "LocalCache" / "Roaming" / package.partition("_")[0] if found else None

    def file(self, host: str) -> Path:
        """The configuration file of `host` for this user.

        Raises:
            Invalid: the host has none that could be written.
        """
        windows = self.platform == "win32"
        match host:
            case "vscode":
                return self.application("Code", "User", "mcp.json")
            case "claude-desktop":
                return (self._packaged("Claude_*") or self.application("Claude")) / "claude_desktop_config.json"
            case "claude-code":
                return self.home / ".claude.json"
            case "cursor":
                return self.home / ".cursor" / "mcp.json"
            case "windsurf":
                return self.home / ".codeium" / "windsurf" / "mcp_config.json"
            case "copilot-cli":
                return self.home / ".copilot" / "mcp-config.json"
            case "codex":
                return self.home / ".codex" / "config.toml"
            case "gemini-cli":
                return self.home / ".gemini" / "settings.json"
            case "zed":
                return self.roaming / "Zed" / "settings.json" if windows else self.config / "zed" / "settings.json"
            case "goose":
                folder = self.roaming / "Block" / "goose" / "config" if windows else self.config / "goose"
                return folder / "config.yaml"
            case "opencode":
                return self.home / ".config" / "opencode" / "opencode.json"
            case "visual-studio":
                return self.home / ".mcp.json"
            case "lm-studio":
                return self.home / ".lmstudio" / "mcp.json"
            case "cline":
                storage = ("Code", "User", "globalStorage", "saoudrizwan.claude-dev")
                return self.application(*storage, "settings", "cline_mcp_settings.json")
            case "continue":
                return self.home / ".continue" / "mcpServers" / "mcp.json"
            case _:
                raise Invalid(
                    f"{host} has no configuration file for servers.",
                    f"Import what --print-config {host} prints, in its settings.",
                )


def install(host: str, settings: Settings, places: Places) -> str:
    """Write the entry of these settings into the file of `host`; what to tell the person.

    Raises:
        Invalid: the host has no such file, or cannot reach a server with these settings.
        Conflict: there is another server of that name.
        Unavailable: the file cannot be read, understood or written.
    """
    text = entry(host, settings, absolute=True)
    name = settings.COMMAND.removeprefix("mcp-")
    if host == "cherry-studio":
        # Its servers are in a database of its own, which takes them by a link.
        link = f"cherrystudio://mcp/install?servers={urlquote(base64.b64encode(text.encode()).decode(), safe='')}"
        missing = ", ".join(sorted(str(asked.variable) for asked in environment(settings)))
        after = f" Set {missing} in its settings then." if missing else ""
        return f"Open this link: Cherry Studio takes the entry `{name}` from it.{after}\n{link}"
    path = _real(places.file(host))
    note = _note(host, settings, places)
    if note.exists():
        _take_out(note)
    before = _read(path)
    held = before or ""
    pieces = list(_pieces(host, name, held, text, path)) if held.strip() else [_Piece(len(held), text + "\n")]
    after = _inserted(held, pieces)
    _check(host, name, after, path)
    backup = note.with_suffix(".backup")
    _write(backup, held)
    _write(note, json.dumps({"file": str(path), "created": before is None, "pieces": pieces}))
    _write(path, after)
    lines = [f"Wrote the entry `{name}` into {path}."]
    if before is not None:
        lines.append(f"The file as it was: {backup}.")
    if variables := environment(settings):
        shown = any(asked.example in text for asked in variables)
        where = "in its place in that file" if shown else "where the host finds it"
        names = ", ".join(sorted(str(asked.variable) for asked in variables))
        lines.append(f"No password or key was written. Set {names} {where}.")
    if missing := not_there(settings):
        lines.append(missing)
    lines.append(f"Then {_RESTART[host]}.")
    lines.append(f"To undo: {_typed([*launch(settings.COMMAND, settings.FILE), '--uninstall', host])}")
    return "\n".join(lines)


def _typed(words: list[str]) -> str:
    """`words` as a person types them here: the program by its name where a shell finds the same one."""
    program = words[0]
    name = os.path.basename(program).removesuffix(".exe")
    found = find_executable(name)
    if found and os.path.isfile(program) and os.path.samefile(found, program):
        words = [name, *words[1:]]
    return subprocess.list2cmdline(words) if sys.platform == "win32" else shlex.join(words)


def uninstall(host: str, settings: Settings, places: Places) -> str:
    """Take the entry out of the file of `host`; what to tell the person.

    Raises:
        NotFound: nothing was installed there.
        Conflict: the entry was edited since.
    """
    note = _note(host, settings, places)
    if not note.exists():
        raise NotFound(
            f"{settings.COMMAND} --install {host} has written nothing here.",
            f"Remove the entry from {places.file(host)} by hand.",
        )
    return f"Took the entry out of {_take_out(note)}."


class _Piece(NamedTuple):
    at: int
    """Characters before it in the new text."""
    text: str


def _note(host: str, settings: Settings, places: Places) -> Path:
    return places.notes / f"{settings.COMMAND}.{host}.json"


def _take_out(note: Path) -> Path:
    """The file out of which what `note` tells of was taken; the host's may be another one by now."""
    told = cast("dict[str, Any]", json.loads(note.read_text("utf-8")))
    path = Path(told["file"])
    now = _read(path)
    # The same as before: the file was not written, or somebody else took the entry out.
    if now is not None and now != _read(note.with_suffix(".backup")):
        for at, piece in reversed([_Piece(*pair) for pair in told["pieces"]]):
            if now[at : at + len(piece)] != piece:
                at = now.find(piece) if now.count(piece) == 1 else -1
            if at < 0:
                raise Conflict(
                    f"The entry in {path} was edited since it was written.",
                    f"Remove it by hand, then delete {note}. The file as it was: {note.with_suffix('.backup')}.",
                )
            now = now[:at] + now[at + len(piece) :]
        if now or not told["created"]:
            _write(path, now)
        else:
            path.unlink()
    note.unlink()
    note.with_suffix(".backup").unlink(missing_ok=True)
    return path


def _pieces(host: str, name: str, before: str, text: str, path: Path) -> Iterator[_Piece]:
    """What to insert into `before`, which is not empty, in the order of the places."""
    if host == "codex":
        servers = _toml(before, path).get("mcp_servers", {})
        if not isinstance(servers, dict):
            raise Unavailable(f"{path} has something else under `mcp_servers`.", "Mend the file, then try again.")
        if name in servers:
            raise _taken(name, path)
        yield _Piece(len(before), ("" if before.endswith("\n") else "\n") + f"\n{text}\n")
        return
    if host == "goose":
        yield _in_yaml(name, before, text, path)
        return
    data = cast("dict[str, Any]", json.loads(text))
    found = _Json(before, path)
    shift = 0
    for at, piece in sorted(_in_json(found, name, data, path)):
        yield _Piece(at + shift, piece)
        shift += len(piece)


def _in_json(found: _Json, name: str, data: Mapping[str, Any], path: Path) -> Iterator[tuple[int, str]]:
    missing: dict[str, Any] = {}
    for key, value in data.items():
        span = found.members.get(key)
        if span is None:
            missing[key] = value
        elif isinstance(value, list):
            known = {item.get("id") for item in cast("list[dict[str, Any]]", found.value.get(key) or [])}
            fresh = [item for item in cast("list[dict[str, Any]]", value) if item["id"] not in known]
            if fresh:
                inside = ",\n".join(_indented(item, 2) for item in fresh)
                yield span, f"\n{inside}" + ("," if found.value[key] else "\n  ")
        else:
            if name in cast("dict[str, Any]", found.value.get(key) or {}):
                raise _taken(name, path)
            inside = ",\n".join(f"    {json.dumps(one)}: {_indented(it, 2).lstrip()}" for one, it in value.items())
            yield span, f"\n{inside}" + ("," if found.value[key] else "\n  ")
    if missing:
        inside = ",\n".join(f"  {json.dumps(key)}: {_indented(value, 1).lstrip()}" for key, value in missing.items())
        yield found.start, f"\n{inside}" + ("," if found.value else "\n")


def _indented(value: Any, depth: int) -> str:
    pad = "  " * depth
    return pad + json.dumps(value, indent=2, ensure_ascii=False).replace("\n", "\n" + pad)


class _Json:
    """JSON with comments and trailing commas, as hosts write it: where its outermost members begin."""

    _TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/|[{}\[\]:,\ufeff]|[^\s{}\[\]:,"/\ufeff]+', re.DOTALL)

    def __init__(self, text: str, path: Path) -> None:
        self.members: dict[str, int] = {}
        """By key, the place behind the bracket that opens the member's object or array."""
        self.start = -1
        """The place behind the first brace."""
        plain: list[str] = []
        depth, key = 0, ""  # the key as it is written: what it spells is known once all is understood
        spans: dict[str, int] = {}
        for found in self._TOKEN.finditer(text):
            token = found[0]
            if token.startswith(("//", "/*")) or token == _MARK:
                continue
            if token in "}]" and plain and plain[-1] == ",":
                plain.pop()
            if token in "{[":
                if depth == 0:
                    self.start = found.end()
                elif depth == 1 and plain[-1] == ":":
                    spans[key] = found.end()
                depth += 1
            elif token in "}]":
                depth -= 1
            elif depth == 1 and token.startswith('"') and plain[-1] in "{,":
                key = token
            plain.append(token)
        try:
            value = json.loads(" ".join(plain))
        except (ValueError, RecursionError) as error:
            raise Unavailable(f"{path} cannot be understood: {error}.", "Mend the file, then try again.") from None
        if not isinstance(value, dict):
            raise Unavailable(f"{path} does not hold an object.", "Mend the file, then try again.")
        self.value = cast("dict[str, Any]", value)
        self.members |= {cast("str", json.loads(key)): at for key, at in spans.items()}


def _in_yaml(name: str, before: str, text: str, path: Path) -> _Piece:
    lines = text.split("\n")
    head = re.search(r"^\ufeff?extensions:[ \t]*(#[^\n]*)?(\r?\n|\Z)", before, re.MULTILINE)
    if head is None:
        if re.search(r"^\ufeff?extensions:", before, re.MULTILINE):
            raise Unavailable(
                f"{path} lists its extensions on one line.", "Give each a line of its own, then try again."
            )
        return _Piece(len(before), ("" if before.endswith("\n") else "\n") + text + "\n")
    rest = before[head.end() :]
    block = re.match(r"(?:[ \t]+[^\n]*\n?|[ \t]*#[^\n]*\n|\r?\n)*", rest)
    members = block[0] if block else ""
    indented = re.search(r"^([ \t]+)[^\s#]", members, re.MULTILINE)
    indent = indented[1] if indented else "  "
    if re.search(rf"^{indent}[\"']?{re.escape(name)}[\"']?:", members, re.MULTILINE):
        raise _taken(name, path)
    own = [indent + line[2:] if not line.startswith("    ") else indent * 2 + line[4:] for line in lines[1:]]
    return _Piece(head.end(), ("" if head[0].endswith("\n") else "\n") + "\n".join(own) + "\n")


def _check(host: str, name: str, after: str, path: Path) -> None:
    """Read the new text as the host would, before anything is written."""
    if host == "codex":
        try:
            held = name in _toml(after, path)["mcp_servers"]
        except Unavailable:  # It was understood before: TOML lets nobody add to a table in braces.
            raise Unavailable(
                f"{path} lists its servers on one line.", "Give each a table of its own, then try again."
            ) from None
    elif host == "goose":
        held = re.search(rf"^\s+{re.escape(name)}:", after, re.MULTILINE) is not None
    else:
        held = any(name in value for value in _Json(after, path).value.values() if isinstance(value, dict))
    if not held:
        raise Unavailable(f"{path} cannot take the entry.", f"Paste what --print-config {host} prints.")


def _toml(text: str, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text.removeprefix(_MARK))
    except tomllib.TOMLDecodeError as error:
        raise Unavailable(f"{path} cannot be understood: {error}.", "Mend the file, then try again.") from None


def _taken(name: str, path: Path) -> Problem:
    return Conflict(f"{path} has another server {quote(name)}.", "Remove or rename that entry, then try again.")


def _inserted(text: str, pieces: list[_Piece]) -> str:
    for at, piece in pieces:
        text = text[:at] + piece + text[at:]
    return text


def _real(path: Path) -> Path:
    # A link, as managers of dotfiles make it, stays one.
    return Path(os.path.realpath(path))


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise Unavailable(f"{path} cannot be read: {error}.", "Mend the file, then try again.") from None


def _write(path: Path, text: str) -> None:
    """Replace the file as a whole, with the mode it had; a new one is for its owner only."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(text.encode())
            if path.exists():
                shutil.copymode(path, temporary)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise Unavailable(
            f"{path} cannot be written: {reason(error)}.", "See who may write it, then try again."
        ) from None
