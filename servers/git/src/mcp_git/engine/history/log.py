"""Lists commits."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.cursors import Cursor
from mcp_batteries.errors import Conflict, Invalid, NotFound, quote
from mcp_batteries.server.calling.results import is_answering_script
from mcp_git.engine.history.blame import resolve_lines
from mcp_git.engine.history.commit_clocks import can_filter_by_date, hides_newer_commits
from mcp_git.engine.history.commit_rows import (
    ROW_FORMAT,
    SCRIPT_COLUMNS,
    SCRIPT_HASH_DIGITS,
    Commit,
    Row,
    abbreviation,
    replace_placeholder,
)
from mcp_git.engine.history.commit_search import CommitSearch, SearchedCommits
from mcp_git.engine.history.cut_history import describe_boundary, find_earlier_name, list_boundary
from mcp_git.engine.history.dates import to_git_date
from mcp_git.engine.history.missing_paths import is_in_revision, refuse_missing_path
from mcp_git.engine.history.other_side import describe_other_side
from mcp_git.engine.history.page_position import PagePosition, decode_position
from mcp_git.engine.history.patterns import refuse_foreign_syntax
from mcp_git.engine.program.git import Git, GitFailed
from mcp_git.engine.program.output import clip, select_options, split_lines, split_records
from mcp_git.engine.program.revisions import (
    describe_named_revisions,
    explained_failures,
    head_has_commit,
    resolve_commits,
)
from mcp_git.models import Answer, Table
from mcp_git.path_quoting import escape_hidden, escape_line_breaks
from mcp_git.policy import TOP_FOLDER, LineRange, Range, Repository, RepositoryPath, Revision
from mcp_git.remote_addresses import hide_password

__all__ = ["LogQuery", "RefRow", "describe_head", "list_commits", "list_reflog"]

_MAX_LONG_AUTHOR_BYTES = 40
# Not `--all`: what tools keep in other refs is nobody's branch, such as stashes, notes and what `jj` has replaced.
_ALL_BRANCHES = ("--branches", "--tags", "--remotes")
# Where a path may have been that no listed commit has: on another branch, or on one that was deleted.
_EVERYWHERE = (*_ALL_BRANCHES, "--reflog")
_MAX_VIEW_BYTES = 200
_MAX_MOVE_BYTES = 178
# How far commits are looked for that are dated before their parents: git takes 20 ms for 5,000.
_MAX_COMMITS_BEHIND_PAGE = 5_000
_MAX_COMMITS_OF_SEARCH = 20_000
# Of a body that a model reads.
_MAX_BODY_BYTES = 500
# Of all bodies on a page of a script.
_MAX_BODIES_BYTES = 1 << 30
# Signs that stand in texts too, but may have been meant as those of an expression.
_EXPRESSION_SIGNS = re.compile(r"[\^$|*]|\.[*+?]|\[.+\]|\(.*\)")


@dataclass(frozen=True, slots=True)
class LogQuery:
    """Says which commits are listed.

    Attributes:
        named_path: the file or folder that they changed, or a glob; None if none was named.
        text: only those that add or remove it; with `is_regex` those with a changed line that matches.
        is_regex: whether text, author and message are regular expressions.
        all_branches: those of all branches, tags and remotes.
        no_merges: only those with at most one parent.
        lines: only those that changed these lines of the file, or the function.
        follow: through renames of the file.
        not_picked: only those of the range whose change its start does not have too.
        bodies: with what follows their subjects.
        looks_behind_old: whether git looks for commits since a date behind those that are dated before it.
        misses_behind_old: whether there are such commits, and this git can't.
    """

    revision: Revision | Range
    named_path: RepositoryPath | None = None
    author: str | None = None
    message: str | None = None
    text: str | None = None
    is_regex: bool = False
    since: str | None = None
    until: str | None = None
    all_branches: bool = False
    no_merges: bool = False
    graph: bool = False
    lines: LineRange | None = None
    follow: bool = False
    not_picked: bool = False
    bodies: bool = False
    looks_behind_old: bool = False
    misses_behind_old: bool = False

    def validate(self) -> None:
        """Check that its conditions go together, and that git can look for its texts.

        Raises:
            Invalid: they do not, or git can't look for one of them.
        """
        self._check_regex()
        self._check_lines()
        self._check_follow()
        self._check_not_picked()
        self._check_texts()
        if self.graph and self.bodies:
            raise Invalid("`graph` draws a line for each commit, without `bodies`.", "Leave one of them out.")

    def _check_regex(self) -> None:
        if self.is_regex and not (self.text or self.author or self.message):
            raise Invalid("`regex` says how to read a text, and there is none.", "Give one, or leave `regex` out.")

    def _check_lines(self) -> None:
        if self.lines is None:
            return
        if self.named_path is None or self.text or self.all_branches:
            raise Invalid("`lines` are of one `path`, without `text` and `all_branches`.", "Name the file alone.")

    def _check_follow(self) -> None:
        if not self.follow:
            return
        if self.named_path is None or self.lines is not None:
            raise Invalid(
                "`follow` is of one file in `path`, without `lines`.", "Name the file, or leave `follow` out."
            )

    def _check_not_picked(self) -> None:
        if not self.not_picked:
            return
        has_sides = isinstance(self.revision, Range) and self.revision.dots == ".."
        if not has_sides or self.lines is not None or self.all_branches:
            raise Invalid(
                "`not_picked` is about a `rev` like `a..b`, without `lines` and `all_branches`.", "Name such a range."
            )
        if self.since or self.until:
            # Git compares no changes of commits outside of the dates.
            raise Invalid(
                "`not_picked` compares whole sides, so it takes neither `since` nor `until`.",
                "Leave the dates out: the answer has them.",
            )

    def _check_texts(self) -> None:
        for value in (self.author, self.message, self.text, self.since, self.until):
            if value and "\0" in value:
                raise Invalid("A `text` to look for holds no NUL.", "Leave it out.")
        if self.is_regex:
            for pattern in (self.author, self.message, self.text):
                refuse_foreign_syntax(pattern or "")

    @property
    def path(self) -> RepositoryPath:
        """What they changed; the top folder if nothing was named.

        Git takes the path for that of one file where it looks at lines or through renames, and a glob elsewhere.
        """
        path = self.named_path or TOP_FOLDER
        if self.follow or self.lines is not None:
            return path.as_literal()
        return path

    @property
    def pathspecs(self) -> list[str]:
        """What follows the `--` of a command."""
        return self.path.pathspecs if self.path.text else []

    @property
    def options(self) -> list[str]:
        return [*self.walk_options, *self.commit_options, *self.change_options]

    @property
    def walk_options(self) -> list[str]:
        """The options by which git walks through the history."""
        flags = select_options(
            {
                "--no-merges": self.no_merges,
                "--graph": self.graph,
                "--follow": self.follow,
            }
        )
        if self.all_branches:
            flags += _ALL_BRANCHES
        if self.not_picked:
            flags += ["--cherry-pick", "--right-only"]
        return [*flags, *self.date_options]

    @property
    def date_options(self) -> list[str]:
        options: list[str] = []
        if self.since:
            option = "--since-as-filter" if self.looks_behind_old else "--since"
            options.append(f"{option}={to_git_date(self.since, 'since')}")
        if self.until:
            options.append(f"--until={to_git_date(self.until, 'until', to_end=True)}")
        return options

    @property
    def commit_options(self) -> list[str]:
        """The options that say whose a commit is, and what its message has."""
        if not (self.author or self.message):
            return []
        options = select_options({f"--author={self.author}": self.author, f"--grep={self.message}": self.message})
        return [*options, "--regexp-ignore-case", "--extended-regexp" if self.is_regex else "--fixed-strings"]

    @property
    def change_options(self) -> list[str]:
        """The options that say what text a commit adds or removes."""
        if not self.text:
            return []
        return [f"-G{self.text}" if self.is_regex else f"-S{self.text}"]

    @property
    def searches_in_batches(self) -> bool:
        """Whether its commits are found by what each one has, and each tells that alone."""
        is_drawn = self.graph or self.follow or self.lines is not None
        return bool(self.author or self.message or self.text) and not is_drawn

    @property
    def walk_can_go_on(self) -> bool:
        """Whether the commits that a walk did not come to can be told from those that it did.

        Commits behind `until`, branches that did not change the path, and merges are passed over, and would be again.
        """
        if self.no_merges:
            return False
        if self.all_branches:
            return not (self.until or self.path.text or isinstance(self.revision, Range))
        return not (self.until or self.not_picked)

    @property
    def newest(self) -> Revision:
        """The revision with the newest commits."""
        if isinstance(self.revision, Range):
            return self.revision.end
        return self.revision

    @property
    def may_be_meant_as_regex(self) -> bool:
        """Whether a text is looked for as it stands, and has signs of a regular expression."""
        return not self.is_regex and bool(_EXPRESSION_SIGNS.search(f"{self.author or ''}{self.message or ''}"))

    @property
    def begins_at_its_tip(self) -> bool:
        """Whether the first commit that is found is the one from which all are reached."""
        return isinstance(self.revision, Revision) and not (self.path.text or self.options)

    @property
    def has_condition(self) -> bool:
        """Whether commits are left out for another reason than their path."""
        return isinstance(self.revision, Range) or bool(set(self.options) - {*_ALL_BRANCHES, "--graph", "--follow"})

    @property
    def scope(self) -> list[Any]:
        """What the cursors of this query are bound to."""
        lines: list[Any] = []
        if self.lines is not None:
            lines = [self.lines.first, self.lines.last, self.lines.function]
        options = replace(self, looks_behind_old=False).options
        return [self.revision.text, *self.pathspecs, *options, *lines]


@dataclass
class _CommitPage:
    """A page of commits as it is read.

    Attributes:
        commits: those of the page, by their hashes.
        first_commit: the hash of the first one; empty if there is none.
        has_more: whether there is a page behind it.
        has_whole_lines: whether a script reads it, for which each line stands for itself.
        remarks: what git said besides.
    """

    rows: list[Row] = field(default_factory=list[Row])
    commits: dict[str, Commit] = field(default_factory=dict[str, Commit])
    first_commit: str = ""
    commit_count: int = 0
    has_more: bool = False
    has_whole_lines: bool = False
    remarks: list[str] = field(default_factory=list[str])

    def read(self, lines: Iterator[bytes], ignored: int, limit: int) -> None:
        """Read `limit` commits behind the first `ignored` ones."""
        number = -ignored
        for line in lines:
            row = Row.parse(line)
            if row.commit is not None:
                number += 1
                if number == 1:
                    self.first_commit = row.commit.oid
            if number > limit:
                self.has_more = True
                break
            if number >= 1 or not ignored:
                self._add(row)
        self.commit_count = max(0, min(number, limit))

    def _add(self, row: Row) -> None:
        self.rows.append(row)
        if row.commit is not None:
            self.commits[row.commit.oid] = row.commit

    @property
    def common_date(self) -> str | None:
        """The date of all commits, if there are several and they have one."""
        return self._find_common({commit.date for commit in self.commits.values()})

    @property
    def common_author(self) -> str | None:
        """The author of all commits, if there are several and they have one."""
        return self._find_common({commit.author for commit in self.commits.values()})

    def _find_common(self, values: set[str]) -> str | None:
        if len(self.commits) > 1 and len(values) == 1 and not self.has_whole_lines:
            return values.pop()
        return None


def list_commits(
    git: Git, repository: Repository, query: LogQuery, limit: int, cursor: str | None, cancel: CancelToken
) -> Answer:
    """Return one page of the commits that match the query, newest first.

    Later pages continue from the commits that the first page started at, so new commits do not shift them.
    """
    query.validate()
    position = decode_position("log", cursor, query.scope)
    start = _find_start(git, repository, query, position, cancel)
    with _explained_page_failures(git, repository, query, position, cancel):
        query = _look_behind_old_commits(git, repository, query, start, position.skip + limit, cancel)
    if query.searches_in_batches:
        return _list_matches(git, repository, query, limit, position, start, cancel)
    command = _LogCommand.build(git, repository, query, limit, position, start.tips, cancel)
    page = _CommitPage(has_whole_lines=is_answering_script())
    next_cursor = None
    with _explained_page_failures(git, repository, query, position, cancel):
        _read_page(git, repository, command, page, limit, cancel)
        if page.has_more:
            hashes = _choose_cursor_hashes(git, repository, query, start, page, cancel)
            next_cursor = Cursor.encode("log", [position.skip + limit, 0, hashes], query.scope)
        lines, table = _format_page(git, repository, query, page, cancel)
    explanation: Sequence[str] = ()
    is_whole_file = query.path.text and query.lines is None
    if is_whole_file and not page.commit_count and not position.skip:
        explanation = _explain_empty_list(git, repository, query, cancel)
    facts = [*_describe_page(query, page, position.skip, command.described_lines), *explanation]
    facts += _describe_limits(git, repository, query, page, cancel)
    return Answer(facts, lines, next_cursor, lambda: _build_view(repository, query, page, position.skip), table)


def _look_behind_old_commits(
    git: Git, repository: Repository, query: LogQuery, start: _Start, end: int, cancel: CancelToken
) -> LogQuery:
    """Return the query, changed so that git misses no commit behind one whose clock was wrong, or says that it does.

    Args:
        end: how many commits this page and those before it have.
    """
    if not query.since:
        return query
    since = to_git_date(query.since, "since")
    revisions = [*(_ALL_BRANCHES if query.all_branches else ()), *_choose_revisions(query, start.tips)]
    max_commits = end + _MAX_COMMITS_BEHIND_PAGE
    if query.path.text or query.searches_in_batches:
        max_commits = _MAX_COMMITS_OF_SEARCH
    if not hides_newer_commits(git, repository, since, revisions, max_commits, cancel):
        return query
    can_filter = can_filter_by_date(git)
    return replace(query, looks_behind_old=can_filter, misses_behind_old=not can_filter)


@contextmanager
def _explained_page_failures(
    git: Git, repository: Repository, query: LogQuery, position: PagePosition, cancel: CancelToken
) -> Generator[None]:
    """Have failures of git in a block say what they mean to the caller who asked for a page."""
    with explained_failures(git, repository, query.revision, cancel):
        try:
            yield
        except GitFailed as failure:
            if position.hashes and "bad object" in failure.stderr:
                raise Conflict(
                    "The commits of the page before are no longer here.", "Call again without `cursor`."
                ) from None
            raise


def _list_matches(
    git: Git,
    repository: Repository,
    query: LogQuery,
    limit: int,
    position: PagePosition,
    start: _Start,
    cancel: CancelToken,
) -> Answer:
    """Return one page of the commits that a search finds, or what was found of it in the time there is.

    In a cursor the commits that were looked through are counted, and beside that those that were listed.
    """
    page = _CommitPage(has_whole_lines=is_answering_script())
    next_cursor = None
    next_hashes: Sequence[str] = []
    with _explained_page_failures(git, repository, query, position, cancel):
        searched = _search_commits(git, repository, query, limit, position, start, cancel)
        page.read(iter(searched.rows), 0, limit)
        page.remarks += searched.remarks
        page.has_more = not searched.is_complete
        if page.has_more:
            hashes = _choose_cursor_hashes(git, repository, query, start, page, cancel)
            next_hashes = _find_next_hashes(git, repository, query, position, hashes, searched, cancel)
            payload = [position.skip + searched.count, position.offset + page.commit_count, hashes, next_hashes]
            next_cursor = Cursor.encode("log", payload, query.scope)
    explanation: Sequence[str] = ()
    if query.path.text and searched.is_complete and not page.commit_count and not position.skip:
        explanation = _explain_empty_list(git, repository, query, cancel)
    facts = [*_describe_page(query, page, position.offset, ""), *explanation]
    if page.has_more:
        facts.append(f"searched back to {searched.back_to}")
    if searched.has_wrong_clocks and (position.next_hashes or next_hashes):
        facts.append("some commits are dated before their parents, so pages may have a commit twice")
    facts += _describe_limits(git, repository, query, page, cancel)
    lines, table = _format_page(git, repository, query, page, cancel)
    return Answer(facts, lines, next_cursor, lambda: _build_view(repository, query, page, position.offset), table)


def _search_commits(
    git: Git,
    repository: Repository,
    query: LogQuery,
    limit: int,
    position: PagePosition,
    start: _Start,
    cancel: CancelToken,
) -> SearchedCommits:
    """Search from where the page before ended; where that can't be told, pass over the commits before it."""
    walk = [f"--skip={position.skip}", *query.walk_options, *_choose_revisions(query, start.tips)]
    if position.next_hashes:
        walk = [*query.date_options, *position.next_hashes, *(oid for oid in start.tips if oid.startswith("^"))]
    search = CommitSearch(
        walk,
        query.pathspecs,
        query.commit_options,
        query.change_options,
        ROW_FORMAT,
        position.next_hashes,
        literal_paths=not query.path.is_glob,
    )
    return search.run(git, repository, limit, cancel)


