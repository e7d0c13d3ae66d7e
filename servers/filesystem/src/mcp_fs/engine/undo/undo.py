"""Lists and undoes the steps of one caller: only what is still as the step left it, never later changes."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import Literal

from mcp_batteries.errors import Conflict, Invalid, NotFound, Problem, Unavailable, quote, reason
from mcp_batteries.limits import DEFAULT_PAGE_BYTES, Stop
from mcp_fs.engine.changing.atomic_write import confirm, writing_to
from mcp_fs.engine.changing.deleting import weight
from mcp_fs.engine.changing.moving import create_folder, relocate
from mcp_fs.engine.handles.locks import locked
from mcp_fs.engine.handles.path_opening import Spot, open_file, open_folder, resolve, told
from mcp_fs.engine.handles.temp_files import hold, remove_all
from mcp_fs.engine.journal.journal import CALL, Intent, Step
from mcp_fs.engine.journal.states import MADE, State, is_still, state_of
from mcp_fs.engine.journal.store import Item, Kept, Record, Store
from mcp_fs.engine.listing.walk import display_path
from mcp_fs.engine.text.edit import unified_diff
from mcp_fs.engine.text.encodings import MAX_EDIT_BYTES, decode, replace_undecodable
from mcp_fs.models import Steps, Undone, UndoStep
from mcp_fs.policy import Policy, Writable

__all__ = ["list_steps", "take_back"]

_log = logging.getLogger(__name__)

_MOST_LISTED = 50
_MOST_NAMED = 3
_YOUNG = 60.0
"""Seconds in which a step whose change has not happened may still be about to."""

Standing = Literal["as it was left", "back already", "changed since"]


@dataclass(frozen=True)
class _Entry:
    """One entry of a step, at trusted places."""

    item: Item
    place: Writable
    source: Writable | None
    kept: Writable | None

    @property
    def places(self) -> list[Writable]:
        return [self.place] if self.source is None else [self.place, self.source]

    @property
    def way(self) -> str:
        """What taking it back does, in words."""
        at, before = display_path(self.place), self.item.before
        if self.source is not None:
            return f"move {at} back to {display_path(self.source)}" + (
                ", put back what it replaced" if self.kept else ""
            )
        if before is None:
            return f"delete {at}"
        if self.item.after is None:
            return f"bring back {at}"
        return f"restore {at}"


@dataclass(frozen=True)
class _Step:
    record: Record
    entries: Sequence[_Entry]

    @property
    def line(self) -> UndoStep:
        paths = list(dict.fromkeys(display_path(place) for entry in self.entries for place in reversed(entry.places)))
        return UndoStep(self.record.kept.id, self.record.kept.time, self.did, paths)

    @property
    def did(self) -> str:
        return f"undo of {self.record.tool}" if self.record.undoes else self.record.tool


class _Touched:
    """Places that later steps have changed: how those left what is there, in it or around it is not known."""

    def __init__(self, places: Iterable[Writable] = ()) -> None:
        self._places: set[tuple[str, ...]] = set()
        self._above: set[tuple[str, ...]] = set()
        for place in places:
            self.add(place)

    def add(self, place: Writable) -> None:
        names = _names(place)
        if names not in self._places:
            self._places.add(names)
            self._above.update(names[:depth] for depth in range(len(names)))

    def has(self, place: Writable) -> bool:
        return _names(place) in self._places

    def meets(self, places: Iterable[Writable]) -> bool:
        return any(_names(place) in self._above or self.covers(place) for place in places)

    def covers(self, place: Writable) -> bool:
        """Whether it was touched itself, or a folder on the way to it."""
        names = _names(place)
        return any(names[:depth] in self._places for depth in range(len(names) + 1))


def _names(place: Writable) -> tuple[str, ...]:
    return (place.root.real, *place.parts)


def list_steps(policy: Policy, store: Store, stop: Stop) -> Steps:
    """The caller's steps that can be taken back in what is served now, the newest first."""
    unread: list[Kept] = []
    steps = _mine(policy, store, stop, unread)
    return Steps([step.line for step in steps[:_MOST_LISTED]], len(steps), len(unread))


