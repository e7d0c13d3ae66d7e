"""Runs statements that define or tend the schema, after PostgreSQL has said what each of them is.

What defines it is tried in a part of the transaction that is READ ONLY first, where PostgreSQL refuses it by name
before it does anything. What tends it (VACUUM, REINDEX) is not a change for PostgreSQL, which would just do it there,
so its name is checked afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import psycopg

from mcp_batteries.errors import Invalid, Refused, quote
from mcp_batteries.sql.results.changes import Step
from mcp_postgres.engine.admission.statements import result_columns
from mcp_postgres.engine.connection.errors import to_problem
from mcp_postgres.engine.connection.pipeline import Answer
from mcp_postgres.engine.connection.result_values import RowWriter
from mcp_postgres.engine.connection.session import Session, use_role_path
from mcp_postgres.policy import ReadStatement

__all__ = ["MAINTENANCE_TAGS", "run_schema_statement"]

_CELL_CHARACTERS = 500
_SCHEMA_STATEMENT = re.compile(r"(?:CREATE|ALTER|DROP|COMMENT|GRANT|REVOKE|REFRESH|REASSIGN)\b", re.I)
_MAINTENANCE = re.compile(r"(?:VACUUM|ANALYZE|REINDEX)\b", re.I)
_CODE_STATEMENT = re.compile(r"(?:DO|CALL)\b", re.I)
_PLAIN_ROLE = re.compile(r'CREATE\s+(?:ROLE|USER)\s+(?P<name>\w+|"[^"]+")(?:\s+(?:WITH\s+)?(?:NOLOGIN|LOGIN))?', re.I)
_WITHOUT_ROLE = (
    "A dry run can look as a role that is there (SET ROLE), or as the owner whom policies bind too (ALTER TABLE name "
    "FORCE ROW LEVEL SECURITY)."
)
_TAG = re.compile(r"\b(?:CREATE|ALTER|DROP|COMMENT|GRANT|REVOKE|REFRESH|REASSIGN)(?: [A-Z]+)*\b")
_OBJECTS = (
    "TABLE", "INDEX", "VIEW", "MATERIALIZED VIEW", "SEQUENCE", "SCHEMA", "TYPE", "DOMAIN", "FUNCTION", "PROCEDURE",
    "ROUTINE", "AGGREGATE", "TRIGGER", "RULE", "POLICY", "STATISTICS", "COLLATION", "TABLE AS", "DEFAULT PRIVILEGES",
    "CONSTRAINT", "OPERATOR", "CAST",
)  # fmt: skip


def _definition_tags(objects: Iterable[str]) -> set[str]:
    """Return what PostgreSQL calls the statements that define, change and drop these."""
    tags: set[str] = set()
    for name in objects:
        tags |= {f"CREATE {name}", f"ALTER {name}", f"DROP {name}"}
    return tags


_SCHEMA_TAGS = _definition_tags(_OBJECTS) | {"COMMENT", "GRANT", "REVOKE", "REFRESH MATERIALIZED VIEW"}
_ADMIN_TAGS = _definition_tags(("ROLE", "EXTENSION")) | {
    "GRANT ROLE", "REVOKE ROLE", "DROP OWNED", "ALTER EXTENSION UPDATE", "REASSIGN OWNED",
}  # fmt: skip
MAINTENANCE_TAGS = {"VACUUM", "ANALYZE", "REINDEX"}
_CODE_TAGS = {"DO", "CALL"}
_IN_READ_ONLY_TRANSACTION = "25006"


async def run_schema_statement(
    session: Session, part: ReadStatement, head: str, *, is_admin: bool, is_dry_run: bool
) -> Step:
    """Run one statement, which begins with `head` behind its comments.

    A dry run may make a role without rights, as which its other statements look.

    Raises:
        Refused: it reaches beyond the schema, or does another thing than it says.
    """
    await use_role_path(session)
    tag = await _read_tag(session, part, head)
    trial_role = None
    if is_dry_run:
        trial_role = _PLAIN_ROLE.fullmatch(head.strip())
    if trial_role is None:
        _check_tag(tag, is_admin=is_admin)
        answer = await _run_tagged(session, part, tag)
    else:
        answer = await _make_trial_role(session, part, tag, trial_role["name"])
    reported_tag = answer.tag or tag
    if tag in MAINTENANCE_TAGS | _CODE_TAGS and reported_tag != tag:
        raise Refused(f"It would do another thing than {tag}: {quote(reported_tag)}.")
    return _describe_step(answer, tag, reported_tag)


async def _make_trial_role(session: Session, part: ReadStatement, tag: str, name: str) -> Answer:
    """Make a role as which other statements of a dry run look; its maker may become it."""
    grants_itself = session.role.major >= 16
    if grants_itself:
        # Who makes a role may not become it since PostgreSQL 16, unless this says so.
        await session.fetch_value("SELECT pg_catalog.set_config('createrole_self_grant', 'set', true)")
    answer = await _run_tagged(session, part, tag)
    if not grants_itself:
        await session.run(f"GRANT {name} TO CURRENT_USER")
    return answer


async def _run_tagged(session: Session, part: ReadStatement, tag: str) -> Answer:
    try:
        (answer,) = await session.run_pipeline((part.sql, ()))
    except psycopg.errors.InsufficientPrivilege as error:
        if tag != "CREATE ROLE":
            raise
        raise Refused(to_problem(error, part.database.name).failure, _WITHOUT_ROLE) from error
    return answer


def _describe_step(answer: Answer, tag: str, reported_tag: str) -> Step:
    """Return what a statement did: of CALL what it returned, of one that made a table of a query its rows."""
    if tag == "CALL" and answer.columns:
        writer = RowWriter(result_columns(answer), _CELL_CHARACTERS)
        row = answer.first()
        return Step(reported_tag, detail=writer.write(row).strip() if row else "")
    # PostgreSQL tells of what makes a table of a query as of that query.
    if reported_tag.startswith("SELECT "):
        return Step(tag, answer.count)
    return Step(reported_tag)


def _check_tag(tag: str, *, is_admin: bool) -> None:
    """Raise `Refused` for what reaches beyond the schema."""
    admin_tags = _ADMIN_TAGS | _CODE_TAGS
    if tag in _SCHEMA_TAGS | MAINTENANCE_TAGS or (is_admin and tag in admin_tags):
        return
    admin_hint = " or start the server with `--admin`" if tag in admin_tags else ""
    raise Refused(
        f"{quote(tag)} reaches beyond the database's schema.",
        f"The operator can run it with their own tools{admin_hint}.",
    )


async def _read_tag(session: Session, part: ReadStatement, head: str) -> str:
    """Return what PostgreSQL calls the statement."""
    plain_tag = _MAINTENANCE.match(head) or _CODE_STATEMENT.match(head)
    if plain_tag:
        return plain_tag[0].upper()
    if not _SCHEMA_STATEMENT.match(head):
        raise Invalid(
            f"{quote(next(iter(head.split()), ''))} defines nothing.",
            "This takes CREATE, ALTER, DROP, COMMENT, GRANT, REVOKE, REFRESH, REINDEX, ANALYZE and VACUUM; BEGIN "
            "and COMMIT are not needed.",
        )
    tag: re.Match[str] | None = None
    await session.run("SAVEPOINT mcp_tag; SET TRANSACTION READ ONLY")
    try:
        await session.run_pipeline((part.sql, ()))
    except psycopg.Error as error:
        if error.sqlstate == _IN_READ_ONLY_TRANSACTION:
            tag = _TAG.search(error.diag.message_primary or "")
        if tag is None:
            raise to_problem(error, part.database.name) from error
    await session.run("ROLLBACK TO SAVEPOINT mcp_tag; RELEASE SAVEPOINT mcp_tag")
    if tag is None:
        raise Refused("PostgreSQL takes this for no change of the schema: `sql`.", "`query_rows` runs what reads.")
    return tag[0]
