"""The engine: trusted repositories, revisions and paths in, answers out. Git runs beside the event loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from mcp_batteries.limits import Stop, in_thread
from mcp_git.engine.history import files, refs
from mcp_git.engine.history.blame import blame
from mcp_git.engine.history.diff import Compared, diff
from mcp_git.engine.history.log import Wanted, head, log
from mcp_git.engine.history.refs import Kind, list_refs
from mcp_git.engine.operation.operation import Change
from mcp_git.engine.operation.plan import Prepare
from mcp_git.engine.operation.run import Changes
from mcp_git.engine.program.git import Git
from mcp_git.engine.remote.push import Remotes
from mcp_git.engine.remote.push_request import Push
from mcp_git.engine.remote.push_request import Wanted as WantedPush
from mcp_git.engine.work_tree.status import status
from mcp_git.engine.work_tree.watched_folders import folders_of
from mcp_git.engine.work_tree.worktrees import Worktrees
from mcp_git.models import Answer
from mcp_git.policy import (
    Changeable,
    Fetchable,
    Linked,
    NewName,
    NewWorktree,
    Place,
    Policy,
    Pushable,
    Repository,
    Revision,
)
from mcp_git.repository_paths import Layout

__all__ = ["Engine"]

T = TypeVar("T")


class Engine:
    """Everything the tools, resources and completions can have done.

    Args:
        seconds: until a running command is stopped.
        seconds_afar: the same of one that talks to a remote.
    """

    def __init__(self, policy: Policy, *, seconds: int, seconds_afar: int) -> None:
        self._policy, self._seconds, self._seconds_afar = policy, seconds, seconds_afar
        self.git = Git(policy)
        self._changes = Changes(self.git, policy)
        self._remotes = Remotes(self.git, policy)
        self._worktrees = Worktrees(self.git, policy)

    async def _run(self, work: Callable[[Stop], T], what: str, *, afar: bool = False) -> T:
        return await in_thread(work, seconds=self._seconds_afar if afar else self._seconds, what=what, long=True)

    async def status(self, repository: Repository, place: Place, limit: int) -> Answer:
        """The state of the work tree."""
        return await self._run(lambda stop: status(self.git, repository, place, limit, stop), "The status")

    async def head(self, repository: Repository) -> Answer:
        """The branch and the commit that HEAD is."""
        return await self._run(lambda stop: head(self.git, repository, stop), "The look at HEAD")

    async def log(self, repository: Repository, wanted: Wanted, limit: int, cursor: str | None) -> Answer:
        """A page of commits."""
        return await self._run(lambda stop: log(self.git, repository, wanted, limit, cursor, stop), "The log")

    async def diff(self, repository: Repository, compared: Compared, cursor: str | None) -> Answer:
        """A page of what differs."""
        return await self._run(
            lambda stop: diff(self.git, self._policy, repository, compared, cursor, stop), "The comparison"
        )

    async def blame(
        self, repository: Repository, place: Place, revision: Revision | None, first: int, last: int
    ) -> Answer:
        """Who changed lines of a file."""
        return await self._run(
            lambda stop: blame(self.git, repository, place, revision, first, last, stop), "The blame"
        )

    async def refs(self, repository: Repository, kind: Kind, name: Revision, limit: int, cursor: str | None) -> Answer:
        """A page of branches, tags, remotes, stashes, worktrees or a reflog."""
        return await self._run(
            lambda stop: list_refs(self.git, self._policy, repository, kind, name, limit, cursor, stop), "The list"
        )

    async def merge_base(self, repository: Repository, one: Revision, other: Revision) -> Answer:
        """Where two revisions parted."""
        return await self._run(lambda stop: refs.merge_base(self.git, repository, one, other, stop), "The comparison")

    async def read(
        self, repository: Repository, revision: Revision, place: Place, first: int, last: int | None
    ) -> Answer:
        """Lines of a file of a commit."""
        return await self._run(
            lambda stop: files.read(self.git, repository, revision, place, first, last, stop), "Reading"
        )

    async def contents(self, repository: Repository, revision: Revision, place: Place) -> bytes:
        """A whole file of a commit."""
        return await self._run(lambda stop: files.contents(self.git, repository, revision, place, stop), "Reading")

    async def tree(
        self,
        repository: Repository,
        revision: Revision,
        place: Place,
        *,
        recursive: bool,
        limit: int,
        cursor: str | None,
    ) -> Answer:
        """A page of a folder of a commit."""
        return await self._run(
            lambda stop: files.tree(
                self.git, repository, revision, place, recursive=recursive, limit=limit, cursor=cursor, stop=stop
            ),
            "The list",
        )

    async def search(
        self,
        repository: Repository,
        revision: Revision,
        place: Place,
        pattern: str,
        *,
        literal: bool,
        ignore_case: bool,
        limit: int,
        cursor: str | None,
    ) -> Answer:
        """A page of the lines of a commit's files that match."""
        return await self._run(
            lambda stop: files.search(
                self.git, repository, revision, place, pattern,
                literal=literal, ignore_case=ignore_case, limit=limit, cursor=cursor, stop=stop,
            ),
            "The search",
        )  # fmt: skip

    # Changing

    async def change(self, changeable: Changeable, change: Change) -> Answer:
        """Make a change."""
        return await self._make(changeable, lambda repository, stop: change)

    async def prepared(self, changeable: Changeable, prepare: Callable[[Prepare], Change]) -> Answer:
        """Make a change that depends on how the repository is when it is its turn."""
        return await self._make(
            changeable, lambda repository, stop: prepare(Prepare(self.git, self._policy, repository, stop))
        )

    async def _make(self, changeable: Changeable, prepare: Callable[[Repository, Stop], Change]) -> Answer:
        return await self._run(lambda stop: self._changes.make(changeable, prepare, stop), "The change")

    async def create_worktree(
        self, changeable: Changeable, new: NewWorktree, branch: NewName, start: Revision | None
    ) -> Answer:
        """Make a worktree."""
        return await self._run(
            lambda stop: self._worktrees.create(changeable, new, branch, start, stop), "Making the worktree"
        )

    async def delete_worktree(self, linked: Linked, *, force: bool) -> Answer:
        """Remove a worktree."""
        return await self._run(lambda stop: self._worktrees.delete(linked, force, stop), "Removing the worktree")

    # Remotes

    async def fetch(
        self, fetchable: Fetchable, remote: str, branch: NewName | None, *, tags: bool, prune: bool
    ) -> Answer:
        """Bring what a remote has."""
        return await self._run(
            lambda stop: self._remotes.fetch(fetchable, remote, branch, tags, prune, stop), "The fetch", afar=True
        )

    async def plan_push(self, pushable: Pushable, wanted: WantedPush) -> Push:
        """What a push would be."""
        return await self._run(lambda stop: self._remotes.plan(pushable, wanted, stop), "The look at what is pushed")

    async def push(self, pushable: Pushable, plan: Push) -> Answer:
        """Make a push that the user agreed to."""
        return await self._run(lambda stop: self._remotes.push(pushable, plan, stop), "The push", afar=True)

    # Watching

    async def folders(self, repository: Repository, work_tree: bool) -> tuple[Layout, set[str]]:
        """Where to watch for changes."""
        return await self._run(lambda stop: folders_of(self.git, repository, work_tree, stop), "Looking for folders")

    async def names(self, repository: Repository, start: str) -> Sequence[str]:
        """Branches and tags that begin with `start`."""
        return await self._run(lambda stop: refs.names(self.git, repository, start, stop), "The list")

    async def paths(self, repository: Repository, start: str) -> Sequence[str]:
        """Paths of HEAD that begin with `start`."""
        return await self._run(lambda stop: files.names(self.git, repository, start, stop), "The list")
