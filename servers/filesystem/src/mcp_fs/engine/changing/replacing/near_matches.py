"""What is nearly an old text and stays: in another case, with other blanks or line ends, or in a longer word."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field

from mcp_batteries.errors import Invalid, quote
from mcp_fs.engine.changing.replacing.substitution import MATCHES_NOTHING, Substitution, ends_lines_in_crlf
from mcp_fs.engine.patterns.regex import LineSearch, compile_line_search
from mcp_fs.engine.patterns.unicode_classes import expand_compositions
from mcp_fs.engine.text.encodings import replace_undecodable

__all__ = ["NearMatches"]

# Shorter old texts are in many words.
_MIN_CHARACTERS = 4
_MAX_OLD_TEXTS = 20
# Beyond these nothing is told, because a part would be taken for all.
_MAX_SEARCHED_CHARACTERS = 20_000_000
_MAX_SPELLINGS = 1000
# Of the word around a match, on either side.
_MAX_NEIGHBORS = 30
_MAX_NEIGHBOR_BYTES = _MAX_NEIGHBORS * 4
_MAX_NAMED = 4
# Accents may stand apart from their letters.
_WORD_PART = rf"[\w\u0300-\u036f]{{1,{_MAX_NEIGHBORS}}}"
_WORD_BEFORE = re.compile(rf"{_WORD_PART}\Z")
_WORD_BEHIND = re.compile(_WORD_PART)


@dataclass(slots=True)
class NearMatches:
    """Counts what is nearly an old text in the texts that a replacement searches.

    Attributes:
        search: finds the old texts in any case and with any blanks; None where near matches are not looked for.
        replaced: matches what is replaced, as a whole.
        counts: how often each spelling of a near match was found.
        characters: how many were searched.
    """

    substitution: Substitution
    search: LineSearch | None = None
    replaced: re.Pattern[str] = MATCHES_NOTHING
    counts: Counter[str] = field(default_factory=Counter[str])
    characters: int = 0

    def __post_init__(self) -> None:
        old_texts = self.substitution.replacements
        is_short = any(len(old) < _MIN_CHARACTERS for old in old_texts)
        if self.substitution.by == "regex" or is_short or not 0 < len(old_texts) <= _MAX_OLD_TEXTS:
            return
        if any(old.strip() != old for old in old_texts):
            return
        flags = re.IGNORECASE if self.substitution.ignore_case else 0
        self.replaced = re.compile("|".join(expand_compositions(re.escape(old)) for old in old_texts), flags)
        alternatives = [r"\s+".join(map(re.escape, old.split())) for old in old_texts]
        with suppress(Invalid):  # too large, or damaged bytes are in it
            self.search = compile_line_search("|".join(alternatives), literal=False, ignore_case=True, multiline=True)

    def count(self, text: str) -> None:
        """Count the near matches in a text."""
        self.characters += len(text)
        if self.search is None or self._is_too_much:
            return
        data = replace_undecodable(text).encode()
        reads_crlf_as_lf = ends_lines_in_crlf(text)
        span = self.search(data, 0)
        while span is not None:
            begin, end = span
            spelling = data[begin:end].decode()
            if self.substitution.by == "word":
                spelling = _word_before(data, begin) + spelling + _word_behind(data, end)
            if not self._is_replaced(spelling, reads_crlf_as_lf=reads_crlf_as_lf):
                self.counts[spelling] += 1
            span = self.search(data, end)

    def describe(self) -> str:
        """Return the near matches, the most frequent first; empty if there are none, or not all texts were searched."""
        if not self.counts or self._is_too_much:
            return ""
        most_frequent = self.counts.most_common(_MAX_NAMED)
        named = [f"{count:,} {quote(spelling)}" for spelling, count in most_frequent]
        others = self.counts.total() - sum(count for _, count in most_frequent)
        if others:
            named.append("1 other" if others == 1 else f"{others:,} others")
        return f"left as they are: {', '.join(named)}"

    @property
    def _is_too_much(self) -> bool:
        return self.characters > _MAX_SEARCHED_CHARACTERS or len(self.counts) > _MAX_SPELLINGS

    def _is_replaced(self, spelling: str, *, reads_crlf_as_lf: bool) -> bool:
        if reads_crlf_as_lf:
            spelling = spelling.replace("\r\n", "\n")
        return self.replaced.fullmatch(spelling) is not None


def _word_before(data: bytes, begin: int) -> str:
    """Return the part of a word that stands before an index, if it is short."""
    neighbors = data[max(begin - _MAX_NEIGHBOR_BYTES, 0) : begin].decode("utf-8", "ignore")
    match = _WORD_BEFORE.search(neighbors[-_MAX_NEIGHBORS:])
    return match[0] if match else ""


def _word_behind(data: bytes, end: int) -> str:
    """Return the part of a word that stands behind an index, if it is short."""
    neighbors = data[end : end + _MAX_NEIGHBOR_BYTES].decode("utf-8", "ignore")
    match = _WORD_BEHIND.match(neighbors)
    return match[0] if match else ""
