"""What a database is busy with: its statements, its sessions, its settings, and indexes that would help."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any, cast

import psycopg

from mcp_batteries.errors import Invalid, Refused, quote
from mcp_batteries.sql.rows import size
from mcp_postgres.engine.connections import Session
from mcp_postgres.engine.errors import problem
from mcp_postgres.engine.part import QUERY
from mcp_postgres.engine.plan import hypopg, plan_of
from mcp_postgres.models import Report
from mcp_postgres.policy import Advice, ReadStatement, of_ours

__all__ = ["advice", "sessions", "settings", "top"]

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
        left(regexp_replace({QUERY}, '\\s+', ' ', 'g'), 500) AS query
    FROM pg_stat_activity a WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND datname =
        current_database()
        AND ($1::text = 'all' OR state <> 'idle')
    ORDER BY cardinality(pg_blocking_pids(pid)) DESC, state = 'active' DESC, query_start LIMIT $2::int) x
"""
_SETTINGS = """
SELECT coalesce(json_agg(x), '[]')::text FROM (
    SELECT name, CASE WHEN source = 'session' THEN concat(reset_val, unit) ELSE current_setting(name) END AS value,
        source, pending_restart AS pending, short_desc AS meaning,
        boot_val IS DISTINCT FROM reset_val AS changed
    FROM pg_settings WHERE CASE WHEN $1::text <> '' THEN strpos(name, $1) > 0 OR strpos(lower(short_desc), lower($1))
        > 0
        ELSE name = ANY ($2::text[]) OR pending_restart
            OR (source NOT IN ('default', 'override', 'client', 'session', 'database', 'user') AND boot_val IS
                DISTINCT FROM reset_val
                AND category !~ 'Locale|File Locations|Ungrouped|Preset|Client Connection Defaults / Locale')
        END ORDER BY category, name LIMIT 100) x
"""
_MATTER = (
    "shared_buffers", "effective_cache_size", "work_mem", "maintenance_work_mem", "max_connections", "wal_level",
    "max_wal_size", "checkpoint_timeout", "checkpoint_completion_target", "random_page_cost",
    "effective_io_concurrency",
    "default_statistics_target", "autovacuum", "autovacuum_max_workers", "autovacuum_vacuum_scale_factor",
    "autovacuum_vacuum_cost_limit", "max_parallel_workers_per_gather", "max_worker_processes", "jit", "fsync",
    "synchronous_commit", "full_page_writes", "statement_timeout", "idle_in_transaction_session_timeout",
    "lock_timeout",
    "log_min_duration_statement", "shared_preload_libraries", "track_io_timing", "huge_pages", "ssl",
)  # fmt: skip
_WARN = {
    ("fsync", "off"): "a crash can lose the whole cluster",
    ("full_page_writes", "off"): "a crash can leave torn pages",
    ("autovacuum", "off"): "tables will bloat, and transaction ids run out",
    ("synchronous_commit", "off"): "a crash loses the last commits",
}


async def _view(session: Session) -> str:
    if session.world.part.part:
        raise Refused("Other sessions' statements are not shown where a part of the database is served.")
    schema = await session.value(
        "SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace"
        " WHERE e.extname = 'pg_stat_statements'"
    )
    if schema is None:
        raise Refused(
            "This needs the extension `pg_stat_statements`, which isn't in this database.",
            "An administrator can add it to shared_preload_libraries, restart, and CREATE EXTENSION it.",
        )
    return f"{schema}.pg_stat_statements"


async def top(session: Session, order: str, limit: int) -> Report:
    """The statements that cost most, as pg_stat_statements counted them.

    Raises:
        Refused: the extension is missing, or not loaded.
    """
    view = await _view(session)
    try:
        found = json.loads(await session.value(_TOP.format(view=view, order=_ORDERS[order]), str(limit)) or "[]")
    except psycopg.errors.ObjectNotInPrerequisiteState as error:
        raise Refused(
            "`pg_stat_statements` is there but not loaded.", "An administrator can add it to shared_preload_libraries."
        ) from error
    lines: list[str] = []
    for item in found:
        share = f"{item['share']} % of all time, " if item["share"] is not None else ""
        lines.append(
            f"- {share}{item['total']:,} ms in {item['calls']:,} calls, {item['mean']:,} ms each,"
            f" {item['rows']:,} rows, {item['reads']:,} blocks read:"
        )
        lines.append("  " + " ".join(str(item["query"]).split())[:1000])
    notes: list[str] = []
    if not session.role.superuser and "pg_monitor" not in session.role.powers:
        notes.append("statements of other roles are hidden: the role lacks `pg_monitor`")
    return Report([(f"Statements by {order}:", lines or ["none yet"])], notes)


