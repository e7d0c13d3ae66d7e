"""What the wheel's PostgreSQL lacks: pg_stat_statements, hypopg, PostGIS, an older version, and PgBouncer in front.

    apt-get install postgresql-15 postgresql-15-hypopg postgresql-15-postgis-3 postgresql-15-postgis-3-scripts pgbouncer
    uv run pytest tests/postgres/debian.py
    MCP_TEST_PROGRAMS=/usr/lib/postgresql/15/bin uv run pytest -m "not (debian or weekly)" tests/postgres

Not collected otherwise: nothing of it is there on a machine that only has the wheel.
"""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
import psycopg
import pytest

from mcp_postgres.engine.demo.cluster import Cluster
from mcp_postgres.engine.demo.process import free_port
from postgres import serving
from postgres.authority import Authority
from postgres.serving import Base, inside, make, served, text_of
from postgres.test_tls import HOST, address, refused

PROGRAMS = os.environ.get("MCP_TEST_PROGRAMS", "/usr/lib/postgresql/15/bin")
BIG = """
CREATE TABLE big (id integer PRIMARY KEY, k integer, name text, day date);
INSERT INTO big SELECT g, g % 5000, 'n' || g, date '2026-01-01' + g % 300 FROM generate_series(1, 100000) g;
"""


@pytest.fixture(scope="module", autouse=True)
def fifteen() -> Generator[Cluster]:
    """Debian's own, with the statistics loaded, instead of the run's."""
    roles = "; ".join(f"CREATE ROLE {name} LOGIN PASSWORD '{name}'" for name in ("owner", "reader"))
    made = Cluster(
        f"{roles}; CREATE ROLE monitor LOGIN PASSWORD 'monitor' IN ROLE pg_monitor",
        options=[*serving.OPTIONS, "-c", "shared_preload_libraries=pg_stat_statements"],
        programs=PROGRAMS,
    )
    made.wait_until_ready()
    before, serving.cluster = serving.cluster, partial(lambda cluster: cluster, made)
    serving._template.cache_clear()
    yield made
    serving.cluster = before
    serving._template.cache_clear()
    made.close()


def prepared() -> Base:
    base = make(BIG)
    base.run("CREATE EXTENSION hypopg; CREATE EXTENSION pg_stat_statements; GRANT pg_read_all_data TO monitor")
    return base


@pytest.mark.anyio
async def test_what_an_extension_keeps_in_a_session_goes_with_the_session() -> None:
    base = make()
    base.run("CREATE EXTENSION dblink; CREATE EXTENSION hypopg; GRANT SELECT ON hypopg_list_indexes TO owner")
    left = "SELECT coalesce(cardinality(dblink_get_connections()), 0), (SELECT count(*) FROM hypopg_list_indexes)"
    async with inside(f"app={base.url('owner')}") as wire:
        for sql in (
            f"SELECT dblink_connect('kept', '{base.url('owner').replace('postgresql', 'postgres')}')",
            "SELECT indexname FROM hypopg_create_index('CREATE INDEX ON t (id)')",
        ):
            said = text_of(await wire.call("query_rows", sql=sql))
            assert "[1 row]" in said, said
            assert "[0,0]" in text_of(await wire.call("query_rows", sql=left)), sql


@pytest.mark.anyio
async def test_top_queries_and_indexes_that_help_them() -> None:
    base = prepared()
    base.run("SELECT pg_stat_statements_reset()")
    for number in range(30):
        base.rows(f"SELECT name FROM big WHERE k = {number}")
    base.rows("SELECT count(*) FROM big WHERE id < 100")
    async with inside("--dba", f"app={base.url('monitor')}") as wire:
        top = text_of(await wire.call("list_top_queries"))
        assert "30 calls" in top and "WHERE k = $1" in top, top
        said = text_of(await wire.call("find_indexes"))
        assert "CREATE INDEX ON big (k)" in said and "->" in said, said
        base.run("CREATE INDEX ON big (k)")
        said = text_of(await wire.call("find_indexes", queries=["SELECT name FROM big WHERE k = $1"]))
        assert "No index tried makes these statements much cheaper" in said and "indexes tried with hypopg" in said, (
            said
        )
        plan = text_of(
            await wire.call("explain_query", sql="SELECT * FROM big WHERE name = 'n5'", indexes=["big (name)"])
        )
        assert "as if there were big (name)" in plan and "Index Scan" in plan, plan
        assert "no plan" in text_of(await wire.call("find_indexes", queries=["SELEC 1"]))
        # What was hypothetical is gone with its call.
        assert "Seq Scan" in text_of(await wire.call("explain_query", sql="SELECT * FROM big WHERE name = 'n5'"))


