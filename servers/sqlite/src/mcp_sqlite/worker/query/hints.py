"""Hints for what SQLite does not understand: the name that was meant, or SQLite's words for another database's."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mcp_batteries.sql.misspelt import near, other_parameter, where_it_stopped
from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.language.parameters import explain_parameters, find_placeholders
from mcp_sqlite.worker.language.tokens import EXPLAIN_PREFIX
from mcp_sqlite.worker.schema import lookup

__all__ = ["find_hint"]

_HINTED = 200
"""Tables among whose columns a misspelt one is looked for."""
_TEXTS = re.compile(r"'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/", re.DOTALL)

_OTHER_TOOLS = re.compile(
    r"near \"(?:SHOW|DESCRIBE|DESC|USE|\.)\"|unrecognized token: \"\\"
    r"|no such table: (?:information_schema|pg_catalog)\.",
    re.IGNORECASE,
)
_FUNCTIONS = {
    **dict.fromkeys(("now", "getdate", "sysdate"), "`datetime('now')`"),
    **dict.fromkeys(("curdate", "today"), "`date('now')`"),
    **dict.fromkeys(
        ("date_format", "date_part", "date_trunc", "extract", "month", "to_char", "to_date", "year", "day"),
        "`strftime(format, time)`",
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
    "stddev": "no such aggregate: compute it from `avg(x * x)` and `avg(x)`",
    "rand": "`random()`",
}
_DIALECTS = [
    (re.compile(pattern, re.IGNORECASE | re.DOTALL), words)
    for pattern, words in (
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
        (r"\b(?:QUALIFY|PIVOT)\b", "a subquery around the window function, not QUALIFY or PIVOT"),
    )
]  # fmt: skip


def find_hint(database: Database, said: str, sql: str) -> str:
    """One sentence on what to do about `said`, SQLite's words on `sql`; nothing where nobody knows."""
    # sqlite3's words for a value too few or too many, and for an array or an object in the place of the other.
    if " binding" in said or "supplied a sequence" in said or "supplied a dictionary" in said:
        return explain_parameters(find_placeholders(sql))
    kind, _, name = said.partition(": ")
    if kind == "no such table" and (way := _to_file(database, name)):
        return way
    if said == "no such module: vec0":
        return "It is sqlite-vec's; the operator can start the server with `--sqlite-vec`."
    if "constraint is required on vec0 knn queries" in said:
        return "Say how many: `WHERE embedding MATCH ? AND k = 10 ORDER BY distance`."
    if kind == "no such function" and name.lower() in _FUNCTIONS:
        return f"SQLite has {_FUNCTIONS[name.lower()]}."
    if _OTHER_TOOLS.match(said):
        return "`list_tables` and `get_table` tell what there is."
    bare = _TEXTS.sub(lambda found: "''" if found[0].startswith("'") else " ", sql)
    if " constraint failed" in said:  # A statement that ran is SQLite's own dialect.
        return _meant(database, said, bare)
    if other := other_parameter(bare, r"[?:@$]\w*"):
        return f"Write ? in place of `{other}`, and pass the values as an array in `parameters`."
    if kind not in ("no such table", "no such module"):
        for pattern, words in _DIALECTS:
            if pattern.search(bare):
                return f"SQLite has {words}."
    return _meant(database, said, EXPLAIN_PREFIX.sub("", bare))


def _to_file(database: Database, name: str) -> str:
    """How a file is named, where that is what a table was meant to be."""
    is_call = re.match(r"read_(?:csv|json|ndjson|parquet)", name, re.IGNORECASE)
    if not (is_call or re.search(r"\.(?:csv|tsv|jsonl?|parquet)$", name, re.IGNORECASE)):
        return ""
    if database.folder is None:
        return "Files can be read as tables where the operator names their folder with `--files`."
    shown = name if name in database.file_tables else "below/a.csv"
    return f'The name of a file stands in quotes: FROM "{shown}".'


