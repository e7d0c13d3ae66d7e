"""What `list_objects` tells of each kind: what refers to what, who may do what, and how many of it fit an answer."""

import re
from typing import Any

import pytest

from mcp_postgres.engine.catalog import description
from mcp_postgres.engine.query import value_counts
from postgres.serving import cluster, inside, major, make, text_of

pytestmark = pytest.mark.anyio

SHOP = """
CREATE SCHEMA far;
CREATE TABLE far.regions (id integer PRIMARY KEY);
CREATE TABLE customers (id integer PRIMARY KEY, region integer REFERENCES far.regions);
CREATE TABLE orders (id integer, part integer, customer integer REFERENCES customers,
    "Old" integer REFERENCES customers, state text, PRIMARY KEY (id, part));
CREATE TABLE lines (id integer, part integer, FOREIGN KEY (id, part) REFERENCES orders);
CREATE TABLE days (day date, customer integer REFERENCES customers) PARTITION BY RANGE (day);
CREATE TABLE days_1 PARTITION OF days FOR VALUES FROM ('2026-01-01') TO ('2026-02-01');
INSERT INTO customers VALUES (1);
INSERT INTO orders SELECT g, 1, 1, 1, CASE WHEN g % 10 = 0 THEN 'open' ELSE 'paid' END FROM generate_series(1, 500) g;
CREATE POLICY own ON orders FOR SELECT TO reader USING (customer = 1);
CREATE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS 'BEGIN RETURN NEW; END';
CREATE TRIGGER stamped BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION stamp();
ALTER TABLE orders DISABLE TRIGGER stamped;
GRANT SELECT (id), UPDATE ON orders TO reader;
GRANT INSERT ON lines TO reader WITH GRANT OPTION;
ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO reader;
"""


async def test_lists_show_what_refers_to_what_and_who_may_what() -> None:
    base = make(SHOP)
    async with inside(f"app={base.url('owner')}") as wire:

        async def listed(**more: object) -> str:
            return text_of(await wire.call("list_objects", **more))

        tables = await listed()
        for line in (
            "id (key), region -> far.regions",
            'id (key), part (key), customer -> customers, "Old" -> customers, state text ("paid":450|"open":50)',
            "; 1 trigger; row security off, 1 policy; granted to reader: select of id and reader: select, update",
            "(behind `;` all constraints beside keys, indexes, triggers, rules, row security, grants; a",
            "id integer, part integer, (id, part) -> orders", "public.days (partitioned table)",
            "day date, customer -> customers",
        ):  # fmt: skip
            assert line in tables, tables
        assert "days_1" not in tables
        assert "own on public.orders for select to reader using ((customer = 1)) (policy, without effect" in (
            await listed(kind="policies")
        )
        assert "stamped on public.orders: BEFORE INSERT" in await listed(kind="triggers", schema="public")
        assert "(trigger, switched off)" in await listed(kind="triggers")
        assert "as its owner owner (function)" in await listed(kind="functions")
        grants = await listed(kind="grants")
        for line in (
            "public.orders to reader: select, update (table)", "public.orders.id to reader: select (column)",
            "public.lines to reader: insert (may pass it on), select (table)",
            "what owner will make to reader: select (tables)",
            "- functions of public without grants of their own (1) to public: execute (by default)",
        ):  # fmt: skip
            assert line in grants, grants
        # Other tests have roles in the same cluster.
        assert re.search("^- pg_monitor to .*monitor.*: member \\(role\\)$", grants, re.MULTILINE), grants
        roles = await listed(kind="roles", name="owner")
        assert "- owner login" in roles and "reader" not in roles
        assert "postgres login, superuser" in await listed(kind="roles")
        some = await listed(name="ORDER")
        assert "public.orders" in some and "public.lines" not in some and "schema public" not in some
        assert "nothing of that kind" in await listed(name="100%")


