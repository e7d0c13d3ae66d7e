"""Names the table and the holder of a lock that a statement waited for in vain."""

from __future__ import annotations

import json
import re
from typing import Any

from mcp_postgres.engine.audit.catalog_reader import CatalogReader
from mcp_postgres.engine.audit.visible_schema import RELATION_LISTED

__all__ = ["LOCK_HOLDER", "describe_lock_holders"]

_STATEMENT_WORDS = (
    r"'(?i)^(?:\s|/\*[^*]*\*/|--[^\n]*\n)*"
    r"([a-z]+(?:\s+(?:materialized\s+view|table|index|view|schema|sequence|type|role))?)'"
)
# How who has or awaits a lock `l` is called; `a` is its session. The values in its statement are nobody's business.
LOCK_HOLDER = (
    "concat(coalesce('pid ' || l.pid, 'a prepared transaction'), ' (' ||"
    " nullif(concat_ws(', last ', CASE WHEN a.state ~ '^idle in' THEN a.state END,"
    f" regexp_replace(upper(substring(a.query FROM {_STATEMENT_WORDS})), '\\s+', ' ', 'g') || ' ...'), '') || ')',"
    " CASE WHEN NOT l.granted THEN ', which waits for pid ' || array_to_string(pg_blocking_pids(l.pid), ', ') END)"
)
_MAX_HOLDERS = 3
# The locks of relations, the weakest first, and the weakest that stops each kind of statement.
_MODES = (
    "AccessShareLock", "RowShareLock", "RowExclusiveLock", "ShareUpdateExclusiveLock", "ShareLock",
    "ShareRowExclusiveLock", "ExclusiveLock", "AccessExclusiveLock",
)  # fmt: skip
_STOPS_READING = "AccessExclusiveLock"
_STOPS_ROW_CHANGES = "ShareLock"
_STOPS_DDL = "AccessShareLock"
_HOLDS_ROWS = "RowShareLock"
_DDL = re.compile(r"\s*(?:ALTER|CREATE|DROP|TRUNCATE|REINDEX|CLUSTER|VACUUM|REFRESH|COMMENT|GRANT|REVOKE|LOCK)\b", re.I)
# A relation is `named` if the text has its name, a view's that reads it or the table's whose partition it is.
_HOLDERS = f"""
SELECT coalesce(json_agg(x), '[]')::text FROM (
    SELECT format('%I.%I', n.nspname, c.relname) AS relation, {LOCK_HOLDER} AS holder,
        EXISTS (WITH RECURSIVE needed_by (oid) AS (SELECT c.oid UNION SELECT e.oid FROM needed_by b, LATERAL (
                SELECT r.ev_class AS oid FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid WHERE
                    d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjid = b.oid
                UNION ALL SELECT i.inhparent FROM pg_inherits i WHERE i.inhrelid = b.oid) e)
            SELECT 1 FROM needed_by b JOIN pg_class o ON o.oid = b.oid
            WHERE strpos(lower($1), lower(o.relname)) > 0) AS named
    FROM pg_locks l LEFT JOIN pg_index i ON i.indexrelid = l.relation
    JOIN pg_class c ON c.oid = coalesce(i.indrelid, l.relation) JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN LATERAL pg_stat_get_activity(l.pid) a ON l.pid IS NOT NULL
    WHERE l.locktype = 'relation' AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND l.pid IS DISTINCT FROM pg_backend_pid() AND l.mode = ANY ($2::text[])
        AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND {RELATION_LISTED}
        AND (c.relkind = 'S' OR has_table_privilege(c.oid, 'SELECT') OR has_any_column_privilege(c.oid, 'SELECT'))
    GROUP BY c.oid, c.relname, n.nspname, l.pid, l.granted, a.pid, a.state, a.query
    ORDER BY named DESC, l.granted DESC, relation, l.pid LIMIT 20) x
"""


async def describe_lock_holders(session: CatalogReader, text: str, *, row_table: str | None = None) -> str:
    """Return which table that a statement may wait for is locked, and by whom; empty where none is.

    Args:
        row_table: the table of which it waited for a row, if that is known.
    """
    read_only = await session.fetch_value("SELECT pg_catalog.current_setting('transaction_read_only')") == "on"
    weakest = _weakest_conflict(text, row_table, is_read_only=read_only)
    modes = ",".join(_MODES[_MODES.index(weakest) :])
    holders = json.loads(await session.fetch_value(_HOLDERS, row_table or text, f"{{{modes}}}") or "[]")
    if not holders:
        return ""
    return _format_holders(holders)


def _weakest_conflict(text: str, row_table: str | None, *, is_read_only: bool) -> str:
    """Return the weakest lock of others that can have stopped a statement."""
    if row_table is not None:
        return _HOLDS_ROWS
    if is_read_only:
        return _STOPS_READING
    if _DDL.match(text):
        return _STOPS_DDL
    return _STOPS_ROW_CHANGES


def _format_holders(holders: list[dict[str, Any]]) -> str:
    named = [holder for holder in holders if holder["named"]]
    lead = ""
    if not named:
        lead = "Perhaps it was this: "
    locks = [f"`{item['relation']}` is locked by {item['holder']}" for item in (named or holders)[:_MAX_HOLDERS]]
    return f"{lead}{'; '.join(locks)}."
