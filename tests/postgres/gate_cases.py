"""Everything in PostgreSQL's catalogue that can carry code, laid by a role that nobody trusts, and its harmless twin.

`evil` belongs to `mallory`, a role with no powers; `fine` holds the twins: of the same kind, but made of PostgreSQL's
own functions, or a superuser's. `{away}` is a folder all may write to.
"""

from dataclasses import dataclass

HARM = """
CREATE FUNCTION evil.do_harm() RETURNS integer LANGUAGE plpgsql AS $$ BEGIN
    BEGIN COPY (SELECT 1) TO PROGRAM 'touch {away}/program'; EXCEPTION WHEN OTHERS THEN NULL; END;
    BEGIN COPY (SELECT 1) TO '{away}/file'; EXCEPTION WHEN OTHERS THEN NULL; END;
    BEGIN PERFORM pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'victim';
        EXCEPTION WHEN OTHERS THEN NULL; END;
    BEGIN PERFORM pg_create_physical_replication_slot('harm'); EXCEPTION WHEN OTHERS THEN NULL; END;
    BEGIN DELETE FROM public.t; EXCEPTION WHEN OTHERS THEN NULL; END;
    BEGIN CREATE TABLE public.harm (); EXCEPTION WHEN OTHERS THEN NULL; END;
    RETURN 1; END $$;
CREATE FUNCTION evil.harm(integer DEFAULT 1) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS
    'BEGIN RETURN evil.do_harm(); END';
"""
"""Does what it can do, whatever the role; believed to be immutable, so that the planner runs it too."""


@dataclass(frozen=True)
class Value:
    """A kind of object that runs where a value is worked out.

    Attributes:
        lay: SQL of `mallory`'s, or with `{s}` and `{f}` of whoever lays the twin: schema, and a function of an integer.
        use: an expression, with `{s}` for the schema.
        twin: whether a twin of a superuser's passes; None: there is none.
        since: the first version that has it.
        extension: what has to be installed for it.
    """

    lay: str
    use: str
    twin: bool = True
    since: int = 0
    extension: str = ""


_PIXELS = "public.st_addband(public.st_makeemptyraster(1, 1, 0, 0, 1), '32BF'::text, 1, 0)"

