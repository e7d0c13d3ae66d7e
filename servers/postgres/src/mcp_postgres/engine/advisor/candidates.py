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

__all__ = ["Compared", "Index", "compared", "proposals"]

Node = dict[str, Any]

_TOKEN = re.compile(
    r"""(?P<space>\s+)|(?P<text>[eE]?'(?:[^'\\]|''|\\.)*')|(?P<name>"(?:[^"]|"")*")|(?P<word>[^\W\d][\w$]*)"""
    r"""|(?P<value>\d[\w.]*|\$\d+)|(?P<cast>::)|(?P<sign>[-+*/<>=~!@#%^&|`?]+|.)""",
    re.DOTALL,
)
_CONDITIONS = ("Filter", "Index Cond", "Recheck Cond", "Hash Cond", "Merge Cond", "Join Filter", "One-Time Filter")
_EQUAL = {"=", "IN"}
_RANGE = {"<", "<=", ">", ">="}
_INSIDE = {"@>", "<@", "&&", "?", "?|", "?&", "@@", "@?", "-|-", "<<|", "|>>", "&<", "&>", "~=", "^@"}
_PATTERN = {"~~": "text_pattern_ops", "~": "text_pattern_ops"}
_ALIKE = {"~~", "~~*", "~", "~*", "%"}
_OTHER = {"<>", "!~~", "!~~*", "!~", "!~*"}
_AS_TEXT = re.compile(r"""\(\((?P<name>[\w$]+|"(?:[^"]|"")+")\)::(?:text|bpchar|character varying)\)""")
_DESC = re.compile(r" DESC(?: NULLS LAST)?$| NULLS FIRST$")
_MOST = 60
_MOST_OPERANDS = 5
_MOST_INCLUDED = 3
_LONGEST = 200


@dataclass(frozen=True)
class Index:
    """One that might be made.

    Args:
        table: schema and name, as SQL spells them.
        keys: columns and expressions, with what follows each: an operator class, a direction.
        include: columns that are only stored.
        where: the condition of a partial one.
    """

    table: str
    keys: tuple[str, ...]
    method: str = "btree"
    include: tuple[str, ...] = ()
    where: str = ""

    @property
    def size(self) -> tuple[int, int, int]:
        """What makes one simpler than another that helps as much."""
        return len(self.keys) + len(self.include) + 2 * bool(self.where), len(self.keys), sum(map(len, self.keys))

    def on(self, table: str | None = None) -> str:
        """What follows `CREATE INDEX ON`."""
        using = "" if self.method == "btree" else f"USING {self.method} "
        include = f" INCLUDE ({', '.join(self.include)})" if self.include else ""
        where = f" WHERE {self.where}" if self.where else ""
        return f"{table or self.table} {using}({', '.join(self.keys)}){include}{where}"

    def is_part_of(self, other: Index) -> bool:
        """Whether it is as `other` is, and simpler."""
        return (
            (self.table, self.method) == (other.table, other.method)
            and self.size < other.size
            and self.where in ("", other.where)
            and {*self.keys} <= {*other.keys, *other.include}
            and {*self.include} <= {*other.include}
        )


@dataclass
class Compared:
    """What a plan does with one table; each operand as SQL, without the name of the table.

    Attributes:
        patterns: operands of LIKE and the like, with the operator class that serves those that begin with a text.
        inside: operands of what GIN and GiST indexes serve.
        orders: lists that rows are ordered or grouped by.
        conditions: those that hold for constants only.
        used: columns that are read.
    """

    schema: str
    name: str
    equal: dict[str, None] = field(default_factory=dict[str, None])
    ranges: dict[str, None] = field(default_factory=dict[str, None])
    patterns: dict[str, str] = field(default_factory=dict[str, str])
    alike: dict[str, None] = field(default_factory=dict[str, None])
    inside: dict[str, None] = field(default_factory=dict[str, None])
    near: dict[str, None] = field(default_factory=dict[str, None])
    orders: dict[tuple[str, ...], None] = field(default_factory=dict[tuple[str, ...], None])
    conditions: dict[str, str] = field(default_factory=dict[str, str])
    used: dict[str, None] = field(default_factory=dict[str, None])


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str


