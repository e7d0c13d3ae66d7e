"""Prove that `--only` and `--mask` hold: canaries in hidden tables and masked columns, every form, every way in.

Every row that nobody may see has the word `canary` in it, and no answer may. What uses a masked column is refused in
every form; its twin, the same form of a column that is not masked, is not.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mcp.shared.exceptions import MCPError

from mcp_batteries.testing.wire import WireError
from postgres.prove_gate import every_table
from postgres.serving import Base, Inside, inside, make, served, text_of
from postgres.ways import WAYS, asked
from proofs.tally import Tally

SCENE = """
CREATE SCHEMA app; CREATE SCHEMA priv; CREATE SCHEMA shown;
CREATE TABLE app.person (id integer PRIMARY KEY, name text, email text UNIQUE, n integer CHECK (n > 0),
    made text GENERATED ALWAYS AS (lower(email)) STORED);
INSERT INTO app.person SELECT g, 'n' || g, 'Canary-' || g || '@x', g FROM generate_series(1, 6) g;
CREATE TABLE app.orders (id integer PRIMARY KEY, person integer REFERENCES app.person, note text);
INSERT INTO app.orders VALUES (1, 1, 'a'), (2, 2, 'b');
CREATE TABLE app.area (id integer, name text, email text) PARTITION BY LIST (email);
CREATE TABLE app.area_1 PARTITION OF app.area FOR VALUES IN ('canary-1', 'canary-2');
INSERT INTO app.area VALUES (1, 'n1', 'canary-1'), (2, 'n2', 'canary-2');
CREATE TABLE app.base (id integer, name text, email text);
CREATE TABLE app.child (more text) INHERITS (app.base);
INSERT INTO app.child VALUES (1, 'n1', 'canary-1', 'm');
CREATE VIEW app.bare AS SELECT id, name, email FROM app.person;
CREATE VIEW app.twofold AS SELECT name, email, id FROM app.bare WHERE id > 0;
CREATE MATERIALIZED VIEW app.kept AS SELECT id, name, email FROM app.bare;
CREATE VIEW app.upper AS SELECT id, upper(email) AS name FROM app.person;
CREATE VIEW app.filtered AS SELECT id, name FROM app.person WHERE email LIKE 'C%';
CREATE MATERIALIZED VIEW app.counted AS SELECT length(email) AS id FROM app.person;
CREATE TABLE priv.secret (id integer PRIMARY KEY, name text, x text);
INSERT INTO priv.secret SELECT g, 'canary-name', 'canary-secret' FROM generate_series(1, 20) g;
CREATE TABLE app.inheriting (id integer); CREATE TABLE priv.heir (x text) INHERITS (app.inheriting);
INSERT INTO priv.heir VALUES (77, 'canary');
CREATE VIEW app.hidden AS SELECT id, x AS name FROM priv.secret;
CREATE MATERIALIZED VIEW app.hidden_kept AS SELECT id, x AS name FROM priv.secret;
CREATE VIEW shown.ids AS SELECT id FROM priv.secret;
CREATE VIEW priv.beside AS SELECT * FROM priv.secret;
CREATE FUNCTION app.told() RETURNS text LANGUAGE sql STABLE SECURITY DEFINER AS 'SELECT x FROM priv.secret LIMIT 1';
CREATE FUNCTION app.mails() RETURNS SETOF app.person LANGUAGE sql STABLE AS 'SELECT * FROM app.person';
CREATE FUNCTION app.of(app.person) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT $1.email';
CREATE FUNCTION shown.fine(integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1 + 1; END';
CREATE TABLE app.loud (id integer, email text);
INSERT INTO app.loud VALUES (1, 'canary-loud');
CREATE FUNCTION app.shout() RETURNS trigger LANGUAGE plpgsql AS
    $$BEGIN RAISE EXCEPTION 'no: %', NEW.email USING ERRCODE = '23514', DETAIL = NEW.email, HINT = NEW.email; END$$;
CREATE TRIGGER shout BEFORE UPDATE ON app.loud FOR EACH ROW EXECUTE FUNCTION app.shout();
CREATE RULE more AS ON UPDATE TO app.child DO ALSO INSERT INTO app.orders SELECT 99, 1, OLD.email;
CREATE STATISTICS app.both (mcv) ON name, email FROM app.person;
SELECT lo_from_bytea(424242, 'canary');
ANALYZE
"""
FLAGS = (
    "--only", "app,shown.ids,shown.fine", "--mask", "app.person.email", "--mask", "app.area.email app.child.email",
    "--mask", "app.loud.email",
)  # fmt: skip


class Source(NamedTuple):
    """Something to select a masked column from: what stands before SELECT, the FROM item `p`, and the column."""

    before: str
    items: str
    column: str = "p.email"


SOURCES = {
    "table": Source("", "app.person p"),
    "generated": Source("", "app.person p", "p.made"),
    "partitioned": Source("", "app.area p"),
    "partition": Source("", "app.area_1 p"),
    "parent": Source("", "app.base p"),
    "view": Source("", "app.bare p"),
    "view of a view": Source("", "app.twofold p"),
    "kept view": Source("", "app.kept p"),
    "subquery": Source("", "(SELECT * FROM app.person OFFSET 0) p"),
    "renamed": Source("", "(SELECT id, name, email FROM app.person) p(id, name, z)", "p.z"),
    "table expression": Source("WITH c AS (SELECT * FROM app.person) ", "c p"),
    "nested expression": Source("WITH c AS (WITH d AS (TABLE app.person) SELECT * FROM d) ", "c p"),
    "join": Source("", "(app.orders o JOIN app.person q ON o.person = q.id) AS p(oid, who, note, id, name, z)", "p.z"),
    "lateral": Source("", "app.orders o CROSS JOIN LATERAL (SELECT * FROM app.person q WHERE q.id = o.person) p"),
    "united": Source("", "(SELECT id, name, email FROM app.bare UNION ALL SELECT 1, note, note FROM app.orders) p"),
    "united, second": Source(
        "", "(SELECT 1 id, note name, note z FROM app.orders UNION ALL SELECT id, name, email FROM app.bare) p", "p.z"
    ),
}  # fmt: skip
USES = (
    "SELECT upper({c}) FROM {f}", "SELECT {c} || '' FROM {f}", "SELECT length({c}) FROM {f}",
    "SELECT {c}::varchar FROM {f}", 'SELECT {c} COLLATE "C" FROM {f}', "SELECT {c} IS NULL FROM {f}",
    "SELECT {c} = $$Canary-1@x$$ FROM {f}", "SELECT 1 FROM {f} WHERE {c} LIKE 'Canary%'",
    "SELECT count(*) FROM {f} WHERE {c} > 'd'", "SELECT p.id FROM {f} ORDER BY {c}",
    "SELECT {c} FROM {f} ORDER BY 1", "SELECT {c} AS z1 FROM {f} ORDER BY z1 DESC LIMIT 1",
    "SELECT DISTINCT {c} FROM {f}", "SELECT DISTINCT ON ({c}) p.id FROM {f}", "SELECT count(*) FROM {f} GROUP BY {c}",
    "SELECT {c} FROM {f} GROUP BY {c}", "SELECT max({c}) FROM {f}", "SELECT array_agg({c}) FROM {f}",
    "SELECT count({c}) FROM {f}", "SELECT count(*) FILTER (WHERE {c} > 'd') FROM {f}",
    "SELECT string_agg({c}, ',') FROM {f}", "SELECT json_build_object('a', {c}) FROM {f}",
    "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY {c}) FROM {f}", "SELECT rank() OVER (ORDER BY {c}) FROM {f}",
    "SELECT lag({c}) OVER () FROM {f}", "SELECT sum(1) OVER (PARTITION BY {c}) FROM {f}",
    "SELECT CASE WHEN {c} > 'd' THEN 1 ELSE 2 END FROM {f}", "SELECT coalesce({c}, 'x') FROM {f}",
    "SELECT greatest({c}, 'a') FROM {f}", "SELECT ROW({c}) FROM {f}", "SELECT ARRAY[{c}] FROM {f}",
    "SELECT hashtext({c}) FROM {f}", "SELECT format('%s', {c}) FROM {f}", "SELECT (SELECT {c}) FROM {f}",
    "SELECT (SELECT {c} FROM {f} LIMIT 1)", "SELECT ARRAY(SELECT {c} FROM {f})",
    "SELECT 'Canary-1@x' IN (SELECT {c} FROM {f})", "SELECT 'a' < ALL (SELECT {c} FROM {f})",
    "SELECT EXISTS (SELECT 1 FROM {f} WHERE {c} LIKE 'Canary-1%')",
    "SELECT 1 FROM {f} JOIN app.orders x ON x.note = {c}",
    "SELECT x.z0 FROM {f} JOIN (SELECT 'Canary-1@x' AS z0) x ON x.z0 = {c}",
    "SELECT {c} FROM {f} UNION SELECT 'a'", "SELECT 'a' INTERSECT SELECT {c} FROM {f}",
    "SELECT {c} FROM {f} EXCEPT ALL SELECT 'a'", "SELECT {c} FROM {f} UNION ALL SELECT 'a' ORDER BY 1",
    "SELECT s FROM {f}, LATERAL string_to_table({c}, '@') s", "SELECT x.v FROM {f}, LATERAL (VALUES ({c})) x(v)",
    "SELECT x.v FROM {f}, LATERAL (SELECT {c} || '' AS v) x",
    "SELECT 1 FROM app.orders LIMIT (SELECT length({c}) FROM {f} LIMIT 1)",
    "SELECT count(*) FROM {f} HAVING min({c}) > 'a'", "SELECT count(*) FROM {f} GROUP BY GROUPING SETS (({c}), ())",
    "SELECT regexp_matches({c}, '.*') FROM {f}",
    "SELECT x.* FROM {f}, LATERAL json_to_record(json_build_object('a', {c})) AS x(a text)",
    "SELECT y.v FROM (SELECT {c} AS v FROM {f}) y WHERE y.v > 'a'",
    "SELECT y.v FROM (SELECT {c} AS v FROM {f}) y GROUP BY 1", "SELECT count(*) FROM (SELECT DISTINCT {c} FROM {f}) y",
    "SELECT \":expr\" || '' AS \":resno 1\" FROM (SELECT {c} AS \":expr\" FROM {f}) \":relid 5\"",
)  # fmt: skip
WHOLE = (
    "SELECT p FROM {f}", "SELECT p::text FROM {f}", "SELECT row_to_json(p) FROM {f}", "SELECT to_jsonb(p) FROM {f}",
    "SELECT concat(p) FROM {f}", "SELECT count(p) FROM {f}", "SELECT ROW(p.*) FROM {f}",
    "SELECT array_agg(p) FROM {f}", "SELECT p IS NULL FROM {f}", "SELECT p = p FROM {f}",
    "SELECT DISTINCT p.* FROM {f}",
    "SELECT (SELECT p) FROM {f}", "SELECT 1 FROM {f} ORDER BY p", "SELECT md5(p::text) FROM {f}",
    "SELECT json_agg(p) FROM {f}", "SELECT y FROM (SELECT * FROM {f}) y",
    "SELECT (y).name FROM (SELECT p AS y FROM {f}) x",
)  # fmt: skip
BARE = (
    "SELECT {c} FROM {f}", "SELECT p.* FROM {f}", "SELECT * FROM {f}", 'SELECT {c} AS ":expr" FROM {f}',
    "SELECT {c}, {c}, p.name FROM {f} ORDER BY p.id", "SELECT * FROM (SELECT p.* FROM {f}) y LIMIT 2",
    "SELECT y.v FROM (SELECT {c} AS v, p.id FROM {f}) y WHERE y.id > 0",
    "SELECT {c} FROM {f} UNION ALL SELECT note FROM app.orders",
    "SELECT count(*) FROM {f}", "SELECT EXISTS (SELECT p.* FROM {f})", "SELECT 1 FROM {f} WHERE p.name LIKE 'n%'",
    "SELECT x.* FROM {f} JOIN app.orders x ON x.id = p.id", "SELECT shown.fine(p.id), p.name || '' FROM {f}",
)  # fmt: skip
HIDDEN = (
    "SELECT x FROM priv.secret", "TABLE priv.secret", "SELECT count(*) FROM priv.secret", "SELECT * FROM priv.beside",
    "SELECT 1 WHERE EXISTS (SELECT 1 FROM priv.secret WHERE x LIKE 'canary%')", "SELECT name FROM app.hidden",
    "SELECT name FROM app.hidden_kept", "WITH c AS (TABLE priv.secret) SELECT 1", "SELECT app.told()",
    "SELECT email FROM app.mails()", "SELECT app.of(p) FROM app.person p", "SELECT p.of FROM app.person p",
    "SELECT o.note FROM app.orders o JOIN priv.secret s USING (id)", "SELECT 1 UNION ALL SELECT id FROM priv.secret",
    "SELECT id FROM app.orders WHERE note IN (SELECT x FROM priv.secret)", "SELECT id FROM app.inheriting",
    "SELECT x FROM priv.heir", "SELECT * FROM app.upper", "SELECT * FROM app.filtered", "SELECT * FROM app.counted",
    "SELECT most_common_vals FROM pg_stats", "SELECT * FROM pg_statistic", "SELECT * FROM pg_stats_ext",
    "SELECT most_common_vals FROM pg_catalog.pg_stats_ext", "SELECT attmissingval FROM pg_attribute",
    "SELECT query FROM pg_stat_activity", "SELECT * FROM pg_stat_get_activity(NULL)", "SELECT data FROM pg_largeobject",
    "SELECT lo_get(424242)", "SELECT table_to_xml('priv.secret', true, true, '')",
    "SELECT * FROM pg_prepared_statements",
    "SELECT query_to_xml('SELECT * FROM priv.secret', true, true, '')", "SELECT schema_to_xml('priv', true, true, '')",
    "SELECT * FROM ts_stat('SELECT to_tsvector(x) FROM priv.secret')", "SELECT * FROM information_schema.columns",
    "SELECT pg_get_expr(relpartbound, oid) FROM pg_class",
    "SELECT pg_get_partition_constraintdef('app.area_1'::regclass)",
    "SELECT pg_read_file('postgresql.conf')", "SELECT * FROM pg_ls_waldir()", "SELECT * FROM pg_mcv_list_items(NULL)",
    "SELECT * FROM pg_stat_get_backend_idset() b, pg_stat_get_backend_activity(b)", "SELECT currval('x')",
    "SELECT ts_rewrite('a'::tsquery, 'SELECT ''a''::tsquery, to_tsquery(x) FROM priv.secret')",
    "WITH RECURSIVE c AS (SELECT id, email FROM app.person UNION ALL SELECT id + 9, email FROM c WHERE id < 9)"
    " SELECT id FROM c",
    "WITH RECURSIVE c AS (SELECT id, email FROM app.person UNION ALL SELECT id + 9, email FROM c WHERE id < 9)"
    " SEARCH BREADTH FIRST BY email SET o SELECT id, o FROM c",
    "SELECT p.id FROM app.person p NATURAL JOIN (SELECT 'Canary-1@x' AS email) x",
    "SELECT x.email FROM app.person p FULL JOIN (SELECT 'Canary-1@x' AS email) x USING (email)",
    "SELECT p.id FROM app.person p JOIN app.bare x USING (email)",
    "SELECT n::regclass FROM generate_series(16384, 16999) n", "SELECT '16384'::regclass", "SELECT 2200::regnamespace",
    "SELECT ARRAY[16384]::regclass[]", "SELECT to_json(x.a) FROM json_to_record('{\"a\": 16384}') AS x(a regclass)",
    "SELECT format_type(n, -1) FROM generate_series(16384, 16999) n", "SELECT regtypein('16384')", "SELECT 10::regrole",
    "SELECT id::oid::regprocedure::text FROM app.orders", "SELECT makeaclitem(10, 10, 'SELECT', false)",
)  # fmt: skip
"""What is refused whatever stands around it; a view or function that the operator lists by name is not."""
SHOWN = (
    "SELECT id FROM shown.ids",
    "SELECT shown.fine(1)",
    "SELECT now(), 1 + 1",
    "SELECT upper(note) FROM app.orders",
    "SELECT tableoid::regclass, pg_typeof(note)::text FROM app.orders",
    "SELECT to_tsvector('english', note) FROM app.orders",
)
WRITES = (
    "UPDATE app.orders SET note = p.email FROM app.person p WHERE p.id = person RETURNING note",
    "INSERT INTO app.orders SELECT 10 + id, id, email FROM app.person RETURNING note",
    "UPDATE app.person SET name = email RETURNING name", "UPDATE app.person SET n = n WHERE email LIKE 'C%'",
    "DELETE FROM app.person WHERE email > 'a'", "DELETE FROM app.orders USING app.person p WHERE note = p.email",
    "UPDATE app.person SET n = n RETURNING upper(email)", "UPDATE app.person SET n = n RETURNING made || ''",
    "INSERT INTO app.person (id, email) VALUES (50, 'Canary-1@x') ON CONFLICT (email) DO UPDATE SET name = 'hit'",
    "INSERT INTO app.person (id, email) VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET name = person.email",
    "INSERT INTO app.person (id, email) VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET name = excluded.email",
    "MERGE INTO app.orders o USING app.person p ON p.id = o.person WHEN MATCHED THEN UPDATE SET note = p.email",
    "MERGE INTO app.orders o USING app.person p ON p.email = o.note WHEN MATCHED THEN DELETE",
    "MERGE INTO app.orders o USING app.person p ON p.id = o.id WHEN MATCHED AND p.email > 'a' THEN DELETE",
    "WITH d AS (DELETE FROM app.person RETURNING email) SELECT upper(email) FROM d",
    "WITH d AS (UPDATE app.person SET n = n RETURNING *) INSERT INTO app.orders SELECT id + 20, 1, email FROM d",
    "INSERT INTO priv.secret VALUES (99, 'a', 'b')", "UPDATE priv.secret SET x = x RETURNING x",
    "DELETE FROM app.hidden",
    "DELETE FROM app.orders WHERE EXISTS (SELECT 1 FROM priv.secret)", "UPDATE app.child SET name = 'a'",
    "TRUNCATE app.orders", "INSERT INTO app.orders SELECT 30, 1, app.told()", "SELECT setval('x', 1)",
)  # fmt: skip
QUIET = (
    "UPDATE app.person SET n = -1 WHERE id = 1", "UPDATE app.person SET email = 'Canary-2@x' WHERE id = 1",
    "UPDATE app.person SET id = 2 WHERE id = 1", "DELETE FROM app.person WHERE id = 1", "UPDATE app.loud SET id = 2",
    "UPDATE app.person SET n = n WHERE id = 1 RETURNING *", "DELETE FROM app.orders RETURNING *",
    "UPDATE app.area SET id = id RETURNING email", "DELETE FROM app.base RETURNING *",
    "WITH d AS (DELETE FROM app.orders RETURNING *) SELECT * FROM d",
    "UPDATE app.bare SET name = 'x' WHERE id = 2 RETURNING email",
    "INSERT INTO app.person (id, email) VALUES (70, 'new') RETURNING id, email",
    "INSERT INTO app.orders VALUES (5, 1, 'x') ON CONFLICT (id) DO UPDATE SET note = excluded.note RETURNING *",
)  # fmt: skip
"""Changes whose answers and errors quote rows, where nobody takes care."""
TABLES = (
    "app.person", "app.area", "app.area_1", "app.base", "app.bare", "app.kept", "app.loud", "app.upper", "app.hidden",
    "app.hidden_kept", "app.counted", "priv.secret", "priv.beside", "pg_catalog.pg_stats", "app.orders",
)  # fmt: skip
NOT_SERVED = ("masked", "not served", "may tell of more", "can't be told", "Masked", "rows of another", "has rules")


def selections() -> Iterator[tuple[str, str, str, str]]:
    """Statements that use a masked column, that only show one, and their twins: kind, source, statement, twin."""
    for name, (before, items, column) in SOURCES.items():
        for kind, templates in (("used", USES), ("whole", WHOLE), ("bare", BARE)):
            for template in templates:
                sql, twin = (before + template.format(c=each, f=items) for each in (column, "p.name"))
                yield kind, name, sql, twin if kind == "used" else ""


async def ask(wire: Inside, folder: Path, way: str, sql: str) -> tuple[bool, str]:
    """Whether it failed, and all that came back, files too."""
    tool, arguments = asked(way, sql, table="app.orders", role="owner")
    result = await wire.call(tool, **arguments)
    said = text_of(result)
    assert "Traceback" not in said and "failed inside" not in said, (sql, said)
    for file in folder.glob("out.*"):
        said += file.read_text("utf-8")
        file.unlink()
    return bool(result.get("isError")) or ": failed: " in said, said


async def prove(share: float, seed: int) -> Tally:
    """Try a share of all cases."""
    tally, chance, base = Tally(), random.Random(seed), make()
    base.run(SCENE)
    base.run("GRANT SELECT ON ALL TABLES IN SCHEMA app, shown TO owner; GRANT USAGE ON SCHEMA app, shown TO owner")
    with tempfile.TemporaryDirectory() as name, base.connect() as busy:
        folder = Path(name)
        busy.execute("SELECT 'canary-of-a-session'")
        saved = _save(folder / "saved", share, chance)
        queries = ("--queries", folder / "saved")
        flags = ("--write", "--dba", "--files", folder, *queries, *FLAGS, f"app={base.url('postgres')}")
        # A server whose first calls these are, before it judged any statement.
        async with inside("--dba", *FLAGS, f"app={base.url('postgres')}") as wire:
            await _other_ways(tally, wire)
        with every_table():
            await _asked(tally, flags, folder, saved, share, chance)
        await _followed(tally, base)
    assert not base.rows("SELECT 1 FROM app.orders WHERE id > 2")
    return tally


async def _asked(
    tally: Tally, flags: Sequence[object], folder: Path, saved: dict[str, tuple[str, str]], share: float,
    chance: random.Random,
) -> None:  # fmt: skip
    async with inside(*flags) as wire:
        await _statements(tally, wire, folder, share, chance)
        await _saved(tally, wire, saved)
        await _changes(tally, wire, share, chance)
        await _other_ways(tally, wire)


async def _followed(tally: Tally, base: Base) -> None:
    """What changes in hidden tables and masked columns is told to nobody; and what else changes is."""
    updated = "notifications/resources/updated"
    paths = [*(table.replace(".", "/") for table in TABLES), "app/person/1", ".schema", ".activity"]
    async with served(*FLAGS, "--poll", "50", f"app={base.url('postgres')}") as wire:
        for path in paths:
            try:
                await wire.subscribe(f"postgres://app/{path}")
            except WireError as refused:
                tally.note("not followed", path, "" if "canary" not in str(refused).lower() else str(refused))
        for change, told in (
            ("UPDATE app.person SET email = 'Canary-9' WHERE id = 1; UPDATE priv.secret SET x = 'canary-9'", ()),
            ("UPDATE app.area SET email = 'canary-2' WHERE id = 1; DELETE FROM priv.heir", ()),
            ("UPDATE app.person SET name = 'other' WHERE id = 1", ("app/person", "app/person/1")),
            ("ALTER TABLE priv.secret ADD y text; CREATE TABLE priv.more AS SELECT 'canary' AS x", ()),
        ):
            base.run(change)
            base.run("UPDATE app.orders SET note = note || 'x' WHERE id = 1")
            await wire.notification(updated, lambda said: "app/orders" in said["uri"])
            for each in told:
                await wire.notification(updated, lambda said, each=each: said["uri"].endswith(each))
            heard = [said["params"]["uri"] for said in wire.notifications if said["method"] == updated]
            wire.messages.clear()
            # Rows without a key are shown as they lie, and one that changed lies elsewhere.
            fine = ["app/orders", ".activity", "app/bare", "app/area", *told]
            more = [uri for uri in heard if not any(part in uri for part in fine)]
            tally.note("followed", change, str(more) if more else "")


async def _statements(tally: Tally, wire: Inside, folder: Path, share: float, chance: random.Random) -> None:
    for kind, source, sql, twin in selections():
        for way in WAYS:
            if chance.random() >= share:
                continue
            failed, said = await ask(wire, folder, way, sql)
            seen = "canary" in said.lower().replace(sql.lower(), "").replace("'canary", "")
            bad = said if seen or (kind != "bare" and not any(word in said for word in NOT_SERVED)) else ""
            if kind == "bare" and any(word in said for word in NOT_SERVED):
                bad = said
            tally.note(kind, f"{way}, {source}, {sql}", bad)
            if twin:
                _, said = await ask(wire, folder, way, twin)
                tally.note("twins", f"{way}, {source}, {twin}", said if any(w in said for w in NOT_SERVED) else "")
    for kind, statements in (("hidden", HIDDEN), ("shown", SHOWN)):
        for sql in statements:
            for way in WAYS:
                if chance.random() >= share * 5:
                    continue
                failed, said = await ask(wire, folder, way, sql)
                refused = any(word in said for word in NOT_SERVED) or (failed and "42" in said)
                seen = "canary" in said.lower().replace(sql.lower(), "").replace("'canary", "")
                tally.note(kind, f"{way}, {sql}", said if seen or refused != (kind == "hidden") else "")


def _save(folder: Path, share: float, chance: random.Random) -> dict[str, tuple[str, str]]:
    """Saved queries with a share of the statements: kind and statement by name."""
    folder.mkdir()
    found: dict[str, tuple[str, str]] = {}
    cases = [(kind, sql) for kind, _, sql, _ in selections()] + [("hidden", sql) for sql in HIDDEN]
    for kind, sql in cases:
        # A colon may begin a parameter there.
        if ":" not in sql and len(found) < 100 and chance.random() < min(0.2, share * 4):
            name = f"q{len(found)}"
            (folder / f"{name}.sql").write_text(f"-- A query.\n-- database: app\n{sql}\n", "utf-8")
            found[name] = kind, sql
    return found


async def _saved(tally: Tally, wire: Inside, saved: dict[str, tuple[str, str]]) -> None:
    for name, (kind, sql) in saved.items():
        ways: list[str] = []
        for way in (wire.call(f"run_{name}"), wire.read(f"postgres://.queries/{name}")):
            try:
                said = await way
                ways.append(said if isinstance(said, str) else text_of(said))
            except MCPError as error:  # what PostgreSQL refused to prepare is not offered
                ways.append(str(error))
        ways.append(text_of(await wire.call("find_indexes", queries=[sql])))
        for number, said in enumerate(ways):
            seen = "canary" in said.lower().replace(sql.lower(), "").replace("'canary", "")
            refused = any(word in said for word in (*NOT_SERVED, "There is no tool", "There is no saved query"))
            wrong = number < 2 and refused != (kind != "bare") and kind != "whole"
            tally.note("saved" if number < 2 else "advice", f"{kind}, {sql}", said if seen or wrong else "")


async def _changes(tally: Tally, wire: Inside, share: float, chance: random.Random) -> None:
    for kind, statements in (("writes", WRITES), ("quiet", QUIET)):
        for sql in statements:
            if chance.random() >= share * 20:
                continue
            said = text_of(await wire.call("write_rows", sql=sql, dry_run=True))
            refused = any(word in said for word in (*NOT_SERVED, "can't be judged", "more than read", "does not exist"))
            seen = "canary" in said.lower().replace(sql.lower(), "")
            tally.note(kind, sql, said if seen or refused != (kind == "writes") else "")


async def _other_ways(tally: Tally, wire: Inside) -> None:
    """Everything that shows something without SQL of the caller's."""
    calls: list[tuple[str, dict[str, Any]]] = [("get_table", {"table": table}) for table in TABLES]
    calls += [("get_table", {"table": table, "sample": 5}) for table in TABLES]
    calls += [("get_table", {"table": table, "compare_with": other}) for table in TABLES for other in TABLES[:3]]
    calls += [("list_objects", {"kind": kind}) for kind in (
        "tables", "functions", "types", "sequences", "extensions", "triggers", "policies", "grants", "roles",
    )]  # fmt: skip
    calls += [("search_schema", {"query": word}) for word in ("canary", "secret", "email")]
    calls += [("list_sessions", {"which": "all"}), ("get_health", {}), ("list_top_queries", {}), ("find_indexes", {})]
    calls += [("list_settings", {}), ("list_objects", {"schema": "priv"})]
    for tool, arguments in calls:
        said = text_of(await wire.call(tool, **arguments))
        bad = said if "canary" in said.lower() or "failed inside" in said else ""
        if tool in ("list_objects", "search_schema") and "secret" in said and "`" not in said:
            bad = said
        tally.note("other ways", f"{tool} {arguments}", bad)
    for path in (".schema", ".health", ".activity", ".role", "app/.schema", "priv/.schema", "app/area/.schema",
                 *(f"{table.replace('.', '/')}{more}" for table in TABLES for more in (
                     "", "/1", "?column=email&value=Canary-1%40x", "?order=newest", "/.schema"))):  # fmt: skip
        try:
            said = await wire.read(f"postgres://app/{path}")
        except Exception as error:  # whatever it says, it shows nothing
            said = str(error)
        bad = said if "canary" in said.lower().replace("canary-1@x", "") or "failed inside" in said else ""
        tally.note("resources", path, bad)
    for kind, typed, others in (
        ("schema", "", {}), ("table", "", {"schema": "priv"}), ("column", "", {"schema": "priv", "table": "secret"}),
    ):  # fmt: skip
        found = await wire.complete(kind, typed, database="app", **others)
        tally.note(
            "completions", f"{kind} {others}", str(found) if (kind != "schema" and found) or "priv" in found else ""
        )
