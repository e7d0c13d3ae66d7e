"""A migration in one piece: all or none, rehearsed with what it would do, and a way back that leads back."""

import re
from typing import Any

import anyio
import psycopg
import pytest
from mcp import Client, MCPError

from mcp_batteries.errors import Unavailable
from mcp_batteries.settings import load
from mcp_postgres.engine.change import effects, lagging_sequences
from mcp_postgres.engine.change.catalog_diff import read_traces
from mcp_postgres.engine.connection.session import Session
from mcp_postgres.server import build
from mcp_postgres.settings import Settings
from postgres.prove_changes import prove
from postgres.serving import Base, inside, make, text_of
from postgres.state import State
from thinning import few

pytestmark = pytest.mark.anyio

AUDIT = """
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN INSERT INTO u VALUES (NEW.id, NEW.name) ON CONFLICT (id) DO UPDATE SET note = NEW.name; RETURN NEW; END';
CREATE TRIGGER noted AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION note();
CREATE POLICY positive ON t USING (id > 0);
CREATE MATERIALIZED VIEW kept AS SELECT 1 AS a;
CREATE TABLE "Big one" ("Id" integer PRIMARY KEY, note text DEFAULT 'x' NOT NULL, made date);
INSERT INTO "Big one" SELECT g, 'n' FROM generate_series(1, 100) g;
CREATE INDEX "odd index" ON "Big one" (lower(note)) WHERE "Id" > 3;
"""
ALL = """-- what a model sends
BEGIN;
CREATE TABLE x (id serial PRIMARY KEY, t_id integer REFERENCES t, note text DEFAULT $$a;b$$); /* two; */
ALTER TABLE t ADD COLUMN extra integer NOT NULL DEFAULT 7;
ALTER TABLE u ALTER note TYPE varchar(50), ALTER id TYPE bigint;
UPDATE t SET name = name || '!' WHERE id < 3;
INSERT INTO x (t_id) SELECT id FROM t RETURNING id;
CREATE VIEW w AS SELECT id FROM x;
COMMENT ON TABLE x IS 'hi';
GRANT SELECT, UPDATE ON x TO reader;
ANALYZE t;
COMMIT;"""

NO_INVERSE = "There is no safe inverse: keep a copy of what it changes or drops, or a backup."


def names(base: Base) -> dict[str, str]:
    with base.connect("owner") as connection:
        return State.of(connection).objects


async def test_rows_of_a_table_written_anew_are_shown_before_and_after() -> None:
    base = make()
    base.run("CREATE TABLE price (id integer, cents text, gone integer)", "owner")
    base.run("INSERT INTO price VALUES (1, '7', 3), (2, '8', 4)", "owner")
    sql = (
        "ALTER TABLE price ALTER cents TYPE numeric USING cents::numeric / 100, DROP COLUMN gone;"
        "ALTER TABLE price RENAME TO cost"
    )
    async with inside("--ddl", f"app={base.url('owner')}") as wire:
        said = text_of(await wire.call("edit_schema", sql=sql, dry_run=True))
        assert (
            'public.cost: ["id","cents"]\nbefore: ["id","cents","gone"]\n- [1,"7",3]\n- [2,"8",4]\n+ [1,"0.07' in said
        )
        said = text_of(await wire.call("edit_schema", sql="ALTER TABLE price ADD note text DEFAULT 'x'", dry_run=True))
        assert "sample" not in said
    assert base.rows("SELECT * FROM price") == [(1, "7", 3), (2, "8", 4)]


async def test_a_dry_run_tells_whose_rows_are_lost_and_shows_no_others() -> None:
    base = make()
    base.run("CREATE TABLE whole (id integer); CREATE TABLE part () INHERITS (whole)", "owner")
    base.run("INSERT INTO whole VALUES (1); INSERT INTO part VALUES (2)", "owner")
    async with inside("--write", "--ddl", f"app={base.url('owner')}") as wire:

        async def tried(sql: str) -> str:
            return text_of(await wire.call("edit_schema", sql=sql, dry_run=True))

        said = await tried("DELETE FROM whole")
        assert re.search(r'public\.whole: \["id"\]\n- \[1\]\n(?!-)', said), said
        assert re.search(r'public\.part: \["id"\]\n- \[2\]\n(?!-)', said), said
        for sql in ("TRUNCATE whole", "WITH d AS (DELETE FROM whole RETURNING id) SELECT id FROM d"):
            assert NO_INVERSE in await tried(sql), sql
        said = await tried("CREATE TABLE copy AS SELECT * FROM whole; CREATE MATERIALIZED VIEW sight AS TABLE whole")
        assert "1. CREATE TABLE AS: 2 rows\n2. CREATE MATERIALIZED VIEW: 2 rows\n" in said, said
        assert NO_INVERSE not in said


async def test_a_dry_run_of_rows_tells_only_what_their_number_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    base = make()
    async with inside("--write", f"app={base.url('owner')}") as wire:

        async def tried() -> str:
            return text_of(await wire.call("write_rows", sql="UPDATE t SET name = 'x' WHERE id = 1", dry_run=True))

        said = await tried()
        assert "UPDATE: 1 row\nRows (- before" in said, said
        assert not re.search("Locks|by triggers|way back", said), said
        base.run("CREATE TABLE goods AS SELECT n AS id, n > 8 AS sold FROM generate_series(1, 40) n", "owner")
        some = text_of(await wire.call("write_rows", sql="UPDATE goods SET sold = id > 9", dry_run=True))
        assert some.rstrip().endswith('goods: ["id","sold"]\n- [9,true]\n+ [9,false]\nRead whole:\npublic.goods'), some
        base.run("CREATE VIEW shop AS SELECT * FROM goods", "owner")
        behind = text_of(await wire.call("write_rows", sql="DELETE FROM shop WHERE id = 1", dry_run=True))
        assert "by triggers and cascades too:\npublic.goods: 1 out" in behind, behind
        base.run(AUDIT, "owner")
        said = await tried()
        assert "by triggers and cascades too:\npublic.t: 1 changed\npublic.u: 1 " in said, said
        monkeypatch.setattr(effects, "_MIN_LOCK_SECONDS", 0)
        assert "public.t: RowExclusiveLock for " in await tried()


