"""What all tests share."""

import os
import sys
from pathlib import Path

import pytest

# The programs of the development group (ripgrep, uv ...), whichever way pytest was started.
os.environ["PATH"] = str(Path(sys.executable).parent) + os.pathsep + os.environ.get("PATH", "")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"
