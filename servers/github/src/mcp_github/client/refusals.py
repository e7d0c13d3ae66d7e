"""Refusals that GitHub tells apart by their words alone: who or what stands in the way, and the next move.

GitHub answers 403, 405, 409 or 422 for an organisation's rules, a locked issue and a merge that a rule forbids alike;
"the token may not do that" would blame the wrong one. `refusals.toml` has the words, each with the page they are from.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from mcp_batteries.errors import Conflict, Problem, Refused

__all__ = ["KnownRefusal", "find_refusal", "known_refusals"]


@dataclass(frozen=True)
class KnownRefusal:
    """Words of GitHub's with what they mean.

    Attributes:
        reason: a sentence, in which `{}` is what was asked for.
        refused: whether the token or its user may not do it; else the state of things stands in the way.
        examples: the words as GitHub said them, each with the page that has them.
    """

    words: re.Pattern[str]
    reason: str
    fix: str
    refused: bool
    examples: Sequence[tuple[str, str]]

    def to_problem(self, description: str, quotation: str) -> Problem:
        """Return the problem that it is for what was asked for, with GitHub's own words as a sentence."""
        reason = self.reason.format(description)
        kind = Conflict
        if self.refused:
            kind = Refused
        return kind(f"{reason[:1].upper()}{reason[1:]}{quotation}", self.fix)


@cache
def known_refusals() -> Sequence[KnownRefusal]:
    """Return all that are known; of several whose words match, the first counts."""
    text = files("mcp_github.client").joinpath("refusals.toml").read_text("utf-8")
    refusals: list[KnownRefusal] = []
    for entry in tomllib.loads(text)["refusals"]:
        examples = [(words, page) for words, page in entry["examples"]]
        pattern = re.compile(entry["words"], re.IGNORECASE)
        refusals.append(KnownRefusal(pattern, entry["reason"], entry["fix"], entry.get("refused", False), examples))
    return refusals


def find_refusal(message: str) -> KnownRefusal | None:
    """Return what GitHub's words stand for; None if they say nothing that is known."""
    for refusal in known_refusals():
        if refusal.words.search(message):
            return refusal
    return None
