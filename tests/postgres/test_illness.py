"""Health and advice, on a cluster prepared to be ill and beside it one that nearly is: each finding appears here only.

What takes a minute in life is made old by a `now()` of the ill database that lies one hour ahead.
"""

import re
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import anyio
import psycopg
import pytest

from mcp_postgres.engine.demo.cluster import Cluster
from mcp_postgres.engine.health.checks import CHECKS_BY_AREA
from postgres.serving import PROGRAMS, make, served, text_of

Reports = dict[str, dict[str, str]]

ROWS = "SELECT g, g % 100, repeat('x', 200) FROM generate_series(1, 30000) g"
FLUSH = "SELECT pg_stat_force_next_flush()"
BURN = [
    "CREATE UNLOGGED TABLE burnt (a int)",
    """DO $$ BEGIN FOR n IN 1..130000 LOOP BEGIN INSERT INTO burnt VALUES (n); EXCEPTION WHEN others THEN END;
    END LOOP; END $$""",
]
"""Each block with a handler is a transaction of its own, with a number of its own."""


def table(name: str, *more: str) -> list[str]:
    return [f"CREATE TABLE {name} (id integer, part integer, note text)", f"INSERT INTO {name} {ROWS}", *more]


def scans(count: int, *settings: str) -> list[str]:
    """Count rows by reading them from the beginning, so often, in one session."""
    loop = f"FOR n IN 1..{count} LOOP PERFORM count(part) FROM reads WHERE part >= 0; END LOOP;"
    return [*settings, f"DO $$ BEGIN {loop} END $$", FLUSH]


