"""Changes rows and the schema: statements in one transaction, all or none; PostgreSQL decides what each of them is.

PostgreSQL refuses by name statements that cannot be part of a transaction; those that are allowed then run alone.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import replace

import psycopg

from mcp_batteries.errors import Problem, Refused, quote
from mcp_batteries.sql.language.identifiers import quote_identifier
from mcp_batteries.sql.results.changes import Change, Sample, Step, show_completed_steps
from mcp_postgres.engine.admission.call_settings import apply_call_setting, check_may_act
from mcp_postgres.engine.change.commit import (
    CHECK_CONSTRAINTS,
    COMMIT,
    FIND_CHANGED_CATALOGS,
    READ_TRANSACTION_ID,
    SCHEMA_FIX,
    can_reach_server,
)
from mcp_postgres.engine.change.effects import Effects, RowChanges
from mcp_postgres.engine.change.foreign_writes import describe_foreign_writes, read_foreign_writes
from mcp_postgres.engine.change.lagging_sequences import explain_duplicate
from mcp_postgres.engine.change.non_transactional import NON_TRANSACTIONAL, run_non_transactional
from mcp_postgres.engine.change.objects import NAMED_OPTIONS_SETTING
from mcp_postgres.engine.change.row_statements import ROW_VERBS, RowStatements, is_row_statement
from mcp_postgres.engine.change.schema_statements import MAINTENANCE_TAGS, run_schema_statement
from mcp_postgres.engine.connection.errors import DuplicateKey, in_doubt_problem, locate_problem, to_problem
from mcp_postgres.engine.connection.pool import run_shielded
from mcp_postgres.engine.connection.session import Session, use_catalog_path
from mcp_postgres.engine.pools import ConnectionPools
from mcp_postgres.engine.query.pages import ResultPages
from mcp_postgres.policy import ROLE, CallSetting, Changes, Migration, ReadStatement, SettingStatement, Writes
from mcp_postgres.statement_splitter import strip_leading_comments

__all__ = ["run_change"]

# Rows of a change that are shown at once.
_MAX_RETURNED_ROWS = 50

_HAS_TEMPORARY_OBJECTS = (
    "SELECT 1::text WHERE pg_my_temp_schema() <> 0 AND ("
    + " OR ".join(
        f"EXISTS (SELECT 1 FROM {name} WHERE {column} = pg_my_temp_schema())"
        for name, column in (("pg_class", "relnamespace"), ("pg_proc", "pronamespace"), ("pg_type", "typnamespace"))
    )
    + ")"
)

# Statements whose effects on definitions the catalog shows; of a role it hides the password.
_VISIBLE_IN_CATALOG = re.compile(r"(?!ALTER ROLE)(?:CREATE|ALTER|DROP|COMMENT|GRANT|REVOKE|SET)\b")
_IN_TRANSACTION = "25001"


_OPTION = re.compile(r'[(,]\s*"?(\w+)"?\s*=')


def _named_options(request: Changes) -> set[str]:
    """Return the names that stand before `=` in a list of a statement, where options of a column would stand."""
    names: set[str] = set()
    for part in request.parts:
        names.update(_OPTION.findall(part.sql))
    return names


async def run_change(pools: ConnectionPools, pages: ResultPages, request: Changes, *, dry_run: bool) -> Change:
    """Run statements in one transaction, and commit what they did unless they are tried only.

    Raises:
        Problem: one of them is of another kind, has effects beyond its kind, or fails; nothing is changed then. Of
            statements that are only tried it shows what those before it did.
    """
    is_tried_as_role = isinstance(request, Writes) and request.role is not None
    is_tried_only = dry_run or is_tried_as_role or request.is_rolled_back
    completed_steps: list[Step] = []
    try:
        result = await _run_explained(pools, pages, request, completed_steps, dry_run=is_tried_only)
    except Problem as problem:
        if not is_tried_only or not completed_steps or len(request.parts) == 1:
            raise
        raise show_completed_steps(problem, completed_steps) from problem
    if is_tried_as_role:
        # The role may see other rows.
        return result
    if not is_tried_only and any(step.rows != 0 for step in result.steps):
        # The rows are no more those in which a statement found nothing.
        return result
    return replace(result, steps=await _explain_empty_steps(pages, request, result.steps))


async def _run_explained(
    pools: ConnectionPools, pages: ResultPages, request: Changes, completed_steps: list[Step], *, dry_run: bool
) -> Change:
    """Run statements; a problem says what was meant by an unknown name, and whose key a row has."""
    change = run_shielded(_run_change(pools, pages, request, completed_steps, dry_run=dry_run))
    is_schema = isinstance(request, Migration)
    try:
        return await pools.run_with_suggestion(request.database, request.sql, change, is_schema=is_schema)
    except DuplicateKey as duplicate:
        raise await explain_duplicate(pools, request.database, duplicate) from duplicate


async def _explain_empty_steps(pages: ResultPages, request: Changes, steps: Sequence[Step]) -> Sequence[Step]:
    """Return the steps with notes on values that they asked for in vain, up to the first that changed something."""
    explained: list[Step] = []
    for part, step in zip(request.parts, steps, strict=True):
        if step.rows != 0 or step.action not in (*ROW_VERBS, "SELECT"):
            break
        notes = await pages.explain_nothing_found(part.database, part.sql)
        explained.append(replace(step, detail=", ".join(filter(None, [step.detail, *notes]))))
    return [*explained, *steps[len(explained) :]]


async def _run_change(
    pools: ConnectionPools, pages: ResultPages, request: Changes, completed_steps: list[Step], *, dry_run: bool
) -> Change:
    """Run statements in one transaction; `completed_steps` gets what each did, whatever fails behind it."""
    async with pools.session(request.database, writes=True) as session:
        run = _ChangeRun(session, request, dry_run=dry_run, pages=pages, limit=_MAX_RETURNED_ROWS)
        await run.start()
        try:
            await run.run_statements(completed_steps)
        except _NonTransactional as statement:
            tag = statement.tag
        else:
            return await run.finish(completed_steps)
    return await run_non_transactional(pools.of(request.database), request.parts[0], pools.limits, tag)


class _NonTransactional(Exception):
    """The only statement can't be part of a transaction, and is to run alone."""

    def __init__(self, tag: str) -> None:
        super().__init__(tag)
        self.tag = tag


