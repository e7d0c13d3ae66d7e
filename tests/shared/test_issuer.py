"""Tokens of an issuer whose claims hold anything: what counts, what does not, and never a failure of the server."""

import json
import time
from collections.abc import Iterator
from typing import Any

import anyio
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jwt.algorithms import ECAlgorithm
from starlette.responses import PlainTextResponse
from starlette.types import Message

from mcp_batteries.errors import Unavailable
from mcp_batteries.transports.http.auth.guard import Guard
from mcp_batteries.transports.http.auth.issuer import Issuer
from mcp_batteries.transports.http.auth.scopes import Scopes
from shared.published import publishing

pytestmark = pytest.mark.anyio

RESOURCE = "https://files.example.org/mcp"
PRIVATE = ec.generate_private_key(ec.SECP256R1())
KEY = {**json.loads(ECAlgorithm.to_jwk(PRIVATE)), "kid": "good", "use": "sig", "alg": "ES256"}
CLAIMS = ("iss", "aud", "sub", "exp", "iat", "nbf", "jti", "scope", "scp", "client_id", "azp", "cid")
ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from([10**400, 2**63, "read", "", RESOURCE, "9" * 5000])
    | st.text(st.characters(), max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def sign(claims: object, **header: Any) -> str:
    """A token that is signed well, whatever it says: `jwt.encode` would look at the claims."""
    kept = {"kid": "good", "typ": "at+jwt", **header}
    return jwt.api_jws.encode(json.dumps(claims).encode(), PRIVATE, "ES256", kept)


def good(url: str, **others: Any) -> dict[str, Any]:
    now = int(time.time())
    return {"iss": url, "aud": RESOURCE, "sub": "ada", "iat": now, "exp": now + 600, "scope": "read", **others}


def guard_for(issuer: Issuer) -> Guard:
    return Guard([issuer], Scopes(lambda: {}), resource=RESOURCE, issuers=["https://x"], title="t")


async def status(guard: Guard, token: str, method: str = "POST") -> tuple[int, dict[str, str]]:
    """What a request with `token` is answered with; 200 is a request that was let in."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(part: Message) -> None:
        sent.append(part)

    headers = [(b"authorization", f"Bearer {token}".encode())]
    scope = {"type": "http", "method": method, "path": "/mcp", "headers": headers, "state": {}}
    await guard.protect(PlainTextResponse("in"))(scope, receive, send)
    return sent[0]["status"], {name.decode(): value.decode() for name, value in sent[0]["headers"]}


@pytest.fixture(scope="module")
def issuer() -> Iterator[tuple[str, Issuer]]:
    with publishing([KEY]) as url:
        found = Issuer(url, RESOURCE)
        assert anyio.run(found.verify_token, sign(good(url))) is not None
        yield url, found


@pytest.mark.slow
@settings(max_examples=settings.default.max_examples * 3 // 2)
@given(st.dictionaries(st.sampled_from(CLAIMS), ANYTHING, max_size=3), st.sampled_from(["GET", "POST"]))
@example({"scope": None}, "POST")
@example({"scope": 1}, "POST")
@example({"exp": 10**400}, "GET")
@example({"exp": float("inf")}, "POST")
@example({"iat": float("nan")}, "POST")
@example({"nbf": -float("inf")}, "POST")
@example({"sub": "\ud800"}, "POST")
@example({"scope": ["read", None, {"read": 1}]}, "POST")
def test_a_claim_may_hold_anything(issuer: tuple[str, Issuer], claims: dict[str, Any], method: str) -> None:
    url, verifier = issuer
    found, _ = anyio.run(status, guard_for(verifier), sign(good(url, **claims)), method)
    assert found in (200, 401, 403)
    scopes = [claims.get("scope", "read"), claims.get("scp")]
    if not any(isinstance(item, str | list) and item for item in scopes):
        assert found != 200


@pytest.mark.parametrize("scope", [None, 0, 1.5, True, {}, {"read": True}, [], [None, 7]])
def test_a_scope_that_is_none_is_no_scope(issuer: tuple[str, Issuer], scope: object) -> None:
    found, headers = anyio.run(status, guard_for(issuer[1]), sign(good(issuer[0], scope=scope)))
    assert found == 403
    assert 'error="insufficient_scope"' in headers["www-authenticate"]


@given(st.dictionaries(st.sampled_from(["kid", "typ", "cty", "crit", "b64", "jwk"]), ANYTHING, max_size=2))
@example({"typ": []})
@example({"typ": {"a": 1}})
def test_a_header_may_hold_anything(issuer: tuple[str, Issuer], header: dict[str, Any]) -> None:
    try:
        token = sign(good(issuer[0]), **header)
    except (TypeError, ValueError, jwt.PyJWTError):
        return  # Not even signed.
    found, _ = anyio.run(status, guard_for(issuer[1]), token)
    assert found in (200, 401, 503)


@pytest.mark.parametrize("part", [0, 1])
def test_a_token_that_is_nested_deeply_is_refused(issuer: tuple[str, Issuer], part: int) -> None:
    deep = jwt.utils.base64url_encode(b"[" * 11_000).decode()
    parts = sign(good(issuer[0])).split(".")
    parts[part] = deep
    assert anyio.run(status, guard_for(issuer[1]), ".".join(parts))[0] == 401


def test_a_new_key_under_a_flood_of_invented_ones_is_asked_for_again() -> None:
    """Its owner is told to come back, not that the token is wrong: a client would log in anew for nothing."""

    async def flood() -> None:
        published = [KEY]
        with publishing(published) as url:
            guard = guard_for(Issuer(url, RESOURCE))
            assert (await status(guard, sign(good(url))))[0] == 200
            found = [(await status(guard, sign(good(url), kid=f"invented {number}")))[0] for number in range(50)]
            assert set(found[:2]) == {401}
            assert found[-1] == 503
            published.append({**KEY, "kid": "new"})
            answer, headers = await status(guard, sign(good(url), kid="new"))
            assert (answer, headers.get("www-authenticate")) == (503, None)
            assert 1 <= int(headers["retry-after"]) <= 30
            assert (await status(guard, sign(good(url))))[0] == 200

    anyio.run(flood)


@pytest.mark.reported("PrefectHQ/fastmcp#4515")
@pytest.mark.reported("open-policy-agent/opa#3038")
@pytest.mark.parametrize(
    "other",
    [
        None, "RSA", [], {}, {"kty": "AKP", "alg": "ML-DSA-65"}, {"kty": "RSA", "n": 5}, {**KEY, "kid": "b", "x": "AA"},
        {"kty": "RSA", "n": 5, "e": "AQAB"}, {"kty": "RSA", "n": "AQAB", "e": "AQAB"},
        {**KEY, "kid": "b", "x": KEY["y"]},
    ],
)  # fmt: skip
async def test_a_key_that_cannot_be_read_leaves_the_others(other: Any) -> None:
    with publishing([other, KEY]) as url:
        assert await Issuer(url, RESOURCE).verify_token(sign(good(url))) is not None


@pytest.mark.parametrize("keys", [{}, {"good": KEY}, "keys", None])
async def test_what_is_no_list_of_keys_is_told_and_ends_no_token(keys: Any, caplog: pytest.LogCaptureFixture) -> None:
    with publishing(keys) as url, pytest.raises(Unavailable):
        await Issuer(url, RESOURCE).verify_token(sign(good(url)))
    assert "the keys of the issuer cannot be fetched" in caplog.text


@pytest.mark.parametrize("member", ["use", "alg"])
async def test_a_member_of_a_key_that_is_null_is_left_out(member: str) -> None:
    with publishing([{**KEY, member: None}]) as url:
        assert await Issuer(url, RESOURCE).verify_token(sign(good(url))) is not None


@pytest.mark.reported("epam/ai-dial-chat#8284")
@pytest.mark.reported("openai/codex#37373")
async def test_an_issuer_that_is_written_otherwise_is_named_as_it_writes_itself(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Nobody may be taken for the issuer who is not: but who left out the slash at its end has to find that out."""
    with publishing([KEY]) as url, pytest.raises(Unavailable):
        await Issuer(f"{url}/", RESOURCE).verify_token(sign(good(url)))
    assert f"names the issuer '{url}'" in caplog.text


@pytest.mark.reported("ministackorg/ministack#1033")
@pytest.mark.reported("lcobucci/jwt#191")
async def test_a_clock_that_is_late_turns_away_no_new_token() -> None:
    """That of WSL stands still while Windows sleeps."""
    later = int(time.time()) + 900
    with publishing([KEY]) as url:
        issuer = Issuer(url, RESOURCE)
        assert await issuer.verify_token(sign(good(url, iat=later, exp=later + 600))) is not None
        assert await issuer.verify_token(sign(good(url, iat=later, nbf=later, exp=later + 600))) is None