_MOVES = [
    (re.compile(pattern), words)
    for pattern, words in (
        ("ambiguous column name", "Write the table, or its alias, before it: `o.id`."),
        ("incomplete input", "The statement stops too early: write it to its end."),
        ("unrecognized token", "A text stands in '...': look for a quote that is not closed."),
        ("misuse of aggregate", "WHERE sees single rows: use HAVING, or a subquery."),
        ("misuse of (?:aliased )?window function", "Compute it in a subquery, and filter around that."),
        ("row value misused", "Several columns are compared with as many: `(a, b) = (1, 2)`."),
        ("no tables specified", "Name a table behind FROM."),
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
"""What to do about an error that names nothing which could be spelled in another way."""
_KEYS = """
SELECT m.name, f."from", f."table", coalesce(f."to", 'its primary key') FROM main.sqlite_master m
JOIN pragma_foreign_key_list(m.name, 'main') f WHERE m.type = 'table' LIMIT 1000
"""
_OBJECTS = "SELECT name, tbl_name FROM main.sqlite_master WHERE type = ? AND sql IS NOT NULL"
_MOST_COLUMNS = 60
"""Told of the tables that a statement names."""


def _meant(database: Database, said: str, sql: str) -> str:
    kind, _, name = said.partition(": ")
    if (kind.startswith('near "') and kind.endswith("syntax error")) or name == "syntax error":
        word = said_near[1] if (said_near := re.match('near "([^"]+)"', kind)) else ""
        tables = lookup.list_table_names(database)
        columns = [column for table in lookup.find_named_tables(sql, tables) for column in _columns(database, table)]
        return where_it_stopped(word, sql, tables, columns)
    if said == "FOREIGN KEY constraint failed":
        return _keys(database, sql)
    if found := re.fullmatch("table (.+) has no column named (.+)", said):
        return _column(database, found[2], [found[1]], [])
    if found := re.fullmatch(r"table (.+) has \d+ columns? but \d+ values? were supplied", said):
        return f"Name those that you give values for. {_listed(database, [found[1]])}".strip()
    if kind == "no such function":
        return near(
            name, [str(row[0]) for row in database.run_internal("SELECT DISTINCT name FROM pragma_function_list")], 0.7
        )
    if kind in ("no such index", "no such trigger"):
        there = [
            str(row[0])
            for row in database.run_internal(_OBJECTS, [kind.split()[-1]])
            if database.is_visible(str(row[1]))
        ]
        return near(name, there) or "`search_schema` finds those there are."
    if kind not in ("no such table", "no such view", "no such column"):
        moves = ((pattern.search(said), words) for pattern, words in _MOVES)
        return next((words.format(*found.groups()) for found, words in moves if found), "")
    tables = lookup.list_table_names(database)
    if kind != "no such column":
        return near(name.rpartition(".")[2], tables) or "`list_tables` and `get_table` tell the names."
    text = "A text stands in '...'; \"...\" is a name. " if f'"{name}"' in sql else ""
    return text + _column(database, name, lookup.find_named_tables(sql, tables), tables[:_HINTED])


def _column(database: Database, name: str, named: Sequence[str], others: Sequence[str]) -> str:
    """What was meant by the column `name` of the tables `named`, or of `others`; else the columns there are."""
    above, _, plain = name.replace('"', "").rpartition(".")
    columns = [column for table in named for column in _columns(database, table)]
    if above and plain.casefold() in map(str.casefold, columns):
        return f"No table of the statement is called `{above}`."
    if meant := near(plain, columns):
        return meant
    if there := [table for table in others if plain.casefold() in map(str.casefold, _columns(database, table))]:
        return f"It is a column of {', '.join(f'`{table}`' for table in there[:3])}."
    return _listed(database, named) or "`list_tables` and `get_table` tell the names."


def _listed(database: Database, tables: Sequence[str]) -> str:
    """The columns of `tables`, in a sentence for each; empty where they are too many."""
    there = {table: _columns(database, table) for table in tables}
    if sum(map(len, there.values())) > _MOST_COLUMNS:
        return ""
    return " ".join(f"`{table}` has: {', '.join(f'`{name}`' for name in names)}." for table, names in there.items())


def _columns(database: Database, table: str) -> list[str]:
    return [str(row[1]) for row in lookup.list_columns(database, table)]


def _keys(database: Database, sql: str) -> str:
    """The foreign keys of the tables that a statement names, of which SQLite does not say which one it broke."""
    keys = [
        f"`{table}.{column}` to `{other}.{key}`"
        for table, column, other, key in database.run_internal(_KEYS)
        if database.is_visible(table) and database.is_visible(other) and lookup.find_named_tables(sql, [table, other])
    ]
    if not keys:
        return "`get_table` shows the keys of a table."
    return f"A row that is pointed to has to be there: {', '.join(keys[:5])}{', ...' * (len(keys) > 5)}."
