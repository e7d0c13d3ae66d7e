"""Statements without end: stopped in time, cancelled at once, in nobody's way, and gone when the server is."""

import contextlib
import json
import os
import signal
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from e2e.serving import TRANSPORTS, connected_process
from mcp_batteries.errors import Unavailable
from mcp_batteries.scratch import Scratch
from mcp_batteries.testing.wire import MODERN, StdioWire, WireError
from mcp_sqlite.engine.workers.launcher import WorkerLauncher
from mcp_sqlite.engine.workers.pool import WorkerPool
from sqlite.serving import make, run, served_process, text_of
from sqlite.statements import FOREVER

ONE_OPCODE = "SELECT instr(hex(zeroblob(4000000)), hex(zeroblob(2000000)) || '1')"
"""Not interruptible: one call of a function that takes minutes."""


def workers(wire: StdioWire) -> set[int]:
    """Processes below the server's."""
    found: set[int] = set()
    for task in Path(f"/proc/{wire.process.pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError):  # a thread that has just ended
            found.update(int(word) for word in (task / "children").read_text().split())
    return found


def busy(pid: int) -> bool:
    """Whether a thread of the process is running on a processor, by its state (proc(5)); a worker has two."""
    try:
        states = [(task / "stat").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return False
    return any(state.rpartition(")")[2].split()[0] == "R" for state in states)


def cpu_ticks(pid: int) -> int:
    """How long a process has run on a processor: fields 14 and 15 of proc(5), in hundredths of a second."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0
    user, system = stat.rpartition(")")[2].split()[11:13]
    return int(user) + int(system)


async def until(condition) -> None:
    with anyio.fail_after(30):
        while not condition():
            await anyio.lowlevel.checkpoint()


needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes through /proc")


@pytest.mark.slow
@pytest.mark.share(1)
@pytest.mark.diagonal
@pytest.mark.anyio
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("sql", [FOREVER, ONE_OPCODE], ids=["loop", "opcode"])
async def test_the_limit_answers(sql: str, transport: str, tmp_path: Path) -> None:
    path = make(tmp_path / "app.db")
    async with connected_process(transport, MODERN, "mcp_sqlite", ["--timeout", "1", str(path)]) as wire:
        result = await wire.call("query_rows", sql=sql)
        assert result["isError"] and "limit" in text_of(result)
        assert "[1 row]" in text_of(await wire.call("query_rows", sql="SELECT 1"))


@pytest.mark.share(1)
@pytest.mark.anyio
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_others_are_served_meanwhile(transport: str, tmp_path: Path) -> None:
    path = make(tmp_path / "app.db")
    async with connected_process(transport, "2025-11-25", "mcp_sqlite", ["--timeout", "600", str(path)]) as wire:
        endless = [
            await wire.begin("tools/call", {"name": "query_rows", "arguments": {"sql": sql}})
            for sql in (FOREVER, ONE_OPCODE, FOREVER)
        ]
        for _ in range(5):
            assert "[1 row]" in text_of(await wire.call("query_rows", sql="SELECT 1"))
            await wire.request("ping")
        assert not any(message.get("id") in endless for message in wire.messages)
        for number in endless:
            await wire.notify("notifications/cancelled", {"requestId": number})


@pytest.mark.slow
@pytest.mark.anyio
async def test_waiting_for_a_worker_is_a_part_of_the_limit(tmp_path: Path) -> None:
    async with served_process("--timeout", 1, "--workers", 1, make(tmp_path / "app.db")) as wire:
        call = {"name": "query_rows", "arguments": {"sql": ONE_OPCODE}}
        lines = [json.dumps(wire.message("tools/call", call)) + "\n" for _ in range(3)]
        await wire.send_raw("".join(lines).encode())
        said = [text_of((await wire.next_message(lambda message: "result" in message))["result"]) for _ in lines]
        assert sum("workers were busy" in text and "Try again, fewer at once." in text for text in said) == 2, said
        assert sum("did not stop" in text and "Ask for less." in text for text in said) == 1, said
        assert "[1 row]" in text_of(await wire.call("query_rows", sql="SELECT 1"))


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_lock_held_longer_than_the_limit_is_called_a_lock(tmp_path: Path) -> None:
    path = make(tmp_path / "app.db")
    async with served_process("--timeout", 1, "--write", "--files", tmp_path, path) as wire:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            for tool, arguments in (
                ("query_rows", {"sql": "SELECT * FROM t"}), ("list_tables", {}), ("get_table", {"table": "t"}),
                ("write_rows", {"sql": "DELETE FROM t"}), ("copy_to_file", {"sql": "SELECT * FROM t", "file": "x.csv"}),
            ):  # fmt: skip
                result = await wire.call(tool, **arguments)
                assert result["isError"] and "locked by another program" in text_of(result), tool
                assert "Try again in a moment." in text_of(result), tool
            with pytest.raises(WireError, match="locked by another program"):
                await wire.request("resources/read", {"uri": "sqlite://app/t"})
            other.execute("ROLLBACK")
        assert "3 rows" in text_of(await wire.call("write_rows", sql="UPDATE t SET name = 'x'"))
        assert not (tmp_path / "x.csv").exists()


@pytest.mark.share(1)
@needs_proc
@pytest.mark.anyio
@pytest.mark.parametrize("sql", [FOREVER, ONE_OPCODE], ids=["loop", "opcode"])
async def test_a_cancel_stops_the_engine(sql: str, tmp_path: Path) -> None:
    async with served_process("--timeout", 600, make(tmp_path / "app.db"), revision="2025-11-25") as wire:
        await wire.call("query_rows", sql="SELECT 1")
        number = await wire.begin("tools/call", {"name": "query_rows", "arguments": {"sql": sql}})
        await until(lambda: any(busy(pid) for pid in workers(wire)))
        await wire.notify("notifications/cancelled", {"requestId": number})
        await until(lambda: not any(busy(pid) for pid in workers(wire)))
        assert "[1 row]" in text_of(await wire.call("query_rows", sql="SELECT 1"))


@pytest.mark.share(1)
@needs_proc
@pytest.mark.anyio
@pytest.mark.parametrize("end", ["eof", "term", "kill"])
async def test_nothing_is_left_running(end: str, tmp_path: Path) -> None:
    async with served_process("--timeout", 600, make(tmp_path / "app.db")) as wire:
        await wire.begin("tools/call", {"name": "query_rows", "arguments": {"sql": ONE_OPCODE}})
        await wire.begin("tools/call", {"name": "query_rows", "arguments": {"sql": FOREVER}})
        await until(lambda: sum(busy(pid) for pid in workers(wire)) >= 1)
        left = workers(wire)
        assert left
        if end == "eof":
            # Calls in flight are waited for at the end of input; a host then ends the process.
            await wire.close_stdin()
            wire.process.send_signal(signal.SIGTERM)
        else:
            wire.process.send_signal(signal.SIGTERM if end == "term" else signal.SIGKILL)
        await wire.wait()
        await until(lambda: not any(busy(pid) for pid in left))


@needs_proc
@pytest.mark.anyio
async def test_a_worker_that_dies_is_replaced(tmp_path: Path) -> None:
    async with served_process(make(tmp_path / "app.db")) as wire:
        for _ in range(3):
            assert "[1 row]" in text_of(await wire.call("query_rows", sql="SELECT 1"))
            for pid in workers(wire):
                os.kill(pid, signal.SIGKILL)
            assert "[1 row]" in text_of(await wire.call("query_rows", sql="SELECT 1"))


@needs_proc
@pytest.mark.anyio
async def test_whether_a_change_was_made_is_seen_when_its_worker_died(tmp_path: Path) -> None:
    async with served_process("--write", make(tmp_path / "app.db")) as wire:
        await wire.call("query_rows", sql="SELECT 1")
        call = {"name": "write_rows", "arguments": {"sql": f"UPDATE t SET name = ({FOREVER})"}}
        ticks = {pid: cpu_ticks(pid) for pid in workers(wire)}
        number = await wire.begin("tools/call", call)
        # A worker that has only just ended the last statement runs for a moment too.
        await until(lambda: any(cpu_ticks(pid) - ticks.get(pid, 0) > 50 for pid in workers(wire)))
        for pid in workers(wire):
            os.kill(pid, signal.SIGKILL)
        answer = await wire.next_message(lambda message: message.get("id") == number)
        assert "Whether it was done is not known: look before you try again." in text_of(answer["result"])
        assert '["a"]' in text_of(await wire.call("query_rows", sql="SELECT name FROM t"))
        assert "3 rows" in text_of(await wire.call("write_rows", sql="UPDATE t SET name = 'x'"))


@pytest.mark.anyio
async def test_a_worker_that_did_not_start_may_another_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make(tmp_path / "app.db")
    pool = WorkerPool(WorkerLauncher([str(path)], Scratch("mcp-sqlite")), seconds=20, max_workers=1)
    bounds = {"limit": 9, "max_bytes": 999, "max_cell": 99}
    request = {"do": "query", "path": str(path), "sql": "SELECT 1", "parameters": None, **bounds}
    with monkeypatch.context() as broken:
        broken.setattr(WorkerLauncher, "command", lambda launcher: [sys.executable, "-c", ""])
        async with pool.running():
            with pytest.raises(Unavailable, match=r"did not start\. Try again; "):
                await pool.call(request)
            broken.undo()
            assert (await pool.call(request))["lines"] == "[1]\n"


@pytest.mark.slow
@needs_proc
@pytest.mark.anyio
async def test_a_burst_of_calls_finds_the_processes_of_the_last_one(tmp_path: Path) -> None:
    async with served_process("--workers", "4", make(tmp_path / "app.db")) as wire:

        async def burst() -> set[int]:
            async with anyio.create_task_group() as calls:
                for _ in range(12):
                    calls.start_soon(lambda: wire.call("query_rows", sql="SELECT count(*) FROM t"))
            return workers(wire)

        first = await burst()
        while len(first) < 4:  # a process is only started for a call that finds none
            first |= await burst()
        for _ in range(3):
            assert await burst() <= first


AGAIN = "SELECT count(*) FROM big a"


@pytest.mark.slow
@pytest.mark.share(1)
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("sql", "words"),
    [
        (f"{AGAIN} WHERE EXISTS (SELECT 1 FROM big b WHERE b.y = a.x + 0.5)", "a subquery reads all of `b`"),
        (f"{AGAIN} JOIN big b ON lower(a.y) = lower(b.y || 'x')", "all of `b` is read: compare columns"),
        (FOREVER, "Ask for less"),
    ],
)
async def test_the_limit_tells_what_is_read_again_and_again(sql: str, words: str, tmp_path: Path) -> None:
    path = make(tmp_path / "a.db")
    numbers = "WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM c LIMIT 20000)"
    run(path, f"CREATE TABLE big (x, y); {numbers} INSERT INTO big SELECT x, x FROM c")
    async with served_process("--timeout", "1", path) as wire:
        result = await wire.call("query_rows", sql=sql)
        assert result.get("isError") and words in text_of(result), text_of(result)
        # What comes behind it in the same call has time left.
        said = text_of(await wire.call("query_rows", sql=f"{sql}; SELECT 'behind'"))
        assert "1 of 2: failed" in said and words in said and '["behind"]' in said, said
