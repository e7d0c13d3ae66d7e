"""Takes an EXPLAIN apart, so that the statement in it is judged like one that runs."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["LEADING_COMMENTS", "Explained", "parse_explain"]

LEADING_COMMENTS = r"(?:\s|--[^\n]*\n|/\*(?:[^*/]|\*(?!/)|/(?!\*))*\*/)*"
_EXPLAIN = re.compile(
    LEADING_COMMENTS + r"EXPLAIN(?P<options>\s*\((?:[\w\s,.]|'\w*')*\)|(?:\s+(?:ANALYZE|VERBOSE)\b)*)\s*(?P<inner>.*)",
    re.I | re.S,
)
_ANALYZE = re.compile(r"ANALY[SZ]E\b", re.I)


class Explained(NamedTuple):
    """An EXPLAIN.

    Attributes:
        options: as they are written, such as `FORMAT JSON`.
        inner: the statement behind them.
    """

    options: list[str]
    inner: str

    @property
    def runs(self) -> bool:
        """Whether the statement is run, and not only planned."""
        return any(_ANALYZE.match(option) for option in self.options)

    @property
    def sql(self) -> str:
        """The EXPLAIN, behind whose options nothing but a statement can follow: no second ANALYZE."""
        return f"EXPLAIN ({', '.join(self.options) or 'COSTS'}) {self.inner}"


def parse_explain(sql: str) -> Explained | None:
    """Return the parts of an EXPLAIN; None for another statement."""
    match = _EXPLAIN.fullmatch(sql)
    if match is None:
        return None
    text = match["options"]
    if "(" in text:
        options = [option.strip() for option in text.strip().strip("()").split(",")]
    else:
        options = text.split()
    return Explained([option for option in options if option], match["inner"])
