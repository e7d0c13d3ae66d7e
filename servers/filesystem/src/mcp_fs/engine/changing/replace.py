"""Replaces texts in many files: tries all of them first, then writes all or none."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import partial
from heapq import heappop, heappush
from itertools import islice
from typing import Literal

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Invalid, Problem, Refused, TooLarge, quote
from mcp_fs.engine.changing.edit_errors import MAX_TOTAL_BYTES, too_large_error, too_much_error
from mcp_fs.engine.changing.file_edits import FileChange, change_files
from mcp_fs.engine.changing.notebook_edit import Notebook, substitute_in_cells
from mcp_fs.engine.document_kinds import HEAD_BYTES, kind_of
from mcp_fs.engine.handles.open_entries import max_open_entries
from mcp_fs.engine.handles.path_opening import describe_cause, open_file, refuse_archived
from mcp_fs.engine.journal.journal import JournalEntry
from mcp_fs.engine.listing.selection import (
    as_file_glob,
    compile_choosers,
    compile_relevance,
    refuse_part_of_matches,
)
from mcp_fs.engine.listing.walk import NOT_DOWNLOADED, Skipped, WalkFilter, walk
from mcp_fs.engine.listing.walk import entry_display_path as shown_path
from mcp_fs.engine.patterns.line_breaks import LINE_BREAK_HINT, may_mean_line_breaks, spans_brackets
from mcp_fs.engine.patterns.regex import NextMatch, SearchText, TextMatches, compile_replacement
from mcp_fs.engine.text.edit import split_lines
from mcp_fs.engine.text.encodings import (
    MAX_EDIT_BYTES,
    Decoded,
    Encoding,
    SizeLimit,
    decode,
    replace_undecodable,
)
from mcp_fs.models import ReplacedFile, ReplaceResult
from mcp_fs.policy import WritablePath

__all__ = ["Substitution", "replace_in_files"]

_DIFF_BYTES = 2000
_MAX_LINE_CHARACTERS = 160
_WORD_CHARACTER = re.compile(r"\w", re.ASCII)
_MAX_PLACES = 50
# Of more files than this, once they are written, only the lines of a few are shown, or their numbers.
_MAX_FILES_WITH_LINES = 8
_MAX_FILES_WITH_NUMBERS = 20
_EXAMPLE_FILES = 3
_MAX_UNMATCHED_NAMED = 10
_FOREIGN_WORD = re.compile(r"[!-~]{0,15}[^\x00-\xa0\s]\S{0,15}")
_MATCHES_NOTHING = re.compile(r"(?!)")
_MAX_BINARY_NAMED = 5
_MAX_TEXTS = 100
# Of what goes and of what comes, where the number of lines changes.
_MAX_LINES = 6
# Lines from the first to the last that differ, both sides: comparing them takes the square of that.
_MAX_COMPARED_LINES = 500


# Maps a text to the new one and how often each of the old ones was replaced.
Substitute = Callable[[str], tuple[str, Sequence[int]]]


@dataclass(frozen=True, slots=True)
class Substitution:
    """What becomes what, in one pass over a text: what came in is not looked at again.

    Where several fit, the one that begins first is taken, of those the longest.

    Attributes:
        replacements: new texts by old ones.
        by: an old one is the text itself; the same as a whole word; or an RE2 expression, whose groups are `\\1` in
            the new one.
        encoding: what the files are written in from now on; None for the encoding that each has.
        old_encoding: what those are read in whose encoding would be a guess; None for the guess.
    """

    replacements: Mapping[str, str]
    by: Literal["text", "word", "regex"] = "text"
    ignore_case: bool = False
    encoding: Encoding | None = None
    old_encoding: Encoding | None = None

    def compile(self, cancel: CancelToken) -> Substitute:
        """Compile to a function, which raises OverflowError where a text would get too long.

        Raises:
            Invalid: an expression can't be read.
        """
        matching = [self._compile_matches(old, new) for old, new in self.replacements.items()]
        substitute = partial(_substitute, matching, cancel)
        if "\r" in "".join(self.replacements):
            return substitute
        return partial(_with_line_feeds, substitute)

    def inside_words_pattern(self) -> re.Pattern[str]:
        """Return a pattern that finds an old text in a longer word, as `cat` in `concatenate`."""
        if self.by != "text":
            return _MATCHES_NOTHING
        alternatives: list[str] = []
        for old in self.replacements:
            text = re.escape(old)
            alternatives.append(rf"(?<=\w)(?=\w){text}|{text}(?<=\w)(?=\w)")
        return re.compile("|".join(alternatives))

    def _compile_matches(self, old: str, new: str) -> TextMatches:
        if self.by == "regex":
            return compile_replacement(old, new, ignore_case=self.ignore_case)
        # Escaped, the expression is a plain text with two looks at its neighbours: no repetition, nothing to blow up.
        source = re.escape(old)
        if self.by == "word":
            source = rf"(?<!\w){source}(?!\w)"
        compiled = re.compile(source, re.IGNORECASE if self.ignore_case else 0)

        def matches(searched: SearchText) -> NextMatch:
            text = searched.text

            def find_next(offset: int) -> tuple[int, int, str] | None:
                match = compiled.search(text, offset)
                if match is None:
                    return None
                begin, end = match.span()
                return begin, end, new

            return find_next

        return matches


def _substitute(matching: Sequence[TextMatches], cancel: CancelToken, text: str) -> tuple[str, Sequence[int]]:
    """Replace in a text what matches; return it, and how often each of the expressions matched.

    Raises:
        OverflowError: it would get too long.
    """
    size_limit = SizeLimit(text)
    pieces: list[str] = []
    counts = [0] * len(matching)
    position = 0
    searched = SearchText(text)
    find_next = [matches(searched) for matches in matching]
    # Of each expression its next match: begin, minus end, index, new text. So of two that begin together the longer
    # is the first.
    upcoming: list[tuple[int, int, int, str]] = []

    def push_next_match(index: int, offset: int) -> None:
        cancel.check()
        if offset > len(text):
            return
        match = find_next[index](offset)
        if match is not None:
            begin, end, new = match
            heappush(upcoming, (begin, -end, index, new))

    for index in range(len(find_next)):
        push_next_match(index, 0)
    while upcoming:
        begin, minus_end, index, new = heappop(upcoming)
        if begin < position:  # shares characters with one that was replaced
            push_next_match(index, position)
            continue
        end = -minus_end
        pieces += [text[position:begin], size_limit.replace(end - begin, new)]
        counts[index] += 1
        position = end
        if begin == end:  # the next of the same may not be empty where this one was
            push_next_match(index, end + 1)
        else:
            push_next_match(index, end)
    return "".join([*pieces, text[position:]]), counts


def _with_line_feeds(substitute: Substitute, text: str) -> tuple[str, Sequence[int]]:
    """Substitute in a text whose lines end in CRLF as if they ended in LF, as callers write and search for it."""
    line_count = text.count("\r\n")
    if not line_count or text.count("\r") != line_count or text.count("\n") != line_count:
        return substitute(text)
    new, counts = substitute(text.replace("\r\n", "\n"))
    return re.sub("\r?\n", "\r\n", new), counts


# The number of a line of the new text, the lines that go there, and those that come.
LineDifference = tuple[int, Sequence[str], Sequence[str]]


@dataclass(slots=True)
class _FileReplacement:
    """What would become of one file.

    Attributes:
        counts: how often each old text is replaced.
        new_length: characters of the new text.
        old_encoding: what it is written in; empty if that stays.
        example: a word of it that shows whether `old_encoding` is right, where that is a guess.
    """

    path: WritablePath
    counts: Sequence[int]
    new_length: int
    changed_lines: Sequence[LineDifference] = field(default_factory=list[LineDifference])
    old_encoding: str = ""
    example: str = ""

    @property
    def summary(self) -> ReplacedFile:
        return ReplacedFile(self.path.display, sum(self.counts), self.old_encoding, self.example)


def replace_in_files(
    start: WritablePath,
    glob: str,
    walk_filter: WalkFilter,
    substitution: Substitution,
    *,
    dry_run: bool,
    cancel: CancelToken,
    journal_entry: JournalEntry | None = None,
) -> ReplaceResult:
    """Replace in the text files below `start` whose path fits `glob`, all or none.

    Raises:
        Invalid: the glob or the expression can't be read, or nothing would change.
        TooLarge: more files would change than can be held open, or they would get too large.
        Problem: one of them can't be changed; nothing was written.
    """
    _check_replacements(substitution)
    refuse_archived(start)
    attempt = _Attempt(substitution.compile(cancel), substitution.encoding, substitution.old_encoding, cancel)
    files = attempt.try_files(_iterate_files(start, glob, walk_filter, attempt.skipped, cancel))
    notes: list[str] = []
    if files:
        changes = [_to_file_change(file, attempt) for file in files]
        result = change_files(changes, dry_run=dry_run, shows_diffs=False, cancel=cancel, journal_entry=journal_entry)
        notes.extend(result.notes)
    else:
        refuse_part_of_matches(glob, for_change=True)
    notes.extend(_describe_attempt(attempt, substitution, files))
    inside_words = None if _shows_all_lines(substitution, dry_run) else substitution.inside_words_pattern()
    encoding = "" if substitution.encoding is None else str(substitution.encoding)
    summaries = [file.summary for file in files]
    shown_files = files
    max_files = _MAX_FILES_WITH_LINES if inside_words is None else _MAX_FILES_WITH_NUMBERS
    if len(files) > max_files and not dry_run:
        shown_files = files[:_EXAMPLE_FILES]
    page = _build_page(shown_files, inside_words)
    return ReplaceResult(summaries, page, dry_run, notes, encoding, attempt.file_count)


@dataclass(slots=True)
class _Attempt:
    """Tries with each file what would become of it, and changes none.

    Args:
        encoding: what the files would be written in; None for the encoding that each has.
        old_encoding: what those are read in whose encoding would be a guess; None for the guess.

    Attributes:
        skipped: what would not be changed, and why.
        binary_paths: files that are no text.
        file_count: of files with which it was tried.
    """

    substitute: Substitute
    encoding: Encoding | None
    old_encoding: Encoding | None
    cancel: CancelToken
    skipped: Skipped = field(default_factory=lambda: Skipped(tells_links=True, reads_contents=True))
    binary_paths: list[str] = field(default_factory=list[str])
    file_count: int = 0

    def try_files(self, paths: Iterable[WritablePath]) -> list[_FileReplacement]:
        """Return the files that would be changed.

        Raises:
            TooLarge: they are too many, or would get too large.
            Problem: one of them can't be changed.
        """
        files: list[_FileReplacement] = []
        total_length = 0
        limit = max_open_entries()
        for path in paths:
            file = self.try_file(path)
            if file is None:
                continue
            files.append(file)
            total_length += file.new_length
            if total_length > MAX_TOTAL_BYTES:
                raise too_much_error()
            if len(files) > limit:
                raise TooLarge(f"More than {limit:,} files would change.", "Narrow `glob` or `path`.")
        return files

    def try_file(self, path: WritablePath) -> _FileReplacement | None:
        """Return what would become of one file, None when nothing would."""
        self.cancel.check()
        self.file_count += 1
        data = self._read(path)
        if data is None:
            return None
        decoded = decode(data, self.old_encoding)
        if decoded is None:
            self.binary_paths.append(path.display)
            return None
        kind = kind_of(path.name, data[:HEAD_BYTES])
        notebook = None
        if kind == "notebook":
            notebook = Notebook.parse(data, decoded.text)
        try:
            if notebook is not None:
                return self._try_notebook(path, notebook)
            new, counts = self.substitute(decoded.text)
        except OverflowError:
            raise too_large_error(path) from None
        old_encoding = self._find_change(path, data, decoded, new)
        if old_encoding is None:
            return None
        if kind not in (None, "notebook"):
            self.skipped.add("read in another form than it is stored, so not changed", path.display)
            return None
        if old_encoding and not self._is_read_back(new):
            self.skipped.add("once converted, read as another encoding or as binary", path.display)
        differences = _find_changed_lines(replace_undecodable(decoded.text), replace_undecodable(new))
        example = self._find_example(decoded) if old_encoding else ""
        return _FileReplacement(path, counts, len(new), differences, old_encoding, example)

    def _read(self, path: WritablePath) -> bytes | None:
        """Return what is in a file; None if it can't be read or is too large, which is noted."""
        try:
            with open_file(path) as file:
                data = file.read(MAX_EDIT_BYTES + 1)
        except Problem as problem:
            self.skipped.add(describe_cause(problem) or problem.failure.rstrip("."), path.display)
            return None
        if len(data) > MAX_EDIT_BYTES:
            self.skipped.add(f"larger than {MAX_EDIT_BYTES:,} bytes, which is as much as can be edited", path.display)
            return None
        return data

    def _try_notebook(self, path: WritablePath, notebook: Notebook) -> _FileReplacement | None:
        """Return what would become of a notebook, None when nothing would."""
        if self.encoding is not None and self.encoding != Encoding("utf-8"):
            self.skipped.add("notebooks, which are always UTF-8, so not converted", path.display)
        changed, counts = substitute_in_cells(notebook, self.substitute)
        if changed.json == notebook.json:
            return None
        differences = _find_changed_lines(replace_undecodable(notebook.text), replace_undecodable(changed.text))
        return _FileReplacement(path, counts, len(changed.json), differences)

    def _find_change(self, path: WritablePath, data: bytes, decoded: Decoded, new: str) -> str | None:
        """Return what a file would be converted from, empty if only its text changes; None if nothing would.

        Raises:
            Invalid: some character can't be written in the encoding that is asked for.
        """
        if self.encoding is not None and decoded.undecodable:
            self.skipped.add("not all text in one encoding, so not changed", path.display)
            return None
        old_encoding = self._find_old_encoding(path, decoded, data, new)
        if new != decoded.text or old_encoding:
            return old_encoding
        if not self._would_read_the_same(data, decoded):
            reason = f"{decoded.encoding_label} by their bytes, so not read in {self.old_encoding}"
            self.skipped.add(reason, path.display)
        return None

    def _find_example(self, decoded: Decoded) -> str:
        """Return a word that shows whether the encoding of a text was guessed right; empty where it was no guess."""
        if self.old_encoding is not None or decoded.encoding.startswith("utf-"):
            return ""
        return _find_foreign_word(decoded.text)

    def _find_old_encoding(self, path: WritablePath, decoded: Decoded, data: bytes, new: str) -> str:
        """Return what a file is written in, if it is not the encoding that is asked for.

        Raises:
            Invalid: some character has no bytes in that.
        """
        if self.encoding is None or decoded.encoding_label == str(self.encoding):
            return ""
        try:
            converted = new.encode(self.encoding.name)
        except UnicodeEncodeError as error:
            raise Invalid(
                f"{quote(new[error.start])} of {quote(path.display)} can't be written in {self.encoding}; nothing was "
                "changed.",
                "Choose another encoding, or leave the file out.",
            ) from None
        if new == decoded.text and self.encoding.bom + converted == data:
            return ""
        return decoded.encoding_label

    def _would_read_the_same(self, data: bytes, decoded: Decoded) -> bool:
        """Return whether a file that was read in its own encoding has the same text in the one that is named."""
        if self.old_encoding is None or decoded.encoding == self.old_encoding.name:
            return True
        return data.decode(self.old_encoding.name, "replace") == decoded.text

    def _is_read_back(self, new: str) -> bool:
        """Return whether a text is told from its bytes in the new encoding, which can be a guess."""
        if self.encoding is None or self.encoding.bom or self.encoding.name == "utf-8":
            return True
        decoded = decode(new.encode(self.encoding.name))
        return decoded is not None and decoded.text == new


