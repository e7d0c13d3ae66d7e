"""A part of a database is served, and columns are masked: a sample of `prove_part`, and what the operator may say."""

import pytest

from mcp_batteries.errors import Unavailable
from mcp_batteries.settings import load
from mcp_postgres.engine.audit.query_trees import read_tree
from mcp_postgres.policy import Policy, VisibleSchema
from mcp_postgres.settings import Settings
from postgres.prove_part import prove
from postgres.serving import inside, major, make, text_of


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_sample_of_the_proof() -> None:
    tally = await prove(0.003, 5)
    assert tally.wrong == []
    assert tally.counts["used"] > 15 and tally.counts["hidden"] > 4 and tally.counts["twins"] > 15, tally.counts


def parts(*arguments: str) -> dict[str, VisibleSchema]:
    return dict(Policy(load(Settings, ["a=postgresql://h/a", "b=postgresql://h/b", *arguments]), environment={}).parts)


def test_names_are_for_all_databases_or_one() -> None:
    found = parts("--only", 'app, "Odd.name"."t""x"', "--only", "b=more.v", "--mask", "A=app.t.c app.t.d")
    assert found["a"].only == {("app",), ("Odd.name", 't"x')}
    assert found["b"].only == {("app",), ("Odd.name", 't"x'), ("more", "v")}
    assert found["a"].masked == {("app", "t", "c"), ("app", "t", "d")} and found["b"].masked == {("app", "t", "d")}
    assert not any(parts().values())


@pytest.mark.parametrize(
    "arguments",
    [
        ("--mask", "t.c"), ("--mask", "a.s.t.c"), ("--only", "s.t.c"), ("--only", "c=s"), ("--only", '"open'),
        ("--only", "a..b"), ("--mask", "a.b.c=d"), ("--only", "s;t.u.v"), ("--mask", 's.t."c"d'),
    ],
)  # fmt: skip
def test_a_slip_of_the_pen_serves_nothing(arguments: tuple[str, str]) -> None:
    with pytest.raises(Unavailable):
        parts(*arguments)


@pytest.mark.anyio
async def test_what_cannot_be_enforced_is_not_served() -> None:
    base = make()
    async with inside("--mask", "public.t.nmae", f"app={base.url('postgres')}") as wire:
        said = text_of(await wire.call("query_rows", sql="SELECT 1"))
        assert "`public.t.nmae`" in said and "not there" in said
        base.run("ALTER TABLE t RENAME name TO nmae")
        assert text_of(await wire.call("query_rows", sql="SELECT * FROM t LIMIT 1")).endswith('[1,"•••"]\n')
        base.run("ALTER TABLE t RENAME nmae TO name")
        assert "not there" in text_of(await wire.call("query_rows", sql="TABLE t"))
    async with inside("--only", "public.t", f"app={base.url()}") as wire:
        assert "is not served" in text_of(await wire.call("query_rows", sql="SELECT 1"))
        assert "log_min_messages" in text_of(await wire.call("list_objects"))


@pytest.mark.anyio
async def test_the_first_call_of_a_server_knows_what_is_masked() -> None:
    base = make(
        "CREATE TABLE t (id integer PRIMARY KEY, name text);"
        "INSERT INTO t SELECT n, 'canary ' || n % 3 FROM generate_series(1, 300) n; ANALYZE t"
    )
    url = f"app={base.url('postgres')}"
    async with inside("--mask", "public.t.name", url) as wire:
        listed = text_of(await wire.call("list_objects"))
        assert "name text masked" in listed and "canary" not in listed, listed
        assert "null" not in listed.partition("- public.t ")[2], listed
        said = text_of(await wire.call("get_table", table="t"))
        assert "- name: text, masked" in said and "canary" not in said, said
        base.run("CREATE TABLE child (more text) INHERITS (t); INSERT INTO child SELECT * FROM t; ANALYZE child")
        said = text_of(await wire.call("get_table", table="child"))
        assert "- name: text, masked" in said and "canary" not in said, said
        base.run("CREATE MATERIALIZED VIEW kept AS SELECT id, name AS other FROM t; ANALYZE kept")
        for tool, arguments in (("get_table", {"table": "kept"}), ("list_objects", {})):
            said = text_of(await wire.call(tool, **arguments))
            assert "other" in said and "canary" not in said, said
    async with inside("--mask", "public.t.nmae", url) as wire:
        said = text_of(await wire.call("get_table", table="t"))
        assert "`public.t.nmae`" in said and "not there" in said and "canary" not in said, said
    async with inside("--mask", "public.t.name", url) as wire:
        assert "canary" not in await wire.read("postgres://app/.schema")


