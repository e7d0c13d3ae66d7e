"""Finds what is wrong with a database, area by area: each query returns lines worth a person's attention, or nothing.

Thresholds are those of a DBA, and are beside what they judge.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import psycopg

from mcp_postgres.engine.audit.visible_schema import SESSION_QUERY
from mcp_postgres.engine.catalog.locked_relations import IS_LOCKED, LOCKED_RELATIONS
from mcp_postgres.engine.connection.session import Session
from mcp_postgres.models import Report

__all__ = ["CHECKS_BY_AREA", "run_checks"]

_NOW, _SOON, _LATER = range(3)
_WHEN = ("To do now:", "To do soon:", "To do when there is time:")
_USER = "n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'"

_INDEX_SIZE = (
    f"CASE WHEN {IS_LOCKED.format(oid='{index}.indrelid')} THEN 'size unknown: its table is locked'"
    " ELSE pg_size_pretty(pg_relation_size({index}.indexrelid)) END"
)

# Indexes with whether they may go if another does the same: a table's identity in replication, a rule that excludes and
# the part of a partitioned index can't be replaced by one that is merely there. Nulls are alike since PostgreSQL 15.
_INDEXES_WITH_DUTIES = """index_duties AS (SELECT i.*,
    coalesce((to_jsonb(i) ->> 'indnullsnotdistinct')::boolean, false) AS has_nulls_alike,
    EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.indexrelid AND k.contype IN ('p', 'u')) AS is_constraint,
    NOT (i.indisprimary OR i.indisreplident OR i.indisexclusion
        OR EXISTS (SELECT FROM pg_inherits h WHERE h.inhrelid = i.indexrelid)) AS may_go
    FROM pg_index i)"""
# One index keeps every rule that the other keeps.
_REPLACES = """(NOT {other}.indisunique OR {one}.indisunique AND {one}.indimmediate >= {other}.indimmediate
            AND {one}.has_nulls_alike >= {other}.has_nulls_alike)"""
# Read forward or backward, one index has the order of the other: a column's options flip both, 1 and 2, when read back.
_SORTS_ALIKE = """(SELECT count(DISTINCT x # y) = 1 AND bool_and(x # y IN (0, 3)) FROM unnest(
            string_to_array(a.indoption::text, ' ')::integer[],
            (string_to_array(b.indoption::text, ' ')::integer[])[1:a.indnkeyatts]) AS options (x, y))"""

_INDEXES = [
    # A failed CREATE INDEX CONCURRENTLY leaves one behind, which costs writes and serves nobody.
    (
        _SOON,
        "DROP INDEX CONCURRENTLY it, or REINDEX INDEX CONCURRENTLY",
        f"""SELECT format('invalid index %s on %s', i.indexrelid::regclass, i.indrelid::regclass)
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE NOT i.indisvalid AND c.relkind = 'i' AND {_USER}
    AND NOT EXISTS (SELECT 1 FROM pg_stat_progress_create_index p WHERE p.index_relid = i.indexrelid)""",
    ),
    (
        _LATER,
        "DROP INDEX CONCURRENTLY it: the other does the same",
        f"""WITH {LOCKED_RELATIONS}, {_INDEXES_WITH_DUTIES}
    SELECT format('duplicate index %s (%s) of %s on %s', a.indexrelid::regclass,
        {_INDEX_SIZE.format(index="a")}, b.indexrelid::regclass, a.indrelid::regclass)
    FROM index_duties a JOIN index_duties b ON a.indrelid = b.indrelid AND a.indexrelid <> b.indexrelid
        AND a.indkey = b.indkey AND a.indclass = b.indclass AND a.indcollation = b.indcollation AND a.indoption =
            b.indoption
        AND CASE WHEN num_nulls(a.indexprs, a.indpred, b.indexprs, b.indpred) = 4 THEN true
            WHEN {IS_LOCKED.format(oid="a.indrelid")} THEN false
            ELSE (pg_get_expr(a.indexprs, a.indrelid), pg_get_expr(a.indpred, a.indrelid))
                IS NOT DISTINCT FROM (pg_get_expr(b.indexprs, b.indrelid), pg_get_expr(b.indpred, b.indrelid)) END
    JOIN pg_class c ON c.oid = a.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_class d ON d.oid = b.indexrelid AND d.relam = c.relam
    WHERE {_USER} AND a.indisvalid AND b.indisvalid AND a.may_go AND {_REPLACES.format(one="b", other="a")}
        AND (NOT (b.may_go AND {_REPLACES.format(one="a", other="b")})
            OR (a.is_constraint, -a.indexrelid::bigint) < (b.is_constraint, -b.indexrelid::bigint))""",
    ),
    (
        _LATER,
        "DROP INDEX CONCURRENTLY it, unless it is needed for being small",
        f"""WITH {LOCKED_RELATIONS}, {_INDEXES_WITH_DUTIES}
    SELECT format('index %s (%s) on %s is covered by %s, which begins with the same columns',
        a.indexrelid::regclass,
        {_INDEX_SIZE.format(index="a")}, a.indrelid::regclass, b.indexrelid::regclass)
    FROM index_duties a JOIN pg_index b ON a.indrelid = b.indrelid AND b.indnkeyatts > a.indnkeyatts
        AND (string_to_array(b.indkey::text, ' '))[1:a.indnkeyatts] = string_to_array(a.indkey::text, ' ')
        AND (string_to_array(b.indclass::text, ' '))[1:a.indnkeyatts] = string_to_array(a.indclass::text, ' ')
        AND (string_to_array(b.indcollation::text, ' '))[1:a.indnkeyatts] = string_to_array(a.indcollation::text, ' ')
        AND {_SORTS_ALIKE}
    JOIN pg_class c ON c.oid = a.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_class d ON d.oid = b.indexrelid AND d.relam = c.relam JOIN pg_am m ON m.oid = c.relam AND m.amname = 'btree'
    WHERE {_USER} AND NOT a.indisunique AND a.may_go AND a.indexprs IS NULL AND b.indexprs IS NULL AND a.indpred IS NULL
        AND b.indpred IS NULL AND a.indisvalid AND b.indisvalid AND NOT a.indkey::text ~ '(^| )0( |$)'
    ORDER BY c.relpages DESC, 1""",
    ),
    (
        _LATER,
        "DROP INDEX CONCURRENTLY it, if it isn't used on a standby either",
        f"""WITH {LOCKED_RELATIONS}
    SELECT format('index %s (%s) on %s was never used on this %s since %s', s.indexrelid::regclass,
        {_INDEX_SIZE.format(index="i")}, s.relid::regclass,
        CASE WHEN pg_is_in_recovery() THEN 'standby' ELSE 'primary' END,
        coalesce((SELECT stats_reset FROM pg_stat_database WHERE datname = current_database())::date::text,
                 'statistics began'))
    FROM pg_stat_user_indexes s JOIN pg_index i ON i.indexrelid = s.indexrelid
    JOIN pg_class c ON c.oid = s.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE {_USER} AND s.idx_scan = 0 AND NOT i.indisunique AND i.indisvalid
        AND CASE WHEN {IS_LOCKED.format(oid="i.indrelid")} THEN c.relpages * 8192::bigint
            ELSE pg_relation_size(s.indexrelid) END > 1000000
        AND NOT EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conindid = s.indexrelid)
    ORDER BY c.relpages DESC, 1""",
    ),
    (
        _SOON,
        "CREATE INDEX CONCURRENTLY on its columns",
        f"""SELECT format('foreign key %s of %s (about %s rows) has no index: deletes in %s read it whole', k.conname,
        k.conrelid::regclass, c.reltuples::bigint, k.confrelid::regclass)
    FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE k.contype = 'f' AND {_USER} AND c.reltuples > 10000 AND NOT EXISTS (
        SELECT 1 FROM pg_index i WHERE i.indrelid = k.conrelid AND i.indisvalid AND i.indpred IS NULL
        AND (string_to_array(i.indkey::text, ' ')::int2[])[1:cardinality(k.conkey)] @> k.conkey)""",
    ),
]
_VACUUM = [
    (
        _SOON,
        "VACUUM (ANALYZE) it, and lower autovacuum_vacuum_scale_factor for it",
        """SELECT format('%s: %s dead rows beside %s live ones, last vacuumed %s', s.relid::regclass, s.n_dead_tup,
        s.n_live_tup,
        coalesce(greatest(s.last_vacuum, s.last_autovacuum)::timestamp(0)::text, 'never'))
    FROM pg_stat_user_tables s WHERE s.n_dead_tup > 10000 AND s.n_dead_tup > 0.2 * (s.n_live_tup + s.n_dead_tup)""",
    ),
    (
        _SOON,
        "ANALYZE it: plans go by statistics that are old",
        """SELECT format('%s: %s rows changed since its last ANALYZE (%s)', s.relid::regclass, s.n_mod_since_analyze,
        coalesce(greatest(s.last_analyze, s.last_autoanalyze)::timestamp(0)::text, 'never'))
    FROM pg_stat_user_tables s WHERE s.n_mod_since_analyze > 10000 AND s.n_mod_since_analyze > 0.2 * s.n_live_tup""",
    ),
    (
        _SOON,
        "ALTER TABLE it RESET (autovacuum_enabled)",
        f"""SELECT format('%s: autovacuum is switched off for it', c.oid::regclass) FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE {_USER} AND EXISTS (SELECT FROM pg_options_to_table(c.reloptions) o
        WHERE o.option_name = 'autovacuum_enabled' AND NOT o.option_value::boolean)""",
    ),
    (
        _NOW,
        "ALTER SYSTEM SET autovacuum = on, and pg_reload_conf()",
        "SELECT 'autovacuum is switched off for the whole server' WHERE current_setting('autovacuum') = 'off'",
    ),
]
_BLOAT = [
    # Pages there are, against pages its rows would need by the average width that ANALYZE measured.
    (
        _LATER,
        "VACUUM FULL it in a quiet hour, or pg_repack",
        f"""SELECT format('%s: about %s of %s is empty space', x.oid::regclass,
        pg_size_pretty(x.there - x.needed), pg_size_pretty(x.there)) FROM (
        SELECT c.oid, c.relpages * 8192.0 AS there, ceil((c.reltuples * (28 + sum((1 - s.null_frac) * s.avg_width))
            / (8168 * coalesce((SELECT option_value::numeric FROM pg_options_to_table(c.reloptions)
                                WHERE option_name = 'fillfactor'), 100) / 100)))::numeric * 8192 AS needed
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        JOIN pg_stats s ON s.schemaname = n.nspname AND s.tablename = c.relname AND NOT s.inherited
        WHERE c.relkind IN ('r', 'm') AND {_USER} AND c.reltuples >= 0 GROUP BY c.oid) x
    WHERE x.there - x.needed > 5000000 AND x.there > 2 * x.needed""",
    )
]
_WRAPAROUND = [
    (
        _NOW,
        "VACUUM (FREEZE) its oldest tables; end old transactions and slots first",
        """SELECT format('database %s: it is %s transactions old, autovacuum presses at %s, it ends at 2,000,000,000',
        datname,
        age(datfrozenxid), current_setting('autovacuum_freeze_max_age'))
    FROM pg_database WHERE age(datfrozenxid) > current_setting('autovacuum_freeze_max_age')::bigint * 1.2
    ORDER BY datname <> current_database(), age(datfrozenxid) DESC""",
    ),
    (
        _NOW,
        "VACUUM (FREEZE) it; end old transactions and slots first",
        """SELECT format('%s: %s transactions old', c.oid::regclass, age(c.relfrozenxid)) FROM pg_class c
    WHERE c.relkind IN ('r', 'm', 't') AND age(c.relfrozenxid) > current_setting('autovacuum_freeze_max_age')::bigint
        * 1.2
    ORDER BY age(c.relfrozenxid) DESC LIMIT 5""",
    ),
]
_BUFFERS = [
    (
        _LATER,
        "raise shared_buffers",
        """SELECT format('%s of table blocks came from memory (%s hits, %s reads)',
        round(100.0 * sum(heap_blks_hit) / sum(heap_blks_hit + heap_blks_read), 1) || ' %', sum(heap_blks_hit),
            sum(heap_blks_read))
    FROM pg_statio_user_tables HAVING sum(heap_blks_read) > 100000
        AND sum(heap_blks_hit) < 0.9 * sum(heap_blks_hit + heap_blks_read)""",
    ),
    (
        _LATER,
        "raise shared_buffers",
        """SELECT format('%s of index blocks came from memory',
        round(100.0 * sum(idx_blks_hit) / sum(idx_blks_hit + idx_blks_read), 1) || ' %')
    FROM pg_statio_user_indexes HAVING sum(idx_blks_read) > 100000
        AND sum(idx_blks_hit) < 0.95 * sum(idx_blks_hit + idx_blks_read)""",
    ),
    (
        _LATER,
        "raise work_mem for the role that sorts, or add an index",
        """SELECT format('%s of temporary files since %s: sorts and hashes do not fit work_mem',
        pg_size_pretty(temp_bytes),
        coalesce(stats_reset::date::text, 'statistics began'))
    FROM pg_stat_database WHERE datname = current_database() AND temp_bytes > 1000000000""",
    ),
]
_CONNECTIONS = [
    (
        _NOW,
        "close idle ones, put a pooler in front, or raise max_connections",
        """SELECT format('%s of %s connections are taken', count(*), current_setting('max_connections')) FROM
        pg_stat_activity
    WHERE backend_type = 'client backend' HAVING count(*) > 0.8 * current_setting('max_connections')::int""",
    ),
    (
        _NOW,
        "pg_terminate_backend(pid), and set idle_in_transaction_session_timeout",
        """SELECT format('session %s (%s, %s) is idle in a transaction for %s: it holds back vacuum and locks', pid,
        usename,
        application_name, date_trunc('second', now() - state_change)) FROM pg_stat_activity
    WHERE state LIKE 'idle in transaction%' AND now() - state_change > interval '1 minute' AND pid <>
        pg_backend_pid()""",
    ),
    (
        _SOON,
        "see with `explain_query` what takes so long, or pg_cancel_backend(pid)",
        """SELECT format('session %s (%s, %s) runs a statement for %s', pid, usename, application_name,
        date_trunc('second', now() - query_start)) FROM pg_stat_activity
    WHERE state = 'active' AND backend_type = 'client backend' AND now() - query_start > interval '5 minutes'""",
    ),
]
_LOCKS = [
    (
        _NOW,
        "end or cancel the one that blocks, if nobody waits for its result",
        f"""SELECT format('session %s (%s) waits %s for session %s (%s, %s): %s', w.pid, w.usename,
        date_trunc('second', now() - w.query_start), b.pid, b.usename, b.state, left(regexp_replace(w.said, '\\s+',
            ' ', 'g'), 100))
    FROM (SELECT *, {SESSION_QUERY} AS said FROM pg_stat_activity) w
    CROSS JOIN LATERAL unnest(pg_blocking_pids(w.pid)) AS u (pid)
    JOIN pg_stat_activity b ON b.pid = u.pid WHERE w.wait_event_type = 'Lock'""",
    ),
    (
        _NOW,
        "COMMIT PREPARED or ROLLBACK PREPARED it",
        """SELECT format('prepared transaction %s of %s has held its locks since %s', gid, owner,
        prepared::timestamp(0))
    FROM pg_prepared_xacts WHERE now() - prepared > interval '1 minute'""",
    ),
]
# A standby passes on what it has received: to further standbys, through slots of its own.
_HERE = "CASE WHEN pg_is_in_recovery() THEN pg_last_wal_receive_lsn() ELSE pg_current_wal_lsn() END"
_REPLICATION = [
    (
        _NOW,
        "start its consumer, or pg_drop_replication_slot(): the disk fills up",
        f"""SELECT format('slot %s is inactive and keeps %s of WAL', slot_name,
        pg_size_pretty(pg_wal_lsn_diff({_HERE}, restart_lsn))) FROM pg_replication_slots
    WHERE NOT active AND restart_lsn IS NOT NULL""",
    ),
    (
        _NOW,
        "drop the slot and make the standby anew",
        """SELECT format('slot %s has lost WAL it needs: %s', slot_name, wal_status) FROM pg_replication_slots
    WHERE wal_status IN ('unreserved', 'lost')""",
    ),
    (
        _SOON,
        "look at the standby's disk and network, and at long queries on it",
        f"""SELECT format('standby %s (%s) is behind by %s, %s of that is there but not replayed', application_name,
        client_addr, pg_size_pretty(pg_wal_lsn_diff({_HERE}, replay_lsn)),
        pg_size_pretty(pg_wal_lsn_diff(write_lsn, replay_lsn)))
    FROM pg_stat_replication WHERE pg_wal_lsn_diff({_HERE}, replay_lsn) > 100000000""",
    ),
    (
        _SOON,
        "look at long queries on it, and at its disk",
        """SELECT format('this standby is behind by %s', date_trunc('second', now() - pg_last_xact_replay_timestamp()))
    WHERE pg_is_in_recovery() AND pg_last_wal_receive_lsn() IS DISTINCT FROM pg_last_wal_replay_lsn()
        AND now() - pg_last_xact_replay_timestamp() > interval '1 minute'""",
    ),
    (
        _SOON,
        "pg_wal_replay_resume()",
        """SELECT format('replay is paused on this standby, %s wait',
        pg_size_pretty(pg_wal_lsn_diff(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())))
    WHERE CASE WHEN pg_is_in_recovery() THEN pg_is_wal_replay_paused() END""",
    ),
    (
        _NOW,
        "mend primary_conninfo, or the network",
        """SELECT 'this standby receives nothing: no connection to its primary, and no `restore_command`'
    WHERE pg_is_in_recovery() AND NOT EXISTS (SELECT FROM pg_stat_wal_receiver)
        AND current_setting('restore_command', true) = ''""",
    ),
]
# The largest number that fits into all columns which the sequence `c` fills: its own, and those with it as a default.
_COLUMN_MAXIMUM = """(SELECT min(CASE a.atttypid WHEN 'int2'::regtype THEN 32767 WHEN 'int4'::regtype THEN 2147483647
                ELSE 9223372036854775807 END) FROM pg_attribute a
                WHERE (a.attrelid, a.attnum) IN (
                    SELECT d.refobjid, d.refobjsubid FROM pg_depend d WHERE d.classid = 'pg_class'::regclass
                        AND d.objid = c.oid AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
                    UNION ALL SELECT f.adrelid, f.adnum FROM pg_depend d JOIN pg_attrdef f ON f.oid = d.objid
                        WHERE d.classid = 'pg_attrdef'::regclass AND d.refclassid = 'pg_class'::regclass
                        AND d.refobjid = c.oid))"""
_SEQUENCES = [
    (
        _NOW,
        "ALTER the column and the sequence to bigint before it ends",
        f"""WITH {LOCKED_RELATIONS}
    SELECT format('sequence %s is at %s of %s (%s %%)', x.oid::regclass, x.last, x.most, round(100.0 * x.used))
    FROM (SELECT y.*, (y.last - y.least) / (y.most - y.least) AS used
        FROM (SELECT c.oid, (CASE WHEN c.relkind = 'S' AND NOT {IS_LOCKED.format(oid="c.oid")} THEN
            pg_sequence_last_value(c.oid) END)::numeric AS last,
            (CASE WHEN q.seqincrement > 0 THEN q.seqmin ELSE q.seqmax END)::numeric AS least,
            (CASE WHEN q.seqincrement > 0 THEN least(q.seqmax, {_COLUMN_MAXIMUM})
                ELSE greatest(q.seqmin, -{_COLUMN_MAXIMUM} - 1) END)::numeric AS most
            FROM pg_sequence q JOIN pg_class c ON c.oid = q.seqrelid JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE {_USER} AND NOT q.seqcycle
                AND CASE WHEN c.relkind = 'S' THEN has_sequence_privilege(c.oid, 'SELECT, USAGE') END) y
        WHERE y.most <> y.least) x
    WHERE x.used > 0.75""",
    )
]
_CONSTRAINTS = [
    (
        _LATER,
        "ALTER TABLE it VALIDATE CONSTRAINT",
        """SELECT format('constraint %s of %s is not validated: rows from before may break it', conname,
        conrelid::regclass)
    FROM pg_constraint WHERE NOT convalidated AND conrelid <> 0""",
    ),
]

_SAFETY = [
    (
        _NOW,
        "ALTER SYSTEM SET it to on, and pg_reload_conf()",
        """SELECT format('%s is off: a crash of the machine can %s', name, CASE name WHEN 'fsync' THEN
        'lose the whole cluster' ELSE 'leave pages that are half old and half new' END)
        FROM pg_settings WHERE name IN ('fsync', 'full_page_writes') AND setting = 'off'""",
    ),
    (
        _LATER,
        "leave it if that is meant; else ALTER SYSTEM SET synchronous_commit = on",
        """SELECT 'synchronous_commit is off: a crash loses the last commits' FROM pg_settings
        WHERE name = 'synchronous_commit' AND reset_val = 'off'""",
    ),
    (
        _NOW,
        "restore what is damaged from a backup, and look at the disk",
        """SELECT format('%s damaged pages were read in %s, the last %s', checksum_failures, datname,
        checksum_last_failure::timestamp(0)) FROM pg_stat_database WHERE checksum_failures > 0""",
    ),
    (
        _NOW,
        "mend archive_command: WAL is kept until it works",
        """SELECT format('archiving fails since %s: %s', last_failed_time::timestamp(0), last_failed_wal)
        FROM pg_stat_archiver WHERE last_failed_time > coalesce(last_archived_time, '-infinity')""",
    ),
    (
        _SOON,
        "restart the server in a quiet hour",
        """SELECT format('%s was changed and needs a restart', name)
        FROM pg_settings WHERE pending_restart""",
    ),
]

# How soon something is to be done, what, and the query that finds where.
_Check = tuple[int, str, str]
CHECKS_BY_AREA: dict[str, Sequence[_Check]] = {
    "safety": _SAFETY,
    "indexes": _INDEXES, "vacuum": _VACUUM, "bloat": _BLOAT, "wraparound": _WRAPAROUND, "buffers": _BUFFERS,
    "connections": _CONNECTIONS, "locks": _LOCKS, "replication": _REPLICATION, "sequences": _SEQUENCES,
    "constraints": _CONSTRAINTS,
}  # fmt: skip
_MONITORED_AREAS = {"connections", "locks", "replication"}
_MAX_LINES = 10


class _Finding(NamedTuple):
    """Something that is to be done.

    Attributes:
        urgency: the number of a title in `_WHEN`.
    """

    urgency: int
    lines: list[str]


async def run_checks(session: Session, areas: Sequence[str] = ()) -> Report:
    """Return what is to be done, the most urgent first, and the areas where nothing is.

    Args:
        areas: all unless some are named.
    """
    areas = areas or tuple(CHECKS_BY_AREA)
    findings: list[_Finding] = []
    healthy: list[str] = []
    for area in areas:
        area_findings = await _check_area(session, area)
        findings += area_findings
        if not area_findings:
            healthy.append(area)
    sections = _group_by_urgency(findings)
    if healthy:
        sections.append((f"Nothing found in: {', '.join(healthy)}.", []))
    notes: list[str] = []
    if not _MONITORED_AREAS.isdisjoint(areas) and not session.role.sees_other_roles:
        notes.append("other roles' sessions show no details: the role lacks `pg_monitor`")
    return Report(sections, notes)


async def _check_area(session: Session, area: str) -> list[_Finding]:
    """Return what is to be done in one area."""
    findings: list[_Finding] = []
    for urgency, advice, sql in CHECKS_BY_AREA[area]:
        await session.run("SAVEPOINT mcp_area")
        try:
            lines = [f"- {area}: {line}" for line in await session.fetch_column(sql)]
        except psycopg.Error as error:
            # A right that is missing hides one look, not all.
            await session.run("ROLLBACK TO SAVEPOINT mcp_area")
            message = f"- {area}: could not be looked at: {error.diag.message_primary}"
            findings.append(_Finding(_LATER, [message]))
            continue
        if lines:
            findings.append(_Finding(urgency, [*_shorten(lines), f"  do: {advice}"]))
    return findings


def _shorten(lines: list[str]) -> list[str]:
    """Return the first lines, and how many more there are."""
    if len(lines) <= _MAX_LINES:
        return lines
    return [*lines[:_MAX_LINES], f"- … {len(lines) - _MAX_LINES} more"]


def _group_by_urgency(findings: Sequence[_Finding]) -> list[tuple[str, Sequence[str]]]:
    """Return the lines of all findings, the most urgent first."""
    sections: list[tuple[str, Sequence[str]]] = []
    for urgency, title in enumerate(_WHEN):
        lines: list[str] = []
        for finding in findings:
            if finding.urgency == urgency:
                lines += finding.lines
        if lines:
            sections.append((title, lines))
    return sections
