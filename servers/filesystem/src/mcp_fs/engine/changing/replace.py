"""Replaces texts in many files: tries all of them first, then writes all or none."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import partial
from heapq import heappop, heappush
from itertools import islice
from typing import Literal

from mcp_batteries.errors import Invalid, Problem, Refused, TooLarge, quote
from mcp_batteries.limits import Stop
from mcp_fs.engine.changing.notebook_edit import Notebook, substitute_in_cells
from mcp_fs.engine.changing.transaction import MOST_TOGETHER, Change, change_files, too_large, too_much
from mcp_fs.engine.document_kinds import HEAD_BYTES, kind_of
from mcp_fs.engine.handles.path_opening import open_file
from mcp_fs.engine.journal.journal import Step
from mcp_fs.engine.listing.selection import as_file_glob, compile_choosers, compile_relevance
from mcp_fs.engine.listing.walk import NOT_DOWNLOADED, Skipped, WalkFilter, walk
from mcp_fs.engine.listing.walk import entry_display_path as shown_path
from mcp_fs.engine.patterns.regex import NextMatch, SearchText, TextMatches, compile_replacement
from mcp_fs.engine.text.edit import split_lines
from mcp_fs.engine.text.encodings import MAX_EDIT_BYTES, SizeLimit, decode, replace_undecodable
from mcp_fs.models import Replaced
from mcp_fs.policy import Writable

__all__ = ["Substitution", "replace_in_files"]

_MOST_FILES = 200
"""Files changed by one call: each is locked and has its new contents beside it, so that all or none can change."""
_DIFF_BYTES = 2000
_LINE = 160
_WORD = re.compile(r"\w", re.ASCII)
_MOST_PLACES = 50
_MOST_MISSED = 10
_MOST_TEXTS = 100
_MOST_LINES = 6
"""Of what goes and of what comes, where the number of lines changes."""
_MOST_COMPARED = 500
"""Lines from the first to the last that differ, both sides: to compare them takes the square of that."""


Substitute = Callable[[str], tuple[str, Sequence[int]]]
"""A text to the new one and how often each of the old ones was replaced."""


@dataclass(frozen=True, slots=True)
class Substitution:
    """What becomes what, in one pass over a text: what came in is not looked at again.

    Where several fit, the one that begins first is taken, of those the longest.

    Attributes:
        replacements: new texts by old ones.
        by: an old one is the text itself; the same as a whole word; or an RE2 expression, whose groups are `\\1` in
            the new one.
    """

    replacements: Mapping[str, str]
    by: Literal["text", "word", "regex"] = "text"
    ignore_case: bool = False

    def compiled(self, stop: Stop) -> Substitute:
        """How it is done; OverflowError where a text would get too long.

        Raises:
            Invalid: an expression can't be read.
        """
        matching = [self._matches(old, new) for old, new in self.replacements.items()]
        substitute = partial(_substituted, matching, stop)
        return substitute if "\r" in "".join(self.replacements) else partial(_with_line_feeds, substitute)

    def inside_words(self) -> re.Pattern[str]:
        """Finds an old text that is part of a longer word, as `cat` is of `concatenate`."""
        parts = [rf"(?<=\w)(?=\w){text}|{text}(?<=\w)(?=\w)" for text in map(re.escape, self.replacements)]
        return re.compile("|".join(parts) if self.by == "text" else r"(?!)")

    def _matches(self, old: str, new: str) -> TextMatches:
        if self.by == "regex":
            return compile_replacement(old, new, ignore_case=self.ignore_case)
        # Escaped, the expression is a plain text with two looks at its neighbours: no repetition, nothing to blow up.
        source = re.escape(old)
        if self.by == "word":
            source = rf"(?<!\w){source}(?!\w)"
        compiled = re.compile(source, re.IGNORECASE if self.ignore_case else 0)

        def matches(searched: SearchText) -> NextMatch:
            text = searched.text
            return lambda offset: (found := compiled.search(text, offset)) and (*found.span(), new)

        return matches


def _substituted(matching: Sequence[TextMatches], stop: Stop, text: str) -> tuple[str, Sequence[int]]:
    growing, done, counts, at = SizeLimit(text), list[str](), [0] * len(matching), 0
    searched = SearchText(text)
    finds = [matches(searched) for matches in matching]
    following: list[tuple[int, int, int, str]] = []  # of each its next match: begin, minus end, index, new text

    def look(index: int, offset: int) -> None:
        stop.check()
        found = finds[index](offset) if offset <= len(text) else None
        if found is not None:
            heappush(following, (found[0], -found[1], index, found[2]))

    for index in range(len(finds)):
        look(index, 0)
    while following:
        begin, minus_end, index, new = heappop(following)
        if begin < at:  # shares characters with one that was taken
            look(index, at)
            continue
        done += [text[at:begin], growing.replace(-minus_end - begin, new)]
        counts[index] += 1
        at = -minus_end
        look(index, at + (begin == at))  # the next of the same may not be empty where this one was
    return "".join([*done, text[at:]]), counts


def _with_line_feeds(substitute: Substitute, text: str) -> tuple[str, Sequence[int]]:
    """Substitute in a text whose lines end in CRLF as if they ended in LF, as callers write and search for it."""
    lines = text.count("\r\n")
    if not lines or {text.count("\r"), text.count("\n")} != {lines}:
        return substitute(text)
    new, counts = substitute(text.replace("\r\n", "\n"))
    return re.sub("\r?\n", "\r\n", new), counts


Differing = tuple[int, Sequence[str], Sequence[str]]
"""The number of a line of the new text, the lines that go there, and those that come."""


@dataclass(slots=True)
class _Tried:
    place: Writable
    counts: Sequence[int]
    size: int
    """Characters of the new text."""
    lines: Sequence[Differing] = field(default_factory=list[Differing])


def replace_in_files(
    start: Writable,
    glob: str,
    wanted: WalkFilter,
    substitution: Substitution,
    *,
    dry_run: bool,
    stop: Stop,
    step: Step | None = None,
) -> Replaced:
    """Replace in the text files below `start` whose path fits `glob`, all or none.

    Raises:
        Invalid: the glob or the expression can't be read, or nothing would change.
        TooLarge: more than 200 files would change, or they would get too large.
        Problem: one of them can't be changed; nothing was written.
    """
    replacements = substitution.replacements
    if not 0 < len(replacements) <= _MOST_TEXTS:
        raise Invalid(
            f"`replacements` names {len(replacements):,} texts.", f"Name 1 to {_MOST_TEXTS} with their new ones."
        )
    if not all(replacements):
        raise Invalid("The text to replace is empty.", "Name some text or expression.")
    same = [old for old, new in replacements.items() if old == new and substitution.by != "regex"]
    if same:
        raise Invalid(f"The text {quote(same[0])} is replaced by the same text.")
    substitute = substitution.compiled(stop)
    skipped = Skipped()
    tried: list[_Tried] = []
    binaries: list[str] = []
    for place in _files(start, glob, wanted, skipped, stop):
        if (one := _try(place, substitute, skipped, binaries, stop)) is not None:
            tried.append(one)
            if sum(each.size for each in tried) > MOST_TOGETHER:
                raise too_much()
            if len(tried) > _MOST_FILES:
                raise TooLarge(f"More than {_MOST_FILES} files would change.", "Narrow `glob` or `path`.")
    notes: list[str] = []
    if tried and not dry_run:
        changes = [
            Change(one.place, lambda text: substitute(text)[0], lambda book: substitute_in_cells(book, substitute)[0])
            for one in tried
        ]
        notes += change_files(changes, dry_run=False, stop=stop, step=step).notes
    notes += [*skipped.notes(), *skipped.describe_excluded(named=not tried)]
    if not tried and binaries:
        notes.append(f"binary, not changed: {', '.join(binaries[:5])}{', ...' * (len(binaries) > 5)}")
    missed = [quote(old) for index, old in enumerate(replacements) if not any(one.counts[index] for one in tried)]
    if tried and missed:
        notes.append(f"not found: {', '.join(missed[:_MOST_MISSED])}{', ...' * (len(missed) > _MOST_MISSED)}")
    files = [(one.place.display, sum(one.counts)) for one in tried]
    # What went and what came is what the caller named, unless it was an expression; a dry run is there to compare.
    varies = dry_run or substitution.by == "regex" or substitution.ignore_case or not all(replacements.values())
    return Replaced(files, _page(tried, None if varies else substitution.inside_words()), dry_run, notes)


def _files(start: Writable, glob: str, wanted: WalkFilter, skipped: Skipped, stop: Stop) -> Iterator[Writable]:
    (chooses,) = compile_choosers([start], as_file_glob(glob))
    skipped.is_relevant = compile_relevance([start], start, as_file_glob(glob), chooses)
    for visit in walk(start, wanted, stop, skipped):
        folder = visit.folder
        prefix = "".join(part + "/" for part in visit.parts)
        for name in visit.files:
            if name in visit.links or name in visit.special_files or not chooses(prefix + name):
                continue
            if folder.place.policy.protected((*folder.place.parts, name)):
                skipped.add("protected", shown_path(folder.place, name))
                continue
            if name in visit.not_downloaded:
                skipped.add(NOT_DOWNLOADED, shown_path(folder.place, name))
                continue
            try:
                place = start.at(folder.place.root, (*folder.place.parts, name))
            except Refused:
                skipped.add("protected", shown_path(folder.place, name))
            else:
                yield place


def _try(place: Writable, substitute: Substitute, skipped: Skipped, binaries: list[str], stop: Stop) -> _Tried | None:
    """What would become of one file; None when nothing would."""
    stop.check()
    try:
        data = _read(place)
    except Problem as problem:
        skipped.add(problem.what.rstrip("."), place.display)
        return None
    if data is None:
        skipped.add(f"larger than {MAX_EDIT_BYTES:,} bytes, which is as much as can be edited", place.display)
        return None
    decoded = decode(data)
    if decoded is None:
        binaries.append(place.display)
        return None
    kind = kind_of(place.name, data[:HEAD_BYTES])
    book = Notebook.parse(data, decoded.text) if kind == "notebook" else None
    try:
        if book is not None:
            return _tried_in_cells(place, book, substitute)
        new, counts = substitute(decoded.text)
    except OverflowError:
        raise too_large(place) from None
    if new == decoded.text:
        return None
    if kind not in (None, "notebook"):
        skipped.add("read in another form than it is stored, so not changed", place.display)
        return None
    return _Tried(place, counts, len(new), _changed(replace_undecodable(decoded.text), replace_undecodable(new)))


def _tried_in_cells(place: Writable, book: Notebook, substitute: Substitute) -> _Tried | None:
    """What would become of a notebook."""
    changed, counts = substitute_in_cells(book, substitute)
    if changed.json == book.json:
        return None
    return _Tried(
        place, counts, len(changed.json), _changed(replace_undecodable(book.text), replace_undecodable(changed.text))
    )


def _read(place: Writable) -> bytes | None:
    with open_file(place) as file:
        data = file.read(MAX_EDIT_BYTES + 1)
    return None if len(data) > MAX_EDIT_BYTES else data


def _changed(old: str, new: str) -> list[Differing]:
    """The first lines that differ; where their number changes, each run of them."""
    before, after = ([line.rstrip("\r\n") for line in split_lines(text)] for text in (old, new))
    pairs = enumerate(zip(before, after, strict=False), 1)
    differing = ((number, [one], [other]) for number, (one, other) in pairs if one != other)
    if len(before) == len(after):
        return list(islice(differing, _MOST_PLACES + 1))
    first = next((number for number, _, _ in differing), min(len(before), len(after)) + 1) - 1
    last = 0
    while last < min(len(before), len(after)) - first and before[-1 - last] == after[-1 - last]:
        last += 1
    gone, come = before[first : len(before) - last], after[first : len(after) - last]
    if len(gone) + len(come) > _MOST_COMPARED:
        return [(first + 1, _few(gone), _few(come))]
    matcher = SequenceMatcher(None, gone, come, autojunk=False)
    runs = (run for run in matcher.get_opcodes() if run[0] != "equal")
    return [(first + c + 1, _few(gone[a:b]), _few(come[c:d])) for _, a, b, c, d in islice(runs, _MOST_PLACES + 1)]


def _few(lines: list[str]) -> list[str]:
    more = len(lines) - _MOST_LINES
    return lines if more <= 1 else [*lines[:_MOST_LINES], f"... {more:,} more lines"]


def _cut(text: str, most: int = _LINE) -> str:
    return text[:most] + "..." * (most < len(text))


def _shown(differing: Differing) -> list[str]:
    """A line as `NUMBER:LINE` where one takes the place of one, else as in a diff."""
    number, gone, come = differing
    if len(gone) == len(come) == 1:
        return [f"{number}:{_one_line(gone[0], come[0])}"]
    return [f"@@ {number}", *(f"-{_cut(line)}" for line in gone), *(f"+{_cut(line)}" for line in come)]


def _one_line(old: str, new: str) -> str:
    """The new line, marked as git's word diff has it: `[-old-]{+new+}`. Of a long one, what is about the change."""
    start = _alike(old, new)
    end = _alike(old[start:][::-1], new[start:][::-1])
    before, after = new[:start], new[len(new) - end :]
    gone, come = old[start : len(old) - end], new[start : len(new) - end]
    changed = f"[-{_cut(gone)}-]" * bool(gone) + f"{{+{_cut(come)}+}}" * bool(come)
    if start > _LINE // 2:
        before = f"...{before[-_LINE // 4 :]}"
    return before + changed + _cut(after, max(_LINE - len(before) - len(changed), _LINE // 4))


def _alike(one: str, other: str) -> int:
    """How many characters are the same at the beginning, without part of a word."""
    same, most = 0, min(len(one), len(other))
    while same < most:  # by halves: a line may be a whole file
        middle = (same + most + 1) // 2
        same, most = (middle, most) if one[same:middle] == other[same:middle] else (same, middle - 1)
    while same and _WORD.match(one[same - 1]) and any(_WORD.match(text[same : same + 1]) for text in (one, other)):
        same -= 1
    return same


def _page(tried: Sequence[_Tried], surprising: re.Pattern[str] | None) -> list[tuple[str, Sequence[str], bool]]:
    """As much of a diff as two thousand characters hold: of each file its path, lines, and whether these are all.

    Args:
        surprising: finds what a line must hold to be shown; of others, their numbers. None shows all lines.
    """
    page: list[tuple[str, Sequence[str], bool]] = []
    left = _DIFF_BYTES
    for one in tried:
        path, shown_lines = one.place.display, list[str]()
        left -= len(path) + 1
        for lines in _lines(one.lines[:_MOST_PLACES], surprising):
            left -= sum(map(len, lines)) + len(lines)
            if left < 0:
                return [*page, (path, shown_lines, False)] if shown_lines else page
            shown_lines += lines
        page.append((path, shown_lines, len(one.lines) <= _MOST_PLACES))
    return page


def _lines(differing: Sequence[Differing], surprising: re.Pattern[str] | None) -> Iterator[Sequence[str]]:
    """The numbers of those that are not surprising, then the others."""
    numbers: list[int] = []
    others: list[Differing] = []
    for number, gone, come in differing:
        if surprising is None or len(gone) != len(come) or any(map(surprising.search, gone)):
            others.append((number, gone, come))
        else:
            numbers.append(number)
    if numbers:
        yield [f" line{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"]
    yield from map(_shown, others)
