"""Which index would help: proposed with the plan it gives, by the statistics there are."""

from pathlib import Path

import pytest

from sqlite.serving import make, run, served, text_of

pytestmark = pytest.mark.anyio


async def test_an_index_is_proposed_with_its_plan(tmp_path: Path) -> None:
    async with served(make(tmp_path / "a.db")) as wire:
        said = text_of(await wire.call("explain_query", sql="SELECT note FROM u WHERE note = 'x' ORDER BY id"))
        assert 'CREATE INDEX "u_note" ON "u" ("note");' in said
        tried = said.partition("The plan then, tried on a copy of the schema and its statistics:\n")[2]
        assert tried.startswith("SEARCH u USING COVERING INDEX u_note (note=?)") and "mcp_candidate" not in said


async def test_statistics_decide_what_is_proposed(tmp_path: Path) -> None:
    path = make(tmp_path / "a.db")
    run(
        path,
        "CREATE TABLE few (a, b); CREATE TABLE many (a, b);"
        "INSERT INTO few VALUES (1, 2), (3, 4);"
        "INSERT INTO many WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM c LIMIT 20000)"
        " SELECT x, x FROM c;"
        "CREATE INDEX few_b ON few (b); ANALYZE",
    )
    join = "SELECT count(*) FROM few JOIN many ON many.a = few.a"
    async with served(path) as wire:
        said = text_of(await wire.call("explain_query", sql=join))
        # The small table is read whole and the large one searched, not the other way round.
        assert 'CREATE INDEX "many_a" ON "many" ("a");' in said and "SEARCH many" in said.partition("The plan then")[2]
        said = text_of(await wire.call("explain_query", sql="SELECT b FROM many WHERE lower(a) = 'x'"))
        assert "others were not tried" in said and "CREATE INDEX" not in said
