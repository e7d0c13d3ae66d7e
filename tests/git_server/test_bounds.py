"""What a call takes of memory and of an answer has a bound."""

import re
import sys
import threading
from pathlib import Path

import pytest

from git_server.made import Made
from git_server.serving import serving
from mcp_batteries.concurrency.cancellation import CancelToken, WorkCancelled
from mcp_git.engine.program.output import split_records
from mcp_git.engine.program.running_git import GitSlots

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="nothing bounds the memory of a process there"),
]


async def test_a_list_of_many_files_comes_in_pages(tmp_path: Path) -> None:
    made = Made(tmp_path / "app")
    made.commit("many", {f"d{number % 7}/{number:04}.txt": "" for number in range(2300)})
    names: list[str] = []
    cursor = None
    async with serving(made.path) as asking:
        while True:
            answer = await asking("read_diff", rev="HEAD", files_only=True, cursor=cursor)
            assert len(answer) < 40_000 and "2,300 files, +0 -0" in answer.partition("\n")[0]
            names += re.findall(r"\d{4}\.txt", answer)
            if "cursor=" not in answer.partition("\n")[0]:
                break
            cursor = answer.partition('cursor="')[2].partition('"')[0]
    assert len(names) == len(set(names)) == 2300


@pytest.mark.slow
async def test_a_file_that_takes_too_much_memory_is_told(tmp_path: Path) -> None:
    """Four hundred bytes of data on disk for each megabyte in memory."""
    made = Made(tmp_path / "app")
    row = b"line of a text file that is very much larger than any text file that a person writes\n"
    for number in range(2):
        with open(made.path / "big.txt", "wb") as file:
            for _ in range(60):
                file.write(row * 40_000)
            file.write(b"%d\n" % number)
        made.commit(f"{number}")
    async with serving(made.path) as asking:
        assert "binary big.txt" in await asking("read_diff", rev="HEAD")
        answer = await asking("get_blame", path="big.txt", end_line=3)
        assert answer.startswith("failed: This takes git more than the 1 GB of memory"), answer


def test_so_many_gits_run_at_a_time_and_one_inside_of_another_waits_for_none() -> None:
    slots = GitSlots(1)
    has_waited: list[bool] = []
    is_held = threading.Event()

    def wait() -> None:
        cancel = CancelToken()
        cancel.set()
        try:
            with slots.hold(cancel):
                pass
        except WorkCancelled:
            has_waited.append(True)
        is_held.set()

    with slots.hold(CancelToken()), slots.hold(CancelToken()):
        threading.Thread(target=wait).start()
        assert is_held.wait(10)
    assert has_waited == [True]
    with slots.hold(CancelToken()):
        pass


def test_one_git_at_a_time_may_take_much_memory() -> None:
    slots = GitSlots()
    limits: list[int] = []

    def hold() -> None:
        with slots.hold(CancelToken()) as memory_bytes, slots.hold(CancelToken()) as nested_bytes:
            limits.extend([memory_bytes, nested_bytes])

    def hold_beside() -> None:
        thread = threading.Thread(target=hold)
        thread.start()
        thread.join(10)

    with slots.hold(CancelToken()) as large:
        hold_beside()
    hold_beside()
    small = limits[0]
    assert limits == [small, small, large, large] and small < large
    # Six run at a time.
    assert large + 5 * small <= 3 * 1024**3


class Piece(bytes):
    """Counts how often pieces are copied to be joined with others."""

    additions = 0

    def __radd__(self, other: bytes) -> bytes:
        Piece.additions += 1
        return bytes(other) + bytes(self)


def test_a_long_record_is_not_copied_for_each_of_its_pieces() -> None:
    pieces = [Piece(b"x" * 10) for _ in range(500)]
    assert list(split_records([b"a\0b", *pieces, b"c\0", b"d"])) == [b"a", b"b" + b"x" * 5000 + b"c", b"d"]
    assert list(split_records([b"a\0", b"\0b\0"])) == [b"a", b"", b"b"]
    assert Piece.additions == 0


async def test_a_line_of_many_megabytes_is_read_and_searched(tmp_path: Path) -> None:
    made = Made(tmp_path / "app")
    made.commit("long", {"line.txt": b"needle " + b"a" * 60_000_000 + b"\nend\n"})
    async with serving(made.path) as asking:
        assert "lines 1-2 of 2" in await asking("read_file", path="line.txt")
        assert "1 match" in await asking("search_text", pattern="needle")
        assert "+2 -0 line.txt" in await asking("read_diff", rev="HEAD")