def take_back(policy: Policy, store: Store, wanted: str, *, later: bool, dry_run: bool, stop: Stop) -> Undone:
    """Take back one step, or all of the caller's from that one on; that is a step too, and can be taken back.

    Raises:
        NotFound: there is no such step.
        Conflict: something is no longer as the step left it; what is told in the message was not touched.
    """
    steps = _mine(policy, store, stop, [])
    number = next((number for number, one in enumerate(steps) if one.record.kept.id == wanted), None)
    if number is None:
        raise NotFound(f"There is no step {quote(wanted)} to take back.", "Call without `step` for the list.")
    # What was taken back in between has cancelled itself out.
    chosen = [*(one for one in steps[:number] if later and not one.record.undoes), steps[number]]
    all_places = _Touched(place for one in chosen for entry in one.entries for place in entry.places)
    chosen = [_without_kept_folders(one, all_places) for one in chosen]
    touched = _Touched()
    for one in chosen:
        _refuse_changed(one.entries, touched, steps[:number])
    notes: list[str] = []
    diffs = _diffs(chosen, stop) if dry_run else []
    # What is written down for the first may not make room by forgetting the others.
    with store.sparing([one.record.kept for one in chosen]):
        for count, one in enumerate(() if dry_run else chosen):
            with Step(store, stop, None if one.record.undoes else one.record.tool) as step:
                try:
                    _take_back(one, store, step, stop)
                except Problem as failure:
                    if not count:
                        raise
                    raise Conflict(
                        f"{count} of {len(chosen)} steps were taken back. The next one was not: {failure.what}",
                        failure.fix,
                    ) from failure
            notes += step.notes
    lines = [f"{one.record.kept.id} {one.did}: {entry.way}" for one in chosen for entry in one.entries]
    return Undone(lines, dry_run, notes, diffs)


def _without_kept_folders(one: _Step, going: _Touched) -> _Step:
    """The step without folders that were made for a file in them and hold others by now: those stay."""
    if all(entry.item.after == MADE for entry in one.entries):
        return one
    return replace(one, entries=[e for e in one.entries if e.item.after != MADE or not _holds_others(e.place, going)])


def _diffs(chosen: Sequence[_Step], stop: Stop) -> list[str]:
    """What taking steps back, the newest first, does to text files."""
    ends = {entry.place: entry for one in chosen for entry in one.entries if entry.source is None}
    diffs: list[str] = []
    for place, entry in ends.items():
        stop.check()
        if entry.kept is not None and _is_free(entry.kept):
            continue  # back already
        try:
            now, then = _text(place), None if entry.kept is None else _text(entry.kept)
        except (OSError, Problem):
            continue  # no text
        if now != then:
            name = display_path(place)
            diffs.append(unified_diff(now or "", then or "", name, created=now is None, deleted=then is None))
        if sum(map(len, diffs)) > DEFAULT_PAGE_BYTES:
            break
    return diffs


def _text(place: Writable) -> str | None:
    """The text of a file; None for nothing.

    Raises:
        Problem: it is not text, or too large.
    """
    try:
        with open_file(place) as file:
            data = file.read(MAX_EDIT_BYTES + 1)
    except NotFound:
        return None
    decoded = decode(data) if len(data) <= MAX_EDIT_BYTES else None
    if decoded is None:
        raise Invalid(f"{quote(display_path(place))} is not text.")
    return replace_undecodable(decoded.text)


def _mine(policy: Policy, store: Store, stop: Stop, unread: list[Kept]) -> list[_Step]:
    """The steps of who calls, the newest first, whose entries are all served and not all back."""
    try:
        return list(_steps(policy, store, stop, unread))
    except OSError as error:
        raise Unavailable(f"The old contents that are kept can't be read: {reason(error)}.") from error