@pytest.mark.anyio
async def test_checks_and_defaults_of_masked_columns_are_hidden() -> None:
    base = make(
        "CREATE TABLE t (id integer CHECK (id > 0), name text DEFAULT 'canary' CHECK (name <> 'canary bird'));"
        "CREATE TABLE plain (name text DEFAULT 'seen' CHECK (name <> 'seen too'))"
    )
    async with inside("--mask", "public.t.name", f"app={base.url('postgres')}") as wire:
        for tool, arguments in (("get_table", {"table": "t"}), ("list_objects", {})):
            said = text_of(await wire.call(tool, **arguments))
            assert "canary" not in said and "CHECK (...)" in said and "default ..." in said, said
            assert "CHECK ((id > 0))" in said, said
        assert "'seen'" in said and "'seen too'" in said, said


@pytest.mark.anyio
async def test_no_expression_tells_values_of_masked_columns() -> None:
    base = make()
    base.run(
        "CREATE TABLE m (id integer, name text, EXCLUDE USING btree (id WITH =) WHERE (name = 'canary'));"
        "ALTER TABLE m ADD CHECK ((m.*)::text <> 'canary'), ENABLE ROW LEVEL SECURITY;"
        "CREATE INDEX ON m ((name = 'canary')); CREATE UNIQUE INDEX ON m (id) WHERE name = 'canary';"
        "CREATE POLICY p ON m USING (name = 'canary') WITH CHECK (name = 'canary');"
        "CREATE RULE r AS ON DELETE TO m WHERE OLD.name = 'canary' DO ALSO NOTHING;"
        "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';"
        "CREATE TRIGGER g BEFORE INSERT ON m FOR EACH ROW WHEN (NEW.name = 'canary') EXECUTE FUNCTION f();"
        "CREATE TABLE plain (name text); CREATE INDEX ON plain (name) WHERE name = 'seen'"
    )
    calls: list[tuple[str, dict[str, str]]] = [
        ("list_objects", {"kind": "triggers"}), ("list_objects", {"kind": "policies"}), ("list_objects", {}),
        ("get_table", {"table": "m"}),
    ]  # fmt: skip
    for tool, arguments in calls:
        async with inside("--mask", "public.m.name", f"app={base.url('postgres')}") as wire:
            said = text_of(await wire.call(tool, **arguments))
            assert "canary" not in said and " m" in said, said
            assert "seen" in text_of(await wire.call("get_table", table="plain"))
    assert "EXCLUDE (...)" in said and "CREATE" not in said.partition("indexes")[2].partition("triggers")[0], said


def test_an_alias_that_is_spelled_like_a_tree_is_an_alias() -> None:
    tree = read_tree(
        "{TARGETENTRY :expr {VAR :varno 1} :resname :expr :next \\{VAR\\ :varno\\ 2\\} :list (i 1 (b) <>)}"
    )
    assert tree == (
        "TARGETENTRY",
        {"expr": ("VAR", {"varno": "1"}), "resname": ":expr", "next": "\\{VAR\\ :varno\\ 2\\}",
         "list": ["i", "1", ["b"], None]},
    )  # fmt: skip
    for broken in ("", "{", "{A :b", "{A b}", "(1", ")"):
        with pytest.raises(ValueError, match=r"tree|value"):
            read_tree(broken)


_ROWS_OF_OTHERS = (
    "SELECT (NULL::priv.canary).*",
    "SELECT to_jsonb('(1,a)'::priv.canary)",
    "SELECT * FROM unnest('{\"(1,a)\"}'::priv.canary[])",
    "SELECT json_populate_record(NULL::priv.canary, '{}')",
    "SELECT ROW(1, 'a')::priv.canary",
    "SELECT to_json(x) FROM json_to_record('{}') AS x(a priv.canary)",
    "SELECT JSON_QUERY('{}', '$' RETURNING priv.canary)",
    "SELECT to_json(NULL::priv.one)",
    "SELECT to_json('{}'::priv.one[])",
    "SELECT ARRAY[NULL::priv.canary]",
)


