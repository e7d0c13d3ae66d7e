"""Reading served databases together: joined by their names, and nothing else reached or changed."""

from pathlib import Path

import pytest

from mcp_sqlite.worker import operations
from mcp_sqlite.worker.connection.connections import Connections
from mcp_sqlite.worker.connection.interrupt import Interrupt
from mcp_sqlite.worker.language.failure import Failure
from sqlite.serving import commit, make, run, served, text_of
from sqlite.statements import CLOSED, ROWS, SCHEMA
from sqlite.test_attacks import Target, state


@pytest.mark.share(1)
@pytest.mark.anyio
@pytest.mark.parametrize("journal", ["delete", "wal"])
async def test_two_databases_are_joined_by_their_names(journal: str, tmp_path: Path) -> None:
    one, other = make(tmp_path / "one.db", journal), make(tmp_path / "other-2.db", journal)
    run(other, "UPDATE t SET name = name || '!'")
    join = 'SELECT a.name, b.name FROM t a JOIN "other-2".t b USING (id)'
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "both.sql").write_text(f"-- Both.\n-- database: one, other-2\n{join} WHERE id = 2", "utf-8")
    async with served("--write", "--queries", tmp_path / "queries", one, other) as wire:
        said = text_of(await wire.call("query_rows", sql=join, database="one,other-2"))
        assert '["a","a!"]\n["b","b!"]\n["c","c!"]' in said
        said = text_of(await wire.call("query_rows", sql=f"{join}; SELECT 7", database="one, other-2", limit=1))
        assert '["a","a!"]' in said and "[7]" in said
        cursor = said.partition("cursor=")[2].partition("]")[0]
        assert '["b","b!"]' in text_of(await wire.call("query_rows", cursor=cursor))
        assert "SCAN" in text_of(await wire.call("explain_query", sql=join, database="one,other-2"))
        assert '["b","b!"]' in text_of(await wire.call("run_both"))
        found = await wire.request("resources/read", {"uri": "sqlite://.queries/both"})
        assert '["b","b!"]' in found["contents"][0]["text"]
        await commit(other, "UPDATE t SET name = 'new' WHERE id = 2")
        assert '["b","new"]' in text_of(await wire.call("run_both"))
        for database in ("one,nothing", "one,one", "one,", ","):
            result = await wire.call("query_rows", sql="SELECT 1", database=database)
            assert result.get("isError") and "`" in text_of(result), database
        # Without the name nothing of the other is there, and writing reaches one database only.
        assert (await wire.call("query_rows", sql=join, database="one")).get("isError")
        assert (await wire.call("write_rows", sql="DELETE FROM u", database="one,other-2")).get("isError")


def test_no_statement_has_an_effect_on_either(tmp_path: Path) -> None:
    target, other = Target(tmp_path), make(tmp_path / "other.db")
    target.files |= {other}
    before = state(other)
    connections = Connections(Interrupt())
    more = [
        "DELETE FROM other.t", "UPDATE other.t SET name = 'x'", "CREATE TABLE other.n (a)", "DROP TABLE other.t",
        "PRAGMA other.user_version = 7", "PRAGMA other.journal_mode = WAL", "DETACH other",
        "VACUUM other INTO '{away}/v.db'", "ATTACH '{path}' AS third", "SELECT * FROM pragma_database_list",
    ]  # fmt: skip
    for number, sql in enumerate([*more, *ROWS, *SCHEMA, *CLOSED]):
        connections.interrupt.start(5)
        request = {
            "do": "query", "path": str(target.path), "beside": {"other": str(other)}, "sql": target.filled(sql),
            "parameters": None, "limit": 9, "max_bytes": 9000, "max_cell": 99,
            "spool": str(tmp_path / "away" / f"spool{number}"), "spool_bytes": 9000,
        }  # fmt: skip
        with pytest.raises(Failure):
            operations.run(connections, request, lambda _: None)
        target.unharmed(sql)
        assert state(other) == before, sql
    for path in (target.path, other):
        connections.reader(connections.resolve(str(path))).close()
