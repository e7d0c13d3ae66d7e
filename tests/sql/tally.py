"""What a proof of cases tried, and what came of it."""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import dataclass, field

__all__ = ["Tally", "options"]


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

    def note(self, what: str, case: str = "", fault: object = None) -> None:
        """Count a case of the kind `what`; it is wrong if there is a `fault`, which says how."""
        self.counts[what] += 1
        if fault:
            self.wrong.append(f"{what}: {case}: {str(fault)[:400]}")

    def report(self, *, odd: bool = False) -> bool:
        """Print it all; whether anything is wrong."""
        for fault in self.wrong[:200]:
            print("WRONG", fault)
        for case in self.odd[:40] if odd else ():
            print("ODD", case)
        for what, count in self.counts.items():
            print(f"{count:7,} {what}")
        print(f"{len(self.wrong)} wrong")
        return bool(self.wrong)


def options(description: str | None) -> argparse.ArgumentParser:
    """What every proof takes on its command line."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=float, default=1.0, help="part of the cases to try")
    parser.add_argument("--seed", type=int, default=1)
    return parser
