"""The plugin of pytest that leaves out what Wine cannot judge and writes down how many tests ended how."""

import json
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from windows.listed import LISTED


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--judge", choices=["listed", "rest"], required=True, help="which tests run")
    parser.addoption("--report", type=Path, required=True, help="where the counts go")


def reason(item: pytest.Item) -> str | None:
    """Why Wine cannot judge `item`; None if it can."""
    name = item.nodeid.removeprefix("tests/")
    return next((why for pattern, why in LISTED.items() if name == pattern or fnmatchcase(name, pattern)), None)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = config.getoption("--judge") == "listed"
    left_out = [item for item in items if (reason(item) is not None) != wanted]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    counts = Counter({kind: len(found) for kind, found in terminalreporter.stats.items() if kind})
    totals = {
        "passed": counts["passed"] + counts["xfailed"],
        "skipped": counts["skipped"],
        "listed": counts["deselected"],
        "failed": counts["failed"] + counts["error"] + counts["xpassed"],
    }
    config.getoption("--report").write_text(json.dumps(totals), "utf-8")
