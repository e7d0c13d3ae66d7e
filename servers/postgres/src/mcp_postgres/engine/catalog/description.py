"""What a database contains: reads PostgreSQL's own catalog so that a big one gives small answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from mcp_batteries.errors import Invalid, quote
from mcp_batteries.sql.language.identifiers import quote_identifier
from mcp_batteries.sql.language.joins import JoinKey, describe_joins
from mcp_postgres.engine.audit.visible_schema import HAS_MASKED, RELATION_LISTED, SCHEMA_NAMED, WHOLE_SCHEMA_LISTED
from mcp_postgres.engine.catalog.locked_relations import (
    IS_CLOSED,
    IS_LOCKED,
    LOCKED_RELATIONS,
    PARTITION_TREE,
    TOTAL_SIZE,
    UNANALYZED,
)
from mcp_postgres.engine.catalog.relation_sql import QUALIFIED_NAME, RELATION_KIND, USER_SCHEMA
from mcp_postgres.engine.connection.errors import MissingName
from mcp_postgres.engine.connection.session import Session, fetch_json, use_catalog_path, use_role_path
from mcp_postgres.policy import Table

__all__ = [
    "complete_names",
    "describe",
    "describe_all",
    "find_table",
    "read_details",
    "search_names",
]  # fmt: skip

# Foreign keys of a database among which ways to join tables are looked for.
_MAX_KEYS = 3000

_FIND_TABLE = f"""
SELECT coalesce(json_agg(x ORDER BY x.schema), '[]')::text FROM (
    SELECT c.oid::text, n.nspname AS schema, c.relname AS name, {RELATION_KIND} AS kind, {QUALIFIED_NAME} AS spelled
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND c.relname = $1 AND {RELATION_LISTED}
        AND CASE WHEN $2::text IS NOT NULL THEN n.nspname = $2 ELSE c.oid = $3::oid OR {USER_SCHEMA} END
    ORDER BY n.nspname LIMIT 100) x
