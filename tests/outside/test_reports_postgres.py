"""What users reported of other servers and tools for PostgreSQL, tried on mcp-postgres with tables of our own."""

import re
import tracemalloc
from pathlib import Path
from typing import Any

import psycopg
import pytest

from mcp_batteries.errors import Unavailable
from mcp_batteries.settings import load
from mcp_postgres.engine.transfer.number_values import NumberValues
from mcp_postgres.policy import Policy
from mcp_postgres.settings import Settings
from postgres.serving import Base, cluster, inside, major, make, text_of

pytestmark = pytest.mark.anyio

_DOCUMENTS = """
CREATE TABLE docs (id int PRIMARY KEY, body jsonb, list jsonb[], amount numeric);
INSERT INTO docs VALUES (1, '{"a": 12.50, "b": [1, {"c": null}]}', ARRAY['{"s": "t"}'::jsonb, '[1]'], 1234.5600);
"""
_MIXED_CASE = """
CREATE TABLE "Account" (id int, "tenantId" int, PRIMARY KEY (id, "tenantId"));
CREATE TABLE "Role" ("accountId" int, "tenantId" int, FOREIGN KEY ("accountId", "tenantId") REFERENCES "Account");
"""


@pytest.mark.reported("crystaldba/postgres-mcp#148")
@pytest.mark.parametrize(
    ("sql", "row"),
    [
        ("SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) FROM docs", "[1234.56]"),
        ("SELECT sum(id) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE TIES) FROM docs", "[1]"),
        (
            "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 3), "
            "u AS MATERIALIZED (SELECT max(n) FROM t) SELECT * FROM u JOIN (WITH v AS (SELECT 3) TABLE v) w ON true",
            "[3,3]",
        ),
    ],
)
async def test_an_analysts_query_is_a_query(sql: str, row: str) -> None:
    base = make(_DOCUMENTS)
    for role in ("reader", "postgres"):
        async with inside(base.url(role)) as wire:
            assert row in text_of(await wire.call("query_rows", sql=sql))


@pytest.mark.reported("crystaldba/postgres-mcp#178")
@pytest.mark.parametrize(
    "place",
    [
        "SELECT {}",
        "SELECT * FROM {}",
        "SELECT * FROM ROWS FROM ({})",
        "SELECT f.* FROM docs, LATERAL {} f",
        "VALUES ({})",
    ],
)
async def test_no_clause_lets_a_superuser_read_files(place: str) -> None:
    async with inside(make(_DOCUMENTS).url("postgres")) as wire:
        done = await wire.call("query_rows", sql=place.format("pg_read_file('/etc/passwd')"))
    assert done["isError"] and "`pg_read_file()` may do more than read" in text_of(done)


@pytest.mark.reported("crystaldba/postgres-mcp#153")
async def test_what_only_reads_may_be_explained_with_its_times() -> None:
    async with inside(make(_DOCUMENTS).url()) as wire:
        said = text_of(await wire.call("query_rows", sql="EXPLAIN (ANALYZE, BUFFERS) SELECT * FROM docs"))
        assert "actual time=" in said
        assert "docs" in text_of(await wire.call("explain_query", sql="SELECT * FROM docs", analyze=True))
        done = await wire.call("query_rows", sql="EXPLAIN ANALYZE DELETE FROM docs")
        assert done["isError"] and "more than read" in text_of(done)


@pytest.mark.reported("awslabs/mcp#4575")
async def test_no_setting_of_one_call_is_met_by_the_next() -> None:
    async with inside(make(_DOCUMENTS).url(), "--connections", "1") as wire:
        before = text_of(await wire.call("query_rows", sql="SELECT current_user, current_setting('search_path')"))
        for sql in (
            "SELECT set_config('search_path', 'evil', false)",
            "SET search_path = evil; SELECT 1",
            "SET SESSION AUTHORIZATION postgres; SELECT 1",
            "SET ROLE postgres; SELECT 1",
            "RESET ALL",
            "DISCARD ALL",
        ):
            await wire.call("query_rows", sql=sql)
            after = text_of(await wire.call("query_rows", sql="SELECT current_user, current_setting('search_path')"))
            assert after == before, sql


@pytest.mark.reported("awslabs/mcp#311")
async def test_what_is_refused_is_not_done_all_the_same() -> None:
    base = make(_DOCUMENTS)
    async with inside(base.url("owner")) as wire:
        done = await wire.call("query_rows", sql="INSERT INTO docs (id) VALUES (2) RETURNING id")
    assert done["isError"] and base.rows("SELECT id FROM docs") == [(1,)]


@pytest.mark.reported("t8y2/dbx#5678")
@pytest.mark.parametrize(
    ("literal", "value"),
    [("'ok'", "ok"), ("$dbx$o;-- k$dbx$", "o;-- k"), ("E'o\\\\k'", "o\\\\k"), ("'it''s; '", "it's; ")],
)
async def test_a_text_reaches_the_database_as_it_is_written(literal: str, value: str) -> None:
    base = make("CREATE TABLE t (x text)")
    async with inside("--write", base.url("owner")) as wire:
        said = text_of(await wire.call("query_rows", sql=f"SELECT {literal} AS test"))
        assert said == f'[1 row]\n["test"]\n["{value}"]\n'
        await wire.call("write_rows", sql=f"INSERT INTO t VALUES ({literal})")
    assert base.rows("SELECT x FROM t") == [(value.replace("\\\\", "\\"),)]


@pytest.mark.reported("microsoft/vscode-postgresql#17")
@pytest.mark.reported("9tigerio/db2rest#598")
@pytest.mark.reported("n0nSmoker/SQLAlchemy-serializer#59")
@pytest.mark.reported("Tracer-Cloud/opensre#5350")
async def test_documents_arrays_of_them_and_numerics_arrive() -> None:
    async with inside(make(_DOCUMENTS).url()) as wire:
        said = text_of(await wire.call("query_rows", sql="SELECT body, amount, list[1], to_jsonb(list) FROM docs"))
    assert said.splitlines()[2] == '[{"a": 12.50, "b": [1, {"c": null}]},"1234.5600",{"s": "t"},[{"s": "t"}, [1]]]'


