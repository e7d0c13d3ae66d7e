"""One fault at each operation of a change in turn, as SQLite tests its commits; run as a program.

`python -m filesystem.crashes FOLDER [SCENARIO ...]` prints one JSON line per scenario by itself, written down so that
it can be taken back, and being taken back, these two also with old contents on another file system: how many faults
were tried and what went wrong. Kills happen in a forked child, which is why this is no test module: a test process has
threads, and a fork of it is no sound copy.
"""

from __future__ import annotations

import ctypes
import errno
import io
import json
import os
import shutil
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import combinations, product
from pathlib import Path
from random import Random
from typing import Any

from filesystem.places import Told, delete
from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Problem, Unavailable
from mcp_batteries.server.declaration.call_origin import CallOrigin
from mcp_fs.engine.changing import atomic_write, folders, patching, targets, writing
from mcp_fs.engine.changing.entries import copying, deleting, entry_copy, moving
from mcp_fs.engine.changing.entries.batch import copy_pairs, move_pairs
from mcp_fs.engine.changing.file_edits import FileChange, change_files
from mcp_fs.engine.changing.patch import apply_hunks, parse_patch
from mcp_fs.engine.changing.replacing.replace import replace_in_files
from mcp_fs.engine.changing.replacing.substitution import Substitution
from mcp_fs.engine.handles import metadata, posix, syscalls, temp_files
from mcp_fs.engine.journal import store as undo_store
from mcp_fs.engine.journal.journal import JournalEntry
from mcp_fs.engine.journal.store import JournalStore
from mcp_fs.engine.listing.walk import WalkFilter
from mcp_fs.engine.packing import unzip
from mcp_fs.engine.text.edit import Replacement, apply_replacements
from mcp_fs.engine.undo import undo
from mcp_fs.policy import Policy
from mcp_fs.policy.path_arguments import ArchivePart, LineRange, PathArguments
from proofs.tally import Tally

COUNTED = (
    "open",
    *(WRITES := ("write", "copy_file_range")),
    "ftruncate",
    "fsync",
    "fchmod",
    "fchown",
    "setxattr",
    "rename",
    "link",
    "unlink",
    "mkdir",
    "rmdir",
    "utime",
    "chown",
)
NEW = "new content, longer than the old\n" * 50
State = dict[str, str]


