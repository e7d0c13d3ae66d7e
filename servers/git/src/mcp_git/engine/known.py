"""Whether a path is one of the repository, and which one was meant: nothing at a wrong path is no answer."""

from __future__ import annotations

import os
from collections.abc import Sequence
from difflib import get_close_matches

from mcp_batteries.errors import NotFound, quote
from mcp_batteries.limits import Stop
from mcp_git.engine.program import Failed, Git
from mcp_git.names import one_line, shown
from mcp_git.policy import Place, Repository

__all__ = ["near", "refuse_unknown"]

_MOST_COMPARED = 5000
"""Paths; to compare more of them takes longer than the call that failed."""


def refuse_unknown(git: Git, repository: Repository, place: Place, revisions: Sequence[str], stop: Stop) -> None:
    """Return if `place` is in the index, in the work tree (ignored or not), or in one of `revisions`.

    Raises:
        NotFound: it is in none of them.
    """
    if not place.path or any(_is_in(git, repository, revision, place, stop) for revision in revisions):
        return
    has_work_tree = git.layout(repository).work_tree is not None
    if has_work_tree:
        words = ["ls-files", "-z", "--cached", "--others", "--directory", "--", place.path]
        if git.run(repository, words, stop, most=1).out:
            return
    where = " or ".join(
        [*["the work tree"] * has_work_tree, *(quote(one_line(revision)) for revision in dict.fromkeys(revisions))]
    )
    fix = near(git, repository, place, None if has_work_tree else revisions[-1], stop)
    raise NotFound(f"There is no {quote(place.display)} in {where}.", fix)


def _is_in(git: Git, repository: Repository, revision: str, place: Place, stop: Stop) -> bool:
    words = ["rev-parse", "--verify", "--quiet", f"{revision}:{place.path}"]
    return bool(git.run(repository, words, stop, fine=(0, 1, 128)).out)


def near(git: Git, repository: Repository, place: Place, revision: str | None, stop: Stop) -> str:
    """The next move after `place` was not found in a revision, or in index and work tree."""
    if revision is None:
        words = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    else:
        words = ["ls-tree", "-r", "-z", "--name-only", revision]
    try:
        files = [os.fsdecode(name) for name in git.run(repository, words, stop).out.split(b"\0")[:-1]]
    except Failed:
        files = []
    # Of files the folders too, in the order in which they come.
    paths = list(dict.fromkeys(path for file in files for path in _on_the_way(file)))
    by_fold = {path.casefold(): path for path in paths}
    wanted = place.path.casefold()
    above, _, name = wanted.rpartition("/")
    found = [by_fold[wanted]] if wanted in by_fold else []
    if not found:
        beside = [path for path in by_fold if path.rpartition("/")[0] == above]
        close = get_close_matches(name, [path.rpartition("/")[2] for path in beside[:_MOST_COMPARED]], n=3)
        found = [by_fold[f"{above}/{one}" if above else one] for one in close]
    found = found or [path for fold, path in by_fold.items() if fold.rpartition("/")[2] == name][:3]
    found = found or [by_fold[one] for one in get_close_matches(wanted, list(by_fold)[:_MOST_COMPARED], n=3)]
    if found:
        return f"Did you mean {' or '.join(quote(shown(os.fsencode(path))) for path in found)}?"
    return "`list_files` has what there is."


def _on_the_way(file: str) -> list[str]:
    parts = file.split("/")
    return ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
