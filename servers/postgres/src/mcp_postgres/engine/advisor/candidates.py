"""Suggests indexes for a statement: what its plan compares, orders and groups, as PostgreSQL spells it.

The texts of a plan only suggest. PostgreSQL decides whether a candidate can be an index, and its planner whether it
helps.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from mcp_batteries.sql.identifiers import unquoted

__all__ = ["Index", "TableUse", "propose_indexes", "read_table_uses"]

Node = dict[str, Any]

_TOKEN = re.compile(
    r"""(?P<space>\s+)|(?P<text>[eE]?'(?:[^'\\]|''|\\.)*')|(?P<name>"(?:[^"]|"")*")|(?P<word>[^\W\d][\w$]*)"""
    r"""|(?P<value>\d[\w.]*|\$\d+)|(?P<cast>::)|(?P<sign>[-+*/<>=~!@#%^&|`?]+|.)""",
    re.DOTALL,
)
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
_CAST_TO_TEXT = re.compile(r"""\(\((?P<name>[\w$]+|"(?:[^"]|"")+")\)::(?:text|bpchar|character varying)\)""")
_DESC = re.compile(r" DESC(?: NULLS LAST)?$| NULLS FIRST$")
_MAX_CANDIDATES = 60
_MAX_OPERANDS = 5
_MAX_INCLUDED = 3
_MAX_KEYS = 5
_MAX_ORDERS = 3
_MAX_PREDICATES = 3
_MAX_OPERAND_CHARACTERS = 200


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
        where = ""
        if self.predicate:
            where = f" WHERE {self.predicate}"
        return f"{table or self.table} {using}({', '.join(self.keys)}){include}{where}"

    def is_simpler_form_of(self, other: Index) -> bool:
        """Return whether it is as `other` is, and simpler."""
        return (
            (self.table, self.method) == (other.table, other.method)
            and self.complexity < other.complexity
            and self.predicate in ("", other.predicate)
            and {*self.keys} <= {*other.keys, *other.include}
            and {*self.include} <= {*other.include}
        )


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


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str


