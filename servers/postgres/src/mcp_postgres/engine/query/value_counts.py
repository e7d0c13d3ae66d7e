"""Counts the values of columns and finds their ranges, of few and small tables, as far as there is time."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mcp_batteries.errors import Problem
from mcp_batteries.sql.language.identifiers import quote_identifier
from mcp_postgres.engine.query.pages import ResultPages
from mcp_postgres.models import PROFILED_TABLES, Catalog, ColumnValues, find_lone_tables
from mcp_postgres.policy import Database, internal_statement

__all__ = ["count_values"]

# For all tables of a list together.
_SECONDS = 1.0
# Of a table with its indexes; a larger or wider one is not read.
_MAX_TABLE_BYTES = 32_000_000
_MAX_COLUMNS = 30
# Of all tables of a database together; of more the list would be long.
_MAX_LISTED_COLUMNS = 100
_MAX_ANSWER_BYTES = 1_000_000
_MAX_VALUES = 20
_MAX_VALUE_CHARACTERS = 24
_MAX_VALUES_CHARACTERS = 160
_MAX_BOUND_CHARACTERS = 28
# Characters of a text that are compared; a longer one is never shown whole.
_MAX_READ_CHARACTERS = 60
_KINDS = ("table", "partitioned table")
_BOOLEAN = "boolean"
# Where a text was cut, a space before the cut is inside it.
_FACTS_OF_TEXTS = (
    ", 'least', to_json(min(v))::text, 'greatest', to_json(max(v))::text, 'empty', sum(n) FILTER (WHERE v = ''),"
    f" 'spaced', sum(n) FILTER (WHERE v <> ltrim(v) OR v <> rtrim(v) AND length(v) < {_MAX_READ_CHARACTERS})"
)
_TEXT = re.compile(r"text|character varying(?:\(.+\))?|character\(.+\)")
# PostgreSQL's own types with an order; it puts a schema before the name of any other type.
_NUMBER = re.compile(r"smallint|integer|bigint|numeric(?:\(.+\))?|real|double precision")
_TIME = re.compile(r"date|(?:timestamp|time)(?:\(\d\))? with(?:out)? time zone")


async def count_values(pages: ResultPages, databases: Sequence[Database], catalog: Catalog) -> Catalog:
    """Return a list of tables with the values of their columns, for the role; of many tables the list as it is."""
    deadline = asyncio.get_running_loop().time() + _SECONDS
    by_name = {database.name: database for database in databases}
    entries = [
        replace(entry, objects=await _describe_objects(pages, by_name[entry.name], entry.objects, deadline))
        for entry in catalog.databases
    ]
    return replace(catalog, databases=entries)


async def _describe_objects(
    pages: ResultPages, database: Database, objects: Sequence[Mapping[str, Any]], deadline: float
) -> Sequence[Mapping[str, Any]]:
    if len(objects) > PROFILED_TABLES:
        return objects
    if sum(len(table["columns"] or ()) for table in objects) > _MAX_LISTED_COLUMNS:
        return objects
    lone_tables = find_lone_tables(objects)
    described: list[Mapping[str, Any]] = []
    for table in objects:
        if str(table["spelled"]) in lone_tables:
            table = await _describe_table(pages, database, table, deadline)
        described.append(table)
    return described


async def _describe_table(
    pages: ResultPages, database: Database, table: Mapping[str, Any], deadline: float
) -> Mapping[str, Any]:
    """Return a table with what its rows say; as it is where they are not read."""
    details = table.get("details")
    if not details or not _is_small_table(table) or asyncio.get_running_loop().time() > deadline:
        return table
    sql = _build_query(str(table["spelled"]), details["columns"])
    statement = internal_statement(database, sql)
    answer_row = pages.read_statement(statement, limit=1, max_bytes=_MAX_ANSWER_BYTES, max_cell=_MAX_ANSWER_BYTES)
    try:
        async with asyncio.timeout_at(deadline):
            page = await answer_row
    except (TimeoutError, Problem):
        # The role may read only some columns, or not run what a policy calls.
        return table
    (answer,) = json.loads(page.lines)
    row_count, *facts = json.loads(answer)
    columns = [
        {**column, "counted": _read_facts(column_facts, row_count)}
        for column, column_facts in zip(details["columns"], facts, strict=True)
    ]
    return {**table, "counted": row_count, "details": {**details, "columns": columns}}


def _is_small_table(table: Mapping[str, Any]) -> bool:
    """Return whether all rows that a query of a table reads are its own, those of partitions too, and are few."""
    if table["kind"] not in _KINDS or table["locked"] or table["filtered"] or table["bytes"] is None:
        return False
    if table["details"]["reads_others"] and table["kind"] == "table":
        return False
    if table["details"]["has_foreign_partitions"]:
        # Their size is not known here, and reading them is work for another server.
        return False
    return table["bytes"] <= _MAX_TABLE_BYTES and len(table["details"]["columns"]) <= _MAX_COLUMNS


def _build_query(table: str, columns: Sequence[Mapping[str, Any]]) -> str:
    """Return SQL for one text, a JSON array: the number of rows, then an object for each column or null."""
    facts = ["count(*)", *(_build_facts(table, column) for column in columns)]
    return f"SELECT json_build_array({', '.join(facts)})::text FROM {table}"


def _build_facts(table: str, column: Mapping[str, Any]) -> str:
    """Return SQL for what is told of a column; only where its values may be few it reads the table once more."""
    if column.get("masked"):
        return "NULL"
    name = quote_identifier(column["name"])
    if _TEXT.fullmatch(column["type"]):
        # A text of another collation takes many times as long to compare.
        return _group_values(table, f'left({name}, {_MAX_READ_CHARACTERS}) COLLATE "C"', _FACTS_OF_TEXTS)
    if column["type"] == _BOOLEAN:
        return _group_values(table, name, "")
    if column["enum"] is not None:
        # Any other way from an enum to text or JSON may be a cast that somebody defined.
        return _group_values(table, f"enum_out({name})::text", "")
    facts = f"'null', count(*) - count({name})"
    if _NUMBER.fullmatch(column["type"]):
        facts += f", 'least', {_build_number(f'min({name})')}, 'greatest', {_build_number(f'max({name})')}"
    elif _TIME.fullmatch(column["type"]):
        # As queries show it: JSON of PostgreSQL's has a T between day and time.
        facts += f", 'least', to_json(min({name})::text)::text, 'greatest', to_json(max({name})::text)::text"
    return f"json_build_object({facts})"


def _build_number(value: str) -> str:
    """Return SQL for a number as JSON; of one with up to 147,455 digits, as a numeric may have, for the first."""
    return f"left(to_json({value})::text, {_MAX_READ_CHARACTERS})"


def _group_values(table: str, value: str, more_facts: str) -> str:
    return (
        f"(SELECT json_build_object('null', sum(n) FILTER (WHERE v IS NULL), 'values', CASE WHEN count(*) <="
        f" {_MAX_VALUES} THEN json_agg(json_build_array(to_json(v)::text, n) ORDER BY n DESC, v) END{more_facts})"
        f" FROM (SELECT {value} AS v, count(*) AS n FROM {table} GROUP BY 1) g)"
    )


def _read_facts(facts: Mapping[str, Any] | None, row_count: int) -> ColumnValues | None:
    """Return what the rows say of a column; None where it is not read."""
    if facts is None:
        return None
    if row_count == 0:
        return ColumnValues(0)
    nulls = facts["null"] or 0
    values = [(value or "null", frequency) for value, frequency in facts.get("values") or ()]
    if _are_worth_listing(values):
        return ColumnValues(nulls, values=[f"{value}:{frequency}" for value, frequency in values])
    others: list[str] = []
    if facts.get("least") is not None:
        others.append(_format_range(facts["least"], facts["greatest"]))
    if facts.get("empty"):
        others.append(f'"":{facts["empty"]}')
    if facts.get("spaced"):
        others.append(f"spaces around {facts['spaced']}")
    return ColumnValues(nulls, others=others)


def _format_range(least: str, greatest: str) -> str:
    """Return the bounds of a column; of one with the same value in all rows that value, where it is known whole."""
    if least == greatest and _shorten(least) == least:
        return f"only {least}"
    return f"{_shorten(least)} to {_shorten(greatest)}"


def _are_worth_listing(values: Sequence[tuple[str, int]]) -> bool:
    """Return whether values say something: where each row has its own they don't."""
    if not values or sum(frequency for _, frequency in values) < 2 * len(values):
        return False
    if sum(len(value) for value, _ in values) > _MAX_VALUES_CHARACTERS:
        return False
    return all(len(value) <= _MAX_VALUE_CHARACTERS for value, _ in values)


def _shorten(value: str) -> str:
    """Return a value as JSON; of a long one its beginning."""
    if not value.startswith('"'):
        return value if len(value) <= _MAX_BOUND_CHARACTERS else f"{value[:_MAX_BOUND_CHARACTERS]}…"
    text: str = json.loads(value)
    if len(text) <= _MAX_BOUND_CHARACTERS:
        return value
    return json.dumps(f"{text[:_MAX_BOUND_CHARACTERS]}…", ensure_ascii=False)
