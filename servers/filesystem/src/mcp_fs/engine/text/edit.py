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

from mcp_batteries.errors import Conflict, Invalid, NotFound
from mcp_batteries.limits import Stop
from mcp_fs.engine.text.encodings import Growing
from mcp_fs.engine.text.encodings import shown as readable

__all__ = [
    "Replacement",
    "ambiguous",
    "appended",
    "carry_damage",
    "check_replacement",
    "equal_at_start",
    "find_places",
    "line_numbers",
    "lines_of",
    "name_of_edit",
    "nearest",
    "not_found",
    "put_at",
    "replace",
    "unified_diff",
]

_LINE_END = re.compile(r"\r\n|\n|\r")
_OTHER_LINE_ENDS = re.compile("[\v\f\x1c-\x1e\x85\u2028\u2029]")  # what only str.splitlines ends lines at
_UNKNOWN = "\ufffd"
_CONTEXT = 3  # lines around a change in a diff
_MOST_COMPARED = 5000  # lines that are looked at one by one for something alike
_ANY_END = r"(?:\r\n|(?<!\r)\n|\r(?!\n))"  # one whole line end, never the half of one
_MOST_NAMED = 10  # places of an ambiguous text
_MOST_DIFFED = 4000  # lines; difflib can take time that grows with their square


@dataclass(frozen=True, slots=True)
class Replacement:
    """`old` becomes `new`: where it stands, once, or with `everywhere` at each place."""

    old: str
    new: str
    everywhere: bool = False


def replace(text: str, replacements: Sequence[Replacement], shown: str, stop: Stop) -> str:
    """`text` with all `replacements` made, each on the outcome of those before it.

    Args:
        shown: the file's name for messages.

    Raises:
        Invalid: a replacement is empty or changes nothing.
        NotFound: its old text is not there; quotes the nearest.
        Conflict: it is there more than once; names the lines.
        OverflowError: the text would get too long.
    """
    for number, item in enumerate(replacements, 1):
        stop.check()
        which = name_of_edit(number, replacements)
        check_replacement(item, which, is_empty=not text)
        seen = readable(text)  # of the same length
        places = find_places(seen, item)
        if not places:
            raise not_found(seen, item, which, shown, stop)
        if len(places) > 1 and not item.everywhere:
            raise ambiguous(which, shown, len(places), line_numbers(text, places))
        text = put_at(text, places, item)
    return text


def name_of_edit(number: int, replacements: Sequence[Replacement]) -> str:
    """What messages call one of several edits."""
    return f"Edit {number}" if len(replacements) > 1 else "The edit"


def check_replacement(item: Replacement, which: str, *, is_empty: bool) -> None:
    """Check that a replacement can be made in some text.

    Args:
        is_empty: whether there is no text yet.

    Raises:
        Invalid: it is empty, changes nothing or can't be written.
    """
    if not item.old:
        fix = (
            "Fill an empty file with `write_file`."
            if is_empty
            else "Quote the text that stands where the new one goes."
        )
        raise Invalid(f"{which} has an empty `old_text`.", fix)
    if item.old == item.new:
        raise Invalid(f"{which} replaces text by the same text.")
    if readable(item.new) != item.new:
        raise Invalid(f"{which} has a lone surrogate, which no text file can hold.")


def not_found(seen: str, item: Replacement, which: str, shown: str, stop: Stop) -> NotFound:
    """The answer when an old text is not there: the nearest that is, or that the edit was made already."""
    done = _exact(seen, Replacement(item.new, "")) if item.new else []
    if len(done) == 1 and _whole_lines(seen, *done[0]):
        hint = f"The new text stands at line {_listed(line_numbers(seen, done))} already."
    else:
        hint = nearest(seen, item.old, stop)
    return NotFound(f"{which}: the old text is not in {shown}.", hint)


def ambiguous(which: str, shown: str, places: int, lines: Sequence[int]) -> Conflict:
    """The answer when an old text is at several places."""
    return Conflict(
        f"{which}: the old text is in {shown} {_times(places)}, at lines {_listed(lines)}"
        f"{' and more' if places > _MOST_NAMED else ''}.",
        "Quote more of the lines around it, or set `replace_all`.",
    )


def appended(text: str, added: str) -> str:
    """`text` with `added` at its end, whose lines end as the last one there does; CR in it means the caller knows."""
    last = max(text.rfind("\n"), text.rfind("\r"))
    if last < 0 or "\r" in added:
        return text + added
    return text + added.replace("\n", "\r\n" if text[last - 1 : last + 1] == "\r\n" else text[last])