def _find_next_hashes(
    git: Git,
    repository: Repository,
    query: LogQuery,
    position: PagePosition,
    start_hashes: Sequence[str],
    searched: SearchedCommits,
    cancel: CancelToken,
) -> Sequence[str]:
    """Return the commits from which the next page goes on; none where it has to pass over those before it."""
    goes_on = not position.skip or bool(position.next_hashes)
    if not (goes_on and query.walk_can_go_on):
        return []
    if query.all_branches:
        if not position.skip:
            searched.add_tips(_list_tips(git, repository, query, cancel))
        return searched.next_hashes
    has_one_tip = sum(not oid.startswith("^") for oid in start_hashes) == 1
    return searched.next_hashes if has_one_tip else []


def _list_tips(git: Git, repository: Repository, query: LogQuery, cancel: CancelToken) -> list[str]:
    """Return the commits at which a walk of all branches begins."""
    arguments = ["rev-list", "--no-walk=unsorted", *_ALL_BRANCHES, *_start_revisions(query), "--"]
    return git.run(repository, arguments, cancel).text.split()


def _describe_limits(
    git: Git, repository: Repository, query: LogQuery, page: _CommitPage, cancel: CancelToken
) -> list[str]:
    """Return what the rows of a page alone would not tell.

    That is whether another ref may be meant, where the history is cut, what came before a rename, and that a glob may
    be meant as a name.
    """
    boundary = list_boundary(git.layout(repository))
    facts = describe_named_revisions(page.remarks)
    if query.misses_behind_old:
        facts.append("a commit is dated before its parents, so others since then are missing")
    if query.not_picked and isinstance(query.revision, Range) and page.commits:
        facts += describe_other_side(git, repository, query.revision, list(page.commits.values()), boundary, cancel)
    if boundary and (not page.has_more or not page.commits.keys().isdisjoint(boundary)):
        facts.append(describe_boundary(boundary, page.commits))
    if query.path.is_glob:
        facts += _describe_name_with_signs(git, repository, query, cancel)
    elif query.path.text:
        facts += _describe_earlier_name(git, repository, query, page, cancel)
    return facts


