"""What a proof of cases tried, and what came of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

__all__ = ["Tally"]

_MAX_FAULTS_SHOWN = 200
_MAX_ODD_SHOWN = 40


@dataclass
class Tally:
    """How many cases of each kind were tried.

    Attributes:
        wrong: cases that went as they must not.
        odd: cases that are worth a look.
    """

    counts: Counter[str] = field(default_factory=Counter[str])
    wrong: list[str] = field(default_factory=list[str])
    odd: list[str] = field(default_factory=list[str])

    @classmethod
    def of(cls, counts: Mapping[str, int], wrong: Iterable[object]) -> Tally:
        """Return the tally of what was counted by kind, and of what went wrong."""
        return cls(Counter(counts), [str(fault) for fault in wrong])

    def note(self, what: str, case: str = "", fault: object = None) -> None:
        """Count a case of the kind `what`; it is wrong if there is a `fault`, which says how."""
        self.counts[what] += 1
        if fault:
            self.wrong.append(f"{what}: {case}: {str(fault)[:400]}")

    def report(self, *, odd: bool = False) -> bool:
        """Print it all; whether anything is wrong."""
        for fault in self.wrong[:_MAX_FAULTS_SHOWN]:
            print("WRONG", fault)
        for case in self.odd[:_MAX_ODD_SHOWN] if odd else ():
            print("ODD", case)
        for what, count in self.counts.items():
            print(f"{count:7,} {what}")
        print(f"{len(self.wrong)} wrong")
        return bool(self.wrong)
