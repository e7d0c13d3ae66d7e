"""What the tests of mcp-postgres share."""

from collections.abc import Generator
from pathlib import Path

import pytest

from markers import anyio_backend as anyio_backend
from postgres.machine import place


@pytest.fixture
def open_folder() -> Generator[Path]:
    """A folder that PostgreSQL's user can enter.

    It is none of pytest's: each new run of pytest on this machine closes the folder above those again.
    """
    with place() as folder:
        yield folder
