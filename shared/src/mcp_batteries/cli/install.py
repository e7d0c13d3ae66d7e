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
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote as urlquote

from mcp_batteries.cli.config_file import Changed, ConfigFile
from mcp_batteries.cli.entries import (
    Entry,
    describe_command,
    is_started_by,
    is_valid,
    merge,
    put_entry,
    server_of,
    without_entry,
    words_of,
)
from mcp_batteries.cli.formats import ConfigFormat, Malformed, format_of
from mcp_batteries.cli.host_entry.launch_command import typed_command
from mcp_batteries.cli.host_entry.refusals import refuse_incomplete, refuse_unusable
from mcp_batteries.cli.host_entry.text import make_entry, server_url
from mcp_batteries.cli.host_entry.variables import entry_variables, secrets_hint, token_hint, token_question
from mcp_batteries.cli.journal import (
    JOURNAL,
    ORIGINAL,
    Installed,
    Journal,
    NoteFiles,
    backups_of,
    folder_of,
    lock_host,
)
from mcp_batteries.cli.places import Places
from mcp_batteries.errors import Conflict, Invalid, NotFound, Problem, Unavailable, quote
from mcp_batteries.hosts import HOST_NAMES
from mcp_batteries.hosts.definition import load_host
from mcp_batteries.settings import Settings

__all__ = ["install", "uninstall", "uninstall_all"]

_ATTEMPTS = 5


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
        return self.settings.entry_name

    @property
    def installation(self) -> Installed:
        return self.installation_of(self.name)

    def installation_of(self, name: str) -> Installed:
        """Return what was written as the entry `name`, if that was one of this server."""
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
        if not is_started_by(value, self.settings, server_url(self.settings), self.installation.entry):
            raise Conflict(
                f"{self.file.path} has another server {quote(self.name)}, which is {quote(server_of(value or {}))}.",
                "Remove or rename that entry, or give this one another name: --name NAME.",
            )
        return cast("dict[str, Any]", value)


def install(host: str, settings: Settings, places: Places) -> str:
    """Write the entry for these settings into the file of `host`; returns the message for the person.

    An entry of the same server that is there already is replaced; what a person has added to it stays.

    Raises:
        Invalid: the host has no such file or cannot reach a server with these settings, or they name nothing that can
            be served.
        Conflict: there is another server of that name.
        Unavailable: the file cannot be read, understood or written; then nothing has changed.
    """
    refuse_incomplete(settings)
    refuse_unusable(host, settings)
    text = make_entry(host, settings, absolute=True)
    if load_host(host).install_link and not settings.workspace:
        return _link_message(host, settings.entry_name, text, settings)
    path = _current_path(host, settings, places)

    def attempt() -> str:
        target = _target(host, settings, places, path)
        edit = _plan_installation(target, text)
        if settings.dry_run:
            return _describe_plan(target, text, edit)
        return _report(target, text, places, edit, _commit(target, edit))

    return _attempt(attempt, host, path, settings, places)


def uninstall(host: str, settings: Settings, places: Places) -> str:
    """Take the entry out of the file of `host`; returns the message for the person.

    Raises:
        NotFound: it is not there.
        Conflict: there is another server of that name.
        Unavailable: the file cannot be read, understood or written; then nothing has changed.
    """
    return _uninstall(host, _installed_path(host, settings, places), settings, places)


def uninstall_all(settings: Settings, places: Places) -> str:
    """Take every entry of a server out of every host's file; returns the message for the person.

    Raises:
        NotFound: there is none.
        Unavailable: some could not be taken out.
    """
    messages: list[str] = []
    failures: list[str] = []
    for host, path in _files(settings, places):
        try:
            names = _own_names(_target(host, settings, places, path))
        except Problem as problem:
            failures.append(str(problem))
            continue
        for name in names:
            try:
                named = settings.model_copy(update={"name": name})
                messages.append(_uninstall(host, path, named, places))
            except Problem as problem:
                failures.append(str(problem))
    if failures:
        raise Unavailable("\n".join([*messages, *failures]))
    if not messages:
        raise NotFound(
            f"No file of a host has an entry of {settings.COMMAND}.",
            "If a project's file has one that --install did not write, change into that project and add --workspace.",
        )
    return "\n".join(messages)


