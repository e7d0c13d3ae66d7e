"""Hints for what SQLite does not understand: the name that was meant, or SQLite's words for another database's."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence

from mcp_batteries.sql.language.identifiers import quote_identifier, spell_identifier
from mcp_batteries.sql.language.suggestions import (
    ask_which,
    explain_parameter_style,
    explain_syntax_error,
    find_similar,
    join_sentences,
    suggest_similar,
)
from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.language.parameters import explain_parameters, find_placeholders
from mcp_sqlite.worker.language.tokens import EXPLAIN_PREFIX
from mcp_sqlite.worker.schema import lookup

__all__ = ["find_hint"]

# Tables among whose columns a misspelt one is looked for.
_MAX_SEARCHED_TABLES = 200
_TEXT_OR_COMMENT = re.compile(r"'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/", re.DOTALL)

_OTHER_TOOLS = re.compile(
    r"near \"(?:SHOW|DESCRIBE|DESC|USE|\.)\"|unrecognized token: \"\\"
    r"|no such table: (?:information_schema|pg_catalog)\.",
    re.IGNORECASE,
)
# What SQLite has in place of functions of other databases.
_FUNCTIONS = {
    **dict.fromkeys(("now", "getdate", "sysdate"), "`datetime('now')`"),
    **dict.fromkeys(("curdate", "today"), "`date('now')`"),
    **dict.fromkeys(
        ("date_format", "date_part", "date_trunc", "extract", "month", "to_char", "to_date", "year", "day"),
        "`strftime('%Y-%m', time)`",
    ),
    **dict.fromkeys(("datediff", "date_diff"), "`julianday(a) - julianday(b)`"),
    **dict.fromkeys(("date_add", "date_sub", "dateadd"), "`date(time, '+1 day')`"),
    **dict.fromkeys(("concat", "concat_ws"), "`a || b`"),
    **dict.fromkeys(("left", "right", "mid"), "`substr(text, start, length)`"),
    **dict.fromkeys(("string_agg", "array_agg", "listagg"), "`group_concat(value, separator)`"),
    **dict.fromkeys(("len", "char_length"), "`length(text)`"),
    **dict.fromkeys(("isnull", "nvl"), "`ifnull(value, other)`"),
    **dict.fromkeys(("convert", "try_cast", "to_number"), "`CAST(value AS type)`"),
    **dict.fromkeys(("json_agg", "jsonb_agg"), "`json_group_array(value)`"),
    **dict.fromkeys(("json_build_object", "jsonb_build_object"), "`json_object(name, value)`"),
    **dict.fromkeys(("position", "strpos", "charindex", "locate"), "`instr(text, part)`"),
    **dict.fromkeys(("regexp", "regexp_matches", "regexp_like"), "no regular expressions: use `LIKE` or `GLOB`"),
    **dict.fromkeys(("rollup", "cube"), "no ROLLUP: write the totals as a second SELECT behind `UNION ALL`"),
    **dict.fromkeys(("unnest", "generate_series"), "`json_each(array)`, or a recursive WITH"),
    "if": "`iif(condition, value, other)`",
    "greatest": "`max(a, b)`",
    "least": "`min(a, b)`",
    "regexp_replace": "`replace(text, old, new)`",
    **dict.fromkeys(
        ("stddev", "stdev", "stddev_pop", "stddev_samp", "variance", "var_pop", "var_samp"),
        "no such aggregate: compute it from `avg(x * x)` and `avg(x)`",
    ),
    **dict.fromkeys(
        ("median", "percentile", "percentile_cont", "percentile_disc", "quantile"),
        "no such aggregate: take rows of a subquery with `row_number() OVER (ORDER BY x)` and `count(*) OVER ()`",
    ),
    "rand": "`random()`",
}
# What SQLite has in place of the syntax of other databases.
_DIALECTS = [
    (re.compile(pattern, re.IGNORECASE | re.DOTALL), replacement)
    for pattern, replacement in (
        (r"\bSELECT\s+(?:DISTINCT\s+)?TOP\b", "`LIMIT n` at the end, not TOP"),
        (r"\bFETCH\s+(?:FIRST|NEXT)\b", "`LIMIT n OFFSET m`, not FETCH"),
        (r"\bILIKE\b", "`LIKE`, which ignores the case of ASCII letters, not ILIKE"),
        (r"\bSIMILAR\s+TO\b|!?~\*?\s", "no regular expressions: use `LIKE` or `GLOB`"),
        (r"::|\b(?:TRY_)?CONVERT\s*\(", "`CAST(value AS type)`, not `::` or CONVERT"),
        (r"\bEXTRACT\s*\(", "`strftime('%Y', time)` (%m, %d, %H, %w ...), not EXTRACT"),
        (r"\bINTERVAL\b", "`datetime(time, '+1 day')`, not INTERVAL"),
        (r"\b(?:DATEADD|DATE_ADD|DATE_SUB)\s*\(", "`date(time, '+1 day')`"),
        (r"\bDATEDIFF\s*\(", "`julianday(a) - julianday(b)`"),
        (r"\b(?:TIMESTAMP|DATE|TIME)\s*'", "times as text, such as `'2026-01-31'`, without a word before"),
        (r"\bISNULL\s*\(", "`ifnull(value, other)`"),
        (r"\bDISTINCT\s+ON\b", "`row_number() OVER (PARTITION BY ...)` in a subquery, not DISTINCT ON"),
        (r"\bFOR\s+(?:UPDATE|SHARE)\b", "no row locks: leave FOR UPDATE away, a call is one transaction"),
        (r"\bLATERAL\b|\b(?:CROSS|OUTER)\s+APPLY\b", "a correlated subquery, not LATERAL or APPLY"),
        (r"\bON\s+DUPLICATE\s+KEY\b", "`ON CONFLICT (column) DO UPDATE SET ...`"),
        (r"\bINSERT\s+IGNORE\b", "`INSERT OR IGNORE`"),
        (r"\bMERGE\s+INTO\b", "`INSERT ... ON CONFLICT (column) DO UPDATE SET ...`, not MERGE"),
        (r"\bTRUNCATE\b", "`DELETE FROM table`, not TRUNCATE"),
        (r"\bCREATE\s+OR\s+REPLACE\b", "`DROP VIEW IF EXISTS name;` before CREATE, not OR REPLACE"),
        (r"\bAUTO_INCREMENT\b", "`INTEGER PRIMARY KEY`, which numbers by itself"),
        (r"\bALTER\s+(?:COLUMN|TABLE.*\b(?:ALTER|MODIFY|ADD\s+CONSTRAINT))\b",
         "no change of a column or constraint in place: make a new table, copy the rows, drop and rename"),
        (r"\bDROP\b.*\bCASCADE\b", "no CASCADE: drop what depends on it first"),
        (r"\bEXPLAIN\s+(?:ANALYZE|\()", "`EXPLAIN QUERY PLAN`, or `explain_query`"),
        (r"\bCOMMENT\s+ON\b", "no COMMENT: write comments into the CREATE statement"),
        (r"\bAS\s+(?:SELECT\b.*\bINTO)\b|\bSELECT\b.*\bINTO\b", "`CREATE TABLE name AS SELECT ...`, not INTO"),
        (r"\b(?:group_concat|json_group_array|json_group_object|total|sum)\s*\([^()]*\bORDER\s+BY\b",
         "no ORDER BY in an aggregate before 3.44: `FROM (SELECT ... ORDER BY ...)` around sorted rows"),
        (r"\bWITHIN\s+GROUP\b",
         "no ordered aggregates: take rows of a subquery with `row_number() OVER (ORDER BY x)` and `count(*) OVER ()`"),
        (r"\b(?:QUALIFY|PIVOT)\b", "a subquery around the window function, not QUALIFY or PIVOT"),
    )
]  # fmt: skip


_SERIES = (
    "SQLite has a recursive WITH: `WITH RECURSIVE n (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n "
    "WHERE value < 10) SELECT value FROM n`."
)
# SQLite's words for a function that nobody has registered; the second are those where a column is computed by it.
_MISSING_FUNCTION = re.compile(r"(?:no such function: |unknown function: )([^()]+)(?:\(\))?")
# sqlite3's words for a value too few or too many, and for an array or an object in the place of the other.
_WRONG_PARAMETERS = re.compile(" binding|supplied a sequence|supplied a dictionary")


def find_hint(database: Database | None, message: str, sql: str) -> str:
    """Return one sentence on what to do about `message`, SQLite's words on `sql`; nothing where nobody knows."""
    if database is None:
        return ""
    if _WRONG_PARAMETERS.search(message):
        return explain_parameters(find_placeholders(sql))
    if _OTHER_TOOLS.match(message):
        return join_sentences("`list_tables` and `get_table` tell what there is.", lookup.name_tables(database, ()))
    hint = _explain_missing_thing(database, message, sql) or _explain_message(message)
    return hint or _find_hint_in_sql(database, message, _TEXT_OR_COMMENT.sub(_blank_out, sql))


