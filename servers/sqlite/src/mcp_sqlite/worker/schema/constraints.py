"""What a table has beside columns and keys that a change may meet: UNIQUE, CHECK, actions of keys, triggers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from mcp_batteries.sql.language.identifiers import quote_identifier, spell_identifier
from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.language.tokens import TOKEN, list_checks
from mcp_sqlite.worker.schema.lookup import TableEntry, list_column_names, query_unless_broken
from mcp_sqlite.worker.schema.shapes import ForeignKeyColumn

__all__ = ["count_triggers", "describe_constraints"]

_MAX_CHECK_LENGTH = 100


def count_triggers(database: Database) -> Counter[str]:
    """Return how many triggers tables and views have, by their names in lower case."""
    rows = database.run_internal("SELECT lower(tbl_name) FROM sqlite_master WHERE type = 'trigger'")
    return Counter(str(name) for (name,) in rows)


def describe_constraints(
    database: Database,
    entry: TableEntry,
    keys: Sequence[ForeignKeyColumn],
    trigger_count: int,
    *,
    with_indexes: bool = False,
) -> list[str]:
    """Return the constraints of a table or view, in words of SQL, and that it has triggers.

    Args:
        with_indexes: list those that forbid nothing too.
    """
    constraints = _list_index_columns(database, entry.name, unique=True)
    if with_indexes:
        constraints += _list_plain_indexes(database, entry)
    constraints += [_shorten(check) for check in list_checks(entry.sql)]
    constraints += [
        f"{spell_identifier(str(key.column))} ON DELETE {key.on_delete}" for key in keys if key.on_delete != "NO ACTION"
    ]
    if trigger_count:
        constraints.append(f"{trigger_count} trigger{'s' if trigger_count > 1 else ''}")
    return constraints


def _list_index_columns(database: Database, table: str, *, unique: bool) -> list[str]:
    """Return the indexes that forbid what is twice, other than the primary key, or the others, without expressions."""
    title = "UNIQUE" if unique else "INDEX"
    indexes: list[str] = []
    for _, name, is_unique, origin, is_partial in query_unless_broken(
        database, f"PRAGMA main.index_list({quote_identifier(table)})"
    ):
        if bool(is_unique) != unique or origin == "pk":
            continue
        rows = query_unless_broken(database, f"PRAGMA main.index_info({quote_identifier(name)})")
        columns = ["…" if column is None else spell_identifier(str(column)) for _, _, column in rows]
        indexes.append(f"{title} ({', '.join(columns)}){' WHERE …' if is_partial else ''}")
    return indexes


def _list_plain_indexes(database: Database, entry: TableEntry) -> list[str]:
    """Return the indexes that forbid nothing, as they were written; where columns are masked, without expressions."""
    if any(database.is_masked(entry.name, column) for column in list_column_names(database, entry.name)):
        return _list_index_columns(database, entry.name, unique=False)
    rows = query_unless_broken(
        database,
        "SELECT m.sql FROM pragma_index_list(?, 'main') i JOIN sqlite_master m ON m.type = 'index' AND m.name = i.name"
        ' WHERE NOT i."unique" AND m.sql IS NOT NULL ORDER BY i.name',
        [entry.name],
    )
    return [f"INDEX {_shorten(_find_indexed(str(sql)))}" for (sql,) in rows]


def _find_indexed(sql: str) -> str:
    """Return what stands behind the name of the table in a CREATE INDEX."""
    is_behind_on = False
    for token in TOKEN.finditer(sql):
        if token["word"] is not None and token["word"].upper() == "ON":
            is_behind_on = True
        elif is_behind_on and token[0] == "(":
            return " ".join(sql[token.start() :].split())
    return "(…)"


def _shorten(check: str) -> str:
    if len(check) <= _MAX_CHECK_LENGTH:
        return check
    return f"{check[:_MAX_CHECK_LENGTH]}…"
