"""Suggests what an unknown name or word was meant to be: a similar name, or PostgreSQL's word for another
database's."""

from __future__ import annotations

import difflib
import re
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from mcp_batteries.errors import NotFound, Problem, Refused, quote
from mcp_batteries.server.calling.results import to_compact_json
from mcp_batteries.sql.language import suggestions
from mcp_batteries.sql.language.identifiers import quote_identifier, unquote_identifier
from mcp_postgres.engine.audit.visible_schema import RELATION_LISTED, WHOLE_SCHEMA_LISTED
from mcp_postgres.engine.catalog.relation_sql import IS_OF_EXTENSION, IS_READABLE, USER_SCHEMA
from mcp_postgres.engine.catalog.syntax_suggestions import (
    ERROR_POSITION,
    FOREIGN_FUNCTIONS,
    blank_quoted,
    suggest_parameters,
    suggest_syntax,
)
from mcp_postgres.engine.connection.errors import DuplicateKey, MissingName
from mcp_postgres.engine.connection.session import Session, fetch_json

__all__ = ["add_suggestion"]

# Calls a function with a session in which statements of our own can run.
RunWithin = Callable[[Callable[[Session], Awaitable[str]]], Awaitable[str]]

# Names that are compared with one.
_MAX_NAMES = 20_000

# How like two names are that one may be meant by the other, from 0 to 1.
_MIN_SIMILARITY = 0.7
_MAX_SUGGESTIONS = 3
# Columns that are told of a table of which the role may not read all.
_MAX_COLUMNS = 60
_WORD_FOR_TABLE = re.compile(r"\b(?:FROM|JOIN)\s+(user|session_user)\b", re.I)
_POSTGRES_SUGGESTION = re.compile(r'Perhaps you meant to reference the (?:table alias|column) "([^"]+)"')

# The name of a table behind that of its schema, in quotes where SQL needs them.
_LAST_PART = re.compile(r'(?:"(?:[^"]|"")+"|[^."]+)\Z')
# A name that SQL takes without quotes.
_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*")

