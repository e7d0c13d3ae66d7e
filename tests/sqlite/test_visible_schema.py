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