def _describe_earlier_name(
    git: Git, repository: Repository, query: LogQuery, page: _CommitPage, cancel: CancelToken
) -> list[str]:
    """Return what name a path had before the oldest commit of its history, if that ends at a rename."""
    if query.follow or query.lines is not None or page.has_more or not page.commits:
        return []
    earlier = find_earlier_name(git, repository, list(page.commits)[-1], query.path, cancel)
    return [f"renamed from {earlier} there: with `follow` the commits before too"] if earlier else []


def _describe_name_with_signs(git: Git, repository: Repository, query: LogQuery, cancel: CancelToken) -> list[str]:
    """Return how a file is named whose name is the glob itself, if there is one."""
    if not is_in_revision(git, repository, query.newest.text, query.path, cancel):
        return []
    return [f"of all that it matches: what has that name alone is {quote(query.path.quoted)}"]


class _Start(NamedTuple):
    """From where a listing goes back.

    Attributes:
        tips: the commits at which the pages before this one started; none if this is the first.
        ref_digest: of the tips of all branches, for which a cursor has no room; empty for other listings.
    """

    tips: Sequence[str]
    ref_digest: str = ""


def _find_start(
    git: Git, repository: Repository, query: LogQuery, position: PagePosition, cancel: CancelToken
) -> _Start:
    """Return where a listing starts.

    Raises:
        Conflict: it is one of all branches, and these moved since the page before.
    """
    if not query.all_branches:
        return _Start(position.hashes)
    digest = _digest_refs(git, repository, cancel)
    if position.hashes not in ([], [digest]):
        raise Conflict("The branches are no longer those of the page before.", "Call again without `cursor`.")
    return _Start([], digest)


