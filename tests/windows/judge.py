"""The plugin of pytest that leaves out what Wine cannot judge and writes down how many tests ended how, and why."""

import json
import os
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NoReturn

import pytest

from windows.listed import LISTED, NO_LINKS


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--judge", choices=["listed", "rest"], required=True, help="which tests run")
    parser.addoption("--report", type=Path, required=True, help="where the counts go")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--judge") == "rest":
        import _winapi

        os.symlink = _no_links
        _winapi.CreateJunction = _no_links  # pyright: ignore[reportAttributeAccessIssue]


def _no_links(_: Any, link: Any, *__: Any) -> NoReturn:
    if str(link).endswith("current"):  # pytest's own, which it can do without
        raise OSError(NO_LINKS)
    pytest.skip(NO_LINKS)


def reason(item: pytest.Item) -> str | None:
    """Why Wine cannot judge `item`; None if it can."""
    name = item.nodeid.removeprefix("tests/")
    return next((why for pattern, why in LISTED.items() if name == pattern or fnmatchcase(name, pattern)), None)


_left_out = Counter[str]()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = config.getoption("--judge") == "listed"
    left_out = [item for item in items if (reason(item) is not None) != wanted]
    _left_out.update(why for item in left_out if (why := reason(item)))
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    counts = Counter({kind: len(found) for kind, found in terminalreporter.stats.items() if kind})
    skipped = Counter(
        str(report.longrepr[2]).removeprefix("Skipped: ") for report in terminalreporter.stats.get("skipped", [])
    )
    links = skipped.pop(NO_LINKS, 0)
    totals = {
        "passed": counts["passed"] + counts["xfailed"],
        "skipped": skipped.total(),
        "listed": _left_out.total() + links,
        "failed": counts["failed"] + counts["error"] + counts["xpassed"],
        "reasons": {
            **{f"listed: {why}": number for why, number in (_left_out + Counter({NO_LINKS: links})).most_common()},
            **{f"skipped: {why}": number for why, number in skipped.most_common()},
        },
    }
    Path(str(config.getoption("--report"))).write_text(json.dumps(totals), "utf-8")
