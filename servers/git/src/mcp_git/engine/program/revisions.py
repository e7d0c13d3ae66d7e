"""Resolves names of revisions to hashes, and explains why git could not."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Generator, Iterable
from contextlib import contextmanager

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Invalid, NotFound, Problem, TooLarge, Unavailable, quote
from mcp_git.engine.program.git import Git, GitFailed
from mcp_git.engine.program.git_binary import missing_contents
from mcp_git.policy import Range, Repository, Revision, RevisionList
from mcp_git.repository_paths import Layout, read_small_file

__all__ = [
    "EMPTY_TREES",
    "NAME_A_COMMIT",
    "damaged",
    "describe_named_revisions",
    "explain_failure",
    "explained_failures",
    "explained_missing_contents",
    "find_commits",
    "head_has_commit",
    "is_of_damage",
    "is_of_no_commit",
    "resolve_commits",
]

# What git says of a regular expression that it can't read.
_BAD_PATTERN = re.compile(r"invalid regex|(?:-e option|command line|header), ")
# What git says of a tag of a file or folder where it needs a commit.
_NO_COMMIT = re.compile(r"is a (?:blob|tree), not a commit|expected commit type|non-commit|is not a tree: ")
# What git says of an object that a partial clone does not have.
_MISSING_OBJECT = re.compile(
    r"unable to (?:read|parse|find)|[Cc]annot read|could not (?:fetch|get)|bad (?:file|object|tree object)"
    r"|missing (?:blob|object)|not a tree object|invalid object"
)
# What git says where a crash, or another program, has damaged a git directory.
_DAMAGE = re.compile(
    r"(?m)reference broken|bad object|bad tree object|index file (?:smaller|corrupt)|bad (?:index file )?signature"
    r"|unable to read (?:sha1 file|[0-9a-f]{40})|[Cc]annot read blob|is (?:empty|corrupt)$|missing (?:blob|object)"
    r"|could not get object info|not a git repository: '\.'"
)
# What git says of a name that a tag and a branch have, or other refs.
_AMBIGUOUS_NAME = re.compile(r"refname '(.+)' is ambiguous")
# Before it git takes the first entry.
_REFLOG_START = re.compile(r"(?m)^warning: log for '(.*)' only goes back to (.*\S)")
NAME_A_COMMIT = "Name a commit, or a branch or tag of one: `list_refs` has them."
# The tree with nothing in it, by the length of a hash.
EMPTY_TREES = {
    40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}


def resolve_commits(git: Git, repository: Repository, revision: Revision | Range, cancel: CancelToken) -> list[str]:
    """Return the hashes that `revision` means now, those that a range leaves out with a `^` before them."""
    return git.run(repository, ["rev-parse", "--revs-only", revision.text, "--"], cancel).text.split()


def head_has_commit(git: Git, repository: Repository, cancel: CancelToken) -> bool:
    """Whether HEAD is a commit."""
    return bool(git.find_hash(repository, "HEAD", cancel))


def describe_named_revisions(remarks: Iterable[str]) -> list[str]:
    """Return what git said of the revisions that a caller named: several refs are called so, or a reflog is shorter.

    Of several refs one may be the HEAD of a remote, so there may be no branch or no tag among them.
    """
    text = "\n".join(remarks)
    facts = [
        f"several refs are called {quote(name)}: only a branch is {quote(f'heads/{name}')}, only a tag "
        f"{quote(f'tags/{name}')}"
        for name in dict.fromkeys(_AMBIGUOUS_NAME.findall(text))
    ]
    for name, start in dict.fromkeys(_REFLOG_START.findall(text)):
        facts.append(f"the reflog of {quote(name)} only goes back to {start}")
    return facts


@contextmanager
def explained_failures(
    git: Git, repository: Repository, named: Revision | Range | None, cancel: CancelToken
) -> Generator[None]:
    """Have failures of git in a block say what they mean to the caller who named a revision."""
    try:
        yield
    except GitFailed as failure:
        raise explain_failure(failure, git, repository, named, cancel) from None


def explain_failure(
    failure: GitFailed,
    git: Git,
    repository: Repository,
    named: Revision | Range | RevisionList | None,
    cancel: CancelToken,
) -> Problem:
    """Return what a failure of git means to the caller who named a revision."""
    if is_of_missing_contents(failure, git, repository):
        return missing_contents()
    if "ut of memory" in failure.stderr:
        return TooLarge(
            "This takes git more than the 1 GB of memory that one alone gets.",
            "Name a smaller part of it, by `path` or `rev`.",
        )
    for revision in _list_revisions(named):
        arguments = ["rev-parse", "--verify", "--quiet", revision.text + "^{object}"]
        if not git.run(repository, arguments, cancel, exit_codes=(0, 1, 128)).stdout:
            return _explain_missing_revision(git, repository, revision, cancel)
    if "timed out" in failure.stderr:
        return failure
    message = str(failure).rstrip()
    if is_of_damage(failure):
        return damaged(message)
    if is_of_no_commit(failure):
        return Invalid(message, NAME_A_COMMIT)
    if _BAD_PATTERN.search(failure.stderr):
        return Invalid(message, "Put a backslash before what is meant as it stands, such as `\\(`.")
    return Invalid(message, "`get_status` has the state of the repository.")


def is_of_missing_contents(failure: GitFailed, git: Git, repository: Repository) -> bool:
    """Whether git failed because a partial clone lacks an object."""
    return _MISSING_OBJECT.search(failure.stderr) is not None and git.is_partial(repository)


def is_of_damage(failure: GitFailed) -> bool:
    """Whether git failed because something in the git directory is damaged, or gone."""
    return _DAMAGE.search(failure.stderr) is not None


def is_of_no_commit(failure: GitFailed) -> bool:
    """Whether git failed because a revision is no commit, as a tag of a file or folder."""
    return _NO_COMMIT.search(failure.stderr) is not None


def damaged(message: str) -> Unavailable:
    """Return the problem of a git directory in which something is damaged, or gone."""
    return Unavailable(
        message,
        "Something in the git directory is damaged or gone: the user can see what, with `git fsck`. `.git/logs` has "
        "which commits branches were at.",
    )


@contextmanager
def explained_missing_contents(git: Git, repository: Repository) -> Generator[None]:
    """Have a failure of git in a block say that a partial clone lacks an object, if it does."""
    try:
        yield
    except GitFailed as failure:
        if is_of_missing_contents(failure, git, repository):
            raise missing_contents() from None
        raise


def _list_revisions(named: Revision | Range | RevisionList | None) -> list[Revision]:
    """Return the revisions that a caller named, without sides of a conflict."""
    match named:
        case None:
            return []
        case Range(start=start, end=end):
            revisions = [start, end]
        case RevisionList(items=items):
            revisions = items
        case Revision():
            revisions = [named]
    return [revision for revision in revisions if not revision.is_conflict_side]


def _is_head_damaged(layout: Layout) -> bool:
    """Whether HEAD names no branch, or one that is there, where git finds no commit by it."""
    prefix, _, ref = (read_small_file(os.path.join(layout.git_dir, "HEAD")) or "").partition(" ")
    return prefix != "ref:" or os.path.isfile(os.path.join(layout.common_dir, ref))


def _explain_missing_revision(git: Git, repository: Repository, revision: Revision, cancel: CancelToken) -> Problem:
    if revision.text == "HEAD" and _is_head_damaged(git.layout(repository)):
        return damaged("The branch that `HEAD` names can't be read.")
    if revision.text == "HEAD":
        return NotFound("`HEAD` has no commit yet.", "`get_status` has what is there.")
    output = git.run(repository, ["for-each-ref", "--format=%(refname:short)", "--count=5000"], cancel)
    similar = difflib.get_close_matches(revision.text, output.text.split(), n=3)
    if revision.text.startswith("stash@"):
        fix = "`list_refs` with kind=stashes has those there are."
    elif re.search(r"[~^]", revision.text) and os.path.exists(
        os.path.join(git.layout(repository).common_dir, "shallow")
    ):
        fix = (
            "This is a shallow clone: `run_fetch` with `deepen` gets earlier commits, if the server runs with --fetch."
        )
    elif similar:
        fix = f"Did you mean {' or '.join(map(quote, similar))}?"
    else:
        fix = "`list_refs` has branches and tags."
    return NotFound(f"There is no revision {quote(revision.text)}.", fix)


def find_commits(git: Git, repository: Repository, revision: Revision, cancel: CancelToken) -> list[str]:
    """Return the hash that a revision is, in a list that is empty if it is none."""
    try:
        return resolve_commits(git, repository, revision, cancel)
    except GitFailed:
        return []