def _check_replacements(substitution: Substitution) -> None:
    replacements = substitution.replacements
    if not replacements and substitution.encoding is not None:
        return
    if not 0 < len(replacements) <= _MAX_TEXTS:
        raise Invalid(
            f"`replacements` names {len(replacements):,} texts.", f"Name 1 to {_MAX_TEXTS} with their new ones."
        )
    if not all(replacements):
        raise Invalid("The text to replace is empty.", "Name some text or expression.")
    if substitution.by == "regex":
        return
    for old, new in replacements.items():
        if old == new:
            raise Invalid(f"The text {quote(old)} is replaced by the same text.")


def _to_file_change(file: _FileReplacement, attempt: _Attempt) -> FileChange:
    return FileChange(
        file.path,
        lambda text: attempt.substitute(text)[0],
        lambda notebook: substitute_in_cells(notebook, attempt.substitute)[0],
        encoding=attempt.encoding if file.old_encoding else None,
        old_encoding=attempt.old_encoding,
    )


def _describe_attempt(attempt: _Attempt, substitution: Substitution, files: Sequence[_FileReplacement]) -> list[str]:
    """Say what was left out, and what the old texts did not find."""
    skipped = attempt.skipped
    notes = [*skipped.notes(), *skipped.describe_excluded(named=not files), *skipped.describe_links()]
    unmatched = _find_unmatched(substitution, files)
    if _may_miss_lines(substitution, unmatched):
        notes.append(LINE_BREAK_HINT)
    if attempt.binary_paths and (not files or attempt.encoding is not None):
        notes.append(_describe_binary(attempt.binary_paths))
    if files and unmatched:
        notes.append(_describe_unmatched(unmatched))
    return notes


