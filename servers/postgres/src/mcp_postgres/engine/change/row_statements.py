"""Runs statements that change rows, admitted by `PREPARE`: SELECT, INSERT, UPDATE, DELETE and MERGE; and TRUNCATE.

An EXPLAIN among them shows the plan of such a statement, after what stands before it; with ANALYZE that of a query.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import psycopg

from mcp_batteries.errors import Invalid, Problem, Refused, quote
from mcp_batteries.sql.results.changes import Step
from mcp_batteries.sql.results.rows import RowPage
from mcp_postgres.engine.admission.explained import Explained, parse_explain
from mcp_postgres.engine.admission.statements import gate_statements, is_data_modifying, judge, result_columns
from mcp_postgres.engine.catalog.relation_sql import QUALIFIED_NAME
from mcp_postgres.engine.change.foreign_writes import read_foreign_writes, refuse_untried_write
from mcp_postgres.engine.connection.errors import to_problem
from mcp_postgres.engine.connection.pipeline import Answer
from mcp_postgres.engine.connection.result_values import RowWriter
from mcp_postgres.engine.connection.session import Session, fetch_json, keep_settings_apart, use_catalog_path
from mcp_postgres.engine.query.pages import ResultPages
from mcp_postgres.policy import Changes, Migration, ReadStatement, inner_statement
from mcp_postgres.statement_splitter import strip_leading_comments

__all__ = ["ROW_VERBS", "RowStatements", "is_row_statement"]

_CELL_CHARACTERS = 500
# Of a plan, which nobody can ask for in parts: in JSON it is one cell.
_PLAN_CHARACTERS = 20_000
ROW_VERBS = ("INSERT", "UPDATE", "DELETE", "MERGE")
_PREPARE = "PREPARE mcp_gate AS "
_ROW_STATEMENT = re.compile(r"(?:INSERT|UPDATE|DELETE|MERGE|SELECT|WITH|VALUES|TABLE|TRUNCATE|EXPLAIN)\b|\(", re.I)
_QUERY = re.compile(r"(?:SELECT|WITH|VALUES|TABLE)\b|\(", re.I)
_RUN_BY_EXPLAIN = "EXPLAIN ANALYZE runs what it explains, which would change something."
_WITHOUT_ANALYZE = "Leave out ANALYZE."
_TRUNCATE = re.compile(r"TRUNCATE\b", re.I)
_SYNTAX_ERROR = "42601"
# The tables that TRUNCATE has locked although policies hide rows of them from the role; none of them holds for it. Each
# has the number of its file, of which TRUNCATE makes a new one: an earlier statement may have locked tables too.
_LOCKED_BESIDE_POLICIES = f"""
SELECT coalesce(json_agg(json_build_array({QUALIFIED_NAME}, c.relfilenode::text) ORDER BY c.oid), '[]')::text
FROM pg_locks l JOIN pg_class c ON c.oid = l.relation JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE l.pid = pg_backend_pid() AND l.mode = 'AccessExclusiveLock' AND c.relkind IN ('r', 'p')
    AND row_security_active(c.oid)
