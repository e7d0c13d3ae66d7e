"""A database's workload: its statements, its sessions and its settings."""

from __future__ import annotations

import json
import re
from typing import Any

import psycopg

from mcp_batteries.errors import Refused
from mcp_batteries.sql.results.rows import format_count
from mcp_postgres.engine.audit.visible_schema import SESSION_QUERY
from mcp_postgres.engine.connection.session import Session
from mcp_postgres.models import Report
from mcp_postgres.policy import Database, ReadStatement, internal_statement

__all__ = ["list_sessions", "list_settings", "list_top_statements", "read_top_statements"]

_ORDERS = {
    "total": "total_exec_time",
    "mean": "mean_exec_time",
    "calls": "calls",
    "rows": "rows",
    "reads": "shared_blks_read",
}
_TOP = """
SELECT coalesce(json_agg(x), '[]')::text FROM (
    SELECT s.query, s.calls, s.rows, round(s.total_exec_time::numeric, 1) AS total, round(s.mean_exec_time::numeric,
        2) AS mean,
        s.shared_blks_read AS reads, round((100 * s.total_exec_time / nullif(sum(s.total_exec_time) OVER (),
            0))::numeric, 1) AS share
    FROM {view} s WHERE s.dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) AND s.toplevel
    ORDER BY s.{order} DESC LIMIT $1::int) x
"""
_SESSIONS = f"""
SELECT coalesce(json_agg(x), '[]')::text FROM (
    SELECT pid, usename AS role, application_name AS app, coalesce(client_addr::text, 'local') AS client, state,
        date_trunc('milliseconds', now() - CASE WHEN state = 'active' THEN query_start ELSE state_change END)::text
            AS since,
        date_trunc('second', now() - xact_start)::text AS transaction, concat_ws(' ', wait_event_type, wait_event) AS
            waits,
        pg_blocking_pids(pid) AS blockers, (SELECT string_agg(concat_ws(' ', l.mode, 'on', CASE l.locktype
            WHEN 'relation' THEN coalesce(l.relation::regclass::text, 'relation ' || l.relation)
            WHEN 'tuple' THEN 'a row of ' || l.relation::regclass::text
            WHEN 'transactionid' THEN 'a row that transaction ' || l.transactionid::text || ' changed'
            WHEN 'advisory' THEN format('advisory %s %s', l.classid, l.objid) ELSE l.locktype END), ', ')
            FROM pg_locks l WHERE l.pid = a.pid AND NOT l.granted) AS wanted,
        (SELECT string_agg(DISTINCT concat_ws(' ', h.mode, 'on', h.relation::regclass::text), ', ') FROM pg_locks h
            JOIN pg_locks w ON NOT w.granted AND a.pid = ANY (pg_blocking_pids(w.pid))
            AND (w.relation = h.relation OR w.locktype = 'transactionid' AND h.mode LIKE 'Row%')
            WHERE h.pid = a.pid AND h.granted AND h.locktype = 'relation' AND h.relation >= 16384
            AND h.database = (SELECT oid FROM pg_database WHERE datname = current_database())) AS holding,
        left(regexp_replace({SESSION_QUERY}, '\\s+', ' ', 'g'), 500) AS query, count(*) OVER () AS total
    FROM pg_stat_activity a WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND datname =
        current_database()
        AND ($1::text = 'all' OR state <> 'idle')
    ORDER BY cardinality(pg_blocking_pids(pid)) DESC, state = 'active' DESC, query_start LIMIT $2::int) x
"""
_SETTINGS = """
SELECT coalesce(json_agg(x), '[]')::text FROM (
    SELECT name, CASE WHEN source = 'session' THEN concat(reset_val, unit) ELSE current_setting(name) END AS value,
        source, pending_restart AS pending, short_desc AS meaning,
        boot_val IS DISTINCT FROM reset_val AS changed, count(*) OVER () AS total
    FROM pg_settings WHERE CASE WHEN $1::text <> '' THEN strpos(name, $1) > 0 OR strpos(lower(short_desc), lower($1))
        > 0
        ELSE name = ANY ($2::text[]) OR pending_restart
            OR (source NOT IN ('default', 'override', 'client', 'session', 'database', 'user') AND boot_val IS
                DISTINCT FROM reset_val
                AND category !~ 'Locale|File Locations|Ungrouped|Preset|Client Connection Defaults / Locale')
        END ORDER BY category, name LIMIT 100) x
"""
_IMPORTANT_SETTINGS = (
    "shared_buffers", "effective_cache_size", "work_mem", "maintenance_work_mem", "max_connections", "wal_level",
    "max_wal_size", "checkpoint_timeout", "checkpoint_completion_target", "random_page_cost",
    "effective_io_concurrency",
    "default_statistics_target", "autovacuum", "autovacuum_max_workers", "autovacuum_vacuum_scale_factor",
    "autovacuum_vacuum_cost_limit", "max_parallel_workers_per_gather", "max_worker_processes", "jit", "fsync",
    "synchronous_commit", "full_page_writes", "statement_timeout", "idle_in_transaction_session_timeout",
    "lock_timeout",
    "log_min_duration_statement", "shared_preload_libraries", "track_io_timing", "huge_pages", "ssl",
)  # fmt: skip
_RISKY_VALUES = {
    ("fsync", "off"): "a crash can lose the whole cluster",
    ("full_page_writes", "off"): "a crash can leave torn pages",
    ("autovacuum", "off"): "tables will bloat, and transaction ids run out",
    ("synchronous_commit", "off"): "a crash loses the last commits",
}
# Facts of a session that are told where there are any, and what stands before each.
_OPTIONAL_SESSION_FACTS = (("transaction", "transaction "), ("waits", "waits: "), ("wanted", "wants "))
_EMPTY_TEXT = "''"
_HAS_PLAN = re.compile(r"\s*(SELECT|WITH|UPDATE|DELETE|INSERT|MERGE|TABLE)\b", re.I)
_Row = dict[str, Any]