def _may_miss_lines(substitution: Substitution, unmatched: Sequence[str]) -> bool:
    """Return whether an expression may be meant to go over several lines, and does not."""
    if substitution.by != "regex":
        return False
    return any(map(may_mean_line_breaks, unmatched)) or any(map(spans_brackets, substitution.replacements))


def _describe_binary(paths: Sequence[str]) -> str:
    more = ", ..." if len(paths) > _MAX_BINARY_NAMED else ""
    return f"binary, not changed: {', '.join(paths[:_MAX_BINARY_NAMED])}{more}"


def _find_unmatched(substitution: Substitution, files: Sequence[_FileReplacement]) -> list[str]:
    """Return the old texts that no file has."""
    unmatched: list[str] = []
    for index, old in enumerate(substitution.replacements):
        if not any(file.counts[index] for file in files):
            unmatched.append(old)
    return unmatched


def _describe_unmatched(texts: Sequence[str]) -> str:
    named = ", ".join(map(quote, texts[:_MAX_UNMATCHED_NAMED]))
    more = ", ..." if len(texts) > _MAX_UNMATCHED_NAMED else ""
    return f"not found: {named}{more}"


def _shows_all_lines(substitution: Substitution, dry_run: bool) -> bool:
    """Whether the answer shows every changed line and not only those where an old text is inside a longer word.

    Callers have named the old and the new text themselves, unless by an expression; a dry run is there to compare.
    """
    if dry_run or substitution.by == "regex" or substitution.ignore_case:
        return True
    return not all(substitution.replacements.values())


