"""`--install HOST` and `--uninstall HOST`: put the entry into the host's own configuration file, and take it out.

An entry is found by its name and command in what the file means, however somebody has written it, and only its own
text changes. The whole result is read as strictly as the host reads it, and compared with what was there, before it
takes the place of the file in one step. If nobody else has edited the file, `--uninstall` restores the same bytes.

Hosts' own commands (`code --add-mcp`, `claude mcp add`, `codex mcp add`) are not used: they start the whole host, which
may ask or wait, they cannot be taken back alike, and what they write is not known before.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote as urlquote

from mcp_batteries.cli.config_file import Changed, ConfigFile
from mcp_batteries.cli.entries import (
    Entry,
    describe_command,
    edited,
    is_started_by,
    is_valid,
    merge,
    server_of,
    without_entry,
)
from mcp_batteries.cli.formats import ConfigFormat, Malformed, format_of
from mcp_batteries.cli.hosts import describe_missing_paths, entry, environment, launch, server_url
from mcp_batteries.cli.journal import Installed, Journal, NoteFiles, locked
from mcp_batteries.cli.places import Places
from mcp_batteries.errors import Conflict, Invalid, NotFound, Problem, Unavailable, quote
from mcp_batteries.executables import find_executable, quote_command
from mcp_batteries.hosts.definition import load_host
from mcp_batteries.settings import Settings

__all__ = ["install", "typed_command", "uninstall"]

_ATTEMPTS = 5


@dataclass
class _Installation:
    """What writing an entry came to.

    Attributes:
        problems: why notes could not be kept.
        replacement: what the entry started before and what it starts now; empty if that is the same.
    """

    problems: Sequence[str]
    replacement: Sequence[str] = ()


@dataclass
class _Target:
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

    @property
    def name(self) -> str:
        return self.settings.COMMAND.removeprefix("mcp-")

    @property
    def backup(self) -> str:
        """The name of the file that keeps the host's file as it was."""
        return f"{self.settings.COMMAND}.{self.host}.backup"

    @property
    def original(self) -> str:
        """The name of the file that keeps what nobody else has edited since."""
        return f"{self.host}.original"

    @property
    def noted(self) -> Installed:
        return self.journal.entries.get(self.name, Installed())

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
        if not is_started_by(value, self.settings, server_url(self.settings), self.noted.entry):
            raise Conflict(
                f"{self.file.path} has another server {quote(self.name)}, which is {quote(server_of(value or {}))}.",
                "Remove or rename that entry, then try again.",
            )
        return cast("dict[str, Any]", value)


def install(host: str, settings: Settings, places: Places) -> str:
    """Write the entry for these settings into the file of `host`; returns the message for the person.

    An entry of the same server that is there already is replaced; what a person has added to it stays.

    Raises:
        Invalid: the host has no such file or cannot reach a server with these settings, or they name nothing to serve.
        Conflict: there is another server of that name.
        Unavailable: the file cannot be read, understood or written; then nothing has changed.
    """
    _refuse_incomplete(settings)
    text = entry(host, settings, absolute=True)
    name = settings.COMMAND.removeprefix("mcp-")
    if load_host(host).install_link:
        return _link_message(host, name, text, settings)
    path = places.file(host)
    with locked(places.notes, host):
        for _ in range(_ATTEMPTS):
            with suppress(Changed):
                target = _target(host, settings, places, path)
                return _report(target, text, places, _install(target, text))
    raise _changes_all_the_time(path)


def _refuse_incomplete(settings: Settings) -> None:
    """Refuse settings with which a host would start a server that has nothing to serve, and so ends at once."""
    if settings.transport != "stdio":
        return
    process, *mounted = settings.parts()
    for member in mounted or [process]:
        question = member.unanswered()
        if question is not None:
            raise Invalid(
                f"The command names no {question.name}, and {member.COMMAND} does not start without one.",
                f"Name one, such as {question.example}.",
            )


def _link_message(host: str, name: str, text: str, settings: Settings) -> str:
    """Return the message with the link that adds an entry to a host without a file."""
    definition = load_host(host)
    link = f"{definition.install_link}{urlquote(base64.b64encode(text.encode()).decode(), safe='')}"
    missing = ", ".join(sorted(str(question.variable) for question in environment(settings)))
    after = f" Set {missing} in its settings then." if missing else ""
    return f"Open this link: {definition.title} takes the entry `{name}` from it.{after}\n{link}"


