"""Statements that give renamed objects their old names, using current names."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from mcp_batteries.sql.renames import renames_back
from mcp_postgres.engine.change.objects import DatabaseObject, Dependency, ObjectsByKey

__all__ = ["rename_statements"]

_OUTER = "cfysl"
_INNER = "aktpre"
_FORMS = {
    "a": "ALTER {what} {on} RENAME COLUMN {now} TO {was};", "k": "ALTER {what} {on} RENAME CONSTRAINT {now} TO {was};",
    "t": "ALTER TRIGGER {now} ON {on} RENAME TO {was};", "p": "ALTER POLICY {now} ON {on} RENAME TO {was};",
    "r": "ALTER RULE {now} ON {on} RENAME TO {was};", "e": "ALTER TYPE {on} RENAME VALUE {now} TO {was};",
}  # fmt: skip


def rename_statements(
    was: ObjectsByKey, now: ObjectsByKey, keys: Iterable[str], depends: Sequence[Dependency]
) -> list[str]:
    """Return the statements for objects whose names are others now, or lie in something that has another one.

    Args:
        depends: how they depend on each other now.
    """
    along = {one for one, _, kind in depends if kind in "PS"}
    along |= {one for one, other, kind in depends if kind == "i" and other[0] == "k"}
    renamed = [key for key in keys if key not in along]
    inner = [key for key in was if key[0] in _INNER and key in now and key not in along and not _is_inherited(now[key])]
    lines = _rename_parts(was, now, [key for key in inner if was[key].name != now[key].name])
    owned = {one for one, other, kind in depends if kind in "ai" and other[0] == "a" and one[0] == "c"}
    lines += _rename_in_schemas(was, now, [key for key in renamed if key[0] in _OUTER], owned)
    for key in renamed:
        if key[0] == "n":
            lines.append(f"ALTER SCHEMA {now[key].name} RENAME TO {was[key].name};")
        elif key[0] == "o":
            lines.append(f"ALTER ROLE {now[key].name} RENAME TO {was[key].name};")
    return lines


def _rename_parts(was: ObjectsByKey, now: ObjectsByKey, keys: Sequence[str]) -> list[str]:
    """Return the parts of tables and types."""
    lines: list[str] = []
    for parent, kind in dict.fromkeys((now[key].parent, key[0]) for key in keys):
        if parent not in now:
            continue
        names = {was[key].name: now[key].name for key in keys if (now[key].parent, key[0]) == (parent, kind)}
        if kind == "k" and parent[0] == "y":
            what = "DOMAIN"
        else:
            what = now[parent].sql_kind
        if what == "TYPE" and kind == "a":
            form = _FORMS[kind].replace("COLUMN", "ATTRIBUTE")
        else:
            form = _FORMS[kind]
        for current, old in renames_back(names, lambda _, number: f"mcp_back_{number}"):
            line = form.format(what=what, on=now[parent].qualified_name, now=current, was=old)
            lines.append(line.removesuffix(";") + " CASCADE;" if what == "TYPE" and kind == "a" else line)
    return lines


def _rename_in_schemas(was: ObjectsByKey, now: ObjectsByKey, keys: Sequence[str], owned: Collection[str]) -> list[str]:
    """Return what lies in schemas, which still have their names of now."""
    lines: list[str] = []
    relations: dict[str, str] = {}
    things: dict[str, DatabaseObject] = {}
    divided: dict[str, tuple[str, str]] = {}
    for key in keys:
        one = was[key]
        other = now[key]
        schema = (now if one.parent in now else was)[one.parent].name
        there = now[other.parent].name
        moves = other.parent != one.parent and other.kind != "index" and key not in owned
        target = f"{schema if moves else there}.{one.name}"
        if key[0] == "c":
            if target != other.qualified_name:
                relations[target] = other.qualified_name
                things[target] = other
                divided[target] = (schema if moves else there, one.name)
                divided[other.qualified_name] = (there, other.name)
            continue
        word = other.sql_kind
        signature = other.qualified_name.removeprefix(f"{there}.")[len(other.name) :]
        name = other.qualified_name
        if moves:
            lines.append(f"ALTER {word} {name} SET SCHEMA {schema};")
            name = f"{schema}.{other.name}{signature}"
        if one.name != other.name:
            lines.append(f"ALTER {word} {name} RENAME TO {one.name};")
    spares: dict[str, DatabaseObject] = {}

    def spare(target: str, number: int) -> str:
        there = divided[relations[target]][0]
        name = f"mcp_back_{number}"
        made = f"{there}.{name}"
        spares[made] = things[target]
        divided[made] = (there, name)
        return made

    by_now = {thing.qualified_name: thing for thing in things.values()}
    for current, target in renames_back(relations, spare):
        thing = spares.get(current) or by_now[current]
        word = thing.sql_kind
        place, name = divided[target]
        there, called = divided[current]
        if called != name:
            lines.append(f"ALTER {word} {current} RENAME TO {name};")
        if place != there:
            lines.append(f"ALTER {word} {there}.{name} SET SCHEMA {place};")
    return lines


def _is_inherited(thing: DatabaseObject) -> bool:
    at = {"a": 9, "k": 1, "t": 2}.get(thing.key[0])
    return at is not None and thing.state[at] == "true"
