"""What a schema holds, what a change made of it, and the way back."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mcp_batteries.sql.renames import renames_back
from mcp_sqlite.worker import schema
from mcp_sqlite.worker.connections import Database
from mcp_sqlite.worker.schema import quoted

__all__ = ["Made", "difference", "objects", "way_back"]

_NUMBERS = ("user_version", "application_id")
_ORDER = ("index", "view", "trigger")
_DROPS_COLUMN = re.compile(r"\bALTER\s+TABLE\b.*\bDROP\b", re.IGNORECASE | re.DOTALL)
_LOST = "-- no statement brings back rows: `copy_database`, or the operator's backup, before it is done"


class Made(NamedTuple):
    """An object of the schema.

    Attributes:
        table: the one that it is about.
        root: where a table begins in the file; its name may become another.
    """

    sql: str
    table: str = ""
    root: int = 0
    columns: tuple[str, ...] = ()


def objects(database: Database) -> dict[str, Made]:
    """Every object by its kind and name, and the numbers that are kept with the schema."""
    rows = database.own(
        "SELECT type || ' ' || name, coalesce(sql, ''), tbl_name, rootpage FROM sqlite_master"
        " WHERE name NOT LIKE 'sqlite!_%' ESCAPE '!'"
    )
    columns: dict[str, list[str]] = {}
    for table, column in database.own(
        "SELECT m.name, c.name FROM sqlite_master m, pragma_table_xinfo(m.name) c"
        " WHERE m.type = 'table' AND m.rootpage > 0 ORDER BY c.cid"
    ):
        columns.setdefault(str(table), []).append(str(column))
    hidden = {f"table {name}" for name in schema.shadows(database)}
    found = {
        str(name): Made(str(sql), str(table), int(root or 0), tuple(columns.get(str(table), ())))
        for name, sql, table, root in rows
        if str(name).lower() not in hidden
    }
    numbers = {name: database.own(f"PRAGMA {name}")[0][0] for name in _NUMBERS}
    return found | {f"{name} = {number}": Made("") for name, number in numbers.items() if number}


def difference(before: Mapping[str, Made], after: Mapping[str, Made]) -> list[str]:
    """The objects that came (+), went (-) and have another form (~)."""
    lines = [f"+ {name}" for name in after.keys() - before.keys()]
    lines += [f"- {name}" for name in before.keys() - after.keys()]
    lines += [f"~ {name}" for name in after.keys() & before.keys() if after[name].sql != before[name].sql]
    return sorted(lines, key=lambda line: line[2:])


def way_back(
    before: Mapping[str, Made], after: Mapping[str, Made], statements: Sequence[str], *, rows: bool
) -> list[str]:
    """Statements that undo what the schema gained and lost; what no statement brings back stands there as a comment.

    Args:
        statements: those that made the change.
        rows: whether rows of tables that were there are others now.
    """
    renamed = _renamed(before, after)
    # A name may be there before and after, and be that of another table.
    led = {*renamed.values()}
    came = [name for name in after if name not in led and (name not in before or name in renamed)]
    gone = [name for name in before if name not in renamed and (name not in after or name in led)]
    other = [name for name in before if name in after and not {name} & (led | {*renamed})]
    other = [name for name in other if before[name].sql != after[name].sql]
    drops = [name for name in (*came, *other) if not _is_table(name) and " = " not in name]
    with_table = {name for name in drops if f"table {after[name].table}" in came and not name.startswith("view ")}
    lines = [_drop(name) for name in sorted(drops) if name not in with_table]
    lines += [_drop(name) for name in sorted(came) if _is_table(name)]
    # No other table can be altered while a trigger or view names one that is missing.
    lines += [f"{before[name].sql};" for name in gone if _is_table(name) and name not in led]
    lost: set[str] = set()
    can_be_renamed = not any(map(_DROPS_COLUMN.search, statements))
    for name, now in [*renamed.items(), *((name, name) for name in other if _is_table(name))]:
        found = _columns_back(before[name], after[now], can_be_renamed=can_be_renamed)
        if found is None:
            lost.add(before[name].table)
        else:
            lines += found
    steps = renames_back(renamed, lambda name, number: f"table mcp_back_{number}")
    lines += [f"ALTER TABLE {quoted(now[6:])} RENAME TO {quoted(name[6:])};" for now, name in steps]
    lines += [f"{before[name].sql};" for name in gone if _is_table(name) and name in led]
    again = [name for name in (*gone, *other) if not _is_table(name)]
    for name in sorted(again, key=lambda name: _ORDER.index(name.partition(" ")[0]) if " = " not in name else 0):
        if sql := before[name].sql:
            lines.append(f"{sql};" if before[name].table not in lost else _comment(f"{sql};"))
    lines += [_comment(f"{name} was: {before[name].sql};") for name in other if before[name].table in lost]
    for number in _NUMBERS:
        was, now = (next((name for name in side if name.startswith(f"{number} = ")), "") for side in (before, after))
        lines += [f"PRAGMA {was or f'{number} = 0'};"] if was != now else []
    if rows or any(_is_table(name) for name in gone):
        lines.append(_LOST)
    return lines


def _is_table(name: str) -> bool:
    return name.startswith("table ")


def _drop(name: str) -> str:
    kind, _, word = name.partition(" ")
    return f"DROP {kind.upper()} {quoted(word)};"


def _comment(text: str) -> str:
    return "\n".join(f"-- {line}" for line in text.splitlines())


def _renamed(before: Mapping[str, Made], after: Mapping[str, Made]) -> dict[str, str]:
    """The tables that have another name now: they begin where they began."""
    roots = {made.root: name for name, made in after.items() if _is_table(name) and made.root}
    return {
        name: roots[made.root]
        for name, made in before.items()
        if _is_table(name) and roots.get(made.root, name) != name
        and _like(made.columns, after[roots[made.root]].columns)
    }  # fmt: skip


def _like(was: Sequence[str], now: Sequence[str]) -> bool:
    # What is made anew may begin where a table was that is gone.
    return was[:1] == now[:1] and len(now) >= len(was)


def _columns_back(was: Made, now: Made, *, can_be_renamed: bool) -> list[str] | None:
    """What gives a table its columns again, under its name of now; None where nothing does."""
    table, kept = quoted(now.table), now.columns[: len(was.columns)]
    if was.root != now.root or len(kept) < len(was.columns) or (kept != was.columns and not can_be_renamed):
        return None
    lines = [f"ALTER TABLE {table} DROP COLUMN {quoted(name)};" for name in reversed(now.columns[len(kept) :])]
    return lines + [
        f"ALTER TABLE {table} RENAME COLUMN {quoted(new)} TO {quoted(old)};"
        for old, new in zip(was.columns, kept, strict=True)
        if old != new
    ]
