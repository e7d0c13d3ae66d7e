"""Reads, lists and searches the files of any commit, or of a side of a conflict."""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from mcp_batteries.clipping import DEFAULT_PAGE_BYTES
from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.cursors import Cursor
from mcp_batteries.errors import Invalid, NotFound, TooLarge, Unavailable, quote
from mcp_batteries.server.calling.results import group_by_folder
from mcp_git.engine.history.missing_paths import refuse_missing_path, suggest_path
from mcp_git.engine.history.page_position import decode_position
from mcp_git.engine.history.patterns import refuse_foreign_syntax
from mcp_git.engine.program.git import Git, GitFailed
from mcp_git.engine.program.output import clip, select_options, split_records
from mcp_git.engine.program.revisions import (
    damaged,
    describe_named_revisions,
    explain_failure,
    explained_failures,
    is_of_damage,
    resolve_commits,
)
from mcp_git.models import Answer, count
from mcp_git.path_quoting import escape_line_breaks, quote_path
from mcp_git.policy import Repository, RepositoryPath, Revision

__all__ = ["TextSearch", "complete_paths", "list_files", "read_contents", "read_file", "search_text"]

_MAX_LINE_BYTES = 2000
_MAX_MATCH_BYTES = 300
_MAX_RESOURCE_BYTES = 8 * 1024 * 1024
# What tells the kinds of entries of a folder apart, behind their names.
_ENTRY_ENDINGS = {b"tree": "/", b"commit": " (submodule)"}
_LINK_MODE = b"120000"
_SUBMODULE_MODE = b"160000"
# A NUL among so many bytes at the beginning makes a file a binary one, as for git.
_SNIFFED_BYTES = 8000


def _name_object(revision: Revision, path: RepositoryPath) -> str:
    return f"{revision.text}:{path.text}"


@dataclass
class _FilePage:
    """Lines of a file as they are read.

    Attributes:
        line_count: how many lines were seen, with those before the page.
        is_cut: whether there are more lines, or may be.
    """

    lines: list[str] = field(default_factory=list[str])
    line_count: int = 0
    is_cut: bool = False
    is_binary: bool = False

    def read(self, lines: Iterable[bytes], first: int, last: int | None) -> None:
        """Read the lines from `first` to `last`, as many as a page holds."""
        seen_bytes = 0
        remaining_bytes = DEFAULT_PAGE_BYTES
        for line in lines:
            self.line_count += 1
            if b"\0" in line and seen_bytes < _SNIFFED_BYTES:
                self.is_binary = True
                return
            seen_bytes += len(line) + 1
            if self.line_count < first:
                continue
            # A character has at most four bytes, so that what is left is still too long to be shown whole.
            shown = line[: _MAX_LINE_BYTES + 4]
            text = clip(shown.decode("utf-8", "replace").rstrip("\r"), _MAX_LINE_BYTES)
            remaining_bytes -= len(text.encode("utf-8", "replace")) + 1
            is_full = remaining_bytes < 0 and self.lines
            if is_full or (last is not None and self.line_count > last):
                self.is_cut = True
                return
            self.lines.append(text)


def read_file(
    git: Git,
    repository: Repository,
    revision: Revision,
    path: RepositoryPath,
    first: int,
    last: int | None,
    cancel: CancelToken,
) -> Answer:
    """Return the lines of a file from `first` on, at most a page.

    Raises:
        Invalid: the last line is before the first.
    """
    if last is not None and last < first:
        raise Invalid("`end_line` is before `start_line`.", "Exchange them.")
    page = _FilePage()
    remarks: list[str] = []
    arguments = ["cat-file", "blob", _name_object(revision, path)]
    try:
        with git.stream(repository, arguments, cancel, remarks=remarks) as pieces:
            page.read(split_records(pieces, b"\n"), first, last)
    except GitFailed as failure:
        raise _explain_failure(failure, git, repository, revision, path, cancel) from None
    if page.is_binary:
        return Answer([f"{path.display} at {revision.text} is binary", "its bytes are not shown"])
    facts = _describe_page(page, f"{path.display} at {escape_line_breaks(revision.text)}", first)
    # What a link leads to is one line.
    if page.line_count == 1 and _is_link(git, repository, revision, path, cancel):
        facts.append("a link: its text is the path that it leads to")
    return Answer([*facts, *describe_named_revisions(remarks)], page.lines)


