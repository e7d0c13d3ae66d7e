"""Virtual tables that prepare writes when first used, as R-Trees do: queried in every mode, by every worker."""

import sqlite3
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from mcp_batteries.testing.wire import StdioWire
from sqlite.serving import BUILDS, commit, make, run, served, text_of
from sqlite.test_attacks import MODES

pytestmark = pytest.mark.anyio

MODULES = {
    "rtree": ("rtree (id, minx, maxx)", "(id, minx, maxx) VALUES (1, 0, 9)", "WHERE minx < 5"),
    "rtree_i32": ("rtree_i32 (id, minx, maxx, +note)", "(id, minx, maxx, note) VALUES (1, 0, 9, 'n')", "WHERE id = 1"),
    "geopoly": ("geopoly (name)", "(_shape, name) VALUES ('[[0,0],[1,0],[1,1],[0,0]]', 'n')", "WHERE name = 'n'"),
    "fts3": ("fts3 (x)", "(x) VALUES ('a word')", "WHERE x MATCH 'word'"),
    "fts4": ("fts4 (x)", "(x) VALUES ('a word')", "WHERE x MATCH 'word'"),
    "fts5": ("fts5 (x)", "(x) VALUES ('a word')", "WHERE x MATCH 'word'"),
}


def fill(path: Path) -> dict[str, str]:
    """Make a table of each module that this build has; what finds its one row."""
    found: dict[str, str] = {}
    with closing(sqlite3.connect(path)) as connection:
        there = {name for (name,) in connection.execute("SELECT name FROM pragma_module_list")}
        for module in MODULES.keys() & there:
            made, row, where = MODULES[module]
            connection.executescript(f"CREATE VIRTUAL TABLE v_{module} USING {made}; INSERT INTO v_{module} {row};")
            found[module] = f"SELECT count(*) FROM v_{module} {where}"
        connection.executescript("CREATE VIEW boxes AS SELECT id FROM v_rtree WHERE maxx > 1; CREATE TABLE t (x)")
    return found


async def answered(wire: StdioWire, sql: str, word: str = "[1]") -> None:
    result = await wire.call("query_rows", sql=sql)
    assert not result.get("isError") and word in text_of(result), f"{sql}: {text_of(result)}"


@pytest.mark.share(1)
@pytest.mark.diagonal
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("build", BUILDS)
async def test_every_worker_reads_every_module(build: str, mode: str, tmp_path: Path) -> None:
    queries = fill(tmp_path / "a.db")
    assert {"rtree", "fts5"} <= queries.keys()
    async with served(*MODES[mode], "--workers", 3, tmp_path / "a.db", build=build) as wire:
        for _ in range(2):
            async with anyio.create_task_group() as tasks:
                for sql in [*queries.values(), "SELECT * FROM boxes"]:
                    tasks.start_soon(answered, wire, sql)
            # Everybody's schema is read anew, and the tables opened again.
            await commit(tmp_path / "a.db", "ALTER TABLE t RENAME TO t2; ALTER TABLE t2 RENAME TO t")
        assert "SCAN v_rtree" in text_of(await wire.call("explain_query", sql="SELECT * FROM v_rtree"))
        found = await wire.request("resources/read", {"uri": "sqlite://a/v_rtree"})
        assert "[1,0.0,9.0]" in found["contents"][0]["text"]


@pytest.mark.share(1)
@pytest.mark.parametrize("build", BUILDS)
async def test_rows_and_schema_of_each_module_change_behind_their_switch(build: str, tmp_path: Path) -> None:
    modules = fill(tmp_path / "a.db").keys()
    async with served("--write", "--ddl", tmp_path / "a.db", build=build) as wire:
        for module in modules:
            made, row, _ = MODULES[module]
            for tool, sql in (
                ("write_rows", f"DELETE FROM v_{module}"),
                ("write_rows", f"INSERT INTO v_{module} {row}"),
                ("edit_schema", f"CREATE VIRTUAL TABLE n_{module} USING {made}"),
                ("edit_schema", f"DROP TABLE n_{module}"),
                ("edit_schema", f"ALTER TABLE v_{module} RENAME TO r_{module}"),
            ):
                result = await wire.call(tool, sql=sql)
                assert not result.get("isError"), f"{sql}: {text_of(result)}"
                await commit(tmp_path / "a.db", "ALTER TABLE t RENAME TO t2; ALTER TABLE t2 RENAME TO t")
            await answered(wire, f"SELECT count(*) FROM r_{module}")


@pytest.mark.share(1)
@pytest.mark.parametrize("build", BUILDS)
async def test_what_virtual_tables_keep_stays_closed(build: str, tmp_path: Path) -> None:
    fill(tmp_path / "a.db")
    kept = ["v_rtree_node", "v_rtree_rowid", "v_rtree_parent", "v_fts5_data", "v_fts5_config"]
    async with served("--write", "--ddl", tmp_path / "a.db", build=build) as wire:
        for tool in ("query_rows", "write_rows"):
            for table in kept:
                for sql in (f"DELETE FROM {table}", f"DELETE FROM {table} WHERE 0 IN (SELECT id FROM v_rtree)"):
                    result = await wire.call(tool, sql=sql)
                    said = text_of(result)  # of our gate, or of an SQLite that keeps them closed itself
                    assert result.get("isError") and ("delete from" in said or "may not be modified" in said), said
            assert tool == "write_rows" or (await wire.call(tool, sql="DELETE FROM v_rtree")).get("isError")


async def test_a_merged_column_is_no_way_to_a_closed_table(tmp_path: Path) -> None:
    path = make(tmp_path / "a.db")
    run(path, "CREATE TABLE stmts (csv, full)")
    async with served(path) as wire:
        await wire.call("query_rows", sql="SELECT 'secret of another'")
        for join in ("FULL JOIN", "natural /**/ full outer join"):
            on = "" if "natural" in join else "USING (sql)"
            sql = f"SELECT sql FROM sqlite_stmt {join} (SELECT 1 AS sql) {on}"
            result = await wire.call("query_rows", sql=sql)
            assert result.get("isError") and "secret" not in text_of(result), text_of(result)
        assert "[0 rows]" in text_of(await wire.call("query_rows", sql="SELECT csv, full FROM stmts"))


async def test_explain_tells_no_address(tmp_path: Path) -> None:
    async with served(make(tmp_path / "a.db")) as wire:
        said = text_of(await wire.call("query_rows", sql="-- why\nEXPLAIN SELECT * FROM f, json_each('[1]')"))
        assert '"VOpen"' in said and '"vtab"' in said and "vtab:" not in said
        assert '["vtab:1F"]' in text_of(await wire.call("query_rows", sql="SELECT 'vtab:1F' AS p4"))
