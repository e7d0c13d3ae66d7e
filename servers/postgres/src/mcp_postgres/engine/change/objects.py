"""Reads everything in a database besides rows: its objects, and how they depend on each other."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import replace

from mcp_postgres.engine.catalog.relation_sql import QUALIFIED_NAME_OF, RELATION_WORD, USER_SCHEMA
from mcp_postgres.engine.change.database_object import (
    DatabaseObject,
    Dependency,
    DependencyKind,
    ObjectChange,
    ObjectsByKey,
)
from mcp_postgres.engine.connection.session import Session

__all__ = [
    "COLUMN_OPTIONS",
    "NAMED_OPTIONS_SETTING",
    "READ_OBJECTS",
    "RELATIONS",
    "TYPE",
    "array_literal",
    "diff_objects",
    "parse_objects",
    "read_dependencies",
    "read_objects",
]

RELATIONS = "pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
TYPE = """(SELECT CASE WHEN coalesce(i.oid, y.oid) < 16384 THEN format_type(y.oid, NULL)
    ELSE format('%I.%I', m.nspname, coalesce(i.typname, y.typname)) || CASE WHEN i.oid IS NULL THEN '' ELSE '[]' END END
    FROM pg_type y LEFT JOIN pg_type i ON i.oid = y.typelem AND y.typcategory = 'A'
    JOIN pg_namespace m ON m.oid = coalesce(i.typnamespace, y.typnamespace) WHERE y.oid = {})"""
_NOT_OF_EXTENSION = """NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_{name}'::regclass
    AND d.objid = {table}.oid AND d.deptype = 'e')"""
# An expression as it was parsed: the same whatever the things in it are called now.
_TREE = "md5(regexp_replace({}::text, ':location -?\\d+', '', 'g'))"
_FUNCTION = f"""format('%I.%I(%s)', n.nspname, p.proname, (SELECT string_agg({TYPE.format("g.type")}, ', ' ORDER BY
    g.place) FROM unnest(p.proargtypes) WITH ORDINALITY g(type, place)))"""
_ROLE = "(SELECT quote_ident(r.rolname) FROM pg_roles r WHERE r.oid = {})"
_WANTED = "= ANY ((SELECT oids FROM wanted)::oid[])"
_GRANTS = f"""SELECT concat_ws('/', 'g' || o.key, a.privilege_type, a.grantee, nullif(a.grantor, o.owner)), o.key,
    json_build_array(lower(a.privilege_type), o.column_name, o.spelled, w.whom, o.place)::text,
    format('grant of %s on %s to %s', lower(a.privilege_type), o.what, w.whom), array[a.is_grantable::text,
    CASE WHEN a.grantor <> o.owner THEN {_ROLE.format("a.grantor")} END]
    FROM ({{objects}}) o, aclexplode(o.acl) a, LATERAL (SELECT CASE a.grantee WHEN 0 THEN 'public'
    ELSE {_ROLE.format("a.grantee")} END AS whom) w WHERE a.grantee <> o.owner"""
_TO_COME = """CASE e.defaclobjtype WHEN 'r' THEN 'tables' WHEN 'S' THEN 'sequences' WHEN 'f' THEN 'functions'
    WHEN 'T' THEN 'types' WHEN 'n' THEN 'schemas' ELSE 'large objects' END"""
_COMES_IN = "(SELECT format(' in %I', n.nspname) FROM pg_namespace n WHERE n.oid = e.defaclnamespace)"
_OF_TYPE = "t.typtype IN ('e', 'd', 'r') AND t.oid >= 16384 AND " + _NOT_OF_EXTENSION.format(name="type", table="t")
# Rights that an owner has not.
_LACKS = """(SELECT string_agg(d.privilege_type, ', ' ORDER BY 1) FROM aclexplode(acldefault({kind}, {owner})) d
    WHERE {acl} IS NOT NULL AND d.grantee = {owner} AND NOT EXISTS (SELECT 1 FROM aclexplode({acl}) e
    WHERE e.grantee = {owner} AND e.privilege_type = d.privilege_type))"""
_LACKS_RELATION = _LACKS.format(
    kind="CASE c.relkind WHEN 'S' THEN 's' ELSE 'r' END::pg_catalog.\"char\"", owner="c.relowner", acl="c.relacl"
)
_INHERITANCE = "CASE WHEN {count} = 0 THEN 'own' WHEN {local} THEN 'merged' ELSE 'inherited' END"
# The constraint by which a column `a` is required; none before PostgreSQL 18.
_REQUIRED = """(SELECT concat_ws(' ', k.conname, k.convalidated, k.connoinherit) FROM pg_constraint k
    WHERE k.conrelid = a.attrelid AND k.contype = 'n' AND k.conkey = array[a.attnum])"""
# What else there is of a relation `c`: samples of the columns of an index, options of a foreign table.
_REST_OF_RELATION = """concat_ws(' ', c.relam, c.reltablespace, c.reloftype, CASE WHEN c.relkind IN ('i', 'I') THEN
    (SELECT string_agg(concat(a.attnum, ' ', a.attstattarget), ', ' ORDER BY a.attnum) FROM pg_attribute a
    WHERE a.attrelid = c.oid AND a.attstattarget <> -1) END,
    (SELECT array_to_string(f.ftoptions, ', ') FROM pg_foreign_table f WHERE f.ftrelid = c.oid))"""
# Names of column options that the statements of this transaction set, apart by blanks.
NAMED_OPTIONS_SETTING = "mcp_look.options"
# The options of a column `a` that have a meaning for people: PostgreSQL's newest releases keep their own among them.
COLUMN_OPTIONS = f"""ARRAY(SELECT o FROM unnest(a.attoptions) o WHERE split_part(o, '=', 1) = ANY (string_to_array(
    'n_distinct n_distinct_inherited ' || coalesce(current_setting({NAMED_OPTIONS_SETTING!r}, true), ''), ' ')))"""
_OBJECTS = f"""
SELECT concat('c', c.oid) AS key, concat('n', n.oid) AS parent, quote_ident(c.relname) AS name,
    format('%s %I.%I', {RELATION_WORD}, n.nspname, c.relname) AS label, array[c.relowner::text, c.relpersistence::text,
    array_to_string(c.reloptions, ', '), c.relrowsecurity::text, c.relforcerowsecurity::text, c.relreplident::text,
    (SELECT string_agg(concat('c', h.inhparent), ' ' ORDER BY h.inhseqno) FROM pg_inherits h WHERE h.inhrelid = c.oid
        AND c.relkind IN ('r', 'p', 'f')), md5(c.relpartbound::text),
    concat_ws(' ', i.indisclustered, i.indisreplident, i.indisvalid),
    (SELECT concat_ws(' ', s.seqtypid, s.seqstart, s.seqincrement, s.seqmax, s.seqmin, s.seqcache, s.seqcycle,
        (SELECT concat('a', d.refobjid, '.', d.refobjsubid) FROM pg_depend d WHERE d.classid = 'pg_class'::regclass
        AND d.objid = c.oid AND d.deptype = 'a' AND d.refclassid = 'pg_class'::regclass))
        FROM pg_sequence s WHERE s.seqrelid = c.oid),
    CASE WHEN c.relkind IN ('v', 'm') THEN (SELECT w.xmin::text FROM pg_rewrite w WHERE w.ev_class = c.oid
        AND w.rulename = '_RETURN') END, {_LACKS_RELATION}, {_REST_OF_RELATION}]
    FROM {RELATIONS} LEFT JOIN pg_index i ON i.indexrelid = c.oid WHERE c.oid {_WANTED} AND {
    USER_SCHEMA
} AND c.relkind <> 't'
UNION ALL SELECT concat('a', a.attrelid, '.', a.attnum), concat('c', c.oid), quote_ident(a.attname),
    CASE WHEN c.relkind NOT IN ('v', 'm') THEN format('column %I.%I.%I', n.nspname, c.relname, a.attname) END,
    array[concat_ws(' ', a.atttypid, a.atttypmod, a.attcollation), concat_ws(' ', a.attnotnull, {_REQUIRED}), {
    _TREE.format("e.adbin")
},
    concat_ws(' ', a.attidentity, (SELECT concat_ws(' ', s.seqstart, s.seqincrement, s.seqmax, s.seqmin, s.seqcache,
        s.seqcycle) FROM pg_depend d JOIN pg_sequence s ON s.seqrelid = d.objid WHERE a.attidentity <> ''
        AND d.refclassid = 'pg_class'::regclass AND d.refobjid = a.attrelid AND d.refobjsubid = a.attnum
        AND d.classid = 'pg_class'::regclass AND d.deptype = 'i')), a.attgenerated::text, a.attstorage::text,
    nullif(a.attstattarget, -1)::text, a.attcompression::text, nullif(array_to_string({COLUMN_OPTIONS}, ', '), ''),
    {_INHERITANCE.format(count="a.attinhcount", local="a.attislocal")}]
    FROM pg_attribute a JOIN {RELATIONS} ON c.oid = a.attrelid
    LEFT JOIN pg_attrdef e ON e.adrelid = a.attrelid AND e.adnum = a.attnum
    WHERE a.attrelid {_WANTED} AND {USER_SCHEMA} AND a.attnum > 0 AND NOT a.attisdropped
    AND c.relkind IN ('r', 'p', 'f', 'c', 'v', 'm')
