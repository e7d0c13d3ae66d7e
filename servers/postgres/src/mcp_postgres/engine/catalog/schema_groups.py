"""Shows schemas that are alike, such as one for each tenant, as one: the tables of the first stand for all."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

__all__ = ["FoldedSchemas", "fold_alike_schemas"]

# Fewer schemas that are alike are listed each by itself.
_MIN_ALIKE = 3


class FoldedSchemas(NamedTuple):
    """Schemas as a list shows them.

    Attributes:
        schemas: each once; one that stands for others has their names, and its own, as `alike`.
        hidden_names: schemas for which another one stands.
    """

    schemas: list[dict[str, Any]]
    hidden_names: list[str]


def fold_alike_schemas(schemas: Sequence[Mapping[str, Any]]) -> FoldedSchemas:
    """Return schemas so that of those with equal tables, columns and functions one stands for all."""
    by_shape: dict[str, list[Mapping[str, Any]]] = {}
    for schema in sorted(schemas, key=_natural_order):
        if schema["shape"]:
            by_shape.setdefault(schema["shape"], []).append(schema)
    representatives: dict[str, list[Mapping[str, Any]]] = {}
    hidden_names: list[str] = []
    for group in by_shape.values():
        if len(group) >= _MIN_ALIKE:
            representatives[group[0]["name"]] = group
            hidden_names += [schema["name"] for schema in group[1:]]
    visible_schemas: list[dict[str, Any]] = []
    for schema in schemas:
        if schema["name"] in representatives:
            visible_schemas.append(_combine(representatives[schema["name"]]))
        elif schema["name"] not in hidden_names:
            visible_schemas.append({**schema, "alike": None})
    return FoldedSchemas(visible_schemas, hidden_names)


def _natural_order(schema: Mapping[str, Any]) -> list[tuple[int, str]]:
    """Return what sorts `tenant_2` before `tenant_10`."""
    return [(int(part) if part.isdigit() else 0, part) for part in re.split(r"([0-9]+)", schema["name"])]


def _combine(group: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the first schema of a group, with the sizes of all."""
    return {
        **group[0],
        "alike": [schema["spelled"] for schema in group],
        "bytes": sum(schema["bytes"] for schema in group),
        "locked": sum(schema["locked"] for schema in group),
    }
