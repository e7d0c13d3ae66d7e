"""Shows what changed: first the files with their counts, then the patch in pages.

A page compares only the files that it shows, so that a large change costs no more than the shown part.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from mcp_batteries.clipping import DEFAULT_PAGE_BYTES
from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.cursors import Cursor
from mcp_batteries.errors import Conflict, Invalid, NotFound
from mcp_batteries.server.calling.results import group_by_folder
from mcp_git.engine.history.commit_rows import format_raw_time, replace_placeholder, shorten_hash
from mcp_git.engine.history.cut_history import describe_boundary, list_boundary
from mcp_git.engine.history.missing_paths import refuse_missing_path
from mcp_git.engine.history.page_position import PagePosition, decode_position
from mcp_git.engine.program.git import Git, GitFailed
from mcp_git.engine.program.output import clip, split_lines
from mcp_git.engine.program.revisions import EMPTY_TREES, describe_named_revisions, explained_failures, head_has_commit
from mcp_git.models import Answer, Table, count
from mcp_git.path_quoting import escape_hidden, escape_line_breaks, quote_path, quote_paths
from mcp_git.policy import TOP_FOLDER, Range, Repository, RepositoryPath, Revision, parse_revision

__all__ = ["Comparison", "UncommittedPart", "read_conflict_sides", "read_diff", "summarize_commit"]

UncommittedPart = Literal["all", "staged", "unstaged"]

_OPTIONS = (
    "--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty", "--find-renames", "--submodule=short",
    "--src-prefix=a/", "--dst-prefix=b/", "--diff-merges=first-parent",
)  # fmt: skip
# Git needs long to shorten hashes, and nobody reads these.
_LIST_OPTIONS = ("--raw", "--no-abbrev", "--numstat", "-z")
# By the letter that git has for what became of a file.
_KINDS = {b"A": "new", b"D": "deleted"}
_COMMIT_FORMAT = "--format=%H%n%aN <%aE> %aI%n%cN <%cE> %cI%n%P%n%D%n%B%x00%N%x00"
_COMMIT_HEADER_LINES = 5
_TAG_FORMAT = (
    "%(taggername) %(taggeremail)%00%(taggerdate:raw)%00%(contents:subject)%0a%0a%(contents:body)"
    "%00%(contents:signature)"
)
_FILE_COLUMNS = ("path", "renamed_from", "kind", "added", "removed")
_MAX_FILES = 2000
_MAX_LISTED_FILES = 100
# Where only files are listed: those of a page, and those that are counted.
_MAX_FILES_OF_PAGE = 400
_MAX_COUNTED_FILES = 200_000
# The files of one run of git for the patch.
_MAX_PATHS = 200
_MAX_LINE_BYTES = 2000
_MAX_NAMES = 5
# The bytes of an index that is copied, of half a million files or so.
_MAX_INDEX_BYTES = 1 << 26
# The bytes of both sides of a conflict in the answer of what met it.
_MAX_CONFLICT_BYTES = 3000
# Lines of a patch that say nothing that the list of files does not.
_OMITTED_LINES = (b"index ", b"diff --git ", b"* Unmerged path ")
_TITLES = {"all": "uncommitted changes", "staged": "staged changes", "unstaged": "changes that are not staged"}


@dataclass(frozen=True, slots=True)
class Comparison:
    """Says what is compared with what.

    Attributes:
        revision: a commit with the one before it, or a range; None for what is not committed.
        part: of what is not committed.
        context: unchanged lines around each change.
        files_only: whether the patch is left out.
        other_path: the one that the file at `path` has on the other side; empty where it was not renamed.
    """

    revision: Revision | Range | None
    part: UncommittedPart
    path: RepositoryPath
    context: int = 3
    files_only: bool = False
    other_path: str = ""

    @property
    def title(self) -> str:
        title = _TITLES[self.part]
        if self.revision is not None:
            title = escape_line_breaks(self.revision.text)
        if self.path.text:
            title += f", {self.path.display}"
        return title

    @property
    def pathspecs(self) -> list[str]:
        if not self.path.text:
            return []
        if self.other_path:
            return [*self.path.pathspecs, self.other_path]
        return self.path.pathspecs

    @property
    def revisions(self) -> Sequence[str]:
        """The revisions in which a path may be of which nothing differs."""
        match self.revision:
            case None:
                return ()
            case Range(start=start, end=end):
                return start.text, end.text
            case Revision(text=text):
                return (text,)

    @property
    def compares_work_tree(self) -> bool:
        return self.revision is None and self.part != "staged"

    @property
    def scope(self) -> list[Any]:
        """What the cursors of this comparison are bound to."""
        revision = self.revision.text if self.revision else None
        return [revision, self.part, *self.pathspecs, self.context, self.files_only]


@dataclass(frozen=True, slots=True)
class _ChangedFile:
    """A file that differs.

    Attributes:
        renamed_from: its earlier path; empty if it has none.
        added, removed: the counts of lines; None of a binary file.
        kind: `new` or `deleted`; empty for one that is on both sides.
    """

    path: bytes
    renamed_from: bytes
    added: int | None
    removed: int | None
    kind: str = ""

    @property
    def counts(self) -> str:
        """Whether it is new or deleted, and how many lines came and went, before the name in a line."""
        counts = "binary" if self.added is None else f"+{self.added} -{self.removed}"
        return f"{self.kind} {counts} ".lstrip()

    @property
    def name(self) -> str:
        """The path, behind the earlier one if it has such."""
        path = quote_path(self.path)
        return f"{quote_path(self.renamed_from)} -> {path}" if self.renamed_from else path

    @property
    def line(self) -> str:
        return self.counts + self.name

    @property
    def values(self) -> list[str | int | None]:
        """What a row for a script has, in the order of `_FILE_COLUMNS`."""
        renamed_from = quote_path(self.renamed_from) if self.renamed_from else ""
        return [quote_path(self.path), renamed_from, self.kind, self.added, self.removed]

    @property
    def is_named_by_patch(self) -> bool:
        """Whether the lines of its patch hold its path: not those of a binary or empty file, or of another mode."""
        return bool(self.renamed_from or self.added or self.removed)

    @property
    def paths(self) -> list[str]:
        return [os.fsdecode(path) for path in filter(None, (self.renamed_from, self.path))]


def read_diff(
    git: Git, repository: Repository, comparison: Comparison, cursor: str | None, cancel: CancelToken
) -> Answer:
    """Return a page of a change."""
    position = decode_position("diff", cursor, comparison.scope)
    is_first = cursor is None
    with explained_failures(git, repository, comparison.revision, cancel):
        page = _make_page(git, repository, comparison, is_first, position, cancel)
        other_path = _find_other_path(git, repository, comparison, page, cancel)
        if other_path:
            renamed = replace(comparison, other_path=other_path)
            page = _make_page(git, repository, renamed, is_first, position, cancel)
    if not page.files and is_first:
        refuse_missing_path(git, repository, comparison.path, comparison.revisions, cancel)
    digest = _digest_files(page.files)
    if position.hashes not in ([], [digest]):
        raise Conflict("The changes are no longer those of the page before.", "Call again without `cursor`.")
    remaining = len(page.files) - page.file_index
    facts = [comparison.title, _describe_counts(page), *describe_named_revisions(page.remarks)]
    boundary = list_boundary(git.layout(repository))
    if page.oid in boundary:
        facts.append(describe_boundary(boundary, [page.oid]))
    next_cursor = None
    if remaining > 0:
        next_cursor = Cursor.encode("diff", [page.file_index, page.line_offset, [digest]], comparison.scope)
        if comparison.files_only:
            facts.append(f"{count(remaining, 'more file')} follow")
        else:
            facts.append(f"the patch of {count(remaining, 'file')} follows")
    if comparison.revision is None and not cursor:
        facts += _describe_omitted(git, repository, comparison, cancel)
    view: dict[str, Any] = {"parts": page.parts}
    if comparison == Comparison(None, "all", TOP_FOLDER) and not cursor:
        view["uri"] = repository.uri("diff")
    table = None
    if comparison.files_only:
        table = partial(Table, _FILE_COLUMNS, [file.values for file in page.listed_files])
    return Answer(facts, page.lines, next_cursor, lambda: view, table)


def _find_other_path(git: Git, repository: Repository, comparison: Comparison, page: _Page, cancel: CancelToken) -> str:
    """Return the path that the file at a path has on the other side; empty where it was not renamed.

    Of one path alone git sees a new or a deleted file.
    """
    name = os.fsencode(comparison.path.pathspec)
    if not any(file.kind and file.path == name for file in page.files):
        return ""
    arguments = [*_build_arguments(git, repository, comparison), "--name-status", "--diff-filter=R", "-z"]
    if isinstance(comparison.revision, Revision):
        arguments.append("--format=")
    with _copy_index(git, repository, comparison) as scratch_index:
        try:
            output = git.run(repository, [*arguments, "--"], cancel, scratch_index=scratch_index).stdout
        except GitFailed:
            return ""  # Before the first commit no file was renamed.
    fields = iter(output.split(b"\0")[:-1])
    for _, old, new in zip(fields, fields, fields, strict=False):
        if name in (old, new):
            return os.fsdecode(old if name == new else new)
    return ""


def summarize_commit(git: Git, repository: Repository, oid: str, cancel: CancelToken) -> tuple[str, list[str]]:
    """Return how many files and lines a commit changed, and a line for each of the first files."""
    comparison = Comparison(parse_revision(oid), "all", TOP_FOLDER, files_only=True)
    page = _make_page(git, repository, comparison, True, PagePosition(hashes=[]), cancel)
    lines = [line for line in page.lines[page.parts["files"] :] if line]
    return _describe_counts(page), lines


def _make_page(
    git: Git,
    repository: Repository,
    comparison: Comparison,
    is_first: bool,
    position: PagePosition,
    cancel: CancelToken,
) -> _Page:
    arguments = _build_arguments(git, repository, comparison)
    with _copy_index(git, repository, comparison) as scratch_index:
        page = _Page(git, repository, comparison, cancel, scratch_index)
        try:
            page.fill(arguments, is_first, position)
        except GitFailed:
            # Before the first commit there is no HEAD to compare with.
            if comparison.revision is not None or head_has_commit(git, repository, cancel):
                raise
            page = _Page(git, repository, comparison, cancel, scratch_index)
            page.fill([*arguments[:-1], _find_empty_tree(git, repository, cancel)], is_first, position)
    return page


def _digest_files(files: Sequence[_ChangedFile]) -> str:
    lines = [f"{file.line} {file.renamed_from!r}" for file in files]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _describe_counts(page: _Page) -> str:
    if not page.files:
        return "no changes"
    files = count(len(page.files), "file")
    if page.is_cut:
        files += " or more"
    added = sum(file.added or 0 for file in page.files)
    removed = sum(file.removed or 0 for file in page.files)
    return f"{files}, +{added:,} -{removed:,}"


@contextmanager
def _copy_index(git: Git, repository: Repository, comparison: Comparison) -> Generator[str]:
    """Copy the index (`Git.copy_index`) for a comparison with the work tree; empty for others.

    Of files that have another time and the same contents `git diff` puts the time down in the index, under its lock,
    whatever GIT_OPTIONAL_LOCKS says. One that is not a file, or very large, is left to git: most often git refuses it.
    """
    with ExitStack() as stack:
        folder = ""
        if comparison.compares_work_tree:
            layout = git.layout(repository)
            if _can_be_copied(os.path.join(layout.git_dir, "index")):
                with suppress(FileNotFoundError):  # A git that ends has just taken it away.
                    folder = stack.enter_context(git.copy_index(layout))
        yield folder


def _can_be_copied(index: str) -> bool:
    try:
        status = os.stat(index)
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size <= _MAX_INDEX_BYTES


def _describe_omitted(git: Git, repository: Repository, comparison: Comparison, cancel: CancelToken) -> list[str]:
    """Return what is in conflict, and new files, which no comparison shows until they are staged."""
    arguments = ["ls-files", "-z", "-t", "--unmerged", "--exclude-standard", "--directory", "--no-empty-directory"]
    if comparison.part != "staged":
        arguments.append("--others")
    untracked: list[bytes] = []
    # A file in conflict has a record for each of its sides.
    conflicts: dict[bytes, None] = {}
    arguments += ["--", *comparison.pathspecs]
    output = git.run(repository, arguments, cancel, literal_paths=not comparison.path.is_glob)
    for record in output.stdout.split(b"\0")[:-1]:
        if record.startswith(b"? "):
            untracked.append(record[2:])
        elif record.startswith(b"M "):
            conflicts[record.partition(b"\t")[2]] = None
    facts: list[str] = []
    if conflicts:
        facts.append(f"{len(conflicts):,} in conflict: {_name_files(list(conflicts))}")
    if untracked:
        facts.append(f"{len(untracked):,} untracked not shown: {_name_files(untracked)}")
    return facts


def _name_files(paths: Sequence[bytes]) -> str:
    names = ", ".join(quote_paths(paths[:_MAX_NAMES]))
    if len(paths) > _MAX_NAMES:
        names += ", ..."
    return names


class _Page:
    """A page as it is made.

    Attributes:
        parts: where in `lines` the message, the list of files and the patch begin.
        listed_files: those of this page.
        is_cut: whether there are more files than are listed.
        remarks: what git said besides.
        oid: the hash of the commit, on the first page of one.
        file_index, line_offset: the file, and the line of its patch, with which the next page goes on.
    """

    def __init__(
        self, git: Git, repository: Repository, comparison: Comparison, cancel: CancelToken, scratch_index: str
    ) -> None:
        self._git = git
        self._repository = repository
        self._comparison = comparison
        self._cancel = cancel
        self._scratch_index = scratch_index
        self._remaining_bytes = DEFAULT_PAGE_BYTES
        self.lines: list[str] = []
        self.files: list[_ChangedFile] = []
        self.listed_files: Sequence[_ChangedFile] = []
        self.is_cut = False
        self.remarks: list[str] = []
        self.oid = ""
        self.parts = {"message": 0, "files": 0, "patch": 0}
        self.file_index = 0
        self.line_offset = 0

    def fill(self, arguments: Sequence[str], is_first: bool, position: PagePosition) -> None:
        """Run git: once for the first page of what is committed, else once for the counts and once for the patch.

        Raises:
            Invalid: there is no such page any more.
            GitFailed: git can't compare it.
        """
        self.file_index = position.skip
        self.line_offset = position.offset
        patch_arguments = [*arguments, f"--unified={self._comparison.context}", "--patch"]
        is_committed = self._comparison.revision is not None
        reads_both = is_first and is_committed and not self._comparison.files_only
        counts_arguments = patch_arguments if reads_both else arguments
        counts_arguments = [*counts_arguments, *_LIST_OPTIONS, "--", *self._comparison.pathspecs]
        with self._stream(counts_arguments, literal_paths=not self._comparison.path.is_glob) as pieces:
            reader = _RecordReader(pieces)
            self._read_list(reader, is_first)
            if self._comparison.files_only:
                if not is_first:
                    self._add_files()
                self.file_index = min(self.file_index + _MAX_FILES_OF_PAGE, len(self.files))
                return
            if reads_both and not self.is_cut:
                self._read_all_patches(reader)
                return
        self._read_patches(patch_arguments)

    def _read_all_patches(self, reader: _RecordReader) -> None:
        """Read the patches of all files, which follow their list."""
        is_full = self._read_patch(reader, len(self.files))
        if not is_full:
            self.file_index = len(self.files)
            self.line_offset = 0

    def _stream(
        self, arguments: Sequence[str], *, literal_paths: bool = True
    ) -> AbstractContextManager[Generator[bytes]]:
        return self._git.stream(
            self._repository,
            arguments,
            self._cancel,
            literal_paths=literal_paths,
            scratch_index=self._scratch_index,
            remarks=self.remarks,
        )

    def _read_list(self, reader: _RecordReader, is_first: bool) -> None:
        """Read the commit and the list of files, and show them on the first page."""
        if isinstance(self._comparison.revision, Revision):
            header = reader.take(b"\0") or b""
            notes = reader.take(b"\0") or b""
            if is_first:
                self._add_commit(header)
                self._add_notes(notes)
        self._read_counts(reader)
        if is_first:
            self._add_files()
        elif self.file_index >= len(self.files):
            raise Invalid("What the `cursor` goes on with is gone.", "Call again without `cursor`.")

    def _read_patches(self, arguments: Sequence[str]) -> None:
        """Read the patches of the files from the current one on, until the page is full."""
        if isinstance(self._comparison.revision, Revision):
            arguments = [*arguments, "--format="]
        while self.file_index < len(self.files):
            end = min(self.file_index + _MAX_PATHS, len(self.files))
            paths: list[str] = []
            for file in self.files[self.file_index : end]:
                paths += file.paths
            with self._stream([*arguments, "--", *paths]) as pieces:
                if self._read_patch(_RecordReader(pieces), end):
                    return
            self.file_index = end
            self.line_offset = 0

    def _add_commit(self, header: bytes) -> None:
        """Add who made a commit, and its message."""
        text = clip(header.decode("utf-8", "replace").rstrip(), DEFAULT_PAGE_BYTES // 2)
        lines = text.split("\n") + [""] * _COMMIT_HEADER_LINES
        oid, author, committer, parents, refs, *message = lines
        self.oid = oid
        revision = self._comparison.revision
        if revision is not None and f"tag: {revision.text}" in refs.split(", "):
            self.lines += _describe_tag(self._git, self._repository, revision.text, self._cancel)
        self.lines += [f"{oid} {escape_line_breaks(refs)}".rstrip(), _describe_identity(author)]
        if committer != author:
            self.lines.append(f"committed by {_describe_identity(committer)}")
        if " " in parents:
            self.lines.append(self._describe_parents(parents.split(), message[0]))
        while message and not message[-1].strip():
            message.pop()
        self.lines += ["", *map(escape_hidden, message), ""]

    def _describe_parents(self, parents: Sequence[str], subject: str) -> str:
        line = f"merge of {' '.join(map(shorten_hash, parents))}; shown against the first"
        is_stash = subject.startswith(("WIP on ", "On "))
        if is_stash and len(parents) == 3 and self._read_subject(parents[2]).startswith("untracked files on "):
            arguments = ["ls-tree", "-r", "--name-only", "-z", parents[2], "--"]
            names = self._git.run(self._repository, arguments, self._cancel).stdout.split(b"\0")[:-1]
            line += f"; untracked files that were put aside are in the last, {_name_files(names)}"
        return line

    def _read_subject(self, oid: str) -> str:
        arguments = ["log", "--max-count=1", "--format=%s", oid, "--"]
        return self._git.run(self._repository, arguments, self._cancel, exit_codes=(0, 128)).text

    def _add_notes(self, notes: bytes) -> None:
        """Add what was noted at a commit later."""
        text = clip(notes.decode("utf-8", "replace").strip("\n"), DEFAULT_PAGE_BYTES // 4)
        if text:
            self.lines += ["Notes:", *map(escape_hidden, text.split("\n")), ""]

    def _read_counts(self, reader: _RecordReader) -> None:
        """Read what became of the files, then their counts; behind them comes nothing, or an empty record and the
        patch."""
        kinds: dict[bytes, str] = {}
        while (record := reader.take(b"\0")) is not None:
            record = record.lstrip(b"\n")
            if record.startswith(b":"):
                _read_kind(reader, record, kinds)
                continue
            fields = record.split(b"\t", 2)
            fields += [b""] * (3 - len(fields))
            added, removed, name = fields
            if not name and not added:
                if self.files:
                    return
                continue
            file = _read_counted_file(reader, added, removed, name)
            self.files.append(replace(file, kind=kinds.get(file.path, "")))
            if len(self.files) == (_MAX_COUNTED_FILES if self._comparison.files_only else _MAX_FILES):
                self.is_cut = True
                return

    def _add_files(self) -> None:
        self.parts["files"] = len(self.lines)
        start = 0
        limit = _MAX_LISTED_FILES
        if self._comparison.files_only:
            start = self.file_index
            limit = _MAX_FILES_OF_PAGE
        self.listed_files = self.files[start : start + limit]
        self.lines += group_by_folder((file.counts, file.name, ()) for file in self.listed_files)
        hidden = len(self.files) - limit
        if hidden > 0 and not self._comparison.files_only:
            self.lines.append(f"… and {hidden:,} more files")
        if self.files and not self._comparison.files_only:
            self.lines.append("")
        self.parts["patch"] = len(self.lines)
        self._remaining_bytes -= sum(len(line.encode("utf-8", "replace")) + 1 for line in self.lines)

    def _read_patch(self, reader: _RecordReader, end: int) -> bool:
        """Add lines of the patch of the files up to `end`; True if the page is full, and the next begins at the line
        that did not fit."""
        index = self.file_index - 1
        line_number = 0
        header = b""
        first_line = len(self.lines)
        while (line := reader.take(b"\n")) is not None:
            # A file that became a link has two patches with one header.
            if line.startswith(b"diff --") and line != header:
                index += 1
                line_number = 0
                header = line
            line_number += 1
            if not self._begins_by(index, line_number) or index >= end:
                continue
            text = _format_line(line)
            self._remaining_bytes -= len(text.encode("utf-8", "replace")) + 1
            # A page has one line at least, so that pages come to an end.
            has_content = len(self.lines) > first_line or index > self.file_index or self.parts["patch"]
            if self._remaining_bytes < 0 and has_content:
                self.file_index = index
                self.line_offset = line_number - 1
                return True
            self._add_patch_line(line, text, index)
        return False

    def _begins_by(self, index: int, line_number: int) -> bool:
        """Whether this page begins with a line of a file's patch, or before it."""
        if index == self.file_index:
            return line_number > self.line_offset
        return index > self.file_index

    def _add_patch_line(self, line: bytes, text: str, index: int) -> None:
        if not line.startswith(_OMITTED_LINES):
            self.lines.append(text)
        elif line.startswith(b"diff --git ") and not self.files[index].is_named_by_patch:
            self.lines.append(self.files[index].line)


