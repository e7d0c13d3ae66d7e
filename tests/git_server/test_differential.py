"""A share of `differential`, `twins` and `storms`: the server says and does what git does, and tells all of it."""

import sys
from pathlib import Path

import pytest

from git_server import differential, storms, twins
from git_server.states import list_worlds, writable_worlds

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="names of files are a Linux file system's"),
    pytest.mark.anyio,
]


@pytest.mark.share(1, slow=1)
@pytest.mark.parametrize("world", list_worlds())
async def test_what_is_said_is_what_git_says(world: str) -> None:
    tally, differences = await differential.differences(range(1), seed=20, worlds=[world])
    assert tally["questions"] > 30 and differences == []


@pytest.mark.slow
@pytest.mark.share(1)
@pytest.mark.parametrize("world", writable_worlds())
async def test_what_is_done_is_what_git_does_and_can_be_undone(world: str) -> None:
    tally, differences = await twins.differences(10, 0, [world])
    assert tally["acts"] > 5 and differences == []


@pytest.mark.slow
@pytest.mark.share(1)
@pytest.mark.parametrize("world", writable_worlds())
async def test_what_others_do_is_told_once_and_nothing_else(world: str, tmp_path: Path) -> None:
    tally, wrong = await storms.storm(tmp_path, 15, 0, world)
    assert tally["due"] > 5 and wrong == []
