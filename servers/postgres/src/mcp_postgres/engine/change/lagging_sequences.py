"""Finds sequences that are behind their columns: the next row that leaves a number to one takes a number that is there.

Whoever inserts numbers of their own, by an import or a restore, leaves the sequence where it was.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import psycopg

from mcp_batteries.errors import Invalid, Problem, quote
from mcp_postgres.engine.admission.statements import judge
from mcp_postgres.engine.catalog.relation_sql import QUALIFIED_NAME_OF
from mcp_postgres.engine.connection.errors import DuplicateKey
from mcp_postgres.engine.connection.session import Session, fetch_json, use_catalog_path
from mcp_postgres.engine.pools import ConnectionPools
from mcp_postgres.policy import Database, internal_statement

__all__ = ["LaggingSequence", "explain_duplicate", "find_lagging_sequences"]

_OID_OF_TABLE = "SELECT pg_catalog.to_regclass(format('%I.%I', $1::text, $2::text))::oid::text"
# Unique columns of a table, or of the one that it is a partition of, whose numbers come from a sequence: as an identity
# or by their default. Where an index begins with the column, its last number is found at once.
_NUMBERED_COLUMNS = f"""
SELECT coalesce(json_agg(json_build_object('name', a.attname, 'spelled', quote_ident(a.attname), 'table',
    CASE WHEN c.relkind = 'r' THEN 'ONLY ' ELSE '' END || {QUALIFIED_NAME_OF.format(oid="c.oid")},
    'sequence', {QUALIFIED_NAME_OF.format(oid="s.seqrelid")}, 'step', s.seqincrement,
    'is_settable', has_sequence_privilege(s.seqrelid, 'UPDATE'))), '[]')::text
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
JOIN pg_sequence s ON s.seqrelid IN (
    SELECT d.objid FROM pg_depend d WHERE a.attidentity <> '' AND d.classid = 'pg_class'::regclass
        AND d.refclassid = 'pg_class'::regclass AND d.refobjid = c.oid AND d.refobjsubid = a.attnum AND d.deptype = 'i'
    UNION ALL SELECT d.refobjid FROM pg_depend d JOIN pg_attrdef f ON f.oid = d.objid
        WHERE d.classid = 'pg_attrdef'::regclass AND d.refclassid = 'pg_class'::regclass
        AND f.adrelid = c.oid AND f.adnum = a.attnum)
WHERE c.oid = coalesce(pg_partition_root($1::oid::regclass), $1::oid::regclass) AND EXISTS (SELECT FROM pg_index i
    WHERE i.indrelid = c.oid AND i.indisunique AND i.indkey[0] = a.attnum AND i.indpred IS NULL)
"""


class LaggingSequence(NamedTuple):
    """A sequence that is behind the numbers in its column.

    Attributes:
        column: its name.
        remedy: what brings the sequence up, as half a sentence.
    """

    column: str
    remedy: str


async def explain_duplicate(
    pools: ConnectionPools, database: Database, duplicate: DuplicateKey, *, filled_columns: Collection[str] = ()
) -> Problem:
    """Return the problem of a row that is there already, with the sequence that may have drawn its number.

    Args:
        filled_columns: those that drew none, in lower case.
    """

    async def find(session: Session) -> list[LaggingSequence]:
        oid = await session.fetch_value(_OID_OF_TABLE, duplicate.schema, duplicate.table)
        if oid is None:
            return []
        return await find_lagging_sequences(session, database, oid)

    try:
        lagging = await pools.within(database, find)
    except (Problem, psycopg.Error):
        # What failed first is what the caller has to know.
        return duplicate
    advice = [
        f"If {quote(column)} was left to its sequence: that is behind the rows; {remedy}."
        for column, remedy in lagging
        if column.lower() not in filled_columns
    ]
    return Invalid(duplicate.failure, " ".join([*advice, duplicate.fix]))


async def find_lagging_sequences(
    session: Session, database: Database, table_oid: str, columns: Collection[str] | None = None
) -> list[LaggingSequence]:
    """Return the sequences of a table that are behind its rows, as far as the role may know.

    Args:
        columns: only those of these columns.
    """
    lagging: list[LaggingSequence] = []
    numbered: list[dict[str, Any]] = await fetch_json(session, _NUMBERED_COLUMNS, table_oid)
    for column in numbered:
        if columns is None or column["name"] in columns:
            extreme = "max" if column["step"] > 0 else "min"
            last_number = f"(SELECT pg_catalog.{extreme}({column['spelled']}) FROM {column['table']})"
            if await _is_behind(session, database, column, last_number):
                sequence = column["sequence"].replace("'", "''")
                table = column["table"].removeprefix("ONLY ")
                sql = f"SELECT setval('{sequence}', (SELECT {extreme}({column['spelled']}) FROM {table}))"
                lagging.append(LaggingSequence(column["name"], _describe_remedy(session, column, sql)))
    return lagging


def _describe_remedy(session: Session, column: dict[str, Any], sql: str) -> str:
    """Return what brings a sequence up, by whom: where a part is served, functions of sequences are closed."""
    if column["is_settable"] and not session.audit.visible.schema:
        return f"`{sql}` in `write_rows` brings it up"
    return f"the operator can bring it up by `{sql}`"


async def _is_behind(session: Session, database: Database, column: dict[str, Any], last_number: str) -> bool:
    """Return whether a sequence would draw a number that its column has passed; no where the role can't know."""
    comparison = "<=" if column["step"] > 0 else ">="
    sql = (
        f"SELECT (s.last_value + CASE WHEN s.is_called THEN {column['step']} ELSE 0 END {comparison} {last_number})"
        f"::pg_catalog.text FROM {column['sequence']} s"
    )
    await session.run("SAVEPOINT mcp_sequence")
    try:
        await judge(session, internal_statement(database, sql))
        (answer,) = await session.run_pipeline((sql, ()))
        (row,) = answer.rows()
        return row[0] == "true"
    except (Problem, psycopg.Error):
        return False
    finally:
        await session.run("ROLLBACK TO SAVEPOINT mcp_sequence")
        await use_catalog_path(session)