def _explain_missing_thing(database: Database, message: str, sql: str) -> str:
    """Return what to do where a table or a function is not there, if there is another than one of a like name."""
    problem, _, name = message.partition(": ")
    if problem == "no such table":
        if name.lower() == "generate_series":
            return _SERIES
        return _explain_file_name(database, name)
    if problem == "no such collation sequence" and not _is_named_collation(name, sql):
        return _explain_missing_collation(database, name, sql)
    if problem == "no such module" and name != "vec0" and name.lower() not in sql.lower():
        return "It is one of the application that made the database; other tables can be read."
    if message == "no query solution":
        named = lookup.find_named_tables(sql, lookup.list_table_names(database))
        return " ".join(filter(None, (_explain_unreadable_table(database, table) for table in named)))
    missing_function = _MISSING_FUNCTION.fullmatch(message)
    if missing_function is not None and not lookup.find_named_tables(sql, [missing_function[1]]):
        return _explain_missing_function(database, missing_function[1], sql)
    if problem == "no such function" and name.lower() in _FUNCTIONS:
        return f"SQLite has {_FUNCTIONS[name.lower()]}."
    return ""


def _is_named_collation(name: str, sql: str) -> bool:
    """Return whether a statement itself names the collation, and not the schema."""
    return re.search(rf"\bCOLLATE\s+[\"'`\[]?{re.escape(name)}\b", sql, re.IGNORECASE) is not None


