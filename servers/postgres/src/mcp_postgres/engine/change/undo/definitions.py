"""Statements that restore an object to its state in the catalog; read while the catalog still has that state."""

from __future__ import annotations

import json
from collections.abc import Iterable

from mcp_postgres.engine.catalog.relation_sql import QUALIFIED_NAME_OF
from mcp_postgres.engine.change.objects import COLUMN_OPTIONS
from mcp_postgres.engine.change.undo.definition_requests import DefinitionRequest
from mcp_postgres.engine.change.undo.schema_change import LATE_RANK, RankedLine
from mcp_postgres.engine.connection.session import Session

__all__ = ["read_definitions"]

_LOST = "values are lost"
_SPENT = "it gives numbers again, and had no more"
_CAST = "values are cast back, and one that does not fit stops it"

_NAME = "format('%I.%I', n.nspname, c.relname)"
# A name in a remark, which ends with its line.
_ONE_LINE = "regexp_replace({}, E'[\\\\r\\\\n]+', ' ', 'g')"
# A name as one word of a shell.
_IN_SHELL = (
    "(SELECT CASE WHEN x.name ~ '^[a-z0-9_.]+$' THEN x.name ELSE "
    "concat('''', replace(x.name, '''', '''\"''\"'''), '''')"
    " END FROM (SELECT {} AS name) x)"
)
_SEQUENCE = """concat_ws(' ', format('START WITH %s INCREMENT BY %s MINVALUE %s MAXVALUE %s CACHE %s', s.seqstart,
    s.seqincrement, s.seqmin, s.seqmax, s.seqcache), CASE WHEN s.seqcycle THEN 'CYCLE' END)"""
_IDENTITY = f"""(SELECT {_SEQUENCE} FROM pg_depend d JOIN pg_sequence s ON s.seqrelid = d.objid
    WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = a.attrelid AND d.refobjsubid = a.attnum
    AND d.classid = 'pg_class'::regclass AND d.deptype = 'i')"""
_LAST = """CASE WHEN has_sequence_privilege(s.seqrelid, 'USAGE, SELECT') THEN
    pg_sequence_last_value(s.seqrelid) END"""
# What a sequence gives next; NULL before it gave anything, and behind its last number.
_NEXT = f"""(SELECT CASE WHEN x.next BETWEEN s.seqmin AND s.seqmax THEN x.next WHEN s.seqcycle THEN
    CASE WHEN s.seqincrement > 0 THEN s.seqmin ELSE s.seqmax END END
    FROM (SELECT ({_LAST})::numeric + s.seqincrement AS next) x)"""
_GENERATED = "CASE a.attidentity WHEN 'a' THEN 'ALWAYS' ELSE 'BY DEFAULT' END"
_COLLATED = """coalesce((SELECT format('{word}%I.%I', y.nspname, l.collname)
    FROM pg_collation l JOIN pg_namespace y ON y.oid = l.collnamespace JOIN pg_type b ON b.oid = {type}
    WHERE l.oid = {own} AND b.typcollation <> l.oid), '')"""
_TYPED = "format_type(a.atttypid, a.atttypmod) || " + _COLLATED.format(
    own="a.attcollation", type="a.atttypid", word=" COLLATE "
)
_COLUMN = f"""concat(quote_ident(a.attname), ' ', {_TYPED}, CASE WHEN a.attidentity <> '' THEN
    format(' GENERATED %s AS IDENTITY (%s)', {_GENERATED}, {_IDENTITY}) WHEN a.attgenerated <> '' THEN
    format(' GENERATED ALWAYS AS (%s)%s', pg_get_expr(e.adbin, e.adrelid), CASE a.attgenerated WHEN 's' THEN ' STORED'
    END) ELSE ' DEFAULT ' || pg_get_expr(e.adbin, e.adrelid) END)"""