VALUES: dict[str, Value] = {
    "immutable function": Value("", "{s}.harm()"),
    "stable function": Value(
        "CREATE FUNCTION {s}.stable_one(integer) RETURNS integer LANGUAGE plpgsql STABLE AS 'BEGIN RETURN {f}; END'",
        "{s}.stable_one(1)",
    ),
    "volatile function": Value(
        "CREATE FUNCTION {s}.volatile_one(integer) RETURNS integer LANGUAGE plpgsql AS 'BEGIN RETURN {f}; END'",
        "{s}.volatile_one(1)", False,
    ),
    "sql function": Value(
        "CREATE FUNCTION {s}.sql_one(integer) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT {f}'", "{s}.sql_one(1)"
    ),
    "sql function with a body": Value(
        "CREATE FUNCTION {s}.body_one(integer) RETURNS integer LANGUAGE sql IMMUTABLE RETURN {f}", "{s}.body_one(1)"
    ),
    "default of an argument": Value(
        "CREATE FUNCTION {s}.default_one(integer DEFAULT {f}) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT $1'",
        "{s}.default_one()",
    ),
    "variadic function": Value(
        "CREATE FUNCTION {s}.many(VARIADIC integer[]) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT {f}'",
        "{s}.many(1, 2)",
    ),
    "set of rows": Value(
        "CREATE FUNCTION {s}.rows_one(integer) RETURNS SETOF integer LANGUAGE plpgsql STABLE AS"
        " 'BEGIN RETURN NEXT {f}; END'",
        "(SELECT x FROM {s}.rows_one(1) x)",
    ),
    "transition of an aggregate": Value(
        "CREATE FUNCTION {s}.step(integer, integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS"
        " 'BEGIN RETURN {f}; END'; CREATE AGGREGATE {s}.adds(integer) (SFUNC = {s}.step, STYPE = integer)",
        "(SELECT {s}.adds(id) FROM public.t)",
    ),
    "end of an aggregate": Value(
        "CREATE FUNCTION {s}.finish(integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN {f}; END';"
        "CREATE AGGREGATE {s}.ends(integer) (SFUNC = int4larger, STYPE = integer, FINALFUNC = {s}.finish)",
        "(SELECT {s}.ends(id) FROM public.t)",
    ),
    "moving aggregate": Value(
        "CREATE FUNCTION {s}.back(integer, integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE STRICT AS"
        " 'BEGIN RETURN {f}; END'; CREATE AGGREGATE {s}.moves(integer) (SFUNC = int4pl, STYPE = integer,"
        " INITCOND = '0', MSFUNC = int4pl, MSTYPE = integer, MINVFUNC = {s}.back, MINITCOND = '0')",
        "(SELECT max(x) FROM (SELECT {s}.moves(id) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)"
        " FROM public.t) q (x))",
    ),
    "ordered-set aggregate": Value(
        "CREATE FUNCTION {s}.ordered(integer, integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS"
        " 'BEGIN RETURN {f}; END'; CREATE AGGREGATE {s}.sorts(ORDER BY integer) (SFUNC = {s}.ordered, STYPE = integer)",
        "(SELECT {s}.sorts() WITHIN GROUP (ORDER BY id) FROM public.t)",
    ),
    "operator": Value(
        "CREATE FUNCTION {s}.op(integer, integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS"
        " 'BEGIN RETURN {f}; END'; CREATE OPERATOR {s}.%%% (LEFTARG = integer, RIGHTARG = integer, FUNCTION = {s}.op)",
        "(1 OPERATOR({s}.%%%) 2)",
    ),
    "negator of an operator": Value(
        "CREATE FUNCTION {s}.same(integer, integer) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS"
        " 'BEGIN RETURN {f} > 0; END'; CREATE OPERATOR {s}.!!! (LEFTARG = integer, RIGHTARG = integer,"
        " FUNCTION = {s}.same); CREATE OPERATOR {s}.=== (LEFTARG = integer, RIGHTARG = integer, FUNCTION = int4eq,"
        " NEGATOR = OPERATOR({s}.!!!))",
        "(SELECT count(*)::integer FROM public.t WHERE NOT (id OPERATOR({s}.===) 2))",
    ),
    "cast": Value(
        "CREATE TYPE {s}.coin AS ENUM ('a'); CREATE FUNCTION {s}.coin_in({s}.coin) RETURNS integer LANGUAGE plpgsql"
        " IMMUTABLE AS 'BEGIN RETURN {f}; END'; CREATE CAST ({s}.coin AS integer) WITH FUNCTION {s}.coin_in",
        "('a'::{s}.coin)::integer",
    ),
    "cast to text, which is how cells are cut": Value(
        "CREATE TYPE {s}.note AS (a integer); CREATE FUNCTION {s}.note_text({s}.note) RETURNS text LANGUAGE plpgsql"
        " IMMUTABLE AS 'BEGIN RETURN {f}; END'; CREATE CAST ({s}.note AS text) WITH FUNCTION {s}.note_text",
        "length(ROW(1)::{s}.note::text)",
    ),
    "cast to json, which to_json looks for": Value(
        "CREATE TYPE {s}.bill AS ENUM ('a'); CREATE FUNCTION {s}.bill_json({s}.bill) RETURNS json LANGUAGE plpgsql"
        " IMMUTABLE AS 'BEGIN RETURN to_json({f}); END'; CREATE CAST ({s}.bill AS json) WITH FUNCTION {s}.bill_json",
        "length(to_json('a'::{s}.bill)::text)",
    ),
    "domain": Value(
        "CREATE DOMAIN {s}.small AS integer CHECK ({f} >= 0)", "(1::{s}.small)::integer"
    ),
    "domain over a domain": Value(
        "CREATE DOMAIN {s}.inner_one AS integer CHECK ({f} >= 0); CREATE DOMAIN {s}.outer_one AS {s}.inner_one",
        "(1::{s}.outer_one)::integer",
    ),
    "domain in an array": Value(
        "CREATE DOMAIN {s}.part AS integer CHECK ({f} >= 0)", "cardinality('{{1}}'::{s}.part[])"
    ),
    "domain in an array, spelled by numbers": Value(
        "CREATE DOMAIN {s}.numbered AS integer CHECK ({f} >= 0)",
        "cardinality('{{1}}'::{s}.U&\"\\006eumbered\"[])", False,
    ),
    "domain in an array, quoted": Value(
        'CREATE DOMAIN {s}."od""d {s}" AS integer CHECK ({f} >= 0)', "cardinality('{{1}}'::{s}.\"od\"\"d {s}\"[])"
    ),
    "domain in a composite": Value(
        "CREATE DOMAIN {s}.field AS integer CHECK ({f} >= 0); CREATE TYPE {s}.pair AS (a {s}.field)",
        "(('(1)'::{s}.pair).a)::integer",
    ),
    "domain in a range": Value(
        "CREATE DOMAIN {s}.bound AS integer CHECK ({f} >= 0); CREATE TYPE {s}.span AS RANGE (SUBTYPE = {s}.bound)",
        "lower('[1,2]'::{s}.span)::integer",
    ),
    "domain in a multirange": Value(
        "CREATE DOMAIN {s}.edge AS integer CHECK ({f} >= 0); CREATE TYPE {s}.reach AS RANGE (SUBTYPE = {s}.edge,"
        " MULTIRANGE_TYPE_NAME = {s}.reaches)",
        "lower('{{[1,2]}}'::{s}.reaches)::integer",
    ),
    "domain in the row of a table": Value(
        "CREATE DOMAIN {s}.cell AS integer CHECK ({f} >= 0); CREATE TABLE {s}.celled (a {s}.cell)",
        "(('(1)'::{s}.celled).a)::integer",
    ),
    "domain in a record": Value(
        "CREATE DOMAIN {s}.rec AS integer CHECK ({f} >= 0)",
        "(SELECT a::integer FROM json_to_record('{{\"a\": 1}}') AS x (a {s}.rec))",
    ),
    "domain in rows of json": Value(
        "CREATE DOMAIN {s}.recs AS integer CHECK ({f} >= 0)",
        "(SELECT a::integer FROM jsonb_to_recordset('[{{\"a\": 1}}]') AS x (a {s}.recs))",
    ),
    "domain in a row filled from json": Value(
        "CREATE DOMAIN {s}.fill AS integer CHECK ({f} >= 0); CREATE TYPE {s}.filled AS (a {s}.fill)",
        "((json_populate_record(NULL::{s}.filled, '{{\"a\": 1}}')).a)::integer",
    ),
    "domain of XMLTABLE": Value(
        "CREATE DOMAIN {s}.xcol AS integer CHECK ({f} >= 0)",
        "(SELECT a::integer FROM XMLTABLE('/r' PASSING ('<r>1</r>'::xml) COLUMNS a {s}.xcol PATH '.'))",
    ),
    "domain of JSON_TABLE": Value(
        "CREATE DOMAIN {s}.jcol AS integer CHECK ({f} >= 0)",
        "(SELECT a::integer FROM JSON_TABLE('[1]'::jsonb, '$[*]' COLUMNS (a {s}.jcol PATH '$')))", since=17,
    ),
    "domain of JSON_VALUE": Value(
        "CREATE DOMAIN {s}.jval AS integer CHECK ({f} >= 0)", "JSON_VALUE('1'::jsonb, '$' RETURNING {s}.jval)::integer",
        since=17,
    ),
    "domain named by text": Value(
        "CREATE DOMAIN {s}.named AS integer CHECK ({f} >= 0)", "pg_input_is_valid('1', '{s}.named')::integer", False, 16
    ),
    "domain that calls what is built in": Value(
        "CREATE DOMAIN {s}.direct AS text CHECK (pg_create_physical_replication_slot(VALUE::name) IS NOT NULL)",
        "length('harm'::{s}.direct)", False,
    ),
    "argument of a type": Value(
        "CREATE DOMAIN {s}.arg AS integer CHECK ({f} >= 0);"
        "CREATE FUNCTION {s}.takes({s}.arg[]) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT 1'",
        "{s}.takes('{{1}}')",
    ),
    "function over a view as xml": Value(
        "CREATE VIEW {s}.as_xml AS SELECT {f} AS x", "length(table_to_xml('{s}.as_xml', true, true, '')::text)", False
    ),
    "query as xml": Value("", "length(query_to_xml('SELECT {s}.harm()', true, true, '')::text)", False),
    "schema as xml": Value(
        "CREATE VIEW {s}_x.only AS SELECT {f} AS x",
        "length(schema_to_xml('{s}_x', true, true, '')::text)", False,
    ),
    "literal in a body that is validated": Value(
        "CREATE DOMAIN {s}.late AS integer CHECK ({f} >= 0); SET check_function_bodies = off;"
        "CREATE FUNCTION {s}.lately() RETURNS integer LANGUAGE sql AS $$SELECT cardinality('{{1}}'::{s}.late[])$$;"
        "SET check_function_bodies = on",
        "(fmgr_sql_validator('{s}.lately'::regproc) IS NULL)::integer", False,
    ),
    "partition key named by its number": Value(
        "CREATE TABLE {s}.keyed (id integer) PARTITION BY RANGE ((id + {f}));"
        "CREATE TABLE {s}.keyed_one PARTITION OF {s}.keyed FOR VALUES FROM (0) TO (100)",
        "length(pg_get_partition_constraintdef('{s}.keyed_one'::regclass))", False,
    ),
    "view": Value("CREATE VIEW {s}.seen AS SELECT {f} AS x", "(SELECT x FROM {s}.seen)"),
    "view of a view": Value(
        "CREATE VIEW {s}.under AS SELECT {f} AS x; CREATE VIEW {s}.over_it AS SELECT x FROM {s}.under",
        "(SELECT x FROM {s}.over_it)",
    ),
    "view that calls what is built in": Value(
        "CREATE VIEW {s}.slots AS SELECT length(pg_create_physical_replication_slot('harm')::text) AS x",
        "(SELECT x FROM {s}.slots)", False,
    ),
    "expression of an index": Value(
        "CREATE TABLE {s}.indexed (x integer); INSERT INTO {s}.indexed VALUES (1);"
        "CREATE INDEX ON {s}.indexed ((x + {f}))",
        "(SELECT max(x) FROM {s}.indexed WHERE x + 1 > 0)",
    ),
    "condition of an index": Value(
        "CREATE TABLE {s}.partial (x integer); INSERT INTO {s}.partial VALUES (1);"
        "CREATE INDEX ON {s}.partial (x) WHERE x > {f}",
        "(SELECT max(x) FROM {s}.partial WHERE x > 0)",
    ),
    "expression of statistics": Value(
        "CREATE TABLE {s}.counted (x integer, y integer); INSERT INTO {s}.counted VALUES (1, 1);"
        "CREATE STATISTICS {s}.counts ON (x + {f}), y FROM {s}.counted",
        "(SELECT max(x) FROM {s}.counted WHERE x + 1 > 0 AND y > 0)",
    ),
    "check of an inherited table": Value(
        "CREATE TABLE {s}.parent (x integer); CREATE TABLE {s}.child (CHECK (x < 100 + {f})) INHERITS ({s}.parent);"
        "INSERT INTO {s}.child VALUES (1)",
        "(SELECT max(x) FROM {s}.parent WHERE x > 0)",
    ),
    "partition key": Value(
        "CREATE TABLE {s}.parted (x integer) PARTITION BY RANGE ((x + {f}));"
        "CREATE TABLE {s}.part_one PARTITION OF {s}.parted FOR VALUES FROM (0) TO (100)",
        "(SELECT count(x)::integer FROM {s}.parted WHERE x > 0)",
    ),
    "index of a partition": Value(
        "CREATE TABLE {s}.whole (x integer) PARTITION BY RANGE (x);"
        "CREATE TABLE {s}.piece PARTITION OF {s}.whole FOR VALUES FROM (0) TO (100); INSERT INTO {s}.whole VALUES (1);"
        "CREATE INDEX ON {s}.piece ((x + {f}))",
        "(SELECT max(x) FROM {s}.whole WHERE x + 1 > 0)",
    ),
    "function that the planner asks how many rows an operator keeps": Value(
        "CREATE FUNCTION {s}.less(integer, integer) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS"
        " 'BEGIN RETURN {f} > 0; END'; CREATE OPERATOR {s}.<<< (LEFTARG = integer, RIGHTARG = integer,"
        " FUNCTION = {s}.less, RESTRICT = scalarltsel)",
        "(SELECT count(*)::integer FROM public.t WHERE id OPERATOR({s}.<<<) 2)",
    ),
    "commutator that the planner asks instead": Value(
        "CREATE FUNCTION {s}.more(integer, integer) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS"
        " 'BEGIN RETURN {f} > 0; END'; CREATE OPERATOR {s}.<<= (LEFTARG = integer, RIGHTARG = integer,"
        " FUNCTION = int4lt, RESTRICT = scalarltsel, COMMUTATOR = OPERATOR({s}.>>=)); CREATE OPERATOR {s}.>>= ("
        "LEFTARG = integer, RIGHTARG = integer, FUNCTION = {s}.more, COMMUTATOR = OPERATOR({s}.<<=))",
        "(SELECT count(*)::integer FROM public.t WHERE 2 OPERATOR({s}.<<=) id)",
    ),
    "difference of a range, for its histogram": Value(
        "CREATE FUNCTION {s}.apart(integer, integer) RETURNS float8 LANGUAGE plpgsql IMMUTABLE AS"
        " 'BEGIN RETURN $1 - $2 + 0 * {f}; END'; CREATE TYPE {s}.stretch AS RANGE (SUBTYPE = integer,"
        " SUBTYPE_DIFF = {s}.apart); CREATE TABLE {s}.ranged (x {s}.stretch);"
        "INSERT INTO {s}.ranged SELECT {s}.stretch(i, i + i % 7 + 1) FROM generate_series(1, 50) i",
        "(SELECT count(*)::integer FROM {s}.ranged WHERE x && '[3,10)'::{s}.stretch)",
    ),
    "policy behind a view": Value(
        "CREATE TABLE {s}.guarded (x integer); INSERT INTO {s}.guarded VALUES (1);"
        "ALTER TABLE {s}.guarded ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;"
        "CREATE POLICY a ON {s}.guarded USING (x < 100 + {f});"
        "CREATE VIEW {s}.guarded_seen AS SELECT x FROM {s}.guarded",
        "(SELECT max(x) FROM {s}.guarded_seen)",
    ),
    "columns run as SQL": Value(
        "CREATE TABLE {s}.places (geom public.geometry); CREATE VIEW {s}.extent AS SELECT public.st_findextent("
        "'places', 'geom\") AS extent, {f} FROM {s}.places --') AS x",
        "length(public.st_findextent('places', 'geom\") AS extent, {s}.harm(1) FROM {s}.places --')::text)",
        False, extension="postgis",
    ),
    "expression over pixels": Value(
        "CREATE VIEW {s}.pixels AS SELECT public.st_mapalgebra(" + _PIXELS + ", 1,"
        " '32BF', '(SELECT {f})') AS x",
        "length(public.st_mapalgebra(" + _PIXELS + ", 1,"
        " '32BF', '(SELECT {s}.harm(1))')::text)",
        False, extension="postgis_raster",
    ),
    "function over pixels": Value(
        "CREATE FUNCTION {s}.each(double precision[], integer[], VARIADIC text[]) RETURNS double precision"
        " LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN {f}; END';"
        "CREATE VIEW {s}.neighbours AS SELECT public.st_mapalgebra(" + _PIXELS + ", 1,"
        " '{s}.each(double precision[],integer[],text[])'::regprocedure) AS x",
        "length(public.st_mapalgebra(" + _PIXELS + ", 1,"
        " ('{s}.' || 'each(double precision[],integer[],text[])')::regprocedure)::text)",
        False, extension="postgis_raster",
    ),
    "tables of an address": Value(
        "CREATE VIEW {s}.lexicon AS SELECT {f} AS id, 1 AS seq, 'x'::text AS word, 'x'::text AS stdword, 1 AS token;"
        "CREATE VIEW {s}.rules AS SELECT {f} AS id, '1 -1 5 -1 2 0'::text AS rule;"
        "CREATE VIEW {s}.address AS SELECT public.standardize_address('{s}.lexicon', '{s}.lexicon', '{s}.rules', '1 a',"
        " 'b') AS x",
        "length(public.standardize_address('{s}.lexicon', '{s}.lexicon', '{s}.rules', '1 a', 'b')::text)",
        False, extension="address_standardizer",
    ),
}  # fmt: skip

