"""Lists commits, each in a line of at most 90 bytes."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcp_batteries.errors import Conflict, Invalid
from mcp_batteries.limits import Cursor, Stop
from mcp_git.engine.history.blame import resolve_lines
from mcp_git.engine.history.dates import to_git_date
from mcp_git.engine.history.missing_paths import refuse_missing_path
from mcp_git.engine.history.page_position import decode_position
from mcp_git.engine.history.patterns import refuse_foreign_syntax
from mcp_git.engine.program.git import Git, GitFailed
from mcp_git.engine.program.output import clip, split_lines, split_records
from mcp_git.engine.program.revisions import explain_failure, head_has_commit, resolve_commits
from mcp_git.models import Answer
from mcp_git.path_quoting import escape_line_breaks
from mcp_git.policy import LineRange, Range, Repository, RepositoryPath, Revision
from mcp_git.remote_addresses import hide_password

__all__ = ["LogQuery", "describe_head", "list_commits", "list_reflog"]

_ROW = 89
"""Bytes of a row, without its line end."""
_AUTHOR = 12
_REFS = 28
"""Bytes of the refs at a commit: those of a remote with many branches would leave no room for the subject."""
_EXPRESSION = re.compile(r"[\^$|*]|\.[*+?]|\[.+\]|\(.*\)")
"""What stands in texts too, but may have been meant otherwise."""
_DATE, _BY = 1, 2
"""Places among the fields of a commit, behind its whole hash."""
_FORMAT = "%x01%H%x00%h%x00%cs%x00%aN%x00%D%x00%P%x00%s"


@dataclass(frozen=True, slots=True)
class LogQuery:
    """Which commits.

    Attributes:
        text: only those that add or remove it; with `regex` those with a changed line that matches.
        regex: whether text, author and message are regular expressions.
        every: of all branches, tags and remotes.
        lines: only those that changed these lines of the file, or the function.
    """

    revision: Revision | Range
    place: RepositoryPath
    author: str | None = None
    message: str | None = None
    text: str | None = None
    is_regex: bool = False
    since: str | None = None
    until: str | None = None
    all_branches: bool = False
    graph: bool = False
    lines: LineRange | None = None

    @property
    def words(self) -> list[str]:
        found = ["--all"] * self.all_branches + ["--graph"] * self.graph
        for option, value in (
            ("--author", self.author), ("--grep", self.message),
            ("--since", self.since and to_git_date(self.since, "since")),
            ("--until", self.until and to_git_date(self.until, "until", to_end=True)),
        ):  # fmt: skip
            if value:
                found.append(f"{option}={value}")
        if self.author or self.message:
            found += ["--regexp-ignore-case", "--extended-regexp" if self.is_regex else "--fixed-strings"]
        if self.text:
            found.append(f"{'-G' if self.is_regex else '-S'}{self.text}")
        return found

    @property
    def begins_at_its_tip(self) -> bool:
        """Whether the first commit that is found is the one from which all are reached."""
        return isinstance(self.revision, Revision) and not (self.place.text or self.words)

    @property
    def scope(self) -> list[Any]:
        lines = [] if self.lines is None else [self.lines.first, self.lines.last, self.lines.function]
        return [self.revision.text, self.place.text, *self.words, *lines]


def list_commits(
    git: Git, repository: Repository, wanted: LogQuery, limit: int, cursor: str | None, stop: Stop
) -> Answer:
    """A page of commits; the pages behind it go on from the commits that the first one began with."""
    if any(
        value and "\0" in value for value in (wanted.author, wanted.message, wanted.text, wanted.since, wanted.until)
    ):
        raise Invalid("A `text` to look for holds no NUL.", "Leave it out.")
    for pattern in (wanted.author, wanted.message, wanted.text) if wanted.is_regex else ():
        refuse_foreign_syntax(pattern or "")
    (skip, _), tips = decode_position("log", cursor, wanted.scope)
    now = _tips(git, repository, stop) if wanted.all_branches else ""
    if now:  # There is no room for the tips of all.
        if tips not in ([], [now]):
            raise Conflict("The branches are no longer those of the page before.", "Call again without `cursor`.")
        tips = []
    path = [wanted.place.text] if wanted.place.text else []
    starts = ["HEAD"] * (not wanted.all_branches) if wanted.revision.text == "HEAD" else [wanted.revision.text]
    # Of commits that git finds by their changes it skips those it has not looked at yet.
    ahead = skip if wanted.text else 0
    words = ["log", f"--format={_FORMAT}", f"--max-count={ahead + limit + 1}", f"--skip={skip - ahead}", *wanted.words]
    of_lines = ""
    if wanted.lines is not None:
        last = wanted.revision.end if isinstance(wanted.revision, Range) else wanted.revision
        numbers, of_lines = resolve_lines(git, repository, wanted.place, last, wanted.lines, stop, *tips[:1])
        words += [f"-L{numbers}:{wanted.place.text}", "--no-patch"]
        path = []
    drawn: list[tuple[str, list[str]]] = []
    seen: dict[str, list[str]] = {}
    found = -ahead
    try:
        named = [*(tips or starts), "--", *path]
        given = b""
        if plain := not (wanted.words or of_lines) and not re.search("[\r\n]", wanted.place.text):
            # So that the words are the same whatever is asked for.
            words, given = [*words, "--stdin"], os.fsencode("\n".join(named) + "\n")
        else:
            words += named
        with git.stream(repository, words, stop, stdin=given, is_repeated=plain and not skip) as pieces:
            lines = split_records(pieces, b"\n")
            for line in lines:
                graph, mark, fields = line.decode("utf-8", "replace").partition("\x01")
                found += bool(mark)
                oid, _, fields = fields.partition("\0")
                if found == 1 and not tips and wanted.begins_at_its_tip:
                    tips = [oid]
                if found > limit:
                    break
                if ahead and found < 1:
                    continue
                parts = fields.split("\0", 5)
                drawn.append((graph, parts))
                if len(parts) == 6:
                    seen[oid] = parts
            # What all commits have alike is told once.
            dates, authors = (
                {parts[at] for parts in seen.values()} if len(seen) > 1 else set[str]() for at in (_DATE, _BY)
            )
            rows = [_row(graph, parts, len(dates) != 1, len(authors) != 1) for graph, parts in drawn]
            # To the end, which came meanwhile: git that is left before it has to be killed.
            for _ in lines:
                pass
        more = None
        if found > limit:
            tips = tips or ([now] if now else resolve_commits(git, repository, wanted.revision, stop))
            more = Cursor.encode("log", [skip + limit, 0, tips], wanted.scope)
    except GitFailed as failure:
        raise explain_failure(failure, git, repository, wanted.revision, stop) from None
    found = max(found, 0)
    if path and not found and not skip:
        _refuse_unknown(git, repository, wanted, stop)
    first, last = skip + 1, skip + min(found, limit)
    what = f"commits {first:,}-{last:,}" if found else "no more commits" if skip else "no commits"
    where = "all branches" if wanted.all_branches else escape_line_breaks(wanted.revision.text)

    def draws() -> dict[str, Any]:
        linear = not (wanted.place.text or set(wanted.words) - {"--all"})
        with_uri = wanted.begins_at_its_tip and wanted.revision.text == "HEAD" and not skip
        uri = {"uri": repository.uri("log")} if with_uri else {}
        return {"commits": _for_view(seen), "drawn": wanted.graph or linear, **uri}

    facts = [f"{what} of {where}" + (f", {wanted.place.display}{of_lines}" if wanted.place.text else "")]
    facts += [f"all of {date}" for date in dates if len(dates) == 1]
    facts += [f"all by {escape_line_breaks(clip(author, 40))}" for author in authors if len(authors) == 1]
    if not (found or skip or wanted.is_regex) and _EXPRESSION.search(f"{wanted.author or ''}{wanted.message or ''}"):
        facts.append("`author` and `message` were looked for as they stand: for a regular expression set `regex`")
    return Answer(facts, rows, more, draws)


def _tips(git: Git, repository: Repository, stop: Stop) -> str:
    """A digest of HEAD and of all refs."""
    listed = git.run(repository, ["show-ref", "--head"], stop, max_bytes=1 << 30, exit_codes=(0, 1)).stdout
    return hashlib.sha256(listed).hexdigest()


def _for_view(seen: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Of each commit hash, parents, date, author, refs and subject."""
    found: list[list[str]] = []
    for name, date, author, refs, parents, subject in seen.values():
        # Git takes long to shorten a hash, and has most of these before it.
        above = (seen[oid][0] if oid in seen else oid[: len(name)] for oid in parents.split())
        found.append([name, " ".join(above), date, clip(author, 40), clip(refs, 200), clip(subject, 200)])
    return found


