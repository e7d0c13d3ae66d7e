"""Suggests indexes for a statement: what its conditions, its order and its groups compare, as SQL.

The words of the statement only suggest. SQLite decides whether a candidate can be an index of a table, and its planner
whether it helps.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

from mcp_sqlite.worker.language.tokens import TOKEN

__all__ = ["Comparisons", "combine_columns", "find_comparisons"]

_EQUAL = {"=", "==", "IS", "IN"}
_RANGE = {"<", "<=", ">", ">=", "BETWEEN", "LIKE", "GLOB"}
_ENDS = {
    "SELECT", "FROM", "WHERE", "ON", "AND", "OR", "NOT", "HAVING", "GROUP", "ORDER", "LIMIT", "OFFSET", "UNION",
    "EXCEPT", "INTERSECT", "JOIN", "LEFT", "RIGHT", "FULL", "INNER", "CROSS", "NATURAL", "WHEN", "THEN", "ELSE", "END",
    "CASE", "AS", "SET", "VALUES", "RETURNING", "WINDOW", "USING", "BY", "DISTINCT", "ESCAPE", "OVER", "FILTER",
    ",", ";",
}  # fmt: skip
_MOST_OPERANDS = 6
_LONGEST = 200


@dataclass
class Comparisons:
    """What a statement compares, each as SQL without the names of tables, the first first.

    Attributes:
        orders: lists that rows are ordered or grouped by.
    """

    equal: dict[str, None] = field(default_factory=dict[str, None])
    ranges: dict[str, None] = field(default_factory=dict[str, None])
    orders: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str

    @property
    def word(self) -> str:
        return self.text.upper() if self.kind == "word" else self.text if self.kind == "sign" else ""


def find_comparisons(sql: str) -> Comparisons:
    """What `sql` compares, orders and groups by."""
    tokens = [
        _Token(match.lastgroup or "", match[0])
        for match in TOKEN.finditer(sql)
        if match.lastgroup not in ("skip", None)
    ]
    found = Comparisons()
    no_case = any(token.word == "NOCASE" for token in tokens)
    for number, token in enumerate(tokens):
        if token.word in _EQUAL or token.word in _RANGE:
            kind = found.equal if token.word in _EQUAL else found.ranges
            before = _operand(tokens, number - 1, -1)
            for operand in (before, _operand(tokens, number + 1, 1)):
                if operand is None:
                    continue
                kind.setdefault(operand)
                if no_case or token.word == "LIKE":
                    kind.setdefault(f"{operand} COLLATE NOCASE")
        elif token.word == "BY" and number and tokens[number - 1].word in ("ORDER", "GROUP", "PARTITION"):
            if items := _list(tokens, number + 1):
                found.orders.append(items)
        elif token.word == "USING" and number + 1 < len(tokens) and tokens[number + 1].word == "(":
            for item in _list(tokens, number + 2):
                found.equal.setdefault(item)
    return found


def _operand(tokens: Sequence[_Token], start: int, step: int) -> str | None:
    """The operand of a comparison that ends, or begins, at `start`; None where it is not an expression over columns."""
    taken: list[_Token] = []
    depth = 0
    opens, closes = ("(", ")") if step > 0 else (")", "(")
    position = start
    while 0 <= position < len(tokens):
        token = tokens[position]
        if token.word == opens:
            depth += 1
        elif token.word == closes:
            depth -= 1
            if depth < 0:
                break
        elif depth == 0 and (token.word in _ENDS or token.word in _EQUAL or token.word in _RANGE):
            break
        taken.append(token)
        position += step
    return _sql(taken if step > 0 else taken[::-1])


def _list(tokens: Sequence[_Token], start: int) -> tuple[str, ...]:
    items: list[str] = []
    item: list[_Token] = []
    depth = 0
    for token in [*tokens[start:], _Token("sign", ";")]:
        depth += {"(": 1, ")": -1}.get(token.word, 0)
        ends = depth < 0 or (depth == 0 and token.word in _ENDS)
        if not ends:
            item.append(token)
            continue
        direction = " DESC" if item and item[-1].word == "DESC" else ""
        sql = _sql([part for part in item if part.word not in ("ASC", "DESC", "NULLS", "FIRST", "LAST")])
        if sql is not None:
            items.append(sql + direction)
        item = []
        if token.word != "," or depth < 0:
            break
    return tuple(items)


def _sql(tokens: Sequence[_Token]) -> str | None:
    """Tokens as SQL, without the names of tables; None where no column is among them, or a query is."""
    parts: list[str] = []
    columns = False
    position = 0
    while position < len(tokens):
        token = tokens[position]
        following = tokens[position + 1].word if position + 1 < len(tokens) else ""
        if token.word == "SELECT" or token.text[:1] in "?:@$":
            return None
        if token.kind in ("word", "name") and following == ".":
            position += 2
            continue
        if token.kind == "name" or (token.kind == "word" and following != "(" and token.word not in _ENDS):
            columns = columns or token.word not in ("NULL", "TRUE", "FALSE", "COLLATE", "NOCASE", "CURRENT_TIMESTAMP")
        parts.append(token.text)
        position += 1
    text = " ".join(parts).replace(" ( ", "(").replace("( ", "(").replace(" )", ")").replace(" ,", ",")
    return text if columns and len(text) <= _LONGEST else None


def combine_columns(found: Comparisons, columns: Sequence[str]) -> list[tuple[str, ...]]:
    """Lists of what an index might be over, the narrowest first: of what is compared and of `columns`, if few are."""
    equal = list(found.equal)[:_MOST_OPERANDS]
    ranges = [item for item in found.ranges if item not in found.equal][:_MOST_OPERANDS]
    lists: dict[tuple[str, ...], None] = {}
    for item in (*equal, *ranges, *columns):
        lists.setdefault((item,))
    for order in found.orders:
        lists.setdefault(order)
        # All that the statement reads, so that the table itself is not needed.
        lists.setdefault((*order, *(item for item in columns if item not in order)))
    pairs = itertools.permutations((*equal, *ranges), 2)
    for pair in pairs:
        lists.setdefault(pair)
    tails = [(), *((item,) for item in ranges), *found.orders]
    for size in range(1, len(equal) + 1):
        for head in itertools.combinations(equal, size):
            for tail in tails:
                lists.setdefault((*head, *(item for item in tail if item.removesuffix(" DESC") not in head)))
    return sorted(lists, key=len)