@pytest.mark.reported("cweijan/vscode-database-client#1466")
@pytest.mark.reported("OtterMind/Chat2DB#2184")
async def test_a_key_of_two_columns_is_one_key_and_its_names_can_be_copied() -> None:
    base = make(_MIXED_CASE)
    async with inside(base.url()) as wire:
        listed = text_of(await wire.call("list_objects"))
        assert '("accountId", "tenantId") -> "Account"' in listed
        said = text_of(await wire.call("get_table", table='public."Role"'))
        assert 'FOREIGN KEY ("accountId", "tenantId") REFERENCES "Account"(id, "tenantId")' in said


@pytest.mark.reported("ozum/pg-structure#21")
async def test_a_key_leads_to_the_table_of_the_right_schema() -> None:
    tables = "".join(
        f"CREATE SCHEMA {schema}; CREATE TABLE {schema}.parent (id text PRIMARY KEY);" for schema in ("one", "two")
    )
    base = make(tables + "CREATE TABLE two.child (id text REFERENCES one.parent);")
    async with inside(base.url("owner")) as wire:
        assert "- two.child 0 rows, 8,192 bytes: id -> one.parent" in text_of(await wire.call("list_objects"))
        assert "REFERENCES one.parent(id)" in text_of(await wire.call("get_table", table="two.child"))


_STOCK = """
CREATE SCHEMA warehouse; CREATE TABLE warehouse.stock (id int, prices numeric[]);
INSERT INTO warehouse.stock VALUES (1, ARRAY[NULL, 1.50]);
CREATE TABLE "Notes" ("Title" text); INSERT INTO "Notes" VALUES ('a');
CREATE FUNCTION half(n int) RETURNS numeric LANGUAGE sql STABLE AS 'SELECT n / 2.0';
GRANT USAGE ON SCHEMA warehouse TO reader; GRANT SELECT ON ALL TABLES IN SCHEMA warehouse TO reader;
"""


@pytest.mark.reported("bytebase/dbhub#80")
@pytest.mark.reported("awslabs/mcp#470")
@pytest.mark.reported("libredb/libredb-studio#496")
@pytest.mark.reported("cloudflare/workers-sdk#3892")
@pytest.mark.reported("crystaldba/postgres-mcp#218")
@pytest.mark.reported("microsoft/azuredatastudio-postgresql#189")
@pytest.mark.reported("teaguesterling/duckdb_mcp#19")
async def test_comments_ends_and_values_of_a_statement_mean_what_they_mean_in_psql() -> None:
    base = make(_STOCK)
    async with inside(base.url()) as wire:
        for sql, parameters, row in (
            ('-- Fetch the notes\nSELECT * FROM "Notes";', None, '["a"]'),
            ('SELECT count(*) FROM "Notes" ;  ', None, "[1]"),
            ('/* a /* b */ ; DROP TABLE "Notes"; -- */ SELECT 7', None, "[7]"),
            ("SELECT 1;\n-- comment;\nSELECT 2;", None, "2 of 2: [1 row]"),
            ("SELECT * FROM half(3)", None, '["1.5000'),
            ("SELECT prices FROM warehouse.stock", None, '["{NULL,1.50}"]'),
            ("SELECT $1::text IS NULL, $1", [None], "[true,null]"),
        ):
            done = await wire.call("query_rows", sql=sql, **({"parameters": parameters} if parameters else {}))
            assert not done.get("isError") and row in text_of(done), sql
        alone = text_of(await wire.call("query_rows", sql="-- only a comment"))
        assert alone.rstrip().endswith("Send the whole statement."), alone
    assert base.rows('SELECT count(*) FROM "Notes"') == [(1,)]


@pytest.mark.reported("antonorlov/mcp-postgres-server#1")
@pytest.mark.reported("crystaldba/postgres-mcp#181")
@pytest.mark.reported("mindsdb/mindshub#11599")
@pytest.mark.reported("googleapis/mcp-toolbox#1829")
async def test_a_name_in_another_schema_or_with_capitals_is_told_as_it_is_written() -> None:
    async with inside(make(_STOCK).url()) as wire:
        assert "- warehouse.stock " in text_of(await wire.call("list_objects"))
        for sql, name in (
            ("SELECT * FROM stock", "`warehouse.stock`"), ("SELECT * FROM Notes", '`"Notes"`'),
            ('SELECT title FROM "Notes"', '`"Title"`'),
        ):  # fmt: skip
            done = await wire.call("query_rows", sql=sql)
            assert done["isError"] and f"Did you mean {name}?" in text_of(done), sql


def _make_encoded(encoding: str, word: bytes) -> Base:
    """A database in another encoding, with a table of one word."""
    base = Base(f"reported_{encoding.lower()}")
    with Base("postgres").connect() as connection:
        connection.execute(f"CREATE DATABASE {base.name} ENCODING '{encoding}' TEMPLATE template0 LOCALE 'C'".encode())
    with psycopg.connect(base.url("postgres"), autocommit=True, client_encoding=encoding) as connection:
        connection.execute(b"CREATE TABLE people (name text); GRANT SELECT ON people TO PUBLIC")
        connection.execute(b"INSERT INTO people VALUES ('" + word + b"')")
    return base


@pytest.mark.reported("hasura/graphql-engine#7315")
@pytest.mark.reported("graphile/crystal#1513")
async def test_a_latin1_database_is_listed_and_read() -> None:
    base = _make_encoded("LATIN1", "Zürich".encode("latin-1"))
    async with inside(base.url()) as wire:
        assert "- public.people " in text_of(await wire.call("list_objects"))
        assert '["Zürich"]' in text_of(await wire.call("get_table", table="people", sample=1))
        said = await wire.call("query_rows", sql="SELECT count(*) FROM people WHERE name = $1", parameters=["Zürich"])
        assert text_of(said).endswith("[1]\n")


