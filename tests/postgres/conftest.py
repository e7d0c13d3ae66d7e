"""What the tests of mcp-postgres share."""

import pytest

from markers import anyio_backend as anyio_backend
from mcp_postgres.engine.change.undo import dry_run


@pytest.fixture(autouse=True)
def way_back_is_tried_on_a_busy_machine_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not tried in time is told as it is planned, which depends on the machine."""
    monkeypatch.setattr(dry_run, "_MAX_SECONDS", 60.0)
