"""Decides whether a name is one of a secret, in the spellings of environments, code, headers and settings."""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = ["is_secret_name"]

_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# The last letters of a part that say what it is, as in PGPASSWORD and authtoken; each also in the plural.
_ENDINGS = (
    "password", "passwd", "passphrase", "passcode", "pwd", "secret", "token", "credential",
    "secretkey", "authkey",
)  # fmt: skip
_KINDS_OF_KEYS = frozenset(
    (
        "api", "access", "private", "secret", "auth", "encryption", "decryption", "signing", "master", "account",
        "shared", "storage", "service", "subscription", "license", "admin", "deploy", "webhook", "hmac", "aes",
        "cipher", "crypto", "rsa", "consumer", "ingestion", "instrumentation", "app",
    )
)  # fmt: skip
# Names with these last parts say something about a secret and contain none.
_DESCRIBE = frozenset(
    (
        "file", "path", "dir", "folder", "name", "type", "kind", "count", "limit", "limits", "length", "size", "policy",
        "age", "expiry", "expires", "expiration", "ttl", "url", "uri", "endpoint", "header", "field", "column", "label",
        "title", "placeholder", "hint", "rotation", "enabled", "required", "arn", "prompt", "command", "algorithm",
        "version", "scopes", "scope", "provider", "manager", "store", "method", "mode", "scheme", "class", "format",
        "prefix", "suffix", "usage", "budget", "window", "per", "index", "position", "error", "errors", "message",
        "description", "rules", "strength", "min", "max", "reset", "change", "changed", "at", "date", "time", "second",
        "seconds", "minute", "hour", "day",
        "in",
    )
)  # fmt: skip
# After these first parts, a token is a place in a list, a piece of a text or a sign of a call.
_COUNTED = frozenset(
    (
        "progress", "page", "next", "prev", "previous", "continuation", "cancellation", "cancel", "max", "min", "num",
        "total", "prompt", "completion", "input", "output", "cached", "reasoning", "sync", "start", "end", "stop",
        "eos", "bos", "pad", "unk", "special", "n", "change", "work",
    )
)  # fmt: skip
_JOINED_KEYS = tuple(f"{kind}key" for kind in _KINDS_OF_KEYS)
_HEADERS = frozenset(("authorization", "cookie", "setcookie", "proxyauthorization"))


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Return whether a value called `name` is secret."""
    parts = [part.lower() for part in _PART.findall(name)]
    if not parts:
        return False
    if "".join(parts) in _HEADERS:
        return True
    last = parts[-1]
    if last in _DESCRIBE:
        return False
    if last == "id":
        # Vault's `secret_id` is a secret; the id of a key or a token is shown everywhere.
        return len(parts) > 1 and parts[-2] == "secret"
    if len(parts) > 1 and last == "pass":
        return True
    if last == "auth":
        return True
    return _has_secret_part(parts)


def _has_secret_part(parts: list[str]) -> bool:
    for position, part in enumerate(parts):
        singular = part.removesuffix("s")
        before = ""
        if position:
            before = parts[position - 1]
        if singular == "token":
            if before not in _COUNTED:
                return True
        elif singular.endswith(_ENDINGS) or singular.endswith(_JOINED_KEYS):
            return True
        if singular == "key" and before in _KINDS_OF_KEYS:
            return True
    return False