def carry_damage(new: str, old: str) -> str:
    """`new` with the bytes that stand in `old` where both show U+FFFD, in order.

    Raises:
        Invalid: `new` shows some of them and not all, so that it is not known which.
    """
    damaged = [char for char in old if char == _UNKNOWN or "\ud800" <= char <= "\udfff"]
    if _UNKNOWN not in new or all(char == _UNKNOWN for char in damaged):
        return new
    first, *rest = new.split(_UNKNOWN)
    if len(rest) != len(damaged):
        raise Invalid(
            f"The old text has {_UNKNOWN} {len(damaged)} times, the new one {len(rest)} times: each stands for bytes "
            "that do not decode.",
            "Keep all of them, or none.",
        )
    return first + "".join(char + part for char, part in zip(damaged, rest, strict=True))


def lines_of(text: str) -> list[str]:
    """The lines of `text` with their ends: CRLF, LF or CR, and none of what else Unicode counts as one."""
    if _OTHER_LINE_ENDS.search(text) is None:
        return text.splitlines(keepends=True)
    lines: list[str] = []
    start = 0
    for end in _LINE_END.finditer(text):
        lines.append(text[start : end.end()])
        start = end.end()
    return [*lines, text[start:]] if start < len(text) else lines


def nearest(text: str, wanted: str, stop: Stop) -> str:
    """Where `text` comes nearest to `wanted`, as advice: the line and the words that are really there."""
    lines, sought = lines_of(text), wanted.splitlines() or [wanted]
    start = _by_equal_lines(lines, sought)
    if start is None:
        start = _by_like_line(lines, sought, stop)
    if start is None:
        return "Nothing there is like it; read the file again."
    found = "".join(lines[start : start + min(len(sought), 12)]).replace("\r\n", "\n").rstrip("\n")
    return f"The nearest is at line {start + 1}; copy it exactly, blanks included:\n{found[:1500]}"


def unified_diff(
    old: str, new: str, path: str, *, to: str | None = None, created: bool = False, deleted: bool = False
) -> str:
    """The change from `old` to `new` as a unified diff, LF only; what is too long to compare is counted."""
    before, after = lines_of(old), lines_of(new)
    head = equal_at_start(before, after)
    tail = equal_at_start(before[head:][::-1], after[head:][::-1])
    removed, added = len(before) - head - tail, len(after) - head - tail
    source, target = "/dev/null" if created else f"a/{path}", "/dev/null" if deleted else f"b/{to or path}"
    if max(removed, added) > _MOST_DIFFED:
        return f"--- {source}\n+++ {target}\n{removed:,} lines from line {head + 1} on became {added:,}\n"
    # Only what differs is compared; the context comes from the whole files, so that hunks begin and end as far
    # from a change as patch(1) expects.
    matcher = difflib.SequenceMatcher(None, before[head : head + removed], after[head : head + added])
    changes = [
        (i1 + head, i2 + head, j1 + head, j2 + head) for tag, i1, i2, j1, j2 in matcher.get_opcodes() if tag != "equal"
    ]
    lines = [f"--- {source}", f"+++ {target}"]
    while changes:
        size = 1
        while size < len(changes) and changes[size][0] - changes[size - 1][1] <= 2 * _CONTEXT:
            size += 1
        lines += _hunk(before, after, changes[:size])
        del changes[:size]
    return "\n".join(lines)


def _hunk(before: Sequence[str], after: Sequence[str], changes: Sequence[tuple[int, int, int, int]]) -> list[str]:
    """One hunk of a unified diff: changed spans of both files, not far apart, and what stands around them."""
    start, end = max(0, changes[0][0] - _CONTEXT), min(len(before), changes[-1][1] + _CONTEXT)
    shift, growth = changes[0][2] - changes[0][0], changes[-1][3] - changes[-1][1]
    lines = [f"@@ -{_span(start, end)} +{_span(start + shift, end + growth)} @@"]
    done = start
    for i1, i2, j1, j2 in changes:
        lines += [_marked(" ", line) for line in before[done:i1]]
        lines += [_marked("-", line) for line in before[i1:i2]]
        lines += [_marked("+", line) for line in after[j1:j2]]
        done = i2
    return lines + [_marked(" ", line) for line in before[done:end]]


def _span(start: int, end: int) -> str:
    if end - start == 1:
        return str(start + 1)
    return f"{start + (end > start)},{end - start}"


def _marked(mark: str, line: str) -> str:
    body = line.rstrip("\r\n")
    return mark + body if body != line else f"{mark}{body}\n\\ No newline at end of file"


