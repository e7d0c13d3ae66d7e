"""Checks whether a path belongs to the repository, and suggests the intended one: an empty answer for a wrong path
misleads."""

from __future__ import annotations

import os
from collections.abc import Sequence
from difflib import get_close_matches

from mcp_batteries.errors import NotFound, quote
from mcp_batteries.limits import Stop
from mcp_git.engine.program.git import Git, GitFailed
from mcp_git.engine.program.output import split_records
from mcp_git.path_quoting import escape_line_breaks, quote_path
from mcp_git.policy import Repository, RepositoryPath

__all__ = ["refuse_missing_path", "suggest_path"]

_MOST_COMPARED = 5000
"""Paths; to compare more of them takes longer than the call that failed."""
_MOST_LISTED = 4 * 1024 * 1024
"""Bytes of paths that are looked through for the one that was meant."""
_SUBMODULE = b"160000 "


def refuse_missing_path(
    git: Git, repository: Repository, place: RepositoryPath, revisions: Sequence[str], stop: Stop
) -> None:
    """Return if `place` is in the index, in the work tree (ignored or not), or in one of `revisions`.

    Raises:
        NotFound: it is in none of them.
    """
    if not place.text or any(_is_in(git, repository, revision, place, stop) for revision in revisions):
        return
    has_work_tree = git.layout(repository).work_tree is not None
    if has_work_tree:
        words = ["ls-files", "-z", "--cached", "--others", "--directory", "--", place.text]
        if git.run(repository, words, stop, max_bytes=1).stdout:
            return
    where = " or ".join(
        [
            *["the work tree"] * has_work_tree,
            *(quote(escape_line_breaks(revision)) for revision in dict.fromkeys(revisions)),
        ]
    )
    fix = suggest_path(git, repository, place, None if has_work_tree else revisions[-1], stop)
    raise NotFound(f"There is no {quote(place.display)} in {where}.", fix)


def _is_in(git: Git, repository: Repository, revision: str, place: RepositoryPath, stop: Stop) -> bool:
    words = ["rev-parse", "--verify", "--quiet", f"{revision}:{place.text}"]
    return bool(git.run(repository, words, stop, exit_codes=(0, 1, 128)).stdout)


def suggest_path(git: Git, repository: Repository, place: RepositoryPath, revision: str | None, stop: Stop) -> str:
    """What to do after `place` was not found in a revision, or in index and work tree."""
    if inside := _submodule(git, repository, place, revision, stop):
        return f"{quote(inside)} is a submodule, which is not entered: serve its folder as well."
    above = place.text.rpartition("/")[0]
    # Beside it first, so that a large repository is not listed for one wrong letter.
    for folder in dict.fromkeys([above, ""]):
        found = _near(_listed(git, repository, folder, revision, stop), place.text.casefold())
        if found:
            return f"Did you mean {' or '.join(quote(quote_path(os.fsencode(path))) for path in found)}?"
    return "`list_files` has what there is."


def _submodule(git: Git, repository: Repository, place: RepositoryPath, revision: str | None, stop: Stop) -> str:
    """The submodule that `place` is or lies in, empty if there is none."""
    if not place.text:
        return ""
    above = _on_the_way(place.text)
    words = (
        ["ls-files", "-z", "--stage", "--", above[0]] if revision is None else ["ls-tree", "-z", revision, "--", *above]
    )
    try:
        with git.stream(repository, words, stop) as pieces:
            for item in split_records(pieces):
                name = os.fsdecode(item.partition(b"\t")[2])
                if item.startswith(_SUBMODULE) and name in above:
                    return quote_path(os.fsencode(name))
    except GitFailed:
        pass
    return ""


def _listed(git: Git, repository: Repository, folder: str, revision: str | None, stop: Stop) -> list[str]:
    """The files below a folder, as far as they are looked through, and the folders on their way in the same order."""
    if revision is None:
        words = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", *(["--", folder] if folder else [])]
    else:
        words = ["ls-tree", "-r", "-z", "--name-only", revision, *(["--", f"{folder}/"] if folder else [])]
    try:
        listed = git.run(repository, words, stop, max_bytes=_MOST_LISTED).stdout
    except GitFailed:
        return []
    files = map(os.fsdecode, listed.split(b"\0")[:-1])
    return list(dict.fromkeys(path for file in files for path in _on_the_way(file)))


def _near(paths: Sequence[str], wanted: str) -> list[str]:
    by_fold = {path.casefold(): path for path in paths}
    if wanted in by_fold:
        return [by_fold[wanted]]
    above, _, name = wanted.rpartition("/")
    beside = [path for path in by_fold if path.rpartition("/")[0] == above]
    close = get_close_matches(name, [path.rpartition("/")[2] for path in beside[:_MOST_COMPARED]], n=3)
    found = [by_fold[f"{above}/{one}" if above else one] for one in close]
    found = found or [path for fold, path in by_fold.items() if fold.rpartition("/")[2] == name][:3]
    return found or [by_fold[one] for one in get_close_matches(wanted, list(by_fold)[:_MOST_COMPARED], n=3)]


def _on_the_way(file: str) -> list[str]:
    parts = file.split("/")
    return ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
