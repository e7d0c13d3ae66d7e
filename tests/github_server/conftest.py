"""What the tests of mcp-github share."""

from collections.abc import Generator

import pytest

from github_server.oracle import Oracle, violations
from github_server.serving import TOKEN


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
