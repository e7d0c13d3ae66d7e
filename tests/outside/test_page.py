"""The page of outside evidence has every module of this folder, with the numbers of today."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from outside.catalog import CATALOG
from outside.page import PAGE


def test_every_module_is_in_the_catalog_and_on_the_page() -> None:
    modules = {path.stem.removeprefix("test_") for path in PAGE.parent.rglob("test_*.py")} - {Path(__file__).stem[5:]}
    assert {evidence.module for evidence in CATALOG} == modules
    page = PAGE.read_text("utf-8")
    for evidence in CATALOG:
        assert f"| `test_{evidence.module}.py` | {evidence.source} | {evidence.member} | " in page


def test_every_report_is_named_by_project_and_number() -> None:
    named = re.compile(r'@pytest\.mark\.reported\("[\w.-]+/[\w.-]+#\d+"\)\n')
    for path in PAGE.parent.glob("test_reports_*.py"):
        tests = re.split(r"\n(?=async def test_)", path.read_text("utf-8"))
        for before in tests[:-1]:
            assert named.search(before.rpartition("\n\n")[2] + "\n"), before[-300:]


@pytest.mark.slow
@pytest.mark.process
def test_the_numbers_are_those_of_today() -> None:
    command = [sys.executable, "-c", "from outside.page import *; print(make_page(count_cases()), end='')"]
    done = subprocess.run(command, cwd=PAGE.parents[1], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout == PAGE.read_text("utf-8")
