"""Judges mistakes in a copy of the project: `judge.py MODULE...`, started by run.py in the copy.

The modules have the same tests, which run once to see how long each takes and which lines it reaches.

A process that has imported what the tests need of others' packages, and nothing of the project, forks for each mistake:
the fork imports the module with its mistake, and so do all processes that it starts. It runs first the tests that
reach the line, the quickest first, and if none of them notices, the others.

Reads a module and a mutation's number per line of standard input, and writes "survived", "killed" or "killed by time"
for each.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path.cwd()
sys.path[:0] = [str(ROOT / "tests")]

from mutants.modules import MODULES  # noqa: E402
from mutants.mutations import mutations  # noqa: E402

PYTEST = (
    "-q", "-x", "-n0", "-p", "no:cacheprovider", "--hypothesis-profile=mutants", "-m", "not (debian or weekly)",
    f"--basetemp={tempfile.gettempdir()}/run",  # emptied by the next one: a fork that ends leaves all there is
    "-Wignore::pytest.PytestAssertRewriteWarning",  # what is warm was imported before pytest began
)  # fmt: skip
_SECONDS = 900
"""How long the tests of a module may take where there is no mistake."""


class Reaching:
    """A plugin that learns how long each test takes and which lines of `modules` it reaches."""

    def __init__(self, modules: Sequence[str]) -> None:
        import coverage

        paths = [str(ROOT / module) for module in modules]
        self.coverage = coverage.Coverage(data_file=None, include=paths, config_file=False)
        self.seconds: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self.coverage.switch_context(item.nodeid)
        begun = time.monotonic()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = time.monotonic() - begun

    def lines(self) -> dict[str, dict[int, list[str]]]:
        """The tests by module and line."""
        data = self.coverage.get_data()
        return {
            Path(path).relative_to(ROOT).as_posix(): {
                line: [test for test in tests if test] for line, tests in data.contexts_by_lineno(path).items()
            }
            for path in data.measured_files()
        }


class Only:
    """A plugin that runs these tests and no others: the file whose tests are quickest first, in it the quickest."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self.seconds = seconds

    @property
    def files(self) -> list[str]:
        files: dict[str, float] = {}
        for test, seconds in self.seconds.items():
            file = test.partition("::")[0]
            files[file] = files.get(file, 0) + seconds
        return sorted(files, key=lambda file: files[file])

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        order = {file: number for number, file in enumerate(self.files)}
        chosen = [item for item in items if item.nodeid in self.seconds]
        items[:] = sorted(chosen, key=lambda item: (order[item.nodeid.partition("::")[0]], self.seconds[item.nodeid]))


def forked(work: Callable[[], int], seconds: float) -> int | None:
    """What `work` returns in a process of its own; None if that takes longer. All processes it started end with it."""
    process = os.fork()
    if not process:
        code = 98
        try:
            os.setsid()
            silence = os.open(os.devnull, os.O_RDWR)
            for stream in range(3):
                os.dup2(silence, stream)
            code = work()
        finally:
            os._exit(code)
    deadline = time.monotonic() + seconds
    done, status = os.waitpid(process, os.WNOHANG)
    while not done and time.monotonic() < deadline:
        time.sleep(0.01)
        done, status = os.waitpid(process, os.WNOHANG)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)
    if not done:
        os.waitpid(process, 0)
        return None
    return os.waitstatus_to_exitcode(status)


def measure(modules: Sequence[str], found: Path) -> int:
    """Run all tests with no mistake, and write down what came of it."""
    os.environ["COVERAGE_CORE"] = "ctrace"  # the newer one of Python 3.14 cannot tell tests apart
    reaching = Reaching(modules)
    reaching.coverage.start()
    code = pytest.main([*PYTEST, *MODULES[modules[0]]], plugins=[reaching])
    reaching.coverage.stop()
    own = [str(ROOT / folder) for folder in ("shared", "servers", "examples", "tests")]
    others = [
        name
        for name, loaded in sys.modules.items()
        if not str(getattr(loaded, "__file__", None) or own[0]).startswith(tuple(own))
    ]
    outcome = {"seconds": reaching.seconds, "lines": reaching.lines(), "others": others}
    found.write_text(json.dumps(outcome), "utf-8")
    return int(code)


class Judge:
    def __init__(self, baseline: dict[str, Any]) -> None:
        self._seconds: dict[str, float] = baseline["seconds"]
        self._reach: dict[str, dict[str, list[str]]] = baseline["lines"]
        self._moment = int(time.time())
        for name in baseline["others"]:
            with contextlib.suppress(Exception):
                importlib.import_module(name)

    def judge(self, module: str, number: int) -> str:
        path = ROOT / module
        source = path.read_bytes()
        mutation = mutations(source)[number]
        start, end = mutation.span
        last = mutation.line + source[start:end].count(b"\n")
        lines = self._reach.get(module, {})
        reach = {test for line in range(mutation.line, last + 1) for test in lines.get(str(line), [])}
        first = {test: seconds for test, seconds in self._seconds.items() if test in reach}
        rest = {test: seconds for test, seconds in self._seconds.items() if test not in reach}
        try:
            self._write(path, mutation.apply(source))
            for tests in filter(None, (first, rest)):
                only = Only(tests)
                limit = 3 * sum(tests.values()) + 20
                code = forked(lambda only=only: int(pytest.main([*PYTEST, *only.files], plugins=[only])), limit)
                if code not in (0, pytest.ExitCode.NO_TESTS_COLLECTED):
                    return "killed by time" if code is None else "killed"
            return "survived"
        finally:
            self._write(path, source)

    def _write(self, path: Path, source: bytes) -> None:
        path.write_bytes(source)
        # Python takes a cached module for current by its size and its time in whole seconds.
        self._moment += 2
        os.utime(path, (self._moment, self._moment))


def main(modules: Sequence[str]) -> None:
    found = Path(tempfile.mkdtemp()) / "reach.json"
    if forked(lambda: measure(modules, found), _SECONDS) != 0:
        sys.exit(f"Tests of {modules[0]} fail without any mistake, or take longer than {_SECONDS} s.")
    judge = Judge(json.loads(found.read_text("utf-8")))
    while line := sys.stdin.readline():
        module, number = line.split()
        print(judge.judge(module, int(number)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
