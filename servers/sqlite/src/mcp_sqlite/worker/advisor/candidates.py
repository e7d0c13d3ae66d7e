"""Suggests indexes for a statement: what its conditions, its order and its groups compare, as SQL.

The words of the statement only suggest. SQLite decides whether a candidate can be an index of a table, and its planner
whether it helps.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from mcp_sqlite.worker.language.tokens import TOKEN

__all__ = ["Comparisons", "combine_columns", "find_comparisons"]

_EQUALITIES = {"=", "==", "IS", "IN"}
_RANGES = {"<", "<=", ">", ">=", "BETWEEN", "LIKE", "GLOB"}
# Words and signs at which an operand ends.
_BOUNDARIES = {
    "SELECT", "FROM", "WHERE", "ON", "AND", "OR", "NOT", "HAVING", "GROUP", "ORDER", "LIMIT", "OFFSET", "UNION",
    "EXCEPT", "INTERSECT", "JOIN", "LEFT", "RIGHT", "FULL", "INNER", "CROSS", "NATURAL", "WHEN", "THEN", "ELSE", "END",
    "CASE", "AS", "SET", "VALUES", "RETURNING", "WINDOW", "USING", "BY", "DISTINCT", "ESCAPE", "OVER", "FILTER",
    ",", ";",
}  # fmt: skip
_CONSTANTS = ("NULL", "TRUE", "FALSE", "COLLATE", "NOCASE", "CURRENT_TIMESTAMP")
_DIRECTIONS = ("ASC", "DESC", "NULLS", "FIRST", "LAST")
_MAX_OPERANDS = 6
_MAX_EXPRESSION_LENGTH = 200


@dataclass
class Comparisons:
    """What a statement compares, each as SQL without the names of tables, the first first.

    Attributes:
        equal: what is compared for equality.
        ranges: what is compared by order.
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
        """The word in capitals, or the sign; nothing for other tokens."""
        match self.kind:
            case "word":
                return self.text.upper()
            case "sign":
                return self.text
            case _:
                return ""

    @property
    def is_comparison(self) -> bool:
        return self.word in _EQUALITIES or self.word in _RANGES

    @property
    def is_parameter(self) -> bool:
        return self.text.startswith(("?", ":", "@", "$"))


_END = _Token("sign", ";")
_DEPTH_CHANGES = {"(": 1, ")": -1}


def find_comparisons(sql: str) -> Comparisons:
    """Return what `sql` compares, orders and groups by."""
    tokens = _split_tokens(sql)
    comparisons = Comparisons()
    ignores_case = any(token.word == "NOCASE" for token in tokens)
    # So that the first and the last token have neighbours too.
    words = ["", *(token.word for token in tokens), ""]
    for number, token in enumerate(tokens):
        if token.is_comparison:
            _add_comparison(comparisons, tokens, number, ignores_case=ignores_case)
        elif token.word == "BY" and words[number] in ("ORDER", "GROUP", "PARTITION"):
            items = _read_list(tokens[number + 1 :])
            if items:
                comparisons.orders.append(items)
        elif token.word == "USING" and words[number + 2] == "(":
            comparisons.equal |= dict.fromkeys(_read_list(tokens[number + 2 :]))
    return comparisons


def _split_tokens(sql: str) -> list[_Token]:
    return [
        _Token(match.lastgroup, match[0])
        for match in TOKEN.finditer(sql)
        if match.lastgroup is not None and match.lastgroup != "skip"
    ]


def _add_comparison(comparisons: Comparisons, tokens: Sequence[_Token], comparison: int, *, ignores_case: bool) -> None:
    """Add the operands of the comparison at a position of `tokens`."""
    word = tokens[comparison].word
    operands = comparisons.equal if word in _EQUALITIES else comparisons.ranges
    for operand in (_read_operand_before(tokens, comparison), _read_operand_after(tokens, comparison)):
        if operand is None:
            continue
        operands.setdefault(operand)
        if ignores_case or word == "LIKE":
            operands.setdefault(f"{operand} COLLATE NOCASE")


def _read_operand_after(tokens: Sequence[_Token], comparison: int) -> str | None:
    """Return the operand behind a comparison; None where it is not an expression over columns."""
    following = (tokens[position] for position in range(comparison + 1, len(tokens)))
    return _to_sql(_take_operand(following, "(", ")"))


