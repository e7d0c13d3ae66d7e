"""`config://settings`: the settings that a server really uses, to find out why it behaves as it does."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from mcp_types import TextResourceContents

from mcp_batteries.server.declaration.decorators import resource
from mcp_batteries.settings import SETTINGS_URI, Secret, Settings, mask_passwords

__all__ = ["SettingsResource"]

_JSON = "application/json"


@dataclass(frozen=True)
class SettingsResource:
    """The one resource of this room.

    Args:
        parts: the server's settings, then those of each server that is mounted in the same process.
    """

    parts: Sequence[Settings]

    @resource(SETTINGS_URI, name="settings", title="Settings of this server", mime_type=_JSON, last=True)
    async def read_settings(self) -> TextResourceContents:
        """Each setting with its value and where that came from; secrets are masked."""
        process_settings, *mounted = self.parts
        process_entries = _entries(process_settings)
        blocks = [_format_block(process_settings, process_entries)]
        for settings in mounted:
            # The settings that a mounted server got from its process are above.
            entries = {
                name: entry
                for name, entry in _entries(settings).items()
                if not _is_same(entry, process_entries.get(name))
            }
            blocks.append(_format_block(settings, entries))
        return TextResourceContents(uri=SETTINGS_URI, mime_type=_JSON, text="{" + ",\n".join(blocks) + "}\n")


def _is_same(entry: dict[str, Any], process_entry: dict[str, Any] | None) -> bool:
    return (process_entry or {}).get("value") == entry["value"]


def _format_block(settings: Settings, entries: dict[str, dict[str, Any]]) -> str:
    """Return JSON with a line for each setting."""
    lines = (f'"{name}":{json.dumps(entry, ensure_ascii=False)}' for name, entry in entries.items())
    return f'"{settings.COMMAND}":{{\n' + ",\n".join(lines) + "\n}"


def _entries(settings: Settings) -> dict[str, dict[str, Any]]:
    """Return value and origin of the settings that matter to a running server."""
    entries: dict[str, dict[str, Any]] = {}
    for name, field in type(settings).model_fields.items():
        if name in settings.GROUPS["Instead of serving"]:
            continue
        value = getattr(settings, name)
        default_origin = "default" if value == field.default else "program"
        is_hidden = any(isinstance(mark, Secret) and not mark.url for mark in field.metadata)
        entries[name] = {
            "value": _mask(value, hidden=is_hidden),
            "from": settings.origins.get(name, default_origin),
        }
    return entries


def _mask(value: Any, *, hidden: bool) -> Any:
    if isinstance(value, tuple):
        return [_mask(item, hidden=hidden) for item in cast("tuple[Any, ...]", value)]
    if not isinstance(value, str):
        return value
    if hidden and value:
        return "***"
    return mask_passwords(value)
