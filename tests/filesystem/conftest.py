"""A search as a fixture, by our own engine and with ripgrep."""

from __future__ import annotations

from pathlib import Path

import pytest

from filesystem.reading import Grep, flat, served
from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_fs.engine.search import file_list, ripgrep
from mcp_fs.engine.search.query import Query
from mcp_fs.engine.search.text_search import search_text

RIPGREP = ripgrep.find_ripgrep()


@pytest.fixture(params=["own", "ripgrep"])
def program(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str | None:
    """None for our own engine alone; else ripgrep, asked from the first file on."""
    if request.param == "own":
        return None
    if RIPGREP is None:
        pytest.skip("ripgrep is not installed")
    monkeypatch.setattr(file_list, "_FILES_BEFORE_RIPGREP", 0)
    return RIPGREP


@pytest.fixture
def grep(tmp_path: Path, program: str | None) -> Grep:
    """The lines of an answer, without the first one."""

    def run(pattern: str, path: str = ".", **query: object) -> list[str]:
        answer = search_text([served(tmp_path).readable(path)], Query(pattern, **query), None, CancelToken(), program)  # type: ignore[arg-type]
        assert answer.cursor is None
        return flat(answer.text())

    return run
