"""A migration in one piece: all or none, rehearsed with what it would do, and a way back that leads back."""

import re
from typing import Any

import anyio
import pytest
from mcp import Client

from mcp_batteries.settings import load
from mcp_postgres.engine.change import effects, transaction
from mcp_postgres.engine.change.catalog_diff import read_traces
from mcp_postgres.engine.change.undo import dry_run
from mcp_postgres.engine.connection.session import Session
from mcp_postgres.server import build
from mcp_postgres.settings import Settings
from postgres.prove_changes import prove, wanting
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
            assert "-- rows: no statement brings back" in await tried(sql), sql
        said = await tried("CREATE TABLE copy AS SELECT * FROM whole; CREATE MATERIALIZED VIEW sight AS TABLE whole")
        assert "1. CREATE TABLE AS: 2 rows\n2. CREATE MATERIALIZED VIEW: 2 rows\n" in said, said
        assert "-- rows" not in said


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
        assert some.rstrip().endswith(
            'goods: ["id","sold"]\n- [9,true]\n+ [9,false]\nRead whole:\npublic.goods: 40 rows'
        ), some
        base.run("CREATE VIEW shop AS SELECT * FROM goods", "owner")
        behind = text_of(await wire.call("write_rows", sql="DELETE FROM shop WHERE id = 1", dry_run=True))
        assert "by triggers and cascades too:\npublic.goods: 1 out" in behind, behind
        base.run(AUDIT, "owner")
        said = await tried()
        assert "by triggers and cascades too:\npublic.t: 1 changed\npublic.u: 1 " in said, said
        monkeypatch.setattr(effects, "_MIN_LOCK_SECONDS", 0)
        assert "public.t: RowExclusiveLock for " in await tried()


async def test_rows_that_postgresql_does_not_count_are_told_as_lost_too() -> None:
    base = make()
    base.run(f"ALTER DATABASE {base.name} SET track_counts = off", "postgres")
    async with inside("--write", "--ddl", f"app={base.url('owner')}") as wire:
        said = text_of(await wire.call("edit_schema", sql="UPDATE t SET name = 'x'", dry_run=True))
    assert "-- rows: no statement brings back" in said, said


