"""What a repository has: all that two twins must have alike, and what an undo promises to bring back."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from git_server.twin_acts import find_git_dir, run_git
from mcp_git.path_quoting import unquote_path

__all__ = [
    "LASTING_FILES", "State", "describe_difference", "hash_git_dir", "promised_by_undo", "read_state", "without_moves",
    "without_notes",
]  # fmt: skip

State = dict[str, Any]
"""By a name what git tells of one side of a repository, such as its files, its index and its refs."""

# Notes that git leaves, of which the next command makes nothing.
LASTING_FILES = frozenset({"COMMIT_EDITMSG", "ORIG_HEAD", "index", "AUTO_MERGE", "FETCH_HEAD"})
_EXECUTABLE_OR_KIND = 0o170100
_MOST_OF_A_LOG_LINE = 130
_IN_UNDO = ("files", "index", "refs", "HEAD", "stashes", "config", "doing", "changes")
_IN_UNDO_OF_CONFLICT = ("files", "refs", "HEAD", "config")


def read_state(place: Path) -> State:
    """Return what both twins must have alike."""
    git_dir = find_git_dir(place)
    is_linked = (git_dir / "commondir").exists()
    return {
        "files": _read_files(place),
        "index": run_git(place, "ls-files", "--stage", "-t", "-v", "-z").output,
        "changes": run_git(place, "status", "--porcelain=v2", "-z", "--ignore-submodules=dirty").output,
        "refs": run_git(place, "for-each-ref", "--format=%(refname) %(objectname) %(symref)").output,
        "HEAD": (git_dir / "HEAD").read_bytes(),
        "stashes": run_git(place, "stash", "list", "--format=%H %gs").output,
        "config": b"" if is_linked else run_git(place, "config", "--local", "--list").output,
        "doing": sorted(path.name for path in git_dir.iterdir() if _tells_of_operation(path.name)),
        "logs": _read_logs(git_dir),
    }


def _tells_of_operation(name: str) -> bool:
    return name.endswith("_HEAD") or "rebase" in name or name == "sequencer"


def _read_files(place: Path) -> dict[str, tuple[int, bytes]]:
    """Return kind and content of each file and link of a work tree."""
    root = os.fsencode(place)
    files: dict[str, tuple[int, bytes]] = {}
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = [name for name in subfolders if name != b".git"]
        links = [name for name in subfolders if os.path.islink(os.path.join(folder, name))]
        for name in (*names, *links):
            if name != b".git":
                path = os.path.join(folder, name)
                files[os.fsdecode(os.path.relpath(path, root))] = _read_file(path)
    return files


def _read_file(path: bytes) -> tuple[int, bytes]:
    mode = os.lstat(path).st_mode
    if stat.S_ISLNK(mode):
        content = os.readlink(path)
    else:
        content = Path(os.fsdecode(path)).read_bytes()
    return mode & _EXECUTABLE_OR_KIND, content


def _read_logs(git_dir: Path) -> dict[str, list[bytes]]:
    folder = git_dir / "logs"
    return {str(path.relative_to(git_dir)): _read_log(path) for path in folder.rglob("*") if path.is_file()}


def _read_log(path: Path) -> list[bytes]:
    """Return each line of a reflog without the shortened hashes that git writes at its own length."""
    lines: list[bytes] = []
    for line in path.read_bytes().split(b"\n"):
        commits_and_name = line.partition(b"> ")[0].rpartition(b" ")[0]
        lines.append(commits_and_name[:_MOST_OF_A_LOG_LINE] + line.partition(b"\t")[2])
    return lines


def hash_git_dir(place: Path) -> dict[str, bytes]:
    """Return the hash of every file that git keeps for a repository."""
    git_dir = find_git_dir(place)
    return {
        str(path.relative_to(git_dir)): hashlib.sha1(path.read_bytes()).digest()
        for path in git_dir.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


def without_notes(state: Mapping[str, Any]) -> State:
    """Return a state without the notes that a git leaves which failed."""
    return {**state, "doing": [name for name in state["doing"] if name not in LASTING_FILES]}


def without_moves(state: Mapping[str, Any]) -> State:
    """Return what a change that is refused on another branch leaves alike: `HEAD` went there and back."""
    return {**without_notes(state), "logs": {}, "files": _with_unix_line_ends(state["files"])}


def _with_unix_line_ends(files: Mapping[str, tuple[int, bytes]]) -> dict[str, tuple[int, bytes]]:
    return {name: (mode, content.replace(b"\r\n", b"\n")) for name, (mode, content) in files.items()}


def promised_by_undo(state: Mapping[str, Any], answer: str, marked: Collection[bytes]) -> State:
    """Return what of a state the undo promises that an answer names.

    Args:
        marked: files whose mark in the index goes where git itself writes them.
    """
    names = _IN_UNDO_OF_CONFLICT if "not that they were in conflict" in answer else _IN_UNDO
    promised = {name: state[name] for name in names}
    if "not brought back by an undo" in answer:
        promised.pop("doing", None)
    if "doing" in promised:
        # Git's note of where HEAD was is written once more by what leads back.
        promised["doing"] = without_notes(promised)["doing"]
    if "as the first of the stashes" in answer:
        _forget_order_of_stashes(promised)
    # Line ends are those that git would write.
    promised["files"] = _with_unix_line_ends(promised["files"])
    _forget_named_files(promised, answer)
    _forget_intended_files(promised, state["changes"], marked)
    return promised


def _forget_order_of_stashes(promised: State) -> None:
    promised["stashes"] = sorted(promised["stashes"].split(b"\n"))
    refs = promised["refs"].split(b"\n")
    promised["refs"] = b"\n".join(line for line in refs if not line.startswith(b"refs/stash "))


def _forget_named_files(promised: State, answer: str) -> None:
    """Leave out the files of which the answer says that they are not as before."""
    if new := re.search(r"(?m)^new files, which stay: (.*)$", answer):
        for name in new[1].split(", "):
            promised["files"].pop(unquote_path(name), None)
    if restored := re.search(r"(?m)^the undo brings back these files, which [^:]*: (.*)$", answer):
        for name in restored[1].split(", "):
            path = unquote_path(name)
            promised["files"].pop(path, None)
            staged = rb"1 A. (N\.\.\. \d+ \d+) \d+ (\S+ \S+ %s\0)" % re.escape(os.fsencode(path))
            promised["changes"] = re.sub(staged, rb"1 AX \1 \2", promised["changes"])


def _forget_intended_files(promised: State, changes: bytes, marked: Collection[bytes]) -> None:
    """Leave out what was meant to be added: that can't be meant again, it is untracked then."""
    for name in map(os.fsdecode, marked):
        promised["files"].pop(name, None)
    paths = [*marked, *_find_intended(changes)]
    ends = tuple(separator + path for path in paths for separator in (b"\t", b" "))
    for name in {"index", "changes"} & promised.keys():
        entries = [entry for entry in promised[name].split(b"\0") if not entry.endswith(ends)]
        promised[name] = b"\0".join(entry for entry in entries if not entry.startswith(b"? "))


