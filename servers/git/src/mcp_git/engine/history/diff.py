"""Shows what changed: first the files with their counts, then the patch in pages.

A page compares only the files that it shows, so that a large change costs no more than the shown part.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Literal

from mcp_batteries.errors import Conflict, Invalid, NotFound
from mcp_batteries.limits import DEFAULT_PAGE_BYTES, Cursor, Stop
from mcp_batteries.server.results import below
from mcp_git.engine.history.missing_paths import refuse_missing_path
from mcp_git.engine.history.page_position import decode_position
from mcp_git.engine.program.git import Git, GitFailed
from mcp_git.engine.program.output import clip, split_lines
from mcp_git.engine.program.revisions import EMPTY_TREES, explain_failure, head_has_commit
from mcp_git.models import Answer, count
from mcp_git.path_quoting import escape_line_breaks, quote_path
from mcp_git.policy import Policy, Range, Repository, RepositoryPath, Revision

__all__ = ["Comparison", "UncommittedPart", "read_conflict_sides", "read_diff"]

UncommittedPart = Literal["all", "staged", "unstaged"]

_OPTIONS = (
    "--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty", "--find-renames", "--submodule=short",
    "--src-prefix=a/", "--dst-prefix=b/", "--diff-merges=first-parent",
)  # fmt: skip
_HEAD = "--format=%H%n%aN <%aE> %aI%n%P%n%D%n%B%x00%N%x00"
_MOST_FILES = 2000
_MOST_LISTED = 100
_MOST_PATHS = 200
"""Files of one run of git for the patch."""
_MOST_LINE = 2000
_MOST_NAMED = 5
_MOST_INDEX = 1 << 26
"""Bytes of an index that is copied, of half a million files or so."""
_MOST_OF_BOTH = 3000
"""Bytes of both sides of a conflict in the answer of what met it."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is compared with what.

    Attributes:
        revision: a commit with the one before it, or a range; None for what is not committed.
        part: of what is not committed.
        context: unchanged lines around each change.
        files_only: whether the patch is left out.
    """

    revision: Revision | Range | None
    part: UncommittedPart
    place: RepositoryPath
    context: int = 3
    files_only: bool = False

    @property
    def title(self) -> str:
        what = {"all": "uncommitted changes", "staged": "staged changes", "unstaged": "changes that are not staged"}
        title = what[self.part] if self.revision is None else escape_line_breaks(self.revision.text)
        return f"{title}, {self.place.display}" if self.place.text else title


@dataclass(frozen=True, slots=True)
class _File:
    """A file that differs; `added` and `removed` are None of a binary one."""

    path: bytes
    before: bytes
    added: int | None
    removed: int | None

    @property
    def counts(self) -> str:
        """What stands before the path in a line."""
        counts = "binary " if self.added is None else f"+{self.added} -{self.removed} "
        return f"{counts}{quote_path(self.before)} -> " if self.before else counts

    @property
    def line(self) -> str:
        return self.counts + quote_path(self.path)

    @property
    def paths(self) -> list[str]:
        return [os.fsdecode(path) for path in (self.before, self.path) if path]


def read_diff(
    git: Git, policy: Policy, repository: Repository, compared: Comparison, cursor: str | None, stop: Stop
) -> Answer:
    """A page of a change."""
    scope = [
        compared.revision.text if compared.revision else None, compared.part, compared.place.text, compared.context,
    ]  # fmt: skip
    begin, begun = decode_position("diff", cursor, scope)
    try:
        words = _words(git, repository, compared)
        with _own_index(git, repository, compared) as beside:
            page = _Page(git, repository, compared, stop, beside)
            try:
                page.make(words, cursor is None, begin)
            except GitFailed:
                # Before the first commit there is no HEAD to compare with.
                if compared.revision is not None or head_has_commit(git, repository, stop):
                    raise
                page = _Page(git, repository, compared, stop, beside)
                page.make([*words[:-1], _empty_tree(git, repository, stop)], cursor is None, begin)
    except GitFailed as failure:
        raise explain_failure(failure, git, repository, compared.revision, stop) from None
    files, index = page.files, page.index
    if not files and cursor is None:
        refuse_missing_path(git, repository, compared.place, _compared(compared.revision), stop)
    seen = hashlib.sha256("\n".join(f"{file.line} {file.before!r}" for file in files).encode()).hexdigest()
    if begun not in ([], [seen]):
        raise Conflict("The changes are no longer those of the page before.", "Call again without `cursor`.")
    added, removed = sum(file.added or 0 for file in files), sum(file.removed or 0 for file in files)
    more = " or more" if page.cut else ""
    counts = f"{count(len(files), 'file')}{more}, +{added:,} -{removed:,}" if files else "no changes"
    following = Cursor.encode("diff", [index, page.offset, [seen]], scope) if index < len(files) else None
    facts = [compared.title, counts]
    if following is not None:
        facts.append(f"the patch of {count(len(files) - index, 'file')} follows")
    if compared.revision is None and not cursor:
        facts += _left_out(git, repository, compared, stop)
    structured: dict[str, Any] = {"parts": page.parts}
    if compared == Comparison(None, "all", policy.parse_path("")) and not cursor:
        structured["uri"] = repository.uri("diff")
    return Answer(facts, page.lines, following, lambda: structured)


@contextmanager
def _own_index(git: Git, repository: Repository, compared: Comparison) -> Generator[str]:
    """A copy of the index (`Git.own_index`) for a comparison with the work tree; empty for others.

    Of files that have another time and the same contents `git diff` puts the time down in the index, under its lock,
    whatever GIT_OPTIONAL_LOCKS says. One that is not a file, or very large, is left to git: most often git refuses it.
    """
    with ExitStack() as stack:
        beside = ""
        if compared.revision is None and compared.part != "staged":
            layout = git.layout(repository)
            if _can_be_copied(os.path.join(layout.git_dir, "index")):
                with suppress(FileNotFoundError):  # a git that ends has just taken it away
                    beside = stack.enter_context(git.copy_index(layout))
        yield beside


def _can_be_copied(index: str) -> bool:
    try:
        found = os.stat(index)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size <= _MOST_INDEX


def _compared(revision: Revision | Range | None) -> Sequence[str]:
    """The revisions in which a path may be of which nothing differs."""
    if isinstance(revision, Range):
        return revision.start.text, revision.end.text
    return (revision.text,) if revision else ()


def _left_out(git: Git, repository: Repository, compared: Comparison, stop: Stop) -> list[str]:
    """What is in conflict, and new files, which no comparison shows until they are staged."""
    words = ["ls-files", "-z", "-t", "--unmerged", "--exclude-standard", "--directory", "--no-empty-directory"]
    words += [
        *(["--others"] if compared.part != "staged" else []),
        "--",
        *([compared.place.text] * bool(compared.place.text)),
    ]
    listed = git.run(repository, words, stop).stdout.split(b"\0")[:-1]
    new = [item[2:] for item in listed if item.startswith(b"? ")]
    conflicts = list(dict.fromkeys(item.partition(b"\t")[2] for item in listed if item.startswith(b"M ")))
    found = [(conflicts, "in conflict"), (new, "untracked not shown")]
    return [f"{len(paths):,} {what}: {_named(paths)}" for paths, what in found if paths]


def _named(paths: Sequence[bytes]) -> str:
    return ", ".join(quote_path(path) for path in paths[:_MOST_NAMED]) + ", ..." * (len(paths) > _MOST_NAMED)


class _Page:
    """A page as it is made.

    Attributes:
        parts: where in `lines` the message, the list of files and the patch begin.
        index, offset: the file, and the line of its patch, with which the next page goes on.
    """

    def __init__(self, git: Git, repository: Repository, compared: Comparison, stop: Stop, beside: str) -> None:
        self._git, self._repository, self._compared, self._stop = git, repository, compared, stop
        self._beside = beside
        self.lines: list[str] = []
        self.files: list[_File] = []
        self.cut = False
        self.parts = {"message": 0, "files": 0, "patch": 0}
        self.index = self.offset = 0
        self._room = DEFAULT_PAGE_BYTES

    def make(self, words: Sequence[str], is_first: bool, begin: Sequence[int]) -> None:
        """Run git: once for the first page of what is committed, else once for the counts and once for the patch.

        Raises:
            Invalid: there is no such page any more.
            Failed: git can't compare it.
        """
        self.index, self.offset = begin
        place = self._compared.place.text
        at = ["--", *([place] if place else [])]
        patch = [*words, f"--unified={self._compared.context}", "--patch"]
        together = is_first and self._compared.revision is not None and not self._compared.files_only
        counts = [*(patch if together else words), "--numstat", "-z", *at]
        with self._git.stream(self._repository, counts, self._stop, scratch_index=self._beside) as pieces:
            reader = _Reader(pieces)
            if isinstance(self._compared.revision, Revision):
                self._head(reader.take(b"\0") or b"", reader.take(b"\0") or b"", is_first)
            self._count(reader)
            if not is_first and self.index >= len(self.files):
                raise Invalid("What the `cursor` goes on with is gone.", "Call again without `cursor`.")
            if is_first:
                self._list()
            if self._compared.files_only:
                self.index = len(self.files)
                return
            if together and not self.cut:
                if not self._take(reader, len(self.files)):
                    self.index, self.offset = len(self.files), 0
                return
        while self.index < len(self.files):
            end = min(self.index + _MOST_PATHS, len(self.files))
            paths = [path for file in self.files[self.index : end] for path in file.paths]
            silent = ["--format="] * isinstance(self._compared.revision, Revision)
            words = [*patch, *silent, "--", *paths]
            with self._git.stream(self._repository, words, self._stop, scratch_index=self._beside) as pieces:
                if self._take(_Reader(pieces), end):
                    return
            self.index, self.offset = end, 0

    def _head(self, told: bytes, noted: bytes, is_first: bool) -> None:
        """Of a commit who made it, its message, and what was noted later."""
        text = clip(told.decode("utf-8", "replace").rstrip(), DEFAULT_PAGE_BYTES // 2)
        oid, author, parents, refs, *message = text.split("\n") + [""] * 4
        if not is_first:
            return
        self.lines = [f"{oid} {escape_line_breaks(refs)}".rstrip(), escape_line_breaks(author)]
        if " " in parents:
            named = " ".join(parent[:9] for parent in parents.split())
            self.lines.append(f"merge of {named}; shown against the first")
            if message[0].startswith(("WIP on ", "On ")) and parents.count(" ") == 2:
                self.lines[-1] += "; untracked files that were put aside are in the last"
        while message and not message[-1].strip():
            message.pop()
        self.lines += ["", *message, ""]
        if notes := clip(noted.decode("utf-8", "replace").strip("\n"), DEFAULT_PAGE_BYTES // 4):
            self.lines += ["Notes:", *notes.split("\n"), ""]

    def _count(self, reader: _Reader) -> None:
        """Read the files and their counts; behind them comes nothing, or an empty item and the patch."""
        while (item := reader.take(b"\0")) is not None:
            added, removed, name = ([*item.lstrip(b"\n").split(b"\t", 2), b"", b""])[:3]
            if not name and not added:
                if self.files:
                    return
                continue
            before = b"" if name else reader.take(b"\0") or b""
            name = name or reader.take(b"\0") or b""
            counts = (None, None) if added == b"-" else (int(added), int(removed))
            self.files.append(_File(name, before, *counts))
            if len(self.files) == _MOST_FILES:
                self.cut = True
                return

    def _list(self) -> None:
        self.parts["files"] = len(self.lines)
        most = _MOST_FILES if self._compared.files_only else _MOST_LISTED
        self.lines += below((file.counts, quote_path(file.path), ()) for file in self.files[:most])
        more = len(self.files) - most
        self.lines += [*([f"… and {more:,} more files"] if more > 0 else []), *([""] if self.files else [])]
        self.parts["patch"] = len(self.lines)
        self._room -= sum(len(line.encode("utf-8", "replace")) + 1 for line in self.lines)

    def _take(self, reader: _Reader, end: int) -> bool:
        """Add lines of the patch of the files up to `end`; whether the page is full, and where then the next begins."""
        at, line_of, header = self.index - 1, 0, b""
        first = len(self.lines)
        while (line := reader.take(b"\n")) is not None:
            # A file that became a link has two patches with one header.
            if line.startswith(b"diff --") and line != header:
                at, line_of, header = at + 1, 0, line
            line_of += 1
            if at < self.index or (at == self.index and line_of <= self.offset) or at >= end:
                continue
            text = _text(line)
            self._room -= len(text.encode("utf-8", "replace")) + 1
            if self._room < 0 and (len(self.lines) > first or at > self.index or self.parts["patch"]):
                self.index, self.offset = at, line_of - 1
                return True
            if not line.startswith((b"index ", b"diff --git ", b"* Unmerged path ")):
                self.lines.append(text)
            elif line.startswith(b"diff --git ") and self.files[at].added is None:
                self.lines.append(self.files[at].line)
        return False


class _Reader:
    """Takes apart what git prints, where one run prints several kinds of things."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._data, self._at = pieces, b"", 0

    def take(self, end: bytes) -> bytes | None:
        """What stands before the next `end`, or before the last one nothing; None at the end of all."""
        found = self._data.find(end, self._at)
        while found < 0:
            piece = next(self._pieces, b"")
            if not piece:
                rest, self._data, self._at = self._data[self._at :], b"", 0
                return rest or None
            searched = len(self._data) - self._at
            self._data, self._at = self._data[self._at :] + piece, 0
            found = self._data.find(end, searched)
        item, self._at = self._data[self._at : found], found + 1
        return item


