"""The common part of all lists of alerts: terms of the Common Alerting Protocol, in JSON that may be wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcp_weather.engine.computed.timestamps import parse_timestamp

__all__ = ["find_superseded", "is_all_clear", "is_warning", "read_text"]

# CAP 1.2, status: what is not meant for the public.
_NOT_ACTUAL = ("Exercise", "System", "Test", "Draft")
# CAP 1.2, msgType: what takes the place of earlier messages.
_SUPERSEDING = ("Update", "Cancel", "Error")
# CAP 1.2, msgType: what speaks of another message and warns of nothing itself.
_WITHOUT_WARNING = ("Cancel", "Error", "Ack")
_MAX_TEXT_BYTES = 900


def is_warning(message: dict[str, Any]) -> bool:
    """Return whether a message warns the public of something."""
    return message.get("status") not in _NOT_ACTUAL and message.get("msgType") not in _WITHOUT_WARNING


def is_all_clear(response_type: Any) -> bool:
    """Return whether all that a message tells people to do is to worry no more (CAP 1.2, responseType)."""
    return response_type in ("AllClear", ["AllClear"])


def find_superseded(messages: Sequence[dict[str, Any]]) -> set[str]:
    """Return the identifiers of those of `messages` that a later one of them updates, cancels or calls an error."""
    sent_times = {str(message.get("identifier")): parse_timestamp(message.get("sent")) for message in messages}
    superseded: set[str] = set()
    for message in messages:
        if message.get("msgType") not in _SUPERSEDING or message.get("status") in _NOT_ACTUAL:
            continue
        sent_time = parse_timestamp(message.get("sent"))
        if sent_time is None:
            continue
        for identifier in _referenced_identifiers(message):
            earlier_time = sent_times.get(identifier)
            # Two messages that name each other both stay.
            if earlier_time is not None and earlier_time < sent_time:
                superseded.add(identifier)
    return superseded


def _referenced_identifiers(message: dict[str, Any]) -> list[str]:
    """Return the identifiers in `references`, which has `sender,identifier,time` of each earlier message (CAP 1.2)."""
    references = str(message.get("references") or "").split()
    return [reference.partition(",")[2].partition(",")[0] for reference in references]


def read_text(value: Any) -> str | None:
    """Return `value` as text for people, cut if it is long; None if there is none."""
    if not isinstance(value, str) or not value.strip():
        return None
    text = value.strip().encode("utf-8", "replace")
    if len(text) <= _MAX_TEXT_BYTES:
        return text.decode()
    return text[:_MAX_TEXT_BYTES].decode("utf-8", "ignore").rstrip() + " […]"
