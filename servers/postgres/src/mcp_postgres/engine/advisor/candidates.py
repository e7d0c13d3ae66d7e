"""Proposes indexes for what a plan does with a table.

The texts of a plan only suggest. PostgreSQL decides whether a candidate can be an index, and its planner whether it
helps.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mcp_postgres.engine.advisor.table_uses import DESCENDING, TableUse

__all__ = ["Index", "propose_indexes"]

_CAST_TO_TEXT = re.compile(r"""\(\((?P<name>[\w$]+|"(?:[^"]|"")+")\)::(?:text|bpchar|character varying)\)""")
_MAX_CANDIDATES = 60
_MAX_OPERANDS = 5
_MAX_INCLUDED = 3
_MAX_KEYS = 5
_MAX_ORDERS = 3
_MAX_PREDICATES = 3


@dataclass(frozen=True)
class Index:
    """One that might be made.

    Args:
        table: schema and name, as SQL spells them.
        keys: columns and expressions, with what follows each: an operator class, a direction.
        include: columns that are only stored.
        predicate: the condition of a partial one.
    """

    table: str
    keys: tuple[str, ...]
    method: str = "btree"
    include: tuple[str, ...] = ()
    predicate: str = ""

    @property
    def complexity(self) -> tuple[int, int, int]:
        """What makes one simpler than another that helps as much."""
        return len(self.keys) + len(self.include) + 2 * bool(self.predicate), len(self.keys), sum(map(len, self.keys))

    def definition(self, table: str | None = None) -> str:
        """Return what follows `CREATE INDEX ON`."""
        if self.method == "btree":
            using = ""
        else:
            using = f"USING {self.method} "
        include = ""
        if self.include:
            include = f" INCLUDE ({', '.join(self.include)})"
        condition = ""
        if self.predicate:
            condition = f" WHERE {self.predicate}"
        return f"{table or self.table} {using}({', '.join(self.keys)}){include}{condition}"

    def is_simpler_form_of(self, other: Index) -> bool:
        """Return whether it is as `other` is, and simpler."""
        return (
            (self.table, self.method) == (other.table, other.method)
            and self.complexity < other.complexity
            and self.predicate in ("", other.predicate)
            and {*self.keys} <= {*other.keys, *other.include}
            and {*self.include} <= {*other.include}
        )


_Keys = tuple[str, ...]


def propose_indexes(
    use: TableUse, table: str, columns: Mapping[str, bool], *, trigram_class: str | None
) -> list[Index]:
    """Return the indexes that might help, the simplest first.

    Args:
        table: as SQL spells it.
        columns: all that there are, as SQL spells them; and whether each is of another kind of text than `text`.
        trigram_class: the operator class for parts of texts, where there is the extension.
    """
    proposer = _Proposer(use, table, columns)
    key_lists = proposer.key_lists()
    proposals = [Index(table, keys) for keys in key_lists]
    proposals += proposer.covering(key_lists)
    proposals += proposer.partial(key_lists)
    proposals += proposer.for_containment()
    if trigram_class:
        proposals += proposer.for_text_matches(trigram_class)
    proposals += [Index(table, (operand,), "gist") for operand in use.distances]
    # What is simple goes first, so that nothing of it falls behind the limit.
    unique = dict.fromkeys(proposals)
    return sorted(unique, key=lambda index: (index.method == "btree", index.complexity))[:_MAX_CANDIDATES]


class _Proposer:
    """Puts together keys of indexes on one table.

    Attributes:
        columns: all that there are, and whether each is of another kind of text than `text`.
    """

    def __init__(self, use: TableUse, table: str, columns: Mapping[str, bool]) -> None:
        self.use = use
        self.table = table
        self.columns = columns

    def key_lists(self) -> list[_Keys]:
        """Return keys of B-tree indexes: equalities first, then a range, an order or a pattern; the shortest first."""
        equalities = self._unique_operands(self.use.equalities)[:_MAX_OPERANDS]
        ranges = [operand for operand in self._unique_operands(self.use.ranges) if operand not in equalities]
        ranges = ranges[:_MAX_OPERANDS]
        key_lists: dict[_Keys, None] = {}
        for head in self._equality_heads(equalities):
            for tail in self._tails(ranges):
                key_lists.setdefault((*head, *(key for key in tail if DESCENDING.sub("", key) not in head)))
        for pair in itertools.permutations(ranges, 2):
            key_lists.setdefault(pair)
        return sorted((keys for keys in key_lists if 0 < len(keys) <= _MAX_KEYS), key=len)

    def covering(self, key_lists: Sequence[_Keys]) -> list[Index]:
        """Return indexes that also store the other columns that are read, where these are few."""
        read_columns = [name for name in self.use.columns if name in self.columns]
        indexes: list[Index] = []
        for keys in key_lists:
            key_columns = {DESCENDING.sub("", key).partition(" ")[0] for key in keys}
            included = tuple(name for name in read_columns if name not in key_columns)
            if 0 < len(included) <= _MAX_INCLUDED:
                indexes.append(Index(self.table, keys, include=included))
        return indexes

    def partial(self, key_lists: Sequence[_Keys]) -> list[Index]:
        """Return indexes with a condition of the statement as their predicate."""
        indexes: list[Index] = []
        for predicate, operand in list(self.use.conditions.items())[:_MAX_PREDICATES]:
            others = [keys for keys in key_lists if self._bare(operand) not in keys and len(keys) <= 2]
            if not others:
                others = [(name,) for name in list(self.columns)[:1]]
            indexes += [Index(self.table, keys, predicate=predicate) for keys in others]
        return indexes

    def for_containment(self) -> list[Index]:
        """Return indexes of arrays, documents and ranges."""
        indexes: list[Index] = []
        for operand in self.use.containments:
            indexes.append(Index(self.table, (operand,), "gin"))
            indexes.append(Index(self.table, (f"{operand} jsonb_path_ops",), "gin"))
            indexes.append(Index(self.table, (operand,), "gist"))
        return indexes

    def for_text_matches(self, trigram_class: str) -> list[Index]:
        """Return indexes for parts of texts."""
        operands = self.use.text_matches
        return [Index(self.table, (f"{self._bare(operand)} {trigram_class}",), "gin") for operand in operands]

    def _tails(self, ranges: Sequence[str]) -> list[_Keys]:
        patterns = {self._bare(operand): operator_class for operand, operator_class in self.use.patterns.items()}
        tails: list[_Keys] = [()]
        tails += [(operand,) for operand in ranges]
        tails += [tuple(map(self._bare, order)) for order in list(self.use.orders)[:_MAX_ORDERS]]
        tails += [(f"{operand} {operator_class}",) for operand, operator_class in patterns.items()]
        tails += [(operand,) for operand in patterns]
        return tails

    @staticmethod
    def _equality_heads(equalities: Sequence[str]) -> list[_Keys]:
        heads: list[_Keys] = []
        for length in range(min(len(equalities), 3) + 1):
            heads += itertools.permutations(equalities, length)
        return heads

    def _unique_operands(self, operands: Iterable[str]) -> list[str]:
        return list(dict.fromkeys(map(self._bare, operands)))

    def _bare(self, sql: str) -> str:
        # A text of another kind than `text` is compared as one; an index is over the column itself.
        match = _CAST_TO_TEXT.match(sql)
        if match and self.columns.get(match["name"]):
            return match["name"] + sql[match.end() :]
        return sql
