"""Decides which folders are served, and which may be changed, fetched into, pushed from, created or removed."""

from __future__ import annotations

import logging
import os
import re
import sys
import weakref
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from mcp_batteries.errors import Invalid, NotFound, Problem, Refused, Unavailable, describe_os_error, quote
from mcp_batteries.settings import explain_missing_path
from mcp_git.policy.revisions import NewName, parse_new_name
from mcp_git.repository_paths import Layout, find_layout, refuse_links_below

__all__ = [
    "FetchableRepository",
    "NewWorktree",
    "PullableRepository",
    "PushableRepository",
    "RemovableWorktree",
    "Repositories",
    "Repository",
    "WritableRepository",
]

_log = logging.getLogger(__name__)
_OPEN = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_SIMPLE = re.compile(r"\w[\w.+-]{0,99}")


@dataclass(frozen=True, eq=False)
class Repository:
    """A served folder, opened once; if something else is at its path later, that is not served.

    Attributes:
        name: last component of the path, with a number if two share it.
        path: absolute, links resolved.
        identity: which folder it is, by device and number.
        descriptor: keeps the number from being reused for another folder; -1 on Windows.
    """

    name: str
    path: str
    identity: tuple[int, int] = field(repr=False)
    descriptor: int = field(repr=False)

    def __post_init__(self) -> None:
        if self.descriptor >= 0:
            weakref.finalize(self, os.close, self.descriptor).atexit = False

    def uri(self, path: str) -> str:
        return f"git://{self.name}/{path}"


@dataclass(frozen=True)
class WritableRepository:
    """A served folder that may also be changed."""

    repository: Repository


@dataclass(frozen=True)
class FetchableRepository:
    """A served repository into which may be fetched."""

    repository: Repository


@dataclass(frozen=True)
class PullableRepository:
    """A served repository into which may be fetched, and which may then be changed."""

    writable: WritableRepository
    fetchable: FetchableRepository


@dataclass(frozen=True)
class PushableRepository:
    """A served repository from which may be pushed."""

    repository: Repository


@dataclass(frozen=True)
class NewWorktree:
    """Where a worktree may be created, and the name under which it is served then."""

    name: str
    path: str

    @property
    def branch(self) -> NewName:
        """The branch of the same name.

        Raises:
            Invalid: no branch can have it.
        """
        return parse_new_name(self.name)


@dataclass(frozen=True)
class RemovableWorktree:
    """A worktree in the operator's folder for worktrees, which may be removed."""

    repository: Repository


