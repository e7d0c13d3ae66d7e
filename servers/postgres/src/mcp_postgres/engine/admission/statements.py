"""Admits callers' statements to PostgreSQL; PostgreSQL itself decides what may run.

A read runs in a READ ONLY transaction whose limits are set in the trip that opens it, which also ends the time in which
the mode could be changed. `DECLARE ... CURSOR FOR` admits exactly one SELECT, VALUES, TABLE or WITH that changes no
rows, plans it and runs nothing; then it runs by the protocol that takes one statement, and is rolled back whatever it
did. READ ONLY does not hold back functions that act outside the transaction. Where the role could do harm by them, the
server is asked for its rewritten tree first, views and operators resolved, which runs nothing: every function in it
must be one that reads, and everything it touches must be free of other roles' code (`audit`). That takes the right
to keep the server's log quiet meanwhile; a role that could do harm and lacks it is not served.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

import psycopg

from mcp_batteries.errors import Invalid, Problem, Refused, quote
from mcp_postgres.engine.audit.function_audit import SNAPSHOT
from mcp_postgres.engine.audit.procedures import Cause, Harm
from mcp_postgres.engine.catalog.syntax_suggestions import suggest_syntax
from mcp_postgres.engine.connection.errors import to_problem
from mcp_postgres.engine.connection.pipeline import Answer, Statement
from mcp_postgres.engine.connection.result_values import Column
from mcp_postgres.engine.connection.role import Role
from mcp_postgres.engine.connection.session import SET_SEARCH_PATH, Opening, Session, act_as_role, keep_settings_apart
from mcp_postgres.policy import ReadStatement

__all__ = [
    "TransactionLimits",
    "admit",
    "gate_statements",
    "is_data_modifying",
    "judge",
    "result_columns",
    "transaction_opening",
]

CREATE_READER = "`mcp-postgres --create-reader URL` makes one"
_DECLARE = "DECLARE mcp_gate NO SCROLL CURSOR FOR "
_PREPARE = "PREPARE mcp_gate AS "
_SHOW_TREES = "SELECT set_config('search_path', $1, true), " + ", ".join(
    f"set_config('{name}', '{value}', true)"
    for name, value in (
        ("debug_pretty_print", "off"),
        ("client_min_messages", "log"),
        ("log_min_messages", "panic"),
        ("debug_print_rewritten", "on"),
    )
)
# How the tree of a query begins; PREPARE itself has one too, which is not analysed.
_QUERY_TREE = re.compile(r"(?:\( ?)?\{QUERY [^{]*:utilityStmt <>")
_SHOW_PARSE_TREE = ", set_config('debug_print_parse', 'on', true)"
# What to do in place of a function of PostgreSQL's own that is refused: how its name begins, and the way on.
_INSTEAD = (
    ("set_config", "Write `SET app.user = '7';` before the statement, in the same call."),
    ("query_to_xml", "`list_objects` with `kind` counts has the exact number of rows of each table."),
    (("table_to_xml", "schema_to_xml", "database_to_xml", "cursor_to_xml"), "Select the rows themselves."),
    (("nextval", "setval"), "`write_rows` does that, where it is offered; SELECT last_value FROM a sequence reads it."),
    (("pg_advisory", "pg_try_advisory"), "Leave it out: no lock outlives a call."),
    (("pg_terminate_backend", "pg_cancel_backend"), "No tool ends sessions: give the user the pid."),
    (("pg_read", "pg_ls_", "pg_stat_file", "lo_"), "No tool reaches files of the database's machine or large objects."),
)
_READING_VERBS = ("SELECT", "WITH", "VALUES", "TABLE", "EXPLAIN", "SHOW")
_WRITING_VERBS = ("INSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE")
_DEFINING_VERBS = ("CREATE", "ALTER", "DROP", "COMMENT", "GRANT", "REVOKE", "REINDEX", "VACUUM", "ANALYZE")
_FIRST_WORD = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/)*(\w+)", re.DOTALL)
_OTHER_CLIENT = re.compile(r'at or near "(?:\\|describe"|desc"|use")', re.IGNORECASE)


class TransactionLimits:
    """What a transaction is opened with.

    Args:
        statement_seconds: a statement's limit.
        lock_seconds: seconds it may wait for a lock.
    """

    def __init__(self, statement_seconds: float, lock_seconds: float) -> None:
        self.statement_seconds = statement_seconds
        self.lock_seconds = lock_seconds


def transaction_opening(limits: TransactionLimits, *, write: bool = False, same_snapshot: bool = False) -> Opening:
    """Return the first trip of a transaction: its mode, its limits, how values and texts are written, and a savepoint.

    Statements of our own find PostgreSQL's names only, where another role's function of a better fit could do harm.

    Args:
        same_snapshot: all statements are to see the same moment. Not where the catalog is read for other roles' code:
            PostgreSQL runs what there is now, so what there was does not help.
    """
    milliseconds = int(limits.statement_seconds * 1000)
    settings = {
        "statement_timeout": milliseconds, "lock_timeout": int(limits.lock_seconds * 1000),
        "idle_in_transaction_session_timeout": milliseconds + 60_000,
        "DateStyle": "ISO, YMD", "IntervalStyle": "postgres", "bytea_output": "hex", "extra_float_digits": 1,
        "xmloption": "content", "standard_conforming_strings": "on", "array_nulls": "on",
        "quote_all_identifiers": "off", "exit_on_error": "off",
        # Else a large table is read from where the last scan of it stopped, and pages that are read again lack rows.
        "synchronize_seqscans": "off",
    }  # fmt: skip
    mode = "READ WRITE" if write else "READ ONLY"

    def first(role: Role, caller: str | None) -> Sequence[str]:
        own_settings: dict[str, object] = {**settings}
        if role.is_judged:
            own_settings["search_path"] = "pg_catalog"
        calls = [f"pg_catalog.set_config('{name}', '{value}', true)" for name, value in own_settings.items()]
        level = ""
        if same_snapshot and not role.harmful and caller is None:
            level = "ISOLATION LEVEL REPEATABLE READ, "
        statements = [f"BEGIN TRANSACTION {level}{mode}", f"SELECT {', '.join(calls)}"]
        if caller is not None:
            statements.append(f"SET LOCAL ROLE {caller}")
        return [*statements, "SAVEPOINT mcp_start"]

    return first


def gate_statements(statement: ReadStatement) -> tuple[Statement, Statement]:
    """Return what PostgreSQL runs of `statement` only if it is one query that reads; the second shows its columns."""
    return (_DECLARE + statement.sql, statement.parameters), ("FETCH 0 FROM mcp_gate", ())


def is_data_modifying(error: psycopg.Error) -> bool:
    """Return whether a cursor was refused because a WITH of its query changes rows."""
    return "data-modifying" in (error.diag.message_primary or "")


async def admit(session: Session, statement: ReadStatement) -> list[Column]:
    """Have the server take `statement` for one query that only reads; the columns it will have.

    Raises:
        Problem: it does not, or what it would run does more than read.
    """
    name = statement.database.name
    prefix = _PREPARE
    try:
        masked = await judge(session, statement)
        keep_settings_apart(session, statement.sql)
        await act_as_role(session)
        prefix = _DECLARE
        _, description = await session.run_pipeline(*gate_statements(statement))
    except psycopg.Error as error:
        raise _explain_refusal(error, name, len(prefix), statement.sql) from error
    return result_columns(description, masked)


def result_columns(answer: Answer, masked: Collection[int] = ()) -> list[Column]:
    """Return the columns of a result, of which some are masked."""
    return [Column(name, kind, number in masked) for number, (name, kind) in enumerate(answer.columns)]


async def judge(
    session: Session,
    statement: ReadStatement,
    *,
    allow_sequences: bool = False,
    only_planned: bool = False,
    search_path: str = "",
) -> frozenset[int]:
    """Refuse a statement that could do more than read, where that can be known; nothing is planned or run.

    What it gives are the outputs, counted from 0, that have to be masked.

    Afterwards names mean what the role's own `search_path` makes of them; `use_catalog_path` takes it back.

    Args:
        allow_sequences: functions that advance a sequence are fine.
        only_planned: it will be planned only, which runs no volatile function.
        search_path: where its names are looked up, instead of the role's own `search_path`.

    Raises:
        Refused: it could, or it touches what is not served.
        psycopg.Error: PostgreSQL can't prepare it; positions count from the beginning of `PREPARE mcp_gate AS `.
    """
    if not session.role.is_judged:
        return frozenset()
    audit = session.audit
    search_path = search_path or session.role.search_path
    snapshot, _ = await session.run_pipeline((SNAPSHOT, ()), ("SAVEPOINT mcp_judge", ()))
    await audit.refresh(session, snapshot)
    harm = audit.harm_of_literals(statement.sql)
    if harm is not None:
        raise _refuse_harm(session.role, harm)
    trees = await _print_trees(session, statement.sql, search_path)
    if not trees.rewritten:
        fix = suggest_syntax(statement.sql) or "The operator can give the server another role."
        raise Refused("PostgreSQL did not show what `sql` would run.", fix)
    masked = frozenset[int]()
    if audit.visible.schema:
        masked = audit.visible.masked_outputs(trees.parsed)
        audit.visible.check_changes(trees.rewritten)
    harm = audit.harm_of_trees(trees.rewritten, sequences=allow_sequences, planned=only_planned)
    if harm is not None:
        raise _refuse_harm(session.role, harm)
    return masked


class _Trees(NamedTuple):
    """A statement as PostgreSQL understands it: its queries as they are written, and with rules and views resolved."""

    parsed: list[str]
    rewritten: list[str]


async def _print_trees(session: Session, sql: str, search_path: str) -> _Trees:
    """Have PostgreSQL print the trees of a statement, and know the catalog as it was then.

    Parsing analyses and rewrites. A cursor would not do: it keeps views as they are, and plans.
    """
    session.notices.clear()
    session.keeps_notices = True
    try:
        *_, snapshot, _ = await session.run_pipeline(
            *_set_judged_role(session, search_path), (_PREPARE + sql, ()), ("DEALLOCATE mcp_gate", ()),
            ("ROLLBACK TO SAVEPOINT mcp_judge", ()), (SNAPSHOT, ()), (SET_SEARCH_PATH, (search_path,)),
        )  # fmt: skip
    finally:
        session.keeps_notices = False
    trees = _Trees([], [])
    for primary, detail in session.notices:
        # PostgreSQL breaks the lines of a tree wherever the 78th column is: between a word and its number too.
        tree = " ".join(detail.split())
        if "parse tree" not in primary or not _QUERY_TREE.match(tree):
            continue
        if primary.startswith("rewritten"):
            trees.rewritten.append(tree)
        elif primary.startswith("parse"):
            trees.parsed.append(tree)
    session.notices.clear()
    await session.audit.refresh(session, snapshot)
    return trees


def _set_judged_role(session: Session, search_path: str) -> list[Statement]:
    """Return what has trees printed, and names, policies and what they call be those of the role that will run it."""
    statements: list[Statement] = []
    if session.caller_role:
        statements.append(("SET LOCAL ROLE NONE", ()))
    settings = _SHOW_TREES
    if session.audit.visible.schema:
        settings += _SHOW_PARSE_TREE
    statements.append((settings, (search_path,)))
    role = session.acting_role or session.caller_role
    if role:
        statements.append((f"SET LOCAL ROLE {role}", ()))
    return statements


def _refuse_harm(role: Role, harm: Harm) -> Refused:
    match harm.cause:
        case Cause.STRANGER:
            return Refused(
                f"The role {role.explain_judging()}, and this could run code of another role as it: "
                f"{quote(harm.description, 300)}.",
                f"The operator can give the server a role that can only read ({CREATE_READER}), or vouch for everybody "
                "who may create objects there by `--trust-database`.",
            )
        case Cause.EFFECT:
            refusal = f"The role {role.explain_judging()}, and {quote(harm.description)} may do more than read."
            if not harm.vouch:
                return Refused(refusal, _suggest_instead(harm.description))
            return Refused(
                refusal,
                "Leave it out. The operator can give the server a role that can only read "
                f"({CREATE_READER}), vouch for it by `--trust-functions {harm.vouch}`, or "
                "mark a function of their own STABLE.",
            )
        case Cause.INPUT:
            return Refused(
                f"The role {role.explain_judging()}, and {quote(harm.description)} may run what it is given: "
                f"{harm.reason}.",
                f"Leave it out. The operator can give the server a role that can only read ({CREATE_READER}), or vouch "
                f"for it by `--trust-functions {harm.vouch}`.",
            )


def _suggest_instead(function: str) -> str:
    """Return the way on from a function of PostgreSQL's own, which is the same whoever connects."""
    for beginnings, advice in _INSTEAD:
        if function.startswith(beginnings):
            return advice
    return "Leave it out: no tool does that, and the user can with another client."


def _explain_refusal(error: psycopg.Error, database: str, prefix_length: int, sql: str) -> Problem:
    problem = to_problem(error, database, prefix_length=prefix_length)
    primary = error.diag.message_primary or ""
    if error.sqlstate == "42601":
        return _explain_syntax_error(problem, primary, sql)
    if is_data_modifying(error):
        return Refused(
            f"It would do more than read: {quote(primary)}.", "`write_rows` changes rows, where it is offered."
        )
    return problem


def _explain_syntax_error(problem: Problem, primary: str, sql: str) -> Problem:
    """Return the problem with what else takes a statement that is no query."""
    if _OTHER_CLIENT.search(primary):
        return Invalid(problem.failure, "`list_objects` and `get_table` tell what there is.")
    first_word = _FIRST_WORD.match(sql)
    first_text = first_word[1] if first_word else sql
    verb = first_word[1].upper() if first_word else ""
    if verb in _READING_VERBS or f'at or near "{first_text}"' not in primary:
        return problem
    if verb in _WRITING_VERBS:
        fix = "`write_rows` does that, if the operator started the server with `--write`."
    elif verb in _DEFINING_VERBS:
        fix = suggest_syntax(sql)
    else:
        return Invalid(problem.failure, f"This takes queries only: {', '.join(_READING_VERBS)}.")
    return Invalid(f"The statement would do more than read: {verb}.", fix)