UNION ALL SELECT concat('k', k.oid), CASE WHEN k.conrelid <> 0 THEN concat('c', k.conrelid) ELSE concat('y', k.contypid)
    END, quote_ident(k.conname), format('constraint %I on %s', k.conname, CASE WHEN k.conrelid <> 0 THEN
    {
    QUALIFIED_NAME_OF.format(oid="k.conrelid")
} ELSE (SELECT format('domain %I.%I', n.nspname, y.typname) FROM pg_type y
    JOIN pg_namespace n ON n.oid = y.typnamespace WHERE y.oid = k.contypid) END), array[concat_ws(' ', k.convalidated,
    k.condeferrable, k.condeferred, to_jsonb(k) -> 'conenforced'), {
    _INHERITANCE.format(count="k.coninhcount", local="k.conislocal")
},
    (SELECT string_agg(t.tgenabled::text, '' ORDER BY t.tgname) FROM pg_trigger t WHERE t.tgconstraint = k.oid
        AND t.tgisinternal)]
    FROM pg_constraint k WHERE (k.oid {_WANTED} OR k.conrelid {_WANTED} OR k.contypid {_WANTED})
    AND k.contype NOT IN ('n', 't') AND k.oid >= 16384
UNION ALL SELECT concat('f', p.oid), concat('n', n.oid), quote_ident(p.proname), format('function %s', {_FUNCTION}),
    array[md5(concat_ws(' ', p.prosrc, p.probin, p.prosqlbody, p.proconfig, p.provolatile,
    p.prosecdef, p.proleakproof, p.proisstrict, p.proparallel, p.procost, p.prorows, {_TREE.format("p.proargdefaults")},
    p.proargnames, p.prorettype, p.prosupport::oid, p.prolang,
    (SELECT to_jsonb(g) FROM pg_aggregate g WHERE g.aggfnoid = p.oid))), p.proowner::text,
    {_LACKS.format(kind="'f'", owner="p.proowner", acl="p.proacl")}] FROM pg_proc p
    JOIN pg_namespace n ON n.oid = p.pronamespace WHERE p.oid {_WANTED} AND {USER_SCHEMA}
    AND {_NOT_OF_EXTENSION.format(name="proc", table="p")}