def _iterate_files(
    start: WritablePath, glob: str, walk_filter: WalkFilter, skipped: Skipped, cancel: CancelToken
) -> Iterator[WritablePath]:
    (chooses,) = compile_choosers([start], as_file_glob(glob))
    skipped.is_relevant = compile_relevance([start], start, as_file_glob(glob), chooses)
    for visit in walk(start, walk_filter, cancel, skipped):
        folder = visit.folder
        prefix = "".join(part + "/" for part in visit.parts)
        for name in visit.files:
            if name in visit.links or name in visit.special_files or not chooses(prefix + name):
                continue
            if folder.path.policy.is_protected((*folder.path.parts, name)):
                skipped.add("protected", shown_path(folder.path, name))
                continue
            if name in visit.not_downloaded:
                skipped.add(NOT_DOWNLOADED, shown_path(folder.path, name))
                continue
            try:
                path = start.at(folder.path.root, (*folder.path.parts, name))
            except Refused:
                skipped.add("protected", shown_path(folder.path, name))
            else:
                yield path


def _find_foreign_word(text: str) -> str:
    """Return the first word with a character beyond ASCII, or its beginning."""
    word = _FOREIGN_WORD.search(text)
    if word is None:
        return ""
    return word[0]


def _find_changed_lines(old: str, new: str) -> list[LineDifference]:
    """Return the first lines that differ; where their number changes, each run of them."""
    old_lines = _bare_lines(old)
    new_lines = _bare_lines(new)
    pairs = enumerate(zip(old_lines, new_lines, strict=False), 1)
    differing = ((number, [one], [other]) for number, (one, other) in pairs if one != other)
    if len(old_lines) == len(new_lines):
        return list(islice(differing, _MAX_PLACES + 1))
    first = next((number for number, _, _ in differing), min(len(old_lines), len(new_lines)) + 1) - 1
    suffix_length = 0
    while (
        suffix_length < min(len(old_lines), len(new_lines)) - first
        and old_lines[-1 - suffix_length] == new_lines[-1 - suffix_length]
    ):
        suffix_length += 1
    removed_lines = old_lines[first : len(old_lines) - suffix_length]
    added_lines = new_lines[first : len(new_lines) - suffix_length]
    if len(removed_lines) + len(added_lines) > _MAX_COMPARED_LINES:
        return [(first + 1, _shorten_lines(removed_lines), _shorten_lines(added_lines))]
    matcher = SequenceMatcher(None, removed_lines, added_lines, autojunk=False)
    runs = (run for run in matcher.get_opcodes() if run[0] != "equal")
    return [
        (first + c + 1, _shorten_lines(removed_lines[a:b]), _shorten_lines(added_lines[c:d]))
        for _, a, b, c, d in islice(runs, _MAX_PLACES + 1)
    ]


