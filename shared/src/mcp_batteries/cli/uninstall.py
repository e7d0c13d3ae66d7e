"""`--uninstall HOST`: take the entry out of the host's own configuration file.

If nobody else has edited the file since `--install`, it has the same bytes afterwards as before.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from mcp_batteries.cli.config_file import ConfigFile
from mcp_batteries.cli.entries import Entry, describe_command, is_valid, without_entry
from mcp_batteries.cli.formats import ConfigFormat, Malformed
from mcp_batteries.cli.host_entry.text import make_entry
from mcp_batteries.cli.journal import JOURNAL, ORIGINAL, Journal, backups_of
from mcp_batteries.cli.places import Places
from mcp_batteries.cli.target import Edit, Target, config_path, edit_file
from mcp_batteries.errors import Invalid, NotFound, Problem, Unavailable, quote
from mcp_batteries.hosts import HOST_NAMES
from mcp_batteries.hosts.definition import load_host
from mcp_batteries.settings import Settings

__all__ = ["uninstall", "uninstall_all"]


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
            names = _own_names(Target.open(host, settings, places, path))
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


def _installed_path(host: str, settings: Settings, places: Places) -> Path:
    """Return the file that holds the entry; the host may use another by now."""
    path = config_path(host, settings, places)
    journal = Journal.load(places.notes, host, Path(os.path.realpath(path)))
    if settings.entry_name in journal.entries:
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


def _files(settings: Settings, places: Places) -> list[tuple[str, Path]]:
    """Return every file that is there and may hold entries of a server, with its host."""
    files: dict[tuple[str, str], Path] = {}
    project = None
    if settings.workspace:
        project = os.path.realpath(places.project_folder())
    for host in HOST_NAMES:
        with suppress(Invalid):
            path = config_path(host, settings, places)
            files[host, os.path.realpath(path)] = path
    for journal in Journal.all(places.notes):
        path = Path(journal.file)
        if project is None or path.is_relative_to(project):
            files.setdefault((journal.host, os.path.realpath(path)), path)
    return [(host, path) for (host, _), path in files.items() if path.is_file()]


def _own_names(target: Target) -> list[str]:
    """Return the names of all entries in a file that start, or connect to, the server of the target's settings."""
    _, document = target.read()
    servers: Any = document.get(load_host(target.host).entry.container)
    if not isinstance(servers, dict):
        return []
    names: list[str] = []
    for name, value in cast("dict[str, Any]", servers).items():
        is_wanted = target.settings.name in (None, name)
        if is_wanted and target.is_own(name, value):
            names.append(name)
    return names


def _uninstall(host: str, path: Path, settings: Settings, places: Places) -> str:
    def attempt() -> str:
        target = Target.open(host, settings, places, path)
        edit = _plan(target)
        if settings.dry_run:
            return _describe_plan(target, edit)
        edit.commit(target)
        return _report(target, edit)

    return edit_file(attempt, host, path, settings, places)


def _describe_plan(target: Target, edit: Edit) -> str:
    """Return what a removal would do, for a person."""
    if edit.contents is None:
        return f"Would take the entry `{target.name}` out of {target.file.path}, and remove that empty file."
    other_changes = target.describe_other_changes()
    return f"Would take the entry `{target.name}` out of {target.file.path}, {other_changes}."


def _report(target: Target, edit: Edit) -> str:
    """Return the message for the person who took it out."""
    lines = [f"Took the entry `{target.name}` out of {target.file.path}."]
    if target.settings.purge:
        # It removes the copies in the same breath, and says so.
        return lines[0]
    if edit.backups:
        lines.append(f"The one that it replaced is in {edit.backups[-1]}, until --purge.")
    if len(edit.backups) > 1:
        lines.append(f"The oldest that it replaced is in {edit.backups[0]}.")
    return "\n".join(lines)


@dataclass(frozen=True)
class _Removal:
    """An entry that goes out of a file.

    Attributes:
        before: the text of the file.
        inputs: the ids of the values that VS Code asks for because of the entry.
    """

    target: Target
    before: str
    entry: Entry
    inputs: Sequence[str]

    def apply(self) -> str:
        """Return the text without the entry.

        Raises:
            Unavailable: it cannot be edited.
        """
        target = self.target
        try:
            after = without_entry(target.config_format, self.before, self.entry, self.inputs, target.journal.made_keys)
        except Malformed as error:
            raise target.not_understood(error) from None
        if not self.is_only_difference(self.before, after):
            raise Unavailable(
                f"{target.file.path} is written in a way that cannot be edited.",
                f"Remove {quote(target.name)} by hand.",
            )
        return after

    def is_only_difference(self, before: str, after: str) -> bool:
        """Return whether nothing but the entry differs between two texts, and the second has it no more."""
        config_format = self.target.config_format
        return is_valid(config_format, before, after, self.entry, inputs=self.inputs, installed=False)