@pytest.mark.reported("TeamSQL/desktop-app#259")
async def test_a_database_without_an_encoding_is_listed_and_read() -> None:
    base = _make_encoded("SQL_ASCII", b"se\xed\x61 ")
    async with inside(base.url()) as wire:
        assert "- public.people " in text_of(await wire.call("list_objects"))
        assert '["se\ufffda "]' in text_of(await wire.call("query_rows", sql="SELECT * FROM people"))


@pytest.mark.reported("bytebase/dbhub#416")
@pytest.mark.reported("modelcontextprotocol/servers#2158")
@pytest.mark.reported("dbcodeio/public#482")
async def test_times_are_what_is_stored_wherever_the_server_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/Chicago")
    base = make("CREATE TABLE t (a timestamp, b date, c timestamptz); GRANT SELECT ON t TO PUBLIC;")
    base.run("INSERT INTO t VALUES ('2026-03-01 00:30', '2026-03-01', '2026-03-01 00:30+00')")
    base.run("INSERT INTO t VALUES ('-infinity', 'infinity', NULL)")
    async with inside(base.url()) as wire:
        said = text_of(await wire.call("query_rows", sql="SELECT a, b, c AT TIME ZONE 'UTC' FROM t"))
        assert '["2026-03-01 00:30:00","2026-03-01","2026-03-01 00:30:00"]' in said, said
        assert '["-infinity","infinity",null]' in said, said


@pytest.mark.reported("cweijan/vscode-database-client#1671")
async def test_json_in_a_csv_file_stays_json(tmp_path: Path) -> None:
    base = make("CREATE TABLE audit (id integer, input jsonb, output json);")
    (tmp_path / "audit.csv").write_text('id,input,output\n1,"{""a"": [1, ""x""]}","[{}]"\n2,,\n', "utf-8")
    async with inside("--write", "--files", tmp_path, base.url("owner")) as wire:
        said = text_of(await wire.call("copy_from_file", file="audit.csv", table="audit"))
        assert said.startswith("Inserted 2 rows"), said
    assert base.rows("SELECT id, input, output FROM audit ORDER BY id") == [(1, {"a": [1, "x"]}, [{}]), (2, None, None)]


@pytest.mark.reported("pgEdge/pgedge-postgres-mcp#74")
@pytest.mark.reported("tconbeer/harlequin-postgres#40")
async def test_partitions_stay_behind_their_table_and_materialized_views_are_listed() -> None:
    parts = "".join(
        f"CREATE TABLE day_{day} PARTITION OF events FOR VALUES FROM ({day}) TO ({day + 1});" for day in range(40)
    )
    base = make(
        f"CREATE TABLE events (day integer, word text) PARTITION BY RANGE (day); {parts}"
        "CREATE MATERIALIZED VIEW words AS SELECT DISTINCT word FROM events;"
    )
    async with inside(base.url()) as wire:
        listed = text_of(await wire.call("list_objects"))
        assert "public.events" in listed and "public.words" in listed and "day_7" not in listed, listed
        assert "- day_1 FOR VALUES" in text_of(await wire.call("get_table", table="events"))


_KEPT_INDEXES = """
CREATE TABLE prefixed (word text, number int);
CREATE INDEX prefixed_word ON prefixed (word COLLATE "C");
CREATE INDEX prefixed_both ON prefixed (word, number);
CREATE TABLE ordered (a int, b int, c int);
CREATE INDEX ordered_two ON ordered (a, b DESC);
CREATE INDEX ordered_three ON ordered (a, b, c);
CREATE TABLE excluded (span int4range, EXCLUDE USING gist (span WITH &&));
CREATE INDEX excluded_plain ON excluded USING gist (span);
CREATE TABLE replicated (id int NOT NULL);
CREATE UNIQUE INDEX replicated_first ON replicated (id);
CREATE UNIQUE INDEX replicated_second ON replicated (id);
ALTER TABLE replicated REPLICA IDENTITY USING INDEX replicated_second;
CREATE TABLE parted (id int) PARTITION BY RANGE (id);
CREATE TABLE parted_one PARTITION OF parted FOR VALUES FROM (0) TO (9);
CREATE INDEX parted_own ON parted_one (id);
CREATE INDEX parted_all ON ONLY parted (id);
CREATE INDEX parted_attached ON parted_one (id);
ALTER INDEX parted_all ATTACH PARTITION parted_attached;
CREATE TABLE constrained (id int);
CREATE UNIQUE INDEX constrained_plain ON constrained (id);
ALTER TABLE constrained ADD CONSTRAINT constrained_rule UNIQUE (id);
"""


@pytest.mark.reported("mfvanek/pg-index-health#76")
@pytest.mark.reported("PeerDB-io/peerdb#3799")
@pytest.mark.reported("e2b-dev/infra#3407")
async def test_an_index_that_may_go_is_one_whose_work_another_does() -> None:
    base = make(_KEPT_INDEXES)
    async with inside("--dba", base.url("owner")) as wire:
        report = text_of(await wire.call("get_health", areas=["indexes"]))
    dispensable = {line.split(" index ")[1].split(" (")[0] for line in report.splitlines() if " index " in line}
    assert dispensable == {"excluded_plain", "replicated_first", "parted_own", "constrained_plain"}, report
    for name in dispensable:
        base.run(f"DROP INDEX {name}")


