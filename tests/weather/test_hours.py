"""Rows, sums, firsts, days, pictures and sources agree on which hour a value is of, wherever in the hour it is."""

import pytest

from weather.hours import Trial, Truth

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("seed", range(4))
async def test_all_that_is_told_of_an_hour_agrees(seed: int) -> None:
    with Truth() as truth:
        assert await Trial(truth, seed).run(8) == []
        assert truth.violations == []
