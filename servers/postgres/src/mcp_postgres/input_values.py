"""JSON values as PostgreSQL reads them."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any, cast

from mcp_batteries.errors import Invalid
from mcp_batteries.sql.policy import is_complete_text

__all__ = ["encode_array", "encode_json", "encode_record", "encode_value"]


def encode_value(value: Any, label: str) -> str | None:
    """Return a JSON value as PostgreSQL reads it; PostgreSQL decides its type by its place.

    Args:
        label: its purpose, for the error message.

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
        case str():
            return _check_text(value, label)
        case dict():
            return _encode_object(cast("dict[str, Any]", value), label)
        case list():
            return encode_array(cast("list[Any]", value), label)
        case _:
            raise _not_bindable(label)


def _not_bindable(label: str) -> Invalid:
    return Invalid(
        f"The value for {label} can't be bound.",
        'A value is text, a number, true, false, null, an array, an object for json, or {"base64": "..."} for bytes.',
    )


def _check_text(value: str, label: str) -> str:
    """Return a text that PostgreSQL can hold."""
    if is_complete_text(value):
        return value
    raise Invalid(
        f"The value for {label} holds a NUL character or half of a character, which PostgreSQL's text can't.",
        'Send bytes as {"base64": "..."}.',
    )


def _encode_object(value: dict[str, Any], label: str) -> str:
    """Return an object as JSON, or the bytes that it stands for."""
    encoded = value.get("base64")
    if len(value) > 1 or not isinstance(encoded, str):
        return encode_json(value)
    try:
        return "\\x" + base64.b64decode(encoded, validate=True).hex()
    except ValueError:
        raise _not_bindable(label) from None


def encode_json(value: Any) -> str:
    """Return a JSON value as PostgreSQL reads it: numbers with all digits, and lone surrogates as escapes."""
    match value:
        case dict():
            fields = cast("dict[str, Any]", value).items()
            return "{" + ", ".join(f"{encode_json(name)}: {encode_json(item)}" for name, item in fields) + "}"
        case list():
            return "[" + ", ".join(map(encode_json, cast("list[Any]", value))) + "]"
        case float():
            return repr(value)
        case str() if not is_complete_text(value):
            return json.dumps(value)
        case _:
            return json.dumps(value, ensure_ascii=False)


def encode_array(values: list[Any], label: str) -> str:
    """Return a JSON array as PostgreSQL writes an array."""
    parts: list[str] = []
    for value in values:
        if isinstance(value, list):
            parts.append(encode_array(cast("list[Any]", value), label))
        else:
            text = encode_value(value, label)
            parts.append("NULL" if text is None else _quote_element(text))
    return "{" + ",".join(parts) + "}"


def encode_record(values: Sequence[Any], label: str) -> str:
    """Return JSON values as PostgreSQL writes a row of them."""
    texts = [encode_value(value, label) for value in values]
    return "(" + ",".join("" if text is None else _quote_element(text) for text in texts) + ")"


def _quote_element(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