_Keys = tuple[str, ...]
NestedToken = _Token | list["NestedToken"]


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
        for word in _CONDITION_FIELDS:
            if word in node:
                self._read_condition(parse_nested(str(node[word])))
        for word in ("Sort Key", "Group Key"):
            if keys := cast("list[str]", node.get(word)):
                self._read_order(keys)
        for text in cast("list[str]", node.get("Output", [])):
            # What a scan gives may be whole rows, whatever is needed of them.
            if is_top or "Relation Name" not in node or str(node.get("Alias")) not in self._aliases:
                self._read_columns(text)
            for extreme in re.finditer(r"\b(?:min|max)\(((?:[^()]|\([^()]*\))*)\)", text):
                table = None
                if self.only_table and re.fullmatch(r'[\w$]+|"[^"]+"', extreme[1]):
                    table = self.only_table
                if table:
                    operand = (table, extreme[1])
                else:
                    operand = self._parse_operand(parse_nested(extreme[1]))
                if operand is not None:
                    operand[0].orders.setdefault((operand[1],))
        for child in _children(node):
            self.read_node(child, is_top=is_top and node["Node Type"] in ("Limit", "Gather", "Gather Merge", "Append"))

    def _read_condition(self, parts: Sequence[NestedToken]) -> None:
        while len(parts) == 1 and isinstance(parts[0], list):
            parts = parts[0]
        for word in ("OR", "AND"):
            if (operands := _split_at_word(parts, word)) is not None:
                for each in operands:
                    self._read_condition(each)
                return
        if len(parts) > 1 and _token_text(parts[0]) == "NOT":
            self._read_truth(parts, parts[1:])
            return
        for place, part in enumerate(parts):
            sign = _token_text(part)
            if sign == "IS":
                self._read_null_test(parts, parts[:place], [_token_text(each) for each in parts[place + 1 :]])
                return
            if isinstance(part, _Token) and part.kind == "sign" and _is_comparison(sign):
                self._read_comparison(parts, parts[:place], sign, parts[place + 1 :])
                return
        self._read_truth(parts, parts)

    def _read_comparison(
        self, condition: Sequence[NestedToken], left: Sequence[NestedToken], operator: str, right: Sequence[NestedToken]
    ) -> None:
        operands = [self._parse_operand(left), self._parse_operand(right)]
        for operand in operands:
            if operand is None:
                continue
            table, sql = operand
            if operator in _EQUALITY_OPERATORS:
                table.equalities.setdefault(sql)
            elif operator in _RANGE_OPERATORS:
                table.ranges.setdefault(sql)
            if operator in _TEXT_MATCH_OPERATORS:
                table.text_matches.setdefault(sql)
            if operator in _PATTERN_CLASSES:
                table.patterns.setdefault(sql, _PATTERN_CLASSES[operator])
            if operator in _CONTAINMENT_OPERATORS:
                table.containments.setdefault(sql)
            if len(operands) - operands.count(None) == 1 and operator in _NEGATED_OPERATORS:
                self._keep_partial_condition(table, condition, sql)

    def _read_null_test(
        self, condition: Sequence[NestedToken], operand_tokens: Sequence[NestedToken], words: Sequence[str]
    ) -> None:
        operand = self._parse_operand(operand_tokens)
        if operand is None:
            return
        table, sql = operand
        if words == ["NULL"]:
            table.equalities.setdefault(sql)
        self._keep_partial_condition(table, condition, sql)

    def _read_truth(self, condition: Sequence[NestedToken], operand_tokens: Sequence[NestedToken]) -> None:
        operand = self._parse_operand(operand_tokens)
        if operand is not None:
            operand[0].equalities.setdefault(operand[1])
            self._keep_partial_condition(operand[0], condition, operand[1])

    def _keep_partial_condition(self, table: TableUse, condition: Sequence[NestedToken], operand: str) -> None:
        """Remember a condition that a partial index might have."""
        operand_of_table = self._parse_operand(condition, is_condition=True)
        if operand_of_table is not None and operand_of_table[0] is table:
            table.conditions.setdefault(operand_of_table[1], operand)

    def _read_order(self, keys: Sequence[str]) -> None:
        columns: list[tuple[TableUse, str]] = []
        for key in keys:
            expression = _DESC.sub("", key)
            operand = self._parse_operand(parse_nested(expression))
            if operand is None:
                break
            if " <-> " in expression or " <=> " in expression or " <#> " in expression:
                operand_of_distance = self._parse_operand(parse_nested(expression.strip("()").partition(" <")[0]))
                if operand_of_distance is not None:
                    operand_of_distance[0].distances.setdefault(operand_of_distance[1])
                break
            columns.append((operand[0], operand[1] + key[len(expression) :]))
        if columns:
            table = columns[0][0]
            names = [name for _, name in itertools.takewhile(lambda item: item[0] is table, columns)]
            if all(name.endswith(" DESC") for name in names):
                names = [name.removesuffix(" DESC") for name in names]  # read from its end
            table.orders.setdefault(tuple(names))

    def _read_columns(self, text: str) -> None:
        parts = _flatten(parse_nested(text))
        for place, token in enumerate(parts):
            if token.kind not in ("word", "name"):
                continue
            after = ""
            if place + 1 < len(parts):
                after = parts[place + 1].text
            if after == "." and (table := self._aliases.get(unquoted(token.text))) and place + 2 < len(parts):
                table.columns.setdefault(parts[place + 2].text)
            elif (
                self.only_table and after not in (".", "(") and (not place or parts[place - 1].text not in (".", "::"))
            ):
                self.only_table.columns.setdefault(token.text)

    def _parse_operand(
        self, parts: Sequence[NestedToken], *, is_condition: bool = False
    ) -> tuple[TableUse, str] | None:
        """Return the one table that an operand is about, and the operand as SQL; None where that cannot be an index's.

        Args:
            is_condition: it is a whole condition.
        """
        while len(parts) == 1 and isinstance(parts[0], list):
            parts = parts[0]
        if is_condition:
            parts = list(parts)
        tokens = _flatten(parts)
        table: TableUse | None = None
        texts: list[str] = []
        place = 0
        while place < len(tokens):
            token = tokens[place]
            next_text = ""
            if place + 1 < len(tokens):
                next_text = tokens[place + 1].text
            if token.text in ("SubPlan", "InitPlan", "hashed", "ROW", "CURRENT_DATE") or token.text.startswith("$"):
                return None
            if token.kind in ("word", "name") and next_text == ".":
                named_table = self._aliases.get(unquoted(token.text))
                if named_table is None or (table is not None and named_table is not table):
                    return None
                table = named_table
                table.columns.setdefault(tokens[place + 2].text)
                place += 2
                continue
            texts.append(token.text)
            place += 1
        sql = _join_tokens(texts)
        if table is None or len(sql) > _MAX_OPERAND_CHARACTERS:
            return None
        if is_condition:
            return table, sql
        simple = re.fullmatch(r'[\w$]+|"(?:[^"]|"")+"', sql)
        return table, sql if simple else f"({sql})"


