"""What a crash leaves: of another program, and of the server in the middle of a write."""

import os
import random
import sqlite3
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from sqlite.serving import die_writing, make, run, served, served_process, served_read_only, text_of
from sqlite.test_pages import parsed
from thinning import some

ROWS = '["a"]\n["b"]\n["c"]\n'
LARGE = 4000
NAMES = {"sql": "SELECT name FROM t"}


@pytest.mark.share(1)
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("query_rows", NAMES, ROWS),
        pytest.param("list_tables", {}, "- t ", marks=pytest.mark.weekly),
        pytest.param("get_table", {"table": "t"}, "table t, 3 rows", marks=pytest.mark.weekly),
        pytest.param("search_text", {"query": "word"}, "[word]", marks=pytest.mark.weekly),
        pytest.param("run_check", {}, "is whole", marks=pytest.mark.weekly),
        ("copy_database", {"file": "copy.db"}, "consistent copy"),
        ("write_rows", {"sql": "UPDATE t SET name = 'a' WHERE id = 1"}, "1 row"),
    ],
)
async def test_a_half_written_transaction_is_rolled_back_by_whoever_comes_first(
    tool: str, arguments: dict, expected: str, tmp_path: Path
) -> None:
    path = make(tmp_path / "app.db")
    die_writing(path)
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as reader, pytest.raises(sqlite3.OperationalError):
        reader.execute("SELECT * FROM t")
    modes = ["--write"] if tool == "write_rows" else []
    async with served("--files", tmp_path, *modes, path) as wire:
        said = await wire.call(tool, **arguments)
        assert not said.get("isError") and expected in text_of(said)
        assert ROWS in text_of(await wire.call("query_rows", **NAMES))
    assert not os.path.exists(f"{path}-journal")


@pytest.mark.share(1)
@pytest.mark.diagonal
@pytest.mark.anyio
@pytest.mark.parametrize("journal", ["delete", "truncate", "persist", "wal"])
@pytest.mark.parametrize("commit", [False, True], ids=["in", "behind"])
async def test_programs_may_die_while_the_server_runs(journal: str, commit: bool, tmp_path: Path) -> None:
    path = make(tmp_path / "app.db", journal)
    count = {"sql": "SELECT count(*), min(name) FROM t"}
    async with served("--write", path) as wire:
        await wire.subscribe("sqlite://app/t")
        await wire.call("write_rows", sql="UPDATE t SET name = 'mine' WHERE id = 1")
        await wire.notification("notifications/resources/updated")
        die_writing(path, commit=commit)
        assert ('[3003,"' if commit else '[3,"b"]') in text_of(await wire.call("query_rows", **count))
        run(path, "UPDATE t SET name = 'later' WHERE id = 1")
        await wire.notification("notifications/resources/updated")
        assert '"later"' in text_of(await wire.call("query_rows", sql="SELECT name FROM t WHERE id = 1"))


@pytest.mark.slow
@pytest.mark.anyio
async def test_who_may_not_write_is_told_what_to_do_and_it_works(tmp_path: Path) -> None:
    folder = tmp_path / "served"
    folder.mkdir()
    path = make(folder / "app.db")
    die_writing(path)
    async with served_read_only(folder, path) as wire:
        for tool, arguments in (("query_rows", NAMES), ("list_tables", {})):
            result = await wire.call(tool, **arguments)
            assert result["isError"] and "sqlite3 FILE .tables" in text_of(result)
            assert str(folder) not in text_of(result)
    # What `sqlite3 FILE .tables` does.
    run(path, "SELECT name FROM sqlite_master")
    async with served_read_only(folder, path) as wire:
        assert ROWS in text_of(await wire.call("query_rows", **NAMES))


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_wal_database_on_a_read_only_mount(tmp_path: Path) -> None:
    folder = tmp_path / "served"
    folder.mkdir()
    path = make(folder / "app.db", "wal")
    async with served_read_only(folder, path) as wire:
        said = text_of(await wire.call("query_rows", **NAMES))
        assert ROWS in said and "can't change" in said
        assert "can't change" in text_of(await wire.call("list_tables"))
    # Commits that only the log holds are never left out in silence.
    die_writing(path, commit=True)
    os.unlink(f"{path}-shm")
    async with served_read_only(folder, path) as wire:
        result = await wire.call("query_rows", **NAMES)
        assert result["isError"] and "wal_checkpoint(TRUNCATE)" in text_of(result)
    run(path, "PRAGMA wal_checkpoint(TRUNCATE)")
    async with served_read_only(folder, path) as wire:
        assert "[3003]" in text_of(await wire.call("query_rows", sql="SELECT count(*) FROM t"))