async def sessions(session: Session, which: str, limit: int) -> Report:
    """Who does what in this database now, those who wait first."""
    found = json.loads(await session.value(_SESSIONS, which, str(limit)) or "[]")
    lines: list[str] = []
    for item in found:
        facts = [f"{item['pid']} {item['role']}", item["app"] or "no name", item["client"]]
        facts.append(f"{item['state'] or 'hidden'} for {item['since'] or '?'}")
        if item["transaction"]:
            facts.append(f"transaction {item['transaction']}")
        if item["waits"]:
            facts.append(f"waits: {item['waits']}")
        if item["wanted"]:
            facts.append(f"wants {item['wanted']}")
        if item["blockers"]:
            facts.append(f"BLOCKED BY {', '.join(map(str, item['blockers']))}")
        if item["holding"]:
            facts.append(f"BLOCKS OTHERS by {item['holding']}")
        lines += [f"- {'; '.join(facts)}", f"  {item['query']}"]
    notes: list[str] = []
    if not session.role.superuser and "pg_monitor" not in session.role.powers:
        notes.append("other roles' sessions show no details: the role lacks `pg_monitor`")
    return Report([("Sessions:", lines or ["no other session is busy"])], notes)


async def settings(session: Session, words: str) -> Report:
    """Settings that matter or were changed; with `words` those that have them in name or meaning."""
    wanted = "{" + ",".join(_MATTER) + "}"
    found = json.loads(await session.value(_SETTINGS, words, wanted) or "[]")
    lines: list[str] = []
    for item in found:
        facts = [f"{item['name']} = {item['value'] or chr(39) * 2}"]
        if item["changed"]:
            facts.append(f"set by {item['source']}")
        if item["pending"]:
            facts.append("CHANGED, NEEDS A RESTART")
        if (item["name"], item["value"]) in _WARN:
            facts.append("WARNING: " + _WARN[item["name"], item["value"]])
        lines.append(f"- {'; '.join(facts)}" + (f"; {item['meaning']}" if words else ""))
    return Report([("Settings:", lines or ["none has that in name or meaning"])])