UNION ALL SELECT concat('t', t.oid), concat('c', t.tgrelid), quote_ident(t.tgname), format('trigger %I on %s', t.tgname,
    {QUALIFIED_NAME_OF.format(oid="t.tgrelid")}), array[t.tgenabled::text, md5(concat_ws(' ', t.tgfoid, t.tgtype,
    {_TREE.format("t.tgqual")}, t.tgattr, t.tgargs, t.tgoldtable, t.tgnewtable, t.tgdeferrable, t.tginitdeferred)),
    CASE WHEN t.tgparentid = 0 THEN 'own' ELSE 'inherited' END]
    FROM pg_trigger t WHERE (t.oid {_WANTED} OR t.tgrelid {_WANTED}) AND NOT t.tgisinternal
UNION ALL SELECT concat('p', oid), concat('c', polrelid), quote_ident(polname), format('policy %I on %s', polname,
    {QUALIFIED_NAME_OF.format(oid="polrelid")}), array[md5(concat_ws(' ', polcmd, polpermissive, polroles,
    {_TREE.format("polqual")}, {_TREE.format("polwithcheck")}))] FROM pg_policy WHERE oid {_WANTED} OR polrelid {
    _WANTED
}
UNION ALL SELECT concat('r', oid), concat('c', ev_class), quote_ident(rulename), format('rule %I on %s', rulename,
    {QUALIFIED_NAME_OF.format(oid="ev_class")}), array[ev_enabled::text, md5(concat_ws(' ', ev_type, is_instead,
    {_TREE.format("ev_qual")}, {_TREE.format("ev_action")}))] FROM pg_rewrite WHERE (oid {_WANTED} OR ev_class {
    _WANTED
})
    AND rulename <> '_RETURN' AND oid >= 16384
