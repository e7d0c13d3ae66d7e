"""A part of a database is served, and columns are masked: a sample of `prove_visible_schema`, and the same through
the server.
"""

import shutil
from pathlib import Path
from typing import Any

import pytest

from mcp_batteries.errors import Unavailable
from mcp_batteries.settings import load
from mcp_sqlite.policy import Policy
from mcp_sqlite.settings import Settings
from mcp_sqlite.worker.connection.visible_schema import VisibleSchema
from sqlite.prove_visible_schema import make as scene
from sqlite.prove_visible_schema import prove
from sqlite.serving import commit, make, run, served, text_of
from sqlite.test_changes import told
from sqlite.visible_schema_cases import MASK, ONLY
from thinning import few, some

# By each wall, the share of the proof's cases that is enough to find it missing.
SHARES_THAT_TELL = {"_cover": 0.004, "rewrite": 0.02, "_walks_masked_index": 0.02}


@pytest.mark.parametrize("share", few([0.002, 0.02], 0.002))
def test_a_sample_of_the_proof(share: float) -> None:
    tally = prove(share, 5)
    assert tally.wrong == []
    assert tally.counts["used"] > 7500 * share, tally.counts
    assert tally.counts["hidden"] > 2500 * share, tally.counts
    assert tally.counts["twins"] > 5000 * share, tally.counts


