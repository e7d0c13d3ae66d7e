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
from mcp_batteries.sql.changes import Change, Step
from mcp_batteries.sql.identifiers import identifier
from mcp_postgres.engine.admission.statements import Limits, columns_of, judge, opening
from mcp_postgres.engine.change.effects import Effects
from mcp_postgres.engine.change.non_transactional import ALONE, run_alone
from mcp_postgres.engine.change.undo.dry_run import UNTRIED, rehearsed
from mcp_postgres.engine.connection.errors import in_doubt, placed, problem
from mcp_postgres.engine.connection.pool import Connections, Session
from mcp_postgres.engine.connection.result_values import Lines
from mcp_postgres.engine.connection.session import own_names, their_names
from mcp_postgres.engine.query.pages import Pages
from mcp_postgres.policy import Changes, Migration, ReadStatement, Writes
from mcp_postgres.statement_splitter import begin_of

__all__ = ["COMMIT", "DEFERRED", "MARK", "TOUCHED", "change", "reaches_far"]

_CELL = 500
_PREPARE = "PREPARE mcp_gate AS "

_CATALOGS = (
    "pg_class", "pg_attribute", "pg_attrdef", "pg_constraint", "pg_index", "pg_proc", "pg_type", "pg_namespace",
    "pg_trigger", "pg_rewrite", "pg_policy", "pg_extension", "pg_default_acl", "pg_description", "pg_enum",
    "pg_db_role_setting", "pg_auth_members", "pg_publication", "pg_largeobject_metadata", "pg_shdescription",
)  # fmt: skip
TOUCHED = "SELECT concat_ws(', ', {}, {}) ".format(
    # Not everybody may read it, but whoever writes it holds its lock until the end.
    "CASE WHEN EXISTS (SELECT 1 FROM pg_locks WHERE pid = pg_backend_pid() AND relation = 'pg_authid'::regclass"
    " AND mode = 'RowExclusiveLock') THEN 'pg_authid' END",
    ", ".join(
        f"CASE WHEN EXISTS (SELECT 1 FROM {name} WHERE age(xmin) <= age($1::xid)) THEN '{name}' END"
        for name in _CATALOGS
    ),
)
_MAY_ACT = "SELECT pg_has_role(oid, $2)::text FROM pg_roles WHERE rolname = $1"
DEFERRED = "SET CONSTRAINTS ALL IMMEDIATE"
COMMIT = "UNLISTEN *; RESET ROLE; RESET ALL; COMMIT"
"""A function may have set something for the session, which others use too."""
_TEMPORARY = (
    "SELECT 1::text WHERE pg_my_temp_schema() <> 0 AND ("
    + " OR ".join(
        f"EXISTS (SELECT 1 FROM {name} WHERE {column} = pg_my_temp_schema())"
        for name, column in (("pg_class", "relnamespace"), ("pg_proc", "pronamespace"), ("pg_type", "typnamespace"))
    )
    + ")"
)
MARK = "SELECT (pg_current_xact_id()::text::bigint % 4294967296)::text"

_DEFINING = re.compile(r"(?:CREATE|ALTER|DROP|COMMENT|GRANT|REVOKE|REFRESH|REASSIGN)\b", re.I)
_TENDING = re.compile(r"(?:VACUUM|ANALYZE|REINDEX)\b", re.I)
_OF_ROWS = re.compile(r"(?:INSERT|UPDATE|DELETE|MERGE|SELECT|WITH|VALUES|TABLE|TRUNCATE)\b|\(", re.I)
_CODE = re.compile(r"(?:DO|CALL)\b", re.I)
_TAG = re.compile(r"\b(?:CREATE|ALTER|DROP|COMMENT|GRANT|REVOKE|REFRESH|REASSIGN)(?: [A-Z]+)*\b")
_OBJECTS = (
    "TABLE", "INDEX", "VIEW", "MATERIALIZED VIEW", "SEQUENCE", "SCHEMA", "TYPE", "DOMAIN", "FUNCTION", "PROCEDURE",
    "ROUTINE", "AGGREGATE", "TRIGGER", "RULE", "POLICY", "STATISTICS", "COLLATION", "TABLE AS", "DEFAULT PRIVILEGES",
    "CONSTRAINT", "OPERATOR", "CAST",
)  # fmt: skip
_ALLOWED = {
    *(f"{verb} {what}" for verb in ("CREATE", "ALTER", "DROP") for what in _OBJECTS),
    "COMMENT", "GRANT", "REVOKE", "REFRESH MATERIALIZED VIEW",
}  # fmt: skip
_ADMIN = {
    *(f"{verb} {what}" for verb in ("CREATE", "ALTER", "DROP") for what in ("ROLE", "EXTENSION")),
    "GRANT ROLE", "REVOKE ROLE", "DROP OWNED", "ALTER EXTENSION UPDATE", "REASSIGN OWNED",
}  # fmt: skip
_CHANGING = ("INSERT", "UPDATE", "DELETE", "MERGE")
_AGAIN = ("CREATE", "ALTER", "DROP", "COMMENT", "GRANT", "REVOKE")
"""What a dry run does twice, to try its way back."""
_QUICK = 1.0
"""Seconds of a dry run that is worth it."""
_TENDED = {"VACUUM", "ANALYZE", "REINDEX"}


