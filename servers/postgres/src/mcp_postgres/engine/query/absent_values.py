"""Tells why a statement found nothing: it asks for a value that no row has, or policies hide the rows from the role."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

from mcp_batteries.errors import Problem
from mcp_batteries.server.calling.results import to_compact_json
from mcp_batteries.sql.language.compared_values import (
    MAX_KNOWN_VALUES,
    MAX_VALUE_CHARACTERS,
    Comparison,
    describe_absent_values,
    find_comparisons,
    find_schemas_of,
)
from mcp_batteries.sql.language.identifiers import quote_identifier
from mcp_batteries.sql.results.rows import RowPage, to_one_line
from mcp_postgres.engine.audit.visible_schema import RELATION_LISTED
from mcp_postgres.engine.catalog.relation_sql import IS_READABLE, USER_SCHEMA
from mcp_postgres.engine.connection.result_values import MASK
from mcp_postgres.engine.connection.session import Session, fetch_json, use_role_path
from mcp_postgres.policy import Database, ReadStatement, internal_statement

__all__ = ["find_absent_values", "find_hiding_policies"]

# For all tables or columns of a statement together.
_SECONDS = 0.3
_MAX_TABLE_BYTES = 32_000_000
_MAX_COLUMNS = 4
# Columns of all tables whose names are anywhere in the statement, as parts of words too.
_MAX_CANDIDATES = 100
_SPELLED = """CASE WHEN pg_table_is_visible(c.oid) THEN quote_ident(c.relname)
        ELSE format('%I.%I', n.nspname, c.relname) END"""
# Columns of numbers, and of types whose values are equal where their texts are: those named in $2, of tables that $1
# names, and that no others inherit, which may be large or on another server. The size, a look at a file, comes last.
_COLUMNS = f"""
SELECT coalesce(json_agg(json_build_array(x.spelled, x.oid::text, x.nspname, x.relname, x.column, x.attname,
    x.is_number)), '[]')::text FROM (
    SELECT {_SPELLED} AS spelled, c.oid, n.nspname, c.relname, quote_ident(a.attname) AS column, a.attname,
        t.typcategory = 'N' AS is_number
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_collation l ON l.oid = a.attcollation
    WHERE strpos(lower($1), lower(c.relname)) > 0 AND c.relkind IN ('r', 'm') AND NOT c.relhassubclass
    AND {USER_SCHEMA} AND {RELATION_LISTED} AND {IS_READABLE} AND a.attnum > 0 AND NOT a.attisdropped
    AND lower(a.attname) IN (SELECT lower(name) FROM json_array_elements_text($2::json) name)
    AND (t.typtype = 'e' OR t.oid = ANY (ARRAY['text', 'varchar', 'int2', 'int4', 'int8']::regtype[]))
    AND coalesce(l.collisdeterministic, true) AND pg_relation_size(c.oid) < {_MAX_TABLE_BYTES}
    ORDER BY 1 LIMIT {_MAX_CANDIDATES}) x
"""
# Tables that the text $1 names, of which policies may hide rows from the role, and whether one lets it see any.
_FILTERED_TABLES = f"""
SELECT coalesce(json_agg(json_build_array(x.spelled, x.oid::text, x.nspname, x.relname, x.shows_rows)), '[]')::text
FROM (SELECT {_SPELLED} AS spelled, c.oid, n.nspname, c.relname, EXISTS (SELECT 1 FROM pg_policy p
        WHERE p.polrelid = c.oid AND p.polpermissive AND p.polcmd IN ('r', '*')
        AND EXISTS (SELECT 1 FROM unnest(p.polroles) r (oid) WHERE r.oid = 0 OR pg_has_role(r.oid, 'USAGE'))
    ) AS shows_rows
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relrowsecurity AND strpos(lower($1), lower(c.relname)) > 0 AND c.relkind IN ('r', 'p')
    AND {USER_SCHEMA} AND {RELATION_LISTED} AND {IS_READABLE} AND row_security_active(c.oid)
    ORDER BY 1 LIMIT {_MAX_CANDIDATES}) x
"""
_OID_ON_PATH = "SELECT pg_catalog.to_regclass($1)::pg_catalog.oid"

T = TypeVar("T")
ReadPage = Callable[[ReadStatement], Awaitable[RowPage]]


class _Column(NamedTuple):
    """A column whose values may be told.

    Attributes:
        table: as SQL spells it.
        oid: the table's, in digits.
        schema: the table's, without quotes.
        relation: the table without its schema and without quotes.
        sql_name: the column, as SQL spells it.
        name: the same without quotes.
        is_number: whether its values are integers.
    """

    table: str
    oid: str
    schema: str
    relation: str
    sql_name: str
    name: str
    is_number: bool


class RunWithin(Protocol):
    """Calls a function with a session of the caller's role."""

    def __call__(self, work: Callable[[Session], Awaitable[T]], /) -> Awaitable[T]: ...


