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
        if type(value) is list:
            return [item for item in value if isinstance(item, Node)]
        return []

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
        while (token := next(tokens, "")) not in ("}", "") and not token.startswith(":"):
            _parse_value(token, tokens)
    return Node(kind, fields)


@dataclass
class _QueryLevel:
    """A query, and what its numbers mean; those above it are those that it is inside of."""

    query: Node
    sources: list[Node]
    masked: dict[int, frozenset[int]] = field(default_factory=dict[int, frozenset[int]])
    names: dict[int, str] = field(default_factory=dict[int, str])
    ctes: dict[str, frozenset[int] | None] = field(default_factory=dict[str, "frozenset[int] | None"])
    # Common table expressions that name themselves.
    open_ctes: set[str] = field(default_factory=set[str])


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
            Barred: it touches what it may not, or a masked column is more than an output.
            ValueError: it is no such tree.
        """
        self._allowed.check_functions(tree)
        node = read_tree(tree)
        if not isinstance(node, Node) or node.kind != "QUERY":
            raise ValueError("a tree that is not a query")
        return frozenset(number - 1 for number in self._masked_outputs(node, (), unrestricted=False))

    def _masked_outputs(
        self, query: Node, outer_levels: tuple[_QueryLevel, ...], *, unrestricted: bool, own_view: int = 0
    ) -> frozenset[int]:
        level = _QueryLevel(query, query.nodes("rtable"))
        levels = (level, *outer_levels)
        for cte in query.nodes("cteList"):
            level.ctes[cte.text("ctename")] = None
        for cte in query.nodes("cteList"):
            self._masked_of_cte(cte.text("ctename"), levels, unrestricted=unrestricted)
        for number, entry in enumerate(level.sources, 1):
            level.masked[number] = self._masked_of_source(entry, levels, unrestricted=unrestricted, own_view=own_view)
            alias = entry.fields.get("eref")
            level.names.setdefault(number, alias.text("aliasname") if isinstance(alias, Node) else "")
        self._merge_set_operation(level)
        for name, value in query.fields.items():
            if name not in _SEPARATE_FIELDS:
                self._refuse_masked(value, levels, unrestricted=unrestricted)
        for entry in level.sources:
            self._refuse_masked(entry, levels, unrestricted=unrestricted)
        is_select = query.text("commandType") == _SELECT
        if not is_select:
            self._refuse_masked(query.fields.get("targetList"), levels, unrestricted=unrestricted)
        masked = set[int]()
        number = 0
        for entry in query.nodes("targetList" if is_select else "returningList"):
            is_output = entry.text("resjunk") != "true"
            number += is_output
            value = entry.fields.get("expr")
            if is_output and isinstance(value, Node) and value.kind == "VAR" and self._masked_name(value, levels):
                if entry.number("ressortgroupref") or value.text("varattno") == "0":
                    raise _refuse_use(self._masked_name(value, levels))
                masked.add(number)
            else:
                self._refuse_masked(value, levels, unrestricted=unrestricted)
        return frozenset(masked)

    def _masked_of_cte(self, name: str, levels: tuple[_QueryLevel, ...], *, unrestricted: bool) -> frozenset[int]:
        level = levels[0]
        if (known_columns := level.ctes[name]) is not None:
            return known_columns
        if name in level.open_ctes:  # it is being looked at
            level.open_ctes.add("\0" + name)
            return frozenset()
        level.open_ctes.add(name)
        cte = next(item for item in level.query.nodes("cteList") if item.text("ctename") == name)
        query = cte.fields.get("ctequery")
        if isinstance(query, Node):
            masked = self._masked_outputs(query, levels, unrestricted=unrestricted)
        else:
            masked = frozenset[int]()
        if masked and "\0" + name in level.open_ctes:
            raise ForbiddenReference("A masked column can't go through WITH RECURSIVE.", _MASKED_COLUMN_FIX)
        level.ctes[name] = masked
        return masked

    def _masked_of_source(
        self, entry: Node, levels: tuple[_QueryLevel, ...], *, unrestricted: bool, own_view: int
    ) -> frozenset[int]:
        """Return what is masked of something that a query reads from."""
        subquery = entry.fields.get("subquery")
        if isinstance(subquery, Node):
            return self._masked_outputs(subquery, levels, unrestricted=unrestricted)
        if name := entry.text("ctename"):
            outer_levels = levels[entry.number("ctelevelsup") :]
            if outer_levels and name in outer_levels[0].ctes:
                return self._masked_of_cte(name, outer_levels, unrestricted=unrestricted)
            return frozenset()
        oid = entry.number("relid")
        if not oid or oid == own_view:  # up to 15 a view lists itself, as what it was and as what it will be
            return frozenset()
        if unrestricted:
            relation = self._allowed.any_relation(oid)
        else:
            relation = self._allowed.relation(oid)
        if relation.tree is None:
            return relation.masked
        view_is_unrestricted = unrestricted or relation.is_vouched
        if (oid, view_is_unrestricted) not in self._views:
            if not view_is_unrestricted:
                self._allowed.check_functions(relation.tree)
            view_tree = read_tree(relation.tree)
            first = None
            if type(view_tree) is list and view_tree:
                first = view_tree[0]
            if not isinstance(first, Node):
                raise ValueError("a view without a tree")
            self._views[oid, view_is_unrestricted] = self._masked_outputs(
                first, (), unrestricted=view_is_unrestricted, own_view=oid
            )
        return self._views[oid, view_is_unrestricted] | relation.masked

    @staticmethod
    def _merge_set_operation(level: _QueryLevel) -> None:
        """Of queries that are put together, a column is masked that is so in one of them."""
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

    def _refuse_masked(self, value: Value, levels: tuple[_QueryLevel, ...], *, unrestricted: bool) -> None:
        """Look through what is more than an output."""
        if type(value) is list:
            for item in value:
                self._refuse_masked(item, levels, unrestricted=unrestricted)
        elif isinstance(value, Node):
            if value.kind == "VAR":
                if name := self._masked_name(value, levels):
                    raise _refuse_use(name)
            elif value.kind == "SUBLINK":
                self._refuse_masked(value.fields.get("testexpr"), levels, unrestricted=unrestricted)
                inner = value.fields.get("subselect")
                if isinstance(inner, Node):
                    masked = self._masked_outputs(inner, levels, unrestricted=unrestricted)
                else:
                    masked = frozenset[int]()
                if masked and value.text("subLinkType") != _EXISTS:
                    raise ForbiddenReference("A masked column is used as a value, by a subquery.", _MASKED_COLUMN_FIX)
            elif value.kind == "QUERY":
                if self._masked_outputs(value, levels, unrestricted=unrestricted):
                    raise ForbiddenReference("A masked column is used as a value.", _MASKED_COLUMN_FIX)
            else:
                for name, inner in value.fields.items():
                    if name not in _UNUSED_FIELDS:
                        self._refuse_masked(inner, levels, unrestricted=unrestricted)

    def _masked_name(self, variable: Node, levels: Sequence[_QueryLevel]) -> str:
        """Return what a column is called, if it is masked; a whole row has all its columns."""
        outer_levels = levels[variable.number("varlevelsup") :]
        number = variable.number("varno")
        column = variable.number("varattno")
        if not outer_levels or not 1 <= number <= len(outer_levels[0].sources):
            raise ValueError("a column of nothing")
        entry = outer_levels[0].sources[number - 1]
        if "joinaliasvars" in entry.fields:
            aliases = entry.fields["joinaliasvars"]
            if type(aliases) is list:
                items = aliases
            else:
                items = []
            if column == 0:
                chosen = items
            else:
                chosen = items[column - 1 : column]
            return next(
                (
                    name
                    for item in chosen
                    for one in _find_variables(item)
                    if (name := self._masked_name(one, outer_levels))
                ),
                "",
            )
        if (masked := outer_levels[0].masked.get(number)) is None:
            raise ValueError("a column of what stands behind it")
        if column not in masked and not (column == 0 and masked):
            return ""
        alias = entry.fields.get("eref")
        names = None
        if isinstance(alias, Node):
            names = alias.fields.get("colnames")
        shown_column = column or min(masked)
        quoted_name = None
        if type(names) is list and len(names) >= shown_column:
            quoted_name = names[shown_column - 1]
        if isinstance(quoted_name, str):
            column_name = re.sub(r"\\(.)", r"\1", quoted_name[1:-1])
        else:
            column_name = str(shown_column)
        return f"{outer_levels[0].names.get(number, '')}.{column_name}"


_MASKED_COLUMN_FIX = "It can only be selected, as it stands: without conditions, expressions, joins or orders by it."


def _refuse_use(name: str) -> ForbiddenReference:
    return ForbiddenReference(
        f"The column `{name[:200]}` is masked, and is used for more than to be shown.", _MASKED_COLUMN_FIX
    )


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
    if set_operation.kind != "SETOPERATIONSTMT":
        return True
    return (set_operation.text("op"), set_operation.text("all")) == (_UNION, "true") and all(
        _is_union_all(side) for name in ("larg", "rarg") if isinstance(side := set_operation.fields.get(name), Node)
    )