Part = _Token | list["Part"]


def compared(plan: Node) -> dict[tuple[str, str], Compared]:
    """What a plan, explained VERBOSE, does with each table, by schema and name."""
    reading = _Reading()
    reading.gather(plan)
    reading.look(plan, top=True)
    return reading.tables


class _Reading:
    def __init__(self) -> None:
        self.tables: dict[tuple[str, str], Compared] = {}
        self._aliases: dict[str, Compared] = {}

    @property
    def sole(self) -> Compared | None:
        """The only table there is: what a step gives then names columns alone."""
        return next(iter(self.tables.values())) if len(self.tables) == 1 else None

    def gather(self, node: Node) -> None:
        if "Relation Name" in node and "Schema" in node:
            key = str(node["Schema"]), str(node["Relation Name"])
            found = self.tables.setdefault(key, Compared(*key))
            alias = str(node.get("Alias", key[1]))
            self._aliases[alias] = found
            # The parts of a partitioned table are told apart by a number; what is above them speaks of the whole.
            self._aliases.setdefault(re.sub(r"_\d+$", "", alias), found)
        for child in _children(node):
            self.gather(child)

    def look(self, node: Node, *, top: bool) -> None:
        for word in _CONDITIONS:
            if word in node:
                self._condition(_nested(str(node[word])))
        for word in ("Sort Key", "Group Key"):
            if keys := cast("list[str]", node.get(word)):
                self._order(keys)
        for text in cast("list[str]", node.get("Output", [])):
            # What a scan gives may be whole rows, whatever is needed of them.
            if top or "Relation Name" not in node or str(node.get("Alias")) not in self._aliases:
                self._use(text)
            for extreme in re.finditer(r"\b(?:min|max)\(((?:[^()]|\([^()]*\))*)\)", text):
                whose = self.sole if self.sole and re.fullmatch(r'[\w$]+|"[^"]+"', extreme[1]) else None
                operand = (whose, extreme[1]) if whose else self._operand(_nested(extreme[1]))
                if operand is not None:
                    operand[0].orders.setdefault((operand[1],))
        for child in _children(node):
            self.look(child, top=top and node["Node Type"] in ("Limit", "Gather", "Gather Merge", "Append"))

    def _condition(self, parts: Sequence[Part]) -> None:
        while len(parts) == 1 and isinstance(parts[0], list):
            parts = parts[0]
        for word in ("OR", "AND"):
            if (several := _divided(parts, word)) is not None:
                for each in several:
                    self._condition(each)
                return
        if len(parts) > 1 and _text(parts[0]) == "NOT":
            self._truth(parts, parts[1:])
            return
        for place, part in enumerate(parts):
            sign = _text(part)
            if sign == "IS":
                self._state(parts, parts[:place], [_text(each) for each in parts[place + 1 :]])
                return
            if isinstance(part, _Token) and part.kind == "sign" and _is_comparison(sign):
                self._comparison(parts, parts[:place], sign, parts[place + 1 :])
                return
        self._truth(parts, parts)

    def _comparison(self, whole: Sequence[Part], left: Sequence[Part], sign: str, right: Sequence[Part]) -> None:
        operands = [self._operand(left), self._operand(right)]
        for operand in operands:
            if operand is None:
                continue
            table, sql = operand
            if sign in _EQUAL:
                table.equal.setdefault(sql)
            elif sign in _RANGE:
                table.ranges.setdefault(sql)
            if sign in _ALIKE:
                table.alike.setdefault(sql)
            if sign in _PATTERN:
                table.patterns.setdefault(sql, _PATTERN[sign])
            if sign in _INSIDE:
                table.inside.setdefault(sql)
            if len(operands) - operands.count(None) == 1 and sign in _OTHER:
                self._keep(table, whole, sql)

    def _state(self, whole: Sequence[Part], left: Sequence[Part], state: Sequence[str]) -> None:
        operand = self._operand(left)
        if operand is None:
            return
        table, sql = operand
        if state == ["NULL"]:
            table.equal.setdefault(sql)
        self._keep(table, whole, sql)

    def _truth(self, whole: Sequence[Part], parts: Sequence[Part]) -> None:
        operand = self._operand(parts)
        if operand is not None:
            operand[0].equal.setdefault(operand[1])
            self._keep(operand[0], whole, operand[1])

    def _keep(self, table: Compared, whole: Sequence[Part], operand: str) -> None:
        """Remember a condition that a partial index might have."""
        found = self._operand(whole, constant=True)
        if found is not None and found[0] is table:
            table.conditions.setdefault(found[1], operand)

    def _order(self, keys: Sequence[str]) -> None:
        found: list[tuple[Compared, str]] = []
        for key in keys:
            bare = _DESC.sub("", key)
            operand = self._operand(_nested(bare))
            if operand is None:
                break
            if " <-> " in bare or " <=> " in bare or " <#> " in bare:
                left = self._operand(_nested(bare.strip("()").partition(" <")[0]))
                if left is not None:
                    left[0].near.setdefault(left[1])
                break
            found.append((operand[0], operand[1] + key[len(bare) :]))
        if found:
            table = found[0][0]
            names = [name for _, name in itertools.takewhile(lambda item: item[0] is table, found)]
            if all(name.endswith(" DESC") for name in names):
                names = [name.removesuffix(" DESC") for name in names]  # read from its end
            table.orders.setdefault(tuple(names))

    def _use(self, text: str) -> None:
        parts = _flat(_nested(text))
        for place, token in enumerate(parts):
            if token.kind not in ("word", "name"):
                continue
            after = parts[place + 1].text if place + 1 < len(parts) else ""
            if after == "." and (table := self._aliases.get(unquoted(token.text))) and place + 2 < len(parts):
                table.used.setdefault(parts[place + 2].text)
            elif self.sole and after not in (".", "(") and (not place or parts[place - 1].text not in (".", "::")):
                self.sole.used.setdefault(token.text)

    def _operand(self, parts: Sequence[Part], *, constant: bool = False) -> tuple[Compared, str] | None:
        """The one table that an operand is about, and the operand as SQL; None where that cannot be an index's.

        Args:
            constant: it is a whole condition.
        """
        while len(parts) == 1 and isinstance(parts[0], list):
            parts = parts[0]
        if constant:
            parts = list(parts)
        tokens = _flat(parts)
        table: Compared | None = None
        texts: list[str] = []
        place = 0
        while place < len(tokens):
            token = tokens[place]
            after = tokens[place + 1].text if place + 1 < len(tokens) else ""
            if token.text in ("SubPlan", "InitPlan", "hashed", "ROW", "CURRENT_DATE") or token.text.startswith("$"):
                return None
            if token.kind in ("word", "name") and after == ".":
                found = self._aliases.get(unquoted(token.text))
                if found is None or (table is not None and found is not table):
                    return None
                table = found
                table.used.setdefault(tokens[place + 2].text)
                place += 2
                continue
            texts.append(token.text)
            place += 1
        sql = _joined(texts)
        if table is None or len(sql) > _LONGEST:
            return None
        if constant:
            return table, sql
        simple = re.fullmatch(r'[\w$]+|"(?:[^"]|"")+"', sql)
        return table, sql if simple else f"({sql})"


