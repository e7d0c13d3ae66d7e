"""No module of one server repeats much of another's: what two need is written once, in the common package."""

from difflib import SequenceMatcher
from itertools import combinations
from pathlib import Path

import pytest

from contract.test_contract import ROOT

MOST = 0.4
"""Share of both modules' lines."""
LEAST_LINES = 15
# Two servers declare the same two tools in the same words, as tools are to be alike; what they do is shared already.
DECLARED_ALIKE = {"postgres/src/mcp_postgres/tools/files.py ~ sqlite/src/mcp_sqlite/tools/files.py"}


def lines_of(path: Path) -> list[str]:
    """Lines that say something: no blank ones, no imports, no lone punctuation."""
    found: list[str] = []
    importing = False
    for line in map(str.strip, path.read_text("utf-8").splitlines()):
        if importing or line.startswith(("import ", "from ", "__all__")):
            importing = line.endswith(("(", "[", ",")) or (importing and line[-1:] not in (")", "]"))
        elif any(map(str.isalnum, line)):
            found.append(line)
    return found


def shared(one: list[str], other: list[str]) -> float:
    """The share of both's lines that stand in both in the same order; 0 where it can't be much."""
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    return matcher.ratio() if matcher.real_quick_ratio() > MOST and matcher.quick_ratio() > MOST / 2 else 0.0


@pytest.mark.slow
def test_no_two_servers_say_the_same() -> None:
    modules = {
        path.relative_to(ROOT / "servers").as_posix(): lines
        for path in sorted(ROOT.glob("servers/*/src/**/*.py"))
        if len(lines := lines_of(path)) >= LEAST_LINES
    }
    pairs = {
        f"{one} ~ {other}": shared(modules[one], modules[other])
        for one, other in combinations(modules, 2)
        if one.partition("/")[0] != other.partition("/")[0]
    }
    ranked = sorted(pairs.items(), key=lambda item: -item[1])
    print("\n".join(f"{share:.0%} {pair}" for pair, share in ranked[:10]))
    found = {pair: f"{share:.0%} {pair}" for pair, share in ranked if share > MOST}
    assert [text for pair, text in found.items() if pair not in DECLARED_ALIKE] == []
    assert found.keys() >= DECLARED_ALIKE
