"""What `--check` finds without starting a server."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest
from mcp import Client

from mcp_batteries.cli import check
from mcp_batteries.program import Program, program_of
from mcp_batteries.settings import SETTINGS_URI, load
from mcp_github.settings import Settings as Github
from mcp_weather.server import build
from mcp_weather.settings import Settings as Weather
from weather.upstream import Upstream


@pytest.mark.parametrize(
    ("value", "status"),
    [
        ("github_pat_...", 1),
        (" github_pat_... ", 1),
        ("***", 1),
        ("${GITHUB_TOKEN}", 1),
        ("%GITHUB_TOKEN%", 1),
        ("${GITHUB_TOKEN:-}", 1),
        ("github_pat_0123", 0),
        ("$THE_TOKEN", 0),
        ("", 0),
    ],
)
def test_check_calls_an_unfilled_placeholder_an_error(
    value: str, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def succeed(*_: object) -> None:
        pass

    monkeypatch.setattr(check, "_try", succeed)
    monkeypatch.setenv("GITHUB_TOKEN", value)
    assert check.check(program_of("mcp_github"), load(Github, [])) == status
    output = capsys.readouterr().out
    assert ("✗ settings" in output) is bool(status)
    assert (f"GITHUB_TOKEN is still {value.strip()}: put your own value there" in output) is bool(status)


class Subscriptions:
    """A client that notes what it was asked to follow."""

    def __init__(self, *uris: str) -> None:
        self.uris = uris
        self.followed: list[str] = []

    async def list_resources(self) -> Any:
        return SimpleNamespace(resources=[SimpleNamespace(uri=uri) for uri in self.uris])

    @asynccontextmanager
    async def listen(self, *, resource_subscriptions: list[str]) -> AsyncGenerator[None]:
        self.followed += resource_subscriptions
        yield

    async def read_resource(self, uri: str) -> None:
        assert uri in self.uris


@pytest.mark.anyio
async def test_where_nothing_may_be_changed_a_subscription_is_tried() -> None:
    program = cast("Program", SimpleNamespace(demonstration=lambda settings: None))
    client = Subscriptions(SETTINGS_URI, "git://app/status", "git://app/log")
    result = await check._watch(cast("Client", client), program, load(Github, []))
    assert client.followed == ["git://app/status", "git://app/log"]
    assert result.line.startswith("follows git://app/status and 1 more; no notice tried") and not result.was_tried
    client = Subscriptions(SETTINGS_URI)
    result = await check._watch(cast("Client", client), program, load(Github, []))
    assert client.followed == [] and result.line.startswith("not tried") and not result.was_tried


@pytest.mark.anyio
async def test_the_call_of_a_check_reaches_the_weather_service() -> None:
    program = program_of("mcp_weather")
    with Upstream() as upstream:
        settings = load(Weather, [*upstream.arguments, "--cache", "memory"])
        async with Client(build(settings)) as client:
            asked = upstream.count("/v1/forecast")
            result = await check._call(client, program, settings)
            assert result.line.startswith("get_weather: ") and upstream.count("/v1/forecast") > asked
    settings = load(Weather, [*upstream.arguments, "--cache", "memory"])
    async with Client(build(settings)) as client:
        with pytest.raises(RuntimeError, match="get_weather: "):
            await check._call(client, program, settings)