async def test_a_rehearsal_tells_all_and_leaves_nothing() -> None:
    base = make()
    base.run(AUDIT, "owner")
    before = names(base)
    async with inside("--write", "--ddl", f"app={base.url('owner')}") as wire:
        said = text_of(await wire.call("edit_schema", sql=ALL, dry_run=True))
        for words in (
            "Dry run", "1. CREATE TABLE\n", "4. UPDATE: 2 rows", "5. INSERT: 3 rows\n[\"", "9. ANALYZE, table",
            "+ column public.t.extra", "~ column public.u.note", "+ grant of select on public.x to reader",
            "+ comment on table public.x", '- [1,"a"]\n', '+ [1,"a!",7]', '+ [1,"a!"]',
            "table public.t: AccessExclusiveLock for ", "stops every read and write",
            "Written anew, whole:\ntable public.u,", "public.t: 2 changed", "public.u: 1 in, 1 changed",
            "ALTER TABLE public.t DROP COLUMN extra;", "DROP TABLE public.x;", "DROP VIEW public.w;",
            "ALTER TABLE public.u ALTER COLUMN note TYPE text",
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


@pytest.mark.share(3)
@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE a (id serial PRIMARY KEY, b integer UNIQUE); CREATE INDEX ON a (b, id); CREATE TABLE c (a integer"
        " REFERENCES a); CREATE VIEW d AS SELECT * FROM c",
        "ALTER TABLE t ADD COLUMN a integer, ADD CHECK (id > 0), ALTER COLUMN name SET NOT NULL, ALTER name SET DEFAULT"
        " 'q'",
        'DROP INDEX "odd index"; ALTER TABLE "Big one" ADD COLUMN "New" text; CREATE INDEX "new one" ON "Big one"'
        ' ("New"); ALTER TABLE "Big one" DROP COLUMN made',
        "CREATE OR REPLACE FUNCTION twice(n integer) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT n + n';"
        "DROP FUNCTION writer(); CREATE FUNCTION more(a text, b integer[]) RETURNS void LANGUAGE sql AS ''",
        "DROP TRIGGER noted ON t; CREATE TRIGGER again BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION note()",
        "DROP VIEW v; DROP MATERIALIZED VIEW kept; CREATE VIEW fresh AS SELECT 1 AS x",
        "GRANT INSERT, DELETE ON t TO reader; GRANT UPDATE (name) ON t TO reader; REVOKE SELECT ON u FROM reader;"
        "GRANT EXECUTE ON FUNCTION twice(integer) TO reader; GRANT USAGE ON SCHEMA public TO reader",
        "ALTER TABLE u DROP CONSTRAINT u_id_fkey, ADD CONSTRAINT mine CHECK (id < 100); CREATE SCHEMA s2;"
        " CREATE TABLE s2.t (id integer PRIMARY KEY); CREATE POLICY other ON t USING (true);"
        " CREATE TYPE colour AS ENUM ('red'); CREATE SEQUENCE counting; CREATE STATISTICS st ON id, name FROM t",
        'ALTER TABLE "Big one" RENAME TO small; ALTER TABLE small RENAME note TO "A note";'
        " CREATE INDEX ON small (made); ALTER TABLE small ADD more integer;"
        ' ALTER TABLE small RENAME CONSTRAINT "Big one_pkey" TO mine; CREATE INDEX ON t (id, name)',
        "ALTER TABLE t RENAME TO things; ALTER POLICY positive ON things RENAME TO more; ALTER VIEW v RENAME TO seen;"
        " ALTER TRIGGER noted ON things RENAME TO told; ALTER INDEX t_name RENAME TO by_name; CREATE SCHEMA s2;"
        " ALTER TABLE u SET SCHEMA s2; ALTER TABLE s2.u RENAME note TO remark; ALTER TABLE s2.u RENAME TO v",
    ],
)
async def test_the_way_back_leads_back(sql: str) -> None:
    base = make()
    base.run(AUDIT, "owner")
    before, rows = names(base), base.rows('SELECT * FROM "Big one" ORDER BY 1')
    async with inside("--ddl", f"app={base.url('owner')}") as wire:
        said = text_of(await wire.call("edit_schema", sql=sql, dry_run=True))
        assert names(base) == before
        assert "Done" in text_of(await wire.call("edit_schema", sql=sql))
        assert names(base) != before
    back = said.partition("The way back:\n")[2]
    base.run(back, "owner")
    changed = {*names(base)} ^ {*before}
    assert not changed, f"{back}\n{changed}"
    assert "lost" in back or base.rows('SELECT * FROM "Big one" ORDER BY 1') == rows


@pytest.mark.share(3)
@pytest.mark.parametrize(
    "sql",
    [
        "DROP POLICY positive ON t",
        "CREATE RULE quiet AS ON DELETE TO u DO INSTEAD NOTHING",
        "COMMENT ON TABLE t IS 'hi'; COMMENT ON COLUMN u.note IS 'what is said'",
        "ALTER TABLE t FORCE ROW LEVEL SECURITY",
        "DROP SCHEMA empty",
        "CREATE TABLE x (id serial PRIMARY KEY); COMMENT ON TABLE x IS 'hi'; CREATE INDEX ON t (name)",
        "DROP TABLE guarded",
        "DROP TABLE t CASCADE",
        "DROP TYPE hue",
        "GRANT ALL ON ALL TABLES IN SCHEMA public TO reader",
        "ALTER TABLE numbered ALTER id DROP IDENTITY; ALTER TABLE numbered SET SCHEMA empty",
        "ALTER TABLE numbered ALTER id SET GENERATED BY DEFAULT SET INCREMENT 5",
    ],
)
async def test_the_way_back_brings_the_same_that_pg_dump_says(sql: str) -> None:
    base = make()
    base.run(AUDIT, "owner")
    base.run(
        "CREATE TYPE hue AS ENUM ('fine'); CREATE SCHEMA empty; CREATE TABLE guarded (id integer);"
        "CREATE TABLE numbered (id integer GENERATED ALWAYS AS IDENTITY (START 5));"
        "CREATE POLICY own ON guarded USING (true); COMMENT ON TABLE guarded IS 'hi'",
        "owner",
    )
    with base.connect() as connection:
        before = State.of(connection)
    async with inside("--ddl", f"app={base.url('owner')}") as wire:
        back = text_of(await wire.call("edit_schema", sql=sql, dry_run=True)).partition("The way back:\n")[2]
        assert "-- not undone" not in back, back
        assert "Done" in text_of(await wire.call("edit_schema", sql=sql))
    held = re.findall("^-- when the values are back: (.*)", back, re.M)
    base.run(back, "owner")
    if held:
        base.run("TRUNCATE u; " + " ".join(held), "owner")
    with base.connect() as connection:
        left = [line for line in State.of(connection).differs(before) if not line.startswith("rows of ")]
    assert left == [], back


