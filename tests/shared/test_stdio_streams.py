"""Standard input and output as the system has them: full, shared, closed, files, a terminal."""

import json
import os
import select
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from mcp_batteries.testing.wire.base import SECONDS
from shared.stdio_subject import OPENING, TOY, WAYS, call, host, line, on_posix, started, text_of, toy


def resident_bytes(pid: int) -> int:
    """The most memory the process ever had, in bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


on_linux = pytest.mark.skipif(sys.platform != "linux", reason="reads the memory figure from /proc")


@pytest.mark.slow
@pytest.mark.share(1)
@on_linux
@WAYS
def test_an_unread_stdout_holds_the_client_back_instead_of_filling_memory(way: str) -> None:
    with host("max_in_flight=256", way) as process:
        assert process.stdin and process.stdout
        before = resident_bytes(process.pid)
        unsent = b"".join(call(number, "echo", text="x" * 1000) for number in range(1, 6001))
        os.set_blocking(process.stdin.fileno(), False)
        # Once the server stops reading, the pipe stays full; a slow machine only makes the test milder.
        while unsent and select.select([], [process.stdin], [], 2)[1]:
            unsent = unsent[os.write(process.stdin.fileno(), unsent[:65536]) :]
        assert unsent
        assert resident_bytes(process.pid) - before < 32 * 1024 * 1024

        answered: Counter[int] = Counter()
        while unsent:
            answered[json.loads(process.stdout.readline())["id"]] += 1
            if select.select([], [process.stdin], [], 0)[1]:
                unsent = unsent[os.write(process.stdin.fileno(), unsent[:65536]) :]
        process.stdin.close()
        answered.update(json.loads(text)["id"] for text in process.stdout)
        assert answered == Counter(range(1, 6001))
        assert process.wait(SECONDS) == 0


@pytest.mark.slow
@pytest.mark.anyio
@on_linux
async def test_stderr_that_nobody_reads_is_not_kept() -> None:
    async with toy(read_stderr=False) as wire:
        await wire.open()
        await wire.call("shout", size=2_000_000)
        before = resident_bytes(wire.process.pid)
        for _ in range(30):
            await wire.call("shout", size=2_000_000)
        assert resident_bytes(wire.process.pid) - before < 16 * 1024 * 1024


@pytest.mark.slow
@on_linux
def test_a_line_too_long_is_not_kept() -> None:
    with host("max_line=1000000") as process:
        assert process.stdin and process.stdout
        before = resident_bytes(process.pid)
        for _ in range(64):
            process.stdin.write(b"x" * 1_000_000)
        process.stdin.write(b"\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["error"]["code"] == -32600
        assert resident_bytes(process.pid) - before < 16 * 1024 * 1024


@pytest.mark.share(1)
@on_posix
@WAYS
def test_a_cancelled_notification_is_never_torn(way: str) -> None:
    with host(way) as process:
        assert process.stdin and process.stdout
        process.stdin.write(call(1, "tell", size=3_000_000))
        process.stdin.flush()
        assert select.select([process.stdout], [], [], SECONDS)[0]  # It is being written, and nobody reads.
        process.stdin.write(line(None, "notifications/cancelled", requestId=1) + call(2, "echo", text="next"))
        process.stdin.close()
        told, answer = (json.loads(text) for text in process.stdout)
        assert (told["method"], answer["id"]) == ("notifications/progress", 2)


@on_linux
def test_a_pipe_is_made_wider_for_a_large_message_only() -> None:
    from fcntl import F_GETPIPE_SZ, fcntl

    with host() as process:
        assert process.stdin and process.stdout
        for size, least in ((60_000, 0), (3_000_000, 1 << 20)):
            before = fcntl(process.stdout, F_GETPIPE_SZ)
            process.stdin.write(call(size, "echo", text="x" * size))
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == size
            assert fcntl(process.stdout, F_GETPIPE_SZ) == max(before, least)


@pytest.mark.share(1)
@on_posix
@WAYS
def test_a_signal_does_not_tear_the_line_being_written(way: str) -> None:
    with host(way) as process:
        assert process.stdin and process.stdout
        process.stdin.write(call(1, "echo", text="x" * 3_000_000))
        process.stdin.flush()
        assert select.select([process.stdout], [], [], SECONDS)[0]
        process.terminate()
        assert [json.loads(text)["id"] for text in process.stdout] == [1]
        assert process.wait(SECONDS) == 143


@pytest.mark.slow
@pytest.mark.share(1)
@WAYS
def test_it_goes_when_nobody_reads_its_stdout(way: str) -> None:
    with host(way) as process:
        assert process.stdout
        process.stdout.close()
        assert process.wait(SECONDS) == 0


@pytest.mark.share(1)
@WAYS
def test_it_goes_when_a_write_finds_nobody(way: str) -> None:
    with host("drain_seconds=600", way) as process:
        assert process.stdin and process.stdout
        process.stdin.write(call(1, "slow", seconds=600) + call(2, "echo", text="x"))
        process.stdin.flush()
        process.stdout.close()
        process.stdin.close()
        assert process.wait(SECONDS) == 0


def test_a_file_as_input_and_as_output(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(OPENING + call(1, "echo", text="from a file"))
    with (tmp_path / "in").open("rb") as stdin, (tmp_path / "out").open("wb") as stdout:
        subprocess.run(TOY, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, timeout=SECONDS, check=True)
    answers = [json.loads(text) for text in (tmp_path / "out").read_text("utf-8").splitlines()]
    assert text_of(answers[1]["result"]) == "from a file"


@pytest.mark.share(1)
@on_posix
@pytest.mark.parametrize("redirection", ["</dev/null", "<&-", "<&- >&-", "2>&-"])
def test_missing_streams_are_the_end_of_input(redirection: str) -> None:
    command = ["sh", "-c", f'exec "$0" "$@" {redirection}', *TOY]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=False)
    assert (done.returncode, done.stdout) == (0, b"")


@on_posix
def test_a_terminal_works_and_keeps_its_flags() -> None:
    outer, inner = os.openpty()
    try:
        with started(TOY, inner, inner) as process:
            os.write(outer, OPENING)
            seen = b""
            while b'"result"' not in seen:
                assert select.select([outer], [], [], SECONDS)[0]
                seen += os.read(outer, 65536)
            assert os.get_blocking(inner)
            os.write(outer, b"\x04")  # Ctrl-D
            assert process.wait(SECONDS) == 0
    finally:
        os.close(outer)
        os.close(inner)


@on_posix
def test_the_flags_of_a_shared_pipe_come_back() -> None:
    source, sink = os.pipe()
    with os.fdopen(source, "rb") as reader, os.fdopen(sink, "wb") as ours:
        with started(TOY, subprocess.PIPE, ours.fileno()) as process:
            assert process.stdin
            process.stdin.write(OPENING)
            process.stdin.flush()
            assert json.loads(reader.readline())["id"] == 0
            assert not os.get_blocking(sink)
            process.stdin.close()
            assert process.wait(SECONDS) == 0
        assert os.get_blocking(sink)


CLAIMS = """
from mcp_batteries.transports.stdio import serve as stdio
import os, sys
before = set(sys.modules)
claim = stdio.claim()
assert not {"mcp", "anyio", "pydantic"} & set(sys.modules)
print("diverted")
try:
    stdio.claim()
except RuntimeError as error:
    print(error)
assert os.read(0, 1) == b""
claim.close()
print("back", os.read(0, 5).decode())
stdio.claim()
print("never flushed by hand")
"""


def test_a_claim_takes_the_streams_and_gives_them_back() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CLAIMS], input=b"hello", capture_output=True, timeout=SECONDS, check=True
    )
    assert done.stdout.splitlines() == [b"back hello"]
    assert done.stderr.decode().splitlines() == [
        "diverted",
        "standard input and output are claimed already",
        "never flushed by hand",
    ]
