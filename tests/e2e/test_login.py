"""Logging in at a real OAuth issuer, and every token that must not count."""

import base64
import hashlib
import hmac
import json
import ssl
import sys
import threading
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)

from e2e.login import CLIENT, Issuer, Key, Person, connected, issuing
from mcp_batteries.errors import Unavailable
from mcp_batteries.testing.wire import MODERN, HttpWire, Wire
from mcp_batteries.transports.http.auth.issuer import Issuer as Verifier
from shared.certificates import certificate
from shared.http_subject import Subject, running
from shared.published import publishing

pytestmark = pytest.mark.anyio

CLIENT_CREDENTIALS = "io.modelcontextprotocol/oauth-client-credentials"


@pytest.fixture
async def issuer() -> AsyncGenerator[Issuer]:
    async with issuing() as started:
        yield started


@asynccontextmanager
async def served(issuer: Issuer, folder: Path, *more: str) -> AsyncGenerator[Subject]:
    (folder / "files").mkdir(exist_ok=True)
    (folder / "files" / "notes.txt").write_text("one\n", "utf-8")
    command = [sys.executable, "-m", "mcp_fs", "--transport", "http", "--port", "0", "--auth-issuer", issuer.url]
    async with running([*command, *more, str(folder / "files")]) as subject:
        yield subject


async def status(url: str, token: str) -> tuple[int, str]:
    async with httpx2.AsyncClient(trust_env=False) as client:
        answer = await client.post(url, json={}, headers={"authorization": f"Bearer {token}"})
    return answer.status_code, answer.headers.get("www-authenticate", "")


@pytest.mark.slow
@pytest.mark.share(1)
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_person_logs_in_refreshes_and_steps_up(mode: str, issuer: Issuer, tmp_path: Path) -> None:
    async with served(issuer, tmp_path) as subject:
        person = Person(subject.url)
        await issuer.tell(grant=["read"])
        async with person.connected(mode) as client:
            listed = {tool.name for tool in (await client.list_tools()).tools}
            assert "read_text" in listed
            assert "create_directory" not in listed
            assert not (await client.call_tool("read_text", {"path": "notes.txt"})).is_error
            assert person.logins == 1
            assert {"read", "write", "destroy"} <= set(person.asked.split())
            assert person.tokens is not None
            assert person.tokens.scope is not None
            assert "write" not in person.tokens.scope.split()
            # Step-up: the tool is called all the same, the person grants it this time.
            await issuer.tell(grant=["read", "write"])
            assert not (await client.call_tool("create_directory", {"path": "made"})).is_error
            assert person.logins == 2
            assert (tmp_path / "files" / "made").is_dir()
            assert "create_directory" in {tool.name for tool in (await client.list_tools()).tools}
        # What is stored serves again, without a person.
        async with person.connected(mode) as client:
            assert not (await client.call_tool("read_text", {"path": "notes.txt"})).is_error
        assert person.logins == 2
        # And so does a refresh, once the token is over.
        assert person.tokens.refresh_token
        before = person.tokens = person.tokens.model_copy(update={"access_token": "over", "expires_in": -1})
        async with person.connected(mode) as client:
            assert not (await client.call_tool("read_text", {"path": "notes.txt"})).is_error
        assert person.tokens.access_token != before.access_token


@contextmanager
def published(folder: Path, document: dict[str, Any]) -> Generator[str]:
    """The https URL of `document`, which names itself there as the client; cert.pem in `folder` vouches for it."""
    certificate(folder, "localhost")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({**document, "client_id": url}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        url = f"https://localhost:{server.server_port}/client.json"
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield url
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.slow
async def test_a_client_that_says_at_a_url_who_it_is_needs_no_registration(tmp_path: Path) -> None:
    audit = tmp_path / "audit"
    document = {**CLIENT, "grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"]}
    with published(tmp_path, document) as where:
        async with (
            issuing(trusted=tmp_path / "cert.pem") as issuer,
            served(issuer, tmp_path, "--audit-file", str(audit)) as subject,
        ):
            for mode, says in (("legacy", where), ("auto", where), ("auto", None)):
                person = Person(subject.url, says)
                async with person.connected(mode) as client:
                    assert not (await client.call_tool("read_text", {"path": "notes.txt"})).is_error
                assert person.logins == 1
                assert person.client is not None
                # Whoever says nothing registers, and is somebody else to the same issuer.
                assert (person.client.client_id == where) is (says is not None)
                assert person.tokens is not None
                claims = jwt.decode(person.tokens.access_token, options={"verify_signature": False})
                assert (claims["client_id"], claims["aud"]) == (person.client.client_id, subject.url)
            lines = [json.loads(line) for line in audit.read_text("utf-8").splitlines()]
            called = [line["identity"] for line in lines if line.get("method") == "tools/call"]
            assert called == [f"ada@{issuer.url}"] * 3


