"""What a database contains: reads PostgreSQL's own catalog so that a big one gives small answers."""

from __future__ import annotations

import json
from typing import Any, cast

from mcp_batteries.errors import Invalid, quote
from mcp_batteries.sql.identifiers import identifier
from mcp_batteries.sql.joins import Key, joins
from mcp_postgres.engine.audit.visible_schema import LISTED, NAMED_IN, WHOLE
from mcp_postgres.engine.connection.errors import Missing
from mcp_postgres.engine.connection.pool import Session
from mcp_postgres.engine.connection.session import own_names, their_names
from mcp_postgres.policy import Table

__all__ = [
    "KIND", "NAMED", "OWN", "RELATION", "SPELLED", "as_json", "describe", "describe_all", "find", "find_table", "names",
]  # fmt: skip

_MOST_KEYS = 3000
"""Foreign keys of a database among which ways to join tables are looked for."""
OWN = "n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'"
KIND = """CASE c.relkind WHEN 'r' THEN 'table' WHEN 'p' THEN 'partitioned table' WHEN 'v' THEN 'view'
    WHEN 'm' THEN 'materialized view' WHEN 'f' THEN 'foreign table' WHEN 'S' THEN 'sequence' END"""
RELATION = """CASE c.relkind WHEN 'r' THEN 'table' WHEN 'p' THEN 'partitioned table' WHEN 'v' THEN 'view' WHEN 'm' THEN
    'materialized view' WHEN 'f' THEN 'foreign table' WHEN 'S' THEN 'sequence' WHEN 'c' THEN 'type' ELSE 'index' END"""
NAMED = (
    "(SELECT format('%I.%I', y.nspname, x.relname) FROM pg_class x JOIN pg_namespace y ON y.oid = x.relnamespace"
    " WHERE x.oid = {oid})"
)
SPELLED = "format('%I.%I', n.nspname, c.relname)"
"""A name as SQL spells it, so that it can be used as it stands."""

_FIND_TABLE = f"""
SELECT coalesce(json_agg(x ORDER BY x.schema), '[]')::text FROM (
    SELECT c.oid::text, n.nspname AS schema, c.relname AS name, {KIND} AS kind, {SPELLED} AS spelled
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND c.relname = $1 AND {LISTED}
        AND CASE WHEN $2::text IS NOT NULL THEN n.nspname = $2 ELSE c.oid = $3::oid OR {OWN} END
    ORDER BY n.nspname LIMIT 100) x
"""
_MEANT = "SELECT pg_catalog.to_regclass($1)::pg_catalog.oid"
"""What a name stands for in statements of others."""
_NAMED = 5
"""Tables of one name in several schemas that are told."""

