"""Shared by the commands of this folder: pages of git's output, and the meaning of failures."""

from __future__ import annotations

import difflib
import re
from collections.abc import Generator, Iterable
from typing import Any, cast

from mcp_batteries.errors import Invalid, NotFound, Problem, quote
from mcp_batteries.limits import Cursor, Stop, head
from mcp_git.engine.program import Failed, Git, Output
from mcp_git.policy import Range, Repository, Revision

__all__ = [
    "EMPTY_TREES",
    "clip",
    "commits",
    "explained",
    "has_commits",
    "items",
    "lines_of",
    "oid",
    "position",
    "refuse_foreign",
]

_TOKEN = re.compile(r"\[\^?\]?(?:\[([:.=]).*?\1\]|[^\]])*\]|\\.|\(\?|.", re.DOTALL)
"""A bracket expression, in which a group is not a group, or what stands outside of one."""
_FOREIGN = re.compile(r"\(\?|\[?(?:\\\\|[^\\]|\\[^dD])*?(\\[dD])")
_HASH = re.compile(r"\^?[0-9a-f]{40}(?:[0-9a-f]{24})?")

EMPTY_TREES = {40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904"}
EMPTY_TREES[64] = "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"
"""The tree with nothing in it, by the length of a hash."""


def items(pieces: Iterable[bytes], end: bytes = b"\0") -> Generator[bytes]:
    """What stands between the ends in `pieces`, and behind the last one if there is anything."""
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(end)
        yield from whole
    if rest:
        yield rest


def lines_of(output: Output) -> list[str]:
    """The lines that git printed: what else ends a line for Python may stand in a subject."""
    return output.text.removesuffix("\n").split("\n") if output.out else []


def clip(text: str, most: int) -> str:
    """`text`, cut to `most` bytes of UTF-8."""
    if len(text) <= most and text.isascii():
        return text
    return text if head(text, most) == text else head(text, most - 3) + "…"


def position(kind: str, cursor: str | None, scope: Any) -> tuple[list[int], list[str]]:
    """The numbers and the hashes in a cursor: whoever can read one can make one, so nothing else comes out of it.

    Raises:
        Invalid: it is not of this listing.
    """
    if cursor is None:
        return [0, 0], []
    try:
        one, other, hashes = cast("list[Any]", Cursor.decode(kind, cursor, scope))
        numbers, words = [int(one), int(other)], [str(item) for item in hashes]
    except (TypeError, ValueError):
        numbers, words = [-1], []
    if min(numbers) >= 0 and all(map(_HASH.fullmatch, words)):
        return numbers, words
    raise Invalid("The `cursor` is not one of this listing.", "Call again without `cursor`.")


def refuse_foreign(pattern: str) -> None:
    """Return unless a pattern has what other languages know: for git it would be another character, and find nothing.

    Raises:
        Invalid: it has.
    """
    for token in _TOKEN.finditer(pattern):
        if found := _FOREIGN.match(token[0]):
            fix = "Write `[0-9]` for a digit, and groups without `?`."
            raise Invalid(f"A POSIX regular expression has no `{found[1] or found[0]}`.", fix)


def commits(git: Git, repository: Repository, revision: Revision | Range, stop: Stop) -> list[str]:
    """The hashes that `revision` means now, those that a range leaves out with a `^` before them."""
    return git.run(repository, ["rev-parse", "--revs-only", revision.text, "--"], stop).text.split()


def has_commits(git: Git, repository: Repository, stop: Stop) -> bool:
    """Whether HEAD is a commit."""
    return bool(oid(git, repository, "HEAD", stop))


def oid(git: Git, repository: Repository, name: str, stop: Stop) -> str:
    """The hash of what a name stands for now; empty where it stands for nothing."""
    return git.run(repository, ["rev-parse", "--verify", "--quiet", name], stop, fine=(0, 1)).text.strip()


def explained(failure: Failed, git: Git, repository: Repository, named: Revision | Range | None, stop: Stop) -> Problem:
    """What a failure of git means to the caller who named a revision."""
    revisions = () if named is None else (named.start, named.end) if isinstance(named, Range) else (named,)
    for revision in revisions:
        if revision.stage:
            continue
        words = ["rev-parse", "--verify", "--quiet", revision.text + "^{object}"]
        if git.run(repository, words, stop, fine=(0, 1, 128)).out:
            continue
        if revision.text == "HEAD":
            return NotFound("`HEAD` has no commit yet.", "`get_status` has what is there.")
        listed = git.run(repository, ["for-each-ref", "--format=%(refname:short)", "--count=5000"], stop)
        near = difflib.get_close_matches(revision.text, listed.text.split(), n=3)
        fix = f"Did you mean {' or '.join(map(quote, near))}?" if near else "`list_refs` has branches and tags."
        if revision.text.startswith("stash@"):
            fix = "`list_refs` with kind=stashes has those there are."
        return NotFound(f"There is no revision {quote(revision.text)}.", fix)
    if "timed out" in failure.said:
        return failure
    if re.search(r"invalid regex|(?:-e option|command line|header), ", failure.said):
        return Invalid(str(failure).rstrip(), "Put a backslash before what is meant as it stands, such as `\\(`.")
    return Invalid(str(failure).rstrip(), "`get_status` has the state of the repository.")