@pytest.mark.slow
@pytest.mark.share(1)
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_program_logs_in_with_credentials_of_its_own(mode: str, issuer: Issuer, tmp_path: Path) -> None:
    """SEP-1046, by the SDK's own providers: a secret, and an assertion that the program signs."""
    audit = tmp_path / "audit"
    private = issuer.key.private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    signed = SignedJWTParameters(
        issuer="signing", subject="signing", signing_key=private.decode(), signing_algorithm="ES256"
    )
    async with served(issuer, tmp_path, "--audit-file", str(audit)) as subject:
        kept = Person(subject.url)
        secret = ClientCredentialsOAuthProvider(subject.url, kept, "robot", "for tests only", issuer=issuer.url)
        async with connected(subject.url, secret, mode) as client:
            declared = client.server_capabilities.extensions
            # Handshakes have no place for extensions.
            assert declared is None if mode == "legacy" else CLIENT_CREDENTIALS in (declared or {})
            assert not (await client.call_tool("create_directory", {"path": "made"})).is_error
        kept = Person(subject.url)
        assertion = signed.create_assertion_provider()
        own = PrivateKeyJWTOAuthProvider(subject.url, kept, "signing", assertion, issuer=issuer.url)
        async with connected(subject.url, own, mode) as client:
            assert not (await client.call_tool("read_text", {"path": "notes.txt"})).is_error
    lines = [json.loads(line) for line in audit.read_text("utf-8").splitlines()]
    called = [line["identity"] for line in lines if line.get("method") == "tools/call"]
    assert called == [f"robot@{issuer.url}", f"signing@{issuer.url}"]


@pytest.mark.slow
async def test_what_the_metadata_says(issuer: Issuer, tmp_path: Path) -> None:
    async with served(issuer, tmp_path, "--read-only") as subject, httpx2.AsyncClient(trust_env=False) as client:
        challenge = (await client.post(subject.url, json={})).headers["www-authenticate"]
        where = subject.url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp")
        assert f'resource_metadata="{where}"' in challenge
        assert 'scope="read"' in challenge
        assert "error" not in challenge
        found = (await client.get(where)).json()
        assert found["resource"] == subject.url
        assert found["authorization_servers"] == [issuer.url]
        assert found["scopes_supported"] == ["read"]
        assert (await client.get(where.removesuffix("/mcp"))).json() == found


@pytest.mark.slow
async def test_tokens_that_do_not_count(issuer: Issuer, tmp_path: Path) -> None:
    async with served(issuer, tmp_path, "--auth-algorithm", "ES256") as subject:
        url, key = subject.url, issuer.key
        good = key.sign(issuer.claims(url))
        assert (await status(url, good))[0] == 400  # Let in, and then the message is none.
        head, claims, signature = good.split(".")
        public = key.private.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        forged = base64.urlsafe_b64encode(json.dumps(issuer.claims(url, scope="destroy")).encode()).decode().rstrip("=")
        confused = _hs256(issuer.claims(url), public)
        wrong = {
            "another audience": key.sign(issuer.claims("https://other.example.org/mcp")),
            "an audience that begins alike": key.sign(issuer.claims(url + "2")),
            "no audience": key.sign(issuer.claims(url, aud=None)),
            "another issuer": key.sign(issuer.claims(url, iss="https://evil.example.org")),
            "the issuer with a slash": key.sign(issuer.claims(url, iss=issuer.url + "/")),
            "over": key.sign(issuer.claims(url, exp=1_700_000_000)),
            "endless": key.sign(issuer.claims(url, exp=None)),
            "not yet": key.sign(issuer.claims(url, nbf=4_000_000_000)),
            "nobody's": key.sign(issuer.claims(url, sub=None)),
            "none": jwt.encode(issuer.claims(url), None, "none", {"kid": key.name, "typ": "at+jwt"}),
            "none without a signature": f"{_part({'alg': 'none', 'typ': 'at+jwt'})}.{claims}.",
            "the public key as a secret": confused,
            "a changed payload": f"{head}.{forged}.{signature}",
            "an unknown key": Key("stranger").sign(issuer.claims(url)),
            "another key of the same name": Key(key.name).sign(issuer.claims(url)),
            "for another purpose": key.sign(issuer.claims(url), typ="logout+jwt"),
            "with a critical header": key.sign(issuer.claims(url), crit=["exp"], exp=1),
            "junk": "a.b.c",
            "half": good[:-10],
            "long": good + "A" * 15_000,
        }
        for name, token in wrong.items():
            found, said = await status(url, token)
            assert found == 401, name
            assert 'error="invalid_token"' in said, name
        for scope in ("", "other", "openid"):
            found, said = await status(url, key.sign(issuer.claims(url, scope=scope)))
            assert found == 403
            assert 'error="insufficient_scope"' in said
            assert 'scope="read"' in said
        # As other issuers write them.
        for others in ({"scope": None, "scp": ["read"]}, {"scope": None, "scp": "read"}, {"aud": ["x", url]}):
            assert (await status(url, key.sign(issuer.claims(url, **others), typ="JWT")))[0] == 400
        assert (await status(url, await issuer.robot(url, "read")))[0] == 400
        assert (await status(url, await issuer.robot("https://other.example.org/mcp", "read")))[0] == 401
    for token in wrong.values():
        assert token not in subject.said