@pytest.mark.reported("mfvanek/pg-index-health#76")
async def test_the_stricter_of_two_unique_indexes_is_kept() -> None:
    if major() < 15:
        pytest.skip("NULLS NOT DISTINCT came with PostgreSQL 15")
    base = make(
        "CREATE TABLE one (id int); CREATE UNIQUE INDEX loose ON one (id);"
        "CREATE UNIQUE INDEX strict ON one (id) NULLS NOT DISTINCT;"
    )
    async with inside("--dba", base.url("owner")) as wire:
        report = text_of(await wire.call("get_health", areas=["indexes"]))
    assert "duplicate index loose" in report and "duplicate index strict" not in report, report


@pytest.mark.reported("OPMDG/check_pgactivity#292")
@pytest.mark.reported("ankane/pghero#542")
async def test_a_sequence_ends_where_the_column_does_that_it_fills() -> None:
    base = make(
        "CREATE SEQUENCE shared_numbers; CREATE TABLE orders (id int DEFAULT nextval('shared_numbers'));"
        "SELECT setval('shared_numbers', 2000000000);"
        "CREATE TABLE falling (id int GENERATED ALWAYS AS IDENTITY (INCREMENT -1 MINVALUE -100));"
        "SELECT setval('falling_id_seq', -90);"
        "CREATE TABLE countdown (id int GENERATED ALWAYS AS IDENTITY (INCREMENT -1 MINVALUE 1 MAXVALUE 100 START 100));"
        "SELECT setval('countdown_id_seq', 90);"
    )
    async with inside("--dba", base.url("owner")) as wire:
        report = text_of(await wire.call("get_health", areas=["sequences"]))
    assert "sequence shared_numbers is at 2000000000 of 2147483647 (93 %)" in report, report
    assert "sequence falling_id_seq is at -90 of -100 (90 %)" in report, report
    assert "countdown" not in report, report


_NUMBERED = """
CREATE TABLE "Odd" ("Id" serial PRIMARY KEY, word text);
CREATE TABLE always (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, word text);
CREATE TABLE falling (id int GENERATED BY DEFAULT AS IDENTITY (INCREMENT -1) PRIMARY KEY, word text);
CREATE TABLE parted (id bigserial PRIMARY KEY, word text) PARTITION BY RANGE (id);
CREATE TABLE parted_all PARTITION OF parted FOR VALUES FROM (0) TO (1000);
CREATE TABLE ahead (id serial PRIMARY KEY, word text);
SELECT setval('ahead_id_seq', 100, false);
"""


@pytest.mark.reported("supabase/supabase#45073")
@pytest.mark.reported("n8n-io/n8n#29762")
@pytest.mark.reported("directus/directus#6321")
@pytest.mark.parametrize("role", ["owner", "postgres"])
@pytest.mark.parametrize("table", ['"Odd"', "always", "falling", "parted"])
async def test_numbers_of_a_file_leave_their_sequence_behind_which_is_told(
    table: str, role: str, tmp_path: Path
) -> None:
    sign = "-" if table == "falling" else ""
    (tmp_path / "rows.csv").write_text(f"id,word\n{sign}1,a\n{sign}2,b\n{sign}3,b\n", "utf-8")
    (tmp_path / "words.csv").write_text("word\nc\n", "utf-8")
    base = make(_NUMBERED)
    async with inside("--write", "--files", tmp_path, base.url(role)) as wire:
        said = text_of(await wire.call("copy_from_file", file="rows.csv", table=table))
        remedy = said.split("is behind the rows: `")[1].split("` in `write_rows`")[0]
        for tool, arguments in (
            ("write_rows", {"sql": f"INSERT INTO {table} (word) VALUES ('c')"}),
            ("copy_from_file", {"file": "words.csv", "table": table}),
        ):
            refused = await wire.call(tool, **arguments)
            said = text_of(refused)
            assert refused["isError"] and f"left to its sequence: that is behind the rows; `{remedy}`" in said, said
        again = await wire.call("copy_from_file", file="rows.csv", table=table)
        assert again["isError"] and "left to its sequence" not in text_of(again)
        await wire.call("write_rows", sql=remedy)
        said = text_of(await wire.call("copy_from_file", file="words.csv", table=table))
        assert said == f"Inserted 1 row into `public.{table}` (word).\n"


