"""Reads, changes and writes one or several files under their locks, all or nothing.

Everything that can fail by itself, reading, matching, encoding, writing the new contents to disk, is done for
all files before the first is replaced. What is left are renames; when one of them fails, those before it are
taken back. A crash between two renames leaves some files new and the others old, each whole: no file system
offers more.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, replace

from mcp_batteries.errors import Conflict, Invalid, NotFound, Problem, Refused, TooLarge, Unavailable, quote
from mcp_batteries.limits import Stop
from mcp_fs.engine.changing.atomic_write import Staged, regular_status, stage, writing_to
from mcp_fs.engine.changing.binary_formats import binary_format, check_text_for, refuse_other_form, way_beside
from mcp_fs.engine.changing.notebook_edit import Notebook
from mcp_fs.engine.document_kinds import HEAD_BYTES, LABELS, kind_of
from mcp_fs.engine.handles.locks import Held, locked
from mcp_fs.engine.handles.path_opening import Spot, open_regular, problem
from mcp_fs.engine.handles.temp_files import OLD, temporary_name
from mcp_fs.engine.journal.journal import Step
from mcp_fs.engine.text.edit import unified_diff
from mcp_fs.engine.text.encodings import MAX_EDIT_BYTES, Decoded, content_hash, decode, detect_encoding, encode
from mcp_fs.engine.text.encodings import replace_undecodable as readable
from mcp_fs.models import Edited
from mcp_fs.policy import Writable

__all__ = ["MOST_TOGETHER", "Change", "change_files", "too_large", "too_much"]

MOST_TOGETHER = 8 * MAX_EDIT_BYTES
"""Of all that one call changes: it is held in memory until the last is written."""
_HASH = re.compile("[0-9a-fA-F]{8,64}")
_NEW = Decoded("", "utf-8", bom=False, newline="\n")


@dataclass(frozen=True, slots=True)
class Change:
    """What is to become of one file.

    Attributes:
        revise: its text to its new text.
        revise_notebook: the same of a notebook; None where that can't be edited in its cells.
        creates: whether the file must not exist yet, or be empty.
        deletes: whether the file goes when the new text is empty.
        executable: whether a new file can be run.
        expected_hash: the SHA-256 that the file must have, or its first digits.
    """

    place: Writable
    revise: Callable[[str], str]
    revise_notebook: Callable[[Notebook], Notebook] | None = None
    creates: bool = False
    deletes: bool = False
    executable: bool = False
    expected_hash: str | None = None


@dataclass(slots=True)
class _Prepared:
    change: Change
    old: os.stat_result | None
    hash: str | None
    data: bytes | None
    diff: str

    @property
    def line(self) -> tuple[str, str]:
        did = "deleted" if self.data is None else "created" if self.old is None else "edited"
        return self.change.place.display, did


def change_files(changes: Sequence[Change], *, dry_run: bool, stop: Stop, step: Step | None = None) -> Edited:
    """Make all changes or none.

    Args:
        step: is told what changes before it does, so that it can be taken back.

    Raises:
        Conflict: a hash differs, a file exists that is to be created, or one changed while it was edited.
        Refused: a file is not text in any known encoding.
        TooLarge: a file is, or would be, larger than is edited; or all together.
        Problem: whatever `revise` raises; nothing was written.
    """
    _refuse_below(changes)
    with ExitStack() as stack:
        reached = [_reached(change, stack, dry_run) for change in changes]
        spots = [spot for spot in reached if spot is not None]
        locks = stack.enter_context(locked(spots, stop))
        prepared = [
            _prepare(change, spot, None if spot is None else locks.get(spot), stop)
            for change, spot in zip(changes, reached, strict=True)
        ]
        if sum(len(item.data or b"") for item in prepared) > MOST_TOGETHER:
            raise too_much()
        existing = [(item.old.st_dev, item.old.st_ino) for item in prepared if item.old is not None]
        names = {(spot or change).place for spot, change in zip(reached, changes, strict=True)}
        if len(names) < len(changes) or len(set(existing)) < len(existing):
            raise Invalid("One file is named twice.", "Put all of its changes into one.")
        notes: list[str] = []
        if not dry_run:
            staged = [
                stack.enter_context(_stage(item, spot, locks.get(spot)))
                for item, spot in zip(prepared, spots, strict=True)
            ]
            stop.check()
            if step is not None:
                intents = [new.intent() for new in staged]
                step.record(
                    [
                        intent if item.data is not None else replace(intent, after=None)
                        for item, intent in zip(prepared, intents, strict=True)
                    ]
                )
            try:
                for item in staged:
                    item.flush()
                for item in staged:
                    item.check_unchanged()
            except Problem:
                if step is not None:
                    step.withdraw()
                raise
            _commit(prepared, staged)
            notes = [f"{item.shown.display}: {note}" for item in staged for note in item.notes]
        before = prepared[0].hash if len(prepared) == 1 else None
        return Edited([item.line for item in prepared], [item.diff for item in prepared], dry_run, notes, before)


def _refuse_below(changes: Sequence[Change]) -> None:
    """Return unless one is to be made where another would be its folder."""
    files = {(change.place.root, change.place.parts): change.place for change in changes}
    for change in changes:
        root, parts = change.place.root, change.place.parts
        above = next(
            (files[root, parts[:size]] for size in range(1, len(parts)) if (root, parts[:size]) in files), None
        )
        if above is not None:
            raise Invalid(f"{quote(change.place.display)} can't be made below {quote(above.display)}, which is a file.")


def _stage(item: _Prepared, spot: Spot[Writable], held: Held | None) -> AbstractContextManager[Staged]:
    data, change = item.data or b"", item.change
    return stage(spot, data, item.old, change.place, held=held, executable=change.executable)


def _reached(change: Change, stack: ExitStack, dry_run: bool) -> Spot[Writable] | None:
    """The spot of a file; None for one in a folder that a dry run does not make."""
    try:
        return stack.enter_context(writing_to(change.place))
    except NotFound:
        if not (dry_run and change.creates):
            raise
        return None


def _prepare(change: Change, spot: Spot[Writable] | None, held: Held | None, stop: Stop) -> _Prepared:
    stop.check()
    place = change.place
    shown = quote(place.display)
    old = None if spot is None else regular_status(spot, place, held)
    if old is None and not change.creates:
        raise problem(FileNotFoundError(2, ""), place)
    decoded, digest, old_data = _NEW, None, b""
    if spot is not None and old is not None:
        if old.st_size > MAX_EDIT_BYTES:
            raise TooLarge(f"{shown} has {old.st_size:,} bytes; up to {MAX_EDIT_BYTES:,} can be edited.")
        opened = None if held is None else os.fdopen(held.fd, "rb", buffering=0, closefd=False)
        with opened or open_regular(spot.folder, spot.name, place) as file:
            old = os.fstat(file.fileno())
            data = old_data = file.read()
        if change.creates and data:
            raise Conflict(f"{shown} exists already.", "Edit it, or choose another name.")
        digest = content_hash(data)
        if change.expected_hash is not None and not _HASH.fullmatch(change.expected_hash):
            raise Invalid(
                f"`expected_hash` {quote(change.expected_hash)} is not a hash.",
                "Give at least 8 of the hexadecimal digits that reading the file shows.",
            )
        expected = change.expected_hash
        if expected is not None and not hashlib.sha256(data).hexdigest().startswith(expected.lower()):
            raise Conflict(f"{shown} has changed: its hash is `{digest}`.", "Read it again, then repeat the edit.")
        found = decode(data)
        if found is None:
            raise _not_text(place, data)
        decoded = found
    try:
        old_text, new_text, new = _revised(change, decoded, old_data)
    except OverflowError:
        raise too_large(place) from None
    gone = change.deletes and not new
    if change.deletes and new:
        raise Conflict(f"{shown} holds more than the patch removes.", "Read it again, then make the patch anew.")
    data = None if gone else encode(new, decoded)
    if data is not None and len(data) > MAX_EDIT_BYTES:
        raise too_large(place)
    if data and not old_data:
        check_text_for(place, data, old_data)
    diff = unified_diff(readable(old_text), readable(new_text), place.display, created=old is None, deleted=gone)
    return _Prepared(change, old, digest, data, diff)


def _revised(change: Change, decoded: Decoded, data: bytes) -> tuple[str, str, str]:
    """The text as it is read, before the change and after it, and what is to be stored.

    Raises:
        Refused: it is read in another form than it is stored, and can't be edited in that.
    """
    place, text = change.place, decoded.text
    kind = None if change.creates or change.deletes else kind_of(place.name, data[:HEAD_BYTES])
    book = Notebook.parse(data, text) if kind == "notebook" else None
    if book is not None:
        if change.revise_notebook is None:
            raise Refused(
                f"{quote(place.display)} is a notebook, whose end is not the end of its file; nothing was changed.",
                "Add to a cell with `edit_file`: quote its last line.",
            )
        changed = change.revise_notebook(book)
        return book.text, changed.text, changed.json
    if kind not in (None, "notebook"):
        raise refuse_other_form(place, kind)
    new = change.revise(text)
    return text, new, new


def _not_text(place: Writable, data: bytes) -> Refused:
    """The answer to an edit of what is no text, or could not be written back as it is."""
    encoding, kind = detect_encoding(data), kind_of(place.name, data[:HEAD_BYTES])
    if kind in LABELS:
        return refuse_other_form(place, kind)
    if encoding is None:
        label = binary_format(place.name)
        what = "is not text" if label is None else f"is {label}, not text"
        return Refused(f"{quote(place.display)} {what}; nothing was changed.", way_beside(place))
    return Refused(
        f"{quote(place.display)} can't be written back in {encoding} byte for byte; nothing was changed.",
        "Save the text under another name with `write_file`, which uses UTF-8.",
    )


def too_large(place: Writable) -> TooLarge:
    return TooLarge(
        f"{quote(place.display)} would have more than {MAX_EDIT_BYTES:,} bytes, the most that can be edited; nothing "
        "was written.",
        "Put less in its place.",
    )


def too_much() -> TooLarge:
    return TooLarge(f"More than {MOST_TOGETHER:,} bytes would be written; nothing was.", "Narrow `glob` or `path`.")


def _commit(prepared: Sequence[_Prepared], staged: Sequence[Staged]) -> None:
    """Do the renames; after a failure, undo them and say what came of it."""
    if len(staged) == 1 and prepared[0].data is not None:
        staged[0].commit(replace=prepared[0].old is not None)
        return
    undo: list[tuple[Staged, _Back]] = []
    with ExitStack() as backups:
        try:
            for item, new in zip(prepared, staged, strict=True):
                undo.append((new, _put(item, new, backups)))
        except Exception:
            _take_back(undo, backups)
            raise
    for new in staged:
        new.make_durable()


def _put(item: _Prepared, new: Staged, backups: ExitStack) -> _Back:
    """Bring one file to its new state; how to bring it back."""
    folder, name = new.folder, new.name
    if item.old is None:
        new.put(replace=False)
        return _Back(new, None)
    backup = temporary_name(OLD)
    try:
        if item.data is None:
            folder.rename(name, folder, backup)
        else:
            folder.add_name(name, folder, backup)
    except OSError as error:
        raise problem(error, new.shown, "it was not changed") from error
    restore = _Back(new, backup)
    backups.callback(restore.forget)
    if item.data is not None:
        new.put(replace=True)
    return restore


def _take_back(undo: Sequence[tuple[Staged, _Back]], backups: ExitStack) -> None:
    stuck: list[str] = []
    for new, back in reversed(undo):
        try:
            back()
        except OSError:
            where = f" (old contents: `{back.backup}` beside it)" if back.backup else " (it was new)"
            stuck.append(quote(new.shown.display) + where)
    if stuck:
        backups.pop_all()  # the only copies of the old contents
        raise Unavailable(
            f"The change failed half-way and could not be taken back in {', '.join(stuck)}.",
            "Read these files first; the old contents stay until somebody moves or deletes them.",
        )


@dataclass(frozen=True, slots=True)
class _Back:
    """The way back for one file: the name its old contents are kept by, None for one that is new."""

    new: Staged
    backup: str | None

    def __call__(self) -> None:
        if self.backup is None:
            self.new.folder.remove(self.new.name)
        else:
            self.new.folder.rename(self.backup, self.new.folder, self.new.name)

    def forget(self) -> None:
        if self.backup is not None:
            with suppress(OSError):
                self.new.folder.remove(self.backup)