async def test_a_change_shows_the_plan_of_what_stands_behind_it_and_runs_none() -> None:
    base = make()
    base.run("CREATE TABLE goods AS SELECT n AS id, 'x' AS name FROM generate_series(1, 5000) n", "owner")
    base.run("CREATE FUNCTION bad_text() RETURNS void LANGUAGE plpgsql AS $$BEGIN EXECUTE 'SELEC 1'; END$$", "owner")
    async with inside("--write", "--ddl", f"app={base.url('owner')}") as wire:
        index = "CREATE INDEX goods_id ON goods (id)"
        changes: list[tuple[str, str, dict[str, Any]]] = [
            ("edit_schema", f"{index}; ANALYZE goods; EXPLAIN SELECT * FROM goods WHERE id = 7", {}),
            ("write_rows", "DELETE FROM u; EXPLAIN (COSTS OFF) /* a; b */ DELETE FROM goods WHERE id = 7", {}),
            ("write_rows", "EXPLAIN VERBOSE SELECT * FROM goods WHERE id = $1", {"parameters": [7]}),
            ("edit_schema", "ALTER TABLE goods ADD extra integer; EXPLAIN SELECT extra FROM goods", {"dry_run": True}),
        ]
        for tool, sql, arguments in changes:
            said = text_of(await wire.call(tool, sql=sql, **arguments))
            assert "EXPLAIN\n" in said and "Scan" in said, said
            assert NO_INVERSE not in said, said
            assert tool == "edit_schema" or "goods_id" in said, said
        for runs in ("EXPLAIN ANALYZE DELETE FROM goods", "EXPLAIN (COSTS OFF, ANALYSE) DELETE FROM goods"):
            said = text_of(await wire.call("write_rows", sql=runs))
            assert "EXPLAIN ANALYZE runs what it explains, which would change something. Leave out ANALYZE." in said
        for hidden in ("EXPLAIN VERBOSE ANALYZE", "EXPLAIN (COSTS) ANALYZE", "EXPLAIN EXPLAIN", "EXPLAIN (COSTS)"):
            said = text_of(await wire.call("write_rows", sql=f"{hidden} CREATE TABLE made (a integer)"))
            assert "runs what it explains" in said or "syntax error" in said, said
        added = "ALTER TABLE goods ADD more integer; UPDATE goods SET more = id; "
        for query in ("SELECT count(more) FROM goods", "WITH x AS (SELECT more FROM goods) SELECT * FROM x"):
            sql = f"{added}EXPLAIN (ANALYZE, COSTS OFF) {query}; SELECT count(more) > 0 AS is_kept FROM goods"
            said = text_of(await wire.call("edit_schema", sql=sql, dry_run=True))
            assert "actual" in said and '["is_kept"]\n[true]' in said, said
        for changing in (
            "WITH x AS (DELETE FROM goods RETURNING *) SELECT * FROM x", "SELECT nextval('s')", "SELECT writer()",
            "SELECT * FROM goods FOR UPDATE", "SELECT 1 AS a INTO made", "(SELECT 1 AS a) INTO made",
        ):  # fmt: skip
            result = await wire.call("edit_schema", sql=f"EXPLAIN ANALYZE {changing}")
            assert result["isError"], text_of(result)
        for failing, why in (
            ("SELECT count(*) FROM goods a FULL JOIN goods b ON a.id < b.id", "FULL JOIN is only supported"),
            ("SELECT bad_text()", 'syntax error at or near "SELEC"'),
        ):
            said = text_of(await wire.call("edit_schema", sql=f"EXPLAIN ANALYZE {failing}"))
            assert why in said and "would change something" not in said, said
        assert base.rows("SELECT to_regclass('made'), count(*) > 0, max(id) > 0 FROM t") == [(None, True, True)]
        plan = "EXPLAIN (FORMAT 'json', VERBOSE) SELECT * FROM goods a JOIN goods b USING (id) JOIN goods c USING (id)"
        said = text_of(await wire.call("write_rows", sql=plan))
        assert "cut" not in said and "Plan Width" in said, said
        for beside in ("SELECT count(*) FROM u", "INSERT INTO u VALUES (2, 'x')"):
            said = text_of(await wire.call("write_rows", sql=f"TRUNCATE u; {beside}"))
            assert "Send TRUNCATE by a call of its own" in said, said
    async with inside("--ddl", f"app={base.url('owner')}") as wire:
        said = text_of(await wire.call("edit_schema", sql="EXPLAIN SELECT 1"))
        assert "`EXPLAIN` may change rows, which this server was not opened for. To only look use `query_rows`." in said
    assert base.rows("SELECT count(*) FROM goods") == [(5000,)]
    assert base.rows("SELECT to_regclass('made')") == [(None,)]


async def test_a_dry_run_of_one_row_shows_its_key() -> None:
    base = make()
    base.run("CREATE TABLE wide (tenant text, a int, b int, c int, d int, e int, f int, id int PRIMARY KEY, z int)")
    base.run("INSERT INTO wide VALUES ('acme', 1, 2, 3, 4, 5, 6, 4711, 0); GRANT ALL ON wide TO owner")
    async with inside("--write", f"app={base.url('owner')}") as wire:
        said = text_of(await wire.call("write_rows", sql="UPDATE wide SET z = 1", dry_run=True))
        assert 'wide: ["id","z"]\n7 other columns as before\n- [4711,0]\n+ [4711,1]' in said, said


async def test_rows_that_postgresql_does_not_count_are_told_as_lost_too() -> None:
    base = make()
    base.run(f"ALTER DATABASE {base.name} SET track_counts = off", "postgres")
    async with inside("--write", "--ddl", f"app={base.url('owner')}") as wire:
        said = text_of(await wire.call("edit_schema", sql="UPDATE t SET name = 'x'", dry_run=True))
    assert NO_INVERSE in said, said


