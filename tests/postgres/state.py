"""All that there is in a database, as an independent connection sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg

__all__ = ["SEQUENCES", "State"]

_OWN = "n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'"
_CLASS = "pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
_ON = """(SELECT format('%s.%s', y.nspname,
    x.relname) FROM pg_class x JOIN pg_namespace y ON y.oid = x.relnamespace WHERE x.oid = {})"""
_ACL = "(SELECT string_agg(a::text, ',' ORDER BY a::text) FROM unnest({}) a)"
_RIGHTS = _ACL.format(
    "coalesce(c.relacl, acldefault(CASE c.relkind WHEN 'S' THEN 's' ELSE 'r' END::pg_catalog.\"char\", c.relowner))"
)
# PostgreSQL's newest releases keep one of their own among the options of a column, other in each transaction.
_OPTIONS = "ARRAY(SELECT o FROM unnest(a.attoptions) o WHERE o NOT LIKE 'pg_attver=%')"
_OBJECTS = f"""
SELECT format('relation %s.%s', n.nspname, c.relname), concat_ws('|', c.relkind, c.relowner::regrole, c.relpersistence,
    c.reloptions, c.relrowsecurity, c.relforcerowsecurity, c.relreplident, pg_get_expr(c.relpartbound, c.oid),
    (SELECT string_agg(i.inhparent::regclass::text,
        ',' ORDER BY i.inhseqno) FROM pg_inherits i WHERE i.inhrelid = c.oid),
    CASE WHEN c.relkind IN ('v', 'm') THEN pg_get_viewdef(c.oid) END,
    CASE WHEN c.relkind = 'p' THEN pg_get_partkeydef(c.oid) END, c.reloftype::regtype,
    (SELECT concat_ws(' ', pg_get_indexdef(x.indexrelid), x.indisclustered, x.indisvalid, x.indisreplident,
        x.indisprimary)
        FROM pg_index x WHERE x.indexrelid = c.oid),
    (SELECT concat_ws(' ', s.seqtypid::regtype, s.seqstart, s.seqincrement, s.seqmax, s.seqmin, s.seqcache, s.seqcycle)
        FROM pg_sequence s WHERE s.seqrelid = c.oid),
    (SELECT d.refobjid::regclass || '.' || d.refobjsubid FROM pg_depend d WHERE d.classid = 'pg_class'::regclass
        AND d.objid = c.oid AND d.deptype IN ('a', 'i') AND d.refclassid = 'pg_class'::regclass AND c.relkind = 'S'),
    {_RIGHTS},
    obj_description(c.oid, 'pg_class'))
    FROM {_CLASS} WHERE {_OWN}
UNION ALL SELECT format('column %s.%s.%s', n.nspname, c.relname, a.attname), concat_ws('|',
    format_type(a.atttypid, a.atttypmod), a.attnotnull,
    pg_get_expr(e.adbin, e.adrelid), a.attidentity, a.attgenerated, a.attcollation, a.attstorage,
    nullif(a.attstattarget, -1), a.attcompression, {_OPTIONS}, {_ACL.format("a.attacl")}, a.attislocal, a.attinhcount,
    col_description(c.oid, a.attnum))
    FROM pg_attribute a JOIN {_CLASS} ON c.oid = a.attrelid
    LEFT JOIN pg_attrdef e ON e.adrelid = a.attrelid AND e.adnum = a.attnum
    WHERE {_OWN} AND a.attnum > 0 AND NOT a.attisdropped AND c.relkind NOT IN ('i', 'I', 'S')
UNION ALL SELECT format('order %s.%s', n.nspname, c.relname), string_agg(a.attname, ',' ORDER BY a.attnum)
    FROM pg_attribute a JOIN {_CLASS} ON c.oid = a.attrelid WHERE {_OWN} AND a.attnum > 0 AND NOT a.attisdropped
    AND c.relkind IN ('r', 'p', 'c') GROUP BY n.nspname, c.relname
UNION ALL SELECT format('constraint %s of %s', conname, coalesce({_ON.format("conrelid")}, contypid::regtype::text)),
    concat_ws('|', pg_get_constraintdef(k.oid), conislocal, coninhcount, obj_description(k.oid, 'pg_constraint'))
    FROM pg_constraint k JOIN pg_namespace n ON n.oid = k.connamespace WHERE {_OWN}
UNION ALL SELECT format('trigger %s of %s', tgname, {_ON.format("tgrelid")}), concat_ws('|', pg_get_triggerdef(oid),
    tgenabled, obj_description(oid, 'pg_trigger')) FROM pg_trigger WHERE NOT tgisinternal
UNION ALL SELECT format('switch of %s of %s', conname, {_ON.format("tgrelid")}), string_agg(tgenabled::text,
    ',' ORDER BY tgname)
    FROM pg_trigger JOIN pg_constraint k ON k.oid = tgconstraint WHERE tgisinternal GROUP BY 1
