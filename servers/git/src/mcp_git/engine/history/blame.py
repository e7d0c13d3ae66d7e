"""Shows who last changed each line of a file, grouped by commit."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

from mcp_batteries.clipping import DEFAULT_PAGE_BYTES
from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Invalid, NotFound, quote
from mcp_git.engine.history.commit_rows import shorten_hash
from mcp_git.engine.history.cut_history import describe_boundary, list_boundary
from mcp_git.engine.history.missing_paths import suggest_path
from mcp_git.engine.program.git import Git, GitFailed
from mcp_git.engine.program.output import clip, split_records
from mcp_git.engine.program.revisions import describe_named_revisions, explain_failure
from mcp_git.models import Answer
from mcp_git.path_quoting import escape_line_breaks, quote_path
from mcp_git.policy import HEAD, LineRange, Repository, RepositoryPath, Revision
from mcp_git.repository_paths import is_inside

__all__ = ["LineSpan", "blame_lines", "resolve_lines"]

_MAX_HEADING_BYTES = 120
_MAX_LINE_BYTES = 300
_MIN_HASH_LENGTH = 40
_NO_LETTER = "[^A-Za-z0-9_]"


@dataclass
class _BlamePage:
    """A page of lines as it is read.

    Attributes:
        lines: those of the answer: the heading of a commit, and the lines of the file that it changed.
        end_line: the last line that was asked for; git is asked for one more, which tells whether the file has more.
        next_line: the number of the line behind the page; None if the file ends there.
        last_line: the number of the line that was read last.
        oids: the hashes of the commits that are shown.
    """

    end_line: int
    last_line: int
    lines: list[str] = field(default_factory=list[str])
    next_line: int | None = None
    oids: set[str] = field(default_factory=set[str])
    _remaining_bytes: int = DEFAULT_PAGE_BYTES
    _details: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])

    def read(self, records: Iterable[bytes]) -> None:
        """Read what `git blame --porcelain` prints: before each line its commit, and the first time its details."""
        oid = ""
        listed_oid = ""
        for record in records:
            if not record.startswith(b"\t"):
                oid = self._read_header(record, oid)
                continue
            if self.last_line > self.end_line:
                self.next_line = self.last_line
                return
            added: list[str] = []
            if oid != listed_oid:
                added.append(_format_heading(oid, self._details.get(oid, {})))
            text = record[1:].decode("utf-8", "replace").rstrip("\r")
            added.append(f"{self.last_line}: {clip(text, _MAX_LINE_BYTES)}")
            self._remaining_bytes -= sum(len(line.encode("utf-8", "replace")) + 1 for line in added)
            if self._remaining_bytes < 0 and self.lines:
                self.next_line = self.last_line
                return
            self.lines += added
            listed_oid = oid
            self.oids.add(oid)

    def _read_header(self, record: bytes, oid: str) -> str:
        """Read the numbers of a line or a detail of its commit, and return the hash of that commit."""
        key, _, value = record.decode("utf-8", "replace").partition(" ")
        if len(key) >= _MIN_HASH_LENGTH and value[:1].isdigit():
            self.last_line = int(value.split()[1])
            return key
        if oid:
            self._details.setdefault(oid, {})[key] = value
        return oid


@dataclass(frozen=True, slots=True)
class _SkipList:
    """The file that names commits to pass over, such as those that only changed how code is laid out.

    Attributes:
        name: what the configuration has as `blame.ignoreRevsFile`; empty for nothing.
    """

    name: str
    work_tree: str | None

    @property
    def is_used(self) -> bool:
        """Whether it is a file in the work tree, to which no link leads."""
        if not self.name or self.work_tree is None:
            return False
        path = os.path.join(self.work_tree, self.name)
        return is_inside(path, self.work_tree) and os.path.realpath(path) == path and os.path.isfile(path)

    def describe(self) -> list[str]:
        """Return a part of the first line; none without such a file."""
        if self.is_used:
            return [f"without the commits in {quote_path(os.fsencode(self.name))}"]
        if self.name:
            return ["with the commits that `blame.ignoreRevsFile` names, a file that is not read here"]
        return []


def blame_lines(
    git: Git,
    repository: Repository,
    path: RepositoryPath,
    revision: Revision | None,
    first: int,
    last: int,
    cancel: CancelToken,
) -> Answer:
    """Return the lines from `first` to `last`, as many as a page holds.

    Args:
        revision: None for the file as it is in the work tree.
    """
    if not path.text:
        raise Invalid("`path` names a folder.", "Name a file; `list_files` has them.")
    layout = git.layout(repository)
    if revision is None and layout.work_tree is None:
        revision = HEAD
    arguments = ["blame", "--porcelain", f"-L{first},{last + 1}"]
    skip_list = _SkipList(git.read_unheeded_configuration(repository).get("blame.ignorerevsfile", ""), layout.work_tree)
    if skip_list.is_used:
        arguments.append(f"--ignore-revs-file={skip_list.name}")
    if revision is not None:
        arguments.append(revision.text)
    arguments += ["--", path.text]
    page = _BlamePage(end_line=last, last_line=first - 1)
    remarks: list[str] = []
    try:
        with git.stream(repository, arguments, cancel, layout=layout, remarks=remarks) as pieces:
            page.read(split_records(pieces, b"\n"))
    except GitFailed as failure:
        if first == 1 and "has only 0 lines" in failure.stderr:
            return Answer([f"{path.display} is empty"])
        if skip_list.is_used and "invalid object name" in failure.stderr:
            raise Invalid(
                f"{quote(quote_path(os.fsencode(skip_list.name)))}, which `blame.ignoreRevsFile` names, has a line "
                "that is no full hash of a commit.",
                "The user can mend that.",
            ) from None
        raise _explain_failure(failure, git, repository, path, revision, cancel) from None
    facts = [*_describe_page(page, path, first), *describe_named_revisions(remarks), *skip_list.describe()]
    boundary = list_boundary(layout)
    if page.oids.intersection(boundary):
        facts.append(describe_boundary(boundary, page.oids))
    return Answer(facts, page.lines)


def _describe_page(page: _BlamePage, path: RepositoryPath, first: int) -> list[str]:
    last_shown = page.last_line
    if page.next_line is not None:
        last_shown = page.next_line - 1
    facts = [f"{path.display} lines {first}-{last_shown}"]
    if page.next_line is not None:
        facts.append(f"for more, start_line={last_shown + 1}")
    return facts


class LineSpan(NamedTuple):
    """Lines of a file: their numbers as git takes them, and how they are told."""

    numbers: str
    description: str


def resolve_lines(
    git: Git,
    repository: Repository,
    path: RepositoryPath,
    revision: Revision,
    lines: LineRange,
    cancel: CancelToken,
    commit: str = "",
) -> LineSpan:
    """Return the numbers of lines of a file of a commit.

    Of several functions with one name the first is meant.

    Args:
        commit: that `revision` was when the first page was made.
    """
    failure: GitFailed | None = None
    for options, span in product(_list_options(git, repository, lines), _list_spans(lines)):
        arguments = [*options, "blame", "--porcelain", f"-L{span}", f"{commit or revision.text}^!", "--", path.text]
        try:
            output = git.run(repository, arguments, cancel).text
        except GitFailed as failed:
            failure = failed
            if "no match" not in failed.stderr:
                break
        else:
            return _read_span(output, with_first_line=bool(lines.function))
    assert failure is not None
    raise _explain_missing_lines(failure, git, repository, path, revision, lines, cancel)


def _explain_missing_lines(
    failure: GitFailed,
    git: Git,
    repository: Repository,
    path: RepositoryPath,
    revision: Revision,
    lines: LineRange,
    cancel: CancelToken,
) -> Exception:
    if "no match" in failure.stderr:
        fix = "Name its lines: `search_text` finds them."
        return NotFound(f"Git sees no function {quote(lines.function)} in `{path.display}`.", fix)
    if "has only" in failure.stderr:
        return Invalid(f"{failure}".rstrip(), "Name `lines` that the file has.")
    return _explain_failure(failure, git, repository, path, revision, cancel)


def _list_options(git: Git, repository: Repository, lines: LineRange) -> list[list[str]]:
    """Return the options with which git is asked for lines: for a function as it is set up here, and by its language.

    By itself git takes what begins at the left edge for a function, which a method does not.
    """
    options: list[list[str]] = [[]]
    if lines.function:
        options.append(["-c", f"core.attributesFile={git.find_function_attributes(repository)}"])
    return options


def _list_spans(lines: LineRange) -> list[str]:
    """Return the values of `-L` that may be meant, the most exact first."""
    if not lines.function:
        return [f"{lines.first},{lines.last}"]
    name = re.sub(r"[][\\.*^$:]", r"\\\g<0>", lines.function)
    # Git takes a part of a name for the name: first those that nothing goes on before and behind.
    return [
        f":{_NO_LETTER}{name}{_NO_LETTER}",
        f":^{name}{_NO_LETTER}",
        f":{_NO_LETTER}{name}$",
        f":^{name}$",
        f":{name}",
    ]


def _read_span(output: str, *, with_first_line: bool) -> LineSpan:
    numbers = re.findall(r"(?m)^[0-9a-f]{40,64} \d+ (\d+)", output)
    first = numbers[0]
    last = numbers[-1]
    description = f" lines {first}-{last}"
    if with_first_line:
        first_line = output.partition("\t")[2].partition("\n")[0].strip()
        description += f": {clip(escape_line_breaks(first_line), _MAX_HEADING_BYTES)}"
    return LineSpan(f"{first},{last}", description)


def _format_heading(oid: str, details: Mapping[str, str]) -> str:
    if not oid.strip("0"):
        return "not committed yet"
    date = _format_day(details.get("committer-time", "0"), details.get("committer-tz", "+0000"))
    heading = f"{shorten_hash(oid)} {date} {details.get('author', '')}: {details.get('summary', '')}"
    return clip(escape_line_breaks(heading), _MAX_HEADING_BYTES)


def _format_day(seconds: str, zone: str) -> str:
    """Return the committer's day, where they were."""
    from datetime import UTC, datetime

    try:
        minutes = int(zone[1:-2]) * 60 + int(zone[-2:])
        offset_seconds = int(f"{zone[0]}{minutes}") * 60
        return datetime.fromtimestamp(int(seconds) + offset_seconds, UTC).date().isoformat()
    except (ValueError, IndexError, OverflowError, OSError):
        return "?"


