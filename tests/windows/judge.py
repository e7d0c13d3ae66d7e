"""The plugin of pytest that leaves out what Wine cannot judge and writes down how each test ended, as it ends.

One JSON line each: what was left out and why; that a test begins; how it ended; at last that all have. A run that was
stopped, or crashed, has no last line and tells which test it was in.
"""

import json
import os
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NoReturn
from zlib import crc32

import pytest

from windows.listed import LISTED, NO_LINKS, NO_POSTGRES, SAME


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--judge", choices=["listed", "rest", "whole"], required=True, help="which tests run")
    parser.addoption("--report", type=Path, required=True, help="where the lines go")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--judge") != "listed":
        import _winapi

        from mcp_postgres.engine.cluster import Cluster

        os.symlink = _no_links
        _winapi.CreateJunction = _no_links  # pyright: ignore[reportAttributeAccessIssue]
        Cluster.__init__ = _no_postgres
    config.pluginmanager.register(_Told(Path(str(config.getoption("--report")))))


def _no_links(_: Any, link: Any, *__: Any) -> NoReturn:
    if str(link).endswith("current"):  # pytest's own, which it can do without
        raise OSError(NO_LINKS)
    pytest.skip(NO_LINKS)


def _no_postgres(*_: Any, **__: Any) -> NoReturn:
    pytest.skip(NO_POSTGRES)


def verdict(item: pytest.Item, only: str) -> tuple[str, str] | None:
    """Why `item` does not run, as a kind and in words; None if it does."""
    name = item.nodeid.removeprefix("tests/")
    why = next((why for pattern, why in LISTED.items() if name == pattern or fnmatchcase(name, pattern)), None)
    if (why is not None) != (only == "listed"):
        return ("listed", why) if why else ("left", "is not on the list")
    for pattern, (every, same) in SAME.items():
        if only == "rest" and fnmatchcase(name, pattern) and crc32(name.encode()) % every:
            return "left", same
    return None


class _Told:
    def __init__(self, report: Path) -> None:
        self._report = report

    def _tell(self, **line: object) -> None:
        with self._report.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        verdicts = [(item, verdict(item, str(config.getoption("--judge")))) for item in items]
        left_out = [(item, *found) for item, found in verdicts if found]
        for item, kind, why in left_out:
            self._tell(kind=kind, test=item.nodeid, why=why)
        config.hook.pytest_deselected(items=[item for item, _, _ in left_out])
        items[:] = [item for item, found in verdicts if not found]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._tell(kind="begun", test=nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call" and report.outcome == "passed":
            return
        kind, more = report.outcome, {}
        if hasattr(report, "wasxfail"):
            kind = "failed" if report.passed else "passed"
        elif isinstance(report.longrepr, tuple):
            why = report.longrepr[2].removeprefix("Skipped: ")
            kind, more = "listed" if why in (NO_LINKS, NO_POSTGRES) else "skipped", {"why": why}
        elif report.failed:
            more = {"text": report.longreprtext}
        self._tell(kind=kind, test=report.nodeid, seconds=round(report.duration, 2), **more)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._tell(kind="failed", test=report.nodeid, text=report.longreprtext)

    def pytest_sessionfinish(self) -> None:
        self._tell(kind="end")