"""
# What a name stands for in statements of others.
_OID_ON_PATH = "SELECT pg_catalog.to_regclass($1)::pg_catalog.oid"
# Tables of one name in several schemas that are told.
_MAX_NAMED = 5

# Values of a column are listed where none is longer.
_MAX_VALUE_CHARACTERS = 40
# Tables that inherit one, as far as its description names them.
_MAX_CHILDREN = 8
_CLOSED = IS_CLOSED.format(oid="c.oid")
_LOCKED = IS_LOCKED.format(oid="c.oid")
# Whether expressions that may name any column are left out.
_HIDDEN = f"({_CLOSED} OR {HAS_MASKED})"
# An index without its expressions.
_LOCKED_INDEX = """(SELECT format('CREATE %sINDEX %I ON %I.%I USING %s (%s)%s',
      CASE WHEN i.indisunique THEN 'UNIQUE ' END, x.relname, n.nspname, c.relname, m.amname, string_agg(CASE
      WHEN i.indkey[a.attnum - 1] = 0 THEN '...' ELSE
      quote_ident(a.attname) END, ', ' ORDER BY a.attnum), CASE WHEN i.indpred IS NOT NULL THEN ' WHERE ...' END)
      FROM pg_attribute a, pg_am m WHERE a.attrelid = x.oid AND m.oid = x.relam GROUP BY m.amname)"""
_DESCRIBE = f"""
WITH {LOCKED_RELATIONS} SELECT json_build_object(
  'oid', c.oid::text, 'reads_others', c.relkind = 'm' OR c.relhassubclass,
  'has_foreign_partitions', c.relkind = 'p' AND EXISTS (SELECT FROM pg_foreign_table f
      WHERE f.ftrelid IN (SELECT t.relid FROM {PARTITION_TREE} t)),
  'comment', obj_description(c.oid, 'pg_class'),
  'rows', CASE WHEN c.relkind = 'p' THEN (SELECT CASE WHEN max(l.reltuples) < 0 THEN -1 ELSE
      sum(greatest(l.reltuples, 0)) END FROM {PARTITION_TREE} t
      JOIN pg_class l ON l.oid = t.relid WHERE l.relkind <> 'p') ELSE c.reltuples END::bigint,
  'uncounted', {UNANALYZED},
  'bytes', {TOTAL_SIZE}, 'locked', (SELECT k.holder FROM locked k WHERE k.oid = c.oid OR c.relkind = 'p'
      AND k.oid IN (SELECT t.relid FROM {PARTITION_TREE} t) LIMIT 1),
  'closed', (SELECT k.holder FROM closed k WHERE k.oid = c.oid LIMIT 1),
  'owner', quote_ident(pg_get_userbyid(c.relowner)), 'security', c.relrowsecurity, 'forced', c.relforcerowsecurity,
  'unlogged', c.relpersistence = 'u',
  'columns', (SELECT coalesce(json_agg(json_build_object('name', a.attname, 'spelled', quote_ident(a.attname),
      'type', format_type(a.atttypid, a.atttypmod),
      'not_null', a.attnotnull, 'identity', a.attidentity <> '', 'generated', a.attgenerated <> '',
      'default', CASE WHEN NOT {_CLOSED} THEN pg_get_expr(d.adbin, d.adrelid) END,
      'comment', col_description(c.oid, a.attnum),
      'enum', (SELECT json_agg(e.enumlabel ORDER BY e.enumsortorder) FROM pg_enum e WHERE e.enumtypid = a.atttypid),
      'values', CASE WHEN cardinality(s.most_common_freqs) <= 12 AND s.null_frac + (SELECT sum(f) FROM
          unnest(s.most_common_freqs) f) > 0.99 AND length(s.most_common_vals::text) <= 300
          THEN (SELECT CASE WHEN max(length(v.value)) <= {_MAX_VALUE_CHARACTERS} THEN json_object_agg(v.value,
          CASE WHEN v.share < 1 THEN least(greatest(round(v.share * 100), 1), 99) ELSE 100 END) END
          FROM unnest(s.most_common_vals::text::text[], s.most_common_freqs) v (value, share)) END,
      'nulls', nullif(s.null_frac, 0))
      ORDER BY a.attnum), '[]') FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
      LEFT JOIN pg_stats s ON s.schemaname = n.nspname AND s.tablename = c.relname AND s.attname = a.attname
          AND s.inherited = c.relhassubclass
      WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
  'key', (SELECT json_agg(a.attname ORDER BY k.place) FROM pg_index i, unnest(i.indkey) WITH ORDINALITY k (number,
      place)
      JOIN pg_attribute a ON a.attnum = k.number WHERE i.indrelid = c.oid AND i.indisprimary AND a.attrelid = c.oid),
  'constraints', (SELECT coalesce(json_agg(json_build_object('name', conname, 'spelled', quote_ident(conname),
      'definition', CASE
      WHEN contype = 'c' AND {_CLOSED} THEN 'CHECK (...)' WHEN contype = 'x' AND {_HIDDEN} THEN 'EXCLUDE (...)'
      ELSE pg_get_constraintdef(oid) END, 'checked', CASE WHEN contype = 'c' THEN (SELECT json_agg(a.attname)
      FROM pg_attribute a WHERE a.attrelid = conrelid AND (a.attnum = ANY (conkey) OR 0 = ANY (conkey))) END)
      ORDER BY contype, conname), '[]') FROM pg_constraint
      WHERE conrelid = c.oid AND contype <> 'n'),
  'referred_by', (SELECT coalesce(json_agg(format('%s: %s', conrelid::regclass, pg_get_constraintdef(oid))
      ORDER BY conrelid::regclass::text, conname), '[]') FROM pg_constraint
      WHERE confrelid = c.oid AND contype = 'f' AND conparentid = 0),
  'indexes', (SELECT coalesce(json_agg(json_build_object('definition', CASE
      WHEN NOT {_HIDDEN} THEN pg_get_indexdef(i.indexrelid) ELSE {_LOCKED_INDEX} END, 'valid', i.indisvalid,
      'bytes', CASE WHEN NOT {_LOCKED} THEN pg_relation_size(i.indexrelid) END,
      'scans', s.idx_scan) ORDER BY x.relname), '[]') FROM pg_index i
      JOIN pg_class x ON x.oid = i.indexrelid LEFT JOIN pg_stat_all_indexes s ON s.indexrelid = i.indexrelid
      WHERE i.indrelid = c.oid),
  'triggers', (SELECT coalesce(json_agg(CASE WHEN tgqual IS NULL OR NOT {_HIDDEN} THEN
      pg_get_triggerdef(oid) ELSE format('TRIGGER %I ... WHEN (...)', tgname) END ORDER BY tgname), '[]')
      FROM pg_trigger
      WHERE tgrelid = c.oid AND NOT tgisinternal),
  'rules', (SELECT coalesce(json_agg(CASE WHEN NOT {_HIDDEN} THEN pg_get_ruledef(oid) ELSE
      format('RULE %I ...', rulename) END ORDER BY rulename), '[]') FROM pg_rewrite
      WHERE ev_class = c.oid AND rulename <> '_RETURN'),
  'inherits', (SELECT string_agg(i.inhparent::regclass::text, ', ' ORDER BY i.inhseqno) FROM pg_inherits i
      WHERE i.inhrelid = c.oid AND NOT c.relispartition),
  'scans_since', (SELECT s.stats_reset::date::text FROM pg_stat_database s WHERE s.datname = current_database()),
  'inherited_by', (SELECT string_agg(x.name, ', ' ORDER BY x.place) FILTER (WHERE x.place <= {_MAX_CHILDREN})
      || CASE WHEN count(*) > {_MAX_CHILDREN} THEN format(', ... %s more', count(*) - {_MAX_CHILDREN}) ELSE '' END
      FROM (SELECT i.inhrelid::regclass::text AS name, row_number() OVER (ORDER BY i.inhrelid) AS place
          FROM pg_inherits i WHERE i.inhparent = c.oid AND c.relkind <> 'p') x),
  'foreign_server', (SELECT quote_ident(s.srvname) FROM pg_foreign_table f
      JOIN pg_foreign_server s ON s.oid = f.ftserver WHERE f.ftrelid = c.oid),
  'policies', (SELECT coalesce(json_agg(format('%I for %s to %s%s%s', policyname, cmd,
      (SELECT string_agg(quote_ident(r), ', ') FROM unnest(roles) r),
      CASE WHEN NOT {_HIDDEN} THEN ' using ' || qual END,
      CASE WHEN NOT {_HIDDEN} THEN ' with check ' || with_check END) ORDER BY policyname), '[]')
      FROM pg_policies
      WHERE schemaname = n.nspname AND tablename = c.relname),
  'grants', (SELECT coalesce(json_agg(g), '[]') FROM (SELECT format('%s: %s', CASE WHEN a.grantee = 0 THEN 'public'
      ELSE quote_ident(pg_get_userbyid(a.grantee)) END,
      string_agg(lower(a.privilege_type), ', ' ORDER BY a.privilege_type)) AS g
      FROM aclexplode(c.relacl) a WHERE a.grantee <> c.relowner GROUP BY a.grantee UNION ALL
      SELECT format('%s: %s of %s', CASE WHEN g.grantee = 0 THEN 'public' ELSE
          quote_ident(pg_get_userbyid(g.grantee)) END,
          lower(g.privilege_type), string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum)) FROM pg_attribute a,
          aclexplode(a.attacl) g WHERE a.attrelid = c.oid AND NOT a.attisdropped AND g.grantee <> c.relowner
          GROUP BY g.grantee, g.privilege_type ORDER BY 1) x),
  'partition_of', CASE WHEN c.relispartition THEN (SELECT concat_ws(' ', inhparent::regclass,
      CASE WHEN NOT {_CLOSED} THEN pg_get_expr(c.relpartbound, c.oid) END) FROM pg_inherits WHERE inhrelid = c.oid) END,
  'partition_by', CASE WHEN c.relkind = 'p' AND NOT {_CLOSED} THEN pg_get_partkeydef(c.oid) END,
  'partitions', CASE WHEN c.relkind = 'p' THEN (SELECT json_agg(p.text) FROM (SELECT concat_ws(' ', l.oid::regclass,
      CASE WHEN NOT {IS_LOCKED.format(oid="l.oid")} THEN pg_get_expr(l.relpartbound, l.oid) END) AS text
      FROM pg_inherits i JOIN pg_class l ON l.oid = i.inhrelid
      WHERE i.inhparent = c.oid ORDER BY 1) p) END,
  'definition', CASE WHEN c.relkind IN ('v', 'm') AND NOT {_CLOSED} THEN pg_get_viewdef(c.oid, true) END,
  'sequence', CASE WHEN c.relkind = 'S' AND NOT {_CLOSED} THEN (SELECT format('type %s, from %s to %s by %s, now %s',
      format_type(q.seqtypid, NULL), q.seqmin, q.seqmax,
      q.seqincrement, pg_sequence_last_value(c.oid)) FROM pg_sequence q WHERE q.seqrelid = c.oid
      AND has_sequence_privilege(c.oid, 'SELECT')) END
)::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = ANY ($1::oid[])
"""

_FOREIGN_KEYS = f"""
SELECT json_build_object('me', $1::oid::regclass::text, 'keys', coalesce((SELECT json_agg(json_build_array(
    k.conrelid::regclass::text, k.columns, k.confrelid::regclass::text, k.others)) FROM (SELECT f.conrelid, f.confrelid,
        (SELECT json_agg(quote_ident(a.attname) ORDER BY u.place) FROM unnest(f.conkey) WITH ORDINALITY u (number,
            place) JOIN pg_attribute a ON a.attrelid = f.conrelid AND a.attnum = u.number) AS columns,
        (SELECT json_agg(quote_ident(a.attname) ORDER BY u.place) FROM unnest(f.confkey) WITH ORDINALITY u (number,
            place) JOIN pg_attribute a ON a.attrelid = f.confrelid AND a.attnum = u.number) AS others
    FROM pg_constraint f JOIN pg_class c ON c.oid = f.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE f.contype = 'f' AND f.conparentid = 0 AND {USER_SCHEMA} AND {RELATION_LISTED} AND EXISTS (SELECT 1 FROM
    pg_class c
        JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = f.confrelid AND {RELATION_LISTED})
        ORDER BY f.oid LIMIT {_MAX_KEYS}) k), '[]'))::text