_DESCRIBE = """
SELECT json_build_object(
  'oid', c.oid::text, 'comment', obj_description(c.oid, 'pg_class'),
  'rows', CASE WHEN c.relkind = 'p' THEN (SELECT CASE WHEN max(l.reltuples) < 0 THEN -1 ELSE
      sum(greatest(l.reltuples, 0)) END FROM pg_partition_tree(c.oid) t
      JOIN pg_class l ON l.oid = t.relid WHERE t.isleaf) ELSE c.reltuples END::bigint,
  'bytes', CASE WHEN c.relkind = 'p' THEN (SELECT sum(pg_total_relation_size(t.relid)) FROM pg_partition_tree(c.oid) t)
      WHEN c.relkind IN ('r', 'm', 'S') THEN pg_total_relation_size(c.oid) END,
  'owner', pg_get_userbyid(c.relowner), 'security', c.relrowsecurity, 'forced', c.relforcerowsecurity,
  'unlogged', c.relpersistence = 'u',
  'columns', (SELECT coalesce(json_agg(json_build_object('name', a.attname, 'spelled', quote_ident(a.attname),
      'type', format_type(a.atttypid, a.atttypmod),
      'not_null', a.attnotnull, 'identity', a.attidentity <> '', 'generated', a.attgenerated <> '',
      'default', pg_get_expr(d.adbin, d.adrelid), 'comment', col_description(c.oid, a.attnum),
      'enum', (SELECT json_agg(e.enumlabel ORDER BY e.enumsortorder) FROM pg_enum e WHERE e.enumtypid = a.atttypid),
      'values', (SELECT json_object_agg(left(v.value, 40), round(v.share * 100)) FROM pg_stats s,
          unnest(s.most_common_vals::text::text[], s.most_common_freqs) v (value, share)
          WHERE s.schemaname = n.nspname AND s.tablename = c.relname AND s.attname = a.attname
          AND cardinality(s.most_common_freqs) <= 12 AND s.null_frac + (SELECT sum(f) FROM unnest(s.most_common_freqs)
              f) > 0.99 AND NOT s.inherited AND length(s.most_common_vals::text) <= 300))
      ORDER BY a.attnum), '[]') FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
      WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
  'key', (SELECT json_agg(a.attname ORDER BY k.place) FROM pg_index i, unnest(i.indkey) WITH ORDINALITY k (number,
      place)
      JOIN pg_attribute a ON a.attnum = k.number WHERE i.indrelid = c.oid AND i.indisprimary AND a.attrelid = c.oid),
  'constraints', (SELECT coalesce(json_agg(json_build_object('name', conname, 'definition', pg_get_constraintdef(oid))
      ORDER BY contype, conname), '[]') FROM pg_constraint WHERE conrelid = c.oid AND contype <> 'n'),
  'referred_by', (SELECT coalesce(json_agg(format('%s: %s', conrelid::regclass, pg_get_constraintdef(oid))
      ORDER BY conrelid::regclass::text, conname), '[]') FROM pg_constraint
      WHERE confrelid = c.oid AND contype = 'f' AND conparentid = 0),
  'indexes', (SELECT coalesce(json_agg(json_build_object('definition', pg_get_indexdef(i.indexrelid), 'valid',
      i.indisvalid,
      'bytes', pg_relation_size(i.indexrelid), 'scans', s.idx_scan) ORDER BY x.relname), '[]') FROM pg_index i
      JOIN pg_class x ON x.oid = i.indexrelid LEFT JOIN pg_stat_all_indexes s ON s.indexrelid = i.indexrelid
      WHERE i.indrelid = c.oid),
  'triggers', (SELECT coalesce(json_agg(pg_get_triggerdef(oid) ORDER BY tgname), '[]') FROM pg_trigger
      WHERE tgrelid = c.oid AND NOT tgisinternal),
  'rules', (SELECT coalesce(json_agg(pg_get_ruledef(oid) ORDER BY rulename), '[]') FROM pg_rewrite
      WHERE ev_class = c.oid AND rulename <> '_RETURN'),
  'inherits', (SELECT string_agg(i.inhparent::regclass::text, ', ' ORDER BY i.inhseqno) FROM pg_inherits i
      WHERE i.inhrelid = c.oid AND NOT c.relispartition),
  'inherited_by', (SELECT string_agg(i.inhrelid::regclass::text, ', ') FROM pg_inherits i
      WHERE i.inhparent = c.oid AND c.relkind <> 'p'),
  'foreign_server', (SELECT quote_ident(s.srvname) FROM pg_foreign_table f
      JOIN pg_foreign_server s ON s.oid = f.ftserver WHERE f.ftrelid = c.oid),
  'policies', (SELECT coalesce(json_agg(format('%s for %s to %s%s%s', policyname, cmd, array_to_string(roles, ', '),
      ' using ' || qual, ' with check ' || with_check) ORDER BY policyname), '[]') FROM pg_policies
      WHERE schemaname = n.nspname AND tablename = c.relname),
  'grants', (SELECT coalesce(json_agg(g), '[]') FROM (SELECT format('%s: %s', CASE WHEN a.grantee = 0 THEN 'public'
      ELSE pg_get_userbyid(a.grantee) END, string_agg(lower(a.privilege_type), ', ' ORDER BY a.privilege_type)) AS g
      FROM aclexplode(c.relacl) a WHERE a.grantee <> c.relowner GROUP BY a.grantee UNION ALL
      SELECT format('%s: %s of %s', CASE WHEN g.grantee = 0 THEN 'public' ELSE pg_get_userbyid(g.grantee) END,
          lower(g.privilege_type), string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum)) FROM pg_attribute a,
          aclexplode(a.attacl) g WHERE a.attrelid = c.oid AND NOT a.attisdropped AND g.grantee <> c.relowner
          GROUP BY g.grantee, g.privilege_type ORDER BY 1) x),
  'partition_of', CASE WHEN c.relispartition THEN (SELECT inhparent::regclass::text || ' ' ||
      pg_get_expr(c.relpartbound, c.oid) FROM pg_inherits WHERE inhrelid = c.oid) END,
  'partition_by', CASE WHEN c.relkind = 'p' THEN pg_get_partkeydef(c.oid) END,
  'partitions', CASE WHEN c.relkind = 'p' THEN (SELECT json_agg(p.text) FROM (SELECT format('%s %s', l.oid::regclass,
      pg_get_expr(l.relpartbound, l.oid)) AS text FROM pg_inherits i JOIN pg_class l ON l.oid = i.inhrelid
      WHERE i.inhparent = c.oid ORDER BY 1) p) END,
  'definition', CASE WHEN c.relkind IN ('v', 'm') THEN pg_get_viewdef(c.oid, true) END,
  'sequence', CASE WHEN c.relkind = 'S' THEN (SELECT format('type %s, from %s to %s by %s, now %s',
      format_type(q.seqtypid, NULL), q.seqmin, q.seqmax,
      q.seqincrement, pg_sequence_last_value(c.oid)) FROM pg_sequence q WHERE q.seqrelid = c.oid
      AND has_sequence_privilege(c.oid, 'SELECT')) END
)::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = ANY ($1::oid[])
"""

