"""One server's entry in the file of one host: what the file and the notes say of it, and how the file is changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from mcp_batteries.cli.config_file import Changed, ConfigFile
from mcp_batteries.cli.entries import is_started_by, server_of
from mcp_batteries.cli.formats import ConfigFormat, Malformed, format_of
from mcp_batteries.cli.journal import Installed, Journal, NoteFiles, folder_of, lock_host
from mcp_batteries.cli.places import Places
from mcp_batteries.errors import Conflict, Unavailable, quote
from mcp_batteries.hosts.definition import load_host
from mcp_batteries.settings import Settings

__all__ = ["Edit", "Target", "config_path", "edit_file"]

_ATTEMPTS = 5


def config_path(host: str, settings: Settings, places: Places) -> Path:
    """Return the configuration file of `host` that the settings mean.

    Raises:
        Invalid: the host has none.
    """
    if settings.workspace:
        return places.workspace_file(host)
    return places.file(host)


@dataclass
class Target:
    """One server's entry in the file of one host.

    Attributes:
        file: as it was read.
        journal: the notes on it.
        notes: where the notes are.
    """

    host: str
    settings: Settings
    config_format: ConfigFormat
    file: ConfigFile
    journal: Journal
    notes: NoteFiles

    @classmethod
    def open(cls, host: str, settings: Settings, places: Places, path: Path) -> Target:
        """Read the file of a host and the notes on it.

        Raises:
            Unavailable: the file cannot be read.
        """
        file = ConfigFile.read(path)
        journal = Journal.load(places.notes, host, file.path)
        notes = NoteFiles(folder_of(places.notes, host, file.path))
        return cls(host, settings, format_of(host), file, journal, notes)

    @property
    def name(self) -> str:
        return self.settings.entry_name

    @property
    def installation(self) -> Installed:
        """What was written as this entry, if that was one of this server."""
        return self._installation_of(self.name)

    def _installation_of(self, name: str) -> Installed:
        installation = self.journal.entries.get(name)
        if installation is None or installation.command != self.settings.COMMAND:
            return Installed()
        return installation

    @property
    def takes_mark(self) -> bool:
        """Whether the host reads a file with a byte order mark: `JSON.parse` refuses it, and every server is lost."""
        form = load_host(self.host).format
        return form.language != "json" or form.comments or form.trailing_commas

    def encode(self, text: str) -> bytes:
        """Return the contents of the file with this text, and with its byte order mark if the host takes that."""
        mark = self.file.mark if self.takes_mark else ""
        return (mark + text).encode()

    def read(self) -> tuple[str, dict[str, Any]]:
        """Return the text without what the host would not read, and what it means.

        Raises:
            Unavailable: nobody can read it.
        """
        try:
            text = self.config_format.repair(self.file.text)
            return text, self.config_format.read_leniently(text)
        except Malformed as error:
            raise self.not_understood(error) from None

    def describe_other_changes(self) -> str:
        """Say, as the end of a sentence on an edit, what it changes in the file beside the entry."""
        text, _ = self.read()
        if self.file.contents in (None, self.encode(text)):
            return "and change nothing else there"
        return f"and take out the byte order mark or the trailing commas there, which {self.host} cannot read"

    def not_understood(self, error: Malformed) -> Unavailable:
        return Unavailable(
            f"{self.file.path} cannot be understood: {error}.",
            f"Mend the file, then try again, or edit it by hand: --print-config {self.host} prints the entry.",
        )

    def find(self, document: dict[str, Any], container: str) -> dict[str, Any] | None:
        """Return our entry; None if there is none.

        Raises:
            Conflict: there is another server of that name.
            Unavailable: something else is where servers belong.
        """
        servers: Any = document.get(container, {})
        if servers is None and load_host(self.host).format.language == "yaml":
            # A key without a value, as it is written in YAML.
            servers = {}
        if not isinstance(servers, dict):
            raise Unavailable(
                f"{self.file.path} has something else under {quote(container)}.", "Mend the file, then try again."
            )
        value = cast("dict[str, Any]", servers).get(self.name)
        if value is None:
            return None
        if not self.is_own(self.name, value):
            other_server = server_of(value)
            failure = f"{self.file.path} has something else under the name {quote(self.name)}."
            if other_server:
                failure = f"{self.file.path} has another server {quote(self.name)}, which is {quote(other_server)}."
            raise Conflict(failure, "Remove or rename that entry, or give this one another name: --name NAME.")
        return cast("dict[str, Any]", value)

    def is_own(self, name: str, value: Any) -> bool:
        """Return whether what the file has as the entry `name` starts, or connects to, the server of the settings."""
        return is_started_by(value, self.settings, self.settings.server_url, self._installation_of(name).entry)


@dataclass
class Edit:
    """What a file of a host is to hold.

    Attributes:
        contents: None if the file is to go.
        replacement: what the entry started before and what it starts now; empty if that is the same.
        backups: copies of the file as it was, the oldest first: of an installation the oldest and the new one, of a
            removal all that stay because they hold what the removed entry replaced.
    """

    contents: bytes | None
    replacement: Sequence[str] = ()
    backups: Sequence[Path] = ()

    def commit(self, target: Target) -> Sequence[str]:
        """Put the contents in the place of the file, then keep the notes on it; return why notes could not be kept.

        Raises:
            Changed: the file is no longer what was read.
            Unavailable: it cannot be written.
        """
        if self.contents is None:
            with target.notes.stage() as problems:
                target.file.remove()
            return problems
        with target.file.stage(self.contents) as new_file, target.notes.stage() as problems:
            new_file.commit()
        return problems


def edit_file(attempt: Callable[[], str], host: str, path: Path, settings: Settings, places: Places) -> str:
    """Edit a file, again if somebody else changes it meanwhile.

    Args:
        attempt: reads the file, edits it and returns the message for the person.

    Raises:
        Unavailable: somebody changes it each time.
    """
    if settings.dry_run:
        return attempt()
    with lock_host(places.notes, host):
        for _ in range(_ATTEMPTS):
            with suppress(Changed):
                return attempt()
    raise Unavailable(f"{path} was changed each time while it was edited.", "Close the host, then try again.")