def _refuse_unknown(git: Git, repository: Repository, wanted: LogQuery, stop: Stop) -> None:
    """Return unless the path is neither here nor was at any time: what was deleted still has a history.

    Raises:
        NotFound: it never was.
    """
    revision = wanted.revision
    named = (revision.start.text, revision.end.text) if isinstance(revision, Range) else (revision.text,)
    words = ["log", "--format=%H", "--max-count=1", *["--all"] * wanted.all_branches, *named, "--", wanted.place.text]
    # Without a condition the whole history of it was just looked through.
    narrowed = isinstance(revision, Range) or set(wanted.words) - {"--all", "--graph"}
    if narrowed and git.run(repository, words, stop, exit_codes=(0, 128)).stdout:
        return
    refuse_missing_path(git, repository, wanted.place, named, stop)


def _row(drawn: str, fields: Sequence[str], dated: bool = True, signed: bool = True) -> str:
    if len(fields) != 6:
        return clip(drawn.rstrip(), _ROW)
    name, date, author, refs, _, subject = fields
    marks = f"({_named(refs.replace('HEAD -> ', '*').split(', '))}) " if refs else ""
    who = " ".join([date] * dated + [clip(author, _AUTHOR)] * signed)
    return clip(escape_line_breaks(f"{drawn}{name} {who}{': ' * bool(who)}{marks}{subject}"), _ROW)


