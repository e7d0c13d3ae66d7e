"""What the tests of mcp-weather share."""

from collections.abc import Iterator

import pytest

from weather.upstream import Upstream


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    """A fresh one; every request it was sent must have been valid."""
    with Upstream() as found:
        yield found
        assert found.violations == []
