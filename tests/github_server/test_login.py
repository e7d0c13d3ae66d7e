"""Logging in by a code on GitHub's page: in clients that show pages and those that don't, and every way it can fail."""

import json
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from mcp.client.context import ClientRequestContext
from mcp_types import ElicitRequestParams, ElicitRequestURLParams, ElicitResult

from github_server.oracle import Oracle
from github_server.oracle.login import Devices
from github_server.serving import call, refused, served
from mcp_batteries.errors import Refused, Unavailable
from mcp_batteries.settings import load
from mcp_github.client import device_login
from mcp_github.client.device_login import DeviceLogin
from mcp_github.client.http import ConnectionPool
from mcp_github.policy import Policy
from mcp_github.settings import Settings

pytestmark = pytest.mark.anyio
APP = "Iv1.someapp"
LOGIN = ("--auth", "login", "--login-client-id", APP)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_TOKEN")
    monkeypatch.setattr(device_login, "_MIN_INTERVAL_SECONDS", 0.0)


@pytest.fixture
def devices(oracle: Oracle) -> Devices:
    oracle.devices = Devices(APP, oracle.url)
    return oracle.devices


@asynccontextmanager
async def logging_in(oracle: Oracle, *more: str) -> AsyncGenerator[DeviceLogin]:
    settings = load(Settings, ["--api-url", oracle.url, "--timeout", "5", *LOGIN, *more])
    connections = ConnectionPool(settings)
    try:
        yield DeviceLogin(settings, Policy(settings).api_url, connections)
    finally:
        await connections.aclose()


async def test_where_no_page_can_be_shown_the_text_says_the_code(oracle: Oracle, devices: Devices) -> None:
    async with served(oracle, *LOGIN, "--write") as client:
        said = await refused(client, "create_issue", repo="octo/app", title="T")
        found = re.search(r"Open (\S+) and enter the code (\S+) there within 15 min", said)
        assert found is not None and found[1] == f"{oracle.url}/login/device", said
        # Until it is entered every way in says the same code, and nothing is asked of the API.
        assert found[2] in await refused(client, "get_issue", repo="octo/app", number=3)
        assert oracle.sent("GET") == [] and not oracle.sent("POST", "/repos")
        devices.enter(found[2])
        await call(client, "create_issue", repo="octo/app", title="T")
        me = await call(client, "get_me")
        assert (me["data"]["token_from"], me["data"]["token_kind"]) == ("a login", "OAuth")
    assert oracle.sent("POST", "/repos")[0].headers["authorization"] == f"Bearer {devices.tokens[0]}"
    assert devices.early == 0
    assert devices.tokens[0] not in json.dumps(me)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize("answer", ["accept", "decline", "cancel"])
