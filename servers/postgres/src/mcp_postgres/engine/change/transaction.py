"""Changes rows and the schema: statements in one transaction, all or none; PostgreSQL decides what each of them is.

`PREPARE` admits SELECT, INSERT, UPDATE, DELETE and MERGE and runs nothing. What defines the schema is tried in a part
of the transaction that is READ ONLY first, where PostgreSQL refuses it by name before it does anything. What tends it
(VACUUM, REINDEX) is not a change for PostgreSQL, which would just do it there, so its name is checked afterwards.
PostgreSQL refuses by name statements that cannot be part of a transaction; those that are allowed then run alone.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

import psycopg

from mcp_batteries.errors import Invalid, Problem, Refused, quote
from mcp_batteries.sql.changes import Change, Sample, Step
from mcp_batteries.sql.identifiers import identifier
from mcp_postgres.engine.admission.statements import TransactionLimits, judge, result_columns, transaction_opening
from mcp_postgres.engine.change.commit import (
    CHECK_CONSTRAINTS,
    COMMIT,
    FIND_CHANGED_CATALOGS,
    READ_TRANSACTION_ID,
    can_reach_server,
)
from mcp_postgres.engine.change.effects import Effects
from mcp_postgres.engine.change.non_transactional import NON_TRANSACTIONAL, run_non_transactional
from mcp_postgres.engine.change.undo.dry_run import UNTRIED, try_undo
from mcp_postgres.engine.connection.errors import in_doubt_problem, locate_problem, to_problem
from mcp_postgres.engine.connection.pool import ConnectionPool
from mcp_postgres.engine.connection.result_values import RowWriter
from mcp_postgres.engine.connection.session import Session, use_catalog_path, use_role_path
from mcp_postgres.engine.query.pages import ResultPages
from mcp_postgres.policy import Changes, Migration, ReadStatement, Writes
from mcp_postgres.statement_splitter import strip_leading_comments

__all__ = ["run_change"]

_CELL_CHARACTERS = 500
_PREPARE = "PREPARE mcp_gate AS "

_MAY_BECOME = "SELECT pg_has_role(oid, $2)::text FROM pg_roles WHERE rolname = $1"
_HAS_TEMPORARY_OBJECTS = (
    "SELECT 1::text WHERE pg_my_temp_schema() <> 0 AND ("
    + " OR ".join(
        f"EXISTS (SELECT 1 FROM {name} WHERE {column} = pg_my_temp_schema())"
        for name, column in (("pg_class", "relnamespace"), ("pg_proc", "pronamespace"), ("pg_type", "typnamespace"))
    )
    + ")"
)

_SCHEMA_STATEMENT = re.compile(r"(?:CREATE|ALTER|DROP|COMMENT|GRANT|REVOKE|REFRESH|REASSIGN)\b", re.I)
_MAINTENANCE = re.compile(r"(?:VACUUM|ANALYZE|REINDEX)\b", re.I)
_ROW_STATEMENT = re.compile(r"(?:INSERT|UPDATE|DELETE|MERGE|SELECT|WITH|VALUES|TABLE|TRUNCATE)\b|\(", re.I)
_CODE_STATEMENT = re.compile(r"(?:DO|CALL)\b", re.I)
_TAG = re.compile(r"\b(?:CREATE|ALTER|DROP|COMMENT|GRANT|REVOKE|REFRESH|REASSIGN)(?: [A-Z]+)*\b")
_OBJECTS = (
    "TABLE", "INDEX", "VIEW", "MATERIALIZED VIEW", "SEQUENCE", "SCHEMA", "TYPE", "DOMAIN", "FUNCTION", "PROCEDURE",
    "ROUTINE", "AGGREGATE", "TRIGGER", "RULE", "POLICY", "STATISTICS", "COLLATION", "TABLE AS", "DEFAULT PRIVILEGES",
    "CONSTRAINT", "OPERATOR", "CAST",
)  # fmt: skip
_SCHEMA_TAGS = {
    *(f"{verb} {what}" for verb in ("CREATE", "ALTER", "DROP") for what in _OBJECTS),
    "COMMENT", "GRANT", "REVOKE", "REFRESH MATERIALIZED VIEW",
}  # fmt: skip
_ADMIN_TAGS = {
    *(f"{verb} {what}" for verb in ("CREATE", "ALTER", "DROP") for what in ("ROLE", "EXTENSION")),
    "GRANT ROLE", "REVOKE ROLE", "DROP OWNED", "ALTER EXTENSION UPDATE", "REASSIGN OWNED",
}  # fmt: skip
_ROW_VERBS = ("INSERT", "UPDATE", "DELETE", "MERGE")
# What a dry run does twice, to try its way back.
_REPEATABLE_VERBS = ("CREATE", "ALTER", "DROP", "COMMENT", "GRANT", "REVOKE")
# Seconds of a dry run that is worth it.
_QUICK_SECONDS = 1.0
_MAINTENANCE_TAGS = {"VACUUM", "ANALYZE", "REINDEX"}


async def run_change(
    connections: ConnectionPool,
    request: Changes,
    limits: TransactionLimits,
    pages: ResultPages,
    *,
    dry_run: bool,
    limit: int,
) -> Change:
    """Run statements, and commit what they did unless they are tried only.

    Raises:
        Problem: one of them is of another kind, has effects beyond its kind, or fails; nothing is changed then.
    """
    name = request.database.name
    first = transaction_opening(limits, write=True)
    role = request.database.role
    async with connections.session(first, seconds=limits.statement_seconds, role=role) as session:
        run = _ChangeRun(session, request, dry_run=dry_run, pages=pages, limit=limit)
        non_transactional: str | None = None
        steps: list[Step] = []
        await run.start()
        for number, part in enumerate(request.parts, 1):
            try:
                steps.append(await run.run_statement(part))
            except (psycopg.Error, Problem) as error:
                if isinstance(error, Problem):
                    problem = error
                else:
                    problem = to_problem(error, name)
                match = None
                if isinstance(error, psycopg.Error):
                    match = NON_TRANSACTIONAL.match(error.diag.message_primary or "")
                if match and isinstance(error, psycopg.Error) and error.sqlstate == "25001":
                    non_transactional = match[1]
                    if len(request.parts) == 1 and not dry_run:
                        break
                    problem = Refused(
                        f"{non_transactional} can't be part of a transaction.", "Send it by a call of its own."
                    )
                    if len(request.parts) == 1:
                        problem = Refused(
                            f"{non_transactional} can't be tried: it runs outside of transactions.",
                            "Leave `dry_run` away to do it.",
                        )
                if len(request.parts) > 1:
                    prefix = f"Statement {number} of {len(request.parts)} failed, and nothing was changed: "
                    raise locate_problem(problem, prefix) from error
                raise problem from error
        if non_transactional is None:
            try:
                return await run.finish(steps)
            except psycopg.Error as error:
                raise (in_doubt_problem(name) if session.in_doubt else to_problem(error, name)) from error
    return await run_non_transactional(connections, request.parts[0], limits, non_transactional)


class _ChangeRun:
    """Statements under way in one transaction."""

    def __init__(self, session: Session, request: Changes, *, dry_run: bool, pages: ResultPages, limit: int) -> None:
        self.session = session
        self.request = request
        self.dry_run = dry_run
        self.pages = pages
        self.limit = limit
        self.changes_schema = isinstance(request, Migration)
        if dry_run or self.changes_schema:
            self.effects = Effects(session, self.changes_schema)
        else:
            self.effects = None
        self.transaction_id = ""
        self.start_time = time.monotonic()

    async def start(self) -> None:
        """Look before the first statement."""
        session = self.session
        request = self.request
        if isinstance(request, Migration) and not request.admin and can_reach_server(session):
            raise Refused(
                f"The role {session.role.explain_judging()}: `edit_schema` could reach files and programs by what "
                "it defines.",
                "The operator can give the server a role that owns the schema (`--print-role-sql` shows how), or start "
                "it with `--admin`.",
            )
        if isinstance(request, Writes) and request.role is not None:
            await self._check_may_act(request.role)
            session.acting_role = identifier(request.role)
        self.transaction_id = await session.fetch_value(READ_TRANSACTION_ID) or ""
        if self.effects is not None:
            await self.effects.start()
        await session.run("SAVEPOINT mcp_before")

    async def run_statement(self, part: ReadStatement) -> Step:
        """Run one statement."""
        session = self.session
        head = strip_leading_comments(part.sql)
        began = time.monotonic()
        if not self.changes_schema or _ROW_STATEMENT.match(head):
            step = await self._change_rows(part, head)
        else:
            step = await self._change_schema(part, head)
        if self.effects is not None:
            await use_catalog_path(session)
            locked = await self.effects.record_statement(began)
            if step.what in _MAINTENANCE_TAGS and locked:
                step = Step(step.what, detail=", ".join(locked))
        return step

    async def finish(self, steps: list[Step]) -> Change:
        """Look at what the statements did, and keep it or not."""
        session = self.session
        await session.run(CHECK_CONSTRAINTS)
        await use_catalog_path(session)
        await self._check_allowed_effects(steps)
        if self.effects is None:
            await session.commit(COMMIT)
            return Change(steps, self.dry_run)
        objects, findings = await self.effects.finish(
            wants_undo=self.dry_run and self.changes_schema,
            statement_rows=sum(step.rows or 0 for step in steps if step.what in _ROW_VERBS),
            sql=" ".join(part.sql for part in self.request.parts),
        )
        shown_objects: Sequence[str] | None = None
        is_maintenance = all(step.what in _MAINTENANCE_TAGS for step in steps)
        if self.changes_schema and (objects or not is_maintenance):
            shown_objects = objects
        if not self.dry_run:
            await session.commit(COMMIT)
            return Change(steps, self.dry_run, shown_objects)
        samples: Sequence[Sample] = ()
        if not session.audit.closed and not session.audit.visible.schema:
            samples = await self.effects.samples(keep="mcp_before")
        undo: list[str] = []
        if self.changes_schema:
            undo = await self._undo_lines(self.effects, steps)
        await session.run("ROLLBACK")
        return Change(steps, self.dry_run, shown_objects, samples, findings, undo)

    async def _check_allowed_effects(self, steps: Sequence[Step]) -> None:
        """Raise `Refused` if rows were to be changed and more was, or if something temporary was made."""
        if self.changes_schema:
            if await self.session.fetch_value(_HAS_TEMPORARY_OBJECTS):
                raise Refused(
                    "A temporary object would be gone with this call, or met by other callers until then.",
                    "Make it a lasting one, or write the query with WITH.",
                )
            return
        catalogs = await self.session.fetch_value(FIND_CHANGED_CATALOGS, self.transaction_id)
        only_truncates = catalogs == "pg_class" and all(step.what == "TRUNCATE TABLE" for step in steps)
        if catalogs and not only_truncates:
            raise Refused(f"It would change more than rows: {quote(catalogs)}.", "`edit_schema` changes the schema.")

    async def _undo_lines(self, effects: Effects, steps: Sequence[Step]) -> list[str]:
        """Undo the change of the schema, and return the statements that would, tried where that is quick."""
        await self.session.run("ROLLBACK TO SAVEPOINT mcp_before")
        lines = list(await effects.undo_statements())
        if self._can_repeat(steps) and effects.schema_change is not None:
            statements = [part.sql for part in self.request.parts]
            lines = list(await try_undo(self.session, statements, effects.schema_change, lines))
        elif not all(line.startswith("--") for line in lines):
            lines.append(UNTRIED)
        has_uncounted_rows = not effects.has_counted_rows and any(
            step.rows and step.what in _ROW_VERBS for step in steps
        )
        has_truncated = any(step.what == "TRUNCATE TABLE" for step in steps)
        if effects.changes_rows or has_uncounted_rows or has_truncated:
            lines.append("-- rows: no statement brings back what was there; copy the table before, or use a backup")
        return lines

    def _can_repeat(self, steps: Sequence[Step]) -> bool:
        """Return whether the change can be made once more: quick, of definitions alone, and no stranger's code."""
        quick = time.monotonic() - self.start_time < _QUICK_SECONDS
        plain = all(step.rows is None and step.what.startswith(_REPEATABLE_VERBS) for step in steps)
        return quick and plain and not self.session.role.is_judged and not can_reach_server(self.session)

    async def _change_rows(self, part: ReadStatement, head: str) -> Step:
        session = self.session
        name = part.database.name
        if isinstance(self.request, Migration) and not self.request.rows:
            raise Refused(
                f"{quote(head.split()[0])} changes rows, which this server was not opened for.",
                "The operator can start it with `--write` too.",
            )
        truncates = bool(re.match(r"TRUNCATE\b", head, re.I))
        if truncates and (session.audit.closed or session.audit.visible.schema):
            explanation = "A part of the database is served"
            if session.audit.closed:
                explanation = f"The role {session.role.explain_judging()}"
            raise Refused(f"{explanation}: TRUNCATE can't be judged.", "DELETE does the same.")
        masked = frozenset[int]()
        if not truncates:
            try:
                await use_catalog_path(session)
                masked = await judge(session, part, allow_sequences=True)
                await session.run_pipeline((_PREPARE + part.sql, ()), ("DEALLOCATE mcp_gate", ()))
            except psycopg.Error as error:
                reported = to_problem(error, name, prefix_length=len(_PREPARE))
                is_other = error.sqlstate == "42601" and not _ROW_STATEMENT.match(strip_leading_comments(part.sql))
                if is_other and not isinstance(reported, Refused):
                    raise Invalid(reported.what, "This takes INSERT, UPDATE, DELETE, MERGE or TRUNCATE.") from error
                raise reported from error
        await self._set_role(acting=True)
        (answer,) = await session.run_pipeline((part.sql, part.parameters))
        tag = answer.tag
        verb = ""
        if tag:
            verb = tag.split()[0]
        if truncates and tag == "TRUNCATE TABLE":
            await self._set_role(acting=False)
            return Step(tag)
        if verb not in (*_ROW_VERBS, "SELECT") or (verb == "SELECT" and not answer.columns):
            raise Refused(f"It would do more than change rows: `{verb}`.", "`edit_schema` changes the schema.")
        returned = None
        if answer.columns:
            columns = result_columns(answer, masked)
            writer = RowWriter(columns, _CELL_CHARACTERS)
            returned = self.pages.page_of_answer(part, columns, writer, answer, limit=self.limit)
        await self._set_role(acting=False)
        return Step(verb, answer.count, returned=returned)

    async def _set_role(self, *, acting: bool) -> None:
        """Become the role as which it is tried, or oneself again."""
        if self.session.acting_role is not None:
            if acting:
                role = self.session.acting_role
            else:
                role = self.session.caller_role
            await self.session.run(f"SET LOCAL ROLE {role}" if role else "RESET ROLE")

    async def _check_may_act(self, role: str) -> None:
        """PostgreSQL asks whether the server's role may become it; here the caller's has to."""
        session = self.session
        right = "SET" if session.role.major >= 16 else "MEMBER"
        if session.caller_role and await session.fetch_value(_MAY_BECOME, role, right) != "t":
            raise Refused(f"Your role can't become {quote(role)}.", "`list_objects` with `roles` lists memberships.")

    async def _change_schema(self, part: ReadStatement, head: str) -> Step:
        session = self.session
        await use_role_path(session)
        tag = await self._read_tag(part, head)
        admin = isinstance(self.request, Migration) and self.request.admin
        if tag not in _SCHEMA_TAGS | _MAINTENANCE_TAGS and not (admin and tag in _ADMIN_TAGS | {"DO", "CALL"}):
            admin_hint = " or start the server with `--admin`" if tag in _ADMIN_TAGS | {"DO", "CALL"} else ""
            raise Refused(
                f"{quote(tag)} reaches beyond the database's schema.",
                f"The operator can run it with their own tools{admin_hint}.",
            )
        (answer,) = await session.run_pipeline((part.sql, ()))
        reported_tag = answer.tag or tag
        if tag in _MAINTENANCE_TAGS | {"DO", "CALL"} and reported_tag != tag:
            raise Refused(f"It would do another thing than {tag}: {quote(reported_tag)}.")
        if tag == "CALL" and answer.columns:
            writer = RowWriter(result_columns(answer), _CELL_CHARACTERS)
            row = answer.first()
            return Step(reported_tag, detail=writer.write(row).strip() if row else "")
        # PostgreSQL tells of what makes a table of a query as of that query.
        if reported_tag.startswith("SELECT "):
            return Step(tag, answer.count)
        return Step(reported_tag)

    async def _read_tag(self, part: ReadStatement, head: str) -> str:
        """Return what PostgreSQL calls the statement."""
        session = self.session
        if found := _MAINTENANCE.match(head) or _CODE_STATEMENT.match(head):
            return found[0].upper()
        if not _SCHEMA_STATEMENT.match(head):
            raise Invalid(
                f"{quote(next(iter(head.split()), ''))} defines nothing.",
                "This takes CREATE, ALTER, DROP, COMMENT, GRANT, REVOKE, REFRESH, REINDEX, ANALYZE and VACUUM; BEGIN "
                "and COMMIT are not needed.",
            )
        await session.run("SAVEPOINT mcp_tag; SET TRANSACTION READ ONLY")
        try:
            await session.run_pipeline((part.sql, ()))
        except psycopg.Error as error:
            found = None
            if error.sqlstate == "25006":
                found = _TAG.search(error.diag.message_primary or "")
            if found is None:
                raise to_problem(error, part.database.name) from error
        await session.run("ROLLBACK TO SAVEPOINT mcp_tag; RELEASE SAVEPOINT mcp_tag")
        if found is None:
            raise Refused("PostgreSQL takes this for no change of the schema: `sql`.", "`query_rows` runs what reads.")
        return found[0]
