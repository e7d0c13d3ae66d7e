"""Where a repository's parts are: all inside what is served, none behind a link, or the repository is refused.

Git itself follows whatever a `.git` file, `commondir`, `alternates` or a symbolic link names, and a repository that
came as an archive can name anything on the machine. A linked worktree and a submodule are served although their git
directory is elsewhere: it must name their folder in return, which only somebody who may write there can arrange.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from mcp_batteries.errors import NotFound, Refused, Unavailable, describe_os_error, quote

__all__ = [
    "Layout",
    "find_layout",
    "find_nested_repository",
    "is_inside",
    "is_inside_any",
    "read_small_file",
    "refuse_links_below",
    "refuse_nested_repositories",
    "refuse_submodules_elsewhere",
]

_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_MAX_SMALL_FILE_BYTES = 64 * 1024
# Levels, as many as git follows.
_MAX_ALTERNATE_LEVELS = 5
_DOT_GIT = re.compile(r"gitdir: ([^\0\r\n]+)[\r\n]*")
# As `git submodule` writes it, and no more of how a configuration can be written.
_CORE_WORK_TREE = re.compile(r"\[core\]\n(?:\t[^\n]*\n)*?\tworktree = ([^\n\"\\#;]+)(?:\n|\Z)")
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
        served_paths: the real paths of everything served.

    Raises:
        NotFound: there is no repository.
        Refused: a part of it is outside, or is a link or not a file.
    """
    try:
        layout = _locate_parts(folder, served_paths)
        _refuse_links_in(layout)
        _refuse_special_files(layout)
        _refuse_foreign_alternates(layout.objects, served_paths, _MAX_ALTERNATE_LEVELS)
    except OSError as error:
        raise _unreadable(error) from None
    return layout


def _refuse_links_in(layout: Layout) -> None:
    """Check the folders of a git directory that git reads, some of them at any depth."""
    for part in {layout.git_dir, layout.common_dir}:
        _refuse_links(part, _UNUSED_NAMES)
        for name in ("refs", "reftable", "logs"):
            _refuse_links(f"{part}{os.sep}{name}", recursive=True)
    _refuse_links(f"{layout.common_dir}{os.sep}worktrees", _UNUSED_NAMES, recursive=True)
    objects = layout.objects
    for part in (objects, f"{objects}{os.sep}info", f"{objects}{os.sep}pack", f"{layout.common_dir}{os.sep}info"):
        _refuse_links(part)


def _refuse_special_files(layout: Layout) -> None:
    """Check the files at the top of the work tree that git opens whatever it is asked: it would wait for a pipe.

    Raises:
        Refused: one is a pipe, a socket or a device.
    """
    if layout.work_tree is None:
        return
    for name in (".mailmap", ".gitattributes", ".gitignore", ".gitmodules"):
        with suppress(FileNotFoundError):
            mode = os.lstat(f"{layout.work_tree}{os.sep}{name}").st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode) or stat.S_ISDIR(mode)):
                raise Refused(
                    f"{quote(name)} in the work tree is a pipe or a device, for which git would wait.",
                    "The user can remove it.",
                )


def _locate_parts(folder: str, served_paths: Sequence[str]) -> Layout:
    dot_git = f"{folder.rstrip(os.sep)}{os.sep}.git"
    try:
        mode = os.lstat(dot_git).st_mode
    except FileNotFoundError:
        return _locate_bare(folder)
    if stat.S_ISDIR(mode):
        git_dir = dot_git
    elif stat.S_ISREG(mode):
        git_dir = _follow_dot_git(folder, dot_git, served_paths)
    else:
        raise _not_a_file("`.git`")
    return Layout(folder, git_dir, _locate_common_dir(git_dir))


def _locate_bare(folder: str) -> Layout:
    parts = (os.path.join(folder, name) for name in ("HEAD", "objects", "refs"))
    if all(map(os.path.lexists, parts)):
        return Layout(None, folder, folder)
    raise NotFound(
        f"{quote(os.path.basename(folder))} is not a Git repository.",
        "Serve the top folder of one, with its `.git`.",
    ) from None


def _locate_common_dir(git_dir: str) -> str:
    """Return the directory that a git directory shares with others; a linked worktree's lies in `worktrees` there."""
    pointer = read_small_file(f"{git_dir}{os.sep}commondir")
    if not pointer:
        return git_dir
    real_git_dir = os.path.realpath(git_dir)
    common_dir = os.path.realpath(os.path.join(git_dir, pointer))
    if common_dir == real_git_dir:
        return git_dir
    if os.path.dirname(real_git_dir) != os.path.join(common_dir, "worktrees"):
        raise Refused("The `commondir` of this repository leads elsewhere.", "Nothing outside it is read through it.")
    return common_dir


def _follow_dot_git(folder: str, dot_git: str, served_paths: Sequence[str]) -> str:
    pointer = _DOT_GIT.fullmatch(read_small_file(dot_git) or "")
    if pointer is None:
        raise Refused(
            "The `.git` of this folder is not a git directory, nor does it name one.", "`git worktree repair`."
        )
    git_dir = os.path.realpath(os.path.join(folder, pointer[1]))
    is_named = _names_worktree(git_dir, dot_git) or _names_submodule(git_dir, folder)
    if not is_named and not is_inside_any(git_dir, served_paths):
        raise Refused(
            "The `.git` file of this folder names a git directory outside, which does not name this folder.",
            "Serve the repository it belongs to.",
        )
    return git_dir


