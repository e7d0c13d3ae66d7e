"""Opaque cursors: positions in a list that a client sends back to get the next page."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

from mcp_batteries.errors import Invalid

__all__ = ["Cursor"]


class Cursor:
    """Opaque page positions, valid for one listing with one set of arguments.

    A cursor carries its position and a digest over (kind, scope, position): a foreign or edited cursor is refused
    instead of giving a wrong page. The digest is not secret: the caller may ask for every position, and replicas of one
    server accept each other's cursors.
    """

    @classmethod
    def encode(cls, kind: str, position: Any, scope: Any = None) -> str:
        """Return the cursor for `position` (JSON) in the listing `kind` with the arguments `scope` (JSON)."""
        body = json.dumps(position, separators=(",", ":"))
        digest = cls._digest(kind, scope, body)
        return base64.urlsafe_b64encode(digest + body.encode()).decode().rstrip("=")

    @classmethod
    def decode(cls, kind: str, cursor: str, scope: Any = None) -> Any:
        """Return the position in `cursor`.

        Raises:
            Invalid: `cursor` was not made here for this listing and these arguments.
        """
        try:
            raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
            body = raw[8:].decode()
            if raw[:8] == cls._digest(kind, scope, body):
                return json.loads(body)
        except ValueError:
            pass
        raise Invalid(
            "The `cursor` was not issued for this listing with these arguments.",
            "Call again without `cursor` to start from the first page.",
        )

    @classmethod
    def _digest(cls, kind: str, scope: Any, body: str) -> bytes:
        message = json.dumps([kind, scope, body], separators=(",", ":"), sort_keys=True).encode(
            "utf-8", "surrogatepass"
        )
        return hashlib.blake2b(message, digest_size=8).digest()