def _is_link(git: Git, repository: Repository, revision: Revision, path: RepositoryPath, cancel: CancelToken) -> bool:
    arguments = ["ls-tree", "-z", revision.text, "--", path.text]
    output = git.run(repository, arguments, cancel, exit_codes=(0, 128))
    return output.stdout.startswith(_LINK_MODE + b" ")


def _describe_page(page: _FilePage, title: str, first: int) -> list[str]:
    end = first + len(page.lines) - 1
    if not page.lines:
        title += f" has {count(page.line_count, 'line')}"
    elif page.is_cut:
        title += f", lines {first}-{end}"
    else:
        title += f", lines {first}-{end} of {end}"
    if page.is_cut:
        return [title, f"continue with start_line={end + 1}"]
    return [title]


def read_contents(
    git: Git, repository: Repository, revision: Revision, path: RepositoryPath, cancel: CancelToken
) -> bytes:
    """Return all of a file.

    Raises:
        TooLarge: it is larger than a resource may be.
    """
    arguments = ["cat-file", "blob", _name_object(revision, path)]
    try:
        output = git.run(repository, arguments, cancel, max_bytes=_MAX_RESOURCE_BYTES)
    except GitFailed as failure:
        raise _explain_failure(failure, git, repository, revision, path, cancel) from None
    if output.is_cut:
        raise TooLarge(f"{quote(path.display)} is larger than 8 MB.", "Read lines of it with `read_file`.")
    return output.stdout


def list_files(
    git: Git,
    repository: Repository,
    revision: Revision,
    path: RepositoryPath,
    *,
    recursive: bool,
    limit: int,
    cursor: str | None,
    cancel: CancelToken,
) -> Answer:
    """Return a page of the files and folders in a folder; sizes of files in bytes.

    The pages behind the first one are of the commit that it was of, wherever the branch is then.
    """
    scope = [revision.text, path.text, recursive]
    position = decode_position("tree", cursor, scope)
    options = select_options({"-r": recursive})
    arguments = ["ls-tree", "-z", "--long", *options, f"{position.first_hash or revision.text}:{path.text}"]
    next_cursor = None
    remarks: list[str] = []
    try:
        with git.stream(repository, arguments, cancel, remarks=remarks) as pieces:
            # One entry more tells whether there is another page.
            records = list(islice(split_records(pieces), position.skip, position.skip + limit + 1))
            if len(records) > limit:
                commits = position.hashes or resolve_commits(git, repository, revision, cancel)
                next_cursor = Cursor.encode("tree", [position.skip + limit, 0, commits], scope)
    except GitFailed as failure:
        raise _explain_failure(failure, git, repository, revision, path, cancel) from None
    rows = [_format_entry(record) for record in records[:limit]]
    number_phrase = _describe_number(len(rows), "entry", "entries", position.skip, next_cursor)
    fact = f"{path.display} at {escape_line_breaks(revision.text)}, {number_phrase}"
    return Answer([fact, *describe_named_revisions(remarks)], group_by_folder(rows), next_cursor)


def _describe_number(number: int, noun: str, plural: str, skip: int, next_cursor: str | None) -> str:
    """Return how many items a page has, or which ones of several pages."""
    if next_cursor is None and not skip:
        return count(number, noun)
    return f"{plural} {skip + 1:,}-{skip + number:,}"


