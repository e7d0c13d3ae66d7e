"""What all tests share."""

import os
import sys
from pathlib import Path

import pytest

from e2e.installing import ROOT, UV, run

# The programs of the development group (ripgrep, uv ...), whichever way pytest was started.
os.environ["PATH"] = str(Path(sys.executable).parent) + os.pathsep + os.environ.get("PATH", "")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheels of every workspace member."""
    folder = tmp_path_factory.mktemp("wheels")
    run(UV, "build", "--quiet", "--all-packages", "--out-dir", folder, cwd=ROOT)
    return folder