async def change(
    connections: Connections, wanted: Changes, limits: Limits, pages: Pages, *, dry_run: bool, limit: int
) -> Change:
    """Run statements, and commit what they did unless they are tried only.

    Raises:
        Problem: one of them is of another kind, has effects beyond its kind, or fails; nothing is changed then.
    """
    name = wanted.database.name
    first, role = opening(limits, write=True), wanted.database.role
    async with connections.session(first, seconds=limits.seconds, role=role) as session:
        work = _Work(session, wanted, dry_run=dry_run, pages=pages, limit=limit)
        alone: str | None = None
        steps: list[Step] = []
        await work.begin()
        for number, part in enumerate(wanted.parts, 1):
            try:
                steps.append(await work.step(part))
            except (psycopg.Error, Problem) as error:
                found = error if isinstance(error, Problem) else problem(error, name)
                match = ALONE.match(error.diag.message_primary or "") if isinstance(error, psycopg.Error) else None
                if match and isinstance(error, psycopg.Error) and error.sqlstate == "25001":
                    alone = match[1]
                    if len(wanted.parts) == 1 and not dry_run:
                        break
                    found = Refused(f"{alone} can't be part of a transaction.", "Send it by a call of its own.")
                    if len(wanted.parts) == 1:
                        found = Refused(
                            f"{alone} can't be tried: it runs outside of transactions.",
                            "Leave `dry_run` away to do it.",
                        )
                if len(wanted.parts) > 1:
                    where = f"Statement {number} of {len(wanted.parts)} failed, and nothing was changed: "
                    raise placed(found, where) from error
                raise found from error
        if alone is None:
            try:
                return await work.end(steps)
            except psycopg.Error as error:
                raise (in_doubt(name) if session.in_doubt else problem(error, name)) from error
    return await run_alone(connections, wanted.parts[0], limits, alone)


def reaches_far(session: Session) -> bool:
    """Whether the role could reach files and programs by what it defines."""
    return session.role.superuser or session.world.closed


