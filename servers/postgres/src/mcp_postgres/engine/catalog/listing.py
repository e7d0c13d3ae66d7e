"""Lists objects of a kind, page by page, from PostgreSQL's own catalog, so that a big one gives small answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from mcp_postgres.engine.audit.visible_schema import HAS_MASKED, RELATION_LISTED, SCHEMA_NAMED, WHOLE_SCHEMA_LISTED
from mcp_postgres.engine.catalog.locked_relations import (
    IS_CLOSED,
    IS_LOCKED,
    LOCKED_RELATIONS,
    PARTITION_TREE,
    TOTAL_SIZE,
    UNANALYZED,
)
from mcp_postgres.engine.catalog.relation_sql import (
    IS_OF_EXTENSION,
    IS_READABLE,
    QUALIFIED_NAME,
    RELATION_KIND,
    USER_SCHEMA,
)
from mcp_postgres.engine.connection.session import Session, fetch_json

__all__ = ["list_objects", "list_schemas"]

# Labels of an enum that stand with a column.
_MAX_LABELS = 12
# What two schemas have in common that are alike, for the role: relations with their columns, and functions.
_SHAPE = f"""md5(string_agg(concat_ws(' ', c.relkind, c.relname, (SELECT string_agg(concat_ws(' ', a.attname,
        y.typname, a.atttypmod), ',' ORDER BY a.attnum) FROM pg_attribute a JOIN pg_type y ON y.oid = a.atttypid
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped)), ';' ORDER BY c.relname)
        FILTER (WHERE NOT c.relispartition AND {IS_READABLE})
    || coalesce((SELECT string_agg(concat_ws(' ', p.proname, p.pronargs), ';' ORDER BY p.proname, p.pronargs)
        FROM pg_proc p WHERE p.pronamespace = n.oid), ''))"""
# Tables that inherit, of which a list without a schema shows only the one they inherit: chunks of TimescaleDB, or
# partitions as they were made before PostgreSQL had them.
_MAX_CHILDREN = 20
_CROWDS = f"""crowds AS MATERIALIZED (
    SELECT i.inhparent FROM pg_inherits i JOIN pg_class p ON p.oid = i.inhparent AND p.relkind IN ('r', 'f')
    GROUP BY i.inhparent HAVING count(*) > {_MAX_CHILDREN})"""
_HAS_CROWD = "c.oid IN (SELECT w.inhparent FROM crowds w)"
_IN_CROWD = "EXISTS (SELECT 1 FROM pg_inherits i JOIN crowds w ON w.inhparent = i.inhparent WHERE i.inhrelid = c.oid)"
# What every new database says of its schema `public` tells nothing of this one.
_SCHEMAS = f"""
WITH {LOCKED_RELATIONS}, {_CROWDS} SELECT coalesce(json_agg(x ORDER BY x.name), '[]')::text FROM (
    SELECT n.nspname AS name, quote_ident(n.nspname) AS spelled,
        nullif(obj_description(n.oid, 'pg_namespace'), 'standard public schema') AS comment,
        count(c.oid) FILTER (WHERE c.relkind IN ('r', 'p', 'f') AND NOT c.relispartition AND {IS_READABLE}
            AND NOT {IS_OF_EXTENSION} AND NOT {_IN_CROWD}) AS tables,
        count(c.oid) FILTER (WHERE c.relkind IN ('v', 'm') AND {IS_READABLE} AND NOT {IS_OF_EXTENSION}) AS views,
        count(c.oid) FILTER (WHERE NOT c.relispartition AND {IS_OF_EXTENSION}) AS of_extensions,
        count(c.oid) FILTER (WHERE NOT c.relispartition AND NOT {IS_READABLE} AND NOT {IS_OF_EXTENSION}) AS unreadable,
        count(c.oid) FILTER (WHERE {IS_READABLE} AND NOT {IS_OF_EXTENSION} AND {_IN_CROWD}) AS inheriting,
        coalesce(sum({TOTAL_SIZE}) FILTER (WHERE c.relkind IN ('r', 'm')), 0) AS bytes,
        count(*) FILTER (WHERE c.relkind IN ('r', 'm') AND {IS_LOCKED.format(oid="c.oid")}) AS locked,
        {_SHAPE} AS shape
    FROM pg_namespace n LEFT JOIN pg_class c ON c.relnamespace = n.oid AND c.relkind IN ('r', 'p', 'f', 'v', 'm')
        AND {RELATION_LISTED}
    WHERE {USER_SCHEMA} AND {SCHEMA_NAMED} AND has_schema_privilege(n.oid, 'USAGE') GROUP BY n.oid) x