def _read_page(
    git: Git, repository: Repository, command: _LogCommand, page: _CommitPage, limit: int, cancel: CancelToken
) -> None:
    with git.stream(
        repository, command.arguments, cancel, literal_paths=command.literal_paths, remarks=page.remarks
    ) as pieces:
        lines = split_records(pieces, b"\n")
        page.read(lines, command.ignored_commits, limit)
        # Read to the end, which came meanwhile: git that is left before it has to be killed.
        for _ in lines:
            pass


def _choose_cursor_hashes(
    git: Git, repository: Repository, query: LogQuery, start: _Start, page: _CommitPage, cancel: CancelToken
) -> Sequence[str]:
    """Return the hashes by which the next page knows where this listing started."""
    if start.tips:
        return start.tips
    if query.begins_at_its_tip:
        return [page.first_commit]
    if start.ref_digest:
        return [start.ref_digest]
    return resolve_commits(git, repository, query.revision, cancel)


@dataclass(frozen=True)
class _LogCommand:
    """The command that prints a page.

    Attributes:
        ignored_commits: how many of the first commits that it prints are those of earlier pages.
        described_lines: what the answer says of the lines of a file.
        literal_paths: whether the path that it names is no glob.
    """

    arguments: Sequence[str]
    ignored_commits: int
    described_lines: str = ""
    literal_paths: bool = True

    @classmethod
    def build(
        cls,
        git: Git,
        repository: Repository,
        query: LogQuery,
        limit: int,
        position: PagePosition,
        tips: Sequence[str],
        cancel: CancelToken,
    ) -> _LogCommand:
        # Of commits that git finds by their changes, `--skip` skips those it has not looked at yet.
        ignored = position.skip if query.text or query.follow else 0
        arguments = ["log", f"--format={ROW_FORMAT}", f"--max-count={ignored + limit + 1}"]
        arguments += [f"--skip={position.skip - ignored}", *query.options]
        revisions = _choose_revisions(query, tips)
        if query.lines is not None:
            span = resolve_lines(git, repository, query.path, query.newest, query.lines, cancel, next(iter(tips), ""))
            arguments += [f"-L{span.numbers}:{query.path.text}", "--no-patch", *revisions, "--"]
            return cls(arguments, ignored, span.description)
        operands = [*revisions, "--", *query.pathspecs]
        return cls([*arguments, *operands], ignored, literal_paths=not query.path.is_glob)