_KEYS = f"""
SELECT json_build_object('me', $1::oid::regclass::text, 'keys', coalesce((SELECT json_agg(json_build_array(
    k.conrelid::regclass::text, k.columns, k.confrelid::regclass::text, k.others)) FROM (SELECT f.conrelid, f.confrelid,
        (SELECT json_agg(quote_ident(a.attname) ORDER BY u.place) FROM unnest(f.conkey) WITH ORDINALITY u (number,
            place) JOIN pg_attribute a ON a.attrelid = f.conrelid AND a.attnum = u.number) AS columns,
        (SELECT json_agg(quote_ident(a.attname) ORDER BY u.place) FROM unnest(f.confkey) WITH ORDINALITY u (number,
            place) JOIN pg_attribute a ON a.attrelid = f.confrelid AND a.attnum = u.number) AS others
    FROM pg_constraint f JOIN pg_class c ON c.oid = f.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE f.contype = 'f' AND f.conparentid = 0 AND {OWN} AND {LISTED} AND EXISTS (SELECT 1 FROM pg_class c
        JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = f.confrelid AND {LISTED})
        ORDER BY f.oid LIMIT {_MOST_KEYS}) k), '[]'))::text
"""
_SEARCH = f"""
WITH hits AS (
    SELECT 1 AS rank, {SPELLED} || ' (' || {KIND} || ')' AS hit, c.relname AS name,
        obj_description(c.oid, 'pg_class') AS comment
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE {OWN} AND {LISTED} AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND NOT c.relispartition
  UNION ALL
    SELECT 2, {SPELLED} || '.' || quote_ident(a.attname) || ' ' || format_type(a.atttypid, a.atttypmod),
        a.attname,
        col_description(c.oid, a.attnum)
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE {OWN} AND {LISTED} AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition AND a.attnum > 0
        AND NOT a.attisdropped
  UNION ALL
    SELECT 3, {SPELLED} || ' (index on ' || i.indrelid::regclass || ')', c.relname,
        obj_description(c.oid, 'pg_class')
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE {OWN} AND {LISTED} AND NOT c.relispartition
  UNION ALL
    SELECT 4, format('%I.%I(%s)', n.nspname, p.proname, pg_get_function_identity_arguments(p.oid)), p.proname,
        obj_description(p.oid, 'pg_proc')
    FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE {OWN} AND {WHOLE}
  UNION ALL
    SELECT 5, format('%I.%I (type)', n.nspname, t.typname),
        t.typname || ' ' || coalesce(string_agg(e.enumlabel, ' '), ''),
        obj_description(t.oid, 'pg_type')
    FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace LEFT JOIN pg_enum e ON e.enumtypid = t.oid
    WHERE {OWN} AND {WHOLE} AND t.typtype IN ('e', 'd', 'r') GROUP BY t.oid, n.nspname
  UNION ALL
    SELECT 6, {SPELLED} || ' (trigger ' || quote_ident(t.tgname) || ')', t.tgname, NULL
    FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE {OWN} AND {LISTED} AND NOT t.tgisinternal
)
SELECT coalesce(json_agg(hit || coalesce(': ' || regexp_replace(comment, '\\s+', ' ', 'g'), '')), '[]')::text FROM (
    SELECT hit, comment FROM hits
    WHERE strpos(lower(name), lower($1)) > 0 OR strpos(lower(coalesce(comment, '')), lower($1)) > 0
    ORDER BY lower(name) <> lower($1), strpos(lower(name), lower($1)) = 0, rank, hit LIMIT $2::int) x
"""