@pytest.mark.reported("supabase/supabase#45073")
async def test_a_sequence_that_is_ahead_of_its_rows_is_not_called_behind(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("id,word\n1,a\n7,b\n", "utf-8")
    base = make(_NUMBERED)
    async with inside("--write", "--files", tmp_path, base.url("owner")) as wire:
        assert "behind" not in text_of(await wire.call("copy_from_file", file="rows.csv", table="ahead"))
        refused = await wire.call("write_rows", sql="INSERT INTO ahead VALUES (7, 'c')")
        assert refused["isError"] and "behind" not in text_of(refused)


@pytest.mark.reported("supabase/supabase#45073")
async def test_of_a_masked_column_nobody_is_told_how_far_its_numbers_are(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("id,word\n1,a\n7,b\n", "utf-8")
    base = make(_NUMBERED)
    options = ["--mask", "public.always.id", "--write", "--files", tmp_path]
    async with inside(*options, base.url("postgres")) as wire:
        assert "behind" not in text_of(await wire.call("copy_from_file", file="rows.csv", table="always"))
        said = text_of(await wire.call("copy_from_file", file="rows.csv", table="parted"))
        assert "is behind the rows: the operator can bring it up by" in said, said


@pytest.mark.reported("supabase/supabase#20349")
@pytest.mark.reported("cockroachdb/cockroach#136758")
async def test_truncate_takes_rows_too_that_policies_hide_which_is_told() -> None:
    base = make(
        "CREATE TABLE accounts (id int, holder text); INSERT INTO accounts VALUES (1, 'reader'), (2, 'somebody');"
        "ALTER TABLE accounts ENABLE ROW LEVEL SECURITY; GRANT ALL ON accounts TO reader;"
        "CREATE POLICY own ON accounts TO reader USING (holder = current_user);"
    )
    base.run("GRANT reader TO owner")
    hidden = "with the rows that policies hide from the role, of which no sample shows any: public.accounts\n"
    try:
        async with inside("--write", base.url("owner")) as wire:
            said = text_of(await wire.call("write_rows", sql="TRUNCATE accounts", as_role="reader"))
            assert f"TRUNCATE TABLE, {hidden}" in said, said
            assert "hide" not in text_of(await wire.call("write_rows", sql="TRUNCATE accounts", dry_run=True))
    finally:
        base.run("REVOKE reader FROM owner")
    async with inside("--write", base.url("reader")) as wire:
        assert f"TRUNCATE TABLE, {hidden}" in text_of(await wire.call("write_rows", sql="TRUNCATE accounts"))


@pytest.mark.reported("dbeaver/dbeaver#23212")
@pytest.mark.reported("dannymcc/may#250")
@pytest.mark.parametrize("date", ["11/02/22", "11.02.22", "11-Feb-22", "Feb 11, 22", "11/02/22 10:00:00.123456"])
@pytest.mark.parametrize("form", ["csv", "jsonl"])
async def test_no_day_of_a_file_is_taken_for_a_year(date: str, form: str, tmp_path: Path) -> None:
    texts = {"csv": f'day,moment\n2022-02-11,\n,"{date}"\n', "jsonl": f'{{"day":null,"moment":"{date}"}}\n'}
    (tmp_path / f"days.{form}").write_text(texts[form], "utf-8")
    base = make("CREATE DOMAIN instant AS timestamptz; CREATE TABLE days (day date, moment instant);")
    async with inside("--write", "--files", tmp_path, base.url("owner")) as wire:
        refused = await wire.call("copy_from_file", file=f"days.{form}", table="days")
    said = text_of(refused)
    assert refused["isError"] and f"a date for `moment` whose year has two digits: `{date}`" in said, said
    assert base.rows("SELECT * FROM days") == []


@pytest.mark.reported("dbeaver/dbeaver#23212")
async def test_dates_with_a_whole_year_come_in_from_a_file(tmp_path: Path) -> None:
    lines = ["2022-02-11", "20220211", "2022.02.11", "2022-Feb-11", "infinity", "", "0099-01-08 BC"]
    (tmp_path / "days.csv").write_text("\n".join(["day,at", *(f"{line},10:00" for line in lines)]), "utf-8")
    base = make("CREATE TABLE days (day date, at time);")
    async with inside("--write", "--files", tmp_path, base.url("owner")) as wire:
        said = text_of(await wire.call("copy_from_file", file="days.csv", table="days"))
    assert said == f"Inserted {len(lines)} rows into `public.days` (day, at).\n"
    days = [None if day is None else str(day) for (day,) in base.rows("SELECT day::text FROM days")]
    assert days == ["2022-02-11"] * 4 + ["infinity", None, "0099-01-08 BC"]


@pytest.mark.reported("fluent/fluent-plugin-sql#140")
@pytest.mark.reported("ballerina-platform/ballerina-lang#15286")
@pytest.mark.parametrize("form", ["csv", "jsonl"])
async def test_offsets_that_a_column_does_not_keep_are_told(form: str, tmp_path: Path) -> None:
    times = ["2024-06-01T12:00:00+02:00", "2024-06-01 12:00:00-0330", "2024-06-01T12:00:00Z", "2024-06-01 12:00+00"]
    rows = {
        "csv": "zoned,local\n" + "".join(f"{time},{time}\n" for time in times),
        "jsonl": "".join(f'{{"zoned":"{time}","local":"{time}"}}\n' for time in times),
    }
    (tmp_path / f"times.{form}").write_text(rows[form], "utf-8")
    base = make("CREATE TABLE times (zoned timestamptz, local timestamp);")
    async with inside("--write", "--files", tmp_path, base.url("owner")) as wire:
        said = text_of(await wire.call("copy_from_file", file=f"times.{form}", table="times", dry_run=True))
    note = "`local` has no time zone: of its times the offsets are left out, as +02:00, -0330."
    assert said.splitlines()[1:] == [note], said


@pytest.mark.reported("OSGeo/gdal#9127")
@pytest.mark.parametrize("form", ["csv", "jsonl"])
async def test_decimals_and_times_of_day_that_a_column_does_not_keep_are_told(form: str, tmp_path: Path) -> None:
    rows = {
        "csv": "price,rate,tens,any,day\n10.10,1,7E2,0.125,2024-01-31\n10.005,1e-3,123,2,2024-01-31 10:30\n,,,,\n",
        "jsonl": '{"price": 10.10, "rate": 1, "tens": "7E2", "any": 0.125, "day": "2024-01-31T00:00:00"}\n'
        '{"price": 10.005, "rate": "1e-3", "tens": 123, "any": 2, "day": "2024-01-31 10:30"}\n',
    }
    (tmp_path / f"prices.{form}").write_text(rows[form], "utf-8")
    base = make(
        "CREATE DOMAIN rate AS numeric(6, 2);"
        'CREATE TABLE prices (price numeric(10, 2), rate rate, tens numeric(4, -1), "any" numeric, day date);'
    )
    async with inside("--write", "--files", tmp_path, base.url("owner")) as wire:
        said = text_of(await wire.call("copy_from_file", file=f"prices.{form}", table="prices", dry_run=True))
    rounded = "`price` in 1 record, the first `10.005` in record 2; `rate` in 1 record, the first `1e-3` in record 2; "
    assert said.splitlines()[1:] == [
        "`day` keeps dates: of its times the time of day is left out, as of `2024-01-31 10:30` in record 2.",
        f"Rounded to the decimals of the column: {rounded}`tens` in 1 record, the first `123` in record 2. "
        "Type numeric without a scale keeps all.",
    ], said


@pytest.mark.reported("OSGeo/gdal#9127")
@pytest.mark.parametrize(
    ("value", "scale", "is_rounded"),
    [
        ("1" * 40 + ".005", 2, True),
        ("1" * 40 + ".0500", 2, False),
        (1234, -2, True),
        (1200, -2, False),
        ("0", -2, False),
        ("1e-9", 2, True),
        ("1.5e1", 0, False),
        ("NaN", 2, False),
        ("-Infinity", 2, False),
        ("1e999999999", 2, False),
        ("n/a", 2, False),
        (True, 2, False),
        (None, 2, False),
    ],
)
def test_a_number_with_more_decimals_is_seen_whatever_its_length(value: Any, scale: int, is_rounded: bool) -> None:
    numbers = NumberValues([{"name": "price", "category": "N", "scale": scale}])
    numbers.check([value], 1)
    assert bool(numbers.describe()) == is_rounded


@pytest.mark.reported("odoo/odoo#259")
@pytest.mark.reported("dbeaver/dbeaver#10160")
@pytest.mark.parametrize(
    ("value", "kind", "expression", "stored"),
    [
        ("31.12.2024", "date", "to_date(value, 'DD.MM.YYYY')", "2024-12-31"),
        ("1,234.50", "numeric", "to_number(value, '999G999D99')", "1234.50"),
    ],
)
async def test_a_value_in_another_form_comes_in_by_the_way_that_its_refusal_tells(
    value: str, kind: str, expression: str, stored: str, tmp_path: Path
) -> None:
    (tmp_path / "values.csv").write_text(f'value\n"{value}"\n', "utf-8")
    base = make(f"CREATE TABLE kept (value {kind});")
    async with inside("--write", "--ddl", "--files", tmp_path, base.url("owner")) as wire:
        refused = text_of(await wire.call("copy_from_file", file="values.csv", table="kept"))
        assert "Else import it into a new table" in refused and expression.replace("value", "name") in refused
        await wire.call("copy_from_file", file="values.csv", table="raw")
        await wire.call("write_rows", sql=f"INSERT INTO kept SELECT {expression} FROM raw")
    assert base.rows("SELECT value::text FROM kept") == [(stored,)]


@pytest.mark.reported("amacneil/dbmate#143")
@pytest.mark.reported("maxking/docker-mailman#769")
@pytest.mark.reported("dani-garcia/vaultwarden#1910")
@pytest.mark.reported("bunkerity/bunkerweb#3344")
@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("postgresql://shop:s3c%ret@host/db", "Write % as %25"),
        ("postgresql://shop:s3c%adret@host/db", "Write a % itself as %25"),
        ("'postgresql://shop:s3cret@host/db'", "quotes around it"),
        ('"host=h password=s3cret"', "quotes around it"),
        ('mine="postgresql://shop:s3cret@host/db"', "quotes around it"),
        ("postgresql://${DB_USER}:${DB_PASSWORD}@host/db", "a placeholder"),
        ("host=h password=${DB_PASSWORD}", "a placeholder"),
        ("postgresql://postgres:[YOUR-PASSWORD]@db.example.org/postgres", "a placeholder"),
    ],
)
def test_an_address_as_it_was_found_is_refused_with_what_to_do(address: str, said: str) -> None:
    with pytest.raises(Unavailable) as refused:
        Policy(load(Settings, [address]), environment={})
    assert said in str(refused.value) and "s3c" not in str(refused.value) and "host" not in refused.value.failure