_UNIT_FUNCTIONS = ("date_trunc", "date_part")
_RELATIONS = f"""
SELECT coalesce(json_agg(x), '[]')::text FROM (SELECT DISTINCT quote_ident(c.relname) AS name, CASE WHEN
    pg_table_is_visible(c.oid) THEN quote_ident(c.relname) ELSE format('%I.%I', n.nspname, c.relname) END AS spelled
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND
    {USER_SCHEMA}
    AND {RELATION_LISTED} AND has_schema_privilege(n.oid, 'USAGE') LIMIT {_MAX_NAMES}) x
"""
# How many tables and views a list has, and some of them with their columns: all, if they are few, else those that $1,
# a list in JSON, or the statement $2 names. Those of extensions are listed where the statement names them.
_IN_STATEMENT = "strpos(lower($2), lower(c.relname)) > 0"
_RELATIONS_WITH_COLUMNS = f"""
WITH listed AS (SELECT c.oid, {_IN_STATEMENT} AS is_named, CASE WHEN pg_table_is_visible(c.oid) THEN
    quote_ident(c.relname) ELSE format('%I.%I', n.nspname, c.relname) END AS spelled
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
    AND NOT c.relispartition AND {USER_SCHEMA} AND {RELATION_LISTED} AND has_schema_privilege(n.oid, 'USAGE')
    AND {IS_READABLE} AND ({_IN_STATEMENT} OR NOT {IS_OF_EXTENSION})), total AS (SELECT count(*) AS count FROM listed)
SELECT json_build_object('total', (SELECT count FROM total), 'tables', coalesce(json_object_agg(l.spelled,
    (SELECT coalesce(json_agg(quote_ident(a.attname) ORDER BY a.attnum), '[]') FROM pg_attribute a
        WHERE a.attrelid = l.oid AND a.attnum > 0 AND NOT a.attisdropped) ORDER BY l.spelled), '{{}}'))::text
    FROM listed l, total WHERE total.count <= {suggestions.MAX_NAMED_TABLES} OR l.is_named
    OR l.spelled IN (SELECT json_array_elements_text($1::json))
"""
_INDEXES = _RELATIONS.replace("'r', 'p', 'v', 'm', 'f'", "'i', 'I'")
_SEQUENCES = _RELATIONS.replace("'r', 'p', 'v', 'm', 'f'", "'S'")
_COLUMNS = f"""
SELECT coalesce(json_agg(x), '[]')::text FROM (SELECT DISTINCT quote_ident(a.attname) AS name,
    quote_ident(a.attname) AS spelled, n.nspname AS schema, c.relname AS relation FROM pg_attribute a
    JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND {USER_SCHEMA}
    AND {RELATION_LISTED} AND a.attnum > 0 AND NOT a.attisdropped AND strpos(lower($1), lower(c.relname)) > 0 LIMIT
    {_MAX_NAMES}) x
"""
_CALLABLE_FUNCTIONS = f"""
SELECT coalesce(json_agg(x), '[]')::text FROM (SELECT DISTINCT p.proname AS name, p.proname AS spelled FROM pg_proc p
    JOIN pg_namespace n ON n.oid = p.pronamespace WHERE (n.nspname = 'pg_catalog' OR {USER_SCHEMA} AND
    {WHOLE_SCHEMA_LISTED})
    AND pg_function_is_visible(p.oid) AND p.proname !~ '^(pg_|_|int[248]|float[48])' LIMIT {_MAX_NAMES}) x
"""
_TYPE_NAMES = f"""
SELECT coalesce(json_agg(x), '[]')::text FROM (SELECT DISTINCT m.name, m.spelled FROM pg_type t
    JOIN pg_namespace n ON n.oid = t.typnamespace, LATERAL (SELECT unnest(ARRAY[t.typname, format_type(t.oid, NULL)]) AS
    name, format_type(t.oid, NULL) AS spelled) m WHERE t.typtype IN ('b', 'd', 'e', 'r', 'm') AND t.typname !~ '^_'
    AND (n.nspname = 'pg_catalog' OR {USER_SCHEMA} AND {WHOLE_SCHEMA_LISTED}) LIMIT {_MAX_NAMES}) x
"""
_PARAMETERS = "SELECT coalesce(json_agg(x), '[]')::text FROM (SELECT name, name AS spelled FROM pg_settings) x"

_READABLE_COLUMNS = f"""
SELECT coalesce(json_agg(quote_ident(a.attname) ORDER BY n.nspname, a.attnum), '[]')::text FROM pg_attribute a
    JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relname = $1 AND
    {USER_SCHEMA}
    AND {RELATION_LISTED} AND a.attnum > 0 AND NOT a.attisdropped AND NOT has_table_privilege(c.oid, 'SELECT')
    AND has_schema_privilege(n.oid, 'USAGE') AND has_column_privilege(c.oid, a.attnum, 'SELECT')
"""
_PERMISSION_DENIED = re.compile(
    r"permission denied for (?:table|view|materialized view|foreign table) (.+)` \(SQLSTATE 42501\)"
)

_ENUM_REFUSAL = re.compile(r'invalid input value for enum (?:\w+\.|"[^"]+"\.)?("[^"]+"|\w+): .*\(SQLSTATE 22P02\)')
_CHECK_REFUSAL = re.compile(r'relation "([^"]+)" violates check constraint "([^"]+)"` \(SQLSTATE 23514\)')
_MAX_RULE_CHARACTERS = 500
# Of a name that several types or tables have nothing is told.
_ENUM_LABELS = f"""
SELECT max(x.labels) FROM (SELECT string_agg(quote_literal(e.enumlabel), ', ' ORDER BY e.enumsortorder) AS labels
    FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace JOIN pg_enum e ON e.enumtypid = t.oid
    WHERE t.typname = $1 AND {USER_SCHEMA} GROUP BY t.oid) x HAVING count(*) = 1
"""
_CHECK_DEFINITION = f"""
SELECT max(pg_get_constraintdef(r.oid, true)) FROM pg_constraint r JOIN pg_class c ON c.oid = r.conrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE r.contype = 'c' AND c.relname = $1 AND r.conname = $2 AND {USER_SCHEMA} HAVING count(*) = 1
"""