PIXELS = "st_addband(st_makeemptyraster(1, 1, 0, 0, 1), '32BF'::text, 1, 0)"
RUNNING = {
    "extent": "st_findextent('places', 'geom\") AS extent, leaves() FROM places --')",
    "expression": f"st_mapalgebra({PIXELS}, 1, '32BF', '(SELECT leaves())')",
    "callback": f"st_mapalgebra({PIXELS}, 1, 'each(float8[],integer[],text[])'::regprocedure)",
    "address": "standardize_address('lexicon', 'lexicon', 'rules', '1 a', 'b')",
}
"""Calls that run `leaves()`, which leaves a replication slot."""


def with_postgis() -> Base:
    """A database with PostGIS, in which a role without powers has laid what the calls need."""
    base = make("CREATE TABLE t (id integer PRIMARY KEY, name text); INSERT INTO t VALUES (1, 'a')")
    base.run("CREATE EXTENSION postgis_raster CASCADE; CREATE EXTENSION address_standardizer")
    base.run("CREATE EXTENSION postgis_topology")
    base.run(
        "CREATE FUNCTION leaves() RETURNS integer LANGUAGE plpgsql IMMUTABLE AS"
        " $$ BEGIN PERFORM pg_create_physical_replication_slot('left'); RETURN 1; END $$;"
        "CREATE FUNCTION each(float8[], integer[], VARIADIC text[]) RETURNS float8 LANGUAGE sql IMMUTABLE AS"
        " 'SELECT leaves()';"
        "CREATE TABLE places (id integer PRIMARY KEY, geom geometry); INSERT INTO places VALUES (1, st_point(1, 2));"
        "CREATE VIEW lexicon AS SELECT leaves() AS id, 1 AS seq, 'x'::text AS word, 'x'::text AS stdword, 1 AS token;"
        "CREATE VIEW rules AS SELECT leaves() AS id, '1 -1 5 -1 2 0'::text AS rule;"
        "CREATE TABLE stored (pixels raster)",
        "owner",
    )
    for name, call in RUNNING.items():
        base.run(f"CREATE VIEW seen_{name} AS SELECT {call} AS x", "owner")
    return base


def slots(base: Base) -> list[object]:
    found = base.rows("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = 'left'")
    return list(found)


@pytest.mark.anyio
@pytest.mark.parametrize("name", RUNNING)
async def test_functions_that_run_what_they_are_given_run_nothing_for_a_superuser(name: str) -> None:
    base = with_postgis()
    with contextlib.suppress(psycopg.Error):
        base.rows(f"SELECT * FROM seen_{name}")
    assert slots(base), "the call does no harm, so it proves nothing"
    async with served("--poll", "50", f"app={base.url('postgres')}") as wire:
        for tool, arguments in (
            ("query_rows", {"sql": f"SELECT {RUNNING[name]}"}),
            ("query_rows", {"sql": f"SELECT * FROM seen_{name}"}),
            ("explain_query", {"sql": f"SELECT * FROM seen_{name}"}),
            ("get_table", {"table": f"public.seen_{name}", "sample": 1}),
        ):
            said = text_of(await wire.call(tool, **arguments))
            assert "may run what it is given" in said or "code of another role" in said, said
            assert not slots(base), tool
        with contextlib.suppress(Exception):
            await wire.read(f"postgres://app/public/seen_{name}")
        assert not slots(base)
        await wire.subscribe(f"postgres://app/public/seen_{name}")
        await wire.subscribe("postgres://app/public/t")
        base.run("UPDATE t SET name = 'b'")
        await wire.notification("notifications/resources/updated")
        base.run("UPDATE t SET name = 'c'")
        await wire.notification("notifications/resources/updated")
        assert not slots(base)