"""
_PAGE = """
SELECT coalesce(json_agg(x), '[]')::text FROM (SELECT * FROM ({objects}) o
    WHERE ($2::text IS NULL OR strpos(lower(o.name), lower($2)) > 0) AND o.schema <> ALL (ARRAY(
        SELECT json_array_elements_text($5::json)))
    ORDER BY o.schema, o.name{order} LIMIT $3::int OFFSET $4::int) x
"""
# Whether an object is in the schema that was named; where none was, in one that people made.
_IN_SCHEMA = f"CASE WHEN $1::text IS NULL THEN {USER_SCHEMA} ELSE n.nspname = $1 END"
# Whether an object is not part of an extension or of another object.
_STANDS_ALONE = """NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = {table}.oid AND d.classid =
    'pg_{name}'::regclass
    AND d.deptype IN ({types}))"""
_REFERENCED_TABLE = (
    "CASE WHEN f.relnamespace = c.relnamespace THEN quote_ident(f.relname)"
    " ELSE format('%I.%I', fn.nspname, f.relname) END"
)
# The type `y` of a column `a`; of an enum of the table's own schema its first labels too.
_TYPE_OF_COLUMN = f"""CASE WHEN y.typtype IN ('e', 'd') AND y.typnamespace = c.relnamespace THEN quote_ident(y.typname)
    ELSE format_type(a.atttypid, a.atttypmod) END
    || CASE WHEN y.typtype = 'e' AND y.typnamespace = c.relnamespace AND {WHOLE_SCHEMA_LISTED} THEN
    (SELECT format('(%s%s)', string_agg(quote_literal(e.enumlabel), ',' ORDER BY e.place) FILTER
            (WHERE e.place <= {_MAX_LABELS}), CASE WHEN count(*) > {_MAX_LABELS} THEN ',...' END)
        FROM (SELECT l.enumlabel, row_number() OVER (ORDER BY l.enumsortorder) AS place FROM pg_enum l
            WHERE l.enumtypid = y.oid) e) ELSE '' END"""

_TABLES = f"""
WITH {LOCKED_RELATIONS}, {_CROWDS}
SELECT n.nspname AS schema, c.relname AS name, c.oid::text, {QUALIFIED_NAME} AS spelled, {RELATION_KIND} AS kind,
    obj_description(c.oid, 'pg_class') AS comment,
    CASE WHEN c.relkind = 'p' OR {_HAS_CROWD} THEN (SELECT CASE WHEN max(l.reltuples) < 0 THEN -1 ELSE
      sum(greatest(l.reltuples, 0)) END FROM {PARTITION_TREE} t
        JOIN pg_class l ON l.oid = t.relid WHERE l.relkind <> 'p') ELSE c.reltuples END::bigint AS rows,
    {UNANALYZED} AS uncounted, row_security_active(c.oid) AS filtered,
    CASE WHEN {_HAS_CROWD} THEN (SELECT sum(pg_total_relation_size(t.relid)) FROM {PARTITION_TREE} t
        WHERE NOT {IS_LOCKED.format(oid="t.relid")}) ELSE {TOTAL_SIZE} END AS bytes,
    {_HAS_CROWD} AS counts_children, CASE WHEN c.relhassubclass AND c.relkind <> 'p' THEN (SELECT count(*)
        FROM pg_inherits i WHERE i.inhparent = c.oid) ELSE 0 END AS children,
    (SELECT k.holder FROM locked k WHERE k.oid = c.oid OR c.relkind = 'p'
        AND k.oid IN (SELECT t.relid FROM {PARTITION_TREE} t) LIMIT 1) AS locked,
    CASE WHEN c.relkind = 'p' THEN (SELECT count(*) FROM {PARTITION_TREE} t JOIN pg_class l ON l.oid = t.relid
        WHERE l.relkind <> 'p') END AS partitions,
    (SELECT json_agg(quote_ident(a.attname) || coalesce((SELECT ' -> ' || string_agg({_REFERENCED_TABLE}, ', ' ORDER
    BY k.conname)
            FROM pg_constraint k JOIN pg_class f ON f.oid = k.confrelid JOIN pg_namespace fn ON fn.oid = f.relnamespace
            WHERE k.conrelid = c.oid AND k.contype = 'f' AND k.conkey = ARRAY[a.attnum]
                AND (c.relkind <> 'p' OR k.conparentid = 0)), '') ORDER BY a.attnum)
        FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS columns,
    (SELECT json_agg({_TYPE_OF_COLUMN} ORDER BY a.attnum)
        FROM pg_attribute a JOIN pg_type y ON y.oid = a.atttypid
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS types,
    (SELECT json_agg(quote_ident(a.attname) ORDER BY u.place) FROM pg_constraint k,
        unnest(k.conkey) WITH ORDINALITY u (number, place), pg_attribute a
        WHERE k.conrelid = c.oid AND k.contype = 'p' AND a.attrelid = c.oid AND a.attnum = u.number) AS key,
    (SELECT json_agg(format('(%s) -> %s', (SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY u.place)
            FROM unnest(k.conkey) WITH ORDINALITY u (number, place) JOIN pg_attribute a ON a.attrelid = c.oid
                AND a.attnum = u.number), {_REFERENCED_TABLE}) ORDER BY k.conname)
        FROM pg_constraint k JOIN pg_class f ON f.oid = k.confrelid JOIN pg_namespace fn ON fn.oid = f.relnamespace
        WHERE k.conrelid = c.oid AND k.contype = 'f' AND cardinality(k.conkey) > 1) AS wide,
    (SELECT json_agg(DISTINCT {_REFERENCED_TABLE}) FROM pg_constraint k JOIN pg_class f ON f.oid = k.confrelid
        JOIN pg_namespace fn ON fn.oid = f.relnamespace WHERE k.conrelid = c.oid AND k.contype = 'f') AS refers
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ({{kinds}}) AND NOT c.relispartition AND {_IN_SCHEMA} AND {RELATION_LISTED}
    AND (c.relkind = 'S' OR {IS_READABLE})
    AND NOT (($1::text IS NULL OR c.relkind = 'S') AND {IS_OF_EXTENSION})
    AND NOT ($1::text IS NULL AND $2::text IS NULL AND {_IN_CROWD})
"""
_FUNCTIONS = f"""
SELECT n.nspname AS schema, p.proname AS name, format('%I.%I', n.nspname, p.proname) AS spelled, p.oid,
    CASE p.prokind WHEN 'p' THEN 'procedure' WHEN 'a' THEN 'aggregate' WHEN 'w' THEN 'window function'
        ELSE 'function' END AS kind, obj_description(p.oid, 'pg_proc') AS comment,
    format('(%s)%s%s', pg_get_function_arguments(p.oid), ' returns ' || pg_get_function_result(p.oid),
        CASE WHEN p.prosecdef THEN ', as its owner ' || pg_get_userbyid(p.proowner) END) AS signature
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE {_IN_SCHEMA} AND {WHOLE_SCHEMA_LISTED} AND {_STANDS_ALONE.format(table="p", name="proc", types="'e', 'i'")}
"""
_TYPES = f"""
SELECT n.nspname AS schema, t.typname AS name, format('%I.%I', n.nspname, t.typname) AS spelled, t.oid,
    CASE t.typtype WHEN 'e' THEN 'enum' WHEN 'd' THEN 'domain' WHEN 'c' THEN 'composite type' WHEN 'r' THEN 'range'
        ELSE 'type' END AS kind, obj_description(t.oid, 'pg_type') AS comment,
    CASE t.typtype WHEN 'e' THEN (SELECT '(' || string_agg(quote_literal(e.enumlabel), ', ' ORDER BY
            e.enumsortorder) || ')' FROM pg_enum e WHERE e.enumtypid = t.oid)
        WHEN 'c' THEN (SELECT '(' || string_agg(format('%I %s', a.attname, format_type(a.atttypid, a.atttypmod)),
            ', ' ORDER BY a.attnum) || ')' FROM pg_attribute a
            WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped)
        WHEN 'r' THEN (SELECT ' over ' || format_type(r.rngsubtype, NULL) FROM pg_range r WHERE r.rngtypid = t.oid)
        WHEN 'd' THEN ' over ' || format_type(t.typbasetype, t.typtypmod) || coalesce(' ' || (SELECT
            string_agg(pg_get_constraintdef(k.oid), ' ') FROM pg_constraint k WHERE k.contypid = t.oid), '') ||
            CASE WHEN t.typnotnull AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.contypid = t.oid
                AND k.contype = 'n') THEN ' NOT NULL' ELSE '' END END
                AS signature
FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace LEFT JOIN pg_class c ON c.oid = t.typrelid
WHERE {_IN_SCHEMA} AND {WHOLE_SCHEMA_LISTED} AND t.typtype IN ('e', 'd', 'c', 'r') AND coalesce(c.relkind, 'c') = 'c'
    AND {_STANDS_ALONE.format(table="t", name="type", types="'e'")}
"""
_EXTENSIONS = """
SELECT n.nspname AS schema, e.extname AS name, quote_ident(e.extname) AS spelled, 'extension' AS kind,
    obj_description(e.oid, 'pg_extension') AS comment, ' ' || e.extversion || ' in ' || quote_ident(n.nspname) ||
    coalesce((SELECT ', ' || a.default_version || ' can be had' FROM pg_available_extensions() a (name, default_version)
        WHERE a.name = e.extname AND a.default_version <> e.extversion), '') AS signature
FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE $1::text IS NULL OR n.nspname = $1
"""
_TRIGGERS = f"""
WITH {LOCKED_RELATIONS}
SELECT n.nspname AS schema, t.tgname AS name, format('%I on %s', t.tgname, {QUALIFIED_NAME}) AS spelled,
    'trigger' || CASE t.tgenabled WHEN 'D' THEN ', switched off' ELSE '' END AS kind,
    obj_description(t.oid, 'pg_trigger') AS comment,
    CASE WHEN t.tgqual IS NOT NULL AND {HAS_MASKED} THEN ': its condition is not told: columns are masked'
        WHEN t.tgqual IS NULL OR NOT {IS_CLOSED.format(oid="c.oid")} THEN
        ': ' || regexp_replace(pg_get_triggerdef(t.oid), '^CREATE (CONSTRAINT )?TRIGGER (".*?"|\\S+) ', '')
        ELSE (SELECT format(': not known now: %s', k.holder) FROM closed k WHERE k.oid = c.oid LIMIT 1) END AS signature
FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE {_IN_SCHEMA} AND {RELATION_LISTED} AND NOT t.tgisinternal AND t.tgparentid = 0
"""
_POLICIES = f"""
WITH {LOCKED_RELATIONS}
SELECT n.nspname AS schema, p.polname AS name, format('%I on %s', p.polname, {QUALIFIED_NAME}) AS spelled,
    CASE WHEN p.polpermissive THEN 'policy' ELSE 'restrictive policy' END
        || CASE WHEN c.relrowsecurity THEN '' ELSE ', without effect: row level security is off' END AS kind,
    obj_description(p.oid, 'pg_policy') AS comment,
    concat(' for ', CASE p.polcmd WHEN 'r' THEN 'select' WHEN 'a' THEN 'insert' WHEN 'w' THEN 'update' WHEN 'd' THEN
        'delete' ELSE 'all' END, ' to ', (SELECT string_agg(CASE r.oid WHEN 0 THEN 'public' ELSE
        quote_ident(pg_get_userbyid(r.oid)) END, ', ') FROM unnest(p.polroles) r (oid)),
        CASE WHEN {HAS_MASKED} THEN '; its condition is not told: columns are masked'
        WHEN {IS_CLOSED.format(oid="c.oid")} THEN (SELECT format('; its condition is not known now: %s', k.holder)
            FROM closed k WHERE k.oid = c.oid LIMIT 1)
        ELSE concat(' using (' || pg_get_expr(p.polqual, p.polrelid) || ')',
            ' with check (' || pg_get_expr(p.polwithcheck, p.polrelid) || ')') END) AS signature
FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE {_IN_SCHEMA} AND {RELATION_LISTED}
"""
_GRANTEE = "CASE a.grantee WHEN 0 THEN 'public' ELSE quote_ident(pg_get_userbyid(a.grantee)) END"
_GRANTED_RIGHTS = (
    "string_agg(lower(a.privilege_type) || CASE WHEN a.is_grantable THEN ' (may pass it on)' ELSE '' END, ', '"
    " ORDER BY a.privilege_type)"
)
# PostgreSQL lets everybody execute a function on which nothing was granted or revoked.
_GRANTS = f"""
SELECT o.schema, o.name, o.spelled, o.kind, NULL AS comment,
    format(' to %s: %s', {_GRANTEE}, {_GRANTED_RIGHTS}) AS signature
FROM (
    SELECT n.nspname AS schema, c.relname AS name, {QUALIFIED_NAME} AS spelled, {RELATION_KIND} AS kind, c.relowner AS
    owner,
        c.relacl AS acl FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE {_IN_SCHEMA} AND {RELATION_LISTED} AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
  UNION ALL
    SELECT n.nspname, c.relname, {QUALIFIED_NAME} || '.' || quote_ident(b.attname), 'column', c.relowner, b.attacl
        FROM pg_attribute b JOIN pg_class c ON c.oid = b.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE {_IN_SCHEMA} AND {RELATION_LISTED} AND b.attacl IS NOT NULL
  UNION ALL
    SELECT n.nspname, n.nspname, quote_ident(n.nspname), 'schema', n.nspowner, n.nspacl FROM pg_namespace n
        WHERE {_IN_SCHEMA} AND {SCHEMA_NAMED}
  UNION ALL
    SELECT n.nspname, p.proname, format('%I.%I(%s)', n.nspname, p.proname, pg_get_function_identity_arguments(p.oid)),
        'function', p.proowner, p.proacl FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
        WHERE {_IN_SCHEMA} AND {WHOLE_SCHEMA_LISTED}
  UNION ALL
    SELECT coalesce(n.nspname, ''), '', format('what %s will make%s', quote_ident(pg_get_userbyid(e.defaclrole)),
        ' in ' || quote_ident(n.nspname)), CASE e.defaclobjtype WHEN 'r' THEN 'tables' WHEN 'S' THEN 'sequences'
        WHEN 'f' THEN 'functions' WHEN 'T' THEN 'types' ELSE 'schemas' END, e.defaclrole, e.defaclacl
        FROM pg_default_acl e LEFT JOIN pg_namespace n ON n.oid = e.defaclnamespace
        WHERE $1::text IS NULL OR n.nspname = $1
) o, aclexplode(o.acl) a WHERE a.grantee <> o.owner GROUP BY o.schema, o.name, o.spelled, o.kind, a.grantee
UNION ALL
SELECT n.nspname, '', format('functions of %I without grants of their own (%s)', n.nspname, count(*)), 'by default',
    NULL, ' to public: execute'
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE {_IN_SCHEMA} AND {WHOLE_SCHEMA_LISTED} AND p.proacl IS NULL
    AND {_STANDS_ALONE.format(table="p", name="proc", types="'e', 'i'")} GROUP BY n.nspname