class _Work:
    """Statements under way in one transaction."""

    def __init__(self, session: Session, wanted: Changes, *, dry_run: bool, pages: Pages, limit: int) -> None:
        self.session, self.wanted, self.dry_run, self.pages, self.limit = session, wanted, dry_run, pages, limit
        self.reshapes = isinstance(wanted, Migration)
        self.effects = Effects(session, self.reshapes) if dry_run or self.reshapes else None
        self.mark = ""
        self.began = time.monotonic()

    async def begin(self) -> None:
        """Look before the first statement."""
        session, wanted = self.session, self.wanted
        if isinstance(wanted, Migration) and not wanted.admin and reaches_far(session):
            raise Refused(
                f"The role {session.role.because()}: `edit_schema` could reach files and programs by what it defines.",
                "The operator can give the server a role that owns the schema (`--print-role-sql` shows how), or start "
                "it with `--admin`.",
            )
        if isinstance(wanted, Writes) and wanted.role is not None:
            await self._may_act(wanted.role)
            session.acting = identifier(wanted.role)
        self.mark = await session.value(MARK) or ""
        if self.effects is not None:
            await self.effects.begin()
        await session.simple("SAVEPOINT mcp_before")

    async def step(self, part: ReadStatement) -> Step:
        """Run one statement."""
        session, head = self.session, begin_of(part.sql)
        began = time.monotonic()
        if not self.reshapes or _OF_ROWS.match(head):
            step = await self._rows(part, head)
        else:
            step = await self._schema(part, head)
        if self.effects is not None:
            await own_names(session)
            locked = await self.effects.step(began)
            if step.what in _TENDED and locked:
                step = Step(step.what, detail=", ".join(locked))
        return step

    async def end(self, steps: list[Step]) -> Change:
        """Look at what they did, and keep it or not."""
        session, dry_run = self.session, self.dry_run
        await session.simple(DEFERRED)
        await own_names(session)
        if not self.reshapes and (touched := await session.value(TOUCHED, self.mark)):
            emptied = touched == "pg_class" and all(step.what == "TRUNCATE TABLE" for step in steps)
            if not emptied:
                raise Refused(f"It would change more than rows: {quote(touched)}.", "`edit_schema` changes the schema.")
        if self.reshapes and await session.value(_TEMPORARY):
            raise Refused(
                "A temporary object would be gone with this call, or met by other callers until then.",
                "Make it a lasting one, or write the query with WITH.",
            )
        if self.effects is None:
            await session.commit(COMMIT)
            return Change(steps, dry_run)
        objects, findings = await self.effects.end(
            rehearsed=dry_run and self.reshapes,
            counted=sum(step.rows or 0 for step in steps if step.what in _CHANGING),
            sql=" ".join(part.sql for part in self.wanted.parts),
        )
        told = objects if objects or not all(step.what in _TENDED for step in steps) else None
        told = told if self.reshapes else None
        if not dry_run:
            await session.commit(COMMIT)
            return Change(steps, dry_run, told)
        samples = (
            () if session.world.closed or session.world.part.part else await self.effects.samples(keep="mcp_before")
        )
        back: list[str] = []
        if self.reshapes:
            await session.simple("ROLLBACK TO SAVEPOINT mcp_before")
            back += await self.effects.back()
            if self._repeats(steps) and self.effects.seen is not None:
                back = [*await rehearsed(session, [part.sql for part in self.wanted.parts], self.effects.seen, back)]
            elif not all(line.startswith("--") for line in back):
                back.append(UNTRIED)
        uncounted = not self.effects.counted and any(step.rows and step.what in _CHANGING for step in steps)
        emptied = any(step.what == "TRUNCATE TABLE" for step in steps)
        if self.reshapes and (self.effects.changes_rows or uncounted or emptied):
            back.append("-- rows: no statement brings back what was there; copy the table before, or use a backup")
        await session.simple("ROLLBACK")
        return Change(steps, dry_run, told, samples, findings, back)

    def _repeats(self, steps: Sequence[Step]) -> bool:
        """Whether the change can be made once more: quick, of definitions alone, and no stranger's code."""
        quick = time.monotonic() - self.began < _QUICK
        plain = all(step.rows is None and step.what.startswith(_AGAIN) for step in steps)
        return quick and plain and not self.session.role.judged and not reaches_far(self.session)

    async def _rows(self, part: ReadStatement, head: str) -> Step:
        session, name = self.session, part.database.name
        if isinstance(self.wanted, Migration) and not self.wanted.rows:
            raise Refused(
                f"{quote(head.split()[0])} changes rows, which this server was not opened for.",
                "The operator can start it with `--write` too.",
            )
        empties = bool(re.match(r"TRUNCATE\b", head, re.I))
        if empties and (session.world.closed or session.world.part.part):
            why = f"The role {session.role.because()}" if session.world.closed else "A part of the database is served"
            raise Refused(f"{why}: TRUNCATE can't be judged.", "DELETE does the same.")
        masked = frozenset[int]()
        if not empties:
            try:
                await own_names(session)
                masked = await judge(session, part, sequences=True)
                await session.together((_PREPARE + part.sql, ()), ("DEALLOCATE mcp_gate", ()))
            except psycopg.Error as error:
                found = problem(error, name, before=len(_PREPARE))
                is_other = error.sqlstate == "42601" and not _OF_ROWS.match(begin_of(part.sql))
                if is_other and not isinstance(found, Refused):
                    raise Invalid(found.what, "This takes INSERT, UPDATE, DELETE, MERGE or TRUNCATE.") from error
                raise found from error
        await self._acting(on=True)
        (answer,) = await session.together((part.sql, part.parameters))
        done = answer.tag
        verb = done.split()[0] if done else ""
        if empties and done == "TRUNCATE TABLE":
            await self._acting(on=False)
            return Step(done)
        if verb not in (*_CHANGING, "SELECT") or (verb == "SELECT" and not answer.columns):
            raise Refused(f"It would do more than change rows: `{verb}`.", "`edit_schema` changes the schema.")
        returned = None
        if answer.columns:
            columns = columns_of(answer, masked)
            writer = Lines(columns, _CELL)
            returned = self.pages.kept(part, columns, writer, answer, limit=self.limit)
        await self._acting(on=False)
        return Step(verb, answer.count, returned=returned)

    async def _acting(self, *, on: bool) -> None:
        """Become the role as which it is tried, or oneself again."""
        if self.session.acting is not None:
            whose = self.session.acting if on else self.session.caller
            await self.session.simple(f"SET LOCAL ROLE {whose}" if whose else "RESET ROLE")

    async def _may_act(self, role: str) -> None:
        """PostgreSQL asks whether the server's role may become it; here the caller's has to."""
        session = self.session
        right = "SET" if session.role.major >= 16 else "MEMBER"
        if session.caller and await session.value(_MAY_ACT, role, right) != "t":
            raise Refused(f"Your role can't become {quote(role)}.", "`list_objects` with `roles` lists memberships.")

    async def _schema(self, part: ReadStatement, head: str) -> Step:
        session = self.session
        await their_names(session)
        tag = await self._tag(part, head)
        admin = isinstance(self.wanted, Migration) and self.wanted.admin
        if tag not in _ALLOWED | _TENDED and not (admin and tag in _ADMIN | {"DO", "CALL"}):
            opened = " or start the server with `--admin`" if tag in _ADMIN | {"DO", "CALL"} else ""
            raise Refused(
                f"{quote(tag)} reaches beyond the database's schema.",
                f"The operator can run it with their own tools{opened}.",
            )
        (answer,) = await session.together((part.sql, ()))
        done = answer.tag or tag
        if tag in _TENDED | {"DO", "CALL"} and done != tag:
            raise Refused(f"It would do another thing than {tag}: {quote(done)}.")
        if tag == "CALL" and answer.columns:
            writer = Lines(columns_of(answer), _CELL)
            row = answer.first()
            return Step(done, detail=writer.line(row).strip() if row else "")
        # PostgreSQL tells of what makes a table of a query as of that query.
        return Step(tag, answer.count) if done.startswith("SELECT ") else Step(done)

    async def _tag(self, part: ReadStatement, head: str) -> str:
        """What PostgreSQL calls the statement."""
        session = self.session
        if found := _TENDING.match(head) or _CODE.match(head):
            return found[0].upper()
        if not _DEFINING.match(head):
            raise Invalid(
                f"{quote(next(iter(head.split()), ''))} defines nothing.",
                "This takes CREATE, ALTER, DROP, COMMENT, GRANT, REVOKE, REFRESH, REINDEX, ANALYZE and VACUUM; BEGIN "
                "and COMMIT are not needed.",
            )
        await session.simple("SAVEPOINT mcp_tag; SET TRANSACTION READ ONLY")
        try:
            await session.together((part.sql, ()))
        except psycopg.Error as error:
            found = _TAG.search(error.diag.message_primary or "") if error.sqlstate == "25006" else None
            if found is None:
                raise problem(error, part.database.name) from error
        await session.simple("ROLLBACK TO SAVEPOINT mcp_tag; RELEASE SAVEPOINT mcp_tag")
        if found is None:
            raise Refused("PostgreSQL takes this for no change of the schema: `sql`.", "`query_rows` runs what reads.")
        return found[0]
