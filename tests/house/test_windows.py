"""The run on Windows Python leaves nothing out by mistake: every suite is part of it, every exception means a test."""

import subprocess
import sys
from fnmatch import fnmatchcase

import pytest

from markers import COLLECTED, TESTS
from windows.leg import PARTS
from windows.listed import EACH, LISTED, SAME

OF_THE_HOUSE = {"benchmarks", "documents", "house", "mutants", "proofs", "simulation"}
"""They look at the repository or at virtual time, which are the same wherever one looks from."""


def test_every_module_is_in_one_part() -> None:
    modules = [module for module in TESTS.glob("*/test_*.py") if module.parent.name not in OF_THE_HOUSE]
    found = [path for part in PARTS for pattern in part for path in TESTS.glob(pattern)]
    assert sorted(m for path in found for m in (path.glob("test_*.py") if path.is_dir() else [path])) == sorted(modules)


@pytest.fixture(scope="module")
def names(request: pytest.FixtureRequest) -> list[str]:
    """Of all tests, as the patterns have them."""
    suites = sorted({f"tests/{pattern.partition('/')[0]}" for part in PARTS for pattern in part})
    found = request.config.stash[COLLECTED]
    if all(any(name.startswith(f"{suite}/") for name in found) for suite in suites):
        return [name.removeprefix("tests/") for name in found]
    words = ["--collect-only", "-q", "-n0", "-p", "no:cacheprovider", "-m", "not debian"]
    command = [sys.executable, "-m", "pytest", *words]
    # In a session of its own: what is sent to all processes of a terminal or a job is for pytest to hear.
    listed = subprocess.run(
        [*command, *suites], cwd=TESTS.parent, capture_output=True, text=True, start_new_session=True
    )
    assert listed.returncode == 0, f"{listed.returncode}: {listed.stdout}{listed.stderr}"
    return [line.removeprefix("tests/") for line in listed.stdout.splitlines() if "::" in line]


def test_every_exception_means_a_test(names: list[str]) -> None:
    assert [
        pattern for pattern in (*LISTED, *SAME, *EACH) if not any(fnmatchcase(name, pattern) for name in names)
    ] == []
    # The first pattern that fits counts: none is behind another that has all of its tests.
    first = {next((pattern for pattern in SAME if fnmatchcase(name, pattern)), None) for name in names}
    assert set(SAME) <= first
