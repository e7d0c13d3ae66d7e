"""Reads what a plan does with each table: what it compares, orders and groups, as PostgreSQL spells it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from mcp_batteries.sql.language.identifiers import unquote_identifier
from mcp_postgres.engine.advisor.plan_expressions import (
    NestedToken,
    Token,
    flatten,
    join_tokens,
    parse_nested,
    split_at_word,
    strip_parentheses,
    token_text,
)

__all__ = ["DESCENDING", "TableUse", "read_table_uses"]

Node = dict[str, Any]

_CONDITION_FIELDS = (
    "Filter",
    "Index Cond",
    "Recheck Cond",
    "Hash Cond",
    "Merge Cond",
    "Join Filter",
    "One-Time Filter",
)
_EQUALITY_OPERATORS = {"=", "IN"}
_RANGE_OPERATORS = {"<", "<=", ">", ">="}
_CONTAINMENT_OPERATORS = {"@>", "<@", "&&", "?", "?|", "?&", "@@", "@?", "-|-", "<<|", "|>>", "&<", "&>", "~=", "^@"}
_PATTERN_CLASSES = {"~~": "text_pattern_ops", "~": "text_pattern_ops"}
_TEXT_MATCH_OPERATORS = {"~~", "~~*", "~", "~*", "%"}
_NEGATED_OPERATORS = {"<>", "!~~", "!~~*", "!~", "!~*"}
_COMPARISON_OPERATORS = (
    _EQUALITY_OPERATORS | _RANGE_OPERATORS | _CONTAINMENT_OPERATORS | _TEXT_MATCH_OPERATORS | _NEGATED_OPERATORS
)
_DISTANCE_OPERATORS = (" <-> ", " <=> ", " <#> ")
DESCENDING = re.compile(r" DESC(?: NULLS LAST)?$| NULLS FIRST$")
_EXTREME = re.compile(r"\b(?:min|max)\(((?:[^()]|\([^()]*\))*)\)")
_COLUMN_NAME = re.compile(r'[\w$]+|"[^"]+"')
_SIMPLE_OPERAND = re.compile(r'[\w$]+|"(?:[^"]|"")+"')
# What no expression of an index has.
_NOT_INDEXABLE = ("SubPlan", "InitPlan", "hashed", "ROW", "CURRENT_DATE")
# Steps that hand on what the step below them gives.
_PASSING_NODES = ("Limit", "Gather", "Gather Merge", "Append")
_MAX_OPERAND_CHARACTERS = 200


@dataclass
class TableUse:
    """What a plan does with one table; each operand as SQL, without the name of the table.

    Attributes:
        patterns: operands of LIKE and the like, with the operator class that serves those that begin with a text.
        containments: operands of what GIN and GiST indexes serve.
        orders: lists that rows are ordered or grouped by.
        conditions: those that hold for constants only.
        columns: those that are read.
    """

    schema: str
    name: str
    equalities: dict[str, None] = field(default_factory=dict[str, None])
    ranges: dict[str, None] = field(default_factory=dict[str, None])
    patterns: dict[str, str] = field(default_factory=dict[str, str])
    text_matches: dict[str, None] = field(default_factory=dict[str, None])
    containments: dict[str, None] = field(default_factory=dict[str, None])
    distances: dict[str, None] = field(default_factory=dict[str, None])
    orders: dict[tuple[str, ...], None] = field(default_factory=dict[tuple[str, ...], None])
    conditions: dict[str, str] = field(default_factory=dict[str, str])
    columns: dict[str, None] = field(default_factory=dict[str, None])

    def add(self, other: TableUse) -> None:
        """Take up what another plan does with the table."""
        self.equalities.update(other.equalities)
        self.ranges.update(other.ranges)
        self.patterns.update(other.patterns)
        self.text_matches.update(other.text_matches)
        self.containments.update(other.containments)
        self.distances.update(other.distances)
        self.orders.update(other.orders)
        self.conditions.update(other.conditions)
        self.columns.update(other.columns)

    def add_comparison(self, operand: str, operator: str) -> None:
        """Take up that an operand is compared."""
        if operator in _EQUALITY_OPERATORS:
            self.equalities.setdefault(operand)
        elif operator in _RANGE_OPERATORS:
            self.ranges.setdefault(operand)
        if operator in _TEXT_MATCH_OPERATORS:
            self.text_matches.setdefault(operand)
        if operator in _PATTERN_CLASSES:
            self.patterns.setdefault(operand, _PATTERN_CLASSES[operator])
        if operator in _CONTAINMENT_OPERATORS:
            self.containments.setdefault(operand)


class _Operand(NamedTuple):
    """An expression over columns of one table.

    Attributes:
        table: the table.
        sql: the expression without the table's name.
    """

    table: TableUse
    sql: str


def read_table_uses(plan: Node) -> dict[tuple[str, str], TableUse]:
    """Return what a plan, explained VERBOSE, does with each table, by schema and name."""
    reader = _PlanReader()
    reader.collect_tables(plan)
    reader.read_node(plan, is_top=True)
    return reader.tables


class _PlanReader:
    def __init__(self) -> None:
        self.tables: dict[tuple[str, str], TableUse] = {}
        self._aliases: dict[str, TableUse] = {}

    @property
    def only_table(self) -> TableUse | None:
        """The only table there is: what a step gives then names columns alone."""
        if len(self.tables) == 1:
            return next(iter(self.tables.values()))
        return None

    def collect_tables(self, node: Node) -> None:
        """Know the tables that a step and those below it read, by their aliases."""
        if "Relation Name" in node and "Schema" in node:
            key = str(node["Schema"]), str(node["Relation Name"])
            table = self.tables.setdefault(key, TableUse(*key))
            alias = str(node.get("Alias", key[1]))
            self._aliases[alias] = table
            # The parts of a partitioned table are told apart by a number; what is above them speaks of the whole.
            self._aliases.setdefault(re.sub(r"_\d+$", "", alias), table)
        for child in _children(node):
            self.collect_tables(child)

    def read_node(self, node: Node, *, is_top: bool) -> None:
        """Read a step and those below it; nothing but rows is wanted of the top one."""
        for name in _CONDITION_FIELDS:
            if name in node:
                self._read_condition(parse_nested(str(node[name])))
        for name in ("Sort Key", "Group Key"):
            self._read_order(_text_list(node, name))
        for text in _text_list(node, "Output"):
            if is_top or not self._is_scan(node):
                self._read_columns(text)
            self._read_extremes(text)
        passes_on = is_top and node["Node Type"] in _PASSING_NODES
        for child in _children(node):
            self.read_node(child, is_top=passes_on)

    def _is_scan(self, node: Node) -> bool:
        """Return whether a step reads a table: it may give whole rows, whatever is needed of them."""
        return "Relation Name" in node and str(node.get("Alias")) in self._aliases

    def _read_extremes(self, text: str) -> None:
        """Read what `min` and `max` are asked of: an index in that order has it at its end."""
        for match in _EXTREME.finditer(text):
            operand = self._parse_extreme(match[1])
            if operand is not None:
                operand.table.orders.setdefault((operand.sql,))

    def _parse_extreme(self, text: str) -> _Operand | None:
        only_table = self.only_table
        if only_table is not None and _COLUMN_NAME.fullmatch(text):
            return _Operand(only_table, text)
        return self._parse_operand(parse_nested(text))

    def _read_condition(self, condition: Sequence[NestedToken]) -> None:
        parts = strip_parentheses(condition)
        for word in ("OR", "AND"):
            operands = split_at_word(parts, word)
            if len(operands) > 1:
                for operand in operands:
                    self._read_condition(operand)
                return
        if len(parts) > 1 and token_text(parts[0]) == "NOT":
            self._read_truth(parts, parts[1:])
        else:
            self._read_simple_condition(parts)

    def _read_simple_condition(self, parts: Sequence[NestedToken]) -> None:
        """Read a comparison, a test for NULL, or a value that is true or false."""
        for place, part in enumerate(parts):
            if token_text(part) == "IS":
                words = [token_text(each) for each in parts[place + 1 :]]
                self._read_null_test(parts, parts[:place], words)
                return
            if _is_comparison(part):
                self._read_comparison(parts, parts[:place], token_text(part), parts[place + 1 :])
                return
        self._read_truth(parts, parts)

    def _read_comparison(
        self, condition: Sequence[NestedToken], left: Sequence[NestedToken], operator: str, right: Sequence[NestedToken]
    ) -> None:
        sides = (self._parse_operand(left), self._parse_operand(right))
        operands = [side for side in sides if side is not None]
        for operand in operands:
            operand.table.add_comparison(operand.sql, operator)
            if len(operands) == 1 and operator in _NEGATED_OPERATORS:
                self._add_partial_condition(operand, condition)

    def _read_null_test(
        self, condition: Sequence[NestedToken], operand_tokens: Sequence[NestedToken], words: Sequence[str]
    ) -> None:
        operand = self._parse_operand(operand_tokens)
        if operand is None:
            return
        if words == ["NULL"]:
            operand.table.equalities.setdefault(operand.sql)
        self._add_partial_condition(operand, condition)

    def _read_truth(self, condition: Sequence[NestedToken], operand_tokens: Sequence[NestedToken]) -> None:
        operand = self._parse_operand(operand_tokens)
        if operand is not None:
            operand.table.equalities.setdefault(operand.sql)
            self._add_partial_condition(operand, condition)

    def _add_partial_condition(self, operand: _Operand, condition: Sequence[NestedToken]) -> None:
        """Remember a condition that a partial index might have."""
        whole_condition = self._parse_expression(condition)
        if whole_condition is not None and whole_condition.table is operand.table:
            operand.table.conditions.setdefault(whole_condition.sql, operand.sql)

    def _read_order(self, keys: Sequence[str]) -> None:
        columns = list(self._parse_order(keys))
        if not columns:
            return
        table = columns[0].table
        names = [column.sql for column in itertools.takewhile(lambda column: column.table is table, columns)]
        if all(name.endswith(" DESC") for name in names):
            # An index in the opposite order is read from its end.
            names = [name.removesuffix(" DESC") for name in names]
        table.orders.setdefault(tuple(names))

    def _parse_order(self, keys: Sequence[str]) -> Iterator[_Operand]:
        """Yield the keys, up to the first that is not an index's; a distance is kept by itself."""
        for key in keys:
            expression = DESCENDING.sub("", key)
            operand = self._parse_operand(parse_nested(expression))
            if operand is None:
                return
            if any(operator in expression for operator in _DISTANCE_OPERATORS):
                self._read_distance(expression)
                return
            yield _Operand(operand.table, operand.sql + key[len(expression) :])

    def _read_distance(self, expression: str) -> None:
        operand = self._parse_operand(parse_nested(expression.strip("()").partition(" <")[0]))
        if operand is not None:
            operand.table.distances.setdefault(operand.sql)

    def _read_columns(self, text: str) -> None:
        tokens = flatten(parse_nested(text))
        texts = [token.text for token in tokens]
        for place, token in enumerate(tokens):
            if not token.is_name:
                continue
            before = _text_at(texts, place - 1)
            after = _text_at(texts, place + 1)
            named_table = self._aliases.get(unquote_identifier(token.text))
            if after == "." and named_table is not None and place + 2 < len(texts):
                named_table.columns.setdefault(texts[place + 2])
            elif self.only_table and after not in (".", "(") and before not in (".", "::"):
                self.only_table.columns.setdefault(token.text)

    def _parse_operand(self, parts: Sequence[NestedToken]) -> _Operand | None:
        """Return an operand as the key of an index; None where it cannot be one."""
        expression = self._parse_expression(parts)
        if expression is None or _SIMPLE_OPERAND.fullmatch(expression.sql):
            return expression
        return _Operand(expression.table, f"({expression.sql})")

    def _parse_expression(self, parts: Sequence[NestedToken]) -> _Operand | None:
        """Return an expression and the one table that it is about; None where that cannot be an index's.

        The columns in it count as read.
        """
        tokens = flatten(strip_parentheses(parts))
        table: TableUse | None = None
        texts: list[str] = []
        place = 0
        while place < len(tokens):
            token = tokens[place]
            if _is_not_indexable(token):
                return None
            if not _is_alias(tokens, place):
                texts.append(token.text)
                place += 1
                continue
            named_table = self._aliases.get(unquote_identifier(token.text))
            if named_table is None or (table is not None and named_table is not table):
                return None
            table = named_table
            table.columns.setdefault(tokens[place + 2].text)
            place += 2
        sql = join_tokens(texts)
        if table is None or len(sql) > _MAX_OPERAND_CHARACTERS:
            return None
        return _Operand(table, sql)


def _children(node: Node) -> list[Node]:
    return cast("list[Node]", node.get("Plans", []))


def _text_list(node: Node, name: str) -> list[str]:
    return cast("list[str]", node.get(name) or [])


def _text_at(texts: Sequence[str], place: int) -> str:
    """Return the text at a place; empty before the first and behind the last."""
    if 0 <= place < len(texts):
        return texts[place]
    return ""


def _is_comparison(part: NestedToken) -> bool:
    return isinstance(part, Token) and part.kind == "sign" and part.text in _COMPARISON_OPERATORS


def _is_alias(tokens: Sequence[Token], place: int) -> bool:
    """Return whether the token stands before a point and the name of a column."""
    return tokens[place].is_name and place + 1 < len(tokens) and tokens[place + 1].text == "."


def _is_not_indexable(token: Token) -> bool:
    return token.text in _NOT_INDEXABLE or token.text.startswith("$")
