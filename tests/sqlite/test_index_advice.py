"""Which index would help: proposed with the plan it gives, by the statistics there are."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from mcp_sqlite.worker.advisor.candidates import find_comparisons
from sqlite.index_advice_cases import CASES, fill, is_best, proposed, steps
from sqlite.serving import make, run, served, text_of

pytestmark = pytest.mark.anyio


async def test_an_index_is_proposed_with_its_plan(tmp_path: Path) -> None:
    async with served(make(tmp_path / "a.db")) as wire:
        said = text_of(await wire.call("explain_query", sql="SELECT note FROM u WHERE note = 'x' ORDER BY id"))
        assert 'CREATE INDEX "u_note" ON "u" ("note");' in said
        tried = said.partition("The plan then:\n")[2]
        assert tried.startswith("SEARCH u USING COVERING INDEX u_note (note=?)") and "mcp_candidate" not in said


async def test_what_others_change_of_the_schema_is_in_the_next_plan(tmp_path: Path) -> None:
    path, sql = make(tmp_path / "a.db"), "SELECT note FROM u WHERE note = 'x'"
    async with served(path, "--workers", 1) as wire:
        for index, step in enumerate(("CREATE INDEX u_by_note ON u (note)", "DROP INDEX u_by_note") * 2):
            run(path, step)
            for said in (
                text_of(await wire.call("explain_query", sql=sql)).partition("With these")[0],
                text_of(await wire.call("query_rows", sql=f"/* why */ explain query plan {sql}")),
            ):
                assert ("USING COVERING INDEX u_by_note" in said) == (index % 2 == 0), said


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
        said = text_of(await wire.call("explain_query", sql="SELECT b FROM many WHERE a LIKE '%x'"))
        assert "indexes that were tried would help" in said and "CREATE INDEX" not in said


@pytest.mark.slow
async def test_of_known_best_indexes_nine_in_ten_are_proposed_and_none_that_costs(tmp_path: Path) -> None:
    fill(tmp_path / "shop.db", 4000)
    wrong: list[str] = []
    async with served(tmp_path / "shop.db", "--timeout", 60) as wire:
        for sql, best in CASES.items():
            given = {"parameters": [7]} if "?" in sql else {}
            said = text_of(await wire.call("explain_query", sql=sql, **given))
            found = proposed(said)
            if not is_best(best, found):
                wrong.append(f"{sql}: {found}")
            with closing(sqlite3.connect(tmp_path / "shop.db", isolation_level=None)) as connection:
                before, _ = steps(connection, sql)
                for statement in found:
                    connection.execute(statement)
                after, _ = steps(connection, sql)
                assert after <= before + 1, f"{sql}: {found}"
                for statement in found:
                    connection.execute(f"DROP INDEX {statement.split()[2]}")
    assert len(CASES) >= 40 and len(wrong) * 10 <= len(CASES), wrong


def test_words_of_a_statement_are_read_as_what_they_are() -> None:
    found = find_comparisons(
        "SELECT 'a = b', x FROM t AS o /* c = d */ WHERE (o.[e f] = ? OR lower(o.g || 'x;') = :p) AND h BETWEEN 1 AND 2"
        " AND i IN (SELECT j FROM u WHERE k < 3) GROUP BY l, m ORDER BY n DESC, coalesce(o.q, 0) LIMIT 3 -- r = s"
    )
    assert list(found.equal) == ["[e f]", "lower(g || 'x;')", "i"] and list(found.ranges) == ["h", "k"]
    assert found.orders == [("l", "m"), ("n DESC", "coalesce(q, 0)")]