async def test_few_tables_are_listed_with_what_a_change_may_meet() -> None:
    base = make()
    base.run(
        "CREATE TABLE parts (id serial PRIMARY KEY, of integer REFERENCES t ON DELETE CASCADE, code text NOT NULL"
        " DEFAULT 'a;b', n integer, is_new boolean, twice integer GENERATED ALWAYS AS (n * 2) STORED, UNIQUE (code));"
        "ALTER TABLE parts ADD CONSTRAINT small CHECK (n < 9) NOT VALID; COMMENT ON COLUMN parts.n IS E'how\\n many';"
        "CREATE UNIQUE INDEX ON parts (n, lower(code)) WHERE n > 5; CREATE INDEX ON parts (n);"
        "INSERT INTO parts (code, is_new) SELECT g, CASE WHEN g % 4 > 0 THEN g % 4 = 1 END"
        " FROM generate_series(1, 400) g;"
        "ANALYZE parts",
        "owner",
    )
    async with inside(f"app={base.url('owner')}") as wire:
        said = text_of(await wire.call("list_objects"))
        assert (
            "id (key), of -> t (null:400), code text! default 'a;b'::text "
            '("1" to "99"), n integer (null:400) /* how many */, '
            "is_new boolean (false:200|true:100|null:100), twice integer generated (null:400); "
            "CHECK ((n < 9)) NOT VALID; of ON DELETE CASCADE; UNIQUE (code); "
            "UNIQUE (n, lower(code)) WHERE (n > 5); INDEX (n)"
        ) in said, said
        assert "null in 25 % of the rows" in text_of(await wire.call("get_table", table="parts"))
        assert "null in" not in await wire.read("postgres://app/public/parts/.schema")
    with base.connect("postgres") as other:
        other.execute("BEGIN; LOCK TABLE parts")
        async with inside("--timeout", "5", f"app={base.url('owner')}") as wire:
            said = text_of(await wire.call("list_objects", name="parts"))
            assert "; expressions are left out: " in said and "< 9" not in said and "> 5" not in said, said


async def test_few_small_tables_are_listed_with_what_their_rows_say() -> None:
    base = make("CREATE TYPE mood AS ENUM ('sad', 'ok')")
    base.run(
        "CREATE TABLE jobs (id bigint PRIMARY KEY, state text, at timestamp, cost numeric(9,2), mood mood, tags text[],"
        " note varchar(90), up bigint REFERENCES jobs);"
        "INSERT INTO jobs SELECT n, CASE n % 3 WHEN 0 THEN 'paid' WHEN 1 THEN ' Paid' END, '2026-01-01'::timestamp"
        " + n * interval '1 day', n * 1.5, 'ok', '{}', CASE WHEN n % 10 = 0 THEN '' WHEN n = 7 THEN ' a ' ELSE"
        " repeat('b', n) END, CASE WHEN n > 5 THEN 1 END FROM generate_series(1, 60) n;"
        "CREATE TABLE kept (id integer, state text); INSERT INTO kept VALUES (1, 'seen'), (2, 'hidden');"
        "ALTER TABLE kept ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON kept USING (id = 1);"
        "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader",
        "owner",
    )
    async with inside(f"app={base.url()}") as wire:
        listed = text_of(await wire.call("list_objects"))
    line = re.search(r"public.jobs (.*)", listed)
    assert line and line[1].startswith("60 rows, "), listed
    for facts in (
        'state text (" Paid":20|"paid":20|null:20)',
        'at timestamp ("2026-01-02 00:00:00" to "2026-03-02 00:00:00")',
        "cost numeric(9,2) (1.50 to 90.00)",
        "mood('sad','ok') (\"ok\":60), tags text[],",
        f'note varchar(90) ("" to "{"b" * 28}…", "":6, spaces around 1)',
        "up -> jobs (null:5)",
    ):
        assert facts in line[1], listed
    assert "public.kept not analyzed" in listed and "seen" not in listed, listed


