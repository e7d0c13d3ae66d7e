"""Formats a commit: as a line of at most 90 bytes, or 109 with the day on which it was written; for a script whole."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import NamedTuple

from mcp_batteries.server.calling.results import is_answering_script
from mcp_git.engine.program.output import clip
from mcp_git.path_quoting import escape_hidden, escape_line_breaks

__all__ = [
    "ROW_FORMAT",
    "SCRIPT_COLUMNS",
    "SCRIPT_HASH_DIGITS",
    "Commit",
    "Row",
    "abbreviation",
    "format_raw_day",
    "format_raw_time",
    "format_time",
    "replace_placeholder",
    "shorten_hash",
]

# In a script, where hashes of several answers are compared: as many as git itself shows of those of Linux.
SCRIPT_HASH_DIGITS = 12
# In the order of `Commit.values_for_script`.
SCRIPT_COLUMNS = ("hash", "parents", "committed", "authored", "author", "refs", "subject")
_HASH_DIGITS = 9
# In the place of a date that no calendar has, as other programs write some into commits.
_UNKNOWN = "?"
# The bytes of a row, without its line end.
_MAX_ROW_BYTES = 89
_MAX_AUTHOR_BYTES = 24
# Those of a remote with many branches would leave no room for the subject.
_MAX_REFS_BYTES = 28
# In the order of `Commit`.
ROW_FORMAT = "%x01%H%x00%h%x00%cs%x00%as%x00%ct%x00%at%x00%aN%x00%D%x00%P%x00%s"


def shorten_hash(oid: str) -> str:
    """Return the digits of a hash that an answer shows."""
    if is_answering_script():
        return oid[:SCRIPT_HASH_DIGITS]
    return oid[:_HASH_DIGITS]


def abbreviation() -> list[str]:
    """Return the option for `%h` to have as many digits as in other answers, where a script compares them."""
    return [f"--abbrev={SCRIPT_HASH_DIGITS}"] if is_answering_script() else []


def replace_placeholder(field: str) -> str:
    """Return a field of a commit as git printed it, or a question mark where it left its placeholder."""
    if re.fullmatch("%[ac][NEsI]", field):
        return _UNKNOWN
    return field


def format_raw_day(raw: str) -> str:
    """Return the day of a date `1769860800 +0100`, where it was written."""
    time = _parse_raw_time(raw)
    return time.date().isoformat() if time else _UNKNOWN


def format_raw_time(raw: str) -> str:
    """Return a date `1769860800 +0100` as `2026-01-31T13:00:00+01:00`."""
    time = _parse_raw_time(raw)
    return time.isoformat() if time else _UNKNOWN


def _parse_raw_time(raw: str) -> datetime | None:
    """Return what git keeps as seconds and a zone; None where that is no date.

    Git itself ends where it should show one such date among those of many refs.
    """
    try:
        seconds, _, zone = raw.partition(" ")
        hours, minutes = divmod(abs(int(zone)), 100)
        offset = timedelta(hours=hours, minutes=minutes)
        if zone.startswith("-"):
            offset = -offset
        return datetime.fromtimestamp(int(seconds), timezone(offset))
    except (ValueError, OverflowError, OSError):
        return None


class Commit(NamedTuple):
    """What a row shows of a commit.

    Attributes:
        date, author_date: the days of its committer and its author, where they were.
        seconds, author_seconds: the same as seconds since 1970.
    """

    oid: str
    short_hash: str
    date: str
    author_date: str
    seconds: str
    author_seconds: str
    author: str
    refs: str
    parents: str
    subject: str

    @property
    def is_merge(self) -> bool:
        return " " in self.parents

    @property
    def written(self) -> str:
        """The phrase for when it was written, if it was committed on another day; empty otherwise."""
        return f"written {self.author_date}" if self.author_date != self.date else ""

    @property
    def marked_refs(self) -> str:
        """The refs that point to it, with a star before the branch that HEAD is."""
        return self.refs.replace("HEAD -> ", "*")

    def values_for_script(self) -> list[str | list[str]]:
        """Return its hash and its parents' hashes, times in UTC, author, refs as git names them, and subject.

        What a script prints of them is read by models, so nothing in them is hidden.
        """
        refs = escape_hidden(self.refs.replace("HEAD -> ", "HEAD, "))
        return [
            self.oid[:SCRIPT_HASH_DIGITS],
            [parent[:SCRIPT_HASH_DIGITS] for parent in self.parents.split()],
            format_time(self.seconds),
            format_time(self.author_seconds),
            escape_hidden(self.author),
            refs.split(", ") if refs else [],
            escape_hidden(self.subject),
        ]


_COMMIT_FIELDS = len(Commit._fields)


class Row(NamedTuple):
    """A line of git's output: a commit, or a line that only belongs to the graph."""

    graph: str
    commit: Commit | None

    @classmethod
    def parse(cls, line: bytes) -> Row:
        """Return what a line has that git printed as `ROW_FORMAT` says."""
        graph, _, text = line.decode("utf-8", "replace").partition("\x01")
        fields = text.split("\0", _COMMIT_FIELDS - 1)
        if len(fields) < _COMMIT_FIELDS:
            return cls(graph, None)
        commit = Commit(*fields)
        commit = commit._replace(
            date=replace_placeholder(commit.date),
            author_date=replace_placeholder(commit.author_date),
            author=replace_placeholder(commit.author),
        )
        return cls(graph, commit)

    def format(self, with_date: bool = True, with_author: bool = True) -> str:
        """Return the row as models read it, cut to its size."""
        commit = self.commit
        if commit is None:
            return clip(self.graph.rstrip(), _MAX_ROW_BYTES)
        is_whole = is_answering_script()
        line = f"{self.graph}{commit.oid[:SCRIPT_HASH_DIGITS] if is_whole else commit.short_hash} "
        origin = _format_origin(commit, with_date, with_author)
        if origin:
            line += f"{origin}: "
        if commit.refs:
            line += f"({_format_refs(commit.marked_refs.split(', '))}) "
        if commit.is_merge and not self.graph:
            line += "(merge) "
        if is_whole:
            return escape_line_breaks(line + commit.subject)
        # The date of writing takes nothing from the subject.
        return clip(escape_line_breaks(line + commit.subject), _MAX_ROW_BYTES + len(commit.written))


def _format_origin(commit: Commit, with_date: bool, with_author: bool) -> str:
    words: list[str] = []
    if with_date:
        words.append(commit.date)
    if commit.written:
        words.append(commit.written)
    if with_author:
        words.append(clip(commit.author, _MAX_AUTHOR_BYTES))
    return " ".join(words)


def _format_refs(refs: Sequence[str]) -> str:
    """Return as many of `refs` as there is room for, one at least, and how many more there are."""
    texts = [clip(refs[0], _MAX_REFS_BYTES)]
    for ref in refs[1:]:
        if len(", ".join([*texts, ref]).encode("utf-8", "replace")) > _MAX_REFS_BYTES:
            break
        texts.append(ref)
    hidden = len(refs) - len(texts)
    if hidden:
        texts.append(f"{hidden} more")
    return ", ".join(texts)


def format_time(seconds: str) -> str:
    """Return a time in UTC, `2026-01-31T12:00:00Z`; empty for one that no calendar has."""
    try:
        time = datetime.fromtimestamp(int(seconds), UTC)
    except (ValueError, OverflowError, OSError):
        return ""
    return f"{time.replace(tzinfo=None).isoformat()}Z"
