"""Says what a failure of an operation means, and what to do next."""

from __future__ import annotations

import os
import re
import sys
import time

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Conflict, Invalid, Problem, Refused, Unavailable, quote
from mcp_git.engine.operation.operation import Operation, PickOperation
from mcp_git.engine.operation.untracked_files import describe_remaining_files
from mcp_git.engine.program.git import Git, GitFailed
from mcp_git.engine.program.revisions import (
    NAME_A_COMMIT,
    damaged,
    explain_failure,
    is_of_damage,
    is_of_no_commit,
)
from mcp_git.engine.undo.earlier_state import Snapshot
from mcp_git.engine.undo.later_state import LaterState
from mcp_git.engine.undo.undo_kind import UndoKind
from mcp_git.engine.work_tree.status import Status
from mcp_git.models import count
from mcp_git.path_quoting import escape_line_breaks, quote_paths
from mcp_git.policy import Repository
from mcp_git.repository_paths import Layout
from mcp_git.tool_calls import ToolCall

__all__ = ["explain_half_done", "explain_operation_failure", "is_same_state", "join_message", "nothing_to_do"]

_MAX_MESSAGE_LENGTH = 400
# No git keeps a lock that long, but for a rebase that somebody is asked about.
_STALE_LOCK_SECONDS = 600
_ASIDE = re.compile(r"^(?:hint|warning|<stdin>):|is not a valid attribute name")
# What git says to somebody in a shell.
_SHELL_ADVICE = re.compile(
    r"^(?:fatal|error): | If you are sure you want to delete it, run '[^']*'| If you wish to commit it anyway, use: .*"
)
# What to do next, by a pattern of what git says.
_NEXT_MOVES = {
    # The latter where a folder is in the place of a tracked file.
    "cannot do a partial commit|updating files failed": "Stage the `paths` with `stage_files`; "
    "`create_commit` without `paths` then commits all that is staged.",
    "pathspec .* did not match": "`get_status` has the files that changed, `list_files` those of a commit; "
    "what was untracked in a stash is in `stash@{0}^3`.",
    "ignored by one of your": "Git stages no ignored file: leave it out, or change what ignores it.",
    "branch named .* already exists": "Choose another name, or go to that one with `run_switch`.",
    "tag .* already exists": "Choose another name.",
    "is not fully merged": "Set `force` to delete it all the same.",
    "(?:checked out|used by worktree) at": "It is in another worktree, which `list_refs` with kind=worktrees names: "
    "work there, or go to another branch there; where its folder is gone the user can `git worktree prune`.",
    "'refs/[^']*' exists; cannot create": "No name can lie below another: choose one that does not.",
    "is a merge but no -m option": "Pass `mainline`: 1 for what it brought to its first parent.",
    "commit (?:your changes )?or stash|changes would be overwritten by|Could not reset index": "`run_stash` puts them "
    "aside, and back with action=pop.",
    "Committing is not possible": "Resolve the files in conflict, which `get_status` names, and stage them: "
    "`stage_files`.",
    "unmerged files|is already in progress": "`continue_operation` ends what is under way, with action=abort as if it "
    "had not begun.",
    "empty commit set": "`list_commits` with this `rev` has what is in the range; its merges are only done with "
    "`mainline`.",
    "is now empty": "`continue_operation` with action=skip leaves it out.",
    "(?:branch|tag) '.*' not found": "`list_refs` has those there are.",
    "No valid patches|patch fragment without header": "Send a unified diff, with its `---`, `+++` and `@@` lines.",
    "empty commit message": "`create_commit` with a `message` ends it too.",
    "into an empty head": "Leave out the `message`: there is no commit yet to merge with.",
    "failed to sign the data|gpg failed": "An agent has to hold the key: nobody can be asked for its passphrase here.",
    "renaming .* failed: No such file": "`to` lies in a folder that is not there: make it first.",
    "destination exists": "Choose another `to`, or delete what is there first.",
    "not under version control": "It is not tracked: `stage_files` makes it so.",
    "could not resolve :[0-3]": "No commit is a side of a conflict: for ours name `HEAD`, for theirs `MERGE_HEAD`, "
    "`CHERRY_PICK_HEAD` or `REBASE_HEAD`.",
    "path '.*' is unmerged": "That commit does not have it: delete the file, or leave it as it is to stay, then "
    "`stage_files`.",
    "outside of your sparse-checkout": "Git stages nothing there but files in conflict, each named by itself: the user "
    "can widen it, `git sparse-checkout add`, or take the mark off: `git update-index --no-skip-worktree`.",
    "Entry '.*' not uptodate": "A new file that `git add --intent-to-add` marked can't be stashed: `stage_files` it.",
    "patch (?:does not apply|failed)": "Make it from what `read_diff` shows now.",
}