def _explain_missing_collation(database: Database, name: str, sql: str) -> str:
    """Return how to read a table whose columns or indexes have a collation of an application."""
    named = [entry for entry in lookup.list_objects(database) if lookup.find_named_tables(sql, [entry.name])]
    definitions = " ".join([sql, *(entry.sql for entry in named if entry.kind == "view")])
    for entry in lookup.list_objects(database):
        is_read = entry.kind == "table" and lookup.find_named_tables(definitions, [entry.name])
        if is_read and _is_named_collation(name, entry.sql):
            return _explain_unreadable_table(database, entry.name) or (
                "It is one of the application that made the database. Read the table as "
                f"`FROM {quote_identifier(entry.name)} NOT INDEXED`, and compare or sort by `column COLLATE NOCASE`."
            )
    return "It is one of the application that made the database: name another, as `column COLLATE NOCASE`."


def _explain_unreadable_table(database: Database, table: str) -> str:
    """Return that SQLite finds no way to read a table; nothing where it does."""
    try:
        database.run_internal(f"SELECT 1 FROM {quote_identifier(table)} NOT INDEXED LIMIT 0")
    except sqlite3.Error:
        return f"`{table}` lies in the order of a collation of its application, without which nobody reads it."
    return ""


def _explain_missing_function(database: Database, name: str, sql: str) -> str:
    """Return what of the schema needs a function that the statement does not name."""
    part = _find_part_that_needs(database, name, sql)
    if part:
        return f"It is one of the application that made the database, which {part} needs: only that can change it."
    users = [
        entry.name
        for entry in lookup.list_objects(database)
        if lookup.find_named_tables(sql, [entry.name]) and lookup.find_named_tables(entry.sql, [name])
    ]
    needed_by = f", which `{users[0]}` needs" if users else ""
    return (
        f"It is one of the application that made the database{needed_by}. Name the columns that do without, or the "
        "tables of the view: `get_table` has its definition."
    )


def _find_part_that_needs(database: Database, function: str, sql: str) -> str:
    """Return the trigger or index of a table whose rows a statement changes that calls a function; else empty."""
    if not _CHANGE.match(sql):
        return ""
    for kind, part, table, definition in database.run_internal(_PARTS_OF_TABLES):
        is_needed = database.is_visible(table) and lookup.find_named_tables(definition, [function])
        if is_needed and lookup.find_named_tables(sql, [table]):
            return f"the {kind} `{part}` of `{table}`"
    return ""