async def test_a_rehearsal_tells_all_and_leaves_nothing() -> None:
    base = make()
    base.run(AUDIT, "owner")
    before = names(base)
    async with inside("--write", "--ddl", f"app={base.url('owner')}") as wire:
        said = text_of(await wire.call("edit_schema", sql=ALL, dry_run=True))
        for words in (
            "Dry run", "1. CREATE TABLE\n", "4. UPDATE: 2 rows", "5. INSERT: 3 rows\n[\"", "9. ANALYZE, table",
            "+ column public.t.extra", "~ column public.u.note", "+ grant of select, update on public.x to reader",
            "+ comment on table public.x", '- [1,"a"]\n', '+ [1,"a!",7]', '+ [1,"a!"]',
            "table public.t: AccessExclusiveLock for ", "stops every read and write",
            "Written anew, whole:\ntable public.u,", "public.t: 2 changed", "public.u: 1 in, 1 changed",
            NO_INVERSE,
        ):  # fmt: skip
            assert words in said, f"{words}:\n{said}"
        assert '- [3,"c"]' not in said  # it was locked only
        assert names(base) == before and base.rows("SELECT name FROM t WHERE id = 1") == [("a",)]
        said = text_of(await wire.call("edit_schema", sql=ALL))
        assert said.startswith("Done and committed.") and "+ table public.x" in said
        assert base.rows("SELECT name, extra FROM t WHERE id = 1") == [("a!", 7)]
        # One that fails takes all with it.
        result = await wire.call("edit_schema", sql="CREATE TABLE y (); DROP TABLE x; INSERT INTO t VALUES (1)")
        assert result["isError"] and "Statement 2 of 3 failed, and nothing was changed" in text_of(result)
        assert base.rows("SELECT to_regclass('y')") == [(None,)]


async def test_locks_of_many_partitions_are_one_line() -> None:
    base = make()
    parts = "".join(f"CREATE TABLE p{n} PARTITION OF p FOR VALUES IN ({n});" for n in range(20))
    base.run(f"CREATE TABLE p (n int) PARTITION BY LIST (n);{parts}", "owner")
    async with inside("--ddl", f"app={base.url('owner')}") as wire:
        said = text_of(await wire.call("edit_schema", sql="ALTER TABLE p ADD COLUMN m int", dry_run=True))
    assert said.count("AccessExclusiveLock for ") == 1, said
    locked = next(line for line in said.splitlines() if "AccessExclusiveLock" in line)
    assert "partitioned table public.p" in locked and all(f"public.p{n}" in locked for n in range(20)), said


async def test_a_new_table_is_one_line_with_all_its_parts() -> None:
    base = make()
    sql = """
    CREATE TABLE orders (id serial PRIMARY KEY, customer integer REFERENCES t, CONSTRAINT positive CHECK (id > 0));
    CREATE TABLE lines (LIKE t INCLUDING ALL); CREATE TYPE hue AS ENUM ('red', 'dark blue');
    CREATE TABLE ev (a integer) PARTITION BY LIST (a); CREATE TABLE ev1 PARTITION OF ev FOR VALUES IN (1);
    ALTER TABLE t ADD extra integer; ALTER TABLE u RENAME TO w; CREATE INDEX positive ON t (id)
    """
    async with inside("--write", "--ddl", f"app={base.url('owner')}") as wire:
        said = text_of(await wire.call("edit_schema", sql=sql, dry_run=True))
        assert re.findall("^[+~-] .*", said.partition("Schema:\n")[2], re.MULTILINE) == [
            "+ 3 columns: public.t.extra, public.w.id, public.w.note",
            "+ 4 indexes: public.lines_name_idx, public.lines_pkey, public.orders_pkey, public.positive",
            "- column public.u.id", "- column public.u.note", "+ comment on column public.lines.name",
            "- constraint u_id_fkey on public.u", "+ constraint u_id_fkey on public.w",
            "- constraint u_pkey on public.u", "+ constraint u_pkey on public.w",
            "- grant of select on public.u to reader", "+ grant of select on public.w to reader",
            "+ grant of usage on type public.hue to public", "+ partitioned table public.ev, with column a",
            "+ sequence public.orders_id_seq", "+ table public.ev1, with 1 inherited column",
            "+ table public.lines, with columns id, name; constraint lines_pkey",
            "+ table public.orders, with columns customer, id; constraints orders_customer_fkey, orders_pkey, positive",
            "- table public.u", "+ table public.w", "+ type public.hue, with labels 'dark blue', 'red'",
        ], said  # fmt: skip
        body = "CREATE FUNCTION add() RETURNS event_trigger LANGUAGE plpgsql AS $$BEGIN {} END$$"
        base.run(body.format("ALTER TABLE IF EXISTS orders ADD customer integer;"), "postgres")
        base.run("CREATE EVENT TRIGGER more ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION add()")
        sql = "CREATE TABLE orders (id integer /* customer */)"
        said = text_of(await wire.call("edit_schema", sql=sql, dry_run=True))
        assert "+ table public.orders, with columns customer, id\n" in said, said


async def test_a_part_of_a_new_table_is_named_although_a_statement_has_its_name() -> None:
    base = make()
    body = "CREATE FUNCTION add_part() RETURNS void LANGUAGE plpgsql AS $$BEGIN {} END$$"
    base.run(body.format("ALTER TABLE fresh ADD note text; CREATE INDEX u_check ON t (id);"), "owner")
    sql = (
        "CREATE TABLE fresh (id integer) -- no note\n; COMMENT ON TABLE fresh IS 'note'; "
        "CREATE TABLE other (id integer CONSTRAINT u_check CHECK (id > 0)); DO 'BEGIN PERFORM add_part(); END'"
    )
    async with inside("--write", "--ddl", "--admin", f"app={base.url('owner')}") as wire:
        said = text_of(await wire.call("edit_schema", sql=sql, dry_run=True))
        assert "+ index public.u_check\n" in said and "+ table public.fresh, with columns id, note\n" in said, said


