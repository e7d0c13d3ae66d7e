"""A little of `fuzz.py` over a whole server, and that its judge finds what it is there for."""

import sys
from pathlib import Path
from typing import Any

import pytest

from contract.cases import CASES, SECRET
from e2e.fuzz import Finding, Judge, fuzz

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads what a process holds under /proc")


@pytest.mark.slow
@pytest.mark.anyio
async def test_messages_made_by_chance_find_nothing() -> None:
    assert await fuzz("mcp_fs", 2, seed=1) == []


@pytest.mark.parametrize(
    "said",
    [
        {"id": 1, "result": {}},
        {"jsonrpc": "2.0", "id": 1},
        {"jsonrpc": "2.0", "id": 1, "result": {}, "error": {"code": 1, "message": ""}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "Internal error"}},
        {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "It failed inside the server."}]}},
        {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": f"here: {SECRET}"}]}},
        "words",
    ],
)
def test_what_no_server_may_say_is_found(said: Any, tmp_path: Path) -> None:
    judge = Judge(CASES["mcp_fs"](tmp_path))
    judge.message({"jsonrpc": "2.0", "id": 1, "result": {}})
    known = {"kind": "unavailable", "retry_after_s": 1}
    judge.message({"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "Try later.", "data": known}})
    with pytest.raises(Finding):
        judge.message(said)
    judge.said = lambda: 'INFO x\nTraceback (most recent call last):\n  File "x"'
    with pytest.raises(Finding):
        judge.log()
