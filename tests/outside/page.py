"""Write the page of outside evidence: what judges which member, and in how many cases. `python -m outside.page` is part
of `just docs`."""

from __future__ import annotations

import os
import sys
from collections import Counter
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from outside.catalog import CATALOG, EACH, Evidence

__all__ = ["PAGE", "count_cases", "make_page"]

PAGE = Path(__file__).parent / "README.md"
RUNS = ("default", "slow", "weekly")
_HEAD = """# Evidence from outside

<!-- Made by `python -m outside.page`. -->

What nobody here wrote judges the servers here: other clients and bridges, the official conformance suite, what other
libraries recorded of a service, and what users reported of other programs. Packages come from their registries when a
test runs, or a checkout is named to a command; nothing of them is kept in this repository. A report is named by project
and number in the mark `reported` of its test; the input is ours. What takes an installation of its own is `slow` or
`weekly`, so `pytest` alone needs little of it. The programs of hosts are tried by `python tests/e2e/hosts/run.py`.

| member | with every change | `-m slow` | `-m weekly` |
| --- | ---: | ---: | ---: |
"""
_MODULES = """
| tests | what judges | member | cases |
| --- | --- | --- | ---: |
"""

Counts = Counter[tuple[str, str, str]]


class _Counter:
    """A plugin of pytest that counts the tests of this folder.

    Attributes:
        counts: tests by module, member and run.
    """

    def __init__(self) -> None:
        self.counts: Counts = Counter()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        catalog = {evidence.module: evidence for evidence in CATALOG}
        for item in items:
            evidence = catalog.get(item.path.stem.removeprefix("test_"))
            if evidence is not None:
                self.counts[evidence.module, _member_of(item, evidence), _run_of(item)] += 1


def count_cases() -> Counts:
    """Return how many cases there are, by module, member and run."""
    counter = _Counter()
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
        status = pytest.main(
            ["--collect-only", "-q", "-n0", "-p", "no:cacheprovider", "-m", "", str(PAGE.parent)], plugins=[counter]
        )
    if status:
        raise RuntimeError(f"the tests can't be collected: {status}")
    return counter.counts


def make_page(counts: Counts) -> str:
    """Return the page."""
    members = sorted({member for _, member, _ in counts})
    page = _HEAD
    for member in members:
        numbers = [sum(n for (_, of, when), n in counts.items() if (of, when) == (member, run)) for run in RUNS]
        page += f"| {member} | {numbers[0]} | {numbers[1]} | {numbers[2]} |\n"
    page += _MODULES
    for evidence in CATALOG:
        total = sum(n for (module, _, _), n in counts.items() if module == evidence.module)
        page += f"| `test_{evidence.module}.py` | {evidence.source} | {evidence.member} | {total} |\n"
    return page


def _member_of(item: pytest.Item, evidence: Evidence) -> str:
    if evidence.member != EACH:
        return evidence.member
    callspec = getattr(item, "callspec", None)
    package = callspec.params.get("package") if callspec is not None else None
    if package is None:
        return "all"
    return str(package).replace("_", "-").removeprefix("mcp-batteries.")


def _run_of(item: pytest.Item) -> str:
    for run in ("weekly", "slow"):
        if item.get_closest_marker(run):
            return run
    return "default"


if __name__ == "__main__":
    PAGE.write_text(make_page(count_cases()), "utf-8")
    sys.exit()
