"""Saved queries: tools and resources that follow their files."""

from pathlib import Path

import pytest
from mcp import Client

from mcp_batteries.settings import load
from mcp_batteries.testing.wire import MODERN, StdioWire
from mcp_sqlite.server import build
from mcp_sqlite.settings import Settings
from sqlite.serving import make, run, served, text_of

TOOLS = "notifications/tools/list_changed"
GOOD = """-- Rows with a name.
-- :name text  The name.
-- :most integer = 10  How many at most.
SELECT id FROM t WHERE name = :name LIMIT :most
"""


async def tools(wire: StdioWire) -> dict:
    return {
        tool["name"]: tool
        for tool in (await wire.request("tools/list"))["tools"]
        if tool["name"].startswith("run_") and tool["name"] != "run_script"
    }


@pytest.mark.share(1)
@pytest.mark.anyio
@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
async def test_a_query_comes_changes_and_goes_with_its_file(revision: str, tmp_path: Path) -> None:
    folder = tmp_path / "queries"
    folder.mkdir()
    (folder / "by-name.sql").write_text(GOOD, "utf-8")
    async with served("--queries", folder, make(tmp_path / "app.db"), revision=revision) as wire:
        if wire.modern:
            await wire.listen({"toolsListChanged": True})
        schema = (await tools(wire))["run_by_name"]["inputSchema"]
        assert schema["required"] == ["name"] and schema["properties"]["most"]["default"] == 10
        assert "[1 row]" in text_of(await wire.call("run_by_name", name="a"))
        assert (await wire.call("run_by_name"))["isError"]
        assert (await wire.call("run_by_name", name="a", other=1))["isError"]

        (folder / "all.sql").write_text("-- All rows.\nSELECT * FROM t", "utf-8")
        await wire.notification(TOOLS)
        assert "[3 rows]" in text_of(await wire.call("run_all"))

        (folder / "all.sql").write_text("-- All rows.\nSELEC * FROM t", "utf-8")
        await wire.notification(TOOLS)
        assert "last good version" in (await tools(wire))["run_all"]["description"]
        assert "[3 rows]" in text_of(await wire.call("run_all"))

        (folder / "all.sql").unlink()
        await wire.notification(TOOLS)
        assert set(await tools(wire)) == {"run_by_name", "run_check"}


@pytest.mark.anyio
async def test_a_query_has_no_name_of_another_tool(tmp_path: Path) -> None:
    folder = tmp_path / "queries"
    folder.mkdir()
    for name in ("script", "check"):
        (folder / f"{name}.sql").write_text(GOOD, "utf-8")
    settings = load(Settings, ["--write", "--queries", str(folder), str(make(tmp_path / "app.db"))])
    async with Client(build(settings)) as client:
        described = {tool.name: tool.description for tool in (await client.list_tools()).tools}
    for name in ("run_script", "run_check"):
        assert "Rows with a name" not in (described[name] or "")


@pytest.mark.share(1)
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("chosen", "offered"),
    [("--tools", {"run_by_name"}), ("--exclude-tools", {"run_check"})],
)
async def test_saved_queries_are_a_toolset(chosen: str, offered: set[str], tmp_path: Path) -> None:
    folder = tmp_path / "queries"
    folder.mkdir()
    (folder / "by-name.sql").write_text(GOOD, "utf-8")
    async with served(chosen, "saved_queries", "--queries", folder, make(tmp_path / "app.db")) as wire:
        assert set(await tools(wire)) == offered
        answers = [tool["name"] for tool in (await wire.request("tools/list"))["tools"]]
        assert ("query_rows" in answers) == (chosen == "--exclude-tools")


@pytest.mark.share(1, slow=6)
@pytest.mark.anyio
@pytest.mark.parametrize(
    "text",
    ["SELECT 1", "-- Deletes.\nDELETE FROM t", "-- Two.\nSELECT 1; SELECT 2", "-- Bad.\n-- :a date\nSELECT :a",
     "-- Undeclared.\nSELECT :a", "-- Twice.\n-- :a text\n-- :a text\nSELECT :a", "-- Attaches.\nATTACH 'x' AS y"],
)  # fmt: skip
async def test_a_file_that_was_never_good_is_no_tool(text: str, tmp_path: Path) -> None:
    folder = tmp_path / "queries"
    folder.mkdir()
    (folder / "bad.sql").write_text(text, "utf-8")
    async with served("--queries", folder, make(tmp_path / "app.db")) as wire:
        assert "run_bad" not in await tools(wire)