@pytest.mark.anyio
@pytest.mark.parametrize("sql", _ROWS_OF_OTHERS)
async def test_no_row_is_made_of_the_columns_of_what_is_not_served(sql: str) -> None:
    if "JSON_QUERY" in sql and major() < 17:
        pytest.skip("JSON_QUERY came with PostgreSQL 17")
    base = make(
        "CREATE SCHEMA priv; CREATE TABLE priv.canary (id integer, secret text); CREATE DOMAIN priv.one AS priv.canary"
    )
    async with inside("--only", "public", f"app={base.url('postgres')}") as wire:
        said = text_of(await wire.call("query_rows", sql=sql))
        assert said.startswith("`priv.canary` is not served."), said


@pytest.mark.anyio
async def test_rows_of_what_is_served_are_made() -> None:
    base = make(
        "CREATE SCHEMA priv; CREATE TABLE priv.canary (id integer, secret text); CREATE TABLE t (id integer);"
        "CREATE FUNCTION vouched() RETURNS SETOF priv.canary LANGUAGE sql STABLE AS $$ SELECT 1, 'a' $$"
    )
    options = ["--only", "public.t", "--only", "public.vouched", "--trust-database"]
    async with inside(*options, f"app={base.url('postgres')}") as wire:
        for sql, row in (
            ("SELECT * FROM json_populate_recordset(NULL::t, '[{\"id\": 1}]')", "[1]"),
            ("SELECT (NULL::t).id", "[null]"),
            ("SELECT * FROM vouched()", '[1,"a"]'),
            ("WITH v AS (SELECT vouched() AS r) SELECT (r).secret FROM v", '["a"]'),
        ):
            said = text_of(await wire.call("query_rows", sql=sql))
            assert said.endswith(f"{row}\n"), said


@pytest.mark.anyio
async def test_numbers_do_not_become_names_of_what_is_not_served() -> None:
    base = make("CREATE SCHEMA priv; CREATE TABLE priv.canary (id integer); CREATE TABLE t (id integer)")
    base.run("INSERT INTO t VALUES (1)", "owner")
    numbers = "FROM generate_series(16384, 17400) n"
    async with inside("--only", "public", f"app={base.url('postgres')}") as wire:
        for sql in (
            f"SELECT string_agg(n::regclass::text, ' ') {numbers}",
            f"SELECT string_agg(n::regtype::text, ' ') {numbers}",
            f"SELECT to_json(array_agg(n::regnamespace)) {numbers}", "SELECT 'priv.canary'::regclass",
            f"SELECT string_agg(format_type(n, -1), ' ') {numbers}", "SELECT '{priv.canary}'::regclass[]",
            f"SELECT string_agg(j.a::text, ' ') {numbers}, json_to_record(json_build_object('a', n)) AS j(a regclass)",
        ):  # fmt: skip
            said = text_of(await wire.call("query_rows", sql=sql, max_cell=100_000))
            assert "not served" in said or "may tell of more" in said, f"{sql}: {said[:300]}"
        said = text_of(await wire.call("query_rows", sql="SELECT tableoid::regclass, pg_typeof(id)::text FROM t"))
        assert said.endswith('["t","integer"]\n'), said


RULES = """
CREATE TABLE staff (
    id integer PRIMARY KEY, name text, pay integer, least integer CHECK (least <= pay), piece integer, team integer,
    alone integer CHECK (alone > 0), gap integer GENERATED ALWAYS AS (piece - pay) STORED CHECK (gap < 0), note text,
    UNIQUE (team, pay)
);
CREATE UNIQUE INDEX well_paid ON staff (name) WHERE pay > 600;
CREATE VIEW lowest AS SELECT id, least AS low, note FROM staff;
CREATE TABLE later (part integer CHECK (part < pay)) INHERITS (staff);
INSERT INTO staff VALUES (1, 'ann', 500, 0, 99, 1, 1), (2, 'bob', 700, 0, 99, 1, 1);
"""


@pytest.mark.anyio
async def test_a_change_that_is_tried_runs_no_query_of_what_is_hidden_and_shows_no_masked_value() -> None:
    base = make()
    base.run("CREATE TABLE staff (id integer, pay text); INSERT INTO staff VALUES (1, 'canary')")
    parts = ("--only", "public.staff", "--mask", "public.staff.pay")
    async with inside("--write", *parts, f"app={base.url('postgres')}") as wire:
        for query, why in (
            ("SELECT id FROM staff WHERE pay = 'canary'", "`staff.pay` is masked"),
            ("SELECT id FROM staff ORDER BY pay", "`staff.pay` is masked"), ("TABLE t", "`public.t` is not served"),
        ):  # fmt: skip
            said = text_of(await wire.call("write_rows", sql=f"EXPLAIN (ANALYZE, VERBOSE) {query}"))
            assert why in said and "Scan" not in said, said
        sql = "UPDATE staff SET id = 2 RETURNING *; SELECT pay FROM staff; SELECT id FROM staff WHERE pay > 'b'"
        done = await wire.call("write_rows", sql=sql, dry_run=True)
        said = text_of(done)
        assert done["isError"] and said.count("•••") == 2 and "canary" not in said, said
        assert "Statement 3 of 3 failed" in said, said


