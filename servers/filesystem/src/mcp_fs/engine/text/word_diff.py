"""Shows which words differ in long lines, such as paragraphs: a diff by lines repeats all of both."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

__all__ = ["mark_long_lines"]

# Characters of a line from which on only its words that differ are shown.
_LONG_LINE = 300
_CONTEXT = 60
# Words on both sides that are compared: that takes the square of them.
_MAX_WORDS = 4000
_WORD = re.compile(r"\d[\d.,:]*\d|\w+|\s+|[^\w\s]")


def mark_long_lines(diff: Sequence[str]) -> tuple[list[str], bool]:
    """Return a unified diff with long lines cut to what differs, `~` in front, and whether there are such.

    Words that went stand in `[-...-]`, new ones in `{+...+}`, as in the word diff of Git. A line that became another
    one altogether stays as it is.
    """
    marked: list[str] = []
    has_marked = False
    index = 0
    while index < len(diff):
        removed = _run_of("-", diff, index)
        added = _run_of("+", diff, index + len(removed))
        run = [*removed, *added] or [diff[index]]
        shortened = run
        if removed:
            shortened = _pair_lines(removed, added) or run
        elif not added:
            shortened = [_shorten_context(diff[index])]
        has_marked = has_marked or shortened != run
        marked += shortened
        index += len(run)
    return marked, has_marked


def _run_of(sign: str, diff: Sequence[str], start: int) -> Sequence[str]:
    """Return the lines with a sign from one on, with the remark that the last has no end."""
    end = start
    while end < len(diff) and diff[end].startswith(sign) and not diff[end].startswith(f"{sign * 3} "):
        end += 1
    if end > start and end < len(diff) and diff[end].startswith("\\"):
        end += 1
    return diff[start:end]


def _pair_lines(removed: Sequence[str], added: Sequence[str]) -> list[str] | None:
    """Return each line with the one that took its place as one; None where no line is long or they are unlike."""
    remarks = [line for line in (*removed, *added) if line.startswith("\\")]
    removed = [line for line in removed if not line.startswith("\\")]
    added = [line for line in added if not line.startswith("\\")]
    if len(removed) != len(added) or not any(len(line) > _LONG_LINE for line in (*removed, *added)):
        return None
    pairs: list[str] = []
    for old, new in zip(removed, added, strict=True):
        words = _mark_words(old[1:], new[1:])
        if words is None:
            return None
        pairs.append("~" + words)
    return [*pairs, *remarks[:1]]


def _mark_words(old: str, new: str) -> str | None:
    """Return the words that differ with what stands around them; None if more than half of the two lines does."""
    old_words = _WORD.findall(old)
    new_words = _WORD.findall(new)
    spans = _differing_spans(old_words, new_words)
    changed = sum(len("".join(old_words[a:b])) + len("".join(new_words[c:d])) for a, b, c, d in spans)
    if changed * 2 > len(old) + len(new):
        return None
    pieces: list[str] = []
    position = 0
    for old_start, old_end, new_start, new_end in spans:
        pieces.append(_shorten_between("".join(new_words[position:new_start]), is_first=not pieces))
        if old_end > old_start:
            pieces.append(f"[-{''.join(old_words[old_start:old_end])}-]")
        if new_end > new_start:
            pieces.append(f"{{+{''.join(new_words[new_start:new_end])}+}}")
        position = new_end
    remaining_text = "".join(new_words[position:])
    if len(remaining_text) > _CONTEXT:
        remaining_text = f"{remaining_text[:_CONTEXT]}..."
    return "".join(pieces) + remaining_text


def _differing_spans(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int, int, int]]:
    """Return where words differ: begin and end in the old ones, begin and end in the new ones."""
    head = _common_length(old, new)
    tail = _common_length(old[head:][::-1], new[head:][::-1])
    old_end = len(old) - tail
    new_end = len(new) - tail
    if old_end + new_end - 2 * head > _MAX_WORDS:
        return [(head, old_end, head, new_end)]
    matcher = SequenceMatcher(None, old[head:old_end], new[head:new_end], autojunk=False)
    return [(a + head, b + head, c + head, d + head) for tag, a, b, c, d in matcher.get_opcodes() if tag != "equal"]


def _common_length(one: Sequence[str], other: Sequence[str]) -> int:
    count = 0
    for word, other_word in zip(one, other, strict=False):
        if word != other_word:
            break
        count += 1
    return count


def _shorten_between(text: str, *, is_first: bool) -> str:
    """Return what stands before a difference: of a long text the end, and the beginning if it follows another one."""
    if is_first:
        if len(text) <= _CONTEXT:
            return text
        return f"...{text[-_CONTEXT:]}"
    if len(text) <= 2 * _CONTEXT:
        return text
    return f"{text[:_CONTEXT]}...{text[-_CONTEXT:]}"


def _shorten_context(line: str) -> str:
    """Return a line of context that is long with its beginning only."""
    if line[:1] != " " or len(line) <= _LONG_LINE:
        return line
    return f"{line[:_CONTEXT]}... ({len(line) - 1:,} characters)"
