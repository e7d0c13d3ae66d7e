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

import psycopg

from mcp_batteries.errors import Invalid, Problem, Refused, quote
from mcp_postgres.engine.audit.function_audit import GATE, Cause, Harm
from mcp_postgres.engine.catalog.suggestions import word_for
from mcp_postgres.engine.connection.errors import problem
from mcp_postgres.engine.connection.pipeline import Answer, Statement
from mcp_postgres.engine.connection.pool import Opening, Session
from mcp_postgres.engine.connection.result_values import Column
from mcp_postgres.engine.connection.role import Role
from mcp_postgres.engine.connection.session import PATH
from mcp_postgres.policy import ReadStatement

__all__ = ["Limits", "admit", "columns_of", "gate_of", "judge", "opening"]

CREATE_READER = "`mcp-postgres --create-reader URL` makes one"
_DECLARE = "DECLARE mcp_gate NO SCROLL CURSOR FOR "
_PREPARE = "PREPARE mcp_gate AS "
_DEBUG = "SELECT set_config('search_path', $1, true), " + ", ".join(
    f"set_config('{name}', '{value}', true)"
    for name, value in (
        ("debug_pretty_print", "off"),
        ("client_min_messages", "log"),
        ("log_min_messages", "panic"),
        ("debug_print_rewritten", "on"),
    )
)
_QUERY = re.compile(r"(?:\( ?)?\{QUERY [^{]*:utilityStmt <>")
"""How the tree of a query begins; PREPARE itself has one too, which is not analysed."""
_PARSED = ", set_config('debug_print_parse', 'on', true)"
_READING = ("SELECT", "WITH", "VALUES", "TABLE", "EXPLAIN", "SHOW")
_WRITING = ("INSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE")
_DEFINING = ("CREATE", "ALTER", "DROP", "COMMENT", "GRANT", "REVOKE", "REINDEX", "VACUUM", "ANALYZE")
_OTHER_CLIENT = re.compile(r'at or near "(?:\\|describe"|desc"|use")', re.IGNORECASE)


class Limits:
    """What a transaction is opened with.

    Args:
        seconds: a statement's limit.
        lock: seconds it may wait for a lock.
    """

    def __init__(self, seconds: float, lock: float) -> None:
        self.seconds, self.lock = seconds, lock


def opening(limits: Limits, *, write: bool = False, several: bool = False) -> Opening:
    """The first trip of a transaction: its mode, its limits, how values and texts are written, and a savepoint.

    Statements of our own find PostgreSQL's names only, where another role's function of a better fit could do harm.

    Args:
        several: all statements are to see the same moment. Not where the catalogue is looked at for other roles' code:
            PostgreSQL runs what there is now, so what there was does not help.
    """
    settings = {
        "statement_timeout": int(limits.seconds * 1000), "lock_timeout": int(limits.lock * 1000),
        "idle_in_transaction_session_timeout": int(limits.seconds * 1000) + 60_000,
        "DateStyle": "ISO, YMD", "IntervalStyle": "postgres", "bytea_output": "hex", "extra_float_digits": 1,
        "xmloption": "content", "standard_conforming_strings": "on", "array_nulls": "on",
        "quote_all_identifiers": "off", "exit_on_error": "off",
    }  # fmt: skip
    mode = "READ WRITE" if write else "READ ONLY"

    def first(role: Role, caller: str | None) -> Sequence[str]:
        each = {**settings, "search_path": "pg_catalog"} if role.judged else settings
        calls = ", ".join(f"pg_catalog.set_config('{name}', '{value}', true)" for name, value in each.items())
        level = "ISOLATION LEVEL REPEATABLE READ, " if several and not role.harmful and caller is None else ""
        become = [f"SET LOCAL ROLE {caller}"] if caller is not None else []
        return f"BEGIN TRANSACTION {level}{mode}", f"SELECT {calls}", *become, "SAVEPOINT mcp_start"

    return first


def gate_of(statement: ReadStatement) -> tuple[Statement, Statement]:
    """What PostgreSQL runs of `statement` only if it is one query that reads; the second shows its columns."""
    return (_DECLARE + statement.sql, statement.parameters), ("FETCH 0 FROM mcp_gate", ())


async def admit(session: Session, statement: ReadStatement) -> list[Column]:
    """Have the server take `statement` for one query that only reads; the columns it will have.

    Raises:
        Problem: it does not, or what it would run does more than read.
    """
    name = statement.database.name
    before = _PREPARE
    try:
        masked = await judge(session, statement)
        before = _DECLARE
        _, shown = await session.together(*gate_of(statement))
    except psycopg.Error as error:
        raise _refusal(error, name, len(before), statement.sql) from error
    return columns_of(shown, masked)


def columns_of(answer: Answer, masked: Collection[int] = ()) -> list[Column]:
    """The columns of a result, of which some are masked."""
    return [Column(name, kind, number in masked) for number, (name, kind) in enumerate(answer.columns)]