def _uninstall(host: str, path: Path, settings: Settings, places: Places) -> str:
    def attempt() -> str:
        target = _target(host, settings, places, path)
        edit = _plan_removal(target)
        if settings.dry_run:
            if edit.contents is None:
                return f"Would take the entry `{target.name}` out of {target.file.path}, and remove that empty file."
            other_changes = target.describe_other_changes()
            return f"Would take the entry `{target.name}` out of {target.file.path}, {other_changes}."
        _commit(target, edit)
        lines = [f"Took the entry `{target.name}` out of {target.file.path}."]
        if settings.purge:
            # It removes the copies in the same breath, and says so.
            return lines[0]
        if edit.backups:
            lines.append(f"The one that it replaced is in {edit.backups[-1]}, until --purge.")
        if len(edit.backups) > 1:
            lines.append(f"The oldest that it replaced is in {edit.backups[0]}.")
        return "\n".join(lines)

    return _attempt(attempt, host, path, settings, places)


def _attempt(attempt: Callable[[], str], host: str, path: Path, settings: Settings, places: Places) -> str:
    """Edit a file, again if somebody else changes it meanwhile.

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


def _commit(target: _Target, edit: _Edit) -> Sequence[str]:
    """Put an edit in the place of the file, then keep the notes on it; returns why notes could not be kept.

    Raises:
        Changed: the file is no longer what was read.
        Unavailable: it cannot be written.
    """
    if edit.contents is None:
        with target.notes.stage() as problems:
            target.file.remove()
        return problems
    with target.file.stage(edit.contents) as new_file, target.notes.stage() as problems:
        new_file.commit()
    return problems


def _link_message(host: str, name: str, text: str, settings: Settings) -> str:
    """Return the message with the link that adds an entry to a host without a file."""
    definition = load_host(host)
    link = f"{definition.install_link}{urlquote(base64.b64encode(text.encode()).decode(), safe='')}"
    missing = ", ".join(sorted(str(question.variable) for question in entry_variables(settings)))
    after = f" Set {missing} in its settings then." if missing else ""
    return f"Open this link: {definition.title} takes the entry `{name}` from it.{after}\n{link}"


def _target(host: str, settings: Settings, places: Places, path: Path) -> _Target:
    file = ConfigFile.read(path)
    journal = Journal.load(places.notes, host, file.path)
    notes = NoteFiles(folder_of(places.notes, host, file.path))
    return _Target(host, settings, format_of(host), file, journal, notes)


def _current_path(host: str, settings: Settings, places: Places) -> Path:
    if settings.workspace:
        return places.workspace_file(host)
    return places.file(host)


def _installed_path(host: str, settings: Settings, places: Places) -> Path:
    """Return the file that holds the entry; the host may use another by now."""
    path = _current_path(host, settings, places)
    if settings.entry_name in _journal_of(host, path, places).entries:
        return path
    for journal in Journal.all(places.notes):
        file = Path(journal.file)
        if journal.host != host or journal.workspace != settings.workspace or not file.is_file():
            continue
        # Other projects have their own entries of this name.
        is_in_project = file.parent == Path(os.path.realpath(path.parent))
        if settings.entry_name in journal.entries and (is_in_project or not settings.workspace):
            return file
    return path


def _journal_of(host: str, path: Path, places: Places) -> Journal:
    return Journal.load(places.notes, host, Path(os.path.realpath(path)))


def _files(settings: Settings, places: Places) -> list[tuple[str, Path]]:
    """Return every file that is there and may hold entries of a server, with its host."""
    files: dict[tuple[str, str], Path] = {}
    project = None
    if settings.workspace:
        project = os.path.realpath(places.project_folder())
    for host in HOST_NAMES:
        with suppress(Invalid):
            path = _current_path(host, settings, places)
            files[host, os.path.realpath(path)] = path
    for journal in Journal.all(places.notes):
        path = Path(journal.file)
        if project is None or path.is_relative_to(project):
            files.setdefault((journal.host, os.path.realpath(path)), path)
    return [(host, path) for (host, _), path in files.items() if path.is_file()]


def _own_names(target: _Target) -> list[str]:
    """Return the names of all entries in a file that start, or connect to, the server of the target's settings."""
    _, document = target.read()
    servers: Any = document.get(load_host(target.host).entry.container)
    if not isinstance(servers, dict):
        return []
    url = server_url(target.settings)
    names: list[str] = []
    for name, value in cast("dict[str, Any]", servers).items():
        is_wanted = target.settings.name in (None, name)
        if is_wanted and is_started_by(value, target.settings, url, target.installation_of(name).entry):
            names.append(name)
    return names