def _explain_failure(
    failure: GitFailed,
    git: Git,
    repository: Repository,
    path: RepositoryPath,
    revision: Revision | None,
    cancel: CancelToken,
) -> Exception:
    if "has only" in failure.stderr:
        return Invalid(f"{failure}".rstrip(), "Name a `start_line` that the file has.")
    # Without a revision git begins at HEAD all the same, and there may be none.
    start = revision or HEAD
    if not re.search("no such path|unsupported file type|Cannot lstat", failure.stderr):
        return explain_failure(failure, git, repository, start, cancel)
    arguments = ["cat-file", "-t", f"{start.text}:{path.text}"]
    kind = git.run(repository, arguments, cancel, exit_codes=(0, 128)).text.strip()
    if revision is None and kind == "blob" and "lstat" in failure.stderr:
        return NotFound(f"`{path.display}` is not in the work tree now.", "With rev=`HEAD` its lines there are shown.")
    if kind == "tree":
        return Invalid(f"`{path.display}` is a folder.", "Name a file; `list_files` has them.")
    if revision is None:
        fix = suggest_path(git, repository, path, None, cancel)
        return NotFound(f"There is no file `{path.display}` in the work tree or `HEAD`.", fix)
    fix = suggest_path(git, repository, path, revision.text, cancel)
    return NotFound(f"There is no file `{path.display}` in `{revision.text}`.", fix)
