"""Databases prepared to be ill: each finding has a case where it must appear, and one where it must not."""

import pytest

from postgres.serving import Base, cluster, inside, make, text_of

SOUND = """
CREATE TABLE parent (id integer PRIMARY KEY, name text NOT NULL);
CREATE TABLE child (id integer PRIMARY KEY, parent_id integer REFERENCES parent, note text, n integer CHECK (n > 0));
CREATE INDEX child_parent ON child (parent_id);
CREATE SEQUENCE steps AS integer;
INSERT INTO parent SELECT g, 'p' || g FROM generate_series(1, 1000) g;
INSERT INTO child SELECT g, g % 1000 + 1, repeat('x', 50), 1 FROM generate_series(1, 60000) g;
"""
ILL: dict[str, tuple[str, str]] = {
    "indexes: duplicate": (
        "CREATE INDEX child_parent_again ON child (parent_id)",
        "duplicate index child_parent_again",
    ),
    "indexes: covered": (
        "CREATE INDEX child_both ON child (parent_id, note)",
        "index child_parent",
    ),
    "indexes: unused": (
        "CREATE INDEX child_note ON child (note, id)",
        "index child_note",
    ),
    "indexes: missing": (
        "DROP INDEX child_parent",
        "child_parent_id_fkey of child",
    ),
    "indexes: invalid": (
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'child_parent'::regclass",
        "invalid index child_parent",
    ),
    "vacuum: dead": (
        "DELETE FROM child WHERE id % 2 = 0",
        "dead rows",
    ),
    "vacuum: stale": (
        "UPDATE child SET n = 2 WHERE id % 2 = 0",
        "changed since its last ANALYZE",
    ),
    "vacuum: off": (
        "ALTER TABLE parent SET (autovacuum_enabled = false)",
        "parent: autovacuum is switched off for it",
    ),
    "sequences: end": (
        "SELECT setval('steps', 2000000000)",
        "sequence steps is at 2000000000",
    ),
    "constraints: not valid": (
        "ALTER TABLE child ADD CONSTRAINT later CHECK (n < 100) NOT VALID",
        "constraint later of child is not validated",
    ),
    "bloat: empty": (
        "DELETE FROM wide; VACUUM wide; INSERT INTO wide SELECT 1, 'x'; ANALYZE wide",
        "wide: about",
    ),
}  # fmt: skip


async def findings(base: Base, area: str) -> str:
    async with inside("--dba", f"app={base.url('monitor')}") as wire:
        return text_of(await wire.call("get_health", areas=[area]))


def prepared() -> Base:
    base = make(SOUND)
    base.run("GRANT pg_read_all_data TO monitor")
    base.run("VACUUM ANALYZE")
    base.rows("SELECT count(*) FROM child WHERE parent_id = 5")
    return base


@pytest.fixture(scope="module")
def sound() -> Base:
    return prepared()


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_sound_database_has_nothing(sound: Base) -> None:
    areas = ["indexes", "bloat", "buffers", "connections", "locks", "replication", "sequences", "constraints"]
    async with inside("--dba", f"app={sound.url('monitor')}") as wire:
        said = text_of(await wire.call("get_health", areas=areas))
        assert said.strip() == f"Nothing found in: {', '.join(areas)}.", said
        said = text_of(await wire.call("get_health", areas=["vacuum"]))
        assert [line for line in said.split("\n") if line.startswith("- ")] == [
            "- vacuum: autovacuum is switched off for the whole server"
        ]


@pytest.mark.share(5)
@pytest.mark.anyio
@pytest.mark.parametrize("what", ILL)
async def test_an_ill_one_is_told(what: str) -> None:
    base = prepared()
    sql, words = ILL[what]
    if what.startswith("bloat"):
        base.run("CREATE TABLE wide AS SELECT g AS id, repeat('x', 500) AS pad FROM generate_series(1, 30000) g")
        with base.connect() as connection:
            # The last page stays in use, so that the file is not cut short.
            connection.execute("DELETE FROM wide WHERE id < 30000")
            connection.execute("VACUUM wide")
            connection.execute("ANALYZE wide")
    else:
        base.run(sql)
    said = await findings(base, what.partition(":")[0])
    assert words in said, said