# The names there are of each kind.
_NAME_QUERIES = {
    "relation": _RELATIONS, "column": _COLUMNS, "function": _CALLABLE_FUNCTIONS,
    "index": _INDEXES, "sequence": _SEQUENCES,
    "type": _TYPE_NAMES, "parameter": _PARAMETERS,
}  # fmt: skip


async def add_suggestion(problem: Problem, sql: str, run_within: RunWithin, *, is_schema: bool = False) -> Problem:
    """Return the problem that `sql` met, with what was meant by a name or word that PostgreSQL does not know."""
    if isinstance(problem, MissingName):
        names = await run_within(partial(_suggest_names, missing=problem, sql=sql))
        return NotFound(problem.failure, names or problem.fix)
    if isinstance(problem, Refused):
        return await _with_readable_columns(problem, run_within)
    if isinstance(problem, DuplicateKey):
        return problem
    if _ENUM_REFUSAL.search(problem.failure) or _CHECK_REFUSAL.search(problem.failure):
        rule = await run_within(partial(_find_broken_rule, message=problem.failure))
        if rule:
            return problem.reword(problem.failure, rule)
    word = _suggest_word(problem, sql, is_schema=is_schema)
    if not word and "SQLSTATE 42601" in problem.failure:
        word = await run_within(partial(_suggest_at_error, message=problem.failure, sql=sql))
    # What a tool takes says more than that this is not a command: it may be one that no tool takes.
    if not word or (word == suggestions.NO_COMMAND and problem.fix):
        return problem
    return problem.reword(problem.failure, word)


async def _find_broken_rule(session: Session, message: str) -> str:
    """Return the values of the enum, or the CHECK, that a value was refused for; else empty."""
    if session.audit.visible.schema:
        # It may compare masked columns: `get_table` shows what may be shown.
        return ""
    enum = _ENUM_REFUSAL.search(message)
    if enum is not None:
        labels = await session.fetch_value(_ENUM_LABELS, unquote_identifier(enum[1]))
        return f"Its values are {labels}." if labels and len(labels) <= _MAX_RULE_CHARACTERS else ""
    check = _CHECK_REFUSAL.search(message)
    if check is not None:
        definition = await session.fetch_value(_CHECK_DEFINITION, check[1], check[2])
        return f"It is {definition}." if definition and len(definition) <= _MAX_RULE_CHARACTERS else ""
    return ""


async def _with_readable_columns(problem: Refused, run_within: RunWithin) -> Problem:
    """Return the problem with the columns that the role may read, where it may not read a whole table."""
    denied = _PERMISSION_DENIED.search(problem.failure)
    if denied is None:
        return problem
    columns = await run_within(partial(_list_readable_columns, name=denied[1]))
    if columns:
        return Refused(problem.failure, columns)
    return problem


def _suggest_word(problem: Problem, sql: str, *, is_schema: bool) -> str:
    """Return PostgreSQL's word for another dialect's, where the statement was not understood; else empty."""
    if "SQLSTATE 08P01" in problem.failure:
        return suggest_parameters(sql)
    # Behind another code the statement was understood, and a word of it is another dialect's by chance only.
    if "SQLSTATE 42601" in problem.failure or ("SQLSTATE 42" in problem.failure and not problem.fix):
        return suggest_syntax(sql, message=problem.failure, is_schema=is_schema)
    return ""


async def _list_readable_columns(session: Session, name: str) -> str:
    """Return which columns of the table of a name the role may read, where it may not read all.

    Empty if it may read none.
    """
    columns = await fetch_json(session, _READABLE_COLUMNS, name)
    if columns:
        return f"Of its columns the role may read {', '.join(columns[:_MAX_COLUMNS])}."
    return ""


async def _suggest_at_error(session: Session, message: str, sql: str) -> str:
    """Return what was meant where PostgreSQL's parser gave up, as its message says."""
    word = re.search(r'at or near "(\w+)"', message)
    if word is None:
        return ""
    tables = _spell_names(await fetch_json(session, _RELATIONS))
    columns = _spell_names(await fetch_json(session, _COLUMNS, sql))
    return suggestions.explain_syntax_error(word[1], blank_quoted(sql), tables, columns)