@pytest.mark.share(1)
@pytest.mark.skipif(sys.platform == "win32", reason="a file that is open can't be made read-only there")
@pytest.mark.anyio
@pytest.mark.parametrize("journal", ["delete", "wal"])
async def test_a_write_to_a_read_only_mount_says_what_it_is(journal: str, tmp_path: Path) -> None:
    folder = tmp_path / "served"
    folder.mkdir()
    path = make(folder / "app.db", journal)
    async with served_read_only(folder, "--write", "--ddl", path) as wire:
        for tool, sql in (("write_rows", "DELETE FROM t"), ("edit_schema", "CREATE TABLE n (x)")):
            result = await wire.call(tool, sql=sql)
            said = text_of(result)
            assert result["isError"] and "This server may not write the database" in said, said
            assert "mounted read-only" in said or "can let the server's user write" in said
            assert str(folder) not in said
        # Nothing that failed stands in the way of reading.
        assert ROWS in text_of(await wire.call("query_rows", **NAMES))


@pytest.mark.skipif(sys.platform == "win32", reason="a file that is open can't be made read-only there")
@pytest.mark.anyio
async def test_a_living_writer_is_followed_across_a_read_only_mount(tmp_path: Path) -> None:
    folder = tmp_path / "served"
    folder.mkdir()
    path = make(folder / "app.db", "wal")
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("UPDATE t SET name = 'one' WHERE id = 1")
        async with served_read_only(folder, path) as wire:
            assert '["one"]' in text_of(await wire.call("query_rows", **NAMES))
            await wire.subscribe("sqlite://app/t")
            writer.execute("UPDATE t SET name = 'two' WHERE id = 1")
            await wire.notification("notifications/resources/updated")
            assert '["two"]' in text_of(await wire.call("query_rows", **NAMES))


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.parametrize("journal", some(["delete", "wal"], "wal"))
async def test_killed_while_writing_the_database_is_whole(journal: str, tmp_path: Path) -> None:
    """Killed at any moment of a write, from its request to its answer; the next server looks at what is left.

    `MCP_TEST_KILLS` says how often for each journal mode.
    """
    path = make(tmp_path / "app.db", journal)
    run(path, "CREATE TABLE log (n INTEGER PRIMARY KEY, filler)")
    chance = random.Random(journal)
    numbers = f"WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM c LIMIT {LARGE})"
    sql = f"{numbers} INSERT INTO log SELECT ? + x * 1000000, hex(zeroblob(600)) FROM c"
    acknowledged: set[int] = set()
    ends = Counter[str]()
    number, shortest = 0, 0.0
    for _ in range(int(os.environ.get("MCP_TEST_KILLS", "4"))):
        ends["left a journal"] += os.path.exists(f"{path}-journal") or os.path.exists(f"{path}-wal")
        async with served_process("--write", path) as wire:
            assert "is whole" in text_of(await wire.call("run_check"))
            held = "SELECT n % 1000000, count(*) FROM log GROUP BY 1"
            found = dict(parsed(text_of(await wire.call("query_rows", sql=held, limit=5000, max_bytes=1_000_000)))[0])
            assert found.keys() >= acknowledged
            assert set(found.values()) <= {LARGE}, "a write is there whole or not at all"
            await wire.call("write_rows", sql="DELETE FROM log")
            number += 1
            acknowledged = {number}
            started = anyio.current_time()
            assert not (await wire.call("write_rows", sql=sql, parameters=[number])).get("isError")
            taken = anyio.current_time() - started
            shortest = min(shortest or taken, taken)
            number += 1
            await wire.begin("tools/call", {"name": "write_rows", "arguments": {"sql": sql, "parameters": [number]}})
            with anyio.move_on_after(chance.random() * shortest):
                await wire.next_message(lambda message: "id" in message)
                acknowledged.add(number)
            wire.process.kill()
            await wire.wait()
            if any("result" in message for message in wire.messages):
                acknowledged.add(number)
            ends["answered" if number in acknowledged else "killed before the answer"] += 1
    print(f"{journal}: {dict(ends)}")
    assert ends["killed before the answer"] > 0