WHOLE = [f"SET enable_{word} = off" for word in ("indexonlyscan", "indexscan", "bitmapscan")]
INDEXED = ["CREATE INDEX reads_part ON reads (part, id, note)", "SELECT pg_switch_wal()", "VACUUM reads"]
"""Pages are marked as visible to all only once the commit that filled them is on the disk; else each scan of the index
reads the table too."""
SPILL = "WITH x AS MATERIALIZED (SELECT repeat('x', 8000) AS a FROM generate_series(1, 35000)) SELECT count(a) FROM x"
CASES: dict[str, tuple[str, str, list[str], list[str]]] = {
    # name: area, what is said of the ill one, how it is made ill, what is nearly that and well
    "invalid": (
        "indexes", r"invalid index invalid_unique on invalid",
        ["CREATE TABLE invalid (a int); INSERT INTO invalid VALUES (1), (1)",
         "?CREATE UNIQUE INDEX CONCURRENTLY invalid_unique ON invalid (a)"],
        ["CREATE TABLE invalid (a int); INSERT INTO invalid VALUES (1), (2)",
         "CREATE UNIQUE INDEX CONCURRENTLY invalid_unique ON invalid (a)"],
    ),
    "duplicate": (
        "indexes", r"duplicate index duplicate_two \(.*\) of duplicate_one on duplicate",
        ["CREATE TABLE duplicate (a int, b int); CREATE INDEX duplicate_one ON duplicate (a);"
         "CREATE INDEX duplicate_two ON duplicate (a)"],
        ["CREATE TABLE duplicate (a int, b int); CREATE INDEX duplicate_one ON duplicate (a);"
         "CREATE INDEX duplicate_two ON duplicate (a DESC); CREATE INDEX duplicate_three ON duplicate (a) WHERE b > 1;"
         "CREATE INDEX duplicate_four ON duplicate USING hash (a); CREATE INDEX duplicate_five ON duplicate ((a + 1))"],
    ),
    "duplicate of a key": (
        "indexes", r"duplicate index keyed_too \(.*\) of keyed_pkey on keyed",
        ["CREATE TABLE keyed (a int PRIMARY KEY); CREATE INDEX keyed_too ON keyed (a)"],
        ["CREATE TABLE keyed (a int PRIMARY KEY, b int); CREATE INDEX keyed_too ON keyed (b)"],
    ),
    "covered": (
        "indexes", r"index covered_a \(.*\) on covered is covered by covered_ab",
        ["CREATE TABLE covered (a int, b int); CREATE INDEX covered_a ON covered (a);"
         "CREATE INDEX covered_ab ON covered (a, b)"],
        ["CREATE TABLE covered (a int, b int); CREATE UNIQUE INDEX covered_a ON covered (a);"
         "CREATE INDEX covered_ab ON covered (a, b); CREATE INDEX covered_b ON covered (b)"],
    ),
    "unused": (
        "indexes", r"index unused_note \(.*\) on unused was never used",
        table("unused", "CREATE INDEX unused_note ON unused (id, note)"),
        table("unused", "CREATE INDEX unused_note ON unused (id, note)", "SET enable_seqscan = off",
              "SELECT * FROM unused WHERE id = 1", FLUSH),
    ),
    "foreign key": (
        "indexes", r"foreign key child_parent_fkey of child \(about 30000 rows\) has no index: deletes in parent",
        ["CREATE TABLE parent (id int PRIMARY KEY); CREATE TABLE child (parent int REFERENCES parent)",
         "INSERT INTO parent VALUES (1)", "INSERT INTO child SELECT 1 FROM generate_series(1, 30000)", "ANALYZE child"],
        ["CREATE TABLE parent (id int PRIMARY KEY); CREATE TABLE child (parent int REFERENCES parent)",
         "INSERT INTO parent VALUES (1)", "INSERT INTO child SELECT 1 FROM generate_series(1, 30000)",
         "CREATE INDEX ON child (parent)", "ANALYZE child"],
    ),
    "dead rows": (
        "vacuum", r"dead: \d+ dead rows beside \d+ live ones, last vacuumed never",
        table("dead", "UPDATE dead SET part = 1", FLUSH),
        table("dead", "UPDATE dead SET part = 1", "VACUUM dead", FLUSH),
    ),
    "not analyzed": (
        "vacuum", r"unknown: \d+ rows changed since its last ANALYZE \(never\)",
        table("unknown", FLUSH),
        table("unknown", "ANALYZE unknown", FLUSH),
    ),
    "no autovacuum of a table": (
        "vacuum", r"neglected: autovacuum is switched off for it",
        ["CREATE TABLE neglected (a int) WITH (autovacuum_enabled = off)"],
        ["CREATE TABLE neglected (a int) WITH (autovacuum_enabled = on)"],
    ),
    "no autovacuum at all": ("vacuum", r"autovacuum is switched off for the whole server", [], []),
    "bloat": (
        "bloat", r"bloated: about \d+ .B of \d+ .B is empty space",
        table("bloated", "DELETE FROM bloated WHERE id < 29000", "VACUUM ANALYZE bloated"),
        table("bloated", "VACUUM ANALYZE bloated"),
    ),
    "an old database": ("wraparound", r"database ill: .*\d+ transactions old, autovacuum presses at 100000", [], []),
    "an old table": (
        "wraparound", r"[\w.]+: \d+ transactions old", [], [],
    ),
    "tables not in memory": (
        "buffers", r"[\d.]+ % of table blocks came from memory \(\d+ hits, \d+ reads\)",
        table("reads", *INDEXED, *scans(160, *WHOLE)),
        table("reads", *INDEXED, *scans(160, *WHOLE)),
    ),
    "indexes not in memory": (
        "buffers", r"[\d.]+ % of index blocks came from memory",
        scans(130, "SET enable_seqscan = off", "SET enable_bitmapscan = off"),
        scans(130, "SET enable_seqscan = off", "SET enable_bitmapscan = off"),
    ),
    "temporary files": (
        "buffers", r"1\d\d\d MB of temporary files since",
        ["SET work_mem = '64kB'", *[SPILL] * 4, FLUSH],
        ["SET work_mem = '64kB'", SPILL, FLUSH],
    ),
    "connections": ("connections", r"\d+ of 20 connections are taken", [], []),
    "idle in a transaction": (
        "connections", r"session \d+ \(postgres, forgotten\) is idle in a transaction for (?:00:59|01:)", [], [],
    ),
    "a long statement": (
        "connections", r"session \d+ \(postgres, tireless\) runs a statement for (?:00:59|01:)", [], [],
    ),
    "a blocked session": (
        "locks", r"session \d+ \(postgres\) waits .* for session \d+ \(postgres, idle in transaction\): "
        r"UPDATE locked SET a = 2", ["CREATE TABLE locked (a int); INSERT INTO locked VALUES (1)"],
        ["CREATE TABLE locked (a int); INSERT INTO locked VALUES (1)"],
    ),
    "a prepared transaction": ("locks", r"prepared transaction left of postgres has held its locks since", [], []),
    "an inactive slot": (
        "replication", r"slot lonely is inactive and keeps \d+ .* of WAL",
        ["SELECT pg_create_physical_replication_slot('lonely', true)"],
        # One that keeps nothing.
        ["SELECT pg_create_physical_replication_slot('lonely', false)"],
    ),
    "a sequence of a column": (
        "sequences", r"sequence small_id_seq is at 30000 of 32767 \(92 %\)",
        ["CREATE TABLE small (id smallserial)", "SELECT setval('small_id_seq', 30000)"],
        ["CREATE TABLE small (id serial)", "SELECT setval('small_id_seq', 30000)"],
    ),
    "a sequence behind a narrow column": (
        "sequences", r"sequence wide is at 2000000000 of 2147483647 \(93 %\)",
        ["CREATE SEQUENCE wide", "CREATE TABLE narrow (id integer DEFAULT nextval('wide'))",
         "ALTER SEQUENCE wide OWNED BY narrow.id", "SELECT setval('wide', 2000000000)"],
        ["CREATE SEQUENCE wide", "CREATE TABLE narrow (id bigint DEFAULT nextval('wide'))",
         "ALTER SEQUENCE wide OWNED BY narrow.id", "SELECT setval('wide', 2000000000)"],
    ),
    "a sequence that ends": (
        "sequences", r"sequence round is at 90 of 100 \(90 %\)",
        ["CREATE SEQUENCE round MAXVALUE 100", "SELECT setval('round', 90)"],
        ["CREATE SEQUENCE round MAXVALUE 100 CYCLE", "SELECT setval('round', 90)"],
    ),
    "not validated": (
        "constraints", r"constraint positive of doubtful is not validated",
        ["CREATE TABLE doubtful (a int)", "ALTER TABLE doubtful ADD CONSTRAINT positive CHECK (a > 0) NOT VALID"],
        ["CREATE TABLE doubtful (a int)", "ALTER TABLE doubtful ADD CONSTRAINT positive CHECK (a > 0) NOT VALID",
         "ALTER TABLE doubtful VALIDATE CONSTRAINT positive"],
    ),
}  # fmt: skip
LOST = r"slot lost has lost WAL it needs: (?:lost|unreserved)"
AHEAD = """CREATE SCHEMA late; CREATE FUNCTION late.now() RETURNS timestamptz LANGUAGE sql STABLE
AS $$ SELECT pg_catalog.now() + interval '1 hour' $$; GRANT USAGE ON SCHEMA late TO monitor"""
MONITOR = "CREATE ROLE monitor LOGIN PASSWORD 'monitor' IN ROLE pg_monitor, pg_read_all_data"
ILL = [
    "max_connections=20", "superuser_reserved_connections=0", "autovacuum=off", "autovacuum_freeze_max_age=100000",
    "shared_buffers=1MB", "max_prepared_transactions=5", "max_slot_wal_keep_size=1MB", "max_wal_size=32MB",
]  # fmt: skip
WELL = ["max_connections=40", "max_prepared_transactions=5"]