class Repositories:
    """The served folders.

    Args:
        folders: as the operator named them.
        worktrees: the operator's folder for worktrees; those of served repositories are served too.
        write, fetch, push: what the operator allows.

    Attributes:
        served_paths: the real paths of the folders that the operator named.

    Raises:
        Unavailable: there are no folders, or none of them can be served.
    """

    def __init__(self, folders: Sequence[str], worktrees: str | None, *, write: bool, fetch: bool, push: bool) -> None:
        if not folders:
            raise Unavailable("There is no repository to serve.", "Name one, such as `mcp-git .`.")
        self._write = write
        self._fetch = fetch
        self._push = push
        self._worktree_folder = worktrees and os.path.realpath(worktrees)
        self.repositories: dict[str, Repository] = {}
        self._open_all(folders)
        self.served_paths = [repository.path for repository in self.repositories.values()]
        if self._worktree_folder and os.path.isdir(self._worktree_folder):
            for name in sorted(os.listdir(self._worktree_folder)):
                self.adopt(name)

    def _open_all(self, folders: Sequence[str]) -> None:
        """Open the folders that can be, and log which can't."""
        messages: list[str] = []
        fix = ""
        for folder in folders:
            try:
                repository = _open(folder, self.repositories)
            except OSError as error:
                messages.append(f"{quote(folder, 1000)} can't be opened: {describe_os_error(error)}.")
                fix = fix or explain_missing_path(folder)
            else:
                self.repositories[repository.name] = repository
        if not self.repositories:
            raise Unavailable(" ".join(messages), fix or "Name the top folder of a repository.")
        for message in messages:
            _log.warning("not served: %s", message)

    def repository(self, name: str) -> Repository:
        """Return the served repository with a name or at a path; the only one for an empty name.

        Raises:
            NotFound: none has that name.
            Invalid: several are served and none is named.
        """
        if not name and len(self.served_paths) == 1:
            return next(iter(self.repositories.values()))
        names = ", ".join(map(quote, list(self.repositories)[:20]))
        if not name:
            raise Invalid("Several repositories are served: `repo` says which.", f"Use one of: {names}.")
        for repository in self.repositories.values():
            if os.path.normpath(name) == repository.path:
                return repository
        if name not in self.repositories and self.adopt(name) is None:
            raise NotFound(f"No repository {quote(name)} is served.", f"Use one of: {names}.")
        return self.repositories[name]

    def layout(self, repository: Repository, *, writes: bool = False) -> Layout:
        """Return where the parts of a repository are now; blocks; call it before each run of git.

        Args:
            writes: whether git will write, which needs more checks.

        Raises:
            Refused: something leads out of it, or another folder is at its path.
            NotFound: it is not a repository any more.
        """
        try:
            identity = _identity(repository.path)
        except OSError:
            identity = None
        if identity != repository.identity:
            raise Refused(
                f"The folder {quote(repository.name)} was moved or replaced.",
                "The operator can start the server again.",
            )
        layout = find_layout(repository.path, self.served_paths)
        if writes:
            refuse_links_below(layout)
        return layout

    def writable_repository(self, name: str) -> WritableRepository:
        """Return the same as `repository`, to be changed.

        Raises:
            Refused: changes are not allowed, or not possible here.
        """
        _refuse_closed(self._write, "changes nothing", "write")
        return WritableRepository(self.repository(name))

    def fetchable_repository(self, name: str) -> FetchableRepository:
        """Return the same as `repository`, to fetch into.

        Raises:
            Refused: that is not open, or not possible here.
        """
        _refuse_closed(self._fetch, "fetches nothing", "fetch")
        return FetchableRepository(self.repository(name))

    def pullable_repository(self, name: str) -> PullableRepository:
        """Return the same as `repository`, to pull into.

        Raises:
            Refused: that is not open, or not possible here.
        """
        return PullableRepository(self.writable_repository(name), self.fetchable_repository(name))

    def pushable_repository(self, name: str) -> PushableRepository:
        """Return the same as `repository`, to push from.

        Raises:
            Refused: that is not open, or not possible here.
        """
        _refuse_closed(self._push, "pushes nothing", "push")
        return PushableRepository(self.repository(name))

    def adopt(self, name: str) -> Repository | None:
        """Serve the worktree with a name in the operator's folder, if it belongs to a served repository."""
        path = os.path.join(self._worktree_folder or "", name)
        if not self._worktree_folder or not _SIMPLE.fullmatch(name) or os.path.islink(path) or not os.path.isdir(path):
            return None
        if name not in self.repositories:
            try:
                if not self._belongs_here(path):
                    return None
                self.repositories[name] = _open(path, self.repositories)
            except (Problem, OSError) as problem:
                _log.info("not served: %s", problem)
                return None
        return self.repositories[name]

    def _belongs_here(self, path: str) -> bool:
        """Whether a worktree is one of a repository that is served."""
        common_dir = find_layout(path, self.served_paths).common_dir
        common_dirs = {find_layout(root, self.served_paths).common_dir for root in self.served_paths}
        return common_dir in common_dirs

    def new_worktree(self, name: str) -> NewWorktree:
        """Return a name for a new worktree.

        Raises:
            Refused: there is no folder for it.
            Invalid: it can't be one, or is taken.
        """
        _refuse_closed(self._write and self._worktree_folder is not None, "makes no worktrees", "worktree-folder")
        path = os.path.join(self._worktree_folder or "", name)
        if not _SIMPLE.fullmatch(name) or name in self.repositories or os.path.lexists(path):
            raise Invalid(f"{quote(name)} is taken, or can't be the name of a folder.", "Use letters, digits, `-`.")
        return NewWorktree(name, path)

    def removable_worktree(self, name: str) -> RemovableWorktree:
        """Return a worktree to remove.

        Raises:
            Refused: it is not in the folder for worktrees.
            NotFound: there is none of that name.
        """
        repository = self.writable_repository(name or "?").repository
        if os.path.dirname(repository.path) != self._worktree_folder or repository.path in self.served_paths:
            raise Refused(f"{quote(name)} was not made here, so it stays.", "The user can remove it.")
        return RemovableWorktree(repository)

    def forget(self, linked: RemovableWorktree) -> None:
        """Stop serving a worktree."""
        self.repositories.pop(linked.repository.name, None)


def _refuse_closed(is_open: bool, does: str, flag: str) -> None:
    if not is_open:
        raise Refused(f"This server {does}.", f"Only the operator can open that, with `--{flag}`.")
    if sys.platform == "win32":
        raise Refused("On Windows this server only reads yet.", "Use `git` itself.")


def _open(folder: str, used_names: Collection[str]) -> Repository:
    path = os.path.realpath(folder)
    if not os.path.isdir(path):
        os.listdir(path)  # Says in the kernel's words why it can't be served.
    descriptor = -1 if os.name == "nt" else os.open(path, _OPEN)
    return Repository(_choose_name(folder, used_names), path, _identity(path), descriptor)


def _choose_name(folder: str, used_names: Collection[str]) -> str:
    """Return the name of a folder, with a number if it is in use."""
    base = re.sub(r"[^\w.+-]", "-", os.path.basename(folder)).strip(".-") or "repository"
    name = base
    number = 1
    while name in used_names:
        number += 1
        name = f"{base}-{number}"
    return name


def _identity(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino
