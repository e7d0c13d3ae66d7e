"""Where statements of others meet PostgreSQL: what may run, the server itself decides.

A read runs in a READ ONLY transaction whose limits are set in the trip that opens it, which also ends the time in which
the mode could be changed. `DECLARE ... CURSOR FOR` admits exactly one SELECT, VALUES, TABLE or WITH that changes no
rows, plans it and runs nothing; then it runs by the protocol that takes one statement, and is rolled back whatever it
did. READ ONLY does not hold back functions that act outside the transaction. Only a superuser's connection can do real
harm that way, and only there can the server be asked for its rewritten tree, views and operators resolved, without the
server's log filling up: every function in it must be one that reads.
"""

from __future__ import annotations

import re

import psycopg

from mcp_batteries.errors import Invalid, Problem, Refused, quote
from mcp_postgres.engine.cells import Column
from mcp_postgres.engine.connections import Session
from mcp_postgres.engine.errors import problem
from mcp_postgres.policy import ReadStatement

__all__ = ["Limits", "admit", "judge", "opening"]

_DECLARE = "DECLARE mcp_gate NO SCROLL CURSOR FOR "
_DEBUG = (
    "; SELECT set_config('debug_print_rewritten', 'on', true), set_config('debug_pretty_print', 'off', true), "
    "set_config('client_min_messages', 'log', true), set_config('log_min_messages', 'panic', true)"
)
_QUIET = (
    "SELECT set_config('debug_print_rewritten', 'off', true), set_config('client_min_messages', 'notice', true), "
    "set_config('log_min_messages', (SELECT reset_val FROM pg_settings WHERE name = 'log_min_messages'), true)"
)
_FUNCTION = re.compile(r":(?:funcid|opfuncid|aggfnoid|winfnoid) (\d+)")
_OPERATOR = re.compile(r":opno (\d+)|:opnos \(o ([\d ]+)\)")
_OTHER_PARAMETERS = re.compile(r'at or near "[:%?]')
_OTHER_CLIENT = re.compile(r'at or near "(?:\\|describe"|desc"|use")', re.IGNORECASE)
_BUILT_IN = 16384
"""The first oid that is not PostgreSQL's own."""

_READING = {
    "random", "random_normal", "clock_timestamp", "timeofday", "gen_random_uuid", "uuidv4", "uuidv7", "pg_sleep",
    "pg_sleep_for", "pg_sleep_until", "array_shuffle", "array_sample", "currval", "lastval", "setseed", "lo_get",
    "pg_database_size", "pg_relation_size", "pg_table_size", "pg_total_relation_size", "pg_indexes_size",
    "pg_tablespace_size", "pg_lock_status", "pg_blocking_pids", "pg_safe_snapshot_blocking_pids", "pg_is_in_recovery",
    "pg_current_wal_lsn", "pg_current_wal_insert_lsn", "pg_current_wal_flush_lsn", "pg_last_wal_receive_lsn",
    "pg_last_wal_replay_lsn", "pg_last_xact_replay_timestamp", "pg_is_wal_replay_paused", "pg_show_all_settings",
    "pg_prepared_xact", "pg_prepared_statement", "pg_cursor", "pg_timezone_names", "pg_timezone_abbrevs",
    "pg_available_extensions", "pg_available_extension_versions", "pg_sequence_last_value", "pg_get_sequence_data",
    "pg_control_system", "pg_control_checkpoint", "pg_control_recovery", "pg_control_init",
    "pg_notification_queue_usage",
    "pg_xact_commit_timestamp", "pg_last_committed_xact", "pg_get_replication_slots", "pg_get_shmem_allocations",
    "pg_get_backend_memory_contexts", "pg_stat_get_progress_info", "pg_get_wait_events", "pg_jit_available",
    "pg_show_replication_origin_status", "pg_partition_tree", "pg_partition_ancestors", "pg_get_publication_tables",
    "pg_get_aios", "pg_get_shmem_allocations_numa", "pg_config", "pg_stat_have_stats", "pg_relation_filenode",
    "pg_relation_filepath", "pg_trigger_depth", "pg_stat_clear_snapshot",
}  # fmt: skip
"""Volatile functions of PostgreSQL's own that only read, or only wait."""

_EXTENSIONS = {
    "pg_stat_statements",
    "pg_buffercache",
    "pgstattuple",
    "pg_freespacemap",
    "pg_visibility",
    "pgcrypto",
    "uuid-ossp",
}
_HARMFUL = {"pg_stat_statements_reset", "pg_truncate_visibility_map", "pg_buffercache_evict"}
_RUNNING = {"tablefunc", "xml2", "dblink"}
"""Extensions whose functions run SQL they are given as text, some of them declared stable."""

_known: dict[tuple[int, int], bool] = {}


class Limits:
    """What a transaction is opened with.

    Args:
        seconds: a statement's limit.
        lock: seconds it may wait for a lock.
    """

    def __init__(self, seconds: float, lock: float) -> None:
        self.seconds, self.lock = seconds, lock


def opening(limits: Limits, *, write: bool = False) -> str:
    """The first trip of a transaction: its mode, its limits, how values are written, and a savepoint."""
    settings = {
        "statement_timeout": int(limits.seconds * 1000), "lock_timeout": int(limits.lock * 1000),
        "idle_in_transaction_session_timeout": int(limits.seconds * 1000) + 60_000,
        "DateStyle": "ISO, YMD", "IntervalStyle": "postgres", "bytea_output": "hex", "extra_float_digits": 1,
        "xmloption": "content",
    }  # fmt: skip
    each = ", ".join(f"set_config('{name}', '{value}', true)" for name, value in settings.items())
    mode = "READ WRITE" if write else "READ ONLY"
    return f"BEGIN TRANSACTION {mode}; SELECT {each}; SAVEPOINT mcp_start"


async def admit(session: Session, statement: ReadStatement, *, judged: bool = True) -> list[Column]:
    """Have the server take `statement` for one query that only reads; the columns it will have.

    Raises:
        Problem: it does not, or a function in it does more than read.
    """
    name = statement.database.name
    try:
        _, shown = await session.together(
            (_DECLARE + statement.sql, statement.parameters), ("FETCH 0 FROM mcp_gate", ())
        )
    except psycopg.Error as error:
        raise _refusal(error, name) from error
    columns = [Column(column.name, column.type_code) for column in shown.description or ()]
    if judged and session.role.judged:
        await judge(session, statement)
    return columns


async def judge(session: Session, statement: ReadStatement, *, sequences: bool = False) -> None:
    """Refuse a statement with functions that do more than read, where that can be known.

    Args:
        sequences: functions that advance a sequence are fine.
    """
    if not session.role.judged:
        return
    session.notices.clear()
    try:
        await session.simple("SAVEPOINT mcp_judge" + _DEBUG)
        session.notices.clear()
        # Parsing analyses and rewrites; nothing is planned or run. A cursor would not do: it keeps views as they are.
        await session.together(("PREPARE mcp_judge AS " + statement.sql, ()), ("DEALLOCATE mcp_judge", ()))
        # PostgreSQL breaks the lines of a tree wherever the 78th column is: between a word and its number too.
        trees = [" ".join(detail.split()) for primary, detail in session.notices if "parse tree" in primary]
        session.notices.clear()
        await session.simple(f"{_QUIET}; ROLLBACK TO SAVEPOINT mcp_judge")
    except psycopg.Error as error:
        raise problem(error, statement.database.name) from error
    if not trees:
        raise Refused("PostgreSQL did not show what `sql` would run.", "The operator can give the server another role.")
    functions = {found for tree in trees for found in _FUNCTION.findall(tree)}
    operators = {oid for tree in trees for found in _OPERATOR.findall(tree) for oid in " ".join(found).split()}
    bad = await _more_than_reading(session, functions - {"0"}, operators - {"0"}, sequences)
    if bad:
        raise Refused(
            f"The role is a superuser, and {quote(bad)} may do more than read.",
            "Leave it out, or mark a function of your own STABLE; with a role that is no superuser it runs.",
        )


async def _more_than_reading(session: Session, functions: set[str], operators: set[str], sequences: bool) -> str | None:
    key = session.role.version
    ask = [oid for oid in functions if int(oid) >= _BUILT_IN or (key, int(oid)) not in _known]
    bad = [oid for oid in functions if _known.get((key, int(oid))) is False]
    own = [oid for oid in operators if int(oid) >= _BUILT_IN]
    if not ask and not own and not bad:
        return None
    wanted = "{" + ",".join([*ask, *bad]) + "}"
    found = await (
        await session.cursor().execute(
            "SELECT p.oid::text, p.proname, p.provolatile::text, n.nspname, coalesce(e.extname, '')"
            " FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace"
            " LEFT JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'"
            " LEFT JOIN pg_extension e ON e.oid = d.refobjid"
            " WHERE p.oid = ANY ($1::oid[]) OR p.oid IN (SELECT oprcode FROM pg_operator WHERE oid = ANY ($2::oid[]))",
            [wanted, "{" + ",".join(own) + "}"],
        )
    ).fetchall()
    refused: str | None = None
    for oid, name, volatility, schema, extension in found:
        built_in = int(oid) < _BUILT_IN
        reads = (
            (volatility in ("i", "s") and extension not in _RUNNING)
            or (built_in and schema == "pg_catalog" and name in _READING)
            or (extension in _EXTENSIONS and name not in _HARMFUL)
        )
        if built_in:
            _known[key, int(oid)] = reads
        if not reads and not (sequences and built_in and name in ("nextval", "setval")):
            refused = f"{name}()"
    return refused


def _refusal(error: psycopg.Error, database: str) -> Problem:
    primary = error.diag.message_primary or ""
    if error.sqlstate == "42601" and "multiple commands" not in primary:
        found = problem(error, database, before=len(_DECLARE))
        if _OTHER_PARAMETERS.search(primary):
            return Invalid(found.what, "Parameters are written $1, $2 and so on.")
        if _OTHER_CLIENT.search(primary):
            return Invalid(found.what, "`list_objects` and `get_table` tell what there is.")
        return Invalid(
            found.what, "This takes one query: SELECT, WITH, VALUES, TABLE, EXPLAIN or SHOW; other tools change things."
        )
    if "data-modifying" in primary or "DECLARE CURSOR" in primary or "SELECT INTO" in primary:
        return Refused(
            f"It would do more than read: {quote(primary)}.", "`write_rows` changes rows, where it is offered."
        )
    return problem(error, database, before=len(_DECLARE))
