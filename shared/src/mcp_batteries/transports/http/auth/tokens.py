"""Bearer tokens of a small team: a file of names, hashes and scopes, reloaded when it changes.

One token per line, `#` begins a comment:

    alice sha256:9f86d081884c7d65... read write role=analyst
    ci    sha256:60303ae22b998861... search.read until=2027-01-31

A token is 256 random bits, so that one round of SHA-256 protects it as well as any slow hash.
"""

from __future__ import annotations

import difflib
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

from mcp_batteries.errors import Invalid, Unavailable, describe_os_error, quote
from mcp_batteries.settings import open_text
from mcp_batteries.subscriptions.file_watcher import follow_file
from mcp_batteries.transports.http.auth.scopes import SCOPES, is_scope

__all__ = ["Tokens", "create_token"]

# Scanners for secrets recognise a token by it.
PREFIX = "mcpb_"
_LINE = re.compile(r"([\w.@+-]{1,100})\s+sha256:([0-9a-f]{64})((?:\s+\S+)*)\s*")
_UNTIL = "until="
_ROLE = "role="

_log = logging.getLogger(__name__)


class _UnknownScope(Invalid):
    """Raised when a line names a scope that no server has."""

    def __init__(self, scope: str, prefix: str) -> None:
        scopes = [prefix + name for name in SCOPES]
        fix = f"Use {', '.join(scopes)}, or one of a toolset, such as {prefix}search.read."
        similar = difflib.get_close_matches(scope.lower(), scopes, n=1)
        if similar:
            fix = f"Did you mean {similar[0]}?"
        super().__init__(f"{quote(scope)} is no scope.", fix)


@dataclass(frozen=True)
class _Entry:
    """A line of the file of tokens."""

    name: str
    digest: bytes
    scopes: tuple[str, ...]
    role: str | None
    expires_at: int | None

    def has_expired(self) -> bool:
        return self.expires_at is not None and self.expires_at <= datetime.now(UTC).timestamp()


def create_token(request: str, prefix: str = "") -> tuple[str, str]:
    """Return a new token, and the line that admits it.

    Args:
        request: a name, perhaps followed by scopes, `role=NAME` and `until=DATE`; the scope is `read` if none is named.
        prefix: what stands before every scope, such as `files:`.

    Raises:
        Invalid: `request` does not make a valid line.
    """
    token = PREFIX + secrets.token_urlsafe(32)
    name, *options = request.split() or [""]
    if all(option.startswith((_UNTIL, _ROLE)) for option in options):
        options = [prefix + "read", *options]
    line = " ".join([name, f"sha256:{_digest(token).hex()}", *options])
    _parse_line(line, prefix)
    return token, line