UNION ALL SELECT concat('s', s.oid), concat('n', n.oid), quote_ident(s.stxname), format('statistics %I.%I', n.nspname,
    s.stxname), array[nullif(s.stxstattarget, -1)::text, s.stxowner::text] FROM pg_statistic_ext s
    JOIN pg_namespace n ON n.oid = s.stxnamespace WHERE s.oid {_WANTED}
UNION ALL SELECT concat('n', n.oid), '', quote_ident(n.nspname), format('schema %I', n.nspname),
    array[n.nspowner::text, {_LACKS.format(kind="'n'", owner="n.nspowner", acl="n.nspacl")}] FROM pg_namespace n
    WHERE {USER_SCHEMA}
UNION ALL SELECT concat('y', t.oid), concat('n', n.oid), quote_ident(t.typname), format('type %I.%I', n.nspname,
    t.typname), array[t.typnotnull::text, t.typdefault, t.typowner::text,
    {_LACKS.format(kind="'T'", owner="t.typowner", acl="t.typacl")}] FROM pg_type t
    JOIN pg_namespace n ON n.oid = t.typnamespace WHERE t.oid {_WANTED} AND {_OF_TYPE}
UNION ALL SELECT concat('e', e.oid), concat('y', e.enumtypid), quote_literal(e.enumlabel), format('label %s of %s',
    e.enumlabel, {TYPE.format("e.enumtypid")}), array[e.enumsortorder::text] FROM pg_enum e WHERE e.enumtypid {_WANTED}
UNION ALL SELECT concat('l', l.oid), concat('n', n.oid), quote_ident(l.collname), format('collation %I.%I', n.nspname,
    l.collname), array[]::text[] FROM pg_collation l JOIN pg_namespace n ON n.oid = l.collnamespace
    WHERE l.oid {_WANTED} AND {USER_SCHEMA}
UNION ALL SELECT concat('x', oid), '', quote_ident(extname), format('extension %I', extname), array[extversion]
    FROM pg_extension WHERE oid {_WANTED}
UNION ALL SELECT concat('d', d.classoid, '/', d.objoid, '/', d.objsubid), CASE d.classoid
    WHEN 'pg_class'::regclass THEN CASE d.objsubid WHEN 0 THEN concat('c', d.objoid) ELSE concat('a', d.objoid, '.',
        d.objsubid) END
    WHEN 'pg_constraint'::regclass THEN concat('k', d.objoid) WHEN 'pg_proc'::regclass THEN concat('f', d.objoid)
    WHEN 'pg_trigger'::regclass THEN concat('t', d.objoid) WHEN 'pg_policy'::regclass THEN concat('p', d.objoid)
    WHEN 'pg_rewrite'::regclass THEN concat('r', d.objoid) WHEN 'pg_namespace'::regclass THEN concat('n', d.objoid)
    WHEN 'pg_statistic_ext'::regclass THEN concat('s', d.objoid) WHEN 'pg_extension'::regclass THEN
        concat('x', d.objoid) WHEN 'pg_collation'::regclass THEN concat('l', d.objoid)
    WHEN 'pg_type'::regclass THEN (SELECT CASE y.typrelid WHEN 0 THEN concat('y', y.oid) ELSE concat('c', y.typrelid)
        END FROM pg_type y WHERE y.oid = d.objoid) ELSE '' END, (SELECT c.relname FROM pg_class c
        WHERE c.oid = d.classoid), 'comment', array[d.description] FROM pg_description d WHERE d.objoid {_WANTED}
    AND NOT EXISTS (SELECT 1 FROM pg_depend e WHERE e.classid = d.classoid AND e.objid = d.objoid AND e.deptype = 'e')
