"""Reads PostgreSQL's query trees: which relations a statement touches, and where its columns come from.

A parsed statement names everything by number, whatever its text looks like. What is asked of it here: does a masked
column reach anything but an output? Passing through subqueries, views and joins as it stands is fine, and the output
is masked then; conditions, expressions, orders and comparisons are not, because they tell of values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol, Union

__all__ = ["AllowedObjects", "ColumnOrigins", "ForbiddenReference", "Node", "ReferencedRelation", "read_tree"]

_TOKEN = re.compile(r"(?:\\.|[^\s(){}\\])+|[(){}]", re.DOTALL)
_SELECT = "1"
_EXISTS = "0"
_UNION = "1"
# Fields of a query that are looked at by themselves.
_SEPARATE_FIELDS = {"cteList", "rtable", "targetList", "returningList"}
# Fields that list columns whether anything uses them or not; policies; and what was looked at before.
_UNUSED_FIELDS = {"joinaliasvars", "exclRelTlist", "securityQuals", "subquery"}


class Node(NamedTuple):
    """One node of a tree."""

    kind: str
    fields: dict[str, Value]

    def nodes(self, name: str) -> list[Node]:
        """Return the nodes that a field lists."""
        value = self.fields.get(name)
        if type(value) is not list:
            return []
        return [item for item in value if isinstance(item, Node)]

    def text(self, name: str) -> str:
        """Return a field's plain value; empty where it has none."""
        value = self.fields.get(name)
        return value if isinstance(value, str) else ""

    def number(self, name: str) -> int:
        """Return a field's number."""
        return int(self.text(name) or 0)


Value = Union[Node, list["Value"], str, None]  # noqa: UP007 - it names itself


class ForbiddenReference(Exception):
    """What a statement touches that is not to be had; the text says what, and how it may be used."""

    def __init__(self, failure: str, fix: str) -> None:
        super().__init__(failure)
        self.failure = failure
        self.fix = fix


class ReferencedRelation(NamedTuple):
    """A relation that a statement names.

    Attributes:
        name: as SQL spells it.
        masked: numbers of its columns that are masked.
        tree: what a view or materialized view is made of.
        is_vouched: what is in that tree may be anything; masked columns stay masked.
    """

    name: str
    masked: frozenset[int]
    tree: str | None = None
    is_vouched: bool = False


class AllowedObjects(Protocol):
    """What says which relations and functions may be touched."""

    def relation(self, oid: int) -> ReferencedRelation:
        """Return the relation; for one that may not be touched it raises `ForbiddenReference`."""
        ...

    def any_relation(self, oid: int) -> ReferencedRelation:
        """Return the relation, which may be any."""
        ...

    def check_functions(self, tree: str) -> None:
        """Raise `ForbiddenReference` where a tree calls what may tell more than its arguments do."""
        ...


def read_tree(text: str) -> Value:
    """Return a tree from its text.

    Raises:
        ValueError: it is none.
    """
    tokens = iter(_TOKEN.findall(text))
    return _parse_value(next(tokens, ""), tokens)


def _parse_value(token: str, tokens: Iterator[str]) -> Value:
    if token == "{":
        return _parse_node(tokens)
    if token == "(":
        items: list[Value] = []
        while (token := next(tokens, "")) != ")":
            items.append(_parse_value(token, tokens))
        return items
    if token in ("", ")", "}"):
        raise ValueError("a tree that ends early")
    return None if token == "<>" else token


def _parse_node(tokens: Iterator[str]) -> Node:
    kind = next(tokens, "")
    fields = dict[str, Value]()
    token = next(tokens, "")
    while token != "}":
        if not token.startswith(":"):
            raise ValueError("a value without a field")
        name = token[1:]
        # Whatever stands behind a field's name is its value: an alias may be spelled like a field.
        fields[name] = _parse_value(next(tokens, ""), tokens)
        token = next(tokens, "")
        while token not in ("}", "") and not token.startswith(":"):
            _parse_value(token, tokens)
            token = next(tokens, "")
    return Node(kind, fields)