@pytest.mark.anyio
async def test_the_result_is_a_resource_that_follows_file_and_data(tmp_path: Path) -> None:
    folder, path = tmp_path / "queries", make(tmp_path / "app.db")
    folder.mkdir()
    (folder / "names.sql").write_text("-- Names.\nSELECT name FROM t", "utf-8")
    uri = "sqlite://.queries/names"
    async with served("--queries", folder, path) as wire:
        listed = (await wire.request("resources/list"))["resources"]
        assert uri in {item["uri"] for item in listed}
        await wire.subscribe(uri)
        run(path, "UPDATE t SET name = 'x' WHERE id = 1")
        await wire.updated(uri)
        assert '["x"]' in await wire.read(uri)
        (folder / "names.sql").write_text("-- Names.\nSELECT upper(name) FROM t", "utf-8")
        await wire.updated(uri)


@pytest.mark.anyio
async def test_the_next_step_is_named_once(tmp_path: Path) -> None:
    async with served(make(tmp_path / "app.db")) as wire:
        said = text_of(await wire.call("query_rows", sql="SELECT nam FROM t"))
        assert said.count("Did you mean `name`?") == 1 and "get_table" not in said, said
        for sql in ("SELECT ?", "SELECT :x"):
            said = text_of(await wire.call("query_rows", sql=sql))
            assert "as `parameters`" in said, said
        said = text_of(await wire.call("query_rows", sql="SELECT ?", parameters={"x": 1}))
        assert said.endswith("Pass an array as `parameters`: a value for every ?."), said
        for mixed in ({"a": 1}, [1], [1, 2], None):
            said = text_of(await wire.call("query_rows", sql="SELECT ?, :a", parameters=mixed))
            assert said.endswith("Write ? for each of them, or a name for each."), said


@pytest.mark.anyio
async def test_a_value_that_no_row_has_is_told_where_nothing_was_found(tmp_path: Path) -> None:
    path = make(tmp_path / "app.db")
    run(
        path,
        "CREATE TABLE jobs (id INTEGER PRIMARY KEY, state TEXT, level INTEGER, word TEXT, label TEXT COLLATE NOCASE);"
        "INSERT INTO jobs (state, level, word, label) VALUES ('open', 1, 'a1', 'Red'), ('it''s done', 2, 'a2', NULL),"
        " (NULL, 2, 'a3', 'red'), ('open', 2, 'a4', 'red'), ('open', 2, 'a5', 'red'), ('open', 2, 'a6', 'red'),"
        " ('open', 2, 'a7', 'red'), ('open', 2, 'a8', 'red'), ('open', 2, 'a9', 'red');",
    )
    note = "`jobs.state` is never 'Open', only 'open', 'it''s done', NULL"
    async with served("--write", "--ddl", path) as wire:
        for sql in (
            "SELECT id FROM jobs WHERE state = 'Open'",
            "SELECT count(*), sum(level) FROM jobs j WHERE j.state IN ('Open')",
            "SELECT 1; SELECT id FROM jobs WHERE state = 'Open'",
        ):
            answer = text_of(await wire.call("query_rows", sql=sql))
            assert answer.count(f"[{note}]") == 1, answer
        answer = text_of(await wire.call("query_rows", sql="SELECT id FROM jobs WHERE level = '3' AND state = 'open'"))
        assert "`jobs.level` is never '3', only 1, 2]" in answer and "jobs.state" not in answer, answer
        for sql in (
            "SELECT id FROM jobs WHERE state = 'open' AND level = 7 OR state = 'Open' OR id = 1",
            "SELECT id FROM jobs WHERE word = 'zz'",
            "SELECT id FROM jobs WHERE label = 'RED' AND id = 7000",
            "SELECT count(*) FROM t WHERE name = 'zz' AND state = 'x'",
        ):
            answer = text_of(await wire.call("query_rows", sql=sql))
            assert "jobs." not in answer, answer
        change = "UPDATE jobs SET state = 'closed' WHERE state = 'Open'"
        for tool, more in (("write_rows", {}), ("edit_schema", {}), ("write_rows", {"dry_run": True})):
            answer = text_of(await wire.call(tool, sql=change, **more))
            assert f"0 rows in jobs; {note}" in answer and "'closed'" not in answer, answer
        answer = text_of(
            await wire.call("write_rows", sql=f"{change} RETURNING id; DELETE FROM jobs WHERE state = 'x'")
        )
        assert answer.count(note) == 1 and "0 rows in jobs; `jobs.state` is never 'x'" in answer, answer
        script = "print(query_rows.all({sql: `SELECT id FROM jobs WHERE state = 'Open'`}).length)"
        assert f"query_rows 0 rows ({note})" in text_of(await wire.call("call_tools", script=script))
    async with served("--mask", "jobs.state", path) as wire:
        answer = text_of(await wire.call("query_rows", sql="SELECT id FROM jobs WHERE state = 'Open'"))
        assert "never" not in answer and "done" not in answer, answer
    async with served("--only", "t", path) as wire:
        answer = text_of(await wire.call("query_rows", sql="SELECT 0 FROM t WHERE name = 'jobs' AND id = 'x'"))
        assert "jobs." not in answer, answer