UNION ALL SELECT concat('o', oid), '', quote_ident(rolname), format('role %I', rolname), array[concat_ws(' ', rolsuper,
    rolinherit, rolcreaterole, rolcreatedb, rolcanlogin, rolreplication, rolbypassrls, rolconnlimit, rolvaliduntil,
    rolconfig)] FROM pg_roles WHERE oid {_WANTED}
UNION ALL SELECT concat('m', member, '/', roleid), '', '', format('membership of %s in %s', {_ROLE.format("member")},
    {_ROLE.format("roleid")}), array[bool_or(admin_option)::text] FROM pg_auth_members WHERE member {_WANTED}
    GROUP BY member, roleid
UNION ALL SELECT concat('w', e.oid), '', '', format('rights on %s to come', {_TO_COME}), array[w.lacks]
    FROM pg_default_acl e, LATERAL (SELECT string_agg(format('%s %s', x.grantee, x.privilege_type), ', ' ORDER BY 1)
    AS lacks FROM aclexplode(acldefault(CASE e.defaclobjtype WHEN 'S' THEN 's' ELSE e.defaclobjtype END, e.defaclrole))
    x WHERE e.defaclnamespace = 0 AND NOT EXISTS (SELECT 1 FROM aclexplode(e.defaclacl) h
    WHERE h.grantee = x.grantee AND h.privilege_type = x.privilege_type)) w
    WHERE e.oid {_WANTED} AND w.lacks IS NOT NULL
