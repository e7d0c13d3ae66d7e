"""The way on from what SQLite does not understand: the name that was meant, or SQLite's own words for another's."""

from __future__ import annotations

import re

from mcp_batteries.sql.misspelt import near, other_parameter, where_it_stopped
from mcp_sqlite.worker import schema
from mcp_sqlite.worker.cells import placeholders, wanted
from mcp_sqlite.worker.connections import Database

__all__ = ["hint"]

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


def hint(database: Database, said: str, sql: str) -> str:
    """One sentence on what to do about `said`, SQLite's words on `sql`; nothing where nobody knows."""
    # sqlite3's words for a value too few or too many, and for an array or an object in the place of the other.
    if " binding" in said or "supplied a sequence" in said or "supplied a dictionary" in said:
        return wanted(placeholders(sql))
    kind, _, name = said.partition(": ")
    if said == "no such module: vec0":
        return "It is sqlite-vec's; the operator can start the server with `--sqlite-vec`."
    if "constraint is required on vec0 knn queries" in said:
        return "Say how many: `WHERE embedding MATCH ? AND k = 10 ORDER BY distance`."
    if kind == "no such function" and name.lower() in _FUNCTIONS:
        return f"SQLite has {_FUNCTIONS[name.lower()]}."
    if _OTHER_TOOLS.match(said):
        return "`list_tables` and `get_table` tell what there is."
    bare = _TEXTS.sub(lambda found: "''" if found[0].startswith("'") else " ", sql)
    if other := other_parameter(bare, r"[?:@$]\w*"):
        return f"Write ? in place of `{other}`, and pass the values as an array in `parameters`."
    if kind not in ("no such table", "no such module"):
        for pattern, words in _DIALECTS:
            if pattern.search(bare):
                return f"SQLite has {words}."
    return _meant(database, kind, name, bare)


_MOVES = {
    "ambiguous column name": "Write the table, or its alias, before it: `o.id`.",
    "incomplete input": "The statement stops too early: write it to its end.",
    "unrecognized token": "A text stands in '...': look for a quote that is not closed.",
}
"""What to do about an error that names nothing which could be spelled in another way."""


def _meant(database: Database, kind: str, name: str, sql: str) -> str:
    if (kind.startswith('near "') and kind.endswith("syntax error")) or name == "syntax error":
        word = said_near[1] if (said_near := re.match('near "([^"]+)"', kind)) else ""
        tables = schema.table_names(database)
        columns = [str(row[1]) for table in schema.named_in(sql, tables) for row in schema.columns_of(database, table)]
        return where_it_stopped(word, sql, tables, columns)
    if kind == "no such function":
        return near(name, [str(row[0]) for row in database.own("SELECT DISTINCT name FROM pragma_function_list")])
    if kind not in ("no such table", "no such column"):
        return _MOVES.get(kind, "")
    tables = schema.table_names(database)
    if kind == "no such table":
        return near(name.rpartition(".")[2], tables) or "`list_tables` and `get_table` tell the names."
    text = "A text stands in '...'; \"...\" is a name. " if f'"{name}"' in sql else ""
    # Those that the statement names are meant before all others.
    for among in (schema.named_in(sql, tables), tables[:_HINTED]):
        columns = {str(row[1]): table for table in among for row in schema.columns_of(database, table)}
        if meant := near(name.rpartition(".")[2], list(columns)):
            return text + meant
    return text + "`list_tables` and `get_table` tell the names."
