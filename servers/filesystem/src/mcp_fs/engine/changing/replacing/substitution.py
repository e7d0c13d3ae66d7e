"""What becomes what in a text, in one pass."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from typing import Literal

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_fs.engine.patterns.regex import NextMatch, SearchText, TextMatches, compile_replacement
from mcp_fs.engine.patterns.unicode_classes import expand_compositions
from mcp_fs.engine.text.encodings import Encoding, SizeLimit

__all__ = ["MATCHES_NOTHING", "Substitute", "Substitution", "ends_lines_in_crlf"]

MATCHES_NOTHING = re.compile(r"(?!)")
# No character before it is a mark, or a part of a Korean syllable.
_FIRST_MARK = "\u0300"
# No character of Unicode has more parts.
_MAX_PARTS = 4

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
            return MATCHES_NOTHING
        alternatives: list[str] = []
        for old in self.replacements:
            text = re.escape(old)
            alternatives.append(rf"(?<=\w)(?=\w){text}|{text}(?<=\w)(?=\w)")
        return re.compile("|".join(alternatives))

    def _compile_matches(self, old: str, new: str) -> TextMatches:
        if self.by == "regex":
            return compile_replacement(old, new, ignore_case=self.ignore_case)
        # Escaped, the expression is a plain text with two looks at its neighbours: no repetition, nothing to blow up.
        source = expand_compositions(re.escape(old))
        if self.by == "word":
            source = rf"(?<!\w){source}(?!\w)"
        compiled = re.compile(source, re.IGNORECASE if self.ignore_case else 0)
        is_part = _is_part_of_character
        if self.by == "word":
            is_part = _is_part_of_word

        def matches(searched: SearchText) -> NextMatch:
            text = searched.text

            def find_next(offset: int) -> tuple[int, int, str] | None:
                match = compiled.search(text, offset)
                while match is not None and is_part(text, *match.span()):
                    match = compiled.search(text, match.start() + 1)
                if match is None:
                    return None
                begin, end = match.span()
                return begin, end, new

            return find_next

        return matches


def _is_part_of_character(text: str, begin: int, end: int) -> bool:
    """Return whether what is behind a match composes with it: `ê` and an acute are another letter."""
    following = text[end : end + 1]
    if following < _FIRST_MARK:
        return False
    last = text[max(begin, end - _MAX_PARTS) : end]
    return unicodedata.normalize("NFC", last + following) != unicodedata.normalize("NFC", last) + following


def _is_part_of_word(text: str, begin: int, end: int) -> bool:
    """Return whether marks before or behind a match join it to a word, as vowels of Hindi do; they are no `\\w`."""
    neighbors = text[max(begin - 1, 0) : begin] + text[end : end + 1]
    if any(unicodedata.category(neighbor).startswith("M") for neighbor in neighbors):
        return True
    return _is_part_of_character(text, begin, end)


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


def ends_lines_in_crlf(text: str) -> bool:
    """Return whether all lines of a text end in CRLF, and there are some."""
    line_count = text.count("\r\n")
    return line_count > 0 and text.count("\r") == line_count and text.count("\n") == line_count


def _with_line_feeds(substitute: Substitute, text: str) -> tuple[str, Sequence[int]]:
    """Substitute in a text whose lines end in CRLF as if they ended in LF, as callers write and search for it."""
    if not ends_lines_in_crlf(text):
        return substitute(text)
    new, counts = substitute(text.replace("\r\n", "\n"))
    return re.sub("\r?\n", "\r\n", new), counts
