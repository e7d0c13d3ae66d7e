"""Replaces text exactly: it must occur once, or the error gives the most similar text for another try.

Only line ends are met half-way, since no model sees them: a request written with LF finds text that has CRLF,
and what it puts there gets the line ends of its surroundings. Bytes that do not decode are quoted as they were shown,
as U+FFFD, and stay the bytes they are. Everything else, indentation above all, has to be as it is in the file; what is
guessed wrong there is damage that nobody notices.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Conflict, Invalid, NotFound
from mcp_fs.engine.text.encodings import SizeLimit
from mcp_fs.engine.text.encodings import replace_undecodable as readable
from mcp_fs.engine.text.lookalikes import find_lookalikes, strip_line_numbers

__all__ = [
    "Replacement",
    "ambiguous_error",
    "apply_replacements",
    "check_replacement",
    "common_prefix_length",
    "continue_text",
    "describe_nearest",
    "find_spans",
    "has_open_line",
    "label_edit",
    "line_numbers_of",
    "not_found_error",
    "replace_spans",
    "restore_undecodable",
    "split_lines",
    "unified_diff",
]

_LINE_END = re.compile(r"\r\n|\n|\r")
_OTHER_LINE_ENDS = re.compile("[\v\f\x1c-\x1e\x85\u2028\u2029]")  # what only str.splitlines ends lines at
_REPLACEMENT_CHARACTER = "\ufffd"
# That character itself, and the surrogates that stand for bytes that do not decode.
_SHOWN_AS_REPLACEMENT = re.compile("[\ufffd\ud800-\udfff]")
_CONTEXT_LINES = 3  # lines around a change in a diff
_MAX_COMPARED_LINES = 5000  # lines that are looked at one by one for something alike
_ANY_END = r"(?:\r\n|(?<!\r)\n|\r(?!\n))"  # one whole line end, never the half of one
_MAX_QUOTED_LINES = 12  # lines of what comes nearest to a text that is not there
_MAX_NAMED_PLACES = 10  # positions of an ambiguous text
_MAX_DIFFED_LINES = 4000  # lines; difflib can take time that grows with their square


@dataclass(frozen=True, slots=True)
class Replacement:
    """`old` becomes `new`: where it stands, once, or with `replace_all` at each place.

    Attributes:
        lookalike: whether characters that look the same are taken for each other, where the text stands once but for
            them.
    """

    old: str
    new: str
    replace_all: bool = False
    lookalike: bool = False


def apply_replacements(text: str, replacements: Sequence[Replacement], label: str, cancel: CancelToken) -> str:
    """Return `text` with all `replacements` made, each on the outcome of those before it.

    Args:
        label: the file's name for messages.

    Raises:
        Invalid: a replacement is empty or changes nothing.
        NotFound: its old text is not there; quotes the nearest.
        Conflict: it is there more than once; names the lines.
        OverflowError: the text would get too long.
    """
    for number, item in enumerate(replacements, 1):
        cancel.check()
        edit_label = label_edit(number, replacements)
        check_replacement(item, edit_label, is_empty=not text)
        readable_text = readable(text)  # of the same length
        spans = find_spans(readable_text, item)
        if not spans:
            raise not_found_error(readable_text, item, edit_label, label, cancel)
        if len(spans) > 1 and not item.replace_all:
            raise ambiguous_error(edit_label, label, len(spans), line_numbers_of(text, spans))
        text = replace_spans(text, spans, item)
    return text


def label_edit(number: int, replacements: Sequence[Replacement]) -> str:
    """Return what messages call one of several edits."""
    if len(replacements) <= 1:
        return "The edit"
    return f"Edit {number}"


def check_replacement(replacement: Replacement, edit_label: str, *, is_empty: bool) -> None:
    """Check that a replacement can be made in some text.

    Args:
        is_empty: whether there is no text yet.

    Raises:
        Invalid: it is empty, changes nothing or can't be written.
    """
    if not replacement.old:
        fix = "Quote the text that stands where the new one goes."
        if is_empty:
            fix = "Fill an empty file with `write_file`."
        raise Invalid(f"{edit_label} has an empty `old_text`.", fix)
    if replacement.old == replacement.new:
        raise Invalid(f"{edit_label} replaces text by the same text.")
    if readable(replacement.new) != replacement.new:
        raise Invalid(f"{edit_label} has a lone surrogate, which no text file can hold.")


def not_found_error(text: str, replacement: Replacement, edit_label: str, label: str, cancel: CancelToken) -> NotFound:
    """Return the answer when an old text is not there: the nearest that is, or that the edit was made already."""
    new_spans: list[tuple[int, int]] = []
    if replacement.new:
        new_spans = _find_exact(text, Replacement(replacement.new, ""))
    disguise = _describe_disguise(text, replacement)
    if len(new_spans) == 1 and _covers_whole_lines(text, *new_spans[0]):
        hint = f"The new text stands at line {_format_lines(line_numbers_of(text, new_spans))} already."
    elif disguise:
        hint = disguise
    else:
        hint = describe_nearest(text, replacement.old, cancel)
    return NotFound(f"{edit_label}: the old text is not in {label}.", hint)


def _describe_disguise(text: str, replacement: Replacement) -> str:
    """Say by what the old text differs that looks the same or was never in the file; nothing if by more."""
    stripped = strip_line_numbers(replacement.old)
    if stripped and find_spans(text, Replacement(stripped, "")):
        return "It is there without the numbers before the lines, which are not in the file: leave them out."
    matches = find_lookalikes(text, replacement.old)
    if not matches:
        return ""
    if len(matches) > 1:
        return f"It is there several times in characters that look the same: {matches[0].describe(text)}."
    return f"It is there in characters that look the same: {matches[0].describe(text)}. Set `lookalike` to take it."


def ambiguous_error(edit_label: str, label: str, count: int, lines: Sequence[int]) -> Conflict:
    """Return the answer when an old text is found several times."""
    places = f"at lines {_format_lines(lines)}"
    if count > _MAX_NAMED_PLACES:
        places += " and more"
    return Conflict(
        f"{edit_label}: the old text is in {label} {_format_count(count)}, {places}.",
        "Quote more of the lines around it, or set `replace_all`.",
    )


def continue_text(ending: str, addition: str) -> str:
    """Return what is added to a text that ends in `ending`: lines that end as its last one, and begin a new one.

    A carriage return in the addition means that the caller knows the line ends.
    """
    line_end = _last_line_end(ending)
    if "\r" not in addition:
        addition = addition.replace("\n", line_end)
    if has_open_line(ending, addition):
        return line_end + addition
    return addition


def has_open_line(ending: str, addition: str) -> bool:
    """Return whether the last line of a text has no end, so that what is added would go on with it."""
    if not ending or not addition:
        return False
    return not ending.endswith(("\n", "\r")) and not addition.startswith(("\n", "\r"))


def _last_line_end(text: str) -> str:
    """Return how the last line ends that has an end; a line feed without any."""
    last = max(text.rfind("\n"), text.rfind("\r"))
    if last < 0:
        return "\n"
    if text[last - 1 : last + 1] == "\r\n":
        return "\r\n"
    return text[last]


def restore_undecodable(new: str, old: str) -> str:
    """Return `new` with the bytes that stand in `old` where both show U+FFFD, in order.

    Raises:
        Invalid: `new` shows some of them and not all, so that it is not known which.
    """
    if _REPLACEMENT_CHARACTER not in new:
        return new
    undecodable = _SHOWN_AS_REPLACEMENT.findall(old)
    if all(char == _REPLACEMENT_CHARACTER for char in undecodable):
        return new
    first, *pieces = new.split(_REPLACEMENT_CHARACTER)
    if len(pieces) != len(undecodable):
        raise Invalid(
            f"The old text has {_REPLACEMENT_CHARACTER} {len(undecodable)} times, the new one {len(pieces)} times: "
            "each stands for bytes that do not decode.",
            "Keep all of them, or none.",
        )
    return first + "".join(char + piece for char, piece in zip(undecodable, pieces, strict=True))


def split_lines(text: str) -> list[str]:
    """Return the lines of `text` with their ends: CRLF, LF or CR, and none of what else Unicode counts as one."""
    if _OTHER_LINE_ENDS.search(text) is None:
        return text.splitlines(keepends=True)
    lines: list[str] = []
    start = 0
    for line_end in _LINE_END.finditer(text):
        lines.append(text[start : line_end.end()])
        start = line_end.end()
    if start < len(text):
        lines.append(text[start:])
    return lines


def describe_nearest(text: str, missing_text: str, cancel: CancelToken) -> str:
    """Return where `text` comes nearest to `missing_text`, as advice: the line and the words that are really there."""
    lines = split_lines(text)
    sought = missing_text.splitlines() or [missing_text]
    start = _find_by_equal_lines(lines, sought)
    if start is None:
        start = _find_by_similar_line(lines, sought, cancel)
    if start is None:
        return "Nothing there is like it; read the file again."
    begin = start
    difference = ""
    equal_lines = common_prefix_length([line.rstrip("\r\n") for line in lines[start : start + len(sought)]], sought)
    if _MAX_QUOTED_LINES <= equal_lines < len(sought):
        begin += equal_lines
        difference = f", and differs from line {begin + 1} on"
    end_of_quote = min(start + len(sought), begin + _MAX_QUOTED_LINES)
    quoted_lines = "".join(lines[begin:end_of_quote]).replace("\r\n", "\n").rstrip("\n")
    end = ""
    if start + len(sought) >= len(lines) and lines[-1] == lines[-1].rstrip("\r\n") and missing_text.endswith("\n"):
        end = ", and without a line end, which the last line has not"
    return (
        f"The nearest is at line {start + 1}{difference}; copy it exactly, blanks included{end}:\n{quoted_lines[:1500]}"
    )


def unified_diff(
    old: str, new: str, path: str, *, to: str | None = None, created: bool = False, deleted: bool = False
) -> str:
    """Return the change from `old` to `new` as a unified diff, LF only; what is too long to compare is counted."""
    old_lines = split_lines(old)
    new_lines = split_lines(new)
    head = common_prefix_length(old_lines, new_lines)
    tail = common_prefix_length(old_lines[head:][::-1], new_lines[head:][::-1])
    removed = len(old_lines) - head - tail
    added = len(new_lines) - head - tail
    source = f"a/{path}"
    if created:
        source = "/dev/null"
    target = f"b/{to or path}"
    if deleted:
        target = "/dev/null"
    if max(removed, added) > _MAX_DIFFED_LINES:
        return f"--- {source}\n+++ {target}\n{removed:,} lines from line {head + 1} on became {added:,}\n"
    # Only what differs is compared; the context comes from the whole files, so that hunks begin and end as far
    # from a change as patch(1) expects.
    matcher = difflib.SequenceMatcher(None, old_lines[head : head + removed], new_lines[head : head + added])
    changes = [
        _ChangedSpan(i1 + head, i2 + head, j1 + head, j2 + head)
        for tag, i1, i2, j1, j2 in matcher.get_opcodes()
        if tag != "equal"
    ]
    lines = [f"--- {source}", f"+++ {target}"]
    for hunk_changes in _group_into_hunks(changes):
        lines += _format_hunk(old_lines, new_lines, hunk_changes)
    return "\n".join(lines)


class _ChangedSpan(NamedTuple):
    """Lines of the old file that became lines of the new one; the ends are not included."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def _group_into_hunks(changes: Sequence[_ChangedSpan]) -> list[list[_ChangedSpan]]:
    """Return changes, those together between which there are only lines of context."""
    hunks: list[list[_ChangedSpan]] = []
    for change in changes:
        if hunks and change.old_start - hunks[-1][-1].old_end <= 2 * _CONTEXT_LINES:
            hunks[-1].append(change)
        else:
            hunks.append([change])
    return hunks


