"""The objects of a schema, what a change did to them, and how to undo it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from mcp_batteries.sql.identifiers import identifier
from mcp_batteries.sql.renames import renames_back
from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.language.tokens import BLANK, terminate
from mcp_sqlite.worker.schema import lookup

__all__ = ["RenameTrail", "SchemaObject", "build_undo", "describe_difference", "read_objects"]

_NUMBERS = ("user_version", "application_id")
_ORDER = ("index", "view", "trigger")
_CREATES = re.compile(BLANK + r"CREATE\b", re.IGNORECASE)
_LOST = "-- no statement brings back rows: `copy_database`, or the operator's backup, before it is done"


class _Shape(NamedTuple):
    """A table.

    Attributes:
        columns: their names; of a virtual table none.
    """

    sql: str
    columns: tuple[str, ...]


_Shapes = Mapping[str, _Shape]
"""By names with `table` before each."""


class SchemaObject(NamedTuple):
    """An object of the schema.

    Attributes:
        table: the one that it is about.
    """

    sql: str
    table: str = ""


class _Kept(NamedTuple):
    """What became of a table that is still there.

    Attributes:
        columns: the names that those it had have now; None for one that was dropped.
    """

    name: str
    columns: tuple[str | None, ...]


def _shapes(database: Database, known: _Shapes | None = None) -> _Shapes:
    """The tables but those that virtual ones keep for themselves; what `known` has of them is not read again."""
    hidden = lookup.find_shadow_tables(database)
    found: dict[str, _Shape] = {}
    for name, sql, root in database.run_internal(
        "SELECT name, sql, rootpage FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!'"
    ):
        if str(name).lower() not in hidden:
            shape = (known or {}).get(f"table {name}")
            if shape is None or shape.sql != sql:
                columns = (
                    database.run_internal("SELECT name FROM pragma_table_xinfo(?) ORDER BY cid", [name]) if root else []
                )
                shape = _Shape(str(sql), tuple(str(column) for (column,) in columns))
            found[f"table {name}"] = shape
    return found


class RenameTrail:
    """What becomes of the tables while statements run one by one.

    Attributes:
        had: the tables that were there.
        kept: what became of them.
        rows: whether rows of theirs are others now.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.had = self._was = self._now = _shapes(database)
        self.kept = {name: _Kept(name, table.columns) for name, table in self.had.items()}
        self.rows = self._creates = self._is_late = False

    @property
    def now(self) -> _Shapes:
        """The tables of now."""
        if self._is_late:
            self._now, self._is_late = _shapes(self._database, self._now), False
        return self._now

    def before(self, sql: str) -> None:
        """Look before a statement."""
        self._creates = _CREATES.match(sql) is not None
        if not self._creates:
            self._was = self.now

    def behind(self, what: str, written: Iterable[str]) -> None:
        """Look behind it.

        Args:
            what: its first words, where it is about the schema.
            written: the tables whose rows it wrote.
        """
        there = {table.name for table in self.kept.values()}
        self.rows = self.rows or any(f"table {name}" in there for name in written)
        if self._creates:  # Of many tables a look takes long, and what is new changes no other.
            self._is_late = True
        elif what:
            self._now = _shapes(self._database, self._was)
            self.kept = _followed(self.kept, self._was, self._now, altered=what.startswith("ALTER"))


def _followed(kept: Mapping[str, _Kept], was: _Shapes, now: _Shapes, *, altered: bool) -> dict[str, _Kept]:
    """What became of tables, one statement later.

    What begins where another began, or has its name and columns, may be made anew: only statement by statement it is
    known which is which.

    Args:
        kept: what became of them until then.
        altered: whether the statement was ALTER TABLE.
    """
    gone, came = was.keys() - now.keys(), now.keys() - was.keys()
    moved = dict(zip(gone, came, strict=True)) if altered and len(gone) == len(came) == 1 else {}
    found: dict[str, _Kept] = {}
    for table, (name, columns) in kept.items():
        to = moved.get(name, name)
        if to in now:
            had, has = was[name].columns, now[to].columns
            names = dict(zip(had, has, strict=True) if len(had) == len(has) else zip(has, has, strict=True))
            found[table] = _Kept(to, tuple(None if column is None else names.get(column) for column in columns))
    return found


def read_objects(database: Database) -> dict[str, SchemaObject]:
    """Every object by its kind and name, and the numbers that are kept with the schema."""
    rows = database.run_internal(
        "SELECT type || ' ' || name, coalesce(sql, ''), tbl_name FROM sqlite_master"
        " WHERE name NOT LIKE 'sqlite!_%' ESCAPE '!'"
    )
    hidden = {f"table {name}" for name in lookup.find_shadow_tables(database)}
    found = {
        str(name): SchemaObject(str(sql), str(table)) for name, sql, table in rows if str(name).lower() not in hidden
    }
    numbers = {name: database.run_internal(f"PRAGMA {name}")[0][0] for name in _NUMBERS}
    return found | {f"{name} = {number}": SchemaObject("") for name, number in numbers.items() if number}