UNION ALL
SELECT '', g.rolname, quote_ident(g.rolname), 'role', NULL, format(' to %s: member%s', string_agg(DISTINCT
    quote_ident(m.rolname), ', '), CASE WHEN x.admin_option THEN ' (may pass it on)' ELSE '' END)
FROM pg_auth_members x JOIN pg_roles g ON g.oid = x.roleid JOIN pg_roles m ON m.oid = x.member
WHERE $1::text IS NULL AND NOT (g.rolname ~ '^pg_' AND m.rolname ~ '^pg_') GROUP BY g.rolname, x.admin_option
"""
# Several roles may have granted the same membership; its options but admin are of PostgreSQL 16 and later.
_ROLES = """
SELECT '' AS schema, r.rolname AS name, quote_ident(r.rolname) AS spelled, 'role' AS kind,
    shobj_description(r.oid, 'pg_authid') AS comment,
    concat(CASE WHEN r.rolcanlogin THEN ' login' ELSE ' no login' END, CASE WHEN r.rolsuper THEN ', superuser' END,
        CASE WHEN r.rolcreatedb THEN ', createdb' END, CASE WHEN r.rolcreaterole THEN ', createrole' END,
        CASE WHEN r.rolreplication THEN ', replication' END, CASE WHEN r.rolbypassrls THEN ', bypassrls' END,
        CASE WHEN NOT r.rolinherit THEN ', noinherit' END, ', valid until ' || r.rolvaliduntil,
        ', member of ' || (SELECT string_agg(g.spelled, ', ' ORDER BY g.spelled) FROM (SELECT quote_ident(g.rolname)
            || CASE WHEN bool_or(m.admin_option) THEN ' with admin' ELSE '' END
            || CASE WHEN bool_or(coalesce((to_jsonb(m) ->> 'inherit_option')::boolean, true)) THEN '' ELSE
                ' without inherit' END
            || CASE WHEN bool_or(coalesce((to_jsonb(m) ->> 'set_option')::boolean, true)) THEN '' ELSE
                ' without set' END AS spelled
            FROM pg_auth_members m JOIN pg_roles g ON g.oid = m.roleid WHERE m.member = r.oid GROUP BY g.rolname) g))
        AS signature
FROM pg_roles r WHERE r.rolname !~ '^pg_' AND $1::text IS NULL
"""
_KINDS = {
    "tables": (_TABLES.format(kinds="'r', 'p', 'v', 'm', 'f'"), ""),
    "counts": (_TABLES.format(kinds="'r', 'p', 'm', 'f'"), ""),
    "sequences": (_TABLES.format(kinds="'S'"), ""),
    "functions": (_FUNCTIONS, ", o.oid"),
    "types": (_TYPES, ", o.oid"),
    "extensions": (_EXTENSIONS, ""),
    "triggers": (_TRIGGERS, ", o.spelled"),
    "policies": (_POLICIES, ", o.spelled"),
    "grants": (_GRANTS, ", o.kind, o.spelled, o.signature"),
    "roles": (_ROLES, ""),
}


async def list_schemas(session: Session) -> list[dict[str, Any]]:
    """Return the schemas people made, with their comments, how much is in them, and their size in bytes."""
    return await fetch_json(session, _SCHEMAS)


async def list_objects(
    session: Session,
    kind: str,
    schema: str | None,
    limit: int,
    offset: int,
    name: str | None = None,
    hidden_schemas: Sequence[str] = (),
) -> list[dict[str, Any]]:
    """Return objects of a kind, partitions folded into their table.

    `limit` of them, of those with `name` in their names.
    """
    if kind in ("triggers", "policies"):
        await session.audit.refresh_visible(session)
    objects, order = _KINDS[kind]
    sql = _PAGE.format(objects=objects, order=order)
    return await fetch_json(session, sql, schema, name, str(limit), str(offset), json.dumps(hidden_schemas))