async def judge(
    session: Session, statement: ReadStatement, *, sequences: bool = False, planned: bool = False, path: str = ""
) -> frozenset[int]:
    """Refuse a statement that could do more than read, where that can be known; nothing is planned or run.

    What it gives are the outputs, counted from 0, that have to be masked.

    Afterwards names mean what the role's own `search_path` makes of them; `own_names` takes it back.

    Args:
        sequences: functions that advance a sequence are fine.
        planned: it will be planned only, which runs no volatile function.
        path: where its names are looked up, instead of the role's own `search_path`.

    Raises:
        Refused: it could, or it touches what is not served.
        psycopg.Error: PostgreSQL can't prepare it; positions count from the beginning of `PREPARE mcp_gate AS `.
    """
    if not session.role.judged:
        return frozenset()
    world, path = session.world, path or session.role.path
    gate, _ = await session.together((GATE, ()), ("SAVEPOINT mcp_judge", ()))
    await world.look(session, gate)
    if (harm := world.literal(statement.sql)) is not None:
        raise _refused(session.role, harm)
    session.notices.clear()
    # Parsing analyses and rewrites. A cursor would not do: it keeps views as they are, and plans.
    # Names, policies and what they call are those of the role as which it will run.
    whose = session.acting or session.caller
    role = [(f"SET LOCAL ROLE {whose}", ())] if whose else []
    itself = [("SET LOCAL ROLE NONE", ())] if session.caller else []
    debug = _DEBUG + (_PARSED if world.part.part else "")
    *_, gate, _ = await session.together(
        *itself, (debug, (path,)), *role, (_PREPARE + statement.sql, ()), ("DEALLOCATE mcp_gate", ()),
        ("ROLLBACK TO SAVEPOINT mcp_judge", ()), (GATE, ()), (PATH, (path,)),
    )  # fmt: skip
    # PostgreSQL breaks the lines of a tree wherever the 78th column is: between a word and its number too.
    said = [(primary, " ".join(detail.split())) for primary, detail in session.notices if "parse tree" in primary]
    trees = [tree for primary, tree in said if primary.startswith("rewritten") and _QUERY.match(tree)]
    parsed = [tree for primary, tree in said if primary.startswith("parse") and _QUERY.match(tree)]
    session.notices.clear()
    await world.look(session, gate)
    if not trees:
        way = word_for(statement.sql) or "The operator can give the server another role."
        raise Refused("PostgreSQL did not show what `sql` would run.", way)
    masked = world.part.outputs(parsed) if world.part.part else frozenset[int]()
    harm = world.harm(trees, sequences=sequences, planned=planned)
    if harm is not None:
        raise _refused(session.role, harm)
    return masked


def _refused(role: Role, harm: Harm) -> Refused:
    match harm.cause:
        case Cause.STRANGER:
            return Refused(
                f"The role {role.because()}, and this could run code of another role as it: {quote(harm.what, 300)}.",
                f"The operator can give the server a role that can only read ({CREATE_READER}), or vouch for everybody "
                "who may create objects there by `--trust-database`.",
            )
        case Cause.EFFECT:
            own = f", vouch for it by `--trust-functions {harm.vouch}`" if harm.vouch else ""
            return Refused(
                f"The role {role.because()}, and {quote(harm.what)} may do more than read.",
                f"Leave it out. The operator can give the server a role that can only read ({CREATE_READER}){own}, or "
                "mark a function of their own STABLE.",
            )
        case Cause.INPUT:
            return Refused(
                f"The role {role.because()}, and {quote(harm.what)} may run what it is given: {harm.why}.",
                f"Leave it out. The operator can give the server a role that can only read ({CREATE_READER}), or vouch "
                f"for it by `--trust-functions {harm.vouch}`.",
            )


def _refusal(error: psycopg.Error, database: str, before: int, sql: str) -> Problem:
    primary = error.diag.message_primary or ""
    if error.sqlstate == "42601":
        found = problem(error, database, before=before)
        if _OTHER_CLIENT.search(primary):
            return Invalid(found.what, "`list_objects` and `get_table` tell what there is.")
        first = re.match(r"(?:\s|--[^\n]*\n|/\*.*?\*/)*(\w+)", sql, re.DOTALL)
        verb = first[1].upper() if first else ""
        if verb not in _READING and f'at or near "{first[1] if first else sql}"' in primary:
            way = f"This takes queries only: {', '.join(_READING)}."
            if tool := "write_rows" if verb in _WRITING else "edit_schema" if verb in _DEFINING else "":
                flag = "--write" if tool == "write_rows" else "--ddl"
                way = f"`{tool}` does that, if the operator started the server with `{flag}`."
                return Invalid(f"The statement would do more than read: {verb}.", way)
            return Invalid(found.what, way)
        return found
    if "data-modifying" in primary:
        return Refused(
            f"It would do more than read: {quote(primary)}.", "`write_rows` changes rows, where it is offered."
        )
    return problem(error, database, before=before)