_WARNING = """
CREATE TABLE prices (id int PRIMARY KEY, price numeric, secret text);
INSERT INTO prices SELECT number, number, 'hush' FROM generate_series(1, 3) number;
CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF NEW.price < 0 THEN RAISE WARNING 'a price below zero: %', NEW.secret; END IF; RETURN NEW; END $$;
CREATE TRIGGER warn BEFORE INSERT OR UPDATE ON prices FOR EACH ROW EXECUTE FUNCTION warn();
"""


@pytest.mark.reported("dbeaver/dbeaver#2572")
@pytest.mark.reported("psycopg/psycopg2#304")
async def test_what_a_change_warns_of_is_told(tmp_path: Path) -> None:
    (tmp_path / "prices.csv").write_text("id,price,secret\n4,-1,hush\n", "utf-8")
    base = make(_WARNING)
    base.run("CREATE TABLE others (id int); GRANT SELECT ON others TO owner")
    warning = "Warnings:\na price below zero: hush (3 times)\n"
    async with inside("--write", "--ddl", "--files", tmp_path, base.url("owner")) as wire:
        for dry_run in (True, False):
            said = text_of(await wire.call("write_rows", sql="UPDATE prices SET price = -price", dry_run=dry_run))
            assert warning in said, said
        said = text_of(await wire.call("write_rows", sql="UPDATE prices SET price = 5"))
        assert "Warning" not in said, said
        said = text_of(await wire.call("edit_schema", sql="GRANT SELECT ON others TO reader"))
        assert 'Warnings:\nno privileges were granted for "others"\n' in said, said
        said = text_of(await wire.call("copy_from_file", file="prices.csv", table="prices"))
        assert "Warning: a price below zero: hush\n" in said, said


@pytest.mark.reported("dbeaver/dbeaver#2572")
async def test_a_warning_quotes_nothing_of_a_masked_column() -> None:
    base = make(_WARNING)
    options = ["--mask", "public.prices.secret", "--trust-database", "--write"]
    async with inside(*options, base.url("postgres")) as wire:
        said = text_of(await wire.call("write_rows", sql="UPDATE prices SET price = -1"))
    assert "Warnings:\nsome that may quote what is not served\n" in said and "hush" not in said, said