def _format_entry(record: bytes) -> tuple[str, str, Sequence[str]]:
    """Return what stands before the name of an entry of `git ls-tree --long`, and the name; no lines are below it."""
    description, _, name = record.partition(b"\t")
    mode, kind, _, size = description.split()
    ending = _ENTRY_ENDINGS.get(kind, "")
    if mode == _LINK_MODE:
        ending = " (link)"
    # A partial clone knows no size of what it does not have.
    prefix = f"{size.decode()} " if size.isdigit() else ""
    return prefix, f"{quote_path(name)}{ending}", ()


def complete_paths(git: Git, repository: Repository, start: str, cancel: CancelToken) -> list[str]:
    """Return the paths in HEAD and the folders on their way that begin with `start`, one level deep."""
    folder, slash, _ = start.rpartition("/")
    try:
        output = git.run(repository, ["ls-tree", "-z", f"HEAD:{folder}"], cancel)
    except GitFailed:
        return []
    paths: list[str] = []
    for record in split_records([output.stdout]):
        description, _, name = record.partition(b"\t")
        path = folder + slash + os.fsdecode(name)
        if b" tree " in description:
            path += "/"
        if path.startswith(start):
            paths.append(quote_path(os.fsencode(path)))
    return paths


@dataclass(frozen=True, slots=True)
class TextSearch:
    """What is searched for, and how.

    Attributes:
        is_literal: whether the pattern is a text, not a regular expression.
    """

    pattern: str
    is_literal: bool
    ignores_case: bool

    def validate(self) -> None:
        """Check that git can search for the pattern.

        Raises:
            Invalid: it can't.
        """
        if not self.pattern:
            raise Invalid("`pattern` is empty.", "Give what to look for; for the names of files use `list_files`.")
        if re.search(r"[\0\n]", self.pattern):
            raise Invalid(f"{quote(self.pattern)} is not one line to look for.", "Give a pattern without a line end.")
        if not self.is_literal:
            refuse_foreign_syntax(self.pattern)

    @property
    def options(self) -> list[str]:
        syntax = "-F" if self.is_literal else "-E"
        return [syntax, *select_options({"-i": self.ignores_case}), "-e", self.pattern]


class _Match(NamedTuple):
    """A line that matches."""

    path: bytes
    number: bytes
    text: bytes

    @property
    def row(self) -> str:
        text = clip(self.text.decode("utf-8", "replace").rstrip("\r"), _MAX_MATCH_BYTES)
        return f"{self.number.decode('ascii', 'replace')}:{text}"


@dataclass
class _MatchPage:
    """A page of matches as it is read.

    Attributes:
        rows: the lines of the answer, by the path that they are below.
        match_count: how many matches the page holds.
        seen_count: how many matches were seen, with those of earlier pages.
        is_full: whether there are more.
    """

    rows: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    match_count: int = 0
    seen_count: int = 0
    is_full: bool = False

    def read(self, matches: Iterable[_Match], path_prefix: bytes, skip: int, limit: int) -> None:
        """Read `limit` matches behind the first `skip` ones, as many as a page holds."""
        remaining_bytes = DEFAULT_PAGE_BYTES
        for match in matches:
            self.seen_count += 1
            if self.seen_count <= skip:
                continue
            row = match.row
            path = quote_path(match.path.removeprefix(path_prefix))
            remaining_bytes -= len(row.encode("utf-8", "replace")) + 1
            if path not in self.rows:
                remaining_bytes -= len(path.encode()) + 1
            if self.match_count == limit or (remaining_bytes < 0 and self.match_count):
                self.is_full = True
                return
            self.rows.setdefault(path, []).append(row)
            self.match_count += 1


