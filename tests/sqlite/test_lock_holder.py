"""Who holds a lock that a call waits for: read from /proc/locks, in words for the caller."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from mcp_sqlite.engine.workers.lock_holder import find_lock_holder

pytestmark = pytest.mark.skipif(not Path("/proc/locks").exists(), reason="the system does not show locks in /proc")

HOLD_LOCK = """
import sqlite3, sys
held = sqlite3.connect(sys.argv[1], isolation_level=None)
held.execute("BEGIN IMMEDIATE")
print(flush=True)
sys.stdin.read()
"""


def make_database(path: Path, journal: str) -> str:
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"PRAGMA journal_mode = {journal}")
        database.execute("CREATE TABLE t (id INTEGER)")
        database.commit()
    return str(path)


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_a_program_that_writes_is_named_until_it_lets_go(journal: str, tmp_path: Path) -> None:
    path = make_database(tmp_path / "app.db", journal)
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        holder = find_lock_holder(path)
        assert holder is not None
        assert holder.startswith("another program, `") and holder.endswith(f"(process {os.getpid()}), which writes")
        writer.execute("ROLLBACK")
        # With a write-ahead log, an open connection still holds the file as one that reads.
        assert "writes" not in (find_lock_holder(path) or "")
    assert find_lock_holder(path) is None


def test_a_program_that_reads_is_named_where_nobody_writes(tmp_path: Path) -> None:
    path = make_database(tmp_path / "app.db", "delete")
    link = tmp_path / "link.db"
    link.symlink_to(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM t").fetchall()
        for name in (path, str(link)):
            assert (find_lock_holder(name) or "").endswith(f"(process {os.getpid()}), which reads")


def test_a_worker_of_the_server_is_another_call(tmp_path: Path) -> None:
    path = make_database(tmp_path / "app.db", "delete")
    command = [sys.executable, "-c", HOLD_LOCK, path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as worker:
        assert worker.stdout is not None and worker.stdout.readline()
        assert find_lock_holder(path) == "another call of this server"
        worker.communicate()
    assert find_lock_holder(path) is None


def test_of_a_file_that_is_not_there_nobody_holds_a_lock(tmp_path: Path) -> None:
    assert find_lock_holder(str(tmp_path / "none.db")) is None