def _bare_lines(text: str) -> list[str]:
    return [line.rstrip("\r\n") for line in split_lines(text)]


def _shorten_lines(lines: list[str]) -> list[str]:
    more = len(lines) - _MAX_LINES
    return lines if more <= 1 else [*lines[:_MAX_LINES], f"... {more:,} more lines"]


def _shorten_line(text: str, most: int = _MAX_LINE_CHARACTERS) -> str:
    return text[:most] + "..." * (most < len(text))


def _format_lines(differing: LineDifference) -> list[str]:
    """Format a line as `NUMBER:LINE` where one takes the place of one, else as in a diff."""
    number, removed_lines, added_lines = differing
    if len(removed_lines) == len(added_lines) == 1:
        return [f"{number}:{_format_word_diff(removed_lines[0], added_lines[0])}"]
    return [
        f"@@ {number}",
        *(f"-{_shorten_line(line)}" for line in removed_lines),
        *(f"+{_shorten_line(line)}" for line in added_lines),
    ]


def _format_word_diff(old: str, new: str) -> str:
    """Mark the new line as git's word diff does: `[-old-]{+new+}`; cut a long one to what is about the change."""
    prefix_length = _common_prefix_length(old, new)
    suffix_length = _common_prefix_length(old[prefix_length:][::-1], new[prefix_length:][::-1])
    before = new[:prefix_length]
    after = new[len(new) - suffix_length :]
    removed_text = old[prefix_length : len(old) - suffix_length]
    added_text = new[prefix_length : len(new) - suffix_length]
    changed = f"[-{_shorten_line(removed_text)}-]" * bool(removed_text) + f"{{+{_shorten_line(added_text)}+}}" * bool(
        added_text
    )
    if prefix_length > _MAX_LINE_CHARACTERS // 2:
        before = f"...{before[-_MAX_LINE_CHARACTERS // 4 :]}"
    return (
        before
        + changed
        + _shorten_line(after, max(_MAX_LINE_CHARACTERS - len(before) - len(changed), _MAX_LINE_CHARACTERS // 4))
    )


def _common_prefix_length(one: str, other: str) -> int:
    """Count the characters that are the same at the beginning, without part of a word."""
    same = 0
    most = min(len(one), len(other))
    while same < most:  # by halves: a line may be a whole file
        middle = (same + most + 1) // 2
        same, most = (middle, most) if one[same:middle] == other[same:middle] else (same, middle - 1)
    while (
        same
        and _WORD_CHARACTER.match(one[same - 1])
        and any(_WORD_CHARACTER.match(text[same : same + 1]) for text in (one, other))
    ):
        same -= 1
    return same


def _build_page(
    replacements_by_file: Sequence[_FileReplacement], surprising_pattern: re.Pattern[str] | None
) -> list[tuple[str, Sequence[str], bool]]:
    """As much of a diff as two thousand characters hold: of each file its path, lines, and whether these are all.

    Args:
        surprising_pattern: finds what a line must hold to be shown; of others, their numbers. None shows all lines.
    """
    page: list[tuple[str, Sequence[str], bool]] = []
    remaining_bytes = _DIFF_BYTES
    for one in replacements_by_file:
        if not one.changed_lines:
            continue  # only its encoding changes
        path = one.path.display
        shown_lines: list[str] = []
        remaining_bytes -= len(path) + 1
        for lines in _group_lines(one.changed_lines[:_MAX_PLACES], surprising_pattern):
            remaining_bytes -= sum(map(len, lines)) + len(lines)
            if remaining_bytes < 0:
                return [*page, (path, shown_lines, False)] if shown_lines else page
            shown_lines += lines
        page.append((path, shown_lines, len(one.changed_lines) <= _MAX_PLACES))
    return page


def _group_lines(
    differing: Sequence[LineDifference], surprising_pattern: re.Pattern[str] | None
) -> Iterator[Sequence[str]]:
    """Return the numbers of those that are not surprising, then the others."""
    numbers: list[int] = []
    shown_in_full: list[LineDifference] = []
    for number, removed_lines, added_lines in differing:
        if (
            surprising_pattern is None
            or len(removed_lines) != len(added_lines)
            or any(map(surprising_pattern.search, removed_lines))
        ):
            shown_in_full.append((number, removed_lines, added_lines))
        else:
            numbers.append(number)
    if numbers:
        yield [f" line{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"]
    yield from map(_format_lines, shown_in_full)
