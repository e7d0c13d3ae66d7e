"""Compares two JSON texts by their keys, where a diff of their lines would be long."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, cast

__all__ = ["KeyDiff", "diff_json"]

_MAX_VALUE_CHARACTERS = 100


@dataclass(slots=True)
class KeyDiff:
    """What differs between two JSON texts, a line for each key; formats and the order of keys are not compared.

    Attributes:
        removed: keys only in the first, with their values.
        added: keys only in the second.
        changed: keys with other values.
    """

    removed: list[str] = field(default_factory=list[str])
    added: list[str] = field(default_factory=list[str])
    changed: list[str] = field(default_factory=list[str])

    @property
    def lines(self) -> Sequence[str]:
        return [*self.removed, *self.added, *self.changed]

    def describe(self) -> str:
        if not self.lines:
            return "the same by keys: only formats or the order of keys differ"
        return (
            f"by keys: {len(self.removed):,} only in the first (-), {len(self.added):,} only in the second (+), "
            f"{len(self.changed):,} with other values (~)"
        )


def diff_json(old_text: str, new_text: str) -> KeyDiff | None:
    """Return what differs by keys; None where one is no JSON of objects, or has a key twice."""
    try:
        old: object = json.loads(old_text, object_pairs_hook=_read_object, parse_float=Decimal)
        new: object = json.loads(new_text, object_pairs_hook=_read_object, parse_float=Decimal)
        if not _have_items(old, new):
            return None
        diff = KeyDiff()
        _compare(old, new, "", diff)
    except (ValueError, RecursionError):
        return None
    return diff


def _read_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object.

    Raises:
        ValueError: it has a key twice.
    """
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError
    return values


def _have_items(old: object, new: object) -> bool:
    """Return whether two values are both objects, or both arrays."""
    if isinstance(old, dict):
        return isinstance(new, dict)
    return isinstance(old, list) and isinstance(new, list)


def _compare(old: Any, new: Any, path: str, diff: KeyDiff) -> None:
    if _have_items(old, new):
        old_items = dict(_items(old, path))
        new_items = dict(_items(new, path))
        for inner_path, value in old_items.items():
            if inner_path in new_items:
                _compare(value, new_items[inner_path], inner_path, diff)
            else:
                diff.removed.append(f"- {inner_path}: {_format(value)}")
        for inner_path, value in new_items.items():
            if inner_path not in old_items:
                diff.added.append(f"+ {inner_path}: {_format(value)}")
    elif not _is_same(old, new):
        diff.changed.append(f"~ {path}: {_format(old)} -> {_format(new)}")


def _is_same(old: Any, new: Any) -> bool:
    if type(old) is not type(new):
        return False
    return old == new or repr(old) == repr(new)  # NaN is not equal to itself


def _items(value: dict[str, Any] | list[Any], path: str) -> Iterator[tuple[str, Any]]:
    """Yield what an object or an array holds, by its path."""
    if isinstance(value, list):
        for position, item in enumerate(value):
            yield f"{path}[{position}]", item
        return
    for key, item in value.items():
        if key.isidentifier() or key.replace("-", "_").isidentifier():
            yield f"{path}.{key}".removeprefix("."), item
        else:
            yield f"{path}[{json.dumps(key, ensure_ascii=False)}]", item


def _format(value: Any) -> str:
    text = str(value)
    if not isinstance(value, Decimal):
        text = json.dumps(cast("object", value), ensure_ascii=False, default=float)
    if len(text) <= _MAX_VALUE_CHARACTERS:
        return text
    return f"{text[:_MAX_VALUE_CHARACTERS]}... ({len(text):,} characters)"
