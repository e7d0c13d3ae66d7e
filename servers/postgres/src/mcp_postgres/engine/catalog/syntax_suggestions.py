"""Finds words of other databases in a statement, and says PostgreSQL's for them."""

from __future__ import annotations

import re

from mcp_batteries.sql.language import suggestions
from mcp_batteries.sql.transfer.files import READ_FILE_SUFFIXES

__all__ = ["ERROR_POSITION", "FOREIGN_FUNCTIONS", "blank_quoted", "suggest_parameters", "suggest_syntax"]

FOREIGN_FUNCTIONS = {
    **dict.fromkeys(("ifnull", "nvl", "isnull"), "coalesce(value, other)"),
    **dict.fromkeys(("getdate", "sysdate", "getutcdate", "sysdatetime"), "now()"),
    **dict.fromkeys(("curdate", "curtime"), "current_date, current_time"),
    **dict.fromkeys(("group_concat", "listagg"), "string_agg(value, ',')"),
    **dict.fromkeys(("strftime", "date_format", "format_date"), "to_char(time, 'YYYY-MM-DD')"),
    **dict.fromkeys(("str_to_date", "parse_date"), "to_date(text, 'YYYY-MM-DD')"),
    **dict.fromkeys(("datediff", "timestampdiff", "date_diff", "julianday"), "a - b, or extract(epoch FROM a - b)"),
    **dict.fromkeys(("dateadd", "date_sub", "adddate", "timestampadd"), "time + interval '1 day'"),
    **dict.fromkeys(
        ("year", "month", "day", "hour", "minute", "dayofweek", "week", "quarter"), "extract(year FROM time)"
    ),
    **dict.fromkeys(("datetrunc", "date_truncate"), "date_trunc('month', time)"),
    **dict.fromkeys(("len", "datalength"), "length(text)"),
    **dict.fromkeys(("charindex", "instr", "locate"), "strpos(text, part)"),
    **dict.fromkeys(("ucase",), "upper(text)"),
    **dict.fromkeys(("lcase",), "lower(text)"),
    **dict.fromkeys(("iif", "if", "decode"), "CASE WHEN condition THEN value ELSE other END"),
    **dict.fromkeys(("rand", "newid"), "random(), or gen_random_uuid()"),
    **dict.fromkeys(("json_extract", "json_value", "json_query"), "column -> 'key', ->> 'key' as text, or #>> '{a,b}'"),
    **dict.fromkeys(("json_group_array", "json_arrayagg", "collect_list"), "json_agg(value)"),
    **dict.fromkeys(("json_group_object", "json_objectagg"), "json_object_agg(key, value)"),
    **dict.fromkeys(("array_contains", "contains"), "value = ANY (array), or array @> ARRAY[value]"),
    **dict.fromkeys(("last_insert_id", "scope_identity", "last_insert_rowid"), "RETURNING id"),
    **dict.fromkeys(("unix_timestamp", "unixepoch"), "extract(epoch FROM time)"),
    "from_unixtime": "to_timestamp(seconds)", "convert": "value::type", "try_cast": "value::type",
    "stuff": "overlay(text placing part from start)", "regexp_contains": "text ~ 'pattern'",
    "substring_index": "split_part(text, ',', 1)", "percentile": "percentile_cont(0.5) WITHIN GROUP (ORDER BY value)",
    "median": "percentile_cont(0.5) WITHIN GROUP (ORDER BY value)", "row_num": "row_number() OVER (ORDER BY column)",
    "object_id": "to_regclass('schema.name')", "char_index": "strpos(text, part)", "replicate": "repeat(text, times)",
    "explode": "unnest(array)", "any_value": "min(value)", "total": "sum(value)",
    # It is there, for another type than most numbers with a point have.
    "round": "round(value::numeric, digits)",
}  # fmt: skip
_TEMPORARY = re.compile(r"[\s;]*CREATE\s+(?:GLOBAL\s+|LOCAL\s+)?TEMP(?:ORARY)?\b|[^;]*\bINTO\s+TEMP(?:ORARY)?\b", re.I)
# What no query and no change of rows begins with, and the way on.
_COMMANDS = {
    **dict.fromkeys(
        ("begin", "start", "commit", "end", "savepoint", "release"),
        "Leave it away: the statements of one call are one transaction.",
    ),
    **dict.fromkeys(
        ("rollback", "abort"),
        "A query keeps nothing anyway; `dry_run` tries a change and takes it back.",
    ),
    "use": "Leave it away: `database` says which one; a schema stands before a table's name.",
    **dict.fromkeys(
        ("set", "reset"),
        "No setting outlives a call: it holds for the statements behind it, as `SET app.user = '7'; SELECT ...`.",
    ),
    "copy": "`copy_to_file` and `copy_from_file` do that, where they are offered; rows come by SELECT.",
    **dict.fromkeys(("declare", "fetch", "close", "move"), "Send the query itself: a long answer has a `cursor`."),
    **dict.fromkeys(("prepare", "execute", "deallocate"), "Send the statement itself, with `parameters` for $1, $2."),
    **dict.fromkeys(("do", "call"), "`edit_schema` runs it, if the operator started the server with `--admin`."),
    **dict.fromkeys(("listen", "notify", "unlisten"), "Clients hear of changes by subscribing to resources."),
    "lock": "Leave it away: what a change needs is locked for it.",
    **dict.fromkeys(
        ("create", "alter", "drop", "comment", "grant", "revoke", "refresh", "vacuum", "analyze", "reindex"),
        "`edit_schema` does that, if the operator started the server with `--ddl`, and as superuser with `--admin`.",
    ),
}  # fmt: skip
_FOREIGN_SYNTAX = (
    (r"[^\s\\]\s*\\(?:gx?|G|crosstabview)\b", "a statement ends with `;`, and psql's commands are not taken"),
    (r"\bEXPLAIN\s+QUERY\s+PLAN\b", "EXPLAIN, without QUERY PLAN"),
    (r"\bSELECT\b[^;]*(?<!\bINSERT )(?<!\bMERGE )\bINTO\b", "CREATE TABLE name AS SELECT ..., by `edit_schema`"),
    (r"\bDELETE\b[^;]*\bLIMIT\b|\bUPDATE\b[^;]*\bLIMIT\b", "WHERE key IN (SELECT key FROM ... LIMIT 10)"),
    (r"\bUPDATE\b[^;]*\bJOIN\b[^;]*\bSET\b", "UPDATE table SET column = ... FROM other WHERE table.id = other.id"),
    (r"\bINSERT\s+INTO\s+[\w.]+\s+SET\b", "INSERT INTO table (column) VALUES (...)"),
    (r"\bJOIN\s+[\w.\"]+(?:\s+(?:AS\s+)?\w+)?\s*;?\s*\Z", "JOIN ... ON condition, or CROSS JOIN"),
    ("[\u00a0\u2007\u202f\u200b]", "spaces are plain ones; there is another kind of blank in the statement"),
    ("[\u2018\u2019\u201c\u201d]", "quotes are straight: 'text', and \"name\""),
    (r"\bTOP\s*\(?\s*\d+", "LIMIT stands at the end: ORDER BY ... LIMIT 10"),
    (r"`", 'names are quoted "so", by double quotes, and only where they need it'),
    (r"(?<![\w\])\"])\[\s*[A-Za-z_][\w ]*\]", 'names are quoted "so", by double quotes, and only where they need it'),
    (r"\bLIMIT\s+\d+\s*,\s*\d+", "LIMIT count OFFSET start"),
    (r"\bREGEXP\b|\bRLIKE\b", "a pattern is matched by ~, and by ~* whatever the case"),
    (r"\bGLOB\b", "a pattern is matched by LIKE with % and _, or by ~"),
    (r"\bMINUS\b", "EXCEPT"),
    (r"\bINTERVAL\s+\d+\s+\w+", "an interval is text: interval '7 days'"),
    (r"\bROWNUM\b", "LIMIT 10, or row_number() OVER (ORDER BY column)"),
    (r"\bCONNECT\s+BY\b", "WITH RECURSIVE"),
    (r"\bQUALIFY\b", "a subquery that has the window function, and WHERE around it"),
    (r"\bAUTO_?INCREMENT\b", "GENERATED ALWAYS AS IDENTITY"),
    (r"\b(?:DATETIME|TINYINT|MEDIUMTEXT|NVARCHAR)\b", "the types are timestamptz, smallint, text"),
    (r"\bSHOW\s+(?:TABLES|DATABASES|COLUMNS)\b|\A\s*(?:PRAGMA|DESC\w*)\s", "`list_objects` and `get_table` tell it"),
    (r"\bON\s+DUPLICATE\s+KEY\b|\bINSERT\s+OR\s+(?:REPLACE|IGNORE)\b|\bREPLACE\s+INTO\b", "INSERT ... ON CONFLICT (key)"
     " DO UPDATE SET column = excluded.column, or DO NOTHING"),
    (r"\bFROM\s+DUAL\b", "SELECT needs no FROM"),
    (r"\bISNULL\s*\(|\bIFNULL\s*\(", "coalesce(value, other)"),
    (r"<=>", "IS NOT DISTINCT FROM"), (r"&&|\|\|\s*(?:true|false)|==", "conditions are joined by AND, OR and ="),
    (r"\b(?:CURRENT_(?:DATE|TIME|TIMESTAMP|USER)|LOCALTIME)\s*\(\s*\)", "CURRENT_DATE and its like have no ()"),
    (r"\bIN\s*\(\s*\)", "a list has a value at least; an array may be empty: `= ANY ($1)`"),
    (r"\bUNPIVOT\b|\bPIVOT\b", "count(*) FILTER (WHERE column = 'value')"),
    (r"\bWITH\s*\(\s*NOLOCK\s*\)", "leave it out: readers wait for nobody"),
    (r"\bCROSS\s+APPLY\b|\bOUTER\s+APPLY\b", "CROSS JOIN LATERAL, LEFT JOIN LATERAL ... ON true"),
    (r"\bDATE_SUB\s*\(|\bDATE_ADD\s*\(", "time - interval '7 days'"),
)  # fmt: skip
ERROR_POSITION = re.compile(r", at character (\d+)")
_TWO_TOKENS = re.compile(r"""(?:\s*(?:\w+|"[^"]*"|'[^']*'|[^\s\w"']+)){0,2}""")
_QUOTED_OR_COMMENT = re.compile(r"('(?:[^']|'')*')|--[^\n]*|/\*.*?\*/", re.DOTALL)
_FOREIGN_TYPES = {
    "datetime": "timestamptz", "datetime2": "timestamptz", "tinyint": "smallint", "nvarchar": "text", "string": "text",
    "double": "double precision", "blob": "bytea", "longtext": "text", "mediumtext": "text", "number": "numeric",
    "int64": "bigint", "float64": "double precision", "unsigned": "bigint", "varchar2": "text", "clob": "text",
    "signed": "bigint", "bit": "boolean", "uniqueidentifier": "uuid",
}  # fmt: skip
# What stands for names of other dialects, by what PostgreSQL takes these for.
_EQUIVALENTS = {"type": _FOREIGN_TYPES, "function": FOREIGN_FUNCTIONS}


