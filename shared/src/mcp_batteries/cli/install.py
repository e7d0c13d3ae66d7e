"""`--install HOST` and `--uninstall HOST`: put the entry into the host's own configuration file, and take it out.

`--install` only inserts text, so the file's comments, order and spacing stay. It notes what it inserted, and keeps the
old file, in a private folder of the user. So `--uninstall` restores the same bytes, and leaves other edits since then
alone.
"""

from __future__ import annotations

import base64
import errno
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote as urlquote

from mcp_batteries.cli import insertion
from mcp_batteries.cli.hosts import entry, environment, launch, not_there
from mcp_batteries.cli.places import Places
from mcp_batteries.errors import Conflict, NotFound, Unavailable, reason
from mcp_batteries.executables import as_typed, find_executable
from mcp_batteries.settings import Settings

__all__ = ["install", "uninstall"]

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


def install(host: str, settings: Settings, places: Places) -> str:
    """Write the entry for these settings into the file of `host`; returns the message for the person.

    Raises:
        Invalid: the host has no such file, or cannot reach a server with these settings.
        Conflict: there is another server of that name.
        Unavailable: the file cannot be read, understood or written.
    """
    text = entry(host, settings, absolute=True)
    name = settings.COMMAND.removeprefix("mcp-")
    if host == "cherry-studio":
        # It keeps servers in its own database, to which a link adds them.
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
    pieces = list(insertion.pieces(host, name, held, text, path))
    after = insertion.inserted(held, pieces)
    insertion.check(host, name, after, path)
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
    """`words` as a person types them: the program by name if a shell finds the same program."""
    program = words[0]
    name = os.path.basename(program).removesuffix(".exe")
    found = find_executable(name)
    if found and os.path.isfile(program) and os.path.samefile(found, program):
        words = [name, *words[1:]]
    return as_typed(words)


def uninstall(host: str, settings: Settings, places: Places) -> str:
    """Take the entry out of the file of `host`; returns the message for the person.

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


def _note(host: str, settings: Settings, places: Places) -> Path:
    return places.notes / f"{settings.COMMAND}.{host}.json"


def _take_out(note: Path) -> Path:
    """The file without the entry that `note` describes; the host may use another file by now."""
    told = cast("dict[str, Any]", json.loads(note.read_text("utf-8")))
    path = Path(told["file"])
    now = _read(path)
    # The same as before: the file was not written, or somebody else took the entry out.
    if now is not None and now != _read(note.with_suffix(".backup")):
        for at, piece in reversed([insertion.Piece(*pair) for pair in told["pieces"]]):
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
    """Replace the whole file and keep its mode; a new file is for its owner only."""
    try:
        # A folder that may be written would let its files be replaced all the same.
        if path.exists() and not path.stat().st_mode & 0o222:
            raise PermissionError(errno.EACCES, "it is read-only")
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