def _plan(target: Target) -> Edit:
    """Return the file without the entry, and prepare the notes on that."""
    before, document = target.read()
    own_entry = _plain_entry(target)
    value = target.find(document, own_entry.container)
    if value is None:
        raise _not_installed(target, document, own_entry.container)
    entry = Entry(own_entry.container, target.name, value)
    inputs = target.installation.inputs or _inputs_like_ours(document, own_entry.inputs)
    removal = _Removal(target, before, entry, inputs)
    contents = _contents_after(removal)
    backups = _keep_replaced(target, entry)
    _note_uninstalled(target, contents)
    return Edit(contents, backups=backups)


def _plain_entry(target: Target) -> Entry:
    """Return the entry as it would be for a server that the host starts: where it belongs, and what VS Code asks."""
    changes = {"print_config": None, "transport": "stdio", "socket": None}
    text = make_entry(target.host, target.settings.model_copy(update=changes))
    return Entry.parse(target.config_format, text)


def _inputs_like_ours(document: dict[str, Any], own_inputs: Sequence[dict[str, Any]]) -> list[str]:
    inputs: Any = document.get("inputs")
    if not isinstance(inputs, list):
        return []
    return [str(item["id"]) for item in own_inputs if item in inputs]


def _not_installed(target: Target, document: dict[str, Any], container: str) -> NotFound:
    servers: dict[str, Any] = document.get(container) or {}
    others = [name for name, value in servers.items() if target.is_own(name, value)]
    failure = f"{target.file.path} has no entry {quote(target.name)} of {target.settings.COMMAND}."
    if others:
        return NotFound(failure, f"If {quote(others[0])}, which starts it too, is to go, say so with --name.")
    if target.settings.workspace:
        return NotFound(failure, "If its entry is in another file, change into that project, or leave out --workspace.")
    return NotFound(failure, "If its entry is in the file of a project, change into that and add --workspace.")


def _contents_after(removal: _Removal) -> bytes | None:
    """Return what the file holds without the entry; None if it was made for it and holds nothing else."""
    target = removal.target
    after = removal.apply()
    original = _original(removal, after)
    if original is not None:
        return original
    if target.journal.made_file and _is_empty(target.config_format, after):
        return None
    return target.encode(after)


def _original(removal: _Removal, after: str) -> bytes | None:
    """Return the bytes from before the first installation, if nobody else has edited the file and they fit."""
    target = removal.target
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
    if target.config_format.is_readable(removal.before) and not target.config_format.is_readable(text):
        return None
    if removal.is_only_difference(after, text):
        return original
    return None


def _is_empty(config_format: ConfigFormat, text: str) -> bool:
    return not config_format.read_leniently(text) and not config_format.comments(text)


def _keep_replaced(target: Target, entry: Entry) -> list[Path]:
    """Return the copies of the file that hold what the entry replaced, and have the others removed."""
    kept_backups: list[Path] = []
    for backup in backups_of(target.notes.folder, target.name).values():
        if _has_replaced(target, entry, backup):
            kept_backups.append(backup)
        else:
            target.notes.remove(backup.name)
    return kept_backups


def _has_replaced(target: Target, entry: Entry, backup: Path) -> bool:
    """Return whether a copy has an entry of that name which starts something else."""
    contents = target.notes.read(backup.name)
    if contents is None:
        return False
    try:
        text = target.config_format.repair(ConfigFile(target.file.path, contents).text)
        servers: Any = target.config_format.read_leniently(text).get(entry.container)
    except (Problem, Malformed):
        return False
    if not isinstance(servers, dict):
        return False
    earlier: Any = cast("dict[str, Any]", servers).get(entry.name)
    if not isinstance(earlier, dict):
        return False
    return describe_command(cast("dict[str, Any]", earlier)) != describe_command(entry.value)


def _note_uninstalled(target: Target, contents: bytes | None) -> None:
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
