"""A real OAuth issuer on loopback, and somebody who logs in there with the SDK's own client."""

import json
import time
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from subprocess import PIPE
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

import anyio
import httpx2
import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.oauth2 import AuthorizationCodeResult
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

from e2e import npm

PACKAGE = "oidc-provider@9.13.3"
CALLBACK = "http://127.0.0.1:1/callback"
CLIENT = {"redirect_uris": [CALLBACK], "client_name": "tests", "token_endpoint_auth_method": "none"}


class Key:
    """A signing key, and the tokens somebody who has it could make."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.private = ec.generate_private_key(ec.SECP256R1())

    @property
    def jwk(self) -> dict[str, Any]:
        return {**json.loads(ECAlgorithm.to_jwk(self.private)), "kid": self.name, "use": "sig", "alg": "ES256"}

    def sign(self, claims: dict[str, Any], **header: Any) -> str:
        return jwt.encode(claims, self.private, "ES256", {"kid": self.name, "typ": "at+jwt", **header})


class Issuer:
    """A running issuer; `tell` changes what its person does and how it signs."""

    def __init__(self, url: str, key: Key) -> None:
        self.url, self.key = url, key

    async def tell(self, **wishes: Any) -> None:
        async with httpx2.AsyncClient(trust_env=False) as client:
            (await client.post(self.url + "/control", json=wishes)).raise_for_status()

    def claims(self, resource: str, **others: Any) -> dict[str, Any]:
        """What a good token for `resource` says, but for `others`; None leaves one out."""
        now = int(time.time())
        good = {"iss": self.url, "aud": resource, "sub": "ada", "client_id": "x", "iat": now, "exp": now + 600}
        return {name: value for name, value in {**good, "scope": "read", **others}.items() if value is not None}

    async def robot(self, resource: str, scope: str) -> str:
        """A token for a client of its own, without a person."""
        asked = {"grant_type": "client_credentials", "resource": resource, "scope": scope}
        async with httpx2.AsyncClient(trust_env=False) as client:
            answer = await client.post(self.url + "/token", data=asked, auth=("robot", "for tests only"))
        return answer.json()["access_token"]


@asynccontextmanager
async def issuing(trusted: Path | None = None) -> AsyncGenerator[Issuer]:
    """An issuer on a free port, which takes the certificate `trusted` for good."""
    key = Key("first")
    folder = await anyio.to_thread.run_sync(npm.installed, PACKAGE)
    script = Path(__file__).parent / "clients" / "issuer.mjs"
    command = [npm.NODE, str(script), str(folder), json.dumps({"keys": [key.jwk]})]
    environment = npm.environment(**({"NODE_EXTRA_CA_CERTS": str(trusted)} if trusted else {}))
    async with await anyio.open_process(command, stdin=None, stdout=PIPE, stderr=None, env=environment) as process:
        assert process.stdout is not None
        with anyio.fail_after(60):
            said = b""
            while b"\n" not in said:
                said += await process.stdout.receive()
        try:
            yield Issuer(said.decode().strip(), key)
        finally:
            process.kill()


class Person:
    """Somebody with the SDK's client: logs in whenever it is asked to, and counts how often.

    Args:
        document: where the client says of itself who it is; without it, it registers.
    """

    def __init__(self, url: str, document: str | None = None) -> None:
        self.url, self.logins, self.asked = url, 0, ""
        self.document = document
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None
        self._answer: AuthorizationCodeResult

    # What the SDK wants of a storage.
    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info

    async def login(self, where: str) -> None:
        self.logins += 1
        self.asked = parse_qs(urlsplit(where).query)["scope"][0]
        assert parse_qs(urlsplit(where).query)["code_challenge_method"] == ["S256"]
        async with httpx2.AsyncClient(trust_env=False) as browser:
            while not where.startswith(CALLBACK):
                answer = await browser.get(where)
                assert answer.is_redirect, answer.text
                where = urljoin(where, answer.headers["location"])
        said = {name: values[0] for name, values in parse_qs(urlsplit(where).query).items()}
        self._answer = AuthorizationCodeResult(code=said["code"], state=said["state"], iss=said.get("iss"))

    async def code(self) -> AuthorizationCodeResult:
        return self._answer

    def connected(self, mode: str) -> AbstractAsyncContextManager[Client]:
        """The SDK's client, connected; `mode` is `legacy` or `auto`."""
        metadata = OAuthClientMetadata.model_validate(CLIENT)
        auth = OAuthClientProvider(self.url, metadata, self, self.login, self.code, client_metadata_url=self.document)
        return connected(self.url, auth, mode)


@asynccontextmanager
async def connected(url: str, auth: OAuthClientProvider, mode: str) -> AsyncGenerator[Client]:
    """The SDK's client at `url`, with what `auth` gets it; `mode` is `legacy` or `auto`."""
    async with (
        httpx2.AsyncClient(auth=auth, timeout=30, trust_env=False) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield client