async def test_one_value_of_all_rows_is_shown_once() -> None:
    base = make("")
    base.run(
        "CREATE TABLE seen (n integer, at timestamp, long text);"
        "INSERT INTO seen VALUES (5, '2026-12-01', repeat('y', 90)), (NULL, '2026-12-01', repeat('y', 91))",
        "owner",
    )
    async with inside(f"app={base.url('owner')}") as wire:
        listed = text_of(await wire.call("list_objects"))
    assert 'n integer (only 5, null:1), at timestamp (only "2026-12-01 00:00:00"), long text (' in listed, listed
    assert f'("{"y" * 28}…" to "{"y" * 28}…")' in listed, listed


async def test_what_the_role_may_not_read_or_there_is_no_time_for_is_told_by_statistics(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    base = make()
    base.run(
        "CREATE TABLE pay (id integer, state text, secret text);"
        "INSERT INTO pay SELECT n, 'paid', 'hidden' FROM generate_series(1, 100) n; ANALYZE pay;"
        "REVOKE ALL ON pay FROM reader; GRANT SELECT (id, state) ON pay TO reader",
        "owner",
    )
    by_statistics = 'state text ("paid" 100%)'
    async with inside(f"app={base.url()}") as wire:
        listed = text_of(await wire.call("list_objects", name="pay"))
        assert "public.pay about 100 rows" in listed and by_statistics in listed and "hidden" not in listed, listed
    monkeypatch.setattr(value_counts, "_SECONDS", -1)
    async with inside(f"app={base.url('owner')}") as wire:
        listed = text_of(await wire.call("list_objects", name="pay"))
        assert by_statistics in listed and "%: shares of rows" in listed and ":rows" not in listed, listed


async def test_what_a_list_counts_is_true_of_all_rows() -> None:
    base = make("CREATE TYPE mood AS ENUM ('sad', 'ok')")
    base.run(
        "CREATE TABLE gone (id integer, state text); INSERT INTO gone SELECT n, 'paid' FROM generate_series(1, 50) n;"
        "ANALYZE gone; DELETE FROM gone; CREATE TABLE fresh (id integer);"
        "CREATE TABLE prose (body text, big numeric, mood mood);"
        "INSERT INTO prose SELECT repeat('a', 59) || ' ' || n, 10::numeric ^ 5000, 'ok' FROM generate_series(1, 9) n;"
        "INSERT INTO prose VALUES (' ' || repeat('b', 90), 1, 'ok');"
        "CREATE FUNCTION shown(mood) RETURNS json LANGUAGE sql RETURN '\"x\"'::json;"
        "CREATE CAST (mood AS json) WITH FUNCTION shown(mood)",
        "owner",
    )
    async with inside(f"app={base.url('owner')}") as wire:
        listed = text_of(await wire.call("list_objects"))
    assert "public.gone 0 rows, " in listed and ": id integer, state text\n" in listed and "%" not in listed, listed
    assert "public.fresh 0 rows, 0 bytes: id integer\n" in listed, listed
    prose = re.search("public.prose 10 rows, (.*)", listed)
    assert prose and len(prose[1]) < 300, listed
    assert ", spaces around 1)" in prose[1] and f"(1 to 1{'0' * 27}…)" in prose[1] and '("ok":10)' in prose[1], listed


async def test_tables_of_which_a_list_tells_no_values_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    describe = value_counts._describe_table  # pyright: ignore[reportPrivateUsage]

    async def note(pages: Any, database: Any, table: Any, deadline: float) -> Any:
        read.append(table["name"])
        return await describe(pages, database, table, deadline)

    monkeypatch.setattr(value_counts, "_describe_table", note)
    base = make("".join(f"CREATE TABLE {name} (n integer);" for name in ("log_1", "log_2", "log_3", "one")))
    async with inside(f"app={base.url('owner')}") as wire:
        assert "(3 of them)" in text_of(await wire.call("list_objects")) and read == ["one"]
        for number in range(5):
            columns = ", ".join(f"c{column} integer" for column in range(25))
            base.run(f"CREATE TABLE wide_{'abcde'[number]} ({columns}, only_{number} text)", "owner")
        read.clear()
        assert "wide_e " in text_of(await wire.call("list_objects", name="wide")) and read == []


async def test_a_list_reads_nothing_from_another_server() -> None:
    base = make("CREATE TABLE far (n integer)")
    base.run(
        "CREATE EXTENSION postgres_fdw; CREATE SERVER other FOREIGN DATA WRAPPER postgres_fdw"
        f" OPTIONS (host '127.0.0.1', port '{cluster().wait_until_ready()}', dbname '{base.name}');"
        "GRANT USAGE ON FOREIGN SERVER other TO owner;"
        "CREATE USER MAPPING FOR owner SERVER other OPTIONS (user 'owner', password 'owner')"
    )
    base.run(
        "INSERT INTO far VALUES (20); CREATE TABLE days (n integer) PARTITION BY RANGE (n);"
        "CREATE TABLE near PARTITION OF days FOR VALUES FROM (0) TO (10); INSERT INTO near VALUES (1);"
        "CREATE FOREIGN TABLE distant PARTITION OF days FOR VALUES FROM (10) TO (90) SERVER other"
        " OPTIONS (table_name 'far')",
        "owner",
    )
    async with inside(f"app={base.url('owner')}") as wire:
        listed = text_of(await wire.call("list_objects", name="days"))
        assert "public.days (partitioned table) not analyzed" in listed, listed
        base.run("ALTER TABLE days DETACH PARTITION distant", "owner")
        assert "n integer (only 1)" in text_of(await wire.call("list_objects", name="days"))


async def test_a_list_has_the_indexes_that_serve_and_each_once() -> None:
    base = make(
        "CREATE TABLE t (id integer PRIMARY KEY, n integer, span int4range, EXCLUDE USING gist (span WITH &&));"
        "CREATE INDEX t_n ON t (n); CREATE INDEX broken ON t (lower(span)); CREATE UNIQUE INDEX broken_too ON t (span);"
        "ALTER TABLE t ADD CONSTRAINT t_n FOREIGN KEY (n) REFERENCES t"
    )
    base.run("UPDATE pg_index SET indisvalid = false WHERE indexrelid IN ('broken'::regclass, 'broken_too'::regclass)")
    async with inside(f"app={base.url('owner')}") as wire:
        listed = text_of(await wire.call("list_objects"))
    assert "; EXCLUDE USING gist (span WITH &&); INDEX (n)\n" in listed, listed


async def test_few_tables_are_listed_with_types_and_functions() -> None:
    labels = ",".join(f"'label {number}'" for number in range(20))
    base = make("CREATE SCHEMA far; CREATE TYPE far.hue AS ENUM ('red')")
    base.run(
        f"CREATE TYPE mood AS ENUM ('fine', 'it''s'); CREATE TYPE many AS ENUM ({labels}); CREATE DOMAIN d AS integer;"
        "CREATE TABLE typed (id bigint PRIMARY KEY, at timestamptz, name varchar(20), mood mood, many many, hue"
        " far.hue, far d, sums numeric(10,2)[], up integer REFERENCES typed, double float8, code char(3));"
        "CREATE FUNCTION add(a integer, b integer) RETURNS integer LANGUAGE sql AS 'SELECT a + b'",
        "owner",
    )
    async with inside(f"app={base.url('owner')}") as wire:
        said = text_of(await wire.call("list_objects"))
        line = re.search("public.typed.*: (id .*)", said)
        assert line and line[1].startswith(
            "id (key), at timestamptz, name varchar(20), mood mood('fine','it''s'), many many('label 0',"
        ), said
        assert line[1].endswith(
            "'label 11',...), hue far.hue, far d, sums numeric(10,2)[], up -> typed, double float8, code char(3)"
        ), said
        assert "- public.add(a integer, b integer) returns integer (function)" in said, said
        assert "add(" not in text_of(await wire.call("list_objects", name="typed"))
        base.run("DO $$BEGIN FOR i IN 1..30 LOOP EXECUTE format('CREATE TABLE n%s (x%s integer)', i, i); EXECUTE"
                 " format('CREATE FUNCTION f%s() RETURNS integer RETURN 1', i); END LOOP; END$$", "owner")  # fmt: skip
        said = text_of(await wire.call("list_objects"))
        assert "at timestamptz" not in said and "at, name, mood" in said, said
        assert said.count("(function)") == 10 and said.rstrip().endswith("[more functions: `kind` functions]"), said


@pytest.mark.slow
async def test_three_hundred_tables_are_one_short_answer() -> None:
    many = ";".join(
        f"CREATE TABLE table_{number} (id integer PRIMARY KEY, name text, made timestamptz, note text, "
        f"up integer REFERENCES table_{number - 1})"
        for number in range(1, 300)
    )
    base = make(f"CREATE TABLE table_0 (id integer PRIMARY KEY); {many}")
    async with inside(f"app={base.url('owner')}") as wire:
        said = text_of(await wire.call("list_objects"))
        assert "truncated" not in said and "[300 here, without columns" in said
        assert "public.table_7 -> table_6" in said.replace(" 0 ->", " ->"), said
        print(f"300 tables: {len(said):,} characters")
        assert len(said) < 15_000
        assert "made timestamptz, note text, up -> table_6" in text_of(await wire.call("list_objects", name="table_7"))


async def test_tables_that_differ_by_a_number_are_one_line() -> None:
    base = make(
        "".join(f'CREATE TABLE "Old {n}" (id integer PRIMARY KEY, note text);' for n in (1, 2, 9, 10, 11))
        + 'INSERT INTO "Old 10" VALUES (1, NULL), (2, NULL); COMMENT ON TABLE "Old 2" IS \'odd\'; ANALYZE'
    )
    async with inside(f"app={base.url('owner')}") as wire:
        said = text_of(await wire.call("list_objects"))
        lines = [re.sub(r", \d.*:", ":", line) for line in said.splitlines() if line.startswith("- ")]
        assert lines == [
            '- public."Old 1" 0 rows: id (key), note text',
            '- public."Old 9" … public."Old 11" (3 of them) about 0 to 2 rows each: id (key), note text',
            '- public."Old 2" 0 rows: id (key), note text -- odd',
        ], said


async def test_schemas_that_are_alike_are_one() -> None:
    tables = "CREATE TABLE {0}.a (id integer PRIMARY KEY, mood {0}.mood); CREATE TABLE {0}.b (id integer, at date);"
    names = ["tenant_1", "tenant_2", "tenant_10", '"Acme Inc"', "globex", "initech"]
    base = make(
        "".join(
            f"CREATE SCHEMA {name}; CREATE TYPE {name}.mood AS ENUM ('sad');{tables.format(name)}" for name in names
        )
        + "CREATE SCHEMA other; CREATE TABLE other.a (id integer); CREATE TABLE other.b (id integer, at date);"
        "CREATE FUNCTION globex.f() RETURNS integer LANGUAGE sql AS 'SELECT 1'"
    )
    async with inside(base.url("owner")) as wire:
        listed = text_of(await wire.call("list_objects"))
        alike = '5 schemas with the same 2 tables and 0 views, 40 kB together: "Acme Inc", initech, tenant_1, tenant_2'
        assert f'{alike}, tenant_10; below, "Acme Inc" stands for all\n' in listed, listed
        assert listed.count('"Acme Inc".') == 2 and "tenant_1." not in listed, listed
        # What has one function more, and what has other columns, stand for themselves.
        assert "schema globex: 2 tables" in listed and "- globex.a" in listed and "- other.b" in listed, listed
        first = text_of(await wire.call("list_objects", limit=3))
        cursor = first.partition("cursor=")[2].partition("]")[0]
        second = text_of(await wire.call("list_objects", limit=3, cursor=cursor))
        lines = [line for line in f"{first}\n{second}".splitlines() if line.startswith("- ")]
        assert sorted(lines) == sorted(line for line in listed.splitlines() if line.startswith("- ")), lines
        assert "tenant_2.b" in text_of(await wire.call("list_objects", schema="tenant_2"))
        found = text_of(await wire.call("list_objects", name="b"))
        assert '- "Acme Inc".b' in found and "- initech.b" in found, found


async def test_a_schema_resource_says_what_it_leaves_out() -> None:
    base = make("".join(f"CREATE TABLE t{number} (id integer);" for number in range(501)))
    async with inside(f"app={base.url('owner')}") as wire:
        told = await wire.read("postgres://app/.schema")
        assert told.endswith("[the first 500 tables and views; `list_objects` lists the others]\n"), told[-200:]


async def test_a_table_shows_the_values_of_columns_that_have_few() -> None:
    base = make(SHOP)
    async with inside(f"app={base.url('owner')}") as wire:
        said = text_of(await wire.call("get_table", table="orders"))
        assert "- state: text, common values by the last ANALYZE paid 90 %, open 10 %" in said, said
        assert "- id: integer, not null" in said
    base.run("ALTER TABLE orders ENABLE ROW LEVEL SECURITY; GRANT SELECT ON orders TO reader")
    async with inside(f"app={base.url('reader')}") as wire:
        assert "values" not in text_of(await wire.call("get_table", table="orders"))


async def test_tables_that_are_joined_through_others_are_told_as_sql() -> None:
    base = make(
        "CREATE TABLE author (id integer PRIMARY KEY); CREATE SCHEMA shop;"
        'CREATE TABLE book (id integer PRIMARY KEY, "Author" integer REFERENCES author);'
        "CREATE TABLE shop.line (book integer REFERENCES book, no integer, PRIMARY KEY (book, no));"
        "CREATE TABLE part (line integer, no integer, FOREIGN KEY (line, no) REFERENCES shop.line (book, no))"
    )
    async with inside(f"app={base.url('owner')}") as wire:
        said = text_of(await wire.call("get_table", table="author"))
        lines = said.partition("joined through others:\n")[2].splitlines()[:2]
        assert lines[0].startswith('- through book ON book."Author" = author.id: shop.line ON '), said
        assert lines[1].startswith("- through shop.line: part ON "), said
        parts = [part for line in lines for part in line.removeprefix("- through ").split(": ")]
        way = " ".join(f"JOIN {part}" for part in parts if " ON " in part)
        assert "[0]" in text_of(await wire.call("query_rows", sql=f"SELECT count(*) FROM author {way}"))
        near = text_of(await wire.call("get_table", table="book")).partition("joined through others:\n")[2]
        assert near.startswith("- through shop.line ON ") and ": part ON " in near, near


async def test_a_schema_counts_what_its_list_shows_and_says_what_it_leaves_out() -> None:
    base = make("CREATE TABLE open (id integer); CREATE TABLE closed (id integer); CREATE VIEW shut AS SELECT 1 AS one")
    base.run("REVOKE ALL ON closed, shut FROM reader", "owner")
    base.run("CREATE EXTENSION pg_buffercache")
    async with inside(base.url()) as wire:
        said = text_of(await wire.call("list_objects"))
        assert "schema public: 1 table, 0 views," in said and ", 2 more that the role can't read" in said, said
        assert "more of extensions" in said and "- public.open " in said and "closed" not in said, said


async def test_tables_that_inherit_one_in_crowds_stand_in_its_line() -> None:
    base = make("CREATE TABLE metrics (at timestamptz, v float8); CREATE TABLE few (x int); CREATE SCHEMA chunks")
    base.run(
        "DO $$ BEGIN FOR i IN 1..30 LOOP EXECUTE format('CREATE TABLE chunks.part_%s () INHERITS (metrics)', i);"
        " EXECUTE format('INSERT INTO chunks.part_%s SELECT now(), i FROM generate_series(1, 10) i', i); END LOOP;"
        " END $$; CREATE TABLE few_child () INHERITS (few); ANALYZE",
        "owner",
    )
    async with inside(base.url("owner")) as wire:
        said = text_of(await wire.call("list_objects"))
        assert "about 300 rows" in said and "with the 30 tables that inherit it" in said, said
        assert "schema chunks: 0 tables, 0 views" in said and ", 30 more that inherit" in said and "part_" not in said
        assert "public.few_child" in said
        said = text_of(await wire.call("list_objects", kind="counts"))
        assert "public.metrics 300 rows, with the 30 tables that inherit it" in said and "part_" not in said, said
        assert "public.few_child 0 rows\n" in said and "few 0 rows, without the 1 table that" in said, said
        assert "part_30" in text_of(await wire.call("list_objects", schema="chunks"))
        assert "part_30" in text_of(await wire.call("list_objects", name="part_"))
        said = text_of(await wire.call("get_table", table="metrics"))
        assert "chunks.part_8, ... 22 more" in said and "part_9" not in said, said
        assert "about 0 rows" in said and "its rows and bytes are its own" in said, said
        assert "its own" not in text_of(await wire.call("get_table", table="few_child"))


async def test_values_are_told_whole_and_of_all_rows_that_a_query_reads() -> None:
    base = make()
    base.run(
        "CREATE TABLE parent (state text, long text); CREATE TABLE child () INHERITS (parent);"
        "INSERT INTO parent SELECT CASE WHEN n = 1 THEN 'rare' ELSE 'own' END, repeat('x', 41)"
        " FROM generate_series(1, 1000) n;"
        "INSERT INTO parent SELECT 'rare' FROM generate_series(1, 3);"
        "INSERT INTO child SELECT 'inherited' FROM generate_series(1, 1000); ANALYZE parent, child",
        "owner",
    )
    async with inside(f"app={base.url('owner')}") as wire:
        listed = text_of(await wire.call("list_objects"))
        parent = r'parent about [^:]*: state text \("(?:own|inherited)" 50%\|"(?:own|inherited)" 50%\|"rare" 1%\)'
        assert re.search(parent, listed), listed
        assert "xxx" not in listed, listed
        assert "xxx" not in text_of(await wire.call("get_table", table="parent"))


async def test_what_is_dropped_while_it_is_read_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    base = make()
    base.run("CREATE UNIQUE INDEX u_note ON u (note); ALTER TABLE u ADD CHECK (id > 0)", "owner")
    sql: str = getattr(description, "_DESCRIBE")  # noqa: B009
    for function in ("pg_get_indexdef(i.indexrelid)", "pg_get_constraintdef(oid)", "pg_get_triggerdef(oid)"):
        assert function in sql
        sql = sql.replace(function, "NULL::text")
    monkeypatch.setattr(description, "_DESCRIBE", sql)
    async with inside(f"app={base.url()}") as wire:
        for tool, arguments in (("list_objects", {}), ("get_table", {"table": "u"})):
            said = text_of(await wire.call(tool, **arguments))
            assert "public.u" in said and "note text" in said.replace(": ", " ") and "None" not in said, said


async def test_a_membership_is_told_once_with_its_options() -> None:
    base = make()
    names = ("team", "lead", "giver")
    base.run("CREATE ROLE team; CREATE ROLE lead; CREATE ROLE giver LOGIN PASSWORD 'giver' CREATEROLE")
    try:
        base.run("GRANT team TO giver WITH ADMIN OPTION; GRANT team TO lead WITH ADMIN OPTION")
        base.run("GRANT team TO lead", "giver")
        quiet = ""
        if major() >= 16:
            base.run("GRANT lead TO giver WITH INHERIT FALSE, SET FALSE")
            quiet = "lead without inherit without set, "
        async with inside(f"app={base.url('owner')}") as wire:
            roles = text_of(await wire.call("list_objects", kind="roles"))
        assert "- lead no login, member of team with admin (role)" in roles, roles
        assert f"- giver login, createrole, member of {quiet}team with admin (role)" in roles, roles
    finally:
        for name in reversed(names):
            base.run(f"DROP OWNED BY {name}; DROP ROLE {name}")
