"""Lists branches, tags, remotes, stashes, worktrees and reflogs."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.cursors import Cursor
from mcp_batteries.errors import Conflict, Invalid, quote
from mcp_batteries.server.calling.results import is_answering_script
from mcp_git.engine.history.commit_rows import (
    SCRIPT_HASH_DIGITS,
    format_raw_day,
    format_time,
    replace_placeholder,
    shorten_hash,
)
from mcp_git.engine.history.cut_history import describe_boundary, list_boundary
from mcp_git.engine.history.log import RefRow, list_reflog
from mcp_git.engine.history.page_position import decode_position
from mcp_git.engine.program.git import Git, GitFailed
from mcp_git.engine.program.output import clip, split_lines
from mcp_git.engine.program.revisions import describe_named_revisions, explain_failure, explained_failures
from mcp_git.models import Answer, Table, count
from mcp_git.path_quoting import escape_hidden, escape_line_breaks
from mcp_git.policy import Repository, Revision, parse_ref, symmetric_range
from mcp_git.remote_addresses import hide_password
from mcp_git.repository_paths import Layout, read_small_file

__all__ = ["RefKind", "RefQuery", "complete_refs", "find_merge_base", "list_refs"]

RefKind = Literal["branches", "tags", "remotes", "stashes", "worktrees", "reflog"]

_MAX_ROW_BYTES = 160
_MAX_MERGE_BASES = 5
# In a pattern: each doubles the patterns for git, which then takes seconds for thousands of names that hardly differ.
_MAX_STARS = 4
_STAR = re.compile(r"(?<!\*)\*(?!\*)")
# Beside anything but a slash, where they mean no more than one of them.
_STARS_IN_NAME = re.compile(r"(?<=[^/*])\*{2,}|\*{2,}(?=[^/*])")
_MAX_COMPLETIONS_BYTES = 1_000_000
_BRANCH_FORMAT = (
    "%(HEAD)%00%(refname:short)%00%(HASH)%00%(committerdate:raw)%00%(upstream:short)"
    "%00%(upstream:track)%00%(symref:short)%00%(contents:subject)"
)
# Of an annotated tag the commit, which is what other answers have.
_TAG_FORMAT = (
    "%(refname:short)%00%(if)%(*objectname)%(then)%(*HASH)%(else)%(HASH)%(end)%00%(creatordate:raw)"
    "%00%(contents:subject)"
)
_COLUMNS: Mapping[RefKind, Sequence[str]] = {
    "branches": ["name", "hash", "date", "subject", "upstream", "ahead", "behind", "is_current"],
    "tags": ["name", "hash", "date", "subject"],
    "remotes": ["name", "url", "is_push"],
    "stashes": ["name", "hash", "date", "subject"],
    "reflog": ["name", "hash", "date", "subject"],
}
_DISTANCE = re.compile(r"(ahead|behind) (\d+)")
_HASH = re.compile("[0-9a-f]{40,}")


@dataclass(frozen=True, slots=True)
class RefQuery:
    """Says which refs are listed.

    Attributes:
        name: whose reflog.
        pattern: of the names of branches or tags, with `*`; empty for all.
        contains: only branches or tags from which this commit is reached.
        merged, not_merged: only those that are reached from this revision, or are not.
    """

    kind: RefKind
    name: Revision
    pattern: str = ""
    contains: Revision | None = None
    merged: Revision | None = None
    not_merged: Revision | None = None

    def validate(self) -> None:
        """Check that its conditions are of what has such.

        Raises:
            Invalid: they are of branches and tags, and others are listed, or the pattern can't be used.
        """
        if "\0" in self.pattern:
            raise Invalid("A `pattern` holds no NUL.", "Leave it out.")
        if (self.pattern or self.options) and self.kind not in ("branches", "tags"):
            conditions = "`pattern`, `contains`, `merged` and `not_merged`"
            raise Invalid(f"{conditions} are of branches and tags, not of {self.kind}.", "Leave them out.")
        if len(_STAR.findall(_STARS_IN_NAME.sub("*", self.pattern))) > _MAX_STARS:
            raise Invalid(f"{quote(self.pattern)} has more than {_MAX_STARS} stars.", "Leave some out.")

    @property
    def options(self) -> list[str]:
        """The options of `for-each-ref` for its conditions."""
        revisions = {"contains": self.contains, "merged": self.merged, "no-merged": self.not_merged}
        return [f"--{option}={revision.text}" for option, revision in revisions.items() if revision]

    @property
    def named_revision(self) -> Revision | None:
        """A revision of its conditions, to explain a failure."""
        return self.contains or self.merged or self.not_merged

    def patterns(self, *folders: str) -> list[str]:
        """Return the patterns of refs below these folders.

        One may begin with a folder, as names in lists do where another ref is called alike.
        """
        if not self.pattern:
            return [folder.removesuffix("/*") for folder in folders]
        prefixes = [folder.split("/")[1] for folder in folders]
        if self.pattern.partition("/")[0] in prefixes:
            folders = (*folders, "refs")
        patterns = _pass_slashes(self.pattern)
        return [f"{folder}/{pattern}" for folder in folders for pattern in patterns]

    @property
    def scope(self) -> list[str]:
        """What the cursors of this list are bound to."""
        return [self.kind, self.name.text, self.pattern, *self.options]


def _pass_slashes(pattern: str) -> list[str]:
    """Return the patterns by which `for-each-ref`, whose `*` stops at a slash, lists what `git branch --list` does."""
    first, *others = _STAR.split(_STARS_IN_NAME.sub("*", pattern))
    patterns = [first]
    for part in others:
        patterns = [f"{start}{star}{part}" for start in patterns for star in ("*", "*/**/*")]
    return patterns


def list_refs(
    git: Git, repository: Repository, query: RefQuery, limit: int, cursor: str | None, cancel: CancelToken
) -> Answer:
    """Return a page of one kind of things that have names."""
    query.validate()
    kind = query.kind
    position = decode_position("refs", cursor, query.scope)
    skip = position.skip
    # One row more tells whether there is another page.
    with explained_failures(git, repository, query.named_revision, cancel):
        rows = _list_rows(git, repository, query, skip + limit + 1, cancel)
    if position.hashes not in ([], [_digest_rows(kind, rows[:skip])]):
        raise Conflict("The list is no longer that of the page before.", "Call again without `cursor`.")
    page = rows[skip : skip + limit]
    next_cursor = None
    if len(rows) > skip + limit:
        digest = _digest_rows(kind, rows[: skip + limit])
        next_cursor = Cursor.encode("refs", [skip + limit, 0, [digest]], query.scope)
    table = None
    if kind in _COLUMNS:
        table = partial(Table, _COLUMNS[kind], [row.values for row in page])
    lines = [row.line for row in page]
    if not page:
        return Answer([f"no {kind}"], lines, next_cursor, table=table)
    title = f"{kind} of {escape_line_breaks(query.name.text)}" if kind == "reflog" else kind
    if next_cursor or skip:
        title += f" {skip + 1:,}-{skip + len(page):,}"
    return Answer([title], lines, next_cursor, table=table)


def _list_rows(git: Git, repository: Repository, query: RefQuery, limit: int, cancel: CancelToken) -> list[RefRow]:
    match query.kind:
        case "branches":
            return _list_branches(git, repository, query, limit, cancel)
        case "tags":
            return _list_tags(git, repository, query, limit, cancel)
        case "remotes":
            return _list_remotes(git, repository)
        case "worktrees":
            return _list_worktrees(git, repository, cancel)
        case "stashes":
            if not git.find_hash(repository, "refs/stash", cancel):
                return []
            return list_reflog(git, repository, parse_ref("stash"), limit, cancel)
        case "reflog":
            return list_reflog(git, repository, query.name, limit, cancel)


def _digest_rows(kind: RefKind, rows: Sequence[RefRow]) -> str:
    """Return a digest of what was shown so far: of names, and where an entry has but a number, of its commit too."""
    word_count = 2 if kind in ("reflog", "stashes") else 1
    identities = [" ".join(row.line.removeprefix("* ").split(" ")[:word_count]) for row in rows]
    return hashlib.sha256("\n".join(identities).encode("utf-8", "replace")).hexdigest()


def _format_row(*words: str) -> str:
    return clip(escape_line_breaks(" ".join(words)).rstrip(), _MAX_ROW_BYTES)


class _Branch(NamedTuple):
    """What git prints of a branch, in the order of `_BRANCH_FORMAT`, with `%(HASH)` as `_with_hash` puts it.

    Attributes:
        date: in seconds, with its zone.
    """

    head_mark: str
    name: str
    oid: str
    date: str
    upstream: str
    track: str
    symbolic_target: str
    subject: str

    @property
    def row(self) -> RefRow:
        values = [
            escape_hidden(self.name),
            self.oid,
            format_time(self.date.partition(" ")[0]),
            escape_hidden(self.subject),
            escape_hidden(self.upstream),
            *self._distances,
            self.head_mark == "*",
        ]
        return RefRow(self._line, values)

    @property
    def _distances(self) -> list[int | None]:
        """How many commits it is ahead and behind; unknown where it follows nothing, or what is gone."""
        if not self.upstream or self.track == "[gone]":
            return [None, None]
        distances = dict(_DISTANCE.findall(self.track))
        return [int(distances.get("ahead", 0)), int(distances.get("behind", 0))]

    @property
    def _line(self) -> str:
        if self.symbolic_target:
            return clip(escape_line_breaks(f"{self.name} -> {self.symbolic_target}"), _MAX_ROW_BYTES)
        name = f"* {self.name}" if self.head_mark == "*" else self.name
        return _format_row(name, self.oid, format_raw_day(self.date), f"{self._upstream_prefix}{self.subject}")

    @property
    def _upstream_prefix(self) -> str:
        """The upstream, and how far it is from it, in brackets before the subject."""
        if not self.upstream:
            return ""
        if not self.track:
            return f"[{self.upstream}] "
        return f"[{self.upstream}: {self.track.strip('[]')}] "


def _with_hash(row_format: str) -> str:
    """Return the format of a row with the hash as long as the reader needs it."""
    if is_answering_script():
        return row_format.replace("HASH)", f"objectname:short={SCRIPT_HASH_DIGITS})")
    return row_format.replace("HASH)", "objectname:short)")


def _list_branches(git: Git, repository: Repository, query: RefQuery, limit: int, cancel: CancelToken) -> list[RefRow]:
    arguments = ["for-each-ref", "--sort=-committerdate:raw", f"--count={limit}"]
    arguments.append(f"--format={_with_hash(_BRANCH_FORMAT)}")
    arguments += [*query.options, *query.patterns("refs/heads", "refs/remotes/*")]
    if "/" in query.pattern or "*" in query.pattern:
        # The list shows a remote's branch under the name of its remote, so a pattern may begin with that too.
        arguments += query.patterns("refs/remotes")
    output = git.run(repository, arguments, cancel)
    field_count = len(_Branch._fields)
    rows: list[RefRow] = []
    for line in split_lines(output):
        fields = line.split("\0")[:field_count]
        fields += [""] * (field_count - len(fields))
        rows.append(_Branch(*fields).row)
    return rows


def _list_tags(git: Git, repository: Repository, query: RefQuery, limit: int, cancel: CancelToken) -> list[RefRow]:
    """Return the tags, newest first; those with a commit by name and date, from the first one that has it."""
    order = "-creatordate:raw"
    if query.contains is not None:
        order = "creatordate:raw"
    arguments = ["for-each-ref", f"--sort={order}", f"--count={limit}", f"--format={_with_hash(_TAG_FORMAT)}"]
    output = git.run(repository, [*arguments, *query.options, *query.patterns("refs/tags")], cancel)
    rows: list[RefRow] = []
    for line in split_lines(output):
        name, oid, date, subject = line.split("\0", 3)
        # A tag of what is no commit may have no date.
        day = format_raw_day(date) if date else ""
        words = [name, oid, day, subject] if query.contains is None else [name, day]
        values = [escape_hidden(name), oid, format_time(date.partition(" ")[0]), escape_hidden(subject)]
        rows.append(RefRow(_format_row(*words), values))
    return rows


def _list_remotes(git: Git, repository: Repository) -> list[RefRow]:
    rows: list[RefRow] = []
    for key, value in git.read_allowed_configuration(repository):
        match = re.fullmatch(r"remote\.(.+)\.(url|pushurl)", key, re.DOTALL)
        if match:
            address = hide_password(value)
            is_push = match[2] == "pushurl"
            line = f"{match[1]} {address}"
            if is_push:
                line += " (push)"
            values = [escape_hidden(match[1]), escape_hidden(address), is_push]
            rows.append(RefRow(clip(escape_line_breaks(line), 2 * _MAX_ROW_BYTES), values))
    return rows


def _list_worktrees(git: Git, repository: Repository, cancel: CancelToken) -> list[RefRow]:
    layout = git.layout(repository)
    rows = [_describe_main_worktree(git, repository, layout, cancel)]
    parent = os.path.join(layout.common_dir, "worktrees")
    names = sorted(os.listdir(parent)) if os.path.isdir(parent) else []
    for name in names:
        git_dir = os.path.join(parent, name)
        pointer = read_small_file(os.path.join(git_dir, "gitdir"))
        if pointer is None:
            continue
        folder = os.path.dirname(os.path.join(git_dir, pointer))
        position = _describe_position(git, repository, layout, git_dir, f"worktrees/{name}/HEAD", cancel)
        row = f"{os.path.basename(folder)} {position}"
        if not os.path.lexists(folder):
            row += " (its folder is gone)"
        rows.append(row)
    return [RefRow(clip(escape_line_breaks(row), _MAX_ROW_BYTES), []) for row in rows]


def _describe_main_worktree(git: Git, repository: Repository, layout: Layout, cancel: CancelToken) -> str:
    folder = layout.common_dir
    if os.path.basename(folder) == ".git":
        folder = os.path.dirname(folder)
    if ("core.bare", "true") in git.read_allowed_configuration(repository):
        position = "bare"
    else:
        position = _describe_position(git, repository, layout, layout.common_dir, "main-worktree/HEAD", cancel)
    return f"{os.path.basename(folder)} {position}"


def _describe_position(
    git: Git, repository: Repository, layout: Layout, git_dir: str, head_name: str, cancel: CancelToken
) -> str:
    """Return the branch on which a worktree is, or the commit at which it is detached."""
    if layout.has_reftable:
        head = _read_head_of_reftable(git, repository, head_name, cancel)
    else:
        head = (read_small_file(os.path.join(git_dir, "HEAD")) or "?").removeprefix("ref: ")
    if _HASH.fullmatch(head):
        return f"detached at {shorten_hash(head)}"
    return head.removeprefix("refs/heads/")


def _read_head_of_reftable(git: Git, repository: Repository, name: str, cancel: CancelToken) -> str:
    def ask(*arguments: str) -> str:
        return git.run(repository, arguments, cancel, exit_codes=(0, 1, 128)).text.strip()

    return ask("symbolic-ref", "--quiet", name) or ask("rev-parse", "--verify", "--quiet", name)


def complete_refs(git: Git, repository: Repository, start: str, cancel: CancelToken) -> list[str]:
    """Return the branches and tags that begin with `start`."""
    arguments = ["for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/tags", "refs/remotes"]
    names = git.run(repository, arguments, cancel, max_bytes=_MAX_COMPLETIONS_BYTES).text.split("\n")
    return [name for name in names if name.startswith(start) and name]


def find_merge_base(git: Git, repository: Repository, one: Revision, other: Revision, cancel: CancelToken) -> Answer:
    """Return the commit at which two revisions parted, and how far each went since."""
    try:
        arguments = ["merge-base", "--all", one.text, other.text]
        output = git.run(repository, arguments, cancel, exit_codes=(0, 1))
        arguments = ["rev-list", "--left-right", "--count", f"{one.text}...{other.text}", "--"]
        own_count, other_count = git.run(repository, arguments, cancel).text.split()
    except GitFailed as failure:
        raise explain_failure(failure, git, repository, symmetric_range(one, other), cancel) from None
    bases = output.text.split()
    distance = f"{one.text} has {count(int(own_count), 'commit')} of its own, {other.text} {int(other_count):,}"
    ambiguity = describe_named_revisions([output.stderr])
    boundary = list_boundary(git.layout(repository))
    if boundary:
        distance += f"; {describe_boundary(boundary, bases)}"
    if not bases:
        return Answer([f"{one.text} and {other.text} have no commit in common", distance, *ambiguity])
    arguments = ["log", "--no-walk=unsorted", "--format=%h%x00%cs%x00%aN%x00%s"]
    if is_answering_script():
        arguments.append(f"--abbrev={SCRIPT_HASH_DIGITS}")
    arguments += [*bases[:_MAX_MERGE_BASES], "--"]
    rows: list[str] = []
    for line in split_lines(git.run(repository, arguments, cancel)):
        oid, date, author, subject = line.split("\0", 3)
        rows.append(_format_row(oid, replace_placeholder(date), f"{replace_placeholder(author)}: {subject}"))
    return Answer([distance, *ambiguity], rows)