async def test_many_objects_alike_are_one_line() -> None:
    base = make()
    tables = "".join(f"CREATE TABLE more{number} ();" for number in range(20))
    policies = "".join(f"CREATE POLICY own{number} ON t;" for number in range(3))
    indexes = "CREATE INDEX one ON t (id); CREATE INDEX two ON t (id); CREATE INDEX ON t (id, name);"
    base.run(f"{tables} CREATE POLICY own2 ON u", "owner")
    sql = f"{policies}{indexes}GRANT INSERT, UPDATE ON ALL TABLES IN SCHEMA public TO reader"
    async with inside("--write", "--ddl", "--admin", f"app={base.url('owner')}") as wire:
        said = text_of(await wire.call("edit_schema", sql=sql, dry_run=True))
        schema = said.partition("Schema:\n")[2].partition("\nLocks")[0].split("\n")
        assert schema[:2] == [
            "+ 3 indexes: public.one, public.t_id_name_idx, public.two",
            "+ 3 policies: own0 on public.t, own1 on public.t, own2 on public.t",
        ], said
        assert schema[2].startswith('+ grant of insert, update on 24 objects to reader: public."Odd name", '), said
        assert schema[2].count("public.more") == 20 and len(schema) == 3, said
        sql = "GRANT SELECT, UPDATE ON t TO reader WITH GRANT OPTION; GRANT DELETE ON t TO reader"
        said = text_of(await wire.call("edit_schema", sql=sql, dry_run=True))
        grants = re.findall("^[+~] grant .*", said, re.MULTILINE)
        assert grants == [
            "+ grant of delete on public.t to reader",
            "~ grant of select on public.t to reader with grant option",
            "+ grant of update on public.t to reader with grant option",
        ], said
        # As many policies, and all of their names, as CREATE POLICY has; one is on another table.
        moved = "DO $$BEGIN EXECUTE 'DROP POLICY own2 ON t'; EXECUTE 'CREATE POLICY own2 ON more1'; END$$"
        said = text_of(await wire.call("edit_schema", sql=f"{policies}{moved}", dry_run=True))
        assert "+ 3 policies: own0 on public.t, own1 on public.t, own2 on public.more1\n" in said, said