@pytest.mark.anyio
async def test_a_superuser_reads_geometries_beside_a_topology() -> None:
    base = with_postgis()
    async with inside(f"app={base.url('postgres')}") as wire:
        for sql, answer in (
            ("SELECT geom FROM places", "0101000000"),
            ("SELECT st_astext(st_buffer(geom, 1, 'quad_segs=1')), st_asgeojson(geom) FROM places", "POLYGON"),
            ("SELECT count(*) FROM places WHERE geom && st_makeenvelope(0, 0, 5, 5)", "[1]"),
            ("SELECT st_astext(st_transform(st_setsrid(geom, 4326), 3857)) FROM places", "POINT(111"),
            ("SELECT st_estimatedextent('public', 'places', 'geom') IS NULL", "[true]"),
            ("SELECT st_value(pixels, 1, 1, 1), st_width(pixels) FROM (SELECT " + PIXELS + " AS pixels) q", "[1,1]"),
            ("SELECT pixels FROM stored", "[0 rows"),
            ("SELECT st_asmvt(q) IS NOT NULL FROM (SELECT id, st_asmvtgeom(geom, st_makeenvelope(0, 0, 5, 5)) FROM"
             " places) q", "[true]"),
        ):  # fmt: skip
            said = text_of(await wire.call("query_rows", sql=sql))
            assert answer in said, f"{sql}: {said}"
        said = text_of(await wire.call("query_rows", sql="SELECT topology.geometry(NULL::topology.topogeometry)"))
        assert "may run what it is given" in said or "code of another" in said or "belongs to others" in said, said


@pytest.fixture
def over_tls() -> Generator[tuple[Base, Authority, int]]:
    """A PostgreSQL that takes `reader` over TLS only, and `monitor` with a certificate of its own only."""
    # Not pytest's folder: when root runs this, the server is nobody and must get there.
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        folder.chmod(0o755)
        authority = Authority(folder)
        certificate, key = authority.issue("server", HOST)
        rules = folder / "pg_hba.conf"
        rules.write_text(
            "host all postgres all scram-sha-256\n"
            "hostssl all monitor all scram-sha-256 clientcert=verify-full\nhostssl all reader all scram-sha-256\n",
            "utf-8",
        )
        if os.geteuid() == 0:
            for path in (certificate, key, rules):
                shutil.chown(path, "nobody")
        settings = {
            "ssl": "on", "ssl_cert_file": certificate, "ssl_key_file": key, "ssl_ca_file": authority.certificate,
            "hba_file": rules,
        }  # fmt: skip
        made = Cluster(
            "CREATE ROLE reader LOGIN PASSWORD 'reader'; CREATE ROLE monitor LOGIN PASSWORD 'monitor'",
            options=[word for name, value in settings.items() for word in ("-c", f"{name}={value}")],
            programs=PROGRAMS,
        )
        try:
            yield Base("postgres"), authority, made.wait_until_ready()
        finally:
            made.close()


@pytest.mark.anyio
async def test_a_superusers_plans_run_no_code_of_others() -> None:
    base = prepared()
    base.run(
        "CREATE FUNCTION strange(integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS"
        " 'BEGIN RAISE EXCEPTION ''it ran''; END'",
        "owner",
    )
    base.run("SELECT pg_stat_statements_reset()")
    for number in range(30):
        base.rows(f"SELECT name FROM big WHERE k = {number}")
    with base.connect("owner") as owner:
        for _ in range(3):
            with pytest.raises(psycopg.Error, match="it ran"):
                owner.execute("SELECT name FROM big WHERE k = strange(1)")
    async with inside("--dba", f"app={base.url('postgres')}") as wire:
        said = text_of(await wire.call("find_indexes"))
        assert "CREATE INDEX ON public.big (k)" in said and "it ran" not in said, said
        said = text_of(await wire.call("find_indexes", queries=["SELECT name FROM big WHERE k = strange(1)"]))
        assert "strange() of owner" in said, said
        query = "SELECT * FROM big WHERE name = 'n5'"
        plan = text_of(await wire.call("explain_query", sql=query, indexes=["big (name)"]))
        assert "Index Scan" in plan, plan
        for index in ("big ((k + strange(1)))", "big (k) WHERE k > strange(1)", "CREATE INDEX ON big (strange(k))"):
            said = text_of(await wire.call("explain_query", sql=query, indexes=[index]))
            assert "only columns can be indexed" in said, said