_NAMES = {
    "schema": f"SELECT nspname AS name FROM pg_namespace n WHERE {OWN} AND {NAMED_IN}"
    " AND has_schema_privilege(n.oid, 'USAGE')",
    "table": "SELECT c.relname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    f" WHERE n.nspname = $2 AND {LISTED} AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition",
    "column": "SELECT a.attname AS name FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n"
    f" ON n.oid = c.relnamespace WHERE n.nspname = $2 AND c.relname = $3 AND {LISTED}"
    " AND a.attnum > 0 AND NOT a.attisdropped",
}


async def as_json(session: Session, sql: str, *values: str | None) -> Any:
    text = await session.value(sql, *values)
    return None if text is None else json.loads(text)


async def find_table(session: Session, table: Table) -> dict[str, str]:
    """Its oid, schema, name and kind; without a schema what callers' statements mean by the name, or the only one.

    Raises:
        NotFound: there is none.
        Invalid: there are several, none of which a statement would mean.
    """
    for name in dict.fromkeys((table.name, table.name.lower())):
        meant = None
        if table.schema is None:
            await their_names(session)
            meant = await session.value(_MEANT, identifier(name))
            await own_names(session)
        found = cast("list[dict[str, str]]", await as_json(session, _FIND_TABLE, name, table.schema, meant))
        if wanted := [item for item in found if item["oid"] == meant] or (found if len(found) == 1 else []):
            return wanted[0]
        if found:
            spelled = ", ".join(quote(item["spelled"]) for item in found[:_NAMED])
            more = ", ..." if len(found) > _NAMED else ""
            raise Invalid(f"Several schemas have a table {quote(name)}.", f"Name one of them: {spelled}{more}.")
    where = f" in {quote(table.schema)}" if table.schema else ""
    what = f"There is no table or view {quote(table.name)}{where}."
    raise Missing(what, "`list_objects` lists them.", kind="relation", name=table.name)


async def describe(session: Session, table: Table) -> dict[str, Any]:
    """Everything about a table, view or sequence.

    Raises:
        NotFound: there is none of that name.
    """
    await session.world.look_at_part(session)
    found = await find_table(session, table)
    described = _told(session, await as_json(session, _DESCRIBE, f"{{{found['oid']}}}"))
    near = await as_json(session, _KEYS, found["oid"])
    keys = [Key(table, tuple(own), other, tuple(to)) for table, own, other, to in near["keys"]]
    return {**found, **described, "joins": joins(keys, near["me"], spelled=str)}


async def describe_all(session: Session, listed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Everything about the tables of a `listing`; those that went away meanwhile are left out."""
    await session.world.look_at_part(session)
    oids = "{" + ",".join(item["oid"] for item in listed) + "}"
    cursor = await session.cursor().execute(_DESCRIBE.encode(), [oids])
    described = {
        found["oid"]: _told(session, found) for found in [json.loads(row[0]) for row in await cursor.fetchall()]
    }
    return [{**item, **described[item["oid"]]} for item in listed if item["oid"] in described]


def _told(session: Session, found: dict[str, Any]) -> dict[str, Any]:
    """What may be told of a table of which columns are masked: no value of theirs, bounds of partitions neither."""
    if masked := session.world.part.masked(int(found["oid"])):
        found["partition_of"] = found["partitions"] = None
        for column in found["columns"]:
            if column["name"] in masked:
                column |= {"masked": True, "values": None}
    return found


async def find(session: Session, words: str, limit: int) -> list[str]:
    """Where `words` occur in names and comments, the best first."""
    return await as_json(session, _SEARCH, words, str(limit))


async def names(session: Session, what: str, typed: str, *inside: str) -> list[str]:
    """Schemas, tables or columns that begin with `typed`."""
    numbered = f"SELECT coalesce(json_agg(name ORDER BY name), '[]')::text FROM (SELECT name FROM ({_NAMES[what]}) n"
    numbered += " WHERE starts_with(name::text, $1) ORDER BY 1 LIMIT 200) x"
    return await as_json(session, numbered, typed, *inside)