@dataclass
class _QueryLevel:
    """A query, and what its numbers mean.

    Attributes:
        sources: what it reads from, by their numbers from 1 on.
        masked: the masked columns of each source.
        names: what each source is called.
        ctes: the masked outputs of each common table expression; None while they are not known.
        open_ctes: those that are being looked at.
        recursive_ctes: those that name themselves.
    """

    query: Node
    sources: list[Node]
    masked: dict[int, frozenset[int]] = field(default_factory=dict[int, frozenset[int]])
    names: dict[int, str] = field(default_factory=dict[int, str])
    ctes: dict[str, frozenset[int] | None] = field(default_factory=dict[str, "frozenset[int] | None"])
    open_ctes: set[str] = field(default_factory=set[str])
    recursive_ctes: set[str] = field(default_factory=set[str])


@dataclass(frozen=True)
class _Scope:
    """Where a part of a tree stands.

    Attributes:
        levels: the queries that it is inside of, the innermost first.
        unrestricted: it is of a view that the operator vouches for, which may touch anything.
        own_view: the number of the view whose tree it is of.
    """

    levels: tuple[_QueryLevel, ...] = ()
    unrestricted: bool = False
    own_view: int = 0

    @property
    def level(self) -> _QueryLevel:
        return self.levels[0]

    def enter(self, level: _QueryLevel) -> _Scope:
        """Return the scope inside of another query."""
        return replace(self, levels=(level, *self.levels))

    def leave(self, depth: int) -> _Scope:
        """Return the scope outside of as many queries."""
        if depth == 0:
            return self
        return replace(self, levels=self.levels[depth:])

    def nested(self) -> _Scope:
        """Return the scope for queries inside of this one, which list no view as their own."""
        if not self.own_view:
            return self
        return replace(self, own_view=0)


