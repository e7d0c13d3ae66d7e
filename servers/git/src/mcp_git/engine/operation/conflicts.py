"""Finds files in conflict and commits that are empty, and refuses files that still have the marks of a conflict."""

from __future__ import annotations

import os
from collections.abc import Sequence

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Conflict, quote
from mcp_git.engine.program.git import Git
from mcp_git.engine.work_tree.status import Status, is_conflict
from mcp_git.path_quoting import quote_path
from mcp_git.policy import Repository

__all__ = [
    "OUTSIDE_TOO",
    "is_at_or_below",
    "is_empty_pick",
    "list_conflicts",
    "list_marked",
    "list_new_conflicts",
    "refuse_conflict_marks",
    "refuse_unresolved",
    "stage_conflicts_outside",
]

# With it git stages outside of a sparse checkout too; `--sparse` says the same to git 2.34 and newer.
OUTSIDE_TOO = ("-c", "core.sparseCheckout=false")

# Seven signs, or as many more as the attribute `conflict-marker-size` asks for.
_MARKS = ["-e", r"^<\{7,\} ", "-e", r"^>\{7,\} "]


def list_conflicts(status: Status) -> list[bytes]:
    """Return the files in conflict."""
    return [entry.path for entry in status.entries if is_conflict(entry.letters)]


def stage_conflicts_outside(arguments: Sequence[str], conflicts: Sequence[bytes]) -> list[list[str]]:
    """Return the commands that do what one of `git add` or `git rm` does, with conflicts outside of a sparse checkout.

    A merge writes such files there, and git stages them only if it is told to.
    """
    start = arguments.index("--") + 1
    paths = [os.fsencode(path) for path in arguments[start:]]
    folders = [path.rstrip(b"/") for path in paths]
    resolved = [os.fsdecode(path) for path in conflicts if is_at_or_below(path, folders)]
    others = [os.fsdecode(path) for path in paths if path not in conflicts]
    commands: list[list[str]] = []
    if others:
        # Git refuses these as a whole, so they go first.
        commands.append([*arguments[:start], *others])
    if resolved:
        commands.append([*OUTSIDE_TOO, *arguments[:start], *resolved])
    return commands


def list_new_conflicts(status: Status, before: Status) -> list[bytes]:
    """Return the files that came into conflict since `before`; at another commit all that are in conflict."""
    conflicts = list_conflicts(status)
    if before.oid != status.oid:
        return conflicts
    earlier = list_conflicts(before)
    return [path for path in conflicts if path not in earlier]


def is_empty_pick(picked_commits: Sequence[str], status: Status) -> bool:
    """Whether a cherry-pick or revert stands at a commit of which nothing is staged, so that it can't continue."""
    if not any(picked_commits):
        return False
    is_picking = status.in_progress[:1] in (["cherry-pick under way"], ["revert under way"])
    return is_picking and all(entry.letters[0] in " ?" for entry in status.entries)


def refuse_conflict_marks(
    git: Git, repository: Repository, status: Status, resolved_paths: Sequence[str], cancel: CancelToken
) -> None:
    """Check that no file in conflict that `resolved_paths` name still has the marks of both sides in it.

    Raises:
        Conflict: one has.
    """
    resolved = [os.fsencode(path).rstrip(b"/") for path in resolved_paths]
    files = [os.fsdecode(path) for path in list_conflicts(status) if is_at_or_below(path, resolved)]
    marked = list_marked(git, repository, files, cancel)
    if not marked:
        return
    raise Conflict(
        f"{_name_first(marked)} still has the marks of a conflict, such as `<<<<<<<`.",
        "Nothing was changed. Resolve it first; where they are meant, stage it with `stage_files`.",
    )


def refuse_unresolved(status: Status, resolved_paths: Sequence[str]) -> None:
    """Check that what is in progress does not go on while a file is in conflict: of a rebase git says nothing then.

    Raises:
        Conflict: one is, and `resolved_paths` do not have it.
    """
    resolved = [os.fsencode(path).rstrip(b"/") for path in resolved_paths]
    unresolved = [path for path in list_conflicts(status) if not is_at_or_below(path, resolved)]
    if unresolved:
        raise Conflict(
            f"{_name_first(unresolved)} is in conflict.",
            "Nothing was changed. Resolve it, and name it in `paths`; or take a side of it: `ours`, `theirs`, `both`.",
        )


def _name_first(paths: Sequence[bytes]) -> str:
    names = quote(quote_path(paths[0]))
    if len(paths) > 1:
        names += f" and {len(paths) - 1:,} more"
    return names


def list_marked(git: Git, repository: Repository, files: Sequence[str], cancel: CancelToken) -> list[bytes]:
    """Return those of some files that have the marks of both sides of a conflict in them."""
    if not files:
        return []
    arguments = ["grep", "-l", "-z", "-I", "--no-color", "--all-match", *_MARKS, "--", *files]
    return git.run(repository, arguments, cancel, exit_codes=(0, 1)).stdout.split(b"\0")[:-1]


def is_at_or_below(path: bytes, folders: Sequence[bytes]) -> bool:
    """Whether a path is one of `folders`, or in one of them; `.` has all."""
    return any(folder in (b".", path) or path.startswith(folder + b"/") for folder in folders)