@pytest.mark.slow
@pytest.mark.parametrize("wall", some(SHARES_THAT_TELL, "_cover"))
def test_the_proof_sees_each_wall_that_is_missing(wall: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(part: VisibleSchema, *arguments: Any) -> Any:
        return arguments[0] if wall == "rewrite" else None

    monkeypatch.setattr(VisibleSchema, wall, nothing)
    assert len(prove(SHARES_THAT_TELL[wall], 5).wrong) > 2


def test_names_are_for_all_databases_or_one(tmp_path: Path) -> None:
    paths = [str(make(tmp_path / f"{name}.db")) for name in "ab"]
    options = ("--only", 't, "Odd.name"', "--only", "b=v", "--mask", "A=t.name")
    found = Policy(load(Settings, [*paths, *options])).parts
    assert found["a"].only == {("t",), ("Odd.name",)} and found["b"].only == {("t",), ("Odd.name",), ("v",)}
    assert found["a"].masked == {("t", "name")} and not found["b"].masked
    for slip in (("--mask", "name"), ("--only", "t.name"), ("--only", "c=t"), ("--mask", "a.b.c"), ("--only", '"t')):
        with pytest.raises(Unavailable):
            Policy(load(Settings, [*paths, *slip]))


@pytest.mark.anyio
async def test_the_server_shows_the_part_and_no_more(tmp_path: Path) -> None:
    path = scene(tmp_path / "app.db", 1)
    other = shutil.copy(path, tmp_path / "other.db")
    (tmp_path / "queries").mkdir()
    saved = "-- Mails.\n-- database: app\nSELECT id, email FROM person ORDER BY id LIMIT 1"
    (tmp_path / "queries" / "mails.sql").write_text(saved, "utf-8")
    flags = [
        "--only",
        " ".join(f"app={name}" for name in ONLY),
        *(word for item in MASK for word in ("--mask", f"app={'.'.join(item)}")),
    ]
    folders = ["--files", tmp_path, "--queries", tmp_path / "queries"]
    async with served("--write", *flags, *folders, path, other) as wire:
        said = text_of(await wire.call("query_rows", sql="SELECT * FROM person LIMIT 1", database="app"))
        assert said.endswith('[1,"n","•••",1,"•••","•••","N"]\n')
        assert "person.email, person.made, person.again are masked: every value counts as •••" in said
        assert "no such table: secret" in text_of(
            await wire.call("query_rows", sql="SELECT * FROM secret", database="app")
        )
        # However long the words of an error are, they are read in one go.
        assert "near" in text_of(await wire.call("query_rows", sql="x" * 100_000, database="app"))
        assert "canary" in text_of(await wire.call("query_rows", sql="SELECT x FROM secret", database="other"))
        assert "email text (masked)" in text_of(await wire.call("list_tables"))
        assert "- email: TEXT, masked" in text_of(await wire.call("get_table", table="person", database="app"))
        assert "secret" not in text_of(await wire.call("list_tables", database="app"))
        assert '[1,"•••"]' in text_of(await wire.call("run_mails"))
        for tool, arguments in (
            ("copy_database", {"file": "copy.db", "database": "app"}),
            ("query_rows", {"sql": "SELECT 1", "database": "other,app"}),
        ):
            result = await wire.call(tool, **arguments)
            assert result.get("isError") and "part" in text_of(result)
        uris = [item["uri"] for item in (await wire.request("resources/list"))["resources"]]
        assert "sqlite://app/person" in uris and "sqlite://app/secret" not in uris
        for uri in ("sqlite://app/person", "sqlite://app/orders"):
            await wire.subscribe(uri)
        # Nobody hears of what nobody may see.
        await commit(path, "UPDATE person SET email = 'canary-new' WHERE id = 1; UPDATE secret SET x = 'canary'")
        await commit(path, "UPDATE orders SET note = 'new' WHERE id = 1")
        await told(wire, "sqlite://app/orders")


@pytest.mark.anyio
async def test_a_mask_of_what_is_not_there_serves_nothing(tmp_path: Path) -> None:
    path = make(tmp_path / "app.db")
    async with served("--mask", "t.nmae", path) as wire:
        said = text_of(await wire.call("query_rows", sql="SELECT 1"))
        assert "`t.nmae`" in said and "not there" in said
        run(path, "DROP TRIGGER v_write; DROP VIEW v; ALTER TABLE t RENAME name TO nmae")
        assert '[1,"•••"]' in text_of(await wire.call("query_rows", sql="SELECT * FROM t LIMIT 1"))
        run(path, "ALTER TABLE t RENAME nmae TO name")
        assert "not there" in text_of(await wire.call("query_rows", sql="SELECT 1"))


@pytest.mark.parametrize("option", ["--only", "--mask"])
def test_a_part_goes_without_a_schema_that_changes(option: str, tmp_path: Path) -> None:
    with pytest.raises((SystemExit, ValueError, Unavailable)):
        load(Settings, [str(make(tmp_path / "app.db")), option, "t.name" if option == "--mask" else "t", "--ddl"])


_CONSTRAINTS = """
CREATE TABLE staff (
    id integer PRIMARY KEY, name text, pay int, least int CHECK (least <= pay), part int,
    most int AS (part * 9) CHECK("most">[pay]), team int, note text CHECK (note <> 'pays'), UNIQUE (team, pay)
);
CREATE UNIQUE INDEX well_paid ON staff (name) WHERE pay > 600;
INSERT INTO staff (id, name, pay, least, part, team) VALUES (1, 'ann', 500, 0, 99, 1), (2, 'bob', 700, 0, 99, 1);
"""


@pytest.mark.anyio
async def test_no_constraint_tells_of_masked_values(tmp_path: Path) -> None:
    run(tmp_path / "app.db", _CONSTRAINTS)
    change = "INSERT INTO staff (id, pay) VALUES (1, 1) ON CONFLICT DO UPDATE SET least = 450"
    async with served("--write", "--mask", "staff.pay", tmp_path / "app.db") as wire:
        for sql in (
            "UPDATE staff SET least = 450", "UPDATE staff SET part = 1", "UPDATE staff SET team = 2 WHERE id = 1",
            "UPDATE OR IGNORE staff SET least = 600", "UPDATE staff SET name = 'bob'", change,
        ):  # fmt: skip
            for arguments in ({"dry_run": True}, {}):
                done = await wire.call("write_rows", sql=sql, **arguments)
                assert done["isError"] and "compares it with a masked column" in text_of(done), text_of(done)
        for sql in (
            "UPDATE staff SET note = 'x', pay = 9 WHERE id = 1",
            "INSERT INTO staff (id, pay, least) VALUES (3, 9, 8)",
        ):
            done = await wire.call("write_rows", sql=sql)
            assert not done.get("isError"), text_of(done)


@pytest.mark.anyio
async def test_no_constraint_compares_what_is_set_with_masked_values(tmp_path: Path) -> None:
    run(
        tmp_path / "app.db",
        """CREATE TABLE staff (id integer PRIMARY KEY, pay int, least int CHECK (least <= pay), part int, alone int
            CHECK (alone > 0), gap int AS (part - pay), twice int AS (gap * 2) CHECK (twice < 0), word text,
            same text AS (nullif(word, pay)) NOT NULL);
        INSERT INTO staff (id, pay, least, part, alone, word) VALUES (1, 500, 0, 9, 1, 'x');""",
    )
    masks = [word for name in ("pay", "least", "alone") for word in ("--mask", f"staff.{name}")]
    async with served("--write", *masks, tmp_path / "app.db") as wire:
        for change in ("pay = 1", "least = 501", "least = 1", "part = 501", "word = '500'"):
            done = await wire.call("write_rows", sql=f"UPDATE staff SET {change}", dry_run=True)
            assert done["isError"] and "compares it with a masked column" in text_of(done), text_of(done)
        done = await wire.call("write_rows", sql="UPDATE staff SET alone = 2")
        assert not done.get("isError"), text_of(done)


@pytest.mark.anyio
async def test_no_rowid_of_a_table_with_masks_passes_for_null(tmp_path: Path) -> None:
    run(
        tmp_path / "app.db",
        """CREATE TABLE t (name text, pay int); INSERT INTO t VALUES ('a', 1);
        CREATE TABLE own (rowid text, pay int); INSERT INTO own VALUES ('mine', 1);
        CREATE INDEX by_pay ON t (pay);""",
    )
    async with served("--write", "--mask", "t.pay", "--mask", "own.pay", tmp_path / "app.db") as wire:
        for sql in ("SELECT rowid FROM t", "SELECT name FROM t WHERE _rowid_ = 1", "SELECT max(oid) FROM t"):
            done = await wire.call("query_rows", sql=sql)
            assert done["isError"] and "`t` has masked columns, and no rowid" in text_of(done), text_of(done)
        assert '["mine"]' in text_of(await wire.call("query_rows", sql="SELECT rowid FROM own"))
        done = await wire.call("write_rows", sql="UPDATE t SET name = 'b' WHERE rowid = 1", dry_run=True)
        assert "1 row in t" in text_of(done)
        said = text_of(await wire.call("query_rows", sql="SELECT name FROM t INDEXED BY by_pay"))
        assert "no index can be named" in said
