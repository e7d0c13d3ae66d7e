"""The secrets of this process, which no text that leaves it may quote: neither whole, nor encoded, nor in pieces.

A library that takes a password for a host or a path quotes a part of it. So a secret is also found by its runs of four
characters, as far as these are no plain words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import quote, quote_plus, unquote, unquote_plus

__all__ = ["MASK", "add_secrets", "forget_secrets", "mask_own"]

MASK = "***"
_RUN_CHARACTERS = 4
_MIN_WHOLE_CHARACTERS = 6
# Beyond so many characters of a text only whole secrets are looked for, which takes a tenth of the time.
_MAX_SCANNED_CHARACTERS = 256 * 1024
# A run that says nothing: a piece of a word or a number, signs alone, or the end of a word and the begin of the next.
_PLAIN_RUN = re.compile(r"[a-z]+|[A-Z]+|[A-Z][a-z]+|[0-9]+|[\W_]+|.*\s.*", re.DOTALL)


class _Secrets:
    """All secrets that this process has been told to hide.

    Attributes:
        pattern: matches every secret in every spelling.
        runs: every run of four characters that is no plain word.
    """

    def __init__(self) -> None:
        self.spellings: set[str] = set()
        self.runs: set[str] = set()
        self.pattern: re.Pattern[str] | None = None

    def add(self, secret: str) -> None:
        for spelling in _spellings(secret):
            if len(spelling) >= _MIN_WHOLE_CHARACTERS:
                self.spellings.add(spelling)
            for start in range(len(spelling) - _RUN_CHARACTERS + 1):
                run = spelling[start : start + _RUN_CHARACTERS]
                if _PLAIN_RUN.fullmatch(run) is None:
                    self.runs.add(run)

    def compile(self) -> None:
        longest_first = sorted(self.spellings, key=len, reverse=True)
        if longest_first:
            self.pattern = re.compile("|".join(map(_pattern_of, longest_first)))


_secrets = _Secrets()


def _pattern_of(spelling: str) -> str:
    pattern = re.escape(spelling)
    if _PLAIN_RUN.fullmatch(spelling):
        # A plain word may be a part of others, which say nothing of it.
        return rf"(?<![^\W_]){pattern}(?![^\W_])"
    return pattern


def _spellings(secret: str) -> set[str]:
    """Return `secret` as it may stand in a message: raw, percent-encoded, decoded, and escaped as in code."""
    plain = {secret, unquote(secret), unquote_plus(secret)}
    spellings = set(plain)
    for text in plain:
        spellings |= {quote(text, safe=""), quote(text), quote_plus(text), repr(text)[1:-1]}
        spellings.add(text.replace("\\", "\\\\").replace('"', '\\"'))
        spellings.add(text.replace("'", "\\'"))
    return spellings


def add_secrets(secrets: Iterable[str]) -> None:
    """Keep `secrets` out of every text from now on."""
    for secret in secrets:
        _secrets.add(secret)
    _secrets.compile()


def forget_secrets() -> None:
    """Forget all secrets, as a new process does."""
    _secrets.spellings.clear()
    _secrets.runs.clear()
    _secrets.pattern = None


def mask_own(text: str) -> str:
    """Return `text` with `***` for every secret of this process and every piece of one."""
    if _secrets.pattern is not None:
        text = _secrets.pattern.sub(MASK, text)
    if not _secrets.runs or len(text) > _MAX_SCANNED_CHARACTERS:
        return text
    return _without_runs(text)


def _without_runs(text: str) -> str:
    """Replace every stretch of `text` that consists of runs of secrets."""
    pieces: list[str] = []
    copied_to = 0
    stretch_start = -1
    stretch_end = -1
    for start in range(len(text) - _RUN_CHARACTERS + 1):
        if text[start : start + _RUN_CHARACTERS] not in _secrets.runs:
            continue
        if start > stretch_end:
            if stretch_start >= 0:
                pieces += [text[copied_to:stretch_start], MASK]
                copied_to = stretch_end
            stretch_start = start
        stretch_end = start + _RUN_CHARACTERS
    if stretch_start >= 0:
        pieces += [text[copied_to:stretch_start], MASK]
        copied_to = stretch_end
    pieces.append(text[copied_to:])
    return "".join(pieces)