def _format_hunk(old_lines: Sequence[str], new_lines: Sequence[str], changes: Sequence[_ChangedSpan]) -> list[str]:
    """Return one hunk of a unified diff: changed spans of both files, not far apart, and what stands around them."""
    first = changes[0]
    last = changes[-1]
    start = max(0, first.old_start - _CONTEXT_LINES)
    end = min(len(old_lines), last.old_end + _CONTEXT_LINES)
    shift = first.new_start - first.old_start
    growth = last.new_end - last.old_end
    lines = [f"@@ -{_format_range(start, end)} +{_format_range(start + shift, end + growth)} @@"]
    shown_until = start
    for change in changes:
        lines += [_format_line(" ", line) for line in old_lines[shown_until : change.old_start]]
        lines += [_format_line("-", line) for line in old_lines[change.old_start : change.old_end]]
        lines += [_format_line("+", line) for line in new_lines[change.new_start : change.new_end]]
        shown_until = change.old_end
    return lines + [_format_line(" ", line) for line in old_lines[shown_until:end]]


def _format_range(start: int, end: int) -> str:
    if end - start == 1:
        return str(start + 1)
    return f"{start + (end > start)},{end - start}"


def _format_line(sign: str, line: str) -> str:
    body = line.rstrip("\r\n")
    if body != line:
        return sign + body
    return f"{sign}{body}\n\\ No newline at end of file"


