"""`config://settings`: the settings that a server really uses, to find out why it behaves as it does."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from mcp_types import TextResourceContents

from mcp_batteries.server.declare import resource
from mcp_batteries.settings import SETTINGS_URI, Secret, Settings, masked

__all__ = ["OwnSettings"]

_JSON = "application/json"


@dataclass(frozen=True)
class OwnSettings:
    """The one resource of this room.

    Args:
        parts: the server's settings, then those of each server that is mounted in the same process.
    """

    parts: Sequence[Settings]

    @resource(SETTINGS_URI, name="settings", title="Settings of this server", mime_type=_JSON, last=True)
    async def read_settings(self) -> TextResourceContents:
        """Each setting with its value and where that came from; secrets are masked."""
        first, *mounted = map(_in_use, self.parts)
        # The settings that a mounted server got from its process are above.
        own = [
            {name: told for name, told in each.items() if first.get(name, {}).get("value") != told["value"]}
            for each in mounted
        ]
        blocks = [_block(part, told) for part, told in zip(self.parts, [first, *own], strict=True)]
        return TextResourceContents(uri=SETTINGS_URI, mime_type=_JSON, text="{" + ",\n".join(blocks) + "}\n")


def _block(settings: Settings, told: dict[str, dict[str, Any]]) -> str:
    """JSON with a line for each setting."""
    lines = (f'"{name}":{json.dumps(value, ensure_ascii=False)}' for name, value in told.items())
    return f'"{settings.COMMAND}":{{\n' + ",\n".join(lines) + "\n}"


def _in_use(settings: Settings) -> dict[str, dict[str, Any]]:
    """The settings that matter to a running server."""
    found: dict[str, dict[str, Any]] = {}
    for name, field in type(settings).model_fields.items():
        if name not in settings.GROUPS["Instead of serving"]:
            value = getattr(settings, name)
            secret = next((x for x in field.metadata if isinstance(x, Secret)), None)
            origin = settings.origins.get(name, "default" if value == field.default else "program")
            found[name] = {"value": _shown(value, hidden=secret is not None and not secret.url), "from": origin}
    return found


def _shown(value: Any, *, hidden: bool) -> Any:
    if isinstance(value, tuple):
        return [_shown(item, hidden=hidden) for item in cast("tuple[Any, ...]", value)]
    return ("***" if hidden and value else masked(value)) if isinstance(value, str) else value