UNION ALL {
    _GRANTS.format(
        objects=f'''
        SELECT concat('c', c.oid) AS key, '' AS column_name, format('%I.%I', n.nspname, c.relname) AS what,
            CASE c.relkind WHEN 'S' THEN 'SEQUENCE ' ELSE '' END || format('%I.%I', n.nspname, c.relname) AS spelled,
            '' AS place, c.relowner AS owner, c.relacl AS acl
            FROM {RELATIONS} WHERE c.oid {_WANTED} AND {USER_SCHEMA} AND c.relkind <> 'c'
        UNION ALL SELECT concat('a', b.attrelid, '.', b.attnum), quote_ident(b.attname), format('%I.%I.%I', n.nspname,
            c.relname, b.attname), format('%I.%I', n.nspname, c.relname), '', c.relowner, b.attacl
            FROM pg_attribute b JOIN {RELATIONS} ON c.oid = b.attrelid
            WHERE b.attrelid {_WANTED} AND {USER_SCHEMA} AND b.attacl IS NOT NULL
        UNION ALL SELECT concat('n', n.oid), '', format('schema %I', n.nspname), format('SCHEMA %I', n.nspname), '',
            n.nspowner, n.nspacl FROM pg_namespace n WHERE n.oid {_WANTED} AND {USER_SCHEMA}
        UNION ALL SELECT concat('f', p.oid), '', format('function %s', x.it), format('ROUTINE %s', x.it), '',
            p.proowner, coalesce(p.proacl, acldefault('f', p.proowner)) FROM pg_proc p JOIN pg_namespace n
            ON n.oid = p.pronamespace, LATERAL (SELECT {_FUNCTION} AS it) x WHERE p.oid {_WANTED} AND {USER_SCHEMA}
            AND (p.proacl IS NOT NULL OR {_NOT_OF_EXTENSION.format(name="proc", table="p")})
        UNION ALL SELECT concat('y', t.oid), '', format('type %I.%I', n.nspname, t.typname), format('TYPE %I.%I',
            n.nspname, t.typname), '', t.typowner, coalesce(t.typacl, acldefault('T', t.typowner)) FROM pg_type t
            JOIN pg_namespace n ON n.oid = t.typnamespace WHERE t.oid {_WANTED} AND {_OF_TYPE}
        UNION ALL SELECT concat('D', e.oid), '', format('%s to come%s', {_TO_COME}, {_COMES_IN}), upper({_TO_COME}),
            format('ALTER DEFAULT PRIVILEGES FOR ROLE %s ', {_ROLE.format("e.defaclrole")}) || coalesce('IN SCHEMA' ||
            (SELECT format(' %I ', n.nspname) FROM pg_namespace n WHERE n.oid = e.defaclnamespace), ''),
            e.defaclrole, e.defaclacl FROM pg_default_acl e WHERE e.oid {_WANTED}'''
    )
}
"""
READ_OBJECTS = f"""WITH wanted AS MATERIALIZED (SELECT {{}}::oid[] AS oids)
SELECT coalesce(json_agg(json_build_array(key, parent, name, label, value)), '[]')::text
FROM ({_OBJECTS}) x(key, parent, name, label, value)"""
_KEY = """CASE d.{0}classid
    WHEN 'pg_class'::regclass THEN CASE WHEN d.{0}objsubid = 0 OR (SELECT x.relkind FROM pg_class x
        WHERE x.oid = d.{0}objid) IN ('v', 'm') THEN concat('c', d.{0}objid) ELSE concat('a', d.{0}objid, '.',
        d.{0}objsubid) END
    WHEN 'pg_attrdef'::regclass THEN (SELECT concat('a', x.adrelid, '.', x.adnum) FROM pg_attrdef x
        WHERE x.oid = d.{0}objid)
    WHEN 'pg_rewrite'::regclass THEN (SELECT CASE x.rulename WHEN '_RETURN' THEN concat('c', x.ev_class) ELSE
        concat('r', x.oid) END FROM pg_rewrite x WHERE x.oid = d.{0}objid)
    WHEN 'pg_type'::regclass THEN (SELECT CASE WHEN e.typrelid <> 0 THEN concat('c', e.typrelid) WHEN e.typtype = 'm'
        THEN (SELECT concat('y', r.rngtypid) FROM pg_range r WHERE r.rngmultitypid = e.oid)
        ELSE concat('y', e.oid) END FROM pg_type x JOIN pg_type e
        ON e.oid = CASE WHEN x.typcategory = 'A' AND x.typelem <> 0 THEN x.typelem ELSE x.oid END
        WHERE x.oid = d.{0}objid)
    WHEN 'pg_constraint'::regclass THEN concat('k', d.{0}objid) WHEN 'pg_proc'::regclass THEN concat('f', d.{0}objid)
    WHEN 'pg_trigger'::regclass THEN concat('t', d.{0}objid) WHEN 'pg_policy'::regclass THEN concat('p', d.{0}objid)
    WHEN 'pg_namespace'::regclass THEN concat('n', d.{0}objid) WHEN 'pg_collation'::regclass THEN
        concat('l', d.{0}objid)
    WHEN 'pg_statistic_ext'::regclass THEN concat('s', d.{0}objid) WHEN 'pg_extension'::regclass THEN
        concat('x', d.{0}objid)
    WHEN 'pg_operator'::regclass THEN concat('zpg_operator/', d.{0}objid)
    WHEN 'pg_cast'::regclass THEN concat('zpg_cast/', d.{0}objid) END"""
_DEPENDENCIES = f"""
WITH given AS MATERIALIZED (SELECT DISTINCT substring(key FROM '\\d+')::oid AS oid FROM unnest($1::text[]) key),
types AS MATERIALIZED (SELECT t.oid, t.typarray FROM pg_type t JOIN (SELECT oid FROM given UNION SELECT c.reltype
    FROM pg_class c JOIN given g ON c.oid = g.oid UNION SELECT r.rngmultitypid FROM pg_range r JOIN given g
    ON r.rngtypid = g.oid) g ON g.oid = t.oid),
