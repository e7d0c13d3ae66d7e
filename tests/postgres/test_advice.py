"""Which index would help a statement: tried on a sample of the tables, in temporary ones."""

import pytest

from postgres.advice_cases import CASES, is_best, proposed, shop
from postgres.serving import inside, make, text_of

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("role", "step"), [("reader", 3), ("postgres", 9), pytest.param("reader", 1, marks=pytest.mark.weekly)]
)
async def test_of_known_best_indexes_nine_in_ten_are_proposed(role: str, step: int) -> None:
    base = shop(20_000)
    asked = list(CASES.items())[::step]
    asked = [item for item in asked if not item[0].startswith(("UPDATE", "DELETE"))]
    state = "SELECT count(*), sum(xmin::text::bigint) FROM pg_class"
    before = base.rows(state)
    wrong: list[str] = []
    async with inside("--timeout", 60, f"app={base.url(role)}") as wire:
        for sql, best in asked:
            given = {"parameters": [77]} if "$1" in sql else {}
            said = text_of(await wire.call("explain_query", sql=sql, **given))
            if not is_best(best, proposed(said)):
                wrong.append(f"{sql}: {said}")
    assert len(wrong) * 10 <= len(asked), wrong
    assert len(CASES) >= 40 and base.rows(state) == before


async def test_an_index_is_not_proposed_for_its_order_alone() -> None:
    base = make(
        "CREATE TABLE jobs AS SELECT g AS id, CASE WHEN g > 29000 THEN 'new' ELSE 'done' END AS state, g AS made,"
        " md5(g::text) AS note FROM generate_series(1, 30000) g ORDER BY 4; ANALYZE"
    )
    async with inside(f"app={base.url()}") as wire:
        for sql, best in {
            # What is new is at the end of an index on `made`: the planner does not know, and would walk there.
            "SELECT * FROM jobs WHERE state = 'new' ORDER BY made LIMIT 5": ["CREATE INDEX ON jobs (state, made);"],
            "SELECT min(made) FROM jobs WHERE state = 'new'": ["CREATE INDEX ON jobs (state, made);"],
            "SELECT * FROM jobs ORDER BY made": [],
            "SELECT *, rank() OVER (PARTITION BY state ORDER BY made) FROM jobs": [],
        }.items():
            said = text_of(await wire.call("explain_query", sql=sql))
            assert proposed(said) == best, f"{sql}: {said}"


async def test_what_cannot_be_tried_is_said() -> None:
    base = make(
        "CREATE TABLE big AS SELECT g AS id, g % 1000 AS k, 'n' || g AS name FROM generate_series(1, 9000) g; ANALYZE;"
        "CREATE FUNCTION own(text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN lower($1); END';"
        "ALTER TABLE big ENABLE ROW LEVEL SECURITY; CREATE POLICY mine ON big USING (k < 900)"
    )
    async with inside(f"app={base.url()}") as wire:
        said = text_of(await wire.call("explain_query", sql="SELECT * FROM big WHERE id = 5"))
        assert "No index was tried: `big` shows the role some of its rows only." in said
        base.run("ALTER TABLE big DISABLE ROW LEVEL SECURITY")
        # A function that another role made is never run to build an index.
        said = text_of(await wire.call("explain_query", sql="SELECT * FROM big WHERE own(name) = 'n5'"))
        assert "CREATE INDEX" not in said
        said = text_of(await wire.call("explain_query", sql="SELECT * FROM big WHERE random() < 0.5 AND k * 2 = 8"))
        assert "CREATE INDEX ON big ((k * 2));" in said
