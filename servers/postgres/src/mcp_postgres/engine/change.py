"""Changing rows, and changing the schema: one statement, one transaction, and the server says what it is.

`PREPARE` admits SELECT, INSERT, UPDATE, DELETE and MERGE and runs nothing. What defines the schema is tried in a READ
ONLY transaction first, where PostgreSQL refuses it by name before it does anything. What tends it (VACUUM, REINDEX) is
no change to PostgreSQL, which would just do it there: its name is asked for after. Statements that can't be part of a
transaction PostgreSQL refuses in one, by name; those that are allowed then run alone.
"""

from __future__ import annotations

import asyncio
import re

import psycopg

from mcp_batteries.errors import Invalid, Problem, Refused, Unavailable, quote
from mcp_postgres.engine.admission import Limits, judge, opening, own_names, their_names
from mcp_postgres.engine.cells import Column, Lines
from mcp_postgres.engine.connections import Connections, Session
from mcp_postgres.engine.errors import problem
from mcp_postgres.models import Change
from mcp_postgres.policy import SchemaStatement, WriteStatement

__all__ = ["change_rows", "change_schema"]

_SHOWN = 20
_CELL = 500
_PREPARE = "PREPARE mcp_gate AS "

_CATALOGS = (
    "pg_class", "pg_attribute", "pg_attrdef", "pg_constraint", "pg_index", "pg_proc", "pg_type", "pg_namespace",
    "pg_trigger", "pg_rewrite", "pg_policy", "pg_extension", "pg_default_acl", "pg_description", "pg_enum",
    "pg_db_role_setting", "pg_auth_members", "pg_publication", "pg_largeobject_metadata", "pg_shdescription",
)  # fmt: skip
_TOUCHED = "SELECT concat_ws(', ', {}, {}) ".format(
    # Not everybody may read it, but whoever writes it holds its lock until the end.
    "CASE WHEN EXISTS (SELECT 1 FROM pg_locks WHERE pid = pg_backend_pid() AND relation = 'pg_authid'::regclass"
    " AND mode = 'RowExclusiveLock') THEN 'pg_authid' END",
    ", ".join(
        f"CASE WHEN EXISTS (SELECT 1 FROM {name} WHERE age(xmin) <= age($1::xid)) THEN '{name}' END"
        for name in _CATALOGS
    ),
)
_TRY = "SET CONSTRAINTS ALL IMMEDIATE; ROLLBACK"
_COMMIT = "SET CONSTRAINTS ALL IMMEDIATE; UNLISTEN *; RESET ROLE; RESET ALL; COMMIT"
"""A function may have set something for the session, which others use too."""
_TEMPORARY = (
    "SELECT 1::text WHERE pg_my_temp_schema() <> 0 AND ("
    + " OR ".join(
        f"EXISTS (SELECT 1 FROM {name} WHERE {column} = pg_my_temp_schema())"
        for name, column in (("pg_class", "relnamespace"), ("pg_proc", "pronamespace"), ("pg_type", "typnamespace"))
    )
    + ")"
)
_MARK = "SELECT (pg_current_xact_id()::text::bigint % 4294967296)::text"

_DEFINING = re.compile(r"\s*(?:CREATE|ALTER|DROP|COMMENT|GRANT|REVOKE|REFRESH)\s", re.I)
_TENDING = re.compile(r"\s*(?:VACUUM|ANALYZE|REINDEX)\b", re.I)
_TAG = re.compile(r"\b(?:CREATE|ALTER|DROP|COMMENT|GRANT|REVOKE|REFRESH)(?: [A-Z]+)*\b")
_OBJECTS = (
    "TABLE", "INDEX", "VIEW", "MATERIALIZED VIEW", "SEQUENCE", "SCHEMA", "TYPE", "DOMAIN", "FUNCTION", "PROCEDURE",
    "ROUTINE", "AGGREGATE", "TRIGGER", "RULE", "POLICY", "STATISTICS", "COLLATION", "TABLE AS", "DEFAULT PRIVILEGES",
    "CONSTRAINT", "OPERATOR", "CAST",
)  # fmt: skip
_ALLOWED = {
    *(f"{verb} {what}" for verb in ("CREATE", "ALTER", "DROP") for what in _OBJECTS),
    "COMMENT", "GRANT", "REVOKE", "REFRESH MATERIALIZED VIEW",
}  # fmt: skip
_TENDED = {"VACUUM", "ANALYZE", "REINDEX"}
_ALONE = re.compile(
    r"((?:CREATE INDEX|DROP INDEX|REINDEX|ALTER TABLE \.\.\. DETACH) CONCURRENTLY"
    r"|VACUUM|REINDEX (?:SCHEMA|TABLE|INDEX)) "
)
"""How PostgreSQL begins its refusal to run a statement in a transaction, of those that may run without one."""

_OBJECTS_NOW = """
SELECT coalesce(string_agg(line, E'\\n' ORDER BY line), '') FROM (
    SELECT format('%s %s.%s', CASE c.relkind WHEN 'r' THEN 'table' WHEN 'p' THEN 'partitioned table' WHEN 'v' THEN
        'view'
        WHEN 'm' THEN 'materialized view' WHEN 'f' THEN 'foreign table' WHEN 'S' THEN 'sequence' WHEN 'c' THEN 'type'
        ELSE 'index' END, n.nspname, c.relname) || E'\\t' || c.xmin AS line
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname !~ '^pg_' AND n.nspname <>
        'information_schema'
    UNION ALL SELECT format('column %s.%s', a.attrelid::regclass, a.attname) || E'\\t' || a.xmin FROM pg_attribute a
        JOIN pg_class c
        ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND a.attnum > 0 AND NOT a.attisdropped AND
            c.relkind IN ('r', 'p', 'f', 'v', 'm')
    UNION ALL SELECT format('constraint %s on %s', conname, conrelid::regclass) || E'\\t' || xmin FROM pg_constraint
        WHERE conrelid <> 0
    UNION ALL SELECT format('function %s', p.oid::regprocedure) || E'\\t' || p.xmin FROM pg_proc p JOIN pg_namespace n
        ON n.oid = p.pronamespace WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
    UNION ALL SELECT format('trigger %s on %s', tgname, tgrelid::regclass) || E'\\t' || xmin FROM pg_trigger WHERE
        NOT tgisinternal
    UNION ALL SELECT format('policy %s on %s', polname, polrelid::regclass) || E'\\t' || xmin FROM pg_policy
    UNION ALL SELECT format('schema %s', nspname) || E'\\t' || xmin FROM pg_namespace WHERE nspname !~ '^pg_'
    UNION ALL SELECT format('type %s', typname) || E'\\t' || xmin FROM pg_type WHERE typtype IN ('e', 'd', 'r') AND
        oid >= 16384
) x
"""


async def change_rows(connections: Connections, statement: WriteStatement, limits: Limits, *, dry_run: bool) -> Change:
    """Run one statement that changes rows, and commit it unless it is tried only.

    Raises:
        Problem: it is of another kind, has effects beyond rows, or fails; nothing is changed then.
    """
    name = statement.database.name
    async with connections.session(opening(limits, write=True), seconds=limits.seconds) as session:
        try:
            await judge(session, statement, sequences=True)
            await session.together((_PREPARE + statement.sql, ()), ("DEALLOCATE mcp_gate", ()))
        except psycopg.Error as error:
            found = problem(error, name, before=len(_PREPARE))
            if error.sqlstate == "42601" and not isinstance(found, Refused):
                raise Invalid(found.what, "This takes one INSERT, UPDATE, DELETE or MERGE.") from error
            raise found from error
        await session.simple("RELEASE SAVEPOINT mcp_start")
        await own_names(session)
        mark = await session.value(_MARK)
        await their_names(session)
        lines: list[str] = []
        try:
            cursor, count = await _ran(session, statement, lines)
            verb = cursor.statusmessage.split()[0] if cursor.statusmessage else ""
            if verb not in ("INSERT", "UPDATE", "DELETE", "MERGE", "SELECT") or (
                verb == "SELECT" and not cursor.description
            ):
                raise Refused(f"It would do more than change rows: `{verb}`.", "`edit_schema` changes the schema.")
            await own_names(session)
            if touched := await session.value(_TOUCHED, mark):
                raise Refused(f"It would change more than rows: {quote(touched)}.", "`edit_schema` changes the schema.")
            await session.simple(_TRY if dry_run else _COMMIT)
        except psycopg.Error as error:
            raise problem(error, name) from error
        columns = [column.name for column in cursor.description or ()]
        return Change(verb, count, dry_run, columns, lines)


async def _ran(
    session: Session, statement: WriteStatement, lines: list[str]
) -> tuple[psycopg.AsyncRawCursor[tuple[str | None, ...]], int]:
    (cursor,) = await session.together((statement.sql, statement.parameters))
    if cursor.description:
        writer = Lines([Column(column.name, column.type_code) for column in cursor.description], _CELL)
        lines += [writer.line(row) for row in await cursor.fetchmany(_SHOWN)]
    return cursor, cursor.rowcount


async def change_schema(
    connections: Connections, statement: SchemaStatement, limits: Limits, *, dry_run: bool
) -> Change:
    """Run one statement that defines, and commit it unless it is tried only.

    Raises:
        Problem: it is of another kind, or fails; nothing is changed then.
    """
    name = statement.database.name
    async with connections.session(opening(limits), seconds=limits.seconds) as session:
        tag = await _tag(session, statement)
    if tag not in _ALLOWED | _TENDED:
        raise Refused(
            f"{quote(tag)} reaches beyond the database's schema.", "The operator can run it with their own tools."
        )
    async with connections.session(opening(limits, write=True), seconds=limits.seconds) as session:
        try:
            before = await session.value(_OBJECTS_NOW)
            (cursor,) = await session.together((statement.sql, ()))
            done = cursor.statusmessage or tag
            if tag in _TENDED and done != tag:
                raise Refused(f"It would do another thing than {tag}: {quote(done)}.")
            if await session.value(_TEMPORARY):
                raise Refused(
                    "A temporary object would be gone with this call, or met by other callers until then.",
                    "Make it a lasting one, or write the query with WITH.",
                )
            after = await session.value(_OBJECTS_NOW)
            await session.simple(_TRY if dry_run else _COMMIT)
            return Change(done, None, dry_run, objects=_difference(before or "", after or ""))
        except psycopg.Error as error:
            found = _ALONE.match(error.diag.message_primary or "") if error.sqlstate == "25001" else None
            if found is None:
                raise problem(error, name) from error
    if dry_run:
        raise Refused(f"{found[1]} can't be tried: it runs outside of transactions.", "Leave `dry_run` away to do it.")
    return await _alone(connections, statement, limits, found[1])


async def _alone(connections: Connections, statement: SchemaStatement, limits: Limits, tag: str) -> Change:
    """Run what PostgreSQL runs outside of transactions only.

    Its time is kept here: a setting would outlive the statement, and behind a pooler meet somebody else.
    """
    name = statement.database.name
    async with connections.session(lambda _: "SELECT 1", seconds=2 * limits.seconds) as session:
        before = await session.value(_OBJECTS_NOW)
        failed: Problem | None = None
        try:
            async with asyncio.timeout(limits.seconds):
                await session.together((statement.sql, ()))
        except TimeoutError:
            failed = Unavailable(
                f"{tag} was stopped at its time limit, {limits.seconds:g} s.",
                "The operator can raise `--timeout`; `list_sessions` shows what it may have waited for.",
            )
        except psycopg.Error as error:
            if session.raw.broken:
                raise problem(error, name) from error
            failed = problem(error, name)
        left = _difference(before or "", await session.value(_OBJECTS_NOW) or "")
        if failed is None:
            return Change(tag, None, False, objects=left)
        if made := [line[2:] for line in left if line.startswith("+")]:
            fix = f"It left behind what must be dropped first: {quote(', '.join(made), 300)}. {failed.fix}"
            raise type(failed)(failed.what, fix.rstrip()) from failed
        raise failed


async def _tag(session: Session, statement: SchemaStatement) -> str:
    """What PostgreSQL calls the statement."""
    if session.role.superuser or session.world.closed:
        raise Refused(
            f"The role {session.role.because()}: `edit_schema` could reach files and programs by what it defines.",
            "The operator can give the server a role that owns the schema; `--print-role-sql` shows how.",
        )
    if found := _TENDING.match(statement.sql):
        return found[0].strip().upper()
    if not _DEFINING.match(statement.sql):
        first = next(iter(statement.sql.split()), "")
        raise Invalid(
            f"{quote(first)} defines nothing.",
            "This takes one CREATE, ALTER, DROP, COMMENT, GRANT, REVOKE, REFRESH, REINDEX, ANALYZE or VACUUM.",
        )
    try:
        await session.together((statement.sql, ()))
    except psycopg.Error as error:
        found = _TAG.search(error.diag.message_primary or "") if error.sqlstate == "25006" else None
        if found is None:
            raise problem(error, statement.database.name) from error
        return found[0]
    raise Refused("PostgreSQL takes this for no change of the schema: `sql`.", "`query_rows` runs what reads.")


def _difference(before: str, after: str) -> list[str]:
    was, now = (dict(line.split("\t") for line in text.split("\n") if line) for text in (before, after))
    lines = [f"- {item}" for item in was if item not in now]
    lines += [f"+ {item}" for item in now if item not in was]
    lines += [f"~ {item}" for item in now if item in was and now[item] != was[item]]
    return sorted(lines, key=lambda line: line[2:])
