"""One fault at each operation of a change in turn, as SQLite tests its commits; run as a program.

It prints one JSON line per scenario: how many faults were tried and what went wrong. Kills happen in a forked
child, which is why this is no test module: a test process has threads, and a fork of it is no sound copy.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

from filesystem.places import Told
from mcp_batteries.errors import Problem
from mcp_batteries.limits import Stop
from mcp_fs.engine.files import belongings, handles_posix, syscalls, temp_files, tree, write
from mcp_fs.engine.files.edit import Replacement, replace
from mcp_fs.engine.files.patch import apply_hunks, parse
from mcp_fs.engine.files.transaction import Change, change_files
from mcp_fs.engine.replace import Substitution, replace_in_files
from mcp_fs.engine.walk import Filter
from mcp_fs.policy import Policy

COUNTED = (
    "open",
    "write",
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

    def __init__(self, at: int, kind: str) -> None:
        self.at, self.kind, self.log = at, kind, list[str]()

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        return partial(self.call, name, real) if name in COUNTED else real

    def call(self, name: str, real: Callable[..., Any], *args: Any, **options: Any) -> Any:
        self.log.append(f"{name} {args[0]}" if isinstance(args[0], str) else name)
        if len(self.log) == self.at:
            if name == "write" and self.kind.startswith("half"):
                real(args[0], args[1][: len(args[1]) // 2])
            if self.kind.endswith("kill"):
                os._exit(9)
            number = errno.ENOSPC if self.kind == "full" else errno.EIO
            raise OSError(number, os.strerror(number))
        return real(*args, **options)

    def rename_exclusive(self, real: Callable[..., int], *args: Any) -> int:
        """renameat2(2) as C calls it: the number of the error beside the result."""
        try:
            return self.call("renameat2", lambda _, *rest: real(*rest), args[1].decode(), *args)
        except OSError as error:
            ctypes.set_errno(error.errno or 0)
            return -1


def installed(faulty: Faulty) -> None:
    for module in (handles_posix, write, tree, syscalls, belongings):
        module.os = faulty  # type: ignore[attr-defined]
    if _rename_exclusive is not None:
        syscalls._rename_exclusive = partial(faulty.rename_exclusive, _rename_exclusive)


_rename_exclusive = syscalls._rename_exclusive


@dataclass(frozen=True)
class Scenario:
    """A change; `old` and `new` are all files before and after. Whole files may mix when it is killed."""

    name: str
    old: State
    new: State
    run: Callable[[Policy], object]


def _edit(policy: Policy) -> object:
    revise = partial(replace, replacements=[Replacement("old", NEW)], shown="f", stop=Stop())
    return change_files([Change(policy.writable("f"), revise)], dry_run=False, stop=Stop())


def _patch(policy: Policy) -> object:
    patches = parse(
        "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-old\n\\ No newline at end of file\n+new\n\\ No newline at end of file\n"
        "--- a/g\n+++ b/g\n@@ -1 +1 @@\n-G\n\\ No newline at end of file\n+H\n\\ No newline at end of file\n"
        "--- /dev/null\n+++ b/made\n@@ -0,0 +1 @@\n+made\n"
        "--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n"
    )
    changes = [
        Change(
            policy.writable(patch.path),
            partial(apply_hunks, patch=patch, shown="f", stop=Stop()),
            patch.creates,
            patch.deletes,
        )
        for patch in patches
    ]
    return change_files(changes, dry_run=False, stop=Stop())


def _write(policy: Policy) -> object:
    return write.write_file(policy.writable("f"), NEW, overwrite=True, stop=Stop())


def _append(policy: Policy) -> object:
    return change_files([Change(policy.writable("f"), lambda text: text + NEW)], dry_run=False, stop=Stop())


def _replace(policy: Policy) -> object:
    wanted, substitution = Filter(), Substitution("old", NEW)
    return replace_in_files(policy.writable("."), "*", wanted, substitution, dry_run=False, stop=Stop())


def _move_across(policy: Policy) -> object:
    """A move to another file system, where a rename of what is no temporary file fails."""
    real = handles_posix.Folder.rename_new

    def rename_new(self: Any, name: str, folder: Any, new: str) -> None:
        if not name.startswith(".~"):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        real(self, name, folder, new)

    handles_posix.Folder.rename_new = rename_new  # type: ignore[method-assign]
    try:
        return tree.move(policy.writable("a"), policy.writable("b"), overwrite=False, stop=Stop())
    finally:
        handles_posix.Folder.rename_new = real  # type: ignore[method-assign]


SCENARIOS = [
    Scenario("append", {"f": "old"}, {"f": "old" + NEW}, _append),
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
    Scenario(
        "copy",
        {"f": NEW, "a/x": "x", "a/b/y": "y"},
        {"f": NEW, "a/x": "x", "a/b/y": "y", "c/x": "x", "c/b/y": "y"},
        lambda policy: tree.copy(policy.readable("a"), policy.writable("c"), overwrite=False, stop=Stop()),
    ),
    Scenario(
        "copy over",
        {"f": NEW, "g": "old"},
        {"f": NEW, "g": NEW},
        lambda policy: tree.copy(policy.readable("f"), policy.writable("g"), overwrite=True, stop=Stop()),
    ),
    Scenario(
        "move",
        {"a/f": "f"},
        {"b/f": "f"},
        lambda policy: tree.move(policy.writable("a"), policy.writable("b"), overwrite=False, stop=Stop()),
    ),
    Scenario(
        "move over",
        {"f": "f", "g": "g"},
        {"g": "f"},
        lambda policy: tree.move(policy.writable("f"), policy.writable("g"), overwrite=True, stop=Stop()),
    ),
    Scenario(
        "delete",
        {"f": "f", "g": "g"},
        {"g": "g"},
        lambda policy: tree.delete(policy.writable("f"), recursive=False, trash=False, stop=Stop()),
    ),
]


def build(root: Path, state: State) -> Policy:
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    for name, text in state.items():
        (root / name).parent.mkdir(exist_ok=True, parents=True)
        (root / name).write_text(text)
    temp_files._cleaned.clear()
    return Policy(Told((str(root),)))


def found(root: Path) -> State:
    paths = [path for path in root.rglob("*") if path.is_file() and ".~" not in str(path.relative_to(root))]
    return {str(path.relative_to(root)): path.read_text() for path in paths}


def after_next_start(root: Path, scenario: Scenario) -> list[str]:
    """What temporary entries are there once a later process has cleaned up, but for the only copy of old contents."""
    temp_files._STARTED, started = time.time() + 60, temp_files._STARTED
    temp_files.clean_leftovers(Policy(Told((str(root),))), Stop())
    temp_files._STARTED = started
    there = found(root).values()
    only = {text for text in scenario.old.values() if text not in there}
    left = [path for path in root.rglob("*") if path.name.startswith(".~")]
    return [path.name for path in left if not path.name.startswith(temp_files.OLD) or path.read_text() not in only]


def killed(root: Path, scenario: Scenario, at: int, kind: str) -> tuple[bool, str | None]:
    """(whether the fault was met, what is wrong)"""
    policy = build(root, scenario.old)
    child = os.fork()
    if child == 0:
        installed(Faulty(at, kind))
        scenario.run(policy)
        os._exit(0)
    met = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0
    state = found(root)
    for name in scenario.old | scenario.new:
        if state.get(name) not in (scenario.old.get(name), scenario.new.get(name)):
            return met, f"{name} holds {state.get(name)!r:.60}"
    if not met and state != scenario.new:
        return met, f"success, but {state!r:.80}"
    return met, None


def failed(root: Path, scenario: Scenario, at: int, kind: str) -> tuple[bool, str | None]:
    policy = build(root, scenario.old)
    faulty = Faulty(at, kind)
    installed(faulty)
    try:
        notes: list[str] = getattr(scenario.run(policy), "notes", [])
        # A file that could not be read stays as it is, and the answer names it.
        named = {name: text for name, text in scenario.old.items() if any(note.endswith(f": {name}") for note in notes)}
        answer, expected = "success", [scenario.new | named]
    except Problem as problem:
        answer = str(problem)
        expected = [scenario.new if "does not confirm" in answer else scenario.old]
        if "was copied to, but the disk" in answer:
            expected = [scenario.old | scenario.new]
        if "not all of it could be removed" in answer:
            expected = [scenario.new | left for left in _parts(scenario.old)]
    except OSError as error:
        return True, f"raised {error!r}"
    finally:
        installed(Faulty(0, ""))
    met = len(faulty.log) >= at
    state = found(root)
    return (
        met,
        None if state in expected else f"{answer!r} at {faulty.log[at - 1]!r}, but {sorted(state.items())!r:.120}",
    )


def _parts(state: State) -> list[State]:
    """All that may be left of `state` when some of it is gone."""
    return [dict(some) for size in range(len(state) + 1) for some in combinations(state.items(), size)]


def main(folder: str) -> None:
    root = Path(folder) / "root"
    for scenario in SCENARIOS:
        tried, wrong = 0, list[str]()
        for kind in ("kill", "half kill", "error", "half error", "full"):
            trial = killed if kind.endswith("kill") else failed
            at, met = 0, True
            while met:
                at += 1
                assert at < 1000, f"{scenario.name} fails by itself"
                met, mistake = trial(root, scenario, at, kind)
                tried += met
                if mistake is None and (left := after_next_start(root, scenario)):
                    mistake = f"left {left}"
                if mistake is not None:
                    wrong.append(f"{kind} at {at}: {mistake}")
        build(root, scenario.old)
        faulty = Faulty(0, "")
        installed(faulty)
        scenario.run(Policy(Told((str(root),))))
        installed(Faulty(0, ""))
        print(json.dumps({"scenario": scenario.name, "tried": tried, "wrong": wrong, "log": faulty.log}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