def _children(node: Node) -> list[Node]:
    return cast("list[Node]", node.get("Plans", []))


def _is_comparison(operator: str) -> bool:
    return (
        operator in _EQUALITY_OPERATORS
        or operator in _RANGE_OPERATORS
        or operator in _CONTAINMENT_OPERATORS
        or operator in _TEXT_MATCH_OPERATORS
        or operator in _NEGATED_OPERATORS
    )


def parse_nested(text: str) -> list[NestedToken]:
    """Return the tokens of an expression; what stands in parentheses is a list."""
    stack: list[list[NestedToken]] = [[]]
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or ""
        word = match[0]
        if kind == "space":
            continue
        if word == "(":
            stack.append([])
        elif word == ")" and len(stack) > 1:
            inner = stack.pop()
            stack[-1].append(inner)
        else:
            stack[-1].append(_Token(kind, word))
    while len(stack) > 1:
        inner = stack.pop()
        stack[-1].append(inner)
    return stack[0]


def _flatten(parts: Iterable[NestedToken]) -> list[_Token]:
    return list(_iterate_tokens(parts))


def _iterate_tokens(parts: Iterable[NestedToken]) -> Iterator[_Token]:
    for part in parts:
        if isinstance(part, list):
            yield _Token("sign", "(")
            yield from _iterate_tokens(part)
            yield _Token("sign", ")")
        else:
            yield part


def _token_text(part: NestedToken) -> str:
    if isinstance(part, _Token):
        return part.text
    return ""


def _split_at_word(parts: Sequence[NestedToken], word: str) -> list[list[NestedToken]] | None:
    if not any(_token_text(part) == word for part in parts):
        return None
    operands: list[list[NestedToken]] = [[]]
    for part in parts:
        if _token_text(part) == word:
            operands.append([])
        else:
            operands[-1].append(part)
    return operands


def _join_tokens(texts: Sequence[str]) -> str:
    joined = " ".join(texts)
    for before, after in (
        (" ( ", "("),
        ("( ", "("),
        (" )", ")"),
        (" ,", ","),
        (" :: ", "::"),
        (" [ ", "["),
        (" ]", "]"),
    ):
        joined = joined.replace(before, after)
    # A sign before a parenthesis stands apart; a function's name does not.
    return re.sub(r"(?<=[-+*/<>=~|&,])\(", " (", joined)


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
                key_lists.setdefault((*head, *(key for key in tail if _DESC.sub("", key) not in head)))
        for pair in itertools.permutations(ranges, 2):
            key_lists.setdefault(pair)
        return sorted((keys for keys in key_lists if 0 < len(keys) <= _MAX_KEYS), key=len)

    def covering(self, key_lists: Sequence[_Keys]) -> list[Index]:
        """Return indexes that also store the other columns that are read, where these are few."""
        read_columns = [name for name in self.use.columns if name in self.columns]
        indexes: list[Index] = []
        for keys in key_lists:
            key_columns = {_DESC.sub("", key).partition(" ")[0] for key in keys}
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