def find_spans(text: str, replacement: Replacement) -> list[tuple[int, int]]:
    """Return (start, end) of each occurrence of the old text; without `replace_all`, overlapping ones count."""
    spans = _find_spans(text, replacement)
    if not spans and replacement.lookalike:
        matches = find_lookalikes(text, replacement.old)
        if len(matches) == 1:
            return [(matches[0].start, matches[0].end)]
    return spans


def _find_spans(text: str, replacement: Replacement) -> list[tuple[int, int]]:
    old = replacement.old
    # A carriage return in the old text means the caller knows the line ends; a line feed alone means any of them.
    means_any_end = "\n" in old and "\r" not in old and "\r" in text
    if not means_any_end:
        spans = _find_exact(text, replacement)
        if not _LINE_END.search(old) or (spans and not replacement.replace_all):
            return spans
    pattern = _ANY_END.join(re.escape(piece) for piece in _LINE_END.split(old))
    if replacement.replace_all:
        return [match.span() for match in re.finditer(pattern, text)]
    return _find_overlapping(re.compile(pattern), text)


def _find_overlapping(pattern: re.Pattern[str], text: str) -> list[tuple[int, int]]:
    """Return the first matches of a pattern, also where they overlap."""
    spans: list[tuple[int, int]] = []
    # Not by a look ahead, which would try at each character where plain letters are looked for at once.
    match = pattern.search(text)
    while match is not None and len(spans) <= _MAX_NAMED_PLACES:
        spans.append(match.span())
        match = pattern.search(text, match.start() + 1)
    return spans