class Tokens:
    """The tokens of `path` and of `lines`; a verifier in the SDK's sense.

    Args:
        path: a file of lines as in this module's head. An invalid line or a missing file admits nobody: the log says
            so, and the other lines still count.
        lines: more of them, separated by newlines or semicolons, for the environment.
        prefix: what stands before every scope, such as `files:`.

    Raises:
        Invalid: one of `lines` cannot be read.
        Unavailable: the file cannot be read.
    """

    def __init__(self, path: str | None, lines: str | None = None, prefix: str = "") -> None:
        self._prefix = prefix
        self._path: str | None = None
        if path:
            self._path = os.path.abspath(path)
        fixed_lines = [line for line in re.split(r"[;\n]", lines or "") if line.strip()]
        self._fixed_entries = [_parse_line(line, prefix) for line in fixed_lines]
        self._entries: list[_Entry] = []
        # What the file held when it was read last; None if it could not be read.
        self._text: str | None = None
        try:
            self._load()
        except OSError as problem:
            raise Unavailable(
                f"The file of tokens cannot be read: {describe_os_error(problem)}.",
                "Make one with --new-token NAME, and name it with --auth-file.",
            ) from None

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the access that `token` gives, or None if it is unknown or has expired."""
        digest = _digest(token)
        owner: _Entry | None = None
        for entry in self._entries:  # All of them, whichever it is, so that the time tells nothing.
            if hmac.compare_digest(entry.digest, digest):
                owner = entry
        if owner is None or owner.has_expired():
            return None
        claims: dict[str, str] | None = None
        if owner.role is not None:
            claims = {"role": owner.role}
        return AccessToken(
            token=token,
            client_id=owner.name,
            scopes=list(owner.scopes),
            expires_at=owner.expires_at,
            subject=owner.name,
            claims=claims,
        )

    async def follow(self, changed: Callable[[], Awaitable[None]]) -> None:
        """Reload the file whenever it changes, then await `changed`; until cancelled."""
        if self._path is None:
            return

        async def reread() -> None:
            try:
                self._load()
            except OSError as problem:
                self._text = None
                self._entries = list(self._fixed_entries)
                _log.error("the file of tokens cannot be read, so it lets nobody in: %s", describe_os_error(problem))
            await changed()

        await follow_file(self._path, reread)

    def _load(self) -> None:
        if self._path is None:
            self._entries = list(self._fixed_entries)
            return
        with open_text(self._path, errors="replace") as file:
            text = file.read()
        # A file that may have changed is read again, and its mistakes are logged once.
        if text != self._text:
            self._entries = [*self._fixed_entries, *_parse_lines(text.split("\n"), self._prefix)]
            self._text = text


def _parse_lines(lines: Iterable[str], prefix: str) -> list[_Entry]:
    """Return the entries of `lines`, and log those that are invalid."""
    entries: list[_Entry] = []
    for number, text in enumerate(lines, 1):
        line = text.partition("#")[0].strip()
        try:
            if line:
                entries.append(_parse_line(line, prefix))
        # The line is not quoted, because somebody may have put the token itself there.
        except _UnknownScope:
            _log.error("line %d of the file of tokens lets nobody in: it names a scope that does not exist", number)
        except Invalid:
            _log.error("line %d of the file of tokens lets nobody in: it cannot be read", number)
    return entries


def _parse_line(line: str, prefix: str) -> _Entry:
    """Return the entry of one line.

    Raises:
        Invalid: The line is not of the form `NAME sha256:HEX SCOPE...`, or a scope does not exist.
    """
    match = _LINE.fullmatch(line.strip())
    if match is None:
        raise Invalid("A line of tokens is `NAME sha256:HEX SCOPE...`.", "--new-token NAME prints one.")
    name, digest, options = match.groups()
    scopes: list[str] = []
    roles: list[str] = []
    ends: list[str] = []
    for word in options.split():
        if word.startswith(_UNTIL):
            ends.append(word.removeprefix(_UNTIL))
        elif word.startswith(_ROLE):
            roles.append(word.removeprefix(_ROLE))
        elif is_scope(word, prefix):
            scopes.append(word)
        else:
            raise _UnknownScope(word, prefix)
    if len(roles) > 1 or "" in roles:
        raise Invalid("A line of tokens names one role at most.", "Write role=NAME once.")
    role = roles[0] if roles else None
    return _Entry(name, bytes.fromhex(digest), tuple(scopes), role, _earliest_end(ends))


def _earliest_end(dates: list[str]) -> int | None:
    """Return the second in which the first of `dates` ends, None without any.

    The last day counts in full, in the time zone that is last to end it.

    Raises:
        Invalid: One of them is not a date.
    """
    seconds: list[int] = []
    try:
        for text in dates:
            end = date.fromisoformat(text) + timedelta(days=1, hours=12)
            seconds.append(int(datetime.combine(end, datetime.min.time(), UTC).timestamp()))
    except ValueError:
        raise Invalid(f"{quote(dates[0])} is not a date.", "Write until=2027-01-31.") from None
    return min(seconds, default=None)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