def _non_transactional_tag(error: Exception) -> str | None:
    """Return what PostgreSQL calls the statement, if it refused it for being in a transaction."""
    if not isinstance(error, psycopg.Error) or error.sqlstate != _IN_TRANSACTION:
        return None
    match = NON_TRANSACTIONAL.match(error.diag.message_primary or "")
    if match is None:
        return None
    return match[1]


class _ChangeRun:
    """Statements under way in one transaction."""

    def __init__(self, session: Session, request: Changes, *, dry_run: bool, pages: ResultPages, limit: int) -> None:
        self.session = session
        self.request = request
        self.dry_run = dry_run
        self.rows = RowStatements(session, request, pages, limit, is_tried=dry_run)
        self.changes_schema = isinstance(request, Migration)
        self.row_changes = RowChanges(session)
        self.effects: Effects | None = None
        if dry_run or self.changes_schema:
            self.effects = Effects(session, self.changes_schema)
        self.transaction_id = ""
        self.warnings: list[str] = []

    async def start(self) -> None:
        """Look before the first statement."""
        session = self.session
        request = self.request
        if isinstance(request, Migration) and not request.admin and can_reach_server(session):
            raise Refused(
                f"The role {session.role.explain_judging()}: `edit_schema` could reach files and programs by what "
                "it defines.",
                SCHEMA_FIX,
            )
        if isinstance(request, Writes) and request.role is not None:
            await check_may_act(session, request.role)
            session.acting_role = quote_identifier(request.role)
        self.transaction_id = await session.fetch_value(READ_TRANSACTION_ID) or ""
        options = " ".join(sorted(_named_options(request)))
        if options:
            await session.fetch_value("SELECT pg_catalog.set_config($1, $2, true)", NAMED_OPTIONS_SETTING, options)
        if self.effects is None:
            await self.row_changes.start()
        else:
            await self.effects.start()
        await session.run("SAVEPOINT mcp_before")

    async def run_statements(self, steps: list[Step]) -> None:
        """Run all statements, and add to `steps` what each of them did.

        Raises:
            Problem: one of them fails.
            _NonTransactional: the only one has to run alone.
        """
        for number, part in enumerate(self.request.parts, 1):
            try:
                steps.append(await self._run_statement(part))
            except (psycopg.Error, Problem) as error:
                raise self._explain_failure(number, error) from error

    def _explain_failure(self, number: int, error: psycopg.Error | Problem) -> Exception:
        count = len(self.request.parts)
        tag = _non_transactional_tag(error)
        if count == 1 and tag is not None:
            if not self.dry_run:
                return _NonTransactional(tag)
            return Refused(
                f"{tag} can't be tried: it runs outside of transactions.", "Send it alone, without `dry_run`."
            )
        if tag is not None:
            problem = Refused(f"{tag} can't be part of a transaction.", "Send it by a call of its own.")
        elif isinstance(error, Problem):
            problem = error
        else:
            problem = to_problem(error, self.request.database.name)
        if count == 1:
            return problem
        return locate_problem(problem, f"Statement {number} of {count} failed, and nothing was changed: ")

    async def _run_statement(self, part: ReadStatement) -> Step:
        began = time.monotonic()
        self.session.take_warnings()
        step = await self._dispatch(part)
        self.warnings += self.session.take_warnings()
        if self.effects is None:
            return step
        await use_catalog_path(self.session)
        locked = await self.effects.record_statement(began)
        if step.action in MAINTENANCE_TAGS and locked:
            return Step(step.action, detail=", ".join(locked))
        return step

    async def _dispatch(self, part: ReadStatement) -> Step:
        """Run a statement as what its first word says."""
        if isinstance(part, SettingStatement):
            return await self._set(part.setting)
        head = strip_leading_comments(part.sql)
        request = self.request
        if isinstance(request, Migration) and not is_row_statement(head):
            if self.session.acting_role is not None:
                raise Refused(
                    f"{quote(head.split()[0])} changes more than rows, which is not tried as another role.",
                    "Write `RESET ROLE;` before it.",
                )
            return await run_schema_statement(self.session, part, head, is_admin=request.admin, is_dry_run=self.dry_run)
        return await self.rows.run(part, head)

    async def _set(self, setting: CallSetting) -> Step:
        """Set what holds for the statements behind this one; what runs as another role is only tried."""
        if setting.name == ROLE and not self.dry_run:
            raise Refused("Another role may only be tried.", "Set `dry_run`.")
        await apply_call_setting(self.session, setting)
        return Step(f"SET {setting.name}")

    async def finish(self, steps: Sequence[Step]) -> Change:
        """Look at what the statements did, and keep it or not."""
        try:
            return await self._finish(steps)
        except psycopg.Error as error:
            name = self.request.database.name
            if self.session.in_doubt:
                raise in_doubt_problem(name) from error
            raise to_problem(error, name) from error

    async def _finish(self, steps: Sequence[Step]) -> Change:
        session = self.session
        session.take_warnings()
        await session.run(CHECK_CONSTRAINTS)
        self.warnings += session.take_warnings()
        await use_catalog_path(session)
        await self._check_allowed_effects(steps)
        statement_rows = _count_changed_rows(steps)
        sql = " ".join(part.sql for part in self.request.parts)
        if self.effects is None:
            findings = await self.row_changes.finish(
                statement_rows=statement_rows, sql=sql, has_truncated=any(map(_is_truncate, steps))
            )
            await session.commit(COMMIT)
            return Change(steps, self.dry_run, findings=[*self._describe_warnings(), *findings])
        objects, findings = await self.effects.finish(
            wants_undo=self.dry_run and self.changes_schema, statement_rows=statement_rows, sql=sql
        )
        findings = [*self._describe_warnings(), *findings]
        changed_objects = self._select_reported(objects, steps)
        if not self.dry_run:
            await session.commit(COMMIT)
            return Change(steps, self.dry_run, changed_objects, findings=self._describe_warnings())
        if any(step.action != "EXPLAIN" for step in steps):
            findings = [*describe_foreign_writes(await read_foreign_writes(session)), *findings]
        samples: Sequence[Sample] = ()
        if not session.audit.closed and not session.audit.visible.schema:
            samples = await self.effects.samples(keep="mcp_before")
        undo: Sequence[str] | None = ()
        if self.changes_schema:
            undo = _select_undo(self.effects, steps)
        await session.run("ROLLBACK")
        return Change(steps, self.dry_run, changed_objects, samples, findings, undo)

    def _describe_warnings(self) -> list[tuple[str, Sequence[str]]]:
        if not self.warnings:
            return []
        return [("Warnings:", self.warnings)]

    def _select_reported(self, objects: Sequence[str], steps: Sequence[Step]) -> Sequence[str] | None:
        """Return the objects that changed, where the answer says so: not that maintenance changed none."""
        if not self.changes_schema:
            return None
        if not objects and all(step.action in MAINTENANCE_TAGS for step in steps):
            return None
        return objects

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
        # TRUNCATE gives each table another file, which is told in this catalog.
        truncates = list(map(_is_truncate, steps))
        if catalogs == "pg_class" and all(truncates):
            return
        if catalogs == "pg_class" and any(truncates):
            raise Refused(
                "Beside TRUNCATE it can't be told whether other statements change more than rows.",
                "Send TRUNCATE by a call of its own, or use DELETE.",
            )
        if catalogs:
            raise Refused(f"It would change more than rows: {quote(catalogs)}.", "`edit_schema` changes the schema.")


def _is_truncate(step: Step) -> bool:
    return step.action == "TRUNCATE TABLE"


def _count_changed_rows(steps: Sequence[Step]) -> int:
    """Return how many rows the statements themselves say they changed."""
    return sum(step.rows or 0 for step in steps if step.action in ROW_VERBS)


def _select_undo(effects: Effects, steps: Sequence[Step]) -> Sequence[str] | None:
    """Return what undoes a change of the schema; None where it does more than the catalog shows."""
    known_actions = MAINTENANCE_TAGS | {*ROW_VERBS, "EXPLAIN"}
    for step in steps:
        if step.action not in known_actions and not _VISIBLE_IN_CATALOG.match(step.action):
            return None
    if effects.changes_rows or not effects.has_counted_rows:
        return None
    return effects.undo