@pytest.mark.anyio
async def test_a_stopped_statement_says_how_much_time_a_call_has(tmp_path: Path) -> None:
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    async with served("--timeout", 1, make(tmp_path / "app.db")) as wire:
        said = text_of(await wire.call("query_rows", sql=endless))
        assert "stopped at its time limit; a call has 1 s." in said, said


@pytest.mark.anyio
async def test_an_expression_without_a_name_is_a_short_column_and_a_whole_one_in_scripts(tmp_path: Path) -> None:
    expression = f"coalesce({', '.join(['name'] * 30)})"
    sql = f"SELECT {expression}, id FROM t LIMIT 1"
    async with served(make(tmp_path / "app.db")) as wire:
        said = text_of(await wire.call("query_rows", sql=sql))
        assert said.split("\n")[1] == f'["{expression[:63]}…","id"]', said
        script = f"print(query_rows.all({{sql: `{sql}`}})[0][`{expression}`])"
        assert text_of(await wire.call("call_tools", script=script)).rstrip().endswith("\na")


@pytest.mark.anyio
async def test_no_value_is_called_absent_that_the_statement_may_mean(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    run(
        path,
        "CREATE TABLE jobs (id INTEGER PRIMARY KEY, state TEXT, email TEXT, code TEXT, data BLOB);"
        "INSERT INTO jobs VALUES (1, 'open', 'a@b', 'ab' || char(0) || 'c', x'00'), (2, 'done', 'c@d', 'x', 'a');"
        "CREATE TABLE tasks (id INTEGER PRIMARY KEY, state TEXT); INSERT INTO tasks VALUES (1, 'new');"
        "CREATE VIEW mails AS SELECT id, email AS mail FROM jobs;",
    )
    run(tmp_path / "old.db", "CREATE TABLE jobs (id INTEGER, state TEXT); INSERT INTO jobs VALUES (1, 'Open');")
    async with served("--mask", "jobs.email", path) as wire:
        answer = text_of(await wire.call("query_rows", sql="SELECT 1 FROM mails WHERE mail = 'a@b' AND id = 2"))
        assert "never" not in answer, answer
    async with served(path, tmp_path / "old.db") as wire:
        for sql in (
            "SELECT 1 FROM jobs WHERE state = 'OPEN' COLLATE NOCASE AND id = 2",
            "WITH jobs AS (SELECT 'X' AS state) SELECT 1 FROM jobs WHERE state = 'X' AND 1 = 2",
            "SELECT 1 FROM old.jobs WHERE state = 'Open' AND id > 9",
            "SELECT 1 FROM jobs j JOIN tasks ON tasks.id = j.id WHERE j.state = 'open' AND j.id = 2",
            "SELECT 1 FROM jobs WHERE code = 'zz'",
            "SELECT 1 FROM jobs WHERE data = 'zz'",
            f"SELECT 1 FROM jobs WHERE id IN ({', '.join(map(str, range(100, 500)))})",
        ):
            answer = text_of(await wire.call("query_rows", sql=sql, database="app,old"))
            assert "never" not in answer, answer
        sql = "SELECT 1 FROM jobs WHERE id IN (7, 1, 8) AND state > 'z'"
        answer = text_of(await wire.call("query_rows", sql=sql, database="app"))
        assert "[`jobs.id` is never 7 or 8, only 1, 2]" in answer, answer


@pytest.mark.anyio
async def test_a_column_is_not_suggested_in_place_of_itself(tmp_path: Path) -> None:
    async with served(make(tmp_path / "app.db")) as wire:
        answer = text_of(await wire.call("query_rows", sql="SELECT name FROM u AS t"))
        assert "Did you mean `name`" not in answer and "It is a column of `t`" in answer, answer