def find_places(text: str, item: Replacement) -> list[tuple[int, int]]:
    """(start, end) of each place of the old text; without `everywhere`, overlapping ones count."""
    # A carriage return in the old text means the caller knows the line ends; a line feed alone means any of them.
    means_any = "\n" in item.old and "\r" not in item.old and "\r" in text
    places = [] if means_any else _exact(text, item)
    if means_any or (_LINE_END.search(item.old) and (not places or item.everywhere)):
        sought = _ANY_END.join(re.escape(part) for part in _LINE_END.split(item.old))
        if item.everywhere:
            return [found.span() for found in re.finditer(sought, text)]
        search = re.compile(sought).search
        # Not by a look ahead, which would try at each character where plain letters are looked for at once.
        while len(places) <= _MOST_NAMED and (found := search(text, places[-1][0] + 1 if places else 0)):
            places.append(found.span())
    return places


def _exact(text: str, item: Replacement) -> list[tuple[int, int]]:
    places: list[tuple[int, int]] = []
    start = text.find(item.old)
    while start >= 0:
        places.append((start, start + len(item.old)))
        if len(places) > _MOST_NAMED and not item.everywhere:
            break
        start = text.find(item.old, start + (len(item.old) if item.everywhere else 1))
    return places


def _whole_lines(text: str, start: int, end: int) -> bool:
    """Whether a place begins and ends where lines do."""
    ends = ("", "\n", "\r")
    return text[start - 1 : start] in ends and (text[end : end + 1] in ends or text[end - 1] in ends)


def put_at(text: str, places: Sequence[tuple[int, int]], item: Replacement) -> str:
    ends = _ends(text) if _LINE_END.search(item.new) else {"\n"}
    common = (ends.pop() if ends else "\n") if len(ends) < 2 else None
    adapted = item.new if common is None else _LINE_END.sub(common, item.new)
    pieces: list[str] = []
    done = 0
    growing = Growing(text)
    for start, end in places:
        new = adapted
        # CR in an old text that matched as it stands: the caller knows the line ends, and means them.
        if "\r" in item.old and readable(text[start:end]) == item.old:
            new = item.new
        elif common is None:
            new = _LINE_END.sub(_local_end(text, start, end), new)
        pieces += [text[done:start], growing.replaces(end - start, carry_damage(new, text[start:end]))]
        done = end
    return "".join([*pieces, text[done:]])


def _ends(text: str) -> set[str]:
    """The line ends in a text."""
    if "\r" not in text:
        return {"\n"} if "\n" in text else set()
    pairs = text.count("\r\n")
    numbers = {"\r\n": pairs, "\n": text.count("\n") - pairs, "\r": text.count("\r") - pairs}
    return {end for end, number in numbers.items() if number}


def _local_end(text: str, start: int, end: int) -> str:
    """The line end in use at a place: in it, else after it, else before it."""
    found = _LINE_END.search(text, start, end) or _LINE_END.search(text, max(start, end - 1))
    if found is None:
        before = max(text.rfind("\n", 0, start), text.rfind("\r", 0, start))
        found = _LINE_END.search(text, max(0, before - 1)) if before >= 0 else None
    return found[0] if found else "\n"


def _times(count: int) -> str:
    return f"{count} times" if count <= _MOST_NAMED else f"more than {_MOST_NAMED} times"


def line_numbers(text: str, places: Sequence[tuple[int, int]]) -> list[int]:
    """The lines, from 1, at which the first places begin."""
    numbers: list[int] = []
    line = done = 0
    for start, _ in places[:_MOST_NAMED]:
        line += len(_LINE_END.findall(text, done, start))
        done = start
        numbers.append(line + 1)
    return numbers


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(str(number) for number in dict.fromkeys(numbers[:_MOST_NAMED]))


def _by_equal_lines(lines: Sequence[str], sought: Sequence[str]) -> int | None:
    """The start that most lines of `sought` agree on when blanks at both ends do not count."""
    wanted: dict[str, list[int]] = {}
    for index, line in enumerate(sought):
        if line.strip():
            wanted.setdefault(line.strip(), []).append(index)
    votes = Counter[int]()
    for number, line in enumerate(lines):
        for index in wanted.get(line.strip(), ())[:20]:
            votes[max(0, number - index)] += 1
    if not votes:
        return None
    most = max(votes.values())
    return min(start for start, count in votes.items() if count == most)


def _by_like_line(lines: Sequence[str], sought: Sequence[str], stop: Stop) -> int | None:
    """The start at which the longest line of `sought` meets the line most like it."""
    index = max(range(len(sought)), key=lambda number: len(sought[number].strip()))
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(sought[index].strip()[:200])
    best, start = 0.5, None
    for number, line in enumerate(lines[:_MOST_COMPARED]):
        stop.check()
        matcher.set_seq1(line.strip()[:200])
        if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best and matcher.ratio() > best:
            best, start = matcher.ratio(), max(0, number - index)
    return start


def equal_at_start(one: Sequence[str], other: Sequence[str]) -> int:
    """How many items at the beginning are equal."""
    for index, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return index
    return min(len(one), len(other))