TRIGGERS = """
CREATE TABLE staff (id integer PRIMARY KEY, floor integer, pay integer, note text);
CREATE TABLE log (what text);
CREATE FUNCTION logs() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO log VALUES (TG_NAME); RETURN NEW; END';
CREATE TRIGGER low AFTER UPDATE ON staff FOR EACH ROW WHEN (NEW.floor < OLD.pay) EXECUTE FUNCTION logs();
CREATE TRIGGER raised AFTER UPDATE ON staff FOR EACH ROW WHEN (OLD.pay <> NEW.pay) EXECUTE FUNCTION logs();
CREATE TABLE other (id integer PRIMARY KEY, pin text, note text);
CREATE TRIGGER changed BEFORE UPDATE ON other FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION logs();
CREATE TABLE quiet (id integer PRIMARY KEY, pin text, note text);
CREATE TRIGGER same BEFORE UPDATE ON quiet FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger();
CREATE TABLE plain (id integer PRIMARY KEY, pin text, note text);
CREATE TRIGGER strong BEFORE UPDATE ON plain FOR EACH ROW WHEN (length(NEW.pin) > 3) EXECUTE FUNCTION logs();
CREATE TABLE past (id integer PRIMARY KEY, floor integer, pay integer, note text);
CREATE TRIGGER gone AFTER DELETE ON past FOR EACH ROW WHEN (OLD.floor < OLD.pay) EXECUTE FUNCTION logs();
INSERT INTO past VALUES (1, 0, 500);
INSERT INTO staff VALUES (1, 0, 500); INSERT INTO other VALUES (1, '1234'); INSERT INTO quiet VALUES (1, '1234');
INSERT INTO plain VALUES (1, '1234');
"""
FOREIGN_KEYS = """
CREATE TABLE region (id integer PRIMARY KEY, name text);
CREATE TABLE clinic (code text PRIMARY KEY, name text, region integer REFERENCES region ON DELETE CASCADE);
CREATE TABLE patient (id integer PRIMARY KEY, clinic text REFERENCES clinic ON DELETE CASCADE ON UPDATE CASCADE);
CREATE VIEW clinics AS SELECT code, name FROM clinic;
CREATE TABLE unit (id integer PRIMARY KEY);
CREATE TABLE ward (id integer PRIMARY KEY, unit integer UNIQUE REFERENCES unit ON UPDATE CASCADE ON DELETE SET NULL);
CREATE TABLE bed (id integer PRIMARY KEY, ward integer REFERENCES ward (unit), floor integer);
CREATE TABLE town (id integer PRIMARY KEY); ALTER TABLE region ADD town integer REFERENCES town;
CREATE TABLE floor (id integer PRIMARY KEY);
ALTER TABLE bed ADD FOREIGN KEY (floor) REFERENCES floor ON UPDATE CASCADE, ADD CHECK (floor < ward + 10);
INSERT INTO unit VALUES (1), (2); INSERT INTO ward VALUES (1, 1), (2, 2); INSERT INTO floor VALUES (1);
INSERT INTO bed VALUES (1, 1, 1); INSERT INTO town VALUES (1);
INSERT INTO region VALUES (1, 'north'); INSERT INTO clinic VALUES ('hiv', 'a', 1), ('eye', 'b', 1);
INSERT INTO patient VALUES (1, 'hiv'), (2, 'eye'), (3, 'eye');
"""


@pytest.mark.anyio
async def test_no_condition_of_a_trigger_tells_of_masked_values() -> None:
    base = make(TRIGGERS)
    masks = ["staff.pay", "past.pay", "other.pin", "quiet.pin", "plain.pin"]
    options = [word for name in masks for word in ("--mask", f"public.{name}")]
    async with inside("--write", "--trust-database", *options, f"app={base.url('postgres')}") as wire:
        for sql in (
            "UPDATE staff SET floor = 499", "UPDATE staff SET pay = 500", "UPDATE other SET pin = '1234'",
            "UPDATE quiet SET pin = '1234'", "UPDATE past SET floor = 499; DELETE FROM past",
        ):  # fmt: skip
            done = await wire.call("write_rows", sql=sql, dry_run=True)
            assert done["isError"] and "compares it with a masked column" in text_of(done), f"{sql}: {text_of(done)}"
        for sql in (
            "UPDATE staff SET note = 'x'", "UPDATE other SET note = 'x'", "UPDATE quiet SET note = 'x'",
            "UPDATE plain SET pin = '12'", "UPDATE past SET note = 'x'",
        ):  # fmt: skip
            done = await wire.call("write_rows", sql=sql, dry_run=True)
            assert not done["isError"] and "UPDATE: 1 row" in text_of(done), f"{sql}: {text_of(done)}"


