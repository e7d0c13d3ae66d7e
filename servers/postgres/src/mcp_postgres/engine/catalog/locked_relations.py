"""Says which relations a strong lock closes to readers, so that queries of the catalog ask nothing that waits for them.

PostgreSQL opens a relation, and so waits for its lock, to measure it and to print an expression that belongs to it.
"""

from __future__ import annotations

from mcp_postgres.engine.audit.visible_schema import RELATION_LISTED
from mcp_postgres.engine.connection.lock_holders import LOCK_HOLDER

__all__ = ["IS_CLOSED", "IS_LOCKED", "LOCKED_RELATIONS", "PARTITION_TREE", "TOTAL_SIZE", "UNANALYZED"]

# `locked` are relations that cannot be opened, `closed` also those whose definitions read such a relation.
LOCKED_RELATIONS = f"""strong AS MATERIALIZED (
    SELECT l.relation AS oid, l.pid, l.granted FROM pg_locks l
    WHERE l.locktype = 'relation' AND l.mode = 'AccessExclusiveLock' AND l.pid IS DISTINCT FROM pg_backend_pid()
        AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
), owners AS MATERIALIZED (
    SELECT s.* FROM strong s
    UNION SELECT i.indrelid, s.pid, s.granted FROM strong s JOIN pg_index i ON i.indexrelid = s.oid
), storage AS MATERIALIZED (
    SELECT o.* FROM owners o
    UNION SELECT t.oid, o.pid, o.granted FROM owners o JOIN pg_class t ON t.reltoastrelid = o.oid
), locked AS MATERIALIZED (
    SELECT DISTINCT ON (l.oid) l.oid, 'locked by ' || {LOCK_HOLDER} AS holder
    FROM storage l LEFT JOIN LATERAL pg_stat_get_activity(l.pid) a ON l.pid IS NOT NULL ORDER BY l.oid, l.granted DESC
), closed AS MATERIALIZED (
    SELECT k.oid, k.holder FROM locked k
    UNION ALL SELECT coalesce(r.ev_class, p.polrelid), concat(CASE WHEN {RELATION_LISTED} THEN
        format('%I.%I', n.nspname, c.relname) ELSE 'what it reads' END, ' is ', k.holder)
    FROM locked k JOIN pg_class c ON c.oid = k.oid JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = k.oid
    LEFT JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
    LEFT JOIN pg_policy p ON d.classid = 'pg_policy'::regclass AND p.oid = d.objid
    WHERE coalesce(r.ev_class, p.polrelid) <> k.oid
)"""
# Questions about the relation of an oid.
IS_LOCKED = "EXISTS (SELECT 1 FROM locked k WHERE k.oid = {oid})"
IS_CLOSED = "EXISTS (SELECT 1 FROM closed k WHERE k.oid = {oid})"
# The relations of a partitioned table `c`, itself included: `pg_partition_tree` would wait for the lock of each.
PARTITION_TREE = (
    "(WITH RECURSIVE tree (relid) AS (SELECT c.oid UNION ALL SELECT i.inhrelid FROM pg_inherits i"
    " JOIN tree t ON t.relid = i.inhparent) SELECT relid FROM tree)"
)
# How many partitions of a partitioned table `c` have no estimate of their rows.
UNANALYZED = (
    f"CASE WHEN c.relkind = 'p' THEN (SELECT count(*) FROM {PARTITION_TREE} t JOIN pg_class l ON l.oid = t.relid"
    " WHERE l.relkind <> 'p' AND l.reltuples < 0) END"
)
# The bytes of a relation `c` with its indexes; NULL where it can't be measured.
TOTAL_SIZE = f"""CASE WHEN c.relkind = 'p' THEN (SELECT CASE WHEN NOT bool_or({IS_LOCKED.format(oid="t.relid")}) THEN
        sum(CASE WHEN NOT {IS_LOCKED.format(oid="t.relid")} THEN pg_total_relation_size(t.relid) END) END
        FROM {PARTITION_TREE} t)
    WHEN c.relkind IN ('r', 'm', 'S') AND NOT {IS_LOCKED.format(oid="c.oid")} THEN pg_total_relation_size(c.oid) END"""