def started(options: list[str]) -> Cluster:
    return Cluster(MONITOR, options=[word for option in options for word in ("-c", option)], programs=PROGRAMS)


def connect(cluster: Cluster, name: str, called: str = "") -> psycopg.Connection[Any]:
    url = f"postgresql://postgres:{cluster.password}@127.0.0.1:{cluster.wait_until_ready()}/{name}?application_name={called}"
    return psycopg.connect(url, autocommit=True)


def run(connection: psycopg.Connection[Any], statements: list[str]) -> None:
    for statement in statements:
        if statement.startswith("?"):
            with pytest.raises(psycopg.Error):
                connection.execute(statement[1:].encode())
        else:
            connection.execute(statement.encode())


@contextmanager
def busy(cluster: Cluster, name: str, most: int) -> Iterator[None]:
    """Sessions as they are left behind: one forgotten, one tireless, one blocked; `most` in all."""
    with ExitStack() as stack:
        session = [
            stack.enter_context(closing(connect(cluster, name, called))) for called in ("forgotten", "", "", "tireless")
        ]
        forgotten, preparing, waiting, tireless = session
        forgotten.execute("BEGIN; UPDATE locked SET a = 1")
        preparing.execute("BEGIN; CREATE TABLE half (a int); PREPARE TRANSACTION 'left'")
        waiting.pgconn.send_query(b"UPDATE locked SET a = 2" + (b"" if name == "ill" else b" WHERE a = 3"))
        tireless.pgconn.send_query(b"SELECT pg_sleep(600)")
        while (
            name == "ill"
            and not preparing.execute(b"SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'").fetchone()
        ):
            pass
        for _ in range(most - len(session)):
            stack.enter_context(closing(connect(cluster, name)))
        yield


