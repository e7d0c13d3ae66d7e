"""Protects files that git does not know: what would overwrite one is refused, as nothing would bring it back."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from typing import NamedTuple

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Conflict, quote
from mcp_git import git_config
from mcp_git.engine.program.git import Git, GitFailed
from mcp_git.engine.program.output import split_names
from mcp_git.path_quoting import quote_path, quote_paths
from mcp_git.policy import Repository, Revision
from mcp_git.repository_paths import Layout

__all__ = [
    "describe_remaining_files",
    "describe_sparse_files",
    "find_overwritten_untracked",
    "list_refused_by_add",
    "list_untracked",
    "list_untracked_of_stash",
    "name_some",
    "refuse_obstructed_stash",
    "refuse_overwriting_ignored",
    "refuse_overwriting_ignored_in_steps",
    "refuse_overwriting_ignored_on_reset",
    "refuse_overwriting_untracked",
    "refuse_removing_untracked",
    "refuse_torn_stash",
]

_MAX_NAMES = 20
# A submodule's folder stays as it is.
_LIST_OPTIONS = ("--raw", "--no-renames", "--ignore-submodules=all", "-z")


def refuse_overwriting_untracked(
    git: Git,
    repository: Repository,
    layout: Layout,
    source: Revision,
    paths: Sequence[str],
    cancel: CancelToken,
    *,
    even_same_content: bool = False,
) -> None:
    """Check that no untracked file lies where one of `source` is to be written.

    Args:
        even_same_content: whether a file of the same content counts, which an undo would take away.

    Raises:
        Conflict: one does, and nothing would bring it back.
    """
    untracked = find_overwritten_untracked(
        git, repository, layout, source.text, paths, cancel, even_same_content=even_same_content
    )
    if untracked:
        raise _overwritten(untracked)


def refuse_overwriting_ignored(
    git: Git, repository: Repository, layout: Layout, comparison: Sequence[str], cancel: CancelToken
) -> None:
    """Check that no ignored file lies where a change brings a new one: git overwrites it without a word.

    Args:
        comparison: the arguments of `diff-tree` that say what the change brings.

    Raises:
        Conflict: one does, and nothing would bring it back.
    """
    # The other way round, so that what is new on the one side is deleted on the other, with its content.
    arguments = ["diff-tree", "-r", "-R", *_LIST_OPTIONS, "--diff-filter=D", *comparison, "--"]
    _refuse_ignored_obstacles(git, repository, layout, _list_files(git, repository, arguments, cancel), cancel)


def refuse_overwriting_ignored_in_steps(
    git: Git, repository: Repository, layout: Layout, commits: str, is_reverse: bool, cancel: CancelToken
) -> None:
    """Check that no ignored file lies where one of several commits brings a new one, though a later one deletes it.

    Args:
        commits: their hashes, a line each.
        is_reverse: whether what they did is undone.

    Raises:
        Conflict: one does, and nothing would bring it back.
    """
    direction = [] if is_reverse else ["-R"]
    arguments = ["diff-tree", "--stdin", "--no-commit-id", "--root", "-r", *direction, *_LIST_OPTIONS]
    output = git.run(repository, [*arguments, "--diff-filter=D"], cancel, stdin=commits.encode())
    files = _parse_files(output.stdout)
    if not files:
        return
    tracked = set(split_names(git.run(repository, ["ls-files", "-z"], cancel).stdout))
    untracked = [file for file in files if file.name not in tracked]
    _refuse_ignored_obstacles(git, repository, layout, untracked, cancel)


def refuse_overwriting_ignored_on_reset(
    git: Git, repository: Repository, layout: Layout, target: str, cancel: CancelToken
) -> None:
    """Check that no ignored file lies where a commit has one that the index does not have.

    Raises:
        Conflict: one does, and nothing would bring it back.
    """
    arguments = ["diff-index", "--cached", *_LIST_OPTIONS, "--diff-filter=D", target, "--"]
    _refuse_ignored_obstacles(git, repository, layout, _list_files(git, repository, arguments, cancel), cancel)


def _refuse_ignored_obstacles(
    git: Git, repository: Repository, layout: Layout, files: Sequence[_CommittedFile], cancel: CancelToken
) -> None:
    obstacles = _find_obstacles(git, repository, layout, files, cancel)
    if not obstacles:
        return
    arguments = ["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--", *obstacles]
    ignored = git.run(repository, arguments, cancel).stdout.split(b"\0")[0]
    if ignored:
        raise Conflict(
            f"{quote(quote_path(ignored))} is ignored here, and would be overwritten for good.",
            "Nothing was changed. Move it away first.",
        )


def refuse_removing_untracked(git: Git, repository: Repository, cancel: CancelToken) -> None:
    """Check that no untracked file lies where the index has one, as in a folder of its name: git would remove it.

    Raises:
        Conflict: one does, and nothing would bring it back.
    """
    removed = git.run(repository, ["ls-files", "-z", "--killed"], cancel).stdout.split(b"\0")[0]
    if removed:
        raise _overwritten(removed)


def refuse_torn_stash(
    git: Git, repository: Repository, layout: Layout, paths: Sequence[str], cancel: CancelToken
) -> None:
    """Check that a stash of untracked files has none where HEAD has a file: git could not bring back both.

    Raises:
        Conflict: it would have one.
    """
    torn = find_overwritten_untracked(
        git, repository, layout, "HEAD", paths, cancel, even_same_content=True, with_ignored=False
    )
    if torn:
        raise Conflict(
            f"{quote(quote_path(torn))} is untracked where HEAD has a file, and no stash could bring back both.",
            "Nothing was changed. Stage it with `stage_files` first, or leave `untracked` out.",
        )


def find_overwritten_untracked(
    git: Git,
    repository: Repository,
    layout: Layout,
    source: str,
    paths: Sequence[str],
    cancel: CancelToken,
    *,
    even_same_content: bool = False,
    with_ignored: bool = True,
) -> bytes:
    """Return an untracked file that lies where one of `source` is to be written; empty if none does.

    Args:
        even_same_content: as of `refuse_overwriting_untracked`.
        with_ignored: whether a file that git ignores counts.
    """
    # Files that git does not find on disk: those that the index has not, and those in whose place lies something else,
    # as a folder. What has another type may be a repository there.
    arguments = ["diff-index", *_LIST_OPTIONS, "--diff-filter=DT", source, "--", *paths]
    files = _list_files(git, repository, arguments, cancel)
    obstacles = _find_obstacles(git, repository, layout, files, cancel, even_same_content=even_same_content)
    if not obstacles:
        return b""
    # A repository in place of a file is none of the others, and killed is what git would remove for the file.
    options = ["-z", "--others", "--killed"]
    if not with_ignored:
        options.append("--exclude-standard")
    arguments = ["ls-files", *options, "--", *obstacles]
    return git.run(repository, arguments, cancel).stdout.split(b"\0")[0]


def _overwritten(untracked: bytes) -> Conflict:
    return Conflict(
        f"{quote(quote_path(untracked))} is untracked, and would be overwritten for good.",
        "Stage it with `stage_files` first, or move it away.",
    )


class _CommittedFile(NamedTuple):
    """A file that a commit has."""

    name: str
    oid: str


def _list_files(
    git: Git, repository: Repository, arguments: Sequence[str], cancel: CancelToken
) -> list[_CommittedFile]:
    """Return the files on the earlier side of a comparison; none if there is no such commit."""
    try:
        output = git.run(repository, arguments, cancel).stdout
    except GitFailed:
        return []  # The operation itself will say so.
    return _parse_files(output)


def _parse_files(output: bytes) -> list[_CommittedFile]:
    """Return the files of what a comparison printed, each of which has two fields: how it differs, and its name."""
    fields = split_names(output)
    files: list[_CommittedFile] = []
    for difference, name in zip(fields[::2], fields[1::2], strict=True):
        oid = difference.split(" ")[2]
        files.append(_CommittedFile(name, oid))
    return files


def _find_obstacles(
    git: Git,
    repository: Repository,
    layout: Layout,
    files: Sequence[_CommittedFile],
    cancel: CancelToken,
    *,
    even_same_content: bool = False,
) -> list[str]:
    """Return what lies where files are to be written, and unless `even_same_content` is not as they will be."""
    top = layout.work_tree or ""
    obstacles: set[str] = set()
    for file in files:
        obstacle = _find_obstacle(top, file.name)
        if not obstacle or obstacle in obstacles:
            continue
        if even_same_content or not _has_content(git, repository, top, obstacle, file.oid, cancel):
            obstacles.add(obstacle)
    return sorted(obstacles)


def refuse_obstructed_stash(git: Git, repository: Repository, layout: Layout, stash: str, cancel: CancelToken) -> None:
    """Check that nothing lies where a stash has untracked files: git would bring back all else of it, and then fail.

    Raises:
        Conflict: something does.
    """
    for name in list_untracked_of_stash(git, repository, stash, cancel):
        obstacle = _find_obstacle(layout.work_tree or "", name)
        if obstacle:
            raise Conflict(
                f"The stash has {quote(quote_path(os.fsencode(obstacle)))} as an untracked file, and it is there.",
                "Nothing was changed. Move it away, or put it aside as well: `run_stash` with untracked=true.",
            )


def list_untracked_of_stash(git: Git, repository: Repository, stash: str, cancel: CancelToken) -> list[str]:
    """Return the untracked files that a stash has."""
    arguments = ["ls-tree", "-r", "--name-only", "-z", f"{stash}^3"]
    return split_names(git.run(repository, arguments, cancel, exit_codes=(0, 128)).stdout)


def list_untracked(git: Git, repository: Repository, paths: Collection[bytes], cancel: CancelToken) -> list[bytes]:
    """Return the files at `paths` and below that git neither knows nor ignores."""
    if not paths:
        return []
    arguments = ["ls-files", "-z", "--others", "--exclude-standard", "--", *map(os.fsdecode, paths)]
    return git.run(repository, arguments, cancel).stdout.split(b"\0")[:-1]


def list_refused_by_add(
    git: Git, repository: Repository, layout: Layout, paths: Sequence[bytes], cancel: CancelToken
) -> list[bytes]:
    """Return those of the files that git does not stage, as they are outside of a sparse checkout."""
    if not paths or not git_config.is_sparse_checkout(git.read_allowed_configuration(repository)):
        return []
    arguments = ["add", "--all", "--dry-run", "--", *map(os.fsdecode, paths)]
    with git.copy_index(layout) as folder:
        output = git.run(repository, arguments, cancel, exit_codes=(0, 1), scratch_index=folder).stdout
    return [path for path in paths if b"add '%s'\n" % path not in output and b"remove '%s'\n" % path not in output]


def describe_remaining_files(names: Sequence[str]) -> str:
    """Return the line about new files that no undo takes away."""
    return f"new files, which stay: {name_some(names)}"


def describe_sparse_files(names: Sequence[str]) -> str:
    """Return the line about files that were written although a sparse checkout leaves them out."""
    named = name_some(quote_paths(map(os.fsencode, names)))
    return f"outside of the sparse checkout, so that the undo leaves them on disk: {named}"


def name_some(names: Sequence[str]) -> str:
    """Return the first of the names, and how many more there are."""
    named = ", ".join(names[:_MAX_NAMES])
    if len(names) > _MAX_NAMES:
        named += f" and {len(names) - _MAX_NAMES:,} more"
    return named


def _has_content(git: Git, repository: Repository, top: str, name: str, oid: str, cancel: CancelToken) -> bool:
    """Whether a file has the content of a blob."""
    path = os.path.join(top, name)
    if not os.path.isfile(path) or os.path.islink(path):
        return False
    return git.run(repository, ["hash-object", "--", name], cancel, exit_codes=(0, 128)).text.strip() == oid


def _find_obstacle(top: str, name: str) -> str:
    """Return what lies at `name`, or is a file where it needs a folder; empty if nothing does."""
    parts = name.split("/")
    for depth in range(1, len(parts)):
        folder = "/".join(parts[:depth])
        if _is_no_folder(os.path.join(top, folder)):
            return folder
    if os.path.lexists(os.path.join(top, name)):
        return name
    return ""


def _is_no_folder(path: str) -> bool:
    """Whether something else than a folder lies at a path, such as a link to one."""
    return os.path.lexists(path) and (os.path.islink(path) or not os.path.isdir(path))
