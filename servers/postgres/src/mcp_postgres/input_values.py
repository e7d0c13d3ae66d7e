"""JSON values as PostgreSQL reads them."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any, cast

from mcp_batteries.errors import Invalid
from mcp_batteries.sql.policy import is_whole

__all__ = ["as_array", "as_record", "as_text", "json_text"]


def as_text(value: Any, where: str) -> str | None:
    """A JSON value as PostgreSQL reads it; PostgreSQL decides its type by its place.

    Args:
        where: its purpose, for the error message.

    Raises:
        Invalid: it can't be bound.
    """
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return repr(value)
        case str() if is_whole(value):
            return value
        case {"base64": str() as encoded} if len(value) == 1:
            try:
                return "\\x" + base64.b64decode(encoded, validate=True).hex()
            except ValueError:
                pass
        case dict():
            return json_text(cast("Any", value))
        case list():
            return as_array(cast("list[Any]", value), where)
        case str():
            raise Invalid(
                f"The value for {where} holds a NUL character or half of a character, which PostgreSQL's text can't.",
                'Send bytes as {"base64": "..."}.',
            )
        case _:
            pass
    raise Invalid(
        f"The value for {where} can't be bound.",
        'A value is text, a number, true, false, null, an array, an object for json, or {"base64": "..."} for bytes.',
    )


def json_text(value: Any) -> str:
    """A JSON value as PostgreSQL reads it: numbers with all digits, and lone surrogates as escapes."""
    match value:
        case dict():
            fields = cast("dict[str, Any]", value).items()
            return "{" + ", ".join(f"{json_text(name)}: {json_text(item)}" for name, item in fields) + "}"
        case list():
            return "[" + ", ".join(map(json_text, cast("list[Any]", value))) + "]"
        case float():
            return repr(value)
        case str() if not is_whole(value):
            return json.dumps(value)
        case _:
            return json.dumps(value, ensure_ascii=False)


def as_array(values: list[Any], where: str) -> str:
    """A JSON array as PostgreSQL writes an array."""
    parts: list[str] = []
    for value in values:
        if isinstance(value, list):
            parts.append(as_array(cast("list[Any]", value), where))
        else:
            text = as_text(value, where)
            parts.append("NULL" if text is None else _quoted(text))
    return "{" + ",".join(parts) + "}"


def as_record(values: Sequence[Any], where: str) -> str:
    """JSON values as PostgreSQL writes a row of them."""
    texts = [as_text(value, where) for value in values]
    return "(" + ",".join("" if text is None else _quoted(text) for text in texts) + ")"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