def explain_operation_failure(
    failure: GitFailed, git: Git, repository: Repository, operation: Operation, branch: str, cancel: CancelToken
) -> Problem:
    """Return what the failure of an operation that changed nothing means to the caller.

    Args:
        branch: where HEAD is.
    """
    if failure.is_in_nested_repository:
        return failure
    if "tell me who you are" in failure.stderr or "auto-detection is disabled" in failure.stderr:
        return Refused(
            "Git knows no `user.name` and `user.email` to commit as.", "The operator can set them: `git config`."
        )
    if "index.lock" in failure.stderr or "Unable to create" in failure.stderr:
        return _explain_lock(failure, git.layout(repository))
    problem = explain_failure(failure, git, repository, operation.revision, cancel)
    if isinstance(problem, Unavailable) and is_of_damage(failure):
        return Unavailable(problem.failure, f"Nothing was changed. {problem.fix}")
    if not isinstance(problem, Invalid):
        return problem
    message = _read_message(failure)
    if not message:
        return nothing_to_do(operation, may_be_refused=git.find_programs(repository).hooks)
    next_move = _find_next_move(message, branch)
    if is_of_no_commit(failure):
        next_move = NAME_A_COMMIT
    next_move = _find_namesake(message, git, repository, operation, cancel) or next_move
    return Conflict(f"{_quote_message(message)}.", f"Nothing was changed. {next_move}".rstrip())


def _read_message(failure: GitFailed) -> str:
    return _SHELL_ADVICE.sub("", join_message(failure.stderr)).rstrip(".")


def _quote_message(message: str) -> str:
    return f"git: `{escape_line_breaks(message)[:_MAX_MESSAGE_LENGTH]}`"


def _find_namesake(message: str, git: Git, repository: Repository, operation: Operation, cancel: CancelToken) -> str:
    """Return where there is what git did not find: as a tag, or in another part of a stash; empty if nowhere."""
    branch = re.search("branch '(.*)' not found", message)
    if branch and git.find_hash(repository, f"refs/tags/{branch[1]}", cancel):
        return "There is a tag of this name: kind=tag deletes that."
    if "did not match" not in message or operation.revision is None:
        return ""
    untracked = f"{operation.revision.text}^3"
    if not untracked.startswith("stash@") or not git.find_hash(repository, untracked, cancel):
        return ""
    return f"Files that were untracked are in the stash's third parent: rev={quote(untracked)}, index=false."


def _explain_lock(failure: GitFailed, layout: Layout) -> Conflict:
    """Return whose lock is in the way, and since when: one that a crash left stays for ever."""
    message = "Another `git` is at work in this repository."
    path = _find_lock(failure, layout)
    try:
        status = os.lstat(path)
    except OSError:
        return Conflict(message, "Call again when it is done.")
    seconds = max(0, round(time.time() - status.st_mtime))
    name = os.path.basename(path)
    fix = "Call again when it is done."
    if seconds >= _STALE_LOCK_SECONDS:
        fix = f"If none runs any more, one that crashed has left `{name}`, and the user can remove it."
    return Conflict(f"{message[:-1]}: `{name}` is {_format_age(seconds)} old{_name_owner(status)}.", fix)


def _find_lock(failure: GitFailed, layout: Layout) -> str:
    match = re.search(r"'([^']*\.lock)'", failure.stderr)
    name = match[1] if match else "index.lock"
    for folder in (layout.git_dir, layout.common_dir):
        path = os.path.join(folder, name.removeprefix("./"))
        if os.path.lexists(path):
            return path
    return os.path.join(layout.git_dir, "index.lock")


def _format_age(seconds: int) -> str:
    for unit, length in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= length:
            return count(seconds // length, unit)
    return count(seconds, "second")


def _name_owner(status: os.stat_result) -> str:
    if sys.platform == "win32":
        return ""
    import pwd

    try:
        return f", of {quote(pwd.getpwuid(status.st_uid).pw_name)}"
    except KeyError:
        return f", of user {status.st_uid}"


def nothing_to_do(operation: Operation, *, may_be_refused: bool = False) -> Conflict:
    """Return that git had nothing to do, and what to do then.

    Args:
        may_be_refused: whether a hook may have ended it, which git does not say.
    """
    if operation.arguments[-1] == "--continue":
        fix = "Nothing was changed. `continue_operation` with action=skip leaves it out."
    elif operation.command == "commit":
        fix = "Name what to stage in `paths`, or set `all_tracked`."
    else:
        fix = "See `get_status`."
    message = f"git found nothing to {operation.command}"
    if may_be_refused:
        message += ", or a hook refused it without a word"
    return Conflict(f"{message}.", fix)


def is_same_state(one: Snapshot, other: Snapshot) -> bool:
    """Whether nothing changed between two snapshots."""
    has_same_trees = one.index_tree == other.index_tree and one.files_tree == other.files_tree
    return has_same_trees and one.status == other.status


def join_message(stderr: str) -> str:
    """Return what git says of the failure, without advice and warnings, in one line."""
    return " ".join(line.strip() for line in stderr.splitlines() if line and not _ASIDE.search(line))


def _find_next_move(message: str, branch: str) -> str:
    if re.search(f"(?i)cannot delete branch '{re.escape(branch)}'", message):
        return "Go to another branch with `run_switch` first."
    for pattern, next_move in _NEXT_MOVES.items():
        if re.search(pattern, message):
            return next_move
    return ""


def explain_half_done(
    failure: GitFailed, layout: Layout, operation: Operation, before: Snapshot, now: Snapshot
) -> Conflict:
    """Return what is left when git failed in the middle; only where the files were kept does a call lead back."""
    calls: list[ToolCall] = []
    if operation.overwritten_paths:
        has_moved = now.status.oid != before.status.oid
        kind = UndoKind.HARD if has_moved else UndoKind.FILES
        now.store(layout)
        calls = before.undo_calls(kind, LaterState(now.status, lambda: now.trees))
    if calls:
        before.store(layout)
    if isinstance(operation, PickOperation):
        calls += operation.return_calls
    lines = [f"\nundo: {call}" for call in calls]
    new_files = _list_new_files(before.status, now.status)
    if new_files:
        lines.append(f"\n{describe_remaining_files(new_files)}")
    message = str(failure).rstrip(". ")
    fix = "`get_status` shows what."
    refusal = _read_message(failure)
    next_move = _find_next_move(refusal, before.status.head)
    if next_move and not failure.is_in_nested_repository:
        message = _quote_message(refusal)
        fix = f"{next_move} {fix}"
    if is_of_damage(failure):
        fix += f" {damaged(message).fix}"
    return Conflict(f"{message}, after a part of it was done.", f"{fix}{''.join(lines)}")


def _list_new_files(before: Status, now: Status) -> list[str]:
    """Return the untracked files of which nothing was there before, in order."""
    earlier_paths = {entry.path for entry in before.entries}
    untracked = {entry.path for entry in now.entries if entry.letters == "??"}
    return sorted(quote_paths(untracked - earlier_paths))