class Faulty:
    """The `os` module, and the rename it lacks, with a fault at the operation number `at`."""

    is_far = False
    """Whether what is kept is as if on another file system."""

    def __init__(self, at: int, kind: str) -> None:
        self.at, self.kind, self.log = at, kind, list[str]()

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        return partial(self.call, name, real) if name in COUNTED else real

    def call(self, name: str, real: Callable[..., Any], *args: Any, **options: Any) -> Any:
        self.log.append(f"{name} {args[0]}" if isinstance(args[0], str) else name)
        if len(self.log) == self.at or (self.kind == "dead" and 0 < self.at < len(self.log)):
            if name in WRITES and self.kind.startswith("half"):
                *which, last = args
                real(*which, last[: len(last) // 2] if name == "write" else os.fstat(args[0]).st_size // 2)
            if self.kind.endswith("kill"):
                os._exit(9)
            number = errno.ENOSPC if self.kind == "full" else errno.EIO
            raise OSError(number, os.strerror(number))
        if self.is_far and name == "link" and _is_store(options["src_dir_fd"]) != _is_store(options["dst_dir_fd"]):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        return real(*args, **options)

    def rename_exclusive(self, real: Callable[..., int], *args: Any) -> int:
        """renameat2(2) as C calls it: the number of the error beside the result."""
        try:
            return self.call("renameat2", lambda _, *rest: real(*rest), args[1].decode(), *args)
        except OSError as error:
            ctypes.set_errno(error.errno or 0)
            return -1


def installed(faulty: Faulty) -> None:
    moving.are_on_different_disks = _are_far if faulty.is_far else _are_apart
    JournalEntry.is_on_other_disk = (lambda self, folder: True) if faulty.is_far else _is_far  # type: ignore[method-assign]
    for module in (posix, atomic_write, targets, copying, entry_copy, syscalls, metadata, undo_store, unzip):
        module.os = faulty  # type: ignore[attr-defined]
    if _rename_exclusive is not None:
        syscalls._rename_exclusive = partial(faulty.rename_exclusive, _rename_exclusive)


_rename_exclusive, _are_apart, _is_far = (
    syscalls._rename_exclusive,
    moving.are_on_different_disks,
    JournalEntry.is_on_other_disk,
)


def _is_store(fd: int) -> bool:
    return "/undo" in os.readlink(f"/proc/self/fd/{fd}")


def _are_far(start: Any, end: Any) -> bool:
    return start.folder.path.root.real_path != end.folder.path.root.real_path


@dataclass(frozen=True)
class Scenario:
    """A change; `old` and `new` are all files before and after. Whole files may mix when it is killed."""

    name: str
    old: State
    new: State
    run: Callable[[Policy, JournalEntry | None], object]
    puts: State = field(default_factory=State)
    """Where each of several goes."""


def _edit(policy: Policy, step: JournalEntry | None) -> object:
    revise = partial(apply_replacements, replacements=[Replacement("old", NEW)], label="f", cancel=CancelToken())
    return change_files(
        [FileChange(policy.writable("f"), revise)], dry_run=False, cancel=CancelToken(), journal_entry=step
    )


def _patch(policy: Policy, step: JournalEntry | None) -> object:
    patches = parse_patch(
        "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-old\n\\ No newline at end of file\n+new\n\\ No newline at end of file\n"
        "--- a/g\n+++ b/g\n@@ -1 +1 @@\n-G\n\\ No newline at end of file\n+H\n\\ No newline at end of file\n"
        "--- /dev/null\n+++ b/made\n@@ -0,0 +1 @@\n+made\n"
        "--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n"
    )
    changes = [
        FileChange(
            policy.writable(patch.path),
            partial(apply_hunks, patch=patch, label="f", cancel=CancelToken()),
            creates=patch.creates,
            deletes=patch.deletes,
        )
        for patch in patches
    ]
    return change_files(changes, dry_run=False, cancel=CancelToken(), journal_entry=step)


def _patch_names(policy: Policy, step: JournalEntry | None) -> object:
    patch = (
        "diff --git a/f b/n\nrename from f\nrename to n\n--- a/f\n+++ b/n\n@@ -1 +1 @@\n-old\n+new\n"
        "diff --git a/g b/h\nrename from g\nrename to h\n--- a/g\n+++ b/h\n@@ -1 +1 @@\n-G\n+H\n"
    )
    return patching.apply_patch(PathArguments(policy), patch, dry_run=False, cancel=CancelToken(), journal_entry=step)


def _write(policy: Policy, step: JournalEntry | None) -> object:
    return writing.write_file(policy.writable("f"), NEW, overwrite=True, cancel=CancelToken(), journal_entry=step)


def _append(policy: Policy, step: JournalEntry | None) -> object:
    return writing.append_text(policy.writable("f"), NEW, CancelToken(), step)


def _replace(policy: Policy, step: JournalEntry | None) -> object:
    wanted, substitution = WalkFilter(), Substitution({"old": NEW})
    return replace_in_files(
        policy.writable("."), "*", wanted, substitution, dry_run=False, cancel=CancelToken(), journal_entry=step
    )


def _move_across(policy: Policy, step: JournalEntry | None) -> object:
    """A move to another file system."""
    real, moving.are_on_different_disks = moving.are_on_different_disks, lambda *_: True
    try:
        return moving.move_entry(
            policy.writable("a"), policy.writable("b"), overwrite=False, cancel=CancelToken(), journal_entry=step
        )
    finally:
        moving.are_on_different_disks = real


def _delete_several(policy: Policy, step: JournalEntry | None) -> object:
    places = [policy.writable(path) for path in ("d", "f", "d/h", "g")]
    return deleting.delete_all(places, recursive=True, trash=False, cancel=CancelToken(), journal_entry=step)


def _move_to_new(policy: Policy, step: JournalEntry | None) -> object:
    """A move into folders that are not there yet."""
    with folders.create_missing_folders([policy.writable("b/c")], CancelToken(), step):
        return moving.move_entry(
            policy.writable("a"), policy.writable("b/c/a"), overwrite=False, cancel=CancelToken(), journal_entry=step
        )


def _move_several(policy: Policy, step: JournalEntry | None) -> object:
    """Into one new folder, and over a file."""
    with folders.create_missing_folders([policy.writable("n")], CancelToken(), step):
        pairs = [(policy.writable(one), policy.writable(other)) for one, other in MOVES.items()]
        return move_pairs(pairs, overwrite=True, cancel=CancelToken(), journal_entry=step)


def _copy_several(policy: Policy, step: JournalEntry | None) -> object:
    pairs = [(policy.readable(one), policy.writable(other)) for one, other in COPIES.items()]
    return copy_pairs(pairs, overwrite=True, cancel=CancelToken(), journal_entry=step)


def _copy_lines(policy: Policy, step: JournalEntry | None) -> object:
    """One over a file, one into a new folder."""
    with folders.create_missing_folders([policy.writable("n")], CancelToken(), step):
        parts = (LineRange(policy.readable("f"), 1, 2, "f:1-2"), LineRange(policy.readable("f"), -1, None, "f:-1"))
        pairs = [(part, policy.writable(LINES[part.display])) for part in parts]
        return copy_pairs(pairs, overwrite=True, cancel=CancelToken(), journal_entry=step)


ORIGIN = CallOrigin("", "")
LINES = {"f:1-2": "g", "f:-1": "n/h"}
MOVES = {"f": "n/f", "d": "n/d", "g": "over"}
COPIES = {"f": "h", "d": "e"}


def _text_with_ascii_checksum(start: str) -> str:
    """Return a text whose checksum is ASCII too, so that a stored archive of it is text."""
    for number in range(10_000):
        text = f"{start} {number}"
        if all(byte < 0x80 and byte != 0x0D for byte in zlib.crc32(text.encode()).to_bytes(4, "little")):
            return text
    raise AssertionError


def _stored_zip(members: State) -> str:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, text in members.items():
            info = zipfile.ZipInfo(name)
            archive.writestr(info, text)
            info.external_attr = 0
    return packed.getvalue().decode("ascii")


PACKED = {"x": _text_with_ascii_checksum("x"), "b/y": _text_with_ascii_checksum("y")}
ZIP = _stored_zip(PACKED)


def _unzip(policy: Policy, step: JournalEntry | None) -> object:
    archive = ArchivePart(policy.readable("a.zip"), (), "a.zip!/")
    return copying.copy_entry(archive, policy.writable("c"), overwrite=False, cancel=CancelToken(), journal_entry=step)


SCENARIOS = [
    Scenario("unzip", {"a.zip": ZIP}, {"a.zip": ZIP, "c/x": PACKED["x"], "c/b/y": PACKED["b/y"]}, _unzip),
    Scenario(
        "move several",
        {"f": "f", "g": "g", "d/h": "h", "over": "o"},
        {"n/f": "f", "n/d/h": "h", "over": "g"},
        _move_several,
        MOVES,
    ),
    Scenario(
        "copy several",
        {"f": "f", "d/g": "g", "h": "h"},
        {"f": "f", "d/g": "g", "h": "f", "e/g": "g"},
        _copy_several,
        COPIES,
    ),
    Scenario(
        "copy lines",
        {"f": "1\n2\n3\n", "g": "old"},
        {"f": "1\n2\n3\n", "g": "1\n2\n", "n/h": "3\n"},
        _copy_lines,
        LINES,
    ),
    Scenario("delete several", {"f": "f", "g": "g", "d/h": "h", "other": "o"}, {"other": "o"}, _delete_several),
    Scenario("move to new", {"a/f": "f", "a/d/g": "g"}, {"b/c/a/f": "f", "b/c/a/d/g": "g"}, _move_to_new),
    Scenario("append", {"f": "old"}, {"f": f"old\n{NEW}"}, _append),
    Scenario(
        "replace",
        {"f": "an old one", "g": "old", "d/h": "old and old", "other": "other"},
        {"f": f"an {NEW} one", "g": NEW, "d/h": f"{NEW} and {NEW}", "other": "other"},
        _replace,
    ),
    Scenario("move across", {"a/f": "f", "a/d/g": "g"}, {"b/f": "f", "b/d/g": "g"}, _move_across),
    Scenario("create", {}, {"f": NEW}, _write),
    Scenario("overwrite", {"f": "old"}, {"f": NEW}, _write),
    Scenario("edit", {"f": "an old one"}, {"f": f"an {NEW} one"}, _edit),
    Scenario(
        "patch",
        {"f": "old", "g": "G", "gone": "gone\n"},
        {"f": "new", "g": "H", "made": "made\n"},
        _patch,
    ),
    Scenario("patch names", {"f": "old\n", "g": "G\n"}, {"n": "new\n", "h": "H\n"}, _patch_names),
    Scenario(
        "copy",
        {"f": NEW, "a/x": "x", "a/b/y": "y"},
        {"f": NEW, "a/x": "x", "a/b/y": "y", "c/x": "x", "c/b/y": "y"},
        lambda policy, step: copying.copy_entry(
            policy.readable("a"), policy.writable("c"), overwrite=False, cancel=CancelToken(), journal_entry=step
        ),
    ),
    Scenario(
        "copy over",
        {"f": NEW, "g": "old"},
        {"f": NEW, "g": NEW},
        lambda policy, step: copying.copy_entry(
            policy.readable("f"), policy.writable("g"), overwrite=True, cancel=CancelToken(), journal_entry=step
        ),
    ),
    Scenario(
        "move",
        {"a/f": "f"},
        {"b/f": "f"},
        lambda policy, step: moving.move_entry(
            policy.writable("a"), policy.writable("b"), overwrite=False, cancel=CancelToken(), journal_entry=step
        ),
    ),
    Scenario(
        "move over",
        {"f": "f", "g": "g"},
        {"g": "f"},
        lambda policy, step: moving.move_entry(
            policy.writable("f"), policy.writable("g"), overwrite=True, cancel=CancelToken(), journal_entry=step
        ),
    ),
    Scenario(
        "delete folder",
        {"a/x": "x", "a/b/y": "y", "g": "g"},
        {"g": "g"},
        lambda policy, step: delete(policy.writable("a"), recursive=True, step=step),
    ),
    Scenario(
        "delete",
        {"f": "f", "g": "g"},
        {"g": "g"},
        lambda policy, step: delete(policy.writable("f"), recursive=False, step=step),
    ),
]


def build(root: Path, state: State) -> Policy:
    shutil.rmtree(root, ignore_errors=True)
    shutil.rmtree(root.with_name("undo"), ignore_errors=True)
    root.mkdir()
    for name, text in state.items():
        (root / name).parent.mkdir(exist_ok=True, parents=True)
        (root / name).write_text(text)
    temp_files._cleaned_folders.clear()
    return Policy(Told((str(root),)))


def found(root: Path) -> State:
    paths = [path for path in root.rglob("*") if path.is_file() and ".~" not in str(path.relative_to(root))]
    return {str(path.relative_to(root)): path.read_text() for path in paths}


def after_next_start(root: Path, scenario: Scenario) -> list[str]:
    """What is wrong with the temporary entries that are there once a later process has cleaned up: none but the only
    copies of old contents, and all of these, however many copies are kept elsewhere to be taken back."""
    before = old_contents(root)
    temp_files._START_TIME, started = time.time() + 60, temp_files._START_TIME
    temp_files.clean_leftovers(Policy(Told((str(root),))), CancelToken())
    temp_files._START_TIME = started
    there = found(root).values()
    only = {text for text in scenario.old.values() if text not in there}
    left, after = [path for path in root.rglob("*") if path.name.startswith(".~")], old_contents(root)
    needless = [f"left {path.name}" for path in left if after.get(path.name) not in only]
    return needless + [f"cleaned {name}" for name, text in before.items() if name not in after and text not in there]


def old_contents(root: Path) -> State:
    """What changes have kept beside the files."""
    return {path.name: path.read_text() for path in root.rglob(f"{temp_files.BACKUP_PREFIX}*")}


Run = Callable[[Policy], object]
"""What meets the fault: a scenario by itself, one that is written down, or taking that back."""


def plain(root: Path, scenario: Scenario) -> Run:
    return lambda policy: scenario.run(policy, None)


def written_down(root: Path, scenario: Scenario) -> Run:
    not_kept.clear()

    def run(policy: Policy) -> object:
        with JournalEntry(kept(root), ORIGIN, CancelToken()) as step:
            try:
                return scenario.run(policy, step)
            finally:
                not_kept.extend(step.notes)

    return run


not_kept: list[str] = []
"""What the answer said that can't be taken back."""


def taken_back(root: Path, scenario: Scenario) -> Run:
    written_down(root, scenario)(Policy(Told((str(root),))))
    return lambda policy: take_back(root, policy)


def kept(root: Path) -> JournalStore:
    return JournalStore(str(root.with_name("undo")), most_bytes=1_000_000, days=1)


def take_back(root: Path, policy: Policy) -> object:
    """Take back all there is to take back, if anything."""
    steps = undo.list_undoable_entries(policy, kept(root), ORIGIN.caller, CancelToken())
    if steps.unreadable_count:
        raise Unavailable(steps.text())
    forward = [step for step in steps.steps if not step.tool.startswith("undo")]
    if not forward:
        return None
    return undo.undo_entries(
        policy, kept(root), ORIGIN, forward[-1].id, later=True, dry_run=False, cancel=CancelToken()
    )


# What an answer says of a change that went half-way.
_NOT_CONFIRMED = "does not confirm"
_NOT_REMOVED = "not all of it could be removed"
_PARTLY_GONE = "part of it may be gone"


def killed(root: Path, scenario: Scenario, prepare: Prepare, at: int, kind: str) -> tuple[bool, str | None]:
    """(whether the fault was met, what is wrong)"""
    policy = build(root, scenario.old)
    run = prepare(root, scenario)
    child = os.fork()
    if child == 0:
        installed(Faulty(at, kind))
        run(policy)
        os._exit(0)
    met = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0
    state = found(root)
    for name in scenario.old | scenario.new:
        if state.get(name) not in (scenario.old.get(name), scenario.new.get(name)):
            return met, f"{name} holds {state.get(name)!r:.60}"
    if not met and state != (scenario.old if prepare is taken_back else scenario.new):
        return met, f"success, but {state!r:.80}"
    return met, None


def failed(root: Path, scenario: Scenario, prepare: Prepare, at: int, kind: str) -> tuple[bool, str | None]:
    """Make a change while one operation fails: (whether the fault was met, what is wrong)"""
    policy = build(root, scenario.old)
    run = prepare(root, scenario)
    before, after = scenario.old, scenario.new
    if prepare is taken_back:
        before, after = after, before
    faulty = Faulty(at, kind)
    installed(faulty)
    try:
        notes: list[str] = getattr(run(policy), "notes", [])
        answer = "success"
        expected = [_expect_success(before, after, notes)]
    except Problem as problem:
        answer = str(problem)
        expected = _expect_failure(scenario, before, after, answer)
        if _NOT_REMOVED in answer:
            not_kept.append(answer)
        if prepare is taken_back or (kind == "dead" and _is_kept_or_nowhere_lost(root, scenario, prepare, answer)):
            # Whole files may mix: the rest of them is taken back by the next call.
            expected = _expect_mixture(scenario)
    except OSError as error:
        return True, f"raised {error!r}"
    finally:
        installed(Faulty(0, ""))
    met = len(faulty.log) >= at
    state = found(root)
    if state in expected:
        return met, None
    return met, f"{answer!r} at {faulty.log[at - 1 : at]}, but {sorted(state.items())!r:.120}"


def _expect_success(before: State, after: State, notes: list[str]) -> State:
    """Return the files after a change: one that could not be read stays as it is, and a note names it."""
    named = {name for note in notes for name in note.rpartition(": ")[2].split(", ")}
    unread = {name: text for name, text in before.items() if named & {name, *map(str, Path(name).parents)}}
    return after | unread


def _expect_failure(scenario: Scenario, before: State, after: State, answer: str) -> list[State]:
    """Return the files that there may be after a change that failed, as its answer says."""
    if _NOT_REMOVED in answer or _PARTLY_GONE in answer:
        return [after | remaining for remaining in _parts(before)]
    if "was copied to, but the disk" in answer:
        return [before | after]
    if "The next was not: " in answer:
        return [_expect_first_steps(scenario, before, after, answer)]
    if _NOT_CONFIRMED in answer:
        return [after]
    return [before]


def _expect_first_steps(scenario: Scenario, before: State, after: State, answer: str) -> State:
    """Return the files after the steps that the answer names as done."""
    moved = {*answer.partition(" The next was not: ")[0].split("`")[1::2]}
    targets = {scenario.puts[name] for name in moved if name in scenario.puts}
    arrived = {path: text for path, text in after.items() if targets & {path, str(Path(path).parent)}}
    gone = {path for path in before if {path, path.partition("/")[0]} & moved and path not in after}
    return {path: text for path, text in before.items() if path not in gone} | arrived


def _expect_mixture(scenario: Scenario) -> list[State]:
    """Return all files that there may be when each of them is the old or the new one, or is not there."""
    mixtures = _mixtures(scenario.old, scenario.new)
    return [{name: text for name, text in mixture.items() if text} for mixture in mixtures]


def _is_kept_or_nowhere_lost(root: Path, scenario: Scenario, prepare: Prepare, answer: str) -> bool:
    """Return whether a change of a disk that died can be taken back, or has lost no old text."""
    is_kept = prepare is not plain and not not_kept
    return is_kept or not lost(root, scenario, answer)


def lost(root: Path, scenario: Scenario, answer: str) -> set[str]:
    """Old texts that are nowhere any more, though the change failed."""
    if any(said in answer for said in (_NOT_CONFIRMED, _PARTLY_GONE, _NOT_REMOVED)):
        return set()
    return {*scenario.old.values()} - {*found(root).values(), *old_contents(root).values()}


def _mixtures(old: State, new: State) -> list[State]:
    names = sorted(old | new)
    return [
        {name: state.get(name, "") for name, state in zip(names, states, strict=True)}
        for states in product((old, new), repeat=len(names))
    ]


Prepare = Callable[[Path, Scenario], Run]


def _parts(state: State) -> list[State]:
    """All that may be left of `state` when some of it is gone."""
    return [dict(some) for size in range(len(state) + 1) for some in combinations(state.items(), size)]


@dataclass(frozen=True)
class Trials:
    """What came of the faults at each operation of one scenario.

    Attributes:
        tried: how many faults were met.
        wrong: what was not as it must be, by the fault.
        log: the operations.
    """

    scenario: str
    tried: int
    wrong: list[str]
    log: list[str]


def list_scenarios() -> dict[str, tuple[Scenario, Prepare, bool]]:
    """Return by its name each scenario, how it is prepared, and whether old contents are on another file system."""
    scenarios: dict[str, tuple[Scenario, Prepare, bool]] = {}
    for scenario, prepare, is_far in product(SCENARIOS, (plain, written_down, taken_back), (False, True)):
        if is_far and prepare is plain:
            continue
        name = f"{scenario.name}, {prepare.__name__}".replace("_", " ").removesuffix(", plain") + ", far" * is_far
        scenarios[name] = scenario, prepare, is_far
    return scenarios


def try_scenarios(folder: str, *names: str) -> Iterator[Trials]:
    """Try the scenarios of these names; all, if none is named."""
    root = Path(folder) / "root"
    for name, (scenario, prepare, is_far) in list_scenarios().items():
        if names and name not in names:
            continue
        Faulty.is_far = is_far
        installed(Faulty(0, ""))
        tried, wrong = 0, list[str]()
        log = operations(root, scenario, prepare)
        for at, operation in enumerate(log, 1):
            for kind in ("kill", "error", "full", "dead", "half kill", "half error"):
                if kind.startswith("half") and not operation.startswith(WRITES):
                    continue
                trial = killed if kind.endswith("kill") else failed
                met, mistake = trial(root, scenario, prepare, at, kind)
                tried += met
                if mistake is None and (left := after_next_start(root, scenario)):
                    mistake = ", ".join(left)
                if mistake is None and prepare is not plain and not not_kept:
                    mistake = not_back(root, scenario)
                if mistake is not None or not met:
                    wrong.append(f"{kind} at {at}: {mistake or 'was not met'}")
        yield Trials(name, tried, wrong, log)


def draw_scenarios(share: float, seed: int) -> list[str]:
    """Return the names of a share of all scenarios."""
    names = list(list_scenarios())
    return Random(seed).sample(names, max(1, round(share * len(names))))


def prove(share: float, seed: int) -> Tally:
    """Try each fault in each scenario of a share of all."""
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        for trials in try_scenarios(folder, *draw_scenarios(share, seed)):
            tally.counts["scenarios"] += 1
            tally.counts["faults"] += trials.tried
            tally.wrong += [f"{trials.scenario}: {fault}" for fault in trials.wrong]
    return tally


def operations(root: Path, scenario: Scenario, prepare: Prepare) -> list[str]:
    """What is done when nothing fails."""
    build(root, scenario.old)
    run = prepare(root, scenario)
    installed(faulty := Faulty(0, ""))
    run(Policy(Told((str(root),))))
    installed(Faulty(0, ""))
    return faulty.log


def not_back(root: Path, scenario: Scenario) -> str | None:
    """What is wrong once another process has taken back what there is to take back."""
    try:
        take_back(root, Policy(Told((str(root),))))
    except Problem as problem:
        return f"can't be taken back: {problem}"
    state = found(root)
    return None if state == scenario.old else f"taken back to {sorted(state.items())!r:.120}"


if __name__ == "__main__":
    for trials in try_scenarios(*sys.argv[1:]):
        print(json.dumps(asdict(trials)), flush=True)
