"""Where a repository's parts are: all inside what is served, none behind a link, or the repository is refused.

Git itself follows whatever a `.git` file, `commondir`, `alternates` or a symbolic link names, and a repository that
came as an archive can name anything on the machine. A linked worktree is served although its git directory is
elsewhere: that directory must name the worktree in return, which only somebody who may write there can arrange.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass

from mcp_batteries.errors import NotFound, Refused, Unavailable, quote, reason

__all__ = [
    "Layout",
    "find_layout",
    "is_inside",
    "read_small_file",
    "refuse_links_below",
    "refuse_nested_repositories",
    "refuse_submodules_elsewhere",
]

_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_MAX_SMALL_FILE_BYTES = 64 * 1024
# Levels, as many as git follows.
_MAX_ALTERNATE_LEVELS = 5
# What git is never led to here, so that it may be anything.
_UNUSED_NAMES = frozenset(
    {"annex", "branches", "description", "fsmonitor--daemon", "fsmonitor--daemon.ipc", "hooks", "lfs", "modules", "svn"}
)


@dataclass(frozen=True, slots=True)
class Layout:
    """Where git finds a repository's parts.

    Attributes:
        work_tree: None for a bare repository.
        git_dir: HEAD, the index and operations in progress; a linked worktree has its own.
        common_dir: objects, refs and the configuration.
    """

    work_tree: str | None
    git_dir: str
    common_dir: str

    @property
    def objects(self) -> str:
        return f"{self.common_dir}{os.sep}objects"

    @property
    def has_reftable(self) -> bool:
        """Whether refs and logs are in tables instead of files."""
        return os.path.isdir(f"{self.common_dir}{os.sep}reftable")


def find_layout(folder: str, served_paths: Sequence[str]) -> Layout:
    """Return the layout of the repository in `folder`.

    Args:
        folder: a real path.
        served: the real paths of everything served.

    Raises:
        NotFound: there is no repository.
        Refused: a part of it is outside, or is a link or not a file.
    """
    try:
        layout = _locate_parts(folder, served_paths)
        for part in {layout.git_dir, layout.common_dir}:
            _refuse_links(part, _UNUSED_NAMES)
            for name in ("refs", "reftable", "logs"):
                _refuse_links(f"{part}{os.sep}{name}", recursive=True)
        _refuse_links(f"{layout.common_dir}{os.sep}worktrees", _UNUSED_NAMES, recursive=True)
        objects = layout.objects
        for part in (objects, f"{objects}{os.sep}info", f"{objects}{os.sep}pack", f"{layout.common_dir}{os.sep}info"):
            _refuse_links(part)
        _refuse_foreign_alternates(layout.objects, served_paths, _MAX_ALTERNATE_LEVELS)
    except OSError as error:
        raise _unreadable(error) from None
    return layout


def _locate_parts(folder: str, served_paths: Sequence[str]) -> Layout:
    dot_git = f"{folder.rstrip(os.sep)}{os.sep}.git"
    try:
        mode = os.lstat(dot_git).st_mode
    except FileNotFoundError:
        parts = (os.path.join(folder, name) for name in ("HEAD", "objects", "refs"))
        if all(map(os.path.lexists, parts)):
            return Layout(None, folder, folder)
        raise NotFound(
            f"{quote(os.path.basename(folder))} is not a Git repository.",
            "Serve the top folder of one, with its `.git`.",
        ) from None
    if stat.S_ISDIR(mode):
        git_dir = dot_git
    elif stat.S_ISREG(mode):
        git_dir = _follow_dot_git(folder, dot_git, served_paths)
    else:
        raise _not_a_file("`.git`")
    shared = read_small_file(f"{git_dir}{os.sep}commondir")
    if not shared:
        return Layout(folder, git_dir, git_dir)
    common = os.path.realpath(os.path.join(git_dir, shared))
    if common != os.path.realpath(git_dir) and os.path.dirname(os.path.realpath(git_dir)) != os.path.join(
        common, "worktrees"
    ):
        raise Refused("The `commondir` of this repository leads elsewhere.", "Nothing outside it is read through it.")
    return Layout(folder, git_dir, git_dir if common == os.path.realpath(git_dir) else common)


def _follow_dot_git(folder: str, dot_git: str, served_paths: Sequence[str]) -> str:
    pointer = re.fullmatch(r"gitdir: ([^\0\r\n]+)[\r\n]*", read_small_file(dot_git) or "")
    if pointer is None:
        raise Refused(
            "The `.git` of this folder is not a git directory, nor does it name one.", "`git worktree repair`."
        )
    git_dir = os.path.realpath(os.path.join(folder, pointer[1]))
    backlink = read_small_file(os.path.join(git_dir, "gitdir"))
    if backlink is not None and os.path.realpath(os.path.join(git_dir, backlink.rstrip("\r\n"))) == dot_git:
        return git_dir
    if not any(is_inside(git_dir, root) for root in served_paths):
        raise Refused(
            "The `.git` file of this folder names a git directory outside, which does not name this folder.",
            "Serve the repository it belongs to.",
        )
    return git_dir


def _refuse_links(folder: str, but: frozenset[str] = frozenset(), *, recursive: bool = False) -> None:
    """Check that everything directly in `folder`, or `below` it, is a file or a folder.

    Raises:
        Refused: something is a link, a pipe or a device.
    """
    folders = [folder]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders += [entry.path] * recursive
                    elif not (entry.is_file(follow_symlinks=False) or entry.name in but):
                        raise _not_a_file(quote(entry.name))
        except (FileNotFoundError, NotADirectoryError):
            pass


def refuse_links_below(layout: Layout) -> None:
    """Check that everything that git could write to in its directories is a file or a folder, at any depth.

    Raises:
        Refused: something is a link, through which a commit's message or a log would be written elsewhere.
        Unavailable: a folder can't be read.
    """
    try:
        for part in {layout.git_dir, layout.common_dir}:
            _refuse_links(part, _UNUSED_NAMES)
            for name in os.listdir(part):
                if name not in _UNUSED_NAMES:
                    _refuse_links(os.path.join(part, name), recursive=True)
    except OSError as error:
        raise _unreadable(error) from None


def refuse_nested_repositories(layout: Layout) -> None:
    """Return if no repository lies in the work tree below its top.

    Raises:
        Refused: one does, whose own configuration git would follow when it enters.
    """
    if layout.work_tree is None:
        return
    for above, folders, files in os.walk(layout.work_tree):
        if above == layout.work_tree:
            folders[:] = [name for name in folders if name != ".git"]
        elif ".git" in folders or ".git" in files:
            raise _nested_repository(os.path.relpath(above, layout.work_tree))


def refuse_submodules_elsewhere(layout: Layout, submodules: Sequence[str], served_paths: Sequence[str]) -> None:
    """Return if no submodule that is checked out has its repository outside of what is served.

    Raises:
        Refused: one has, and git would say at which commit it is.
    """
    if layout.work_tree is None:
        return
    for submodule in submodules:
        folder = os.path.join(layout.work_tree, submodule)
        dot_git = os.path.join(folder, ".git")
        if not os.path.lexists(dot_git):
            continue
        target = os.path.realpath(dot_git)
        if os.path.isfile(target):
            pointer = re.fullmatch(r"gitdir: ([^\0\r\n]+)[\r\n]*", read_small_file(target) or "")
            target = os.path.realpath(os.path.join(folder, pointer[1])) if pointer else ""
        try:
            if not any(is_inside(target, root) for root in [*served_paths, layout.git_dir, layout.common_dir]):
                raise _nested_repository(submodule)
            if os.path.lexists(os.path.join(target, "commondir")):
                raise _nested_repository(submodule)
            _refuse_links(target, _UNUSED_NAMES)
            _refuse_links(os.path.join(target, "refs"), recursive=True)
        except Refused:
            raise _nested_repository(submodule) from None


def _unreadable(error: OSError) -> Unavailable:
    return Unavailable(f"The repository can't be read: {reason(error)}.", "The operator can mend that.")


def _nested_repository(path: str) -> Refused:
    return Refused(
        f"In this work tree {quote(path)} is a repository of its own, and no sandbox keeps git inside of it here.",
        "Serve that folder instead, or use `git` itself; `mcp-git --check` says why there is no sandbox.",
    )


def _not_a_file(item: str) -> Refused:
    return Refused(
        f"In the git directory {item} is a link or a special file, which may lead anywhere.",
        "The operator can put the thing itself there.",
    )


def _refuse_foreign_alternates(objects: str, served_paths: Sequence[str], levels: int) -> None:
    for name in ("alternates", "http-alternates"):
        path = f"{objects}{os.sep}info{os.sep}{name}"
        text = read_small_file(path)
        if text is None and os.path.lexists(path):
            raise Refused("The list of `alternates` of this repository is too long.", "`git repack -a -d` ends it.")
        # As git reads it: line ends are nothing else, and in quotes are escapes, which nobody needs here.
        for line in (text or "").split("\n"):
            if not line or line.startswith("#"):
                continue
            other = os.path.realpath(os.path.join(objects, line))
            if levels == 0 or line.startswith('"') or not any(is_inside(other, root) for root in served_paths):
                raise Refused(
                    "This repository takes objects from another that is not served (`alternates`).",
                    "The operator can serve that one too, or run `git repack -a -d`.",
                )
            _refuse_foreign_alternates(other, served_paths, levels - 1)


def is_inside(path: str, root: str) -> bool:
    """Whether a real path is `root` or lies below it."""
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)


def read_small_file(path: str) -> str | None:
    """Return the text of one of git's short files; None if it is not a file or too long."""
    try:
        file = os.open(path, _OPEN_FLAGS)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return None
        text = os.read(file, _MAX_SMALL_FILE_BYTES + 1)
    except OSError:
        return None
    finally:
        os.close(file)
    return None if len(text) > _MAX_SMALL_FILE_BYTES else os.fsdecode(text).rstrip("\n")