async def find_hiding_policies(run_within: RunWithin, sql: str) -> list[str]:
    """Return a note for each table of `sql` of which row security shows the role no row, or maybe not all."""
    try:
        async with asyncio.timeout(_SECONDS):
            return await run_within(partial(_describe_hiding_policies, sql=sql))
    except (TimeoutError, Problem):
        # The result is right without a note.
        return []


async def _describe_hiding_policies(session: Session, sql: str) -> list[str]:
    tables = await fetch_json(session, _FILTERED_TABLES, sql)
    await use_role_path(session)
    notes: list[str] = []
    for spelled, oid, schema, relation, shows_rows in tables:
        if not await _is_named(session, schema, relation, oid, sql):
            continue
        if shows_rows:
            notes.append(
                f"the policies of `{to_one_line(spelled)}` may hide rows from the role, `get_table` shows them"
            )
        else:
            notes.append(f"no policy of `{to_one_line(spelled)}` lets the role see rows")
    return notes[:_MAX_COLUMNS]


async def find_absent_values(run_within: RunWithin, read_page: ReadPage, database: Database, sql: str) -> list[str]:
    """Return a note for each value that a condition of `sql` asks for in vain, of columns with few values.

    Args:
        read_page: runs a statement as the caller's are.
    """
    comparisons = find_comparisons(sql)
    if not comparisons:
        return []
    notes: list[str] = []
    try:
        async with asyncio.timeout(_SECONDS):
            for column in await run_within(partial(_find_columns, sql=sql, comparisons=comparisons)):
                all_values = await _read_values(read_page, database, column)
                for comparison in comparisons:
                    has_name = comparison.column.name.lower() == column.name.lower()
                    if has_name and comparison.column.may_be_of(column.relation, sql):
                        notes.append(_describe_absent(column, comparison, all_values))
    except (TimeoutError, Problem):
        # The result is right without a note.
        pass
    return list(filter(None, notes))


async def _find_columns(session: Session, sql: str, comparisons: Sequence[Comparison]) -> list[_Column]:
    names = to_compact_json([comparison.column.name for comparison in comparisons])
    candidates = [_Column(*row) for row in await fetch_json(session, _COLUMNS, sql, names)]
    await use_role_path(session)
    named: list[_Column] = []
    for column in candidates:
        if await _is_named(session, column.schema, column.relation, column.oid, sql):
            named.append(column)
    return named[:_MAX_COLUMNS]


async def _is_named(session: Session, schema: str, relation: str, oid: str, sql: str) -> bool:
    """Return whether a statement means a relation, with its schema or by the search path."""
    schemas = find_schemas_of(relation, sql)
    if schema.casefold() in schemas:
        return True
    return "" in schemas and await session.fetch_value(_OID_ON_PATH, quote_identifier(relation)) == oid


async def _read_values(read_page: ReadPage, database: Database, column: _Column) -> list[str | None]:
    """Return the first different values of a column, as texts; of long ones only so much that they are seen to be."""
    value = f"pg_catalog.left({column.sql_name}::text, {MAX_VALUE_CHARACTERS + 1})"
    sql = f"SELECT DISTINCT {value} FROM {column.table} LIMIT {MAX_KNOWN_VALUES + 1}"
    page = await read_page(internal_statement(database, sql))
    rows: list[list[Any]] = [json.loads(line) for line in page.lines.split("\n") if line]
    return [cell for (cell,) in rows]


def _describe_absent(column: _Column, comparison: Comparison, all_values: Sequence[str | None]) -> str:
    """Return a note on the literals that are no values of the column; empty where all are, or there is none to tell."""
    if MASK in all_values:
        return ""
    values = {_to_comparable(value, is_number=column.is_number) for value in all_values if value is not None}
    absent: list[str] = []
    for literal in dict.fromkeys(comparison.literals):
        value = _to_comparable(_read_literal(literal), is_number=column.is_number)
        if value is not None and value not in values:
            absent.append(literal)
    are_texts = comparison.literals[0].startswith("'")
    sql_values = [_spell_value(value, is_text=are_texts) for value in all_values]
    return to_one_line(describe_absent_values(f"{column.table}.{column.sql_name}", absent, sql_values))


def _to_comparable(text: str, *, is_number: bool) -> str | Decimal | None:
    """Return a value that is equal where PostgreSQL takes two texts for one value; None where that isn't known."""
    if not is_number:
        return text
    try:
        return Decimal(text)
    except InvalidOperation:
        return None


def _spell_value(value: str | None, *, is_text: bool) -> str:
    if value is None:
        return "NULL"
    if not is_text:
        return value
    escaped = value.replace("'", "''")
    return f"'{escaped}'"


def _read_literal(literal: str) -> str:
    """Return a literal as the text that PostgreSQL makes of such a value."""
    if literal.startswith("'"):
        return literal[1:-1].replace("''", "'")
    return literal
