"""What changed: first the files with their counts, then the patch in pages.

A page is made of the files that it shows, so that a large change costs no more than what is looked at of it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from mcp_batteries.errors import Invalid, NotFound
from mcp_batteries.limits import DEFAULT_PAGE_BYTES, Cursor, Stop
from mcp_git.engine.program import Failed, Git
from mcp_git.engine.runs import EMPTY_TREES, clip, explained, has_commits, items, position
from mcp_git.models import Answer, counted
from mcp_git.names import one_line, shown
from mcp_git.policy import Place, Policy, Range, Repository, Revision

__all__ = ["Compared", "Part", "diff"]

Part = Literal["all", "staged", "unstaged"]

_OPTIONS = (
    "--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty", "--find-renames", "--submodule=short",
    "--src-prefix=a/", "--dst-prefix=b/", "--diff-merges=first-parent",
)  # fmt: skip
_MOST_FILES = 2000
_MOST_LISTED = 100
_MOST_PATHS = 200
"""Files of one run of git for the patch."""
_MOST_LINE = 2000


@dataclass(frozen=True, slots=True)
class Compared:
    """What is compared with what.

    Attributes:
        revision: a commit with the one before it, or a range; None for what is not committed.
        part: of what is not committed.
        context: unchanged lines around each change.
    """

    revision: Revision | Range | None
    part: Part
    place: Place
    context: int = 3

    @property
    def title(self) -> str:
        what = {"all": "uncommitted changes", "staged": "staged changes", "unstaged": "changes that are not staged"}
        title = what[self.part] if self.revision is None else one_line(self.revision.text)
        return f"{title}, {self.place.display}" if self.place.path else title


@dataclass(frozen=True, slots=True)
class _File:
    """A file that differs; `added` and `removed` are None of a binary one."""

    path: bytes
    before: bytes
    added: int | None
    removed: int | None

    @property
    def line(self) -> str:
        counts = "binary" if self.added is None else f"+{self.added} -{self.removed}"
        return f"{counts} {shown(self.before)} -> {shown(self.path)}" if self.before else f"{counts} {shown(self.path)}"

    @property
    def paths(self) -> list[str]:
        return [os.fsdecode(path) for path in (self.before, self.path) if path]


def diff(
    git: Git, policy: Policy, repository: Repository, compared: Compared, cursor: str | None, stop: Stop
) -> Answer:
    """A page of a change."""
    scope = [
        compared.revision.text if compared.revision else None, compared.part, compared.place.path, compared.context,
    ]  # fmt: skip
    begin, _ = position("diff", cursor, scope)
    index = begin[0]
    try:
        words = _words(git, policy, repository, compared, stop)
        files, cut = _files(git, repository, words, compared.place, stop)
        if cursor and index >= len(files):
            raise Invalid("What the `cursor` goes on with is gone.", "Call again without `cursor`.")
        lines = [] if cursor else _headed(git, repository, compared, stop)
        if not cursor:
            listed = [file.line for file in files[:_MOST_LISTED]]
            more = len(files) - len(listed)
            lines += [*listed, *([f"… and {more:,} more files"] if more else []), *([""] if files else [])]
        room = DEFAULT_PAGE_BYTES - sum(len(line.encode("utf-8", "replace")) + 1 for line in lines)
        words = [*words, f"--unified={compared.context}"]
        patch, index, offset = _patch(git, repository, words, files, begin, room, stop)
    except Failed as failure:
        raise explained(failure, git, repository, compared.revision, stop) from None
    added, removed = sum(file.added or 0 for file in files), sum(file.removed or 0 for file in files)
    counts = (
        f"{counted(len(files), 'file')}{' or more' if cut else ''}, +{added:,} -{removed:,}" if files else "no changes"
    )
    following = Cursor.encode("diff", [index, offset, []], scope) if index < len(files) else None
    facts = [compared.title, counts]
    if following is not None:
        facts.append(f"the patch of {counted(len(files) - index, 'file')} follows")
    return Answer(facts, lines + patch, following)


def _words(git: Git, policy: Policy, repository: Repository, compared: Compared, stop: Stop) -> list[str]:
    """The command that compares, to which the form of its answer is added."""
    match compared.revision:
        case Range(start=start, dots="..", end=end):
            return ["diff", *_OPTIONS, start.text, end.text]
        case Range():
            return ["diff", *_OPTIONS, compared.revision.text]
        case Revision(text=text):
            if compared.revision.stage:
                raise Invalid(
                    "A side of a conflict is not a change.", "Read the file with that `rev`, or leave it out."
                )
            return ["show", *_OPTIONS, "--format=", text + "^{commit}"]
        case None:
            pass
    if policy.layout(repository).work_tree is None:
        raise NotFound("A bare repository has no work tree, so nothing in it is `uncommitted`.", "Name a `rev`.")
    if compared.part == "unstaged":
        return ["diff", *_OPTIONS]
    if has_commits(git, repository, stop):
        base = "HEAD"
    else:
        algorithm = git.run(repository, ["rev-parse", "--show-object-format"], stop).text.strip()
        base = EMPTY_TREES[64 if algorithm == "sha256" else 40]
    return ["diff", *_OPTIONS, *(["--cached"] if compared.part == "staged" else []), base]


def _headed(git: Git, repository: Repository, compared: Compared, stop: Stop) -> list[str]:
    """Of a commit who made it, and its message."""
    if not isinstance(compared.revision, Revision):
        return []
    words = ["show", "--no-patch", "--format=%H%n%an <%ae> %aI%n%P%n%D%n%B", compared.revision.text + "^{commit}"]
    told = git.run(repository, words, stop, most=DEFAULT_PAGE_BYTES // 2)
    oid, author, parents, refs, *message = told.text.rstrip().split("\n") + [""] * 4
    lines = [f"{oid} {one_line(refs)}".rstrip(), one_line(author)]
    if " " in parents:
        lines.append(f"merge of {' '.join(parent[:9] for parent in parents.split())}; shown against the first")
    while message and not message[-1].strip():
        message.pop()
    return [*lines, "", *message, ""]


def _files(
    git: Git, repository: Repository, words: Sequence[str], place: Place, stop: Stop
) -> tuple[list[_File], bool]:
    found: list[_File] = []
    path = [place.path] if place.path else []
    with git.pieces(repository, [*words, "--numstat", "-z", "--", *path], stop) as pieces:
        listed = items(pieces)
        for item in listed:
            added, removed, name = ([*item.lstrip(b"\n").split(b"\t", 2), b"", b""])[:3]
            if not name and not added:
                continue
            before = b"" if name else next(listed, b"")
            name = name or next(listed, b"")
            counts = (None, None) if added == b"-" else (int(added), int(removed))
            found.append(_File(name, before, *counts))
            if len(found) == _MOST_FILES:
                return found, True
    return found, False


def _patch(
    git: Git,
    repository: Repository,
    words: Sequence[str],
    files: Sequence[_File],
    begin: Sequence[int],
    room: int,
    stop: Stop,
) -> tuple[list[str], int, int]:
    """Lines of the patch from a file and a line of its patch on, and where it goes on behind them."""
    index, offset = begin
    lines: list[str] = []
    while index < len(files):
        some = files[index : index + _MOST_PATHS]
        paths = [path for file in some for path in file.paths]
        at, line_of, header = index - 1, 0, b""
        with git.pieces(repository, [*words, "--patch", "--", *paths], stop) as pieces:
            for line in items(pieces, b"\n"):
                # A file that became a link has two patches with one header.
                if line.startswith(b"diff --") and line != header:
                    at, line_of, header = at + 1, 0, line
                line_of += 1
                if at < index or (at == index and line_of <= offset):
                    continue
                text = _text(line)
                room -= len(text.encode("utf-8", "replace")) + 1
                if room < 0 and lines:
                    return lines, at, line_of - 1
                if not line.startswith((b"index ", b"diff --git ")) or at >= len(files):
                    lines.append(text)
                elif line.startswith(b"diff --git ") and files[at].added is None:
                    lines.append(files[at].line)
        index, offset = index + len(some), 0
    return lines, len(files), 0


def _text(line: bytes) -> str:
    text = line.decode("utf-8", "replace").rstrip("\r")
    return text if len(text) <= _MOST_LINE else f"{clip(text, _MOST_LINE)} [{len(line):,} bytes]"