def _children(node: Node) -> list[Node]:
    return cast("list[Node]", node.get("Plans", []))


def _is_comparison(sign: str) -> bool:
    return sign in _EQUAL or sign in _RANGE or sign in _INSIDE or sign in _ALIKE or sign in _OTHER


def _nested(text: str) -> list[Part]:
    """The tokens of an expression; what stands in parentheses is a list."""
    open_: list[list[Part]] = [[]]
    for match in _TOKEN.finditer(text):
        kind, word = match.lastgroup or "", match[0]
        if kind == "space":
            continue
        if word == "(":
            open_.append([])
        elif word == ")" and len(open_) > 1:
            inner = open_.pop()
            open_[-1].append(inner)
        else:
            open_[-1].append(_Token(kind, word))
    while len(open_) > 1:
        inner = open_.pop()
        open_[-1].append(inner)
    return open_[0]


def _flat(parts: Iterable[Part]) -> list[_Token]:
    return list(_flattened(parts))


def _flattened(parts: Iterable[Part]) -> Iterator[_Token]:
    for part in parts:
        if isinstance(part, list):
            yield _Token("sign", "(")
            yield from _flattened(part)
            yield _Token("sign", ")")
        else:
            yield part


def _text(part: Part) -> str:
    return part.text if isinstance(part, _Token) else ""


