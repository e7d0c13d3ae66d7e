"""What is nearly an old text and stays: in another case, with other blanks or line ends, or in a longer word."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from mcp_batteries.errors import quote
from mcp_fs.engine.changing.replacing.substitution import Substitution

__all__ = ["NearMatches"]

# Shorter ones are in many words.
_MIN_CHARACTERS = 4
_MAX_OLD_TEXTS = 20
# Beyond this nothing is told, because a part would be taken for all.
_MAX_CHARACTERS = 20_000_000
_MAX_TEXTS = 1000
# Of what a near match has around it.
_MAX_NEIGHBORS = 30
_MAX_NAMED = 4
_WORD_BEFORE = re.compile(rf"\w{{1,{_MAX_NEIGHBORS}}}\Z")
_WORD_BEHIND = re.compile(rf"\w{{1,{_MAX_NEIGHBORS}}}")


@dataclass(slots=True)
class NearMatches:
    """Counts them in the texts that a replacement looks at.

    Attributes:
        pattern: finds the old texts in any case and with any blanks; None where near matches are not looked for.
        counts: how often each was found.
        characters: how many the texts had together.
    """

    substitution: Substitution
    pattern: re.Pattern[str] | None = None
    counts: Counter[str] = field(default_factory=Counter[str])
    characters: int = 0

    def __post_init__(self) -> None:
        old_texts = self.substitution.replacements
        is_short = any(len(old) < _MIN_CHARACTERS for old in old_texts)
        if self.substitution.by == "regex" or is_short or not 0 < len(old_texts) <= _MAX_OLD_TEXTS:
            return
        alternatives = [r"\s+".join(map(re.escape, old.split())) for old in old_texts if old.strip() == old]
        if len(alternatives) == len(old_texts):
            self.pattern = re.compile("|".join(alternatives), re.IGNORECASE)

    def count(self, text: str) -> None:
        """Count those of a text."""
        self.characters += len(text)
        if self.pattern is None or self._is_too_much:
            return
        for match in self.pattern.finditer(text):
            found = match[0]
            if self.substitution.by == "word":
                found = _extend_to_words(text, match)
            if not self._is_replaced(found):
                self.counts[found] += 1

    def describe(self) -> str:
        """Return which there are, the most frequent first; empty if there are none, or they were not all looked for."""
        if not self.counts or self._is_too_much:
            return ""
        most_frequent = self.counts.most_common(_MAX_NAMED)
        named = [f"{count:,} {quote(found)}" for found, count in most_frequent]
        others = self.counts.total() - sum(count for _, count in most_frequent)
        if others:
            named.append("1 other" if others == 1 else f"{others:,} others")
        return f"left as they are: {', '.join(named)}"

    @property
    def _is_too_much(self) -> bool:
        return self.characters > _MAX_CHARACTERS or len(self.counts) > _MAX_TEXTS

    def _is_replaced(self, found: str) -> bool:
        old_texts = self.substitution.replacements
        if self.substitution.ignore_case:
            return found.lower() in {old.lower() for old in old_texts}
        return found.replace("\r\n", "\n") in old_texts


def _extend_to_words(text: str, match: re.Match[str]) -> str:
    """Return a match with the rest of the words at its ends, as far as they are short."""
    begin, end = match.span()
    before = _WORD_BEFORE.search(text, max(begin - _MAX_NEIGHBORS, 0), begin)
    behind = _WORD_BEHIND.match(text, end)
    return (before[0] if before else "") + match[0] + (behind[0] if behind else "")
