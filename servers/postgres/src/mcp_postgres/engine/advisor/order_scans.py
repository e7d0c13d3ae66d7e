"""Finds steps of a plan that walk along an index for its order only, and what these may cost more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from mcp_postgres.engine.advisor.candidates import Index

__all__ = ["OrderScan", "find_order_scans"]

Node = dict[str, Any]
# Returns the candidate that a plan calls so.
IndexOfName = Callable[[str], Index | None]

# Steps that give rows as they come, so that LIMIT ends what is below them.
_STREAMING_NODES = {
    "Append", "Gather Merge", "Group", "Hash Join", "Incremental Sort", "LockRows", "Merge Append", "Merge Join",
    "Nested Loop", "ProjectSet", "Result", "Subquery Scan", "Unique", "WindowAgg",
}  # fmt: skip


@dataclass(frozen=True)
class OrderScan:
    """A walk along an index for its order.

    Attributes:
        extra_cost: what it may cost more than the planner thinks.
    """

    extra_cost: float
    index: Index


def find_order_scans(index_of_name: IndexOfName, plan: Node) -> list[OrderScan]:
    """Return walks along a new index for its order only.

    The planner takes rows to lie anywhere, so that LIMIT soon has its rows. Often they do not: all that is still open
    is new. Without LIMIT such a walk reads the whole table row by row, which sorting hardly ever is dearer than.
    """
    scans: list[OrderScan] = []
    stack = [(plan, False)]
    while stack:
        node, is_cut_short = stack.pop()
        if not is_cut_short:
            scans += _find_whole_scan(index_of_name, node)
        if node.get("Node Type") == "Limit":
            scans += _find_limited_scan(index_of_name, node)
        for child in _children(node):
            stack.append((child, _cuts_short(node, child, is_cut_short=is_cut_short)))
    return scans


def _find_whole_scan(index_of_name: IndexOfName, node: Node) -> list[OrderScan]:
    """Return the walk of a step that reads all of a table in the order of an index."""
    index = index_of_name(str(node.get("Index Name", "")))
    if index is None or index.predicate:
        return []
    if node.get("Node Type") != "Index Scan" or "Index Cond" in node:
        return []
    return [OrderScan(node["Total Cost"], index)]


def _find_limited_scan(index_of_name: IndexOfName, limit: Node) -> list[OrderScan]:
    """Return the walk that LIMIT is thought to end early, though what is filtered may come late."""
    input_node = next(child for child in _children(limit) if child["Parent Relationship"] == "Outer")
    extra_cost = input_node["Total Cost"] - limit["Total Cost"]
    for index in _find_filtered_scans(index_of_name, input_node, is_filtered=False):
        return [OrderScan(extra_cost, index)]
    return []


def _cuts_short(node: Node, child: Node, *, is_cut_short: bool) -> bool:
    """Return whether not all rows of a step below are read."""
    kind = node.get("Node Type")
    # A merge ends with the shorter of its two lists, and is counted as cheaper than to read the longer.
    if kind == "Merge Join" and node["Total Cost"] < child["Total Cost"]:
        return True
    return kind == "Limit" or (is_cut_short and kind in _STREAMING_NODES)


def _find_filtered_scans(index_of_name: IndexOfName, node: Node, *, is_filtered: bool) -> Iterator[Index]:
    """Yield the indexes along which rows come that are filtered on their way up."""
    is_filtered = is_filtered or "Filter" in node or "Join Filter" in node
    index = index_of_name(str(node.get("Index Name", "")))
    if index is not None:
        if is_filtered and node["Node Type"] != "Bitmap Index Scan":
            yield index
        return
    if node["Node Type"] not in _STREAMING_NODES:
        return
    is_filtered = is_filtered or _has_filtered_inner(node)
    for child in _children(node):
        if child["Parent Relationship"] in ("Outer", "Member", "Subquery"):
            yield from _find_filtered_scans(index_of_name, child, is_filtered=is_filtered)


def _has_filtered_inner(node: Node) -> bool:
    return any("Filter" in child for child in _children(node) if child["Parent Relationship"] == "Inner")


def _children(node: Node) -> list[Node]:
    return node.get("Plans", [])