UNDO_SCENE = """
CREATE TABLE base (id integer PRIMARY KEY, x text); CREATE TABLE other (id integer, note text);
CREATE TABLE parent (id integer); CREATE TABLE child (more integer) INHERITS (parent);
CREATE TABLE ev (a integer, b integer) PARTITION BY LIST (a); CREATE TABLE ev1 PARTITION OF ev FOR VALUES IN (1);
CREATE INDEX mine ON ev1 (b); CREATE UNIQUE INDEX other_id ON other (id);
CREATE INDEX other_lower ON other (lower(note));
CREATE VIEW seen AS SELECT id, x FROM base; CREATE TYPE hue AS ENUM ('red'); CREATE TYPE spot AS (a integer);
CREATE FUNCTION f(n integer) RETURNS integer LANGUAGE sql AS 'SELECT 1'; CREATE SEQUENCE counting;
CREATE FUNCTION f(n text) RETURNS integer LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE AGGREGATE total (integer) (SFUNC = int4pl, STYPE = integer); CREATE DOMAIN years AS integer;
CREATE MATERIALIZED VIEW kept AS SELECT 1 AS a; CREATE SCHEMA extra; CREATE TABLE extra.part (id integer);
CREATE TABLE "q.""; CREATE TABLE evil (); --" ("c
;CREATE TABLE evil ();--" integer);
GRANT SELECT ON other TO reader; GRANT UPDATE (x) ON base TO reader; INSERT INTO base VALUES (1, 'a');
"""
# What a change is, and the way back.
CERTAIN = [
    ("CREATE TABLE a (id serial PRIMARY KEY, b hue UNIQUE); CREATE INDEX ON a (b, id)", "DROP TABLE public.a;"),
    ("CREATE TABLE a (id integer REFERENCES base); INSERT INTO a SELECT id FROM base", "DROP TABLE public.a;"),
    (
        "CREATE TABLE a (id integer PRIMARY KEY); CREATE TABLE b (id integer REFERENCES a); CREATE VIEW c AS TABLE b",
        "DROP VIEW public.c;\nDROP TABLE public.b;\nDROP TABLE public.a;",
    ),
    ("ALTER TABLE base ADD k hue DEFAULT 'red', ADD n serial; CREATE INDEX ON base (x)", None),
    (
        "CREATE TYPE k AS ENUM ('a'); ALTER TABLE base ADD k k; CREATE INDEX i ON base (k, x); CREATE VIEW v AS"
        " SELECT k FROM base",
        "DROP VIEW public.v;\nALTER TABLE public.base DROP COLUMN k;\nDROP TYPE public.k;",
    ),
    ("ALTER TABLE parent ADD more_of text; CREATE VIEW v AS SELECT more_of FROM child", None),
    ("CREATE SCHEMA s2; CREATE TABLE s2.t (id integer); CREATE FUNCTION s2.f() RETURNS integer RETURN 1", None),
    ("CREATE TRIGGER g BEFORE UPDATE ON ev FOR EACH ROW EXECUTE FUNCTION note()", "DROP TRIGGER g ON public.ev;"),
    ("CREATE POLICY p ON base USING (true); CREATE RULE r AS ON DELETE TO other DO INSTEAD NOTHING", None),
    ("ALTER TABLE other ADD CHECK (id > 0), ADD FOREIGN KEY (id) REFERENCES base; CREATE STATISTICS st ON id, note"
     " FROM other", None),
    ("CREATE INDEX ON ev (a)", "DROP INDEX public.ev_a_idx;"),
    ("ALTER TABLE base RENAME TO \"A b\"", 'ALTER TABLE public."A b" RENAME TO base;'),
    ("ALTER TABLE base RENAME x TO y; ALTER TABLE base RENAME id TO x; ALTER TABLE base RENAME y TO id", None),
    ("ALTER TABLE base RENAME TO aside; ALTER TABLE other RENAME TO base; ALTER TABLE aside RENAME TO other", None),
    ("ALTER TABLE base RENAME TO aside; CREATE TABLE base (LIKE aside)",
     "DROP TABLE public.base;\nALTER TABLE public.aside RENAME TO base;"),
    ("ALTER TABLE other RENAME TO aside; ALTER TABLE base RENAME TO other", None),
    ("ALTER TABLE base RENAME CONSTRAINT base_pkey TO k; ALTER VIEW seen RENAME x TO y; ALTER TABLE parent RENAME id"
     " TO key; ALTER SEQUENCE counting RENAME TO c2; ALTER MATERIALIZED VIEW kept RENAME TO k2", None),
    ("ALTER TYPE hue RENAME VALUE 'red' TO E'r''\n;CREATE TABLE evil ();--'; ALTER TYPE hue RENAME TO h2", None),
    ("ALTER FUNCTION f(integer) RENAME TO g; ALTER FUNCTION f(text) RENAME TO h; ALTER DOMAIN years RENAME TO y", None),
    ("ALTER SCHEMA extra RENAME TO more; ALTER TABLE more.part RENAME TO p2; ALTER TABLE more.p2 RENAME id TO n", None),
    ('ALTER TABLE "q.""; CREATE TABLE evil (); --" RENAME TO more', None),
    ("GRANT INSERT, DELETE ON base TO reader; REVOKE SELECT ON other FROM reader; GRANT UPDATE ON base TO reader",
     "REVOKE delete, insert, update ON public.base FROM reader;\nGRANT select ON public.other TO reader;\n"
     "GRANT update (x) ON public.base TO reader;"),
    ("GRANT SELECT ON base TO reader; ALTER TABLE base RENAME TO b2; REVOKE UPDATE (x) ON b2 FROM reader", None),
    ("ALTER DEFAULT PRIVILEGES IN SCHEMA extra GRANT SELECT ON TABLES TO reader; GRANT USAGE ON SCHEMA extra TO reader;"
     "REVOKE EXECUTE ON FUNCTION f(integer) FROM PUBLIC", None),
    ("CREATE TABLE a (); COMMENT ON TABLE a IS 'hi'; DROP TABLE IF EXISTS nothing; ANALYZE base",
     "DROP TABLE public.a;"),
]  # fmt: skip
UNCERTAIN = [
    "DROP VIEW seen", "DROP TABLE other", "DROP TABLE base CASCADE", "DROP VIEW seen; CREATE VIEW seen AS SELECT 1",
    "ALTER TABLE other DROP note", "ALTER TABLE other ALTER note TYPE varchar(9)",
    "ALTER TABLE base ALTER x SET DEFAULT 'a'",
    "ALTER TABLE base ALTER x SET NOT NULL", "ALTER TABLE other ADD PRIMARY KEY (id)", "COMMENT ON TABLE base IS 'a'",
    "ALTER TABLE other SET SCHEMA extra", "ALTER TYPE hue ADD VALUE 'b'", "ALTER TYPE spot ADD ATTRIBUTE b integer",
    "ALTER TABLE base ENABLE ROW LEVEL SECURITY", "ALTER TABLE base SET (fillfactor = 50)",
    "CREATE OR REPLACE VIEW seen AS SELECT id, x, 1 AS one FROM base",
    "CREATE OR REPLACE FUNCTION f(n integer) RETURNS integer LANGUAGE sql AS 'SELECT 2'",
    "CREATE OR REPLACE AGGREGATE total (integer) (SFUNC = int4mi, STYPE = integer); CREATE TABLE a ()",
    "GRANT SELECT ON other TO reader WITH GRANT OPTION", "REFRESH MATERIALIZED VIEW kept; CREATE TABLE a ()",
    # What is new would take along what was there.
    "CREATE INDEX ON ev (b)", "ALTER TABLE other ADD CONSTRAINT other_id UNIQUE USING INDEX other_id",
    "ALTER TABLE base ADD n integer; ALTER SEQUENCE counting OWNED BY base.n",
    "ALTER TABLE child ADD own text; ALTER TABLE parent ADD own text",
    "CREATE TABLE a (id integer PRIMARY KEY); CREATE TABLE b (id integer PRIMARY KEY REFERENCES a);"
    "ALTER TABLE a ADD FOREIGN KEY (id) REFERENCES b",
    # What the catalog doesn't show.
    "ALTER SEQUENCE counting RESTART 50; CREATE TABLE a ()", "UPDATE base SET x = 'b'; CREATE TABLE a ()",
    "CREATE TABLE a (); TRUNCATE other", "CREATE TABLE a (); ALTER INDEX other_lower ALTER 1 SET STATISTICS 5",
]  # fmt: skip


async def test_a_way_back_that_is_told_leads_back() -> None:
    base = make()
    base.run("DROP TABLE IF EXISTS u, t CASCADE", "postgres")
    base.run(UNDO_SCENE, "owner")
    with base.connect("owner") as connection:
        connection.autocommit = False
        before = State.of(connection)
        async with inside("--write", "--ddl", f"app={base.url('owner')}") as wire:
            for sql, expected in CERTAIN:
                connection.rollback()
                said = text_of(await wire.call("edit_schema", sql=sql, dry_run=True))
                assert NO_INVERSE not in said, said
                back = said.partition("The way back:\n")[2].rstrip("\n")
                assert back == expected or (back and expected is None), said
                connection.execute(sql.encode())
                connection.execute(back.encode())
                left = State.of(connection).differs(before)
                assert left == [], f"{sql}: {back}: {left}"


