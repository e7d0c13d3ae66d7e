"""What the tests of mcp-github share."""

import time
from collections.abc import Awaitable, Callable, Generator
from typing import Any

import anyio
import pytest

from github_server.oracle import Oracle, violations
from github_server.serving import TOKEN
from mcp_github.client import http


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one token there is; nobody's own reaches a test."""
    for name in ("GH_TOKEN", "GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)


@pytest.fixture
def oracle() -> Generator[Oracle]:
    with Oracle() as oracle:
        yield oracle
        assert oracle.violations == []
        assert [complaint for complaint in violations if oracle.url in complaint] == []


class _AnyioWithSleep:
    """The library anyio, which loads most of its names when they are asked for, with another `sleep`."""

    def __init__(self, sleep: Callable[[float], Awaitable[None]]) -> None:
        self.sleep = sleep

    def __getattr__(self, name: str) -> Any:
        return getattr(anyio, name)


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that the client would have waited: it goes on at once, later on its clock."""
    found: list[float] = []

    async def sleep(seconds: float) -> None:
        found.append(seconds)
        clock[0] += seconds

    clock = [time.time()]
    # Only the client's own: a call that tells of its progress sleeps meanwhile.
    monkeypatch.setattr(http, "anyio", _AnyioWithSleep(sleep))
    monkeypatch.setattr(time, "time", lambda: clock[0])
    return found