@pytest.mark.reported("pgadmin-org/pgadmin4#1657")
async def test_notices_of_a_million_rows_are_not_kept() -> None:
    base = make(
        "CREATE FUNCTION noisy(number int) RETURNS int LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE WARNING '% %', number, repeat('x', 8000); RETURN number; END $$;"
    )
    async with inside(base.url()) as wire:
        tracemalloc.start()
        try:
            said = text_of(await wire.call("query_rows", sql="SELECT count(noisy(n)) FROM generate_series(1, 5000) n"))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert said.endswith("[5000]\n") and peak < 20_000_000


def make_foreign() -> Base:
    """A database with foreign tables that lead back to it: one by a wrapper that nobody knows."""
    base = make("CREATE TABLE store (id int, name text); INSERT INTO store VALUES (1, 'a'), (2, 'b');")
    port = cluster().wait_until_ready()
    base.run(
        "CREATE EXTENSION postgres_fdw;"
        "CREATE FOREIGN DATA WRAPPER keeper HANDLER postgres_fdw_handler VALIDATOR postgres_fdw_validator;"
    )
    for wrapper in ("keeper", "postgres_fdw"):
        base.run(
            f"CREATE SERVER at_{wrapper} FOREIGN DATA WRAPPER {wrapper}"
            f" OPTIONS (host '127.0.0.1', port '{port}', dbname '{base.name}');"
            f"CREATE USER MAPPING FOR owner SERVER at_{wrapper} OPTIONS (user 'owner', password 'owner');"
            f"CREATE FOREIGN TABLE by_{wrapper} (id int, name text) SERVER at_{wrapper} OPTIONS (table_name 'store');"
            f"ALTER FOREIGN TABLE by_{wrapper} OWNER TO owner;"
        )
    base.run(
        "CREATE VIEW seen AS SELECT * FROM by_keeper;"
        "CREATE TABLE parts (id int, name text) PARTITION BY RANGE (id);"
        "CREATE FOREIGN TABLE part PARTITION OF parts FOR VALUES FROM (0) TO (9) SERVER at_keeper"
        " OPTIONS (table_name 'store'); ALTER VIEW seen OWNER TO owner; ALTER TABLE parts OWNER TO owner;"
        "ALTER FOREIGN TABLE part OWNER TO owner"
    )
    return base


@pytest.mark.reported("EnterpriseDB/mysql_fdw#101")
@pytest.mark.reported("citusdata/cstore_fdw#179")
async def test_nothing_is_tried_that_another_server_may_keep() -> None:
    base = make_foreign()
    async with inside("--write", f"app={base.url('owner')}") as wire:
        for sql in (
            "UPDATE by_keeper SET name = 'x' WHERE id = 1", "DELETE FROM seen", "INSERT INTO by_keeper VALUES (3, 'c')",
            "WITH gone AS (DELETE FROM seen RETURNING id) SELECT * FROM gone",
        ):  # fmt: skip
            for how in ({"dry_run": True}, {"as_role": "owner"}):
                done = await wire.call("write_rows", sql=sql, **how)
                assert done["isError"] and "`public.by_keeper` of `keeper` can't be tried" in text_of(done), sql
        said = text_of(await wire.call("write_rows", sql="INSERT INTO parts VALUES (3, 'c')", dry_run=True))
        assert "may have kept it:\n`public.part` of `keeper`\n" in said, said
        for sql in (
            "UPDATE by_postgres_fdw SET name = 'x' WHERE id = 1", "EXPLAIN DELETE FROM seen",
            "UPDATE store SET name = 'y' FROM by_keeper k WHERE k.id = store.id",
        ):  # fmt: skip
            done = await wire.call("write_rows", sql=sql, dry_run=True)
            assert not done["isError"] and "keeper`" not in text_of(done), text_of(done)
        done = await wire.call("write_rows", sql="UPDATE by_keeper SET name = 'z' WHERE id = 1")
        assert not done["isError"], text_of(done)
    assert base.rows("SELECT id, name FROM store ORDER BY id") == [(1, "z"), (2, "b")]


@pytest.mark.reported("snaga/monetdb_fdw#5")
async def test_a_foreign_table_is_not_left_out_of_counts_without_a_word() -> None:
    async with inside(f"app={make_foreign().url('owner')}") as wire:
        said = text_of(await wire.call("list_objects", kind="counts"))
    assert "- public.store 2 rows\n" in said, said
    assert "- public.by_keeper not counted: its rows are on another server, `query_rows` can count them\n" in said


@pytest.mark.reported("yugabyte/yugabyte-db#27389")
@pytest.mark.reported("heroku/heroku-pg-extras#67")
async def test_what_a_foreign_server_says_is_not_taken_for_our_own_database() -> None:
    base = make_foreign()
    base.run(
        "CREATE SERVER away FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '127.0.0.1', port '1');"
        "CREATE USER MAPPING FOR owner SERVER away OPTIONS (user 'owner', password 'hush');"
        "CREATE FOREIGN TABLE lost (id int) SERVER away; CREATE TABLE locked (id int);"
        "CREATE FOREIGN TABLE narrow (id int, more int) SERVER at_postgres_fdw OPTIONS (table_name 'store');"
        "CREATE FOREIGN TABLE missing (id int) SERVER at_postgres_fdw OPTIONS (table_name 'nowhere');"
        "CREATE FOREIGN TABLE closed (id int) SERVER at_postgres_fdw OPTIONS (table_name 'locked');"
        "GRANT ALL ON lost, narrow, missing, closed TO owner"
    )
    async with inside("--write", f"app={base.url('owner')}") as wire:
        for tool, sql in (("query_rows", "SELECT * FROM lost"), ("write_rows", "INSERT INTO lost VALUES (1)")):
            done = await wire.call(tool, sql=sql)
            assert done["isError"] and "The server of a foreign table can't be reached" in text_of(done), text_of(done)
            assert "was lost" not in text_of(done) and "127.0.0.1" not in text_of(done) and "hush" not in text_of(done)
        for table in ("narrow", "missing", "closed"):
            done = await wire.call("query_rows", sql=f"SELECT * FROM {table}")
            said = text_of(done)
            assert done["isError"] and "The server of a foreign table says" in said and "Did you mean" not in said, said
        assert text_of(await wire.call("query_rows", sql="SELECT count(*) FROM by_postgres_fdw")).endswith("[2]\n")