@dataclass
class _Edit:
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


def _plan_installation(target: _Target, text: str) -> _Edit:
    """Return the file with the entry in it, and prepare the notes on that."""
    before, document = target.read()
    new = Entry.parse(target.config_format, text)
    current = target.find(document, new.container)
    earlier = target.installation
    own_value = new.value
    input_names = [str(item["id"]) for item in new.inputs]
    stale = [name for name in earlier.inputs if name not in input_names]
    if current is not None:
        new = replace(new, value=merge(new.value, current, earlier.entry))
    try:
        after = put_entry(target.config_format, before, new, stale)
        target.config_format.read(after)
    except Malformed as error:
        raise target.not_understood(error) from None
    if not is_valid(target.config_format, before, after, new, inputs=[*input_names, *stale], installed=True):
        raise Unavailable(
            f"{target.file.path} cannot take the entry.", f"Paste what --print-config {target.host} prints."
        )
    contents = target.encode(after)
    added = {str(item["id"]) for item in new.inputs} - _known_inputs(document)
    installed = Installed(target.settings.COMMAND, own_value, sorted(added | (set(earlier.inputs) & set(input_names))))
    _note_installed(target, document, new, installed, contents)
    return _Edit(contents, _describe_replacement(target, current, new.value), _keep_backup(target))


def _keep_backup(target: _Target) -> Sequence[Path]:
    """Have the file as it was kept; returns the oldest copy, if that is another, and this one."""
    if target.file.contents is None:
        return []
    oldest = [*backups_of(target.notes.folder, target.name).values()][:1]
    backup = target.notes.keep_backup(target.name, target.file.contents)
    if backup in oldest:
        return oldest
    return [*oldest, backup]


def _describe_replacement(target: _Target, current: dict[str, Any] | None, value: dict[str, Any]) -> Sequence[str]:
    if current is None:
        return []
    before = describe_command(current)
    after = describe_command(value)
    if before == after:
        return []
    lines = [f"Before: {before}", f"Now: {after}"]
    if not set(target.settings.plain_arguments()) <= set(words_of(current)):
        lines.append("To have both in this host, give each a name of its own: --name NAME.")
    return lines


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
    journal.workspace = target.settings.workspace
    before = target.file.contents
    if not journal.entries:
        journal.made_file = before is None
        journal.made_keys = []
    if not journal.entries or not journal.is_current(before):
        if before is None:
            target.notes.remove(ORIGINAL)
        else:
            target.notes.put(ORIGINAL, before)
    keys = [new.container, *(["inputs"] if new.inputs else [])]
    journal.made_keys += [key for key in keys if key not in document and key not in journal.made_keys]
    journal.entries[target.name] = installed
    journal.note_written(contents)
    target.notes.put(JOURNAL, journal.to_json())


def _describe_plan(target: _Target, text: str, edit: _Edit) -> str:
    """Return what an installation would do, for a person."""
    lines = [f"Would write this entry into {target.file.path}, {target.describe_other_changes()}:"]
    if target.file.contents is None:
        lines = [f"Would make {target.file.path} with this entry:"]
    lines += [text, *edit.replacement]
    return "\n".join(lines)


def _report(target: _Target, text: str, places: Places, edit: _Edit, problems: Sequence[str]) -> str:
    """Return the message for the person who installed it."""
    settings = target.settings
    lines = [f"Wrote the entry `{target.name}` into {target.file.path}.", *edit.replacement]
    lines += _describe_backups(edit, problems)
    if variables := entry_variables(settings):
        hint = secrets_hint(target.host, variables, text, "in its place in that file")
        lines.append(f"No password or key was written: {hint}.")
    lines += _describe_token(target, text)
    if settings.workspace:
        lines.append("It belongs to the project, and names programs and paths of this machine: mind that in a commit.")
    lines.append(f"Then {load_host(target.host).restart}.")
    folder_hint = f", in {places.project_folder()}" if settings.workspace else ""
    removal = f"{folder_hint}: {typed_command(settings, *_undo_words(target))}"
    if not edit.replacement:
        lines.append(f"To undo{removal}")
        return "\n".join(lines)
    if not problems:
        lines.append(f"To undo: copy the entry `{target.name}` from the file as it was into {target.file.path}.")
    lines.append(f"To take it out{removal}")
    return "\n".join(lines)


