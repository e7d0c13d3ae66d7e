"""Checks whether a path belongs to the repository, and suggests the intended one: an empty answer for a wrong path
misleads."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import NotFound, quote
from mcp_git.engine.program.git import Git, GitFailed
from mcp_git.engine.program.git_binary import missing_contents
from mcp_git.engine.program.output import split_names, split_records
from mcp_git.path_quoting import escape_line_breaks, quote_path
from mcp_git.policy import Repository, RepositoryPath

__all__ = ["is_in_revision", "refuse_missing_path", "suggest_path"]

# To compare more paths takes longer than the call that failed.
_MAX_COMPARED_PATHS = 5000
_MAX_LISTED_BYTES = 4 * 1024 * 1024
_MAX_SUGGESTIONS = 3
_SUBMODULE_MODE = b"160000 "


def refuse_missing_path(
    git: Git, repository: Repository, path: RepositoryPath, revisions: Sequence[str], cancel: CancelToken
) -> None:
    """Check that `path` is in the index, in the work tree (ignored or not), or in one of `revisions`.

    A tool that takes a path calls it before it says that it found nothing.

    Raises:
        NotFound: it is in none of them.
    """
    if not path.text:
        return
    if path.is_glob:
        _refuse_unmatched_glob(git, repository, path, revisions, cancel)
        return
    if any(is_in_revision(git, repository, revision, path, cancel) for revision in revisions):
        return
    places = [quote(escape_line_breaks(revision)) for revision in dict.fromkeys(revisions)]
    suggested_revision = revisions[-1] if revisions else None
    if git.layout(repository).work_tree is not None:
        if _is_in_work_tree(git, repository, path, cancel):
            return
        places.insert(0, "the work tree")
        suggested_revision = None
    fix = suggest_path(git, repository, path, suggested_revision, cancel)
    raise NotFound(f"There is no {quote(path.display)} in {' or '.join(places)}.", fix)


def _refuse_unmatched_glob(
    git: Git, repository: Repository, glob: RepositoryPath, revisions: Sequence[str], cancel: CancelToken
) -> None:
    """Check that a glob matches something in the index, in the work tree, or in the history of one of `revisions`.

    Raises:
        NotFound: it matches nothing.
    """
    commands = [["log", "--max-count=1", "--format=%H", revision, "--", *glob.pathspecs] for revision in revisions]
    places = [quote(escape_line_breaks(revision)) for revision in dict.fromkeys(revisions)]
    if git.layout(repository).work_tree is not None:
        commands.insert(0, ["ls-files", "-z", "--cached", "--others", "--directory", "--", *glob.pathspecs])
        places.insert(0, "the work tree")
    for command in commands:
        try:
            output = git.run(repository, command, cancel, max_bytes=1, literal_paths=False)
        except GitFailed:
            return  # Of a partial clone the folders are not here, so nobody can tell.
        if output.stdout:
            return
    fix = "`*` stops at a slash, `**` does not, and `[` means itself; `list_files` has what there is."
    raise NotFound(f"Nothing matches {quote(glob.display)} in {' or '.join(places)}.", fix)


def _is_in_work_tree(git: Git, repository: Repository, path: RepositoryPath, cancel: CancelToken) -> bool:
    arguments = ["ls-files", "-z", "--cached", "--others", "--directory", "--", path.text]
    return bool(git.run(repository, arguments, cancel, max_bytes=1).stdout)


def is_in_revision(git: Git, repository: Repository, revision: str, path: RepositoryPath, cancel: CancelToken) -> bool:
    """Whether a commit has a file or folder that is called like a path, were it a glob or not."""
    arguments = ["rev-parse", "--verify", "--quiet", f"{revision}:{path.text}"]
    return bool(git.run(repository, arguments, cancel, exit_codes=(0, 1, 128)).stdout)


def suggest_path(
    git: Git, repository: Repository, path: RepositoryPath, revision: str | None, cancel: CancelToken
) -> str:
    """Return what to do after `path` was not found in a revision, or in index and work tree.

    Raises:
        Unavailable: this is a partial clone, and a folder on the way to it is not here, or the file itself.
    """
    if git.is_partial(repository):
        _refuse_absent_contents(git, repository, path, revision or "HEAD", cancel)
    submodule = _find_submodule(git, repository, path, revision, cancel)
    if submodule:
        return f"{quote(submodule)} is a submodule, which is not entered: serve its folder as well."
    if set(path.text) & set("*?"):
        return "A path is no pattern: name a file or folder, or leave it out."
    parent = path.text.rpartition("/")[0]
    # Look in its folder first, so that a large repository is not listed for one wrong letter.
    for folder in dict.fromkeys([parent, ""]):
        similar = _find_similar(_list_paths(git, repository, folder, revision, cancel), path.text.casefold())
        if similar:
            names = " or ".join(quote(quote_path(os.fsencode(name))) for name in similar)
            return f"Did you mean {names}?"
    return "`list_files` has what there is."


def _refuse_absent_contents(
    git: Git, repository: Repository, path: RepositoryPath, revision: str, cancel: CancelToken
) -> None:
    """Check that all folders on the way to a path, and what is there, are objects of this clone.

    Raises:
        Unavailable: one of them has a hash and is not here.
    """
    commands = [["log", "--max-count=1", "--format=%T", revision, "--"]]
    commands += [["rev-parse", "--verify", "--quiet", f"{revision}:{name}"] for name in _list_ancestors(path.text)]
    for command in commands:
        oid = git.run(repository, command, cancel, exit_codes=(0, 1, 128)).text.strip()
        if not oid:
            return
        if not git.run(repository, ["cat-file", "-t", oid], cancel, exit_codes=(0, 128)).stdout:
            raise missing_contents()


def _find_submodule(
    git: Git, repository: Repository, path: RepositoryPath, revision: str | None, cancel: CancelToken
) -> str:
    """Return the submodule that `path` is or lies in; empty if there is none."""
    if not path.text:
        return ""
    ancestors = _list_ancestors(path.text)
    if revision is None:
        arguments = ["ls-files", "-z", "--stage", "--", ancestors[0]]
    else:
        arguments = ["ls-tree", "-z", revision, "--", *ancestors]
    try:
        with git.stream(repository, arguments, cancel) as pieces:
            for record in split_records(pieces):
                name = os.fsdecode(record.partition(b"\t")[2])
                if record.startswith(_SUBMODULE_MODE) and name in ancestors:
                    return quote_path(os.fsencode(name))
    except GitFailed:
        pass
    return ""


def _list_paths(git: Git, repository: Repository, folder: str, revision: str | None, cancel: CancelToken) -> list[str]:
    """Return the files below a folder, as far as they are looked through, and the folders on their way, in order."""
    if revision is None:
        arguments = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        operand = folder
    else:
        arguments = ["ls-tree", "-r", "-z", "--name-only", revision]
        operand = f"{folder}/"
    if folder:
        arguments += ["--", operand]
    try:
        output = git.run(repository, arguments, cancel, max_bytes=_MAX_LISTED_BYTES).stdout
    except GitFailed:
        return []
    paths: dict[str, None] = {}
    for file in split_names(output):
        paths |= dict.fromkeys(_list_ancestors(file))
    return list(paths)


def _find_similar(paths: Sequence[str], sought: str) -> list[str]:
    """Return the paths that may have been meant: the same but for case, a similar or the same name, a similar path."""
    original = {path.casefold(): path for path in paths}
    if sought in original:
        return [original[sought]]
    similar = (
        _find_similar_siblings(original, sought)
        or _find_same_names(original, sought)
        or get_close_matches(sought, list(original)[:_MAX_COMPARED_PATHS], n=_MAX_SUGGESTIONS)
    )
    return [original[path] for path in similar]


def _find_similar_siblings(paths: Iterable[str], sought: str) -> list[str]:
    """Return the paths with a similar name in the same folder."""
    folder, slash, name = sought.rpartition("/")
    siblings = [path for path in paths if path.rpartition("/")[0] == folder]
    sibling_names = [path.rpartition("/")[2] for path in siblings[:_MAX_COMPARED_PATHS]]
    similar_names = get_close_matches(name, sibling_names, n=_MAX_SUGGESTIONS)
    return [folder + slash + similar_name for similar_name in similar_names]


def _find_same_names(paths: Iterable[str], sought: str) -> list[str]:
    """Return the paths with the same name in another folder."""
    name = sought.rpartition("/")[2]
    return [path for path in paths if path.rpartition("/")[2] == name][:_MAX_SUGGESTIONS]


def _list_ancestors(path: str) -> list[str]:
    """Return the folders on the way to a path, and the path."""
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts) + 1)]