@pytest.mark.parametrize(
    "made",
    [
        "ALTER TABLE base ADD CHECK (x <> E'\\r{evil}')",
        "CREATE TABLE more (id integer CONSTRAINT fk REFERENCES base);"
        " COMMENT ON CONSTRAINT fk ON more IS E'one\\r{evil}'",
        'ALTER TABLE base RENAME CONSTRAINT base_pkey TO "a{evil}"; CREATE TABLE more (id integer REFERENCES base)',
        'CREATE TABLE "a{evil}" (id integer CONSTRAINT "b{evil}" REFERENCES base, "c{evil}" integer NOT NULL)',
        "CREATE VIEW v1 AS SELECT id, x, count(*) AS n FROM base GROUP BY id; COMMENT ON VIEW v1 IS 'a{evil}'",
    ],
)
async def test_what_others_wrote_is_never_a_statement_of_the_way_back(made: str) -> None:
    base = make(
        "CREATE TABLE base (id integer PRIMARY KEY, x text); CREATE TYPE hue AS ENUM ('a');"
        'CREATE TABLE "q.""; CREATE TABLE evil (); --" ()'
    )
    base.run(made.replace("{evil}", "\nCREATE TABLE evil();--"), "owner")
    changes = ["DROP TABLE base CASCADE", "ALTER TYPE hue ADD VALUE E'b\\nCREATE TABLE evil();--'"]
    if made.startswith("ALTER TABLE base ADD"):
        changes += ['ALTER TABLE "q.""; CREATE TABLE evil (); --" RENAME TO more']
    if made.startswith('CREATE TABLE "a'):
        changes += [
            'DROP TABLE "a\nCREATE TABLE evil();--"',
            'ALTER TABLE "a\nCREATE TABLE evil();--" DROP COLUMN "c\nCREATE TABLE evil();--"',
        ]
    async with inside("--ddl", f"app={base.url('owner')}") as wire:
        for sql in changes:
            said = text_of(await wire.call("edit_schema", sql=sql, dry_run=True))
            assert said.count("The way back:\n") == 1, said
            back = said.partition("The way back:\n")[2]
            with base.connect("owner") as connection:
                connection.autocommit = False
                connection.execute(sql.encode())
                connection.execute(back.encode())
                found = connection.execute("SELECT to_regclass('evil')::text").fetchone()
                connection.rollback()
            assert found == (None,), back


