"""The state after an operation, and what an undo names of it, so that it undoes nothing that came since."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from mcp_git.engine.undo.undo_kind import HASH_LENGTH
from mcp_git.engine.work_tree.status import Status, is_conflict
from mcp_git.policy import expect

__all__ = ["LaterState", "Trees", "branch_of", "name_position"]


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
    def trees(self) -> Trees:
        """The trees of it, made when they are needed."""
        return self.read_trees()

    def expect(self, *, head: bool = False, files: bool = False, index: bool = False) -> str:
        """Return what an undo names that is to find HEAD, the files, or the index like this."""
        expectation = expect(
            branch=branch_of(self.status) if head else "",
            head=self.status.oid[:HASH_LENGTH] if head and self.status.has_commit else "",
            files=self.trees.files if files else "",
            index=self.trees.index if index else "",
        )
        return expectation.text

    @property
    def is_in_conflict(self) -> bool:
        return any(is_conflict(entry.letters) for entry in self.status.entries)


def name_position(status: Status, *, index: str = "") -> str:
    """Return what a call names that is to find HEAD where it is in a state.

    Args:
        index: the tree or commit that the index is to be like; empty where it may be like any.
    """
    if not status.has_commit:
        return ""
    return expect(branch=branch_of(status), head=status.oid[:HASH_LENGTH], index=index).text


def branch_of(status: Status) -> str:
    """Return the branch that is checked out; empty for none."""
    return "" if status.is_detached else status.head
