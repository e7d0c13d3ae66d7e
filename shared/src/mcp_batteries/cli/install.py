"""`--install HOST`: put the entry into the host's own configuration file.

An entry is found by its name and command in what the file means, however somebody has written it, and only its own
text changes. The whole result is read as strictly as the host reads it, and compared with what was there, before it
takes the place of the file in one step. If nobody else has edited the file, `--uninstall` restores the same bytes.

Hosts' own commands (`code --add-mcp`, `claude mcp add`, `codex mcp add`) are not used: they start the whole host, which
may ask or wait, they cannot be taken back alike, and what they write is not known before.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote as urlquote

from mcp_batteries.cli.entries import Entry, describe_command, is_valid, merge, put_entry, words_of
from mcp_batteries.cli.formats import Malformed
from mcp_batteries.cli.host_entry.launch_command import typed_command
from mcp_batteries.cli.host_entry.refusals import refuse_incomplete, refuse_unusable
from mcp_batteries.cli.host_entry.text import make_entry
from mcp_batteries.cli.host_entry.variables import entry_variables, secrets_hint, token_hint, token_question
from mcp_batteries.cli.journal import JOURNAL, ORIGINAL, Installed, backups_of
from mcp_batteries.cli.places import Places
from mcp_batteries.cli.target import Edit, Target, config_path, edit_file
from mcp_batteries.errors import Unavailable
from mcp_batteries.hosts.definition import load_host
from mcp_batteries.settings import Settings

__all__ = ["install"]


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
        return _link_message(host, text, settings)
    path = config_path(host, settings, places)

    def attempt() -> str:
        target = Target.open(host, settings, places, path)
        edit = _plan(target, text)
        if settings.dry_run:
            return _describe_plan(target, text, edit)
        problems = edit.commit(target)
        return _report(target, text, places, edit, problems)

    return edit_file(attempt, host, path, settings, places)


def _link_message(host: str, text: str, settings: Settings) -> str:
    """Return the message with the link that adds an entry to a host without a file."""
    definition = load_host(host)
    link = f"{definition.install_link}{urlquote(base64.b64encode(text.encode()).decode(), safe='')}"
    missing = ", ".join(sorted(str(question.variable) for question in entry_variables(settings)))
    after = f" Set {missing} in its settings then." if missing else ""
    return f"Open this link: {definition.title} takes the entry `{settings.entry_name}` from it.{after}\n{link}"


def _plan(target: Target, text: str) -> Edit:
    """Return the file with the entry in it, and prepare the notes on that."""
    before, document = target.read()
    own = Entry.parse(target.config_format, text)
    current = target.find(document, own.container)
    merged = own
    if current is not None:
        merged = replace(own, value=merge(own.value, current, target.installation.entry))
    contents = target.encode(_put(target, before, merged))
    installed = Installed(target.settings.COMMAND, own.value, _added_inputs(target, document, own))
    _note_installed(target, document, own, installed, contents)
    return Edit(contents, _describe_replacement(target, current, merged.value), _keep_backup(target))


def _put(target: Target, before: str, entry: Entry) -> str:
    """Return the text of the file with the entry in it, and without what VS Code asked for an earlier one.

    Raises:
        Unavailable: the file cannot be understood, or cannot take the entry.
    """
    names = _input_names(entry)
    stale = [name for name in target.installation.inputs if name not in names]
    try:
        after = put_entry(target.config_format, before, entry, stale)
        target.config_format.read(after)
    except Malformed as error:
        raise target.not_understood(error) from None
    if not is_valid(target.config_format, before, after, entry, inputs=[*names, *stale], installed=True):
        raise Unavailable(
            f"{target.file.path} cannot take the entry.", f"Paste what --print-config {target.host} prints."
        )
    return after


def _input_names(entry: Entry) -> list[str]:
    return [str(item["id"]) for item in entry.inputs]


def _added_inputs(target: Target, document: dict[str, Any], entry: Entry) -> list[str]:
    """Return the ids of what VS Code asks for because of an installation of the entry, this one or an earlier one."""
    names = set(_input_names(entry))
    added = names - _known_inputs(document)
    added_earlier = names & set(target.installation.inputs)
    return sorted(added | added_earlier)


def _known_inputs(document: dict[str, Any]) -> set[str]:
    inputs: Any = document.get("inputs")
    if not isinstance(inputs, list):
        return set()
    items = [cast("dict[str, Any]", item) for item in cast("list[Any]", inputs) if isinstance(item, dict)]
    return {str(item["id"]) for item in items if "id" in item}


def _note_installed(
    target: Target, document: dict[str, Any], entry: Entry, installed: Installed, contents: bytes
) -> None:
    """Have noted what is written, and what the file was before the first installation in it."""
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
    keys = [entry.container]
    if entry.inputs:
        keys.append("inputs")
    journal.made_keys += [key for key in keys if key not in document and key not in journal.made_keys]
    journal.entries[target.name] = installed
    journal.note_written(contents)
    target.notes.put(JOURNAL, journal.to_json())


def _describe_replacement(target: Target, current: dict[str, Any] | None, value: dict[str, Any]) -> Sequence[str]:
    """Return what the entry started before and what it starts now; empty if that is the same."""
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


def _keep_backup(target: Target) -> Sequence[Path]:
    """Have the file as it was kept; returns the oldest copy, if that is another, and this one."""
    if target.file.contents is None:
        return []
    oldest = [*backups_of(target.notes.folder, target.name).values()][:1]
    backup = target.notes.keep_backup(target.name, target.file.contents)
    if backup in oldest:
        return oldest
    return [*oldest, backup]


def _describe_plan(target: Target, text: str, edit: Edit) -> str:
    """Return what an installation would do, for a person."""
    lines = [f"Would write this entry into {target.file.path}, {target.describe_other_changes()}:"]
    if target.file.contents is None:
        lines = [f"Would make {target.file.path} with this entry:"]
    lines += [text, *edit.replacement]
    return "\n".join(lines)


def _report(target: Target, text: str, places: Places, edit: Edit, problems: Sequence[str]) -> str:
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
    lines += _describe_removal(target, places, edit, problems)
    return "\n".join(lines)


def _describe_backups(edit: Edit, problems: Sequence[str]) -> Sequence[str]:
    """Return where the file as it was is kept, or why it is not."""
    if not edit.backups:
        return []
    if problems:
        return [f"The file as it was is not kept: {problems[0]}"]
    lines = [f"The file as it was: {edit.backups[-1]}."]
    if len(edit.backups) > 1:
        lines.append(f"The oldest copy of it: {edit.backups[0]}.")
    return lines


def _describe_token(target: Target, text: str) -> Sequence[str]:
    """Return what a person has to do where the server asks for a token."""
    question = token_question(target.host, target.settings)
    if question is None:
        return []
    hint = f"The server asks for a token, and none was written: {token_hint(target.host, question, text)}."
    return [f"{hint} --new-token makes one."]


def _describe_removal(target: Target, places: Places, edit: Edit, problems: Sequence[str]) -> Sequence[str]:
    """Return how the installation is undone, and how the entry is taken out if that is something else."""
    folder_hint = f", in {places.project_folder()}" if target.settings.workspace else ""
    removal = f"{folder_hint}: {typed_command(target.settings, *_removal_words(target))}"
    if not edit.replacement:
        return [f"To undo{removal}"]
    lines: list[str] = []
    if not problems:
        lines.append(f"To undo: copy the entry `{target.name}` from the file as it was into {target.file.path}.")
    return [*lines, f"To take it out{removal}"]


def _removal_words(target: Target) -> Sequence[str]:
    words: list[str] = []
    if target.settings.name is not None:
        words += ["--name", target.settings.name]
    if target.settings.workspace:
        words.append("--workspace")
    return [*words, "--uninstall", target.host]