@pytest.mark.share(5)
@pytest.mark.parametrize(
    ("made", "sql"),
    [
        (
            "CREATE FUNCTION f(a integer, b integer) RETURNS integer LANGUAGE sql AS 'SELECT 1'",
            "CREATE OR REPLACE FUNCTION f(a integer, b integer DEFAULT 2) RETURNS integer LANGUAGE sql AS 'SELECT 1'",
        ),
        (
            "CREATE VIEW v1 AS SELECT id FROM base; CREATE FUNCTION f(v1) RETURNS integer LANGUAGE sql AS 'SELECT 1'",
            "CREATE OR REPLACE VIEW v1 AS SELECT id, x AS v1 FROM base",
        ),
        (
            "CREATE VIEW v1 AS SELECT id FROM base; CREATE MATERIALIZED VIEW mm AS TABLE v1; CREATE INDEX ON mm (id)",
            "CREATE OR REPLACE VIEW v1 AS SELECT id, x FROM base",
        ),
        ("CREATE TABLE ev1 PARTITION OF ev FOR VALUES IN (1); CREATE INDEX mine ON ev1 (b)", "CREATE INDEX ON ev (b)"),
        (
            "CREATE TABLE ev1 PARTITION OF ev FOR VALUES IN (1);"
            "ALTER TABLE ev1 ADD CONSTRAINT mine FOREIGN KEY (b) REFERENCES base",
            "ALTER TABLE ev ADD CONSTRAINT mine FOREIGN KEY (b) REFERENCES base",
        ),
        (
            "CREATE TABLE ev1 PARTITION OF ev FOR VALUES IN (1); ALTER TABLE ev1 ALTER b SET DEFAULT 7",
            "DROP TABLE ev1",
        ),
        ("CREATE TABLE ev1 (b integer, a integer); ALTER TABLE ev ATTACH PARTITION ev1 DEFAULT", "DROP TABLE ev1"),
        (
            "CREATE TYPE h AS ENUM ('a'); ALTER TABLE base ADD h h DEFAULT 'a'",
            "ALTER TYPE h RENAME TO old; CREATE TYPE h AS ENUM ('a', 'b'); ALTER TABLE base ALTER h DROP DEFAULT,"
            "ALTER h TYPE h USING h::text::h, ALTER h SET DEFAULT 'a'; DROP TYPE old",
        ),
        (
            "ALTER TABLE base ADD s serial",
            "ALTER TABLE base ALTER s DROP DEFAULT; DROP SEQUENCE base_s_seq;"
            "ALTER TABLE base ALTER s ADD GENERATED ALWAYS AS IDENTITY",
        ),
        ("CREATE TABLE kind OF spot (PRIMARY KEY (a))", "ALTER TABLE kind NOT OF"),
        (
            "CREATE SCHEMA a; CREATE TABLE a.t (c text)",
            "ALTER SCHEMA a RENAME TO b; CREATE TYPE b.k AS ENUM ('x'); ALTER TABLE b.t ALTER c TYPE b.k USING c::b.k",
        ),
        ('CREATE DOMAIN d AS text COLLATE "C" NOT NULL', "DROP DOMAIN d"),
        (
            'CREATE TYPE ra AS RANGE (SUBTYPE = text, COLLATION = "C", MULTIRANGE_TYPE_NAME = "ma ny");'
            "CREATE TYPE rb AS RANGE (SUBTYPE = float8, SUBTYPE_DIFF = float8mi)",
            "DROP TYPE ra, rb",
        ),
        ("CREATE MATERIALIZED VIEW mm AS TABLE base WITH NO DATA", "DROP MATERIALIZED VIEW mm"),
        ("REVOKE INSERT ON base FROM owner", "DROP TABLE base"),
        ('CREATE INDEX "e ON ONLY v" ON ev (a)', 'DROP INDEX "e ON ONLY v"'),
        ('CREATE TYPE "a;b" AS (x integer)', 'ALTER TYPE "a;b" RENAME ATTRIBUTE x TO y'),
    ],
)
async def test_what_a_way_back_fails_at_or_leaves_is_said(made: str, sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transaction, "_QUICK_SECONDS", 60)
    monkeypatch.setattr(dry_run, "_MAX_SECONDS", 60)
    monkeypatch.setattr(dry_run, "_LOCK_MILLISECONDS", 60_000)
    base = make(
        "CREATE TABLE base (id integer PRIMARY KEY, x text); CREATE TYPE spot AS (a integer);"
        "CREATE TABLE ev (a integer, b integer) PARTITION BY LIST (a)"
    )
    base.run(made, "owner")
    with base.connect() as connection:
        before = State.of(connection)
    async with inside("--ddl", f"app={base.url('owner')}") as wire:
        back = text_of(await wire.call("edit_schema", sql=sql, dry_run=True)).partition("The way back:\n")[2]
        assert "Done" in text_of(await wire.call("edit_schema", sql=sql))
    base.run(back, "owner")
    with base.connect() as connection:
        left = wanting(State.of(connection), before, [line for line in back.splitlines() if "--" in line])
    assert left == [], back