@pytest.mark.slow
async def test_keys_are_rotated_and_withdrawn(issuer: Issuer, tmp_path: Path) -> None:
    async with served(issuer, tmp_path) as subject:
        first, second = issuer.key, Key("second")
        assert (await status(subject.url, first.sign(issuer.claims(subject.url))))[0] == 400
        await issuer.tell(keys={"keys": [second.jwk, first.jwk]})
        for key in (second, first):
            assert (await status(subject.url, key.sign(issuer.claims(subject.url))))[0] == 400
        third = Key("third")
        await issuer.tell(keys={"keys": [third.jwk]})
        assert (await status(subject.url, third.sign(issuer.claims(subject.url))))[0] == 400
        assert (await status(subject.url, first.sign(issuer.claims(subject.url))))[0] == 401


async def test_names_of_keys_that_anybody_can_invent_are_not_asked_for_each_time() -> None:
    """Else whoever sends junk has this server call the issuer; and the good token waits for none of it."""
    key, fetched = Key("good"), list[str]()
    with publishing([key.jwk], fetched) as url:
        issuer, verifier = Issuer(url, key), Verifier(url, "https://files.example.org/mcp")
        claims = issuer.claims("https://files.example.org/mcp")
        assert await verifier.verify_token(key.sign(claims)) is not None
        found: list[object] = []

        async def ask(number: int) -> None:
            try:
                found.append(await verifier.verify_token(Key(f"stranger {number}").sign(claims)))
            except Unavailable:
                found.append(None)  # It was not looked up.

        async with anyio.create_task_group() as tasks:
            for number in range(200):
                tasks.start_soon(ask, number)
        assert found == [None] * 200
        assert fetched.count("/jwks") <= 4
    # With the issuer away too.
    assert await verifier.verify_token(key.sign(claims)) is not None


@pytest.mark.slow
async def test_sessions_and_streams_are_their_persons(issuer: Issuer, tmp_path: Path) -> None:
    """Two people of one client are two; a stream ends when its token does, and the next goes on."""
    async with served(issuer, tmp_path) as subject:
        ada, bob = (issuer.key.sign(issuer.claims(subject.url, sub=name)) for name in ("ada", "bob"))
        async with HttpWire(subject.url, headers={"authorization": f"Bearer {ada}"}) as wire:
            await wire.open()
            stolen = {**wire.headers_for({}), "authorization": f"Bearer {bob}"}
            assert (await wire.client.get(subject.url, headers=stolen)).status_code == 404
            renewed = issuer.key.sign(issuer.claims(subject.url, sub="ada", jti="another"))
            wire.headers["authorization"] = f"Bearer {renewed}"
            assert (await wire.request("tools/list"))["tools"]
        # Leeway makes it last some seconds longer.
        short = issuer.key.sign(issuer.claims(subject.url, exp=int(time.time()) - 5))
        async with HttpWire(subject.url, headers={"authorization": f"Bearer {short}"}) as wire:
            await Wire.open(wire)
            with anyio.fail_after(30):
                async with wire.client.stream("GET", wire.url, headers=wire.headers_for({})) as response:
                    assert response.status_code == 200
                    async for _ in response.aiter_bytes():
                        pass
            del wire.headers["mcp-session-id"]
        short = issuer.key.sign(issuer.claims(subject.url, exp=int(time.time()) - 7))
        async with HttpWire(subject.url, revision=MODERN, headers={"authorization": f"Bearer {short}"}) as wire:
            message = wire.message("subscriptions/listen", {"notifications": {"resourcesListChanged": True}})
            with anyio.fail_after(30):
                async with wire.client.stream(
                    "POST", wire.url, json=message, headers=wire.headers_for(message)
                ) as response:
                    async for _ in response.aiter_bytes():
                        pass
            assert (await status(subject.url, short))[0] == 401


@pytest.mark.slow
async def test_an_issuer_that_is_away_is_not_taken_for_a_refusal(tmp_path: Path) -> None:
    key = Key("any")
    (tmp_path / "files").mkdir()
    command = [sys.executable, "-m", "mcp_fs", "--transport", "http", "--port", "0"]
    async with running([*command, "--auth-issuer", "http://127.0.0.1:1", str(tmp_path / "files")]) as subject:
        claims = Issuer("http://127.0.0.1:1", key).claims(subject.url)
        assert (await status(subject.url, key.sign(claims)))[0] == 503


def _hs256(claims: dict[str, object], secret: bytes) -> str:
    signed = f"{_part({'alg': 'HS256', 'typ': 'at+jwt', 'kid': 'first'})}.{_part(claims)}"
    signature = hmac.new(secret, signed.encode(), hashlib.sha256).digest()
    return f"{signed}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


def _part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")
