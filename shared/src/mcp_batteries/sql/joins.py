"""How tables join: by foreign keys, by columns with names like one, and through other tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from mcp_batteries.sql.identifiers import identifier

__all__ = ["Key", "guessed", "joins"]

_STEPS = 3
# All joins together take at most so many bytes; the list of tables has the keys for whoever needs more.
_BYTES = 400
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
# Tables and columns are often called by these words, and neither database takes them unquoted.
_RESERVED = frozenset({
    "all", "and", "as", "case", "check", "column", "constraint", "default", "desc", "distinct", "else", "end",
    "except", "for", "foreign", "from", "full", "group", "having", "in", "index", "inner", "join", "left", "like",
    "limit", "natural", "not", "null", "offset", "on", "or", "order", "primary", "references", "right", "select",
    "set", "table", "then", "to", "transaction", "trigger", "union", "unique", "user", "using", "values", "view",
    "when", "where", "with",
})  # fmt: skip
_NAMED = re.compile(r"(.+?)_?id", re.IGNORECASE)


@dataclass(frozen=True)
class Key:
    """Columns of a table that hold the key of a row of another.

    Attributes:
        sure: whether the schema declares it; otherwise it is guessed from names.
    """

    table: str
    columns: tuple[str, ...]
    other: str
    to: tuple[str, ...]
    sure: bool = True


def guessed(columns: Mapping[str, Sequence[str]], primary: Mapping[str, str], known: Iterable[Key] = ()) -> list[Key]:
    """Guess undeclared keys: `author_id` beside a table `author` or `authors`.

    Args:
        columns: the columns of each table.
        primary: for tables with a single-column primary key, that column.
        known: declared keys, whose columns need no guess.
    """
    said = {(key.table, column) for key in known for column in key.columns}
    by_fold = {name.casefold(): name for name in primary}
    found: list[Key] = []
    for table, names in columns.items():
        for name in names:
            match = _NAMED.fullmatch(name)
            if match is None or (table, name) in said:
                continue
            other = _named(match[1].casefold(), by_fold)
            # A column of another name than the key it refers to is an `..._id` beside an `id`.
            if other not in (None, table) and primary[other].casefold() in ("id", name.casefold()):
                found.append(Key(table, (name,), other, (primary[other],), sure=False))
    return found


def _named(stem: str, tables: Mapping[str, str]) -> str | None:
    """The table that `stem` or its last word means: `billing_address`."""
    for word in dict.fromkeys((stem, stem.rpartition("_")[2])):
        for name in (word, f"{word}s", f"{word}es", f"{word[:-1]}ies" if word.endswith("y") else word):
            if name in tables:
                return tables[name]
    return None


def joins(keys: Iterable[Key], table: str, *, spelled: Callable[[str], str] | None = None) -> list[str]:
    """The shortest joins, as parts of SQL, to tables that `table` reaches only through others.

    Each line is a path that an earlier line gave, then the tables that it leads to, each as `NAME ON CONDITION`. If
    several keys join the same two tables, the others follow the first as a comment. The nearest tables come first; the
    rest is counted.

    Args:
        spelled: names in SQL form; by default they are quoted if necessary.
    """
    spell = spelled or _where_needed
    beside: dict[str, dict[str, list[str]]] = {}
    for key in keys:
        if key.table == key.other or len(key.columns) != len(key.to):
            continue
        pairs = zip(key.columns, key.to, strict=True)
        on = " AND ".join(f"{spell(key.table)}.{spell(one)} = {spell(key.other)}.{spell(two)}" for one, two in pairs)
        on += "" if key.sure else " /* by name */"
        for one, two in ((key.table, key.other), (key.other, key.table)):
            ways = beside.setdefault(one, {}).setdefault(two, [])
            # What the schema says comes before what names suggest.
            ways.insert(0 if key.sure and ways and ways[0].endswith("*/") else len(ways), on)
    known = {table}
    lines: list[str] = []
    room = _BYTES
    left_out = 0
    front = [(table, "")]
    for step in range(_STEPS):
        following: list[tuple[str, str]] = []
        for here, on in front:
            told: list[str] = []
            for there, ways in sorted(beside.get(here, {}).items()):
                if there in known:
                    continue
                known.add(there)
                also = f" /* or {'; '.join(way.removesuffix(' /* by name */') for way in ways[1:])} */"
                join = f"{spell(there)} ON {ways[0]}{also if ways[1:] else ''}"
                following.append((there, join))
                if step:
                    through = f"through {on if step == 1 else here}: "
                    room -= len(join.encode()) + (2 if told else len(through.encode()))
                    if room < 0 and (lines or told):
                        left_out += 1
                        continue
                    told.append(join if told else through + join)
            lines += [", ".join(told)] if told else []
        front = following
    return [*lines, f"{left_out} tables more"] if left_out else lines


def _where_needed(name: str) -> str:
    plain = _PLAIN.fullmatch(name) and name not in _RESERVED
    return name if plain else identifier(name)