async def test_the_way_back_means_the_same_whatever_the_search_path() -> None:
    base = make("CREATE TABLE base (id serial PRIMARY KEY); CREATE VIEW seen AS TABLE base")
    base.run('CREATE TABLE "it\'s $(x)" (id integer REFERENCES base)', "owner")
    async with inside("--ddl", f"app={base.url('owner')}") as wire:
        sql = 'DROP VIEW seen; DROP TABLE "it\'s $(x)"; ALTER TABLE base ALTER id DROP DEFAULT'
        back = text_of(await wire.call("edit_schema", sql=sql, dry_run=True)).partition("The way back:\n")[2]
    assert "FROM public.base" in back and "REFERENCES public.base" in back and "'public.base_id_seq'" in back, back
    assert """--table='public."it'"'"'s $(x)"' saves""" in back, back


async def test_what_cannot_be_tried_behind_a_savepoint_is_no_failure_of_the_way_back() -> None:
    base = make("CREATE DOMAIN years AS integer CONSTRAINT lowest CHECK (VALUE > 0)")
    async with inside("--write", "--ddl", f"app={base.url('owner')}") as wire:
        said = text_of(await wire.call("edit_schema", sql="ALTER DOMAIN years DROP CONSTRAINT lowest", dry_run=True))
    back = said.partition("The way back:\n")[2]
    assert back.startswith("ALTER DOMAIN public.years ADD CONSTRAINT lowest CHECK ((VALUE > 0));"), said
    assert "not undone" not in back


async def test_a_way_back_of_another_order_is_put_in_one_that_works() -> None:
    base = make("CREATE TABLE base (id integer PRIMARY KEY, s serial, x text)")
    base.run(
        "CREATE VIEW v1 AS SELECT id FROM base; CREATE MATERIALIZED VIEW mm AS TABLE v1; CREATE INDEX ON mm (id)",
        "owner",
    )
    with base.connect() as connection:
        before = State.of(connection)
    async with inside("--ddl", f"app={base.url('owner')}") as wire:
        for sql in (
            "ALTER TABLE base ALTER s DROP DEFAULT; DROP SEQUENCE base_s_seq;"
            "ALTER TABLE base ALTER s ADD GENERATED ALWAYS AS IDENTITY",
            "CREATE OR REPLACE VIEW v1 AS SELECT id, x FROM base",
        ):
            back = text_of(await wire.call("edit_schema", sql=sql, dry_run=True)).partition("The way back:\n")[2]
            assert "Done" in text_of(await wire.call("edit_schema", sql=sql))
            base.run(back, "owner")
            with base.connect() as connection:
                assert State.of(connection).differs(before) == [], back


async def test_a_server_takes_the_way_back_that_it_told() -> None:
    base = make()
    base.run(
        "CREATE TABLE numbered (id serial, n integer GENERATED ALWAYS AS IDENTITY (START 9 INCREMENT -2 MAXVALUE 9"
        " MINVALUE 1 CYCLE)); INSERT INTO numbered DEFAULT VALUES; INSERT INTO numbered DEFAULT VALUES;"
        "INSERT INTO numbered DEFAULT VALUES; INSERT INTO numbered DEFAULT VALUES; INSERT INTO numbered DEFAULT VALUES",
        "owner",
    )
    async with inside("--ddl", f"app={base.url('owner')}") as wire:
        back = text_of(await wire.call("edit_schema", sql="DROP TABLE numbered", dry_run=True))
        assert "-- its rows are lost" in back
        assert "Done" in text_of(await wire.call("edit_schema", sql="DROP TABLE numbered"))
        said = text_of(await wire.call("edit_schema", sql=back.partition("The way back:\n")[2]))
        assert "Done" in said, said
    assert base.rows("INSERT INTO numbered DEFAULT VALUES RETURNING id, n") == [(6, 9)]


async def test_the_way_back_tells_what_it_leaves() -> None:
    base = make()
    base.run("CREATE TYPE hue AS ENUM ('fine')", "owner")
    async with inside("--ddl", f"app={base.url('owner')}") as wire:
        said = text_of(await wire.call("edit_schema", sql="ALTER TYPE hue ADD VALUE 'tired'", dry_run=True))
    assert "-- not undone: label tired of public.hue, new" in said


@pytest.mark.parametrize(
    "step", ["start_tracing", "read_traces", "read_changed_objects", "describe_change", "undo_statements"]
)
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
        assert f"-- no way back could be made: {why}" in said
        assert ("+ table public.fresh" in said) == (step in ("describe_change", "undo_statements"))
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