@pytest.mark.reported("supabase/supabase#1730")
@pytest.mark.reported("supabase/supabase#22323")
@pytest.mark.reported("supabase/supabase#33501")
@pytest.mark.reported("supabase/supabase#7792")
async def test_policies_that_may_hide_what_was_asked_for_are_told() -> None:
    base = make(
        "CREATE TABLE open (id int); CREATE TABLE shut (id int); CREATE TABLE own (id int, tenant text);"
        "INSERT INTO shut VALUES (1); INSERT INTO own VALUES (1, 'a'), (2, 'b');"
        "ALTER TABLE shut ENABLE ROW LEVEL SECURITY; CREATE POLICY others ON shut TO owner USING (true);"
        "ALTER TABLE own ENABLE ROW LEVEL SECURITY;"
        "CREATE POLICY tenants ON own USING (tenant = current_setting('app.tenant', true));"
        "GRANT UPDATE ON own TO reader"
    )
    partly = "the policies of `own` may hide rows from the role, `get_table` shows them"
    none = "no policy of `shut` lets the role see rows"
    async with inside("--write", base.url()) as wire:
        for sql, notes in (
            ("SELECT * FROM own", [partly]), ("SELECT count(*) FROM public.own o WHERE id > 1", [partly]),
            ("SELECT max(id) FROM shut", [none]), ("SELECT * FROM own JOIN shut USING (id)", [partly, none]),
            ("SELECT * FROM open", []), ("WITH shut AS (SELECT 1 WHERE false) SELECT * FROM shut", []),
            ("SET app.tenant = 'a'; SELECT count(*) FROM own", []),
        ):  # fmt: skip
            said = text_of(await wire.call("query_rows", sql=sql))
            assert said.count("polic") == len(notes) and all(f"[{note}]\n" in said for note in notes), said
        said = text_of(await wire.call("write_rows", sql="UPDATE own SET tenant = 'c' WHERE id = 1"))
        assert f"UPDATE: 0 rows, {partly}\n" in said, said
    async with inside(base.url("owner")) as wire:
        assert "polic" not in text_of(await wire.call("query_rows", sql="SELECT * FROM own WHERE id = 5"))


@pytest.mark.reported("beekeeper-studio/beekeeper-studio#1583")
@pytest.mark.reported("Guepard-Corp/gfs#108")
@pytest.mark.reported("pgadmin-org/pgadmin4#1706")
async def test_a_table_that_others_inherit_is_told_with_whose_rows_it_is_counted() -> None:
    base = make(
        "CREATE TABLE animals (id int, name text); CREATE TABLE dogs (breed text) INHERITS (animals);"
        "INSERT INTO animals VALUES (1, 'generic'); INSERT INTO dogs VALUES (2, 'rex', 'lab'), (3, 'fido', 'pug')"
    )
    async with inside(base.url()) as wire:
        listed = text_of(await wire.call("list_objects"))
        assert re.search("public.animals .*, without the 1 table that inherits it: id", listed), listed
        counts = text_of(await wire.call("list_objects", kind="counts"))
        assert "public.animals 1 row, without the 1 table that inherits it\n" in counts, counts
        assert "public.dogs 2 rows\n" in counts, counts
        assert text_of(await wire.call("query_rows", sql="SELECT count(*) FROM animals")).endswith("[3]\n")


@pytest.mark.reported("graphprotocol/graph-node#4327")
@pytest.mark.reported("onaio/onadata#906")
async def test_a_query_that_a_standby_stopped_is_not_said_to_wait_for_others() -> None:
    base = make(
        "CREATE TABLE replayed (id int);"
        "CREATE FUNCTION stopped() RETURNS int LANGUAGE plpgsql AS $$ BEGIN IF NOT EXISTS (SELECT FROM replayed) THEN"
        " RAISE EXCEPTION 'canceling statement due to conflict with recovery' USING ERRCODE = '40001'; END IF;"
        " RETURN 7; END $$;"
    )
    async with inside(base.url()) as wire:
        done = await wire.call("query_rows", sql="SELECT stopped()")
        said = text_of(done)
        assert done["isError"] and "The standby stopped it" in said and "`hot_standby_feedback`" in said, said
        base.run("INSERT INTO replayed VALUES (1)", "owner")
        assert text_of(await wire.call("query_rows", sql="SELECT stopped()")).endswith("[7]\n")


@pytest.mark.reported("supabase/cli#6562")
@pytest.mark.reported("supabase/cli#5020")
@pytest.mark.reported("pgjdbc/pgjdbc#2702")
async def test_a_body_between_begin_atomic_and_its_end_is_one_statement() -> None:
    if major() < 14:
        pytest.skip("BEGIN ATOMIC came with PostgreSQL 14")
    functions = (
        "CREATE FUNCTION one() RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT 1 AS pending; SELECT 2 AS legend; END",
        "CREATE FUNCTION two(n int) RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT CASE WHEN n > 1 THEN 2 END; END",
        "CREATE FUNCTION not_atomic() RETURNS void LANGUAGE plpgsql AS $$ BEGIN NULL; END; $$",
        "CREATE PROCEDURE three() BEGIN ATOMIC INSERT INTO kept VALUES (6, 'end'); SELECT 1 AS \"end\"; END",
    )
    base = make("CREATE TABLE kept (id int, word text)")
    async with inside("--ddl", base.url("owner")) as wire:
        for number, function in enumerate(functions):
            said = text_of(await wire.call("edit_schema", sql=f"{function}; CREATE TABLE made_{number} (id int)"))
            assert said.startswith("Done and committed.\n1. CREATE ") and f"table public.made_{number}" in said, said
