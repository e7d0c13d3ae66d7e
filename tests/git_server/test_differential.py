"""A share of `differential`, `twins` and `storms`: the server says and does what git does, and tells all of it."""

import sys
from pathlib import Path

import pytest

from git_server import differential, storms, twins
from thinning import some

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="names of files are a Linux file system's"),
    pytest.mark.anyio,
]


@pytest.mark.share(1)
@pytest.mark.parametrize("number", some(range(8), 2, 6))
async def test_what_is_said_is_what_git_says(number: int) -> None:
    questions, differences = await differential.differences(range(number, number + 1), seed=20)
    assert questions > 30 and differences == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", some(range(6), 4))
async def test_what_is_done_is_what_git_does_and_can_be_undone(seed: int) -> None:
    tally, differences = await twins.differences(10, seed)
    assert tally["acts"] > 5 and differences == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", some(range(4), 3))
async def test_what_others_do_is_told_once_and_nothing_else(seed: int, tmp_path: Path) -> None:
    tally, wrong = await storms.storm(tmp_path, 15, seed)
    assert tally["due"] > 5 and wrong == []
