"""Reads PostgreSQL's query trees: which relations a statement touches, and where its columns come from.

A parsed statement names everything by number, whatever its text looks like. What is asked of it here: does a masked
column reach anything but an output? Passing through subqueries, views and joins as it stands is fine, and the output
is masked then; conditions, expressions, orders and comparisons are not, because they tell of values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, Union

__all__ = ["Barred", "Flow", "Known", "Node", "Touched", "read_tree"]

_TOKEN = re.compile(r"(?:\\.|[^\s(){}\\])+|[(){}]", re.DOTALL)
_SELECT, _EXISTS, _UNION = "1", "0", "1"
_APART = {"cteList", "rtable", "targetList", "returningList"}
"""Fields of a query that are looked at by themselves."""
_NOT_USED = {"joinaliasvars", "exclRelTlist", "securityQuals", "subquery"}
"""Fields that list columns whether anything uses them or not; policies; and what was looked at before."""


class Node(NamedTuple):
    """One node of a tree."""

    kind: str
    fields: dict[str, Value]

    def nodes(self, name: str) -> list[Node]:
        """The nodes that a field lists."""
        found = self.fields.get(name)
        return [item for item in found if isinstance(item, Node)] if type(found) is list else []

    def word(self, name: str) -> str:
        """A field's plain value; empty where it has none."""
        found = self.fields.get(name)
        return found if isinstance(found, str) else ""

    def number(self, name: str) -> int:
        """A field's number."""
        return int(self.word(name) or 0)


Value = Union[Node, list["Value"], str, None]  # noqa: UP007 - it names itself


class Barred(Exception):
    """What a statement touches that is not to be had; the text says what, and how it may be used."""

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(what)
        self.what, self.fix = what, fix


class Touched(NamedTuple):
    """A relation that a statement names.

    Attributes:
        name: as SQL spells it.
        masked: numbers of its columns that are masked.
        tree: what a view or materialized view is made of.
        vouched: what is in that tree may be anything; masked columns stay masked.
    """

    name: str
    masked: frozenset[int]
    tree: str | None = None
    vouched: bool = False


class Known(Protocol):
    """What says which relations and functions may be touched."""

    def relation(self, oid: int) -> Touched:
        """The relation; for one that may not be touched it raises `Barred`."""
        ...

    def anything(self, oid: int) -> Touched:
        """The relation, which may be any."""
        ...

    def functions(self, tree: str) -> None:
        """Raise `Barred` where a tree calls what may tell more than its arguments do."""
        ...


def read_tree(text: str) -> Value:
    """A tree from its text.

    Raises:
        ValueError: it is none.
    """
    tokens = iter(_TOKEN.findall(text))
    return _value(next(tokens, ""), tokens)


def _value(token: str, tokens: Iterator[str]) -> Value:
    if token == "{":
        return _node(tokens)
    if token == "(":
        found: list[Value] = []
        while (token := next(tokens, "")) != ")":
            found.append(_value(token, tokens))
        return found
    if token in ("", ")", "}"):
        raise ValueError("a tree that ends early")
    return None if token == "<>" else token


def _node(tokens: Iterator[str]) -> Node:
    kind, fields, token = next(tokens, ""), dict[str, Value](), next(tokens, "")
    while token != "}":
        if not token.startswith(":"):
            raise ValueError("a value without a field")
        name = token[1:]
        # Whatever stands behind a field's name is its value: an alias may be spelled like a field.
        fields[name] = _value(next(tokens, ""), tokens)
        while (token := next(tokens, "")) not in ("}", "") and not token.startswith(":"):
            _value(token, tokens)
    return Node(kind, fields)


@dataclass
class _Level:
    """A query, and what its numbers mean; those above it are those that it is inside of."""

    query: Node
    rtable: list[Node]
    masked: dict[int, frozenset[int]] = field(default_factory=dict[int, frozenset[int]])
    names: dict[int, str] = field(default_factory=dict[int, str])
    ctes: dict[str, frozenset[int] | None] = field(default_factory=dict[str, "frozenset[int] | None"])
    again: set[str] = field(default_factory=set[str])
    """Common table expressions that name themselves."""


