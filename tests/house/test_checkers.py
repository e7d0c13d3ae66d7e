"""Format, lint, types and import directions: each checker of the house, run as people run it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from contract.test_contract import ROOT
from thinning import some

# Types of everything take as long as a hundred tests: a job of their own checks them, `just quick` those of a change.
CHECKERS = [["ruff", "format", "--check"], ["ruff", "check"], ["lint-imports"], ["pyright"]]


@pytest.mark.parametrize("command", some(CHECKERS, *CHECKERS[:3]), ids=" ".join)
def test_a_checker_is_content(command: list[str]) -> None:
    program = shutil.which(command[0], path=str(Path(sys.executable).parent))
    assert program is not None
    done = subprocess.run([program, *command[1:]], cwd=ROOT, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stdout + done.stderr
