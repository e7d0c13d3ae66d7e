"""What goes to PostgreSQL with the opening of a transaction counts only if it is what would be asked for now."""

import itertools

import pytest

from mcp_postgres.engine.connection.pipeline import Pipeline
from postgres.serving import inside, make, text_of

pytestmark = pytest.mark.anyio

CHANGES = [
    "ALTER TABLE t ADD COLUMN more numeric DEFAULT 1.5",
    "ALTER TABLE t ALTER name TYPE bytea USING name::bytea",
    "ALTER TABLE t RENAME id TO number",
    "ALTER TABLE t DROP COLUMN more",
    "UPDATE t SET number = 9007199254740993",
    "ALTER TABLE t ALTER number TYPE json USING to_json(number)",
    "DROP TABLE t",
    "CREATE VIEW t AS SELECT 1 / (random() * 0)::integer AS x",
    "CREATE OR REPLACE VIEW t AS SELECT generate_series(1, 3) AS x",
    "DROP VIEW t; CREATE TABLE t ()",
]


async def test_a_query_that_was_run_before_is_answered_as_one_that_was_not() -> None:
    base = make("CREATE TABLE t (id bigint, name text); INSERT INTO t VALUES (1, 'a'), (2, NULL)")
    comments = itertools.count()
    async with inside("--connections", "1", base.url("owner")) as wire:
        for change in CHANGES:
            for _ in range(2):
                await wire.call("query_rows", sql="SELECT * FROM t", limit=5000)
            base.run(change, "owner")
            again = text_of(await wire.call("query_rows", sql="SELECT * FROM t", limit=5000))
            anew = text_of(await wire.call("query_rows", sql=f"SELECT * FROM t -- {next(comments)}", limit=5000))
            assert again == anew, change


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 / (id - 3) FROM generate_series(1, 5) id",
        "SELECT * FROM generate_series(1, 1000000)",
        "SELECT repeat('x', 10000000)",
        "SELECT 1; -- behind",
        "SELECT 1 -- behind",
        "SELECT",
        "INSERT INTO t VALUES (1)",
        "SELECT 1 AS x, 2 AS x",
        "SHOW work_mem",
        "/* before */ EXPLAIN SELECT 1",
        "WITH d AS (DELETE FROM t RETURNING *) SELECT * FROM d",
    ],
)
async def test_the_same_is_said_each_time_and_the_connection_stays(sql: str) -> None:
    base = make("CREATE TABLE t (id integer)")
    async with inside("--connections", "1", base.url("owner")) as wire:
        (pid,) = [text_of(await wire.call("query_rows", sql="SELECT pg_backend_pid()"))]
        said = [text_of(await wire.call("query_rows", sql=sql, limit=3)).split("cursor=")[0] for _ in range(3)]
        assert len(set(said)) == 1, said
        assert text_of(await wire.call("query_rows", sql="SELECT pg_backend_pid()")) == pid


async def test_a_query_that_was_run_before_takes_one_trip(monkeypatch: pytest.MonkeyPatch) -> None:
    base = make("CREATE TABLE t (id integer); INSERT INTO t VALUES (7)")
    trips: list[Pipeline] = []
    send = Pipeline.send

    async def counted(trip: Pipeline) -> None:
        trips.append(trip)
        await send(trip)

    async with inside(base.url("owner")) as wire:
        for few in (2, 1, 1):
            monkeypatch.setattr(Pipeline, "send", counted)
            trips.clear()
            assert "[7]" in text_of(await wire.call("query_rows", sql="SELECT * FROM t WHERE id = $1", parameters=[7]))
            assert len(trips) == few


@pytest.mark.parametrize("sql", ["EXPLAIN SELECT 1", "SELECT 1"])
@pytest.mark.parametrize("user", ["owner", "postgres"])
async def test_more_values_than_a_statement_takes_are_refused(sql: str, user: str) -> None:
    async with inside("--connections", "1", make().url(user)) as wire:
        said = await wire.call("query_rows", sql=sql, parameters=[1] * 65_536)
        assert said["isError"] and "65,535" in text_of(said)
        assert "1" in text_of(await wire.call("query_rows", sql="SELECT 1"))


async def test_a_statement_that_libpq_refuses_ends_its_connection_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp_postgres.policy.targets._MAX_VALUES", 100_000)
    async with inside("--connections", "1", make().url("owner")) as wire:
        assert (await wire.call("query_rows", sql="EXPLAIN SELECT 1", parameters=[1] * 65_536))["isError"]
        assert "1" in text_of(await wire.call("query_rows", sql="SELECT 1"))
