"""Access tokens of an OAuth issuer: JWTs (RFC 9068), checked with the keys that the issuer publishes.

A person logs in only at the issuer; this module only reads the resulting token. A token is valid if a current key of
this issuer signed it with a listed algorithm, for this server, and it has not expired.
"""

from __future__ import annotations

import ipaddress
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit

import anyio
import httpx2
import jwt
from mcp.server.auth.provider import AccessToken
from pydantic_core import from_json

from mcp_batteries.errors import Invalid, Unavailable, quote
from mcp_batteries.remote.http_client import open_http_client

__all__ = ["ALGORITHMS", "Issuer"]

# All of them are asymmetric: with a shared secret every reader of tokens could write them.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")

# RFC 9068 names the first two; many issuers write the others. Tokens for other ends have types of their own.
_TYPES = ("at+jwt", "application/at+jwt", "jwt", None)
_LEEWAY_SECONDS = 10
_FRESH_SECONDS = 600
# Keys that cannot be fetched again count for this long.
_STALE_SECONDS = 24 * 3600
# Anybody can invent a key's name, so unknown keys allow this many fetches at once, and another after this time.
_FETCHES = 3
_REFILL_SECONDS = 30
_FETCH_SECONDS = 5
# The last second of the year 9999: a later end makes no difference, and is too large a number for a clock.
_LAST_SECOND = 253_402_300_799
_MAX_BYTES = 1_000_000
_MAX_REASON_CHARACTERS = 300

_KINDS = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Key:
    """A published key, bound to one algorithm.

    A key that may be used with several algorithms is here several times.
    """

    name: Any
    key: jwt.PyJWK