def _find_intended(changes: bytes) -> list[bytes]:
    """Return the paths that `git add --intent-to-add` has marked."""
    pattern = rb"1 \.A |1 \.D N\.\.\. \d+ \d+ 0+ (\w+) \1 intended"
    return [entry.split(b" ", 8)[8] for entry in changes.split(b"\0") if re.match(pattern, entry)]


def describe_difference(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Return for each side that differs what only one of two states has."""
    differences: list[str] = []
    for name, value in one.items():
        if value != other[name]:
            ours, theirs = _only_in_one(value, other[name])
            differences.append(f"{name} {ours} / {theirs}"[:400])
    return "; ".join(differences)


def _only_in_one(one: Any, other: Any) -> tuple[list[Any], list[Any]]:
    """Return a few parts that only the first value has, and a few that only the second has."""
    if isinstance(one, bytes):
        lines = set(re.split(rb"[\n\0]", one))
        other_lines = set(re.split(rb"[\n\0]", other))
        return sorted(lines - other_lines)[:3], sorted(other_lines - lines)[:3]
    parts = _parts_of(one)
    other_parts = _parts_of(other)
    only_one = [part for part in parts if part not in other_parts]
    only_other = [part for part in other_parts if part not in parts]
    return only_one[:2], only_other[:2]


def _parts_of(value: Any) -> list[Any]:
    return list(value.items()) if hasattr(value, "items") else value