def _steps(policy: Policy, store: Store, stop: Stop, unread: list[Kept]) -> Iterator[_Step]:
    store.tidy()
    _, caller = CALL.get()
    touched = _Touched()
    for kept in store.steps():
        stop.check()
        try:
            record = store.read(kept)
        except (NotFound, FileNotFoundError):
            continue  # another process has forgotten it
        except (OSError, Problem, ValueError, TypeError, KeyError) as damage:
            _log.warning("a step that could be taken back can't be read: %s: %r", kept.name, damage)
            unread.append(kept)
            continue
        if record.by != caller:
            continue
        try:
            entries = [_entry(policy, store, record, item) for item in record.items]
        except Problem:
            continue  # outside of what this server serves, or protected
        places = [place for entry in entries for place in entry.places]
        if not touched.meets(places) and all(_standing(entry) == "back already" for entry in entries):
            if time.time() - kept.time > _YOUNG:
                store.remove(kept, idle=True)
            continue
        for place in places:
            touched.add(place)
        yield _Step(record, entries)


def _entry(policy: Policy, store: Store, record: Record, item: Item) -> _Entry:
    return _Entry(
        item,
        policy.writable(item.uri),
        None if item.source is None else policy.writable(item.source),
        None if item.kept is None else store.place(f"{record.kept.name}.{item.kept}"),
    )


def _standing(entry: _Entry) -> Standing:
    item = entry.item
    try:
        if entry.source is not None:
            if _still(entry.place, item.after):
                # With both names there, taking it back has begun.
                both = entry.kept is not None and not _is_free(entry.kept) and _still(entry.source, item.after)
                replaces = item.left is not None and _still(entry.source, item.left)
                is_left = both or replaces or _is_free(entry.source) or _is_unmoved(entry)
                return "as it was left" if is_left else "changed since"
            if not (_still(entry.source, item.after) or _is_unmoved(entry)):
                return "changed since"
            if entry.kept is None or _is_free(entry.kept) or _still(entry.place, item.before):
                return "back already"
            return "as it was left" if _is_free(entry.place) else "changed since"
        if item.kept is not None and entry.kept is not None and _is_free(entry.kept):
            return "back already"  # or it never went
        if item.before == MADE:
            return "as it was left" if _is_free(entry.place) else "back already"
        if _still(entry.place, item.before):
            return "back already"
        if _is_free(entry.place):
            return "as it was left"  # nothing is overwritten
        return "as it was left" if _still(entry.place, item.after) else "changed since"
    except Problem:
        return "changed since"


def _still(place: Writable, state: State | None) -> bool:
    try:
        with resolve(place, follow=False) as spot:
            return is_still(spot.folder, spot.name, state)
    except NotFound:
        return state is None


def _is_unmoved(entry: _Entry) -> bool:
    """Whether something was copied to be deleted then, and never was."""
    origin = entry.item.origin
    return entry.source is not None and origin is not None and _still(entry.source, origin)


def _is_free(place: Writable) -> bool:
    return _still(place, None)


def _holds_others(place: Writable, touched: _Touched) -> bool:
    """Whether there is anything in a folder but what will have gone by then."""
    try:
        with open_folder(place) as folder:
            return any(not touched.has(folder.place / entry.name) for entry in folder.scan())
    except NotFound:
        return False
    except Problem:
        return True


def _refuse_changed(entries: Sequence[_Entry], touched: _Touched, later: Sequence[_Step] = ()) -> None:
    """Return when all that is known to be as the step left it is so; what is not known yet is looked at in its turn."""
    changed: list[Writable] = []
    for entry in reversed(entries):
        if entry.item.after == MADE:
            is_changed = not touched.covers(entry.place) and _holds_others(entry.place, touched)
        else:
            is_changed = not touched.meets(entry.places) and _standing(entry) == "changed since"
        if is_changed:
            changed.append(entry.place)
        for place in entry.places:
            touched.add(place)
    if not changed:
        return
    named = ", ".join(quote(display_path(place)) for place in changed[:_MOST_NAMED])
    more = f" and {len(changed) - _MOST_NAMED} more" if len(changed) > _MOST_NAMED else ""
    about = _Touched(changed)
    others = [one.record.kept.id for one in later if any(about.meets(entry.places) for entry in one.entries)]
    fix = (
        f"Step {others[0]} came later: take that back first, or set `later`."
        if others
        else "Move what is there to another name first; then this brings back what was there before."
    )
    raise Conflict(f"{named}{more} changed since that step; nothing was taken back.", fix)