def _read_operand_before(tokens: Sequence[_Token], comparison: int) -> str | None:
    """Return the operand in front of a comparison; None where it is not an expression over columns."""
    preceding = (tokens[position] for position in range(comparison - 1, -1, -1))
    operand = _take_operand(preceding, ")", "(")
    return _to_sql(operand[::-1])


def _take_operand(tokens: Iterable[_Token], opening: str, closing: str) -> list[_Token]:
    """Return the tokens of the operand that `tokens` begin with, in the direction of reading."""
    operand: list[_Token] = []
    depth = 0
    for token in tokens:
        if token.word == opening:
            depth += 1
        elif token.word == closing:
            depth -= 1
            if depth < 0:
                break
        elif depth == 0 and (token.word in _BOUNDARIES or token.is_comparison):
            break
        operand.append(token)
    return operand


def _read_list(tokens: Sequence[_Token]) -> tuple[str, ...]:
    """Return the expressions of the list that `tokens` begin with, with DESC behind those that have it."""
    items: list[str] = []
    item: list[_Token] = []
    depth = 0
    for token in [*tokens, _END]:
        depth += _DEPTH_CHANGES.get(token.word, 0)
        ends_item = depth < 0 or (depth == 0 and token.word in _BOUNDARIES)
        if not ends_item:
            item.append(token)
            continue
        items += _read_item(item)
        item = []
        if token.word != "," or depth < 0:
            break
    return tuple(items)


def _read_item(tokens: Sequence[_Token]) -> list[str]:
    """Return the expression of an item of a list; none where it has no column."""
    sql = _to_sql([token for token in tokens if token.word not in _DIRECTIONS])
    if sql is None:
        return []
    if tokens[-1].word == "DESC":
        return [f"{sql} DESC"]
    return [sql]


def _to_sql(tokens: Sequence[_Token]) -> str | None:
    """Return tokens as SQL, without the names of tables; None where no column is among them, or a query is."""
    texts: list[str] = []
    has_column = False
    position = 0
    while position < len(tokens):
        token = tokens[position]
        next_word = tokens[position + 1].word if position + 1 < len(tokens) else ""
        if token.word == "SELECT" or token.is_parameter:
            return None
        if token.kind in ("word", "name") and next_word == ".":
            position += 2
            continue
        has_column = has_column or _is_column(token, next_word)
        texts.append(token.text)
        position += 1
    sql = " ".join(texts).replace(" ( ", "(").replace("( ", "(").replace(" )", ")").replace(" ,", ",")
    return sql if has_column and len(sql) <= _MAX_EXPRESSION_LENGTH else None


def _is_column(token: _Token, next_word: str) -> bool:
    if token.word in _CONSTANTS:
        return False
    if token.kind == "name":
        return True
    return token.kind == "word" and next_word != "(" and token.word not in _BOUNDARIES


def combine_columns(comparisons: Comparisons, columns: Sequence[str]) -> list[tuple[str, ...]]:
    """Return lists of what an index might be over, the narrowest first.

    Args:
        columns: columns that the statement reads, to be combined with what it compares.
    """
    equal = list(comparisons.equal)[:_MAX_OPERANDS]
    ranges = [item for item in comparisons.ranges if item not in comparisons.equal][:_MAX_OPERANDS]
    # A dictionary keeps each list once, in order.
    lists: dict[tuple[str, ...], None] = {}
    for item in (*equal, *ranges, *columns):
        lists.setdefault((item,))
    for order in comparisons.orders:
        lists.setdefault(order)
        # All that the statement reads, so that the table itself is not needed.
        lists.setdefault((*order, *(item for item in columns if item not in order)))
    for pair in itertools.permutations((*equal, *ranges), 2):
        lists.setdefault(pair)
    tails = [(), *((item,) for item in ranges), *comparisons.orders]
    for size in range(1, len(equal) + 1):
        for head, tail in itertools.product(itertools.combinations(equal, size), tails):
            lists.setdefault((*head, *(item for item in tail if item.removesuffix(" DESC") not in head)))
    return sorted(lists, key=len)
