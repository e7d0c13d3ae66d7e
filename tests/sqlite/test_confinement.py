"""What a worker reaches, and that what is served stays within reach."""

import os
import shutil
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from mcp_batteries.errors import Problem
from mcp_batteries.processes.landlock import OLDEST_ABI, landlock_abi
from mcp_batteries.scratch import Scratch
from mcp_sqlite.engine.workers.launcher import WorkerLauncher
from mcp_sqlite.engine.workers.pool import WorkerPool
from mcp_sqlite.engine.workers.process import Worker, raise_for_error
from sqlite.serving import make, run, served, text_of

pytestmark = [
    pytest.mark.skipif(landlock_abi() < OLDEST_ABI, reason="no Landlock here"),
    pytest.mark.anyio,
]

COUNT = {"sql": "SELECT count(*) FROM t"}


@asynccontextmanager
async def worker_for(*databases: Path) -> AsyncGenerator[Worker]:
    worker = await Worker.start(WorkerLauncher([str(path) for path in databases], Scratch("mcp-sqlite")))
    try:
        yield worker
    finally:
        await worker.kill()


async def count_rows(worker: Worker, path: Path) -> str:
    request = {"do": "query", "path": str(path), **COUNT, "limit": 9, "max_bytes": 999, "max_cell": 99, "seconds": 20}
    worker.send(request)
    frame = await worker.receive(20)
    assert frame is not None
    return raise_for_error(frame)["lines"]


async def test_a_worker_opens_the_served_database_and_no_other(tmp_path: Path) -> None:
    for name in ("served", "private"):
        (tmp_path / name).mkdir()
        make(tmp_path / name / "app.db")
    async with worker_for(tmp_path / "served" / "app.db") as worker:
        assert await count_rows(worker, tmp_path / "served" / "app.db") == "[3]\n"
        for path in (tmp_path / "private" / "app.db", Path("/etc/passwd"), Path(__file__)):
            with pytest.raises(Problem):
                await count_rows(worker, path)
        assert await count_rows(worker, tmp_path / "served" / "app.db") == "[3]\n"


async def test_a_folder_that_was_replaced_is_reached_again(tmp_path: Path) -> None:
    folder = tmp_path / "served"
    folder.mkdir()
    path = make(folder / "app.db")
    async with served("--write", path) as wire:
        assert "[3]" in text_of(await wire.call("query_rows", **COUNT))
        for rows in (4, 5):
            shutil.copytree(folder, tmp_path / "next")
            run(tmp_path / "next" / "app.db", "INSERT INTO t (name) VALUES ('more')")
            shutil.rmtree(folder)
            os.rename(tmp_path / "next", folder)
            assert f"[{rows}]" in text_of(await wire.call("query_rows", **COUNT))
        assert "1 row" in text_of(await wire.call("write_rows", sql="DELETE FROM t WHERE id = 2"))


@pytest.mark.parametrize("link", ["file", "folder"])
async def test_a_link_that_leads_elsewhere_is_followed(link: str, tmp_path: Path) -> None:
    for number, name in enumerate(("one", "two")):
        (tmp_path / name).mkdir()
        make(tmp_path / name / "app.db", "wal")
        run(tmp_path / name / "app.db", "INSERT INTO t (name) VALUES ('more');" * number)
    current = tmp_path / "current"
    path = current / "app.db" if link == "folder" else current

    def lead_to(name: str) -> None:
        target = tmp_path / name if link == "folder" else tmp_path / name / "app.db"
        (tmp_path / "new").symlink_to(target)
        os.replace(tmp_path / "new", current)

    lead_to("one")
    async with served("--write", path) as wire:
        assert "[3]" in text_of(await wire.call("query_rows", **COUNT))
        lead_to("two")
        assert "1 row" in text_of(await wire.call("write_rows", sql="INSERT INTO t (name) VALUES ('mine')"))
        assert "[5]" in text_of(await wire.call("query_rows", **COUNT))
    with closing(sqlite3.connect(tmp_path / "one" / "app.db")) as one:
        assert one.execute(COUNT["sql"]).fetchone() == (3,)


async def test_what_does_not_fit_into_memory_has_a_place(tmp_path: Path) -> None:
    path = make(tmp_path / "app.db")
    words = "SELECT hex(zeroblob(700)) || value AS word FROM n"
    numbers = "WITH RECURSIVE n (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < 60000)"
    async with served(path) as wire:
        sql = f"{numbers} SELECT max(place) FROM (SELECT row_number() OVER (ORDER BY word) AS place FROM ({words}))"
        assert "[60000]" in text_of(await wire.call("query_rows", sql=sql))


async def test_a_worker_knows_no_variables_of_the_operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPERATORS_TOKEN", "secret")
    async with worker_for(make(tmp_path / "app.db")) as worker:
        process = worker._transport.get_pid()  # pyright: ignore[reportPrivateUsage]
        environment = Path(f"/proc/{process}/environ").read_text("utf-8")
    assert "secret" not in environment and "SQLITE_TMPDIR=" in environment


async def test_a_call_asks_for_the_folders_of_its_own_databases(tmp_path: Path) -> None:
    paths: list[Path] = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        paths.append(make(tmp_path / name / f"{name}.db"))
    launcher = WorkerLauncher([str(path) for path in paths], Scratch("mcp-sqlite"))
    pool = WorkerPool(launcher, seconds=20, max_workers=1)

    async def count(path: Path) -> str:
        request = {"do": "query", "path": str(path), **COUNT, "limit": 9, "max_bytes": 999, "max_cell": 99}
        return (await pool.call(request))["lines"]

    async with pool.running():
        assert await count(paths[0]) == "[3]\n"
        workers = {*pool._idle}  # pyright: ignore[reportPrivateUsage]
        shutil.copytree(tmp_path / "two", tmp_path / "next")
        shutil.rmtree(tmp_path / "two")
        os.rename(tmp_path / "next", tmp_path / "two")
        assert await count(paths[0]) == "[3]\n"
        assert workers <= {*pool._idle}  # pyright: ignore[reportPrivateUsage]
        assert await count(paths[1]) == "[3]\n"
        assert not workers <= {*pool._idle}  # pyright: ignore[reportPrivateUsage]


async def test_local_time_is_that_of_the_operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    path = make(tmp_path / "app.db")
    async with served(path) as wire:
        sql = "SELECT time('2026-01-01 00:00:00', 'localtime')"
        assert "05:45:00" in text_of(await wire.call("query_rows", sql=sql))