class ColumnOrigins:
    """Where columns go, in the statements of one look at the catalogue.

    Args:
        allowed: asked for every relation and function, of views too.
    """

    def __init__(self, allowed: AllowedObjects) -> None:
        self._allowed = allowed
        self._views: dict[tuple[int, bool], frozenset[int]] = {}

    def masked_outputs(self, tree: str) -> frozenset[int]:
        """Return the output columns of a parsed statement, counted from 0, that have to be masked.

        Raises:
            ForbiddenReference: it touches what it may not, or a masked column is more than an output.
            ValueError: it is no such tree.
        """
        self._allowed.check_functions(tree)
        node = read_tree(tree)
        if not isinstance(node, Node) or node.kind != "QUERY":
            raise ValueError("a tree that is not a query")
        return frozenset(number - 1 for number in self._masked_outputs(node, _Scope()))

    def _masked_outputs(self, query: Node, outer: _Scope) -> frozenset[int]:
        """Return the output columns of a query, counted from 1, that have to be masked."""
        level = _QueryLevel(query, query.nodes("rtable"))
        scope = outer.enter(level)
        self._read_sources(scope)
        self._merge_set_operation(level)
        scope = scope.nested()
        for name, value in query.fields.items():
            if name not in _SEPARATE_FIELDS:
                self._refuse_masked(value, scope)
        for entry in level.sources:
            self._refuse_masked(entry, scope)
        if query.text("commandType") == _SELECT:
            return self._read_outputs(query.nodes("targetList"), scope)
        self._refuse_masked(query.fields.get("targetList"), scope)
        return self._read_outputs(query.nodes("returningList"), scope)

    def _read_sources(self, scope: _Scope) -> None:
        """Know what is masked of everything that a query reads from, and what it is called."""
        level = scope.level
        nested = scope.nested()
        for cte in level.query.nodes("cteList"):
            level.ctes[cte.text("ctename")] = None
        for cte in level.query.nodes("cteList"):
            self._masked_of_cte(cte.text("ctename"), nested)
        for number, entry in enumerate(level.sources, 1):
            level.masked[number] = self._masked_of_source(entry, scope)
            level.names.setdefault(number, _alias(entry))

    def _read_outputs(self, entries: Sequence[Node], scope: _Scope) -> frozenset[int]:
        """Return the numbers of outputs that are masked columns; what else has one is refused."""
        masked: set[int] = set()
        number = 0
        for entry in entries:
            is_output = entry.text("resjunk") != "true"
            if is_output:
                number += 1
            value = entry.fields.get("expr")
            if not is_output or not isinstance(value, Node) or not self._is_masked_variable(value, scope):
                self._refuse_masked(value, scope)
                continue
            if entry.number("ressortgroupref") or value.text("varattno") == "0":
                raise _refuse_use(self._masked_name(value, scope))
            masked.add(number)
        return frozenset(masked)

    def _is_masked_variable(self, value: Node, scope: _Scope) -> bool:
        return value.kind == "VAR" and bool(self._masked_name(value, scope))

    def _masked_of_query(self, query: Value, scope: _Scope) -> frozenset[int]:
        """Return what is masked of a query inside of another; nothing of what is none."""
        if isinstance(query, Node):
            return self._masked_outputs(query, scope)
        return frozenset()

    def _masked_of_cte(self, name: str, scope: _Scope) -> frozenset[int]:
        level = scope.level
        known_columns = level.ctes[name]
        if known_columns is not None:
            return known_columns
        if name in level.open_ctes:
            level.recursive_ctes.add(name)
            return frozenset()
        level.open_ctes.add(name)
        cte = next(item for item in level.query.nodes("cteList") if item.text("ctename") == name)
        masked = self._masked_of_query(cte.fields.get("ctequery"), scope)
        if masked and name in level.recursive_ctes:
            raise ForbiddenReference("A masked column can't go through WITH RECURSIVE.", _MASKED_COLUMN_FIX)
        level.ctes[name] = masked
        return masked

    def _masked_of_source(self, entry: Node, scope: _Scope) -> frozenset[int]:
        """Return what is masked of something that a query reads from."""
        subquery = entry.fields.get("subquery")
        if isinstance(subquery, Node):
            return self._masked_outputs(subquery, scope.nested())
        name = entry.text("ctename")
        if name:
            outer = scope.nested().leave(entry.number("ctelevelsup"))
            if outer.levels and name in outer.level.ctes:
                return self._masked_of_cte(name, outer)
            return frozenset()
        oid = entry.number("relid")
        # Up to PostgreSQL 15 a view lists itself, as what it was and as what it will be.
        if not oid or oid == scope.own_view:
            return frozenset()
        return self._masked_of_relation(oid, unrestricted=scope.unrestricted)

    def _masked_of_relation(self, oid: int, *, unrestricted: bool) -> frozenset[int]:
        if unrestricted:
            relation = self._allowed.any_relation(oid)
        else:
            relation = self._allowed.relation(oid)
        if relation.tree is None:
            return relation.masked
        is_vouched = unrestricted or relation.is_vouched
        if (oid, is_vouched) not in self._views:
            self._views[oid, is_vouched] = self._masked_of_view(oid, relation.tree, unrestricted=is_vouched)
        return self._views[oid, is_vouched] | relation.masked

    def _masked_of_view(self, oid: int, tree: str, *, unrestricted: bool) -> frozenset[int]:
        if not unrestricted:
            self._allowed.check_functions(tree)
        queries = read_tree(tree)
        if type(queries) is not list or not queries or not isinstance(queries[0], Node):
            raise ValueError("a view without a tree")
        return self._masked_outputs(queries[0], _Scope(unrestricted=unrestricted, own_view=oid))

    @staticmethod
    def _merge_set_operation(level: _QueryLevel) -> None:
        """Mask the columns of queries that are put together, which are masked in one of them."""
        set_operation = level.query.fields.get("setOperations")
        if not isinstance(set_operation, Node):
            return
        leaves = [number for number, entry in enumerate(level.sources, 1) if entry.fields.get("subquery") is not None]
        all_masked = frozenset[int]().union(*(level.masked[number] for number in leaves))
        if all_masked and not _is_union_all(set_operation):
            raise ForbiddenReference(
                "Masked columns can't be compared: UNION ALL does not, all else does.", _MASKED_COLUMN_FIX
            )
        level.masked.update(dict.fromkeys(leaves, all_masked))

    def _refuse_masked(self, value: Value, scope: _Scope) -> None:
        """Look through what is more than an output."""
        if type(value) is list:
            for item in value:
                self._refuse_masked(item, scope)
        elif isinstance(value, Node):
            self._refuse_masked_node(value, scope)

    def _refuse_masked_node(self, node: Node, scope: _Scope) -> None:
        match node.kind:
            case "VAR":
                name = self._masked_name(node, scope)
                if name:
                    raise _refuse_use(name)
            case "SUBLINK":
                self._refuse_masked_sublink(node, scope)
            case "QUERY":
                if self._masked_outputs(node, scope):
                    raise ForbiddenReference("A masked column is used as a value.", _MASKED_COLUMN_FIX)
            case _:
                for name, inner in node.fields.items():
                    if name not in _UNUSED_FIELDS:
                        self._refuse_masked(inner, scope)

    def _refuse_masked_sublink(self, node: Node, scope: _Scope) -> None:
        self._refuse_masked(node.fields.get("testexpr"), scope)
        masked = self._masked_of_query(node.fields.get("subselect"), scope)
        if masked and node.text("subLinkType") != _EXISTS:
            raise ForbiddenReference("A masked column is used as a value, by a subquery.", _MASKED_COLUMN_FIX)

    def _masked_name(self, variable: Node, scope: _Scope) -> str:
        """Return what a column is called, if it is masked; a whole row has all its columns."""
        outer = scope.leave(variable.number("varlevelsup"))
        number = variable.number("varno")
        column = variable.number("varattno")
        if not outer.levels or not 1 <= number <= len(outer.level.sources):
            raise ValueError("a column of nothing")
        entry = outer.level.sources[number - 1]
        if "joinaliasvars" in entry.fields:
            return self._masked_name_of_join(entry, column, outer)
        masked = outer.level.masked.get(number)
        if masked is None:
            raise ValueError("a column of what stands behind it")
        if column in masked or (column == 0 and masked):
            return f"{outer.level.names.get(number, '')}.{_column_name(entry, column or min(masked))}"
        return ""

    def _masked_name_of_join(self, entry: Node, column: int, scope: _Scope) -> str:
        """Return the first masked column behind a column of a join, or behind its whole row."""
        aliases = entry.fields["joinaliasvars"]
        if type(aliases) is not list:
            return ""
        chosen = aliases
        if column != 0:
            chosen = aliases[column - 1 : column]
        for variable in _find_variables(chosen):
            name = self._masked_name(variable, scope)
            if name:
                return name
        return ""