"""


def is_row_statement(head: str) -> bool:
    """Return whether a statement begins as those do that change or read rows."""
    return _ROW_STATEMENT.match(head) is not None


class RowStatements:
    """The statements of one change that are about rows.

    Args:
        session: the transaction.
        request: the change.
        pages: keeps what the statements return, for later pages.
        limit: rows that are returned at once.
        is_tried: whether all is rolled back.
    """

    def __init__(self, session: Session, request: Changes, pages: ResultPages, limit: int, *, is_tried: bool) -> None:
        self.is_tried = is_tried
        self.session = session
        self.request = request
        self.pages = pages
        self.limit = limit

    async def run(self, part: ReadStatement, head: str) -> Step:
        """Run one statement, which begins with `head` behind its comments."""
        if isinstance(self.request, Migration) and not self.request.rows:
            raise Refused(
                f"{quote(head.split()[0])} may change rows, which this server was not opened for.",
                "To only look use `query_rows`. The operator can start it with `--write` too.",
            )
        explained = parse_explain(head)
        if explained is not None:
            return await self._explain(part, explained)
        if _TRUNCATE.match(head):
            return await self._truncate(part)
        masked = await self._admit(part)
        if self.is_tried:
            refuse_untried_write(await read_foreign_writes(self.session))
        keep_settings_apart(self.session, part.sql)
        await self._set_role(acting=True)
        (answer,) = await self.session.run_pipeline((part.sql, part.parameters))
        verb = _read_verb(answer)
        returned = self._read_returned_rows(part, answer, masked)
        await self._set_role(acting=False)
        return Step(verb, answer.count, returned=returned)

    async def _truncate(self, part: ReadStatement) -> Step:
        """Empty tables, with the rows that the role does not see."""
        self._check_may_truncate()
        keep_settings_apart(self.session, part.sql)
        await self._set_role(acting=True)
        before: list[list[str]] = await fetch_json(self.session, _LOCKED_BESIDE_POLICIES)
        (answer,) = await self.session.run_pipeline((part.sql, part.parameters))
        after: list[list[str]] = await fetch_json(self.session, _LOCKED_BESIDE_POLICIES)
        await self._set_role(acting=False)
        emptied = [name for name, file in after if [name, file] not in before]
        return Step(answer.tag, detail=_describe_hidden_rows(emptied))

    async def _explain(self, part: ReadStatement, explained: Explained) -> Step:
        """Show the plan of a statement, which is judged as if it were to run; a query may run.

        Raises:
            Refused: it is to run, and would change something.
        """
        if explained.runs and not _QUERY.match(strip_leading_comments(explained.inner)):
            raise Refused(_RUN_BY_EXPLAIN, _WITHOUT_ANALYZE)
        inner = inner_statement(part, explained.inner)
        await self._admit(inner)
        keep_settings_apart(self.session, explained.inner)
        await self._set_role(acting=True)
        if explained.runs:
            answer = await self._analyze(inner, explained)
        else:
            (answer,) = await self.session.run_pipeline((explained.sql, part.parameters))
        columns = result_columns(answer)
        writer = RowWriter(columns, _PLAN_CHARACTERS)
        returned = self.pages.page_of_answer(part, columns, writer, answer, limit=self.limit)
        await self._set_role(acting=False)
        return Step("EXPLAIN", returned=returned)

    async def _analyze(self, inner: ReadStatement, explained: Explained) -> Answer:
        """Run a query by EXPLAIN, in a part of the transaction that is READ ONLY and is taken back.

        PostgreSQL takes it for a cursor first, which SELECT INTO can't be: EXPLAIN would make the table.

        Raises:
            Refused: it would change something.
        """
        await self.session.run("SAVEPOINT mcp_analyze; SET TRANSACTION READ ONLY")
        try:
            await self.session.run_pipeline(*gate_statements(inner))
        except (psycopg.errors.SyntaxError, psycopg.errors.FeatureNotSupported) as error:
            # PostgreSQL could prepare it, so that a syntax error is that of INTO, or of a WITH before another verb.
            if isinstance(error, psycopg.errors.SyntaxError) or is_data_modifying(error):
                raise Refused(_RUN_BY_EXPLAIN, _WITHOUT_ANALYZE) from error
            raise
        try:
            (answer,) = await self.session.run_pipeline((explained.sql, inner.parameters))
        except psycopg.errors.ReadOnlySqlTransaction as error:
            raise Refused(_RUN_BY_EXPLAIN, _WITHOUT_ANALYZE) from error
        await self.session.run("ROLLBACK TO SAVEPOINT mcp_analyze; RELEASE SAVEPOINT mcp_analyze")
        return answer

    def _check_may_truncate(self) -> None:
        """Raise `Refused` where statements are judged: PostgreSQL shows no tree of TRUNCATE."""
        audit = self.session.audit
        if audit.closed:
            explanation = f"The role {self.session.role.explain_judging()}"
        elif audit.visible.schema:
            explanation = "A part of the database is served"
        else:
            return
        raise Refused(f"{explanation}: TRUNCATE can't be judged.", "DELETE does the same.")

    async def _admit(self, part: ReadStatement) -> frozenset[int]:
        """Have PostgreSQL prepare the statement, which it does with those about rows only.

        Returns:
            The outputs that have to be masked.
        """
        session = self.session
        try:
            await use_catalog_path(session)
            masked = await judge(session, part, allow_sequences=True)
            await session.run_pipeline((_PREPARE + part.sql, ()), ("DEALLOCATE mcp_gate", ()))
        except psycopg.Error as error:
            raise _explain_refusal(part, error) from error
        return masked

    async def _set_role(self, *, acting: bool) -> None:
        """Become the role as which it is tried, or oneself again."""
        session = self.session
        if session.acting_role is None:
            return
        role = session.acting_role if acting else session.caller_role
        if role:
            await session.run(f"SET LOCAL ROLE {role}")
        else:
            await session.run("RESET ROLE")

    def _read_returned_rows(self, part: ReadStatement, answer: Answer, masked: frozenset[int]) -> RowPage | None:
        if not answer.columns:
            return None
        columns = result_columns(answer, masked)
        writer = RowWriter(columns, _CELL_CHARACTERS)
        return self.pages.page_of_answer(part, columns, writer, answer, limit=self.limit)


def _explain_refusal(part: ReadStatement, error: psycopg.Error) -> Problem:
    problem = to_problem(error, part.database.name, prefix_length=len(_PREPARE))
    if error.sqlstate != _SYNTAX_ERROR or is_row_statement(strip_leading_comments(part.sql)):
        return problem
    if isinstance(problem, Refused):
        return problem
    return Invalid(problem.failure, "This takes INSERT, UPDATE, DELETE, MERGE or TRUNCATE.")


def _describe_hidden_rows(tables: Sequence[str]) -> str:
    """Return that rows are gone which the role does not see; empty where none can be."""
    if not tables:
        return ""
    return f"with the rows that policies hide from the role, of which no sample shows any: {', '.join(tables)}"


def _read_verb(answer: Answer) -> str:
    """Return what PostgreSQL says that it did.

    Raises:
        Refused: it did more than change rows.
    """
    verb = answer.tag.split()[0] if answer.tag else ""
    is_query = verb == "SELECT" and bool(answer.columns)
    if verb not in ROW_VERBS and not is_query:
        raise Refused(f"It would do more than change rows: `{verb}`.", "`edit_schema` changes the schema.")
    return verb