async def _find_statistics_view(session: Session) -> str:
    if session.audit.visible.schema:
        raise Refused("Other sessions' statements are not shown where a part of the database is served.")
    schema = await session.fetch_value(
        "SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace"
        " WHERE e.extname = 'pg_stat_statements'"
    )
    if schema is None:
        raise Refused(
            "This needs the extension `pg_stat_statements`, which isn't in this database.",
            "An administrator can add it to shared_preload_libraries, restart, and CREATE EXTENSION it.",
        )
    return f"{schema}.pg_stat_statements"


async def list_top_statements(session: Session, order: str, limit: int) -> Report:
    """Return the statements that cost most, as pg_stat_statements counted them.

    Raises:
        Refused: the extension is missing, or not loaded.
    """
    view = await _find_statistics_view(session)
    try:
        statements = json.loads(
            await session.fetch_value(_TOP.format(view=view, order=_ORDERS[order]), str(limit)) or "[]"
        )
    except psycopg.errors.ObjectNotInPrerequisiteState as error:
        raise Refused(
            "`pg_stat_statements` is there but not loaded.", "An administrator can add it to shared_preload_libraries."
        ) from error
    lines: list[str] = []
    for item in statements:
        lines.append(f"- {_format_share(item)}{_format_totals(item)}:")
        lines.append("  " + " ".join(str(item["query"]).split())[:1000])
    notes: list[str] = []
    if not session.role.sees_other_roles:
        notes.append("statements of other roles are hidden: the role lacks `pg_monitor`")
    return Report([(f"Statements by {order}:", lines or ["none yet"])], notes)


def _format_share(item: _Row) -> str:
    if item["share"] is None:
        return ""
    return f"{item['share']} % of all time, "


def _format_totals(item: _Row) -> str:
    return (
        f"{item['total']:,} ms in {format_count(item['calls'], 'call')}, {item['mean']:,} ms each,"
        f" {format_count(item['rows'], 'row')}, {format_count(item['reads'], 'block')} read"
    )


async def list_sessions(session: Session, which: str, limit: int) -> Report:
    """Return who does what in this database now, those who wait first."""
    rows: list[_Row] = json.loads(await session.fetch_value(_SESSIONS, which, str(limit)) or "[]")
    lines: list[str] = []
    for item in rows:
        lines += [f"- {_format_session(item)}", f"  {item['query']}"]
    notes: list[str] = []
    if rows and rows[0]["total"] > len(rows):
        notes.append(f"truncated: {len(rows)} of {rows[0]['total']} sessions; a larger `limit` shows more")
    nothing = "no other session is busy"
    if not session.role.sees_other_roles:
        notes.append("other roles' sessions are hidden: the role lacks `pg_monitor`")
        nothing = "no other session of this role is busy"
    return Report([("Sessions:", lines or [nothing])], notes)


def _format_session(item: _Row) -> str:
    """Return whose session it is, what it does, and what it waits for."""
    facts = [
        f"{item['pid']} {item['role']}",
        item["app"] or "no name",
        item["client"],
        f"{item['state'] or 'hidden'} for {item['since'] or '?'}",
    ]
    for name, prefix in _OPTIONAL_SESSION_FACTS:
        if item[name]:
            facts.append(f"{prefix}{item[name]}")
    if item["blockers"]:
        facts.append(f"BLOCKED BY {', '.join(map(str, item['blockers']))}")
    if item["holding"]:
        facts.append(f"BLOCKS OTHERS by {item['holding']}")
    return "; ".join(facts)


async def list_settings(session: Session, words: str) -> Report:
    """Return settings that matter or were changed; with `words` those that have them in name or meaning."""
    important_names = "{" + ",".join(_IMPORTANT_SETTINGS) + "}"
    rows: list[_Row] = json.loads(await session.fetch_value(_SETTINGS, words, important_names) or "[]")
    lines: list[str] = []
    for item in rows:
        facts = _format_setting(item)
        if words:
            facts.append(str(item["meaning"]))
        lines.append(f"- {'; '.join(facts)}")
    notes: list[str] = []
    if rows and rows[0]["total"] > len(rows):
        notes.append(f"truncated: {len(rows)} of {rows[0]['total']} settings; a longer `query` finds fewer")
    return Report([("Settings:", lines or ["none has that in name or meaning"])], notes)


def _format_setting(item: _Row) -> list[str]:
    """Return a setting's value, and what is special about it."""
    facts = [f"{item['name']} = {item['value'] or _EMPTY_TEXT}"]
    if item["changed"]:
        facts.append(f"set by {item['source']}")
    if item["pending"]:
        facts.append("CHANGED, NEEDS A RESTART")
    risk = _RISKY_VALUES.get((item["name"], item["value"]))
    if risk is not None:
        facts.append(f"WARNING: {risk}")
    return facts


async def read_top_statements(session: Session, database: Database) -> list[tuple[ReadStatement, float]]:
    """Return the statements that cost most, with how often each runs.

    Raises:
        Refused: pg_stat_statements is missing.
    """
    text = await session.fetch_value(
        _TOP.format(view=await _find_statistics_view(session), order="total_exec_time"), "20"
    )
    statements: list[tuple[ReadStatement, float]] = []
    for item in json.loads(text or "[]"):
        sql = str(item["query"])
        if _HAS_PLAN.match(sql):
            statements.append((internal_statement(database, sql), float(item["calls"])))
    return statements
