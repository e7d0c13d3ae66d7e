from typing import Any

import pytest

from markers import backend


@pytest.fixture
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    return backend(request.node)