@pytest.mark.share(3)
@pytest.mark.parametrize(
    "sql",
    [
        "REASSIGN OWNED BY owner TO postgres", "ALTER TABLE u DISABLE TRIGGER ALL", "DROP EXTENSION plpgsql CASCADE",
        "ALTER SCHEMA public OWNER TO postgres; ALTER TYPE mood OWNER TO reader; ALTER VIEW v OWNER TO reader",
        "DO $$BEGIN BEGIN CREATE TABLE a (); EXCEPTION WHEN others THEN NULL; END; DROP VIEW v; END$$",
        "GRANT UPDATE (name) ON t TO monitor; GRANT SELECT ON t TO reader WITH GRANT OPTION",
    ],
)  # fmt: skip
async def test_the_way_back_of_an_administrator_leads_back(sql: str) -> None:
    base = make()
    base.run("GRANT UPDATE (name) ON t TO reader")
    with base.connect() as connection:
        before = State.of(connection)
    async with inside("--admin", f"app={base.url('postgres')}") as wire:
        back = text_of(await wire.call("edit_schema", sql=sql, dry_run=True)).partition("The way back:\n")[2]
        assert "-- not undone" not in back, back
        assert "Done" in text_of(await wire.call("edit_schema", sql=sql))
    base.run(back)
    with base.connect() as connection:
        assert State.of(connection).differs(before) == [], back


@pytest.mark.parametrize("cases", few([2, 10], 2))
async def test_a_sample_of_changes_is_what_postgresql_makes_of_them(cases: int) -> None:
    tally = await prove(cases, 4)
    assert tally.wrong == [] and tally.counts["changes"] == cases


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE t RENAME TO aside; ALTER TABLE u RENAME TO t; ALTER TABLE aside RENAME TO u",
        'ALTER TABLE u RENAME TO more; ALTER TABLE "Big one" RENAME TO u',
        "ALTER TABLE u RENAME TO more; CREATE TABLE u (LIKE more)",
    ],
)
async def test_exchanged_names_lead_back_to_the_same_rows(sql: str) -> None:
    base = make()
    base.run(AUDIT, "owner")

    def tables() -> list[tuple[object, ...]]:
        return base.rows("SELECT oid, relname FROM pg_class WHERE relkind = 'r' AND oid > 16384 ORDER BY oid")

    before = tables()
    async with inside("--ddl", f"app={base.url('owner')}") as wire:
        back = text_of(await wire.call("edit_schema", sql=sql, dry_run=True)).partition("The way back:\n")[2]
        assert "Done" in text_of(await wire.call("edit_schema", sql=sql))
    base.run(back, "owner")
    assert tables() == before, back


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
            ("SET ROLE postgres", "defines nothing"), ("CREATE EXTENSION plpgsql", "beyond the database's schema"),
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
        assert "+ role clerk" in said and "+ membership of reader in clerk" in said and "DROP ROLE clerk" in said, said
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


async def test_a_tool_that_would_refuse_every_call_is_not_offered(caplog: pytest.LogCaptureFixture) -> None:
    base = make()

    async def offered(*arguments: str) -> bool:
        async with Client(build(load(Settings, [*arguments]))) as client:
            found = True
            with anyio.move_on_after(20 if "--admin" not in arguments and len(arguments) == 2 else 0.5):
                while found:
                    found = "edit_schema" in {tool.name for tool in (await client.list_tools()).tools}
                    await anyio.sleep(0.02)
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
            assert "attver" not in said and "not undone" not in said, said
            assert not any(f"column public.wide.{name}\n" in said for name in "bcd"), said
        sql = "ALTER TABLE wide ALTER b SET (n_distinct = 5)"
        said = text_of(await client.call("edit_schema", sql=sql, dry_run=True))
        assert "~ column public.wide.b\n" in said and "ALTER COLUMN b RESET (n_distinct);" in said, said
        sql = "ALTER TABLE wide ALTER b SET (n_distinct = 5); COMMENT ON TABLE wide IS '(pg_attver=1)'"
        said = text_of(await client.call("edit_schema", sql=sql, dry_run=True))
        assert "~ column public.wide.c\n" in said, "an option that a statement names is shown"