def uninstall(host: str, settings: Settings, places: Places) -> str:
    """Take the entry out of the file of `host`; returns the message for the person.

    Raises:
        NotFound: it is not there.
        Conflict: there is another server of that name.
        Unavailable: the file cannot be read, understood or written; then nothing has changed.
    """
    with locked(places.notes, host):
        path = _installed_path(host, settings, places)
        for _ in range(_ATTEMPTS):
            with suppress(Changed):
                target = _target(host, settings, places, path)
                _uninstall(target)
                return f"Took the entry out of {target.file.path}."
    raise _changes_all_the_time(path)


def _changes_all_the_time(path: Path) -> Unavailable:
    return Unavailable(f"{path} was changed each time while it was edited.", "Close the host, then try again.")


def typed_command(settings: Settings, *words: str) -> str:
    """Return how a person types this server's command: by name if a shell finds the same program."""
    command = launch(settings.COMMAND, settings.FILE)
    program = command[0]
    name = os.path.basename(program).removesuffix(".exe")
    executable = find_executable(name)
    if executable and os.path.isfile(program) and os.path.samefile(executable, program):
        command = [name, *command[1:]]
    return quote_command([*command, *words])


def _target(host: str, settings: Settings, places: Places, path: Path) -> _Target:
    file = ConfigFile.read(path)
    journal = Journal.load(places.notes, host, file.path)
    return _Target(host, settings, format_of(host), file, journal, NoteFiles(places.notes))


def _installed_path(host: str, settings: Settings, places: Places) -> Path:
    """Return the file that holds the entry; the host may use another by now."""
    journal = Journal.last(places.notes, host)
    noted_path = Path(journal.file)
    if settings.COMMAND.removeprefix("mcp-") in journal.entries and noted_path.is_file():
        return noted_path
    return places.file(host)


def _install(target: _Target, text: str) -> _Installation:
    """Write the entry into the file, and note it."""
    before, document = target.read()
    new = Entry.parse(target.config_format, text)
    current = target.find(document, new.container)
    earlier = target.noted
    own_value = new.value
    input_names = [str(item["id"]) for item in new.inputs]
    stale = [name for name in earlier.inputs if name not in input_names]
    if current is not None:
        new = replace(new, value=merge(new.value, current, earlier.entry))
    try:
        after = edited(target.config_format, before, new, stale)
        target.config_format.read(after)
    except Malformed as error:
        raise target.not_understood(error) from None
    if not is_valid(target.config_format, before, after, new, inputs=[*input_names, *stale], installed=True):
        raise Unavailable(
            f"{target.file.path} cannot take the entry.", f"Paste what --print-config {target.host} prints."
        )
    contents = (target.file.mark + after).encode()
    added = {str(item["id"]) for item in new.inputs} - _known_inputs(document)
    installed = Installed(own_value, sorted(added | (set(earlier.inputs) & set(input_names))))
    _note_installed(target, document, new, installed, contents)
    with target.file.staged(contents) as staged, target.notes.staged() as problems:
        staged.commit()
    return _Installation(problems, _describe_replacement(current, new.value))


def _describe_replacement(current: dict[str, Any] | None, value: dict[str, Any]) -> Sequence[str]:
    if current is None:
        return []
    before = describe_command(current)
    after = describe_command(value)
    if before == after:
        return []
    return [f"Before: {before}", f"Now: {after}"]


def _known_inputs(document: dict[str, Any]) -> set[str]:
    inputs: Any = document.get("inputs")
    if not isinstance(inputs, list):
        return set()
    items = [cast("dict[str, Any]", item) for item in cast("list[Any]", inputs) if isinstance(item, dict)]
    return {str(item["id"]) for item in items if "id" in item}


def _note_installed(
    target: _Target, document: dict[str, Any], new: Entry, installed: Installed, contents: bytes
) -> None:
    journal = target.journal
    before = target.file.contents
    if not journal.entries:
        journal.made_file = before is None
        journal.made_keys = []
    if not journal.entries or not journal.is_current(before):
        if before is None:
            target.notes.remove(target.original)
        else:
            target.notes.put(target.original, before)
    keys = [new.container, *(["inputs"] if new.inputs else [])]
    journal.made_keys += [key for key in keys if key not in document and key not in journal.made_keys]
    journal.entries[target.name] = installed
    journal.note_written(contents)
    if before is not None:
        target.notes.put(target.backup, before)
    target.notes.put(f"{target.host}.json", journal.dumped())


