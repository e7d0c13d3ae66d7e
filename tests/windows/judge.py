"""The plugin of pytest that leaves out what Wine cannot judge and writes down how each test ended, as it ends.

One JSON line each: what was left out and why; that a test begins; how it ended; at last that all have. A run that was
stopped, or crashed, has no last line and tells which test it was in.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NoReturn, TypeVar
from zlib import crc32

import pytest

from windows.listed import AGAIN, EACH, LISTED, NO_LINKS, NO_POSTGRES, SAME, WEEKLY

T = TypeVar("T")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--judge", choices=["listed", "rest", "whole"], required=True, help="which tests run")
    parser.addoption("--report", type=Path, required=True, help="where the lines go")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--judge") != "listed":
        import _winapi

        from mcp_postgres.engine.demo.cluster import Cluster
        from postgres.machine import Machine

        os.symlink = _no_links
        _winapi.CreateJunction = _no_links  # pyright: ignore[reportAttributeAccessIssue]
        Cluster.__init__ = Machine.__init__ = _no_postgres
    config.pluginmanager.register(_Told(Path(str(config.getoption("--report")))))


def _no_links(_: Any, link: Any, *__: Any) -> NoReturn:
    if str(link).endswith("current"):  # pytest's own, which it can do without
        raise OSError(NO_LINKS)
    pytest.skip(NO_LINKS)


def _no_postgres(*_: Any, **__: Any) -> NoReturn:
    pytest.skip(NO_POSTGRES)


def verdicts(items: Sequence[pytest.Item], only: str) -> Iterator[tuple[pytest.Item, str, str]]:
    """Which of `items` do not run, each with a kind and why in words."""
    samples = {item: _of(SAME, item.nodeid.removeprefix("tests/")) for item in items}
    first: dict[str, int] = {}
    for item, sample in samples.items():
        test, weight = _weighed(item)
        if not item.get_closest_marker("weekly") and _is_of(sample, weight):
            first[test] = min(weight, first.get(test, weight))
    for item, sample in samples.items():
        name = item.nodeid.removeprefix("tests/")
        test, weight = _weighed(item)
        why = _of(LISTED, name)
        if (why is not None) != (only == "listed"):
            yield (item, "listed", why) if why else (item, "left", "is not on the list")
        elif only != "rest":
            continue
        elif item.get_closest_marker("weekly"):
            yield item, "left", WEEKLY
        elif sample and not _is_of(sample, weight):
            yield item, "left", sample[1]
        elif item.get_closest_marker("process") and weight != first[test] and not _of(EACH, name):
            yield item, "left", AGAIN


def _is_of(sample: tuple[int, str] | None, weight: int) -> bool:
    return sample is None or (sample[0] > 0 and weight % sample[0] == 0)


def _weighed(item: pytest.Item) -> tuple[str, int]:
    """A test without its parameters, and a number that is the same for `item` wherever it runs."""
    return item.nodeid.partition("[")[0], crc32(item.nodeid.removeprefix("tests/").encode())


def _of(patterns: Mapping[str, T], name: str) -> T | None:
    """What stands behind the first pattern that fits."""
    return next((found for pattern, found in patterns.items() if name == pattern or fnmatchcase(name, pattern)), None)


class _Told:
    def __init__(self, report: Path) -> None:
        self._report = report

    def _tell(self, **line: object) -> None:
        with self._report.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        left_out = {item: (kind, why) for item, kind, why in verdicts(items, str(config.getoption("--judge")))}
        for item, (kind, why) in left_out.items():
            self._tell(kind=kind, test=item.nodeid, why=why)
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]

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
        figures = dict(report.user_properties)
        self._tell(kind=kind, test=report.nodeid, seconds=round(report.duration, 2), figures=figures, **more)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._tell(kind="failed", test=report.nodeid, text=report.longreprtext)
        elif isinstance(report.longrepr, tuple):
            self._tell(kind="skipped", test=report.nodeid, why=report.longrepr[2].removeprefix("Skipped: "))

    def pytest_sessionfinish(self) -> None:
        self._tell(kind="end")