def _words(git: Git, repository: Repository, compared: Comparison) -> list[str]:
    """The command that compares, to which the form of its answer is added."""
    match compared.revision:
        case Range(start=start, dots="..", end=end):
            return ["diff", *_OPTIONS, start.text, end.text]
        case Range():
            return ["diff", *_OPTIONS, compared.revision.text]
        case Revision(text=text):
            if compared.revision.is_conflict_side:
                raise Invalid(
                    "A side of a conflict is not a change.", "Read the file with that `rev`, or leave it out."
                )
            return ["show", *_OPTIONS, _HEAD, text + "^{commit}"]
        case None:
            pass
    if git.layout(repository).work_tree is None:
        raise NotFound("A bare repository has no work tree, so nothing in it is `uncommitted`.", "Name a `rev`.")
    if compared.part == "unstaged":
        return ["diff", *_OPTIONS]
    return ["diff", *_OPTIONS, *(["--cached"] if compared.part == "staged" else []), "HEAD"]


def _empty_tree(git: Git, repository: Repository, stop: Stop) -> str:
    algorithm = git.run(repository, ["rev-parse", "--show-object-format"], stop).text.strip()
    return EMPTY_TREES[64 if algorithm == "sha256" else 40]


def _text(line: bytes) -> str:
    text = line.decode("utf-8", "replace")
    return text if len(text) <= _MOST_LINE else f"{clip(text, _MOST_LINE)} [{len(line):,} bytes]"


def read_conflict_sides(git: Git, repository: Repository, paths: Sequence[bytes], stop: Stop) -> dict[str, list[str]]:
    """Of each file in conflict, by its name as answers have it, the lines of both sides, as far as there is room."""
    words = ["diff", *_OPTIONS, "--unified=1", "--", *map(os.fsdecode, paths)]
    found = git.run(repository, words, stop, max_bytes=_MOST_OF_BOTH)
    lines = split_lines(found)
    if found.is_cut:
        lines[-1] = "@@@ `read_diff` has the rest"
    by_name: dict[str, list[str]] = {}
    name, shows = "", None
    for line in lines:
        if line.startswith("diff --cc "):
            shows, name = None, line[10:]
        elif line.startswith("@@@") and shows is None:
            shows = by_name[name] = []
        if shows is not None and not line.startswith("* "):
            shows.append(clip(line.rstrip("\r"), _MOST_LINE))
    return by_name