def search_text(
    git: Git,
    repository: Repository,
    revision: Revision,
    path: RepositoryPath,
    search: TextSearch,
    *,
    limit: int,
    cursor: str | None,
    cancel: CancelToken,
) -> Answer:
    """Return a page of the lines that match in the files of a commit: `path:line:text`, or several below their path."""
    search.validate()
    scope = [revision.text, *path.pathspecs, search.pattern, search.is_literal, search.ignores_case]
    position = decode_position("search", cursor, scope)
    source = position.first_hash or revision.text
    arguments = ["grep", "-I", "-n", "-z", "--no-color", *search.options, source, "--"]
    if path.text:
        arguments += path.pathspecs
    page = _MatchPage()
    next_cursor = None
    remarks: list[str] = []
    with (
        explained_failures(git, repository, revision, cancel),
        git.stream(
            repository, arguments, cancel, exit_codes=(0, 1), literal_paths=not path.is_glob, remarks=remarks
        ) as pieces,
    ):
        page.read(_split_matches(pieces), os.fsencode(f"{source}:"), position.skip, limit)
        if page.is_full:
            commits = position.hashes or resolve_commits(git, repository, revision, cancel)
            next_cursor = Cursor.encode("search", [position.skip + page.match_count, 0, commits], scope)
    if not page.seen_count:
        refuse_missing_path(git, repository, path, [revision.text], cancel)
    number_phrase = _describe_number(page.match_count, "match", "matches", position.skip, next_cursor)
    facts = [f"{number_phrase} in {escape_line_breaks(revision.text)}"]
    facts += describe_named_revisions(remarks)
    if any("unable to read" in text for text in remarks):
        facts.append("files that are not here were not searched")
    lines = group_by_folder(("", name, rows) for name, rows in page.rows.items())
    return Answer(facts, lines, next_cursor)


def _split_matches(pieces: Iterable[bytes]) -> Generator[_Match]:
    """Take apart what `git grep -n -z` prints; a path may hold line ends, and its end is a NUL."""
    unfinished: list[bytes] = []
    for piece in pieces:
        unfinished.append(piece)
        if b"\n" not in piece:
            continue
        unread = b"".join(unfinished)
        while len(parts := unread.split(b"\0", 2)) == 3 and b"\n" in parts[2]:
            path, number, following = parts
            text, _, unread = following.partition(b"\n")
            yield _Match(path, number, text)
        unfinished = [unread]


def _explain_failure(
    failure: GitFailed, git: Git, repository: Repository, revision: Revision, path: RepositoryPath, cancel: CancelToken
) -> Exception:
    if revision.is_conflict_side:
        fix = "`get_status` has what is in conflict; a side that deleted it has none."
        return NotFound(f"`{path.display}` has no side `{revision.text}`.", fix)
    problem = explain_failure(failure, git, repository, revision, cancel)
    if isinstance(problem, (NotFound, TooLarge, Unavailable)):
        return problem
    name = quote(revision.text)
    try:
        kind = git.run(repository, ["cat-file", "-t", _name_object(revision, path)], cancel).text.strip()
    except GitFailed as failure:
        if is_of_damage(failure) and not _is_submodule(git, repository, revision, path, cancel):
            return damaged(f"What {name} has as `{path.display}` can't be read.")
        fix = suggest_path(git, repository, path, revision.text, cancel)
        return NotFound(f"There is no `{path.display}` in {name}.", fix)
    match kind:
        case "tree":
            return Invalid(f"`{path.display}` is a folder in {name}.", "Use `list_files` for it.")
        case "blob":
            return Invalid(f"`{path.display}` is a file in {name}.", "Use `read_file` for it.")
        case _:
            return Invalid(f"`{path.display}` is a submodule in {name}.", "Serve the submodule's folder as well.")


def _is_submodule(
    git: Git, repository: Repository, revision: Revision, path: RepositoryPath, cancel: CancelToken
) -> bool:
    """Whether a commit has a submodule at a path, whose own commit is not here."""
    output = git.run(repository, ["ls-tree", "-d", revision.text, "--", path.text], cancel, exit_codes=(0, 128))
    return output.stdout.startswith(_SUBMODULE_MODE)