def _divided(parts: Sequence[Part], word: str) -> list[list[Part]] | None:
    if not any(_text(part) == word for part in parts):
        return None
    several: list[list[Part]] = [[]]
    for part in parts:
        if _text(part) == word:
            several.append([])
        else:
            several[-1].append(part)
    return several


def _joined(texts: Sequence[str]) -> str:
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


def proposals(found: Compared, table: str, columns: Mapping[str, bool], *, trigrams: str | None) -> list[Index]:
    """What might help, the narrowest first.

    Args:
        table: as SQL spells it.
        columns: all that there are, as SQL spells them; and whether each is of another kind of text than `text`.
        trigrams: the operator class for parts of texts, where there is the extension.
    """

    def bare(sql: str) -> str:
        # A text of another kind than `text` is compared as one; an index is over the column itself.
        match = _AS_TEXT.match(sql)
        return match["name"] + sql[match.end() :] if match and columns.get(match["name"]) else sql

    equal = list(dict.fromkeys(map(bare, found.equal)))[:_MOST_OPERANDS]
    ranges = [item for item in dict.fromkeys(map(bare, found.ranges)) if item not in equal][:_MOST_OPERANDS]
    orders = [tuple(map(bare, order)) for order in found.orders][:3]
    patterns = {bare(item): ops for item, ops in found.patterns.items()}
    heads = [head for size in range(min(len(equal), 3) + 1) for head in itertools.permutations(equal, size)]
    tails = [(), *((item,) for item in ranges), *orders]
    tails += [(f"{item} {ops}",) for item, ops in patterns.items()] + [(item,) for item in patterns]
    lists = dict.fromkeys(
        (*head, *(item for item in tail if _DESC.sub("", item) not in head)) for head in heads for tail in tails
    )
    lists |= dict.fromkeys(itertools.permutations(ranges, 2))
    used = [name for name in found.used if name in columns]
    plain = sorted((keys for keys in lists if 0 < len(keys) <= 5), key=len)
    made = [Index(table, keys) for keys in plain]
    for keys in plain:
        rest = tuple(name for name in used if name not in {_DESC.sub("", key).partition(" ")[0] for key in keys})
        if 0 < len(rest) <= _MOST_INCLUDED:
            made.append(Index(table, keys, include=rest))
    for where, about in list(found.conditions.items())[:3]:
        others = [keys for keys in plain if bare(about) not in keys and len(keys) <= 2]
        made += [Index(table, keys, where=where) for keys in others or [(name,) for name in [*columns][:1]]]
    for item in found.inside:
        made += [Index(table, (keys,), method) for method, keys in (
            ("gin", item), ("gin", f"{item} jsonb_path_ops"), ("gist", item))]  # fmt: skip
    made += [Index(table, (f"{bare(item)} {trigrams}",), "gin") for item in found.alike if trigrams]
    made += [Index(table, (item,), "gist") for item in found.near]
    # What is simple goes first, so that nothing of it falls behind the limit.
    return sorted(dict.fromkeys(made), key=lambda item: (item.method == "btree", item.size))[:_MOST]
