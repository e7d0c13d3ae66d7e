"""Bearer tokens of a small team: a file of names, hashes and scopes, reloaded when it changes.

One token per line, `#` begins a comment:

    alice sha256:9f86d081884c7d65... read write role=analyst
    ci    sha256:60303ae22b998861... search.read until=2027-01-31

A token is 256 random bits, so that one round of SHA-256 protects it as well as any slow hash.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import re
import secrets
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from mcp.server.auth.provider import AccessToken

from mcp_batteries.errors import Invalid, Unavailable, quote, reason
from mcp_batteries.settings import open_text
from mcp_batteries.subscriptions.file_watcher import follow_file

__all__ = ["Tokens", "new_token"]

PREFIX = "mcpb_"
"""So that scanners for secrets know one when they see it."""
_LINE = re.compile(r"([\w.@+-]{1,100})\s+sha256:([0-9a-f]{64})((?:\s+\S+)*)\s*")
_UNTIL = "until="
_ROLE = "role="

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Entry:
    name: str
    digest: bytes
    scopes: tuple[str, ...]
    role: str | None
    expires_at: int | None


def new_token(wanted: str) -> tuple[str, str]:
    """A new token, and the line that admits it.

    Args:
        wanted: a name, perhaps followed by scopes, `role=NAME` and `until=DATE`; the scope is `read` if none is given.

    Raises:
        Invalid: `wanted` does not make a valid line.
    """
    token = PREFIX + secrets.token_urlsafe(32)
    name, *rest = wanted.split() or [""]
    if all(item.startswith((_UNTIL, _ROLE)) for item in rest):
        rest = ["read", *rest]
    line = " ".join([name, f"sha256:{_digest(token).hex()}", *rest])
    _entry(line)
    return token, line


class Tokens:
    """The tokens of `path` and of `lines`; a verifier in the SDK's sense.

    Args:
        path: a file of lines as in this module's head. An invalid line or a missing file admits nobody: the log says
            so, and the other lines still count.
        lines: more of them, separated by newlines or semicolons, for the environment.

    Raises:
        Invalid: one of `lines` cannot be read.
        Unavailable: the file cannot be read.
    """

    def __init__(self, path: str | None, lines: str | None = None) -> None:
        self._path = os.path.abspath(path) if path else None
        self._given = [_entry(line) for line in re.split(r"[;\n]", lines or "") if line.strip()]
        self._entries: list[_Entry] = []
        try:
            self._load()
        except OSError as problem:
            raise Unavailable(
                f"The file of tokens cannot be read: {reason(problem)}.",
                "Make one with --new-token NAME, and name it with --auth-file.",
            ) from None

    async def verify_token(self, token: str) -> AccessToken | None:
        """The access that `token` gives; None if it is unknown or has expired."""
        digest = _digest(token)
        found = None
        for entry in self._entries:  # All of them, whichever it is: the time taken tells nothing.
            if hmac.compare_digest(entry.digest, digest):
                found = entry
        if found is None or (found.expires_at is not None and found.expires_at <= datetime.now(UTC).timestamp()):
            return None
        return AccessToken(
            token=token,
            client_id=found.name,
            scopes=list(found.scopes),
            expires_at=found.expires_at,
            subject=found.name,
            claims=None if found.role is None else {"role": found.role},
        )

    async def follow(self, changed: Callable[[], Awaitable[None]]) -> None:
        """Reload the file whenever it changes, then await `changed`; until cancelled."""
        if self._path is None:
            return

        async def reread() -> None:
            try:
                self._load()
            except OSError as problem:
                self._entries = list(self._given)
                _log.error("the file of tokens cannot be read, so it lets nobody in: %s", reason(problem))
            await changed()

        await follow_file(self._path, reread)

    def _load(self) -> None:
        entries = list(self._given)
        if self._path is not None:
            with open_text(self._path, errors="replace") as file:
                entries += _read(file)
        self._entries = entries


def _read(lines: Iterable[str]) -> list[_Entry]:
    entries: list[_Entry] = []
    for number, text in enumerate(lines, 1):
        line = text.partition("#")[0].strip()
        try:
            if line:
                entries.append(_entry(line))
        except Invalid:
            # Not its words: somebody may have put the token itself there.
            _log.error("line %d of the file of tokens lets nobody in: it cannot be read", number)
    return entries


def _entry(line: str) -> _Entry:
    found = _LINE.fullmatch(line.strip())
    if found is None:
        raise Invalid("A line of tokens is `NAME sha256:HEX SCOPE...`.", "--new-token NAME prints one.")
    words = found[3].split()
    until = [word.removeprefix(_UNTIL) for word in words if word.startswith(_UNTIL)]
    roles = [word.removeprefix(_ROLE) for word in words if word.startswith(_ROLE)]
    if len(roles) > 1 or "" in roles:
        raise Invalid("A line of tokens names one role at most.", "Write role=NAME once.")
    try:
        # Its last day counts in full, in the time zone that is last to end it.
        ends = [date.fromisoformat(word) + timedelta(days=1, hours=12) for word in until]
    except ValueError:
        raise Invalid(f"{quote(until[0])} is not a date.", "Write until=2027-01-31.") from None
    midnight = [datetime.combine(day, datetime.min.time(), UTC) for day in ends]
    expires_at = min((int(moment.timestamp()) for moment in midnight), default=None)
    scopes = tuple(word for word in words if not word.startswith((_UNTIL, _ROLE)))
    return _Entry(found[1], bytes.fromhex(found[2]), scopes, roles[0] if roles else None, expires_at)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