PLACES = {
    "output": "SELECT {e}",
    "row": "SELECT ROW({e})",
    "array": "SELECT ARRAY[{e}]",
    "condition": "SELECT id FROM public.t WHERE {e} IS NOT NULL",
    "join": "SELECT t.id FROM public.t JOIN public.u ON {e} IS NOT NULL",
    "order": "SELECT id FROM public.t ORDER BY {e} + id",
    "group": "SELECT count(*) FROM public.t GROUP BY {e} + id",
    "grouping sets": "SELECT count(*) FROM public.t GROUP BY GROUPING SETS (({e} + id), ())",
    "having": "SELECT count(*) FROM public.t HAVING {e} IS NOT NULL",
    "limit": "SELECT id FROM public.t LIMIT {e}",
    "offset": "SELECT id FROM public.t OFFSET {e}",
    "distinct": "SELECT DISTINCT ON ({e} + id) id FROM public.t",
    "subquery": "SELECT (SELECT {e})",
    "exists": "SELECT EXISTS (SELECT 1 WHERE {e} IS NOT NULL)",
    "derived table": "SELECT * FROM (SELECT {e}) q",
    "lateral": "SELECT q.* FROM public.t, LATERAL (SELECT {e} + id) q",
    "with": "WITH a AS (SELECT {e}) SELECT * FROM a",
    "with, materialized": "WITH a AS MATERIALIZED (SELECT {e}) SELECT count(*) FROM a",
    "recursive": "WITH RECURSIVE a (n) AS (SELECT {e} UNION ALL SELECT n + 1 FROM a WHERE n < 3) SELECT * FROM a",
    "union": "SELECT 1 UNION SELECT {e}",
    "case": "SELECT CASE WHEN {e} IS NULL THEN 1 ELSE 2 END",
    "coalesce": "SELECT coalesce({e}, 1)",
    "argument": "SELECT abs({e})",
    "aggregate's argument": "SELECT max({e}) FROM public.t",
    "aggregate's filter": "SELECT count(*) FILTER (WHERE {e} IS NOT NULL) FROM public.t",
    "window's partition": "SELECT rank() OVER (PARTITION BY {e} + id ORDER BY id) FROM public.t",
    "window's frame": "SELECT sum(id) OVER (ORDER BY id ROWS {e} PRECEDING) FROM public.t",
    "values": "VALUES ({e})",
    "rows of a function": "SELECT * FROM generate_series(1, {e})",
    "sample": "SELECT count(*) FROM public.t TABLESAMPLE BERNOULLI ({e})",
    "in": "SELECT id FROM public.t WHERE id IN ({e}, 2)",
    "type": "SELECT ({e})::bigint::text",
    "json": "SELECT to_json({e})",
    "comment before": "-- a\n/* b */ SELECT {e}",
    "parentheses": "((SELECT {e}))",
}