@pytest.mark.slow
async def test_where_no_way_back_is_certain_none_is_told() -> None:
    base = make()
    base.run("DROP TABLE IF EXISTS u, t CASCADE", "postgres")
    base.run(UNDO_SCENE, "owner")
    async with inside("--write", "--ddl", f"app={base.url('owner')}") as wire:
        for sql in UNCERTAIN:
            said = text_of(await wire.call("edit_schema", sql=sql, dry_run=True))
            assert said.rstrip().endswith(NO_INVERSE) and "The way back" not in said, f"{sql}: {said}"
        said = text_of(await wire.call("edit_schema", sql="DROP TABLE IF EXISTS nothing; ANALYZE base", dry_run=True))
        assert NO_INVERSE not in said and "way back" not in said, said


@pytest.mark.parametrize("step", ["start_tracing", "read_traces", "read_changed_objects", "read_dependencies"])
@pytest.mark.parametrize("how", ["SELECT 1/0", ""])
async def test_a_failed_look_stops_no_change(step: str, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(session: Session, *_: object, **_also: object) -> None:
        if how:
            await session.fetch_value(how)
        raise KeyError("c1")

    monkeypatch.setattr(effects, step, fails)
    base = make()
    why = "division by zero" if how else "the server failed at it (KeyError)"
    async with inside("--ddl", f"app={base.url('owner')}") as wire:
        said = text_of(await wire.call("edit_schema", sql="CREATE TABLE fresh ()", dry_run=True))
        assert NO_INVERSE in said
        assert (f"? objects that could not be compared: {why}" in said) == (step != "read_dependencies"), said
        assert "Done" in text_of(await wire.call("edit_schema", sql="CREATE TABLE fresh ()"))
    assert base.rows("SELECT to_regclass('fresh')::text") == [("fresh",)]


async def test_what_others_commit_meanwhile_is_no_part_of_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    base = make()
    base.run("CREATE SCHEMA gone; CREATE OPERATOR === (LEFTARG = integer, RIGHTARG = integer, FUNCTION = int4eq)")
    with base.connect() as other:
        other.autocommit = False

        async def meanwhile(session: Session) -> Any:
            base.run("CREATE TABLE theirs (); DROP TABLE u; CREATE SCHEMA theirs; DROP SCHEMA gone")
            other.execute("DROP OPERATOR === (integer, integer); CREATE SCHEMA later; DROP VIEW v")
            found = await read_traces(session)
            other.commit()
            return found

        monkeypatch.setattr(effects, "read_traces", meanwhile)
        async with inside("--ddl", f"app={base.url('owner')}") as wire:
            said = text_of(await wire.call("edit_schema", sql="CREATE TABLE ours ()", dry_run=True))
    said = said.partition("Schema:\n")[2].rstrip()
    assert said == "+ table public.ours\nThe way back:\nDROP TABLE public.ours;", said


@pytest.mark.parametrize("cases", few([2, 10], 2))
async def test_a_sample_of_changes_is_what_postgresql_makes_of_them(cases: int) -> None:
    tally = await prove(cases, 4)
    assert tally.wrong == [] and tally.counts["changes"] == cases


async def test_only_what_is_opened() -> None:
    base = make()
    async with inside("--ddl", f"app={base.url('owner')}") as wire:
        for sql in ("CREATE TABLE t ()", "CREATE TABEL other ()"):
            assert "--ddl" not in text_of(await wire.call("edit_schema", sql=sql))
        for sql, why in (
            ("CREATE TABLE a (); UPDATE t SET name = 'x'", "The operator can start it with `--write` too"),
            ("CREATE TABLE a (); CREATE ROLE b", "start the server with `--admin`"), ("DO $$BEGIN END$$", "`--admin`"),
            ("CREATE TABLE a (); COMMIT; DROP TABLE t", "`COMMIT` defines nothing"), ("-- only", "no statement"),
            ("CREATE TABLE a (); VACUUM t", "VACUUM can't be part of a transaction"),
            ("CREATE TABLE a (); CREATE INDEX CONCURRENTLY ON t (id)", "can't be part of a transaction"),
            ("SET ROLE postgres", "may only be tried"), ("CREATE EXTENSION plpgsql", "beyond the database's schema"),
        ):  # fmt: skip
            result = await wire.call("edit_schema", sql=sql)
            assert result["isError"] and why in text_of(result), f"{sql}: {text_of(result)}"
            assert base.rows("SELECT to_regclass('a')") == [(None,)]
    async with inside("--write", f"app={base.url('owner')}") as wire:
        result = await wire.call("write_rows", sql="UPDATE t SET name = 'x'; DROP TABLE u")
        assert result["isError"] and base.rows("SELECT count(*) FROM t WHERE name = 'x'") == [(0,)]


async def test_an_administrator_makes_roles_and_runs_code_whoever_connects() -> None:
    base = make()
    async with inside("--ddl", f"app={base.url('postgres')}", f"also={base.url('owner')}") as wire:
        said = text_of(await wire.call("edit_schema", sql="CREATE TABLE a ()", database="app"))
        assert "start it with `--admin`" in said
    async with inside("--admin", f"app={base.url('postgres')}") as wire:

        async def edit(sql: str, **more: Any) -> str:
            return text_of(await wire.call("edit_schema", sql=sql, **more))

        said = await edit("CREATE ROLE clerk; GRANT clerk TO reader; GRANT SELECT ON t TO clerk", dry_run=True)
        assert "+ role clerk" in said and "+ membership of reader in clerk" in said and NO_INVERSE in said, said
        assert "DROP ROLE clerk" in await edit("CREATE ROLE clerk; GRANT SELECT ON t TO clerk", dry_run=True)
        assert base.rows("SELECT count(*) FROM pg_roles WHERE rolname = 'clerk'") == [(0,)]
        try:
            assert "+ role clerk" in await edit("CREATE ROLE clerk")
            assert "~ role clerk" in await edit("ALTER ROLE clerk CREATEDB")
        finally:
            base.run("DROP ROLE IF EXISTS clerk")
        assert "- extension plpgsql" in await edit("DROP EXTENSION plpgsql CASCADE", dry_run=True)
        assert "+ table public.done" in await edit("DO $$BEGIN CREATE TABLE done (); END$$")
        assert "CALL" in await edit("CREATE PROCEDURE p2() LANGUAGE sql AS 'INSERT INTO t VALUES (77)'; CALL p2()")
        assert base.rows("SELECT id FROM t WHERE id = 77") == [(77,)]
        for sql in ("ALTER SYSTEM SET work_mem = '1MB'", "CREATE DATABASE x", "CALL proc()"):
            assert (await wire.call("edit_schema", sql=sql))["isError"], sql


async def test_a_change_is_tried_as_another_role() -> None:
    base = make()
    base.run(
        "DO $$BEGIN IF to_regrole('tenant') IS NULL THEN CREATE ROLE tenant; END IF; END$$; GRANT tenant TO owner;"
        "ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY mine ON t TO tenant USING (id = 2);"
        "GRANT SELECT, UPDATE ON t TO tenant"
    )
    for role in ("owner", "postgres"):
        async with inside("--write", f"app={base.url(role)}") as wire:

            async def tried(sql: str) -> str:
                return text_of(await wire.call("write_rows", sql=sql, as_role="tenant"))

            said = await tried("UPDATE t SET name = 'x' RETURNING id; SELECT current_user")
            assert said.startswith("Dry run") and "1. UPDATE: 1 row" in said and '["tenant"]' in said, said
            assert "policy of the table forbids" in await tried("UPDATE t SET id = 9 WHERE id = 2")
            assert "permission denied" in await tried("DELETE FROM t")
            assert "nobody" in text_of(await wire.call("write_rows", sql="SELECT 1", as_role="nobody"))
            said = text_of(await wire.call("write_rows", sql="SELECT current_user"))
            assert f'["{role}"]' in said
    assert base.rows("SELECT count(*) FROM t WHERE name = 'x'") == [(0,)]


async def test_returned_rows_beyond_a_page_have_a_cursor_and_are_kept_as_they_were() -> None:
    base = make()
    async with inside("--write", f"app={base.url('owner')}") as wire:
        said = text_of(
            await wire.call("write_rows", sql="INSERT INTO t SELECT g FROM generate_series(10, 300) g RETURNING id")
        )
        seen = re.findall(r"^\[(\d+)\]$", said, re.M)
        while cursor := re.search(r"cursor=([\w-]+)", said):
            said = text_of(await wire.call("query_rows", cursor=cursor[1]))
            seen += re.findall(r"^\[(\d+)\]$", said, re.M)
        assert [int(number) for number in seen] == list(range(10, 301))
        assert base.rows("SELECT count(*) FROM t") == [(294,)]
        assert "TRUNCATE TABLE" in text_of(await wire.call("write_rows", sql="TRUNCATE u", dry_run=True))
        assert base.rows("SELECT count(*) FROM u") == [(1,)]
        assert "Done" in text_of(await wire.call("write_rows", sql="-- away\nTRUNCATE u"))
        assert base.rows("SELECT count(*) FROM u") == [(0,)]
        result = await wire.call("write_rows", sql="TRUNCATE t")
        assert result["isError"] and "referenced in a foreign key" in text_of(result)


@pytest.mark.parametrize("error", [Unavailable("There is no connection."), psycopg.OperationalError("gone")])
async def test_a_row_that_is_there_is_told_though_nothing_more_can_be_found(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(lagging_sequences, "find_lagging_sequences", fail)
    async with inside("--write", f"app={make().url('owner')}") as wire:
        said = text_of(await wire.call("write_rows", sql="INSERT INTO t VALUES (1, 'again')"))
        assert "duplicate key" in said and "Such a row is there" in said, said


async def test_rows_that_policies_hide_are_told_of_the_tables_that_are_emptied() -> None:
    base = make(
        """CREATE TABLE beside (id int); CREATE TABLE policed (id int); CREATE POLICY none ON policed USING (false);
        ALTER TABLE policed ENABLE ROW LEVEL SECURITY; ALTER TABLE policed FORCE ROW LEVEL SECURITY;"""
    )
    hidden = (
        "TRUNCATE TABLE, with the rows that policies hide from the role, of which no sample shows any: public.policed"
    )
    async with inside("--write", "--ddl", f"app={base.url('owner')}") as wire:
        said = text_of(await wire.call("write_rows", sql="TRUNCATE policed; TRUNCATE beside", dry_run=True))
        assert f"1. {hidden}\n2. TRUNCATE TABLE\n" in said, said
        change = "ALTER TABLE policed ADD n int; TRUNCATE beside; TRUNCATE policed"
        said = text_of(await wire.call("edit_schema", sql=change, dry_run=True))
        assert f"1. ALTER TABLE\n2. TRUNCATE TABLE\n3. {hidden}\n" in said, said


async def test_a_tool_that_would_refuse_every_call_is_not_offered(caplog: pytest.LogCaptureFixture) -> None:
    base = make()

    async def offered(*arguments: str) -> bool:
        async with Client(build(load(Settings, [*arguments]))) as client:
            found = True
            with anyio.move_on_after(20 if "--admin" not in arguments and len(arguments) == 2 else 0.5):
                while found:
                    found = "edit_schema" in {tool.name for tool in (await client.list_tools()).tools}
                    await anyio.sleep(0.02)
            if not found:
                # A model may have read the list before.
                with pytest.raises(MCPError, match=r"it is turned off. .* superuser.* start it with `--admin`"):
                    await client.call_tool("edit_schema", {"sql": "CREATE TABLE more (id int)"})
            return found

    app, also = f"app={base.url('postgres')}", f"also={base.url('owner')}"
    assert not await offered("--ddl", app)
    assert "`edit_schema` is not offered without `--admin`: the role of `app` is a superuser" in caplog.text
    assert await offered("--ddl", app, also)
    assert await offered("--admin", app)


async def test_options_that_postgresql_keeps_for_itself_are_no_change() -> None:
    base = make("CREATE TABLE wide (a integer, b text, c text, d text)")
    base.run(
        "CREATE FUNCTION public.mark() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN"
        " UPDATE pg_catalog.pg_attribute SET attoptions ="
        " array_append(array_remove(attoptions, 'pg_attver=1'), 'pg_attver=' || attnum)"
        " WHERE attrelid = 'public.wide'::pg_catalog.regclass AND attnum > 0; END $$;"
        "CREATE EVENT TRIGGER marks ON ddl_command_end WHEN TAG IN ('ALTER TABLE') EXECUTE FUNCTION public.mark()"
    )
    async with inside("--ddl", f"app={base.url('owner')}") as client:
        for sql in ("ALTER TABLE wide ALTER a TYPE bigint", "ALTER TABLE wide ADD e integer"):
            said = text_of(await client.call("edit_schema", sql=sql, dry_run=True))
            assert "attver" not in said, said
            assert not any(f"column public.wide.{name}\n" in said for name in "bcd"), said
        sql = "ALTER TABLE wide ALTER b SET (n_distinct = 5)"
        said = text_of(await client.call("edit_schema", sql=sql, dry_run=True))
        assert "~ column public.wide.b\n" in said, said
        sql = "ALTER TABLE wide ALTER b SET (n_distinct = 5); COMMENT ON TABLE wide IS '(pg_attver=1)'"
        said = text_of(await client.call("edit_schema", sql=sql, dry_run=True))
        assert "~ column public.wide.c\n" in said, "an option that a statement names is shown"


_FAMILY = """
CREATE TABLE parent (id integer PRIMARY KEY, name text); INSERT INTO parent VALUES (1, 'a'), (2, 'b');
CREATE TABLE child (id integer PRIMARY KEY, parent_id integer REFERENCES parent ON DELETE CASCADE);
INSERT INTO child VALUES (1, 1), (2, 1), (3, 2);
CREATE TABLE audit (id serial, word text);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN INSERT INTO public.audit (word) VALUES (TG_OP); RETURN NULL; END';
CREATE TRIGGER note AFTER UPDATE ON parent FOR EACH ROW EXECUTE FUNCTION note();
"""


async def test_what_cascades_and_triggers_did_is_told_of_what_is_kept_too() -> None:
    base = make()
    base.run(_FAMILY, "owner")
    async with inside("--write", f"app={base.url('owner')}") as wire:

        async def write(sql: str) -> str:
            return text_of(await wire.call("write_rows", sql=sql)).rstrip()

        said = await write("DELETE FROM parent WHERE id = 1")
        assert said.startswith("Done and committed.\nDELETE: 1 row\nRows, by triggers and cascades too:\n"), said
        assert {"public.parent: 1 out", "public.child: 2 out"} == {*said.splitlines()[3:]}, said
        # Counts of the connection go on from call to call; each tells of its own.
        said = await write("UPDATE parent SET name = 'c'")
        assert {"public.parent: 1 changed", "public.audit: 1 in"} == {*said.splitlines()[3:]}, said
        assert await write("DELETE FROM audit") == "Done and committed.\nDELETE: 1 row"
        said = await write("TRUNCATE parent CASCADE")
        assert said == "Done and committed.\nTRUNCATE TABLE\nEmptied:\npublic.parent\npublic.child", said
        # A letter of another word is no name of a table.
        base.run("CREATE TABLE a (id integer); CREATE VIEW things AS SELECT id FROM a", "owner")
        said = await write("INSERT INTO things VALUES (1)")
        assert said.endswith("INSERT: 1 row\nRows, by triggers and cascades too:\npublic.a: 1 in"), said


async def test_a_table_of_the_same_name_in_another_schema_is_told() -> None:
    base = make()
    base.run(
        """
        CREATE SCHEMA shop; CREATE VIEW shop.t AS SELECT * FROM public.t;
        CREATE TABLE parts (id integer PRIMARY KEY); CREATE TABLE shop.parts (id integer REFERENCES public.parts);
        INSERT INTO parts VALUES (1); INSERT INTO shop.parts VALUES (1);
        """,
        "postgres",
    )
    async with inside("--write", "--trust-database", f"app={base.url('postgres')}") as wire:
        said = text_of(await wire.call("write_rows", sql="DELETE FROM shop.t WHERE id = 3"))
        assert "by triggers and cascades too:\npublic.t: 1 out" in said, said
        for sql in ("UPDATE t SET id = 9 WHERE id = 2", 'UPDATE "public" . "t" SET id = 10 WHERE id = 9'):
            said = text_of(await wire.call("write_rows", sql=sql)).rstrip()
            assert said == "Done and committed.\nUPDATE: 1 row", said
        said = text_of(await wire.call("write_rows", sql="TRUNCATE public.parts CASCADE")).rstrip()
        assert said.endswith("Emptied:\npublic.parts\nshop.parts"), said


async def test_a_table_that_a_trigger_locks_is_not_called_emptied() -> None:
    base = make()
    base.run(
        """
        CREATE TABLE counters (word text); INSERT INTO counters VALUES ('kept');
        CREATE FUNCTION one_by_one() RETURNS trigger LANGUAGE plpgsql AS
            'BEGIN LOCK TABLE public.counters; RETURN NEW; END';
        CREATE TRIGGER one_by_one BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION one_by_one();
        """,
        "owner",
    )
    async with inside("--write", f"app={base.url('owner')}") as wire:
        said = text_of(await wire.call("write_rows", sql="UPDATE t SET name = 'c' WHERE id = 1"))
        assert said.rstrip() == "Done and committed.\nUPDATE: 1 row", said


async def test_a_change_tells_nothing_of_tables_that_are_not_served() -> None:
    base = make()
    base.run(_FAMILY)
    arguments = ("--write", "--only", "public.parent", f"app={base.url('postgres')}")
    async with inside(*arguments) as wire:
        for dry_run in (True, False):
            for sql in ("UPDATE parent SET name = 'c'", "DELETE FROM parent WHERE id = 1"):
                said = text_of(await wire.call("write_rows", sql=sql, dry_run=dry_run))
                assert "row" in said and not re.search("child|audit", said), said
    assert base.rows("SELECT count(*) FROM child") == [(1,)]