known AS MATERIALIZED (SELECT oid FROM given UNION SELECT d.objid FROM pg_depend d JOIN given g
    ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = g.oid AND d.deptype = 'e'
    UNION SELECT oid FROM types UNION SELECT typarray FROM types
    UNION SELECT r.oid FROM pg_rewrite r JOIN given g ON r.ev_class = g.oid
    UNION SELECT e.oid FROM pg_attrdef e JOIN given g ON e.adrelid = g.oid),
rows AS MATERIALIZED (SELECT d.* FROM pg_depend d WHERE d.objid = ANY (ARRAY(SELECT oid FROM known))
    UNION SELECT d.* FROM pg_depend d WHERE d.refobjid = ANY (ARRAY(SELECT oid FROM known)))
SELECT coalesce(json_agg(DISTINCT array[x.one, x.other, x.kind]), '[]')::text FROM (
    SELECT {_KEY.format("")} AS one, {_KEY.format("ref")} AS other, d.deptype::text AS kind FROM rows d
    WHERE d.objid >= 16384 AND d.refobjid >= 16384) x
WHERE x.one <> x.other AND (x.one = ANY ($1::text[]) OR x.other = ANY ($1::text[]))
"""


async def read_objects(session: Session, oids: Iterable[str]) -> ObjectsByKey:
    """Return what there is now."""
    return parse_objects(await session.fetch_value(READ_OBJECTS.format("$1"), array_literal(oids)))


def parse_objects(text: str | None) -> ObjectsByKey:
    """Return the objects that a query by `READ_OBJECTS` found, ordered by their labels."""
    objects: ObjectsByKey = {}
    for key, parent, name, label, state in json.loads(text or "[]"):
        objects[key] = DatabaseObject(key, parent, name, label, tuple(state))
    for key, comment in objects.items():
        if comment.label == "comment":
            objects[key] = replace(comment, label=f"comment on {_describe_commented(objects, comment)}")
    return dict(sorted(objects.items(), key=lambda item: (item[1].label or "", item[0])))


def _describe_commented(objects: ObjectsByKey, comment: DatabaseObject) -> str:
    """Return what a comment is on; its own name is that of the catalog."""
    commented = objects.get(comment.parent)
    if commented is None:
        return f"what {comment.name} holds"
    if commented.label:
        return commented.label
    return f"column {objects[commented.parent].qualified_name}.{commented.name}"


def array_literal(values: Iterable[str]) -> str:
    """Return values that need no quotes as an array of SQL."""
    return "{" + ",".join(values) + "}"


async def read_dependencies(session: Session, keys: Collection[str]) -> list[Dependency]:
    """Return what these objects depend on, and what depends on them; on a part of an extension is on the extension."""
    rows: list[list[str]] = json.loads(await session.fetch_value(_DEPENDENCIES, array_literal(keys)) or "[]")
    extension_of = {dependent: referenced for dependent, referenced, kind in rows if kind == DependencyKind.EXTENSION}
    dependencies: list[Dependency] = []
    for dependent, referenced, kind in rows:
        if not dependent or not referenced:
            continue
        edge = Dependency(dependent, referenced, kind)
        if kind != DependencyKind.EXTENSION:
            edge = Dependency(extension_of.get(dependent, dependent), extension_of.get(referenced, referenced), kind)
        if edge.dependent != edge.referenced:
            dependencies.append(edge)
    return dependencies


def diff_objects(before: ObjectsByKey, after: ObjectsByKey) -> list[ObjectChange]:
    """Return what came (+), went (-) and has another form under the same name (~), ordered by the names."""
    old = _by_label(before)
    new = _by_label(after)
    changes = [ObjectChange("-", item) for label, item in old.items() if label not in new]
    for label, item in new.items():
        if label not in old:
            changes.append(ObjectChange("+", item))
        elif item.identity != old[label].identity:
            changes.append(ObjectChange("~", item))
    return sorted(changes, key=lambda change: change.item.label or "")


def _by_label(objects: ObjectsByKey) -> dict[str, DatabaseObject]:
    return {item.label: item for item in objects.values() if item.label}
