"""The engine: trusted repositories, revisions and paths in, answers out. Git runs beside the event loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.concurrency.threads import run_in_thread
from mcp_git.engine.history import files, refs
from mcp_git.engine.history.blame import blame_lines
from mcp_git.engine.history.diff import Comparison, read_diff
from mcp_git.engine.history.files import TextSearch
from mcp_git.engine.history.log import LogQuery, describe_head, list_commits
from mcp_git.engine.history.refs import RefKind, list_refs
from mcp_git.engine.operation.operation import Operation
from mcp_git.engine.operation.plan import OperationPlanner
from mcp_git.engine.operation.run import OperationRunner
from mcp_git.engine.program.git import Git
from mcp_git.engine.remote.fetch import fetch
from mcp_git.engine.remote.plan_push import plan_push
from mcp_git.engine.remote.push import push
from mcp_git.engine.remote.push_request import PlannedPush, PushRequest
from mcp_git.engine.work_tree.status_report import describe_status
from mcp_git.engine.work_tree.watched_folders import find_watched_folders
from mcp_git.engine.work_tree.worktrees import Worktrees
from mcp_git.models import Answer
from mcp_git.policy import (
    FetchableRepository,
    NewName,
    NewWorktree,
    Policy,
    PushableRepository,
    RemovableWorktree,
    Repository,
    RepositoryPath,
    Revision,
    WritableRepository,
)
from mcp_git.repository_paths import Layout

__all__ = ["Engine"]

T = TypeVar("T")


class Engine:
    """Everything the tools, resources and completions can have done.

    Args:
        timeout_seconds: until a running command is stopped.
        remote_timeout_seconds: the same of one that talks to a remote.
    """

    def __init__(self, policy: Policy, *, timeout_seconds: int, remote_timeout_seconds: int) -> None:
        self._policy = policy
        self._seconds = timeout_seconds
        self._remote_seconds = remote_timeout_seconds
        self.git = Git(policy)
        self._changes = OperationRunner(self.git)
        self._worktrees = Worktrees(self.git, policy)

    async def _run(self, work: Callable[[CancelToken], T], action: str, *, is_remote: bool = False) -> T:
        return await run_in_thread(
            work, seconds=self._remote_seconds if is_remote else self._seconds, description=action, long=True
        )

    async def describe_status(self, repository: Repository, path: RepositoryPath, limit: int) -> Answer:
        """Return the state of the work tree."""
        return await self._run(lambda cancel: describe_status(self.git, repository, path, limit, cancel), "The status")

    async def describe_head(self, repository: Repository) -> Answer:
        """Return the branch and the commit that HEAD is."""
        return await self._run(lambda cancel: describe_head(self.git, repository, cancel), "The look at HEAD")

    async def list_commits(self, repository: Repository, request: LogQuery, limit: int, cursor: str | None) -> Answer:
        """Return a page of commits."""
        return await self._run(
            lambda cancel: list_commits(self.git, repository, request, limit, cursor, cancel), "The log"
        )

    async def read_diff(self, repository: Repository, compared: Comparison, cursor: str | None) -> Answer:
        """Return a page of what differs."""
        return await self._run(
            lambda cancel: read_diff(self.git, self._policy, repository, compared, cursor, cancel), "The comparison"
        )

    async def blame_lines(
        self, repository: Repository, path: RepositoryPath, revision: Revision | None, first: int, last: int
    ) -> Answer:
        """Return who changed lines of a file."""
        return await self._run(
            lambda cancel: blame_lines(self.git, repository, path, revision, first, last, cancel), "The blame"
        )

    async def list_refs(
        self, repository: Repository, kind: RefKind, name: Revision, limit: int, cursor: str | None
    ) -> Answer:
        """Return a page of branches, tags, remotes, stashes, worktrees or a reflog."""
        return await self._run(
            lambda cancel: list_refs(self.git, self._policy, repository, kind, name, limit, cursor, cancel), "The list"
        )

    async def find_merge_base(self, repository: Repository, one: Revision, other: Revision) -> Answer:
        """Return where two revisions parted."""
        return await self._run(
            lambda cancel: refs.find_merge_base(self.git, repository, one, other, cancel), "The comparison"
        )

    async def read_file(
        self, repository: Repository, revision: Revision, path: RepositoryPath, first: int, last: int | None
    ) -> Answer:
        """Return lines of a file of a commit."""
        return await self._run(
            lambda cancel: files.read_file(self.git, repository, revision, path, first, last, cancel), "Reading"
        )

    async def read_contents(self, repository: Repository, revision: Revision, path: RepositoryPath) -> bytes:
        """Return a whole file of a commit."""
        return await self._run(
            lambda cancel: files.read_contents(self.git, repository, revision, path, cancel), "Reading"
        )

    async def list_files(
        self,
        repository: Repository,
        revision: Revision,
        path: RepositoryPath,
        *,
        recursive: bool,
        limit: int,
        cursor: str | None,
    ) -> Answer:
        """Return a page of a folder of a commit."""
        return await self._run(
            lambda cancel: files.list_files(
                self.git, repository, revision, path, recursive=recursive, limit=limit, cursor=cursor, cancel=cancel
            ),
            "The list",
        )

    async def search_text(
        self,
        repository: Repository,
        revision: Revision,
        path: RepositoryPath,
        search: TextSearch,
        *,
        limit: int,
        cursor: str | None,
    ) -> Answer:
        """Return a page of the lines of a commit's files that match."""
        return await self._run(
            lambda cancel: files.search_text(
                self.git, repository, revision, path, search, limit=limit, cursor=cursor, cancel=cancel
            ),
            "The search",
        )

    # Changing

    async def run_operation(self, changeable: WritableRepository, change: Operation) -> Answer:
        """Make a change."""
        return await self._make(changeable, lambda repository, cancel: change)

    async def plan_and_run(
        self, changeable: WritableRepository, prepare: Callable[[OperationPlanner], Operation]
    ) -> Answer:
        """Make a change that depends on how the repository is when it is its turn."""
        return await self._make(
            changeable, lambda repository, cancel: prepare(OperationPlanner(self.git, self._policy, repository, cancel))
        )

    async def _make(
        self, changeable: WritableRepository, prepare: Callable[[Repository, CancelToken], Operation]
    ) -> Answer:
        return await self._run(lambda cancel: self._changes.run(changeable, prepare, cancel), "The change")

    async def create_worktree(
        self, changeable: WritableRepository, new: NewWorktree, branch: NewName, start: Revision | None
    ) -> Answer:
        """Make a worktree."""
        return await self._run(
            lambda cancel: self._worktrees.create(changeable, new, branch, start, cancel), "Making the worktree"
        )

    async def delete_worktree(self, linked: RemovableWorktree, *, force: bool) -> Answer:
        """Remove a worktree."""
        return await self._run(lambda cancel: self._worktrees.delete(linked, force, cancel), "Removing the worktree")

    # Remotes

    async def fetch(
        self, fetchable: FetchableRepository, remote: str, branch: NewName | None, *, tags: bool, prune: bool
    ) -> Answer:
        """Bring what a remote has."""
        return await self._run(
            lambda cancel: fetch(
                self.git, self._policy, fetchable, remote, branch, all_tags=tags, prune=prune, cancel=cancel
            ),
            "The fetch",
            is_remote=True,
        )

    async def plan_push(self, pushable: PushableRepository, request: PushRequest) -> PlannedPush:
        """Return what a push would be."""
        return await self._run(
            lambda cancel: plan_push(self.git, self._policy, pushable, request, cancel), "The look at what is pushed"
        )

    async def push(self, pushable: PushableRepository, plan: PlannedPush) -> Answer:
        """Make a push that the user agreed to."""
        return await self._run(lambda cancel: push(self.git, pushable, plan, cancel), "The push", is_remote=True)

    # Watching

    async def find_watched_folders(self, repository: Repository, work_tree: bool) -> tuple[Layout, set[str]]:
        """Return where to watch for changes."""
        return await self._run(
            lambda cancel: find_watched_folders(self.git, repository, work_tree, cancel), "Looking for folders"
        )

    async def complete_refs(self, repository: Repository, start: str) -> Sequence[str]:
        """Return branches and tags that begin with `start`."""
        return await self._run(lambda cancel: refs.complete_refs(self.git, repository, start, cancel), "The list")

    async def complete_paths(self, repository: Repository, start: str) -> Sequence[str]:
        """Return paths of HEAD that begin with `start`."""
        return await self._run(lambda cancel: files.complete_paths(self.git, repository, start, cancel), "The list")