def suggest_syntax(sql: str, *, name: str = "", kind: str = "", message: str = "", is_schema: bool = False) -> str:
    """Return PostgreSQL's word for another dialect's in `sql`, or for `name`; empty where none is known.

    Args:
        sql: the statement.
        name: what PostgreSQL does not know.
        kind: what it takes the name for.
        message: PostgreSQL's; where it tells a place, words elsewhere are not what it is about.
        is_schema: it is where commands for the schema belong.
    """
    if not name and not is_schema:
        command_advice = _suggest_for_command(sql)
        if command_advice:
            return command_advice
    plain = name.rpartition(".")[2].lower()
    if kind in ("", "column", "function"):
        # Where another column is missing, `@id` is an operator and a column that is there.
        parameter_advice = suggest_parameters(sql, plain if kind == "column" else "")
        if parameter_advice:
            return parameter_advice
    equivalent = _EQUIVALENTS.get(kind, {}).get(plain)
    if equivalent:
        return f"PostgreSQL has `{equivalent}`."
    if kind == "relation" and name.lower().endswith(READ_FILE_SUFFIXES):
        return "SQL reads no files here: `copy_from_file`, where it is offered, imports one into a table."
    if kind == "column" and re.search(rf'"{re.escape(name)}"', sql):
        return f"Text stands in single quotes: '{name}'."
    return _suggest_for_words(sql, message)