async def _suggest_names(session: Session, missing: MissingName, sql: str) -> str:
    """Return the names that are most like the one that is missing, as an answer's next move."""
    syntax = suggest_syntax(sql, name=missing.name, kind=missing.kind, message=missing.failure)
    if syntax and (missing.kind in ("function", "type") or syntax.startswith("Write $1")):
        return syntax
    if missing.kind == "column":
        advice = _explain_word_for_table(sql) or _explain_non_column(sql, missing)
        if advice:
            return advice
    by_postgres = _POSTGRES_SUGGESTION.search(missing.fix)
    if by_postgres:
        suggestion = _repeat_suggestion(by_postgres[1].rpartition(".")[2], missing, syntax)
        return suggestions.join_sentences(suggestion, await _name_tables(session, missing, sql, ()))
    if missing.kind not in _NAME_QUERIES:
        return syntax
    advice = await _explain_field(session, missing, sql) or await _explain_types(session, missing, sql)
    if advice:
        return advice
    similar = (await _find_similar_names(session, missing, sql))[:_MAX_SUGGESTIONS]
    if not similar and syntax:
        return syntax
    question = f"Did you mean {' or '.join(map(quote, similar))}?" if similar else ""
    return suggestions.join_sentences(question, await _name_tables(session, missing, sql, similar))


async def _name_tables(session: Session, missing: MissingName, sql: str, similar: Sequence[str]) -> str:
    """Return which tables and views there are with their columns, where one of these is missing and no alias."""
    if missing.kind not in ("relation", "column") or "missing FROM-clause" in missing.failure:
        return ""
    found_tables = await fetch_json(session, _RELATIONS_WITH_COLUMNS, to_compact_json(similar), sql)
    named = [table for table in found_tables["tables"] if _names_table(sql, table)]
    tables: dict[str, list[str]] = found_tables["tables"]
    if found_tables["total"] > suggestions.MAX_NAMED_TABLES:
        tables = {table: columns for table, columns in tables.items() if table in (*similar, *named)}
    return suggestions.name_tables(tables, [*similar, *named], found_tables["total"])


def _names_table(sql: str, table: str) -> bool:
    """Return whether a statement names a table, with or without its schema."""
    last_part = _LAST_PART.search(table)
    assert last_part is not None, "a spelled name has a part"
    name = unquote_identifier(last_part[0])
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", sql, re.I) is not None


async def _explain_field(session: Session, missing: MissingName, sql: str) -> str:
    """Return how parts of a column are reached, where one was taken for a table; else empty."""
    if missing.kind == "column" or "missing FROM-clause" not in missing.failure:
        return ""
    key = _name_key(missing.name.rpartition(".")[2])
    columns = _columns_of_named_tables(sql, await fetch_json(session, _COLUMNS, sql))
    if key not in [_name_key(str(item["name"])) for item in columns]:
        return ""
    return f"Of a column that is a row a part is `({key}).part`, of one with JSON `{key} ->> 'part'`."


async def _explain_types(session: Session, missing: MissingName, sql: str) -> str:
    """Return what to do where a function is there, for other types; else empty."""
    key = _name_key(missing.name.rpartition(".")[2])
    if missing.kind == "function" and key in await _read_names(session, missing.kind, sql):
        return f"`{key}` takes other types: a cast is `value::type`."
    return ""


async def _find_similar_names(session: Session, missing: MissingName, sql: str) -> list[str]:
    """Return the names that are most like the one that is missing, as SQL spells them."""
    key = _name_key(missing.name.rpartition(".")[2])
    names_by_key = await _read_names(session, missing.kind, sql)
    # A dot may be part of the name.
    return names_by_key.get(_name_key(missing.name)) or _find_similar(key, names_by_key)


def _spell_names(rows: list[dict[str, Any]]) -> dict[str, str]:
    """Return names, each with how SQL spells it."""
    return {str(row["name"]).strip('"'): str(row["spelled"]) for row in rows}


