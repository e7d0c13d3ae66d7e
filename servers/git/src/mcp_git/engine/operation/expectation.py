"""Says what an undo expects to find, and refuses it where somebody has changed that since."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Conflict, quote
from mcp_git.engine.operation.operation import HASH_LENGTH
from mcp_git.engine.program.git import Git, GitFailed
from mcp_git.engine.work_tree.status import Status, is_conflict
from mcp_git.engine.work_tree.status_reader import read_status
from mcp_git.path_quoting import quote_paths
from mcp_git.policy import Expectation, Repository

__all__ = ["LaterState", "Trees", "name_position", "refuse_changed_since"]

_MAX_NAMES = 5


@dataclass(frozen=True, slots=True)
class Trees:
    """What the files and the index were like, as trees or commits; empty where nothing can say."""

    files: str = ""
    index: str = ""


@dataclass
class LaterState:
    """The state after an operation, which its undo expects to find.

    Attributes:
        read_trees: makes the trees of it, where an undo writes over files or the index.
    """

    status: Status
    read_trees: Callable[[], Trees]

    @cached_property
    def _trees(self) -> Trees:
        return self.read_trees()

    def expect(self, *, head: bool = False, files: bool = False, index: bool = False) -> str:
        """Return what an undo names that is to find HEAD, the files, or the index like this."""
        expectation = Expectation(
            branch=_branch(self.status) if head else "",
            head=self.status.oid[:HASH_LENGTH] if head and self.status.has_commit else "",
            files=self._trees.files if files else "",
            index=self._trees.index if index else "",
        )
        return expectation.text

    @property
    def is_in_conflict(self) -> bool:
        return any(is_conflict(entry.letters) for entry in self.status.entries)


def name_position(status: Status) -> str:
    """Return what a call names that is to find HEAD where it is in a state."""
    if not status.has_commit:
        return ""
    return Expectation(branch=_branch(status), head=status.oid[:HASH_LENGTH]).text


def _branch(status: Status) -> str:
    return "" if status.is_detached else status.head


def refuse_changed_since(
    git: Git, repository: Repository, expectation: Expectation, paths: Sequence[str], cancel: CancelToken
) -> None:
    """Check that what an undo expects is still so.

    Args:
        paths: of the files, or of what is staged, that it writes over.

    Raises:
        Conflict: somebody has changed it since.
    """
    if expectation.head:
        _refuse_other_head(git, repository, expectation, cancel)
    if expectation.files:
        changed = _list_changed(git, repository, expectation.files, paths, cancel, with_files=True)
        _refuse_changed(changed, "has changed since, and would be overwritten")
    if expectation.index:
        changed = _list_changed(git, repository, expectation.index, paths, cancel, with_files=False)
        _refuse_changed(changed, "was staged in another form since")


def _refuse_other_head(git: Git, repository: Repository, expectation: Expectation, cancel: CancelToken) -> None:
    status = read_status(git, repository, cancel)
    if _branch(status) == expectation.branch and status.oid.startswith(expectation.head):
        return
    was = f"{expectation.branch} {expectation.head}".strip()
    now = f"{_branch(status)} {status.oid[:HASH_LENGTH]}".strip()
    raise Conflict(
        f"HEAD is no longer {quote(was)}, it is {quote(now)}: it has moved since.",
        "Nothing was changed. `list_refs` with kind=reflog tells what came; to do it all the same leave out `only_if`.",
    )


def _list_changed(
    git: Git, repository: Repository, tree: str, paths: Sequence[str], cancel: CancelToken, *, with_files: bool
) -> list[bytes]:
    """Return the paths of which the index differs from a tree, or with `with_files` the tracked files do."""
    layout = git.layout(repository)
    if not os.path.exists(os.path.join(layout.git_dir, "index")):
        return []
    arguments = ["diff-index", "--cached", "--name-only", "--no-renames", "--ita-invisible-in-index", "-z", tree, "--"]
    with git.copy_index(layout) as folder:
        try:
            if with_files:
                git.run(repository, ["add", "--update"], cancel, scratch_index=folder)
            output = git.run(repository, [*arguments, *paths], cancel, scratch_index=folder)
        except GitFailed as failure:
            raise Conflict(
                f"What this undo expects can't be compared: {failure}", "Leave `only_if` out to go on without that."
            ) from None
    return output.stdout.split(b"\0")[:-1]


def _refuse_changed(changed: Sequence[bytes], predicate: str) -> None:
    if not changed:
        return
    names = ", ".join(quote_paths(changed[:_MAX_NAMES]))
    if len(changed) > _MAX_NAMES:
        names += f" and {len(changed) - _MAX_NAMES:,} more"
    raise Conflict(
        f"{quote(names)} {predicate}.",
        "Nothing was changed. Name the other files in `paths`, or leave out `only_if` to lose that too.",
    )