"""
_SEARCH = f"""
WITH hits AS (
    SELECT 1 AS rank, {QUALIFIED_NAME} || ' (' || {RELATION_KIND} || ')' AS hit, c.relname AS name,
        obj_description(c.oid, 'pg_class') AS comment
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE {USER_SCHEMA} AND {RELATION_LISTED} AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND NOT c.relispartition
  UNION ALL
    SELECT 2, {QUALIFIED_NAME} || '.' || quote_ident(a.attname) || ' ' || format_type(a.atttypid, a.atttypmod),
        a.attname,
        col_description(c.oid, a.attnum)
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE {USER_SCHEMA} AND {RELATION_LISTED} AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition AND
    a.attnum > 0
        AND NOT a.attisdropped
  UNION ALL
    SELECT 3, {QUALIFIED_NAME} || ' (index on ' || i.indrelid::regclass || ')', c.relname,
        obj_description(c.oid, 'pg_class')
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE {USER_SCHEMA} AND {RELATION_LISTED} AND NOT c.relispartition
  UNION ALL
    SELECT 4, format('%I.%I(%s)', n.nspname, p.proname, pg_get_function_identity_arguments(p.oid)), p.proname,
        obj_description(p.oid, 'pg_proc')
    FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE {USER_SCHEMA} AND {WHOLE_SCHEMA_LISTED}
  UNION ALL
    SELECT 5, format('%I.%I (type)', n.nspname, t.typname),
        t.typname || ' ' || coalesce(string_agg(e.enumlabel, ' '), ''),
        obj_description(t.oid, 'pg_type')
    FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace LEFT JOIN pg_enum e ON e.enumtypid = t.oid
    WHERE {USER_SCHEMA} AND {WHOLE_SCHEMA_LISTED} AND t.typtype IN ('e', 'd', 'r') GROUP BY t.oid, n.nspname
  UNION ALL
    SELECT 6, {QUALIFIED_NAME} || ' (trigger ' || quote_ident(t.tgname) || ')', t.tgname, NULL
    FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE {USER_SCHEMA} AND {RELATION_LISTED} AND NOT t.tgisinternal
)
SELECT coalesce(json_agg(hit || coalesce(': ' || regexp_replace(comment, '\\s+', ' ', 'g'), '')), '[]')::text FROM (
    SELECT hit, comment FROM hits
    WHERE strpos(lower(name), lower($1)) > 0 OR strpos(lower(coalesce(comment, '')), lower($1)) > 0
    ORDER BY lower(name) <> lower($1), strpos(lower(name), lower($1)) = 0, rank, hit LIMIT $2::int) x