def _choose_revisions(query: LogQuery, tips: Sequence[str]) -> Sequence[str]:
    """Return what git walks from.

    Args:
        tips: the hashes at which the first page started; none if this is the first.
    """
    if not (query.not_picked and isinstance(query.revision, Range)):
        return tips or _start_revisions(query)
    start = query.revision.start.text
    end = query.revision.end.text
    if tips:
        end, start = tips
    # Git compares the changes of both sides, and lists those of the right one.
    return [f"{start.removeprefix('^')}...{end}"]


def _start_revisions(query: LogQuery) -> list[str]:
    if query.revision.text != "HEAD":
        return [query.revision.text]
    if query.all_branches:
        # HEAD counts too where it has a commit.
        return ["--ignore-missing", "HEAD"]
    return ["HEAD"]


def _format_page(
    git: Git, repository: Repository, query: LogQuery, page: _CommitPage, cancel: CancelToken
) -> tuple[list[str], Callable[[], Table] | None]:
    """Return the rows of a page as lines, and as a table if nothing is drawn."""
    bodies = _read_bodies(git, repository, page, cancel) if query.bodies else None
    # What all commits have alike is told once, in the first line.
    with_date = page.common_date is None
    with_author = page.common_author is None
    lines: list[str] = []
    for row in page.rows:
        lines.append(row.format(with_date, with_author))
        if bodies and row.commit:
            lines += _indent_body(bodies[row.commit.oid].text)
    if query.graph:
        return lines, None
    return lines, lambda: _build_table(page, bodies)