@pytest.mark.anyio
async def test_its_own_tls_is_believed_if_its_authority_is_known(
    over_tls: tuple[Base, Authority, int], tmp_path: Path
) -> None:
    base, authority, port = over_tls
    here = "SELECT ssl, client_dn FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
    async with inside(address(base, port, authority)) as client:
        assert "[true,null]" in text_of(await client.call("query_rows", sql=here))
    async with refused(address(base, port, Authority(tmp_path, "stranger"))) as said:
        assert "certificate verify failed" in said
    async with refused(address(base, port, authority, host="127.0.0.1")) as said:
        assert "does not match host name" in said
    async with refused(address(base, port, authority, sslmode="disable")) as said:
        assert "no encryption" in said and "add `sslmode=require`" in said
    monitor = {"user": "monitor", "password": "monitor"}
    async with refused(address(base, port, authority, **monitor)) as said:
        assert "client certificate" in said and "`sslcert`" in said
    certificate, key = authority.issue("monitor")
    known = address(base, port, authority, **monitor, sslcert=str(certificate), sslkey=str(key))
    async with inside(known) as client:
        assert '[true,"/CN=monitor"]' in text_of(await client.call("query_rows", sql=here))
    certificate, key = authority.issue("another")
    async with refused(address(base, port, authority, **monitor, sslcert=str(certificate), sslkey=str(key))) as said:
        assert "can't be reached" in said


@dataclass
class Pooler:
    port: int
    process: subprocess.Popen[bytes]
    words: list[str]

    def restart(self) -> None:
        self.process.terminate()
        self.process.wait()
        self.process = subprocess.Popen(self.words)


@pytest.fixture
def pooler() -> Generator[Pooler]:
    """PgBouncer in transaction mode, with fewer connections than its clients have."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        port = free_port()
        users = Path(folder) / "users.txt"
        users.write_text("".join(f'"{name}" "{name}"\n' for name in ("owner", "reader", "monitor")), "utf-8")
        settings = Path(folder) / "pgbouncer.ini"
        settings.write_text(
            f"[databases]\n* = host=127.0.0.1 port={serving.cluster().wait_until_ready()}\n[pgbouncer]\nlisten_addr "
            "= 127.0.0.1\n"
            f"listen_port = {port}\nauth_type = plain\nauth_file = {users}\npool_mode = transaction\n"
            "default_pool_size = 2\nunix_socket_dir =\nlogfile = /dev/null\n",
            "utf-8",
        )
        words = ["pgbouncer", "-q", *(["-u", "nobody"] if os.geteuid() == 0 else []), str(settings)]
        made = Pooler(port, subprocess.Popen(words), words)
        yield made
        made.process.terminate()
        made.process.wait()


@pytest.mark.anyio
async def test_behind_a_pooler_in_transaction_mode(pooler: Pooler) -> None:
    base = make()
    async with served("--write", f"app={base.url('owner', port=pooler.port)}") as wire:
        with anyio.fail_after(30):
            while (await wire.call("query_rows", sql="SELECT 1")).get("isError"):
                await anyio.sleep(0.1)
        await wire.subscribe("postgres://app/public/t")
        async with anyio.create_task_group() as tasks:
            for number in range(40):
                tasks.start_soon(partial(wire.call, "query_rows", sql=f"SELECT {number}, pg_sleep(0.01)"))
        plan = await wire.call("explain_query", sql="SELECT * FROM t WHERE id = $1")
        assert "for any values" in text_of(plan)
        assert "committed" in text_of(await wire.call("write_rows", sql="UPDATE t SET name = 'x' WHERE id = 1"))
        await wire.notification("notifications/resources/updated")
        pooler.restart()
        with anyio.fail_after(30):
            while (result := await wire.call("query_rows", sql="SELECT name FROM t WHERE id = 1")).get("isError"):
                assert "can't be reached" in text_of(result) or "was lost" in text_of(result), text_of(result)
                await anyio.sleep(0.1)
        assert '["x"]' in text_of(result)
        assert base.rows("SELECT count(*) FROM pg_prepared_statements") == [(0,)]
