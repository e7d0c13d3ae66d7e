"""Resolves names of revisions to hashes, and explains why git could not."""

from __future__ import annotations

import difflib
import re

from mcp_batteries.errors import Invalid, NotFound, Problem, quote
from mcp_batteries.limits import Stop
from mcp_git.engine.program.git import Git, GitFailed
from mcp_git.policy import Range, Repository, Revision

__all__ = ["EMPTY_TREES", "explain_failure", "find_commits", "find_hash", "head_has_commit", "resolve_commits"]

# The tree with nothing in it, by the length of a hash.
EMPTY_TREES = {
    40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}


def resolve_commits(git: Git, repository: Repository, revision: Revision | Range, stop: Stop) -> list[str]:
    """The hashes that `revision` means now, those that a range leaves out with a `^` before them."""
    return git.run(repository, ["rev-parse", "--revs-only", revision.text, "--"], stop).text.split()


def head_has_commit(git: Git, repository: Repository, stop: Stop) -> bool:
    """Whether HEAD is a commit."""
    return bool(find_hash(git, repository, "HEAD", stop))


def find_hash(git: Git, repository: Repository, name: str, stop: Stop) -> str:
    """The hash of what a name stands for now; empty where it stands for nothing."""
    return git.run(repository, ["rev-parse", "--verify", "--quiet", name], stop, exit_codes=(0, 1)).text.strip()


def explain_failure(
    failure: GitFailed, git: Git, repository: Repository, named: Revision | Range | None, stop: Stop
) -> Problem:
    """What a failure of git means to the caller who named a revision."""
    revisions = () if named is None else (named.start, named.end) if isinstance(named, Range) else (named,)
    for revision in revisions:
        if revision.is_conflict_side:
            continue
        words = ["rev-parse", "--verify", "--quiet", revision.text + "^{object}"]
        if git.run(repository, words, stop, exit_codes=(0, 1, 128)).stdout:
            continue
        if revision.text == "HEAD":
            return NotFound("`HEAD` has no commit yet.", "`get_status` has what is there.")
        listed = git.run(repository, ["for-each-ref", "--format=%(refname:short)", "--count=5000"], stop)
        near = difflib.get_close_matches(revision.text, listed.text.split(), n=3)
        fix = f"Did you mean {' or '.join(map(quote, near))}?" if near else "`list_refs` has branches and tags."
        if revision.text.startswith("stash@"):
            fix = "`list_refs` with kind=stashes has those there are."
        return NotFound(f"There is no revision {quote(revision.text)}.", fix)
    if "timed out" in failure.stderr:
        return failure
    if re.search(r"invalid regex|(?:-e option|command line|header), ", failure.stderr):
        return Invalid(str(failure).rstrip(), "Put a backslash before what is meant as it stands, such as `\\(`.")
    return Invalid(str(failure).rstrip(), "`get_status` has the state of the repository.")


def find_commits(git: Git, repository: Repository, revision: Revision, stop: Stop) -> list[str]:
    """The hash that a revision is, in a list that is empty if it is none."""
    try:
        return resolve_commits(git, repository, revision, stop)
    except GitFailed:
        return []