def _describe_backups(edit: _Edit, problems: Sequence[str]) -> Sequence[str]:
    """Return where the file as it was is kept, or why it is not."""
    if not edit.backups:
        return []
    if problems:
        return [f"The file as it was is not kept: {problems[0]}"]
    lines = [f"The file as it was: {edit.backups[-1]}."]
    if len(edit.backups) > 1:
        lines.append(f"The oldest copy of it: {edit.backups[0]}.")
    return lines


def _describe_token(target: _Target, text: str) -> Sequence[str]:
    """Return what a person has to do where the server asks for a token."""
    question = token_question(target.host, target.settings)
    if question is None:
        return []
    hint = f"The server asks for a token, and none was written: {token_hint(target.host, question, text)}."
    return [f"{hint} --new-token makes one."]


def _undo_words(target: _Target) -> Sequence[str]:
    words: list[str] = []
    if target.settings.name is not None:
        words += ["--name", target.settings.name]
    if target.settings.workspace:
        words.append("--workspace")
    return [*words, "--uninstall", target.host]


def _plan_removal(target: _Target) -> _Edit:
    """Return the file without the entry, and prepare the notes on that."""
    before, document = target.read()
    container, own_inputs = _shape(target)
    value = target.find(document, container)
    if value is None:
        raise _not_installed(target, document, container)
    earlier = target.installation
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
    contents: bytes | None = target.encode(after)
    original = _original(target, before, doomed, inputs, after)
    if original is not None:
        contents = original
    elif target.journal.made_file and _is_empty(target.config_format, after):
        contents = None
    kept_backups: list[Path] = []
    for backup in backups_of(target.notes.folder, target.name).values():
        if _has_replaced(target, doomed, backup):
            kept_backups.append(backup)
        else:
            target.notes.remove(backup.name)
    _note_uninstalled(target, contents)
    return _Edit(contents, backups=kept_backups)


def _has_replaced(target: _Target, doomed: Entry, backup: Path) -> bool:
    """Return whether a copy has an entry of that name which starts something else than the doomed one."""
    contents = target.notes.read(backup.name)
    if contents is None:
        return False
    try:
        text = target.config_format.repair(ConfigFile(target.file.path, contents).text)
        servers: Any = target.config_format.read_leniently(text).get(doomed.container)
    except (Problem, Malformed):
        return False
    if not isinstance(servers, dict):
        return False
    earlier: Any = cast("dict[str, Any]", servers).get(doomed.name)
    if not isinstance(earlier, dict):
        return False
    return describe_command(cast("dict[str, Any]", earlier)) != describe_command(doomed.value)


def _shape(target: _Target) -> tuple[str, Sequence[dict[str, Any]]]:
    """Return the key that holds the servers of this host, and what VS Code would ask for this server."""
    words = {"print_config": None, "transport": "stdio", "socket": None}
    plain = make_entry(target.host, target.settings.model_copy(update=words))
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
        if is_started_by(value, target.settings, server_url(target.settings), target.installation_of(name).entry)
    ]
    failure = f"{target.file.path} has no entry {quote(target.name)} of {target.settings.COMMAND}."
    if others:
        return NotFound(failure, f"If {quote(others[0])}, which starts it too, is to go, say so with --name.")
    if target.settings.workspace:
        return NotFound(failure, "If its entry is in another file, change into that project, or leave out --workspace.")
    return NotFound(failure, "If its entry is in the file of a project, change into that and add --workspace.")


def _original(target: _Target, before: str, doomed: Entry, inputs: Sequence[str], after: str) -> bytes | None:
    """Return the bytes from before the first installation, if nobody else has edited the file and they fit."""
    original = target.notes.read(ORIGINAL)
    if original is None or not target.journal.is_current(target.file.contents):
        return None
    original_file = ConfigFile(target.file.path, original)
    try:
        text = original_file.text
    except Problem:
        return None
    if text.strip() and original_file.mark and not target.takes_mark:
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
    if not journal.entries:
        target.notes.remove(ORIGINAL)
        target.notes.remove(JOURNAL)
        return
    if was_current:
        journal.note_written(contents)
    target.notes.put(JOURNAL, journal.to_json())