"""

_COMPLETIONS = {
    "schema": f"SELECT nspname AS name FROM pg_namespace n WHERE {USER_SCHEMA} AND {SCHEMA_NAMED}"
    " AND has_schema_privilege(n.oid, 'USAGE')",
    "table": "SELECT c.relname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    f" WHERE n.nspname = $2 AND {RELATION_LISTED} AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition",
    "column": "SELECT a.attname AS name FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n"
    f" ON n.oid = c.relnamespace WHERE n.nspname = $2 AND c.relname = $3 AND {RELATION_LISTED}"
    " AND a.attnum > 0 AND NOT a.attisdropped",
}


async def find_table(session: Session, table: Table) -> dict[str, str]:
    """Return a table's oid, schema, name and kind.

    Without a schema it is the table that callers' statements mean by the name, or the only one of that name.

    Raises:
        NotFound: there is none.
        Invalid: there are several, none of which a statement would mean.
    """
    for name in dict.fromkeys((table.name, table.name.lower())):
        oid_on_path = None
        if table.schema is None:
            await use_role_path(session)
            oid_on_path = await session.fetch_value(_OID_ON_PATH, quote_identifier(name))
            await use_catalog_path(session)
        tables = cast("list[dict[str, str]]", await fetch_json(session, _FIND_TABLE, name, table.schema, oid_on_path))
        if matches := [item for item in tables if item["oid"] == oid_on_path] or (tables if len(tables) == 1 else []):
            return matches[0]
        if tables:
            names = ", ".join(quote(item["spelled"]) for item in tables[:_MAX_NAMED])
            more = ", ..." if len(tables) > _MAX_NAMED else ""
            raise Invalid(f"Several schemas have a table {quote(name)}.", f"Name one of them: {names}{more}.")
    schema_note = ""
    name = table.name
    if table.schema:
        schema_note = f" in {quote(table.schema)}"
        name = f"{table.schema}.{table.name}"
    failure = f"There is no table or view {quote(table.name)}{schema_note}."
    raise MissingName(failure, "`list_objects` lists them.", kind="relation", name=name)


async def describe(session: Session, table: Table) -> dict[str, Any]:
    """Return everything about a table, view or sequence.

    Raises:
        NotFound: there is none of that name.
    """
    await session.audit.refresh_visible(session)
    identity = await find_table(session, table)
    description = _drop_vanished(await fetch_json(session, _DESCRIBE, f"{{{identity['oid']}}}"))
    description = _hide_masked(session, description)
    keys_near = await fetch_json(session, _FOREIGN_KEYS, identity["oid"])
    keys = [JoinKey(table, tuple(own), other, tuple(to)) for table, own, other, to in keys_near["keys"]]
    return {**identity, **description, "joins": describe_joins(keys, keys_near["me"], spell=str)}


async def describe_all(session: Session, tables: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return everything about the tables of `list_objects`; those that went away meanwhile are left out."""
    described = await read_details(session, tables)
    return [{**item, **described[item["oid"]]} for item in tables if item["oid"] in described]


