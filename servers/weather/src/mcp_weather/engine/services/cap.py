"""The common part of all lists of alerts: terms of the Common Alerting Protocol, in JSON that may be wrong."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, tzinfo
from typing import Any, cast

__all__ = ["NOT_ACTUAL", "local", "moment", "objects", "replaced", "words"]

NOT_ACTUAL = ("Exercise", "System", "Test", "Draft")
"""CAP 1.2, status: what is not meant for the public."""
_KEPT = 900
"""Bytes of each text of an alert."""


def objects(said: Any) -> list[dict[str, Any]]:
    """The items of a list, with an empty object for each that is something else: it may have been an alert."""
    items = cast("list[Any]", said) if isinstance(said, list) else []
    return [cast("dict[str, Any]", item) if isinstance(item, dict) else {} for item in items]


def moment(said: Any) -> datetime | None:
    try:
        at = datetime.fromisoformat(str(said))
    except ValueError:
        return None
    # The year 1 is how some say that they do not know; no zone can be applied to it.
    return at if at.tzinfo and 1900 < at.year < 9999 else None


def local(said: Any, zone: tzinfo) -> str | None:
    at = moment(said)
    return at.astimezone(zone).isoformat(timespec="minutes") if at else None


def replaced(messages: Sequence[dict[str, Any]]) -> set[str]:
    """The identifiers of those of `messages` that a later one of them updates, cancels or calls an error.

    CAP 1.2, references: of each earlier message its sender, identifier and time.
    """
    sent = {str(message.get("identifier")): moment(message.get("sent")) for message in messages}
    found: set[str] = set()
    for message in messages:
        if message.get("msgType") not in ("Update", "Cancel", "Error") or message.get("status") in NOT_ACTUAL:
            continue
        for reference in str(message.get("references") or "").split():
            name = reference.partition(",")[2].partition(",")[0]
            then, now = sent.get(name), moment(message.get("sent"))
            # Two that name each other are both still there.
            if then is not None and now is not None and then < now:
                found.add(name)
    return found


def words(said: Any) -> str | None:
    if not isinstance(said, str) or not said.strip():
        return None
    kept = said.strip().encode("utf-8", "replace")
    return kept.decode() if len(kept) <= _KEPT else kept[:_KEPT].decode("utf-8", "ignore").rstrip() + " […]"
