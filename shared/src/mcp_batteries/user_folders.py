"""The folders that servers keep for their user, each with its place on every system.

Whatever asks for such a folder asks here, so that `--purge` and the documents know all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from platformdirs import user_cache_path, user_data_path, user_state_path

__all__ = [
    "FIRST_ANSWERS",
    "FOLDERS",
    "NOTES",
    "READER_PASSWORDS",
    "UNDO",
    "UserFolder",
    "cache_folder",
    "data_folder",
    "notes_folder",
    "reader_passwords_folder",
    "table",
    "undo_folder",
]


def cache_folder(command: str) -> Path:
    """Return the folder for what a server would have to fetch or to read again."""
    return user_cache_path(command, appauthor=False)


def first_answers_folder() -> Path:
    """Return the folder for what servers answer first; `stdio.cached_handshake` finds it without this import."""
    return user_cache_path() / "mcp-batteries" / "first-answers"


def undo_folder() -> Path:
    """Return the folder for what mcp-fs replaced or deleted."""
    return user_state_path("mcp-fs-undo", appauthor=False)


def data_folder() -> Path:
    """Return the folder for what a server keeps until its user removes it, in a folder for each purpose."""
    return user_data_path("mcp-batteries", appauthor=False)


def notes_folder() -> Path:
    """Return the folder for notes on what `--install` wrote."""
    return data_folder() / "installed"


def reader_passwords_folder() -> Path:
    """Return the folder for the passwords of roles that `mcp-postgres --create-reader` made."""
    return data_folder() / "readers"


@dataclass(frozen=True)
class UserFolder:
    """A folder that stays when a server has ended.

    Attributes:
        contents: what is in it, in words.
        servers: whose it is; empty if all servers share it.
        find: returns its path for this user.
        linux, macos, windows: its path in the documents.
        elsewhere: what its contents belong to and --purge can't remove, with how a person does; empty for nothing.
    """

    contents: str
    servers: tuple[str, ...]
    find: Callable[[], Path]
    linux: str
    macos: str
    windows: str
    elsewhere: str = ""

    def is_of(self, command: str) -> bool:
        """Return whether a server keeps something here."""
        return not self.servers or command in self.servers


def _cache(command: str, contents: str) -> UserFolder:
    return UserFolder(
        contents=contents,
        servers=(command,),
        find=partial(cache_folder, command),
        linux=f"~/.cache/{command}",
        macos=f"~/Library/Caches/{command}",
        windows=rf"%LOCALAPPDATA%\{command}\Cache",
    )


FIRST_ANSWERS = UserFolder(
    contents="the lists of what each server offers",
    servers=(),
    find=first_answers_folder,
    linux="~/.cache/mcp-batteries/first-answers",
    macos="~/Library/Caches/mcp-batteries/first-answers",
    windows=r"%LOCALAPPDATA%\mcp-batteries\first-answers",
)

UNDO = UserFolder(
    contents="contents of files that were replaced or deleted, for `undo_changes`",
    servers=("mcp-fs",),
    find=undo_folder,
    linux="~/.local/state/mcp-fs-undo",
    macos="~/Library/Application Support/mcp-fs-undo",
    windows=r"%LOCALAPPDATA%\mcp-fs-undo",
)

NOTES = UserFolder(
    contents="hosts' files as they were before `--install`, until `--uninstall` or `--purge`",
    servers=(),
    find=notes_folder,
    linux="~/.local/share/mcp-batteries/installed",
    macos="~/Library/Application Support/mcp-batteries/installed",
    windows=r"%LOCALAPPDATA%\mcp-batteries\installed",
)

READER_PASSWORDS = UserFolder(
    contents="passwords of the roles that `--create-reader` made",
    servers=("mcp-postgres",),
    find=reader_passwords_folder,
    linux="~/.local/share/mcp-batteries/readers",
    macos="~/Library/Application Support/mcp-batteries/readers",
    windows=r"%LOCALAPPDATA%\mcp-batteries\readers",
    elsewhere=(
        "The role `mcp_reader` stays in PostgreSQL. To remove it, connect as an administrator: DROP OWNED BY "
        "mcp_reader in each database that it reads, then DROP ROLE mcp_reader."
    ),
)

FOLDERS = (
    UNDO,
    READER_PASSWORDS,
    _cache("mcp-fs", "text of documents that were read or searched"),
    _cache("mcp-github", "answers of GitHub"),
    _cache("mcp-weather", "answers of weather services, with the places that were asked about"),
    FIRST_ANSWERS,
    NOTES,
)

_TEMPORARY = (
    "what a running server needs: it goes with the server, or when the next one starts",
    ("`/tmp/mcp-*`", "`$TMPDIR/mcp-*`", r"`%TEMP%\mcp-*`"),
)


def table() -> str:
    """Return the Markdown table of all folders."""
    lines = ["| server | what is in it | Linux | macOS | Windows |", "| --- | --- | --- | --- | --- |"]
    for folder in FOLDERS:
        servers = ", ".join(f"`{server}`" for server in folder.servers) or "all"
        places = " | ".join(f"`{place}`" for place in (folder.linux, folder.macos, folder.windows))
        lines.append(f"| {servers} | {folder.contents} | {places} |")
    lines.append(f"| all | {_TEMPORARY[0]} | {' | '.join(_TEMPORARY[1])} |")
    return "\n".join(lines)