def _build_table(page: _CommitPage, bodies: Mapping[str, _Body] | None) -> Table:
    if bodies is None:
        return Table(SCRIPT_COLUMNS, [commit.values_for_script() for commit in page.commits.values()])
    rows: list[list[Any]] = []
    for oid, commit in page.commits.items():
        address, body = map(escape_hidden, bodies[oid])
        rows.append([*commit.values_for_script(), address, body])
    return Table([*SCRIPT_COLUMNS, "email", "body"], rows)


class _Body(NamedTuple):
    """What follows the subject of a commit, and the address of its author."""

    author_address: str
    text: str


def _read_bodies(git: Git, repository: Repository, page: _CommitPage, cancel: CancelToken) -> Mapping[str, _Body]:
    """Return the body of each commit of a page by its hash.

    It has lines of its own, so a log in which each line is a commit can't have it.
    """
    if not page.commits:
        return {}
    arguments = ["log", "--no-walk=unsorted", "-z", "--format=%H%x00%aE%x00%b", "--stdin", "--"]
    hashes = "\n".join(page.commits).encode()
    output = git.run(repository, arguments, cancel, stdin=hashes, max_bytes=_MAX_BODIES_BYTES)
    fields = iter(output.text.split("\0"))
    bodies = dict.fromkeys(page.commits, _Body("", ""))
    for oid, address, body in zip(fields, fields, fields, strict=False):
        bodies[oid] = _Body(replace_placeholder(address), body.removesuffix("\n"))
    return bodies