def _take_back(one: _Step, store: Store, step: Step, stop: Stop) -> None:
    with told(one.entries[0].place), ExitStack() as stack:
        hold(stack.enter_context(open_file(store.place(one.record.kept.name))).fileno())
        entries = [entry for entry in one.entries if _standing(entry) != "back already"]
        if made := [entry for entry in reversed(entries) if entry.item.before == MADE]:
            step.begin([Intent(entry.place, None, MADE) for entry in made])
            for entry in made:
                create_folder(entry.place, stop)
            entries = [entry for entry in entries if entry.item.before != MADE]
        reached = [_Reached(entry, stack) for entry in reversed(entries)]
        stack.enter_context(locked([spot for each in reached for spot in each.spots], stop))
        _refuse_changed(entries, _Touched())
        given = step.record([each.intent(step, stop) for each in reached]) if reached else ()
        for each, where in zip(reached, given, strict=True):
            with told(each.entry.place):
                each.bring_back(where, stop)
            for spot in each.spots:
                confirm(spot.folder, each.entry.place, "taken back")
                spot.folder.close()  # the next may remove it, which Windows does of none that is open
    with suppress(OSError):  # it is not listed any more in any case
        store.remove(one.record.kept)


class _Reached:
    """An entry with the open folders it is about."""

    def __init__(self, entry: _Entry, stack: ExitStack) -> None:
        self.entry = entry
        self.end = stack.enter_context(writing_to(entry.place, follow=False))
        self.source = None if entry.source is None else stack.enter_context(writing_to(entry.source, follow=False))
        self.kept = None if entry.kept is None else stack.enter_context(resolve(entry.kept, follow=False))

    @property
    def spots(self) -> list[Spot[Writable]]:
        return [self.end] if self.source is None else [self.end, self.source]

    def intent(self, step: Step, stop: Stop) -> Intent:
        """What `bring_back` will do, by which it could be taken back itself."""
        place, folder = self.end.place, self.end.folder
        if self.source is not None:
            now = state_of(folder, self.end.name, thorough=step.is_far(folder))
            if now is not None and now.kind == "folder":
                now = replace(now, kind="tree")
            left = state_of(self.kept.folder, self.kept.name, thorough=True) if self.kept else None
            over = self.source.folder if self.entry.item.left else None  # what is there is kept, and replaced
            return Intent(self.source.place, over, now, source=place, left=left)
        if self.entry.item.after == MADE:
            return Intent(place, None, None, before=MADE)
        if self.kept is None:
            return Intent(place, folder, None, gives=weight(self.end, stop))
        return Intent(place, folder, state_of(self.kept.folder, self.kept.name, thorough=True))

    def bring_back(self, where: Writable | None, stop: Stop) -> None:
        """Do it; what has to go, goes to `where`, if that is anywhere."""
        entry, end = self.entry, self.end
        if self.source is not None and entry.source is not None:
            if _is_unmoved(entry):
                remove_all(end.folder, end.name, stop)
            elif state_of(end.folder, end.name) is not None and not self._has_both_names():
                over = entry.item.left is not None
                relocate(end, entry.place, self.source, entry.source, overwrite=over, stop=stop)
        elif entry.item.after == MADE:
            end.folder.remove_folder(end.name)
        elif self.kept is None and where is None:
            remove_all(end.folder, end.name, stop)
        elif where is not None:
            with resolve(where, follow=False) as trash:
                relocate(end, entry.place, trash, where, overwrite=False, stop=stop)
        if self.kept is not None and entry.kept is not None:
            relocate(self.kept, entry.kept, end, entry.place, overwrite=True, stop=stop)

    def _has_both_names(self) -> bool:
        """Give what is moved back its old name beside the new one, which what it had replaced takes in one step."""
        if self.source is None or self.kept is None:
            return False
        try:
            self.end.folder.add_name(self.end.name, self.source.folder, self.source.name)
        except FileExistsError:
            return True
        except OSError:  # a folder, or another file system
            return False
        return True
