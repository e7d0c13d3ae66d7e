"""A few of the storms that `filesystem.storms` makes by the thousand."""

from __future__ import annotations

from pathlib import Path

import pytest

from filesystem.reading import on_linux
from filesystem.storms import HANDICAPS, missed


@pytest.mark.slow
@on_linux
@pytest.mark.anyio
async def test_the_last_state_is_told_after_the_kernels_queue_overflowed(tmp_path: Path) -> None:
    assert await missed(tmp_path, range(len(HANDICAPS))) == []