_MASKED_COLUMN_FIX = "It can only be selected, as it stands: without conditions, expressions, joins or orders by it."


def _refuse_use(name: str) -> ForbiddenReference:
    return ForbiddenReference(
        f"The column `{name[:200]}` is masked, and is used for more than to be shown.", _MASKED_COLUMN_FIX
    )


def _alias(entry: Node) -> str:
    """Return what a source is called."""
    alias = entry.fields.get("eref")
    if isinstance(alias, Node):
        return alias.text("aliasname")
    return ""


def _column_name(entry: Node, column: int) -> str:
    """Return what a column of a source is called there; its number where the tree does not say."""
    alias = entry.fields.get("eref")
    if not isinstance(alias, Node):
        return str(column)
    names = alias.fields.get("colnames")
    if type(names) is not list or len(names) < column:
        return str(column)
    quoted_name = names[column - 1]
    if not isinstance(quoted_name, str):
        return str(column)
    return re.sub(r"\\(.)", r"\1", quoted_name[1:-1])


def _find_variables(value: Value) -> Iterator[Node]:
    if type(value) is list:
        for item in value:
            yield from _find_variables(item)
    elif isinstance(value, Node):
        if value.kind == "VAR":
            yield value
        for inner in value.fields.values():
            yield from _find_variables(inner)


def _is_union_all(set_operation: Node) -> bool:
    """Return whether all parts of a set operation are put together by UNION ALL."""
    if set_operation.kind != "SETOPERATIONSTMT":
        return True
    if (set_operation.text("op"), set_operation.text("all")) != (_UNION, "true"):
        return False
    sides = [set_operation.fields.get(name) for name in ("larg", "rarg")]
    return all(_is_union_all(side) for side in sides if isinstance(side, Node))