def _explain_message(message: str) -> str:
    """Return what to do about words of SQLite that say all there is to know."""
    if message == "no such module: vec0":
        return "It is sqlite-vec's; the operator can start the server with `--sqlite-vec`."
    if "constraint is required on vec0 knn queries" in message:
        return "Say how many: `WHERE embedding MATCH ? AND k = 10 ORDER BY distance`."
    if message == "integer overflow":
        return "It is beyond 64 bits: `total(column)` adds in floating point, of which 15 digits are exact."
    return ""


def _blank_out(match: re.Match[str]) -> str:
    """Return what stands for a text or a comment where these say nothing."""
    return "''" if match[0].startswith("'") else " "


def _find_hint_in_sql(database: Database, message: str, sql: str) -> str:
    """Return what the words of a statement say, in which no text or comment is left."""
    if " constraint failed" in message:  # A statement that ran is SQLite's own dialect.
        return _find_intended_name(database, message, sql)
    parameter = explain_parameter_style(sql, r"[?:@$]\w*")
    if parameter:
        return f"Write ? in place of `{parameter}`, and pass the values as an array in `parameters`."
    if not message.startswith(("no such table: ", "no such module: ")):
        for pattern, replacement in _DIALECTS:
            if pattern.search(sql):
                return f"SQLite has {replacement}."
    return _find_intended_name(database, message, EXPLAIN_PREFIX.sub("", sql))


def _explain_file_name(database: Database, name: str) -> str:
    """Return how a file is named, where that is what a table was meant to be."""
    is_call = re.match(r"read_(?:csv|json|ndjson|parquet)", name, re.IGNORECASE)
    if not (is_call or re.search(r"\.(?:csv|tsv|jsonl?|parquet)$", name, re.IGNORECASE)):
        return ""
    if database.folder is None:
        return "Files can be read as tables where the operator names their folder with `--files`."
    example = name if name in database.file_tables else "sub/a.csv"
    return f'The name of a file stands in quotes: FROM "{example}".'


_MATCH_SYNTAX = (
    "What MATCH takes has a syntax of its own: words with signs in them stand in double quotes, as "
    "`MATCH '\"well-known\"'`. `search_text` takes them plain."
)
# What to do about an error that names nothing which could be spelled in another way.
_REMEDIES = [
    (re.compile(pattern), remedy)
    for pattern, remedy in (
        ("ambiguous column name", "Write the table, or its alias, before it: `o.id`."),
        ("incomplete input", "The statement stops too early: write it to its end."),
        (r'unrecognized token: "(\d\w+)"', 'A name that begins with a digit stands in quotes: `"{}"`.'),
        ("unrecognized token", "A text stands in '...': look for a quote that is not closed."),
        ("misuse of aggregate", "WHERE sees single rows: use HAVING, or a subquery."),
        ("misuse of (?:aliased )?window function", "Compute it in a subquery, and filter around that."),
        ("row value misused", "Several columns are compared with as many: `(a, b) = (1, 2)`."),
        ("no tables specified", "Name a table behind FROM."),
        ("fts5: |malformed MATCH expression|unknown special query|^unterminated string$", _MATCH_SYNTAX),
        ("JSON path", "A path begins with `$`: `$.a.b[0]`."),
        ("malformed JSON", "`json_valid(value)` tells which rows hold JSON."),
        ("no such collation sequence", "There are BINARY, NOCASE and RTRIM."),
        ("foreign key mismatch", "What a key points to is a primary key, or has a UNIQUE index."),
        ("ON CONFLICT clause does not match", "Name the columns of one: `get_table` shows them."),
        ("cannot modify .* because it is a view", "Change the tables that it shows: `get_table` has its definition."),
        ("cannot VACUUM", "The operator can run it; no statement here can."),
        ("Cannot add a NOT NULL column", "Give it a DEFAULT that is not NULL."),
        ("Cannot add a column with non-constant", "Add it without DEFAULT, then UPDATE its rows in the same call."),
        ("Cannot add a UNIQUE column", "Add it without UNIQUE, then CREATE UNIQUE INDEX in the same call."),
        ("Cannot add a PRIMARY KEY|cannot drop", "Make a new table, copy the rows, drop the old one and rename."),
        ("error in (?:view|trigger|index) ", "Drop that before, and make it anew behind, in the same call."),
        ("cannot store", "Send a value of the column's type, or CAST it."),
        ("datatype mismatch", "An INTEGER PRIMARY KEY and LIMIT take whole numbers."),
        ("already exists|already another|duplicate column", "`search_schema` finds it. Choose another name."),
        ("NOT NULL constraint failed: (.+)", "Give `{}` a value."),
        ("UNIQUE constraint failed: index", "Such a row is there."),
        ("UNIQUE constraint failed: ", "Such a row is there: INSERT ... ON CONFLICT DO UPDATE SET ... changes it."),
        ("CHECK constraint failed", "Send values that pass the check."),
    )
]  # fmt: skip
_FOREIGN_KEYS = """
SELECT m.name, f."from", f."table", f."to" FROM main.sqlite_master m
JOIN pragma_foreign_key_list(m.name, 'main') f WHERE m.type = 'table' LIMIT 1000
"""
_CHANGE = re.compile(r"\s*(?:INSERT|UPDATE|DELETE|REPLACE|WITH)\b", re.IGNORECASE)
_DELETION = re.compile(r"\bDELETE\s+FROM\b", re.IGNORECASE)
# What SQLite runs or keeps up where a table changes.
_PARTS_OF_TABLES = (
    "SELECT type, name, tbl_name, sql FROM main.sqlite_master WHERE type IN ('index', 'trigger') AND sql <> ''"
)
_OBJECTS = "SELECT name, tbl_name FROM main.sqlite_master WHERE type = ? AND sql IS NOT NULL"
_MAX_LISTED_KEYS = 5
# A view has none of them, unless SQLite was built as before 3.36; and masked columns are shown by a view.
_ROWID_NAMES = ("rowid", "_rowid_", "oid")
_HOW_TO_FIND_NAMES = "`list_tables` and `get_table` tell the names."
_MIN_FUNCTION_SIMILARITY = 0.7