async def read_details(session: Session, tables: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return everything about the tables of `list_objects`, by their oid."""
    await session.audit.refresh_visible(session)
    oids = "{" + ",".join(item["oid"] for item in tables) + "}"
    sql = session.audit.visible.fill_placeholders(_DESCRIBE)
    cursor = await session.cursor().execute(sql.encode(), [oids])
    described: dict[str, dict[str, Any]] = {}
    for row in await cursor.fetchall():
        description = json.loads(row[0])
        described[description["oid"]] = _hide_masked(session, _drop_vanished(description))
    return described


def _drop_vanished(description: dict[str, Any]) -> dict[str, Any]:
    """Return the description without what was dropped while it was read: PostgreSQL then has no definition of it."""
    for kind in ("constraints", "indexes"):
        description[kind] = [item for item in description[kind] if item["definition"] is not None]
    for kind in ("triggers", "rules"):
        description[kind] = [definition for definition in description[kind] if definition is not None]
    return description


def _hide_masked(session: Session, description: dict[str, Any]) -> dict[str, Any]:
    """Return what may be told of a table with masked columns: no value of theirs, nor in bounds, checks or defaults.

    Other expressions, as of indexes and policies, are left out of the query itself, by `HAS_MASKED`.

    Where a part is served, no statistics of what has rows of other tables, such as a materialized view: these may be
    not served, or masked.
    """
    if description["reads_others"] and session.audit.visible.schema:
        for column in description["columns"]:
            column["values"] = None
            column["nulls"] = None
    masked = session.audit.visible.masked_columns(int(description["oid"]))
    if not masked:
        return description
    description["partition_of"] = None
    description["partitions"] = None
    for column in description["columns"]:
        if column["name"] in masked:
            column["masked"] = True
            column["values"] = None
            column["nulls"] = None
            if column["default"] is not None:
                column["default"] = "..."
    for constraint in description["constraints"]:
        if not masked.isdisjoint(constraint["checked"] or ()):
            constraint["definition"] = "CHECK (...)"
    return description


async def search_names(session: Session, words: str, limit: int) -> list[str]:
    """Return where `words` occur in names and comments, the best first."""
    return await fetch_json(session, _SEARCH, words, str(limit))


async def complete_names(session: Session, kind: str, typed: str, *parents: str) -> list[str]:
    """Return schemas, tables or columns that begin with `typed`."""
    numbered = (
        f"SELECT coalesce(json_agg(name ORDER BY name), '[]')::text FROM (SELECT name FROM ({_COMPLETIONS[kind]}) n"
    )
    numbered += " WHERE starts_with(name::text, $1) ORDER BY 1 LIMIT 200) x"
    return await fetch_json(session, numbered, typed, *parents)