def _indent_body(body: str) -> list[str]:
    lines: list[str] = []
    for line in clip(body, _MAX_BODY_BYTES).splitlines():
        lines.append(f"    {escape_line_breaks(line)}".rstrip())
    return lines


def _describe_page(query: LogQuery, page: _CommitPage, skip: int, described_lines: str) -> list[str]:
    source = "all branches" if query.all_branches else escape_line_breaks(query.revision.text)
    title = f"{_describe_number(page, skip)} of {source}"
    if query.path.text:
        title += f", {query.path.display}{described_lines}"
    facts = [title]
    if query.not_picked and isinstance(query.revision, Range):
        facts.append(f"no changes that {escape_line_breaks(query.revision.start.text)} has too")
    if page.common_date is not None:
        facts.append(f"all of {page.common_date}")
    if page.common_author is not None:
        facts.append(f"all by {escape_line_breaks(clip(page.common_author, _MAX_LONG_AUTHOR_BYTES))}")
    is_empty = not page.commit_count and not skip
    if is_empty and query.may_be_meant_as_regex:
        facts.append("`author` and `message` were looked for as they stand: for a regular expression set `regex`")
    return facts


def _describe_number(page: _CommitPage, skip: int) -> str:
    if page.commit_count:
        return f"commits {skip + 1:,}-{skip + page.commit_count:,}"
    words = "no more commits" if skip else "no commits"
    # The search goes on where its time was over.
    return f"{words} so far" if page.has_more else words


def _digest_refs(git: Git, repository: Repository, cancel: CancelToken) -> str:
    """Return a digest of the commits of HEAD and of all branches and tags."""
    arguments = ["rev-parse", "--revs-only", "HEAD", *_ALL_BRANCHES]
    output = git.run(repository, arguments, cancel, max_bytes=1 << 30).stdout
    return hashlib.sha256(output).hexdigest()


def _build_view(repository: Repository, query: LogQuery, page: _CommitPage, skip: int) -> Mapping[str, Any]:
    """Return the data from which hosts draw the commits."""
    is_linear = not query.path.text and not set(query.options).difference(_ALL_BRANCHES)
    view: dict[str, Any] = {"commits": _build_view_rows(page.commits), "drawn": query.graph or is_linear}
    if query.begins_at_its_tip and query.revision.text == "HEAD" and not skip:
        view["uri"] = repository.uri("log")
    return view


def _build_view_rows(commits: Mapping[str, Commit]) -> list[list[str]]:
    """Return hash, parents, date, author, refs and subject of each commit."""
    rows: list[list[str]] = []
    for commit in commits.values():
        parents = [_shorten(oid, commits, len(commit.short_hash)) for oid in commit.parents.split()]
        rows.append(
            [
                commit.short_hash,
                " ".join(parents),
                commit.date,
                clip(commit.author, _MAX_LONG_AUTHOR_BYTES),
                clip(commit.refs, _MAX_VIEW_BYTES),
                clip(commit.subject, _MAX_VIEW_BYTES),
            ]
        )
    return rows


def _shorten(oid: str, commits: Mapping[str, Commit], length: int) -> str:
    # Git needs long to shorten hashes, so reuse those it has already printed.
    return commits[oid].short_hash if oid in commits else oid[:length]


def _explain_empty_list(git: Git, repository: Repository, query: LogQuery, cancel: CancelToken) -> list[str]:
    """Return where a commit is that was not found: on a side which a merge dropped, since git follows only the other.

    Or where else the path has a history.

    Raises:
        NotFound: no commit ever had it.
    """
    oid = "" if query.not_picked else _find_dropped_commit(git, repository, query, cancel)
    if oid:
        return [f"{oid} is on a side that a merge dropped: name it as `rev`"]
    return _describe_missing_path(git, repository, query, cancel)