def _report(target: _Target, text: str, places: Places, installation: _Installation) -> str:
    """Return the message for the person who installed it."""
    settings = target.settings
    lines = [f"Wrote the entry `{target.name}` into {target.file.path}.", *installation.replacement]
    if target.file.contents is not None:
        if installation.problems:
            lines.append(f"The file as it was is not kept: {installation.problems[0]}")
        else:
            lines.append(f"The file as it was: {places.notes / target.backup}.")
    if variables := environment(settings):
        has_example = any(question.example in text for question in variables)
        location = "in its place in that file" if has_example else "where the host finds it"
        names = ", ".join(sorted(str(question.variable) for question in variables))
        lines.append(f"No password or key was written. Set {names} {location}.")
    if missing := describe_missing_paths(settings):
        lines.append(missing)
    lines.append(f"Then {load_host(target.host).restart}.")
    lines.append(f"To undo: {typed_command(settings, '--uninstall', target.host)}")
    return "\n".join(lines)


def _uninstall(target: _Target) -> None:
    before, document = target.read()
    container, own_inputs = _shape(target)
    value = target.find(document, container)
    if value is None:
        raise _not_installed(target, document, container)
    earlier = target.noted
    doomed = Entry(container, target.name, value)
    inputs = earlier.inputs or _inputs_like_ours(document, own_inputs)
    made_keys = target.journal.made_keys
    try:
        after = without_entry(target.config_format, before, doomed, inputs, made_keys)
    except Malformed as error:
        raise target.not_understood(error) from None
    if not is_valid(target.config_format, before, after, doomed, inputs=inputs, installed=False):
        raise Unavailable(
            f"{target.file.path} is written in a way that cannot be edited.", f"Remove {quote(target.name)} by hand."
        )
    contents: bytes | None = (target.file.mark + after).encode()
    original = _original(target, before, doomed, inputs, after)
    if original is not None:
        contents = original
    elif target.journal.made_file and _is_empty(target.config_format, after):
        contents = None
    _note_uninstalled(target, contents)
    if contents is None:
        with target.notes.staged():
            target.file.remove()
        return
    with target.file.staged(contents) as staged, target.notes.staged():
        staged.commit()


def _shape(target: _Target) -> tuple[str, Sequence[dict[str, Any]]]:
    """Return the key that holds the servers of this host, and what VS Code would ask for this server."""
    words = {"print_config": None, "transport": "stdio", "socket": None}
    plain = entry(target.host, target.settings.model_copy(update=words))
    parsed = Entry.parse(target.config_format, plain)
    return parsed.container, parsed.inputs


def _inputs_like_ours(document: dict[str, Any], own_inputs: Sequence[dict[str, Any]]) -> list[str]:
    inputs: Any = document.get("inputs")
    if not isinstance(inputs, list):
        return []
    return [str(item["id"]) for item in own_inputs if item in inputs]


def _not_installed(target: _Target, document: dict[str, Any], container: str) -> NotFound:
    servers: dict[str, Any] = document.get(container) or {}
    others = [
        name
        for name, value in servers.items()
        if is_started_by(value, target.settings, server_url(target.settings), target.noted.entry)
    ]
    failure = f"{target.file.path} has no entry {quote(target.name)} of {target.settings.COMMAND}."
    if others:
        return NotFound(failure, f"If {quote(others[0])}, which starts it too, is to go, remove that by hand.")
    return NotFound(failure, "If its entry is in another file, such as a project's, remove it there by hand.")


def _original(target: _Target, before: str, doomed: Entry, inputs: Sequence[str], after: str) -> bytes | None:
    """Return the bytes from before the first installation, if nobody else has edited the file and they fit."""
    original = target.notes.read(target.original)
    if original is None or not target.journal.is_current(target.file.contents):
        return None
    try:
        text = ConfigFile(target.file.path, original).text
    except Problem:
        return None
    if target.config_format.is_readable(before) and not target.config_format.is_readable(text):
        return None
    if is_valid(target.config_format, after, text, doomed, inputs=inputs, installed=False):
        return original
    return None


def _is_empty(config_format: ConfigFormat, text: str) -> bool:
    return not config_format.read_leniently(text) and not config_format.comments(text)


def _note_uninstalled(target: _Target, contents: bytes | None) -> None:
    journal = target.journal
    was_current = journal.is_current(target.file.contents)
    journal.entries.pop(target.name, None)
    target.notes.remove(target.backup)
    # What an earlier version has noted.
    target.notes.remove(f"{target.settings.COMMAND}.{target.host}.json")
    if not journal.entries:
        target.notes.remove(target.original)
        target.notes.remove(f"{target.host}.json")
        return
    if was_current:
        journal.note_written(contents)
    target.notes.put(f"{target.host}.json", journal.dumped())