def _suggest_for_command(sql: str) -> str:
    """Return the way on from a command that no query begins with; else empty."""
    blanked_sql = blank_quoted(sql)
    if _TEMPORARY.match(blanked_sql):
        return "Write WITH name AS (SELECT ...) SELECT ...: nothing temporary outlives a call."
    first_word = re.match(r"[\s;]*(\w+)", blanked_sql)
    if first_word is None:
        return ""
    return _COMMANDS.get(first_word[1].lower(), "")


def _suggest_for_words(sql: str, message: str) -> str:
    """Return PostgreSQL's words for the first of another dialect that the error is about; else empty."""
    position = ERROR_POSITION.search(message)
    error_offset = int(position[1]) - 1 if position else None
    blanked_sql = blank_quoted(sql)
    for words, advice in _FOREIGN_SYNTAX:
        if _is_about_error(error_offset, words, blanked_sql):
            return f"In PostgreSQL: {advice}."
    return ""


def _is_about_error(error_offset: int | None, words: str, sql: str) -> bool:
    """Return whether words are in the statement, and PostgreSQL gave up in them or at most two tokens behind."""
    for match in re.finditer(words, sql, re.I):
        if error_offset is None:
            return True
        if _token_start(sql, match.start()) <= error_offset <= _end_of_next_tokens(sql, match.end()):
            return True
    return False


def _token_start(sql: str, at: int) -> int:
    """Return where the token that reaches up to `at` begins; only blanks of ASCII part two."""
    return max(sql.rfind(blank, 0, at) for blank in " \t\n\r") + 1


def _end_of_next_tokens(sql: str, at: int) -> int:
    match = _TWO_TOKENS.match(sql, at)
    if match:
        return match.end()
    return at


def suggest_parameters(sql: str, name: str = "") -> str:
    """Return how values are given, where `sql` has one with `name` in it as another dialect writes it; else empty."""
    other = suggestions.explain_parameter_style(blank_quoted(sql), r"\$\d+", name)
    advice = f"Write $1 in place of `{other}`, then $2 and so on, and pass the values as an array in `parameters`."
    return advice if other else ""


def blank_quoted(sql: str) -> str:
    """Return the statement with blanks for comments and for what stands in quotes, so that places stay."""
    return _QUOTED_OR_COMMENT.sub(_blank, sql)


def _blank(match: re.Match[str]) -> str:
    """Return as many blanks, in quotes where there were any."""
    text = match[0]
    if match[1]:
        return f"'{' ' * (len(text) - 2)}'"
    return " " * len(text)
