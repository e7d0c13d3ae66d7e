"""How values are written into hosts' files."""

from __future__ import annotations

import json
import re
from typing import Any, cast

__all__ = ["spell", "spell_json"]

_SEPARATORS = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


def spell(value: Any) -> str:
    """Write a value on one line, in the one form that JSON, TOML 1.0 (no objects) and YAML 1.2 share."""
    # TOML takes no half of a pair as a number, YAML no such control character and some of them for ends of lines.
    text = json.dumps(value, ensure_ascii=False)
    return _SEPARATORS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def spell_json(value: Any, unit: str = "  ", depth: int = 0) -> str:
    """Write JSON with lists of strings on one line, where they read like a command."""
    inner = unit * (depth + 1)
    outer = unit * depth
    if isinstance(value, dict) and value:
        pairs = cast("dict[str, Any]", value).items()
        lines = [f"{inner}{spell(key)}: {spell_json(item, unit, depth + 1)}" for key, item in pairs]
        return "{\n" + ",\n".join(lines) + f"\n{outer}}}"
    if isinstance(value, list) and any(isinstance(item, dict) for item in cast("list[Any]", value)):
        lines = [inner + spell_json(item, unit, depth + 1) for item in cast("list[Any]", value)]
        return "[\n" + ",\n".join(lines) + f"\n{outer}]"
    return spell(value)