_SET_REQUIRED = f"format(', then: ALTER TABLE %s ALTER COLUMN %I SET NOT NULL;', {_NAME}, a.attname)"
_REQUIRED = f"CASE WHEN a.attnotnull THEN {_ONE_LINE.format(_SET_REQUIRED)} END"
_COLUMNS = f"""(SELECT string_agg({_COLUMN} || CASE WHEN a.attnotnull AND c.relkind <> 'c'
    THEN ' NOT NULL' ELSE '' END, ', '
    ORDER BY a.attnum) FROM pg_attribute a LEFT JOIN pg_attrdef e
    ON e.adrelid = a.attrelid AND e.adnum = a.attnum WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    AND a.attislocal)"""
_THING = """CASE c.relkind WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW' WHEN 'i' THEN 'INDEX' WHEN 'I' THEN
    'INDEX' WHEN 'S' THEN 'SEQUENCE' WHEN 'f' THEN 'FOREIGN TABLE' WHEN 'c' THEN 'TYPE' ELSE 'TABLE' END"""
_CLASS = "wanted w JOIN pg_class c ON c.oid = w.oid JOIN pg_namespace n ON n.oid = c.relnamespace"
_ATTRIBUTE = """wanted w JOIN pg_attribute a ON a.attrelid = w.oid AND a.attnum = w.sub JOIN pg_class c
    ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_attrdef e
    ON e.adrelid = a.attrelid AND e.adnum = a.attnum"""
_ALTER = f"format('ALTER TABLE %s ALTER COLUMN %I ', {_NAME}, a.attname)"
_ROLES = """(SELECT string_agg(CASE r WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(r)) END, ', ')
    FROM unnest(p.polroles) r)"""
_SWITCH = """CASE t.tgenabled WHEN 'D' THEN 'DISABLE' WHEN 'R' THEN 'ENABLE REPLICA' WHEN 'A' THEN 'ENABLE ALWAYS'
    ELSE 'ENABLE' END"""