def _find_dropped_commit(git: Git, repository: Repository, query: LogQuery, cancel: CancelToken) -> str:
    """Return the latest commit that a query is of, also on sides of merges that git does not follow; empty if none."""
    arguments = ["log", *abbreviation(), "--format=%h", "--max-count=1", "--full-history", "--no-merges"]
    options = [*query.date_options, *query.commit_options, *query.change_options]
    if query.all_branches:
        options += _ALL_BRANCHES
    operands = [query.revision.text, "--", *query.pathspecs]
    command = [*arguments, *options, *operands]
    output = git.run(repository, command, cancel, exit_codes=(0, 128), literal_paths=not query.path.is_glob)
    return output.text.strip()


def _describe_missing_path(git: Git, repository: Repository, query: LogQuery, cancel: CancelToken) -> list[str]:
    """Return where else a path has a history of which nothing was found.

    Nothing is to be said of one that is here, or was before: what was deleted still has a history.

    Raises:
        NotFound: no commit ever had it.
    """
    revision = query.revision
    names = [revision.text]
    if isinstance(revision, Range):
        names = [revision.start.text, revision.end.text]
    # Without a condition the whole history of it was just looked through.
    if query.has_condition and _find_latest_change(git, repository, query, names, cancel):
        return []
    try:
        refuse_missing_path(git, repository, query.path, names, cancel)
    except NotFound:
        latest = _find_latest_change(git, repository, query, [*_EVERYWHERE, "--not", *names], cancel)
        if not latest:
            raise
        return [f"only other commits have it, the latest {latest}"]
    return []


def _find_latest_change(
    git: Git, repository: Repository, query: LogQuery, names: Sequence[str], cancel: CancelToken
) -> str:
    """Return the latest commit that changed a path, of those that some revisions reach; empty if none did."""
    arguments = ["log", *abbreviation(), "--format=%h", "--max-count=1"]
    if query.all_branches:
        arguments += _ALL_BRANCHES
    arguments += [*names, "--", *query.pathspecs]
    literal_paths = not query.path.is_glob
    output = git.run(repository, arguments, cancel, exit_codes=(0, 128), literal_paths=literal_paths)
    return output.text.strip()


def describe_head(git: Git, repository: Repository, cancel: CancelToken) -> Answer:
    """Return the branch that HEAD is, and its commit."""
    arguments = ["symbolic-ref", "--quiet", "--short", "HEAD"]
    branch = git.run(repository, arguments, cancel, exit_codes=(0, 1, 128)).text.strip()
    fact = f"HEAD is {escape_line_breaks(branch)}" if branch else "HEAD is detached"
    line = ""
    if head_has_commit(git, repository, cancel):
        arguments = ["log", f"--format={ROW_FORMAT}", "--max-count=1", "HEAD", "--"]
        line = git.run(repository, arguments, cancel).text.rstrip("\n")
    if not line:
        return Answer([fact], ["no commits yet"])
    return Answer([fact], [Row.parse(line.encode()).format()])


class RefRow(NamedTuple):
    """What has a name, as a line and as the values of a row."""

    line: str
    values: Sequence[Any]


def list_reflog(git: Git, repository: Repository, name: Revision, limit: int, cancel: CancelToken) -> list[RefRow]:
    """Return where a branch or HEAD was before, newest first: the revision that leads there, and what moved it."""
    # With a date git puts that of the entry into the selector, in place of its number.
    arguments = ["log", "--walk-reflogs", "--date=short", "--format=%h%x00%gd%x00%gs", f"--max-count={limit}"]
    if is_answering_script():
        arguments.append(f"--abbrev={SCRIPT_HASH_DIGITS}")
    arguments += [name.text, "--"]
    with explained_failures(git, repository, name, cancel):
        output = git.run(repository, arguments, cancel)
    return [_format_move(line, number) for number, line in enumerate(split_lines(output))]


def _format_move(line: str, number: int) -> RefRow:
    fields = line.split("\0")
    fields += [""] * (3 - len(fields))
    oid, dated_selector, action, *_ = fields
    name, _, date = dated_selector.rstrip("}").rpartition("@{")
    selector = f"{name}@{{{number}}}"
    values = [selector, oid, date, hide_password(action)]
    return RefRow(clip(escape_line_breaks(" ".join(values)), _MAX_MOVE_BYTES), [*map(escape_hidden, values)])
