"""Finds words in the schema's names and definitions, and in full-text tables."""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from collections.abc import Iterator
from typing import Any, NamedTuple

from mcp_batteries.sql.language.identifiers import quote_identifier
from mcp_sqlite.worker.connection.authorizer import Mode
from mcp_sqlite.worker.connection.connections import Connections
from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.language.failure import Failure
from mcp_sqlite.worker.language.values import RowEncoder
from mcp_sqlite.worker.schema.full_text import FullTextTable, list_full_text_tables
from mcp_sqlite.worker.schema.lookup import find_shadow_tables, find_table, list_columns
from mcp_sqlite.worker.schema.shapes import explain_obstacle

__all__ = ["search_schema", "search_text"]

_MAX_BYTES = 10_000
_MAX_LINE_LENGTH = 200
_MAX_MESSAGE_LENGTH = 300
# A phrase or a word of FTS5's syntax; a word before a colon is a column.
_PHRASE = re.compile(r'"(?P<quoted>(?:[^"]|"")*)"|(?P<word>[^\s"(){}:^+*,]++)(?!\s*:)')
_OPERATORS = ("AND", "OR", "NOT", "NEAR")
# Tokenizers that find parts of words, or words without spaces between them.
_DIVIDES_WORDS = re.compile(r"\b(?:trigram|icu)\b", re.IGNORECASE)
_TRIGRAM = re.compile(r"\btrigram\b", re.IGNORECASE)
_TRIGRAM_LENGTH = 3


class _SchemaObject(NamedTuple):
    """A table, view, index or trigger, and the table that it belongs to."""

    kind: str
    name: str
    table: str
    sql: str