@pytest.mark.anyio
async def test_sessions_locks_and_slots() -> None:
    base = prepared()
    async with inside("--dba", f"app={base.url('monitor')}") as wire:
        with base.connect("owner") as holder, base.connect("owner") as waiter:
            holder.execute("BEGIN")
            holder.execute("LOCK TABLE parent")
            pid = waiter.info.backend_pid
            waiter.pgconn.send_query(b"SELECT count(*) FROM parent")
            while not base.rows(f"SELECT 1 FROM pg_stat_activity WHERE pid = {pid} AND wait_event_type = 'Lock'"):
                pass
            said = text_of(await wire.call("get_health", areas=["locks"]))
            assert f"session {pid}" in said and f"for session {holder.info.backend_pid}" in said, said
            said = text_of(await wire.call("list_sessions"))
            assert f"BLOCKED BY {holder.info.backend_pid}" in said, said
            assert "wants AccessShareLock on parent" in said, said
            assert "BLOCKS OTHERS by AccessExclusiveLock on parent" in said, said
            holder.execute("ROLLBACK")
            while waiter.pgconn.get_result() is not None:
                pass
            holder.execute("BEGIN; UPDATE parent SET id = id WHERE id = (SELECT min(id) FROM parent)")
            waiter.pgconn.send_query(b"DELETE FROM parent WHERE id = (SELECT min(id) FROM parent)")
            while not base.rows(f"SELECT 1 FROM pg_stat_activity WHERE pid = {pid} AND wait_event_type = 'Lock'"):
                pass
            said = text_of(await wire.call("list_sessions"))
            assert (
                "ShareLock on a row that transaction" in said and "BLOCKS OTHERS by RowExclusiveLock on par" in said
            ), said
            holder.execute("ROLLBACK")
            waiter.cancel()
            while waiter.pgconn.get_result() is not None:
                pass
        assert "Nothing found" in text_of(await wire.call("get_health", areas=["locks"]))
        base.rows("SELECT pg_create_physical_replication_slot('left_behind', true)::text")
        try:
            assert "slot left_behind is inactive" in text_of(await wire.call("get_health", areas=["replication"]))
        finally:
            base.rows("SELECT pg_drop_replication_slot('left_behind')::text")


@pytest.mark.anyio
async def test_transaction_ids_that_run_out() -> None:
    base = prepared()
    burn = (
        "CREATE TEMP TABLE burnt (a int); DO $$ BEGIN FOR i IN 1..130000 LOOP BEGIN INSERT INTO burnt VALUES (i);"
        " EXCEPTION WHEN OTHERS THEN NULL; END; END LOOP; END $$"
    )
    async with inside("--dba", f"app={base.url('monitor')}") as wire:
        with base.connect() as old:
            # An old snapshot, as long as which nothing can be frozen; the cluster of the tests presses at 100,000.
            old.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            old.execute("SELECT 1 FROM parent")
            base.run(burn)
            said = text_of(await wire.call("get_health", areas=["wraparound"]))
            assert f"database {base.name}:" in said, said
            old.execute("ROLLBACK")
        base.run("VACUUM FREEZE")
        assert f"database {base.name}:" not in text_of(await wire.call("get_health", areas=["wraparound"]))


@pytest.mark.anyio
async def test_settings_and_what_is_missing() -> None:
    assert cluster().wait_until_ready()
    base = make()
    async with inside("--dba", f"app={base.url()}") as wire:
        said = text_of(await wire.call("list_settings"))
        assert "fsync = off" in said and "a crash can lose the whole cluster" in said
        assert "work_mem = " in said
        assert "wal_buffers" in text_of(await wire.call("list_settings", query="wal_buff"))
        assert "lacks `pg_monitor`" in text_of(await wire.call("list_sessions", which="all"))


@pytest.mark.anyio
async def test_what_is_urgent_comes_first() -> None:
    base = prepared()
    base.run(ILL["constraints: not valid"][0], "owner")
    async with inside("--dba", f"app={base.url('monitor')}") as wire:
        said = text_of(await wire.call("get_health"))
        # The tests' own server is made for speed.
        now, later = said.index("To do now:"), said.index("To do when there is time:")
        assert now < said.index("safety: fsync is off: a crash of the machine can lose the whole cluster") < later, said
        assert "  do: ALTER SYSTEM SET it to on" in said


@pytest.mark.anyio
async def test_lists_that_end_early_say_of_how_many() -> None:
    base = make()
    with base.connect("owner"), base.connect("owner"):
        async with inside("--dba", f"app={base.url('monitor')}") as wire:
            said = text_of(await wire.call("list_sessions", which="all", limit=1))
            assert "[truncated: 1 of " in said and "sessions; a larger `limit` shows more]" in said, said
            assert "truncated" not in text_of(await wire.call("list_sessions", which="all"))
            assert "[truncated: 100 of " in text_of(await wire.call("list_settings", query="a"))
        async with inside("--dba", f"app={base.url('reader')}") as wire:
            said = text_of(await wire.call("list_sessions", which="all"))
            assert "are hidden" in said and "no other session of this role is busy" in said, said


@pytest.mark.anyio
@pytest.mark.parametrize("spelling", ["off", "0", "no"])
async def test_autovacuum_is_off_however_that_is_spelled(spelling: str) -> None:
    base = make(f"CREATE TABLE neglected (id int) WITH (autovacuum_enabled = {spelling})")
    assert "neglected: autovacuum is switched off for it" in await findings(base, "vacuum")