def _find_exact(text: str, replacement: Replacement) -> list[tuple[int, int]]:
    length = len(replacement.old)
    step = 1
    if replacement.replace_all:
        step = length
    spans: list[tuple[int, int]] = []
    start = text.find(replacement.old)
    while start >= 0:
        spans.append((start, start + length))
        if len(spans) > _MAX_NAMED_PLACES and not replacement.replace_all:
            break
        start = text.find(replacement.old, start + step)
    return spans


def _covers_whole_lines(text: str, start: int, end: int) -> bool:
    """Return whether a match begins and ends where lines do."""
    ends = ("", "\n", "\r")
    return text[start - 1 : start] in ends and (text[end : end + 1] in ends or text[end - 1] in ends)


def replace_spans(text: str, spans: Sequence[tuple[int, int]], replacement: Replacement) -> str:
    """Return `text` with the new text at each of `spans`, whose lines end as those there do.

    Raises:
        Invalid: it is not known which undecodable bytes the new text keeps.
        OverflowError: the text would get too long.
    """
    adapter = _LineEndAdapter(text, replacement)
    pieces: list[str] = []
    copied_until = 0
    size_limit = SizeLimit(text)
    for start, end in spans:
        new = restore_undecodable(adapter.new_text_at(start, end), text[start:end])
        pieces.append(text[copied_until:start])
        pieces.append(size_limit.replace(end - start, new))
        copied_until = end
    return "".join([*pieces, text[copied_until:]])