def _names_worktree(git_dir: str, dot_git: str) -> bool:
    """Whether a git directory names a worktree's `.git` in return."""
    backlink = read_small_file(os.path.join(git_dir, "gitdir"))
    if backlink is None:
        return False
    return os.path.realpath(os.path.join(git_dir, backlink.rstrip("\r\n"))) == dot_git


def _names_submodule(git_dir: str, folder: str) -> bool:
    """Whether a git directory names a submodule's folder in return, in the first section of its configuration.

    That is in a file of its own once `git sparse-checkout` was used there.
    """
    for name in ("config", "config.worktree"):
        match = _CORE_WORK_TREE.match(read_small_file(os.path.join(git_dir, name)) or "")
        if match is not None:
            return os.path.realpath(os.path.join(git_dir, match[1])) == os.path.realpath(folder)
    return False


def _refuse_links(folder: str, but: frozenset[str] = frozenset(), *, recursive: bool = False) -> None:
    """Check that everything directly in `folder`, or at any depth, is a file or a folder.

    Raises:
        Refused: something is a link, a pipe or a device.
    """
    folders = [folder]
    while folders:
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if recursive:
                        folders.append(entry.path)
                elif not (entry.is_file(follow_symlinks=False) or entry.name in but):
                    raise _not_a_file(quote(entry.name))


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


def find_nested_repository(layout: Layout) -> str:
    """Return the first folder below the top of the work tree that is a repository of its own; empty if none is."""
    if layout.work_tree is None:
        return ""
    for above, folders, files in os.walk(layout.work_tree):
        if above == layout.work_tree:
            folders[:] = [name for name in folders if name != ".git"]
        elif ".git" in folders or ".git" in files:
            return os.path.relpath(above, layout.work_tree)
    return ""


def refuse_nested_repositories(layout: Layout, *, signs: bool = False) -> None:
    """Check that no repository lies in the work tree below its top.

    Args:
        signs: whether git would be kept inside of it if it did not sign.

    Raises:
        Refused: one does, whose own configuration git would follow when it enters.
    """
    path = find_nested_repository(layout)
    if path:
        raise _nested_repository(path, signs=signs)


def refuse_submodules_elsewhere(layout: Layout, submodules: Sequence[str], served_paths: Sequence[str]) -> None:
    """Check that no submodule that is checked out has its repository outside of what is served.

    Raises:
        Refused: one has, and git would say at which commit it is.
    """
    if layout.work_tree is None:
        return
    roots = [*served_paths, layout.git_dir, layout.common_dir]
    for submodule in submodules:
        folder = os.path.join(layout.work_tree, submodule)
        if os.path.lexists(os.path.join(folder, ".git")):
            _refuse_submodule_elsewhere(submodule, _locate_submodule(folder), roots)


def _locate_submodule(folder: str) -> str:
    """Return the git directory of a submodule that is checked out; empty if it names none."""
    target = os.path.realpath(os.path.join(folder, ".git"))
    if not os.path.isfile(target):
        return target
    pointer = _DOT_GIT.fullmatch(read_small_file(target) or "")
    if pointer is None:
        return ""
    return os.path.realpath(os.path.join(folder, pointer[1]))


def _refuse_submodule_elsewhere(submodule: str, git_dir: str, roots: Sequence[str]) -> None:
    if not is_inside_any(git_dir, roots) or os.path.lexists(os.path.join(git_dir, "commondir")):
        raise _nested_repository(submodule)
    try:
        _refuse_links(git_dir, _UNUSED_NAMES)
        _refuse_links(os.path.join(git_dir, "refs"), recursive=True)
    except Refused:
        raise _nested_repository(submodule) from None


def _unreadable(error: OSError) -> Unavailable:
    return Unavailable(f"The repository can't be read: {describe_os_error(error)}.", "The operator can mend that.")


def _nested_repository(path: str, *, signs: bool = False) -> Refused:
    if signs:
        return Refused(
            f"In this work tree {quote(path)} is a repository of its own, into which a git that signs is not let.",
            "Serve that folder instead, run the server without --sign, or use `git` itself.",
        )
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
        for path in _list_alternates(f"{objects}{os.sep}info{os.sep}{name}"):
            folder = os.path.realpath(os.path.join(objects, path))
            if levels == 0 or path.startswith('"') or not is_inside_any(folder, served_paths):
                raise Refused(
                    "This repository takes objects from another that is not served (`alternates`).",
                    "The operator can serve that one too, or run `git repack -a -d`.",
                )
            _refuse_foreign_alternates(folder, served_paths, levels - 1)


def _list_alternates(path: str) -> list[str]:
    """Return the folders that a file names, as git reads it.

    Line ends are nothing else, and in quotes are escapes, which nobody needs here.
    """
    text = read_small_file(path)
    if text is None and os.path.lexists(path):
        raise Refused("The list of `alternates` of this repository is too long.", "`git repack -a -d` ends it.")
    return [line for line in (text or "").split("\n") if line and not line.startswith("#")]


def is_inside(path: str, root: str) -> bool:
    """Whether a real path is `root` or lies below it."""
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)


def is_inside_any(path: str, roots: Iterable[str]) -> bool:
    """Whether a real path is one of `roots` or lies below one."""
    return any(is_inside(path, root) for root in roots)


def read_small_file(path: str, *, max_bytes: int = _MAX_SMALL_FILE_BYTES) -> str | None:
    """Return the text of one of git's short files; None if it is not a file or too long."""
    try:
        file = os.open(path, _OPEN_FLAGS)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return None
        text = os.read(file, max_bytes + 1)
    except OSError:
        return None
    finally:
        os.close(file)
    if len(text) > max_bytes:
        return None
    return os.fsdecode(text).rstrip("\n")