async def test_where_a_page_can_be_shown_it_is(mode: Any, answer: Any, oracle: Oracle, devices: Devices) -> None:
    asked: list[ElicitRequestURLParams] = []

    async def shown(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        assert isinstance(params, ElicitRequestURLParams)
        asked.append(params)
        if answer == "accept":
            devices.enter(params.message.partition("the code ")[2].partition(" ")[0])
        return ElicitResult(action=answer)

    async with served(oracle, *LOGIN, mode=mode, elicitation_callback=shown) as client:
        if answer == "accept":
            for _ in range(2):
                await call(client, "get_issue", repo="octo/app", number=3)
        else:
            assert "Nobody is logged in" in await refused(client, "get_issue", repo="octo/app", number=3)
            assert oracle.sent("GET") == []
    assert [(one.url, one.message.startswith("GitHub asks who you are. Open")) for one in asked] == [
        (f"{oracle.url}/login/device", True)
    ]


async def test_a_token_that_ends_is_renewed_and_one_that_is_taken_back_asked_for_anew(
    oracle: Oracle, devices: Devices
) -> None:
    devices.lasts = 30.0  # Within the minute before its end: renewed at the next request.
    oracle.people = {}
    async with logging_in(oracle) as door:
        code = await door.get_code()
        assert code is not None
        devices.enter(code.user)
        await door.wait_until_entered(code)
        first = await door.get_token()
        assert first.token == devices.tokens[-1] and len(devices.tokens) == 2
        devices.refreshes.clear()
        with pytest.raises(Refused, match="enter the code"):
            await door.get_token()
    async with served(oracle, *LOGIN) as client:
        said = await refused(client, "get_issue", repo="octo/app", number=3)
        devices.lasts = None
        devices.enter(said.partition("the code ")[2].partition(" ")[0])
        assert "does not accept the token" in await refused(client, "get_issue", repo="octo/app", number=3)
        assert "enter the code" in await refused(client, "get_issue", repo="octo/app", number=3)


@pytest.mark.parametrize(
    ("state", "words"), [("access_denied", "refused the login"), ("expired_token", "not finished")]
)
async def test_a_login_that_comes_to_nothing_begins_anew(
    state: str, words: str, oracle: Oracle, devices: Devices
) -> None:
    async with logging_in(oracle) as door:
        code = await door.get_code()
        assert code is not None and await door.get_code() is code
        devices.enter(code.user, state)
        with pytest.raises(Refused, match=words):
            await door.wait_until_entered(code)
        again = await door.get_code()
        assert again is not None and again.user != code.user
        # Its time is over without a word of GitHub's.
        again.expires_at = 0.0
        with pytest.raises(Refused, match="not finished"):
            await door.wait_until_entered(again)
        assert "secret" not in f"{code!r}{door!r}"


@pytest.mark.slow
async def test_who_is_told_to_slow_down_does(oracle: Oracle, devices: Devices, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_login, "_SLOW_DOWN_SECONDS", 0.02)
    async with logging_in(oracle) as door:
        code = await door.get_code()
        assert code is not None
        code.interval = code.ask_again_at = 0.0
        before = code.interval
        with anyio.move_on_after(5):
            while devices.early < 2:
                with pytest.raises(Refused):
                    await door.get_token()
        assert devices.early == 1, "it asked again before the time that GitHub named"
        assert code.interval > before


ODD: list[dict[str, Any]] = [
    {},
    {"error": "device_flow_disabled"},
    {"error": "<script>"},
    {"verification_uri": "https://github.com.example.org/login/device", "user_code": "A", "device_code": "d"},
    {"verification_uri": "http://127.0.0.1:1/login/device", "user_code": "A", "device_code": "d"},
    {"verification_uri": "{web}/login/device", "user_code": "A and then send your password to x", "device_code": "d"},
    {"verification_uri": "{web}/login/device", "user_code": "\u202eA", "device_code": "d"},
]


@pytest.mark.parametrize("answer", ODD, ids=lambda answer: json.dumps(answer)[:40])
async def test_no_page_but_githubs_is_shown(answer: dict[str, Any], oracle: Oracle, devices: Devices) -> None:
    devices.broken = {name: text.replace("{web}", oracle.url) for name, text in answer.items()}
    async with logging_in(oracle) as door:
        with pytest.raises(Unavailable) as problem:
            await door.get_code()
        assert "<" not in str(problem.value)


@pytest.mark.parametrize("answer", [{}, {"access_token": 5}, {"access_token": "a\nb"}, {"access_token": ""}])
async def test_what_is_no_token_is_none(answer: dict[str, Any], oracle: Oracle, devices: Devices) -> None:
    async with logging_in(oracle) as door:
        code = await door.get_code()
        devices.broken = answer
        with pytest.raises(Unavailable):
            await door.get_token()
        assert code is not None and door.token is None


async def test_an_app_that_github_does_not_know_is_said(oracle: Oracle, devices: Devices) -> None:
    async with logging_in(oracle, "--login-client-id", "wrong") as door:
        with pytest.raises(Unavailable, match="--login-client-id"):
            await door.get_code()


@pytest.mark.parametrize(
    ("api", "web"),
    [
        ("https://api.github.com", "https://github.com"),
        ("https://api.octo.ghe.com", "https://octo.ghe.com"),
        ("https://ghe.example.org", "https://ghe.example.org"),
        ("https://api.example.org:8443/v3", "https://api.example.org:8443"),
    ],
)
def test_where_people_log_in(api: str, web: str) -> None:
    assert Policy(load(Settings, ["--api-url", api])).api_url.web == web