RELATIONS = [
    "seen", "over_it", "slots", "indexed", "partial", "counted", "parent", "parted", "whole", "celled", "ranged",
    "guarded", "guarded_seen", "extent", "pixels", "neighbours", "address",
]  # fmt: skip
"""Tables and views to be read by their names, where the kind above has one."""

CHANGES: dict[str, tuple[str, str]] = {
    "trigger": (
        "CREATE TABLE {s}.fired (x integer); CREATE FUNCTION {s}.fire() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN PERFORM {f}; RETURN NEW; END'; CREATE TRIGGER a BEFORE INSERT ON {s}.fired FOR EACH ROW"
        " EXECUTE FUNCTION {s}.fire()",
        "INSERT INTO {s}.fired VALUES (1)",
    ),
    "condition of a trigger": (
        "CREATE TABLE {s}.picked (x integer); CREATE TRIGGER a BEFORE UPDATE ON {s}.picked FOR EACH ROW"
        " WHEN (NEW.x < 100 + {f}) EXECUTE FUNCTION suppress_redundant_updates_trigger();"
        "INSERT INTO {s}.picked VALUES (1)",
        "UPDATE {s}.picked SET x = 2",
    ),
    "default": (
        "CREATE TABLE {s}.preset (x integer, y integer DEFAULT {f})", "INSERT INTO {s}.preset (x) VALUES (1)"
    ),
    "default of a domain": (
        "CREATE DOMAIN {s}.given AS integer DEFAULT {f}; CREATE TABLE {s}.presets (x {s}.given, y integer)",
        "INSERT INTO {s}.presets (y) VALUES (1)",
    ),
    "rule": (
        "CREATE TABLE {s}.ruled (x integer); CREATE TABLE {s}.other (x integer);"
        "CREATE RULE a AS ON INSERT TO {s}.ruled DO ALSO INSERT INTO {s}.other VALUES ({f})",
        "INSERT INTO {s}.ruled VALUES (1)",
    ),
    "check": ("CREATE TABLE {s}.checked (x integer CHECK (x < 100 + {f}))", "INSERT INTO {s}.checked VALUES (1)"),
    "generated column": (
        "CREATE TABLE {s}.made (x integer, y integer GENERATED ALWAYS AS (x + {f}) STORED)",
        "INSERT INTO {s}.made VALUES (1)",
    ),
    "trigger behind a foreign key": (
        "CREATE TABLE {s}.one (x integer PRIMARY KEY);"
        "CREATE TABLE {s}.two (x integer REFERENCES {s}.one ON DELETE CASCADE);"
        "CREATE FUNCTION {s}.gone() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM {f}; RETURN OLD; END';"
        "CREATE TRIGGER a AFTER DELETE ON {s}.two FOR EACH ROW EXECUTE FUNCTION {s}.gone();"
        "INSERT INTO {s}.one VALUES (1); INSERT INTO {s}.two VALUES (1)",
        "DELETE FROM {s}.one",
    ),
    "view's trigger": (
        "CREATE VIEW {s}.front AS SELECT 1 AS x; CREATE FUNCTION {s}.instead() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN PERFORM {f}; RETURN NEW; END'; CREATE TRIGGER a INSTEAD OF INSERT ON {s}.front FOR EACH ROW"
        " EXECUTE FUNCTION {s}.instead()",
        "INSERT INTO {s}.front VALUES (1)",
    ),
    "column's domain": (
        "CREATE DOMAIN {s}.coldom AS integer CHECK ({f} >= 0); CREATE TABLE {s}.domained (x {s}.coldom)",
        "INSERT INTO {s}.domained VALUES (1)",
    ),
}  # fmt: skip
"""What runs when rows change: how it is laid, and the change."""

FITTING = [
    ("strpos", "name, text", "integer", "1"), ("lower", "name", "text", "'x'"), ("quote_ident", "name", "text", "'x'"),
    ("set_config", "text, text, text", "text", "'x'"), ("format", "text, name, name", "text", "'x'"),
    ("concat_ws", "text, text, text", "text", "'x'"), ("starts_with", "text, name", "boolean", "true"),
    ("left", "varchar, integer", "text", "'x'"), ("substring", "varchar, integer, integer", "text", "'x'"),
    ("md5", "varchar", "text", "'x'"),
    ("json_build_object", "text, name, text, boolean", "json", "'{{}}'"), ("pg_size_pretty", "integer", "text", "'x'"),
    ("array_to_string", "name[], text", "text", "'x'"), ("length", "name", "integer", "1"),
    ("regexp_replace", "name, text, text, text", "text", "'x'"), ("concat", "bigint, text, bigint", "text", "'x'"),
    ("concat", "text, text", "text", "'x'"), ("format", "text, text", "text", "'x'"),
    ("to_json", "name", "json", "'1'"), ("cardinality", "regtype[]", "integer", "0"),
]  # fmt: skip
"""Functions that fit calls of the server's own better than PostgreSQL's do, for schemas on the path."""