def _named(refs: Sequence[str]) -> str:
    """As many of `refs` as there is room for, one at least, and how many more there are."""
    kept = [clip(refs[0], _REFS)]
    for ref in refs[1:]:
        if len(", ".join([*kept, ref]).encode("utf-8", "replace")) > _REFS:
            break
        kept.append(ref)
    more = len(refs) - len(kept)
    return ", ".join([*kept, *[f"{more} more"] * bool(more)])


def describe_head(git: Git, repository: Repository, stop: Stop) -> Answer:
    """The branch that HEAD is, and its commit."""
    branch = git.run(
        repository, ["symbolic-ref", "--quiet", "--short", "HEAD"], stop, exit_codes=(0, 1, 128)
    ).text.strip()
    words = ["log", f"--format={_FORMAT}", "--max-count=1", "HEAD", "--"]
    found = git.run(repository, words, stop).text.rstrip("\n") if head_has_commit(git, repository, stop) else ""
    where = f"HEAD is {escape_line_breaks(branch)}" if branch else "HEAD is detached"
    return Answer([where], [_row("", found.partition("\0")[2].split("\0", 5))] if found else ["no commits yet"])


def list_reflog(git: Git, repository: Repository, name: Revision, most: int, stop: Stop) -> list[str]:
    """Where a branch or HEAD was before, newest first: the revision that leads there, and what moved it."""
    words = ["log", "--walk-reflogs", "--format=%h%x00%gd%x00%cs%x00%gs", f"--max-count={most}"]
    rows: list[str] = []
    try:
        listed = git.run(repository, [*words, name.text, "--"], stop)
    except GitFailed as failure:
        raise explain_failure(failure, git, repository, name, stop) from None
    for line in split_lines(listed):
        oid, selector, date, what = (line.split("\0") + [""] * 3)[:4]
        rows.append(clip(escape_line_breaks(f"{selector} {oid} {date} {hide_password(what)}"), 2 * _ROW))
    return rows