@dataclass
class _Query:
    """One statement of the workload, and what the planner thinks it costs."""

    statement: ReadStatement
    weight: float
    before: float = 0.0
    now: float = 0.0
    wanted: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Columns its plan filters, joins or sorts by, by table."""


async def advice(session: Session, wanted: Advice, limit: int) -> Report:
    """Indexes that make the planner's costs fall, each tried with hypopg.

    Raises:
        Refused: an extension is missing.
        Invalid: a query given has no plan.
    """
    schema = await hypopg(session)
    session.spent = True
    workload = [_Query(statement, 1.0) for statement in wanted.statements]
    if not wanted.statements:
        text = await session.value(_TOP.format(view=await _view(session), order="total_exec_time"), "20")
        workload = [
            _Query(of_ours(wanted.database, str(item["query"])), float(item["calls"]))
            for item in json.loads(text or "[]")
            if re.match(r"\s*(SELECT|WITH|UPDATE|DELETE|INSERT|MERGE|TABLE)\b", str(item["query"]), re.I)
        ]
    known: list[_Query] = []
    for query in workload:
        cost = await _cost(session, query, strict=bool(wanted.statements))
        if cost is not None:
            query.before = query.now = cost
            known.append(query)
    candidates = await _candidates(session, known)
    tried = len(candidates)
    chosen: list[tuple[str, int, float]] = []
    while candidates and len(chosen) < limit:
        best = await _best(session, schema, known, candidates)
        if best is None:
            break
        chosen.append(best)
        candidates = [item for item in candidates if item != best[0]]
    await session.value(f"SELECT {schema}.hypopg_reset()::text")
    return _advised(known, chosen, len(workload) - len(known), tried)


def _advised(known: Sequence[_Query], chosen: Sequence[tuple[str, int, float]], skipped: int, tried: int) -> Report:
    notes = [f"{len(known)} statements looked at, costs are the planner's, {tried} indexes tried with hypopg"]
    notes.append("tried are B-trees on one or two columns; no expressions, conditions or other kinds")
    if skipped:
        notes.append(f"{skipped} more have no plan that can be looked at")
    if not chosen:
        return Report([("No index tried makes these statements cheaper.", [])], notes)
    lines = [f"- CREATE INDEX ON {item}; about {size(bytes_)}, {gain:.0%} less cost" for item, bytes_, gain in chosen]
    effect = [
        f"- {query.before:,.0f} -> {query.now:,.0f}: {' '.join(query.statement.sql.split())[:200]}"
        for query in known
        if query.now < query.before
    ]
    return Report([("Indexes, the best first:", lines), ("Cost with all of them:", effect)], notes)


async def _cost(session: Session, query: _Query, *, strict: bool = False, look: bool = True) -> float | None:
    await session.simple("SAVEPOINT mcp_cost")
    try:
        top = await plan_of(session, query.statement, generic="$" in query.statement.sql)
    except (psycopg.Error, Refused) as error:
        await session.simple("ROLLBACK TO SAVEPOINT mcp_cost")
        await session.simple("DEALLOCATE ALL")
        if strict and isinstance(error, Refused):
            raise
        if strict and isinstance(error, psycopg.Error):
            found = problem(error, query.statement.database.name)
            raise Invalid(f"{quote(query.statement.sql)} has no plan: {found.what}", found.fix) from error
        return None
    if look:
        _look(top["Plan"], query.wanted, {})
    return float(top["Plan"]["Total Cost"])


def _look(node: dict[str, Any], wanted: dict[str, list[str]], aliases: dict[str, str]) -> None:
    """Note what conditions and sort keys of a plan are about; the names are checked against the catalogue later."""
    _gather_aliases(node, aliases)
    conditions = ("Filter", "Index Cond", "Recheck Cond", "Hash Cond", "Merge Cond", "Join Filter")
    texts = [str(node[word]) for word in conditions if word in node]
    for word in ("Sort Key", "Group Key"):
        texts += cast("list[str]", node.get(word, []))
    own = node.get("Schema"), node.get("Relation Name")
    for text in texts:
        # Values are no names.
        text = re.sub(r"'(?:[^']|'')*'", "", text)
        for alias, name in re.findall(r'(?:([\w$]+)\.)?"?([A-Za-z_][\w$]*)"?', text):
            table = aliases.get(alias) if alias else (str(own[1]) if own[1] else None)
            tables = [table] if table else list(aliases.values()) if not alias else []
            for each in tables:
                columns = wanted.setdefault(each, [])
                if name not in columns:
                    columns.append(name)
    for child in cast("list[dict[str, Any]]", node.get("Plans", [])):
        _look(child, wanted, aliases)


def _gather_aliases(node: dict[str, Any], aliases: dict[str, str]) -> None:
    if "Relation Name" in node:
        aliases[str(node.get("Alias", node["Relation Name"]))] = str(node["Relation Name"])
    for child in cast("list[dict[str, Any]]", node.get("Plans", [])):
        _gather_aliases(child, aliases)


async def _candidates(session: Session, queries: Iterable[_Query]) -> list[str]:
    """Indexes on one column and on two, of tables big enough, as `CREATE INDEX ON` takes them."""
    found: dict[str, None] = {}
    for query in queries:
        for table, names in query.wanted.items():
            text = await session.value(
                "SELECT json_build_object('table', c.oid::regclass::text, 'columns', (SELECT"
                " json_agg(quote_ident(a.attname) ORDER BY array_position($2::text[], a.attname::text))"
                " FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid"
                " WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attname = ANY ($2::text[])"
                " AND EXISTS (SELECT 1 FROM pg_opclass o JOIN pg_am m ON m.oid = o.opcmethod WHERE m.amname = 'btree'"
                " AND o.opcdefault AND (o.opcintype = t.oid OR t.typcategory IN ('S', 'E')))))::text"
                " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relname = $1"
                " AND c.relkind IN ('r', 'm') AND c.relpages > 20 AND n.nspname !~ '^pg_'"
                " ORDER BY pg_table_is_visible(c.oid) DESC LIMIT 1",
                table,
                "{" + ",".join('"' + name.replace('"', "") + '"' for name in names) + "}",
            )
            if text is None:
                continue
            entry = json.loads(text)
            columns = cast("list[str]", entry["columns"] or [])[:5]
            for choice in [(column,) for column in columns] + list(permutations(columns, 2)):
                found[f"{entry['table']} ({', '.join(choice)})"] = None
    return list(found)[:120]


async def _best(
    session: Session, schema: str, queries: Sequence[_Query], candidates: Sequence[str]
) -> tuple[str, int, float] | None:
    """The candidate with the greatest gain, left in place: name, bytes, share of cost; None if none gains a tenth."""
    total = sum(query.now * query.weight for query in queries) or 1.0
    best: tuple[float, str, int, list[float]] | None = None
    create = f"SELECT indexrelid::text FROM {schema}.hypopg_create_index($1::text)"
    for item in candidates:
        made = await session.value(create, f"CREATE INDEX ON {item}")
        if made is None:
            continue
        bytes_ = int(await session.value(f"SELECT {schema}.hypopg_relation_size($1::oid)::text", made) or 0)
        table = item.partition(" (")[0].rpartition(".")[2].strip('"')
        costs = [
            (await _cost(session, query, look=False) or query.now) if table in query.wanted else query.now
            for query in queries
        ]
        await session.value(f"SELECT {schema}.hypopg_drop_index($1::oid)::text", made)
        gain = 1 - sum(cost * query.weight for cost, query in zip(costs, queries, strict=True)) / total
        # Of two that gain the same the smaller one, with fewer columns, is the better.
        if gain > 0.1 and (best is None or gain > best[0] * 1.02):
            best = (gain, item, bytes_, costs)
    if best is None:
        return None
    await session.value(create, f"CREATE INDEX ON {best[1]}")
    for query, cost in zip(queries, best[3], strict=True):
        query.now = cost
    return best[1], best[2], best[0]