def _read_kind(reader: _RecordReader, record: bytes, kinds: dict[bytes, str]) -> None:
    """Read the rest of a record of `--raw`, and keep by its path what became of a file that is on one side only."""
    letter = record.rpartition(b" ")[2][:1]
    path = reader.take(b"\0") or b""
    if letter in (b"R", b"C"):
        reader.take(b"\0")
    if letter in _KINDS:
        kinds[path] = _KINDS[letter]


def _read_counted_file(reader: _RecordReader, added: bytes, removed: bytes, name: bytes) -> _ChangedFile:
    """Return the file of a record of `--numstat`; if that has no name, the next two are the earlier one and the new."""
    renamed_from = b""
    if not name:
        renamed_from = reader.take(b"\0") or b""
        name = reader.take(b"\0") or b""
    if added == b"-":
        return _ChangedFile(name, renamed_from, None, None)
    return _ChangedFile(name, renamed_from, int(added), int(removed))


def _describe_tag(git: Git, repository: Repository, name: str, cancel: CancelToken) -> list[str]:
    """Return who made an annotated tag, and its text; nothing for a tag that is only a name."""
    output = git.run(repository, ["for-each-ref", f"--format={_TAG_FORMAT}", f"refs/tags/{name}"], cancel)
    # A tag that is only a name prints no more than the ends of the fields.
    tagger, date, text, signature = output.text.split("\0", 3)
    if not tagger.strip():
        return []
    line = f"tagged by {escape_line_breaks(tagger)} {format_raw_time(date)}"
    if signature.strip():
        line += ", signed (the signature is not checked here)"
    lines = clip(text.strip("\n"), DEFAULT_PAGE_BYTES // 4).split("\n")
    return [line, "", *map(escape_hidden, lines), ""]


def _describe_identity(line: str) -> str:
    """Return who did something and when, as git printed it, with question marks for what a commit does not say."""
    person, _, date = line.rpartition(" ")
    name, _, address = person.rpartition(" ")
    if replace_placeholder(name) != name:
        # Git prints both or neither of them.
        return f"? {replace_placeholder(date)}"
    return escape_line_breaks(f"{name} {address} {replace_placeholder(date)}")


class _RecordReader:
    """Takes apart what git prints, where one run prints several kinds of records."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._data = b""
        self._start = 0

    def take(self, end: bytes) -> bytes | None:
        """Return what stands before the next `end`, or after the last one; None at the end of all."""
        position = self._data.find(end, self._start)
        if position < 0:
            return self._take_across_pieces(end)
        record = self._data[self._start : position]
        self._start = position + 1
        return record

    def _take_across_pieces(self, end: bytes) -> bytes | None:
        """Return what stands before the next `end`, which is in a piece that is not read yet."""
        parts = [self._data[self._start :]]
        self._data = b""
        self._start = 0
        for piece in self._pieces:
            position = piece.find(end)
            if position >= 0:
                self._data = piece
                self._start = position + 1
                return b"".join([*parts, piece[:position]])
            parts.append(piece)
        return b"".join(parts) or None


def _build_arguments(git: Git, repository: Repository, comparison: Comparison) -> list[str]:
    """Return the command that compares, to which the form of its answer is added."""
    match comparison.revision:
        case Range(start=start, dots="..", end=end):
            return ["diff", *_OPTIONS, start.text, end.text]
        case Range(text=text):
            return ["diff", *_OPTIONS, text]
        case Revision(text=text, is_conflict_side=is_conflict_side):
            if is_conflict_side:
                fix = "Read the file with that `rev`, or leave it out."
                raise Invalid("A side of a conflict is not a change.", fix)
            return ["show", *_OPTIONS, _COMMIT_FORMAT, text + "^{commit}"]
        case None:
            return _build_uncommitted_arguments(git, repository, comparison.part)


def _build_uncommitted_arguments(git: Git, repository: Repository, part: UncommittedPart) -> list[str]:
    if git.layout(repository).work_tree is None:
        raise NotFound("A bare repository has no work tree, so nothing in it is `uncommitted`.", "Name a `rev`.")
    match part:
        case "unstaged":
            return ["diff", *_OPTIONS]
        case "staged":
            return ["diff", *_OPTIONS, "--cached", "HEAD"]
        case "all":
            return ["diff", *_OPTIONS, "HEAD"]


def _find_empty_tree(git: Git, repository: Repository, cancel: CancelToken) -> str:
    algorithm = git.run(repository, ["rev-parse", "--show-object-format"], cancel).text.strip()
    return EMPTY_TREES[64 if algorithm == "sha256" else 40]


def _format_line(line: bytes) -> str:
    text = line.decode("utf-8", "replace")
    if len(text) <= _MAX_LINE_BYTES:
        return text
    return f"{clip(text, _MAX_LINE_BYTES)} [{len(line):,} bytes]"


def read_conflict_sides(
    git: Git, repository: Repository, paths: Sequence[bytes], cancel: CancelToken
) -> dict[str, list[str]]:
    """Return the lines of both sides of each file in conflict, by its name as answers have it, as far as there is
    room."""
    arguments = ["diff", *_OPTIONS, "--unified=1", "--", *map(os.fsdecode, paths)]
    output = git.run(repository, arguments, cancel, max_bytes=_MAX_CONFLICT_BYTES)
    lines = split_lines(output)
    if output.is_cut:
        lines[-1] = "@@@ `read_diff` has the rest"
    return _group_by_file(lines)


def _group_by_file(lines: Sequence[str]) -> dict[str, list[str]]:
    """Group the lines of a combined diff by their file, without its header."""
    sides: dict[str, list[str]] = {}
    name = ""
    side_lines: list[str] | None = None
    for line in lines:
        if line.startswith("diff --cc "):
            name = line.removeprefix("diff --cc ")
            side_lines = None
        elif line.startswith("@@@") and side_lines is None:
            side_lines = sides[name] = []
        if side_lines is not None and not line.startswith("* "):
            side_lines.append(clip(line.rstrip("\r"), _MAX_LINE_BYTES))
    return sides