def _find_intended_name(database: Database, message: str, sql: str) -> str:
    """Return the name that was meant by one that is not there, or what else there is to do about `message`."""
    problem, _, name = message.partition(": ")
    if (problem.endswith("syntax error") and problem.startswith('near "')) or name == "syntax error":
        return _explain_syntax_error(database, problem, sql)
    if message == "FOREIGN KEY constraint failed":
        return _list_foreign_keys(database, sql)
    match problem:
        case "no such index" | "no such trigger":
            return _suggest_object(database, problem.split()[-1], name)
        case "no such function":
            functions = database.run_internal("SELECT DISTINCT name FROM pragma_function_list")
            return suggest_similar(name, [str(function) for (function,) in functions], _MIN_FUNCTION_SIMILARITY)
        case "no such table" | "no such view":
            return _explain_missing_table(database, name.rpartition(".")[2], sql)
        case "no such column":
            return _explain_missing_column(database, name, sql)
        case _:
            return _explain_inserted_columns(database, message) or _find_remedy(message)


def _explain_missing_table(database: Database, name: str, sql: str) -> str:
    """Return what was meant by the name of a table, and which tables there are."""
    tables = lookup.list_table_names(database)
    spellings = [spell_identifier(table) for table in tables]
    similar = find_similar(name, spellings)
    concerned = [*similar, *map(spell_identifier, lookup.find_named_tables(sql, tables))]
    names = lookup.name_tables(database, concerned)
    return join_sentences(ask_which(similar), names) or _HOW_TO_FIND_NAMES


def _explain_inserted_columns(database: Database, message: str) -> str:
    """Return what to do where an INSERT has columns that the table has not, or another number of values."""
    missing_column = re.fullmatch("table (.+) has no column named (.+)", message)
    if missing_column is not None:
        return _suggest_column(database, missing_column[2], [missing_column[1]], [])
    miscounted = re.fullmatch(r"table (.+) has \d+ columns? but \d+ values? were supplied", message)
    if miscounted is not None:
        names = lookup.name_tables(database, [spell_identifier(miscounted[1])])
        return join_sentences("Name those that you give values for.", names)
    return ""