def search_schema(connections: Connections, request: dict[str, Any]) -> dict[str, Any]:
    """Return where `text` occurs, case aside, in names of tables, columns, indexes and triggers, and in the DDL."""
    database = connections.reader(request["path"])
    text = request["text"].casefold()
    limit: int = request["limit"]
    objects = _list_schema_objects(database)
    hits: list[str] = []
    without_name: list[_SchemaObject] = []
    for item in objects:
        if len(hits) > limit:
            break
        names = list(_search_names(database, item, text))
        hits += names
        # The definition repeats the names.
        if not names:
            without_name.append(item)
    # Behind all names: the triggers of one table may have hundreds of lines.
    for item in without_name:
        if len(hits) > limit or sum(map(len, hits)) > _MAX_BYTES:
            break
        hits += _search_definition(item, text)
    page = hits[:limit]
    while page and sum(len(hit.encode()) for hit in page) > _MAX_BYTES:
        page = page[: len(page) * 3 // 4]
    return {"hits": page, "more": len(hits) > len(page)}


def _list_schema_objects(database: Database) -> list[_SchemaObject]:
    rows = database.run_internal(
        "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master ORDER BY tbl_name, type DESC"
    )
    shadow_tables = find_shadow_tables(database)
    objects = [_SchemaObject(*row) for row in rows]
    return [
        item
        for item in objects
        if str(item.table).lower() not in shadow_tables and database.is_visible(str(item.table))
    ]


def _search_names(database: Database, item: _SchemaObject, text: str) -> Iterator[str]:
    if text in item.name.casefold():
        owner = f" on {item.table}" if item.table != item.name else ""
        yield f"{item.kind} {item.name}{owner}"
    if item.kind in ("table", "view"):
        for column in list_columns(database, item.name):
            if text in str(column.name).casefold():
                yield f"column {item.name}.{column.name} {column.type}".rstrip()


def _search_definition(item: _SchemaObject, text: str) -> Iterator[str]:
    for number, line in enumerate(item.sql.split("\n"), 1):
        if text in line.casefold():
            yield f"line {number} of {item.kind} {item.name}: {line.strip()[:_MAX_LINE_LENGTH]}"


def search_text(connections: Connections, request: dict[str, Any]) -> dict[str, Any]:
    """Return rows of a full-text table that match, the best first, as a snippet and the columns.

    Words that are not in the syntax of FTS are looked for as they are.
    """
    database = connections.reader(request["path"])
    full_text_table = _choose_full_text_table(database, request.get("table"))
    sql = _build_search(full_text_table)
    words: list[str] = request["text"].split()
    quoted_words = " ".join('"' + word.replace('"', '""') + '"' for word in words)
    notes = _describe_limits(full_text_table, request["text"])
    if full_text_table.module != "fts5" and not _excludes_by_minus(database):
        notes += _describe_minus_signs(words)
    try:
        return _run_search(database, full_text_table, sql, request["text"], request) | {"notes": notes}
    except sqlite3.OperationalError as error:
        database.interrupt.check()
        _refuse_unreadable(database, full_text_table)
        if request["text"] == quoted_words:
            raise _explain_search_error(error) from None
    notes = [*_describe_limits(full_text_table, quoted_words), *_describe_minus_signs(words)]
    try:
        return _run_search(database, full_text_table, sql, quoted_words, request) | {"notes": notes}
    except sqlite3.OperationalError as error:
        database.interrupt.check()
        raise _explain_search_error(error) from None


def _describe_limits(full_text_table: FullTextTable, text: str) -> list[str]:
    """Return which parts of a search a table can't find, as its index has no such words."""
    phrases = list(_find_phrases(text))
    if _TRIGRAM.search(full_text_table.sql):
        ignored = [f"`{phrase}`" for phrase in phrases if len(phrase) < _TRIGRAM_LENGTH]
        if not ignored:
            return []
        return [f"not searched for, shorter than {_TRIGRAM_LENGTH} characters: {', '.join(ignored)}; LIKE finds that"]
    if _DIVIDES_WORDS.search(full_text_table.sql):
        return []
    if any(unicodedata.east_asian_width(letter) == "W" for phrase in phrases for letter in phrase):
        return ["this index has words as spaces and signs divide them; LIKE finds parts of them too"]
    return []


def _find_phrases(text: str) -> Iterator[str]:
    for match in _PHRASE.finditer(text):
        if match["quoted"] is not None:
            yield match["quoted"].replace('""', '"')
        elif match["word"] not in _OPERATORS:
            yield match["word"]


def _excludes_by_minus(database: Database) -> bool:
    """Return whether a minus sign excludes a word in FTS3 and FTS4, which have two syntaxes."""
    return not database.read_internal("SELECT sqlite_compileoption_used('ENABLE_FTS3_PARENTHESIS')")


def _describe_minus_signs(words: list[str]) -> list[str]:
    """Return that a minus sign excludes nothing, of words that were searched for as they are."""
    words_with_sign = [f"`{word}`" for word in words if len(word) > 1 and word.startswith("-")]
    if not words_with_sign:
        return []
    return [f"{', '.join(words_with_sign)}: searched for, not excluded, which is `this NOT that`"]


def _explain_search_error(error: sqlite3.Error) -> Failure:
    message = str(error)[:_MAX_MESSAGE_LENGTH]
    return Failure("invalid", f"SQLite says: `{message}`.", "Search for plain words.")


def _refuse_unreadable(database: Database, full_text_table: FullTextTable) -> None:
    """Raise a failure if a table can't be read whatever is searched for.

    That is so where it indexes another table that has lost or renamed a column since.
    """
    try:
        database.run_internal(f"SELECT * FROM {quote_identifier(full_text_table.name)} LIMIT 1")
    except sqlite3.OperationalError as error:
        database.interrupt.check()
        raise Failure(
            "unavailable",
            f"`{full_text_table.name}` can't be read: {explain_obstacle(database, error)}.",
            "`get_table` shows which table it indexes: `query_rows` with LIKE searches that.",
        ) from None


def _choose_full_text_table(database: Database, table: str | None) -> FullTextTable:
    """Return the full-text table `table`, or the only one."""
    tables = list_full_text_tables(database)
    message = "There is no full-text table."
    if table is not None:
        name = find_table(database, table)
        tables = [item for item in tables if item.name == name]
        message = "There is no full-text table of that name."
    if not tables:
        raise Failure("not_found", message, "Use `query_rows` with LIKE.")
    if len(tables) > 1:
        names = ", ".join(f"`{item.name}`" for item in tables)
        raise Failure("invalid", "There are several full-text tables.", f"Name one as `table`: {names}.")
    return tables[0]


def _build_search(full_text_table: FullTextTable) -> str:
    table = quote_identifier(full_text_table.name)
    order = ""
    snippet = f"snippet({table}, '[', ']', '…')"
    if full_text_table.module == "fts5":
        order = "ORDER BY rank"
        snippet = f"snippet({table}, -1, '[', ']', '…', 16)"
    return f"SELECT rowid, {snippet} AS snippet, * FROM {table} WHERE {table} MATCH ? {order} LIMIT ?"


def _run_search(
    database: Database, full_text_table: FullTextTable, sql: str, text: str, request: dict[str, Any]
) -> dict[str, Any]:
    encoder = RowEncoder(request["max_cell"])
    lines: list[str] = []
    size = 0
    has_more = False
    database.authorizer.begin(Mode.READ)
    with database.interrupt.reach(database.connection):
        cursor = database.connection.execute(sql, [text, request["limit"] + 1])
        for row in cursor:
            line = encoder.encode_within(row, request["max_bytes"])
            size += len(line.encode())
            if lines and (size > request["max_bytes"] or len(lines) == request["limit"]):
                has_more = True
                break
            lines.append(line)
        columns = [column[0] for column in cursor.description]
        cursor.close()
    return {
        "table": full_text_table.name,
        "columns": columns,
        "lines": "".join(lines),
        "rows": len(lines),
        "more": has_more,
        "cut": encoder.cut_cells,
    }