def _repeat_suggestion(suggested: str, missing: MissingName, syntax: str) -> str:
    """Return PostgreSQL's own suggestion; where a text stands in double quotes, only if it is like the name."""
    if not syntax.startswith("Text"):
        if _PLAIN_NAME.fullmatch(suggested):
            return missing.fix
        # PostgreSQL says such a name without the quotes that it needs.
        return f"Did you mean {quote(quote_identifier(suggested))}?"
    written = missing.name.rpartition(".")[2].lower()
    if suggested == written:
        return f"Did you mean {quote(suggested)}? In quotes its capitals count."
    similarity = difflib.SequenceMatcher(None, suggested.lower(), written).ratio()
    if similarity >= _MIN_SIMILARITY:
        return f"{syntax} {missing.fix}"
    return syntax


async def _read_names(session: Session, kind: str, sql: str) -> dict[str, list[str]]:
    """Return the names there are of a kind as SQL spells them, by what they are compared by."""
    if kind == "column":
        rows = _columns_of_named_tables(sql, await fetch_json(session, _COLUMNS, sql))
    else:
        rows = await fetch_json(session, _NAME_QUERIES[kind])
    names_by_key: dict[str, list[str]] = {}
    for row in rows:
        names_by_key.setdefault(_name_key(str(row["name"])), []).append(str(row["spelled"]))
    return names_by_key


def _find_similar(key: str, names_by_key: dict[str, list[str]]) -> list[str]:
    """Return the names that differ in punctuation only, then those that are similar."""
    same = [other for other in names_by_key if _strip_punctuation(other) == _strip_punctuation(key)]
    close = difflib.get_close_matches(key, list(names_by_key), n=3, cutoff=_MIN_SIMILARITY)
    similar: dict[str, None] = {}
    for other in (*same, *close):
        similar.update(dict.fromkeys(names_by_key[other]))
    return list(similar)


def _name_key(name: str) -> str:
    return name.strip('"').lower()


def _columns_of_named_tables(sql: str, columns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the columns of tables which `sql` names, with their schemas where it names these."""
    with_schema = [column for column in columns if _names_with_schema(sql, column)]
    named_relations = {column["relation"] for column in with_schema}
    return with_schema + [column for column in columns if column["relation"] not in named_relations]


def _names_with_schema(sql: str, column: dict[str, Any]) -> bool:
    """Return whether a statement names the table of a column with its schema."""
    table = rf'(?<!\w){re.escape(column["schema"])}"?\s*\.\s*"?{re.escape(column["relation"])}'
    return re.search(table, sql, re.I) is not None


def _explain_word_for_table(sql: str) -> str:
    """Return that a word is a function of SQL without parentheses, where it was to be a table; else empty."""
    match = _WORD_FOR_TABLE.search(blank_quoted(sql))
    if match is None:
        return ""
    return f'`{match[1]}` is a word of SQL, which tells the role; the name stands in quotes: `"{match[1].lower()}"`.'


def _explain_non_column(sql: str, missing: MissingName) -> str:
    """Return what to do about a name that is no column but an output, or a unit of time; empty where it is neither."""
    return _explain_unit(sql, missing.name) or _explain_output(sql, missing)


def _explain_unit(sql: str, name: str) -> str:
    """Return what to write where a name is the unit of a function of time; else empty."""
    call = re.search(rf"\b(\w+)\s*\(\s*{re.escape(name)}\s*,", blank_quoted(sql), re.I)
    if call is None:
        return ""
    equivalent = FOREIGN_FUNCTIONS.get(call[1].lower())
    if equivalent:
        return f"PostgreSQL has `{equivalent}`."
    if call[1].lower() in _UNIT_FUNCTIONS:
        return f"It is text there: {call[1]}('{name}', ...)."
    return ""


def _explain_output(sql: str, missing: MissingName) -> str:
    """Return what to do about a name that an output has before the place of the error; else empty."""
    place = ERROR_POSITION.search(missing.failure)
    if place is None:
        return ""
    before = blank_quoted(sql[: int(place[1]) - 1])
    output = re.search(rf'([\w)\]"]+)\s+"?{re.escape(missing.name)}"?\s*(?:,|\)|\bFROM\b)', before, re.I)
    if output is None or (output[1].upper() != "AS" and output[1].upper() in suggestions.RESERVED):
        return ""
    return (
        f"{quote(missing.name)} names an output, which WHERE, HAVING and expressions don't see: write what it stands "
        "for, or filter around a subquery."
    )


def _strip_punctuation(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name)
