"""How tables join: by foreign keys, by columns with names like one, and through other tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from mcp_batteries.sql.language.identifiers import quote_identifier

__all__ = ["JoinKey", "describe_joins", "guess_join_keys"]

_MAX_STEPS = 3
# All joins together take at most so many bytes; the list of tables has the keys for whoever needs more.
_MAX_BYTES = 400
_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*")
# Tables and columns are often called by these words, and neither database takes them unquoted.
_RESERVED = frozenset({
    "all", "and", "as", "case", "check", "column", "constraint", "default", "desc", "distinct", "else", "end",
    "except", "for", "foreign", "from", "full", "group", "having", "in", "index", "inner", "join", "left", "like",
    "limit", "natural", "not", "null", "offset", "on", "or", "order", "primary", "references", "right", "select",
    "set", "table", "then", "to", "transaction", "trigger", "union", "unique", "user", "using", "values", "view",
    "when", "where", "with",
})  # fmt: skip
_BY_NAME = " /* by name */"
_ID_COLUMN = re.compile(r"(.+?)_?id", re.IGNORECASE)


@dataclass(frozen=True)
class JoinKey:
    """Columns of a table that hold the key of a row of another.

    Attributes:
        sure: whether the schema declares it; otherwise it is guessed from names.
    """

    table: str
    columns: tuple[str, ...]
    other: str
    to: tuple[str, ...]
    sure: bool = True


def guess_join_keys(
    columns: Mapping[str, Sequence[str]], primary: Mapping[str, str], declared: Iterable[JoinKey] = ()
) -> list[JoinKey]:
    """Guess undeclared keys: `author_id` beside a table `author` or `authors`.

    Args:
        columns: the columns of each table.
        primary: for tables with a single-column primary key, that column.
        declared: keys in the schema, whose columns need no guess.
    """
    declared_columns: set[tuple[str, str]] = set()
    for key in declared:
        for column in key.columns:
            declared_columns.add((key.table, column))
    table_by_fold = {name.casefold(): name for name in primary}
    keys: list[JoinKey] = []
    for table, names in columns.items():
        for name in names:
            match = _ID_COLUMN.fullmatch(name)
            if match is None or (table, name) in declared_columns:
                continue
            other = _table_of(match[1].casefold(), table_by_fold)
            if other is None or other == table:
                continue
            # A column that is not called like the key it refers to is an `..._id` that refers to an `id`.
            if primary[other].casefold() in ("id", name.casefold()):
                keys.append(JoinKey(table, (name,), other, (primary[other],), sure=False))
    return keys


def _table_of(stem: str, tables: Mapping[str, str]) -> str | None:
    """Return the table that `stem` or its last word means, as in `billing_address`."""
    for word in dict.fromkeys((stem, stem.rpartition("_")[2])):
        plurals = [f"{word}s", f"{word}es"]
        if word.endswith("y"):
            plurals.append(f"{word[:-1]}ies")
        for name in (word, *plurals):
            if name in tables:
                return tables[name]
    return None


def describe_joins(keys: Iterable[JoinKey], table: str, *, spell: Callable[[str], str] | None = None) -> list[str]:
    """Return the shortest joins, as fragments of SQL, to tables that `table` reaches only through others.

    Each line is a path that an earlier line gave, then the tables that it leads to, each as `NAME ON CONDITION`. If
    several keys join the same two tables, the others follow the first as a comment. The nearest tables come first; the
    remaining ones are counted.

    Args:
        spell: returns a name in SQL form; by default it is quoted if necessary.
    """
    spell = spell or _quote_if_needed
    conditions = _join_conditions(keys, spell)
    reached = {table}
    page = _JoinPage()
    current = [_ReachedTable(table, "")]
    for step in range(_MAX_STEPS):
        following: list[_ReachedTable] = []
        for origin in current:
            neighbours: list[_ReachedTable] = []
            for name, alternatives in sorted(conditions.get(origin.name, {}).items()):
                if name not in reached:
                    reached.add(name)
                    neighbours.append(_ReachedTable(name, f"{spell(name)} ON {_format_conditions(alternatives)}"))
            following.extend(neighbours)
            if step == 0:
                continue  # These tables are joined directly, which the keys of the table itself say.
            path = origin.join if step == 1 else origin.name
            page.add(f"through {path}: ", [neighbour.join for neighbour in neighbours])
        current = following
    return page.finish()


class _ReachedTable(NamedTuple):
    """A table, and the join that leads to it."""

    name: str
    join: str


@dataclass
class _JoinPage:
    """The lines of an answer, as many as fit.

    Attributes:
        remaining: how many bytes are left for joins.
        omitted: how many tables did not fit.
    """

    lines: list[str] = field(default_factory=list[str])
    remaining: int = _MAX_BYTES
    omitted: int = 0

    def add(self, path: str, joins: Iterable[str]) -> None:
        """Add a line with the tables that a path leads to; the first join of all is shown whatever its length."""
        fitting: list[str] = []
        for join in joins:
            separator = ", " if fitting else path
            self.remaining -= len(join.encode()) + len(separator.encode())
            if self.remaining < 0 and (self.lines or fitting):
                self.omitted += 1
            else:
                fitting.append(join)
        if fitting:
            self.lines.append(path + ", ".join(fitting))

    def finish(self) -> list[str]:
        if self.omitted:
            self.lines.append(f"{self.omitted} tables more")
        return self.lines


def _join_conditions(keys: Iterable[JoinKey], spell: Callable[[str], str]) -> dict[str, dict[str, list[str]]]:
    """Return for each table the tables that join it, with the conditions of all keys between the two."""
    conditions: dict[str, dict[str, list[str]]] = {}
    for key in keys:
        if key.table == key.other or len(key.columns) != len(key.to):
            continue
        pairs = zip(key.columns, key.to, strict=True)
        condition = " AND ".join(
            f"{spell(key.table)}.{spell(column)} = {spell(key.other)}.{spell(target)}" for column, target in pairs
        )
        if not key.sure:
            condition += _BY_NAME
        for table, other in ((key.table, key.other), (key.other, key.table)):
            alternatives = conditions.setdefault(table, {}).setdefault(other, [])
            # A key that the schema declares comes before those that names suggest.
            if key.sure and alternatives and alternatives[0].endswith(_BY_NAME):
                alternatives.insert(0, condition)
            else:
                alternatives.append(condition)
    return conditions


def _format_conditions(alternatives: Sequence[str]) -> str:
    """Return the first condition, with the others in a comment."""
    first, *others = alternatives
    if not others:
        return first
    return f"{first} /* or {'; '.join(other.removesuffix(_BY_NAME) for other in others)} */"


def _quote_if_needed(name: str) -> str:
    if _PLAIN_NAME.fullmatch(name) and name not in _RESERVED:
        return name
    return quote_identifier(name)
