"""Expressions of SQL that say what a relation is and what it is called, for queries of the catalog.

They mean a row `c` of `pg_class`, and its schema, a row `n` of `pg_namespace`.
"""

from __future__ import annotations

__all__ = [
    "IS_OF_EXTENSION",
    "IS_READABLE",
    "QUALIFIED_NAME",
    "QUALIFIED_NAME_OF",
    "RELATION_KIND",
    "RELATION_WORD",
    "USER_SCHEMA",
]

USER_SCHEMA = "n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'"
RELATION_KIND = """CASE c.relkind WHEN 'r' THEN 'table' WHEN 'p' THEN 'partitioned table' WHEN 'v' THEN 'view'
    WHEN 'm' THEN 'materialized view' WHEN 'f' THEN 'foreign table' WHEN 'S' THEN 'sequence' END"""
RELATION_WORD = """CASE c.relkind WHEN 'r' THEN 'table' WHEN 'p' THEN 'partitioned table' WHEN 'v' THEN 'view' WHEN
    'm' THEN
    'materialized view' WHEN 'f' THEN 'foreign table' WHEN 'S' THEN 'sequence' WHEN 'c' THEN 'type' ELSE 'index' END"""
QUALIFIED_NAME_OF = (
    "(SELECT format('%I.%I', y.nspname, x.relname) FROM pg_class x JOIN pg_namespace y ON y.oid = x.relnamespace"
    " WHERE x.oid = {oid})"
)
# A name as SQL spells it, so that it can be used as it stands.
QUALIFIED_NAME = "format('%I.%I', n.nspname, c.relname)"
# Whether the role may read any column of a relation.
IS_READABLE = "(has_table_privilege(c.oid, 'SELECT') OR has_any_column_privilege(c.oid, 'SELECT'))"
# Whether a relation is part of an extension, which lists without a schema leave out.
IS_OF_EXTENSION = """EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = c.oid AND d.objsubid = 0
        AND d.classid = 'pg_class'::regclass AND d.deptype IN ('e', 'i'))"""