class Issuer:
    """A verifier for the tokens of `url`.

    Args:
        url: the issuer as tokens name it in `iss`; https, or http on this machine.
        audience: the value that tokens must have in `aud`, usually this server's URL.
        algorithms: a part of `ALGORITHMS`.

    Raises:
        Invalid: `url` or `algorithms` cannot be used.
    """

    def __init__(self, url: str, audience: str, algorithms: Sequence[str] = ALGORITHMS) -> None:
        if not _is_safe(url):
            raise Invalid(f"{quote(url)} is not an issuer.", "Give an https URL; http only on this machine.")
        if unknown := [name for name in algorithms if name not in ALGORITHMS]:
            raise Invalid(f"{quote(unknown[0])} is not accepted.", f"There are {', '.join(ALGORITHMS)}.")
        self._url = url
        # Clients disagree whether the URL of a host ends with a slash.
        self._audiences = [audience.rstrip("/"), audience.rstrip("/") + "/"]
        self._algorithms = list(algorithms)
        self._keys: list[_Key] = []
        self._fetched_at = -float("inf")
        self._tried_at = -float("inf")
        self._allowance = float(_FETCHES)
        self._allowance_at = time.monotonic()
        self._fetching = anyio.Lock()

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the access that `token` gives, or None if it is not valid here.

        Raises:
            Unavailable: the issuer's keys could never be fetched, or the token names one that cannot be fetched now.
        """
        try:
            header = jwt.get_unverified_header(token)
            if not self._accepts(header):
                return None
            for key in await self._find_keys(header.get("kid"), header["alg"]):
                claims = self._verify(token, key)
                if claims is not None:
                    return self._build_access(token, claims)
        except (jwt.PyJWTError, ArithmeticError, RecursionError, TypeError, ValueError) as reason:
            # The library raises the others for claims and headers that are not dates, not texts or too deep.
            _log.info("a token was refused: %s", type(reason).__name__)
        return None

    def _accepts(self, header: dict[str, Any]) -> bool:
        """Tell whether a token with this header can be one for this server."""
        if header.get("alg") not in self._algorithms or header.get("crit") is not None:
            return False
        kind = header.get("typ")
        if isinstance(kind, str):
            kind = kind.lower()
        return kind in _TYPES

    def _verify(self, token: str, key: jwt.PyJWK) -> dict[str, Any] | None:
        """Return the claims of `token`, or None if `key` has not signed it."""
        try:
            return jwt.decode(
                token,
                key,
                algorithms=self._algorithms,
                audience=self._audiences,
                issuer=self._url,
                leeway=_LEEWAY_SECONDS,
                # When a token was issued says nothing of whether it holds (RFC 7519, section 4.1.6): a clock that stood
                # still while the machine slept would turn away every new one.
                options={"require": ["exp", "iat", "iss", "aud", "sub"], "verify_iat": False},
            )
        except jwt.InvalidSignatureError:
            return None

    def _build_access(self, token: str, claims: dict[str, Any]) -> AccessToken:
        scopes = _scopes(claims.get("scope")) or _scopes(claims.get("scp"))
        client = claims.get("client_id") or claims.get("azp") or claims.get("cid") or claims["sub"]
        return AccessToken(
            token=token,
            client_id=str(client),
            scopes=scopes,
            expires_at=min(int(claims["exp"]), _LAST_SECOND) + _LEEWAY_SECONDS,
            resource=self._audiences[0],
            subject=str(claims["sub"]),
            claims={**claims, "iss": self._url},
        )

    async def _find_keys(self, name: Any, algorithm: str) -> list[jwt.PyJWK]:
        """Return the keys that may have signed under `name`; fetch them again for an unknown name."""
        now = time.monotonic()
        if now - self._fetched_at > _FRESH_SECONDS and now - self._tried_at > _REFILL_SECONDS / 3:
            await self._refresh(now)
        is_unknown = name is not None and all(key.name != name for key in self._keys)
        may_fetch = is_unknown and self._may_fetch()
        if may_fetch:
            await self._refresh(now)
        if time.monotonic() - self._fetched_at > _STALE_SECONDS:
            raise Unavailable("The issuer of tokens does not answer.", "Try again later.", retry_after=5)
        if is_unknown and (not may_fetch or self._fetched_at < now):
            # The key may be new: a silent issuer, or others who invent names, keep it from being looked up.
            raise Unavailable(
                "The token's key cannot be looked up now.", "Try again later.", retry_after=self._seconds_until_fetch()
            )
        # Without a name, the token may be signed with any of them.
        return [key.key for key in self._keys if name in (None, key.name) and key.key.algorithm_name == algorithm]

    def _may_fetch(self) -> bool:
        now = time.monotonic()
        self._allowance = min(_FETCHES, self._allowance + (now - self._allowance_at) / _REFILL_SECONDS)
        self._allowance_at = now
        if self._allowance < 1:
            return False
        self._allowance -= 1
        return True

    def _seconds_until_fetch(self) -> float:
        """Return the seconds until the next allowed fetch for an unknown key."""
        return max(1.0, (1 - self._allowance) * _REFILL_SECONDS)

    async def _refresh(self, requested_at: float) -> None:
        """Fetch the keys, unless another request has done so since `requested_at`."""
        async with self._fetching:
            if self._tried_at >= requested_at:
                return
            self._tried_at = time.monotonic()
            try:
                self._keys = await self._fetch()
                self._fetched_at = time.monotonic()
            except (httpx2.HTTPError, ValueError, KeyError, TypeError, jwt.PyJWTError, TimeoutError) as problem:
                # The message names addresses and certificates; without it nobody finds out which of these is wrong.
                words = f"{type(problem).__name__} {problem}"[:_MAX_REASON_CHARACTERS]
                _log.warning("the keys of the issuer cannot be fetched: %s", ascii(words)[1:-1])

    async def _fetch(self) -> list[_Key]:
        """Return the keys that the issuer publishes."""
        with anyio.fail_after(2 * _FETCH_SECONDS):
            async with open_http_client(timeout=_FETCH_SECONDS, follow_redirects=False) as client:
                metadata = await self._metadata(client)
                url = str(metadata["jwks_uri"])
                if not _is_safe(url):
                    raise ValueError("the keys are at no https URL")
                published = await _json(client, url)
        items = published["keys"]
        if not isinstance(items, list):
            raise ValueError("the keys are no list")
        keys: list[_Key] = []
        for item in cast("list[object]", items):
            # What cannot be read must not take the other keys with it (RFC 7517, section 5).
            if isinstance(item, dict):
                keys += self._read_key(cast("dict[str, Any]", item))
        return keys

    def _read_key(self, item: dict[str, Any]) -> list[_Key]:
        """Return the published key `item`, once for each algorithm with which it may be used to sign."""
        # Some issuers write null for a member that they leave out.
        members = {name: value for name, value in item.items() if value is not None}
        if members.get("use", "sig") != "sig":
            return []
        keys: list[_Key] = []
        for algorithm in self._algorithms:
            if members.get("alg", algorithm) != algorithm or members.get("kty") != _KINDS[algorithm[:2]]:
                continue
            try:
                keys.append(_Key(members.get("kid"), jwt.PyJWK(members, algorithm)))
            except (jwt.PyJWTError, TypeError, ValueError):
                # A curve of another algorithm, or none that is known here, or no key at all: older versions of PyJWT
                # let the errors of cryptography through.
                continue
        return keys

    async def _metadata(self, client: httpx2.AsyncClient) -> dict[str, Any]:
        """Return the metadata of exactly this issuer.

        It is where RFC 8414, section 3.1, or OpenID Connect Discovery, section 4, says.
        """
        parts = urlsplit(self._url)
        host = f"{parts.scheme}://{parts.netloc}"
        path = parts.path.rstrip("/")
        problem = "no metadata of this issuer"
        for url in (
            f"{host}/.well-known/oauth-authorization-server{path}",
            f"{host}/.well-known/openid-configuration{path}",
            f"{host}{path}/.well-known/openid-configuration",
        ):
            try:
                metadata = await _json(client, url)
            except (httpx2.HTTPStatusError, ValueError):
                continue
            if metadata.get("issuer") == self._url:
                return metadata
            named = metadata.get("issuer")
            problem = f"its metadata names the issuer {named!r}, and --auth-issuer has to be the same text"
        raise ValueError(problem)


def _scopes(claim: object) -> list[str]:
    """Return the scopes in `scope` (RFC 9068, section 2.2.3) or one of its many variants.

    There are none if it is something else.
    """
    if isinstance(claim, str):
        return claim.split()
    if isinstance(claim, list):
        return [item for item in cast("list[object]", claim) if isinstance(item, str)]
    return []


async def _json(client: httpx2.AsyncClient, url: str) -> dict[str, Any]:
    """Return the JSON object at `url`."""
    async with client.stream("GET", url, headers={"accept": "application/json"}) as answer:
        answer.raise_for_status()
        if answer.status_code != 200:
            raise ValueError("a redirect")
        body = bytearray()
        async for chunk in answer.aiter_bytes():
            body += chunk
            if len(body) > _MAX_BYTES:
                raise ValueError("longer than any such document")
    document = from_json(bytes(body))
    if not isinstance(document, dict):
        raise ValueError("no object")
    return cast("dict[str, Any]", document)


def _is_safe(url: str) -> bool:
    """Tell whether `url` is https, or http on this machine."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        if parts.username or parts.query or parts.fragment or not host:
            return False
        if parts.scheme == "https":
            return True
        return parts.scheme == "http" and (host == "localhost" or ipaddress.ip_address(host).is_loopback)
    except ValueError:
        return False