class _LineEndAdapter:
    """Gives the new text of a replacement the line ends of what it replaces."""

    def __init__(self, text: str, replacement: Replacement) -> None:
        self._text = text
        self._replacement = replacement
        self._is_mixed = False
        self._adapted = replacement.new
        if not _LINE_END.search(replacement.new):
            return
        line_ends = _line_ends_in(text)
        self._is_mixed = len(line_ends) > 1
        if not self._is_mixed:
            self._adapted = _LINE_END.sub(next(iter(line_ends), "\n"), replacement.new)

    def new_text_at(self, start: int, end: int) -> str:
        old = self._replacement.old
        # CR in an old text that matched as it stands: the caller knows the line ends, and means them.
        if "\r" in old and readable(self._text[start:end]) == old:
            return self._replacement.new
        if not self._is_mixed:
            return self._adapted
        return _LINE_END.sub(_line_end_near(self._text, start, end), self._replacement.new)


def _line_ends_in(text: str) -> set[str]:
    """Return the line ends in a text."""
    if "\r" not in text:
        if "\n" in text:
            return {"\n"}
        return set()
    pairs = text.count("\r\n")
    numbers = {"\r\n": pairs, "\n": text.count("\n") - pairs, "\r": text.count("\r") - pairs}
    return {end for end, number in numbers.items() if number}


def _line_end_near(text: str, start: int, end: int) -> str:
    """Return the line end in use at a place: in it, else after it, else before it."""
    line_end = _LINE_END.search(text, start, end) or _LINE_END.search(text, max(start, end - 1))
    if line_end is None:
        previous = max(text.rfind("\n", 0, start), text.rfind("\r", 0, start))
        if previous >= 0:
            line_end = _LINE_END.search(text, max(0, previous - 1))
    if line_end is None:
        return "\n"
    return line_end[0]


def _format_count(count: int) -> str:
    if count <= _MAX_NAMED_PLACES:
        return f"{count} times"
    return f"more than {_MAX_NAMED_PLACES} times"


def line_numbers_of(text: str, spans: Sequence[tuple[int, int]]) -> list[int]:
    """Return the lines, from 1, at which the first matches begin."""
    numbers: list[int] = []
    line = 1
    counted_until = 0
    for start, _ in spans[:_MAX_NAMED_PLACES]:
        line += len(_LINE_END.findall(text, counted_until, start))
        counted_until = start
        numbers.append(line)
    return numbers


def _format_lines(numbers: Sequence[int]) -> str:
    return ", ".join(str(number) for number in dict.fromkeys(numbers[:_MAX_NAMED_PLACES]))


def _find_by_equal_lines(lines: Sequence[str], missing_lines: Sequence[str]) -> int | None:
    """Return the start that most lines of `missing_lines` agree on when blanks at both ends do not count."""
    positions = _positions_of_lines(missing_lines)
    votes = Counter[int]()
    for number, line in enumerate(lines):
        for index in positions.get(line.strip(), ())[:20]:
            votes[max(0, number - index)] += 1
    if not votes:
        return None
    most = max(votes.values())
    return min(start for start, count in votes.items() if count == most)


def _positions_of_lines(lines: Sequence[str]) -> dict[str, list[int]]:
    """Return where each line stands, without its blanks; empty ones are left out."""
    positions: dict[str, list[int]] = {}
    for index, line in enumerate(lines):
        text = line.strip()
        if text:
            positions.setdefault(text, []).append(index)
    return positions


def _find_by_similar_line(lines: Sequence[str], missing_lines: Sequence[str], cancel: CancelToken) -> int | None:
    """Return the start at which the longest line of `missing_lines` meets the line most like it."""
    index = max(range(len(missing_lines)), key=lambda number: len(missing_lines[number].strip()))
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(missing_lines[index].strip()[:200])
    best = 0.5
    start = None
    for number, line in enumerate(lines[:_MAX_COMPARED_LINES]):
        cancel.check()
        matcher.set_seq1(line.strip()[:200])
        if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best and matcher.ratio() > best:
            best = matcher.ratio()
            start = max(0, number - index)
    return start


def common_prefix_length(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many items at the beginning are equal."""
    for index, (first_item, second_item) in enumerate(zip(one, other, strict=False)):
        if first_item != second_item:
            return index
    return min(len(one), len(other))