@pytest.mark.anyio
async def test_no_foreign_key_tells_of_masked_values() -> None:
    base = make(FOREIGN_KEYS)
    masks = ["--mask", "public.patient.clinic", "--mask", "public.bed.ward"]
    async with inside("--write", *masks, f"app={base.url('postgres')}") as wire:
        for sql in (
            "DELETE FROM clinic WHERE code = 'hiv'", "DELETE FROM clinics WHERE code = 'hiv'", "DELETE FROM region",
            "UPDATE clinic SET code = 'x' WHERE code = 'hiv'",
            "WITH gone AS (DELETE FROM clinic WHERE code = 'hiv' RETURNING name) SELECT * FROM gone",
            "UPDATE unit SET id = 12 WHERE id = 2", "DELETE FROM unit WHERE id = 2", "UPDATE floor SET id = 10",
        ):  # fmt: skip
            done = await wire.call("write_rows", sql=sql, dry_run=True)
            assert done["isError"] and "with a masked" in text_of(done), f"{sql}: {text_of(done)}"
        for sql in (
            "DELETE FROM patient WHERE id = 1", "UPDATE clinic SET name = 'x' WHERE code = 'hiv'",
            "DELETE FROM town WHERE id = 1", "UPDATE ward SET id = 7 WHERE id = 1", "UPDATE bed SET id = 3",
        ):  # fmt: skip
            done = await wire.call("write_rows", sql=sql, dry_run=True)
            assert not done["isError"] and ": 1 row" in text_of(done), f"{sql}: {text_of(done)}"


@pytest.mark.anyio
async def test_no_constraint_tells_of_masked_values() -> None:
    base = make(RULES)
    merges = ["MERGE INTO staff s USING (VALUES (1)) v (id) ON s.id = v.id WHEN MATCHED THEN UPDATE SET least = 450"]
    if major() < 15:
        merges.clear()
    masks = [word for name in ("pay", "alone") for word in ("--mask", f"public.staff.{name}")]
    async with inside("--write", *masks, f"app={base.url('postgres')}") as wire:
        for sql in (
            "UPDATE staff SET least = 450", "UPDATE staff SET piece = 1", "UPDATE staff SET team = 2 WHERE id = 1",
            "UPDATE staff SET name = 'bob'", "UPDATE lowest SET low = 450", "UPDATE later SET part = 1",
            "INSERT INTO staff (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET least = 450",
            "WITH w AS (UPDATE staff SET note = 'x', least = 450 RETURNING id) SELECT * FROM w", *merges,
        ):  # fmt: skip
            done = await wire.call("write_rows", sql=sql, dry_run=True)
            assert done["isError"] and "compares it with a masked column" in text_of(done), f"{sql}: {text_of(done)}"
        for sql in (
            "UPDATE lowest SET note = 'x'", "UPDATE staff SET note = 'x', alone = 2 WHERE id = 1",
            "INSERT INTO staff (id, pay, least) VALUES (3, 9, 8)", "UPDATE staff SET pay = 800 WHERE id = 1",
        ):  # fmt: skip
            done = await wire.call("write_rows", sql=sql)
            assert not done["isError"], f"{sql}: {text_of(done)}"
    async with inside(
        "--write", "--mask", "public.staff.pay", "--mask", "public.staff.least", f"app={base.url('postgres')}"
    ) as wire:
        done = await wire.call("write_rows", sql="UPDATE staff SET pay = 800", dry_run=True)
        assert "`public.staff.pay` can't be updated here" in text_of(done)
    flags = ("--only", "public.lowest", "--mask", "public.staff.pay")
    async with inside("--write", *flags, f"app={base.url('postgres')}") as wire:
        done = await wire.call("write_rows", sql="UPDATE lowest SET low = 450", dry_run=True)
        assert done["isError"] and "masked column" in text_of(done) and "staff" not in text_of(done), text_of(done)