UNION ALL SELECT format('rule %s of %s', rulename, {_ON.format("ev_class")}), concat_ws('|', pg_get_ruledef(r.oid),
    ev_enabled, obj_description(r.oid, 'pg_rewrite')) FROM pg_rewrite r JOIN {_CLASS} ON c.oid = r.ev_class
    WHERE {_OWN} AND rulename <> '_RETURN'
UNION ALL SELECT format('policy %s of %s', polname, {_ON.format("polrelid")}), concat_ws('|', polcmd, polpermissive,
    polroles::regrole[], pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid),
    obj_description(oid, 'pg_policy')) FROM pg_policy
UNION ALL SELECT format('function %s.%s(%s)', n.nspname, p.proname, pg_get_function_identity_arguments(p.oid)),
    concat_ws('|', p.proowner::regrole, CASE WHEN p.prokind <> 'a' THEN pg_get_functiondef(p.oid) END,
    {_ACL.format("coalesce(p.proacl, acldefault('f', p.proowner))")}, obj_description(p.oid, 'pg_proc'))
    FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE {_OWN}
UNION ALL SELECT format('type %s.%s', n.nspname, t.typname), concat_ws('|', t.typtype, t.typowner::regrole,
    t.typnotnull,
    t.typdefault, t.typbasetype::regtype, t.typtypmod, t.typcollation,
    (SELECT string_agg(e.enumlabel, ',' ORDER BY e.enumsortorder) FROM pg_enum e WHERE e.enumtypid = t.oid),
    (SELECT r.rngsubtype::regtype FROM pg_range r WHERE r.rngtypid = t.oid),
    {_ACL.format("coalesce(t.typacl, acldefault('T', t.typowner))")}, obj_description(t.oid, 'pg_type'))
    FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace WHERE {_OWN} AND t.typelem = 0
UNION ALL SELECT format('statistics %s.%s', n.nspname, s.stxname), concat_ws('|', s.stxowner::regrole,
    pg_get_statisticsobjdef(s.oid), nullif(s.stxstattarget, -1), obj_description(s.oid, 'pg_statistic_ext'))
    FROM pg_statistic_ext s JOIN pg_namespace n ON n.oid = s.stxnamespace
UNION ALL SELECT format('collation %s.%s', n.nspname, l.collname), l.collprovider::text FROM pg_collation l
    JOIN pg_namespace n ON n.oid = l.collnamespace WHERE {_OWN}
UNION ALL SELECT format('operator %s', o.oid::regoperator), o.oprcode::text FROM pg_operator o
    JOIN pg_namespace n ON n.oid = o.oprnamespace WHERE {_OWN}
UNION ALL SELECT format('cast %s to %s', castsource::regtype, casttarget::regtype), castmethod::text FROM pg_cast
    WHERE oid >= 16384
UNION ALL SELECT format('schema %s', n.nspname), concat_ws('|', n.nspowner::regrole,
    {_ACL.format("coalesce(n.nspacl, acldefault('n', n.nspowner))")},
    obj_description(n.oid, 'pg_namespace')) FROM pg_namespace n WHERE {_OWN}
UNION ALL SELECT format('defaults to come in %s %s', defaclnamespace::regnamespace, defaclobjtype),
    {_ACL.format("defaclacl")} FROM pg_default_acl
"""
SEQUENCES = f"SELECT format('%I.%I', n.nspname, c.relname) FROM {_CLASS} WHERE c.relkind = 'S' AND {_OWN} ORDER BY 1"
"""Their names."""
_FILLED = f"""
SELECT format('%I.%I', n.nspname, c.relname) FROM {_CLASS} WHERE {_OWN} AND (c.relkind = 'r' OR c.relkind = 'm'
    AND c.relispopulated) ORDER BY 1
"""


@dataclass(frozen=True)
class State:
    """All that there is.

    Attributes:
        objects: what each is, by its kind and name.
        rows: each table's as JSON, by its name.
        given: what each sequence has given, which no transaction takes back.
    """

    objects: dict[str, str]
    rows: dict[str, list[str]]
    given: dict[str, tuple[Any, ...]]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, State) and (self.objects, self.rows) == (other.objects, other.rows)

    @staticmethod
    def of(connection: psycopg.Connection[Any]) -> State:
        """As this connection sees it, in its transaction."""

        def found(sql: str) -> list[tuple[Any, ...]]:
            return connection.execute(sql.encode()).fetchall()

        rows = {
            name: sorted(row for (row,) in found(f"SELECT to_json(t)::text FROM ONLY {name} t"))
            for (name,) in found(_FILLED)
        }
        given = {name: found(f"SELECT last_value, is_called FROM {name}")[0] for (name,) in found(SEQUENCES)}
        return State(dict(found(_OBJECTS)), rows, given)

    def differs(self, other: State) -> list[str]:
        """What is another in `other`, each line beginning with its name."""
        one: dict[str, object] = {**self.objects, **{f"rows of {name}": rows for name, rows in self.rows.items()}}
        two: dict[str, object] = {**other.objects, **{f"rows of {name}": rows for name, rows in other.rows.items()}}
        return [
            f"{key}: {one.get(key)} / {two.get(key)}" for key in sorted({*one, *two}) if one.get(key) != two.get(key)
        ]
