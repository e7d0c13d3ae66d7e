"""Restarts under load lose no call that was sent; `python -m proofs restarts` is the same for as long as one likes."""

from pathlib import Path

import pytest

from e2e.restarts import lost, roll
from e2e.services import KINDS
from shared.http_subject import asks_to_end

pytestmark = pytest.mark.anyio


@pytest.mark.slow
@asks_to_end
async def test_a_server_that_ends_answers_what_was_sent(tmp_path: Path) -> None:
    tally = await roll(1, "direct", "", tmp_path)
    assert not lost(tally)
    assert tally["answered"] > 200


@pytest.mark.debian
@pytest.mark.parametrize("kind", ["nginx", "haproxy"])
@pytest.mark.parametrize("bus", KINDS)
async def test_a_rolling_restart_behind_a_proxy_is_not_noticed(kind: str, bus: str, tmp_path: Path) -> None:
    tally = await roll(4, kind, bus, tmp_path)
    assert not lost(tally)
    assert not tally["refused"]