def describe_difference(before: Mapping[str, SchemaObject], after: Mapping[str, SchemaObject]) -> list[str]:
    """The objects that came (+), went (-) and have another form (~)."""
    lines = [f"+ {name}" for name in after.keys() - before.keys()]
    lines += [f"- {name}" for name in before.keys() - after.keys()]
    lines += [f"~ {name}" for name in after.keys() & before.keys() if after[name].sql != before[name].sql]
    return sorted(lines, key=lambda line: line[2:])


def build_undo(before: Mapping[str, SchemaObject], after: Mapping[str, SchemaObject], trail: RenameTrail) -> list[str]:
    """Statements that undo what the schema gained and lost; what no statement brings back stands there as a comment."""
    kept, now, had = trail.kept, trail.now, trail.had
    renamed = {name: table.name for name, table in kept.items() if table.name != name}
    # A name may be there before and after, and be that of another table.
    led = {name.lower() for name in renamed.values()}
    came = [name for name in after if name.lower() not in led and (name not in before or name in renamed)]
    gone = [name for name in before if name not in renamed and (name not in after or name.lower() in led)]
    same = [name for name in before if name in after and name.lower() not in led and name not in renamed]
    other = [name for name in same if before[name] != after[name] or _moved(before[name], after[name], kept)]
    drops = [name for name in (*came, *other) if not _is_table(name) and not _is_number(name)]
    # With a view go its triggers, and those that were there are to be there again.
    along = [name for name in same if name not in other and f"view {before[name].table}" in drops]
    other += [name for name in along if name.startswith("trigger ")]
    with_table = {name for name in drops if f"table {after[name].table}" in came and not name.startswith("view ")}
    lines = [_drop(name) for name in sorted(drops) if name not in with_table]
    lines += [_drop(name) for name in sorted(came) if _is_table(name)]
    # No other table can be altered while a trigger or view names one that is missing.
    lines += [terminate(before[name].sql) for name in gone if _is_table(name) and name.lower() not in led]
    lost = [name for name in other if _is_table(name) and name not in kept]
    lost += [name for name, table in kept.items() if None in table.columns and before[name] != after[table.name]]
    for name, table in kept.items():
        if None not in table.columns:
            lines += _columns_back(had[name].columns, table, now[table.name].columns)
    spare = _spare("table mcp_back_", {*before, *after})
    lines += [
        f"ALTER TABLE {identifier(new[6:])} RENAME TO {identifier(old[6:])};"
        for new, old in renames_back(renamed, spare, str.lower)
    ]
    lines += [terminate(before[name].sql) for name in gone if _is_table(name) and name.lower() in led]
    again = [name for name in (*gone, *other) if not _is_table(name) and not _is_number(name)]
    unsure = [name[6:].lower() for name in lost]
    for name in sorted(again, key=lambda name: _ORDER.index(name.partition(" ")[0])):
        if sql := before[name].sql:
            # A trigger can't be made on a view that is not there.
            if before[name].table.lower() in unsure or (unsure and lookup.find_named_tables(sql, unsure)):
                unsure.append(name.partition(" ")[2].lower())
                lines.append(_remark(terminate(sql)))
            else:
                lines.append(terminate(sql))
    lines += [_remark(f"{name} was: {terminate(before[name].sql)}") for name in lost]
    for number in _NUMBERS:
        was, new = (next((name for name in side if name.startswith(f"{number} = ")), "") for side in (before, after))
        lines += [f"PRAGMA {was or f'{number} = 0'};"] if was != new else []
    if trail.rows or len(kept) < len(had) or any(None in table.columns for table in kept.values()):
        lines.append(_LOST)
    return lines


def _is_table(name: str) -> bool:
    return name.startswith("table ")


def _is_number(name: str) -> bool:
    return name.startswith(_NUMBERS)


def _drop(name: str) -> str:
    kind, _, word = name.partition(" ")
    return f"DROP {kind.upper()} {identifier(word)};"


def _remark(text: str) -> str:
    # What stands behind a line break would be a statement.
    return "-- " + re.sub(r"\r\n?|\n", r"\g<0>-- ", text)


def _moved(was: SchemaObject, now: SchemaObject, kept: Mapping[str, _Kept]) -> bool:
    """Whether what has the same text as before belongs to another table, which has that one's name."""
    table = kept.get(f"table {was.table}")
    return table is not None and table.name != f"table {now.table}"


def _spare(begin: str, taken: Collection[str]) -> Callable[[str, int], str]:
    """Names that nobody has, for `renames_back`."""
    names = {name.lower() for name in taken}

    def spare(_: str, number: int) -> str:
        while f"{begin}{number}" in names:
            number += len(names)
        return f"{begin}{number}"

    return spare


def _columns_back(had: tuple[str, ...], kept: _Kept, now: tuple[str, ...]) -> list[str]:
    """What gives a table its columns again, under its name of now."""
    table = identifier(kept.name[6:])
    lines = [
        f"ALTER TABLE {table} DROP COLUMN {identifier(name)};" for name in reversed(now) if name not in kept.columns
    ]
    names = {old: new for old, new in zip(had, kept.columns, strict=True) if new is not None and new != old}
    steps = renames_back(names, _spare("mcp_back_", {*had, *now}), str.lower)
    return lines + [f"ALTER TABLE {table} RENAME COLUMN {identifier(new)} TO {identifier(old)};" for new, old in steps]