_DEFINED = f"""
WITH wanted AS (SELECT * FROM json_to_recordset($1::json) AS w (key text, kind text, oid oid, sub integer,
    is_gone boolean, parts integer[], options text, parents text,
    flags text))
SELECT coalesce(json_agg(json_build_array(key, rank, line)), '[]')::text FROM (
SELECT w.key, 1 AS rank, format('CREATE SCHEMA %I;', n.nspname) AS line FROM wanted w JOIN pg_namespace n
    ON w.kind = 'n' AND w.is_gone AND n.oid = w.oid
UNION ALL SELECT w.key, 2, format('ALTER SCHEMA %I OWNER TO %I;', n.nspname, pg_get_userbyid(n.nspowner)) FROM wanted w
    JOIN pg_namespace n ON w.kind = 'n' AND n.oid = w.oid AND CASE WHEN w.is_gone THEN pg_get_userbyid(n.nspowner) <>
    current_user ELSE 0 = ANY (w.parts) END
UNION ALL SELECT w.key, 2, format('ALTER TYPE %I.%I OWNER TO %I;', n.nspname, t.typname, pg_get_userbyid(t.typowner))
    FROM wanted w JOIN pg_type t ON w.kind = 'y' AND t.oid = w.oid AND CASE WHEN w.is_gone THEN
    pg_get_userbyid(t.typowner) <> current_user ELSE 2 = ANY (w.parts) END JOIN pg_namespace n ON n.oid = t.typnamespace
UNION ALL SELECT w.key, 2, format('ALTER STATISTICS %I.%I OWNER TO %I;', n.nspname, s.stxname,
    pg_get_userbyid(s.stxowner)) FROM wanted w JOIN pg_statistic_ext s ON w.kind = 's' AND s.oid = w.oid AND CASE
    WHEN w.is_gone THEN pg_get_userbyid(s.stxowner) <> current_user ELSE 1 = ANY (w.parts) END
    JOIN pg_namespace n ON n.oid = s.stxnamespace
UNION ALL SELECT w.key, 1, format('CREATE EXTENSION %I SCHEMA %I VERSION %L;', x.extname, n.nspname, x.extversion)
    FROM wanted w JOIN pg_extension x ON w.kind = 'x' AND w.is_gone AND x.oid = w.oid JOIN pg_namespace n
        ON n.oid = x.extnamespace
UNION ALL SELECT w.key, 1, CASE t.typtype
    WHEN 'e' THEN format('CREATE TYPE %I.%I AS ENUM (%s);', n.nspname, t.typname, (SELECT
        string_agg(quote_literal(e.enumlabel), ', ' ORDER BY e.enumsortorder) FROM pg_enum e WHERE e.enumtypid = t.oid))
    WHEN 'd' THEN format('CREATE DOMAIN %I.%I AS %s%s%s%s;', n.nspname, t.typname, format_type(t.typbasetype,
        t.typtypmod), {_COLLATED.format(own="t.typcollation", type="t.typbasetype", word=" COLLATE ")},
        ' DEFAULT ' || t.typdefault, CASE WHEN t.typnotnull THEN ' NOT NULL' END)
    ELSE (SELECT format('CREATE TYPE %I.%I AS RANGE (SUBTYPE = %s%s%s%s%s%s);', n.nspname, t.typname,
        format_type(r.rngsubtype, NULL), (SELECT format(', SUBTYPE_OPCLASS = %I.%I', y.nspname, o.opcname)
        FROM pg_opclass o JOIN pg_namespace y ON y.oid = o.opcnamespace WHERE o.oid = r.rngsubopc AND NOT o.opcdefault),
        {_COLLATED.format(own="r.rngcollation", type="r.rngsubtype", word=", COLLATION = ")},
        (SELECT format(', CANONICAL = %I.%I', y.nspname, o.proname) FROM pg_proc o JOIN pg_namespace y
        ON y.oid = o.pronamespace WHERE o.oid = r.rngcanonical::oid),
        (SELECT format(', SUBTYPE_DIFF = %I.%I', y.nspname, o.proname) FROM pg_proc o JOIN pg_namespace y
        ON y.oid = o.pronamespace WHERE o.oid = r.rngsubdiff::oid), (SELECT format(', MULTIRANGE_TYPE_NAME = %I.%I',
        y.nspname, o.typname) FROM pg_type o JOIN pg_namespace y ON y.oid = o.typnamespace
        WHERE o.oid = r.rngmultitypid)) FROM pg_range r WHERE r.rngtypid = t.oid) END
    FROM wanted w JOIN pg_type t ON w.kind = 'y' AND w.is_gone AND t.oid = w.oid JOIN pg_namespace n
        ON n.oid = t.typnamespace
UNION ALL SELECT w.key, 1, format('ALTER DOMAIN %I.%I %s;', n.nspname, t.typname, x.what)
    FROM wanted w JOIN pg_type t ON w.kind = 'y' AND NOT w.is_gone AND t.typtype = 'd' AND t.oid = w.oid
    JOIN pg_namespace n ON n.oid = t.typnamespace, LATERAL (
        SELECT CASE WHEN t.typnotnull THEN 'SET NOT NULL' ELSE 'DROP NOT NULL' END AS what WHERE 0 = ANY (w.parts)
        UNION ALL SELECT coalesce('SET DEFAULT ' || t.typdefault, 'DROP DEFAULT') WHERE 1 = ANY (w.parts)) x
UNION ALL SELECT w.key, 1, CASE c.relkind
    WHEN 'S' THEN (SELECT format('CREATE SEQUENCE %s AS %s %s;%s', {_NAME}, s.seqtypid::regtype, {_SEQUENCE},
        CASE WHEN {_NEXT} IS NOT NULL THEN format(E'\\nALTER SEQUENCE %s RESTART WITH %s;', {_NAME}, {_NEXT})
        WHEN ({_LAST}) IS NOT NULL THEN ' -- {_SPENT}' END)
        FROM pg_sequence s
        WHERE s.seqrelid = c.oid)
    WHEN 'c' THEN format('CREATE TYPE %s AS (%s);', {_NAME}, {_COLUMNS})
    WHEN 'v' THEN format('CREATE VIEW %s AS %s', {_NAME}, pg_get_viewdef(c.oid))
    WHEN 'm' THEN format('CREATE MATERIALIZED VIEW %s AS %s%s;', {_NAME}, rtrim(pg_get_viewdef(c.oid), ';'),
        CASE WHEN NOT c.relispopulated THEN ' WITH NO DATA' END)
    WHEN 'i' THEN concat('CREATE ', substr(pg_get_indexdef(c.oid), 8), ';')
    WHEN 'I' THEN concat('CREATE ', replace(substr(pg_get_indexdef(c.oid), 8), format(' %I ON ONLY ', c.relname),
        format(' %I ON ', c.relname)), ';')
    WHEN 'f' THEN NULL
    ELSE concat('CREATE ', CASE c.relpersistence WHEN 'u' THEN 'UNLOGGED ' END, 'TABLE ', {_NAME},
        CASE WHEN c.relispartition THEN (SELECT format(' PARTITION OF %s %s',
        {QUALIFIED_NAME_OF.format(oid="h.inhparent")},
            pg_get_expr(c.relpartbound, c.oid)) FROM pg_inherits h WHERE h.inhrelid = c.oid)
        WHEN c.reloftype <> 0 THEN format(' OF %s', format_type(c.reloftype, NULL))
        ELSE format(' (%s)', {_COLUMNS}) || coalesce((SELECT format(' INHERITS (%s)',
            string_agg({QUALIFIED_NAME_OF.format(oid="h.inhparent")}, ', ' ORDER BY h.inhseqno)) FROM pg_inherits h
            WHERE h.inhrelid = c.oid HAVING count(*) > 0), '') END,
        CASE c.relkind WHEN 'p' THEN ' PARTITION BY ' || pg_get_partkeydef(c.oid) END, ';',
        CASE c.relkind WHEN 'r' THEN format(' -- its %srows are lost: pg_dump --table=%s saves them',
            CASE WHEN c.reltuples >= 0 THEN format('about %s ', c.reltuples::bigint) END,
            {_IN_SHELL.format(_ONE_LINE.format(_NAME))}) END) END
    FROM {_CLASS} WHERE w.kind = 'c' AND w.is_gone
UNION ALL SELECT w.key, 2, format('CREATE OR REPLACE VIEW %s AS %s', {_NAME}, pg_get_viewdef(c.oid))
    FROM {_CLASS} WHERE w.kind = 'c' AND NOT w.is_gone AND c.relkind = 'v' AND 10 = ANY (w.parts)
UNION ALL SELECT w.key, 3, format('ALTER %s %s %s;', {_THING}, {_NAME}, x.what) FROM {_CLASS}, LATERAL (
    SELECT format('OWNER TO %I', pg_get_userbyid(c.relowner)) AS what WHERE 0 = ANY (w.parts)
        AND (NOT w.is_gone OR pg_get_userbyid(c.relowner) <> current_user)
    UNION ALL SELECT CASE c.relpersistence WHEN 'u' THEN 'SET UNLOGGED' ELSE 'SET LOGGED' END
        WHERE 1 = ANY (w.parts) AND NOT w.is_gone AND (c.relkind = 'r' OR c.relkind = 'S' AND w.parents = '')
    UNION ALL SELECT format('RESET (%s)', w.options) WHERE 2 = ANY (w.parts) AND w.options <> ''
    UNION ALL SELECT format('SET (%s)', (SELECT string_agg(format('%I = %L', o.option_name, o.option_value), ', ')
        FROM pg_options_to_table(c.reloptions) o)) WHERE 2 = ANY (w.parts) AND cardinality(c.reloptions) > 0
        AND NOT (w.is_gone AND c.relkind IN ('i', 'I'))
    UNION ALL SELECT CASE WHEN c.relrowsecurity THEN 'ENABLE' ELSE 'DISABLE' END || ' ROW LEVEL SECURITY'
        WHERE 3 = ANY (w.parts)
    UNION ALL SELECT CASE WHEN c.relforcerowsecurity THEN 'FORCE' ELSE 'NO FORCE' END || ' ROW LEVEL SECURITY'
        WHERE 4 = ANY (w.parts)
    UNION ALL SELECT concat('REPLICA IDENTITY ', CASE c.relreplident WHEN 'd' THEN 'DEFAULT' WHEN 'n' THEN 'NOTHING'
        ELSE 'FULL' END) WHERE 5 = ANY (w.parts) AND c.relreplident <> 'i'
        AND c.relkind IN ('r', 'p')
    ) x WHERE w.kind = 'c'
UNION ALL SELECT w.key, {LATE_RANK}, format('ALTER TABLE %s %s;', {QUALIFIED_NAME_OF.format(oid="i.indrelid")}, x.what)
    FROM wanted w JOIN pg_index i ON w.kind = 'c' AND i.indexrelid = w.oid JOIN pg_class c ON c.oid = i.indexrelid,
        LATERAL (
        SELECT CASE WHEN i.indisclustered THEN format('CLUSTER ON %I', c.relname) ELSE 'SET WITHOUT CLUSTER' END AS what
        WHERE 8 = ANY (w.parts) AND split_part(w.flags, ' ', 1) <> i.indisclustered::text
        UNION ALL SELECT format('REPLICA IDENTITY USING INDEX %I', c.relname) WHERE 8 = ANY (w.parts)
        AND i.indisreplident) x
UNION ALL SELECT w.key, {LATE_RANK}, format('ALTER TABLE %s CLUSTER ON %I;',
    {QUALIFIED_NAME_OF.format(oid="i.indrelid")}, c.relname)
    FROM wanted w JOIN pg_constraint k ON w.kind = 'k' AND w.is_gone AND k.oid = w.oid JOIN pg_index i
    ON i.indexrelid = k.conindid AND i.indrelid = k.conrelid AND i.indisclustered JOIN pg_class c
        ON c.oid = i.indexrelid
UNION ALL SELECT w.key, {LATE_RANK}, CASE WHEN c.relispartition THEN format('ALTER TABLE %s ATTACH PARTITION %s %s;',
        {QUALIFIED_NAME_OF.format(oid="h.inhparent")}, {_NAME}, pg_get_expr(c.relpartbound, c.oid))
    ELSE format('ALTER TABLE %s INHERIT %s;', {_NAME}, {QUALIFIED_NAME_OF.format(oid="h.inhparent")}) END
    FROM {_CLASS} JOIN pg_inherits h ON h.inhrelid = c.oid WHERE w.kind = 'c' AND NOT w.is_gone AND 6 = ANY (w.parts)
    AND concat('c', h.inhparent) <> ALL (string_to_array(w.parents, ' '))
UNION ALL SELECT w.key, 3, format('ALTER SEQUENCE %s AS %s %s%s;', {_NAME}, s.seqtypid::regtype, {_SEQUENCE},
    CASE WHEN s.seqcycle THEN '' ELSE ' NO CYCLE' END) FROM {_CLASS} JOIN pg_sequence s ON s.seqrelid = c.oid
    WHERE w.kind = 'c' AND NOT w.is_gone AND 9 = ANY (w.parts)
UNION ALL SELECT w.key, {LATE_RANK}, format('ALTER SEQUENCE %s OWNED BY %s;', {_NAME}, coalesce((SELECT format('%s.%I',
    {QUALIFIED_NAME_OF.format(oid="d.refobjid")}, a.attname) FROM pg_depend d JOIN pg_attribute a ON a.attrelid =
    d.refobjid
    AND a.attnum = d.refobjsubid WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'a'
    AND d.refclassid = 'pg_class'::regclass), 'NONE')) FROM {_CLASS}
    WHERE w.kind = 'c' AND c.relkind = 'S' AND 9 = ANY (w.parts)
    AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid
        AND d.refclassid = 'pg_class'::regclass AND d.deptype = 'i')
UNION ALL SELECT w.key, 1, CASE WHEN c.relkind = 'c' THEN format('ALTER TYPE %s ADD ATTRIBUTE %I %s; -- its {_LOST}',
    {_NAME},
    a.attname, {_TYPED}) ELSE format('ALTER TABLE %s ADD COLUMN %s;%s', {_NAME}, {_COLUMN},
        CASE WHEN a.attgenerated = '' THEN concat(' -- its {_LOST}', CASE WHEN a.attidentity = '' THEN {_REQUIRED} END)
        ELSE ' -- it is the last column then' END) END FROM {_ATTRIBUTE}
    WHERE w.kind = 'a' AND w.is_gone AND a.attislocal
    AND c.relkind NOT IN ('v', 'm')
UNION ALL SELECT w.key, x.rank, concat({_ALTER}, x.what, ';', CASE x.rank WHEN 2 THEN ' -- {_CAST}' END)
    FROM {_ATTRIBUTE}, LATERAL (
    SELECT 1 AS rank, 'DROP DEFAULT' AS what WHERE 0 = ANY (w.parts) AND split_part(w.flags, ' ', 1) = 'd'
    UNION ALL SELECT 2, format('TYPE %s USING %I::%s', {_TYPED}, a.attname, format_type(a.atttypid, a.atttypmod))
        WHERE 0 = ANY (w.parts) AND a.attislocal AND c.relkind NOT IN ('v', 'm', 'c')
    UNION ALL SELECT 3, 'DROP IDENTITY' WHERE 3 = ANY (w.parts) AND a.attidentity = ''
    UNION ALL SELECT 3, CASE WHEN a.attnotnull THEN 'SET NOT NULL' ELSE 'DROP NOT NULL' END
        WHERE 1 = ANY (w.parts) AND (a.attislocal OR NOT a.attnotnull)
    UNION ALL SELECT 4, coalesce('SET DEFAULT ' || pg_get_expr(e.adbin, e.adrelid), 'DROP DEFAULT')
        WHERE a.attgenerated = '' AND a.attidentity = '' AND (2 = ANY (w.parts) OR (0 = ANY (w.parts)
        AND e.adbin IS NOT NULL)) AND NOT (e.adbin IS NULL AND split_part(w.flags, ' ', 1) <> 'd')
    UNION ALL SELECT 4, CASE WHEN split_part(w.flags, ' ', 2) = '' THEN format('ADD GENERATED %s AS IDENTITY (%s)',
        {_GENERATED}, {_IDENTITY}) ELSE concat('SET GENERATED ', {_GENERATED}, ' SET ',
        replace(replace(replace(replace({_IDENTITY}, ' INCREMENT', ' SET INCREMENT'), ' MINV', ' SET MINV'), ' MAXV',
        ' SET MAXV'), ' CACHE', ' SET CACHE'))
        END WHERE 3 = ANY (w.parts) AND a.attidentity <> ''
    UNION ALL SELECT 5, 'SET STORAGE ' || CASE a.attstorage WHEN 'p' THEN 'PLAIN' WHEN 'e' THEN 'EXTERNAL' WHEN 'm'
        THEN 'MAIN' ELSE 'EXTENDED' END WHERE 5 = ANY (w.parts) AND NOT (w.is_gone AND
        a.attstorage = (SELECT y.typstorage FROM pg_type y WHERE y.oid = a.atttypid))
    UNION ALL SELECT 5, format('SET STATISTICS %s', coalesce(a.attstattarget, -1)) WHERE 6 = ANY (w.parts)
    UNION ALL SELECT 5, 'SET COMPRESSION ' || CASE a.attcompression WHEN 'p' THEN 'pglz' WHEN 'l' THEN 'lz4' ELSE
        'default' END WHERE 7 = ANY (w.parts)
    UNION ALL SELECT 5, format('RESET (%s)', w.options) WHERE 8 = ANY (w.parts) AND w.options <> ''
    UNION ALL SELECT 5, format('SET (%s)', array_to_string({COLUMN_OPTIONS}, ', '))
        WHERE 8 = ANY (w.parts) AND cardinality({COLUMN_OPTIONS}) > 0
    ) x WHERE w.kind = 'a' AND NOT (w.is_gone AND x.rank < 5)
UNION ALL SELECT w.key, 4, concat({_ALTER}, coalesce('RESTART WITH ' || x.next, 'RESTART'), ';',
    CASE WHEN x.next IS NULL THEN ' -- {_SPENT}' END)
    FROM {_ATTRIBUTE} JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass
    AND d.refobjid = a.attrelid AND d.refobjsubid = a.attnum AND d.classid = 'pg_class'::regclass AND d.deptype = 'i'
    JOIN pg_sequence s ON s.seqrelid = d.objid, LATERAL (SELECT {_NEXT} AS next) x
    WHERE w.kind = 'a' AND (w.is_gone OR 3 = ANY (w.parts) AND split_part(w.flags, ' ', 2) = '') AND a.attidentity <> ''
    AND ({_LAST}) IS NOT NULL
UNION ALL SELECT w.key, 1, CASE WHEN k.conrelid <> 0 THEN format('ALTER TABLE %s ADD CONSTRAINT %I %s;',
        {QUALIFIED_NAME_OF.format(oid="k.conrelid")}, k.conname, pg_get_constraintdef(k.oid))
    ELSE (SELECT format('ALTER DOMAIN %I.%I ADD CONSTRAINT %I %s;', n.nspname, t.typname, k.conname,
        pg_get_constraintdef(k.oid)) FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
        WHERE t.oid = k.contypid) END
    FROM wanted w JOIN pg_constraint k ON w.kind = 'k' AND w.is_gone AND k.oid = w.oid
UNION ALL SELECT w.key, 1, format('ALTER TABLE %s ALTER CONSTRAINT %I %s;',
    {QUALIFIED_NAME_OF.format(oid="k.conrelid")}, k.conname,
    CASE WHEN k.condeferred THEN 'DEFERRABLE INITIALLY DEFERRED' WHEN k.condeferrable THEN 'DEFERRABLE' ELSE
    'NOT DEFERRABLE' END) FROM wanted w JOIN pg_constraint k ON w.kind = 'k' AND NOT w.is_gone AND k.oid = w.oid
    AND 0 = ANY (w.parts) AND k.contype = 'f'
UNION ALL SELECT w.key, 2, format('ALTER TABLE %s %s TRIGGER %I;', {QUALIFIED_NAME_OF.format(oid="t.tgrelid")},
    {_SWITCH}, t.tgname)
    FROM wanted w JOIN pg_trigger t ON w.kind = 'k' AND NOT w.is_gone AND 2 = ANY (w.parts) AND t.tgisinternal
    AND t.tgconstraint = w.oid
UNION ALL SELECT w.key, 1, rtrim(pg_get_functiondef(p.oid), E'\\n') || ';' FROM wanted w JOIN pg_proc p
    ON w.kind = 'f' AND p.oid = w.oid AND (w.is_gone OR 0 = ANY (w.parts)) WHERE p.prokind <> 'a'
UNION ALL SELECT w.key, 2, format('ALTER ROUTINE %s OWNER TO %I;', p.oid::regprocedure, pg_get_userbyid(p.proowner))
    FROM wanted w JOIN pg_proc p ON w.kind = 'f' AND p.oid = w.oid AND 1 = ANY (w.parts)
    AND (NOT w.is_gone OR pg_get_userbyid(p.proowner) <> current_user)
UNION ALL SELECT w.key, 1, CASE WHEN w.is_gone OR 1 = ANY (w.parts) THEN CASE WHEN w.is_gone OR t.tgconstraint <> 0 THEN
    pg_get_triggerdef(t.oid) ELSE regexp_replace(pg_get_triggerdef(t.oid), '^CREATE TRIGGER',
        'CREATE OR REPLACE TRIGGER') END || ';' END
    FROM wanted w JOIN pg_trigger t ON w.kind = 't' AND t.oid = w.oid
UNION ALL SELECT w.key, 2, format('ALTER TABLE %s %s TRIGGER %I;', {QUALIFIED_NAME_OF.format(oid="t.tgrelid")},
    {_SWITCH}, t.tgname)
    FROM wanted w JOIN pg_trigger t ON w.kind = 't' AND t.oid = w.oid AND 0 = ANY (w.parts)
UNION ALL SELECT w.key, 1, concat(CASE WHEN w.is_gone THEN '' ELSE format(E'DROP POLICY %I ON %s;\\n', p.polname,
    {QUALIFIED_NAME_OF.format(oid="p.polrelid")}) END, format('CREATE POLICY %I ON %s AS %s FOR %s TO %s', p.polname,
    {QUALIFIED_NAME_OF.format(oid="p.polrelid")}, CASE WHEN p.polpermissive THEN 'PERMISSIVE' ELSE 'RESTRICTIVE' END,
    CASE p.polcmd WHEN 'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' WHEN 'w' THEN 'UPDATE' WHEN 'd' THEN 'DELETE' ELSE 'ALL'
    END, {_ROLES}), ' USING (' || pg_get_expr(p.polqual, p.polrelid) || ')',
    ' WITH CHECK (' || pg_get_expr(p.polwithcheck, p.polrelid) || ')', ';')
    FROM wanted w JOIN pg_policy p ON w.kind = 'p' AND p.oid = w.oid
UNION ALL SELECT w.key, 1, CASE WHEN w.is_gone THEN pg_get_ruledef(r.oid) WHEN 1 = ANY (w.parts) THEN
    regexp_replace(pg_get_ruledef(r.oid), '^CREATE RULE', 'CREATE OR REPLACE RULE') END FROM wanted w JOIN pg_rewrite r
    ON w.kind = 'r' AND r.oid = w.oid
UNION ALL SELECT w.key, 2, format('ALTER TABLE %s %s RULE %I;', {QUALIFIED_NAME_OF.format(oid="r.ev_class")}, CASE
    r.ev_enabled
    WHEN 'D' THEN 'DISABLE' WHEN 'R' THEN 'ENABLE REPLICA' WHEN 'A' THEN 'ENABLE ALWAYS' ELSE 'ENABLE' END, r.rulename)
    FROM wanted w JOIN pg_rewrite r ON w.kind = 'r' AND r.oid = w.oid AND 0 = ANY (w.parts)
UNION ALL SELECT w.key, 1, pg_get_statisticsobjdef(s.oid) || ';' FROM wanted w JOIN pg_statistic_ext s
    ON w.kind = 's' AND w.is_gone AND s.oid = w.oid
UNION ALL SELECT w.key, 2, format('ALTER STATISTICS %I.%I SET STATISTICS %s;', n.nspname, s.stxname,
    coalesce(s.stxstattarget, -1)) FROM wanted w JOIN pg_statistic_ext s ON w.kind = 's' AND s.oid = w.oid
    AND 0 = ANY (w.parts) JOIN pg_namespace n ON n.oid = s.stxnamespace
) x WHERE line IS NOT NULL
"""


async def read_definitions(session: Session, requests: Iterable[DefinitionRequest]) -> dict[str, list[RankedLine]]:
    """Return statements for each of them by its key, with the rank of each among them.

    None for what can't be spelled.
    """
    rows = [request.row() for request in requests]
    if not rows:
        return {}
    lines: list[tuple[str, int, str]] = json.loads(await session.fetch_value(_DEFINED, json.dumps(rows)) or "[]")
    lines_by_key: dict[str, list[RankedLine]] = {}
    for key, rank, line in sorted(lines, key=lambda row: row[1]):
        lines_by_key.setdefault(key, []).append((rank, line))
    return lines_by_key