def _explain_syntax_error(database: Database, problem: str, sql: str) -> str:
    near_word = re.match('near "([^"]+)"', problem)
    tables = lookup.list_table_names(database)
    columns: list[str] = []
    for table in lookup.find_named_tables(sql, tables):
        columns += lookup.list_column_names(database, table)
    word = near_word[1] if near_word else ""
    return explain_syntax_error(word, sql, _quote_names(tables), _quote_names(columns))


def _quote_names(names: Sequence[str]) -> dict[str, str]:
    return {name: quote_identifier(name) for name in names}


def _suggest_object(database: Database, kind: str, name: str) -> str:
    rows = database.run_internal(_OBJECTS, [kind])
    names = [str(other) for other, table in rows if database.is_visible(str(table))]
    if name in names:
        return "Of a table with masked columns no index can be named: leave INDEXED BY away."
    return suggest_similar(name, names) or "`search_schema` finds those there are."


def _explain_missing_column(database: Database, name: str, sql: str) -> str:
    """Return what was meant by the name of a column; `sql` has no texts left."""
    if not lookup.find_named_tables(sql, [name]) and _names_full_text_table(database, sql):
        return _MATCH_SYNTAX
    tables = lookup.list_table_names(database)
    named = lookup.find_named_tables(sql, tables)
    if name.rpartition(".")[2].lower() in _ROWID_NAMES:
        masked = [table for table in named if database.is_masked(table)]
        if masked:
            return f"`{masked[0]}` has masked columns, and no rowid therefore. Name its key, or another column."
    suggestion = _suggest_column(database, name, named, tables[:_MAX_SEARCHED_TABLES])
    if f'"{name}"' in sql:
        return f"A text stands in '...'; \"...\" is a name. {suggestion}"
    return suggestion


def _names_full_text_table(database: Database, sql: str) -> bool:
    full_text_tables = [
        entry.name
        for entry in lookup.list_objects(database)
        if lookup.parse_virtual_module(entry.sql) in lookup.FULL_TEXT_MODULES
    ]
    return bool(lookup.find_named_tables(sql, full_text_tables))


def _find_remedy(message: str) -> str:
    for pattern, remedy in _REMEDIES:
        match = pattern.search(message)
        if match is not None:
            return remedy.format(*match.groups())
    return ""


def _suggest_column(database: Database, name: str, named: Sequence[str], others: Sequence[str]) -> str:
    """Return what was meant by the column `name` of the tables `named`, or of `others`; else the columns there are."""
    qualifier, _, column = name.replace('"', "").rpartition(".")
    columns: list[str] = []
    for table in named:
        columns += lookup.list_column_names(database, table)
    if qualifier and column.casefold() in map(str.casefold, columns):
        return f"No table of the statement is called `{qualifier}`."
    # One of the same name can't be reached where the statement names it.
    other_columns = [spell_identifier(other) for other in columns if other.casefold() != column.casefold()]
    suggestion = suggest_similar(column, other_columns)
    owners = [f"`{table}`" for table in others if _has_column(database, table, column)]
    if owners and not suggestion:
        suggestion = f"It is a column of {', '.join(owners[:3])}."
    names = lookup.name_tables(database, [*map(spell_identifier, named)])
    return join_sentences(suggestion, names) or _HOW_TO_FIND_NAMES


def _has_column(database: Database, table: str, name: str) -> bool:
    return name.casefold() in map(str.casefold, lookup.list_column_names(database, table))


def _list_foreign_keys(database: Database, sql: str) -> str:
    """Return the foreign keys of the tables that a statement names: SQLite does not say which one it broke."""
    keys: list[str] = []
    for table, column, parent, parent_column in database.run_internal(_FOREIGN_KEYS):
        is_visible = database.is_visible(table) and database.is_visible(parent)
        if is_visible and lookup.find_named_tables(sql, [table, parent]):
            target = f"{parent}.{parent_column}" if parent_column else parent
            keys.append(f"`{table}.{column}` to `{target}`")
    if not keys:
        return "`get_table` shows the keys of a table."
    named_keys = keys[:_MAX_LISTED_KEYS]
    if len(keys) > _MAX_LISTED_KEYS:
        named_keys.append("...")
    advice = f"A row that is pointed to has to be there: {', '.join(named_keys)}."
    if _DELETION.search(sql):
        advice += " Delete what points to it before, in the same call."
    return advice