class Flow:
    """Where columns go, in the statements of one look at the catalogue.

    Args:
        known: asked for every relation and function, of views too.
    """

    def __init__(self, known: Known) -> None:
        self._known = known
        self._views: dict[tuple[int, bool], frozenset[int]] = {}

    def outputs(self, tree: str) -> frozenset[int]:
        """The output columns of a parsed statement, counted from 0, that have to be masked.

        Raises:
            Barred: it touches what it may not, or a masked column is more than an output.
            ValueError: it is no such tree.
        """
        self._known.functions(tree)
        found = read_tree(tree)
        if not isinstance(found, Node) or found.kind != "QUERY":
            raise ValueError("a tree that is not a query")
        return frozenset(number - 1 for number in self._query(found, (), free=False))

    def _query(self, query: Node, above: tuple[_Level, ...], *, free: bool, own: int = 0) -> frozenset[int]:
        level = _Level(query, query.nodes("rtable"))
        levels = (level, *above)
        for cte in query.nodes("cteList"):
            level.ctes[cte.word("ctename")] = None
        for cte in query.nodes("cteList"):
            self._cte(cte.word("ctename"), levels, free=free)
        for number, entry in enumerate(level.rtable, 1):
            level.masked[number] = self._entry(entry, levels, free=free, own=own)
            alias = entry.fields.get("eref")
            level.names.setdefault(number, alias.word("aliasname") if isinstance(alias, Node) else "")
        self._unite(level)
        for name, value in query.fields.items():
            if name not in _APART:
                self._use(value, levels, free=free)
        for entry in level.rtable:
            self._use(entry, levels, free=free)
        reads = query.word("commandType") == _SELECT
        if not reads:
            self._use(query.fields.get("targetList"), levels, free=free)
        found, number = set[int](), 0
        for entry in query.nodes("targetList" if reads else "returningList"):
            shown = entry.word("resjunk") != "true"
            number += shown
            value = entry.fields.get("expr")
            if shown and isinstance(value, Node) and value.kind == "VAR" and self._hit(value, levels):
                if entry.number("ressortgroupref") or value.word("varattno") == "0":
                    raise _used(self._hit(value, levels))
                found.add(number)
            else:
                self._use(value, levels, free=free)
        return frozenset(found)

    def _cte(self, name: str, levels: tuple[_Level, ...], *, free: bool) -> frozenset[int]:
        level = levels[0]
        if (known := level.ctes[name]) is not None:
            return known
        if name in level.again:  # it is being looked at
            level.again.add("\0" + name)
            return frozenset()
        level.again.add(name)
        cte = next(item for item in level.query.nodes("cteList") if item.word("ctename") == name)
        query = cte.fields.get("ctequery")
        found = self._query(query, levels, free=free) if isinstance(query, Node) else frozenset[int]()
        if found and "\0" + name in level.again:
            raise Barred("A masked column can't go through WITH RECURSIVE.", _FIX)
        level.ctes[name] = found
        return found

    def _entry(self, entry: Node, levels: tuple[_Level, ...], *, free: bool, own: int) -> frozenset[int]:
        """What is masked of something that a query reads from."""
        inner = entry.fields.get("subquery")
        if isinstance(inner, Node):
            return self._query(inner, levels, free=free)
        if name := entry.word("ctename"):
            up = levels[entry.number("ctelevelsup") :]
            return self._cte(name, up, free=free) if up and name in up[0].ctes else frozenset()
        oid = entry.number("relid")
        if not oid or oid == own:  # up to 15 a view lists itself, as what it was and as what it will be
            return frozenset()
        touched = self._known.anything(oid) if free else self._known.relation(oid)
        if touched.tree is None:
            return touched.masked
        within = free or touched.vouched
        if (oid, within) not in self._views:
            if not within:
                self._known.functions(touched.tree)
            found = read_tree(touched.tree)
            first = found[0] if type(found) is list and found else None
            if not isinstance(first, Node):
                raise ValueError("a view without a tree")
            self._views[oid, within] = self._query(first, (), free=within, own=oid)
        return self._views[oid, within] | touched.masked

    @staticmethod
    def _unite(level: _Level) -> None:
        """Of queries that are put together, a column is masked that is so in one of them."""
        united = level.query.fields.get("setOperations")
        if not isinstance(united, Node):
            return
        leaves = [number for number, entry in enumerate(level.rtable, 1) if entry.fields.get("subquery") is not None]
        every = frozenset[int]().union(*(level.masked[number] for number in leaves))
        if every and not _keeps_all(united):
            raise Barred("Masked columns can't be compared: UNION ALL does not, all else does.", _FIX)
        level.masked.update(dict.fromkeys(leaves, every))

    def _use(self, value: Value, levels: tuple[_Level, ...], *, free: bool) -> None:
        """Look through what is more than an output."""
        if type(value) is list:
            for item in value:
                self._use(item, levels, free=free)
        elif isinstance(value, Node):
            if value.kind == "VAR":
                if name := self._hit(value, levels):
                    raise _used(name)
            elif value.kind == "SUBLINK":
                self._use(value.fields.get("testexpr"), levels, free=free)
                inner = value.fields.get("subselect")
                found = self._query(inner, levels, free=free) if isinstance(inner, Node) else frozenset[int]()
                if found and value.word("subLinkType") != _EXISTS:
                    raise Barred("A masked column is used as a value, by a subquery.", _FIX)
            elif value.kind == "QUERY":
                if self._query(value, levels, free=free):
                    raise Barred("A masked column is used as a value.", _FIX)
            else:
                for name, inner in value.fields.items():
                    if name not in _NOT_USED:
                        self._use(inner, levels, free=free)

    def _hit(self, var: Node, levels: Sequence[_Level]) -> str:
        """What a column is called, if it is masked; a whole row has all its columns."""
        up = levels[var.number("varlevelsup") :]
        number, column = var.number("varno"), var.number("varattno")
        if not up or not 1 <= number <= len(up[0].rtable):
            raise ValueError("a column of nothing")
        entry = up[0].rtable[number - 1]
        if "joinaliasvars" in entry.fields:
            aliases = entry.fields["joinaliasvars"]
            items = aliases if type(aliases) is list else []
            chosen = items if column == 0 else items[column - 1 : column]
            return next((name for item in chosen for one in _vars(item) if (name := self._hit(one, up))), "")
        if (masked := up[0].masked.get(number)) is None:
            raise ValueError("a column of what stands behind it")
        if column not in masked and not (column == 0 and masked):
            return ""
        alias = entry.fields.get("eref")
        names = alias.fields.get("colnames") if isinstance(alias, Node) else None
        first = column or min(masked)
        word = names[first - 1] if type(names) is list and len(names) >= first else None
        spelled = re.sub(r"\\(.)", r"\1", word[1:-1]) if isinstance(word, str) else str(first)
        return f"{up[0].names.get(number, '')}.{spelled}"


_FIX = "It can only be selected, as it stands: without conditions, expressions, joins or orders by it."


def _used(name: str) -> Barred:
    return Barred(f"The column `{name[:200]}` is masked, and is used for more than to be shown.", _FIX)


def _vars(value: Value) -> Iterator[Node]:
    if type(value) is list:
        for item in value:
            yield from _vars(item)
    elif isinstance(value, Node):
        if value.kind == "VAR":
            yield value
        for inner in value.fields.values():
            yield from _vars(inner)


def _keeps_all(united: Node) -> bool:
    if united.kind != "SETOPERATIONSTMT":
        return True
    return (united.word("op"), united.word("all")) == (_UNION, "true") and all(
        _keeps_all(side) for name in ("larg", "rarg") if isinstance(side := united.fields.get(name), Node)
    )
