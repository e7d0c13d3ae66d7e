"""Lists branches, tags, remotes, stashes, worktrees and reflogs."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from typing import Literal

from mcp_batteries.errors import Conflict
from mcp_batteries.limits import Cursor, Stop
from mcp_git.engine.history.log import list_reflog
from mcp_git.engine.history.page_position import decode_position
from mcp_git.engine.program.git import Git, GitFailed
from mcp_git.engine.program.output import clip, split_lines
from mcp_git.engine.program.revisions import explain_failure, find_commits, find_hash
from mcp_git.models import Answer, count
from mcp_git.path_quoting import escape_line_breaks
from mcp_git.policy import Policy, Repository, Revision
from mcp_git.remote_addresses import hide_password
from mcp_git.repository_paths import read_small_file

__all__ = ["RefKind", "complete_refs", "find_merge_base", "list_refs"]

RefKind = Literal["branches", "tags", "remotes", "stashes", "worktrees", "reflog"]
_ROW = 160


def list_refs(
    git: Git,
    policy: Policy,
    repository: Repository,
    kind: RefKind,
    name: Revision,
    limit: int,
    cursor: str | None,
    stop: Stop,
) -> Answer:
    """A page of one kind of things that have names.

    Args:
        name: whose reflog.
    """
    scope = [kind, name.text]
    (skip, _), before = decode_position("refs", cursor, scope)
    most = skip + limit + 1
    match kind:
        case "branches":
            rows = _branches(git, repository, most, stop)
        case "tags":
            words = ["for-each-ref", "--sort=-creatordate", f"--count={most}", "refs/tags"]
            form = "%(refname:short)%00%(objectname:short)%00%(creatordate:short)%00%(contents:subject)"
            listed = git.run(repository, [*words, f"--format={form}"], stop)
            rows = [_row(*line.split("\0")) for line in split_lines(listed)]
        case "remotes":
            rows = _remotes(git, repository)
        case "worktrees":
            rows = _worktrees(git, repository, stop)
        case "stashes":
            there = find_hash(git, repository, "refs/stash", stop)
            rows = list_reflog(git, repository, policy.parse_ref("stash"), most, stop) if there else []
        case "reflog":
            rows = list_reflog(git, repository, name, most, stop)
    if before not in ([], [_seen(kind, rows[:skip])]):
        raise Conflict("The list is no longer that of the page before.", "Call again without `cursor`.")
    seen = _seen(kind, rows[: most - 1])
    rows = rows[skip:]
    more = Cursor.encode("refs", [skip + limit, 0, [seen]], scope) if len(rows) > limit else None
    title = f"{kind} of {escape_line_breaks(name.text)}" if kind == "reflog" else kind
    if more or skip:
        title += f" {skip + 1:,}-{skip + len(rows[:limit]):,}"
    return Answer([title if rows else f"no {kind}"], rows[:limit], more)


def _seen(kind: RefKind, rows: Sequence[str]) -> str:
    """A digest of what was shown so far: of names, and of an entry that has but a number also which commit it is."""
    words = 2 if kind in ("reflog", "stashes") else 1
    kept = (" ".join(row.removeprefix("* ").split(" ")[:words]) for row in rows)
    return hashlib.sha256("\n".join(kept).encode("utf-8", "replace")).hexdigest()


def _row(name: str, oid: str, date: str, what: str = "") -> str:
    return clip(escape_line_breaks(f"{name} {oid} {date} {what}").rstrip(), _ROW)


def _branches(git: Git, repository: Repository, most: int, stop: Stop) -> list[str]:
    form = (
        "%(HEAD)%00%(refname:short)%00%(objectname:short)%00%(committerdate:short)%00%(upstream:short)"
        "%00%(upstream:track)%00%(symref:short)%00%(contents:subject)"
    )
    words = ["for-each-ref", "--sort=-committerdate", f"--count={most}", f"--format={form}"]
    rows: list[str] = []
    for line in split_lines(git.run(repository, [*words, "refs/heads", "refs/remotes"], stop)):
        head, name, oid, date, upstream, track, symref, subject = (line.split("\0") + [""] * 8)[:8]
        if symref:
            rows.append(clip(escape_line_breaks(f"{name} -> {symref}"), _ROW))
            continue
        follows = f"[{upstream}{': ' + track.strip('[]') if track else ''}] " if upstream else ""
        rows.append(_row(f"{'* ' if head == '*' else ''}{name}", oid, date, follows + subject))
    return rows


def _remotes(git: Git, repository: Repository) -> list[str]:
    rows: list[str] = []
    for key, value in git.read_allowed_configuration(repository):
        if found := re.fullmatch(r"remote\.(.+)\.(url|pushurl)", key, re.DOTALL):
            pushes = " (push)" if found[2] == "pushurl" else ""
            rows.append(clip(escape_line_breaks(f"{found[1]} {hide_password(value)}{pushes}"), 2 * _ROW))
    return rows


def _worktrees(git: Git, repository: Repository, stop: Stop) -> list[str]:
    layout = git.layout(repository)
    main = os.path.dirname(layout.common_dir) if os.path.basename(layout.common_dir) == ".git" else layout.common_dir

    def at(place: str, name: str) -> str:
        if layout.has_reftable:
            words = ["rev-parse", "--symbolic-full-name", name]
            head = git.run(repository, words, stop, exit_codes=(0, 1, 128)).text.strip()
            if head == name:
                head = git.run(repository, ["rev-parse", name], stop, exit_codes=(0, 1, 128)).text.strip()
        else:
            head = (read_small_file(os.path.join(place, "HEAD")) or "?").removeprefix("ref: ")
        return f"detached at {head[:9]}" if re.fullmatch("[0-9a-f]{40,}", head) else head.removeprefix("refs/heads/")

    is_bare = ("core.bare", "true") in git.read_allowed_configuration(repository)
    rows = [f"{os.path.basename(main)} {'bare' if is_bare else at(layout.common_dir, 'main-worktree/HEAD')}"]
    above = os.path.join(layout.common_dir, "worktrees")
    for name in sorted(os.listdir(above)) if os.path.isdir(above) else ():
        if (pointer := read_small_file(os.path.join(above, name, "gitdir"))) is not None:
            folder = os.path.dirname(os.path.join(above, name, pointer))
            gone = "" if os.path.lexists(folder) else " (its folder is gone)"
            rows.append(f"{os.path.basename(folder)} {at(os.path.join(above, name), f'worktrees/{name}/HEAD')}{gone}")
    return [clip(escape_line_breaks(row), _ROW) for row in rows]


def complete_refs(git: Git, repository: Repository, start: str, stop: Stop) -> Sequence[str]:
    """Branches and tags that begin with `start`."""
    words = ["for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/tags", "refs/remotes"]
    found = git.run(repository, words, stop, max_bytes=1_000_000).text.split("\n")
    return [name for name in found if name.startswith(start) and name]


def find_merge_base(git: Git, repository: Repository, one: Revision, other: Revision, stop: Stop) -> Answer:
    """The commit at which two revisions parted, and how far each went since."""
    try:
        bases = git.run(repository, ["merge-base", "--all", one.text, other.text], stop, exit_codes=(0, 1)).text.split()
        words = ["rev-list", "--left-right", "--count", f"{one.text}...{other.text}", "--"]
        left, right = git.run(repository, words, stop).text.split()
    except GitFailed as failure:
        for revision in (one, other):
            if not find_commits(git, repository, revision, stop):
                raise explain_failure(failure, git, repository, revision, stop) from None
        raise
    away = f"{one.text} has {count(int(left), 'commit')} of its own, {other.text} {int(right):,}"
    if not bases:
        return Answer([f"{one.text} and {other.text} have no commit in common", away])
    shown = git.run(repository, ["log", "--no-walk=unsorted", "--format=%h %cs %aN: %s", *bases[:5], "--"], stop)
    return Answer([away], [clip(escape_line_breaks(line), _ROW) for line in split_lines(shown) if line])
