"""Files come in as they are: a sample of `prove_imports`."""

import pytest

from sql.prove_imports import prove

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(("server", "cases"), [("sqlite", 120), ("postgres", 40)])
async def test_a_sample_of_the_proof(server: str, cases: int) -> None:
    tally = await prove(cases, 3, [server])
    assert tally.wrong == []
    assert sum(tally.counts.values()) == cases and len(tally.counts) >= 4, tally.counts