@pytest.fixture(scope="module")
def reports() -> Reports:
    """What is said of each area, of the ill database and of the well one."""
    with ExitStack() as stack:
        addresses: dict[str, str] = {}
        clusters = {"ill": started(ILL), "well": started(WELL)}
        for cluster in clusters.values():
            stack.callback(cluster.close)
        for name, cluster in clusters.items():
            with connect(cluster, "postgres") as connection:
                run(connection, [f"CREATE DATABASE {name}"])
            with connect(cluster, name) as connection:
                # Enough WAL to lose what a slot needs; where no limit is set, nothing is lost, but more would be kept.
                run(connection, ["SELECT pg_create_physical_replication_slot('lost', true)"])
                for number in range(5):
                    run(connection, [f"CREATE TABLE wal{number} AS SELECT 1", "SELECT pg_switch_wal()"])
                run(connection, ["CHECKPOINT"])
            for _, _, ill, well in CASES.values():
                with connect(cluster, name) as connection:
                    run(connection, ill if name == "ill" else well)
            with connect(cluster, name) as connection:
                if name == "ill":
                    # Nothing older than this one may be frozen, whoever vacuums.
                    holder = stack.enter_context(closing(connect(cluster, name)))
                    run(holder, ["BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT pg_current_xact_id()"])
                    run(connection, [*BURN, AHEAD])
            stack.enter_context(busy(cluster, name, 15))
            path = "%20-csearch_path%3Dlate%2Cpg_catalog%2Cpublic" if name == "ill" else ""
            addresses[name] = (
                f"{name}=postgresql://monitor:monitor@127.0.0.1:{cluster.wait_until_ready()}/{name}?options={path}"
            )
        return anyio.run(_asked, addresses)


async def _asked(addresses: dict[str, str]) -> Reports:
    found: dict[str, dict[str, str]] = {name: {} for name in addresses}
    async with served("--dba", *addresses.values()) as wire:
        for name in addresses:
            for area in CHECKS_BY_AREA:
                with anyio.fail_after(60):
                    result = await wire.call("get_health", areas=[area], database=name)
                assert not result.get("isError"), text_of(result)
                found[name][area] = text_of(result).rstrip()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_finding_appears_where_it_must_and_only_there(case: str, reports: Reports) -> None:
    area, said = CASES[case][:2]
    assert re.search(f"- {area}: {said}", reports["ill"][area]), reports["ill"][area]
    assert not re.search(said, reports["well"][area]), reports["well"][area]


@pytest.mark.slow
def test_lost_wal_appears_where_it_must_and_only_there(reports: Reports) -> None:
    assert re.search("- replication: " + LOST, reports["ill"]["replication"])
    assert not re.search(LOST, reports["well"]["replication"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ill", "well"])
def test_every_look_works(name: str, reports: Reports) -> None:
    for area, text in reports[name].items():
        assert "could not be looked at" not in text, (area, text)


@pytest.mark.slow
@pytest.mark.parametrize("area", sorted(CHECKS_BY_AREA.keys() - {"replication", "vacuum", "safety"}))
def test_a_database_that_is_well_has_nothing(area: str, reports: Reports) -> None:
    assert reports["well"][area] == f"Nothing found in: {area}."


@pytest.mark.anyio
async def test_a_role_that_sees_less_is_told_so() -> None:
    base = make()
    async with served("--dba", f"app={base.url()}") as wire:
        assert "lacks `pg_monitor`" in text_of(await wire.call("get_health"))
        assert "lacks `pg_monitor`" in text_of(await wire.call("list_sessions"))
        for tool in ("list_top_queries", "find_indexes"):
            result = await wire.call(tool)
            assert result.get("isError") and "`pg_stat_statements`" in text_of(result)
            assert "An administrator can" in text_of(result)
